//! Reasons why sessions stopped or do not move, and sums over sessions.

use crate::list::status;
use crate::words::{people, span, wait};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::snapshot::{Agent, Snapshot};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::ids::{Name, Time};
use steersman_machine::stored::interaction::{Cause, Interaction};
use steersman_runtime::budgets::named_in;
use steersman_runtime::engine::{Engine, EngineError, Inspection};
use steersman_runtime::pending;
use steersman_runtime::pending::PendingKind;
use steersman_runtime::rerun::rerun_of;
use steersman_runtime::session::Settled;
use steersman_runtime::store::SessionInfo;

/// The first cause of a stop: where an agent failed because one below it failed, what the lowest of them failed of.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Reason {
    /// The code of the stop: `provider_overloaded`, `model_calls`.
    pub code: Arc<str>,
    /// The agent that failed first, by its name in the definition. `None` for the agent at the top, and for limits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<Name>,
}

impl Reason {
    /// Returns the reason why the session of a row failed or reached a limit; `None` for other states.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn of_row(engine: &Engine, info: &SessionInfo) -> Result<Option<Self>, EngineError> {
        if !matches!(status(info), "failed" | "limit") {
            return Ok(None);
        }
        Ok(Self::of(&engine.inspect(&info.id).await?))
    }

    /// Returns the reason why a session failed or reached a limit; `None` for other states.
    pub fn of(seen: &Inspection) -> Option<Self> {
        let code: Arc<str> = match &seen.settled {
            Settled::Failed { code, .. } | Settled::Limit { code, .. } => (&**code).into(),
            _ => return None,
        };
        let mut reason = Self { code, agent: None };
        let Some(snapshot) = seen.current_branch().map(|branch| &branch.snapshot) else {
            return Some(reason);
        };
        let mut at = snapshot.root_agent().map(|root| &**root);
        while let Some(agent) = at.filter(|_| *reason.code == *Code::EndedFailed.text()) {
            at = failed_below(snapshot, agent);
            let code = at.and_then(|below| ended_with(seen, below));
            if let Some((below, code)) = at.zip(code) {
                reason = Self {
                    code,
                    agent: Some(below.def.clone()),
                };
            }
        }
        Some(reason)
    }

    /// Returns the reason in words: `provider_overloaded of searcher`.
    pub fn told(&self) -> String {
        match &self.agent {
            Some(agent) => format!("{} of {agent}", self.code),
            None => self.code.to_string(),
        }
    }
}

/// Returns the agent that this one called last of those that failed.
fn failed_below<'s>(snapshot: &'s Snapshot, agent: &Agent) -> Option<&'s Agent> {
    let below = snapshot.agents.values().map(|below| &**below);
    let failed = below.filter(|below| {
        below.family.parent == Some(agent.id)
            && matches!(
                below.turn.ended,
                Some((
                    _,
                    Cause::Failed | Cause::Deadlock | Cause::Limit | Cause::Leaf
                ))
            )
    });
    failed.max_by_key(|below| (below.stack.last, below.id))
}

/// Returns the code with which an agent ended.
fn ended_with(seen: &Inspection, agent: &Agent) -> Option<Arc<str>> {
    let (pushes, _) = seen.history.pushes(agent.id, agent.stack.last);
    pushes.iter().rev().find_map(|push| match push {
        Interaction::Finished { code, .. } => Some(code.as_deref().unwrap_or_default().into()),
        _ => None,
    })
}

/// Time without a line after which a driven session counts as stuck, in milliseconds: calls of models and tools are shorter.
const QUIET: i64 = 15 * 60_000;
/// Time by which a session may be late before it counts as stuck, in milliseconds. A process that drives all takes it sooner.
const LATE: i64 = 60_000;

/// Returns true if only the time of the last line of a session says whether it is stuck: it is driven, and has been at work for
/// long.
pub fn may_be_silent(info: &SessionInfo, now: Time) -> bool {
    let since = now.0.saturating_sub(info.state.updated.0);
    info.owner.is_some() && status(info) == "running" && since >= QUIET
}

