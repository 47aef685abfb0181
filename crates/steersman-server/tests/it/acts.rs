//! Messages, questions, orders and branches: each act goes into an inbox, and is answered with what became of it.

use crate::world::{Answer, Caller, SCRIPT, World, names, whole};
use reqwest::Method;
use serde_json::json;
use steersman::{EventKind, SessionQuery};
use steersman_server::{NewToken, Permission};

#[tokio::test]
async fn a_manager_decides_and_the_session_goes_on() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let body = json!({ "definition": "desk", "message": "My kettle is broken." });
    let request = all.request(Method::POST, "/v1/sessions").json(&body);
    let turn = Answer::of(request.header("prefer", "wait=30"))
        .await
        .is(200);
    assert_eq!(turn["status"], "asks", "{turn:#}");
    assert_eq!(turn["pending"][0]["tool"], "refund");
    let session = turn["session"].as_str().unwrap();

    let list = all
        .get("/v1/questions?role=manager&kind=approval")
        .await
        .is(200);
    assert_eq!(list["items"][0]["session"], session);
    assert_eq!(list["items"][0]["args"], json!({ "cents": 3990 }));
    assert_eq!(
        all.get("/v1/questions?role=clerk").await.is(200)["items"],
        json!([])
    );

    let question = all.question(session).await;
    let place = format!("/v1/sessions/{session}/questions/{question}");
    // The session judges the role.
    let refused = all.post(&format!("{place}/approve"), json!({})).await;
    assert!(refused.fails(422, "refused").contains("manager"));
    let taken = all
        .post(&format!("{place}/approve"), json!({ "as": "manager" }))
        .await
        .is(202);
    assert_eq!(taken["fate"], "taken", "{taken:#}");
    let line = taken["line"].as_u64().unwrap();

    let mut stream = all
        .stream(
            &format!("/v1/sessions/{session}/events?until=settled"),
            None,
        )
        .await;
    let frames = stream.rest().await;
    let decided = frames
        .iter()
        .find(|frame| frame.event == "decided")
        .unwrap();
    assert_eq!(decided.data["line"], line);
    assert_eq!(decided.data["by"], "manager");
    let who = decided.data["who"].as_str().unwrap();
    assert!(
        all.token.starts_with(&format!("{who}_")),
        "the log names the token: {who}"
    );
    let last = &frames.last().unwrap().data;
    assert_eq!(
        (&last["event"], &last["answer"]),
        (&json!("settled"), &json!("Paid."))
    );

    // What is over is not asked any more.
    let again = all
        .post(&format!("{place}/approve"), json!({ "as": "manager" }))
        .await;
    again.fails(404, "question");
}

#[tokio::test]
async fn a_decision_waits_for_what_the_session_says_then() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let session = all.start("Broken.").await;
    let question = all.question(&session).await;
    let path = format!("/v1/sessions/{session}/questions/{question}/approve");
    let approve = |caller: &Caller<'_>| {
        let request = caller.request(Method::POST, &path);
        let request = request.json(&json!({ "as": "manager" }));
        request.header("prefer", "wait=30")
    };
    // The answer tells what the session said.
    let decider = world.with(
        world
            .token(NewToken {
                allows: vec![Permission::Decide],
                roles: names(&["manager"]),
                ..whole("")
            })
            .await,
    );
    Answer::of(approve(&decider)).await.fails(403, "scope");
    let turn = Answer::of(approve(&all)).await.is(200);
    assert_eq!(
        (&turn["status"], &turn["answer"]),
        (&json!("answered"), &json!("Paid.")),
        "{turn:#}"
    );
}

