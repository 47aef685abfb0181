//! The data of a store under one lock: the tables of both stores in memory.

use super::registers::Registers;
use super::windows::Windows;
use super::{
    Batch, Bell, BoxedEvent, Checkpoint, CheckpointOf, Claim, Delivered, Holdings, IMMEDIATELY,
    InboxMessage, Lease, Left, Memory, MemoryQuery, NewMemory, NewSession, NewWorker, Rated, Room,
    Row, Scope, SessionInfo, SessionQuery, SessionState, StoreError, Taken, Wake, WebhookId,
    Worker, bounds, check, first_line, meets, never_written,
};
use crate::store::{SaidHash, SessionId};
use futures::stream::{BoxStream, StreamExt, pending};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use steersman_machine::stored::ids::{Id, Line, Name, Time};

/// The data of all sessions, events and memories.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) sessions: BTreeMap<SessionId, Session>,
    blobs: HashMap<[u8; 32], Arc<[u8]>>,
    events: Vec<BoxedEvent>,
    /// Events that were delivered, by tenant and id: the time until which each is valid, and the hash of its message.
    seen: HashMap<(Name, Name), (Time, SaidHash)>,
    memories: BTreeMap<u64, (Name, Memory)>,
    last_memory: u64,
    pub(super) quotas: Windows,
    pub(super) registers: Registers,
    /// The workers, by number.
    workers: BTreeMap<u64, Enrolled>,
}

/// A worker of a store in memory.
#[derive(Default)]
struct Enrolled {
    bell: Arc<Bell>,
    lease: Arc<Held>,
}

/// A lease that lasts until a test ends it.
#[derive(Debug, Default)]
struct Held {
    is_over: AtomicBool,
}

impl Lease for Held {
    fn is_live(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }
}

/// The data of one session.
pub(super) struct Session {
    number: u64,
    new: NewSession,
    seat: Seat,
    owner: Weak<Lock>,
    /// The epoch of which a batch failed. No later batch of that epoch is written.
    failed: Option<u64>,
    pub(super) rows: BTreeMap<Line, Arc<[u8]>>,
    pub(super) inbox: Vec<InboxMessage>,
    /// Ids that were accepted, each with the hash of its message if it is known.
    known: HashMap<Name, Option<SaidHash>>,
    waits: BTreeMap<Id, Vec<(Name, Arc<str>)>>,
    labels: BTreeMap<Name, Arc<str>>,
    state: SessionState,
    pub(super) checkpoints: HashMap<CheckpointOf, BTreeMap<Line, Arc<[u8]>>>,
}

/// The owners of a session, and what the last one left.
#[derive(Default)]
struct Seat {
    epoch: u64,
    worker: u64,
    first: Option<Line>,
    /// Number of messages that were ever delivered.
    mail: u64,
    left: Left,
}

/// Decides about a message whose id is known: `Ok(false)` (not new) if it equals the message that came before, or if that one is
/// not known; otherwise an error.
fn not_new(id: &Name, before: Option<SaidHash>, now: SaidHash) -> Result<bool, StoreError> {
    match before {
        Some(before) if before != now => Err(StoreError::Repeated(id.clone())),
        _ => Ok(false),
    }
}

/// Held by the owner of a session for as long as its claim lives.
pub(super) struct Lock;

impl Session {
    fn is_owned(&self) -> bool {
        self.owner.strong_count() > 0
    }

    /// Returns an error if the session was moved to another store.
    fn is_here(&self) -> Result<(), StoreError> {
        let moved = self.state.moved.as_ref();
        moved.map_or(Ok(()), |to| {
            Err(StoreError::Moved {
                session: self.new.id.clone(),
                to: to.clone(),
            })
        })
    }

    /// Returns the place of the session in lists; the greatest comes first.
    fn place(&self) -> (Time, u64) {
        (self.state.updated, self.number)
    }

