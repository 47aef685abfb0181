//! People are notified that something waits for them, and are asked for secrets. After an escalation the next person
//! gets the same question.

use crate::world::World;
use serde_json::json;
use std::io::{Read as _, Write as _};

const DESK: &str = r#"
steersman: 1
name: desk
tools:
  page:
    description: Tells somebody.
    effect: idempotent
    retry: RETRY
    command: [sh, tell.sh, "{{ person.name }} {{ person.role }}", "{{ question.id }} {{ question.text }} {{ question.due or 'never' }}"]
  pay:
    description: Pays.
    parameters: { cents: integer }
    effect: unsafe
    approve:
      by: clerk
      ask: "Pay {{ args.cents }}?"
      edit: [cents]
      timeout: 1h
      on_timeout: { by: boss }
    command: [echo, paid]
  login:
    description: Logs in.
    parameters: { user: string, password: { type: secret, ask: "Your password, {{ args.user }}?" } }
    effect: read
    command: [sh, -c, "test \"$PASSWORD\" = \"$(cat password)\" && echo in"]
    env: { PASSWORD: "{{ args.password }}" }
    result: Logged in.
  ask_boss: { description: Asks the boss., parameters: { question: string }, ask: boss }
agents:
  clerk: { person: { role: clerk, reach: page } }
  boss:  { person: { role: boss, reach: page } }
  desk:  { system: You pay., tools: [pay, login, ask_boss] }
"#;

fn world(script: &str, tell: &str, retry: &str) -> World {
    let world = World::new();
    world.write("steersman.yaml", &DESK.replace("RETRY", retry));
    world.write("script.yaml", script);
    world.write("tell.sh", tell);
    world.write("password", "opensesame\n");
    world.write("clock.yaml", "2026-01-05T09:00:00Z");
    world
}

const TELL: &str = "echo \"$1: $2\" >> told\n";
const PAY: &str = "desk: [ { call: { pay: { cents: 7 } } }, Done. ]\n";

fn told(world: &World) -> String {
    std::fs::read_to_string(world.folder.join("told")).unwrap_or_default()
}

fn run(world: &World, args: &[&str]) -> Option<i32> {
    let mut args = args.to_vec();
    args.extend(["--clock", "clock.yaml"]);
    world.run(&args).code
}

#[test]
fn each_in_the_line_is_told_once_and_asked_the_same() {
    let world = world(PAY, TELL, "4");
    let begin = ["run", "--script-all", "script.yaml", "--input", "Go."];
    assert_eq!(run(&world, &begin), Some(5));
    let first = "clerk clerk: 2.0 Pay 7? 2026-01-05T10:00:00+00:00\n";
    assert_eq!(told(&world), first);
    // Nobody is notified again when the session is driven on.
    let ran = world.run(&["run", "--resume", "last", "--clock", "clock.yaml"]);
    assert_eq!((ran.code, &*told(&world)), (Some(5), first));
    assert!(ran.err.contains("goes on to boss in 1 h"), "{ran:?}");
    world.write("clock.yaml", "2026-01-05T10:00:01Z");
    assert_eq!(run(&world, &["run", "--resume", "last"]), Some(5));
    assert_eq!(
        told(&world),
        format!("{first}boss boss: 2.0 Pay 7? never\n")
    );
    let effects = world.json_lines(&["effects", "last"]);
    let pages = effects.iter().filter(|effect| effect["tool"] == "page");
    let pages: Vec<_> = pages.map(|e| (&e["standing"], &e["attempts"])).collect();
    assert_eq!(pages, [(&json!("done"), &json!(1)); 2]);
    // The right to edit arguments does not pass on to the next person.
    let edited = ["approve", "last", "--as", "boss", "--edit", "cents=1"];
    assert_eq!(run(&world, &edited), Some(2));
    assert_eq!(run(&world, &["approve", "last", "--as", "clerk"]), Some(2));
    assert_eq!(run(&world, &["approve", "last", "--as", "boss"]), Some(0));
    assert_eq!(world.run(&["fsck"]).code, Some(0));
}

#[test]
fn who_cannot_be_told_is_asked_all_the_same() {
    let world = world(PAY, "echo no line >&2; exit 1\n", "0");
    let begin = ["run", "--script-all", "script.yaml", "--input", "Go."];
    assert_eq!(run(&world, &begin), Some(5));
    let page = world.run(&["show", "last"]).out;
    assert!(page.contains("clerk was not told: "), "{page}");
    assert!(page.contains("it waits all the same"), "{page}");
    assert_eq!(run(&world, &["run", "--resume", "last"]), Some(5));
    assert_eq!(run(&world, &["approve", "last", "--as", "clerk"]), Some(0));
}

#[test]
fn a_question_to_a_person_reaches_them() {
    let script = "desk: [ { call: { ask_boss: { question: \"May I?\" } } }, Done. ]\n";
    let world = world(script, TELL, "4");
    let begin = ["run", "--script-all", "script.yaml", "--input", "Go."];
    assert_eq!(run(&world, &begin), Some(5));
    assert_eq!(told(&world), "boss boss: 2.0 May I? never\n");
    assert_eq!(
        run(&world, &["answer", "last", "Yes.", "--as", "boss"]),
        Some(0)
    );
}

