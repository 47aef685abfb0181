//! A store on top of another store that intercepts only what is appended.

use super::{
    Accounts, Appended, Batch, Blobs, BoxedEvent, Checkpoint, CheckpointOf, Claim, Conversation,
    Credential, CredentialOf, Credentials, Delivered, Drawn, Holdings, Inbox, InboxMessage, Left,
    Limit, Lists, Log, Memories, Memory, MemoryQuery, NewMemory, NewSession, NewWorker, Pause,
    Quotas, Rated, Room, Row, Schedule, ScheduleId, Schedules, Scope, SessionId, SessionInfo,
    SessionQuery, Store, StoreError, Taken, Token, Wake, Webhook, WebhookId, Worker,
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
    fn version(&self) -> Option<u64> {
        self.below().version()
    }
    fn head<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Line, StoreError>> {
        self.below().head(session)
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
        of: &'a Scope,
        network: &'a str,
        event: &'a str,
        key: &'a str,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>> {
        self.below().boxed_events(of, network, event, key)
    }
    fn event_box<'a>(
        &'a self,
        of: Option<&'a Scope>,
        now: Time,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>> {
        self.below().event_box(of, now, limit)
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
        opens: Time,
    ) -> Boxed<'a, Result<Drawn, StoreError>> {
        self.below().draw(limit, wanted, opens)
    }
    fn drawn<'a>(&'a self, limit: &'a Limit, opens: Time) -> Boxed<'a, Result<u64, StoreError>> {
        self.below().drawn(limit, opens)
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

impl<L: Layer> Accounts for L {
    fn digest_key(&self) -> Boxed<'_, Result<[u8; 32], StoreError>> {
        self.below().digest_key()
    }
    fn token<'a>(&'a self, name: &'a str) -> Boxed<'a, Result<Option<Token>, StoreError>> {
        self.below().token(name)
    }
    fn put_token(&self, token: Token) -> Boxed<'_, Result<bool, StoreError>> {
        self.below().put_token(token)
    }
    fn tokens<'a>(
        &'a self,
        tenant: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Token>, StoreError>> {
        self.below().tokens(tenant, after, limit)
    }
    fn revoke<'a>(
        &'a self,
        tenant: &'a str,
        name: &'a str,
        at: Time,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        self.below().revoke(tenant, name, at)
    }
    fn used<'a>(&'a self, name: &'a str, hour: Time) -> Boxed<'a, Result<(), StoreError>> {
        self.below().used(name, hour)
    }
    fn webhooks<'a>(&'a self, tenant: &'a str) -> Boxed<'a, Result<Vec<Webhook>, StoreError>> {
        self.below().webhooks(tenant)
    }
    fn all_webhooks<'a>(
        &'a self,
        after: Option<&'a WebhookId>,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Webhook>, StoreError>> {
        self.below().all_webhooks(after, limit)
    }
    fn mark_webhook<'a>(
        &'a self,
        hook: &'a WebhookId,
        made: Time,
        failing: Option<Arc<str>>,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        self.below().mark_webhook(hook, made, failing)
    }
    fn put_webhook(&self, webhook: Webhook) -> Boxed<'_, Result<bool, StoreError>> {
        self.below().put_webhook(webhook)
    }
    fn drop_webhook<'a>(&'a self, hook: &'a WebhookId) -> Boxed<'a, Result<bool, StoreError>> {
        self.below().drop_webhook(hook)
    }
    fn delivered<'a>(
        &'a self,
        hook: &'a WebhookId,
        session: &'a str,
    ) -> Boxed<'a, Result<Delivered, StoreError>> {
        self.below().delivered(hook, session)
    }
    fn move_delivered<'a>(
        &'a self,
        hook: &'a WebhookId,
        session: &'a str,
        from: Delivered,
        to: Delivered,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        self.below().move_delivered(hook, session, from, to)
    }
    fn behind<'a>(
        &'a self,
        hook: &'a WebhookId,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<SessionId>, StoreError>> {
        self.below().behind(hook, limit)
    }
    fn conversation<'a>(
        &'a self,
        tenant: &'a str,
        digest: [u8; 32],
    ) -> Boxed<'a, Result<Option<(SessionId, Line)>, StoreError>> {
        self.below().conversation(tenant, digest)
    }
    fn put_conversation(&self, head: Conversation) -> Boxed<'_, Result<(), StoreError>> {
        self.below().put_conversation(head)
    }
    fn holdings<'a>(
        &'a self,
        of: &'a Scope,
        delete: bool,
    ) -> Boxed<'a, Result<Holdings, StoreError>> {
        self.below().holdings(of, delete)
    }
}

impl<L: Layer> Credentials for L {
    fn credential<'a>(
        &'a self,
        of: &'a CredentialOf,
    ) -> Boxed<'a, Result<Option<Credential>, StoreError>> {
        self.below().credential(of)
    }
    fn put_credential<'a>(
        &'a self,
        of: &'a CredentialOf,
        before: u64,
        new: Credential,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        self.below().put_credential(of, before, new)
    }
    fn drop_credential<'a>(&'a self, of: &'a CredentialOf) -> Boxed<'a, Result<bool, StoreError>> {
        self.below().drop_credential(of)
    }
}

impl<L: Layer> Schedules for L {
    fn put_schedule(&self, schedule: Schedule) -> Boxed<'_, Result<bool, StoreError>> {
        self.below().put_schedule(schedule)
    }
    fn drop_schedule<'a>(&'a self, id: &'a ScheduleId) -> Boxed<'a, Result<bool, StoreError>> {
        self.below().drop_schedule(id)
    }
    fn schedules(
        &self,
        by: Option<Time>,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Schedule>, StoreError>> {
        self.below().schedules(by, limit)
    }
    fn move_schedule<'a>(
        &'a self,
        id: &'a ScheduleId,
        at: Time,
        next: Option<Time>,
        missed: u64,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        self.below().move_schedule(id, at, next, missed)
    }
}
