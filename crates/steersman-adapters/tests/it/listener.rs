//! A server on the loopback that records requests and replays scripted wire frames, with cuts and stalls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One part of a reply.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    /// Sends these bytes at once.
    Bytes(Vec<u8>),
    /// Sends nothing more, and keeps the connection open.
    Stall,
    /// Closes the connection.
    Cut,
}

/// The frames of a reply, in order.
#[derive(Clone, Debug)]
pub(crate) struct Reply(pub(crate) Vec<Frame>);

impl Reply {
    /// A whole response.
    pub(crate) fn with(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut head = format!(
            "HTTP/1.1 {status} Status\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head += &[name, ": ", value, "\r\n"].concat();
        }
        head.push_str("\r\n");
        Self(vec![Frame::Bytes([head.as_bytes(), body].concat())])
    }

    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::with(status, &[("content-type", "application/json")], body)
    }

    /// A stream of chunks, each sent on its own, with its proper end.
    pub(crate) fn stream(pieces: &[&str]) -> Self {
        let mut reply = Self::open(pieces);
        reply.0.push(Frame::Bytes(b"0\r\n\r\n".to_vec()));
        reply
    }

    /// The same stream, sent in one piece.
    pub(crate) fn at_once(pieces: &[&str]) -> Self {
        let frames = Self::stream(pieces).0.into_iter();
        let bytes = frames.flat_map(|frame| match frame {
            Frame::Bytes(bytes) => bytes,
            Frame::Stall | Frame::Cut => Vec::new(),
        });
        Self(vec![Frame::Bytes(bytes.collect())])
    }

    /// A stream of chunks without an end.
    pub(crate) fn open(pieces: &[&str]) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let chunks = pieces
            .iter()
            .map(|piece| Frame::Bytes(format!("{:x}\r\n{piece}\r\n", piece.len()).into_bytes()));
        Self(
            std::iter::once(Frame::Bytes(head.into()))
                .chain(chunks)
                .collect(),
        )
    }

    pub(crate) fn then(mut self, frame: Frame) -> Self {
        self.0.push(frame);
        self
    }
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Recorded {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }
}

/// An expected request, and its reply.
pub(crate) struct Exchange {
    /// The expected body. Another body gets status 499, with the first difference.
    pub(crate) request: serde_json::Value,
    pub(crate) reply: Reply,
}

/// The expected body, if there is one, and the reply.
type Line = (Option<serde_json::Value>, Reply);
type Scripted = Arc<Mutex<std::vec::IntoIter<Line>>>;

/// Returns the first place at which two bodies differ.
fn difference(wanted: &serde_json::Value, came: &serde_json::Value, at: &str) -> Option<String> {
    use serde_json::Value as Json;
    match (wanted, came) {
        (Json::Object(wanted), Json::Object(came)) => {
            let keys = wanted.keys().chain(came.keys());
            keys.into_iter().find_map(|key| {
                let of = |map: &serde_json::Map<String, Json>| map.get(key).cloned();
                let absent = || Json::from("(absent)");
                let (wanted, came) = (of(wanted), of(came));
                difference(
                    &wanted.unwrap_or_else(absent),
                    &came.unwrap_or_else(absent),
                    &format!("{at}/{key}"),
                )
            })
        }
        (Json::Array(wanted), Json::Array(came)) if wanted.len() == came.len() => {
            let mut both = wanted.iter().zip(came).enumerate();
            both.find_map(|(n, (wanted, came))| difference(wanted, came, &format!("{at}/{n}")))
        }
        _ => (wanted != came).then(|| format!("{at}: {wanted} was expected, {came} came")),
    }
}

/// The server. It gives its replies in the order of the requests. A request too many gets status 599, which no test expects.
pub(crate) struct Listener {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Recorded>>>,
    connections: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listener {
    /// A server that takes these requests in this order, and no others.
    pub(crate) async fn strict(exchanges: Vec<Exchange>) -> Self {
        let scripted = exchanges.into_iter().map(|e| (Some(e.request), e.reply));
        Self::serving(scripted.collect()).await
    }

    /// A server that gives these replies, whatever the requests are.
    pub(crate) async fn new(replies: Vec<Reply>) -> Self {
        Self::serving(replies.into_iter().map(|reply| (None, reply)).collect()).await
    }

    async fn serving(replies: Vec<Line>) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", socket.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (log, count) = (requests.clone(), connections.clone());
        let replies = Arc::new(Mutex::new(replies.into_iter()));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, log.clone(), replies.clone()));
            }
        });
        Self {
            url,
            requests,
            connections,
            task,
        }
    }

    /// Returns all requests so far.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the only request. Panics if there is another.
    pub(crate) fn request(&self) -> Recorded {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:#?}");
        requests[0].clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(mut stream: TcpStream, log: Arc<Mutex<Vec<Recorded>>>, replies: Scripted) {
    let mut bytes = Vec::new();
    while let Some(request) = read(&mut stream, &mut bytes).await {
        log.lock().unwrap().push(request.clone());
        let scripted = replies.lock().unwrap().next();
        let reply = match scripted {
            None => Reply::with(599, &[], "no reply is scripted"),
            Some((None, reply)) => reply,
            Some((Some(wanted), reply)) => match difference(&wanted, &request.json(), "") {
                None => reply,
                Some(differs) => Reply::with(499, &[], differs),
            },
        };
        for frame in reply.0 {
            match frame {
                Frame::Bytes(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                    let _ = stream.flush().await;
                }
                Frame::Stall => {
                    // Waits until the other side gives up.
                    let mut rest = [0; 64];
                    while matches!(stream.read(&mut rest).await, Ok(1..)) {}
                    return;
                }
                Frame::Cut => return,
            }
        }
    }
}

async fn read(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<Recorded> {
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(len @ 1..) => bytes.extend_from_slice(&piece[..len]),
            _ => return None,
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut lines = text.lines();
    let line = lines.next()?.to_owned();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect::<Vec<_>>();
    let len = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let len = len.map_or(0, |(_, value)| value.parse::<usize>().unwrap());
    while bytes.len() < head + 4 + len {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(len @ 1..) => bytes.extend_from_slice(&piece[..len]),
            _ => return None,
        }
    }
    let rest = bytes.split_off(head + 4 + len);
    let body = String::from_utf8(bytes.split_off(head + 4)).expect("requests are text");
    *bytes = rest;
    Some(Recorded {
        line,
        headers,
        body,
    })
}
