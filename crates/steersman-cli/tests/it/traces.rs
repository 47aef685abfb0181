//! Worked scenarios: a rewind past a used approval, a join of branches that a person forked, a call in doubt that is
//! resolved as failed and made again, and a rerun on another model.

use crate::world::{Ran, World};
use serde_json::Value as Json;

const BANK: &str = r#"name: bank
tools:
  balance: { description: Looks., effect: read, command: [echo, "1000"] }
  transfer: { description: Pays., parameters: { cents: integer }, effect: unsafe, approve: "true", command: [sh, -c, "echo paid >> book; echo ref 77"] }
agents:
  bank: { system: You settle., tools: [balance, transfer] }
"#;
const PAYS: &str = "bank: [ { call: [ { balance: {} }, { transfer: { cents: 5 } } ] }, Paid. ]\n";
const AGAIN: &str = "bank: [ never, { call: { transfer: { cents: 5 } } }, So be it. ]\n";

fn payments(world: &World) -> usize {
    std::fs::read_to_string(world.folder.join("book")).map_or(0, |book| book.lines().count())
}

fn document(ran: &Ran) -> Json {
    let last = ran.out.lines().last().unwrap_or("null");
    serde_json::from_str(last).unwrap_or_else(|e| panic!("{e} in {ran:?}"))
}

/// Kind and effect of each row of `pending`.
fn open(world: &World) -> Vec<(String, String)> {
    let listed = world.json_lines(&["pending"]);
    let word = |row: &Json, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    listed
        .iter()
        .map(|row| (word(row, "kind"), word(row, "effect")))
        .collect()
}

/// A transfer was approved and done. Then a rewind went back to the line of the two calls, and the model makes the same
/// transfer again.
fn went_back() -> World {
    let world = World::new();
    world.write("steersman.yaml", BANK);
    world.write("script.yaml", PAYS);
    world.write("again.yaml", AGAIN);
    let ran = world.run(&["run", "--input", "Pay.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let ran = world.run(&["approve", "last", "--script-all", "script.yaml"]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Paid."), "{ran:?}");
    assert_eq!(payments(&world), 1);
    let back = [
        "rewind",
        "last@2",
        "--label",
        "again",
        "--script-all",
        "again.yaml",
    ];
    let ran = world.run(&back);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(
        ran.err
            .contains("2.1 transfer(cents: 5) is done there, and stays so"),
        "{ran:?}"
    );
    world
}

/// The used approval does not cover the call on the new branch. The new question says that an equal call was done.
/// After a rejection the model is told the result of that call.
#[test]
fn a_rewind_past_a_used_approval_asks_anew_and_says_what_was_done() {
    let world = went_back();
    let [(kind, held)] = &open(&world)[..] else {
        panic!("{:?}", open(&world));
    };
    assert_eq!(kind, "approval");
    let told = "The same call was done before on another branch (2.1, done at @";
    let pending = world.run(&["pending", "--json"]).out;
    assert!(pending.contains(told), "{pending}");
    let effects = world.json_lines(&["effects", "last"]);
    let stands = |id: &str| {
        let found = effects.iter().find(|row| row["effect"] == id);
        found.unwrap_or_else(|| panic!("{id} in {effects:?}"))["standing"].clone()
    };
    assert_eq!(stands("2.1"), "done", "on the branch that was left");
    assert_ne!(stands(held), "done");
    let reject = ["reject", "last", "--say", "paid already"];
    let ran = world.run(&[&reject[..], &["--script-all", "again.yaml"]].concat());
    assert_eq!(
        (ran.code, ran.out.trim()),
        (Some(0), "So be it."),
        "{ran:?}"
    );
    assert_eq!(payments(&world), 1);
    let context = world.run(&["context", "last"]).out;
    assert!(context.contains("ref 77"), "{context}");
    let shown = world.run(&["show", "last"]).out;
    for told in [
        "main   left behind after @2",
        "again   rewound to @2, current",
        "not in this branch",
        "refused: rejected",
        "transfer: 1 intended, 1 done, 0 repeated",
        "U A TC TC TR TR A TC TR A F",
    ] {
        assert!(shown.contains(told), "`{told}` in {shown}");
    }
}

