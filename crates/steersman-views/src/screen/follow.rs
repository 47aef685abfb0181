//! The story of a session since a line, and its state: the screen of commands that say something and wait for what follows.

use super::{Ask, Screen, ScreenError, Seen, branch_name};
use crate::cause::Reason;
use crate::elsewhere::{self, Elsewhere};
use crate::shown;
use crate::story::{Row, Story};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::stored::commit::Admitted;
use steersman_machine::stored::ids::{Bodies as _, Id, Line, Name};
use steersman_machine::stored::interaction::Target;
use steersman_runtime::bind::Values;
use steersman_runtime::engine::{BranchView, Inspection};
use steersman_runtime::pending::{Pending, PendingKind};
use steersman_runtime::session::Settled;

/// The story of a session since a line, and its state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FollowScreen {
    /// The time at which it was read, in milliseconds since 1970.
    pub now: i64,
    /// The id of the session.
    pub session: String,
    /// The session as people type it.
    pub short: String,
    /// The same, with the branch if it is not the current one.
    pub name: String,
    /// The definition to which the session was bound since then.
    pub bound: Option<Bound>,
    /// The rows of the story since then.
    pub rows: Vec<Row>,
    /// The last line that was read.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub upto: Line,
    /// The last line of the branch.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub head: Line,
    /// True if the branch waits for nothing but people, events and time.
    pub rests: bool,
    /// Its state.
    pub stands: Stands,
    /// The first cause, if the session failed or reached a limit.
    pub reason: Option<Reason>,
    /// If it waits for branches: the open ones, by name, each with what it waits for.
    pub waits_for: Vec<(String, Vec<Pending>)>,
    /// Effects on other branches that people should know before they decide, by the effect of the question.
    pub elsewhere: BTreeMap<String, Vec<String>>,
}

/// The definition of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bound {
    /// The name of the network.
    pub network: Name,
    /// A short digest of the definition.
    pub digest: String,
    /// The models, each once.
    pub models: String,
}

/// The state of a session or a branch: [`Settled`] as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stands {
    /// The root gave an answer.
    Answered {
        /// Texts that come before it.
        before: Vec<Arc<str>>,
        /// The answer.
        text: Arc<str>,
        /// True if it ended a task.
        task: bool,
    },
    /// People are asked.
    Asks(Vec<Pending>),
    /// It waits for events and times.
    Waits(Vec<Pending>),
    /// A limit was reached.
    Limit {
        /// Its code.
        code: Name,
        /// The answer so far.
        text: Option<Arc<str>>,
    },
    /// The root failed.
    Failed {
        /// The code.
        code: Name,
        /// The failure, for people.
        message: Arc<str>,
    },
    /// A person has to say whether an effect happened.
    Doubt(Vec<Pending>),
    /// It was cancelled.
    Cancelled,
    /// It is paused.
    Paused,
    /// Nothing was said yet.
    Empty,
}

impl From<Settled> for Stands {
    fn from(settled: Settled) -> Self {
        match settled {
            Settled::Answered { before, text, task } => Self::Answered { before, text, task },
            Settled::Asks(all) => Self::Asks(all),
            Settled::Waits(all) => Self::Waits(all),
            Settled::Limit { code, text } => Self::Limit { code, text },
            Settled::Failed { code, message } => Self::Failed { code, message },
            Settled::Doubt(all) => Self::Doubt(all),
            Settled::Cancelled => Self::Cancelled,
            Settled::Paused => Self::Paused,
            Settled::Empty => Self::Empty,
        }
    }
}

impl From<Stands> for Settled {
    fn from(stands: Stands) -> Self {
        match stands {
            Stands::Answered { before, text, task } => Self::Answered { before, text, task },
            Stands::Asks(all) => Self::Asks(all),
            Stands::Waits(all) => Self::Waits(all),
            Stands::Limit { code, text } => Self::Limit { code, text },
            Stands::Failed { code, message } => Self::Failed { code, message },
            Stands::Doubt(all) => Self::Doubt(all),
            Stands::Cancelled => Self::Cancelled,
            Stands::Paused => Self::Paused,
            Stands::Empty => Self::Empty,
        }
    }
}

/// Returns true if a branch waits for nothing but people, events and time: each outstanding effect is one that people are shown.
pub fn rests(seen: &Inspection, branch: &BranchView) -> bool {
    let waits = |effect: &Id| {
        let mut pending = seen.pending.iter();
        pending.any(|p| p.effect == *effect && p.kind != PendingKind::Again)
    };
    branch.snapshot.effects.keys().all(waits)
}

