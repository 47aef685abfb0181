//! Hostile requests to the built server: each is answered with a status, a code and a sentence, or its connection is closed; nothing waits
//! for ever; the memory of the process stays flat; and the session that all of them are about goes on as if nothing had been.
//!
//! `STEERSMAN_SERVE_HOSTILE=100` makes a long campaign: so many passes over the tables, more connections, and clients that are slow.

mod rows;

use crate::crash::count;
use crate::served::{Served, provider};
use crate::world::World;
use reqwest::Method;
use rows::{NO_REQUESTS, ROWS, Row};
use serde_json::{Value as Json, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const DESK: &str = "
steersman: 1
name: desk
tools:
  send_money:
    description: Sends money.
    parameters: { to: string, cents: integer }
    effect: unsafe
    approve: { when: args.cents > 10000, by: supervisor }
    command: [sh, -c, 'echo {{ args.to }} >> sent.txt']
agents:
  supervisor: { person: { role: supervisor } }
  desk: { system: You send money for the user., tools: [send_money] }
entry: desk
";

const SCRIPT: &str = "
desk:
  - call: { send_money: { to: anna, cents: 15000 } }
  - Sent.
";

/// Time in which an answer comes, or the connection is closed.
const PATIENCE: Duration = Duration::from_secs(30);
/// Number of bytes of a body that is far too large.
const FLOOD: usize = 100 << 20;

/// Writes a text so many times wherever it is wanted.
fn expanded(text: &str) -> String {
    let Some((before, rest)) = text.split_once("@{") else {
        return text.to_owned();
    };
    let (what, rest) = rest.split_once('*').unwrap();
    let (times, rest) = rest.split_once('}').unwrap();
    let times = times.parse().unwrap();
    format!("{before}{}{}", what.repeat(times), expanded(rest))
}

/// An answer.
#[derive(Debug)]
struct Got {
    status: u16,
    head: String,
    body: String,
    /// Everything that came on the connection.
    whole: String,
}

impl Got {
    /// The code of the problem; empty if there is none.
    fn code(&self) -> String {
        let json: Json = serde_json::from_str(&self.body).unwrap_or_default();
        match (&json["code"], &json["error"]["code"]) {
            (Json::String(code), _) | (_, Json::String(code)) => code.clone(),
            (_, Json::Number(code)) => code.to_string(),
            _ => String::new(),
        }
    }

    /// The sentence of the problem.
    fn sentence(&self) -> String {
        let json: Json = serde_json::from_str(&self.body).unwrap_or_default();
        let all = [&json["detail"], &json["error"]["message"]];
        all.iter().filter_map(|text| text.as_str()).collect()
    }
}

/// The server, and the session that all requests are about.
struct Attacked {
    served: Served,
    world: World,
    session: String,
    question: String,
}

impl Attacked {
    async fn begin() -> Self {
        provider();
        let world = World::new();
        world.write("steersman.yaml", DESK);
        world.write("script.yaml", SCRIPT);
        let served = Served::start(&world);
        let start = json!({ "definition": "desk", "message": "Send 150 to Anna." });
        let start = served.request(Method::POST, "/v1/sessions").json(&start);
        let asks: Json = start
            .header("prefer", "wait=30")
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        assert_eq!(asks["status"], "asks", "{asks:#}");
        let session = asks["session"].as_str().unwrap().to_owned();
        let path = format!("/v1/sessions/{session}/questions");
        let (_, found) = served.json(Method::GET, &path, None).await;
        let question = found["items"][0]["id"]
            .as_str()
            .unwrap()
            .replace('@', "%40");
        Self {
            served,
            world,
            session,
            question,
        }
    }

    /// A text with the names of this server in place of words in capitals.
    fn named(&self, text: &str) -> String {
        text.replace("{SESSION}", &self.session)
            .replace("{QUESTION}", &self.question)
            .replace("{TOKEN}", self.served.token())
    }

    /// The bytes of a row's request.
    fn bytes(&self, (head, body, ..): &Row) -> String {
        let (head, body) = (expanded(&self.named(head)), expanded(&self.named(body)));
        let mut lines = head.lines();
        let mut text = vec![format!("{} HTTP/1.1", lines.next().unwrap())];
        let own: Vec<&str> = lines.collect();
        let has = |name: &str| {
            let mut own = own.iter();
            own.any(|line| line.split(':').next().unwrap().trim_start_matches('-') == name)
        };
        let token = format!("Bearer {}", self.served.token());
        let len = body.len().to_string();
        for (name, value) in [
            ("host", "localhost"),
            ("authorization", &*token),
            ("content-type", "application/json"),
            ("content-length", &*len),
            ("connection", "close"),
        ] {
            if !has(name) {
                text.push(format!("{name}: {value}"));
            }
        }
        let sent = own.iter().filter(|line| !line.starts_with('-'));
        text.extend(sent.map(|line| (*line).to_owned()));
        format!("{}\r\n\r\n{body}", text.join("\r\n"))
    }

    fn connects(&self) -> TcpStream {
        let stream = TcpStream::connect(self.served.at.trim_start_matches("http://")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends some bytes, and reads until the server closes the connection.
    fn sends(&self, pieces: impl Iterator<Item = Vec<u8>> + Send + 'static) -> Got {
        let mut stream = self.connects();
        let mut writer = stream.try_clone().unwrap();
        let writing = std::thread::spawn(move || {
            // The server may have answered, and takes no more.
            for piece in pieces {
                if writer.write_all(&piece).is_err() {
                    return;
                }
            }
        });
        let mut got = Vec::new();
        // What came before a connection is reset is the answer.
        if let Err(error) = stream.read_to_end(&mut got) {
            let is_closed = error.kind() == std::io::ErrorKind::ConnectionReset;
            assert!(is_closed, "no answer within {PATIENCE:?}: {error}");
        }
        stream.shutdown(Shutdown::Both).ok();
        writing.join().unwrap();
        read(&got)
    }

    fn send(&self, text: &str) -> Got {
        self.sends(std::iter::once(text.as_bytes().to_vec()))
    }

    /// Sends all rows, and what is no request.
    fn pass(&self) {
        each(ROWS, |row| self.row(row));
        each(NO_REQUESTS, |(text, statuses)| {
            let got = self.send(&expanded(&self.named(text)));
            let shown: String = got.whole.chars().take(2_000).collect();
            let what: String = text.chars().take(120).collect();
            assert!(statuses.contains(&got.status), "{what}: {shown}");
        });
        std::thread::scope(|scope| {
            scope.spawn(|| self.smuggles());
            scope.spawn(|| self.floods());
            scope.spawn(|| self.pipelines());
        });
    }

    /// Sends a row, and checks its answer. An answer that says to come later is tried again.
    fn row(&self, row: &Row) {
        let (head, _, statuses, code) = row;
        let text = self.bytes(row);
        let mut got = self.send(&text);
        while got.status == 429 {
            got = self.send(&text);
        }
        let what: String = head.chars().take(120).collect();
        let shown: String = got.whole.chars().take(2_000).collect();
        assert!(statuses.contains(&got.status), "{what}: {shown}");
        assert_eq!(got.code(), *code, "{what}: {shown}");
        if !code.is_empty() {
            assert!(got.sentence().len() > 10, "{what}: {shown}");
        }
        assert!(!got.whole.contains("root:x:"), "{what}: {shown}");
        assert!(
            got.head.contains("x-content-type-options: nosniff"),
            "{what}: {shown}"
        );
        assert!(!got.head.contains("text/html"), "{what}: {shown}");
    }

    /// A request within the body of another one is not carried out.
    fn smuggles(&self) {
        let token = self.served.token();
        let hidden = format!(
            "POST /v1/sessions/{}/questions/{}/approve HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n",
            self.session, self.question
        );
        for lengths in [
            format!(
                "content-length: {}\r\ntransfer-encoding: chunked",
                hidden.len() + 5
            ),
            format!(
                "transfer-encoding: chunked\r\ncontent-length: {}",
                hidden.len() + 5
            ),
        ] {
            let text = format!(
                "POST /v1/check HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n{lengths}\r\n\r\n0\r\n\r\n{hidden}"
            );
            let got = self.send(&text);
            assert_eq!(got.whole.matches("HTTP/1.1 ").count(), 1, "{}", got.whole);
        }
    }

    /// Bodies that are far too large are answered, whatever is said of their length.
    fn floods(&self) {
        let token = self.served.token();
        let head = format!(
            "POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\nconnection: close\r\n"
        );
        let piece = vec![b'x'; 1 << 16];
        let declared = format!("{head}content-length: {FLOOD}\r\n\r\n").into_bytes();
        let pieces = std::iter::repeat_n(piece.clone(), FLOOD / piece.len());
        let got = self.sends(std::iter::once(declared).chain(pieces));
        assert_eq!(
            (got.status, &*got.code()),
            (413, "too_large"),
            "{}",
            got.whole
        );
        let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n").into_bytes();
        let chunk = [&b"10000\r\n"[..], &piece, b"\r\n"].concat();
        let chunks = std::iter::repeat_n(chunk, FLOOD / piece.len());
        let got = self.sends(std::iter::once(chunked).chain(chunks));
        assert_eq!(
            (got.status, &*got.code()),
            (413, "too_large"),
            "{}",
            got.whole
        );
        // A client that asks first is not told to go on.
        let asks = format!("{head}expect: 100-continue\r\ncontent-length: {FLOOD}\r\n\r\n");
        let got = self.send(&asks);
        assert_eq!(
            (got.status, &*got.code()),
            (413, "too_large"),
            "{}",
            got.whole
        );
    }

    /// Requests that come without waiting for answers are answered in order.
    fn pipelines(&self) {
        let one = "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(99);
        let last = "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        let got = self.send(&format!("{one}{last}"));
        assert_eq!(got.whole.matches("HTTP/1.1 200").count(), 100);
    }

    /// Clients that open a connection and say nothing, and clients that ask for much and read nothing, keep nobody else waiting.
    fn crowds(&self, connections: usize) {
        let before = self.resident();
        let idle: Vec<TcpStream> = (0..connections).map(|_| self.connects()).collect();
        let greedy: Vec<TcpStream> = (0..20)
            .map(|_| {
                let mut stream = self.connects();
                stream.set_nonblocking(true).unwrap();
                let ask = "GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(200);
                assert!(takes(&mut stream, ask.as_bytes()));
                stream
            })
            .collect();
        self.answers_others();
        let grown = self.resident().saturating_sub(before);
        let most = (connections * 32 + greedy.len() * 4_096) / 1_024 + 16;
        assert!(
            grown <= most as u64,
            "{grown} MiB for {connections} connections, and not {most}"
        );
        drop((idle, greedy));
        self.answers_others();
    }

    fn answers_others(&self) {
        let began = Instant::now();
        let got = self.send("GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        assert_eq!(got.status, 200, "{}", got.whole);
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?}",
            began.elapsed()
        );
    }

    /// Connections on which a head or a body comes too slowly, or whose answers are not read, are closed.
    fn waits_for_nobody(&self) {
        let token = self.served.token();
        let slow_head = "GET /livez HTTP/1.1\r\nhost: loc".to_owned();
        let slow_body = format!(
            "POST /v1/check HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
        );
        let unread = "GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1_000);
        let mut open: Vec<TcpStream> = Vec::new();
        for text in [slow_head, slow_body, unread] {
            for _ in 0..20 {
                let mut stream = self.connects();
                stream.set_nonblocking(true).unwrap();
                assert!(takes(&mut stream, text.as_bytes()));
                open.push(stream);
            }
        }
        let until = Instant::now() + Duration::from_secs(150);
        for mut stream in open {
            // A byte now and then changes nothing. What the server sent stays unread until it closes the connection.
            while takes(&mut stream, b" ") {
                assert!(Instant::now() < until, "a connection is still open");
                std::thread::sleep(Duration::from_secs(1));
            }
        }
    }

    /// Resident memory of the process, in MiB.
    fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    fn memory(&self, field: &str) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.served.pid())).unwrap();
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .unwrap();
        value
            .split_whitespace()
            .next()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            / 1_024
    }
}

