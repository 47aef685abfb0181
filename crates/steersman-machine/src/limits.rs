//! Limits of agents and sessions: each has a default and an outcome that is never silent.

use crate::commit::Kind;
use crate::ids::{Id, Time};
use crate::snapshot::{Agent, Snapshot};
use crate::tick::Cx;
use std::fmt;

/// Limits, each with its default.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Model calls.
    pub model_calls: Limit,
    /// Agent calls.
    pub agent_calls: Limit,
    /// Calls of one exchange at once; the rest waits.
    pub parallel: u32,
    /// Depth; the root is at 1.
    pub depth: u32,
    /// Commits.
    pub ticks: Limit,
    /// Same tool, arguments and result.
    pub same_call: Limit,
    /// Answers that could not be used.
    pub corrections: Limit,
    /// Milliseconds; none: no limit.
    pub wall_time: Option<Limit>,
    /// Tokens; none: no limit.
    pub tokens: Option<Limit>,
}

/// A limit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// At most.
    pub max: u64,
    /// Counted since.
    pub per: Per,
    /// What happens.
    pub then: OnLimit,
    /// Written in the definition: it covers all that the agent started.
    pub written: bool,
}

/// Since when a limit counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Per {
    /// Since the message that is being answered.
    Answer,
    /// Since the call that is being served.
    Task,
    /// Since the session began.
    Session,
}

/// What happens at a limit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OnLimit {
    /// One last model call with tools off.
    Answer,
    /// It fails.
    Fail,
    /// It finishes with what it has.
    Finish,
    /// A person is asked for more.
    Ask,
}

impl Limits {
    /// The limits where a definition writes none.
    pub fn standard(session: bool) -> Self {
        let limit = |max, then| Limit {
            max,
            per: Per::Answer,
            then,
            written: false,
        };
        Self {
            model_calls: limit(50, OnLimit::Answer),
            agent_calls: limit(100, OnLimit::Answer),
            parallel: 8,
            depth: 5,
            ticks: limit(10_000, OnLimit::Fail),
            same_call: limit(3, OnLimit::Answer),
            corrections: limit(3, OnLimit::Fail),
            wall_time: None,
            tokens: session.then_some(Limit {
                max: 2_000_000,
                per: Per::Session,
                then: OnLimit::Ask,
                written: false,
            }),
        }
    }
}

/// A limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// Its key in the definition.
    pub(crate) name: &'static str,
    max: u64,
    /// What happens.
    pub(crate) then: OnLimit,
}

impl Reached {
    pub(crate) fn new(name: &'static str, limit: &Limit) -> Self {
        Self {
            name,
            max: limit.max,
            then: limit.then,
        }
    }

    /// Answers that could not be used.
    pub(crate) fn corrections(max: u64) -> Self {
        Self {
            name: "corrections",
            max,
            then: OnLimit::Fail,
        }
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The limit `{}` of {} is reached.", self.name, self.max)
    }
}

/// The limit that keeps an agent from owing one more step; none if there is none. Defaults count an agent's own calls;
/// a limit that is written covers all that the agent started, so those above count, too: where one of theirs is
/// reached, the agent ends, and they decide when they move.
pub(crate) fn reached(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id, now: Time) -> Option<Reached> {
    let state = snapshot.agent(agent);
    let limits = &cx.network.agent(&state.def).limits;
    let own = own(state, limits, now);
    if own.is_some() {
        return own;
    }
    let mut at = state.parent;
    while let Some(id) = at {
        let above = snapshot.agent(id);
        let limits = &cx.network.agent(&above.def).limits;
        if let Some(reached) = covered(above, limits) {
            return Some(Reached {
                then: OnLimit::Fail,
                ..reached
            });
        }
        at = above.parent;
    }
    // Those of the session cover the root and all it started.
    let root = snapshot.root_agent()?;
    let reached = covered(root, &cx.network.limits)?;
    Some(if root.id == agent {
        reached
    } else {
        Reached {
            then: OnLimit::Fail,
            ..reached
        }
    })
}

