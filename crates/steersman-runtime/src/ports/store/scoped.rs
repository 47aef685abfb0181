//! A view of a store through which only one tenant, or one subject of a tenant, exists.

use super::{
    Accounts, Appended, Batch, Blobs, BoxedEvent, Checkpoint, CheckpointOf, Claim, Conversation,
    Credential, CredentialOf, Credentials, Delivered, Drawn, Holdings, Inbox, InboxMessage, Left,
    Limit, Lists, Log, Memories, Memory, MemoryQuery, NewMemory, NewSession, NewWorker, Pause,
    Quotas, Rated, Room, Row, Schedule, ScheduleId, Schedules, Scope, SessionId, SessionInfo,
    SessionQuery, Store, StoreError, Taken, Token, Wake, Webhook, WebhookId, Worker,
};
use crate::Boxed;
use futures::stream::BoxStream;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steersman_machine::stored::ids::{Line, Time};

/// Maximum number of sessions whose scope a view remembers.
const REMEMBERED: usize = 4_096;

/// A view of a store through which only what belongs to one [`Scope`] exists. Sessions, events, memories, tokens, webhooks,
/// credentials and schedules of others are answered like those that do not exist.
///
/// A view drives nothing by itself: [`Lists::take`] finds no work. Contents have no owner, because each is found by its hash alone,
/// which only a line names. Limits of places are shared with everybody.
pub struct Scoped {
    below: Arc<dyn Store>,
    scope: Scope,
    /// Sessions that were found to belong to the scope.
    known: Mutex<Remembered>,
}

/// The ids that were found last. The scope of a session never changes.
#[derive(Default)]
struct Remembered {
    ids: BTreeSet<SessionId>,
    order: VecDeque<SessionId>,
}

