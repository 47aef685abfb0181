//! Holds: reasons that keep an effect from running or from closing. **Stored**, like all of [`super`].

use crate::stored::ids::{Body, Digest, Id, Name, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A reason that keeps an effect from running or from closing. It covers all attempts of its effect and no other effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The effect that is held.
    pub effect: Id,
    /// Kind of the hold.
    pub why: Why,
    /// Digest of the tool's name and of the arguments of the held call; for `outage` of the place.
    pub digest: Digest,
    /// The roles that may answer: `user`, names of people, or `any`. One answer is enough. Empty for a wait, which no person
    /// ends.
    pub by: Vec<Name>,
    /// Text of the question. For `elicited` the message of the server.
    pub ask: Option<Body>,
    /// Time at which the hold ends by itself.
    pub due: Option<Time>,
    /// Subject of the hold.
    pub about: Option<About>,
}

/// Subject of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum About {
    /// For `input`: the parameter that is asked for.
    Parameter(Name),
    /// For `repeat`, and for the approval of a call that repeats an effect: the equal effect that was done or given up before.
    Equal(Id),
    /// Like `Equal`, for an effect of the session that this one reruns.
    Recorded(Id),
    /// For `outage`: the place that does not answer.
    Place(Name),
    /// For `doubt`: the step of the tool whose end is unknown.
    Step {
        /// Number of the step in its attempt, from 1.
        nth: u32,
        /// Name of the step.
        name: Name,
    },
    /// For `wait`: the point in the tool at which it waits. The time is in `due`.
    Wait {
        /// Number among the steps and waits of the attempt, from 1.
        nth: u32,
        /// Name of the wait.
        name: Name,
        /// JSON of the event that ends the wait: its name, and the values that its fields must have. `None` means that only the
        /// time in `due` ends it.
        event: Option<Body>,
    },
    /// For `elicited`: the JSON Schema of the fields that are asked for.
    Fields(Body),
}

impl About {
    /// Returns the place that does not answer, for `outage`.
    pub fn place(&self) -> Option<&Name> {
        match self {
            Self::Place(place) => Some(place),
            _ => None,
        }
    }

    /// Returns the parameter that is asked for, for `input`.
    pub fn parameter(&self) -> Option<&Name> {
        match self {
            Self::Parameter(parameter) => Some(parameter),
            _ => None,
        }
    }

    /// Returns the equal effect in words for people: `n.k`, or `recorded n.k` for an effect of the session that this one
    /// reruns.
    pub fn equal(&self) -> Option<String> {
        match self {
            Self::Equal(effect) => Some(effect.to_string()),
            Self::Recorded(effect) => Some(format!("recorded {effect}")),
            _ => None,
        }
    }

    /// Returns the body in the subject, if it has one: the event of a wait, or the schema of fields.
    pub fn body(&self) -> Option<Body> {
        match self {
            Self::Wait { event, .. } => *event,
            Self::Fields(schema) => Some(*schema),
            _ => None,
        }
    }
}

/// The subject in words for people.
impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter(name) | Self::Place(name) => f.write_str(name),
            Self::Equal(_) | Self::Recorded(_) => f.write_str(&self.equal().unwrap_or_default()),
            Self::Step { nth, name } => write!(f, "step {nth} `{name}`"),
            Self::Wait { nth, name, .. } => write!(f, "wait {nth} `{name}`"),
            Self::Fields(_) => f.write_str("fields"),
        }
    }
}

impl Hold {
    /// Returns the people who may answer, as part of a sentence: `ops or supervisor`.
    pub(crate) fn askers(&self) -> String {
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
    /// The effect may cost more than is left of a limit of the session. [`LedgerEntry::More`](super::LedgerEntry::More) has the
    /// amount. Or it may use more than is left of a budget that sessions share: then `due` is the time at which it tries again.
    Budget,
    /// An equal effect was done or given up before.
    Repeat,
    /// The place of the model does not answer. No person is asked; the call is made again when the place answers.
    Outage,
    /// The tool waits for a time or an event. No person is asked.
    Wait,
    /// The server of the tool asks for fields.
    Elicited,
}

/// The end of a hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Release {
    /// The effect may run. For a doubt: the effect did not happen. For a wait: its time has come.
    Go,
    /// The call may run with other arguments, as another effect.
    Edited,
    /// The effect does not run.
    Refused,
    /// The outcome of the effect is known now. For a wait: the event came. For `elicited`: a person gave the fields. The release
    /// then holds them, as a JSON object.
    Outcome,
    /// The outcome will never be known. The model gets a result that says so.
    GivenUp,
    /// The call or step of the effect was cancelled.
    Cancelled,
    /// The time of the hold ran out.
    Expired,
}
