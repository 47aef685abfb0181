//! Parses and merges the files of a definition: imports first, then the file that names them.

use super::diagnostic::Diagnostic;
use super::keys::Section;
use super::keys::file::File;
use super::source::{Files, Key, Node, Sources, Span, Value, parse};
use super::{shape, source};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Sections whose entries are merged across files.
const MERGED: [&str; 11] = [
    "config", "secrets", "models", "state", "events", "labels", "outcome", "texts", "mcp", "tools",
    "agents",
];

/// A definition after merging its files.
pub(crate) struct Merged {
    /// Tree of the main file.
    pub main: Node,
    /// Sections with named entries, imported entries first.
    pub sections: BTreeMap<&'static str, Vec<(Key, Node)>>,
    /// Settings that are written once (`timezone`, `limits`, `context`, `record`, ..). An importing file overrides the imported.
    pub settings: BTreeMap<&'static str, Node>,
    /// Tests of the main file and of `tests/*.yaml` next to it.
    pub tests: Vec<(Key, Node)>,
    /// Paths of the files in `tests/` that belong to this definition only.
    pub test_files: BTreeSet<String>,
    /// Spans of wrong keys. Checks that depend on such an item are skipped.
    pub broken: Broken,
}

/// Set of spans of wrong keys.
#[derive(Default)]
pub(crate) struct Broken {
    /// File, start and end of each span; after `order`, the end is the minimum of this and all later ends in the file.
    all: Vec<(u32, u32, u32)>,
}

impl Broken {
    fn add(&mut self, span: Span) {
        if span.file != u32::MAX {
            self.all.push((span.file, span.start, span.end));
        }
    }
    /// Prepares for lookups after the last `add`. Each entry gets the smallest end of itself and all later entries of its file,
    /// so that one lookup finds out if any span lies within another.
    fn order(&mut self) {
        self.all.sort_unstable();
        let mut least = (u32::MAX, u32::MAX);
        for (file, _, end) in self.all.iter_mut().rev() {
            if *file != least.0 {
                least = (*file, u32::MAX);
            }
            least.1 = least.1.min(*end);
            *end = least.1;
        }
    }
    /// Returns true if a wrong key lies within the span.
    pub(crate) fn within(&self, span: Span) -> bool {
        let from = (span.file, span.start, 0);
        let first = self.all.partition_point(|broken| *broken < from);
        let next = self.all.get(first);
        next.is_some_and(|(file, _, end)| *file == span.file && *end <= span.end)
    }
}

