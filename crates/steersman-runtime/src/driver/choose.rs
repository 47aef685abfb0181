//! Changes of the current branch: a person adopts or selects a branch, or a rewind supersedes the current one.

use super::branches::{Acted, ToBegin};
use super::{Heard, Job, Stop};
use crate::bind;
use crate::branches::{adopted_already, not_adoptable, not_all_act, searched};
use crate::ledger::Progress;
use crate::store::InboxMessage;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::LedgerEntry;
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::tick::branch::adopted_up_to;
use steersman_machine::tick::effect::Opened;

impl Job<'_, '_> {
    /// Adopts a branch with session scope by making it current. Refuses if the work of the current branch since the fork would be
    /// lost; the message names the paths that both wrote. Of a dry branch only the part before its first simulated effect is
    /// adopted, and continues in a live branch.
    pub(super) fn choose(
        &mut self,
        message: &InboxMessage,
        branch: Id,
        at: Option<Line>,
    ) -> Result<Acted, Stop> {
        let target = self.d.ledger.current;
        let head = self
            .d
            .ledger
            .branch(target)
            .map_or(Line::NONE, |b| b.commit);
        let here = self.snapshot_at(target, head)?;
        let Some(known) = self.d.ledger.branch(branch).cloned() else {
            return Ok(Err(format!("there is no branch {branch}")));
        };
        let there = self.snapshot_at(branch, known.commit)?;
        if let Some(why) = not_adoptable(&self.d.ledger, &here, &there) {
            return Ok(Err(why));
        }
        let Some(forked) = self.d.ledger.common(branch, target) else {
            return Ok(Err("these branches have no line in common".to_owned()));
        };
        let dry = known.opening.as_ref().is_some_and(|o| o.dry);
        if !dry && at.is_none() && known.superseded.is_none() {
            let mut entries = vec![LedgerEntry::Adopted {
                branch,
                at: known.commit,
            }];
            if !self.is_awaited(target, branch) {
                entries.push(LedgerEntry::Superseded {
                    branch: target,
                    after: forked,
                });
                self.d.branches.leaves(target);
            }
            entries.push(LedgerEntry::Current(branch));
            self.accept_with(message, entries)?;
            return Ok(Ok(()));
        }
        let at = at.unwrap_or(known.commit);
        let (branch, at) = self.adopted_from(branch, at, target)?;
        if let Some(why) = adopted_already(&self.d.ledger, branch) {
            return Ok(Err(why));
        }
        let opened = Opened {
            rewound: true,
            ..Opened::default()
        };
        let begin = ToBegin {
            adopts: Some(branch),
            ..ToBegin::new(branch, Some(at), opened)
        };
        self.open_by_person(message, begin)
    }

    /// Returns the line up to which a branch is adopted: the one before its first simulated effect or leaf.
    pub(super) fn adopted_up_to(&mut self, branch: Id, head: Line) -> Result<Line, Stop> {
        let end = self.snapshot_at(branch, head)?;
        let mut simulated = None;
        let upto = adopted_up_to(&end, |line| {
            simulated = Some(line);
            line
        });
        let Some(line) = simulated else {
            return Ok(upto);
        };
        // The commit before the one that took a simulated outcome.
        let line = self.seen.past.line(line)?;
        Ok(line.commit.as_ref().map_or(upto, |c| c.parent))
    }

    /// Returns the branch and the line that are really adopted: the last point before anything was simulated, on the branch
    /// itself or on an ancestor outside the target's path.
    pub(super) fn adopted_from(
        &mut self,
        branch: Id,
        at: Line,
        target: Id,
    ) -> Result<(Id, Line), Stop> {
        let head = self
            .d
            .ledger
            .branch(branch)
            .map_or(at, |known| known.commit);
        let mut found = (branch, at.min(self.adopted_up_to(branch, head)?));
        let mut below = branch;
        while let Some((above, forked)) = self.d.ledger.branch(below).and_then(|b| b.from) {
            if self.d.ledger.on_path(target, above, forked) {
                break;
            }
            if self.snapshot_at(above, forked)?.first_simulated.is_some() {
                found = (above, self.adopted_up_to(above, forked)?);
            }
            below = above;
        }
        Ok(found)
    }

    /// Returns the snapshot of a branch at a line, as a branch of the target: its writes count from the line where it left the
    /// target's path, also if it was forked several times since.
    pub(super) fn as_branch_of(
        &mut self,
        target: Id,
        branch: Id,
        at: Line,
    ) -> Result<Snapshot, Stop> {
        let mut from = self.snapshot_at(branch, at)?;
        if let Some(common) = self.d.ledger.common(branch, target) {
            from.forked_at = from.forked_at.min(common);
        }
        Ok(from)
    }

    /// Returns the branches that a rewind of `from` to a line leaves behind, with their last lines that count: `from`, and the
    /// current branch if it is another one and no call waits for it.
    pub(super) fn left_by(&self, from: Id, at: Line) -> Vec<(Id, Line)> {
        let mut left = vec![(from, at)];
        let current = self.d.ledger.current;
        if current != from && !self.is_awaited(current, from) {
            let forked = self.d.ledger.common(from, current);
            left.push((current, forked.unwrap_or(at).min(at)));
        }
        left
    }

    /// Returns the effects of a branch after a line that touched the world, or may have.
    pub(super) fn abandoned(&self, from: Id, at: Line) -> Vec<Id> {
        let on_it = |record: &crate::ledger::Record| record.branch == from;
        self.d
            .ledger
            .effects()
            .filter(|(_, record)| on_it(record) && record.attempt > 0)
            .filter(|(_, record)| match record.progress {
                Progress::Done { at: done, .. } | Progress::GivenUp { at: done } => done > at,
                Progress::Started { .. } | Progress::Unknown { .. } => true,
                Progress::Wished | Progress::NotPerformed => false,
            })
            .map(|(id, _)| id)
            .collect()
    }

    pub(super) fn make_current(
        &mut self,
        message: &InboxMessage,
        branch: Id,
    ) -> Result<Acted, Stop> {
        let Some(known) = self.d.ledger.branch(branch) else {
            return Ok(Err(format!("there is no branch {branch}")));
        };
        let superseded = known.superseded.is_some();
        let scoped = known.opening.as_ref().is_some_and(|o| o.scope.is_some());
        if let Some(why) = searched(&self.d.ledger, branch) {
            return Ok(Err(why));
        }
        if scoped {
            return Ok(Err(not_all_act(branch)));
        }
        if superseded {
            let at = known.commit;
            let left = self.snapshot_at(branch, at)?;
            let others = self
                .d
                .branches
                .live()
                .iter()
                .map(|(id, b)| (*id, &b.snapshot));
            let bound = bind::common(self.d.who.session(), others.chain([(branch, &left)]));
            if let Err(refused) = bound {
                return Ok(Err(refused.to_string()));
            }
        }
        self.accept_with(message, vec![LedgerEntry::Current(branch)])?;
        if superseded {
            self.d.course.hears_first(Heard::Current(branch));
        }
        Ok(Ok(()))
    }

    /// Loads a branch that was superseded and was made current.
    pub(super) fn drive_again(&mut self, branch: Id) -> Result<(), Stop> {
        self.catch_up(self.d.who.last())?;
        self.load_branch(branch)?;
        self.take_up_branch(branch)
    }
}
