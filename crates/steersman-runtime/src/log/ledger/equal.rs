//! Equal effects: effects with the same tool and the same arguments, on any branch of a session. Before any effect starts, the
//! driver asks this module whether an equal effect was begun before. Only this module decides what follows from that.

use super::{Ledger, Progress};
use serde::{Deserialize, Serialize};
use steersman_machine::stored::commit::{About, LedgerEntry, Recorded, Release, Why};
use steersman_machine::stored::ids::{Digest, Id, Line};
use steersman_machine::stored::interaction::Class;

/// An equal effect that was begun before.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Equal {
    /// Id of the equal effect.
    pub effect: Id,
    /// True if the effect is of the session that this one reruns. Then `effect` and `at` are of that session's log.
    pub recorded: bool,
    /// The line that gives its state.
    pub at: Line,
    /// State of the equal effect.
    pub stands: Stands,
    /// True if it is on the path of the branch that asks.
    pub here: bool,
    /// The strictest class that its tool had when an attempt began.
    pub class: Class,
}

/// State of an equal effect.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stands {
    /// The present owner runs it.
    Runs,
    /// The effect may have happened, and a probe or a person may still find out.
    InDoubt,
    /// The effect may have happened, and nobody will find out.
    GivenUp,
    /// The effect happened.
    Done,
}

/// An effect that is about to begin.
#[derive(Copy, Clone, Debug)]
pub struct Beginning<'a> {
    /// Id of the effect.
    pub effect: Id,
    /// The branch of the effect, which asks.
    pub branch: Id,
    /// Digests of its tool and arguments: one for each key that sealed its parts or another effect's, at least one.
    pub digests: &'a [Digest],
    /// Class of its tool.
    pub class: Class,
    /// Epoch of the owner that is about to begin it. Attempts of earlier epochs are run by nobody.
    pub epoch: u64,
    /// True if the tool says `repeat: allow`.
    pub may_repeat: bool,
    /// Set if a person allowed this effect to repeat equal effects. The person was told how these were at this line.
    pub word: Option<Line>,
    /// Number of the line that is being written.
    pub line: Line,
    /// The entries of that line so far.
    pub beside: &'a [LedgerEntry],
}

/// Decision on an effect that is about to begin.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The effect may begin.
    Begins,
    /// The effect waits until this equal effect has ended, and is checked again then.
    Waits(Id),
    /// The effect does not begin while this equal effect is in doubt.
    Doubted(Equal),
    /// The effect begins only if a person allows the repetition.
    Repeats(Equal),
}

impl Ledger {
    /// Returns true if an effect that touches the world has begun, here or in the recording of a rerun: only such effects count as
    /// equal ones.
    pub(crate) fn has_begun(&self) -> bool {
        !self.started.is_empty() || !self.recorded.is_empty()
    }

    /// Returns the equal effects that were begun before, or may have been, on any branch: running, in doubt, given up or done.
    /// Effects that are proved not to have happened are left out.
    pub fn equals<'a>(&'a self, of: Beginning<'a>) -> impl Iterator<Item = Equal> + 'a {
        let digests = of.digests.iter();
        let known = digests
            .filter_map(|digest| self.started.get(digest))
            .flatten();
        let known = known.filter(move |id| **id != of.effect);
        let known = known.filter_map(move |id| self.equal(*id, of));
        // Effects that begin with the line that is being written are not in the ledger yet.
        let starting = of.beside.iter().filter_map(move |entry| match entry {
            LedgerEntry::Started {
                effect,
                digest,
                class,
                ..
            } if of.digests.contains(digest) => Some(Equal {
                effect: *effect,
                recorded: false,
                at: of.line,
                stands: Stands::Runs,
                here: true,
                class: *class,
            }),
            _ => None,
        });
        let starting = starting.filter(move |equal| equal.effect != of.effect);
        let digests = of.digests.iter();
        let recorded = digests.filter_map(|digest| self.recorded.get(digest).copied());
        known.chain(starting).chain(recorded)
    }

