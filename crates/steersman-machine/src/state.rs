//! State: whether what is written fits, in whose scope, and how it is recorded.

use crate::effect::NewWrite;
use crate::ids::Id;
use crate::interaction::{Reduce, Write};
use crate::mapping::{VALUE, reduced_misfit};
use crate::network::AgentDef;
use crate::tick::Tick;
use crate::types::{Misfit, misfit};
use crate::view::declares;

impl Tick<'_> {
    /// The writes as they are recorded, their values among this line's texts; or the first that does not fit. What
    /// fitted when it was mapped is judged again: the writer may stand elsewhere by now.
    pub(crate) fn writes(&mut self, writer: Id, new: &[NewWrite]) -> Result<Vec<Write>, Misfit> {
        let mut writes = Vec::with_capacity(new.len());
        for write in new {
            let bad = |why: String| {
                let path = format!("state.{}", write.name);
                Misfit { path, why }
            };
            let Some((scope, ty)) = declares(&self.cx(), &self.snapshot, writer, &write.name)
            else {
                return Err(bad("is not declared here".to_owned()));
            };
            let value = write.value.as_ref().filter(|v| !v.is_null());
            let found = match value {
                Some(value) => reduced_misfit(ty, value),
                None => misfit(ty, &serde_json::Value::Null),
            };
            if let Some(found) = found {
                return Err(found.under(&format!("state.{}", write.name)));
            }
            let text = value.map(serde_json::Value::to_string);
            if text.as_ref().is_some_and(|t| t.len() > VALUE) {
                return Err(bad(format!("has more than {} KiB", VALUE >> 10)));
            }
            let (reduce, expires) = (ty.reduce, ty.expires);
            writes.push(Write {
                scope,
                name: write.name.as_str().into(),
                value: text.map(|t| self.body(t)),
                reduce,
                expires,
            });
        }
        Ok(writes)
    }

    /// The defaults of the state that an agent declares, as writes into its own scope.
    pub(crate) fn defaults(&mut self, scope: Id, def: &AgentDef) -> Vec<Write> {
        let mut writes = Vec::new();
        for (name, ty) in &def.state {
            if let Some(default) = &ty.default {
                writes.push(Write {
                    scope,
                    name: name.clone(),
                    value: Some(self.body(default.to_string())),
                    reduce: Reduce::Last,
                    // It is what is left when a value has expired.
                    expires: None,
                });
            }
        }
        writes
    }

    /// Writes that make an instance's scope fresh: defaults again, everything else unset.
    pub(crate) fn fresh(&mut self, scope: Id, def: &AgentDef) -> Vec<Write> {
        let mut writes = self.defaults(scope, def);
        for (name, ty) in &def.state {
            if ty.default.is_none() && self.snapshot.cell(scope, name).is_some() {
                writes.push(Write {
                    scope,
                    name: name.clone(),
                    value: None,
                    reduce: Reduce::Last,
                    expires: None,
                });
            }
        }
        writes
    }
}
