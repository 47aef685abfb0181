//! A server on loopback, tokens, and a client.

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use steersman::machine::stored::ids::Name;
use steersman::runtime::seal::Sealer;
use steersman::runtime::store::Store;
use steersman::runtime::store::memory::MemoryStore;
use steersman::{Network, Scope, Setup, Steersman, tool_with};
use steersman_server::{Limits, NewToken, Options, Permission, Server, make_token, serve};
use tokio::net::TcpListener;

pub(crate) const DESK: &str = "
steersman: 1
name: desk
description: Settles complaints.
secrets: { word: { env: WORD } }
models: { default: { takes: image } }
tools:
  refund:
    native: 1
    description: Pays money back.
    parameters: { cents: integer }
    effect: unsafe
    approve: { when: args.cents > 1000, by: manager }
events:
  parcel:
    fields: { order: string }
    id: '{{ event.order }}'
    session: '{{ event.order }}'
    start: { message: 'Parcel {{ event.order }} came.' }
agents:
  manager: { person: { role: manager } }
  desk: { system: You settle complaints., tools: [refund] }
entry: desk
";

/// A shop with labels, an outcome, state, config and memories.
pub(crate) const SHOP: &str = "
steersman: 1
name: shop
memory: { scope: 'customer/{{ state.customer }}' }
config: { house: { default: main, clients: true }, floor: { default: 1 } }
state: { customer: optional string }
labels: { customer: '{{ state.customer }}' }
outcome: { customer: state.customer }
tools:
  meet: { description: Meets., parameters: { who: string }, set: { customer: '{{ args.who }}' } }
agents:
  clerk: { system: You help., tools: [memory, meet] }
  helper: { system: You help., tools: [meet] }
entry: [clerk, helper]
";

/// The clerk meets Ann and remembers what she likes; the helper meets Bob.
pub(crate) const SERVED: &str = "
clerk:
  - call: { meet: { who: ann } }
  - call: { memory_save: { name: taste, content: Ann likes tea. } }
  - Kept.
  - Again.
helper:
  - call: { meet: { who: bob } }
  - Done.
";

/// A refund that a manager has to approve, and then only texts.
pub(crate) const SCRIPT: &str = "
desk:
  - call: { refund: { cents: 3990 } }
  - Paid.
  - Once more?
  - And again.
  - Still here.
";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Refund {
    cents: u64,
}

/// The arguments of a tool that has none.
#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Nothing {}

pub(crate) fn desk() -> Network {
    let refund = tool_with("refund", 1, |refund: Refund, cx| async move {
        cx.artifact("receipt.txt", "text/plain", *b"paid");
        Ok::<_, String>(refund.cents)
    });
    Network::from_yaml(DESK).tool(refund).build().unwrap()
}

/// A running server.
pub(crate) struct World {
    pub(crate) at: String,
    pub(crate) server: Server,
    pub(crate) steersman: Steersman,
    pub(crate) client: Client,
}

/// Keys of tests seal the same in each process.
pub(crate) fn sealer() -> Sealer {
    Sealer::new(&[7; 32])
}

impl World {
    pub(crate) async fn new(script: &str) -> Self {
        Self::over(Arc::new(MemoryStore::new()), script, Options::default()).await
    }

    pub(crate) async fn over(store: Arc<dyn Store>, script: &str, options: Options) -> Self {
        let world = Self::undriven(store, script, options).await;
        let driving = world.server.clone();
        tokio::spawn(async move { driving.drive(|_| {}).await });
        world
    }

    /// A server that drives nothing: the test does.
    pub(crate) async fn undriven(store: Arc<dyn Store>, script: &str, options: Options) -> Self {
        let setup = Steersman::options().script_all(script);
        let mut all = options.definitions.clone();
        all.push(desk());
        // Some scripts are wrong on purpose.
        let setup = setup.clone().answers_for(&all).unwrap_or(setup);
        Self::of(setup, store, options).await
    }

    /// A server over a store, which drives nothing, with other settings than a script.
    pub(crate) async fn of(setup: Setup, store: Arc<dyn Store>, mut options: Options) -> Self {
        let setup = setup.env(|name| (name == "WORD").then(|| "tiger lily 7".to_owned()));
        let steersman = setup.over_shared(store, sealer());
        options.definitions.push(desk());
        let server = Server::new(steersman.clone(), options);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = format!("http://{}", listener.local_addr().unwrap());
        let serving = server.clone();
        tokio::spawn(async move { serve(&serving, listener, Duration::from_secs(5)).await });
        Self {
            at,
            server,
            steersman,
            client: client(),
        }
    }

    /// A server that also has the shop, and no limits of rate.
    pub(crate) async fn shop() -> Self {
        Self::over(
            Arc::new(MemoryStore::new()),
            SERVED,
            Options {
                definitions: vec![Network::from_yaml(SHOP).build().unwrap()],
                limits: unlimited(),
                ..Options::default()
            },
        )
        .await
    }

    /// Makes a token.
    pub(crate) async fn token(&self, new: NewToken) -> String {
        let engine = self.steersman.engine();
        let made = make_token(&**engine.store(), engine.clock().now(), new);
        made.await.unwrap().0
    }

    /// Makes a token with all permissions and both roles.
    pub(crate) async fn all(&self, tenant: &str) -> Caller<'_> {
        let token = self.token(whole(tenant)).await;
        self.with(token)
    }

    pub(crate) fn with(&self, token: String) -> Caller<'_> {
        Caller { world: self, token }
    }
}

