//! Streams: positions, last ids, kinds, masks, ends.

use crate::world::{Caller, Frame, SCRIPT, World, desk, durable, whole};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use steersman::Steersman;
use steersman::machine::stored::ids::Line;
use steersman::machine::stored::outcome::{Answer, Failure};
use steersman::runtime::Boxed;
use steersman::runtime::model::{Delta, Model, ModelCall, Sink};
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::{Limits, NewToken, Options, Permission};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

fn kinds(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| &*frame.event).collect()
}

#[tokio::test]
async fn a_reader_that_comes_back_misses_nothing_and_gets_nothing_twice() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let session = all.start("My kettle is broken.").await;
    let path = format!("/v1/sessions/{session}/events?until=settled");
    let frames = all.stream(&path, None).await.rest().await;
    let hello = &frames[0];
    assert_eq!((&*hello.event, &hello.id), ("hello", &None));
    assert_eq!(hello.data["cursor"], "0.0");
    assert_eq!(frames.last().unwrap().event, "settled");
    let whole = durable(&frames);
    assert!(whole.len() > 5, "{:?}", kinds(&frames));
    for (n, frame) in whole.iter().enumerate() {
        let id = frame.id.as_deref();
        assert_eq!(frame.data["cursor"].as_str(), id);
        let rest = all.stream(&path, id).await.rest().await;
        assert_eq!(durable(&rest), whole[n + 1..], "after {id:?}");
        assert_eq!(rest[0].data["cursor"].as_str(), id);
    }
    // The last id goes before `from`.
    let last = whole.last().unwrap().id.as_deref();
    let rest = all
        .stream(&format!("{path}&from=start"), last)
        .await
        .rest()
        .await;
    assert_eq!(kinds(&rest), ["hello", "settled"]);
    let now = all
        .stream(&format!("{path}&from=now"), None)
        .await
        .rest()
        .await;
    assert_eq!(kinds(&now), ["hello", "settled"]);
    let some = all
        .stream(&format!("{path}&kinds=heard,asked"), None)
        .await
        .rest()
        .await;
    assert_eq!(kinds(&some), ["hello", "heard", "asked"]);
    let wrong = all.get(&format!("{path}&from=never")).await;
    wrong.fails(400, "cursor");
}

#[tokio::test]
async fn a_reader_follows_what_another_process_drives() {
    let store = Arc::new(MemoryStore::new());
    let one = World::undriven(store.clone(), SCRIPT, Options::default()).await;
    let all = one.all("").await;
    let session = one.steersman.start(&desk()).await.unwrap();
    let turn = session.ask("Broken.").await.unwrap();
    assert_eq!(turn.questions().len(), 1);
    let session = session.id();
    // The second process serves the same store, and does not drive the session: what it tells comes from the log.
    let two = World::undriven(store, SCRIPT, Options::default()).await;
    let there = two.with(all.token.clone());
    let path = format!("/v1/sessions/{session}/events?until=settled");
    let here = all.stream(&path, None).await.rest().await;
    let elsewhere = there.stream(&path, None).await.rest().await;
    assert_eq!(durable(&here), durable(&elsewhere));
    assert_eq!(
        (&here[0].data["driven"], &elsewhere[0].data["driven"]),
        (&json!("here"), &json!("elsewhere"))
    );
    assert_eq!(elsewhere.last().unwrap().data["status"], "asks");
}

#[tokio::test]
async fn a_stream_ends_with_the_server_and_with_its_limits() {
    let limits = Limits {
        streams_each: 1,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), SCRIPT, options).await;
    let all = world.all("").await;
    let session = all.start("Broken.").await;
    let path = format!("/v1/sessions/{session}/events?from=now");
    let mut stream = all.stream(&path, None).await;
    assert_eq!(stream.next().await.unwrap().event, "hello");
    assert_eq!(stream.next().await.unwrap().event, "settled");
    let second = all.get(&path).await;
    assert_eq!(second.headers["retry-after"], "1");
    second.fails(429, "streams");
    world.server.stop();
    let rest = tokio::time::timeout(Duration::from_secs(20), stream.rest())
        .await
        .unwrap();
    assert_eq!(kinds(&rest), [""; 0]);
}

/// A model that streams its answer, and ends it when it is told to.
pub(crate) struct Slow(pub(crate) Arc<Notify>);

const SAYS: &str = "The word is tiger lily 7, and nothing else of all this matters to anybody who listens here, today or tomorrow.";

impl Model for Slow {
    fn label(&self) -> Arc<str> {
        "slow".into()
    }

    fn call<'a>(
        &'a self,
        _call: &'a ModelCall,
        sink: &'a dyn Sink,
        _cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            for piece in SAYS.split_inclusive(' ') {
                sink.delta(Delta::Text(piece.to_owned()));
            }
            self.0.notified().await;
            Ok(Answer {
                text: Some(SAYS.to_owned()),
                ..Answer::default()
            })
        })
    }
}

