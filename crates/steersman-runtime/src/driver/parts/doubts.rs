//! Effects in doubt that no branch waits for, and probes that run.

use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::ids::Id;
use steersman_machine::tick::effect::Wish;

/// Data about the doubts of a session that its owner has in addition to the log.
///
/// Invariant: an effect in `left` is in doubt by the ledger, and is not out ([`Doubts::recount`]). `probing` has the ids of probes, not of
/// effects in doubt: a probe runs on if its effect ends meanwhile, and its answer is then noted as late.
#[derive(Clone, Default)]
pub(crate) struct Doubts {
    /// Effects in doubt that no branch waits for.
    left: BTreeMap<Id, Left>,
    /// Those that are still to be added to `left`.
    left_now: Vec<Id>,
    /// Probes whose attempt is on its way to the disk, or runs. Their effects are held, and the hold may end without a person.
    probing: BTreeSet<Id>,
}

/// An effect in doubt that no branch waits for, with the last snapshot where one did.
#[derive(Clone)]
pub(crate) struct Left {
    pub(crate) snapshot: Snapshot,
    pub(crate) wish: Wish,
}

impl Doubts {
    /// Returns the effects that were left in doubt.
    pub(crate) fn left(&self) -> &BTreeMap<Id, Left> {
        &self.left
    }

    /// Returns true if the snapshots of effects are still to be read.
    pub(crate) fn has_unread(&self) -> bool {
        !self.left_now.is_empty()
    }

    pub(crate) fn is_probing(&self, probe: Id) -> bool {
        self.probing.contains(&probe)
    }

    /// Returns the number of probes that run.
    pub(crate) fn probing(&self) -> usize {
        self.probing.len()
    }

    /// No branch waits for an effect in doubt any more. Its snapshot is read with the next line.
    pub(crate) fn leaves(&mut self, effect: Id) {
        self.left_now.push(effect);
    }

    /// Takes the effects whose snapshots are to be read.
    pub(crate) fn take_unread(&mut self) -> Vec<Id> {
        std::mem::take(&mut self.left_now)
    }

    pub(crate) fn keeps(&mut self, effect: Id, snapshot: Snapshot, wish: Wish) {
        self.left.insert(effect, Left { snapshot, wish });
    }

    /// A branch waits for the effect again.
    pub(crate) fn comes_out(&mut self, effect: Id) {
        self.left.remove(&effect);
    }

    /// Forgets effects whose doubt is settled.
    pub(crate) fn keep(&mut self, is_left: impl Fn(Id) -> bool) {
        self.left.retain(|id, _| is_left(*id));
    }

    pub(crate) fn probe_begins(&mut self, probe: Id) {
        self.probing.insert(probe);
    }

    pub(crate) fn probe_ended(&mut self, probe: Id) {
        self.probing.remove(&probe);
    }

    /// Takes out what is kept. The snapshots are read again: of them only the ids are kept. `parks`: nothing runs.
    pub(crate) fn closes(&mut self, parks: bool) -> (Self, Vec<Id>) {
        let mut all = std::mem::take(self);
        let left = std::mem::take(&mut all.left).into_keys().collect();
        (if parks { Self::default() } else { all }, left)
    }

    /// Checks the invariant. `is_left`: an effect is in doubt and is not out.
    pub(crate) fn recount(&self, is_left: impl Fn(Id) -> bool) -> Result<(), String> {
        match self.left.keys().find(|id| !is_left(**id)) {
            Some(id) => Err(format!("{id} is left in doubt, and is settled or out")),
            None => Ok(()),
        }
    }
}
