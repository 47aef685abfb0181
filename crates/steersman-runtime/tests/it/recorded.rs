//! The outcome of an effect that is used on another branch or by another owner is complete: with its state, its sealed
//! values and its follow-up call.

use crate::effects::{settle, until_run};
use crate::world::{Does, World, answered, asked};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_machine::stored::commit::LedgerEntry;
use steersman_machine::stored::ids::{Id, Line};
use steersman_runtime::inbox::{Message, Resolution, Wanted};
use steersman_runtime::session::{Fate, Fork, Session, Settled};
use tokio::sync::Semaphore;

const BANK: &str = r#"
state:
  balance: { type: integer, optional: true }
  token: { type: secret, optional: true }
tools:
  pay:
    description: Pays.
    parameters: { cents: integer }
    effect: unsafe
    native: 1
    set: { balance: "{{ result.balance }}", token: "{{ result.token }}" }
    result: Paid.
    then: { tool: look, args: { at: "{{ result.balance }}" } }
  look: { description: Looks., parameters: { at: integer }, effect: read, native: 1 }
agents:
  main: { system: You pay., tools: [pay] }
"#;

fn pay() -> Json {
    json!({ "call": { "pay": { "cents": 5 } } })
}

fn gave() -> Json {
    json!({ "balance": 95, "token": "sesame-open" })
}

/// State entries of a branch, by name; sealed ones as `(sealed)`.
async fn state(world: &World, branch: Id) -> Json {
    let seen = world.engine.inspect("session").await.unwrap();
    let found = seen.branches.iter().find(|b| b.id == branch).unwrap();
    let cells = found.snapshot.state.iter().map(|((_, name), cell)| {
        let sealed = cell.value.0.get("$sealed").is_some();
        let value = if sealed {
            json!("(sealed)")
        } else {
            (*cell.value.0).clone()
        };
        (name.to_string(), value)
    });
    Json::Object(cells.collect())
}

fn paid() -> Json {
    json!({ "balance": 95, "token": "(sealed)" })
}

async fn branch_named(world: &World, label: &str) -> Id {
    let seen = world.engine.inspect("session").await.unwrap();
    let mut branches = seen.branches.iter();
    let found = branches.find(|b| b.label.as_deref() == Some(label));
    found.unwrap().id
}

async fn rewound(session: &Session) {
    let rewind = Message::from(Wanted::Rewind {
        at: Line(1),
        label: Some("other".into()),
        say: None,
    });
    session.send(rewind).await.unwrap();
}

/// Checks that the secret of the service is nowhere in the log in clear.
async fn nothing_is_plain(world: &World) {
    for line in world.lines().await {
        let told = format!("{:?}", line.bodies);
        assert!(!told.contains("sesame"), "line {}: {told}", line.n);
    }
}

#[tokio::test]
async fn a_dry_branch_has_the_state_of_the_recording() {
    let script = json!({
        "main": [pay(), "Paid it."],
        "main@dry": [pay(), "Would pay it."],
    });
    let world = World::new(script);
    world.tools.will("pay", Does::Done(gave()));
    let session = world.start(BANK, "Pay.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid it.");
    assert_eq!(state(&world, Id::MAIN).await, paid());
    let dry = Fork {
        at: Some(Line(1)),
        label: Some("dry".into()),
        ..Fork::default()
    };
    session.fork(dry).await.unwrap();
    session.settled().await.unwrap();
    let dry = branch_named(&world, "dry").await;
    assert_eq!(world.tools.count("pay"), 1);
    assert_eq!(state(&world, dry).await, paid());
    let followed = world.tools.args("look");
    assert_eq!(followed, [json!({ "at": 95 }), json!({ "at": 95 })]);
    assert!(world.printed().await.contains("Would pay it."));
    nothing_is_plain(&world).await;
}

/// The branch was left while its payment ran, and is made current again after the payment.
async fn left_and_taken_up(restarted: bool) {
    let script = json!({
        "main": [pay(), "Paid it."],
        "main@other": ["Otherwise."],
    });
    let mut world = World::new(script);
    let gate = Arc::new(Semaphore::new(0));
    world.tools.will("pay", Does::Gate(gate.clone(), gave()));
    let mut session = world.start(BANK, "Pay.").await;
    until_run(&world, "pay", 1).await;
    rewound(&session).await;
    session.settled().await.unwrap();
    gate.add_permits(1);
    settle().await;
    if restarted {
        drop(session);
        world = world.killed().await;
        session = world.open().await;
    }
    session.make_current(Id::MAIN).await.unwrap();
    let settled = session.settled().await.unwrap();
    assert_eq!(answered(&settled), "Paid it.", "{}", world.printed().await);
    assert_eq!(world.tools.count("pay"), 1);
    assert_eq!(state(&world, Id::MAIN).await, paid());
    assert_eq!(world.tools.args("look"), [json!({ "at": 95 })]);
    nothing_is_plain(&world).await;
}

