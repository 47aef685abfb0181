//! Drives a session in this process: a task of its own calls the driver with what happened, and carries out what follows.
//!
//! While the session waits only for the outside it is parked: the driver is freed until something arrives. The claim stays, and
//! so do its epoch and all handles; only memory use differs. A session that waits for people, events or times is parked
//! immediately, since these take long. A session that gave an answer is parked when no input has come for a while: in a
//! conversation the next message comes soon.

mod attempt;
mod everything;
mod hands;
mod inspect;
mod open;
mod parked;
mod running;
mod seen;
mod settles;
mod steps;
mod tail;
mod tapped;

use everything::run_all;
use inspect::inspect;
use parked::{Parked, Woken};

use crate::driver::rest::{Asleep, Rest};
use crate::driver::standing::Stood;
use crate::driver::{Answers, Captured, Driver, Event, Job, Say, Turned, Went};
use crate::engine::{Engine, EngineError};
use crate::feed::{FeedItem, Live, Notice};
use crate::limiter::Permit;
use crate::load::Load;
use crate::past::Past;
use crate::session::{Fate, Receipt, Session, Settled, Standing, ToDriver};
use crate::store::{Claim, Left, StoreError};
use crate::tap::Owned;
use futures::FutureExt;
use hands::{Hands, Seats};
use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Name};
use tail::Tail;
use tokio::sync::{Notify, mpsc, oneshot, watch};

/// Capacity of the channel from handles to the owner of a session. A handle that sends more waits.
const TOLD: usize = 64;
/// Number of receipts that are kept for senders that ask a moment late.
const FATES: usize = 64;
/// Milliseconds without any input before a session that waits for nothing is parked. A session whose next due time is nearer than
/// this is not parked.
const CALM: u64 = 10_000;

/// The handles of a session, and what their holders wait for.
struct Desk {
    from_handles: mpsc::Receiver<ToDriver>,
    standing: watch::Sender<Standing>,
    still: Arc<Notify>,
    live: Live,
    /// Senders that wait for the fate of a message.
    replies: HashMap<Name, Vec<oneshot::Sender<Receipt>>>,
    /// Receipts of the last messages for which no sender waited.
    fates: VecDeque<Receipt>,
    /// Callers that wait for the session to be released.
    stopping: Vec<oneshot::Sender<()>>,
}

/// A session that is being driven.
struct Local {
    engine: Engine,
    claim: Claim,
    desk: Desk,
    hands: Hands,
    tail: Tail,
    load: Load,
    /// The past as jobs read it, and as attempts do.
    image: Arc<Past>,
    reader: Arc<Past>,
    driver: Box<Driver>,
    /// The lease of the worker ended: others may own the session.
    is_lost: bool,
    /// Nothing is left to do before something arrives.
    is_still: bool,
    /// Lines have reached the disk since the driver was called.
    has_written: bool,
}

/// Reason why the owner of a session goes on.
enum By {
    Disk(Result<(), StoreError>),
    Told(ToDriver),
    Task(Box<attempt::FromTask>),
    /// Something that went on has ended, and has sent what it has to say.
    Ended,
    Time,
    Place(Id, Permit),
    Killed,
    Calm,
}

/// Reason why the loop ended.
enum Come {
    /// The session waits only for the outside, and was parked.
    Parked(Box<Asleep>),
    /// A stop was requested.
    Stopped(Box<Left>),
}

