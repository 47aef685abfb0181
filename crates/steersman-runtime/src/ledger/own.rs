//! Tools that the engine runs for itself: they tell people that something waits, and look whether something happened.

use super::Ledger;
use serde::{Deserialize, Serialize};
use steersman_machine::commit::{LogLine, Probing, Reaching};
use steersman_machine::ids::{Body, Id, Name, Time};

/// A person is, or was, told that something waits for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// What waits.
    pub of: Id,
    /// The person.
    pub by: Name,
    /// The last attempt that may have begun.
    pub attempt: u32,
    /// Nothing tries again: they were told, or it was given up.
    pub over: bool,
    /// The next attempt is due then; none: at once, or it is over.
    pub again: Option<Time>,
    /// It told of a hold of the effect before the one that opened last.
    pub earlier: bool,
}

/// A tool is, or was, asked whether an effect in doubt happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The effect.
    pub of: Id,
    /// The tool.
    pub tool: Name,
    /// The last attempt that may have begun.
    pub attempt: u32,
    /// Attempts that failed. Those that a kill ended are not counted: nobody knows how they would have ended.
    pub failed: u32,
    /// The next attempt is due then; none: at once, or it is over.
    pub again: Option<Time>,
    /// Nothing asks again: it answered, or it was given up.
    pub over: bool,
    /// The last that is known of it: its answer, or why the last attempt failed.
    pub last: Option<Heard>,
}

/// How an attempt of a probe ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Heard {
    /// It answered; whether the effect happened, where that can be told.
    Said(Body, Option<bool>),
    /// It failed, for this reason.
    Failed(Body),
}

impl Ledger {
    pub(super) fn told(&mut self, effect: Id, of: Id, by: &Name, what: &Reaching) {
        let reach = self.reaches.entry(effect).or_insert_with(|| Reach {
            of,
            by: by.clone(),
            attempt: 0,
            over: false,
            again: None,
            earlier: false,
        });
        reach.again = None;
        match what {
            Reaching::Started { attempt, .. } => reach.attempt = *attempt,
            Reaching::Done | Reaching::Failed(_) => reach.over = true,
        }
    }

    /// An attempt of an effect is put off, or one to tell a person.
    pub(super) fn put_off(&mut self, line: &LogLine, effect: Id, at: Time) {
        match self.reaches.get_mut(&effect) {
            Some(reach) => reach.again = Some(at),
            None => self.record(line, effect).again = Some(at),
        }
    }

    /// What tells people of what waits now, and is tried again at a time.
    pub(crate) fn reaches_again(&self) -> impl Iterator<Item = (Id, &Reach)> {
        let again = self.reaches.iter().map(|(effect, reach)| (*effect, reach));
        again.filter(|(_, reach)| reach.again.is_some() && !reach.earlier)
    }

    /// What told, or tells, this person of what waits now.
    pub(crate) fn reach(&self, of: Id, by: &str) -> Option<(Id, &Reach)> {
        let mut all = self.reaches.iter();
        let found = all.find(|(_, reach)| reach.of == of && *reach.by == *by && !reach.earlier)?;
        Some((*found.0, found.1))
    }

    /// By the effect that tells them.
    pub(crate) fn reached(&self, effect: Id) -> Option<&Reach> {
        self.reaches.get(&effect)
    }

    pub(super) fn probed(&mut self, effect: Id, of: Id, what: &Probing) {
        match what {
            Probing::Started { tool, attempt } => {
                // Of several probes of one doubt the newest counts.
                self.probes
                    .retain(|id, probe| *id == effect || probe.of != of);
                let probe = self.probes.entry(effect).or_insert_with(|| Probe {
                    of,
                    tool: tool.clone(),
                    attempt: 0,
                    failed: 0,
                    again: None,
                    over: false,
                    last: None,
                });
                (probe.attempt, probe.again) = (*attempt, None);
            }
            Probing::Said { happened, said, .. } => {
                if let Some(probe) = self.probes.get_mut(&effect) {
                    probe.over = true;
                    probe.last = Some(Heard::Said(*said, *happened));
                }
            }
            Probing::Failed { why, again, .. } => {
                if let Some(probe) = self.probes.get_mut(&effect) {
                    probe.failed += 1;
                    (probe.again, probe.over) = (*again, again.is_none());
                    probe.last = Some(Heard::Failed(*why));
                }
            }
        }
    }

    /// The newest probe of an effect that is in doubt, with its id; none: nothing asked yet, or the doubt is settled.
    pub fn probe(&self, of: Id) -> Option<(Id, &Probe)> {
        let found = self.probes.iter().find(|(_, probe)| probe.of == of)?;
        Some((*found.0, found.1))
    }

    /// A probe by its id, as long as the doubt that it asks about is open.
    pub fn probing(&self, effect: Id) -> Option<&Probe> {
        self.probes.get(&effect)
    }
}
