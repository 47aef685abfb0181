//! Exports, tests, comparisons, reports and memory that are made of a session hold no secret of the session in clear, even
//! if the user or the model wrote it in clear.

use crate::world::{World, files};
use serde_json::Value as Json;

const PASSWORD: &str = "PLANTED-password-41c7";
const TOKEN: &str = "PLANTED \"token\" d09e";
const KEY: &str = "sk-PLANTED-key-8f2a";
// No id and no digest looks like it.
const PIN: &str = "7#41";

const DESK: &str = r#"name: desk
memory: { scope: everybody }
outcome: { known: state.token is not none, note: state.note, sum: calls.login.ok + 1 }
secrets: { key: { env: DESK_KEY } }
state:
  token: { type: secret, optional: true }
  note: optional string
tools:
  login:
    description: Logs in.
    parameters: { password: { type: secret, ask: "Your password?" } }
    effect: read
    command: [sh, -c, 'cat token.json']
    set: { token: "{{ result.token }}" }
  pin:
    description: Takes a PIN.
    parameters: { pin: { type: secret, ask: "Your PIN?" } }
    effect: read
    command: [echo, taken]
  note: { description: Notes., parameters: { text: string }, set: { note: "{{ args.text }}" } }
agents: { desk: { system: You help., tools: [login, pin, note, memory, artifacts], context: { now: "Noted: {{ state.note or '-' }}" } } }
"#;

fn said() -> String {
    format!("{PASSWORD}, {TOKEN}, {KEY} and {PIN}")
}

/// A session whose user and model write all secrets in clear, before and after they are entered as secrets.
fn talked() -> World {
    let mut world = World::new();
    world.set("DESK_KEY", KEY);
    world.write("steersman.yaml", DESK);
    world.write(
        "token.json",
        &serde_json::json!({ "token": TOKEN }).to_string(),
    );
    let said = said();
    let quoted = Json::from(&*said).to_string();
    let script = format!(
        "desk:\n  - call: {{ login: {{}} }}\n  - call: {{ pin: {{}} }}\n  - call: {{ note: {{ text: {quoted} }} }}\n  - call: {{ artifact_write: {{ name: note.txt, content: {quoted} }} }}\n  - call: {{ memory_save: {{ name: note, content: {quoted}, tags: [{quoted}] }} }}\n  - call: {{ memory_save: {{ name: file, artifact: note.txt }} }}\n  - {quoted}\n"
    );
    world.write("script.yaml", &script);
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", &said]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    for (answer, code) in [(PASSWORD, 5), (PIN, 0)] {
        let ran = world.run(&["answer", "last", answer, "--script-all", "script.yaml"]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
    }
    std::fs::remove_file(world.folder.join("script.yaml")).unwrap();
    std::fs::remove_file(world.folder.join("token.json")).unwrap();
    world
}

fn clean(what: &str, bytes: &[u8]) {
    let token = Json::from(TOKEN).to_string();
    let token = &token[1..token.len() - 1];
    for secret in [PASSWORD, TOKEN, token, KEY, PIN] {
        let found = bytes.windows(secret.len()).any(|w| w == secret.as_bytes());
        assert!(
            !found,
            "`{secret}` is in {what}: {}",
            String::from_utf8_lossy(bytes)
        );
    }
}

#[test]
fn what_is_told_of_a_session_has_no_secret_in_clear() {
    let world = talked();
    for args in [
        &["export", "last"][..],
        &["export", "--where", "network = desk"],
        &["export", "last", "--trajectories"],
        &["export", "last", "--trajectories", "--reward", "sum"],
        &["show", "last"],
        &["show", "last", "--json"],
        &["show", "last@-1", "--json"],
        &["log", "last"],
        &["log", "last", "--json"],
        &["test", "--record", "last"],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(0), "{args:?} {ran:?}");
        assert!(ran.out.contains("(secret)"), "{args:?} {ran:?}");
        clean(&format!("{args:?}"), ran.out.as_bytes());
        clean(&format!("{args:?}"), ran.err.as_bytes());
    }
}

#[test]
fn what_is_written_beside_the_store_has_no_secret_in_clear() {
    let world = talked();
    let before = files(&world.folder);
    let other = "desk: [ Another answer. ]\n";
    world.write("other.yaml", other);
    for (args, code) in [
        (&["export", "last", "--out", "whole.jsonl"][..], 0),
        (
            &["export", "last", "--trajectories", "--out", "train.jsonl"],
            0,
        ),
        (&["export", "last", "--artifacts", "made"], 0),
        (&["test", "--record", "last", "--out", "recorded.yaml"], 0),
        (
            &[
                "rerun",
                "--where",
                "network = desk",
                "--report",
                "nightly",
                "--script-all",
                "other.yaml",
                "--set",
                "agents.desk.system=Otherwise.",
            ],
            8,
        ),
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(code), "{args:?} {ran:?}");
        clean(&format!("{args:?}"), format!("{ran:?}").as_bytes());
    }
    let ids: Vec<String> = world
        .json_lines(&["sessions", "--all"])
        .iter()
        .map(|s| s["session"].as_str().unwrap().to_owned())
        .collect();
    for how in [&[][..], &["--json"]] {
        let ran = world.run(&[&["diff", &ids[0], &ids[1]][..], how].concat());
        assert_eq!(ran.code, Some(8), "{ran:?}");
        clean("diff", format!("{ran:?}").as_bytes());
    }
    let mut looked = 0;
    for file in files(&world.folder) {
        let in_store = file.starts_with(world.folder.join(".steersman"));
        if before.contains(&file) || in_store {
            continue;
        }
        looked += 1;
        clean(&file.display().to_string(), &std::fs::read(&file).unwrap());
    }
    assert!(looked >= 8, "{looked} files");
}

