//! The MCP servers of a definition: they are asked for their tools when a session starts, or to check that they answer.

use crate::Env;
use crate::bind::{self, BindError, Values};
use crate::engine::Engine;
use crate::store::{MAX_VALUE, Scope};
use crate::toolset::{Asked, ListMark, ServerAsk};
use futures::FutureExt;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use steersman_machine::network::manifest::{Listing, Manifest};
use steersman_machine::network::{AgentDef, Network, Source};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::Names;
use steersman_machine::view::mapping::Fault;

/// The present answer of one server of a definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Name of the server in the definition.
    pub server: Name,
    /// The tools that the server offers and the definition takes, or the reason why they are not known.
    pub offers: Result<Listing, Fault>,
}

/// Asks all servers of a definition at the same time, used or not, for `doctor` and for checks. Nothing is written.
pub async fn look(
    engine: &Engine,
    network: &Arc<Network>,
    config: &BTreeMap<Name, Json>,
    folder: &Path,
) -> Result<Vec<Answer>, BindError> {
    let config = bind::config(network, &engine.0.options.env, config)?;
    let names = network.mcp.keys().cloned();
    let part = engine.scope().cloned().unwrap_or_default();
    let of = (&config, &part);
    let asked = ask_each(engine, network, of, folder.into(), names).await;
    let answer = |(server, asked): (Name, Asked)| {
        let offers = match asked {
            Asked::Offers(listing) => Ok(listing),
            Asked::Played => Ok(Listing::default()),
            Asked::Failed(fault) => Err(fault),
            Asked::Elsewhere => Err(Fault::new(Code::Failed, NOBODY)),
        };
        Answer { server, offers }
    };
    Ok(asked.into_iter().map(answer).collect())
}

/// Returns the request to one server of a definition, as a session of this tenant and subject makes it. `None` if the definition has no
/// such server.
///
/// # Errors
/// A `config` value is missing.
pub fn request(
    engine: &Engine,
    network: &Arc<Network>,
    folder: &Path,
    server: &str,
    part: &Scope,
) -> Result<Option<ServerAsk>, BindError> {
    let config = bind::config(network, &engine.0.options.env, &BTreeMap::new())?;
    let names = network
        .mcp
        .keys()
        .filter(|name| ***name == *server)
        .cloned();
    let (asks, _) = asks(engine, network, (&config, part), &folder.into(), names);
    Ok(asks.into_iter().next())
}

const NOBODY: &str = "this program cannot reach MCP servers";

/// Returns the servers that the network uses: it names one of their tools, or offers one to a model.
fn used(network: &Network) -> BTreeSet<Name> {
    let named = network
        .tools
        .values()
        .filter_map(|tool| match &tool.source {
            Source::Mcp { server, .. } => Some(server),
            _ => None,
        });
    let offered = network.agents.values().flat_map(AgentDef::models);
    let offered = offered.flat_map(|model| &model.servers);
    named
        .chain(offered.map(|used| &used.server))
        .cloned()
        .collect()
}

/// Asks the used servers for the manifest of a session that is to be bound to these values. Simulated servers are left out, and a
/// server whose list is `known` is not asked.
pub(crate) async fn ask(
    engine: &Engine,
    network: &Arc<Network>,
    (values, part): (&Values, &Scope),
    known: Manifest,
) -> Result<Manifest, BindError> {
    let (mut names, mut manifest) = (used(network), known);
    manifest.servers.retain(|name, _| names.contains(name));
    names.retain(|name| !manifest.servers.contains_key(name));
    let of = (&values.config, part);
    let asked = ask_each(engine, network, of, values.folder(), names).await;
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

/// Asks the used servers whose lists are `known`. Returns in words how their lists are now; nothing for a server that does not answer.
pub(crate) async fn differences(
    engine: &Engine,
    network: &Arc<Network>,
    (values, part): (&Values, &Scope),
    known: &Manifest,
) -> Vec<String> {
    let mut names = used(network);
    names.retain(|name| known.servers.contains_key(name));
    let of = (&values.config, part);
    let asked = ask_each(engine, network, of, values.folder(), names).await;
    let differ = asked.into_iter().filter_map(|(server, asked)| match asked {
        Asked::Offers(listing) => Some(listing.changes(&server, &known.servers[&server])),
        Asked::Played | Asked::Failed(_) | Asked::Elsewhere => None,
    });
    differ.flatten().collect()
}

/// Completes a network with a manifest, and returns the manifest's text. Returns the network itself if the manifest is
/// empty.
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
            "the descriptions of its servers' tools have {has} KiB; at most {most} KiB are kept: take fewer with `tools` of the server"
        );
        return Err(BindError::Tools(vec![why]));
    }
    Ok((Arc::new(bound), Some(text)))
}

