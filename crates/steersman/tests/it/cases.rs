//! The machine's case files, run whole: ledger, store and sync below the same scripts, steps and expectations.

use std::path::Path;
use steersman::{Network, testing};

/// What is otherwise in a whole session than in the machine alone: file, test, failure, and why it must be.
const OTHERWISE: &[(&str, &str, &str, &str)] = &[(
    "T7_rewind",
    "past_a_used_approval",
    "step 3: open: expected \"approval transfer\", found \"repeat transfer\"",
    "the ledger remembers that the same was paid on the branch that was left; the machine alone has no ledger",
)];

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn each_case_of_the_machine_runs_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../steersman-machine/tests/cases");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    files.sort();
    assert!(files.len() >= 30, "{} case files", files.len());
    let (mut wrong, mut met) = (Vec::new(), Vec::new());
    for path in files {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let network = Network::from_path(&path).unwrap().build().unwrap();
        for test in network.checked().tests.keys() {
            // a runtime each: what one test leaves behind is gone before the next
            let report = runtime().block_on(testing::run(&network, test));
            for failure in report.failures {
                let mut known = OTHERWISE.iter();
                let known =
                    known.find(|(f, t, what, _)| *f == file && **t == **test && *what == failure);
                match known {
                    Some(known) => met.push(*known),
                    None => wrong.push(format!("{file}: {test}: {failure}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(met, OTHERWISE, "what is otherwise is so still");
}

/// A test of a case that is killed behind a line of its own, in place of all its tests.
fn killed_behind(case: &str, test: &str, line: u64) -> String {
    let (definition, tests) = case.split_once("\ntests:\n").unwrap();
    let (_, body) = tests.split_once(&format!("  {test}:\n")).unwrap();
    let own = body.lines().take_while(|line| line.starts_with("    "));
    let own = own.collect::<Vec<_>>().join("\n");
    let (head, tail) = own.split_once("steps: [").unwrap();
    let (steps, tail) = tail.split_once('\n').unwrap();
    let steps = steps.trim_end().strip_suffix(" ]").unwrap();
    format!(
        "{definition}\ntests:\n  {test}:\n{head}steps: [{steps}, {{ kill: \"{line}\" }}, {{ resume: true }} ]\n{tail}\n      - {{ same_as: undisturbed }}\n"
    )
}

#[test]
fn networks_in_networks_killed_behind_any_line_end_as_if_nothing_had_happened() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../steersman-machine/tests/cases/networks_nest.yaml");
    let case = std::fs::read_to_string(path).unwrap();
    let calm = Network::from_yaml(case.as_str()).build().unwrap();
    let (mut wrong, mut kills) = (Vec::new(), 0);
    for test in calm.checked().tests.keys() {
        let lines = runtime().block_on(testing::run(&calm, test)).lines;
        for line in 1..=lines {
            let network = Network::from_yaml(killed_behind(&case, test, line));
            let network = network.build().unwrap();
            let report = runtime().block_on(testing::run(&network, test));
            let failures = report.failures.iter();
            wrong.extend(failures.map(|f| format!("{test} killed behind line {line}: {f}")));
            kills += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(kills >= 25, "{kills} kills");
}