/// Other sessions read memories, and do not know the secrets of this one. The test searches the bytes of the store.
#[test]
fn no_secret_is_remembered_in_clear() {
    let world = talked();
    let ran = world.run(&["memory", "show", "1", "--json"]);
    assert!(
        ran.out
            .contains("(secret), (secret), (secret) and (secret)"),
        "{ran:?}"
    );
    for n in ["1", "2"] {
        clean(
            "memory",
            world.run(&["memory", "show", n, "--json"]).out.as_bytes(),
        );
    }
    // The lines of the session hold its texts in clear. After an erasure nothing is left of them.
    let id = world.json_lines(&["sessions"])[0]["session"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(world.run(&["erase", &id, "--yes"]).code, Some(0));
    assert_eq!(world.run(&["memory", "--json"]).out.lines().count(), 2);
    for file in files(&world.folder.join(".steersman")) {
        clean(&file.display().to_string(), &std::fs::read(&file).unwrap());
    }
}

/// A secret that cannot be read or opened cannot be masked: the export warns of it.
#[test]
fn what_cannot_be_opened_here_is_told() {
    let mut world = talked();
    world.set("DESK_KEY", "");
    let ran = world.run(&["export", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.err.contains("secret `key` cannot be read here"),
        "{ran:?}"
    );
    let other = "0".repeat(64);
    world.set("STEERSMAN_KEY", &other);
    let ran = world.run(&["export", "last"]);
    assert!(
        ran.err.contains("sealed values need key ") && ran.err.contains(", which is not here"),
        "{ran:?}"
    );
}

/// `context` shows exactly what was sent, also a secret in a text: otherwise it could not be compared.
#[test]
fn a_context_is_what_was_sent_though_a_secret_was_said_in_it() {
    let world = talked();
    let (code, shown) = world.json(&["context", "last"]);
    assert_eq!((code, &shown["as_sent"]), (Some(0), &Json::Bool(true)));
    let segments = shown["segments"].to_string();
    assert!(segments.contains("Noted: PLANTED-password"), "{segments}");
    let ran = world.run(&["context", "last", "--why"]);
    assert!(ran.out.contains("reads state.note"), "{ran:?}");
}

/// A model may write a secret into the name of an artifact: logs and exports mask it there too.
#[test]
fn a_secret_in_the_name_of_an_artifact_is_in_no_file_and_no_log() {
    let mut world = World::new();
    world.set("TOKEN", "hunter2secret");
    world.write(
        "steersman.yaml",
        "name: desk
secrets: { token: { env: TOKEN } }
agents: { desk: { system: You write., tools: [artifacts] } }
",
    );
    world.write(
        "script.yaml",
        "desk:
  - call: [ { artifact_write: { name: hunter2secret.txt, content: one } }, { artifact_write: { name: (secret).txt, content: two } } ]
  - call: { artifact_write: { name: hunter2secret.txt, content: three } }
  - Done.
",
    );
    let run = ["run", "--script-all", "script.yaml", "--input", "Go."];
    assert_eq!(world.run(&run).code, Some(0));
    for args in [
        &["log", "last"][..],
        &["log", "last", "--json"],
        &["show", "last"],
        &["show", "last", "--json"],
        &["export", "last"],
        &["export", "last", "--artifacts", "made"],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(0), "{args:?} {ran:?}");
        assert!(!format!("{ran:?}").contains("hunter2"), "{args:?} {ran:?}");
    }
    let made = world.folder.join("made");
    let index = std::fs::read_to_string(made.join("index.json")).unwrap();
    assert!(!index.contains("hunter2"), "{index}");
    let index: Json = serde_json::from_str(&index).unwrap();
    let read = index.as_array().unwrap().iter().map(|row| {
        let file = row["file"].as_str().unwrap();
        assert!(!file.contains("hunter2"), "{row}");
        std::fs::read_to_string(made.join(file)).unwrap()
    });
    let mut read: Vec<String> = read.collect();
    read.sort();
    assert_eq!(read, ["one", "three", "two"]);
    // The content is found by the exact name and a line.
    let ran = world.run(&["artifacts", "last@-1", "hunter2secret.txt"]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "three"), "{ran:?}");
}
