//! Summary of a checked definition, for the screen that follows a check without errors.

use std::fmt;
use steersman_machine::network::search::{MOST, Method, Plan, Scorer};
use steersman_machine::network::{AgentDef, Network, Offer, OnLimit, Reflect, Source};
use steersman_machine::stored::commit::Period;
use steersman_machine::stored::ids::Digest;
use steersman_machine::stored::interaction::Class;
use steersman_machine::values::price::{digits, money};

/// Summary of a definition: counts, effects, worst case, configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Name of the network.
    pub name: String,
    /// Digest of the network.
    pub digest: Digest,
    /// Number of agents, people not counted.
    pub agents: usize,
    /// Number of people.
    pub people: usize,
    /// Number of tools, built-in ones not counted.
    pub tools: usize,
    /// Number of events that may arrive.
    pub events: usize,
    /// Number of schedules that begin sessions.
    pub schedules: usize,
    /// Number of budgets that sessions share.
    pub budgets: usize,
    /// Number of tests.
    pub tests: usize,
    /// Tools by class, from `pure` to `unsafe`; classes without tools are absent.
    pub effects: Vec<(Class, Vec<Tool>)>,
    /// Upper bounds of one answer.
    pub worst: Worst,
    /// Config values and their sources.
    pub config: Vec<Value>,
    /// Secrets: name, and the place that each is read from.
    pub secrets: Vec<(String, String)>,
}

/// A tool in a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Name of the tool.
    pub name: String,
    /// Approvals: the condition, or `None` if it always holds, and the people asked in order.
    pub approved: Vec<(Option<String>, String)>,
}

/// Upper bounds before a limit stops the session or asks a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    /// Maximum number of model calls: the session's limit if it is written, else that of the first entry.
    pub model_calls: u64,
    /// Period over which the model calls are counted.
    pub per: Period,
    /// Outcome when the limit of model calls is reached.
    pub then: OnLimit,
    /// Maximum tokens of all agents together, and the period.
    pub tokens: Option<(u64, Period)>,
    /// Maximum cost in millionths, and the period.
    pub cost: Option<(u64, Period)>,
    /// Maximum wall time of the root in milliseconds, and the period.
    pub wall_time: Option<(u64, Period)>,
    /// Model calls of searches, judges and reviewers: those that `model_calls` counts, and those in addition.
    pub beside: Vec<Beside>,
}

/// Model calls that an agent or a tool causes, for each answer or tool call: by a search, a judge or a reviewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Name of the agent that answers, or of the reviewed tool.
    pub of: String,
    /// True if `of` is a tool; the calls then happen for each call of it.
    pub is_tool: bool,
    /// True if a limit of the definition counts these calls: they are among those of `model_calls`. False if they are in addition.
    pub counted: bool,
    /// Maximum number of model calls by each source: `in its search`, `by its judge critic`, `by its reviewer critic`.
    pub calls: Vec<(u64, String)>,
}

impl Beside {
    /// Returns the calls of all agents and tools of a network that search, are judged or are reviewed.
    pub fn all(network: &Network) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let mut add = |of: &str, is_tool, counted, calls: Vec<(u64, String)>| {
            let same = |one: &&mut Self| {
                *one.of == *of && (one.is_tool, one.counted) == (is_tool, counted)
            };
            match all.iter_mut().find(same) {
                _ if calls.is_empty() => {}
                Some(one) => one.calls.extend(calls),
                None => all.push(Self {
                    of: of.to_owned(),
                    is_tool,
                    counted,
                    calls,
                }),
            }
        };
        for agent in network.agents.values() {
            add(&agent.name, false, false, searches(network, agent));
            let reflect = agent.reflect.as_ref();
            let rounds = reflect.map_or(0, |reflect| u64::from(reflect.rounds));
            let (counted, calls) = reviews(network, reflect, rounds, &[agent]);
            add(&agent.name, false, counted, calls);
        }
        for tool in network.tools.values() {
            let offers = |agent: &&AgentDef| {
                let mut offers = agent.offers();
                offers.any(|used| matches!(&used.of, Offer::Tool(name) if *name == tool.name))
            };
            let callers: Vec<&AgentDef> = network.agents.values().filter(offers).collect();
            let (counted, calls) = reviews(network, tool.reflect.as_ref(), 1, &callers);
            add(&tool.name, true, counted, calls);
        }
        all.sort_by_key(|one| !one.counted);
        all
    }
}

/// Returns the maximum number of model calls of an answer of an agent.
fn most(network: &Network, name: &str) -> u64 {
    let limits = network.agents.get(name).map(|a| a.limits_in(None));
    limits.map_or(0, |limits| limits.model_calls.max)
}

