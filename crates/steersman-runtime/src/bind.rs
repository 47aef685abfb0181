//! Binding: what a session's definition means here is decided once, when it starts, and recorded.

use crate::Env;
use crate::engine::EngineError;
use crate::model::BoundModel;
use crate::store::{SessionId, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use steersman_machine::commit::Binding;
use steersman_machine::ids::{Body, Digest, Id, Line, Name};
use steersman_machine::network::{Config, Network, TypeKind};
use steersman_machine::snapshot::Snapshot;

/// The values of a binding. **Stored** as JSON; holds no secret. What is added has a default; a program that does not
/// know a field refuses the values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Values {
    /// `config` values that are not `live`.
    pub config: BTreeMap<Name, Json>,
    /// What each model's name was resolved to.
    pub models: Vec<BoundModel>,
    /// Seed of all that is random here.
    pub seed: u64,
    /// The folder of the definition: what its relative paths mean, and where its commands run. No part of the digest: a session may move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The file of the definition in that folder, where it is not `steersman.yaml`. No part of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Hash of the stored manifest: what its MCP servers offered. None where there are no servers, or nobody asked them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<ManifestHash>,
    /// Nets in Rust that its agents name, each with the version that it was begun under.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nets: BTreeMap<Name, String>,
}

/// blake3 of a manifest's text, under which it lies in the blob store. **Stored** in hexadecimal digits.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ManifestHash(pub [u8; 32]);

impl ManifestHash {
    /// Of this text.
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
            .map_err(|_| format!("`{text}` is no hash"))
    }
}

impl Values {
    /// From their stored text; why they cannot be read otherwise. Nothing is made up for what is not there.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text)
            .map_err(|e| format!("the values of its binding cannot be read: {e}"))
    }

    /// The folder of the definition; that of the process for a definition that lies nowhere.
    pub fn folder(&self) -> Arc<Path> {
        Path::new(self.folder.as_deref().unwrap_or(".")).into()
    }
}

/// Why a session cannot be bound. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// A required value is missing.
    #[error("config `{name}` needs a value: set the environment variable {env}")]
    Missing {
        /// Name in `config`.
        name: Name,
        /// The variable.
        env: String,
    },
    /// A value does not have the declared type.
    #[error("config `{name}`: `{value}` is not {wanted} (from {place})")]
    Misfit {
        /// Name in `config`.
        name: Name,
        /// The text.
        value: String,
        /// The declared type.
        wanted: &'static str,
        /// Where it came from.
        place: String,
    },
    /// A value was given for a name that the definition does not declare.
    #[error("config `{0}` is not declared by this definition")]
    Undeclared(Name),
    /// A value is not bound, but read at each use.
    #[error(
        "config `{name}` is `live`: it is read at each use, from the environment variable {env}"
    )]
    Live {
        /// Name in `config`.
        name: Name,
        /// The variable.
        env: String,
    },
    /// A model cannot be had.
    #[error(transparent)]
    Model(#[from] crate::model::ModelsError),
    /// Money is limited, and it is not known what a model costs.
    #[error(
        "money is limited, and nobody knows what the model `{name}` ({label}) costs: give it a `price`"
    )]
    NoPrice {
        /// The definition's name.
        name: Name,
        /// What it was resolved to.
        label: Name,
    },
    /// A tool written in Rust is not registered in this program.
    #[error("tool `{0}` is implemented in Rust and not registered in this program")]
    NoTool(Name),
    /// States in Rust that an agent names are not registered in this program.
    #[error(
        "the net `{0}` comes with no engine and is not registered in this program: `Builder::net`, or is its name misspelt?"
    )]
    NoNet(Name),
    /// They are, in other versions.
    #[error(
        "the session was begun under version {version} of the net `{name}`, of which this program has {here}; it goes on \
         where that version is registered"
    )]
    NetVersion {
        /// The net.
        name: Name,
        /// The version that is wanted.
        version: String,
        /// What there is.
        here: String,
    },
    /// A router in Rust is not registered in this program.
    #[error(
        "version {version} of the router in Rust of agent `{agent}` is not registered in this program"
    )]
    NoRouter {
        /// The routed agent.
        agent: Name,
        /// The version that its definition names.
        version: String,
    },
    /// An MCP server cannot be asked what it offers.
    #[error("MCP server `{server}`: {why}")]
    Server {
        /// Its name in the definition.
        server: Name,
        /// What happened, and what to do.
        why: String,
    },
    /// What MCP servers offer does not fit the definition.
    #[error("the tools of its MCP servers do not fit the definition: {}", .0.join("; "))]
    Tools(Vec<String>),
}

