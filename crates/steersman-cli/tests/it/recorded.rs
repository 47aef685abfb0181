//! `test --record` and `export --trajectories` of sessions in which the engine makes calls of its own.

use crate::world::{Ran, World};
use serde_json::Value as Json;

const DESK: &str = r"name: desk
state: { topic: { type: string, optional: true } }
models: { default: { provider: scripted } }
tools:
  clock: { description: The time., effect: pure, command: [echo, noon] }
  spend: { description: Spends., parameters: { n: integer }, effect: unsafe, reflect: true, command: [echo, ok] }
agents:
  payer: { system: You pay., tools: [spend] }
  clerk: { system: You help., extract: [topic], before: [clock] }
  chatter: { system: You chat., context: { compact: { when_tokens: 40, keep_exchanges: 1 } } }
entry: [payer, clerk, chatter]
";
const SCRIPT: &str = r#"payer:
  - { text: "I pay.", call: [ { spend: { n: 20 } }, { spend: { n: 3 } } ] }
  - { revise: Less. }
  - { accept: true }
  - Paid.
clerk: [ Ships it is., Cars it is. ]
clerk#extract: [ { output: { topic: ships } }, { output: { topic: cars } } ]
chatter:
  - "The weather is as it is, and nobody here can say how it will be tomorrow or the day after that, nor on any other day."
  - "The weather of next week is as hard to tell, and of the week after that nobody speaks at all, for nobody knows of it."
  - "The weather of next year is harder still to tell, for so many things may happen until then that nobody would believe."
  - Bye.
chatter#compact: [ They talked of weather., They talked of weather for long. ]
"#;

