//! A client reaches by no other way what its token does not allow: values that decide about approvals, questions of others, tools and agents
//! that it is not offered, keys and events that are not its own, and answers that it may not read.

use crate::world::{Answer, World, names, scope, unlimited};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::Network;
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::{NewToken, Options, Permission};

const GATE: &str = "
steersman: 1
name: gate
config: { limit: { default: 1000 }, house: { default: main, clients: true } }
state: { paid: optional string }
tools:
  allowed: { description: Asks the boss., parameters: { question: string }, ask: boss }
  danger:
    description: Changes the world.
    parameters: { to: string }
    effect: unsafe
    approve: { when: config.limit < 1000000, by: boss }
    command: [echo, '{{ args.to }}']
    set: { paid: '{{ args.to }}' }
events:
  hello: { fields: { k: string }, id: '{{ event.k }}', session: '{{ event.k }}', start: { message: Hello. } }
agents:
  boss: { person: { role: boss } }
  desk: { system: You ask., tools: [allowed] }
  adm: { system: You change., tools: [danger] }
entry: desk
";

const SCRIPT: &str = "
desk:
  - call: { allowed: { question: May I? } }
  - He said it.
  - One.
  - Two.
  - Three.
adm:
  - call: { danger: { to: adm } }
  - Done.
";

fn options() -> Options {
    Options {
        definitions: vec![Network::from_yaml(GATE).build().unwrap()],
        limits: unlimited(),
        ..Options::default()
    }
}

async fn world() -> World {
    World::over(Arc::new(MemoryStore::new()), SCRIPT, options()).await
}

fn token(allows: &[Permission], roles: &[&str], subject: Option<&str>) -> NewToken {
    NewToken {
        scope: scope("", subject),
        allows: allows.to_vec(),
        roles: names(roles),
        ..NewToken::default()
    }
}

fn start() -> Json {
    json!({ "definition": "gate", "message": "Hello." })
}

