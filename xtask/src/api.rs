//! Lists the public interface of the libraries, one signature per line, so that reviews show every change of it.
//!
//! The list is read from the sources: all public items that can be reached from the root of their crate, with re-exports
//! followed. Macros that define items are not expanded.

use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::{Attribute, Fields, Ident, ImplItem, Item, TraitItem, UseTree, Visibility};

/// The crates whose interface is listed.
const CRATES: [&str; 9] = [
    "steersman",
    "steersman-adapters",
    "steersman-client",
    "steersman-definition",
    "steersman-lsp",
    "steersman-machine",
    "steersman-runtime",
    "steersman-server",
    "steersman-views",
];

/// Writes the lists if `write` is true; otherwise returns an error with all differences from the sources.
pub(crate) fn check(root: &Path, write: bool) -> Result<(), String> {
    let mut changed = Vec::new();
    for name in CRATES {
        let (now, _) = of(&root.join("crates").join(name).join("src/lib.rs"), name)?;
        let path = root.join("docs/reference/api").join(format!("{name}.txt"));
        let then = fs::read_to_string(&path).unwrap_or_default();
        if now == then {
            continue;
        }
        if write {
            fs::create_dir_all(root.join("docs/reference/api")).map_err(|e| e.to_string())?;
            fs::write(&path, now).map_err(|e| e.to_string())?;
        } else {
            changed.push(differences(name, &then, &now));
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    let changed = changed.join("\n");
    Err(format!(
        "the public interface differs from docs/reference/api; if you meant to change it, run `cargo xtask api`\n{changed}"
    ))
}

/// Returns, for each crate, the names of public functions and constants that occur in no other crate, example or guide. Types,
/// fields and variants are not counted: they have to be public where a function that is used returns them.
pub(crate) fn unused(root: &Path) -> Result<Vec<(&'static str, BTreeSet<String>)>, String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut written: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in crate::tidy::tracked(root) {
        let is_text = [".rs", ".md"].iter().any(|end| path.ends_with(end));
        if !is_text
            || path.starts_with("docs/reference/api/")
            || path.starts_with("docs/decisions/")
        {
            continue;
        }
        let owner = path
            .strip_prefix("crates/")
            .and_then(|rest| rest.split_once("/src/"));
        let owner = owner.map_or("", |(name, _)| name).to_owned();
        let Ok(text) = fs::read_to_string(root.join(&path)) else {
            continue;
        };
        let words = text.split(|c| !is_word(c)).map(str::to_owned);
        written.entry(owner).or_default().extend(words);
    }
    let mut all = Vec::new();
    for name in CRATES {
        let (_, values) = of(&root.join("crates").join(name).join("src/lib.rs"), name)?;
        let unused = values
            .into_iter()
            .filter(|item| {
                let others = written.iter().filter(|(owner, _)| *owner != name);
                !others.into_iter().any(|(_, words)| words.contains(item))
            })
            .collect();
        all.push((name, unused));
    }
    Ok(all)
}

fn differences(name: &str, then: &str, now: &str) -> String {
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) =
        (then.lines().collect(), now.lines().collect());
    let removed = old.difference(&new).map(|line| format!("- {line}"));
    let added = new.difference(&old).map(|line| format!("+ {line}"));
    let lines: Vec<String> = removed.chain(added).collect();
    format!("{name}:\n{}", lines.join("\n"))
}

/// The modules of a crate, by path.
type Modules = BTreeMap<Vec<String>, Vec<Item>>;

/// Returns the public items of a crate, sorted, one per line, and the names of its functions and constants.
fn of(lib: &Path, name: &str) -> Result<(String, BTreeSet<String>), String> {
    let mut modules = Modules::new();
    let folder = lib.parent().expect("a file is in a folder");
    read(lib, folder, Vec::new(), &mut modules)?;
    let api = reached(&modules, name);
    let lines = api.lines.into_iter().map(|line| line + "\n");
    Ok((lines.collect(), api.values))
}

