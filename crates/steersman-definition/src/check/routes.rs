//! Checks of routes: tasks that can never finish, exits that never fire, states that are never entered.

use super::super::diagnostic::Diagnostic;
use super::super::keys::kinds::each;
use super::super::keys::route;
use super::Check;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeSet;
use steersman_machine::network::{
    Desk, Does, ExitCause, ExitTo, Graph, Handoff, RouteBy, Rule, RuleTo,
};
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::ast::{Node as Ast, NodeKind};
use steersman_machine::values::expression::{Expr, Names};

impl Check<'_> {
    pub(super) fn routes(&mut self) {
        let lowered = self.lowered;
        for (name, agent) in &lowered.network.agents {
            let Does::Route(route) = &agent.does else {
                continue;
            };
            match &route.by {
                RouteBy::Tasks(desk) => self.unfinished(name, desk),
                RouteBy::States(graph) => self.unfired(name, graph),
                RouteBy::Rules(rules) if !agent.limits.same_call.written => {
                    self.circling(name, rules);
                }
                RouteBy::Rules(_)
                | RouteBy::Sequence(_)
                | RouteBy::Native { .. }
                | RouteBy::Pick(_) => {}
                RouteBy::Handoff(handoff) => self.never_handed_to(name, handoff),
            }
        }
    }

    /// Reports members of a handoff that nobody hands over to and that do not begin.
    fn never_handed_to(&mut self, agent: &Name, handoff: &Handoff) {
        let mut open = vec![&handoff.start];
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            if seen.insert(name) {
                open.extend(handoff.to.get(name).into_iter().flatten());
            }
        }
        let written = self.written.agents.get(&**agent);
        let members = each(written.and_then(|agent| agent.route()?.handoff()));
        let never: Vec<_> = members
            .map(|(key, _)| key)
            .filter(|key| handoff.to.contains_key(&key.name) && !seen.contains(&key.name))
            .map(|key| (self.place(key.span), key.name.clone()))
            .collect();
        for (at, member) in never {
            self.say(Diagnostic::never_handed_to(at, agent, &member));
        }
    }

    /// Returns a state of an agent's route as it is written.
    fn written_state(&self, agent: &Name, state: &Name) -> Option<route::StateNode<'_>> {
        let agent = self.written.agents.get(&**agent)?;
        agent.route()?.states()?.get(state)
    }

    /// Returns a task of an agent's route as it is written.
    fn written_task(&self, agent: &Name, task: &Name) -> Option<route::Task<'_>> {
        let agent = self.written.agents.get(&**agent)?;
        agent.route()?.tasks()?.get(task)
    }

    /// Reports tasks whose predicate can never hold: a part of it is false and depends only on state that nothing writes and
    /// on calls that no agent below this router makes.
    fn unfinished(&mut self, agent: &Name, desk: &Desk) {
        for task in &desk.tasks {
            let Some(done) = &task.done else {
                continue;
            };
            let mut parts = Vec::new();
            conjuncts(done.node(), &mut parts);
            let dead = parts
                .iter()
                .find_map(|part| self.never_holds(agent, done, part));
            let Some(why) = dead else {
                continue;
            };
            let written = self.written_task(agent, &task.name);
            let at = written.and_then(|task| self.place(task.done()?.span));
            self.say(Diagnostic::never_done(at, &task.name, &why));
        }
    }

    /// Returns the reason why a part of a predicate never holds; `None` if it may hold.
    fn never_holds(&self, agent: &Name, whole: &Expr, part: &Ast) -> Option<String> {
        let mut paths = Vec::new();
        reads(part, &mut paths)?;
        let (mut state, mut calls, mut why) = (Map::new(), Map::new(), None);
        for path in &paths {
            match (&**path.first()?, path.get(1)?) {
                ("state", entry) => {
                    state.insert(entry.to_string(), self.stays(entry)?);
                    why = Some(format!("nothing writes `state.{entry}`"));
                }
                ("calls", tool) => {
                    if self.is_below(agent, tool) {
                        return None;
                    }
                    calls.insert(tool.to_string(), json!({ "ok": 0, "failed": 0 }));
                    why = Some(format!("nobody below `{agent}` calls `{tool}`"));
                }
                _ => return None,
            }
        }
        let names = Names::from_json(json!({ "state": state, "calls": calls }));
        let part = Expr::parse(&whole.source[part.span.range()]).ok()?;
        why.filter(|_| !part.holds(&names).unwrap_or_default())
    }

    /// Returns the default of a state entry that nothing in the definition writes. `None` if something writes it, or if agents
    /// declare it with different defaults.
    fn stays(&self, entry: &Name) -> Option<Json> {
        // the built-in tools write `todo`
        if &**entry == "todo" {
            return None;
        }
        let network = &self.lowered.network;
        let mut filled = self.lowered.facts.filled.iter();
        if filled.any(|(_, name, _)| name == entry) {
            return None;
        }
        let written = self.lowered.facts.writes.iter().any(|(writer, name, _)| {
            let clears = network.agents.get(writer).is_some_and(|agent| {
                let own = agent.set.iter().any(|(set, _)| set == entry);
                !own && matches!(agent.does, Does::Route(_))
            });
            name == entry && !clears
        });
        let all = network.agents.values().flat_map(|agent| &agent.state);
        let mut defaults = all
            .filter(|(name, _)| name == entry)
            .map(|(_, ty)| ty.default.clone().unwrap_or(Json::Null));
        let keeps = defaults.next()?;
        (!written && defaults.all(|other| other == keeps)).then_some(keeps)
    }

    /// Returns true if `agent` leads to `used`, directly or through others.
    fn is_below(&self, agent: &Name, used: &Name) -> bool {
        self.above.is(agent, used)
    }

    /// Reports rules that hold again as soon as their members have answered: what they and the rules before them read is changed
    /// neither by the decision nor by anything that the members can do. The bound on equal choices ends such a route.
    fn circling(&mut self, agent: &Name, rules: &[Rule]) {
        let mut paths = Vec::new();
        let mut found = Vec::new();
        for (k, rule) in rules.iter().enumerate() {
            if reads(rule.when.node(), &mut paths).is_none() {
                break;
            }
            let moves = |path: &Vec<Name>| {
                let root = path.first().map(|root| &**root);
                matches!(root, Some("route" | "calls" | "now"))
            };
            if paths.iter().any(moves) {
                break;
            }
            if let RuleTo::Agents(members) = &rule.to
                && !members.iter().any(|member| self.can_progress(member))
            {
                found.push((k, members.clone()));
            }
        }
        for (k, members) in found {
            let agent = self.written.agents.get(&**agent);
            let written = agent.and_then(|agent| each(agent.route()?.rules()).nth(k));
            let at = written.and_then(|rule| self.place(rule.0.span));
            self.say(Diagnostic::holds_again(at, &members));
        }
    }

    /// Returns true if something that happens below a member can be progress of its router: a call of a tool, the answer of a
    /// person, a write of state.
    fn can_progress(&self, member: &Name) -> bool {
        let lowered = self.lowered;
        let network = &lowered.network;
        let mut open = vec![member];
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            if !seen.insert(name) {
                continue;
            }
            let Some(agent) = network.agents.get(name) else {
                return true;
            };
            let writes = lowered.facts.writes.iter().chain(&lowered.facts.filled);
            let servers = agent.models().any(|model| !model.servers.is_empty());
            let plain = matches!(agent.does, Does::Run { .. });
            if servers || plain || writes.into_iter().any(|(writer, ..)| writer == name) {
                return true;
            }
            open.extend(network.leads.get(name).into_iter().flatten());
        }
        false
    }

    /// Reports states that no exit leads to.
    fn unentered(&mut self, agent: &Name, graph: &Graph) {
        let mut open = vec![&graph.start];
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            let Some(state) = graph.states.get(name).filter(|_| seen.insert(name)) else {
                continue;
            };
            open.extend(state.exits.iter().filter_map(|exit| match &exit.to {
                ExitTo::State(to) => Some(to),
                ExitTo::Finish => None,
            }));
        }
        let never: Vec<&Name> = graph
            .states
            .keys()
            .filter(|name| !seen.contains(name))
            .collect();
        for name in never {
            let written = self.written_state(agent, name);
            let at = written.and_then(|state| self.place(state.0.span));
            self.say(Diagnostic::never_entered(at, name));
        }
    }

    /// Reports exits that never fire: those after an exit that always fires, those with a message count that is never reached,
    /// and those of a judge that is never asked.
    fn unfired(&mut self, agent: &Name, graph: &Graph) {
        self.unentered(agent, graph);
        for (name, state) in &graph.states {
            let Some(node) = self.written_state(agent, name) else {
                continue;
            };
            let exits: Vec<route::Exit<'_>> = each(node.exits()).collect();
            if exits.len() != state.exits.len() {
                continue;
            }
            let written = |k: usize| {
                let when = exits[k].when()?.0;
                when.as_text().map(|text| text.trim())
            };
            let counts = state.exits.iter().filter_map(|exit| match exit.cause {
                ExitCause::AfterMessages(n) => Some(n),
                ExitCause::When(_) | ExitCause::Judge(_) => None,
            });
            let least = counts.min();
            let always = (0..exits.len()).find(|k| written(*k) == Some("true"));
            let counted = state.exits.iter().position(
                |exit| matches!(exit.cause, ExitCause::AfterMessages(n) if Some(n) == least),
            );
            let mut found = Vec::new();
            for (k, exit) in state.exits.iter().enumerate() {
                let by = match &exit.cause {
                    ExitCause::When(_) if written(k) == Some("false") => None,
                    ExitCause::When(_) => match always {
                        Some(first) if first < k => Some(first),
                        _ => continue,
                    },
                    ExitCause::AfterMessages(n) => match (always, counted) {
                        (Some(first), _) if first < k => Some(first),
                        (_, Some(first)) if first != k && (Some(*n) > least || first < k) => {
                            Some(first)
                        }
                        _ => continue,
                    },
                    // exits that need no model are tested before judges
                    ExitCause::Judge(_) => match (always, least) {
                        (Some(first), _) => Some(first),
                        (None, Some(1)) => counted,
                        _ => continue,
                    },
                };
                found.push((exits[k].0.span, by.map(|by| exits[by].0.span)));
            }
            for (span, by) in found {
                let by = by.and_then(|by| self.place(by));
                let at = self.place(span);
                self.say(Diagnostic::never_fires(at, by));
            }
        }
    }
}

/// Collects the operands of a chain of `and`.
fn conjuncts<'a>(node: &'a Ast, parts: &mut Vec<&'a Ast>) {
    match &node.kind {
        NodeKind::And(left, right) => {
            conjuncts(left, parts);
            conjuncts(right, parts);
        }
        _ => parts.push(node),
    }
}

/// Collects the paths that an expression reads; `None` if it calls a function.
fn reads(node: &Ast, paths: &mut Vec<Vec<Name>>) -> Option<()> {
    if let Some(path) = node.path() {
        paths.push(path);
        return Some(());
    }
    if matches!(node.kind, NodeKind::Call { .. }) {
        return None;
    }
    node.children()
        .into_iter()
        .try_for_each(|child| reads(child, paths))
}
