//! What transport fields read: everything that templates read, with secrets, sealed state and live addresses opened.
//! Lives for one attempt; never stored, never logged.

use crate::Env;
use crate::engine::Engine;
use crate::past::Past;
use crate::seal::Sealer;
use minijinja::Value;
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_machine::expression::Scope;
use steersman_machine::ids::Id;
use steersman_machine::network::{Network, SecretSource};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::tick::Cx;
use steersman_machine::view::{Transport, View};

pub(crate) struct TransportScope {
    network: Arc<Network>,
    past: Arc<Past>,
    snapshot: Snapshot,
    agent: Id,
    args: Option<Arc<Json>>,
    opener: Opener,
}

impl TransportScope {
    pub(crate) fn new(
        network: Arc<Network>,
        past: Arc<Past>,
        snapshot: Snapshot,
        agent: Id,
        args: Option<Json>,
        engine: &Engine,
    ) -> Self {
        Self {
            opener: Opener {
                network: network.clone(),
                env: engine.0.options.env.clone(),
                sealer: engine.sealer().clone(),
            },
            network,
            past,
            snapshot,
            agent,
            args: args.map(Arc::new),
        }
    }
}

impl TransportScope {
    fn view<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        let cx = Cx {
            network: &self.network,
            bodies: &*self.past,
        };
        let view = View::new(&cx, &self.snapshot, Some(self.agent)).transport(&self.opener);
        match &self.args {
            Some(args) => look(&view.with_shared("args", args.clone())),
            None => look(&view),
        }
    }
}

impl Scope for TransportScope {
    fn root(&self, name: &str) -> Option<Value> {
        self.view(|view| view.root(name))
    }

    fn path(&self, root: &str, steps: &[&str]) -> Option<(Value, usize)> {
        self.view(|view| view.path(root, steps))
    }
}

struct Opener {
    network: Arc<Network>,
    env: Env,
    sealer: Sealer,
}

impl Transport for Opener {
    fn secret(&self, name: &str) -> Option<String> {
        read_secret(&self.network.secrets.get(name)?.source, &self.env)
    }

    fn live(&self, name: &str) -> Option<Json> {
        let (name, config) = self.network.config.get_key_value(name)?;
        crate::bind::read(name, config, &self.env).ok()
    }

    fn open(&self, sealed: &Json) -> Option<Json> {
        self.sealer.open(sealed).ok()
    }
}

/// A secret as it is now; none if it is unset.
pub(crate) fn read_secret(source: &SecretSource, env: &Env) -> Option<String> {
    match source {
        SecretSource::Env(name) => env(name).filter(|v| !v.is_empty()),
        SecretSource::File(path) => {
            let text = std::fs::read_to_string(path).ok()?;
            Some(text.strip_suffix('\n').unwrap_or(&text).to_owned())
        }
    }
}
