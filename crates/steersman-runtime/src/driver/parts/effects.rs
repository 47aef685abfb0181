//! The effects of a session that are not over, and what each of them waits for.
//!
//! An effect is added when a line wishes it ([`Effects::wished`]) and removed when its branch takes its outcome or does not want
//! it any more ([`Effects::ended`]). Between the two, each method tells what happens to the effect. The order of states is
//! the table in [`state`].

mod outage;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use outage::Seat;
pub(crate) use state::OutState;

use crate::ledger::{Amount, Record};
use crate::seal::Sealer;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use steersman_machine::context::Request;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::ids::{Digest, Id, Line, Name, Time};
use steersman_machine::tick::effect::{ToolWork, Wish, Work};
use steersman_machine::values::json;
use steersman_machine::values::price::Price;

/// The effects of a session that are not over.
///
/// Invariants, which [`Effects::recount`] checks:
/// * An effect in `to_start` is outstanding, in a state in which an attempt may begin.
/// * An effect in `queued`, `short` or `behind` is in the state [`OutState::Queued`], and in one of the three only. `queued` has it under
///   its own agent, and has no agent without effects.
/// * An attempt of a tool that runs is in `at_work`, unless it has ended.
/// * `reserved` is the sum of what the outstanding effects have reserved.
/// * The lines in `drawn` ascend.
#[derive(Clone, Default)]
pub(crate) struct Effects {
    /// Outstanding effects of the branches that have ticks.
    outs: BTreeMap<Id, Out>,
    /// Attempts of tools that have begun and have not reported their end, also if their calls are already over. True: the attempt
    /// may change the world, and the session is not released before its end.
    at_work: BTreeMap<(Id, u32), bool>,
    /// Effects that may begin now.
    to_start: BTreeSet<Id>,
    /// Effects that wait for a free slot, by agent.
    queued: BTreeMap<Id, BTreeSet<Id>>,
    /// Model calls that wait for budget which other calls have reserved.
    short: BTreeSet<Id>,
    /// Effects that wait for the end of an equal effect, with the id of that effect.
    behind: BTreeMap<Id, Id>,
    /// Sum of the budget that is reserved.
    reserved: Amount,
    /// Escrow that may not be on disk yet, by line. Calls that need it begin when it is on disk.
    drawn: VecDeque<(Line, Amount)>,
    /// The largest amount that a model call of this session has reserved or spent, as far as the budgets limit it.
    dearest: Amount,
}

/// An outstanding effect of a branch that has ticks. Only [`Effects`] changes it: nobody else gets a mutable one.
#[derive(Clone)]
pub(crate) struct Out {
    pub(crate) branch: Id,
    pub(crate) wish: Wish,
    /// Digests of tool and arguments ([`Out::digests`]), once they were asked for.
    pub(crate) digests: OnceCell<Arc<[Digest]>>,
    /// The attempt that runs or ran last.
    pub(crate) attempt: u32,
    pub(crate) state: OutState,
    request: Rendered,
    /// Budget reserved for the effect.
    pub(crate) reserved: Amount,
    /// Estimated tokens of the request.
    pub(crate) sent: u64,
    /// The model that the definition names for the call, once the request was rendered.
    pub(crate) asked: Option<Name>,
    /// Index, from 0, of the model in the fallback chain that is asked.
    pub(crate) rung: usize,
    /// Attempts made with the models before it in the chain.
    pub(crate) tried: u32,
    /// Price of the model that is asked, if known.
    pub(crate) price: Option<Price>,
    /// Secrets that a person gave: parameter and sealed value.
    pub(crate) inputs: Vec<(Name, String)>,
    /// A person allowed the repetition of the equal effects that existed at this line.
    pub(crate) word: Option<Line>,
    /// Roles that have approved the effect ([`Hold::by`](steersman_machine::stored::commit::Hold::by)).
    pub(crate) approved: Vec<Name>,
    pub(crate) since: Time,
    /// For a tool: the session as the question of its call showed it ([`asked_at`](steersman_machine::tick::asked_at)). Each attempt
    /// reads this, whatever was written since.
    pub(crate) asked_in: Option<Arc<Snapshot>>,
    /// For a model call: its place does not answer, or did not a moment ago.
    outage: Option<Box<outage::Outage>>,
}

