//! Checks of searches: the judges of branches, and tools whose calls end a dry branch.

use super::super::diagnostic::Diagnostic;
use super::Check;
use steersman_machine::network::search::answers;
use steersman_machine::network::{Does, Offer};
use steersman_machine::stored::interaction::Class;

impl Check<'_> {
    /// Reports judges that change the world, give no answer of their own, or have no model.
    pub(super) fn judges(&mut self) {
        let lowered = self.lowered;
        let network = &lowered.network;
        for (name, span) in &lowered.facts.judges {
            let does = match (network.tools.get(name), network.agents.get(name)) {
                (Some(tool), _) => match tool.effect {
                    Class::Pure | Class::Read if answers(tool) => continue,
                    Class::Pure | Class::Read => "gives no answer of its own",
                    Class::Idempotent => "is idempotent",
                    Class::Unsafe => "is unsafe",
                },
                (None, Some(agent)) if !matches!(agent.does, Does::Model(_)) => {
                    "has no model of its own"
                }
                (None, _) => continue,
            };
            let at = self.place(*span);
            self.say(Diagnostic::no_judge(at, name, does));
        }
    }

    /// Reports tools that change the world and have no simulation in a search that is not live: calling one ends the branch.
    pub(super) fn searches(&mut self) {
        let lowered = self.lowered;
        let network = &lowered.network;
        for (agent, span) in &lowered.facts.searches {
            let Some(Does::Model(model)) = network.agents.get(agent).map(|a| &a.does) else {
                continue;
            };
            if model.search.as_ref().is_none_or(|plan| plan.live) {
                continue;
            }
            for used in &model.tools {
                let Offer::Tool(name) = &used.of else {
                    continue;
                };
                let Some(tool) = network.tools.get(name) else {
                    continue;
                };
                let class = match tool.effect {
                    Class::Pure | Class::Read => continue,
                    Class::Idempotent => "`idempotent`",
                    Class::Unsafe => "`unsafe`",
                };
                if tool.simulate.is_some() || !answers(tool) {
                    continue;
                }
                let declared = lowered
                    .facts
                    .declared
                    .get(name)
                    .map(|declared| declared.span);
                let (at, tool_at) = (self.place(*span), declared.and_then(|s| self.place(s)));
                self.say(Diagnostic::leaves(at, name, class, tool_at));
            }
        }
    }
}
