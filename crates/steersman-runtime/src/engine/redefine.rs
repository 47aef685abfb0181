//! Continuing a session under another definition: the new binding, and the order that applies it.

use crate::bind::{self, BindError, ManifestHash, Values};
use crate::engine::{Engine, EngineError, Inspection};
use crate::inbox::{Redefinition, Wanted};
use crate::servers;
use crate::session::Receipt;
use crate::store::Scope;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::network::manifest::Manifest;
use steersman_machine::stored::commit::Binding;
use steersman_machine::stored::ids::{Digest, Name};

/// The definition under which a session is to continue.
#[derive(Clone, Debug)]
pub struct Redefine {
    /// The new definition, checked.
    pub network: Arc<Network>,
    /// Folder of the definition. Relative paths start there, and commands run there.
    pub folder: Option<String>,
    /// File of the definition in that folder, if it is not `steersman.yaml`.
    pub file: Option<String>,
    /// The person who requests the change.
    pub by: Name,
    /// Names of models at their providers, by the name in the definition. They take precedence over what the definition says and
    /// over what is bound.
    pub models: BTreeMap<Name, String>,
    /// Values of `config`. They take precedence over those that are bound.
    pub config: BTreeMap<Name, Json>,
}

/// Returns the values of `config` that stay bound: those that the other definition binds too, and that fit its types.
fn kept(network: &Network, values: &Values) -> BTreeMap<Name, Json> {
    let fits = |(name, value): &(&Name, &Json)| bind::fits_bound(network, name, value).is_ok();
    let kept = values.config.iter().filter(fits);
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

impl Engine {
    /// Returns the digest that a session would have under another definition, if it can be computed without asking a server.
    /// Returns `None` if the definition has MCP servers, or if a value of `config` or a net in Rust is missing.
    pub fn digest_under(&self, seen: &Inspection, network: &Network) -> Option<Digest> {
        if !network.mcp.is_empty() {
            return None;
        }
        let config = bind::config(network, &self.0.options.env, &kept(network, &seen.values));
        let values = Values {
            config: config.ok()?,
            nets: self.nets(network).ok()?,
            ..Values::default()
        };
        let entry = seen.binding()?.entry.clone();
        Some(bind::binding(network, entry, &values).digest)
    }

    /// Orders a session to continue under another definition, or under the same one at another place. No effect runs for that.
    /// Values of `config` that fit, and models that both definitions declare in the same way, stay bound. Everything else is bound
    /// as at the start of a session.
    ///
    /// # Errors
    /// Something that the definition needs is not available here, or the session has not begun. If the session refuses, this is
    /// no error; the receipt has the reason: a call is open, or the session uses an agent, tool or other name that the
    /// definition does not have.
    pub async fn redefine(&self, id: &str, wanted: Redefine) -> Result<Receipt, EngineError> {
        let seen = self.inspect(id).await?;
        let (Some(old), Some(bound)) = (&seen.network, seen.binding()) else {
            return Err(EngineError::Refused(
                "this session has not begun".to_owned(),
            ));
        };
        let (binding, values) = self
            .bound_to(
                old,
                bound,
                (&seen.values, &seen.info.scope),
                &wanted,
                Manifest::default(),
            )
            .await?;
        let order = Wanted::Redefine(Box::new(Redefinition {
            binding,
            values: serde_json::to_string(&values).expect("values are JSON"),
        }));
        self.order(id, order.by(wanted.by)).await
    }

    /// Returns the binding of a session under another definition, and stores everything that it names. Values of `config` that
    /// fit, and models that both definitions declare in the same way, stay bound, and so do the lists of these servers (`lists`).
    ///
    /// # Errors
    /// Something that the definition needs is not available here.
    pub(crate) async fn bound_to(
        &self,
        old: &Network,
        bound: &Binding,
        (bound_values, part): (&Values, &Scope),
        wanted: &Redefine,
        lists: Manifest,
    ) -> Result<(Binding, Values), EngineError> {
        let network = wanted.network.clone();
        let nets = self.nets(&network)?;
        let env = &self.0.options.env;
        for (name, value) in &wanted.config {
            bind::fits_bound(&network, name, value)?;
        }
        let mut config = kept(&network, bound_values);
        config.extend(wanted.config.clone());
        let mut values = Values {
            config: bind::config(&network, env, &config)?,
            folder: wanted.folder.clone(),
            file: wanted.file.clone(),
            nets,
            manifest: None,
            ..bound_values.clone()
        };
        let entered = network.beginning_with(&bound.entry);
        let mut changed = entered.clone();
        changed.models.retain(|name, model| {
            wanted.models.contains_key(name) || old.models.get(name) != Some(model)
        });
        values.models.retain(|model| {
            network.models.contains_key(&model.name) && !changed.models.contains_key(&model.name)
        });
        if !changed.models.is_empty() {
            let folder = values.folder();
            let changed = bind::named_models(&changed, &values.config, &wanted.models)?;
            let models = self.0.models.resolve(&changed, env, &folder);
            values
                .models
                .extend(models.await.map_err(BindError::Model)?);
            values.models.sort_by(|a, b| a.name.cmp(&b.name));
        }
        bind::prices(&entered, &mut values.models)?;
        let asked = servers::ask(self, &network, (&values, part), lists).await?;
        let (complete, manifest) = servers::bound(&network, asked)?;
        values.manifest = manifest.as_ref().map(|text| ManifestHash::of(text));
        let binding = bind::binding(&complete, bound.entry.clone(), &values);
        let store = self.store();
        let source: Arc<[u8]> = network.source.as_bytes().into();
        store.put_blob(binding.source, source).await?;
        if let (Some(hash), Some(text)) = (values.manifest, manifest) {
            store.put_blob(hash.0, text.as_bytes().into()).await?;
            self.remember((binding.source, Some(hash)), complete);
        }
        self.remember((binding.source, None), network);
        Ok((binding, values))
    }
}
