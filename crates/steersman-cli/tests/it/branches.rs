//! `fork`, `join`, `adopt` and `rewind`: their output, what they refuse, and kills of their processes.

use crate::world::{PAYS as DESK, Ran, World};
use serde_json::Value as Json;
use std::fmt::Write;
use std::process::Stdio;

const SCRIPT: &str = "desk:
  - call: { look: { what: order } }
  - call: { pay: { cents: 5 } }
  - Paid.
  - Further.
desk@fee: [ Payments are free., Still free. ]
desk@dry: [ { call: { pay: { cents: 7 } } }, Forecast. ]
";

/// A session that has paid: line 2 calls `look`, line 3 has its result, line 4 calls `pay`, line 5 has its result, and
/// line 6 the answer.
fn paid() -> World {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", SCRIPT);
    let ran = scripted(&world, &["run", "--input", "Pay."]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Paid."), "{ran:?}");
    world
}

fn scripted(world: &World, args: &[&str]) -> Ran {
    let mut args = args.to_vec();
    args.extend(["--script-all", "script.yaml"]);
    world.run(&args)
}

fn document(ran: &Ran) -> Json {
    serde_json::from_str(ran.out.lines().last().unwrap_or("null"))
        .unwrap_or_else(|e| panic!("{e} in {ran:?}"))
}

fn payments(world: &World) -> usize {
    std::fs::read_to_string(world.folder.join("book")).map_or(0, |book| book.lines().count())
}

#[test]
fn a_fork_goes_on_beside_the_session_and_is_drawn_there() {
    let world = paid();
    let fork = ["fork", "last@3", "--say", "And the fee?", "--label", "fee"];
    let ran = scripted(&world, &[&fork[..], &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = document(&ran);
    for (key, value) in [
        ("branch", Json::from("fee")),
        ("answer", "Payments are free.".into()),
        ("from", 3.into()),
        ("dry", true.into()),
        ("current", false.into()),
    ] {
        assert_eq!(told[key], value, "{key} in {told}");
    }
    assert_eq!(payments(&world), 1);
    let (_, shown) = world.json(&["show", "last"]);
    assert_eq!(shown["current"], "main");
    // A message to a branch reaches this branch only.
    let ran = scripted(&world, &["send", "last:fee", "Sure?"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let branch = world.run(&["show", "last:fee"]);
    assert!(branch.out.contains("Still free."), "{branch:?}");
    insta::assert_snapshot!(world.page(&["show", "last"]));
}

/// Two branches each have an effect for the same call. When one is done, the standing of the other does not change.
#[test]
fn an_effect_of_an_open_call_is_done_on_its_own_branch_alone() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        &DESK.replace("effect: unsafe,", "effect: unsafe, approve: true,"),
    );
    world.write(
        "script.yaml",
        "desk: [ Hi., { call: { pay: { cents: 5 } } }, Paid., Paid., Paid., Paid. ]\n",
    );
    let ran = |args: &[&str], code: i32| {
        let ran = scripted(&world, args);
        assert_eq!(ran.code, Some(code), "{ran:?}");
    };
    ran(&["run", "--input", "Hello."], 0);
    ran(&["fork", "last", "--say", "Pay.", "--label", "dry"], 0);
    ran(&["adopt", "last:dry"], 5);
    let effects = || world.json_lines(&["effects", "last"]);
    let wished = effects()[0]["line"].to_string();
    ran(&["fork", &format!("last@{wished}"), "--label", "other"], 0);
    ran(&["approve", "last", "pay"], 0);
    let standing: Vec<Json> = effects().iter().map(|e| e["standing"].clone()).collect();
    assert_eq!(standing, ["simulated", "done", "simulated"]);
    assert_eq!(payments(&world), 1);
}

#[test]
fn a_fork_of_an_open_call_hears_what_was_said_after_it() {
    let world = paid();
    let ran = scripted(
        &world,
        &["fork", "last@look", "--say", "Hm?", "--label", "fee"],
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = world.run(&["show", "last:fee"]);
    assert!(shown.out.contains("Hm?"), "{shown:?}");
}

#[test]
fn a_dry_fork_is_adopted_and_then_pays_for_real() {
    let world = paid();
    let fork = ["fork", "last", "--say", "Once more.", "--label", "dry"];
    let ran = scripted(&world, &fork);
    assert_eq!(
        (ran.code, ran.out.trim()),
        (Some(0), "Forecast."),
        "{ran:?}"
    );
    assert_eq!(payments(&world), 1, "a forecast pays nothing");
    world.write(
        "script.yaml",
        "desk: [ never, never, never, never, Paid for good., more ]\n",
    );
    let ran = scripted(&world, &["adopt", "last:dry"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(payments(&world), 2, "{ran:?}");
    let told = "The session goes on with dry. What was simulated there is asked for and done now.";
    assert!(ran.err.contains(told), "{ran:?}");
    let (_, shown) = world.json(&["show", "last"]);
    let live: Vec<&Json> = shown["branches"].as_array().unwrap().iter().collect();
    let live = live.iter().filter(|b| b["superseded"] == false).count();
    assert_eq!(live, 1, "{shown}");
}

#[test]
fn a_branch_is_adopted_once() {
    let world = paid();
    let fork = ["fork", "last", "--say", "Once more.", "--label", "dry"];
    assert_eq!(scripted(&world, &fork).code, Some(0));
    world.write(
        "script.yaml",
        "desk: [ never, never, never, never, Paid for good., more ]\n",
    );
    let adopt = ["adopt", "last:dry"];
    assert_eq!(scripted(&world, &adopt).code, Some(0));
    let before = world.json_lines(&["log", "last"]);
    let ran = scripted(&world, &adopt);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let told = "branch `dry` was adopted already at @";
    assert!(
        ran.err.contains(told) && ran.err.contains(", up to @"),
        "{ran:?}"
    );
    assert_eq!(payments(&world), 2, "{ran:?}");
    assert_eq!(
        world.json_lines(&["log", "last"]),
        before,
        "nothing was written"
    );
}

/// An adoption cancels the holds of the branch that is left, and lists them. If nothing was simulated, it does not
/// speak of simulated effects.
#[test]
fn an_adoption_says_what_is_done_and_what_is_cancelled() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        &DESK.replace("effect: unsafe,", "effect: unsafe, approve: true,"),
    );
    world.write(
        "script.yaml",
        "desk: [ { call: { pay: { cents: 5 } } }, Left., Right. ]\ndesk@b: [ Left. ]\n",
    );
    assert_eq!(scripted(&world, &["run", "--input", "Pay."]).code, Some(5));
    assert_eq!(
        scripted(&world, &["fork", "last", "--label", "b"]).code,
        Some(0)
    );
    let ran = scripted(&world, &["adopt", "last:b"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = "The session goes on with b.\n  cancelled: approval 2.0 (pay)\n";
    assert!(ran.err.contains(told), "{ran:?}");
    let world = paid();
    let fork = ["fork", "last", "--say", "And the fee?", "--label", "fee"];
    assert_eq!(scripted(&world, &fork).code, Some(0));
    let ran = scripted(&world, &["adopt", "last:fee"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.err.contains("The session goes on with fee.\n"),
        "{ran:?}"
    );
}

#[test]
fn what_would_lose_something_is_refused_with_the_paths() {
    let world = paid();
    let fork = ["fork", "last@3", "--say", "And the fee?", "--label", "fee"];
    assert_eq!(scripted(&world, &fork).code, Some(0));
    insta::assert_snapshot!(world.page(&["adopt", "last:fee"]));
    // A rewind to the branch is possible: it leaves the payment behind, and lists it.
    let ran = scripted(&world, &["rewind", "last:fee@head", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = document(&ran);
    assert_eq!(told["current"], true);
    assert!(
        told["left"][0]
            .as_str()
            .unwrap()
            .contains("pay(cents: 5) is done"),
        "{told}"
    );
}

#[test]
fn a_rewind_leaves_a_future_that_stays_readable_and_lists_what_it_did() {
    let world = paid();
    world.write("after.yaml", "desk: [ never, Then not., more ]\n");
    let ran = world.run(&[
        "rewind",
        "last@3",
        "--say",
        "Do not pay.",
        "--label",
        "again",
        "--script-all",
        "after.yaml",
    ]);
    assert_eq!(
        (ran.code, ran.out.trim()),
        (Some(0), "Then not."),
        "{ran:?}"
    );
    assert!(
        ran.err
            .contains("pay(cents: 5) is done there, and stays so"),
        "{ran:?}"
    );
    let left = world.run(&["show", "last:main"]);
    assert!(left.out.contains("Paid."), "{left:?}");
    insta::assert_snapshot!(world.page(&["show", "last"]));
}

const REFUNDS: &str = r#"name: desk
tools:
  refund:
    description: Refunds.
    parameters: { cents: integer }
    effect: unsafe
    approve: { by: clerk, ask: "Refund {{ args.cents }}?" }
    command: [sh, -c, "echo refunded >> book; echo ok"]
agents:
  clerk: { person: { role: clerk } }
  desk: { system: You refund., tools: [refund] }
entry: desk
"#;

/// A refund that is only a little different from one on a branch that was left is no equal effect. The person who goes back is told what was done before
/// anything goes on, and the person who approves is told of the first refund.
#[test]
fn who_approves_is_told_what_the_same_tool_did_on_a_branch_that_was_left() {
    let world = World::new();
    world.write("steersman.yaml", REFUNDS);
    let script = "desk: [ { call: { refund: { cents: 45 } } }, { call: { refund: { cents: 40 } } }, Done. ]\n";
    world.write("script.yaml", script);
    assert_eq!(
        scripted(&world, &["run", "--input", "Refund it."]).code,
        Some(5)
    );
    // Before anything is left there is nothing to be told.
    let shown = world.run(&["show", "last"]);
    assert!(!shown.out.contains("which was left"), "{shown:?}");
    let ran = scripted(&world, &["approve", "last", "--as", "clerk"]);
    assert!(
        ran.err.contains("Refund 40?") && !ran.err.contains("which was left"),
        "{ran:?}"
    );

    world.write(
        "script.yaml",
        "desk: [ { call: { refund: { cents: 40 } } }, Done., Done. ]\n",
    );
    let ran = scripted(&world, &["rewind", "last@1", "--say", "It is 40."]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let (done, asked) = (
        "refund(cents: 45) is done there, and stays so",
        "Refund 40?",
    );
    let (said, question) = (ran.err.find(done), ran.err.find(asked));
    assert!(said.is_some() && said < question, "{ran:?}");
    let told = "with (cents: 45) is done on main, which was left";
    let folded = |text: &str| {
        text.replace(['|', '\n'], " ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert!(folded(&ran.err).contains(told), "{ran:?}");
    for ran in [
        world.run(&["show", "last"]),
        scripted(&world, &["run", "--resume", "last"]),
    ] {
        let told_here = folded(&format!("{}{}", ran.out, ran.err)).contains(told);
        assert!(told_here, "{ran:?}");
    }
    let (_, shown) = world.json(&["show", "last"]);
    let beside = &shown["holds"][0]["elsewhere"];
    assert_eq!(
        beside[0]["args"],
        serde_json::json!({ "cents": 45 }),
        "{shown:#}"
    );
    assert_eq!(beside.as_array().unwrap().len(), 1, "{shown:#}");
    let ran = scripted(&world, &["approve", "last", "--as", "clerk"]);
    assert!(
        ran.err.contains("Also: refund of ") && ran.err.contains(told),
        "{ran:?}"
    );
    assert_eq!(
        std::fs::read_to_string(world.folder.join("book"))
            .unwrap()
            .lines()
            .count(),
        2
    );
}

#[test]
fn branches_are_joined() {
    let world = paid();
    let script = "desk: [ never, never, never, Both are heard. ]
desk@one: [ One. ]
desk@two: [ Two. ]
";
    world.write("script.yaml", script);
    for label in ["one", "two"] {
        let ran = scripted(&world, &["fork", "last", "--say", "Say.", "--label", label]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let ran = scripted(&world, &["join", "last", "one", "last:two"]);
    assert_eq!(
        (ran.code, ran.out.trim()),
        (Some(0), "Both are heard."),
        "{ran:?}"
    );
}

#[test]
fn bad_input_of_branches_says_what_to_do() {
    let world = paid();
    let ran = scripted(&world, &["fork", "last@3", "--say", "?", "--label", "fee"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let before = world.json_lines(&["log", "last"]);
    let mut page = String::new();
    for args in [
        &["fork", "nobody"][..],
        &["fork", "last:nowhere"],
        &["fork", "last@99"],
        &["fork", "last@refund"],
        &["fork", "last@-90"],
        &["fork", "last", "--label", "4.2"],
        &["fork", "last", "--label", "main"],
        &["rewind", "last"],
        &["rewind", "last:fee@5"],
        &["adopt", "last"],
        &["adopt", "last:nowhere"],
        &["join", "last"],
        &["join", "last", "main"],
        &["join", "last", "nowhere"],
        &["send", "last@3", "Hello."],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(2), "{args:?} {ran:?}");
        assert_eq!(ran.out, "", "{args:?}");
        writeln!(page, "$ steersman {}\n{}", args.join(" "), ran.err).unwrap();
    }
    assert_eq!(
        world.json_lines(&["log", "last"]),
        before,
        "nothing was written"
    );
    insta::assert_snapshot!(world.filter(&page));
}

/// Another process drives the session: it takes the fork. A second fork with the same label is refused, with the
/// reason.
#[test]
fn a_branch_operation_reaches_the_process_that_owns_the_session() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk\ntools: { nap: { description: Naps., effect: read, command: [sleep, \"60\"], timeout: 2m } }\nagents: { desk: { system: You help., tools: [nap] } }\n",
    );
    world.write(
        "script.yaml",
        "desk: [ Hello., { call: { nap: {} } }, more ]\ndesk@b1: [ There., Still. ]\n",
    );
    assert_eq!(scripted(&world, &["run", "--input", "Hi."]).code, Some(0));
    let mut owner = world
        .command(&["send", "last", "Nap.", "--script-all", "script.yaml"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let owned = || world.json_lines(&["sessions"])[0]["owner"].is_string();
    while !owned() {
        std::thread::yield_now();
    }
    let fork = ["fork", "last@2", "--say", "There?", "--label", "b1"];
    let ran = scripted(&world, &fork);
    assert!(
        ran.err.contains("drives this session and takes it"),
        "{ran:?}"
    );
    // The answer of the branch is shown here, although the other process gave it.
    assert_eq!((ran.code, &*ran.out), (Some(0), "There.\n"), "{ran:?}");
    let said = scripted(&world, &["send", "last:b1", "Still there?"]);
    assert_eq!((said.code, &*said.out), (Some(0), "Still.\n"), "{said:?}");
    let ran = scripted(&world, &fork);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("a branch `b1` exists already"), "{ran:?}");
    owner.kill().unwrap();
    owner.wait().unwrap();
    let shown = world.run(&["show", "last:b1"]);
    assert!(shown.out.contains("There?"), "{shown:?}");
}

/// A `fork` that is killed at any moment leaves the whole branch or none, and the session goes on.
#[test]
fn a_killed_fork_leaves_a_whole_session() {
    for pause in [0_u64, 1, 3, 6, 12, 25, 50] {
        let world = paid();
        let mut child = world
            .command(&[
                "fork",
                "last@3",
                "--say",
                "And the fee?",
                "--label",
                "fee",
                "--script-all",
                "script.yaml",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        for _ in 0..pause * 2_000 {
            std::thread::yield_now();
        }
        let _ = child.kill();
        child.wait().unwrap();
        let ran = scripted(&world, &["run", "--resume", "last"]);
        assert_eq!(ran.code, Some(0), "{pause} {ran:?}");
        let fsck = world.run(&["fsck"]);
        assert_eq!(fsck.code, Some(0), "{pause} {fsck:?}");
        let (_, shown) = world.json(&["show", "last"]);
        let branches = shown["branches"].as_array().unwrap();
        if branches.len() == 2 {
            let branch = world.run(&["show", "last:fee"]);
            assert!(branch.out.contains("And the fee?"), "{branch:?}");
        }
        assert_eq!(payments(&world), 1);
    }
}

/// The labels of a session are those of its current branch: `sessions --where` finds it by them after each rewind.
#[test]
fn labels_follow_the_current_branch() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r#"name: desk
state: { a: { type: string, optional: true } }
labels: { a: "{{ state.a or 'none' }}" }
tools: { put: { description: Puts., parameters: { v: string }, set: { a: "{{ args.v }}" } } }
agents: { desk: { system: You work., tools: [put] } }
"#,
    );
    world.write(
        "script.yaml",
        "desk: [ { call: { put: { v: left } } }, Put., More. ]\ndesk@back: [ Anew., More. ]\n",
    );
    let found = |world: &World, what: &str| {
        let ran = world.run(&["sessions", "--where", &format!("a = {what}"), "--json"]);
        ran.out.lines().count()
    };
    scripted(&world, &["run", "--input", "Go."]);
    assert_eq!((found(&world, "left"), found(&world, "none")), (1, 0));
    let back = scripted(
        &world,
        &["rewind", "last@1", "--label", "back", "--say", "Again."],
    );
    assert_eq!(
        (found(&world, "left"), found(&world, "none")),
        (0, 1),
        "{back:?}"
    );
    let adopted = scripted(&world, &["rewind", "last:main@head"]);
    assert_eq!(
        (found(&world, "left"), found(&world, "none")),
        (1, 0),
        "{adopted:?}"
    );
}

const FORKS: &str = r#"name: forks
tools:
  mail:     { description: Mails., effect: unsafe, command: [sh, -c, "echo mail >> book; echo sent"] }
  transfer: { description: Pays., parameters: { amount: integer }, effect: unsafe, simulate: as if paid, command: [sh, -c, "echo paid >> book; echo ref 77"] }
agents:
  p: { system: You lead., tools: [a, b] }
  a: { description: Tries., system: You try., tools: [transfer, { tool: fork, choose: critic }] }
  b: { description: Mails., system: You mail., tools: [mail] }
  critic: { description: Chooses., system: You choose. }
entry: p
"#;
const FORKED: &str = r#"p: [ { call: [ { a: { message: Go. } }, { b: { message: Go. } } ] }, All done. ]
a: [ { call: { fork: { instructions: [Wait., Pay.] } } }, never asked for, Paid. ]
"a@1": [ Nothing was paid. ]
"a@2": [ { call: { transfer: { amount: 5 } } }, It was paid. ]
b: [ { call: { mail: {} } }, Mailed. ]
critic: [ "2" ]
"#;

/// An agent forks while its sibling works, and a critic chooses a branch. The effect that this branch simulated is then
/// performed, and the effect of the sibling is performed once.
#[test]
fn an_agent_that_forked_goes_on_with_what_a_critic_chose() {
    let world = World::new();
    world.write("steersman.yaml", FORKS);
    world.write("script.yaml", FORKED);
    let ran = scripted(&world, &["run", "--input", "Go."]);
    assert_eq!(
        (ran.code, ran.out.trim()),
        (Some(0), "All done."),
        "{ran:?}"
    );
    let book = std::fs::read_to_string(world.folder.join("book")).unwrap();
    let mut book: Vec<&str> = book.lines().collect();
    book.sort_unstable();
    assert_eq!(book, ["mail", "paid"], "each was done once");
    let shown = world.run(&["show", "last"]).out;
    for told in [
        ", dry, joined at @",
        "left behind after",
        ", dry, adopted up to @",
        "transfer = as if paid",
        "takes over ",
        "mail: 1 intended, 1 done, 0 repeated",
        "transfer: 1 intended, 1 done, 0 repeated",
        "p/a                  rests   U A W WR A TC TR A F",
        "p/a/critic           rests   U A F",
        "p/b                  rests   U A TC TR A F",
    ] {
        assert!(shown.contains(told), "`{told}` in {shown}");
    }
    let (_, shown) = world.json(&["show", "last"]);
    assert_eq!(shown["current"], "main");
    let effects = world.run(&["effects", "last"]).out;
    let stands = |how: &str| effects.lines().filter(|l| l.contains(how)).count();
    assert_eq!(
        (stands(" done "), stands(" simulated ")),
        (2, 1),
        "{effects}"
    );
    let log = world.run(&["log", "last"]).out;
    assert!(log.contains("adopts  ") && log.contains("open\n"), "{log}");
}

/// A rewind leaves an effect that started and whose process was killed, before the rewind or after it. Its outcome is
/// not known until a person resolves it.
#[test]
fn what_began_in_a_future_that_was_left_is_unknown_until_somebody_says() {
    for (until, standing) in [("-e began", "in doubt"), ("-e left", "unknown")] {
        let world = World::new();
        let pays = format!("touch began; while [ ! {until} ]; do :; done; kill -9 $PPID");
        let tool = format!(
            "description: Pays., parameters: {{ cents: integer }}, effect: unsafe, command: [sh, -c, \"{pays}\"]"
        );
        world.write(
            "steersman.yaml",
            &format!("name: desk\ntools: {{ pay: {{ {tool} }} }}\nagents: {{ desk: {{ system: You pay., tools: [pay] }} }}\n"),
        );
        world.write(
            "script.yaml",
            "desk: [ Hello., { call: { pay: { cents: 5 } } }, Not., more ]\n",
        );
        assert_eq!(scripted(&world, &["run", "--input", "Hi."]).code, Some(0));
        let send = ["send", "last", "Pay.", "--script-all", "script.yaml"];
        let mut driver = world.command(&send).spawn().unwrap();
        while !world.folder.join("began").exists() {
            std::thread::yield_now();
        }
        if standing == "in doubt" {
            driver.wait().unwrap();
        }
        let ran = scripted(&world, &["rewind", "last@2"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        world.write("left", "");
        driver.wait().unwrap();
        let shown = world.run(&["show", "last"]);
        let told = "pay was started in what is left behind";
        assert!(shown.out.contains(told), "{shown:?}");
        assert!(shown.out.contains("outcome not known"), "{shown:?}");
        let (_, effect) = world.json(&["effects", "last"]);
        assert_eq!(effect["standing"], standing, "{effect}");
        let id = effect["effect"].as_str().unwrap();
        let told = scripted(&world, &["resolve", "last", id, "--done=\"paid\""]);
        assert_eq!(told.code, Some(0), "{told:?}");
        let (_, effect) = world.json(&["effects", "last"]);
        assert_eq!(effect["standing"], "done (says user)", "{effect}");
        let again = scripted(&world, &["resolve", "last", id, "--fail"]);
        assert_eq!(again.code, Some(2), "{again:?}");
        assert_eq!(world.run(&["fsck"]).code, Some(0));
    }
}
