//! Finds which folders of a crate use which others, from the paths in its sources.
//!
//! A folder is a top-level module of the crate: `src/tick/route.rs` and `src/tick.rs` both belong to `tick`. An item that the
//! root re-exports belongs to the folder that declares it. A call of a method contains no path that tells the folder of the
//! method. So the graph also lists the inherent impls of each folder, and the folders that declare their types.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use syn::{Item, Type};

/// The folders of one crate and their uses of each other.
#[derive(Default)]
pub(crate) struct Graph {
    folders: BTreeSet<String>,
    /// The uses, by the folder that uses and the folder that is used.
    arrows: BTreeMap<(String, String), BTreeSet<Use>>,
    /// The folders that declare a type, by its name. Two folders may declare types of one name.
    types: BTreeMap<String, BTreeSet<String>>,
    /// Inherent impls: the folder, and the name of the type.
    impls: Vec<(String, Use)>,
}

/// A place that names something of another folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    /// The file and the line in it: `crates/x/src/a.rs:12`.
    pub(crate) place: Place,
    /// The path, without `crate`; for an impl, the name of its type.
    pub(crate) name: String,
}

/// A line of a file, from the root of the repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    file: String,
    line: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Returns true for files of tests within `src/`.
pub(crate) fn is_of_tests(file: &Path) -> bool {
    file.components().any(|part| {
        let name = part.as_os_str();
        name == "tests" || name == "tests.rs"
    })
}

/// Builds the graph of `crates/NAME/src`.
pub(crate) fn of_crate(root: &Path, name: &str) -> Result<Graph, String> {
    let src = format!("crates/{name}/src/");
    let files = crate::tidy::tracked(root).into_iter().filter(|path| {
        path.starts_with(&src)
            && Path::new(path).extension().is_some_and(|e| e == "rs")
            && !is_of_tests(Path::new(path))
    });
    let read = |path: String| match fs::read_to_string(root.join(&path)) {
        Ok(text) => Ok((path, text)),
        Err(e) => Err(format!("{path}: {e}")),
    };
    let sources: Vec<(String, String)> = files.map(read).collect::<Result<_, _>>()?;
    of_sources(&src, &sources)
}

/// Builds the graph of files, given with their texts. Their paths begin with `src`.
pub(crate) fn of_sources(src: &str, sources: &[(String, String)]) -> Result<Graph, String> {
    let mut graph = Graph::default();
    for (path, _) in sources {
        if let Some(folder) = modules(&path[src.len()..]).first() {
            graph.folders.insert(folder.clone());
        }
    }
    let mut exported = BTreeMap::new();
    for (path, text) in sources {
        let file = syn::parse_file(text).map_err(|e| format!("{path}: {e}"))?;
        match modules(&path[src.len()..]).first() {
            None => exports(&file.items, &mut exported),
            Some(folder) => graph.declared(path, folder, &file.items),
        }
    }
    for (path, text) in sources {
        let own = modules(&path[src.len()..]);
        let Some(from) = own.first() else {
            continue;
        };
        let tokens: TokenStream = text.parse().map_err(|e| format!("{path}: {e}"))?;
        let mut names = BTreeSet::new();
        used(tokens, own.len(), &mut names);
        for (line, name) in names {
            let first = name.split("::").next().unwrap_or_default();
            let to = exported.get(first).map_or(first, String::as_str);
            if to != from && graph.folders.contains(to) {
                let file = path.clone();
                let place = Place { file, line };
                let arrow = (from.clone(), to.to_owned());
                let uses = graph.arrows.entry(arrow).or_default();
                uses.insert(Use { place, name });
            }
        }
    }
    Ok(graph)
}

impl Graph {
    /// Returns the folders.
    pub(crate) fn folders(&self) -> &BTreeSet<String> {
        &self.folders
    }

    /// Iterates over the arrows: the using folder, the used one, and the uses.
    pub(crate) fn arrows(&self) -> impl Iterator<Item = (&str, &str, &BTreeSet<Use>)> {
        let arrows = self.arrows.iter();
        arrows.map(|((from, to), uses)| (from.as_str(), to.as_str(), uses))
    }

    /// Iterates over the inherent impls of types that another folder declares: the folder of the impl, the impl, and the
    /// folder of its type.
    pub(crate) fn foreign_impls(&self) -> impl Iterator<Item = (&str, &Use, &str)> {
        self.impls.iter().filter_map(|(folder, of)| {
            let declared = self.types.get(&of.name)?;
            let home = declared.first()?;
            (!declared.contains(folder)).then_some((folder.as_str(), of, home.as_str()))
        })
    }

    /// Records the types and inherent impls of a file.
    fn declared(&mut self, path: &str, folder: &str, items: &[Item]) {
        for item in items {
            let name = match item {
                Item::Struct(item) => &item.ident,
                Item::Enum(item) => &item.ident,
                Item::Union(item) => &item.ident,
                Item::Impl(item) if item.trait_.is_none() => {
                    if let Type::Path(of) = &*item.self_ty
                        && let Some(last) = of.path.segments.last()
                    {
                        let place = Place {
                            file: path.to_owned(),
                            line: item.impl_token.span.start().line,
                        };
                        let name = last.ident.to_string();
                        self.impls.push((folder.to_owned(), Use { place, name }));
                    }
                    continue;
                }
                _ => continue,
            };
            let folders = self.types.entry(name.to_string()).or_default();
            folders.insert(folder.to_owned());
        }
    }