/// The call is approved with `--repeat`: there is no second question, and the transfer is done again.
#[test]
fn who_approves_a_repetition_is_asked_once() {
    let world = went_back();
    let approve = ["approve", "last", "--script-all", "again.yaml"];
    assert_eq!(
        payments(&world),
        1,
        "the used approval does not cover this call"
    );
    let listed = world.run(&["pending"]);
    assert!(
        listed.out.contains("approval, again: transfer("),
        "{listed:?}"
    );
    assert!(listed.err.contains(" --repeat"), "{listed:?}");
    assert_eq!(world.json_lines(&["pending"])[0]["repeats"], "2.1");
    let ran = world.run(&approve);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err
            .contains("it would be done again: an equal call is 2.1"),
        "{ran:?}"
    );
    assert_eq!(
        payments(&world),
        1,
        "nobody said that it is to be done again"
    );
    let ran = world.run(&[&approve[..], &["--repeat"]].concat());
    assert_eq!(
        (ran.code, ran.out.trim()),
        (Some(0), "So be it."),
        "{ran:?}"
    );
    assert_eq!(payments(&world), 2);
    assert_eq!(open(&world), []);
    let effects = world.run(&["effects", "last"]);
    assert!(
        effects.out.contains("done, repeats 2.1 (user)"),
        "{effects:?}"
    );
    let sum = "transfer: 2 intended, 2 done, 1 repeated";
    assert!(effects.err.contains(sum), "{effects:?}");
    let rows = world.json_lines(&["effects", "last"]);
    let again = rows.iter().find(|row| row["repeats"] == "2.1");
    assert_eq!(again.unwrap()["allowed"], "user", "{rows:?}");
    // The branch alone is shown with the repetition too, although the first call was done on another branch.
    let sum = "transfer: 1 intended, 1 done, 1 repeated";
    let shown = world.run(&["show", "last:again"]);
    assert!(shown.out.contains(sum), "{shown:?}");
    let effects = world.run(&["effects", "last:again"]);
    assert!(effects.err.contains(sum), "{effects:?}");
    let shown = world.run(&["show", "last:main"]);
    let first = "transfer: 1 intended, 1 done, 0 repeated";
    assert!(shown.out.contains(first), "{shown:?}");
}

const LEAD: &str = r#"name: lead
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, command: [echo, "{{ args.what }}"] }
  aggregate: { description: Sums up., parameters: { message: string }, effect: pure, command: [echo, "both: {{ args.message }}"] }
agents:
  lead: { system: You answer., tools: [look, aggregate] }
"#;
const LEADS: &str = r#"lead: [ First., Together. ]
"lead@b1": [ { call: { look: { what: why } } }, Because. ]
"lead@b2": [ { call: { look: { what: how } } }, Thus. ]
"#;

/// A person forks two branches after the end and joins them, with a tool that then takes their answers.
#[test]
fn two_branches_after_the_end_are_joined_and_a_tool_follows() {
    let world = World::new();
    world.write("steersman.yaml", LEAD);
    world.write("script.yaml", LEADS);
    let scripted = |args: &[&str]| world.run(&[args, &["--script-all", "script.yaml"]].concat());
    assert_eq!(scripted(&["run", "--input", "Go."]).out.trim(), "First.");
    for (label, say, answer) in [("b1", "why?", "Because."), ("b2", "how?", "Thus.")] {
        let ran = scripted(&["fork", "last@2", "--say", say, "--label", label]);
        assert_eq!((ran.code, ran.out.trim()), (Some(0), answer), "{ran:?}");
    }
    let ran = scripted(&["join", "last", "b1", "b2", "--then", "aggregate"]);
    assert_eq!(
        (ran.code, ran.out.trim()),
        (Some(0), "Together."),
        "{ran:?}"
    );
    let shown = world.run(&["show", "last"]).out;
    for told in [
        "b1   forked at @2, dry",
        "b2   forked at @2, dry",
        r#"then: "aggregate")"#,
        r#"join = {"answers":["Because.","Thus."]"#,
        "aggregate = both: ",
        "rests   U A F W WR TC TR A F",
    ] {
        assert!(shown.contains(told), "`{told}` in {shown}");
    }
    for (branch, other) in [("b1", "how?"), ("b2", "why?")] {
        let shown = world.run(&["show", &format!("last:{branch}")]).out;
        assert!(shown.contains("rests   U A F UR A TC TR A F"), "{shown}");
        let context = world.run(&["context", &format!("last:{branch}")]).out;
        assert!(
            !context.contains(other),
            "nothing of the other branch: {context}"
        );
    }
}

