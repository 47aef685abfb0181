//! The texts that a client has opened, and the definitions that they belong to.

use crate::Disk;
use crate::text::{Range, replace};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steersman_definition::language::{Checked, Language};
use steersman_definition::{Diagnostic, Files, Shown, documents, gather};
use url::Url;

/// Name of the main file of a folder.
const MAIN: &str = "steersman.yaml";

/// Maximum number of folders above a file that are searched for the definition that it belongs to.
const ABOVE: usize = 8;

pub(crate) struct Workspace {
    disk: Box<dyn Disk>,
    open: BTreeMap<PathBuf, Document>,
    /// The definitions that have an open file, by main file.
    definitions: BTreeMap<PathBuf, Definition>,
    /// Open files that have changed since the last check.
    changed: BTreeSet<PathBuf>,
    /// Grows with each change of a file.
    revision: u64,
}

/// A definition that is to be checked, as its files are at a revision of the workspace.
pub(crate) struct Due {
    pub main: PathBuf,
    pub files: Files,
    pub revision: u64,
}

/// A text that the client has opened.
struct Document {
    /// The address as the client writes it.
    uri: String,
    version: i64,
    text: Arc<str>,
    /// Main file of its definition; `None` if it belongs to none.
    main: Option<PathBuf>,
}

#[derive(Default)]
struct Definition {
    language: Language,
    /// Files for which diagnostics were published that are not empty.
    told: BTreeSet<PathBuf>,
}

#[derive(Deserialize)]
pub(crate) struct Opened {
    #[serde(rename = "textDocument")]
    document: Item,
}

#[derive(Deserialize)]
struct Item {
    uri: String,
    version: i64,
    text: String,
}

#[derive(Deserialize)]
pub(crate) struct Changed {
    #[serde(rename = "textDocument")]
    document: Versioned,
    #[serde(rename = "contentChanges")]
    changes: Vec<Change>,
}

#[derive(Deserialize)]
struct Versioned {
    uri: String,
    version: i64,
}

#[derive(Deserialize)]
struct Change {
    range: Option<Range>,
    text: String,
}

#[derive(Deserialize)]
pub(crate) struct Closed {
    #[serde(rename = "textDocument")]
    document: Named,
}

/// A document by its address.
#[derive(Deserialize)]
pub(crate) struct Named {
    pub uri: String,
}

/// A document with the definition that it belongs to.
pub(crate) struct Found<'a> {
    pub language: &'a Language,
    /// Its path relative to the definition's folder.
    pub file: String,
    pub text: &'a str,
    folder: &'a Path,
    workspace: &'a Workspace,
}

impl Found<'_> {
    /// Returns the address of a file of the definition, as the client writes it.
    pub(crate) fn uri(&self, file: &str) -> String {
        self.workspace.uri(&self.folder.join(file))
    }
}

impl Workspace {
    pub(crate) fn new(disk: Box<dyn Disk>) -> Self {
        Self {
            disk,
            open: BTreeMap::new(),
            definitions: BTreeMap::new(),
            changed: BTreeSet::new(),
            revision: 0,
        }
    }

    pub(crate) fn open(&mut self, opened: Opened) {
        let Item { uri, version, text } = opened.document;
        let Some(path) = path(&uri) else {
            return; // a text that is in no file belongs to no definition
        };
        let document = Document {
            uri,
            version,
            text: text.into(),
            main: None,
        };
        self.open.insert(path.clone(), document);
        self.changes([path]);
        self.assign();
    }

    pub(crate) fn change(&mut self, changed: Changed) {
        let known = path(&changed.document.uri).and_then(|path| {
            let document = self.open.get_mut(&path)?;
            Some((path, document))
        });
        let Some((path, document)) = known else {
            return;
        };
        let mut text = document.text.to_string();
        for change in changed.changes {
            match change.range {
                Some(range) => replace(&mut text, range, &change.text),
                None => text = change.text,
            }
        }
        document.text = text.into();
        document.version = changed.document.version;
        let unknown = document.main.is_none();
        self.changes([path]);
        if unknown {
            self.assign();
        }
    }

