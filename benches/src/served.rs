//! The server next to what its parts would cost alone: a bare handler that sends the same bytes, and the library without HTTP. The clients
//! are another process (`visitors.rs`), so the CPU of this one is the server's.

use crate::bare::client;
use crate::meter::{self, Meter, Reading, short};
use crate::ours::{Stub, USUAL, is_answered, network};
use crate::texts::user;
use crate::visitors::{self, nanos};
use crate::{fresh_folder, scale};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use steersman::machine::stored::commit::LogLine;
use steersman::machine::stored::ids::Name;
use steersman::machine::stored::outcome::{Answer, Failure};
use steersman::runtime::Boxed;
use steersman::runtime::model::{Model, ModelCall, Sink};
use steersman::runtime::store::SessionId;
use steersman::runtime::tap::Tap;
use steersman::{Network, Setup, StartOptions, Steersman};
use steersman_server::{Limits, NewToken, Options, Permission, Server, make_token, serve};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

type Done<T> = Result<T, Box<dyn Error>>;

/// Connections that send requests at once.
const CONNECTIONS: usize = 64;
/// Pieces into which a comparison is cut. They alternate.
const PIECES: usize = 5;
/// Milliseconds of a piece.
const PIECE: usize = 3_000;
/// Lines of the session whose page is asked for.
const LINES: usize = 1_000;
/// Model turns after which that session answers.
const TURNS: usize = 100;
/// Messages to each session.
const ROUNDS: usize = 100;
/// Idle streams.
const STREAMS: usize = 1_000;
/// Sessions at work that are followed, the time for which they are, and the time that a model takes, both in milliseconds.
const RUNNING: (usize, usize, u64) = (200, 10_000, 500);
/// Sessions of the store over which a server starts.
const PARKED: usize = 10_000;
/// Starts of which the median counts.
const STARTS: usize = 9;

/// Measures a part of the server; a `share` of 10 does a tenth of the work. Each case is a result of its own.
pub(crate) async fn run(what: &str, share: usize, program: &str) -> Done<Json> {
    let folder = fresh_folder()?;
    let cases = match what {
        "pages" => pages(share, &folder).await,
        "messages" => messages(share, &folder).await,
        "streams" => streams(share, &folder).await,
        "lines" => lines(share, &folder).await,
        "ready" => ready(share, &folder, program).await,
        other => Err(format!("the server has no figure `{other}`").into()),
    };
    std::fs::remove_dir_all(&folder)?;
    Ok(json!({ "cases": cases? }))
}

/// A share of a number, at least one.
fn part(whole: usize, share: usize) -> usize {
    (whole / share).max(1)
}

/// A running server.
struct Served {
    server: Server,
    steersman: Steersman,
    at: String,
    token: String,
}

impl Served {
    /// Starts a server without limits of rate.
    async fn open(steersman: Steersman, network: &Network) -> Done<Self> {
        let options = Options {
            definitions: vec![network.clone()],
            limits: Limits {
                rate: u32::MAX,
                burst: u32::MAX,
                at_once: usize::MAX,
                streams_each: usize::MAX,
                ..Limits::default()
            },
            ..Options::default()
        };
        let server = Server::new(steersman.clone(), options);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let at = listener.local_addr()?.to_string();
        let (serving, driving) = (server.clone(), server.clone());
        tokio::spawn(async move { serve(&serving, listener, Duration::ZERO).await });
        tokio::spawn(async move { driving.drive(|_| {}).await });
        let engine = steersman.engine();
        let new = NewToken {
            allows: Permission::ALL.to_vec(),
            ..NewToken::default()
        };
        let made = make_token(&**engine.store(), engine.clock().now(), new).await?;
        Ok(Self {
            server,
            steersman,
            at,
            token: made.0,
        })
    }

    /// Ends the server, and closes its store.
    async fn ends(self) {
        self.server.stop();
        self.steersman.stop().await;
    }

    /// Makes sessions in which nothing was said.
    async fn begins(&self, network: &Network, count: usize) -> Done<()> {
        for i in 0..count {
            let options = StartOptions {
                id: Some(format!("s{i}").into()),
                ..StartOptions::default()
            };
            self.steersman.create(network, options).await?;
        }
        Ok(())
    }
}