async fn ask_each(
    engine: &Engine,
    network: &Arc<Network>,
    of: Of<'_>,
    folder: Arc<Path>,
    servers: impl IntoIterator<Item = Name>,
) -> Vec<(Name, Asked)> {
    let (asks, unset) = asks(engine, network, of, &folder, servers);
    let unset = &unset;
    let asked = asks.into_iter().map(|ask| async move {
        let asked = ask_one(engine, &ask, unset).await;
        (ask.server, asked)
    });
    futures::future::join_all(asked).await
}

async fn ask_one(engine: &Engine, ask: &ServerAsk, unset: &[String]) -> Asked {
    for toolset in &engine.0.toolsets {
        match toolset.list(ask).await {
            Asked::Elsewhere => {}
            Asked::Failed(fault) if !unset.is_empty() => {
                // Without a secret, most failures are caused by the missing secret.
                let message = format!("{} ({})", fault.message, unset.join("; "));
                return Asked::Failed(Fault { message, ..fault });
            }
            asked => return asked,
        }
    }
    Asked::Elsewhere
}

/// The values of `config`, and the tenant and subject on whose behalf servers are asked.
type Of<'a> = (&'a BTreeMap<Name, Json>, &'a Scope);

/// Returns the requests to servers, and the reasons why secrets are missing.
fn asks(
    engine: &Engine,
    network: &Arc<Network>,
    (config, part): Of<'_>,
    folder: &Arc<Path>,
    servers: impl IntoIterator<Item = Name>,
) -> (Vec<ServerAsk>, Vec<String>) {
    let (scope, unset) = outside(network, config, &engine.0.options.env, folder);
    let scope = Arc::new(scope);
    let ask = |server| ServerAsk {
        network: network.clone(),
        server,
        folder: folder.clone(),
        part: part.clone(),
        scope: scope.clone(),
    };
    (servers.into_iter().map(ask).collect(), unset)
}

/// Returns the servers that are used and whose lists are followed.
fn followed(network: &Network) -> BTreeSet<Name> {
    let mut used = used(network);
    used.retain(|name| network.mcp.get(name).is_some_and(|server| server.follows));
    used
}

/// Marks of the lists of followed servers. They are known without asking the servers.
pub(crate) type Marks = BTreeMap<Name, Option<ListMark>>;

/// Returns the marks of all servers that this session follows.
pub(crate) fn marks(
    engine: &Engine,
    network: &Arc<Network>,
    (values, part): (&Values, &Scope),
) -> Marks {
    let servers = followed(network);
    if servers.is_empty() {
        return Marks::new();
    }
    let of = (&values.config, part);
    let (asks, _) = asks(engine, network, of, &values.folder(), servers);
    let marked = asks.into_iter().map(|ask| {
        let mark = mark(engine, &ask);
        (ask.server, mark)
    });
    marked.collect()
}

fn mark(engine: &Engine, ask: &ServerAsk) -> Option<ListMark> {
    engine
        .0
        .toolsets
        .iter()
        .find_map(|toolset| toolset.mark(ask))
}

/// The answer of a followed server, and the mark that belongs to the answer.
#[derive(Clone)]
pub(crate) struct Listed {
    pub(crate) server: Name,
    pub(crate) asked: Asked,
    pub(crate) mark: Option<ListMark>,
}

/// Asks these servers again. A panic counts as a failed answer.
pub(crate) async fn list_again(
    engine: Engine,
    network: Arc<Network>,
    (values, part): (Values, Scope),
    servers: Vec<Name>,
) -> Vec<Listed> {
    let of = (&values.config, &part);
    let (asks, unset) = asks(&engine, &network, of, &values.folder(), servers);
    let (engine, unset) = (&engine, &unset);
    let listed = asks.into_iter().map(|ask| async move {
        let before = mark(engine, &ask);
        let asked = AssertUnwindSafe(ask_one(engine, &ask, unset)).catch_unwind();
        let asked = asked
            .await
            .unwrap_or_else(|_| Asked::Failed(Fault::new(Code::Failed, "the MCP client panicked")));
        // A change that was reported during the request may be missing from the answer, so the mark from before the request is
        // used. A connection that was made for this request began without changes.
        let mark = mark(engine, &ask).map(|after| match before {
            Some(before) if before.connection == after.connection => before,
            _ => ListMark {
                changes: 0,
                ..after
            },
        });
        let server = ask.server;
        Listed {
            server,
            asked,
            mark,
        }
    });
    futures::future::join_all(listed).await
}

/// Returns the names that templates of servers read (configuration and secrets, no session), and the reasons why secrets are
/// missing.
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
