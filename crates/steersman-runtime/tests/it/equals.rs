//! Calls that wait for the end of an equal effect.

use crate::repeats::{APPROVED, DESK, call, question, twice};
use crate::world::{Does, World, answered};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use steersman_machine::stored::ids::Line;
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::session::{Fork, Session, Settled};
use tokio::sync::Semaphore;

#[tokio::test]
async fn of_two_equal_calls_of_one_answer_the_second_waits_for_the_first() {
    let world = World::new(json!({ "main": [twice("pay"), "Paid."] }));
    let gate = Arc::new(Semaphore::new(0));
    world
        .tools
        .will("pay", Does::Gate(gate.clone(), json!("first")));
    let session = world.start(DESK, "Pay.").await;
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        world.tools.count("pay"),
        1,
        "the second does not start while the first runs"
    );
    gate.add_permits(1);
    let (effect, kind, _) = question(&session).await;
    assert_eq!((kind, world.tools.count("pay")), ("repeat", 1));
    session.reject(effect, None, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(world.tools.count("pay"), 1);
}

/// After an effect that provably did not happen, an equal one begins without a question.
#[tokio::test]
async fn behind_a_call_that_did_not_happen_an_equal_one_begins() {
    let world = World::new(json!({ "main": [twice("pay"), "Paid."] }));
    let refused = Fault::new("http_404", "no such account");
    world.tools.will("pay", Does::NotPerformed(refused));
    let session = world.start(DESK, "Pay.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(world.tools.count("pay"), 2);
}

/// An effect runs on a superseded branch: an equal call waits for its end, and a person is asked whether to repeat it.
#[tokio::test]
async fn what_runs_on_a_branch_that_was_left_is_waited_for() {
    let world = World::new(json!({ "main": [call("pay", 5), "Paid."] }));
    let gate = Arc::new(Semaphore::new(0));
    world
        .tools
        .will("pay", Does::Gate(gate.clone(), json!("first")));
    let session = world.start(DESK, "Pay.").await;
    while world.tools.count("pay") == 0 {
        tokio::task::yield_now().await;
    }
    session.rewind(Line(1), Some("Again.")).await.unwrap();
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.tools.count("pay"), 1);
    gate.add_permits(1);
    let (effect, kind, _) = question(&session).await;
    assert_eq!((kind, world.tools.count("pay")), ("repeat", 1));
    session.approve(effect, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
}

/// A call that waits for an equal effect still needs its approval when that effect has ended.
#[tokio::test]
async fn who_waits_for_an_equal_effect_is_approved_all_the_same() {
    let definition = APPROVED.replace("when: true", "when: state.asks");
    let definition = format!(
        "state: {{ asks: {{ type: boolean, default: false }} }}\n{}",
        definition.replace(
            "agents:",
            "  strict: { description: Asks., set: { asks: true } }\nagents:"
        )
    )
    .replace("tools: [pay]", "tools: [pay, strict]");
    let world = World::new(json!({
        "main": [call("pay", 5), "Paid."],
        "main@b": [{ "call": { "strict": {} } }, call("pay", 5), "Paid there."],
    }));
    let gate = Arc::new(Semaphore::new(0));
    let refused = Fault::new("http_404", "no such account");
    world
        .tools
        .will("pay", Does::Gate(gate.clone(), json!("first")));
    world.tools.will("pay", Does::NotPerformed(refused));
    let session = world.start(&definition, "Pay.").await;
    while world.tools.count("pay") == 0 {
        tokio::task::yield_now().await;
    }
    let fork = Fork {
        at: Some(Line(1)),
        label: Some("b".into()),
        live: true,
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
    session.hold(Some("pay"), "user").await.unwrap();
    session.release(Some("pay"), "user").await.unwrap();
    assert_eq!(world.tools.count("pay"), 1);
    gate.add_permits(1);
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    let seen = world.engine.inspect("session").await.unwrap();
    let kinds: Vec<&str> = seen.pending.iter().map(|p| p.kind.word()).collect();
    assert_eq!((kinds, world.tools.count("pay")), (vec!["approval"], 1));
}

/// A call waits for an equal effect that itself waits, for a time or for a release. The session settles, also under the next
/// owner.
#[tokio::test]
async fn a_session_settles_where_a_call_waits_for_an_equal_one_that_waits_itself() {
    for held in [false, true] {
        let definition = DESK.replace("effect: idempotent,", "effect: idempotent, retry: 2,");
        let world = World::new(json!({
            "main": [call("mail", 5), "Sent."],
            "main@b": [call("mail", 5), "Sent there."],
        }));
        let late = Raw::Unknown(Fault {
            again: Some(600_000),
            ..Fault::new("http_503", "come back later")
        });
        let first = Does::Ends(Arc::new(Semaphore::new(1)), late);
        world
            .tools
            .will("mail", if held { Does::Hangs } else { first });
        let session = world.start(&definition, "Mail.").await;
        while world.tools.count("mail") == 0 {
            tokio::task::yield_now().await;
        }
        let fork = Fork {
            at: Some(Line(1)),
            label: Some("b".into()),
            live: true,
            ..Fork::default()
        };
        session.fork(fork).await.unwrap();
        if held {
            session.hold(Some("mail"), "user").await.unwrap();
        } else {
            waits(&session).await;
        }
        drop(session);
        let world = world.killed().await;
        let session = world.open().await;
        waits(&session).await;
        assert_eq!(world.tools.count("mail"), 1);
        if held {
            session.release(Some("mail"), "user").await.unwrap();
        }
        world.clock.advance(700_000);
        while world.tools.count("mail") == 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
        let seen = world.engine.inspect("session").await.unwrap();
        let kinds: Vec<&str> = seen.pending.iter().map(|p| p.kind.word()).collect();
        assert_eq!((kinds, world.tools.count("mail")), (vec!["repeat"], 2));
    }
}

/// Checks that the session settles and waits for something.
async fn waits(session: &Session) {
    let settled = tokio::time::timeout(Duration::from_secs(20), session.settled()).await;
    let settled = settled.expect("it settles").unwrap();
    assert!(matches!(&*settled, Settled::Waits(_)), "{settled:?}");
}
