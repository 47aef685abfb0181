//! Drives a session: events in; batches, orders and tellings out.
//!
//! [`Driver`] is plain data: a session and everything that its owner knows about it. [`Driver::once`] hears events and does jobs
//! until none is left, or the executor has to do something first. It has no clock, no I/O and no randomness of its own: everything that it may read is in [`Captured`]. So
//! the same events give the same lines, in any executor.
//!
//! A job happens wholly or not at all. It is done on a copy of the driver, which replaces the driver when the job is done. A job
//! that needs something that is not in memory changes nothing, and is done again when it was read.
//!
//! An executor ([`crate::local`]) appends the batches, carries out the orders, and calls the driver again with what follows from them.
//! Each turn of a session:
//!
//! 1. inputs are sorted into offers of branches ([`act`], [`outcome`]);
//! 2. a branch that has new offers is ticked ([`turn`]): the machine takes or leaves each offer;
//! 3. each wish is taken to the ledger ([`wish`]): holds, and `Started` for effects that may begin;
//! 4. the line is put into a batch;
//! 5. effects that depend on the line begin when the line is on disk, all others immediately.

mod act;
mod asked;
mod branches;
mod budget;
mod cancel;
mod choose;
mod draft;
mod due;
mod events;
mod explore;
mod guard;
mod inside;
mod left;
mod orders;
pub(crate) mod outage;
mod outcome;
mod parts;
mod probe;
mod questions;
mod reach;
mod rebind;
mod recorded;
mod recover;
mod replayed;
pub(crate) mod rest;
mod search_tools;
mod seat;
mod shared;
pub(crate) mod standing;
mod start;
mod step;
mod tool_lists;
pub(crate) mod transport;
mod turn;
mod types;
mod wish;

pub(crate) use parts::{Heard, OnDisk, Out, OutState, Seat, What, tool_digests};
pub(crate) use types::*;

use crate::bind::Values;
use crate::engine::{Durability, EngineError};
use crate::ledger::Ledger;
use crate::store::{AHEAD_BYTES, AHEAD_LINES};
use draft::Offer;
use parts::{Asides, Bound, Branches, Course, Effects, Following, Mail, Searches, Stepping, Who};
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::stored::bounds::MAX_LINE;
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::tick::effect::Work;
use steersman_machine::view::Cx;

/// A session and everything that its owner keeps about it in memory.
#[derive(Clone)]
pub(crate) struct Driver {
    who: Who,
    bound: Bound,
    /// Everything that the log says about the world.
    ledger: Ledger,
    branches: Branches,
    effects: Effects,
    asides: Asides,
    mail: Mail,
    searches: Searches,
    servers: Following,
    course: Course,
}

/// Reason why [`Driver::once`] returned.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Went {
    /// Nothing is left to do.
    Still,
    /// The executor has to carry out orders before the next job.
    Ordered,
    /// The next job wants something ([`Answers::wanted`]).
    Wants,
    /// The next line has to wait until others are on disk.
    Room,
}

/// A job: the driver, what it may read, and what follows.
pub(crate) struct Job<'a, 'c> {
    pub(crate) d: &'a mut Driver,
    pub(crate) seen: &'a mut Captured<'c>,
    pub(crate) out: &'a mut Turned,
    /// Number of batches that were made before this job.
    made: usize,
    /// It is done without a copy.
    in_place: bool,
}

/// The job to do next.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Next {
    /// Something follows from the last line.
    Follows(Follows),
    /// Something was heard.
    Heard,
    /// Lines are on disk, and something waits for them.
    OnDisk,
    /// The line of the next job needs room.
    Room,
    /// The inbox is to be read.
    Inbox,
    /// A branch has offers.
    Tick(Id),
    /// The inbox is to be read again.
    Late,
    /// Servers listed their tools.
    Lists,
    /// An effect may begin.
    Begin(Id),
    /// An effect does not begin, although its line is on disk.
    NotBegun(Id),
    /// A probe is to be asked.
    Probe(Id),
    /// A person is to be notified.
    Reach,
    /// A search has something to do.
    Search(Id),
}

