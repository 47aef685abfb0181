//! A store on top of another store that intercepts only what is appended.

use super::{
    Batch, BoxedEvent, Checkpoint, CheckpointOf, Claim, InboxMessage, Memory, MemoryQuery,
    NewMemory, NewSession, PlaceWait, Rated, Row, SessionId, SessionInfo, SessionQuery, Store,
    StoreError,
};
use crate::Boxed;
use std::sync::Arc;
use steersman_machine::ids::{Id, Line, Time};

/// Intercepts appends to the store below, to count, delay or refuse them. All other operations go to that store directly. A type
/// that implements this trait is a [`Store`].
pub trait Layer: Send + Sync + 'static {
    /// Returns the store that keeps everything.
    fn below(&self) -> &dyn Store;

    /// Handles a batch as [`Store::append`] does. The implementation passes the batch on to the store below.
    fn append(&self, claim: &Claim, batch: Batch) -> Boxed<'static, Result<(), StoreError>>;
}

impl<L: Layer> Store for L {
    fn append(&self, claim: &Claim, batch: Batch) -> Boxed<'static, Result<(), StoreError>> {
        Layer::append(self, claim, batch)
    }
    fn damaged_lists(&self) -> Boxed<'_, Result<Vec<String>, StoreError>> {
        self.below().damaged_lists()
    }
    fn create(&self, session: NewSession) -> Boxed<'_, Result<(), StoreError>> {
        self.below().create(session)
    }
    fn claim<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Claim, StoreError>> {
        self.below().claim(session)
    }
    fn rows<'a>(
        &'a self,
        session: &'a str,
        from: Line,
        to: Line,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Row>, StoreError>> {
        self.below().rows(session, from, to, limit)
    }
    fn row<'a>(&'a self, session: &'a str, n: Line) -> Boxed<'a, Result<Option<Row>, StoreError>> {
        self.below().row(session, n)
    }
    fn row_now(&self, session: &str, n: Line) -> Result<Option<Row>, StoreError> {
        self.below().row_now(session, n)
    }
    fn blob_now(&self, hash: &[u8; 32]) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.below().blob_now(hash)
    }
    fn head<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Line, StoreError>> {
        self.below().head(session)
    }
    fn rewrite<'a>(&'a self, claim: &'a Claim, row: Row) -> Boxed<'a, Result<(), StoreError>> {
        self.below().rewrite(claim, row)
    }
    fn drop_checkpoints<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<(), StoreError>> {
        self.below().drop_checkpoints(session)
    }
    fn checkpoint<'a>(
        &'a self,
        session: &'a str,
        of: CheckpointOf,
        at: Line,
    ) -> Boxed<'a, Result<Option<Checkpoint>, StoreError>> {
        self.below().checkpoint(session, of, at)
    }
    fn put_blob(&self, hash: [u8; 32], bytes: Arc<[u8]>) -> Boxed<'_, Result<(), StoreError>> {
        self.below().put_blob(hash, bytes)
    }
    fn blob<'a>(&'a self, hash: &'a [u8; 32]) -> Boxed<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        self.below().blob(hash)
    }
    fn deliver<'a>(
        &'a self,
        session: &'a str,
        message: InboxMessage,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        self.below().deliver(session, message)
    }
    fn inbox<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Vec<InboxMessage>, StoreError>> {
        self.below().inbox(session)
    }
    fn inbox_version(&self) -> Boxed<'_, Result<u64, StoreError>> {
        self.below().inbox_version()
    }
    fn deliver_event(&self, event: BoxedEvent) -> Boxed<'_, Result<bool, StoreError>> {
        self.below().deliver_event(event)
    }
    fn boxed_events<'a>(
        &'a self,
        network: &'a str,
        event: &'a str,
        key: &'a str,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>> {
        self.below().boxed_events(network, event, key)
    }
    fn event_box(&self, now: Time, limit: usize) -> Boxed<'_, Result<Vec<BoxedEvent>, StoreError>> {
        self.below().event_box(now, limit)
    }
    fn sessions<'a>(
        &'a self,
        query: &'a SessionQuery,
    ) -> Boxed<'a, Result<Vec<SessionInfo>, StoreError>> {
        self.below().sessions(query)
    }
    fn timers(
        &self,
        until: Time,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<(SessionId, Id, Time)>, StoreError>> {
        self.below().timers(until, limit)
    }

    fn outages(&self, each: usize) -> Boxed<'_, Result<Vec<PlaceWait>, StoreError>> {
        self.below().outages(each)
    }
    fn remember(&self, new: NewMemory) -> Boxed<'_, Result<u64, StoreError>> {
        self.below().remember(new)
    }
    fn memories(&self, query: MemoryQuery) -> Boxed<'_, Result<Vec<Memory>, StoreError>> {
        self.below().memories(query)
    }
    fn rate_memory(
        &self,
        id: u64,
        rated: Rated,
        by_person: bool,
    ) -> Boxed<'_, Result<bool, StoreError>> {
        self.below().rate_memory(id, rated, by_person)
    }
    fn forget_memories(&self, ids: Vec<u64>) -> Boxed<'_, Result<u64, StoreError>> {
        self.below().forget_memories(ids)
    }
}