#[tokio::test]
async fn a_role_is_the_tokens_and_never_of_a_body() {
    let world = World::new(SCRIPT).await;
    let session = world.all("").await.start("Broken.").await;
    let user = world.with(
        world
            .token(NewToken {
                roles: names(&["user"]),
                ..whole("")
            })
            .await,
    );
    let question = user.question(&session).await;
    let place = format!("/v1/sessions/{session}/questions/{question}");
    let stolen = user
        .post(&format!("{place}/approve"), json!({ "as": "manager" }))
        .await;
    stolen.fails(403, "role_not_yours");
    let said = json!({ "text": "Pay!", "as": "manager" });
    let stolen = user
        .post(&format!("/v1/sessions/{session}/messages"), said)
        .await;
    stolen.fails(403, "role_not_yours");
    // Without a role it acts as the user, who may not approve.
    user.post(&format!("{place}/approve"), json!({}))
        .await
        .fails(422, "refused");
    // A token of several roles names the one in which it acts.
    let two = NewToken {
        roles: names(&["manager", "clerk"]),
        ..whole("")
    };
    let two = world.with(world.token(two).await);
    two.post(&format!("{place}/approve"), json!({}))
        .await
        .fails(403, "role_not_yours");
    let pending = world.steersman.pending(&session).await.unwrap();
    assert_eq!(pending.len(), 1, "nothing was decided");
}

#[tokio::test]
async fn a_question_is_rejected_answered_edited_as_the_definition_allows() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let session = all.start("Broken.").await;
    let question = all.question(&session).await;
    let place = format!("/v1/sessions/{session}/questions/{question}");
    let wrong = all
        .post(&format!("{place}/answer"), json!({ "as": "manager" }))
        .await;
    wrong.fails(400, "body");
    let edited = json!({ "as": "manager", "args": { "cents": 1 } });
    all.post(&format!("{place}/approve"), edited)
        .await
        .fails(422, "refused");
    let effect = question.split('@').next().unwrap();
    let short = format!("/v1/sessions/{session}/questions/{effect}/reject");
    let why = all
        .post(&short, json!({ "as": "manager" }))
        .await
        .fails(404, "question");
    assert!(
        why.contains(&question),
        "an approval is named with the line that was seen: {why}"
    );
    let reject = json!({ "as": "manager", "reason": "Too much." });
    all.post(&format!("{place}/reject"), reject).await.is(202);
    let turn = all.say(&session, "And now?").await;
    assert_eq!(turn["status"], "answered", "{turn:#}");
}

#[tokio::test]
async fn orders_hold_a_session_and_let_it_go_on() {
    let world = World::new("desk: [ One., Two., Three. ]").await;
    let all = world.all("").await;
    let session = all.start("Hello.").await;
    let order = |what: &str| format!("/v1/sessions/{session}/{what}");
    all.post(&order("pause"), json!({})).await.is(202);
    let said = all
        .post(&order("messages"), json!({ "text": "More." }))
        .await
        .is(202);
    assert_ne!(said["fate"], "refused", "{said:#}");
    let page = all.get(&format!("/v1/sessions/{session}")).await.is(200);
    assert_eq!(page["status"], "paused", "{page:#}");
    all.post(&order("resume"), json!({})).await.is(202);
    let turn = all.say(&session, "And more.").await;
    assert_eq!(turn["status"], "answered", "{turn:#}");

    all.post(&order("hold"), json!({ "tool": "refund" }))
        .await
        .is(202);
    let page = all.get(&format!("/v1/sessions/{session}")).await.is(200);
    assert_eq!(page["orders"].as_array().unwrap().len(), 1, "{page:#}");
    all.post(&order("release"), json!({ "tool": "refund" }))
        .await
        .is(202);
    all.post(&order("hold"), json!({ "tool": "nothing" }))
        .await
        .fails(422, "refused");
    all.post(&order("retry"), json!({}))
        .await
        .fails(422, "refused");
    all.post(&order("cancel"), json!({ "what": "call" }))
        .await
        .fails(400, "body");
}

