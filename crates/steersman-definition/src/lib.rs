//! Definitions: YAML or the Rust builder in, a checked [`Network`] or diagnostics out.
//!
//! ```
//! use steersman_definition::{compile, Files};
//! let files = Files::new("greeter.yaml", "agents: { greeter: { system: You greet. } }");
//! let (network, diagnostics) = compile(&files);
//! assert!(diagnostics.is_empty());
//! assert_eq!(&*network.unwrap().entry[0], "greeter");
//! ```
//!
//! A text goes through five passes: [`source`] makes a tree with places of it, `load` merges imports, `shape` judges
//! the tree by the table of keys, `lower` makes a network of it, `check` judges names, types and effects. Each says
//! all that it finds; a network is given only where nothing found is an error.

mod canonical;
mod check;
mod diagnostic;
pub mod expect;
mod explain;
pub mod import;
mod keys;
mod load;
mod lower;
mod schema;
mod shape;
mod site;
pub mod source;
pub mod summary;
pub mod test;

pub use diagnostic::{Diagnostic, Patch, Place, SHOWN, Severity, Shown};
pub use explain::{codes, explain};
pub use schema::{reference, schema};
pub use source::{Files, Node};

use source::Sources;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::ids::Digest;
use steersman_machine::network::Network;

/// Compiles a definition: a network if nothing is wrong with it, and all that is to be said about it.
pub fn compile(files: &Files) -> (Option<Network>, Vec<Diagnostic>) {
    let (compiled, found) = run(files, None, None);
    (compiled.map(|compiled| compiled.network), found)
}

/// Compiles a definition with its tests. `root`: the tree of a definition that was built instead of written ([`compile_node`]).
pub fn compile_with_tests(
    files: &Files,
    root: Option<Node>,
) -> (Option<Compiled>, Vec<Diagnostic>) {
    run(files, root, None)
}

/// A network and its tests, which are no part of it: sessions never see them.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The network.
    pub network: Network,
    /// Tests of the definition by name.
    pub tests: BTreeMap<String, test::Test>,
}

/// Compiles a definition that was built as a tree instead of written: what the Rust builder does. `files` holds what
/// it names; its main text is not read.
pub fn compile_node(root: Node, files: &Files) -> (Option<Network>, Vec<Diagnostic>) {
    let (compiled, found) = run(files, Some(root), None);
    (compiled.map(|compiled| compiled.network), found)
}

/// Compiles the stored form of a network again ([`Network::source`]): the same network, without its tests. Otherwise
/// why not, in words: it is no such form, or this version does not take the definition.
pub fn compile_stored(text: &str) -> Result<Network, String> {
    let (root, files) = stored(text)?;
    let (network, found) = compile_node(root, &files);
    network.ok_or_else(|| {
        let found: Vec<&str> = found.iter().map(|d| &*d.message).collect();
        found.join("; ")
    })
}

/// Whether an expression says what a branch of a network is worth, by the network's stored form: its names are declared,
/// its kinds fit, and it comes to a number.
///
/// # Errors
/// All that is wrong with it, in words for people.
pub fn check_worth(text: &str, score: &str) -> Result<(), String> {
    let (root, files) = stored(text)?;
    let (_, found) = run(&files, Some(root), Some(score));
    let errors = found.iter().filter(|d| d.is_error());
    let told: Vec<String> = errors
        .map(|d| match &d.help {
            Some(help) => format!("{} ({help})", d.message),
            None => d.message.clone(),
        })
        .collect();
    if told.is_empty() {
        Ok(())
    } else {
        Err(told.join("; "))
    }
}

fn stored(text: &str) -> Result<(Node, Files), String> {
    let stored: serde_json::Value =
        serde_json::from_str(text).map_err(|e| format!("it is no JSON: {e}"))?;
    let mut files = Files::new("", "");
    for (path, text) in stored["files"].as_object().into_iter().flatten() {
        files.add(path.as_str(), text.as_str().unwrap_or_default());
    }
    Ok((Node::json(&stored["definition"]), files))
}

