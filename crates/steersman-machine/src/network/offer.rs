//! Tools, agents and people that a model is offered.

use super::{Approve, Requires};
use crate::network::join::JoinOn;
use crate::stored::ids::Name;
use crate::values::expression::{Data, Expr};

/// A tool, an agent or a person that a model is offered, and the settings of the offer.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUse {
    /// The tool, agent or person that is offered.
    pub of: Offer,
    /// The name that the model sees.
    pub seen: Name,
    /// Fixed arguments, which the model does not see.
    pub args: Vec<(Name, Data)>,
    /// Preconditions in addition to those of the tool.
    pub requires: Vec<Requires>,
    /// Approvals in addition to those of the tool.
    pub approve: Vec<Approve>,
    /// For an agent: true if the parameter `name` chooses the instance.
    pub named: bool,
    /// True if the started agent sees what its caller has seen.
    pub view_shared: bool,
    /// Maximum number of calls per answer; for `fork`, of branches.
    pub max: Option<u32>,
    /// The tool is offered while this expression holds. `None` means always.
    pub when: Option<Expr>,
    /// For `fork`: the tool, agent or person that picks the branch to adopt.
    pub choose: Option<Chooser>,
    /// For `fork`: condition under which the call ends.
    pub join: JoinOn,
    /// For `fork`: true if the branches are live.
    pub live: bool,
    /// Maximum number of calls of this offer that run at the same time.
    pub parallel: u32,
    /// True for a tool that the engine offers by itself while the agent sees an artifact, so that spilled results can be read.
    pub implied: bool,
}

impl ToolUse {
    /// Returns the offer of a tool that is available only while the agent sees an artifact.
    pub fn implied(tool: Name) -> Self {
        Self {
            implied: true,
            ..Self::plain(Offer::Tool(tool))
        }
    }

    /// Returns an offer with default settings, under the name of the tool, agent or person.
    pub fn plain(of: Offer) -> Self {
        let (Offer::Tool(name) | Offer::Agent(name)) = &of;
        Self {
            seen: name.clone(),
            of,
            args: Vec::new(),
            requires: Vec::new(),
            approve: Vec::new(),
            named: false,
            view_shared: false,
            max: None,
            when: None,
            choose: None,
            join: JoinOn::All,
            live: false,
            parallel: 8,
            implied: false,
        }
    }
}

/// The tool, agent or person that picks a branch.
#[derive(Clone, Debug, PartialEq)]
pub enum Chooser {
    /// A tool picks the branch.
    Tool(Name),
    /// An agent (a critic) picks the branch.
    Agent(Name),
    /// A person picks the branch.
    Person(Name),
}

/// Name of a tool, an agent or a person that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// A tool of the network.
    Tool(Name),
    /// An agent or a person of the network.
    Agent(Name),
}