/// Returns the open branches that a branch waits for, by name, each with what it waits for.
pub fn awaited(seen: &Inspection, branch: &BranchView) -> Vec<(String, Vec<Pending>)> {
    let snapshot = &branch.snapshot;
    let calls = snapshot.forks.iter();
    let calls = calls.filter_map(|(owner, call)| snapshot.call(*owner, *call));
    let mut awaited: Vec<Id> = Vec::new();
    for call in calls.filter(|call| call.closed.is_none()) {
        if let Target::Branches(branches) = &call.call.target {
            awaited.extend(branches);
        }
    }
    let open = |b: &&BranchView| !b.ended && !b.superseded && awaited.contains(&b.id);
    let open = seen.branches.iter().filter(open);
    open.map(|b| {
        let waits = |p: &&Pending| p.branch == b.id && !p.left;
        let here = seen.pending.iter().filter(waits);
        (branch_name(b), here.cloned().collect())
    })
    .collect()
}

/// Lists the models that a session is bound to, each once.
pub fn models(values: &Values) -> String {
    let mut names: Vec<String> = values
        .models
        .iter()
        .map(|bound| {
            let mut name = bound.provider.to_string();
            if let Some(model) = &bound.model {
                name = format!("{name}/{model}");
            }
            if let Some(key) = &bound.key_env {
                name = format!("{name} ({key})");
            }
            name
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

impl FollowScreen {
    /// Returns what people should know of other branches before they decide, by the effect.
    pub fn elsewhere(&self) -> Elsewhere {
        let each = self.elsewhere.iter();
        let each = each.filter_map(|(effect, told)| Some((effect.parse().ok()?, told.clone())));
        each.collect()
    }
}

impl Screen for FollowScreen {
    const NAME: &'static str = "follow";

    async fn of(seen: Seen, ask: &Ask) -> Result<Self, ScreenError> {
        let after = Line(ask.after.unwrap_or(0));
        let only = seen.named().map(|branch| branch.id);
        let (mut story, mut rows, mut bound) = (Story::told(false), Vec::new(), None);
        for line in &seen.log.lines {
            let told = story.line(line, &*seen.reader).await?;
            if line.n <= after || only.is_some_and(|branch| line.branch != branch) {
                continue;
            }
            rows.extend(told);
            let commit = line.commit.as_ref();
            // If the line only binds changed servers, the story reports it.
            let is_told = commit.is_some_and(|commit| {
                let mut admitted = commit.admitted.iter();
                admitted.any(|a| a.kind == Admitted::Rebound && a.body.is_some())
            });
            let binding = commit.and_then(|commit| commit.binding.as_ref());
            if let Some(binding) = binding.filter(|_| !is_told) {
                let values = seen.log.texts.text(binding.values);
                bound = Some(Bound {
                    network: binding.network.clone(),
                    digest: binding.digest.short(),
                    models: Values::read(&values).map_or_else(|why| why, |read| models(&read)),
                });
            }
        }
        let (inspection, branch) = (&seen.inspection, seen.branch());
        let is_current = branch.id == inspection.current;
        let settled = if is_current {
            inspection.settled.clone()
        } else {
            inspection.settled_on(branch)
        };
        let stopped = matches!(settled, Settled::Failed { .. } | Settled::Limit { .. });
        let decided = match &settled {
            Settled::Asks(all) | Settled::Doubt(all) => &all[..],
            _ => &[],
        };
        let elsewhere = elsewhere::told(&seen.log, inspection, decided);
        let last = seen.log.lines.last();
        Ok(Self {
            now: seen.engine.clock().now().0,
            session: inspection.info.id.to_string(),
            short: seen.short.clone(),
            name: if is_current {
                seen.short.clone()
            } else {
                format!("{}:{}", seen.short, branch_name(branch))
            },
            bound,
            rows,
            upto: last.map_or(Line::NONE, |line| line.n).max(after),
            head: branch.head,
            rests: rests(inspection, branch),
            reason: (stopped && is_current)
                .then(|| Reason::of(inspection))
                .flatten(),
            waits_for: if matches!(settled, Settled::Failed { .. }) {
                Vec::new()
            } else {
                awaited(inspection, branch)
            },
            elsewhere: elsewhere
                .into_iter()
                .map(|(effect, told)| (effect.to_string(), told))
                .collect(),
            stands: settled.into(),
        })
    }
}
