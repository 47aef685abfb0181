//! Limits of agents and sessions: the one that is reached, and the amounts that are left. Reaching a limit always has a visible
//! outcome.

use crate::network::{DEPTH, Limit, Limits, OnLimit, texts};
use crate::snapshot::{Agent, Counters, Snapshot, Span};
use crate::stored::commit::{Kind, Period};
use crate::stored::engine::Asked;
use crate::stored::ids::{Id, Time};
use crate::tick::Tick;
use crate::tick::results::Results;
use crate::values::price::money;
use crate::view::Cx;

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    key: Key,
    max: u64,
    /// The amount that was counted at that moment.
    used: u64,
    per: Period,
    /// The reaction to it.
    pub(crate) then: OnLimit,
    /// False if an agent above has the limit.
    pub(crate) own: bool,
}

/// Identifies a limit: its key in the definition, and `all` if it belongs to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    name: &'static str,
    all: bool,
}

impl Key {
    /// Returns the key of a limit of an agent.
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
            own: true,
        }
    }

    /// Returns the key of the limit in the definition.
    pub(crate) fn name(&self) -> &'static str {
        self.key.name
    }

    /// Returns the allowed amount as a text: money, a duration or a number.
    pub(crate) fn most(&self) -> String {
        self.words(self.max)
    }

    /// Returns the used amount as a text, in the same form.
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

    /// Returns the allowed amount.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// Returns the party that asks for more: the path of the agent, as scripts name it (`lead/costs`), or the session.
    pub(crate) fn asks(&self, snapshot: &Snapshot, agent: Id) -> String {
        if self.key.all {
            return "session".to_owned();
        }
        let above = std::iter::successors(Some(agent), |id| snapshot.agent(*id).family.parent);
        let name = |id| {
            let agent: &Agent = snapshot.agent(id);
            agent.family.named.as_ref().unwrap_or(&agent.def)
        };
        let mut names: Vec<&str> = above.map(|id| &**name(id)).collect();
        names.reverse();
        names.join("/")
    }

    /// Returns the key of the question by which a person is asked to allow more.
    pub(crate) fn question(&self) -> Asked {
        question(self.key, self.per)
    }

    /// Changes the reaction for an agent below the one that has the limit. The agent ends, and the agent that has the limit
    /// reacts at its own next move. Exception: a router makes no last model call itself, so the member at work makes it instead.
    fn of_another(self, is_at_work: bool) -> Self {
        let then = match self.then {
            OnLimit::Answer if is_at_work => OnLimit::Answer,
            _ => OnLimit::Fail,
        };
        Self {
            then,
            own: false,
            ..self
        }
    }
}

fn question(key: Key, per: Period) -> Asked {
    Asked {
        limit: key.name.into(),
        per,
        all: key.all,
    }
}

/// Returns milliseconds as a definition writes them: `1h`, `90s`, `250ms`.
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

/// The limits of an agent above another one, or of the session.
struct Above<'a> {
    /// The agent that counts for the limits.
    agent: &'a Agent,
    limits: &'a Limits,
    /// True if the limits are those of the session.
    all: bool,
    /// True if only routers are above the other agent, up to this one: then it is the member at work. Agents that a member calls
    /// can be many at once, and are none.
    routes: bool,
}

/// Returns the limits above an agent: those of its ancestors and of the session.
fn above<'a>(cx: &Cx<'a>, snapshot: &'a Snapshot, agent: Id) -> impl Iterator<Item = Above<'a>> {
    let network = cx.network;
    let first = snapshot.agent(agent).family.parent;
    let up = std::iter::successors(first, |id| snapshot.agent(*id).family.parent);
    let agents = up.map(|id| {
        let agent: &Agent = snapshot.agent(id);
        (agent, network.limits_of(agent), false)
    });
    let root = snapshot
        .root_agent()
        .map(|root| (&**root, &network.limits, true));
    let mut routes = true;
    agents.chain(root).map(move |(agent, limits, all)| {
        routes &= agent.kind == Kind::Routed;
        Above {
            agent,
            limits,
            all,
            routes,
        }
    })
}