/// The kinds of jobs that follow from a line, in their order.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Follows {
    /// An offer is over.
    Over,
    /// A branch was left behind.
    Leave,
    /// An agent asked for a branch.
    Open,
    /// A fork call chose a branch.
    Adopt,
    /// Branches may have ended.
    Ends,
    /// An agent answers without its search.
    Unsearched,
    /// A search goes on.
    Search(Id),
    /// A cancel of the session goes on.
    Cancel,
}

impl Driver {
    /// Makes the session stop after each line, or not. A session that has not begun makes its first line before it stops.
    pub(crate) fn steps(&mut self, steps: bool) {
        let has_begun = self.bound.network().is_some();
        self.course.steps(steps, has_begun);
    }

    /// Returns true if the session makes no line and begins nothing. While it is being stopped for good, it still takes outcomes.
    fn is_between_steps(&self) -> bool {
        self.course.stepping() == Stepping::Stands && !self.course.is_stopping()
    }

    /// Hears the events in their order, then does jobs until none is left, one wants something, or a line has to wait.
    ///
    /// # Errors
    /// The session cannot be driven: what is stored cannot be read, or does not fit this program.
    pub(crate) fn once(
        &mut self,
        events: Vec<Event>,
        seen: &mut Captured<'_>,
        out: &mut Turned,
    ) -> Result<Went, EngineError> {
        self.course.hears(events.into_iter().map(Heard::Event));
        loop {
            let mark = out.mark();
            let Some(next) = self.job(seen, out).next() else {
                return Ok(Went::Still);
            };
            // A job in place makes at most two lines.
            let has_room = self.job(seen, out).has_room(2, 2 * MAX_LINE);
            let in_place = if next == Next::OnDisk && self.wakes_only(seen.durable) {
                self.does(next, seen, out, true)
            } else if has_room && seen.past.is_whole() && self.is_hot(next, seen) {
                self.does_in_place(next, seen, out)
            } else {
                Err(Stop::Copy)
            };
            let done = match in_place {
                Err(Stop::Copy) => {
                    out.back_to(mark);
                    self.does_on_copy(next, seen, out)
                }
                done => done,
            };
            match done {
                Ok(()) => debug_assert_eq!(parts::recount(self), Ok(()), "after {next:?}"),
                Err(Stop::Wants | Stop::Copy) => {
                    out.back_to(mark);
                    return Ok(Went::Wants);
                }
                Err(Stop::Room) => {
                    out.back_to(mark);
                    return Ok(Went::Room);
                }
                Err(Stop::Fault(error)) => return Err(error),
            }
            seen.answers = Answers::default();
            seen.past.lets_go();
            // The next effect may see what this one did to the limiter of its place.
            if out.orders.len() > mark.orders {
                return Ok(Went::Ordered);
            }
        }
    }

    /// Returns true if lines up to this one only wake effects, tell fates or let the inbox be read.
    fn wakes_only(&self, durable: Line) -> bool {
        let mut ready = self.course.on_disk(durable);
        ready.all(|then| !matches!(then, OnDisk::Reach(_) | OnDisk::Probe(..)))
    }

    /// Returns true if a job is done without a copy while everything of the session is in memory: it wants nothing else, or
    /// stops before it changes anything ([`Stop::Copy`]).
    fn is_hot(&self, next: Next, seen: &Captured<'_>) -> bool {
        // The next line looks at the snapshots where these effects were open.
        if self.asides.has_unread() {
            return false;
        }
        match next {
            Next::Tick(_) => true,
            Next::Begin(effect) => {
                let out = self.effects.out(effect);
                // A call that may not be repeated is answered with what the first one gave, which may be an artifact.
                let repeats = !seen.engine.0.options.user_reachable;
                out.is_some_and(|out| match out.wish.work {
                    Work::Model => true,
                    Work::Tool(_) => {
                        !repeats || matches!(out.state, OutState::Ready | OutState::Starting(_))
                    }
                    _ => false,
                })
            }
            Next::Heard => match self.course.next_heard() {
                Some(Heard::Event(Event::Ended {
                    effect,
                    attempt,
                    came,
                })) => match came {
                    Came::Model(_) => true,
                    Came::Tool(_) | Came::Parked => {
                        let out = self.effects.out(*effect);
                        out.is_some_and(|out| out.attempt == *attempt)
                    }
                    Came::Probe(..) | Came::Reach(_) | Came::Judge(..) => false,
                },
                // It may want a text that an earlier attempt recorded.
                Some(Heard::Event(Event::Step {
                    effect, name, asks, ..
                })) => {
                    let is_asked = matches!(asks, Asks::Person(_));
                    !is_asked && self.ledger.step(*effect, name).is_none()
                }
                Some(Heard::Event(event)) => !matches!(event, Event::Go(_) | Event::Stop),
                _ => false,
            },
            _ => false,
        }
    }

