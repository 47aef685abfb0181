//! Carries out the orders of a driver in this process: runs attempts, and holds slots, turns and seats under the names of
//! effects.

use super::attempt::{self, At, FromTask, Tell};
use super::running::Running;
use super::tapped::Tapped;
use crate::Boxed;
use crate::driver::Seat;
use crate::driver::{Aside, Attempt, Came, Do, Event, Permits, Task, Told};
use crate::engine::Engine;
use crate::feed::{FeedItem, Live};
use crate::limiter::{Ended, LONG, Permit, Refused};
use crate::model::{Delta, Encodings};
use crate::servers;
use crate::store::SessionId;
use futures::FutureExt;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use steersman_machine::network::Network;
use steersman_machine::stored::ids::{Digest, Id, Name};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Capacity of the channel from tasks to the owner of a session.
const FROM_TASKS: usize = 256;
/// Maximum number of tools whose slots an engine remembers, in addition to those in use.
const SLOTS: usize = 1_024;
/// Maximum number of agents on branches whose encoded requests a session keeps.
const ENCODED: usize = 16;

/// Attempts that run, and what effects hold.
pub(super) struct Hands {
    engine: Engine,
    live: Live,
    /// Everything that goes on for the session.
    running: Running,
    tasks: Tell,
    pub(super) from_tasks: mpsc::Receiver<Box<FromTask>>,
    cancels: BTreeMap<(Id, u32), CancellationToken>,
    /// Cancels the tools that judge for a search.
    judges: BTreeMap<Id, CancellationToken>,
    held: RefCell<Held>,
    /// Encoded requests of each agent on a branch, which adapters keep.
    encodings: BTreeMap<(Id, Id), Encodings>,
    /// Tells the tap of the process.
    pub(super) tapped: Option<Box<Tapped>>,
}

#[derive(Default)]
struct Held {
    /// Slots and turns of effects that have not begun.
    slots: BTreeMap<Id, OwnedSemaphorePermit>,
    turns: BTreeMap<Id, Permit>,
    /// Slots and turns that came and were not accepted yet.
    new_slots: BTreeMap<Id, OwnedSemaphorePermit>,
    new_turns: BTreeMap<Id, Permit>,
    /// Slots and turns of attempts that run.
    at_work: BTreeMap<(Id, u32), (Option<OwnedSemaphorePermit>, Option<Permit>)>,
    /// Attempts that wait for an answer about a step, by effect, attempt and name.
    steps: BTreeMap<(Id, u32, Name), oneshot::Sender<Told>>,
    streamed: BTreeMap<Id, Streamed>,
    seats: Seats,
    /// Messages for whose fate senders wait.
    awaited: BTreeSet<Name>,
}

/// Seats of held model calls at their places.
pub(super) type Seats = BTreeMap<Id, Boxed<'static, Permit>>;

/// An attempt of a model that streams.
struct Streamed {
    attempt: u32,
    agent: Id,
    branch: Id,
    /// Followers of the session see it.
    is_shown: bool,
    came: u64,
}

impl Drop for Hands {
    fn drop(&mut self) {
        for cancel in self.cancels.values().chain(self.judges.values()) {
            cancel.cancel();
        }
    }
}

impl Hands {
    pub(super) fn new(engine: Engine, session: &SessionId, live: Live, seats: Seats) -> Self {
        let (tasks, from_tasks) = mpsc::channel(FROM_TASKS);
        let held = Held {
            seats,
            ..Held::default()
        };
        Self {
            tapped: Tapped::new(&engine, session),
            engine,
            live,
            running: Running::default(),
            tasks,
            from_tasks,
            cancels: BTreeMap::new(),
            judges: BTreeMap::new(),
            held: RefCell::new(held),
            encodings: BTreeMap::new(),
        }
    }

    /// Returns true if no task of the session can report anything any more.
    pub(super) fn is_idle(&self) -> bool {
        self.tasks.strong_count() == 1 && self.from_tasks.is_empty()
    }

    /// Keeps the seats for as long as the session is parked.
    pub(super) fn park(&mut self) -> Seats {
        std::mem::take(&mut self.held.get_mut().seats)
    }

    pub(super) fn awaits(&mut self, message: Name) {
        self.held.get_mut().awaited.insert(message);
    }

    pub(super) fn told(&mut self, message: &Name) {
        self.held.get_mut().awaited.remove(message);
    }

