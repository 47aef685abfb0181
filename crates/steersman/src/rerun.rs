//! What is changed in a rerun, as callers say it.

use crate::{Error, Network, Steersman};
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_definition as definition;
use steersman_machine::ids::{Id, Line};
use steersman_runtime::model::scripted::nearest::distance;
use steersman_runtime::redefine::Redefine;
use steersman_runtime::rerun::{People, Rerun as Lowered};
use steersman_runtime::step::Steps;

/// What is changed in a rerun; the default changes nothing.
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
/// // Nothing changed: nobody is asked, and nothing differs.
/// let again = steersman.rerun(session.id(), Rerun::default()).await?;
/// assert_eq!(again.live_calls, 0);
/// assert!(steersman.diff((session.id(), None), (&again.session, None)).await?.is_empty());
///
/// // What else would have come of it?
/// let polite = Network::from_yaml("agents: { greeter: { system: You greet politely. } }").build()?;
/// let other = steersman.rerun(session.id(), Rerun { definition: Some(polite), ..Rerun::default() }).await?;
/// assert_eq!(other.live_calls, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rerun {
    /// The branch that is rerun; none: the current one.
    pub branch: Option<Id>,
    /// What came up to this line of it stays as it was; none: it begins anew.
    pub at: Option<Line>,
    /// The definition; none: the same.
    pub definition: Option<Network>,
    /// Said at the line, before anything else happens there, in place of the next recorded message.
    pub say: Option<String>,
    /// Effects touch the world, where they are not on record.
    pub live: bool,
    /// Who answers in the place of people.
    pub people: People,
    /// A name for it: its label `rerun`.
    pub name: Option<String>,
    /// Asked after each line how it goes on; none: it does.
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
    /// The definition with values set at paths: `models.default.model`, `agents.desk.system`. A key that was not written is; a
    /// name that is not declared stays so. Tools in Rust stay registered as they are; its tests are left out.
    ///
    /// # Errors
    /// [`Error::Refused`] if the definition is none any more, with what is wrong, or a path leads through what has no
    /// fields or names something that is not declared: the nearest name is told.
    pub fn with_set(&self, values: &[(String, Json)]) -> Result<Self, Error> {
        let checked = with_set(self.checked(), values).map_err(Error::Refused)?;
        Ok(self.with_checked(checked))
    }

    /// Where modes of an agent set anew what this path sets for the agent: `agents.desk.modes.plan.model` for
    /// `agents.desk.model`. In those modes the agent's own value means nothing.
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

/// Keys under which names are declared: `--set` and [`Network::with_set`] change what is declared and declare nothing.
const DECLARES: &[(&str, &str)] = &[
    ("agents", "agent"),
    ("config", "value of `config`"),
    ("events", "event"),
    ("fields", "field"),
    ("mcp", "MCP server"),
    ("models", "model"),
    ("modes", "mode"),
    ("parameters", "parameter"),
    ("secrets", "secret"),
    ("state", "entry of state"),
    ("states", "state"),
    ("tasks", "task"),
    ("tools", "tool"),
];

/// Refuses a name that is not declared under a key, with the nearest that is.
fn declared(path: &str, under: &str, what: &str, name: &str, all: &Json) -> Result<(), String> {
    let known: Vec<&str> = match all {
        Json::Object(fields) => fields.keys().map(String::as_str).collect(),
        Json::Null => Vec::new(),
        // a list is no place for names, and what is no map says so itself
        _ => return Ok(()),
    };
    // every definition has this one, written or not
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

/// As [`Network::with_set`], of a checked definition.
pub(crate) fn with_set(
    network: &steersman_machine::network::Network,
    values: &[(String, Json)],
) -> Result<steersman_machine::network::Network, String> {
    let mut stored: Json = serde_json::from_str(&network.source)
        .map_err(|e| format!("the definition cannot be read: {e}"))?;
    for (path, value) in values {
        set(&mut stored["definition"], path, value)?;
    }
    let mut made = definition::compile_stored(&stored.to_string())?;
    made.natives = network.natives.clone();
    Ok(made)
}

fn set(definition: &mut Json, path: &str, value: &Json) -> Result<(), String> {
    let mut at = definition;
    let mut steps = path.split('.').peekable();
    // the key under which the next step is a name
    let mut names: Option<(&str, &str)> = None;
    while let Some(step) = steps.next() {
        if step.is_empty() {
            return Err(format!("`{path}` is no path: models.default.model"));
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
        // A model may be written in short, as its name.
        if at.is_string() && path.starts_with("models.") && steps.peek().is_none() {
            *at = serde_json::json!({ "model": at.clone() });
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

/// A session's own definition, as it is bound: for a change of a value in it.
impl Steersman {
    /// The definition that a session is bound to, with values set at paths ([`Network::with_set`]).
    ///
    /// # Errors
    /// As [`Network::with_set`]; of kind [`NotFound`](crate::ErrorKind::NotFound).
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
