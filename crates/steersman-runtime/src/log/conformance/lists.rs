//! Lists of sessions, and workers: which sessions they take, how they release them, and which hints they get.

use super::{Place, claimed, message, new, open, own, row, rows};
use crate::Boxed;
use crate::store::{
    Batch, Claim, IMMEDIATELY, Left, Needs, NewSession, NewWorker, Room, Scope, SessionQuery,
    SessionState, Store, StoreError, Taken, Trouble, WaitChange, Wake, Worker,
};
use futures::StreamExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use steersman_machine::stored::ids::{Id, Line, Time};

/// Longest time to wait for a hint of a store.
const SOON: Duration = Duration::from_secs(10);

async fn worker(store: &Arc<dyn Store>) -> Worker {
    let new = NewWorker {
        name: "worker".into(),
        build: "1".into(),
        ..NewWorker::default()
    };
    store.enroll(new).await.expect("enrolled")
}

fn room(now: i64) -> Room {
    Room {
        now: Time(now),
        sessions: 9,
        each: 2,
        waiting: BTreeMap::new(),
        can: Arc::new(|_| true),
    }
}

async fn take(store: &Arc<dyn Store>, by: &Worker, room: Room) -> Taken {
    store.take(by, room).await.expect("taken")
}

fn ids(taken: &Taken) -> Vec<&str> {
    taken.claims.iter().map(|claim| &*claim.session).collect()
}

/// Makes a session whose first message was read, and releases it.
async fn leaves(store: &Arc<dyn Store>, id: &str, wants: Option<i64>, place: Option<&str>) {
    let begun = NewSession {
        first: Some(message("m1", 0)),
        ..new(id)
    };
    let made = store.create(begun).await;
    assert!(matches!(made, Ok(()) | Err(StoreError::Conflict(_))));
    let claim = own(store, id).await.expect("nobody owns it");
    let left = Left {
        mail: claim.mail,
        wants: wants.map(Time),
        place: place.map(Into::into),
        trouble: None,
    };
    store.release(claim, left).await.expect("released");
}

fn nothing(claim: &Claim) -> Left {
    Left {
        mail: claim.mail,
        ..Left::default()
    }
}

pub(super) async fn lists_find_sessions(place: &impl Place) {
    let store = open(place);
    for (i, id) in ["ab1", "ab2", "cd"].into_iter().enumerate() {
        let session = NewSession {
            network: if id == "cd" { "bank" } else { "desk" }.into(),
            key: (id == "ab1").then(|| "order-7".into()),
            ..new(id)
        };
        store.create(session).await.expect("made");
        let claim = own(&store, id).await.expect("free");
        let batch = Batch {
            labels: vec![("nr".into(), Some(i.to_string().into()))],
            info: Some(SessionState {
                status: if i == 1 { "waits" } else { "answered" }.into(),
                updated: Time(100 - i as i64),
                ..SessionState::default()
            }),
            ..rows(vec![row(1, b"x")])
        };
        store.append(&claim, batch).await.expect("written");
    }
    let found = |query: SessionQuery| -> Boxed<'_, Vec<String>> {
        let store = &store;
        Box::pin(async move {
            let found = store.sessions(&query).await.expect("read");
            found.iter().map(|s| s.id.to_string()).collect()
        })
    };
    let any = SessionQuery::default;
    assert_eq!(found(any()).await, ["ab1", "ab2", "cd"], "newest first");
    let query = SessionQuery {
        prefix: Some("ab".into()),
        ..any()
    };
    assert_eq!(found(query).await, ["ab1", "ab2"]);
    let query = SessionQuery {
        prefix: Some("a%".into()),
        ..any()
    };
    assert!(found(query).await.is_empty(), "a prefix is not a pattern");
    let query = SessionQuery {
        network: Some("bank".into()),
        ..any()
    };
    assert_eq!(found(query).await, ["cd"]);
    let query = SessionQuery {
        key: Some("order-7".into()),
        ..any()
    };
    assert_eq!(found(query).await, ["ab1"]);
    let query = SessionQuery {
        label: Some(("nr".into(), "1".into())),
        ..any()
    };
    assert_eq!(found(query).await, ["ab2"]);
    let query = SessionQuery {
        status: vec!["waits".into(), "doubt".into()],
        ..any()
    };
    assert_eq!(found(query).await, ["ab2"]);
    let with_mail = || SessionQuery {
        inbox: true,
        ..any()
    };
    assert!(found(with_mail()).await.is_empty());
    let delivered = store.deliver("cd", message("m1", 0)).await;
    assert!(delivered.expect("it is there"));
    assert_eq!(found(with_mail()).await, ["cd"]);
    let query = SessionQuery {
        since: Some(Time(99)),
        ..any()
    };
    assert_eq!(found(query).await, ["ab1", "ab2"]);
    let query = SessionQuery {
        limit: Some(1),
        ..any()
    };
    assert_eq!(found(query).await, ["ab1"]);
    let claim = own(&store, "ab1").await.expect("free");
    let removed = Batch {
        labels: vec![("nr".into(), None)],
        ..rows(vec![])
    };
    store
        .append(&claim, removed)
        .await
        .expect("a batch without rows is written");
    let query = SessionQuery {
        label: Some(("nr".into(), "0".into())),
        ..any()
    };
    assert!(found(query).await.is_empty());
}

