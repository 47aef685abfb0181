//! A store in memory that behaves like an engine for durable objects. It tests that callers rely only on the port's contract.
//!
//! * Reads are not atomic: the rows of a batch become visible one by one, the rest of the batch later, the head last.
//! * A consumed message is returned once more, late.
//! * Values are small: a blob or checkpoint over [`MAX_VALUE`] is kept in pieces.
//! * Lists lag behind the rows.
//!
//! The store does keep the promises of such engines: it has one owner, writes batches in order and completely, and everything of
//! a batch is visible before its append ends.

use super::tables::Tables;
use super::{
    Accounts, Appended, Batch, Blobs, BoxedEvent, Checkpoint, CheckpointOf, Claim, Conversation,
    Credential, CredentialOf, Credentials, Delivered, Drawn, Holdings, Inbox, InboxMessage, Left,
    Limit, Lists, Log, MAX_VALUE, Memories, Memory, MemoryQuery, NewMemory, NewSession, NewWorker,
    Pause, Quotas, Rated, Room, Row, Schedule, ScheduleId, Schedules, Scope, SessionId,
    SessionInfo, SessionQuery, StoreError, Taken, Token, Wake, Webhook, WebhookId, Worker, bounds,
    check,
};
use crate::Boxed;
use futures::stream::BoxStream;
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use steersman_machine::stored::ids::{Line, Time};

/// A store in memory that is hard to use correctly. Clones share the same sessions.
#[derive(Clone, Default)]
pub struct AwkwardStore {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    tables: Tables,
    /// Steps that will make data visible, in order.
    steps: VecDeque<Step>,
    /// The last line that was queued and the last that counts, by session.
    lines: HashMap<SessionId, Lines>,
    /// Consumed messages that will be returned once more.
    late: HashMap<SessionId, Vec<InboxMessage>>,
    /// Blobs, split into pieces.
    pieces: HashMap<[u8; 32], Vec<Arc<[u8]>>>,
    checkpoints: HashMap<(SessionId, CheckpointOf), Vec<Pieces>>,
    queued: u64,
    done: u64,
}

/// A checkpoint, split into pieces.
type Pieces = (Line, Vec<Arc<[u8]>>);

#[derive(Copy, Clone, Default)]
struct Lines {
    queued: Line,
    head: Line,
    failed: Option<u64>,
}

enum Step {
    Row(Claim, Row),
    Rest(Claim, Box<Batch>),
    Head(Claim, Line),
}

impl Inner {
    /// Makes the data of one more step visible.
    fn step(&mut self) {
        match self.steps.pop_front() {
            None => {}
            Some(Step::Row(claim, row)) => {
                let batch = Batch {
                    rows: vec![row],
                    ..Batch::default()
                };
                self.tables.write_rows(&claim, &batch);
            }
            Some(Step::Rest(claim, mut batch)) => {
                if let Ok(session) = self.tables.session(&claim.session) {
                    let consumed = session.inbox.iter();
                    let consumed = consumed.filter(|m| batch.consumed.contains(&m.id)).cloned();
                    let late = self.late.entry(claim.session.clone()).or_default();
                    late.extend(consumed);
                }
                for (hash, bytes) in std::mem::take(&mut batch.blobs) {
                    self.pieces.entry(hash).or_insert_with(|| split(&bytes));
                }
                if !batch.rewritten.is_empty() {
                    self.checkpoints.retain(|(of, _), _| *of != claim.session);
                }
                for (of, checkpoint) in std::mem::take(&mut batch.checkpoints) {
                    let kept = self
                        .checkpoints
                        .entry((claim.session.clone(), of))
                        .or_default();
                    kept.retain(|(at, _)| *at != checkpoint.at);
                    kept.push((checkpoint.at, split(&checkpoint.bytes)));
                }
                self.tables.write_rest(&claim, *batch);
            }
            Some(Step::Head(claim, line)) => {
                let lines = self.lines.entry(claim.session.clone()).or_default();
                lines.head = lines.head.max(line);
                self.done += 1;
            }
        }
    }

    fn settle(&mut self) {
        while !self.steps.is_empty() {
            self.step();
        }
    }

