//! Lowers routes, which choose the agent that acts next.

use super::super::diagnostic::Diagnostic;
use super::super::site::{Args, Scope, Wants};
use super::super::source::{Key, Node, Span};
use super::{Lower, flag, text, whole, word};
use std::collections::BTreeSet;
use steersman_machine::network::{
    Asks, Begin, Choosable, Desk, Exit, ExitCause, ExitTo, Fallback, GoOn, Graph, Handoff,
    OnChange, OnFailed, Orchestrator, Order, Requires, Route, RouteBy, Rule, RuleTo, Seen, Speaker,
    StateNode, Task, Unusable, ViewDef,
};
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::ids::Name;

/// Default number of times a routing model is asked again after an unusable answer.
const RETRIES: u32 = 2;

impl Lower<'_> {
    pub(super) fn route(&mut self, agent: &Name, node: &Node, scope: &Scope) -> Route {
        let by = self.route_by(agent, node, scope);
        let on_failed = self.on_failed(agent, node, &by);
        let unusable = self.unusable(agent, node.get("on_unusable"), &by);
        let seen = match by {
            RouteBy::States(_) | RouteBy::Tasks(_) | RouteBy::Handoff(_) => Seen::Shared,
            RouteBy::Rules(_)
            | RouteBy::Sequence(_)
            | RouteBy::Native { .. }
            | RouteBy::Pick(_) => Seen::Own,
        };
        self.settings_of_kind(node);
        self.somebody_to_choose(node);
        Route {
            by,
            asks: Asks {
                model: self.model_name(node.get("model")),
                system: node.get("system").and_then(|node| self.prompt(node, scope)),
                unusable,
            },
            on_failed,
            view: ViewDef {
                of: seen,
                window: None,
                summary: None,
                relevant: 0,
            },
        }
    }

    fn route_by(&mut self, agent: &Name, node: &Node, scope: &Scope) -> RouteBy {
        if let Some(sequence) = node.get("sequence") {
            RouteBy::Sequence(self.members(agent, sequence))
        } else if let Some(native) = node.get("native") {
            let version = native.as_text().map(ToString::to_string);
            RouteBy::Native {
                version: version.unwrap_or_default(),
                members: self.all_others(agent, native.span),
            }
        } else if let Some(pick) = node.get("pick") {
            RouteBy::Pick(self.choosable(agent, pick, scope))
        } else if let Some(states) = node.get("states") {
            RouteBy::States(self.graph(agent, node, states, scope))
        } else if let Some(tasks) = node.get("tasks") {
            RouteBy::Tasks(self.desk(agent, node, tasks, scope))
        } else if let Some(handoff) = node.get("handoff") {
            RouteBy::Handoff(self.handoff(agent, node, handoff))
        } else {
            RouteBy::Rules(self.rules(agent, node.get("rules"), scope))
        }
    }

    /// Reports routes without members, and reserved names of states and tasks.
    fn somebody_to_choose(&mut self, node: &Node) {
        let kinds = ["rules", "sequence", "pick", "states", "tasks", "handoff"];
        for (key, value) in node.entries() {
            let empty = value.items().is_empty() && value.entries().is_empty();
            if kinds.contains(&&*key.name) && empty && value.scalar().is_none() {
                let at = self.place(key.span);
                self.say(Diagnostic::nobody_to_choose(at, &key.name));
            }
        }
        for key in ["states", "tasks"] {
            let entries = node.get(key).map(Node::entries).unwrap_or_default();
            for (key, value) in entries {
                if super::RESERVED.contains(&&*key.name) {
                    let at = self.place(key.span);
                    self.say(Diagnostic::reserved_name(at, &key.name));
                }
                let speakers = value.get("speakers");
                if let Some(node) = speakers.filter(|node| node.items().is_empty()) {
                    let at = self.place(node.span);
                    self.say(Diagnostic::nobody_to_choose(at, "speakers"));
                }
            }
        }
    }

    /// Reports settings that have no meaning for this kind of route.
    fn settings_of_kind(&mut self, node: &Node) {
        const OF: [(&str, &[&str]); 7] = [
            ("start", &["states", "handoff"]),
            ("default", &["tasks"]),
            ("model", &["states", "tasks", "pick", "rules"]),
            ("system", &["pick", "rules"]),
            ("orchestrator", &["tasks"]),
            ("continue", &["tasks"]),
            ("on_change", &["tasks"]),
        ];
        for (key, _) in node.entries() {
            let of = OF.iter().find(|(name, _)| *name == &*key.name);
            let fits = of.is_none_or(|(_, kinds)| kinds.iter().any(|k| node.get(k).is_some()));
            if !fits {
                let at = self.place(key.span);
                self.say(Diagnostic::type_key(at, &key.name, "this kind of route"));
            }
        }
    }

    fn on_failed(&mut self, agent: &Name, node: &Node, by: &RouteBy) -> OnFailed {
        match word(node, "on_failed") {
            Some("continue") => OnFailed::Continue,
            Some("fail") => OnFailed::Fail,
            Some(_) => match node
                .get("on_failed")
                .and_then(|node| self.led_to(agent, node))
            {
                Some(name) => OnFailed::To(name),
                None => OnFailed::Fail,
            },
            None => match by {
                RouteBy::States(_) => OnFailed::Continue,
                RouteBy::Tasks(desk) => desk.default.clone().map_or(OnFailed::Fail, OnFailed::To),
                // a rule that reads `route.last` handles failures itself
                RouteBy::Rules(rules) if rules.iter().any(reads_last) => OnFailed::Continue,
                RouteBy::Rules(_)
                | RouteBy::Sequence(_)
                | RouteBy::Native { .. }
                | RouteBy::Pick(_)
                | RouteBy::Handoff(_) => OnFailed::Fail,
            },
        }
    }

    fn unusable(&mut self, agent: &Name, node: Option<&Node>, by: &RouteBy) -> Unusable {
        let otherwise = match by {
            RouteBy::Tasks(Desk {
                default: Some(name),
                ..
            }) => Fallback::Member(name.clone()),
            RouteBy::States(_) => Fallback::Stay,
            // ending the task here would give a result that no model chose
            _ => Fallback::Fail,
        };
        let to = match node.and_then(|node| node.get("to")) {
            None => otherwise,
            Some(to) => match to.as_text().map(|text| &**text) {
                Some("stay") => Fallback::Stay,
                Some("finish") => Fallback::Finish,
                _ => self.led_to(agent, to).map_or(otherwise, Fallback::Member),
            },
        };
        let retries = node.and_then(|node| node.get("retries")).and_then(whole);
        Unusable {
            retries: retries.map_or(RETRIES, |n| u32::try_from(n).unwrap_or(u32::MAX)),
            to,
        }
    }

    /// Returns the members that a router in Rust may choose: all agents and people but itself.
    fn all_others(&mut self, agent: &Name, span: Span) -> Vec<Name> {
        let declared = self.out.declared.iter();
        let others: Vec<Name> = declared
            .filter(|(name, declared)| declared.sort != super::Sort::Tool && *name != agent)
            .map(|(name, _)| name.clone())
            .collect();
        for name in &others {
            self.out.offers.push((agent.clone(), name.clone(), span));
        }
        others
    }

    /// Resolves a member that a route leads to and records the edge.
    pub(super) fn led_to(&mut self, agent: &Name, node: &Node) -> Option<Name> {
        let name = self.member(node)?;
        let offer = (agent.clone(), name.clone(), node.span);
        self.out.offers.push(offer);
        Some(name)
    }

    /// Resolves a member that is named by the key of an entry and records the edge.
    fn led_to_key(&mut self, agent: &Name, key: &Key) -> Option<Name> {
        let declared = self.out.declared.get(&key.name);
        if declared.is_some_and(|declared| declared.sort != super::Sort::Tool) {
            let offer = (agent.clone(), key.name.clone(), key.span);
            self.out.offers.push(offer);
            return Some(key.name.clone());
        }
        let known = self.out.declared.iter();
        let agents = known.filter(|(_, d)| d.sort != super::Sort::Tool);
        let near = self
            .sources
            .near(&key.name, agents.map(|(name, _)| &**name))
            .map(str::to_owned);
        let at = self.place(key.span);
        self.say(Diagnostic::unknown_name(
            at,
            "agent",
            &key.name,
            near.as_deref(),
        ));
        None
    }

    fn members(&mut self, agent: &Name, node: &Node) -> Vec<Name> {
        let nodes = if node.items().is_empty() {
            std::slice::from_ref(node)
        } else {
            node.items()
        };
        let members = nodes.iter();
        members
            .filter_map(|node| self.led_to(agent, node))
            .collect()
    }

    fn rules(&mut self, agent: &Name, node: Option<&Node>, scope: &Scope) -> Vec<Rule> {
        let nodes = node.map(Node::items).unwrap_or_default();
        let mut rules = Vec::new();
        let mut always: Option<Span> = None;
        for rule in nodes {
            if let Some(by) = always {
                let (at, by) = (self.place(rule.span), self.place(by));
                self.say(Diagnostic::never_reached(at, by));
            }
            let when = rule.get("when");
            if when.is_none_or(|when| when.as_text().is_some_and(|text| &**text == "true")) {
                always = always.or(Some(rule.span));
            }
            let when = self.condition(when, scope);
            let to = match (rule.get("to"), rule.get("pick")) {
                (_, Some(pick)) => RuleTo::Pick {
                    from: self.choosable(agent, pick, scope),
                    model: rule.get("model").map(|model| self.model_name(Some(model))),
                },
                (Some(to), _) if to.as_text().is_some_and(|name| &**name == "finish") => {
                    RuleTo::Finish
                }
                (Some(to), _) => RuleTo::Agents(self.members(agent, to)),
                (None, None) => RuleTo::Finish,
            };
            if let (Some(model), None) = (rule.get("model"), rule.get("pick")) {
                let at = self.place(model.span);
                self.say(Diagnostic::type_key(at, "model", "a rule without `pick`"));
            }
            if let Some(when) = when {
                rules.push(Rule { when, to });
            }
        }
        if let (None, Some(last)) = (always, nodes.last()) {
            let at = self.place(last.get("when").map_or(last.span, |when| when.span));
            self.say(Diagnostic::no_last_rule(at));
        }
        rules
    }

    /// Lowers the members that a model may pick. They need descriptions, so they are also recorded as `chosen`.
    fn choosable(&mut self, agent: &Name, node: &Node, scope: &Scope) -> Vec<Choosable> {
        let mut from = Vec::new();
        for node in node.items() {
            let what = node.get("agent").unwrap_or(node);
            let when = node
                .get("when")
                .and_then(|when| self.expr(when, Wants::Condition, scope));
            if let Some(name) = self.led_to(agent, what) {
                let place = (agent.clone(), name.clone(), what.span);
                self.out.chosen.push(place);
                from.push(Choosable { agent: name, when });
            }
        }
        from
    }

    // ---- states ----------------------------------------------------------------------------------------------

    fn graph(&mut self, agent: &Name, route: &Node, node: &Node, scope: &Scope) -> Graph {
        let states = node.entries().iter();
        let states: Vec<(Name, StateNode)> = states
            .map(|(key, state)| (key.name.clone(), self.state_node(agent, state, node, scope)))
            .collect();
        let start = self.first_of(route, node, "state");
        let graph = Graph {
            start,
            states: states.into_iter().collect(),
        };
        self.opens_and_ends(node, &graph);
        graph
    }

    /// Reports states without exits, and a start state with an agent and a person in which the agent does not open with a text
    /// (`say`).
    fn opens_and_ends(&mut self, node: &Node, graph: &Graph) {
        for (key, _) in node.entries() {
            let Some(state) = graph.states.get(&key.name) else {
                continue;
            };
            if state.exits.is_empty() {
                let at = self.place(key.span);
                self.say(Diagnostic::never_left(at, &key.name));
            }
            let is_person = |name: &Name| {
                let declared = self.out.declared.get(name);
                declared.is_some_and(|declared| declared.sort == super::Sort::Person)
            };
            let [one, other] = state.speakers.as_slice() else {
                continue;
            };
            let people = [&one.agent, &other.agent].map(|name| (name.clone(), is_person(name)));
            let ([(person, true), (_, false)] | [(_, false), (person, true)]) = people else {
                continue;
            };
            let begin = state.begin.as_ref();
            let opens = begin.and_then(|b| state.plays(&b.speaker));
            let said = begin.is_some_and(|b| b.say.is_some());
            let opened = said && opens.is_some_and(|speaker| speaker.agent != person);
            if key.name == graph.start && !opened {
                let at = self.place(key.span);
                self.say(Diagnostic::nobody_opens(at, &person));
            }
        }
    }

    /// Returns the entry that `start` names, else the first entry.
    fn first_of(&mut self, route: &Node, entries: &Node, sort: &str) -> Name {
        let first = entries.entries().first();
        let first = first.map_or_else(|| "".into(), |(key, _)| key.name.clone());
        let Some(start) = route.get("start") else {
            return first;
        };
        self.entry_named(start, entries, sort).unwrap_or(first)
    }

    /// Returns the name in a node if it is a key of `entries`; otherwise reports it.
    pub(super) fn entry_named(&mut self, node: &Node, entries: &Node, sort: &str) -> Option<Name> {
        let name = node.as_text()?;
        let known = || {
            entries
                .entries()
                .iter()
                .map(|(key, _): &(Key, Node)| &*key.name)
        };
        if known().any(|entry| entry == &**name) {
            return Some(name.clone());
        }
        let ends = sort == "state" && ["end", "done", "stop", "exit"].contains(&&**name);
        let near = if ends {
            Some("finish")
        } else {
            self.sources.near(name, known())
        };
        let near = near.map(str::to_owned);
        let at = self.place(node.span);
        self.say(Diagnostic::unknown_name(at, sort, name, near.as_deref()));
        None
    }

    fn state_node(&mut self, agent: &Name, node: &Node, states: &Node, scope: &Scope) -> StateNode {
        let mut speakers: Vec<Speaker> = Vec::new();
        for speaker in node.get("speakers").map(Node::items).unwrap_or_default() {
            let what = speaker.get("agent").unwrap_or(speaker);
            let Some(name) = self.led_to(agent, what) else {
                continue;
            };
            let role = text(speaker, "role").map_or_else(|| name.clone(), Name::from);
            if speakers.iter().any(|known| known.role == role) {
                let at = self.place(speaker.get("role").map_or(what.span, |node| node.span));
                self.say(Diagnostic::role_twice(at, &role));
                continue;
            }
            // instructions are part of the member's prompt, so names resolve in the member's scope
            let of_member = Scope {
                agent: Some(name.clone()),
                args: Args::Agent(name.clone()),
                message: true,
                route: false,
                ..scope.clone()
            };
            speakers.push(Speaker {
                role,
                instructions: self.text_of(speaker, "instructions", &of_member),
                extract: {
                    let entries = speaker.get("extract").map(Node::items);
                    self.filled(agent, entries.unwrap_or_default())
                },
                agent: name,
            });
        }
        StateNode {
            scene: self.text_of(node, "scene", scope),
            begin: node
                .get("begin")
                .and_then(|node| self.begin(node, &speakers, scope)),
            speakers,
            order: match word(node, "order") {
                Some("random") => Order::Random,
                Some("by_model") => Order::ByModel,
                _ => Order::InTurn,
            },
            exits: self.exits(node.get("exits"), states, scope),
            view: node.get("view").map(|node| self.view(node, scope)),
            reset: word(node, "reset") != Some("never"),
        }
    }

    fn begin(&mut self, node: &Node, speakers: &[Speaker], scope: &Scope) -> Option<Begin> {
        let named = node.get("speaker")?;
        let name = named.as_text()?;
        let by_role = speakers.iter().find(|speaker| speaker.role == *name);
        let by_agent = || speakers.iter().find(|speaker| speaker.agent == *name);
        let Some(speaker) = by_role.or_else(by_agent) else {
            let known = || speakers.iter().map(|speaker| &*speaker.role);
            let near = self.sources.near(name, known()).map(str::to_owned);
            let at = self.place(named.span);
            self.say(Diagnostic::unknown_name(
                at,
                "speaker of this state",
                name,
                near.as_deref(),
            ));
            return None;
        };
        Some(Begin {
            speaker: speaker.role.clone(),
            say: self.text_of(node, "say", scope),
        })
    }

    fn exits(&mut self, node: Option<&Node>, states: &Node, scope: &Scope) -> Vec<Exit> {
        let mut exits = Vec::new();
        for node in node.map(Node::items).unwrap_or_default() {
            let to = match node.get("to") {
                Some(to) if to.as_text().is_some_and(|name| &**name == "finish") => {
                    Some(ExitTo::Finish)
                }
                Some(to) => self.entry_named(to, states, "state").map(ExitTo::State),
                None => None,
            };
            let after = node.get("after_messages").and_then(whole);
            let cause = if let Some(when) = node.get("when") {
                self.expr(when, Wants::Condition, scope)
                    .map(ExitCause::When)
            } else if let Some(judge) = node.get("judge") {
                self.template(judge, Wants::Text, scope)
                    .map(ExitCause::Judge)
            } else {
                after.map(|n| ExitCause::AfterMessages(u32::try_from(n).unwrap_or(u32::MAX)))
            };
            if let Some((cause, to)) = cause.zip(to) {
                exits.push(Exit { cause, to });
            }
        }
        exits
    }

    // ---- tasks and handoff -----------------------------------------------------------------------------------

    fn desk(&mut self, agent: &Name, route: &Node, node: &Node, scope: &Scope) -> Desk {
        let mut tasks = Vec::new();
        for (key, task) in node.entries() {
            if let Some(task) = self.task(agent, key, task, node, scope) {
                tasks.push(task);
            }
        }
        self.task_circles(node, &tasks);
        let default = route
            .get("default")
            .and_then(|node| self.led_to(agent, node));
        let orchestrator = route.get("orchestrator");
        Desk {
            tasks,
            default,
            orchestrator: Orchestrator {
                system: orchestrator
                    .and_then(|node| node.get("system"))
                    .and_then(|node| self.prompt(node, scope)),
                model: orchestrator
                    .and_then(|node| node.get("model"))
                    .map(|node| self.model_name(Some(node))),
                speaks: orchestrator.is_some_and(|node| flag(node, "speaks")),
            },
            go_on: match word(route, "continue") {
                Some("by_model") => GoOn::ByModel,
                Some("none") => GoOn::None,
                _ => GoOn::Request,
            },
            on_change: match word(route, "on_change") {
                Some("ask") => OnChange::Ask,
                Some("finish_first") => OnChange::FinishFirst,
                _ => OnChange::Switch,
            },
        }
    }

    /// Reports tasks that can never begin because they wait for each other.
    fn task_circles(&mut self, node: &Node, tasks: &[Task]) {
        let task = |name: &Name| tasks.iter().find(|task| task.name == *name);
        let mut said: Vec<Name> = Vec::new();
        for begin in tasks {
            if said.contains(&begin.name) {
                continue;
            }
            let mut path = vec![begin.name.clone()];
            let mut seen = BTreeSet::new();
            let mut open: Vec<(Name, usize)> =
                begin.after.iter().map(|name| (name.clone(), 1)).collect();
            while let Some((name, depth)) = open.pop() {
                path.truncate(depth);
                if name == begin.name {
                    path.push(name);
                    said.extend(path.iter().cloned());
                    let at = node
                        .entries()
                        .iter()
                        .find(|(key, _)| key.name == begin.name);
                    let at = at.and_then(|(key, _)| self.place(key.span));
                    self.say(Diagnostic::task_circle(at, &path.join(" after ")));
                    break;
                }
                if !seen.insert(name.clone()) {
                    continue;
                }
                path.push(name.clone());
                let after = task(&name).map_or(&[][..], |task| &task.after);
                open.extend(after.iter().map(|name| (name.clone(), depth + 1)));
            }
        }
    }

    fn task(
        &mut self,
        agent: &Name,
        key: &Key,
        node: &Node,
        tasks: &Node,
        scope: &Scope,
    ) -> Option<Task> {
        let named = node.get("agent");
        let member = if let Some(node) = named {
            self.led_to(agent, node)?
        } else {
            self.led_to_key(agent, key)?
        };
        let place = (
            agent.clone(),
            member.clone(),
            named.map_or(key.span, |n| n.span),
        );
        self.out.chosen.push(place);
        let after = node.get("after").map(Node::items).unwrap_or_default();
        let after: Vec<Name> = after
            .iter()
            .filter_map(|node| self.entry_named(node, tasks, "task"))
            .collect();
        let of_member = Scope {
            agent: Some(member.clone()),
            args: Args::None,
            route: false,
            ..scope.clone()
        };
        let requires: Vec<Requires> = self.requires(node.get("requires"), scope);
        let release = node.get("release").map(|node| {
            let words = node.items().iter().filter_map(Node::as_text);
            words.map(ToString::to_string).collect::<Vec<_>>()
        });
        let may = |word: &str| {
            release
                .as_ref()
                .is_none_or(|words| words.iter().any(|w| w == word))
        };
        let clear = node.get("clear").map(Node::items).unwrap_or_default();
        Some(Task {
            name: key.name.clone(),
            agent: member,
            after,
            done: node
                .get("done")
                .and_then(|done| self.expr(done, Wants::Condition, &of_member)),
            requires,
            clear: clear
                .iter()
                .filter_map(|node| self.entry_of_state(agent, node))
                .collect(),
            may_end: may("done"),
            may_release: may("need_help"),
        })
    }

    /// Resolves a state entry that a routed agent unsets, and records the write.
    fn entry_of_state(&mut self, agent: &Name, node: &Node) -> Option<Name> {
        let name = node.as_text()?.clone();
        if !self.out.entries.contains(&name) {
            let known: Vec<Name> = self.out.entries.iter().cloned().collect();
            let near = self.sources.near(&name, known.iter().map(|name| &**name));
            let at = self.place(node.span);
            self.say(Diagnostic::unknown_state(at, &name, near));
            return None;
        }
        let place = (agent.clone(), name.clone(), node.span);
        self.out.writes.push(place);
        Some(name)
    }

    fn handoff(&mut self, agent: &Name, route: &Node, node: &Node) -> Handoff {
        let mut to = std::collections::BTreeMap::new();
        for (key, peers) in node.entries() {
            if self.led_to_key(agent, key).is_none() {
                continue;
            }
            let peers: Vec<Name> = peers
                .items()
                .iter()
                .filter_map(|peer| {
                    let name = self.entry_named(peer, node, "member")?;
                    let place = (agent.clone(), name.clone(), peer.span);
                    self.out.chosen.push(place);
                    Some(name)
                })
                .collect();
            to.insert(key.name.clone(), peers);
        }
        Handoff {
            start: self.first_of(route, node, "member"),
            to,
        }
    }
}

