//! The loop: offers in, a tick, a line, effects.
//!
//! One task per session owns its snapshots and its ledger; handles and other tasks send it messages. Each turn of the loop:
//!
//! 1. inputs are sorted into offers of branches ([`act`], [`outcome`]);
//! 2. a branch that has new offers is ticked ([`turn`]): the machine takes or leaves each offer;
//! 3. each wish is taken to the ledger ([`wish`]): holds, and `Started` for effects that may begin;
//! 4. the line is appended as one row ([`writer`]);
//! 5. effects that depend on the line begin when the line is on disk, all others immediately ([`attempt`]).
//!
//! While the session waits only for the outside it is parked: the driver's memory is freed until something arrives ([`parked`]).

mod act;
mod attempt;
mod branches;
mod budget;
mod cancel;
mod choose;
mod draft;
mod due;
mod events;
mod everything;
mod explore;
mod follow;
mod guard;
mod inspect;
mod left;
mod open;
mod orders;
mod outage;
mod outcome;
mod parked;
mod probe;
mod reach;
mod rebind;
mod recorded;
mod recover;
mod replayed;
mod search;
mod seat;
mod standing;
mod start;
mod step;
pub(crate) mod transport;
mod turn;
mod wish;
mod writer;

use everything::run_all;
use inspect::inspect;
pub(crate) use wish::digests as tool_digests;

use crate::bind::Values;
use crate::engine::{Durability, Engine, EngineError};
use crate::feed::{FeedItem, Live, Notice};
use crate::ledger::{Amount, Ledger};
use crate::limiter::Permit;
use crate::load::{Load, Since};
use crate::past::Past;
use crate::session::{Fate, Receipt, Session, Standing, ToDriver};
use crate::store::{Claim, InboxMessage, SessionId, SessionState, StoreError};
use attempt::{FromTask, Tell};
use draft::Offer;
use futures::FutureExt;
use parked::{CALM, Parked, Woken};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use steersman_machine::context::RenderCache;
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::by::By;
use steersman_machine::stored::codec::Hash;
use steersman_machine::stored::ids::{Digest, Id, Line, Name, Time};
use steersman_machine::tick::effect::{Offered, Said, Wish};
use steersman_machine::values::price::Price;
use steersman_machine::view::Cx;
use steersman_machine::view::mapping::Raw;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use writer::Writer;

/// Capacity of the channel from handles to the driver. A handle that sends more waits.
const TOLD: usize = 64;
/// Capacity of the channel from tasks to the driver.
const FROM_TASKS: usize = 256;

