//! The bounds on how far a session runs ahead of its disk, and a whole session on `AwkwardStore`.

use crate::spy::Spy;
use crate::world::{Does, World, answered, asked};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::sync::Arc;
use steersman_machine::stored::commit::LedgerEntry;
use steersman_machine::stored::ids::Line;
use steersman_machine::stored::interaction::{How, Interaction};
use steersman_runtime::engine::Durability;
use steersman_runtime::session::{Fate, Fork};
use steersman_runtime::store::awkward::AwkwardStore;
use steersman_runtime::store::{AHEAD_BYTES, AHEAD_LINES};

const DESK: &str = r#"
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, native: 1 }
  pay:
    description: Pays.
    parameters: { cents: integer }
    effect: unsafe
    approve: { by: user, ask: "Pay {{ args.cents }}?" }
    native: 1
agents: { desk: { system: You are a desk., tools: [look, pay] } }
"#;

fn desk() -> Json {
    json!({ "desk": [
        { "call": { "look": { "what": "purse" } } },
        { "call": { "pay": { "cents": 500 } } },
        "Paid.",
        "You are welcome.",
    ] })
}

#[tokio::test]
async fn a_session_lives_on_an_awkward_store() {
    let store = Spy::over(Arc::new(AwkwardStore::new()));
    let world = World::over(store, Durability::Commit, desk());
    let session = world.start(DESK, "Pay.").await;
    let effect = asked(&session.settled().await.unwrap());

    let world = world.killed().await;
    let session = world.open().await;
    assert_eq!(asked(&session.settled().await.unwrap()), effect);
    session.approve(effect, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    session.stop().await;

    let world = world.killed().await;
    let session = world.open().await;
    session.say("Thank you.").await.unwrap();
    let settled = session.settled().await.unwrap();
    assert_eq!(answered(&settled), "You are welcome.");
    assert_eq!(world.stack("desk").await, "U A TC TR A TC TR A F UR A F");
    assert_eq!(world.tools.count("pay"), 1);
    let seen = world.engine.inspect("session").await.unwrap();
    assert!(seen.pending.is_empty());
}

const BUSY: &str = r#"
state: { last: { type: string, default: "" } }
tools:
  note:
    description: Notes.
    parameters: { n: integer }
    effect: pure
    native: 1
    set: { last: "{{ result }}" }
    result: Noted.
agents: { busy: { system: You note., tools: [note], limits: { model_calls: 1000 } } }
"#;

/// A session with this number of calls one after the other, each with a result of this number of bytes. Only its first line,
/// which draws tokens, must be on disk before the rest can run.
fn busy(durability: Durability, notes: usize, bytes: usize) -> World {
    let mut script: Vec<Json> = (0..notes)
        .map(|n| json!({ "call": { "note": { "n": n } } }))
        .collect();
    script.push("Done.".into());
    let world = World::over(Spy::default(), durability, json!({ "busy": script }));
    for _ in 0..notes {
        world
            .tools
            .will("note", Does::Done("x".repeat(bytes).into()));
    }
    world
}

/// Lets every task run as far as it can.
async fn go_on() {
    for _ in 0..5_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn by_steps_each_line_is_on_disk_before_the_next() {
    for (durability, lines) in [(Durability::Step, 1..=1), (Durability::Commit, 2..=64)] {
        let world = busy(durability, 8, 10);
        let gate = world.store.stall_behind(1);
        let session = world.start(BUSY, "Work.").await;
        go_on().await;
        let (ahead, _) = world.store.ahead();
        assert!(lines.contains(&ahead), "{durability:?}: {ahead} ahead");
        gate.add_permits(1);
        assert_eq!(answered(&session.settled().await.unwrap()), "Done.");
        let (most, _) = world.store.most_ahead();
        assert!(lines.contains(&most), "{durability:?}: {most} ahead");
    }
}

#[tokio::test]
async fn a_session_stops_ahead_of_a_slow_disk_and_goes_on_after() {
    let lines = usize::try_from(AHEAD_LINES).unwrap();
    // Many small lines reach the bound of lines, large ones the bound of bytes.
    for (notes, size) in [(60, 10), (30, 60_000)] {
        let world = busy(Durability::Commit, notes, size);
        let gate = world.store.stall_behind(1);
        let session = world.start(BUSY, "Work.").await;
        go_on().await;
        let ahead = world.store.ahead();
        go_on().await;
        assert_eq!(world.store.ahead(), ahead, "it has stopped");
        let unhurried = (1..=1 + ahead.0 as u64)
            .rev()
            .take_while(|n| !world.store.urgent(Line(*n)));
        let unhurried = unhurried.count();
        assert!(
            unhurried < lines / 2,
            "{unhurried} lines wait for a batch while the session waits"
        );
        if size < 1_000 {
            assert_eq!(ahead.0, lines);
        } else {
            assert!(ahead.0 < lines, "{} lines", ahead.0);
            assert!(ahead.1 > AHEAD_BYTES - 2 * size, "{} bytes", ahead.1);
        }
        gate.add_permits(1);
        assert_eq!(answered(&session.settled().await.unwrap()), "Done.");
        let most = world.store.most_ahead();
        assert!(most.0 <= lines && most.1 <= AHEAD_BYTES, "{most:?}");
        assert_eq!(world.store.ahead(), (0, 0));
        assert_eq!(world.tools.count("note"), notes);
    }
}

/// A batch has one line for each branch.
#[tokio::test]
async fn a_session_with_many_branches_is_not_further_ahead() {
    let definition = "config: { limit: { type: integer, default: 10 } }\n\
         agents: { main: { system: \"You settle up to {{ config.limit }}.\" } }";
    let script = json!({ "main": ["Ready."] });
    let world = World::over(Spy::default(), Durability::Commit, script);
    let session = world.start(definition, "Go.").await;
    for _ in 0..40 {
        let fate = session.fork(Fork::default()).await.unwrap().fate;
        assert!(matches!(fate, Fate::Taken(_)), "{fate:?}");
    }
    let gate = world.store.stall_behind(world.store.lines());
    let rebinds = (1..=3).map(|limit| {
        let session = session.clone();
        let config = [("limit".into(), json!(limit))];
        tokio::spawn(async move { session.rebind(&config, "user").await.unwrap().fate })
    });
    let rebinds: Vec<_> = rebinds.collect();
    go_on().await;
    assert_eq!(world.store.ahead().0, 41);
    gate.add_permits(1);
    for rebind in rebinds {
        let fate = rebind.await.unwrap();
        assert!(matches!(fate, Fate::Taken(_)), "{fate:?}");
    }
    let (most, _) = world.store.most_ahead();
    assert_eq!(most, 41);
}

/// A model call begins only with tokens whose draw is on disk, however far the session runs ahead of the disk.
#[tokio::test]
async fn tokens_are_drawn_on_disk_before_they_are_spent() {
    let system = "You note. ".repeat(4_000);
    let definition =
        format!("limits: {{ tokens: 100000000 }}\n{BUSY}").replace("You note.", &system);
    let world = busy(Durability::Commit, 60, 10);
    let gate = world.store.stall_behind(1);
    let session = world.start(&definition, "Work.").await;
    go_on().await;
    let (ahead, _) = world.store.ahead();
    let begun = world.tools.count("note");
    // The first line draws tokens for four calls of 10,000. The estimate for a call is more than 20,000, and a call spends
    // half of that.
    assert!((1..4).contains(&begun), "{begun} calls");
    assert!(ahead <= 2 * begun + 2, "{ahead} lines");
    gate.add_permits(1);
    assert_eq!(answered(&session.settled().await.unwrap()), "Done.");
    assert_eq!(world.tools.count("note"), 60);
    assert_eq!(world.store.ahead(), (0, 0));
}

/// Returns a definition whose tool writes 6,000 state entries with long names. The writes of one result do not fit into a
/// line, although the values are small.
fn wide() -> String {
    let mut state = String::new();
    let mut set = String::new();
    for n in 0..6_000 {
        let name = format!("{}{n:04}", "e".repeat(36));
        writeln!(state, "  {name}: optional integer").expect("a string takes it");
        writeln!(set, "      {name}: \"{{{{ result }}}}\"").expect("a string takes it");
    }
    format!(
        "state:\n{state}tools:\n  fill:\n    description: Fills.\n    effect: unsafe\n    native: 1\n    set:\n{set}\
         agents: {{ wide: {{ system: You fill., tools: [fill] }} }}\n"
    )
}

/// An outcome that does not fit into a line becomes a failed result. The session goes on, and the effect is done once, also
/// under the next owner.
#[tokio::test]
async fn an_outcome_that_no_line_holds_is_a_failed_result() {
    let script = json!({ "wide": [{ "call": { "fill": {} } }, "So be it.", "And on."] });
    let world = World::over(Spy::default(), Durability::Commit, script);
    world.tools.will("fill", Does::Done(json!(1)));
    let session = world.start(&wide(), "Fill.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    session.stop().await;

    let world = world.killed().await;
    let session = world.open().await;
    session.say("Go on.").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "And on.");
    assert_eq!(world.tools.count("fill"), 1);
    let lines = world.lines().await;
    let pushes = lines.iter().filter_map(|l| l.commit.as_ref());
    let results: Vec<_> = pushes
        .flat_map(|c| &c.pushes)
        .filter_map(|p| match &p.what {
            Interaction::Result(result) => Some((result.how, result.code.as_deref())),
            _ => None,
        })
        .collect();
    assert_eq!(results, [(How::Failed, Some("misfit"))]);
    let done = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Done { .. });
    assert_eq!(
        lines
            .iter()
            .flat_map(|l| &l.ledger)
            .filter(|e| done(e))
            .count(),
        1
    );
}