    pub(super) fn head(&self) -> Line {
        self.rows.last_key_value().map_or(Line::NONE, |(n, _)| *n)
    }
}

impl Tables {
    pub(super) fn session(&self, id: &str) -> Result<&Session, StoreError> {
        self.sessions
            .get(id)
            .ok_or_else(|| StoreError::NoSession(id.into()))
    }

    pub(super) fn session_mut(&mut self, id: &str) -> Result<&mut Session, StoreError> {
        self.sessions
            .get_mut(id)
            .ok_or_else(|| StoreError::NoSession(id.into()))
    }

    pub(super) fn create(&mut self, mut new: NewSession) -> Result<(), StoreError> {
        bounds::session(&new)?;
        let (first, said) = (new.first.take(), new.said.take());
        if self.sessions.contains_key(&new.id) {
            return Err(StoreError::Conflict(new.id));
        }
        let mut others = self.sessions.values().map(|s| &s.new);
        let same = |other: &&NewSession| {
            other.key == new.key
                && other.network == new.network
                && other.scope.tenant == new.scope.tenant
        };
        if new.key.is_some()
            && let Some(other) = others.find(same)
        {
            return Err(StoreError::Conflict(other.id.clone()));
        }
        let id = new.id.clone();
        let session = Session {
            number: self.sessions.len() as u64 + 1,
            seat: Seat::default(),
            owner: Weak::new(),
            failed: None,
            rows: BTreeMap::new(),
            inbox: Vec::new(),
            known: HashMap::new(),
            waits: BTreeMap::new(),
            labels: BTreeMap::new(),
            state: SessionState {
                updated: new.created,
                ..SessionState::default()
            },
            checkpoints: HashMap::new(),
            new,
        };
        self.sessions.insert(id.clone(), session);
        if let Some(first) = first {
            let name = first.id.clone();
            self.deliver(&id, first)?;
            if said.is_some() {
                self.session_mut(&id)?.known.insert(name, said);
            }
        }
        Ok(())
    }

    pub(super) fn enroll(&mut self, _: NewWorker) -> Worker {
        let no = self.workers.len() as u64 + 1;
        let enrolled = self.workers.entry(no).or_default();
        Worker {
            no,
            lease: enrolled.lease.clone(),
        }
    }