/// Lets the visitors do what these words say, and measures this process meanwhile.
async fn visited(words: &[&str]) -> Done<(Json, Reading)> {
    if cfg!(test) {
        // The program of the tests has no visitors.
        let meter = Meter::start();
        let saw = visitors::run(words).await.map_err(|e| e.to_string())?;
        return Ok((saw, meter.read()));
    }
    let meter = Meter::start();
    let mut command = tokio::process::Command::new(std::env::current_exe()?);
    let out = command.arg("visit").args(words).stderr(Stdio::inherit());
    let out = out.output().await?;
    let reading = meter.read();
    if !out.status.success() {
        return Err(format!("the visitors ended with {}", out.status).into());
    }
    Ok((serde_json::from_slice(&out.stdout)?, reading))
}

/// The figures of requests, with the CPU of this process.
fn case(w: &str, case: &str, saw: &Json, reading: Reading) -> Json {
    let of = |key: &str| short(saw[key].as_f64().unwrap_or_default());
    json!({
        "w": w, "case": case, "requests_per_s": of("requests_per_s"), "p50_ms": of("p50_ms"), "p99_ms": of("p99_ms"),
        "cpu_us": short(reading.cpu * 1e6 / of("requests").max(1.0)),
    })
}

/// A page of a session of many lines, whole and unchanged, and a bare handler that sends the same.
async fn pages(share: usize, folder: &Path) -> Done<Vec<Json>> {
    let model = Stub {
        turns: TURNS,
        fan: 0,
    };
    let network = network("", TURNS, 0, USUAL)?;
    let setup = Steersman::options().model("default", model);
    let steersman = setup.open(folder.join("store.db")).await?;
    let options = StartOptions {
        id: Some("s0".into()),
        ..StartOptions::default()
    };
    let session = steersman.start_with(&network, options).await?;
    while steersman.engine().store().head("s0").await?.0 < part(LINES, share) as u64 {
        is_answered(&session.ask(&user(0)).await?)?;
    }
    session.stop().await;
    let served = Served::open(steersman, &network).await?;
    let path = "/v1/sessions/s0";
    let page = client()?.get(format!("http://{}{path}", served.at));
    let page = page.bearer_auth(&served.token).send().await?;
    let etag = page.headers()["etag"].to_str()?.to_owned();
    let bare = bare(page).await?;
    let (connections, millis) = (CONNECTIONS.to_string(), part(PIECE, share).to_string());
    let mut cases = Vec::new();
    for piece in 0..=PIECES {
        for (name, etag) in [("unchanged (304)", &*etag), ("whole (200)", "")] {
            let mut rates = Vec::new();
            for (who, at) in [("bare handler", &bare), ("steersman", &served.at)] {
                let token = served.token.as_str();
                let words = ["get", at.as_str(), token, path, etag, &connections, &millis];
                let (saw, reading) = visited(&words).await?;
                let mut case = case("pages", &format!("{who}, {name}"), &saw, reading);
                rates.push(case["requests_per_s"].as_f64().unwrap_or_default());
                if let [bare, own] = rates[..] {
                    case["of_bare"] = short(own / bare).into();
                }
                // In the first piece everything becomes warm.
                if piece > 0 {
                    cases.push(case);
                }
            }
        }
    }
    Ok(cases)
}

/// The answer of the bare handler.
struct Same {
    headers: HeaderMap,
    body: String,
}

/// Starts a handler that sends the headers and the body of a page, or 304 if the client has it. Returns its address.
async fn bare(page: reqwest::Response) -> Done<String> {
    let mut headers = page.headers().clone();
    for of_the_connection in ["content-length", "date"] {
        headers.remove(of_the_connection);
    }
    let body = page.text().await?;
    let same = Arc::new(Same { headers, body });
    let router = Router::new().route("/v1/sessions/{session}", get(sends));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = listener.local_addr()?.to_string();
    let router = router.with_state(same);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(at)
}

async fn sends(State(same): State<Arc<Same>>, asked: HeaderMap) -> (StatusCode, HeaderMap, String) {
    let headers = same.headers.clone();
    if asked.get("if-none-match") == same.headers.get("etag") {
        return (StatusCode::NOT_MODIFIED, headers, String::new());
    }
    (StatusCode::OK, headers, same.body.clone())
}

