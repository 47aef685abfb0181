//! How often the outside is asked: one limiter for each place, shared by all sessions of a process.
//!
//! A place is a provider with an address and a key, or the host of a tool over HTTP. At a place there are
//!
//! * **windows**, one for each declared [`Rate`]: at most so many requests and tokens within any span of its length. What
//!   a call will take is estimated; what it took is put in the estimate's place afterwards;
//! * what the **server said** is left, for each model of its own, and for how long it wants to be left alone;
//! * a **circuit breaker**: after [`FAILURES`] calls in a row that did not get through, nobody is let through for a while,
//!   then one, and the others when that one got through.
//!
//! Who has to wait stands in a lane, of its rate and model. Only the first of a lane looks at the clock, so nothing wakes
//! many at once, and sessions take turns in it, however much one of them asks. Behind a pause that a server asked for the
//! lane begins slowly. All time is the [`Clock`]'s.
//!
//! Who is parked by an outage stands in the lane ahead of the others, in the order in which it was parked, and is never
//! sent away ([`Limiter::wait`]). While the breaker is open one of them at a time is let through when its time is over, the
//! one who tried least often first: a call that would always fail keeps no other from trying.

use crate::clock::Clock;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steersman_machine::ids::Time;
pub use steersman_machine::rate::{Quota, Rate};
use tokio::sync::Notify;

/// A wait longer than this, in milliseconds, is not waited for here: its caller is told how long it would be.
pub const LONG: u64 = crate::retry::LONG;
/// So many calls in a row that did not get through open the breaker.
pub const FAILURES: u32 = 5;
/// How long it stays open the first time, in milliseconds; twice as long each time the probe fails.
pub const OPEN: u64 = 10_000;
/// It never stays open longer, in milliseconds.
pub const OPEN_MAX: u64 = 300_000;
/// While a probe is under way the others are told to come again after so many milliseconds.
const PROBE: u64 = 1_000;
/// Milliseconds between the first calls behind a pause; less with each.
const RAMP: u64 = 200;
/// Those who look at the clock at once may tell of it in any order: so many milliseconds are not taken for a clock that was
/// set back.
const ASIDE: u64 = 1_000;
/// Places that are remembered beside those in use.
const PLACES: usize = 256;

/// The limiters of a process. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Limiters(Arc<Mutex<HashMap<[u8; 32], Arc<Limiter>>>>);

impl Limiters {
    /// The limiter of a place. The parts name it, a key among them: they are hashed and not kept.
    pub fn of(&self, place: &[&str]) -> Arc<Limiter> {
        let mut hash = blake3::Hasher::new();
        for part in place {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let key = *hash.finalize().as_bytes();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= PLACES && !open.contains_key(&key) {
            open.retain(|_, limiter| Arc::strong_count(limiter) > 1 || !limiter.lock().is_idle());
        }
        open.entry(key).or_default().clone()
    }
}

/// The limiter of one place.
#[derive(Debug, Default)]
pub struct Limiter(Mutex<State>);

/// Who asks, and for how much.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// The session: these take turns.
    pub session: Arc<str>,
    /// The model: what a server says is left is left of this one. Empty for tools.
    pub model: Arc<str>,
    /// The declared rate.
    pub rate: Option<Rate>,
    /// Tokens that the call will take, as far as known.
    pub tokens: u64,
    /// It goes past the breaker: there is nothing at the place that could be out of order.
    pub unbroken: bool,
}

/// Since when somebody is parked, and how often it has tried the place since.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Since {
    /// Since when: the oldest go first when the place answers.
    pub parked: Time,
    /// Who tried least often tries next while it does not.
    pub tries: u32,
}

/// Why somebody was not let through.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It would wait for so many milliseconds: too long to do so in memory.
    Long(u64),
    /// The breaker is open, for so many milliseconds more at least.
    Open(u64),
}

/// How a call ended, as far as its place is concerned.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The server answered, whatever it said. So many tokens were taken, if that is known.
    Answered(Option<u64>),
    /// It answered that it is asked too often, and wants to be left alone for so many milliseconds.
    Pause(u64),
    /// Nothing got through, or the server is out of order.
    Failed,
}

/// What a server says is left of something until a moment.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// So much.
    pub left: u64,
    /// Milliseconds until there is more.
    pub millis: u64,
}

/// Leave to make one call. Dropped without [`Permit::end`], nothing is learned from it.
#[derive(Debug)]
pub struct Permit {
    limiter: Arc<Limiter>,
    ask: Ask,
    ticket: u64,
}