    pub(super) fn wakes(&self, of: &Worker) -> BoxStream<'static, Wake> {
        match self.workers.get(&of.no) {
            Some(worker) => Bell::wakes(&worker.bell),
            None => pending().boxed(),
        }
    }

    /// Ends the lease of a worker: its sessions are free.
    pub(super) fn ends_lease(&mut self, no: u64) {
        let Some(worker) = self.workers.get(&no) else {
            return;
        };
        worker.lease.is_over.store(true, Ordering::Relaxed);
        worker.bell.ring(Wake::Lost);
        self.frees(no);
    }

    /// Lets others take the sessions of a worker. Nobody tells the worker.
    pub(super) fn frees(&mut self, no: u64) {
        for session in self.sessions.values_mut() {
            if session.seat.worker == no {
                session.owner = Weak::new();
            }
        }
        self.looks();
    }

    /// Tells all workers that a session may have something to do.
    fn looks(&self) {
        for worker in self.workers.values() {
            worker.bell.ring(Wake::Look);
        }
    }

    pub(super) fn claim(&mut self, id: &str, by: &Worker) -> Result<Claim, StoreError> {
        let session = self.session_mut(id)?;
        session.is_here()?;
        if session.is_owned() {
            return Err(StoreError::Owned {
                session: session.new.id.clone(),
                process: std::process::id().to_string(),
            });
        }
        let lock = Arc::new(Lock);
        session.owner = Arc::downgrade(&lock);
        let head = session.head();
        let seat = &mut session.seat;
        let first = first_line(seat.first, head);
        let before = seat.left.clone();
        // The first owner of a session without a message copies lines into it. Nobody may continue with a part of them.
        let copies = seat.epoch == 0 && seat.mail == 0;
        seat.epoch += 1;
        seat.first = Some(first);
        seat.worker = by.no;
        seat.left.wants = (!copies).then_some(IMMEDIATELY);
        seat.left.place = None;
        Ok(Claim {
            session: session.new.id.clone(),
            number: session.number,
            epoch: seat.epoch,
            first,
            head,
            salt: session.new.salt,
            scope: session.new.scope.clone(),
            mail: seat.mail,
            before,
            accepted: None,
            lock,
        })
    }

    pub(super) fn take(&mut self, by: &Worker, room: &Room) -> Taken {
        let free = |s: &&Session| !s.is_owned() && s.is_here().is_ok() && (room.can)(&s.new.needs);
        let mut free: Vec<&Session> = self.sessions.values().filter(free).collect();
        free.sort_by_key(|s| (s.seat.left.wants.unwrap_or(Time(i64::MAX)), s.number));
        let mut waiting = room.waiting.clone();
        let (mut found, mut taken) = (Vec::new(), Taken::default());
        for session in free {
            let left = &session.seat.left;
            // The clock that wrote a message may be ahead of this one.
            let has_new = session.seat.mail > left.mail;
            let is_wanted = has_new || left.wants.is_some_and(|wants| wants <= room.now);
            let goes_on = !is_wanted
                && left.place.as_ref().is_some_and(|place| {
                    let waits = waiting.entry(place.clone()).or_default();
                    *waits += 1;
                    *waits <= room.each
                });
            if is_wanted || goes_on {
                found.push(session.new.id.clone());
            } else {
                taken.next = taken.next.or(left.wants);
            }
        }
        if found.len() > room.sessions {
            found.truncate(room.sessions);
            taken.next = None;
        }
        let claims = found.iter().map(|id| self.claim(id, by));
        taken.claims = claims.map(|claim| claim.expect("it is free")).collect();
        taken
    }

    pub(super) fn release(&mut self, claim: &Claim, left: Left) {
        let Ok(session) = self.session_mut(&claim.session) else {
            return;
        };
        if session.seat.epoch != claim.epoch {
            return;
        }
        let has_new = session.seat.mail > left.mail;
        session.seat.left = left;
        if has_new {
            session.seat.left.wants = Some(IMMEDIATELY);
        }
        session.owner = Weak::new();
        self.looks();
    }

    /// Returns the session if the claim is the newest and no batch of it failed.
    fn guard(&mut self, claim: &Claim) -> Result<&mut Session, StoreError> {
        let session = self.session_mut(&claim.session)?;
        if session.seat.epoch == claim.epoch && session.failed != Some(claim.epoch) {
            Ok(session)
        } else {
            Err(StoreError::Fenced {
                session: claim.session.clone(),
                epoch: claim.epoch,
            })
        }
    }

    pub(super) fn append(&mut self, claim: &Claim, batch: Batch) -> Result<(), StoreError> {
        let last = self.guard(claim)?.head();
        let fits = check(&claim.session, last, &batch)
            .and_then(|()| self.has_rows(&claim.session, &batch.rewritten));
        if let Err(e) = fits {
            self.guard(claim)?.failed = Some(claim.epoch);
            return Err(e);
        }
        self.write_rows(claim, &batch);
        self.write_rest(claim, batch);
        Ok(())
    }

    /// Returns an error if one of these rows of a session was never written.
    pub(super) fn has_rows(&self, id: &str, rows: &[Row]) -> Result<(), StoreError> {
        let there = &self.session(id)?.rows;
        let missing = rows.iter().find(|row| !there.contains_key(&row.n));
        missing.map_or(Ok(()), |row| Err(never_written(id, row.n)))
    }

    /// Writes the rows of a checked batch.
    pub(super) fn write_rows(&mut self, claim: &Claim, batch: &Batch) {
        if let Some(session) = self.sessions.get_mut(&claim.session) {
            let rows = batch.rows.iter().map(|r| (r.n, r.bytes.clone()));
            session.rows.extend(rows);
        }
    }

    /// Writes everything of a batch except its rows.
    pub(super) fn write_rest(&mut self, claim: &Claim, batch: Batch) {
        let tenant = &claim.scope.tenant;
        for (hash, bytes) in batch.blobs {
            self.put_blob(hash, bytes);
        }
        self.events
            .retain(|e| e.scope.tenant != *tenant || !batch.events_taken.contains(&e.id));
        let Some(session) = self.sessions.get_mut(&claim.session) else {
            return;
        };
        if !batch.rewritten.is_empty() {
            session.checkpoints.clear();
        }
        for row in batch.rewritten {
            session.rows.insert(row.n, row.bytes);
        }
        session.inbox.retain(|m| !batch.consumed.contains(&m.id));
        for id in batch.consumed {
            session.known.entry(id).or_default();
        }
        session.inbox.retain(|m| !batch.dropped.contains(&m.id));
        for id in &batch.dropped {
            session.known.remove(id);
        }
        for wait in batch.waits {
            if wait.open.is_empty() {
                session.waits.remove(&wait.effect)
            } else {
                session.waits.insert(wait.effect, wait.open)
            };
        }
        if let Some(needs) = batch.needs {
            session.new.needs = needs;
        }
        for (label, value) in batch.labels {
            match value {
                Some(value) => session.labels.insert(label, value),
                None => session.labels.remove(&label),
            };
        }
        if let Some(info) = batch.info {
            session.state = info;
        }
        for (of, checkpoint) in batch.checkpoints {
            session
                .checkpoints
                .entry(of)
                .or_default()
                .insert(checkpoint.at, checkpoint.bytes);
        }
    }

    pub(super) fn rows(
        &self,
        id: &str,
        from: Line,
        to: Line,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let session = self.session(id)?;
        if from > to {
            return Ok(Vec::new());
        }
        let rows = session.rows.range(from..=to).take(limit);
        Ok(rows
            .map(|(n, bytes)| Row {
                n: *n,
                bytes: bytes.clone(),
            })
            .collect())
    }

    pub(super) fn row(&self, id: &str, n: Line) -> Result<Option<Row>, StoreError> {
        let bytes = self.session(id)?.rows.get(&n).cloned();
        Ok(bytes.map(|bytes| Row { n, bytes }))
    }

    pub(super) fn checkpoint(
        &self,
        id: &str,
        of: CheckpointOf,
        at: Line,
    ) -> Result<Option<Checkpoint>, StoreError> {
        let checkpoints = self.session(id)?.checkpoints.get(&of);
        let newest = checkpoints.and_then(|c| c.range(..=at).next_back());
        Ok(newest.map(|(at, bytes)| Checkpoint {
            at: *at,
            bytes: bytes.clone(),
        }))
    }

    pub(super) fn put_blob(&mut self, hash: [u8; 32], bytes: Arc<[u8]>) {
        self.blobs.entry(hash).or_insert(bytes);
    }

    pub(super) fn drop_blobs(&mut self, hashes: &[[u8; 32]]) -> u64 {
        let gone = hashes.iter().filter(|h| self.blobs.remove(*h).is_some());
        gone.count() as u64
    }

    pub(super) fn blob(&self, hash: &[u8; 32]) -> Result<Option<Arc<[u8]>>, StoreError> {
        let Some(bytes) = self.blobs.get(hash) else {
            return Ok(None);
        };
        if blake3::hash(bytes) == *hash {
            return Ok(Some(bytes.clone()));
        }
        Err(StoreError::Corrupt {
            place: format!("blob {}", blake3::Hash::from(*hash).to_hex()),
            what: "its content does not fit its hash".to_owned(),
        })
    }

    /// Returns the newest epoch of a session.
    pub(super) fn epoch(&self, id: &str) -> Result<u64, StoreError> {
        self.session(id).map(|s| s.seat.epoch)
    }

    /// Flips the lowest bit of one byte of a row, for tests. Returns false if there is no such row or byte.
    pub(super) fn damage(&mut self, id: &str, n: Line, byte: usize) -> bool {
        let row = self.sessions.get_mut(id).and_then(|s| s.rows.get_mut(&n));
        let Some(row) = row.filter(|row| byte < row.len()) else {
            return false;
        };
        let mut damaged = row.to_vec();
        damaged[byte] ^= 1;
        *row = damaged.into();
        true
    }

    pub(super) fn deliver(&mut self, id: &str, message: InboxMessage) -> Result<bool, StoreError> {
        bounds::message(&message)?;
        let session = self.session_mut(id)?;
        session.is_here()?;
        let said = SaidHash::of(&message.id, &message.bytes);
        let most = bounds::most_waiting(&message);
        match session.known.entry(message.id.clone()) {
            Entry::Occupied(known) => return not_new(&message.id, *known.get(), said),
            Entry::Vacant(_) if session.inbox.len() as u64 >= most => {
                return Err(bounds::full_inbox(id, most));
            }
            Entry::Vacant(new) => new.insert(Some(said)),
        };
        let (seat, at) = (&mut session.seat, message.at);
        seat.mail += 1;
        seat.left.wants = Some(seat.left.wants.map_or(at, |wants| wants.min(at)));
        session.inbox.push(message);
        if session.is_owned() {
            let owner = (session.seat.worker, session.new.id.clone());
            if let Some(worker) = self.workers.get(&owner.0) {
                worker.bell.ring(Wake::Mail(owner.1));
            }
        } else {
            self.looks();
        }
        Ok(true)
    }

    pub(super) fn inbox(&self, id: &str) -> Result<(u64, Vec<InboxMessage>), StoreError> {
        let session = self.session(id)?;
        Ok((session.seat.mail, session.inbox.clone()))
    }

    pub(super) fn deliver_event(&mut self, event: BoxedEvent) -> Result<bool, StoreError> {
        bounds::event(&event)?;
        let said = SaidHash::of(&event.id, &event.message);
        let key = (event.scope.tenant.clone(), event.id.clone());
        if let Some((_, before)) = self.seen.get(&key) {
            return not_new(&event.id, Some(*before), said);
        }
        let waits = |session: &Session| {
            session.new.network == event.network
                && event.scope.includes(&session.new.scope)
                && session.is_here().is_ok()
                && session
                    .waits
                    .values()
                    .flatten()
                    .any(|(name, key)| *name == event.event && meets(key, &event.fields))
        };
        let met = self.sessions.values().filter(|session| waits(session));
        let met: Vec<SessionId> = met.map(|session| session.new.id.clone()).collect();
        let message = InboxMessage {
            id: event.id.clone(),
            at: event.at,
            bytes: event.message.clone(),
        };
        let most = bounds::most_waiting(&message);
        for id in &met {
            let session = self.session(id)?;
            if let Some(before) = session.known.get(&event.id) {
                not_new(&event.id, *before, said)?;
            } else if session.inbox.len() as u64 >= most {
                return Err(bounds::full_inbox(id, most));
            }
        }
        if met.is_empty() {
            if self.events.len() as u64 >= bounds::BOXED {
                self.events.retain(|e| e.until >= event.at);
            }
            if self.events.len() as u64 >= bounds::BOXED {
                return Err(bounds::full_box());
            }
        }
        self.seen.insert(key, (event.until, said));
        if self.seen.len() as u64 > bounds::SEEN {
            let past = self.seen.iter().filter(|(_, (until, _))| *until < event.at);
            let first = past.min_by_key(|(_, (until, _))| *until);
            if let Some(first) = first.map(|(id, _)| id.clone()) {
                self.seen.remove(&first);
            }
        }
        for id in &met {
            // A session that has the message already does not get it again.
            let delivered = self.deliver(id, message.clone());
            delivered.expect("no session refuses it, as checked above");
        }
        if met.is_empty() {
            self.events.push(event);
        }
        Ok(true)
    }

    pub(super) fn boxed_events(
        &self,
        of: &Scope,
        network: &str,
        event: &str,
        key: &str,
    ) -> Vec<BoxedEvent> {
        let fits = |e: &&BoxedEvent| {
            *e.network == *network
                && *e.event == *event
                && e.scope.includes(of)
                && meets(key, &e.fields)
        };
        self.events.iter().filter(fits).cloned().collect()
    }

    pub(super) fn event_box(&self, of: Option<&Scope>, now: Time, limit: usize) -> Vec<BoxedEvent> {
        let is_shown =
            |e: &&BoxedEvent| e.until >= now && of.is_none_or(|of| of.includes(&e.scope));
        let there = self.events.iter().filter(is_shown);
        there.take(limit).cloned().collect()
    }

    /// Counts what a scope has apart from its sessions and memories, and deletes it if `delete` is true.
    pub(super) fn holdings(&mut self, of: &Scope, delete: bool) -> Holdings {
        let sessions = &self.sessions;
        let is_own = |id: &str| {
            let session = sessions.get(id);
            session.is_some_and(|session| of.includes(&session.new.scope))
        };
        let rest = self.registers.holdings(of, delete, is_own);
        let own = self.events.iter().filter(|e| of.includes(&e.scope));
        let own = own.count() as u64;
        if delete {
            self.events.retain(|e| !of.includes(&e.scope));
        }
        Holdings {
            events: own,
            ..rest
        }
    }

    pub(super) fn sessions(&self, query: &SessionQuery) -> Vec<SessionInfo> {
        let prefix = query.prefix.as_deref().unwrap_or_default();
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let mut found: Vec<&Session> = self
            .sessions
            .range::<str, _>(from)
            .take_while(|(id, _)| id.starts_with(prefix))
            .map(|(_, session)| session)
            .filter(|s| matches(s, query))
            .collect();
        found.sort_by_key(|s| std::cmp::Reverse(s.place()));
        if let Some((updated, id)) = &query.after {
            let number = self.sessions.get(id).map_or(0, |s| s.number);
            found.retain(|s| s.place() < (*updated, number));
        }
        let limit = query.limit.unwrap_or(usize::MAX);
        found.into_iter().take(limit).map(info).collect()
    }
}

