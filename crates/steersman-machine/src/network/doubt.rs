//! Doubt: the ways to settle an `unsafe` effect that may or may not have happened.

use super::ToolDef;
use crate::stored::ids::Name;
use crate::values::expression::{Data, Expr};

/// Name in `by` that lets every person settle a doubt.
pub const ANYBODY: &str = "any";

/// A way to settle a doubt.
#[derive(Clone, Debug, PartialEq)]
pub enum OnDoubt {
    /// A person says whether the effect happened.
    Ask {
        /// The people who are asked: `user`, people of the network, or `any`. If empty, see [`ToolDef::doubt_askers`].
        by: Vec<Name>,
    },
    /// The call closes, and its result tells the model that the effect may have happened.
    Fail,
    /// Another tool finds out.
    Probe {
        /// The probe, a tool of class `pure` or `read`.
        probe: Name,
        /// Arguments of the probe.
        args: Vec<(Name, Data)>,
        /// Expression over the probe's `result`; true means that the effect happened.
        done: Expr,
        /// Consequence if `done` is false.
        otherwise: ProbeElse,
        /// The people who are asked if the probe finds out nothing, as in `Ask`.
        by: Vec<Name>,
    },
}

/// Consequence of a probe that says that the effect did not happen.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ProbeElse {
    /// The effect may run again.
    NotPerformed,
    /// A person says whether the effect happened.
    Ask,
    /// The call closes, and its result tells the model that the effect is in doubt.
    Fail,
}

impl ToolDef {
    /// Returns the people who are asked whether a call of this tool happened: those that the definition names, else the first
    /// person of each approval of the tool, else [`ANYBODY`]. Each of them alone may answer.
    pub fn doubt_askers(&self) -> Vec<Name> {
        if let Some(OnDoubt::Ask { by } | OnDoubt::Probe { by, .. }) = &self.on_doubt
            && !by.is_empty()
        {
            return by.clone();
        }
        let mut askers: Vec<Name> = Vec::new();
        for approve in &self.approve {
            if !askers.contains(&approve.by) {
                askers.push(approve.by.clone());
            }
        }
        if askers.is_empty() {
            askers.push(ANYBODY.into());
        }
        askers
    }
}
