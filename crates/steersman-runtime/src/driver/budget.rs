//! Tokens of a session: drawn as escrow ahead of use, so that no crash loop spends unseen.
//!
//! A model call reserves what it may cost at most as far as that is known: what it sends, and the longest answer. What
//! is reserved is covered by escrow that is on disk; what is spent is settled with the outcome. At a takeover the open
//! slice counts as spent. A slice is drawn while there is still enough for the call that draws it, so that none waits
//! for the disk but the first, and those that cost far more than the ones before.

use super::draft::{Draft, NewHold};
use super::{Driver, Out, OutState};
use crate::engine::EngineError;
use crate::ledger::Amount;
use steersman_machine::commit::{LedgerEntry, Release, Why};
use steersman_machine::context::Request;
use steersman_machine::effect::{Answer, Failure};
use steersman_machine::ids::{Digest, Id, Line};
use steersman_machine::network::{Limit, OnLimit, Per};

/// A call was cut or broke off: what it sent and what had come counts as spent.
pub(super) fn abandon_spend(draft: &mut Draft, out: &mut Out) {
    let tokens = out.sent.saturating_add(out.came.div_ceil(BYTES));
    out.reserved = 0;
    draft.ledger.push(LedgerEntry::Spend {
        effect: out.wish.id,
        tokens,
        micros: 0,
    });
}