fn own(agent: &Agent, limits: &Limits, now: Time) -> Option<Reached> {
    let c = &agent.counters;
    let over = |name, limit: &Limit, count: u64| {
        (count >= most(limit, c.more)).then(|| Reached::new(name, limit))
    };
    if agent.kind == Kind::Model {
        let again = c.same.map_or(0, |(_, times)| u64::from(times));
        let found = over(
            "model_calls",
            &limits.model_calls,
            model_calls(agent, &limits.model_calls),
        )
        .or_else(|| over("same_call", &limits.same_call, again))
        .or_else(|| {
            // The last try is still to be made.
            let tries = u64::from(c.corrections).saturating_sub(1);
            over("corrections", &limits.corrections, tries)
        });
        if found.is_some() {
            return found;
        }
        // One more than allowed was asked for and refused.
        let limit = &limits.agent_calls;
        if asked_agents(agent, limit) > most(limit, c.more) {
            return Some(Reached::new("agent_calls", limit));
        }
    }
    let ticks = over("ticks", &limits.ticks, u64::from(c.ticks));
    ticks
        .or_else(|| {
            limits
                .tokens
                .as_ref()
                .and_then(|l| over("tokens", l, tokens(agent, l)?))
        })
        .or_else(|| {
            let limit = limits.wall_time.as_ref()?;
            (now >= wall_time(agent, limit)).then(|| Reached::new("wall_time", limit))
        })
}

/// The limits of an agent that cover what it started.
fn covered(agent: &Agent, limits: &Limits) -> Option<Reached> {
    let most = |limit: &Limit| most(limit, agent.counters.more);
    let calls = Some(&limits.model_calls).filter(|l| l.written);
    let calls = calls.filter(|l| model_calls(agent, l) >= most(l));
    let tokens = limits.tokens.as_ref().filter(|l| l.written);
    let tokens = tokens.filter(|l| self::tokens(agent, l).is_some_and(|n| n >= most(l)));
    calls
        .map(|l| Reached::new("model_calls", l))
        .or_else(|| tokens.map(|l| Reached::new("tokens", l)))
}

fn model_calls(agent: &Agent, limit: &Limit) -> u64 {
    let c = &agent.counters;
    u64::from(match (limit.per, limit.written) {
        (Per::Answer, false) => c.model_calls,
        (Per::Answer, true) => c.model_calls_below,
        (Per::Task, false) => c.model_calls_task,
        (Per::Task, true) => c.model_calls_below_task,
        (Per::Session, _) => c.model_calls_all,
    })
}

/// Tokens of an answer or task; those of the session are counted from the ledger, which the machine never reads.
fn tokens(agent: &Agent, limit: &Limit) -> Option<u64> {
    match limit.per {
        Per::Answer => Some(agent.counters.tokens_below),
        Per::Task => Some(agent.counters.tokens_below_task),
        Per::Session => None,
    }
}

/// When an agent's limit of time is reached: with as much again for each time that a person allowed it.
pub(crate) fn wall_time(agent: &Agent, limit: &Limit) -> Time {
    agent.counters.began.plus(most(limit, agent.counters.more))
}

/// Whether an agent called as many agents as this limit allows.
pub(crate) fn no_more_agents(agent: &Agent, limit: &Limit) -> bool {
    asked_agents(agent, limit) >= most(limit, agent.counters.more)
}

fn asked_agents(agent: &Agent, limit: &Limit) -> u64 {
    let c = &agent.counters;
    u64::from(match limit.per {
        Per::Answer => c.agent_calls,
        Per::Task | Per::Session => c.agent_calls_task,
    })
}

/// What a limit allows, with as much again for each time that a person said so.
fn most(limit: &Limit, more: u32) -> u64 {
    limit.max.saturating_mul(u64::from(more) + 1)
}

/// Whether a person's answer to the question of a limit is a no.
pub(crate) fn declines(answer: &str) -> bool {
    let answer = answer.trim();
    ["no", "n", "stop"]
        .iter()
        .any(|no| answer.eq_ignore_ascii_case(no))
}
