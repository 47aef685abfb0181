//! Stepping: a session that stops after each line ([`crate::step`]).

use super::Job;
use super::parts::Stepping;
use steersman_machine::stored::ids::Id;

impl Job<'_, '_> {
    pub(crate) fn is_between_steps(&self) -> bool {
        self.d.is_between_steps()
    }

    /// Allows one line if the session has settled: that line comes from an input from outside.
    pub(super) fn rests(&mut self) {
        if !self.d.ledger.paused {
            self.d.course.settled();
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
        if self.d.course.stepping() == Stepping::Free {
            return false;
        }
        self.d.effects.waits_for_step(id);
        true
    }
}
