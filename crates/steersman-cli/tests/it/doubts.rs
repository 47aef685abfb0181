//! An effect that may have happened is not repeated: not by an equal call that waited for a slot, not after a kill, not
//! with the same arguments in another form, and not in a rerun.

use crate::world::World;

const PAYS: &str = r#"name: desk
tools:
  pay:
    description: Pays.
    parameters: { cents: number, memo: optional string }
    effect: unsafe
    parallel: 1
    on_doubt: ask
    command: [sh, -c, "echo paid >> book; touch begun; while test -e wait; do sleep 0.1; done; exit 1"]
agents: { desk: { system: You pay., tools: [pay] } }
"#;

fn world(script: &str) -> World {
    let world = World::new();
    world.write("steersman.yaml", PAYS);
    world.write("script.yaml", script);
    world
}

fn payments(world: &World) -> usize {
    std::fs::read_to_string(world.folder.join("book")).map_or(0, |book| book.lines().count())
}

const TWICE: &str =
    "desk: [ { call: [ { pay: { cents: 9 } }, { pay: { cents: 9 } } ] }, So be it., So be it. ]\n";
const RUN: &[&str] = &["run", "--input", "Pay.", "--script-all", "script.yaml"];

#[test]
fn what_waited_for_a_slot_does_not_begin_beside_a_doubt() {
    let world = world(TWICE);
    let ran = world.run(RUN);
    assert_eq!((ran.code, payments(&world)), (Some(7), 1), "{ran:?}");
    assert!(
        ran.err.contains("The same call may have happened"),
        "{ran:?}"
    );

    world.write(
        "steersman.yaml",
        &PAYS.replace("on_doubt: ask", "on_doubt: fail"),
    );
    let ran = world.run(RUN);
    assert_eq!((ran.code, payments(&world)), (Some(5), 2), "{ran:?}");
    assert!(
        ran.err
            .contains("may have happened before, and nobody knows"),
        "{ran:?}"
    );
}

#[test]
fn what_waited_for_a_slot_does_not_begin_where_its_owner_was_killed() {
    let world = world(TWICE);
    world.write("wait", "");
    let null = std::process::Stdio::null;
    let mut driver = world
        .command(RUN)
        .stdout(null())
        .stderr(null())
        .spawn()
        .unwrap();
    let begun = world.folder.join("begun");
    while !begun.exists() {
        std::thread::yield_now();
    }
    driver.kill().unwrap();
    driver.wait().unwrap();
    std::fs::remove_file(world.folder.join("wait")).unwrap();
    let ran = world.run(&["run", "--resume", "last"]);
    assert_eq!((ran.code, payments(&world)), (Some(7), 1), "{ran:?}");
}

#[test]
fn the_same_in_other_words_is_the_same() {
    let again = "desk: [ { call: { pay: { cents: 9 } } }, No., { call: { pay: { cents: 9.0, memo: null } } }, No. ]\n";
    let world = world(again);
    assert_eq!(world.run(RUN).code, Some(7));
    assert_eq!(world.run(&["resolve", "last", "--fail"]).code, Some(0));
    let ran = world.run(&["send", "last", "Again."]);
    assert_eq!((ran.code, payments(&world)), (Some(5), 1), "{ran:?}");
}

#[test]
fn a_live_rerun_does_not_do_what_is_in_doubt() {
    let world = world("desk: [ { call: { pay: { cents: 9 } } }, So be it. ]\n");
    assert_eq!(world.run(RUN).code, Some(7));
    let (_, shown) = world.json(&["show", "last"]);
    let session = shown["session"].as_str().unwrap();
    let set = "agents.desk.system=Pay.";
    let ran = world.run(&["rerun", session, "--live", "--set", set]);
    assert_eq!(payments(&world), 1, "{ran:?}");
    let log = world.run(&["log", "last"]).out;
    assert!(log.contains("in_doubt"), "{log}");
}

#[test]
fn what_is_called_harmless_now_is_not_done_again_in_a_rerun() {
    let world = world("desk: [ { call: { pay: { cents: 9 } } }, Paid. ]\n");
    world.write("steersman.yaml", &PAYS.replace("exit 1", "echo ok"));
    assert_eq!(world.run(RUN).code, Some(0));
    let (_, shown) = world.json(&["show", "last"]);
    let session = shown["session"].as_str().unwrap();
    for class in ["pure", "read", "idempotent"] {
        let set = format!("tools.pay.effect={class}");
        let ran = world.run(&["rerun", session, "--set", &set]);
        assert_eq!((ran.code, payments(&world)), (Some(0), 1), "{ran:?}");
    }
}

