//! The store port: what a session's log needs from a database. Every store passes the same conformance suite.
//!
//! Rows are opaque to a store: [`steersman_machine::codec`] encodes and checks them. A session has one owner with one
//! epoch; an append under another epoch never succeeds.

pub mod awkward;
pub mod bounds;
pub mod layer;
pub mod memories;
pub mod memory;
pub mod queue;
mod tables;

use crate::Boxed;
pub use memories::{Memory, MemoryQuery, NewMemory, Rated};
use std::sync::Arc;
use std::time::Duration;
use steersman_machine::ids::{Id, Line, Name, Time};
use steersman_machine::interaction::Doubtful;
use steersman_machine::wait;

/// No row, inbox message, event or label is longer than this. Blobs and checkpoints may be: a store splits them
/// where its values are small.
pub const MAX_VALUE: usize = steersman_machine::bounds::MAX_LINE;

/// A session is at most so many lines ahead of the disk, then its owner waits.
pub const AHEAD_LINES: u64 = 64;

/// A session is at most so many bytes ahead of the disk, then its owner waits.
pub const AHEAD_BYTES: usize = 1024 * 1024;

/// A batch for which nobody waits may wait so long for others that share its sync.
pub const COMPANY: Duration = Duration::from_millis(20);

/// A session's random id: 16 characters of base 32, lower case.
pub type SessionId = Arc<str>;

/// A timer: its session, its effect, when it is due.
pub type DueTimer = (SessionId, Id, Time);

/// A call that waits for a place which does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceWait {
    /// The place ([`BoundModel::place`](crate::model::BoundModel::place)).
    pub place: Name,
    /// Since when.
    pub since: Time,
    /// The session.
    pub session: SessionId,
    /// The call.
    pub effect: Id,
}

