//! Work that no branch waits for: effects that were left in doubt, and the probes and notifications that this owner runs.

use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::ids::Id;
use steersman_machine::tick::effect::Wish;

/// Effects that were left in doubt, and the tools that the owner runs for itself to learn of a doubt ([`probe`](crate::driver::probe)) or to
/// tell a person ([`reach`](crate::driver::reach)).
///
/// Invariants, which [`Asides::recount`] checks: an effect in `left` is in doubt by the ledger, and is not out. The ledger knows each
/// notification, since it is here with its first line. `probing` has the ids of probes, not of effects in doubt: a probe runs on if its
/// effect ends meanwhile, and its answer is then noted as late.
#[derive(Clone, Default)]
pub(crate) struct Asides {
    /// Effects in doubt that no branch waits for.
    left: BTreeMap<Id, Left>,
    /// Those that are still to be added to `left`.
    left_now: Vec<Id>,
    /// Probes whose attempt is on its way to the disk, or runs. Their effects are held, and the hold may end without a person.
    probing: BTreeSet<Id>,
    /// Notifications of people that this owner has begun, by their effect.
    notices: BTreeMap<Id, Notice>,
}

/// An effect in doubt that no branch waits for, with the last snapshot where one did.
#[derive(Clone)]
pub(crate) struct Left {
    pub(crate) snapshot: Snapshot,
    pub(crate) wish: Wish,
}

/// State, in this process, of an effect that notifies a person.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Notice {
    /// An attempt's line is on its way to the disk, or the attempt runs.
    Running,
    /// Another attempt follows soon.
    Soon,
    /// The notification ended. The line that says so is written or is being written.
    Over,
}

impl Asides {
    /// Returns the number of attempts that are on their way to the disk or run.
    pub(crate) fn running(&self) -> usize {
        self.probing.len() + self.notifying()
    }

    /// Takes out what is kept. The snapshots are read again: of them only the ids are kept. `parks`: nothing runs.
    pub(crate) fn closes(&mut self, parks: bool) -> (Self, Vec<Id>) {
        let mut all = std::mem::take(self);
        let left = std::mem::take(&mut all.left).into_keys().collect();
        (if parks { Self::default() } else { all }, left)
    }

    /// Checks the invariants. `is_left`: an effect is in doubt and is not out. `known`: the ledger has a notification of this effect.
    pub(crate) fn recount(
        &self,
        is_left: impl Fn(Id) -> bool,
        known: impl Fn(Id) -> bool,
    ) -> Result<(), String> {
        if let Some(id) = self.left.keys().find(|id| !is_left(**id)) {
            return Err(format!("{id} is left in doubt, and is settled or out"));
        }
        match self.notices.keys().find(|effect| !known(**effect)) {
            Some(effect) => Err(format!("the ledger has no notification {effect}")),
            None => Ok(()),
        }
    }
}

/// Effects in doubt.
impl Asides {
    /// Returns the effects that were left in doubt.
    pub(crate) fn left(&self) -> &BTreeMap<Id, Left> {
        &self.left
    }

    /// Returns true if the snapshots of effects are still to be read.
    pub(crate) fn has_unread(&self) -> bool {
        !self.left_now.is_empty()
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
}

/// Probes.
impl Asides {
    pub(crate) fn is_probing(&self, probe: Id) -> bool {
        self.probing.contains(&probe)
    }

    /// Returns true if a probe runs.
    pub(crate) fn probes(&self) -> bool {
        !self.probing.is_empty()
    }

    pub(crate) fn probe_begins(&mut self, probe: Id) {
        self.probing.insert(probe);
    }

    pub(crate) fn probe_ended(&mut self, probe: Id) {
        self.probing.remove(&probe);
    }
}

/// Notifications.
impl Asides {
    /// Returns the number of attempts to notify a person that are on their way to the disk or run.
    pub(crate) fn notifying(&self) -> usize {
        let running = |state: &&Notice| **state == Notice::Running;
        self.notices.values().filter(running).count()
    }

    /// Returns true if this process does, or did, what is to be done for a notification now.
    pub(crate) fn knows(&self, effect: Id) -> bool {
        self.notices.contains_key(&effect)
    }

    pub(crate) fn notice_begins(&mut self, effect: Id) {
        self.notices.insert(effect, Notice::Running);
    }

    pub(crate) fn notice_again_soon(&mut self, effect: Id) {
        self.notices.insert(effect, Notice::Soon);
    }

    /// The short delay of a notification is over: it begins next. Returns false if this is no notification that waits.
    pub(crate) fn delay_is_over(&mut self, effect: Id) -> bool {
        let waits = self.notices.get(&effect) == Some(&Notice::Soon);
        if waits {
            self.notices.remove(&effect);
        }
        waits
    }

    pub(crate) fn notice_ends(&mut self, effect: Id) {
        self.notices.insert(effect, Notice::Over);
    }

    /// The next attempt follows at a time that is in the log, or nothing waits any more.
    pub(crate) fn forgets(&mut self, effect: Id) {
        self.notices.remove(&effect);
    }
}
