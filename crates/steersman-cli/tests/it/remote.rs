//! `--server`: commands over a server answer as they do on its store, and say plainly what they cannot do.

use crate::network::COMMANDS;
use crate::served::{Served, provider};
use crate::world::{Ran, World, ran};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

const DESK: &str = r#"
steersman: 1
name: desk
state:
  balance: { type: integer, default: 50000 }
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, command: [echo, "{{ args.what }}"] }
  pay:
    description: Pays.
    parameters: { cents: { type: integer } }
    effect: unsafe
    approve: { when: args.cents > 0, by: supervisor }
    command: [sh, -c, "echo paid >> book; echo ok"]
    set: { balance: "{{ state.balance - args.cents }}" }
agents:
  supervisor: { person: { role: supervisor } }
  desk: { system: You settle., tools: [look, pay] }
entry: desk
labels: { balance: "{{ state.balance }}" }
"#;

const SCRIPT: &str = "desk: [ { call: { look: { what: tea } } }, Tea., { call: { pay: { cents: 5 } } }, Paid., More., Still more., Enough. ]\n";

fn world() -> World {
    provider();
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", SCRIPT);
    world.write("note.txt", "A note.\n");
    world
}

/// A command that asks the server.
fn there(world: &World, served: &Served, args: &[&str]) -> Command {
    let mut command = world.command(args);
    command.env("STEERSMAN_SERVER", &served.at);
    command
}

/// A token that no server knows.
const UNKNOWN: (&str, &str) = (
    "STEERSMAN_TOKEN",
    "stm_aaaaaaaa_abcdefghijklmnopqrstuvwxyz234567",
);

fn at_server(world: &World, served: &Served, args: &[&str]) -> Ran {
    ran(&mut there(world, served, args))
}

/// Runs a command at the server, which must succeed with `--json`, and returns its last document.
fn done(world: &World, served: &Served, args: &[&str]) -> Json {
    let mut args = args.to_vec();
    args.push("--json");
    let ran = at_server(world, served, &args);
    assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    serde_json::from_str(ran.out.lines().last().unwrap()).unwrap()
}

/// Commands that look, for the session `ID`, which paid after an approval and has a file. Those of the second half are wrong.
const LOOKS: &[&str] = &[
    "sessions",
    "sessions --json",
    "sessions --limit 1",
    "sessions --all --where network=desk",
    "sessions --where status=waits --json",
    "sessions --by status",
    "sessions --by network --json",
    "show ID",
    "show ID --json",
    "show ID --full --times",
    "show ID@2",
    "show ID:main",
    "show ID@look",
    "show last",
    "log ID",
    "log ID --json",
    "log ID@3 --times",
    "log ID:main@look",
    "log ID@-1 --json",
    "pending",
    "pending --all --json",
    "pending --where kind=approval",
    "effects ID",
    "effects ID:main --json",
    "effects last",
    "why ID",
    "why ID --json",
    "why ID@look",
    "why ID desk",
    "context ID",
    "context ID --json",
    "context ID --why",
    "context ID --why --json",
    "context ID --diff",
    "context ID --diff --json",
    "context ID --cache",
    "context ID@2 desk",
    "graph ID",
    "graph ID --json",
    "graph ID --format mermaid",
    "graph ID@2 --format svg",
    "artifacts ID",
    "artifacts ID --json",
    "artifacts ID note.txt",
    "artifacts ID note.txt --json",
    "artifacts ID@1",
    "diff ID ID:main",
    "diff ID ID --json",
    "export ID",
    "memory",
    "memory list --all --json",
    "memory search tea",
    "show nothing",
    "show ID:b",
    "show ID@99",
    "show ID@-99",
    "show ID@fly",
    "show ID@",
    "log ID@fly",
    "log ID:b --json",
    "why ID 9.9",
    "why ID fly",
    "context ID fly",
    "graph ID@99",
    "graph ID:b",
    "artifacts ID other.txt",
    "artifacts ID note.txt --version 9",
    "artifacts ID --version 1",
    "diff ID@2 ID",
    "memory show 9",
    "sessions --where \"bad = \"",
    "sessions --where fly=1",
    "pending --where for=nobody",
];

