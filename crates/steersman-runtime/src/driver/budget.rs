//! What a session may spend, tokens and money: drawn as escrow ahead of use, so that no crash loop spends unseen.
//!
//! A model call reserves what it may cost at most as far as that is known: what it sends, and the longest answer, at the
//! price of the dearest model that may come to be asked. What
//! is reserved is covered by escrow that is on disk; what is spent is settled with the outcome. At a takeover the open
//! slice counts as spent. A slice is drawn while there is still enough for the call that draws it, so that none waits
//! for the disk but the first, and those that cost far more than the ones before. Of what has no limit nothing is drawn.

use super::draft::{Draft, NewHold};
use super::{Driver, Out, OutState};
use crate::engine::EngineError;
use crate::ledger::{Amount, COST};
use crate::model::BoundModel;
use steersman_machine::commit::{LedgerEntry, Release, Why};
use steersman_machine::context::{self, Request};
use steersman_machine::effect::{Answer, Failure};
use steersman_machine::ids::{Digest, Id, Line};
use steersman_machine::network::{Limit, OnLimit, Per};
use steersman_machine::price::{Price, Tokens, money};
use steersman_machine::search::Why as Stops;

/// What a call cost of which no answer came: what it sent, and what had come.
pub(super) fn lost(out: &Out) -> Amount {
    let came = out.came.div_ceil(BYTES);
    let micros = out.price.map_or(0, |price| {
        price.of(Tokens {
            input: out.sent,
            output: came,
            ..Tokens::default()
        })
    });
    Amount::new(out.sent.saturating_add(came), micros)
}

/// A call was cut or broke off: what it sent and what had come counts as spent.
pub(super) fn abandon_spend(draft: &mut Draft, out: &mut Out) {
    let lost = lost(out);
    out.reserved = Amount::default();
    draft.ledger.push(LedgerEntry::Spend {
        effect: out.wish.id,
        tokens: lost.tokens,
        micros: lost.micros,
    });
}

/// Failures that say that the model was never asked: no connection, or refused ahead of any work.
const UNASKED: &[&str] = &[
    "circuit_open",
    "limited",
    "unreachable",
    "tls",
    "rate_limited",
    "provider_overloaded",
    "provider_error",
    "unauthorized",
    "insufficient_quota",
    "model_not_found",
    "invalid_request",
    "context_overflow",
    "no_tools",
    "not_supported",
    "script_missing",
];

/// Whether a call that failed may have cost something.
pub(super) fn may_be_paid(failure: &Failure, out: &Out) -> bool {
    out.came > 0 || !UNASKED.contains(&&*failure.code)
}

/// What an answer cost: as its usage says. Where that says nothing of what went in or came out, it is estimated, since
/// a budget that only honest servers draw on is none. `written`: tokens that the provider was asked to keep, and kept.
pub(super) fn spent(answer: &Answer, out: &Out, written: u64) -> (u64, Option<u64>) {
    let usage = &answer.usage;
    let input = match usage.input {
        0 => out.sent,
        told => told,
    };
    let asks = answer
        .asks
        .iter()
        .map(|ask| ask.name.len() + ask.args.len());
    let came = answer.text.as_ref().map_or(0, String::len) + asks.sum::<usize>();
    let output = match usage.output {
        0 => out.came.max(came as u64).div_ceil(BYTES),
        told => told,
    };
    let paid = Tokens {
        input,
        cached: usage.cached,
        cache_write: written,
        output,
    };
    // What a model says of its own cost counts where nobody else knows one.
    let micros = out.price.map(|price| price.of(paid)).or(usage.micros);
    (input.saturating_add(output), micros)
}

/// Tokens that a call will take, as far as one can say: what it sends, and the longest answer where that is bounded.
pub(super) fn expected(request: &Request, sent: u64) -> u64 {
    let longest = longest(&request.params).unwrap_or(SHORT_ANSWER);
    sent.saturating_add(longest.min(ANSWER))
}

/// Tokens that a call sends, as far as known.
pub(super) fn sent(request: &Request) -> u64 {
    let sent: u64 = request.segments.iter().map(|s| s.len).sum();
    sent.div_ceil(BYTES)
}

