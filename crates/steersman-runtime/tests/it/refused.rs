//! Orders about branches that are refused with a reason, because nobody could drive the session after them.

use crate::search;
use crate::sequences::{DESK, turns, within};
use crate::spy::Behind;
use crate::world::{World, answered};
use serde_json::json;
use steersman_machine::network::join::JoinOn;
use steersman_machine::network::search::{Method, Plan, Scorer};
use steersman_machine::stored::commit::Text;
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::values::expression::Expr;
use steersman_runtime::inbox::{Message, Wanted};
use steersman_runtime::session::{Fate, Fork, Search, Settled};

/// A kill cut the search of a person, after any line. Until the search is over, orders to adopt its branches, to make them
/// current or to rewind on them are refused.
#[tokio::test]
async fn what_a_search_that_was_cut_opened_is_not_taken_from_it() {
    for kept in 1..8 {
        let world = World::new(search::script());
        let session = world.start(&search::dice(""), "Roll.").await;
        let _ = session.settled().await.unwrap();
        let plan = Plan {
            score: Some(Scorer::Expr(Expr::parse("state.sum").unwrap())),
            ..Plan::of(Method::Beam, 2)
        };
        world.store.write_only(kept, Behind::Silence);
        let wanted = Search {
            at: Some(Line(1)),
            ..Search::here(plan)
        };
        let _ = within(2_000, session.search(wanted)).await;
        turns(200).await;
        let world = world.killed().await;
        let (root, known) = search::newest(&search::seen(&world).await);
        let opened = known.tried.last().copied().unwrap_or(root);
        let at = Line(2);
        for message in [
            Message::from(Wanted::Adopt {
                branch: root,
                at: None,
            }),
            Message::from(Wanted::Adopt {
                branch: opened,
                at: None,
            }),
            Message::from(Wanted::Current(root)),
            Wanted::Rewind {
                at,
                label: None,
                say: None,
            }
            .on(Some(root)),
        ] {
            let fate = world
                .engine
                .order("session", message.clone())
                .await
                .unwrap()
                .fate;
            let Fate::Refused(why) = &fate else {
                panic!("{message:?} after {kept} lines: {fate:?}")
            };
            assert!(
                why.contains("--stop") || why.contains("not on the path"),
                "{why}"
            );
        }
        let session = world.open().await;
        assert!(matches!(
            &*session.settled().await.unwrap(),
            Settled::Answered { .. }
        ));
        let (_, known) = search::newest(&search::seen(&world).await);
        assert!(known.over.is_some(), "it goes on to its end");
    }
}