/// Starts a session, and waits until it settles. Returns its id.
async fn begun(world: &World) -> String {
    let all = world.all("").await;
    let request = all.request(Method::POST, "/v1/sessions").json(&start());
    let turn = Answer::of(request.header("prefer", "wait=30"))
        .await
        .is(200);
    turn["session"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_client_sets_the_values_of_config_that_are_left_to_clients() {
    let world = world().await;
    let all = world.all("").await;
    let session = begun(&world).await;
    let at = |part: &str| format!("/v1/sessions/{session}/{part}");
    for (name, value, status) in [
        ("limit", json!(9_999_999), 403),
        ("house", json!("side"), 0),
    ] {
        let config = json!({ name: value });
        let mut body = start();
        body["config"] = config.clone();
        let tried = [
            all.post("/v1/sessions", body).await,
            all.post(&at("reruns"), json!({ "config": config })).await,
            all.post(&at("migrate"), json!({ "config": config, "as": "user" }))
                .await,
        ];
        for answer in tried {
            if status == 403 {
                let why = answer.fails(403, "scope");
                assert!(why.contains("`config.limit`"), "{why}");
            } else {
                assert_ne!(answer.status, 403, "{:#}", answer.json);
            }
        }
        let body = json!({
            "act": "migrate", "where": "definition = gate", "config": { name: value }, "apply": true, "as": "user",
        });
        let gave = all.post("/v1/orders", body).await.is(200);
        let one = &gave["items"][0];
        assert_eq!(
            one["why"].to_string().contains("left to clients"),
            status == 403,
            "{gave:#}"
        );
    }
}

#[tokio::test]
async fn a_question_is_answered_by_those_who_are_asked_whichever_way() {
    use Permission::{Decide, Read, Write};
    let world = world().await;
    let session = begun(&world).await;
    let all = world.all("").await;
    let question = all.question(&session).await;
    let effect = question.split('@').next().unwrap();
    let says = json!({ "text": "Yes, allowed.", "to": effect });
    let paths = [
        format!("/v1/sessions/{session}/messages"),
        format!("/v1/sessions/{session}/branches/main/messages"),
    ];
    for path in &paths {
        let writes = world.with(world.token(token(&[Read, Write], &[], None)).await);
        writes.post(path, says.clone()).await.fails(403, "scope");
        let decides = world.with(
            world
                .token(token(&[Read, Write, Decide], &["user"], None))
                .await,
        );
        let why = decides.post(path, says.clone()).await.fails(422, "refused");
        assert!(why.contains("only `boss` may answer this"), "{why}");
    }
    assert_eq!(all.question(&session).await, question);
    let boss = world.with(
        world
            .token(token(&[Read, Write, Decide], &["boss"], None))
            .await,
    );
    let answered = boss.request(Method::POST, &paths[0]).json(&says);
    let turn = Answer::of(answered.header("prefer", "wait=30"))
        .await
        .is(200);
    assert_eq!(turn["answer"], "He said it.", "{turn:#}");
}

#[tokio::test]
async fn a_join_calls_no_tool_that_the_session_could_not_call() {
    use Permission::{Read, Time, Write};
    let world = world().await;
    let session = begun(&world).await;
    let all = world.all("").await;
    let question = all.question(&session).await;
    let answer = json!({ "text": "Yes.", "as": "boss" });
    let boss = world.with(world.token(token(Permission::ALL, &["boss"], None)).await);
    let path = format!("/v1/sessions/{session}/questions/{question}/answer");
    boss.post(&path, answer).await.is(202);
    let settled = format!("/v1/sessions/{session}/events?until=settled");
    all.stream(&settled, None).await.rest().await;
    let times = world.with(world.token(token(&[Read, Time], &[], None)).await);
    let fork = json!({ "label": "other", "say": "Hello." });
    times
        .post(&format!("/v1/sessions/{session}/branches"), fork)
        .await
        .is(201);
    let join = json!({ "branches": ["other"], "then": "danger", "args": { "to": "x" } });
    let path = format!("/v1/sessions/{session}/join");
    times.post(&path, join.clone()).await.fails(403, "scope");
    let writes = world.with(world.token(token(&[Read, Time, Write], &[], None)).await);
    let why = writes.post(&path, join).await.fails(403, "scope");
    assert!(why.contains("not offered this tool"), "{why}");
}

#[tokio::test]
async fn a_session_begins_with_an_entry_of_its_definition() {
    let world = world().await;
    let all = world.all("").await;
    for entry in ["adm", "boss", "nope"] {
        let mut body = start();
        body["entry"] = entry.into();
        let why = all.post("/v1/sessions", body).await.fails(400, "body");
        assert!(why.contains("does not begin with this agent"), "{why}");
    }
    let mut body = start();
    body["entry"] = "desk".into();
    all.post("/v1/sessions", body).await.is(201);
}

#[tokio::test]
async fn a_subject_takes_no_key_and_sends_no_event_of_others() {
    use Permission::{Events, Read, Write};
    let world = world().await;
    let bob = world.with(world.token(token(&[Read, Write], &[], Some("bob"))).await);
    let mut body = start();
    body["key"] = "order-7".into();
    let why = bob
        .post("/v1/sessions", body.clone())
        .await
        .fails(403, "scope");
    assert!(why.contains("chooses no `key`"), "{why}");
    let event = json!({ "definition": "gate", "event": "hello", "fields": { "k": "order-7" } });
    bob.post("/v1/events", event.clone())
        .await
        .fails(403, "scope");
    let backend = world.with(world.token(token(&[Events], &[], None)).await);
    let sent = backend.post("/v1/events", event).await.is(202);
    assert_eq!(sent["sent"], "started");
    let shop = world.with(world.token(token(&[Read, Write], &[], None)).await);
    body["key"] = "order-8".into();
    shop.post("/v1/sessions", body).await.is(201);
}

#[tokio::test]
async fn who_may_not_read_is_told_no_answer() {
    use Permission::{Read, Time, Write};
    let world = world().await;
    let session = begun(&world).await;
    let writes = world.with(world.token(token(&[Write], &[], None)).await);
    let path = format!("/v1/sessions/{session}/messages");
    let say = json!({ "text": "What did he say?" });
    let waits = writes.request(Method::POST, &path).json(&say);
    Answer::of(waits.header("prefer", "wait=5"))
        .await
        .fails(403, "scope");
    // Without an answer it may speak.
    writes.post(&path, say).await.is(202);
    let chat = json!({ "model": "gate", "messages": [{ "role": "user", "content": "Hello." }] });
    let chat = writes
        .request(Method::POST, "/openai/v1/chat/completions")
        .json(&chat);
    let chat = chat.header("x-steersman-session", &session);
    assert_eq!(Answer::of(chat).await.status, 403);
    let response = json!({ "model": "gate", "input": "Hello.", "conversation": session });
    assert_eq!(
        writes.post("/openai/v1/responses", response).await.status,
        403
    );
    let times = world.with(world.token(token(&[Time], &[], None)).await);
    times
        .post(&format!("/v1/sessions/{session}/reruns"), json!({}))
        .await
        .fails(403, "scope");
    let both = world.with(world.token(token(&[Read, Time], &[], None)).await);
    both.post(&format!("/v1/sessions/{session}/reruns"), json!({}))
        .await
        .is(202);
}

#[tokio::test]
async fn a_request_that_went_away_begins_one_session_when_it_comes_again() {
    // Nobody drives the store yet, so the first request waits.
    let world = World::undriven(Arc::new(MemoryStore::new()), SCRIPT, options()).await;
    let all = world.all("").await;
    let chat = json!({ "model": "gate", "messages": [{ "role": "user", "content": "Hello." }] });
    let path = "/openai/v1/chat/completions";
    let first = all.request(Method::POST, path).json(&chat);
    let first = tokio::spawn(async move { first.send().await });
    let count = |page: &Json| page["items"].as_array().unwrap().len();
    while count(&all.get("/v1/sessions").await.is(200)) == 0 {}
    first.abort();
    drop(first.await);
    let driving = world.server.clone();
    tokio::spawn(async move { driving.drive(|_| {}).await });
    let again = all.request(Method::POST, path).json(&chat);
    let again = Answer::of(again.header("x-stainless-retry-count", "1")).await;
    again.is(200);
    assert_eq!(count(&all.get("/v1/sessions").await.is(200)), 1);
    // The same words without the mark of a repetition are another conversation.
    all.post(path, chat).await.is(200);
    assert_eq!(count(&all.get("/v1/sessions").await.is(200)), 2);
}
