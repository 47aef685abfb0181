//! Changes in a rerun, and changes that are refused: `--say`, `--set`, `--where`, `--live`, `--people`.

use crate::world::{Ran, World};
use serde_json::Value as Json;

const DESK: &str = r#"name: desk
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, command: [echo, "{{ args.what }}"] }
  pay:
    description: Pays.
    parameters: { cents: integer }
    effect: unsafe
    approve: args.cents > 10
    command: [sh, -c, "echo paid >> book; echo ok"]
  mail: { description: Mails., parameters: { to: string }, effect: idempotent, command: [sh, -c, "echo sent >> book; echo ok"] }
  customer: { description: Asks the customer., parameters: { question: string }, ask: user }
models: { default: { provider: scripted } }
agents:
  desk:
    system: You settle.
    tools: [look, pay, mail, customer]
    modes:
      act: { exits: [ { after_calls: 20, to: plan } ] }
      plan: { system: You plan. }
  guest: { description: Stands in for customers., system: You are a customer. }
entry: desk
"#;

fn world(script: &str) -> (World, String) {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", script);
    let ran = world.run(&["run", "--input", "Pay.", "--script-all", "script.yaml"]);
    assert!(matches!(ran.code, Some(0 | 5)), "{ran:?}");
    let (_, shown) = world.json(&["show", "last"]);
    (world, shown["session"].as_str().unwrap().to_owned())
}

const PAYS: &str = "desk:
  - call: { look: { what: order } }
  - call: { pay: { cents: 5 } }
  - Paid.
";

fn document(ran: &Ran) -> Json {
    let last = ran.out.lines().last().unwrap_or("null");
    serde_json::from_str(last).unwrap_or_else(|e| panic!("{e} in {ran:?}"))
}

fn holds_commit(line: &Json) -> bool {
    let rows = line["rows"].as_array().unwrap();
    rows.iter()
        .any(|row| !row.as_str().unwrap().starts_with("ledger"))
}

fn payments(world: &World) -> usize {
    std::fs::read_to_string(world.folder.join("book")).map_or(0, |book| book.lines().count())
}

/// Enough answers for each line: a script numbers them from the beginning of a session.
const HEARD: &str = "desk: [ Heard., Heard., Heard., Heard., Heard. ]\n";
const OTHER: &str = "agents.desk.system=You settle gladly.";

/// A message at a line is taken in the next line, whatever is open there, and before anything else of the recording.
#[test]
fn what_is_said_at_a_line_is_heard_right_behind_it() {
    let (world, session) = world(PAYS);
    world.write("heard.yaml", HEARD);
    let lines = world.lines(&session);
    let commits: Vec<u64> = lines
        .iter()
        .filter(|line| holds_commit(line))
        .map(|line| line["line"].as_u64().unwrap())
        .collect();
    assert!(commits.len() >= 5, "{lines:#?}");
    for (k, at) in commits.iter().enumerate() {
        let address = format!("{session}@{at}");
        let ran = world.run(&[
            "rerun",
            &address,
            "--say",
            "Never mind.",
            "--script-all",
            "heard.yaml",
            "--json",
        ]);
        assert_eq!(ran.code, Some(8), "{ran:?}");
        let told = document(&ran);
        assert_eq!(told["lines"], k + 1, "{told:#}");
        let again = told["session"].as_str().unwrap();
        let again = world.lines(again);
        let again: Vec<&Json> = again.iter().filter(|line| holds_commit(line)).collect();
        let heard = again[k + 1].to_string();
        assert!(heard.contains("Never mind."), "@{at}: {heard}");
        assert_eq!(told["diff"]["answer"]["b"], "Heard.", "{told:#}");
    }
    assert_eq!(payments(&world), 1);
}

