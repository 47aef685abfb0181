//! The changes of a rerun, as callers give them.

use crate::{Error, Network, Steersman};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_definition as definition;
use steersman_machine::stored::ids::{Id, Line};
use steersman_runtime::model::scripted::nearest::distance;
use steersman_runtime::redefine::Redefine;
use steersman_runtime::rerun::{People, Rerun as Lowered};
use steersman_runtime::step::Steps;

/// The changes of a rerun; the default changes nothing.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), steersman::Error> {
/// use steersman::{Network, Rerun, Steersman};
///
/// let network = Network::from_yaml("agents: { greeter: { system: You greet. } }").build()?;
/// let steersman = Steersman::options().script_all("greeter: [ Hello., Good day. ]").in_memory();
/// let session = steersman.start(&network).await?;
/// session.ask("Hi").await?;
///
/// // Nothing is changed: no model is asked, and there is no difference.
/// let again = steersman.rerun(session.id(), Rerun::default()).await?;
/// assert_eq!(again.live_calls, 0);
/// assert!(steersman.diff((session.id(), None), (&again.session, None)).await?.is_empty());
///
/// // Under another definition, the model is asked again.
/// let polite = Network::from_yaml("agents: { greeter: { system: You greet politely. } }").build()?;
/// let other = steersman.rerun(session.id(), Rerun { definition: Some(polite), ..Rerun::default() }).await?;
/// assert_eq!(other.live_calls, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rerun {
    /// The branch to rerun; `None` means the current one.
    pub branch: Option<Id>,
    /// The last line of the branch that stays as it was; `None` means that the rerun begins at the start.
    pub at: Option<Line>,
    /// The definition to use; `None` means the session's own.
    pub definition: Option<Network>,
    /// Names of models at their providers, by the name in the definition: these are asked, whatever the definition says and the
    /// session is bound to. They need [`Rerun::definition`].
    pub models: BTreeMap<String, String>,
    /// Values of `config` that the rerun is bound to, in place of those that the session took when it began. They need
    /// [`Rerun::definition`].
    pub config: BTreeMap<String, Json>,
    /// A message that is sent at the line, before anything else happens there, and replaces the next recorded message.
    pub say: Option<String>,
    /// True if effects that are not on record run for real.
    pub live: bool,
    /// The source of the answers that people would give.
    pub people: People,
    /// A name for the rerun, stored as its label `rerun`.
    pub name: Option<String>,
    /// Callback that decides after each line how the rerun continues; `None` means that it never stops.
    pub steps: Option<Steps>,
}

impl Rerun {
    pub(crate) fn lowered(self, steersman: &Steersman) -> Lowered {
        if let Some(network) = &self.definition {
            steersman.register(network);
        }
        Lowered {
            branch: self.branch,
            at: self.at,
            definition: self.definition.map(|network| Redefine {
                folder: network.folder().map(|f| f.display().to_string()),
                file: network.file().map(str::to_owned),
                network: network.checked().clone(),
                by: "user".into(),
                models: self
                    .models
                    .into_iter()
                    .map(|(name, model)| (name.into(), model))
                    .collect(),
                config: self
                    .config
                    .into_iter()
                    .map(|(name, value)| (name.into(), value))
                    .collect(),
            }),
            say: self.say,
            live: self.live,
            people: self.people,
            name: self.name.map(Into::into),
            steps: self.steps,
        }
    }
}

impl Network {
    /// Returns the definition with values set at paths: `models.default.model`, `agents.desk.system`. A key that is missing
    /// is added; a name that is not declared is an error. Tools in Rust stay registered; the tests are left out.
    ///
    /// # Errors
    /// [`Error::Refused`] if the changed definition is not valid, if a path leads through a value without fields, or if it
    /// names something that is not declared; the message gives the nearest name.
    pub fn with_set(&self, values: &[(String, Json)]) -> Result<Self, Error> {
        let checked = with_set(self.checked(), values).map_err(Error::Refused)?;
        Ok(self.with_checked(checked))
    }

    /// Returns the paths at which modes of an agent override this path: `agents.desk.modes.plan.model` for
    /// `agents.desk.model`. In those modes the agent's own value has no effect.
    pub fn overridden(&self, path: &str) -> Vec<String> {
        let stored: Json = serde_json::from_str(&self.checked().source).unwrap_or_default();
        let steps: Vec<&str> = path.split('.').collect();
        let ["agents", agent, key, ..] = steps[..] else {
            return Vec::new();
        };
        let modes = &stored["definition"]["agents"][agent]["modes"];
        let modes = modes.as_object().into_iter().flatten();
        modes
            .filter(|(_, mode)| !mode[key].is_null())
            .map(|(mode, _)| format!("agents.{agent}.modes.{mode}.{key}"))
            .collect()
    }
}

