//! Model calls of the engine, which extract and summarize: they survive a kill after each line, they are not streamed, and
//! they count as spent.

use crate::spy::Behind;
use crate::world::World;
use serde_json::{Value as Json, json};
use std::fmt::Write;
use steersman_machine::stored::ids::Line;
use steersman_machine::stored::interaction::Interaction;
use steersman_machine::trace;
use steersman_runtime::engine::Inspection;
use steersman_runtime::feed::FeedItem;
use steersman_runtime::model::Delta;

const PANEL: &str = r#"
state: { topic: optional string, spec: optional string, tags: { type: [string], default: [], reduce: append } }
agents:
  ann: { description: Plans., system: "You plan {{ state.topic }}." }
  ben: { description: Doubts., system: You doubt., extract: [tags] }
  panel:
    extract: [topic]
    view: { window: 1, summary: { every: 2 } }
    route:
      states:
        talk: { speakers: [ { agent: ann, extract: [spec] }, ben ], exits: [ { after_messages: 5, to: finish } ] }
entry: panel
"#;

fn script() -> Json {
    json!({
        "panel#extract": [
            { "output": { "topic": "ships" } },
            { "output": { "spec": "by sail" } },
            { "error": "provider_overloaded" },
            { "output": { "spec": "by steam" } },
        ],
        "ben#extract": [ { "output": { "tags": ["sea"] } }, { "output": { "tags": 5 } } ],
        "panel#summary": [ "They began.", "They went on." ],
        "ann": [ "By sail.", "Still.", "By steam." ],
        "ben": [ "No.", "Never." ],
    })
}

/// Returns the parts in which equal sessions agree.
fn essence(seen: &Inspection) -> String {
    let branch = seen.current_branch().unwrap();
    let mut agents: Vec<_> = branch.snapshot.agents.values().collect();
    agents.sort_by_key(|a| a.family.path.clone());
    let mut out = String::new();
    for agent in agents {
        let stack: Vec<Interaction> = seen
            .stack(branch, agent.id)
            .into_iter()
            .map(|(_, i)| i)
            .collect();
        writeln!(out, "{} {}", agent.def, trace::letters(&stack)).unwrap();
        for interaction in &stack {
            let body = match interaction {
                Interaction::Summary(summary) => Some(summary.body),
                Interaction::Result(result) => result.body,
                _ => None,
            };
            if let Some(body) = body {
                writeln!(out, "  {}", seen.history.text(body)).unwrap();
            }
        }
    }
    for ((_, name), cell) in &branch.snapshot.state {
        writeln!(out, "{name} = {}", cell.value.0).unwrap();
    }
    out
}

#[tokio::test]
async fn a_kill_behind_every_line_changes_nothing() {
    let world = World::new(script());
    let session = world.start(PANEL, "About ships.").await;
    session.settled().await.unwrap();
    let lines = world.store.lines();
    let calm = world.engine.inspect("session").await.unwrap();
    let undisturbed = essence(&calm);
    insta::assert_snapshot!(undisturbed);
    // 5 turns, 5 extractions (a sixth failed and does not count), 2 summaries.
    assert_eq!(calm.ledger.calls, 12);
    for kept in 0..lines {
        let world = World::new(script());
        world.store.write_only(kept, Behind::Silence);
        let session = world.start(PANEL, "About ships.").await;
        tokio::select! {
            settled = session.settled() => drop(settled),
            () = async {
                for _ in 0..2_000 {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
        drop(session);
        let world = world.killed().await;
        let session = world.open().await;
        session.settled().await.unwrap();
        let seen = world.engine.inspect("session").await.unwrap();
        assert_eq!(essence(&seen), undisturbed, "killed after line {kept}");
    }
}

/// Only the answers of members are streamed.
#[tokio::test]
async fn what_the_engine_asks_for_itself_is_shown_to_nobody() {
    let world = World::new(script());
    let session = world.start(PANEL, "About ships.").await;
    let mut feed = session.feed(Line::NONE);
    let mut heard = String::new();
    loop {
        match feed.next().await.unwrap() {
            FeedItem::Delta {
                delta: Delta::Text(text),
                ..
            } => heard.push_str(&text),
            FeedItem::Settled { .. } => break,
            _ => {}
        }
    }
    assert!(heard.contains("steam"), "{heard}");
    for hidden in ["ships", "sea", "began", "went on"] {
        assert!(!heard.contains(hidden), "{heard}");
    }
}