impl Out {
    /// Returns true if a stop cut the attempt: the effect begins again wherever the session goes on, so the end that the attempt
    /// reports is not an outcome.
    pub(crate) fn was_cut(&self) -> bool {
        matches!(self.state, OutState::Ready)
    }

    /// Returns the tool's work, if the effect is a tool's.
    pub(crate) fn tool(&self) -> Option<&ToolWork> {
        match &self.wish.work {
            Work::Tool(tool) | Work::Simulate(tool) => Some(tool),
            Work::Model
            | Work::Ask { .. }
            | Work::Event { .. }
            | Work::Timer
            | Work::Send { .. } => None,
        }
    }

    /// Returns the digests of tool and arguments, the one to record first. Empty if the effect is no tool's.
    pub(crate) fn digests(&self, sealer: &Sealer) -> &Arc<[Digest]> {
        let made = || {
            self.tool()
                .map_or_else(Arc::default, |tool| tool_digests(tool, sealer))
        };
        self.digests.get_or_init(made)
    }

    /// Returns the digest of tool and arguments that is recorded.
    pub(crate) fn digest(&self, sealer: &Sealer) -> Digest {
        *self.digests(sealer).first().expect("a tool has a digest")
    }

    /// Returns true if it is run for real and may change the world.
    pub(crate) fn touches_world(&self) -> bool {
        matches!(&self.wish.work, Work::Tool(tool) if !tool.class.is_free())
    }

    /// Returns true if it asks a model.
    pub(crate) fn is_model(&self) -> bool {
        matches!(self.wish.work, Work::Model)
    }

    /// Returns true if it counts against the number of calls that an exchange may run at the same time.
    pub(crate) fn takes_room(&self) -> bool {
        let at_work = match self.state {
            OutState::Ready | OutState::Starting(_) | OutState::Running | OutState::Soon(_) => true,
            OutState::AwaitsSearch
            | OutState::Held
            | OutState::Barred
            | OutState::Queued
            | OutState::Later(_)
            | OutState::Waits
            | OutState::Over => false,
        };
        at_work && matches!(self.wish.work, Work::Tool(_))
    }
}

/// Returns the digests of tool and arguments that approvals and the repeat guard compare; sealed parts count by their keyed digest. The first
/// is the one to record, the others are those that were recorded while other keys sealed ([`Sealer::comparable`]).
pub(crate) fn tool_digests(tool: &ToolWork, sealer: &Sealer) -> Arc<[Digest]> {
    let args = json::comparable(&tool.args).unwrap_or_else(|_| (*tool.args).into());
    let forms = sealer.comparable(&args).into_iter();
    forms
        .map(|form| Digest::of(format!("{}\n{form}", tool.tool).as_bytes()))
        .collect()
}

/// Of a model call that was rendered: digest of the request, length of the prefix that it shares with the request before,
/// and the cause that ended this prefix.
type Rendered = Option<(Digest, u64, Option<Name>)>;

/// Data of an outstanding effect that the log does not have.
#[derive(Clone)]
pub(crate) struct KeptOut {
    pub(crate) branch: Id,
    attempt: u32,
    state: OutState,
    request: Rendered,
    reserved: Amount,
    sent: u64,
    asked: Option<Name>,
    rung: usize,
    tried: u32,
    price: Option<Price>,
    since: Time,
    outage: Option<Box<outage::Outage>>,
}

/// Looks.
impl Effects {
    /// Returns the outstanding effects.
    pub(crate) fn outs(&self) -> &BTreeMap<Id, Out> {
        &self.outs
    }

    pub(crate) fn out(&self, id: Id) -> Option<&Out> {
        self.outs.get(&id)
    }

    /// Returns the first effect that may begin now.
    pub(crate) fn next(&self) -> Option<Id> {
        self.to_start.first().copied()
    }

