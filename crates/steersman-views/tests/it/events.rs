//! Events: stored and live lines give the same events, from any position.

use crate::world::{SECRET, engine, paid};
use serde_json::Value as Json;
use std::sync::{Arc, Mutex};
use steersman_machine::context::History;
use steersman_machine::network::Network;
use steersman_machine::stored::commit::{Binding, Hooked, LogLine};
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::ids::{Body, Id, Line};
use steersman_machine::stored::interaction::Interaction;
use steersman_machine::stored::parts::Parts;
use steersman_runtime::Boxed;
use steersman_runtime::engine::{Engine, EngineError};
use steersman_runtime::erase::What;
use steersman_runtime::feed::FeedItem;
use steersman_runtime::known::Known;
use steersman_runtime::model::Delta;
use steersman_runtime::store::StoreError;
use steersman_views::event::{Cursor, Event, Teller};
use steersman_views::log::Log;
use steersman_views::reader::{Reader, Stored};

async fn all(engine: &Engine, id: &str, from: Cursor) -> Vec<Event> {
    let mut teller = Teller::new(Arc::new(Stored::plain(engine, id)));
    teller.after(from, usize::MAX).await.unwrap()
}

/// An event without the fields that differ from run to run.
fn told(event: &Event) -> String {
    let mut json = serde_json::to_value(event).unwrap();
    let fields = json.as_object_mut().unwrap();
    for time in ["at", "took", "first"] {
        fields.shift_remove(time);
    }
    for random in ["digest", "message"] {
        if let Some(value) = fields.get_mut(random).filter(|value| value.is_string()) {
            *value = "..".into();
        }
    }
    json.to_string()
}

#[tokio::test]
async fn a_session_is_told_as_typed_events() {
    let engine = engine();
    let session = paid(&engine).await;
    let events = all(&engine, session.id(), Cursor::START).await;
    let told: Vec<String> = events.iter().map(told).collect();
    insta::assert_snapshot!("events", told.join("\n"));
}

#[tokio::test]
async fn from_every_position_on_the_same_events_follow() {
    let engine = engine();
    let session = paid(&engine).await;
    let whole = all(&engine, session.id(), Cursor::START).await;
    for (k, event) in whole.iter().enumerate() {
        let rest = all(&engine, session.id(), event.cursor).await;
        assert_eq!(rest, whole[k + 1..], "after {}", event.cursor);
        let typed: Cursor = event.cursor.to_string().parse().unwrap();
        assert_eq!(typed, event.cursor);
    }
    // All pages together are the whole list.
    let mut teller = Teller::new(Arc::new(Stored::plain(&engine, session.id())));
    let (mut pages, mut at) = (Vec::new(), Cursor::START);
    loop {
        let page = teller.after(at, 3).await.unwrap();
        let Some(last) = page.last() else { break };
        at = last.cursor;
        pages.extend(page);
    }
    assert_eq!(pages, whole);
}

#[tokio::test]
async fn a_line_that_arrives_has_the_events_of_a_line_that_was_read() {
    let engine = engine();
    let session = paid(&engine).await;
    let whole = all(&engine, session.id(), Cursor::START).await;
    let reader = Arc::new(Stored::plain(&engine, session.id()));
    let mut teller = Teller::new(reader.clone());
    let mut live = Vec::new();
    for line in engine.feed(session.id(), Line::NONE).lines().await.unwrap() {
        let line = reader.arrived(line).await.unwrap();
        live.extend(teller.line(&line).await.unwrap());
    }
    assert_eq!(live, whole);
}

#[tokio::test]
async fn a_masked_reader_shows_no_secret_and_an_erased_text_is_marked() {
    let engine = engine();
    let session = paid(&engine).await;
    let heard = |events: &[Event]| {
        let events = events.iter().map(Event::to_json);
        let mut heard = events.filter(|event| event["event"] == "heard");
        heard.next().unwrap()["text"].clone()
    };
    let plain = all(&engine, session.id(), Cursor::START).await;
    assert!(heard(&plain).to_string().contains(SECRET), "{plain:?}");
    let mut teller = Teller::new(Arc::new(Stored::masked(&engine, session.id())));
    let masked = teller.after(Cursor::START, usize::MAX).await.unwrap();
    assert_eq!(heard(&masked), "Pay fifty, my pin is (secret).");
    let shown: Vec<Json> = masked.iter().map(Event::to_json).collect();
    assert!(!Json::from(shown).to_string().contains(SECRET));
    assert_eq!(plain.len(), masked.len());
    // A secret may stream in several pieces, so a masked reader gets none.
    let piece = || FeedItem::Delta {
        effect: Id::MAIN,
        attempt: 1,
        agent: "1.0".parse().unwrap(),
        branch: Id::MAIN,
        delta: Delta::Text(SECRET.to_owned()),
    };
    assert_eq!(teller.piece(piece(), Cursor::START).await.unwrap(), None);
    let mut plainly = Teller::new(Arc::new(Stored::plain(&engine, session.id())));
    let told = plainly.piece(piece(), Cursor::START).await.unwrap();
    assert!(told.unwrap().is_provisional());

    let id = session.id().to_owned();
    let line = plain
        .iter()
        .find(|event| event.to_json()["event"] == "heard")
        .and_then(|event| event.line)
        .unwrap();
    session.stop().await;
    engine.erase(&id, What::Line(line), true).await.unwrap();
    let erased = all(&engine, &id, Cursor::START).await;
    assert_eq!(heard(&erased), "[erased]");
    assert_eq!(plain.len(), erased.len());
}