#[test]
fn a_secret_is_asked_of_the_person_and_nobody_else_sees_it() {
    let script = "desk: [ { call: { login: { user: ann } } }, Done., { call: { login: { user: ann, password: guessed } } }, Done. ]\n";
    let world = world(script, TELL, "0");
    let begin = ["run", "--script-all", "script.yaml", "--input", "Go."];
    assert_eq!(run(&world, &begin), Some(5));
    let (_, pending) = world.json(&["pending"]);
    assert_eq!(
        (&pending["kind"], &pending["text"]),
        (&json!("input"), &json!("Your password, ann?"))
    );
    assert_eq!(run(&world, &["answer", "last", "opensesame"]), Some(0));
    for args in [
        &["show", "last"][..],
        &["log", "last"],
        &["context", "last"],
        &["effects", "last"],
    ] {
        let page = world.run(args);
        assert!(!format!("{page:?}").contains("opensesame"), "{page:?}");
    }
    let page = world.run(&["show", "last"]).out;
    assert!(page.contains("login = Logged in."), "{page}");
    let stored = std::fs::read(world.folder.join(".steersman/sessions.db")).unwrap();
    assert!(!stored.windows(10).any(|bytes| bytes == b"opensesame"));
    // A secret that the model makes up is refused.
    assert_eq!(run(&world, &["send", "last", "Again."]), Some(0));
    let page = world.run(&["show", "last"]).out;
    assert!(page.contains("refused: misfit"), "{page}");
}

#[test]
fn what_cannot_reach_a_person_is_found_by_check() {
    let world = world(PAY, TELL, "0");
    let unfit = DESK
        .replace("RETRY", "0")
        .replace("effect: idempotent", "effect: unsafe");
    world.write("steersman.yaml", &unfit);
    let checked = world.run(&["check"]);
    assert_eq!(checked.code, Some(3), "{checked:?}");
    assert!(checked.err.contains("E0408"), "{checked:?}");
    let elsewhere = DESK
        .replace("RETRY", "0")
        .replace("Pay {{ args.cents }}?", "{{ person.name }}?");
    world.write("steersman.yaml", &elsewhere);
    let checked = world.run(&["check"]);
    assert!(checked.err.contains("E0310"), "{checked:?}");
}

/// Runs a command at a terminal and types each answer once its question is shown. Returns all that was shown.
fn at_a_terminal(world: &World, args: &str, answers: &[(&str, &str)]) -> String {
    let us = env!("CARGO_BIN_EXE_steersman");
    let line = format!("{us} {args}");
    let mut child = std::process::Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(&world.folder)
        .env("HOME", world.folder.join("home"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (mut typed, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut answers = answers.iter();
    let mut next = answers.next();
    let (mut shown, mut seen, mut piece) = (Vec::new(), 0, [0; 4096]);
    loop {
        let read = out.read(&mut piece).unwrap();
        if read == 0 {
            break;
        }
        shown.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&shown[seen..]).into_owned();
        if let Some((_, answer)) = next.filter(|(asked, _)| text.contains(asked)) {
            seen = shown.len();
            typed.write_all(answer.as_bytes()).unwrap();
            next = answers.next();
        }
    }
    child.wait().unwrap();
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(next.is_none(), "it did not ask: {shown}");
    shown
}

/// The person at the terminal has the role of the user: a question for this role is asked there, while the session
/// runs.
#[test]
fn the_terminal_asks_a_person_whose_role_is_the_users() {
    let world = World::example("debate");
    let shown = at_a_terminal(
        &world,
        "run debate --script-all debate/script.yaml",
        &[
            ("you       >", "Debate libraries that lend tools.\r"),
            ("answer (empty: later) >", "And who pays for what breaks?\r"),
            // Ctrl-D ends it.
            ("you       >", "\x04"),
        ],
    );
    let (_, document) = world.json(&["show", "last"]);
    assert_eq!(document["outcome"]["winner"], "for", "{shown}");
}

/// With `--as`, what the role may decide is asked at the terminal, and what is typed there is said in the role.
#[test]
fn the_terminal_asks_a_person_in_another_role() {
    let world = world(PAY, TELL, "4");
    let shown = at_a_terminal(
        &world,
        "run --script-all script.yaml --clock clock.yaml --as clerk",
        &[
            ("clerk     >", "Pay Mr Berg.\r"),
            ("[a]pprove", "a\r"),
            ("clerk     >", "\x04"),
        ],
    );
    assert!(shown.contains("approved by clerk"), "{shown}");
    let (_, document) = world.json(&["show", "last"]);
    assert_eq!(document["status"], "answered", "{shown}");
}

/// A test kills the session at a line after the notification: the notification has its outcome, and is not sent again.
#[test]
fn a_test_that_kills_behind_a_page_goes_on_as_a_process_does() {
    for line in 1..=4 {
        let world = world(PAY, TELL, "0");
        let tests = format!(
            r"tests:
  killed:
    script: {{ desk: [ {{ call: {{ pay: {{ cents: 7 }} }} }}, Done. ] }}
    tools: {{ pay: [paid], page: [told] }}
    steps:
      - say: Pay.
      - kill: {line}
      - resume: true
      - approve: pay
        role: clerk
    expect: [ {{ answer: Done. }} ]
"
        );
        let definition = format!("{}{tests}", DESK.replace("RETRY", "0"));
        world.write("steersman.yaml", &definition);
        let ran = world.run(&["test"]);
        assert_eq!(ran.code, Some(0), "killed after line {line}: {ran:?}");
    }
}
