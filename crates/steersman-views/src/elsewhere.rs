//! Effects on lines that are not on the path of a branch. A rewind leaves effects behind, and takes none of them back. A person who decides about a call
//! should know which effects of the same tool happened on other branches, even if their arguments differ a little.

use crate::effects::{Effect, Effects};
use crate::log::Log;
use crate::screen::branch_name;
use crate::words::arguments;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::values::json::read;
use steersman_runtime::engine::Inspection;
use steersman_runtime::ledger::{Ledger, Progress, Record};
use steersman_runtime::pending::{Pending, PendingKind};

/// Returns the line at which an effect touched the world, or may have. `None` if it did not.
fn touched(record: &Record) -> Option<Line> {
    let counts = record.attempt > 0 && record.class.is_some_and(|class| !class.is_free());
    match record.progress {
        Progress::Done { at, .. } | Progress::GivenUp { at } if counts => Some(at),
        Progress::Started { .. } | Progress::Unknown { .. } if counts => Some(record.since),
        _ => None,
    }
}

/// Returns the effects that a rewind of a branch to a line leaves behind: those after the line that touched the world, or may have.
pub fn behind(ledger: &Ledger, branch: Id, at: Line) -> impl Iterator<Item = Id> {
    ledger.effects().filter_map(move |(effect, record)| {
        let line = touched(record).filter(|line| *line > at)?;
        let is_on_path = ledger.on_path(branch, record.branch, line);
        is_on_path.then_some(effect)
    })
}

/// Returns the effects that touched the world, or may have, on lines that the branch of a question about a call does not have. It is
/// empty for questions of other kinds.
pub fn beside<'a>(ledger: &'a Ledger, asked: &'a Pending) -> impl Iterator<Item = Id> + 'a {
    let decides = matches!(asked.kind, PendingKind::Approval | PendingKind::Repeat);
    let effects = ledger.effects().filter(move |_| decides);
    effects.filter_map(|(effect, record)| {
        let line = touched(record).filter(|_| effect != asked.effect)?;
        let is_on_path = ledger.on_path(asked.branch, record.branch, line);
        (!is_on_path).then_some(effect)
    })
}

/// Returns the effects of the same tool as a question about a call that touched the world, or may have, with other arguments on lines
/// that its branch does not have. An equal effect is what [`Pending::repeats`] names.
pub fn alike(log: &Log, seen: &Inspection, asked: &Pending) -> Vec<Effect> {
    let found: Vec<Id> = beside(&seen.ledger, asked).collect();
    if found.is_empty() {
        return Vec::new();
    }
    let args = asked.args.as_deref().map(read::<Json>);
    let args = args.and_then(Result::ok);
    let differs = |effect: &Effect| read::<Json>(&effect.args).ok() != args;
    let effects = of(log, seen);
    let alike = effects.all().filter(|effect| {
        Some(&effect.tool) == asked.tool.as_ref() && found.contains(&effect.id) && differs(effect)
    });
    alike.cloned().collect()
}

/// Sentences about effects of the same tool on other branches, by the effect that a question is about.
pub type Elsewhere = BTreeMap<Id, Vec<String>>;

/// Returns what people should know of other branches before they decide these questions of a session.
pub fn told<'a>(
    log: &Log,
    seen: &Inspection,
    all: impl IntoIterator<Item = &'a Pending>,
) -> Elsewhere {
    let each = all.into_iter().filter_map(|pending| {
        let effects = alike(log, seen, pending);
        let told = effects.iter().map(|effect| on_another_branch(effect, seen));
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then_some((pending.effect, told))
    });
    each.collect()
}

fn on_another_branch(effect: &Effect, seen: &Inspection) -> String {
    let branch = seen
        .branches
        .iter()
        .find(|branch| branch.id == effect.branch);
    let name = branch.map_or_else(|| effect.branch.to_string(), branch_name);
    let was_left = branch.is_some_and(|branch| branch.superseded);
    let left = if was_left { ", which was left" } else { "" };
    let args = arguments(&effect.args);
    format!(
        "{} of {} with ({args}) is {} on {name}{left}",
        effect.tool,
        effect.id,
        effect.word()
    )
}

/// Returns the effects of a whole session.
pub fn of(log: &Log, seen: &Inspection) -> Effects {
    let mut effects = Effects::of(&log.lines, &log.texts, None);
    effects.driven(seen.info.owner.is_some());
    effects
}