    /// Forgets what effects that are over have streamed.
    pub(super) fn forget(&mut self, is_out: impl Fn(Id) -> bool) {
        if let Some(tapped) = &mut self.tapped {
            tapped.forget(&is_out);
        }
        let held = self.held.get_mut();
        held.streamed.retain(|id, _| is_out(*id));
        self.live.forget(&is_out);
        // A job that was not done may have taken these for effects that do not exist.
        held.slots.retain(|id, _| is_out(*id));
        held.turns.retain(|id, _| is_out(*id));
    }

    /// Lets everything that goes on go on, without waiting for it.
    pub(super) fn goes_on(&mut self) {
        let _ = self.running.ended().now_or_never();
    }

    /// Returns what the owner of the session waits for.
    pub(super) fn parts(
        &mut self,
    ) -> (&mut Running, &mut mpsc::Receiver<Box<FromTask>>, &mut Seats) {
        let seats = &mut self.held.get_mut().seats;
        (&mut self.running, &mut self.from_tasks, seats)
    }

    /// Holds the turn of a call whose place answers.
    pub(super) fn place_came(&mut self, effect: Id, permit: Permit) -> Event {
        self.held.get_mut().new_turns.insert(effect, permit);
        Event::Place(effect)
    }

    /// Handles a message of a task. Returns the event for the driver, if it is one.
    pub(super) fn hear(&mut self, told: FromTask) -> Option<Event> {
        let held = self.held.get_mut();
        match told {
            FromTask::Event(event) => {
                // A judge of a search has the id of the model call that searches.
                if let Event::Ended {
                    effect,
                    attempt,
                    came: came @ (Came::Model(_) | Came::Tool(_) | Came::Parked),
                } = &event
                {
                    self.cancels.remove(&(*effect, *attempt));
                    if let Some(tapped) = &mut self.tapped {
                        tapped.ended(*effect, *attempt, came);
                    }
                }
                Some(event)
            }
            FromTask::Step(key, event, reply) => {
                held.steps.insert(key, reply);
                Some(event)
            }
            FromTask::Deltas(effect, attempt, pieces) => {
                for delta in pieces.take() {
                    self.delta(effect, attempt, delta);
                }
                None
            }
            FromTask::Shows(effect, attempt, item) => {
                if self.cancels.contains_key(&(effect, attempt)) {
                    self.live.show(*item);
                }
                None
            }
            FromTask::Said(says) => {
                let items = says.take();
                if self.cancels.contains_key(&(says.effect, says.attempt)) {
                    items.for_each(|item| self.live.show(item));
                }
                None
            }
            FromTask::Slot(effect, slot) => {
                held.new_slots.entry(effect).or_insert(slot);
                let turn = Ok(());
                Some(Event::Permit { effect, turn })
            }
            FromTask::Turn(effect, turn) => {
                if let Some(tapped) = &mut self.tapped {
                    tapped.turn_came(effect);
                }
                let turn = turn.map(|permit| {
                    held.new_turns.insert(effect, permit);
                });
                Some(Event::Permit { effect, turn })
            }
        }
    }

    fn delta(&mut self, effect: Id, attempt: u32, delta: Delta) {
        let held = self.held.get_mut();
        let Some(streamed) = held.streamed.get_mut(&effect) else {
            return;
        };
        if streamed.attempt != attempt {
            return;
        }
        streamed.came += delta.len();
        if !streamed.is_shown {
            return;
        }
        self.live.show(FeedItem::Delta {
            effect,
            attempt,
            agent: streamed.agent,
            branch: streamed.branch,
            delta,
        });
    }

