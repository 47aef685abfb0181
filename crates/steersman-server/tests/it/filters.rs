//! Filters on lists, and acts over the sessions that a filter lets through, or that are named.

use crate::world::{Answer, SCRIPT, World, encoded, whole};
use reqwest::Method;
use serde_json::{Value as Json, json};
use steersman_server::{NewToken, Permission};

#[tokio::test]
async fn a_list_has_what_a_filter_lets_through() {
    let world = World::shop().await;
    let all = world.all("").await;
    let ann = all.served("clerk").await;
    let bob = all.served("helper").await;
    for (filter, found) in [
        ("customer = ann", vec![&ann]),
        ("customer != ann", vec![&bob]),
        ("outcome.customer = b*", vec![&bob]),
        ("status = answered and network = shop", vec![&bob, &ann]),
        (
            "(customer = ann or customer = bob) and calls > 2",
            vec![&ann],
        ),
        ("age > 1d", vec![]),
        ("updated > -1d and definition = shop", vec![&bob, &ann]),
        ("status = waits or failed = *", vec![]),
    ] {
        assert_eq!(
            all.passing(filter).await,
            found.into_iter().cloned().collect::<Vec<_>>(),
            "{filter}"
        );
    }
    // Other parameters are met, too.
    let path = format!(
        "/v1/sessions?status=waits&where={}",
        encoded("customer = ann")
    );
    assert_eq!(all.get(&path).await.is(200)["items"], json!([]));

    // Pages.
    let path = format!(
        "/v1/sessions?limit=1&where={}",
        encoded("status = answered")
    );
    let first = all.get(&path).await.is(200);
    assert_eq!(first["items"][0]["session"], json!(bob));
    let next = first["next"].as_str().unwrap();
    let second = all.get(&format!("{path}&after={next}")).await.is(200);
    assert_eq!(second["items"][0]["session"], json!(ann));
    assert_eq!(second["next"], Json::Null);
}

#[tokio::test]
async fn a_key_is_a_name_of_filters() {
    let world = World::shop().await;
    let all = world.all("").await;
    let start = json!({ "definition": "shop", "key": "order-1", "message": "Hello." });
    let session = all.post("/v1/sessions", start).await.is(201)["session"].clone();
    all.served("helper").await;
    assert_eq!(json!(all.passing("key = order-1").await), json!([session]));
    assert_eq!(all.passing("key != order-1").await.len(), 1);
}

#[tokio::test]
async fn a_faulty_filter_is_refused_and_says_what_is_known() {
    let world = World::shop().await;
    let all = world.all("").await;
    all.served("clerk").await;
    for (filter, why) in [
        ("colour = red", "no session has a label `colour`"),
        ("colour != red", "no session has a label `colour`"),
        ("outcome.price > 3", "no session has an outcome `price`"),
        ("status = wating", "`wating` is not a status"),
        ("cost > much", "is not a number"),
        ("updated > soon", "is not a time"),
        ("status", "is no condition"),
        ("(status = waits", "lacks a `)`"),
    ] {
        let path = format!("/v1/sessions?where={}", encoded(filter));
        let told = all.get(&path).await.fails(400, "query");
        assert!(
            told.contains(why) && told.contains("where"),
            "{filter}: {told}"
        );
        let order = json!({ "act": "pause", "where": filter, "apply": true });
        let told = all.post("/v1/orders", order).await.fails(400, "body");
        assert!(told.contains(why), "{filter}: {told}");
        let path = format!("/v1/events/stream?where={}", encoded(filter));
        if !filter.starts_with("cost") && !filter.starts_with("updated") {
            all.get(&path).await.fails(400, "query");
        }
    }
    let path = format!("/v1/sessions?where={}", encoded("colour = red"));
    let help = all.get(&path).await.json["help"].to_string();
    assert!(help.contains("labels are customer"), "{help}");
}

#[tokio::test]
async fn an_act_over_many_is_told_first_and_then_given() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let mut sessions = vec![all.start("Broken.").await, all.start("Broken.").await];
    sessions.reverse();
    let cancel = |apply: bool| json!({ "act": "cancel", "where": "status = waits", "as": "user", "apply": apply });
    let told = all.post("/v1/orders", cancel(false)).await.is(200);
    assert_eq!(
        (&told["count"], &told["applied"]),
        (&json!(2), &json!(false))
    );
    let named = json!([{ "session": sessions[0] }, { "session": sessions[1] }]);
    assert_eq!(told["items"], named);
    assert_eq!(
        all.passing("status = waits").await.len(),
        2,
        "nothing was done"
    );

    let gave = all.post("/v1/orders", cancel(true)).await.is(200);
    assert_eq!(
        (&gave["count"], &gave["applied"]),
        (&json!(2), &json!(true))
    );
    for (item, session) in gave["items"].as_array().unwrap().iter().zip(&sessions) {
        assert_eq!(item["session"], json!(session));
        assert_eq!(item["fate"], "taken", "{gave:#}");
        assert!(item["line"].is_u64(), "{gave:#}");
    }
    let none = all.post("/v1/orders", cancel(true)).await.is(200);
    assert_eq!(none["count"], 0);
    assert_eq!(all.passing("status = cancelled").await.len(), 2);
}

