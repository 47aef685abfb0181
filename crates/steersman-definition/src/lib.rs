//! Compiles definitions: YAML or the Rust builder in, a checked [`Network`] or diagnostics out.
//!
//! ```
//! use steersman_definition::{compile, Files};
//! let files = Files::new("greeter.yaml", "agents: { greeter: { system: You greet. } }");
//! let (network, diagnostics) = compile(&files);
//! assert!(diagnostics.is_empty());
//! assert_eq!(&*network.unwrap().entry[0], "greeter");
//! ```
//!
//! A text goes through five passes. [`source`] parses it into a tree with positions. `load` merges imports. `shape` checks the
//! tree against the table of keys. `lower` builds a network from it. `check` checks names, types and effects. Each pass
//! reports all that it finds. A network is returned only if no diagnostic is an error.

mod canonical;
mod check;
mod diagnostic;
pub mod expect;
mod explain;
mod foreign;
pub mod grade;
pub mod hosted;
pub mod import;
mod keys;
pub mod language;
mod load;
mod lower;
mod meant;
pub mod schedule;
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
use steersman_machine::network::Network;
use steersman_machine::network::search::{Plan, Scorer};
use steersman_machine::stored::ids::Digest;

/// Compiles a definition. Returns the network if there is no error, and all diagnostics.
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

/// A network, its tests and its grades. Neither is part of a network: sessions never see them.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The checked network, without the tests.
    pub network: Network,
    /// Tests of the definition by name.
    pub tests: BTreeMap<String, test::Test>,
    /// Grades of the definition by name.
    pub grades: BTreeMap<String, grade::Grade>,
}

/// Compiles a definition that was built as a tree, as the Rust builder does. `files` holds the files that the tree names; its
/// main text is not read.
pub fn compile_node(root: Node, files: &Files) -> (Option<Network>, Vec<Diagnostic>) {
    let (compiled, found) = run(files, Some(root), None);
    (compiled.map(|compiled| compiled.network), found)
}

/// Compiles the stored form of a network ([`Network::source`]) to the same network. A stored form has no tests, but tests that a
/// caller has added to it are compiled, too. The error is a text for people: the text is not such a form, or this version does
/// not accept the definition.
pub fn compile_stored(text: &str) -> Result<Compiled, String> {
    let (root, files) = stored(text)?;
    let (compiled, found) = compile_with_tests(&files, Some(root));
    compiled.ok_or_else(|| {
        let errors = found.iter().filter(|d| d.is_error());
        errors.map(in_words).collect::<Vec<_>>().join("; ")
    })
}

/// Returns a diagnostic in words, with its proposal.
fn in_words(found: &Diagnostic) -> String {
    // The label of a misspelt name is the nearest one.
    match found.help.as_ref().or(found.label.as_ref()) {
        Some(help) => format!("{} ({help})", found.message),
        None => found.message.clone(),
    }
}

/// Reads the plan of a search from JSON and checks all of it: amounts, judges, and the names and types in the expression that
/// scores branches.
///
/// # Errors
/// Returns everything that is wrong, in words for people.
pub fn search_plan(json: &serde_json::Value, network: &Network) -> Result<Plan, String> {
    let plan = Plan::checked(json, network)?;
    if let Some(Scorer::Expr(score)) = &plan.score {
        check_worth(&network.source, &score.source).map_err(|why| format!("`score`: {why}"))?;
    }
    Ok(plan)
}

