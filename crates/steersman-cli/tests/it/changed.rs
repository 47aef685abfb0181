//! A definition is edited, or the address of a service changes, while sessions wait.

use crate::world::{Ran, Service, World};

const DESK: &str = "name: desk
tools:
  note: { description: Notes., parameters: { what: string }, set: { noted: \"{{ args.what }}\" } }
  pay: { description: Pays., effect: unsafe, approve: true, command: [echo, paid] }
state: { noted: { type: string, optional: true } }
agents:
  desk: { system: You are a desk., tools: [note, pay] }
";

const SCRIPT: &str = "desk:
  - call: { note: { what: kettle } }
  - \"One: {{ request.system }}\"
  - \"Two: {{ request.system }}\"
  - \"Three: {{ request.system }}\"
  - \"Four: {{ request.system }}\"
";

fn desk(script: &str) -> World {
    let world = World::new();
    world.write("desk/steersman.yaml", DESK);
    world.write("script.yaml", script);
    let ran = world.run(&[
        "run",
        "desk",
        "--script-all",
        "script.yaml",
        "--input",
        "Hi.",
    ]);
    assert!(matches!(ran.code, Some(0 | 5)), "{ran:?}");
    world
}

fn edit(world: &World, from: &str, to: &str) {
    let path = world.folder.join("desk/steersman.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from));
    std::fs::write(path, text.replace(from, to)).unwrap();
}

fn again(world: &World, more: &[&str]) -> Ran {
    let mut args = vec!["run", "--resume", "last", "--input", "Again."];
    args.extend(more);
    world.run(&args)
}

const CHANGED: &str = "definition changed (";

#[test]
fn an_edit_is_told_and_taken_with_rebind() {
    let world = desk(SCRIPT);
    let ran = again(&world, &[]);
    assert!(!ran.err.contains(CHANGED), "{ran:?}");
    edit(&world, "a desk", "a counter");
    let ran = again(&world, &[]);
    assert_eq!(ran.out.trim(), "Three: You are a desk.");
    let told = ran.err.lines().find(|line| line.contains(CHANGED)).unwrap();
    assert!(told.contains("; this session stays on "), "{told}");
    assert!(told.ends_with("; --rebind takes the new one"), "{told}");
    let ran = again(&world, &["--rebind"]);
    assert_eq!(ran.out.trim(), "Four: You are a counter.", "{ran:?}");
    assert!(
        ran.err.contains("goes on under another definition: "),
        "{ran:?}"
    );
    // The session is bound to the new definition now.
    let ran = world.run(&["run", "--resume", "last", "--rebind"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("the one that it is bound to"), "{ran:?}");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
}

#[test]
fn a_message_to_a_session_tells_of_an_edit() {
    let world = desk(SCRIPT);
    edit(&world, "a desk", "a counter");
    let ran = world.run(&["send", "last", "More."]);
    assert_eq!(ran.out.trim(), "Two: You are a desk.");
    assert!(ran.err.contains(CHANGED), "{ran:?}");
    assert!(ran.err.contains("--rebind` takes the new one"), "{ran:?}");
    // A comment does not change the definition.
    let world = desk(SCRIPT);
    edit(&world, "name: desk", "# the desk\nname: desk");
    let ran = world.run(&["send", "last", "More."]);
    assert!(!ran.err.contains(CHANGED), "{ran:?}");
    edit(&world, "agents:", "agents: [");
    let ran = world.run(&["send", "last", "More."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("has errors now"), "{ran:?}");
}

#[test]
fn another_definition_is_refused_without_rebind() {
    let world = desk(SCRIPT);
    let ran = again(&world, &["desk"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    edit(&world, "a desk", "a counter");
    let before = world.json_lines(&["log", "last"]);
    let ran = again(&world, &["desk"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("is bound to"), "{ran:?}");
    assert!(ran.err.contains("--rebind desk"), "{ran:?}");
    assert_eq!(world.json_lines(&["log", "last"]), before);
    // The definition may have moved to another folder.
    std::fs::rename(world.folder.join("desk"), world.folder.join("moved")).unwrap();
    let ran = again(&world, &["--rebind"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("--rebind DEFINITION"), "{ran:?}");
    let ran = again(&world, &["moved", "--rebind"]);
    assert_eq!(ran.out.trim(), "Three: You are a counter.", "{ran:?}");
}

/// The same definition at another place: a session follows it, also while a call waits for a person, and its commands run there.
#[test]
fn a_session_follows_its_definition_to_another_folder() {
    let world = World::new();
    let desk = DESK.replace("[echo, paid]", "[cat, price]");
    world.write("desk/steersman.yaml", &desk);
    world.write("desk/price", "39.5");
    world.write(
        "script.yaml",
        "desk: [ { call: { pay: {} } }, \"Paid {{ request.last }}\" ]\n",
    );
    let script = ["--script-all", "script.yaml", "--input", "Hi."];
    let ran = world.run(&[&["run", "desk"][..], &script].concat());
    assert_eq!(ran.code, Some(5), "{ran:?}");
    std::fs::rename(world.folder.join("desk"), world.folder.join("moved")).unwrap();
    let ran = world.run(&["run", "--resume", "last"]);
    assert!(ran.err.contains("desk, is not there"), "{ran:?}");
    assert!(ran.err.contains("--rebind DEFINITION"), "{ran:?}");
    let ran = world.run(&["run", "--resume", "last", "moved"]);
    assert!(ran.err.contains("--rebind moves it"), "{ran:?}");
    let ran = world.run(&["run", "--resume", "last", "--rebind", "moved"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.err.contains("follows its definition to "), "{ran:?}");
    let ran = world.run(&["run", "--resume", "last", "--rebind", "moved"]);
    assert!(ran.err.contains("the one that it is bound to"), "{ran:?}");
    let ran = world.run(&["approve", "last"]);
    assert_eq!(
        (ran.code, ran.out.trim()),
        (Some(0), "Paid 39.5"),
        "{ran:?}"
    );
    assert!(!ran.err.contains("is not there"), "{ran:?}");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
    let (_, told) = world.json(&["rerun", "last"]);
    assert_eq!(told["result"], "same", "{told:#}");
}

#[test]
fn a_definition_that_lacks_what_a_session_has_is_refused() {
    let world = desk(SCRIPT);
    let before = world.json_lines(&["log", "last"]);
    for (from, to, why) in [
        ("  desk: {", "  counter: {", "the agent `desk` is not in it"),
        (
            "noted: { type: string",
            "noted: { type: string, pattern: '[0-9]+'",
            "state.noted of agent `desk`: does not match",
        ),
        (
            "noted: { type: string",
            "noted: { type: secret",
            "a secret stays one",
        ),
    ] {
        edit(&world, from, to);
        let ran = world.run(&["run", "--resume", "last", "--rebind"]);
        assert_eq!(ran.code, Some(4), "{ran:?}");
        assert!(ran.err.contains(why), "{ran:?}");
        edit(&world, to, from);
    }
    let refused =
        |line: &serde_json::Value| line["line"].as_u64() > before.last().unwrap()["line"].as_u64();
    let after = world.json_lines(&["log", "last"]);
    assert!(after.iter().any(refused), "the refusal is in the log");
    // New state gets its default.
    edit(
        &world,
        "state: {",
        "state: { mood: { type: string, default: fine },",
    );
    edit(&world, "You are a desk.", "\"You are {{ state.mood }}.\"");
    let ran = again(&world, &["--rebind"]);
    assert_eq!(ran.out.trim(), "Two: You are fine.", "{ran:?}");
    // A branch that starts before the new definition would lack the new state.
    let ran = world.run(&["fork", "last@2", "--say", "There?"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("state.mood is new since"), "{ran:?}");
}

#[test]
fn a_session_that_waits_keeps_its_definition() {
    let world = desk("desk: [ { call: { pay: {} } }, Paid. ]\n");
    edit(&world, "a desk", "a counter");
    let ran = world.run(&["run", "--resume", "last", "--rebind"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.err.contains("is at work or waits"), "{ran:?}");
    let ran = world.run(&["approve", "last"]);
    assert_eq!(ran.out.trim(), "Paid.", "{ran:?}");
}

/// `config: { shop_url: { env: SHOP_URL, live: true } }`: the address of the service changes while sessions wait, and
/// they call the new one.
#[test]
fn parked_sessions_call_the_new_address() {
    let mut world = World::example("support");
    let service = Service::support(&mut world, false);
    for _ in 0..3 {
        let said = "My kettle (order 4711) arrived broken. I want my money back.";
        let script = ["--script-all", "support/script.yaml", "--input", said];
        let ran = world.run(&[&["run", "support"][..], &script].concat());
        assert_eq!(ran.code, Some(5), "{ran:?}");
    }
    drop(service);
    let service = Service::support(&mut world, false);
    let before = service.refunds();
    for session in world.json_lines(&["sessions"]) {
        let id = session["session"].as_str().unwrap();
        let ran = world.run(&["approve", id, "--as", "supervisor"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.err.contains(CHANGED), "{ran:?}");
    }
    assert_eq!(service.refunds() - before, 3);
}
