//! A person approves exactly the action that runs: a call reads the session as its question showed it, and an approval of what has changed
//! since does not count.

use crate::world::World;
use std::process::Stdio;

const DESK: &str = r#"name: desk
state:
  order: { type: string, default: "4711" }
  note: { type: string, optional: true }
tools:
  refund:
    description: Refunds the order.
    effect: unsafe
    approve: { by: clerk, ask: "Refund order {{ state.order }}?" }
    command: [sh, -c, "echo $1 >> book; touch begun; while test -e wait; do sleep 0.1; done", refund, "{{ state.order }}"]
agents:
  clerk: { person: { role: clerk } }
  desk: { system: You refund., tools: [refund] }
entry: desk
"#;

const SCRIPT: &str = "desk: [ { call: { refund: {} } }, Done., Done. ]\n";

fn asked(desk: &str) -> World {
    let world = World::new();
    world.write("steersman.yaml", desk);
    world.write("script.yaml", SCRIPT);
    let ran = world.run(&["run", "--input", "Refund.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.err.contains("Refund order 4711?"), "{ran:?}");
    world
}

fn book(world: &World) -> String {
    std::fs::read_to_string(world.folder.join("book")).unwrap_or_default()
}

fn edit(world: &World, entry: &str) {
    let edited = world.run(&["edit", "last", "--state", entry]);
    assert!(
        edited.code != Some(1) && edited.code != Some(2),
        "{edited:?}"
    );
}

fn approve(world: &World) {
    let approved = world.run(&["approve", "last", "--as", "clerk"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
}

#[test]
fn what_has_changed_since_the_question_is_asked_again() {
    let world = asked(DESK);
    let before = world.json_lines(&["pending"]);
    edit(&world, "order=9999");
    let refused = world.run(&["approve", "last", "--as", "clerk"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let why =
        "the question is over: state.order was \"4711\" and is \"9999\" now. It is asked again as";
    assert!(refused.err.contains(why), "{refused:?}");
    assert_eq!(book(&world), "");
    let after = world.json_lines(&["pending"]);
    assert_ne!(before[0]["id"], after[0]["id"]);
    let text = after[0]["text"].as_str().unwrap();
    assert_eq!(
        text,
        "Refund order 9999? Asked again: state.order was \"4711\" and is \"9999\" now."
    );
    let old = before[0]["id"].as_str().unwrap();
    let late = world.run(&["approve", "last", old, "--as", "clerk"]);
    assert_eq!(late.code, Some(2), "{late:?}");
    assert_eq!(book(&world), "");
    approve(&world);
    assert_eq!(book(&world), "9999\n");
    let shown = world.run(&["show", "last"]).out;
    assert!(
        shown.contains("refund asked again: state.order was"),
        "{shown}"
    );
    let effects = world.run(&["effects", "last"]).out;
    assert!(effects.contains("replaced by"), "{effects}");
}

#[test]
fn what_the_call_does_not_read_may_change() {
    let world = asked(DESK);
    edit(&world, "note=hurry");
    approve(&world);
    assert_eq!(book(&world), "4711\n");
}

#[test]
fn what_changes_after_the_approval_does_not_reach_the_call() {
    let world = asked(DESK);
    let held = world.run(&["hold", "last"]);
    assert_eq!(held.code, Some(0), "{held:?}");
    let approved = world.run(&["approve", "last", "--as", "clerk"]);
    assert_eq!(
        (approved.code, book(&world)),
        (Some(5), String::new()),
        "{approved:?}"
    );
    edit(&world, "order=9999");
    let released = world.run(&["release", "last"]);
    assert_eq!(released.code, Some(0), "{released:?}");
    assert_eq!(book(&world), "4711\n");
}

/// Approves the call, and kills the process while the tool runs. Then the state is edited before the session goes on.
fn killed_and_edited(desk: &str) -> World {
    let world = asked(desk);
    world.write("wait", "");
    let mut driver = world
        .command(&["approve", "last", "--as", "clerk"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !world.folder.join("begun").exists() {
        std::thread::yield_now();
    }
    driver.kill().unwrap();
    driver.wait().unwrap();
    std::fs::remove_file(world.folder.join("wait")).unwrap();
    let paused = world.run(&["pause", "last"]);
    assert_eq!(paused.code, Some(0), "{paused:?}");
    edit(&world, "order=9999");
    let resumed = world.run(&["resume", "last"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    world
}

#[test]
fn another_attempt_does_the_same() {
    let world = killed_and_edited(&DESK.replace("effect: unsafe", "effect: idempotent"));
    assert_eq!(book(&world), "4711\n4711\n");
}

#[test]
fn a_probe_looks_for_what_was_asked_for() {
    let probe = r#"effect: unsafe
    on_doubt: { probe: look, args: { order: "{{ state.order }}" }, done: result == state.order, else: not_performed }"#;
    let look = r#"tools:
  look:
    description: Looks.
    parameters: { order: string }
    effect: read
    command: [sh, -c, "printf '\"%s\"' $(grep -x $1 book)", look, "{{ args.order }}"]
"#;
    let desk = DESK.replace("effect: unsafe", probe);
    let world = killed_and_edited(&desk.replace("tools:\n", look));
    assert_eq!(book(&world), "4711\n");
}

#[test]
fn a_time_out_approves_only_what_was_asked() {
    let asks = "by: clerk, timeout: 1h, on_timeout: approve, ask:";
    let world = World::new();
    world.write("steersman.yaml", &DESK.replace("by: clerk, ask:", asks));
    world.write("script.yaml", SCRIPT);
    world.write("clock.yaml", "2026-01-05T09:00:00Z\n");
    let clock = ["--clock", "clock.yaml"];
    let run = |args: &[&str]| world.run(&[args, &clock].concat());
    run(&["run", "--input", "Refund.", "--script-all", "script.yaml"]);
    run(&["edit", "last", "--state", "order=9999"]);
    world.write("clock.yaml", "2026-01-05T10:00:01Z\n");
    let ran = run(&["run", "--resume", "last"]);
    assert_eq!(
        (ran.code, book(&world)),
        (Some(5), String::new()),
        "{ran:?}"
    );
    assert!(ran.err.contains("Refund order 9999?"), "{ran:?}");
    world.write("clock.yaml", "2026-01-05T11:00:02Z\n");
    let ran = run(&["run", "--resume", "last"]);
    assert_eq!((ran.code, &*book(&world)), (Some(0), "9999\n"), "{ran:?}");
}

#[test]
fn other_arguments_are_not_approved_of_what_has_changed() {
    let desk = DESK
        .replace(
            "effect: unsafe",
            "effect: unsafe\n    parameters: { cents: { type: integer, default: 9 } }",
        )
        .replace("by: clerk, ask:", "by: clerk, edit: [cents], ask:");
    let world = asked(&desk);
    edit(&world, "order=9999");
    let args = ["approve", "last", "--as", "clerk", "--edit", "cents=8"];
    let refused = world.run(&args);
    assert_eq!(
        (refused.code, book(&world)),
        (Some(2), String::new()),
        "{refused:?}"
    );
    assert_eq!(world.run(&args).code, Some(0));
    assert_eq!(book(&world), "9999\n");
}

#[test]
fn an_entry_of_text_takes_what_is_typed() {
    let world = asked(DESK);
    for (typed, order) in [
        ("9999", "9999"),
        ("\"8888\"", "8888"),
        ("true", "true"),
        ("a b", "a b"),
    ] {
        edit(&world, &format!("order={typed}"));
        let (_, shown) = world.json(&["show", "last"]);
        assert_eq!(shown["state"]["order"], order, "{shown}");
    }
}

const BOUNDED: &str = r#"name: desk
state: { limit: { type: integer, default: 100 } }
tools:
  refund:
    description: Refunds.
    parameters: { cents: integer }
    effect: unsafe
    requires: { that: args.cents <= state.limit, else: That is too much. }
    approve: { by: clerk, edit: [cents] }
    command: [sh, -c, "echo $1 >> book; echo ok", refund, "{{ args.cents }}"]
agents:
  clerk: { person: { role: clerk } }
  desk: { system: You refund., tools: [refund] }
entry: desk
"#;

fn bounded() -> World {
    let world = World::new();
    world.write("steersman.yaml", BOUNDED);
    let script = "desk: [ { call: { refund: { cents: 90 } } }, \"{{ request.last }}\" ]\n";
    world.write("script.yaml", script);
    let ran = world.run(&["run", "--input", "Refund.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    world
}

/// Arguments that may not run are refused to the person who gives them, and the question stays.
#[test]
fn arguments_that_fail_a_guard_are_refused_to_the_approver() {
    let world = bounded();
    let pending = world.json_lines(&["pending"]);
    let approve = ["approve", "last", "--as", "clerk", "--edit"];
    let ran = world.run(&[&approve[..], &["cents=101"]].concat());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("That is too much."), "{ran:?}");
    assert_eq!(world.json_lines(&["pending"])[0]["id"], pending[0]["id"]);
    let ran = world.run(&[&approve[..], &["cents=80"]].concat());
    assert_eq!((ran.code, &*book(&world)), (Some(0), "80\n"), "{ran:?}");
    let effects = world.run(&["effects", "last"]).out;
    assert!(!effects.contains("as edited"), "{effects}");
    // A question that is over says who ended it, with what, and where.
    for typed in [
        &["approve", "last", "--as", "clerk"][..],
        &["reject", "last", "refund", "--as", "clerk"],
    ] {
        let ran = world.run(typed);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let said = "was given with other arguments by clerk, @";
        assert!(ran.err.contains("the approval of `refund`"), "{ran:?}");
        assert!(ran.err.contains(said), "{ran:?}");
    }
}

/// If the guard closes while the approval is on its way, `effects` has what the approver decided, and why it did not run.
#[test]
fn what_an_approver_edited_is_shown_if_it_is_refused_later() {
    let world = bounded();
    let ran = world.run(&["edit", "last", "--state", "limit=10", "--no-run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let edit = [
        "approve", "last", "--as", "clerk", "--edit", "cents=80", "--no-run",
    ];
    let ran = world.run(&edit);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.run(&["run", "--resume", "last"]);
    assert_eq!(book(&world), "", "{ran:?}");
    let effects = world.run(&["effects", "last"]).out;
    assert!(
        effects.contains("refused as edited: That is too much."),
        "{effects}"
    );
    assert!(effects.contains("refund(cents: 80)"), "{effects}");
}
