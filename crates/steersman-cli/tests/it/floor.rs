//! A member of a handoff rests in its route: what may be done to a session whose agent has the floor, what is said of it, and
//! which commands are proposed.

use crate::world::{Ran, World};
use std::collections::BTreeSet;

const DESK: &str = r#"name: desk
config: { tone: kind }
state: { order: optional string }
tools:
  find: { description: Finds., parameters: { order: string }, effect: read, command: [echo, ok], set: { order: "{{ args.order }}" } }
  pay: { description: Pays., effect: unsafe, approve: true, command: [echo, paid] }
agents:
  front: { description: Greets., system: You greet. }
  money: { description: Pays., system: "You are {{ config.tone }}.", tools: [find, pay] }
  desk: { route: { handoff: { front: [money], money: [front] }, start: front } }
entry: desk
"#;

const SCRIPT: &str = r#"front:
  - call: { handoff: { to: money, reason: It is about money. } }
money:
  - call: { find: { order: "4711" } }
  - "One: {{ request.system }}"
  - "Two: {{ request.system }}"
  - "Three: {{ request.system }}"
"#;

fn desk(script: &str) -> World {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", script);
    let ran = world.run(&["run", "--input", "Hi.", "--script-all", "script.yaml"]);
    assert!(matches!(ran.code, Some(0 | 5)), "{ran:?}");
    world
}

fn says(ran: &Ran, said: &str) {
    assert_eq!((ran.code, ran.out.trim()), (Some(0), said), "{ran:?}");
}