    /// Does a job without a copy. Nothing of the past is dropped meanwhile.
    ///
    /// # Errors
    /// [`Stop::Copy`]: nothing was changed, and the job has to be done on a copy. [`Stop::Fault`]: the job failed, or wanted
    /// something after it had changed something; the driver cannot be used any more.
    fn does_in_place(
        &mut self,
        next: Next,
        seen: &mut Captured<'_>,
        out: &mut Turned,
    ) -> Result<(), Stop> {
        seen.past.holds();
        let done = self.does(next, seen, out, true);
        let is_void = matches!(done, Err(Stop::Wants | Stop::Room)) || seen.past.has_absent();
        if !is_void || matches!(done, Err(Stop::Copy)) {
            return done;
        }
        let wants = seen.answers.wanted.keys();
        Err(Stop::Fault(EngineError::Broken {
            session: self.who.session().clone(),
            what: format!(
                "{next:?} was done in place and wants {:?}, {:?}",
                wants.collect::<Vec<_>>(),
                seen.past.take_absent(),
            ),
        }))
    }

    /// Does a job on a copy, which replaces the driver if the job is done.
    fn does_on_copy(
        &mut self,
        next: Next,
        seen: &mut Captured<'_>,
        out: &mut Turned,
    ) -> Result<(), Stop> {
        let mut copy = self.clone();
        let done = copy.does(next, seen, out, false);
        for absent in seen.past.take_absent() {
            seen.answers.wanted.insert(Want::Absent(absent), None);
        }
        if !seen.answers.wanted.is_empty() {
            return Err(Stop::Wants);
        }
        done?;
        *self = copy;
        Ok(())
    }

    fn does(
        &mut self,
        next: Next,
        seen: &mut Captured<'_>,
        out: &mut Turned,
        in_place: bool,
    ) -> Result<(), Stop> {
        let mut job = self.job(seen, out);
        job.in_place = in_place;
        job.does(next)?;
        job.append_contents();
        Ok(())
    }

    /// Takes up what the last owner left, once the session was read.
    pub(crate) fn begin(&mut self) {
        self.course.hears([Heard::Recover, Heard::Restore]);
    }

    /// Writes the last line of this owner.
    pub(crate) fn gives_back(&mut self) {
        self.course.hears([Heard::GiveBack]);
    }

    /// Returns the network, once the session has begun, and its values.
    pub(crate) fn bound(&self) -> (Option<&Arc<Network>>, &Values) {
        (self.bound.network(), self.bound.values())
    }

    /// Returns true if an effect is outstanding.
    pub(crate) fn is_outstanding(&self, effect: Id) -> bool {
        self.effects.outs().contains_key(&effect)
    }

    /// Looks at the session between two calls of [`Driver::once`], when nothing is left to do.
    pub(crate) fn job<'a, 'c>(
        &'a mut self,
        seen: &'a mut Captured<'c>,
        out: &'a mut Turned,
    ) -> Job<'a, 'c> {
        let made = out.batches.len();
        Job {
            d: self,
            seen,
            out,
            made,
            in_place: false,
        }
    }

    /// Returns the network. Panics if the session has not begun.
    fn network(&self) -> &Arc<Network> {
        self.bound
            .network()
            .expect("a session that has begun is bound")
    }

    /// Returns what a message waits for that lies in the inbox, as its sender was told.
    pub(crate) fn waits_for(&self, id: &Name) -> Option<&str> {
        self.mail.waits_for(id)
    }

