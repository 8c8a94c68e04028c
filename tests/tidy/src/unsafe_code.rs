//! `unsafe` lives in `dataplane/xsk` and in one file of `dataplane/shm` only; every other crate
//! root forbids it, and that of `dataplane/shm` denies it but for that file.

use crate::syntax::parse;
use crate::tree::File;
use crate::{Finding, Tree};
use syn::visit::Visit;

const ALLOWED: [&str; 2] = ["dataplane/xsk/", "dataplane/shm/src/map.rs"];
/// The root of the crate that has such a file: what is forbidden can't be allowed further in.
const DENIES: &str = "dataplane/shm/src/lib.rs";

/// Finds unsafe code outside its place, and crate roots that don't forbid it.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let elsewhere = |file: &&File| !ALLOWED.iter().any(|place| file.path.starts_with(place));
    for file in tree.with_extension(&["rs"]).filter(elsewhere) {
        let Ok(syntax) = parse(file) else { continue };
        let lint = if file.path == DENIES { "deny" } else { "forbid" };
        if is_crate_root(file) && !sets(lint, &syntax) {
            let message = format!("the crate root lacks #![{lint}(unsafe_code)]");
            found.push(file.finding(1, message));
        }
        let mut uses = Uses { file, found: Vec::new() };
        uses.visit_file(&syntax);
        found.append(&mut uses.found);
    }
    found
}

fn is_crate_root(file: &File) -> bool {
    let path = file.path.as_str();
    let binary = path
        .split_once("/src/bin/")
        .is_some_and(|(_, rest)| rest.split_once('/').is_none_or(|(_, inner)| inner == "main.rs"));
    path.ends_with("src/lib.rs") || path.ends_with("src/main.rs") || binary
}

fn sets(lint: &str, syntax: &syn::File) -> bool {
    syntax.attrs.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => {
            list.path.is_ident(lint) && list.tokens.to_string().contains("unsafe_code")
        }
        _ => false,
    })
}

struct Uses<'a> {
    file: &'a File,
    found: Vec<Finding>,
}

impl Uses<'_> {
    fn note(&mut self, word: Option<&syn::token::Unsafe>) {
        if let Some(word) = word {
            let line = word.span.start().line;
            self.found
                .push(self.file.finding(line, format!("unsafe outside {}", ALLOWED.join(", "))));
        }
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_expr_unsafe(&mut self, block: &'ast syn::ExprUnsafe) {
        self.note(Some(&block.unsafe_token));
        syn::visit::visit_expr_unsafe(self, block);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.note(signature.unsafety.as_ref());
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.note(item.unsafety.as_ref());
        syn::visit::visit_item_impl(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn every_form_is_found() {
        assert_eq!(found("ctl/src/x.rs", "fn f() { unsafe { g() } }"), 1);
        assert_eq!(found("ctl/src/x.rs", "unsafe fn f() {}"), 1);
        assert_eq!(found("ctl/src/x.rs", "unsafe impl Send for X {}"), 1);
    }

    #[test]
    fn a_root_must_forbid_it() {
        assert_eq!(found("ctl/src/main.rs", "fn main() {}"), 1);
        assert_eq!(found("ctl/src/bin/x.rs", "fn main() {}"), 1);
        assert_eq!(found("ctl/src/bin/x/main.rs", "fn main() {}"), 1);
        assert_eq!(found("ctl/src/bin/x/part.rs", "fn f() {}"), 0);
        assert_eq!(found("ctl/src/lib.rs", "#![forbid(unsafe_code)]"), 0);
    }

    #[test]
    fn its_place_is_left_alone() {
        assert_eq!(found("dataplane/xsk/src/lib.rs", "fn f() { unsafe { g() } }"), 0);
        assert_eq!(found("dataplane/shm/src/map.rs", "fn f() { unsafe { g() } }"), 0);
        assert_eq!(found("dataplane/shm/src/block.rs", "fn f() { unsafe { g() } }"), 1);
        assert_eq!(found("dataplane/shm/src/lib.rs", "#![deny(unsafe_code)]"), 0);
        assert_eq!(found("dataplane/shm/src/lib.rs", "mod map;"), 1);
    }
}
