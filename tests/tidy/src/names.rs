//! Files, modules, types and functions are named for what they are: a name that would fit anything
//! says nothing.

use crate::syntax::parse;
use crate::tree::File;
use crate::{Finding, Tree};
use syn::visit::Visit;
use syn::Ident;

const EMPTY_WORDS: [&str; 8] =
    ["util", "utils", "helper", "helpers", "manager", "managers", "common", "misc"];

/// Finds names made with words that say nothing.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in &tree.files {
        let parts = file.path.split('/').map(|part| part.split('.').next().unwrap_or_default());
        if let Some(word) = parts.flat_map(words).find(|word| is_empty(word)) {
            found.push(file.finding(1, format!("{word:?} in a path says nothing")));
        }
    }
    for file in tree.with_extension(&["rs"]) {
        let Ok(syntax) = parse(file) else { continue };
        let mut names = Names { file, found: Vec::new() };
        names.visit_file(&syntax);
        found.append(&mut names.found);
    }
    found
}

fn is_empty(word: &str) -> bool {
    EMPTY_WORDS.contains(&word)
}

/// The words of a name in snake, kebab or camel case, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        let separator = matches!(letter, '_' | '-');
        if separator || letter.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| !separator) {
            word.extend(letter.to_lowercase());
        }
    }
    words
}

struct Names<'a> {
    file: &'a File,
    found: Vec<Finding>,
}

impl Names<'_> {
    fn look(&mut self, name: &Ident) {
        if let Some(word) = words(&name.to_string()).iter().find(|word| is_empty(word)) {
            let message = format!("{name}: {word:?} says nothing");
            self.found.push(self.file.finding(name.span().start().line, message));
        }
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.look(&item.sig.ident);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.look(&item.sig.ident);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.look(&item.sig.ident);
        syn::visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.look(&item.ident);
        syn::visit::visit_item_mod(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.look(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.look(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.look(&item.ident);
        syn::visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.look(&item.ident);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn empty_words_are_found_in_paths_and_in_every_case() {
        assert_eq!(found("x/utils/a.rs", ""), 1);
        assert_eq!(found("x/port_helper.rs", ""), 1);
        assert_eq!(found("a.rs", "struct PortManager;"), 1);
        assert_eq!(found("a.rs", "mod m { fn do_misc() {} }"), 1);
        assert_eq!(found("a.rs", "impl X { fn common(&self) {} }"), 1);
    }

    #[test]
    fn words_that_only_contain_them_are_fine() {
        assert_eq!(found("utility_rate.rs", "fn uncommon() {} struct Commonwealth;"), 0);
    }
}
