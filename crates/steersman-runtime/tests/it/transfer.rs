//! Two calls with one approval; a crash around them; messages during their exchange; a rewind past the approval.

use crate::spy::Behind;
use crate::world::{Does, World, answered, asked};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_machine::stored::ids::Line;
use steersman_machine::view::mapping::Fault;
use steersman_runtime::inbox::Resolution;
use steersman_runtime::pending::PendingId;
use steersman_runtime::session::{Fate, Settled};
use tokio::sync::Semaphore;

const BANK: &str = r#"
state: { sent: { type: integer, default: 0 } }
tools:
  balance_sufficient: { description: Checks., parameters: { cents: integer }, effect: read, native: 1 }
  transfer:
    description: Moves money.
    parameters: { to: string, cents: integer }
    effect: unsafe
    requires: { that: "args.cents <= 1000", else: Too much. }
    approve: { when: true, by: user, ask: "Send {{ args.cents }} to {{ args.to }}?", edit: [cents] }
    set: { sent: "{{ args.cents }}" }
    native: 1
agents:
  xfer: { system: You move money., tools: [balance_sufficient, transfer] }
"#;

fn script() -> Json {
    let both = json!({ "call": [
        { "balance_sufficient": { "cents": 500 } },
        { "transfer": { "to": "1234324", "cents": 500 } },
    ] });
    json!({ "xfer": [both, "Sent.", both, "Sent again.", "And more."] })
}

async fn until_asked(world: &World) -> (steersman_runtime::session::Session, PendingId) {
    let session = world.start(BANK, "500 to 1234324").await;
    let settled = session.settled().await.unwrap();
    let effect = asked(&settled);
    (session, effect)
}

