//! Every route, asked with tokens that must not see a session: the answer is the one for what does not exist. What is named by other means
//! than a session in the path is in `unseen.rs`.

use crate::world::{Answer, Caller, SCRIPT, World, encoded, scope, unlimited, whole};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::machine::stored::ids::Time;
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::{NewToken, Options, Permission, openapi};

/// All routes of the document, with their methods.
pub(crate) fn documented() -> Vec<(String, Method)> {
    let document = openapi();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            all.push((path.clone(), method.to_uppercase().parse().unwrap()));
        }
    }
    all
}

/// A request of a route about one session.
struct Route {
    method: Method,
    path: String,
    body: Option<Json>,
}

/// All routes of the document that are about one session, with bodies that fit.
fn routes() -> Vec<Route> {
    let document = openapi();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        if !path.contains("{session}") {
            continue;
        }
        for (method, _) in item.as_object().unwrap() {
            let last = path.rsplit('/').next().unwrap();
            let body = match last {
                "messages" => json!({ "text": "Hello." }),
                "answer" => json!({ "as": "manager", "text": "Yes." }),
                "resolve" => json!({ "as": "manager", "how": "fail" }),
                "approve" | "reject" => json!({ "as": "manager" }),
                "cancel" if !path.contains("branches") => json!({ "what": "turn" }),
                "rewind" => json!({ "at": 1 }),
                "join" => json!({ "branches": ["main"] }),
                "edit" => json!({ "state": { "balance": 1 } }),
                "migrate" => json!({ "config": { "house": "main" } }),
                "rating" => json!({ "rating": 3 }),
                _ => json!({}),
            };
            routes.push(Route {
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                body: (method == "post").then_some(body),
            });
        }
    }
    assert!(routes.len() > 30, "{} routes", routes.len());
    routes
}

impl Route {
    async fn ask(&self, caller: &Caller<'_>, session: &str, question: &str) -> (u16, Json) {
        let effect = question.split('@').next().unwrap();
        let path = self
            .path
            .replace("{session}", session)
            .replace("{question}", question)
            .replace("{branch}", "main")
            .replace("{what}", "1")
            .replace("{line}", "1")
            .replace("{effect}", effect)
            .replace("{screen}", "show")
            .replace("{search}", "1.1")
            .replace("{name}", "receipt.txt");
        let mut request = caller.request(self.method.clone(), &path);
        if let Some(body) = &self.body {
            request = request.json(body);
        }
        let answer = Answer::of(request).await;
        let text = answer.json.to_string().replace(session, "SESSION");
        (answer.status.as_u16(), serde_json::from_str(&text).unwrap())
    }
}

