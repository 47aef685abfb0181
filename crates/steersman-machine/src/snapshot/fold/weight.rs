//! Size of an agent's context and of its closed exchanges, for the policies that shorten the context.

use crate::snapshot::{Context, LATELY, Snapshot, Sum, Weight};
use crate::stored::commit::{Kind, Watermark};
use crate::stored::engine::{COMPACT, KEEP_EXCHANGES};
use crate::stored::ids::{Line, Name};
use crate::stored::interaction::{Earlier, Interaction, Summary};
use imbl::OrdSet;
use std::sync::Arc;

/// Maximum number of exchanges whose size is kept. The oldest sizes are dropped.
const WEIGHED: usize = 1_024;

/// Bytes per token, for text whose tokens no provider has counted.
const BYTES: u64 = 4;

impl Context {
    /// Records a push. If an interaction other than a call follows an answer without calls, that answer is a closed exchange.
    pub(super) fn pushed(&mut self, kind: Kind, line: Line, what: &Interaction) {
        if std::mem::take(&mut self.bare) && !what.joins_answer() {
            self.closes(line);
        }
        if kind == Kind::Model && matches!(what, Interaction::Earlier(Earlier::Assistant { .. })) {
            self.closed_earlier(line);
        }
        if kind != Kind::Model || !matches!(what, Interaction::AssistantMessage { .. }) {
            return;
        }
        self.bare = true;
        if self.weight.asked > 0 {
            let weight = Arc::make_mut(&mut self.weight);
            (weight.tokens, weight.since) = (std::mem::take(&mut weight.asked), 0);
        }
    }

    /// Counts an exchange that was closed elsewhere. [`Self::grew`] gives it its size.
    fn closed_earlier(&mut self, line: Line) {
        self.exchanges += 1;
        let weight = Arc::make_mut(&mut self.weight);
        weight.exchanges.push(0);
        weight.closed = line;
    }

    /// Closes an exchange.
    pub(super) fn closes(&mut self, line: Line) {
        self.exchanges += 1;
        let known = &self.weight;
        if known.open == 0 && known.exchanges.is_empty() {
            return;
        }
        let weight = Arc::make_mut(&mut self.weight);
        let bytes = std::mem::take(&mut weight.open);
        if weight.exchanges.len() == WEIGHED {
            weight.exchanges.remove(0);
        }
        // Each branch has its own list, so its memory is allocated exactly.
        weight.exchanges.reserve_exact(1);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        weight.exchanges.push(bytes);
        weight.closed = line;
    }

    /// Counts a closed exchange for each of its tools.
    pub(super) fn uses(&mut self, tools: OrdSet<Name>) {
        for tool in tools {
            let times = self.used.get(&tool) + 1;
            self.used.set(tool.clone(), times);
            self.used_in(tool, self.exchanges);
        }
    }

    /// Records the newest exchange in which a tool was called.
    fn used_in(&mut self, tool: Name, exchange: u32) {
        let known = self.lately.get(&tool).map_or(&[][..], |known| known);
        let skip = (known.len() + 1).saturating_sub(LATELY);
        let all = known.iter().skip(skip).copied().chain([exchange]);
        let all = all.collect();
        self.lately.insert(tool, all);
    }

    /// Adds the bytes that were pushed in the agent's last line. If an exchange closed in that line, they belong to it. Exchanges
    /// that were closed elsewhere came in one line, so each gets an equal part.
    pub(super) fn grew(&mut self, last: Line, bytes: u32) {
        let weight = Arc::make_mut(&mut self.weight);
        weight.since += u64::from(bytes);
        let all = &mut weight.exchanges;
        if weight.closed == last && all.len() > 1 && all.iter().all(|bytes| *bytes == 0) {
            let each = bytes / u32::try_from(all.len()).unwrap_or(u32::MAX);
            all.fill(each);
            return;
        }
        match weight.exchanges.last_mut() {
            Some(exchange) if weight.closed == last => *exchange = exchange.saturating_add(bytes),
            _ => weight.open += u64::from(bytes),
        }
    }

    /// Subtracts the first `before` exchanges, because they are no longer in the context.
    fn leave(&mut self, before: u32) {
        let gone = self.weight.gone(self.exchanges, before);
        if gone == 0 {
            return;
        }
        let weight = Arc::make_mut(&mut self.weight);
        let bytes: u64 = weight.exchanges.drain(..gone).map(u64::from).sum();
        // A known number of tokens never becomes 0, which would mean unknown.
        let least = weight.tokens.min(1);
        weight.tokens = weight.tokens.saturating_sub(bytes / BYTES).max(least);
    }

    /// Records a summary of all exchanges up to `mark`, or a failed attempt.
    pub(super) fn summed(&mut self, mark: u32, summary: &Summary) {
        if self.weight.asked > 0 {
            Arc::make_mut(&mut self.weight).asked = 0;
        }
        let sum = self.sums.entry(summary.policy.clone()).or_default();
        sum.tried = mark;
        if summary.covers.is_nothing() {
            sum.failed = Some(self.exchanges);
            return;
        }
        *sum = Sum {
            tried: mark,
            covered: mark,
            body: Some(summary.body),
            failed: None,
        };
        if *summary.policy == *COMPACT {
            self.leave(mark);
        }
    }
}

impl Snapshot {
    /// Moves a boundary.
    pub(super) fn mark(&mut self, mark: &Watermark) {
        let key = (mark.agent, mark.policy.clone());
        self.watermarks.insert(key, mark.exchanges);
        if *mark.policy == *KEEP_EXCHANGES && self.agents.contains_key(&mark.agent) {
            let context = &mut self.agent_mut(mark.agent).context;
            context.leave(mark.exchanges);
        }
    }
}

impl Weight {
    /// Estimates the tokens of the next request: the provider's count of the last request and the bytes pushed since, or else all
    /// known bytes.
    pub fn estimate(&self) -> u64 {
        if self.tokens > 0 {
            return self.tokens.saturating_add(self.since / BYTES);
        }
        let exchanges: u64 = self.exchanges.iter().copied().map(u64::from).sum();
        (exchanges + self.open) / BYTES
    }

    /// Returns the bytes of the exchanges up to `mark`, for an agent with this number of exchanges.
    pub(crate) fn before(&self, exchanges: u32, mark: u32) -> u64 {
        let covered = self.gone(exchanges, mark);
        let bytes = self.exchanges.iter().take(covered);
        bytes.copied().map(u64::from).sum()
    }

    /// Returns how many of the exchanges with a known size are among the first `before` ones of the agent.
    fn gone(&self, exchanges: u32, before: u32) -> usize {
        let weighed = self.exchanges.len();
        let first = (exchanges as usize).saturating_sub(weighed);
        (before as usize).saturating_sub(first).min(weighed)
    }
}

#[cfg(test)]
mod tests {
    use super::Weight;

    /// The machine takes the numbers of an offer as they are, however large.
    #[test]
    fn a_provider_s_count_cannot_overflow_the_estimate() {
        let weight = Weight {
            tokens: u64::MAX,
            since: 400,
            ..Weight::default()
        };
        assert_eq!(weight.estimate(), u64::MAX);
    }
}
