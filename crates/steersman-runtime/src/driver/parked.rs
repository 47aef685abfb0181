//! A session that waits only for messages, events or times is parked: its owner frees everything that can be read from the store
//! again, and reads it when one of them comes. The claim stays, and so do its epoch and all handles: only memory use differs.
//!
//! A session that waits for people, events or times is parked immediately, since these take long. A session that gave an answer
//! is parked when no input has come for a while: in a conversation the next message comes soon.

use super::outage::Outages;
use super::{Driver, Inbox, OutState, Writer, follow};
use crate::bind::{self, Values};
use crate::engine::{Engine, EngineError};
use crate::feed::{FeedItem, Live};
use crate::ledger::{Amount, Ledger};
use crate::limiter::Permit;
use crate::load::{Load, Since};
use crate::past::{self, Past};
use crate::session::{Receipt, Settled, Standing, ToDriver};
use crate::store::{Claim, Left, SessionState};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use steersman_machine::context::RenderCache;
use steersman_machine::stored::ids::{Bodies, Digest, Id, Name, Time};
use tokio::sync::{Notify, mpsc, oneshot, watch};

/// Milliseconds without any input before a session that waits for nothing is parked. A session whose next due time is nearer than
/// this is not parked.
pub(super) const CALM: u64 = 10_000;

/// State of a parked session that is in no store.
pub(crate) struct Parked {
    engine: Engine,
    claim: Claim,
    mark: u64,
    claimed: bool,
    from_handles: mpsc::Receiver<ToDriver>,
    standing: watch::Sender<Standing>,
    still: Arc<Notify>,
    live: Live,
    shown: SessionState,
    dearest: Amount,
    fates: VecDeque<Receipt>,
    following: follow::Following,
    outages: Outages,
    kept: Kept,
    /// The next due time.
    due: Option<Time>,
    /// The seat to leave if the session is released while it is parked.
    left: Left,
    /// True if escrow is drawn and not settled: it has to be given back when the session is released.
    owes: bool,
}

/// Data of a parked session that belongs to state in the store but is not stored.
#[derive(Default)]
struct Kept {
    /// Outstanding effects.
    outs: Vec<(Id, KeptOut)>,
    /// Render caches by branch and agent; the next request is compared with them.
    caches: Vec<(Id, Id, RenderCache)>,
}

/// Unstored data of an effect.
struct KeptOut {
    since: Time,
    /// Of a model call: attempts so far, and the request as it was rendered first.
    attempt: u32,
    request: Option<(Digest, u64, Option<Name>)>,
}

/// Reason why a parked session continues, with the data that was kept.
pub(super) struct Woken {
    by: By,
    kept: Kept,
}

/// Reason why a parked session continues; see [`Woken`].
enum By {
    /// A handle sent a message.
    Told(ToDriver),
    /// The due time came.
    Time,
    /// The place of a held call answers, or is to be tried.
    Place(Id, Permit),
}

impl Parked {
    /// Creates the state of a session that was just claimed, before anything of it was read.
    pub(super) fn claimed(
        engine: Engine,
        claim: Claim,
        told: (
            mpsc::Receiver<ToDriver>,
            watch::Sender<Standing>,
            Arc<Notify>,
            Live,
        ),
    ) -> Self {
        let mut mark = [0_u8; 8];
        getrandom::fill(&mut mark).expect("the operating system gives random bytes");
        let (from_handles, standing, still, live) = told;
        Self {
            engine,
            mark: u64::from_le_bytes(mark),
            claimed: false,
            claim,
            from_handles,
            standing,
            still,
            live,
            shown: SessionState::default(),
            dearest: Amount::default(),
            fates: VecDeque::new(),
            following: follow::Following::default(),
            outages: Outages::default(),
            kept: Kept::default(),
            due: None,
            left: Left::default(),
            owes: false,
        }
    }

