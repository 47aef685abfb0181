//! Nets and routers in Rust: registers those of this program, and checks that it has those that a session is bound to.

use crate::bind::{BindError, Values};
use crate::engine::{Engine, NetworkKey};
use crate::store::Needs;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use steersman_machine::network::nets::{Natives, Net, Router};
use steersman_machine::network::{Network, Source};
use steersman_machine::stored::codec::REVISION;
use steersman_machine::stored::ids::Name;

/// All registered nets and routers, by name and version.
#[derive(Default)]
pub(crate) struct Registered(Mutex<Known>);

#[derive(Default)]
struct Known {
    nets: BTreeMap<(Name, String), Arc<dyn Net>>,
    /// Routers by network, routed agent and version.
    routers: BTreeMap<(Name, Name, String), Arc<dyn Router>>,
}

impl Engine {
    /// Registers the nets and routers in Rust of a network, so that sessions which another process started can use them. A
    /// network that is started here is registered by the start.
    pub fn register(&self, network: &Network) {
        let mut known = self.0.natives.lock();
        for (name, net) in &network.natives.nets {
            let key = (name.clone(), net.version());
            known.nets.insert(key, net.clone());
        }
        for (agent, router) in &network.natives.routers {
            let key = (network.name.clone(), agent.clone(), router.version());
            known.routers.insert(key, router.clone());
        }
    }

    /// Returns the versions of the nets that a new session of this network is bound to.
    pub(crate) fn nets(&self, network: &Network) -> Result<BTreeMap<Name, String>, BindError> {
        self.register(network);
        self.check_rust(network)?;
        let named = network.nets_in_rust().into_iter();
        named
            .map(|name| match network.natives.nets.get(name) {
                Some(net) => Ok((name.clone(), net.version())),
                None => Err(BindError::NoNet(name.clone())),
            })
            .collect()
    }

    /// Returns the network with the nets and routers in Rust that a session is bound to. Checks that all of its tools in Rust are
    /// registered.
    ///
    /// # Errors
    /// This program lacks a net, a router or a tool, or has another version of it.
    pub(crate) fn with_natives(
        &self,
        network: Arc<Network>,
        values: &Values,
        key: NetworkKey,
    ) -> Result<Arc<Network>, BindError> {
        self.check_rust(&network)?;
        let nets = network.nets_in_rust();
        let routers = network.routers_in_rust();
        if nets.is_empty() && routers.is_empty() {
            return Ok(network);
        }
        let mut natives = Natives::default();
        let known = self.0.natives.lock();
        for name in nets {
            let Some(version) = values.nets.get(name) else {
                return Err(BindError::NoNet(name.clone()));
            };
            match known.nets.get(&(name.clone(), version.clone())) {
                Some(net) => natives.nets.insert(name.clone(), net.clone()),
                None => {
                    return Err(BindError::NetVersion {
                        name: name.clone(),
                        version: version.clone(),
                        here: known.versions(name),
                    });
                }
            };
        }
        for (agent, version) in routers {
            let wanted = (network.name.clone(), agent.clone(), version.to_owned());
            match known.routers.get(&wanted) {
                Some(router) => natives.routers.insert(agent.clone(), router.clone()),
                None => {
                    return Err(BindError::NoRouter {
                        agent: agent.clone(),
                        version: version.to_owned(),
                    });
                }
            };
        }
        drop(known);
        if natives.is_same(&network.natives) {
            return Ok(network);
        }
        let network = Arc::new(Network {
            natives,
            ..(*network).clone()
        });
        self.remember(key, network.clone());
        Ok(network)
    }

    /// Checks that every tool in Rust that a network declares is registered, and every router in its version.
    fn check_rust(&self, network: &Network) -> Result<(), BindError> {
        for (name, tool) in &network.tools {
            if let Source::Native { .. } = tool.source
                && self.toolset(network, name).is_none()
            {
                return Err(BindError::NoTool(name.clone()));
            }
        }
        let known = self.0.natives.lock();
        for (agent, version) in network.routers_in_rust() {
            let key = (network.name.clone(), agent.clone(), version.to_owned());
            if !known.routers.contains_key(&key) {
                return Err(BindError::NoRouter {
                    agent: agent.clone(),
                    version: version.to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// Returns what a program must have to drive a session with this network: tools, nets and routers in Rust, by kind and name; tools
/// and routers also by version.
pub(crate) fn needs(network: &Network) -> Needs {
    let tools = network.tools.iter().filter_map(|(name, tool)| {
        let Source::Native { version } = &tool.source else {
            return None;
        };
        Some(format!("tool:{name}:{version}"))
    });
    let nets = network.nets_in_rust().into_iter();
    let nets = nets.map(|name| format!("net:{name}"));
    let routers = network.routers_in_rust().into_iter();
    let routers =
        routers.map(|(agent, version)| format!("router:{}:{agent}:{version}", network.name));
    let natives: BTreeSet<Name> = tools.chain(nets).chain(routers).map(Name::from).collect();
    Needs {
        revision: REVISION,
        natives: natives.into_iter().collect(),
    }
}

impl Engine {
    /// Returns true if this program can drive a session with these needs. The version of a net is checked when the session is
    /// opened.
    pub(crate) fn can(&self, needs: &Needs) -> bool {
        let known = self.0.natives.lock();
        let has = |native: &Name| {
            let mut parts = native.splitn(3, ':');
            let [kind, name, version] = [(); 3].map(|()| parts.next().unwrap_or_default());
            match kind {
                "tool" => {
                    let mut toolsets = self.0.toolsets.iter();
                    toolsets.any(|tools| tools.has_native(name, version))
                }
                "net" => known.nets.keys().any(|(net, _)| **net == *name),
                "router" => known.routers.keys().any(|(network, agent, of)| {
                    **network == *name && version == format!("{agent}:{of}")
                }),
                _ => false,
            }
        };
        needs.revision <= REVISION && needs.natives.iter().all(has)
    }
}

impl Registered {
    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().expect("nobody panics while holding it")
    }
}

impl Known {
    /// Returns the registered versions of a net, for messages.
    fn versions(&self, name: &Name) -> String {
        let versions = self.nets.keys().filter(|(known, _)| known == name);
        let versions: Vec<&str> = versions.map(|(_, version)| version.as_str()).collect();
        if versions.is_empty() {
            "none".to_owned()
        } else {
            format!("version {}", versions.join(", "))
        }
    }
}