/// Returns the public items that can be reached from the root of a crate.
fn reached<'a>(modules: &'a Modules, name: &str) -> Api<'a> {
    let mut api = Api {
        modules,
        lines: BTreeSet::new(),
        values: BTreeSet::new(),
        types: BTreeMap::new(),
        seen: BTreeSet::new(),
    };
    api.module(&[], &name.replace('-', "_"));
    api.impls();
    api
}

/// Parses a file and the files of its modules into `modules`. `folder` holds the files of its modules.
fn read(
    file: &Path,
    folder: &Path,
    path: Vec<String>,
    modules: &mut Modules,
) -> Result<(), String> {
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|e| format!("{shown}: {e}"))?;
    let parsed = syn::parse_file(&text).map_err(|e| format!("{shown}: {e}"))?;
    nested(parsed.items, folder, path, modules)
}

/// Adds a module with its items, and the modules declared in it.
fn nested(
    items: Vec<Item>,
    folder: &Path,
    path: Vec<String>,
    modules: &mut Modules,
) -> Result<(), String> {
    for item in &items {
        let Item::Mod(module) = item else { continue };
        if hidden(&module.attrs) {
            continue;
        }
        let name = module.ident.to_string();
        let below = [&path[..], std::slice::from_ref(&name)].concat();
        let inner = folder.join(&name);
        if let Some((_, items)) = &module.content {
            nested(items.clone(), &inner, below, modules)?;
            continue;
        }
        let sibling: PathBuf = folder.join(format!("{name}.rs"));
        let within = inner.join("mod.rs");
        let file = if sibling.exists() { sibling } else { within };
        read(&file, &inner, below, modules)?;
    }
    modules.insert(path, items);
    Ok(())
}

/// Returns true for items that are test code or hidden from the documentation.
fn hidden(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| {
        let text = attr.meta.to_token_stream().to_string().replace(' ', "");
        text == "cfg(test)" || text == "doc(hidden)"
    })
}

struct Api<'a> {
    modules: &'a Modules,
    lines: BTreeSet<String>,
    /// Names of functions and constants.
    values: BTreeSet<String>,
    /// Maps each public type, by module and name of its declaration, to the public path that reaches it.
    types: BTreeMap<(Vec<String>, String), String>,
    /// The modules that were listed, each with the public path under which it was listed.
    seen: BTreeSet<(Vec<String>, String)>,
}