/// Keys under which names are declared. `--set` and [`Network::with_set`] change declared names and add none.
const DECLARES: &[(&str, &str)] = &[
    ("agents", "agent"),
    ("config", "value of `config`"),
    ("events", "event"),
    ("fields", "field"),
    ("hooks", "hook"),
    ("mcp", "MCP server"),
    ("models", "model"),
    ("modes", "mode"),
    ("parameters", "parameter"),
    ("schedules", "schedule"),
    ("secrets", "secret"),
    ("state", "entry of state"),
    ("states", "state"),
    ("tasks", "task"),
    ("tools", "tool"),
];

/// Refuses a name that is not declared under a key, and suggests the nearest that is.
fn declared(path: &str, under: &str, what: &str, name: &str, all: &Json) -> Result<(), String> {
    let known: Vec<&str> = match all {
        Json::Object(fields) => fields.keys().map(String::as_str).collect(),
        Json::Null => Vec::new(),
        // Lists hold no names; any other misfit is reported later.
        _ => return Ok(()),
    };
    // Every definition has the model `default`, even if it does not declare it.
    let is_default = under == "models" && name == "default";
    if is_default || known.contains(&name) {
        return Ok(());
    }
    let nearest = known.iter().min_by_key(|known| distance(name, known));
    let near = nearest.filter(|near| distance(name, near) <= 1 + name.len() / 3);
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "none is declared there".to_owned(),
        None => format!("there is: {}", known.join(", ")),
    };
    Err(format!("`{path}`: there is no {what} `{name}`; {help}"))
}

/// Like [`Network::with_set`], for a checked definition.
pub(crate) fn with_set(
    network: &steersman_machine::network::Network,
    values: &[(String, Json)],
) -> Result<steersman_machine::network::Network, String> {
    let mut stored: Json = serde_json::from_str(&network.source)
        .map_err(|e| format!("the definition cannot be read: {e}"))?;
    for (path, value) in values {
        set(&mut stored["definition"], path, value)?;
    }
    let mut made = definition::compile_stored(&stored.to_string())?.network;
    made.natives = network.natives.clone();
    Ok(made)
}

fn set(definition: &mut Json, path: &str, value: &Json) -> Result<(), String> {
    let mut at = definition;
    let mut steps = path.split('.').peekable();
    // The key under which the next step is a declared name.
    let mut names: Option<(&str, &str)> = None;
    while let Some(step) = steps.next() {
        if step.is_empty() {
            return Err(format!(
                "`{path}` is not a path such as models.default.model"
            ));
        }
        if at.is_null() {
            *at = Json::Object(serde_json::Map::new());
        }
        names = match names {
            Some((under, what)) => {
                declared(path, under, what, step, at)?;
                None
            }
            None => DECLARES.iter().find(|(key, _)| *key == step).copied(),
        };
        // A model may be written in short form, as its provider.
        if at.is_string() && path.starts_with("models.") && steps.peek().is_none() {
            *at = serde_json::json!({ "provider": at.clone() });
        }
        let next = match at {
            Json::Object(fields) => fields.entry(step).or_insert(Json::Null),
            Json::Array(list) => {
                let index: Option<usize> = step.parse().ok();
                let found = index.and_then(|index| list.get_mut(index));
                found.ok_or_else(|| format!("`{path}`: the list has no entry {step}"))?
            }
            other => return Err(format!("`{path}`: `{other}` has no field `{step}`")),
        };
        at = next;
    }
    *at = value.clone();
    Ok(())
}

impl Steersman {
    /// Returns the definition for a rerun of a session in which values are set at paths ([`Network::with_set`]): another
    /// definition if one is given, otherwise the session's own. `None` means that nothing is changed, also not by values of
    /// `config`, so that the rerun has the session's own.
    ///
    /// # Errors
    /// As [`Network::with_set`]; of kind [`NotFound`](crate::ErrorKind::NotFound) if there is no such session.
    pub async fn changed_definition(
        &self,
        id: &str,
        definition: Option<&Network>,
        values: &[(String, Json)],
        has_config: bool,
    ) -> Result<Option<Network>, Error> {
        Ok(match definition {
            Some(network) if values.is_empty() => Some(network.clone()),
            Some(network) => Some(network.with_set(values)?),
            None if values.is_empty() && !has_config => None,
            None => Some(self.definition_of(id, values).await?),
        })
    }

    /// Returns the definition that a session is bound to, with values set at paths ([`Network::with_set`]).
    ///
    /// # Errors
    /// As [`Network::with_set`]; of kind [`NotFound`](crate::ErrorKind::NotFound) if there is no such session.
    pub async fn definition_of(
        &self,
        id: &str,
        values: &[(String, Json)],
    ) -> Result<Network, Error> {
        let seen = self.engine().inspect(id).await?;
        let Some(network) = seen.network else {
            return Err(Error::Refused("this session has not begun".to_owned()));
        };
        let changed = if values.is_empty() {
            network
        } else {
            Arc::new(with_set(&network, values).map_err(Error::Refused)?)
        };
        Ok(Network::bound(
            changed,
            seen.values.folder.map(Into::into),
            seen.values.file,
        ))
    }
}
