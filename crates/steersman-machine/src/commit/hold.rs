//! Holds: what keeps an effect from running or from closing. **Stored**, like all of [`super`].

use crate::ids::{Body, Digest, Id, Name, Time};
use serde::{Deserialize, Serialize};

/// What keeps an effect from running or from closing. Covers all attempts of its effect and no other effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The effect.
    pub effect: Id,
    /// Why.
    pub why: Why,
    /// Of tool name and arguments, as they would run.
    pub digest: Digest,
    /// Who may answer, each of them alone: `user`, people, or `any`. Never empty.
    pub by: Vec<Name>,
    /// The question as asked.
    pub ask: Option<Body>,
    /// When it ends by itself.
    pub due: Option<Time>,
    /// The parameter that is asked for (`input`), the effect that was done or given up before (`repeat`, and `approval` of such a
    /// call, as `n.k`), or the place that does not answer (`outage`).
    pub about: Option<Name>,
}

impl Hold {
    /// Who may answer, as a sentence names them: `ops or supervisor`.
    pub fn askers(&self) -> String {
        self.by.join(" or ")
    }
}

/// Kinds of holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Why {
    /// A person decides on exactly these arguments.
    Approval,
    /// A person is asked for a secret.
    Input,
    /// It may have happened.
    Doubt,
    /// It may cost more than is left of a limit of the session ([`LedgerEntry::More`](super::LedgerEntry::More) says how much).
    Budget,
    /// The same was done or given up before.
    Repeat,
    /// The place of the model does not answer: nobody is asked, and the call is made again when it does.
    Outage,
}

/// How a hold ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Release {
    /// It may run (a doubt: it did not happen).
    Go,
    /// It may run with other arguments, as another effect.
    Edited,
    /// It does not run.
    Refused,
    /// Its outcome is known now.
    Outcome,
    /// Nobody will know; the model is told.
    GivenUp,
    /// What it belonged to was cancelled.
    Cancelled,
    /// The time ran out.
    Expired,
}
