//! `steersman lsp` with pytest-lsp, a client that other people wrote (`scripts/pytest-lsp.sh`).

use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "needs pytest-lsp: STEERSMAN_PYTEST_LSP=$(scripts/pytest-lsp.sh)"]
fn an_independent_client_gets_every_answer() {
    let place = std::env::var("STEERSMAN_PYTEST_LSP").expect("the folder of pytest-lsp");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lsp");
    let out = Command::new(Path::new(&place).join("bin/python"))
        // no files of Python in the repository
        .args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(tests)
        .env("STEERSMAN_PROGRAM", env!("CARGO_BIN_EXE_steersman"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&out.stdout);
    let wrong = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{told}\n{wrong}");
}
