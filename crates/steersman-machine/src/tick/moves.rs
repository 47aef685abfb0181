//! The order of a tick: which agent moves next, and which agents owe a model call at its end.

use crate::stored::bounds::MOVES;
use crate::stored::ids::{Id, Path};
use std::collections::BTreeSet;

/// Place of an agent in the order of moves.
pub(crate) type Place = (Path, Id);

/// Agents that are to move, in path order.
#[derive(Default)]
pub(crate) struct Moves {
    woken: BTreeSet<Place>,
    /// Number of moves that were begun.
    made: u32,
    /// Agents that owe a model call, which is wished when no agent can move any more.
    thinkers: BTreeSet<Place>,
}

impl Moves {
    /// Marks an agent that has something new to deal with.
    pub(super) fn wake(&mut self, agent: Place) {
        self.woken.insert(agent);
    }

    /// Returns the next agent to move, and counts its move.
    pub(super) fn begin_next(&mut self) -> Option<Id> {
        let (_, agent) = self.woken.pop_first()?;
        self.made += 1;
        Some(agent)
    }

    /// Returns true if the newest move is one more than a tick may have.
    pub(super) fn are_too_many(&self) -> bool {
        self.made > MOVES
    }

    /// Notes that an agent owes a model call.
    pub(super) fn think(&mut self, agent: Place) {
        self.thinkers.insert(agent);
    }

    /// Returns true if an agent is noted to owe a model call.
    pub(super) fn thinks(&self, agent: &Place) -> bool {
        self.thinkers.contains(agent)
    }

    /// Iterates over the agents that are noted to owe a model call.
    pub(super) fn thinkers(&self) -> impl ExactSizeIterator<Item = Id> {
        self.thinkers.iter().map(|(_, agent)| *agent)
    }

    /// Removes and returns the agents that are noted to owe a model call.
    pub(super) fn take_thinkers(&mut self) -> impl Iterator<Item = Id> + use<> {
        let thinkers = std::mem::take(&mut self.thinkers);
        thinkers.into_iter().map(|(_, agent)| agent)
    }
}
