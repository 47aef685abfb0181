//! Files that come with messages, on their way to a model: a server in this process records the requests.

use crate::killed::{answer, chats};
use crate::world::World;
use serde_json::{Value as Json, json};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Far more than a step of a test needs.
const PATIENCE: Duration = Duration::from_mins(1);

/// The beginning of a PNG, and bytes that are no text.
const CAT: &[u8] = b"\x89PNG\r\n\x1a\n\x00\xff cat";
/// The same in base64.
const CAT_BASE64: &str = "iVBORw0KGgoA/yBjYXQ=";

/// A model's server. It tells what it is asked, and does not answer the first `silent` questions.
struct Eye {
    address: String,
    asked: Receiver<Vec<u8>>,
}

impl Eye {
    fn new(silent: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (tell, asked): (Sender<Vec<u8>>, _) = channel();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for (stream, body) in chats(&listener) {
                if tell.send(body).is_err() {
                    return;
                }
                if open.len() < silent {
                    // The connection stays open, and nothing is said on it.
                    open.push(stream);
                    continue;
                }
                let said = json!({ "role": "assistant", "content": "A cat." });
                let choice = json!({ "index": 0, "message": said, "finish_reason": "stop" });
                let usage = json!({ "prompt_tokens": 9, "completion_tokens": 2 });
                let told = json!({ "choices": [choice], "usage": usage }).to_string();
                answer(stream, &told);
            }
        });
        Self { address, asked }
    }

    /// The body of the next request.
    fn next(&self) -> Vec<u8> {
        self.asked.recv_timeout(PATIENCE).expect("it is asked")
    }

    /// The content of the last message of the next request.
    fn last(&self) -> Json {
        let body: Json = serde_json::from_slice(&self.next()).unwrap();
        let messages = body["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].clone()
    }

    /// A folder with a picture, and a desk whose model is here and takes this.
    fn world(&self, takes: &str) -> World {
        let world = World::new();
        let url = format!("http://{}/v1", self.address);
        world.write(
            "steersman.yaml",
            &format!(
                "models: {{ default: {{ provider: compatible, url: \"{url}\", model: eye, takes: {takes} }} }}\nagents: {{ desk: {{ system: You look. }} }}\n"
            ),
        );
        std::fs::write(world.folder.join("cat.png"), CAT).unwrap();
        world
    }
}

const BEGINS: [&str; 6] = ["run", ".", "--input", "What is this?", "--file", "cat.png"];

/// The message as every model reads it.
const SAID: &str = "What is this?\n[Attached: `cat.png` (image/png, 14 bytes)]";

/// The request of the last answered model call, with its parts.
fn context(world: &World) -> Json {
    let (code, context) = world.json(&["context", "last"]);
    assert_eq!(code, Some(0), "{context}");
    context
}

/// The files in a context.
fn files(context: &Json) -> Vec<Json> {
    let segments = context["segments"].as_array().unwrap().iter();
    let files = segments.filter_map(|segment| segment["content"].get("File"));
    files.cloned().collect()
}

#[test]
fn a_picture_reaches_the_model_and_a_killed_process_asks_with_the_same_bytes() {
    let eye = Eye::new(1);
    let world = eye.world("image");
    let mut first = world
        .command(&BEGINS)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let before = eye.next();
    first.kill().unwrap();
    first.wait().unwrap();
    let resumed = world.run(&["run", "--resume", "last"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.out.contains("A cat."), "{resumed:?}");
    let after = eye.next();
    assert_eq!(before, after);
    let sent: Json = serde_json::from_slice(&after).unwrap();
    let url = format!("data:image/png;base64,{CAT_BASE64}");
    assert_eq!(
        sent["messages"][1]["content"],
        json!([
            { "type": "text", "text": SAID },
            { "type": "image_url", "image_url": { "url": url } },
        ])
    );

    // The context names the picture, and its bytes come out as they went in.
    let seen = context(&world);
    assert_eq!(seen["as_sent"], true, "{seen}");
    let file = &files(&seen)[0];
    let digest = blake3::hash(CAT).to_hex().to_string();
    assert_eq!(
        *file,
        json!({ "artifact": "cat.png", "media_type": "image/png", "bytes": CAT.len(), "blake3": digest })
    );
    let shown = world.run(&["context", "last"]);
    let short = format!("blake3:{}", &digest[..16]);
    assert!(
        shown
            .out
            .contains(&format!("cat.png  image/png, 14 bytes, {short}")),
        "{shown:?}"
    );
    assert!(shown.err.contains(&short), "{shown:?}");
    let saved = world.run(&["artifacts", "last", &short, "--save", "out.png"]);
    assert_eq!(saved.code, Some(0), "{saved:?}");
    assert_eq!(std::fs::read(world.folder.join("out.png")).unwrap(), CAT);
    let unknown = world.run(&["artifacts", "last", "blake3:0000"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(
        unknown.err.contains("there is no artifact `blake3:0000`"),
        "{unknown:?}"
    );

    // A trace has the part, and not the content.
    let traced = world.run(&["export", "last", "--form", "otlp", "--trace-content"]);
    assert!(
        traced.out.contains(&format!("blake3:{digest}")),
        "{traced:?}"
    );
    assert!(!traced.out.contains(CAT_BASE64), "{traced:?}");

    // What follows is appended, and the picture is sent again.
    let sent = world.run(&["send", "last", "Sure?"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let next: Json = serde_json::from_slice(&eye.next()).unwrap();
    let (next, before) = (next["messages"].as_array().unwrap(), &sent_messages(&after));
    assert_eq!(&next[..before.len()], &before[..]);
    assert_eq!(next.len(), before.len() + 2);

    // A rerun is asked the same.
    let first = world.json_lines(&["sessions"])[0]["session"].clone();
    let digest = context(&world)["digest"].clone();
    let again = world.run(&["rerun", "last"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(context(&world)["digest"], digest);

    // What is erased is not shown, and nobody gets it.
    let erased = world.run(&["erase", first.as_str().unwrap(), "--yes"]);
    assert_eq!(erased.code, Some(0), "{erased:?}");
    let sessions = world.json_lines(&["sessions", "--all"]);
    for session in &sessions {
        let id = session["session"].as_str().unwrap();
        let (_, seen) = world.json(&["context", id]);
        assert!(files(&seen).is_empty(), "{seen}");
    }
}

fn sent_messages(body: &[u8]) -> Vec<Json> {
    let body: Json = serde_json::from_slice(body).unwrap();
    body["messages"].as_array().unwrap().clone()
}

#[test]
fn a_model_that_takes_no_picture_is_told_what_the_definition_says() {
    let eye = Eye::new(0);
    for (takes, told) in [
        ("[]", String::new()),
        ("pdf", String::new()),
        (
            "{ kinds: pdf, instead: \"You cannot see `{{ name }}`.\" }",
            "\n\nYou cannot see `cat.png`.".to_owned(),
        ),
        (
            "{ kinds: image, largest: 8B }",
            "\n\n[`cat.png` is not shown: it has 14 bytes, and files of at most 8 are taken.]"
                .to_owned(),
        ),
    ] {
        let world = eye.world(takes);
        let ran = world.run(&BEGINS);
        assert_eq!(ran.code, Some(0), "{takes}: {ran:?}");
        assert_eq!(eye.last(), json!(format!("{SAID}{told}")), "{takes}");
        assert!(files(&context(&world)).is_empty(), "{takes}");
    }
}
