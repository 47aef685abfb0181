//! Limits of agents and sessions: each has a default and an outcome that is never silent.

use crate::commit::Kind;
use crate::fold::more;
use crate::ids::{Id, Name, Time};
use crate::price::money;
use crate::snapshot::{Agent, Counters, Snapshot, Span};
use crate::tick::Cx;
use std::fmt;

/// Limits, each with its default.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Model calls.
    pub model_calls: Limit,
    /// Agent calls.
    pub agent_calls: Limit,
    /// Calls of one exchange at once; the rest waits. An agent's is never above the session's.
    pub parallel: u32,
    /// How deep agents may stand, the root at 1; none: as `deepest` says.
    pub depth: Option<u32>,
    /// Commits.
    pub ticks: Limit,
    /// Same tool, arguments and result. An agent's is never above the session's.
    pub same_call: Limit,
    /// Answers that could not be used. An agent's is never above the session's.
    pub corrections: Limit,
    /// Milliseconds; none: no limit.
    pub wall_time: Option<Limit>,
    /// Tokens; none: no limit. Those of the session per session are the driver's to keep: it counts them in the ledger,
    /// whatever became of the branch that spent them.
    pub tokens: Option<Limit>,
    /// Money in millionths of the currency, kept like tokens; none: no limit.
    pub cost: Option<Limit>,
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
    /// Since the call that is being served; at the root as `Session`.
    Task,
    /// Since the agent was started: the root's session. An agent counts on the path of its branch.
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

/// How deep agents may stand where nothing else is written.
pub const DEPTH: u32 = 5;

impl fmt::Display for Per {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "answer",
            Self::Task => "task",
            Self::Session => "session",
        })
    }
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
            depth: None,
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
            cost: None,
        }
    }
}

/// A limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    key: Key,
    max: u64,
    /// What counted against it when that was seen.
    used: u64,
    per: Per,
    /// What happens.
    pub(crate) then: OnLimit,
}

/// Which limit: its key in the definition, and whether it stands there for the whole session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    name: &'static str,
    all: bool,
}

impl Key {
    /// Of an agent.
    pub(crate) fn own(name: &'static str) -> Self {
        Self { name, all: false }
    }
}

impl Reached {
    pub(crate) fn new(key: Key, limit: &Limit, used: u64) -> Self {
        Self {
            key,
            max: limit.max,
            used,
            per: limit.per,
            then: limit.then,
        }
    }

    /// Its key in the definition.
    pub(crate) fn name(&self) -> &'static str {
        self.key.name
    }

    /// How much it allows, in words.
    pub(crate) fn most(&self) -> String {
        self.words(self.max)
    }

    /// How much was used, in words.
    pub(crate) fn used(&self) -> String {
        self.words(self.used)
    }

    fn words(&self, n: u64) -> String {
        match self.key.name {
            "cost" => money(n),
            "wall_time" => lasting(n),
            _ => n.to_string(),
        }
    }

    /// How much it allows.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// The name of the question for more.
    pub(crate) fn question(&self) -> Name {
        question(self.key, self.per)
    }

    /// It is not this agent's own: it ends, and whose it is decides when that one moves. A router makes no model call
    /// that could be the last: where its limit asks for one, it is that of the member at work.
    fn of_another(self, above: Kind) -> Self {
        let then = match (self.then, above) {
            (OnLimit::Answer, Kind::Routed) => OnLimit::Answer,
            _ => OnLimit::Fail,
        };
        Self { then, ..self }
    }
}

fn question(key: Key, per: Per) -> Name {
    more(key.name, &per.to_string(), key.all)
}

/// Milliseconds as people write them in a definition: `1h`, `90s`, `250ms`.
fn lasting(millis: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1_000, "s"),
    ];
    let fits = |unit: &&(u64, &str)| millis >= unit.0 && millis.is_multiple_of(unit.0);
    match UNITS.iter().find(fits) {
        Some((unit, word)) => format!("{}{word}", millis / unit),
        None => format!("{millis}ms"),
    }
}

/// The limits that cover what an agent does beside its own: those above it and those of the session, each with the
/// agent that counts for it.
fn above<'a>(
    cx: &Cx<'a>,
    snapshot: &'a Snapshot,
    agent: Id,
) -> impl Iterator<Item = (&'a Agent, &'a Limits, bool)> {
    let network = cx.network;
    let first = snapshot.agent(agent).parent;
    let up = std::iter::successors(first, |id| snapshot.agent(*id).parent);
    let agents = up.map(|id| {
        let agent: &Agent = snapshot.agent(id);
        (agent, network.limits_of(agent), false)
    });
    let root = snapshot
        .root_agent()
        .map(|root| (&**root, &network.limits, true));
    agents.chain(root)
}

