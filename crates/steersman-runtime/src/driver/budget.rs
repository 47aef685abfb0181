//! The budget of a session, in tokens and money. It is drawn as escrow before use, so that a loop of crashes cannot spend unseen.
//!
//! A model call reserves the most that it may cost: the tokens that it sends and the longest answer, at the price of the most expensive
//! model of its chain, as far as these are known. Reservations are covered by escrow that is on disk; spending is settled with
//! the outcome. The slice is the escrow that is drawn and not settled. At a takeover it counts as spent: a call whose outcome was
//! not written may have been paid. So a slice is no larger than the bounds of the outstanding calls, and these calls wait until
//! it is on disk. More is drawn ahead only if it is small compared with the rest of the limit, so that calls need not wait. What calls
//! did not use of their bounds serves the next calls; what is more than that is given back.
//! Nothing is drawn for a budget without a limit.

use super::draft::{Draft, NewHold};
use super::{Job, Out, OutState, Stop};
use crate::budgets::Used;
use crate::ledger::Amount;
use serde_json::{Map, Value as Json};
use std::fmt;
use steersman_machine::context;
use steersman_machine::context::Request;
use steersman_machine::network::{Limit, OnLimit};
use steersman_machine::search::Why as Stops;
use steersman_machine::stored::by::By;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::commit::Period;
use steersman_machine::stored::commit::{LedgerEntry, Release, Usage, Why};
use steersman_machine::stored::ids::{Digest, Id, Line};
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_machine::values::price::{Price, Tokens, digits, micros, money};

/// Usage that a provider reported for a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) micros: Option<u64>,
}

/// Maximum number of tokens, in or out, of a believable usage: ten times the largest context of any model.
const MAX_TOKENS: u64 = 100_000_000;
/// Maximum cost of a believable usage, in millionths: one million units of money.
const MAX_MICROS: u64 = 1_000_000_000_000;
/// A reported answer that is more than this many times as long as the requested maximum is not believable. Some servers ignore
/// the maximum, and some do not count reasoning; none is off by this factor.
const MAX_TIMES: u64 = 1_000;

/// The known part of the cost of a model call before it is made.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Bill {
    price: Option<Price>,
    /// Estimated tokens of the request.
    sent: u64,
    /// The requested maximum of the answer, in tokens.
    longest: Option<u64>,
}

impl Bill {
    pub(super) fn new(request: &Request, price: Option<Price>) -> Self {
        Self {
            price,
            sent: sent(request),
            longest: longest(&request.params),
        }
    }

    /// Returns the most that the call may use.
    pub(super) fn most(self) -> Used {
        let longest = self.longest.unwrap_or(ANSWER);
        Used {
            calls: 1,
            tokens: self.sent.saturating_add(longest),
            micros: self
                .price
                .map_or(0, |price| price.at_most(self.sent, longest)),
        }
    }

    /// Returns what the call used. `result`: `None` if it was cut. `came`: the bytes that it streamed. `most` counts where a provider
    /// reports impossible numbers.
    pub(crate) fn used(
        self,
        result: Option<&Result<Answer, Failure>>,
        came: u64,
        most: Used,
    ) -> Used {
        match result {
            Some(Ok(answer)) => {
                let usage = &answer.usage;
                let told = Claim {
                    input: usage.input,
                    output: usage.output,
                    micros: usage.micros,
                };
                if !is_believable(told, self.longest) {
                    return most;
                }
                let paid = paid(answer, self.sent, came);
                let micros = self.price.map(|price| price.of(paid)).or(usage.micros);
                Used {
                    calls: 1,
                    tokens: paid.input.saturating_add(paid.output),
                    micros: micros.unwrap_or(0),
                }
            }
            Some(Err(failure)) if came == 0 && !failure.was_asked() => Used::default(),
            Some(Err(_)) | None => {
                let lost = lost(self.price, self.sent, came);
                Used {
                    calls: 1,
                    tokens: lost.tokens,
                    micros: lost.micros,
                }
            }
        }
    }
}

