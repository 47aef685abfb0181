//! The test suite that every store must pass. Call [`suite`] from a test of your store.
//!
//! Checks panic with a description of the error, as tests do. Each check gets its own place.

mod accounts;
mod begin;
mod bounds;
mod events;
mod lists;
mod log;
mod memory;
mod quotas;
mod registers;
mod story;

use events::event;
pub use story::{SALT, story};

use crate::store::{
    Batch, CheckpointOf, Claim, InboxMessage, MAX_VALUE, Needs, NewSession, NewWorker, Row, Scope,
    SessionQuery, SessionState, Store, StoreError, WaitChange,
};
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Line, Time};

/// A place in which a store is kept, so that the suite can close, reopen and damage the store.
pub trait Place: Send + Sync + 'static {
    /// Opens the store. Several handles may be open at the same time.
    fn open(&self) -> Result<Arc<dyn Store>, StoreError>;
    /// Flips the lowest bit of one byte of a row while the store is closed. Returns false if the place does not support this.
    fn damage(&self, session: &str, n: Line, byte: usize) -> bool;
    /// Ends the leases of owners that are gone. Needed only for a store that does not notice their end itself.
    fn owners_are_gone(&self) {}
    /// Makes the store look as if a newer version had written it. Returns false if the place does not support this.
    fn make_newer(&self) -> bool {
        false
    }
}

/// Runs every check. `make` returns a new, empty place.
pub async fn suite<P: Place>(make: impl Fn() -> P) {
    begin::sessions_are_made_once(&make()).await;
    begin::sessions_begin_with_their_message(&make()).await;
    begin::an_id_stands_for_what_came_with_it(&make()).await;
    rows_come_back_in_order(&make()).await;
    a_batch_is_all_or_nothing(&make()).await;
    one_owner_at_a_time(&make()).await;
    an_old_epoch_writes_nothing(&make()).await;
    two_writers_never_both_succeed(make()).await;
    everything_is_kept_after_reopening(&make()).await;
    messages_are_accepted_once(&make()).await;
    events::events_find_their_waits(&make()).await;
    events::tenants_have_boxes_of_their_own(&make()).await;
    events::events_are_not_taken_for_other_messages(&make()).await;
    events::no_clock_changes_what_is_kept(&make()).await;
    lists::lists_find_sessions(&make()).await;
    lists::pages_follow_each_other(&make()).await;
    lists::tenants_are_apart(&make()).await;
    lists::what_moved_is_left_alone(&make()).await;
    lists::what_is_wanted_is_taken(&make()).await;
    lists::two_workers_never_take_the_same(make()).await;
    lists::what_a_dead_owner_had_is_taken(&make()).await;
    lists::mail_that_nobody_read_is_a_reason(&make()).await;
    lists::mail_of_a_clock_that_is_ahead_is_a_reason(&make()).await;
    lists::an_old_owner_releases_nothing(&make()).await;
    lists::a_worker_takes_what_it_can_drive(&make()).await;
    lists::places_have_room(&make()).await;
    lists::a_copy_is_wanted_when_it_is_whole(&make()).await;
    lists::trouble_is_shown(&make()).await;
    lists::workers_are_woken(&make()).await;
    quotas::workers_share_a_limit(&make()).await;
    quotas::a_window_is_known_whatever_the_clock_says(&make()).await;
    quotas::pauses_are_known_to_all(&make()).await;
    accounts::tokens_are_kept(&make()).await;
    accounts::the_digest_key_is_of_the_store(&make(), &make()).await;
    accounts::webhooks_are_kept(&make()).await;
    accounts::webhooks_find_what_is_new(&make()).await;
    accounts::conversations_are_found(&make()).await;
    accounts::holdings_are_those_of_a_scope(&make()).await;
    registers::credentials_are_renewed_once(&make()).await;
    registers::schedules_move_on_once(&make()).await;
    blobs_are_dropped(&make()).await;
    large_values(&make()).await;
    bounds::ids_have_bounds(&make()).await;
    bounds::inboxes_have_bounds(&make()).await;
    bounds::the_box_has_a_bound(&make()).await;
    batches_that_are_not_urgent_are_written(&make()).await;
    newer_stores_are_refused(&make()).await;
    memory::memories_are_saved_once(&make()).await;
    memory::scopes_are_apart(&make()).await;
    memory::tenants_are_apart(&make()).await;
    memory::memories_are_rated_and_forgotten(&make()).await;
    memory::memories_are_kept_for_their_time(&make()).await;
    memory::memories_stand_in_the_place_of_others(&make()).await;
    log::checkpoints_are_a_cache(&make()).await;
    log::branches_load_along_their_path(&make()).await;
    log::erased_texts_verify(&make()).await;
    log::damage_is_found_and_named(&make()).await;
    log::rows_in_the_wrong_place_are_found(&make()).await;
}