#[tokio::test]
async fn branches_are_opened_and_adopted() {
    let world = World::new("desk: [ One., Two., Three., Four., Five. ]").await;
    let all = world.all("").await;
    let session = all.start("Hello.").await;
    let place = format!("/v1/sessions/{session}");
    let head = all.get(&place).await.json["line"].as_u64().unwrap();

    let stale = all
        .request(Method::POST, &format!("{place}/branches"))
        .json(&json!({}));
    let stale = Answer::of(stale.header("if-match", format!("\"{}\"", head - 1))).await;
    stale.fails(412, "moved");
    let fork = json!({ "label": "try", "say": "Something else?" });
    let opened = all.post(&format!("{place}/branches"), fork).await.is(201);
    let branch = opened["branch"].as_str().unwrap();
    let found = all.get(&format!("{place}/branches")).await.is(200);
    let ids: Vec<_> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| &b["id"])
        .collect();
    assert_eq!(ids, [&json!("main"), &json!(branch)]);

    let say = json!({ "text": "And then?" });
    let say = all
        .request(Method::POST, &format!("{place}/branches/try/messages"))
        .json(&say);
    Answer::of(say.header("prefer", "wait=30")).await.is(200);
    all.post(&format!("{place}/branches/nothing/adopt"), json!({}))
        .await
        .fails(404, "branch");
    all.post(&format!("{place}/branches/{branch}/adopt"), json!({}))
        .await
        .is(202);

    let rewound = all
        .post(&format!("{place}/rewind"), json!({ "at": head }))
        .await
        .is(201);
    let page = all.get(&place).await.is(200);
    assert_eq!(
        page["current"].as_str(),
        rewound["branch"].as_str(),
        "{page:#}"
    );
    all.post(&format!("{place}/rewind"), json!({ "at": 999_999 }))
        .await
        .fails(422, "refused");
    let joined = json!({ "branches": ["nothing"] });
    all.post(&format!("{place}/join"), joined)
        .await
        .fails(404, "branch");
}

#[tokio::test]
async fn events_from_outside_start_sessions_and_reach_them() {
    let world = World::new("desk: [ One., Two. ]").await;
    let all = world.all("").await;
    let event = |order: &str| json!({ "definition": "desk", "event": "parcel", "fields": { "order": order } });
    let started = all.post("/v1/events", event("4711")).await.is(202);
    assert_eq!(started["sent"], "started");
    let again = all.post("/v1/events", event("4711")).await.is(202);
    assert_eq!(
        (&again["sent"], &again["session"]),
        (&json!("known"), &started["session"])
    );
    let wrong = json!({ "definition": "desk", "event": "parcel", "fields": {} });
    all.post("/v1/events", wrong).await.fails(422, "refused");
    let unknown = json!({ "definition": "other", "event": "parcel", "fields": {} });
    all.post("/v1/events", unknown)
        .await
        .fails(404, "definition");

    // The server drives it: nobody opened the session.
    let session = started["session"].as_str().unwrap();
    let mut events = world
        .steersman
        .events(session, steersman::Cursor::START)
        .until_settled();
    let mut kinds = Vec::new();
    while let Some(event) = events.next().await {
        kinds.push(event.unwrap().kind);
    }
    assert!(matches!(kinds.last(), Some(EventKind::Settled(_))));
}

#[tokio::test]
async fn a_token_may_start_what_it_names() {
    let world = World::new("desk: [ One. ]").await;
    let other = NewToken {
        definitions: names(&["elsewhere"]),
        ..whole("")
    };
    let other = world.with(world.token(other).await);
    let start = json!({ "definition": "desk", "message": "Hello." });
    let refused = other.post("/v1/sessions", start).await;
    let unknown = other
        .post("/v1/sessions", json!({ "definition": "none" }))
        .await;
    let (refused, unknown) = (
        refused.fails(404, "definition"),
        unknown.fails(404, "definition"),
    );
    assert_eq!(refused.replace("desk", "none"), unknown);
    assert_eq!(
        other.get("/v1/definitions").await.is(200)["items"],
        json!([])
    );

    let reader = NewToken {
        allows: vec![Permission::Read],
        ..whole("")
    };
    let reader = world.with(world.token(reader).await);
    let start = json!({ "definition": "desk", "message": "Hello." });
    reader.post("/v1/sessions", start).await.fails(403, "scope");
    let all = world
        .steersman
        .sessions(&SessionQuery::default())
        .await
        .unwrap();
    assert!(all.is_empty(), "nothing was started");
}