    /// Returns true if this message was accepted in a line that is on disk.
    pub(crate) fn is_accepted(&self, id: &Name) -> bool {
        self.ledger.accepted(id) && !self.course.owes_receipt(Some(id))
    }
}

impl Turned {
    fn mark(&self) -> Mark {
        Mark {
            batches: self.batches.len(),
            orders: self.orders.len(),
            told: self.told.len(),
        }
    }

    fn back_to(&mut self, mark: Mark) {
        self.batches.truncate(mark.batches);
        self.blobs.clear();
        self.orders.truncate(mark.orders);
        self.told.truncate(mark.told);
    }
}

/// Lengths of the lists of [`Turned`] before a job.
#[derive(Copy, Clone)]
struct Mark {
    batches: usize,
    orders: usize,
    told: usize,
}

impl Job<'_, '_> {
    /// Returns the next job, if there is one. This is the order of jobs.
    fn next(&self) -> Option<Next> {
        if let Some(follows) = self.follows() {
            return Some(Next::Follows(follows));
        }
        if self.has_heard() {
            return Some(Next::Heard);
        }
        let (durable, stands) = (self.seen.durable, self.is_between_steps());
        if self.d.course.on_disk(durable).next().is_some() {
            return Some(Next::OnDisk);
        }
        let waits = if self.d.mail.looks() {
            Some(Next::Inbox)
        } else if let Some(branch) = self.next_branch().filter(|_| !stands) {
            Some(Next::Tick(branch))
        } else if self.d.mail.is_late() {
            Some(Next::Late)
        } else if self.d.servers.has_come() {
            Some(Next::Lists)
        } else if let Some(effect) = self.next_start() {
            Some(Next::Begin(effect))
        } else if let Some(effect) = self.next_not_begun() {
            Some(Next::NotBegun(effect))
        } else if let Some(of) = self.next_probe() {
            Some(Next::Probe(of))
        } else if self.next_reach().is_some() {
            Some(Next::Reach)
        } else {
            self.next_search().filter(|_| !stands).map(Next::Search)
        };
        let has_room = || self.has_room(1, 0);
        waits.map(|next| if has_room() { next } else { Next::Room })
    }

    /// Returns what follows from the last line, before anything else.
    fn follows(&self) -> Option<Follows> {
        let d = &self.d;
        if let Some(follows) = d.branches.follows() {
            Some(follows)
        } else if d.searches.has_unsearched() {
            Some(Follows::Unsearched)
        } else if let Some(search) = d.searches.goes_on() {
            Some(Follows::Search(search))
        } else {
            d.course.cancelling().map(|_| Follows::Cancel)
        }
    }

    fn does(&mut self, next: Next) -> Result<(), Stop> {
        match next {
            Next::Follows(follows) => self.does_follow(follows),
            Next::Heard => match self.d.course.take_heard() {
                Some(heard) => self.hear(heard),
                None => Ok(()),
            },
            Next::OnDisk => {
                for then in self.d.course.take_on_disk(self.seen.durable) {
                    self.on_disk(then);
                }
                Ok(())
            }
            Next::Room => Err(Stop::Room),
            Next::Inbox => self.read_inbox(),
            Next::Tick(branch) => self.turn(branch),
            Next::Late => {
                self.d.mail.time_passed();
                Ok(())
            }
            Next::Lists => match self.d.servers.take() {
                Some(lists) => self.lists_came(lists),
                None => Ok(()),
            },
            Next::Begin(effect) => {
                self.d.effects.takes(effect);
                self.start(effect)
            }
            Next::NotBegun(effect) => self.not_begun(effect),
            Next::Probe(of) => self.probe(of),
            Next::Reach => match self.next_reach() {
                Some(wanted) => self.reach(wanted),
                None => Ok(()),
            },
            Next::Search(search) => self.explore(search),
        }
    }

