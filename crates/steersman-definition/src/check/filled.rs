//! Checks state entries that an extraction fills: the agent must see the entry, and a model must be able to write its value.

use super::super::diagnostic::Diagnostic;
use super::super::keys::kinds::Read as _;
use super::super::site::Scope;
use super::super::source::Span;
use super::Check;
use super::names::Root;
use steersman_machine::stored::ids::Name;
use steersman_machine::values::types::{Parameters, Type, TypeKind};

impl Check<'_> {
    pub(super) fn filled(&mut self) {
        for (agent, entry, span) in &self.lowered.facts.filled {
            if self.is_broken(*span) {
                continue;
            }
            let scope = Scope {
                agent: Some(agent.clone()),
                ..Scope::default()
            };
            if let Root::Wrong = self.root(&scope, "state", Some(entry), (*span, *span)) {
                continue;
            }
            let cannot = self.declared_as(entry).find_map(|ty| {
                ty.find(&|ty| match ty.kind {
                    TypeKind::Secret => Some("a secret: a model sees and gives none"),
                    TypeKind::Artifact => Some("the name of an artifact: tools make these"),
                    TypeKind::Schema(_) => {
                        Some("judged by a JSON Schema file: declare it by types of the format")
                    }
                    _ => None,
                })
            });
            if let Some(why) = cannot {
                let at = self.place(*span);
                self.say(Diagnostic::not_to_be_filled(at, entry, why));
            }
        }
    }

    /// Reports secrets within objects and lists. A secret is sealed and opened by its name, so a nested one would be passed
    /// and stored in clear.
    pub(super) fn secrets_within(&mut self) {
        let lowered = self.lowered;
        let network = &lowered.network;
        let is_secret = |ty: &Type| (ty.kind == TypeKind::Secret).then_some(());
        let hides = |ty: &Type| ty.kind != TypeKind::Secret && ty.find(&is_secret).is_some();
        let tools = network
            .tools
            .iter()
            .map(|(name, tool)| (name, &tool.parameters));
        let agents = network
            .agents
            .iter()
            .map(|(name, agent)| (name, &agent.parameters));
        let mut found: Vec<(Name, Option<Span>)> = Vec::new();
        for (of, parameters) in tools.chain(agents) {
            let Parameters::Fields(fields) = parameters else {
                continue;
            };
            for (name, _) in fields.iter().filter(|(_, ty)| hides(ty)) {
                let at = lowered.facts.parameters.get(&(of.clone(), name.clone()));
                found.push((name.clone(), at.copied()));
            }
        }
        for (name, agent) in &network.agents {
            if agent
                .output
                .as_ref()
                .is_some_and(|output| hides(&output.ty))
            {
                let written = self.written.agents.get(&**name);
                let at = written.and_then(|agent| Some(agent.output()?.node().span));
                found.push(("output".into(), at));
            }
        }
        for (event, def) in &network.events {
            for (name, _) in def.fields.iter().filter(|(_, ty)| hides(ty)) {
                let written = self.written.events.get(&**event);
                let at = written.and_then(|event| event.fields()?.get(name));
                found.push((name.clone(), at.map(|ty| ty.span)));
            }
        }
        for (name, at) in found {
            let at = at.and_then(|span| self.place(span));
            self.say(Diagnostic::secret_within(at, &name));
        }
    }

    fn declared_as(&self, entry: &Name) -> impl Iterator<Item = &Type> {
        let agents = self.lowered.network.agents.values();
        let declared = agents.flat_map(|agent| &agent.state);
        declared.filter_map(move |(name, ty)| (name == entry).then_some(ty))
    }
}
