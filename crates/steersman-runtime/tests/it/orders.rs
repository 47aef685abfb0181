//! Orders of people: pause, hold, retry, rebind, and which branch is current. Each survives its process.

use crate::effects::{settle, until_run};
use crate::spy::Behind;
use crate::world::{Does, World, answered, asked};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_machine::stored::commit::{Admitted, LedgerEntry, LogLine};
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::view::mapping::Fault;
use steersman_runtime::inbox::{CancelWhat, Message, Resolution, Wanted};
use steersman_runtime::model::scripted::Script;
use steersman_runtime::pending::{PendingId, PendingKind};
use steersman_runtime::session::{Fate, Fork, Session, Settled};
use tokio::sync::Semaphore;

const DESK: &str = r#"
config: { limit: { type: integer, default: 10 }, url: { type: string, live: true, env: URL, default: here } }
tools:
  look: { description: Looks., effect: read, native: 1 }
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, native: 1 }
  pay_asked: { description: Pays., parameters: { cents: integer }, effect: unsafe, approve: true, simulate: pretended, native: 1 }
agents:
  main: { system: "You settle up to {{ config.limit }}.", tools: [look, pay, pay_asked] }
"#;

fn pays() -> Json {
    json!({ "main": ["Ready.", { "call": { "pay": { "cents": 5 } } }, "Paid."] })
}

fn taken(fate: &Fate) -> bool {
    matches!(fate, Fate::Taken(_))
}

async fn refused(session: &Session, message: Message) -> String {
    match session.send(message).await.unwrap().fate {
        Fate::Refused(why) => why,
        other => panic!("{other:?}"),
    }
}

fn hold(tool: Option<&str>, held: bool) -> Message {
    Wanted::Hold {
        tool: tool.map(Into::into),
        held,
    }
    .by("user")
}

