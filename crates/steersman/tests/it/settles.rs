//! The states in which sessions settled, from their lines alone (`Engine::settled_with`).

use serde_json::Value as Json;
use std::sync::Arc;
use steersman::machine::stored::ids::Line;
use steersman::runtime::seal::Sealer;
use steersman::runtime::store::memory::MemoryStore;
use steersman::{By, CancelWhat, Network, Question, Session, Steersman, Turn, tool_with};

const DESK: &str = "
name: desk
tools:
  pay: { native: 1, description: Pays., parameters: { cents: integer }, effect: unsafe, approve: true }
  look: { native: 1, description: Looks., parameters: { cents: integer }, effect: read }
agents: { desk: { system: You pay., tools: [pay, look] } }
entry: desk
";

const SCRIPT: &str = "
desk:
  - call: { look: { cents: 1 } }
  - It is there.
  - call: [ { pay: { cents: 1 } }, { pay: { cents: 2 } } ]
  - Both are paid.
  - It is there.
  - call: { pay: { cents: 3 } }
  - And so on.
  - And on.
";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Cents {
    cents: u64,
}

fn desk() -> Network {
    let tool = |name: &str| {
        tool_with(name, 1, |args: Cents, _| async move {
            Ok::<_, String>(args.cents)
        })
    };
    let network = Network::from_yaml(DESK)
        .tool(tool("pay"))
        .tool(tool("look"));
    network.build().unwrap()
}

fn opened(store: &Arc<MemoryStore>) -> Steersman {
    let setup = Steersman::options().script_all(SCRIPT);
    setup.over_shared(store.clone(), Sealer::new(&[7; 32]))
}

fn status(turn: &Turn) -> Json {
    let whole = turn.to_json();
    let open = whole["pending"].as_array().map_or(0, Vec::len);
    format!("{} {open}", whole["status"].as_str().unwrap()).into()
}

/// The states that the lines tell, in order.
async fn told(steersman: &Steersman, id: &str) -> Vec<Json> {
    let engine = steersman.engine();
    let lines = engine.feed(id, Line::NONE).lines().await.unwrap();
    let mut states = Vec::new();
    for line in &lines {
        let settled = engine.settled_with(id, line).await.unwrap();
        states.extend(settled.map(|settled| status(&Turn::from(&settled))));
    }
    states
}

/// Waits until the session settles, and returns what it asks then.
async fn then(session: &Session, states: &mut Vec<Json>) -> Vec<Question> {
    let turn = session.settled().await.unwrap();
    states.push(status(&turn));
    turn.questions().to_vec()
}

#[tokio::test]
async fn every_settled_state_follows_from_the_lines() {
    let store = Arc::new(MemoryStore::new());
    let steersman = opened(&store);
    let session = steersman.start(&desk()).await.unwrap();
    let mut states = Vec::new();
    session.say("Look.").await.unwrap();
    then(&session, &mut states).await;
    session.say("Pay.").await.unwrap();
    let questions = then(&session, &mut states).await;
    // One is decided, and the session works until the other alone is asked.
    session.approve(&questions[0], By::user()).await.unwrap();
    then(&session, &mut states).await;
    session.pause().await.unwrap();
    then(&session, &mut states).await;
    session.resume().await.unwrap();
    then(&session, &mut states).await;
    session
        .reject(&questions[1], "No.", By::user())
        .await
        .unwrap();
    then(&session, &mut states).await;
    // Two answers without a state between them.
    session.say("Again?").await.unwrap();
    then(&session, &mut states).await;
    session.say("Pay.").await.unwrap();
    then(&session, &mut states).await;
    session
        .cancel(CancelWhat::Session, By::user())
        .await
        .unwrap();
    then(&session, &mut states).await;
    session.say("On.").await.unwrap();
    then(&session, &mut states).await;
    let expected = [
        "answered 0",
        "asks 2",
        "asks 1",
        "paused 0",
        "asks 1",
        "answered 0",
        "answered 0",
        "asks 1",
        "cancelled 0",
        "answered 0",
    ];
    assert_eq!(states, expected);
    let id = session.id().to_owned();
    assert_eq!(told(&steersman, &id).await, expected);

    // Another owner leaves a gap in the numbers of lines, and settles nothing by owning it.
    drop(session);
    steersman.stop().await;
    let next = opened(&store);
    next.register(&desk());
    let session = next.session(&id).await.unwrap();
    session.say("Once more.").await.unwrap();
    let last = session.settled().await.unwrap();
    let mut expected: Vec<Json> = expected.map(Json::from).to_vec();
    expected.push(status(&last));
    assert_eq!(told(&next, &id).await, expected);
    assert_eq!(told(&opened(&store), &id).await, expected);
}