/// Messages over HTTP and to the library, in memory and on disk.
async fn messages(share: usize, folder: &Path) -> Done<Vec<Json>> {
    let network = network("", 1, 0, USUAL)?;
    let setup = || Steersman::options().model("default", Stub { turns: 1, fan: 0 });
    let rounds = part(ROUNDS, share);
    let mut cases = Vec::new();
    for piece in 0..PIECES {
        for is_on_disk in [false, true] {
            let store = if is_on_disk { "on disk" } else { "in memory" };
            let open = async |name: &str| -> Done<Steersman> {
                if is_on_disk {
                    let file = folder.join(format!("{name}-{piece}.db"));
                    return Ok(setup().open(file).await?);
                }
                Ok(setup().in_memory())
            };
            let served = Served::open(open("served").await?, &network).await?;
            served.begins(&network, CONNECTIONS).await?;
            let (sessions, each) = (CONNECTIONS.to_string(), rounds.to_string());
            let words = ["say", &*served.at, &*served.token, &*sessions, &*each];
            let (saw, reading) = visited(&words).await?;
            let name = format!("over HTTP, {store}");
            cases.push(case("messages", &name, &saw, reading));
            served.ends().await;

            let alone = open("alone").await?;
            let (saw, reading) = library(&alone, &network, rounds).await?;
            let name = format!("the library, {store}");
            cases.push(case("messages", &name, &saw, reading));
            alone.stop().await;
        }
    }
    Ok(cases)
}

/// Says as much to as many sessions of the library.
async fn library(steersman: &Steersman, network: &Network, rounds: usize) -> Done<(Json, Reading)> {
    let meter = Meter::start();
    let sessions = (0..CONNECTIONS).map(|i| {
        let (steersman, network) = (steersman.clone(), network.clone());
        tokio::spawn(async move {
            let options = StartOptions {
                id: Some(format!("s{i}").into()),
                ..StartOptions::default()
            };
            let session = steersman.start_with(&network, options).await?;
            for round in 0..rounds {
                let _ = session.ask(&user(round)).await?;
            }
            Ok::<_, steersman::Error>(())
        })
    });
    for session in sessions.collect::<Vec<_>>() {
        session.await??;
    }
    let reading = meter.read();
    let requests = (CONNECTIONS * rounds) as f64;
    let saw = json!({ "requests": requests, "requests_per_s": requests / reading.wall });
    Ok((saw, reading))
}

/// Memory of streams on which nothing happens, each of a session of its own.
async fn streams(share: usize, folder: &Path) -> Done<Vec<Json>> {
    let network = network("", 1, 0, USUAL)?;
    let setup = Steersman::options().model("default", Stub { turns: 1, fan: 0 });
    let steersman = setup.open(folder.join("store.db")).await?;
    let served = Served::open(steersman, &network).await?;
    let count = part(STREAMS, share);
    served.begins(&network, count).await?;
    let (streams, millis) = (count.to_string(), part(PIECE, share).to_string());
    let before = meter::resident_mib();
    let words = ["idle", &*served.at, &*served.token, &*streams, &*millis];
    let mut visit = Box::pin(visited(&words));
    let mut most = before;
    loop {
        let pause = tokio::time::sleep(Duration::from_millis(20));
        tokio::select! {
            visited = &mut visit => {
                visited?;
                break;
            }
            () = pause => most = most.max(meter::resident_mib()),
        }
    }
    Ok(vec![json!({
        "w": "streams", "case": "idle streams", "streams": count,
        "kib_each": short((most - before) * 1_024.0 / count as f64),
    })])
}

/// A model that takes its time.
#[derive(Clone)]
struct Slow(Stub);

impl Model for Slow {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(RUNNING.2)).await;
            self.0.call(call, sink, cancel).await
        })
    }

    fn label(&self) -> Name {
        "slow".into()
    }
}

/// The times at which lines were on disk, by session and line.
#[derive(Default)]
struct OnDisk(Mutex<HashMap<(SessionId, u64), u64>>);