/// Reads and checks all `config` values that are bound. `given` goes before the environment.
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
        // A live value is read again at each use; reading it here only checks that it is there.
        let value = match given.get(name) {
            Some(value) if fits(config, value) => value.clone(),
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

/// Whether a value may be bound to a name of `config` in a session that goes on.
///
/// # Errors
/// The definition does not declare the name, reads it anew at each use (`live`), or the value does not have its type.
pub fn fits_bound(network: &Network, name: &Name, value: &Json) -> Result<(), BindError> {
    let config = network.config.get(name);
    let config = config.ok_or_else(|| BindError::Undeclared(name.clone()))?;
    if config.live {
        return Err(BindError::Live {
            name: name.clone(),
            env: config.env.clone().unwrap_or_default(),
        });
    }
    if fits(config, value) {
        return Ok(());
    }
    Err(misfit(name, config, &value.to_string(), "the command line"))
}

/// One `config` value as it is now: of the environment, parsed to its type, else its default.
pub fn read(name: &Name, config: &Config, env: &Env) -> Result<Json, BindError> {
    let from_env = config.env.as_ref().and_then(|v| Some((v, env(v)?)));
    match (from_env, &config.default) {
        (Some((variable, text)), _) => parse(config, &text).ok_or_else(|| {
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

/// What each model costs: as the definition says, else as whoever knows models did. With a limit of money each that may
/// be asked has a price.
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

/// The binding of a session that starts under this network with these values.
pub fn binding(network: &Network, entry: Name, values: &Values) -> Binding {
    let mut named = network.digest.0.to_vec();
    named.extend(serde_json::to_vec(&values.config).expect("JSON values can be written as JSON"));
    if let Some(manifest) = &values.manifest {
        named.extend(manifest.0);
    }
    if !values.nets.is_empty() {
        named.extend(serde_json::to_vec(&values.nets).expect("names and versions are JSON"));
    }
    Binding {
        digest: Digest::of(&named),
        source: *blake3::hash(network.source.as_bytes()).as_bytes(),
        network: network.name.clone(),
        entry,
        values: Body::new(Line(1), 0),
        machine: MACHINE_VERSION,
    }
}

/// The manifest that a session is bound to, from the stored text of its values, if this program takes its binding: no
/// newer machine wrote it.
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

/// The values that a session runs under, if `network` compiles to what it is bound to. `text` is the stored text of the
/// values.
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

/// The binding that all branches of a session run under; none where none has begun. A session whose branches are bound
/// otherwise is refused: this version runs it under one.
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

/// Changes when the same network, snapshot and offers would give another commit.
pub const MACHINE_VERSION: u16 = 1;

fn parse(config: &Config, text: &str) -> Option<Json> {
    match config.ty.kind {
        TypeKind::Integer { .. } => text.trim().parse::<i64>().ok().map(Json::from),
        TypeKind::Number { .. } => text
            .trim()
            .parse::<f64>()
            .ok()
            .and_then(serde_json::Number::from_f64)
            .map(Json::Number),
        TypeKind::Boolean => match text.trim() {
            "true" => Some(true.into()),
            "false" => Some(false.into()),
            _ => None,
        },
        TypeKind::String { .. }
        | TypeKind::Enum(_)
        | TypeKind::List(_)
        | TypeKind::Fields(_)
        | TypeKind::Object
        | TypeKind::Any
        | TypeKind::Secret
        | TypeKind::Artifact
        | TypeKind::Schema(_) => Some(text.into()),
    }
}

fn fits(config: &Config, value: &Json) -> bool {
    match config.ty.kind {
        TypeKind::Integer { .. } => value.is_i64() || value.is_u64(),
        TypeKind::Number { .. } => value.is_number(),
        TypeKind::Boolean => value.is_boolean(),
        TypeKind::String { .. }
        | TypeKind::Enum(_)
        | TypeKind::List(_)
        | TypeKind::Fields(_)
        | TypeKind::Object
        | TypeKind::Any
        | TypeKind::Secret
        | TypeKind::Artifact
        | TypeKind::Schema(_) => value.is_string(),
    }
}

fn misfit(name: &Name, config: &Config, value: &str, place: &str) -> BindError {
    BindError::Misfit {
        name: name.clone(),
        value: value.to_owned(),
        wanted: match config.ty.kind {
            TypeKind::Integer { .. } => "a whole number",
            TypeKind::Number { .. } => "a number",
            TypeKind::Boolean => "`true` or `false`",
            TypeKind::String { .. }
            | TypeKind::Enum(_)
            | TypeKind::List(_)
            | TypeKind::Fields(_)
            | TypeKind::Object
            | TypeKind::Any
            | TypeKind::Secret
            | TypeKind::Artifact
            | TypeKind::Schema(_) => "a text",
        },
        place: place.to_owned(),
    }
}