impl Tables {
    pub(super) fn remember(&mut self, new: NewMemory, hash: [u8; 32]) -> Result<u64, StoreError> {
        bounds::memory(&new)?;
        let past = |memory: &Memory| memory.until.is_some_and(|until| until < new.at);
        self.memories.retain(|_, (_, memory)| !past(memory));
        let is_known =
            |key: &Name, memory: &Memory| *key == new.key && memory.part.tenant == new.part.tenant;
        let mut memories = self.memories.iter();
        let known = memories.find(|(_, (key, memory))| is_known(key, memory));
        if let Some((id, _)) = known {
            return Ok(*id);
        }
        self.last_memory += 1;
        for id in &new.replaces {
            if let Some((_, other)) = self.memories.get_mut(id)
                && (&other.part, &other.scope) == (&new.part, &new.scope)
            {
                other.replaced = Some(self.last_memory);
            }
        }
        let memory = Memory {
            id: self.last_memory,
            part: new.part,
            scope: new.scope,
            name: new.name,
            tags: new.tags,
            media: new.media,
            len: new.content.len() as u64,
            hash,
            session: new.session,
            effect: new.effect,
            network: new.network,
            by: new.by,
            at: new.at,
            until: new.until,
            replaced: None,
            by_agents: None,
            by_people: None,
        };
        self.memories.insert(self.last_memory, (new.key, memory));
        Ok(self.last_memory)
    }