/// Tokens that must not see a session of Ann of the tenant `acme`.
fn strangers() -> [(&'static str, NewToken); 5] {
    [
        ("another tenant", whole("other")),
        ("no tenant", whole("")),
        (
            "another subject",
            NewToken {
                scope: scope("acme", Some("bob")),
                ..whole("")
            },
        ),
        (
            "expired",
            NewToken {
                scope: scope("acme", Some("ann")),
                expires: Some(Time(1)),
                ..whole("")
            },
        ),
        (
            "nothing allowed",
            NewToken {
                scope: scope("acme", Some("ann")),
                allows: Vec::new(),
                ..whole("")
            },
        ),
    ]
}

/// Callers that must not see anything of Ann: the strangers, one without a token, and one whose token was revoked.
pub(crate) async fn callers(world: &World) -> Vec<(&'static str, Caller<'_>)> {
    let mut callers = Vec::new();
    for (who, new) in strangers() {
        callers.push((who, world.with(world.token(new).await)));
    }
    callers.push(("none", world.with(String::new())));
    let revoked = world.token(ann()).await;
    let name = revoked.split('_').nth(1).unwrap();
    let store = world.steersman.engine().store();
    assert!(store.revoke("acme", name, Time(1)).await.unwrap());
    callers.push(("revoked", world.with(revoked)));
    callers
}

/// A token of Ann of the tenant `acme` that may do everything.
pub(crate) fn ann() -> NewToken {
    NewToken {
        scope: scope("acme", Some("ann")),
        ..whole("")
    }
}

#[tokio::test]
async fn what_a_token_does_not_see_is_answered_like_what_does_not_exist() {
    let options = Options {
        limits: unlimited(),
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), SCRIPT, options).await;
    let owner = world.with(world.token(ann()).await);
    let session = owner.start("My kettle is broken.").await;
    let question = owner.question(&session).await;
    // The lines that the session writes of itself are on disk once nobody drives it.
    let page = format!("/v1/sessions/{session}");
    while world.steersman.engine().driven(&session).is_some() {
        owner.get(&page).await;
    }
    let head = owner.get(&page).await.headers["etag"].clone();
    let missing = "aa0000000000zzzz";

    let callers = callers(&world).await;
    for route in routes() {
        for (who, caller) in &callers {
            let there = route.ask(caller, &session, &question).await;
            let nothing = route.ask(caller, missing, &question).await;
            let Route { method, path, .. } = &route;
            assert_eq!(there, nothing, "{method} {path} by {who}");
            assert!(
                matches!(there.0, 401 | 403 | 404),
                "{method} {path} by {who}: {there:?}"
            );
            let text = there.1.to_string();
            assert!(!text.contains("kettle") && !text.contains("3990"), "{text}");
        }
    }
    // Each permission alone: what it does not allow is refused in the same way for both.
    for allowed in Permission::ALL {
        let new = NewToken {
            scope: scope("other", None),
            allows: vec![*allowed],
            ..whole("")
        };
        let caller = world.with(world.token(new).await);
        for route in routes() {
            let there = route.ask(&caller, &session, &question).await;
            let nothing = route.ask(&caller, missing, &question).await;
            assert_eq!(
                there, nothing,
                "{} {} with {allowed}",
                route.method, route.path
            );
        }
    }
    // Nothing of all this has changed the session.
    let page = owner.get(&format!("/v1/sessions/{session}")).await;
    assert_eq!(page.headers["etag"], head);
    assert_eq!(page.is(200)["inbox"], 0);
}

#[tokio::test]
async fn lists_have_what_the_token_sees() {
    let world = World::new(SCRIPT).await;
    let ann = world.with(
        world
            .token(NewToken {
                scope: scope("acme", Some("ann")),
                ..whole("")
            })
            .await,
    );
    let session = ann.start("Broken.").await;
    let tenant = world.all("acme").await;
    let own = tenant.get("/v1/screens/pending").await.is(200);
    assert_eq!(own["waits"][0]["session"], json!(session), "{own:#}");
    for stranger in [world.all("other").await, world.all("").await] {
        let rows = stranger.get("/v1/screens/sessions").await.is(200);
        assert_eq!(rows["rows"], json!([]), "{rows:#}");
        let waits = stranger.get("/v1/screens/pending").await.is(200);
        assert_eq!(waits["waits"], json!([]), "{waits:#}");
    }
    for (path, sees) in [("/v1/sessions", true), ("/v1/questions", true)] {
        let own = tenant.get(path).await.is(200);
        assert_eq!(
            own["items"][0]["session"] == json!(session),
            sees,
            "{path}: {own:#}"
        );
        for stranger in [world.all("other").await, world.all("").await] {
            assert_eq!(
                stranger.get(path).await.is(200)["items"],
                json!([]),
                "{path}"
            );
        }
    }
    let bob = world.with(
        world
            .token(NewToken {
                scope: scope("acme", Some("bob")),
                ..whole("")
            })
            .await,
    );
    assert_eq!(bob.get("/v1/sessions").await.is(200)["items"], json!([]));

    // A token with a subject makes and lists tokens of this subject alone.
    let listed = bob.get("/v1/tokens").await.is(200);
    let subjects: Vec<&Json> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| &t["subject"])
        .collect();
    assert_eq!(subjects, [&json!("bob")]);
    let foreign = bob
        .post(
            "/v1/tokens",
            json!({ "subject": "ann", "allows": ["read"] }),
        )
        .await;
    foreign.fails(403, "scope");
    let made = bob
        .post("/v1/tokens", json!({ "allows": ["read"] }))
        .await
        .is(201);
    let new = world.with(made["token"].as_str().unwrap().to_owned());
    assert_eq!(new.get("/v1/me").await.is(200)["subject"], "bob");
    let name = ann.get("/v1/me").await.is(200)["name"].clone();
    let foreign = bob.request(
        Method::DELETE,
        &format!("/v1/tokens/{}", name.as_str().unwrap()),
    );
    Answer::of(foreign).await.fails(404, "unknown_token");
    ann.get("/v1/me").await.is(200);
}

