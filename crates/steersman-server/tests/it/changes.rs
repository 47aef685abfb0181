//! Edits of state, other values of config, erasing, ratings of artifacts.

use crate::world::{Answer, Caller, SCRIPT, World, sealer, whole};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::Steersman;
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::{NewToken, Options, Permission};

/// A session whose manager approved a refund, which left a receipt.
async fn paid(all: &Caller<'_>) -> String {
    let session = all.start("My kettle is broken.").await;
    let question = all.question(&session).await;
    let path = format!("/v1/sessions/{session}/questions/{question}/approve");
    all.post(&path, json!({ "as": "manager" })).await.is(202);
    let turn = all.say(&session, "Thank you.").await;
    assert_eq!(turn["status"], "answered", "{turn:#}");
    session
}

#[tokio::test]
async fn state_is_edited_and_the_log_says_by_whom() {
    let world = World::shop().await;
    let all = world.all("").await;
    let session = all.served("clerk").await;
    let place = format!("/v1/sessions/{session}");
    let edit = |state: Json| json!({ "state": state, "as": "manager" });
    let request = all.request(Method::POST, &format!("{place}/edit"));
    let request = request.json(&edit(json!({ "customer": "carl" })));
    let receipt = Answer::of(request.header("idempotency-key", "e1"))
        .await
        .is(202);
    assert_eq!(receipt["fate"], "taken");
    let state = all.get(&format!("{place}/state")).await.is(200);
    assert!(state["state"].to_string().contains("carl"), "{state:#}");
    assert_eq!(state["written"]["customer"], receipt["line"], "{state:#}");
    assert_eq!(all.passing("customer = carl").await, [&*session]);
    let line = receipt["line"].as_u64().unwrap();
    let line = all.get(&format!("{place}/lines/{line}")).await.is(200);
    assert!(line.to_string().contains("manager"), "{line:#}");

    // The same request again is the same edit, and something else under its key is refused.
    let again = |state: Json| {
        let request = all.request(Method::POST, &format!("{place}/edit"));
        Answer::of(request.json(&edit(state)).header("idempotency-key", "e1"))
    };
    let repeated = again(json!({ "customer": "carl" })).await;
    assert_eq!(repeated.headers["idempotent-replay"], "true");
    assert_eq!(repeated.is(202)["line"], receipt["line"]);
    again(json!({ "customer": "dora" }))
        .await
        .fails(409, "repeated");

    let edits = format!("{place}/edit");
    all.post(&edits, edit(json!({ "price": 3 })))
        .await
        .fails(422, "refused");
    all.post(&edits, edit(json!({}))).await.fails(400, "body");
}

#[tokio::test]
async fn config_is_bound_anew() {
    let world = World::shop().await;
    let all = world.all("").await;
    let session = all.served("clerk").await;
    let path = format!("/v1/sessions/{session}/migrate");
    let bound = all
        .post(
            &path,
            json!({ "config": { "house": "side" }, "as": "user" }),
        )
        .await
        .is(202);
    let change = json!([{ "name": "house", "old": "main", "new": "side" }]);
    assert_eq!(bound["changes"], change);
    assert_eq!(bound["receipt"]["fate"], "taken");
    let back = all
        .post(
            &path,
            json!({ "config": { "house": "main" }, "as": "user" }),
        )
        .await
        .is(202);
    assert_eq!(back["changes"][0]["old"], "side");
    let unknown = all
        .post(&path, json!({ "config": { "street": 1 }, "as": "user" }))
        .await;
    assert!(
        unknown.json["help"].to_string().contains("house"),
        "{:#}",
        unknown.json
    );
    unknown.fails(422, "refused");
    let misfit = all
        .post(&path, json!({ "config": { "house": [1] }, "as": "user" }))
        .await;
    misfit.fails(422, "refused");
    all.post(&path, json!({ "config": {}, "as": "user" }))
        .await
        .fails(400, "body");
}