#[derive(Debug, Default)]
struct State {
    /// The newest moment that was told.
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

/// What was taken within the last span, oldest first.
#[derive(Debug, Default)]
struct Window {
    taken: VecDeque<(Time, u64, u64)>,
    /// Of numbers that others tell: wide enough for all of them.
    sum: u128,
}

/// What a server said of one model.
#[derive(Debug, Default)]
struct Told {
    requests: Option<(u64, Time)>,
    tokens: Option<(u64, Time)>,
    /// Nobody before.
    pause: Option<Time>,
    /// Nobody before, and the gap to the next but one: it begins slowly.
    ramp: Option<(Time, u64)>,
}

#[derive(Debug, Default)]
struct Breaker {
    failures: u32,
    open: Option<Time>,
    span: u64,
    probe: Option<u64>,
}

/// Those who wait for the same. Sessions take turns.
#[derive(Debug, Default)]
struct Lane {
    turns: VecDeque<Arc<str>>,
    waiting: BTreeMap<Arc<str>, VecDeque<(u64, Arc<Notify>)>>,
    /// Parked by an outage, in the order in which they go when it is over: how often each tried, and who is called.
    parked: BTreeMap<(Time, u64), (u32, Arc<Notify>)>,
}

/// What the first of a lane is told.
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
    /// Where that would take long, or nobody is let through.
    pub async fn acquire(self: &Arc<Self>, ask: Ask, clock: &dyn Clock) -> Result<Permit, Refused> {
        // Who finds nobody before it is through at once: it must not stand in the way of others before it runs again.
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

    /// Waits, parked, until the place answers and the call may be made, however long that takes; or until it is the one who
    /// tries whether it does.
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

    /// Whether the breaker is open, or one call tries the place.
    pub fn is_open(&self) -> bool {
        self.lock().breaker.open.is_some()
    }

    /// How many are parked here.
    pub fn parked(&self) -> usize {
        let state = self.lock();
        state.lanes.values().map(|lane| lane.parked.len()).sum()
    }
}

/// The clock comes to this moment, or as much time passes as it was to take: the clock may be set back meanwhile.
async fn passes(clock: &dyn Clock, now: Time, at: Time) {
    tokio::select! {
        () = clock.sleep_until(at) => {}
        () = clock.sleep(now.until(at)) => {}
    }
}

/// A place in a lane, given up when it is dropped.
struct Waits {
    limiter: Arc<Limiter>,
    ask: Ask,
    ticket: u64,
    called: Arc<Notify>,
    /// Since when it is parked, if it is.
    parked: Option<Time>,
    left: bool,
}

impl Waits {
    /// Takes a place, and is told what it would be told there.
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

    /// What it is told now, if it is the first; who may go has left its place.
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

    /// Whoever goes first lets the other sessions go before its own next one.
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

    /// The ticket of the parked one who goes next, and who is called: while the place does not answer, the one who tried
    /// least often.
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
    /// The time by which everything here goes on. A clock that was set back takes all moments along: a wait is as long as it
    /// would have been, whatever it says.
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

    fn is_idle(&self) -> bool {
        let said = self.told.values().any(|told| told.pause.is_some());
        self.lanes.is_empty() && self.windows.is_empty() && self.breaker.open.is_none() && !said
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

    /// Whether others are parked ahead of whoever asks so.
    fn has_parked(&self, ask: &Ask) -> bool {
        let lane = self.lanes.get(&(ask.rate, ask.model.clone()));
        !ask.unbroken && lane.is_some_and(|lane| !lane.parked.is_empty())
    }

    /// What somebody is told ahead of whom others are parked: to come again; none: nothing yet.
    fn behind_parked(&mut self, now: Time, ask: &Ask) -> Option<Look> {
        if let Some(open) = self.breaker.open {
            let left = now.until(open).clamp(PROBE, OPEN_MAX);
            return Some(Look::Refused(Refused::Open(left)));
        }
        let at = self.free_at(now, ask);
        (at > now.plus(LONG)).then_some(Look::At(at))
    }

    /// Something changed: the first of each lane looks again.
    fn call(&self) {
        let is_open = self.breaker.open.is_some();
        self.lanes.values().for_each(|lane| lane.call(is_open));
    }

    /// The place answers again: who is parked there comes slowly.
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

    /// When windows and the server's word leave room for a call.
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
        // The breaker last, so that nobody is a probe who has to wait.
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
    /// When there will be room for so much. What is larger than the quota waits until all is free.
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

    /// What a call took after all.
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
    /// For how long it is open yet. `ticket`: who is the probe, if one is wanted.
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
    /// Whether it is leave to make a call at this place.
    pub fn is_of(&self, limiter: &Arc<Limiter>) -> bool {
        Arc::ptr_eq(&self.limiter, limiter)
    }

    /// The server said of this model, while or before it answered, what is left.
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

    /// The call ended.
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
            // Cut before it showed anything: another one is the probe.
            state.breaker.probe = None;
            state.call();
        }
    }
}

#[cfg(test)]
mod tests;