#[tokio::test]
async fn what_is_held_does_not_begin_until_it_is_released_in_whatever_process() {
    let world = World::new(pays());
    let session = world.start(DESK, "Hello.").await;
    let _ = session.settled().await.unwrap();
    session.hold(Some("pay"), "user").await.unwrap();
    session.say("Pay.").await.unwrap();
    let settled = session.settled().await.unwrap();
    let Settled::Waits(pending) = &*settled else {
        panic!("{settled:?}")
    };
    assert_eq!(pending[0].kind, PendingKind::Hold);
    assert_eq!(world.tools.count("pay"), 0);
    let world = world.killed().await;
    let session = world.open().await;
    let settled = session.settled().await.unwrap();
    assert!(matches!(&*settled, Settled::Waits(_)), "{settled:?}");
    let seen = world.engine.inspect("session").await.unwrap();
    assert_eq!(seen.pending[0].kind, PendingKind::Hold);
    assert_eq!(world.tools.count("pay"), 0);
    session.release(Some("pay"), "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(world.tools.count("pay"), 1);
}

#[tokio::test]
async fn a_hold_of_everything_lets_reads_run_and_says_what_it_does_not_know() {
    let script = json!({ "main": [
        "Ready.", { "call": [{ "look": {} }, { "pay": { "cents": 5 } }] }, "Both.",
    ] });
    let world = World::new(script);
    let session = world.start(DESK, "Hello.").await;
    let _ = session.settled().await.unwrap();
    assert!(taken(&session.hold(None, "user").await.unwrap().fate));
    session.say("Go.").await.unwrap();
    let _ = session.settled().await.unwrap();
    assert_eq!(
        (world.tools.count("look"), world.tools.count("pay")),
        (1, 0)
    );
    assert_eq!(
        refused(&session, hold(Some("refund"), true)).await,
        "this session has no tool `refund`"
    );
    assert!(taken(&session.hold(None, "user").await.unwrap().fate));
    assert_eq!(
        refused(&session, hold(Some("pay"), false)).await,
        "`pay` is not held here"
    );
    session.release(None, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Both.");
}

/// An approval is asked for and given while its tool is held; the call begins with the release.
#[tokio::test]
async fn what_is_approved_while_it_is_held_begins_when_it_is_released() {
    let script =
        json!({ "main": ["Ready.", { "call": { "pay_asked": { "cents": 5 } } }, "Paid."] });
    let world = World::new(script);
    let session = world.start(DESK, "Hello.").await;
    let _ = session.settled().await.unwrap();
    session.hold(Some("pay_asked"), "user").await.unwrap();
    session.say("Pay.").await.unwrap();
    let effect = asked(&session.settled().await.unwrap());
    session.approve(effect, "user").await.unwrap();
    let settled = session.settled().await.unwrap();
    assert!(matches!(&*settled, Settled::Waits(_)), "{settled:?}");
    assert_eq!(world.tools.count("pay_asked"), 0);
    session.release(Some("pay_asked"), "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
}

/// A session that nobody owns takes orders, and nothing of it runs. It was killed while it was paused.
#[tokio::test]
async fn an_order_begins_nothing() {
    let world = World::new(pays());
    let session = world.start(DESK, "Hello.").await;
    let _ = session.settled().await.unwrap();
    session.pause().await.unwrap();
    session.say("Pay.").await.unwrap();
    let world = world.killed().await;
    let before = world.model.left_over();
    let hold = hold(Some("pay"), true);
    let fate = world.engine.order("session", hold).await.unwrap().fate;
    assert!(taken(&fate), "{fate:?}");
    let fate = world
        .engine
        .order("session", Message::from(Wanted::Pause(false)))
        .await
        .unwrap()
        .fate;
    assert!(taken(&fate), "{fate:?}");
    assert!(world.engine.driven("session").is_none());
    assert_eq!(world.model.left_over(), before, "no model was asked");
    let session = world.open().await;
    let settled = session.settled().await.unwrap();
    assert!(matches!(&*settled, Settled::Waits(_)), "{settled:?}");
    assert_eq!(world.tools.count("pay"), 0);
}

#[tokio::test]
async fn a_failed_model_call_is_tried_again_on_a_branch_of_its_own() {
    let script = json!({ "main": [
        { "call": { "pay": { "cents": 5 } } },
        { "error": "provider_overloaded" },
    ] });
    let world = World::new(script);
    let session = world.start(DESK, "Pay.").await;
    let settled = session.settled().await.unwrap();
    let Settled::Failed { code, .. } = &*settled else {
        panic!("{settled:?}")
    };
    assert_eq!(&**code, "provider_overloaded");
    let none = session.retry(Some(Id::new(Line(7), 7)), "user").await;
    assert_eq!(
        none.unwrap().fate,
        Fate::Refused("nothing is open under 7.7".to_owned())
    );
    let world = world.killed().await;
    let well = json!({ "main": ["Paid."] });
    world.model.replace(Script::parse(&well).unwrap());
    let session = world.open().await;
    session.retry(None, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(world.tools.count("pay"), 1, "the payment is not repeated");
    let again = session.retry(None, "user").await.unwrap().fate;
    assert!(matches!(again, Fate::Refused(_)), "{again:?}");
}

#[tokio::test]
async fn an_attempt_that_is_waited_for_is_made_now() {
    let script = json!({ "main": [{ "call": { "look": {} } }, "Looked."] });
    let world = World::new(script);
    let hour = 3_600_000;
    let later = Fault {
        again: Some(hour),
        ..Fault::new("busy", "later")
    };
    world.tools.will("look", Does::NotPerformed(later));
    let session = world.start(DESK, "Look.").await;
    let settled = session.settled().await.unwrap();
    let Settled::Waits(pending) = &*settled else {
        panic!("{settled:?}")
    };
    assert_eq!(pending[0].kind, PendingKind::Again);
    session
        .retry(Some(pending[0].effect), "user")
        .await
        .unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Looked.");
    assert_eq!(world.tools.count("look"), 2);
}

#[tokio::test]
async fn values_are_bound_anew_on_all_branches_at_once() {
    let world =
        World::new(json!({ "main": ["One.", "{{ request.system }}"], "main@b1": ["There."] }));
    let session = world.start(DESK, "Go.").await;
    let _ = session.settled().await.unwrap();
    let fork = Fork {
        label: Some("b1".into()),
        say: Some("there".into()),
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    let _ = session.settled().await.unwrap();
    let rebind =
        |name: &str, value: &str| Wanted::Rebind(vec![(name.into(), value.to_owned())]).by("user");
    for (name, value, why) in [
        ("limit", "\"much\"", "is not a whole number"),
        ("limits", "3", "is not declared"),
        ("url", "\"there\"", "is `live`"),
        ("limit", "{", "is no JSON"),
        ("limit", "10", "bound to these values already"),
    ] {
        let said = refused(&session, rebind(name, value)).await;
        assert!(said.contains(why), "{said}");
    }
    let before = world.engine.inspect("session").await.unwrap().info.state;
    session
        .rebind(&[("limit".into(), json!(20))], "user")
        .await
        .unwrap();
    let world = world.killed().await;
    let seen = world.engine.inspect("session").await.unwrap();
    assert_eq!(seen.values.config["limit"], json!(20));
    assert_ne!(seen.info.state.definition, before.definition);
    let session = world.open().await;
    session.say("And now?").await.unwrap();
    let said = answered(&session.settled().await.unwrap());
    assert_eq!(said, "You settle up to 20.");
}

#[tokio::test]
async fn values_are_not_bound_anew_in_the_middle() {
    let script = json!({ "main": [{ "call": { "pay_asked": { "cents": 5 } } }, "Paid."] });
    let world = World::new(script);
    let session = world.start(DESK, "Pay.").await;
    let _ = session.settled().await.unwrap();
    let message = Wanted::Rebind(vec![("limit".into(), "20".to_owned())]).by("user");
    let why = refused(&session, message).await;
    assert!(why.contains("at work or waits"), "{why}");
}

fn forked(label: &str) -> Fork {
    Fork {
        label: Some(label.into()),
        say: Some("Pay there.".into()),
        ..Fork::default()
    }
}

async fn named(world: &World, label: &str) -> Id {
    let seen = world.engine.inspect("session").await.unwrap();
    let found = seen.branches.iter();
    found
        .filter(|b| b.label.as_deref() == Some(label))
        .map(|b| b.id)
        .next()
        .unwrap()
}

/// Adopting a dry branch takes it up to its first simulated effect. That effect is asked for again and performed.
#[tokio::test]
async fn a_dry_branch_is_taken_over_up_to_what_was_simulated() {
    let script = json!({
        "main": ["Ready.", "never", "Paid for good."],
        "main@dry": [{ "call": { "pay_asked": { "cents": 5 } } }, "Forecast."],
    });
    let world = World::new(script);
    let session = world.start(DESK, "Go.").await;
    let _ = session.settled().await.unwrap();
    session.fork(forked("dry")).await.unwrap();
    let _ = session.settled().await.unwrap();
    assert_eq!(world.tools.count("pay_asked"), 0);
    let dry = named(&world, "dry").await;
    let fate = session.adopt(dry, None).await.unwrap().fate;
    assert!(taken(&fate), "{fate:?}");
    let world = world.killed().await;
    let session = world.open().await;
    let effect = asked(&session.settled().await.unwrap());
    session.approve(effect, "user").await.unwrap();
    let settled = session.settled().await.unwrap();
    assert_eq!(answered(&settled), "Paid for good.");
    assert_eq!(world.tools.count("pay_asked"), 1);
    let seen = world.engine.inspect("session").await.unwrap();
    let current = seen.current_branch().unwrap();
    assert!(!current.snapshot.dry);
    let live: Vec<Id> = seen
        .branches
        .iter()
        .filter(|b| !b.superseded)
        .map(|b| b.id)
        .collect();
    assert_eq!(live, [current.id], "the dry branch is superseded");
}

/// A rewind to a line after a simulated effect is refused: the session would go on as if the effect had happened. The
/// refusal names the line to begin at.
#[tokio::test]
async fn nothing_real_begins_behind_a_simulated_effect() {
    let script = json!({
        "main": ["Ready.", "On."],
        "main@dry": [{ "call": { "pay_asked": { "cents": 5 } } }, "Forecast."],
    });
    let world = World::new(script);
    let session = world.start(DESK, "Go.").await;
    let _ = session.settled().await.unwrap();
    session.fork(forked("dry")).await.unwrap();
    let _ = session.settled().await.unwrap();
    let dry = named(&world, "dry").await;
    let seen = world.engine.inspect("session").await.unwrap();
    let branch = seen.branches.iter().find(|b| b.id == dry).unwrap();
    let (at, head) = (
        branch.snapshot.first_simulated.unwrap(),
        branch.snapshot.line,
    );
    let back = |at| {
        Wanted::Rewind {
            at,
            label: None,
            say: Some("Go on.".to_owned()),
        }
        .on(Some(dry))
    };
    let said = refused(&session, back(head)).await;
    let named = said.rsplit_once("begin at line ").unwrap().1;
    assert!(said.contains(&format!("line {at},")), "{said}");
    let before = Line(named.parse().unwrap());
    assert!(before < at, "{said}");
    assert!(taken(&session.send(back(before)).await.unwrap().fate));
}

#[tokio::test]
async fn a_branch_is_not_taken_over_where_something_would_be_lost() {
    let script = json!({
        "main": ["Ready.", "On."],
        "main@b1": ["There."],
    });
    let world = World::new(script);
    let session = world.start(DESK, "Go.").await;
    let _ = session.settled().await.unwrap();
    session.fork(forked("b1")).await.unwrap();
    let _ = session.settled().await.unwrap();
    session.say("Further.").await.unwrap();
    let _ = session.settled().await.unwrap();
    let b1 = named(&world, "b1").await;
    let said = refused(
        &session,
        Message::from(Wanted::Adopt {
            branch: b1,
            at: None,
        }),
    )
    .await;
    assert_eq!(
        said,
        "the current branch went on since the fork at @2 and stands at @6: taking over this branch would lose that; \
         both wrote stacks: main (@6 here, @4 on the branch)"
    );
    assert_eq!(
        refused(
            &session,
            Message::from(Wanted::Adopt {
                branch: Id::MAIN,
                at: None
            })
        )
        .await,
        "this branch is current already"
    );
    // A rewind to the branch makes it current all the same, and leaves the rest.
    let at = world.engine.inspect("session").await.unwrap();
    let head = at.branches.iter().find(|b| b.id == b1).unwrap().head;
    let rewind = Wanted::Rewind {
        at: head,
        label: None,
        say: None,
    }
    .on(Some(b1));
    let fate = session.send(rewind).await.unwrap().fate;
    assert!(taken(&fate), "{fate:?}");
    assert_eq!(answered(&session.settled().await.unwrap()), "There.");
    let seen = world.engine.inspect("session").await.unwrap();
    assert_eq!(seen.branches.iter().filter(|b| !b.superseded).count(), 1);
    // The log has the refusal, so a sender in another process can read it.
    let printed = world.printed().await;
    assert!(printed.contains("refused m"), "{printed}");
}

/// A message to a branch with an open call waits there for the end of the exchange, and is not lost with the process.
#[tokio::test]
async fn what_is_said_in_the_middle_is_heard_when_the_exchange_is_over() {
    let script = json!({
        "main": [{ "call": { "look": {} } }, "Seen."],
        "main@b1": ["{{ request.last }}!"],
    });
    let world = World::new(script);
    let session = world.start(DESK, "Look.").await;
    let _ = session.settled().await.unwrap();
    let gate = Arc::new(Semaphore::new(0));
    world
        .tools
        .will("look", Does::Gate(gate.clone(), json!("b")));
    let fork = Fork {
        at: Some(Line(2)),
        label: Some("b1".into()),
        say: Some("What is it?".into()),
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    let world = world.killed().await;
    gate.add_permits(2);
    let session = world.open().await;
    let _ = session.settled().await.unwrap();
    let seen = world.engine.inspect("session").await.unwrap();
    let b1 = seen.branches.iter().find(|b| b.label.is_some()).unwrap();
    assert_eq!(answered(&seen.settled_on(b1)), "What is it?!");
}

/// A branch that starts before a rebind runs under the newest values, as all branches do.
#[tokio::test]
async fn a_branch_of_an_earlier_line_has_the_values_of_now() {
    let script = json!({ "main": ["One.", "{{ request.system }}", "{{ request.system }}"] });
    let world = World::new(script);
    let session = world.start(DESK, "Go.").await;
    let _ = session.settled().await.unwrap();
    session
        .rebind(&[("limit".into(), json!(20))], "user")
        .await
        .unwrap();
    let fork = Fork {
        at: Some(Line(1)),
        label: Some("b1".into()),
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    let _ = session.settled().await.unwrap();
    let fate = session
        .rewind(Line(2), Some("And now?"))
        .await
        .unwrap()
        .fate;
    assert!(taken(&fate), "{fate:?}");
    let world = world.killed().await;
    let session = world.open().await;
    let said = answered(&session.settled().await.unwrap());
    assert_eq!(said, "You settle up to 20.");
    let seen = world.engine.inspect("session").await.unwrap();
    assert_eq!(seen.values.config["limit"], json!(20));
}

/// A person approves a call of a paused session: nothing begins, no attempt is counted, and lists show the session as
/// paused, also under the next owner.
#[tokio::test]
async fn what_is_approved_while_it_is_paused_begins_when_it_goes_on() {
    let script =
        json!({ "main": ["Ready.", { "call": { "pay_asked": { "cents": 5 } } }, "Paid."] });
    let world = World::new(script);
    let session = world.start(DESK, "Hello.").await;
    let _ = session.settled().await.unwrap();
    session.say("Pay.").await.unwrap();
    let effect = asked(&session.settled().await.unwrap());
    session.pause().await.unwrap();
    assert!(taken(&session.approve(effect, "user").await.unwrap().fate));
    let shown = async |world: &World| {
        let seen = world.engine.inspect("session").await.unwrap();
        let attempts = seen
            .ledger
            .effect(effect.effect)
            .map_or(0, |record| record.attempt);
        (seen.info.state.status.to_string(), attempts)
    };
    assert_eq!(*session.settled().await.unwrap(), Settled::Paused);
    assert_eq!(shown(&world).await, ("paused".to_owned(), 0));
    let world = world.killed().await;
    assert_eq!(shown(&world).await, ("paused".to_owned(), 0));
    let session = world.open().await;
    assert_eq!(*session.settled().await.unwrap(), Settled::Paused);
    assert_eq!(shown(&world).await, ("paused".to_owned(), 0));
    session.resume().await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(world.tools.count("pay_asked"), 1);
}

/// A resolution of a doubt that is over does not resolve the doubt of a later attempt.
#[tokio::test]
async fn an_answer_to_one_doubt_settles_none_that_arose_behind_it() {
    let world = World::new(json!({ "main": [{ "call": { "pay": { "cents": 5 } } }, "Ended."] }));
    world.tools.will("pay", Does::Unknown);
    world.tools.will("pay", Does::Hangs);
    let session = world.start(DESK, "Pay.").await;
    let of = asked(&session.settled().await.unwrap());
    let resolve = |of: PendingId| session.resolve(of, Resolution::NotPerformed, "user");
    assert!(taken(&resolve(of).await.unwrap().fate));
    until_run(&world, "pay", 2).await;
    session.cancel(CancelWhat::Session, "user").await.unwrap();
    let _ = session.settled().await.unwrap();
    let fate = resolve(of).await.unwrap().fate;
    let Fate::Refused(why) = fate else {
        panic!("{fate:?}")
    };
    assert!(why.starts_with(&format!("{of} is over")), "{why}");
    let seen = world.engine.inspect("session").await.unwrap();
    assert!(seen.ledger.effect(of.effect).unwrap().in_doubt());
    // The tool still runs, so the effect may happen yet: a person cannot resolve it as not performed.
    let now = PendingId { hold: None, ..of };
    let fate = resolve(now).await.unwrap().fate;
    let Fate::Refused(why) = fate else {
        panic!("{fate:?}")
    };
    assert!(why.contains("has not ended yet"), "{why}");
    world.clock.advance(3_600_000);
    settle().await;
    assert!(taken(&resolve(now).await.unwrap().fate));
}

fn forks(label: &str) -> Fork {
    Fork {
        label: Some(label.into()),
        say: Some("Look.".to_owned()),
        ..Fork::default()
    }
}

#[tokio::test]
async fn who_cancels_a_session_whose_current_branch_rests_is_told_that_others_ended() {
    let look = json!({ "call": { "look": {} } });
    let world = World::new(json!({ "main": ["Ready."], "main@b": [look, "Looked."] }));
    world.tools.will("look", Does::Hangs);
    let session = world.start(DESK, "Hello.").await;
    let _ = session.settled().await.unwrap();
    session.fork(forks("b")).await.unwrap();
    until_run(&world, "look", 1).await;
    let fate = session.cancel(CancelWhat::Session, "user").await;
    let fate = fate.unwrap().fate;
    assert!(taken(&fate), "{fate:?}");
    let seen = world.engine.inspect("session").await.unwrap();
    let words = seen.branches.iter().map(|b| seen.settled_on(b).word());
    assert_eq!(words.collect::<Vec<_>>(), ["answered", "cancelled"]);
    let again = Wanted::Cancel(CancelWhat::Session).by("user");
    assert_eq!(refused(&session, again).await, "nothing is open");
}

/// The process dies after any line of a cancel: the next owner ends what is left, and nothing goes on.
#[tokio::test]
async fn a_cancel_of_a_session_ends_all_of_its_branches_whenever_its_process_dies() {
    for kept in 0..4 {
        let look = json!({ "call": { "look": {} } });
        let world = World::new(json!({
            "main": ["Ready.", look, "Looked."],
            "main@b": [look, "Looked."],
            "main@c": [look, "Looked."],
        }));
        for _ in 0..3 {
            world.tools.will("look", Does::Hangs);
        }
        let session = world.start(DESK, "Hello.").await;
        let _ = session.settled().await.unwrap();
        session.fork(forks("b")).await.unwrap();
        session.fork(forks("c")).await.unwrap();
        session.say("Look.").await.unwrap();
        until_run(&world, "look", 3).await;
        world.store.write_only(kept, Behind::Silence);
        let cancel = session.cancel(CancelWhat::Session, "user");
        crate::sequences::within(500, cancel).await;
        drop(session);
        let world = world.killed().await;
        let session = world.open().await;
        let settled = session.settled().await.unwrap();
        let seen = world.engine.inspect("session").await.unwrap();
        let words = seen.branches.iter().map(|b| seen.settled_on(b).word());
        let words: Vec<_> = words.collect();
        assert_eq!(words, ["cancelled"; 3], "killed after {kept}");
        assert_eq!(settled.word(), "cancelled");
        assert_eq!(world.tools.count("look"), 3, "killed after {kept}");
        assert!(seen.inbox.is_empty(), "killed after {kept}");
    }
}

fn rewind_to_begin(label: &str) -> Message {
    Message::from(Wanted::Rewind {
        at: Line(1),
        label: Some(label.into()),
        say: None,
    })
}

/// A rewind left an effect that runs. When its branch is current again, it is not in doubt: this process still runs it.
#[tokio::test]
async fn what_runs_still_is_waited_for_where_its_branch_is_current_again() {
    let pay = json!({ "call": { "pay": { "cents": 5 } } });
    let world = World::new(json!({ "main": [pay, "Paid."], "main@b": ["Otherwise."] }));
    let gate = Arc::new(Semaphore::new(0));
    world
        .tools
        .will("pay", Does::Gate(gate.clone(), json!("r-1")));
    let session = world.start(DESK, "Pay.").await;
    until_run(&world, "pay", 1).await;
    assert!(taken(
        &session.send(rewind_to_begin("b")).await.unwrap().fate
    ));
    settle().await;
    assert!(taken(&session.make_current(Id::MAIN).await.unwrap().fate));
    settle().await;
    let seen = world.engine.inspect("session").await.unwrap();
    assert_eq!(seen.pending, [], "nobody is asked about a running effect");
    gate.add_permits(1);
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(world.tools.count("pay"), 1);
}

/// A tick takes an edit before a rejection, and its line accepts the messages in that order, not in that of their delivery.
#[tokio::test]
async fn a_line_accepts_messages_in_the_order_in_which_it_takes_them() {
    let world =
        World::new(json!({ "main": [{ "call": { "pay_asked": { "cents": 5 } } }, "So be it."] }));
    let desk = DESK.replace(
        "tools:\n",
        "state: { mood: { type: string, optional: true } }\ntools:\n",
    );
    let session = world.start(&desk, "Pay.").await;
    let of = asked(&session.settled().await.unwrap());
    let world = world.killed().await;
    let rejects = Wanted::Reject { of, reason: None }.by("user");
    let edits = Wanted::Edit(vec![("mood".into(), Some("\"sad\"".to_owned()))]).by("user");
    for (id, message) in [("rejects", rejects), ("edits", edits)] {
        let put = world.engine.deliver_as("session", id.into(), message);
        put.await.unwrap();
    }
    let settled = world.open().await.settled().await.unwrap();
    assert_eq!(answered(&settled), "So be it.");
    let lines = world.lines().await;
    let taken = |line: &LogLine| -> Vec<Admitted> {
        let admitted = line.commit.iter().flat_map(|commit| &commit.admitted);
        admitted.map(|admission| admission.kind).collect()
    };
    let both = lines.iter().find(|line| taken(line).len() == 2);
    let line = both.expect("one line takes both");
    assert_eq!(taken(line), [Admitted::Edited, Admitted::Outcome]);
    let accepted = line.ledger.iter().filter_map(|entry| match entry {
        LedgerEntry::Accepted { message, .. } => Some(&**message),
        _ => None,
    });
    assert_eq!(accepted.collect::<Vec<_>>(), ["edits", "rejects"]);
}
