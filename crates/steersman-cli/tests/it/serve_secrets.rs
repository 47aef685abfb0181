//! Planted secrets: a definition that declares some, a person who gives one, a service that returns one, and a model that repeats all of
//! them. For a token without the permission `context`, none of them is in a body, a header or a stream of any route or protocol. None is in
//! a message to a webhook, in the metrics, in a span, or in what the server says on standard error.

use crate::killed::{answer, answer_with, request};
use crate::served::{Served, provider};
use crate::world::{self, World};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Far more than a step of the test needs.
const PATIENCE: Duration = Duration::from_mins(1);
/// A secret of the definition.
const WORD: &str = "tiger \"lily\" 7&<8";
/// The key of the model.
const KEY: &str = "sk-planted-4711-key";
/// A person gives it when it is asked for.
const PASSWORD: &str = "open sesame 99";
/// A service returns it, and the state keeps it.
const TOKEN: &str = "tok-planted-0815";
const ALL: [&str; 4] = [WORD, KEY, PASSWORD, TOKEN];

const VAULT: &str = r#"
steersman: 1
name: vault
secrets: { word: { env: WORD }, key: { env: MODEL_KEY } }
models:
  default: { url: "OUTSIDE/v1", model: parrot, key: "{{ secrets.key }}" }
memory: { scope: vault }
state:
  token: { type: secret, optional: true }
  note: optional string
labels: { note: "{{ state.note }}" }
outcome: { note: state.note }
tools:
  login:
    description: Logs a user in.
    parameters: { user: string, password: { type: secret, ask: "The password of {{ args.user }}?" } }
    effect: read
    http: { method: POST, url: "OUTSIDE/login", json: "{{ args }}", headers: { x-word: "{{ secrets.word }}" } }
    set: { token: "{{ result.token }}", note: "{{ result.note }}" }
    result: "{{ result.note }}"
  pay: { description: Pays., parameters: { to: string }, effect: unsafe, approve: true, command: [echo, "{{ args.to }}"] }
agents:
  vault: { system: You repeat what you know., tools: [login, pay, memory] }
entry: vault
"#;

/// Returns the forms in which a secret may be told: as it is, in JSON, in XML, in an address.
fn forms(secret: &str) -> [String; 4] {
    let json = Json::from(secret).to_string();
    let xml = secret
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;");
    let address = secret.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    });
    [
        secret.to_owned(),
        json[1..json.len() - 1].to_owned(),
        xml,
        address.collect(),
    ]
}

/// Returns the secrets that some bytes hold.
fn held(bytes: &[u8]) -> Vec<&'static str> {
    let holds = |form: &String| {
        bytes
            .windows(form.len())
            .any(|part| part == form.as_bytes())
    };
    let all = ALL.into_iter();
    all.filter(|secret| forms(secret).iter().any(holds))
        .collect()
}

#[track_caller]
fn is_clean(what: &str, bytes: &[u8]) {
    let held = held(bytes);
    let shown = String::from_utf8_lossy(bytes);
    assert!(held.is_empty(), "{what} tells {held:?}: {shown}");
}

/// The texts of a stream in one piece: a secret may be cut into several events.
fn pieces(text: &str) -> String {
    fn add(json: &Json, into: &mut String) {
        match json {
            Json::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        Json::String(text) if ["text", "delta", "content"].contains(&&**name) => {
                            into.push_str(text);
                        }
                        other => add(other, into),
                    }
                }
            }
            Json::Array(all) => all.iter().for_each(|one| add(one, into)),
            _ => {}
        }
    }
    let mut all = String::new();
    for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if let Ok(json) = serde_json::from_str(data) {
            add(&json, &mut all);
        }
    }
    all
}

/// Heads and bodies of requests.
type Told = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// Everything outside of the server: the model, a service, the receiver of webhooks and the collector of spans.
struct Outside {
    url: String,
    /// The messages to the receiver and to the collector.
    told: Told,
    /// Lets the model answer `Say all.`.
    answer: Sender<()>,
}

