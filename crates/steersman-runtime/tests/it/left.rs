//! A stop waits for all effects that the session began, also for those that no call waits for: on a superseded branch, or
//! after an interrupt.

use crate::effects::{settle, until_run};
use crate::world::{Does, World, answered, network};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::engine::StartOptions;
use steersman_runtime::inbox::{Message, Resolution, Wanted};
use steersman_runtime::ledger::Progress;
use steersman_runtime::session::{Fate, Session, Settled};
use steersman_runtime::step::Go;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

const DESK: &str = "
tools:
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, native: 1 }
  mail: { description: Mails., parameters: { cents: integer }, effect: idempotent, native: 1 }
agents: { main: { system: You pay., tools: [pay, mail] } }
";

fn call(tool: &str, cents: u32) -> Json {
    json!({ "call": { tool: { "cents": cents } } })
}

/// Returns a session in which the tool runs until the gate is opened.
async fn begun(world: &World, tool: &str) -> (Session, Arc<Semaphore>) {
    begun_of(DESK, world, tool).await
}

async fn begun_of(desk: &str, world: &World, tool: &str) -> (Session, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let does = Does::Gate(gate.clone(), json!("receipt"));
    world.tools.will(tool, does);
    let session = world.start(desk, "Go.").await;
    until_run(world, tool, 1).await;
    (session, gate)
}

/// Rewinds to a new branch `other`, which has a script of its own.
async fn rewound(session: &Session) {
    let rewind = Message::from(Wanted::Rewind {
        at: Line(1),
        label: Some("other".into()),
        say: None,
    });
    session.send(rewind).await.unwrap();
    settle().await;
}

/// Checks that the first effect is done and that nobody owns the session.
async fn is_done(world: &World) {
    let seen = world.engine.inspect("session").await.unwrap();
    let (effect, record) = seen.ledger.effects().next().unwrap();
    assert!(
        matches!(record.progress, Progress::Done { .. }),
        "{:?}",
        record.progress
    );
    assert!(!seen.is_left_in_doubt(effect));
    assert_eq!(seen.info.owner, None);
}

#[tokio::test]
async fn a_session_is_let_go_of_when_what_it_began_has_ended() {
    for tool in ["pay", "mail"] {
        for leaves in ["rewind", "interrupt"] {
            let script = json!({ "main": [call(tool, 5), "Well."], "main@other": ["Well."] });
            let world = World::new(script);
            let (session, gate) = begun(&world, tool).await;
            if leaves == "rewind" {
                rewound(&session).await;
            } else {
                session.interrupt("Stop.").await.unwrap();
            }
            let stopped = tokio::spawn(session.stop());
            settle().await;
            assert!(!stopped.is_finished(), "{tool}, {leaves}");
            gate.add_permits(1);
            stopped.await.unwrap();
            is_done(&world).await;
            assert_eq!(world.tools.count(tool), 1);
        }
    }
}

/// After its stop, `run_all` returns when the effects of all its sessions have ended, also of a session whose branch was
/// left.
#[tokio::test]
async fn who_drives_all_sessions_lets_go_of_one_when_what_it_began_has_ended() {
    let world = World::new(json!({ "main": [call("pay", 5), "Well."], "main@other": ["Well."] }));
    let gate = Arc::new(Semaphore::new(0));
    world
        .tools
        .will("pay", Does::Gate(gate.clone(), json!("receipt")));
    let stop = CancellationToken::new();
    let (engine, until) = (world.engine.clone(), stop.clone());
    let all = tokio::spawn(async move { engine.run_all(until).await });
    for id in ["session", "second"] {
        let options = StartOptions {
            id: Some(id.into()),
            say: Some("Go.".to_owned()),
            ..StartOptions::default()
        };
        world.engine.create(network(DESK), options).await.unwrap();
        let runs = world.tools.count("pay") + 1;
        while world.tools.count("pay") < runs {
            world.clock.advance(50);
            settle().await;
        }
        if let Some(session) = world.engine.driven("session") {
            rewound(&session).await;
        }
    }
    stop.cancel();
    settle().await;
    assert!(!all.is_finished());
    gate.add_permits(1);
    all.await.unwrap().unwrap();
    is_done(&world).await;
}