/// Checks an expression that scores branches against the stored form of a network: its names are declared, its kinds fit, and
/// it gives a number.
fn check_worth(text: &str, score: &str) -> Result<(), String> {
    let (root, files) = stored(text)?;
    let (_, found) = run(&files, Some(root), Some(score));
    let errors = found.iter().filter(|d| d.is_error());
    let texts: Vec<String> = errors.map(in_words).collect();
    if texts.is_empty() {
        Ok(())
    } else {
        Err(texts.join("; "))
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

/// Returns the paths of the files that a definition names and `files` lacks. The caller adds those that exist and asks again
/// until nothing new is wanted. [`compile`] reports the files that do not exist.
pub fn wanted(files: &Files) -> BTreeSet<String> {
    load::wanted(files)
}

/// Adds the files that a definition names, and those that these name. `read` returns the text of a path, or `None` if there is
/// no such file, which [`compile`] reports.
///
/// # Errors
/// The first error of `read`.
pub fn gather<E>(
    files: &mut Files,
    mut read: impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<(), E> {
    let mut asked = BTreeSet::new();
    loop {
        let mut wanted = wanted(files);
        wanted.retain(|path| asked.insert(path.clone()));
        if wanted.is_empty() {
            return Ok(());
        }
        for path in wanted {
            if let Some(text) = read(&path)? {
                files.add(path, text);
            }
        }
    }
}

/// Returns the paths of the documents that a definition names (`knowledge`), relative to its folder. Compiling does not read
/// them. A caller that has access to the files reports those that cannot be read ([`Files::cannot_read`]).
pub fn documents(files: &Files) -> BTreeSet<String> {
    load::documents(files)
}

/// Turns errors in test files, and in scripts that only test files name, into warnings, so that they do not keep the
/// definition from running. Returns those files; their tests are left out.
fn set_aside(
    merged: &load::Merged,
    lowered: &lower::Lowered,
    found: &mut [Diagnostic],
) -> BTreeSet<String> {
    let mut broken = BTreeSet::new();
    for wrong in found.iter_mut().filter(|wrong| wrong.is_error()) {
        let Some(at) = &wrong.at else { continue };
        let owners: BTreeSet<String> = match lowered.facts.scripts.get(&*at.path) {
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

/// Returns a tree as JSON with keys in the order of the source, so that arguments of calls are shown as they were written.
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

/// Parses a data file, such as a script, in the way of definitions. Faults, such as words that other YAML parsers read as
/// booleans, are reported with their position.
///
/// # Errors
/// The diagnostics, if one of them is an error.
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

/// The results of all passes.
struct Passed {
    sources: Sources,
    /// The merged and the lowered definition; `None` if the main file has no tree.
    done: Option<(load::Merged, lower::Lowered)>,
    /// All diagnostics, errors first.
    found: Vec<Diagnostic>,
}

/// Runs all passes. `worth` is an expression from outside the definition that scores branches. It is checked as well.
fn pass(files: &Files, root: Option<Node>, worth: Option<&str>) -> Passed {
    let mut sources = Sources::default();
    let mut found = Vec::new();
    let Some(merged) = load::load(files, root, &mut sources, &mut found) else {
        return Passed {
            sources,
            done: None,
            found,
        };
    };
    let mut lowered = lower::lower(files, &mut sources, &merged, &mut found, worth);
    let mut broken = set_aside(&merged, &lowered, &mut found);
    let no_errors = !found.iter().any(Diagnostic::is_error);
    lowered.network.leads = check::leads(&lowered);
    found.extend(check::check(&sources, &merged, &lowered, no_errors));
    broken.extend(set_aside(&merged, &lowered, &mut found));
    let is_broken = |span| {
        sources
            .path(span)
            .is_some_and(|file| broken.contains(&**file))
    };
    for (key, _) in keys::kinds::each(merged.file().tests()) {
        if is_broken(key.span) {
            lowered.facts.tests.remove(&*key.name);
        }
    }
    for (key, _) in keys::kinds::each(merged.file().grades()) {
        if is_broken(key.span) {
            lowered.facts.grades.remove(&*key.name);
        }
    }
    found.sort_by_key(|diagnostic| {
        let at = diagnostic.at.as_ref();
        let place = at.map(|at| (at.path.clone(), at.span.start));
        (std::cmp::Reverse(diagnostic.severity), place)
    });
    let mut known = BTreeSet::new();
    found.retain(|diagnostic| known.insert(diagnostic.told()));
    Passed {
        sources,
        done: Some((merged, lowered)),
        found,
    }
}

/// Compiles a definition. Returns it if there is no error, and all diagnostics.
fn run(
    files: &Files,
    root: Option<Node>,
    worth: Option<&str>,
) -> (Option<Compiled>, Vec<Diagnostic>) {
    let passed = pass(files, root, worth);
    let found = passed.found;
    let Some((merged, lowered)) = passed.done else {
        return (None, found);
    };
    if found.iter().any(Diagnostic::is_error) {
        return (None, found);
    }
    let mut network = lowered.network;
    let (sources, own) = (&passed.sources, &lowered.facts.files);
    let source = canonical::source(&network.name, &merged, sources, own);
    network.digest = Digest::of(canonical::digested(&source).as_bytes());
    network.source = Arc::from(source.to_string());
    let (tests, grades) = (lowered.facts.tests, lowered.facts.grades);
    let compiled = Compiled {
        network,
        tests,
        grades,
    };
    (Some(compiled), found)
}
