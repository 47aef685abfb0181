//! Rate limits for outside calls: one limiter for each place, shared by all sessions of a process.
//!
//! A place is a provider with an address and a key, or the host of a tool over HTTP. A limiter has
//!
//! * **windows**, one for each declared [`Rate`]: at most this many requests and tokens within any span of its length. The
//!   tokens of a call are estimated before it, and corrected to the real number afterwards;
//! * the **server's statements**: the amounts that are left, for each model separately, and the time for which it wants no calls;
//! * a **circuit breaker**: after `FAILURES` failed calls in a row no call is let through for a while. Then one call probes
//!   the place, and the others follow if it gets through.
//!
//! A caller that has to wait joins the lane of its rate and model. Only the first in a lane waits for a time; the others wait
//! to be woken, so a change does not wake many callers. Sessions take turns in a lane, however many calls one of them makes.
//! After a pause that a server asked for, the lane starts slowly. All times come from the [`Clock`].
//!
//! Callers that are parked by an outage are in the lane ahead of the others, in the order in which they were parked. They
//! are never refused ([`Limiter::wait`]). While the breaker is open, each time its span is over one of them is let through, the
//! one with the fewest tries first. So a call that always fails keeps no other from trying.

use crate::clock::Clock;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steersman_machine::stored::ids::Time;
pub use steersman_machine::values::rate::{Quota, Rate};
use tokio::sync::Notify;

/// Longest wait in the limiter, in milliseconds. A caller that would wait longer is refused and told for how long.
pub const LONG: u64 = crate::retry::LONG;
/// Number of failed calls in a row that opens the breaker.
pub(crate) const FAILURES: u32 = 5;
/// Time that the breaker stays open first, in milliseconds. It doubles each time the probe fails.
pub const OPEN: u64 = 10_000;
/// Longest time that the breaker stays open, in milliseconds.
pub(crate) const OPEN_MAX: u64 = 300_000;
/// While a probe is running, other callers are refused for this many milliseconds.
const PROBE: u64 = 1_000;
/// Gap between the first calls after a pause, in milliseconds. It shrinks with each call.
const RAMP: u64 = 200;
/// Callers that read the clock at the same time may report their readings in any order. So a step back of at most this many
/// milliseconds does not mean that the clock was set back.
const ASIDE: u64 = 1_000;
/// Number of remembered places from which on idle ones are forgotten.
const PLACES: usize = 256;

/// The limiters of a process. A clone shares the same limiters.
#[derive(Clone, Debug, Default)]
pub struct Limiters(Arc<Mutex<HashMap<[u8; 32], Arc<Limiter>>>>);

impl Limiters {
    /// Returns the limiter of a place. The parts name the place and may contain a key: only their hash is kept.
    pub fn of(&self, place: &[&str], clock: &dyn Clock) -> Arc<Limiter> {
        let mut hash = blake3::Hasher::new();
        for part in place {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let key = *hash.finalize().as_bytes();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= PLACES && !open.contains_key(&key) {
            let now = clock.now();
            open.retain(|_, limiter| {
                Arc::strong_count(limiter) > 1 || !limiter.lock().is_idle(now)
            });
        }
        open.entry(key).or_default().clone()
    }
}

/// The limiter of one place.
#[derive(Debug, Default)]
pub struct Limiter(Mutex<State>);

/// A request for one call: the caller and the amount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// The session that calls. Sessions take turns.
    pub session: Arc<str>,
    /// The model that is called. What a server says is left applies to one model. Empty for tools.
    pub model: Arc<str>,
    /// The declared rate, if there is one.
    pub rate: Option<Rate>,
    /// Tokens that the call will probably take.
    pub tokens: u64,
    /// True if the call ignores the breaker. The driver sets this for scripted models and for tools.
    pub unbroken: bool,
}

/// Waiting time and tries of a parked caller.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Since {
    /// Time of parking. When the place answers, the callers that were parked first go first.
    pub parked: Time,
    /// Number of tries since. While the place does not answer, the caller with the fewest tries is next.
    pub tries: u32,
}

/// Reasons for which a caller is not let through.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The caller would wait this many milliseconds, which is too long for a wait in memory.
    Long(u64),
    /// The breaker is open, for at least this many more milliseconds.
    Open(u64),
}

