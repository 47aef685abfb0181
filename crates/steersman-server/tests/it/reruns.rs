//! Reruns as jobs.

use crate::streams::Slow;
use crate::world::{Answer, Caller, World, names, unlimited, whole};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::Steersman;
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::{NewToken, Options};
use tokio::sync::Notify;

const ANSWERS: &str = "desk: [ One., Two., Three. ]";

/// Begins a rerun, and waits until it is over.
async fn rerun(all: &Caller<'_>, session: &str, changes: Json) -> Json {
    let request = all.request(Method::POST, &format!("/v1/sessions/{session}/reruns"));
    let request = request.json(&changes).header("prefer", "wait=30");
    Answer::of(request).await.is(202)
}

#[tokio::test]
async fn a_session_is_run_again_and_compared() {
    let world = World::new(ANSWERS).await;
    let all = world.all("").await;
    let session = all.start("Hello.").await;
    let job = rerun(&all, &session, json!({ "name": "same" })).await;
    assert_eq!(job["state"], "done", "{job:#}");
    assert_eq!((&job["done"], &job["of"]), (&json!(1), &json!(1)));
    assert_eq!(job["runs"][0]["result"], "same", "{job:#}");
    assert_eq!(
        job["runs"][0]["model_calls"],
        json!({ "recorded": 1, "live": 0 })
    );
    let name = job["job"].as_str().unwrap();
    assert_eq!(all.get(&format!("/v1/jobs/{name}")).await.is(200), job);
    let made = job["runs"][0]["session"].as_str().unwrap();
    assert_eq!(all.passing("rerun = same").await, [made.to_owned()]);

    // With another prompt, the model is asked again. The present one is told.
    let values = format!("/v1/sessions/{session}/reruns/values");
    let values = all.get(&values).await.is(200);
    let system = values["items"].as_array().unwrap().iter();
    let mut system = system.filter(|one| one["path"] == "agents.desk.system");
    assert!(system.next().unwrap()["value"].is_string(), "{values:#}");
    let set = json!({ "set": { "agents.desk.system": "You are brief." }, "repeat": 2 });
    let job = rerun(&all, &session, set).await;
    assert_eq!(job["state"], "done", "{job:#}");
    assert_eq!(job["runs"].as_array().unwrap().len(), 2);
    assert_eq!(job["runs"][0]["model_calls"]["live"], 1, "{job:#}");
    assert_eq!(job["changed"], json!(["agents.desk.system"]));
    assert_eq!(all.passing(&format!("rerun_of = {session}")).await.len(), 3);

    // Another definition of the server.
    let job = rerun(&all, &session, json!({ "definition": "desk" })).await;
    assert_eq!(job["state"], "done", "{job:#}");
    let none = json!({ "definition": "none" });
    let path = format!("/v1/sessions/{session}/reruns");
    all.post(&path, none).await.fails(404, "definition");
    // A line that is not there is the job's own error.
    let job = rerun(&all, &session, json!({ "at": 999 })).await;
    assert_eq!(
        (&job["state"], &job["error"]["code"]),
        (&json!("failed"), &json!("refused")),
        "{job:#}"
    );
}

#[tokio::test]
async fn what_could_run_commands_or_send_keys_is_not_set() {
    let world = World::new(ANSWERS).await;
    let all = world.all("").await;
    let session = all.start("Hello.").await;
    let path = format!("/v1/sessions/{session}/reruns");
    for set in [
        "tools.refund.command",
        "tools.refund.approve",
        "models.default.url",
        "agents.desk.knowledge",
        "mcp.files.command",
    ] {
        let told = all
            .post(&path, json!({ "set": { set: "x" } }))
            .await
            .fails(400, "body");
        assert!(told.contains(set), "{told}");
    }
    all.post(&path, json!({ "repeat": 21 }))
        .await
        .fails(400, "body");
    all.post(&path, json!({ "branch": "none" }))
        .await
        .fails(404, "branch");
    let wrong = all
        .post(&path, json!({ "set": { "agents.nobody.system": "x" } }))
        .await;
    wrong.fails(422, "refused");
    assert_eq!(
        all.passing("network = desk").await.len(),
        1,
        "nothing was run"
    );
}