    /// Returns the first effect that may begin now and whose `Started` or escrow was written.
    pub(crate) fn next_starting(&self) -> Option<Id> {
        let starting = |id: &&Id| matches!(self.outs.get(id), Some(out) if out.state.is_starting());
        self.to_start.iter().find(starting).copied()
    }

    /// Returns true if the effect has to wait for the end of an equal outstanding effect.
    pub(crate) fn waits_for_another(&self, id: Id) -> bool {
        let before = self.behind.get(&id);
        before.is_some_and(|before| self.outs.contains_key(before))
    }

    /// Returns true if the end of another effect of this session moves the effect.
    pub(crate) fn waits_for_an_end(&self, id: Id, agent: Id) -> bool {
        let queued = self.queued.get(&agent);
        self.waits_for_another(id)
            || self.short.contains(&id)
            || queued.is_some_and(|ids| ids.contains(&id))
    }

    /// Returns the first effect of each agent that waits for a slot.
    pub(crate) fn first_queued(&self) -> impl Iterator<Item = Id> {
        self.queued.values().filter_map(|ids| ids.first().copied())
    }

    /// Returns true if an attempt of a held effect is at work: it waits for the answer to a question of its server.
    pub(crate) fn is_asking(&self, id: Id) -> bool {
        self.out(id).is_some_and(|out| {
            out.state == OutState::Held && self.at_work.contains_key(&(id, out.attempt))
        })
    }

    /// Returns the attempts of tools that have begun and have not reported their end: true if one may change the world.
    pub(crate) fn at_work(&self) -> &BTreeMap<(Id, u32), bool> {
        &self.at_work
    }

    /// Returns the sum reserved by the calls that are out.
    pub(crate) fn reserved(&self) -> Amount {
        self.reserved
    }

    /// Returns the largest amount that a model call has reserved or spent.
    pub(crate) fn dearest(&self) -> Amount {
        self.dearest
    }
}

/// An effect comes and goes.
impl Effects {
    /// A line wishes an effect, or an owner takes it up. `attempt`: the last one that the ledger knows. A wait that goes on after
    /// a part of it came is wished again.
    pub(crate) fn wished(
        &mut self,
        branch: Id,
        wish: Wish,
        asked_in: Option<Arc<Snapshot>>,
        attempt: u32,
        now: Time,
    ) {
        let id = wish.id;
        let out = Out {
            branch,
            digests: OnceCell::new(),
            attempt,
            state: OutState::Ready,
            request: None,
            reserved: Amount::default(),
            sent: 0,
            asked: None,
            rung: 0,
            tried: 0,
            price: None,
            inputs: Vec::new(),
            word: None,
            approved: Vec::new(),
            since: now,
            asked_in,
            outage: None,
            wish,
        };
        if let Some(before) = self.outs.insert(id, out) {
            self.unlist(&before);
        }
    }

    /// The ledger and the log know this of an effect that was taken up.
    pub(crate) fn known(&mut self, id: Id, record: &Record, inputs: Vec<(Name, String)>) {
        let out = self.get_mut(id);
        out.inputs = inputs;
        out.approved.clone_from(&record.approved);
        out.word = record.word;
    }

    /// No branch waits for the effect any more. An attempt that runs still reports its end.
    pub(crate) fn ended(&mut self, id: Id) -> Option<Out> {
        let out = self.outs.remove(&id)?;
        self.unlist(&out);
        Some(out)
    }
}

/// An effect waits.
impl Effects {
    /// It waits for an input from outside, or for its time.
    pub(crate) fn waits_outside(&mut self, id: Id) {
        self.moves(id, OutState::Waits);
    }

    /// A model call waits for a search.
    pub(crate) fn awaits_search(&mut self, id: Id) {
        self.moves(id, OutState::AwaitsSearch);
    }

    /// A hold keeps it.
    pub(crate) fn holds(&mut self, id: Id) {
        self.moves(id, OutState::Held);
    }