    fn does_follow(&mut self, follows: Follows) -> Result<(), Stop> {
        match follows {
            Follows::Over => {
                let Some((branch, offer)) = self.d.branches.take_over() else {
                    return Ok(());
                };
                let mut draft = self.draft(branch);
                self.left_over(&mut draft, offer)?;
                self.write(draft)
            }
            Follows::Leave => {
                let left = self.d.branches.take_left();
                left.map_or(Ok(()), |branch| self.forget_branch(branch))
            }
            Follows::Open => {
                let open = self.d.branches.take_open();
                open.map_or(Ok(()), |open| self.open_asked(open))
            }
            Follows::Adopt => {
                let adopt = self.d.branches.take_adopt();
                adopt.map_or(Ok(()), |adopt| self.adopt_chosen(adopt))
            }
            Follows::Ends => {
                self.d.branches.looks_at_ends();
                self.offer_ends()
            }
            Follows::Unsearched => match self.d.searches.take_unsearched() {
                Some((branch, call)) => self.begin_unsearched(branch, vec![call]),
                None => Ok(()),
            },
            Follows::Search(search) => self.explore_on(search),
            Follows::Cancel => match self.d.course.cancelling().cloned() {
                Some(all) => self.cancel_next(&all),
                None => Ok(()),
            },
        }
    }

    fn hear(&mut self, heard: Heard) -> Result<(), Stop> {
        match heard {
            Heard::Event(event) => self.happened(event),
            Heard::Due(due) => self.came_due(due),
            Heard::Mail(message) => self.judge_inbox(message),
            Heard::MailRead(mail) => {
                self.d.mail.was_judged(mail);
                self.match_events()
            }
            Heard::Load(branch) => self.load_branch(branch),
            Heard::Bind => self.load_binding(),
            Heard::Recover => self.recover(),
            Heard::Restore => self.restore(),
            Heard::GiveBack => self.give_back(),
            Heard::Events => self.match_events(),
            Heard::Ask(branch) => self.ask_again(branch),
            Heard::Current(branch) => self.drive_again(branch),
        }
    }

    fn happened(&mut self, event: Event) -> Result<(), Stop> {
        match event {
            Event::Ended {
                effect,
                attempt,
                came,
            } => self.attempt_ended(effect, attempt, came),
            Event::Step {
                effect,
                attempt,
                name,
                asks,
            } => self.step_asked(effect, attempt, name, asks),
            Event::Stepped {
                effect,
                attempt,
                name,
                end,
            } => self.step_ended(effect, attempt, name, end),
            Event::Permit { effect, turn } => self.permit_came(effect, turn),
            Event::Again { effect, attempt } => {
                self.again(effect, attempt);
                Ok(())
            }
            Event::Place(effect) => {
                self.place_calls(effect);
                Ok(())
            }
            Event::Listed(lists) => {
                self.d.servers.came(lists);
                Ok(())
            }
            Event::Time => {
                self.time_passed(self.seen.now);
                Ok(())
            }
            Event::Look => {
                self.d.mail.look();
                Ok(())
            }
            Event::Go(how) => {
                self.busy();
                self.d.course.goes_on(how);
                Ok(())
            }
            Event::Stop => {
                self.busy();
                self.d.course.stops(true);
                self.cut_free();
                self.leaves_questions()
            }
        }
    }

    fn on_disk(&mut self, then: OnDisk) {
        match then {
            OnDisk::Start(effect, attempt) => {
                self.d.effects.line_is_on_disk(effect, attempt);
            }
            OnDisk::Reach(effect) => self.start_reach(effect),
            OnDisk::Probe(effect, of, attempt) => self.start_probe(effect, of, attempt),
            OnDisk::Step(effect, attempt, name, told) => {
                self.tells_step(effect, attempt, name, *told);
            }
            OnDisk::Receipt(id, fate) => self.out.told.push(Say::Receipt(id, fate)),
            OnDisk::Look => self.d.mail.look(),
        }
    }

    /// Returns true if a batch of this size may be appended now. A batch of any size may be appended if none is on its way; if
    /// every line is synced before the next one begins, only then.
    fn has_room(&self, lines: u64, bytes: usize) -> bool {
        let room = self.seen.room;
        let made = &self.out.batches;
        // A job is done as a whole, so its own batches do not count.
        if room.idle && self.made == 0 {
            return true;
        }
        if self.is_step() {
            return false;
        }
        let rows = made.iter().flat_map(|(_, batch)| &batch.rows);
        let used: usize = rows.map(|row| row.bytes.len()).sum();
        let count: usize = made.iter().map(|(_, batch)| batch.rows.len()).sum();
        count as u64 + lines <= room.lines && used + bytes < room.bytes
    }

