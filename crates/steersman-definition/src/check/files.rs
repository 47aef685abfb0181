//! Checks the files with which sessions begin: the agent that gets them has a way to look into them.

use super::super::diagnostic::Diagnostic;
use super::super::keys::kinds::{Names, Type, each};
use super::super::source::Span;
use super::Check;
use std::collections::BTreeSet;
use steersman_machine::network::{AgentDef, Does, Network};
use steersman_machine::stored::ids::Name;
use steersman_machine::values::types::{self, Parameters, TypeKind};

impl Check<'_> {
    /// Warns of files that come to an agent that is offered nothing to look into them: fields of events that begin a session, and
    /// parameters of agents that sessions begin with.
    pub(super) fn unseen_files(&mut self) {
        let lowered = self.lowered;
        let network = &lowered.network;
        let mut blind: BTreeSet<&Name> = BTreeSet::new();
        let mut found: Vec<(Option<Span>, &Name, &Name)> = Vec::new();
        for (name, event) in &network.events {
            let start = event.start.as_ref();
            let agent = start.and_then(|start| start.agent.as_ref().or(network.entry.first()));
            let Some(agent) = agent.filter(|agent| is_blind(network, agent)) else {
                continue;
            };
            let written = self.written.events.get(&**name);
            for field in files(&event.fields) {
                let span = written.and_then(|event| span_of(event.fields(), field));
                found.push((span, field, agent));
                blind.insert(agent);
            }
        }
        let entries = network.entry.iter();
        for agent in entries.filter(|agent| is_blind(network, agent) && !blind.contains(*agent)) {
            let Some(AgentDef {
                parameters: Parameters::Fields(fields),
                ..
            }) = network.agents.get(agent)
            else {
                continue;
            };
            let written = self.written.agents.get(&**agent);
            for parameter in files(fields) {
                let span = written.and_then(|agent| span_of(agent.parameters(), parameter));
                found.push((span, parameter, agent));
            }
        }
        for (span, file, agent) in found {
            let at = span.and_then(|span| self.place(span));
            self.say(Diagnostic::unseen_file(at, file, agent));
        }
    }
}

/// Returns true if an agent gets no files and is offered nothing, in each of its modes.
fn is_blind(network: &Network, agent: &Name) -> bool {
    let Some(agent) = network.agents.get(agent) else {
        return false;
    };
    let mut models = agent.models();
    matches!(agent.does, Does::Model(_))
        && models.all(|model| {
            let takes = network.takes(&model.model);
            takes.kinds.is_empty() && model.tools.is_empty() && model.servers.is_empty()
        })
}

/// Returns the names of the fields that are artifacts.
fn files(fields: &[(Name, types::Type)]) -> impl Iterator<Item = &Name> {
    let files = fields
        .iter()
        .filter(|(_, ty)| ty.kind == TypeKind::Artifact);
    files.map(|(name, _)| name)
}

/// Returns the place of a key.
fn span_of<'a>(written: Option<Names<'a, Type<'a>>>, name: &Name) -> Option<Span> {
    let mut keys = each(written).map(|(key, _)| key);
    keys.find(|key| key.name == *name).map(|key| key.span)
}