    /// Carries out an order.
    pub(super) fn carry(
        &mut self,
        order: Do,
        network: Option<&Arc<Network>>,
        values: &crate::bind::Values,
    ) {
        match order {
            Do::Begin(mut attempt) => {
                if let Some(tapped) = &mut self.tapped {
                    tapped.begins(&mut attempt, network);
                }
                self.begin(*attempt);
            }
            Do::Cut { effect, attempt } => {
                if let Some(cancel) = self.cancels.remove(&(effect, attempt)) {
                    cancel.cancel();
                }
            }
            Do::Step {
                effect,
                attempt,
                name,
                told,
            } => {
                let reply = self.held.get_mut().steps.remove(&(effect, attempt, name));
                // An attempt that ended meanwhile needs no answer.
                let _ = reply.map(|reply| reply.send(told));
            }
            Do::CutJudges(search) => {
                if let Some(cancel) = self.judges.remove(&search) {
                    cancel.cancel();
                }
            }
            Do::Alarm {
                effect,
                attempt,
                millis,
            } => {
                let (clock, tasks) = (self.engine.clock().clone(), self.tasks.clone());
                self.running.begin(Box::pin(async move {
                    clock.sleep(millis).await;
                    let again = FromTask::Event(Event::Again { effect, attempt });
                    let _ = tasks.send(Box::new(again)).await;
                }));
            }
            Do::Slot {
                effect,
                network,
                tool,
            } => {
                let (slots, tasks) = (slots(&self.engine, &network, &tool), self.tasks.clone());
                self.running.begin(Box::pin(async move {
                    if let Ok(slot) = slots.acquire_owned().await {
                        let _ = tasks.send(Box::new(FromTask::Slot(effect, slot))).await;
                    }
                }));
            }
            Do::Turn {
                effect,
                limiter,
                ask,
            } => {
                if let Some(tapped) = &mut self.tapped {
                    tapped.waits(effect);
                }
                let (clock, tasks) = (self.engine.clock().clone(), self.tasks.clone());
                let panicked = move |_: &str| FromTask::Turn(effect, Err(Refused::Long(LONG)));
                self.running
                    .begin(attempt::answering(tasks, panicked, async move {
                        let turn = limiter.acquire(ask, &*clock).await;
                        Some(FromTask::Turn(effect, turn))
                    }));
            }
            Do::List(names, part) => {
                let Some(network) = network.cloned() else {
                    return;
                };
                let of = (values.clone(), part);
                let asked = servers::list_again(self.engine.clone(), network, of, names);
                let tasks = self.tasks.clone();
                self.running.begin(Box::pin(async move {
                    // An owner that is gone needs no answer.
                    let listed = FromTask::Event(Event::Listed(asked.await));
                    let _ = tasks.send(Box::new(listed)).await;
                }));
            }
        }
    }

    fn begin(&mut self, begun: Attempt) {
        let at = At {
            effect: begun.effect,
            attempt: begun.number,
            agent: begun.agent,
            branch: begun.branch,
            clock: self.engine.clock().clone(),
            tasks: self.tasks.clone(),
        };
        let key = (at.effect, at.attempt);
        let cancel = CancellationToken::new();
        let held = self.held.get_mut();
        let attempt = match begun.task {
            Task::Model(mut ask) => {
                self.cancels.insert(key, cancel.clone());
                let of = (at.branch, at.agent);
                if self.encodings.len() >= ENCODED && !self.encodings.contains_key(&of) {
                    self.encodings.clear();
                }
                ask.call.encodings = self.encodings.entry(of).or_default().clone();
                let turn = held.turns.remove(&at.effect);
                let turn = turn.filter(|turn| turn.is_of(&ask.limiter));
                held.streamed
                    .insert(at.effect, Streamed::by(&at, ask.is_shown));
                let options = &self.engine.0.options;
                let judge = options.judge.clone();
                attempt::ask_model(at, *ask, turn, judge, options.model_timeouts, cancel)
            }
            Task::Tool(run) => {
                self.cancels.insert(key, cancel.clone());
                let leaves = (held.slots.remove(&at.effect), held.turns.remove(&at.effect));
                held.at_work.insert(key, leaves);
                attempt::run(at, *run, &self.engine, cancel)
            }
            Task::Aside(aside) => {
                let judges = matches!(aside.kind, Aside::Judge(_)).then(|| {
                    let of = aside.run.as_ref().ok();
                    let of = of.map(|(run, _)| slots(&self.engine, &run.network, &run.work.tool));
                    (self.judges.entry(at.effect).or_default().clone(), of)
                });
                attempt::run_aside(at, *aside, judges)
            }
        };
        self.running.begin(attempt);
    }
}

impl Streamed {
    fn by(at: &At, is_shown: bool) -> Self {
        Self {
            attempt: at.attempt,
            agent: at.agent,
            branch: at.branch,
            is_shown,
            came: 0,
        }
    }
}

/// Waits for the next turn at a place of a held call, whose seat is then free.
pub(super) async fn place_answers(seats: &mut Seats) -> (Id, Permit) {
    poll_fn(|cx| {
        let mut answers = None;
        for (id, seat) in &mut *seats {
            if let Poll::Ready(permit) = seat.as_mut().poll(cx) {
                answers = Some((*id, permit));
                break;
            }
        }
        let Some((id, permit)) = answers else {
            return Poll::Pending;
        };
        seats.remove(&id);
        Poll::Ready((id, permit))
    })
    .await
}

