//! Sessions that are parked. The engine holds the network of a session that it drives, and lets go of it when it parks the
//! session, so the tests count the references to the network.

use crate::effects::{TOOLS, settle, until_run};
use crate::spy::Spy;
use crate::world::{Does, World, answered, asked, network};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::stored::commit::LedgerEntry;
use steersman_machine::stored::ids::Line;
use steersman_runtime::engine::{Durability, EngineError, StartOptions};
use steersman_runtime::feed::FeedItem;
use steersman_runtime::inbox::CancelWhat;
use steersman_runtime::session::{Fate, Session, Settled};
use steersman_runtime::store::memory::MemoryStore;
use tokio::sync::Semaphore;

const HOUR: u64 = 3_600_000;

/// A session under a network that nobody else holds but this test and the engine's list of networks.
struct One {
    world: World,
    memory: MemoryStore,
    network: Arc<Network>,
    session: Session,
}

impl One {
    async fn started(script: Json) -> Self {
        let memory = MemoryStore::new();
        let store = Spy::over(Arc::new(memory.clone()));
        let world = World::over(store, Durability::Commit, json!({ "main": script }));
        let network = network(TOOLS);
        let options = StartOptions {
            id: Some("session".into()),
            say: Some("Go.".to_owned()),
            seed: Some(1),
            ..StartOptions::default()
        };
        let session = world.engine.start(network.clone(), options).await.unwrap();
        Self {
            world,
            memory,
            network,
            session,
        }
    }

    fn is_parked(&self) -> bool {
        Arc::strong_count(&self.network) == 2
    }

    async fn settled(&self) -> Settled {
        (*self.session.settled().await.unwrap()).clone()
    }
}

fn pays() -> Json {
    json!({ "call": { "transfer": { "cents": 5 } } })
}