/// The longest answer that is asked for.
fn longest(params: &[(String, serde_json::Value)]) -> Option<u64> {
    // As servers call it.
    let named = |name: &str| matches!(name, "max_tokens" | "max_completion_tokens");
    params.iter().find(|(name, _)| named(name))?.1.as_u64()
}

/// Tokens of an answer of usual length.
const SHORT_ANSWER: u64 = 1_024;
/// Bytes of a token: less than any tokenizer of running text makes of one.
const BYTES: u64 = 3;
/// Tokens of an answer whose length nobody bounded.
const ANSWER: u64 = 8_192;
/// A slice is as large as so many calls of the size that is asked for, so that few lines need to draw one.
const CALLS: u64 = 4;
/// The same of money: a slice that is open when its owner dies counts as spent, and limits of money are tight.
const PAID_CALLS: u64 = 2;
/// What the first call of a session is taken to need, in tokens.
const FIRST: u64 = 10_000;
/// The same where money is drawn: in, and out.
const FIRST_PAID: (u64, u64) = (2_000, 500);

fn drawn(entry: &LedgerEntry) -> Amount {
    match entry {
        LedgerEntry::Escrow { tokens, micros } => Amount::new(*tokens, *micros),
        _ => Amount::default(),
    }
}

/// Which budget.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Budget {
    Tokens,
    Cost,
}

impl Driver {
    /// The limits of the session that are kept here. Those of an answer or a task the machine counts.
    fn limit_of(&self, budget: Budget) -> Option<Limit> {
        let limits = &self.network.as_ref()?.limits;
        let limit = match budget {
            Budget::Tokens => limits.tokens,
            Budget::Cost => limits.cost,
        };
        limit.filter(|limit| limit.per == Per::Session)
    }

    /// What the session may spend: the limits, and once more for each time somebody granted more; the greatest number
    /// where there is none.
    fn allowance(&self) -> Option<Amount> {
        let of = |budget, granted: u64| {
            let limit = self.limit_of(budget)?;
            Some(limit.max.saturating_mul(1 + granted))
        };
        let tokens = of(Budget::Tokens, self.ledger.granted);
        let micros = of(Budget::Cost, self.ledger.granted_cost);
        (tokens.is_some() || micros.is_some())
            .then(|| Amount::new(tokens.unwrap_or(u64::MAX), micros.unwrap_or(u64::MAX)))
    }

    /// Only what is limited.
    fn limited(&self, amount: Amount) -> Amount {
        let of = |budget, n| self.limit_of(budget).map_or(0, |_| n);
        Amount::new(
            of(Budget::Tokens, amount.tokens),
            of(Budget::Cost, amount.micros),
        )
    }

    /// Reserved by the calls that run.
    fn reserved(&self) -> Amount {
        let outs = self.outs.values();
        outs.fold(Amount::default(), |sum, out| sum.plus(out.reserved))
    }

    /// What a call is taken to need before any was seen.
    fn first(&self) -> Amount {
        let models = self.network.iter().flat_map(|network| &network.models);
        let dearest = models.filter_map(|(name, def)| {
            let bound = self.values.models.iter().find(|m| m.name == *name)?;
            let longest = def.max_tokens.unwrap_or(FIRST_PAID.1).min(FIRST_PAID.1);
            Some(bound.price()?.at_most(FIRST_PAID.0, longest))
        });
        Amount::new(FIRST, dearest.max().unwrap_or(0))
    }

    /// Draws a slice in a line that is written anyway, if what is left would not cover the calls that are wished and
    /// one more.
    pub(super) fn draw_escrow(&mut self, draft: &mut Draft) {
        let Some(allowance) = self.allowance() else {
            return;
        };
        let wanted = self.limited(self.dearest.at_least(self.first()));
        let models = self.outs.values().filter(|out| out.is_model());
        // What stands may never begin, and what is held not now.
        let begin = models.filter(|out| !matches!(out.state, OutState::Stands | OutState::Held));
        let wished = begin.filter(|out| out.reserved.is_zero()).count() as u64;
        let before = draft.ledger.iter().map(drawn);
        let before = before.fold(Amount::default(), Amount::plus);
        let open = self.ledger.slice.plus(before).less(self.reserved());
        if !open.covers(wanted.times(wished + 1)) {
            self.draw(draft, wanted, allowance, before);
        }
    }