#[tokio::test]
async fn events_of_one_tenant_reach_no_session_of_another() {
    let world = World::new("desk: [ One., Two., Three. ]").await;
    let event = json!({ "definition": "desk", "event": "parcel", "fields": { "order": "4711" } });
    let mut sessions = Vec::new();
    for tenant in ["", "acme", "other"] {
        let caller = world.all(tenant).await;
        let sent = caller.post("/v1/events", event.clone()).await.is(202);
        assert_eq!(sent["sent"], "started", "{tenant}: {sent:#}");
        sessions.push(sent["session"].to_string());
    }
    sessions.sort_unstable();
    sessions.dedup();
    assert_eq!(sessions.len(), 3);
    // A session of others cannot be named as the target.
    let acme = world.all("acme").await;
    let mine = acme.start("Hello.").await;
    let aimed = |session: &str| json!({ "definition": "desk", "event": "parcel", "fields": { "order": "1" }, "session": session });
    let other = world.all("other").await;
    let there = other
        .post("/v1/events", aimed(&mine))
        .await
        .fails(404, "session");
    let nothing = other
        .post("/v1/events", aimed("aa0000000000zzzz"))
        .await
        .fails(404, "session");
    assert_eq!(there.replace(&mine, "aa0000000000zzzz"), nothing);
}

/// A call of the Agent2Agent protocol.
pub(crate) fn call(method: &str, params: Json) -> Json {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// A message of the Agent2Agent protocol, with what else it has.
pub(crate) fn said(more: Json) -> Json {
    let mut message =
        json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "Hello." }] });
    let fields = message.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    message
}

/// Bodies of routes that are about no session.
pub(crate) fn body(path: &str) -> Json {
    match path {
        "/v1/sessions" => json!({ "definition": "desk" }),
        "/v1/events" => json!({ "definition": "desk", "event": "parcel", "fields": {} }),
        "/v1/orders" => json!({ "act": "pause", "where": "status = waits" }),
        "/v1/webhooks" => json!({ "url": "https://hooks.example/", "kinds": ["session.settled"] }),
        "/v1/memories/forget" => json!({ "memories": [1] }),
        "/v1/memories/{memory}/rating" => json!({ "rating": 3 }),
        "/agui/{definition}" => json!({ "threadId": "t", "runId": "r" }),
        "/a2a/{definition}" => call("SendMessage", json!({ "message": said(json!({})) })),
        "/openai/v1/chat/completions" | "/openai/v1/responses" => json!({ "model": "desk" }),
        _ => json!({}),
    }
}

#[tokio::test]
async fn routes_about_no_session_need_a_valid_token_that_allows_them() {
    let options = Options {
        limits: unlimited(),
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), SCRIPT, options).await;
    let expired = NewToken {
        expires: Some(Time(1)),
        ..whole("")
    };
    let revoked = world.token(whole("")).await;
    let name = revoked.split('_').nth(1).unwrap();
    let store = world.steersman.engine().store();
    assert!(store.revoke("", name, Time(1)).await.unwrap());
    let nothing = NewToken {
        allows: Vec::new(),
        ..whole("")
    };
    let callers = [
        (401, world.with(world.token(expired).await)),
        (401, world.with(revoked)),
        (401, world.with(String::new())),
        (403, world.with(world.token(nothing).await)),
    ];
    let mut asked = 0;
    for (path, method) in documented() {
        // These need no token, or none that allows anything.
        let is_open = matches!(
            &*path,
            "/livez"
                | "/readyz"
                | "/v1/openapi.json"
                | "/v1/me"
                | "/v1/token/code"
                | "/v1/token/exchange"
        );
        if path.contains("{session}") || is_open {
            continue;
        }
        let place = path
            .replace("{definition}", "desk")
            .replace("{model}", "desk")
            .replace("{response}", "resp_aa0000000000zzzz_1")
            .replace("{memory}", "1")
            .replace("{job}", "0123456789abcdef0123456789abcdef")
            .replace("{name}", "abcdefgh");
        for (status, caller) in &callers {
            let mut request = caller.request(method.clone(), &place);
            if method == Method::POST {
                request = request.json(&body(&path)).header("a2a-version", "1.0");
            }
            let answer = Answer::of(request).await;
            assert_eq!(answer.status, *status, "{method} {path}: {:#}", answer.json);
            asked += 1;
        }
    }
    for (status, caller) in &callers {
        // What the protocol refuses for want of a permission is an answer of its own.
        if *status == 401 {
            let request = caller.request(Method::POST, "/mcp").json(&json!({}));
            assert_eq!(Answer::of(request).await.status, *status);
        }
    }
    assert!(asked > 120, "{asked}");
}

