//! MCP servers: what `check` and `doctor` find with and without them, and a session that calls one.

use crate::world::{World, root};
use insta::assert_snapshot;
use std::io::Read;
use std::process::{Child, Stdio};

const CLERK: &str = r#"
name: clerk
mcp:
  desk: { command: [sh, server.sh, diary], tools: [echo, structured, "ref*"], effect: annotations }
agents: { clerk: { system: You help., tools: ["desk.*"] } }
"#;

fn world(definition: &str) -> World {
    let world = World::new();
    let script = root().join("crates/steersman-adapters/tests/it/mcp/server.sh");
    std::fs::copy(script, world.folder.join("server.sh")).unwrap();
    world.write("diary", "");
    world.write("steersman.yaml", definition);
    world
}

#[test]
fn check_asks_servers_where_it_is_told_to() {
    let world = world(CLERK);
    let mut pages = vec![world.page(&["check"]), world.page(&["check", "--servers"])];
    // A definition that does not fit the server, and a server that does not answer.
    world.write(
        "steersman.yaml",
        &CLERK.replace("\"desk.*\"", "desk.refund"),
    );
    pages.push(world.page(&["check", "--servers"]));
    world.write("server.sh", "echo no licence >&2; exit 1");
    pages.push(world.page(&["check", "--servers"]));
    world.write("script.yaml", "clerk: [ Hello. ]");
    pages.push(world.page(&["run", "--script-all", "script.yaml", "--input", "hi"]));
    assert_snapshot!(pages.join("\n"));
    let (code, document) = world.json(&["check", "--servers"]);
    assert_eq!((code, &document["ok"]), (Some(1), &false.into()));
}

#[test]
fn a_session_calls_a_server_and_is_shown_without_it() {
    let world = world(CLERK);
    world.write(
        "script.yaml",
        r#"clerk: [ { call: { desk__echo: { x: a } } }, "It says {{ request.last }}." ]"#,
    );
    let mut pages = vec![world.page(&["run", "--script-all", "script.yaml", "--input", "hi"])];
    std::fs::remove_file(world.folder.join("server.sh")).unwrap();
    pages.push(world.page(&["show", "last"]));
    pages.push(world.page(&["context", "last"]));
    assert_snapshot!(pages.join("\n"));
}

/// A rerun has the list of tools that was recorded: a server that lists others now, or that is gone, changes no request.
#[test]
fn a_rerun_has_the_recorded_list_of_a_server() {
    let definition = CLERK.replace(
        "agents: { clerk: { system: You help., tools: [\"desk.*\"] } }",
        "agents:\n  clerk: { system: You help., tools: [\"desk.*\", critic] }\n  critic: { description: Judges., system: You judge. }\nentry: clerk",
    );
    let world = world(&definition);
    world.write(
        "script.yaml",
        r#"clerk: [ { call: { desk__echo: { x: a } } }, "It says {{ request.last }}." ]"#,
    );
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "hi"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = world.json_lines(&["sessions"])[0]["session"].clone();
    let session = session.as_str().unwrap();
    let rerun = |world: &World| {
        let set = "agents.critic.system=Be strict.";
        let args = [
            "rerun",
            session,
            "--set",
            set,
            "--script-all",
            "script.yaml",
        ];
        let (code, json) = world.json(&args);
        assert_eq!(code, Some(0), "{json:#}");
        assert_eq!(json["model_calls"]["recorded"], 2, "{json:#}");
        assert_eq!(json["model_calls"]["live"], 0, "{json:#}");
        json["servers"].clone()
    };
    assert!(rerun(&world).is_null());
    let server = std::fs::read_to_string(world.folder.join("server.sh")).unwrap();
    world.write("server.sh", &server.replace("Does %s.", "Will %s."));
    let told = rerun(&world);
    assert_eq!(told[0], "`desk.echo` has another description", "{told}");
    std::fs::remove_file(world.folder.join("server.sh")).unwrap();
    assert!(rerun(&world).is_null());
}