impl Merged {
    pub(crate) fn section(&self, name: &str) -> &[(Key, Node)] {
        self.sections.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Parses and merges the files of a definition. Faults of the texts are reported. Returns `None` if the main file is missing
/// or is no map.
pub(crate) fn load(
    files: &Files,
    main: Option<Node>,
    sources: &mut Sources,
    found: &mut Vec<Diagnostic>,
) -> Option<Merged> {
    let path = files.main();
    let main = match (main, files.text(path)) {
        (Some(node), _) => node,
        (None, Some(text)) => parse(sources, path, text, found)?,
        (None, None) => {
            found.push(Diagnostic::no_file(None, path, None));
            return None;
        }
    };
    if !matches!(main.value, Value::Map(_)) {
        let at = sources.place(main.span);
        found.push(Diagnostic::wrong_kind(at, "a definition", main.kind_word()));
        return None;
    }
    let mut loader = Loader {
        files,
        sources,
        found,
        open: vec![path.to_owned()],
        done: BTreeSet::new(),
        known: BTreeMap::new(),
        merged: Merged {
            main: main.clone(),
            sections: BTreeMap::new(),
            settings: BTreeMap::new(),
            tests: Vec::new(),
            test_files: BTreeSet::new(),
            broken: Broken::default(),
        },
    };
    loader.file(&main, path);
    loader.tests(path);
    loader.merged.broken.order();
    Some(loader.merged)
}

struct Loader<'a> {
    files: &'a Files,
    sources: &'a mut Sources,
    found: &'a mut Vec<Diagnostic>,
    open: Vec<String>,
    done: BTreeSet<String>,
    /// Index of each entry in its section.
    known: BTreeMap<(&'static str, Arc<str>), usize>,
    merged: Merged,
}

impl Loader<'_> {
    /// Checks a file and merges it, its imports first.
    fn file(&mut self, node: &Node, path: &str) {
        self.judge(node);
        for import in node.get("import").map(Node::items).unwrap_or_default() {
            self.import(import, path);
        }
        let main = self.open.len() == 1;
        for name in MERGED {
            let Some(section) = node.get(name) else {
                continue;
            };
            let file = (name == "texts")
                .then(|| self.sentences(section, path))
                .flatten();
            for (key, entry) in file.as_ref().unwrap_or(section).entries() {
                self.merge(name, key, entry);
            }
        }
        for name in [
            "timezone",
            "record",
            "description",
            "limits",
            "context",
            "embeddings",
            "memory",
        ] {
            if let Some(value) = node.get(name) {
                let over = self.merged.settings.remove(name);
                self.merged.settings.insert(name, laid_over(over, value));
            }
        }
        if main {
            let tests = node.get("tests").map(Node::entries).unwrap_or_default();
            for (key, test) in tests {
                let at = self.merged.tests.len();
                self.known.insert(("tests", key.name.clone()), at);
                self.merged.tests.push((key.clone(), test.clone()));
            }
        }
    }

    fn judge(&mut self, node: &Node) {
        self.version(node);
        let found = shape::check(self.sources, node, File::table());
        for diagnostic in &found {
            if let Some(at) = &diagnostic.at {
                let file = self.sources.add(&at.path, &at.text);
                self.merged.broken.add(Span {
                    file,
                    start: at.span.start as u32,
                    end: at.span.end as u32,
                });
            }
        }
        self.found.extend(found);
    }

    /// Reads the file that `texts` names instead of holding the sentences itself.
    fn sentences(&mut self, node: &Node, from: &str) -> Option<Node> {
        let name = node.as_text()?;
        let at = self.sources.place(node.span);
        let Some(path) = resolve(from, name) else {
            self.found.push(Diagnostic::outside_folder(at, name));
            return None;
        };
        let Some(text) = self.files.text(&path).cloned() else {
            let near = self.sources.near(&path, self.files.paths());
            self.found.push(Diagnostic::no_file(at, name, near));
            return None;
        };
        self.done.insert(path.clone());
        parse(self.sources, &path, &text, self.found)
    }

    fn import(&mut self, node: &Node, from: &str) {
        let Some(name) = node.as_text() else {
            return;
        };
        let at = self.sources.place(node.span);
        let Some(path) = resolve(from, name) else {
            return self.found.push(Diagnostic::outside_folder(at, name));
        };
        if self.open.contains(&path) {
            return self.found.push(Diagnostic::import_circle(at, name));
        }
        if !self.done.insert(path.clone()) {
            return;
        }
        let Some(text) = self.files.text(&path).cloned() else {
            let near = self.sources.near(&path, self.files.paths());
            return self.found.push(Diagnostic::no_file(at, name, near));
        };
        if self.open.len() >= source::MAX_DEPTH {
            return self.found.push(Diagnostic::import_circle(at, name));
        }
        let Some(imported) = parse(self.sources, &path, &text, self.found) else {
            return;
        };
        self.open.push(path.clone());
        self.file(&imported, &path);
        self.open.pop();
    }

    fn merge(&mut self, section: &'static str, key: &Key, node: &Node) {
        let entries = self.merged.sections.entry(section).or_default();
        let known = self.known.entry((section, key.name.clone()));
        match known {
            Entry::Vacant(free) => {
                free.insert(entries.len());
                entries.push((key.clone(), node.clone()));
            }
            Entry::Occupied(known) => {
                let at = *known.get();
                let overrides = node
                    .get("override")
                    .and_then(Node::scalar)
                    .is_some_and(|scalar| &*scalar.text == "true");
                if overrides {
                    entries[at] = (key.clone(), node.clone());
                    return;
                }
                let what = section.strip_suffix('s').unwrap_or(section);
                let first = self.sources.place(entries[at].0.span);
                let here = self.sources.place(key.span);
                self.found
                    .push(Diagnostic::defined_twice(here, what, &key.name, first));
            }
        }
    }

    /// Checks the version of a file. A file without one has version 1; this will not change.
    fn version(&mut self, file: &Node) {
        let version = file.get("steersman");
        let Some(scalar) = version.and_then(Node::scalar) else {
            return;
        };
        if &*scalar.text != "1" {
            let at = version.and_then(|node| self.sources.place(node.span));
            self.found.push(Diagnostic::version(at, &scalar.text));
        }
    }

    /// Returns true if a file of tests belongs to this definition: it names the definition, or it names none and this is the
    /// main definition of its folder.
    fn is_of(&self, tests: &Node) -> bool {
        let Some(name) = tests.get("name").and_then(Node::as_text) else {
            return !self.files.is_beside_main();
        };
        match self.merged.main.get("name").and_then(Node::as_text) {
            Some(own) => own == name,
            None => **name == *self.files.default_name(),
        }
    }

    fn tests(&mut self, main: &str) {
        let folder = resolve(main, "tests").unwrap_or_default();
        let files = self.files;
        for path in files.paths() {
            let beside = path
                .strip_prefix(&*folder)
                .and_then(|rest| rest.strip_prefix('/'))
                .and_then(|rest| rest.rsplit_once('.'))
                .is_some_and(|(name, end)| !name.contains('/') && end == "yaml");
            if !beside || self.done.contains(path) || path == main {
                continue;
            }
            let text = files.text(path).expect("one of its paths").clone();
            let mut wrong = Vec::new();
            let Some(node) = parse(self.sources, path, &text, &mut wrong) else {
                // the owner of a file that cannot be parsed is unknown, so only the main definition reports it
                if !files.is_beside_main() {
                    self.merged.test_files.insert(path.to_owned());
                    self.found.append(&mut wrong);
                }
                continue;
            };
            if node.get("tests").is_none() {
                continue; // a script or data of another test
            }
            if !self.is_of(&node) {
                continue;
            }
            self.merged.test_files.insert(path.to_owned());
            self.found.append(&mut wrong);
            self.judge(&node);
            for (key, test) in node.get("tests").map(Node::entries).unwrap_or_default() {
                let known = &mut self.known;
                match known.entry(("tests", key.name.clone())) {
                    Entry::Vacant(free) => {
                        free.insert(self.merged.tests.len());
                        self.merged.tests.push((key.clone(), test.clone()));
                    }
                    Entry::Occupied(first) => {
                        let (first, _) = &self.merged.tests[*first.get()];
                        let first = self.sources.place(first.span);
                        let here = self.sources.place(key.span);
                        self.found
                            .push(Diagnostic::defined_twice(here, "test", &key.name, first));
                    }
                }
            }
        }
    }
}

/// Lays a setting of the importing file over the imported one: maps key by key, anything else as a whole.
fn laid_over(under: Option<Node>, over: &Node) -> Node {
    match (under.map(|node| node.value), &over.value) {
        (Some(Value::Map(mut entries)), Value::Map(new)) => {
            entries.retain(|(key, _)| new.iter().all(|(name, _)| name.name != key.name));
            entries.extend(new.iter().cloned());
            Node {
                span: over.span,
                value: Value::Map(entries),
            }
        }
        _ => over.clone(),
    }
}

/// Resolves a path written in the file `from`, relative to the definition's folder. `None` if it leaves the folder.
pub(crate) fn resolve(from: &str, path: &str) -> Option<String> {
    if path.starts_with('/') || path.contains('\\') {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    let mut parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the files that a definition names and `files` lacks. The caller adds them and asks again until none is missing.
pub(crate) fn wanted(files: &Files) -> BTreeSet<String> {
    let mut wanted = BTreeSet::new();
    each_file(files, |path, node| match node {
        None => drop(wanted.insert(path.to_owned())),
        Some(node) => {
            let mut named: Vec<Arc<str>> = Vec::new();
            super::canonical::paths(node, File::table(), &mut named);
            let resolved = named.iter().filter_map(|name| resolve(path, name));
            wanted.extend(resolved.filter(|path| files.text(path).is_none()));
        }
    });
    wanted
}

/// Returns the paths of the documents that a definition names.
pub(crate) fn documents(files: &Files) -> BTreeSet<String> {
    let mut documents = BTreeSet::new();
    each_file(files, |path, node| {
        let agents = node.and_then(|node| node.get("agents"));
        let agents = agents.map(Node::entries).unwrap_or_default();
        let named = agents
            .iter()
            .filter_map(|(_, agent)| agent.get("knowledge"));
        let named = named.flat_map(Node::items).filter_map(Node::as_text);
        documents.extend(named.filter_map(|name| resolve(path, name)));
    });
    documents
}

/// Calls `see` for each file of a definition, imports and tests included; a missing file has no tree.
fn each_file(files: &Files, mut see: impl FnMut(&str, Option<&Node>)) {
    let mut seen = BTreeSet::new();
    let mut open = vec![files.main().to_owned()];
    // test files are visited too, because they name scripts
    open.extend(
        files
            .paths()
            .filter(|path| path.contains("tests/"))
            .map(str::to_owned),
    );
    while let Some(path) = open.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let Some(text) = files.text(&path).cloned() else {
            see(&path, None);
            continue;
        };
        let mut sources = Sources::default();
        let Some(node) = parse(&mut sources, &path, &text, &mut Vec::new()) else {
            continue;
        };
        for import in node.get("import").map(Node::items).unwrap_or_default() {
            open.extend(import.as_text().and_then(|name| resolve(&path, name)));
        }
        see(&path, Some(&node));
    }
}