#[test]
fn a_session_is_bound_anew_while_a_member_has_the_floor() {
    let world = desk(SCRIPT);
    world.write("steersman.yaml", &DESK.replace("You are", "Always be"));
    let ran = world.run(&["run", "--resume", "last", "--rebind", "--input", "Again."]);
    says(&ran, "Two: Always be kind.");
    let ran = world.run(&["migrate", "last", "--config", "tone=brief"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    says(
        &world.run(&["send", "last", "More."]),
        "Three: Always be brief.",
    );
    // A definition in which nobody gives the floor to the member cannot go on with it.
    let alone = DESK.replace("front: [money], money: [front]", "front: []");
    world.write("steersman.yaml", &alone);
    let ran = world.run(&["run", "--resume", "last", "--rebind"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.err.contains("is no member of it there"), "{ran:?}");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
}

#[test]
fn what_is_open_is_ended_as_the_hint_says() {
    let script = "front: [ { call: { handoff: { to: money, reason: Pay. } } } ]\nmoney: [ { call: { pay: {} } }, \"{{ request.system }}\" ]\n";
    let world = desk(script);
    world.write("steersman.yaml", &DESK.replace("You are", "Always be"));
    let rebind = ["run", "--resume", "last", "--rebind"];
    let ran = world.run(&rebind);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.err.contains("a cancel ends what is open"), "{ran:?}");
    let cancel = ran
        .err
        .lines()
        .find_map(|line| line.split_once(": steersman cancel "));
    let (_, session) = cancel.unwrap();
    world.run(&["cancel", session]);
    let ran = world.run(&rebind);
    assert!(!ran.err.contains("does not take"), "{ran:?}");
}

#[test]
fn a_member_with_the_floor_waits_for_nothing() {
    let world = desk(SCRIPT);
    let shown = world.run(&["show", "last"]).all();
    assert!(shown.contains("rests, money has the floor"), "{shown}");
    assert!(!shown.contains("waits for results"), "{shown}");
    let (_, page) = world.json(&["show", "last"]);
    assert_eq!(page["agents"][0]["floor"], "money", "{page:#}");
    let why = world.run(&["why", "last"]).out;
    assert!(
        why.contains("none yet: money has the floor and answered @"),
        "{why}"
    );
    assert!(!why.contains("the call is open"), "{why}");
    assert!(why.contains("gave the floor to money"), "{why}");
    let graph = world.run(&["graph", "last"]).out;
    assert!(graph.contains("handed the floor over"), "{graph}");
    // A call that is waited for is open.
    let world = desk(
        "front: [ { call: { handoff: { to: money, reason: Pay. } } } ]\nmoney: [ { call: { pay: {} } } ]\n",
    );
    let why = world.run(&["why", "last"]).out;
    assert!(why.contains("none yet: the call is open"), "{why}");
    let shown = world.run(&["show", "last"]).all();
    assert!(shown.contains("waits for results"), "{shown}");
}

#[test]
fn texts_are_erased_while_a_member_has_the_floor() {
    let world = desk(SCRIPT);
    let ran = world.run(&["erase", "last", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    says(
        &world.run(&["send", "last", "Again."]),
        "Two: You are kind.",
    );
}

/// The line that the printed text names behind the last `@` before this word.
fn line_before(text: &str, word: &str) -> u64 {
    let row = text.lines().find(|row| row.contains(word)).unwrap();
    let (before, _) = row.split_once(word).unwrap();
    let (_, line) = before.trim_end().rsplit_once('@').unwrap();
    line.parse().unwrap()
}

/// After a rewind, an address means a line of the branch that goes on, in every command.
#[test]
fn an_address_means_the_same_line_everywhere() {
    let world = desk(SCRIPT);
    let before = world.json_lines(&["log", "last@find"])[0]["line"]
        .as_u64()
        .unwrap();
    let ran = world.run(&["rewind", "last@handoff", "--label", "again"]);
    assert!(matches!(ran.code, Some(0 | 5)), "{ran:?}");
    let line = world.json_lines(&["log", "last@find"])[0]["line"]
        .as_u64()
        .unwrap();
    assert!(line > before, "{line}");
    let (_, why) = world.json(&["why", "last@find"]);
    assert_eq!(why["steps"][0]["line"], line, "{why:#}");
    let context = world.run(&["context", "last@find"]).out;
    assert_eq!(line_before(&context, " money"), line, "{context}");
    let shown = world.run(&["show", "last@find"]).all();
    assert_eq!(
        line_before(&shown, "   each line from there on"),
        line,
        "{shown}"
    );
    let graph = world.run(&["graph", "last@find"]).out;
    assert!(graph.contains(&format!("@{line}")), "{graph}");
    // A fork at the address begins there.
    let ran = world.run(&["fork", "last@find", "--label", "there"]);
    let there = world.json_lines(&["log", "last:there"]);
    let opened = there
        .iter()
        .any(|of| of.to_string().contains(&line.to_string()));
    assert!(opened, "{ran:?} {there:?}");
    proposals_work(&world);
}

/// Runs all commands that only look and that these pages propose, and what those propose.
fn proposals_work(world: &World) {
    let mut todo = vec![
        "steersman show last".to_owned(),
        "steersman why last".to_owned(),
    ];
    for line in world.json_lines(&["log", "last"]) {
        let line = &line["line"];
        for command in ["show", "why"] {
            // A line of another branch has no address on this one.
            if world
                .shell(&format!("steersman {command} last@{line}"))
                .code
                == Some(0)
            {
                todo.push(format!("steersman {command} last@{line}"));
            }
        }
    }
    let looks = [
        "context",
        "log",
        "show",
        "why",
        "effects",
        "graph",
        "timeline",
        "artifacts",
    ];
    let mut seen = BTreeSet::new();
    while let Some(typed) = todo.pop() {
        if !seen.insert(typed.clone()) {
            continue;
        }
        let ran = world.shell(&typed);
        assert!(
            matches!(ran.code, Some(0 | 5 | 7)),
            "`{typed}` was proposed: {ran:?}"
        );
        let page = ran.all();
        let rows = page
            .lines()
            .map(|row| row.trim().trim_start_matches("Next:  "));
        let commands = rows.filter(|row| row.starts_with("steersman "));
        let commands = commands.flat_map(|row| row.split("   "));
        let commands = commands.filter(|command| {
            let mut words = command.split_whitespace();
            words.next() == Some("steersman") && words.next().is_some_and(|w| looks.contains(&w))
        });
        todo.extend(commands.map(str::to_owned));
    }
    assert!(seen.len() > 2, "nothing is proposed: {seen:?}");
}

#[test]
fn commands_that_are_proposed_work() {
    proposals_work(&desk(SCRIPT));
    proposals_work(&desk(
        "front: [ { call: { handoff: { to: money, reason: Pay. } } } ]\nmoney: [ { call: { pay: {} } } ]\n",
    ));
}

/// The newest effect is a probe, which no model called, and no model is asked at all.
#[test]
fn nothing_is_proposed_for_what_no_model_called() {
    let world = World::new();
    let desk = r#"name: desk
tools:
  pay:
    description: Pays.
    effect: unsafe
    on_doubt: { probe: look, done: result == "there", else: not_performed }
    command: [sh, -c, "exit 1"]
  look: { description: Looks., effect: read, command: [echo, there] }
agents: { desk: { system: You pay., tools: [pay] } }
"#;
    world.write("steersman.yaml", desk);
    world.write("script.yaml", "desk: [ { call: { pay: {} } }, Paid. ]\n");
    let ran = world.run(&["run", "--input", "Hi.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = world.run(&["show", "last"]).all();
    assert!(!shown.contains("@look"), "{shown}");
    assert!(shown.contains("@pay"), "{shown}");
    proposals_work(&world);
}

/// An interrupt is delivered before messages that wait, also before older ones.
#[test]
fn an_interrupt_comes_before_messages_that_wait() {
    let world = desk(SCRIPT);
    world.run(&["send", "last", "The older one.", "--no-run"]);
    world.run(&["send", "last", "The interrupt.", "--interrupt", "--no-run"]);
    let ran = world.run(&["run", "--resume", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = world.run(&["show", "last", "--full"]).out;
    let at = |text: &str| {
        shown
            .find(text)
            .unwrap_or_else(|| panic!("{text}: {shown}"))
    };
    assert!(at("The interrupt.") < at("The older one."), "{shown}");
}

/// A kill at a line that is not reached is told with the lines of the calls; a handoff begins and ends in one line.
#[test]
fn a_line_to_die_at_is_told_with_the_lines_of_handoffs() {
    let world = desk(SCRIPT);
    let test = "tests:\n  killed: { script: ../script.yaml, tools: { find: [ok] }, steps: [ { say: Hi. }, { kill: 40 }, { resume: true } ], expect: [ { that: calls.find.ok == 1 } ] }\n";
    world.write("tests/desk.yaml", test);
    let ran = world.run(&["test"]);
    let said = "`handoff` was made and ended at line 2; `find` began at line 3 and ended at line 4";
    assert!(ran.all().contains(said), "{ran:?}");
}
