//! Memories of agents over sessions: saved once, found by scope, rated, forgotten, expired.

use super::{Place, open};
use crate::store::{MAX_VALUE, MemoryQuery, NewMemory, Rated, Scope, Store, StoreError};
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Line, Time};

fn new(key: &str, scope: &str, content: &[u8], at: i64) -> NewMemory {
    NewMemory {
        key: key.into(),
        part: Scope::default(),
        scope: scope.into(),
        name: format!("name of {key}").into(),
        tags: vec!["a, \"b\"".into(), "ü".into()],
        media: "text/plain".into(),
        content: content.into(),
        session: Some("s1".into()),
        effect: Some(Id::new(Line(7), 2)),
        network: "desk".into(),
        by: "clerk".into(),
        at: Time(at),
        until: None,
        replaces: Vec::new(),
    }
}

async fn ids(store: &Arc<dyn Store>, query: MemoryQuery) -> Vec<u64> {
    let found = store.memories(query).await.expect("they are listed");
    found.iter().map(|memory| memory.id).collect()
}

fn of(scope: &str) -> MemoryQuery {
    MemoryQuery {
        scope: Some(scope.into()),
        ..MemoryQuery::default()
    }
}

/// A key names its first memory: another memory with the same key is not saved. A saved memory is still there after reopening.
pub(super) async fn memories_are_saved_once(place: &impl Place) {
    let store = open(place);
    let first = store
        .remember(new("k1", "a", b"one", 10))
        .await
        .expect("the store does it");
    let again = store
        .remember(new("k1", "b", b"other", 11))
        .await
        .expect("the store does it");
    assert_eq!(first, again, "a key is accepted once");
    let second = store
        .remember(new("k2", "a", b"two", 12))
        .await
        .expect("the store does it");
    assert!(second > first, "numbers grow");
    assert!(
        ids(&store, of("b")).await.is_empty(),
        "nothing leaks into another scope"
    );
    assert_eq!(
        ids(&store, of("a")).await,
        [second, first],
        "the newest first"
    );
    drop(store);

    let store = open(place);
    let found = store.memories(of("a")).await.expect("the store does it");
    let memory = &found[1];
    let wanted = new("k1", "a", b"one", 10);
    assert_eq!((memory.id, &memory.scope), (first, &wanted.scope));
    assert_eq!((&memory.name, &memory.tags), (&wanted.name, &wanted.tags));
    assert_eq!(
        (&memory.session, memory.effect),
        (&wanted.session, wanted.effect)
    );
    assert_eq!((memory.at, memory.len, memory.until), (wanted.at, 3, None));
    let content = store
        .blob(&memory.hash)
        .await
        .expect("the store does it")
        .expect("it is a blob");
    assert_eq!(&*content, b"one");
    assert_eq!(
        store
            .remember(new("k1", "a", b"one", 13))
            .await
            .expect("the store does it"),
        first
    );
    assert_eq!(ids(&store, MemoryQuery::default()).await.len(), 2);

    let mut large = new("k3", "a", &vec![7; 3 * MAX_VALUE], 14);
    let id = store
        .remember(large.clone())
        .await
        .expect("the store does it");
    let query = MemoryQuery {
        id: Some(id),
        ..MemoryQuery::default()
    };
    let found = store.memories(query).await.expect("the store does it");
    let content = store
        .blob(&found[0].hash)
        .await
        .expect("the store does it")
        .expect("a content may be of any size");
    assert_eq!(content, large.content);
    large.key = "k4".into();
    large.name = "x".repeat(MAX_VALUE).into();
    let refused = store.remember(large).await;
    assert!(
        matches!(refused, Err(StoreError::TooLarge { .. })),
        "{refused:?}"
    );
}

/// A key is accepted once in each tenant, and a query of a part finds nothing of another one.
pub(super) async fn tenants_are_apart(place: &impl Place) {
    let store = open(place);
    let part = |tenant: &str, subject: Option<&str>| Scope {
        tenant: tenant.into(),
        subject: subject.map(Into::into),
    };
    let (one, ada, two) = (
        part("one", None),
        part("one", Some("ada")),
        part("two", None),
    );
    let mut saved = Vec::new();
    for (key, part) in [("k", &one), ("k", &two), ("j", &ada), ("k", &ada)] {
        let new = NewMemory {
            part: part.clone(),
            ..new(key, "a", b"x", saved.len() as i64)
        };
        saved.push(store.remember(new).await.expect("saved"));
    }
    assert_eq!(saved[3], saved[0], "it is known in the tenant");
    for (part, found) in [
        (None, vec![saved[2], saved[1], saved[0]]),
        (Some(&one), vec![saved[2], saved[0]]),
        (Some(&ada), vec![saved[2]]),
        (Some(&two), vec![saved[1]]),
        (Some(&Scope::default()), vec![]),
    ] {
        let query = MemoryQuery {
            part: part.cloned(),
            ..of("a")
        };
        assert_eq!(ids(&store, query).await, found, "{part:?}");
    }
    let all = store.memories(of("a")).await.expect("read");
    assert_eq!((&all[0].part, &all[2].part), (&ada, &one));
}

/// Scopes are compared byte by byte, regardless of their characters.
pub(super) async fn scopes_are_apart(place: &impl Place) {
    let store = open(place);
    let scopes = [
        "a",
        "A",
        "a/b",
        "a%",
        "a_",
        "a'; DROP TABLE memory; --",
        "ä",
        "a\u{308}",
    ];
    let mut all = Vec::new();
    for (k, scope) in scopes.iter().enumerate() {
        let saved = store
            .remember(new(&format!("k{k}"), scope, b"x", k as i64))
            .await;
        all.push(saved.expect("the store does it"));
    }
    for (scope, id) in scopes.iter().zip(&all) {
        assert_eq!(ids(&store, of(scope)).await, [*id], "scope {scope}");
    }
    let query = MemoryQuery {
        session: Some("s2".into()),
        ..MemoryQuery::default()
    };
    assert!(
        ids(&store, query).await.is_empty(),
        "no other session saved any"
    );
}

