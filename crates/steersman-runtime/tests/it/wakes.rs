//! Late, early and repeated signals: a wake of an attempt that a rewind left, an event whose wait was left, a failure during
//! a stop.

use crate::effects::{TOOLS, settle, until_run};
use crate::world::{Does, World, answered, network};
use serde_json::json;
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::engine::StartOptions;
use steersman_runtime::inbox::{Message, Wanted};
use steersman_runtime::session::Fate;
use steersman_runtime::step::Go;
use tokio::sync::Semaphore;

const NOTES: &str = "
tools: { note: { description: Notes., effect: idempotent, retry: 2, native: 1 } }
agents: { main: { system: You note., tools: [note] } }
";

fn notes() -> World {
    World::new(json!({ "main": [{ "call": { "note": {} } }, "Noted."], "main@b": ["Otherwise."] }))
}

fn passing(again: u64) -> Fault {
    Fault {
        again: Some(again),
        ..Fault::new("http_429", "too many")
    }
}

fn rewind(label: Option<&str>) -> Message {
    Message::from(Wanted::Rewind {
        at: Line(1),
        label: label.map(Into::into),
        say: None,
    })
}

/// A rewind left an attempt that waits for its wake. The wake comes when the branch is current again and the line of another
/// attempt is on its way to the disk.
#[tokio::test]
async fn an_attempt_begins_when_its_own_line_is_on_disk_whoever_wakes_it() {
    let world = notes();
    world
        .tools
        .will("note", Does::NotPerformed(passing(30_000)));
    let session = world.start(NOTES, "Go.").await;
    until_run(&world, "note", 1).await;
    session.send(rewind(Some("b"))).await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Otherwise.");
    let gate = world.store.stall_behind(world.store.lines() + 1);
    session.make_current(Id::MAIN).await.unwrap();
    settle().await;
    world.clock.advance(30_000);
    settle().await;
    assert_eq!(world.tools.count("note"), 1, "its line is not on disk");
    gate.add_permits(1_000);
    assert_eq!(answered(&session.settled().await.unwrap()), "Noted.");
    assert_eq!(world.tools.count("note"), 2);
}

/// A failure that passes is tried again by the next owner, however the tool ended during the stop.
#[tokio::test]
async fn a_failure_that_passes_is_tried_again_behind_a_stop() {
    let broke = Fault::new("timeout", "no answer");
    for ends in [Raw::NotPerformed(passing(0)), Raw::Unknown(broke)] {
        let world = notes();
        let gate = Arc::new(Semaphore::new(0));
        world.tools.will("note", Does::Ends(gate.clone(), ends));
        let session = world.start(NOTES, "Go.").await;
        until_run(&world, "note", 1).await;
        let stopped = tokio::spawn(session.stop());
        settle().await;
        gate.add_permits(1);
        stopped.await.unwrap();
        let session = world.open().await;
        assert_eq!(answered(&session.settled().await.unwrap()), "Noted.");
        assert_eq!(world.tools.count("note"), 2);
    }
}

/// An event met a wait that a rewind left before its branch took the event: the event is for the next wait.
#[tokio::test]
async fn an_event_whose_wait_was_left_meets_the_next() {
    let wait = json!({ "call": [{ "await_payment": { "invoice": "7" } }, { "look": {} }] });
    let world = World::new(json!({ "main": [wait, "So be it."] }));
    let options = StartOptions {
        id: Some("session".into()),
        say: Some("Go.".to_owned()),
        seed: Some(1),
        ..StartOptions::default()
    };
    world.engine.create(network(TOOLS), options).await.unwrap();
    let session = world.engine.open_stepping("session").await.unwrap();
    session.stood().await.unwrap();
    session.go(Go::Line).await.unwrap();
    while world
        .engine
        .inspect("session")
        .await
        .unwrap()
        .pending
        .is_empty()
    {
        tokio::task::yield_now().await;
    }
    settle().await;
    let event = {
        let session = session.clone();
        let paid = json!({ "invoice": "7", "cents": 5 });
        tokio::spawn(async move { session.event("paid", &paid).await })
    };
    settle().await;
    let fate = session.send(rewind(None)).await.unwrap().fate;
    assert!(matches!(fate, Fate::Taken(_)), "{fate:?}");
    session.go(Go::Free).await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    let fate = event.await.unwrap().unwrap().fate;
    assert!(matches!(fate, Fate::Taken(_) | Fate::Waits(_)), "{fate:?}");
    let printed = world.printed().await;
    assert!(!printed.contains("nobody waits"), "{printed}");
}