/// Failures that say that the model was never asked: no connection, or refused ahead of any work.
const UNASKED: &[&str] = &[
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
/// a budget that only honest servers draw on is none.
pub(super) fn spent(answer: &Answer, out: &Out) -> u64 {
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
    input.saturating_add(output)
}

/// Bytes of a token: less than any tokenizer of running text makes of one.
const BYTES: u64 = 3;
/// Tokens of an answer whose length nobody bounded.
const ANSWER: u64 = 8_192;
/// A slice is as large as so many calls of the size that is asked for, so that few lines need to draw one.
const CALLS: u64 = 4;
/// What the first call of a session is taken to need.
const FIRST: u64 = 10_000;

fn drawn(entry: &LedgerEntry) -> u64 {
    match entry {
        LedgerEntry::Escrow { tokens, .. } => *tokens,
        _ => 0,
    }
}

impl Driver {
    /// Those of an answer or a task the machine counts.
    fn token_limit(&self) -> Option<Limit> {
        let tokens = self.network.as_ref()?.limits.tokens;
        tokens.filter(|limit| limit.per == Per::Session)
    }

    /// What the session may spend: the limit, and once more for each time somebody granted more.
    fn allowance(&self) -> Option<u64> {
        let limit = self.token_limit()?;
        Some(limit.max.saturating_mul(1 + self.ledger.granted))
    }

    /// Reserved by the calls that run.
    fn reserved(&self) -> u64 {
        self.outs.values().map(|out| out.reserved).sum()
    }

    /// Draws a slice in a line that is written anyway, if what is left would not cover the calls that are wished and
    /// one more.
    pub(super) fn draw_escrow(&mut self, draft: &mut Draft) {
        let Some(allowance) = self.allowance() else {
            return;
        };
        let wanted = self.dearest.max(FIRST);
        let models = self.outs.values().filter(|out| out.is_model());
        let wished = models.filter(|out| out.reserved == 0).count() as u64;
        let drawn: u64 = draft.ledger.iter().map(drawn).sum();
        let open = self.ledger.slice.tokens.saturating_add(drawn);
        if open.saturating_sub(self.reserved()) < wanted.saturating_mul(wished + 1) {
            self.draw(draft, wanted, allowance, drawn);
        }
    }

    /// `before`: what this line has drawn already.
    fn draw(&mut self, draft: &mut Draft, wanted: u64, allowance: u64, before: u64) {
        let taken = self.ledger.spent.plus(self.ledger.slice).tokens;
        let left = allowance.saturating_sub(taken).saturating_sub(before);
        let tokens = left.min(wanted.saturating_mul(CALLS));
        if tokens > 0 {
            draft.ledger.push(LedgerEntry::Escrow { tokens, micros: 0 });
            // A call waits for it, or will soon.
            draft.urgent = true;
            self.drawn.push_back((draft.n, tokens));
        }
    }

    /// The line with which all that is reserved is covered: when that is on disk, the calls may begin.
    pub(super) fn covered_by(&mut self) -> Line {
        let durable = self.writer.durable;
        self.drawn.retain(|(line, _)| *line > durable);
        let ahead: u64 = self.drawn.iter().map(|(_, tokens)| tokens).sum();
        let (mut covered, needed) = (
            self.ledger.slice.tokens.saturating_sub(ahead),
            self.reserved(),
        );
        let mut by = Line::NONE;
        for (line, tokens) in &self.drawn {
            if covered >= needed {
                break;
            }
            (covered, by) = (covered.saturating_add(*tokens), *line);
        }
        by
    }

    /// Reserves what a call may cost. False: it was held or failed instead.
    pub(super) async fn reserve(&mut self, id: Id, request: &Request) -> Result<bool, EngineError> {
        let sent: u64 = request.segments.iter().map(|s| s.len).sum();
        let sent = sent.div_ceil(BYTES);
        self.outs.get_mut(&id).expect("it is out").sent = sent;
        let Some(allowance) = self.allowance() else {
            return Ok(true);
        };
        if self.outs[&id].reserved > 0 {
            return Ok(true);
        }
        let longest = request
            .params
            .iter()
            .find(|(name, _)| name == "max_tokens")
            .and_then(|(_, value)| value.as_u64())
            .unwrap_or(ANSWER);
        let bound = sent.saturating_add(longest);
        self.dearest = self.dearest.max(bound);
        let branch = self.outs[&id].branch;
        let held = self.reserved();
        let open = self.ledger.slice.tokens.saturating_sub(held);
        let left = allowance
            .saturating_sub(self.ledger.spent.tokens)
            .saturating_sub(held);
        if left < bound {
            return self.exhausted(id, left, bound).await;
        }
        if open < bound {
            let mut draft = Draft::new(self.next, branch);
            self.draw(&mut draft, bound, allowance, 0);
            self.write(draft).await?;
        }
        self.outs.get_mut(&id).expect("it is out").reserved = bound;
        Ok(true)
    }

    async fn exhausted(&mut self, id: Id, left: u64, bound: u64) -> Result<bool, EngineError> {
        let limit = self.token_limit().expect("there is an allowance");
        let branch = self.outs[&id].branch;
        match limit.then {
            OnLimit::Ask => {
                let ask = format!(
                    "The next call may need {bound} tokens, and of the budget of {} there are {left}. Go on with as much \
                     again?",
                    limit.max
                );
                let mut draft = Draft::new(self.next, branch);
                draft.hold(NewHold {
                    effect: id,
                    why: Why::Budget,
                    digest: Digest::of(b"tokens"),
                    by: "any".into(),
                    ask: Some(&ask),
                    due: None,
                    about: None,
                });
                self.state(id, OutState::Held);
                self.write(draft).await?;
            }
            OnLimit::Answer | OnLimit::Fail | OnLimit::Finish => {
                self.fail(id, "limit", "the session's budget of tokens is used up");
            }
        }
        Ok(false)
    }

    /// A call was paid: what it had reserved is free.
    pub(super) fn unreserve(&mut self, id: Id, spent: u64) {
        self.dearest = self.dearest.max(spent);
        if let Some(out) = self.outs.get_mut(&id) {
            out.reserved = 0;
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

    fn settle(&mut self, draft: &mut Draft) {
        self.drawn.clear();
        draft.ledger.push(LedgerEntry::Settle {
            tokens: 0,
            micros: 0,
        });
    }

    /// The owner lets go in order: calls that were cut are paid as far as known, the rest of the slice is given back.
    /// Whether a line was written for it.
    pub(super) async fn give_back(&mut self) -> Result<bool, EngineError> {
        if self.ledger.slice.is_zero() || !self.claimed {
            return Ok(false);
        }
        let mut draft = Draft::new(self.next, self.ledger.current);
        let reserved: Vec<Id> = self
            .outs
            .iter()
            .filter(|(_, out)| out.reserved > 0 && out.attempt > 0)
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