/// Returns why a session does not move although nobody is asked: its process died, could not drive it, or is silent; or the
/// time at which it should go on is over. `None` if it moves, rests, or waits for somebody. `last` is the time of its last line,
/// for a session that [`may_be_silent`].
pub fn stuck(info: &SessionInfo, last: Option<Time>, now: Time) -> Option<String> {
    let since = |then: Time| now.0.saturating_sub(then.0);
    if let Some(owner) = &info.owner {
        let quiet = last.map(since).filter(|quiet| *quiet >= QUIET);
        return quiet.map(|quiet| format!("process {owner} wrote no line for {}", span(quiet)));
    }
    if let Some(trouble) = &info.left.trouble {
        return Some(format!("it cannot be driven: {}", trouble.why));
    }
    if status(info) == "interrupted" && !is_left_rerun(info) {
        return Some("its process died".to_owned());
    }
    let wants = info.left.wants.filter(|wants| since(*wants) >= LATE)?;
    // A time before all others means `at once`.
    let late = since(wants.max(info.state.updated));
    (late >= LATE).then(|| {
        format!(
            "should go on since {}, and no process drives it",
            span(late)
        )
    })
}

/// Returns true for a rerun that is not live, whose process died, and that a process which drives all sessions has left alone. It is
/// over: nobody but a person continues it.
pub fn is_left_rerun(info: &SessionInfo) -> bool {
    status(info) == "interrupted" && is_rerun(info) && info.left.wants.is_none()
}

/// Returns in a few words what a session waits for; empty if it waits for nothing.
pub fn waits(info: &SessionInfo) -> String {
    let waits = match status(info) {
        "waits" | "doubt" => pending::read(&info.state.waits).unwrap_or_default(),
        _ => Vec::new(),
    };
    let Some(first) = waits.first() else {
        return String::new();
    };
    if let Some(place) = &first.place {
        return format!("no answer from {place}");
    }
    let kind = match named_in(&first.text).filter(|_| first.kind == PendingKind::Budget) {
        Some(budget) => return more(format!("budget {budget}"), waits.len()),
        None => wait(first.kind),
    };
    let told = match (&first.roles[..], &first.tool) {
        ([], Some(tool)) => format!("{kind} {tool}"),
        ([], None) => kind.to_owned(),
        (roles, _) => format!("{kind} by {}", people(roles)),
    };
    more(told, waits.len())
}

/// Adds the number of waits that are not told.
fn more(told: String, waits: usize) -> String {
    match waits {
        ..=1 => told,
        _ => format!("{told}, {} more", waits - 1),
    }
}

/// Sums over sessions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Sums {
    /// Number of sessions.
    pub sessions: u64,
    /// Number of model calls.
    pub model_calls: u64,
    /// Number of tokens spent.
    pub tokens: u64,
    /// Money spent, in the currency of the prices.
    pub cost: f64,
    /// The same in millionths of the currency.
    #[serde(skip)]
    pub micros: u64,
}

impl Sums {
    /// Adds a session.
    pub fn add(&mut self, info: &SessionInfo) {
        let state = &info.state;
        self.sessions += 1;
        self.model_calls = self.model_calls.saturating_add(state.model_calls);
        self.tokens = self.tokens.saturating_add(state.tokens);
        self.micros = self.micros.saturating_add(state.micros);
        self.cost = self.micros as f64 / 1e6;
    }

    /// Returns the sums of sessions by the name that each has, the largest number of sessions first.
    pub fn by<'a>(
        sessions: impl IntoIterator<Item = (&'a SessionInfo, String)>,
    ) -> Vec<(String, Self)> {
        let mut by: BTreeMap<String, Self> = BTreeMap::new();
        for (info, name) in sessions {
            by.entry(name).or_default().add(info);
        }
        let mut by: Vec<_> = by.into_iter().collect();
        by.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.sessions));
        by
    }
}

/// Returns true for a rerun of another session: it spends money, but is no work of its own.
pub fn is_rerun(info: &SessionInfo) -> bool {
    rerun_of(info).is_some()
}

/// Returns the sessions that are work, and the number of reruns that were left out. Everything that counts sessions or makes data
/// of them takes them from here; `reruns` is true if somebody asked for reruns, too.
pub fn work(found: Vec<SessionInfo>, reruns: bool) -> (Vec<SessionInfo>, usize) {
    let all = found.len();
    let mut work = found;
    work.retain(|info| reruns || !is_rerun(info));
    let left_out = all - work.len();
    (work, left_out)
}