/// A session and everything that its owner keeps about it in memory.
pub(crate) struct Driver {
    engine: Engine,
    session: SessionId,
    claim: Claim,
    /// Random number that makes ids unique after a backup is restored. Written with the first line of this owner.
    mark: u64,
    claimed: bool,
    /// `None` until the session has begun.
    network: Option<Arc<Network>>,
    values: Values,
    ledger: Ledger,
    past: Arc<Past>,
    load: Load,
    branches: BTreeMap<Id, Branch>,
    /// Outstanding effects of the branches that have ticks.
    outs: BTreeMap<Id, Out>,
    /// Attempts of tools that have begun and have not reported their end, also if their calls are already over.
    at_work: BTreeMap<(Id, u32), AtWork>,
    /// Effects in doubt that no branch waits for.
    left: BTreeMap<Id, left::Left>,
    /// Effects in doubt that no branch waits for and that are still to be added to `left`.
    left_now: Vec<Id>,
    /// Effects that may begin now.
    to_start: BTreeSet<Id>,
    /// Effects that wait for a free slot, by agent.
    queued: BTreeMap<Id, BTreeSet<Id>>,
    /// Model calls that wait for budget which other calls have reserved.
    short: BTreeSet<Id>,
    /// Model calls whose places do not answer.
    outages: outage::Outages,
    /// Effects that wait for the end of an equal effect, with the id of that effect.
    behind: BTreeMap<Id, Id>,
    /// Branches that have something new.
    fresh: BTreeSet<Id>,
    /// Branches may have ended, or calls may have begun to wait for branches, since the last check.
    may_have_ended: bool,
    writer: Writer<OnDisk>,
    next: Line,
    inbox: Inbox,
    tasks: Tell,
    from_tasks: mpsc::Receiver<Box<FromTask>>,
    from_handles: mpsc::Receiver<ToDriver>,
    standing: watch::Sender<Standing>,
    still: Arc<Notify>,
    live: Live,
    /// The state shown in session lists, as it was last written.
    shown: SessionState,
    /// Callers that wait for the driver to stop; `None` until a stop is requested.
    stopping: Option<Vec<oneshot::Sender<()>>>,
    /// Amount written since the ledger's last checkpoint.
    since: Since,
    /// Escrow that may not be on disk yet, by line. Calls that need it begin when it is on disk.
    drawn: VecDeque<(Line, Amount)>,
    /// The largest amount that a model call of this session has reserved or spent, as far as the budgets limit it.
    dearest: Amount,
    /// Branches that agents asked for and that are opened next.
    to_open: Vec<branches::ToOpen>,
    /// Branches that machines chose for adoption: the target branch, its call, the adopted branch, and the last line to adopt.
    to_adopt: Vec<(Id, (Id, Id), Id, Line)>,
    /// Branches that the current line supersedes.
    left_behind: Vec<Id>,
    /// Probes that run. Their effects are held, and the hold may end without a person.
    probing: BTreeSet<Id>,
    /// Lists of tools that servers may change.
    following: follow::Following,
    /// Effects that notify people, with their state in this process.
    reaching: BTreeMap<Id, reach::State>,
    /// Searches over branches that are open.
    searches: explore::Searches,
    /// Says if the session stops after each line.
    stepping: step::Stepping,
    /// True once the store knows what a program needs to drive the session.
    needs_told: bool,
    /// True if the lease of the worker ended: others may own the session.
    is_lost: bool,
}

/// A branch that has ticks (see `Ledger::has_ticks`), in memory.
pub(crate) struct Branch {
    snapshot: Snapshot,
    /// The last line of the branch, and its hash.
    prev: Line,
    hash: Hash,
    /// Offers that arrived and were not taken yet.
    offers: Vec<Offer>,
    caches: HashMap<Id, RenderCache>,
    label: Option<Name>,
    /// Snapshot at the line where the branch begins, for positions in scripts; `None` for `main`.
    base: Option<Snapshot>,
    /// Amount written since the branch's last checkpoint.
    since: Since,
    /// The next time at which the branch must be offered the clock.
    deadline: Option<Time>,
}

/// Something to offer to a branch, before it is translated into the machine's terms.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// An offer that is already in the machine's terms.
    Offer(Box<Offered>),
    /// The raw outcome of a call; mapped when it is offered.
    Raw {
        effect: Id,
        attempt: u32,
        raw: Raw,
        by: Option<By>,
        simulated: bool,
    },
    /// An interrupt. What the ledger knows and what was streamed by then is added when it is offered.
    Interrupt(Said),
    /// A cancel by this person; completed like an interrupt.
    Cancel(steersman_machine::tick::effect::Cancelled, By),
}

/// An outstanding effect of a branch that has ticks.
pub(crate) struct Out {
    branch: Id,
    wish: Wish,
    /// Digests of tool and arguments, the one to record first. Empty if the effect is no tool's.
    digests: Arc<[Digest]>,
    /// The attempt that runs or ran last.
    attempt: u32,
    state: OutState,
    /// Slot of the effect's tool, until an attempt begins.
    permit: Option<OwnedSemaphorePermit>,
    /// Permit of the limiter: of a tool at a place that has a rate, until an attempt begins; of a model call that waited for a
    /// place that did not answer.
    turn: Option<Permit>,
    /// Text that the running attempt has streamed.
    shown: String,
    /// Of a model call that was rendered: digest of the request, length of the prefix that it shares with the request before,
    /// and the cause that ended this prefix.
    request: Option<(Digest, u64, Option<Name>)>,
    /// Bytes that the running attempt has streamed: text, reasoning, calls.
    came: u64,
    /// Budget reserved for the effect.
    reserved: Amount,
    /// Estimated tokens of the request.
    sent: u64,
    /// The model that the definition names for the call, once the request was rendered.
    asked: Option<Name>,
    /// Index, from 0, of the model in the fallback chain that is asked.
    rung: usize,
    /// Attempts made with the models before it in the chain.
    tried: u32,
    /// Price of the model that is asked, if known.
    price: Option<Price>,
    /// Secrets that a person gave: parameter and sealed value.
    inputs: Vec<(Name, String)>,
    /// A person allowed the repetition of the equal effects that existed at this line.
    word: Option<Line>,
    /// Roles that have approved the effect ([`Hold::by`](steersman_machine::stored::commit::Hold::by)).
    approved: Vec<Name>,
    since: Time,
}

