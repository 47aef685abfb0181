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