pub(super) async fn pages_follow_each_other(place: &impl Place) {
    let store = open(place);
    for (id, updated) in [("a", 20), ("b", 10), ("c", 20), ("d", 20), ("e", 30)] {
        let claim = claimed(&store, id).await;
        let state = SessionState {
            status: "answered".into(),
            updated: Time(updated),
            ..SessionState::default()
        };
        let batch = Batch {
            info: Some(state),
            ..rows(vec![row(1, b"x")])
        };
        store.append(&claim, batch).await.expect("written");
    }
    let mut query = SessionQuery {
        limit: Some(2),
        ..SessionQuery::default()
    };
    let mut seen = Vec::new();
    loop {
        let page = store.sessions(&query).await.expect("read");
        let Some(last) = page.last() else { break };
        query.after = Some((last.state.updated, last.id.clone()));
        seen.extend(page.into_iter().map(|info| info.id.to_string()));
    }
    assert_eq!(seen, ["e", "d", "c", "a", "b"]);
}

pub(super) async fn tenants_are_apart(place: &impl Place) {
    let store = open(place);
    let scope = |tenant: &str, subject: Option<&str>| Scope {
        tenant: tenant.into(),
        subject: subject.map(Into::into),
    };
    for (id, of) in [
        ("a", scope("", None)),
        ("b", scope("one", Some("ada"))),
        ("c", scope("one", None)),
        ("d", scope("two", Some("ada"))),
    ] {
        let session = NewSession {
            key: (id != "c").then(|| "order-7".into()),
            scope: of,
            ..new(id)
        };
        store.create(session).await.expect("keys are per tenant");
    }
    let twice = NewSession {
        key: Some("order-7".into()),
        scope: scope("one", None),
        ..new("e")
    };
    let refused = store.create(twice).await;
    assert!(matches!(&refused, Err(StoreError::Conflict(id)) if &**id == "b"));
    for (of, found) in [
        (None, vec!["d", "c", "b", "a"]),
        (Some(scope("", None)), vec!["a"]),
        (Some(scope("one", None)), vec!["c", "b"]),
        (Some(scope("one", Some("ada"))), vec!["b"]),
        (Some(scope("three", None)), vec![]),
    ] {
        let query = SessionQuery {
            scope: of,
            ..SessionQuery::default()
        };
        let listed = store.sessions(&query).await.expect("read");
        let listed: Vec<&str> = listed.iter().map(|info| &*info.id).collect();
        assert_eq!(listed, found);
    }
    let listed = store.sessions(&SessionQuery::default()).await;
    let listed = listed.expect("read");
    assert_eq!(listed[2].scope, scope("one", Some("ada")));
    let claim = own(&store, "b").await.expect("free");
    assert_eq!(claim.scope, scope("one", Some("ada")));
}