const PROBED: &str = r#"name: desk
state: { receipt: optional string }
tools:
  pay:
    description: Pays.
    parameters: { cents: number }
    effect: unsafe
    on_doubt: { probe: payments, done: result.id != none, else: not_performed, by: ops }
    command: [sh, -c, "echo paid >> book; exit 1"]
    set: { receipt: "{{ result.id }}" }
    result: "Paid, {{ result.id }}."
  payments:
    effect: read
    command: [sh, -c, "echo >> asked; while test -e wait; do sleep 0.1; done; test -e down && exit 3; echo '{\"id\": \"r-1\"}'"]
agents:
  desk: { system: You pay., tools: [pay] }
  ops: { person: { role: ops } }
entry: desk
"#;

fn probed() -> World {
    let world = World::new();
    world.write("steersman.yaml", PROBED);
    world.write(
        "script.yaml",
        "desk: [ { call: { pay: { cents: 9 } } }, Paid. ]\n",
    );
    world
}

fn lines_of(world: &World, file: &str) -> usize {
    std::fs::read_to_string(world.folder.join(file)).map_or(0, |text| text.lines().count())
}

#[test]
fn a_probe_that_a_kill_ended_is_begun_again() {
    let world = probed();
    world.write("wait", "");
    let null = std::process::Stdio::null;
    let mut driver = world
        .command(RUN)
        .stdout(null())
        .stderr(null())
        .spawn()
        .unwrap();
    while lines_of(&world, "asked") == 0 {
        std::thread::yield_now();
    }
    driver.kill().unwrap();
    driver.wait().unwrap();
    std::fs::remove_file(world.folder.join("wait")).unwrap();
    let ran = world.run(&["run", "--resume", "last"]);
    assert_eq!((ran.code, payments(&world)), (Some(0), 1), "{ran:?}");
    assert_eq!(lines_of(&world, "asked"), 2);
    let told = world.run(&["log", "last"]).out;
    let why = world.run(&["why", "last", "2.0"]);
    for said in ["payments attempt 2", "happened"] {
        assert!(told.contains(said), "{told}");
    }
    assert!(why.out.contains("payments asked, attempt 2"), "{why:?}");
    let effects = world.run(&["effects", "last"]).out;
    let probe = effects
        .lines()
        .find(|row| row.contains("payments("))
        .unwrap();
    assert!(probe.contains("read") && probe.contains('2'), "{effects}");
    let shown = world.run(&["show", "last"]).out;
    assert!(
        shown.contains("payments is asked whether pay happened"),
        "{shown}"
    );
}

#[test]
fn a_probe_that_fails_is_told_and_what_is_needed_is_named() {
    let world = probed();
    world.write("down", "");
    let ran = world.run(RUN);
    assert_eq!((ran.code, payments(&world)), (Some(7), 1), "{ran:?}");
    let told = "the probe payments was tried once and failed";
    assert!(ran.err.contains(told), "{ran:?}");
    assert!(ran.err.contains("for ops"), "{ran:?}");
    assert!(ran.err.contains("--done='{\"id\": ...}'"), "{ran:?}");
    assert!(ran.err.contains("steersman retry"), "{ran:?}");
    let (_, pending) = world.json(&["pending"]);
    let pending = pending.to_string();
    for told in [
        "\"for\":[\"ops\"]",
        "\"needs\":[\"id\"]",
        "\"attempts\":1",
        "\"failed\":true",
    ] {
        assert!(pending.contains(told), "{told}: {pending}");
    }

    for done in ["--done", "--done={}"] {
        let refused = world.run(&["resolve", "last", done, "--as", "ops"]);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert!(refused.err.contains("`pay` needs `id`"), "{refused:?}");
    }
    let refused = world.run(&["resolve", "last", "--fail"]);
    assert!(
        refused.err.contains("only `ops` may answer this"),
        "{refused:?}"
    );

    std::fs::remove_file(world.folder.join("down")).unwrap();
    let ran = world.run(&["retry", "last", "--effect", "2.0"]);
    assert_eq!((ran.code, payments(&world)), (Some(0), 1), "{ran:?}");
    let (_, shown) = world.json(&["show", "last"]);
    assert!(shown.to_string().contains("r-1"), "{shown}");
}

