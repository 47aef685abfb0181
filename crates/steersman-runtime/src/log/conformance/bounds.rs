//! Bounds of inputs: at the bound everything is taken, above it nothing is changed, and the sender gets an error.

use super::{Place, claimed, event, message, new, open, own, rows};
use crate::inbox::{Message, Wanted};
use crate::store::bounds::{BOXED, ID, SESSION_ID, WAITING, WAITING_ORDERS};
use crate::store::{
    Batch, BoxedEvent, InboxMessage, NewSession, SessionQuery, StoreError, WaitChange,
};
use steersman_machine::stored::ids::{Id, Line, Time};

fn refused<T: std::fmt::Debug>(done: Result<T, StoreError>, what: &str) {
    match done {
        Err(error @ StoreError::BadId { .. }) => {
            let message = error.to_string();
            assert!(
                message.len() < 500 && !message.contains(char::is_control),
                "{message:?}"
            );
        }
        other => panic!("{what:?}: {other:?}"),
    }
}

fn full<T: std::fmt::Debug>(done: Result<T, StoreError>, most: u64) {
    let is_full = matches!(&done, Err(StoreError::Full { most: bound, .. }) if *bound == most);
    assert!(is_full, "{done:?}");
}

/// Session ids are restricted so that an id is safe as a part of any path.
pub(super) async fn ids_have_bounds(place: &impl Place) {
    let store = open(place);
    let longest = "s".repeat(SESSION_ID);
    for id in ["a", "0", "a-b_c.d", &longest] {
        store.create(new(id)).await.expect(id);
        drop(own(&store, id).await.expect(id));
    }
    let longer = "s".repeat(SESSION_ID + 1);
    let bad = [
        "",
        ".",
        "..",
        "../x",
        "/x",
        "a/b",
        "a\\b",
        "a\0",
        "a\nb",
        "\u{1b}[2J",
        "-a",
        "a.",
        "a b",
        "a*",
        "$a",
        "a:b",
        "a@1",
        "a=b",
        "A",
        "ä",
        &longer,
    ];
    for id in bad {
        refused(store.create(new(id)).await, id);
    }
    let long = "k".repeat(ID);
    let longer = "k".repeat(ID + 1);
    let keyed = |id: &str, key: &str| NewSession {
        key: Some(key.into()),
        ..new(id)
    };
    store.create(keyed("keyed", &long)).await.expect("taken");
    for bad in ["", &longer] {
        refused(store.create(keyed("worse", bad)).await, bad);
        let begun = NewSession {
            first: Some(message(bad, 0)),
            ..new("worse")
        };
        refused(store.create(begun).await, bad);
        refused(store.deliver("a", message(bad, 0)).await, bad);
        refused(store.deliver_event(event(bad, "{}")).await, bad);
    }
    assert!(store.deliver("a", message(&long, 0)).await.expect("taken"));
    assert!(
        store
            .deliver_event(event(&long, "{}"))
            .await
            .expect("taken")
    );
    assert_eq!(store.inbox("a").await.expect("read").1, [message(&long, 0)]);
    let listed = store.sessions(&SessionQuery::default()).await;
    assert_eq!(listed.expect("read").len(), 5, "no other was made");
}

/// An inbox that is full of messages takes no more of them, but still takes decisions of people.
pub(super) async fn inboxes_have_bounds(place: &impl Place) {
    let store = open(place);
    let claim = claimed(&store, "a").await;
    store.create(new("b")).await.expect("made");
    let waits = Batch {
        waits: vec![WaitChange {
            effect: Id::new(Line(1), 0),
            open: vec![("paid".into(), "{}".into())],
        }],
        ..rows(vec![super::row(1, b"x")])
    };
    store.append(&claim, waits).await.expect("written");
    let said = |n: u64| message(&format!("m{n}"), 0);
    let order = |n: u64| Message::from(Wanted::Pause(true)).encode(format!("o{n}").into(), Time(0));
    // All are queued before the first is awaited.
    let sent: Vec<_> = (0..WAITING).map(|n| store.deliver("a", said(n))).collect();
    for sent in sent {
        assert!(sent.await.expect("there is room"));
    }
    full(store.deliver("a", said(WAITING)).await, WAITING);
    assert!(!store.deliver("a", said(0)).await.expect("it is known"));
    full(store.deliver_event(event("e1", "{}")).await, WAITING);
    assert!(
        store
            .event_box(None, Time(0), 9)
            .await
            .expect("read")
            .is_empty()
    );
    assert!(store.deliver("b", said(0)).await.expect("another has room"));
    let sent: Vec<_> = (WAITING..WAITING_ORDERS)
        .map(|n| store.deliver("a", order(n)))
        .collect();
    for sent in sent {
        assert!(sent.await.expect("there is room for orders"));
    }
    full(
        store.deliver("a", order(WAITING_ORDERS)).await,
        WAITING_ORDERS,
    );
    let inbox = store.inbox("a").await.expect("read").1;
    assert_eq!(inbox.len() as u64, WAITING_ORDERS);
    let taken = |from: u64, to: u64| Batch {
        consumed: inbox[from as usize..to as usize]
            .iter()
            .map(|m: &InboxMessage| m.id.clone())
            .collect(),
        ..rows(vec![super::row(2 + from, b"x")])
    };
    let gone = WAITING_ORDERS - WAITING + 1;
    store.append(&claim, taken(0, gone)).await.expect("written");
    // A refused message was never accepted: it is new.
    assert!(
        store
            .deliver("a", said(WAITING))
            .await
            .expect("there is room")
    );
    full(store.deliver_event(event("e1", "{}")).await, WAITING);
    store
        .append(&claim, taken(gone, gone + 1))
        .await
        .expect("written");
    assert!(
        store
            .deliver_event(event("e1", "{}"))
            .await
            .expect("there is room")
    );
}

pub(super) async fn the_box_has_a_bound(place: &impl Place) {
    let store = open(place);
    let in_box = |n: u64| BoxedEvent {
        until: Time(if n < 2 { 20 } else { 100 }),
        ..event(&format!("e{n}"), "{}")
    };
    let sent: Vec<_> = (0..BOXED).map(|n| store.deliver_event(in_box(n))).collect();
    for sent in sent {
        assert!(sent.await.expect("there is room"));
    }
    full(store.deliver_event(in_box(BOXED)).await, BOXED);
    assert!(!store.deliver_event(in_box(5)).await.expect("it is known"));
    // Events that are past their time make room.
    let later = |n: u64| BoxedEvent {
        at: Time(30),
        ..in_box(n)
    };
    for n in [BOXED, BOXED + 1] {
        assert!(store.deliver_event(later(n)).await.expect("there is room"));
    }
    full(store.deliver_event(later(BOXED + 2)).await, BOXED);
    let boxed = store.event_box(None, Time(30), usize::MAX >> 1).await;
    assert_eq!(boxed.expect("read").len() as u64, BOXED);
}
