//! An answer of a session comes with the texts of the tasks that ended on the way to it.

use crate::world::{World, asked};
use serde_json::json;
use steersman_runtime::session::{Session, Settled};

const COUNTER: &str = r"
agents:
  greet: { description: Greets., system: You greet. }
  prices: { description: Prices., system: You know prices. }
  clerk: { description: Checks., person: { role: clerk, timeout: 1h, on_timeout: { say: The clerk is away. } } }
  counter:
    route:
      tasks:
        check: { agent: clerk }
        price: { agent: prices, after: [check] }
      default: greet
entry: counter
";

async fn heard(session: &Session) -> Vec<String> {
    match &*session.settled().await.unwrap() {
        Settled::Answered { before, text, .. } => {
            let all = before.iter().chain([text]);
            all.map(ToString::to_string).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn world() -> World {
    World::new(
        json!({ "counter": ["price", "price"], "prices": ["It costs 12."], "greet": ["Nobody can say."] }),
    )
}

#[tokio::test]
async fn what_a_person_said_as_a_task_is_told_to_who_talks_to_the_session() {
    let world = world();
    let session = world.start(COUNTER, "What does it cost?").await;
    let question = asked(&session.settled().await.unwrap());
    session
        .answer(question, "It is fine.", "clerk")
        .await
        .unwrap();
    assert_eq!(heard(&session).await, ["It is fine.", "It costs 12."]);
}

#[tokio::test]
async fn what_is_said_in_the_place_of_a_silent_person_is_told_as_well() {
    let world = world();
    let session = world.start(COUNTER, "What does it cost?").await;
    let _ = asked(&session.settled().await.unwrap());
    world.clock.advance(3_600_001);
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        heard(&session).await,
        ["The clerk is away.", "Nobody can say."]
    );
}