/// Result of a call, as far as its place is concerned.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The server answered, with any answer. Holds the tokens that the call took, if known.
    Answered(Option<u64>),
    /// The server said that it is called too often, and wants no calls for this many milliseconds.
    Pause(u64),
    /// The call did not get through, or the server is out of order.
    Failed,
}

/// Amount that a server says is left until a moment.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The amount, in requests or tokens.
    pub left: u64,
    /// Milliseconds until more is available.
    pub millis: u64,
}

/// Permission to make one call. If it is dropped without [`Permit::end`], nothing is learned from the call.
#[derive(Debug)]
pub struct Permit {
    limiter: Arc<Limiter>,
    ask: Ask,
    ticket: u64,
}

#[derive(Debug, Default)]
struct State {
    /// The latest time that any caller reported.
    seen: Option<Time>,
    tickets: u64,
    windows: BTreeMap<Rate, Windows>,
    told: BTreeMap<Arc<str>, Told>,
    lanes: BTreeMap<(Option<Rate>, Arc<str>), Lane>,
    breaker: Breaker,
}

#[derive(Debug, Default)]
struct Windows {
    requests: Window,
    tokens: Window,
}

/// Amounts that were taken within the last span: time, amount and ticket, oldest first.
#[derive(Debug, Default)]
struct Window {
    taken: VecDeque<(Time, u64, u64)>,
    /// Sum of the amounts. The amounts come from outside, and this type is wide enough for any sum of them.
    sum: u128,
}

/// Statements of a server about one model.
#[derive(Debug, Default)]
struct Told {
    requests: Option<(u64, Time)>,
    tokens: Option<(u64, Time)>,
    /// Time before which no call may be made.
    pause: Option<Time>,
    /// Time before which no call may be made, and the gap to the call after it: calls start slowly after a pause.
    ramp: Option<(Time, u64)>,
}

#[derive(Debug, Default)]
struct Breaker {
    /// Number of failed calls in a row.
    failures: u32,
    /// Time from which on a probe may be let through. `None` while the breaker is closed.
    open: Option<Time>,
    /// Time that the breaker stays open, in milliseconds.
    span: u64,
    /// Ticket of the call that probes the place.
    probe: Option<u64>,
}

/// Callers that wait for the same rate and model. Sessions take turns.
#[derive(Debug, Default)]
struct Lane {
    turns: VecDeque<Arc<str>>,
    waiting: BTreeMap<Arc<str>, VecDeque<(u64, Arc<Notify>)>>,
    /// Callers parked by an outage, in the order in which they go when it is over: number of tries, and the handle that wakes the
    /// caller.
    parked: BTreeMap<(Time, u64), (u32, Arc<Notify>)>,
}

/// Answer to the first caller in a lane.
enum Look {
    Go,
    At(Time),
    Refused(Refused),
}

impl Limiter {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the call may be made.
    ///
    /// # Errors
    /// [`Refused::Long`] if the wait would be longer than [`LONG`], and [`Refused::Open`] while the breaker is open.
    pub async fn acquire(self: &Arc<Self>, ask: Ask, clock: &dyn Clock) -> Result<Permit, Refused> {
        // A caller with nobody ahead gets its permit here, in the first poll: a caller that is not polled again must not hold up
        // others.
        let (mut waits, mut look) = Waits::join(self, ask, None, clock);
        loop {
            match look {
                None => waits.called.notified().await,
                Some((Look::Go, _)) => return Ok(waits.through()),
                Some((Look::Refused(why), _)) => return Err(why),
                Some((Look::At(at), now)) if at > now.plus(LONG) => {
                    return Err(Refused::Long(now.until(at)));
                }
                Some((Look::At(at), now)) => {
                    tokio::select! {
                        () = passes(clock, now, at) => {}
                        () = waits.called.notified() => {}
                    }
                }
            }
            look = waits.look(&mut self.lock(), clock.now());
        }
    }

