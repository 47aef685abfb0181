//! Judges a lowered definition: types of expressions, who leads to whom, what effects and people are asked for.

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
use crate::ids::Name;
use std::collections::{BTreeMap, BTreeSet};

/// All that is to be said about a lowered definition.
///
/// `whole`: nothing was wrong so far, so what seems to lead nowhere does.
pub(crate) fn check(
    sources: &Sources,
    merged: &Merged,
    lowered: &Lowered,
    whole: bool,
) -> Vec<Diagnostic> {
    let mut check = Check {
        sources,
        merged,
        lowered,
        above: reach::above(lowered),
        idle: reach::idle(lowered),
        found: Vec::new(),
    };
    check.expressions();
    check.filled();
    check.secrets_within();
    check.reach(whole);
    check.reviewers();
    check.effects(whole);
    if whole {
        check.routes();
        check.modes();
    }
    check.found
}

pub(super) struct Check<'a> {
    sources: &'a Sources,
    merged: &'a Merged,
    lowered: &'a Lowered,
    /// For each agent and tool the agents that may be above a use of it, itself included.
    above: BTreeMap<Name, BTreeSet<Name>>,
    /// What serves nothing here and was not written in the main file.
    idle: BTreeSet<Name>,
    found: Vec<Diagnostic>,
}

impl Check<'_> {
    fn place(&self, span: Span) -> Option<Place> {
        self.sources.place(span)
    }
    /// An entry of a section as it was written; of several the one that counts.
    fn entry_of(&self, section: &str, name: &Name) -> Option<&Node> {
        let mut all = self.merged.section(section).iter().rev();
        all.find(|(key, _)| key.name == *name).map(|(_, node)| node)
    }
    fn say(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }
    /// Whether the keys within are wrong, so that what follows from them is not to be trusted.
    fn is_broken(&self, span: Span) -> bool {
        self.merged
            .broken
            .iter()
            .any(|broken| span.contains(*broken))
    }
}
