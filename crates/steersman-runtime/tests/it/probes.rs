//! Probes are effects of their own: they are tried again, begun again after a kill, repeated by command, and shown to
//! people. A probe that answers too late settles nothing.

use crate::effects::settle;
use crate::spy::Behind;
use crate::world::{Does, World, answered, asked};
use serde_json::json;
use std::sync::Arc;
use steersman_machine::stored::commit::{LedgerEntry, Probing};
use steersman_machine::view::mapping::Fault;
use steersman_runtime::clock::Clock as _;
use steersman_runtime::engine::EngineError;
use steersman_runtime::inbox::{CancelWhat, Message, Resolution, Wanted};
use steersman_runtime::ledger::Progress;
use steersman_runtime::pending::Pending;
use steersman_runtime::session::{Fate, Fork, Session, Settled};
use tokio::sync::Semaphore;

fn desk(otherwise: &str) -> String {
    format!(
        r#"
state: {{ open: {{ type: boolean, default: true }}, receipt: optional string }}
tools:
  pay:
    description: Pays.
    parameters: {{ cents: integer }}
    effect: unsafe
    requires: state.open
    on_doubt: {{ probe: payments, args: {{ cents: "{{{{ args.cents }}}}" }}, done: result.id != none, else: {otherwise}, by: [ops, head] }}
    set: {{ receipt: "{{{{ result.id }}}}" }}
    result: "Paid: {{{{ result.id }}}}"
    native: 1
  payments: {{ parameters: {{ cents: integer }}, effect: read, native: 1, retry: 2 }}
  page: {{ effect: idempotent, native: 1 }}
agents:
  desk: {{ system: You pay., tools: [pay] }}
  ops:  {{ person: {{ role: operator, reach: page }} }}
  head: {{ person: {{ role: head, reach: page }} }}
entry: desk
"#
    )
}

fn world() -> World {
    let world = World::new(json!({ "desk": [{ "call": { "pay": { "cents": 5 } } }, "So be it."] }));
    world.tools.will("pay", Does::Unknown);
    world
}

fn found() -> Does {
    Does::Done(json!({ "id": "r-1" }))
}

fn not_found() -> Does {
    Does::Done(json!({ "id": null }))
}

fn down() -> Does {
    Does::NotPerformed(Fault::new("http_500", "out of order"))
}

/// Lets time pass until the session settles.
async fn rested(world: &World, session: &Session) -> Result<Arc<Settled>, EngineError> {
    let settled = session.settled();
    tokio::pin!(settled);
    loop {
        tokio::select! {
            biased;
            settled = &mut settled => return settled,
            () = tokio::task::yield_now() => world.clock.advance(100),
        }
    }
}

async fn waiting(world: &World) -> Pending {
    let seen = world.engine.inspect("session").await.unwrap();
    seen.pending.first().unwrap().clone()
}

/// Waits until a tool has begun this number of times.
async fn began(world: &World, tool: &str, times: usize) {
    while world.tools.count(tool) < times {
        tokio::task::yield_now().await;
    }
}

async fn entries(world: &World) -> Vec<LedgerEntry> {
    let lines = world.lines().await;
    lines.iter().flat_map(|line| line.ledger.clone()).collect()
}

async fn is_late(world: &World) -> bool {
    let late = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Late { .. });
    entries(world).await.iter().any(late)
}

#[tokio::test]
async fn a_probe_is_tried_again_like_any_read() {
    let world = world();
    world.tools.will("payments", Does::Unknown);
    world.tools.will("payments", Does::Unknown);
    world.tools.will("payments", found());
    let session = world.start(&desk("not_performed"), "Go.").await;
    assert_eq!(
        answered(&rested(&world, &session).await.unwrap()),
        "So be it."
    );
    assert_eq!(world.tools.count("pay"), 1);
    assert_eq!(world.tools.count("page"), 0, "nobody was paged");
    let runs = world.tools.runs().into_iter();
    let runs: Vec<_> = runs.filter(|run| run.0 == "payments").collect();
    assert!(runs.iter().all(|run| run.1 == runs[0].1), "{runs:?}");
    let attempts: Vec<u32> = runs.iter().map(|run| run.2).collect();
    assert_eq!(attempts, [1, 2, 3]);
    insta::assert_snapshot!(world.printed().await);
}

