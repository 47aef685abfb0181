//! People.

use crate::expression::Template;
use crate::ids::Name;

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
    /// Answered in their place on time-out.
    pub on_timeout: Option<Template>,
    /// In a route: who acts instead, once they ran out of time.
    pub instead: Option<Name>,
    /// An `idempotent` tool that tells them that something waits for them.
    pub reach: Option<Name>,
}