/// A place where sessions are kept.
pub trait Store: Send + Sync + 'static {
    /// Makes a session with nothing in its log, together with the message that begins it: both or neither. An id that
    /// exists is an error (`Conflict`), and so is a key that a session of this network has (`Conflict`, with its id). What is
    /// beyond a bound ([`bounds::session`]) is refused.
    fn create(&self, session: NewSession) -> Boxed<'_, Result<(), StoreError>>;

    /// Becomes the owner: a new epoch, and the first line number it may use (the next hundred above what may have
    /// been used). Refused (`Owned`) while another living owner holds the session; granted at once when it is gone.
    fn claim<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Claim, StoreError>>;

    /// Queues a batch behind all batches queued before, in the moment of the call; the future ends when it is on
    /// disk, atomically: all of it or nothing. `Fenced` if the epoch is not the newest. After an error nothing
    /// queued later under the same claim is written either.
    fn append(&self, claim: &Claim, batch: Batch) -> Boxed<'static, Result<(), StoreError>>;

    /// Rows with `from <= n <= to`, ascending, at most `limit`. While a batch is written, rows above [`Store::head`]
    /// may be seen that do not count yet.
    fn rows<'a>(
        &'a self,
        session: &'a str,
        from: Line,
        to: Line,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Row>, StoreError>>;

    /// One row.
    fn row<'a>(&'a self, session: &'a str, n: Line) -> Boxed<'a, Result<Option<Row>, StoreError>>;

    /// One row, read at once in the calling thread: for old texts that a template reaches, never for the hot path. A
    /// store beyond a network may take long here.
    fn row_now(&self, session: &str, n: Line) -> Result<Option<Row>, StoreError>;

    /// A blob, read at once in the calling thread, checked as by [`Store::blob`].
    fn blob_now(&self, hash: &[u8; 32]) -> Result<Option<Arc<[u8]>>, StoreError>;

    /// The last line on disk, `Line::NONE` if there is none.
    fn head<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Line, StoreError>>;

    /// Replaces a row's bytes (erasure). Deletes the session's checkpoints in the same transaction.
    fn rewrite<'a>(&'a self, claim: &'a Claim, row: Row) -> Boxed<'a, Result<(), StoreError>>;

    /// Deletes all checkpoints of a session.
    fn drop_checkpoints<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<(), StoreError>>;

    /// The newest checkpoint of a kind at or before a line. A cache: losing one loses nothing.
    fn checkpoint<'a>(
        &'a self,
        session: &'a str,
        of: CheckpointOf,
        at: Line,
    ) -> Boxed<'a, Result<Option<Checkpoint>, StoreError>>;

    /// Stores a blob under its blake3 hash, before the line that names it. Storing it again is no error.
    fn put_blob(&self, hash: [u8; 32], bytes: Arc<[u8]>) -> Boxed<'_, Result<(), StoreError>>;

    /// A blob; checked against its hash (`Corrupt` if it does not fit).
    fn blob<'a>(&'a self, hash: &'a [u8; 32]) -> Boxed<'a, Result<Option<Arc<[u8]>>, StoreError>>;

    /// Puts something into a session's inbox, durably. False if it was accepted before, ever; an id that was accepted with
    /// something else ([`SaidHash`]) is refused (`Repeated`), and so is what is beyond a bound ([`bounds::message`]) and what
    /// finds no room ([`bounds::most_waiting`]; `Full`).
    fn deliver<'a>(
        &'a self,
        session: &'a str,
        message: InboxMessage,
    ) -> Boxed<'a, Result<bool, StoreError>>;

    /// What lies in a session's inbox, oldest first. A store with late duplicates may show a message again that was
    /// consumed: the accepted ids of the ledger decide. One that a store finds damaged comes without its bytes: whoever
    /// decodes it says so, and the others are not kept back.
    fn inbox<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Vec<InboxMessage>, StoreError>>;

    /// Grows whenever anybody, in any process, puts something into an inbox of this store; never before it can be read.
    fn inbox_version(&self) -> Boxed<'_, Result<u64, StoreError>>;

    /// Offers an event that names no session: to the waits of that network with this key, else into the event box.
    /// False if it was accepted before and is still remembered ([`bounds::SEEN`]); an id that was accepted with something else is refused
    /// (`Repeated`), and so is what is beyond a bound ([`bounds::event`]) and what finds no room in the box or in any of the
    /// inboxes that it is for (`Full`): then it went nowhere, and may come again.
    fn deliver_event(&self, event: BoxedEvent) -> Boxed<'_, Result<bool, StoreError>>;

    /// Events in the box for a wait that opens; one that a store finds damaged is left there.
    fn boxed_events<'a>(
        &'a self,
        network: &'a str,
        event: &'a str,
        key: &'a str,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>>;

    /// All events in the box that are not past their time, oldest first, at most `limit`. Nothing is changed: those past their time
    /// go when another one needs room. One that a store finds damaged comes without its message.
    fn event_box(&self, now: Time, limit: usize) -> Boxed<'_, Result<Vec<BoxedEvent>, StoreError>>;

    /// Sessions that match, newest first.
    fn sessions<'a>(
        &'a self,
        query: &'a SessionQuery,
    ) -> Boxed<'a, Result<Vec<SessionInfo>, StoreError>>;

    /// Timers that are due, over all sessions, soonest first.
    fn timers(&self, until: Time, limit: usize) -> Boxed<'_, Result<Vec<DueTimer>, StoreError>>;

    /// Calls that wait for places which do not answer: of each place, by its name, at most `each`, those that wait longest
    /// first.
    fn outages(&self, each: usize) -> Boxed<'_, Result<Vec<PlaceWait>, StoreError>>;

    /// Damage of the lists by which sessions are found (inboxes, timers and waits among them), in words. From then on this handle
    /// gives what can be read without the parts that are damaged, and leaves out the rest.
    fn damaged_lists(&self) -> Boxed<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Remembers something, its content with it, in one step: the number that it has. What has a key that is known
    /// changes nothing, and gives the number that it got then. What is beyond a bound ([`bounds::memory`]) is refused. Memories that are past their time at `new.at` are dropped
    /// here.
    fn remember(&self, new: NewMemory) -> Boxed<'_, Result<u64, StoreError>>;

    /// Memories, the newest first.
    fn memories(&self, query: MemoryQuery) -> Boxed<'_, Result<Vec<Memory>, StoreError>>;

    /// Rates a memory, as a person or as an agent: the last rating of each counts. False if there is no such memory.
    fn rate_memory(
        &self,
        id: u64,
        rated: Rated,
        by_person: bool,
    ) -> Boxed<'_, Result<bool, StoreError>>;

    /// Forgets memories: how many there were. Their contents are blobs that nothing names any more, unless something
    /// else does.
    fn forget_memories(&self, ids: Vec<u64>) -> Boxed<'_, Result<u64, StoreError>>;
}