impl Scoped {
    /// Makes the view of a scope over a store.
    pub fn new(below: Arc<dyn Store>, scope: Scope) -> Self {
        Self {
            below,
            scope,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Remembered> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn knows(&self, session: &str) -> bool {
        self.known().ids.contains(session)
    }

    fn remember(&self, session: &str) {
        let mut known = self.known();
        let id: SessionId = session.into();
        if !known.ids.insert(id.clone()) {
            return;
        }
        known.order.push_back(id);
        if known.order.len() > REMEMBERED
            && let Some(oldest) = known.order.pop_front()
        {
            known.ids.remove(&oldest);
        }
    }

    /// Fails with `NoSession` if the session is not of the scope.
    async fn holds(&self, session: &str) -> Result<(), StoreError> {
        if self.knows(session) {
            return Ok(());
        }
        // Most ids that are no session are found here, without a search for those that begin like them.
        self.below.head(session).await?;
        let query = SessionQuery {
            prefix: Some(session.to_owned()),
            scope: Some(self.scope.clone()),
            ..SessionQuery::default()
        };
        let found = self.below.sessions(&query).await?;
        if found.iter().any(|info| *info.id == *session) {
            self.remember(session);
            return Ok(());
        }
        Err(StoreError::NoSession(session.into()))
    }

    /// Like `holds`, for calls that cannot wait. A caller has read the session before.
    fn holds_now(&self, session: &str) -> Result<(), StoreError> {
        if self.knows(session) {
            return Ok(());
        }
        Err(StoreError::NoSession(session.into()))
    }

    /// Returns the narrower of this scope and a wanted one. `None` if they have nothing in common.
    fn narrowed(&self, wanted: Option<&Scope>) -> Option<Scope> {
        match wanted {
            None => Some(self.scope.clone()),
            Some(wanted) if self.scope.includes(wanted) => Some(wanted.clone()),
            Some(wanted) if wanted.includes(&self.scope) => Some(self.scope.clone()),
            Some(_) => None,
        }
    }

    fn is_tenant(&self, tenant: &str) -> bool {
        *self.scope.tenant == *tenant
    }

    /// Returns the error for something new that would belong to others.
    fn foreign(what: &'static str, id: &str) -> StoreError {
        StoreError::BadId {
            what,
            id: id.to_owned(),
            why: "it would belong to another part of the store".to_owned(),
        }
    }

    /// Returns those of these memories that belong to the scope.
    async fn own_memories(&self, ids: &[u64]) -> Result<Vec<u64>, StoreError> {
        let query = MemoryQuery {
            part: Some(self.scope.clone()),
            ..MemoryQuery::default()
        };
        let found = self.below.memories(query).await?;
        let own: BTreeSet<u64> = found.iter().map(|memory| memory.id).collect();
        Ok(ids.iter().copied().filter(|id| own.contains(id)).collect())
    }
}

impl Log for Scoped {
    fn create(&self, session: NewSession) -> Boxed<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let id = session.id.clone();
            if !self.scope.includes(&session.scope) {
                return Err(Self::foreign("session id", &id));
            }
            match self.below.create(session).await {
                // The id of a session of others is not told.
                Err(StoreError::Conflict(other)) => {
                    Err(StoreError::Conflict(if self.holds(&other).await.is_ok() {
                        other
                    } else {
                        id
                    }))
                }
                created => created,
            }
        })
    }
    fn claim<'a>(
        &'a self,
        session: &'a str,
        by: &'a Worker,
    ) -> Boxed<'a, Result<Claim, StoreError>> {
        Box::pin(async move {
            self.holds(session).await?;
            self.below.claim(session, by).await
        })
    }
    fn append(&self, claim: &Claim, batch: Batch) -> Appended {
        self.below.append(claim, batch)
    }
    fn rows<'a>(
        &'a self,
        session: &'a str,
        from: Line,
        to: Line,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Row>, StoreError>> {
        Box::pin(async move {
            self.holds(session).await?;
            self.below.rows(session, from, to, limit).await
        })
    }
    fn row<'a>(&'a self, session: &'a str, n: Line) -> Boxed<'a, Result<Option<Row>, StoreError>> {
        Box::pin(async move {
            self.holds(session).await?;
            self.below.row(session, n).await
        })
    }
    fn row_now(&self, session: &str, n: Line) -> Result<Option<Row>, StoreError> {
        self.holds_now(session)?;
        self.below.row_now(session, n)
    }
    fn version(&self) -> Option<u64> {
        self.below.version()
    }
    fn head<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Line, StoreError>> {
        Box::pin(async move {
            self.holds(session).await?;
            self.below.head(session).await
        })
    }
    fn drop_checkpoints<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.holds(session).await?;
            self.below.drop_checkpoints(session).await
        })
    }
    fn checkpoint<'a>(
        &'a self,
        session: &'a str,
        of: CheckpointOf,
        at: Line,
    ) -> Boxed<'a, Result<Option<Checkpoint>, StoreError>> {
        Box::pin(async move {
            self.holds(session).await?;
            self.below.checkpoint(session, of, at).await
        })
    }
}

impl Inbox for Scoped {
    fn deliver<'a>(
        &'a self,
        session: &'a str,
        message: InboxMessage,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            self.holds(session).await?;
            self.below.deliver(session, message).await
        })
    }
    fn inbox<'a>(
        &'a self,
        session: &'a str,
    ) -> Boxed<'a, Result<(u64, Vec<InboxMessage>), StoreError>> {
        Box::pin(async move {
            self.holds(session).await?;
            self.below.inbox(session).await
        })
    }
    fn deliver_event(&self, event: BoxedEvent) -> Boxed<'_, Result<bool, StoreError>> {
        if !self.scope.includes(&event.scope) {
            let error = Self::foreign("event id", &event.id);
            return Box::pin(async move { Err(error) });
        }
        self.below.deliver_event(event)
    }
    fn boxed_events<'a>(
        &'a self,
        of: &'a Scope,
        network: &'a str,
        event: &'a str,
        key: &'a str,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>> {
        if !self.scope.includes(of) {
            return Box::pin(async { Ok(Vec::new()) });
        }
        self.below.boxed_events(of, network, event, key)
    }
    fn event_box<'a>(
        &'a self,
        of: Option<&'a Scope>,
        now: Time,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>> {
        Box::pin(async move {
            match self.narrowed(of) {
                Some(of) => self.below.event_box(Some(&of), now, limit).await,
                None => Ok(Vec::new()),
            }
        })
    }
}