/// A tool with `parallel: 1` runs once at a time, also if the call that runs is on a superseded branch.
#[tokio::test]
async fn what_runs_on_a_branch_that_was_left_has_its_slot() {
    let other = json!([call("pay", 6), "Paid."]);
    let world = World::new(json!({ "main": [call("pay", 5), "Paid."], "main@other": other }));
    let once = DESK.replace("effect: unsafe,", "effect: unsafe, parallel: 1,");
    let (session, gate) = begun_of(&once, &world, "pay").await;
    rewound(&session).await;
    assert_eq!(world.tools.count("pay"), 1);
    gate.add_permits(1);
    session.settled().await.unwrap();
    assert_eq!(world.tools.count("pay"), 2, "{}", world.printed().await);
}

/// A branch is made current again while its call runs: the session waits for that call, and nobody is asked whether it
/// happened.
#[tokio::test]
async fn a_branch_that_is_taken_up_again_has_its_call_that_runs() {
    for tool in ["pay", "mail"] {
        let script = json!({ "main": [call(tool, 5), "Paid."], "main@other": ["Well."] });
        let world = World::new(script);
        let (session, gate) = begun(&world, tool).await;
        rewound(&session).await;
        session.make_current(Id::MAIN).await.unwrap();
        settle().await;
        gate.add_permits(1);
        let settled: Arc<Settled> = session.settled().await.unwrap();
        assert_eq!(answered(&settled), "Paid.", "{}", world.printed().await);
        assert_eq!(world.tools.count(tool), 1);
    }
}

/// A person says that a payment was not performed while its tool still runs. That is refused: an equal payment could begin
/// at the same time.
#[tokio::test]
async fn what_runs_still_is_not_taken_for_not_performed() {
    let script = json!({ "main": [call("pay", 5), call("pay", 5), "Well."] });
    let world = World::new(script);
    let (session, gate) = begun(&world, "pay").await;
    session.interrupt("Stop.").await.unwrap();
    let waits = session.settled().await.unwrap();
    let seen = world.engine.inspect("session").await.unwrap();
    let doubt = seen.pending.iter().find(|pending| pending.left);
    let doubt = doubt.unwrap_or_else(|| panic!("{waits:?}")).id();
    let no = || session.resolve(doubt, Resolution::NotPerformed, "user");
    let fate = no().await.unwrap().fate;
    let Fate::Refused(why) = fate else {
        panic!("{fate:?}")
    };
    assert!(why.contains("has not ended yet"), "{why}");
    gate.add_permits(1);
    settle().await;
    assert!(matches!(no().await.unwrap().fate, Fate::Refused(_)));
    session.settled().await.unwrap();
    assert_eq!(world.tools.count("pay"), 1, "{}", world.printed().await);
    session.stop().await;
    is_done(&world).await;
}

/// The outcome of a tool is unknown, and its branch is left before the outcome is taken: the doubt is listed.
#[tokio::test]
async fn a_doubt_that_came_with_the_end_of_its_branch_is_listed() {
    let both = json!({ "call": [{ "mail": { "cents": 5 } }, { "look": {} }] });
    let world = World::new(json!({ "main": [both, "Well."], "main@other": ["Well."] }));
    let gate = Arc::new(Semaphore::new(0));
    let unknown = Raw::Unknown(Fault::new("timeout", "no answer came"));
    world.tools.will("mail", Does::Ends(gate.clone(), unknown));
    let desk = DESK.replace("effect: idempotent,", "effect: idempotent, retry: 0,");
    let desk = desk.replace("mail]", "mail, look]");
    let desk = desk.replace("agents:", "  look: { effect: read, native: 1 }\nagents:");
    let options = StartOptions {
        id: Some("session".into()),
        say: Some("Go.".to_owned()),
        ..StartOptions::default()
    };
    world.engine.create(network(&desk), options).await.unwrap();
    let session = world.engine.open_stepping("session").await.unwrap();
    session.stood().await.unwrap();
    while world.tools.count("mail") + world.tools.count("look") < 2 {
        session.go(Go::Line).await.unwrap();
        settle().await;
    }
    gate.add_permits(1);
    settle().await;
    rewound(&session).await;
    session.go(Go::Free).await.unwrap();
    session.settled().await.unwrap();
    let seen = world.engine.inspect("session").await.unwrap();
    let doubt = seen.pending.iter().find(|pending| pending.left);
    let Some(doubt) = doubt else {
        panic!("{}", world.printed().await)
    };
    let no = Resolution::NotPerformed;
    let fate = session.resolve(doubt.id(), no, "user").await.unwrap().fate;
    assert!(matches!(fate, Fate::Taken(_)), "{fate:?}");
}