    pub(super) fn memories(&self, query: &MemoryQuery) -> Vec<Memory> {
        let is_there = |id: &u64| {
            let there = self.memories.get(id);
            there.is_some_and(|(_, memory)| memory.until.is_none_or(|until| until >= query.now))
        };
        let memories = self.memories.values().map(|(_, memory)| Memory {
            replaced: memory.replaced.filter(is_there),
            ..memory.clone()
        });
        let mut found: Vec<Memory> = memories.filter(|m| query.wants(m)).collect();
        found.sort_by_key(|memory| std::cmp::Reverse((memory.at, memory.id)));
        found
    }

    pub(super) fn rate_memory(&mut self, id: u64, rated: Rated, by_person: bool) -> bool {
        let Some((_, memory)) = self.memories.get_mut(&id) else {
            return false;
        };
        if by_person {
            memory.by_people = Some(rated);
        } else {
            memory.by_agents = Some(rated);
        }
        true
    }

    pub(super) fn forget_memories(&mut self, ids: &[u64]) -> u64 {
        let gone = ids.iter().filter(|id| self.memories.remove(id).is_some());
        gone.count() as u64
    }
}

impl Tables {
    pub(super) fn move_delivered(
        &mut self,
        hook: &WebhookId,
        session: &str,
        from: Delivered,
        to: Delivered,
    ) -> bool {
        let of_tenant = self.sessions.get(session);
        self.registers.has_webhook(hook)
            && of_tenant.is_some_and(|session| session.new.scope.tenant == hook.tenant)
            && self.registers.move_delivered(hook, session, from, to)
    }

