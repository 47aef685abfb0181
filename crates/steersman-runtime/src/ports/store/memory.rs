//! A store in memory. It is for tests, for runs that need not outlive their process, and, with a simulated sync, for benchmarks
//! of disk latency.

use super::queue::Queue;
use super::tables::Tables;
use super::{
    Accounts, Appended, Batch, Blobs, BoxedEvent, COMPANY, Checkpoint, CheckpointOf, Claim,
    Conversation, Credential, CredentialOf, Credentials, Delivered, Drawn, Holdings, Inbox,
    InboxMessage, Left, Limit, Lists, Log, Memories, Memory, MemoryQuery, NewMemory, NewSession,
    NewWorker, Pause, Quotas, Rated, Room, Row, Schedule, ScheduleId, Schedules, Scope, SessionId,
    SessionInfo, SessionQuery, StoreError, Taken, Token, Wake, Webhook, WebhookId, Worker, bounds,
};
use crate::Boxed;
use futures::stream::BoxStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use steersman_machine::stored::ids::{Line, Time};
use tokio::sync::oneshot;

/// A store in memory. Clones share the same sessions. A session is free again when all clones of its [`Claim`] are dropped.
#[derive(Clone, Default)]
pub struct MemoryStore {
    tables: Arc<Mutex<Tables>>,
    disk: Option<Arc<Disk>>,
}

/// A thread that simulates a disk.
struct Disk {
    queue: Arc<Queue<Waiting>>,
    syncs: Arc<AtomicU64>,
}

struct Waiting {
    claim: Claim,
    write: Write,
    done: oneshot::Sender<Result<(), StoreError>>,
}

/// A write that waits for its sync.
enum Write {
    Append(Box<Batch>),
    Release(Box<Left>),
}

impl Write {
    fn to(self, tables: &mut Tables, claim: &Claim) -> Result<(), StoreError> {
        match self {
            Self::Append(batch) => tables.append(claim, *batch),
            Self::Release(left) => {
                tables.release(claim, *left);
                Ok(())
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty store with a simulated sync of this duration. Batches that wait meanwhile share the next sync, as on a
    /// disk.
    pub fn with_sync(sync: Duration) -> Self {
        let tables = Arc::<Mutex<Tables>>::default();
        let queue = Arc::<Queue<Waiting>>::default();
        let syncs = Arc::<AtomicU64>::default();
        let disk = Disk {
            queue: queue.clone(),
            syncs: syncs.clone(),
        };
        let written = tables.clone();
        std::thread::spawn(move || {
            while let Some(group) = queue.group(COMPANY) {
                std::thread::sleep(sync);
                syncs.fetch_add(1, Ordering::Relaxed);
                let mut tables = lock(&written);
                for waiting in group {
                    let result = waiting.write.to(&mut tables, &waiting.claim);
                    // A caller that does not wait any more has dropped its end.
                    let _ = waiting.done.send(result);
                }
            }
        });
        Self {
            tables,
            disk: Some(Arc::new(disk)),
        }
    }

    /// Returns the number of syncs of a store made by [`MemoryStore::with_sync`].
    pub fn syncs(&self) -> u64 {
        let syncs = self.disk.as_ref().map(|d| &d.syncs);
        syncs.map_or(0, |s| s.load(Ordering::Relaxed))
    }

    /// Flips the lowest bit of one byte of a stored row, for tests. Returns false if there is no such row or byte.
    pub fn damage(&self, session: &str, n: Line, byte: usize) -> bool {
        self.tables().damage(session, n, byte)
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        lock(&self.tables)
    }

    /// Writes after all writes that were queued before.
    fn write(&self, claim: Claim, write: Write, urgent: bool) -> Appended {
        let Some(disk) = &self.disk else {
            return ready(write.to(&mut self.tables(), &claim));
        };
        let (done, result) = oneshot::channel();
        let (session, epoch) = (claim.session.clone(), claim.epoch);
        // This cannot fail: the queue closes with the last handle, and this is one of them.
        let _ = disk.queue.push(Waiting { claim, write, done }, urgent);
        Box::pin(async move {
            result
                .await
                .unwrap_or(Err(StoreError::Fenced { session, epoch }))
        })
    }
}

fn lock(tables: &Mutex<Tables>) -> MutexGuard<'_, Tables> {
    tables.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ready<'a, T: Send + 'a>(value: T) -> Boxed<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Log for MemoryStore {
    fn append(&self, claim: &Claim, batch: Batch) -> Appended {
        let urgent = batch.urgent;
        self.write(claim.clone(), Write::Append(Box::new(batch)), urgent)
    }
    fn create(&self, session: NewSession) -> Boxed<'_, Result<(), StoreError>> {
        ready(self.tables().create(session))
    }
    fn claim<'a>(
        &'a self,
        session: &'a str,
        by: &'a Worker,
    ) -> Boxed<'a, Result<Claim, StoreError>> {
        ready(self.tables().claim(session, by))
    }
    fn rows<'a>(
        &'a self,
        session: &'a str,
        from: Line,
        to: Line,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Row>, StoreError>> {
        ready(self.tables().rows(session, from, to, limit))
    }
    fn row<'a>(&'a self, session: &'a str, n: Line) -> Boxed<'a, Result<Option<Row>, StoreError>> {
        ready(self.row_now(session, n))
    }
    fn row_now(&self, session: &str, n: Line) -> Result<Option<Row>, StoreError> {
        self.tables().row(session, n)
    }
    fn head<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Line, StoreError>> {
        let tables = self.tables();
        ready(tables.session(session).map(super::tables::Session::head))
    }
    fn drop_checkpoints<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<(), StoreError>> {
        let mut tables = self.tables();
        let session = tables.session_mut(session);
        ready(session.map(|session| session.checkpoints.clear()))
    }
    fn checkpoint<'a>(
        &'a self,
        session: &'a str,
        of: CheckpointOf,
        at: Line,
    ) -> Boxed<'a, Result<Option<Checkpoint>, StoreError>> {
        ready(self.tables().checkpoint(session, of, at))
    }
}