    /// Returns the answer to something that is not in memory. Stops the job if it is not there yet.
    fn wants(&mut self, want: Want) -> Result<&Answered, Stop> {
        if !self.seen.answers.known.contains_key(&want) {
            self.seen.answers.wanted.insert(want, None);
            return Err(Stop::Wants);
        }
        Ok(&self.seen.answers.known[&want])
    }

    /// Returns true if something was heard and waits for room.
    pub(crate) fn has_heard(&self) -> bool {
        self.d.course.next_heard().is_some()
    }

    /// Returns true if everything that was made is on disk.
    fn is_idle(&self) -> bool {
        self.seen.room.idle && self.out.batches.is_empty()
    }

    /// Returns the first branch, by id, that has something new; `main` comes first.
    fn next_branch(&self) -> Option<Id> {
        self.d.branches.next_fresh()
    }

    /// Returns the next effect that may begin. Nothing begins while the session is paused or being stopped.
    fn next_start(&self) -> Option<Id> {
        if self.is_halted() {
            return None;
        }
        if self.is_between_steps() {
            return self.next_granted();
        }
        self.d.effects.next()
    }

    /// Returns true if nothing may begin: the session is paused or being stopped, or others may own it.
    fn is_halted(&self) -> bool {
        self.d.ledger.paused || self.d.course.is_stopping() || !self.seen.engine.is_live()
    }

    /// Returns the next effect whose `Started` is on disk while nothing may begin any more.
    fn next_not_begun(&self) -> Option<Id> {
        self.d.effects.next_starting().filter(|_| self.is_halted())
    }

    /// Queues an offer for a branch. An offer for a branch without ticks is dropped: only the ledger counts there.
    fn offer(&mut self, branch: Id, offer: Offer) {
        self.d.branches.offers(branch, offer);
        self.busy();
    }

    fn busy(&mut self) {
        if !matches!(self.out.told.last(), Some(Say::Busy)) {
            self.out.told.push(Say::Busy);
        }
    }

    /// Returns true if the session may be released: attempts that must not be repeated have reported their end, and everything
    /// is on disk.
    pub(crate) fn is_done(&self) -> bool {
        let runs = |out: &Out| matches!(out.state, OutState::Running | OutState::Starting(_));
        self.d.course.is_stopping()
            && self.is_idle()
            && self.next_branch().is_none()
            && !self.d.effects.outs().values().any(runs)
            && !self.d.effects.at_work().values().any(|world| *world)
            && self.d.asides.notifying() == 0
    }

    fn is_step(&self) -> bool {
        self.seen.engine.0.options.durability == Durability::Step
    }

    /// Asks a question that reads the past. Fails if something could not be read: then the answer is void.
    fn ask<T>(&self, question: impl FnOnce(&Cx<'_>) -> T) -> Result<T, Stop> {
        let cx = Cx {
            network: self.network(),
            bodies: &*self.seen.past,
        };
        let answer = question(&cx);
        if self.seen.past.has_absent() {
            return Err(Stop::Wants);
        }
        match self.seen.past.fault() {
            None => Ok(answer),
            Some(fault) => Err(fault.into()),
        }
    }

    fn network(&self) -> &Arc<Network> {
        self.d.network()
    }

    /// Returns the time of the next line of a branch; never earlier than the line before, even if the clock was set back.
    fn now(&self, branch: Id) -> Time {
        let last = self
            .d
            .branches
            .live()
            .get(&branch)
            .map_or(Time(0), |b| b.snapshot.now);
        self.seen.now.max(last)
    }
}

/// The first bound at which a batch that nobody waits for becomes urgent: half of what a session may be ahead of the disk. So
/// the disk syncs the first half while the session writes the second.
const HALF: (u64, usize) = (AHEAD_LINES / 2, AHEAD_BYTES / 2);
