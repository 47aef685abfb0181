//! Size of an agent's context and of its closed exchanges, for the policies that make room.

use crate::snapshot::{Agent, Snapshot, Sum, Weight};
use crate::stored::commit::{Kind, Watermark};
use crate::stored::engine::{COMPACT, KEEP_EXCHANGES};
use crate::stored::ids::{Line, Name};
use crate::stored::interaction::{Interaction, Summary};
use imbl::OrdSet;
use std::sync::Arc;

/// The most exchanges whose size is kept; the oldest are forgotten.
const WEIGHED: usize = 1_024;

/// Bytes per token, if no provider reports its count.
const BYTES: u64 = 4;

/// Handles a push. If anything but a call follows an answer without calls, that answer is an exchange of its own and closes.
pub(super) fn pushed(agent: &mut Agent, line: Line, what: &Interaction) {
    let calls = matches!(what, Interaction::Call(_));
    if std::mem::take(&mut agent.bare) && !calls {
        closes(agent, line);
    }
    if agent.kind != Kind::Model || !matches!(what, Interaction::AssistantMessage { .. }) {
        return;
    }
    agent.bare = true;
    if agent.weight.asked > 0 {
        let weight = Arc::make_mut(&mut agent.weight);
        (weight.tokens, weight.since) = (std::mem::take(&mut weight.asked), 0);
    }
}

/// Closes an exchange.
pub(super) fn closes(agent: &mut Agent, line: Line) {
    agent.exchanges += 1;
    let known = &agent.weight;
    if known.open == 0 && known.exchanges.is_empty() {
        return;
    }
    let weight = Arc::make_mut(&mut agent.weight);
    let bytes = std::mem::take(&mut weight.open);
    if weight.exchanges.len() == WEIGHED {
        weight.exchanges.remove(0);
    }
    // Each branch has its own list, so the list takes no more memory than it needs.
    weight.exchanges.reserve_exact(1);
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    weight.exchanges.push(bytes);
    weight.closed = line;
}

/// Counts a closed exchange for each of its tools.
pub(super) fn uses(agent: &mut Agent, tools: OrdSet<Name>) {
    if agent.kind != Kind::Model {
        return;
    }
    for tool in tools {
        let times = agent.used.get(&tool) + 1;
        agent.used.set(tool, times);
    }
}

impl Snapshot {
    /// Moves a boundary.
    pub(super) fn mark(&mut self, mark: &Watermark) {
        let key = (mark.agent, mark.policy.clone());
        self.watermarks.insert(key, mark.exchanges);
        if *mark.policy == *KEEP_EXCHANGES && self.agents.contains_key(&mark.agent) {
            leave(self.agent_mut(mark.agent), mark.exchanges);
        }
    }
}

/// Adds the bytes that were pushed in the agent's last line. If an exchange closed in that line, they belong to it.
pub(super) fn grew(agent: &mut Agent, bytes: u32) {
    let last = agent.last;
    let weight = Arc::make_mut(&mut agent.weight);
    weight.since += u64::from(bytes);
    match weight.exchanges.last_mut() {
        Some(exchange) if weight.closed == last => *exchange = exchange.saturating_add(bytes),
        _ => weight.open += u64::from(bytes),
    }
}

/// Subtracts everything before this exchange, because it is no longer in the context.
pub(super) fn leave(agent: &mut Agent, before: u32) {
    let exchanges = agent.exchanges;
    let gone = agent.weight.gone(exchanges, before);
    if gone == 0 {
        return;
    }
    let weight = Arc::make_mut(&mut agent.weight);
    let bytes: u64 = weight.exchanges.drain(..gone).map(u64::from).sum();
    // A known number of tokens never becomes 0, which would mean unknown.
    let least = weight.tokens.min(1);
    weight.tokens = weight.tokens.saturating_sub(bytes / BYTES).max(least);
}

/// Records a summary of everything before `mark`, or a failed try.
pub(super) fn summed(agent: &mut Agent, mark: u32, summary: &Summary) {
    let exchanges = agent.exchanges;
    if agent.weight.asked > 0 {
        Arc::make_mut(&mut agent.weight).asked = 0;
    }
    let sum = agent.sums.entry(summary.policy.clone()).or_default();
    sum.tried = mark;
    if summary.covers.is_nothing() {
        sum.failed = Some(exchanges);
        return;
    }
    *sum = Sum {
        tried: mark,
        covered: mark,
        body: Some(summary.body),
        failed: None,
    };
    if *summary.policy == *COMPACT {
        leave(agent, mark);
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

    /// Returns the bytes before `mark`, for an agent with this number of exchanges.
    pub(crate) fn before(&self, exchanges: u32, mark: u32) -> u64 {
        let covered = self.gone(exchanges, mark);
        let bytes = self.exchanges.iter().take(covered);
        bytes.copied().map(u64::from).sum()
    }

    /// Returns how many of the weighed exchanges are before this one.
    fn gone(&self, exchanges: u32, before: u32) -> usize {
        let weighed = self.exchanges.len();
        let first = (exchanges as usize).saturating_sub(weighed);
        (before as usize).saturating_sub(first).min(weighed)
    }
}

#[cfg(test)]
mod tests {
    use super::Weight;

    /// The machine does not bound the numbers of an offer.
    #[test]
    fn what_a_provider_tells_is_never_too_large_to_count() {
        let weight = Weight {
            tokens: u64::MAX,
            since: 400,
            ..Weight::default()
        };
        assert_eq!(weight.estimate(), u64::MAX);
    }
}