fn open(place: &impl Place) -> Arc<dyn Store> {
    place.open().expect("the store opens")
}

/// A text in the form of a sealed one. No key opens it.
fn sealed_text(n: u8) -> Arc<str> {
    format!("1.{n:08x}.{n:024x}.{n:032x}.{n:032x}").into()
}

fn new(id: &str) -> NewSession {
    NewSession {
        id: id.into(),
        network: "desk".into(),
        key: None,
        salt: SALT,
        created: Time(1_000),
        scope: Scope::default(),
        first: None,
        said: None,
        needs: Needs::default(),
    }
}

/// Claims a session for a worker of its own.
async fn own(store: &Arc<dyn Store>, id: &str) -> Result<Claim, StoreError> {
    let worker = store.enroll(NewWorker::default()).await?;
    store.claim(id, &worker).await
}

async fn claimed(store: &Arc<dyn Store>, id: &str) -> Claim {
    let made = store.create(new(id)).await;
    assert!(matches!(made, Ok(()) | Err(StoreError::Conflict(_))));
    own(store, id).await.expect("nobody owns it")
}

fn row(n: u64, bytes: &[u8]) -> Row {
    Row {
        n: Line(n),
        bytes: bytes.into(),
    }
}

fn rows(rows: Vec<Row>) -> Batch {
    Batch {
        rows,
        urgent: true,
        ..Batch::default()
    }
}

async fn all(store: &Arc<dyn Store>, id: &str) -> Vec<Row> {
    let rows = store.rows(id, Line(1), Line::MAX, usize::MAX).await;
    rows.expect("rows are read")
}

async fn rows_come_back_in_order(place: &impl Place) {
    let store = open(place);
    let other = open(place);
    let before = other.version();
    assert_eq!(other.version(), before, "nothing has changed");
    let (a, b) = (claimed(&store, "a").await, claimed(&store, "b").await);
    assert_eq!((a.first, a.head, a.epoch), (Line(1), Line::NONE, 1));
    assert_eq!(a.salt, SALT);
    // Batches are queued when `append` is called, so the order of the awaits does not matter.
    let first = store.append(&a, rows(vec![row(1, b"one"), row(2, b"two")]));
    let of_b = store.append(&b, rows(vec![row(1, b"other")]));
    let second = store.append(&a, rows(vec![row(5, b"five")]));
    second.await.expect("written");
    of_b.await.expect("written");
    first.await.expect("written");
    if before.is_some() {
        assert_ne!(other.version(), before, "another handle has written");
    }
    let five = row(5, b"five");
    assert_eq!(
        all(&store, "a").await,
        [row(1, b"one"), row(2, b"two"), five.clone()]
    );
    assert_eq!(all(&store, "b").await, [row(1, b"other")]);
    assert_eq!(store.head("a").await.expect("read"), Line(5));
    // A number that no line has leads to no line, of this session or of another.
    for beyond in 1..=4 {
        let n = Line(beyond * Line::MAX.next().0 + 1);
        for id in ["a", "b"] {
            assert_eq!(store.row(id, n).await.expect("read"), None, "{id} {n}");
            assert_eq!(store.row_now(id, n).expect("read"), None, "{id} {n}");
        }
    }
    assert_eq!(
        store.row("a", Line(5)).await.expect("read"),
        Some(five.clone())
    );
    assert_eq!(
        store.row_now("a", Line(5)).expect("read"),
        Some(five.clone())
    );
    assert_eq!(store.row("a", Line(3)).await.expect("read"), None);
    let some = store.rows("a", Line(2), Line(5), 1).await.expect("read");
    assert_eq!(some, [row(2, b"two")]);
    let some = store.rows("a", Line(3), Line(5), 9).await.expect("read");
    assert_eq!(some, [five]);
    assert_eq!(
        store.rows("a", Line(3), Line(4), 9).await.expect("read"),
        []
    );
}