/// Drives a claimed session in a task of its own. `told` holds messages that are read before anything begins: senders that wait
/// for the fate of a message which is already in the inbox, or a request to stop once the inbox is read. `steps`: the session
/// stops after each line.
pub(crate) async fn spawn(
    engine: &Engine,
    claim: Claim,
    told: Vec<ToDriver>,
    steps: bool,
) -> Result<Session, EngineError> {
    let session = claim.session.clone();
    // A driver belongs to all: who opened the session first must not decide what it finds in the store.
    let engine = &engine.whole();
    let (to, from_handles) = mpsc::channel(TOLD);
    let (standing, seen) = watch::channel(Standing::Busy);
    let live = Live::default();
    let still = Arc::<Notify>::default();
    let handle = Session {
        id: session,
        scope: claim.scope.clone(),
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
    let desk = Desk {
        from_handles,
        standing,
        still,
        live,
        replies: HashMap::new(),
        fates: VecDeque::new(),
        stopping: Vec::new(),
    };
    let mut mark = [0_u8; 8];
    getrandom::fill(&mut mark).expect("the operating system gives random bytes");
    let rest = Rest::new(u64::from_le_bytes(mark));
    let mut local = match Local::read(engine.clone(), claim.clone(), desk, Seats::new(), rest).await
    {
        Ok(local) => local,
        Err((_, left, why)) => {
            if let Some(left) = left {
                release(engine, claim, left).await;
            }
            return Err(why);
        }
    };
    local.driver.steps(steps);
    tapped::owner(
        engine,
        &local.claim.session,
        Owned::Claimed(local.claim.epoch),
    );
    // Known before it writes, so that who reads a line of it finds it.
    engine.drives(&handle);
    tokio::spawn(own(local));
    Ok(handle)
}

/// Ends a claim. If the release cannot be written, nothing is lost: the lock ends, and the session is wanted immediately.
async fn release(engine: &Engine, claim: Claim, left: Left) {
    tapped::owner(engine, &claim.session, Owned::Released);
    let _ = engine.store().release(claim, left).await;
}

/// Drives a session while something goes on, and waits while it is parked, until it is released. The futures of driving are
/// boxed, so a parked session frees their memory.
async fn own(local: Box<Local>) {
    let (mut local, mut woken) = (local, None);
    while let Some(parked) = Box::pin(local.run(woken)).await {
        let Some((again, by)) = Box::pin(parked.over()).await else {
            return;
        };
        (local, woken) = (again, Some(by));
    }
}

/// Everything that a job may read, as it is now.
macro_rules! captured {
    ($local:expr) => {
        Captured {
            now: $local.engine.clock().now(),
            durable: $local.tail.durable,
            room: $local.tail.room(),
            past: $local.image.clone(),
            reader: $local.reader.clone(),
            answers: Answers::default(),
            permits: &$local.hands,
            engine: &$local.engine,
        }
    };
}

#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the lifetimes of a job are those of its type, so its methods do not fit where any job may come"
)]
impl Local {
    /// Reads the ledger, the branches that have ticks, and the binding. On failure returns the desk, the seat to leave, and the
    /// reason.
    async fn read(
        engine: Engine,
        claim: Claim,
        desk: Desk,
        seats: Seats,
        rest: Rest,
    ) -> Result<Box<Self>, (Desk, Option<Left>, EngineError)> {
        let (store, session) = (engine.store().clone(), claim.session.clone());
        let load = Load::new(store.clone(), session.clone(), claim.salt);
        let bound = engine.0.options.past_bytes;
        let past = Past::new(store.clone(), session, claim.salt, claim.head, bound);
        let ledger = load.ledger(claim.head).await;
        let fails = ledger.as_ref().err().cloned();
        let ledger = ledger.unwrap_or_default();
        let mut local = Box::new(Self {
            hands: Hands::new(engine.clone(), &claim.session, desk.live.clone(), seats),
            tail: Tail::new(store, claim.clone(), engine.0.options.durability),
            load,
            image: Arc::new(past.image()),
            reader: Arc::new(past),
            driver: Box::new(rest.opens(claim.clone(), ledger)),
            engine,
            claim,
            desk,
            is_lost: false,
            is_still: false,
            has_written: false,
        });
        let read = match fails {
            Some(fault) => Err(fault.into()),
            None => match AssertUnwindSafe(local.work(Vec::new()))
                .catch_unwind()
                .await
            {
                Ok(read) => read,
                Err(_) => Err(local.panicked()),
            },
        };
        match read {
            Ok(()) => Ok(local),
            Err(why) => {
                let left = local.leaves_in_trouble(&why);
                Err((local.desk, left, why))
            }
        }
    }

