//! `import`: from a file of another program to a definition that runs.

use crate::readme::transcript_is_true;
use crate::world::{self, World};
use insta::assert_snapshot;
use steersman_definition::import::aiwaves;

#[test]
fn the_guide_to_importing_is_true() {
    let guide = world::root().join("docs/guides/import.md");
    transcript_is_true(&guide, &World::new());
    let page = std::fs::read_to_string(guide).unwrap();
    for (code, what) in aiwaves::CODES {
        assert!(page.contains(&format!("| `{code}` | {what} |\n")), "{code}");
    }
}

fn debate(world: &World) {
    let imports = world::root().join("crates/steersman-definition/tests/imports");
    let text = std::fs::read_to_string(imports.join("debate.json")).unwrap();
    world.write("duel/config.json", &text);
}

#[test]
fn a_configuration_is_called_like_its_folder_and_goes_to_stdout() {
    let world = World::new();
    debate(&world);
    let ran = world.run(&["import", "aiwaves", "duel/config.json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("\nname: duel\n"), "{}", ran.out);
    assert!(ran.out.ends_with("entry: duel\n"), "{}", ran.out);
    assert!(!ran.out.contains("warning"), "{}", ran.out);
    assert!(
        ran.err
            .contains("warning: config.API_KEY: it is not copied"),
        "{}",
        ran.err
    );
    world.write("made.yaml", &ran.out);
    assert_eq!(world.run(&["check", "made.yaml"]).code, Some(0));

    let (code, document) = world.json(&["import", "aiwaves", "duel/config.json"]);
    assert_eq!(code, Some(0));
    assert_eq!(document["definition"].as_str(), Some(&*ran.out));
    let codes: Vec<&str> = document["warnings"]
        .as_array()
        .expect("warnings")
        .iter()
        .map(|warning| warning["code"].as_str().expect("a code"))
        .collect();
    assert!(
        codes.contains(&"secret") && codes.contains(&"brevity"),
        "{codes:?}"
    );
    assert!(!document.to_string().contains("sk-of-nobody"));
}

#[test]
fn what_cannot_be_imported_says_why_and_writes_nothing() {
    let world = World::new();
    debate(&world);
    world.write("list.json", "[1, 2]");
    world.write("broken.json", "{ \"agents\": ");
    world.write("second.json", r#"{ "agents": { "A": {} }, "sop": {} }"#);
    let pages: Vec<String> = [
        &["import", "aiwaves", "nothere.json"][..],
        &["import", "aiwaves", "broken.json"],
        &["import", "aiwaves", "list.json"],
        &["import", "aiwaves", "second.json", "--out", "new.yaml"],
        &[
            "import",
            "aiwaves",
            "duel/config.json",
            "--out",
            "list.json",
        ],
    ]
    .iter()
    .map(|args| world.page(args))
    .collect();
    assert_snapshot!(pages.join("\n"));
    assert_ne!(world.run(&["check", "new.yaml"]).code, Some(0));
    assert_eq!(world.run(&["import"]).code, Some(2));
}
