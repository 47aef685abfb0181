//! MCP over streamable HTTP: a server on the loopback whose calls end as the name of their tool says.

use super::{ask, call, of, offers, once, refuses};
use serde_json::{Value as Json, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use steersman_adapters::mcp::McpTools;
use steersman_machine::network::Network;
use steersman_runtime::toolset::Toolset as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// A request: method, value of `authorization`, message.
pub(super) type Asked = (String, String, Json);

struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Asked>>>,
    /// The server restarted: it answers nobody who has not greeted it since.
    gone: Arc<AtomicBool>,
}

impl Server {
    async fn start() -> Self {
        Self::with(true).await
    }

    /// Starts a server that gives sessions to its clients, or none.
    async fn with(sessions: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (told, gone) = (seen.clone(), Arc::<AtomicBool>::default());
        let forgets = gone.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, told.clone(), forgets.clone(), sessions));
            }
        });
        Self { url, seen, gone }
    }

    fn network(&self, tool: &str, more: &str) -> Arc<Network> {
        let url = &self.url;
        let headers = r#"headers: { authorization: "Bearer {{ secrets.token }}" }"#;
        of(&format!("url: {url}\n    {headers}\n    {more}"), tool)
    }

    fn calls(&self) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .filter(|(_, _, m)| m["method"] == "tools/call")
            .count()
    }

    fn has_heard(&self, method: &str) -> bool {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .any(|(_, _, message)| message["method"] == method)
    }
}

/// Reads one request: method, `authorization`, body.
pub(super) async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        let mut piece = [0; 4096];
        let len = stream.read(&mut piece).await.ok().filter(|len| *len > 0)?;
        bytes.extend_from_slice(&piece[..len]);
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let header = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map_or(String::new(), |(_, value)| value.to_owned())
    };
    let length: usize = header("content-length").parse().unwrap_or(0);
    let mut body = bytes.split_off(head + 4);
    while body.len() < length {
        let mut piece = vec![0; length - body.len()];
        let len = stream.read(&mut piece).await.ok().filter(|len| *len > 0)?;
        body.extend_from_slice(&piece[..len]);
    }
    let method = text.split(' ').next().unwrap_or_default().to_owned();
    let message = serde_json::from_slice(&body).unwrap_or_default();
    Some((method, header("authorization"), message))
}

pub(super) fn status(status: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

pub(super) fn json_of(body: &Json) -> Vec<u8> {
    let body = body.to_string();
    let len = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s1\r\ncontent-length: {len}\r\n\r\n{body}"
    )
    .into_bytes()
}

pub(super) const EVENTS: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn greeting(answer: &impl Fn(Json) -> Json) -> Json {
    answer(json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "faulty", "version": "1" },
    }))
}

async fn serve(
    mut stream: TcpStream,
    seen: Arc<Mutex<Vec<Asked>>>,
    gone: Arc<AtomicBool>,
    sessions: bool,
) {
    while let Some(asked) = read(&mut stream).await {
        let (method, _, message) = asked.clone();
        seen.lock().unwrap().push(asked);
        let id = &message["id"];
        let answer = |result: Json| json!({ "jsonrpc": "2.0", "id": id, "result": result });
        let reply = match (method.as_str(), message["method"].as_str()) {
            ("GET", _) => status("405 Method Not Allowed"),
            (_, Some("initialize")) if gone.swap(false, Ordering::SeqCst) => {
                json_of(&greeting(&answer))
            }
            _ if gone.load(Ordering::SeqCst) => status("404 Not Found"),
            (_, Some("ping")) => json_of(&answer(json!({}))),
            (_, Some("initialize")) => json_of(&greeting(&answer)),
            (_, Some("tools/list")) => json_of(&answer(json!({ "tools": [
                { "name": "echo", "inputSchema": { "type": "object" } },
            ] }))),
            (_, Some("tools/call")) => {
                let tool = message["params"]["name"].as_str().unwrap_or_default();
                match called(&mut stream, tool, &answer).await {
                    Some(reply) => reply,
                    None => return,
                }
            }
            _ => status("202 Accepted"),
        };
        let reply = match String::from_utf8(reply) {
            Ok(reply) if !sessions => reply.replace("mcp-session-id: s1\r\n", "").into_bytes(),
            Ok(reply) => reply.into_bytes(),
            Err(reply) => reply.into_bytes(),
        };
        if stream.write_all(&reply).await.is_err() {
            return;
        }
    }
}

