//! The waits of a session, for the commands that answer them.

use super::begun::{Behind, behind};
use super::seen::named_line;
use super::show::TakeOver;
use super::{Ask, Screen, ScreenError, Seen, branch_name, line};
use crate::elsewhere::{self, Elsewhere};
use crate::list::status;
use crate::shown;
use crate::why::Past;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use steersman_machine::stored::commit::Why;
use steersman_machine::stored::ids::{Line, Name};
use steersman_runtime::pending::{Pending, PendingId, PendingKind};

/// The waits of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WaitsScreen {
    /// The id of the session.
    pub session: String,
    /// The session as people type it.
    pub short: String,
    /// The same, with the branch if one was named.
    pub name: String,
    /// The name of its network.
    pub network: Name,
    /// Its status.
    pub status: String,
    /// The process that drives it.
    pub owner: Option<String>,
    /// True if it was driven before.
    pub has_begun: bool,
    /// Everything that it waits for, on all branches, oldest first.
    pub pending: Vec<Pending>,
    /// Effects on other branches that people should know before they decide, by the effect of the question.
    pub elsewhere: BTreeMap<String, Vec<String>>,
    /// If an effect, a tool or a kind was asked for: who ended the newest question about it.
    pub decided: Option<String>,
    /// The name of the branch.
    pub branch: String,
    /// The names of all branches but the current one.
    pub others: Vec<String>,
    /// The line that was asked for.
    #[serde(
        serialize_with = "shown::maybe_line",
        deserialize_with = "shown::read::maybe_line"
    )]
    pub line: Option<Line>,
    /// The effects that a rewind to this line would leave behind.
    pub behind: Vec<Behind>,
    /// If another branch than the current one was named: the way in which the session goes on with it.
    pub take_over: Option<TakeOver>,
}

impl WaitsScreen {
    /// Returns what people should know of other branches before they decide about an effect.
    pub fn elsewhere(&self) -> Elsewhere {
        let each = self.elsewhere.iter();
        let each = each.filter_map(|(effect, told)| Some((effect.parse().ok()?, told.clone())));
        each.collect()
    }
}

/// Returns the reasons of holds that are questions of these kinds.
pub fn whys(kinds: &[PendingKind]) -> Vec<Why> {
    let each = kinds.iter().filter_map(|kind| match kind {
        PendingKind::Approval => Some(Why::Approval),
        PendingKind::Repeat => Some(Why::Repeat),
        PendingKind::Budget => Some(Why::Budget),
        PendingKind::Input => Some(Why::Input),
        PendingKind::Doubt => Some(Why::Doubt),
        _ => None,
    });
    each.collect()
}

/// Returns the effect that a question about it was asked for.
pub fn effect_of(typed: &str) -> String {
    match typed.parse::<PendingId>() {
        Ok(id) => id.effect.to_string(),
        Err(()) => typed.to_owned(),
    }
}

impl Screen for WaitsScreen {
    const NAME: &'static str = "waits";

    async fn of(seen: Seen, ask: &Ask) -> Result<Self, ScreenError> {
        let inspection = &seen.inspection;
        let form = ask.form.as_deref().unwrap_or_default();
        let all = [
            PendingKind::Approval,
            PendingKind::Repeat,
            PendingKind::Budget,
            PendingKind::Input,
            PendingKind::Doubt,
        ];
        let wanted = |kind: &&PendingKind| form.split(',').any(|word| word == kind.word());
        let kinds: Vec<PendingKind> = all.iter().filter(wanted).copied().collect();
        let decided = if kinds.is_empty() {
            None
        } else {
            let past = Past::new(&seen.log, BTreeMap::new());
            let of = ask.of.as_deref().map(effect_of);
            past.decision(of.as_deref(), &whys(&kinds))
        };
        let elsewhere = elsewhere::told(&seen.log, inspection, &inspection.pending);
        let branch = seen.branch();
        let path = seen.log.path(branch, &inspection.branches);
        let line = line(named_line(ask)?.as_ref(), &path)?;
        let left = line.map(|line| elsewhere::behind(&inspection.ledger, branch.id, line));
        let other = Some(branch).filter(|branch| branch.id != inspection.current);
        let others = inspection.branches.iter();
        let others = others.filter(|branch| branch.id != inspection.current);
        Ok(Self {
            branch: branch_name(branch),
            others: others.map(branch_name).collect(),
            line,
            behind: behind(&seen.log, inspection, left.into_iter().flatten()),
            take_over: other.and_then(|branch| TakeOver::of(inspection, branch)),
            session: inspection.info.id.to_string(),
            short: seen.short.clone(),
            name: seen.name(),
            network: inspection.info.network.clone(),
            status: status(&inspection.info).to_owned(),
            owner: inspection.info.owner.clone(),
            has_begun: inspection.network.is_some(),
            pending: inspection.pending.clone(),
            elsewhere: elsewhere
                .into_iter()
                .map(|(effect, told)| (effect.to_string(), told))
                .collect(),
            decided,
        })
    }
}
