//! The loop: offers in, a tick, a line, effects.
//!
//! One task per session owns its snapshots and its ledger; everything else tells it things. Per turn of the loop:
//!
//! 1. what came in is sorted into offers of branches ([`act`], [`outcome`]);
//! 2. a branch with something new is ticked ([`turn`]): the machine takes or leaves each offer;
//! 3. each wish is taken to the ledger ([`wish`]): holds, and `Started` for what may begin;
//! 4. the line is appended, one row ([`writer`]);
//! 5. what depends on the line begins when the disk has it, the rest at once ([`attempt`]).
//!
//! Where nothing goes on by itself all of that is given up until something comes ([`parked`]).

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
mod heard;
mod inspect;
mod left;
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
mod standing;
mod start;
mod step;
pub(crate) mod transport;
mod turn;
mod wish;
mod writer;

pub(crate) use everything::run_all;
pub(crate) use inspect::{inspect, settled_on};
pub(crate) use standing::outcome;
pub(crate) use wish::digest as tool_digest;

use crate::bind::Values;
use crate::engine::{Durability, Engine, EngineError};
use crate::feed::{FeedItem, Live, Notice};
use crate::ledger::{Amount, Ledger};
use crate::limiter::Permit;
use crate::load::{Load, Since};
use crate::past::Past;
use crate::session::{Fate, Outside, Receipt, Session, Settled, Standing, ToDriver};
use crate::store::{Claim, InboxMessage, SessionId, SessionState, StoreError};
use attempt::{FromTask, Tell};
use draft::Offer;
use futures::FutureExt;
use parked::{CALM, Parked, Woken};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use steersman_machine::codec::Hash;
use steersman_machine::context::RenderCache;
use steersman_machine::effect::{Offered, Said, Wish};
use steersman_machine::ids::{Digest, Id, Line, Name, Time};
use steersman_machine::mapping::Raw;
use steersman_machine::network::Network;
use steersman_machine::price::Price;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::tick::Cx;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use writer::Writer;

/// Things that handles may have told and the driver did not hear yet; whoever tells more waits.
const TOLD: usize = 64;
/// The same of tasks.
const FROM_TASKS: usize = 256;

/// A session and all that its owner knows of it.
pub(crate) struct Driver {
    engine: Engine,
    session: SessionId,
    claim: Claim,
    /// Random; makes ids unique after a restored backup. Written with the first line of this owner.
    mark: u64,
    claimed: bool,
    /// None until the session has begun.
    network: Option<Arc<Network>>,
    values: Values,
    ledger: Ledger,
    past: Arc<Past>,
    load: Load,
    branches: BTreeMap<Id, Branch>,
    /// Effects that are out on branches that have ticks.
    outs: BTreeMap<Id, Out>,
    /// Attempts of tools that have begun and have not told how they ended, whatever became of their calls.
    at_work: BTreeMap<(Id, u32), AtWork>,
    /// Effects in doubt that no branch waits for.
    left: BTreeMap<Id, left::Left>,
    /// Those of them of which it is not known yet how they stood.
    left_now: Vec<Id>,
    /// Effects that may begin now.
    to_start: BTreeSet<Id>,
    /// Effects for which no slot was free, by agent.
    queued: BTreeMap<Id, BTreeSet<Id>>,
    /// Model calls that wait for what others have reserved of the session's budget.
    short: BTreeSet<Id>,
    /// Model calls whose places do not answer.
    outages: outage::Outages,
    /// Effects that begin when an equal one has ended, and that one.
    behind: BTreeMap<Id, Id>,
    /// Branches that have something new.
    fresh: BTreeSet<Id>,
    /// Branches may have ended, or somebody may wait for some since it was last looked.
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
    /// What lists show, as last written.
    shown: SessionState,
    /// Who waits for the end, once it is wanted.
    stopping: Option<Vec<oneshot::Sender<()>>>,
    /// What was written since the ledger's last checkpoint.
    since: Since,
    /// Escrow that may not be on disk yet, by line: what it is drawn for begins when it is.
    drawn: VecDeque<(Line, Amount)>,
    /// The most that a model call of this session was taken to need.
    dearest: Amount,
    /// Branches that agents asked for and that begin next.
    to_open: Vec<branches::ToOpen>,
    /// Branches that machines chose: where, for which call, which, and up to which line.
    to_adopt: Vec<(Id, (Id, Id), Id, Line)>,
    /// Branches that the line in hand supersedes.
    left_behind: Vec<Id>,
    /// Effects in doubt whose probe runs: they are held, and may end by themselves.
    probing: BTreeSet<Id>,
    /// Lists of tools that servers may change.
    following: follow::Following,
    /// Effects that tell people what waits for them, and how they stand in this process.
    reaching: BTreeMap<Id, reach::State>,
    /// Searches over branches that go on.
    searches: explore::Searches,
    /// Whether it stands after each line.
    stepping: step::Stepping,
}