    pub(super) fn behind(&self, hook: &WebhookId, limit: usize) -> Vec<SessionId> {
        if !self.registers.has_webhook(hook) {
            return Vec::new();
        }
        let is_behind = |session: &&Session| {
            let cursor = self.registers.delivered(hook, &session.new.id);
            let (head, is_part) = (session.head(), cursor.events < u32::MAX);
            head > cursor.line || head.is_some() && head == cursor.line && is_part
        };
        let sessions = self.sessions.values();
        let sessions = sessions.filter(|session| session.new.scope.tenant == hook.tenant);
        let mut behind: Vec<&Session> = sessions.filter(is_behind).collect();
        behind.sort_by_key(|session| session.number);
        let behind = behind.into_iter().take(limit);
        behind.map(|session| session.new.id.clone()).collect()
    }
}

/// Returns true if a session meets the conditions of a query. The beginning of the id is not checked here.
fn matches(session: &Session, query: &SessionQuery) -> bool {
    let fits = |wanted: &Option<Name>, is: Option<&Name>| {
        wanted.as_ref().is_none_or(|wanted| Some(wanted) == is)
    };
    fits(&query.network, Some(&session.new.network))
        && query
            .scope
            .as_ref()
            .is_none_or(|scope| scope.includes(&session.new.scope))
        && query
            .worker
            .is_none_or(|no| session.is_owned() && session.seat.worker == no)
        && fits(&query.key, session.new.key.as_ref())
        && query
            .label
            .as_ref()
            .is_none_or(|(name, value)| session.labels.get(name) == Some(value))
        && (query.status.is_empty() || query.status.contains(&session.state.status))
        && (!query.inbox || !session.inbox.is_empty())
        && query
            .since
            .is_none_or(|since| session.state.updated >= since)
}

fn info(session: &Session) -> SessionInfo {
    SessionInfo {
        id: session.new.id.clone(),
        network: session.new.network.clone(),
        scope: session.new.scope.clone(),
        key: session.new.key.clone(),
        created: session.new.created,
        salt: session.new.salt,
        head: session.head(),
        state: session.state.clone(),
        labels: session
            .labels
            .iter()
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect(),
        owner: session.is_owned().then(|| std::process::id().to_string()),
        left: session.seat.left.clone(),
    }
}