/// Returns the cost of a call whose answer was lost: the tokens sent, and the streamed bytes.
fn lost(price: Option<Price>, sent: u64, came: u64) -> Amount {
    let output = came.div_ceil(BYTES);
    let micros = price.map_or(0, |price| {
        price.of(Tokens {
            input: sent,
            output,
            ..Tokens::default()
        })
    });
    Amount::new(sent.saturating_add(output), micros)
}

/// Returns the tokens that an answer is billed for. Missing input or output counts are estimated: otherwise servers that report
/// nothing would never draw on a budget. `came`: the bytes that were streamed.
fn paid(answer: &Answer, sent: u64, came: u64) -> Tokens {
    let usage = &answer.usage;
    let input = match usage.input {
        0 => sent,
        told => told,
    };
    let asks = answer
        .asks
        .iter()
        .map(|ask| ask.name.len() + ask.args.len());
    let text = answer.text.as_ref().map_or(0, String::len) + asks.sum::<usize>();
    let output = match usage.output {
        0 => came.max(text as u64).div_ceil(BYTES),
        told => told,
    };
    Tokens {
        input,
        cached: usage.cached,
        cache_write: usage.cache_write,
        output,
    }
}

/// Returns true if the reported usage is possible. `longest`: the requested maximum of the answer.
fn is_believable(told: Claim, longest: Option<u64>) -> bool {
    let longest = longest.map_or(MAX_TOKENS, |asked| {
        asked.saturating_mul(MAX_TIMES).min(MAX_TOKENS)
    });
    told.input <= MAX_TOKENS
        && told.output <= longest
        && told.micros.is_none_or(|micros| micros <= MAX_MICROS)
}

/// Returns the expected number of tokens of a call: the tokens sent, and the longest answer, or a usual one if the length has no
/// bound.
pub(super) fn expected(request: &Request, sent: u64) -> u64 {
    let longest = longest(&request.params).unwrap_or(SHORT_ANSWER);
    sent.saturating_add(longest.min(ANSWER))
}

/// Returns the estimated number of tokens that a call sends.
pub(super) fn sent(request: &Request) -> u64 {
    let segments = &request.segments;
    let texts = segments.bytes().div_ceil(BYTES);
    texts.saturating_add(segments.file_tokens())
}

/// Returns the requested maximum length of the answer, in tokens.
fn longest(params: &[(String, serde_json::Value)]) -> Option<u64> {
    // The names that servers use.
    let named = |name: &str| matches!(name, "max_tokens" | "max_completion_tokens");
    params.iter().find(|(name, _)| named(name))?.1.as_u64()
}

/// Tokens of an answer of usual length.
const SHORT_ANSWER: u64 = 1_024;
/// Bytes of a token: a low estimate, so that tokens are overestimated.
const BYTES: u64 = 3;
/// Tokens assumed for the longest answer if the request sets no maximum.
const ANSWER: u64 = 8_192;
/// A slice covers this many calls of the requested size, so that few lines need to draw one.
const CALLS: u64 = 4;
/// Calls in a slice of money: fewer, since a slice that is open when its owner dies counts as spent, and limits of money are
/// tight.
const PAID_CALLS: u64 = 2;
/// At most this part (1 / `LITTLE`) of the rest of a limit is drawn ahead. If the owner is killed, at most that is lost, in
/// addition to the calls that were out.
const LITTLE: u64 = 50;
/// Assumed cost of the first call of a session, in tokens.
const FIRST: u64 = 10_000;
/// Tokens assumed for the first call where money is limited: input, output.
const FIRST_PAID: (u64, u64) = (2_000, 500);

fn drawn(entry: &LedgerEntry) -> Amount {
    match entry {
        LedgerEntry::Escrow { tokens, micros } => Amount::new(*tokens, *micros),
        _ => Amount::default(),
    }
}

/// The two kinds of budget.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Budget {
    Tokens,
    Cost,
}