async fn a_batch_is_all_or_nothing(place: &impl Place) {
    let store = open(place);
    let claim = claimed(&store, "a").await;
    store
        .append(&claim, rows(vec![row(3, b"three")]))
        .await
        .expect("written");
    let content = *blake3::hash(b"named by no line").as_bytes();
    let out_of_order = Batch {
        blobs: vec![(content, (*b"named by no line").into())],
        labels: vec![("who".into(), Some("me".into()))],
        ..rows(vec![row(4, b"four"), row(4, b"again")])
    };
    let refused = store.append(&claim, out_of_order);
    let later = store.append(&claim, rows(vec![row(9, b"nine")]));
    let refused = refused.await.expect_err("out of order");
    assert!(matches!(
        refused,
        StoreError::Order {
            line: Line(4),
            last: Line(4),
            ..
        }
    ));
    let fenced = later
        .await
        .expect_err("nothing after a refused batch is written");
    assert!(
        matches!(fenced, StoreError::Fenced { epoch: 1, .. }),
        "{fenced}"
    );
    assert_eq!(all(&store, "a").await, [row(3, b"three")]);
    let info = &store
        .sessions(&SessionQuery::default())
        .await
        .expect("read")[0];
    assert_eq!((info.labels.len(), info.head), (0, Line(3)));
    assert_eq!(store.blob(&content).await.expect("read"), None);
}

async fn one_owner_at_a_time(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let claim = claimed(&store, "a").await;
    for store in [&store, &other] {
        let refused = own(store, "a").await.err().expect("it is owned");
        let ours = std::process::id().to_string();
        assert!(
            matches!(&refused, StoreError::Owned { process, .. } if *process == ours),
            "{refused}"
        );
    }
    let listed = other
        .sessions(&SessionQuery::default())
        .await
        .expect("read");
    assert_eq!(listed[0].owner, Some(std::process::id().to_string()));
    let kept = claim.clone();
    drop(claim);
    assert!(
        own(&store, "a").await.is_err(),
        "a clone of the claim lives"
    );
    drop(kept);
    place.owners_are_gone();
    let next = own(&other, "a").await.expect("granted at once");
    assert_eq!(
        (next.epoch, next.head, next.first),
        (2, Line::NONE, Line(100))
    );
    other
        .append(&next, rows(vec![row(130, b"x")]))
        .await
        .expect("written");
    drop(next);
    // The owner may have been 64 lines ahead of line 130, at 194: the next owner begins at the next hundred.
    let next = own(&store, "a").await.expect("granted at once");
    assert_eq!(
        (next.epoch, next.head, next.first),
        (3, Line(130), Line(200))
    );
    drop(next);
    let listed = store
        .sessions(&SessionQuery::default())
        .await
        .expect("read");
    assert_eq!(listed[0].owner, None);
}

/// Returns the claim of an owner that lost its lock: it was stopped and thought dead, or its lock file was deleted.
fn stale(claim: Claim) -> Claim {
    Claim {
        lock: Arc::new(()),
        ..claim
    }
}

