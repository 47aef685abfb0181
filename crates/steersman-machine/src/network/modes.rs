//! Modes: named variants of a model-driven agent. The functions here find the mode in force from the agent's entry in a snapshot.
//! Code that renders a request, offers tools or checks a limit takes the settings from them, not from the agent.

use super::{AgentDef, Does, ModelAgent, Network, ToolUse};
use crate::network::Limits;
use crate::snapshot::Agent;
use crate::stored::ids::Name;
use crate::values::expression::Expr;

/// The modes of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Modes {
    /// The mode of a new instance.
    pub start: Name,
    /// All modes, in the order of the definition.
    pub all: Vec<Mode>,
    /// Exits that lead out of every mode. They are tried before those of the mode in force.
    pub exits: Vec<ModeExit>,
}

/// A mode, complete: settings that it does not name itself are copied from the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// Name of the mode.
    pub name: Name,
    /// The agent's settings in this mode.
    pub model: ModelAgent,
    /// The agent's limits in this mode. A change of the mode does not reset their counters.
    pub limits: Limits,
    /// Exits of this mode; the first that fires is taken.
    pub exits: Vec<ModeExit>,
}

/// An exit from a mode.
#[derive(Clone, Debug, PartialEq)]
pub struct ModeExit {
    /// Condition under which the exit fires.
    pub cause: ExitsWhen,
    /// Name of the next mode, or [`FINISH`].
    pub to: Name,
}

/// Condition under which an exit of a mode fires.
#[derive(Clone, Debug, PartialEq)]
pub enum ExitsWhen {
    /// One of these tools or agents succeeded in the exchange that just closed.
    AfterTool(Vec<Name>),
    /// The agent made at least this many model calls since the mode began.
    AfterCalls(u32),
    /// The expression holds.
    Holds(Expr),
}

/// Target of an exit that ends the agent's task. No mode has this name.
pub const FINISH: &str = "finish";

impl Modes {
    /// Returns the mode of this name.
    pub fn get(&self, name: &str) -> Option<&Mode> {
        self.all.iter().find(|mode| *mode.name == *name)
    }

    /// Returns the names of all modes, for messages to people and models.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.all.iter().map(|mode| &*mode.name).collect();
        names.join(", ")
    }
}

impl ModeExit {
    /// Returns the condition as it is written in a definition, such as `after_tool approve_plan`.
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
    /// Returns the mode of this name; the start mode if there is no name or no such mode; `None` if the agent has no modes.
    pub fn mode(&self, name: Option<&Name>) -> Option<&Mode> {
        let modes = self.modes.as_deref()?;
        let named = name.and_then(|name| modes.get(name));
        named.or_else(|| modes.get(&modes.start))
    }

    /// Returns the settings of the agent in this mode; `None` if no model drives it.
    pub fn model(&self, mode: Option<&Name>) -> Option<&ModelAgent> {
        match (&self.does, self.mode(mode)) {
            (Does::Model(_), Some(mode)) => Some(&mode.model),
            (Does::Model(model), None) => Some(model),
            (Does::Route(_) | Does::Run { .. }, _) => None,
        }
    }

    /// Iterates over the settings of each mode. An agent without modes gives its own settings. An agent that no model drives
    /// gives none.
    pub fn models(&self) -> impl Iterator<Item = &ModelAgent> {
        let modes = self.modes.iter().flat_map(|modes| &modes.all);
        let alone = match &self.does {
            Does::Model(model) if self.modes.is_none() => Some(&**model),
            Does::Model(_) | Does::Route(_) | Does::Run { .. } => None,
        };
        alone.into_iter().chain(modes.map(|mode| &mode.model))
    }

    /// As [`AgentDef::models`], with mutable access.
    pub fn models_mut(&mut self) -> impl Iterator<Item = &mut ModelAgent> {
        let alone = match &mut self.does {
            Does::Model(model) if self.modes.is_none() => Some(&mut **model),
            Does::Model(_) | Does::Route(_) | Does::Run { .. } => None,
        };
        let modes = self.modes.iter_mut().flat_map(|modes| &mut modes.all);
        alone.into_iter().chain(modes.map(|mode| &mut mode.model))
    }

    /// Returns the agent's limits in this mode.
    pub fn limits_in(&self, mode: Option<&Name>) -> &Limits {
        self.mode(mode).map_or(&self.limits, |mode| &mode.limits)
    }

    /// Iterates over the agent's limits in each mode, or its own limits if it has no modes.
    pub fn all_limits(&self) -> impl Iterator<Item = &Limits> {
        let modes = self.modes.iter().flat_map(|modes| &modes.all);
        let own = self.modes.is_none().then_some(&self.limits);
        own.into_iter().chain(modes.map(|mode| &mode.limits))
    }

    /// Iterates over all tools and agents that it is offered in any of its modes.
    pub fn offers(&self) -> impl Iterator<Item = &ToolUse> {
        self.models().flat_map(|model| &model.tools)
    }
}

impl Network {
    /// Returns the settings of an agent in its current mode; `None` if no model drives it or the network does not have it.
    pub fn in_force(&self, agent: &Agent) -> Option<&ModelAgent> {
        self.agents.get(&agent.def)?.model(agent.mode.as_ref())
    }

    /// Returns the limits of an agent in its current mode.
    pub fn limits_of(&self, agent: &Agent) -> &Limits {
        self.agent(&agent.def).limits_in(agent.mode.as_ref())
    }
}