/// A session that was moved stays in lists with its new address. Nobody owns it, and it takes no messages.
pub(super) async fn what_moved_is_left_alone(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let begun = NewSession {
        first: Some(message("m1", 0)),
        ..new("a")
    };
    store.create(begun).await.expect("made");
    let claim = own(&store, "a").await.expect("free");
    let state = SessionState {
        status: "moved".into(),
        moved: Some("sqlite:/elsewhere.db".into()),
        ..SessionState::default()
    };
    let wait = WaitChange {
        effect: Id::new(Line(1), 0),
        open: vec![("paid".into(), "{}".into())],
    };
    let batch = Batch {
        info: Some(state.clone()),
        waits: vec![wait],
        ..rows(vec![row(1, b"x")])
    };
    store.append(&claim, batch).await.expect("written");
    let left = Left {
        wants: Some(IMMEDIATELY),
        ..nothing(&claim)
    };
    store.release(claim, left).await.expect("released");
    let is_moved = |refused: Result<(), StoreError>| {
        let is = matches!(&refused, Err(StoreError::Moved { session, to })
            if &**session == "a" && &**to == "sqlite:/elsewhere.db");
        assert!(is, "{refused:?}");
    };
    is_moved(own(&other, "a").await.map(drop));
    is_moved(other.deliver("a", message("m2", 9)).await.map(drop));
    let by = worker(&other).await;
    let taken = take(&other, &by, room(9)).await;
    assert!(taken.claims.is_empty() && taken.refused.is_empty());
    let event = super::event("e1", "{}");
    assert!(other.deliver_event(event.clone()).await.expect("new"));
    let boxed = other.event_box(None, Time(50), 9).await;
    assert_eq!(boxed.expect("read"), [event], "no wait of it counts");
    let listed = other.sessions(&SessionQuery::default()).await;
    assert_eq!(listed.expect("read")[0].state, state);
    let head = other.head("a").await;
    assert_eq!(head.expect("its log is still read"), Line(1));
}

pub(super) async fn what_is_wanted_is_taken(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let by = worker(&store).await;
    leaves(&store, "later", Some(50), None).await;
    leaves(&store, "second", Some(20), None).await;
    leaves(&store, "never", None, None).await;
    leaves(&store, "first", Some(10), None).await;
    // A new session is wanted because of its message; one without a message is not.
    let begun = NewSession {
        first: Some(message("m1", 15)),
        ..new("new")
    };
    store.create(begun).await.expect("made");
    store.create(new("empty")).await.expect("made");
    let few = Room {
        sessions: 2,
        ..room(49)
    };
    let taken = take(&other, &by, few).await;
    assert_eq!(ids(&taken), ["first", "new"], "those wanted first");
    assert_eq!(taken.claims[0].before.wants, Some(Time(10)));
    assert_eq!((taken.claims[1].epoch, taken.claims[1].mail), (1, 1));
    let more = take(&store, &by, room(49)).await;
    assert_eq!(ids(&more), ["second"]);
    assert_eq!(more.next, Some(Time(50)));
    assert!(matches!(
        own(&store, "first").await,
        Err(StoreError::Owned { .. })
    ));
    let query = SessionQuery {
        worker: Some(by.no),
        ..SessionQuery::default()
    };
    assert_eq!(other.sessions(&query).await.expect("read").len(), 3);
    // A session that was read to its end is released, and wanted at another time.
    let claim = taken.claims[0].clone();
    let left = Left {
        wants: Some(Time(60)),
        ..nothing(&claim)
    };
    drop(taken);
    store.release(claim, left).await.expect("released");
    let later = take(&store, &by, room(60)).await;
    assert_eq!(ids(&later), ["new", "later", "first"], "`new` was dropped");
    assert_eq!(later.next, None);
    let epochs: Vec<u64> = later.claims.iter().map(|claim| claim.epoch).collect();
    assert_eq!(epochs, [2, 2, 3]);
    assert!(later.refused.is_empty());
}

