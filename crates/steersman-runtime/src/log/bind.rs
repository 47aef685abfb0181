//! Binding: the definition of a session with the `config` values, models and versions that it has on this computer. It is decided
//! once, when the session starts, and recorded.

use crate::Env;
use crate::log::error::EngineError;
use crate::model::{BoundModel, ModelsError};
use crate::store::{SessionId, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value as Json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use steersman_machine::network::{Config, Network};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::Binding;
use steersman_machine::stored::ids::{Body, Digest, Id, Line, Name};
use steersman_machine::values::expression::Names;
use steersman_machine::values::types::TypeKind;

/// The values of a binding. **Stored** as JSON; contains no secret. Every added field has a default. A program that does not
/// know a field refuses the values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Values {
    /// `config` values that are not `live`.
    pub config: BTreeMap<Name, Json>,
    /// The model that each model name was resolved to.
    pub models: Vec<BoundModel>,
    /// Seed of all randomness in the session.
    pub seed: u64,
    /// Folder of the definition. Relative paths start there, and commands run there. Not part of the digest: a session may move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// File of the definition in that folder, if it is not `steersman.yaml`. Not part of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Hash of the stored manifest, which lists what the MCP servers offered. `None` if there are no servers or none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<ManifestHash>,
    /// The nets in Rust that the agents name, each with the version under which the session began.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nets: BTreeMap<Name, String>,
}

/// blake3 hash of a manifest's text, and the key of that text in the blob store. **Stored** in hexadecimal digits.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ManifestHash(pub [u8; 32]);

impl ManifestHash {
    /// Returns the hash of a manifest's text.
    pub fn of(text: &str) -> Self {
        Self(*blake3::hash(text.as_bytes()).as_bytes())
    }
}

impl From<ManifestHash> for String {
    fn from(hash: ManifestHash) -> Self {
        blake3::Hash::from_bytes(hash.0).to_hex().to_string()
    }
}

impl TryFrom<String> for ManifestHash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let hash = blake3::Hash::from_hex(&text);
        hash.map(|hash| Self(*hash.as_bytes()))
            .map_err(|_| format!("`{text}` is not a hash"))
    }
}

impl Values {
    /// Parses values from their stored text. The error says why they cannot be read. Missing values are never invented.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text)
            .map_err(|e| format!("the values of its binding cannot be read: {e}"))
    }

    /// Returns the folder of the definition, or `.` if the definition is not in a folder.
    pub fn folder(&self) -> Arc<Path> {
        Path::new(self.folder.as_deref().unwrap_or(".")).into()
    }
}

/// Reasons for which a session cannot be bound. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// A required `config` value is missing.
    #[error("config `{name}` needs a value: set the environment variable {env}")]
    Missing {
        /// Name of the value in `config`.
        name: Name,
        /// The environment variable that can set the value.
        env: String,
    },
    /// A value does not have the declared type.
    #[error("config `{name}`: `{value}` is not {wanted} (from {place})")]
    Misfit {
        /// Name of the value in `config`.
        name: Name,
        /// The text that was given.
        value: String,
        /// The declared type, in words.
        wanted: &'static str,
        /// Origin of the value: the command line or an environment variable.
        place: String,
    },
    /// A value was given for a name that the definition does not declare.
    #[error("config `{0}` is not declared by this definition")]
    Undeclared(Name),
    /// The value is not bound, because it is read at each use.
    #[error(
        "config `{name}` is `live`: it is read at each use, from the environment variable {env}"
    )]
    Live {
        /// Name of the value in `config`.
        name: Name,
        /// The environment variable that the value is read from.
        env: String,
    },
    /// A model cannot be resolved.
    #[error(transparent)]
    Model(#[from] ModelsError),
    /// The definition limits money, and the price of a model is not known.
    #[error(
        "money is limited, and nobody knows what the model `{name}` ({label}) costs: give it a `price`"
    )]
    NoPrice {
        /// Name of the model in the definition.
        name: Name,
        /// The model that the name was resolved to.
        label: Name,
    },
    /// A tool written in Rust is not registered in this program.
    #[error("tool `{0}` is implemented in Rust and not registered in this program")]
    NoTool(Name),
    /// A net in Rust that an agent names is not registered in this program.
    #[error(
        "the net `{0}` is neither built in nor registered in this program: register it with `Builder::net`, or correct its name"
    )]
    NoNet(Name),
    /// This program has the net, but in other versions.
    #[error(
        "the session was begun under version {version} of the net `{name}`, of which this program has {here}; it goes on \
         where that version is registered"
    )]
    NetVersion {
        /// Name of the net.
        name: Name,
        /// The version under which the session began.
        version: String,
        /// The versions that this program has.
        here: String,
    },
    /// A hook in Rust is not registered in this program, or in other versions.
    #[error(
        "the definition has version {version} of the hook `{name}`, of which this program has {here}: register it with \
         `Builder::hook`"
    )]
    NoHook {
        /// Name of the hook.
        name: Name,
        /// The version that the definition names.
        version: String,
        /// The versions that this program has.
        here: String,
    },
    /// A router in Rust is not registered in this program.
    #[error(
        "version {version} of the router in Rust of agent `{agent}` is not registered in this program"
    )]
    NoRouter {
        /// The routed agent that uses the router.
        agent: Name,
        /// The version that the definition names.
        version: String,
    },
    /// An MCP server cannot be asked for its tools.
    #[error("MCP server `{server}`: {why}")]
    Server {
        /// Name of the server in the definition.
        server: Name,
        /// The cause, and what to do about it.
        why: String,
    },
    /// The tools of the MCP servers do not fit the definition. Holds one message for each problem.
    #[error("the tools of its MCP servers do not fit the definition: {}", .0.join("; "))]
    Tools(Vec<String>),
}

