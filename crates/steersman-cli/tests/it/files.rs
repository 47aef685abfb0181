//! Artifacts that come with a message or an event: stored, shown, refused, erased.

use crate::world::World;
use serde_json::{Value as Json, json};

const DESK: &str = r#"
steersman: 1
name: mail
events:
  mail_received:
    fields: { id: string, from: string, letter: artifact, more: { type: artifact, optional: true } }
    id: "{{ event.id }}"
    start: { agent: clerk, args: { from: "{{ event.from }}", letter: "{{ event.letter }}" } }
  scanned:
    fields: { case: string, page: artifact }
    id: "{{ event.case }}"
tools:
  stamp:
    description: Stamps a letter.
    parameters: { letter: artifact }
    effect: unsafe
    approve: { by: boss, show: [letter], ask: "Stamp {{ args.letter }}?" }
    command: [echo, stamped]
  scan:
    description: Waits for a page.
    parameters: { case: string }
    wait: { event: scanned, match: { case: "{{ args.case }}" }, timeout: 1h }
    result: "It is {{ result.page }}."
  either:
    description: Waits for a page or an hour.
    parameters: { case: string }
    wait:
      all:
        - { event: scanned, match: { case: "{{ args.case }}" } }
        - { event: scanned, match: { case: "{{ args.case }}-back" } }
agents:
  boss: { person: { role: boss } }
  clerk:
    parameters: { from: string, letter: artifact }
    system: "A letter from {{ args.from }} is {{ args.letter }}."
    tools: [artifacts, stamp]
  desk: { system: "Files: {{ message.artifacts | join(', ') }}", tools: [artifacts, scan, either] }
entry: [desk, clerk]
"#;

fn world(script: &str) -> World {
    let world = World::new();
    world.write("mail.yaml", DESK);
    world.write("script.yaml", script);
    world.write("in/letter.txt", "Dear all,\nplease pay.\n");
    world
}

fn send(world: &World, id: &str) -> (Option<i32>, Json) {
    let payload = json!({ "id": id, "from": "ann@example.org" }).to_string();
    world.json(&[
        "send",
        "mail.yaml",
        "--event",
        "mail_received",
        &payload,
        "--file",
        "letter=in/letter.txt",
        "--script-all",
        "script.yaml",
    ])
}

const READS: &str = r#"
clerk:
  - call: { artifact_read: { name: letter.txt } }
  - call: { stamp: { letter: other.txt } }
  - call: { stamp: { letter: letter.txt } }
  - "{{ request.last }}"
"#;

#[test]
fn an_event_brings_a_content_that_is_read_approved_and_there_once() {
    let world = world(READS);
    let (code, sent) = send(&world, "m1");
    assert_eq!(
        (code, &sent["status"]),
        (Some(0), &json!("started")),
        "{sent}"
    );
    assert_eq!(send(&world, "m1").1["status"], "known");
    let (code, _) = world.json(&["run", "--resume", "last"]);
    assert_eq!(code, Some(5));
    let told = world.run(&["show", "last"]);
    for part in [
        "letter.txt, text/plain, 22 B",
        "please pay.",
        "there is no artifac",
    ] {
        assert!(told.out.contains(part), "{part} in {}", told.out);
    }
    let (_, pending) = world.json(&["pending"]);
    assert!(pending.to_string().contains("letter.txt"), "{pending}");
    let (_, listed) = world.json(&["artifacts", "last"]);
    assert_eq!(
        (&listed["artifact"], &listed["call"], &listed["bytes"]),
        (&json!("letter.txt"), &Json::Null, &json!(22)),
        "{listed}"
    );
    let text = world.run(&["artifacts", "last", "letter.txt"]);
    assert_eq!(text.out, "Dear all,\nplease pay.\n");
    assert_eq!(world.json_lines(&["sessions"]).len(), 1);
    let (code, _) = world.json(&["approve", "last", "--as", "boss"]);
    assert_eq!(code, Some(0));
    assert_eq!(world.run(&["fsck"]).code, Some(0));
}