#[test]
fn commands_that_look_say_at_a_server_what_they_say_on_its_store() {
    let world = world();
    let script = ["--script-all", "script.yaml"];
    let begin = ["run", "--input", "Look.", "--file", "note.txt"];
    let first = world.run(&[&begin[..], &script].concat());
    assert_eq!(first.code, Some(0), "{first:?}");
    let (_, listed) = world.json(&["sessions"]);
    let id = listed["session"].as_str().unwrap().to_owned();
    let paid = world.run(&["send", &id, "Pay.", script[0], script[1]]);
    assert_eq!(paid.code, Some(5), "{paid:?}");
    let approve = ["approve", &id, "--as", "supervisor"];
    let paid = world.run(&[&approve[..], &script].concat());
    assert_eq!(paid.code, Some(0), "{paid:?}");
    // Another session waits.
    world.write(
        "wait.yaml",
        "desk: [ { call: { pay: { cents: 7 } } }, Paid. ]\n",
    );
    let waits = world.run(&["run", "--input", "Pay.", "--script-all", "wait.yaml"]);
    assert_eq!(waits.code, Some(5), "{waits:?}");
    let served = Served::start(&world);
    for typed in LOOKS {
        let words: Vec<String> = typed
            .split(' ')
            .map(|word| word.replace("ID", &id))
            .collect();
        let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
        if typed.contains("\"bad = \"") {
            args = vec!["sessions", "--where", "bad = "];
        }
        let told = |ran: Ran| (ran.code, ran.out, ran.err.replace(&served.at, PLACE));
        // Times grow between two runs, so both runs on the store must be equal before the one in between is compared.
        let (here, there) = loop {
            let before = told(world.run(&args));
            let there = told(at_server(&world, &served, &args));
            if told(world.run(&args)) == before {
                break (before, there);
            }
        };
        assert_eq!(there, here, "{typed}");
        let is_wrong = LOOKS.iter().position(|look| look == typed).unwrap()
            >= LOOKS
                .iter()
                .position(|look| *look == "show nothing")
                .unwrap();
        assert_eq!(
            here.0,
            Some(if is_wrong { 2 } else { 0 }),
            "{typed}: {here:?}"
        );
    }
}

/// The store, as messages name it.
const PLACE: &str = ".steersman/sessions.db";

