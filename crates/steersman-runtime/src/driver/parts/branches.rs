//! The branches of a session that have ticks, with what is offered to them, and what follows for branches from the last line.

use crate::driver::draft::Offer;
use crate::driver::{Follows, What};
use crate::load::Since;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use steersman_machine::context::RenderCache;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::stored::codec::Hash;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::tick::effect::Opened;

/// The branches of a session that have ticks, and what follows for branches from the last line.
///
/// Invariants, which [`Branches::recount`] checks:
/// * A branch in `fresh` has ticks, and offers that its next tick is to take, or offers of it are in `over`. A branch that is not in
///   `fresh` may have offers: the machine left them until something moves.
/// * A branch in `left_behind` has ticks, until it is forgotten.
/// * `prev` and `hash` of a branch are those of its last line, and `snapshot` is the fold of its lines.
#[derive(Clone, Default)]
pub(crate) struct Branches {
    live: BTreeMap<Id, Branch>,
    /// Branches that have something new.
    fresh: BTreeSet<Id>,
    /// Branches may have ended, or calls may have begun to wait for branches, since the last check.
    may_have_ended: bool,
    /// Branches that agents asked for and that are opened next.
    to_open: VecDeque<ToOpen>,
    /// Branches that machines chose for adoption.
    to_adopt: VecDeque<ToAdopt>,
    /// Branches that written lines supersede.
    left_behind: VecDeque<Id>,
    /// Offers that their branches take no more. What they say of the world is kept.
    over: VecDeque<(Id, Offer)>,
}

/// A branch that has ticks (see `Ledger::has_ticks`), in memory. Only [`Branches`] changes it: nobody else gets a mutable one.
#[derive(Clone)]
pub(crate) struct Branch {
    pub(crate) snapshot: Snapshot,
    /// The last line of the branch, and its hash.
    pub(crate) prev: Line,
    pub(crate) hash: Hash,
    /// Offers that arrived and were not taken yet.
    pub(crate) offers: Vec<Offer>,
    caches: BTreeMap<Id, Arc<RenderCache>>,
    pub(crate) label: Option<Name>,
    /// Snapshot at the line where the branch begins, for positions in scripts; `None` for `main`.
    pub(crate) base: Option<Snapshot>,
    /// Amount written since the branch's last checkpoint.
    since: Since,
    /// The next time at which the branch must be offered the clock.
    pub(crate) deadline: Option<Time>,
}

/// A branch that an agent's fork asked for.
#[derive(Clone)]
pub(crate) struct ToOpen {
    pub(crate) branch: Id,
    pub(crate) from: Id,
    pub(crate) at: Line,
    pub(crate) opened: Opened,
}

/// A branch that a fork call chose for adoption, up to a line.
#[derive(Copy, Clone)]
pub(crate) struct ToAdopt {
    pub(crate) target: Id,
    pub(crate) call: (Id, Id),
    pub(crate) branch: Id,
    pub(crate) at: Line,
}

/// Data of a branch that the log does not have.
#[derive(Clone)]
pub(crate) struct KeptBranch {
    offers: Vec<Offer>,
    fresh: bool,
    /// Render caches by agent; the next request is compared with them.
    caches: BTreeMap<Id, Arc<RenderCache>>,
    deadline: Option<Time>,
}

/// Branches begin, go on and are forgotten.
impl Branches {
    /// Returns the branches that have ticks.
    pub(crate) fn live(&self) -> &BTreeMap<Id, Branch> {
        &self.live
    }

    /// A branch has ticks from now on. `at`: its last line, or the one where it was forked.
    pub(crate) fn begins(
        &mut self,
        id: Id,
        snapshot: Snapshot,
        (prev, hash): (Line, Hash),
        label: Option<Name>,
        base: Option<Snapshot>,
        since: Since,
    ) {
        let branch = Branch {
            snapshot,
            prev,
            hash,
            offers: Vec::new(),
            caches: BTreeMap::new(),
            label,
            base,
            since,
            deadline: None,
        };
        self.live.insert(id, branch);
    }

    /// A tick led to this snapshot. Its line is written next.
    pub(crate) fn ticked(&mut self, id: Id, snapshot: Snapshot) {
        if let Some(branch) = self.live.get_mut(&id) {
            branch.snapshot = snapshot;
        }
    }

    /// A line of a branch was made. `folds`: no tick made its snapshot.
    pub(crate) fn wrote(&mut self, line: &LogLine, hash: Hash, folds: bool) {
        if let Some(branch) = self.live.get_mut(&line.branch) {
            (branch.prev, branch.hash) = (line.n, hash);
            if folds {
                branch.snapshot = fold(branch.snapshot.clone(), line);
            }
        }
    }

