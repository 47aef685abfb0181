//! The process dies after each line of a short session in turn, and the next owner brings the session to the same end.

use crate::spy::Behind;
use crate::world::{World, asked};
use futures::FutureExt;
use serde_json::{Value as Json, json};
use std::fmt::Write;
use steersman_machine::trace;
use steersman_runtime::engine::Inspection;
use steersman_runtime::inbox::Resolution;
use steersman_runtime::session::{Session, Settled};

const DESK: &str = r#"
state: { sent: { type: integer, default: 0 }, seen: { type: [string], default: [], reduce: append } }
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, set: { seen: "{{ args.what }}" }, native: 1 }
  note: { description: Notes., parameters: { text: string }, effect: idempotent, native: 1 }
  pay:
    description: Pays.
    parameters: { cents: integer }
    effect: unsafe
    approve: { when: "args.cents > 100", by: user, ask: "Pay {{ args.cents }}?" }
    set: { sent: "{{ args.cents }}" }
    native: 1
agents:
  desk: { system: You are a desk., tools: [look, pay, { agent: helper, named: true }] }
  helper: { description: Helps., system: You help., tools: [note, look] }
entry: desk
"#;

fn script() -> Json {
    json!({
        "desk": [
            { "call": [{ "look": { "what": "a" } }, { "helper": { "name": "h", "message": "note it" } }] },
            { "call": [{ "pay": { "cents": 500 } }, { "look": { "what": "b" } }] },
            { "call": { "helper": { "name": "h", "message": "and again" } } },
            "Paid.",
        ],
        "helper": [
            { "call": { "note": { "text": "paid" } } },
            "Noted.",
            { "call": [{ "look": { "what": "c" } }, { "note": { "text": "again" } }] },
            "Noted again.",
        ],
    })
}

/// Returns the parts in which equal sessions agree: agents by path, letters and texts of their stacks, state.
fn essence(seen: &Inspection) -> String {
    let branch = seen.current_branch().unwrap();
    let mut agents: Vec<_> = branch.snapshot.agents.values().collect();
    agents.sort_by_key(|a| a.family.path.clone());
    let stacks = agents.iter().map(|agent| {
        let stack: Vec<_> = seen
            .stack(branch, agent.id)
            .into_iter()
            .map(|(_, i)| i)
            .collect();
        let answer = agent.turn.answer.map(|b| seen.history.text(b));
        format!(
            "{:?} {} {} {:?} {:?}\n",
            agent.family.path,
            agent.def,
            trace::letters(&stack),
            agent.turn.ended,
            answer
        )
    });
    let mut out: String = stacks.collect();
    for ((_, name), cell) in &branch.snapshot.state {
        writeln!(out, "{name} = {}", cell.value.0).unwrap();
    }
    out
}

/// Drives a session to its end: approves all that it asks, and resolves each doubt as done.
pub(crate) async fn to_the_end(session: &Session) {
    for _ in 0..8 {
        let settled = session.settled().await.unwrap();
        match &*settled {
            Settled::Asks(_) => {
                session.approve(asked(&settled), "user").await.unwrap();
            }
            // The test knows that the payment happened.
            Settled::Doubt(_) => {
                let done = Resolution::Done {
                    result: json!("pay is done").to_string(),
                };
                session
                    .resolve(asked(&settled), done, "user")
                    .await
                    .unwrap();
            }
            _ => return,
        }
    }
    panic!("it does not come to an end");
}

