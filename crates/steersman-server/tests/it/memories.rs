//! Memories that agents keep across sessions.

use crate::world::{Answer, World};
use reqwest::Method;
use serde_json::{Value as Json, json};

#[tokio::test]
async fn memories_are_listed_found_rated_and_forgotten() {
    let world = World::shop().await;
    let all = world.all("").await;
    let session = all.served("clerk").await;
    let other = all.served("clerk").await;

    let list = all.get("/v1/memories").await.is(200);
    assert_eq!(list["items"].as_array().unwrap().len(), 2, "{list:#}");
    let of = all
        .get(&format!("/v1/memories?session={session}"))
        .await
        .is(200);
    let id = of["items"][0]["memory"].as_u64().unwrap();
    assert_eq!(of["items"].as_array().unwrap().len(), 1);
    assert_eq!(of["items"][0]["scope"], "customer/ann");
    assert!(of["items"][0]["text"].is_null(), "lists have no contents");
    let first = all.get("/v1/memories?limit=1").await.is(200);
    let next = first["next"].as_u64().unwrap();
    let second = all
        .get(&format!("/v1/memories?limit=1&after={next}"))
        .await
        .is(200);
    assert_ne!(first["items"][0]["memory"], second["items"][0]["memory"]);
    assert_eq!(second["next"], Json::Null);
    all.get("/v1/memories?after=999").await.fails(400, "query");

    let place = format!("/v1/memories/{id}");
    assert_eq!(all.get(&place).await.is(200)["text"], "Ann likes tea.");
    let found = all
        .get("/v1/memories/search?query=tea&scope=customer%2Fann")
        .await
        .is(200);
    assert_eq!(found["items"].as_array().unwrap().len(), 2);
    assert_eq!(found["items"][0]["text"], "Ann likes tea.");
    let none = all.get("/v1/memories/search?query=coffee").await.is(200);
    assert_eq!(none["items"], json!([]));
    all.get("/v1/memories/search").await.fails(400, "query");

    let rating = json!({ "rating": 5, "reason": "She said so.", "as": "manager" });
    let rated = all.post(&format!("{place}/rating"), rating).await.is(200);
    assert_eq!(
        rated["rated_by_people"],
        json!({ "rating": 5, "reason": "She said so.", "by": "manager" })
    );
    all.post(
        &format!("{place}/rating"),
        json!({ "rating": 0, "as": "user" }),
    )
    .await
    .fails(400, "body");
    all.post(
        "/v1/memories/999/rating",
        json!({ "rating": 1, "as": "user" }),
    )
    .await
    .fails(404, "memory");

    let gone = || all.request(Method::DELETE, &place);
    assert_eq!(Answer::of(gone()).await.status, 204);
    Answer::of(gone()).await.fails(404, "memory");
    all.get(&place).await.fails(404, "memory");

    let forget = |apply: bool| json!({ "session": other, "apply": apply });
    let told = all.post("/v1/memories/forget", forget(false)).await.is(200);
    assert_eq!(
        (&told["count"], &told["applied"]),
        (&json!(1), &json!(false))
    );
    assert_eq!(
        all.get("/v1/memories").await.is(200)["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    all.post("/v1/memories/forget", forget(true)).await.is(200);
    assert_eq!(all.get("/v1/memories").await.is(200)["items"], json!([]));
    all.post("/v1/memories/forget", json!({}))
        .await
        .fails(400, "body");
    all.post("/v1/memories/forget", json!({ "memories": [id] }))
        .await
        .fails(404, "memory");
}
