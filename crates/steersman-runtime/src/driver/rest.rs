//! State of a session that only its owner has and no store holds: it is kept while the session is parked, or between two events of an
//! executor that keeps nothing in memory.

use super::{
    Bound, Branches, Course, Driver, Effects, Job, Mail, OutState, Who, explore, follow, outage,
    reach, step,
};
use crate::ledger::{Amount, Ledger};
use crate::load::Since;
use crate::store::{Claim, Left, SessionState};
use std::collections::VecDeque;
use std::sync::Arc;
use steersman_machine::context::RenderCache;
use steersman_machine::stored::ids::{Digest, Id, Line, Name, Time};

/// State of a parked session that is in no store.
pub(crate) struct Rest {
    mark: u64,
    claimed: bool,
    shown: Arc<SessionState>,
    dearest: Amount,
    mail: u64,
    servers: follow::Following,
    outages: outage::Outages,
    kept: Kept,
}

/// Data of a parked session that belongs to state in the store but is not stored.
#[derive(Clone, Default)]
pub(crate) struct Kept {
    /// Outstanding effects.
    outs: Vec<(Id, KeptOut)>,
    /// Render caches by branch and agent; the next request is compared with them.
    caches: Vec<(Id, Id, RenderCache)>,
}

/// Unstored data of an effect.
#[derive(Clone)]
struct KeptOut {
    since: Time,
    /// Of a model call: attempts so far, and the request as it was rendered first.
    attempt: u32,
    request: Option<(Digest, u64, Option<Name>)>,
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
    /// Returns the state of a new owner. `mark` is random.
    pub(crate) fn new(mark: u64) -> Self {
        Self {
            mark,
            claimed: false,
            shown: Arc::default(),
            dearest: Amount::default(),
            mail: 0,
            servers: follow::Following::default(),
            outages: outage::Outages::default(),
            kept: Kept::default(),
        }
    }
}

impl Driver {
    /// Creates the driver of a session. Its branches and its binding are read by its first jobs ([`Heard::Load`]).
    ///
    /// [`Heard::Load`]: super::Heard::Load
    pub(crate) fn open(claim: Claim, (ledger, since): (Ledger, Since), rest: Rest) -> Self {
        let branches = ledger.branches().map(|(id, _)| id);
        let live = branches.filter(|id| ledger.has_ticks(*id));
        let load = live.map(super::Heard::Load);
        let heard = load.chain([super::Heard::Bind]).map(Arc::new).collect();
        Self {
            who: Who {
                session: claim.session.clone(),
                last: claim.head,
                next: claim.first,
                claim,
                mark: rest.mark,
                claimed: rest.claimed,
                since,
            },
            bound: Bound::default(),
            ledger,
            branches: Branches::default(),
            effects: Effects {
                outages: rest.outages,
                dearest: rest.dearest,
                ..Effects::default()
            },
            mail: Mail {
                delivered: rest.mail,
                ..Mail::default()
            },
            people: reach::People::default(),
            searches: explore::Searches::default(),
            servers: rest.servers,
            course: Course {
                heard,
                ahead: VecDeque::new(),
                unhurried: (0, 0),
                shown: rest.shown,
                stepping: step::Stepping::Free,
                stopping: false,
                cancelling: None,
                kept: Some(Arc::new(rest.kept)),
            },
        }
    }
}

impl Job<'_, '_> {
    /// Restores what is known of the effects that were outstanding when the session was parked.
    pub(super) fn restore(&mut self) {
        let Some(kept) = self.d.course.kept.take() else {
            return;
        };
        let kept = Arc::unwrap_or_clone(kept);
        for (effect, kept) in kept.outs {
            if let Some(out) = self.d.effects.outs.get_mut(&effect) {
                out.since = kept.since;
                if out.is_model() {
                    (out.attempt, out.tried) = (kept.attempt, kept.attempt);
                    out.request = kept.request;
                }
            }
        }
        for (branch, agent, cache) in kept.caches {
            if let Some(branch) = self.d.branches.live.get_mut(&branch) {
                branch.caches.insert(agent, Arc::new(cache));
            }
        }
    }

    /// Returns true if the session waits for the outside and nothing that it needs is in memory only, so that it may be parked
    /// now or later.
    pub(crate) fn is_parkable(&self) -> bool {
        let known = &self.d.mail.known;
        self.d.bound.network.is_some()
            && self.is_quiet()
            && !self.is_halted()
            && self.d.course.stepping == step::Stepping::Free
            && self.d.effects.outs.iter().all(|(id, out)| match out.state {
                // A held model call may have a reservation, which is in memory only; one that waits for its place has none.
                OutState::Held => !out.is_model() || self.seen.leaves.is_seated(*id),
                OutState::Waits | OutState::Later(_) => !out.is_model(),
                _ => false,
            })
            // Known messages are looked at in every turn of the loop.
            && known.is_empty()
            && !self.d.owes_receipts()
            && self.d.effects.to_start.is_empty()
    }

    /// Returns true if nothing keeps a parkable session from being parked immediately.
    pub(crate) fn may_park(&mut self) -> bool {
        self.next_reach().is_none() && self.next_probe().is_none() && !self.is_misshown()
    }

    /// Frees everything that can be read again.
    pub(crate) fn park(&mut self) -> Asleep {
        let (due, left) = (self.next_due(), self.leaves());
        let outs = std::mem::take(&mut self.d.effects.outs)
            .into_iter()
            .map(|(id, out)| {
                let kept = KeptOut {
                    since: out.since,
                    attempt: out.attempt,
                    request: out.request,
                };
                (id, kept)
            });
        let outs = outs.collect();
        let branches = std::mem::take(&mut self.d.branches.live).into_iter();
        let caches = branches.flat_map(|(id, branch)| {
            let caches = branch.caches.into_iter();
            caches.map(move |(agent, cache)| (id, agent, Arc::unwrap_or_clone(cache).at_rest()))
        });
        let kept = Kept {
            outs,
            caches: caches.collect(),
        };
        Asleep {
            rest: Rest {
                mark: self.d.who.mark,
                claimed: self.d.who.claimed,
                shown: self.d.course.shown.clone(),
                dearest: self.d.effects.dearest,
                mail: self.d.mail.delivered,
                servers: std::mem::take(&mut self.d.servers),
                outages: std::mem::take(&mut self.d.effects.outages),
                kept,
            },
            next: self.d.who.next,
            due,
            left,
            owes: self.d.who.claimed && !self.d.ledger.slice.is_zero(),
        }
    }
}