#[test]
fn what_comes_with_a_message_is_an_artifact_and_the_model_is_told() {
    let world = world(
        "desk:\n  - call: { artifact_read: { name: note.txt } }\n  - \"{{ request.last }}\"\n  - \"{{ request.last }}\"\n",
    );
    let ran = world.run(&[
        "run",
        "mail.yaml",
        "--script-all",
        "script.yaml",
        "--input",
        "Read it.",
        "--file",
        "note.txt=in/letter.txt",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("please pay."), "{ran:?}");
    let context = world.run(&["context", "last@artifact_read"]).out;
    for part in [
        "Files: note.txt",
        "[Attached: `note.txt` (text/plain, 22 bytes)]",
    ] {
        assert!(context.contains(part), "{part} in {context}");
    }
    world.write("in/letter.txt", "Another one.");
    let sent = world.run(&["send", "last", "--file", "note.txt=in/letter.txt"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let versions = world.json_lines(&["artifacts", "last"]);
    assert_eq!(versions.len(), 2, "{versions:?}");
    let first = world.run(&["artifacts", "last@1", "note.txt"]);
    assert_eq!(first.out, "Dear all,\nplease pay.\n");
    let newest = world.run(&["artifacts", "last", "note.txt"]);
    assert_eq!(newest.out, "Another one.");
}

#[test]
fn an_event_that_meets_a_wait_brings_its_content_along() {
    let world = world(
        "desk:\n  - call: { scan: { case: a } }\n  - call: { artifact_read: { name: letter.txt } }\n  - call: { either: { case: b } }\n  - call: { artifact_list: {} }\n  - \"{{ request.last }}\"\n",
    );
    let ran = world.run(&[
        "run",
        "mail.yaml",
        "--script-all",
        "script.yaml",
        "--input",
        "Go.",
    ]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    for (case, name) in [("a", "letter"), ("b", "front"), ("b-back", "back")] {
        world.write(&format!("in/{name}.txt"), &format!("the {name}\n"));
        let payload = json!({ "case": case }).to_string();
        let file = format!("page=in/{name}.txt");
        let args = [
            "send",
            "mail.yaml",
            "--event",
            "scanned",
            &payload,
            "--file",
            &file,
        ];
        assert_eq!(world.run(&args).code, Some(0));
        world.run(&["run", "--resume", "last"]);
    }
    let (_, shown) = world.json(&["show", "last"]);
    let answer = shown["answer"].as_str().unwrap();
    for name in ["letter.txt", "front.txt", "back.txt"] {
        assert!(answer.contains(name), "{name} in {answer}");
    }
    let told = world.run(&["show", "last"]).out;
    assert!(told.contains("scan = It is letter.txt."), "{told}");
    assert!(told.contains("the letter"), "{told}");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
    assert_eq!(world.json(&["gc"]).1["unnamed"], 0);
}

#[test]
fn what_is_no_content_is_refused_before_anything_is_stored() {
    let world = world(READS);
    world.run(&["sessions"]);
    let payload = |letter: Json| json!({ "id": "m", "from": "a", "letter": letter }).to_string();
    for (letter, why) in [
        (json!("letter.txt"), "must be an artifact"),
        (json!({ "name": "a" }), "must be an artifact"),
        (
            json!({ "name": "a", "text": "x", "base64": "eA==" }),
            "must be an artifact",
        ),
        (
            json!({ "name": "a", "base64": "not base64!" }),
            "is no base64",
        ),
        (
            json!({ "name": "a", "text": 7 }),
            "`letter.text` must be text",
        ),
        (
            json!({ "name": "../a", "text": "x" }),
            "is no name of an artifact",
        ),
        (
            json!({ "name": "/etc/passwd", "text": "x" }),
            "is no name of an artifact",
        ),
        (
            json!({ "name": "a\nb", "text": "x" }),
            "characters that are not seen",
        ),
        (json!({ "name": "a\\b", "text": "x" }), "parted by `/`"),
        (
            json!({ "name": "x".repeat(200), "text": "x" }),
            "128 bytes at most",
        ),
        (
            json!({ "name": "a", "text": "x", "media_type": "a/b\r\nX: y" }),
            "is no media type",
        ),
        (
            json!({ "name": "a", "text": "x", "size": 1 }),
            "is not declared",
        ),
    ] {
        let sent = world.run(&[
            "send",
            "mail.yaml",
            "--event",
            "mail_received",
            &payload(letter.clone()),
        ]);
        assert_eq!(sent.code, Some(2), "{letter}: {sent:?}");
        assert!(sent.err.contains(why), "{letter}: {}", sent.err);
    }
    let two = json!({
        "id": "m", "from": "a",
        "letter": { "name": "a", "text": "x" }, "more": { "name": "a", "text": "y" },
    });
    let sent = world.run(&[
        "send",
        "mail.yaml",
        "--event",
        "mail_received",
        &two.to_string(),
    ]);
    assert!(sent.err.contains("two artifacts"), "{sent:?}");
    for file in ["letter=in/none.txt", "letter", "letter=in"] {
        let sent = world.run(&[
            "send",
            "mail.yaml",
            "--event",
            "mail_received",
            "{}",
            "--file",
            file,
        ]);
        assert_eq!(sent.code, Some(2), "{file}: {sent:?}");
    }
    assert!(world.json_lines(&["sessions"]).is_empty());
    let (_, garbage) = world.json(&["gc"]);
    assert_eq!(garbage["unnamed"], 0, "{garbage}");
}

#[test]
fn erase_deletes_contents_that_no_other_session_holds() {
    let world = world(READS);
    send(&world, "m1");
    world.run(&["run", "--resume", "last"]);
    world.run(&["reject", "last", "--as", "boss"]);
    let (_, first) = world.json(&["show", "last"]);
    let first = first["session"].as_str().unwrap().to_owned();
    send(&world, "m2");
    world.run(&["run", "--resume", "last"]);
    world.run(&["reject", "last", "--as", "boss"]);
    let (_, second) = world.json(&["show", "last"]);
    let second = second["session"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    let told = world.run(&["erase", &first]);
    assert!(told.err.contains("and 1 content of artifacts"), "{told:?}");
    let (code, erased) = world.json(&["erase", &first, "--yes"]);
    assert_eq!(
        (code, &erased["artifacts"]),
        (Some(0), &json!(0)),
        "{erased}"
    );
    // The other session still has it.
    let text = world.run(&["artifacts", &second, "letter.txt"]);
    assert_eq!(text.out, "Dear all,\nplease pay.\n");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
    let (code, erased) = world.json(&["erase", &second, "--yes"]);
    assert_eq!(
        (code, &erased["artifacts"]),
        (Some(0), &json!(1)),
        "{erased}"
    );
    // It is gone, and `fsck` does not report that as damage.
    let gone = world.run(&["artifacts", &second, "letter.txt"]);
    assert_eq!(gone.code, Some(2), "{gone:?}");
    assert!(gone.err.contains("was erased"), "{gone:?}");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
    let store = std::fs::read(world.folder.join(".steersman/sessions.db")).unwrap();
    let is_there = store.windows(11).any(|bytes| bytes == b"please pay.");
    assert!(!is_there, "the content can still be read in the file");
}