async fn an_old_epoch_writes_nothing(place: &impl Place) {
    let store = open(place);
    let old = claimed(&store, "a").await;
    store
        .append(&old, rows(vec![row(1, b"one")]))
        .await
        .expect("written");
    let old = stale(old);
    let new = own(&store, "a").await.expect("the lock is free");
    let late = Batch {
        consumed: vec!["m1".into()],
        ..rows(vec![row(2, b"two")])
    };
    let only_labels = Batch {
        labels: vec![("who".into(), Some("me".into()))],
        ..rows(vec![])
    };
    let rewrites = Batch {
        rewritten: vec![row(1, b"x")],
        ..rows(vec![])
    };
    for batch in [late, only_labels, rewrites, rows(vec![row(200, b"far")])] {
        let fenced = store.append(&old, batch).await.expect_err("fenced");
        assert!(
            matches!(fenced, StoreError::Fenced { epoch: 1, .. }),
            "{fenced}"
        );
    }
    store
        .append(&new, rows(vec![row(100, b"new")]))
        .await
        .expect("the new owner writes");
    assert_eq!(all(&store, "a").await, [row(1, b"one"), row(100, b"new")]);
    assert!(
        store
            .deliver("a", message("m1", 0))
            .await
            .expect("m1 was not consumed")
    );
}

/// Lets several threads claim, write and release one session. Every acknowledged line must be there, epochs must not fall, and no
/// line may be written twice.
async fn two_writers_never_both_succeed<P: Place>(place: P) {
    let store = open(&place);
    store.create(new("a")).await.expect("made");
    let place = Arc::new(place);
    let writers: Vec<_> = (0..4_u8)
        .map(|who| {
            let place = place.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build();
                runtime
                    .expect("a runtime")
                    .block_on(contend(&open(&*place), who))
            })
        })
        .collect();
    let mut acknowledged: Vec<Row> = writers
        .into_iter()
        .flat_map(|w| w.join().expect("no writer panics"))
        .collect();
    acknowledged.sort_by_key(|r| r.n);
    let written = all(&store, "a").await;
    assert_eq!(written, acknowledged);
    let epochs: Vec<u8> = written.iter().map(|r| r.bytes[1]).collect();
    assert!(epochs.is_sorted(), "{epochs:?}");
    assert_eq!(written.len(), 4 * 6);
}

async fn contend(store: &Arc<dyn Store>, who: u8) -> Vec<Row> {
    let mut written = Vec::new();
    while written.len() < 6 {
        let claim = match own(store, "a").await {
            Ok(claim) => claim,
            Err(StoreError::Owned { .. }) => {
                std::thread::yield_now();
                continue;
            }
            Err(e) => panic!("{e}"),
        };
        let row = row(claim.first.0, &[who, claim.epoch as u8]);
        let append = store.append(&claim, rows(vec![row.clone()]));
        append.await.expect("the owner writes");
        written.push(row);
    }
    written
}

fn message(id: &str, at: i64) -> InboxMessage {
    InboxMessage {
        id: id.into(),
        at: Time(at),
        bytes: id.as_bytes().into(),
    }
}