/// A server dies in each call. The model reads how often the call was tried, and of no further attempt.
#[test]
fn a_failed_read_says_how_often_it_was_tried() {
    let definition = CLERK
        .replace("echo, structured", "die")
        .replace("annotations", "read, retry: 1");
    let world = world(&definition);
    let server = std::fs::read_to_string(world.folder.join("server.sh")).unwrap();
    world.write("server.sh", &server.replace("$(tool fail)", "$(tool die)"));
    world.write(
        "script.yaml",
        r#"clerk: [ { call: { desk__die: {} } }, "It says {{ request.last }}." ]"#,
    );
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "hi"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("(2 attempts in "), "{ran:?}");
    assert!(!ran.out.contains("tried again"), "{ran:?}");
    let diary = std::fs::read_to_string(world.folder.join("diary")).unwrap();
    // Once for the list and the first call, once for the second call.
    assert_eq!(diary.matches("started").count(), 2, "{diary}");
}

#[test]
fn what_servers_offered_is_verified() {
    let world = world(CLERK);
    world.write("script.yaml", "clerk: [ Hello. ]");
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "hi"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
    let store = rusqlite::Connection::open(world.folder.join(".steersman/sessions.db")).unwrap();
    let lost = r#"delete from blob where cast(bytes as text) like '{"servers"%'"#;
    assert_eq!(store.execute(lost, []).unwrap(), 1);
    drop(store);
    let found = world.run(&["fsck"]);
    assert_eq!(found.code, Some(4), "{found:?}");
    let told = "what its MCP servers offered is missing from the store";
    assert!(found.out.contains(told), "{found:?}");
}

#[test]
fn a_list_that_changed_is_told() {
    let definition = CLERK
        .replace("diary]", "diary, grows]")
        .replace("echo, structured", "change, new_one")
        .replace("annotations", "read, refresh: follow");
    let world = world(&definition);
    world.write(
        "script.yaml",
        r#"clerk: [ { call: { desk__change: {} } }, { call: { desk__new_one: {} } }, "It is {{ request.last }}." ]"#,
    );
    let mut pages = vec![world.page(&["run", "--script-all", "script.yaml", "--input", "hi"])];
    pages.push(world.page(&["show", "last"]));
    // The context of the first model call, and of the last one, after the change.
    pages.push(world.page(&["context", "last@2"]));
    pages.push(world.page(&["context", "last"]));
    assert_snapshot!(pages.join("\n"));
}

/// `script` runs the program on a terminal.
#[test]
fn how_far_a_call_has_come_is_shown_while_it_runs() {
    let definition = CLERK
        .replace("diary]", "diary, grows]")
        .replace("echo, structured", "patient");
    let world = world(&definition);
    world.write(
        "script.yaml",
        r#"clerk: [ { call: { desk__patient: {} } }, "It says {{ request.last }}." ]"#,
    );
    let us = env!("CARGO_BIN_EXE_steersman");
    let line = format!("{us} run --script-all script.yaml --input hi");
    let mut child = std::process::Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(&world.folder)
        .env("HOME", world.folder.join("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let read = out.read(&mut piece).unwrap();
        shown.extend_from_slice(&piece[..read]);
        if String::from_utf8_lossy(&shown).contains(": 1, half way") {
            world.write("diary", "go\n");
        }
        if read == 0 {
            break;
        }
    }
    // `script` ends with its input, which is empty, so its exit code says nothing. Only the output counts.
    child.wait().unwrap();
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("It says at last."), "{shown}");
}

#[test]
fn doctor_looks_at_servers() {
    let mut world = world(CLERK);
    world.set("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    let mcp = |world: &World| {
        let page = world.page(&["doctor", "steersman.yaml"]);
        let lines: Vec<&str> = page.lines().collect();
        let about = lines.iter().position(|line| line.starts_with("mcp"));
        let from = about.unwrap_or_else(|| panic!("{page}"));
        lines[from..].join("\n")
    };
    let mut pages = vec![mcp(&world)];
    world.write(
        "steersman.yaml",
        &CLERK.replace("\"desk.*\"", "desk.refund"),
    );
    pages.push(mcp(&world));
    world.write(
        "steersman.yaml",
        &CLERK.replace(
            "tools: [echo, structured, \"ref*\"]",
            "tools: [none], refresh: follow",
        ),
    );
    pages.push(mcp(&world));
    world.write("server.sh", "echo no licence >&2; exit 1");
    pages.push(mcp(&world));
    assert_snapshot!(pages.join("\n\n"));
}

