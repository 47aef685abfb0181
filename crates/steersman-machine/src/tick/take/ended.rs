//! Ends of branches, offered to the call that waits for them.

use crate::snapshot::OpenCall;
use crate::stored::commit::Admitted;
use crate::stored::ids::Id;
use crate::stored::interaction::Target;
use crate::tick::Tick;
use crate::tick::effect::{BranchEnd, Until};
use crate::tick::take::Taken;
use crate::tick::wait::awaits_branches;

impl Tick<'_> {
    /// Takes the ends of branches. A call to branches then closes with one result for all ends, or its chooser begins; of a wait,
    /// the part for branches is met.
    pub(crate) fn take_ended(&mut self, call: (Id, Id), ends: &[BranchEnd]) -> Taken {
        let open = self.snapshot.call(call.0, call.1).cloned();
        let open = open.filter(|c| c.closed.is_none()).ok_or(Until::Stale)?;
        if !self.snapshot.in_scope(open.owner) || open.ends.is_some() {
            return Err(Until::Stale);
        }
        if !matches!(open.call.target, Target::Branches(_) | Target::Wait) {
            return Err(Until::Stale);
        }
        if matches!(open.call.target, Target::Branches(_)) {
            return self.branches_ended(&open, ends);
        }
        let part = awaits_branches(&self.cx(), &self.snapshot, &open);
        let waiting = Some(part.ok_or(Until::Stale)?.0);
        self.admit_ends(&open, ends);
        let gave = (!ends.is_empty())
            .then(|| crate::tick::branch::told(&crate::tick::branch::results(ends)));
        self.part_met(&open, waiting, gave.as_ref());
        Ok(())
    }

    /// Records the ends that a call received.
    pub(crate) fn admit_ends(&mut self, open: &OpenCall, ends: &[BranchEnd]) {
        if ends.is_empty() {
            self.admit_as(Admitted::Ended, Some(open.call.id));
        }
        for end in ends {
            self.admit_as(Admitted::Ended, Some(end.branch));
        }
    }
}