#[tokio::test]
async fn a_token_for_one_definition_reruns_no_session_of_another() {
    let world = World::new(ANSWERS).await;
    let all = world.all("").await;
    let session = all.start("Hello.").await;
    let path = format!("/v1/sessions/{session}/reruns");
    for (definition, is_allowed) in [("vault", false), ("desk", true)] {
        let token = world.token(NewToken {
            definitions: names(&[definition]),
            ..whole("")
        });
        let only = world.with(token.await);
        let answer = only.post(&path, json!({ "live": true })).await;
        if is_allowed {
            answer.is(202);
        } else {
            answer.fails(404, "definition");
        }
    }
}

#[tokio::test]
async fn a_request_that_is_repeated_finds_its_job() {
    let world = World::new(ANSWERS).await;
    let all = world.all("").await;
    let session = all.start("Hello.").await;
    let send = |body: Json| {
        let request = all.request(Method::POST, &format!("/v1/sessions/{session}/reruns"));
        let request = request.json(&body).header("idempotency-key", "r1");
        Answer::of(request.header("prefer", "wait=30"))
    };
    let first = send(json!({})).await;
    assert!(
        first.headers["location"]
            .to_str()
            .unwrap()
            .starts_with("/v1/jobs/")
    );
    let first = first.is(202);
    let again = send(json!({})).await;
    assert_eq!(again.headers["idempotent-replay"], "true");
    assert_eq!(again.is(202), first);
    send(json!({ "repeat": 2 })).await.fails(409, "repeated");
    assert_eq!(all.passing(&format!("rerun_of = {session}")).await.len(), 1);
}

#[tokio::test]
async fn a_job_is_stopped_and_begins_no_other_run() {
    let ends = Arc::<Notify>::default();
    let setup = Steersman::options().model("default", Slow(ends.clone()));
    let world = World::of(setup, Arc::new(MemoryStore::new()), Options::default()).await;
    let driving = world.server.clone();
    tokio::spawn(async move { driving.drive(|_| {}).await });
    let all = world.all("").await;
    ends.notify_one();
    let session = all.start("Hello.").await;
    // With another prompt the model is asked, which does not answer before it is told to.
    let set = json!({ "set": { "agents.desk.system": "You are brief." }, "repeat": 3 });
    let path = format!("/v1/sessions/{session}/reruns");
    let begun = all.post(&path, set).await.is(202);
    assert_eq!(
        (&begun["state"], &begun["done"]),
        (&json!("running"), &json!(0))
    );
    let job = format!("/v1/jobs/{}", begun["job"].as_str().unwrap());
    let stop = all.request(Method::DELETE, &job);
    assert_eq!(Answer::of(stop).await.status, 204);
    ends.notify_one();
    let look = all.request(Method::GET, &job).header("prefer", "wait=30");
    let over = Answer::of(look).await.is(200);
    assert_eq!(
        (&over["state"], &over["done"], &over["of"]),
        (&json!("stopped"), &json!(1), &json!(3)),
        "{over:#}"
    );
    assert!(over["runs"][0]["session"].is_string(), "{over:#}");
}

#[tokio::test]
async fn a_job_is_lost_with_its_process_and_its_sessions_stay() {
    let store = Arc::new(MemoryStore::new());
    let options = || Options {
        limits: unlimited(),
        ..Options::default()
    };
    let world = World::over(store.clone(), ANSWERS, options()).await;
    let all = world.all("").await;
    let session = all.start("Hello.").await;
    let job = rerun(&all, &session, json!({})).await;
    let name = job["job"].as_str().unwrap().to_owned();
    world.server.stop();

    let world = World::over(store, ANSWERS, options()).await;
    let later = world.with(all.token);
    let lost = later.get(&format!("/v1/jobs/{name}")).await.is(200);
    assert_eq!(
        lost,
        json!({ "job": name, "state": "lost", "done": 0, "of": 0, "runs": [] })
    );
    let stop = later.request(Method::DELETE, &format!("/v1/jobs/{name}"));
    assert_eq!(Answer::of(stop).await.status, 204);
    assert_eq!(
        later.passing(&format!("rerun_of = {session}")).await.len(),
        1
    );
    // A job that never was is not lost, and neither is one of somebody else.
    let never = "0".repeat(32);
    later
        .get(&format!("/v1/jobs/{never}"))
        .await
        .fails(404, "job");
    later.get("/v1/jobs/x").await.fails(404, "job");
    let other = world.all("other").await;
    other
        .get(&format!("/v1/jobs/{name}"))
        .await
        .fails(404, "job");
}
