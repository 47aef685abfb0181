//! Searches over branches.

use crate::world::{Answer, World};
use reqwest::Method;
use serde_json::json;

const ANSWERS: &str = "desk: [ Hello., { any: [ Three., Four. ] } ]";

#[tokio::test]
async fn a_search_is_begun_and_its_winner_adopted() {
    let world = World::new(ANSWERS).await;
    let all = world.all("").await;
    let session = all.start("Hi.").await;
    let place = format!("/v1/sessions/{session}");
    let searches = format!("{place}/searches");
    let new = json!({ "say": "What is two and two?", "score": "answer == 'Four.'", "n": 8, "calls": 20, "seed": 1 });
    let send = || {
        let request = all.request(Method::POST, &searches).json(&new);
        Answer::of(request.header("idempotency-key", "s1"))
    };
    let began = send().await.is(201);
    let again = send().await;
    assert_eq!(again.headers["idempotent-replay"], "true");
    assert_eq!(again.is(201), began);

    let line = began["line"].as_u64().unwrap();
    let path = format!("{place}/events?from={line}&until=settled");
    let frames = all.stream(&path, None).await.rest().await;
    assert!(
        frames.iter().any(|frame| frame.event == "searched"),
        "{frames:#?}"
    );
    let search = began["search"].as_str().unwrap();
    let found = all.get(&format!("{searches}/{search}")).await.is(200);
    assert_eq!(
        (&found["status"], &found["explored"]),
        (&json!("done"), &json!(8)),
        "{found:#}"
    );
    assert_eq!(found["nodes"].as_array().unwrap().len(), 8);
    let listed = all.get(&searches).await.is(200);
    assert_eq!(listed["items"], json!([found]));

    let branch = found["winner"]["branch"].as_str().unwrap();
    let adopt = format!("{place}/branches/{branch}/adopt");
    let body = json!({ "at": found["winner"]["line"] });
    assert_eq!(all.post(&adopt, body).await.is(202)["fate"], "taken");
    let found = all.get(&format!("{searches}/{search}")).await.is(200);
    assert_eq!(found["adopted"], true, "{found:#}");

    // It is over, so nothing is left to stop.
    let stop = all.request(Method::DELETE, &format!("{searches}/{search}"));
    Answer::of(stop).await.fails(422, "refused");
    let none = all.request(Method::DELETE, &format!("{searches}/99.1"));
    Answer::of(none).await.fails(404, "search");
    all.get(&format!("{searches}/99.1"))
        .await
        .fails(404, "search");
}

#[tokio::test]
async fn a_plan_has_to_say_what_branches_are_worth() {
    let world = World::new(ANSWERS).await;
    let all = world.all("").await;
    let session = all.start("Hi.").await;
    let path = format!("/v1/sessions/{session}/searches");
    let say = "What is two and two?";
    let told = all.post(&path, json!({ "say": say })).await;
    assert!(
        told.json["help"].to_string().contains("score"),
        "{:#}",
        told.json
    );
    told.fails(400, "body");
    for wrong in [
        json!({ "say": say, "score": "answer ==" }),
        json!({ "say": say, "score": "price > 3" }),
        json!({ "say": say, "by": "nobody" }),
        json!({ "say": say, "score": "1", "method": "guess" }),
        json!({ "say": say, "score": "1", "n": 0 }),
    ] {
        all.post(&path, wrong.clone()).await.fails(400, "body");
    }
    all.post(&path, json!({ "say": say, "score": "1", "branch": "none" }))
        .await
        .fails(404, "branch");
    let none = all.get(&path).await.is(200);
    assert_eq!(none["items"], json!([]));
}
