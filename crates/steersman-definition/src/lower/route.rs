//! Lowers routes, which choose the agent that acts next.

use super::super::diagnostic::Diagnostic;
use super::super::foreign;
use super::super::keys::Section as _;
use super::super::keys::kinds::{self, List, Names, Or, Read as _, Valued, each};
use super::super::keys::route::{self as keys, Failed, Release, Reset};
use super::super::site::{Args, Scope};
use super::super::source::{Key, Node, Span};
use super::Lower;
use std::collections::BTreeSet;
use steersman_machine::network::{
    Asks, Begin, Choosable, Desk, Exit, ExitCause, ExitTo, FINISH, Fallback, Graph, Handoff,
    OnFailed, Orchestrator, Route, RouteBy, RouterKind, Rule, RuleTo, Speaker, StateNode, Task,
    Unusable, ViewDef,
};
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::ids::Name;

impl Lower<'_> {
    pub(super) fn route(&mut self, agent: &Name, route: keys::Route<'_>, scope: &Scope) -> Route {
        let by = self.route_by(agent, route, scope);
        let on_failed = self.on_failed(agent, route, &by);
        let unusable = self.unusable(agent, route.on_unusable(), &by);
        let of = by.usual_view();
        self.meaningful_keys(route);
        self.somebody_to_choose(route);
        Route {
            by,
            asks: Asks {
                model: self.model_name(route.model()),
                system: self.prompt(route.system(), scope),
                unusable,
            },
            on_failed,
            view: ViewDef {
                of,
                ..ViewDef::default()
            },
        }
    }

    fn route_by(&mut self, agent: &Name, route: keys::Route<'_>, scope: &Scope) -> RouteBy {
        // several kinds are an error, which is reported; the last one is lowered
        let mut written = route.0.entries().iter().rev();
        let kind = written.find_map(|(key, _)| RouterKind::of(&key.name));
        let by = match kind.unwrap_or(RouterKind::Rules) {
            RouterKind::Rules => Some(RouteBy::Rules(self.rules(agent, route.rules(), scope))),
            RouterKind::Sequence => route
                .sequence()
                .map(|members| RouteBy::Sequence(self.members(agent, members))),
            RouterKind::States => route
                .states()
                .map(|states| RouteBy::States(self.graph(agent, route, states, scope))),
            RouterKind::Tasks => route
                .tasks()
                .map(|tasks| RouteBy::Tasks(self.desk(agent, route, tasks, scope))),
            RouterKind::Handoff => route
                .handoff()
                .map(|peers| RouteBy::Handoff(self.handoff(agent, route, peers))),
            RouterKind::Pick => route
                .pick()
                .map(|choices| RouteBy::Pick(self.choosable(agent, choices, scope))),
            RouterKind::Native => route.native().map(|native| {
                let native = native.node();
                let version = native.as_text().map(ToString::to_string);
                RouteBy::Native {
                    version: version.unwrap_or_default(),
                    members: self.all_others(agent, native.span),
                }
            }),
        };
        by.expect("its key is written")
    }

    /// Reports routes without members, and reserved names of states and tasks.
    fn somebody_to_choose(&mut self, route: keys::Route<'_>) {
        for (key, value) in route.0.entries() {
            let empty = value.items().is_empty() && value.entries().is_empty();
            // a router in Rust names no members here
            let kind = RouterKind::of(&key.name).filter(|kind| *kind != RouterKind::Native);
            if kind.is_some() && empty && value.scalar().is_none() {
                let at = self.place(key.span);
                self.say(Diagnostic::nobody_to_choose(at, &key.name));
            }
        }
        let states = each(route.states()).map(|(key, _)| key);
        let tasks = each(route.tasks()).map(|(key, _)| key);
        for key in states.chain(tasks) {
            if super::RESERVED.contains(&&*key.name) {
                let at = self.place(key.span);
                self.say(Diagnostic::reserved_name(at, &key.name));
            }
        }
        for speakers in each(route.states()).filter_map(|(_, state)| state.speakers()) {
            let no_list = speakers.0.scalar().is_some(); // reported already
            if speakers.into_iter().len() == 0 && !no_list {
                let at = self.place(speakers.0.span);
                self.say(Diagnostic::nobody_to_choose(at, "speakers"));
            }
        }
    }

    fn on_failed(&mut self, agent: &Name, route: keys::Route<'_>, by: &RouteBy) -> OnFailed {
        let Some(written) = route.on_failed() else {
            return by.usual_on_failed();
        };
        match written {
            Or::One(word) if word.value() == Some(Failed::Continue) => OnFailed::Continue,
            Or::One(_) => OnFailed::Fail,
            Or::Other(name) => self
                .led_to(agent, &name)
                .map_or(OnFailed::Fail, OnFailed::To),
        }
    }

    fn unusable(
        &mut self,
        agent: &Name,
        written: Option<keys::Unusable<'_>>,
        by: &RouteBy,
    ) -> Unusable {
        let written = written.unwrap_or_else(keys::Unusable::empty);
        let otherwise = by.usual_fallback();
        let to = match written.to() {
            None => otherwise,
            Some(to) => match to.text().map(|text| &**text) {
                Some("stay") => Fallback::Stay,
                Some(FINISH) => Fallback::Finish,
                _ => self.led_to(agent, &to).map_or(otherwise, Fallback::Member),
            },
        };
        Unusable {
            retries: written.retries().value,
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

    fn members<'n>(
        &mut self,
        agent: &Name,
        names: impl IntoIterator<Item = kinds::Name<'n>>,
    ) -> Vec<Name> {
        let names = names.into_iter();
        names.filter_map(|name| self.led_to(agent, &name)).collect()
    }

    fn rules(
        &mut self,
        agent: &Name,
        written: Option<List<'_, keys::Rule<'_>>>,
        scope: &Scope,
    ) -> Vec<Rule> {
        let mut rules = Vec::new();
        let mut always: Option<Span> = None;
        for rule in each(written) {
            if let Some(by) = always {
                let (at, by) = (self.place(rule.0.span), self.place(by));
                self.say(Diagnostic::never_reached(at, by));
            }
            let when = rule.when();
            if when.is_none_or(|when| when.as_text().is_some_and(|text| &**text == "true")) {
                always = always.or(Some(rule.0.span));
            }
            let when = self.condition(when, scope);
            let to = match (rule.to(), rule.pick()) {
                (_, Some(pick)) => RuleTo::Pick {
                    from: self.choosable(agent, pick, scope),
                    model: rule.model().map(|model| self.model_name(Some(model))),
                },
                (Some(to), _) if to.0.as_text().is_some_and(|name| &**name == FINISH) => {
                    RuleTo::Finish
                }
                (Some(to), _) if self.ends_elsewhere(to.0) => RuleTo::Finish,
                (Some(to), _) => RuleTo::Agents(self.members(agent, to)),
                (None, None) => RuleTo::Finish,
            };
            if let (Some(model), None) = (rule.model(), rule.pick()) {
                let at = self.place(model.span);
                self.say(Diagnostic::type_key(at, "model", "a rule without `pick`"));
            }
            if let Some(when) = when {
                rules.push(Rule { when, to });
            }
        }
        if let (None, Some(last)) = (always, each(written).last()) {
            let at = self.place(last.when().map_or(last.0, |when| when.0).span);
            self.say(Diagnostic::no_last_rule(at));
        }
        rules
    }

    /// Reports a target that is the end of a graph in other frameworks, and no agent here.
    fn ends_elsewhere(&mut self, to: &Node) -> bool {
        let Some(name) = to.as_text() else {
            return false;
        };
        let ends = foreign::is_end(name) && !self.out.declared.contains_key(name);
        if ends {
            let at = self.place(to.span);
            self.say(Diagnostic::unknown_name(at, "agent", name, Some(FINISH)));
        }
        ends
    }

    /// Lowers the members that a model may pick. They need descriptions, so they are also recorded as `chosen`.
    fn choosable(
        &mut self,
        agent: &Name,
        written: List<'_, keys::Choice<'_>>,
        scope: &Scope,
    ) -> Vec<Choosable> {
        let mut from = Vec::new();
        for choice in written {
            let when = self.when(choice.when(), scope);
            let Some(what) = choice.agent() else {
                continue;
            };
            if let Some(name) = self.led_to(agent, &what) {
                let place = (agent.clone(), name.clone(), what.span);
                self.out.chosen.push(place);
                from.push(Choosable { agent: name, when });
            }
        }
        from
    }

    // ---- states ----------------------------------------------------------------------------------------------

    fn graph(
        &mut self,
        agent: &Name,
        route: keys::Route<'_>,
        written: Names<'_, keys::StateNode<'_>>,
        scope: &Scope,
    ) -> Graph {
        let states: Vec<(Name, StateNode)> = written
            .into_iter()
            .map(|(key, state)| {
                let state = self.state_node(agent, state, written.0, scope);
                (key.name.clone(), state)
            })
            .collect();
        let graph = Graph {
            start: self.first_of(route, written.0, "state"),
            states: states.into_iter().collect(),
        };
        self.opens_and_ends(written.0, &graph);
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
            let has_text = begin.is_some_and(|b| b.say.is_some());
            let opened = has_text && opens.is_some_and(|speaker| speaker.agent != person);
            if key.name == graph.start && !opened {
                let at = self.place(key.span);
                self.say(Diagnostic::nobody_opens(at, &person));
            }
        }
    }

    /// Returns the entry that `start` names, else the first entry.
    fn first_of(&mut self, route: keys::Route<'_>, entries: &Node, sort: &str) -> Name {
        let first = entries.entries().first();
        let first = first.map_or_else(|| "".into(), |(key, _)| key.name.clone());
        let Some(start) = route.start() else {
            return first;
        };
        self.entry_named(&start, entries, sort).unwrap_or(first)
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
        let near = if sort == "state" && foreign::is_end(name) {
            Some(FINISH)
        } else {
            self.sources.near(name, known())
        };
        let near = near.map(str::to_owned);
        let at = self.place(node.span);
        self.say(Diagnostic::unknown_name(at, sort, name, near.as_deref()));
        None
    }

    fn state_node(
        &mut self,
        agent: &Name,
        state: keys::StateNode<'_>,
        states: &Node,
        scope: &Scope,
    ) -> StateNode {
        let mut speakers: Vec<Speaker> = Vec::new();
        for speaker in each(state.speakers()) {
            let Some(what) = speaker.agent() else {
                continue;
            };
            let Some(name) = self.led_to(agent, &what) else {
                continue;
            };
            let role = speaker.role().and_then(|role| role.text().cloned());
            let role = role.unwrap_or_else(|| name.clone());
            if speakers.iter().any(|known| known.role == role) {
                let at = self.place(speaker.role().map_or(what.0, |role| role.0).span);
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
                instructions: self.text_of(speaker.instructions(), &of_member),
                extract: self.filled(agent, speaker.extract()),
                agent: name,
            });
        }
        let begin = state.begin();
        StateNode {
            scene: self.text_of(state.scene(), scope),
            begin: begin.and_then(|begin| self.begin(begin, &speakers, scope)),
            speakers,
            order: state.order().value,
            exits: self.exits(state.exits(), states, scope),
            view: state.view().map(|view| self.view(view, scope)),
            reset: state.reset().value == Reset::OnEntry,
        }
    }

    fn begin(
        &mut self,
        begin: keys::Begin<'_>,
        speakers: &[Speaker],
        scope: &Scope,
    ) -> Option<Begin> {
        let named = begin.speaker()?;
        let name = named.text()?;
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
            say: self.text_of(begin.say(), scope),
        })
    }

    fn exits(
        &mut self,
        written: Option<List<'_, keys::Exit<'_>>>,
        states: &Node,
        scope: &Scope,
    ) -> Vec<Exit> {
        let mut exits = Vec::new();
        for exit in each(written) {
            let to = match exit.to() {
                Some(to) if to.text().is_some_and(|name| &**name == FINISH) => Some(ExitTo::Finish),
                Some(to) => self.entry_named(&to, states, "state").map(ExitTo::State),
                None => None,
            };
            let cause = if exit.when().is_some() {
                self.when(exit.when(), scope).map(ExitCause::When)
            } else if exit.judge().is_some() {
                self.text_of(exit.judge(), scope).map(ExitCause::Judge)
            } else {
                let after = exit.after_messages().and_then(Valued::value);
                after.map(ExitCause::AfterMessages)
            };
            if let Some((cause, to)) = cause.zip(to) {
                exits.push(Exit { cause, to });
            }
        }
        exits
    }

    // ---- tasks and handoff -----------------------------------------------------------------------------------

    fn desk(
        &mut self,
        agent: &Name,
        route: keys::Route<'_>,
        written: Names<'_, keys::Task<'_>>,
        scope: &Scope,
    ) -> Desk {
        let mut tasks = Vec::new();
        for (key, task) in written {
            tasks.extend(self.task(agent, key, task, written.0, scope));
        }
        self.task_cycles(written.0, &tasks);
        let default = route.default();
        let orchestrator = route.orchestrator();
        let orchestrator = orchestrator.unwrap_or_else(keys::Orchestrator::empty);
        let model = orchestrator.model();
        Desk {
            tasks,
            default: default.and_then(|name| self.led_to(agent, &name)),
            orchestrator: Orchestrator {
                system: self.prompt(orchestrator.system(), scope),
                model: model.map(|model| self.model_name(Some(model))),
                speaks: orchestrator.speaks().value,
            },
            go_on: route.go_on().value,
            on_change: route.on_change().value,
        }
    }

    /// Reports tasks that can never begin because they wait for each other.
    fn task_cycles(&mut self, node: &Node, tasks: &[Task]) {
        let task = |name: &Name| tasks.iter().find(|task| task.name == *name);
        let mut reported: Vec<Name> = Vec::new();
        for begin in tasks {
            if reported.contains(&begin.name) {
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
                    reported.extend(path.iter().cloned());
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
        task: keys::Task<'_>,
        tasks: &Node,
        scope: &Scope,
    ) -> Option<Task> {
        let named = task.agent();
        let member = match named {
            Some(name) => self.led_to(agent, &name)?,
            None => self.led_to_key(agent, key)?,
        };
        let span = named.map_or(key.span, |name| name.span);
        self.out.chosen.push((agent.clone(), member.clone(), span));
        let after: Vec<Name> = each(task.after())
            .filter_map(|name| self.entry_named(&name, tasks, "task"))
            .collect();
        let of_member = Scope {
            agent: Some(member.clone()),
            args: Args::None,
            route: false,
            ..scope.clone()
        };
        let requires = self.requires(task.requires(), scope);
        let release = task.release().value;
        Some(Task {
            name: key.name.clone(),
            agent: member,
            after,
            done: self.when(task.done(), &of_member),
            requires,
            clear: each(task.clear())
                .filter_map(|name| self.entry_of_state(agent, name))
                .collect(),
            may_end: release.contains(&Release::Done),
            may_release: release.contains(&Release::NeedHelp),
        })
    }

    /// Resolves a state entry that a routed agent unsets, and records the write.
    fn entry_of_state(&mut self, agent: &Name, written: kinds::Name<'_>) -> Option<Name> {
        let name = written.text()?.clone();
        if !self.is_entry(&name, written.span) {
            return None;
        }
        let place = (agent.clone(), name.clone(), written.span);
        self.out.writes.push(place);
        Some(name)
    }

    /// Returns the member of a handoff that a node names. An agent or a person that is no member of it yet is reported as such.
    fn peer(&mut self, node: &Node, members: &Node) -> Option<Name> {
        let name = node.as_text()?;
        let is_member = members.entries().iter().any(|(key, _)| key.name == *name);
        let sort = self.out.declared.get(name).map(|declared| declared.sort);
        match sort {
            Some(super::Sort::Agent | super::Sort::Person) if !is_member => {
                let at = self.place(node.span);
                self.say(Diagnostic::no_member(at, name));
                None
            }
            _ => self.entry_named(node, members, "member"),
        }
    }

    fn handoff(
        &mut self,
        agent: &Name,
        route: keys::Route<'_>,
        written: Names<'_, List<'_, kinds::Name<'_>>>,
    ) -> Handoff {
        let mut to = std::collections::BTreeMap::new();
        for (key, peers) in written {
            if self.led_to_key(agent, key).is_none() {
                continue;
            }
            let peers: Vec<Name> = peers
                .into_iter()
                .filter_map(|peer| {
                    let name = self.peer(&peer, written.0)?;
                    let place = (agent.clone(), name.clone(), peer.span);
                    self.out.chosen.push(place);
                    Some(name)
                })
                .collect();
            to.insert(key.name.clone(), peers);
        }
        Handoff {
            start: self.first_of(route, written.0, "member"),
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
        for route in each(self.file.agents()).filter_map(|(_, agent)| agent.route()) {
            let tasks = each(route.tasks()).map(|(key, task)| {
                let named = task.agent().and_then(kinds::Name::text);
                named.unwrap_or(&key.name).clone()
            });
            self.out.desk.extend(tasks);
            let peers = each(route.handoff()).map(|(key, _)| key.name.clone());
            self.out.peers.extend(peers);
        }
    }
}