/// Returns the response to a call. `None` means that nothing more comes over this connection.
async fn called(
    stream: &mut TcpStream,
    tool: &str,
    answer: &impl Fn(Json) -> Json,
) -> Option<Vec<u8>> {
    let text = |text: &str| answer(json!({ "content": [{ "type": "text", "text": text }] }));
    match tool {
        "echo" => return Some(json_of(&text("hello"))),
        // Does the call, but the server has forgotten the session.
        "forget" => return Some(status("404 Not Found")),
        // A whole number that 64 bits do not hold. The second tool gives it as text, too.
        "wide" | "wide_said" => {
            let said = if tool == "wide" { "" } else { r#"{"wei":@}"# };
            let content = json!([{ "type": "text", "text": said }]);
            let body = answer(json!({ "content": content, "structuredContent": { "wei": "@" } }));
            let body = body
                .to_string()
                .replace(r#""@""#, "@")
                .replace('@', "12345678901234567890123");
            let len = body.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
            return Some(format!("{head}content-length: {len}\r\n\r\n{body}").into());
        }
        "limited" => {
            let body =
                "HTTP/1.1 429 Too Many Requests\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n";
            return Some(body.into());
        }
        "broken" => return Some(status("500 Internal Server Error")),
        "forbidden" => return Some(status("403 Forbidden")),
        "bad" => return Some(status("400 Bad Request")),
        "garbage" => {
            let body = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\n<html";
            return Some(body.into());
        }
        // JSON that is nested deeper than any reader takes.
        "deep" | "deep_stream" => {
            let nested = "[".repeat(5_000) + &"]".repeat(5_000);
            let body = answer(json!({ "content": [], "structuredContent": { "n": "@" } }));
            let body = body.to_string().replace(r#""@""#, &nested);
            if tool == "deep_stream" {
                let event = format!("event: message\ndata: {body}\n\n");
                let events = [EVENTS, event.as_bytes()].concat();
                stream.write_all(&events).await.ok()?;
                // The stream stays open.
                let _ = stream.read(&mut [0; 1]).await;
                return None;
            }
            let len = body.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
            return Some(format!("{head}content-length: {len}\r\n\r\n{body}").into());
        }
        "cut" => {}
        "stream" => {
            let event = format!("event: message\ndata: {}\n\n", text("in a stream"));
            stream
                .write_all(&[EVENTS, event.as_bytes()].concat())
                .await
                .ok()?;
        }
        // Says within the answer that the list of tools changed.
        "change" => {
            let told = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
            let event = |message: &Json| format!("event: message\ndata: {message}\n\n");
            let events = event(&told) + &event(&text("changed"));
            stream
                .write_all(&[EVENTS, events.as_bytes()].concat())
                .await
                .ok()?;
        }
        "huge" => {
            stream.write_all(EVENTS).await.ok()?;
            stream.write_all(b"data: ").await.ok()?;
            let piece = vec![b'x'; 1 << 20];
            for _ in 0..100 {
                stream.write_all(&piece).await.ok()?;
            }
        }
        // The stream ends before the answer, and a request for the rest is refused.
        "resumable" => {
            let event = b"id: 1\nretry: 0\ndata: \n\n";
            stream.write_all(&[EVENTS, event].concat()).await.ok()?;
        }
        // The stream ends properly, and has no answer.
        "empty" => {
            stream.write_all(EVENTS).await.ok()?;
        }
        // The stream stays open, and has no answer.
        _ => {
            stream.write_all(EVENTS).await.ok()?;
            let _ = stream.read(&mut [0; 1]).await;
        }
    }
    None
}

/// The mark of a list changes before the answer of the call is there, so a session knows that it has to ask again.
#[tokio::test]
async fn a_changed_list_is_marked() {
    let server = Server::start().await;
    let tools = McpTools::default();
    let (network, changing) = (server.network("echo", ""), server.network("change", ""));
    assert_eq!(tools.mark(&ask(&network)), None, "there is no connection");
    once(&tools, &network).await;
    let before = tools.mark(&ask(&network)).unwrap();
    once(&tools, &network).await;
    assert_eq!(tools.mark(&ask(&network)), Some(before));
    assert_eq!(once(&tools, &changing).await, r#"done: "changed""#);
    let after = tools.mark(&ask(&network)).unwrap();
    assert_eq!(after.connection, before.connection);
    assert_eq!(after.changes, before.changes + 1);
}

#[tokio::test]
async fn every_answer_is_a_typed_outcome() {
    let server = Server::start().await;
    let tools = McpTools::default();
    for (tool, expected) in [
        ("echo", r#"done: "hello""#),
        ("stream", r#"done: "in a stream""#),
        ("wide_said", r#"done: {"wei":"12345678901234567890123"}"#),
        (
            "wide",
            "failed: misfit: it was carried out, but its result holds a whole number that 64 bits do not hold, and over \
             HTTP its digits are lost: the server has to give it as text",
        ),
        (
            "limited",
            "not performed: http_429 429 again after 3000: status 429",
        ),
        ("broken", "unknown: http_500 500 again after 0: status 500"),
        (
            "bad",
            "not performed: failed: the server refused: HTTP 400 Bad Request: ",
        ),
        (
            "forbidden",
            "not performed: failed: the server refused: HTTP 403 Forbidden: ",
        ),
    ] {
        assert_eq!(
            once(&tools, &server.network(tool, "")).await,
            expected,
            "{tool}"
        );
    }
    let garbage = once(&tools, &server.network("garbage", "")).await;
    assert!(
        garbage.starts_with("unknown: failed: its answer is not a result of a call"),
        "{garbage}"
    );
    let cut = once(&tools, &server.network("cut", "")).await;
    assert!(
        cut.starts_with("unknown: failed: the connection ended before an answer"),
        "{cut}"
    );
    assert!(!cut.contains(&server.url), "{cut}");
    for ended in ["empty", "resumable"] {
        let ended = once(&tools, &server.network(ended, "timeout: 3s")).await;
        assert!(ended.starts_with("unknown: "), "{ended}");
    }
    for deep in ["deep", "deep_stream"] {
        let deep = once(&tools, &server.network(deep, "")).await;
        assert!(
            deep.starts_with("unknown: failed: its answer is not a result of a call"),
            "{deep}"
        );
    }
    assert_eq!(server.calls(), 14, "no call is repeated");
    let seen = server.seen.lock().unwrap();
    assert!(
        seen.iter().all(|(_, who, _)| who == "Bearer tok-123456"),
        "{seen:?}"
    );
}

/// A server that forgot the session may have done the call before that. No call is sent a second time.
#[tokio::test]
async fn a_call_that_is_answered_with_404_was_sent_once() {
    let server = Server::start().await;
    let tools = McpTools::default();
    for class in ["read", "idempotent", "unsafe"] {
        let before = server.calls();
        let network = server.network("forget", &format!("effect: {class}"));
        for _ in 0..2 {
            let said = once(&tools, &network).await;
            assert!(
                said.starts_with("unknown: http_404 404 again after 0: "),
                "{class}: {said}"
            );
        }
        assert_eq!(server.calls() - before, 2, "{class}");
    }
    // The next call greets the server again.
    assert_eq!(
        once(&tools, &server.network("echo", "")).await,
        r#"done: "hello""#
    );
}

/// A gateway may answer with 404 for a server that has done the call. A server without sessions has none to forget.
#[tokio::test]
async fn a_404_is_no_proof_without_a_session_either() {
    let server = Server::with(false).await;
    let said = once(
        &McpTools::default(),
        &server.network("forget", "effect: unsafe"),
    )
    .await;
    assert!(said.starts_with("unknown: "), "{said}");
    assert_eq!(server.calls(), 1);
}

/// A server that restarted is noticed before an unsafe call is sent to it.
#[tokio::test]
async fn who_was_forgotten_meanwhile_greets_anew() {
    let server = Server::start().await;
    let tools = McpTools::default();
    let unsafe_one = server.network("echo", "effect: unsafe");
    let idempotent = server.network("echo", "effect: idempotent");
    assert_eq!(once(&tools, &unsafe_one).await, r#"done: "hello""#);
    server.gone.store(true, Ordering::SeqCst);
    assert_eq!(once(&tools, &unsafe_one).await, r#"done: "hello""#);
    server.gone.store(true, Ordering::SeqCst);
    assert_eq!(offers(&tools, &unsafe_one).await.tools.len(), 1);
    server.gone.store(true, Ordering::SeqCst);
    let said = once(&tools, &idempotent).await;
    assert!(
        said.starts_with("unknown: http_404 404 again after 0: "),
        "{said}"
    );
    assert_eq!(once(&tools, &idempotent).await, r#"done: "hello""#);
}

#[tokio::test]
async fn a_stream_without_end_takes_no_memory() {
    let server = Server::start().await;
    let said = once(
        &McpTools::default(),
        &server.network("huge", "timeout: 20s"),
    )
    .await;
    assert!(said.starts_with("unknown: "), "{said}");
    assert_eq!(server.calls(), 1);
}

#[tokio::test]
async fn a_server_that_never_answers_is_cut_by_its_time() {
    let server = Server::start().await;
    let tools = McpTools::default();
    assert_eq!(
        once(&tools, &server.network("silent", "timeout: 300ms")).await,
        "unknown: timeout again after 0: no answer within 300ms"
    );
    while !server.has_heard("notifications/cancelled") {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_cancel_reaches_the_server() {
    let server = Server::start().await;
    let tools = McpTools::default();
    let (run, cancel) = (
        call(&server.network("silent", "")),
        CancellationToken::new(),
    );
    let (raw, ()) = tokio::join!(tools.run(&run, &cancel), async {
        while server.calls() == 0 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert_eq!(
        crate::tools::shown(&raw),
        "unknown: cancelled: cancelled on the way"
    );
    while !server.has_heard("notifications/cancelled") {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn tools_are_listed_and_what_is_not_there_is_proved() {
    let server = Server::start().await;
    let tools = McpTools::default();
    let listing = offers(&tools, &server.network("echo", "")).await;
    assert_eq!(listing.tools.len(), 1);
    let gone = of("url: http://127.0.0.1:9/mcp", "echo");
    let said = refuses(&tools, &gone).await;
    assert!(said.starts_with("no connection: "), "{said}");
    let call = once(&McpTools::default(), &gone).await;
    assert!(
        call.starts_with("not performed: failed again after 0: no connection"),
        "{call}"
    );
    let none = of("url: 'ftp://example.com'", "echo");
    let said = refuses(&tools, &none).await;
    assert_eq!(said, "`url` begins with neither http:// nor https://");
}