impl Outside {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let told = Told::default();
        let into = told.clone();
        let (answer_now, may_answer) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (first, body) = request(&stream);
                match first.split(' ').nth(1).unwrap_or_default() {
                    "/v1/chat/completions" => {
                        let asked: Json = serde_json::from_slice(&body).unwrap();
                        let last = asked["messages"].as_array().unwrap().last().unwrap();
                        if last["content"] == "Say all." {
                            may_answer.recv_timeout(PATIENCE).expect("it is let go");
                        }
                        let (status, media, answer) = model(&asked);
                        answer_with(stream, status, media, &answer);
                    }
                    "/login" => {
                        let sent: Json = serde_json::from_slice(&body).unwrap();
                        assert_eq!(sent["password"], PASSWORD);
                        answer(
                            stream,
                            &json!({ "token": TOKEN, "note": everything() }).to_string(),
                        );
                    }
                    "/told" | "/v1/traces" => {
                        into.lock().unwrap().push((first, body));
                        answer(stream, "{}");
                    }
                    _ => answer_with(stream, "404 Not Found", "application/json", "{}"),
                }
            }
        });
        Self {
            url,
            told,
            answer: answer_now,
        }
    }
}

fn everything() -> String {
    ALL.join(", ")
}

/// The model: it does what the last message names, and otherwise tells all that it knows.
fn model(asked: &Json) -> (&'static str, &'static str, String) {
    let last = asked["messages"].as_array().unwrap().last().unwrap();
    let said = last["content"].to_string();
    let is_user = last["role"] == "user";
    let call = |name: &str, arguments: Json| {
        json!({ "tool_calls": [{
            "index": 0, "id": format!("call_{}", asked["messages"].as_array().unwrap().len()), "type": "function",
            "function": { "name": name, "arguments": arguments.to_string() },
        }] })
    };
    let deltas: Vec<Json> = if is_user && said.contains("fail") {
        let why = format!("the key {KEY} may not ask about {WORD}");
        return (
            "400 Bad Request",
            "application/json",
            json!({ "error": { "message": why } }).to_string(),
        );
    } else if is_user && said.contains("log in") {
        vec![call("login", json!({ "user": "ann" }))]
    } else if is_user && said.contains("pay") {
        vec![call("pay", json!({ "to": WORD }))]
    } else if is_user && said.contains("remember") {
        vec![call(
            "memory_save",
            json!({ "name": "word", "content": WORD }),
        )]
    } else {
        let text: Vec<char> = everything().chars().collect();
        let pieces = text.chunks(5).map(|piece| piece.iter().collect::<String>());
        pieces.map(|piece| json!({ "content": piece })).collect()
    };
    let ends = if deltas[0]["tool_calls"].is_array() {
        "tool_calls"
    } else {
        "stop"
    };
    let mut stream = String::new();
    let chunk = |delta: &Json, ends: Json| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": ends });
        let chunk = json!({ "id": "c", "object": "chat.completion.chunk", "model": "parrot", "choices": [choice] });
        format!("data: {chunk}\n\n")
    };
    for delta in &deltas {
        stream.push_str(&chunk(delta, Json::Null));
    }
    stream.push_str(&chunk(&json!({}), ends.into()));
    stream.push_str("data: [DONE]\n\n");
    ("200 OK", "text/event-stream", stream)
}

/// A client without the permission `context`, which looks for secrets in everything that it gets.
struct Reader<'s> {
    served: &'s Served,
    http: reqwest::Client,
    token: String,
}