    /// Drives the session until it is parked. `None`: it was released or failed.
    async fn run(mut self: Box<Self>, woken: Option<Woken>) -> Option<Box<Parked>> {
        let ended = AssertUnwindSafe(self.drive(woken)).catch_unwind().await;
        let (why, left) = match ended {
            Ok(Ok(Come::Parked(asleep))) => return Some(self.park(*asleep)),
            Ok(Ok(Come::Stopped(left))) => (EngineError::Stopped, Some(*left)),
            Ok(Err(error)) => (error, None),
            Err(_) => (self.panicked(), None),
        };
        // Everything that was only in memory is lost: the next owner continues from the disk.
        let left = left.or_else(|| self.leaves_in_trouble(&why));
        let Self {
            engine,
            claim,
            mut desk,
            hands,
            ..
        } = *self;
        drop(hands);
        if let Some(left) = left {
            release(&engine, claim, left).await;
        } else {
            let owned = match why {
                EngineError::Store(StoreError::Fenced { .. }) => Owned::Fenced,
                _ => Owned::Released,
            };
            tapped::owner(&engine, &claim.session, owned);
        }
        desk.gone(why);
        let told = std::mem::take(&mut desk.stopping);
        drop(desk);
        for ended in told {
            let _ = ended.send(());
        }
        None
    }

    async fn drive(&mut self, woken: Option<Woken>) -> Result<Come, EngineError> {
        self.driver.begin();
        let mut events = Vec::new();
        match woken {
            Some(Woken::Told(told)) => events.extend(self.told(told)),
            Some(Woken::Place(id, permit)) => events.push(self.hands.place_came(id, permit)),
            Some(Woken::Time) | None => {}
        }
        events.push(Event::Look);
        // a sender that opened the session for its message is registered before that message is read
        while let Ok(told) = self.desk.from_handles.try_recv() {
            events.extend(self.told(told));
        }
        let mut calm = false;
        loop {
            self.work(events).await?;
            if self.engine.0.options.cold && self.is_still {
                self.open_again().await?;
            }
            // Attempts have told something already: the session waits for nothing before it heard that.
            let rests = self.is_still && self.hands.from_tasks.is_empty();
            if rests {
                self.publish().await?;
            }
            if rests && self.job(|job| job.is_done()) {
                if self.gives_back().await? {
                    events = Vec::new();
                    continue;
                }
                self.desk.live.close();
                let left = self.job(|job| job.left());
                return Ok(Come::Stopped(Box::new(left)));
            }
            if rests && self.is_to_park(calm).await? {
                let asleep = self.job(|job| job.park());
                return Ok(Come::Parked(Box::new(asleep)));
            }
            (events, calm) = self.wait().await?;
            if self.is_lost {
                return Err(self.fenced());
            }
        }
    }

    /// Drops the driver, and opens another one from the store and from what no store holds.
    async fn open_again(&mut self) -> Result<(), EngineError> {
        self.tail.lands().await?;
        let (last, next, rest) = Rest::of(&mut self.driver, false);
        let claim = Claim {
            head: last,
            first: next,
            ..self.claim.clone()
        };
        let (store, session) = (self.engine.store().clone(), claim.session.clone());
        self.load = Load::new(store.clone(), session.clone(), claim.salt);
        let bound = self.engine.0.options.past_bytes;
        let past = Past::new(store, session, claim.salt, claim.head, bound);
        (self.image, self.reader) = (Arc::new(past.image()), Arc::new(past));
        let ledger = self.load.ledger(claim.head).await?;
        *self.driver = rest.opens(claim, ledger);
        self.work(Vec::new()).await
    }

    /// Looks at the session when nothing is left to do. What is not in memory is read, and the session is looked at again.
    async fn look<T>(&mut self, look: impl Fn(&mut Job<'_, '_>) -> T) -> Result<T, EngineError> {
        loop {
            let answer = self.job(&look);
            let absent = self.image.take_absent();
            if absent.is_empty() {
                self.image.lets_go();
                return Ok(answer);
            }
            for absent in absent {
                self.reader.take_in_absent(absent).await?;
            }
        }
    }

    /// Looks at what is in memory in any case.
    fn job<T>(&mut self, look: impl FnOnce(&mut Job<'_, '_>) -> T) -> T {
        let (mut seen, mut turned) = (captured!(self), Turned::default());
        let answer = look(&mut self.driver.job(&mut seen, &mut turned));
        drop(seen);
        self.tells(turned.told);
        answer
    }