    /// Folds an effect of the session that this one reruns. Of several equal effects, the one whose outcome is known least
    /// decides.
    pub(super) fn recorded(&mut self, entry: &LedgerEntry) {
        let LedgerEntry::Recorded {
            effect,
            at,
            digest,
            class,
            how,
        } = entry
        else {
            return;
        };
        let equal = Equal {
            effect: *effect,
            recorded: true,
            at: *at,
            stands: match how {
                Recorded::Done => Stands::Done,
                Recorded::InDoubt => Stands::InDoubt,
                Recorded::GivenUp => Stands::GivenUp,
            },
            // Its key belongs to the other session. Under a key of this session it would be done again.
            here: false,
            class: *class,
        };
        let known = self.recorded.entry(*digest).or_insert(equal);
        let class = known.class.max(equal.class);
        if known.stands.rank() <= equal.stands.rank() {
            *known = equal;
        }
        known.class = class;
    }

    /// Returns the effects of this session, and those that it knows from the session that it reruns, as entries for a rerun of
    /// this session. Effects that run now, or ran when their owner died, are in doubt.
    pub(crate) fn as_recorded(&self) -> Vec<LedgerEntry> {
        let own = self.effects().filter_map(|(effect, record)| {
            let (how, at) = match record.progress {
                Progress::Wished | Progress::NotPerformed => return None,
                Progress::Started { .. } | Progress::Unknown { .. } => {
                    (Recorded::InDoubt, record.since)
                }
                Progress::GivenUp { at } => (Recorded::GivenUp, at),
                Progress::Done { at, .. } => (Recorded::Done, at),
            };
            Some(LedgerEntry::Recorded {
                effect,
                at,
                digest: record.digest?,
                class: record.class?,
                how,
            })
        });
        let before = self.recorded.iter().filter_map(|(digest, equal)| {
            let how = match equal.stands {
                Stands::Runs => return None,
                Stands::InDoubt => Recorded::InDoubt,
                Stands::GivenUp => Recorded::GivenUp,
                Stands::Done => Recorded::Done,
            };
            Some(LedgerEntry::Recorded {
                effect: equal.effect,
                at: equal.at,
                digest: *digest,
                class: equal.class,
                how,
            })
        });
        before.chain(own).collect()
    }

    /// Returns the state of an effect with an equal digest. `None` if it cannot have happened.
    fn equal(&self, id: Id, of: Beginning<'_>) -> Option<Equal> {
        let record = self.effects.get(&id)?;
        let beside = of.beside.iter();
        let progress = beside.fold(record.progress, |before, entry| match entry {
            // A decision on an unknown outcome follows in a later line.
            LedgerEntry::Unknown { .. } => before,
            entry => before.after_entry(id, entry, of.line),
        });
        let (stands, at) = match progress {
            Progress::Wished | Progress::NotPerformed => return None,
            Progress::Started { .. } if record.epoch >= of.epoch => (Stands::Runs, record.since),
            Progress::Started { .. } | Progress::Unknown { .. } => (Stands::InDoubt, record.since),
            Progress::GivenUp { at } => (Stands::GivenUp, at),
            Progress::Done { at, .. } => (Stands::Done, at),
        };
        Some(Equal {
            effect: id,
            recorded: false,
            at,
            stands,
            here: self.on_path(of.branch, record.branch, at),
            class: record.class?,
        })
    }

    /// Returns true if, after these entries of a line, it is unknown whether an effect happened and this may still be found out.
    pub(crate) fn is_doubted(&self, effect: Id, beside: &[LedgerEntry]) -> bool {
        let Some(record) = self.effects.get(&effect) else {
            return false;
        };
        let progress = beside.iter().fold(record.progress, |before, entry| {
            before.after_entry(effect, entry, self.line.next())
        });
        matches!(progress, Progress::Unknown { .. })
    }

