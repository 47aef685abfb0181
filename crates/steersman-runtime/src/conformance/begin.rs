//! How sessions come to be.

use super::{Place, all, message, new, open};
use crate::store::{InboxMessage, MAX_VALUE, NewSession, StoreError};
use steersman_machine::ids::Line;

pub(super) async fn sessions_are_made_once(place: &impl Place) {
    let store = open(place);
    store.create(new("abcd")).await.expect("it is made");
    let again = store.create(new("abcd")).await;
    assert!(matches!(again, Err(StoreError::Conflict(id)) if &*id == "abcd"));
    let none = |e: StoreError| assert!(matches!(e, StoreError::NoSession(id) if &*id == "none"));
    none(store.claim("none").await.err().expect("there is none"));
    none(store.head("none").await.expect_err("there is none"));
    none(store.inbox("none").await.expect_err("there is none"));
    none(store.row("none", Line(1)).await.expect_err("there is none"));
    none(store.row_now("none", Line(1)).expect_err("there is none"));
    let to_none = store.deliver("none", message("m1", 0)).await;
    none(to_none.expect_err("there is none"));
    assert_eq!(store.head("abcd").await.expect("empty"), Line::NONE);
    assert_eq!(all(&store, "abcd").await, []);
}

/// A session is never there without what begins it, and nothing of a second one comes into a first.
pub(super) async fn sessions_begin_with_their_message(place: &impl Place) {
    let store = open(place);
    let seen = store.inbox_version().await.expect("read");
    let begun = |id: &str, key: &str, first: &str| NewSession {
        key: Some(key.into()),
        first: Some(message(first, 0)),
        ..new(id)
    };
    store.create(begun("a", "k1", "m1")).await.expect("made");
    drop(store);
    let store = open(place);
    let first = async |id: &'static str| store.inbox(id).await.expect("read");
    assert_eq!(first("a").await, [message("m1", 0)]);
    assert!(store.inbox_version().await.expect("read") > seen);
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
