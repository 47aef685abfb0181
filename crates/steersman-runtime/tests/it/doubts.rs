//! A doubt outlives its call: the end of a call does not tell whether the effect happened. While a doubt is open, it is
//! listed, equal effects do not begin, and the roles of its `on_doubt` can resolve it.

use crate::world::{Does, World, answered};
use serde_json::{Value as Json, json};
use steersman_machine::stored::ids::Line;
use steersman_runtime::engine::Inspection;
use steersman_runtime::inbox::{CancelWhat, Message, Resolution, Wanted};
use steersman_runtime::ledger::Progress;
use steersman_runtime::pending::{Pending, PendingId, PendingKind};
use steersman_runtime::rerun::Rerun;
use steersman_runtime::session::{Fate, Fork, Session, Settled};

const DESK: &str = "
tools:
  pay:
    description: Pays.
    parameters: { cents: integer }
    effect: unsafe
    on_doubt: { by: ops }
    native: 1
agents:
  main: { system: You pay., tools: [pay, helper] }
  helper: { description: Helps., system: You help., tools: [pay] }
  ops: { person: { role: ops } }
";

fn pay() -> Json {
    json!({ "call": { "pay": { "cents": 5 } } })
}

async fn seen(world: &World) -> Inspection {
    world.engine.inspect("session").await.unwrap()
}

/// Returns the only doubt that is listed.
async fn doubt(world: &World) -> Pending {
    let pending = seen(world).await.pending;
    let doubts: Vec<&Pending> = pending
        .iter()
        .filter(|p| p.kind == PendingKind::Doubt)
        .collect();
    let [doubt] = doubts[..] else {
        panic!("{pending:?}\n{}", world.printed().await)
    };
    doubt.clone()
}

/// Returns a session whose payment is in doubt.
async fn in_doubt(script: Json) -> (World, Session) {
    let world = World::new(script);
    world.tools.will("pay", Does::Unknown);
    let session = world.start(DESK, "Pay.").await;
    let settled = session.settled().await.unwrap();
    assert_eq!(settled.word(), "doubt", "{settled:?}");
    (world, session)
}

