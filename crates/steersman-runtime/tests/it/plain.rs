//! A plain tool loop, end to end in memory.

use crate::world::{World, answered};
use serde_json::json;

const LOOK: &str = r"
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, native: 1 }
agents:
  main: { system: You look., tools: [look] }
";

#[tokio::test]
async fn a_tool_loop_runs_to_its_answer() {
    let world = World::new(json!({
        "main": [{ "call": { "look": { "what": "sky" } } }, "Blue."],
    }));
    let session = world.start(LOOK, "What colour?").await;
    let settled = session.settled().await.unwrap();
    assert_eq!(answered(&settled), "Blue.");
    assert_eq!(world.stack("main").await, "U A TC TR A F");
    assert_eq!(world.tools.count("look"), 1);
    insta::assert_snapshot!(world.printed().await);
}

#[tokio::test]
async fn what_a_request_shares_is_measured_against_the_call_before_and_not_against_itself() {
    let world = World::new(json!({ "main": ["One.", "Two.", "Three."] }));
    let session = world
        .start("agents: { main: { system: You count. } }", "Count.")
        .await;
    // the first request of an answer waits until its budget is on disk, and is rendered again when it starts
    for more in ["And?", "And?"] {
        session.settled().await.unwrap();
        session.say(more).await.unwrap();
    }
    session.settled().await.unwrap();
    let lines = world.lines().await;
    let shared: Vec<u64> = lines
        .iter()
        .flat_map(|line| line.commit.iter().flat_map(|commit| &commit.usage))
        .map(|usage| usage.prefix)
        .collect();
    assert_eq!(shared.len(), 3);
    assert_eq!(shared[0], 0, "nothing came before");
    assert!(0 < shared[1] && shared[1] < shared[2], "{shared:?}");
}