    fn queue(&mut self, claim: &Claim, mut batch: Batch) -> Result<u64, StoreError> {
        if !batch.rewritten.is_empty() {
            self.settle();
        }
        let epoch = self.tables.epoch(&claim.session)?;
        let lines = self.lines.entry(claim.session.clone()).or_default();
        if epoch != claim.epoch || lines.failed == Some(claim.epoch) {
            return Err(StoreError::Fenced {
                session: claim.session.clone(),
                epoch: claim.epoch,
            });
        }
        let fits = check(&claim.session, lines.queued, &batch)
            .and_then(|()| self.tables.has_rows(&claim.session, &batch.rewritten));
        if let Err(e) = fits {
            lines.failed = Some(claim.epoch);
            return Err(e);
        }
        if let Some(last) = batch.rows.last() {
            lines.queued = last.n;
        }
        let head = lines.queued;
        for row in std::mem::take(&mut batch.rows) {
            self.steps.push_back(Step::Row(claim.clone(), row));
        }
        self.steps
            .push_back(Step::Rest(claim.clone(), Box::new(batch)));
        self.steps.push_back(Step::Head(claim.clone(), head));
        self.queued += 1;
        Ok(self.queued)
    }
}

fn split(bytes: &[u8]) -> Vec<Arc<[u8]>> {
    bytes.chunks(MAX_VALUE).map(Arc::from).collect()
}

impl AwkwardStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Flips the lowest bit of one byte of a stored row. Returns false if there is no such row or byte.
    pub fn damage(&self, session: &str, n: Line, byte: usize) -> bool {
        self.inner().tables.damage(session, n, byte)
    }

    /// Ends the lease of a worker: others may take its sessions.
    pub fn ends_lease(&self, of: &Worker) {
        self.inner().tables.ends_lease(of.no);
    }

    /// Ends the lease of a worker whose process stood still meanwhile: others may take its sessions, and it learns of that only from
    /// an error of the store.
    pub fn ends_lease_unheard(&self, of: &Worker) {
        self.inner().tables.frees(of.no);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or changes the tables after one more step, because time passes between two calls.
    fn look<'a, T: Send + 'a>(&self, look: impl FnOnce(&mut Inner) -> T) -> Boxed<'a, T> {
        let mut inner = self.inner();
        inner.step();
        let seen = look(&mut inner);
        Box::pin(std::future::ready(seen))
    }
}

impl Log for AwkwardStore {
    fn append(&self, claim: &Claim, batch: Batch) -> Appended {
        let ticket = self.inner().queue(claim, batch);
        let store = self.clone();
        Box::pin(async move {
            let ticket = ticket?;
            poll_fn(|cx| {
                let mut inner = store.inner();
                inner.step();
                if inner.done >= ticket {
                    return Poll::Ready(Ok(()));
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await
        })
    }
    fn create(&self, session: NewSession) -> Boxed<'_, Result<(), StoreError>> {
        self.look(|i| i.tables.create(session))
    }
    fn claim<'a>(
        &'a self,
        session: &'a str,
        by: &'a Worker,
    ) -> Boxed<'a, Result<Claim, StoreError>> {
        self.look(|i| {
            // Such an engine runs the handlers of one key one after the other.
            i.settle();
            i.tables.claim(session, by)
        })
    }
    fn rows<'a>(
        &'a self,
        session: &'a str,
        from: Line,
        to: Line,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Row>, StoreError>> {
        self.look(|i| i.tables.rows(session, from, to, limit))
    }
    fn row<'a>(&'a self, session: &'a str, n: Line) -> Boxed<'a, Result<Option<Row>, StoreError>> {
        self.look(|i| i.tables.row(session, n))
    }
    fn row_now(&self, session: &str, n: Line) -> Result<Option<Row>, StoreError> {
        self.inner().tables.row(session, n)
    }
    fn head<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Line, StoreError>> {
        self.look(|i| {
            i.tables.session(session)?;
            Ok(i.lines.get(session).map_or(Line::NONE, |l| l.head))
        })
    }
    fn drop_checkpoints<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<(), StoreError>> {
        self.look(|i| {
            i.tables.session(session)?;
            i.checkpoints.retain(|(s, _), _| **s != *session);
            Ok(())
        })
    }
    fn checkpoint<'a>(
        &'a self,
        session: &'a str,
        of: CheckpointOf,
        at: Line,
    ) -> Boxed<'a, Result<Option<Checkpoint>, StoreError>> {
        self.look(|i| {
            i.tables.session(session)?;
            let kept = i.checkpoints.get(&(session.into(), of));
            let newest = kept
                .into_iter()
                .flatten()
                .filter(|(line, _)| *line <= at)
                .max_by_key(|(line, _)| *line);
            Ok(newest.map(|(at, pieces)| Checkpoint {
                at: *at,
                bytes: pieces.concat().into(),
            }))
        })
    }
}