/// Returns the calls of a reviewer in this many rounds, and true if a limit counts them. `callers`: the agents that start it.
fn reviews(
    network: &Network,
    reflect: Option<&Reflect>,
    rounds: u64,
    callers: &[&AgentDef],
) -> (bool, Vec<(u64, String)>) {
    let Some(by) = reflect.and_then(|reflect| reflect.by.as_ref()) else {
        return (false, Vec::new());
    };
    let limit = covering(network, callers);
    let calls = rounds.saturating_mul(most(network, by));
    let calls = calls.min(limit.unwrap_or(u64::MAX));
    (
        limit.is_some(),
        vec![(calls, format!("by its reviewer {by}"))],
    )
}

/// Returns the smallest limit of model calls that counts all that these agents start: the session's, or one of their own, or that of
/// the agents with which sessions begin. Only a limit that is written counts more than an agent's own calls.
fn covering(network: &Network, callers: &[&AgentDef]) -> Option<u64> {
    let written = |agent: &AgentDef| {
        let limit = agent.limits_in(None).model_calls;
        limit.written.then_some(limit.max)
    };
    // The greatest of them, if all of them have one.
    let all = |agents: &[&AgentDef]| {
        let limits: Option<Vec<u64>> = agents.iter().map(|agent| written(agent)).collect();
        limits.and_then(|limits| limits.into_iter().max())
    };
    let session = Some(network.limits.model_calls).filter(|limit| limit.written);
    let entries: Vec<&AgentDef> = network
        .entry
        .iter()
        .map(|name| network.agent(name))
        .collect();
    let limits = [session.map(|limit| limit.max), all(callers), all(&entries)];
    limits.into_iter().flatten().min()
}

/// Returns the calls of an agent's search and of its judge. They are made on branches of their own, where each branch counts for itself,
/// so no limit of model calls bounds their sum.
fn searches(network: &Network, agent: &AgentDef) -> Vec<(u64, String)> {
    let own = most(network, &agent.name);
    let plans = agent.models().filter_map(|model| model.search.as_deref());
    let Some(plan) = plans.max_by_key(|plan| searched(plan, own).0) else {
        return Vec::new();
    };
    let (asked, judged) = searched(plan, own);
    let mut calls = vec![(asked, "in its search".to_owned())];
    if let Some(Scorer::Agent(judge)) = &plan.score {
        let asked = judged.saturating_mul(most(network, judge));
        calls.push((asked, format!("by its judge {judge}")));
    }
    calls
}

/// Returns the maximum number of model calls that an agent makes in a search, and of nodes that are judged.
fn searched(plan: &Plan, own: u64) -> (u64, u64) {
    let n = u64::from(plan.n);
    let depth = u64::from(plan.depth).min(own);
    let blocks = n.saturating_mul(depth);
    let (blocks, judged) = match plan.method {
        Method::Beam => (blocks.min(u64::from(MOST)), blocks.min(u64::from(MOST))),
        Method::BestOf | Method::Rollouts | Method::Mcts => (blocks, n),
    };
    let calls = plan.calls.map_or(blocks, |calls| blocks.min(calls));
    (calls, judged.min(calls))
}

/// A config value in a summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Name of the value.
    pub name: String,
    /// The environment variable that may set it.
    pub env: Option<String>,
    /// The default value.
    pub default: Option<serde_json::Value>,
    /// True if the value is read at each use instead of being bound to a session.
    pub live: bool,
}

impl Summary {
    /// Summarises a network.
    pub fn of(network: &Network, tests: usize) -> Self {
        let own = || {
            let tools = network.tools.values();
            tools.filter(|tool| !matches!(tool.source, Source::BuiltIn(_)))
        };
        let classes = [Class::Pure, Class::Read, Class::Idempotent, Class::Unsafe];
        let effects = classes.into_iter().filter_map(|class| {
            let of_class = own().filter(|tool| tool.effect == class);
            let tools: Vec<Tool> = of_class
                .map(|tool| Tool {
                    name: tool.name.to_string(),
                    approved: approvals(network, &tool.name),
                })
                .collect();
            (!tools.is_empty()).then_some((class, tools))
        });
        let entry = network.entry.first().map(|name| network.agent(name));
        let limits = entry.map_or(&network.limits, |agent| agent.limits_in(None));
        let calls = if network.limits.model_calls.written {
            network.limits.model_calls
        } else {
            limits.model_calls
        };
        Self {
            name: network.name.to_string(),
            digest: network.digest,
            agents: network.agents.len(),
            people: network.people.len(),
            tools: own().count(),
            events: network.events.len(),
            schedules: network.schedules.len(),
            budgets: network.budgets.len(),
            tests,
            effects: effects.collect(),
            worst: Worst {
                model_calls: calls.max,
                per: calls.per,
                then: calls.then,
                tokens: network.limits.tokens.map(|l| (l.max, l.per)),
                cost: network.limits.cost.map(|l| (l.max, l.per)),
                wall_time: network.limits.wall_time.map(|l| (l.max, l.per)),
                beside: Beside::all(network),
            },
            config: network
                .config
                .iter()
                .map(|(name, config)| Value {
                    name: name.to_string(),
                    env: config.env.clone(),
                    default: config.default.clone(),
                    live: config.live,
                })
                .collect(),
            secrets: network
                .secrets
                .iter()
                .map(|(name, secret)| {
                    let place = match &secret.source {
                        steersman_machine::network::SecretSource::Env(name) => name.clone(),
                        steersman_machine::network::SecretSource::File(path) => path.clone(),
                    };
                    (name.to_string(), place)
                })
                .collect(),
        }
    }
}