#[test]
fn names_that_are_not_declared_are_refused_with_the_nearest() {
    let (world, session) = world(PAYS);
    for (set, said) in [
        (
            "agents.dsek.system=No.",
            "there is no agent `dsek`; did you mean `desk`?",
        ),
        (
            "models.defualt.model=x",
            "there is no model `defualt`; did you mean `default`?",
        ),
        (
            "agents.desk.modes.plam.system=x",
            "there is no mode `plam`; did you mean `plan`?",
        ),
        (
            "tools.paay.description=x",
            "there is no tool `paay`; did you mean `pay`?",
        ),
        (
            "state.balance.default=3",
            "there is no entry of state `balance`; none is declared there",
        ),
        ("agents.desk.sytem=x", "sytem"),
    ] {
        let ran = world.run(&["rerun", &session, "--set", set]);
        assert_eq!(ran.code, Some(2), "{set}: {ran:?}");
        assert!(ran.err.contains(said), "{set}: {ran:?}");
    }
    let ran = world.run(&[
        "rerun",
        &session,
        "--set",
        "tools.look.description=Looks.",
        "--json",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said =
        "`--set tools.look.description` changes nothing: the definition has this value already";
    assert!(ran.err.contains(said), "{ran:?}");
}

#[test]
fn what_modes_set_anew_is_said_to_change_nothing_there() {
    let (world, session) = world(PAYS);
    let ran = world.run(&[
        "rerun",
        &session,
        "--set",
        OTHER,
        "--script-all",
        "script.yaml",
    ]);
    assert!(
        ran.err.contains("warning: `agents.desk.system` means nothing in modes that set it anew; set there, too: agents.desk.modes.plan.system"),
        "{ran:?}"
    );
}

#[test]
fn filters_name_definitions_and_none_found_is_no_success() {
    let (world, session) = world(PAYS);
    let ran = world.run(&["rerun", "--where", "definition = desk"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("1 same"), "{ran:?}");
    let ran = world.run(&["rerun", "--where", "definition = dsek"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("no session matches"), "{ran:?}");
    let ran = world.run(&["rerun", "--where", "colour = red"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("no session has a label `colour`"),
        "{ran:?}"
    );
    world.write("file", "");
    let ran = world.run(&["rerun", "--where", "definition = desk", "--report", "file"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("--report: `file` is a file, not a folder"),
        "{ran:?}"
    );
    let ran = world.run(&["rerun", &session, "--model", "nosuch"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("models.default.model"), "{ran:?}");
}

#[test]
fn live_reruns_touch_the_world_where_nothing_on_record_answers_and_ask_as_a_run_does() {
    let (world, session) = world(PAYS);
    // The recording has all outcomes: nothing is performed again.
    let ran = world.run(&["rerun", &session, "--live"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(payments(&world), 1);
    let pays = |cents: u32| {
        format!("desk:\n  - call: {{ pay: {{ cents: {cents} }} }}\n  - Paid {cents}.\n")
    };
    world.write("seven.yaml", &pays(7));
    let other = |script: &str, live: bool| {
        let mut args = vec![
            "rerun",
            &session,
            "--set",
            OTHER,
            "--script-all",
            script,
            "--json",
        ];
        args.extend(live.then_some("--live"));
        world.run(&args)
    };
    let told = document(&other("seven.yaml", false));
    assert_eq!(
        (&told["result"], payments(&world)),
        (&"leaf".into(), 1),
        "{told:#}"
    );
    let told = document(&other("seven.yaml", true));
    assert_eq!(told["diff"]["answer"]["b"], "Paid 7.", "{told:#}");
    assert_eq!(payments(&world), 2);
    // More than ten cents need an approval, in a live rerun as in a run.
    world.write("twelve.yaml", &pays(12));
    let ran = other("twelve.yaml", true);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    let told = document(&ran);
    assert_eq!(
        (&told["status"], payments(&world)),
        (&"waits".into(), 2),
        "{told:#}"
    );
    let again = told["session"].as_str().unwrap();
    let ran = world.run(&["approve", again, "--script-all", "twelve.yaml"]);
    assert_eq!((ran.code, payments(&world)), (Some(0), 3), "{ran:?}");
}

/// The recording has the outcome of the first call. The second call, with equal arguments, would be performed, so a
/// person must allow it.
#[test]
fn what_was_done_then_is_done_again_live_only_by_a_persons_word() {
    for call in ["mail: { to: ann }", "pay: { cents: 5 }"] {
        let calls = |times: usize| {
            let call = format!("  - call: {{ {call} }}\n");
            format!("desk:\n{}  - Done {times}.\n", call.repeat(times))
        };
        let (world, session) = world(&calls(1));
        world.write("twice.yaml", &calls(2));
        let args = ["rerun", &session, "--live", "--set", OTHER, "--json"];
        let told = document(&world.run(&[&args[..], &["--script-all", "twice.yaml"]].concat()));
        assert_eq!(
            (&told["status"], payments(&world)),
            (&"waits".into(), 1),
            "{told:#}"
        );
        let again = told["session"].as_str().unwrap();
        let waits = &world.json_lines(&["pending", "--where", "kind = repeat"])[0];
        assert_eq!(waits["kind"], "repeat", "{waits:#}");
        let ran = world.run(&["approve", again, "--script-all", "twice.yaml"]);
        assert_eq!((ran.code, payments(&world)), (Some(2), 1), "{ran:?}");
        assert!(ran.err.contains("--repeat"), "{ran:?}");
        let ran = world.run(&["approve", again, "--repeat", "--script-all", "twice.yaml"]);
        assert_eq!((ran.code, payments(&world)), (Some(0), 2), "{ran:?}");
    }
}

/// Approved arguments and answers of people are compared exactly, with any characters, digits and size.
#[test]
fn what_people_approved_and_answered_is_the_same_however_odd_or_large() {
    let odd = "\u{1b}[31m\u{7}\u{202e}\u{0}\u{7f}\ttab\nline";
    let args = serde_json::json!({ "to": odd, "wei": i64::MAX, "more": [-1.0, "\u{9b}"] });
    let args = args.to_string();
    let world = World::new();
    let definition = DESK.replace(
        "  mail:",
        "  wire: { description: Pays., parameters: { to: string, wei: any, more: { items: any } }, effect: unsafe, approve: { edit: [wei] }, command: [sh, -c, \"echo paid >> book; echo ok\"] }\n  mail:",
    );
    let definition = definition.replace("[look,", "[look, wire,");
    world.write("steersman.yaml", &definition);
    // YAML takes some characters only as escapes.
    let args = args
        .replace('\u{7f}', "\\u007f")
        .replace('\u{9b}', "\\u009b");
    let script = format!(
        r#"{{ "desk": [{{ "call": {{ "wire": {args} }} }}, {{ "call": {{ "customer": {{ "question": "Which?" }} }} }}, "Done."] }}"#
    );
    world.write("script.yaml", &script);
    let scripted = |args: &[&str]| world.run(&[args, &["--script-all", "script.yaml"]].concat());
    let ran = scripted(&["run", "--input", "Pay."]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let digits = "123456789012345678901234567890";
    let ran = scripted(&["approve", "last", "--edit", &format!("wei={digits}")]);
    assert_eq!((ran.code, payments(&world)), (Some(5), 1), "{ran:?}");
    let large = serde_json::json!({ "which": "x".repeat(20_000), "n": odd, "wei": "@" });
    let large = large.to_string().replace(r#""@""#, digits);
    let ran = scripted(&["answer", "last", &large]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let ran = world.run(&["rerun", "last", "--json"]);
    let told = document(&ran);
    assert_eq!(
        (ran.code, &told["result"]),
        (Some(0), &"same".into()),
        "{told:#}"
    );
    assert_eq!(payments(&world), 1);
    let ran = world.run(&["fsck"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Asks the customer a question.
const ASKS: &str = "desk:
  - call: { customer: { question: Which one? } }
  - Thanks.
";

#[test]
fn people_are_recorded_or_nobody_or_played_by_an_agent() {
    let (world, session) = world(ASKS);
    let ran = world.run(&["answer", &session, "The red one."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    world.write("same.yaml", &ASKS.replace("Thanks", "Many thanks"));
    world.write(
        "else.yaml",
        &format!(
            "{}guest: [ The blue one. ]\n",
            ASKS.replace("Which one?", "What colour?")
        ),
    );
    let rerun = |script: &str, people: &str| {
        let args = [
            "rerun",
            &session,
            "--set",
            OTHER,
            "--script-all",
            script,
            "--people",
            people,
            "--json",
        ];
        world.run(&args)
    };
    let said = |ran: &Ran| {
        let told = document(ran);
        world.run(&["log", told["session"].as_str().unwrap()]).out
    };
    // The same question gets its recorded answer.
    let ran = rerun("same.yaml", "recorded");
    let told = document(&ran);
    assert_eq!(told["diff"]["answer"]["b"], "Many thanks.", "{told:#}");
    assert!(said(&ran).contains("The red one."), "{ran:?}");
    // Another question has no recorded answer: its block ends.
    let told = document(&rerun("else.yaml", "recorded"));
    assert_eq!(told["result"], "leaf", "{told:#}");
    assert!(
        told["leaf"].as_str().unwrap().contains("What colour?"),
        "{told:#}"
    );
    // With `stop` the rerun waits at a question, also at a recorded one.
    for script in ["same.yaml", "else.yaml"] {
        let ran = rerun(script, "stop");
        let told = document(&ran);
        assert_eq!(told["status"], "waits", "{told:#}");
        assert!(!said(&ran).contains("The red one."), "{ran:?}");
    }
    // An agent of the definition answers a question that is not on record.
    let ran = rerun("else.yaml", "guest");
    let told = document(&ran);
    assert_eq!(told["diff"]["answer"]["b"], "Thanks.", "{told:#}");
    assert!(said(&ran).contains("The blue one."), "{ran:?}");
    let ran = rerun("else.yaml", "nobody");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("there is no agent `nobody`"), "{ran:?}");
}

const FORKS: &str = r"name: forks
tools:
  nap:    { description: Naps., wait: { time: 1s } }
  longer: { description: Naps., wait: { time: 1h } }
agents:
  main:
    system: You try.
    tools: [nap, longer, { tool: fork, as: good, join: done >= 1 }]
entry: main
";

/// After a rerun leaves the recording, a wait begins at the line of its call.
#[test]
fn what_waits_behind_where_a_recording_was_left_is_waited_for() {
    let world = World::new();
    world.write("steersman.yaml", FORKS);
    world.write("other.yaml", &format!("description: Other.\n{FORKS}"));
    world.write(
        "script.yaml",
        r#"main: [ { call: { good: { instructions: [One., Two., Three.] } } }, A good one. ]
"main@1": [ { error: provider_overloaded } ]
"main@2": [ { call: { nap: {} } }, Good. ]
"main@3": [ { call: { longer: {} } } ]
"#,
    );
    let ran = world.run(&["run", "--input", "Go.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(5), "it waits: {ran:?}");
    let again = ["rerun", "last", "--definition", "other.yaml"];
    let ran = world.run(&[&again[..], &["--script-all", "script.yaml", "--json"]].concat());
    let told = document(&ran);
    // The answers of three branches come in any order, and one line may take several.
    let line = told["diverged"]["line"].as_u64().unwrap();
    assert!((6..=8).contains(&line), "{told:#}");
    // Time passes by itself: the nap ends, and with it the wait for a good branch.
    assert_eq!(told["diff"]["answer"]["b"], "A good one.", "{told:#}");
}

/// Branches that an agent's search tried are superseded in a rerun too, and make no model calls.
#[test]
fn what_a_search_tried_asks_nobody_behind_it() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r#"name: rolls
state: { sum: { type: integer, default: 0, reduce: sum } }
tools: { roll: { description: Rolls., parameters: { eyes: integer }, set: { sum: "{{ args.eyes }}" } } }
agents: { desk: { system: You roll., tools: [roll], search: { method: beam, n: 2, depth: 1, score: state.sum, seed: 1 } } }
"#,
    );
    let script = "desk:
  - any: [ { call: { roll: { eyes: 1 } } }, { call: { roll: { eyes: 5 } } } ]
  - Rolled.
";
    world.write("script.yaml", script);
    let ran = world.run(&["run", "--input", "Roll.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (_, shown) = world.json(&["show", "last"]);
    let session = shown["session"].as_str().unwrap().to_owned();
    let lines = world.lines(&session);
    let last = lines.iter().rev().find(|line| holds_commit(line)).unwrap();
    let address = format!("{session}@{}", last["line"]);
    world.write(
        "heard.yaml",
        "desk: [ Heard., Heard., Heard., Heard., Heard. ]\n",
    );
    let args = [
        "rerun",
        &address,
        "--say",
        "And?",
        "--script-all",
        "heard.yaml",
        "--json",
    ];
    let ran = world.run(&args);
    let told = document(&ran);
    assert_eq!(told["diff"]["answer"]["b"], "Heard.", "{told:#}");
    let again = told["session"].as_str().unwrap().to_owned();
    let (_, shown) = world.json(&["show", &again]);
    let branches = shown["branches"].as_array().unwrap().iter();
    let tried: Vec<&Json> = branches
        .filter(|branch| branch["from"]["line"] == 1)
        .collect();
    assert_eq!(tried.len(), 2, "{shown:#}");
    for branch in tried {
        assert_eq!(branch["superseded"], true, "{branch:#}");
    }
    // The two model calls of the search that the new message starts.
    assert_eq!(told["model_calls"]["live"], 2, "{told:#}");
}

#[test]
fn what_was_said_twice_is_said_twice() {
    let world = World::new();
    let definition = "name: desk\nagents: { desk: { system: You answer. } }\n";
    world.write("steersman.yaml", definition);
    world.write("script.yaml", "desk: [ One., Two., Three. ]\n");
    let ran = world.run(&["run", "--input", "Go on.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for _ in 0..2 {
        let ran = world.run(&["send", "last", "Go on.", "--script-all", "script.yaml"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let args = ["rerun", "last", "--set", "agents.desk.system=You say it."];
    let ran = world.run(&[&args[..], &["--script-all", "script.yaml", "--json"]].concat());
    let told = document(&ran);
    assert_eq!(told["model_calls"]["live"], 3, "{told:#}");
    assert_eq!(told["diff"]["answer"]["b"], "Three.", "{told:#}");
}

#[test]
fn what_people_did_and_nobody_did_again_is_said() {
    let world = World::new();
    let definition = "name: desk\nagents: { desk: { system: You answer. } }\n";
    world.write("steersman.yaml", definition);
    world.write(
        "script.yaml",
        "desk: [ One., Two., Three., Four., Five., Six. ]\n",
    );
    let run = |args: &[&str]| {
        let ran = world.run(&[args, &["--script-all", "script.yaml"]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    run(&["run", "--input", "Why?"]);
    let (_, shown) = world.json(&["show", "last"]);
    let session = shown["session"].as_str().unwrap().to_owned();
    for label in ["why", "how"] {
        run(&["fork", &session, "--label", label, "--say", "Say more."]);
    }
    run(&["join", &session, "why", "how"]);
    let lines = world.lines(&session);
    let joined = lines
        .iter()
        .find(|line| line["head"].to_string().contains("| join"));
    let joined = joined.unwrap_or_else(|| panic!("{lines:#?}"))["line"].clone();
    let not_repeated = format!("fork why, fork how, join @{joined}");
    let args = ["rerun", &session, "--set", "agents.desk.system=You say it."];
    let args = [&args[..], &["--script-all", "script.yaml"]].concat();
    let ran = world.run(&args);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(
        ran.out.contains(&format!("not repeated: {not_repeated}")),
        "{ran:?}"
    );
    let told = document(&world.run(&[&args[..], &["--json"]].concat()));
    let all: Vec<&str> = not_repeated.split(", ").collect();
    assert_eq!(told["not_repeated"], serde_json::json!(all), "{told:#}");
    let many = ["rerun", "--where", "network = desk", "--report", "report"];
    let set = [
        "--set",
        "agents.desk.system=You say it.",
        "--script-all",
        "script.yaml",
    ];
    let ran = world.run(&[&many[..], &set].concat());
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(!ran.out.contains("1 same"), "{ran:?}");
    let page = std::fs::read_to_string(world.folder.join(format!("report/{session}.md"))).unwrap();
    assert!(page.contains(&not_repeated), "{page}");
    // Without a change the rerun follows all of the recording.
    let told = document(&world.run(&["rerun", &session, "--json"]));
    assert_eq!(
        (&told["not_repeated"], &told["result"]),
        (&serde_json::json!([]), &"same".into())
    );
}

#[test]
fn what_cannot_be_meant_of_many_is_refused_before_anything_runs() {
    let (world, _) = world(PAYS);
    let many = ["rerun", "--where", "network == desk"];
    let sessions = || world.run(&["sessions", "--json"]).out.lines().count();
    for (args, said) in [
        (
            &["--set", "agents.dsek.system=No."][..],
            "did you mean `desk`?",
        ),
        (&["--limit", "0"], "--limit"),
        (&["--report", "."], "something in `.` already"),
    ] {
        let ran = world.run(&[&many[..], args].concat());
        assert_eq!((ran.code, sessions()), (Some(2), 1), "{args:?}: {ran:?}");
        assert!(ran.err.contains(said), "{args:?}: {ran:?}");
    }
    let report = [&many[..], &["--report", "new"]].concat();
    let ran = world.run(&report);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("1 same"), "{ran:?}");
    let ran = world.run(&report);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("nothing is overwritten"), "{ran:?}");
    assert!(
        world
            .run(&["rerun", "--where", "network => desk"])
            .err
            .contains("no condition")
    );
}

/// After a rerun of any kind, `last` means the rerun.
#[test]
fn the_last_session_behind_a_rerun_is_the_rerun() {
    let (world, session) = world(PAYS);
    world.write("heard.yaml", HEARD);
    let at = format!("{session}@2");
    for args in [
        &["rerun", &session][..],
        &[
            "rerun",
            &session,
            "--set",
            OTHER,
            "--script-all",
            "script.yaml",
        ],
        &[
            "rerun",
            &at,
            "--say",
            "Never mind.",
            "--script-all",
            "heard.yaml",
        ],
    ] {
        let told = document(&world.run(&[args, &["--json"]].concat()));
        let (_, last) = world.json(&["show", "last"]);
        assert_eq!(last["session"], told["session"], "{args:?}");
    }
}

#[test]
fn a_rerun_can_be_rerun_under_another_definition() {
    let (world, session) = world(PAYS);
    world.write("other.yaml", &format!("description: Another.\n{DESK}"));
    assert_eq!(world.run(&["rerun", &session]).code, Some(0));
    let again = ["rerun", "last", "--definition", "other.yaml"];
    let told = document(&world.run(&[&again[..], &["--json"]].concat()));
    assert_eq!(told["diverged"], Json::Null, "{told:#}");
    // The agent of the recording does not exist in the other definition.
    world.write(
        "nobody.yaml",
        &DESK
            .replace("desk:\n", "clerk:\n")
            .replace("entry: desk", "entry: clerk"),
    );
    let ran = world.run(&["rerun", &session, "--definition", "nobody.yaml"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err
            .contains("how it began is not taken: there is no such agent to begin with"),
        "{ran:?}"
    );
}

const BARE: &str = "name: desk
agents: { desk: { system: You settle. } }
";

/// A script answers for the model that is named: a rerun with another name asks the script, whichever way the definition names
/// models. A rerun that asked nobody says so.
#[test]
fn a_script_answers_for_the_model_that_is_named() {
    let providers = [
        BARE.to_owned(),
        format!("{BARE}models: {{ default: {{ provider: openai, model: gpt-5-mini }} }}\n"),
        format!("{BARE}models: {{ default: {{ url: \"http://127.0.0.1:1/v1\", model: here }} }}\n"),
    ];
    for definition in providers {
        let world = World::new();
        world.write("steersman.yaml", &definition);
        world.write("one.yaml", "desk: [ One. ]\n");
        world.write("two.yaml", "desk: [ Two. ]\n");
        let ran = world.run(&["run", "--input", "Go.", "--script-all", "one.yaml"]);
        assert_eq!(ran.out.trim(), "One.", "{ran:?}");
        let (_, shown) = world.json(&["show", "last"]);
        let session = shown["session"].as_str().unwrap();

        let two = ["rerun", session, "--script-all", "two.yaml"];
        let other = [&two[..], &["--model", "other"]].concat();
        let ran = world.run(&[&other[..], &["--json"]].concat());
        let told = document(&ran);
        assert_eq!(told["model_calls"]["live"], 1, "{definition}: {told:#}");
        assert_eq!(told["diff"]["answer"]["b"], "Two.", "{told:#}");
        assert_eq!(
            told["diverged"]["why"], "another model is asked",
            "{told:#}"
        );
        let ran = world.run(&other);
        assert!(ran.out.contains("1 model call made; "), "{ran:?}");

        let ran = world.run(&two);
        let nobody = "0 model calls made: nobody was asked, and 1 answer came from the recording";
        assert!(ran.out.contains(nobody), "{ran:?}");
        assert!(ran.err.contains("--script-all changed nothing"), "{ran:?}");
        let ran = world.run(&["rerun", "--where", "definition = desk"]);
        assert!(ran.out.contains("nobody was asked"), "{ran:?}");
    }
}

/// A session may have begun with another model than its definition names: a rerun with the model of the definition asks it.
#[test]
fn a_model_that_is_named_counts_before_the_one_that_is_bound() {
    let world = World::new();
    let small = format!("{BARE}models: {{ default: {{ provider: scripted, model: small }} }}\n");
    world.write("steersman.yaml", &small);
    world.write("one.yaml", "desk: [ One. ]\n");
    world.write("two.yaml", "desk: [ Two. ]\n");
    let begins = [
        "run",
        "--model",
        "big",
        "--input",
        "Go.",
        "--script-all",
        "one.yaml",
    ];
    assert_eq!(world.run(&begins).out.trim(), "One.");
    let (_, shown) = world.json(&["show", "last"]);
    let session = shown["session"].as_str().unwrap();
    for (model, asked) in [("small", 1), ("big", 0)] {
        let args = [
            "rerun",
            session,
            "--model",
            model,
            "--script-all",
            "two.yaml",
        ];
        let (_, told) = world.json(&args);
        assert_eq!(told["model_calls"]["live"], asked, "{model}: {told:#}");
    }
}

#[test]
fn a_model_that_no_agent_asks_is_named() {
    let world = World::new();
    let big = "models: { big: { provider: scripted } }\nagents: { desk: { system: You settle., model: big } }\n";
    world.write("steersman.yaml", big);
    world.write("script.yaml", "desk: [ One. ]\n");
    let ran = world.run(&["run", "--input", "Go.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.run(&[
        "rerun",
        "last",
        "--model",
        "other",
        "--script-all",
        "script.yaml",
    ]);
    let warned = "no agent asks the model `default`; they ask big: --set models.big.model=NAME";
    assert!(ran.err.contains(warned), "{ran:?}");
    assert!(ran.err.contains("--model other changed nothing"), "{ran:?}");
}