#[tokio::test]
async fn secrets_are_masked_in_pieces_too_unless_the_token_may_see_them() {
    let ends = Arc::<Notify>::default();
    let setup = Steersman::options().model("default", Slow(ends.clone()));
    let world = World::of(setup, Arc::new(MemoryStore::new()), Options::default()).await;
    let all = world.all("").await;
    // It is driven here before anybody listens, so that no piece is missed.
    let driven = world.steersman.start(&desk()).await.unwrap();
    let session = driven.id();
    let masked = NewToken {
        allows: vec![Permission::Read, Permission::Write],
        ..whole("")
    };
    let masked = world.with(world.token(masked).await);
    let path = format!("/v1/sessions/{session}/events");
    let mut streams = [
        all.stream(&path, None).await,
        masked.stream(&path, None).await,
    ];
    driven.say("Hello.").await.unwrap();
    let mut seen = [Vec::new(), Vec::new()];
    let pieces = |frames: &[Frame]| -> String {
        let pieces = frames.iter().filter(|frame| frame.event == "piece");
        pieces
            .map(|frame| frame.data["text"].as_str().unwrap().to_owned())
            .collect()
    };
    for (stream, seen) in streams.iter_mut().zip(&mut seen) {
        while !pieces(seen).contains("and nothing") {
            seen.push(stream.next().await.unwrap());
        }
    }
    ends.notify_one();
    for (stream, seen) in streams.iter_mut().zip(&mut seen) {
        // The session had settled before, too: nothing was said yet.
        while seen
            .last()
            .is_none_or(|frame: &Frame| frame.data["status"] != "answered")
        {
            seen.push(stream.next().await.unwrap());
        }
    }
    let texts = |frames: &[Frame]| {
        frames
            .iter()
            .map(|frame| frame.data.to_string())
            .collect::<String>()
    };
    assert!(
        pieces(&seen[0]).starts_with("The word is tiger lily 7, and"),
        "{:?}",
        seen[0]
    );
    assert!(
        pieces(&seen[1]).starts_with("The word is (secret), and"),
        "{:?}",
        seen[1]
    );
    assert!(!texts(&seen[1]).contains("lily"), "{:?}", seen[1]);
    let said = seen[1].iter().find(|frame| frame.event == "said").unwrap();
    assert!(
        said.data["text"]
            .as_str()
            .unwrap()
            .starts_with("The word is (secret), and")
    );
    let last = &seen[1].last().unwrap().data;
    assert!(
        last["answer"]
            .as_str()
            .unwrap()
            .starts_with("The word is (secret), and"),
        "{last}"
    );

    in_no_view(&all, &masked, session).await;
    ends.notify_one();
    let turn = masked.say(session, "Again?").await;
    assert!(!turn.to_string().contains("lily"), "{turn}");
    let list = masked.get("/v1/sessions").await.is(200).to_string();
    assert!(!list.contains("lily"), "{list}");

    // Each state is told once.
    for (stream, seen) in streams.iter_mut().zip(&mut seen) {
        let is_again = |frame: &Frame| frame.data["text"] == "Again?";
        while !seen.iter().any(is_again) || seen.last().unwrap().event != "settled" {
            seen.push(stream.next().await.unwrap());
        }
        let settled = seen.iter().filter(|frame| frame.event == "settled");
        let states: Vec<&Json> = settled.map(|frame| &frame.data["status"]).collect();
        assert_eq!(states, ["waits", "answered", "answered"]);
    }
}

#[tokio::test]
async fn a_follower_that_is_older_than_the_binding_sees_no_secret_of_the_definition() {
    let ends = Arc::<Notify>::default();
    ends.notify_one();
    let setup = Steersman::options().model("default", Slow(ends));
    let world = World::of(setup, Arc::new(MemoryStore::new()), Options::default()).await;
    let all = world.all("").await;
    let start = json!({ "definition": "desk", "message": "Hello." });
    let begun = all.post("/v1/sessions", start).await.json;
    let session = begun["session"].as_str().unwrap();
    // Nothing is on disk but the message, and it looks for secrets now.
    let mut events = world.steersman.events(session, Line::NONE).masked();
    assert!(futures::poll!(std::pin::pin!(events.next())).is_pending());
    let driving = world.server.clone();
    tokio::spawn(async move { driving.drive(|_| {}).await });
    let mut told = String::new();
    while !told.contains("Settled") {
        let event = events.next().await.unwrap().unwrap();
        told = format!("{told}{:?}\n", event.kind);
    }
    assert!(told.contains("The word is (secret)"), "{told}");
    assert!(!told.contains("lily"), "{told}");
}

/// No view shows the secret to a token that may not see it.
async fn in_no_view(all: &Caller<'_>, masked: &Caller<'_>, session: &str) {
    let place = format!("/v1/sessions/{session}");
    for path in [
        "",
        "/state",
        "/lines",
        "/effects",
        "/graph",
        "/questions",
        "/branches",
        "/artifacts",
    ] {
        let view = masked
            .get(&format!("{place}{path}"))
            .await
            .is(200)
            .to_string();
        assert!(!view.contains("lily"), "{path}: {view}");
    }
    // A screen shows it to nobody, and a context is for those who may see it.
    for screen in [
        "show",
        "log",
        "effects",
        "why",
        "graph",
        "artifacts",
        "waits",
        "follow",
    ] {
        for caller in [&all, &masked] {
            let shown = caller.get(&format!("{place}/screens/{screen}")).await;
            let shown = shown.is(200).to_string();
            assert!(!shown.contains("lily"), "{screen}: {shown}");
        }
    }
    let context = format!("{place}/screens/context");
    all.get(&context).await.is(200);
    masked.get(&context).await.fails(403, "scope");
    let none = masked.get(&format!("{place}/screens/fly")).await;
    none.fails(404, "path");
}