/// The facts about a call that may cost more than is left.
struct Short {
    budget: Budget,
    /// The limit, with the amount that people granted above it.
    allowed: u64,
    spent: u64,
    /// The most that the call may cost.
    bound: u64,
}

impl Short {
    fn words(&self, n: u64) -> String {
        match self.budget {
            Budget::Tokens => format!("{n} tokens"),
            Budget::Cost => money(n),
        }
    }
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "The next call may cost {}: of {} that the session may spend, {} {} spent",
            self.words(self.bound),
            self.words(self.allowed),
            self.words(self.spent),
            match self.budget {
                Budget::Tokens => "are",
                Budget::Cost => "is",
            },
        )
    }
}

impl Job<'_, '_> {
    /// Returns the cost of a call whose answer was lost: the tokens sent, and those streamed so far.
    pub(super) fn lost(&self, out: &Out) -> Amount {
        let (_, came) = self.seen.permits.streamed(out.wish.id, out.attempt);
        lost(out.price, out.sent, came)
    }

    /// Counts a call that was cut or broke off as spent: the tokens sent, and those streamed so far.
    pub(super) fn abandon_spend(&self, draft: &mut Draft, out: &Out) {
        let lost = self.lost(out);
        draft.ledger.push(LedgerEntry::Spend {
            effect: out.wish.id,
            tokens: lost.tokens,
            micros: lost.micros,
        });
    }

    /// Returns true if a failed call may have cost something.
    pub(super) fn may_be_paid(&self, failure: &Failure, out: &Out) -> bool {
        self.seen.permits.streamed(out.wish.id, out.attempt).1 > 0 || failure.was_asked()
    }

    /// Returns the cost of an answer by its usage.
    pub(super) fn spent(&self, answer: &Answer, effect: Id) -> (u64, Option<u64>) {
        let out = &self.d.effects.outs()[&effect];
        let (_, came) = self.seen.permits.streamed(effect, out.attempt);
        let paid = paid(answer, out.sent, came);
        // The model's own statement of its cost counts only if no price is known.
        let micros = out
            .price
            .map(|price| price.of(paid))
            .or(answer.usage.micros);
        (paid.input.saturating_add(paid.output), micros)
    }

    /// Returns the session-wide limit of a budget. Limits of an answer or a task are counted by the machine.
    fn limit_of(&self, budget: Budget) -> Option<Limit> {
        let limits = &self.d.bound.network()?.limits;
        let limit = match budget {
            Budget::Tokens => limits.tokens,
            Budget::Cost => limits.cost,
        };
        limit.filter(|limit| limit.per == Period::Session)
    }

    /// Returns the most that the session may spend: its limits and the amounts that people granted above them; `u64::MAX` for a
    /// budget without a limit. `None` if neither budget has a limit.
    fn allowance(&self) -> Option<Amount> {
        let of = |budget, granted: u64| {
            let limit = self.limit_of(budget)?;
            Some(limit.max.saturating_add(granted))
        };
        let tokens = of(Budget::Tokens, self.d.ledger.granted.tokens);
        let micros = of(Budget::Cost, self.d.ledger.granted.micros);
        (tokens.is_some() || micros.is_some())
            .then(|| Amount::new(tokens.unwrap_or(u64::MAX), micros.unwrap_or(u64::MAX)))
    }

    /// Returns the amount with zero for each budget that has no limit.
    fn limited(&self, amount: Amount) -> Amount {
        let of = |budget, n| self.limit_of(budget).map_or(0, |_| n);
        Amount::new(
            of(Budget::Tokens, amount.tokens),
            of(Budget::Cost, amount.micros),
        )
    }

    /// Returns the assumed need of a call: the most that a call needed so far, or a guess before the first call.
    fn usual(&self) -> Amount {
        let dearest = self.d.effects.dearest();
        let usual = if dearest.is_zero() {
            self.first()
        } else {
            dearest
        };
        self.limited(usual)
    }