    /// `before`: what this line has drawn already.
    fn draw(&mut self, draft: &mut Draft, wanted: Amount, allowance: Amount, before: Amount) {
        let taken = self.ledger.spent.plus(self.ledger.slice).plus(before);
        let slice = Amount::new(
            wanted.tokens.saturating_mul(CALLS),
            wanted.micros.saturating_mul(PAID_CALLS),
        );
        let drawn = allowance.less(taken).at_most(slice);
        if !drawn.is_zero() {
            draft.ledger.push(LedgerEntry::Escrow {
                tokens: drawn.tokens,
                micros: drawn.micros,
            });
            // A call waits for it, or will soon.
            draft.urgent = true;
            self.drawn.push_back((draft.n, drawn));
        }
    }

    /// The line with which all that is reserved is covered: when that is on disk, the calls may begin.
    pub(super) fn covered_by(&mut self) -> Line {
        let durable = self.writer.durable;
        self.drawn.retain(|(line, _)| *line > durable);
        let ahead = self.drawn.iter();
        let ahead = ahead.fold(Amount::default(), |sum, (_, drawn)| sum.plus(*drawn));
        let (mut covered, needed) = (self.ledger.slice.less(ahead), self.reserved());
        let mut by = Line::NONE;
        for (line, drawn) in &self.drawn {
            if covered.covers(needed) {
                break;
            }
            (covered, by) = (covered.plus(*drawn), *line);
        }
        by
    }

    /// The most that a call may take: what it sends, and the longest answer of each model that may come to be asked.
    fn bound(&self, id: Id, request: &Request, sent: u64) -> Amount {
        let network = self.network();
        let out = &self.outs[&id];
        let agent = self.branches[&out.branch].snapshot.agent(out.wish.agent);
        let mut bound = Amount::default();
        for name in network.chain(&request.model) {
            let params = context::parameters_for(network, agent, name);
            let longest = longest(&params).unwrap_or(ANSWER);
            let models = &self.values.models;
            let price = models
                .iter()
                .find(|m| m.name == *name)
                .and_then(BoundModel::price);
            let micros = price.map_or(0, |price: Price| price.at_most(sent, longest));
            bound = bound.at_least(Amount::new(sent.saturating_add(longest), micros));
        }
        self.limited(bound)
    }

    /// Reserves what a call may cost. False: it was held or failed instead.
    pub(super) async fn reserve(&mut self, id: Id, request: &Request) -> Result<bool, EngineError> {
        let sent = sent(request);
        self.outs.get_mut(&id).expect("it is out").sent = sent;
        let Some(allowance) = self.allowance() else {
            return Ok(true);
        };
        if !self.outs[&id].reserved.is_zero() {
            return Ok(true);
        }
        let bound = self.bound(id, request, sent);
        self.dearest = self.dearest.at_least(bound);
        let branch = self.outs[&id].branch;
        let held = self.reserved();
        let free = allowance.less(self.ledger.spent);
        let left = free.less(held);
        // What is missing is only reserved by calls that run: it waits for what these leave.
        if !left.covers(bound) && free.covers(bound) {
            self.outs.get_mut(&id).expect("it is out").state = OutState::Queued;
            self.short.insert(id);
            return Ok(false);
        }
        if left.tokens < bound.tokens {
            let (left, bound) = (left.tokens, bound.tokens);
            return self.exhausted(id, Budget::Tokens, left, bound).await;
        }
        if left.micros < bound.micros {
            let (left, bound) = (left.micros, bound.micros);
            return self.exhausted(id, Budget::Cost, left, bound).await;
        }
        if !self.ledger.slice.less(held).covers(bound) {
            let mut draft = self.draft(branch);
            self.draw(&mut draft, bound, allowance, Amount::default());
            self.write(draft).await?;
        }
        self.outs.get_mut(&id).expect("it is out").reserved = bound;
        self.retry_short();
        Ok(true)
    }

    /// The first of those that wait for what others have reserved looks again; if it may begin, so does the next.
    pub(super) fn retry_short(&mut self) {
        if let Some(first) = self.short.pop_first() {
            self.to_start.insert(first);
        }
    }

