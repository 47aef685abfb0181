//! The notifications of people that this owner has begun.

use std::collections::BTreeMap;
use steersman_machine::stored::ids::Id;

/// The notifications of people, by their effect.
///
/// Invariant: the ledger knows each of them, since it is here with its first line ([`People::recount`]).
#[derive(Clone, Default)]
pub(crate) struct People(BTreeMap<Id, State>);

/// State, in this process, of an effect that notifies a person.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    /// An attempt's line is on its way to the disk, or the attempt runs.
    Running,
    /// Another attempt follows soon.
    Soon,
    /// The notification ended. The line that says so is written or is being written.
    Over,
}

impl People {
    /// Returns true if this process does, or did, what is to be done for a notification now.
    pub(crate) fn knows(&self, effect: Id) -> bool {
        self.0.contains_key(&effect)
    }

    /// Returns the number of attempts that are on their way to the disk or run.
    pub(crate) fn running(&self) -> usize {
        let running = |state: &&State| **state == State::Running;
        self.0.values().filter(running).count()
    }

    pub(crate) fn begins(&mut self, effect: Id) {
        self.0.insert(effect, State::Running);
    }

    pub(crate) fn again_soon(&mut self, effect: Id) {
        self.0.insert(effect, State::Soon);
    }

    /// The short delay of a notification is over: it begins next. Returns false if this is no notification that waits.
    pub(crate) fn delay_is_over(&mut self, effect: Id) -> bool {
        let waits = self.0.get(&effect) == Some(&State::Soon);
        if waits {
            self.0.remove(&effect);
        }
        waits
    }

    pub(crate) fn ends(&mut self, effect: Id) {
        self.0.insert(effect, State::Over);
    }

    /// The next attempt follows at a time that is in the log, or nothing waits any more.
    pub(crate) fn forgets(&mut self, effect: Id) {
        self.0.remove(&effect);
    }

    /// Checks the invariant. `known`: the ledger has a notification of this effect.
    pub(crate) fn recount(&self, known: impl Fn(Id) -> bool) -> Result<(), String> {
        match self.0.keys().find(|effect| !known(**effect)) {
            Some(effect) => Err(format!("the ledger has no notification {effect}")),
            None => Ok(()),
        }
    }
}