    fn first(&self) -> Amount {
        let models = self
            .d
            .bound
            .network()
            .into_iter()
            .flat_map(|network| &network.models);
        let dearest = models.filter_map(|(name, def)| {
            let bound = self
                .d
                .bound
                .values()
                .models
                .iter()
                .find(|m| m.name == *name)?;
            let longest = def.max_tokens.unwrap_or(FIRST_PAID.1).min(FIRST_PAID.1);
            Some(bound.price()?.at_most(FIRST_PAID.0, longest))
        });
        Amount::new(FIRST, dearest.max().unwrap_or(0))
    }

    /// Returns the number of model calls that are about to begin.
    fn wished(&self) -> u64 {
        let models = self.d.effects.outs().values().filter(|out| out.is_model());
        // Effects that a search keeps waiting may never begin, and held ones do not begin now.
        let begin =
            models.filter(|out| !matches!(out.state, OutState::AwaitsSearch | OutState::Held));
        begin.filter(|out| out.reserved.is_zero()).count() as u64
    }

    /// Draws a slice ahead in a line that is written anyway, if the open slice does not cover the wished calls and one more,
    /// and if the slice is small compared with the rest of the limit.
    pub(super) fn draw_escrow(&mut self, draft: &mut Draft) {
        let Some(allowance) = self.allowance() else {
            return;
        };
        let (wanted, wished) = (self.usual(), self.wished());
        let before = draft.ledger.iter().map(drawn);
        let before = before.fold(Amount::default(), Amount::plus);
        let open = self
            .d
            .ledger
            .slice
            .plus(before)
            .less(self.d.effects.reserved());
        let needed = wanted.times(wished + 1);
        if !open.covers(needed) {
            let ahead = self.ahead(wanted, needed, open, allowance);
            self.draw(draft, ahead, allowance, before);
        }
    }

    /// Returns the amount to draw ahead: a slice of several calls, if the need is small compared with the rest of the limit.
    /// `open`: the part of the slice that no call has reserved.
    fn ahead(&self, wanted: Amount, needed: Amount, open: Amount, allowance: Amount) -> Amount {
        let rest = allowance.less(self.d.ledger.spent);
        let of = |calls: u64, wanted: u64, needed: u64, open: u64, rest: u64| {
            let little = rest / LITTLE;
            let slice = wanted.saturating_mul(calls).max(needed);
            let fits = needed > open && needed <= little;
            let drawn = if fits { slice.min(little) } else { 0 };
            drawn.saturating_sub(open)
        };
        Amount::new(
            of(
                CALLS,
                wanted.tokens,
                needed.tokens,
                open.tokens,
                rest.tokens,
            ),
            of(
                PAID_CALLS,
                wanted.micros,
                needed.micros,
                open.micros,
                rest.micros,
            ),
        )
    }

    /// Draws escrow in this line, within the allowance. `before`: the amount that this line has drawn already.
    fn draw(&mut self, draft: &mut Draft, wanted: Amount, allowance: Amount, before: Amount) {
        let taken = self.d.ledger.spent.plus(self.d.ledger.slice).plus(before);
        let drawn = allowance.less(taken).at_most(wanted);
        if !drawn.is_zero() {
            draft.ledger.push(LedgerEntry::Escrow {
                tokens: drawn.tokens,
                micros: drawn.micros,
            });
            // A call waits for this escrow, or will soon.
            draft.urgent = true;
            self.d.effects.draws(draft.n, drawn);
        }
    }

    /// Returns the line that covers all reservations: the calls may begin when it is on disk.
    pub(super) fn covered_by(&mut self) -> Line {
        let slice = self.d.ledger.slice;
        self.d.effects.covered_by(self.seen.durable, slice)
    }

