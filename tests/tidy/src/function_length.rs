//! No function has more than 70 lines of code: signature to closing brace, without blank lines and
//! lines of comment only.

use crate::syntax::parse;
use crate::tree::File;
use crate::{Finding, Tree};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// The longest function, lines.
pub const LIMIT: usize = 70;

/// Finds functions that are too long, in tests as well.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.with_extension(&["rs"]) {
        match parse(file) {
            Ok(syntax) => {
                let mut functions = Functions { file, found: Vec::new() };
                functions.visit_file(&syntax);
                found.append(&mut functions.found);
            }
            Err(finding) => found.push(finding),
        }
    }
    found
}

struct Functions<'a> {
    file: &'a File,
    found: Vec<Finding>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, end: Span) {
        let (first, last) = (signature.span().start().line, end.end().line);
        let lines = self.file.text.lines().skip(first - 1).take(last + 1 - first);
        let code = lines.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
        let count = code.count();
        if count > LIMIT {
            let name = &signature.ident;
            let message = format!("{name} has {count} lines of code, at most {LIMIT}");
            self.found.push(self.file.finding(first, message));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, function.block.span());
        syn::visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, function.block.span());
        syn::visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.measure(&function.sig, block.span());
        }
        syn::visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_counts_comments_and_blank_lines_do_not() {
        let fits = format!("fn fits() {{\n{}\n// why\n}}\n", "let _ = 1;\n".repeat(LIMIT - 2));
        let long = format!(
            "impl X {{\n    fn long() {{\n{}    }}\n}}\n",
            "let _ = 1;\n".repeat(LIMIT - 1)
        );
        let found = check(&Tree::of(&[("a.rs", &fits), ("b.rs", &long)]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), "b.rs:2: long has 71 lines of code, at most 70");
    }

    #[test]
    fn what_is_not_rust_is_said() {
        assert_eq!(check(&Tree::of(&[("a.rs", "fn {")])).len(), 1);
    }
}