/// Number of rows that are sent at once: some answers come only when the server has waited for the rest of a body.
const AT_ONCE: usize = 16;

/// Does something for each row of a table, for several at once.
fn each<T: Sync>(rows: &[T], act: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    act(row);
                }
            });
        }
    });
}

/// Sends bytes, as many as the connection takes now. Returns false if it is closed.
fn takes(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    match stream.write(bytes) {
        Ok(count) => count > 0,
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    }
}

/// Reads the first answer of what came on a connection.
fn read(got: &[u8]) -> Got {
    let whole = String::from_utf8_lossy(got).into_owned();
    let (head, body) = whole.split_once("\r\n\r\n").unwrap_or((&whole, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Got {
        status: status.unwrap_or(0),
        head: head.to_owned(),
        body: body.to_owned(),
        whole,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_requests_are_answered_and_change_nothing() {
    let mut attacked = Attacked::begin().await;
    let passes = count("STEERSMAN_SERVE_HOSTILE", 2);
    let is_long = passes > 2;
    attacked.pass();
    attacked.crowds(if is_long { 4_000 } else { 300 });
    let warm = attacked.resident();
    for _ in 1..passes {
        attacked.pass();
        attacked.crowds(if is_long { 4_000 } else { 300 });
    }
    if is_long {
        // Almost as many as the server has room for.
        attacked.crowds(9_900);
        attacked.waits_for_nobody();
    }
    let (now, peak) = (attacked.resident(), attacked.memory("VmHWM:"));
    println!(
        "{passes} passes: {warm} MiB after the first, {now} MiB after the last, at most {peak} MiB"
    );
    assert!(now <= warm + 32, "memory grew from {warm} to {now} MiB");
    assert!(peak <= warm + 256, "the peak was {peak} MiB");

    // The question is still open. It is approved once, and an approval that comes again changes nothing.
    let path = format!(
        "/v1/sessions/{}/questions/{}/approve",
        attacked.session, attacked.question
    );
    let body = json!({ "as": "supervisor" });
    let (status, answer) = attacked
        .served
        .json(Method::POST, &path, Some(body.clone()))
        .await;
    assert_eq!(status, 202, "{answer:#}");
    let events = format!("/v1/sessions/{}/events?until=settled", attacked.session);
    attacked
        .served
        .request(Method::GET, &events)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let (status, again) = attacked.served.json(Method::POST, &path, Some(body)).await;
    assert_eq!(
        (status.as_u16(), &again["code"]),
        (404, &json!("question")),
        "{again:#}"
    );
    attacked.served.stops();
    let sent = std::fs::read_to_string(attacked.world.folder.join("sent.txt")).unwrap();
    assert_eq!(sent, "anna\n");
    let verified = attacked.world.run(&["fsck"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}