impl Inbox for AwkwardStore {
    fn deliver<'a>(
        &'a self,
        session: &'a str,
        message: InboxMessage,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        self.look(|i| i.tables.deliver(session, message))
    }
    fn inbox<'a>(
        &'a self,
        session: &'a str,
    ) -> Boxed<'a, Result<(u64, Vec<InboxMessage>), StoreError>> {
        self.look(|i| {
            let (mail, mut seen) = i.tables.inbox(session)?;
            // Consumed messages come once more, after the new ones.
            seen.extend(i.late.remove(session).unwrap_or_default());
            Ok((mail, seen))
        })
    }
    fn deliver_event(&self, event: BoxedEvent) -> Boxed<'_, Result<bool, StoreError>> {
        self.look(|i| i.tables.deliver_event(event))
    }
    fn boxed_events<'a>(
        &'a self,
        of: &'a Scope,
        network: &'a str,
        event: &'a str,
        key: &'a str,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>> {
        self.look(|i| Ok(i.tables.boxed_events(of, network, event, key)))
    }
    fn event_box<'a>(
        &'a self,
        of: Option<&'a Scope>,
        now: Time,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>> {
        self.look(|i| Ok(i.tables.event_box(of, now, limit)))
    }
}

impl Lists for AwkwardStore {
    fn enroll(&self, new: NewWorker) -> Boxed<'_, Result<Worker, StoreError>> {
        self.look(|i| Ok(i.tables.enroll(new)))
    }
    fn take<'a>(&'a self, by: &'a Worker, room: Room) -> Boxed<'a, Result<Taken, StoreError>> {
        self.look(|i| {
            i.settle();
            Ok(i.tables.take(by, &room))
        })
    }
    fn release(&self, claim: Claim, left: Left) -> Appended {
        self.look(|i| {
            i.settle();
            i.tables.release(&claim, left);
            Ok(())
        })
    }
    fn wakes(&self, by: &Worker) -> BoxStream<'static, Wake> {
        self.inner().tables.wakes(by)
    }
    fn sessions<'a>(
        &'a self,
        query: &'a SessionQuery,
    ) -> Boxed<'a, Result<Vec<SessionInfo>, StoreError>> {
        self.look(|i| Ok(i.tables.sessions(query)))
    }
}

impl Blobs for AwkwardStore {
    fn put_blob(&self, hash: [u8; 32], bytes: Arc<[u8]>) -> Boxed<'_, Result<(), StoreError>> {
        self.look(|i| {
            i.pieces.entry(hash).or_insert_with(|| split(&bytes));
            Ok(())
        })
    }
    fn blob<'a>(&'a self, hash: &'a [u8; 32]) -> Boxed<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        self.inner().step();
        Box::pin(std::future::ready(self.blob_now(hash)))
    }
    fn blob_now(&self, hash: &[u8; 32]) -> Result<Option<Arc<[u8]>>, StoreError> {
        let Some(bytes) = self.inner().pieces.get(hash).map(|p| p.concat()) else {
            return Ok(None);
        };
        if blake3::hash(&bytes) == *hash {
            return Ok(Some(bytes.into()));
        }
        Err(StoreError::Corrupt {
            place: format!("blob {}", blake3::Hash::from(*hash).to_hex()),
            what: "its content does not fit its hash".to_owned(),
        })
    }
    fn drop_blobs(&self, hashes: Vec<[u8; 32]>) -> Boxed<'_, Result<u64, StoreError>> {
        self.look(|i| {
            let gone = hashes
                .iter()
                .filter(|hash| i.pieces.remove(*hash).is_some());
            Ok(gone.count() as u64)
        })
    }
}