impl Tap for OnDisk {
    fn line(&self, session: &SessionId, line: &Arc<LogLine>, _took: u64) {
        let now = nanos();
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.insert((session.clone(), line.n.0), now);
    }
}

/// The time from a line on disk to the client, while many sessions are at work.
async fn lines(share: usize, folder: &Path) -> Done<Vec<Json>> {
    let forever = Stub {
        turns: usize::MAX,
        fan: 0,
    };
    let network = network("", usize::MAX, 0, USUAL)?;
    let on_disk: Arc<OnDisk> = Arc::default();
    let setup: Setup = Steersman::options().model("default", Slow(forever));
    let setup = setup.tap(on_disk.clone());
    let steersman = setup.open(folder.join("store.db")).await?;
    let served = Served::open(steersman, &network).await?;
    let count = part(RUNNING.0, share);
    served.begins(&network, count).await?;
    let (streams, millis) = (
        count.to_string(),
        part(RUNNING.1, share).max(2_000).to_string(),
    );
    let words = ["follow", &*served.at, &*served.token, &*streams, &*millis];
    let (saw, reading) = visited(&words).await?;
    let on_disk = on_disk.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut took: Vec<f64> = Vec::new();
    for seen in saw["seen"].as_array().into_iter().flatten() {
        let session: SessionId = format!("s{}", seen[0]).into();
        let line = seen[1].as_u64().unwrap_or_default();
        if let Some(written) = on_disk.get(&(session, line)) {
            let came = seen[2].as_u64().unwrap_or_default();
            took.push(came.saturating_sub(*written) as f64 / 1e6);
        }
    }
    if took.is_empty() {
        return Err("no line came".into());
    }
    took.sort_by(f64::total_cmp);
    let at = |share: f64| short(took[((took.len() as f64 * share) as usize).min(took.len() - 1)]);
    Ok(vec![json!({
        "w": "lines", "case": "line on disk to client", "sessions": count, "lines": took.len(),
        "lines_per_s": short(took.len() as f64 / reading.wall), "p50_ms": at(0.5), "p99_ms": at(0.99), "most_ms": at(1.0),
        "cpu_share": short(reading.cpu / reading.wall),
    })])
}

/// The time from the start of the program to its readiness, over a store with many parked sessions.
async fn ready(share: usize, folder: &Path, program: &str) -> Done<Vec<Json>> {
    let count = part(PARKED, share).max(10);
    scale::run("parked", count, folder).await?;
    let mut cases = Vec::new();
    for _ in 0..STARTS {
        let began = Instant::now();
        let args = [
            "serve",
            "--json",
            "--quiet",
            "--listen",
            "127.0.0.1:0",
            "--store",
            "parked.db",
        ];
        let mut child = Command::new(program)
            .args(args)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let mut first = String::new();
        let out = child.stdout.take().ok_or("its output is piped")?;
        BufReader::new(out).read_line(&mut first)?;
        let told: Json = serde_json::from_str(&first)?;
        let at = told["address"].as_str().unwrap_or_default();
        while !is_ready(at.trim_start_matches("http://"))? {}
        let took = began.elapsed();
        child.kill()?;
        child.wait()?;
        cases.push(json!({
            "w": "ready", "case": format!("{count} sessions"), "ready_ms": short(took.as_secs_f64() * 1e3),
        }));
    }
    Ok(cases)
}

/// Returns true if a server says that it is ready.
fn is_ready(at: &str) -> Done<bool> {
    let mut stream = std::net::TcpStream::connect(at)?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.starts_with("HTTP/1.1 200"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn each_figure_of_the_server_is_measured() -> Done<()> {
        for (what, key) in [
            ("pages", "requests_per_s"),
            ("messages", "requests_per_s"),
            ("streams", "streams"),
            ("lines", "p99_ms"),
        ] {
            let figures = run(what, 50, "").await?;
            let cases = figures["cases"].as_array().ok_or("no cases")?;
            assert!(!cases.is_empty());
            for case in cases {
                assert!(case[key].as_f64() > Some(0.0), "{case}");
            }
        }
        assert!(run("nothing", 1, "").await.is_err());
        Ok(())
    }
}