/// A message is a reason whatever time it has: the clock of its sender may be ahead of that of the worker.
pub(super) async fn mail_of_a_clock_that_is_ahead_is_a_reason(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let by = worker(&store).await;
    leaves(&store, "timer", Some(50), None).await;
    leaves(&store, "rests", Some(60), None).await;
    let begun = NewSession {
        first: Some(message("m1", 70)),
        ..new("new")
    };
    store.create(begun).await.expect("made");
    assert!(
        other
            .deliver("rests", message("m9", 80))
            .await
            .expect("new")
    );
    let taken = take(&other, &by, room(9)).await;
    let mut found = ids(&taken);
    found.sort_unstable();
    assert_eq!(found, ["new", "rests"]);
    assert_eq!(taken.next, Some(Time(50)));
    // Once it is read, only the time counts.
    for claim in taken.claims.clone() {
        let left = Left {
            wants: Some(Time(60)),
            ..nothing(&claim)
        };
        store.release(claim, left).await.expect("released");
    }
    drop(taken);
    assert!(take(&other, &by, room(9)).await.claims.is_empty());
}

pub(super) async fn two_workers_never_take_the_same(place: impl Place) {
    const SESSIONS: usize = 40;
    let store = open(&place);
    for n in 0..SESSIONS {
        leaves(&store, &format!("s{n}"), Some(1), None).await;
    }
    drop(store);
    let place = Arc::new(place);
    let takers = (0..4).map(|_| {
        let place = place.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let store = open(&*place);
                let by = worker(&store).await;
                let (mut all, mut idle) = (Vec::new(), 0);
                while idle < 3 {
                    let few = Room {
                        sessions: 3,
                        ..room(5)
                    };
                    let taken = take(&store, &by, few).await;
                    idle = if taken.claims.is_empty() { idle + 1 } else { 0 };
                    for claim in taken.claims {
                        all.push(claim.session.to_string());
                        let left = nothing(&claim);
                        store.release(claim, left).await.expect("released");
                    }
                }
                all
            })
        })
    });
    let takers: Vec<_> = takers.collect();
    let taken = takers.into_iter().map(|t| t.join().expect("no panic"));
    let mut taken = taken.collect::<Vec<_>>().concat();
    taken.sort();
    assert_eq!(taken.len(), SESSIONS);
    taken.dedup();
    assert_eq!(taken.len(), SESSIONS, "each once");
}

pub(super) async fn what_a_dead_owner_had_is_taken(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    leaves(&store, "a", None, None).await;
    let claim = own(&store, "a").await.expect("free");
    let by = worker(&other).await;
    assert!(take(&other, &by, room(9)).await.claims.is_empty());
    drop(claim);
    place.owners_are_gone();
    let taken = take(&other, &by, room(9)).await;
    assert_eq!(ids(&taken), ["a"]);
    assert_eq!(taken.claims[0].before.wants, Some(IMMEDIATELY));
}

pub(super) async fn mail_that_nobody_read_is_a_reason(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let by = worker(&store).await;
    leaves(&store, "a", None, None).await;
    let mail = async |store: &Arc<dyn Store>| store.inbox("a").await.expect("read").0;
    assert_eq!(mail(&store).await, 1);
    assert!(other.deliver("a", message("m2", 7)).await.expect("new"));
    assert!(!other.deliver("a", message("m2", 7)).await.expect("known"));
    assert_eq!(mail(&store).await, 2, "a known message counts once");
    let taken = take(&store, &by, room(7)).await;
    assert_eq!(ids(&taken), ["a"]);
    let claim = taken.claims[0].clone();
    assert_eq!((claim.mail, claim.before.mail), (2, 1));
    // This message comes after the owner has read the inbox, and is still there when the session is released.
    assert!(other.deliver("a", message("m3", 8)).await.expect("new"));
    let left = nothing(&claim);
    drop(taken);
    store.release(claim, left).await.expect("released");
    let again = take(&other, &by, room(8)).await;
    assert_eq!(ids(&again), ["a"]);
    let claim = again.claims[0].clone();
    drop(again);
    let left = nothing(&claim);
    store.release(claim, left).await.expect("released");
    assert!(
        take(&store, &by, room(99)).await.claims.is_empty(),
        "a message that was read is not a reason, although it is still there"
    );
}

