//! State of a session that only its owner has and no store holds: it is kept while the session is parked, or between two events of an
//! executor that keeps nothing in memory.

use super::parts::{KeptBranch, KeptOut, Stepping};
use super::{
    Asides, Bound, Branches, Course, Driver, Effects, Following, Heard, Job, Mail, OutState,
    Searches, Stop, Who,
};
use crate::engine::EngineError;
use crate::ledger::Ledger;
use crate::load::Since;
use crate::store::{Claim, Left};
use std::collections::BTreeMap;
use steersman_machine::stored::ids::{Id, Line, Time};

/// State that the owner of a session has and no store holds. A driver that is opened with it goes on as if it had stayed in memory.
pub(crate) struct Rest {
    mark: u64,
    claimed: bool,
    mail: Mail,
    effects: Effects,
    asides: Asides,
    searches: Searches,
    servers: Following,
    course: Course,
    kept: Kept,
}

/// State of branches and effects that are read again.
#[derive(Clone, Default)]
pub(crate) struct Kept {
    /// The session was parked, or is new: its effects are recovered first.
    recovers: bool,
    branches: Vec<(Id, KeptBranch)>,
    outs: Vec<(Id, KeptOut)>,
    /// Effects in doubt that no branch waits for.
    left: Vec<Id>,
    needs_told: bool,
}

/// A parked session.
pub(crate) struct Asleep {
    pub(crate) rest: Rest,
    /// The line that the owner may use next.
    pub(crate) next: Line,
    /// The next due time.
    pub(crate) due: Option<Time>,
    /// The seat to leave if the session is released while it is parked.
    pub(crate) left: Left,
    /// True if escrow is drawn and not settled: it has to be given back when the session is released.
    pub(crate) owes: bool,
}

impl Rest {
    /// Returns what a new owner knows. `mark` is random.
    pub(crate) fn new(mark: u64) -> Self {
        Self {
            mark,
            claimed: false,
            mail: Mail::default(),
            effects: Effects::default(),
            asides: Asides::default(),
            searches: Searches::default(),
            servers: Following::default(),
            course: Course::default(),
            kept: Kept {
                recovers: true,
                ..Kept::default()
            },
        }
    }
}

impl Rest {
    /// Creates the driver of a session from it. Its branches, its binding and its effects are read by its first jobs ([`Heard::Load`]).
    pub(crate) fn opens(self, claim: Claim, (ledger, since): (Ledger, Since)) -> Driver {
        let rest = self;
        let branches = ledger.branches().map(|(id, _)| id);
        let live = branches.filter(|id| ledger.has_ticks(*id));
        let restores = (!rest.kept.recovers).then_some(Heard::Restore);
        let heard = live.map(Heard::Load).chain([Heard::Bind]).chain(restores);
        let mut course = rest.course;
        course.opens(heard, rest.kept);
        Driver {
            who: Who::new(claim, rest.mark, rest.claimed, since),
            bound: Bound::default(),
            ledger,
            branches: Branches::default(),
            effects: rest.effects,
            asides: rest.asides,
            mail: rest.mail,
            searches: rest.searches,
            servers: rest.servers,
            course,
        }
    }

    /// Frees everything of a driver that can be read again. Returns its last line and the next one, and the rest. Nothing is left to do.
    /// `parks`: nothing is on its way, and the effects will be recovered, so less is kept.
    pub(crate) fn of(driver: &mut Driver, parks: bool) -> (Line, Line, Self) {
        let Driver {
            who,
            bound,
            ledger: _,
            branches,
            effects,
            asides,
            mail,
            searches,
            servers,
            course,
        } = driver;
        let branches = branches.closes(parks);
        let (effects, outs) = effects.closes(parks);
        let (asides, left) = asides.closes(parks);
        let mut rest = Rest {
            mark: who.mark(),
            claimed: who.has_claimed(),
            mail: mail.closes(parks),
            searches: std::mem::take(searches),
            servers: std::mem::take(servers),
            course: course.closes(parks),
            kept: Kept {
                recovers: parks,
                branches,
                outs,
                left,
                needs_told: bound.has_told_needs(),
            },
            effects,
            asides,
        };
        if parks {
            rest = Rest {
                mail: rest.mail,
                effects: rest.effects,
                servers: rest.servers,
                course: rest.course,
                claimed: rest.claimed,
                kept: rest.kept,
                ..Rest::new(rest.mark)
            };
        }
        (who.last(), who.next(), rest)
    }
}

impl Job<'_, '_> {
    /// Takes up what an earlier driver of the same owner left, as it was. What the log says of it is read again.
    pub(super) fn restore(&mut self) -> Result<(), Stop> {
        let Some(kept) = self.d.course.take_kept() else {
            return Ok(());
        };
        if kept.recovers {
            self.completes(kept);
            return Ok(());
        }
        self.d.bound.restores(kept.needs_told);
        let mut wishes = BTreeMap::new();
        let has_outs = !kept.outs.is_empty();
        for (id, kept) in kept.branches {
            if self.d.branches.restores(id, kept) && has_outs {
                let wished = self.wished_on(id)?.into_iter();
                wishes.extend(wished.map(|(branch, wish)| ((branch, wish.id), wish)));
            }
        }
        let draft = self.draft(self.d.ledger.current);
        for (effect, kept) in kept.outs {
            let branch = kept.branch;
            let Some(wish) = wishes.remove(&(branch, effect)) else {
                return Err(Stop::Fault(EngineError::Broken {
                    session: self.d.who.session().clone(),
                    what: format!("nothing wishes {effect}, which was outstanding"),
                }));
            };
            match self.d.ledger.effect(effect).cloned() {
                Some(record) => self.adopt_out(&draft, branch, wish, &record)?,
                None => self.put_out(&draft, branch, wish)?,
            }
            self.d.effects.restores(effect, kept);
        }
        self.know(kept.left)
    }

    /// Completes effects that were recovered by what is known of them.
    fn completes(&mut self, kept: Kept) {
        for (effect, kept) in kept.outs {
            self.d.effects.completes(effect, kept);
        }
        for (branch, kept) in kept.branches {
            self.d.branches.completes(branch, kept);
        }
    }

    /// Returns true if the session waits for the outside and nothing that it needs is in memory only, so that it may be parked
    /// now or later.
    pub(crate) fn is_parkable(&self) -> bool {
        self.d.bound.network().is_some()
            && self.is_quiet()
            && !self.is_halted()
            && self.d.course.stepping() == Stepping::Free
            && self.d.effects.outs().iter().all(|(id, out)| match out.state {
                // A held model call may have a reservation, which is in memory only; one that waits for its place has none.
                OutState::Held => !out.is_model() || self.seen.permits.is_seated(*id),
                OutState::Waits | OutState::Later(_) => !out.is_model(),
                _ => false,
            })
            // Known messages are looked at in every turn of the loop.
            && self.d.mail.is_empty()
            && !self.d.course.owes_receipt(None)
            && self.d.effects.next().is_none()
    }

    /// Returns true if nothing keeps a parkable session from being parked immediately.
    pub(crate) fn may_park(&mut self) -> bool {
        self.next_reach().is_none() && self.next_probe().is_none() && !self.is_misshown()
    }

    /// Frees everything that can be read again.
    pub(crate) fn park(&mut self) -> Asleep {
        let (due, left) = (self.next_due(), self.left());
        let owes = self.d.who.has_claimed() && !self.d.ledger.slice.is_zero();
        let (_, next, rest) = Rest::of(self.d, true);
        Asleep {
            rest,
            next,
            due,
            left,
            owes,
        }
    }
}