#[tokio::test]
async fn who_waits_for_a_person_is_parked_and_goes_on_as_if_nothing_had_been() {
    let one = One::started(json!([pays(), "Paid."])).await;
    let mut feed = one.session.feed(Line::NONE);
    let first = asked(&one.settled().await);
    settle().await;
    assert!(one.is_parked());
    assert!(matches!(one.settled().await, Settled::Asks(asked) if asked[0].id() == first));
    one.session.approve(first, "user").await.unwrap();
    let second = asked(&one.settled().await);
    settle().await;
    assert!(one.is_parked());
    one.session.approve(second, "boss").await.unwrap();
    assert_eq!(answered(&one.settled().await), "Paid.");
    assert!(!one.is_parked(), "the next message may come soon");
    assert_eq!(one.world.tools.count("transfer"), 1);

    // One owner, one epoch, no more lines than needed, and the feed has all of them.
    let lines = one.world.lines().await;
    let entries = lines.iter().flat_map(|line| &line.ledger);
    let claims = entries.filter(|entry| matches!(entry, LedgerEntry::Claimed { .. }));
    assert_eq!(claims.count(), 1);
    let last = lines.last().unwrap().n;
    assert_eq!(
        last,
        Line(lines.len() as u64),
        "{}",
        one.world.printed().await
    );
    let (mut told, mut stood) = (Vec::new(), Vec::new());
    while told.len() < lines.len() || stood.len() < 3 {
        match feed.next().await.unwrap() {
            FeedItem::Line(line) => told.push(line.n),
            FeedItem::Settled { settled, .. } => stood.push(settled.word()),
            FeedItem::Delta { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(told.iter().copied().eq(lines.iter().map(|line| line.n)));
    assert_eq!(stood, ["waits", "waits", "answered"]);
}

#[tokio::test]
async fn a_conversation_is_parked_when_nothing_was_said_for_a_while() {
    let one = One::started(json!(["Yes?", "Once more?", "Bye."])).await;
    assert_eq!(answered(&one.settled().await), "Yes?");
    one.world.clock.advance(2_000);
    settle().await;
    assert!(!one.is_parked());
    one.session.say("Well.").await.unwrap();
    assert_eq!(answered(&one.settled().await), "Once more?");
    one.world.clock.advance(60_000);
    settle().await;
    assert!(one.is_parked());
    assert_eq!(answered(&one.settled().await), "Once more?");
    one.session.say("No.").await.unwrap();
    assert_eq!(answered(&one.settled().await), "Bye.");
    let lines = one.world.lines().await;
    let commits = lines.iter().filter_map(|line| line.commit.as_ref());
    let shared: Vec<u64> = commits
        .flat_map(|commit| &commit.usage)
        .map(|usage| usage.prefix)
        .collect();
    assert!(
        shared[0] == 0 && 0 < shared[1] && shared[1] < shared[2],
        "{shared:?}"
    );
}

#[tokio::test]
async fn time_and_events_bring_it_back() {
    let wait = json!({ "call": { "await_payment": { "invoice": "4711" } } });
    let nap = json!({ "call": { "nap": {} } });
    let one = One::started(json!([wait, nap, "Well rested."])).await;
    assert!(matches!(one.settled().await, Settled::Waits(_)));
    settle().await;
    assert!(one.is_parked());
    let other = json!({ "invoice": "1", "cents": 9 });
    let left = one.session.event("paid", &other).await.unwrap();
    assert!(matches!(left.fate, Fate::Waits(_)), "{left:?}");
    settle().await;
    assert!(!one.is_parked(), "its inbox is not empty");
    let paid = json!({ "invoice": "4711", "cents": 9 });
    let taken = one.session.event("paid", &paid).await.unwrap();
    assert!(matches!(taken.fate, Fate::Taken(_)), "{taken:?}");
    assert!(matches!(one.settled().await, Settled::Waits(_)));
    one.world.clock.advance(HOUR);
    settle().await;
    assert_eq!(answered(&one.settled().await), "Well rested.");
}

#[tokio::test]
async fn time_alone_brings_it_back() {
    let nap = json!({ "call": { "nap": {} } });
    let one = One::started(json!([nap, "Well rested."])).await;
    assert!(matches!(one.settled().await, Settled::Waits(_)));
    settle().await;
    assert!(one.is_parked());
    one.world.clock.advance(HOUR);
    settle().await;
    assert_eq!(answered(&one.settled().await), "Well rested.");
}

#[tokio::test]
async fn it_is_let_go_of_as_any_other() {
    let one = One::started(json!([pays(), "Paid."])).await;
    let _ = one.settled().await;
    settle().await;
    let mut feed = one.session.feed(Line::NONE);
    assert!(!given_back(&one).await);
    one.session.clone().stop().await;
    assert!(given_back(&one).await);
    assert!(one.is_parked());
    let gone = one.session.settled().await;
    assert!(matches!(gone, Err(EngineError::Gone(_))), "{gone:?}");
    while !matches!(feed.next().await.unwrap(), FeedItem::Closed) {}
    // The next owner goes on with it.
    let again = one.world.open().await;
    for by in ["user", "boss"] {
        let held = asked(&again.settled().await.unwrap());
        again.approve(held, by).await.unwrap();
    }
    assert_eq!(answered(&again.settled().await.unwrap()), "Paid.");
}

/// Returns true if the last line gives back what the owner had drawn of the budget.
async fn given_back(one: &One) -> bool {
    let lines = one.world.lines().await;
    let last = &lines.last().unwrap().ledger;
    last.iter()
        .any(|entry| matches!(entry, LedgerEntry::Settle { .. }))
}

#[tokio::test]
async fn what_can_no_longer_be_read_ends_it_with_why() {
    let one = One::started(json!([pays(), "Paid."])).await;
    let held = asked(&one.settled().await);
    settle().await;
    assert!(one.is_parked());
    assert!(one.memory.damage("session", Line(1), 40));
    let receipt = one.session.approve(held, "boss").await.unwrap();
    assert_eq!(receipt.fate, Fate::Lies);
    let gone = one.session.settled().await.unwrap_err().to_string();
    assert!(gone.contains("line 1"), "{gone}");
    assert_eq!(one.world.tools.count("transfer"), 0);
}

/// The outcome of a cancelled tool is recorded when it comes, although the session waits only for people by then.
#[tokio::test]
async fn nobody_is_parked_whose_tool_may_yet_tell_something() {
    let both = json!({ "call": [{ "pay": { "cents": 5 } }, { "transfer": { "cents": 6 } }] });
    let world = World::new(json!({ "main": [both, "So be it."] }));
    let gate = Arc::new(Semaphore::new(0));
    world
        .tools
        .will("pay", Does::Gate(gate.clone(), json!("paid")));
    let session = world.start(TOOLS, "Go.").await;
    until_run(&world, "pay", 1).await;
    let seen = session.inspect().await.unwrap();
    let mut effects = seen.ledger.effects();
    let paying = effects.find(|(_, record)| record.progress.is_started());
    let what = CancelWhat::Effect(paying.unwrap().0);
    session.cancel(what, "user").await.unwrap();
    assert!(matches!(
        &*session.settled().await.unwrap(),
        Settled::Asks(_)
    ));
    settle().await;
    gate.add_permits(1);
    settle().await;
    let lines = world.lines().await;
    let mut entries = lines.iter().flat_map(|line| &line.ledger);
    let heard =
        entries.any(|entry| matches!(entry, LedgerEntry::Late { .. } | LedgerEntry::Done { .. }));
    assert!(heard, "{}", world.printed().await);
}
