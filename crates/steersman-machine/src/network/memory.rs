//! What agents remember: which models are asked for it.

use super::{Does, Network, Route, RouteBy, Speaker};
use crate::expression::Template;
use crate::ids::Name;

/// Memory over sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryDef {
    /// Whose memory it is; none: the network's name.
    pub scope: Option<Template>,
    /// How long a memory is kept, in milliseconds; none: until it is forgotten.
    pub keep: Option<u64>,
}

impl Network {
    /// The model that fills state from what was said: `small` where one is declared, else `default`.
    pub fn small(&self) -> &Name {
        let named = |name: &str| self.models.get_key_value(name).map(|(name, _)| name);
        named("small")
            .or_else(|| named("default"))
            .expect("a network always has the model `default`")
    }

    /// Whether state is filled from what is said anywhere.
    pub(super) fn extracts(&self) -> bool {
        self.agents.values().any(|agent| {
            let speaker = |speaker: &Speaker| !speaker.extract.is_empty();
            let speakers = match &agent.does {
                Does::Route(Route {
                    by: RouteBy::States(graph),
                    ..
                }) => graph
                    .states
                    .values()
                    .any(|node| node.speakers.iter().any(speaker)),
                Does::Route(_) | Does::Model(_) | Does::Run { .. } => false,
            };
            speakers || !agent.extract.is_empty()
        })
    }
}