/// A branch that has ticks.
pub(crate) struct Branch {
    snapshot: Snapshot,
    /// The line before the next one, and its hash.
    prev: Line,
    hash: Hash,
    /// What came in and was not taken yet.
    offers: Vec<Offer>,
    caches: HashMap<Id, RenderCache>,
    label: Option<Name>,
    /// Where it stood when it began, for positions in scripts; none for `main`.
    base: Option<Snapshot>,
    /// What was written since its last checkpoint.
    since: Since,
    /// When the machine wants to be offered the clock.
    deadline: Option<Time>,
}

/// What a branch is to be offered, before it is in the machine's terms.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// As it is.
    Offer(Box<Offered>),
    /// Of a call; mapped when it is offered.
    Raw {
        effect: Id,
        attempt: u32,
        raw: Raw,
        by: Option<Name>,
        simulated: bool,
    },
    /// With what the ledger knows and what was shown by then.
    Interrupt(Said),
    /// The same.
    Cancel(steersman_machine::effect::Cancelled, Name),
}

/// An effect that is out.
pub(crate) struct Out {
    branch: Id,
    wish: Wish,
    /// Of tool and arguments.
    digest: Option<Digest>,
    /// The attempt that runs or ran last.
    attempt: u32,
    state: OutState,
    /// Slot of its tool, until an attempt begins.
    permit: Option<OwnedSemaphorePermit>,
    /// Its turn at a place, once that has come, of a tool until an attempt begins: of one that has a rate, or that did not
    /// answer.
    turn: Option<Permit>,
    /// Streamed of the attempt that runs.
    shown: String,
    /// Of a model call that was rendered: digest of the request, its common prefix with the one before, what broke it.
    request: Option<(Digest, u64, Option<Name>)>,
    /// Bytes that the attempt that runs has streamed: text, reasoning, calls.
    came: u64,
    /// What is reserved for it.
    reserved: Amount,
    /// Tokens that it sends, as far as known.
    sent: u64,
    /// The model that the definition names for it, once it was rendered.
    asked: Option<Name>,
    /// Of a model call: which model of its chain is asked, from 0.
    rung: usize,
    /// Attempts that the models before it took.
    tried: u32,
    /// What the model costs that is asked, if that is known.
    price: Option<Price>,
    /// Secrets that were asked for: parameter and sealed value.
    inputs: Vec<(Name, String)>,
    /// Somebody let it repeat what they were told of: equal effects as they stood at this line.
    word: Option<Line>,
    /// Whose approval it has ([`Hold::by`](steersman_machine::commit::Hold::by)).
    approved: Vec<Name>,
    since: Time,
}