impl Memories for AwkwardStore {
    fn remember(&self, new: NewMemory) -> Boxed<'_, Result<u64, StoreError>> {
        self.look(|i| {
            let hash = *blake3::hash(&new.content).as_bytes();
            let pieces = split(&new.content);
            let id = i.tables.remember(new, hash)?;
            i.pieces.entry(hash).or_insert(pieces);
            Ok(id)
        })
    }
    fn memories(&self, query: MemoryQuery) -> Boxed<'_, Result<Vec<Memory>, StoreError>> {
        self.look(|i| Ok(i.tables.memories(&query)))
    }
    fn rate_memory(
        &self,
        id: u64,
        rated: Rated,
        by_person: bool,
    ) -> Boxed<'_, Result<bool, StoreError>> {
        self.look(|i| Ok(i.tables.rate_memory(id, rated, by_person)))
    }
    fn forget_memories(&self, ids: Vec<u64>) -> Boxed<'_, Result<u64, StoreError>> {
        self.look(|i| Ok(i.tables.forget_memories(&ids)))
    }
}

impl Quotas for AwkwardStore {
    fn draw<'a>(
        &'a self,
        limit: &'a Limit,
        wanted: u64,
        opens: Time,
    ) -> Boxed<'a, Result<Drawn, StoreError>> {
        self.look(|i| Ok(i.tables.quotas.draw(limit, wanted, opens)))
    }
    fn drawn<'a>(&'a self, limit: &'a Limit, opens: Time) -> Boxed<'a, Result<u64, StoreError>> {
        self.look(|i| Ok(i.tables.quotas.used(limit, opens)))
    }
    fn give_back<'a>(
        &'a self,
        limit: &'a Limit,
        drawn: Drawn,
    ) -> Boxed<'a, Result<(), StoreError>> {
        self.look(|i| {
            i.tables.quotas.give_back(limit, drawn);
            Ok(())
        })
    }
    fn pause(&self, pause: Pause) -> Boxed<'_, Result<(), StoreError>> {
        self.look(|i| {
            i.tables.quotas.pause(pause);
            Ok(())
        })
    }
    fn pauses(&self, now: Time) -> Boxed<'_, Result<Vec<Pause>, StoreError>> {
        self.look(|i| Ok(i.tables.quotas.pauses(now)))
    }
}

