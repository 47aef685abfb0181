//! The feed of a session: lines that are on disk, complete and in order, and streamed pieces between them.

use crate::effects::settle;
use crate::spy::Behind;
use crate::world::{World, answered};
use serde_json::json;
use steersman_machine::stored::ids::Line;
use steersman_runtime::feed::{Feed, FeedItem};
use steersman_runtime::model::Delta;
use steersman_runtime::session::Fate;

const PLAIN: &str = "agents: { main: { system: You talk. } }";

#[tokio::test]
async fn followers_see_pieces_then_the_line_then_that_it_settled() {
    let world = World::new(json!({ "main": ["One two three."] }));
    let session = world.start(PLAIN, "Go.").await;
    let mut feed = session.feed(Line::NONE);
    let (mut lines, mut text) = (Vec::new(), String::new());
    loop {
        match feed.next().await.unwrap() {
            FeedItem::Line(line) => lines.push(line.n.0),
            FeedItem::Delta {
                delta: Delta::Text(piece),
                attempt,
                ..
            } => {
                assert_eq!(attempt, 1);
                text.push_str(&piece);
            }
            FeedItem::Settled(settled) => {
                assert_eq!(settled.word(), "answered");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((lines, text.as_str()), (vec![1, 2], "One two three."));
}

#[tokio::test]
async fn a_cursor_goes_on_where_it_was_in_any_process() {
    let world = World::new(json!({ "main": ["One.", "Two."] }));
    let session = world.start(PLAIN, "Go.").await;
    session.settled().await.unwrap();
    let other = world.again();
    let mut feed = other.engine.feed("session", Line::NONE);
    let first = feed.lines().await.unwrap();
    assert_eq!(first.len(), 2);
    session.say("On.").await.unwrap();
    session.settled().await.unwrap();
    let mut feed = other.engine.feed("session", feed.cursor());
    let more: Vec<u64> = feed.lines().await.unwrap().iter().map(|l| l.n.0).collect();
    assert_eq!(more, [3, 4]);
}

#[tokio::test]
async fn nothing_is_shown_as_committed_that_is_not_on_disk() {
    let world = World::new(json!({ "main": ["One."] }));
    world.store.write_only(1, Behind::Silence);
    let session = world.start(PLAIN, "Go.").await;
    while world.store.withheld() == 0 {
        tokio::task::yield_now().await;
    }
    let lines = world.lines().await;
    assert_eq!(lines.len(), 1);
    let settled = tokio::select! {
        biased;
        settled = session.settled() => Some(settled),
        () = async {
            for _ in 0..500 {
                tokio::task::yield_now().await;
            }
        } => None,
    };
    assert!(
        settled.is_none(),
        "an answer is shown only when it is on disk: {settled:?}"
    );
}

/// The message is taken, and its answer is left to the next owner: so the session has not settled.
#[tokio::test]
async fn nobody_is_told_that_a_session_settled_that_was_only_stopped() {
    let world = World::new(json!({ "main": ["One.", "Two."] }));
    let session = world.start(PLAIN, "Go.").await;
    session.settled().await.unwrap();
    let mut feed = session.feed(Line(2));
    let ((), said) = tokio::join!(session.clone().stop(), session.say("On."));
    assert_eq!(said.unwrap().fate, Fate::Taken(Line(3)));
    loop {
        match feed.next().await.unwrap() {
            FeedItem::Line(_) => {}
            FeedItem::Closed => break,
            other => panic!("{other:?}"),
        }
    }
    let next = world.open().await;
    let settled = next.settled().await.unwrap();
    assert_eq!(answered(&settled), "Two.");
}

/// Items come without waiting for the clock unless a feed has nothing to give.
async fn at_once(feed: &mut Feed) -> Option<FeedItem> {
    tokio::select! {
        biased;
        item = feed.next() => Some(item.unwrap()),
        () = settle() => None,
    }
}

#[tokio::test]
async fn a_feed_gives_the_lines_of_the_next_owner() {
    let world = World::new(json!({ "main": ["One.", "Two."] }));
    let session = world.start(PLAIN, "Go.").await;
    let mut feed = session.feed(Line::NONE);
    session.settled().await.unwrap();
    session.stop().await;
    while !matches!(feed.next().await.unwrap(), FeedItem::Closed) {}
    assert!(at_once(&mut feed).await.is_none());
    let next = world.open().await;
    next.say("On.").await.unwrap();
    next.settled().await.unwrap();
    world.clock.advance(1_000);
    let item = at_once(&mut feed).await;
    let Some(FeedItem::Line(line)) = item else {
        panic!("{item:?}");
    };
    let lines = world.lines().await;
    assert!(lines.iter().any(|own| own.n == line.n), "{line:?}");
    assert!(line.n > Line(2), "{line:?}");
}