/// A reader that records which pages were read, and that may read no definition.
struct Watched {
    reader: Stored,
    fault: Option<fn() -> EngineError>,
    pages: Mutex<Vec<(Line, usize)>>,
}

impl Bodies for Watched {
    fn parts(&self, body: Body) -> Parts {
        self.reader.parts(body)
    }
}

impl History for Watched {
    fn pushes(&self, agent: Id, line: Line) -> (Arc<[Interaction]>, Line) {
        self.reader.pushes(agent, line)
    }
    fn hooked(&self, effect: Id) -> Vec<Hooked> {
        self.reader.hooked(effect)
    }
}

impl Reader for Watched {
    fn lines(&self, after: Line, most: usize) -> Boxed<'_, Result<Vec<Arc<LogLine>>, EngineError>> {
        self.pages.lock().unwrap().push((after, most));
        self.reader.lines(after, most)
    }
    fn line(&self, n: Line) -> Boxed<'_, Result<Arc<LogLine>, EngineError>> {
        self.reader.line(n)
    }
    fn texts(&self, line: &LogLine) -> Vec<Parts> {
        self.reader.texts(line)
    }
    fn arrived(&self, line: Arc<LogLine>) -> Boxed<'_, Result<Arc<LogLine>, EngineError>> {
        self.reader.arrived(line)
    }
    fn network<'a>(&'a self, binding: &'a Binding) -> Boxed<'a, Result<Arc<Network>, EngineError>> {
        match self.fault {
            Some(fault) => Box::pin(async move { Err(fault()) }),
            None => self.reader.network(binding),
        }
    }
    fn is_masked(&self) -> bool {
        self.reader.is_masked()
    }
    fn known(&self) -> Option<Arc<Known>> {
        self.reader.known()
    }
    fn fault(&self) -> Option<EngineError> {
        self.reader.fault()
    }
}

#[tokio::test]
async fn a_page_of_events_reads_no_line_before_it_but_those_that_it_names() {
    let engine = engine();
    let session = paid(&engine).await;
    let whole = all(&engine, session.id(), Cursor::START).await;
    let from = whole[whole.len() - 5].cursor;
    let reader = Arc::new(Watched {
        reader: Stored::plain(&engine, session.id()),
        fault: None,
        pages: Mutex::default(),
    });
    let mut teller = Teller::new(reader.clone());
    let page = teller.after(from, 2).await.unwrap();
    assert_eq!(page[..2], whole[whole.len() - 4..whole.len() - 2]);
    let pages = reader.pages.lock().unwrap().clone();
    assert!(!pages.is_empty());
    for (after, most) in pages {
        assert!(after >= from.resume() && most <= 2, "{after} {most}");
    }
}

#[tokio::test]
async fn views_do_without_a_definition_that_fits_no_more_but_report_errors_of_the_store() {
    let engine = engine();
    let session = paid(&engine).await;
    let bound = async |fault: fn() -> EngineError| {
        let reader = Watched {
            reader: Stored::plain(&engine, session.id()),
            fault: Some(fault),
            pages: Mutex::default(),
        };
        let log = Log::read(&reader).await.unwrap();
        log.bound(&reader).await.map(|bound| bound.len())
    };
    let unfit = || EngineError::Definition {
        session: "x".into(),
        why: "it names a key of an old version".to_owned(),
    };
    assert_eq!(bound(unfit).await.unwrap(), 0);
    let lost = || EngineError::Store(StoreError::NoSession("x".into()));
    let error = bound(lost).await.unwrap_err();
    assert!(matches!(error, EngineError::Store(_)), "{error}");
}