#[tokio::test]
async fn what_is_compared_listed_and_followed_is_the_own() {
    let world = World::shop().await;
    let (acme, other) = (world.all("acme").await, world.all("other").await);
    let theirs = acme.served("clerk").await;
    let own = other.served("helper").await;

    // A label of others is unknown, and is not named.
    let path = format!("/v1/sessions?where={}", encoded("colour = red"));
    let fault = other.get(&path).await;
    assert!(!fault.json.to_string().contains("ann"), "{:#}", fault.json);
    fault.fails(400, "query");
    assert_eq!(other.passing("network = shop").await, [&*own]);
    let order = json!({ "act": "pause", "where": "network = shop", "apply": true });
    let gave = other.post("/v1/orders", order).await.is(200);
    assert_eq!(gave["count"], 1);
    assert_eq!(gave["items"][0]["session"], json!(own));

    // Sides of a comparison.
    let missing = "aa0000000000zzzz";
    let sides = |a: &str, b: &str| format!("/v1/diff?a={a}&b={b}");
    let there = other.get(&sides(&own, &theirs)).await.fails(404, "session");
    let nothing = other.get(&sides(&own, missing)).await.fails(404, "session");
    assert_eq!(there.replace(&theirs, missing), nothing);

    // Memories of others do not exist, whatever is done with them.
    let listed = acme.get("/v1/memories").await.is(200);
    let id = listed["items"][0]["memory"].as_u64().unwrap();
    assert_eq!(other.get("/v1/memories").await.is(200)["items"], json!([]));
    let place = format!("/v1/memories/{id}");
    other.get(&place).await.fails(404, "memory");
    let rating = json!({ "rating": 1 });
    other
        .post(&format!("{place}/rating"), rating)
        .await
        .fails(404, "memory");
    let gone = other.request(Method::DELETE, &place);
    Answer::of(gone).await.fails(404, "memory");
    let forget = json!({ "memories": [id], "apply": true });
    other
        .post("/v1/memories/forget", forget)
        .await
        .fails(404, "memory");
    let forget = json!({ "scope": "customer/ann", "apply": true });
    let forgot = other.post("/v1/memories/forget", forget).await.is(200);
    assert_eq!(forgot["count"], 0);
    let found = other.get("/v1/memories/search?query=tea").await.is(200);
    assert_eq!(found["items"], json!([]));
    acme.get(&place).await.is(200);

    // Jobs of others do not exist.
    let begun = acme
        .post(&format!("/v1/sessions/{theirs}/reruns"), json!({}))
        .await
        .is(202);
    let job = format!("/v1/jobs/{}", begun["job"].as_str().unwrap());
    other.get(&job).await.fails(404, "job");
    Answer::of(other.request(Method::DELETE, &job))
        .await
        .fails(404, "job");
    acme.get(&job).await.is(200);
}

#[tokio::test]
async fn a_stream_of_sessions_tells_nothing_of_others() {
    let world = World::shop().await;
    let (acme, other) = (world.all("acme").await, world.all("other").await);
    let mut stream = other.stream("/v1/events/stream", None).await;
    assert_eq!(stream.next().await.unwrap().event, "hello");
    acme.served("clerk").await;
    let own = other.served("helper").await;
    loop {
        let frame = stream.next().await.unwrap();
        assert_eq!(frame.data["session"], json!(own), "{frame:?}");
        if frame.data["status"] == "answered" {
            break;
        }
    }
}