/// Limits that a test with many requests does not reach.
pub(crate) fn unlimited() -> Limits {
    Limits {
        rate: 100_000,
        burst: 100_000,
        failures: 100_000,
        ..Limits::default()
    }
}

/// A value of a query, with everything encoded that has a meaning there.
pub(crate) fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(one).collect()
}

pub(crate) fn client() -> Client {
    drop(rustls::crypto::ring::default_provider().install_default());
    Client::builder().no_proxy().build().unwrap()
}

pub(crate) fn scope(tenant: &str, subject: Option<&str>) -> Scope {
    Scope {
        tenant: tenant.into(),
        subject: subject.map(Into::into),
    }
}

pub(crate) fn whole(tenant: &str) -> NewToken {
    NewToken {
        scope: scope(tenant, None),
        allows: Permission::ALL.to_vec(),
        roles: names(&["user", "manager"]),
        ..NewToken::default()
    }
}

pub(crate) fn names(all: &[&str]) -> Vec<Name> {
    all.iter().map(|name| (*name).into()).collect()
}

/// A client with a token.
pub(crate) struct Caller<'w> {
    pub(crate) world: &'w World,
    pub(crate) token: String,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) json: Json,
}

impl Answer {
    pub(crate) async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.unwrap();
        let json = serde_json::from_str(&text).unwrap_or(Json::String(text));
        Self {
            status,
            headers,
            json,
        }
    }

    /// The body of an answer with this status.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Json {
        assert_eq!(self.status, status, "{:#}", self.json);
        self.json
    }

    /// Checks that this is a problem document, and returns its detail.
    #[track_caller]
    pub(crate) fn fails(self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{:#}", self.json);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.json["code"], code, "{:#}", self.json);
        assert_eq!(self.json["type"], format!("urn:steersman:problem:{code}"));
        self.json["detail"].as_str().unwrap().to_owned()
    }
}

impl Caller<'_> {
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self
            .world
            .client
            .request(method, format!("{}{path}", self.world.at));
        request.bearer_auth(&self.token)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Json) -> Answer {
        Answer::of(self.request(Method::POST, path).json(&body)).await
    }

    /// Starts a session with a message, and waits until it settles. Returns its id.
    pub(crate) async fn start(&self, message: &str) -> String {
        let body = json!({ "definition": "desk", "message": message });
        let request = self.request(Method::POST, "/v1/sessions").json(&body);
        let turn = Answer::of(request.header("prefer", "wait=30"))
            .await
            .is(200);
        turn["session"].as_str().unwrap().to_owned()
    }

    /// Starts a session of the shop at an entry, and waits until it settles. Returns its id.
    pub(crate) async fn served(&self, entry: &str) -> String {
        let body = json!({ "definition": "shop", "entry": entry, "message": "Hello." });
        let request = self.request(Method::POST, "/v1/sessions").json(&body);
        let turn = Answer::of(request.header("prefer", "wait=30"))
            .await
            .is(200);
        assert_eq!(turn["status"], "answered", "{turn:#}");
        turn["session"].as_str().unwrap().to_owned()
    }

    /// The sessions that a filter lets through, newest first.
    pub(crate) async fn passing(&self, filter: &str) -> Vec<String> {
        let path = format!("/v1/sessions?where={}", encoded(filter));
        let page = self.get(&path).await.is(200);
        let items = page["items"].as_array().unwrap();
        let ids = items.iter().map(|row| row["session"].as_str().unwrap());
        ids.map(str::to_owned).collect()
    }

    /// Says something, and returns the state in which the session settles.
    pub(crate) async fn say(&self, session: &str, text: &str) -> Json {
        let path = format!("/v1/sessions/{session}/messages");
        let request = self
            .request(Method::POST, &path)
            .json(&json!({ "text": text }));
        Answer::of(request.header("prefer", "wait=30"))
            .await
            .is(200)
    }

    /// The id of the only open question of a session.
    pub(crate) async fn question(&self, session: &str) -> String {
        let found = self
            .get(&format!("/v1/sessions/{session}/questions"))
            .await
            .is(200);
        let items = found["items"].as_array().unwrap();
        assert_eq!(items.len(), 1, "{found:#}");
        items[0]["id"].as_str().unwrap().to_owned()
    }

    /// Opens a stream.
    pub(crate) async fn stream(&self, path: &str, last_id: Option<&str>) -> Stream {
        let mut request = self.request(Method::GET, path);
        if let Some(id) = last_id {
            request = request.header("last-event-id", id);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Stream {
            response,
            text: String::new(),
        }
    }
}

/// A stream of server-sent events.
pub(crate) struct Stream {
    response: reqwest::Response,
    text: String,
}

/// A frame of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    pub(crate) event: String,
    pub(crate) data: Json,
}

impl Stream {
    /// The next event. `None` at the end of the stream. Comments are left out.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let frame = read(&self.text[..end]);
                self.text.drain(..end + 2);
                if frame.is_some() {
                    return frame;
                }
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// All events until the stream ends.
    pub(crate) async fn rest(&mut self) -> Vec<Frame> {
        let mut all = Vec::new();
        while let Some(frame) = self.next().await {
            all.push(frame);
        }
        all
    }
}

fn read(text: &str) -> Option<Frame> {
    let field = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(": ")
                .map(str::to_owned)
        })
    };
    let data = field("data")?;
    Some(Frame {
        id: field("id"),
        event: field("event").unwrap(),
        data: serde_json::from_str(&data).unwrap(),
    })
}

/// The events on disk among these.
pub(crate) fn durable(frames: &[Frame]) -> Vec<Frame> {
    frames
        .iter()
        .filter(|frame| frame.id.is_some())
        .cloned()
        .collect()
}
