//! MCP servers of a definition: asked what they offer when a session starts, or by whoever wants to know whether they
//! answer.

use crate::Env;
use crate::bind::{self, BindError, ManifestHash, Values};
use crate::engine::{Engine, EngineError};
use crate::store::{MAX_VALUE, SessionId};
use crate::toolset::{Asked, ServerAsk};
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use steersman_machine::expression::Names;
use steersman_machine::ids::Name;
use steersman_machine::manifest::{Listing, Manifest};
use steersman_machine::mapping::Fault;
use steersman_machine::network::{Does, Network, Source};

/// What one server of a definition answers now.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Its name in the definition.
    pub server: Name,
    /// What it offers of what the definition takes, or why that cannot be known.
    pub offers: Result<Listing, Fault>,
}

/// What the servers of a definition answer now, used or not, all at once: for `doctor` and for checks. Nothing is written.
pub async fn look(
    engine: &Engine,
    network: &Arc<Network>,
    config: &BTreeMap<Name, Json>,
    folder: &Path,
) -> Result<Vec<Answer>, BindError> {
    let config = bind::config(network, &engine.0.options.env, config)?;
    let names = network.mcp.keys().cloned();
    let asked = ask_each(engine, network, &config, folder.into(), names).await;
    let answer = |(server, asked): (Name, Asked)| {
        let offers = match asked {
            Asked::Offers(listing) => Ok(listing),
            Asked::Played => Ok(Listing::default()),
            Asked::Failed(fault) => Err(fault),
            Asked::Elsewhere => Err(Fault::new("failed", NOBODY)),
        };
        Answer { server, offers }
    };
    Ok(asked.into_iter().map(answer).collect())
}

/// What a session would be bound to if its servers were asked again now: its values with the manifest that they give, which
/// is stored. None if they offer what they offered. Nothing of the session changes by this; where its servers do not answer,
/// or what they offer does not fit its definition any more, it stays as it is and the error says why.
pub async fn renewed(engine: &Engine, session: &str) -> Result<Option<Values>, EngineError> {
    let seen = engine.inspect(session).await?;
    let bindings = seen
        .branches
        .iter()
        .filter_map(|b| b.snapshot.binding.as_ref());
    let Some(binding) = bindings.into_iter().next() else {
        return Ok(None);
    };
    let renewed = renewed_values(engine, &seen.info.id, &binding.source, &seen.values).await?;
    Ok(renewed.map(|(values, _)| values))
}

/// The same of values that are at hand, with the network that they mean.
pub(crate) async fn renewed_values(
    engine: &Engine,
    session: &SessionId,
    source: &[u8; 32],
    values: &Values,
) -> Result<Option<(Values, Arc<Network>)>, EngineError> {
    let definition = engine.bound_network(session, source, None).await?;
    let asked = ask(engine, &definition, values).await?;
    let (network, text) = bound(&definition, asked)?;
    let manifest = text.as_ref().map(|text| ManifestHash::of(text));
    if manifest == values.manifest {
        return Ok(None);
    }
    if let (Some(hash), Some(text)) = (manifest, text) {
        let store = engine.store();
        store.put_blob(hash.0, text.as_bytes().into()).await?;
        engine.remember((*source, Some(hash)), network.clone());
    }
    let values = Values {
        manifest,
        ..values.clone()
    };
    Ok(Some((values, network)))
}

const NOBODY: &str = "nothing in this program reaches MCP servers";

/// The servers whose tools somebody is offered or that are named.
fn used(network: &Network) -> BTreeSet<Name> {
    let named = network
        .tools
        .values()
        .filter_map(|tool| match &tool.source {
            Source::Mcp { server, .. } => Some(server),
            _ => None,
        });
    let offered = network.agents.values().flat_map(|agent| match &agent.does {
        Does::Model(model) => model.servers.as_slice(),
        Does::Route(_) | Does::Run { .. } => &[],
    });
    named
        .chain(offered.map(|used| &used.server))
        .cloned()
        .collect()
}

