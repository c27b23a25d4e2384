//! Rings of modules: modules that import each other, directly or through others.
//!
//! A module and its private children count as one. Imports of tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree, Visibility};

/// A module by its path from the crate's root.
type Module = Vec<String>;

/// The modules of one crate.
#[derive(Debug, Default)]
struct Modules {
    /// Each module, and the module that it counts as.
    nodes: BTreeMap<Module, Module>,
    /// Names that a module re-exports, and their source.
    exports: BTreeMap<(Module, String), Module>,
    /// Paths that each module names.
    named: Vec<(Module, Vec<String>)>,
}

/// Rings of the crate whose root is the file `root`, largest first, each with its modules in order.
///
/// # Errors
/// A file that cannot be read or parsed.
pub fn of_crate(root: &Path) -> Result<Vec<Vec<String>>> {
    let mut modules = Modules::default();
    modules.file(root, Vec::new(), Vec::new())?;
    Ok(modules.rings())
}

impl Modules {
    fn file(&mut self, file: &Path, module: Module, node: Module) -> Result<()> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let parsed = syn::parse_file(&text).with_context(|| file.display().to_string())?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let directory = file.parent().unwrap_or(Path::new("."));
        let inside = match &*stem {
            "lib" | "main" | "mod" => directory.to_owned(),
            stem => directory.join(stem),
        };
        self.nodes.insert(module.clone(), node.clone());
        for item in &parsed.items {
            if let Item::Mod(ItemMod { attrs, vis, ident, content: None, .. }) = item
                && !is_test(attrs)
            {
                let name = ident.to_string();
                let path = [&module[..], std::slice::from_ref(&name)].concat();
                // Private modules of the root count as modules of their own.
                let apart = module.is_empty() || matches!(vis, Visibility::Public(_));
                let own = if apart { path.clone() } else { node.clone() };
                let files = [inside.join(format!("{name}.rs")), inside.join(&name).join("mod.rs")];
                let file = files.iter().find(|file| file.exists());
                self.file(file.with_context(|| format!("{}: mod {name}", file_name(&inside)))?, path, own)?;
            }
        }
        let mut names = Names { modules: self, module };
        parsed.items.iter().for_each(|item| names.visit_item(item));
        Ok(())
    }

    /// The module that `path`, named in `from`, leads to; `None` where it leads out of the crate.
    fn target(&self, from: &Module, path: &[String]) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        let (mut at, mut rest) = match first.as_str() {
            "crate" => (Vec::new(), rest),
            "self" => (from.clone(), rest),
            "super" => (from[..from.len().checked_sub(1)?].to_vec(), rest),
            name => {
                let child = [&from[..], &[name.to_owned()]].concat();
                (self.nodes.contains_key(&child).then_some(child)?, rest)
            }
        };
        while let Some((name, behind)) = rest.split_first() {
            rest = behind;
            if name == "super" {
                at.pop();
                continue;
            }
            let child = [&at[..], std::slice::from_ref(name)].concat();
            if self.nodes.contains_key(&child) {
                at = child;
            } else if let Some(from) = self.exports.get(&(at.clone(), name.clone())) {
                return Some(from.clone());
            } else {
                break;
            }
        }
        Some(at)
    }

    fn rings(&self) -> Vec<Vec<String>> {
        let mut edges: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
        for (from, path) in &self.named {
            let Some(target) = self.target(from, path) else { continue };
            let (Some(from), Some((_, to))) = (self.nodes.get(from), self.nodes.get_key_value(&target))
            else {
                continue;
            };
            if from != to {
                edges.entry(from).or_default().insert(to);
            }
        }
        let reached = |from: &Module| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
            while let Some(node) = next.pop() {
                for &to in edges.get(node).into_iter().flatten() {
                    if seen.insert(to) {
                        next.push(to);
                    }
                }
            }
            seen
        };
        let reach: BTreeMap<&Module, BTreeSet<&Module>> =
            edges.keys().map(|&node| (node, reached(node))).collect();
        let mut rings: BTreeSet<Vec<String>> = BTreeSet::new();
        for (&node, seen) in &reach {
            if seen.contains(node) {
                let back = |other: &&&Module| reach.get(**other).is_some_and(|seen| seen.contains(node));
                rings.insert(seen.iter().filter(back).map(|module| name(module)).collect());
            }
        }
        let mut rings: Vec<Vec<String>> = rings.into_iter().collect();
        rings.sort_by_key(|ring| std::cmp::Reverse(ring.len()));
        rings
    }
}

fn name(module: &Module) -> String {
    if module.is_empty() { "crate".into() } else { module.join("::") }
}

fn file_name(path: &Path) -> String {
    path.display().to_string()
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Meta>().is_ok_and(|meta| meta.path().is_ident("test"))
    })
}

/// Collects the paths that a module names.
struct Names<'a> {
    modules: &'a mut Modules,
    module: Module,
}

impl Names<'_> {
    fn uses(&mut self, tree: &UseTree, before: &mut Vec<String>, exported: bool) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.uses(&path.tree, before, exported);
                before.pop();
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.uses(tree, before, exported));
            }
            UseTree::Name(_) | UseTree::Rename(_) | UseTree::Glob(_) => {
                let (own, shown) = match tree {
                    UseTree::Name(name) => (Some(&name.ident), Some(&name.ident)),
                    UseTree::Rename(name) => (Some(&name.ident), Some(&name.rename)),
                    _ => (None, None),
                };
                let path =
                    [&before[..], &own.map(ToString::to_string).into_iter().collect::<Vec<_>>()].concat();
                if exported && let Some(shown) = shown {
                    // Children are known by now: they were read first.
                    if let Some(target) = self.modules.target(&self.module, &path) {
                        self.modules.exports.insert((self.module.clone(), shown.to_string()), target);
                    }
                }
                self.modules.named.push((self.module.clone(), path));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let exported = !matches!(item.vis, Visibility::Inherited);
        self.uses(&item.tree, &mut Vec::new(), exported);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            let words = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.modules.named.push((self.module.clone(), words));
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rings(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let directory =
            std::env::temp_dir().join(format!("rings-{}-{}", std::process::id(), files[0].1.len()));
        for (path, text) in files {
            let file = directory.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let rings = of_crate(&directory.join("lib.rs")).unwrap();
        std::fs::remove_dir_all(directory).unwrap();
        rings
    }

    #[test]
    fn modules_that_import_each_other_are_a_ring() {
        let found = rings(&[
            ("lib.rs", "mod a; mod b; pub mod c; pub use c::Shown;"),
            ("a.rs", "use crate::b::B; fn f() { crate::c::g() }"),
            ("b.rs", "use super::a::A as Other; #[cfg(test)] mod tests { use crate::c::C; }"),
            ("c/mod.rs", "mod inner; pub mod outer; pub struct Shown;"),
            ("c/inner.rs", "use super::Shown;"),
            ("c/outer.rs", "use crate::{Shown};"),
        ]);
        assert_eq!(found, [vec!["a".to_owned(), "b".into()]]);
    }

    #[test]
    fn children_that_others_see_count_for_themselves() {
        let found = rings(&[
            ("lib.rs", "pub mod c; // longer"),
            ("c/mod.rs", "pub mod outer; use outer::Thing; pub struct Shown;"),
            ("c/outer.rs", "use super::Shown; pub struct Thing;"),
        ]);
        assert_eq!(found, [vec!["c".to_owned(), "c::outer".into()]]);
    }
}
