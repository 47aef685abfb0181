//! Everything that a request can name besides a session in its path, over every protocol, asked with tokens that must not see it: status and
//! body are those of what does not exist. A route of the document that no request of these tests is about fails them.

use crate::leak::{ann, body, call, callers, documented, said};
use crate::world::{Answer, Caller, SCRIPT, SERVED, SHOP, World, names, unlimited, whole};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::Network;
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::{NewToken, Options, Permission};

/// The names of things of one owner.
#[derive(Clone)]
struct Owned {
    session: String,
    line: u64,
    job: String,
    token: String,
    webhook: String,
    memory: u64,
    /// A connection of the Model Context Protocol.
    connection: String,
}

impl Owned {
    /// Names of the same form that nothing has.
    fn missing(&self) -> Self {
        Self {
            session: "aa0000000000zzzz".to_owned(),
            line: self.line,
            job: "0".repeat(32),
            token: "zzzzzzzz".to_owned(),
            webhook: "zzzzzzzz".to_owned(),
            memory: 999_999,
            connection: "00000000-0000-0000-0000-000000000000".to_owned(),
        }
    }

    /// A text without these names.
    fn without(&self, text: &str) -> String {
        let memory = format!("memory {}", self.memory);
        let names = [
            &self.session,
            &self.job,
            &self.token,
            &self.webhook,
            &memory,
            &self.connection,
        ];
        names
            .iter()
            .fold(text.to_owned(), |text, name| text.replace(&**name, "NAME"))
    }
}

/// A request that names something of an owner.
#[derive(Clone)]
struct Naming {
    /// The route, as the document has it.
    route: &'static str,
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Option<Json>,
}

fn naming(
    method: Method,
    route: &'static str,
    path: impl Into<String>,
    body: Option<Json>,
) -> Naming {
    Naming {
        route,
        method,
        path: path.into(),
        headers: Vec::new(),
        body,
    }
}

impl Naming {
    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    async fn ask(&self, caller: &Caller<'_>, of: &Owned) -> (u16, String) {
        let mut request = caller.request(self.method.clone(), &self.path);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = &self.body {
            request = request.json(body);
        }
        let answer = Answer::of(request).await;
        (answer.status.as_u16(), of.without(&answer.json.to_string()))
    }
}

/// All requests that name something of an owner by other means than a session in the path, over all protocols.
fn namings(of: &Owned) -> Vec<Naming> {
    [over_rest(of), over_openai(of), over_a2a(of), over_mcp(of)].concat()
}

fn over_rest(of: &Owned) -> Vec<Naming> {
    let Owned {
        session,
        job,
        token,
        webhook,
        memory,
        ..
    } = of;
    let event = json!({ "definition": "desk", "event": "parcel", "fields": { "order": "1" }, "session": session });
    let forget = json!({ "memories": [memory], "apply": true });
    let webhooks = format!("/v1/webhooks/{webhook}");
    let memories = format!("/v1/memories/{memory}");
    let bare = |method, route, path: String| naming(method, route, path, None);
    vec![
        naming(Method::POST, "/v1/events", "/v1/events", Some(event)),
        bare(
            Method::GET,
            "/v1/diff",
            format!("/v1/diff?a={session}&b={session}"),
        ),
        bare(
            Method::GET,
            "/v1/sessions",
            format!("/v1/sessions?after=9000000000000.{session}"),
        ),
        bare(Method::GET, "/v1/jobs/{job}", format!("/v1/jobs/{job}")),
        bare(Method::DELETE, "/v1/jobs/{job}", format!("/v1/jobs/{job}")),
        bare(
            Method::DELETE,
            "/v1/tokens/{name}",
            format!("/v1/tokens/{token}"),
        ),
        bare(Method::DELETE, "/v1/webhooks/{name}", webhooks.clone()),
        bare(
            Method::POST,
            "/v1/webhooks/{name}/resume",
            format!("{webhooks}/resume"),
        ),
        bare(
            Method::POST,
            "/v1/webhooks/{name}/rotation",
            format!("{webhooks}/rotation"),
        ),
        bare(
            Method::DELETE,
            "/v1/webhooks/{name}/rotation",
            format!("{webhooks}/rotation"),
        ),
        bare(
            Method::GET,
            "/v1/memories",
            format!("/v1/memories?session={session}"),
        ),
        bare(Method::GET, "/v1/memories/{memory}", memories.clone()),
        bare(Method::DELETE, "/v1/memories/{memory}", memories.clone()),
        naming(
            Method::POST,
            "/v1/memories/{memory}/rating",
            format!("{memories}/rating"),
            Some(json!({ "rating": 1 })),
        ),
        naming(
            Method::POST,
            "/v1/memories/forget",
            "/v1/memories/forget",
            Some(forget),
        ),
        naming(
            Method::POST,
            "/v1/memories/forget",
            "/v1/memories/forget",
            Some(json!({ "session": session, "apply": true })),
        ),
    ]
}

