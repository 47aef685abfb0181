//! Tool lists that MCP servers changed: a commit applies them before a model is asked again.
//!
//! Nothing is done for a session that rests. Before a model is asked, each followed list is checked for a sign of change since
//! it was last applied: the server announced a change, or the connection is new. Then the server is asked first, in a task of
//! its own. Open calls keep their tools, and so do branches that begin where calls are open: the new manifest has these tools
//! unchanged.

use super::parts::OpenAt;
use super::rebind::Anew;
use super::{Answered, Do, Job, Stop, Want};
use crate::bind::{self, ManifestHash, Values};
use crate::engine::EngineError;
use crate::past::ERASED;
use crate::servers::{self, Listed};
use crate::toolset::Asked;
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::network::manifest::Manifest;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::codec::Hash;
use steersman_machine::stored::commit::{Binding, LedgerEntry};
use steersman_machine::stored::ids::{Id, Name};

/// Maximum number of characters of the description of a change, or of the reason why it cannot be applied.
const TOLD: usize = 2_000;
/// Stands in for the message id where a changed list is refused: there is no message.
const REFRESH: &str = "refresh";

impl Job<'_, '_> {
    /// Returns true if a model call has to wait because a followed list may have changed: the servers are asked first.
    pub(super) fn asks_servers_first(&mut self, call: Id) -> bool {
        let network = self.network().clone();
        if self.d.bound.values().manifest.is_none()
            || !network.mcp.values().any(|server| server.follows)
        {
            return false;
        }
        if self.d.servers.is_asking() {
            self.d.servers.asks(call);
            return true;
        }
        let over = |(branch, call): &OpenAt| {
            let branch = self.d.branches.live().get(branch);
            branch.is_none_or(|branch| !branch.snapshot.calls.contains_key(call))
        };
        self.d.servers.look_at_kept(over);
        let part = self.d.who.claim().scope.clone();
        let marks = servers::marks(self.seen.engine, &network, (self.d.bound.values(), &part));
        let stale = self.d.servers.stale(marks);
        if stale.is_empty() {
            return false;
        }
        self.d.servers.asks(call);
        self.out.orders.push(Do::List(stale, part));
        true
    }

    /// Applies the changes that servers reported, server by server, and reports those that do not fit.
    pub(super) fn lists_came(&mut self, lists: Vec<Listed>) -> Result<(), Stop> {
        for call in self.d.servers.applies() {
            self.d.effects.wakes(call);
        }
        let (Some(hash), Some(definition)) = (self.d.bound.values().manifest, self.definition()?)
        else {
            return Ok(());
        };
        let mut manifest = self.manifest(hash)?;
        let (mut told, mut refused) = (Vec::new(), Vec::new());
        for listed in lists {
            self.d.servers.asked(&listed);
            let server = listed.server;
            let mut listing = match listed.asked {
                Asked::Offers(listing) => listing,
                Asked::Failed(fault) => {
                    let why = format!("MCP server `{server}`: {}", fault.message);
                    refused.push(format!("{why}; its tools stay as they were"));
                    continue;
                }
                Asked::Played | Asked::Elsewhere => continue,
            };
            let older = manifest.servers.get(&server).cloned().unwrap_or_default();
            let open = self.open_calls(&server);
            // The tool of a call that may have happened is needed until its end is known.
            let unsettled = self.unsettled_tools(&server)?;
            let tools = open.iter().map(|(_, tool)| tool.clone());
            let tools = tools.chain(unsettled).collect();
            let kept = listing.keep(&older, &tools);
            let keeps = open.into_iter().filter(|(_, tool)| kept.contains(tool));
            self.d.servers.keeps(keeps.map(|(call, _)| call));
            if listing == older {
                continue;
            }
            let changes = listing.changes(&server, &older);
            let mut next = manifest.clone();
            next.servers.insert(server.clone(), listing);
            match servers::bound(&definition, next.clone()) {
                Ok(_) => {
                    manifest = next;
                    told.extend(changes);
                }
                Err(why) => refused.push(format!(
                    "MCP server `{server}` changed its tools, and they stay as they were: {why}"
                )),
            }
        }
        self.refuse_lists(&refused)?;
        self.bind_manifest(&definition, manifest, &told)
    }

    /// Restores the tools of calls that are open at an older line where a branch is to begin. Returns the reason if this is not
    /// possible.
    pub(super) fn keep_tools_of(
        &mut self,
        snapshot: &Snapshot,
    ) -> Result<Result<(), String>, Stop> {
        let (Some(binding), Some(now)) = (&snapshot.binding, self.d.bound.values().manifest) else {
            return Ok(Ok(()));
        };
        let text = self.values_of(binding)?;
        let then = bind::manifest(self.d.who.session(), binding, &text)?;
        let (Some(then), Some(definition)) = (then, self.definition()?) else {
            return Ok(Ok(()));
        };
        if then == now {
            return Ok(Ok(()));
        }
        let older = self.manifest(then)?;
        let mut manifest = self.manifest(now)?;
        let mut told = Vec::new();
        for (server, older) in &older.servers {
            let Some(listing) = manifest.servers.get_mut(server) else {
                continue;
            };
            let open = open_in(snapshot, server).map(|(_, tool)| tool).collect();
            let kept = listing.keep(older, &open);
            told.extend(
                kept.into_iter()
                    .map(|tool| format!("`{server}.{tool}` is again what it was")),
            );
        }
        if told.is_empty() {
            return Ok(Ok(()));
        }
        if let Err(why) = servers::bound(&definition, manifest.clone()) {
            return Ok(Err(format!(
                "calls are open there whose tools have changed, and their former tools do not fit the present ones: {why}"
            )));
        }
        self.d.servers.forgets_marks();
        self.bind_manifest(&definition, manifest, &told).map(Ok)
    }