    /// Returns the most that a call may cost: the tokens that it sends, and the longest answer of each model that may be asked.
    fn bound(&self, id: Id, request: &Request, sent: u64) -> Amount {
        let network = self.network();
        let out = &self.d.effects.outs()[&id];
        let agent = self.d.branches.live()[&out.branch]
            .snapshot
            .agent(out.wish.agent);
        let mut bound = Amount::default();
        for name in network.chain(&request.model) {
            let params = context::parameters_for(network, agent, name);
            let longest = longest(&params).unwrap_or(ANSWER);
            let price = self.bound_model(name).and_then(|model| model.price());
            let micros = price.map_or(0, |price: Price| price.at_most(sent, longest));
            bound = bound.at_least(Amount::new(sent.saturating_add(longest), micros));
        }
        self.limited(bound)
    }

    /// Reserves the bound of a call. Returns false if the call was queued, held or failed instead.
    pub(super) fn reserve(&mut self, id: Id, request: &Request) -> Result<bool, Stop> {
        let sent = sent(request);
        self.d.effects.sends(id, sent);
        let Some(allowance) = self.allowance() else {
            return Ok(true);
        };
        if !self.d.effects.outs()[&id].reserved.is_zero() {
            return Ok(true);
        }
        let bound = self.bound(id, request, sent);
        self.d.effects.needs(bound);
        let branch = self.d.effects.outs()[&id].branch;
        let held = self.d.effects.reserved();
        let free = allowance.less(self.d.ledger.spent);
        let left = free.less(held);
        // The limit would allow the call if the running calls had not reserved so much: it waits until they settle.
        if !left.covers(bound) && free.covers(bound) {
            self.d.effects.waits_for_budget(id);
            return Ok(false);
        }
        if left.tokens < bound.tokens {
            let short = Short {
                budget: Budget::Tokens,
                allowed: allowance.tokens,
                spent: self.d.ledger.spent.tokens,
                bound: bound.tokens,
            };
            return self.exhausted(id, short);
        }
        if left.micros < bound.micros {
            let short = Short {
                budget: Budget::Cost,
                allowed: allowance.micros,
                spent: self.d.ledger.spent.micros,
                bound: bound.micros,
            };
            return self.exhausted(id, short);
        }
        let open = self.d.ledger.slice.less(held);
        if !open.covers(bound) {
            let mut draft = self.draft(branch);
            let ahead = self.ahead(bound, bound, open, allowance);
            let drawn = bound.less(open).at_least(ahead);
            self.draw(&mut draft, drawn, allowance, Amount::default());
            self.write(draft)?;
        }
        self.d.effects.reserves(id, bound);
        self.d.effects.retry_short();
        Ok(true)
    }

    fn exhausted(&mut self, id: Id, short: Short) -> Result<bool, Stop> {
        let limit = self.limit_of(short.budget).expect("there is an allowance");
        let branch = self.d.effects.outs()[&id].branch;
        // The calls queued after it may need less, and must not wait for a call that never begins.
        self.d.effects.retry_short();
        let (digest, ends, wants) = match short.budget {
            Budget::Tokens => (
                Digest::of(b"tokens"),
                Stops::Tokens,
                Amount::new(short.bound, 0),
            ),
            Budget::Cost => (
                Digest::of(b"cost"),
                Stops::Money,
                Amount::new(0, short.bound),
            ),
        };
        let sentence = short.to_string();
        if self.ends_search(id, branch, ends, &sentence) {
            return Ok(false);
        }
        match limit.then {
            OnLimit::Ask => {
                let ask = format!("{sentence}. Allow {} more?", short.words(short.bound));
                let mut draft = self.draft(branch);
                draft.ledger.push(LedgerEntry::More {
                    effect: id,
                    tokens: wants.tokens,
                    micros: wants.micros,
                    granted: false,
                });
                draft.hold(NewHold {
                    effect: id,
                    why: Why::Budget,
                    digest,
                    by: vec!["any".into()],
                    ask: Some(&ask),
                    due: None,
                    about: None,
                });
                self.d.effects.holds(id);
                self.write(draft)?;
            }
            OnLimit::Answer | OnLimit::Fail | OnLimit::Finish => {
                self.fail(id, FailureCode::Limit, &sentence);
            }
        }
        Ok(false)
    }