fn over_openai(of: &Owned) -> Vec<Naming> {
    let Owned { session, line, .. } = of;
    let messages = json!([{ "role": "user", "content": "Hello." }]);
    let chat = json!({ "model": "desk", "messages": messages });
    let mut named = chat.clone();
    named["metadata"] = json!({ "session": session });
    let response = format!("resp_{session}_{line}");
    let before = json!({ "model": "desk", "input": "Hello.", "previous_response_id": response });
    let conversation =
        json!({ "model": "desk", "input": "Hello.", "conversation": format!("conv_{session}") });
    let (chats, responses) = ("/openai/v1/chat/completions", "/openai/v1/responses");
    let one = "/openai/v1/responses/{response}";
    vec![
        naming(Method::POST, chats, chats, Some(chat)).with("x-steersman-session", session),
        naming(Method::POST, chats, chats, Some(named)),
        naming(Method::POST, responses, responses, Some(before)),
        naming(Method::POST, responses, responses, Some(conversation)),
        naming(Method::GET, one, format!("{responses}/{response}"), None),
        naming(
            Method::GET,
            one,
            format!("{responses}/{response}?stream=true"),
            None,
        ),
        naming(
            Method::POST,
            "/openai/v1/responses/{response}/cancel",
            format!("{responses}/{response}/cancel"),
            None,
        ),
    ]
}

fn over_a2a(of: &Owned) -> Vec<Naming> {
    let Owned { session, line, .. } = of;
    let mut all = Vec::new();
    let task = json!({ "id": format!("{session}-{line}") });
    for (method, params) in [
        (
            "SendMessage",
            json!({ "message": said(json!({ "contextId": session })) }),
        ),
        (
            "SendStreamingMessage",
            json!({ "message": said(json!({ "contextId": session })) }),
        ),
        (
            "SendMessage",
            json!({ "message": said(json!({ "taskId": task["id"] })) }),
        ),
        ("GetTask", task.clone()),
        ("CancelTask", task.clone()),
        ("SubscribeToTask", task.clone()),
        ("ListTasks", json!({ "contextId": session })),
    ] {
        let body = call(method, params);
        all.push(
            naming(Method::POST, "/a2a/{definition}", "/a2a/desk", Some(body))
                .with("a2a-version", "1.0"),
        );
    }
    all
}

fn over_mcp(of: &Owned) -> Vec<Naming> {
    let Owned {
        session,
        connection,
        ..
    } = of;
    let mut all = Vec::new();
    let uri = format!("steersman://{session}/receipt.txt");
    for (method, name, mut params) in [
        (
            "tools/call",
            "desk",
            json!({ "name": "desk", "arguments": { "session": session, "message": "Hello." } }),
        ),
        (
            "tools/call",
            "desk",
            json!({ "name": "desk", "arguments": { "session": session } }),
        ),
        ("resources/read", &*uri, json!({ "uri": uri })),
    ] {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let one = naming(Method::POST, "/mcp", "/mcp", Some(call(method, params)));
        all.push(
            one.with("accept", "application/json, text/event-stream")
                .with("mcp-protocol-version", "2026-07-28")
                .with("mcp-method", method)
                .with("mcp-name", name),
        );
    }
    let list = naming(
        Method::POST,
        "/mcp",
        "/mcp",
        Some(call("tools/list", json!({}))),
    );
    all.push(
        list.with("accept", "application/json, text/event-stream")
            .with("mcp-protocol-version", "2025-11-25")
            .with("mcp-session-id", connection),
    );
    let close = naming(Method::DELETE, "/mcp", "/mcp", None);
    all.push(close.with("mcp-session-id", connection));
    all
}