#[tokio::test]
async fn an_act_is_for_the_sessions_that_are_named() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let (one, other) = (all.start("Broken.").await, all.start("Broken.").await);
    let pause = |apply: bool| json!({ "act": "pause", "sessions": [one, "nobody", one], "as": "user", "apply": apply });
    for (apply, fate) in [(false, None), (true, Some("taken"))] {
        let told = all.post("/v1/orders", pause(apply)).await.is(200);
        assert_eq!(told["count"], 2, "{told:#}");
        let items = told["items"].as_array().unwrap();
        let of = |session: &str| {
            items
                .iter()
                .find(|item| item["session"] == session)
                .unwrap()
        };
        assert_eq!(of(&one)["fate"].as_str(), fate, "{told:#}");
        assert_eq!(of("nobody")["fate"], "refused", "{told:#}");
        assert!(of("nobody")["why"].as_str().unwrap().contains("session"));
    }
    assert_eq!(all.passing("status = paused").await, [&*one]);
    // Those of somebody else are named like those that are not there.
    let stranger = world.all("other").await;
    let told = stranger
        .post(
            "/v1/orders",
            json!({ "act": "pause", "sessions": [other], "as": "user", "apply": true }),
        )
        .await
        .is(200);
    assert_eq!(told["items"][0]["fate"], "refused", "{told:#}");
    assert_eq!(all.passing("status = paused").await.len(), 1);
}

#[tokio::test]
async fn an_act_over_many_happens_once_under_its_key() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    all.start("Broken.").await;
    let hold = json!({ "act": "hold", "where": "network = desk", "tool": "refund", "as": "user", "apply": true });
    let send = |body: Json| {
        let request = all.request(Method::POST, "/v1/orders").json(&body);
        Answer::of(request.header("idempotency-key", "hold-1"))
    };
    let first = send(hold.clone()).await;
    assert!(!first.headers.contains_key("idempotent-replay"));
    let first = first.is(200);
    let again = send(hold).await;
    assert_eq!(again.headers["idempotent-replay"], "true");
    assert_eq!(again.is(200), first);
    // Another act under the same key is done nowhere.
    let release = json!({ "act": "release", "where": "network = desk", "tool": "refund", "as": "user", "apply": true });
    let other = send(release).await.is(200);
    assert_eq!(other["items"][0]["fate"], "failed", "{other:#}");
}

#[tokio::test]
async fn each_session_has_a_fate_of_its_own() {
    let world = World::shop().await;
    let all = world.all("").await;
    all.served("clerk").await;
    all.served("helper").await;
    let fates = async |act: &str, key: &str, value: Json| {
        let mut order =
            json!({ "act": act, "where": "network = shop", "as": "user", "apply": true });
        order[key] = value;
        let gave = all.post("/v1/orders", order).await.is(200);
        let items = gave["items"].as_array().unwrap().iter();
        let fates = items.map(|one| one["fate"].as_str().unwrap().to_owned());
        fates.collect::<Vec<_>>()
    };
    let refused = fates("migrate", "config", json!({ "street": 1 })).await;
    assert_eq!(refused, ["refused", "refused"]);
    let taken = fates("migrate", "config", json!({ "house": "side" })).await;
    assert_eq!(taken, ["taken", "taken"]);
    let edited = fates("edit", "state", json!({ "customer": "carl" })).await;
    assert_eq!(edited, ["taken", "taken"]);
    assert_eq!(all.passing("customer = carl").await.len(), 2);
}

#[tokio::test]
async fn an_act_over_many_has_a_form_and_needs_a_permission() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    for body in [
        json!({ "act": "pause", "where": "network = desk", "tool": "refund" }),
        json!({ "act": "edit", "where": "network = desk" }),
        json!({ "act": "pause", "where": "network = desk", "state": {} }),
        json!({ "act": "migrate", "where": "network = desk" }),
        json!({ "act": "approve", "where": "network = desk" }),
        json!({ "act": "pause" }),
        json!({ "act": "pause", "where": "" }),
        json!({ "act": "pause", "where": "network = desk", "sessions": [] }),
    ] {
        all.post("/v1/orders", body).await.fails(400, "body");
    }
    let strange = json!({ "act": "pause", "where": "network = desk", "as": "boss" });
    all.post("/v1/orders", strange)
        .await
        .fails(403, "role_not_yours");
    let mut allows = Permission::ALL.to_vec();
    allows.retain(|allowed| *allowed != Permission::Operate);
    let token = world
        .token(NewToken {
            allows,
            ..whole("")
        })
        .await;
    let body = json!({ "act": "pause", "where": "network = desk" });
    world
        .with(token)
        .post("/v1/orders", body)
        .await
        .fails(403, "scope");
}