impl Tick<'_> {
    /// Returns the limit that keeps an agent from one more step, if there is one. A default limit counts an agent's own
    /// calls. A limit in the definition covers all that the agent started, so the limits of ancestors count, too. If one of those
    /// is reached, the agent ends, and the ancestor reacts at its own next move. Model calls count as soon as they begin.
    pub(crate) fn reached(&self, agent: Id) -> Option<Reached> {
        self.reached_without(agent, 0)
    }

    /// Notes the limit that demanded an agent's last answer. The answer itself can reach another limit, which is not why the agent
    /// had to answer. So this is called before the answer and its usage count.
    pub(crate) fn note_demand(&mut self, agent: Id) {
        if !self.agent(agent).counters.limited {
            return;
        }
        let reached = self.reached_without(agent, 1);
        self.results.entry(agent).or_default().demand(reached);
    }

    /// Returns the limit that demanded the answer that an agent gave in this tick.
    pub(crate) fn demanded(&self, agent: Id) -> Option<Reached> {
        self.results.get(&agent).and_then(Results::demanded)
    }

    /// Returns the question whether an agent may have more than a limit. Several agents can ask at once, so it names the agent.
    pub(crate) fn asks_for_more(&self, agent: Id, reached: &Reached) -> String {
        let (max, used) = (reached.most(), reached.used());
        let asks = reached.asks(&self.snapshot, agent);
        let of = [("agent", &*asks), ("name", reached.name())];
        let values = [of[0], of[1], ("max", &*max), ("used", &*used)];
        self.says(agent, texts::MORE, &values)
    }

    /// Does what [`Self::reached`] does, as if this many of the agent's model calls had not begun.
    fn reached_without(&self, agent: Id, begun: u64) -> Option<Reached> {
        let (cx, now) = (self.cx(), self.now);
        let state = self.agent(agent);
        let limits = cx.network.limits_of(state);
        let calls = self.calls(state, &limits.model_calls, false, begun);
        own(state, limits, calls, now).or_else(|| {
            above(&cx, &self.snapshot, agent).find_map(|above| {
                let (of, limits, all) = (above.agent, above.limits, above.all);
                let calls = self.calls(of, &limits.model_calls, all, begun);
                let reached = covered(of, limits, calls, all);
                if of.id != agent {
                    return reached.map(|reached| reached.of_another(above.routes));
                }
                // The limit belongs to the session, and this agent is the root.
                reached
                    .or_else(|| asked_for_agents(of, limits, all))
                    .or_else(|| out_of_time(of, limits, all, now))
            })
        })
    }

    /// Returns the model calls that a limit counts: those that ended, and those that have begun since, also in this tick. Otherwise
    /// agents that work at the same time would pass the limit together. `without`: the number of calls that count as not begun.
    fn calls(&self, agent: &Agent, limit: &Limit, all: bool, without: u64) -> u64 {
        let (c, snapshot) = (&agent.counters, &self.snapshot);
        let ended = count(c, limit, c.model_calls, |s| s.model_calls);
        let key = Key {
            name: "model_calls",
            all,
        };
        let most = most(c, key, limit);
        // A default limit counts the agent's own calls, which it makes one after the other.
        if !limit.written || ended >= most {
            return ended;
        }
        // Most limits are far away: then it is enough to know that not so many calls can have begun.
        let thinkers = self.moves.thinkers();
        let at_most = snapshot.effects.len() + snapshot.calls.len() + thinkers.len();
        if ended.saturating_add(at_most as u64) < most {
            return ended;
        }
        let noted =
            thinkers.filter(|id| self.owes_thought(*id) && snapshot.is_under(*id, agent.id));
        let begun = snapshot.begun_calls(agent.id) + noted.count() as u64;
        ended + begun.saturating_sub(without)
    }
}

/// Returns true if an agent whose turn is over ended by the answer that a limit demanded.
pub(crate) fn has_answered(agent: &Agent) -> bool {
    let turn = &agent.turn;
    agent.counters.limited && turn.answer.is_some() && turn.answer == turn.said
}

/// Returns a reached limit of the agent itself. `calls`: the model calls that its limit counts.
fn own(agent: &Agent, limits: &Limits, calls: u64, now: Time) -> Option<Reached> {
    let c = &agent.counters;
    let model = agent.kind == Kind::Model;
    let repeats = c.same.map_or(0, |(_, times)| u64::from(times));
    // The number of corrections includes one whose answer is still to come.
    let tries = u64::from(c.corrections).saturating_sub(1);
    let over = |name: &'static str, limit: &Limit, count: u64| {
        let key = Key::own(name);
        (count >= most(c, key, limit)).then(|| Reached::new(key, limit, count))
    };
    over("model_calls", &limits.model_calls, calls)
        .or_else(|| over("same_call", &limits.same_call, repeats).filter(|_| model))
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

/// Returns a reached limit of an agent, or of the session, that covers all agents that the agent started. `calls`: the model calls
/// that the limit counts.
fn covered(agent: &Agent, limits: &Limits, calls: u64, all: bool) -> Option<Reached> {
    let c = &agent.counters;
    let key = |name| Key { name, all };
    let over = |name, limit: &Limit, used: u64| {
        let reached = limit.written && used >= most(c, key(name), limit);
        reached.then(|| Reached::new(key(name), limit, used))
    };
    over("model_calls", &limits.model_calls, calls)
        .or_else(|| {
            let limit = &limits.ticks;
            over("ticks", limit, span(c, limit.per).ticks.into())
        })
        .or_else(|| {
            let limit = limits.tokens.as_ref();
            // Limits of the session on the tokens and cost of the whole session are checked by the driver, in the ledger.
            let limit = limit.filter(|l| !(all && l.per == Period::Session))?;
            over("tokens", limit, span(c, limit.per).tokens)
        })
        .or_else(|| {
            let limit = limits.cost.as_ref();
            let limit = limit.filter(|l| !(all && l.per == Period::Session))?;
            over("cost", limit, span(c, limit.per).micros)
        })
}