    /// The order of a person keeps it from beginning.
    pub(crate) fn bars(&mut self, id: Id) {
        self.moves(id, OutState::Barred);
    }

    /// It waits for a free slot, behind the other effects of its agent.
    pub(crate) fn waits_for_slot(&mut self, id: Id) {
        self.moves(id, OutState::Queued);
        let agent = self.outs[&id].wish.agent;
        self.queued.entry(agent).or_default().insert(id);
    }

    /// It waits for its turn at a place; the executor tells when the turn has come.
    pub(crate) fn waits_for_turn(&mut self, id: Id) {
        self.moves(id, OutState::Queued);
        self.to_start.remove(&id);
    }

    /// It waits for the end of an equal effect.
    pub(crate) fn waits_behind(&mut self, id: Id, before: Id) {
        self.moves(id, OutState::Queued);
        self.to_start.remove(&id);
        self.behind.insert(id, before);
    }

    /// A model call waits for budget that other calls have reserved.
    pub(crate) fn waits_for_budget(&mut self, id: Id) {
        self.moves(id, OutState::Queued);
        self.short.insert(id);
    }

    /// It waits for the next step of a session that stops after each line.
    pub(crate) fn waits_for_step(&mut self, id: Id) {
        self.moves(id, OutState::Queued);
        self.to_start.insert(id);
    }

    /// The next attempt follows soon; an alarm of the executor wakes it. Returns the last attempt.
    pub(crate) fn again_soon(&mut self, id: Id, at: Time) -> u32 {
        self.moves(id, OutState::Soon(at));
        self.outs[&id].attempt
    }

    /// The next attempt, or the first, follows at a time that is in the log.
    pub(crate) fn waits_until(&mut self, id: Id, at: Time) {
        self.moves(id, OutState::Later(at));
    }

    /// Nothing keeps the effect any more, or it is tried now by order of a person: all gates are checked before it begins.
    pub(crate) fn tries_now(&mut self, id: Id, now: Time) {
        self.moves(id, OutState::Soon(now));
        self.to_start.insert(id);
    }
}

/// An effect begins and ends.
impl Effects {
    /// Nothing keeps it any more. It begins when it is woken ([`Effects::wakes`]).
    pub(crate) fn readies(&mut self, id: Id) {
        self.moves(id, OutState::Ready);
    }

    /// It may begin now, unless something keeps it.
    pub(crate) fn wakes(&mut self, id: Id) {
        if self.out(id).is_some_and(|out| out.state.may_begin()) {
            self.to_start.insert(id);
        }
    }

    /// The short delay before the next attempt is over. Another wake may have been sooner.
    pub(crate) fn delay_is_over(&mut self, id: Id, attempt: u32) {
        let out = self.out(id).filter(|out| out.attempt == attempt);
        if out.is_some_and(|out| matches!(out.state, OutState::Soon(_))) {
            self.to_start.insert(id);
        }
    }

    /// The line that this attempt waits for is on disk.
    pub(crate) fn line_is_on_disk(&mut self, id: Id, attempt: u32) {
        if self.out(id).is_some_and(|out| out.attempt == attempt) {
            self.wakes(id);
        }
    }

    /// A line was written: effects that wait for an equal one look if it has ended.
    pub(crate) fn look_behind(&mut self) {
        self.to_start.extend(self.behind.keys());
    }

    /// The session goes on: effects that nothing keeps may begin.
    pub(crate) fn wakes_ready(&mut self) {
        let ready = self
            .outs
            .iter()
            .filter(|(_, out)| out.state == OutState::Ready);
        self.to_start.extend(ready.map(|(id, _)| *id));
    }

    /// The first call that waits for reserved budget tries again; if it may begin, the next one tries.
    pub(crate) fn retry_short(&mut self) {
        if let Some(first) = self.short.pop_first() {
            self.to_start.insert(first);
        }
    }

    /// The job of its beginning is done now.
    pub(crate) fn takes(&mut self, id: Id) {
        self.to_start.remove(&id);
    }