    /// This many bytes of a branch were written. Returns the checkpoint that is due.
    pub(crate) fn checkpoint(
        &mut self,
        id: Id,
        wrote: usize,
        make: impl FnOnce(&Snapshot, &Hash) -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        let branch = self.live.get_mut(&id)?;
        let (snapshot, hash) = (&branch.snapshot, &branch.hash);
        branch.since.checkpoint(wrote, || make(snapshot, hash))
    }

    /// A branch was superseded: it is forgotten next.
    pub(crate) fn leaves(&mut self, id: Id) {
        self.left_behind.push_back(id);
    }

    /// A superseded branch has no ticks any more. Returns true if no other one is left behind.
    pub(crate) fn forgets(&mut self, id: Id) -> bool {
        self.live.remove(&id);
        self.fresh.remove(&id);
        self.left_behind.is_empty()
    }

    /// The machine wants the clock for a branch at this time.
    pub(crate) fn waits_until(&mut self, id: Id, deadline: Option<Time>) {
        if let Some(branch) = self.live.get_mut(&id) {
            branch.deadline = deadline;
        }
    }
}

/// Offers.
impl Branches {
    /// Returns the first branch, by id, that has something new; `main` comes first.
    pub(crate) fn next_fresh(&self) -> Option<Id> {
        self.fresh.first().copied()
    }

    pub(crate) fn is_fresh(&self, id: Id) -> bool {
        self.fresh.contains(&id)
    }

    /// Something is offered to a branch. An offer to a branch without ticks is dropped.
    pub(crate) fn offers(&mut self, id: Id, offer: Offer) {
        self.offers_again(id, [offer]);
    }

    /// Offers that the branch has not taken are offered with its next tick, behind what came meanwhile.
    pub(crate) fn offers_again(&mut self, id: Id, offers: impl IntoIterator<Item = Offer>) {
        if let Some(branch) = self.live.get_mut(&id) {
            branch.offers.extend(offers);
            self.fresh.insert(id);
        }
    }

    /// A tick is done again: what it was offered comes first.
    pub(crate) fn puts_back(&mut self, id: Id, mut offers: Vec<Offer>) {
        if let Some(branch) = self.live.get_mut(&id) {
            offers.append(&mut branch.offers);
            branch.offers = offers;
            self.fresh.insert(id);
        }
    }

    /// The machine left an offer: it is offered again when something moves.
    pub(crate) fn keeps(&mut self, id: Id, offer: Offer) {
        if let Some(branch) = self.live.get_mut(&id) {
            branch.offers.push(offer);
        }
    }

    /// Something moved on a branch: offers that were left may be taken now.
    pub(crate) fn moved(&mut self, id: Id) {
        let branch = self.live.get(&id);
        if branch.is_some_and(|branch| !branch.offers.is_empty()) {
            self.fresh.insert(id);
        }
    }

    /// Takes the offers of a branch for its tick. If some are outcomes of effects that are no longer open, these are over: a branch
    /// takes no outcome twice. Each gets a line of its own first, and then the branch is ticked.
    pub(crate) fn take_offers(&mut self, id: Id) -> Option<Vec<Offer>> {
        let branch = self.live.get_mut(&id)?;
        let offers = std::mem::take(&mut branch.offers);
        let open = &branch.snapshot.effects;
        let (offers, gone): (Vec<Offer>, Vec<Offer>) =
            offers.into_iter().partition(|offer| match &offer.what {
                What::Raw { effect, .. } => open.contains_key(effect),
                _ => true,
            });
        if gone.is_empty() {
            self.fresh.remove(&id);
            return Some(offers);
        }
        branch.offers = offers;
        self.over.extend(gone.into_iter().map(|offer| (id, offer)));
        None
    }

    /// Takes the offers of a branch for which this is true; `None` if the branch has no ticks.
    pub(crate) fn take_if(&mut self, id: Id, is: impl Fn(&Offer) -> bool) -> Option<Vec<Offer>> {
        let branch = self.live.get_mut(&id)?;
        let offers = std::mem::take(&mut branch.offers).into_iter();
        let (taken, rest) = offers.partition(is);
        branch.offers = rest;
        Some(taken)
    }

    /// Returns the last offer to a branch, to be completed.
    pub(crate) fn last_offer(&mut self, id: Id) -> Option<&mut Offer> {
        self.live.get_mut(&id)?.offers.last_mut()
    }
}

