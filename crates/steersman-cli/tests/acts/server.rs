//! A tool server with a journal of its own, which also serves the model. A call can be stalled before or after it is
//! performed, so that its caller can be killed at exactly that point.

use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A call of a tool that changes the world, as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) what: What,
    /// Its `Idempotency-Key`.
    pub(crate) key: Option<String>,
    pub(crate) performed: bool,
}

/// Tool and arguments of a call. Calls are equal if these are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct What {
    pub(crate) tool: String,
    pub(crate) to: String,
    pub(crate) cents: u64,
}

impl What {
    pub(crate) fn read(tool: &str, args: &Json) -> Option<Self> {
        Some(Self {
            tool: tool.to_owned(),
            to: args["to"].as_str()?.to_owned(),
            cents: args["cents"].as_u64()?,
        })
    }
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({}, {})", self.tool, self.to, self.cents)
    }
}

/// A point at which a call can be stalled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// The model was asked, and has not answered.
    Model,
    /// The tool server has the call, and has not performed it.
    Called,
    /// The tool server has performed the call, and has not answered.
    Performed,
    /// A probe has asked the tool server if a call was performed, and it has not answered.
    Probed,
}

/// A fault of the tool server at the next call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It answers with an error, and performs nothing.
    Refuses,
    /// It answers with an error, although it performed the call.
    Lies,
    /// It answers with a status that proves that nothing was performed.
    Denies,
}

/// The end of a stalled call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Fate {
    Goes,
    Dropped,
}

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    /// Idempotency keys of calls that were performed.
    keys: BTreeSet<String>,
    at_work: usize,
    arm: Option<(Point, u32)>,
    stalled: BTreeMap<u64, Option<Fate>>,
    next: u64,
    faults: VecDeque<Fault>,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Tool server and model in threads of this process.
pub(crate) struct Server {
    shared: Arc<Shared>,
    pub(crate) port: u16,
}

/// Upper bound of every wait here.
const LONG: Duration = Duration::from_secs(30);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::<Shared>::default();
        let known = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if known.lock().closed {
                    return;
                }
                let Ok(stream) = stream else { continue };
                // Counted here and not in the thread, so that `settle` knows of all connections before its own.
                known.lock().at_work += 1;
                let shared = known.clone();
                std::thread::spawn(move || {
                    let _ = serve(&shared, stream);
                    shared.lock().at_work -= 1;
                    shared.changed.notify_all();
                });
            }
        });
        Self { shared, port }
    }

    /// Stalls the next call that reaches this point, after so many others.
    pub(crate) fn arm(&self, point: Point, after: u32) {
        self.shared.lock().arm = Some((point, after));
    }

    pub(crate) fn disarm(&self) {
        self.shared.lock().arm = None;
    }

    /// Returns true if a call is stalled.
    pub(crate) fn is_stalled(&self) -> bool {
        !self.shared.lock().stalled.is_empty()
    }

    /// Lets stalled calls continue.
    pub(crate) fn release(&self) {
        self.end_stalls(Fate::Goes);
    }

    fn end_stalls(&self, fate: Fate) {
        let mut state = self.shared.lock();
        state.arm = None;
        for stalled in state.stalled.values_mut() {
            stalled.get_or_insert(fate);
        }
        self.shared.changed.notify_all();
    }

    pub(crate) fn fault(&self, fault: Fault) {
        self.shared.lock().faults.push_back(fault);
    }

    pub(crate) fn no_faults(&self) {
        self.shared.lock().faults.clear();
    }

    /// After a kill: drops stalled calls, and waits until all other requests of the process are handled.
    pub(crate) fn settle(&self) {
        self.end_stalls(Fate::Dropped);
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let _ = stream.write_all(b"GET /sync HTTP/1.1\r\n\r\n");
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
        }
        let begun = Instant::now();
        let mut state = self.shared.lock();
        while state.at_work > 0 && begun.elapsed() < LONG {
            let short = Duration::from_millis(20);
            state = self.shared.changed.wait_timeout(state, short).unwrap().0;
        }
    }

    /// The journal: all calls, in the order in which they arrived.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.shared.lock().calls.clone()
    }

    /// Returns the number of equal calls that were performed.
    pub(crate) fn performed(&self, what: &What) -> usize {
        let state = self.shared.lock();
        let same = state.calls.iter().filter(|call| call.what == *what);
        same.filter(|call| call.performed).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end_stalls(Fate::Dropped);
        self.shared.lock().closed = true;
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

/// Serves the only request of a connection.
fn serve(shared: &Shared, mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(LONG))?;
    let Some((head, body)) = read(&mut stream)? else {
        return Ok(());
    };
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let said = match path.split_once('?').unwrap_or((&path, "")) {
        ("/v1/chat/completions", _) => {
            if !stalls(shared, Point::Model) {
                return Ok(());
            }
            let asked = serde_json::from_slice(&body).unwrap_or_default();
            ("200 OK", "text/event-stream", crate::model::answer(&asked))
        }
        ("/big", _) => ("200 OK", "text/plain", "large ".repeat(8_000)),
        ("/done", query) => {
            if !stalls(shared, Point::Probed) {
                return Ok(());
            }
            let there = looked_up(shared, query);
            let found = json!({ "there": there }).to_string();
            ("200 OK", "application/json", found)
        }
        ("/sync", _) => ("200 OK", "text/plain", String::new()),
        (path, _) => match path.strip_prefix("/tool/") {
            Some(tool) => match perform(shared, tool, &head, &body) {
                Some((status, said)) => (status, "application/json", said),
                None => return Ok(()),
            },
            None => ("404 Not Found", "text/plain", String::new()),
        },
    };
    let (status, kind, body) = said;
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// A request: head and body. `None` if the peer closes before it has sent one.
fn read(stream: &mut TcpStream) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
            let length = header(&head, "content-length").and_then(|n| n.parse().ok());
            let wanted = at + 4 + length.unwrap_or(0);
            if bytes.len() >= wanted {
                return Ok(Some((head, bytes[at + 4..wanted].to_vec())));
            }
        }
        let n = stream.read(&mut piece)?;
        if n == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&piece[..n]);
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Stalls the call if this point is armed. False if the call is dropped, since its caller was killed.
fn stalls(shared: &Shared, point: Point) -> bool {
    let mut state = shared.lock();
    let Some((wanted, after)) = state.arm.filter(|(wanted, _)| *wanted == point) else {
        return true;
    };
    if after > 0 {
        state.arm = Some((wanted, after - 1));
        return true;
    }
    state.arm = None;
    let id = state.next;
    state.next += 1;
    state.stalled.insert(id, None);
    shared.changed.notify_all();
    let begun = Instant::now();
    loop {
        if let Some(fate) = state.stalled[&id] {
            state.stalled.remove(&id);
            return fate == Fate::Goes;
        }
        if begun.elapsed() > LONG {
            state.stalled.remove(&id);
            return false;
        }
        let short = Duration::from_millis(50);
        state = shared.changed.wait_timeout(state, short).unwrap().0;
    }
}

