//! Secrets that people give in another way than as an answer: they are refused, so that nothing of them is kept.

use crate::world::{Answer, World};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::Network;
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::Options;

const VAULT: &str = r"
steersman: 1
name: vault
models: { default: scripted }
state: { token: { type: secret, optional: true }, note: { type: string, optional: true } }
tools:
  post:
    description: Posts something.
    parameters: { to: string, pin: { type: secret, ask: Your pin? } }
    effect: unsafe
    approve: { by: manager, edit: [to, pin] }
    command: [echo, posted]
agents:
  manager: { person: { role: manager } }
  desk: { system: You post., tools: [post] }
  login: { system: You log in., parameters: { user: string, pin: { type: secret, ask: Your pin?, optional: true } } }
entry: [desk, login]
";

const SCRIPT: &str = "desk: [ { call: { post: { to: ann } } }, Posted. ]\nlogin: [ In. ]";

#[tokio::test]
async fn a_secret_is_given_as_an_answer_and_in_no_other_way() {
    let options = Options {
        definitions: vec![Network::from_yaml(VAULT).build().unwrap()],
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), SCRIPT, options).await;
    let all = world.all("").await;
    let start = |body: Json| {
        let request = all.request(Method::POST, "/v1/sessions").json(&body);
        Answer::of(request.header("prefer", "wait=30"))
    };
    // In the arguments of an entry.
    let wrong = json!({ "definition": "vault", "entry": "login", "message": "Hello.", "args": { "user": "ann", "pin": "tulip 4711" } });
    let told = start(wrong).await.fails(422, "refused");
    assert!(told.contains("`args.pin` is a secret"), "{told}");
    // In an edit of the state.
    let right = json!({ "definition": "vault", "entry": "desk", "message": "Hello." });
    let turn = start(right).await.is(200);
    let session = turn["session"].as_str().unwrap().to_owned();
    let edit = |state: Json| {
        let path = format!("/v1/sessions/{session}/edit");
        let request = all
            .request(Method::POST, &path)
            .json(&json!({ "state": state }));
        Answer::of(request.header("prefer", "wait=30"))
    };
    let told = edit(json!({ "token": "tulip 4711" }))
        .await
        .fails(422, "refused");
    assert!(told.contains("`state.token` is a secret"), "{told}");
    // In the arguments that an approver changes.
    let question = all.question(&session).await;
    let approve = format!("/v1/sessions/{session}/questions/{question}/approve");
    let told = all
        .post(
            &approve,
            json!({ "as": "manager", "args": { "to": "bob", "pin": "tulip 4711" } }),
        )
        .await
        .fails(422, "refused");
    assert!(told.contains("`pin` is a secret"), "{told}");
    let right = json!({ "as": "manager", "args": { "to": "bob" } });
    all.post(&approve, right).await.is(202);
    for path in ["", "/state", "/lines", "/story", "/effects"] {
        let told = all.get(&format!("/v1/sessions/{session}{path}")).await;
        let told = told.is(200).to_string();
        assert!(!told.contains("tulip"), "{told}");
    }
}