pub(super) async fn an_old_owner_releases_nothing(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    leaves(&store, "a", None, None).await;
    let old = own(&store, "a").await.expect("free");
    let stale = Claim {
        lock: Arc::new(()),
        ..old.clone()
    };
    drop(old);
    place.owners_are_gone();
    let new = own(&other, "a").await.expect("free");
    let left = Left {
        wants: Some(Time(1)),
        ..nothing(&stale)
    };
    store.release(stale, left).await.expect("no error");
    assert!(matches!(
        own(&store, "a").await,
        Err(StoreError::Owned { .. })
    ));
    let left = nothing(&new);
    other.release(new, left).await.expect("released");
    let by = worker(&store).await;
    assert!(take(&store, &by, room(9)).await.claims.is_empty());
}

pub(super) async fn a_worker_takes_what_it_can_drive(place: &impl Place) {
    let store = open(place);
    let by = worker(&store).await;
    let needs = |revision, natives: &[&str]| Needs {
        revision,
        natives: natives.iter().map(|name| (*name).into()).collect(),
    };
    for (id, needs) in [
        ("plain", needs(1, &[])),
        ("newer", needs(2, &[])),
        ("pays", needs(1, &["tool:pay:1"])),
        ("both", needs(1, &["net:desk", "tool:pay:1"])),
    ] {
        let session = NewSession {
            first: Some(message("m1", 1)),
            needs,
            ..new(id)
        };
        store.create(session).await.expect("made");
    }
    let can = |natives: &'static [&'static str], revision| Room {
        can: Arc::new(move |needs: &Needs| {
            let has = |native: &steersman_machine::stored::ids::Name| natives.contains(&&**native);
            needs.revision <= revision && needs.natives.iter().all(has)
        }),
        ..room(9)
    };
    let taken = take(&store, &by, can(&[], 1)).await;
    assert_eq!(ids(&taken), ["plain"]);
    let taken = take(&store, &by, can(&["tool:pay:1"], 1)).await;
    assert_eq!(ids(&taken), ["pays"]);
    // The owner changes the needs of its session.
    let claim = taken.claims[0].clone();
    drop(taken);
    let batch = Batch {
        needs: Some(needs(3, &["tool:pay:2"])),
        ..rows(vec![row(claim.first.0, b"x")])
    };
    store.append(&claim, batch).await.expect("written");
    let left = Left {
        wants: Some(Time(1)),
        ..nothing(&claim)
    };
    store.release(claim, left).await.expect("released");
    let all = can(&["net:desk", "tool:pay:1"], 2);
    let taken = take(&store, &by, all).await;
    assert_eq!(ids(&taken), ["newer", "both"]);
    let taken = take(&store, &by, can(&["tool:pay:2"], 3)).await;
    assert_eq!(ids(&taken), ["pays"]);
}