#[tokio::test]
async fn a_branch_that_is_current_again_has_what_was_done_meanwhile() {
    left_and_taken_up(false).await;
}

#[tokio::test]
async fn so_it_has_in_another_process() {
    left_and_taken_up(true).await;
}

/// The outcome and the rewind arrive together, and the rewind is read first.
#[tokio::test]
async fn an_outcome_that_meets_a_rewind_is_not_lost() {
    let world = World::new(json!({ "main": [pay(), "Paid it."], "main@other": ["Otherwise."] }));
    let gate = Arc::new(Semaphore::new(0));
    world.tools.will("pay", Does::Gate(gate.clone(), gave()));
    let session = world.start(BANK, "Pay.").await;
    until_run(&world, "pay", 1).await;
    gate.add_permits(1);
    rewound(&session).await;
    session.settled().await.unwrap();
    let lines = world.lines().await;
    let mut entries = lines.iter().flat_map(|line| &line.ledger);
    let done = entries.any(|e| matches!(e, LedgerEntry::Done { .. }));
    assert!(done, "{}", world.printed().await);
    session.make_current(Id::MAIN).await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(state(&world, Id::MAIN).await, paid());
    nothing_is_plain(&world).await;
}

/// A call was cancelled while it ran: no secret of its late outcome is in the log in clear.
#[tokio::test]
async fn what_comes_of_a_cancelled_call_is_recorded_as_it_would_have_been() {
    let world =
        World::new(json!({ "main": [pay(), "Stopped."] , "main@dry": [pay(), "Would pay it."] }));
    let gate = Arc::new(Semaphore::new(0));
    world.tools.will("pay", Does::Gate(gate.clone(), gave()));
    let session = world.start(BANK, "Pay.").await;
    until_run(&world, "pay", 1).await;
    session.interrupt("Stop.").await.unwrap();
    session.settled().await.unwrap();
    gate.add_permits(1);
    settle().await;
    nothing_is_plain(&world).await;
}

/// A person resolves a doubt of a superseded branch. The branch gets that result when it goes on.
#[tokio::test]
async fn a_doubt_that_is_settled_behind_its_branch_keeps_its_result() {
    let script = json!({ "main": [pay(), "Paid it."], "main@other": ["Otherwise."] });
    let world = World::new(script);
    world.tools.will("pay", Does::Unknown);
    let session = world.start(BANK, "Pay.").await;
    let effect = asked(&session.settled().await.unwrap());
    rewound(&session).await;
    session.settled().await.unwrap();
    let result = gave().to_string();
    let receipt = session.resolve(effect, Resolution::Done { result }, "user");
    let fate = receipt.await.unwrap().fate;
    assert!(matches!(fate, Fate::Taken(_)), "{fate:?}");
    session.make_current(Id::MAIN).await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid it.");
    assert_eq!(world.tools.count("pay"), 1);
    assert_eq!(state(&world, Id::MAIN).await, paid());
    nothing_is_plain(&world).await;
}

const FORKER: &str = r#"
tools:
  pay: { description: Pays., effect: unsafe, native: 1, set: { balance: "{{ result.balance }}" }, result: Paid., then: look }
  look: { description: Looks., effect: read, native: 1 }
agents:
  lead:
    system: You pay.
    state: { balance: { type: integer, optional: true } }
    tools: [pay, { tool: fork, max: 2, effects: live, choose: user }]
"#;

#[tokio::test]
async fn an_adopted_call_has_the_state_of_its_branch() {
    let script = json!({
        "lead": [{ "call": { "fork": { "instructions": ["one", "two"] } } }, "Adopted."],
        "lead@1": [{ "call": { "pay": {} } }, "Paid there."],
        "lead@2": ["Not paid."],
    });
    let world = World::new(script);
    world.tools.will("pay", Does::Done(gave()));
    let session = world.start(FORKER, "Go.").await;
    let settled = session.settled().await.unwrap();
    assert!(matches!(&*settled, Settled::Asks(_)), "{settled:?}");
    let lines = world.lines().await;
    let begun = lines.iter().find(|line| {
        let started = |e: &LedgerEntry| matches!(e, LedgerEntry::Started { .. });
        line.ledger.iter().any(started)
    });
    let begun = begun.unwrap();
    session.adopt(begun.branch, Some(begun.n)).await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(world.tools.count("pay"), 1);
    assert_eq!(world.tools.count("look"), 2, "{}", world.printed().await);
    assert_eq!(state(&world, Id::MAIN).await, json!({ "balance": 95 }));
}