    /// Parks the caller until the place answers and the call may be made, however long that takes, or until this call is chosen
    /// to probe the place.
    pub async fn wait(self: &Arc<Self>, ask: Ask, since: Since, clock: &dyn Clock) -> Permit {
        let (mut waits, mut look) = Waits::join(self, ask, Some(since), clock);
        loop {
            let until = match look {
                None => None,
                Some((Look::Go, _)) => return waits.through(),
                Some((Look::Refused(Refused::Long(millis) | Refused::Open(millis)), now)) => {
                    Some((now, now.plus(millis)))
                }
                Some((Look::At(at), now)) => Some((now, at)),
            };
            match until {
                None => waits.called.notified().await,
                Some((now, at)) => tokio::select! {
                    () = passes(clock, now, at) => {}
                    () = waits.called.notified() => {}
                },
            }
            look = waits.look(&mut self.lock(), clock.now());
        }
    }

    /// Returns true if the breaker is open or a probe is running.
    pub fn is_open(&self) -> bool {
        self.lock().breaker.open.is_some()
    }

    /// Returns the number of parked callers.
    pub fn parked(&self) -> usize {
        let state = self.lock();
        state.lanes.values().map(|lane| lane.parked.len()).sum()
    }
}

/// Waits until the clock shows this time, or until as much time has passed as the wait was meant to take. The clock may be set
/// back meanwhile.
async fn passes(clock: &dyn Clock, now: Time, at: Time) {
    tokio::select! {
        () = clock.sleep_until(at) => {}
        () = clock.sleep(now.until(at)) => {}
    }
}

/// A caller's position in a lane. Dropping it gives the position up.
struct Waits {
    limiter: Arc<Limiter>,
    ask: Ask,
    ticket: u64,
    called: Arc<Notify>,
    /// Time of parking, if the caller is parked.
    parked: Option<Time>,
    left: bool,
}

impl Waits {
    /// Takes a position in a lane, and returns the first look from there.
    fn join(
        limiter: &Arc<Limiter>,
        ask: Ask,
        since: Option<Since>,
        clock: &dyn Clock,
    ) -> (Self, Option<(Look, Time)>) {
        let called = Arc::<Notify>::default();
        let mut state = limiter.lock();
        state.tickets += 1;
        let ticket = state.tickets;
        let lane = (ask.rate, ask.model.clone());
        let lane = state.lanes.entry(lane).or_default();
        match since {
            Some(Since { parked, tries }) => {
                let seat = (tries, called.clone());
                lane.parked.insert((parked, ticket), seat);
            }
            None => lane.join(&ask.session, ticket, called.clone()),
        }
        let mut waits = Self {
            limiter: limiter.clone(),
            ask,
            ticket,
            called,
            parked: since.map(|since| since.parked),
            left: false,
        };
        let look = waits.look(&mut state, clock.now());
        (waits, look)
    }

    fn through(&self) -> Permit {
        Permit {
            limiter: self.limiter.clone(),
            ask: self.ask.clone(),
            ticket: self.ticket,
        }
    }

    /// Returns the answer to the caller, if it is first in its lane. A caller that may go leaves its position.
    fn look(&mut self, state: &mut State, now: Time) -> Option<(Look, Time)> {
        let now = state.told_time(now);
        if !state.is_first(self) {
            return None;
        }
        if self.parked.is_none() && state.has_parked(&self.ask) {
            return state.behind_parked(now, &self.ask).map(|look| (look, now));
        }
        let look = state.look(now, &self.ask, self.ticket);
        if matches!(look, Look::Go) {
            self.leave(state);
        }
        Some((look, now))
    }

    fn leave(&mut self, state: &mut State) {
        self.left = true;
        let key = (self.ask.rate, self.ask.model.clone());
        let is_open = state.breaker.open.is_some();
        if let Some(lane) = state.lanes.get_mut(&key) {
            match self.parked {
                Some(parked) => drop(lane.parked.remove(&(parked, self.ticket))),
                None => lane.leave(&self.ask.session, self.ticket),
            }
            lane.call(is_open);
            if lane.turns.is_empty() && lane.parked.is_empty() {
                state.lanes.remove(&key);
            }
        }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        if !self.left {
            let limiter = self.limiter.clone();
            self.leave(&mut limiter.lock());
        }
    }
}

impl Lane {
    fn join(&mut self, session: &Arc<str>, ticket: u64, called: Arc<Notify>) {
        let waiting = self.waiting.entry(session.clone()).or_default();
        if waiting.is_empty() {
            self.turns.push_back(session.clone());
        }
        waiting.push_back((ticket, called));
    }