/// Returns the approvals of a tool: its own, and those of the agents that offer it.
fn approvals(network: &Network, tool: &str) -> Vec<(Option<String>, String)> {
    let own = network.tool(tool).approve.iter();
    let offered = network
        .agents
        .values()
        .flat_map(AgentDef::offers)
        .filter(|offered| match &offered.of {
            Offer::Tool(name) => &**name == tool,
            Offer::Agent(_) => false,
        })
        .flat_map(|offered| &offered.approve);
    let mut all: Vec<(Option<String>, String)> = Vec::new();
    for approve in own.chain(offered) {
        let when = Some(approve.when.source.to_string()).filter(|when| when != "true");
        let line: Vec<&str> = approve.line().map(|asked| &*asked.by).collect();
        let approval = (when, line.join(", then "));
        if !all.contains(&approval) {
            all.push(approval);
        }
    }
    all
}

fn many(count: usize, one: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {one}s")
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.name, self.digest.short())?;
        write!(
            f,
            "{}, {}",
            many(self.agents, "agent"),
            many(self.tools, "tool")
        )?;
        let people = if self.people == 1 { "person" } else { "people" };
        for (count, text) in [
            (self.people, format!("{} {people}", self.people)),
            (self.events, many(self.events, "event")),
            (self.schedules, many(self.schedules, "schedule")),
            (self.budgets, many(self.budgets, "budget")),
            (self.tests, many(self.tests, "test")),
        ] {
            if count > 0 {
                write!(f, ", {text}")?;
            }
        }
        writeln!(f, ".")?;
        let effects: Vec<String> = self
            .effects
            .iter()
            .map(|(class, tools)| {
                let tools: Vec<String> = tools.iter().map(Tool::to_string).collect();
                format!("{}: {}", class.word(), tools.join(", "))
            })
            .collect();
        if !effects.is_empty() {
            writeln!(f, "  effects    {}", effects.join("   "))?;
        }
        writeln!(f, "  worst case {}", self.worst)?;
        for (n, value) in self.config.iter().enumerate() {
            let head = if n == 0 { "bound" } else { "" };
            writeln!(f, "  {head:<10} {value}")?;
        }
        for (n, (name, place)) in self.secrets.iter().enumerate() {
            let head = if n == 0 { "secrets" } else { "" };
            writeln!(f, "  {head:<10} secrets.{name} from {place}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (when, by) in &self.approved {
            match when {
                Some(when) => write!(f, " (approved by {by} where {when})")?,
                None => write!(f, " (approved by {by})")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Worst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per = |per| match per {
            Period::Answer => "an answer",
            Period::Task => "a task",
            Period::Session => "a session",
        };
        let then = match self.then {
            OnLimit::Answer => "then a forced answer",
            OnLimit::Fail => "then it fails",
            OnLimit::Finish => "then it finishes",
            OnLimit::Ask => "then a person is asked",
        };
        write!(
            f,
            "{} model calls {}, {then}",
            digits(self.model_calls),
            per(self.per)
        )?;
        if let Some((tokens, of)) = self.tokens {
            write!(f, "; {} tokens {}", digits(tokens), per(of))?;
        }
        match self.cost {
            Some((cost, of)) => write!(f, "; costs {} {}", money(cost), per(of))?,
            None => f.write_str("; no cost limit")?,
        }
        for beside in &self.beside {
            write!(f, "; {beside}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = if self.is_tool { "call" } else { "answer" };
        let how = if self.counted { "among" } else { "beside" };
        write!(f, "{how} them for each {each} of {}: ", self.of)?;
        for (k, (calls, who)) in self.calls.iter().enumerate() {
            let comma = if k > 0 { ", " } else { "" };
            write!(f, "{comma}{} {who}", digits(*calls))?;
        }
        Ok(())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "config.{}", self.name)?;
        if self.live {
            let env = self.env.as_deref().unwrap_or("its default");
            return write!(f, ": live, from {env} at each use");
        }
        match (&self.default, &self.env) {
            (Some(value), Some(env)) => write!(f, " = {value} (default; {env} may set it)"),
            (Some(value), None) => write!(f, " = {value}"),
            (None, Some(env)) => write!(f, ": {env} must be set"),
            (None, None) => Ok(()),
        }
    }
}