impl Inbox for MemoryStore {
    fn deliver<'a>(
        &'a self,
        session: &'a str,
        message: InboxMessage,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        ready(self.tables().deliver(session, message))
    }
    fn inbox<'a>(
        &'a self,
        session: &'a str,
    ) -> Boxed<'a, Result<(u64, Vec<InboxMessage>), StoreError>> {
        ready(self.tables().inbox(session))
    }
    fn deliver_event(&self, event: BoxedEvent) -> Boxed<'_, Result<bool, StoreError>> {
        ready(self.tables().deliver_event(event))
    }
    fn boxed_events<'a>(
        &'a self,
        of: &'a Scope,
        network: &'a str,
        event: &'a str,
        key: &'a str,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>> {
        ready(Ok(self.tables().boxed_events(of, network, event, key)))
    }
    fn event_box<'a>(
        &'a self,
        of: Option<&'a Scope>,
        now: Time,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>> {
        ready(Ok(self.tables().event_box(of, now, limit)))
    }
}

impl Lists for MemoryStore {
    fn enroll(&self, new: NewWorker) -> Boxed<'_, Result<Worker, StoreError>> {
        ready(Ok(self.tables().enroll(new)))
    }
    fn take<'a>(&'a self, by: &'a Worker, room: Room) -> Boxed<'a, Result<Taken, StoreError>> {
        ready(Ok(self.tables().take(by, &room)))
    }
    fn release(&self, claim: Claim, left: Left) -> Appended {
        self.write(claim, Write::Release(Box::new(left)), true)
    }
    fn wakes(&self, by: &Worker) -> BoxStream<'static, Wake> {
        self.tables().wakes(by)
    }
    fn sessions<'a>(
        &'a self,
        query: &'a SessionQuery,
    ) -> Boxed<'a, Result<Vec<SessionInfo>, StoreError>> {
        ready(Ok(self.tables().sessions(query)))
    }
}