    fn first(&self) -> Option<&(u64, Arc<Notify>)> {
        self.waiting.get(self.turns.front()?)?.front()
    }

    /// Removes a caller. If it was first, the other sessions go before the next caller of its session.
    fn leave(&mut self, session: &Arc<str>, ticket: u64) {
        let was_first = self.first().is_some_and(|(first, _)| *first == ticket);
        let Some(waiting) = self.waiting.get_mut(session) else {
            return;
        };
        waiting.retain(|(other, _)| *other != ticket);
        if waiting.is_empty() {
            self.waiting.remove(session);
            if was_first {
                self.turns.pop_front();
            } else {
                self.turns.retain(|other| other != session);
            }
        } else if was_first {
            self.turns.rotate_left(1);
        }
    }

    /// Returns the parked caller that goes next: its ticket, and the handle that wakes it. While the place does not answer, it is
    /// the caller with the fewest tries.
    fn first_parked(&self, is_open: bool) -> Option<(u64, &Arc<Notify>)> {
        let mut parked = self.parked.iter();
        let first = if is_open {
            parked.min_by_key(|(place, (tries, _))| (*tries, **place))
        } else {
            parked.next()
        };
        first.map(|((_, ticket), (_, called))| (*ticket, called))
    }

    fn call(&self, is_open: bool) {
        if let Some((_, called)) = self.first() {
            called.notify_one();
        }
        if let Some((_, called)) = self.first_parked(is_open) {
            called.notify_one();
        }
    }
}

impl State {
    /// Returns the time to compare all stored moments with. If the clock was set back, all stored moments are moved back too, so
    /// that every wait stays as long as it was.
    fn told_time(&mut self, now: Time) -> Time {
        let seen = self.seen.unwrap_or(now);
        let back = now.until(seen);
        if back <= ASIDE {
            self.seen = Some(seen.max(now));
            return seen.max(now);
        }
        let windows = self.windows.values_mut();
        let windows = windows.flat_map(|w| [&mut w.requests, &mut w.tokens]);
        let taken = windows.flat_map(|w| w.taken.iter_mut().map(|(at, ..)| at));
        let told = self.told.values_mut().flat_map(|told| {
            let left = [&mut told.requests, &mut told.tokens];
            let left = left.into_iter().flatten().map(|(_, until)| until);
            let ramp = told.ramp.iter_mut().map(|(next, _)| next);
            left.chain(&mut told.pause).chain(ramp)
        });
        for at in taken.chain(told).chain(&mut self.breaker.open) {
            *at = at.minus(back);
        }
        self.seen = Some(now);
        now
    }

    /// Returns true if nothing that is remembered can delay a call any more. The slow start after a pause does not count: it is
    /// for callers that waited, and there are none.
    fn is_idle(&mut self, now: Time) -> bool {
        let now = self.told_time(now);
        let is_past = |until: Option<Time>| until.is_none_or(|until| until <= now);
        let until = |window: &Window, quota: Option<Quota>| {
            let (newest, ..) = window.taken.back()?;
            Some(newest.plus(quota?.within))
        };
        self.lanes.is_empty()
            && is_past(self.breaker.open)
            && self.windows.iter().all(|(rate, windows)| {
                is_past(until(&windows.requests, rate.requests))
                    && is_past(until(&windows.tokens, rate.tokens))
            })
            && self.told.values().all(|told| {
                let mut left = [told.requests, told.tokens].into_iter().flatten();
                is_past(told.pause) && left.all(|(_, until)| until <= now)
            })
    }

    fn is_first(&self, waits: &Waits) -> bool {
        let lane = self.lanes.get(&(waits.ask.rate, waits.ask.model.clone()));
        let is_open = self.breaker.open.is_some();
        let first = lane.and_then(|lane| match waits.parked {
            Some(_) => lane.first_parked(is_open).map(|(first, _)| first),
            None => lane.first().map(|(first, _)| *first),
        });
        first == Some(waits.ticket)
    }

    /// Returns true if other callers are parked ahead of this one.
    fn has_parked(&self, ask: &Ask) -> bool {
        let lane = self.lanes.get(&(ask.rate, ask.model.clone()));
        !ask.unbroken && lane.is_some_and(|lane| !lane.parked.is_empty())
    }