fn run(world: &World, agent: &str, said: &[&str]) {
    for (k, text) in said.iter().enumerate() {
        let first = ["run", "--entry", agent, "--input", text];
        let more = ["send", "last", text];
        let args: &[&str] = if k == 0 { &first } else { &more };
        let ran = world.run(&[args, &["--script-all", "script.yaml"]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

fn desk() -> World {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("other.yaml", &format!("description: Another.\n{DESK}"));
    world.write("script.yaml", SCRIPT);
    world
}

fn blocks(ran: &Ran) -> Vec<Json> {
    let rows = ran.out.lines();
    rows.map(|row| serde_json::from_str(row).unwrap()).collect()
}

const SESSIONS: &[(&str, &[&str])] = &[
    ("payer", &["Pay."]),
    ("clerk", &["About ships.", "And cars?"]),
    ("chatter", &["Hi.", "And?", "So?", "Then?"]),
];

/// A recorded test is run before it is printed, so exit code 0 says that it passes.
#[test]
fn what_the_engine_asked_for_itself_is_in_a_recorded_test() {
    for (agent, said) in SESSIONS {
        let world = desk();
        run(&world, agent, said);
        let ran = world.run(&["test", "--record", "last"]);
        assert_eq!(ran.code, Some(0), "{agent}: {ran:?}");
        for name in ["review/", "before/", "extract/"] {
            assert!(!ran.out.contains(name), "{agent}: {ran:?}");
        }
    }
}

#[test]
fn what_the_engine_asked_for_itself_is_followed_under_another_definition() {
    for (agent, said) in SESSIONS {
        let world = desk();
        run(&world, agent, said);
        let ran = world.run(&["rerun", "last", "--definition", "other.yaml", "--json"]);
        assert_eq!(ran.code, Some(0), "{agent}: {ran:?}");
        let told: Json = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
        assert_eq!(
            (&told["diverged"], &told["model_calls"]["live"]),
            (&Json::Null, &0.into()),
            "{agent}: {told:#}"
        );
    }
}

#[test]
fn trajectories_hold_the_calls_that_models_made_and_no_others() {
    for (agent, said) in SESSIONS {
        let world = desk();
        run(&world, agent, said);
        let ran = world.run(&["export", "last", "--trajectories"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let mut made = Vec::new();
        for block in blocks(&ran) {
            let calls = block["answer"]["tool_calls"].as_array().unwrap();
            made.extend(calls.iter().map(|call| call["id"].clone()));
            for call in calls {
                assert_eq!(call["function"]["name"], "spend", "{block:#}");
            }
            for message in block["messages"].as_array().unwrap() {
                let id = &message["tool_call_id"];
                assert!(id.is_null() || made.contains(id), "{block:#}");
            }
        }
        assert_eq!(made.len(), if *agent == "payer" { 2 } else { 0 });
    }
}

/// `context` finds the model call of a summary by its name in scripts, and lists it apart from the agent's own calls.
#[test]
fn what_was_asked_beside_is_looked_at_by_its_name() {
    let world = desk();
    run(&world, "chatter", SESSIONS[2].1);
    let cache = world.run(&["context", "last", "--cache"]).out;
    assert!(cache.contains("chatter#compact"), "{cache}");
    let ran = world.run(&["context", "last", "chatter#compact"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.out.lines().next().unwrap().contains("chatter#compact"),
        "{ran:?}"
    );
    assert!(ran.err.contains("Other model calls: chatter @"), "{ran:?}");
    let ran = world.run(&["context", "last", "chatter#summary"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("chatter#compact @"), "{ran:?}");
}

/// The reason why no test can be made comes before the failures that follow from it.
#[test]
fn why_a_test_cannot_be_made_comes_first() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r#"name: desk
state: { order: { type: string, default: none } }
tools:
  find: { description: Finds., effect: read, command: [echo, '{"id": "4711"}'], set: { order: "{{ result.id }}" }, result: Found. }
  pay: { description: Pays., effect: unsafe, requires: { that: state.order == "4711", else: No order is open. }, command: [echo, paid] }
agents: { desk: { system: You find., tools: [find, pay] } }
"#,
    );
    world.write(
        "script.yaml",
        "desk: [ { call: { find: {} } }, { call: { pay: {} } }, Done. ]\n",
    );
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Find."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.run(&["test", "--record", "last"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let first = "a test of it would not hold: of `find` the log holds what models saw";
    assert!(ran.err.contains(first), "{ran:?}");
    assert!(
        ran.err
            .contains("by hand, with the raw answers under `tools:`"),
        "{ran:?}"
    );
}

#[test]
fn a_test_is_of_a_whole_session() {
    let world = desk();
    run(&world, "clerk", &["About ships."]);
    let ran = world.run(&[
        "fork",
        "last@1",
        "--label",
        "other",
        "--script-all",
        "script.yaml",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.run(&["test", "--record", "last:nosuch"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("has no branch `nosuch`"), "{ran:?}");
    let ran = world.run(&["test", "--record", "last:other"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("a test is of a whole session"), "{ran:?}");
    // The hint names the session. The current branch by its name is the whole session too.
    for whole in ["last", "last:main"] {
        let ran = world.run(&["test", "--record", whole]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.out.contains("fork: main"), "{ran:?}");
    }
}

/// Each kind of question that a router puts to a model.
#[test]
fn what_routers_asked_models_is_in_a_recorded_test() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r"name: desk
models: { default: { provider: scripted } }
agents:
  reader: { description: Reads., system: You read. }
  writer: { description: Writes., system: You write. }
  team: { route: { pick: [reader, writer] } }
  talk:
    route:
      states:
        begin:
          speakers: [reader, writer]
          order: by_model
          exits: [ { judge: All is said., to: end } ]
        end: { speakers: [writer], exits: [ { after_messages: 1, to: finish } ] }
  desk: { route: { tasks: { reader: {}, writer: {} }, continue: by_model } }
entry: [team, talk, desk]
",
    );
    let stories = [
        (
            "team",
            "team: [ reader, writer, { call: { done: { summary: It is written. } } } ]\nreader: [ Read. ]\nwriter: [ Written. ]\n",
        ),
        (
            "team",
            "team: [ reader, { call: { select_agent: { name: writer, reason: It knows. } } }, finish ]\nreader: [ Read. ]\nwriter: [ Written. ]\n",
        ),
        (
            "talk",
            "talk: [ '0', writer, '1' ]\nreader: [ I have read. ]\nwriter: [ I have written., The end. ]\n",
        ),
        (
            "desk",
            "desk: [ writer ]\ndesk#continue: [ { call: { nothing_left: {} } } ]\nwriter: [ { text: Written., call: { done: {} } }, Written. ]\n",
        ),
    ];
    for (agent, script) in stories {
        world.write("script.yaml", script);
        let begin = ["run", "--entry", agent, "--input", "Go on."];
        let ran = world.run(&[&begin[..], &["--script-all", "script.yaml"]].concat());
        assert_eq!(ran.code, Some(0), "{agent}: {ran:?}");
        let ran = world.run(&["test", "--record", "last"]);
        assert_eq!(ran.code, Some(0), "{agent} {script}: {ran:?}");
    }
}

const SAVES: &str = r#"name: desk
tools:
  fails: { description: Fails., effect: read, command: [sh, -c, "echo no such order >&2; exit 1"] }
  look: { description: Looks., parameters: { n: integer }, effect: read, command: [sh, -c, "if [ {{ args.n }} = 1 ]; then read x < gate; echo first; else echo second > gate; echo second; fi"] }
  report: { description: Reports., effect: read, save: report.csv, command: [sh, -c, "printf 'a,b\n1,2\n'"] }
  odd: { description: Tells oddly., effect: read, command: [echo, '{"error": "E7", "unknown": true}'] }
agents: { desk: { system: You settle., tools: [fails, look, report, odd] } }
"#;

/// A recorded test has the message of a failure once, outcomes in the order of the calls, whichever ended first, the artifacts
/// that calls made, and results that look like something else.
#[test]
fn failures_orders_and_artifacts_are_recorded_as_a_test_takes_them() {
    let world = World::new();
    world.write("steersman.yaml", SAVES);
    world.write(
        "script.yaml",
        "desk: [ { call: [ { look: { n: 1 } }, { look: { n: 2 } }, { fails: {} }, { report: {} }, { odd: {} } ] }, Done. ]\n",
    );
    let gate = world.folder.join("gate");
    let made = std::process::Command::new("mkfifo").arg(gate).status();
    assert!(made.unwrap().success());
    let ran = world.run(&["run", "--input", "Go.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    std::fs::create_dir(world.folder.join("tests")).unwrap();
    let ran = world.run(&["test", "--record", "last", "--out", "tests/it.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let test = std::fs::read_to_string(world.folder.join("tests/it.yaml")).unwrap();
    assert!(!test.contains("failed: "), "{test}");
    assert!(test.contains("no such order"), "{test}");
    let first = test.find("first").unwrap();
    let second = test.find("second").unwrap();
    assert!(first < second, "{test}");
    assert!(test.contains("report.csv"), "{test}");
    assert!(test.contains("a,b"), "{test}");
    let ran = world.run(&["test"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(world.run(&["test", "--record", "last"]).code, Some(0));
}