const DESK: &str = r#"name: desk
tools:
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, command: [sh, -c, "echo paid >> book; kill -9 $PPID"] }
agents:
  desk: { system: You settle., tools: [pay] }
"#;
const TWICE: &str = "desk: [ { call: { pay: { cents: 5 } } }, { call: { pay: { cents: 5 } } }, It may have happened. ]\n";

/// An unsafe call in doubt is resolved as failed. When the model makes an equal call, it is not started.
#[test]
fn a_call_that_was_given_up_in_doubt_is_not_started_again() {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", TWICE);
    let scripted = |args: &[&str]| world.run(&[args, &["--script-all", "script.yaml"]].concat());
    let ran = scripted(&["run", "--input", "Pay."]);
    assert_eq!(ran.code, None, "killed: {ran:?}");
    let ran = scripted(&["run", "--resume", "last"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    let ran = scripted(&["resolve", "last", "--fail"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let held = open(&world);
    assert_eq!((held.len(), &*held[0].0), (1, "repeat"), "{held:?}");
    let ran = scripted(&["reject", "last", "--say", "no"]);
    let answer = "It may have happened.";
    assert_eq!((ran.code, ran.out.trim()), (Some(0), answer), "{ran:?}");
    assert_eq!(payments(&world), 1, "paid once, or not at all");
    let context = world.run(&["context", "last"]).out;
    for told in [
        "in_doubt: it may have happened (nobody knows)",
        "in_doubt: It is not done again (no). The same call may have happened before",
    ] {
        assert!(context.contains(told), "`{told}` in {context}");
    }
    let effects = world.json_lines(&["effects", "last"]);
    let attempts: Vec<&Json> = effects.iter().map(|row| &row["attempts"]).collect();
    assert_eq!(attempts, [&Json::from(1), &Json::from(0)], "{effects:?}");
}

const TWO: &str = r#"name: desk
models: { default: { provider: scripted, model: small } }
outcome: { paid: calls.pay.ok, cents: calls.pay.args.cents }
tools:
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, approve: args.cents > 6, simulate: pretended, command: [sh, -c, "echo paid >> book; echo ok"] }
agents:
  desk: { system: You settle., tools: [pay] }
"#;

/// A rerun on another model: the difference of the outcome is told first, the log notes the question that a person
/// would get, nobody is asked, and nothing is paid.
#[test]
fn a_rerun_on_another_model_tells_the_outcome_first() {
    let world = World::new();
    world.write("steersman.yaml", TWO);
    let pays = |cents: u32| {
        format!("desk: [ {{ call: {{ pay: {{ cents: {cents} }} }} }}, Paid {cents}. ]\n")
    };
    world.write("small.yaml", &pays(5));
    world.write("large.yaml", &pays(7));
    let ran = world.run(&["run", "--input", "Pay.", "--script-all", "small.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let same = [
        "rerun",
        "last",
        "--model",
        "small",
        "--script-all",
        "large.yaml",
    ];
    let ran = world.run(&[&same[..], &["--json"]].concat());
    assert_eq!(document(&ran)["model_calls"]["live"], 0, "{ran:?}");
    let sessions = world.json_lines(&["sessions"]);
    let recorded = sessions.iter().find(|s| s["labels"]["rerun_of"].is_null());
    let recorded = recorded.unwrap()["session"].as_str().unwrap();
    let other = [
        "rerun",
        recorded,
        "--model",
        "large",
        "--script-all",
        "large.yaml",
    ];
    let ran = world.run(&[&other[..], &["--json"]].concat());
    assert_eq!(ran.code, Some(8), "{ran:?}");
    let told = document(&ran);
    assert_eq!(told["result"], "differs", "{told:#}");
    assert_eq!(told["model_calls"]["live"], 2, "{told:#}");
    assert_eq!(told["diff"]["outcome"]["b"]["cents"], 7, "{told:#}");
    let rerun = told["session"].as_str().unwrap();
    let log = world.run(&["log", rerun]).out;
    assert!(log.contains("would ask "), "{log}");
    let diff = world.run(&["diff", recorded, rerun]);
    assert_eq!(diff.code, Some(8), "{diff:?}");
    let first = diff.out.lines().find(|row| !row.trim().is_empty());
    assert!(first.unwrap_or_default().contains("outcome"), "{diff:?}");
    assert_eq!(payments(&world), 1);
}