/// Routes that name nothing of an owner: lists, what is made, the server itself, and definitions, which have a test of their own.
const NAMES_NOTHING: &[(&str, &str)] = &[
    ("GET", "/livez"),
    ("GET", "/readyz"),
    ("GET", "/v1/openapi.json"),
    ("GET", "/v1/me"),
    ("POST", "/v1/token/code"),
    ("POST", "/v1/token/exchange"),
    ("GET", "/v1/server"),
    ("POST", "/v1/check"),
    ("POST", "/v1/sessions"),
    ("GET", "/v1/questions"),
    ("GET", "/v1/events/stream"),
    ("GET", "/v1/screens/{screen}"),
    ("POST", "/v1/orders"),
    ("GET", "/v1/memories/search"),
    ("GET", "/v1/tokens"),
    ("POST", "/v1/tokens"),
    ("GET", "/v1/webhooks"),
    ("POST", "/v1/webhooks"),
    ("GET", "/v1/definitions"),
    ("GET", "/openai/v1/models"),
    ("GET", "/.well-known/agent-card.json"),
];

/// Routes that name a definition.
const NAMES_A_DEFINITION: &[(&str, &str)] = &[
    ("GET", "/v1/definitions/{definition}"),
    ("GET", "/v1/definitions/{definition}/graph"),
    ("GET", "/v1/definitions/{definition}/graph.svg"),
    ("GET", "/openai/v1/models/{model}"),
    ("POST", "/agui/{definition}"),
    ("GET", "/agui/{definition}/capabilities"),
    ("POST", "/a2a/{definition}"),
    ("GET", "/a2a/{definition}/.well-known/agent-card.json"),
];

#[test]
fn each_route_of_the_document_is_asked() {
    let of = Owned {
        session: "S".to_owned(),
        line: 1,
        job: "J".to_owned(),
        token: "T".to_owned(),
        webhook: "W".to_owned(),
        memory: 1,
        connection: "C".to_owned(),
    };
    let named = namings(&of);
    for (path, method) in documented() {
        let is = |(of, route): &(&str, &str)| *of == method.as_str() && *route == path;
        let is_asked = path.contains("{session}")
            || named
                .iter()
                .any(|one| one.route == path && one.method == method)
            || NAMES_NOTHING.iter().any(is)
            || NAMES_A_DEFINITION.iter().any(is);
        assert!(
            is_asked,
            "{method} {path}: add a request to `namings`, or say that it names nothing of an owner"
        );
    }
}

/// Ann of the tenant `acme` has one of everything.
async fn has_everything(owner: &Caller<'_>) -> Owned {
    let start = json!({ "model": "desk", "input": "My kettle is broken." });
    let response = owner.post("/openai/v1/responses", start).await.is(200);
    let (session, line) = response["id"].as_str().unwrap()[5..]
        .rsplit_once('_')
        .unwrap();
    let begun = owner
        .post(&format!("/v1/sessions/{session}/reruns"), json!({}))
        .await
        .is(202);
    let made = owner
        .post("/v1/tokens", json!({ "allows": ["read"] }))
        .await
        .is(201);
    owner.served("clerk").await;
    let memories = owner.get("/v1/memories").await.is(200);
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let hello = owner
        .request(Method::POST, "/mcp")
        .json(&call("initialize", hello));
    let hello = hello.header("accept", "application/json, text/event-stream");
    let hello = hello.send().await.unwrap();
    let connection = hello.headers()["mcp-session-id"].to_str().unwrap();
    Owned {
        session: session.to_owned(),
        line: line.parse().unwrap(),
        job: begun["job"].as_str().unwrap().to_owned(),
        token: made["name"].as_str().unwrap().to_owned(),
        webhook: String::new(),
        memory: memories["items"][0]["memory"].as_u64().unwrap(),
        connection: connection.to_owned(),
    }
}