    /// Returns the session's definition as it was written, without the lists of servers; `None` before the session has begun.
    fn definition(&mut self) -> Result<Option<Arc<Network>>, Stop> {
        let mut branches = self.d.branches.live().values();
        let Some(binding) = branches.find_map(|branch| branch.snapshot.binding.clone()) else {
            return Ok(None);
        };
        self.network_of(binding.source, None).map(Some)
    }

    /// Returns the stored text of a binding's values.
    pub(super) fn values_of(&self, binding: &Binding) -> Result<Arc<str>, Stop> {
        let text = self.seen.past.stored(binding.values)?;
        Ok(text.unwrap_or_else(|| ERASED.into()))
    }

    /// Returns the network of a stored definition, completed with a manifest.
    pub(super) fn network_of(
        &mut self,
        source: Hash,
        manifest: Option<ManifestHash>,
    ) -> Result<Arc<Network>, Stop> {
        match self.found_network(source, manifest)? {
            Ok(network) => Ok(network),
            Err(why) => {
                let session = self.d.who.session().clone();
                Err(EngineError::Definition { session, why }.into())
            }
        }
    }

    /// Returns the network as [`Self::network_of`] does, or the reason why it cannot be used here.
    pub(super) fn found_network(
        &mut self,
        source: Hash,
        manifest: Option<ManifestHash>,
    ) -> Result<Result<Arc<Network>, String>, Stop> {
        match self.wants(Want::network(source, manifest))? {
            Answered::Network(found) => Ok(found.clone()),
            _ => unreachable!("an answer is of the kind that was asked for"),
        }
    }

    fn manifest(&mut self, hash: ManifestHash) -> Result<Manifest, Stop> {
        match self.wants(Want::Manifest(hash.0))? {
            Answered::Manifest(manifest) => Ok(manifest.clone()),
            _ => unreachable!("an answer is of the kind that was asked for"),
        }
    }

    /// Returns the open calls of a server's tools, on branches that have ticks.
    fn open_calls(&self, server: &Name) -> Vec<(OpenAt, String)> {
        let branches = self.d.branches.live().iter();
        let open = branches.flat_map(|(id, branch)| {
            open_in(&branch.snapshot, server).map(|(call, tool)| ((*id, call), tool))
        });
        open.collect()
    }

    /// Binds the session to this manifest from here on, if it is another than the bound one.
    fn bind_manifest(
        &mut self,
        definition: &Arc<Network>,
        manifest: Manifest,
        told: &[String],
    ) -> Result<(), Stop> {
        let bound = servers::bound(definition, manifest).map_err(EngineError::from)?;
        let (network, Some(text)) = bound else {
            return Ok(());
        };
        let hash = ManifestHash::of(&text);
        let mut bound = self.d.branches.live().values();
        let bound = bound.find_map(|b| b.snapshot.binding.clone());
        let Some(bound) = bound.filter(|_| self.d.bound.values().manifest != Some(hash)) else {
            return Ok(());
        };
        self.out.blobs.push((hash.0, text.as_bytes().into()));
        self.seen
            .engine
            .remember((bound.source, Some(hash)), network.clone());
        let values = Values {
            manifest: Some(hash),
            ..self.d.bound.values().clone()
        };
        let new = bind::binding(&network, bound.entry.clone(), &values);
        let told = clipped(told);
        self.bind_anew(&new, values, Anew::Servers(&told))?;
        self.d.bound.changes(network, false);
        Ok(())
    }

    /// Records in the ledger which changes could not be applied.
    fn refuse_lists(&mut self, refused: &[String]) -> Result<(), Stop> {
        let mut draft = self.draft(self.d.ledger.current);
        for why in refused {
            let why = draft.body(&clipped(std::slice::from_ref(why)));
            let message = REFRESH.into();
            draft.ledger.push(LedgerEntry::Refused { message, why });
        }
        self.write(draft)
    }
}

/// Returns the open calls of a server's tools in a snapshot, with the names of the tools at the server.
fn open_in(snapshot: &Snapshot, server: &Name) -> impl Iterator<Item = ((Id, Id), String)> {
    snapshot.calls.iter().filter_map(move |(key, open)| {
        let (of, tool) = open.call.name.split_once('.')?;
        (*of == **server).then(|| (*key, tool.to_owned()))
    })
}

fn clipped(told: &[String]) -> String {
    let told = told.join("; ");
    match told.char_indices().nth(TOLD) {
        Some((at, _)) => format!("{}…", &told[..at]),
        None => told,
    }
}
