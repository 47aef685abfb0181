//! Nets, routers and hooks in Rust: registers those of this program, and checks that it has those that a session is bound to.

use crate::bind::{BindError, Values};
use crate::engine::{Engine, NetworkKey};
use crate::store::Needs;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use steersman_machine::network::hooks::{Hook, HookDef};
use steersman_machine::network::nets::{Natives, Net, Router};
use steersman_machine::network::{Network, Source};
use steersman_machine::stored::codec::REVISION;
use steersman_machine::stored::ids::Name;

/// All registered nets, routers and hooks, by name and version.
#[derive(Default)]
pub(crate) struct Registered(Mutex<Known>);

#[derive(Default)]
struct Known {
    nets: BTreeMap<(Name, String), Arc<dyn Net>>,
    /// Routers by network, routed agent and version.
    routers: BTreeMap<(Name, Name, String), Arc<dyn Router>>,
    hooks: BTreeMap<(Name, String), Arc<dyn Hook>>,
}

impl Engine {
    /// Registers the nets, routers and hooks in Rust of a network, so that sessions which another process started can use them. A
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
        for (name, hook) in &network.natives.hooks {
            let key = (name.clone(), hook.version());
            known.hooks.insert(key, hook.clone());
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

    /// Returns the network with the nets, routers and hooks in Rust that a session is bound to. Checks that all of its tools in Rust are
    /// registered.
    ///
    /// # Errors
    /// This program lacks a net, a router, a hook or a tool, or has another version of it.
    pub(crate) fn with_natives(
        &self,
        network: Arc<Network>,
        values: &Values,
        key: NetworkKey,
    ) -> Result<Arc<Network>, BindError> {
        self.check_rust(&network)?;
        let nets = network.nets_in_rust();
        let routers = network.routers_in_rust();
        if nets.is_empty() && routers.is_empty() && network.hooks.is_empty() {
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
        for def in &network.hooks {
            let hook = known.hook(def)?;
            natives.hooks.insert(def.name.clone(), hook.clone());
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

    /// Checks that every tool in Rust that a network declares is registered, and every router and hook in its version.
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
        for def in &network.hooks {
            known.hook(def)?;
        }
        Ok(())
    }
}

/// Returns what a program must have to drive a session with this network: tools, nets, routers and hooks in Rust, by kind and name;
/// all but nets also by version.
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
    let hooks = network.hooks.iter();
    let hooks = hooks.map(|hook| format!("hook:{}:{}", hook.name, hook.version));
    let all = tools.chain(nets).chain(routers).chain(hooks);
    let natives: BTreeSet<Name> = all.map(Name::from).collect();
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
                "hook" => known
                    .hooks
                    .contains_key(&(Name::from(name), version.to_owned())),
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
    /// Returns the hook that a definition declares.
    fn hook(&self, def: &HookDef) -> Result<&Arc<dyn Hook>, BindError> {
        let key = (def.name.clone(), def.version.clone());
        self.hooks.get(&key).ok_or_else(|| {
            let known = self.hooks.keys().filter(|(name, _)| *name == def.name);
            let here: Vec<&str> = known.map(|(_, version)| version.as_str()).collect();
            BindError::NoHook {
                name: def.name.clone(),
                version: def.version.clone(),
                here: if here.is_empty() {
                    "none".to_owned()
                } else {
                    format!("version {}", here.join(", "))
                },
            }
        })
    }

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