    /// Returns the cycles, largest first: groups of folders that use each other, directly or through others.
    pub(crate) fn cycles(&self) -> Vec<BTreeSet<String>> {
        let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for folder in &self.folders {
            let mut seen = BTreeSet::new();
            let mut next = vec![folder.as_str()];
            while let Some(at) = next.pop() {
                for (from, to) in self.arrows.keys() {
                    if from == at && seen.insert(to.as_str()) {
                        next.push(to);
                    }
                }
            }
            reached.insert(folder, seen);
        }
        let mut cycles: BTreeSet<BTreeSet<String>> = BTreeSet::new();
        for (folder, to) in &reached {
            if !to.contains(folder) {
                continue;
            }
            let cycle = to.iter().filter(|other| reached[*other].contains(folder));
            cycles.insert(cycle.map(|name| (*name).to_owned()).collect());
        }
        let mut cycles: Vec<_> = cycles.into_iter().collect();
        cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
        cycles
    }

    /// Prints each arrow with the number of files that contain it, then the cycles.
    pub(crate) fn print(&self) {
        for ((from, to), uses) in &self.arrows {
            let files: BTreeSet<&str> = uses.iter().map(|of| of.place.file.as_str()).collect();
            crate::say(&format!("{from} -> {to}: {}", files.len()));
        }
        for cycle in self.cycles() {
            crate::say(&format!("cycle of {}: {cycle:?}", cycle.len()));
        }
    }
}

/// Returns the modules of a file, its own included; empty for the root.
fn modules(path: &str) -> Vec<String> {
    let mut parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    if matches!(parts.last(), Some(&("lib" | "main" | "mod"))) {
        parts.pop();
    }
    parts.into_iter().map(str::to_owned).collect()
}

/// Maps the names that the root of a crate imports or re-exports to their folders.
fn exports(items: &[Item], found: &mut BTreeMap<String, String>) {
    for item in items {
        let Item::Use(item) = item else { continue };
        for (path, name) in crate::api::leaves(&item.tree) {
            let mut above = path[..path.len() - 1].iter();
            let folder = above.find(|part| !["crate", "self"].contains(&part.as_str()));
            if let Some(folder) = folder.filter(|_| name != "*") {
                found.insert(name, folder.clone());
            }
        }
    }
}

/// Collects the paths that begin at the root of the crate, outside tests, with their lines. `depth` is the depth of the module
/// below the root: as many `super` lead to the root.
fn used(tokens: TokenStream, depth: usize, names: &mut BTreeSet<(usize, String)>) {
    let tokens = crate::house::without_tests(tokens);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(word) if *word == "crate" => {
                after_root(&tokens[at + 1..], names);
            }
            TokenTree::Ident(word) if *word == "super" => {
                let supers = 1 + tokens[at + 1..]
                    .chunks(3)
                    .take_while(|part| matches!(part, [TokenTree::Punct(_), TokenTree::Punct(_), TokenTree::Ident(w)] if *w == "super"))
                    .count();
                let first = at == 0
                    || !matches!(&tokens[at - 1], TokenTree::Punct(p) if p.as_char() == ':');
                if first && supers == depth {
                    // Each further `super` is three tokens after the one before: two colons and the word.
                    after_root(&tokens[at + 3 * supers - 2..], names);
                }
            }
            TokenTree::Group(group) => used(group.stream(), depth, names),
            _ => {}
        }
    }
}

/// Collects the paths after `crate` or the last `super`.
fn after_root(tokens: &[TokenTree], names: &mut BTreeSet<(usize, String)>) {
    if let Some(rest) = after_colons(tokens) {
        paths(rest, "", names);
    }
}

/// Collects the paths at the beginning of the tokens: one path, or those of a group.
fn paths(tokens: &[TokenTree], before: &str, names: &mut BTreeSet<(usize, String)>) {
    match tokens.first() {
        Some(TokenTree::Ident(name)) => {
            let path = format!("{before}{name}");
            match after_colons(&tokens[1..]) {
                // Type arguments may follow the colons, too.
                Some(rest) if !matches!(rest, [TokenTree::Punct(p), ..] if p.as_char() == '<') => {
                    paths(rest, &format!("{path}::"), names);
                }
                _ => {
                    names.insert((name.span().start().line, path));
                }
            }
        }
        Some(TokenTree::Group(group)) => {
            let inside: Vec<TokenTree> = group.stream().into_iter().collect();
            let comma =
                |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
            for part in inside.split(comma) {
                paths(part, before, names);
            }
        }
        Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
            names.insert((star.span().start().line, format!("{before}*")));
        }
        _ => {}
    }
}

/// Returns the tokens after `::`, if they begin with it.
fn after_colons(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    match tokens {
        [TokenTree::Punct(a), TokenTree::Punct(b), rest @ ..]
            if a.as_char() == ':' && b.as_char() == ':' =>
        {
            Some(rest)
        }
        _ => None,
    }
}
