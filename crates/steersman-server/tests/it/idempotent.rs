//! A request that is sent twice under one key is carried out once, also after the process was replaced.

use crate::world::{Answer, Caller, SCRIPT, World, scope, whole};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::Network;
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::{NewToken, Options};

async fn keyed(caller: &Caller<'_>, path: &str, key: &str, body: &Json) -> Answer {
    let request = caller.request(Method::POST, path).json(body);
    Answer::of(request.header("idempotency-key", key)).await
}

#[tokio::test]
async fn a_start_and_a_message_happen_once() {
    let store = Arc::new(MemoryStore::new());
    let script = "desk: [ One., Two., Three. ]";
    let world = World::over(store.clone(), script, Options::default()).await;
    let all = world.all("").await;
    let start = json!({ "definition": "desk", "message": "Hello." });
    let first = keyed(&all, "/v1/sessions", "k1", &start).await;
    assert!(!first.headers.contains_key("idempotent-replay"));
    let first = first.is(201);
    let again = keyed(&all, "/v1/sessions", "k1", &start).await;
    assert_eq!(again.headers["idempotent-replay"], "true");
    assert_eq!(again.is(201)["session"], first["session"]);
    let other = json!({ "definition": "desk", "message": "Something else." });
    keyed(&all, "/v1/sessions", "k1", &other)
        .await
        .fails(409, "repeated");
    let session = first["session"].as_str().unwrap();

    let path = format!("/v1/sessions/{session}/messages");
    let say = json!({ "text": "Once." });
    let request = all
        .request(Method::POST, &path)
        .json(&say)
        .header("idempotency-key", "k2");
    let turn = Answer::of(request.header("prefer", "wait=30"))
        .await
        .is(200);
    world.server.stop();

    // Another process over the same store knows it, too.
    let world = World::over(store, script, Options::default()).await;
    let later = world.with(all.token);
    let again = keyed(&later, &path, "k2", &say).await;
    assert_eq!(again.headers["idempotent-replay"], "true");
    let again = again.is(202);
    assert_eq!(again["fate"], "taken");
    assert!(again["line"].as_u64() < turn["line"].as_u64());
    keyed(&later, &path, "k2", &json!({ "text": "Twice." }))
        .await
        .fails(409, "repeated");
    let path = format!("/v1/sessions/{session}/events?kinds=heard,settled&until=settled");
    let heard = later.stream(&path, None).await.rest().await;
    let texts: Vec<&Json> = heard
        .iter()
        .map(|f| &f.data["text"])
        .filter(|t| t.is_string())
        .collect();
    assert_eq!(texts, [&json!("Hello."), &json!("Once.")]);

    // Another tenant's keys are its own.
    let other = world.all("acme").await;
    let theirs = keyed(&other, "/v1/sessions", "k1", &start).await.is(201);
    assert_ne!(theirs["session"], first["session"]);
}

#[tokio::test]
async fn a_decision_that_is_repeated_finds_the_one_that_was_made() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let session = all.start("Broken.").await;
    let question = all.question(&session).await;
    let path = format!("/v1/sessions/{session}/questions/{question}/approve");
    let approve = json!({ "as": "manager" });
    let first = keyed(&all, &path, "yes", &approve).await.is(202);
    let again = keyed(&all, &path, "yes", &approve).await.is(202);
    assert_eq!(first, again);
}