impl Lists for Scoped {
    fn enroll(&self, new: NewWorker) -> Boxed<'_, Result<Worker, StoreError>> {
        self.below.enroll(new)
    }
    fn take<'a>(&'a self, _: &'a Worker, _: Room) -> Boxed<'a, Result<Taken, StoreError>> {
        Box::pin(async { Ok(Taken::default()) })
    }
    fn release(&self, claim: Claim, left: Left) -> Appended {
        self.below.release(claim, left)
    }
    fn wakes(&self, by: &Worker) -> BoxStream<'static, Wake> {
        self.below.wakes(by)
    }
    fn sessions<'a>(
        &'a self,
        query: &'a SessionQuery,
    ) -> Boxed<'a, Result<Vec<SessionInfo>, StoreError>> {
        Box::pin(async move {
            let Some(scope) = self.narrowed(query.scope.as_ref()) else {
                return Ok(Vec::new());
            };
            let query = SessionQuery {
                scope: Some(scope),
                ..query.clone()
            };
            self.below.sessions(&query).await
        })
    }
}

impl Blobs for Scoped {
    fn put_blob(&self, hash: [u8; 32], bytes: Arc<[u8]>) -> Boxed<'_, Result<(), StoreError>> {
        self.below.put_blob(hash, bytes)
    }
    fn blob<'a>(&'a self, hash: &'a [u8; 32]) -> Boxed<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        self.below.blob(hash)
    }
    fn blob_now(&self, hash: &[u8; 32]) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.below.blob_now(hash)
    }
    fn drop_blobs(&self, _: Vec<[u8; 32]>) -> Boxed<'_, Result<u64, StoreError>> {
        // A content may be named by sessions that the view does not show.
        Box::pin(async { Ok(0) })
    }
}

impl Memories for Scoped {
    fn remember(&self, new: NewMemory) -> Boxed<'_, Result<u64, StoreError>> {
        if !self.scope.includes(&new.part) {
            let error = Self::foreign("memory", &new.key);
            return Box::pin(async move { Err(error) });
        }
        self.below.remember(new)
    }
    fn memories(&self, query: MemoryQuery) -> Boxed<'_, Result<Vec<Memory>, StoreError>> {
        Box::pin(async move {
            let Some(part) = self.narrowed(query.part.as_ref()) else {
                return Ok(Vec::new());
            };
            let part = Some(part);
            self.below.memories(MemoryQuery { part, ..query }).await
        })
    }
    fn rate_memory(
        &self,
        id: u64,
        rated: Rated,
        by_person: bool,
    ) -> Boxed<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            if self.own_memories(&[id]).await?.is_empty() {
                return Ok(false);
            }
            self.below.rate_memory(id, rated, by_person).await
        })
    }
    fn forget_memories(&self, ids: Vec<u64>) -> Boxed<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let own = self.own_memories(&ids).await?;
            self.below.forget_memories(own).await
        })
    }
}

impl Quotas for Scoped {
    fn draw<'a>(
        &'a self,
        limit: &'a Limit,
        wanted: u64,
        opens: Time,
    ) -> Boxed<'a, Result<Drawn, StoreError>> {
        self.below.draw(limit, wanted, opens)
    }
    fn drawn<'a>(&'a self, limit: &'a Limit, opens: Time) -> Boxed<'a, Result<u64, StoreError>> {
        self.below.drawn(limit, opens)
    }
    fn give_back<'a>(
        &'a self,
        limit: &'a Limit,
        drawn: Drawn,
    ) -> Boxed<'a, Result<(), StoreError>> {
        self.below.give_back(limit, drawn)
    }
    fn pause(&self, pause: Pause) -> Boxed<'_, Result<(), StoreError>> {
        self.below.pause(pause)
    }
    fn pauses(&self, now: Time) -> Boxed<'_, Result<Vec<Pause>, StoreError>> {
        self.below.pauses(now)
    }
}