#[test]
fn commands_that_act_are_carried_out_by_the_server() {
    let world = world();
    let served = Served::start(&world);
    // Standard output and the exit code are those of a store.
    let alone = self::world();
    let both = |args: &[&str]| {
        let here = alone.run(&[args, &["--script-all", "script.yaml"]].concat());
        let there = at_server(&world, &served, args);
        assert_eq!(
            (there.code, &there.out),
            (here.code, &here.out),
            "{args:?}: {there:?}"
        );
        there
    };
    let looked = both(&["run", "--input", "Look."]);
    assert_eq!((looked.code, &*looked.out), (Some(0), "Tea.\n"));
    assert!(
        looked.err.contains("called look") || looked.err.contains("look("),
        "{looked:?}"
    );
    let asked = both(&["send", "last", "Pay."]);
    assert_eq!(asked.code, Some(5), "{asked:?}");
    assert!(asked.err.contains("--as supervisor"), "{asked:?}");

    let wrong = at_server(&world, &served, &["approve", "last"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("only `supervisor`"), "{wrong:?}");
    let approve = ["approve", "last", "--as", "supervisor"];
    assert_eq!(done(&world, &served, &approve)["status"], "taken");
    let paid = at_server(&world, &served, &["run", "--resume", "last"]);
    assert_eq!((paid.code, &*paid.out), (Some(0), "Paid.\n"), "{paid:?}");
    let book = std::fs::read_to_string(world.folder.join("book")).unwrap();
    assert_eq!(book, "paid\n");
    let again = at_server(&world, &served, &approve);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.err.contains("no approval is open"), "{again:?}");
    assert!(
        again.err.contains("supervisor"),
        "who decided it: {again:?}"
    );

    for (args, status) in [
        (&["pause", "last"][..], "paused"),
        (&["resume", "last"], "taken"),
        (&["hold", "last", "--tool", "pay"], "held"),
        (&["release", "last", "--tool", "pay"], "taken"),
    ] {
        assert_eq!(done(&world, &served, args)["status"], status, "{args:?}");
    }
    let said = at_server(
        &world,
        &served,
        &["run", "--resume", "last", "--input", "More?"],
    );
    assert_eq!((said.code, &*said.out), (Some(0), "More.\n"), "{said:?}");
    let events = at_server(
        &world,
        &served,
        &["run", "--resume", "last", "--input", "On.", "--json"],
    );
    let events: Vec<Json> = events
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        events.iter().any(|event| event["event"] == "heard"),
        "{events:?}"
    );
    let last = events.last().unwrap();
    assert_eq!(
        (&last["event"], &last["answer"]),
        (&json!("settled"), &json!("Still more."))
    );

    // A second session waits for an approval that is rejected, and is cancelled.
    world.write(
        "script.yaml",
        "desk: [ { call: { pay: { cents: 7 } } }, As you like., Bye. ]\n",
    );
    drop(served);
    let served = Served::start(&world);
    let waits = at_server(&world, &served, &["run", "desk", "--input", "Pay."]);
    assert_eq!(waits.code, Some(5), "{waits:?}");
    let reject = ["reject", "last", "--as", "supervisor", "--say", "No."];
    assert_eq!(done(&world, &served, &reject)["status"], "taken");
    let rested = at_server(&world, &served, &["run", "--resume", "last"]);
    assert_eq!(
        (rested.code, &*rested.out),
        (Some(0), "As you like.\n"),
        "{rested:?}"
    );
    let waits = at_server(&world, &served, &["run", "desk", "--input", "Pay."]);
    assert_eq!(waits.code, Some(5), "{waits:?}");
    let over = done(&world, &served, &["cancel", "last"]);
    assert_eq!(over["status"], "cancelled", "{over}");
}