#[tokio::test]
async fn an_answer_is_known_by_its_question() {
    let shop = "
steersman: 1
name: shop
tools:
  size: { description: Ask for the size., parameters: { question: string }, ask: user }
agents: { clerk: { system: You sell., tools: [size] } }
";
    let script = "
clerk:
  - call: { size: { question: Which size? } }
  - call: { size: { question: And the width? } }
  - Sold.
";
    let options = Options {
        definitions: vec![Network::from_yaml(shop).build().unwrap()],
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), script, options).await;
    let all = world.all("").await;
    let start = json!({ "definition": "shop", "message": "Shoes, please." });
    let request = all.request(Method::POST, "/v1/sessions").json(&start);
    let turn = Answer::of(request.header("prefer", "wait=30"))
        .await
        .is(200);
    let session = turn["session"].as_str().unwrap();
    let messages = format!("/v1/sessions/{session}/messages");
    let say = json!({ "text": "Quickly." });
    keyed(&all, &messages, "said", &say).await.is(202);
    let question = all.question(session).await;
    let path = |question: &str| format!("/v1/sessions/{session}/questions/{question}/answer");
    let forty = json!({ "text": "40" });
    // The key of something else is not that of an answer, which stays unsaid.
    keyed(&all, &path(&question), "said", &forty)
        .await
        .fails(409, "repeated");
    assert_eq!(all.question(session).await, question);
    let first = keyed(&all, &path(&question), "size", &forty).await.is(202);
    let again = keyed(&all, &path(&question), "size", &forty).await;
    assert_eq!(again.headers["idempotent-replay"], "true");
    assert_eq!(again.is(202)["line"], first["line"]);
    // The next question needs a key of its own.
    let next = loop {
        let open = all.get(&format!("/v1/sessions/{session}/questions")).await;
        let open = open.is(200);
        let ids = open["items"].as_array().unwrap().iter();
        let mut ids = ids.map(|row| row["id"].as_str().unwrap().to_owned());
        if let Some(next) = ids.find(|id| *id != question) {
            break next;
        }
    };
    keyed(&all, &path(&next), "size", &forty)
        .await
        .fails(409, "repeated");
}

#[tokio::test]
async fn a_key_belongs_to_the_subject_or_to_a_token_without_one() {
    let world = World::new("desk: [ One. ]").await;
    let start = json!({ "definition": "desk", "message": "Hello." });
    let (first, successor) = (world.all("").await, world.all("").await);
    keyed(&first, "/v1/sessions", "k", &start).await.is(201);
    keyed(&successor, "/v1/sessions", "k", &start)
        .await
        .fails(409, "repeated");
    let of_ann = || async {
        world.with(
            world
                .token(NewToken {
                    scope: scope("", Some("ann")),
                    ..whole("")
                })
                .await,
        )
    };
    let (first, successor) = (of_ann().await, of_ann().await);
    let begun = keyed(&first, "/v1/sessions", "k", &start).await.is(201);
    let again = keyed(&successor, "/v1/sessions", "k", &start).await;
    assert_eq!(again.headers["idempotent-replay"], "true");
    assert_eq!(again.is(201)["session"], begun["session"]);

    // The key of a session that an event starts is one of the tenant: another subject is told so, and does not learn which session it is.
    let parcel = json!({ "definition": "desk", "event": "parcel", "fields": { "order": "7" } });
    let begun = first.post("/v1/events", parcel.clone()).await.is(202);
    let bob = NewToken {
        scope: scope("", Some("bob")),
        ..whole("")
    };
    let bob = world.with(world.token(bob).await);
    let why = bob.post("/v1/events", parcel).await.fails(409, "exists");
    assert!(!why.contains(begun["session"].as_str().unwrap()), "{why}");
}

#[tokio::test]
async fn a_request_that_moved_the_session_itself_is_repeated() {
    let world = World::new("desk: [ One., Two. ]").await;
    let all = world.all("").await;
    let session = all.start("Hello.").await;
    let head = all.get(&format!("/v1/sessions/{session}")).await;
    let tag = head.headers["etag"].to_str().unwrap().to_owned();
    let fork = |key: &'static str| {
        let path = format!("/v1/sessions/{session}/branches");
        let request = all.request(Method::POST, &path).header("if-match", &tag);
        let body = json!({ "label": "other" });
        Answer::of(request.header("idempotency-key", key).json(&body))
    };
    let first = fork("once").await.is(201);
    let again = fork("once").await;
    assert_eq!(again.headers["idempotent-replay"], "true");
    assert_eq!(again.is(201)["branch"], first["branch"]);
    fork("anew").await.fails(412, "moved");
}

#[tokio::test]
async fn a_key_has_a_form() {
    let world = World::new("desk: [ One. ]").await;
    let all = world.all("").await;
    let start = json!({ "definition": "desk" });
    keyed(&all, "/v1/sessions", &"x".repeat(129), &start)
        .await
        .fails(400, "query");
}
