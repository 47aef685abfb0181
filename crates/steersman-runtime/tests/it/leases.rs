//! A worker whose lease is over begins nothing more, and another worker goes on with its sessions.

use crate::effects::settle;
use crate::spy::Spy;
use crate::world::{Does, World, answered};
use serde_json::json;
use std::sync::Arc;
use steersman_runtime::engine::{Durability, EngineError};
use steersman_runtime::store::awkward::AwkwardStore;
use steersman_runtime::store::{Lists as _, SessionQuery};
use tokio::sync::Semaphore;

const DESK: &str = r"
tools:
  pay: { description: Pays., effect: idempotent, native: 1 }
  note: { description: Notes., effect: idempotent, native: 1 }
agents:
  main: { system: You pay., tools: [pay, note] }
";

#[tokio::test]
async fn a_worker_whose_lease_is_over_begins_nothing_more() {
    let store = AwkwardStore::new();
    let script =
        json!({ "main": [{ "call": { "pay": {} } }, { "call": { "note": {} } }, "Paid."] });
    let spy = Spy::over(Arc::new(store.clone()));
    let world = World::over(spy, Durability::Commit, script);
    let gate = Arc::new(Semaphore::new(0));
    world
        .tools
        .will("pay", Does::Gate(gate.clone(), json!("late")));
    let session = world.start(DESK, "Go.").await;
    while world.tools.count("pay") == 0 {
        tokio::task::yield_now().await;
    }
    let worker = world.engine.worker().await.unwrap().clone();
    assert!(worker.lease.is_live());
    store.ends_lease(&worker);
    assert!(!worker.lease.is_live());
    let gone = session.settled().await.unwrap_err();
    assert!(matches!(gone, EngineError::Gone(_)), "{gone:?}");

    let other = world.again();
    let session = other.open().await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    session.stop().await;
    let lines = other.lines().await.len();
    // The outcome of the first attempt comes, and writes nothing.
    gate.add_permits(1);
    settle().await;
    assert_eq!(other.lines().await.len(), lines);
    let runs = world.tools.runs();
    let pays: Vec<_> = runs.iter().filter(|(tool, ..)| tool == "pay").collect();
    assert_eq!(pays.len(), 2);
    assert_eq!(pays[0].1, pays[1].1, "one key for all attempts");
    assert_eq!(world.tools.count("note"), 1);
    let listed = store.sessions(&SessionQuery::default()).await.unwrap();
    assert_eq!(listed[0].owner, None);
}
