//! The memories port: contents that agents save, by scope, across sessions.

use super::{Scope, SessionId, StoreError};
use crate::Boxed;
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Name, Time};

/// The memories of agents.
pub trait Memories: Send + Sync + 'static {
    /// Drops the memories that are past their time at `new.at`, stores a memory and its content in one step, and returns its
    /// number. If the key is known, nothing is stored, and the number of the known memory is returned. A memory beyond a bound
    /// ([`bounds::memory`](super::bounds::memory)) is refused.
    fn remember(&self, new: NewMemory) -> Boxed<'_, Result<u64, StoreError>>;

    /// Returns the memories that match, newest first.
    fn memories(&self, query: MemoryQuery) -> Boxed<'_, Result<Vec<Memory>, StoreError>>;

    /// Rates a memory, as a person or as an agent. The last rating of each counts. Returns false if there is no such memory.
    fn rate_memory(
        &self,
        id: u64,
        rated: Rated,
        by_person: bool,
    ) -> Boxed<'_, Result<bool, StoreError>>;

    /// Deletes memories, and returns how many existed. Their contents remain as blobs, even if nothing else refers to them.
    fn forget_memories(&self, ids: Vec<u64>) -> Boxed<'_, Result<u64, StoreError>>;
}

/// A memory to store.
#[derive(Clone, Debug)]
pub struct NewMemory {
    /// Key of the memory, accepted once in its tenant as long as the memory is kept. Storing a known key again changes nothing.
    pub key: Name,
    /// The tenant and the subject of the session that saved it.
    pub part: Scope,
    /// Owner of the memory, such as a person or a customer.
    pub scope: Arc<str>,
    /// Name of the memory. Several memories may have the same name.
    pub name: Arc<str>,
    /// Words by which the memory is found.
    pub tags: Vec<Arc<str>>,
    /// Media type of the content.
    pub media: Name,
    /// The content, which is stored as a blob.
    pub content: Arc<[u8]>,
    /// The session that saved it. `None` means that a person or a test did.
    pub session: Option<SessionId>,
    /// The effect that saved it.
    pub effect: Option<Id>,
    /// Name of the session's network.
    pub network: Name,
    /// The agent that saved it, by the name of its definition.
    pub by: Name,
    /// Time of saving.
    pub at: Time,
    /// Time after which the memory is gone. `None` means that it stays until it is forgotten.
    pub until: Option<Time>,
    /// Numbers of memories in whose place it stands. Those that are unknown or have another tenant, subject or scope are passed
    /// over.
    pub replaces: Vec<u64>,
}

/// A stored memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Number of the memory in the store. Numbers are never reused.
    pub id: u64,
    /// The tenant and the subject of the session that saved it.
    pub part: Scope,
    /// Owner of the memory, such as a person or a customer.
    pub scope: Arc<str>,
    /// Name of the memory, not necessarily unique.
    pub name: Arc<str>,
    /// Words by which the memory is found.
    pub tags: Vec<Arc<str>>,
    /// Media type of the content.
    pub media: Name,
    /// Length of the content, in bytes.
    pub len: u64,
    /// blake3 hash of the content, which is a blob.
    pub hash: [u8; 32],
    /// The session that saved it, if one did.
    pub session: Option<SessionId>,
    /// The effect that saved it, if one did.
    pub effect: Option<Id>,
    /// Name of the session's network.
    pub network: Name,
    /// The agent that saved it, by the name of its definition.
    pub by: Name,
    /// Time of saving.
    pub at: Time,
    /// Time after which the memory is gone, if there is one.
    pub until: Option<Time>,
    /// Number of the memory that stands in its place. When that one is gone, this one counts again.
    pub replaced: Option<u64>,
    /// The last rating by an agent.
    pub by_agents: Option<Rated>,
    /// The last rating by a person. It takes precedence over ratings by agents.
    pub by_people: Option<Rated>,
}

impl Memory {
    /// Returns the rating that counts.
    pub fn rating(&self) -> Option<&Rated> {
        self.by_people.as_ref().or(self.by_agents.as_ref())
    }
}

/// A rating of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rated {
    /// The rating, from 1 to 5.
    pub rating: u8,
    /// Reason for the rating.
    pub reason: Option<Arc<str>>,
    /// The person or agent that rated it.
    pub by: Name,
}

/// Conditions on memories. All of them must be met.
#[derive(Clone, Debug, Default)]
pub struct MemoryQuery {
    /// The tenant, and the subject if one is given. `None` means those of all tenants.
    pub part: Option<Scope>,
    /// The exact scope. `None` means all scopes.
    pub scope: Option<Arc<str>>,
    /// Number of the memory.
    pub id: Option<u64>,
    /// The session that saved the memory.
    pub session: Option<SessionId>,
    /// True for memories alone in whose place no other one stands.
    pub current: bool,
    /// Current time. Memories that are past their time are left out.
    pub now: Time,
}

impl MemoryQuery {
    /// Returns true if a memory meets all conditions.
    pub(super) fn wants(&self, memory: &Memory) -> bool {
        let (part, scope) = (self.part.as_ref(), self.scope.as_ref());
        part.is_none_or(|part| part.includes(&memory.part))
            && scope.is_none_or(|scope| *scope == memory.scope)
            && self.id.is_none_or(|id| id == memory.id)
            && (self.session.is_none() || self.session == memory.session)
            && (!self.current || memory.replaced.is_none())
            && memory.until.is_none_or(|until| until >= self.now)
    }
}