    pub(crate) fn close(&mut self, closed: &Closed) {
        let Some(path) = path(&closed.document.uri) else {
            return;
        };
        if let Some(document) = self.open.remove(&path) {
            self.changed.remove(&path);
            // the file on the disk counts again for the other open files of its definition
            let others = self.open.iter().filter(|(_, of)| of.main == document.main);
            let others: Vec<PathBuf> = others.map(|(path, _)| path.clone()).collect();
            self.changes(others);
        }
    }

    /// Checks everything again, because a file may have changed on the disk.
    pub(crate) fn look_again(&mut self) {
        let all: Vec<PathBuf> = self.open.keys().cloned().collect();
        self.changes(all);
        self.assign();
    }

    /// Notes that files have changed.
    fn changes(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.changed.extend(paths);
        self.revision += 1;
    }

    /// Returns true if a document is open whose definition was never read.
    pub(crate) fn is_unread(&self) -> bool {
        let mut mains = self.open.values().filter_map(|of| of.main.as_ref());
        mains.any(|main| !self.definitions.contains_key(main))
    }

    /// Reads the names in the definitions that have changed, without checking them.
    pub(crate) fn look(&mut self) {
        for main in self.changed_mains() {
            let files = self.files(&main);
            self.definitions
                .entry(main)
                .or_default()
                .language
                .look(files);
        }
    }

    /// Returns the main files of the definitions that have changed.
    fn changed_mains(&self) -> BTreeSet<PathBuf> {
        let changed = self.changed.iter();
        let mains = changed.filter_map(|path| self.open.get(path)?.main.clone());
        mains.collect()
    }

    /// Returns a definition that has changed and is to be checked.
    pub(crate) fn due(&self) -> Option<Due> {
        let main = self.changed_mains().into_iter().next()?;
        Some(Due {
            files: self.files(&main),
            main,
            revision: self.revision,
        })
    }

    /// Takes a definition that was checked, as of a revision; returns parameters of `publishDiagnostics` for each file whose
    /// diagnostics may have changed. If a file has changed since, it is to be checked again.
    pub(crate) fn take(&mut self, main: PathBuf, checked: Checked, revision: u64) -> Vec<Json> {
        if revision != self.revision {
            return Vec::new();
        }
        let open = &self.open;
        let is_of = |path: &PathBuf| {
            open.get(path)
                .is_some_and(|of| of.main.as_ref() == Some(&main))
        };
        self.changed.retain(|path| !is_of(path));
        let mut definition = self.definitions.remove(&main).unwrap_or_default();
        definition.language.take(checked);
        let published = self.publish(&main, &mut definition);
        self.definitions.insert(main, definition);
        published
    }

    /// Forgets definitions of which no file is open any more; returns parameters of `publishDiagnostics` for their files.
    pub(crate) fn forget(&mut self) -> Vec<Json> {
        let mut published = Vec::new();
        let used: BTreeSet<PathBuf> = self
            .open
            .values()
            .filter_map(|of| of.main.clone())
            .collect();
        let gone: Vec<PathBuf> = self
            .definitions
            .keys()
            .filter(|main| !used.contains(*main))
            .cloned()
            .collect();
        for main in gone {
            let told = self.definitions.remove(&main).map(|of| of.told);
            for path in told.into_iter().flatten() {
                published.push(json!({ "uri": self.uri(&path), "diagnostics": [] }));
            }
        }
        published
    }

    fn publish(&self, main: &Path, definition: &mut Definition) -> Vec<Json> {
        let folder = folder(main);
        let mut by_file: BTreeMap<PathBuf, Vec<&Diagnostic>> = BTreeMap::new();
        let own = self
            .open
            .iter()
            .filter(|(_, of)| of.main.as_deref() == Some(main));
        let known = definition.told.iter().chain(own.map(|(path, _)| path));
        for path in known {
            by_file.entry(path.clone()).or_default();
        }
        // the first ones, as `check` shows them
        for diagnostic in Shown::of(definition.language.diagnostics()).first {
            let path = diagnostic
                .at
                .as_ref()
                .map_or_else(|| main.to_owned(), |at| folder.join(&*at.path));
            by_file.entry(path).or_default().push(diagnostic);
        }
        definition.told.clear();
        let uri = |file: &str| self.uri(&folder.join(file));
        let mut published = Vec::new();
        for (path, found) in by_file {
            if !found.is_empty() {
                definition.told.insert(path.clone());
            }
            let found: Vec<Json> = found.iter().map(|found| found.lsp(&uri)).collect();
            let mut params = json!({ "uri": self.uri(&path), "diagnostics": found });
            if let Some(document) = self.open.get(&path) {
                params["version"] = document.version.into();
            }
            published.push(params);
        }
        published
    }

