//! Branches end for whoever waits for them.

use crate::branch::JOIN;
use crate::commit::Admitted;
use crate::effect::{BranchEnd, Until};
use crate::ids::Id;
use crate::interaction::Target;
use crate::take::Taken;
use crate::tick::Tick;
use crate::wait::awaits_branches;

impl Tick<'_> {
    /// All branches that count have ended: the call's one result holds theirs, or its chooser begins.
    pub(crate) fn take_ended(&mut self, call: (Id, Id), ends: &[BranchEnd]) -> Taken {
        let open = self.snapshot.call(call.0, call.1).cloned();
        let open = open.filter(|c| c.closed.is_none()).ok_or(Until::Stale)?;
        if !self.snapshot.in_scope(open.owner) || open.ends.is_some() {
            return Err(Until::Stale);
        }
        if !matches!(open.call.target, Target::Branches(_) | Target::Wait) {
            return Err(Until::Stale);
        }
        let waiting = match open.call.target {
            Target::Wait => {
                let part = awaits_branches(&self.cx(), &self.snapshot, &open);
                Some(part.ok_or(Until::Stale)?.0)
            }
            _ => None,
        };
        if ends.is_empty() {
            self.admit_as(Admitted::Ended, Some(open.call.id), b"");
        }
        for end in ends {
            let text = format!("{}@{}", end.branch, end.at);
            self.admit_as(Admitted::Ended, Some(end.branch), text.as_bytes());
        }
        match &open.call.target {
            Target::Branches(_) if *open.call.name == *JOIN => {
                self.joined(&open, &crate::branch::results(ends));
            }
            Target::Branches(_) => self.ends(&open, ends),
            _ => {
                let gave = (!ends.is_empty()).then(|| crate::branch::results(ends));
                self.part_met(&open, waiting, gave.as_ref());
            }
        }
        Ok(())
    }
}