fn everything() -> Batch {
    let effect = Id::new(Line(1), 3);
    let content = |bytes: &[u8]| (*blake3::hash(bytes).as_bytes(), bytes.into());
    Batch {
        // One of them is in the store already, and one comes twice.
        blobs: [&b"blob"[..], b"made", b"made"].map(content).to_vec(),
        consumed: vec!["m1".into()],
        waits: vec![WaitChange {
            effect,
            open: vec![("paid".into(), r#"{"order":7}"#.into())],
        }],
        labels: vec![("vendor".into(), Some("Acme".into()))],
        info: Some(SessionState {
            status: "waits".into(),
            updated: Time(2_000),
            definition: "abc123".into(),
            micros: 7,
            tokens: 8,
            model_calls: 9,
            waits: "[]".into(),
            outcome: "{}".into(),
            last: "It waits for a payment.".into(),
            moved: None,
        }),
        // The flag has no effect on the other parts of the batch.
        begins_unsafe: true,
        ..rows(vec![row(1, b"one")])
    }
}

async fn everything_is_kept_after_reopening(place: &impl Place) {
    let hash = *blake3::hash(b"blob").as_bytes();
    {
        let store = open(place);
        let claim = claimed(&store, "a").await;
        assert!(store.deliver("a", message("m1", 1)).await.expect("new"));
        assert!(store.deliver("a", message("m2", 2)).await.expect("new"));
        store.put_blob(hash, (*b"blob").into()).await.expect("put");
        store
            .put_blob(hash, (*b"blob").into())
            .await
            .expect("put again");
        store.append(&claim, everything()).await.expect("written");
    }
    let store = open(place);
    assert_eq!(all(&store, "a").await, [row(1, b"one")]);
    let inbox = store.inbox("a").await.expect("read").1;
    assert!(inbox.contains(&message("m2", 2)));
    assert!(
        !store
            .deliver("a", message("m1", 9))
            .await
            .expect("known for ever")
    );
    assert_eq!(
        store.blob(&hash).await.expect("read").as_deref(),
        Some(&b"blob"[..])
    );
    assert_eq!(
        store.blob_now(&hash).expect("read").as_deref(),
        Some(&b"blob"[..])
    );
    let made = *blake3::hash(b"made").as_bytes();
    assert_eq!(
        store.blob(&made).await.expect("read").as_deref(),
        Some(&b"made"[..])
    );
    assert_eq!(store.blob(&[0; 32]).await.expect("read"), None);
    let info = &store
        .sessions(&SessionQuery::default())
        .await
        .expect("read")[0];
    assert_eq!(Some(&info.state), everything().info.as_ref());
    assert_eq!(info.labels, [("vendor".into(), "Acme".into())]);
    assert_eq!(
        (info.created, info.head, &*info.network),
        (Time(1_000), Line(1), "desk")
    );
    let met = store.deliver_event(event("e1", r#"{"order":7}"#)).await;
    assert!(met.expect("new"));
    let inbox = store.inbox("a").await.expect("read").1;
    assert!(inbox.iter().any(|m| &*m.id == "e1"), "the wait is there");
    let claim = own(&store, "a").await.expect("free");
    assert_eq!((claim.epoch, claim.first, claim.salt), (2, Line(100), SALT));
}

async fn messages_are_accepted_once(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let claim = claimed(&store, "a").await;
    let mail = async || store.inbox("a").await.expect("read").0;
    assert_eq!(mail().await, 0);
    for (id, at) in [("m1", 3), ("m2", 2), ("m3", 1)] {
        assert!(other.deliver("a", message(id, at)).await.expect("new"));
    }
    assert_eq!(mail().await, 3);
    assert!(!store.deliver("a", message("m2", 9)).await.expect("known"));
    assert_eq!(mail().await, 3, "nothing came in");
    let ids = |inbox: Vec<InboxMessage>| -> Vec<String> {
        inbox.iter().map(|m| m.id.to_string()).collect()
    };
    let inbox = store.inbox("a").await.expect("read").1;
    assert_eq!(ids(inbox), ["m1", "m2", "m3"], "oldest first, by arrival");
    let consumed = Batch {
        consumed: vec!["m2".into(), "never-seen".into()],
        ..rows(vec![row(1, b"x")])
    };
    store.append(&claim, consumed).await.expect("written");
    // A store may return m2 once more. Its owner knows from the ledger that a line took it.
    let left: Vec<String> = ids(other.inbox("a").await.expect("read").1);
    let left: Vec<&str> = left
        .iter()
        .map(String::as_str)
        .filter(|id| *id != "m2")
        .collect();
    assert_eq!(left, ["m1", "m3"]);
    for id in ["m1", "m2", "m3", "never-seen"] {
        assert!(
            !other.deliver("a", message(id, 9)).await.expect("known"),
            "{id}"
        );
    }
    let dropped = Batch {
        dropped: vec!["m3".into()],
        ..Batch::default()
    };
    store.append(&claim, dropped).await.expect("written");
    assert!(
        other.deliver("a", message("m3", 9)).await.expect("new"),
        "no line took it, and nothing of it is left"
    );
}

async fn large_values(place: &impl Place) {
    let store = open(place);
    let claim = claimed(&store, "a").await;
    store
        .append(&claim, rows(vec![row(1, &vec![7; MAX_VALUE])]))
        .await
        .expect("just fits");
    let over = vec![7; MAX_VALUE + 1];
    let refused = store
        .append(&claim, rows(vec![row(2, b"x"), row(3, &over)]))
        .await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })));
    assert_eq!(store.head("a").await.expect("read"), Line(1));
    let too_long = InboxMessage {
        bytes: over.as_slice().into(),
        ..message("m1", 0)
    };
    let refused = store.deliver("a", too_long).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })));
    assert!(
        store
            .deliver("a", message("m1", 0))
            .await
            .expect("it was not accepted")
    );
    let far_over: Vec<u8> = (0..4 * MAX_VALUE + 5).map(|i| i as u8).collect();
    let hash = *blake3::hash(&far_over).as_bytes();
    store
        .put_blob(hash, far_over.as_slice().into())
        .await
        .expect("a blob may be long");
    assert_eq!(
        store.blob(&hash).await.expect("read").as_deref(),
        Some(&*far_over)
    );
    drop(claim);
    let claim = own(&store, "a").await.expect("free");
    let checkpoint = crate::store::Checkpoint {
        at: Line(1),
        bytes: far_over.as_slice().into(),
    };
    let batch = Batch {
        checkpoints: vec![(CheckpointOf::Ledger, checkpoint.clone())],
        ..rows(vec![])
    };
    store
        .append(&claim, batch)
        .await
        .expect("a checkpoint may be long");
    let found = store.checkpoint("a", CheckpointOf::Ledger, Line(9)).await;
    assert_eq!(found.expect("read"), Some(checkpoint));
}