    /// Decides whether an effect may begin, as far as equal effects are concerned.
    ///
    /// An `unsafe` effect never begins while an equal one runs or is in doubt. It repeats one that was done or given up only if a
    /// person allows it; with `repeat: allow` it also repeats one that was done. An `idempotent` effect follows the same rules
    /// for equal effects of other branches and of a session that is rerun. On its own path a repeated call is a new effect with
    /// its own key, unless the end of the first is unknown. The stricter class of both calls counts, so that calls which were
    /// made as `unsafe` are still guarded after the tool was changed to `read`.
    pub fn verdict(&self, of: Beginning<'_>) -> Verdict {
        // Another attempt of the same effect is not a repetition: class and key allow it.
        let own = self.effects.get(&of.effect).map(|record| record.progress);
        if matches!(
            own,
            Some(Progress::Started { .. } | Progress::Unknown { .. })
        ) && of.class != Class::Unsafe
        {
            return Verdict::Begins;
        }
        // The person does not know of effects that were done or given up after the question.
        let allowed = |equal: &Equal| of.word.is_some_and(|word| equal.was_over(word));
        let counts = |equal: &Equal| {
            let is_another = of.class.max(equal.class) == Class::Unsafe || !equal.here;
            match equal.stands {
                Stands::InDoubt => true,
                Stands::Runs => is_another,
                Stands::GivenUp => !allowed(equal),
                Stands::Done => !allowed(equal) && !of.may_repeat && is_another,
            }
        };
        let mut found: Option<Equal> = None;
        for equal in self.equals(of).filter(counts) {
            let ranks = |equal: &Equal| (equal.stands.rank(), equal.at);
            if found.is_none_or(|found| ranks(&found) <= ranks(&equal)) {
                found = Some(equal);
            }
        }
        match found {
            None => Verdict::Begins,
            Some(equal) => match equal.stands {
                Stands::Runs => Verdict::Waits(equal.effect),
                Stands::InDoubt => Verdict::Doubted(equal),
                Stands::GivenUp | Stands::Done => Verdict::Repeats(equal),
            },
        }
    }
}

impl Progress {
    /// Returns the progress of an effect after an entry of a line that is being written.
    pub(super) fn after_entry(self, effect: Id, entry: &LedgerEntry, at: Line) -> Self {
        let done = Self::Done { at, kept: None };
        match entry {
            LedgerEntry::Done { effect: e, .. } if *e == effect => done,
            LedgerEntry::NotPerformed { effect: e, .. } if *e == effect => self.not_performed(),
            LedgerEntry::Unknown { effect: e, .. } if *e == effect => self.unknown(),
            LedgerEntry::Released {
                effect: e,
                why: Why::Doubt,
                how,
                ..
            } if *e == effect => match how {
                Release::Go => Self::NotPerformed,
                Release::Outcome => done,
                _ => Self::GivenUp { at },
            },
            _ => self,
        }
    }
}

impl Stands {
    /// Returns the rank of a state. Of several equal effects, the one with the greatest rank decides.
    fn rank(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::GivenUp => 1,
            Self::InDoubt => 2,
            Self::Runs => 3,
        }
    }
}

impl Equal {
    /// Returns true if the effect was done or given up by this line. Recorded effects came before every line.
    pub(crate) fn was_over(&self, line: Line) -> bool {
        let over = matches!(self.stands, Stands::Done | Stands::GivenUp);
        over && (self.recorded || self.at <= line)
    }

    /// Returns the effect as the subject of a hold.
    pub fn about(&self) -> About {
        if self.recorded {
            About::Recorded(self.effect)
        } else {
            About::Equal(self.effect)
        }
    }

    /// Returns the text that a person reads before they decide.
    pub fn told(&self) -> String {
        let Self { effect, at, .. } = self;
        let place = match self.stands {
            Stands::Done => format!("{effect}, done at @{at}"),
            Stands::Runs => format!("{effect}, since @{at}"),
            Stands::InDoubt => format!("{effect}, in doubt since @{at}"),
            Stands::GivenUp => format!("{effect}, given up at @{at}"),
        };
        format!("{} ({place}).", self.words())
    }

    /// Returns the text that a model reads. It stays the same after a takeover.
    pub fn said(&self) -> String {
        format!("{}.", self.words())
    }

    fn words(&self) -> String {
        let place = match (self.recorded, self.here) {
            (true, _) => " in the session that this one reruns",
            (false, true) => "",
            (false, false) => " on another branch",
        };
        match self.stands {
            Stands::Done => format!("The same call was done before{place}"),
            Stands::Runs => format!("The same call runs{place}"),
            Stands::InDoubt => format!("The same call may have happened{place}"),
            Stands::GivenUp => {
                format!("The same call may have happened before{place}, and nobody knows")
            }
        }
    }
}
