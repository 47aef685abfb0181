//! Parses and merges the files of a definition: imports first, then the file that names them.

use super::diagnostic::Diagnostic;
use super::keys::agent::Agent;
use super::keys::file::{File, Mcp};
use super::keys::kinds::{Read, Text, each};
use super::keys::tool::Tool;
use super::keys::{LongType, Section, Table, Ty};
use super::source::{Files, Key, Kind, Node, Sources, Span, Value, parse};
use super::{foreign, shape, source};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Keys that belong to one file and are not merged. Maps of named entries are merged entry by entry. Settings that are maps are
/// merged key by key. Any other setting is taken from the importing file.
const OWN: [&str; 6] = ["steersman", "name", "import", "entry", "tests", "grades"];

/// A definition after merging its files.
pub(crate) struct Merged {
    /// Tree of the main file.
    pub main: Node,
    /// The merged tree. Its tests are those of the main file and of `tests/*.yaml` next to it.
    root: Node,
    /// Paths of the files in `tests/` that belong to this definition.
    pub test_files: BTreeSet<String>,
    /// Spans of wrong keys. Checks that depend on such an item are skipped.
    pub broken: Broken,
    /// Sections of named entries that some file has in another form: what they declare is not known.
    unread: BTreeSet<&'static str>,
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
    /// so that one lookup finds out if any span is within another.
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
    /// Returns true if a wrong key is within the span.
    pub(crate) fn within(&self, span: Span) -> bool {
        let from = (span.file, span.start, 0);
        let first = self.all.partition_point(|broken| *broken < from);
        let next = self.all.get(first);
        next.is_some_and(|(file, _, end)| *file == span.file && *end <= span.end)
    }
}

impl Merged {
    /// Returns the merged definition.
    pub(crate) fn file(&self) -> File<'_> {
        File(&self.root)
    }
    /// Returns true if a section of named entries has another form somewhere, which is reported. That a name of it is
    /// unknown follows from that and is not reported as well.
    pub(crate) fn unread(&self, section: &str) -> bool {
        self.unread.contains(section)
    }
}

/// Parses and merges the files of a definition. Faults of the texts are reported. Returns `None` if the main file is missing
/// or is not a map.
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
    if holds_only_tests(&main) {
        let at = main
            .entries()
            .first()
            .and_then(|(key, _)| sources.place(key.span));
        found.push(Diagnostic::only_tests(at));
        return None;
    }
    let mut loader = Loader {
        files,
        sources,
        found,
        open: vec![path.to_owned()],
        done: BTreeSet::new(),
        known: BTreeMap::new(),
        main: File(&main),
        sections: BTreeMap::new(),
        settings: BTreeMap::new(),
        test_files: BTreeSet::new(),
        broken: Broken::default(),
        unread: BTreeSet::new(),
    };
    loader.file(File(&main), path);
    loader.tests(path);
    Some(loader.merged())
}

struct Loader<'a> {
    files: &'a Files,
    sources: &'a mut Sources,
    found: &'a mut Vec<Diagnostic>,
    open: Vec<String>,
    done: BTreeSet<String>,
    /// Index of each entry in its section.
    known: BTreeMap<(&'static str, Arc<str>), usize>,
    main: File<'a>,
    /// Sections with named entries, imported entries first.
    sections: BTreeMap<&'static str, Vec<(Key, Node)>>,
    /// Settings that are written once (`timezone`, `limits`, `context`, `record`, ..). The importing file overrides the
    /// imported one, in maps key by key.
    settings: BTreeMap<&'static str, Node>,
    test_files: BTreeSet<String>,
    broken: Broken,
    unread: BTreeSet<&'static str>,
}