    /// Its `Started` is in this line: the attempt begins when the line is on disk. Returns the attempt.
    pub(crate) fn starts_with(&mut self, id: Id, line: Line) -> u32 {
        self.get_mut(id).attempt += 1;
        self.starts_behind(id, line)
    }

    /// The next attempt begins when this line is on disk. Returns the last attempt.
    pub(crate) fn starts_behind(&mut self, id: Id, line: Line) -> u32 {
        self.moves(id, OutState::Starting(line));
        self.to_start.remove(&id);
        self.outs[&id].attempt
    }

    /// An attempt begins. Returns its number: an effect that may change the world got it with its `Started`.
    pub(crate) fn begins(&mut self, id: Id) -> u32 {
        let out = self.outs.get_mut(&id).expect(IS_OUT);
        let world = out.touches_world();
        if !world {
            out.attempt += 1;
            // An attempt that was cut and has not ended yet keeps its number.
            while self.at_work.contains_key(&(id, out.attempt)) {
                out.attempt += 1;
            }
        }
        let attempt = out.attempt;
        if matches!(out.wish.work, Work::Tool(_)) {
            self.at_work.insert((id, attempt), world);
        }
        self.moves(id, OutState::Running);
        attempt
    }

    /// The question of an attempt that is at work is over.
    pub(crate) fn goes_on(&mut self, id: Id) {
        self.moves(id, OutState::Running);
    }

    /// It was taken up while an attempt that an earlier branch began still runs: the outcome of that attempt counts.
    pub(crate) fn runs_on(&mut self, id: Id) {
        self.moves(id, OutState::Running);
    }

    /// An attempt of a tool reported its end. Returns false if it was not at work.
    pub(crate) fn reported_end(&mut self, id: Id, attempt: u32) -> bool {
        self.at_work.remove(&(id, attempt)).is_some()
    }

    /// Cuts the attempts that may be repeated, because the session stops. Returns them; their ends are still reported.
    pub(crate) fn cut_free(&mut self) -> Vec<(Id, u32)> {
        let runs = |out: &Out| out.state == OutState::Running && !out.touches_world();
        let cut = self.outs.iter().filter(|(_, out)| runs(out));
        let cut: Vec<_> = cut.map(|(id, out)| (*id, out.attempt)).collect();
        for (id, _) in &cut {
            self.moves(*id, OutState::Ready);
        }
        cut
    }

    /// Its outcome is offered to its branch. Returns the branch and the last attempt; `None` if it is not out.
    pub(crate) fn offers_outcome(&mut self, id: Id) -> Option<(Id, u32)> {
        let out = self.outs.get(&id)?;
        let offered = (out.branch, out.attempt);
        self.moves(id, OutState::Over);
        Some(offered)
    }
}

/// Facts about an effect.
impl Effects {
    /// The request of a model call was rendered. A call that waits for the disk is rendered again when it starts, and its prefix
    /// would then be compared with itself: the prefix shared with the call before is measured once.
    pub(crate) fn rendered(&mut self, id: Id, request: &Request) {
        let out = self.get_mut(id);
        out.asked = Some(request.model.clone());
        match &mut out.request {
            Some((digest, ..)) => *digest = request.digest,
            rendered => *rendered = Some((request.digest, request.prefix, request.broke.clone())),
        }
    }

    /// Takes what was noted of the request, for the usage of its answer.
    pub(crate) fn take_rendered(&mut self, id: Id) -> Rendered {
        self.get_mut(id).request.take()
    }

    /// The model that is asked has this price.
    pub(crate) fn costs(&mut self, id: Id, price: Option<Price>) {
        self.get_mut(id).price = price;
    }

    /// The next model of the chain is asked.
    pub(crate) fn falls_back(&mut self, id: Id) {
        let out = self.get_mut(id);
        (out.rung, out.tried) = (out.rung + 1, out.attempt);
    }

    /// All models of the chain were asked: the next attempt begins with the first one.
    pub(crate) fn asks_first_model(&mut self, id: Id) {
        let out = self.get_mut(id);
        (out.rung, out.tried) = (0, out.attempt);
    }

