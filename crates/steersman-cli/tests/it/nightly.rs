//! A night with many sessions: what an erase leaves, what reruns count for, what failed and why, and the clock.

use crate::world::{PAYS, World};
use serde_json::{Value as Json, json};
use std::process::{Command, Stdio};

/// A word that only the message of a session has.
const PLANTED: &str = "marzipan";

const SCRIPT: &str = "desk:
  - call: { look: { what: order } }
  - It is there.
";

/// A session of [`PAYS`] whose message has the planted word. Returns its id.
fn planted(world: &World) -> String {
    world.write("steersman.yaml", PAYS);
    world.write("script.yaml", SCRIPT);
    let said = format!("Where is my {PLANTED}?");
    let ran = world.run(&["run", "-i", &said, "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    newest(world)
}

fn newest(world: &World) -> String {
    let (_, shown) = world.json(&["show", "last"]);
    shown["session"].as_str().unwrap().to_owned()
}

fn rerun(world: &World, of: &str, more: &[&str]) -> String {
    let ran = world.run(&[&["rerun", of][..], more].concat());
    assert!(matches!(ran.code, Some(0 | 8)), "{ran:?}");
    newest(world)
}

/// Everything that counts sessions.
fn numbers(world: &World) -> Vec<Json> {
    let mut numbers = Vec::new();
    for by in ["status", "code", "network"] {
        numbers.extend(world.json_lines(&["sessions", "--by", by]));
        numbers.extend(world.json_lines(&["sessions", "--by", by, "--reruns"]));
    }
    for filter in ["rerun = repair", "rerun_of != none"] {
        let found = world.json_lines(&["sessions", "--where", filter]);
        numbers.push(json!([filter, found.len()]));
    }
    let (_, top) = world.json(&["top"]);
    for field in ["all", "reruns", "statuses", "networks"] {
        numbers.push(top[field].clone());
    }
    let exported = world.json_lines(&["export", "--where", "network = desk"]);
    numbers.push(exported.len().into());
    numbers
}

fn texts(world: &World) -> usize {
    let folder = world.folder.join(".steersman");
    let files = std::fs::read_dir(folder).unwrap();
    let holds = |file: std::io::Result<std::fs::DirEntry>| {
        let bytes = std::fs::read(file.unwrap().path()).unwrap_or_default();
        let word = PLANTED.as_bytes();
        bytes.windows(word.len()).any(|part| part == word)
    };
    files.map(holds).filter(|holds| *holds).count()
}

/// An erased rerun stays a rerun, with its name: no sum, no list and no later rerun takes it for work.
#[test]
fn an_erased_rerun_is_no_work() {
    let world = World::new();
    std::fs::create_dir_all(world.folder.join(".steersman")).unwrap();
    let session = planted(&world);
    let dry = rerun(&world, &session, &[]);
    let named = rerun(&world, &session, &["--as", "repair"]);
    let before = numbers(&world);
    for again in [&dry, &named] {
        let erased = world.run(&["erase", again, "--yes"]);
        assert_eq!(erased.code, Some(0), "{erased:?}");
        assert!(erased.err.contains("is a rerun of"), "{erased:?}");
        assert_eq!(numbers(&world), before);
    }
    let labels = world.json_lines(&["sessions", "--where", "rerun = repair"]);
    assert_eq!(labels[0]["labels"]["rerun_of"], session);
    assert_eq!(world.run(&["fsck"]).code, Some(0));
    let rerun = world.run(&["rerun", "--where", "network = desk"]);
    assert!(rerun.out.contains("1 same"), "{rerun:?}");
}

/// Reruns begin with the texts of the session that they repeat, so an erase of that session takes them along.
#[test]
fn an_erase_takes_the_reruns_along_or_says_that_they_stay() {
    let world = World::new();
    std::fs::create_dir_all(world.folder.join(".steersman")).unwrap();
    let session = planted(&world);
    let first = rerun(&world, &session, &[]);
    let second = rerun(&world, &first, &[]);
    let (code, told) = world.json(&["erase", &session]);
    assert_eq!(code, Some(0));
    let mut reruns: Vec<&str> = told["reruns"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Json::as_str)
        .collect();
    reruns.sort_unstable();
    let mut both = [&*first, &*second];
    both.sort_unstable();
    assert_eq!(reruns, both);
    let line = world.run(&["erase", &format!("{session}@1"), "--yes"]);
    assert_eq!(line.code, Some(2), "{line:?}");
    assert!(line.err.contains("--alone"), "{line:?}");
    assert!(texts(&world) > 0, "nothing is gone yet");
    // An erase of a rerun leaves the session that it repeats.
    let told = world.run(&["erase", &second]);
    assert!(
        told.err.contains("which holds the same texts and stays"),
        "{told:?}"
    );
    let (code, erased) = world.json(&["erase", &session, "--yes"]);
    assert_eq!(
        (code, &erased["verifies"]),
        (Some(0), &true.into()),
        "{erased}"
    );
    assert_eq!(erased["reruns"].as_array().unwrap().len(), 2);
    assert_eq!(texts(&world), 0);
    assert_eq!(world.run(&["fsck"]).code, Some(0));
}

#[test]
fn an_erase_leaves_the_reruns_if_that_is_asked() {
    let world = World::new();
    std::fs::create_dir_all(world.folder.join(".steersman")).unwrap();
    let session = planted(&world);
    let again = rerun(&world, &session, &[]);
    let erased = world.run(&["erase", &session, "--alone", "--yes"]);
    assert_eq!(erased.code, Some(0), "{erased:?}");
    assert!(erased.err.contains("kept"), "{erased:?}");
    let shown = world.run(&["show", &again]);
    assert!(shown.out.contains(PLANTED), "{shown:?}");
}

const NIGHT: &str = "name: night
models: { default: scripted }
budgets: { night: { calls: 2 } }
agents: { desk: { system: You answer. } }
";

/// A rerun that is not live draws on no budget over sessions, and waits for none.
#[test]
fn a_dry_rerun_is_outside_of_budgets() {
    let world = World::new();
    world.write("steersman.yaml", NIGHT);
    world.write("script.yaml", "desk: [ One., Two. ]");
    let run = |more: &[&str]| {
        let script = ["--script-all", "script.yaml"];
        world.run(&[more, &script].concat())
    };
    let used = || {
        let rows = world.json_lines(&["doctor", ".", "--script-all", "script.yaml"]);
        let row = rows.iter().find(|row| row["about"] == "budget").unwrap();
        row["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(run(&["run", "-i", "Hi."]).code, Some(0));
    let first = newest(&world);
    assert!(used().contains("1 of 2 calls"), "{}", used());
    let set = ["--set", "agents.desk.system=You answer briefly."];
    let rerun = [&["rerun", &*first][..], &set].concat();
    for _ in 0..3 {
        let ran = run(&rerun);
        assert!(matches!(ran.code, Some(0 | 8)), "{ran:?}");
    }
    assert!(used().contains("1 of 2 calls"), "{}", used());
    assert_eq!(run(&["run", "-i", "Hi."]).code, Some(0));
    assert_eq!(
        run(&["run", "-i", "Hi."]).code,
        Some(5),
        "the budget is spent"
    );
    let ran = run(&rerun);
    assert!(matches!(ran.code, Some(0 | 8)), "{ran:?}");
    // A live rerun is work.
    let live = run(&[&rerun[..], &["--live"]].concat());
    assert!(
        live.all().contains("waits") || live.code == Some(5),
        "{live:?}"
    );
}

/// One command lets all calls through that wait for a budget.
#[test]
fn calls_that_wait_for_a_budget_are_released_together() {
    let world = World::new();
    world.write("steersman.yaml", &NIGHT.replace("calls: 2", "calls: 1"));
    world.write("script.yaml", "desk: [ One., Two. ]");
    for code in [0, 5, 5] {
        let ran = world.run(&["run", "-i", "Hi.", "--script-all", "script.yaml"]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
    }
    let sessions = world.run(&["sessions"]);
    assert!(sessions.out.contains("budget night"), "{sessions:?}");
    let release = |budget| {
        world.run(&[
            "release",
            "--budget",
            budget,
            "--where",
            "network = night",
            "--yes",
        ])
    };
    let other = release("day");
    assert!(other.all().contains("No session matches."), "{other:?}");
    let released = release("night");
    assert_eq!(released.code, Some(0), "{released:?}");
    assert!(
        released.err.contains("2 sessions: 2 let through."),
        "{released:?}"
    );
    let waits = world.json_lines(&["pending"]);
    assert!(waits.is_empty(), "{waits:?}");
}

const STALLS: &str = r#"name: desk
models: { default: scripted }
tools:
  look: { description: Looks., effect: read, timeout: 10m, command: [sh, -c, "if [ -e stall ]; then touch begun; cat gate; fi; echo ok"] }
agents: { desk: { system: You look., tools: [look] } }
"#;

/// A process that drives all sessions leaves a dry rerun alone whose own process is gone, and says so once.
#[test]
fn a_dry_rerun_without_its_process_is_left_alone() {
    let world = World::new();
    world.write("steersman.yaml", STALLS);
    world.write("script.yaml", "desk: [ { call: { look: {} } }, Seen. ]");
    let ran = world.run(&["run", "-i", "Go.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = newest(&world);
    world.write("stall", "");
    let made = Command::new("mkfifo")
        .arg(world.folder.join("gate"))
        .status();
    assert!(made.unwrap().success());
    let set = "tools.look.description=Looks again.";
    let mut rerun = world
        .command(&[
            "rerun",
            &session,
            "--set",
            set,
            "--script-all",
            "script.yaml",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !world.folder.join("begun").exists() {
        assert!(rerun.try_wait().unwrap().is_none(), "it ended");
        std::thread::yield_now();
    }
    rerun.kill().unwrap();
    rerun.wait().unwrap();
    std::fs::remove_file(world.folder.join("stall")).unwrap();
    let again = newest(&world);
    let all = [
        "run",
        "--all",
        "--until-idle",
        "--script-all",
        "script.yaml",
    ];
    let told = world.run(&all);
    assert_eq!(
        (told.code, told.out.trim()),
        (Some(0), "0/0, 0.0000"),
        "{told:?}"
    );
    assert!(told.err.contains("is left alone"), "{told:?}");
    assert!(told.err.contains("steersman rerun aa"), "{told:?}");
    let told = world.run(&all);
    assert!(!told.err.contains("is left alone"), "once: {told:?}");
    let (_, shown) = world.json(&["show", &again]);
    assert_eq!(shown["status"], "interrupted", "{shown}");
    let why = world.run(&["sessions"]);
    assert!(why.out.contains("goes on only if it is live"), "{why:?}");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
}

const LIMITED: &str = r#"name: lim
models: { default: scripted }
tools: { look: { description: L., effect: read, parameters: { n: integer }, command: [echo, ok] } }
state: { x: { type: string, optional: true } }
events: { go: { fields: { n: string }, id: "{{ event.n }}", start: { message: Go. } } }
agents:
  w: { description: Works., system: Hi., tools: [look], output: state.x, limits: { model_calls: { max: 2, on_limit: fail } } }
  o: { route: { rules: [ { when: state.x is none, to: w }, { to: finish } ] } }
entry: o
"#;

/// A member that reached a limit is the first cause everywhere, under one code.
#[test]
fn a_limit_of_a_member_is_the_cause_that_everything_names() {
    let world = World::new();
    world.write("steersman.yaml", LIMITED);
    let call = |n: u8| format!("  - call: {{ look: {{ n: {n} }} }}\n");
    world.write(
        "script.yaml",
        &format!("w:\n{}{}{}", call(1), call(2), call(3)),
    );
    let begun = [
        "send",
        ".",
        "--event",
        "go",
        r#"{"n": "1"}"#,
        "--script-all",
        "script.yaml",
    ];
    assert_eq!(world.run(&begun).code, Some(0));
    let night = world.run(&["run", "--all", "--until-idle"]);
    assert_eq!(night.code, Some(1), "{night:?}");
    assert!(night.out.contains("failed (model_calls of w)"), "{night:?}");
    let by = world.json_lines(&["sessions", "--by", "code"]);
    assert_eq!(by.len(), 1, "{by:?}");
    assert_eq!(by[0]["code"], "model_calls");
    let found = world.json_lines(&["sessions", "--where", "failed = model_calls"]);
    assert_eq!(found.len(), 1, "{found:?}");
    let reason = json!({ "code": "model_calls", "agent": "w" });
    assert_eq!(found[0]["reason"], reason);
    let (_, shown) = world.json(&["show", "last"]);
    assert_eq!(shown["reason"], reason, "{shown}");
    let shown = world.run(&["show", "last"]);
    assert!(shown.err.contains("--rebind --input"), "{shown:?}");
    // To try again leads to the same limit, so it is refused with what helps.
    let again = world.run(&["retry", "last"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.err.contains("--rebind --input"), "{again:?}");
}

/// `retry` for many sessions has the code and the reason that it has for one.
#[test]
fn a_retry_that_fails_again_says_so_in_both_forms() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk\nmodels: { default: scripted }\nagents: { desk: { system: You answer. } }\n",
    );
    let down = "desk:\n".to_owned() + &"  - error: provider_overloaded\n".repeat(6);
    world.write("down.yaml", &down);
    let ran = world.run(&[
        "run",
        "-i",
        "Hi.",
        "--script-all",
        "down.yaml",
        "--wait",
        "0s",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let one = world.run(&["retry", "last", "--script-all", "down.yaml"]);
    let many = [
        "retry",
        "--where",
        "failed = provider_*",
        "--yes",
        "--script-all",
        "down.yaml",
    ];
    let many = world.run(&many);
    assert_eq!((one.code, many.code), (Some(1), Some(1)), "{many:?}");
    assert!(one.err.contains("provider_overloaded"), "{one:?}");
    assert!(
        many.out.contains("failed (provider_overloaded)"),
        "{many:?}"
    );
    assert!(
        many.err.contains("1 tried again, of these 1 failed."),
        "{many:?}"
    );
    world.write("up.yaml", "desk: [ Here., Here., Here., Here., Here. ]\n");
    let many = [
        "retry",
        "--where",
        "failed = provider_*",
        "--yes",
        "--script-all",
        "up.yaml",
    ];
    let many = world.run(&many);
    assert_eq!(many.code, Some(0), "{many:?}");
}

/// A clock that is behind that of the sender does not keep messages from being taken, and is told.
#[test]
fn a_clock_that_is_behind_takes_messages_and_is_told() {
    let world = World::new();
    world.write("steersman.yaml", LIMITED);
    world.write("script.yaml", "w: [ { output: done } ]\n");
    world.write("clock", "2020-01-01T00:00:00Z");
    let begun = [
        "send",
        ".",
        "--event",
        "go",
        r#"{"n": "1"}"#,
        "--script-all",
        "script.yaml",
    ];
    assert_eq!(world.run(&begun).code, Some(0));
    let all = ["run", "--all", "--until-idle", "--clock", "clock"];
    let night = world.run(&all);
    assert!(night.out.starts_with("1/1"), "{night:?}");
    assert!(
        night.err.contains("the clock is at 2020-01-01T00:00:00Z"),
        "{night:?}"
    );
    let (_, shown) = world.json(&["show", "last"]);
    assert_ne!(shown["status"], "new", "{shown}");
}

/// A key that is misspelt in `--set` is refused with its nearest name, and with nothing else.
#[test]
fn a_misspelt_key_has_a_proposal() {
    let world = World::new();
    let session = planted(&world);
    let ran = world.run(&["rerun", &session, "--set", "agents.desk.sytem=x"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("system"), "{ran:?}");
    assert!(!ran.err.contains("effect"), "no notes: {ran:?}");
}

#[test]
fn a_quiet_check_says_only_what_is_wrong() {
    let world = World::new();
    world.write("steersman.yaml", PAYS);
    let well = world.run(&["check", "-q"]);
    assert_eq!((well.code, &*well.all()), (Some(0), "\n"), "{well:?}");
    world.write("steersman.yaml", &PAYS.replace("system:", "sytem:"));
    let wrong = world.run(&["check", "-q"]);
    assert_eq!(wrong.code, Some(3), "{wrong:?}");
    assert!(wrong.all().contains("sytem"), "{wrong:?}");
}

/// Columns of a list in a pipe are not cut, whichever column is last.
#[test]
fn a_list_in_a_pipe_is_not_cut() {
    let world = World::new();
    let labels = "name: desk
labels: { customer: \"a customer with a name that is rather long, and longer than the layout of a table\" }
models: { default: scripted }
agents: { desk: { system: You answer. } }
";
    world.write("steersman.yaml", labels);
    world.write("down.yaml", "desk: [ { error: provider_overloaded } ]\n");
    let ran = world.run(&[
        "run",
        "-i",
        "Hi.",
        "--script-all",
        "down.yaml",
        "--wait",
        "0s",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let listed = world.run(&["sessions"]);
    assert!(listed.out.contains("  provider_overloaded  "), "{listed:?}");
}
