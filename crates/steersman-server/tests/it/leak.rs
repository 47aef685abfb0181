//! Every route, asked with tokens that must not see a session: the answer is the one for what does not exist.

use crate::world::{Answer, Caller, SCRIPT, World, scope, whole};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::machine::stored::ids::Time;
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::{Limits, NewToken, Options, Permission, openapi};

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

#[tokio::test]
async fn what_a_token_does_not_see_is_answered_like_what_does_not_exist() {
    let limits = Limits {
        rate: 100_000,
        burst: 100_000,
        failures: 100_000,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), SCRIPT, options).await;
    let owner = world.with(
        world
            .token(NewToken {
                scope: scope("acme", Some("ann")),
                ..whole("")
            })
            .await,
    );
    let session = owner.start("My kettle is broken.").await;
    let question = owner.question(&session).await;
    let head = owner.get(&format!("/v1/sessions/{session}")).await.headers["etag"].clone();
    let missing = "aa0000000000zzzz";

    let mut callers = Vec::new();
    for (who, new) in strangers() {
        callers.push((who, world.with(world.token(new).await)));
    }
    callers.push(("none", world.with(String::new())));
    let revoked = world.with(
        world
            .token(NewToken {
                scope: scope("acme", Some("ann")),
                ..whole("")
            })
            .await,
    );
    let name = revoked.token.split('_').nth(1).unwrap();
    let store = world.steersman.engine().store();
    assert!(store.revoke("acme", name, Time(1)).await.unwrap());
    callers.push(("revoked", revoked));

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