impl Lower<'_> {
    /// Returns the tools with which an agent may give away the floor of a route.
    pub(super) fn floor_tools(&self, name: &Name) -> Vec<BuiltIn> {
        let (desk, peers) = (&self.out.desk, &self.out.peers);
        let desk = desk
            .contains(name)
            .then_some([BuiltIn::Done, BuiltIn::NeedHelp]);
        let peers = peers.contains(name).then_some(BuiltIn::Handoff);
        desk.into_iter().flatten().chain(peers).collect()
    }

    /// Collects the agents that may have the floor of a route, before the offers of any agent are lowered.
    pub(super) fn floors(&mut self) {
        for (_, node) in self.merged.section("agents") {
            let Some(route) = node.get("route") else {
                continue;
            };
            let entries = |key: &str| route.get(key).map(Node::entries).unwrap_or_default();
            let tasks = entries("tasks").iter().map(|(key, task)| {
                let named = task.get("agent").and_then(Node::as_text);
                named.unwrap_or(&key.name).clone()
            });
            self.out.desk.extend(tasks);
            let peers = entries("handoff").iter().map(|(key, _)| key.name.clone());
            self.out.peers.extend(peers);
        }
    }
}

fn reads_last(rule: &Rule) -> bool {
    rule.when.source.contains("route.last")
}