impl Api<'_> {
    /// Lists the items of the module `path` under its public path `at`.
    fn module(&mut self, path: &[String], at: &str) {
        if !self.seen.insert((path.to_vec(), at.to_owned())) {
            return;
        }
        let Some(items) = self.modules.get(path) else {
            return;
        };
        for item in items {
            match item {
                Item::Mod(module) if public(&module.vis) && !hidden(&module.attrs) => {
                    let name = module.ident.to_string();
                    let below = [path, std::slice::from_ref(&name)].concat();
                    self.list(&format!("{at}::{name}"), "mod");
                    self.module(&below, &format!("{at}::{name}"));
                }
                Item::Use(import) if public(&import.vis) => {
                    for (source, name) in leaves(&import.tree) {
                        self.import(path, &source, &name, at);
                    }
                }
                item => self.item(path, item, None, at),
            }
        }
    }

    /// Lists one name of a `pub use`: the item itself if this crate declares it, otherwise only the name.
    fn import(&mut self, from: &[String], source: &[String], name: &str, at: &str) {
        let (first, rest) = source.split_first().expect("an import names something");
        let base: Vec<String> = match first.as_str() {
            "crate" => rest.to_vec(),
            "self" => [from, rest].concat(),
            "super" => [&from[..from.len().saturating_sub(1)], rest].concat(),
            _ => [from, source].concat(),
        };
        let (item, module) = base.split_last().expect("an import names something");
        if self.modules.contains_key(&base) {
            self.list(&format!("{at}::{name}"), "mod");
            return self.module(&base, &format!("{at}::{name}"));
        }
        let items = self.modules.get(module);
        let found = items
            .into_iter()
            .flatten()
            .find(|known| head(known).is_some_and(|(ident, ..)| ident == item));
        if let Some(found) = found {
            return self.item(module, found, Some(name), at);
        }
        // that module may re-export the item; if it does not, another crate declares the item
        let reexported = items.into_iter().flatten().find_map(|known| match known {
            Item::Use(import) => leaves(&import.tree)
                .into_iter()
                .find(|(_, name)| name == item),
            _ => None,
        });
        if let Some((source, _)) = reexported {
            return self.import(module, &source, name, at);
        }
        let source = source.join("::");
        self.list(&format!("{at}::{name}"), &format!("use {source}"));
    }

    fn item(&mut self, module: &[String], item: &Item, name: Option<&str>, at: &str) {
        let Some((ident, vis, attrs)) = head(item) else {
            return;
        };
        if !public(vis) || hidden(attrs) {
            return;
        }
        let own = ident.to_string();
        let name = name.unwrap_or(&own);
        let place = format!("{at}::{name}");
        let kind = match item {
            Item::Fn(item) => return self.value(at, name, &text(&item.sig)),
            Item::Const(item) => return self.value(at, name, &text(&item.ty)),
            Item::Static(item) => return self.value(at, name, &text(&item.ty)),
            Item::Struct(item) => {
                self.fields(&place, &item.fields, false);
                format!("struct{}{}", text(&item.generics), derived(attrs))
            }
            Item::Enum(item) => {
                for variant in item.variants.iter().filter(|of| !hidden(&of.attrs)) {
                    let place = format!("{place}::{}", variant.ident);
                    self.list(&place, "variant");
                    self.fields(&place, &variant.fields, true);
                }
                format!("enum{}{}", text(&item.generics), derived(attrs))
            }
            Item::Trait(item) => {
                for member in &item.items {
                    self.member(&place, member);
                }
                format!("trait: {}", text(&item.supertraits))
            }
            Item::Type(item) => format!("type = {}", text(&item.ty)),
            _ => return,
        };
        self.types.insert((module.to_vec(), own), place.clone());
        self.list(&place, &kind);
    }

    /// Lists a member of the trait at `place`.
    fn member(&mut self, place: &str, member: &TraitItem) {
        match member {
            TraitItem::Fn(member) if !hidden(&member.attrs) => {
                let given = member.default.as_ref().map_or("", |_| " { .. }");
                let form = format!("{}{given}", text(&member.sig));
                self.value(place, &member.sig.ident.to_string(), &form);
            }
            TraitItem::Const(member) if !hidden(&member.attrs) => {
                self.value(place, &member.ident.to_string(), &text(&member.ty));
            }
            TraitItem::Type(member) if !hidden(&member.attrs) => {
                self.list(&format!("{place}::{}", member.ident), &text(&member.bounds));
            }
            _ => {}
        }
    }

    fn fields(&mut self, place: &str, fields: &Fields, all: bool) {
        for (k, field) in fields.iter().enumerate() {
            if (all || public(&field.vis)) && !hidden(&field.attrs) {
                let name = field
                    .ident
                    .as_ref()
                    .map_or(k.to_string(), ToString::to_string);
                self.list(&format!("{place}::{name}"), &text(&field.ty));
            }
        }
    }

    /// Lists the implementations for types that can be reached.
    fn impls(&mut self) {
        let all: Vec<(&Vec<String>, &Item)> = self
            .modules
            .iter()
            .flat_map(|(path, items)| items.iter().map(move |item| (path, item)))
            .collect();
        for (path, item) in all {
            let Item::Impl(block) = item else { continue };
            if hidden(&block.attrs) {
                continue;
            }
            let Some(place) = self.place_of(path, &text(&block.self_ty)) else {
                continue;
            };
            if let Some((of, _)) = &block.trait_ {
                self.list(&place, &format!("impl {}", text(of)));
                continue;
            }
            for member in &block.items {
                match member {
                    ImplItem::Fn(member) if public(&member.vis) && !hidden(&member.attrs) => {
                        self.value(&place, &member.sig.ident.to_string(), &text(&member.sig));
                    }
                    ImplItem::Const(member) if public(&member.vis) && !hidden(&member.attrs) => {
                        self.value(&place, &member.ident.to_string(), &text(&member.ty));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Returns the public path of the type of an `impl`. If several types have its name, takes the one whose module shares the
    /// longest beginning of its path with `path`.
    fn place_of(&self, path: &[String], ty: &str) -> Option<String> {
        let name = ty.split('<').next()?.rsplit("::").next()?.trim();
        let named = self.types.iter().filter(|((_, known), _)| known == name);
        let shared = |module: &[String]| {
            let same = module.iter().zip(path).take_while(|(a, b)| a == b);
            same.count()
        };
        let closest = named.max_by_key(|((module, _), _)| shared(module));
        closest.map(|(_, place)| place.clone())
    }

    /// Lists a function or a constant.
    fn value(&mut self, at: &str, name: &str, form: &str) {
        self.values.insert(name.to_owned());
        self.list(&format!("{at}::{name}"), form);
    }

    fn list(&mut self, place: &str, form: &str) {
        self.lines.insert(format!("{place}: {form}"));
    }
}

fn public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

/// Returns the name, the visibility and the attributes of an item that the list may have.
fn head(item: &Item) -> Option<(&Ident, &Visibility, &[Attribute])> {
    Some(match item {
        Item::Fn(item) => (&item.sig.ident, &item.vis, &item.attrs),
        Item::Struct(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Enum(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Trait(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Const(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Static(item) => (&item.ident, &item.vis, &item.attrs),
        Item::Type(item) => (&item.ident, &item.vis, &item.attrs),
        _ => return None,
    })
}

/// Returns the derived traits of an item, and a mark if it is non-exhaustive.
fn derived(attrs: &[Attribute]) -> String {
    let derives = attrs.iter().filter(|attr| attr.path().is_ident("derive"));
    let derives: Vec<String> = derives
        .filter_map(|attr| attr.meta.require_list().ok())
        .map(|list| text(&list.tokens))
        .collect();
    let open = attrs
        .iter()
        .any(|attr| attr.path().is_ident("non_exhaustive"));
    let open = if open { ", non-exhaustive" } else { "" };
    match &derives[..] {
        [] => open.to_owned(),
        derives => format!(" ({}){open}", derives.join(", ")),
    }
}

/// Returns each path that an import names, with the name it gets.
pub(crate) fn leaves(tree: &UseTree) -> Vec<(Vec<String>, String)> {
    let below = |name: &Ident, rest: Vec<(Vec<String>, String)>| {
        let rest = rest.into_iter();
        rest.map(|(mut path, leaf)| {
            path.insert(0, name.to_string());
            (path, leaf)
        })
        .collect()
    };
    match tree {
        UseTree::Path(path) => below(&path.ident, leaves(&path.tree)),
        UseTree::Name(name) => vec![(vec![name.ident.to_string()], name.ident.to_string())],
        UseTree::Rename(name) => vec![(vec![name.ident.to_string()], name.rename.to_string())],
        UseTree::Glob(_) => vec![(vec!["*".to_owned()], "*".to_owned())],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
}

/// Formats tokens approximately as people write them.
fn text(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (loose, close) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" >", ">"),
        ("- >", "->"),
        ("& ", "&"),
        (" ,", ","),
        (" :", ":"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" [", "["),
        (" ;", ";"),
        ("' ", "'"),
        (",)", ")"),
        (", >", ">"),
        ("->(", "-> ("),
    ] {
        text = text.replace(loose, close);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_items_are_not_listed() {
        let kinds = [
            "fn a() {}",
            "struct A;",
            "enum A {}",
            "trait A {}",
            "const A: u8 = 0;",
            "static A: u8 = 0;",
            "type A = u8;",
        ];
        for kind in kinds {
            let listed = |attrs: &str| {
                let parsed = syn::parse_file(&format!("{attrs} pub {kind}")).unwrap();
                let mut modules = Modules::new();
                nested(parsed.items, Path::new(""), Vec::new(), &mut modules).unwrap();
                reached(&modules, "x").lines.len()
            };
            assert_eq!(listed(""), 1, "{kind}");
            assert_eq!(listed("#[doc(hidden)]"), 0, "{kind}");
        }
    }

    #[test]
    fn the_public_interface_is_what_is_written_down() {
        if let Err(why) = check(&crate::tidy::root(), false) {
            panic!("{why}");
        }
    }
}
