//! Who leads to whom: what nothing leads to, and circles of agents that call each other.

use super::super::diagnostic::Diagnostic;
use super::super::lower::{Declared, Lowered, Sort};
use super::super::shape::list_of;
use super::Check;
use crate::ids::Name;
use crate::network::{Approve, Offer, OnDoubt, Source, Then, ToolDef};
use crate::search::Scorer;
use std::collections::{BTreeMap, BTreeSet};

/// Tools and agents that a tool leads to.
fn led_to(tool: &ToolDef) -> Vec<&Name> {
    fn then(then: Option<&Then>) -> Option<&Name> {
        then.map(|then| &then.tool)
    }
    let mut names: Vec<&Name> = then(tool.then.as_ref()).into_iter().collect();
    names.extend(
        tool.on_error
            .values()
            .filter_map(|on| then(on.then.as_ref())),
    );
    match &tool.on_doubt {
        Some(OnDoubt::Probe { probe, .. }) => names.push(probe),
        Some(OnDoubt::Ask | OnDoubt::Fail) | None => {}
    }
    names.extend(tool.reflect.as_ref().and_then(|r| r.by.as_ref()));
    let asked = tool.approve.iter().flat_map(Approve::line);
    names.extend(asked.map(|approve| &approve.by));
    match &tool.source {
        Source::Ask(person) => names.push(person),
        Source::Send(agent) => names.push(agent),
        _ => {}
    }
    names
}

/// For each name the names that lead to it directly.
fn edges(lowered: &Lowered) -> BTreeMap<Name, BTreeSet<Name>> {
    let mut edges: BTreeMap<Name, BTreeSet<Name>> = BTreeMap::new();
    let mut add = |from: &Name, to: &Name| {
        edges.entry(from.clone()).or_default().insert(to.clone());
    };
    for (from, to, _) in lowered.offers.iter().chain(&lowered.ahead) {
        add(from, to);
    }
    for (name, person) in &lowered.network.people {
        if let Some(tool) = &person.reach {
            add(name, tool);
        }
    }
    for (name, tool) in &lowered.network.tools {
        for to in led_to(tool) {
            add(name, to);
        }
    }
    for (name, agent) in &lowered.network.agents {
        let by = agent.reflect.as_ref().and_then(|r| r.by.as_ref());
        // Who judges itself in a circle is told so elsewhere.
        if let Some(by) = by.filter(|by| *by != name) {
            add(name, by);
        }
        let judges = agent.models().filter_map(|model| model.search.as_ref());
        for judge in judges.filter_map(|plan| plan.score.as_ref()) {
            if let Scorer::Tool(to) | Scorer::Agent(to) = judge {
                add(name, to);
            }
        }
        for offered in agent.offers() {
            let to = match &offered.of {
                Offer::Tool(to) | Offer::Agent(to) => to,
            };
            add(name, to);
            offered
                .approve
                .iter()
                .flat_map(Approve::line)
                .for_each(|approve| add(name, &approve.by));
            match &offered.choose {
                Some(
                    crate::network::Chooser::Tool(to)
                    | crate::network::Chooser::Agent(to)
                    | crate::network::Chooser::Person(to),
                ) => add(name, to),
                None => {}
            }
        }
    }
    edges
}

/// All that can be reached from a name, itself included.
fn reached(
    edges: &BTreeMap<Name, BTreeSet<Name>>,
    from: impl IntoIterator<Item = Name>,
) -> BTreeSet<Name> {
    let mut open: Vec<Name> = from.into_iter().collect();
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if seen.insert(name.clone()) {
            open.extend(edges.get(&name).into_iter().flatten().cloned());
        }
    }
    seen
}

/// For each agent and tool that is used by an agent: the agents above, itself included.
pub(super) fn above(lowered: &Lowered) -> BTreeMap<Name, BTreeSet<Name>> {
    let edges = edges(lowered);
    let mut above: BTreeMap<Name, BTreeSet<Name>> = BTreeMap::new();
    for agent in lowered.network.agents.keys() {
        for name in reached(&edges, [agent.clone()]) {
            above.entry(name).or_default().insert(agent.clone());
        }
    }
    above
}