impl Reader<'_> {
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self
            .http
            .request(method, format!("{}{path}", self.served.at));
        request.bearer_auth(&self.token)
    }

    /// Reads an answer, and looks for secrets in its head and its body. Returns the status and the body.
    async fn read(&self, what: &str, response: Response) -> (u16, Vec<u8>) {
        is_clean(what, format!("{:?}", response.headers()).as_bytes());
        let status = response.status().as_u16();
        let body = response.bytes().await.unwrap().to_vec();
        is_clean(what, &body);
        is_clean(what, pieces(&String::from_utf8_lossy(&body)).as_bytes());
        (status, body)
    }

    async fn get(&self, path: &str) -> (u16, Json) {
        let sent = self.request(Method::GET, path).send().await.unwrap();
        let (status, body) = self.read(path, sent).await;
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &Json) -> (u16, Vec<u8>) {
        let mut request = self.request(Method::POST, path).json(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.read(path, request.send().await.unwrap()).await
    }

    /// Sends a request that is carried out, and returns what is read as JSON.
    async fn does(&self, path: &str, headers: &[(&str, &str)], body: Json) -> Json {
        let (status, answer) = self.post(path, headers, &body).await;
        assert!(
            (200..300).contains(&status),
            "{path}: {status} {}",
            String::from_utf8_lossy(&answer)
        );
        serde_json::from_slice(&answer).unwrap_or_default()
    }

    /// Says something, and waits until the session settles.
    async fn says(&self, session: &str, text: &str) -> Json {
        let path = format!("/v1/sessions/{session}/messages");
        self.does(&path, &[("prefer", "wait=30")], json!({ "text": text }))
            .await
    }

    /// Decides the only question of a session, and waits until the session settles.
    async fn decides(&self, session: &str, act: &str, body: Json) {
        let path = format!("/v1/sessions/{session}/questions");
        let (_, found) = self.get(&path).await;
        let id = found["items"][0]["id"]
            .as_str()
            .unwrap()
            .replace('@', "%40");
        self.does(&format!("{path}/{id}/{act}"), &[], body).await;
        self.settles(session).await;
    }

    /// Follows a session from the beginning until it has settled.
    async fn settles(&self, session: &str) {
        let path = format!("/v1/sessions/{session}/events?until=settled");
        let (status, _) = self.get(&path).await;
        assert_eq!(status, 200);
    }

    /// Asks every route that only looks, about a session. Returns the routes that had something to show.
    async fn looks_at_all(&self, session: &str, job: &str, response: &str) -> BTreeSet<String> {
        let file = world::root().join("docs/reference/openapi.json");
        let document: Json = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let lines = self
            .get(&format!("/v1/sessions/{session}/lines?limit=200"))
            .await
            .1;
        let lines = lines["items"].as_array().unwrap().iter();
        let lines: Vec<String> = lines.map(|line| line["line"].to_string()).collect();
        assert!(lines.len() > 1, "{lines:?}");
        let names = self
            .get(&format!("/v1/sessions/{session}/artifacts"))
            .await
            .1;
        let names = names["items"].as_array().unwrap().iter();
        let names: Vec<String> = names
            .map(|of| of["name"].as_str().unwrap().to_owned())
            .collect();
        let mut shown = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            if item["get"].is_null() || path == "/v1/events/stream" {
                continue;
            }
            let place = path
                .replace("{session}", session)
                .replace("{definition}", "vault")
                .replace("{model}", "vault")
                .replace("{memory}", "1")
                .replace("{job}", job)
                .replace("{search}", "1.1")
                .replace("{effect}", "1.1")
                .replace("{response}", response);
            let each = match path.rsplit('/').next().unwrap() {
                "{line}" | "{what}" => lines.clone(),
                "{name}" => names.clone(),
                "events" => vec!["?until=settled".to_owned()],
                "diff" => vec![format!("?a={session}&b={session}")],
                "search" => vec!["?query=tiger".to_owned()],
                _ => vec![String::new()],
            };
            for more in &each {
                let place = match path.rsplit_once("/{") {
                    Some((before, "line}" | "what}" | "name}")) => {
                        format!("{}/{more}", before.replace("{session}", session))
                    }
                    _ => format!("{place}{more}"),
                };
                if self.get(&place).await.0 == 200 {
                    shown.insert(path.clone());
                }
            }
        }
        shown
    }
}

/// Calls a tool of the Model Context Protocol.
async fn calls(reader: &Reader<'_>, method: &str, name: &str, mut params: Json) -> Json {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
        ("mcp-name", name),
    ];
    let (status, answer) = reader.post("/mcp", &headers, &body).await;
    let answer = String::from_utf8(answer).unwrap();
    assert_eq!(status, 200, "{answer}");
    let data = answer
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("data: "));
    let answer: Json = serde_json::from_str(data.unwrap_or(&answer)).unwrap();
    assert!(answer["error"].is_null(), "{answer:#}");
    answer["result"].clone()
}

/// Runs a definition as an agent of AG-UI. Returns the session.
async fn runs(reader: &Reader<'_>, messages: &Json) -> String {
    let body = json!({
        "threadId": "t", "runId": "r", "messages": messages,
        "tools": [], "context": [], "state": {}, "forwardedProps": {},
    });
    let sent = reader.request(Method::POST, "/agui/vault").json(&body);
    let sent = sent.send().await.unwrap();
    let session = sent.headers()["x-steersman-session"]
        .to_str()
        .unwrap()
        .to_owned();
    let (status, body) = reader.read("AG-UI", sent).await;
    let body = String::from_utf8(body).unwrap();
    assert_eq!(status, 200, "{body}");
    assert!(!body.contains("RUN_ERROR"), "{body}");
    session
}