/// A printed command has a placeholder for the result. Typed unchanged, it settles nothing.
#[test]
fn what_stands_for_a_result_is_none() {
    let world = world("desk: [ { call: { pay: { cents: 9 } } }, So be it. ]\n");
    assert_eq!(world.run(RUN).code, Some(7));
    for typed in [
        "--done={...}",
        "--done=...",
        "--done={\"id\": ...}",
        "--done=[1,",
    ] {
        let ran = world.run(&["resolve", "last", typed]);
        assert_eq!(ran.code, Some(2), "{typed}: {ran:?}");
    }
    let open = world.json_lines(&["pending"]);
    assert_eq!(open[0]["kind"], "doubt", "{open:?}");
    let ran = world.run(&["resolve", "last", "--done=paid at the bank"]);
    assert_eq!((ran.code, payments(&world)), (Some(0), 1), "{ran:?}");
}

/// A doubt stays after an interrupt: `pending` lists it, and `effects` prints the command that settles it.
#[test]
fn what_is_left_in_doubt_is_listed_and_ended_as_printed() {
    let world = World::new();
    let asked = PAYS.replace("on_doubt: ask", "on_doubt: { by: ops }").replace(
        "agents: { desk: { system: You pay., tools: [pay] } }",
        "agents:\n  desk: { system: You pay., tools: [pay] }\n  ops: { person: { role: ops } }\nentry: desk",
    );
    world.write("steersman.yaml", &asked);
    let script = "desk: [ { call: { pay: { cents: 9 } } }, So be it., So be it. ]\n";
    world.write("script.yaml", script);
    assert_eq!(world.run(RUN).code, Some(7));
    let ran = world.run(&["send", "last", "--interrupt", "Stop."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.err.contains("stays unknown"), "{ran:?}");
    let pending = world.run(&["pending"]);
    assert!(
        pending.out.contains("doubt pay(cents: 9), left behind"),
        "{pending:?}"
    );
    let (_, listed) = world.json(&["pending"]);
    let told = listed.to_string();
    for part in ["\"left\":true", "\"for\":[\"ops\"]"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let effects = world.run(&["effects", "last"]);
    assert!(effects.out.contains("in doubt"), "{effects:?}");
    assert!(effects.err.contains(" 2.0@"), "{effects:?}");
    assert!(effects.err.contains("--as ops --done="), "{effects:?}");
    let refused = world.run(&["resolve", "last", "--not-performed"]);
    assert!(
        refused.err.contains("only `ops` may answer this"),
        "{refused:?}"
    );
    let ran = world.run(&["resolve", "last", "--done=\"paid 9\"", "--as", "ops"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let effects = world.run(&["effects", "last"]);
    assert!(effects.out.contains("done (says ops)"), "{effects:?}");
    assert_eq!(payments(&world), 1);
}

/// A line of the current branch settles a doubt of a branch that was left. `show` of the branch that was left tells it
/// too.
#[test]
fn what_was_settled_behind_a_rewind_is_told_on_the_branch_that_was_left() {
    let world =
        world("desk: [ { call: { pay: { cents: 9 } } }, So be it. ]\ndesk@other: [ Otherwise. ]\n");
    assert_eq!(world.run(RUN).code, Some(7));
    let ran = world.run(&["rewind", "last@1", "--label", "other"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let stands = |address| {
        let (_, shown) = world.json(&["show", address]);
        shown["effects"].clone()
    };
    assert_eq!(stands("last:main")[0]["standing"], "in doubt");
    let ran = world.run(&["resolve", "last", "2.0", "--done=\"paid 9\""]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let left = stands("last:main");
    assert!(
        left[0]["standing"].to_string().starts_with("\"done (says "),
        "{left}"
    );
    assert_eq!(stands("last:other"), serde_json::json!([]));
    let page = world.run(&["show", "last:main"]);
    assert!(
        page.out.contains("pay: 1 intended, 1 done, 0 repeated"),
        "{page:?}"
    );
}
