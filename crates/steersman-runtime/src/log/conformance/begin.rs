//! Creation of sessions.

use super::{Place, all, claimed, event, message, new, open, own};
use crate::store::{
    Batch, BoxedEvent, InboxMessage, MAX_VALUE, NewSession, SaidHash, Scope, StoreError,
};
use steersman_machine::stored::ids::Line;

pub(super) async fn sessions_are_made_once(place: &impl Place) {
    let store = open(place);
    store.create(new("abcd")).await.expect("it is made");
    let again = store.create(new("abcd")).await;
    assert!(matches!(again, Err(StoreError::Conflict(id)) if &*id == "abcd"));
    let none = |e: StoreError| assert!(matches!(e, StoreError::NoSession(id) if &*id == "none"));
    none(own(&store, "none").await.err().expect("there is none"));
    none(store.head("none").await.expect_err("there is none"));
    none(store.inbox("none").await.expect_err("there is none"));
    none(store.row("none", Line(1)).await.expect_err("there is none"));
    none(store.row_now("none", Line(1)).expect_err("there is none"));
    let to_none = store.deliver("none", message("m1", 0)).await;
    none(to_none.expect_err("there is none"));
    assert_eq!(store.head("abcd").await.expect("empty"), Line::NONE);
    assert_eq!(all(&store, "abcd").await, []);
}

/// A session never exists without its first message, and a second creation changes nothing of the first.
pub(super) async fn sessions_begin_with_their_message(place: &impl Place) {
    let store = open(place);
    let begun = |id: &str, key: &str, first: &str| NewSession {
        key: Some(key.into()),
        first: Some(message(first, 0)),
        said: None,
        ..new(id)
    };
    store.create(begun("a", "k1", "m1")).await.expect("made");
    drop(store);
    let store = open(place);
    let first = async |id: &'static str| store.inbox(id).await.expect("read").1;
    assert_eq!(first("a").await, [message("m1", 0)]);
    assert_eq!(store.inbox("a").await.expect("read").0, 1);
    let again = store.deliver("a", message("m1", 0)).await;
    assert!(!again.expect("read"), "it was accepted with the session");
    for rival in [begun("a", "k2", "m2"), begun("b", "k1", "m2")] {
        let refused = store.create(rival).await;
        assert!(
            matches!(&refused, Err(StoreError::Conflict(id)) if &**id == "a"),
            "{refused:?}"
        );
    }
    assert_eq!(first("a").await, [message("m1", 0)]);
    let large = InboxMessage {
        bytes: vec![0; MAX_VALUE + 1].into(),
        ..message("m3", 0)
    };
    let large = NewSession {
        first: Some(large),
        said: None,
        ..new("c")
    };
    let refused = store.create(large).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })));
    for id in ["b", "c"] {
        let none = store.inbox(id).await;
        assert!(matches!(none, Err(StoreError::NoSession(_))), "{none:?}");
    }
    let elsewhere = NewSession {
        network: "bank".into(),
        ..begun("b", "k1", "m1")
    };
    store.create(elsewhere).await.expect("of another network");
    assert_eq!(first("b").await, [message("m1", 0)]);
}

/// A message under a known id is a repetition or a different message; the store says which, even after the first was taken.
pub(super) async fn an_id_stands_for_what_came_with_it(place: &impl Place) {
    let store = open(place);
    let begun = NewSession {
        first: Some(message("m1", 0)),
        said: Some(SaidHash::of("an event", b"an event")),
        ..new("a")
    };
    store.create(begun).await.expect("made");
    let says = |id: &str, what: &[u8]| InboxMessage {
        bytes: what.into(),
        ..message(id, 1)
    };
    let refused = |delivered: Result<bool, StoreError>, id: &str| {
        let repeated = matches!(&delivered, Err(StoreError::Repeated(of)) if **of == *id);
        assert!(repeated, "{delivered:?}");
    };
    // `said` gave the first message the hash of this event.
    assert!(
        !store
            .deliver("a", says("m1", b"an event"))
            .await
            .expect("known")
    );
    refused(store.deliver("a", message("m1", 1)).await, "m1");
    assert!(store.deliver("a", says("m2", b"one")).await.expect("new"));
    let claim = own(&store, "a").await.expect("free");
    let taken = Batch {
        consumed: vec!["m1".into(), "m2".into(), "elsewhere".into()],
        ..Batch::default()
    };
    store.append(&claim, taken).await.expect("written");
    drop((claim, store));
    let store = open(place);
    assert!(!store.deliver("a", says("m2", b"one")).await.expect("known"));
    refused(store.deliver("a", says("m2", b"two")).await, "m2");
    assert!(
        !store
            .deliver("a", says("m1", b"an event"))
            .await
            .expect("known")
    );
    // An id without known content is not refused.
    let elsewhere = store.deliver("a", says("elsewhere", b"one")).await;
    assert!(!elsewhere.expect("known"));
    // The same rules hold in the box, and for waiting sessions.
    let other = BoxedEvent {
        message: (*b"other").into(),
        ..event("e1", "{}")
    };
    drop(claimed(&store, "b").await);
    assert!(store.deliver_event(event("e1", "{}")).await.expect("new"));
    assert!(!store.deliver_event(event("e1", "{}")).await.expect("known"));
    refused(store.deliver_event(other).await, "e1");
    let boxed = store
        .boxed_events(&Scope::default(), "desk", "paid", "{}")
        .await;
    assert_eq!(boxed.expect("read"), [event("e1", "{}")]);
}
