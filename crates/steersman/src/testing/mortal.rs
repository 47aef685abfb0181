//! A store whose process dies behind a line: for `kill` in tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use steersman_machine::ids::{Id, Line, Time};
use steersman_runtime::Boxed;
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{
    Batch, BoxedEvent, Checkpoint, CheckpointOf, Claim, InboxMessage, NewSession, Row, SessionId,
    SessionInfo, SessionQuery, Store, StoreError,
};

/// Keeps everything in memory, up to a line.
pub(super) struct Mortal {
    inner: MemoryStore,
    last: AtomicU64,
}

impl Mortal {
    pub(super) fn new() -> Self {
        Self {
            inner: MemoryStore::new(),
            last: AtomicU64::new(u64::MAX),
        }
    }

    /// No line above this one is written from now on; none: all are again.
    pub(super) fn dies_after(&self, line: Option<Line>) {
        self.last
            .store(line.map_or(u64::MAX, |l| l.0), Ordering::SeqCst);
    }
}

impl Store for Mortal {
    fn append(&self, claim: &Claim, batch: Batch) -> Boxed<'static, Result<(), StoreError>> {
        let last = self.last.load(Ordering::SeqCst);
        if batch.rows.last().is_some_and(|row| row.n.0 > last) {
            return Box::pin(async move {
                Err(StoreError::Io {
                    place: "the test".into(),
                    source: Arc::new(std::io::Error::other("the process was killed")),
                })
            });
        }
        self.inner.append(claim, batch)
    }

    fn create(&self, session: NewSession) -> Boxed<'_, Result<(), StoreError>> {
        self.inner.create(session)
    }
    fn claim<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Claim, StoreError>> {
        self.inner.claim(session)
    }
    fn rows<'a>(
        &'a self,
        session: &'a str,
        from: Line,
        to: Line,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Row>, StoreError>> {
        self.inner.rows(session, from, to, limit)
    }
    fn row<'a>(&'a self, session: &'a str, n: Line) -> Boxed<'a, Result<Option<Row>, StoreError>> {
        self.inner.row(session, n)
    }
    fn row_now(&self, session: &str, n: Line) -> Result<Option<Row>, StoreError> {
        self.inner.row_now(session, n)
    }
    fn blob_now(&self, hash: &[u8; 32]) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.inner.blob_now(hash)
    }
    fn head<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Line, StoreError>> {
        self.inner.head(session)
    }
    fn rewrite<'a>(&'a self, claim: &'a Claim, row: Row) -> Boxed<'a, Result<(), StoreError>> {
        self.inner.rewrite(claim, row)
    }
    fn drop_checkpoints<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<(), StoreError>> {
        self.inner.drop_checkpoints(session)
    }
    fn checkpoint<'a>(
        &'a self,
        session: &'a str,
        of: CheckpointOf,
        at: Line,
    ) -> Boxed<'a, Result<Option<Checkpoint>, StoreError>> {
        self.inner.checkpoint(session, of, at)
    }
    fn put_blob(&self, hash: [u8; 32], bytes: Arc<[u8]>) -> Boxed<'_, Result<(), StoreError>> {
        self.inner.put_blob(hash, bytes)
    }
    fn blob<'a>(&'a self, hash: &'a [u8; 32]) -> Boxed<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        self.inner.blob(hash)
    }
    fn deliver<'a>(
        &'a self,
        session: &'a str,
        message: InboxMessage,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        self.inner.deliver(session, message)
    }
    fn inbox<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Vec<InboxMessage>, StoreError>> {
        self.inner.inbox(session)
    }
    fn inbox_version(&self) -> Boxed<'_, Result<u64, StoreError>> {
        self.inner.inbox_version()
    }
    fn deliver_event(&self, event: BoxedEvent) -> Boxed<'_, Result<bool, StoreError>> {
        self.inner.deliver_event(event)
    }
    fn boxed_events<'a>(
        &'a self,
        network: &'a str,
        event: &'a str,
        key: &'a str,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>> {
        self.inner.boxed_events(network, event, key)
    }
    fn event_box(&self, now: Time, limit: usize) -> Boxed<'_, Result<Vec<BoxedEvent>, StoreError>> {
        self.inner.event_box(now, limit)
    }
    fn sessions<'a>(
        &'a self,
        query: &'a SessionQuery,
    ) -> Boxed<'a, Result<Vec<SessionInfo>, StoreError>> {
        self.inner.sessions(query)
    }
    fn timers(
        &self,
        until: Time,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<(SessionId, Id, Time)>, StoreError>> {
        self.inner.timers(until, limit)
    }
}
