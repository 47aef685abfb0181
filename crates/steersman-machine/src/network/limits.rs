//! Definitions of the limits of agents and sessions. Each has a default.

use crate::stored::commit::Period;

/// The limits of an agent or a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Maximum number of model calls.
    pub model_calls: Limit,
    /// Maximum number of calls of agents.
    pub agent_calls: Limit,
    /// Maximum number of calls of one exchange that run at the same time; the others wait. An agent's limit is never above the
    /// session's.
    pub parallel: u32,
    /// Maximum depth of agents; the root has depth 1. The lowest one of the agent, its ancestors and the session applies, or
    /// [`DEPTH`] if none of them has one.
    pub depth: Option<u32>,
    /// Maximum number of commits that move the agent.
    pub ticks: Limit,
    /// Maximum number of calls with the same tool, arguments and result. An agent's limit is never above the session's.
    pub same_call: Limit,
    /// Maximum number of answers that could not be used. An agent's limit is never above the session's.
    pub corrections: Limit,
    /// Maximum time, in milliseconds. `None` means no limit.
    pub wall_time: Option<Limit>,
    /// Maximum number of tokens. `None` means no limit. The driver enforces the session's limit: it counts the tokens in the
    /// ledger, also those of superseded or discarded branches.
    pub tokens: Option<Limit>,
    /// Maximum cost, in millionths of the currency, counted like tokens. `None` means no limit.
    pub cost: Option<Limit>,
}

/// One limit of an agent or a session.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The allowed amount.
    pub max: u64,
    /// The period that is counted.
    pub per: Period,
    /// The reaction when the limit is reached.
    pub then: OnLimit,
    /// True if the definition sets the limit. Such a limit also covers all agents that the agent started.
    pub written: bool,
}

/// The reaction to a limit that is reached.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OnLimit {
    /// One last model call is made, with tools off.
    Answer,
    /// The agent fails.
    Fail,
    /// The agent finishes with the text or result that it has.
    Finish,
    /// A person is asked for more.
    Ask,
}

/// Maximum depth of agents if the definition sets none.
pub const DEPTH: u32 = 5;

impl Limits {
    /// Returns the default limits of a session (`session`) or of an agent. Only the session has a default limit of tokens.
    pub fn standard(session: bool) -> Self {
        let limit = |max, then| Limit {
            max,
            per: Period::Answer,
            then,
            written: false,
        };
        Self {
            model_calls: limit(50, OnLimit::Answer),
            agent_calls: limit(100, OnLimit::Answer),
            parallel: 8,
            depth: None,
            ticks: limit(10_000, OnLimit::Fail),
            same_call: limit(3, OnLimit::Answer),
            corrections: limit(3, OnLimit::Fail),
            wall_time: None,
            tokens: session.then_some(Limit {
                max: 2_000_000,
                per: Period::Session,
                then: OnLimit::Ask,
                written: false,
            }),
            cost: None,
        }
    }
}