impl Accounts for Scoped {
    fn digest_key(&self) -> Boxed<'_, Result<[u8; 32], StoreError>> {
        self.below.digest_key()
    }
    fn token<'a>(&'a self, name: &'a str) -> Boxed<'a, Result<Option<Token>, StoreError>> {
        Box::pin(async move {
            let token = self.below.token(name).await?;
            Ok(token.filter(|token| self.scope.includes(&token.scope)))
        })
    }
    fn put_token(&self, token: Token) -> Boxed<'_, Result<bool, StoreError>> {
        if !self.scope.includes(&token.scope) {
            let error = Self::foreign("token", &token.name);
            return Box::pin(async move { Err(error) });
        }
        self.below.put_token(token)
    }
    fn tokens<'a>(
        &'a self,
        tenant: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Token>, StoreError>> {
        Box::pin(async move {
            if !self.is_tenant(tenant) {
                return Ok(Vec::new());
            }
            let mut tokens = self.below.tokens(tenant, after, limit).await?;
            tokens.retain(|token| self.scope.includes(&token.scope));
            Ok(tokens)
        })
    }
    fn revoke<'a>(
        &'a self,
        tenant: &'a str,
        name: &'a str,
        at: Time,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            if !self.is_tenant(tenant) || self.token(name).await?.is_none() {
                return Ok(false);
            }
            self.below.revoke(tenant, name, at).await
        })
    }
    fn used<'a>(&'a self, name: &'a str, hour: Time) -> Boxed<'a, Result<(), StoreError>> {
        self.below.used(name, hour)
    }
    fn webhooks<'a>(&'a self, tenant: &'a str) -> Boxed<'a, Result<Vec<Webhook>, StoreError>> {
        if !self.is_tenant(tenant) {
            return Box::pin(async { Ok(Vec::new()) });
        }
        self.below.webhooks(tenant)
    }
    fn all_webhooks<'a>(
        &'a self,
        after: Option<&'a WebhookId>,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Webhook>, StoreError>> {
        Box::pin(async move {
            let mut own = self.below.webhooks(&self.scope.tenant).await?;
            own.retain(|hook| after.is_none_or(|after| hook.id > *after));
            own.truncate(limit);
            Ok(own)
        })
    }
    fn mark_webhook<'a>(
        &'a self,
        hook: &'a WebhookId,
        made: Time,
        failing: Option<Arc<str>>,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        if !self.is_tenant(&hook.tenant) {
            return Box::pin(async { Ok(false) });
        }
        self.below.mark_webhook(hook, made, failing)
    }
    fn put_webhook(&self, webhook: Webhook) -> Boxed<'_, Result<bool, StoreError>> {
        if !self.is_tenant(&webhook.id.tenant) {
            let error = Self::foreign("webhook", &webhook.id.name);
            return Box::pin(async move { Err(error) });
        }
        self.below.put_webhook(webhook)
    }
    fn drop_webhook<'a>(&'a self, hook: &'a WebhookId) -> Boxed<'a, Result<bool, StoreError>> {
        if !self.is_tenant(&hook.tenant) {
            return Box::pin(async { Ok(false) });
        }
        self.below.drop_webhook(hook)
    }
    fn delivered<'a>(
        &'a self,
        hook: &'a WebhookId,
        session: &'a str,
    ) -> Boxed<'a, Result<Delivered, StoreError>> {
        if !self.is_tenant(&hook.tenant) {
            return Box::pin(async { Ok(Delivered::default()) });
        }
        self.below.delivered(hook, session)
    }
    fn move_delivered<'a>(
        &'a self,
        hook: &'a WebhookId,
        session: &'a str,
        from: Delivered,
        to: Delivered,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        if !self.is_tenant(&hook.tenant) {
            return Box::pin(async { Ok(false) });
        }
        self.below.move_delivered(hook, session, from, to)
    }
    fn behind<'a>(
        &'a self,
        hook: &'a WebhookId,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<SessionId>, StoreError>> {
        if !self.is_tenant(&hook.tenant) {
            return Box::pin(async { Ok(Vec::new()) });
        }
        self.below.behind(hook, limit)
    }
    fn conversation<'a>(
        &'a self,
        tenant: &'a str,
        digest: [u8; 32],
    ) -> Boxed<'a, Result<Option<(SessionId, Line)>, StoreError>> {
        Box::pin(async move {
            if !self.is_tenant(tenant) {
                return Ok(None);
            }
            let found = self.below.conversation(tenant, digest).await?;
            let Some((session, line)) = found else {
                return Ok(None);
            };
            let own = self.holds(&session).await.is_ok();
            Ok(own.then_some((session, line)))
        })
    }
    fn put_conversation(&self, head: Conversation) -> Boxed<'_, Result<(), StoreError>> {
        Box::pin(async move {
            if !self.is_tenant(&head.tenant) {
                return Err(StoreError::NoSession(head.session));
            }
            self.holds(&head.session).await?;
            self.below.put_conversation(head).await
        })
    }
    fn holdings<'a>(
        &'a self,
        of: &'a Scope,
        delete: bool,
    ) -> Boxed<'a, Result<Holdings, StoreError>> {
        Box::pin(async move {
            match self.narrowed(Some(of)) {
                Some(of) => self.below.holdings(&of, delete).await,
                None => Ok(Holdings::default()),
            }
        })
    }
}