/// An attempt of a tool that has begun. Its task always reports its end.
struct AtWork {
    cancel: CancellationToken,
    /// It may change the world: the session is not released before the attempt has reported its end.
    world: bool,
    /// Slot of the tool, held while the attempt runs.
    permit: Option<OwnedSemaphorePermit>,
    /// Permit of a place that has a rate.
    turn: Option<Permit>,
}

/// State of an outstanding effect.
#[derive(Debug)]
pub(crate) enum OutState {
    /// The effect may begin.
    Ready,
    /// It waits for a search over branches ([`explore`]).
    Stands,
    /// A hold keeps it.
    Held,
    /// An order of a person keeps effects of its tool from beginning.
    Barred,
    /// It waits for a free slot, for its turn at a place, for an equal effect, for budget, or for the next step.
    Queued,
    /// A line is on its way to the disk: the effect's `Started`, or the escrow for its cost. The attempt begins when the line
    /// is on disk, also if something wakes the effect earlier.
    Starting(Line),
    /// An attempt runs.
    Running(CancellationToken),
    /// Another attempt follows soon, at about this time; the wait is in memory only.
    Soon(Time),
    /// Another attempt follows at this time; the time is in the log.
    Later(Time),
    /// A question, an event or a timer: it ends by an input from outside or by time.
    Waits,
    /// Its outcome is offered.
    Over,
}

/// Action to take when a line is on disk.
pub(crate) enum OnDisk {
    /// Begin this attempt.
    Start(Id, u32),
    /// Begin the attempt to notify a person.
    Reach(Id),
    /// Begin an attempt of a probe: the probe, the effect in doubt, the attempt.
    Probe(Id, Id, u32),
    /// Send the receipt to the sender that waits, or keep it for one that asks soon.
    Receipt(Option<oneshot::Sender<Receipt>>, Receipt),
    /// Look at the inbox and the box of events.
    Look,
}

/// Number of receipts that are kept for senders that ask a moment late.
const FATES: usize = 64;

/// The session's inbox as its owner has read it.
#[derive(Default)]
struct Inbox {
    /// Messages already read, by id; removed when they are taken.
    known: BTreeMap<Name, InboxMessage>,
    /// Events that match no open wait so far.
    events: Vec<InboxMessage>,
    /// Senders that wait for the fate of a message.
    replies: HashMap<Name, oneshot::Sender<Receipt>>,
    /// Messages whose line is not on disk yet, and whose sender did not wait when the line was made.
    soon: BTreeSet<Name>,
    /// Receipts of the last messages for which no sender waited.
    fates: VecDeque<Receipt>,
    look: bool,
    /// Look at the inbox again once the pending time-outs are written.
    late: bool,
    /// Number of messages that were ever delivered, as of the last time that the inbox was read to its end.
    mail: u64,
}

/// Drives a claimed session in a task of its own. `told` holds messages that the driver reads before anything begins:
/// senders that wait for the fate of a message which is already in the inbox, or a request to stop once the inbox is read.
/// `steps`: the session stops after each line.
pub(crate) async fn spawn(
    engine: &Engine,
    claim: Claim,
    told: Vec<ToDriver>,
    steps: bool,
) -> Result<Session, EngineError> {
    let session = claim.session.clone();
    let (to, from_handles) = mpsc::channel(TOLD);
    let (standing, seen) = watch::channel(Standing::Busy);
    let live = Live::default();
    let still = Arc::<Notify>::default();
    let handle = Session {
        id: session,
        engine: engine.clone(),
        to,
        standing: seen,
        still: still.clone(),
        live: live.clone(),
    };
    for told in told {
        // no other handle exists yet, so the channel has room
        handle.to.try_send(told).ok();
    }
    let told = (from_handles, standing, still, live);
    let mut driver = Box::new(Driver::of(Parked::claimed(engine.clone(), claim, told)));
    if let Err(why) = driver.read().await {
        if let Some(left) = driver.leaves_in_trouble(&why) {
            seat::release(engine, driver.claim.clone(), left).await;
        }
        return Err(why);
    }
    driver.steps(steps);
    tokio::spawn(own(driver));
    Ok(handle)
}

