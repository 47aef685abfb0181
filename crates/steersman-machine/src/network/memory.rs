//! Memory: settings of the memory that sessions share, and the model that fills state.

use super::{AgentDef, Does, Network, Route, RouteBy, Speaker};
use crate::stored::ids::Name;
use crate::values::expression::Template;

/// Settings of the memory that sessions share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryDef {
    /// Scope whose memories a session saves and finds. `None` means the network's name.
    pub scope: Option<Template>,
    /// Time for which a memory is kept, in milliseconds. `None` means until it is forgotten.
    pub keep: Option<u64>,
}

impl Network {
    /// Returns the model that fills state from messages: `small` if it is declared, else `default`.
    pub fn small(&self) -> &Name {
        let named = |name: &str| self.models.get_key_value(name).map(|(name, _)| name);
        named("small")
            .or_else(|| named("default"))
            .expect("a network always has the model `default`")
    }
}

impl AgentDef {
    /// Returns true if the agent or one of its speakers has state that is filled from messages.
    pub(super) fn extracts(&self) -> bool {
        let speaker = |speaker: &Speaker| !speaker.extract.is_empty();
        let speakers = match &self.does {
            Does::Route(Route {
                by: RouteBy::States(graph),
                ..
            }) => graph
                .states
                .values()
                .any(|node| node.speakers.iter().any(speaker)),
            Does::Route(_) | Does::Model(_) | Does::Run { .. } => false,
        };
        speakers || !self.extract.is_empty()
    }
}