#[tokio::test]
async fn a_kill_behind_every_line_changes_nothing() {
    let world = World::new(script());
    let session = world.start(DESK, "Pay.").await;
    to_the_end(&session).await;
    let lines = world.store.lines();
    let calm = world.engine.inspect("session").await.unwrap();
    let (undisturbed, least) = (essence(&calm), calm.ledger.spent.tokens);
    insta::assert_snapshot!(undisturbed);
    assert!(lines >= 12, "{lines} lines");
    for kept in 0..lines {
        let world = World::new(script());
        world.store.write_only(kept, Behind::Silence);
        let session = world.start(DESK, "Pay.").await;
        // Goes as far as it can without the disk.
        let driven = async {
            to_the_end(&session).await;
        };
        tokio::select! {
            () = driven => {}
            () = async {
                for _ in 0..2_000 {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
        drop(session);
        let before = world.tools.count("pay");
        let world = world.killed().await;
        let session = world.open().await;
        to_the_end(&session).await;
        let seen = world.engine.inspect("session").await.unwrap();
        assert_eq!(essence(&seen), undisturbed, "killed after line {kept}");
        assert_eq!(
            world.tools.count("pay"),
            1,
            "killed after line {kept}, {before} before"
        );
        check_keys(&world, kept);
        let spent = seen.ledger.spent.tokens;
        assert!(
            spent >= least,
            "killed after line {kept}: {spent} < {least}"
        );
    }
}

/// All attempts of an idempotent effect have one key.
fn check_keys(world: &World, kept: usize) {
    let mut keys: Vec<_> = world
        .tools
        .runs()
        .into_iter()
        .filter(|r| r.0 == "note")
        .collect();
    keys.sort();
    keys.dedup_by_key(|r| r.1.clone());
    assert_eq!(keys.len(), 2, "killed after line {kept}: {keys:?}");
}

/// Each owner dies after two more lines, and the session still comes to its end.
#[tokio::test]
async fn killed_at_every_second_line_it_still_ends() {
    let mut world = World::new(script());
    drop(world.start(DESK, "Pay.").await);
    for _ in 0..60 {
        world.store.write_only(2, Behind::Silence);
        let session = world.open().await;
        tokio::select! {
            () = to_the_end(&session) => {}
            () = async {
                for _ in 0..2_000 {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
        drop(session);
        world = world.killed().await;
    }
    let session = world.open().await;
    to_the_end(&session).await;
    assert_eq!(world.tools.count("pay"), 1);
    let seen = world.engine.inspect("session").await.unwrap();
    assert!(
        matches!(seen.settled, Settled::Answered { .. }),
        "{:?}",
        seen.settled
    );
}

#[tokio::test]
async fn a_full_disk_stops_the_session_and_loses_nothing() {
    let world = World::new(script());
    world.store.write_only(2, Behind::Full);
    let session = world.start(DESK, "Pay.").await;
    let error = session.settled().await.unwrap_err();
    assert!(error.to_string().contains("the disk"), "{error}");
    assert_eq!(world.tools.count("pay"), 0);
    drop(session);
    let world = world.killed().await;
    let session = world.open().await;
    to_the_end(&session).await;
    assert_eq!(world.tools.count("pay"), 1);
}

#[tokio::test]
async fn two_engines_do_not_own_one_session() {
    let world = World::new(script());
    let session = world.start(DESK, "Pay.").await;
    let other = world.again();
    let error = other.engine.open("session").await.map(drop).unwrap_err();
    assert!(error.to_string().contains("is owned by process"), "{error}");
    // The other engine may still inspect the session.
    session.settled().await.unwrap();
    let seen = other.engine.inspect("session").await.unwrap();
    assert_eq!(seen.pending.len(), 1);
    session.stop().await;
    let session = other.open().await;
    to_the_end(&session).await;
    assert_eq!(other.tools.count("pay"), 1);
}

#[tokio::test]
async fn stopped_in_order_nothing_is_in_doubt() {
    use crate::world::Does;
    use std::sync::Arc;
    let world = World::new(script());
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    world
        .tools
        .will("pay", Does::Gate(gate.clone(), json!("pay is done")));
    let session = world.start(DESK, "Pay.").await;
    let settled = session.settled().await.unwrap();
    session.approve(asked(&settled), "user").await.unwrap();
    while world.tools.count("pay") == 0 {
        tokio::task::yield_now().await;
    }
    let stopped = tokio::spawn(session.stop());
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!stopped.is_finished(), "stop waits for the running effect");
    gate.add_permits(1);
    stopped.await.unwrap();
    let world = world.killed().await;
    let session = world.open().await;
    to_the_end(&session).await;
    assert_eq!(world.tools.count("pay"), 1);
    let seen = world.engine.inspect("session").await.unwrap();
    let settled_by_takeover = world.printed().await;
    assert!(
        !settled_by_takeover.contains("unknown"),
        "{settled_by_takeover}"
    );
    assert!(
        seen.ledger.spent.tokens < 10_000,
        "the unspent draw came back: {:?}",
        seen.ledger.spent
    );
}

/// Returns a session with an approved call whose `Started` waits for a slow disk. Nothing has run yet.
async fn about_to_begin() -> (World, Session, std::sync::Arc<tokio::sync::Semaphore>) {
    let world = World::new(script());
    let session = world.start(DESK, "Pay.").await;
    let settled = session.settled().await.unwrap();
    let gate = world.store.stall_behind(world.store.lines());
    let (approved, effect) = (session.clone(), asked(&settled));
    tokio::spawn(async move { approved.approve(effect, "user").await });
    while world.store.ahead().0 == 0 {
        tokio::task::yield_now().await;
    }
    (world, session, gate)
}

async fn begun_only_once_and_never_doubted(world: &World) {
    assert_eq!(world.tools.count("pay"), 1);
    let printed = world.printed().await;
    assert!(printed.contains("not performed"), "{printed}");
    assert!(!printed.contains("unknown"), "{printed}");
}

#[tokio::test]
async fn stopped_before_it_began_it_ends_and_nothing_is_in_doubt() {
    let (world, session, gate) = about_to_begin().await;
    let stopped = tokio::spawn(session.stop());
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
    assert!(
        stopped.is_finished(),
        "stop does not wait for an effect that never began"
    );
    assert_eq!(world.tools.count("pay"), 0);
    let world = world.killed().await;
    to_the_end(&world.open().await).await;
    begun_only_once_and_never_doubted(&world).await;
}

#[tokio::test]
async fn paused_before_it_began_it_rests_and_begins_when_it_goes_on() {
    let (world, session, gate) = about_to_begin().await;
    let pausing = session.clone();
    let paused = tokio::spawn(async move { pausing.pause().await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    paused.await.unwrap().unwrap();
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
    let settled = session.settled().now_or_never();
    let settled = settled.expect("it rests").unwrap();
    assert_eq!(*settled, Settled::Paused);
    assert_eq!(world.tools.count("pay"), 0);
    session.resume().await.unwrap();
    to_the_end(&session).await;
    begun_only_once_and_never_doubted(&world).await;
}
