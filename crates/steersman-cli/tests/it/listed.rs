//! The index data of a session agree with its log: after a rewind, in a rerun, after an erasure, and when the
//! definition changes.

use crate::world::{Ran, World};
use std::io::{Read, Write};
use std::net::TcpListener;

const DESK: &str = r#"name: desk
state: { sent: { type: integer, default: 0 } }
events: { arrived: { fields: { order: string }, id: "{{ event.order }}" } }
tools:
  pay:
    description: Pays.
    parameters: { to: string }
    effect: unsafe
    on_doubt: ask
    command: [sh, -c, "echo paid >> book; exit 1"]
  wire:
    description: Pays, and can be looked up.
    parameters: { to: string }
    effect: unsafe
    command: [sh, -c, "echo wired >> book; exit 1"]
    on_doubt: { probe: wired, done: result.there == true, else: not_performed }
  wired:
    description: Looks up whether it was paid.
    effect: read
    retry: 3
    http: { url: "http://127.0.0.1:PORT/wired" }
  goods: { description: Waits for goods., parameters: { order: string }, wait: { event: arrived, match: { order: "{{ args.order }}" } } }
  nap: { description: Waits., wait: { time: 2h } }
  either: { description: Waits for goods or time., wait: { event: arrived, match: { order: "2" }, timeout: 2h, on_timeout: Late. } }
  quest: { description: Asks., parameters: { question: string }, ask: user }
agents: { desk: { system: You settle., tools: [pay, wire, goods, nap, either, quest] } }
"#;

/// The port of a server that answers every request with 503 and asks for a retry in ten minutes.
fn busy() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let answer = "HTTP/1.1 503 Busy\r\nretry-after: 600\r\ncontent-length: 0\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

fn world(script: &str) -> World {
    let world = World::new();
    let port = busy().to_string();
    world.write("steersman.yaml", &DESK.replace("PORT", &port));
    world.write("script.yaml", script);
    world
}

fn run(world: &World) -> Ran {
    world.run(&["run", "--input", "Go on.", "--script-all", "script.yaml"])
}

