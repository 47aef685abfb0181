//! `context` shows the requests of model calls from another process: as they were sent, what changed between them, and
//! what broke the cached prefix.

use crate::world::World;

const SHOP: &str = r#"name: shop
state: { balance: { type: integer, default: 1 }, other: { type: string, default: a } }
tools:
  pay: { description: Pays., parameters: { cents: integer }, set: { balance: "{{ state.balance + args.cents }}" } }
  look: { description: Looks., parameters: { key: string }, effect: read, command: [echo, seen], render: { result: "{{ args.key }} is {{ state[args.key] }}" } }
agents:
  desk:
    system: |
      You keep a shop.
      Balance: {{ state.balance }}
    tools: [pay, look]
"#;
const SCRIPT: &str = "desk: [ { call: { look: { key: balance } } }, { call: { pay: { cents: 5 } } }, { call: { look: { key: other } } }, Done. ]
";

/// A session with four model calls, answered at lines 2, 4, 5 and 7.
fn shop() -> World {
    let world = World::new();
    world.write("steersman.yaml", SHOP);
    world.write("script.yaml", SCRIPT);
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Go."]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Done."), "{ran:?}");
    world
}

/// Each request is rendered again from the log, and equals the one that was sent. If it cannot, `context` says so.
#[test]
fn a_request_is_rendered_as_it_was_sent_or_context_says_otherwise() {
    let world = shop();
    for line in ["2", "4", "5", "7"] {
        let (ran, told) = world.json(&["context", &format!("last@{line}")]);
        assert_eq!(told["as_sent"], true, "{line}: {ran:?}");
    }
    // After an erasure the request is no longer the one that was sent.
    let erased = world.run(&["erase", "last@1", "--yes"]);
    assert_eq!(erased.code, Some(0), "{erased:?}");
    let (_, told) = world.json(&["context", "last@7"]);
    assert_eq!(told["as_sent"], false, "{told}");
    let shown = world.run(&["context", "last@7"]);
    let all = format!("{}{}", shown.out, shown.err);
    assert!(
        all.contains("renders it otherwise than it was sent"),
        "{all}"
    );
}

/// A template reads state by a computed key. A request after a change of this state renders it with the new value, also
/// in the history.
#[test]
fn state_read_by_a_computed_key_is_never_stale() {
    let world = shop();
    let text = |line: &str| world.run(&["context", &format!("last@{line}")]).out;
    assert!(text("4").contains("balance is 1"), "{}", text("4"));
    let later = text("7");
    assert!(later.contains("balance is 6"), "{later}");
    assert!(!later.contains("balance is 1"), "{later}");
}

/// State in the system prompt breaks the cached prefix. No part of the prompt is moved; `check` names the place, and
/// `context` the requests at which the prefix broke.
#[test]
fn state_that_breaks_the_prefix_is_told_and_not_moved() {
    let world = shop();
    let checked = world.run(&["check", "."]);
    let all = format!("{}{}", checked.out, checked.err);
    for told in ["N0402", "steersman.yaml:", "Balance: {{ state.balance }}"] {
        assert!(all.contains(told), "`{told}` in {all}");
    }
    let (_, told) = world.json(&["context", "last@7"]);
    let parts: Vec<&str> = told["segments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|segment| segment["part"].as_str().unwrap())
        .collect();
    assert_eq!(parts[..3], ["system", "tools", "history"], "{told}");
    let cache = world.run(&["context", "last", "--cache"]).out;
    let row = |line: &str| {
        let row = cache.lines().find(|row| row.trim().starts_with(line));
        row.unwrap_or_else(|| panic!("{line} in {cache}"))
            .to_owned()
    };
    assert!(row("@5").ends_with("system"), "{cache}");
    assert!(
        !row("@4").contains("system") && !row("@7").contains("system"),
        "{cache}"
    );
    let diff = world.run(&["context", "last@5", "--diff"]).out;
    assert!(diff.contains("system"), "{diff}");
}