#[tokio::test]
async fn a_session_is_erased_and_still_verifies() {
    let world = World::shop().await;
    let all = world.all("").await;
    let session = all.served("clerk").await;
    let place = format!("/v1/sessions/{session}");
    let told = all.post(&format!("{place}/erase"), json!({})).await.is(200);
    assert_eq!(
        (&told["applied"], &told["memories"]),
        (&json!(false), &json!(1))
    );
    assert!(told["texts"].as_u64().unwrap() > 5, "{told:#}");
    let lines = all.get(&format!("{place}/lines")).await.is(200);
    assert!(
        lines.to_string().contains("Hello."),
        "nothing is erased yet"
    );

    let erased = all
        .post(&format!("{place}/erase"), json!({ "apply": true }))
        .await
        .is(200);
    assert_eq!(erased["applied"], true);
    assert_eq!(erased["verifies"], true);
    assert_eq!(erased["texts"], told["texts"]);
    let lines = all.get(&format!("{place}/lines")).await.is(200).to_string();
    assert!(
        lines.contains("[erased]") && !lines.contains("Hello.") && !lines.contains("likes tea"),
        "{lines}"
    );
    let again = all
        .post(&format!("{place}/erase"), json!({ "apply": true }))
        .await
        .is(200);
    assert_eq!(again["texts"], 0);

    // Memories outlive it, unless they are to be forgotten with it.
    assert_eq!(
        all.get("/v1/memories").await.is(200)["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let mut allows = Permission::ALL.to_vec();
    allows.retain(|allowed| *allowed != Permission::Memory);
    let token = world
        .token(NewToken {
            allows,
            ..whole("")
        })
        .await;
    let forgets = json!({ "apply": true, "memory": true });
    world
        .with(token)
        .post(&format!("{place}/erase"), forgets.clone())
        .await
        .fails(403, "scope");
    all.post(&format!("{place}/erase"), forgets).await.is(200);
    assert_eq!(all.get("/v1/memories").await.is(200)["items"], json!([]));
}

#[tokio::test]
async fn what_is_open_or_missing_is_not_erased() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let session = all.start("Broken.").await;
    let path = format!("/v1/sessions/{session}/erase");
    all.post(&path, json!({ "apply": true }))
        .await
        .fails(422, "refused");
    all.post(&path, json!({ "line": 999 }))
        .await
        .fails(404, "line");
    all.post(&path, json!({ "line": 1, "effect": "1.1" }))
        .await
        .fails(400, "body");
    all.post(&path, json!({ "effect": "one" }))
        .await
        .fails(400, "id");
}

#[tokio::test]
async fn an_artifact_that_was_erased_is_not_shown() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let session = paid(&all).await;
    let place = format!("/v1/sessions/{session}");
    let receipt = format!("{place}/artifacts/receipt.txt");
    all.get(&receipt).await.is(200);
    let erased = all
        .post(&format!("{place}/erase"), json!({ "apply": true }))
        .await
        .is(200);
    assert_eq!(erased["contents"], 1, "{erased:#}");
    let why = all.get(&receipt).await.fails(404, "artifact");
    assert!(!why.contains("paid"), "{why}");
}

#[tokio::test]
async fn a_part_of_a_session_with_reruns_is_erased_alone_or_not_at_all() {
    let world = World::shop().await;
    let all = world.all("").await;
    let session = all.served("helper").await;
    let place = format!("/v1/sessions/{session}");
    let request = all
        .request(Method::POST, &format!("{place}/reruns"))
        .json(&json!({}));
    let job = Answer::of(request.header("prefer", "wait=30"))
        .await
        .is(202);
    assert_eq!(job["state"], "done", "{job:#}");
    let rerun = job["runs"][0]["session"].as_str().unwrap().to_owned();
    let path = format!("{place}/erase");
    let told = all
        .post(&path, json!({ "line": 1 }))
        .await
        .fails(422, "refused");
    assert!(told.contains(&rerun), "{told}");
    all.post(&path, json!({ "line": 1, "alone": true, "apply": true }))
        .await
        .is(200);
    let whole = all.post(&path, json!({ "apply": true })).await.is(200);
    assert_eq!(whole["reruns"], json!([rerun]));
    let lines = all
        .get(&format!("/v1/sessions/{rerun}/lines"))
        .await
        .is(200)
        .to_string();
    assert!(!lines.contains("Hello."), "{lines}");
}

#[tokio::test]
async fn a_session_that_another_process_drives_is_not_erased() {
    let store = Arc::new(MemoryStore::new());
    let world = World::over(store.clone(), SCRIPT, Options::default()).await;
    let all = world.all("").await;
    let session = paid(&all).await;
    world.server.stop();
    let world = World::undriven(store.clone(), SCRIPT, Options::default()).await;
    let all = world.with(all.token.clone());
    let setup = Steersman::options().script_all(SCRIPT);
    let setup = setup.env(|name| (name == "WORD").then(|| "tiger lily 7".to_owned()));
    let other = setup.over_shared(store, sealer());
    other.register(&crate::world::desk());
    // The first server lets go of it while it stops.
    let held = loop {
        match other.session(&session).await {
            Ok(held) => break held,
            Err(error) => assert_eq!(error.kind(), steersman::ErrorKind::Busy, "{error}"),
        }
        tokio::task::yield_now().await;
    };
    let path = format!("/v1/sessions/{session}/erase");
    all.post(&path, json!({ "apply": true }))
        .await
        .fails(409, "busy");
    drop(held);
}

#[tokio::test]
async fn an_artifact_is_rated() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let session = paid(&all).await;
    let place = format!("/v1/sessions/{session}/artifacts");
    let path = format!("{place}/receipt.txt/rating");
    let rating = json!({ "rating": 4, "reason": "Short.", "as": "manager" });
    assert_eq!(all.post(&path, rating).await.is(202)["fate"], "taken");
    let items = all.get(&place).await.is(200);
    assert_eq!(items["items"][0]["rating"], 4, "{items:#}");
    let rated = |body: Json| all.post(&path, body);
    rated(json!({ "rating": 9, "as": "user" }))
        .await
        .fails(400, "body");
    rated(json!({ "rating": 3, "version": 2, "as": "user" }))
        .await
        .fails(404, "artifact");
    let missing = format!("{place}/other.txt/rating");
    all.post(&missing, json!({ "rating": 3, "as": "user" }))
        .await
        .fails(404, "artifact");
}
