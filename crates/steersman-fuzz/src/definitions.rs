//! Definitions. For any text as the main file of a definition:
//!
//! * `compile` ends without a panic, and gives a network exactly if no diagnostic is an error;
//! * the same text gives the same diagnostics;
//! * each diagnostic names a place within its text, and can be rendered;
//! * the stored form of a network compiles to the same network.

use crate::{Target, seeds};
use steersman_definition::{Diagnostic, Files, Place, compile, compile_stored};

pub(crate) const TARGET: Target = Target {
    name: "definitions",
    check,
    seeds: || {
        let mut all = seeds::files("crates/steersman-definition/tests/definitions", "yaml");
        all.extend(seeds::files("crates/steersman-machine/tests/cases", "yaml"));
        all.extend(seeds::files("examples", "yaml"));
        all
    },
    words: &[
        "{{ ",
        " }}",
        "{% if ",
        "%}",
        "{",
        "}",
        "[",
        "]",
        ": ",
        ", ",
        " #",
        "'",
        "\"",
        "|\n",
        ">\n",
        "- ",
        "&a ",
        "*a",
        "<<: ",
        "\n",
        "\n  ",
        "none",
        "yes",
        "0123",
        "null",
        "state.x",
        "args",
        "secrets",
        "finish",
        "is defined",
        "é",
        "\u{1F511}",
        "\t",
        "!x ",
        "---\n",
        "? ",
        "tools",
        "agents",
        "{}",
        "is not none",
        "\\",
        "\u{feff}",
        "\r\n",
        "~",
        "true",
        "3.5",
    ],
    mutations: 400,
};

fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let files = Files::new("steersman.yaml", &*text);
    let (network, found) = compile(&files);
    let errors = found.iter().any(Diagnostic::is_error);
    assert_eq!(network.is_none(), errors, "a network, or errors");
    for diagnostic in &found {
        let labels = diagnostic.labels.iter().map(|(place, _)| place);
        let changes = diagnostic.patch.iter().flat_map(|patch| &patch.changes);
        let places = diagnostic.at.iter().chain(labels);
        for place in places.chain(changes.map(|(place, _)| place)) {
            is_within(place, diagnostic);
        }
        assert!(diagnostic.render(true).contains(diagnostic.code));
    }
    assert_eq!(
        compile(&files).1,
        found,
        "the same text, the same diagnostics"
    );
    if let Some(network) = network {
        let again = compile_stored(&network.source).expect("a stored form compiles");
        assert_eq!(
            format!("{:?}", again.network),
            format!("{network:?}"),
            "the stored form is the same network"
        );
    }
}

fn is_within(place: &Place, of: &Diagnostic) {
    let text = place.text.get(place.span.clone());
    assert!(
        text.is_some(),
        "{:?} is not in its text: {of:?}",
        place.span
    );
}
