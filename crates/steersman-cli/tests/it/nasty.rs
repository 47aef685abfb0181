//! Signals, messages above the bounds, and missing secrets.

use crate::world::World;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn with_tool(world: &World, tool: &str, script: &str) {
    world.write(
        "net/steersman.yaml",
        &format!(
            "steersman: 1\nname: net\nsecrets: {{ pin: {{ file: pin.txt }}, key: {{ env: NASTY_KEY }} }}\ntools:\n  look:\n    description: Looks.\n{tool}\nagents: {{ desk: {{ description: d, system: s, tools: [look] }} }}\nentry: desk\n"
        ),
    );
    world.write("script.yaml", script);
}

const LOOK_ONCE: &str = "desk: [ { call: { look: {} } }, Seen. ]\n";
const RUN: &[&str] = &[
    "run",
    "net",
    "--script-all",
    "script.yaml",
    "--input",
    "Go.",
];

#[test]
fn a_terminated_session_goes_on_where_it_was() {
    for signal in ["-TERM", "-INT", "-HUP"] {
        let world = World::new();
        with_tool(
            &world,
            "    effect: read\n    command: [sh, -c, \"if test -e again; then echo fine; else touch again; sleep 60; fi\"]",
            LOOK_ONCE,
        );
        let run = world
            .command(RUN)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while !world.folder.join("net/again").exists() {
            assert!(begun.elapsed() < Duration::from_secs(30), "it never began");
            std::thread::yield_now();
        }
        let id = run.id().to_string();
        let killed = Command::new("kill").args([signal, &id]).status();
        assert!(killed.unwrap().success());
        let ended = run.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(130), "{signal} {ended:?}");
        let (code, told) = world.json(&["run", "--resume", "last"]);
        assert_eq!((code, &told["answer"]), (Some(0), &"Seen.".into()));
        let shown = world.run(&["show", "last"]).out;
        assert!(shown.contains("look = fine"), "{signal} {shown}");
        assert!(!shown.contains("cancelled"), "{signal} {shown}");
    }
}

#[test]
fn a_message_beyond_all_bounds_makes_no_session() {
    let world = World::new();
    with_tool(
        &world,
        "    effect: read\n    command: [ls]",
        "desk: [ Hello. ]\n",
    );
    let mut args = RUN.to_vec();
    args[5] = "-";
    for said in [vec![b'x'; 300_000], vec![b'x'; 262_140], vec![0xff; 20]] {
        let mut run = world
            .command(&args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The program may close its input before all is written.
        let _ = run.stdin.take().unwrap().write_all(&said);
        let ended = run.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(2), "{err}");
        assert!(err.contains("hint:"), "{err}");
        assert!(world.json_lines(&["sessions", "--all"]).is_empty(), "{err}");
    }
}

#[test]
fn what_failed_is_said_to_who_wants_it_quiet() {
    let world = World::new();
    with_tool(&world, "    effect: read\n    command: [ls]", "desk: []\n");
    let mut args = RUN.to_vec();
    args.push("--quiet");
    let ran = world.run(&args);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("script_missing"), "{ran:?}");
}

#[test]
fn a_secret_is_found_beside_its_definition_and_not_given_back() {
    let mut world = World::new();
    with_tool(
        &world,
        "    effect: read\n    command: [sh, -c, \"echo it is $PIN\"]\n    env: { PIN: \"{{ secrets.pin }}\" }",
        LOOK_ONCE,
    );
    world.write("net/pin.txt", "PLANTED-7b33\n");
    world.set("NASTY_KEY", "unused");
    assert_eq!(world.run(RUN).code, Some(0));
    let log = world.run(&["log", "last", "--json"]).out;
    assert!(log.contains("it is (secret)"), "{log}");
    assert!(!log.contains("PLANTED"), "{log}");
}

#[test]
fn a_tool_is_not_run_without_its_secret() {
    let world = World::new();
    with_tool(
        &world,
        "    effect: read\n    command: [sh, -c, \"touch ran\"]\n    env: { KEY: \"{{ secrets.key }}\" }",
        LOOK_ONCE,
    );
    world.write("net/pin.txt", "unused\n");
    assert_eq!(world.run(RUN).code, Some(0));
    assert!(!world.folder.join("net/ran").exists());
    let log = world.run(&["log", "last", "--json"]).out;
    assert!(log.contains("`secrets.key` is not set"), "{log}");
}

#[test]
fn a_tool_is_not_run_without_a_secret_that_another_key_sealed() {
    let mut world = World::new();
    with_tool(
        &world,
        "    parameters: { pin: { type: secret, ask: \"Your pin?\" } }\n    effect: unsafe\n    command: [sh, -c, \"touch ran\"]\n    env: { PIN: \"{{ args.pin }}\" }",
        LOOK_ONCE,
    );
    world.write("net/pin.txt", "unused\n");
    assert_eq!(world.run(RUN).code, Some(5));
    let answer = world.run(&["answer", "last", "1234", "--no-run"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    // Without the key nothing is driven. With another key, a secret that it cannot open is asked for again.
    std::fs::remove_file(world.folder.join(".steersman/key")).unwrap();
    let ran = world.run(&["run", "--resume", "last"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    world.set("STEERSMAN_KEY", &"ab".repeat(32));
    let ran = world.run(&["run", "--resume", "last"]);
    assert_eq!(ran.code, Some(5), "it is asked again: {ran:?}");
    assert!(!world.folder.join("net/ran").exists());
    let answer = world.run(&["answer", "last", "1234"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(world.folder.join("net/ran").exists());
}

#[test]
fn a_key_that_is_lost_between_two_answers_starts_nothing() {
    let world = World::new();
    with_tool(
        &world,
        "    parameters: { pin: { type: secret, ask: \"Your pin?\" }, code: { type: secret, ask: \"Your code?\" } }\n    effect: unsafe\n    command: [sh, -c, \"touch ran\"]\n    env: { PIN: \"{{ args.pin }}\" }",
        LOOK_ONCE,
    );
    world.write("net/pin.txt", "unused\n");
    assert_eq!(world.run(RUN).code, Some(5));
    let answer = world.run(&["answer", "last", "1234"]);
    assert_eq!(
        answer.code,
        Some(5),
        "it waits for the other answer: {answer:?}"
    );
    std::fs::remove_file(world.folder.join(".steersman/key")).unwrap();
    // No new key is made: the secrets that the lost one sealed would be lost silently.
    let ran = world.run(&["answer", "last", "5678"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(
        ran.err
            .contains("is not there, and the store holds secrets that it sealed (with key "),
        "{ran:?}"
    );
    assert!(!world.folder.join(".steersman/key").exists());
    assert_eq!(
        world.run(&["show", "last"]).code,
        Some(0),
        "it can be looked at"
    );
    let findings = world.json_lines(&["doctor"]);
    let sealing = findings.iter().find(|f| f["about"] == "sealing").unwrap();
    assert_eq!(sealing["health"], "missing", "{sealing}");
    // With another key, the call fails with the code `sealed`, since the lost key sealed its first secret.
    let mut answer = world.command(&["answer", "last", "5678"]);
    let ran = answer
        .env("STEERSMAN_KEY", "ab".repeat(32))
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert!(!world.folder.join("net/ran").exists(), "{ran:?}");
    assert!(
        world
            .run(&["log", "last", "--json"])
            .out
            .contains(r#""code":"sealed""#)
    );
}
