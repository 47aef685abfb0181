//! Cases that need the ledger or a store (`tests/ledger_cases`): equal calls, approvals with a time, and events.

use std::path::Path;
use steersman::{Network, testing};

/// Cases that need the ledger or a store, which the machine alone does not have.
#[tokio::test]
async fn each_case_runs_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ledger_cases");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    let mut wrong = Vec::new();
    for path in files {
        let network = Network::from_path(&path).unwrap().build().unwrap();
        for test in network.tests() {
            for failure in testing::run(&network, test).await.failures {
                wrong.push(format!("{}: {test}: {failure}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