    /// Replaces an impossible usage by the bound of the call, and returns the provider's claim. Taken as reported, such a
    /// number would use up the whole limit or, if it does not fit, count as nothing.
    pub(super) fn disbelieve(&self, effect: Id, usage: &mut Usage) -> Option<Claim> {
        let out = self.d.effects.out(effect)?;
        let network = self.network();
        let agent = self.d.branches.live()[&out.branch]
            .snapshot
            .agent(out.wish.agent);
        let asked = out.asked.as_ref().map(|asked| network.chain(asked));
        let asked = asked.and_then(|chain| chain.get(out.rung).copied());
        let params = asked.map(|name| context::parameters_for(network, agent, name));
        let longest = params.and_then(|params| longest(&params));
        let told = Claim {
            input: usage.input,
            output: usage.output,
            micros: usage.micros,
        };
        if is_believable(told, longest) {
            usage.cached = usage.cached.min(usage.input);
            usage.cache_write = usage.cache_write.min(usage.input);
            usage.reasoning = usage.reasoning.min(usage.output);
            return None;
        }
        (usage.input, usage.cached, usage.cache_write) = (out.sent, 0, 0);
        (usage.output, usage.reasoning) = (longest.unwrap_or(ANSWER), 0);
        usage.micros = None;
        Some(told)
    }

    /// Frees the reservation of a call that was paid.
    pub(super) fn unreserve(&mut self, id: Id, spent: Amount) {
        let needed = self.limited(spent);
        self.d.effects.needs(needed);
        self.d.effects.reserves(id, Amount::default());
    }

