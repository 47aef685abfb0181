//! Each target over its corpus, its seeds, and mutations of both that follow from a fixed number.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::{env, fs};
use steersman_fuzz::{Mutations, TARGETS, Target};

/// Returns all inputs that ever broke a target, with their names.
fn corpus(target: Target) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(target.corpus()) else {
        return Vec::new();
    };
    let paths: BTreeSet<_> = entries.flatten().map(|entry| entry.path()).collect();
    let read = |path: &std::path::PathBuf| fs::read(path).expect("an input can be read");
    paths
        .iter()
        .map(|path| (path.display().to_string(), read(path)))
        .collect()
}

/// Checks an input. If it breaks the target, it is saved and named before the panic goes on.
#[expect(clippy::print_stdout, reason = "shown with the panic of the test")]
fn check(target: Target, name: &str, input: &[u8]) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| target.run(input))) else {
        return;
    };
    let saved = env::temp_dir().join(format!("steersman-fuzz-{}", target.name));
    let place = match fs::write(&saved, input) {
        Ok(()) => format!("saved as {}", saved.display()),
        Err(why) => format!("not saved: {why}"),
    };
    let shown = String::from_utf8_lossy(input);
    println!("`{}` breaks at {name}, {place}:\n{shown}", target.name);
    resume_unwind(panic)
}

fn holds(name: &str) {
    let target = Target::named(name).expect("a target of this name");
    let mut inputs = (target.seeds)();
    assert!(!inputs.is_empty());
    for (n, seed) in inputs.iter().enumerate() {
        check(target, &format!("seed {n}"), seed);
    }
    for (name, input) in corpus(target) {
        check(target, &name, &input);
        inputs.push(input);
    }
    let mut mutations = Mutations::new(&inputs, target.words, 1);
    for n in 0..target.mutations {
        check(target, &format!("mutation {n}"), &mutations.input());
    }
}

#[test]
fn definitions_compile_or_are_diagnosed() {
    holds("definitions");
}

#[test]
fn lines_are_what_they_encode_to_or_are_refused() {
    holds("lines");
}

#[test]
fn streams_are_read_alike_however_they_are_cut() {
    holds("streams");
}

#[test]
fn arguments_are_repaired_without_loss() {
    holds("arguments");
}

#[test]
fn expressions_end_within_their_bounds() {
    holds("expressions");
}

#[test]
fn answers_have_the_fields_that_a_server_asks_for() {
    holds("fields");
}

#[test]
fn orders_break_no_session() {
    holds("orders");
}

/// A folder of inputs without a target would be run by nobody.
#[test]
fn each_folder_of_the_corpus_belongs_to_a_target() {
    let known: BTreeSet<_> = TARGETS
        .iter()
        .map(|target| target.name.to_owned())
        .collect();
    let folder = TARGETS[0].corpus();
    let folders = fs::read_dir(folder.parent().expect("the corpus")).expect("the corpus");
    for folder in folders.flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        assert!(known.contains(&name), "{name}");
    }
}