/// The limit that keeps an agent from owing one more step; none if there is none. Defaults count an agent's own calls;
/// a limit that is written covers all that the agent started, so those above count, too: where one of theirs is
/// reached, the agent ends, and they decide when they move.
pub(crate) fn reached(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id, now: Time) -> Option<Reached> {
    let state = snapshot.agent(agent);
    let own = own(state, cx.network.limits_of(state), now);
    own.or_else(|| {
        above(cx, snapshot, agent).find_map(|(above, limits, all)| {
            let reached = covered(above, limits, all);
            if above.id != agent {
                return reached.map(|reached| reached.of_another(above.kind));
            }
            // The session's, at the root.
            reached
                .or_else(|| asked_for_agents(above, limits, all))
                .or_else(|| out_of_time(above, limits, all, now))
        })
    })
}

fn own(agent: &Agent, limits: &Limits, now: Time) -> Option<Reached> {
    let c = &agent.counters;
    let model = agent.kind == Kind::Model;
    let again = c.same.map_or(0, |(_, times)| u64::from(times));
    // The last try is still to be made.
    let tries = u64::from(c.corrections).saturating_sub(1);
    let over = |name: &'static str, limit: &Limit, count: u64| {
        let key = Key::own(name);
        (count >= most(c, key, limit)).then(|| Reached::new(key, limit, count))
    };
    let calls = &limits.model_calls;
    over(
        "model_calls",
        calls,
        count(c, calls, c.model_calls, |s| s.model_calls),
    )
    .or_else(|| over("same_call", &limits.same_call, again).filter(|_| model))
    .or_else(|| over("corrections", &limits.corrections, tries).filter(|_| model))
    .or_else(|| asked_for_agents(agent, limits, false).filter(|_| model))
    .or_else(|| {
        let limit = &limits.ticks;
        over("ticks", limit, count(c, limit, c.ticks, |s| s.ticks))
    })
    .or_else(|| {
        let limit = limits.tokens.as_ref()?;
        over("tokens", limit, span(c, limit.per).tokens)
    })
    .or_else(|| {
        let limit = limits.cost.as_ref()?;
        over("cost", limit, span(c, limit.per).micros)
    })
    .or_else(|| out_of_time(agent, limits, false, now))
}

/// The limits of an agent, or of the session, that cover what the agent started.
fn covered(agent: &Agent, limits: &Limits, all: bool) -> Option<Reached> {
    let c = &agent.counters;
    let key = |name| Key { name, all };
    let over = |name, limit: &Limit, count: fn(&Span) -> u64| {
        let used = count(span(c, limit.per));
        let reached = limit.written && used >= most(c, key(name), limit);
        reached.then(|| Reached::new(key(name), limit, used))
    };
    over("model_calls", &limits.model_calls, |s| s.model_calls.into())
        .or_else(|| over("ticks", &limits.ticks, |s| s.ticks.into()))
        .or_else(|| {
            let limit = limits.tokens.as_ref();
            // Those that the ledger counts are kept by the driver.
            let limit = limit.filter(|l| !(all && l.per == Per::Session))?;
            over("tokens", limit, |s| s.tokens)
        })
        .or_else(|| {
            let limit = limits.cost.as_ref();
            let limit = limit.filter(|l| !(all && l.per == Per::Session))?;
            over("cost", limit, |s| s.micros)
        })
}

/// One more agent than allowed was asked for and refused. That ends whose limit it is, and nobody who works below.
fn asked_for_agents(agent: &Agent, limits: &Limits, all: bool) -> Option<Reached> {
    let name = "agent_calls";
    let (c, key, limit) = (&agent.counters, Key { name, all }, &limits.agent_calls);
    let used = agent_calls(c, limit);
    let over = (limit.written || !all) && used > most(c, key, limit);
    over.then(|| Reached::new(key, limit, used))
}

fn span(counters: &Counters, per: Per) -> &Span {
    match per {
        Per::Answer => &counters.answer,
        Per::Task => &counters.task,
        Per::Session => &counters.session,
    }
}

