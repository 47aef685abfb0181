//! The lists port: which sessions there are, which have something to do, and the workers that take and release them.

use super::{Appended, Claim, SessionId, StoreError};
use crate::Boxed;
use futures::stream::BoxStream;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use steersman_machine::stored::ids::{Line, Name, Time};

/// The lists of sessions, and the workers that drive them. A session is *wanted* from a time on ([`Left::wants`]): a worker
/// should own it then.
pub trait Lists: Send + Sync + 'static {
    /// Makes a process known as a worker, which can own sessions.
    fn enroll(&self, new: NewWorker) -> Boxed<'_, Result<Worker, StoreError>>;

    /// Makes the worker the owner of sessions that have something to do, that it can drive and that nobody owns: those that were
    /// wanted first come first. Two workers never take the same session.
    fn take<'a>(&'a self, by: &'a Worker, room: Room) -> Boxed<'a, Result<Taken, StoreError>>;

    /// Ends a claim, after all batches that were queued under it. If a message was delivered that the owner has not read
    /// ([`Left::mail`]), the session is wanted immediately. Changes nothing if the epoch of the claim is over.
    fn release(&self, claim: Claim, left: Left) -> Appended;

    /// Returns hints about work for a worker, from now on. A hint may come late or twice, and one that was not read yet is not
    /// repeated. The stream keeps nothing of the store open.
    fn wakes(&self, by: &Worker) -> BoxStream<'static, Wake>;

    /// Returns the sessions that match, newest first.
    fn sessions<'a>(
        &'a self,
        query: &'a SessionQuery,
    ) -> Boxed<'a, Result<Vec<SessionInfo>, StoreError>>;

    /// Describes damage of the lists by which sessions are found (inboxes, seats and waits among them). From then on this handle
    /// returns everything that can be read without the damaged parts, and leaves out the rest.
    fn damaged_lists(&self) -> Boxed<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// A process that wants to drive sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewWorker {
    /// Name for people, such as the id of the process.
    pub name: Name,
    /// Address at which other workers find what its sessions are streaming, if it listens.
    pub address: Option<Name>,
    /// Version of its program.
    pub build: Name,
    /// The newest form of lines that it reads and writes ([`codec::REVISION`](steersman_machine::stored::codec::REVISION)).
    pub revision: u16,
}

/// A worker. Clones are the same worker.
#[derive(Clone)]
pub struct Worker {
    /// Number of the worker in its store.
    pub no: u64,
    /// Tells if the worker still owns what it claimed.
    pub lease: Arc<dyn Lease>,
}

impl Worker {
    /// Returns a worker that no list names, whose lease never ends. For tools that own a session for a moment, and for tests.
    pub fn nameless() -> Self {
        Self {
            no: 0,
            lease: Arc::new(Unlimited),
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {}", self.no)
    }
}

/// The time for which a worker owns its sessions.
pub trait Lease: Send + Sync + 'static {
    /// Returns false once other workers may own the sessions of this one. Then the worker begins nothing more, and its
    /// appends may be fenced.
    fn is_live(&self) -> bool;
}

/// A lease that lasts as long as the process, because the store notices its end.
#[derive(Copy, Clone, Debug, Default)]
pub struct Unlimited;

impl Lease for Unlimited {
    fn is_live(&self) -> bool {
        true
    }
}

/// Limits on the sessions that a worker takes at once.
#[derive(Clone)]
pub struct Room {
    /// Current time. Sessions that are wanted by then are taken, and so are those with a message that no owner has read, whatever
    /// time it has: the clock of its sender may be ahead.
    pub now: Time,
    /// Maximum number of sessions to take.
    pub sessions: usize,
    /// Maximum number of sessions of the worker that may wait for one place. Sessions that wait for a place are taken as long as
    /// there is room for that place, also if they are not wanted yet: they continue when the place answers.
    pub each: usize,
    /// Number of sessions of the worker that wait for a place already, by place.
    pub waiting: BTreeMap<Name, usize>,
    /// Returns true if the worker can drive a session with these needs.
    pub can: Arc<dyn Fn(&Needs) -> bool + Send + Sync>,
}

/// Result of [`Lists::take`].
#[derive(Default)]
pub struct Taken {
    /// The sessions that the worker owns now.
    pub claims: Vec<Claim>,
    /// Sessions that are wanted and cannot be claimed, for example because their seats are damaged.
    pub refused: Vec<(SessionId, StoreError)>,
    /// The soonest time at which a session that nobody owns is wanted, if all that are wanted now were taken.
    pub next: Option<Time>,
}

/// A time before all others. A session that is wanted from then on is taken next.
pub const IMMEDIATELY: Time = Time(0);

