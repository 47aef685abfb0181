//! Definitions as data: each file of `tests/definitions` compiles, or says what is wrong with it.

use std::fmt::Write as _;
use std::path::Path;
use steersman_machine::definition::{Diagnostic, Files, compile, wanted};
use steersman_machine::network::Network;

/// A file of a folder with all that it names.
fn load(path: &Path) -> Files {
    let folder = path.parent().expect("a file in a folder");
    let name = path.file_name().expect("a file").to_string_lossy();
    let text = std::fs::read_to_string(path).expect("a readable file");
    let mut files = Files::new(name, text);
    loop {
        let before = files.paths().count();
        for path in wanted(&files) {
            if let Ok(text) = std::fs::read_to_string(folder.join(&path)) {
                files.add(path, text);
            }
        }
        if files.paths().count() == before {
            return files;
        }
    }
}

fn show(network: Option<&Network>, found: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in found {
        writeln!(text, "{diagnostic}\n").expect("a string takes it");
    }
    match network {
        Some(network) => writeln!(text, "{} compiled", network.name),
        None => writeln!(text, "refused"),
    }
    .expect("a string takes it");
    text
}

#[test]
fn each_file_compiles_or_says_what_is_wrong() {
    insta::glob!("../definitions", "*.yaml", |path| {
        let (network, found) = compile(&load(path));
        assert_eq!(network.is_none(), found.iter().any(Diagnostic::is_error));
        insta::assert_snapshot!(show(network.as_ref(), &found));
    });
}
