//! A store on top of another store that intercepts only what is appended.

use super::{
    Appended, Batch, Blobs, BoxedEvent, Checkpoint, CheckpointOf, Claim, Drawn, Inbox,
    InboxMessage, Left, Limit, Lists, Log, Memories, Memory, MemoryQuery, NewMemory, NewSession,
    NewWorker, Pause, Quotas, Rated, Room, Row, SessionInfo, SessionQuery, Store, StoreError,
    Taken, Wake, Worker,
};
use crate::Boxed;
use futures::stream::BoxStream;
use std::sync::Arc;
use steersman_machine::stored::ids::{Line, Time};

/// Intercepts appends to the store below, to count, delay or refuse them. All other operations go to that store directly. A type
/// that implements this trait is a [`Store`].
pub trait Layer: Send + Sync + 'static {
    /// Returns the store that keeps everything.
    fn below(&self) -> &dyn Store;

    /// Handles a batch as [`Log::append`] does. The implementation passes the batch on to the store below.
    fn append(&self, claim: &Claim, batch: Batch) -> Appended;
}

impl<L: Layer> Log for L {
    fn append(&self, claim: &Claim, batch: Batch) -> Appended {
        Layer::append(self, claim, batch)
    }
    fn create(&self, session: NewSession) -> Boxed<'_, Result<(), StoreError>> {
        self.below().create(session)
    }
    fn claim<'a>(
        &'a self,
        session: &'a str,
        by: &'a Worker,
    ) -> Boxed<'a, Result<Claim, StoreError>> {
        self.below().claim(session, by)
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
}

impl<L: Layer> Inbox for L {
    fn deliver<'a>(
        &'a self,
        session: &'a str,
        message: InboxMessage,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        self.below().deliver(session, message)
    }
    fn inbox<'a>(
        &'a self,
        session: &'a str,
    ) -> Boxed<'a, Result<(u64, Vec<InboxMessage>), StoreError>> {
        self.below().inbox(session)
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
}

impl<L: Layer> Lists for L {
    fn enroll(&self, new: NewWorker) -> Boxed<'_, Result<Worker, StoreError>> {
        self.below().enroll(new)
    }
    fn take<'a>(&'a self, by: &'a Worker, room: Room) -> Boxed<'a, Result<Taken, StoreError>> {
        self.below().take(by, room)
    }
    fn release(&self, claim: Claim, left: Left) -> Appended {
        self.below().release(claim, left)
    }
    fn wakes(&self, by: &Worker) -> BoxStream<'static, Wake> {
        self.below().wakes(by)
    }
    fn sessions<'a>(
        &'a self,
        query: &'a SessionQuery,
    ) -> Boxed<'a, Result<Vec<SessionInfo>, StoreError>> {
        self.below().sessions(query)
    }
    fn damaged_lists(&self) -> Boxed<'_, Result<Vec<String>, StoreError>> {
        self.below().damaged_lists()
    }
}

impl<L: Layer> Blobs for L {
    fn put_blob(&self, hash: [u8; 32], bytes: Arc<[u8]>) -> Boxed<'_, Result<(), StoreError>> {
        self.below().put_blob(hash, bytes)
    }
    fn blob<'a>(&'a self, hash: &'a [u8; 32]) -> Boxed<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        self.below().blob(hash)
    }
    fn blob_now(&self, hash: &[u8; 32]) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.below().blob_now(hash)
    }
    fn drop_blobs(&self, hashes: Vec<[u8; 32]>) -> Boxed<'_, Result<u64, StoreError>> {
        self.below().drop_blobs(hashes)
    }
}

impl<L: Layer> Memories for L {
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

impl<L: Layer> Quotas for L {
    fn draw<'a>(
        &'a self,
        limit: &'a Limit,
        wanted: u64,
        now: Time,
    ) -> Boxed<'a, Result<Drawn, StoreError>> {
        self.below().draw(limit, wanted, now)
    }
    fn give_back<'a>(
        &'a self,
        limit: &'a Limit,
        drawn: Drawn,
    ) -> Boxed<'a, Result<(), StoreError>> {
        self.below().give_back(limit, drawn)
    }
    fn pause(&self, pause: Pause) -> Boxed<'_, Result<(), StoreError>> {
        self.below().pause(pause)
    }
    fn pauses(&self, now: Time) -> Boxed<'_, Result<Vec<Pause>, StoreError>> {
        self.below().pauses(now)
    }
}
