//! Joins on a condition, cancelled branches, two people at once, and requests that are refused before anything is
//! written.

use crate::world::{Ran, World};
use std::fmt::Write;
use std::process::{Child, Stdio};

const DESK: &str = "name: desk
tools:
  nap: { description: Naps., wait: { time: 1h } }
  sum_up: { description: Sums up., parameters: { texts: [string] }, effect: pure, command: [echo, summed up] }
agents:
  desk: { system: You settle., tools: [nap] }
";
const SCRIPT: &str = "desk:
  - Base.
  - Heard.
  - Heard again.
desk@one: [ One., One more. ]
desk@two: [ Two., Two more. ]
desk@slow: [ { call: { nap: {} } }, Slow. ]
";

fn scripted(world: &World, args: &[&str]) -> Ran {
    let mut args = args.to_vec();
    args.extend(["--script-all", "script.yaml"]);
    world.run(&args)
}

/// A session that has answered.
fn ended() -> World {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", SCRIPT);
    let ran = scripted(&world, &["run", "--input", "Begin."]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Base."), "{ran:?}");
    world
}

fn fork(world: &World, label: &str) -> Ran {
    scripted(world, &["fork", "last", "--say", "Say.", "--label", label])
}

#[test]
fn a_join_on_any_leaves_the_others_open_and_show_draws_what_each_came_to() {
    let world = ended();
    assert_eq!(fork(&world, "one").code, Some(0));
    assert_eq!(fork(&world, "slow").code, Some(5));
    assert_eq!(fork(&world, "two").code, Some(0));
    let ran = scripted(&world, &["join", "last", "one", "slow", "--on", "any"]);
    assert!(ran.out.contains("Heard."), "{ran:?}");
    let (_, shown) = world.json(&["show", "last"]);
    let told = |label: &str| {
        let all = shown["branches"].as_array().unwrap();
        let found = all.iter().find(|b| b["label"] == label);
        found
            .unwrap_or_else(|| panic!("{label} in {shown}"))
            .clone()
    };
    assert!(told("one")["joined"].is_u64(), "{shown}");
    assert_eq!(
        (
            told("slow")["ended"].clone(),
            told("slow")["joined"].clone()
        ),
        (false.into(), serde_json::Value::Null)
    );
    // The cancel ends the branch. A second cancel finds nothing open, and writes nothing.
    let ran = scripted(&world, &["cancel", "last:slow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let before = world.json_lines(&["log", "last"]);
    let ran = scripted(&world, &["cancel", "last:slow"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("nothing is open on `slow`"), "{ran:?}");
    assert_eq!(world.json_lines(&["log", "last"]), before);
    insta::assert_snapshot!(world.page(&["show", "last"]));
}

#[test]
fn a_join_hears_of_a_branch_that_is_cancelled() {
    let world = ended();
    assert_eq!(fork(&world, "one").code, Some(0));
    assert_eq!(fork(&world, "slow").code, Some(5));
    let on = "failed == 1 and done == 1";
    let ran = scripted(
        &world,
        &[
            "join", "last", "one", "slow", "--on", on, "--then", "sum_up",
        ],
    );
    assert_eq!(ran.code, Some(5), "it waits for the other branch: {ran:?}");
    let ran = scripted(&world, &["cancel", "last:slow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = world.run(&["show", "last"]);
    for told in ["sum_up", "Heard.", "cancelled"] {
        assert!(shown.out.contains(told), "`{told}` in {shown:?}");
    }
}

/// A cancel of a branch drops the messages that wait for it in the inbox. They start nothing, and the log and the
/// output of the command name them.
#[test]
fn a_cancelled_branch_hears_nothing_more_and_says_what_it_did_not_hear() {
    let world = ended();
    assert_eq!(fork(&world, "slow").code, Some(5));
    let ran = scripted(&world, &["send", "last:slow", "Only costs."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("stored in the session's inbox"), "{ran:?}");
    let ran = scripted(&world, &["cancel", "last:slow", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told: serde_json::Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    assert_eq!(told["status"], "cancelled", "{told}");
    let unheard = "the branch was cancelled before this was heard: Only costs.";
    assert_eq!(told["unheard"], serde_json::json!([unheard]), "{told}");
    let shown = world.run(&["show", "last"]);
    // The row may be wrapped, and the lines of the tree stand before what is.
    let words: Vec<&str> = shown.out.split_whitespace().filter(|w| *w != "|").collect();
    assert!(words.join(" ").contains(unheard), "{shown:?}");
    assert!(!shown.out.contains("Slow."), "nothing began: {shown:?}");
    let (_, shown) = world.json(&["show", "last"]);
    assert_eq!(shown["inbox"], 0, "{shown}");
    // A later message is taken.
    let ran = scripted(&world, &["send", "last:slow", "Still there?"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = world.run(&["show", "last"]);
    assert!(shown.out.contains("Still there?"), "{shown:?}");
    assert!(shown.out.contains("Slow."), "{shown:?}");
}

/// A cancel of a branch that has ended drops the messages that wait for it in the inbox.
#[test]
fn a_cancel_drops_what_was_said_to_a_branch_that_had_ended() {
    let world = ended();
    assert_eq!(fork(&world, "one").code, Some(0));
    let ran = scripted(&world, &["send", "last:one", "And that.", "--no-run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = scripted(&world, &["cancel", "last:one", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told: serde_json::Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    let unheard = "the branch was cancelled before this was heard: And that.";
    assert_eq!(told["unheard"], serde_json::json!([unheard]), "{told}");
    let ran = scripted(&world, &["run", "--resume", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = world.run(&["show", "last"]);
    assert!(!shown.out.contains("One more."), "nothing began: {shown:?}");
    let again = scripted(&world, &["cancel", "last:one"]);
    assert_eq!(
        again.code,
        Some(2),
        "nothing is open or in the inbox: {again:?}"
    );
    let ran = scripted(&world, &["send", "last:one", "Still there?"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = world.run(&["show", "last"]);
    assert!(shown.out.contains("One more."), "{shown:?}");
}

/// A cancel drops the messages in the inbox also if the branch has nothing open yet.
#[test]
fn a_cancel_comes_before_what_nobody_drove() {
    let world = ended();
    let ran = scripted(&world, &["fork", "last", "--label", "one"]);
    assert!(ran.code.is_some(), "{ran:?}");
    let ran = world.run(&["send", "last:one", "Only costs.", "--no-run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = scripted(&world, &["cancel", "last:one"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.err.contains("before this was heard: Only costs."),
        "{ran:?}"
    );
    let shown = world.run(&["show", "last"]);
    assert!(!shown.out.contains("One."), "nothing began: {shown:?}");
}

/// Output and suggested commands name the branch that was acted on, never the current branch of the session.
#[test]
fn what_is_done_on_a_branch_names_the_branch_in_what_follows() {
    let world = ended();
    assert_eq!(fork(&world, "slow").code, Some(5));
    assert_eq!(fork(&world, "one").code, Some(0));
    let ran = scripted(&world, &["send", "last:one", "More?"]);
    assert_eq!(
        (ran.code, ran.out.trim()),
        (Some(0), "One more."),
        "{ran:?}"
    );
    assert!(
        world.filter(&ran.err).contains("steersman send aaSESS:one"),
        "{ran:?}"
    );
    let ran = scripted(&world, &["join", "last", "slow", "one", "--on", "2"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    insta::assert_snapshot!("a_join_says_what_it_waits_for", world.filter(&ran.err));
    let ran = scripted(&world, &["send", "last:slow", "Only costs."]);
    let told = world.filter(&ran.err);
    assert!(
        told.contains("steersman send aaSESS:slow --interrupt"),
        "{told}"
    );
    let ran = scripted(&world, &["send", "last:slow", "--interrupt", "Now."]);
    assert!(
        world
            .filter(&ran.err)
            .contains("steersman send aaSESS:slow"),
        "{ran:?}"
    );
    for command in ["context", "why", "show"] {
        let ran = world.run(&[command, "last:slow"]);
        let told = world.filter(&format!("{}{}", ran.out, ran.err));
        let named = told.matches("aaSESS:slow").count();
        let any = told.matches("aaSESS").count() - usize::from(command == "show");
        assert!(
            named > 0 && (named == any || command == "show"),
            "{command}: {told}"
        );
    }
}

/// `show` of a branch shows it with the lines before its fork, and nothing of other branches.
#[test]
fn a_branch_is_shown_by_its_own_way() {
    let world = ended();
    assert_eq!(fork(&world, "one").code, Some(0));
    assert_eq!(fork(&world, "two").code, Some(0));
    assert_eq!(scripted(&world, &["send", "last", "Go on."]).code, Some(0));
    let page = world.page(&["show", "last:one"]);
    for not in ["Two.", "Heard.", "Go on."] {
        assert!(!page.contains(not), "{not} in {page}");
    }
    let (_, told) = world.json(&["show", "last:one"]);
    assert_eq!(told["answer"], "One.", "{told}");
    insta::assert_snapshot!(page);
}

/// A join that waited for a cancelled branch goes on without its answer. If that fails, the exit code of `cancel` says
/// so.
#[test]
fn a_cancel_that_lets_the_session_fail_says_so() {
    let world = ended();
    assert_eq!(fork(&world, "slow").code, Some(5));
    let join = ["join", "last", "slow", "--on", "any", "--then", "sum_up"];
    assert_eq!(scripted(&world, &join).code, Some(5));
    world.write("script.yaml", "desk: [ Base. ]\n");
    let ran = scripted(&world, &["cancel", "last:slow"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("Failed (script_missing)"), "{ran:?}");
    let log = world.run(&["log", "last"]).out;
    assert!(log.contains(r#"sum_up pure {"texts":[]}"#), "{log}");
}

#[test]
fn what_is_refused_leaves_nothing() {
    let world = ended();
    assert_eq!(fork(&world, "one").code, Some(0));
    let said = scripted(&world, &["send", "last", "Go on."]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let before = world.json_lines(&["log", "last"]);
    let mut page = String::new();
    for args in [
        &["fork", "last", "--label", "one"][..],
        &["rewind", "last@1", "--label", "one"],
        &["adopt", "last:one"],
        &["join", "last", "one", "--on", "2"],
        &["join", "last", "one", "--on", "ok >= 1"],
        &["join", "last", "one", "--on", "done >= 'two'"],
        &["join", "last", "one", "--then", "nothing"],
        &["cancel", "last:one"],
        &["cancel", "last:nowhere"],
        &["rewind", "last:one@3"],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(2), "{args:?} {ran:?}");
        writeln!(page, "$ steersman {}\n{}", args.join(" "), ran.err).unwrap();
    }
    assert_eq!(world.json_lines(&["log", "last"]), before);
    insta::assert_snapshot!(world.filter(&page));
}

fn begins(world: &World, args: &[&str]) -> Child {
    let mut command = world.command(args);
    command.args(["--script-all", "script.yaml"]);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.spawn().unwrap()
}

/// Two people act at once, each from a process: the process that owns the session also takes the act of the other.
#[test]
fn two_people_go_on_from_the_end_side_by_side() {
    let world = ended();
    let both = ["one", "two"]
        .map(|label| begins(&world, &["fork", "last", "--say", "Say.", "--label", label]));
    for mut child in both {
        child.wait().unwrap();
    }
    let ran = scripted(&world, &["run", "--resume", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let both = ["last:one", "last:two"].map(|branch| begins(&world, &["send", branch, "More?"]));
    for mut child in both {
        child.wait().unwrap();
    }
    let ran = scripted(&world, &["run", "--resume", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = scripted(&world, &["join", "last", "one", "two"]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Heard."), "{ran:?}");
    let shown = world.run(&["show", "last"]);
    for told in [
        "One.",
        "One more.",
        "Two.",
        "Two more.",
        "joined at @",
        "Heard.",
    ] {
        assert!(shown.out.contains(told), "`{told}` in {shown:?}");
    }
    let fsck = world.run(&["fsck"]);
    assert_eq!(fsck.code, Some(0), "{fsck:?}");
}

/// The first branch that ends is the result. The other one is cancelled, and `show` says so.
#[test]
fn an_agent_goes_on_with_the_first_of_its_branches() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: racer
tools:
  nap: { description: Naps., wait: { time: 1h } }
  ready: { description: Asks whether to begin., parameters: { question: string }, ask: user }
agents: { racer: { system: You try., tools: [nap, ready, { tool: fork, join: any }] } }
",
    );
    world.write(
        "script.yaml",
        "racer: [ { call: { fork: { instructions: [Slowly., Quickly.] } } }, The quick one. ]
\"racer@1\": [ { call: { nap: {} } }, never ]
\"racer@2\": [ { call: { ready: { question: Now? } } }, Quick. ]
",
    );
    // Both branches wait before one of them continues. Otherwise chance decides how far the other one gets.
    let ran = scripted(&world, &["run", "--input", "Go."]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let ran = world.run(&["answer", "last", "Now."]);
    assert_eq!(
        (ran.code, ran.out.trim()),
        (Some(0), "The quick one."),
        "{ran:?}"
    );
    insta::assert_snapshot!(world.page(&["show", "last"]));
}