/// A branch cannot join itself, a branch that waits for it, or a branch that does not exist: it would wait for ever.
#[tokio::test]
async fn a_branch_does_not_join_what_waits_for_it() {
    let asks = json!({ "call": { "pay_asked": { "cents": 3 } } });
    let world = World::new(json!({ "desk": ["Ready.", asks, "Here."] }));
    let session = world.start(DESK, "Go.").await;
    let _ = session.settled().await.unwrap();
    let fork = Fork {
        say: Some("Pay.".into()),
        live: true,
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    let forked = search::seen(&world).await.branches[1].id;
    let why = async |branches: Vec<Id>| {
        let refused = session.join(branches, &JoinOn::All, None).await;
        let Fate::Refused(why) = refused.unwrap().fate else {
            panic!("it is refused")
        };
        why
    };
    assert!(why(vec![Id::MAIN]).await.contains("cannot wait for itself"));
    let nowhere = Id::new(Line(77), 7);
    assert_eq!(why(vec![nowhere]).await, "there is no branch 77.7");
    session
        .join(vec![forked], &JoinOn::All, None)
        .await
        .unwrap();
    session.make_current(forked).await.unwrap();
    let refused = why(vec![Id::MAIN]).await;
    assert!(refused.contains("both would wait for ever"), "{refused}");
}

/// A stopped search leaves its branches, and a join that waits for one of them goes on.
#[tokio::test]
async fn who_waits_for_a_branch_of_a_search_hears_that_it_was_left() {
    let asks = json!({ "call": { "pay_asked": { "cents": 3 } } });
    let world = World::new(json!({ "desk": ["Ready.", asks, "Heard.", "More.", "Enough."] }));
    let session = world.start(DESK, "Go.").await;
    let _ = session.settled().await.unwrap();
    let plan = Plan {
        score: Some(Scorer::Expr(Expr::parse("state.sum").unwrap())),
        live: true,
        ..Plan::of(Method::BestOf, 1)
    };
    let wanted = Search {
        say: Some("Pay.".to_owned()),
        ..Search::here(plan)
    };
    session.search(wanted).await.unwrap();
    turns(500).await;
    let seen = search::seen(&world).await;
    assert_eq!(seen.pending.len(), 1, "the branch waits for an approval");
    let (_, known) = search::newest(&seen);
    let joined = session.join(vec![known.tried[0]], &JoinOn::All, None).await;
    assert!(matches!(joined.unwrap().fate, Fate::Taken(_)));
    session.stop_search(None).await.unwrap();
    let settled = within(5_000, session.settled()).await.unwrap().unwrap();
    assert!(
        matches!(&*settled, Settled::Asks(_)),
        "it goes on, and pays: {settled:?}"
    );
}

/// A message to a superseded branch is refused, and its whole text stays in the log.
#[tokio::test]
async fn what_is_said_to_a_branch_that_is_gone_is_kept_where_it_is_refused() {
    let world = World::new(json!({ "desk": ["Ready.", "Here."] }));
    let session = world.start(DESK, "Go.").await;
    let _ = session.settled().await.unwrap();
    session.rewind(Line(1), None).await.unwrap();
    let _ = session.settled().await.unwrap();
    let text = format!("{} the end", "word ".repeat(100));
    let said = Wanted::Say {
        text: text.clone(),
        to: None,
    }
    .on(Some(Id::MAIN));
    let fate = session.send(said).await.unwrap().fate;
    assert!(matches!(&fate, Fate::Refused(why) if why.contains("no ticks any more")));
    let lines = world.lines().await;
    let bodies = lines.iter().flat_map(|line| &line.bodies);
    let kept = |body: &Text| matches!(body, Text::Here(body) if body.ends_with(&text));
    assert!(bodies.into_iter().any(kept), "{}", world.printed().await);
}

/// Nobody is at work on a branch without a message, so a join that waits for it goes on.
#[tokio::test]
async fn a_branch_on_which_nothing_was_said_keeps_nobody_waiting() {
    let world = World::new(json!({ "desk": ["Ready.", "Heard."] }));
    let session = world.start(DESK, "Go.").await;
    let _ = session.settled().await.unwrap();
    session.fork(Fork::default()).await.unwrap();
    let seen = search::seen(&world).await;
    let forked = seen.branches.last().unwrap().id;
    let joined = session.join(vec![forked], &JoinOn::All, None).await;
    assert!(matches!(joined.unwrap().fate, Fate::Taken(_)));
    let settled = within(5_000, session.settled()).await.unwrap().unwrap();
    assert_eq!(answered(&settled), "Heard.");
}

/// An order that comes with the first message is read after the line that begins the session.
#[tokio::test]
async fn what_is_ordered_with_the_first_message_is_read_behind_it() {
    let world = World::new(json!({ "desk": ["Ready.", "Here."] }));
    let session = world.start(DESK, "Go.").await;
    let forked = session.fork(Fork::default()).await.unwrap().fate;
    assert!(matches!(forked, Fate::Taken(Line(2..))), "{forked:?}");
    let _ = session.settled().await.unwrap();
}

/// A branch whose scope is one agent does not become current: the rest of the session cannot go on there.
#[tokio::test]
async fn a_branch_on_which_one_agent_acts_does_not_become_current() {
    let world = World::new(search::script());
    let definition = search::dice("search: { method: best_of, n: 2, score: state.sum }");
    let session = world.start(&definition, "Roll.").await;
    let _ = session.settled().await.unwrap();
    let (_, known) = search::newest(&search::seen(&world).await);
    let tried = known.tried[0];
    let at = search::seen(&world)
        .await
        .ledger
        .branch(tried)
        .unwrap()
        .commit;
    for message in [
        Message::from(Wanted::Current(tried)),
        Wanted::Rewind {
            at,
            label: None,
            say: None,
        }
        .on(Some(tried)),
    ] {
        let fate = session.send(message).await.unwrap().fate;
        let Fate::Refused(why) = &fate else {
            panic!("{fate:?}")
        };
        assert!(why.contains("one agent acts"), "{why}");
    }
}