    /// The attempt does not count as a failed one: its call was not made.
    pub(crate) fn was_not_made(&mut self, id: Id) {
        self.get_mut(id).tried += 1;
    }

    /// A person gave a secret, sealed.
    pub(crate) fn gives(&mut self, id: Id, parameter: Name, sealed: String) {
        self.get_mut(id).inputs.push((parameter, sealed));
    }

    /// These roles approved the effect.
    pub(crate) fn approves(&mut self, id: Id, by: Vec<Name>) {
        self.get_mut(id).approved.extend(by);
    }

    /// A person allowed the repetition of the equal effects that exist at this line.
    pub(crate) fn may_repeat(&mut self, id: Id, at: Option<Line>) {
        let out = self.get_mut(id);
        out.word = out.word.max(at);
    }
}

/// The budget.
impl Effects {
    /// The request of a call has about this many tokens.
    pub(crate) fn sends(&mut self, id: Id, tokens: u64) {
        self.get_mut(id).sent = tokens;
    }

    /// A call needs, or needed, this much, as far as the budgets limit it.
    pub(crate) fn needs(&mut self, amount: Amount) {
        self.dearest = self.dearest.at_least(amount);
    }

    /// A call reserves the most that it may cost; zero frees its reservation.
    pub(crate) fn reserves(&mut self, id: Id, amount: Amount) {
        let out = self.outs.get_mut(&id).expect(IS_OUT);
        self.reserved = self.reserved.less(out.reserved).plus(amount);
        out.reserved = amount;
    }

    /// Escrow is drawn in this line.
    pub(crate) fn draws(&mut self, line: Line, amount: Amount) {
        self.drawn.push_back((line, amount));
    }

    /// All escrow is given back.
    pub(crate) fn settles(&mut self) {
        self.drawn.clear();
    }

    /// Returns the line that covers all reservations: the calls may begin when it is on disk. `slice`: the escrow that was drawn
    /// and not settled.
    pub(crate) fn covered_by(&mut self, durable: Line, slice: Amount) -> Line {
        self.drawn.retain(|(line, _)| *line > durable);
        let ahead = self.drawn.iter();
        let ahead = ahead.fold(Amount::default(), |sum, (_, drawn)| sum.plus(*drawn));
        let (mut covered, mut by) = (slice.less(ahead), Line::NONE);
        for (line, drawn) in &self.drawn {
            if covered.covers(self.reserved) {
                break;
            }
            (covered, by) = (covered.plus(*drawn), *line);
        }
        by
    }
}

/// A session is parked or taken out of memory, and goes on.
impl Effects {
    /// Takes out what is kept. `parks`: the effects will be recovered, so only what no log has is kept.
    pub(crate) fn closes(&mut self, parks: bool) -> (Self, Vec<(Id, KeptOut)>) {
        let mut all = std::mem::take(self);
        let outs = std::mem::take(&mut all.outs).into_iter();
        let outs = outs.map(|(id, out)| (id, KeptOut::of(out))).collect();
        all.reserved = Amount::default();
        if parks {
            all = Self {
                dearest: all.dearest,
                ..Self::default()
            };
        }
        (all, outs)
    }

    /// An effect that was read again is as it was.
    pub(crate) fn restores(&mut self, id: Id, kept: KeptOut) {
        self.reserves(id, kept.reserved);
        let out = self.get_mut(id);
        out.attempt = kept.attempt;
        out.state = kept.state;
        out.request = kept.request;
        out.sent = kept.sent;
        out.asked = kept.asked;
        out.rung = kept.rung;
        out.tried = kept.tried;
        out.price = kept.price;
        out.since = kept.since;
        out.outage = kept.outage;
    }

    /// An effect that was recovered is completed by what is kept of it.
    pub(crate) fn completes(&mut self, id: Id, kept: KeptOut) {
        if let Some(out) = self.outs.get_mut(&id) {
            out.since = kept.since;
            if out.is_model() {
                (out.attempt, out.tried) = (kept.attempt, kept.attempt);
                out.request = kept.request;
                out.outage = kept.outage;
            }
        }
    }
}