    /// Hears the events and does all that can be done without waiting for the outside.
    async fn work(&mut self, events: Vec<Event>) -> Result<(), EngineError> {
        let mut events = events;
        let mut answers = Answers::default();
        let now = self.engine.clock().now();
        self.is_still = false;
        loop {
            let mut turned = Turned::default();
            let went = {
                let mut seen = captured!(self);
                (seen.now, seen.answers) = (now, std::mem::take(&mut answers));
                let went = self
                    .driver
                    .once(std::mem::take(&mut events), &mut seen, &mut turned);
                answers = std::mem::take(&mut seen.answers);
                went?
            };
            self.carry(turned);
            match went {
                Went::Still => {
                    self.is_still = true;
                    return Ok(());
                }
                Went::Room => {
                    self.desk.busy();
                    return Ok(());
                }
                Went::Ordered => {}
                Went::Wants => self.read_wanted(&mut answers).await?,
            }
        }
    }

    /// Tells those who wait, appends lines, and carries out orders. Nobody may read a new line and still find the state that the
    /// session had settled in before it, so that state is withdrawn first.
    fn carry(&mut self, turned: Turned) {
        self.tells(turned.told);
        let driver = &self.driver;
        self.desk
            .live
            .forget(|effect| driver.is_outstanding(effect));
        for (last, batch) in turned.batches {
            if let Some(tapped) = &mut self.hands.tapped {
                tapped.made(&batch, &self.reader);
            }
            self.tail.append(last, batch);
        }
        let (network, values) = self.driver.bound();
        for order in turned.orders {
            self.hands.carry(order, network, values);
        }
    }

    fn tells(&mut self, told: Vec<Say>) {
        for say in told {
            match say {
                Say::Busy => self.desk.busy(),
                Say::Receipt(id, fate) => {
                    self.hands.told(&id);
                    self.desk.receipt(id, fate);
                }
                Say::Waits(id, why) => {
                    self.hands.told(&id);
                    let fate = Fate::Waits(why);
                    self.desk.reply(&Receipt { id, fate });
                }
                Say::Withdrawn {
                    effect,
                    attempt,
                    agent,
                    branch,
                } => self.desk.live.show(FeedItem::Withdrawn {
                    effect,
                    attempt,
                    agent,
                    branch,
                }),
            }
        }
    }