/// What a limit counts: a default, which is one of the answer, what the agent did itself.
fn count(c: &Counters, limit: &Limit, own: u32, below: impl Fn(&Span) -> u32) -> u64 {
    if limit.written {
        u64::from(below(span(c, limit.per)))
    } else {
        u64::from(own)
    }
}

fn agent_calls(c: &Counters, limit: &Limit) -> u64 {
    count(c, limit, c.agent_calls, |s| s.agent_calls)
}

/// What a limit allows, with what a person granted above it.
fn most(c: &Counters, key: Key, limit: &Limit) -> u64 {
    let Some(said) = &span(c, limit.per).more else {
        return limit.max;
    };
    let question = question(key, limit.per);
    let granted = said.iter().find(|(name, _)| *name == question);
    let granted = granted.map_or(0, |(_, granted)| *granted);
    limit.max.saturating_add(granted)
}

/// Whether an answer that cannot be used was the last that may be corrected.
pub(crate) fn no_more_corrections(agent: &Agent, limit: &Limit) -> bool {
    let c = &agent.counters;
    u64::from(c.corrections) >= most(c, Key::own("corrections"), limit)
}

/// The limit of time of an agent or of the session is reached.
fn out_of_time(agent: &Agent, limits: &Limits, all: bool, now: Time) -> Option<Reached> {
    let limit = limits.wall_time.as_ref()?;
    let left = time_left(agent, limit, all, now);
    (left <= 0).then(|| of_time(agent, limit, all, now))
}

/// The key of a limit of time.
fn time(all: bool) -> Key {
    Key {
        name: "wall_time",
        all,
    }
}

/// A limit of time, as it stands at a moment.
pub(crate) fn of_time(agent: &Agent, limit: &Limit, all: bool, now: Time) -> Reached {
    let key = time(all);
    let used = agent.counters.used(key.name, limit.per, now);
    Reached::new(key, limit, used)
}

/// How many milliseconds an agent has left, with what a person granted. Of an answer the time does not count in which
/// nothing but people and waits keeps it.
fn time_left(agent: &Agent, limit: &Limit, all: bool, now: Time) -> i64 {
    let c = &agent.counters;
    let most = i64::try_from(most(c, time(all), limit)).unwrap_or(i64::MAX);
    let used = c.used("wall_time", limit.per, now);
    most.saturating_sub(i64::try_from(used).unwrap_or(i64::MAX))
}

/// When an agent's limit of time will be reached if it goes on as it does; none while its clock stands.
pub(crate) fn deadline(agent: &Agent, limit: &Limit, all: bool, now: Time) -> Option<Time> {
    if limit.per == Per::Answer && agent.counters.working == 0 {
        return None;
    }
    let left = time_left(agent, limit, all, now);
    Some(Time(now.0.saturating_add(left)))
}

/// The limit that keeps an agent from calling one more agent.
pub(crate) fn no_more_agents(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id) -> Option<Reached> {
    let state = snapshot.agent(agent);
    let full = |agent: &Agent, limits: &Limits, key: Key| {
        let (c, limit) = (&agent.counters, &limits.agent_calls);
        let used = agent_calls(c, limit);
        let full = used >= most(c, key, limit);
        full.then(|| Reached::new(key, limit, used))
    };
    let own = full(state, cx.network.limits_of(state), Key::own("agent_calls"));
    own.or_else(|| {
        above(cx, snapshot, agent)
            .filter(|(_, limits, _)| limits.agent_calls.written)
            .find_map(|(above, limits, all)| {
                let name = "agent_calls";
                let reached = full(above, limits, Key { name, all })?;
                Some(if above.id == agent {
                    reached
                } else {
                    reached.of_another(above.kind)
                })
            })
    })
}

/// How deep agents that this one starts may stand: the least of what is written for it, above it and for the session.
pub(crate) fn deepest(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id) -> u32 {
    let state = snapshot.agent(agent);
    let own = cx.network.limits_of(state).depth;
    let above = above(cx, snapshot, agent).filter_map(|(_, limits, _)| limits.depth);
    own.into_iter().chain(above).min().unwrap_or(DEPTH)
}

/// Whether a person's answer to the question of a limit is a no.
pub(crate) fn declines(answer: &str) -> bool {
    let answer = answer.trim();
    ["no", "n", "stop"]
        .iter()
        .any(|no| answer.eq_ignore_ascii_case(no))
}
