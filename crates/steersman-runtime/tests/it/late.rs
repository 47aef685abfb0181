//! Approvals and events that arrive after their deadline, which passed while no process drove the session.

use crate::effects::TOOLS;
use crate::world::{World, answered, asked};
use serde_json::json;
use steersman_machine::stored::ids::Name;
use steersman_runtime::inbox::{Message, Wanted};
use steersman_runtime::pending::PendingId;
use steersman_runtime::session::{Fate, Settled};

const APPROVAL: &str = r#"
state: { token: { type: string, optional: true, expires: 30m } }
tools:
  login: { description: Logs in., effect: read, native: 1, set: { token: "{{ 'in' }}" } }
  pay:
    description: Pays.
    parameters: { cents: integer }
    effect: unsafe
    native: 1
    requires: { that: state.token is not none, else: Log in first. }
    approve: { by: clerk, timeout: 1h, on_timeout: { by: head, timeout: 2h } }
agents:
  clerk: { person: { role: clerk } }
  head: { person: { role: head } }
  main: { system: You work., tools: [login, pay] }
entry: main
"#;

const HOUR: u64 = 3_600_000;

fn paying() -> World {
    World::new(
        json!({ "main": [{ "call": { "login": {} } }, { "call": { "pay": { "cents": 5 } } }, "So be it."] }),
    )
}

/// Puts an approval into the inbox while no process drives the session, then opens the session. Returns the fate of the
/// approval.
async fn approved_by(world: &World, by: &str, of: PendingId) -> Fate {
    let message = Wanted::Approve { of, args: None }.by(by);
    let id = Name::from(format!("by {by}"));
    let put = world
        .engine
        .deliver_as("session", id.clone(), message)
        .await;
    assert_eq!(put.unwrap().fate, Fate::Lies);
    let (_, fate) = world.engine.open_for("session", &id).await.unwrap();
    fate
}

#[tokio::test]
async fn an_approval_behind_its_time_is_not_taken_and_the_next_in_line_is_asked() {
    let world = paying();
    let session = world.start(APPROVAL, "Go.").await;
    let held = asked(&session.settled().await.unwrap());
    let world = world.killed().await;
    world.clock.advance(HOUR);
    let fate = approved_by(&world, "clerk", held).await;
    assert!(matches!(fate, Fate::Refused(_)), "{fate:?}");
    let settled = world.open().await.settled().await.unwrap();
    let Settled::Asks(pending) = &*settled else {
        panic!("{settled:?}")
    };
    assert_eq!(pending[0].by, ["head".into()]);
    assert_eq!(world.tools.count("pay"), 0);
}

#[tokio::test]
async fn an_approval_that_came_in_time_is_taken_later() {
    let world = paying();
    let session = world.start(APPROVAL, "Go.").await;
    let held = asked(&session.settled().await.unwrap());
    let world = world.killed().await;
    world.clock.advance(HOUR / 4);
    let message = Wanted::Approve {
        of: held,
        args: None,
    }
    .by("clerk");
    world.engine.deliver("session", message).await.unwrap();
    world.clock.advance(HOUR / 8);
    let settled = world.open().await.settled().await.unwrap();
    assert_eq!(answered(&settled), "So be it.");
    assert_eq!(world.tools.count("pay"), 1);
}

#[tokio::test]
async fn what_it_requires_is_judged_over_state_that_is_not_over() {
    let world = paying();
    let session = world.start(APPROVAL, "Go.").await;
    let held = asked(&session.settled().await.unwrap());
    let world = world.killed().await;
    world.clock.advance(HOUR * 3 / 4);
    assert!(matches!(
        approved_by(&world, "clerk", held).await,
        Fate::Taken(_)
    ));
    let settled = world.open().await.settled().await.unwrap();
    assert_eq!(answered(&settled), "So be it.");
    assert_eq!(world.tools.count("pay"), 0, "the token had expired");
}

#[tokio::test]
async fn an_event_behind_the_time_of_its_wait_is_not_taken() {
    let world = World::new(
        json!({ "main": [{ "call": { "await_payment": { "invoice": "7" } } }, "So be it."] }),
    );
    let session = world.start(TOOLS, "Go.").await;
    assert!(matches!(
        &*session.settled().await.unwrap(),
        Settled::Waits(_)
    ));
    let world = world.killed().await;
    world.clock.advance(5 * HOUR);
    let message = Message::from(Wanted::Event {
        event: "paid".into(),
        fields: json!({ "invoice": "7", "cents": 5 }).to_string(),
    });
    world.engine.deliver("session", message).await.unwrap();
    let settled = world.open().await.settled().await.unwrap();
    assert_eq!(answered(&settled), "So be it.");
    let printed = world.printed().await;
    assert!(printed.contains("Nothing came."), "{printed}");
}