pub(super) async fn places_have_room(place: &impl Place) {
    let store = open(place);
    let by = worker(&store).await;
    // The session that has waited longest gives up first, so it has the earliest due time.
    for (id, due, at) in [
        ("c", 300, "down"),
        ("a", 100, "down"),
        ("b", 200, "down"),
        ("d", 400, "up"),
    ] {
        leaves(&store, id, Some(due), Some(at)).await;
    }
    let one_waits = Room {
        waiting: BTreeMap::from([("down".into(), 1)]),
        ..room(50)
    };
    let taken = take(&store, &by, one_waits).await;
    assert_eq!(ids(&taken), ["a", "d"]);
    assert_eq!(taken.claims[0].before.place.as_deref(), Some("down"));
    assert_eq!(taken.next, Some(Time(200)));
    let full = Room {
        each: 0,
        ..room(300)
    };
    let taken = take(&store, &by, full).await;
    assert_eq!(ids(&taken), ["b", "c", "a", "d"][..2], "they are due");
}

pub(super) async fn a_copy_is_wanted_when_it_is_whole(place: &impl Place) {
    let store = open(place);
    let by = worker(&store).await;
    let claim = claimed(&store, "a").await;
    store
        .append(&claim, rows(vec![row(1, b"part")]))
        .await
        .expect("written");
    drop(claim);
    place.owners_are_gone();
    assert!(
        take(&store, &by, room(9)).await.claims.is_empty(),
        "nobody takes a session that is only partly copied"
    );
    let claim = own(&store, "a").await.expect("free");
    assert_eq!((claim.epoch, claim.head), (2, Line(1)));
    drop(claim);
    place.owners_are_gone();
    assert_eq!(ids(&take(&store, &by, room(9)).await), ["a"]);
}

pub(super) async fn trouble_is_shown(place: &impl Place) {
    let store = open(place);
    leaves(&store, "a", None, None).await;
    let claim = own(&store, "a").await.expect("free");
    let trouble = Some(Trouble {
        times: 2,
        why: "there is no tool `pay`".into(),
    });
    let left = Left {
        wants: Some(Time(70)),
        trouble,
        ..nothing(&claim)
    };
    store.release(claim, left.clone()).await.expect("released");
    let store = open(place);
    let listed = store.sessions(&SessionQuery::default()).await;
    assert_eq!(listed.expect("read")[0].left, left);
    let claim = own(&store, "a").await.expect("free");
    assert_eq!(claim.before, left);
    let left = nothing(&claim);
    store.release(claim, left).await.expect("released");
    let listed = store.sessions(&SessionQuery::default()).await;
    assert_eq!(listed.expect("read")[0].left.trouble, None);
}

pub(super) async fn workers_are_woken(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let (by, idle) = (worker(&store).await, worker(&other).await);
    let mut wakes = store.wakes(&by);
    let mut hints = other.wakes(&idle);
    leaves(&store, "a", Some(1), None).await;
    let taken = take(&store, &by, room(9)).await;
    assert_eq!(ids(&taken), ["a"]);
    assert!(by.lease.is_live());
    let until = async |wakes: &mut futures::stream::BoxStream<'static, Wake>, wanted: Wake| {
        let arrived = async { while wakes.next().await.expect("it never ends") != wanted {} };
        let arrived = tokio::time::timeout(SOON, arrived).await;
        assert!(arrived.is_ok(), "{wanted:?} does not come");
    };
    // A worker gets a hint about a message to its session, no matter which handle delivered it.
    assert!(other.deliver("a", message("m2", 2)).await.expect("new"));
    until(&mut wakes, Wake::Mail("a".into())).await;
    assert!(store.deliver("a", message("m3", 2)).await.expect("new"));
    until(&mut wakes, Wake::Mail("a".into())).await;
    // Nobody owns this session, so all workers are told to look.
    let begun = NewSession {
        first: Some(message("m1", 0)),
        ..new("b")
    };
    while let Ok(Some(_)) = tokio::time::timeout(Duration::ZERO, hints.next()).await {}
    store.create(begun).await.expect("made");
    until(&mut hints, Wake::Look).await;
    drop(taken);
    let claim = own(&store, "a").await.expect("free");
    store
        .append(&claim, rows(vec![row(claim.first.0, b"x")]))
        .await
        .expect("written");
    assert_eq!(store.head("a").await.expect("read"), claim.first);
    assert!(claim.first > Line::NONE);
}