impl Blobs for MemoryStore {
    fn put_blob(&self, hash: [u8; 32], bytes: Arc<[u8]>) -> Boxed<'_, Result<(), StoreError>> {
        self.tables().put_blob(hash, bytes);
        ready(Ok(()))
    }
    fn blob<'a>(&'a self, hash: &'a [u8; 32]) -> Boxed<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        ready(self.blob_now(hash))
    }
    fn blob_now(&self, hash: &[u8; 32]) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.tables().blob(hash)
    }
    fn drop_blobs(&self, hashes: Vec<[u8; 32]>) -> Boxed<'_, Result<u64, StoreError>> {
        ready(Ok(self.tables().drop_blobs(&hashes)))
    }
}

impl Memories for MemoryStore {
    fn remember(&self, new: NewMemory) -> Boxed<'_, Result<u64, StoreError>> {
        let mut tables = self.tables();
        let hash = *blake3::hash(&new.content).as_bytes();
        let content = new.content.clone();
        let kept = tables.remember(new, hash);
        if kept.is_ok() {
            tables.put_blob(hash, content);
        }
        ready(kept)
    }
    fn memories(&self, query: MemoryQuery) -> Boxed<'_, Result<Vec<Memory>, StoreError>> {
        ready(Ok(self.tables().memories(&query)))
    }
    fn rate_memory(
        &self,
        id: u64,
        rated: Rated,
        by_person: bool,
    ) -> Boxed<'_, Result<bool, StoreError>> {
        ready(Ok(self.tables().rate_memory(id, rated, by_person)))
    }
    fn forget_memories(&self, ids: Vec<u64>) -> Boxed<'_, Result<u64, StoreError>> {
        ready(Ok(self.tables().forget_memories(&ids)))
    }
}

impl Quotas for MemoryStore {
    fn draw<'a>(
        &'a self,
        limit: &'a Limit,
        wanted: u64,
        opens: Time,
    ) -> Boxed<'a, Result<Drawn, StoreError>> {
        ready(Ok(self.tables().quotas.draw(limit, wanted, opens)))
    }
    fn drawn<'a>(&'a self, limit: &'a Limit, opens: Time) -> Boxed<'a, Result<u64, StoreError>> {
        ready(Ok(self.tables().quotas.used(limit, opens)))
    }
    fn give_back<'a>(
        &'a self,
        limit: &'a Limit,
        drawn: Drawn,
    ) -> Boxed<'a, Result<(), StoreError>> {
        self.tables().quotas.give_back(limit, drawn);
        ready(Ok(()))
    }
    fn pause(&self, pause: Pause) -> Boxed<'_, Result<(), StoreError>> {
        self.tables().quotas.pause(pause);
        ready(Ok(()))
    }
    fn pauses(&self, now: Time) -> Boxed<'_, Result<Vec<Pause>, StoreError>> {
        ready(Ok(self.tables().quotas.pauses(now)))
    }
}

