//! The screen of `context`.

use super::{Ask, Missing, Refusal, Screen, ScreenError, Seen};
use crate::context::{Caches, Change, Context, ContextError, Contexts, Explanation, ModelCall};
use crate::reader::Stored;
use crate::shown;
use serde::{Deserialize, Serialize};
use steersman_machine::stored::ids::Line;

/// The context of a model call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ContextScreen {
    /// The session as people type it, with the branch if one was named.
    pub name: String,
    /// The context, in the form that was asked for.
    pub context: ShownContext,
}

/// A context in one of its forms.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownContext {
    /// As it was sent, with the other model calls.
    Whole(Box<Context>, Vec<Called>),
    /// With the origin of each part, and the line of the call.
    Why(Explanation, u64),
    /// Compared with the call before.
    Diff(Change),
    /// The share of each call that is equal to the one before.
    Cache(Caches),
}

/// The answered model calls of an agent for one purpose.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Called {
    /// The agent and the purpose, as scripts name them.
    pub name: String,
    /// The lines of the calls.
    #[serde(
        serialize_with = "shown::lines",
        deserialize_with = "shown::read::lines"
    )]
    pub lines: Vec<Line>,
}

impl Called {
    /// Renders calls in one row: `desk @3 @5, clerk @7`.
    pub fn told(all: &[Self]) -> String {
        let each = all.iter().map(|called| {
            let lines = called.lines.iter().map(|line| format!(" @{line}"));
            format!("{}{}", called.name, lines.collect::<String>())
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

/// Lists the lines of all other answered model calls, by agent.
fn others(contexts: &Contexts<'_>, but: Option<&ModelCall>) -> Vec<Called> {
    let mut by_name: Vec<(&ModelCall, Vec<Line>)> = Vec::new();
    for call in contexts.calls() {
        if call.answered.is_none() || but.is_some_and(|but| but.effect == call.effect) {
            continue;
        }
        let same = |known: &ModelCall| known.agent == call.agent && known.beside == call.beside;
        match by_name.iter_mut().find(|(known, _)| same(known)) {
            Some((_, lines)) => lines.push(call.line()),
            None => by_name.push((call, vec![call.line()])),
        }
    }
    let called = by_name.into_iter().map(|(call, lines)| Called {
        name: contexts.name(call),
        lines,
    });
    called.collect()
}

impl Screen for ContextScreen {
    const NAME: &'static str = "context";

    async fn of(seen: Seen, ask: &Ask) -> Result<Self, ScreenError> {
        let (path, line, name) = (seen.path(), seen.line(ask)?, seen.name());
        let reader = Stored::plain(&seen.engine, &seen.inspection.info.id);
        let contexts = Contexts::of(&reader, &seen.log, &path).await?;
        let form = ask.form.as_deref();
        if form == Some("cache") {
            let context = ShownContext::Cache(contexts.caches(line).await?);
            return Ok(Self { name, context });
        }
        let whose = ask.of.as_deref();
        let chosen = contexts.choose(whose, line).ok_or_else(|| match whose {
            Some(whose) => {
                let what = format!("no model call there is `{whose}` or is of it");
                let calls = Called::told(&others(&contexts, None));
                Refusal::new(Missing::Act, what).hint(format!("model calls: {calls}"))
            }
            None => Refusal::new(Missing::Act, "no model was called there")
                .hint(format!("`steersman show {name}` names the lines")),
        })?;
        let context = match form {
            None | Some("whole") => {
                let context = contexts.context(chosen).await?;
                ShownContext::Whole(Box::new(context), others(&contexts, Some(chosen)))
            }
            Some("why") => ShownContext::Why(contexts.explain(chosen).await?, chosen.line().0),
            Some("diff") => ShownContext::Diff(contexts.change(chosen).await.map_err(|error| {
                match error {
                    ContextError::First => ScreenError::from(
                        Refusal::new(Missing::Act, error.to_string())
                            .hint(format!("`steersman context {name}` shows what it saw")),
                    ),
                    error => error.into(),
                }
            })?),
            Some(other) => {
                let what = format!("a context has no form `{other}`");
                return Err(Refusal::new(Missing::Form, what)
                    .hint("whole, why, diff or cache")
                    .into());
            }
        };
        Ok(Self { name, context })
    }
}