/// People and agents rate separately; a forgotten memory is gone with its ratings, and its number is never used again.
pub(super) async fn memories_are_rated_and_forgotten(place: &impl Place) {
    let store = open(place);
    let id = store
        .remember(new("k1", "a", b"one", 10))
        .await
        .expect("the store does it");
    let rated = |rating, by: &str| Rated {
        rating,
        reason: Some("because".into()),
        by: by.into(),
    };
    assert!(
        !store
            .rate_memory(id + 1, rated(3, "ann"), true)
            .await
            .expect("the store does it")
    );
    assert!(
        store
            .rate_memory(id, rated(2, "ann"), true)
            .await
            .expect("the store does it")
    );
    assert!(
        store
            .rate_memory(id, rated(5, "clerk"), false)
            .await
            .expect("the store does it")
    );
    assert!(
        store
            .rate_memory(id, rated(1, "ann"), true)
            .await
            .expect("the store does it")
    );
    let found = store.memories(of("a")).await.expect("the store does it");
    assert_eq!(
        found[0].rating(),
        Some(&rated(1, "ann")),
        "a person's counts"
    );
    assert_eq!(found[0].by_agents, Some(rated(5, "clerk")));
    assert_eq!(
        store
            .forget_memories(vec![id, id + 7])
            .await
            .expect("the store does it"),
        1
    );
    assert!(ids(&store, of("a")).await.is_empty());
    let next = store
        .remember(new("k1", "a", b"one", 11))
        .await
        .expect("the store does it");
    assert!(next > id, "no number is used again");
    let found = store.memories(of("a")).await.expect("the store does it");
    assert_eq!(
        found[0].rating(),
        None,
        "ratings are forgotten with the memory"
    );
}

/// An expired memory is not listed, and is dropped when the next one is saved, even if that has its key.
pub(super) async fn memories_are_kept_for_their_time(place: &impl Place) {
    let store = open(place);
    let until = |key: &str, until| NewMemory {
        until: Some(Time(until)),
        ..new(key, "a", key.as_bytes(), 10)
    };
    let short = store
        .remember(until("short", 20))
        .await
        .expect("the store does it");
    let long = store
        .remember(until("long", 40))
        .await
        .expect("the store does it");
    let at = |now| MemoryQuery {
        now: Time(now),
        ..of("a")
    };
    assert_eq!(ids(&store, at(20)).await, [long, short]);
    assert_eq!(ids(&store, at(21)).await, [long]);
    let new = store
        .remember(new("new", "a", b"new", 30))
        .await
        .expect("the store does it");
    assert_eq!(
        ids(&store, at(0)).await,
        [new, long],
        "expired memories are gone"
    );
    let again = NewMemory {
        at: Time(41),
        ..until("long", 60)
    };
    let again = store.remember(again).await.expect("the store does it");
    assert!(again > new, "its key is free");
    assert_eq!(ids(&store, at(41)).await, [again, new]);
}

/// A memory stands in the place of others until it is gone.
pub(super) async fn memories_stand_in_the_place_of_others(place: &impl Place) {
    let store = open(place);
    let mut first = Vec::new();
    for key in ["one", "two"] {
        let saved = store.remember(new(key, "a", key.as_bytes(), 10)).await;
        first.push(saved.expect("the store does it"));
    }
    let elsewhere = NewMemory {
        replaces: first.clone(),
        ..new("elsewhere", "b", b"both", 11)
    };
    let elsewhere = store.remember(elsewhere).await;
    elsewhere.expect("the store does it");
    let foreign = NewMemory {
        replaces: first.clone(),
        part: Scope {
            tenant: "foreign".into(),
            subject: None,
        },
        ..new("foreign", "a", b"both", 11)
    };
    let foreign = store.remember(foreign).await.expect("the store does it");
    let gone = store.forget_memories(vec![foreign]).await;
    gone.expect("the store does it");
    assert_eq!(
        ids(
            &store,
            MemoryQuery {
                current: true,
                ..of("a")
            }
        )
        .await,
        [first[1], first[0]],
        "another scope or tenant replaces nothing here"
    );
    let both = NewMemory {
        replaces: vec![first[0], first[1], 4_711],
        until: Some(Time(20)),
        ..new("both", "a", b"both", 11)
    };
    let both = store.remember(both).await.expect("the store does it");
    let at = |now, current| MemoryQuery {
        now: Time(now),
        current,
        ..of("a")
    };
    assert_eq!(ids(&store, at(12, true)).await, [both]);
    assert_eq!(ids(&store, at(12, false)).await, [both, first[1], first[0]]);
    let all = store.memories(at(12, false)).await;
    let all = all.expect("the store does it");
    let replaced: Vec<Option<u64>> = all.iter().map(|memory| memory.replaced).collect();
    assert_eq!(replaced, [None, Some(both), Some(both)]);
    assert_eq!(all[1].rating(), None, "it is no rating");
    // It is past its time, then it is forgotten.
    assert_eq!(ids(&store, at(21, true)).await, [first[1], first[0]]);
    let gone = store.forget_memories(vec![both]).await;
    assert_eq!(gone.expect("the store does it"), 1);
    assert_eq!(ids(&store, at(12, true)).await, [first[1], first[0]]);
}
