//! `run` and `log -f`: their input, how they are stopped, and the clock that they use.

use crate::world::World;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

#[test]
fn ctrl_c_leaves_it_resumable() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "tools: { look: { description: Looks., effect: read, command: [sh, slow.sh] } }
agents: { desk: { system: You look., tools: [look] } }
",
    );
    // The first call of the tool creates a file and takes long. The second call is quick.
    world.write(
        "slow.sh",
        "if [ -e running ]; then echo seen; else touch running; sleep 60; fi\n",
    );
    world.write("script.yaml", "desk: [ { call: { look: {} } }, Done. ]\n");
    let run = world
        .command(&["run", "--script-all", "script.yaml", "--input", "Look."])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !world.folder.join("running").exists() {
        std::thread::yield_now();
    }
    let stopped = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status()
        .unwrap();
    assert!(stopped.success());
    let output = run.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(told.contains("steersman run --resume"), "{told}");
    // Lists show the session as interrupted, and `show` counts the model calls until then.
    assert_eq!(world.json(&["sessions"]).1["status"], "interrupted");
    let (_, shown) = world.json(&["show", "last"]);
    assert_eq!(
        (&shown["status"], &shown["model_calls"]),
        (&"interrupted".into(), &1.into())
    );
    let (code, document) = world.json(&["run", "--resume", "last"]);
    assert_eq!((code, &document["answer"]), (Some(0), &"Done.".into()));
}

#[test]
fn the_log_is_followed_while_another_process_acts() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "agents: { desk: { system: You greet. } }\n",
    );
    world.write("script.yaml", "desk: [ Hello., Again. ]\n");
    let first = world.run(&["run", "--script-all", "script.yaml", "--input", "Hi"]);
    assert_eq!(
        (first.code, &*first.out),
        (Some(0), "Hello.\n"),
        "{first:?}"
    );
    let mut follow = world
        .command(&["log", "last", "-f"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut until = |text: &str| loop {
        let line = lines.next().expect("it goes on").unwrap();
        if line.contains(text) {
            return;
        }
    };
    until("Hello.");
    let second = world.run(&["send", "last", "And again?"]);
    assert_eq!(
        (second.code, &*second.out),
        (Some(0), "Again.\n"),
        "{second:?}"
    );
    until("And again?");
    until("Again.");
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn time_comes_from_a_file() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r"tools: { later: { description: Waits., wait: { time: 3d } } }
agents: { desk: { system: You wait., tools: [later] } }
",
    );
    world.write(
        "script.yaml",
        "desk: [ { call: { later: {} } }, It is time. ]\n",
    );
    world.write("clock", "2026-11-21T08:00:00Z");
    let clock = ["--clock", "clock"];
    let begin = [
        "run",
        "--script-all",
        "script.yaml",
        "--input",
        "Wait.",
        "--durability",
        "step",
    ];
    let (code, document) = world.json(&[&begin[..], &clock[..]].concat());
    assert_eq!(code, Some(5), "{document}");
    assert_eq!(document["pending"][0]["kind"], "timer");
    assert_eq!(document["pending"][0]["due"], "2026-11-24T08:00:00Z");
    // One second early it still waits.
    world.write("clock", "2026-11-24T07:59:59Z");
    let (code, _) = world.json(&[&["run", "--resume", "last"], &clock[..]].concat());
    assert_eq!(code, Some(5));
    world.write("clock", "2026-11-24T08:00:00Z");
    let (code, document) = world.json(&[&["run", "--resume", "last"], &clock[..]].concat());
    assert_eq!(
        (code, &document["answer"]),
        (Some(0), &"It is time.".into())
    );
}

