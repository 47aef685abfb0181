//! Ways out of a doubt, and `run_all`, which drives all sessions of a store.

use crate::world::{Does, NOON, World, answered, network};
use serde_json::json;
use std::sync::Arc;
use steersman_runtime::engine::{EngineError, StartOptions};
use steersman_runtime::inbox::{Message, Wanted};
use steersman_runtime::session::{Fate, Settled};
use steersman_runtime::store::{BoxedEvent, Scope, StoreError, Worker};
use tokio_util::sync::CancellationToken;

fn desk(otherwise: &str) -> String {
    format!(
        r#"
tools:
  pay:
    description: Pays.
    parameters: {{ cents: integer }}
    effect: unsafe
    on_doubt: {{ probe: payments, args: {{ cents: "{{{{ args.cents }}}}" }}, done: result.found, else: {otherwise} }}
    result: "Paid: {{{{ result.found }}}}"
    native: 1
  payments: {{ parameters: {{ cents: integer }}, effect: read, native: 1, retry: 0 }}
agents:
  desk: {{ system: You pay., tools: [pay] }}
"#
    )
}

fn world() -> World {
    let world = World::new(json!({ "desk": [{ "call": { "pay": { "cents": 5 } } }, "So be it."] }));
    world.tools.will("pay", Does::Unknown);
    world
}

#[tokio::test]
async fn a_probe_that_finds_it_settles_the_doubt() {
    let world = world();
    world
        .tools
        .will("payments", Does::Done(json!({ "found": true })));
    let session = world.start(&desk("ask"), "Go.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    assert_eq!(world.tools.args("payments"), [json!({ "cents": 5 })]);
    assert_eq!(world.tools.count("pay"), 1);
    insta::assert_snapshot!(world.printed().await);
}

#[tokio::test]
async fn a_probe_that_finds_nothing_may_let_it_run_again() {
    let world = world();
    world
        .tools
        .will("payments", Does::Done(json!({ "found": false })));
    world
        .tools
        .will("pay", Does::Done(json!({ "found": true })));
    let session = world.start(&desk("not_performed"), "Go.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    let runs: Vec<_> = world
        .tools
        .runs()
        .into_iter()
        .filter(|r| r.0 == "pay")
        .collect();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0].1, runs[1].1, "one key for all attempts");
}

#[tokio::test]
async fn a_probe_that_fails_has_decided_nothing() {
    let world = world();
    world.tools.will("payments", Does::Panics);
    let session = world.start(&desk("not_performed"), "Go.").await;
    let settled = session.settled().await.unwrap();
    assert!(matches!(&*settled, Settled::Doubt(_)), "{settled:?}");
    assert_eq!(world.tools.count("pay"), 1);
    // The next owner knows that the probe failed, and lists show the doubt, so the session is not taken again and again.
    let world = world.killed().await;
    let session = world.open().await;
    let settled = session.settled().await.unwrap();
    assert!(matches!(&*settled, Settled::Doubt(_)), "{settled:?}");
    session.stop().await;
    let seen = world.engine.inspect("session").await.unwrap();
    assert_eq!(&*seen.info.state.status, "doubt");
}

