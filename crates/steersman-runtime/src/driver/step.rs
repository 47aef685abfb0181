//! Stepping: a session that stops after each line ([`crate::step`]).

use super::{Driver, Job};
use crate::step::Let;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::Id;

/// Stepping state of a session.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Stepping {
    /// The session does not stop after lines.
    Free,
    /// The session may make one line.
    Line,
    /// The session made that line, and nothing begins.
    Stands,
}

impl Driver {
    /// Makes the session stop after each line, or not. A session that has not begun makes its first line before it stops.
    pub(crate) fn steps(&mut self, steps: bool) {
        self.course.stepping = match (steps, &self.bound.network) {
            (false, _) => Stepping::Free,
            (true, None) => Stepping::Line,
            (true, Some(_)) => Stepping::Stands,
        };
    }

    /// Returns true if the session makes no line and begins nothing. While it is being stopped for good, it still takes outcomes.
    pub(super) fn stands(&self) -> bool {
        self.course.stepping == Stepping::Stands && !self.course.stopping
    }
}

impl Job<'_, '_> {
    pub(crate) fn stands(&self) -> bool {
        self.d.stands()
    }

    pub(super) fn let_go_on(&mut self, how: Let) {
        self.d.course.stepping = match (how, self.d.course.stepping) {
            (Let::Free, _) | (_, Stepping::Free) => Stepping::Free,
            (Let::Line, _) => Stepping::Line,
        };
    }

    /// Allows one line if the session has settled: that line comes from an input from outside.
    pub(super) fn rests(&mut self) {
        if self.d.course.stepping == Stepping::Stands && !self.d.ledger.paused {
            self.d.course.stepping = Stepping::Line;
        }
    }

    pub(super) fn made_line(&mut self, line: &LogLine) {
        if self.d.course.stepping == Stepping::Line && line.commit.is_some() {
            self.d.course.stepping = Stepping::Stands;
        }
    }

    /// Returns the next effect whose `Started` is on disk. It was allowed to begin before; if the process died now, it would be
    /// in doubt.
    pub(super) fn next_granted(&self) -> Option<Id> {
        self.d.effects.next_starting()
    }

    /// Returns true if the effect waits for the next step: while the session steps, no effect begins with the line that wishes
    /// it, so that the line can be looked at first.
    pub(super) fn waits_for_go(&mut self, id: Id) -> bool {
        if self.d.course.stepping == Stepping::Free {
            return false;
        }
        self.d.effects.waits_for_step(id);
        true
    }
}