#[test]
fn the_message_may_come_from_standard_input() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "agents: { a: { system: You are a. }, b: { system: You are b. } }\nentry: [a, b]\n",
    );
    world.write(
        "script.yaml",
        "a: [ \"a heard {{ request.last }}\" ]\nb: [ \"b heard {{ request.last }}\" ]\n",
    );
    let mut run = world
        .command(&[
            "run",
            "--script-all",
            "script.yaml",
            "--entry",
            "b",
            "--input",
            "-",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(run.stdin.take().unwrap(), "two\nlines").unwrap();
    let output = run.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "b heard two\nlines\n"
    );
    let wrong = world.run(&[
        "run",
        "--script-all",
        "script.yaml",
        "--entry",
        "c",
        "--input",
        "x",
    ]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let lost = world.run(&["run", "--script-all", "nowhere.yaml", "--input", "x"]);
    assert_eq!(lost.code, Some(2), "{lost:?}");
    // A model that cannot be used is reported before anything starts.
    let none = world.run(&["run", "--input", "x"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.err.contains("--script-all"), "{none:?}");
}

/// `--script` answers for models of the provider `scripted` only. Only models that the entry can reach are needed.
#[test]
fn a_script_stands_in_for_models_that_are_scripted() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "models: { default: openai, small: scripted }
agents:
  teller: { system: You tell., model: small }
  thinker: { system: You think. }
entry: [teller, thinker]
",
    );
    world.write(
        "script.yaml",
        "teller: [ I tell. ]\nthinker: [ I think. ]\n",
    );
    let run = |entry: &str, script: &str| {
        let input = ["--entry", entry, script, "script.yaml", "--input", "Hi."];
        world.run(&[&["run"], &input[..]].concat())
    };
    let told = run("teller", "--script");
    assert_eq!(
        (told.code, told.out.trim()),
        (Some(0), "I tell."),
        "{told:?}"
    );
    let asked = run("thinker", "--script");
    assert!(asked.err.contains("OPENAI_API_KEY"), "{asked:?}");
    let all = run("thinker", "--script-all");
    assert_eq!((all.code, all.out.trim()), (Some(0), "I think."), "{all:?}");
    world.write(
        "steersman.yaml",
        "agents: { teller: { system: You tell. } }\n",
    );
    world.write("script.yaml", "teller: [ I tell. ]\n");
    let none = run("teller", "--script");
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(
        none.err.contains("--script-all answers for all models"),
        "{none:?}"
    );
}

/// Values of `config` and names of models are given for one session, and bound with it.
#[test]
fn values_and_models_are_given_for_one_session() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r#"
config: { size: { type: string, env: SIZE, default: small }, times: { type: integer, default: 1 } }
models: { default: { provider: scripted, model: "{{ config.size }}" }, other: { provider: scripted, model: fixed } }
agents: { desk: { system: "Say it {{ config.times }} times." }, aside: { system: You help., model: other } }
entry: [desk, aside]
"#,
    );
    world.write(
        "script.yaml",
        "{ desk: [ Yes., Again. ], aside: [ Here. ] }\n",
    );
    let begin = |more: &[&str]| {
        let args = ["run", "--script", "script.yaml", "--input", "Go."];
        let ran = world.run(&[&args[..], more].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.err
    };
    assert!(begin(&[]).contains("scripted/small"));
    let set = begin(&["--set", "size=7", "--set", "times=3"]);
    assert!(set.contains("scripted/7"), "{set}");
    let context = world.run(&["context", "last"]);
    assert!(context.out.contains("Say it 3 times."), "{context:?}");
    assert!(begin(&["--model", "large"]).contains("scripted/large"));
    let given = begin(&["--entry", "aside", "--model", "other=tiny"]);
    assert!(given.contains("scripted/tiny"), "{given}");
    for (wrong, why) in [
        ("sise=7", "`sise` is no value of `config`"),
        ("size", "`--set size` has no value"),
        ("times=many", "`\"many\"` is not a whole number"),
    ] {
        let ran = world.run(&[
            "run",
            "--script",
            "script.yaml",
            "--input",
            "Go.",
            "--set",
            wrong,
        ]);
        assert_ne!(ran.code, Some(0), "{ran:?}");
        assert!(ran.err.contains(why), "{wrong}: {ran:?}");
    }
}