/// Checks that the doubt is listed although no call waits for it, and that only the role of its `on_doubt` can resolve it.
async fn is_left_open(world: &World, session: &Session) {
    session.settled().await.unwrap();
    let left = doubt(world).await;
    assert!(left.left, "{left:?}");
    assert_eq!(left.roles, ["ops".into()]);
    assert_eq!(left.tool.as_deref(), Some("pay"));
    assert_eq!(left.args.as_deref(), Some(r#"{"cents":5}"#));
    assert!(left.hold.is_some(), "it has an address");
    let fate = session
        .resolve(left.id(), Resolution::NotPerformed, "user")
        .await
        .unwrap();
    let Fate::Refused(why) = fate.fate else {
        panic!("the wrong role resolved it: {fate:?}")
    };
    assert!(why.contains("ops"), "{why}");
    let done = Resolution::Done {
        result: json!("paid 5").to_string(),
    };
    let fate = session.resolve(left.id(), done, "ops").await.unwrap();
    assert!(matches!(fate.fate, Fate::Taken(_)), "{fate:?}");
    let seen = seen(world).await;
    let progress = seen.ledger.effect(left.effect).unwrap().progress;
    assert!(matches!(progress, Progress::Done { .. }), "{progress:?}");
    assert!(
        seen.pending.iter().all(|p| p.kind != PendingKind::Doubt),
        "{:?}",
        seen.pending
    );
}

#[tokio::test]
async fn a_cancel_ends_a_call_and_not_its_doubt() {
    let (world, session) = in_doubt(json!({ "main": [pay(), "Well."] })).await;
    session.cancel(CancelWhat::Session, "user").await.unwrap();
    assert_eq!(session.settled().await.unwrap().word(), "cancelled");
    is_left_open(&world, &session).await;
}

#[tokio::test]
async fn an_interrupt_ends_a_call_and_not_its_doubt() {
    let (world, session) = in_doubt(json!({ "main": [pay(), "Well."] })).await;
    session.interrupt("Stop.").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Well.");
    is_left_open(&world, &session).await;
}

#[tokio::test]
async fn a_rewind_ends_no_doubt() {
    let (world, session) = in_doubt(json!({ "main": [pay(), "Well."] })).await;
    session.rewind(Line(1), Some("Again.")).await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Well.");
    is_left_open(&world, &session).await;
}

/// A tool runs while its call is cancelled and never says whether it did its work: the effect is in doubt.
#[tokio::test]
async fn what_is_cancelled_while_it_runs_is_in_doubt() {
    for killed in [false, true] {
        let world = World::new(json!({ "main": [pay(), "Well."] }));
        world.tools.will("pay", Does::Hangs);
        let mut session = world.start(DESK, "Pay.").await;
        while world.tools.count("pay") == 0 {
            tokio::task::yield_now().await;
        }
        session.interrupt("Stop.").await.unwrap();
        assert_eq!(answered(&session.settled().await.unwrap()), "Well.");
        let world = if killed {
            drop(session);
            let world = world.killed().await;
            session = world.open().await;
            world
        } else {
            world.clock.advance(3_600_000);
            for _ in 0..2_000 {
                tokio::task::yield_now().await;
            }
            world
        };
        is_left_open(&world, &session).await;
    }
}

/// The stored list of pending is what `inspect` shows, and a doubt that no call waits for does not change the status of its
/// session.
#[tokio::test]
async fn lists_show_what_is_left_in_doubt() {
    let (world, session) = in_doubt(json!({ "main": [pay(), "Well."] })).await;
    session.interrupt("Stop.").await.unwrap();
    assert!(matches!(
        &*session.settled().await.unwrap(),
        Settled::Answered { .. }
    ));
    let seen = seen(&world).await;
    let listed = steersman_runtime::pending::read(&seen.info.state.waits).unwrap();
    assert_eq!(listed, seen.pending);
    assert_eq!(listed.len(), 1);
    assert_eq!(&*seen.info.state.status, "answered");
    // The next owner sees the same.
    drop(session);
    let world = world.killed().await;
    let session = world.open().await;
    is_left_open(&world, &session).await;
}

/// A message or a refused decision makes a process take the session over, and lists are written again.
#[tokio::test]
async fn a_question_is_as_old_as_it_was_before_a_takeover() {
    const ASKS: &str = r"
tools: { pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, approve: { by: user }, native: 1 } }
agents: { main: { system: You pay., tools: [pay] } }
";
    let world = World::new(json!({ "main": [{ "call": { "pay": { "cents": 5 } } }, "Well."] }));
    let session = world.start(ASKS, "Pay.").await;
    session.settled().await.unwrap();
    let before = seen(&world).await;
    let asked = before.pending[0].since;
    drop(session);
    let world = world.killed().await;
    world.clock.advance(60_000);
    let session = world.open().await;
    session.say("And now?").await.unwrap();
    session.settled().await.unwrap();
    let after = seen(&world).await;
    assert!(after.info.head > before.info.head);
    assert_eq!(after.pending[0].since, asked);
    let listed = steersman_runtime::pending::read(&after.info.state.waits).unwrap();
    assert_eq!(listed, after.pending);
}

/// Cancelling a sub-agent ends its call, and not the doubt.
#[tokio::test]
async fn the_end_of_an_agent_ends_no_doubt() {
    let script = json!({
        "main": [{ "call": { "helper": { "message": "Pay." } } }, "Well."],
        "helper": [pay()],
    });
    let (world, session) = in_doubt(script).await;
    let helper = seen(&world).await;
    let agents = &helper.current_branch().unwrap().snapshot.agents;
    let helper = agents.values().find(|a| &*a.def == "helper").unwrap().id;
    session
        .cancel(CancelWhat::Agent(helper), "user")
        .await
        .unwrap();
    is_left_open(&world, &session).await;
}

/// A rerun starts at a line before the recording left that branch. In the rerun the branch is not superseded, and its
/// questions can be answered.
#[tokio::test]
async fn what_a_rerun_asks_can_be_answered() {
    let world = World::new(json!({
        "main": [pay(), "Paid."],
        "main@q": ["Hey."],
        "main@again": [pay(), "Paid once."],
    }));
    let session = world.start(DESK, "Pay.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    let fork = Fork {
        live: true,
        say: Some("Hey.".to_owned()),
        label: Some("q".into()),
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    session.settled().await.unwrap();
    let q = seen(&world).await.ledger.find_branch("q").unwrap();
    session.adopt(q, None).await.unwrap();
    session.settled().await.unwrap();
    let rewind = Message::from(Wanted::Rewind {
        at: Line(1),
        label: None,
        say: None,
    });
    session.send(rewind).await.unwrap();
    session.settled().await.unwrap();
    let wanted = Rerun {
        at: Some(Line(1)),
        say: Some("Else.".to_owned()),
        live: true,
        ..Rerun::default()
    };
    let again = world.engine.rerun("session", wanted).await.unwrap();
    assert_eq!(again.settled.word(), "waits", "{:?}", again.settled);
    let seen = world.engine.inspect(&again.session).await.unwrap();
    let current = seen.current_branch().unwrap();
    assert!(!current.superseded, "{:?}", seen.ledger);
    let asked: &Pending = seen.pending.first().unwrap();
    assert_eq!(asked.kind, PendingKind::Repeat);
    let of: PendingId = asked.id();
    let session = world.engine.open(&again.session).await.unwrap();
    let fate = session.reject(of, None, "user").await.unwrap().fate;
    assert!(matches!(fate, Fate::Taken(_)), "{fate:?}");
    session.settled().await.unwrap();
    assert_eq!(world.tools.count("pay"), 1);
}