impl Credentials for Scoped {
    fn credential<'a>(
        &'a self,
        of: &'a CredentialOf,
    ) -> Boxed<'a, Result<Option<Credential>, StoreError>> {
        if !self.scope.includes(&of.scope) {
            return Box::pin(async { Ok(None) });
        }
        self.below.credential(of)
    }
    fn put_credential<'a>(
        &'a self,
        of: &'a CredentialOf,
        before: u64,
        new: Credential,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        if !self.scope.includes(&of.scope) {
            return Box::pin(async { Ok(false) });
        }
        self.below.put_credential(of, before, new)
    }
    fn drop_credential<'a>(&'a self, of: &'a CredentialOf) -> Boxed<'a, Result<bool, StoreError>> {
        if !self.scope.includes(&of.scope) {
            return Box::pin(async { Ok(false) });
        }
        self.below.drop_credential(of)
    }
}

impl Schedules for Scoped {
    fn put_schedule(&self, schedule: Schedule) -> Boxed<'_, Result<bool, StoreError>> {
        if !self.is_tenant(&schedule.id.tenant) {
            let error = Self::foreign("schedule", &schedule.id.name);
            return Box::pin(async move { Err(error) });
        }
        self.below.put_schedule(schedule)
    }
    fn drop_schedule<'a>(&'a self, id: &'a ScheduleId) -> Boxed<'a, Result<bool, StoreError>> {
        if !self.is_tenant(&id.tenant) {
            return Box::pin(async { Ok(false) });
        }
        self.below.drop_schedule(id)
    }
    fn schedules(
        &self,
        by: Option<Time>,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Schedule>, StoreError>> {
        Box::pin(async move {
            let mut all = self.below.schedules(by, usize::MAX).await?;
            all.retain(|schedule| self.is_tenant(&schedule.id.tenant));
            all.truncate(limit);
            Ok(all)
        })
    }
    fn move_schedule<'a>(
        &'a self,
        id: &'a ScheduleId,
        at: Time,
        next: Option<Time>,
        missed: u64,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        if !self.is_tenant(&id.tenant) {
            return Box::pin(async { Ok(false) });
        }
        self.below.move_schedule(id, at, next, missed)
    }
}