/// Returns the limit of agent calls if a call beyond it was refused. It ends only the agent that has the limit, not its
/// descendants.
fn asked_for_agents(agent: &Agent, limits: &Limits, all: bool) -> Option<Reached> {
    let name = "agent_calls";
    let (c, key, limit) = (&agent.counters, Key { name, all }, &limits.agent_calls);
    let used = agent_calls(c, limit);
    let over = (limit.written || !all) && used > most(c, key, limit);
    over.then(|| Reached::new(key, limit, used))
}

fn span(counters: &Counters, per: Period) -> &Span {
    match per {
        Period::Answer => &counters.answer,
        Period::Task => &counters.task,
        Period::Session => &counters.session,
    }
}

/// Returns the amount that a limit counts: the agent's own amount for this answer if the limit is a default, otherwise the amount
/// of the agent and its descendants in the period of the limit.
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

/// Returns the allowed amount, with the extra amount that a person granted.
fn most(c: &Counters, key: Key, limit: &Limit) -> u64 {
    let Some(said) = &span(c, limit.per).more else {
        return limit.max;
    };
    let question = question(key, limit.per).to_string();
    let granted = said.iter().find(|(name, _)| **name == *question);
    let granted = granted.map_or(0, |(_, granted)| *granted);
    limit.max.saturating_add(granted)
}

/// Returns true if the agent has used up its corrections, so that an unusable answer is not corrected again.
pub(crate) fn no_more_corrections(agent: &Agent, limit: &Limit) -> bool {
    let c = &agent.counters;
    u64::from(c.corrections) >= most(c, Key::own("corrections"), limit)
}

/// Returns the time limit of an agent or of the session if it is reached.
fn out_of_time(agent: &Agent, limits: &Limits, all: bool, now: Time) -> Option<Reached> {
    let limit = limits.wall_time.as_ref()?;
    let left = time_left(agent, limit, all, now);
    (left <= 0).then(|| of_time(agent, limit, all, now))
}

/// Returns the key of a time limit.
fn time(all: bool) -> Key {
    Key {
        name: "wall_time",
        all,
    }
}

/// Returns a time limit as reached, with the time that was used until `now`.
pub(crate) fn of_time(agent: &Agent, limit: &Limit, all: bool, now: Time) -> Reached {
    let key = time(all);
    let used = agent.counters.used(key.name, limit.per, now);
    Reached::new(key, limit, used)
}

/// Returns the milliseconds that an agent has left, with the extra time that a person granted. A limit per answer does not count
/// time in which the agent waits only for people or for its waits.
fn time_left(agent: &Agent, limit: &Limit, all: bool, now: Time) -> i64 {
    let c = &agent.counters;
    let most = i64::try_from(most(c, time(all), limit)).unwrap_or(i64::MAX);
    let used = c.used("wall_time", limit.per, now);
    most.saturating_sub(i64::try_from(used).unwrap_or(i64::MAX))
}

/// Returns the moment at which the time limit is reached if the agent goes on. `None` while its clock does not run.
pub(crate) fn deadline(agent: &Agent, limit: &Limit, all: bool, now: Time) -> Option<Time> {
    if limit.per == Period::Answer && agent.counters.working == 0 {
        return None;
    }
    let left = time_left(agent, limit, all, now);
    Some(Time(now.0.saturating_add(left)))
}

/// Returns the limit that keeps an agent from calling one more agent, if there is one.
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
            .filter(|above| above.limits.agent_calls.written)
            .find_map(|above| {
                let (name, all) = ("agent_calls", above.all);
                let reached = full(above.agent, above.limits, Key { name, all })?;
                Some(if above.agent.id == agent {
                    reached
                } else {
                    reached.of_another(above.routes)
                })
            })
    })
}

/// Returns the maximum depth for agents below this one: the smallest limit of the agent, its ancestors and the session.
pub(crate) fn deepest(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id) -> u32 {
    let state = snapshot.agent(agent);
    let own = cx.network.limits_of(state).depth;
    let above = above(cx, snapshot, agent).filter_map(|above| above.limits.depth);
    own.into_iter().chain(above).min().unwrap_or(DEPTH)
}

/// Returns true if a person's answer to the question of a limit is a no.
pub(crate) fn declines(answer: &str) -> bool {
    let answer = answer.trim();
    ["no", "n", "stop"]
        .iter()
        .any(|no| answer.eq_ignore_ascii_case(no))
}
