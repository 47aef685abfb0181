//! The feed of a session: lines that are on disk, complete and in order, and streamed pieces between them.

use crate::effects::settle;
use crate::spy::{Behind, Spy};
use crate::world::{Does, NOON, World, answered, network};
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex};
use steersman_machine::network::Network;
use steersman_machine::stored::ids::{Line, Name};
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::clock::Virtual;
use steersman_runtime::engine::{Durability, Engine, Options, Parts, StartOptions};
use steersman_runtime::feed::{Feed, FeedItem};
use steersman_runtime::model::scripted::{Script, ScriptedModel};
use steersman_runtime::model::{BoundModel, Delta, Model, ModelCall, Models, ModelsError, Sink};
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::Fate;
use steersman_runtime::{Boxed, Env};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const NOTES: &str = "
agents: { main: { system: You talk., tools: [note] } }
tools: { note: { description: Notes., effect: pure, native: 1 } }
";

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
            FeedItem::Settled { settled, .. } => {
                assert_eq!(settled.word(), "answered");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((lines, text.as_str()), (vec![1, 2], "One two three."));
}

#[tokio::test]
async fn a_follower_that_is_late_hears_that_it_settled_before_its_owner_let_go() {
    let world = World::new(json!({ "main": ["One two three."] }));
    let session = world.start(PLAIN, "Go.").await;
    let mut feed = session.feed(Line::NONE);
    session.settled().await.unwrap();
    session.stop().await;
    let mut seen = Vec::new();
    while seen.last() != Some(&"closed") {
        match feed.next().await.unwrap() {
            FeedItem::Line(_) => seen.push("line"),
            FeedItem::Settled { .. } => seen.push("settled"),
            FeedItem::Closed => seen.push("closed"),
            FeedItem::Delta { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    // A release may tell it once more.
    seen.dedup();
    assert_eq!(seen, ["line", "settled", "closed"]);
}

/// A scripted model that stops after the first piece of its answer until it is told to go on.
#[derive(Clone)]
struct Halting(Arc<ScriptedModel>, Arc<Notify>);

#[derive(Default)]
struct Pieces(Mutex<Vec<Delta>>);

impl Sink for Pieces {
    fn delta(&self, delta: Delta) {
        self.0.lock().unwrap().push(delta);
    }
}

impl Model for Halting {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let pieces = Pieces::default();
            let answer = Model::call(&*self.0, call, &pieces, cancel).await;
            for (k, piece) in pieces.0.into_inner().unwrap().into_iter().enumerate() {
                if k == 1 {
                    self.1.notified().await;
                }
                sink.delta(piece);
            }
            answer
        })
    }

    fn label(&self) -> Name {
        "halting".into()
    }
}

impl Models for Halting {
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        env: &'a Env,
        folder: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>> {
        self.0.resolve(network, env, folder)
    }

    fn model(&self, _: &BoundModel) -> Result<Arc<dyn Model>, ModelsError> {
        Ok(Arc::new(self.clone()))
    }
}

/// The text of the next item, which must be a piece.
async fn piece(feed: &mut Feed) -> String {
    match feed.next().await.unwrap() {
        FeedItem::Delta {
            delta: Delta::Text(text),
            ..
        } => text,
        other => panic!("{other:?}"),
    }
}

/// A model may answer before the line that asked it is on disk. The agent of a piece is looked up there.
#[tokio::test]
async fn a_piece_comes_after_the_line_of_its_effect_however_slow_the_disk_is() {
    let script = json!({ "main": [{ "call": { "note": {} } }, "One two three."] });
    let world = World::over(Spy::default(), Durability::Commit, script);
    world.tools.will("note", Does::Done("noted".into()));
    // The first line draws tokens. With them the session runs ahead of its disk.
    let gate = world.store.stall_behind(1);
    let session = world.start(NOTES, "Go.").await;
    let mut feed = session.feed(Line::NONE);
    let FeedItem::Line(first) = feed.next().await.unwrap() else {
        panic!("the first line is on disk");
    };
    // Only the call of the first line has pieces so far.
    while let Some(item) = at_once(&mut feed).await {
        let FeedItem::Delta { effect, .. } = &item else {
            panic!("{item:?}");
        };
        assert_eq!(effect.line(), first.n);
    }
    assert!(
        world.store.ahead().0 > 1,
        "the session is ahead of its disk"
    );
    gate.add_permits(100);
    let (mut lines, mut text) = (vec![first.n], String::new());
    loop {
        match feed.next().await.unwrap() {
            FeedItem::Line(line) => lines.push(line.n),
            FeedItem::Delta { effect, delta, .. } => {
                assert_eq!(lines.last(), Some(&effect.line()), "{delta:?}");
                if let Delta::Text(piece) = delta {
                    text.push_str(&piece);
                }
            }
            FeedItem::Settled { .. } => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(text, "One two three.");
}

#[tokio::test]
async fn a_follower_that_comes_late_gets_the_text_so_far() {
    let script = Script::parse(&json!({ "main": ["One two three."] })).unwrap();
    let go_on = Arc::new(Notify::new());
    let engine = Engine::new(Parts {
        store: Arc::new(Spy::default()),
        clock: Arc::new(Virtual::at(NOON)),
        models: Arc::new(Halting(Arc::new(ScriptedModel::new(script)), go_on.clone())),
        toolsets: Vec::new(),
        sealer: Sealer::new(&[7; 32]),
        options: Options {
            env: Arc::new(|_| None),
            ..Options::default()
        },
    });
    let options = StartOptions {
        say: Some("Go.".into()),
        ..StartOptions::default()
    };
    let session = engine.start(network(PLAIN), options).await.unwrap();
    let mut early = session.feed(Line::NONE);
    assert!(matches!(early.next().await.unwrap(), FeedItem::Line(_)));
    let first = piece(&mut early).await;
    // Also a reader that only knows the name of the session.
    for mut late in [
        session.feed(Line::NONE),
        engine.feed(session.id(), Line::NONE),
    ] {
        assert!(matches!(late.next().await.unwrap(), FeedItem::Line(_)));
        assert_eq!(piece(&mut late).await, first);
    }
    let mut late = session.feed(Line(1));
    go_on.notify_one();
    let mut text = String::new();
    loop {
        match late.next().await.unwrap() {
            FeedItem::Delta {
                delta: Delta::Text(piece),
                ..
            } => text.push_str(&piece),
            FeedItem::Line(line) => {
                assert_eq!(line.n, Line(2));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(text, "One two three.");
    session.settled().await.unwrap();
    let mut after = session.feed(Line(1));
    let mut items = Vec::new();
    while let Some(item) = at_once(&mut after).await {
        items.push(item);
    }
    assert!(
        matches!(&items[..], [FeedItem::Line(_)]),
        "the text of an answer that is on a line is not provisional any more: {items:?}"
    );
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
    let early = at_once(&mut feed).await;
    assert!(early.is_none(), "{early:?}");
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
