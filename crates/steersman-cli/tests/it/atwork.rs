//! Agents at work on a terminal: a row for each, which grows.

use crate::hostile::on_terminal_while;
use crate::world::World;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A lead that calls three agents at once.
const THREE: &str = "agents:
  lead: { system: You lead., tools: [ant, bee, cat] }
  ant: { description: Works., system: You are ant. }
  bee: { description: Works., system: You are bee. }
  cat: { description: Works., system: You are cat. }
entry: lead
";

/// The number of pictures that the test has seen on its screen. A wait for one ends after a minute, so that a failing test ends, too.
#[derive(Clone, Default)]
struct Seen(Arc<(Mutex<u8>, Condvar)>);

impl Seen {
    fn now(&self, stage: u8) {
        *self.0.0.lock().unwrap() = stage;
        self.0.1.notify_all();
    }
    fn wait(&self, stage: u8) {
        let at = self.0.0.lock().unwrap();
        let minute = Duration::from_mins(1);
        drop(
            self.0
                .1
                .wait_timeout_while(at, minute, |at| *at < stage)
                .unwrap(),
        );
    }
}

/// Answers a request of the model of [`THREE`]. The agents stop in the middle of their answers until the screen has shown them.
fn three(stream: TcpStream, seen: &Seen) {
    let mut reader = BufReader::new(&stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {
        let line = head.lines().last().unwrap_or_default().to_ascii_lowercase();
        if let Some(n) = line.strip_prefix("content-length:") {
            length = n.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    let mut to = &stream;
    if !head.starts_with("POST ") || !head.contains("/chat/completions ") {
        return to
            .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .unwrap();
    }
    to.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
    )
    .unwrap();
    let say = |delta: serde_json::Value, end: Option<&str>| {
        let piece = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": end }] });
        (&stream)
            .write_all(format!("data: {piece}\n\n").as_bytes())
            .unwrap();
    };
    let agent = ["ant", "bee", "cat"]
        .into_iter()
        .find(|name| body.contains(&format!("You are {name}.")));
    match agent {
        None if body.contains("tool_call_id") => {
            say(json!({ "content": "All work is done." }), Some("stop"));
        }
        None => {
            let calls = ["ant", "bee", "cat"]
                .iter()
                .enumerate()
                .map(|(index, name)| {
                    let function = json!({ "name": name, "arguments": "{\"message\": \"Work.\"}" });
                    json!({ "index": index, "id": name, "type": "function", "function": function })
                });
            say(
                json!({ "tool_calls": calls.collect::<Vec<_>>() }),
                Some("tool_calls"),
            );
        }
        Some(name) => {
            say(json!({ "content": format!("I {name} begin.") }), None);
            seen.wait(1);
            if name == "cat" {
                say(json!({ "content": " It grows".repeat(40) }), None);
                seen.wait(2);
            }
            say(json!({ "content": " The end." }), Some("stop"));
        }
    }
    to.write_all(b"data: [DONE]\n\n").unwrap();
}

/// On a terminal each agent at work has a row with its answer so far, and a single answer grows over several rows.
#[test]
fn agents_at_work_have_rows_that_grow_on_a_terminal() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Seen::default();
    let told = seen.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, told) = (stream.unwrap(), told.clone());
            std::thread::spawn(move || three(stream, &told));
        }
    });
    let models = format!(
        "models: {{ default: {{ provider: compatible, model: m, url: \"http://{address}/v1\" }} }}\n"
    );
    world.write("steersman.yaml", &format!("{models}{THREE}"));
    let mut process = on_terminal_while(&world, 80, "steersman run --input Work. </dev/null");
    let mut shown = String::new();
    let mut stages = [
        "  ant: I ant begin.\r\n  bee: I bee begin.\r\n  cat: I cat begin.",
        "\r\n  grows It grows",
    ]
    .into_iter()
    .zip(1..)
    .peekable();
    let mut screen = process.stdout.take().unwrap();
    let mut bytes = [0; 4096];
    loop {
        let n = screen.read(&mut bytes).unwrap();
        if n == 0 {
            break;
        }
        shown.push_str(&String::from_utf8_lossy(&bytes[..n]));
        while let Some((_, stage)) = stages.next_if(|(wanted, _)| shown.contains(wanted)) {
            seen.now(stage);
        }
    }
    assert!(process.wait().unwrap().success(), "{shown:?}");
    assert_eq!(stages.next(), None, "{shown:?}");
    assert!(shown.contains("All work is done."), "{shown:?}");
}
