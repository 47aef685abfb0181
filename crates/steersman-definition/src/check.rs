//! Checks a lowered definition: types of expressions, edges between names, effects, and people who are asked.

mod above;
mod effects;
mod files;
mod filled;
mod kind;
mod modes;
mod names;
mod offered;
mod operators;
mod permissions;
mod reach;
mod reviewers;
mod routes;
mod search;
mod types;

use super::diagnostic::{Diagnostic, Place};
use super::keys::agent::Agent;
use super::keys::file::{Config, Event};
use super::keys::kinds::{Names, Read, each};
use super::keys::tool::Tool;
use super::load::Merged;
use super::lower::Lowered;
use super::source::{Sources, Span};
use above::Above;
pub(crate) use offered::{Offered, offered};
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::network::Does;
use steersman_machine::stored::ids::Name;
use steersman_machine::values::types::Type;

/// Maps each name to the names that it leads to directly.
pub(crate) fn leads(lowered: &Lowered) -> BTreeMap<Name, BTreeSet<Name>> {
    reach::edges(lowered)
}

/// Returns all diagnostics of a lowered definition.
///
/// `whole` is true if no error was found so far. The checks for unreachable and unused items run only then: after an
/// error, an edge may be missing.
pub(crate) fn check(
    sources: &Sources,
    merged: &Merged,
    lowered: &Lowered,
    whole: bool,
) -> Vec<Diagnostic> {
    let edges = &lowered.network.leads;
    let mut check = Check::new(sources, merged, lowered);
    check.expressions();
    check.filled();
    check.secrets_within();
    check.reach(edges, whole);
    check.reviewers();
    check.effects(whole);
    if whole {
        check.permissions();
        check.routes();
        check.modes();
        check.unseen_files();
    }
    check.found
}

/// Maps each plain agent to the only routed agent that leads to it; `None` if there are several.
fn routers(lowered: &Lowered) -> BTreeMap<&Name, Option<&Name>> {
    let routes = |name: &Name| {
        let agent = lowered.network.agents.get(name);
        agent.is_some_and(|agent| matches!(agent.does, Does::Route(_)))
    };
    let mut routers = BTreeMap::new();
    for (from, to, _) in lowered
        .facts
        .offers
        .iter()
        .filter(|(from, ..)| routes(from))
    {
        let one = routers.entry(to).or_insert(Some(from));
        *one = one.filter(|one| *one == from);
    }
    routers
}

/// The items of a definition as they are written, by name.
struct Written<'a> {
    config: BTreeMap<&'a str, Config<'a>>,
    events: BTreeMap<&'a str, Event<'a>>,
    tools: BTreeMap<&'a str, Tool<'a>>,
    agents: BTreeMap<&'a str, Agent<'a>>,
}

fn by_name<'a, T: Read<'a>>(items: Option<Names<'a, T>>) -> BTreeMap<&'a str, T> {
    each(items).map(|(key, item)| (&*key.name, item)).collect()
}

pub(super) struct Check<'a> {
    sources: &'a Sources,
    merged: &'a Merged,
    lowered: &'a Lowered,
    /// The agents that lead to an agent or tool.
    above: Above,
    /// Tools that only agents with modes call.
    moded: BTreeSet<Name>,
    /// Maps each state entry to the agents that declare it, sorted by name, with the type in each agent.
    entries: BTreeMap<&'a str, Vec<(&'a Name, &'a Type)>>,
    /// Maps each plain agent to the only routed agent that leads to it; `None` if there are several.
    routers: BTreeMap<&'a Name, Option<&'a Name>>,
    /// The items as they are written.
    written: Written<'a>,
    /// Names declared outside the main file that no session or test can reach (`reach::idle`).
    idle: BTreeSet<Name>,
    found: Vec<Diagnostic>,
}

impl<'a> Check<'a> {
    fn new(sources: &'a Sources, merged: &'a Merged, lowered: &'a Lowered) -> Self {
        let edges = &lowered.network.leads;
        let mut entries: BTreeMap<&str, Vec<(&Name, &Type)>> = BTreeMap::new();
        for (owner, agent) in &lowered.network.agents {
            for (name, ty) in &agent.state {
                entries.entry(name).or_default().push((owner, ty));
            }
        }
        Check {
            sources,
            merged,
            lowered,
            above: Above::new(&lowered.network, edges),
            moded: reach::moded(lowered, edges),
            idle: reach::idle(lowered, edges),
            entries,
            routers: routers(lowered),
            written: Written {
                config: by_name(merged.file().config()),
                events: by_name(merged.file().events()),
                tools: by_name(merged.file().tools()),
                agents: by_name(merged.file().agents()),
            },
            found: Vec::new(),
        }
    }
    fn place(&self, span: Span) -> Option<Place> {
        self.sources.place(span)
    }
    fn say(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }
    /// Returns true if a key within the span is wrong. Further diagnostics about such an item would only be consequences.
    fn is_broken(&self, span: Span) -> bool {
        self.merged.broken.within(span)
    }
}
