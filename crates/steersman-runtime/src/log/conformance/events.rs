//! Events that name no session: the waits that they find, and the box.

use super::{Place, claimed, new, open, row, rows};
use crate::Boxed;
use crate::store::{
    Batch, BoxedEvent, Claim, InboxMessage, NewSession, Scope, Store, StoreError, WaitChange,
};
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Line, Time};

pub(super) fn event(id: &str, fields: &str) -> BoxedEvent {
    BoxedEvent {
        id: id.into(),
        scope: Scope::default(),
        network: "desk".into(),
        event: "paid".into(),
        message: id.as_bytes().into(),
        fields: fields.into(),
        at: Time(10),
        until: Time(100),
    }
}

/// Makes a session whose first line waits for the event `paid` with these fields.
async fn waiting(store: &Arc<dyn Store>, session: NewSession, fields: &str) -> Claim {
    let id = session.id.clone();
    store.create(session).await.expect("made");
    let claim = claimed(store, &id).await;
    let batch = Batch {
        waits: vec![WaitChange {
            effect: Id::new(Line(1), 0),
            open: vec![("paid".into(), fields.into())],
        }],
        ..rows(vec![row(1, b"x")])
    };
    store.append(&claim, batch).await.expect("written");
    claim
}

/// An event reaches the sessions of its tenant and subject only, and its id is accepted once in each tenant.
pub(super) async fn tenants_have_boxes_of_their_own(place: &impl Place) {
    let store = open(place);
    let scope = |tenant: &str, subject: Option<&str>| Scope {
        tenant: tenant.into(),
        subject: subject.map(Into::into),
    };
    let (one, ada, two) = (
        scope("one", None),
        scope("one", Some("ada")),
        scope("two", None),
    );
    let of = |id: &str, scope: &Scope| BoxedEvent {
        scope: scope.clone(),
        ..event(id, r#"{"order":7}"#)
    };
    let mut claims = Vec::new();
    for (id, scope) in [("a", &one), ("b", &ada), ("c", &two)] {
        let session = NewSession {
            scope: scope.clone(),
            ..new(id)
        };
        claims.push(waiting(&store, session, r#"{"order":7}"#).await);
    }
    for scope in [&one, &two] {
        assert!(store.deliver_event(of("e1", scope)).await.expect("new"));
        assert!(!store.deliver_event(of("e1", scope)).await.expect("known"));
    }
    assert!(store.deliver_event(of("e2", &ada)).await.expect("new"));
    let nobody = scope("one", Some("bob"));
    for scope in [&nobody, &Scope::default()] {
        assert!(store.deliver_event(of("e3", scope)).await.expect("new"));
    }
    for (session, ids) in [
        ("a", vec!["e1"]),
        ("b", vec!["e1", "e2"]),
        ("c", vec!["e1"]),
    ] {
        let inbox = store.inbox(session).await.expect("read").1;
        let there: Vec<&str> = inbox.iter().map(|message| &*message.id).collect();
        assert_eq!(there, ids, "{session}");
    }
    let boxed = async |of: &Scope| {
        let found = store.boxed_events(of, "desk", "paid", "{}").await;
        found.expect("read").len()
    };
    assert_eq!(boxed(&Scope::default()).await, 1);
    assert_eq!(boxed(&nobody).await, 1);
    assert_eq!((boxed(&one).await, boxed(&ada).await), (0, 0));
    let shown = async |of: Option<&Scope>| {
        let found = store.event_box(of, Time(50), 9).await;
        found.expect("read").len()
    };
    assert_eq!(shown(None).await, 2);
    assert_eq!(shown(Some(&one)).await, 1, "of all its subjects");
    assert_eq!(shown(Some(&ada)).await, 0);
    // Only the tenant's own event is taken.
    let taken = Batch {
        events_taken: vec!["e3".into()],
        ..Batch::default()
    };
    store.append(&claims[0], taken).await.expect("written");
    let left = store.event_box(None, Time(50), 9).await.expect("read");
    assert_eq!(left, [of("e3", &Scope::default())]);
}

/// An event whose id a waiting session knows from another message is refused, and no session gets it.
pub(super) async fn events_are_not_taken_for_other_messages(place: &impl Place) {
    let store = open(place);
    let mut claims = Vec::new();
    for id in ["a", "b"] {
        claims.push(waiting(&store, new(id), r#"{"order":7}"#).await);
    }
    let paid = event("e1", r#"{"order":7}"#);
    let message = |bytes: &[u8]| InboxMessage {
        id: paid.id.clone(),
        at: paid.at,
        bytes: bytes.into(),
    };
    let other = message(b"other");
    assert!(store.deliver("b", other.clone()).await.expect("new"));
    for _ in 0..2 {
        let refused = store.deliver_event(paid.clone()).await;
        assert!(
            matches!(&refused, Err(StoreError::Repeated(id)) if *id == paid.id),
            "{refused:?}"
        );
    }
    assert!(store.inbox("a").await.expect("read").1.is_empty());
    assert_eq!(store.inbox("b").await.expect("read").1, [other]);
    // A session that knows the same message does not hold the event back.
    let paid = event("e2", r#"{"order":7}"#);
    let same = InboxMessage {
        id: paid.id.clone(),
        at: paid.at,
        bytes: paid.message.clone(),
    };
    assert!(store.deliver("b", same.clone()).await.expect("new"));
    assert!(store.deliver_event(paid).await.expect("new"));
    assert_eq!(store.inbox("a").await.expect("read").1, [same]);
    assert_eq!(store.inbox("b").await.expect("read").1.len(), 2);
}

/// Reads change nothing, whatever time the reader gives. An event from a clock that is far ahead does not make the store forget
/// the ids that it remembers.
pub(super) async fn no_clock_changes_what_is_kept(place: &impl Place) {
    let store = open(place);
    let short = BoxedEvent {
        until: Time(20),
        ..event("e1", r#"{"order":1}"#)
    };
    let long = event("e2", r#"{"order":2}"#);
    for event in [&short, &long] {
        assert!(store.deliver_event(event.clone()).await.expect("new"));
    }
    for (now, listed) in [(i64::MAX, 0), (50, 1), (0, 2)] {
        let seen = store.event_box(None, Time(now), 9).await.expect("read");
        assert_eq!(seen.len(), listed, "at {now}");
    }
    let ahead = BoxedEvent {
        at: Time(1 << 60),
        until: Time(1 << 61),
        ..event("e3", r#"{"order":3}"#)
    };
    assert!(store.deliver_event(ahead).await.expect("new"));
    assert!(!store.deliver_event(long).await.expect("remembered"));
}

pub(super) async fn events_find_their_waits(place: &impl Place) {
    let store = open(place);
    let effect = Id::new(Line(1), 0);
    let mut claims = Vec::new();
    for (id, key) in [
        // 7 and 7.0 are the same value.
        ("a", r#"{"order":7.0}"#),
        ("b", r#"{"order":8}"#),
        ("c", r#"{"from":"x","order":7}"#),
        ("d", "{}"),
    ] {
        claims.push(waiting(&store, new(id), key).await);
    }
    let has = |id: &'static str, session: &'static str| -> Boxed<'_, bool> {
        let store = &store;
        Box::pin(async move {
            let inbox = store.inbox(session).await.expect("read").1;
            inbox.iter().any(|m| &*m.id == id)
        })
    };
    let seven = event("e7", r#"{"order":7,"cents":500}"#);
    assert!(store.deliver_event(seven.clone()).await.expect("new"));
    assert!(!store.deliver_event(seven).await.expect("remembered"));
    for (session, met) in [("a", true), ("b", false), ("c", false), ("d", true)] {
        assert_eq!(has("e7", session).await, met, "{session}");
    }
    let full = event("e8", r#"{"order":7,"from":"x"}"#);
    assert!(store.deliver_event(full).await.expect("new"));
    for (session, met) in [("a", true), ("b", false), ("c", true), ("d", true)] {
        assert_eq!(has("e8", session).await, met, "{session}");
    }
    // The waits of a, c and d close. Another event name, network or value meets no wait.
    for claim in [&claims[0], &claims[2], &claims[3]] {
        let closed = Batch {
            waits: vec![WaitChange {
                effect,
                open: Vec::new(),
            }],
            ..rows(vec![row(2, b"x")])
        };
        store.append(claim, closed).await.expect("written");
    }
    let boxed = event("e9", r#"{"order":7,"cents":1}"#);
    let elsewhere = BoxedEvent {
        network: "other".into(),
        ..event("e10", r#"{"order":8}"#)
    };
    let soon_over = BoxedEvent {
        until: Time(20),
        ..event("e11", r#"{"order":"8"}"#)
    };
    for event in [&boxed, &elsewhere, &soon_over] {
        assert!(store.deliver_event(event.clone()).await.expect("new"));
    }
    assert!(!has("e10", "b").await && !has("e11", "b").await);
    let found = store
        .boxed_events(&Scope::default(), "desk", "paid", r#"{"order":7}"#)
        .await;
    assert_eq!(found.expect("read"), std::slice::from_ref(&boxed));
    let found = store
        .boxed_events(&Scope::default(), "desk", "paid", "{}")
        .await
        .expect("read");
    assert_eq!(found, [boxed.clone(), soon_over]);
    let none = store
        .boxed_events(&Scope::default(), "desk", "sent", "{}")
        .await
        .expect("read");
    assert_eq!(none, []);
    let kept = store.event_box(None, Time(50), 9).await.expect("read");
    assert_eq!(
        kept,
        [boxed.clone(), elsewhere.clone()],
        "events past their time are left out"
    );
    let taken = Batch {
        events_taken: vec!["e9".into()],
        ..rows(vec![row(3, b"x")])
    };
    store.append(&claims[0], taken).await.expect("written");
    assert_eq!(
        store.event_box(None, Time(50), 9).await.expect("read"),
        [elsewhere]
    );
}