    /// Waits until there is something to do. Returns `None` if the session was released meanwhile.
    pub(super) async fn over(mut self) -> Option<(Box<Driver>, Woken)> {
        let by = match self.woken().await {
            Ok(By::Told(ToDriver::Stop(ended))) if !self.owes => {
                self.live.show(FeedItem::Closed);
                let left = std::mem::take(&mut self.left);
                super::seat::release(&self.engine, self.claim.clone(), left).await;
                self.end(EngineError::Stopped, Some(ended));
                return None;
            }
            Ok(by) => by,
            Err(why) => {
                self.end(why, None);
                return None;
            }
        };
        let kept = std::mem::take(&mut self.kept);
        let driver = Box::new(Driver::of(self));
        if matches!(by, By::Told(ToDriver::Inbox(..)) | By::Place(..)) {
            driver.busy();
        }
        Some((driver, Woken { by, kept }))
    }

    async fn woken(&mut self) -> Result<By, EngineError> {
        let clock = self.engine.clock().clone();
        let due = self.due;
        let timer = async {
            match due {
                Some(due) => clock.sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        let alive = self.engine.0.alive.clone();
        tokio::select! {
            biased;
            Some(told) = self.from_handles.recv() => Ok(By::Told(told)),
            () = timer => Ok(By::Time),
            (id, permit) = self.outages.answered() => Ok(By::Place(id, permit)),
            () = alive.cancelled() => Err(EngineError::Stopped),
        }
    }

    fn end(self, why: EngineError, ended: Option<oneshot::Sender<()>>) {
        self.standing.send_replace(Standing::Gone(Arc::new(why)));
        drop(self);
        if let Some(ended) = ended {
            let _ = ended.send(());
        }
    }
}

impl Driver {
    /// Creates a driver that has not read its session yet.
    pub(super) fn of(parked: Parked) -> Self {
        let Parked { engine, claim, .. } = parked;
        let (store, session) = (engine.store().clone(), claim.session.clone());
        let (tasks, from_tasks) = mpsc::channel(super::FROM_TASKS);
        let past = Past::new(
            store.clone(),
            session.clone(),
            claim.salt,
            claim.head,
            past::DEFAULT_BOUND,
        );
        Self {
            load: Load::new(store.clone(), session.clone(), claim.salt),
            session,
            writer: Writer::new(store, claim.clone()),
            next: claim.first,
            claim,
            mark: parked.mark,
            claimed: parked.claimed,
            network: None,
            values: Values::default(),
            ledger: Ledger::default(),
            past: Arc::new(past),
            branches: BTreeMap::new(),
            outs: BTreeMap::new(),
            at_work: BTreeMap::new(),
            left: BTreeMap::new(),
            left_now: Vec::new(),
            to_start: BTreeSet::new(),
            queued: BTreeMap::new(),
            short: BTreeSet::new(),
            outages: parked.outages,
            behind: BTreeMap::new(),
            fresh: BTreeSet::new(),
            may_have_ended: false,
            inbox: Inbox {
                fates: parked.fates,
                mail: parked.left.mail,
                ..Inbox::default()
            },
            tasks,
            from_tasks,
            from_handles: parked.from_handles,
            standing: parked.standing,
            still: parked.still,
            live: parked.live,
            shown: parked.shown,
            stopping: None,
            since: Since::default(),
            drawn: VecDeque::new(),
            dearest: parked.dearest,
            to_open: Vec::new(),
            to_adopt: Vec::new(),
            left_behind: Vec::new(),
            probing: BTreeSet::new(),
            following: parked.following,
            reaching: BTreeMap::new(),
            searches: super::explore::Searches::default(),
            stepping: super::step::Stepping::Free,
            needs_told: false,
            is_lost: false,
            engine,
        }
    }

    /// Reads the ledger, and the snapshot of every branch that has ticks.
    pub(super) async fn read(&mut self) -> Result<(), EngineError> {
        (self.ledger, self.since) = self.load.ledger(self.claim.head).await?;
        let all = self.ledger.branches().map(|(id, _)| id);
        let live: Vec<Id> = all.filter(|id| self.ledger.has_ticks(*id)).collect();
        for id in live {
            self.load_branch(id).await?;
        }
        let snapshots = self.branches.iter().map(|(id, b)| (*id, &b.snapshot));
        let binding = bind::common(&self.session, snapshots)?.cloned();
        if let Some(binding) = binding {
            self.past.read(binding.values.line()).await?;
            let values = self.past.text(binding.values);
            self.bind(&binding, &values).await?;
        }
        Ok(())
    }

    /// Restores a session that was parked, and handles the reason that woke it.
    pub(super) async fn wake(&mut self, woken: Woken) -> Result<(), EngineError> {
        self.read().await?;
        self.recover().await?;
        for (effect, kept) in woken.kept.outs {
            if let Some(out) = self.outs.get_mut(&effect) {
                out.since = kept.since;
                if out.is_model() {
                    (out.attempt, out.tried) = (kept.attempt, kept.attempt);
                    out.request = kept.request;
                }
            }
        }
        for (branch, agent, cache) in woken.kept.caches {
            if let Some(branch) = self.branches.get_mut(&branch) {
                branch.caches.insert(agent, cache);
            }
        }
        match woken.by {
            By::Told(told) => self.told(told),
            By::Time => {}
            By::Place(id, permit) => self.place_calls(id, permit),
        }
        Ok(())
    }

    /// Returns true if the session waits for the outside and nothing that it needs is in memory only, so that it may be parked
    /// now or later.
    pub(super) fn is_parkable(&self) -> bool {
        let known = &self.inbox.known;
        self.network.is_some()
            && self.is_quiet()
            && !self.is_halted()
            && self.stepping == super::step::Stepping::Free
            && self.outs.iter().all(|(id, out)| match out.state {
                // A held model call may have a reservation, which is in memory only; one that waits for its place has none.
                OutState::Held => !out.is_model() || self.is_seated(*id),
                OutState::Waits | OutState::Later(_) => !out.is_model(),
                _ => false,
            })
            // Known messages are looked at in every turn of the loop.
            && known.is_empty()
            && self.inbox.replies.is_empty()
            && self.inbox.soon.is_empty()
            && self.to_start.is_empty()
    }

    /// Returns true if the session should be parked now. `calm`: nothing happened for a while.
    pub(super) fn is_to_park(&self, calm: bool) -> bool {
        if !self.is_parkable() {
            return false;
        }
        let Standing::Settled(settled, outside) = &*self.standing.borrow() else {
            return false;
        };
        let long = match **settled {
            Settled::Asks(_) | Settled::Waits(_) | Settled::Doubt(_) => true,
            _ => calm,
        };
        let soon = self.engine.clock().now().plus(CALM);
        long
            && outside.due.is_none_or(|due| due > soon)
            // A tool that was cut may still report its outcome.
            && self.tasks.strong_count() == 1
            && self.from_tasks.is_empty()
            && self.next_reach().is_none()
            && self.next_probe().is_none()
            && !self.is_misshown()
    }

    /// Frees everything that can be read again.
    pub(super) fn park(mut self) -> Parked {
        let (due, left) = (self.next_due(), self.leaves());
        let outs = self.outs.into_iter().map(|(id, out)| {
            let kept = KeptOut {
                since: out.since,
                attempt: out.attempt,
                request: out.request,
            };
            (id, kept)
        });
        let outs = outs.collect();
        let caches = self.branches.into_iter().flat_map(|(id, branch)| {
            let caches = branch.caches.into_iter();
            caches.map(move |(agent, cache)| (id, agent, cache.at_rest()))
        });
        let kept = Kept {
            outs,
            caches: caches.collect(),
        };
        Parked {
            claim: Claim {
                head: self.writer.durable,
                first: self.next,
                ..self.claim
            },
            engine: self.engine,
            mark: self.mark,
            claimed: self.claimed,
            from_handles: self.from_handles,
            standing: self.standing,
            still: self.still,
            live: self.live,
            shown: self.shown,
            dearest: self.dearest,
            fates: self.inbox.fates,
            following: self.following,
            outages: self.outages,
            kept,
            due,
            left,
            owes: self.claimed && !self.ledger.slice.is_zero(),
        }
    }
}