#[tokio::test]
async fn what_others_have_is_answered_like_what_does_not_exist_over_every_protocol() {
    let options = Options {
        definitions: vec![Network::from_yaml(SHOP).build().unwrap()],
        limits: unlimited(),
        ..Options::default()
    };
    let script = format!("{SCRIPT}{SERVED}");
    let world = World::over(Arc::new(MemoryStore::new()), &script, options).await;
    let owner = world.with(world.token(ann()).await);
    let mut of = has_everything(&owner).await;
    // A webhook is told of all subjects, so it is made with a token of the whole tenant.
    let tenant = world.all("acme").await;
    let hook = json!({ "url": "https://hooks.example/", "kinds": ["session.failed"] });
    let made = tenant.post("/v1/webhooks", hook).await.is(201);
    made["name"].as_str().unwrap().clone_into(&mut of.webhook);
    let page = format!("/v1/sessions/{}", of.session);
    let head = owner.get(&page).await.headers["etag"].clone();

    let missing = of.missing();
    let mut callers = callers(&world).await;
    for allowed in Permission::ALL {
        let new = NewToken {
            allows: vec![*allowed],
            ..whole("other")
        };
        callers.push((allowed.word(), world.with(world.token(new).await)));
    }
    for (there, nothing) in namings(&of).iter().zip(&namings(&missing)) {
        for (who, caller) in &callers {
            let found = there.ask(caller, &of).await;
            let none = nothing.ask(caller, &missing).await;
            let Naming { method, path, .. } = there;
            assert_eq!(found, none, "{method} {path} by {who}");
            assert!(
                !found.1.contains("kettle")
                    && !found.1.contains("3990")
                    && !found.1.contains("tea"),
                "{method} {path} by {who}: {}",
                found.1
            );
        }
    }
    // Everything is as it was, and its owner sees it.
    let seen = owner.get(&page).await;
    assert_eq!(seen.headers["etag"], head);
    assert_eq!(seen.is(200)["inbox"], 0);
    owner.get(&format!("/v1/jobs/{}", of.job)).await.is(200);
    owner
        .get(&format!("/v1/memories/{}", of.memory))
        .await
        .is(200);
    let tokens = owner.get("/v1/tokens?limit=200").await.is(200);
    let is_there = |row: &Json| row["name"] == json!(of.token) && row["revoked"].is_null();
    assert!(
        tokens["items"].as_array().unwrap().iter().any(is_there),
        "{tokens:#}"
    );
    let hooks = tenant.get("/v1/webhooks").await.is(200);
    assert_eq!(
        (&hooks["items"][0]["name"], &hooks["items"][0]["secrets"]),
        (&json!(of.webhook), &json!(1))
    );
    let list = owner
        .request(Method::POST, "/mcp")
        .json(&call("tools/list", json!({})));
    let list = list.header("accept", "application/json, text/event-stream");
    let list = list.header("mcp-session-id", &of.connection);
    assert_eq!(
        list.header("mcp-protocol-version", "2025-11-25")
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
}

#[tokio::test]
async fn a_definition_that_a_token_may_not_start_is_answered_like_one_that_is_not_served() {
    let world = World::shop().await;
    let new = NewToken {
        definitions: names(&["shop"]),
        ..whole("")
    };
    let caller = world.with(world.token(new).await);
    for (method, route) in NAMES_A_DEFINITION {
        let ask = async |name: &str| {
            let path = route.replace("{definition}", name).replace("{model}", name);
            let mut request = caller.request(method.parse().unwrap(), &path);
            if *method == "POST" {
                request = request.json(&body(route)).header("a2a-version", "1.0");
            }
            let answer = Answer::of(request).await;
            (
                answer.status.as_u16(),
                answer.json.to_string().replace(name, "NAME"),
            )
        };
        let served = ask("desk").await;
        assert_eq!(served, ask("none").await, "{method} {route}");
        assert_eq!(served.0, 404, "{method} {route}: {}", served.1);
        assert!(matches!(ask("shop").await.0, 200 | 400), "{method} {route}");
    }
    let start = |name: &str| json!({ "definition": name });
    let served = caller
        .post("/v1/sessions", start("desk"))
        .await
        .fails(404, "definition");
    let none = caller
        .post("/v1/sessions", start("none"))
        .await
        .fails(404, "definition");
    assert_eq!(served.replace("desk", "none"), none);
}