/// Reads and checks all `config` values, and returns those that are bound. `given` takes precedence over the environment.
pub fn config(
    network: &Network,
    env: &Env,
    given: &BTreeMap<Name, Json>,
) -> Result<BTreeMap<Name, Json>, BindError> {
    if let Some(name) = given.keys().find(|n| !network.config.contains_key(*n)) {
        return Err(BindError::Undeclared(name.clone()));
    }
    let mut values = BTreeMap::new();
    for (name, config) in &network.config {
        // A live value is read again at each use. Reading it here only checks that it is present and valid.
        let value = match given.get(name) {
            Some(value) if Plain::of(config).fits(value) => value.clone(),
            Some(value) => {
                return Err(misfit(name, config, &value.to_string(), "the command line"));
            }
            None => read(name, config, env)?,
        };
        if !config.live {
            values.insert(name.clone(), value);
        }
    }
    Ok(values)
}

/// Checks that a value may be bound to a name of `config` in a session that has already begun.
///
/// # Errors
/// The definition does not declare the name, the name is `live` (read at each use), or the value does not have the type.
pub fn fits_bound(network: &Network, name: &Name, value: &Json) -> Result<(), BindError> {
    let config = network.config.get(name);
    let config = config.ok_or_else(|| BindError::Undeclared(name.clone()))?;
    if config.live {
        return Err(BindError::Live {
            name: name.clone(),
            env: config.env.clone().unwrap_or_default(),
        });
    }
    if Plain::of(config).fits(value) {
        return Ok(());
    }
    Err(misfit(name, config, &value.to_string(), "the command line"))
}

/// Returns the present value of one `config` name: the environment variable, parsed to its type, otherwise the default.
pub fn read(name: &Name, config: &Config, env: &Env) -> Result<Json, BindError> {
    let from_env = config.env.as_ref().and_then(|v| Some((v, env(v)?)));
    match (from_env, &config.default) {
        (Some((variable, text)), _) => Plain::of(config).parse(&text).ok_or_else(|| {
            misfit(
                name,
                config,
                &text,
                &format!("environment variable {variable}"),
            )
        }),
        (None, Some(default)) => Ok(default.clone()),
        (None, None) => Err(BindError::Missing {
            name: name.clone(),
            env: config.env.clone().unwrap_or_default(),
        }),
    }
}

/// Returns the network with the names of its models: those of `given`, else those of the definition with the bound `config` in their
/// templates.
///
/// # Errors
/// A name cannot be rendered, or `given` has a model that the definition does not declare.
pub fn named_models(
    network: &Network,
    config: &BTreeMap<Name, Json>,
    given: &BTreeMap<Name, String>,
) -> Result<Network, BindError> {
    let wrong = |name: Name, message: String| BindError::Model(ModelsError { name, message });
    if let Some(name) = given
        .keys()
        .find(|name| !network.models.contains_key(*name))
    {
        let known: Vec<&str> = network.models.keys().map(|name| &**name).collect();
        let message = format!(
            "the definition does not declare it; there are: {}",
            known.join(", ")
        );
        return Err(wrong(name.clone(), message));
    }
    let scope = Names::from_json(serde_json::json!({ "config": config }));
    network
        .with_model_names(&scope, given)
        .map_err(|(name, error)| wrong(name, format!("its name: {error}")))
}

/// Sets the price of each model. A price in the definition takes precedence over the one that came with the resolved model.
/// If the definition limits money, each model that may be used must have a price.
pub fn prices(network: &Network, models: &mut [BoundModel]) -> Result<(), BindError> {
    for bound in &mut *models {
        let def = network.models.get(&bound.name);
        bound.price = def.and_then(|def| def.price).or(bound.price);
    }
    if !network.limits_cost() {
        return Ok(());
    }
    let used = network.used_models();
    let unknown = models
        .iter()
        .find(|bound| used.contains(&bound.name) && bound.price().is_none());
    match unknown {
        Some(bound) => Err(BindError::NoPrice {
            name: bound.name.clone(),
            label: bound.label(),
        }),
        None => Ok(()),
    }
}

