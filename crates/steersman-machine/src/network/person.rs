//! People of a network.

use crate::stored::ids::Name;
use crate::values::expression::Template;

/// Text in place of a person's answer after a time-out.
#[derive(Clone, Debug, PartialEq)]
pub enum Silence {
    /// The text counts as the person's answer.
    Answer(Template),
    /// The text tells the caller that nobody answered.
    Say(Template),
}

/// A person who can be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct PersonDef {
    /// Name of the agent that declares the person.
    pub name: Name,
    /// Description for models that may choose the person.
    pub description: String,
    /// Role in which somebody may answer for this person.
    pub role: Name,
    /// Time to answer, in milliseconds. `None` means no limit.
    pub timeout: Option<u64>,
    /// Text in place of the answer after a time-out.
    pub on_timeout: Option<Silence>,
    /// Under a routed agent: the member that acts in place of the person after a time-out.
    pub instead: Option<Name>,
    /// An `idempotent` tool that notifies the person of a pending question, approval or doubt.
    pub reach: Option<Name>,
}