#[tokio::test]
async fn the_next_owner_begins_a_probe_again_that_a_kill_ended() {
    let world = world();
    world.tools.will("payments", Does::Hangs);
    let session = world.start(&desk("not_performed"), "Go.").await;
    began(&world, "payments", 1).await;
    drop(session);
    let world = world.killed().await;
    world.tools.will("payments", found());
    let session = world.open().await;
    assert_eq!(
        answered(&rested(&world, &session).await.unwrap()),
        "So be it."
    );
    let runs = world.tools.runs().into_iter();
    let runs: Vec<_> = runs.filter(|run| run.0 == "payments").collect();
    assert_eq!((runs[0].2, runs[1].2), (1, 2));
    assert_eq!(runs[0].1, runs[1].1, "one key for all attempts");
    assert_eq!(world.tools.count("pay"), 1);
}

/// The process dies before, during or after a probe: the payment happened, and is not made again.
#[tokio::test]
async fn a_kill_behind_any_line_of_a_doubt_repeats_nothing() {
    let play = |world: &World| {
        for _ in 0..2 {
            world.tools.will("payments", Does::Unknown);
        }
        for _ in 0..8 {
            world.tools.will("payments", found());
        }
    };
    let calm = world();
    play(&calm);
    let session = calm.start(&desk("ask"), "Go.").await;
    rested(&calm, &session).await.unwrap();
    let lines = calm.store.lines();
    assert!(lines >= 8, "{lines} lines");
    for kept in 0..lines {
        let world = world();
        play(&world);
        world.store.write_only(kept, Behind::Silence);
        let session = world.start(&desk("ask"), "Go.").await;
        tokio::select! {
            _ = rested(&world, &session) => {}
            () = async {
                for _ in 0..2_000 {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
        drop(session);
        let begun = world.tools.count("pay");
        let world = world.killed().await;
        if begun == 0 {
            // The first owner did not pay. The payment of this owner is in doubt as well.
            world.tools.will("pay", Does::Unknown);
        }
        let session = world.open().await;
        let settled = rested(&world, &session).await.unwrap();
        assert_eq!(answered(&settled), "So be it.", "killed after line {kept}");
        assert_eq!(world.tools.count("pay"), 1, "killed after line {kept}");
        let seen = world.engine.inspect("session").await.unwrap();
        let branch = seen.current_branch().unwrap();
        let values: Vec<String> = branch
            .snapshot
            .state
            .values()
            .map(|c| c.value.0.to_string())
            .collect();
        assert!(values.contains(&"\"r-1\"".to_owned()), "{kept}: {values:?}");
    }
}

#[tokio::test]
async fn a_probe_that_fails_is_told_and_asked_again_by_command() {
    let world = world();
    world.tools.will("payments", down());
    let session = world.start(&desk("ask"), "Go.").await;
    let settled = rested(&world, &session).await.unwrap();
    assert!(matches!(&*settled, Settled::Doubt(_)), "{settled:?}");
    let told = waiting(&world).await;
    let probe = told.probe.clone().unwrap();
    assert!(probe.failed && probe.over, "{probe:?}");
    assert_eq!(
        (probe.attempts, &*probe.said.unwrap()),
        (1, "http_500: out of order")
    );
    assert_eq!(told.needs, ["id"]);
    // No owner begins the failed probe again, and each sees the same doubt.
    session.stop().await;
    let world = world.killed().await;
    let session = world.open().await;
    rested(&world, &session).await.unwrap();
    assert_eq!(world.tools.count("payments"), 1);

    world.tools.will("payments", found());
    let receipt = session.retry(Some(told.effect), "user").await.unwrap();
    assert!(matches!(receipt.fate, Fate::Taken(_)), "{receipt:?}");
    assert_eq!(
        answered(&rested(&world, &session).await.unwrap()),
        "So be it."
    );
    assert_eq!(
        (world.tools.count("payments"), world.tools.count("pay")),
        (2, 1)
    );
}

#[tokio::test]
async fn what_a_probe_says_after_the_doubt_was_settled_is_late() {
    for settles in ["resolve", "cancel", "rewind"] {
        let world = world();
        let gate = Arc::new(Semaphore::new(0));
        let answer = json!({ "id": "r-1" });
        world
            .tools
            .will("payments", Does::Gate(gate.clone(), answer));
        let session = world.start(&desk("not_performed"), "Go.").await;
        began(&world, "payments", 1).await;
        let effect = waiting(&world).await.id();
        match settles {
            "resolve" => drop(
                session
                    .resolve(effect, Resolution::Fail, "operator")
                    .await
                    .unwrap(),
            ),
            "cancel" => drop(session.cancel(CancelWhat::Session, "user").await.unwrap()),
            _ => drop(
                session
                    .rewind(steersman_machine::stored::ids::Line(2), None)
                    .await
                    .unwrap(),
            ),
        }
        gate.add_permits(1);
        while !is_late(&world).await {
            tokio::task::yield_now().await;
        }
        rested(&world, &session).await.unwrap();
        let all = entries(&world).await;
        let said = |entry: &&LedgerEntry| {
            matches!(
                entry,
                LedgerEntry::Probe {
                    what: Probing::Said { .. },
                    ..
                }
            )
        };
        assert_eq!(all.iter().filter(said).count(), 0, "{settles}");
        assert_eq!(world.tools.count("pay"), 1, "{settles}");
        let seen = world.engine.inspect("session").await.unwrap();
        let left = seen.ledger.effect(effect.effect).unwrap();
        assert!(
            !matches!(left.progress, Progress::Done { .. }),
            "{settles}: {left:?}"
        );
    }
}

/// Returns the number of results of probes in the log.
async fn said(world: &World) -> usize {
    let said = |entry: &&LedgerEntry| {
        matches!(
            entry,
            LedgerEntry::Probe {
                what: Probing::Said { .. },
                ..
            }
        )
    };
    entries(world).await.iter().filter(said).count()
}

/// A fork starts while a probe runs: it goes on with what is known, and the doubt stays on its branch.
#[tokio::test]
async fn a_fork_while_a_probe_runs_leaves_it_its_doubt() {
    for live in [false, true] {
        let world = World::new(json!({
            "desk": [{ "call": { "pay": { "cents": 5 } } }, "So be it."],
            "desk@other": ["Nobody knows.", "Nobody knows."],
        }));
        world.tools.will("pay", Does::Unknown);
        let gate = Arc::new(Semaphore::new(0));
        let found = Does::Gate(gate.clone(), json!({ "id": "r-1" }));
        world.tools.will("payments", found);
        let session = world.start(&desk("ask"), "Go.").await;
        began(&world, "payments", 1).await;
        let doubt = waiting(&world).await.effect;
        let fork = Fork {
            label: Some("other".into()),
            say: Some("And?".into()),
            live,
            ..Fork::default()
        };
        session.fork(fork).await.unwrap();
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(1);
        let settled = rested(&world, &session).await.unwrap();
        let printed = world.printed().await;
        assert_eq!(answered(&settled), "So be it.", "{printed}");
        let ran = (world.tools.count("pay"), world.tools.count("payments"));
        assert_eq!((ran, said(&world).await), ((1, 1), 1), "{printed}");
        assert!(!is_late(&world).await, "{printed}");
        let seen = world.engine.inspect("session").await.unwrap();
        let known = &seen.ledger.effect(doubt).unwrap().progress;
        assert!(matches!(known, Progress::Done { .. }), "{known:?}");
        assert_eq!(seen.pending, [], "{printed}");
        let other = seen.ledger.find_branch("other").unwrap();
        let other = seen.branches.iter().find(|b| b.id == other).unwrap();
        assert_eq!(seen.settled_on(other).word(), "answered", "{printed}");
    }
}

/// An adoption leaves the call behind: its doubt stays in the ledger, and the result of the probe is recorded once, as late.
#[tokio::test]
async fn an_adoption_while_a_probe_runs_repeats_nothing() {
    let world = World::new(json!({
        "desk": ["Ready.", { "call": { "pay": { "cents": 5 } } }, "So be it."],
        "desk@other": ["Another answer."],
    }));
    world.tools.will("pay", Does::Unknown);
    let gate = Arc::new(Semaphore::new(0));
    let found = Does::Gate(gate.clone(), json!({ "id": "r-1" }));
    world.tools.will("payments", found);
    let session = world.start(&desk("ask"), "Hello.").await;
    rested(&world, &session).await.unwrap();
    session.say("Pay.").await.unwrap();
    began(&world, "payments", 1).await;
    let doubt = waiting(&world).await.effect;
    let fork = Fork {
        label: Some("other".into()),
        say: Some("And?".into()),
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    let seen = world.engine.inspect("session").await.unwrap();
    let other = seen.ledger.find_branch("other").unwrap();
    let fate = session.adopt(other, None).await.unwrap().fate;
    assert!(matches!(fate, Fate::Taken(_)), "{fate:?}");
    gate.add_permits(1);
    while !is_late(&world).await {
        tokio::task::yield_now().await;
    }
    let settled = rested(&world, &session).await.unwrap();
    let printed = world.printed().await;
    assert_eq!(answered(&settled), "Another answer.", "{printed}");
    let ran = (world.tools.count("pay"), world.tools.count("payments"));
    assert_eq!((ran, said(&world).await), ((1, 1), 0), "{printed}");
    // The effect is still in doubt, so an equal call needs an approval.
    let seen = world.engine.inspect("session").await.unwrap();
    let known = seen.ledger.effect(doubt).unwrap();
    assert!(known.in_doubt(), "{known:?}");
}

#[tokio::test]
async fn what_a_probe_lets_run_again_passes_its_guard_again() {
    let world = world();
    let gate = Arc::new(Semaphore::new(0));
    world
        .tools
        .will("payments", Does::Gate(gate.clone(), json!({ "id": null })));
    let session = world.start(&desk("not_performed"), "Go.").await;
    began(&world, "payments", 1).await;
    let closes = Wanted::Edit(vec![("open".into(), Some("false".to_owned()))]).by("user");
    session.send(closes).await.unwrap();
    gate.add_permits(1);
    assert_eq!(
        answered(&rested(&world, &session).await.unwrap()),
        "So be it."
    );
    assert_eq!(world.tools.count("pay"), 1);
}

#[tokio::test]
async fn a_doubt_is_asked_of_whom_the_definition_names() {
    let world = world();
    world.tools.will("payments", not_found());
    let session = world.start(&desk("ask"), "Go.").await;
    rested(&world, &session).await.unwrap();
    began(&world, "page", 2).await;
    let told = waiting(&world).await;
    assert_eq!(told.by, ["ops".into(), "head".into()]);
    assert_eq!(told.roles, ["operator".into(), "head".into()]);
    let resolve = |by: &'static str| session.resolve(told.id(), Resolution::NotPerformed, by);
    let refused = resolve("user").await.unwrap().fate;
    let Fate::Refused(why) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        &*why,
        "only `operator` or `head` may answer this, not `user`"
    );
    world.tools.will("pay", found());
    let taken = resolve("head").await.unwrap().fate;
    assert!(matches!(taken, Fate::Taken(_)), "{taken:?}");
    assert_eq!(
        answered(&rested(&world, &session).await.unwrap()),
        "So be it."
    );
}

/// If `on_doubt` names nobody, the role that approves a call resolves its doubt.
#[tokio::test]
async fn a_doubt_is_asked_of_the_approver_where_nobody_is_named() {
    let definition = desk("ask").replace(", by: [ops, head]", "").replace(
        "requires: state.open",
        "approve: { when: args.cents > 0, by: head }",
    );
    let world = world();
    world.tools.will("payments", not_found());
    let session = world.start(&definition, "Go.").await;
    let settled = rested(&world, &session).await.unwrap();
    session.approve(asked(&settled), "head").await.unwrap();
    rested(&world, &session).await.unwrap();
    assert_eq!(waiting(&world).await.by, ["head".into()]);
    // One page is for the approval and one for the doubt.
    began(&world, "page", 2).await;
}

#[tokio::test]
async fn who_says_that_it_happened_gives_what_is_needed() {
    let world = world();
    world.tools.will("payments", not_found());
    let session = world.start(&desk("ask"), "Go.").await;
    let settled = rested(&world, &session).await.unwrap();
    let effect = asked(&settled);
    for result in ["null", "{}"] {
        let done = Resolution::Done {
            result: result.to_owned(),
        };
        let fate = session
            .resolve(effect, done, "operator")
            .await
            .unwrap()
            .fate;
        let Fate::Refused(why) = fate else {
            panic!("{result} was taken: {fate:?}");
        };
        assert!(why.contains("`pay` needs `id`"), "{why}");
    }
    let done = Resolution::Done {
        result: json!({ "id": "r-7" }).to_string(),
    };
    let fate = session
        .resolve(effect, done, "operator")
        .await
        .unwrap()
        .fate;
    assert!(matches!(fate, Fate::Taken(_)), "{fate:?}");
    assert_eq!(
        answered(&rested(&world, &session).await.unwrap()),
        "So be it."
    );
}

/// The question is in the log: the next owners have it unchanged, and nobody is paged again.
#[tokio::test]
async fn a_doubt_is_asked_once_whoever_owns_its_session() {
    let mut world = world();
    world.tools.will("payments", down());
    let mut session = world.start(&desk("ask"), "Go.").await;
    rested(&world, &session).await.unwrap();
    let doubt = waiting(&world).await;
    let told = world.tools.count("page");
    assert!(told > 0, "somebody is paged");
    for _ in 0..2 {
        drop(session);
        world = world.killed().await;
        session = world.open().await;
        let settled = rested(&world, &session).await.unwrap();
        assert!(matches!(&*settled, Settled::Doubt(_)), "{settled:?}");
        assert_eq!(waiting(&world).await.id(), doubt.id());
    }
    let holds = |entry: &&LedgerEntry| matches!(entry, LedgerEntry::Hold(_));
    assert_eq!(entries(&world).await.iter().filter(holds).count(), 1);
    assert_eq!(world.tools.count("page"), told, "nobody is paged again");
    let done = || Resolution::Done {
        result: r#"{"id":"r-1"}"#.into(),
    };
    let resolved = session.resolve(doubt.id(), done(), "operator").await;
    assert!(matches!(resolved.unwrap().fate, Fate::Taken(_)));
    let again = session.resolve(doubt.id(), done(), "operator").await;
    assert!(matches!(again.unwrap().fate, Fate::Refused(_)));
    let settled = rested(&world, &session).await.unwrap();
    assert_eq!(answered(&settled), "So be it.");
    assert_eq!(world.tools.count("pay"), 1);
}

/// A service that is out of order, and may be asked again after this many milliseconds.
fn down_for(millis: u64) -> Does {
    Does::NotPerformed(Fault {
        again: Some(millis),
        ..Fault::new("http_503", "out of order")
    })
}

/// An order that arrives after the time of the next probe is read by the next owner.
#[tokio::test]
async fn an_order_that_came_behind_the_time_of_a_probe_is_read() {
    for order in ["pause", "resolve", "cancel"] {
        let world = world();
        world.tools.will("payments", down_for(120_000));
        let session = world.start(&desk("ask"), "Go.").await;
        rested(&world, &session).await.unwrap();
        let of = waiting(&world).await.id();
        drop(session);
        let world = world.killed().await;
        world.clock.advance(130_000);
        world.tools.will("payments", not_found());
        let message = match order {
            "pause" => Message::from(Wanted::Pause(true)),
            "resolve" => Wanted::Resolve {
                of,
                how: Resolution::Fail,
            }
            .by("head"),
            _ => Wanted::Cancel(CancelWhat::Session).by("user"),
        };
        world.engine.deliver("session", message).await.unwrap();
        let session = world.open().await;
        settle().await;
        let seen = world.engine.inspect("session").await.unwrap();
        assert!(seen.inbox.is_empty(), "{order}");
        let settled = rested(&world, &session).await.unwrap();
        let word = match order {
            "pause" => "paused",
            "resolve" => "answered",
            _ => "cancelled",
        };
        assert_eq!(settled.word(), word);
        assert_eq!(world.tools.count("pay"), 1, "{order}");
    }
}

#[tokio::test]
async fn no_probe_is_due_while_its_session_is_paused() {
    let world = world();
    world.tools.will("payments", down_for(120_000));
    let session = world.start(&desk("ask"), "Go.").await;
    rested(&world, &session).await.unwrap();
    session.pause().await.unwrap();
    world.clock.advance(130_000);
    settle().await;
    assert_eq!(session.settled().await.unwrap().word(), "paused");
    assert_eq!(world.tools.count("payments"), 1);
    world.tools.will("payments", found());
    session.resume().await.unwrap();
    let settled = rested(&world, &session).await.unwrap();
    assert_eq!(answered(&settled), "So be it.");
    assert_eq!(world.tools.count("payments"), 2);
}

/// The next page is later than a process waits in memory, so its time is in the log, also for the next owner.
#[tokio::test]
async fn people_are_told_when_what_tells_them_may_be_asked_again() {
    let definition = desk("ask").replace("page: { effect", "page: { retry: 2, effect");
    for killed in [false, true] {
        let mut world = world();
        world.tools.will("payments", not_found());
        world.tools.will("page", down_for(120_000));
        world.tools.will("page", down_for(120_000));
        let mut session = world.start(&definition, "Go.").await;
        let settled = rested(&world, &session).await.unwrap();
        assert_eq!(settled.word(), "doubt");
        if killed {
            drop(session);
            world = world.killed().await;
            session = world.open().await;
            rested(&world, &session).await.unwrap();
        }
        settle().await;
        assert_eq!(world.tools.count("page"), 2, "not before its time");
        world.clock.advance(120_000);
        settle().await;
        assert_eq!(world.tools.count("page"), 4, "killed: {killed}");
        let of = waiting(&world).await.id();
        let fate = session.resolve(of, Resolution::Fail, "head").await;
        assert!(matches!(fate.unwrap().fate, Fate::Taken(_)));
        assert_eq!(
            answered(&rested(&world, &session).await.unwrap()),
            "So be it."
        );
        assert_eq!(world.tools.count("page"), 4);
    }
}

/// Returns the time at which the session is due next.
async fn due(session: &Session) -> Option<i64> {
    session.outside().await.unwrap().due.map(|due| due.0)
}

/// A probe and a page are both put off: the session is due for the earlier one, then for the other, and for none when it is
/// cancelled.
#[tokio::test]
async fn a_session_knows_what_of_a_doubt_is_due_first() {
    let definition = desk("ask").replace("page: { effect", "page: { retry: 2, effect");
    for (probe, page) in [(300_000, 120_000), (120_000, 300_000)] {
        let world = world();
        world.tools.will("payments", down_for(probe));
        world.tools.will("page", down_for(page));
        let now = world.clock.now().0;
        let session = world.start(&definition, "Go.").await;
        rested(&world, &session).await.unwrap();
        settle().await;
        let spent = world.clock.now().0 - now;
        let Some(first) = due(&session).await else {
            panic!("{}", world.printed().await)
        };
        assert!(
            (now + 120_000..=now + 120_000 + spent).contains(&first),
            "{first}"
        );
        world.tools.will("payments", down_for(300_000));
        world.clock.advance(125_000);
        settle().await;
        let Some(second) = due(&session).await else {
            panic!("{}", world.printed().await)
        };
        assert!(second > first + 100_000, "{second} after {first}");
        session.cancel(CancelWhat::Session, "user").await.unwrap();
        settle().await;
        assert_eq!(due(&session).await, None);
    }
}