    /// Waits for an input from tasks, handles, the disk, the clock or another process. Returns the events, and true if nothing
    /// happened for a while, so that the session may be parked.
    async fn wait(&mut self) -> Result<(Vec<Event>, bool), EngineError> {
        let clock = self.engine.clock().clone();
        let driver = &self.driver;
        self.hands.forget(|effect| driver.is_outstanding(effect));
        let (due, parkable) = self.job(|job| {
            job.before_wait();
            // While something that was heard waits for room, only the disk helps.
            let due = job
                .next_due()
                .filter(|_| !job.is_between_steps() && !job.has_heard());
            (due, job.is_parkable())
        });
        let parkable = parkable && self.desk.replies.is_empty();
        let calm = async {
            if parkable {
                clock.sleep(CALM).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        let timer = async {
            match due {
                Some(due) => clock.sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        let alive = self.engine.0.alive.clone();
        let killed = alive.cancelled();
        tokio::pin!(calm, timer, killed);
        self.has_written = false;
        let mut events = self.heard_already().await?;
        let mut is_time = false;
        // Pieces of a stream change nothing in the session.
        while events.is_empty() && !self.has_written && !self.is_lost {
            let (running, from_tasks, seats) = self.hands.parts();
            let by = tokio::select! {
                biased;
                written = self.tail.written() => By::Disk(written),
                Some(told) = self.desk.from_handles.recv() => By::Told(told),
                () = running.ended() => By::Ended,
                Some(told) = from_tasks.recv() => By::Task(told),
                () = &mut timer => By::Time,
                (id, permit) = hands::place_answers(seats) => By::Place(id, permit),
                () = &mut killed => By::Killed,
                () = &mut calm => By::Calm,
            };
            match by {
                By::Disk(written) => {
                    written?;
                    self.reached_disk();
                }
                By::Told(told) => events.extend(self.told(told)),
                By::Ended => {}
                By::Task(told) => events.extend(self.hands.hear(*told)),
                By::Time => {
                    is_time = true;
                    events.push(Event::Time);
                }
                By::Place(id, permit) => events.push(self.hands.place_came(id, permit)),
                By::Killed => return Err(EngineError::Stopped),
                By::Calm => return Ok((events, true)),
            }
            self.hears(&mut events);
            // Attempts that end in place keep the last arms above from being polled for as long as they follow each other.
            if alive.is_cancelled() {
                return Err(EngineError::Stopped);
            }
        }
        if !is_time && due.is_some_and(|due| due <= clock.now()) {
            events.push(Event::Time);
        }
        Ok((events, false))
    }

    /// Returns what attempts that ended in place have told, and what else is there at that time. This is what [`Local::wait`] would
    /// find, without its cost.
    async fn heard_already(&mut self) -> Result<Vec<Event>, EngineError> {
        let mut events = Vec::new();
        if self.hands.from_tasks.is_empty() {
            return Ok(events);
        }
        // Attempts that follow each other in place leave other sessions their turn.
        tokio::task::consume_budget().await;
        while let Some(written) = self.tail.written().now_or_never() {
            written?;
            self.reached_disk();
        }
        self.hands.goes_on();
        self.hears(&mut events);
        if self.engine.0.alive.is_cancelled() {
            return Err(EngineError::Stopped);
        }
        Ok(events)
    }

    /// Hears everything that handles and tasks have told.
    fn hears(&mut self, events: &mut Vec<Event>) {
        while let Ok(told) = self.desk.from_handles.try_recv() {
            events.extend(self.told(told));
        }
        while let Ok(told) = self.hands.from_tasks.try_recv() {
            events.extend(self.hands.hear(*told));
        }
    }

    fn reached_disk(&mut self) {
        self.has_written = true;
        if let Some(tapped) = &mut self.hands.tapped {
            tapped.on_disk(self.tail.durable);
        }
        self.reader.written(self.tail.durable);
        for told in self.tail.on_disk() {
            self.desk.live.tell(Notice::Durable(told));
        }
    }

    /// Waits until the next batch is on disk. Fails if this process is told to stop.
    async fn next_written(&mut self) -> Result<(), EngineError> {
        let alive = self.engine.0.alive.clone();
        tokio::select! {
            biased;
            written = self.tail.written() => written?,
            () = alive.cancelled() => return Err(EngineError::Stopped),
        }
        self.reached_disk();
        Ok(())
    }

    fn told(&mut self, told: ToDriver) -> Option<Event> {
        match told {
            ToDriver::Inbox(id, reply) => {
                self.desk.busy();
                if let Some(known) = self.desk.fates.iter().find(|known| known.id == id) {
                    reply.send(known.clone()).ok();
                } else if self.driver.is_accepted(&id) {
                    let fate = Fate::Known;
                    reply.send(Receipt { id, fate }).ok();
                } else if let Some(why) = self.driver.waits_for(&id) {
                    // The inbox was read, and this told, before the sender asked.
                    let fate = Fate::Waits(why.to_owned());
                    reply.send(Receipt { id, fate }).ok();
                } else {
                    self.hands.awaits(id.clone());
                    self.desk.replies.entry(id).or_default().push(reply);
                }
                Some(Event::Look)
            }
            ToDriver::Look => Some(Event::Look),
            ToDriver::Lost => {
                self.is_lost = true;
                None
            }
            ToDriver::Step(how, heard) => {
                // A caller that waits for the next line must not see the last one again.
                self.desk.busy();
                heard.send(()).ok();
                Some(Event::Go(how))
            }
            ToDriver::Stop(ended) => {
                self.desk.busy();
                self.desk.stopping.push(ended);
                Some(Event::Stop)
            }
        }
    }

    /// Publishes how the session stands when nothing is left to do.
    async fn publish(&mut self) -> Result<(), EngineError> {
        let Some(stood) = self.look(|job| job.standing()).await? else {
            return Ok(());
        };
        let desk = &self.desk;
        match stood {
            Stood::Line { line, running } => {
                desk.standing.send_if_modified(|standing| match standing {
                    Standing::Gone(_) => false,
                    Standing::Stands {
                        line: known,
                        running: runs,
                    } if *known == line => {
                        *runs = running;
                        false
                    }
                    _ => {
                        *standing = Standing::Stands { line, running };
                        true
                    }
                });
            }
            Stood::Outside(outside) => {
                desk.standing.send_if_modified(|standing| {
                    if !matches!(standing, Standing::Gone(_)) {
                        *standing = Standing::Outside(outside);
                    }
                    false
                });
                desk.still.notify_waiters();
            }
            Stood::Settled {
                line,
                settled,
                outside,
            } => {
                let changed = desk.standing.send_if_modified(|standing| match standing {
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
                    desk.live.show(FeedItem::Settled { line, settled });
                } else {
                    desk.still.notify_waiters();
                }
            }
        }
        Ok(())
    }

    /// Writes what has to be written before an orderly release. Returns true if a line was written.
    async fn gives_back(&mut self) -> Result<bool, EngineError> {
        if !self.look(|job| job.owes()).await? {
            return Ok(false);
        }
        self.driver.gives_back();
        self.work(Vec::new()).await?;
        Ok(true)
    }

    /// Returns true if the session should be parked now. `calm`: nothing happened for a while.
    async fn is_to_park(&mut self, calm: bool) -> Result<bool, EngineError> {
        let is_parkable = self.job(|job| job.is_parkable());
        if !is_parkable || !self.desk.replies.is_empty() {
            return Ok(false);
        }
        let due = {
            let standing = self.desk.standing.borrow();
            let Standing::Settled(settled, outside) = &*standing else {
                return Ok(false);
            };
            let long = match **settled {
                Settled::Asks(_) | Settled::Waits(_) | Settled::Doubt(_) => true,
                _ => calm,
            };
            if !long {
                return Ok(false);
            }
            outside.due
        };
        let soon = self.engine.clock().now().plus(CALM);
        // A tool that was cut may still report its outcome.
        if due.is_some_and(|due| due <= soon) || !self.hands.is_idle() {
            return Ok(false);
        }
        self.look(|job| job.may_park()).await
    }

    fn park(mut self: Box<Self>, asleep: Asleep) -> Box<Parked> {
        Box::new(Parked {
            claim: Claim {
                head: self.tail.durable,
                first: asleep.next,
                ..self.claim.clone()
            },
            seats: self.hands.park(),
            engine: self.engine,
            desk: self.desk,
            asleep,
        })
    }

    fn panicked(&self) -> EngineError {
        let what = "the driver panicked; what is on disk is whole".to_owned();
        let session = self.claim.session.clone();
        EngineError::Broken { session, what }
    }

    fn fenced(&self) -> EngineError {
        EngineError::Store(StoreError::Fenced {
            session: self.claim.session.clone(),
            epoch: self.claim.epoch,
        })
    }

    fn leaves_in_trouble(&mut self, why: &EngineError) -> Option<Left> {
        self.job(|job| job.leaves_in_trouble(why))
    }
}

impl Desk {
    /// Says that this process does not drive the session any more.
    fn gone(&self, why: EngineError) {
        self.standing.send_replace(Standing::Gone(Arc::new(why)));
        self.live.close();
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

    /// Sends a receipt to all who wait for it. Returns false if nobody does.
    fn reply(&mut self, receipt: &Receipt) -> bool {
        let Some(replies) = self.replies.remove(&receipt.id) else {
            return false;
        };
        for reply in replies {
            reply.send(receipt.clone()).ok();
        }
        true
    }

    /// Sends the receipt of a message to its sender, or keeps it for one that asks soon.
    fn receipt(&mut self, id: Name, fate: Fate) {
        let receipt = Receipt { id, fate };
        if self.reply(&receipt) {
            return;
        }
        if self.fates.len() == FATES {
            self.fates.pop_front();
        }
        self.fates.push_back(receipt);
    }
}
