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
