//! The guards of a call, and the earlier calls that decided on what they read.

use super::past::{Past, Place};
use super::{Fact, TEXT, how};
use crate::words::line as one_line;
use std::collections::BTreeSet;
use steersman_machine::network::{AgentDef, Network, Offer, Requires};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::stored::interaction::{Call, Interaction};
use steersman_machine::values::expression::ast::{Node, NodeKind};

/// Maximum number of earlier calls that are told for one refused call.
const EARLIER: usize = 4;

impl Past<'_> {
    /// Returns the guards of a call: as true if it began, otherwise, if it was refused, with what they read.
    pub(super) fn of_guards(
        &self,
        place: Place,
        agent: Id,
        (call, begun): (&Call, bool),
    ) -> Vec<Fact> {
        let refused = || {
            let code = self
                .result_of(call)
                .and_then(|(_, result)| result.code.as_deref());
            code == Some(Code::Refused.text())
        };
        let Some(network) = self.network(place.line).filter(|_| begun || refused()) else {
            return Vec::new();
        };
        let guards = self.guards(network, agent, call);
        let told = if begun { "true" } else { "asked for" };
        let fact = |guard: &&Requires| {
            let source = one_line(&guard.that.source, TEXT);
            Fact::new("guard", format!("{told}: {source}"))
        };
        let mut facts: Vec<Fact> = guards.iter().map(fact).collect();
        if !begun {
            facts.extend(self.read_by(place, network, &guards));
        }
        facts
    }

    fn guards<'n>(&self, network: &'n Network, agent: Id, call: &Call) -> Vec<&'n Requires> {
        let of_tool = network.tools.get(&call.name).map(|tool| &tool.requires);
        let def = self.def(agent).and_then(|def| network.agents.get(def));
        let seen = call.called();
        let mut uses = def.into_iter().flat_map(AgentDef::offers);
        let used = uses.find(|used| {
            used.seen == seen && matches!(&used.of, Offer::Tool(name) if *name == call.name)
        });
        let own = used.map(|used| &used.requires);
        of_tool.into_iter().chain(own).flatten().collect()
    }

    /// Returns the ends of the agent's earlier calls on which the value of a guard may depend: calls that it counts, and calls of
    /// tools that write an entry of state that it reads. Of each tool the newest.
    fn read_by(&self, place: Place, network: &Network, guards: &[&Requires]) -> Vec<Fact> {
        let reads = |root: &str, entry: &str| {
            let mut guards = guards.iter();
            guards.any(|guard| reads(guard.that.node(), root, entry))
        };
        let decides = |name: &Name| {
            let writes = network.tools.get(name).is_some_and(|tool| {
                let on_error = tool.on_error.values().flat_map(|entry| &entry.set);
                let mut written = tool.set.iter().chain(on_error);
                written.any(|(entry, _)| reads("state", entry))
            });
            writes || reads("calls", name)
        };
        let (mut facts, mut told) = (Vec::new(), BTreeSet::new());
        let mut at = self.before(place);
        while let Some(before) = at.filter(|_| facts.len() < EARLIER) {
            at = self.before(before);
            let Some(Interaction::Result(result)) = self.push(before).map(|push| &push.what) else {
                continue;
            };
            let Some(call) = self.call(result.call).and_then(|call| self.call_at(call)) else {
                continue;
            };
            if decides(&call.name) && told.insert(&call.name) {
                let said = self.said_of(result);
                let said =
                    said.map_or_else(String::new, |text| format!(": {}", one_line(&text, TEXT)));
                let (name, id, line) = (&call.name, call.id, before.line);
                let text = format!("{name} {id} {}, @{line}{said}", how(result));
                facts.push(Fact::new("read", text));
            }
        }
        facts
    }
}

/// Returns true if the value of an expression may depend on this entry of `root`. The root alone may mean any entry.
fn reads(node: &Node, root: &str, entry: &str) -> bool {
    let is_root = |node: &Node| matches!(&node.kind, NodeKind::Var(name) if **name == *root);
    match &node.kind {
        NodeKind::Attr { of, name } if is_root(of) => **name == *entry,
        NodeKind::Item { of, key } if is_root(of) => match &key.kind {
            NodeKind::Const(key) => key.as_str() == Some(entry),
            _ => true,
        },
        NodeKind::Var(name) => **name == *root,
        _ => {
            let mut parts = node.children().into_iter();
            parts.any(|node| reads(node, root, entry))
        }
    }
}