    /// Gives back what calls that are over did not use of their bounds, except for what calls need that are about to begin, and for as
    /// much as may be drawn ahead. Otherwise a kill would cost as much as calls that ended before it.
    pub(super) fn give_back_unused(&self, draft: &mut Draft) {
        let Some(allowance) = self.allowance() else {
            return;
        };
        let spends = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Spend { .. });
        // An outcome that waits for its line reserves nothing any more, and its cost is not in the ledger yet.
        let waits = |out: &Out| out.is_model() && out.state == OutState::Over;
        if !draft.ledger.iter().any(spends) || self.d.effects.outs().values().any(waits) {
            return;
        }
        let (spent, slice) = self.d.ledger.spent_after(&draft.ledger);
        let rest = allowance.less(spent);
        let part = |of: u64| Amount::new(rest.tokens / of, rest.micros / of);
        let reserved = self.d.effects.reserved();
        let open = slice.less(reserved);
        let begin = self.usual().times(self.wished());
        if part(LITTLE).at_least(begin).covers(open) {
            return;
        }
        // Half as much as may be drawn ahead stays, so that not every line gives something back.
        let kept = reserved.plus(open.at_most(part(2 * LITTLE).at_least(begin)));
        draft.ledger.push(LedgerEntry::Settle {
            tokens: 0,
            micros: 0,
        });
        if !kept.is_zero() {
            draft.ledger.push(LedgerEntry::Escrow {
                tokens: kept.tokens,
                micros: kept.micros,
            });
        }
    }

    /// Gives back escrow that was drawn and not used, when the session rests.
    pub(super) fn settle_escrow(&mut self, draft: &mut Draft) {
        let asks_models = self.d.effects.outs().values().any(Out::is_model);
        let drawn = draft
            .ledger
            .iter()
            .any(|e| matches!(e, LedgerEntry::Escrow { .. }));
        if asks_models || (self.d.ledger.slice == Amount::default() && !drawn) {
            return;
        }
        self.settle(draft);
    }

    pub(super) fn settle(&mut self, draft: &mut Draft) {
        self.d.effects.settles();
        draft.ledger.push(LedgerEntry::Settle {
            tokens: 0,
            micros: 0,
        });
    }

    /// Returns true if something has to be written before an orderly release.
    pub(crate) fn owes(&mut self) -> bool {
        let holds = self.d.who.has_claimed() && !self.d.ledger.slice.is_zero();
        holds || self.is_misshown()
    }

    /// Counts the calls that were cut as far as their cost is known, gives back the rest of the slice, and updates lists, when
    /// the owner stops in an orderly way.
    pub(super) fn give_back(&mut self) -> Result<(), Stop> {
        let mut draft = self.draft(self.d.ledger.current);
        let reserved: Vec<Id> = self
            .d
            .effects
            .outs()
            .iter()
            .filter(|(_, out)| !out.reserved.is_zero() && out.attempt > 0)
            .map(|(id, _)| *id)
            .collect();
        for id in reserved {
            self.abandon_spend(&mut draft, &self.d.effects.outs()[&id]);
            self.d.effects.reserves(id, Amount::default());
        }
        self.settle(&mut draft);
        draft.urgent = true;
        self.write(draft)
    }

    /// Counts the slice of an owner that died as spent, once.
    pub(super) fn settle_earlier(&mut self, draft: &mut Draft) {
        let slice = self.d.ledger.slice;
        if !slice.is_zero() {
            draft.ledger.push(LedgerEntry::Settle {
                tokens: slice.tokens,
                micros: slice.micros,
            });
        }
    }

    /// Reads the amount that a person allows above a limit: `{"more": AMOUNT}`, in tokens or money, as the limit counts. At least
    /// what the call may need.
    pub(super) fn allowed_more(&self, id: Id, args: &str) -> Result<Amount, String> {
        let hold = self.d.ledger.hold(id, Why::Budget);
        let wants = self.d.ledger.effect(id).map(|record| record.wants);
        let wants = wants.filter(|_| hold.is_some_and(|hold| hold.due.is_none()));
        let wants = wants.unwrap_or_default();
        if wants.is_zero() {
            let why =
                "sessions share this budget: an approval lets the call through, and adds no amount";
            return Err(why.to_owned());
        }
        let given = steersman_machine::values::json::read::<Map<String, Json>>(args);
        let given = given.map_err(|e| format!("this is not a JSON object: {e}"))?;
        let more = match given.get("more") {
            Some(Json::String(text)) if given.len() == 1 => text.clone(),
            Some(Json::Number(number)) if given.len() == 1 => number.to_string(),
            _ => return Err("a question about a budget takes `more` alone, an amount".to_owned()),
        };
        let (amount, needs) = if wants.tokens > 0 {
            let tokens = more.parse().ok();
            let needs = format!("{} tokens", digits(wants.tokens));
            (tokens.map(|tokens| Amount::new(tokens, 0)), needs)
        } else {
            let micros = micros(&more);
            (
                micros.map(|micros| Amount::new(0, micros)),
                money(wants.micros),
            )
        };
        let amount =
            amount.ok_or_else(|| format!("`{more}` is no amount: the call may need {needs}"))?;
        if wants.less(amount).is_zero() {
            Ok(amount)
        } else {
            Err(format!(
                "{more} more is not enough: the call may need {needs}"
            ))
        }
    }

    /// Adds the amount that a call may cost, or the larger amount `more`, to the limit: a person granted it. The call may begin. If
    /// it waits for a budget that sessions share, which is the hold that ends by itself, nothing is added, and that budget does not
    /// hold it up any more.
    pub(super) fn granted(&mut self, draft: &mut Draft, id: Id, by: By, more: Option<Amount>) {
        let hold = self.d.ledger.hold(id, Why::Budget);
        let is_shared = hold.is_some_and(|hold| hold.due.is_some());
        let wants = self.d.ledger.effect(id).filter(|_| !is_shared);
        let wants = wants.map(|record| record.wants);
        let wants = more.unwrap_or(wants.unwrap_or_default());
        draft.ledger.push(LedgerEntry::More {
            effect: id,
            tokens: wants.tokens,
            micros: wants.micros,
            granted: true,
        });
        draft.note(Self::released(id, Why::Budget, Release::Go, by.into()));
        self.d.effects.readies(id);
        draft.ready.push(id);
    }
}