/// Drives a session while something goes on, and waits while it is parked, until it is released. The futures of driving are
/// boxed, so a parked session frees their memory.
async fn own(driver: Box<Driver>) {
    let (mut driver, mut woken) = (driver, None);
    while let Some(parked) = Box::pin(driver.run(woken)).await {
        let Some((again, by)) = parked.over().await else {
            return;
        };
        (driver, woken) = (again, Some(by));
    }
}

/// Reason why the loop ended.
enum Come {
    /// The session waits only for the outside, and was parked.
    Parked,
    /// A stop was requested.
    Stopped,
}

impl Driver {
    /// Drives the session until it is parked. `None`: it was released or failed.
    async fn run(mut self: Box<Self>, woken: Option<Woken>) -> Option<Parked> {
        let ended = AssertUnwindSafe(self.drive(woken)).catch_unwind().await;
        let (why, left) = match ended {
            Ok(Ok(Come::Parked)) => return Some(self.park()),
            Ok(Ok(Come::Stopped)) => (EngineError::Stopped, Some(self.leaves())),
            Ok(Err(error)) => (error, None),
            Err(_) => {
                let what = "the driver panicked; what is on disk is whole".to_owned();
                let session = self.session.clone();
                (EngineError::Broken { session, what }, None)
            }
        };
        // Everything that was only in memory is lost: the next owner continues from the disk.
        for out in self.outs.values() {
            if let OutState::Running(cancel) = &out.state {
                cancel.cancel();
            }
        }
        for attempt in self.at_work.values() {
            attempt.cancel.cancel();
        }
        self.outs.clear();
        if let Some(left) = left.or_else(|| self.leaves_in_trouble(&why)) {
            seat::release(&self.engine, self.claim.clone(), left).await;
        }
        self.standing.send_replace(Standing::Gone(Arc::new(why)));
        let told = self.stopping.take().unwrap_or_default();
        drop(self);
        for ended in told {
            let _ = ended.send(());
        }
        None
    }

    async fn drive(&mut self, woken: Option<Woken>) -> Result<Come, EngineError> {
        match woken {
            Some(woken) => self.wake(woken).await?,
            None => self.recover().await?,
        }
        self.inbox.look = true;
        // a sender that opened the session for its message is registered before that message is read
        while let Ok(told) = self.from_handles.try_recv() {
            self.told(told);
        }
        let mut calm = false;
        loop {
            self.work().await?;
            self.publish();
            if self.is_done() {
                if self.give_back().await? {
                    continue;
                }
                self.live.show(FeedItem::Closed);
                return Ok(Come::Stopped);
            }
            if self.is_to_park(calm) {
                return Ok(Come::Parked);
            }
            calm = self.wait().await?;
            if self.is_lost {
                return Err(self.fenced());
            }
        }
    }

    /// Does everything that can be done without waiting for the outside.
    async fn work(&mut self) -> Result<(), EngineError> {
        loop {
            for ready in self.writer.take_ready() {
                self.on_disk(ready);
            }
            if !self.writer.has_room(1, 0, self.is_step()) {
                return Ok(());
            }
            if std::mem::take(&mut self.inbox.look) {
                self.read_inbox().await?;
            } else if let Some(branch) = self.next_branch().filter(|_| !self.stands()) {
                Box::pin(self.turn(branch)).await?;
            } else if std::mem::take(&mut self.inbox.late) {
                self.inbox.look = true;
            } else if let Some(lists) = self.following.take() {
                self.lists_came(lists).await?;
            } else if let Some(effect) = self.next_start() {
                self.start(effect).await?;
            } else if let Some(effect) = self.next_not_begun() {
                self.not_begun(effect).await?;
            } else if let Some(of) = self.next_probe() {
                self.probe(of).await?;
            } else if let Some(wanted) = self.next_reach() {
                self.reach(wanted).await?;
            } else if let Some(search) = self.next_search().filter(|_| !self.stands()) {
                Box::pin(self.explore(search)).await?;
            } else if self.writer.take_ready_is_empty() {
                return Ok(());
            }
        }
    }

