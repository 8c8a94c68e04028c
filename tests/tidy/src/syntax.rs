//! Rust sources as syntax trees, without their tests where a rule doesn't bind tests.

use crate::tree::{File, Finding};
use syn::visit::Visit;
use syn::{Attribute, ImplItem, Item};

/// Parses a Rust file.
///
/// # Errors
/// A finding that says why it isn't Rust.
pub(crate) fn parse(file: &File) -> Result<syn::File, Finding> {
    syn::parse_file(&file.text).map_err(|error| {
        file.finding(error.span().start().line, format!("this isn't valid Rust: {error}"))
    })
}

/// Whether an item is there only in tests.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if attribute.path().is_ident("test") {
            return true;
        }
        let syn::Meta::List(list) = &attribute.meta else { return false };
        list.path.is_ident("cfg") && list.tokens.to_string() == "test"
    })
}

/// The attributes of an item of a module.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Takes the tests out of a file.
pub(crate) fn without_tests(mut file: syn::File) -> syn::File {
    strip(&mut file.items);
    file
}

fn strip(items: &mut Vec<Item>) {
    items.retain(|item| !is_test(attributes(item)));
    for item in items {
        match item {
            Item::Mod(module) => {
                if let Some((_, items)) = &mut module.content {
                    strip(items);
                }
            }
            Item::Impl(item) => {
                item.items.retain(|item| !matches!(item, ImplItem::Fn(f) if is_test(&f.attrs)));
            }
            _ => {}
        }
    }
}

/// Paths that a file names, in expressions, types and imports, each with its line.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// `a::b::c` and the line.
    pub(crate) found: Vec<(String, usize)>,
}

impl Paths {
    /// All of them.
    pub(crate) fn of(file: &syn::File) -> Vec<(String, usize)> {
        let mut paths = Self::default();
        paths.visit_file(file);
        paths.found
    }

    fn import(&mut self, prefix: &str, tree: &syn::UseTree) {
        let join = |name: &syn::Ident| {
            let line = name.span().start().line;
            (if prefix.is_empty() { name.to_string() } else { format!("{prefix}::{name}") }, line)
        };
        match tree {
            syn::UseTree::Path(path) => self.import(&join(&path.ident).0, &path.tree),
            syn::UseTree::Name(name) => self.found.push(join(&name.ident)),
            syn::UseTree::Rename(name) => self.found.push(join(&name.ident)),
            syn::UseTree::Glob(glob) => {
                self.found.push((prefix.to_owned(), glob.star_token.spans[0].start().line));
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(prefix, tree));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|one| one.ident.to_string()).collect();
        let line = path.segments.first().map_or(1, |one| one.ident.span().start().line);
        self.found.push((names.join("::"), line));
        syn::visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import("", &item.tree);
    }
}