/// Jobs that follow from the last line.
impl Branches {
    /// Returns what follows next. This is the order.
    pub(in crate::driver) fn follows(&self) -> Option<Follows> {
        if !self.over.is_empty() {
            Some(Follows::Over)
        } else if !self.left_behind.is_empty() {
            Some(Follows::Leave)
        } else if !self.to_open.is_empty() {
            Some(Follows::Open)
        } else if !self.to_adopt.is_empty() {
            Some(Follows::Adopt)
        } else {
            self.may_have_ended.then_some(Follows::Ends)
        }
    }

    pub(crate) fn asks_to_open(&mut self, open: ToOpen) {
        self.to_open.push_back(open);
    }

    pub(crate) fn asks_to_adopt(&mut self, adopt: ToAdopt) {
        self.to_adopt.push_back(adopt);
    }

    /// Branches may have ended, or calls may have begun to wait for branches.
    pub(crate) fn may_have_ended(&mut self) {
        self.may_have_ended = true;
    }

    pub(crate) fn take_over(&mut self) -> Option<(Id, Offer)> {
        self.over.pop_front()
    }

    pub(crate) fn take_left(&mut self) -> Option<Id> {
        self.left_behind.pop_front()
    }

    pub(crate) fn take_open(&mut self) -> Option<ToOpen> {
        self.to_open.pop_front()
    }

    pub(crate) fn take_adopt(&mut self) -> Option<ToAdopt> {
        self.to_adopt.pop_front()
    }

    /// The ends of branches are looked at now.
    pub(crate) fn looks_at_ends(&mut self) {
        self.may_have_ended = false;
    }
}

/// Caches of rendered requests.
impl Branches {
    /// Takes the cache of an agent, or a new one.
    pub(crate) fn take_cache(&mut self, id: Id, agent: Id) -> Arc<RenderCache> {
        let branch = self.live.get_mut(&id);
        let cache = branch.and_then(|branch| branch.caches.remove(&agent));
        cache.unwrap_or_default()
    }

    pub(crate) fn keep_cache(&mut self, id: Id, agent: Id, cache: RenderCache) {
        if let Some(branch) = self.live.get_mut(&id) {
            branch.caches.insert(agent, Arc::new(cache));
        }
    }

    /// The session was bound again: requests are rendered from nothing.
    pub(crate) fn drop_caches(&mut self) {
        for branch in self.live.values_mut() {
            branch.caches.clear();
        }
    }
}

/// A session is parked or taken out of memory, and goes on.
impl Branches {
    /// Takes out what is kept. `parks`: the session rests, so its caches are made small.
    pub(crate) fn closes(&mut self, parks: bool) -> Vec<(Id, KeptBranch)> {
        let Self { live, fresh, .. } = std::mem::take(self);
        let at_rest = |cache: Arc<RenderCache>| {
            if parks {
                Arc::new(Arc::unwrap_or_clone(cache).at_rest())
            } else {
                cache
            }
        };
        let live = live.into_iter().map(|(id, branch)| {
            let caches = branch.caches.into_iter();
            let kept = KeptBranch {
                offers: branch.offers,
                fresh: fresh.contains(&id),
                caches: caches.map(|(agent, c)| (agent, at_rest(c))).collect(),
                deadline: branch.deadline,
            };
            (id, kept)
        });
        live.collect()
    }

    /// A branch that was read again is as it was. Returns false if it has no ticks.
    pub(crate) fn restores(&mut self, id: Id, kept: KeptBranch) -> bool {
        let Some(branch) = self.live.get_mut(&id) else {
            return false;
        };
        (branch.offers, branch.caches) = (kept.offers, kept.caches);
        branch.deadline = kept.deadline;
        if kept.fresh {
            self.fresh.insert(id);
        }
        true
    }

    /// A branch whose effects were recovered renders as before.
    pub(crate) fn completes(&mut self, id: Id, kept: KeptBranch) {
        if let Some(branch) = self.live.get_mut(&id) {
            branch.caches = kept.caches;
        }
    }

    /// Checks the invariants by a recount. Returns what is wrong.
    pub(crate) fn recount(&self) -> Result<(), String> {
        for id in &self.fresh {
            let has = self.live.get(id).is_some_and(|b| !b.offers.is_empty());
            if !has && !self.over.iter().any(|(of, _)| of == id) {
                return Err(format!("branch {id} is fresh and has no offers"));
            }
        }
        match self
            .left_behind
            .iter()
            .find(|id| !self.live.contains_key(id))
        {
            Some(id) => Err(format!("branch {id} is left behind and has no ticks")),
            None => Ok(()),
        }
    }
}