/// A new session.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Name of its network, for lists and events.
    pub network: Name,
    /// Key by which events find it, if it was started with one.
    pub key: Option<Name>,
    /// Salt of its body hashes.
    pub salt: [u8; 16],
    /// When.
    pub created: Time,
    /// What lies in its inbox from the first moment on.
    pub first: Option<InboxMessage>,
    /// What the id of that stands for, where it is not the message itself: an event that begins a session.
    pub said: Option<SaidHash>,
}

/// What an id was accepted with: of a message's bytes. A store keeps it as long as it keeps the id.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SaidHash(pub [u8; 16]);

impl SaidHash {
    /// Of a message as it is stored.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
        Self(hash)
    }
}

/// Ownership of a session. Dropping it lets go of the lock.
#[derive(Clone)]
pub struct Claim {
    /// The session.
    pub session: SessionId,
    /// The store's number of it.
    pub number: u64,
    /// Grows by one with each claim.
    pub epoch: u64,
    /// The first line this owner may use.
    pub first: Line,
    /// The last line on disk.
    pub head: Line,
    /// Salt of its body hashes.
    pub salt: [u8; 16],
    /// A person accepted the store, and no line of the session says so yet: its first one does.
    pub accepted: Option<StoreAccepted>,
    /// Keeps the lock for as long as any clone lives.
    pub lock: Arc<dyn std::any::Any + Send + Sync>,
}

/// A person accepted a store that was not to be driven without a word.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StoreAccepted {
    /// When.
    pub at: Time,
    /// What was the matter with it.
    pub was: Doubtful,
}

/// One atomic unit.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Rows, ascending and above all written before.
    pub rows: Vec<Row>,
    /// Inbox messages consumed, by id. Their ids stay known.
    pub consumed: Vec<Name>,
    /// Inbox messages that are erased with their session: no line took them, and their ids are not known any more.
    pub dropped: Vec<Name>,
    /// Events taken out of the event box, by id.
    pub events_taken: Vec<Name>,
    /// Waits for events that opened or closed.
    pub waits: Vec<WaitChange>,
    /// Timers set (some) or cleared (none), by effect.
    pub timers: Vec<(Id, Option<Time>)>,
    /// Calls that wait for a place since then (some), or wait no longer (none), by effect.
    pub outages: Vec<(Id, Option<(Name, Time)>)>,
    /// Labels that changed; none removes one.
    pub labels: Vec<(Name, Option<Arc<str>>)>,
    /// What lists show, when it changed.
    pub info: Option<SessionState>,
    /// A checkpoint that is due.
    pub checkpoints: Vec<(CheckpointOf, Checkpoint)>,
    /// An effect of class `unsafe` begins when this is on disk. A store whose log may lose its end without a trace (a
    /// file) notes it in another place too before the append ends, so that it can tell when it is opened again.
    pub begins_unsafe: bool,
    /// Its first row says that the store was accepted ([`Claim::accepted`]).
    pub tells_accepted: bool,
    /// Flush at once: somebody waits for this. Otherwise it may wait up to 20 ms for company.
    pub urgent: bool,
}

/// One row of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The line's number.
    pub n: Line,
    /// The encoded line.
    pub bytes: Arc<[u8]>,
}

/// What a checkpoint is of.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum CheckpointOf {
    /// The ledger of the session.
    Ledger,
    /// The snapshot of a branch.
    Branch(Id),
}

/// A stored snapshot or ledger: a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The line it stands behind.
    pub at: Line,
    /// Encoded and checked by [`steersman_machine::codec`].
    pub bytes: Arc<[u8]>,
}

