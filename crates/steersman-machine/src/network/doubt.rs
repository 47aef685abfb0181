//! What becomes of an `unsafe` effect of which nobody knows whether it happened.

use super::ToolDef;
use crate::expression::{Data, Expr};
use crate::ids::Name;

/// A doubt may be settled by anybody.
pub const ANYBODY: &str = "any";

/// A way out of doubt.
#[derive(Clone, Debug, PartialEq)]
pub enum OnDoubt {
    /// A person says.
    Ask {
        /// Who: `user`, people, or `any`. Empty: see [`ToolDef::doubt_askers`].
        by: Vec<Name>,
    },
    /// The model is told that it may have happened.
    Fail,
    /// Another tool finds out.
    Probe {
        /// A `pure` or `read` tool.
        probe: Name,
        /// Its arguments.
        args: Vec<(Name, Data)>,
        /// Over its `result`: it happened.
        done: Expr,
        /// When `done` is false.
        otherwise: ProbeElse,
        /// Who is asked where it finds out nothing, as in `Ask`.
        by: Vec<Name>,
    },
}

/// When a probe says that it did not happen.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ProbeElse {
    /// It may run again.
    NotPerformed,
    /// A person says.
    Ask,
    /// The model is told.
    Fail,
}

impl ToolDef {
    /// Who is asked whether a call of this tool happened: the people that are declared, else who is asked first to approve
    /// a call of it, else anybody. Each of them alone may say.
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
