//! `new NAME --from TEXT`: a model drafts a definition, and mends what `check` finds.

use crate::world::World;
use serde_json::{Value as Json, json};

/// Has two faults: a tool that is not there, and a test without a script for its agent.
const WRONG: &str = "steersman: 1
name: tea
agents: { seller: { system: You sell tea., tools: [pour] } }
";

const RIGHT: &str = "steersman: 1
name: tea
agents: { seller: { system: You sell tea. } }
tests:
  greets: { script: { seller: [ Welcome. ] }, steps: [ { say: Hi. } ], expect: [ { answer: Welcome. } ] }
";

fn world(drafts: &[&str]) -> World {
    let world = World::new();
    let draft =
        |text: &&str| json!({ "output": { "definition": text, "open": ["No prices are named."] } });
    let script = json!({ "drafter": drafts.iter().map(draft).collect::<Vec<Json>>() });
    world.write("script.yaml", &script.to_string());
    world
}

const NEW: [&str; 6] = [
    "new",
    "tea",
    "--from",
    "It sells tea.",
    "--script-all",
    "script.yaml",
];

#[test]
fn a_draft_is_mended_until_check_finds_nothing() {
    let world = world(&[WRONG, RIGHT]);
    let ran = world.run(&NEW);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.all().contains("2 drafts"), "{ran:?}");
    assert!(ran.out.contains("No prices are named."), "{ran:?}");
    let kept = std::fs::read_to_string(world.folder.join("tea/steersman.yaml")).unwrap();
    assert_eq!(kept, RIGHT);
    assert_eq!(world.run(&["test", "tea"]).code, Some(0));
    let again = world.run(&NEW);
    assert_eq!(again.code, Some(2), "nothing is overwritten: {again:?}");
}

#[test]
fn a_draft_that_stays_wrong_is_written_with_what_is_left_to_mend() {
    let world = world(&[WRONG; 6]);
    let ran = world.run(&NEW);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.err.contains("error[E0201]") && ran.err.contains("pour"),
        "{ran:?}"
    );
    assert!(world.folder.join("tea/steersman.yaml").is_file());
}

#[test]
fn a_model_that_gives_no_draft_leaves_nothing_behind() {
    let world = World::new();
    world.write("script.yaml", "drafter: [ { error: bad_request } ]\n");
    let ran = world.run(&NEW);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!world.folder.join("tea").exists(), "{ran:?}");
}
