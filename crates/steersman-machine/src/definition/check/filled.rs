//! State entries that are filled from what is said: an agent sees them, and a model can give them.

use super::super::diagnostic::Diagnostic;
use super::super::site::Scope;
use super::Check;
use super::names::Root;
use crate::ids::Name;
use crate::network::{Type, TypeKind};

impl Check<'_> {
    pub(super) fn filled(&mut self) {
        for (agent, entry, span) in &self.lowered.filled {
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

    fn declared_as(&self, entry: &Name) -> impl Iterator<Item = &Type> {
        let agents = self.lowered.network.agents.values();
        let declared = agents.flat_map(|agent| &agent.state);
        declared.filter_map(move |(name, ty)| (name == entry).then_some(ty))
    }
}