fn ids(world: &World) -> Vec<String> {
    let rows = world.json_lines(&["sessions"]);
    let ids = rows.iter().map(|row| row["session"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

#[track_caller]
fn is_whole(world: &World, after: &str) {
    let ran = world.run(&["fsck"]);
    assert_eq!(ran.code, Some(0), "{after}: {ran:?}");
}

const GO: [&str; 2] = ["--script-all", "script.yaml"];

/// Runs a command with the script.
fn order(world: &World, typed: &[&str]) -> Ran {
    world.run(&[typed, &GO].concat())
}

/// An event goes to the session that waits for it, and not to one that waited for it on a branch that was left.
#[test]
fn an_event_goes_past_who_waited_on_a_branch_that_was_left() {
    let waits = "desk: [ { call: { goods: { order: '1' } } }, Thanks., Thanks. ]\n";
    for way in ["rewind", "adopt"] {
        let world = world(&format!(
            "desk: [ Hello., {} ]\n",
            &waits[8..waits.len() - 3]
        ));
        assert_eq!(run(&world).code, Some(0));
        let first = ids(&world).remove(0);
        assert_eq!(order(&world, &["send", &first, "Wait."]).code, Some(5));
        let left = if way == "rewind" {
            order(&world, &["rewind", &format!("{first}@2"), "--say", "No."])
        } else {
            let forked = order(&world, &["fork", &format!("{first}@2"), "--say", "No."]);
            assert!(forked.code.is_some_and(|code| code < 6), "{forked:?}");
            order(&world, &["adopt", &format!("{first}:b1")])
        };
        assert!(!left.err.contains("panicked"), "{left:?}");
        is_whole(&world, way);

        world.write("script.yaml", waits);
        assert_eq!(run(&world).code, Some(5), "{way}");
        let sent = ["send", ".", "--event", "arrived", r#"{"order": "1"}"#];
        assert_eq!(world.run(&sent).code, Some(0));
        let second = ids(&world).into_iter().find(|id| *id != first).unwrap();
        let (code, told) = world.json(&["run", "--resume", &second]);
        assert_eq!(
            (code, &told["answer"]),
            (Some(0), &"Thanks.".into()),
            "{way}: {told}"
        );
        is_whole(&world, way);
    }
}

/// A rerun of a session that waits is found by what it waits for, like a session that was driven.
#[test]
fn a_rerun_of_what_waits_is_found_by_what_it_waits_for() {
    for call in [
        "pay: { to: a }",
        "goods: { order: '1' }",
        "nap: {}",
        "either: {}",
        "quest: { question: Which? }",
    ] {
        for live in [false, true] {
            let world = world(&format!("desk: [ {{ call: {{ {call} }} }}, Done. ]\n"));
            let ran = run(&world);
            assert!(matches!(ran.code, Some(5 | 7)), "{call}: {ran:?}");
            let mut typed = vec!["rerun", "last"];
            typed.extend(live.then_some("--live"));
            world.run(&typed);
            is_whole(&world, &format!("{call}, live {live}"));
            // A doubt of the recording is not a second doubt in the rerun: it is listed once.
            let waits = if call.starts_with("pay") { 1 } else { 2 };
            let waiting = world.json_lines(&["pending"]);
            assert_eq!(waiting.len(), waits, "{call}: {waiting:?}");
        }
    }
}

/// Lists had of a rerun only the label that says what it is of.
#[test]
fn a_rerun_is_found_by_the_labels_that_its_lines_give_it() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r#"name: desk
state: { order: optional integer }
labels: { order: "{{ state.order or 'none' }}" }
tools: { take: { description: Takes., parameters: { order: integer }, set: { order: "{{ args.order }}" } } }
agents: { desk: { system: You settle., tools: [take] } }
"#,
    );
    let take = |order: u32| format!("{{ call: {{ take: {{ order: {order} }} }} }}");
    let script = format!(
        "desk: [ {}, Taken., {}, Also., Again. ]\n",
        take(4711),
        take(4712)
    );
    world.write("script.yaml", &script);
    assert_eq!(run(&world).code, Some(0));
    for changed in [None, Some("Another one.")] {
        let mut typed = vec!["rerun", "last@3", "--script-all", "script.yaml"];
        typed.extend(changed.iter().flat_map(|text| ["--say", text]));
        let ran = world.run(&typed);
        is_whole(&world, &format!("{changed:?}: {ran:?}"));
    }
    for (order, many) in [(4711, 2), (4712, 1)] {
        let of_order = format!("order = {order}");
        let found = world.json_lines(&["sessions", "--reruns", "--where", &of_order]);
        assert_eq!(found.len(), many, "{found:?}");
    }
    // A branch that becomes current brings its labels.
    for typed in [
        ["fork", "last@3", "--say", "Take another one."],
        ["rewind", "last@1", "--say", "No."],
    ] {
        let ran = world.run(&[&typed[..], &["--script-all", "script.yaml"]].concat());
        is_whole(&world, &format!("{typed:?}: {ran:?}"));
    }
}

/// A doubt stays listed after its texts are erased.
#[test]
fn a_doubt_outlives_the_erasure_of_its_texts() {
    for whole in [true, false] {
        let world =
            world("desk: [ Hello., { call: { pay: { to: annasecretname } } }, No., No. ]\n");
        assert_eq!(run(&world).code, Some(0));
        assert_eq!(order(&world, &["send", "last", "Pay."]).code, Some(7));
        order(&world, &["rewind", "last@2", "--say", "No."]);
        let doubts = world.json_lines(&["pending"]);
        let effect = doubts[0]["effect"].as_str().unwrap().to_owned();
        let mut typed = vec!["erase", "last", "--yes"];
        if !whole {
            typed.extend(["--effect", &effect]);
        }
        let ran = world.run(&typed);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let doubts = world.json_lines(&["pending"]);
        assert_eq!(doubts.len(), 1, "{doubts:?}");
        assert_eq!(
            (&doubts[0]["effect"], &doubts[0]["kind"]),
            (&(*effect).into(), &"doubt".into())
        );
        let shown = world.run(&["pending"]).all();
        assert!(!shown.contains("annasecretname"), "{shown}");
        is_whole(&world, &format!("whole {whole}"));
    }
}

/// An erasure of a session deletes an event that nothing waits for, so the event is accepted again.
#[test]
fn an_event_that_nothing_waits_for_is_erased_with_its_session() {
    let world = world("desk: [ Hello. ]\n");
    assert_eq!(run(&world).code, Some(0));
    let sent = ["send", "last", "--event", "arrived", r#"{"order": "1"}"#];
    for _ in 0..2 {
        let ran = world.run(&sent);
        assert!(ran.err.contains("stored in the session's inbox"), "{ran:?}");
        let ran = world.run(&["erase", "last", "--yes"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        is_whole(&world, "an erased event");
    }
}

/// A probe that is put off is no longer due when the call is cancelled.
#[test]
fn a_probe_of_a_doubt_that_was_cancelled_is_not_due() {
    for typed in [
        &["cancel", "last"][..],
        &["send", "last", "--interrupt", "Stop."],
    ] {
        let world = world("desk: [ { call: { wire: { to: a } } }, Done., Done. ]\n");
        let ran = run(&world);
        assert!(matches!(ran.code, Some(5 | 7)), "{ran:?}");
        let waiting = world.json_lines(&["pending"]);
        assert!(waiting[0]["probe"]["again"].is_string(), "{waiting:?}");
        world.run(&[typed, &["--script-all", "script.yaml"]].concat());
        is_whole(&world, typed[0]);
        let waiting = world.json_lines(&["pending"]);
        assert_eq!(waiting[0]["kind"], "doubt", "{waiting:?}");
        assert!(waiting[0]["probe"]["again"].is_null(), "{waiting:?}");
    }
}

/// A doubt must be settled under the definition that the effect began under: until then no other definition is bound.
#[test]
fn a_definition_stays_while_what_it_began_is_in_doubt() {
    let world = world("desk: [ Hello., { call: { pay: { to: a } } }, No., No. ]\n");
    assert_eq!(run(&world).code, Some(0));
    assert_eq!(order(&world, &["send", "last", "Pay."]).code, Some(7));
    order(&world, &["rewind", "last@2", "--say", "No."]);
    let (before, rest) = DESK.split_once("  pay:\n").unwrap();
    let (_, after) = rest.split_once("  wire:\n").unwrap();
    let without = format!("{before}  wire:\n{after}").replace("tools: [pay, ", "tools: [");
    world.write("steersman.yaml", &without);
    let rebind = ["run", "--resume", "last", "--rebind"];
    let ran = order(&world, &rebind);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("is in doubt: resolve it first"), "{ran:?}");
    is_whole(&world, "a refused definition");
    let ran = world.run(&["resolve", "last", "--not-performed"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = order(&world, &rebind);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    is_whole(&world, "another definition");
}
