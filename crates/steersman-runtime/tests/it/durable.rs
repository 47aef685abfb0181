//! Lines that whole sessions write, and the state of a session after a crash or a restart.

use crate::spy::Behind;
use crate::world::{World, answered, asked};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use steersman_machine::stored::commit::LedgerEntry;
use steersman_machine::stored::ids::Line;
use steersman_runtime::inbox::Resolution;
use steersman_runtime::session::Settled;

const DESK: &str = r"
tools:
  look: { description: Looks., parameters: { n: integer }, effect: read, native: 1 }
  pay: { description: Pays., parameters: { n: integer }, effect: unsafe, native: 1 }
agents:
  helper: { description: Helps., system: You help., tools: [look] }
  main: { system: You work., tools: [look, pay, helper] }
entry: main
";

fn calls(tool: &str, n: usize) -> Json {
    json!({ "call": { tool: { "n": n } } })
}

async fn go_on() {
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
}

/// A round of one model call and one unsafe tool writes two lines that something waits for: holds, attempts and spending are
/// written with the commits.
#[tokio::test]
async fn a_round_costs_two_syncs() {
    const ROUNDS: usize = 8;
    let mut answers: Vec<Json> = (0..ROUNDS).map(|n| calls("pay", n)).collect();
    answers.push("Paid.".into());
    let world = World::new(json!({ "main": answers }));
    let session = world.start(DESK, "Pay.").await;
    answered(&session.settled().await.unwrap());
    let lines = world.lines().await;
    let numbers: BTreeSet<Line> = lines.iter().map(|line| line.n).collect();
    assert_eq!(numbers.len(), lines.len(), "one row per line");
    let urgent = lines.iter().filter(|l| world.store.urgent(l.n)).count();
    assert!(
        lines.len() <= 2 * ROUNDS + 3,
        "{} lines of {ROUNDS} rounds",
        lines.len()
    );
    assert!(
        urgent <= 2 * ROUNDS + 3,
        "{urgent} synced of {} lines",
        lines.len()
    );
}

/// After 200 turns, each with an ended child, a turn writes about as many bytes as after 20.
#[tokio::test]
async fn a_line_does_not_grow_with_ended_children() {
    const TURNS: usize = 200;
    let turn = [
        json!({ "call": { "helper": { "message": "Look." } } }),
        "Done.".into(),
    ];
    let script = json!({
        "main": turn.iter().cycle().take(2 * TURNS).collect::<Vec<_>>(),
        "helper": [calls("look", 0), "Seen."],
    });
    let world = World::new(script);
    let session = world.start(DESK, "Go.").await;
    answered(&session.settled().await.unwrap());
    let mut written = Vec::new();
    for _ in 1..TURNS {
        session.say("Go.").await.unwrap();
        answered(&session.settled().await.unwrap());
        written.push(world.store.bytes());
    }
    let agents = world.engine.inspect("session").await.unwrap();
    let agents = agents.current_branch().unwrap().snapshot.agents.len();
    assert_eq!(agents, TURNS + 1, "a child each turn");
    let of = |from: usize, to: usize| (written[to] - written[from]) / (to - from);
    let (early, late) = (of(2, 20), of(TURNS - 22, TURNS - 2));
    assert!(
        late <= early + early / 8,
        "{early} bytes a turn, later {late}"
    );
}

/// Numbers of lines that were lost in a crash are never used again, so the outcome of an effect of a lost line is never
/// taken for the outcome of another.
#[tokio::test]
async fn numbers_of_lost_lines_are_never_used_again() {
    let script = json!({ "main": [calls("look", 1), calls("look", 2), calls("look", 3), "Seen."] });
    let world = World::new(script);
    world.store.write_only(1, Behind::Silence);
    let session = world.start(DESK, "Look.").await;
    go_on().await;
    let keys = |world: &World| -> Vec<String> {
        let runs = world.tools.runs().into_iter();
        runs.map(|(_, key, _)| key).collect()
    };
    assert_eq!(keys(&world).len(), 3, "it ran ahead of the disk");
    drop(session);
    let world = world.killed().await;
    let kept = world.lines().await.last().unwrap().n;
    let session = world.open().await;
    answered(&session.settled().await.unwrap());
    let lines = world.lines().await;
    let fresh: Vec<Line> = lines.iter().map(|l| l.n).filter(|n| *n > kept).collect();
    assert!(!fresh.is_empty());
    assert!(
        fresh.iter().all(|n| n.0 >= 100),
        "the next owner numbers its lines from a block of its own: {fresh:?}"
    );
    let keys = keys(&world);
    let named: BTreeSet<&String> = keys.iter().collect();
    assert_eq!((keys.len(), named.len()), (6, 6), "{keys:?}");
}

/// Ten orderly restarts use up no budget: tokens that were drawn and not spent come back.
#[tokio::test]
async fn orderly_restarts_cost_no_budget() {
    let definition = format!("limits: {{ tokens: 100000 }}\n{DESK}");
    let mut world = World::new(json!({ "main": vec!["One."; 11] }));
    let session = world.start(&definition, "Go.").await;
    answered(&session.settled().await.unwrap());
    session.stop().await;
    for _ in 0..10 {
        world = world.killed().await;
        let session = world.open().await;
        session.say("On.").await.unwrap();
        answered(&session.settled().await.unwrap());
        session.stop().await;
    }
    let seen = world.engine.inspect("session").await.unwrap();
    let spent = seen.ledger.spent.tokens;
    let used: u64 = world
        .lines()
        .await
        .iter()
        .flat_map(|line| line.ledger.iter())
        .map(|entry| match entry {
            LedgerEntry::Spend { tokens, .. } => *tokens,
            _ => 0,
        })
        .sum();
    assert_eq!(
        spent, used,
        "tokens that were drawn and not spent come back"
    );
    assert!(spent < 10_000, "{spent}");
}

/// An effect whose outcome was lost with its process is in doubt. A person resolves it, and a second resolution is refused.
#[tokio::test]
async fn an_effect_whose_outcome_was_lost_is_in_doubt() {
    let world = World::new(json!({ "main": [calls("pay", 1), "Paid."] }));
    // The disk gets the line that starts the effect, and never its outcome.
    world.store.write_only(2, Behind::Silence);
    let session = world.start(DESK, "Pay.").await;
    go_on().await;
    drop(session);
    assert_eq!(world.tools.count("pay"), 1);
    let world = world.killed().await;
    let session = world.open().await;
    let settled = session.settled().await.unwrap();
    assert!(matches!(&*settled, Settled::Doubt(_)), "{settled:?}");
    let done = || Resolution::Done {
        result: json!("paid").to_string(),
    };
    let effect = asked(&settled);
    session.resolve(effect, done(), "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    let again = session.resolve(effect, done(), "user").await.unwrap();
    assert!(
        matches!(again.fate, steersman_runtime::session::Fate::Refused(_)),
        "{again:?}"
    );
    assert_eq!(world.tools.count("pay"), 1, "it ran once");
}
