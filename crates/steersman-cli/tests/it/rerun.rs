//! `rerun`, `diff`, `test --record` and `export`.

use crate::world::{Ran, World};
use serde_json::Value as Json;

const DESK: &str = r#"name: desk
outcome: { paid: calls.pay.ok }
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, command: [echo, "{{ args.what }}"] }
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, simulate: pretended, command: [sh, -c, "echo paid >> book; echo ok"] }
agents:
  desk: { system: You settle., tools: [look, pay] }
"#;
const SCRIPT: &str = "desk:
  - call: { look: { what: order } }
  - call: { pay: { cents: 5 } }
  - Paid.
";
/// Makes another payment, for which the recording has no outcome.
const OTHER: &str = "desk:
  - call: { look: { what: order } }
  - call: { pay: { cents: 7 } }
  - Paid a forecast.
";
const REFUSES: &str = "desk: [ No. ]\n";

fn paid() -> World {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    for (name, text) in [("script", SCRIPT), ("other", OTHER), ("refuses", REFUSES)] {
        world.write(&format!("{name}.yaml"), text);
    }
    let ran = world.run(&["run", "--input", "Pay.", "--script-all", "script.yaml"]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Paid."), "{ran:?}");
    world
}

fn document(ran: &Ran) -> Json {
    let last = ran.out.lines().last().unwrap_or("null");
    serde_json::from_str(last).unwrap_or_else(|e| panic!("{e} in {ran:?}"))
}

fn payments(world: &World) -> usize {
    std::fs::read_to_string(world.folder.join("book")).map_or(0, |book| book.lines().count())
}

/// The recorded session, not one of its reruns.
fn recorded(world: &World) -> String {
    let ran = world.run(&["sessions", "--json"]);
    let all = ran
        .out
        .lines()
        .map(|row| serde_json::from_str::<Json>(row).unwrap());
    let mut found = all.filter(|session| session["labels"]["rerun_of"].is_null());
    found.next().unwrap()["session"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn nothing_changed_asks_nobody_and_differs_in_nothing() {
    let world = paid();
    let ran = world.run(&["rerun", "last", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = document(&ran);
    assert_eq!(
        told["model_calls"],
        serde_json::json!({ "recorded": 3, "live": 0 })
    );
    assert_eq!(
        (&told["result"], &told["diff"]["empty"]),
        (&"same".into(), &true.into())
    );
    assert_eq!(told["diverged"], Json::Null);
    let other = told["session"].as_str().unwrap();
    let ran = world.run(&["diff", &recorded(&world), other]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with("Nothing differs: "), "{ran:?}");
    assert_eq!(payments(&world), 1);
}

/// A rerun on another definition simulates calls for which the recording has no outcome, and performs nothing.
#[test]
fn what_nothing_on_record_answers_is_simulated_and_the_world_is_not_touched() {
    let world = paid();
    let session = recorded(&world);
    let set = ["--set", "agents.desk.system=You settle gladly.", "--json"];
    let ran = world.run(&[&["rerun", &session, "--script-all", "other.yaml"][..], &set].concat());
    // The recording paid, and the rerun simulates a payment: the outcome is the same, and nothing is paid.
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = document(&ran);
    assert_eq!(told["model_calls"]["live"], 3, "{told:#}");
    assert_eq!(told["diff"]["tools"]["b"][1]["args"], r#"{"cents":7}"#);
    let ran = world.run(
        &[
            &["rerun", &session, "--script-all", "refuses.yaml"][..],
            &set,
        ]
        .concat(),
    );
    assert_eq!(ran.code, Some(8), "{ran:?}");
    let told = document(&ran);
    assert_eq!(
        told["diff"]["outcome"],
        serde_json::json!({ "a": { "paid": 1 }, "b": { "paid": 0 } })
    );
    assert_eq!(payments(&world), 1);
}

/// The store records the message of a rerun as it records messages from an inbox, so `fsck` finds no fault.
#[test]
fn a_rerun_in_which_something_else_is_said_verifies() {
    let world = paid();
    let session = recorded(&world);
    for args in [
        &["rerun", &*session, "--say", "Pay less."][..],
        &["rerun", &format!("{session}@-2"), "--say", "Pay more."],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(8), "{args:?}: {ran:?}");
        let ran = world.run(&["fsck"]);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    }
}

/// Lines that a search tried after the adopted line are not in the rerun, and nothing in the rerun names them.
#[test]
fn a_rerun_of_a_session_that_adopted_a_forecast_verifies() {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write(
        "script.yaml",
        "desk: [ Hello., { call: { pay: { cents: 5 } } }, Paid., Done. ]\n",
    );
    let ran = world.run(&["run", "--input", "Hi.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = recorded(&world);
    let search = [
        "search", &session, "--say", "Pay.", "--n", "2", "--score", "1",
    ];
    let ran = world.run(&[&search[..], &["--adopt"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(payments(&world), 1);
    for at in ["", "@-1", "@-2", "@-3"] {
        let ran = world.run(&["rerun", &format!("{session}{at}")]);
        assert_eq!(ran.code, Some(0), "{at}: {ran:?}");
        let checked = world.run(&["fsck"]);
        assert_eq!(checked.code, Some(0), "{at}: {checked:?} {ran:?}");
    }
}

/// A branch was adopted, and a rewind went back before its end: in the rerun it has fewer lines than were adopted.
#[test]
fn a_rerun_of_a_session_that_went_back_behind_an_adoption_verifies() {
    let (world, session) = with_a_limit();
    for args in [
        &[
            "fork", &*session, "--live", "--say", "Or so?", "--label", "other",
        ][..],
        &["adopt", &format!("{session}:other")],
        &["rewind", &format!("{session}@-1"), "--say", "Once more."],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    }
    for at in ["", "@-1"] {
        let ran = world.run(&["rerun", &format!("{session}{at}")]);
        assert_eq!(ran.code, Some(0), "{at}: {ran:?}");
        let checked = world.run(&["fsck"]);
        assert_eq!(checked.code, Some(0), "{at}: {checked:?} {ran:?}");
    }
}

/// A session with a value of `config` that `migrate` can change.
fn with_a_limit() -> (World, String) {
    let world = World::new();
    let config = "config: { limit: { type: integer, default: 10 } }\n";
    world.write("steersman.yaml", &format!("{DESK}{config}"));
    world.write("script.yaml", "desk: [ Hello., A., B., C., D. ]\n");
    let ran = world.run(&["run", "--input", "Hi.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = recorded(&world);
    (world, session)
}

/// `migrate` binds new values on all branches of a session, and so does its rerun.
#[test]
fn a_session_that_was_bound_anew_beside_a_branch_is_rerun() {
    let (world, session) = with_a_limit();
    for args in [
        &["fork", &*session, "--say", "Or so?", "--label", "other"][..],
        &["join", &session, "other"],
        &["migrate", &session, "--config", "limit=20"],
        &["send", &session, "Go on."],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    }
    for at in ["", "@-1", "@-2", "@-3"] {
        let ran = world.run(&["rerun", &format!("{session}{at}"), "--json"]);
        assert_eq!(ran.code, Some(0), "{at}: {ran:?}");
        let rerun = document(&ran)["session"].as_str().unwrap().to_owned();
        let ran = world.run(&["run", "--resume", &rerun]);
        assert_eq!(ran.code, Some(0), "{at}: {ran:?}");
    }
}

/// A rerun ends at a line that binds new values on one branch. Later lines bind them on the other branches.
#[test]
fn a_session_is_rerun_up_to_where_it_was_bound_anew() {
    let (world, session) = with_a_limit();
    for args in [
        &["fork", &*session, "--say", "Or so?", "--label", "other"][..],
        &["fork", &session, "--say", "Or so?", "--label", "third"],
        &["join", &session, "other", "third", "--on", "any"],
        &["migrate", &session, "--config", "limit=20"],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    }
    // Another message may be sent at the line that binds one of the branches: the others are bound too.
    for (at, say) in [
        ("@head", None),
        ("@head", Some("And now?")),
        (":other@head", Some("And now?")),
    ] {
        let address = format!("{session}{at}");
        let mut args = vec!["rerun", &address, "--json", "--script-all", "script.yaml"];
        args.extend(say.iter().flat_map(|say| ["--say", say]));
        let ran = world.run(&args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        let rerun = document(&ran)["session"].as_str().unwrap().to_owned();
        let ran = world.run(&["run", "--resume", &rerun]);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    }
}

/// A branch that a search left, with a branch that its agent forked, is rerun with the values from before `migrate`.
#[test]
fn a_branch_that_was_left_before_values_were_bound_anew_is_rerun() {
    let world = World::new();
    let config = "config: { limit: { type: integer, default: 10 } }\n";
    let desk = DESK.replace("[look, pay]", "[look, pay, fork]");
    world.write("steersman.yaml", &format!("{desk}{config}"));
    world.write(
        "script.yaml",
        "desk: [ Hello., &f { call: { fork: { instructions: [Look.] } } }, *f, A., B., C., D., E., F., G. ]\n",
    );
    let ran = world.run(&["run", "--input", "Hi.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = recorded(&world);
    for args in [
        &[
            "search", &session, "--say", "Try.", "--n", "2", "--score", "1",
        ][..],
        &["migrate", &session, "--config", "limit=20"],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    }
    let shown = document(&world.run(&["show", &session, "--json"]));
    let branches = shown["branches"].as_array().unwrap();
    assert!(branches.len() > 4, "{branches:#?}");
    for tried in branches.iter().filter_map(|b| b["id"].as_str()) {
        let ran = world.run(&["rerun", &format!("{session}:{tried}"), "--json"]);
        assert_eq!(ran.code, Some(0), "{tried}: {ran:?}");
        let rerun = document(&ran)["session"].as_str().unwrap().to_owned();
        let ran = world.run(&["run", "--resume", &rerun]);
        assert_eq!(ran.code, Some(0), "{tried}: {ran:?}");
    }
}

/// The current branch starts where a rewind left another one, and new values were bound on it alone.
#[test]
fn a_branch_that_was_bound_anew_behind_a_rewind_is_rerun() {
    let world = World::new();
    let config = "config: { limit: { type: integer, default: 10 } }\n";
    world.write("steersman.yaml", &format!("{DESK}{config}"));
    world.write("script.yaml", "desk: [ Hello., A., B., C., D. ]\n");
    let ran = world.run(&["run", "--input", "Hi.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = recorded(&world);
    let (head, left) = (format!("{session}@head"), format!("{session}:main@-2"));
    let chosen = format!("{session}:b1");
    for args in [
        &["migrate", &*session, "--config", "limit=15"][..],
        &["fork", &head, "--say", "Or so?", "--label", "b1"],
        &["adopt", &chosen],
        &["send", &session, "Go on."],
        &["rewind", &left, "--label", "b2"],
        &["migrate", &session, "--config", "limit=20"],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    }
    for at in ["", "@head", "@-1"] {
        for say in [&[][..], &["--say", "And now?"]] {
            let address = format!("{session}{at}");
            let ran = world.run(&[&["rerun", &*address, "--json"], say].concat());
            let is_done = |code: Option<i32>| matches!(code, Some(0 | 8));
            assert!(is_done(ran.code), "{at} {say:?}: {ran:?}");
            let rerun = document(&ran)["session"].as_str().unwrap().to_owned();
            let ran = world.run(&["run", "--resume", &rerun]);
            assert!(is_done(ran.code), "{at} {say:?}: {ran:?}");
        }
    }
}

#[test]
fn many_are_told_in_a_table_and_a_report() {
    let world = paid();
    let ran = world.run(&[
        "run",
        "--input",
        "Pay again.",
        "--script-all",
        "script.yaml",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let all = ["rerun", "--where", "network = desk", "--report", "nightly"];
    let ran = world.run(&all);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("2 same, 0.0000"), "{ran:?}");
    let changed = [
        "--set",
        "agents.desk.system=No.",
        "--script-all",
        "refuses.yaml",
        "--report",
        "changed",
    ];
    let ran = world.run(&[&all[..3], &changed].concat());
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(
        ran.out.contains("2 differs, 0.0000"),
        "reruns are not rerun: {ran:?}"
    );
    let tokens = ran.out.lines().last().unwrap();
    assert!(
        tokens.contains(" -> ") && tokens.ends_with(" tokens"),
        "{ran:?}"
    );
    let summary = std::fs::read_to_string(world.folder.join("changed/summary.json")).unwrap();
    let summary: Json = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["totals"]["differs"], 2, "{summary:#}");
    assert!(world.folder.join("changed/summary.md").is_file());
    assert!(
        world
            .folder
            .join(format!("changed/{}.md", recorded(&world)))
            .is_file()
    );
}

#[test]
fn a_session_becomes_a_test_that_passes_at_once() {
    let world = paid();
    let ran = world.run(&["test", "--record", "last", "--out", "tests/paid.yaml"]);
    assert_eq!(ran.code, Some(2), "there is no folder `tests`: {ran:?}");
    std::fs::create_dir(world.folder.join("tests")).unwrap();
    let ran = world.run(&["test", "--record", "last", "--out", "tests/paid.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.run(&["test", "--junit", "junit.xml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let xml = std::fs::read_to_string(world.folder.join("junit.xml")).unwrap();
    assert!(xml.contains("tests=\"1\" failures=\"0\""), "{xml}");
    assert_eq!(payments(&world), 1, "a test performs no effect");
}

#[test]
fn trajectories_have_one_object_for_each_model_call() {
    let world = paid();
    let ran = world.run(&["export", "last", "--trajectories", "--reward", "paid"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let blocks: Vec<Json> = ran
        .out
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    assert_eq!(blocks.len(), 3, "{ran:?}");
    let roles = |block: &Json| -> Vec<String> {
        let messages = block["messages"].as_array().unwrap().iter();
        messages
            .map(|m| m["role"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        roles(&blocks[2]),
        ["user", "assistant", "tool", "assistant", "tool"]
    );
    assert_eq!(blocks[2]["answer"]["content"], "Paid.");
    assert_eq!(
        blocks[1]["answer"]["tool_calls"][0]["function"]["name"],
        "pay"
    );
    assert_eq!(blocks[0]["reward"], 1.0);
    let schema = crate::world::root().join("docs/reference/trajectories.schema.json");
    let schema: Json = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for block in &blocks {
        let wrong: Vec<String> = schema.iter_errors(block).map(|e| e.to_string()).collect();
        assert_eq!(wrong, [""; 0], "{block:#}");
    }
    let mut wrong = blocks[0].clone();
    wrong["answer"]["role"] = "user".into();
    assert!(!schema.is_valid(&wrong), "the schema refuses a wrong role");
}

#[test]
fn a_reward_is_a_name_or_an_expression_and_checked_before_anything_is_written() {
    let world = paid();
    let worth = |reward: &str| {
        let args = ["export", "last", "--trajectories", "--reward", reward];
        let ran = world.run(&args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        document(&ran)["reward"].clone()
    };
    assert_eq!(worth("paid"), 1.0);
    assert_eq!(worth("outcome.paid * 2"), 2.0);
    assert_eq!(worth("calls.pay.ok == 1 and 'Paid' in answer"), 1.0);
    assert_eq!(worth("answer | length"), 5.0);
    for (wrong, told) in [
        ("nosuch", "no outcome `nosuch`: it has `paid`"),
        ("paid + nosuch", "no outcome `nosuch`"),
        ("outcome.nosuch", "no outcome `nosuch`"),
        ("calls.nosuch.ok", "no tool or agent `nosuch`"),
        ("state.nosuch", "no state `nosuch`"),
        ("paid +", "no expression"),
    ] {
        let args = ["export", "last", "--trajectories", "--reward", wrong];
        let ran = world.run(&[&args[..], &["--out", "train.jsonl"]].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains(told), "{ran:?}");
        assert!(!world.folder.join("train.jsonl").exists(), "{ran:?}");
    }
    let ran = world.run(&["export", "last", "--trajectories", "--reward", "answer"]);
    assert!(
        ran.err.contains("1 branch has no reward by `answer`"),
        "{ran:?}"
    );
    assert_eq!(document(&ran)["reward"], Json::Null);
}

#[test]
fn an_export_of_nothing_says_so() {
    let world = paid();
    let none = [
        "export",
        "--where",
        "network = nosuch",
        "--out",
        "all.jsonl",
    ];
    let ran = world.run(&none);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("no session matches `network = nosuch`"),
        "{ran:?}"
    );
    assert!(!world.folder.join("all.jsonl").exists());
    world.write(
        "quiet.yaml",
        "name: quiet\nagents: { desk: { system: No., tools: [] } }\n",
    );
    world.write("none.yaml", "desk: [ { error: overloaded } ]\n");
    let ran = world.run(&[
        "run",
        "quiet.yaml",
        "--input",
        "Hi.",
        "--script-all",
        "none.yaml",
    ]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let ran = world.run(&[
        "export",
        "--where",
        "network = quiet",
        "--trajectories",
        "--out",
        "t.jsonl",
    ]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err
            .contains("no agent of 1 session has called a model yet"),
        "{ran:?}"
    );
    assert!(!world.folder.join("t.jsonl").exists());
}

#[test]
fn a_session_is_one_document() {
    let world = paid();
    let ran = world.run(&["export", "last"]);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 1), "{ran:?}");
    let mut told = document(&ran);
    let Json::Array(lines) = told["log"].take() else {
        panic!("no lines in {told}");
    };
    let told_by_log = world.run(&["log", "last"]).out;
    let heads: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["head"].as_str())
        .collect();
    let printed = told_by_log.lines().filter(|row| !row.starts_with(' '));
    assert_eq!(heads, printed.collect::<Vec<_>>());
    let (_, mut shown) = world.json(&["show", "last"]);
    shown["log"] = Json::Null;
    assert_eq!(told, shown);
}

#[test]
fn every_version_of_an_artifact_is_exported_with_its_rating() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: scribe\nagents: { scribe: { system: You write., tools: [artifacts] } }\n",
    );
    let write =
        |text| format!("{{ call: {{ artifact_write: {{ name: draft.txt, content: {text} }} }} }}");
    let script = format!("scribe: [ {}, {}, Written. ]\n", write("one"), write("two"));
    world.write("script.yaml", &script);
    let ran = world.run(&["run", "--input", "Write.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rate = [
        "artifacts",
        "last",
        "draft.txt",
        "--version",
        "1",
        "--rate",
        "4",
    ];
    let ran = world.run(&[&rate[..], &["--reason", "good"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for _ in 0..2 {
        let ran = world.run(&["export", "last", "--artifacts", "made"]);
        assert_eq!(ran.code, Some(0), "the existing files are equal: {ran:?}");
    }
    let made = world.folder.join("made");
    let index = std::fs::read_to_string(made.join("index.json")).unwrap();
    let index: Vec<Json> = serde_json::from_str(&index).unwrap();
    assert_eq!(index.len(), 2, "{index:#?}");
    for (row, text) in index.iter().zip(["one", "two"]) {
        let file = made.join(row["file"].as_str().unwrap());
        assert_eq!(std::fs::read_to_string(file).unwrap().trim(), text);
    }
    assert_eq!(index[0]["rating"]["rating"], 4, "{index:#?}");
    assert_eq!(index[1]["rating"], Json::Null);
}

/// The reward of a branch of a search is the score that the search gave it.
#[test]
fn a_branch_of_a_search_has_its_score_as_reward() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: guess\nagents: { guess: { system: You guess. } }\n",
    );
    let script = "guess: [ { any: [ a, bbb, cc ] }, more ]\n";
    world.write("script.yaml", script);
    let begun = ["run", "--input", "Guess.", "--script-all", "script.yaml"];
    assert_eq!(world.run(&begun).code, Some(0));
    let search = ["search", "last@1", "--n", "3", "--score", "answer | length"];
    let ran = world.run(&[&search[..], &["--script-all", "script.yaml"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.run(&["export", "last", "--trajectories"]);
    let blocks: Vec<Json> = ran
        .out
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    let mut judged = 0;
    for block in blocks.iter().filter(|block| block["branch"] != "main") {
        let said = block["answer"]["content"].as_str().unwrap();
        assert_eq!(block["reward"], said.len() as f64, "{block:#}");
        judged += 1;
    }
    assert_eq!(judged, 3, "{blocks:#?}");
}
