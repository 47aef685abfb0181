//! What a store keeps for the memory of agents: contents by scope, over all sessions.

use super::SessionId;
use std::sync::Arc;
use steersman_machine::ids::{Id, Name, Time};

/// Something that is to be remembered.
#[derive(Clone, Debug)]
pub struct NewMemory {
    /// Accepted once, for as long as the memory is kept: what comes under the same key again changes nothing.
    pub key: Name,
    /// Whose it is.
    pub scope: Arc<str>,
    /// Its name. Several may have the same one.
    pub name: Arc<str>,
    /// Words it is found by.
    pub tags: Vec<Arc<str>>,
    /// Media type of its content.
    pub media: Name,
    /// What it consists of: a blob.
    pub content: Arc<[u8]>,
    /// The session that saved it; none: a person or a test did.
    pub session: Option<SessionId>,
    /// The effect that did.
    pub effect: Option<Id>,
    /// The network of the session.
    pub network: Name,
    /// Who saved it: the agent, by its definition.
    pub by: Name,
    /// When.
    pub at: Time,
    /// It is gone after this; none: it stays until it is forgotten.
    pub until: Option<Time>,
}

/// Something that is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Its number in the store. No other one ever has it.
    pub id: u64,
    /// Whose it is.
    pub scope: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Words it is found by.
    pub tags: Vec<Arc<str>>,
    /// Media type.
    pub media: Name,
    /// Bytes of its content.
    pub len: u64,
    /// blake3 of its content, which is a blob.
    pub hash: [u8; 32],
    /// The session that saved it.
    pub session: Option<SessionId>,
    /// The effect that did.
    pub effect: Option<Id>,
    /// The network of the session.
    pub network: Name,
    /// Who saved it.
    pub by: Name,
    /// When.
    pub at: Time,
    /// It is gone after this.
    pub until: Option<Time>,
    /// The last rating of an agent.
    pub by_agents: Option<Rated>,
    /// The last rating of a person: it outranks that of agents.
    pub by_people: Option<Rated>,
}

impl Memory {
    /// The rating that counts.
    pub fn rating(&self) -> Option<&Rated> {
        self.by_people.as_ref().or(self.by_agents.as_ref())
    }
}

/// How good somebody says that a memory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rated {
    /// From 1 to 5.
    pub rating: u8,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// Who says it.
    pub by: Name,
}

/// Which memories.
#[derive(Clone, Debug, Default)]
pub struct MemoryQuery {
    /// Of this scope, exactly; none: of all.
    pub scope: Option<Arc<str>>,
    /// With this number.
    pub id: Option<u64>,
    /// Saved by this session.
    pub session: Option<SessionId>,
    /// Those that are past their time at this moment are left out.
    pub now: Time,
}

impl MemoryQuery {
    /// Whether it asks for one.
    pub(super) fn wants(&self, memory: &Memory) -> bool {
        self.scope
            .as_ref()
            .is_none_or(|scope| *scope == memory.scope)
            && self.id.is_none_or(|id| id == memory.id)
            && (self.session.is_none() || self.session == memory.session)
            && memory.until.is_none_or(|until| until >= self.now)
    }
}
