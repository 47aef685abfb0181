//! What a model is offered: tools and agents, and how.

use super::{Approve, Requires};
use crate::expression::{Data, Expr};
use crate::ids::Name;
use crate::join::JoinOn;

/// Something a model is offered.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUse {
    /// A tool or an agent.
    pub of: Offer,
    /// The name that the model sees.
    pub seen: Name,
    /// Fixed arguments, hidden from the model.
    pub args: Vec<(Name, Data)>,
    /// In addition to the tool's.
    pub requires: Vec<Requires>,
    /// In addition to the tool's.
    pub approve: Vec<Approve>,
    /// An agent: the parameter `name` chooses the instance.
    pub named: bool,
    /// The started agent sees what its caller sees.
    pub view_shared: bool,
    /// Calls per answer at most; of `fork`: branches.
    pub max: Option<u32>,
    /// Offered while it holds.
    pub when: Option<Expr>,
    /// `fork`: who picks the branch to adopt.
    pub choose: Option<Chooser>,
    /// `fork`: when the call is over.
    pub join: JoinOn,
    /// `fork`: branches are live.
    pub live: bool,
    /// At once, of this use.
    pub parallel: u32,
    /// Offered by itself, while the agent sees an artifact: what has spilled can be read.
    pub implied: bool,
}

impl ToolUse {
    /// A tool that is offered by itself, while the agent sees an artifact.
    pub fn implied(tool: Name) -> Self {
        Self {
            implied: true,
            ..Self::plain(Offer::Tool(tool))
        }
    }

    /// Offered under its own name, with nothing said of it.
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

/// Who picks a branch.
#[derive(Clone, Debug, PartialEq)]
pub enum Chooser {
    /// A tool.
    Tool(Name),
    /// A critic.
    Agent(Name),
    /// A person.
    Person(Name),
}

/// A tool or an agent that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// A tool.
    Tool(Name),
    /// An agent.
    Agent(Name),
}
