//! Checks of reviewers: a reviewer must be able to judge, must receive the draft, and must not review itself in a cycle.

use super::super::diagnostic::Diagnostic;
use super::Check;
use super::above::Circles;
use super::reach::Edges;
use std::collections::BTreeSet;
use steersman_machine::network::{AgentDef, Does, Network, Offer, Reflect};
use steersman_machine::stored::codes::{ACCEPT, REVISE};
use steersman_machine::stored::ids::Name;
use steersman_machine::values::types::{Parameters, TypeKind};

/// The parameters of a reviewer that the engine fills, by name.
const FILLED: [&str; 7] = [
    "draft", "task", "prompt", "tool", "args", "result", "message",
];

impl Check<'_> {
    pub(super) fn reviewers(&mut self) {
        let lowered = self.lowered;
        let network = &lowered.network;
        let judged = network.agents.keys();
        let judged: Edges = judged
            .map(|name| (name.clone(), reviewers_of(network, name)))
            .collect();
        let circles = Circles::of(network, &judged);
        let leads_back = |name: &Name| {
            let alone = |at: &usize| circles.circles[*at].len() == 1;
            !circles.of.get(name).is_none_or(alone) || judged[name].contains(name)
        };
        let mut reported = BTreeSet::new();
        for (name, span) in &lowered.facts.reviewers {
            let Some(def) = network.agents.get(name) else {
                continue;
            };
            if let Some(why) = unfit(def) {
                let at = self.place(*span);
                self.say(Diagnostic::unfit_reviewer(at, name, &why));
            } else if leads_back(name) && reported.insert(name) {
                let at = self.place(*span);
                self.say(Diagnostic::reviewers_circle(at, name));
            }
        }
        for (name, tool) in &network.tools {
            let follows = tool.reflect.is_some()
                && tool.then.is_some()
                && tool.effect != steersman_machine::stored::interaction::Class::Unsafe;
            if follows {
                let declared = lowered
                    .facts
                    .declared
                    .get(name)
                    .map(|declared| declared.span);
                let at = declared.and_then(|span| self.place(span));
                self.say(Diagnostic::reflect_with_then(at, name));
            }
        }
    }
}

/// Returns the reason why an agent cannot be a reviewer, or `None` if it can.
fn unfit(def: &AgentDef) -> Option<String> {
    if !matches!(def.does, Does::Model(_)) {
        return Some("is not driven by a model".to_owned());
    }
    if let Some(output) = &def.output {
        let TypeKind::Fields(fields) = &output.ty.kind else {
            return (!output.is_text())
                .then(|| "does not give an object with `accept` and `revise`".to_owned());
        };
        let of = |name: &str| fields.iter().find(|(field, _)| **field == *name);
        let accept = of(ACCEPT).is_some_and(|(_, ty)| ty.kind == TypeKind::Boolean);
        let revise = of(REVISE).is_some_and(|(_, ty)| matches!(ty.kind, TypeKind::String { .. }));
        if !accept || !revise {
            return Some(
                "does not give an object with `accept: boolean` and `revise: optional string`"
                    .to_owned(),
            );
        }
    }
    let Parameters::Fields(fields) = &def.parameters else {
        return Some(
            "has its parameters in a JSON Schema, which the engine cannot fill".to_owned(),
        );
    };
    let wants = fields
        .iter()
        .find(|(name, ty)| !FILLED.contains(&&**name) && !ty.optional && ty.default.is_none());
    if let Some((name, _)) = wants {
        return Some(format!("needs `{name}`, which the engine does not give"));
    }
    let judged = ["draft", "message", "args", "result"];
    let gets_it = fields.iter().any(|(name, _)| judged.contains(&&**name));
    (!gets_it).then(|| "does not get what it has to judge".to_owned())
}

/// Returns the reviewers of an agent's answers and of its tools.
fn reviewers_of(network: &Network, name: &Name) -> BTreeSet<Name> {
    let Some(def) = network.agents.get(name) else {
        return BTreeSet::new();
    };
    let by = |reflect: &Option<Reflect>| reflect.as_ref().and_then(|r| r.by.clone());
    let mut all: BTreeSet<Name> = by(&def.reflect).into_iter().collect();
    let tools = def.offers().filter_map(|used| match &used.of {
        Offer::Tool(tool) => network.tools.get(tool),
        Offer::Agent(_) => None,
    });
    all.extend(tools.filter_map(|tool| by(&tool.reflect)));
    all
}
