//! The clients of the measured server. They are a process of their own, so that its CPU is not the server's, and they do as little as
//! clients can: a request is the same bytes each time, and of an answer they read the length.

use crate::texts::user;
use serde_json::{Value as Json, json};
use std::error::Error;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Runs what the words say. Returns what the clients saw.
pub(crate) async fn run(words: &[&str]) -> Done<Json> {
    match *words {
        ["get", at, token, path, etag, connections, millis] => {
            let asked = Asked {
                at: at.to_owned(),
                request: get(token, path, etag),
                status: if etag.is_empty() { 200 } else { 304 },
            };
            gets(asked, connections.parse()?, millis.parse()?).await
        }
        ["say", at, token, sessions, rounds] => {
            says(at, token, sessions.parse()?, rounds.parse()?).await
        }
        ["idle", at, token, streams, millis] => {
            idles(at, token, streams.parse()?, millis.parse()?).await
        }
        ["follow", at, token, streams, millis] => {
            follows(at, token, streams.parse()?, millis.parse()?).await
        }
        _ => Err("the visitors get, say, idle or follow".into()),
    }
}

/// A request, and the status of its answer.
#[derive(Clone)]
struct Asked {
    at: String,
    request: Vec<u8>,
    status: u16,
}

fn get(token: &str, path: &str, etag: &str) -> Vec<u8> {
    let condition = if etag.is_empty() {
        String::new()
    } else {
        format!("if-none-match: {etag}\r\n")
    };
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n{condition}\r\n"
    );
    head.into_bytes()
}

fn post(token: &str, path: &str, more: &str, body: &Json) -> Vec<u8> {
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n{more}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    head.into_bytes()
}

/// A connection on which one request follows the other.
struct Visitor {
    stream: TcpStream,
    came: Vec<u8>,
}