/// Performs a call of a tool. Returns status and body, or `None` if the connection is to break.
fn perform(shared: &Shared, tool: &str, head: &str, body: &[u8]) -> Option<(&'static str, String)> {
    let args: Json = serde_json::from_slice(body).unwrap_or_default();
    let Some(what) = What::read(tool, &args) else {
        let what = What {
            tool: tool.to_owned(),
            to: String::from_utf8_lossy(body).into_owned(),
            cents: 0,
        };
        shared.lock().calls.push(Call {
            what,
            key: None,
            performed: true,
        });
        return Some(("200 OK", "{}".to_owned()));
    };
    let key = header(head, "idempotency-key").map(str::to_owned);
    let number = {
        let mut state = shared.lock();
        state.calls.push(Call {
            what,
            key: key.clone(),
            performed: false,
        });
        state.calls.len() - 1
    };
    if !stalls(shared, Point::Called) {
        return None;
    }
    let fault = {
        let mut state = shared.lock();
        let fault = state.faults.pop_front();
        if !matches!(fault, Some(Fault::Refuses | Fault::Denies)) {
            let new = key.is_none_or(|key| state.keys.insert(key));
            state.calls[number].performed = new;
        }
        fault
    };
    if !stalls(shared, Point::Performed) {
        return None;
    }
    Some(match fault {
        Some(Fault::Denies) => ("409 Conflict", "{}".to_owned()),
        Some(Fault::Lies | Fault::Refuses) => ("500 Internal Server Error", "{}".to_owned()),
        None => ("200 OK", json!({ "ok": true }).to_string()),
    })
}

fn looked_up(shared: &Shared, query: &str) -> bool {
    let field = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let state = shared.lock();
    state.calls.iter().any(|call| {
        call.performed
            && Some(&*call.what.tool) == field("tool")
            && Some(&*call.what.to) == field("to")
            && field("cents").is_some_and(|cents| cents == call.what.cents.to_string())
    })
}