/// Starts a server with the vault. Returns it with a token that may do everything but look at contexts.
async fn opened(world: &mut World, outside: &Outside) -> (Served, String) {
    provider();
    world.set("WORD", WORD);
    world.set("MODEL_KEY", KEY);
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &outside.url);
    world.write("steersman.yaml", &VAULT.replace("OUTSIDE", &outside.url));
    let args = [
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        "127.0.0.1:0",
        "--webhooks-may-reach",
        "127.0.0.0/8",
    ];
    let served = Served::with(world, &args);
    let new = json!({
        "allows": ["read", "write", "decide", "operate", "time", "memory", "admin"], "roles": ["user"],
    });
    let (status, made) = served.json(Method::POST, "/v1/tokens", Some(new)).await;
    assert_eq!(status, 201, "{made:#}");
    let hook = json!({ "url": format!("{}/told", outside.url) });
    let (status, made_hook) = served.json(Method::POST, "/v1/webhooks", Some(hook)).await;
    assert_eq!(status, 201, "{made_hook:#}");
    (served, made["token"].as_str().unwrap().to_owned())
}

/// Begins a session that knows all secrets: a person logs in, pays, and sends files, of which one is no text. Returns it.
async fn plants(reader: &Reader<'_>, outside: &Outside) -> String {
    let start = json!({ "definition": "vault", "message": format!("log in with {WORD}") });
    let asks = reader
        .does("/v1/sessions", &[("prefer", "wait=30")], start)
        .await;
    assert_eq!(asks["status"], "asks", "{asks:#}");
    let session = asks["session"].as_str().unwrap();
    let given = json!({ "text": PASSWORD });
    reader.decides(session, "answer", given).await;
    let mut live = is_clean_while_it_streams(reader, outside, session).await;
    let asks = reader.says(session, "Please pay.").await;
    assert_eq!(asks["status"], "asks", "{asks:#}");
    let before = live.until("event: asked").await;
    let settled = before.split("event: settled\n").skip(1);
    let settled: Vec<&str> = settled.filter_map(|rest| rest.lines().next()).collect();
    let mut once = settled.clone();
    once.sort_unstable();
    once.dedup();
    let told = (settled.len(), once.len());
    assert!(
        (1..=2).contains(&told.0) && told.0 == told.1,
        "a state is told once: {before}"
    );
    reader.get("/v1/questions").await;
    reader.decides(session, "approve", json!({})).await;
    reader.says(session, "Please remember.").await;
    let path = format!("/v1/sessions/{session}/messages");
    // The bytes FF FE, the password, and FF.
    let coded = "//5vcGVuIHNlc2FtZSA5Of8=";
    let files = json!([
        { "name": "notes.txt", "text": everything() },
        { "name": format!("{TOKEN}.txt"), "text": "A name may be a secret, too." },
        { "name": "notes.bin", "media_type": "application/octet-stream", "base64": coded },
    ]);
    let said = json!({ "text": "Say all of the files.", "files": files });
    reader.does(&path, &[("prefer", "wait=30")], said).await;
    let none = format!("/v1/sessions/{session}/artifacts/nothing");
    assert_eq!(reader.get(&none).await.0, 404);
    let rating = json!({ "rating": 3 });
    assert_eq!(
        reader.post(&format!("{none}/rating"), &[], &rating).await.0,
        404
    );
    session.to_owned()
}

/// A stream that is read, and its text so far.
struct Live {
    response: Response,
    text: String,
}

impl Live {
    async fn more(&mut self) {
        let chunk = self.response.chunk().await.unwrap().unwrap();
        self.text.push_str(std::str::from_utf8(&chunk).unwrap());
    }

    /// Reads on to an event. Returns what came before it.
    async fn until(&mut self, event: &str) -> String {
        loop {
            if let Some(at) = self.text.find(event) {
                return self.text[..at].to_owned();
            }
            self.more().await;
        }
    }
}

/// Lets the model tell all secrets in pieces, while somebody follows. Returns the stream.
async fn is_clean_while_it_streams(reader: &Reader<'_>, outside: &Outside, session: &str) -> Live {
    let path = format!("/v1/sessions/{session}/events?from=now");
    let response = reader.request(Method::GET, &path).send().await.unwrap();
    let text = String::new();
    let mut live = Live { response, text };
    let follows = async {
        live.until("event: heard").await;
        outside.answer.send(()).unwrap();
        live.until("event: finished").await
    };
    let (streamed, _) = tokio::join!(follows, reader.says(session, "Say all."));
    assert!(streamed.contains("event: piece"), "{streamed}");
    is_clean("a live stream", live.text.as_bytes());
    is_clean("a live stream", pieces(&live.text).as_bytes());
    live
}