/// All that a session can come to, from wherever it may begin.
fn reachable(lowered: &Lowered, edges: &BTreeMap<Name, BTreeSet<Name>>) -> BTreeSet<Name> {
    let network = &lowered.network;
    let starts = network.events.values().filter_map(|event| {
        let start = event.start.as_ref()?;
        start.agent.clone()
    });
    let tests = network.tests.values().filter_map(|test| test.entry.clone());
    // a tool of which only a test speaks is followed by its joins
    let joins = network.tests.values().flat_map(|test| {
        test.steps.iter().filter_map(|step| match &step.act {
            Some(super::super::test::Act::Join {
                then: Some(then), ..
            }) => Some(then.tool.clone()),
            _ => None,
        })
    });
    let from = network.entry.iter().cloned();
    reached(edges, from.chain(starts).chain(tests).chain(joins))
}

/// What serves nothing here and is not of the main file: what is imported may serve another, and the stored form no longer tells
/// what was.
pub(super) fn idle(lowered: &Lowered) -> BTreeSet<Name> {
    let reached = reachable(lowered, &edges(lowered));
    let declared = lowered.declared.iter();
    declared
        .filter(|(name, declared)| !reached.contains(*name) && declared.span.file != 0)
        .map(|(name, _)| name.clone())
        .collect()
}

fn is_imported(declared: &Declared) -> bool {
    declared.span.file != 0 && declared.span.file != u32::MAX
}

impl Check<'_> {
    pub(super) fn reach(&mut self, whole: bool) {
        if !whole {
            return;
        }
        let edges = edges(self.lowered);
        self.unreachable(&edges);
        self.circles(&edges);
    }

    fn unreachable(&mut self, edges: &BTreeMap<Name, BTreeSet<Name>>) {
        let lowered = self.lowered;
        let network = &lowered.network;
        if network.entry.is_empty() {
            return;
        }
        let reached = reachable(lowered, edges);
        for (name, declared) in &lowered.declared {
            if reached.contains(name) || is_imported(declared) {
                continue;
            }
            let what = match declared.sort {
                Sort::Tool => "tool",
                Sort::Agent => "agent",
                Sort::Person => "person",
            };
            let at = self.place(declared.span);
            self.say(Diagnostic::unreachable(at, what, name));
        }
    }

    /// Agents that can call each other, or themselves, without end.
    fn circles(&mut self, edges: &BTreeMap<Name, BTreeSet<Name>>) {
        let lowered = self.lowered;
        let network = &lowered.network;
        let agents: BTreeMap<Name, BTreeSet<Name>> = edges
            .iter()
            .filter(|(name, _)| network.agents.contains_key(*name))
            .map(|(name, to)| {
                let to = to.iter().filter(|to| network.agents.contains_key(*to));
                (name.clone(), to.cloned().collect())
            })
            .collect();
        let mut said: BTreeSet<Name> = BTreeSet::new();
        for name in network.agents.keys() {
            if said.contains(name) {
                continue;
            }
            let below = agents.get(name).into_iter().flatten().cloned();
            let below = reached(&agents, below);
            if !below.contains(name) {
                continue;
            }
            let circle: Vec<Name> = below
                .into_iter()
                .filter(|other| {
                    let next = agents.get(other).into_iter().flatten().cloned();
                    reached(&agents, next).contains(name)
                })
                .collect();
            let offer = lowered
                .offers
                .iter()
                .find(|(from, to, _)| from == name && circle.contains(to));
            let at = offer.and_then(|(_, _, span)| self.place(*span));
            let names = list_of(circle.iter().map(|name| &**name));
            // What is written for one of them, or for all, ends the circle.
            let own = circle
                .iter()
                .map(|name| network.agent(name).limits_in(None).depth);
            let depth = own.chain([network.limits.depth]).flatten().min();
            self.say(Diagnostic::circle(
                at,
                &names,
                depth.unwrap_or(crate::network::DEPTH),
            ));
            said.extend(circle);
        }
    }
}
