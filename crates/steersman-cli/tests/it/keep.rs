//! Maintenance of a store: `fsck`, `backup`, `gc`, `erase`, `doctor`, `completions`; and `run --all`.

use crate::world::World;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const DESK: &str = r#"name: desk
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, command: [echo, "it is {{ args.what }}"] }
agents:
  desk: { system: You settle., tools: [look] }
"#;
const PLANTED: &str = "planted-4711";

fn desk() -> World {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write(
        "script.yaml",
        "desk: [ { call: { look: { what: planted-4711 } } }, Seen planted-4711., more ]\n",
    );
    let input = format!("What is {PLANTED}?");
    let ran = world.run(&["run", "--input", &input, "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    world
}

fn holds(world: &World, file: &str, what: &str) -> bool {
    let folder = world.folder.join(file);
    let bytes = std::fs::read(folder).unwrap_or_default();
    bytes.windows(what.len()).any(|w| w == what.as_bytes())
}

#[test]
fn a_backup_is_whole_holds_no_key_and_replaces_nothing() {
    let world = desk();
    world.write("copy.db.part", "somebody's");
    let (code, told) = world.json(&["backup", "copy.db"]);
    assert_eq!(code, Some(0), "{told}");
    let again = world.run(&["backup", "copy.db"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    let nowhere = world.run(&["backup", "no/where/copy.db"]);
    assert_eq!(nowhere.code, Some(4), "{nowhere:?}");
    let files = std::fs::read_dir(&world.folder).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let parts: Vec<String> = names.filter(|name| name.contains(".part")).collect();
    assert_eq!(parts, ["copy.db.part"]);
    assert!(holds(&world, "copy.db.part", "somebody's"));
    let fsck = world.run(&["fsck", "--store", "copy.db"]);
    assert_eq!(fsck.code, Some(0), "{fsck:?}");
    let (_, here) = world.json(&["show", "last"]);
    let (_, there) = world.json(&["show", "last", "--store", "copy.db"]);
    assert_eq!(here["agents"], there["agents"]);
    let key = std::fs::read_to_string(world.folder.join(".steersman/key")).unwrap();
    assert!(!holds(&world, "copy.db", key.trim()));
}

#[test]
fn a_damaged_line_is_named_with_what_to_do() {
    let world = desk();
    assert_eq!(world.run(&["fsck"]).code, Some(0));
    assert_eq!(world.run(&["fsck", "last"]).code, Some(0));
    assert_eq!(world.run(&["fsck", "nobody"]).code, Some(2));
    let path = world.folder.join(".steersman/sessions.db");
    let mut bytes = std::fs::read(&path).unwrap();
    // The answer is in its line, and in the list of sessions with their last texts.
    let said = bytes.windows(5).enumerate();
    let said: Vec<usize> = said
        .filter(|(_, w)| w == b"Seen ")
        .map(|(at, _)| at)
        .collect();
    assert!(!said.is_empty());
    for at in said {
        bytes[at] = b'B';
    }
    std::fs::write(&path, bytes).unwrap();
    let ran = world.run(&["fsck"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.out.contains("line 4"), "{ran:?}");
    assert!(ran.out.contains("cannot be driven: branch"), "{ran:?}");
    assert!(
        ran.err.contains("restore the store from a backup"),
        "{ran:?}"
    );
    let document = &world.json_lines(&["fsck"])[0];
    assert_eq!(document["clean"], false);
}

/// A log whose end was cut off verifies. `fsck` notices the loss by a message that a missing line took from the inbox.
#[test]
fn a_log_that_was_cut_off_is_noticed_where_something_names_what_is_gone() {
    let world = desk();
    let ran = world.run(&["send", "last", "And now?", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let path = world.folder.join(".steersman/sessions.db");
    let store = rusqlite::Connection::open(path).unwrap();
    let cut = "DELETE FROM line WHERE (key & 0xfffffff) >= 100";
    assert!(store.execute(cut, []).unwrap() > 0);
    drop(store);
    let ran = world.run(&["fsck"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(
        ran.out
            .contains("1 message was taken by a line that is missing"),
        "{ran:?}"
    );
}

#[test]
fn what_is_erased_is_in_no_file_and_everything_verifies() {
    let world = desk();
    let (code, told) = world.json(&["erase", "last"]);
    assert_eq!((code, &told["erased"]), (Some(0), &false.into()));
    assert!(
        holds(&world, ".steersman/sessions.db", PLANTED),
        "only told"
    );
    let line = world.run(&["erase", "last@2", "--yes"]);
    assert_eq!(line.code, Some(0), "{line:?}");
    let shown = world.run(&["show", "last"]);
    assert!(shown.out.contains("look([erased])"), "{shown:?}");
    assert!(
        shown.out.contains(&format!("What is {PLANTED}?")),
        "{shown:?}"
    );
    let (code, told) = world.json(&["erase", "last", "--yes"]);
    assert_eq!((code, &told["verifies"]), (Some(0), &true.into()), "{told}");
    for file in ["sessions.db", "sessions.db-wal"] {
        assert!(
            !holds(&world, &format!(".steersman/{file}"), PLANTED),
            "{file}"
        );
    }
    assert_eq!(world.run(&["fsck"]).code, Some(0));
    // The session can go on.
    let ran = world.run(&["send", "last", "Hello?", "--script-all", "script.yaml"]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "more"), "{ran:?}");
}

#[test]
fn what_is_open_is_not_erased() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk\nagents: { desk: { system: You ask., tools: [ask] } }\n",
    );
    world.write(
        "script.yaml",
        "desk: [ { call: { ask: { question: Which? } } }, So. ]\n",
    );
    let ran = world.run(&["run", "--input", "Go.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    for args in [
        &["erase", "last", "--yes"][..],
        &["erase", "last@1", "--yes"],
        &["erase", "last:main"],
        &["erase", "last@99"],
        &["erase", "last@ask"],
        &["erase", "last", "--effect", "ask"],
        &["erase", "last", "--effect", "9.9"],
        &["erase", "last@1", "--effect", "2.1"],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(2), "{args:?} {ran:?}");
        assert!(ran.err.contains("hint:"), "{args:?} {ran:?}");
    }
    let shown = world.run(&["show", "last"]);
    assert!(shown.out.contains("Which?"), "{shown:?}");
}

#[test]
fn only_what_nothing_names_is_collected() {
    let world = desk();
    let (code, told) = world.json(&["gc"]);
    assert_eq!((code, &told["unnamed"]), (Some(0), &0.into()), "{told}");
    assert_eq!(told["named"], 1, "the definition");
    // A long text is stored next to the log. After an erasure nothing names it.
    let long = "long ".repeat(8_000);
    let ran = world.run(&["send", "last", &long, "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(world.json(&["gc"]).1["named"], 2);
    assert_eq!(world.run(&["erase", "last", "--yes"]).code, Some(0));
    assert_eq!(world.json(&["gc"]).1["unnamed"], 1);
    let (code, told) = world.json(&["gc", "--yes"]);
    assert_eq!((code, &told["deleted"]), (Some(0), &true.into()), "{told}");
    assert!(!holds(&world, ".steersman/sessions.db", "long long long"));
    let (_, told) = world.json(&["gc"]);
    assert_eq!((&told["unnamed"], &told["named"]), (&0.into(), &1.into()));
    assert_eq!(world.run(&["show", "last"]).code, Some(0));
    let none = world.run(&["gc", "--store", "none.db"]);
    assert_eq!(none.code, Some(2), "{none:?}");
}

#[test]
fn the_doctor_says_what_is_there_and_never_what_a_key_is() {
    let mut world = desk();
    world.set("ANTHROPIC_API_KEY", "sk-secret-4711");
    // An address where no server listens.
    world.set("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/v1");
    let ran = world.run(&["doctor"]);
    assert!(!ran.out.contains("sk-secret-4711"), "{ran:?}");
    assert!(ran.out.contains("ANTHROPIC_API_KEY is set"), "{ran:?}");
    assert!(ran.out.contains("OPENAI_API_KEY is not set"), "{ran:?}");
    for document in world.json_lines(&["doctor"]) {
        assert!(document["about"].is_string() && document["health"].is_string());
    }
    world.write(".steersman/key", "not a key");
    let ran = world.run(&["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(world.run(&["doctor", "nowhere"]).code, Some(2));
}

#[test]
fn shells_complete_every_command() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = world.run(&["completions", shell]);
        assert_eq!(ran.code, Some(0), "{shell}");
        for command in ["fork", "rewind", "migrate"] {
            assert!(ran.out.contains(command), "{shell} {command}");
        }
    }
    assert_eq!(world.run(&["completions", "dos"]).code, Some(2));
}

/// Without a usable key, sessions can be looked at, but not driven.
#[test]
fn a_store_without_its_key_can_be_looked_at() {
    let world = desk();
    world.write(".steersman/key", "damaged");
    for args in [
        &["show", "last"][..],
        &["sessions"],
        &["log", "last"],
        &["effects", "last"],
        &["pending"],
        &["context", "last@look"],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(0), "{args:?} {ran:?}");
    }
    assert_eq!(world.run(&["send", "last", "Hello."]).code, Some(4));
}

const WAITS: &str = r#"name: desk
events: { answer: { fields: { ticket: string, text: string }, id: "{{ event.ticket }}" } }
tools:
  await_answer:
    description: Waits.
    parameters: { ticket: string }
    wait: { event: answer, match: { ticket: "{{ args.ticket }}" }, timeout: 4h, on_timeout: No answer came. }
    result: "{{ result.text }}"
agents: { desk: { system: You wait., tools: [await_answer] } }
"#;

/// One process drives all sessions: it takes an event, and time-outs by a clock in a file.
#[test]
fn one_process_drives_every_session_of_the_store() {
    let world = World::new();
    world.write("steersman.yaml", WAITS);
    world.write("clock", "1767614400000");
    for ticket in ["T-1", "T-2", "T-3"] {
        world.write(
            "script.yaml",
            &format!("desk: [ {{ call: {{ await_answer: {{ ticket: {ticket} }} }} }}, \"It says {{{{ request.last }}}}\", Heard. ]\n"),
        );
        let ran = world.run(&[
            "run",
            "--input",
            "Wait.",
            "--script-all",
            "script.yaml",
            "--clock",
            "clock",
        ]);
        assert_eq!(ran.code, Some(5), "{ran:?}");
    }
    let mut all = world
        .command(&[
            "run",
            "--all",
            "--clock",
            "clock",
            "--script-all",
            "script.yaml",
            "--json",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(all.stdout.take().unwrap()).lines();
    let mut next =
        || -> serde_json::Value { serde_json::from_str(&told.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["status"], "driving");
    let event = |ticket: &str| {
        let payload = format!("{{\"ticket\": \"{ticket}\", \"text\": \"yes\"}}");
        let ran = world.run(&[
            "send", ".", "--event", "answer", &payload, "--clock", "clock",
        ]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    event("T-2");
    let woken = next();
    assert_eq!(woken["answer"], "It says yes", "{woken}");
    let statuses = || {
        let all = world.json_lines(&["sessions"]);
        let mut all: Vec<String> = all.iter().map(|s| s["status"].to_string()).collect();
        all.sort();
        all.join(" ")
    };
    assert_eq!(statuses(), "\"answered\" \"waits\" \"waits\"");
    // Four hours later.
    world.write("clock", "1767628800001");
    let (one, other) = (next(), next());
    for late in [one, other] {
        assert_eq!(late["answer"], "It says No answer came.", "{late}");
    }
    interrupt(all.id());
    assert_eq!(next()["status"], "interrupted");
    assert_eq!(all.wait().unwrap().code(), Some(130));
    assert_eq!(statuses(), "\"answered\" \"answered\" \"answered\"");
}

fn interrupt(process: u32) {
    let killed = std::process::Command::new("kill")
        .args(["-INT", &process.to_string()])
        .status();
    assert!(killed.unwrap().success());
}

/// `main` rests and could be erased, but a live branch starts at its line 3 and waits for an answer.
#[test]
fn what_a_live_branch_needs_is_not_erased() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r#"name: desk
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, command: [echo, "it is {{ args.what }}"] }
agents: { desk: { system: You ask., tools: [look, ask] } }
"#,
    );
    world.write(
        "script.yaml",
        "desk: [ { call: { look: { what: kettle } } }, Seen. ]\ndesk@other: [ { call: { ask: { question: Which? } } }, So. ]\n",
    );
    let run = |args: &[&str]| world.run(&[args, &["--script-all", "script.yaml"]].concat());
    assert_eq!(run(&["run", "--input", "What is it?"]).code, Some(0));
    let forked = run(&["fork", "last@3", "--say", "And else?", "--label", "other"]);
    assert_eq!(forked.code, Some(5), "{forked:?}");
    for args in [
        &["erase", "last", "--yes"][..],
        &["erase", "last@2", "--yes"],
        &["erase", "last@1", "--yes"],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(2), "{args:?} {ran:?}");
    }
    let shown = world.run(&["context", "last:other"]);
    assert!(shown.out.contains("it is kettle"), "{shown:?}");
    let answered = run(&["answer", "last", "the red one"]);
    let goes_on = answered.code == Some(0) && answered.err.contains("  So.\n");
    assert!(goes_on, "{answered:?}");
    // Nothing is open any more.
    let erased = world.run(&["erase", "last", "--yes"]);
    assert_eq!(erased.code, Some(0), "{erased:?}");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
}

/// The index data of a session follow from its log: `fsck` compares them.
#[test]
fn what_is_kept_beside_a_log_is_compared_with_it() {
    let world = World::new();
    world.write("steersman.yaml", WAITS);
    world.write(
        "script.yaml",
        "desk: [ { call: { await_answer: { ticket: T-1 } } }, Heard. ]\n",
    );
    let ran = world.run(&["run", "--input", "Wait.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
    let path = world.folder.join(".steersman/sessions.db");
    let copy = world.folder.join("whole.db");
    for (change, told) in [
        (
            "UPDATE seat SET wants = NULL",
            "and nothing wakes the session then",
        ),
        (
            "UPDATE seat SET wants = wants + 1",
            "and the session is wanted only at 2",
        ),
        (
            "UPDATE seat SET place = 'nowhere'",
            "it is found as waiting for nowhere, and does not wait for it",
        ),
        (
            "INSERT INTO wait SELECT no, 999 << 20, network, event, fields, key FROM wait",
            "a wait names line 999",
        ),
        (
            "DELETE FROM wait",
            "waits for the event `answer` with {\"ticket\":\"T-1\"}, and is not found by it",
        ),
        (
            "UPDATE wait SET key = replace(key, 'T-1', 'T-2')",
            "is found by the event `answer` with {\"ticket\":\"T-2\"}, and does not wait for it",
        ),
        (
            "UPDATE session SET status = 'answered'",
            "lists show it as `answered`, and it is `waits`",
        ),
        (
            "UPDATE session SET definition = 'abcdef'",
            "lists show the definition abcdef, and it is bound to",
        ),
        (
            "INSERT INTO label VALUES (1, 'vendor', 'Acme')",
            "lists show the label `vendor`, which no line gives it",
        ),
        ("DELETE FROM accepted", "their ids would be accepted again"),
    ] {
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .unwrap();
        drop(conn);
        std::fs::copy(&path, &copy).unwrap();
        rusqlite::Connection::open(&path)
            .unwrap()
            .execute_batch(change)
            .unwrap();
        let found = world.run(&["fsck"]);
        assert_eq!(found.code, Some(4), "{change}: {found:?}");
        let said = found.out.clone() + &found.err;
        assert!(said.contains(told), "{change}: {said}");
        for beside in ["-wal", "-shm"] {
            let _ =
                std::fs::remove_file(world.folder.join(format!(".steersman/sessions.db{beside}")));
        }
        std::fs::copy(&copy, &path).unwrap();
    }
    assert_eq!(world.run(&["fsck"]).code, Some(0));
}

/// A damaged message in an inbox is reported by commands that look at the session or drive it. It stays there, and
/// delays no other message.
#[test]
fn a_damaged_message_is_named_and_holds_up_nothing_else() {
    let world = desk();
    world.write(
        "heard.yaml",
        "desk: [ a, b, \"{{ request.last }}\", more ]\n",
    );
    for text in ["the first one", "the second one"] {
        let sent = world.run(&["send", "last", text, "--no-run"]);
        assert_eq!(sent.code, Some(0), "{sent:?}");
    }
    let path = world.folder.join(".steersman/sessions.db");
    let store = rusqlite::Connection::open(path).unwrap();
    let first = "SELECT seq, id, bytes FROM inbox ORDER BY seq LIMIT 1";
    let (seq, id, mut bytes): (i64, String, Vec<u8>) = store
        .query_row(first, [], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))
        .unwrap();
    bytes[4] ^= 1;
    let change = "UPDATE inbox SET bytes = ?2 WHERE seq = ?1";
    store
        .execute(change, rusqlite::params![seq, bytes])
        .unwrap();
    drop(store);
    let told = format!("inbox message `{id}` is damaged and not heard");
    let fsck = world.run(&["fsck"]);
    assert_eq!(fsck.code, Some(4), "{fsck:?}");
    assert!(fsck.out.contains(&told), "{fsck:?}");
    let run = ["run", "--resume", "last", "--script-all", "heard.yaml"];
    let driven = world.run(&run);
    assert_eq!(driven.code, Some(0), "{driven:?}");
    assert!(driven.out.contains("the second one"), "{driven:?}");
    assert!(driven.err.contains(&told), "{driven:?}");
    for args in [&["pending"][..], &["show", "last"], &["fsck"]] {
        let ran = world.run(args);
        assert!(ran.out.contains(&told), "{args:?} {ran:?}");
    }
    let listed = world.json_lines(&["pending"]);
    let lies: Vec<_> = listed.iter().filter(|d| d["kind"] == "inbox").collect();
    assert_eq!(lies.len(), 1, "{listed:?}");
    assert_eq!(
        (&lies[0]["what"], &lies[0]["message"]),
        (&"damaged".into(), &id.into())
    );
}

/// `fsck` finds missing lines, also the last one of a branch, sessions without lines, and lines without a session.
#[test]
fn what_lines_name_and_whose_they_are_is_looked_at() {
    let world = desk();
    world.write(
        "script.yaml",
        "desk: [ x, x, One., Two., Three. ]\ndesk@aside: [ Four., Five., Six. ]\n",
    );
    let run = |args: &[&str]| {
        let ran = world.run(&[args, &["--script-all", "script.yaml"]].concat());
        assert_eq!(ran.code, Some(0), "{args:?} {ran:?}");
    };
    run(&["fork", "last", "--label", "aside", "--say", "Begin."]);
    run(&["send", "last:aside", "And here?", "--no-run"]);
    run(&["send", "last", "And there?", "--no-run"]);
    run(&["run", "--resume", "last"]);
    // The last line of the branch that ended first: no other line of this branch follows it.
    let mut last = std::collections::BTreeMap::new();
    for line in world.lines("last") {
        last.insert(line["branch"].to_string(), line["line"].as_u64().unwrap());
    }
    let leaf = last.values().min().unwrap();
    let cut = format!("DELETE FROM line WHERE key = (1 << 28) + {leaf}");
    let missing = format!("line {leaf}: it is missing");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
    let path = world.folder.join(".steersman/sessions.db");
    let flush = "PRAGMA wal_checkpoint(TRUNCATE)";
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch(flush).unwrap();
    drop(conn);
    let whole = std::fs::read(&path).unwrap();
    for (change, told) in [
        (&*cut, &*missing),
        (
            "UPDATE session SET no = 2",
            "its lines are missing: lists show it as `answered`",
        ),
        (
            "UPDATE session SET no = 2",
            "lines of a log of session number 1, which is missing",
        ),
        (
            "DELETE FROM session",
            "lines of a log of session number 1, which is missing",
        ),
        ("DELETE FROM line", "its lines are missing"),
    ] {
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.execute_batch(&format!("{change}; {flush}")).unwrap();
        drop(conn);
        let found = world.run(&["fsck"]);
        assert_eq!(found.code, Some(4), "{change}: {found:?}");
        let said = found.out.clone() + &found.err;
        assert!(said.contains(told), "{change}: {said}");
        std::fs::write(&path, &whole).unwrap();
    }
    assert_eq!(world.run(&["fsck"]).code, Some(0));
}