impl Loader<'_> {
    /// Returns the merged definition.
    fn merged(mut self) -> Merged {
        self.broken.order();
        let sections = self.sections.into_iter().map(|(name, entries)| {
            let (span, value) = (Span::NONE, Value::Map(entries));
            (name, Node { span, value })
        });
        let main = [
            ("name", self.main.name().map(Read::node)),
            ("entry", self.main.entry().map(Read::node)),
        ];
        let main = main
            .into_iter()
            .filter_map(|(name, node)| Some((name, node?.clone())));
        Merged {
            main: self.main.0.clone(),
            root: Node::map(sections.chain(self.settings).chain(main)),
            test_files: self.test_files,
            broken: self.broken,
            unread: self.unread,
        }
    }

    /// Checks a file and merges it, its imports first.
    fn file(&mut self, of: File<'_>, path: &str) {
        self.check(of);
        let meant = as_meant(self.sources, of.0);
        let of = meant.as_ref().map_or(of, File);
        for import in each(of.import()) {
            self.import(import.0, path);
        }
        for key in File::table().keys {
            let Some(value) = of.0.get(key.name).filter(|_| !OWN.contains(&key.name)) else {
                continue;
            };
            let sentences = (key.name == "texts").then(|| self.sentences(value, path));
            if matches!(key.ty, Ty::Names(_) | Ty::Map(_)) || sentences.is_some() {
                let section = sentences.flatten();
                if !matches!(value.value, Value::Map(_)) && section.is_none() {
                    self.unread.insert(key.name);
                }
                for (name, entry) in section.as_ref().unwrap_or(value).entries() {
                    self.merge(key.name, name, entry);
                }
            } else {
                let under = self.settings.remove(key.name);
                self.settings.insert(key.name, laid_over(under, value));
            }
        }
        if self.open.len() == 1 {
            self.take_tests(of);
        }
    }

    /// Checks the version and the keys of a file, and records the spans of wrong keys.
    fn check(&mut self, of: File<'_>) {
        self.version(of);
        let found = shape::check(self.sources, of.0, File::table());
        for diagnostic in found.iter().filter(|found| found.is_error()) {
            if let Some(at) = &diagnostic.at {
                let file = self.sources.add(&at.path, &at.text);
                self.broken.add(Span {
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
        self.file(File(&imported), &path);
        self.open.pop();
    }

    fn merge(&mut self, section: &'static str, key: &Key, node: &Node) {
        let entries = self.sections.entry(section).or_default();
        let known = self.known.entry((section, key.name.clone()));
        match known {
            Entry::Vacant(free) => {
                free.insert(entries.len());
                entries.push((key.clone(), node.clone()));
            }
            Entry::Occupied(known) => {
                let at = *known.get();
                if overrides(section, node) {
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
    fn version(&mut self, file: File<'_>) {
        let Some(version) = file.steersman().map(Read::node) else {
            return;
        };
        if let Some(scalar) = version.scalar().filter(|scalar| &*scalar.text != "1") {
            let at = self.sources.place(version.span);
            self.found.push(Diagnostic::version(at, &scalar.text));
        }
    }

    /// Returns true if a file of tests belongs to this definition: it names the definition, or it names none and this is the
    /// main definition of its folder.
    fn is_of(&self, tests: File<'_>) -> bool {
        let Some(name) = tests.name().and_then(Text::text) else {
            return !self.files.is_beside_main();
        };
        match self.main.name().and_then(Text::text) {
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
                    self.test_files.insert(path.to_owned());
                    self.found.append(&mut wrong);
                }
                continue;
            };
            let file = File(&node);
            if file.tests().is_none() && file.grades().is_none() {
                continue; // a script or data of another test
            }
            if !self.is_of(file) {
                continue;
            }
            self.test_files.insert(path.to_owned());
            self.found.append(&mut wrong);
            self.check(file);
            self.take_tests(file);
        }
    }

    /// Adds the tests and grades of a file; reports names that another file of tests has.
    fn take_tests(&mut self, file: File<'_>) {
        for (key, test) in each(file.tests()) {
            self.merge("tests", key, test.0);
        }
        for (key, grade) in each(file.grades()) {
            self.merge("grades", key, grade.0);
        }
    }
}

/// Returns true if an entry replaces that of an imported file.
fn overrides(section: &str, node: &Node) -> bool {
    match section {
        "mcp" => Mcp(node).overrides().value,
        "tools" => Tool(node).overrides().value,
        "agents" => Agent(node).overrides().value,
        _ => false,
    }
}

/// Returns true if a file has tests or grades, and nothing of a definition.
fn holds_only_tests(node: &Node) -> bool {
    let of_tests = |name: &str| matches!(name, "steersman" | "tests" | "grades");
    let mut keys = node.entries().iter().map(|(key, _)| &*key.name);
    let file = File(node);
    (file.tests().is_some() || file.grades().is_some()) && keys.all(of_tests)
}

/// Returns a file with each unknown key under the name that was probably meant, if the file lacks a key of that name. The key is reported
/// already, and a name that its section declares is known. `None` if no key is meant otherwise.
fn as_meant(sources: &Sources, node: &Node) -> Option<Node> {
    let table = File::table();
    let lacks = |name: &&str| node.get(name).is_none();
    let known: Vec<&str> = table
        .keys
        .iter()
        .map(|key| key.name)
        .filter(lacks)
        .collect();
    let meant = |key: &Key| {
        let is_known = table.key(&key.name).is_some();
        let has_answer = || foreign::key(table.name, &key.name).is_some();
        if is_known || has_answer() {
            return None;
        }
        sources.near(&key.name, known.iter().copied())
    };
    if node.entries().iter().all(|(key, _)| meant(key).is_none()) {
        return None;
    }
    let entries = node.entries().iter().map(|(key, value)| {
        let name = meant(key).map_or_else(|| key.name.clone(), Arc::from);
        let span = key.span;
        (Key { span, name }, value.clone())
    });
    Some(Node {
        span: node.span,
        value: Value::Map(entries.collect()),
    })
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
            paths(node, File::table(), &mut named);
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
        let agents = each(node.and_then(|node| File(node).agents()));
        let named = agents.flat_map(|(_, agent)| each(agent.knowledge()));
        let named = named.filter_map(|item| item.0.as_text());
        documents.extend(named.filter_map(|name| resolve(path, name)));
    });
    documents
}

/// Calls `see` for each file of a definition that can be parsed, imports and tests included. A missing file is passed without a
/// tree.
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
        for import in each(File(&node).import()) {
            open.extend(import.as_text().and_then(|name| resolve(&path, name)));
        }
        see(&path, Some(&node));
    }
}

/// Returns the path if a prompt is one: a single line without `{{` that ends in `.md`, `.txt` or `.j2`.
pub(crate) fn prompt_path(node: &Node) -> Option<&Arc<str>> {
    let scalar = node.scalar().filter(|scalar| scalar.kind == Kind::Text)?;
    let text = &scalar.text;
    let ending = [".md", ".txt", ".j2"];
    let is_path = !text.contains('\n')
        && !text.contains("{{")
        && ending.iter().any(|ending| text.ends_with(ending));
    is_path.then_some(text)
}

/// Collects all paths that a value names, as written, except imports.
fn paths(node: &Node, table: &'static Table, into: &mut Vec<Arc<str>>) {
    for (key, node) in node.entries() {
        if let Some(key) = table.key(&key.name).filter(|key| key.name != "import") {
            paths_in(node, &key.ty, into);
        }
    }
}

fn paths_in(node: &Node, ty: &'static Ty, into: &mut Vec<Arc<str>>) {
    match ty {
        Ty::Path => into.extend(node.as_text().cloned()),
        Ty::Prompt => into.extend(prompt_path(node).cloned()),
        Ty::Type if !node.entries().is_empty() => paths(node, LongType::table(), into),
        Ty::Type => node
            .items()
            .iter()
            .for_each(|node| paths_in(node, ty, into)),
        Ty::List(of) => node
            .items()
            .iter()
            .for_each(|node| paths_in(node, of, into)),
        Ty::Map(of) | Ty::Names(of) => node
            .entries()
            .iter()
            .for_each(|(_, node)| paths_in(node, of, into)),
        Ty::Table(table) => paths(node, table(), into),
        Ty::Or(_) => {
            if let Some(ty) = ty.chosen(node) {
                paths_in(node, ty, into);
            }
        }
        _ => {}
    }
}