/// State of a seat after its owner released the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Number of delivered messages that the owner has read ([`Inbox::inbox`](super::Inbox::inbox)).
    pub mail: u64,
    /// Time from which on a worker should own the session. `None` means that only a message is a reason.
    pub wants: Option<Time>,
    /// Place that does not answer and that the session waits for.
    pub place: Option<Name>,
    /// The reason why the owner could not drive the session.
    pub trouble: Option<Trouble>,
}

/// A reason why a session cannot be driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Number of owners in a row that could not drive it.
    pub times: u32,
    /// The reason, in words.
    pub why: Arc<str>,
}

/// A hint for a worker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// The lease of the worker is over: it owns nothing any more.
    Lost,
    /// A session of the worker has a new message.
    Mail(SessionId),
    /// Sessions that nobody owns may have something to do.
    Look,
}

/// Requirements for a program that drives a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Needs {
    /// The newest form of lines among the programs that wrote to it
    /// ([`codec::REVISION`](steersman_machine::stored::codec::REVISION)).
    pub revision: u16,
    /// Tools, nets and routers in Rust that it uses.
    pub natives: Vec<Name>,
}

/// The part of a store that a session belongs to.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Scope {
    /// The tenant; empty in a store without tenants.
    pub tenant: Name,
    /// The person or thing within the tenant, if the session belongs to one.
    pub subject: Option<Name>,
}

impl Scope {
    /// Returns true if something of the scope `of` belongs to this scope too: it has the same tenant, and the same subject if
    /// this scope has one.
    pub fn includes(&self, of: &Self) -> bool {
        self.tenant == of.tenant && (self.subject.is_none() || self.subject == of.subject)
    }
}

/// The state of a session that lists show without loading it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionState {
    /// One of `running`, `answered`, `waits`, `doubt`, `limit`, `failed`, `cancelled`, `paused`, `moved`.
    pub status: Name,
    /// Time of the last change of its status, its waits, its outcome, its definition or its sums.
    pub updated: Time,
    /// Short digest of its definition.
    pub definition: Name,
    /// Money spent, in millionths of the currency.
    pub micros: u64,
    /// Number of tokens spent.
    pub tokens: u64,
    /// Number of model calls made.
    pub model_calls: u64,
    /// Everything that it waits for on any branch, while nothing in it runs. [`crate::pending::read`] parses this.
    pub waits: Arc<str>,
    /// JSON object of the definition's `outcome:`.
    pub outcome: Arc<str>,
    /// Text of what it did last, at most [`LAST`] characters, as of the last change of this state.
    pub last: Arc<str>,
    /// Address of the store that has the session now, if its status is `moved`. Then nobody owns it any more, and it takes no
    /// messages ([`StoreError::Moved`]).
    pub moved: Option<Name>,
}

/// Maximum number of characters of [`SessionState::last`].
pub const LAST: usize = 120;

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Id of the session.
    pub id: SessionId,
    /// Name of its network.
    pub network: Name,
    /// The tenant and the subject that it belongs to.
    pub scope: Scope,
    /// Key by which events find it, if it has one.
    pub key: Option<Name>,
    /// Time of creation.
    pub created: Time,
    /// Salt of the hashes of its bodies, for readers that verify lines without owning the session.
    pub salt: [u8; 16],
    /// The last line on disk.
    pub head: Line,
    /// State as of the last batch that set it.
    pub state: SessionState,
    /// Names and values of its labels.
    pub labels: Vec<(Name, Arc<str>)>,
    /// The process that owns it now, if any.
    pub owner: Option<String>,
    /// State that the last owner left. While the session is owned, it says [`IMMEDIATELY`]: if the owner dies, another one takes
    /// the session.
    pub left: Left,
}

/// Conditions on sessions. All of them must be met.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
    /// Beginning of the session's id.
    pub prefix: Option<String>,
    /// The tenant, and the subject if one is given. `None` means those of all tenants.
    pub scope: Option<Scope>,
    /// Name of the network.
    pub network: Option<Name>,
    /// Key of the session.
    pub key: Option<Name>,
    /// Name and value of a label.
    pub label: Option<(Name, Arc<str>)>,
    /// Statuses, one of which the session has. Empty means any.
    pub status: Vec<Name>,
    /// Time at or after which the session was updated.
    pub since: Option<Time>,
    /// True if only sessions with a message in their inbox match.
    pub inbox: bool,
    /// Number of the worker that owns the session.
    pub worker: Option<u64>,
    /// Update time and id of a session: only those that the list has after it match, so a long list can be read in pages.
    pub after: Option<(Time, SessionId)>,
    /// Maximum number of sessions to return. `None` means all.
    pub limit: Option<usize>,
}