/// What the servers that are used offer to a session that is to be bound to these values; those that are played are left
/// out.
pub(crate) async fn ask(
    engine: &Engine,
    network: &Arc<Network>,
    values: &Values,
) -> Result<Manifest, BindError> {
    let names = used(network);
    let asked = ask_each(engine, network, &values.config, values.folder(), names).await;
    let mut manifest = Manifest::default();
    for (server, asked) in asked {
        let failed = |why: String| BindError::Server {
            server: server.clone(),
            why,
        };
        match asked {
            Asked::Offers(listing) => {
                manifest.servers.insert(server, listing);
            }
            Asked::Played => {}
            Asked::Failed(fault) => return Err(failed(fault.message)),
            Asked::Elsewhere => return Err(failed(NOBODY.to_owned())),
        }
    }
    Ok(manifest)
}

/// The network completed by a manifest, with the manifest's text; the network itself where no server was asked.
pub(crate) fn bound(
    network: &Arc<Network>,
    manifest: Manifest,
) -> Result<(Arc<Network>, Option<String>), BindError> {
    if manifest.servers.is_empty() {
        return Ok((network.clone(), None));
    }
    let bound = network.with_manifest(&manifest).map_err(BindError::Tools)?;
    let text = manifest.text();
    if text.len() > MAX_VALUE {
        let (has, most) = (text.len() / 1024, MAX_VALUE / 1024);
        let why = format!(
            "what its servers say of their tools has {has} KiB, {most} KiB are kept: take fewer with `tools` of the server"
        );
        return Err(BindError::Tools(vec![why]));
    }
    Ok((Arc::new(bound), Some(text)))
}

async fn ask_each(
    engine: &Engine,
    network: &Arc<Network>,
    config: &BTreeMap<Name, Json>,
    folder: Arc<Path>,
    servers: impl IntoIterator<Item = Name>,
) -> Vec<(Name, Asked)> {
    let (scope, unset) = outside(network, config, &engine.0.options.env, &folder);
    let (scope, unset) = (Arc::new(scope), &unset);
    let asks = servers.into_iter().map(|server| {
        let ask = ServerAsk {
            network: network.clone(),
            server,
            folder: folder.clone(),
            scope: scope.clone(),
        };
        async move {
            for toolset in &engine.0.toolsets {
                match toolset.list(&ask).await {
                    Asked::Elsewhere => {}
                    Asked::Failed(fault) if !unset.is_empty() => {
                        // Most of what goes wrong without a secret does so because of that.
                        let message = format!("{} ({})", fault.message, unset.join("; "));
                        return (ask.server, Asked::Failed(Fault { message, ..fault }));
                    }
                    asked => return (ask.server, asked),
                }
            }
            (ask.server, Asked::Elsewhere)
        }
    });
    futures::future::join_all(asks).await
}

/// What templates of servers read: they belong to no session. With it why secrets are missing.
fn outside(
    network: &Network,
    config: &BTreeMap<Name, Json>,
    env: &Env,
    folder: &Path,
) -> (Names, Vec<String>) {
    let (mut secrets, mut unset) = (Map::new(), Vec::new());
    for (name, secret) in &network.secrets {
        match crate::secrets::read(name, secret, env, folder) {
            Ok(text) => {
                secrets.insert(name.to_string(), text.map_or(Json::Null, Json::from));
            }
            Err(error) => unset.push(error.to_string()),
        }
    }
    let live = network.config.iter().filter(|(_, config)| config.live);
    let live = live
        .filter_map(|(name, config)| Some((name.to_string(), bind::read(name, config, env).ok()?)));
    let bound = config
        .iter()
        .map(|(name, value)| (name.to_string(), value.clone()));
    let config: Map<String, Json> = bound.chain(live).collect();
    let names = json!({ "config": config, "secrets": secrets });
    (Names::from_json(names), unset)
}
