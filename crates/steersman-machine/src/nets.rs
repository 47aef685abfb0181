//! States in Rust: how a model-driven agent's answers become steps. `chat` and `react` are built in; others are
//! registered under a name. And the registry of routers in Rust.

use crate::effect::Answer;
use crate::ids::Name;
use crate::snapshot::{Agent, Snapshot};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What happened to an agent whose net is asked.
#[derive(Debug)]
pub enum Event<'a> {
    /// It owes a step: a message came, or an exchange closed. Asked before anything is wished.
    Owes,
    /// The model answered.
    Answered(&'a Answer),
    /// What it wished with [`Step::Custom`] gave this text.
    Gave(&'a str),
}

/// What a net wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A model call.
    Think,
    /// Of an answer: its calls are opened; without calls it is the agent's answer.
    Take,
    /// Of an answer: its text is a thought, kept on the stack; another step is owed.
    Thought,
    /// Work by a registered handler: its name and JSON for it.
    Custom(Name, Json),
    /// The answer, without a model.
    Answer(String),
    /// It cannot go on.
    Fail(String),
}

/// What a net sees.
pub struct NetView<'a> {
    /// Where the branch stands.
    pub snapshot: &'a Snapshot,
    /// The agent.
    pub agent: &'a Agent,
    /// Its newest message.
    pub message: &'a str,
}

/// A state machine over an agent's steps. Pure: the same view and event give the same step.
pub trait Net: Send + Sync {
    /// Its version, part of the definition's digest.
    fn version(&self) -> String;
    /// What is to be done.
    fn next(&self, view: &NetView<'_>, event: &Event<'_>) -> Step;
}

/// What a router in Rust sees.
pub struct RouteView<'a> {
    /// Where the branch stands.
    pub snapshot: &'a Snapshot,
    /// The routed agent.
    pub agent: &'a Agent,
    /// State, calls and the rest as expressions see them; what is read here is recorded.
    pub scope: &'a dyn crate::expression::Scope,
}

/// A router in Rust. Called once for each decision; its answer is recorded.
pub trait Router: Send + Sync {
    /// Its version, part of the definition's digest.
    fn version(&self) -> String;
    /// What comes next.
    fn route(&self, view: &RouteView<'_>) -> Result<crate::interaction::Choice, String>;
}

/// Nets and routers in Rust by name.
#[derive(Clone, Default)]
pub struct Natives {
    /// Nets by name.
    pub nets: BTreeMap<Name, Arc<dyn Net>>,
    /// Routers by the name of their routed agent.
    pub routers: BTreeMap<Name, Arc<dyn Router>>,
}

impl fmt::Debug for Natives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Natives")
            .field("nets", &self.nets.keys())
            .field("routers", &self.routers.keys())
            .finish()
    }
}
