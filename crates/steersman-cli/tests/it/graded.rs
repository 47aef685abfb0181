//! `test --grade` and `rerun --grade`: what is measured, and when it counts as worse.

use crate::hostile::model;
use crate::world::World;
use serde_json::{Value as Json, json};

const DESK: &str = "name: desk
models: { default: { provider: scripted } }
state:
  team: optional string
tools: { sort: { description: Sorts., parameters: { team: string }, set: { team: \"{{ args.team }}\" } } }
agents: { clerk: { system: You sort., tools: [sort] } }
outcome: { team: state.team }
";

const GRADES: &str = "grades:
  says_done: { that: \"answer == 'Done.'\" }
  right_team: { value: outcome.team, is: shipping }
";

/// The definition, with grades and `n` sessions that a script answered well.
fn sorted(n: usize) -> World {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("tests/grades.yaml", GRADES);
    world.write(
        "good.yaml",
        "clerk: [ { call: { sort: { team: shipping } } }, Done. ]\n",
    );
    world.write(
        "bad.yaml",
        "clerk: [ { call: { sort: { team: billing } } }, Done. ]\n",
    );
    for _ in 0..n {
        let ran = world.run(&["run", "--input", "A letter.", "--script-all", "good.yaml"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    world
}

const ALL: [&str; 4] = ["rerun", "--where", "definition = desk", "--grade"];
/// A change by which the recordings are left at their first model call.
const OTHER: [&str; 2] = ["--set", "agents.clerk.system=You sort letters."];

fn and<'a>(first: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [first, more].concat()
}

/// The last document that a command printed.
fn last(world: &World, args: &[&str]) -> (Option<i32>, Json) {
    let ran = world.run(&and(args, &["--json"]));
    let line = ran.out.lines().last().unwrap_or("null");
    let document = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in {ran:?}"));
    (ran.code, document)
}

#[test]
fn recorded_sessions_are_a_baseline_and_a_change_is_worse_or_only_different() {
    let world = sorted(6);
    let (code, was) = last(&world, &and(&ALL, &["--save-baseline", "b.json"]));
    assert_eq!(code, Some(0), "{was:#}");
    assert_eq!(was["grades"][0]["passed"], 6, "{was:#}");
    assert_eq!(was["compared"], Json::Null);
    let against = and(
        &ALL,
        &and(&OTHER, &["--baseline", "b.json", "--script-all"]),
    );
    // Other words and the same team: different, and no worse.
    world.write(
        "words.yaml",
        "clerk: [ { call: { sort: { team: shipping } } }, All done. ]\n",
    );
    let without = GRADES.replace("  says_done: { that: \"answer == 'Done.'\" }\n", "");
    assert_ne!(without, GRADES);
    world.write("tests/grades.yaml", &without);
    let (code, gone) = last(&world, &and(&against, &["words.yaml"]));
    assert_eq!(
        code,
        Some(8),
        "a grade that is not declared any more is not passed over: {gone:#}"
    );
    assert_eq!(gone["compared"][1]["against"], "gone", "{gone:#}");
    world.write("tests/grades.yaml", GRADES);
    let (code, good) = last(&world, &and(&against, &["good.yaml"]));
    assert_eq!(code, Some(0), "{good:#}");
    let (code, bad) = last(&world, &and(&against, &["bad.yaml"]));
    assert_eq!(code, Some(8), "{bad:#}");
    let team = bad["compared"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["grade"] == "right_team")
        .unwrap();
    assert_eq!(
        (&team["against"], &team["was"], &team["is"]),
        (&json!("worse"), &json!("6/6"), &json!("0/6"))
    );
    assert_eq!(team["chance"], 1.0 / 64.0);
    // A grade that is declared otherwise is not compared.
    world.write(
        "tests/grades.yaml",
        &GRADES.replace("is: shipping", "is: billing"),
    );
    let (code, changed) = last(&world, &and(&against, &["bad.yaml"]));
    assert_eq!(code, Some(8), "{changed:#}");
    let words: Vec<&Json> = changed["compared"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["against"])
        .collect();
    assert!(words.contains(&&json!("changed")), "{changed:#}");
}

#[test]
fn few_sessions_cannot_show_a_loss_and_this_is_said() {
    let world = sorted(2);
    let saved = world.run(&and(&ALL, &["--save-baseline", "b.json"]));
    assert_eq!(saved.code, Some(0), "{saved:?}");
    let ran = world.run(&and(
        &ALL,
        &and(
            &OTHER,
            &[
                "--baseline",
                "b.json",
                "--script-all",
                "bad.yaml",
                "--report",
                "out",
            ],
        ),
    ));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("lower, may be chance (0.250)"), "{ran:?}");
    assert!(
        ran.err
            .contains("too few runs to find a loss in: right_team, says_done"),
        "{ran:?}"
    );
    let kept = std::fs::read_to_string(world.folder.join("out/grades.json")).unwrap();
    assert!(kept.contains("\"0/1\""), "{kept}");
}

#[test]
fn expected_values_are_given_by_session() {
    let world = sorted(2);
    let sessions = world.json_lines(&["sessions"]);
    let id = sessions[0]["session"].as_str().unwrap();
    let grades = format!(
        "grades:\n  team: {{ value: outcome.team, expected: {{ {}: returns }} }}\n",
        &id[..8]
    );
    world.write("tests/grades.yaml", &grades);
    let (code, told) = last(&world, &ALL);
    assert_eq!(code, Some(0), "{told:#}");
    let team = &told["grades"][0];
    assert_eq!(
        (&team["passed"], &team["of"]),
        (&json!(0), &json!(1)),
        "{told:#}"
    );
}

#[test]
fn a_judge_of_a_rerun_is_asked_once_a_session_and_what_it_cannot_judge_is_not_passed_over() {
    let world = sorted(1);
    world.write(
        "tests/grades.yaml",
        "grades: { kind: { rubric: It is kind. } }\n",
    );
    let judged = |answer: &str| {
        world.write(
            "judge.yaml",
            &format!("clerk: []\njudge#kind: [ {answer} ]\n"),
        );
        world.run(&["rerun", "last", "--grade", "--script-all", "judge.yaml"])
    };
    let session = world.json_lines(&["sessions"])[0]["session"]
        .as_str()
        .unwrap()
        .to_owned();
    let again = |answer: &str| {
        world.write("judge.yaml", &format!("judge#kind: [ {answer} ]\n"));
        world.run(&["rerun", &session, "--grade", "--script-all", "judge.yaml"])
    };
    let passed = judged("{ output: { why: It thanks., pass: true } }");
    assert_eq!(passed.code, Some(0), "{passed:?}");
    assert!(passed.out.contains("kind   1/1"), "{passed:?}");
    let failed = again("{ output: { why: It is curt., pass: false } }");
    assert_eq!(failed.code, Some(0), "nothing to compare with: {failed:?}");
    assert!(failed.out.contains("failed: It is curt."), "{failed:?}");
    let broken = again("{ error: bad_request }");
    assert_eq!(broken.code, Some(8), "{broken:?}");
    assert!(broken.out.contains("not measured: the judge"), "{broken:?}");
    world.write("judge.yaml", "clerk: []\n");
    let silent = world.run(&["rerun", &session, "--grade", "--script-all", "judge.yaml"]);
    assert_eq!(silent.code, Some(8), "{silent:?}");
    assert!(silent.out.contains("`judge#kind`"), "{silent:?}");
}

/// The judge of a live test is the definition's model, asked after the session.
#[test]
fn a_live_test_asks_the_models_and_the_judge() {
    let world = World::new();
    let address = model(vec![
        json!({ "role": "assistant", "content": "Hello from the model." }),
        json!({ "role": "assistant", "content": "{\"why\":\"It greets.\",\"pass\":true}" }),
    ]);
    world.write(
        "steersman.yaml",
        &format!(
            "name: greeter
models: {{ default: {{ provider: compatible, model: m, url: \"{address}/v1\", calls: structured }} }}
agents: {{ greeter: {{ system: You greet. }} }}
grades: {{ polite: {{ rubric: It is polite. }}, real: {{ that: \"'model' in answer\" }} }}
tests: {{ greets: {{ script: {{ greeter: [ Hello. ] }}, steps: [ {{ say: Hi }} ] }} }}
"
        ),
    );
    let ran = world.run(&["test", "--grade", "--live"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for row in ["expect  1/1", "polite  1/1", "real    1/1"] {
        assert!(ran.out.contains(row), "{row}: {ran:?}");
    }
    let offline = world.run(&["test", "--grade"]);
    assert_eq!(
        offline.code,
        Some(8),
        "no judge answers offline: {offline:?}"
    );
    assert!(offline.out.contains("real, greets: failed"), "{offline:?}");
}

#[test]
fn wrong_use_of_grades_says_what_to_do() {
    let world = sorted(1);
    world.write(
        "other.json",
        "{\"steersman_baseline\":1,\"network\":\"bank\",\"grades\":{}}",
    );
    world.write("text.json", "hello");
    for (args, said) in [
        (&["test", "--grade"][..], "has no tests"),
        (&["test", "--runs", "3"], "--grade"),
        (&["rerun", "last", "--baseline", "b.json"], "--grade"),
        (
            &["rerun", "last", "--grade", "--baseline", "b.json"],
            "--save-baseline b.json makes one",
        ),
        (
            &["rerun", "last", "--grade", "--baseline", "text.json"],
            "it is not JSON",
        ),
        (
            &["rerun", "last", "--grade", "--baseline", "other.json"],
            "is of `bank`, and this is `desk`",
        ),
        (
            &[
                "rerun",
                "last",
                "--grade",
                "--save-baseline",
                "no/such/b.json",
            ],
            "name a file in a folder that exists",
        ),
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.err.contains(said), "{args:?}: {ran:?}");
    }
    std::fs::remove_file(world.folder.join("tests/grades.yaml")).unwrap();
    let none = world.run(&["rerun", "last", "--grade"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.err.contains("`desk` has no grades"), "{none:?}");
}