#[tokio::test]
async fn a_probe_that_finds_nothing_may_leave_it_to_the_model() {
    let world = world();
    world
        .tools
        .will("payments", Does::Done(json!({ "found": false })));
    let session = world.start(&desk("fail"), "Go.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    assert!(world.printed().await.contains("it may have happened"));
}

const WAITER: &str = r#"
events:
  paid: { fields: { invoice: string }, id: "{{ event.invoice }}" }
tools:
  nap: { description: Waits., wait: { time: 1h } }
  await_payment: { description: Waits., parameters: { invoice: string }, wait: { event: paid, match: { invoice: "{{ args.invoice }}" } } }
agents:
  main: { system: You wait., tools: [nap, await_payment] }
"#;

async fn create(world: &World, id: &str) {
    let options = StartOptions {
        id: Some(id.into()),
        say: Some("Go.".to_owned()),
        seed: Some(1),
        ..StartOptions::default()
    };
    world.engine.create(network(WAITER), options).await.unwrap();
}

async fn until(world: &World, id: &str, word: &str) {
    for _ in 0..3_000 {
        let seen = world.engine.inspect(id).await.unwrap();
        let begun = !matches!(seen.settled, Settled::Empty);
        if begun && seen.settled.word() == word && world.engine.driven(id).is_none() {
            return;
        }
        world.clock.advance(1);
        tokio::task::yield_now().await;
    }
    let seen = world.engine.inspect(id).await.unwrap();
    let driven = world.engine.driven(id).is_some();
    panic!(
        "session {id} is not {word}: {:?}, driven {driven}",
        seen.settled
    );
}

#[tokio::test]
async fn all_sessions_of_a_store_are_driven_and_let_go_of() {
    let world = World::new(json!({ "main": [{ "call": { "nap": {} } }, "Awake."] }));
    for id in ["one", "two", "three"] {
        create(&world, id).await;
    }
    let stop = CancellationToken::new();
    let (engine, stopped) = (world.engine.clone(), stop.clone());
    let all = tokio::spawn(async move { engine.run_all(stopped).await });
    for id in ["one", "two", "three"] {
        until(&world, id, "waits").await;
    }
    world.clock.advance(3_600_000);
    for id in ["one", "two", "three"] {
        until(&world, id, "answered").await;
    }
    let message = Message::from(Wanted::Say {
        text: "And?".to_owned(),
        to: None,
    });
    world.engine.deliver("two", message).await.unwrap();
    until(&world, "two", "failed").await;
    stop.cancel();
    all.await.unwrap().unwrap();
}

/// A message arrives when its session has settled and is let go of: the session is taken again.
#[tokio::test]
async fn a_message_that_comes_when_its_session_is_let_go_of_takes_it_again() {
    let world = World::new(json!({ "main": ["First.", "Second."] }));
    create(&world, "one").await;
    create(&world, "two").await;
    let stop = CancellationToken::new();
    let (engine, stopped) = (world.engine.clone(), stop.clone());
    let all = tokio::spawn(async move { engine.run_all(stopped).await });
    for id in ["one", "two"] {
        while world.engine.driven(id).is_none() {
            tokio::task::yield_now().await;
        }
        let session = world.engine.driven(id).unwrap();
        assert_eq!(answered(&session.settled().await.unwrap()), "First.");
    }
    let say = |text: &str| {
        Message::from(Wanted::Say {
            text: text.to_owned(),
            to: None,
        })
    };
    // This process has just read its mail, and reads it again when the session is gone.
    world.clock.advance(25);
    crate::effects::settle().await;
    let event = BoxedEvent {
        id: "1".into(),
        scope: Scope::default(),
        network: "another".into(),
        event: "paid".into(),
        message: Arc::from(&b"{}"[..]),
        fields: "{}".into(),
        at: NOON,
        until: NOON.plus(3_600_000),
    };
    world.engine.deliver_event(event).await.unwrap();
    crate::effects::settle().await;
    world.clock.advance(5);
    let elsewhere = world.again();
    elsewhere.engine.deliver("one", say("And?")).await.unwrap();
    for _ in 0..3_000 {
        world.clock.advance(1);
        tokio::task::yield_now().await;
    }
    let seen = world.engine.inspect("one").await.unwrap();
    assert_eq!(answered(&seen.settled), "Second.");
    stop.cancel();
    world.clock.advance(100);
    all.await.unwrap().unwrap();
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_model_is_told() {
    let world = World::unattended(json!({
        "main": [{ "call": { "pay": {} } }, { "call": { "pay": {} } }, "Enough."],
    }));
    world.tools.will("pay", Does::Unknown);
    let definition = "
tools: { pay: { description: Pays., effect: unsafe, native: 1 } }
agents: { main: { system: You pay., tools: [pay] } }
";
    let session = world.start(definition, "Go.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Enough.");
    assert_eq!(
        world.tools.count("pay"),
        1,
        "the second call is answered by the guard"
    );
    insta::assert_snapshot!(world.printed().await);
}

#[tokio::test]
async fn a_session_lies_there_with_what_begins_it_and_is_begun_once() {
    let world = World::new(json!({ "main": ["Hello."] }));
    create(&world, "one").await;
    let seen = world.engine.inspect("one").await.unwrap();
    assert_eq!(seen.inbox.len(), 1);
    let options = StartOptions {
        id: Some("one".into()),
        say: Some("Something else.".to_owned()),
        ..StartOptions::default()
    };
    let again = world.engine.start(network(WAITER), options).await;
    let Err(EngineError::Store(StoreError::Conflict(id))) = again else {
        panic!("it exists");
    };
    assert_eq!(&*id, "one");
    // A process that finds the session goes on with the message that began it.
    let session = world.engine.open(&id).await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Hello.");
    let begun = world.engine.inspect("one").await.unwrap();
    assert!(begun.ledger.accepted(&seen.inbox[0].id));
    assert!(begun.inbox.is_empty());
}

#[tokio::test]
async fn what_waits_in_an_inbox_is_no_reason_to_take_its_session_again_and_again() {
    let world = World::new(json!({ "main": [{ "call": { "nap": {} } }, "Awake."] }));
    for id in ["one", "two"] {
        create(&world, id).await;
    }
    let paid = |nr: usize| {
        Message::from(Wanted::Event {
            event: "paid".into(),
            fields: json!({ "invoice": nr.to_string() }).to_string(),
        })
    };
    // No wait takes it, so it stays in the inbox.
    world.engine.deliver("one", paid(0)).await.unwrap();
    let stop = CancellationToken::new();
    let (engine, stopped) = (world.engine.clone(), stop.clone());
    let all = tokio::spawn(async move { engine.run_all(stopped).await });
    until(&world, "one", "waits").await;
    for nr in 1..8 {
        world.engine.deliver("two", paid(nr)).await.unwrap();
        until(&world, "two", "waits").await;
        for _ in 0..200 {
            world.clock.advance(1);
            tokio::task::yield_now().await;
        }
    }
    stop.cancel();
    world.clock.advance(100);
    all.await.unwrap().unwrap();
    let lies = |id: &'static str| world.engine.store().inbox(id);
    assert_eq!(lies("one").await.unwrap().1.len(), 1);
    assert_eq!(lies("two").await.unwrap().1.len(), 7);
    let epoch = async |id| {
        world
            .engine
            .store()
            .claim(id, &Worker::nameless())
            .await
            .unwrap()
            .epoch
    };
    assert_eq!(
        epoch("one").await,
        2,
        "claimed once by `run_all`, and once here"
    );
    assert!(epoch("two").await > 7, "each message is read");
}

#[tokio::test]
async fn whoever_takes_a_session_over_waits_for_the_same_event() {
    let definition = r#"
state: { nr: { type: string, default: a } }
events: { paid: { fields: { nr: string }, id: "{{ event.nr }}" } }
tools:
  paid: { description: Waits., wait: { event: paid, match: { nr: "{{ state.nr }}" } }, result: "{{ result.nr }} came" }
  mark: { description: Marks., set: { nr: b } }
agents:
  main: { system: S., tools: [paid, helper] }
  helper: { description: H., system: S., tools: [mark] }
"#;
    let world = World::new(json!({
        "main": [{ "call": [{ "paid": {} }, { "helper": { "message": "go" } }] }, "Done."],
        "main/helper": [{ "call": { "mark": {} } }, "Marked."],
    }));
    let session = world.start(definition, "Go.").await;
    let Settled::Waits(pending) = &*session.settled().await.unwrap() else {
        panic!("it waits for the payment");
    };
    assert_eq!(pending[0].args.as_deref(), Some(r#"{"nr":"a"}"#));
    let world = world.killed().await;
    let session = world.open().await;
    let settled = session.settled().await.unwrap();
    let Settled::Waits(pending) = &*settled else {
        panic!("{settled:?}");
    };
    assert_eq!(pending[0].args.as_deref(), Some(r#"{"nr":"a"}"#));
    let other = session.event("paid", &json!({ "nr": "b" })).await.unwrap();
    assert!(matches!(other.fate, Fate::Waits(_)), "{other:?}");
    let right = session.event("paid", &json!({ "nr": "a" })).await.unwrap();
    assert!(matches!(right.fate, Fate::Taken(_)), "{right:?}");
    assert_eq!(answered(&session.settled().await.unwrap()), "Done.");
}
