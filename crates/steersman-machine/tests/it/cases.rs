//! Case files: a definition with tests. Each test runs twice in the machine alone, and its trace is a snapshot.

#![expect(clippy::disallowed_methods, reason = "tests read their case files")]

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;
use steersman_definition::{Compiled, Files, compile_with_tests};
use steersman_testkit::replay::twice;
use steersman_testkit::states::natives;

/// Runs the tests of one case file. Returns their traces, or the failures.
fn run(name: &str, text: String) -> Result<String, String> {
    let (compiled, found) = compile_with_tests(&Files::new(name, text), None);
    let Some(Compiled {
        mut network, tests, ..
    }) = compiled
    else {
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        return Err(format!("{name}\n{}", found.join("\n")));
    };
    network.natives = natives();
    let network = Arc::new(network);
    assert!(!tests.is_empty(), "{name}: a case without tests");
    let (mut printed, mut wrong) = (String::new(), String::new());
    for (test, steps) in &tests {
        match twice(&network, steps) {
            Ok(ran) if ran.failures.is_empty() => {
                writeln!(printed, "## {test}\n{}", ran.world.printed).expect("a string takes it");
            }
            Ok(ran) => {
                let failures = ran.failures.join("\n");
                let trace = &ran.world.printed;
                writeln!(wrong, "{name}: {test}:\n{failures}\n{trace}").expect("a string takes it");
            }
            Err(fault) => {
                writeln!(wrong, "{name}: {test}: {fault}").expect("a string takes it");
            }
        }
    }
    if wrong.is_empty() {
        Ok(printed)
    } else {
        Err(wrong)
    }
}

#[test]
fn each_case_runs_as_it_says() {
    let wrong = RefCell::new(Vec::new());
    insta::glob!("../cases", "*.yaml", |path| {
        let text = std::fs::read_to_string(path).expect("a readable file");
        let name = path.file_name().expect("a file").to_string_lossy();
        match run(&name, text) {
            Ok(printed) => insta::assert_snapshot!(printed),
            Err(fault) => wrong.borrow_mut().push(fault),
        }
    });
    let wrong = wrong.into_inner();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
