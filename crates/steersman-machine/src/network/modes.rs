//! Modes: named variants of a model-driven agent, and which of them is in force. Whoever wants to know what a model is
//! asked, offered or limited by asks here, with the agent as a snapshot has it.

use super::{AgentDef, Does, ModelAgent, Network, ToolUse};
use crate::expression::Expr;
use crate::ids::Name;
use crate::limits::Limits;
use crate::snapshot::Agent;

/// The modes of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Modes {
    /// The mode of a new instance.
    pub start: Name,
    /// All of them, as they are written.
    pub all: Vec<Mode>,
    /// Exits that lead out of every mode. They are looked at first.
    pub exits: Vec<ModeExit>,
}

/// A mode, whole: what it does not say itself is the agent's.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// Its name.
    pub name: Name,
    /// The agent as it is in this mode.
    pub model: ModelAgent,
    /// Its limits in this mode. What they count goes on over modes.
    pub limits: Limits,
    /// What leads out of it, the first that fires.
    pub exits: Vec<ModeExit>,
}

/// What leads from a mode to another.
#[derive(Clone, Debug, PartialEq)]
pub struct ModeExit {
    /// When it fires.
    pub cause: ExitsWhen,
    /// Where it leads.
    pub to: Name,
}

/// When an exit of a mode fires.
#[derive(Clone, Debug, PartialEq)]
pub enum ExitsWhen {
    /// One of these tools or agents succeeded in the exchange that just closed.
    AfterTool(Vec<Name>),
    /// So many model calls were made since the mode began.
    AfterCalls(u32),
    /// This holds.
    Holds(Expr),
}

/// What an exit leads to that ends the agent's task. No mode has this name.
pub const FINISH: &str = "finish";

impl Modes {
    /// The mode of this name.
    pub fn get(&self, name: &str) -> Option<&Mode> {
        self.all.iter().find(|mode| *mode.name == *name)
    }

    /// The names of all of them, for people and models.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.all.iter().map(|mode| &*mode.name).collect();
        names.join(", ")
    }
}

impl ModeExit {
    /// Its cause, as it is written: `after_tool approve_plan`.
    pub fn words(&self) -> String {
        match &self.cause {
            ExitsWhen::AfterTool(tools) => {
                let tools: Vec<&str> = tools.iter().map(|name| &**name).collect();
                format!("after_tool {}", tools.join(", "))
            }
            ExitsWhen::AfterCalls(calls) => format!("after_calls {calls}"),
            ExitsWhen::Holds(when) => format!("when {}", when.source),
        }
    }
}

impl AgentDef {
    /// The mode of this name; of none, or of one that is not known, the one in which an agent starts. None where the agent has
    /// no modes.
    pub fn mode(&self, name: Option<&Name>) -> Option<&Mode> {
        let modes = self.modes.as_deref()?;
        let named = name.and_then(|name| modes.get(name));
        named.or_else(|| modes.get(&modes.start))
    }

    /// The model-driven agent that it is in this mode; none if no model drives it.
    pub fn model(&self, mode: Option<&Name>) -> Option<&ModelAgent> {
        match (&self.does, self.mode(mode)) {
            (Does::Model(_), Some(mode)) => Some(&mode.model),
            (Does::Model(model), None) => Some(model),
            (Does::Route(_) | Does::Run { .. }, _) => None,
        }
    }

    /// All that it may be, mode by mode; of an agent without modes itself, of one that no model drives nothing.
    pub fn models(&self) -> impl Iterator<Item = &ModelAgent> {
        let modes = self.modes.iter().flat_map(|modes| &modes.all);
        let alone = match &self.does {
            Does::Model(model) if self.modes.is_none() => Some(&**model),
            Does::Model(_) | Does::Route(_) | Does::Run { .. } => None,
        };
        alone.into_iter().chain(modes.map(|mode| &mode.model))
    }

    /// The same, to be changed.
    pub fn models_mut(&mut self) -> impl Iterator<Item = &mut ModelAgent> {
        let alone = match &mut self.does {
            Does::Model(model) if self.modes.is_none() => Some(&mut **model),
            Does::Model(_) | Does::Route(_) | Does::Run { .. } => None,
        };
        let modes = self.modes.iter_mut().flat_map(|modes| &mut modes.all);
        alone.into_iter().chain(modes.map(|mode| &mut mode.model))
    }

    /// Its limits in this mode.
    pub fn limits_in(&self, mode: Option<&Name>) -> &Limits {
        self.mode(mode).map_or(&self.limits, |mode| &mode.limits)
    }

    /// Its limits, mode by mode.
    pub fn all_limits(&self) -> impl Iterator<Item = &Limits> {
        let modes = self.modes.iter().flat_map(|modes| &modes.all);
        let own = self.modes.is_none().then_some(&self.limits);
        own.into_iter().chain(modes.map(|mode| &mode.limits))
    }

    /// Whether a tool, or agent is offered in any of its modes.
    pub fn offers(&self) -> impl Iterator<Item = &ToolUse> {
        self.models().flat_map(|model| &model.tools)
    }
}

impl Network {
    /// The model-driven agent that this one is now, in the mode in which it is; none if no model drives it, or the network does
    /// not know it.
    pub fn in_force(&self, agent: &Agent) -> Option<&ModelAgent> {
        self.agents.get(&agent.def)?.model(agent.mode.as_ref())
    }

    /// The limits of an agent in the mode in which it is.
    pub fn limits_of(&self, agent: &Agent) -> &Limits {
        self.agent(&agent.def).limits_in(agent.mode.as_ref())
    }
}
