//! Judges a lowered definition: types of expressions, who leads to whom, what effects and people are asked for.

mod above;
mod effects;
mod filled;
mod kind;
mod modes;
mod names;
mod operators;
mod reach;
mod reviewers;
mod routes;
mod search;
mod types;

use super::diagnostic::{Diagnostic, Place};
use super::load::Merged;
use super::lower::Lowered;
use super::source::{Node, Sources, Span};
use above::Above;
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::ids::Name;
use steersman_machine::network::{Does, Type};

/// For each name those to whom it leads directly.
pub(crate) fn leads(lowered: &Lowered) -> BTreeMap<Name, BTreeSet<Name>> {
    reach::edges(lowered)
}

/// All that is to be said about a lowered definition.
///
/// `whole`: nothing was wrong so far, so what seems to lead nowhere does.
pub(crate) fn check(
    sources: &Sources,
    merged: &Merged,
    lowered: &Lowered,
    whole: bool,
) -> Vec<Diagnostic> {
    let edges = &lowered.network.leads;
    let mut entries: BTreeMap<&str, Vec<(&Name, &Type)>> = BTreeMap::new();
    for (owner, agent) in &lowered.network.agents {
        for (name, ty) in &agent.state {
            entries.entry(name).or_default().push((owner, ty));
        }
    }
    let mut check = Check {
        sources,
        merged,
        lowered,
        above: Above::new(&lowered.network, edges),
        moded: reach::moded(lowered, edges),
        idle: reach::idle(lowered, edges),
        entries,
        routers: routers(lowered),
        sections: sections(merged),
        found: Vec::new(),
    };
    check.expressions();
    check.filled();
    check.secrets_within();
    check.reach(edges, whole);
    check.reviewers();
    check.effects(whole);
    if whole {
        check.routes();
        check.modes();
    }
    check.found
}

/// For each plain agent the one routed agent that leads to it; none if there are several.
fn routers(lowered: &Lowered) -> BTreeMap<&Name, Option<&Name>> {
    let routes = |name: &Name| {
        let agent = lowered.network.agents.get(name);
        agent.is_some_and(|agent| matches!(agent.does, Does::Route(_)))
    };
    let mut routers = BTreeMap::new();
    for (from, to, _) in lowered.offers.iter().filter(|(from, ..)| routes(from)) {
        let one = routers.entry(to).or_insert(Some(from));
        *one = one.filter(|one| *one == from);
    }
    routers
}

/// Entries of sections as they were written, by section and name; of several the one that counts.
fn sections(merged: &Merged) -> BTreeMap<(&'static str, &str), &Node> {
    let sections = merged.sections.iter();
    let all = sections.flat_map(|(section, entries)| {
        let entries = entries.iter();
        entries.map(|(key, node)| ((*section, &*key.name), node))
    });
    all.collect()
}

pub(super) struct Check<'a> {
    sources: &'a Sources,
    merged: &'a Merged,
    lowered: &'a Lowered,
    /// Which agents may be above a use of an agent or tool.
    above: Above,
    /// Tools that only agents with modes call.
    moded: BTreeSet<Name>,
    /// For each entry of state the agents that declare it, in the order of their names, and its type there.
    entries: BTreeMap<&'a str, Vec<(&'a Name, &'a Type)>>,
    /// For each plain agent the one routed agent that leads to it.
    routers: BTreeMap<&'a Name, Option<&'a Name>>,
    /// What was written, by section and name.
    sections: BTreeMap<(&'static str, &'a str), &'a Node>,
    /// What serves nothing here and was not written in the main file.
    idle: BTreeSet<Name>,
    found: Vec<Diagnostic>,
}

impl Check<'_> {
    fn place(&self, span: Span) -> Option<Place> {
        self.sources.place(span)
    }
    /// An entry of a section as it was written; of several the one that counts.
    fn entry_of(&self, section: &'static str, name: &str) -> Option<&Node> {
        self.sections.get(&(section, name)).copied()
    }
    fn say(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }
    /// Whether the keys within are wrong, so that what follows from them is not to be trusted.
    fn is_broken(&self, span: Span) -> bool {
        self.merged.broken.within(span)
    }
}