    /// Returns an open document with its definition.
    pub(crate) fn find(&self, uri: &str) -> Option<Found<'_>> {
        let path = path(uri)?;
        let document = self.open.get(&path)?;
        let main = document.main.as_deref()?;
        let definition = self.definitions.get(main)?;
        let folder = folder(main);
        Some(Found {
            language: &definition.language,
            file: relative(folder, &path)?,
            text: &document.text,
            folder,
            workspace: self,
        })
    }

    /// Returns the address of a file: as the client writes it, if the file is open.
    fn uri(&self, path: &Path) -> String {
        match self.open.get(path) {
            Some(document) => document.uri.clone(),
            None => {
                Url::from_file_path(path).map_or_else(|()| path.display().to_string(), Into::into)
            }
        }
    }

    /// Finds the definition of each open file.
    fn assign(&mut self) {
        let paths: Vec<PathBuf> = self.open.keys().cloned().collect();
        for path in paths {
            let main = self.main_of(&path);
            if let Some(document) = self.open.get_mut(&path) {
                document.main = main;
            }
        }
    }

    /// Returns the main file of the definition that a file belongs to: the `steersman.yaml` above that names it, otherwise itself if
    /// it is a definition.
    fn main_of(&self, path: &Path) -> Option<PathBuf> {
        if path.ends_with(MAIN) {
            return Some(path.to_owned());
        }
        for folder in path.ancestors().skip(1).take(ABOVE) {
            let main = folder.join(MAIN);
            if self.text(&main).is_none() {
                continue;
            }
            let files = self.files(&main);
            let own = relative(folder, path);
            if own.is_some_and(|own| files.text(&own).is_some()) {
                return Some(main);
            }
        }
        let text = self.text(path)?;
        let key = |line: &str| line.starts_with("steersman:") || line.starts_with("agents:");
        text.lines().any(key).then(|| path.to_owned())
    }

    fn text(&self, path: &Path) -> Option<Arc<str>> {
        match self.open.get(path) {
            Some(document) => Some(document.text.clone()),
            None => self.disk.text(path).map(Into::into),
        }
    }

    /// Returns the files of a definition; open ones as they are in the editor.
    fn files(&self, main: &Path) -> Files {
        let folder = folder(main);
        let name = main
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let text = self.text(main).unwrap_or_default();
        let mut files = Files::new(name.clone(), text);
        if name == MAIN {
            if let Some(name) = folder.file_name() {
                files = files.named(name.to_string_lossy());
            }
        } else if self.text(&folder.join(MAIN)).is_some() {
            files = files.beside_main();
        }
        for test in self.disk.yaml_in(&folder.join("tests")) {
            let test = format!("tests/{test}");
            if let Some(text) = self.text(&folder.join(&test)) {
                files.add(test, text);
            }
        }
        let read = |file: &str| {
            let text = self.text(&folder.join(file));
            Ok::<_, Infallible>(text.map(|text| text.to_string()))
        };
        let Ok(()) = gather(&mut files, read);
        for named in documents(&files) {
            if let Some(why) = self.disk.unreadable(folder, &named) {
                files.cannot_read(named, why);
            }
        }
        files
    }
}

/// Returns the folder of a file.
fn folder(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

/// Returns the path of an address; `None` if it is no file.
fn path(uri: &str) -> Option<PathBuf> {
    Url::parse(uri).ok()?.to_file_path().ok()
}

/// Returns a path relative to a folder, as definitions write it.
fn relative(folder: &Path, path: &Path) -> Option<String> {
    let rest = path.strip_prefix(folder).ok()?;
    let parts = rest.iter().map(|part| part.to_str());
    let parts: Option<Vec<&str>> = parts.collect();
    Some(parts?.join("/"))
}