impl Visitor {
    async fn open(at: &str) -> Done<Self> {
        let stream = TcpStream::connect(at).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            came: Vec::with_capacity(1 << 16),
        })
    }

    /// Sends a request, and reads its answer.
    async fn asks(&mut self, request: &[u8], status: u16) -> Done<()> {
        self.stream.write_all(request).await?;
        loop {
            if let Some((came, len)) = whole(&self.came) {
                if came != status {
                    let text = String::from_utf8_lossy(&self.came).into_owned();
                    return Err(format!("status {came} instead of {status}: {text}").into());
                }
                if self.came.len() >= len {
                    self.came.drain(..len);
                    return Ok(());
                }
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Done<()> {
        if self.stream.read_buf(&mut self.came).await? == 0 {
            return Err("the server closed the connection".into());
        }
        Ok(())
    }

    /// Opens a stream, and reads until its first event.
    async fn follows(&mut self, token: &str, path: &str) -> Done<()> {
        self.stream.write_all(&get(token, path, "")).await?;
        while memchr::memmem::find(&self.came, b"event: hello").is_none() {
            self.more().await?;
        }
        Ok(())
    }
}

/// Returns the status and the length of the first answer, once its head is there.
fn whole(came: &[u8]) -> Option<(u16, usize)> {
    let end = memchr::memmem::find(came, b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&came[..end]).ok()?;
    let status = head.get(9..12)?.parse().ok()?;
    let length = head.split_once("content-length: ");
    let length = length.and_then(|(_, rest)| rest.split('\r').next()?.parse::<usize>().ok());
    let length = if status == 304 {
        0
    } else {
        length.unwrap_or(0)
    };
    Some((status, end + length))
}

/// Sends the same request on so many connections for a time.
async fn gets(asked: Asked, connections: usize, millis: u64) -> Done<Json> {
    let began = Instant::now();
    let until = began + Duration::from_millis(millis);
    let visits = (0..connections).map(|_| {
        let asked = asked.clone();
        tokio::spawn(async move {
            let mut visitor = Visitor::open(&asked.at).await?;
            let mut took = Vec::new();
            while Instant::now() < until {
                let began = Instant::now();
                visitor.asks(&asked.request, asked.status).await?;
                took.push(began.elapsed());
            }
            Done::Ok(took)
        })
    });
    let mut all = Vec::new();
    for visit in visits.collect::<Vec<_>>() {
        all.extend(visit.await??);
    }
    Ok(told(all, began.elapsed()))
}

/// Says so many things to each of so many sessions, and waits for each answer.
async fn says(at: &str, token: &str, sessions: usize, rounds: usize) -> Done<Json> {
    let began = Instant::now();
    let visits = (0..sessions).map(|i| {
        let (at, token) = (at.to_owned(), token.to_owned());
        tokio::spawn(async move {
            let mut visitor = Visitor::open(&at).await?;
            let mut took = Vec::new();
            let path = format!("/v1/sessions/s{i}/messages");
            for round in 0..rounds {
                let body = json!({ "text": user(round) });
                let request = post(&token, &path, "prefer: wait=60\r\n", &body);
                let began = Instant::now();
                visitor.asks(&request, 200).await?;
                took.push(began.elapsed());
            }
            Done::Ok(took)
        })
    });
    let mut all = Vec::new();
    for visit in visits.collect::<Vec<_>>() {
        all.extend(visit.await??);
    }
    Ok(told(all, began.elapsed()))
}

/// Opens a stream of each of so many sessions. Returns the connections.
async fn opened(at: &str, token: &str, streams: usize) -> Done<Vec<Visitor>> {
    let mut open = Vec::with_capacity(streams);
    for i in 0..streams {
        let mut visitor = Visitor::open(at).await?;
        let path = format!("/v1/sessions/s{i}/events?from=now");
        visitor.follows(token, &path).await?;
        open.push(visitor);
    }
    Ok(open)
}

/// Keeps streams open on which nothing happens.
async fn idles(at: &str, token: &str, streams: usize, millis: u64) -> Done<Json> {
    let open = opened(at, token, streams).await?;
    tokio::time::sleep(Duration::from_millis(millis)).await;
    Ok(json!({ "streams": open.len() }))
}

/// Opens a stream of each session, says something to each, and tells for a time when each line came: the session, the line, and the time in
/// nanoseconds since 1970.
async fn follows(at: &str, token: &str, streams: usize, millis: u64) -> Done<Json> {
    let open = opened(at, token, streams).await?;
    let mut speaker = Visitor::open(at).await?;
    let until = Instant::now() + Duration::from_millis(millis);
    let readings = open.into_iter().enumerate().map(|(i, mut visitor)| {
        tokio::spawn(async move {
            let (mut seen, mut last) = (Vec::new(), String::new());
            visitor.came.clear();
            loop {
                let left = until.saturating_duration_since(Instant::now());
                match tokio::time::timeout(left, visitor.more()).await {
                    Err(_) => return Done::Ok(seen),
                    Ok(more) => more?,
                }
                let now = nanos();
                while let Some(end) = memchr::memmem::find(&visitor.came, b"\n\n") {
                    let frame = String::from_utf8_lossy(&visitor.came[..end]).into_owned();
                    visitor.came.drain(..end + 2);
                    let id = frame.lines().find_map(|line| line.strip_prefix("id: "));
                    let line = id.and_then(|id| id.split('.').next());
                    if let Some(line) = line.filter(|line| **line != last) {
                        line.clone_into(&mut last);
                        seen.push(json!([i, last.parse::<u64>()?, now]));
                    }
                }
            }
        })
    });
    let readings: Vec<_> = readings.collect();
    for i in 0..streams {
        let path = format!("/v1/sessions/s{i}/messages");
        let request = post(token, &path, "", &json!({ "text": user(i) }));
        speaker.asks(&request, 202).await?;
    }
    let mut seen: Vec<Json> = Vec::new();
    for reading in readings {
        seen.extend(reading.await??);
    }
    Ok(json!({ "seen": seen }))
}

/// Nanoseconds since 1970.
pub(crate) fn nanos() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or(Duration::ZERO).as_nanos() as u64
}

/// The figures of requests.
fn told(mut took: Vec<Duration>, whole: Duration) -> Json {
    took.sort_unstable();
    let at = |share: f64| {
        let nth = ((took.len() as f64 * share) as usize).min(took.len().saturating_sub(1));
        took.get(nth).map_or(0.0, |took| took.as_secs_f64() * 1e3)
    };
    json!({
        "requests": took.len(), "requests_per_s": took.len() as f64 / whole.as_secs_f64(),
        "p50_ms": at(0.5), "p99_ms": at(0.99),
    })
}