    /// Returns the answer to a caller that has parked callers ahead. `None` means that it keeps waiting.
    fn behind_parked(&mut self, now: Time, ask: &Ask) -> Option<Look> {
        if let Some(open) = self.breaker.open {
            let left = now.until(open).clamp(PROBE, OPEN_MAX);
            return Some(Look::Refused(Refused::Open(left)));
        }
        let at = self.free_at(now, ask);
        (at > now.plus(LONG)).then_some(Look::At(at))
    }

    /// Wakes the first of each lane, because something changed.
    fn call(&self) {
        let is_open = self.breaker.open.is_some();
        self.lanes.values().for_each(|lane| lane.call(is_open));
    }

    /// Closes the breaker, because the place answers again. Parked callers are let through slowly.
    fn got_through(&mut self, now: Time) {
        let was_open = self.breaker.open.is_some();
        self.breaker.got_through();
        if !was_open {
            return;
        }
        for ((_, model), _) in self.lanes.iter().filter(|(_, l)| !l.parked.is_empty()) {
            let told = self.told.entry(model.clone()).or_default();
            told.ramp.get_or_insert((now, RAMP));
        }
    }

    /// Returns the time at which windows and the server's statements leave room for a call.
    fn free_at(&mut self, now: Time, ask: &Ask) -> Time {
        let mut at = now;
        if let Some(rate) = ask.rate {
            let windows = self.windows.entry(rate).or_default();
            if let Some(quota) = rate.requests {
                at = at.max(windows.requests.free_at(now, quota, 1));
            }
            if let Some(quota) = rate.tokens {
                at = at.max(windows.tokens.free_at(now, quota, ask.tokens));
            }
        }
        let told = self.told.entry(ask.model.clone()).or_default();
        at.max(told.free_at(now, ask.tokens))
    }

    fn look(&mut self, now: Time, ask: &Ask, ticket: u64) -> Look {
        let at = self.free_at(now, ask);
        // The breaker is checked last, so that no caller that has to wait becomes the probe.
        let probe = (at <= now).then_some(ticket);
        if !ask.unbroken
            && let Some(left) = self.breaker.look(now, probe)
        {
            return Look::Refused(Refused::Open(left));
        }
        if at > now {
            return Look::At(at);
        }
        let told = self.told.entry(ask.model.clone()).or_default();
        told.take(now, ask.tokens);
        if let Some(rate) = ask.rate {
            let windows = self.windows.entry(rate).or_default();
            if rate.requests.is_some() {
                windows.requests.take(now, ticket, 1);
            }
            if let Some(quota) = rate.tokens {
                windows.tokens.take(now, ticket, ask.tokens.min(quota.most));
            }
        }
        Look::Go
    }
}

impl Window {
    /// Returns the time at which this amount fits. An amount above the quota waits until the whole quota is free.
    fn free_at(&mut self, now: Time, quota: Quota, amount: u64) -> Time {
        while let Some((at, amount, _)) = self.taken.front()
            && at.plus(quota.within) <= now
        {
            self.sum -= u128::from(*amount);
            self.taken.pop_front();
        }
        let most = u128::from(quota.most);
        let amount = u128::from(amount).min(most);
        let mut sum = self.sum;
        let mut at = now;
        for (taken, freed, _) in &self.taken {
            if sum + amount <= most {
                break;
            }
            sum -= u128::from(*freed);
            at = taken.plus(quota.within);
        }
        at
    }

    fn take(&mut self, now: Time, ticket: u64, amount: u64) {
        self.sum += u128::from(amount);
        self.taken.push_back((now, amount, ticket));
    }

    /// Replaces the estimate of a call with the amount that it took.
    fn correct(&mut self, ticket: u64, amount: u64) {
        let taken = self.taken.iter_mut().rev();
        if let Some((_, taken, _)) = { taken }.find(|(_, _, other)| *other == ticket) {
            self.sum = self.sum - u128::from(*taken) + u128::from(amount);
            *taken = amount;
        }
    }
}

