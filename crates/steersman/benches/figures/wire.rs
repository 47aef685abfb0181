//! A turn over real HTTP, compared with a bare loop with the same client and JSON parser, which has no sessions, agents
//! or log: it keeps a list of messages, sends it, reads the stream and puts the answer together.

use crate::measure::{Goal, Size, Table, Took, Watch, median, short};
use crate::store::file;
use crate::world::runtime;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use steersman::machine::stored::ids::Line;
use steersman::runtime::feed::FeedItem;
use steersman::{Network, Session, Steersman, Turn};

/// Exchanges that a request carries.
const VIEW: usize = 5;
const SYSTEM: &str = "You answer people who are in a hurry.";
const QUESTION: &str = "Is the lamp in the hall green today?";

/// A server in a separate process, so that its CPU time is not counted here.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(pieces: u64) -> Self {
        let program = std::env::current_exe().expect("this program has a file");
        let mut process = Command::new(program)
            .args(["--serve", &pieces.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut url = String::new();
        let out = process.stdout.take().expect("it is piped");
        BufReader::new(out)
            .read_line(&mut url)
            .expect("the server says where it is");
        Self {
            process,
            url: url.trim().to_owned(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Prints its address, and answers every request with so many pieces, each in a write of its own, until it is killed.
#[expect(clippy::print_stdout, reason = "whoever started it reads where it is")]
pub(crate) fn serve(pieces: u64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("it is bound");
    println!("http://{at}/v1");
    for stream in listener.incoming() {
        let stream = stream.expect("a connection");
        std::thread::spawn(move || converse(stream, pieces));
    }
}

fn converse(mut stream: TcpStream, pieces: u64) {
    stream.set_nodelay(true).expect("a socket");
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let frames = frames(pieces);
    loop {
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
                length = n.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        if stream.write_all(head.as_bytes()).is_err() {
            return;
        }
        for frame in &frames {
            let chunk = format!("{:x}\r\n{frame}\r\n", frame.len());
            if stream.write_all(chunk.as_bytes()).is_err() {
                return;
            }
        }
        if stream.write_all(b"0\r\n\r\n").is_err() {
            return;
        }
    }
}

fn frames(pieces: u64) -> Vec<String> {
    let frame = |delta: Json, finish: Option<&str>, usage: Json| {
        let frame = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "bench",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }], "usage": usage,
        });
        format!("data: {frame}\n\n")
    };
    let mut frames: Vec<String> = (0..pieces)
        .map(|_| frame(json!({ "content": "word " }), None, Json::Null))
        .collect();
    let usage =
        json!({ "prompt_tokens": 100, "completion_tokens": pieces, "total_tokens": 100 + pieces });
    frames.push(frame(json!({}), Some("stop"), usage));
    frames.push("data: [DONE]\n\n".to_owned());
    frames
}

/// The simplest loop that a person would write.
async fn bare(url: &str, turns: u64) -> Took {
    // The client needs a TLS provider, even without TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client");
    let url = format!("{url}/chat/completions");
    let mut messages: Vec<Json> = Vec::new();
    let watch = Watch::start();
    for _ in 0..turns {
        messages.push(json!({ "role": "user", "content": QUESTION }));
        let from = messages.len().saturating_sub(2 * VIEW + 1);
        let mut view = vec![json!({ "role": "system", "content": SYSTEM })];
        view.extend_from_slice(&messages[from..]);
        let body = json!({
            "model": "bench", "messages": view, "stream": true, "stream_options": { "include_usage": true },
        });
        let mut answer = client
            .post(&url)
            .json(&body)
            .send()
            .await
            .expect("an answer");
        let (mut text, mut rest, mut tokens) = (String::new(), Vec::new(), 0);
        while let Some(bytes) = answer.chunk().await.expect("a chunk") {
            rest.extend_from_slice(&bytes);
            while let Some(end) = rest.windows(2).position(|two| two == b"\n\n") {
                let frame: Vec<u8> = rest.drain(..end + 2).collect();
                let frame = std::str::from_utf8(&frame).expect("text").trim();
                let Some(data) = frame
                    .strip_prefix("data: ")
                    .filter(|data| *data != "[DONE]")
                else {
                    continue;
                };
                let data: Json = serde_json::from_str(data).expect("JSON");
                if let Some(piece) = data["choices"][0]["delta"]["content"].as_str() {
                    text.push_str(piece);
                }
                tokens += data["usage"]["completion_tokens"].as_u64().unwrap_or(0);
            }
        }
        assert!(tokens > 0 && !text.is_empty(), "an answer with its usage");
        messages.push(json!({ "role": "assistant", "content": text }));
    }
    watch.took()
}