/// An attempt of a tool that has begun. Its task tells how it ended, whatever happens to it.
struct AtWork {
    cancel: CancellationToken,
    /// It may change the world: nobody lets go of the session before it has told what it did.
    world: bool,
    /// Slot of its tool, for as long as it runs.
    permit: Option<OwnedSemaphorePermit>,
    /// Its turn at a place that has a rate.
    turn: Option<Permit>,
}

/// Where an effect stands.
#[derive(Debug)]
pub(crate) enum OutState {
    /// It may begin.
    Ready,
    /// It waits for a search over branches ([`explore`]).
    Stands,
    /// A hold keeps it.
    Held,
    /// A person keeps effects of its tool from beginning.
    Barred,
    /// No slot is free.
    Queued,
    /// This line is on its way to the disk, and the attempt begins when it is there, whoever wakes it: its `Started`, or what
    /// it costs.
    Starting(Line),
    /// An attempt runs.
    Running(CancellationToken),
    /// Another attempt follows soon, at about this time; waited for in memory.
    Soon(Time),
    /// Another attempt follows at that time.
    Later(Time),
    /// It ends from outside or by time: a question, an event, a timer.
    Waits,
    /// Its outcome is offered.
    Over,
}

/// What is to happen when a line is on disk.
pub(crate) enum OnDisk {
    /// This attempt begins.
    Start(Id, u32),
    /// The attempt to tell a person begins.
    Reach(Id),
    /// The attempt of a probe begins: the probe, the effect in doubt, the attempt.
    Probe(Id, Id, u32),
    /// Somebody is told, or may ask soon.
    Receipt(Option<oneshot::Sender<Receipt>>, Receipt),
    /// The inbox and the box of events are looked at.
    Look,
}

/// What became of so many messages is remembered for who asks a moment late.
const FATES: usize = 64;

/// The session's inbox as the owner knows it.
#[derive(Default)]
struct Inbox {
    /// Read already, by id; gone when it is taken.
    known: BTreeMap<Name, InboxMessage>,
    /// Events that meet no wait so far.
    events: Vec<InboxMessage>,
    /// Who waits to hear of a message.
    replies: HashMap<Name, oneshot::Sender<Receipt>>,
    /// Messages whose line is not on disk yet, and that nobody waited for when it was made.
    soon: BTreeSet<Name>,
    /// What became of the last ones for which nobody waited.
    fates: VecDeque<Receipt>,
    look: bool,
    /// The same, when what its time ended has taken its place in the log.
    late: bool,
}

/// Owns a session and drives it in a task of its own.
/// `told` is what it hears before anything begins: who waits to be told what becomes of a message that lies in the inbox
/// already, or that it is to let go when it has read that. `steps`: it stands after each line.
pub(crate) async fn spawn(
    engine: &Engine,
    id: &str,
    told: Vec<ToDriver>,
    steps: bool,
) -> Result<Session, EngineError> {
    let claim = engine.store().claim(id).await?;
    let session = claim.session.clone();
    let (to, from_handles) = mpsc::channel(TOLD);
    let (standing, settled) = watch::channel(Standing::Busy);
    let live = Live::default();
    let still = Arc::<Notify>::default();
    let handle = Session {
        id: session,
        engine: engine.clone(),
        to,
        settled,
        still: still.clone(),
        live: live.clone(),
    };
    for told in told {
        // nobody else has the handle yet: there is room
        handle.to.try_send(told).ok();
    }
    let told = (from_handles, standing, still, live);
    let mut driver = Box::new(Driver::of(Parked::claimed(engine.clone(), claim, told)));
    driver.read().await?;
    driver.steps(steps);
    tokio::spawn(own(driver));
    Ok(handle)
}

/// Drives a session for as long as something goes on, and waits while it is parked, until it is let go of. What driving
/// takes lies in boxes of its own: a parked session gives them back.
async fn own(driver: Box<Driver>) {
    let (mut driver, mut woken) = (driver, None);
    while let Some(parked) = Box::pin(driver.run(woken)).await {
        let Some((again, by)) = parked.over().await else {
            return;
        };
        (driver, woken) = (again, Some(by));
    }
}

