//! Edges between names, items that cannot be reached, and cycles of agents that call each other.

use super::super::diagnostic::Diagnostic;
use super::super::grade::Grade;
use super::super::lower::{Declared, Lowered, Sort};
use super::super::shape::list_of;
use super::super::source::Span;
use super::Check;
use super::above::Circles;
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::network::search::Scorer;
use steersman_machine::network::{Approve, Offer, OnDoubt, Source, Then, ToolDef};
use steersman_machine::stored::ids::Name;

/// Returns the tools, agents and people that a tool leads to.
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
        Some(OnDoubt::Probe { probe, by, .. }) => {
            names.push(probe);
            names.extend(by);
        }
        Some(OnDoubt::Ask { by }) => names.extend(by),
        Some(OnDoubt::Fail) | None => {}
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

/// Maps each name to the names that it leads to directly.
pub(super) type Edges = BTreeMap<Name, BTreeSet<Name>>;

/// Builds the edges of a lowered definition.
pub(super) fn edges(lowered: &Lowered) -> Edges {
    let mut edges: Edges = BTreeMap::new();
    let mut add = |from: &Name, to: &Name| {
        edges.entry(from.clone()).or_default().insert(to.clone());
    };
    for (from, to, _) in lowered.facts.offers.iter().chain(&lowered.facts.ahead) {
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
        // an agent that reviews itself is reported by `Check::reviewers`
        if let Some(by) = by.filter(|by| *by != name) {
            add(name, by);
        }
        let editors = agent.state.iter().flat_map(|(_, ty)| &ty.by);
        editors.for_each(|by| add(name, by));
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
                    steersman_machine::network::Chooser::Tool(to)
                    | steersman_machine::network::Chooser::Agent(to)
                    | steersman_machine::network::Chooser::Person(to),
                ) => add(name, to),
                None => {}
            }
        }
    }
    edges
}

/// Returns the given names and all names that can be reached from them.
fn reached(edges: &Edges, from: impl IntoIterator<Item = Name>) -> BTreeSet<Name> {
    let mut open: Vec<Name> = from.into_iter().collect();
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if seen.insert(name.clone()) {
            open.extend(edges.get(&name).into_iter().flatten().cloned());
        }
    }
    seen
}

/// Returns the tools that only agents with modes call.
pub(super) fn moded(lowered: &Lowered, edges: &Edges) -> BTreeSet<Name> {
    let network = &lowered.network;
    // a tool reached through tools alone runs in the mode of the agent
    let called = |from: Vec<&Name>| {
        let mut open: Vec<&Name> = from;
        let mut seen: BTreeSet<Name> = BTreeSet::new();
        while let Some(name) = open.pop() {
            let to = edges.get(name).into_iter().flatten();
            for to in to.filter(|to| network.tools.contains_key(*to)) {
                if seen.insert(to.clone()) {
                    open.push(to);
                }
            }
        }
        seen
    };
    let agents = network.agents.iter();
    let (with, without): (Vec<_>, Vec<_>) = agents.partition(|(_, agent)| agent.modes.is_some());
    let without = without.into_iter().map(|(name, _)| name);
    let without = called(without.chain(network.people.keys()).collect());
    let with = called(with.into_iter().map(|(name, _)| name).collect());
    with.difference(&without).cloned().collect()
}

/// Returns all names that a session or test can reach from any of its starting points.
fn reachable(lowered: &Lowered, edges: &Edges) -> BTreeSet<Name> {
    let network = &lowered.network;
    let events = network.events.values();
    let events = events.filter_map(|event| event.start.as_ref());
    let schedules = network.schedules.values().map(|schedule| &schedule.start);
    let starts = events.chain(schedules);
    let starts = starts.filter_map(|start| start.agent.clone());
    let tests = lowered
        .facts
        .tests
        .values()
        .filter_map(|test| test.entry.clone());
    let judges = lowered.facts.grades.values().filter_map(Grade::agent);
    // only a test may name the tool that follows a join
    let joins = lowered.facts.tests.values().flat_map(|test| {
        test.steps.iter().filter_map(|step| match &step.act {
            Some(super::super::test::Act::Join {
                then: Some(then), ..
            }) => Some(then.tool.clone()),
            _ => None,
        })
    });
    let from = network.entry.iter().cloned();
    reached(
        edges,
        from.chain(starts).chain(tests).chain(joins).chain(judges),
    )
}

/// Returns the names declared outside the main file that no session or test can reach. The state that they read is not
/// checked: an imported file may serve another definition, and the stored form does not record which names were imported.
pub(super) fn idle(lowered: &Lowered, edges: &Edges) -> BTreeSet<Name> {
    let reached = reachable(lowered, edges);
    let declared = lowered.facts.declared.iter();
    declared
        .filter(|(name, declared)| !reached.contains(*name) && declared.span.file != 0)
        .map(|(name, _)| name.clone())
        .collect()
}

fn is_imported(declared: &Declared) -> bool {
    declared.span.file != 0 && declared.span.file != u32::MAX
}

impl Check<'_> {
    pub(super) fn reach(&mut self, edges: &Edges, whole: bool) {
        if !whole {
            return;
        }
        self.unreachable(edges);
        self.circles(edges);
    }

    fn unreachable(&mut self, edges: &Edges) {
        let lowered = self.lowered;
        let network = &lowered.network;
        if network.entry.is_empty() {
            return;
        }
        let reached = reachable(lowered, edges);
        for (name, declared) in &lowered.facts.declared {
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

    /// Reports cycles of agents that can call each other, or themselves, without end.
    fn circles(&mut self, edges: &Edges) {
        let lowered = self.lowered;
        let network = &lowered.network;
        let agents: Edges = edges
            .iter()
            .filter(|(name, _)| network.agents.contains_key(*name))
            .map(|(name, to)| {
                let to = to.iter().filter(|to| network.agents.contains_key(*to));
                (name.clone(), to.cloned().collect())
            })
            .collect();
        let mut offers: BTreeMap<&Name, Vec<(&Name, Span)>> = BTreeMap::new();
        for (from, to, span) in &lowered.facts.offers {
            offers.entry(from).or_default().push((to, *span));
        }
        let found = Circles::of(network, &agents);
        let mut circles = found.circles;
        circles.sort();
        for circle in circles {
            let name = circle[0];
            let itself = agents.get(name).is_some_and(|to| to.contains(name));
            if circle.len() == 1 && !itself {
                continue;
            }
            let within = |to: &Name| circle.binary_search(&to).is_ok();
            let offer = offers.get(name).into_iter().flatten();
            let offer = offer.clone().find(|(to, _)| within(to));
            let at = offer.and_then(|(_, span)| self.place(*span));
            let names = list_of(circle.iter().map(|name| &***name));
            // the smallest depth limit of a member or of the network ends the cycle
            let own = circle
                .iter()
                .map(|name| network.agent(name).limits_in(None).depth);
            let depth = own.chain([network.limits.depth]).flatten().min();
            self.say(Diagnostic::circle(
                at,
                &names,
                depth.unwrap_or(steersman_machine::network::DEPTH),
            ));
        }
    }
}