/// Names of tools for a model may have letters, digits, `_` and `-` only. `check` and `doctor` tell the name that a
/// model sees instead.
#[test]
fn what_a_model_sees_under_another_name_is_told() {
    let strange = CLERK
        .replace("diary]", "diary, strange]")
        .replace("[echo, structured", "[echo, \"read*\"");
    let mut world = world(&strange);
    world.set("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    let told = "desk__read_file___31m";
    let page = world.page(&["check", "--servers"]);
    assert!(
        page.contains(&format!("a model sees it as {told}")),
        "{page}"
    );
    let exact = "desk.read file/\u{1b}[31m";
    assert!(page.contains(exact), "a pipe gets each byte: {page:?}");
    let (_, document) = world.json(&["check", "--servers"]);
    assert_eq!(
        document["renamed"]["desk.read file/\u{1b}[31m"], told,
        "{document}"
    );
    let findings = world.json_lines(&["doctor", "steersman.yaml"]);
    let note = findings.iter().find(|f| {
        f["text"]
            .as_str()
            .unwrap()
            .ends_with(&format!("as `{told}`"))
    });
    assert_eq!(note.unwrap()["health"], "note");
}

/// A server that asks a person while its tool, which is of this class, runs.
fn asking(class: &str) -> World {
    let world = world(&format!(
        "name: clerk\nmcp:\n  desk: {{ command: [sh, server.sh, diary, asks], tools: [books], effect: {class} }}\n\
         agents: {{ clerk: {{ system: You help., tools: [desk.books] }} }}\n"
    ));
    world.write(
        "script.yaml",
        r#"clerk: [ { call: { desk__books: {} } }, "It says {{ request.last }}." ]"#,
    );
    world
}

const RUN: [&str; 5] = ["run", "--script-all", "script.yaml", "--input", "hi"];
const DAY: &str = r#"{"when":"2026-12-24"}"#;
const BOOKED: &str = "It says booked when:2026-12-24,seats:1.";

fn asked(world: &World) -> usize {
    let diary = std::fs::read_to_string(world.folder.join("diary")).unwrap();
    diary.lines().filter(|line| *line == "asked").count()
}

/// Starts a session whose command stays, and returns it once its server has asked.
fn stays(world: &World) -> Child {
    let driver = world
        .command(&RUN)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while asked(world) == 0 || world.json_lines(&["pending"]).is_empty() {
        std::thread::yield_now();
    }
    driver
}

#[test]
fn what_a_server_asks_is_answered_by_a_later_command() {
    let world = asking("read");
    let ran = world.run(&RUN);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.all().contains("steersman reject"), "{ran:?}");
    let open = &world.json_lines(&["pending"])[0];
    assert_eq!(open["kind"], "question", "{open}");
    assert_eq!(open["because"], "the server `desk` asks", "{open}");
    let needs = &open["needs"];
    assert_eq!(needs[0], "when (date)", "{open}");
    let wrong = world.run(&["answer", "last", r#"{"when":"soon"}"#]);
    assert!(wrong.err.contains("`when`: `soon` is no date"), "{wrong:?}");
    let answered = world.run(&["answer", "last", DAY]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert!(answered.out.contains(BOOKED), "{answered:?}");
    // The call was made again, and nobody was asked again.
    assert_eq!(asked(&world), 2);
    let shown = world.run(&["show", "last"]).out;
    assert!(shown.contains("Which day?"), "{shown}");
    assert!(shown.contains("desk.books answered by user"), "{shown}");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
}

#[test]
fn a_command_stays_while_a_server_asks_in_a_call_that_must_not_be_repeated() {
    let world = asking("unsafe");
    let driver = stays(&world);
    let answered = world.run(&["answer", "last", DAY]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let ran = driver.wait_with_output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    assert!(ran.status.success(), "{out}{err}");
    assert!(out.contains(BOOKED), "{out}{err}");
    assert!(err.contains("Answer in another terminal"), "{out}{err}");
    assert_eq!(asked(&world), 1);
}

#[test]
fn a_kill_while_a_server_asks_leaves_an_unsafe_call_in_doubt() {
    let world = asking("unsafe");
    let mut driver = stays(&world);
    driver.kill().unwrap();
    driver.wait().unwrap();
    let ran = world.run(&["run", "--resume", "last"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    let open = &world.json_lines(&["pending"])[0];
    assert_eq!(open["kind"], "doubt", "{open}");
    assert_eq!(asked(&world), 1, "nothing is repeated");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
}
