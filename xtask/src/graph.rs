//! Finds which folders of a crate use which others, from the paths in its sources.
//!
//! A folder is a top-level module of the crate: `src/tick/route.rs` and `src/tick.rs` both belong to `tick`. An item that the
//! root re-exports belongs to the folder that declares it.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use syn::{Item, UseTree};

/// The folders of one crate and their uses of each other.
pub(crate) struct Graph {
    folders: BTreeSet<String>,
    /// Maps a using and a used folder to the files that contain the use.
    arrows: BTreeMap<(String, String), BTreeSet<String>>,
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
    let files: Vec<String> = crate::tidy::tracked(root)
        .into_iter()
        .filter(|path| {
            path.starts_with(&src) && Path::new(path).extension().is_some_and(|e| e == "rs")
        })
        .filter(|path| !is_of_tests(Path::new(path)))
        .collect();
    let mut graph = Graph {
        folders: BTreeSet::new(),
        arrows: BTreeMap::new(),
    };
    for path in &files {
        if let Some(folder) = modules(&path[src.len()..]).first() {
            graph.folders.insert(folder.clone());
        }
    }
    let exported = exported(root, &src)?;
    for path in &files {
        let own = modules(&path[src.len()..]);
        let Some(from) = own.first() else {
            continue;
        };
        let text = fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"))?;
        let tokens: TokenStream = text.parse().map_err(|e| format!("{path}: {e}"))?;
        let mut names = BTreeSet::new();
        used(tokens, own.len(), &mut names);
        for name in names {
            let to = exported.get(&name).unwrap_or(&name);
            if to != from && graph.folders.contains(to) {
                graph
                    .arrows
                    .entry((from.clone(), to.clone()))
                    .or_default()
                    .insert(path.clone());
            }
        }
    }
    Ok(graph)
}

impl Graph {
    /// Returns the number of folders.
    pub(crate) fn folders(&self) -> usize {
        self.folders.len()
    }

    /// Returns the groups of folders that use each other, directly or through others; largest first.
    pub(crate) fn circles(&self) -> Vec<BTreeSet<String>> {
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
        let mut circles: BTreeSet<BTreeSet<String>> = BTreeSet::new();
        for (folder, to) in &reached {
            if !to.contains(folder) {
                continue;
            }
            let circle = to.iter().filter(|other| reached[*other].contains(folder));
            circles.insert(circle.map(|name| (*name).to_owned()).collect());
        }
        let mut circles: Vec<_> = circles.into_iter().collect();
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }

    /// Prints each arrow with the number of files that contain it, then the cycles.
    pub(crate) fn print(&self) {
        for ((from, to), files) in &self.arrows {
            crate::say(&format!("{from} -> {to}: {}", files.len()));
        }
        for circle in self.circles() {
            crate::say(&format!("circle of {}: {circle:?}", circle.len()));
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
fn exported(root: &Path, src: &str) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    for name in ["lib.rs", "main.rs"] {
        let path = root.join(src).join(name);
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let file = syn::parse_file(&text).map_err(|e| format!("{src}{name}: {e}"))?;
        for item in file.items {
            if let Item::Use(item) = item {
                leaves(&item.tree, None, &mut found);
            }
        }
    }
    Ok(found)
}

fn leaves(tree: &UseTree, folder: Option<&str>, found: &mut BTreeMap<String, String>) {
    match tree {
        UseTree::Path(path) => {
            let name = path.ident.to_string();
            let roots = ["crate", "self"].contains(&name.as_str());
            let folder = folder.or(if roots { None } else { Some(&name) });
            leaves(&path.tree, folder, found);
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                leaves(tree, folder, found);
            }
        }
        UseTree::Name(name) => {
            if let Some(folder) = folder {
                found.insert(name.ident.to_string(), folder.to_owned());
            }
        }
        UseTree::Rename(name) => {
            if let Some(folder) = folder {
                found.insert(name.rename.to_string(), folder.to_owned());
            }
        }
        UseTree::Glob(_) => {}
    }
}

/// Collects the names that follow the root of the crate in paths, outside tests.
fn used(tokens: TokenStream, depth: usize, names: &mut BTreeSet<String>) {
    let tokens = crate::house::without_tests(tokens);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(word) if *word == "crate" => {
                behind(&tokens[at + 1..], names);
            }
            TokenTree::Ident(word) if *word == "super" => {
                let supers = 1 + tokens[at + 1..]
                    .chunks(3)
                    .take_while(|part| matches!(part, [TokenTree::Punct(_), TokenTree::Punct(_), TokenTree::Ident(w)] if *w == "super"))
                    .count();
                let first = at == 0
                    || !matches!(&tokens[at - 1], TokenTree::Punct(p) if p.as_char() == ':');
                if first && supers == depth {
                    behind(&tokens[at + 3 * supers - 2..], names);
                }
            }
            TokenTree::Group(group) => used(group.stream(), depth, names),
            _ => {}
        }
    }
}

/// Collects the names after `crate` or the last `super`: a single name, or those of a group.
fn behind(tokens: &[TokenTree], names: &mut BTreeSet<String>) {
    let [TokenTree::Punct(a), TokenTree::Punct(_), next, ..] = tokens else {
        return;
    };
    if a.as_char() != ':' {
        return;
    }
    match next {
        TokenTree::Ident(name) => {
            names.insert(name.to_string());
        }
        TokenTree::Group(group) => {
            let mut first = true;
            for token in group.stream() {
                match token {
                    TokenTree::Ident(name) if first => {
                        names.insert(name.to_string());
                        first = false;
                    }
                    TokenTree::Punct(punct) if punct.as_char() == ',' => first = true,
                    _ => {}
                }
            }
        }
        _ => {}
    }
}