    async fn exhausted(
        &mut self,
        id: Id,
        budget: Budget,
        left: u64,
        bound: u64,
    ) -> Result<bool, EngineError> {
        let limit = self.limit_of(budget).expect("there is an allowance");
        let branch = self.outs[&id].branch;
        // Who waits behind it may need less, and is not to wait for somebody who never begins.
        self.retry_short();
        let (digest, about, used, ends) = match budget {
            Budget::Tokens => (
                Digest::of(b"tokens"),
                None,
                "the session's budget of tokens is used up",
                Stops::Tokens,
            ),
            Budget::Cost => (
                Digest::of(COST.as_bytes()),
                Some(COST.into()),
                "the session's budget of money is used up",
                Stops::Money,
            ),
        };
        if self.ends_search(id, branch, ends, used) {
            return Ok(false);
        }
        let ask = match budget {
            Budget::Tokens => format!(
                "The next call may need {bound} tokens, and of the budget of {} there are {left}. Go on with as much \
                 again?",
                limit.max
            ),
            Budget::Cost => format!(
                "The next call may cost {}, and of the budget of {} there is {}. Go on with as much again?",
                money(bound),
                money(limit.max),
                money(left)
            ),
        };
        match limit.then {
            OnLimit::Ask => {
                let mut draft = self.draft(branch);
                draft.hold(NewHold {
                    effect: id,
                    why: Why::Budget,
                    digest,
                    by: vec!["any".into()],
                    ask: Some(&ask),
                    due: None,
                    about,
                });
                self.state(id, OutState::Held);
                self.write(draft).await?;
            }
            OnLimit::Answer | OnLimit::Fail | OnLimit::Finish => self.fail(id, "limit", used),
        }
        Ok(false)
    }

    /// A call was paid: what it had reserved is free.
    pub(super) fn unreserve(&mut self, id: Id, spent: Amount) {
        self.dearest = self.dearest.at_least(self.limited(spent));
        if let Some(out) = self.outs.get_mut(&id) {
            out.reserved = Amount::default();
        }
    }

    /// The session rests: what was drawn and not used is given back.
    pub(super) fn settle_escrow(&mut self, draft: &mut Draft) {
        let asks_models = self.outs.values().any(Out::is_model);
        let drawn = draft
            .ledger
            .iter()
            .any(|e| matches!(e, LedgerEntry::Escrow { .. }));
        if asks_models || (self.ledger.slice == Amount::default() && !drawn) {
            return;
        }
        self.settle(draft);
    }

    pub(super) fn settle(&mut self, draft: &mut Draft) {
        self.drawn.clear();
        draft.ledger.push(LedgerEntry::Settle {
            tokens: 0,
            micros: 0,
        });
    }

    /// The owner lets go in order: calls that were cut are paid as far as known, the rest of the slice is given back, and lists
    /// show how it stands. Whether a line was written for it.
    pub(super) async fn give_back(&mut self) -> Result<bool, EngineError> {
        let holds = self.claimed && !self.ledger.slice.is_zero();
        if !holds && !self.is_misshown() {
            return Ok(false);
        }
        let mut draft = self.draft(self.ledger.current);
        let reserved: Vec<Id> = self
            .outs
            .iter()
            .filter(|(_, out)| !out.reserved.is_zero() && out.attempt > 0)
            .map(|(id, _)| *id)
            .collect();
        for id in reserved {
            if let Some(mut out) = self.outs.remove(&id) {
                abandon_spend(&mut draft, &mut out);
                self.outs.insert(id, out);
            }
        }
        self.settle(&mut draft);
        draft.urgent = true;
        self.write(draft).await?;
        Ok(true)
    }

    /// The slice of an owner that died counts as spent, once.
    pub(super) fn settle_earlier(&mut self, draft: &mut Draft) {
        let slice = self.ledger.slice;
        if !slice.is_zero() {
            draft.ledger.push(LedgerEntry::Settle {
                tokens: slice.tokens,
                micros: slice.micros,
            });
        }
    }

    /// Somebody granted as much again.
    pub(super) fn granted(&mut self, draft: &mut Draft, id: Id, by: &str) {
        draft.note(Self::released(id, Why::Budget, Release::Go, by));
        self.state(id, OutState::Ready);
        draft.ready.push(id);
    }
}
