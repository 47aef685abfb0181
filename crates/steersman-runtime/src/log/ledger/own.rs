//! Tools that the engine runs for itself: `reach` tools notify people that something waits, and probes check whether an effect
//! happened.

use super::Ledger;
use serde::{Deserialize, Serialize};
use steersman_machine::stored::commit::{LogLine, Probing, Reaching};
use steersman_machine::stored::ids::{Body, Id, Name, Time};

/// Notification of a person that something waits for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// The effect that waits.
    pub of: Id,
    /// The role that is notified.
    pub role: Name,
    /// Number of the last attempt that may have begun.
    pub attempt: u32,
    /// True if there is no further attempt: the person was notified, or the notification was given up.
    pub over: bool,
    /// Time of the next attempt. `None` means immediately, or never if `over` is set.
    pub again: Option<Time>,
    /// True if it was about an earlier hold of the effect than the one that opened last.
    pub earlier: bool,
}

/// Question to a tool whether an effect in doubt happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The effect in doubt.
    pub of: Id,
    /// The tool that is asked.
    pub tool: Name,
    /// Number of the last attempt that may have begun.
    pub attempt: u32,
    /// Number of failed attempts. Attempts that ended with their process are not counted, because their outcome is unknown.
    pub failed: u32,
    /// Time of the next attempt. `None` means immediately, or never if `over` is set.
    pub again: Option<Time>,
    /// True if there is no further attempt: the tool answered, or the probe was given up.
    pub over: bool,
    /// The last result: the answer of the tool, or the reason why the last attempt failed.
    pub last: Option<Heard>,
}

/// Result of an attempt of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Heard {
    /// The answer of the tool, and whether the effect happened if the answer says so.
    Said(Body, Option<bool>),
    /// The attempt failed, for this reason.
    Failed(Body),
}

impl Ledger {
    /// Returns true for a rerun that is not live: its first branch is dry from its first commit on, which no other session is. It
    /// is an experiment of the person who made it, so it draws on no budget that sessions share, and nothing but that person's acts
    /// continues it once its process is gone.
    pub fn is_dry_rerun(&self) -> bool {
        let main = self.branches.get(&Id::MAIN);
        let opening = main.and_then(|main| main.opening.as_ref());
        opening.is_some_and(|opening| opening.dry)
    }

    /// Returns true for a rerun, live or not: only its first branch has an opening.
    pub(crate) fn is_rerun(&self) -> bool {
        let main = self.branches.get(&Id::MAIN);
        main.is_some_and(|main| main.opening.is_some())
    }

    pub(super) fn told(&mut self, effect: Id, of: Id, role: &Name, what: &Reaching) {
        let reach = self.reaches.entry(effect).or_insert_with(|| Reach {
            of,
            role: role.clone(),
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

    /// Puts off the next attempt of an effect or of a notification.
    pub(super) fn put_off(&mut self, line: &LogLine, effect: Id, at: Time) {
        match self.reaches.get_mut(&effect) {
            Some(reach) => reach.again = Some(at),
            None => self.record(line, effect).again = Some(at),
        }
    }

    /// Returns the notifications about open holds that will be tried again.
    pub(crate) fn reaches_again(&self) -> impl Iterator<Item = (Id, &Reach)> {
        let again = self.reaches.iter().map(|(effect, reach)| (*effect, reach));
        again.filter(|(_, reach)| reach.again.is_some() && !reach.earlier)
    }

    /// Returns the notification of this person about the hold of `of` that opened last.
    pub(crate) fn reach(&self, of: Id, by: &str) -> Option<(Id, &Reach)> {
        let mut all = self.reaches.iter();
        let found =
            all.find(|(_, reach)| reach.of == of && *reach.role == *by && !reach.earlier)?;
        Some((*found.0, found.1))
    }

    /// Returns the notification that is made by this effect.
    pub(crate) fn reached(&self, effect: Id) -> Option<&Reach> {
        self.reaches.get(&effect)
    }

    pub(super) fn probed(&mut self, effect: Id, of: Id, what: &Probing) {
        match what {
            Probing::Started { tool, attempt } => {
                // Of several probes of one doubt, only the newest is kept.
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

    /// Returns the newest probe of an effect in doubt, with the probe's id. `None` if nothing was asked yet or the doubt is
    /// settled.
    pub fn probe(&self, of: Id) -> Option<(Id, &Probe)> {
        let found = self.probes.iter().find(|(_, probe)| probe.of == of)?;
        Some((*found.0, found.1))
    }

    /// Returns a probe by its id, as long as the doubt that it asks about is open.
    pub fn probing(&self, effect: Id) -> Option<&Probe> {
        self.probes.get(&effect)
    }
}