#[tokio::test]
async fn an_approval_opens_exactly_one_effect() {
    let world = World::new(script());
    let (session, effect) = until_asked(&world).await;
    assert_eq!(world.tools.count("transfer"), 0);
    assert_eq!(world.tools.count("balance_sufficient"), 1);
    session.approve(effect, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
    assert_eq!(world.stack("xfer").await, "U A TC TC TR TR A F");
    assert_eq!(world.tools.count("transfer"), 1);
    insta::assert_snapshot!(world.printed().await);
}

#[tokio::test]
async fn a_rejection_is_a_result_with_the_reason() {
    let world = World::new(script());
    let (session, effect) = until_asked(&world).await;
    let receipt = session
        .reject(effect, Some("wrong account"), "user")
        .await
        .unwrap();
    assert!(matches!(receipt.fate, Fate::Taken(_)), "{receipt:?}");
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
    assert_eq!(world.tools.count("transfer"), 0);
    insta::assert_snapshot!(world.printed().await);
    let again = session.approve(effect, "user").await.unwrap();
    assert!(matches!(again.fate, Fate::Refused(_)), "{again:?}");
}

#[tokio::test]
async fn edited_arguments_are_judged_again_under_an_effect_of_their_own() {
    let world = World::new(script());
    let (session, effect) = until_asked(&world).await;
    let to = session
        .approve_edited(effect, &json!({ "to": "999" }), "user")
        .await
        .unwrap();
    assert!(matches!(to.fate, Fate::Refused(_)), "{to:?}");
    session
        .approve_edited(effect, &json!({ "cents": 400 }), "user")
        .await
        .unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
    assert_eq!(
        world.tools.args("transfer"),
        [json!({ "to": "1234324", "cents": 400 })]
    );
    insta::assert_snapshot!(world.printed().await);
}

#[tokio::test]
async fn edited_arguments_that_may_not_run_are_refused() {
    let world = World::new(script());
    let (session, effect) = until_asked(&world).await;
    let receipt = session
        .approve_edited(effect, &json!({ "cents": 5000 }), "user")
        .await
        .unwrap();
    let Fate::Refused(why) = &receipt.fate else {
        panic!("{receipt:?}")
    };
    assert_eq!(&**why, "Too much.");
    assert_eq!(asked(&session.settled().await.unwrap()), effect);
    assert_eq!(world.tools.count("transfer"), 0);
    session.approve(effect, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
}

#[tokio::test]
async fn a_slip_of_the_pen_does_not_use_an_approval_up() {
    let world = World::new(script());
    let (session, effect) = until_asked(&world).await;
    let receipt = session
        .approve_edited(effect, &json!({ "cents": "much" }), "user")
        .await
        .unwrap();
    assert!(matches!(receipt.fate, Fate::Refused(_)), "{receipt:?}");
    session.approve(effect, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
}

#[tokio::test]
async fn only_who_is_asked_may_answer() {
    let world = World::new(script());
    let (session, effect) = until_asked(&world).await;
    let receipt = session.approve(effect, "janitor").await.unwrap();
    assert!(matches!(receipt.fate, Fate::Refused(_)), "{receipt:?}");
    assert_eq!(asked(&session.settled().await.unwrap()), effect);
}

/// The process dies before the approval: lost lines are written again, and the session comes to the same question.
#[tokio::test]
async fn a_process_killed_before_the_approval_asks_the_same_question() {
    for kept in 1..=3 {
        let world = World::new(script());
        world.store.write_only(kept, Behind::Silence);
        let session = world.start(BANK, "500 to 1234324").await;
        while world.store.withheld() == 0 && world.store.lines() < 3 {
            tokio::task::yield_now().await;
        }
        drop(session);
        let world = world.killed().await;
        let session = world.open().await;
        let effect = asked(&session.settled().await.unwrap());
        session.approve(effect, "user").await.unwrap();
        assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
        assert_eq!(world.stack("xfer").await, "U A TC TC TR TR A F");
        assert_eq!(world.tools.count("transfer"), 1, "after {kept} lines");
    }
}

/// The process dies while the transfer runs: nobody knows whether it happened.
async fn died_under_way() -> (World, steersman_runtime::session::Session, PendingId) {
    let world = World::new(script());
    let gate = Arc::new(Semaphore::new(0));
    world
        .tools
        .will("transfer", Does::Gate(gate, json!("ref 77")));
    let (session, held) = until_asked(&world).await;
    session.approve(held, "user").await.unwrap();
    while world.tools.count("transfer") == 0 {
        tokio::task::yield_now().await;
    }
    drop(session);
    let world = world.killed().await;
    let session = world.open().await;
    let doubted = asked(&session.settled().await.unwrap());
    assert_eq!(doubted.effect, held.effect);
    (world, session, doubted)
}

#[tokio::test]
async fn a_started_effect_without_an_outcome_is_a_question() {
    let (world, session, effect) = died_under_way().await;
    let settled = session.settled().await.unwrap();
    assert!(matches!(&*settled, Settled::Doubt(_)), "{settled:?}");
    let done = Resolution::Done {
        result: json!("ref 77").to_string(),
    };
    session.resolve(effect, done, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
    assert_eq!(world.tools.count("transfer"), 1);
    insta::assert_snapshot!(world.printed().await);
}

#[tokio::test]
async fn an_effect_that_did_not_happen_runs_again_under_the_same_key_and_approval() {
    let (world, session, effect) = died_under_way().await;
    session
        .resolve(effect, Resolution::NotPerformed, "user")
        .await
        .unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
    let runs: Vec<_> = world
        .tools
        .runs()
        .into_iter()
        .filter(|r| r.0 == "transfer")
        .collect();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0].1, runs[1].1, "one key for all attempts");
    assert_eq!((runs[0].2, runs[1].2), (1, 2));
}

#[tokio::test]
async fn a_doubt_resolved_as_failed_tells_the_model() {
    let (world, session, effect) = died_under_way().await;
    session
        .resolve(effect, Resolution::Fail, "user")
        .await
        .unwrap();
    // The model makes the same call again, and the question of its approval says so.
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
    session.say("Once more.").await.unwrap();
    let settled = session.settled().await.unwrap();
    let Settled::Asks(pending) = &*settled else {
        panic!("{settled:?}")
    };
    assert_eq!(pending[0].kind.word(), "approval");
    let told = "The same call may have happened before, and nobody knows (2.1, given up at @101).";
    assert_eq!(&*pending[0].text, format!("Send 500 to 1234324? {told}"));
    assert_eq!(world.tools.count("transfer"), 1);
    session.reject(pending[0].id(), None, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent again.");
    assert_eq!(world.tools.count("transfer"), 1);
}

#[tokio::test]
async fn an_idempotent_effect_runs_again_unasked() {
    let world = World::new(script());
    let gate = Arc::new(Semaphore::new(0));
    world
        .tools
        .will("transfer", Does::Gate(gate, json!("ref 77")));
    let definition = BANK.replace("effect: unsafe", "effect: idempotent");
    let session = world.start(&definition, "500 to 1234324").await;
    let effect = asked(&session.settled().await.unwrap());
    session.approve(effect, "user").await.unwrap();
    while world.tools.count("transfer") == 0 {
        tokio::task::yield_now().await;
    }
    let world = world.killed().await;
    let session = world.open().await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
    let runs: Vec<_> = world
        .tools
        .runs()
        .into_iter()
        .filter(|r| r.0 == "transfer")
        .collect();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0].1, runs[1].1, "one key for all attempts");
}

/// A message during an exchange waits for its end, and the receipt says why. The next model call reads it with the results.
#[tokio::test]
async fn a_message_waits_for_the_end_of_the_exchange() {
    let world = World::new(script());
    let (session, effect) = until_asked(&world).await;
    let receipt = session.say("Is it done?").await.unwrap();
    assert!(
        matches!(&receipt.fate, Fate::Waits(why) if why.contains("xfer")),
        "{receipt:?}"
    );
    // A sender that asks after the session has read the message is told the same.
    assert_eq!(session.fate_of(&receipt.id).await, receipt.fate);
    assert_eq!(
        asked(&session.settled().await.unwrap()),
        effect,
        "it answers no approval"
    );
    session.approve(effect, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
    assert_eq!(world.stack("xfer").await, "U A TC TC TR TR U A F");
}

#[tokio::test]
async fn a_waiting_message_survives_the_process() {
    let world = World::new(script());
    let (session, _) = until_asked(&world).await;
    session.say("Is it done?").await.unwrap();
    let world = world.killed().await;
    let session = world.open().await;
    let effect = asked(&session.settled().await.unwrap());
    session.approve(effect, "user").await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(world.stack("xfer").await, "U A TC TC TR TR U A F");
}

#[tokio::test]
async fn an_interrupt_cancels_the_hold() {
    let world = World::new(script());
    let (session, effect) = until_asked(&world).await;
    session.interrupt("Stop.").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
    assert_eq!(world.stack("xfer").await, "U A TC TC TR TR U A F");
    assert_eq!(world.tools.count("transfer"), 0);
    let late = session.approve(effect, "user").await.unwrap();
    assert!(matches!(late.fate, Fate::Refused(_)), "{late:?}");
    insta::assert_snapshot!(world.printed().await);
}

#[tokio::test]
async fn an_interrupted_effect_may_have_happened() {
    let world = World::new(script());
    let gate = Arc::new(Semaphore::new(0));
    world
        .tools
        .will("transfer", Does::Gate(gate.clone(), json!("ref 77")));
    let (session, effect) = until_asked(&world).await;
    session.approve(effect, "user").await.unwrap();
    while world.tools.count("transfer") == 0 {
        tokio::task::yield_now().await;
    }
    session.interrupt("Stop.").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
    // The late outcome is recorded, and changes nothing else.
    gate.add_permits(1);
    let head = world.store.lines();
    while world.store.lines() == head {
        tokio::task::yield_now().await;
    }
    insta::assert_snapshot!(world.printed().await);
}

/// A rewind to the line of the two calls, after the approval was used.
#[tokio::test]
async fn a_rewind_past_a_used_approval_needs_a_new_one() {
    let world = World::new(script());
    world.tools.will("transfer", Does::Done(json!("ref 77")));
    let (session, effect) = until_asked(&world).await;
    session.approve(effect, "user").await.unwrap();
    session.settled().await.unwrap();
    session.rewind(Line(2), None).await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(world.stack("xfer").await, "U A TC TC TR TR A F");
    assert_eq!(world.tools.count("transfer"), 1);
    session.say("Once more.").await.unwrap();
    let settled = session.settled().await.unwrap();
    let Settled::Asks(pending) = &*settled else {
        panic!("{settled:?}")
    };
    assert_eq!(
        pending[0].kind.word(),
        "approval",
        "the old one names another effect"
    );
    let told = "The same call was done before on another branch (2.1, done at @5).";
    assert_eq!(&*pending[0].text, format!("Send 500 to 1234324? {told}"));
    // The question of the approval named the repetition, so nobody is asked again.
    session.approve(pending[0].id(), "user").await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(world.tools.count("transfer"), 2);
    insta::assert_snapshot!(world.printed().await);
}

#[tokio::test]
async fn an_unknown_outcome_is_never_repeated_by_itself() {
    let world = World::new(script());
    world.tools.will("transfer", Does::Unknown);
    let (session, effect) = until_asked(&world).await;
    session.approve(effect, "user").await.unwrap();
    let settled = session.settled().await.unwrap();
    assert!(matches!(&*settled, Settled::Doubt(_)), "{settled:?}");
    assert_eq!(world.tools.count("transfer"), 1);
}

#[tokio::test]
async fn a_refused_connection_is_tried_again_under_the_same_key() {
    let world = World::new(script());
    let refused = Fault {
        again: Some(0),
        ..Fault::new("failed", "connection refused")
    };
    world.tools.will("transfer", Does::NotPerformed(refused));
    let (session, effect) = until_asked(&world).await;
    session.approve(effect, "user").await.unwrap();
    while world.tools.count("transfer") < 1 {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    world.clock.advance(60_000);
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
    assert_eq!(world.tools.count("transfer"), 2);
}