/// Returns the slots of a tool in this process: one for each call that may run at the same time.
fn slots(engine: &Engine, network: &Network, tool: &Name) -> Arc<Semaphore> {
    let at_once = network.tools.get(tool).map_or(1, |t| t.parallel.max(1)) as usize;
    let key: (Digest, Name) = (network.digest, tool.clone());
    let mut slots = engine
        .0
        .slots
        .lock()
        .expect("nobody panics while holding it");
    // Those who run or wait hold references to the slots; slots without references can be created again.
    if slots.len() >= SLOTS && !slots.contains_key(&key) {
        slots.retain(|_, slots| Arc::strong_count(slots) > 1);
    }
    slots
        .entry(key)
        .or_insert_with(|| Arc::new(Semaphore::new(at_once)))
        .clone()
}

impl Permits for Hands {
    fn slot(&self, effect: Id, network: &Network, tool: &Name) -> bool {
        let mut held = self.held.borrow_mut();
        if held.slots.contains_key(&effect) {
            return true;
        }
        let slot = slots(&self.engine, network, tool).try_acquire_owned();
        slot.is_ok_and(|slot| held.slots.insert(effect, slot).is_none())
    }

    fn is_free(&self, network: &Network, tool: &Name) -> bool {
        slots(&self.engine, network, tool).available_permits() > 0
    }

    fn has_turn(&self, effect: Id) -> bool {
        self.held.borrow().turns.contains_key(&effect)
    }

    fn accept(&self, effect: Id) {
        let mut held = self.held.borrow_mut();
        if let Some(slot) = held.new_slots.remove(&effect) {
            held.slots.insert(effect, slot);
        }
        if let Some(turn) = held.new_turns.remove(&effect) {
            held.turns.insert(effect, turn);
        }
    }

    fn refuse(&self, effect: Id) {
        let mut held = self.held.borrow_mut();
        held.new_slots.remove(&effect);
        held.new_turns.remove(&effect);
    }

    fn give_slot(&self, effect: Id) {
        self.held.borrow_mut().slots.remove(&effect);
    }

    fn give_turn(&self, effect: Id) {
        self.held.borrow_mut().turns.remove(&effect);
    }

    fn ended(&self, effect: Id, attempt: u32, ended: Ended) {
        let leaves = self.held.borrow_mut().at_work.remove(&(effect, attempt));
        if let Some((slot, turn)) = leaves {
            drop(slot);
            if let Some(turn) = turn {
                turn.end(self.engine.clock().now(), ended);
            }
        }
    }

    fn seat(&self, seat: Seat) -> bool {
        let mut held = self.held.borrow_mut();
        let effect = seat.effect;
        held.sit(&self.engine, seat);
        let permit = held.seats.get_mut(&effect);
        let permit = permit.and_then(|seat| seat.as_mut().now_or_never());
        let Some(permit) = permit else {
            return false;
        };
        held.seats.remove(&effect);
        held.turns.insert(effect, permit);
        true
    }

    fn sit(&self, seat: Seat) {
        self.held.borrow_mut().sit(&self.engine, seat);
    }

    fn leave_seat(&self, effect: Id) {
        self.held.borrow_mut().seats.remove(&effect);
    }

    fn keep_seats(&self, keep: &dyn Fn(Id) -> bool) {
        self.held.borrow_mut().seats.retain(|id, _| keep(*id));
    }

    fn is_seated(&self, effect: Id) -> bool {
        self.held.borrow().seats.contains_key(&effect)
    }

    fn streamed(&self, effect: Id, attempt: u32) -> (Arc<str>, u64) {
        let held = self.held.borrow();
        let streamed = held.streamed.get(&effect);
        match streamed.filter(|streamed| streamed.attempt == attempt) {
            Some(streamed) => (self.live.shown(effect, attempt), streamed.came),
            None => (Arc::default(), 0),
        }
    }

    fn is_awaited(&self, message: &Name) -> bool {
        self.held.borrow().awaited.contains(message)
    }
}

impl Held {
    /// Takes a seat for a call, unless it has one.
    fn sit(&mut self, engine: &Engine, seat: Seat) {
        let Seat {
            effect,
            limiter,
            ask,
            since,
            pause,
        } = seat;
        let clock = engine.clock().clone();
        self.seats.entry(effect).or_insert_with(|| {
            let waits = async move {
                if let Some(pause) = pause {
                    clock.sleep_until(pause).await;
                }
                limiter.wait(ask, since, &*clock).await
            };
            Box::pin(waits)
        });
    }
}