fn network(url: &str) -> Network {
    let definition = format!(
        "
steersman: 1
name: wire
models: {{ default: {{ provider: compatible, url: \"{url}\", model: bench, calls: native }} }}
agents:
  main:
    system: {SYSTEM}
    limits: {{ model_calls: 100000000 }}
    context: {{ keep_exchanges: {VIEW} }}
limits: {{ tokens: 1000000000000, ticks: 100000000 }}
"
    );
    Network::from_yaml(definition)
        .build()
        .expect("the definition of the benchmark is right")
}

/// Runs one session while a task reads the pieces of its answers as they come.
async fn turns(steersman: &Steersman, url: &str, turns: u64) -> Took {
    let session = steersman.start(&network(url)).await.expect("it starts");
    let mut feed = session.feed(Line::NONE);
    let reader = tokio::spawn(async move {
        let mut text = String::new();
        while let Ok(item) = feed.next().await {
            match item {
                FeedItem::Delta { delta, .. } => {
                    let _ = write!(text, "{delta:?}");
                }
                FeedItem::Closed => break,
                _ => {}
            }
        }
        text.len()
    });
    let watch = Watch::start();
    for _ in 0..turns {
        answered(&session).await;
    }
    let took = watch.took();
    session.stop().await;
    assert!(reader.await.expect("it read") > 0, "pieces came");
    took
}

async fn answered(session: &Session) {
    let turn = session.ask(QUESTION).await.expect("it is driven");
    assert!(matches!(turn, Turn::Answer(_)), "{turn:?}");
}

/// The section of turns over HTTP.
pub(crate) fn report(table: &Table, size: Size) {
    for (pieces, goal) in [(200, Goal::AtMost(1.1)), (20, Goal::None)] {
        let server = Server::start(pieces);
        let count = size.of(300, 5);
        let mut all = Vec::new();
        for _ in 0..size.repeat {
            let bare = runtime().block_on(bare(&server.url, count));
            let memory = runtime().block_on(async {
                let steersman = Steersman::in_memory();
                turns(&steersman, &server.url, count).await
            });
            let disk = runtime().block_on(async {
                let steersman = Steersman::open(file("wire.db")).await.expect("it opens");
                turns(&steersman, &server.url, count).await
            });
            all.push((bare, memory, disk));
        }
        let mid = |of: fn(&(Took, Took, Took)) -> f64| median(all.iter().map(of));
        let per = |of: fn(&(Took, Took, Took)) -> f64| short(mid(of) * 1e6 / count as f64);
        let figure = |what: &str| format!("a turn over HTTP, {pieces} pieces streamed: {what}");
        let beside = format!("{} and {} us", per(|(_, m, _)| m.cpu), per(|(b, ..)| b.cpu));
        let ratio = mid(|(b, m, _)| m.cpu / b.cpu);
        table.row(
            &figure("CPU over a bare loop"),
            ratio,
            " times",
            goal,
            &beside,
        );
        let beside = format!(
            "{} and {} us",
            per(|(_, m, _)| m.clock),
            per(|(b, ..)| b.clock)
        );
        let ratio = mid(|(b, m, _)| m.clock / b.clock);
        table.row(
            &figure("time over a bare loop"),
            ratio,
            " times",
            goal,
            &beside,
        );
        let beside = format!(
            "{} us of CPU, {} us of time",
            per(|(_, _, d)| d.cpu),
            per(|(_, _, d)| d.clock)
        );
        let ratio = mid(|(b, _, d)| d.clock / b.clock);
        let figure = figure("time over a bare loop, on a disk");
        table.row(&figure, ratio, " times", Goal::None, &beside);
    }
}