impl Accounts for AwkwardStore {
    fn digest_key(&self) -> Boxed<'_, Result<[u8; 32], StoreError>> {
        self.look(|i| Ok(i.tables.registers.digest_key))
    }
    fn token<'a>(&'a self, name: &'a str) -> Boxed<'a, Result<Option<Token>, StoreError>> {
        self.look(|i| Ok(i.tables.registers.token(name)))
    }
    fn put_token(&self, token: Token) -> Boxed<'_, Result<bool, StoreError>> {
        let fits = bounds::token(&token);
        self.look(|i| fits.map(|()| i.tables.registers.put_token(token)))
    }
    fn tokens<'a>(
        &'a self,
        tenant: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Token>, StoreError>> {
        self.look(|i| Ok(i.tables.registers.tokens(tenant, after, limit)))
    }
    fn revoke<'a>(
        &'a self,
        tenant: &'a str,
        name: &'a str,
        at: Time,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        self.look(|i| Ok(i.tables.registers.revoke(tenant, name, at)))
    }
    fn used<'a>(&'a self, name: &'a str, hour: Time) -> Boxed<'a, Result<(), StoreError>> {
        self.look(|i| {
            i.tables.registers.used(name, hour);
            Ok(())
        })
    }
    fn webhooks<'a>(&'a self, tenant: &'a str) -> Boxed<'a, Result<Vec<Webhook>, StoreError>> {
        self.look(|i| Ok(i.tables.registers.webhooks(tenant)))
    }
    fn all_webhooks<'a>(
        &'a self,
        after: Option<&'a WebhookId>,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Webhook>, StoreError>> {
        self.look(|i| Ok(i.tables.registers.all_webhooks(after, limit)))
    }
    fn mark_webhook<'a>(
        &'a self,
        hook: &'a WebhookId,
        made: Time,
        failing: Option<Arc<str>>,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        let fits = bounds::failing(hook, failing.as_deref());
        self.look(|i| fits.map(|()| i.tables.registers.mark_webhook(hook, made, failing)))
    }
    fn put_webhook(&self, webhook: Webhook) -> Boxed<'_, Result<bool, StoreError>> {
        let fits = bounds::webhook(&webhook);
        self.look(|i| fits.map(|()| i.tables.registers.put_webhook(webhook)))
    }
    fn drop_webhook<'a>(&'a self, hook: &'a WebhookId) -> Boxed<'a, Result<bool, StoreError>> {
        self.look(|i| Ok(i.tables.registers.drop_webhook(hook)))
    }
    fn delivered<'a>(
        &'a self,
        hook: &'a WebhookId,
        session: &'a str,
    ) -> Boxed<'a, Result<Delivered, StoreError>> {
        self.look(|i| Ok(i.tables.registers.delivered(hook, session)))
    }
    fn move_delivered<'a>(
        &'a self,
        hook: &'a WebhookId,
        session: &'a str,
        from: Delivered,
        to: Delivered,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        self.look(|i| Ok(i.tables.move_delivered(hook, session, from, to)))
    }
    fn behind<'a>(
        &'a self,
        hook: &'a WebhookId,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<SessionId>, StoreError>> {
        self.look(|i| Ok(i.tables.behind(hook, limit)))
    }
    fn conversation<'a>(
        &'a self,
        tenant: &'a str,
        digest: [u8; 32],
    ) -> Boxed<'a, Result<Option<(SessionId, Line)>, StoreError>> {
        self.look(|i| Ok(i.tables.registers.conversation(tenant, digest)))
    }
    fn put_conversation(&self, head: Conversation) -> Boxed<'_, Result<(), StoreError>> {
        self.look(|i| {
            i.tables.registers.put_conversation(head);
            Ok(())
        })
    }
    fn holdings<'a>(
        &'a self,
        of: &'a Scope,
        delete: bool,
    ) -> Boxed<'a, Result<Holdings, StoreError>> {
        self.look(|i| Ok(i.tables.holdings(of, delete)))
    }
}

impl Credentials for AwkwardStore {
    fn credential<'a>(
        &'a self,
        of: &'a CredentialOf,
    ) -> Boxed<'a, Result<Option<Credential>, StoreError>> {
        self.look(|i| Ok(i.tables.registers.credential(of)))
    }
    fn put_credential<'a>(
        &'a self,
        of: &'a CredentialOf,
        before: u64,
        new: Credential,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        let fits = bounds::credential(of, &new);
        self.look(|i| fits.map(|()| i.tables.registers.put_credential(of, before, new)))
    }
    fn drop_credential<'a>(&'a self, of: &'a CredentialOf) -> Boxed<'a, Result<bool, StoreError>> {
        self.look(|i| Ok(i.tables.registers.drop_credential(of)))
    }
}

impl Schedules for AwkwardStore {
    fn put_schedule(&self, schedule: Schedule) -> Boxed<'_, Result<bool, StoreError>> {
        let fits = bounds::schedule(&schedule.id);
        self.look(|i| fits.map(|()| i.tables.registers.put_schedule(schedule)))
    }
    fn drop_schedule<'a>(&'a self, id: &'a ScheduleId) -> Boxed<'a, Result<bool, StoreError>> {
        self.look(|i| Ok(i.tables.registers.drop_schedule(id)))
    }
    fn schedules(
        &self,
        by: Option<Time>,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Schedule>, StoreError>> {
        self.look(|i| Ok(i.tables.registers.schedules(by, limit)))
    }
    fn move_schedule<'a>(
        &'a self,
        id: &'a ScheduleId,
        at: Time,
        next: Option<Time>,
        missed: u64,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        self.look(|i| Ok(i.tables.registers.move_schedule(id, at, next, missed)))
    }
}