#[test]
fn branches_are_opened_and_taken_by_the_server() {
    let world = world();
    let script = "desk: [ One., Two., Three., Four., Five., Six. ]\n";
    world.write("script.yaml", script);
    let served = Served::start(&world);
    let alone = self::world();
    alone.write("script.yaml", script);
    let both = |args: &[&str]| {
        let here = alone.run(&[args, &["--script-all", "script.yaml"]].concat());
        let there = at_server(&world, &served, args);
        assert_eq!(
            (there.code, &there.out),
            (here.code, &here.out),
            "{args:?}: {there:?}"
        );
        assert_eq!(there.code, Some(0), "{there:?}");
        there
    };
    both(&["run", "--input", "Hello."]);
    both(&["send", "last", "And?"]);
    let forked = both(&["fork", "last", "--label", "b", "--say", "On."]);
    assert!(forked.err.contains("b is a fork of main"), "{forked:?}");
    assert!(forked.err.contains("steersman adopt"), "{forked:?}");
    let diff = ["diff", "last:b", "last:b"];
    for diff in [alone.run(&diff), at_server(&world, &served, &diff)] {
        assert_eq!(diff.code, Some(0), "{diff:?}");
        assert!(diff.out.starts_with("Nothing differs"), "{diff:?}");
    }
    assert_eq!(
        done(&world, &served, &["adopt", "last:b"])["status"],
        "taken"
    );
    let none = at_server(&world, &served, &["adopt", "last"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.err.contains("names no branch"), "{none:?}");
    let back = done(&world, &served, &["rewind", "last@2", "--label", "c"]);
    assert_eq!(
        (&back["branch"], &back["current"]),
        (&json!("c"), &json!(true)),
        "{back}"
    );
    assert_eq!(back["status"], "taken", "{back}");
    let no_line = at_server(&world, &served, &["rewind", "last"]);
    assert_eq!(no_line.code, Some(2), "{no_line:?}");
    let aside = at_server(
        &world,
        &served,
        &["fork", "last", "--label", "d", "--say", "Aside."],
    );
    assert_eq!(aside.code, Some(0), "{aside:?}");
    assert_eq!(
        done(&world, &served, &["join", "last", "d"])["status"],
        "taken"
    );
    let twice = at_server(&world, &served, &["fork", "last", "--label", "d"]);
    assert_eq!(twice.code, Some(2), "{twice:?}");
    assert!(
        twice.err.contains("a branch `d` exists already"),
        "{twice:?}"
    );
}

/// Runs a command with these variables, which must fail, and returns what it said. No token is in it.
fn refused(world: &World, env: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut command = world.command(args);
    command.envs(env.iter().copied());
    let ran = ran(&mut command);
    assert_ne!(ran.code, Some(0), "{args:?}: {ran:?}");
    assert!(
        ran.out.is_empty() && !ran.err.contains("stm_"),
        "{args:?}: {ran:?}"
    );
    ran
}

#[test]
fn what_cannot_be_asked_is_refused_with_advice() {
    let world = world();
    let served = Served::start(&world);
    let at = ("STEERSMAN_SERVER", &*served.at);
    for (args, exit, told) in [
        (
            &["sessions", "--server", "fly"][..],
            2,
            "not the address of a server",
        ),
        (
            &["sessions", "--server", "http://desk.example"],
            2,
            "use https://",
        ),
        (
            &["sessions", "--server", "https://desk.example"],
            2,
            "STEERSMAN_TOKEN is not set",
        ),
        (
            &["sessions", "--server", "https://stm_a_b@desk.example"],
            2,
            "holds no password",
        ),
        (
            &["sessions", "--server", "http://127.0.0.1:1"],
            4,
            "no server answers at http://127.0.0.1:1",
        ),
    ] {
        let ran = refused(&world, &[], args);
        assert_eq!(ran.code, Some(exit), "{args:?}: {ran:?}");
        assert!(ran.err.contains(told), "{args:?}: {ran:?}");
    }
    let unknown = refused(&world, &[at], &["show", "aa0000"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(
        unknown.err.contains("there is no session `aa0000`"),
        "{unknown:?}"
    );

    let wrong = refused(&world, &[at, UNKNOWN], &["sessions"]);
    assert_eq!(wrong.code, Some(4), "{wrong:?}");
    assert!(wrong.err.contains("the token is not known"), "{wrong:?}");
    assert!(wrong.err.contains("steersman token new"), "{wrong:?}");
    let elsewhere = world.folder.join("elsewhere.db");
    let elsewhere = elsewhere.to_str().unwrap();
    std::fs::create_dir_all(world.folder.join("none")).unwrap();
    let none = refused(&world, &[at], &["sessions", "--store", "none/sessions.db"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(
        none.err.contains("there is no `none/server.token`"),
        "{none:?}"
    );
    // A store that nobody serves has no file with a token.
    let beside = at_server(&world, &served, &["sessions", "--store", elsewhere]);
    assert_eq!(beside.code, Some(2), "{beside:?}");

    let reads = world.json(&["token", "new", "--allow", "read"]).1;
    let reads = ("STEERSMAN_TOKEN", reads["token"].as_str().unwrap());
    let mut command = there(&world, &served, &["sessions"]);
    assert_eq!(ran(command.env(reads.0, reads.1)).code, Some(0));
    let mut command = there(&world, &served, &["run", "--input", "Look."]);
    let less = ran(command.env(reads.0, reads.1));
    assert_eq!(less.code, Some(4), "{less:?}");
    assert!(
        less.err.contains("the token does not allow `write`"),
        "{less:?}"
    );
    assert!(!less.err.contains(reads.1), "{less:?}");
}

/// The commands that work at a server.
const AT_SERVER: &[&str] = &[
    "run",
    "sessions",
    "show",
    "log",
    "context",
    "effects",
    "graph",
    "why",
    "artifacts",
    "pending",
    "send",
    "answer",
    "approve",
    "reject",
    "resolve",
    "cancel",
    "pause",
    "resume",
    "hold",
    "release",
    "retry",
    "fork",
    "join",
    "adopt",
    "rewind",
    "diff",
    "export",
    "memory",
    "ui",
];

/// The commands that need no sessions.
const ALONE: &[&str] = &[
    "demo",
    "new",
    "check",
    "test",
    "simulate",
    "import",
    "schema",
    "lsp",
    "explain",
    "completions",
];

#[test]
fn commands_that_work_on_a_store_say_so() {
    let world = world();
    // Nothing is asked, so no server is needed.
    let at = ("STEERSMAN_SERVER", "http://127.0.0.1:1");
    for command in COMMANDS {
        let args: Vec<&str> = command.split(' ').collect();
        let name = args[0];
        if AT_SERVER.contains(&name) || ALONE.contains(&name) {
            continue;
        }
        let ran = ran(world.command(&args).env(at.0, at.1));
        assert_eq!(ran.code, Some(2), "{command}: {ran:?}");
        assert!(
            ran.err.contains(&format!("`{name}` works on a store")),
            "{command}: {ran:?}"
        );
        assert!(ran.err.contains("STEERSMAN_SERVER"), "{command}: {ran:?}");
    }
    let checked = ran(world.command(&["check", "."]).env(at.0, at.1));
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let checked = world.run(&["check", ".", "--server", at.1]);
    assert_eq!(checked.code, Some(2), "{checked:?}");
    assert!(checked.err.contains("leave out --server"), "{checked:?}");
    for args in [
        &["run", "--all"][..],
        &["run", "--input", "Look.", "--script-all", "script.yaml"],
        &["run", "--input", "Look.", "--model", "local"],
        &["send", "last", "Hello.", "--no-run"],
        &["pause", "--where", "status=waits", "--yes"],
    ] {
        let mut command = world.command(args);
        let ran = ran(command.env(at.0, at.1).env(UNKNOWN.0, UNKNOWN.1));
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.err.contains("works on a store"), "{args:?}: {ran:?}");
    }
}

/// A desk whose tool runs until the file `go` is there.
const SLOW: &str = "
steersman: 1
name: desk
tools:
  look: { description: Looks., parameters: {}, effect: read, command: [sh, -c, \"touch begun; until test -e go; do sleep 0.02; done; echo tea\"] }
agents: { desk: { system: You settle., tools: [look] } }
entry: desk
";

#[test]
fn a_run_goes_on_when_its_server_comes_back_and_ends_if_it_does_not() {
    for comes_back in [true, false] {
        let world = world();
        world.write("steersman.yaml", SLOW);
        world.write("script.yaml", "desk: [ { call: { look: {} } }, Tea. ]\n");
        let mut served = Served::start(&world);
        let listen = served.at.strip_prefix("http://").unwrap().to_owned();
        let mut run = there(&world, &served, &["run", "--input", "Look."])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut err = BufReader::new(run.stderr.take().unwrap());
        let (mut told, mut row) = (String::new(), String::new());
        while !row.contains("look") {
            row.clear();
            assert_ne!(err.read_line(&mut row).unwrap(), 0, "it ended: {told}");
            told.push_str(&row);
        }
        while !world.folder.join("begun").exists() {
            std::thread::yield_now();
        }
        served.kill();
        world.write("go", "");
        let again = comes_back.then(|| Served::listening(&world, &listen));
        err.read_to_string(&mut told).unwrap();
        let output = run.wait_with_output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        if comes_back {
            assert_eq!((output.status.code(), &*out), (Some(0), "Tea.\n"), "{told}");
        } else {
            assert_eq!((output.status.code(), &*out), (Some(4), ""), "{told}");
            assert!(told.contains(&listen), "{told}");
            assert!(told.contains("nothing is lost"), "{told}");
        }
        drop(again);
    }
}
