//! Values of `config` that a session is bound to, and those that it is to be bound to.

use crate::{Error, Steersman};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use steersman_machine::stored::ids::Name;
use steersman_runtime::bind;

/// A value of `config` that a session is to be bound to.
#[derive(Clone, Debug, PartialEq)]
pub struct Rebinding {
    /// The name of the value.
    pub name: Name,
    /// The value that the session is bound to now; `null` if there is none.
    pub old: Json,
    /// The value that it is to be bound to.
    pub new: Json,
}

/// Reasons for which values cannot be bound.
#[derive(Debug, thiserror::Error)]
pub enum RebindingError {
    /// The definition does not declare a name, or a value does not have its type.
    #[error("{why}")]
    Misfit {
        /// The reason.
        why: bind::BindError,
        /// The names that the definition binds.
        names: Vec<Name>,
    },
    /// The session cannot be read.
    #[error(transparent)]
    Session(#[from] Error),
}

impl Steersman {
    /// Returns the old and the new value of each name of `config` that a session is to be bound to again, and checks them against its
    /// definition. [`Act::rebind`](crate::Act::rebind) does it. A session that has not begun has none.
    ///
    /// # Errors
    /// A name or a value does not fit; errors of the store.
    pub async fn rebindings(
        &self,
        id: &str,
        config: &BTreeMap<Name, Json>,
    ) -> Result<Vec<Rebinding>, RebindingError> {
        let seen = self.inspect(id).await?;
        let Some(network) = &seen.network else {
            return Ok(Vec::new());
        };
        let mut all = Vec::with_capacity(config.len());
        for (name, value) in config {
            bind::fits_bound(network, name, value).map_err(|why| RebindingError::Misfit {
                why,
                names: (network.config.iter())
                    .filter(|(_, config)| !config.live)
                    .map(|(name, _)| name.clone())
                    .collect(),
            })?;
            all.push(Rebinding {
                name: name.clone(),
                old: seen.values.config.get(name).cloned().unwrap_or(Json::Null),
                new: value.clone(),
            });
        }
        Ok(all)
    }
}
