//! Checks of effects and people: the people that can be asked, tools that write the same entry, descriptions for models.

use super::super::diagnostic::Diagnostic;
use super::super::hosted;
use super::super::keys::agent::Limits;
use super::super::keys::kinds::{Or, each};
use super::super::lower::{Sort, constant_misfit};
use super::super::source::{Key, Span};
use super::Check;
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::network::{AgentDef, Does, Offer, OnDoubt, Provider, Source};
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::interaction::{Class, Reduce};
use steersman_machine::values::types::Parameters;

impl Check<'_> {
    pub(super) fn effects(&mut self, whole: bool) {
        self.nobody_to_ask();
        self.approvals();
        self.probes();
        self.ahead();
        self.reaches();
        self.choosers();
        self.judges();
        self.searches();
        self.writers();
        self.arguments();
        self.prices();
        if whole {
            self.descriptions();
        }
    }

    /// Reports `by: user` if an event or a schedule may begin a session: such a session has no user.
    fn nobody_to_ask(&mut self) {
        let lowered = self.lowered;
        let Some((event, declared)) = lowered.facts.starts.first() else {
            return;
        };
        for span in &lowered.facts.by_user {
            let (at, declared) = (self.place(*span), self.place(*declared));
            self.say(Diagnostic::no_user(at, event, declared));
        }
    }

    /// Reports models without a price if a limit of money is set. The model of provider `auto` is checked when a session starts.
    fn prices(&mut self) {
        let file = self.merged.file();
        let of_agents = each(file.agents()).filter_map(|(_, agent)| agent.limits());
        let mut limits = file.limits().into_iter().chain(of_agents);
        let Some(cost) = limits.find_map(Limits::cost) else {
            return;
        };
        let limit = self.place(cost.0.span);
        let lowered = self.lowered;
        let models = each(file.models());
        let models: BTreeMap<&str, &Key> = models.map(|(key, _)| (&*key.name, key)).collect();
        for name in lowered.network.all_models() {
            let def = &lowered.network.models[name];
            if def.price.is_some() {
                continue;
            }
            let provider = match &def.provider {
                Provider::Scripted | Provider::Local => continue,
                Provider::Named(name) if hosted::is_listed(name) => Some(name),
                Provider::Named(_) | Provider::Auto => None,
            };
            let why = match def.named() {
                _ if def.url.is_some() => {
                    "the built-in table is for the providers' own addresses".to_owned()
                }
                Some(model)
                    if provider.is_some_and(|name| hosted::price(name, model).is_none()) =>
                {
                    format!("the built-in table does not have `{model}`")
                }
                Some(_) | None => continue,
            };
            let key = models.get(&**name);
            let at = key.and_then(|key| self.place(key.span));
            self.say(Diagnostic::no_price(at, name, &why, limit.clone()));
        }
    }

    /// Reports `approve` on anything that does not run as a tool, because only calls of such tools are held for an approval.
    fn approvals(&mut self) {
        let lowered = self.lowered;
        for (of, span) in &lowered.facts.approves {
            let tool = lowered.network.tools.get(of);
            let what = match tool.map(|tool| &tool.source) {
                Some(
                    Source::State
                    | Source::Http(_)
                    | Source::Command { .. }
                    | Source::Native { .. }
                    | Source::Mcp { .. },
                ) => continue,
                Some(Source::Wait(_)) => "a tool that waits",
                Some(Source::Ask(_)) => "a tool that asks",
                Some(Source::Send(_)) => "a tool that sends a message",
                Some(Source::BuiltIn(_)) => "a tool of the engine",
                // the pattern names all tools of an MCP server
                None if of.ends_with(".*") => continue,
                None => match lowered.facts.declared.get(of).map(|declared| declared.sort) {
                    Some(Sort::Tool) => continue,
                    Some(Sort::Agent) => "an agent: each of its tools may have one",
                    Some(Sort::Person) => "a person",
                    None => "a tool of the engine",
                },
            };
            let at = self.place(*span);
            self.say(Diagnostic::type_key(at, "approve", what));
        }
    }

    /// Reports tools that choose among branches but change the world or give no answer of their own. Such a call gets no
    /// approval and cannot be in doubt.
    fn choosers(&mut self) {
        let lowered = self.lowered;
        let network = &lowered.network;
        for (tool, span) in &lowered.facts.choosers {
            let Some(tool) = network.tools.get(tool) else {
                continue;
            };
            let runs = matches!(
                tool.source,
                Source::Http(_)
                    | Source::Command { .. }
                    | Source::Native { .. }
                    | Source::Mcp { .. }
            );
            let does = match tool.effect {
                Class::Pure | Class::Read if runs => continue,
                Class::Pure | Class::Read => "gives no answer of its own",
                Class::Idempotent => "is idempotent",
                Class::Unsafe => "is unsafe",
            };
            let at = self.place(*span);
            self.say(Diagnostic::chooser_class(at, &tool.name, does));
        }
    }

    /// Reports probes whose class is not `pure` or `read`.
    fn probes(&mut self) {
        let lowered = self.lowered;
        for (name, tool) in &lowered.network.tools {
            let Some(OnDoubt::Probe { probe, .. }) = &tool.on_doubt else {
                continue;
            };
            let class = lowered.network.tools.get(probe).map(|tool| tool.effect);
            if let Some(class @ (Class::Idempotent | Class::Unsafe)) = class {
                let declared = lowered
                    .facts
                    .declared
                    .get(name)
                    .map(|declared| declared.item);
                let at = self
                    .written_probe(name)
                    .or(declared)
                    .and_then(|span| self.place(span));
                self.say(Diagnostic::probe_class(at, probe, class.word()));
            }
        }
    }

    /// Reports tools that run ahead of a turn and whose class is not `pure` or `read`.
    fn ahead(&mut self) {
        let lowered = self.lowered;
        for (_, tool, span) in &lowered.facts.ahead {
            let class = lowered.network.tools.get(tool).map(|tool| tool.effect);
            if let Some(class @ (Class::Idempotent | Class::Unsafe)) = class {
                let at = self.place(*span);
                self.say(Diagnostic::ahead_class(at, tool, class.word()));
            }
        }
    }

    /// Reports `reach` tools that are not idempotent, since they may run again under the same key, and those with required
    /// parameters, since they get no arguments.
    fn reaches(&mut self) {
        let lowered = self.lowered;
        let network = &lowered.network;
        for (name, person) in &network.people {
            let Some(tool) = person
                .reach
                .as_ref()
                .and_then(|name| network.tools.get(name))
            else {
                continue;
            };
            let wants = match &tool.parameters {
                Parameters::Fields(fields) => fields
                    .iter()
                    .find(|(_, ty)| !ty.optional && ty.default.is_none())
                    .map(|(name, _)| format!("wants `{name}`")),
                Parameters::Schema(_) => Some("wants what a schema says".to_owned()),
            };
            let class =
                (tool.effect != Class::Idempotent).then(|| format!("is {}", tool.effect.word()));
            if let Some(why) = class.or(wants) {
                let declared = lowered
                    .facts
                    .declared
                    .get(name)
                    .map(|declared| declared.item);
                let at = declared.and_then(|span| self.place(span));
                self.say(Diagnostic::reach_class(at, &tool.name, &why));
            }
        }
    }

    /// Reports constant arguments that do not fit their parameters.
    fn arguments(&mut self) {
        let lowered = self.lowered;
        let network = &lowered.network;
        for (of, name, node) in &lowered.facts.arguments {
            let tool = network.tools.get(of).map(|tool| &tool.parameters);
            let agent = || network.agents.get(of).map(|agent| &agent.parameters);
            let Some(Parameters::Fields(fields)) = tool.or_else(agent) else {
                continue;
            };
            let Some((_, ty)) = fields.iter().find(|(known, _)| known == name) else {
                continue;
            };
            if let Some(misfit) = constant_misfit(ty, node) {
                let declared = lowered.facts.parameters.get(&(of.clone(), name.clone()));
                let declared = declared.and_then(|span| self.place(*span));
                let misfit = misfit.under(name).to_string();
                let at = self.place(node.span);
                self.say(Diagnostic::misfit(at, &misfit, declared));
            }
        }
    }

    /// Returns the place where a tool names its probe.
    fn written_probe(&self, tool: &Name) -> Option<Span> {
        match self.written.tools.get(&**tool)?.on_doubt()? {
            Or::Other(doubt) => Some(doubt.probe()?.span),
            Or::One(_) => None,
        }
    }

    /// Reports tools that one answer may call together and that write the same entry, with one warning for each entry.
    fn writers(&mut self) {
        let lowered = self.lowered;
        let network = &lowered.network;
        let mut writes: BTreeMap<&Name, BTreeMap<&Name, Span>> = BTreeMap::new();
        for (writer, entry, span) in &lowered.facts.writes {
            if !self.reduces(entry) {
                let entries = writes.entry(writer).or_default();
                entries.entry(entry).or_insert(*span);
            }
        }
        // models with the same offers are checked once
        let models = network.agents.values().flat_map(AgentDef::models);
        let offers: BTreeSet<Vec<&Name>> = models
            .map(|model| {
                let offered = model.tools.iter().map(|offered| match &offered.of {
                    Offer::Tool(name) | Offer::Agent(name) => name,
                });
                offered.filter(|name| writes.contains_key(name)).collect()
            })
            .collect();
        let mut together: BTreeMap<&Name, BTreeMap<&Name, Span>> = BTreeMap::new();
        for offered in &offers {
            let mut of_entry: BTreeMap<&Name, BTreeMap<&Name, Span>> = BTreeMap::new();
            for writer in offered {
                for (entry, span) in &writes[writer] {
                    of_entry.entry(entry).or_default().insert(writer, *span);
                }
            }
            for (entry, writers) in of_entry {
                if writers.len() > 1 {
                    together.entry(entry).or_default().extend(writers);
                }
            }
        }
        for (entry, writers) in together {
            let mut writers: Vec<(&Name, Span)> = writers.into_iter().collect();
            // in the order of the file
            writers.sort_by_key(|(_, span)| *span);
            let [(_, first), (_, second), ..] = writers[..] else {
                continue;
            };
            let (at, other) = (self.place(second), self.place(first));
            let names = writers.iter().map(|(name, _)| &***name);
            self.say(Diagnostic::many_writers(at, entry, names, other));
        }
    }

    /// Returns true if an agent declares a reduction, other than `last`, for several writes of an entry.
    fn reduces(&self, entry: &Name) -> bool {
        let declared = self.entries.get(&**entry);
        let mut declared = declared.into_iter().flatten();
        declared.any(|(_, ty)| ty.reduce != Reduce::Last)
    }

    /// Reports tools, agents and people without a description that a model is offered or that a routing model may choose.
    fn descriptions(&mut self) {
        let lowered = self.lowered;
        let network = &lowered.network;
        let mut reported = BTreeSet::new();
        let by_model = |from: &Name| {
            let agent = network.agents.get(from);
            agent.is_some_and(|agent| matches!(agent.does, Does::Model(_)))
        };
        let offers = lowered
            .facts
            .offers
            .iter()
            .filter(|(from, ..)| by_model(from));
        for (_, to, span) in offers.chain(&lowered.facts.chosen) {
            let Some(declared) = lowered.facts.declared.get(to) else {
                continue;
            };
            let (what, text) = match declared.sort {
                Sort::Tool => {
                    let tool = network.tools.get(to);
                    // the description of an MCP tool comes from its server
                    let tool = tool.filter(|tool| !matches!(tool.source, Source::Mcp { .. }));
                    ("tool", tool.map(|tool| &tool.description))
                }
                Sort::Agent => (
                    "agent",
                    network.agents.get(to).map(|agent| &agent.description),
                ),
                Sort::Person => (
                    "person",
                    network.people.get(to).map(|person| &person.description),
                ),
            };
            if text.is_some_and(String::is_empty) && reported.insert(to.clone()) {
                let (at, by) = (self.place(declared.span), self.place(*span));
                self.say(Diagnostic::no_description(at, what, to, by));
            }
        }
    }
}
