//! Events: the same of the past and as they happen, from every position on.

use crate::world::{SECRET, engine, paid};
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_machine::ids::Line;
use steersman_runtime::engine::Engine;
use steersman_runtime::erase::What;
use steersman_views::event::{Cursor, Event, Teller};
use steersman_views::reader::{Reader as _, Stored};

async fn all(engine: &Engine, id: &str, from: Cursor) -> Vec<Event> {
    let mut teller = Teller::new(Arc::new(Stored::plain(engine, id)));
    teller.after(from, usize::MAX).await.unwrap()
}

/// An event without what differs from run to run.
fn told(event: &Event) -> String {
    let mut json = serde_json::to_value(event).unwrap();
    let fields = json.as_object_mut().unwrap();
    fields.shift_remove("at");
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
    // Pages put together give the whole.
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
