//! Equal effects: the same tool with the same arguments, on whatever branch of a session. Every way to the start of an effect
//! asks here whether an equal one was begun before, and what follows from that is decided here alone.

use super::{Ledger, Progress};
use serde::{Deserialize, Serialize};
use steersman_machine::commit::{LedgerEntry, Recorded, Release, Why};
use steersman_machine::ids::{Digest, Id, Line};
use steersman_machine::interaction::Class;

/// An equal effect that was begun before.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Equal {
    /// The effect.
    pub effect: Id,
    /// The session that this one reruns did it, and `effect` and `at` are of that session's log.
    pub recorded: bool,
    /// The line that says how it stands.
    pub at: Line,
    /// How it stands.
    pub stands: Stands,
    /// It lies on the path of the branch that asks.
    pub here: bool,
    /// The strictest class that its tool had when an attempt of it began.
    pub class: Class,
}

/// How an equal effect stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stands {
    /// This owner runs it.
    Runs,
    /// It may have happened, and somebody still may find out.
    InDoubt,
    /// Nobody will know.
    GivenUp,
    /// It happened.
    Done,
}

/// An effect that is about to begin.
#[derive(Copy, Clone, Debug)]
pub struct Beginning<'a> {
    /// The effect.
    pub effect: Id,
    /// Its branch.
    pub branch: Id,
    /// Of its tool and arguments.
    pub digest: Digest,
    /// Of its tool.
    pub class: Class,
    /// The owner that is to begin it: what earlier ones had begun, nobody runs.
    pub epoch: u64,
    /// The tool says `repeat: allow`.
    pub may_repeat: bool,
    /// A person let this effect repeat what they were told of: equal ones as they stood at this line.
    pub word: Option<Line>,
    /// The line that is being made,
    pub line: Line,
    /// and its entries so far.
    pub beside: &'a [LedgerEntry],
}

/// What follows for an effect that is about to begin.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may begin.
    Begins,
    /// It begins when this one has ended, if it may then.
    Waits(Id),
    /// It does not begin while that one is in doubt.
    Doubted(Equal),
    /// Only a person's word lets it begin.
    Repeats(Equal),
}

impl Ledger {
    /// Equal effects that were begun before, or may have been: done, in doubt, given up or running, on whatever branch. What
    /// is proved not to have happened is none.
    pub fn equals(&self, of: Beginning<'_>) -> impl Iterator<Item = Equal> {
        let known = self.started.get(&of.digest).into_iter().flatten();
        let known = known.filter(move |id| **id != of.effect);
        let known = known.filter_map(move |id| self.stands(*id, of));
        // What begins with the line that is being made is not in the ledger yet.
        let beside = of.beside.iter().filter_map(move |entry| match entry {
            LedgerEntry::Started {
                effect,
                digest,
                class,
                ..
            } if *digest == of.digest => Some(Equal {
                effect: *effect,
                recorded: false,
                at: of.line,
                stands: Stands::Runs,
                here: true,
                class: *class,
            }),
            _ => None,
        });
        let beside = beside.filter(move |equal| equal.effect != of.effect);
        let recorded = self.recorded.get(&of.digest).copied();
        known.chain(beside).chain(recorded)
    }

    /// What the session did that this one reruns. Of several equal effects the one that is known least of decides.
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
            // Its key was of that session: under the key of this one it would be done again.
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

    /// What this session did and what it knows of the one that it reruns, for the ledger of a rerun of it. What runs in it now,
    /// or ran when its owner died, may happen.
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

    fn stands(&self, id: Id, of: Beginning<'_>) -> Option<Equal> {
        let record = self.effects.get(&id)?;
        let beside = of.beside.iter();
        let progress = beside.fold(record.progress, |before, entry| match entry {
            // What becomes of an unknown outcome is seen behind the line.
            LedgerEntry::Unknown { .. } => before,
            entry => before.behind(id, entry, of.line),
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

    /// Whether nobody knows, behind these entries of a line, if an effect happened, and somebody still may say.
    pub(crate) fn is_doubted(&self, effect: Id, beside: &[LedgerEntry]) -> bool {
        let Some(record) = self.effects.get(&effect) else {
            return false;
        };
        let progress = beside.iter().fold(record.progress, |before, entry| {
            before.behind(effect, entry, self.line.next())
        });
        matches!(progress, Progress::Unknown { .. })
    }

    /// Whether an effect may begin, as far as equal ones go.
    ///
    /// An `unsafe` effect never begins beside an equal one, nor while one is in doubt, and repeats what was done or given up
    /// only by a person's word, or where its tool says `repeat: allow` what was done. For an `idempotent` one the same holds of
    /// what other branches and a session that is rerun did; on its own path a call that is made again is a new effect with a
    /// key of its own, unless nobody knows how the first ended. The class is the stricter one of both calls: a tool that is
    /// called `read` since then is asked about what it did when it was called `unsafe`.
    pub fn verdict(&self, of: Beginning<'_>) -> Verdict {
        // Another attempt of what may have happened already is no other effect: class and key allow it.
        let own = self.effects.get(&of.effect).map(|record| record.progress);
        if matches!(
            own,
            Some(Progress::Started { .. } | Progress::Unknown { .. })
        ) && of.class != Class::Unsafe
        {
            return Verdict::Begins;
        }
        // What was done or given up since a person was asked, they were not told of.
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
    /// How far an effect comes with an entry of a line that is being made.
    pub(super) fn behind(self, effect: Id, entry: &LedgerEntry, at: Line) -> Self {
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
    /// Of several equal effects the one with the greatest rank decides.
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
    /// Whether it was done or given up by this line. All that is recorded came before every line.
    pub(crate) fn was_over(&self, line: Line) -> bool {
        let over = matches!(self.stands, Stands::Done | Stands::GivenUp);
        over && (self.recorded || self.at <= line)
    }

    /// How a hold names it ([`Hold::about`](steersman_machine::commit::Hold::about)).
    pub fn name(&self) -> String {
        if self.recorded {
            format!("{RECORDED}{}", self.effect)
        } else {
            self.effect.to_string()
        }
    }

    /// What a person reads of it before they decide.
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

    /// What a model reads of it: nothing in it is another after a takeover.
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

/// What a hold's `about` begins with where the effect is of the session that this one reruns.
const RECORDED: &str = "recorded ";