/// Paths of the files that a definition names and `files` lacks. Whoever reads files adds those that exist and asks
/// again until nothing new is wanted; what does not exist is a diagnostic of [`compile`].
pub fn wanted(files: &Files) -> BTreeSet<String> {
    load::wanted(files)
}

/// Paths of the documents that a definition names (`knowledge`), relative to its folder. Nobody reads them to compile it;
/// whoever can look says which cannot be read ([`Files::cannot_read`]).
pub fn documents(files: &Files) -> BTreeSet<String> {
    load::documents(files)
}

/// What is wrong in files of tests, and in scripts that only they name, keeps nothing from running: it is warned of, and
/// the tests are left out. Gives those files.
fn set_aside(
    merged: &load::Merged,
    lowered: &lower::Lowered,
    found: &mut [Diagnostic],
) -> BTreeSet<String> {
    let mut broken = BTreeSet::new();
    for wrong in found.iter_mut().filter(|wrong| wrong.is_error()) {
        let Some(at) = &wrong.at else { continue };
        let owners: BTreeSet<String> = match lowered.scripts.get(&*at.path) {
            Some(owners) => owners.clone(),
            None => BTreeSet::from([at.path.to_string()]),
        };
        if owners.is_subset(&merged.test_files) {
            wrong.set_aside();
            broken.extend(owners);
        }
    }
    broken
}

/// A tree as JSON, keys in their order: arguments of calls are shown as they were written.
fn as_written(node: &Node) -> serde_json::Value {
    match &node.value {
        source::Value::Scalar(_) => node.to_json(),
        source::Value::List(items) => items.iter().map(as_written).collect(),
        source::Value::Map(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, node)| (key.name.to_string(), as_written(node)));
            serde_json::Value::Object(entries.collect())
        }
    }
}

/// A file of data, as scripts are one: read as definitions are, so that what is a boolean elsewhere, or cannot be read, is
/// told with its place.
///
/// # Errors
/// What is wrong with it.
pub fn data(path: &str, text: &str) -> Result<serde_json::Value, Vec<Diagnostic>> {
    let (mut sources, mut found) = (Sources::default(), Vec::new());
    let node = source::parse(&mut sources, path, &text.into(), &mut found);
    if let Some(node) = &node {
        found.extend(shape::data(&sources, node));
    }
    match node {
        Some(node) if !found.iter().any(Diagnostic::is_error) => Ok(as_written(&node)),
        _ => Err(found),
    }
}

/// `worth`: an expression beside the definition that is to say what a branch is worth.
fn run(
    files: &Files,
    root: Option<Node>,
    worth: Option<&str>,
) -> (Option<Compiled>, Vec<Diagnostic>) {
    let mut sources = Sources::default();
    let mut found = Vec::new();
    let Some(merged) = load::load(files, root, &mut sources, &mut found) else {
        return (None, found);
    };
    let mut lowered = lower::lower(files, &mut sources, &merged, &mut found, worth);
    let mut broken = set_aside(&merged, &lowered, &mut found);
    let whole = !found.iter().any(Diagnostic::is_error);
    lowered.network.leads = check::leads(&lowered);
    found.extend(check::check(&sources, &merged, &lowered, whole));
    broken.extend(set_aside(&merged, &lowered, &mut found));
    for (key, _) in &merged.tests {
        let file = sources.path(key.span);
        if file.is_some_and(|file| broken.contains(&**file)) {
            lowered.tests.remove(&*key.name);
        }
    }
    found.sort_by_key(|diagnostic| {
        let at = diagnostic.at.as_ref();
        let place = at.map(|at| (at.path.clone(), at.span.start));
        (std::cmp::Reverse(diagnostic.severity), place)
    });
    let mut said = BTreeSet::new();
    found.retain(|diagnostic| said.insert(diagnostic.told()));
    let mut network = lowered.network;
    if found.iter().any(Diagnostic::is_error) {
        return (None, found);
    }
    let source = canonical::source(&network.name, &merged, &sources, &lowered.files);
    network.digest = Digest::of(canonical::digested(&source).as_bytes());
    network.source = Arc::from(source.to_string());
    let tests = lowered.tests;
    (Some(Compiled { network, tests }), found)
}