impl Told {
    fn free_at(&mut self, now: Time, tokens: u64) -> Time {
        let is_past = |until: &Time| *until <= now;
        self.requests = self.requests.filter(|(_, until)| !is_past(until));
        self.tokens = self.tokens.filter(|(_, until)| !is_past(until));
        if let Some(until) = self.pause.filter(is_past) {
            self.pause = None;
            self.ramp = Some((until.max(now), RAMP));
        }
        let mut at = self.pause.unwrap_or(now);
        if let Some((0, until)) = self.requests {
            at = at.max(until);
        }
        if let Some((left, until)) = self.tokens
            && left < tokens
        {
            at = at.max(until);
        }
        match self.ramp {
            Some((next, _)) => at.max(next),
            None => at,
        }
    }

    fn take(&mut self, now: Time, tokens: u64) {
        if let Some((left, _)) = &mut self.requests {
            *left = left.saturating_sub(1);
        }
        if let Some((left, _)) = &mut self.tokens {
            *left = left.saturating_sub(tokens);
        }
        self.ramp = self
            .ramp
            .map(|(_, gap)| (now.plus(gap), gap * 3 / 4))
            .filter(|(_, gap)| *gap > 4);
    }
}

impl Breaker {
    /// Returns how long the breaker will stay open, or `None` if the call may pass. `ticket` becomes the probe, if one is wanted.
    fn look(&mut self, now: Time, ticket: Option<u64>) -> Option<u64> {
        let open = self.open?;
        if open > now {
            return Some(now.until(open).min(OPEN_MAX));
        }
        match (self.probe, ticket) {
            (Some(_), _) => Some(PROBE),
            (None, Some(ticket)) => {
                self.probe = Some(ticket);
                None
            }
            (None, None) => None,
        }
    }

    fn got_through(&mut self) {
        *self = Self::default();
    }

    fn failed(&mut self, now: Time, ticket: u64) {
        self.failures = self.failures.saturating_add(1);
        let probed = self.probe == Some(ticket);
        if probed || (self.open.is_none() && self.failures >= FAILURES) {
            self.span = match self.span {
                0 => OPEN,
                span => (span * 2).min(OPEN_MAX),
            };
            self.open = Some(now.plus(self.span));
            self.probe = None;
        }
    }
}

impl Permit {
    /// Returns true if this permits a call at this place.
    pub fn is_of(&self, limiter: &Arc<Limiter>) -> bool {
        Arc::ptr_eq(&self.limiter, limiter)
    }

    /// Records what the server said is left for this model, during the call or with the answer.
    pub fn told(&self, now: Time, requests: Option<Left>, tokens: Option<Left>) {
        let mut state = self.limiter.lock();
        let now = state.told_time(now);
        let told = state.told.entry(self.ask.model.clone()).or_default();
        let until = |left: Left| (left.left, now.plus(left.millis.min(crate::retry::LONGEST)));
        if let Some(left) = requests {
            told.requests = Some(until(left));
        }
        if let Some(left) = tokens {
            told.tokens = Some(until(left));
        }
        state.call();
    }

    /// Records the end of the call.
    pub fn end(self, now: Time, ended: Ended) {
        let mut state = self.limiter.lock();
        let now = state.told_time(now);
        match ended {
            Ended::Answered(tokens) => {
                state.got_through(now);
                self.took(&mut state, tokens);
            }
            Ended::Pause(millis) => {
                state.got_through(now);
                self.took(&mut state, Some(0));
                let until = now.plus(millis.min(crate::retry::LONGEST));
                let told = state.told.entry(self.ask.model.clone()).or_default();
                told.pause = Some(told.pause.map_or(until, |pause| pause.max(until)));
            }
            Ended::Failed => {
                if !self.ask.unbroken {
                    state.breaker.failed(now, self.ticket);
                }
                self.took(&mut state, Some(0));
            }
        }
        state.call();
    }

    fn took(&self, state: &mut State, tokens: Option<u64>) {
        let Some((rate, tokens)) = self.ask.rate.zip(tokens) else {
            return;
        };
        if let Some(windows) = state.windows.get_mut(&rate) {
            windows.tokens.correct(self.ticket, tokens);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.limiter.lock();
        if state.breaker.probe == Some(self.ticket) {
            // The probe was cancelled before it showed anything. Another call becomes the probe.
            state.breaker.probe = None;
            state.call();
        }
    }
}

#[cfg(test)]
mod tests;
