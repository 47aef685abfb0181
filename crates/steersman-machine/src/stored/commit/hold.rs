//! Holds: reasons that keep an effect from running or from closing. **Stored**, like all of [`super`].

use crate::stored::ids::{Body, Digest, Id, Name, Time};
use serde::{Deserialize, Serialize};

/// A reason that keeps an effect from running or from closing. It covers all attempts of its effect and no other effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The effect that is held.
    pub effect: Id,
    /// Kind of the hold.
    pub why: Why,
    /// Digest of the tool's name and the arguments with which it would run.
    pub digest: Digest,
    /// The people who may answer, each of them alone: `user`, names of people, or `any`. Never empty.
    pub by: Vec<Name>,
    /// Text of the question.
    pub ask: Option<Body>,
    /// Time at which the hold ends by itself.
    pub due: Option<Time>,
    /// For `input` the parameter that is asked for. For `repeat` the equal effect that was done or given up before, as `n.k`; an
    /// `approval` of such a call names it, too. For `outage` the place that does not answer.
    pub about: Option<Name>,
}

impl Hold {
    /// Returns the people who may answer, as a sentence names them: `ops or supervisor`.
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
    /// The effect may have happened.
    Doubt,
    /// The effect may cost more than a limit of the session leaves ([`LedgerEntry::More`](super::LedgerEntry::More) has the
    /// amount).
    Budget,
    /// An equal effect was done or given up before.
    Repeat,
    /// The place of the model does not answer. No person is asked; the call is made again when the place answers.
    Outage,
}

/// The end of a hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Release {
    /// The effect may run. For a doubt: the effect did not happen.
    Go,
    /// The call may run with other arguments, as another effect.
    Edited,
    /// The effect does not run.
    Refused,
    /// The outcome of the effect is known now.
    Outcome,
    /// The outcome will never be known; the model is told so.
    GivenUp,
    /// The call or step of the effect was cancelled.
    Cancelled,
    /// The time of the hold ran out.
    Expired,
}