impl Accounts for MemoryStore {
    fn digest_key(&self) -> Boxed<'_, Result<[u8; 32], StoreError>> {
        ready(Ok(self.tables().registers.digest_key))
    }
    fn token<'a>(&'a self, name: &'a str) -> Boxed<'a, Result<Option<Token>, StoreError>> {
        ready(Ok(self.tables().registers.token(name)))
    }
    fn put_token(&self, token: Token) -> Boxed<'_, Result<bool, StoreError>> {
        let fits = bounds::token(&token);
        ready(fits.map(|()| self.tables().registers.put_token(token)))
    }
    fn tokens<'a>(
        &'a self,
        tenant: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Token>, StoreError>> {
        ready(Ok(self.tables().registers.tokens(tenant, after, limit)))
    }
    fn revoke<'a>(
        &'a self,
        tenant: &'a str,
        name: &'a str,
        at: Time,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        ready(Ok(self.tables().registers.revoke(tenant, name, at)))
    }
    fn used<'a>(&'a self, name: &'a str, hour: Time) -> Boxed<'a, Result<(), StoreError>> {
        self.tables().registers.used(name, hour);
        ready(Ok(()))
    }
    fn webhooks<'a>(&'a self, tenant: &'a str) -> Boxed<'a, Result<Vec<Webhook>, StoreError>> {
        ready(Ok(self.tables().registers.webhooks(tenant)))
    }
    fn all_webhooks<'a>(
        &'a self,
        after: Option<&'a WebhookId>,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Webhook>, StoreError>> {
        ready(Ok(self.tables().registers.all_webhooks(after, limit)))
    }
    fn mark_webhook<'a>(
        &'a self,
        hook: &'a WebhookId,
        made: Time,
        failing: Option<Arc<str>>,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        let fits = bounds::failing(hook, failing.as_deref());
        ready(fits.map(|()| self.tables().registers.mark_webhook(hook, made, failing)))
    }
    fn put_webhook(&self, webhook: Webhook) -> Boxed<'_, Result<bool, StoreError>> {
        let fits = bounds::webhook(&webhook);
        ready(fits.map(|()| self.tables().registers.put_webhook(webhook)))
    }
    fn drop_webhook<'a>(&'a self, hook: &'a WebhookId) -> Boxed<'a, Result<bool, StoreError>> {
        ready(Ok(self.tables().registers.drop_webhook(hook)))
    }
    fn delivered<'a>(
        &'a self,
        hook: &'a WebhookId,
        session: &'a str,
    ) -> Boxed<'a, Result<Delivered, StoreError>> {
        ready(Ok(self.tables().registers.delivered(hook, session)))
    }
    fn move_delivered<'a>(
        &'a self,
        hook: &'a WebhookId,
        session: &'a str,
        from: Delivered,
        to: Delivered,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        ready(Ok(self.tables().move_delivered(hook, session, from, to)))
    }
    fn behind<'a>(
        &'a self,
        hook: &'a WebhookId,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<SessionId>, StoreError>> {
        ready(Ok(self.tables().behind(hook, limit)))
    }
    fn conversation<'a>(
        &'a self,
        tenant: &'a str,
        digest: [u8; 32],
    ) -> Boxed<'a, Result<Option<(SessionId, Line)>, StoreError>> {
        ready(Ok(self.tables().registers.conversation(tenant, digest)))
    }
    fn put_conversation(&self, head: Conversation) -> Boxed<'_, Result<(), StoreError>> {
        self.tables().registers.put_conversation(head);
        ready(Ok(()))
    }
    fn holdings<'a>(
        &'a self,
        of: &'a Scope,
        delete: bool,
    ) -> Boxed<'a, Result<Holdings, StoreError>> {
        ready(Ok(self.tables().holdings(of, delete)))
    }
}

impl Credentials for MemoryStore {
    fn credential<'a>(
        &'a self,
        of: &'a CredentialOf,
    ) -> Boxed<'a, Result<Option<Credential>, StoreError>> {
        ready(Ok(self.tables().registers.credential(of)))
    }
    fn put_credential<'a>(
        &'a self,
        of: &'a CredentialOf,
        before: u64,
        new: Credential,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        let fits = bounds::credential(of, &new);
        ready(fits.map(|()| self.tables().registers.put_credential(of, before, new)))
    }
    fn drop_credential<'a>(&'a self, of: &'a CredentialOf) -> Boxed<'a, Result<bool, StoreError>> {
        ready(Ok(self.tables().registers.drop_credential(of)))
    }
}

impl Schedules for MemoryStore {
    fn put_schedule(&self, schedule: Schedule) -> Boxed<'_, Result<bool, StoreError>> {
        let fits = bounds::schedule(&schedule.id);
        ready(fits.map(|()| self.tables().registers.put_schedule(schedule)))
    }
    fn drop_schedule<'a>(&'a self, id: &'a ScheduleId) -> Boxed<'a, Result<bool, StoreError>> {
        ready(Ok(self.tables().registers.drop_schedule(id)))
    }
    fn schedules(
        &self,
        by: Option<Time>,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Schedule>, StoreError>> {
        ready(Ok(self.tables().registers.schedules(by, limit)))
    }
    fn move_schedule<'a>(
        &'a self,
        id: &'a ScheduleId,
        at: Time,
        next: Option<Time>,
        missed: u64,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        ready(Ok(self
            .tables()
            .registers
            .move_schedule(id, at, next, missed)))
    }
}