/// A wait for an event opened or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitChange {
    /// The effect that waits.
    pub effect: Id,
    /// Event names and match keys, any of which it waits for from now on, in place of those before; empty: closed.
    pub open: Vec<(Name, Arc<str>)>,
}

/// Something for a session from outside its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxMessage {
    /// Accepted once for as long as the session lives.
    pub id: Name,
    /// When it came.
    pub at: Time,
    /// What it is: encoded by the driver ([`crate::inbox`]).
    pub bytes: Arc<[u8]>,
}

/// An event that names no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxedEvent {
    /// Its id, rendered from its fields.
    pub id: Name,
    /// The network it is for.
    pub network: Name,
    /// Its name.
    pub event: Name,
    /// What a session whose wait it meets finds in its inbox, under this id.
    pub message: Arc<[u8]>,
    /// Canonical JSON of all its fields. A wait's key is canonical JSON of some of them: it matches if each is equal.
    pub fields: Arc<str>,
    /// When it came.
    pub at: Time,
    /// Dropped after this if no wait took it.
    pub until: Time,
}

/// What lists show of a session without loading it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionState {
    /// `running`, `answered`, `waits`, `doubt`, `limit`, `failed`, `cancelled`, `paused`.
    pub status: Name,
    /// The last commit's time.
    pub updated: Time,
    /// Digest of its definition, short.
    pub definition: Name,
    /// Millionths of the currency spent.
    pub micros: u64,
    /// Tokens spent.
    pub tokens: u64,
    /// Model calls made.
    pub model_calls: u64,
    /// What it waits for on any branch, while nothing of it runs: read by [`crate::pending::read`].
    pub waits: Arc<str>,
    /// JSON object of its `outcome:`.
    pub outcome: Arc<str>,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its id.
    pub id: SessionId,
    /// Its network.
    pub network: Name,
    /// Its key, if it has one.
    pub key: Option<Name>,
    /// When it began.
    pub created: Time,
    /// Salt of its body hashes, for whoever reads and verifies it without owning it.
    pub salt: [u8; 16],
    /// The last line on disk.
    pub head: Line,
    /// Its state.
    pub state: SessionState,
    /// Its labels.
    pub labels: Vec<(Name, Arc<str>)>,
    /// The process that owns it now, if one does.
    pub owner: Option<String>,
}

/// Which sessions.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
    /// Ids that begin so.
    pub prefix: Option<String>,
    /// Of this network.
    pub network: Option<Name>,
    /// With this key.
    pub key: Option<Name>,
    /// With this label.
    pub label: Option<(Name, Arc<str>)>,
    /// With one of these statuses.
    pub status: Vec<Name>,
    /// Updated at or after.
    pub since: Option<Time>,
    /// With something in their inbox.
    pub inbox: bool,
    /// At most; none: all.
    pub limit: Option<usize>,
}

/// The first line of a claim: the next multiple of [`Line::EPOCH_STEP`] above what the owner before may have used,
/// on disk or ahead of it. `before` is that owner's first line, `head` the last line on disk.
pub fn first_line(before: Option<Line>, head: Line) -> Line {
    match before {
        None => head.next(),
        Some(before) => {
            let used = head.0.max(before.0.saturating_sub(1)) + AHEAD_LINES;
            Line((used / Line::EPOCH_STEP + 1) * Line::EPOCH_STEP)
        }
    }
}

/// Refuses a batch that no store may take: values over [`MAX_VALUE`], lines out of order or above [`Line::MAX`].
/// `last` is the last line written or queued under the claim.
pub fn check(session: &SessionId, last: Line, batch: &Batch) -> Result<(), StoreError> {
    let mut before = last;
    for row in &batch.rows {
        within(
            || format!("line {} of session `{session}`", row.n),
            row.bytes.len(),
        )?;
        if row.n <= before || row.n > Line::MAX {
            return Err(StoreError::Order {
                session: session.clone(),
                line: row.n,
                last: before,
            });
        }
        before = row.n;
    }
    for (name, value) in &batch.labels {
        let len = value.as_ref().map_or(0, |v| v.len());
        within(|| format!("label `{name}` of session `{session}`"), len)?;
    }
    for wait in &batch.waits {
        let len = wait.open.iter().map(|(_, key)| key.len()).sum();
        within(|| format!("the match key of wait {}", wait.effect), len)?;
    }
    if let Some(info) = &batch.info {
        let len = info.waits.len() + info.outcome.len();
        within(|| format!("what lists show of session `{session}`"), len)?;
    }
    Ok(())
}

