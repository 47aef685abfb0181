//! People.

use crate::expression::Template;
use crate::ids::Name;

/// What a person's time-out leaves, in words.
#[derive(Clone, Debug, PartialEq)]
pub enum Silence {
    /// It is their answer.
    Answer(Template),
    /// The other side is told that nobody answered.
    Say(Template),
}

/// A person who can be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct PersonDef {
    /// The name of the agent that declares them.
    pub name: Name,
    /// Told to models that may choose them.
    pub description: String,
    /// Who may answer.
    pub role: Name,
    /// In milliseconds.
    pub timeout: Option<u64>,
    /// What stands there once they ran out of time.
    pub on_timeout: Option<Silence>,
    /// In a route: who acts instead, once they ran out of time.
    pub instead: Option<Name>,
    /// An `idempotent` tool that tells them that something waits for them.
    pub reach: Option<Name>,
}