/// Lets the session tell all secrets over each protocol, and begins a thread of AG-UI. Returns the id of a response.
async fn speaks_all_protocols(reader: &Reader<'_>, session: &str) -> String {
    let named = [("x-steersman-session", session)];
    for (text, is_streamed) in [("Say all again.", false), ("Say all in pieces.", true)] {
        let messages = json!([{ "role": "user", "content": text }]);
        let chat = json!({ "model": "vault", "messages": messages, "stream": is_streamed });
        reader
            .does("/openai/v1/chat/completions", &named, chat)
            .await;
    }
    let asked = json!({ "model": "vault", "conversation": format!("conv_{session}"), "input": "Say all once more." });
    let response = reader.does("/openai/v1/responses", &[], asked).await;
    let response = response["id"].as_str().unwrap();
    reader
        .get(&format!("/openai/v1/responses/{response}?stream=true"))
        .await;
    for method in ["SendMessage", "SendStreamingMessage"] {
        let parts = json!([{ "text": "Say all here." }]);
        let message = json!({ "messageId": method, "contextId": session, "role": "ROLE_USER", "parts": parts });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "message": message } });
        let answer = reader
            .does("/a2a/vault", &[("a2a-version", "1.0")], call)
            .await;
        assert!(answer["error"].is_null(), "{answer:#}");
    }
    let arguments = json!({ "session": session, "message": "Say all there." });
    let params = json!({ "name": "vault", "arguments": arguments });
    calls(reader, "tools/call", "vault", params).await;
    for name in ["notes.txt", "notes.bin"] {
        let uri = format!("steersman://{session}/{name}");
        let read = calls(reader, "resources/read", &uri, json!({ "uri": uri })).await;
        if let Some(blob) = read["contents"][0]["blob"].as_str() {
            is_clean(name, &STANDARD.decode(blob).unwrap());
        } else {
            assert!(read["contents"][0]["text"].is_string(), "{read:#}");
        }
    }
    let messages = json!([{ "id": "u1", "role": "user", "content": "log in" }]);
    let thread = runs(reader, &messages).await;
    let given = json!({ "text": PASSWORD });
    reader.decides(&thread, "answer", given).await;
    assert_eq!(runs(reader, &messages).await, thread);
    response.to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planted_secrets_are_told_nowhere() {
    let (mut world, outside) = (World::new(), Outside::open());
    let (mut served, token) = opened(&mut world, &outside).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let reader = Reader {
        served: &served,
        http,
        token,
    };
    let session = plants(&reader, &outside).await;
    let failed = json!({ "definition": "vault", "message": "Please fail." });
    let failed = reader
        .does("/v1/sessions", &[("prefer", "wait=30")], failed)
        .await;
    assert_eq!(failed["status"], "failed", "{failed:#}");
    let response = speaks_all_protocols(&reader, &session).await;
    let path = format!("/v1/sessions/{session}/reruns");
    let job = reader
        .does(&path, &[("prefer", "wait=30")], json!({}))
        .await;
    assert_eq!(job["state"], "done", "{job:#}");
    let job = job["job"].as_str().unwrap();
    let (_, listed) = reader.get("/v1/sessions").await;
    let listed = listed["items"].as_array().unwrap();
    assert_eq!(listed.len(), 4, "{listed:#?}");
    for row in listed {
        let id = row["session"].as_str().unwrap();
        let shown = reader.looks_at_all(id, job, &response).await;
        // The contexts are refused, no search was made, and the session that failed has no file.
        assert!(shown.len() >= 28, "{shown:?}");
    }
    // A token that may see contexts shows that the secrets are there.
    let path = format!("/v1/sessions/{session}/events?until=settled");
    let whole = served.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(held(whole.text().await.unwrap().as_bytes()), ALL);

    let metrics = served.metrics.clone().unwrap();
    let metrics = reader.http.get(metrics).send().await.unwrap();
    is_clean("the metrics", &metrics.bytes().await.unwrap());
    served.stops();
    let errors = std::fs::read(world.folder.join("errors.txt")).unwrap();
    assert!(String::from_utf8_lossy(&errors).contains("/v1/sessions/{session}/lines"));
    is_clean("standard error", &errors);
    let told = outside.told.lock().unwrap();
    for (what, way) in [("a webhook", "/told"), ("a span", "/v1/traces")] {
        let all = told.iter().filter(|(first, _)| first.contains(way));
        assert!(all.clone().count() > 0, "nothing was told to {what}");
        all.for_each(|(_, body)| is_clean(what, body));
    }
}