/// Refuses a value over [`MAX_VALUE`].
pub fn within(what: impl FnOnce() -> String, size: usize) -> Result<(), StoreError> {
    if size <= MAX_VALUE {
        return Ok(());
    }
    Err(StoreError::TooLarge {
        what: what(),
        size: size as u64,
        max: MAX_VALUE as u64,
    })
}

/// Whether an event's fields meet a wait's key: each field of the key is there and equal. A key or fields that are
/// no JSON objects meet nothing.
pub fn meets(key: &str, fields: &str) -> bool {
    let fields = serde_json::from_str(fields);
    fields.is_ok_and(|fields| wait::is_met(key, &fields))
}

/// What a caller of a store branches on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such session, row or blob.
    #[error("no session `{0}` in this store")]
    NoSession(SessionId),
    /// It exists already, or has the key that was wanted.
    #[error("a session `{0}` exists already")]
    Conflict(SessionId),
    /// Something came under an id that was accepted with something else. Nothing happened.
    #[error("`{0}` was accepted before, and said something else then; nothing was done")]
    Repeated(Name),
    /// A living process owns the session.
    #[error("session `{session}` is owned by process {process}")]
    Owned {
        /// The session.
        session: SessionId,
        /// Process id, host where known.
        process: String,
    },
    /// Another owner came after this one.
    #[error("epoch {epoch} of session `{session}` is over: another owner has taken it")]
    Fenced {
        /// The session.
        session: SessionId,
        /// The epoch of the claim.
        epoch: u64,
    },
    /// Lines are written in the order of their numbers.
    #[error("line {line} of session `{session}` does not follow line {last}")]
    Order {
        /// The session.
        session: SessionId,
        /// The line.
        line: Line,
        /// The last one before it.
        last: Line,
    },
    /// What is stored does not verify. Nothing was touched.
    #[error("{place}: {what}; nothing was changed")]
    Corrupt {
        /// File, session, line.
        place: String,
        /// What does not fit.
        what: String,
    },
    /// The store opens for reading only until a person accepts it: effects of class `unsafe` may have happened of which
    /// its logs know nothing. Nothing was touched.
    #[error("{place} opens for reading only: {why}")]
    Unaccepted {
        /// File.
        place: String,
        /// What is the matter with it.
        why: String,
        /// The same for its logs, once somebody accepts it.
        was: Doubtful,
    },
    /// A newer version of this program wrote it; it is whole.
    #[error("{place} was written by a newer version of this program ({what}); nothing was changed")]
    Newer {
        /// File, session, line.
        place: String,
        /// What this version does not know.
        what: String,
    },
    /// A value is over its bound.
    #[error("{what} is {size} bytes, more than the {max} a store takes")]
    TooLarge {
        /// What.
        what: String,
        /// Its size.
        size: u64,
        /// The bound.
        max: u64,
    },
    /// An id or a key that no store takes ([`bounds`]). Nothing happened.
    #[error("the {what} `{id}` is not taken: {why}; nothing was done")]
    BadId {
        /// What it is.
        what: &'static str,
        /// Its beginning.
        id: String,
        /// What is allowed.
        why: String,
    },
    /// There is no room for one more ([`bounds`]). Nothing happened: it may come again.
    #[error(
        "{what} is full: {most} lie there; nothing was done, and the same may be sent again once some of them were taken"
    )]
    Full {
        /// What.
        what: String,
        /// The bound.
        most: u64,
    },
    /// It could not be read or written (disk full, read-only, locked).
    #[error("{place}: {source}")]
    Io {
        /// File.
        place: String,
        /// Why.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}
