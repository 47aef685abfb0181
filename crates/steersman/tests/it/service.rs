//! The guide to embedding: its code is the example, and its requests and answers are those of a service in a process of
//! its own, which is killed and started again.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

#[expect(dead_code, reason = "its `main` is not called here")]
#[path = "../../examples/service.rs"]
mod desk;

const SCRIPT: &str = "
desk:
  - call: { refund: { order: \"4711\", cents: 3990 } }
  - Your 39.90 are on their way.
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn guide() -> String {
    std::fs::read_to_string(root().join("docs/guides/embedding.md")).unwrap()
}

/// The blocks of a page that have this fence.
pub(crate) fn blocks(page: &str, fence: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside: Option<(bool, String)> = None;
    for line in page.lines() {
        match (&mut inside, line.strip_prefix("```")) {
            (None, Some(kind)) => inside = Some((kind == fence, String::new())),
            (Some(_), Some(_)) => {
                let (wanted, text) = inside.take().unwrap();
                found.extend(wanted.then_some(text));
            }
            (Some((_, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

#[test]
fn the_guide_shows_the_whole_example() {
    let example = std::fs::read_to_string(root().join("crates/steersman/examples/service.rs"));
    assert_eq!(blocks(&guide(), "rust").join("\n"), example.unwrap());
    assert_eq!(blocks(&guide(), "yaml")[0], SCRIPT[1..]);
}

/// The guide to testing shows the definition, the tests and the Rust test that are in this folder.
#[test]
fn the_guide_to_testing_is_what_runs() {
    let guide = std::fs::read_to_string(root().join("docs/guides/testing.md")).unwrap();
    let here = |path: &str| {
        let path = root().join("crates/steersman/tests").join(path);
        std::fs::read_to_string(path).unwrap()
    };
    let definitions = blocks(&guide, "yaml");
    assert_eq!(definitions[0], here("payments/steersman.yaml"));
    assert_eq!(definitions[1], here("payments/tests/approvals.yaml"));
    let program = here("it/payments.rs").replace("tests/payments", "payments");
    assert_eq!(blocks(&guide, "rust"), [program]);
}

/// The other test starts this process as the service.
#[test]
#[ignore = "the service of `a_service_embeds_it`, in a process of its own"]
fn serves() {
    let var = |name: &str| std::env::var(name).unwrap();
    let (store, script) = (var("DESK_STORE"), var("DESK_SCRIPT"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let setup = steersman::Steersman::options().script_all_file(script);
        let steersman = setup.open(store).await.unwrap();
        let listener = tokio::net::TcpListener::bind(var("DESK_AT")).await.unwrap();
        std::fs::write(var("DESK_READY"), "").unwrap();
        desk::serve(steersman, listener).await.unwrap();
    });
}

struct Service {
    child: Child,
    at: SocketAddr,
}

impl Service {
    fn start(folder: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = free.local_addr().unwrap();
        drop(free);
        let ready = folder.join(format!("ready-{}", at.port()));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "service::serves"])
            .env("DESK_STORE", folder.join("refunds.db"))
            .env("DESK_SCRIPT", folder.join("script.yaml"))
            .env("DESK_AT", at.to_string())
            .env("DESK_READY", &ready)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !ready.exists() {
            assert!(child.try_wait().unwrap().is_none(), "it did not start");
            std::thread::yield_now();
        }
        Self { child, at }
    }

    /// Sends a request as it is written in the guide. Returns the status and the body.
    fn send(&self, request: &str) -> (u16, String) {
        let (mut answer, status) = self.open(request);
        let mut text = String::new();
        answer.read_to_string(&mut text).unwrap();
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, body.to_owned())
    }

    fn open(&self, request: &str) -> (BufReader<TcpStream>, u16) {
        let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
        let (first, headers) = head.split_once('\n').unwrap_or((head, ""));
        let mut text = format!(
            "{} HTTP/1.1\r\nhost: desk\r\nconnection: close\r\n",
            first.trim()
        );
        for header in headers.lines().filter(|line| !line.is_empty()) {
            text.push_str(header);
            text.push_str("\r\n");
        }
        let length = format!("content-length: {}\r\n\r\n", body.len());
        text.push_str(&length);
        text.push_str(body);
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = BufReader::new(stream);
        let mut first = String::new();
        answer.read_line(&mut first).unwrap();
        let status = first.split(' ').nth(1).and_then(|s| s.parse().ok());
        (answer, status.unwrap_or_else(|| panic!("{first}")))
    }

    /// Ids and data of the stored events after `from`, up to the first one for which `until` holds. Provisional events
    /// and the status of the session are left out, because each reader gets them again.
    fn events(
        &self,
        session: &str,
        from: Option<&str>,
        until: impl Fn(&Json) -> bool,
    ) -> Vec<(String, Json)> {
        let from = from.map_or(String::new(), |id| format!("last-event-id: {id}\n"));
        let (answer, status) = self.open(&format!("GET /sessions/{session}/events\n{from}"));
        assert_eq!(status, 200);
        let (mut events, mut id, mut data) = (Vec::new(), String::new(), None);
        for line in answer.lines() {
            let line = line.expect("the stream ended");
            if let Some(of) = line.strip_prefix("id: ") {
                of.clone_into(&mut id);
            }
            if let Some(text) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str::<Json>(text).unwrap());
            }
            // An id may come before or after its data, and an empty line ends both.
            if line.is_empty()
                && let Some(event) = data.take()
            {
                let (done, lasting) = (until(&event), event.get("line").is_some());
                if lasting {
                    events.push((std::mem::take(&mut id), event));
                }
                if done {
                    return events;
                }
            }
        }
        panic!("the stream ended: {events:?}");
    }

    /// Asks the service to stop, and waits until it ends by itself.
    fn leave(&mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

/// Kills the service.
impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn is(kind: &'static str) -> impl Fn(&Json) -> bool {
    move |event| event["event"] == kind
}

/// Replaces the values that differ from run to run with those in the guide.
fn shown(text: &str, session: &str) -> Json {
    let mut json: Json = serde_json::from_str(&text.replace(session, "SESSION")).unwrap();
    if let Some(list) = json.as_array_mut() {
        for entry in list {
            entry["since"] = "2026-11-25T12:00:00Z".into();
        }
    }
    json
}

#[test]
fn a_service_embeds_it() {
    let folder = std::env::temp_dir().join(format!("steersman-service-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("script.yaml"), SCRIPT).unwrap();
    let guide = guide();
    let yaml = blocks(&guide, "yaml");
    let [script, hooked] = &yaml[..] else {
        panic!("{} YAML blocks", yaml.len());
    };
    assert_eq!(script, SCRIPT.trim_start());
    let hooked = format!("steersman: 1\nname: desk\n{hooked}");
    let redact = steersman::hook("redact", 1).before_call(|_, _| Ok(()));
    let network = steersman::Network::from_yaml(hooked).hook(redact);
    network.build().unwrap();
    let (requests, answers) = (blocks(&guide, "http"), blocks(&guide, "json"));
    let mut answers = answers
        .iter()
        .map(|text| serde_json::from_str::<Json>(text).unwrap());
    let [begin, asked, wrong, right] = &requests[..] else {
        panic!("the guide sends four requests, not {}", requests.len());
    };

    // Two clients at once.
    let first = Service::start(&folder);
    let (sessions, before) = std::thread::scope(|scope| {
        let client = || {
            let (status, answer) = first.send(begin);
            assert_eq!(status, 201, "{answer}");
            let session = serde_json::from_str::<Json>(&answer).unwrap()["session"].clone();
            let session = session.as_str().unwrap().to_owned();
            let events = first.events(&session, None, is("asked"));
            (session, events)
        };
        let clients = [scope.spawn(client), scope.spawn(client)];
        let both = clients.map(|client| client.join().unwrap());
        let ids: Vec<String> = both.iter().map(|(id, _)| id.clone()).collect();
        (ids, both.map(|(_, events)| events))
    });
    assert_ne!(sessions[0], sessions[1]);
    let started = format!("{{ \"session\": \"{}\" }}", sessions[0]);
    assert_eq!(shown(&started, &sessions[0]), answers.next().unwrap());
    let (status, _) = first.send("GET /sessions/nobody/events");
    assert_eq!(status, 404);
    let (status, _) = first.send(&format!(
        "GET /sessions/{}/events\nlast-event-id: x",
        sessions[0]
    ));
    assert_eq!(status, 400);

    // The service was killed; another one starts on the same store.
    drop(first);
    let mut second = Service::start(&folder);
    let session = &sessions[0];
    let in_guide = |request: &str| request.replace("SESSION", session);
    let (status, answer) = second.send(&in_guide(asked));
    assert_eq!(status, 200);
    assert_eq!(shown(&answer, session), answers.next().unwrap());
    let (status, answer) = second.send(&in_guide(wrong));
    assert_eq!(status, 422);
    assert_eq!(shown(&answer, session), answers.next().unwrap());
    let (status, answer) = second.send(&in_guide(right));
    assert_eq!(status, 204, "{answer}");
    // From the position at which the stream was cut, the remaining events come, and each comes once.
    for (session, before) in sessions.iter().zip(&before) {
        let question = before.last().unwrap().1["question"].as_str().unwrap();
        if session != &sessions[0] {
            let decision = right.replace("SESSION", session);
            assert!(decision.contains(&format!("/{question}\n")), "{decision}");
            assert_eq!(second.send(&decision).0, 204);
        }
        let rest = second.events(session, Some(&before.last().unwrap().0), is("finished"));
        let whole = second.events(session, None, is("finished"));
        let ids: BTreeSet<&String> = whole.iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), whole.len());
        assert_eq!([&before[..], &rest[..]].concat(), whole);
        let done = whole.iter().filter(|(_, event)| event["event"] == "ended");
        assert_eq!(done.count(), 1);
        let said = whole.iter().rfind(|(_, event)| event["event"] == "said");
        assert_eq!(said.unwrap().1["text"], "Your 39.90 are on their way.");
    }
    let (_, again) = second.send(&in_guide(right));
    assert!(again.contains("error"), "decided twice: {again}");
    assert!(answers.next().is_none());

    // A service that is asked to stop ends cleanly, although a client reads events.
    let (_open, status) = second.open(&format!("GET /sessions/{session}/events"));
    assert_eq!(status, 200);
    second.leave();
    std::fs::remove_dir_all(&folder).unwrap();
}
