//! Turns and tasks end: answers, the caller's result, the next call that is served.

use crate::ids::{Body, Id, Name};
use crate::interaction::{Cause, End, Interaction};
use crate::tick::Tick;

/// How an agent ends.
pub(crate) struct Finish<'a> {
    pub(crate) end: End,
    pub(crate) cause: Cause,
    pub(crate) body: Option<Body>,
    pub(crate) code: Option<&'a str>,
}

impl Tick<'_> {
    /// Ends an agent's turn or task; a task's end is its caller's result.
    pub(crate) fn finish(&mut self, agent: Id, how: &Finish<'_>) {
        self.push(
            agent,
            Interaction::Finished {
                end: how.end,
                cause: how.cause,
                body: how.body,
                code: how.code.map(Name::from),
                writes: Vec::new(),
            },
        );
        self.wake(agent);
    }

    /// One move of a woken agent.
    pub(crate) fn step(&mut self, _agent: Id) {}

    /// Too many moves: this agent ends, children first.
    pub(crate) fn end_of_moves(&mut self, _agent: Id) {}
}
