//! A branch that an act opened, and its result: the screen of `fork` and `rewind`.

use super::follow::Stands;
use super::show::TakeOver;
use super::{Ask, Missing, Refusal, Screen, ScreenError, Seen, branch_name};
use crate::elsewhere::{self, Elsewhere};
use crate::log::Log;
use crate::shown;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_runtime::engine::Inspection;
use steersman_runtime::session::Settled;

/// A branch that an act opened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BegunScreen {
    /// The time at which it was read, in milliseconds since 1970.
    pub now: i64,
    /// The id of the session.
    pub session: String,
    /// The session as people type it.
    pub short: String,
    /// The name of the branch.
    pub name: String,
    /// The line at which it left the other branch.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub from: Line,
    /// Its first line.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub line: Line,
    /// Its last line.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub head: Line,
    /// True if effects that touch the world are simulated on it.
    pub dry: bool,
    /// True if it is the current branch.
    pub is_current: bool,
    /// The state in which it stands.
    pub stands: Stands,
    /// Effects on superseded lines that touched the world, or may have.
    pub left: Vec<Behind>,
    /// The way in which the session goes on with it.
    pub take_over: Option<TakeOver>,
    /// Effects on other branches that people should know before they decide, by the effect of the question.
    pub elsewhere: BTreeMap<String, Vec<String>>,
}

/// An effect on lines that are left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Behind {
    /// The effect.
    #[serde(serialize_with = "shown::text", deserialize_with = "shown::read::text")]
    pub effect: Id,
    /// Its tool.
    pub tool: Name,
    /// Its arguments as JSON.
    pub args: String,
    /// Its status in words.
    pub word: String,
}

/// Returns some effects of a session.
pub(super) fn behind(
    log: &Log,
    seen: &Inspection,
    effects: impl IntoIterator<Item = Id>,
) -> Vec<Behind> {
    let all = elsewhere::of(log, seen);
    let found = |id: Id| all.all().find(|effect| effect.id == id);
    let behind = effects.into_iter().filter_map(found).map(|effect| Behind {
        effect: effect.id,
        tool: effect.tool.clone(),
        args: effect.args.clone(),
        word: effect.word(),
    });
    behind.collect()
}

impl BegunScreen {
    /// Returns what people should know of other branches before they decide, by the effect.
    pub fn elsewhere(&self) -> Elsewhere {
        let each = self.elsewhere.iter();
        let each = each.filter_map(|(effect, told)| Some((effect.parse().ok()?, told.clone())));
        each.collect()
    }
}

impl Screen for BegunScreen {
    const NAME: &'static str = "begun";

    async fn of(seen: Seen, ask: &Ask) -> Result<Self, ScreenError> {
        let line = Line(ask.after.unwrap_or(0));
        let (inspection, log) = (&seen.inspection, &seen.log);
        let gone = || Refusal::new(Missing::Line, format!("line {line} opened no branch"));
        let (id, from) = log.opened(line).ok_or_else(gone)?;
        let branch = inspection.branches.iter().find(|branch| branch.id == id);
        let branch = branch.ok_or_else(gone)?;
        let settled = inspection.settled_on(branch);
        let decided = match &settled {
            Settled::Asks(all) | Settled::Doubt(all) | Settled::Waits(all) => &all[..],
            _ => &[],
        };
        let elsewhere = elsewhere::told(log, inspection, decided);
        Ok(Self {
            now: seen.engine.clock().now().0,
            session: inspection.info.id.to_string(),
            short: seen.short.clone(),
            name: branch_name(branch),
            from,
            line,
            head: branch.head,
            dry: branch.snapshot.dry,
            is_current: branch.id == inspection.current,
            left: behind(log, inspection, log.listed(line)),
            take_over: TakeOver::of(inspection, branch),
            elsewhere: elsewhere
                .into_iter()
                .map(|(effect, told)| (effect.to_string(), told))
                .collect(),
            stands: settled.into(),
        })
    }
}
