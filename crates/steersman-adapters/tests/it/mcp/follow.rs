//! Whole sessions whose servers change their tools.

use super::Diary;
use crate::tools::{env, network};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;
use steersman_adapters::mcp::McpTools;
use steersman_adapters::schema::Schemas;
use steersman_runtime::clock::System;
use steersman_runtime::engine::{Engine, Options, Parts, StartOptions};
use steersman_runtime::model::scripted::{Script, ScriptedModel};
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::{Session, Settled};
use steersman_runtime::store::memory::MemoryStore;

/// An answer that lists the tools of its request.
const OFFERED: &str = "{{ request.tools | join(' ') }}";
const LAST: &str = "{{ request.last }}";

/// An engine over this store with connections of its own, like another process.
fn engine(store: &MemoryStore, script: &Json) -> Engine {
    Engine::new(Parts {
        store: Arc::new(store.clone()),
        clock: Arc::new(System),
        models: Arc::new(ScriptedModel::new(Script::parse(script).unwrap())),
        toolsets: vec![Arc::new(McpTools::default())],
        sealer: Sealer::new(&[7; 32]),
        options: Options {
            env: env(&[]),
            judge: Some(Arc::new(Schemas::default())),
            ..Options::default()
        },
    })
}

fn desk(diary: &Diary, refresh: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp/server.sh");
    let (script, diary) = (script.display(), diary.0.display());
    format!(
        "models: {{ default: scripted }}\nmcp: {{ s: {{ command: [sh, '{script}', '{diary}', grows], effect: read, \
         refresh: {refresh}, tools: [change, echo, new_one, strict, die] }} }}\n\
         agents: {{ main: {{ system: You work., tools: ['s.*'] }} }}\n"
    )
}

async fn start(engine: &Engine, yaml: &str) -> Session {
    let options = StartOptions {
        id: Some("session".into()),
        say: Some("Go.".to_owned()),
        ..StartOptions::default()
    };
    engine.start(network(yaml), options).await.unwrap()
}

async fn answer(session: &Session) -> String {
    match &*session.settled().await.unwrap() {
        Settled::Answered { text, .. } => text.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_list_that_changes_within_a_call_is_taken_over_after_it() {
    let diary = Diary::new("follow");
    let script = json!({ "main": [{ "call": { "s.change": {} } }, OFFERED] });
    let engine = engine(&MemoryStore::new(), &script);
    let session = start(&engine, &desk(&diary, "follow")).await;
    assert_eq!(
        answer(&session).await,
        "s__change s__strict s__echo s__new_one"
    );
}

#[tokio::test]
async fn a_server_that_was_started_anew_is_asked_again() {
    let diary = Diary::new("anew");
    let script = json!({ "main": [OFFERED, OFFERED] });
    let store = MemoryStore::new();
    let first = engine(&store, &script);
    let session = start(&first, &desk(&diary, "follow")).await;
    assert_eq!(answer(&session).await, "s__change s__strict s__echo");
    first.kill().await;
    std::fs::write(&diary.0, "changed\n").unwrap();
    let second = engine(&store, &script);
    let session = second.open("session").await.unwrap();
    session.say("And now?").await.unwrap();
    assert_eq!(
        answer(&session).await,
        "s__change s__strict s__echo s__new_one"
    );
}

/// A pinned session keeps its list of tools. When the server refuses a call of a tool that changed, the model reads that.
#[tokio::test]
async fn a_pinned_call_of_a_tool_that_changed_is_refused_by_the_server() {
    let diary = Diary::new("pinned");
    let script = json!({ "main": [
        { "call": { "s.strict": { "x": "y" } } }, { "call": { "s.change": {} } },
        { "call": { "s.strict": { "x": "y" } } }, LAST, OFFERED,
    ]});
    let engine = engine(&MemoryStore::new(), &script);
    let session = start(&engine, &desk(&diary, "pinned")).await;
    let told = answer(&session).await;
    assert!(
        told.contains("the server refused: it wants y now (-32602)"),
        "{told}"
    );
    session.say("And now?").await.unwrap();
    assert_eq!(answer(&session).await, "s__change s__strict s__echo");
}

/// A server that does not start for the next owner changes nothing of the tools that are offered, and the refusal is
/// recorded once.
#[tokio::test]
async fn a_server_that_died_changes_nothing_of_what_is_offered() {
    let diary = Diary::new("died");
    let script = json!({ "main": [{ "call": { "s.echo": {} } }, OFFERED, OFFERED] });
    let store = MemoryStore::new();
    let first = engine(&store, &script);
    let yaml = desk(&diary, "follow").replace("grows", "'dead if told'");
    let session = start(&first, &yaml).await;
    assert_eq!(answer(&session).await, "s__echo");
    first.kill().await;
    std::fs::write(&diary.0, "dead\n").unwrap();
    let second = engine(&store, &script);
    let session = second.open("session").await.unwrap();
    session.say("And now?").await.unwrap();
    assert_eq!(answer(&session).await, "s__echo");
    let mut feed = second.feed("session", steersman_machine::stored::ids::Line::NONE);
    let lines = feed.lines().await.unwrap();
    let refused = lines.iter().flat_map(|line| &line.ledger).filter(|entry| {
        matches!(
            entry,
            steersman_machine::stored::commit::LedgerEntry::Refused { .. }
        )
    });
    assert_eq!(refused.count(), 1);
}
