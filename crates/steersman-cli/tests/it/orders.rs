//! `pause`, `hold`, `retry`, `migrate` and `cancel`, for one session and for many.

use crate::world::{Ran, World};
use serde_json::Value as Json;
use std::fmt::Write;

const DESK: &str = r#"name: desk
config: { limit: { type: integer, default: 10 }, url: { type: string, live: true, env: URL, default: here } }
tools:
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, command: [sh, -c, "echo paid >> book; echo ok"] }
agents:
  desk: { system: "You settle up to {{ config.limit }}.", tools: [pay] }
"#;

fn desk(sessions: usize) -> World {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write(
        "script.yaml",
        "desk: [ Hello., { call: { pay: { cents: 5 } } }, Paid. ]\n",
    );
    for _ in 0..sessions {
        assert_eq!(scripted(&world, &["run", "--input", "Hi."]).code, Some(0));
    }
    world
}

fn scripted(world: &World, args: &[&str]) -> Ran {
    let mut args = args.to_vec();
    args.extend(["--script-all", "script.yaml"]);
    world.run(&args)
}

fn payments(world: &World) -> usize {
    std::fs::read_to_string(world.folder.join("book")).map_or(0, |book| book.lines().count())
}

fn documents(ran: &Ran) -> Vec<Json> {
    let lines = ran.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_paused_session_takes_messages_and_begins_nothing_until_it_is_resumed() {
    let world = desk(1);
    let (code, told) = world.json(&["pause", "last"]);
    assert_eq!((code, &told["status"]), (Some(0), &"paused".into()));
    let ran = scripted(&world, &["send", "last", "Pay."]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    // Also if another process drives it.
    assert_eq!(scripted(&world, &["run", "--resume", "last"]).code, Some(5));
    assert_eq!(payments(&world), 0);
    assert_eq!(world.json(&["sessions"]).1["status"], "paused");
    assert_eq!(world.json(&["show"]).1["orders"][0], "paused");
    let ran = scripted(&world, &["resume", "last"]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Paid."), "{ran:?}");
    assert_eq!(payments(&world), 1);
}

/// A call that is approved while its session is paused does not make the session anything but paused.
#[test]
fn what_is_paused_is_found_and_resumed_by_its_status() {
    let world = desk(2);
    world.write(
        "steersman.yaml",
        &DESK.replace("effect: unsafe", "effect: unsafe, approve: true"),
    );
    let started = scripted(&world, &["run", "--input", "Hi."]);
    assert_eq!(started.code, Some(0), "{started:?}");
    assert_eq!(scripted(&world, &["send", "last", "Pay."]).code, Some(5));
    assert_eq!(world.run(&["pause", "last"]).code, Some(0));
    let approved = scripted(&world, &["approve", "last"]);
    assert_eq!((approved.code, payments(&world)), (Some(5), 0));
    let paused = world.json_lines(&["sessions", "--where", "status = paused"]);
    assert_eq!(paused.len(), 1, "{paused:?}");
    let resume = ["resume", "--where", "status = paused", "--yes"];
    let ran = scripted(&world, &resume);
    assert_eq!((ran.code, payments(&world)), (Some(0), 1), "{ran:?}");
    let paused = world.json_lines(&["sessions", "--where", "status = paused"]);
    assert!(paused.is_empty(), "{paused:?}");
}

#[test]
fn what_an_order_holds_is_called_held() {
    let world = desk(1);
    assert_eq!(world.run(&["hold", "last", "--tool", "pay"]).code, Some(0));
    assert_eq!(scripted(&world, &["send", "last", "Pay."]).code, Some(5));
    let effects = world.json_lines(&["effects", "last"]);
    assert_eq!(effects[0]["standing"], "held");
    assert_eq!(world.json(&["show"]).1["effects"][0]["standing"], "held");
    assert_eq!(
        scripted(&world, &["release", "last", "--tool", "pay"]).code,
        Some(0)
    );
    let effects = world.json_lines(&["effects", "last"]);
    assert_eq!(effects[0]["standing"], "done");
}

#[test]
fn effects_of_a_tool_are_held_in_all_sessions_that_match() {
    let world = desk(3);
    // Without a terminal nobody can confirm, so `--yes` is needed.
    let ran = world.run(&["hold", "--tool", "pay", "--where", "network = desk"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("3 sessions match"), "{ran:?}");
    let hold = [
        "hold",
        "--tool",
        "pay",
        "--where",
        "network = desk",
        "--yes",
    ];
    let ran = world.run(&[&hold[..], &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        documents(&ran).iter().all(|d| d["status"] == "held"),
        "{ran:?}"
    );
    assert_eq!(
        world.run(&hold).code,
        Some(0),
        "a second order changes nothing"
    );
    let (code, told) = world.json(&["send", "last", "Pay.", "--script-all", "script.yaml"]);
    assert_eq!(code, Some(5), "{told}");
    assert_eq!(told["pending"][0]["kind"], "hold");
    assert_eq!(payments(&world), 0);
    insta::assert_snapshot!(world.page(&["pending"]));
    let release = [
        "release",
        "--tool",
        "pay",
        "--where",
        "network = desk",
        "--yes",
        "--json",
    ];
    let ran = scripted(&world, &release);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        documents(&ran).iter().all(|d| d["status"] == "answered"),
        "{ran:?}"
    );
    assert_eq!(payments(&world), 1);
}

#[test]
fn what_an_outage_failed_is_taken_up_where_it_failed() {
    let world = desk(0);
    world.write("script.yaml", "desk: [ { error: provider_overloaded } ]\n");
    for _ in 0..2 {
        assert_eq!(scripted(&world, &["run", "--input", "Hi."]).code, Some(1));
    }
    world.write("script.yaml", "desk: [ Well again. ]\n");
    let which = ["--where", "failed = provider_*", "--yes"];
    let seen = world.json_lines(&["sessions", "--where", "failed = provider_*"]);
    assert_eq!(seen.len(), 2);
    let ran = scripted(&world, &[&["retry", "--json"][..], &which[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        documents(&ran).iter().all(|d| d["answer"] == "Well again."),
        "{ran:?}"
    );
    let none = world.run(&[&["retry"][..], &which[..]].concat());
    assert_eq!(none.code, Some(0), "{none:?}");
    assert!(none.err.contains("No session matches."), "{none:?}");
    let ran = world.run(&["retry", "last"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("nothing failed here"), "{ran:?}");
}

/// Sessions that do not take an order, or in which it changes nothing, are named with the reason, and the sum counts them by themselves.
#[test]
fn each_session_of_many_is_named_with_what_became_of_the_order() {
    let world = desk(1);
    world.write("script.yaml", "desk: [ { error: provider_overloaded } ]\n");
    assert_eq!(scripted(&world, &["run", "--input", "Hi."]).code, Some(1));
    world.write("script.yaml", "desk: [ Well again. ]\n");
    let all = ["--where", "network = desk", "--yes"];

    // One has failed, the other one has not.
    let ran = scripted(&world, &[&["retry"][..], &all].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("nothing failed here"), "{ran:?}");
    assert!(ran.out.contains("tried again: answered"), "{ran:?}");
    assert!(
        ran.err.contains("2 sessions: 1 tried again, 1 refused."),
        "{ran:?}"
    );

    // One is paused, the other one is not.
    assert_eq!(world.run(&["pause", "last"]).code, Some(0));
    let ran = scripted(&world, &[&["resume"][..], &all].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("goes on: answered"), "{ran:?}");
    assert!(
        ran.out.contains("was not paused: answered as before"),
        "{ran:?}"
    );
    assert!(
        ran.err.contains("2 sessions: 1 goes on, 1 unchanged."),
        "{ran:?}"
    );
    let ran = scripted(&world, &[&["resume", "--json"][..], &all].concat());
    for told in documents(&ran) {
        assert_eq!(
            (&told["fate"], &told["status"]),
            (&"unchanged".into(), &"answered".into()),
            "{told}"
        );
        assert_eq!(told["why"], "was not paused: answered as before", "{told}");
    }

    // Nothing is held, and nobody drives.
    let ran = scripted(&world, &[&["release", "--tool", "pay"][..], &all].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(
        ran.out.matches("`pay` is not held here").count(),
        2,
        "{ran:?}"
    );
    assert!(ran.err.contains("2 sessions: 0 "), "{ran:?}");
    let ran = world.run(&[&["resume", "--no-run"][..], &all].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.err.contains("2 sessions: 0 goes on, 2 in the inbox."),
        "{ran:?}"
    );
}

#[test]
fn values_are_bound_anew_and_the_change_is_shown_first() {
    let world = desk(2);
    let ran = world.run(&[
        "migrate",
        "--where",
        "network = desk",
        "--config",
        "limit=20",
    ]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("limit: 10 -> 20   in 2 sessions"),
        "{ran:?}"
    );
    let migrate = [
        "migrate",
        "--where",
        "network = desk",
        "--config",
        "limit=20",
        "--yes",
    ];
    let (code, told) = world.json(&migrate);
    assert_eq!((code, &told["status"]), (Some(0), &"rebound".into()));
    let (code, told) = world.json(&migrate);
    assert_eq!(
        (code, &told["fate"]),
        (Some(1), &"refused".into()),
        "{told}"
    );
    let context = world.run(&["fork", "last", "--say", "?", "--script-all", "script.yaml"]);
    assert!(context.code.is_some(), "{context:?}");
    world.write("script.yaml", "desk: [ never, \"{{ request.system }}\" ]\n");
    let ran = scripted(&world, &["send", "last", "What is the limit?"]);
    assert_eq!(ran.out.trim(), "You settle up to 20.", "{ran:?}");
}

#[test]
fn bad_input_of_orders_says_what_to_do() {
    let world = desk(1);
    let mut page = String::new();
    for args in [
        &["pause"][..],
        &["pause", "last", "--where", "status = waits"],
        &["pause", "nobody"],
        &["pause", "last:main"],
        &["pause", "last", "--yes"],
        &["resume", "--where", "waits"],
        &["hold", "last", "--tool", "refund"],
        &["release", "last", "--tool", "pay"],
        &["retry", "last", "--effect", "pay"],
        &["retry", "last", "--effect", "9.9"],
        &["migrate", "last"],
        &["migrate", "last", "--config", "limit"],
        &["migrate", "last", "--config", "limit=much"],
        &["migrate", "last", "--config", "limits=3"],
        &["migrate", "last", "--config", "url=there"],
        &["migrate", "last", "--config", "limit=10"],
        &[
            "migrate", "last", "--config", "limit=3", "--config", "limit=4",
        ],
        &["run", "--all", "--resume", "last"],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(2), "{args:?} {ran:?}");
        writeln!(page, "$ steersman {}\n{}", args.join(" "), ran.err).unwrap();
    }
    insta::assert_snapshot!(world.filter(&page));
}

/// A suggested command works as it is printed: it names the store that was named.
#[test]
fn what_is_to_be_typed_next_names_the_store() {
    let world = desk(0);
    let ran = scripted(
        &world,
        &["run", "--input", "Hi.", "--store", "other place.db"],
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.err.contains("steersman --store 'other place.db' send "),
        "{ran:?}"
    );
    let ran = world.run(&["show", "nobody", "--store", "other place.db"]);
    assert!(
        ran.err
            .contains("`steersman --store 'other place.db' sessions`"),
        "{ran:?}"
    );
}

/// A `hold` that is killed at any moment holds, waits in the inbox, or was never given. If it was given, the effect
/// does not start.
#[test]
fn a_killed_hold_holds_or_was_never_given() {
    for spins in [0_u64, 2_000, 8_000, 20_000, 50_000] {
        let world = desk(1);
        let mut child = world
            .command(&["hold", "last", "--tool", "pay", "-q"])
            .spawn()
            .unwrap();
        for _ in 0..spins {
            std::thread::yield_now();
        }
        let _ = child.kill();
        child.wait().unwrap();
        let (_, shown) = world.json(&["show"]);
        let given = shown["orders"][0] == "pay is held" || shown["inbox"] == 1;
        let (code, _) = world.json(&["send", "last", "Pay.", "--script-all", "script.yaml"]);
        let expected = if given { (Some(5), 0) } else { (Some(0), 1) };
        assert_eq!((code, payments(&world)), expected, "{spins} {shown}");
    }
}

#[test]
fn sessions_that_match_are_cancelled_only_with_yes() {
    let world = desk(1);
    for _ in 0..2 {
        let ran = scripted(&world, &["run", "--input", "Hi."]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(world.run(&["hold", "last"]).code, Some(0));
        let ran = world.run(&["send", "last", "Pay."]);
        assert_eq!(ran.code, Some(5), "{ran:?}");
        // A hold of all tools is released for all tools.
        assert!(ran.err.contains("steersman release "), "{ran:?}");
        assert!(!ran.err.contains("--tool"), "{ran:?}");
    }
    let filter = ["cancel", "--where", "status = waits"];
    let asked = world.run(&filter);
    assert_eq!(asked.code, Some(2), "{asked:?}");
    assert!(asked.err.contains("2 sessions match"), "{asked:?}");
    let both = world.run(&[&filter[..], &["21.1"]].concat());
    assert_eq!(both.code, Some(2), "{both:?}");
    let (code, last) = world.json(&[&filter[..], &["--yes"]].concat());
    assert_eq!((code, &last["status"]), (Some(0), &"cancelled".into()));
    let status = |world: &World| -> Vec<String> {
        let listed = world.json_lines(&["sessions"]);
        let status = listed
            .iter()
            .map(|s| s["status"].as_str().unwrap().to_owned());
        status.collect()
    };
    assert_eq!(status(&world), ["cancelled", "cancelled", "answered"]);
    assert_eq!(payments(&world), 0);
    let none = world.run(&[&filter[..], &["--yes"]].concat());
    assert_eq!(none.code, Some(0), "{none:?}");
}

#[test]
fn a_filter_is_shown_as_it_can_be_typed() {
    let world = desk(1);
    let asked = world.run(&["pause", "--where", "network = \"desk\""]);
    let hint = "steersman sessions --where 'network = \"desk\"'";
    assert!(asked.err.contains(hint), "{asked:?}");
}
