//! How large an agent's context is, and which of its exchanges are closed: what policies that make room decide upon.

use crate::commit::{Kind, Watermark};
use crate::context::{COMPACT, KEEP_EXCHANGES};
use crate::ids::{Line, Name};
use crate::interaction::{Interaction, Summary};
use crate::snapshot::{Agent, Snapshot, Sum, Weight};
use imbl::OrdSet;
use std::sync::Arc;

/// Of more exchanges the oldest are not weighed any more.
const WEIGHED: usize = 1_024;

/// A token has so many bytes where no provider says how many it counted.
const BYTES: u64 = 4;

/// Something is pushed. Where anything but a call comes above an answer without calls, that answer was an exchange of its own.
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

/// An exchange is closed.
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
    // Each branch has a list of its own: no longer than it must be.
    weight.exchanges.reserve_exact(1);
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    weight.exchanges.push(bytes);
    weight.closed = line;
}

/// An exchange with these tools closed.
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
    /// A boundary moved.
    pub(super) fn mark(&mut self, mark: &Watermark) {
        let key = (mark.agent, mark.policy.clone());
        self.watermarks.insert(key, mark.exchanges);
        if *mark.policy == *KEEP_EXCHANGES && self.agents.contains_key(&mark.agent) {
            leave(self.agent_mut(mark.agent), mark.exchanges);
        }
    }
}

/// So much was pushed in this line. What closed an exchange belongs to it.
pub(super) fn grew(agent: &mut Agent, bytes: u32) {
    let last = agent.last;
    let weight = Arc::make_mut(&mut agent.weight);
    weight.since += u64::from(bytes);
    match weight.exchanges.last_mut() {
        Some(exchange) if weight.closed == last => *exchange = exchange.saturating_add(bytes),
        _ => weight.open += u64::from(bytes),
    }
}

/// What lies before this exchange is not in the context any more.
pub(super) fn leave(agent: &mut Agent, before: u32) {
    let exchanges = agent.exchanges;
    let gone = agent.weight.gone(exchanges, before);
    if gone == 0 {
        return;
    }
    let weight = Arc::make_mut(&mut agent.weight);
    let bytes: u64 = weight.exchanges.drain(..gone).map(u64::from).sum();
    // What is known is never said to be nothing.
    let least = weight.tokens.min(1);
    weight.tokens = weight.tokens.saturating_sub(bytes / BYTES).max(least);
}

/// A summary was written for all before `mark`, or could not be.
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
    /// Tokens of the next request: as the provider counted the one before, and what came since; else what is known in bytes.
    pub fn estimate(&self) -> u64 {
        if self.tokens > 0 {
            return self.tokens.saturating_add(self.since / BYTES);
        }
        let exchanges: u64 = self.exchanges.iter().copied().map(u64::from).sum();
        (exchanges + self.open) / BYTES
    }

    /// Bytes of what lies before `mark`, of an agent with so many exchanges.
    pub(crate) fn before(&self, exchanges: u32, mark: u32) -> u64 {
        let covered = self.gone(exchanges, mark);
        let bytes = self.exchanges.iter().take(covered);
        bytes.copied().map(u64::from).sum()
    }

    /// How many of the exchanges that are weighed lie before this one.
    fn gone(&self, exchanges: u32, before: u32) -> usize {
        let weighed = self.exchanges.len();
        let first = (exchanges as usize).saturating_sub(weighed);
        (before as usize).saturating_sub(first).min(weighed)
    }
}

#[cfg(test)]
mod tests {
    use super::Weight;

    /// The machine takes what is offered: nobody bounds it before.
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