    /// Waits for an input from tasks, handles, the disk, the clock or another process. Returns true if nothing happened for a
    /// while, so that the session may be parked.
    async fn wait(&mut self) -> Result<bool, EngineError> {
        let clock = self.engine.clock().clone();
        // While the session is stopped after a line, time does nothing: what is due is handled when the session goes on.
        let due = self.next_due().filter(|_| !self.stands());
        let timer = async {
            match due {
                Some(due) => clock.sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        let calm = self.is_parkable().then(|| clock.sleep(CALM));
        let calm = async {
            match calm {
                Some(calm) => calm.await,
                None => std::future::pending().await,
            }
        };
        let alive = self.engine.0.alive.clone();
        self.take_seats();
        tokio::select! {
            biased;
            written = self.writer.written() => {
                written?;
                self.reached_disk();
            }
            Some(told) = self.from_handles.recv() => self.told(told),
            Some(ended) = self.from_tasks.recv() => self.task_told(*ended).await?,
            () = timer => self.tick_clock().await?,
            (id, permit) = self.outages.answered() => self.place_calls(id, permit),
            () = alive.cancelled() => return Err(EngineError::Stopped),
            () = calm => return Ok(true),
        }
        while let Ok(told) = self.from_handles.try_recv() {
            self.told(told);
        }
        while let Ok(ended) = self.from_tasks.try_recv() {
            self.task_told(*ended).await?;
        }
        // Attempts that end in place keep the last arms above from being polled for as long as they follow each other.
        if alive.is_cancelled() {
            return Err(EngineError::Stopped);
        }
        if due.is_some_and(|due| due <= clock.now()) {
            self.tick_clock().await?;
        }
        Ok(false)
    }

    fn reached_disk(&self) {
        self.past.written(self.writer.durable);
        self.live.tell(Notice::Durable);
    }

    /// Waits until a batch of this size may be appended.
    async fn room(&mut self, lines: u64, bytes: usize) -> Result<(), EngineError> {
        while !self.writer.has_room(lines, bytes, self.is_step()) {
            self.next_written().await?;
        }
        Ok(())
    }

    /// Waits until the next batch is on disk. Fails if this process is told to stop.
    async fn next_written(&mut self) -> Result<(), EngineError> {
        let alive = self.engine.0.alive.clone();
        tokio::select! {
            biased;
            written = self.writer.written() => written?,
            () = alive.cancelled() => return Err(EngineError::Stopped),
        }
        self.reached_disk();
        Ok(())
    }

    fn told(&mut self, told: ToDriver) {
        if !matches!(told, ToDriver::Look | ToDriver::Lost) {
            self.busy();
        }
        match told {
            ToDriver::Inbox(id, reply) => {
                if let Some(known) = self.inbox.fates.iter().find(|known| known.id == id) {
                    reply.send(known.clone()).ok();
                } else if self.ledger.accepted(&id) && !self.inbox.soon.contains(&id) {
                    let fate = Fate::Known;
                    reply.send(Receipt { id, fate }).ok();
                } else {
                    self.inbox.replies.insert(id, reply);
                }
                self.inbox.look = true;
            }
            ToDriver::Look => self.inbox.look = true,
            ToDriver::Lost => self.is_lost = true,
            ToDriver::Step(how, heard) => {
                self.let_go_on(how);
                heard.send(()).ok();
            }
            ToDriver::Stop(ended) => {
                self.stopping.get_or_insert_default().push(ended);
                self.cut_free();
            }
        }
    }

    fn on_disk(&mut self, what: OnDisk) {
        match what {
            OnDisk::Start(effect, attempt) => {
                let out = self.outs.get(&effect);
                if out.is_some_and(|out| out.attempt == attempt) {
                    self.to_start.insert(effect);
                }
            }
            OnDisk::Reach(effect) => self.start_reach(effect),
            OnDisk::Probe(effect, of, attempt) => self.start_probe(effect, of, attempt),
            OnDisk::Receipt(reply, receipt) => {
                self.inbox.soon.remove(&receipt.id);
                if let Some(reply) = reply.or_else(|| self.inbox.replies.remove(&receipt.id)) {
                    reply.send(receipt).ok();
                    return;
                }
                if self.inbox.fates.len() == FATES {
                    self.inbox.fates.pop_front();
                }
                self.inbox.fates.push_back(receipt);
            }
            OnDisk::Look => self.inbox.look = true,
        }
    }

    /// Returns the first branch, by id, that has something new; `main` comes first.
    fn next_branch(&self) -> Option<Id> {
        self.fresh.first().copied()
    }

    /// Returns the next effect that may begin. Nothing begins while the session is paused or being stopped.
    fn next_start(&mut self) -> Option<Id> {
        if self.is_halted() {
            return None;
        }
        if self.stands() {
            return self.next_granted();
        }
        self.to_start.pop_first()
    }

    /// Returns true if nothing may begin: the session is paused or being stopped, or others may own it.
    fn is_halted(&self) -> bool {
        self.ledger.paused || self.stopping.is_some() || !self.engine.is_live()
    }

    fn fenced(&self) -> EngineError {
        EngineError::Store(StoreError::Fenced {
            session: self.session.clone(),
            epoch: self.claim.epoch,
        })
    }

    /// Returns the next effect whose `Started` is on disk while nothing may begin any more.
    fn next_not_begun(&self) -> Option<Id> {
        let starting = |id: &&Id| {
            let out = self.outs.get(id);
            out.is_some_and(|out| matches!(out.state, OutState::Starting(_)))
        };
        self.to_start
            .iter()
            .filter(|_| self.is_halted())
            .find(starting)
            .copied()
    }

    /// Queues an offer for a branch. An offer for a branch without ticks is dropped: only the ledger counts there.
    fn offer(&mut self, branch: Id, offer: Offer) {
        if let Some(known) = self.branches.get_mut(&branch) {
            known.offers.push(offer);
            self.fresh.insert(branch);
        }
        self.busy();
    }

    fn busy(&self) {
        self.standing.send_if_modified(|standing| match standing {
            // Nobody waits for the state `Busy`.
            Standing::Settled(..) | Standing::Outside(_) | Standing::Stands { .. } => {
                *standing = Standing::Busy;
                false
            }
            Standing::Busy | Standing::Gone(_) => false,
        });
    }

    /// Returns true if the session may be released: attempts that must not be repeated have reported their end, and everything
    /// is on disk.
    fn is_done(&self) -> bool {
        self.stopping.is_some()
            && self.writer.is_idle()
            && self.next_branch().is_none()
            && !self
                .outs
                .values()
                .any(|out| matches!(out.state, OutState::Running(_) | OutState::Starting(_)))
            && !self.at_work.values().any(|attempt| attempt.world)
            && self.reaching_now() == 0
    }

    fn is_step(&self) -> bool {
        self.engine.0.options.durability == Durability::Step
    }

    /// Asks a question that reads the past. Fails if something could not be read: then the answer is void.
    fn ask<T>(&self, question: impl FnOnce(&Cx<'_>) -> T) -> Result<T, StoreError> {
        let cx = Cx {
            network: self.network(),
            bodies: &*self.past,
        };
        let answer = question(&cx);
        match self.past.fault() {
            None => Ok(answer),
            Some(fault) => Err(fault),
        }
    }

    /// Returns the network. Panics if the session has not begun.
    fn network(&self) -> &Arc<Network> {
        self.network
            .as_ref()
            .expect("a session that has begun is bound")
    }

    /// Returns the time of the next line of a branch; never earlier than the line before, even if the clock was set back.
    fn now(&self, branch: Id) -> Time {
        let last = self
            .branches
            .get(&branch)
            .map_or(Time(0), |b| b.snapshot.now);
        self.engine.clock().now().max(last)
    }
}