/// Returns the binding of a session that starts under this network with these values.
pub fn binding(network: &Network, entry: Name, values: &Values) -> Binding {
    let mut hashed = network.digest.0.to_vec();
    hashed.extend(serde_json::to_vec(&values.config).expect("JSON values can be written as JSON"));
    if let Some(manifest) = &values.manifest {
        hashed.extend(manifest.0);
    }
    if !values.nets.is_empty() {
        hashed.extend(serde_json::to_vec(&values.nets).expect("names and versions are JSON"));
    }
    Binding {
        digest: Digest::of(&hashed),
        source: *blake3::hash(network.source.as_bytes()).as_bytes(),
        network: network.name.clone(),
        entry,
        values: Body::new(Line(1), 0),
        machine: MACHINE_VERSION,
    }
}

/// Returns the manifest that a session is bound to. `text` is the stored text of its values. A binding of a newer machine is
/// refused.
pub fn manifest(
    session: &SessionId,
    bound: &Binding,
    text: &str,
) -> Result<Option<ManifestHash>, EngineError> {
    if bound.machine > MACHINE_VERSION {
        return Err(EngineError::Store(StoreError::Newer {
            place: format!("session `{session}`"),
            what: format!("machine {}, this one is {MACHINE_VERSION}", bound.machine),
        }));
    }
    Ok(read_values(session, text)?.manifest)
}

fn read_values(session: &SessionId, text: &str) -> Result<Values, EngineError> {
    Values::read(text).map_err(|what| EngineError::Broken {
        session: session.clone(),
        what,
    })
}

/// Returns the values that a session runs under. `text` is their stored text. Fails if the digest of `network` with these values is
/// not the digest that the session is bound to.
pub fn open(
    session: &SessionId,
    network: &Network,
    bound: &Binding,
    text: &str,
) -> Result<Values, EngineError> {
    let values = read_values(session, text)?;
    let digest = binding(network, bound.entry.clone(), &values).digest;
    if digest != bound.digest {
        return Err(EngineError::Broken {
            session: session.clone(),
            what: format!(
                "its definition now compiles to {}, it is bound to {}",
                digest.short(),
                bound.digest.short()
            ),
        });
    }
    Ok(values)
}

/// Returns the binding that all branches of a session share, or `None` if no branch has begun. A session whose branches have
/// different bindings is refused: this version supports one binding per session.
pub fn common<'a>(
    session: &SessionId,
    branches: impl IntoIterator<Item = (Id, &'a Snapshot)>,
) -> Result<Option<&'a Binding>, EngineError> {
    let mut common: Option<(Id, &Binding)> = None;
    for (branch, snapshot) in branches {
        let Some(binding) = &snapshot.binding else {
            continue;
        };
        match common {
            Some((first, other)) if *other != **binding => {
                return Err(EngineError::Broken {
                    session: session.clone(),
                    what: format!(
                        "branch {branch} is bound to {}, {first} to {}, and this version runs all branches under one \
                         binding",
                        binding.digest.short(),
                        other.digest.short()
                    ),
                });
            }
            Some(_) => {}
            None => common = Some((branch, binding)),
        }
    }
    Ok(common.map(|(_, binding)| binding))
}

/// Version of the machine. It changes when the same network, snapshot and offers would give another commit.
pub const MACHINE_VERSION: u16 = 1;

/// Type of a `config` value.
#[derive(Copy, Clone)]
enum Plain {
    Integer,
    Number,
    Boolean,
    Text,
}

impl Plain {
    fn of(config: &Config) -> Self {
        match config.ty.kind {
            TypeKind::Integer { .. } => Self::Integer,
            TypeKind::Number { .. } => Self::Number,
            TypeKind::Boolean => Self::Boolean,
            // A definition declares no other type than these and a text.
            _ => Self::Text,
        }
    }

    fn parse(self, text: &str) -> Option<Json> {
        match self {
            Self::Integer => text.trim().parse::<i64>().ok().map(Json::from),
            Self::Number => {
                let number = text.trim().parse::<f64>().ok();
                number.and_then(Number::from_f64).map(Json::Number)
            }
            Self::Boolean => text.trim().parse::<bool>().ok().map(Json::from),
            Self::Text => Some(text.into()),
        }
    }

    fn fits(self, value: &Json) -> bool {
        match self {
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Text => value.is_string(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Boolean => "`true` or `false`",
            Self::Text => "a text",
        }
    }
}

fn misfit(name: &Name, config: &Config, value: &str, place: &str) -> BindError {
    BindError::Misfit {
        name: name.clone(),
        value: value.to_owned(),
        wanted: Plain::of(config).words(),
        place: place.to_owned(),
    }
}