const IS_OUT: &str = "the effect is out";

impl Effects {
    fn get_mut(&mut self, id: Id) -> &mut Out {
        self.outs.get_mut(&id).expect(IS_OUT)
    }

    /// Changes the state of an effect, and takes it from the lists that its new state does not fit.
    fn moves(&mut self, id: Id, next: OutState) {
        let out = self.outs.get_mut(&id).expect(IS_OUT);
        let (before, agent) = (out.state, out.wish.agent);
        debug_assert!(
            before.may_become(next),
            "{id} is {before:?} and cannot become {next:?}"
        );
        out.state = next;
        if before == OutState::Queued {
            self.unqueue(id, agent);
        }
        if !next.may_begin() {
            self.to_start.remove(&id);
        }
    }

    /// Takes an effect that is not outstanding any more from all lists and sums.
    fn unlist(&mut self, out: &Out) {
        let id = out.wish.id;
        self.unqueue(id, out.wish.agent);
        self.to_start.remove(&id);
        self.reserved = self.reserved.less(out.reserved);
    }

    fn unqueue(&mut self, id: Id, agent: Id) {
        self.short.remove(&id);
        self.behind.remove(&id);
        if let Some(ids) = self.queued.get_mut(&agent) {
            ids.remove(&id);
            if ids.is_empty() {
                self.queued.remove(&agent);
            }
        }
    }

    /// Checks the invariants by a recount. Returns what is wrong.
    pub(crate) fn recount(&self) -> Result<(), String> {
        let state = |id: &Id| self.outs.get(id).map(|out| out.state);
        for id in &self.to_start {
            if !state(id).is_some_and(OutState::may_begin) {
                return Err(format!("{id} is to start and is {:?}", state(id)));
            }
        }
        let queued = self.queued.iter();
        let queued = queued.flat_map(|(agent, ids)| ids.iter().map(move |id| (id, Some(agent))));
        let short = self.short.iter().map(|id| (id, None));
        let behind = self.behind.keys().map(|id| (id, None));
        let mut waiting = BTreeSet::new();
        for (id, agent) in queued.chain(short).chain(behind) {
            let out = self
                .outs
                .get(id)
                .filter(|out| out.state == OutState::Queued);
            let fits = out.is_some_and(|out| agent.is_none_or(|of| out.wish.agent == *of));
            if !fits || !waiting.insert(id) {
                return Err(format!("{id} waits in a queue and is {:?}", state(id)));
            }
        }
        if self.queued.values().any(BTreeSet::is_empty) {
            return Err("an agent without effects waits for slots".to_owned());
        }
        for (id, out) in &self.outs {
            let runs = out.state == OutState::Running && matches!(out.wish.work, Work::Tool(_));
            if runs && self.at_work.get(&(*id, out.attempt)) != Some(&out.touches_world()) {
                return Err(format!("{id} runs and is not at work"));
            }
        }
        let reserved = self.outs.values().map(|out| out.reserved);
        let reserved = reserved.fold(Amount::default(), Amount::plus);
        if self.reserved != reserved {
            let kept = self.reserved;
            return Err(format!("{reserved:?} is reserved, and not {kept:?}"));
        }
        if !self.drawn.iter().is_sorted_by_key(|(line, _)| *line) {
            return Err(format!("escrow is out of order: {:?}", self.drawn));
        }
        Ok(())
    }
}

impl KeptOut {
    /// Leaves out what the log says.
    fn of(out: Out) -> Self {
        let Out {
            branch,
            wish: _,
            digests: _,
            attempt,
            state,
            request,
            reserved,
            sent,
            asked,
            rung,
            tried,
            price,
            inputs: _,
            word: _,
            approved: _,
            since,
            // It is read again.
            asked_in: _,
            outage,
        } = out;
        Self {
            branch,
            attempt,
            state,
            request,
            reserved,
            sent,
            asked,
            rung,
            tried,
            price,
            since,
            outage,
        }
    }
}
