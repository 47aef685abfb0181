//! Modes: a tool in Rust sets the mode of its caller, and readers get an event for each change.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use steersman::{Cursor, EventKind, Network, Steersman, Turn, tool_with};

#[derive(Deserialize, JsonSchema)]
struct Go {
    to: String,
}

const DEFINITION: &str = "
tools:
  go: { native: 1, description: Goes on., parameters: { to: string }, effect: pure }
  end: { description: Ends., set: {} }
agents:
  desk:
    tools: [go, end]
    modes:
      first:  { system: 'You are {{ mode }}.' }
      second: { system: 'You are {{ mode }}.', exits: [ { after_tool: end, to: third } ] }
      third:  { system: 'You are {{ mode }}.', tools: [end] }
";

const SCRIPT: &str = "
desk:
  - call: { go: { to: nowhere } }
  - call: { go: { to: second } }
  - call: { end: {} }
  - Done.
";

#[tokio::test]
async fn a_tool_in_rust_says_the_mode_of_its_caller() {
    let network = Network::from_yaml(DEFINITION)
        .tool(tool_with("go", 1, |go: Go, cx| async move {
            cx.mode(go.to);
            Ok::<_, String>("gone")
        }))
        .build()
        .unwrap();
    let steersman = Steersman::options().script_all(SCRIPT).in_memory();
    let session = steersman.start(&network).await.unwrap();
    let mut events = session.events(Cursor::START);
    let turn = session.ask("Go.").await.unwrap();
    assert!(matches!(turn, Turn::Answer(_)), "{turn:?}");
    let (mut told, mut refused) = (Vec::new(), String::new());
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        match &event.kind {
            EventKind::Settled(_) if !told.is_empty() => break,
            EventKind::Mode { .. } => told.push(event.to_json()),
            EventKind::Ended { text, code, .. } if code.is_some() => refused = text.to_string(),
            _ => {}
        }
    }
    let field = |name: &str| {
        told.iter()
            .map(|event| event[name].clone())
            .collect::<Vec<Json>>()
    };
    assert_eq!(field("mode"), [json!("second"), json!("third")]);
    assert_eq!(field("why"), [json!("go says so"), json!("after end")]);
    assert_eq!(field("event"), [json!("mode"), json!("mode")]);
    assert!(
        refused.contains("there is no mode `nowhere`; there are first, second, third"),
        "{refused}"
    );
}