async fn blobs_are_dropped(place: &impl Place) {
    let store = open(place);
    let hash = |content: &[u8]| *blake3::hash(content).as_bytes();
    for content in [b"one", b"two"] {
        let put = store.put_blob(hash(content), (*content).into()).await;
        put.expect("put");
    }
    let gone = store.drop_blobs(vec![hash(b"one"), hash(b"none")]).await;
    assert_eq!(gone.expect("dropped"), 1);
    assert_eq!(store.blob(&hash(b"one")).await.expect("read"), None);
    assert!(store.blob(&hash(b"two")).await.expect("read").is_some());
}

async fn batches_that_are_not_urgent_are_written(place: &impl Place) {
    let store = open(place);
    let claim = claimed(&store, "a").await;
    let calm = |n: u64| Batch {
        urgent: false,
        ..rows(vec![row(n, b"x")])
    };
    store
        .append(&claim, calm(1))
        .await
        .expect("written although it is not urgent");
    // The futures are dropped: the batches were queued when `append` was called.
    for n in 2..50 {
        drop(store.append(&claim, calm(n)));
    }
    store
        .append(&claim, rows(vec![row(50, b"x")]))
        .await
        .expect("written");
    assert_eq!(all(&store, "a").await.len(), 50);
    assert_eq!(store.head("a").await.expect("read"), Line(50));
}

async fn newer_stores_are_refused(place: &impl Place) {
    {
        let store = open(place);
        let claim = claimed(&store, "a").await;
        store
            .append(&claim, rows(vec![row(1, b"one")]))
            .await
            .expect("written");
    }
    if place.make_newer() {
        let refused = place.open().err().expect("it is newer");
        assert!(matches!(&refused, StoreError::Newer { .. }), "{refused}");
    }
}