/// What a driver comes to.
enum Come {
    /// Nothing goes on by itself.
    Parked,
    /// Somebody stopped it.
    Stopped,
}

impl Driver {
    /// Until it is parked; none: it was let go of.
    async fn run(mut self: Box<Self>, woken: Option<Woken>) -> Option<Parked> {
        let ended = AssertUnwindSafe(self.drive(woken)).catch_unwind().await;
        let why = match ended {
            Ok(Ok(Come::Parked)) => return Some(self.park()),
            Ok(Ok(Come::Stopped)) => EngineError::Stopped,
            Ok(Err(error)) => error,
            Err(_) => EngineError::Broken {
                session: self.session.clone(),
                what: "the driver panicked; what is on disk is whole".to_owned(),
            },
        };
        // Whatever was in memory only is gone: who claims next goes on from the disk.
        for out in self.outs.values() {
            if let OutState::Running(cancel) = &out.state {
                cancel.cancel();
            }
        }
        for attempt in self.at_work.values() {
            attempt.cancel.cancel();
        }
        self.outs.clear();
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
        // who opened it for a message is there before the message is read
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
        }
    }

    /// Does all that can be done without waiting for the outside.
    async fn work(&mut self) -> Result<(), EngineError> {
        loop {
            for ready in self.writer.take_ready() {
                self.on_disk(ready);
            }
            if !self.writer.has_room(0, self.is_step()) {
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

    /// Waits until something came in: from tasks, handles, the disk, the clock or another process. True if nothing did for
    /// a while, and it may be parked.
    async fn wait(&mut self) -> Result<bool, EngineError> {
        let clock = self.engine.clock().clone();
        // Where it stands time moves nothing: what is due is due when it goes on.
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
        Ok(false)
    }

    fn reached_disk(&self) {
        self.past.written(self.writer.durable);
        self.live.tell(Notice::Durable);
    }

    /// Waits until a line of this many bytes may be appended.
    async fn room(&mut self, bytes: usize) -> Result<(), EngineError> {
        while !self.writer.has_room(bytes, self.is_step()) {
            self.next_written().await?;
        }
        Ok(())
    }

    /// Waits until more is on disk, and no longer than anybody wants this process to go on.
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
        if !matches!(told, ToDriver::Look) {
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

    /// The next branch that has something new, by id: `main` first.
    fn next_branch(&self) -> Option<Id> {
        self.fresh.first().copied()
    }

    /// The next effect that may begin; nothing begins while the session is paused or being stopped.
    fn next_start(&mut self) -> Option<Id> {
        if self.is_halted() {
            return None;
        }
        if self.stands() {
            return self.next_granted();
        }
        self.to_start.pop_first()
    }

    fn is_halted(&self) -> bool {
        self.ledger.paused || self.stopping.is_some()
    }

    /// The next effect whose `Started` has reached the disk while nothing may begin any more.
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

    /// Something is to be offered to a branch. Of a branch without ticks it is the ledger's.
    fn offer(&mut self, branch: Id, offer: Offer) {
        if let Some(known) = self.branches.get_mut(&branch) {
            known.offers.push(offer);
            self.fresh.insert(branch);
        }
        self.busy();
    }

    fn busy(&self) {
        self.standing.send_if_modified(|standing| match standing {
            // Nobody waits for that.
            Standing::Settled(..) | Standing::Outside(_) | Standing::Stands { .. } => {
                *standing = Standing::Busy;
                false
            }
            Standing::Busy | Standing::Gone(_) => false,
        });
    }

    fn publish(&mut self) {
        if self.stands() && !self.is_quiet() {
            self.publish_line();
            return;
        }
        if !self.is_still() {
            return;
        }
        let outside = self.outside();
        if !self.is_quiet() {
            self.standing.send_if_modified(|standing| {
                if !matches!(standing, Standing::Gone(_)) {
                    *standing = Standing::Outside(outside);
                }
                false
            });
            self.still.notify_waiters();
            return;
        }
        self.rests();
        let settled: Arc<Settled> = Arc::new(self.settled());
        let changed = self.standing.send_if_modified(|standing| match standing {
            Standing::Busy | Standing::Outside(_) | Standing::Stands { .. } => {
                *standing = Standing::Settled(settled.clone(), outside);
                true
            }
            Standing::Settled(_, known) => {
                *known = outside;
                false
            }
            Standing::Gone(_) => false,
        });
        if changed {
            self.live.show(FeedItem::Settled(settled));
        }
    }

    /// The driver has nothing to do, and all is on disk; effects may run.
    fn is_still(&self) -> bool {
        self.writer.is_idle()
            && !self.inbox.look
            && !self.inbox.late
            && self.next_branch().is_none()
            && self.next_search().is_none()
            && !self.following.has_come()
            && (self.to_start.is_empty() || self.ledger.paused || self.stopping.is_some())
    }

    /// What has to happen before anything goes on.
    fn outside(&self) -> Outside {
        // Who waits for a turn goes on by the clock of the limiter; who waits for a slot, when another ends.
        let waits_for_slot = |id: &Id| {
            self.waits_for_another(*id)
                || self.short.contains(id)
                || self.queued.values().any(|ids| ids.contains(id))
        };
        let running = self.outs.iter().filter(|(id, out)| match out.state {
            OutState::Running(_) => true,
            OutState::Queued => !self.ledger.paused && !waits_for_slot(id),
            _ => false,
        });
        // Those whose branch was left, or whose call was cancelled.
        let left = self.at_work.iter().filter(|((id, attempt), at_work)| {
            let mut out = self.outs.get(id).into_iter();
            at_work.world && !out.any(|out| out.attempt == *attempt)
        });
        let soon = self.outs.values().filter_map(|out| match out.state {
            OutState::Soon(at) if !self.ledger.paused => Some(at),
            _ => None,
        });
        Outside {
            running: running.count()
                + left.count()
                + self.probing.len()
                + self.searches.judging()
                + self.reaching_now()
                + usize::from(self.following.is_asking()),
            due: soon.chain(self.next_due()).min(),
            place: self.place_out(),
        }
    }

    /// Nothing goes on by itself, and all is on disk.
    fn is_quiet(&self) -> bool {
        self.is_still()
            && !self.is_probing()
            && !self.following.is_asking()
            && self.reaching_now() == 0
            && self.searches.judging() == 0
            && self.outs.iter().all(|(id, out)| match out.state {
                OutState::Stands | OutState::Held | OutState::Barred | OutState::Waits | OutState::Later(_) => true,
                // Whether anything goes on is seen by the one that it waits for.
                OutState::Queued if self.waits_for_another(*id) => true,
                OutState::Ready | OutState::Queued | OutState::Soon(_) => {
                    self.ledger.paused || self.stopping.is_some()
                }
                OutState::Starting(_) | OutState::Running(_) | OutState::Over => false,
            })
            // What is due already ends in the next turn of the loop.
            && self.next_due().is_none_or(|due| due > self.engine.clock().now())
    }

    /// Whether it may be let go of: what has begun and must not be repeated has told what it did, and all is on disk.
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

    /// Asks a question that reads the past. What could not be read makes the answer void.
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

    /// The network. Only where the session has begun.
    fn network(&self) -> &Arc<Network> {
        self.network
            .as_ref()
            .expect("a session that has begun is bound")
    }

    /// The time of the next line of a branch: never before that of the line before, however clocks are set.
    fn now(&self, branch: Id) -> Time {
        let last = self
            .branches
            .get(&branch)
            .map_or(Time(0), |b| b.snapshot.now);
        self.engine.clock().now().max(last)
    }
}
