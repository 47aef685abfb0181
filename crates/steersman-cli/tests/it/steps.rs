//! `run --step` and `rerun --step`: a session stops after each line, and the person types how it goes on.

use crate::world::{PAYS as DESK, Ran, World};
use serde_json::Value as Json;
use std::io::Write as _;
use std::process::Stdio;

const SCRIPT: &str = "desk:
  - call: { look: { what: order } }
  - call: { pay: { cents: 5 } }
  - Paid.
  - Nothing more.
";

fn world() -> World {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", SCRIPT);
    world.write("other.yaml", "desk: [ Heard., Heard., Heard., Heard. ]\n");
    world
}

/// Runs a command with this text on standard input.
fn typed(world: &World, args: &[&str], text: &str) -> Ran {
    let mut command = world.command(args);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn stops(ran: &Ran) -> usize {
    ran.err
        .lines()
        .filter(|row| row.starts_with('@') && row.ends_with('>'))
        .count()
}

fn payments(world: &World) -> usize {
    std::fs::read_to_string(world.folder.join("book")).map_or(0, |book| book.lines().count())
}

/// Returns true if a line has a commit. A session does not stop after a line with ledger entries only.
fn holds_commit(line: &Json) -> bool {
    let rows = line["rows"].as_array().unwrap();
    rows.iter()
        .any(|row| !row.as_str().unwrap().starts_with("ledger"))
}

fn lines_with_commits(world: &World, session: &str) -> Vec<Json> {
    let lines = world.lines(session);
    lines.into_iter().filter(holds_commit).collect()
}

const RUN: &[&str] = &[
    "run",
    "--input",
    "Pay.",
    "--script-all",
    "script.yaml",
    "--step",
];

#[test]
fn enter_goes_from_line_to_line_and_each_is_told_once() {
    let world = world();
    let ran = typed(&world, RUN, "\n\n\n\n\n\n");
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Paid."), "{ran:?}");
    // Stops after the message, two calls and two results. After the answer nothing goes on.
    assert_eq!(stops(&ran), 5, "{ran:?}");
    assert_eq!(ran.err.matches("look(").count(), 1, "{ran:?}");
    assert_eq!(payments(&world), 1);
    // A session without stops has as many commits.
    let stepped = lines_with_commits(&world, "last").len();
    let ran = world.run(&RUN[..5]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((lines_with_commits(&world, "last").len(), stepped), (6, 6));
}

#[test]
fn c_goes_on_without_stops() {
    let world = world();
    let ran = typed(&world, RUN, "\nc\n");
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Paid."), "{ran:?}");
    assert_eq!(stops(&ran), 2, "{ran:?}");
}

#[test]
fn q_and_the_end_of_input_leave_it_paused_and_it_goes_on_from_there() {
    for (text, before) in [("\n\n\nq\n", 4), ("\n\n\n", 4)] {
        let world = world();
        let ran = typed(&world, RUN, text);
        assert_eq!(ran.code, Some(5), "{ran:?}");
        assert_eq!(stops(&ran), before, "{ran:?}");
        assert!(ran.err.contains("Paused by a person"), "{ran:?}");
        assert_eq!(
            payments(&world),
            0,
            "the payment is asked for and has not started"
        );
        let (_, shown) = world.json(&["show", "last"]);
        assert_eq!(shown["status"], "paused", "{shown:#}");
        // No effect started, so none is in doubt.
        let ran = typed(&world, &["run", "--resume", "last", "--step"], "\n\n\n");
        assert_eq!((ran.code, ran.out.trim()), (Some(0), "Paid."), "{ran:?}");
        assert_eq!(stops(&ran), 2, "{ran:?}");
        assert_eq!(payments(&world), 1);
    }
}

#[test]
fn what_is_typed_is_heard_at_that_line_and_what_was_owed_does_not_happen() {
    let world = world();
    // After the line that asks for the payment, which has not started.
    let ran = typed(&world, RUN, "\n\n\nDo not pay.\nc\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(payments(&world), 0, "{ran:?}");
    let told = world.run(&["log", "last"]).out;
    let at = |text: &str| {
        told.find(text)
            .unwrap_or_else(|| panic!("{text} in {told}"))
    };
    assert!(at("TC(4.0 pay") < at("Do not pay."), "{told}");
    assert!(at("Do not pay.") < at("Paid."), "{told}");
}

/// A process is killed at a stop: no effect started that is not in the log, and the session goes on without a doubt.
#[test]
fn killed_at_a_stop_nothing_is_lost_or_in_doubt() {
    let world = world();
    for stops in 1..=5 {
        let mut command = world.command(RUN);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut told = std::io::BufReader::new(child.stderr.take().unwrap());
        for stop in 0..stops {
            if stop > 0 {
                input.write_all(b"\n").unwrap();
            }
            let mut row = String::new();
            while !(row.starts_with('@') && row.trim_end().ends_with('>')) {
                row.clear();
                let read = std::io::BufRead::read_line(&mut told, &mut row).unwrap();
                assert!(read > 0, "it ended before stop {stop}");
            }
        }
        let paid = payments(&world);
        child.kill().unwrap();
        child.wait().unwrap();
        let ran = world.run(&["run", "--resume", "last"]);
        assert_eq!(
            (ran.code, ran.out.trim()),
            (Some(0), "Paid."),
            "{stops}: {ran:?}"
        );
        assert_eq!(payments(&world), paid + usize::from(stops < 5), "{stops}");
    }
    assert_eq!(payments(&world), 5);
}

#[test]
fn a_rerun_stops_at_each_line_of_the_recording_and_may_be_redirected_there() {
    let world = world();
    let ran = world.run(&RUN[..5]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (_, recorded) = world.json(&["show", "last"]);
    let recorded = recorded["session"].as_str().unwrap();
    let ran = typed(&world, &["rerun", recorded, "--step"], "\n\n\n\n\n\n\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("Nothing differs"), "{ran:?}");
    assert_eq!(stops(&ran), 6, "{ran:?}");
    // After the result of `look`, a message says not to pay.
    let args = ["rerun", recorded, "--step", "--script-all", "other.yaml"];
    let ran = typed(&world, &args, "\n\nDo not pay.\n\n\n\n\n");
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(ran.out.contains("Heard."), "{ran:?}");
    assert_eq!(payments(&world), 1);
    assert!(
        ran.err.contains("3 lines of the recording were followed"),
        "{ran:?}"
    );
    // A rerun that is left in the middle is a paused session, which can be resumed.
    let ran = typed(&world, &["rerun", recorded, "--step"], "\n\nq\n");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.err.contains("is left paused"), "{ran:?}");
    let (_, all) = world.json(&["sessions", "--where", "status = paused"]);
    let paused = all["session"].as_str().unwrap();
    let ran = typed(&world, &["run", "--resume", paused, "--step"], "c\n");
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Paid."), "{ran:?}");
    assert_eq!(payments(&world), 1, "the rerun is dry");
}

#[test]
fn steps_and_a_message_cannot_share_standard_input() {
    let world = world();
    let ran = typed(&world, &["run", "--input", "-", "--step"], "Pay.\n");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("--step reads standard input"), "{ran:?}");
    let ran = world.run(&["run", "--help"]);
    assert!(ran.out.contains("--step"), "{ran:?}");
}
