//! The screen of `why`.

use super::seen::named_line;
use super::{Ask, LineName, Missing, Refusal, Screen, ScreenError, Seen, branch_name, line};
use crate::cause::Reason;
use crate::context;
use crate::remedy::{Advice, advice};
use crate::why::{Act, Past, Step};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Id, Line};

/// The reasons of an act.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WhyScreen {
    /// The id of the session.
    pub session: String,
    /// The session as people type it, with the branch if one was named.
    pub name: String,
    /// The name of the branch.
    pub branch: String,
    /// The chain of reasons, the act first.
    pub steps: Vec<Step>,
    /// The other acts of the line.
    pub others: Vec<Other>,
    /// If nothing is named and the branch stopped: the cause, and what to do.
    pub stop: Option<Advice>,
    /// The line whose model call has a context that can be shown.
    pub context: Option<u64>,
}

/// Another act of a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Other {
    /// Its id.
    pub id: Option<String>,
    /// The act in words.
    pub what: String,
}

impl Screen for WhyScreen {
    const NAME: &'static str = "why";

    async fn of(seen: Seen, ask: &Ask) -> Result<Self, ScreenError> {
        let bound = seen.log.bound(&*seen.reader).await?;
        let path = seen.path();
        let named = named_line(ask)?;
        let line = line(named.as_ref(), &path)?;
        let path: Vec<&Arc<LogLine>> = match line {
            Some(line) => path.into_iter().filter(|l| l.n <= line).collect(),
            None => path,
        };
        let name = seen.name();
        let past = Past::new(&seen.log, bound);
        let (act, others) = match &ask.of {
            Some(id) => (by_id(&past, id, &path, &name)?, Vec::new()),
            None => at_line(&past, &path, line, named.as_ref(), &name)?,
        };
        let steps = past.chain(act);
        let (inspection, branch) = (&seen.inspection, seen.branch());
        let stop = if ask.of.is_some() || line.is_some() {
            None
        } else if branch.id == inspection.current {
            advice(&inspection.settled, Reason::of(inspection).as_ref())
        } else {
            advice(&inspection.settled_on(branch), None)
        };
        let answered = steps
            .iter()
            .find(|step| matches!(&*step.kind, "answer" | "route"));
        let context = answered
            .map(|step| step.line)
            .filter(|line| context::is_known(&path, Some(Line(*line))));
        let others = others.iter().map(|act| {
            let (id, what) = past.short(*act);
            Other {
                id: id.map(|id| id.to_string()),
                what,
            }
        });
        Ok(Self {
            session: inspection.info.id.to_string(),
            name,
            branch: branch_name(branch),
            others: others.collect(),
            steps,
            stop,
            context,
        })
    }
}

fn by_id(past: &Past<'_>, typed: &str, path: &[&Arc<LogLine>], name: &str) -> Result<Act, Refusal> {
    let hint = format!(
        "`steersman effects {name}` and `steersman log {name}` list ids; a line is {name}@12"
    );
    let Ok(id) = typed.parse::<Id>() else {
        let what =
            format!("no agent and no tool `{typed}` did anything on this branch up to there");
        let found = past.newest_of(typed, path);
        return found.ok_or_else(|| Refusal::new(Missing::Act, what).hint(&hint));
    };
    if let Some(act) = past.call(id).map(Act::Push).or_else(|| past.of_effect(id)) {
        return Ok(act);
    }
    if past.knows_agent(id) {
        return past.newest(id, path).ok_or_else(|| {
            let what = format!("agent {id} did nothing on this branch up to there");
            Refusal::new(Missing::Act, what).hint(format!("what was done: steersman show {name}"))
        });
    }
    let what = format!("nothing in session {name} has the id {id}");
    Err(Refusal::new(Missing::Act, what).hint(hint))
}

/// Returns the act of a line (its last, or the call that the address names) and its other acts. If no line is named, this is
/// the newest line with an act.
fn at_line(
    past: &Past<'_>,
    path: &[&Arc<LogLine>],
    line: Option<Line>,
    named: Option<&LineName>,
    name: &str,
) -> Result<(Act, Vec<Act>), Refusal> {
    let found = match line {
        Some(line) => path.iter().find(|l| l.n == line).map(|l| past.acts(l)),
        None => path
            .iter()
            .rev()
            .map(|l| past.acts(l))
            .find(|acts| !acts.is_empty()),
    };
    let mut acts = found.unwrap_or_default();
    if let Some(LineName::First(tool)) = named
        && let Some(at) = acts.iter().position(|act| past.calls_for(*act, tool))
    {
        let act = acts.remove(at);
        acts.push(act);
    }
    let Some(act) = acts.pop() else {
        let what = match line {
            Some(line) => format!("nobody acted at @{line}"),
            None => "nobody acted in this session yet".to_owned(),
        };
        return Err(Refusal::new(Missing::Act, what)
            .hint(format!("what the lines hold: steersman log {name}")));
    };
    // Acts without an id are part of the chain already.
    acts.retain(|other| past.short(*other).0.is_some());
    Ok((act, acts))
}
