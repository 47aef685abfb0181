//! Makes the picture of a network.

use super::facts::{self, always, flat, when};
use super::{At, Cluster, Edge, Fact, Graph, Kind, Mark, Node, What};
use crate::words::count;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use steersman_machine::network::{
    AgentDef, Choosable, Desk, Does, Exit, ExitCause, ExitTo, Fallback, GoOn, Graph as States,
    Handoff, Network, Offer, OnChange, OnFailed, Order, Route, RouteBy, Rule, RuleTo, Speaker,
    StateNode, Task, ToolUse,
};
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::Expr;

/// A picture, with indices that map the acts of a session to its items.
pub struct Drawn {
    /// The picture without marks of a session.
    pub graph: Graph,
    /// Agents and people by cluster and name.
    pub(super) placed: BTreeMap<(usize, Name), At>,
    /// Edges by cluster and key: `rule 2`, `exit talk 1`, `task pay`, `member a`, `hand a b`, `end`.
    pub(super) ways: BTreeMap<(usize, String), usize>,
    /// Nodes of states, tasks and routers by cluster and key.
    pub(super) parts: BTreeMap<(usize, String), usize>,
}

/// Draws a network.
pub fn draw(network: &Network) -> Drawn {
    let mut drawing = Drawing {
        network,
        above: Vec::new(),
        told: BTreeSet::new(),
        drawn: Drawn {
            graph: Graph {
                name: network.name.clone(),
                about: network.description.as_deref().map(flat),
                clusters: vec![Cluster {
                    name: network.name.clone(),
                    ..Cluster::default()
                }],
                ..Graph::default()
            },
            placed: BTreeMap::new(),
            ways: BTreeMap::new(),
            parts: BTreeMap::new(),
        },
    };
    drawing.whole();
    drawing.drawn
}

pub(super) struct Drawing<'n> {
    pub(super) network: &'n Network,
    /// The routed agents around the current position, outermost first.
    above: Vec<Name>,
    /// People who are mentioned in the box of a state.
    told: BTreeSet<Name>,
    pub(super) drawn: Drawn,
}

impl<'n> Drawing<'n> {
    fn whole(&mut self) {
        let you = self.node(0, What::You, "you", String::new(), Vec::new());
        for (k, entry) in self.network.entry.iter().enumerate() {
            let to = self.place(0, entry);
            let label = match k {
                _ if self.network.entry.len() == 1 => "",
                0 => "talk to it first",
                _ => "or to it: --entry",
            };
            self.edge(you, to, Kind::Leads, label);
        }
        for (name, event) in &self.network.events {
            let Some(start) = &event.start else { continue };
            let fields: Vec<&str> = event.fields.iter().map(|(name, _)| &**name).collect();
            let facts = if fields.is_empty() {
                Vec::new()
            } else {
                vec![Fact::new("fields", fields.join(", "))]
            };
            let at = self.node(0, What::Event, name, "event".to_owned(), facts);
            if let Some(agent) = start.agent.as_ref().or(self.network.entry.first()) {
                let to = self.place(0, agent);
                self.edge(at, to, Kind::Leads, "starts a session");
            }
        }
        for (name, schedule) in &self.network.schedules {
            let facts = vec![Fact::new("times", schedule.times.rule.to_string())];
            let at = self.node(0, What::Event, name, "schedule".to_owned(), facts);
            let agent = schedule.start.agent.as_ref();
            if let Some(agent) = agent.or(self.network.entry.first()) {
                let to = self.place(0, agent);
                self.edge(at, to, Kind::Leads, "starts a session");
            }
        }
        // People that no agent asks: only tools name them.
        for person in self.network.people.keys() {
            let known = self.drawn.placed.keys().any(|(_, name)| name == person);
            if !known && !self.told.contains(person) {
                self.place(0, person);
            }
        }
    }

    pub(super) fn node(
        &mut self,
        inside: usize,
        what: What,
        name: &str,
        note: String,
        facts: Vec<Fact>,
    ) -> At {
        let graph = &mut self.drawn.graph;
        let at = At::Node(graph.nodes.len());
        graph.nodes.push(Node {
            what,
            name: name.to_owned(),
            note,
            facts,
            inside,
            mark: Mark::default(),
        });
        graph.clusters[inside].items.push(at);
        at
    }

    pub(super) fn edge(&mut self, from: At, to: At, kind: Kind, label: impl Into<String>) -> usize {
        let edges = &mut self.drawn.graph.edges;
        edges.push(Edge {
            from,
            to,
            kind,
            label: label.into(),
            times: None,
        });
        edges.len() - 1
    }

    /// Adds an arrow that can be found by its key, to count how often a session took it.
    pub(super) fn way(
        &mut self,
        inside: usize,
        key: String,
        from: At,
        to: At,
        kind: Kind,
        label: impl Into<String>,
    ) {
        let edge = self.edge(from, to, kind, label);
        self.drawn.ways.entry((inside, key)).or_insert(edge);
    }

    pub(super) fn part(&mut self, inside: usize, key: impl Into<String>, at: At) {
        if let At::Node(node) = at {
            self.drawn.parts.insert((inside, key.into()), node);
        }
    }

    /// Returns the item of an agent or a person in a cluster. The first call for a name draws the item.
    pub(super) fn place(&mut self, inside: usize, name: &Name) -> At {
        if let Some(at) = self.drawn.placed.get(&(inside, name.clone())) {
            return *at;
        }
        let network = self.network;
        if let Some(person) = network.people.get(name) {
            let note = facts::person_note(person);
            let at = self.node(inside, What::Person, name, note, facts::person(person));
            self.drawn.placed.insert((inside, name.clone()), at);
            if let Some(instead) = &person.instead {
                let to = self.place(inside, instead);
                self.way(
                    inside,
                    format!("expired {name}"),
                    at,
                    to,
                    Kind::Else,
                    "ran out of time",
                );
            }
            return at;
        }
        let Some(def) = network.agents.get(name) else {
            return self.node(
                inside,
                What::Again,
                name,
                "not defined".to_owned(),
                Vec::new(),
            );
        };
        match &def.does {
            Does::Route(_) if self.above.contains(name) => {
                let at = self.node(
                    inside,
                    What::Again,
                    name,
                    "drawn further up".to_owned(),
                    Vec::new(),
                );
                self.drawn.placed.insert((inside, name.clone()), at);
                at
            }
            Does::Route(route) => self.cluster(inside, def, route),
            Does::Model(_) | Does::Run { .. } => {
                let what = match def.does {
                    Does::Run { .. } => What::Plain,
                    _ => What::Agent,
                };
                let at = if let Some(modes) = &def.modes {
                    self.modes(inside, def, modes)
                } else {
                    let facts = facts::agent(network, def);
                    self.node(inside, what, name, facts::note(def), facts)
                };
                self.drawn.placed.insert((inside, name.clone()), at);
                self.below(inside, at, def);
                at
            }
        }
    }

    /// Adds arrows to the agents that an agent starts, to its judges, and to the people that it asks.
    fn below(&mut self, inside: usize, at: At, def: &'n AgentDef) {
        self.starts(inside, at, def);
        self.judges(inside, at, def);
        for (person, what) in facts::asked(self.network, def) {
            let to = self.place(inside, &person.as_str().into());
            self.edge(at, to, Kind::Calls, what);
        }
    }

    fn cluster(&mut self, inside: usize, def: &'n AgentDef, route: &'n Route) -> At {
        let own = self.cluster_in(
            inside,
            Cluster {
                name: def.name.clone(),
                by: by(&route.by).into(),
                facts: Vec::new(),
                inside: Some(inside),
                items: Vec::new(),
                mark: Mark::default(),
            },
        );
        let at = At::Cluster(own);
        self.drawn.placed.insert((inside, def.name.clone()), at);
        self.above.push(def.name.clone());
        let router = match &route.by {
            RouteBy::Rules(rules) => self.rules(own, route, rules),
            RouteBy::Sequence(members) => self.sequence(own, members),
            RouteBy::Native { version, members } => self.native(own, version, members),
            RouteBy::Pick(from) => {
                let router = self.pick(own, &route.asks.model, from, "picks");
                self.part(own, "router", router);
                router
            }
            RouteBy::States(states) => self.states(own, route, states),
            RouteBy::Tasks(desk) => self.tasks(own, route, desk),
            RouteBy::Handoff(handoff) => self.handoff(own, handoff),
        };
        self.otherwise(own, router, route);
        self.above.pop();
        at
    }

    pub(super) fn cluster_in(&mut self, inside: usize, cluster: Cluster) -> usize {
        let clusters = &mut self.drawn.graph.clusters;
        let own = clusters.len();
        clusters.push(cluster);
        clusters[inside].items.push(At::Cluster(own));
        own
    }

    /// Adds an arrow or a fact for a member that fails, and for a model without a usable answer.
    fn otherwise(&mut self, own: usize, router: At, route: &Route) {
        match &route.on_failed {
            OnFailed::Fail => {}
            OnFailed::Continue => self.say(own, "on failure", "it goes on"),
            OnFailed::To(member) => {
                let to = self.place(own, member);
                self.way(
                    own,
                    "failed".to_owned(),
                    router,
                    to,
                    Kind::Else,
                    "a member failed",
                );
            }
        }
        let unusable = &route.asks.unusable;
        let asks = !route.models().is_empty();
        let after = format!(
            "no usable answer, asked {}",
            count(u64::from(unusable.retries) + 1, "time")
        );
        match &unusable.to {
            Fallback::Member(member) if asks => {
                let to = self.seat(own, member);
                self.way(own, "unusable".to_owned(), router, to, Kind::Else, after);
            }
            Fallback::Stay if asks => self.say(own, "unusable", "it stays as it is"),
            Fallback::Finish if asks => self.say(own, "unusable", "it ends"),
            _ => {}
        }
    }

    fn say(&mut self, own: usize, word: &'static str, text: &str) {
        self.drawn.graph.clusters[own]
            .facts
            .push(Fact::new(word, text));
    }

    /// Returns the item of a member: that of its task if the task's box shows the member, otherwise its own.
    fn seat(&mut self, own: usize, member: &Name) -> At {
        match self.drawn.placed.get(&(own, member.clone())) {
            Some(at) => *at,
            None => self.place(own, member),
        }
    }

    pub(super) fn end(&mut self, own: usize) -> At {
        if let Some(node) = self.drawn.parts.get(&(own, "end".to_owned())) {
            return At::Node(*node);
        }
        let at = self.node(own, What::End, "end", String::new(), Vec::new());
        self.part(own, "end", at);
        at
    }

    pub(super) fn begin(&mut self, own: usize) -> At {
        self.node(own, What::Begin, "begin", String::new(), Vec::new())
    }

    fn rules(&mut self, own: usize, route: &'n Route, rules: &'n [Rule]) -> At {
        let router = self.node(
            own,
            What::Router,
            "first rule that holds",
            String::new(),
            Vec::new(),
        );
        self.part(own, "router", router);
        for (k, rule) in rules.iter().enumerate() {
            let number = k + 1;
            let label = if always(&rule.when) {
                format!("rule {number}: else")
            } else {
                format!("rule {number}: {}", when(&rule.when))
            };
            let key = format!("rule {number}");
            match &rule.to {
                RuleTo::Agents(members) => {
                    let mut from = router;
                    for (at, member) in members.iter().enumerate() {
                        let to = self.place(own, member);
                        if at == 0 {
                            self.way(own, key.clone(), from, to, Kind::Leads, label.clone());
                        } else {
                            let key = format!("rule {number} then {at}");
                            let label = format!("then, by rule {number}");
                            self.way(own, key, from, to, Kind::Leads, label);
                        }
                        from = to;
                    }
                }
                RuleTo::Finish => {
                    let to = self.end(own);
                    self.way(own, key, router, to, Kind::Leads, label);
                }
                RuleTo::Pick { from, model } => {
                    let model = model.as_ref().unwrap_or(&route.asks.model);
                    let to = self.pick(own, model, from, &format!("pick of rule {number}"));
                    self.way(own, key, router, to, Kind::Leads, label);
                }
            }
        }
        if !rules.iter().any(|rule| always(&rule.when)) {
            let to = self.end(own);
            self.way(
                own,
                "no rule".to_owned(),
                router,
                to,
                Kind::Else,
                "no rule holds",
            );
        }
        router
    }

    fn sequence(&mut self, own: usize, members: &[Name]) -> At {
        let begin = self.begin(own);
        let mut from = begin;
        for (k, member) in members.iter().enumerate() {
            // A member that occurs twice is still drawn once.
            let to = self.place(own, member);
            let key = match k {
                0 => "sequence".to_owned(),
                _ => format!("step {k}"),
            };
            self.way(own, key, from, to, Kind::Leads, "");
            from = to;
        }
        let end = self.end(own);
        self.way(own, "end".to_owned(), from, end, Kind::Leads, "");
        begin
    }

    fn native(&mut self, own: usize, version: &str, members: &[Name]) -> At {
        let note = format!("Rust, version {version}");
        let router = self.node(own, What::Router, "router", note, Vec::new());
        self.part(own, "router", router);
        for member in members {
            let to = self.place(own, member);
            self.way(own, format!("member {member}"), router, to, Kind::Leads, "");
        }
        let end = self.end(own);
        self.way(own, "end".to_owned(), router, end, Kind::Leads, "");
        router
    }

    fn pick(&mut self, own: usize, model: &Name, from: &'n [Choosable], name: &str) -> At {
        let router = self.node(
            own,
            What::Router,
            name,
            format!("model {model}"),
            Vec::new(),
        );
        for choosable in from {
            let to = self.place(own, &choosable.agent);
            let label = choosable
                .when
                .as_ref()
                .map_or_else(String::new, |w| format!("if {}", when(w)));
            let key = format!("member {}", choosable.agent);
            self.way(own, key, router, to, Kind::Leads, label);
        }
        let end = self.end(own);
        self.way(
            own,
            "end".to_owned(),
            router,
            end,
            Kind::Leads,
            "nothing is left",
        );
        router
    }

    fn handoff(&mut self, own: usize, handoff: &Handoff) -> At {
        let begin = self.begin(own);
        let first = self.place(own, &handoff.start);
        self.edge(begin, first, Kind::Leads, "");
        for member in handoff.to.keys() {
            self.place(own, member);
        }
        for (member, peers) in &handoff.to {
            let from = self.place(own, member);
            for peer in peers {
                let to = self.place(own, peer);
                let key = format!("hand {member} {peer}");
                self.way(own, key, from, to, Kind::Leads, "");
            }
        }
        self.say(
            own,
            "floor",
            "members hand it over along the arrows; its holder gets the next message",
        );
        begin
    }

    // ---- states ----------------------------------------------------------------------------------------------

    fn states(&mut self, own: usize, route: &'n Route, states: &'n States) -> At {
        let begin = self.begin(own);
        let mut at = BTreeMap::new();
        // The first state first, the others in the order in which exits lead to them.
        for name in reached(states) {
            let node = &states.states[name];
            let facts = self.state_facts(node);
            let to = self.node(own, What::State, name, "state".to_owned(), facts);
            self.part(own, format!("state {name}"), to);
            at.insert(name, to);
        }
        self.edge(begin, at[&states.start], Kind::Leads, "");
        for name in reached(states) {
            let (from, node) = (at[name], &states.states[name]);
            for (k, exit) in node.exits.iter().enumerate() {
                let to = match &exit.to {
                    ExitTo::State(state) => at[state],
                    ExitTo::Finish => self.end(own),
                };
                let key = format!("exit {name} {}", k + 1);
                self.way(own, key, from, to, Kind::Leads, exit_label(k, exit));
            }
            for speaker in &node.speakers {
                if self.is_plain(&speaker.agent) {
                    self.told.insert(speaker.agent.clone());
                    continue;
                }
                let to = self.place(own, &speaker.agent);
                let label = if speaker.role == speaker.agent {
                    "speaks".to_owned()
                } else {
                    format!("speaks as {}", speaker.role)
                };
                let key = format!("speak {name} {}", speaker.role);
                self.way(own, key, from, to, Kind::Calls, label);
            }
        }
        let judged = |exit: &Exit| matches!(exit.cause, ExitCause::Judge(_));
        let mut nodes = states.states.values();
        if nodes.any(|node| node.exits.iter().any(judged)) {
            self.say(own, "judge", &format!("model {}", route.asks.model));
        }
        begin
    }

    /// Returns true if a speaker has nothing to show except its name.
    fn is_plain(&self, name: &Name) -> bool {
        let Some(def) = self.network.agents.get(name) else {
            return self
                .network
                .people
                .get(name)
                .is_none_or(|person| person.instead.is_none());
        };
        let starts = match &def.does {
            Does::Model(_) if def.modes.is_some() => true,
            Does::Model(_) => def.offers().any(|used| matches!(used.of, Offer::Agent(_))),
            Does::Route(_) | Does::Run { .. } => return false,
        };
        !starts && facts::agent(self.network, def).is_empty()
    }

    fn state_facts(&self, node: &StateNode) -> Vec<Fact> {
        let mut facts = Vec::new();
        let order = match node.order {
            _ if node.speakers.len() == 1 => "speaks",
            Order::InTurn => "in turn",
            Order::Random => "at random",
            Order::ByModel => "by model",
        };
        for (k, speaker) in node.speakers.iter().enumerate() {
            let word = if k == 0 { order } else { "" };
            facts.push(Fact::new(word, self.speaker(speaker)));
        }
        if let Some(begin) = &node.begin {
            let says = begin
                .say
                .as_ref()
                .map_or_else(String::new, |say| format!(": {}", flat(&say.source)));
            facts.push(Fact::new("begins", format!("{}{says}", begin.speaker)));
        }
        if let Some(scene) = &node.scene {
            facts.push(Fact::new("scene", flat(&scene.source)));
        }
        if !node.reset {
            facts.push(Fact::new("entered", "counters are not reset"));
        }
        facts
    }

    fn speaker(&self, speaker: &Speaker) -> String {
        let role = if speaker.role == speaker.agent {
            String::new()
        } else {
            format!(" as {}", speaker.role)
        };
        let what = match (
            self.network.agents.get(&speaker.agent),
            self.network.people.get(&speaker.agent),
        ) {
            (Some(def), _) => facts::note(def),
            (None, Some(person)) => {
                let mut note = facts::person_note(person);
                for fact in facts::person(person) {
                    let _ = write!(note, ", {}", fact.text);
                }
                note
            }
            (None, None) => String::new(),
        };
        format!("{}{role} ({what})", speaker.agent)
    }

    // ---- tasks -----------------------------------------------------------------------------------------------

    fn tasks(&mut self, own: usize, route: &'n Route, desk: &'n Desk) -> At {
        let model = desk
            .orchestrator
            .model
            .as_ref()
            .unwrap_or(&route.asks.model);
        let speaks = if desk.orchestrator.speaks {
            ", may answer itself"
        } else {
            ""
        };
        let router = self.node(
            own,
            What::Router,
            "what is it about?",
            format!("model {model}{speaks}"),
            Vec::new(),
        );
        self.part(own, "router", router);
        let mut at = Vec::new();
        let tasks = in_order(&desk.tasks);
        for task in &tasks {
            let to = self.task(own, desk, task);
            at.push(to);
            self.way(
                own,
                format!("task {}", task.name),
                router,
                to,
                Kind::Leads,
                "",
            );
        }
        for (task, to) in tasks.iter().zip(&at) {
            for before in &task.after {
                if let Some(k) = tasks.iter().position(|t| t.name == *before) {
                    self.edge(at[k], *to, Kind::First, "done first");
                }
            }
        }
        if let Some(default) = &desk.default {
            let to = self.seat(own, default);
            self.way(
                own,
                format!("member {default}"),
                router,
                to,
                Kind::Leads,
                "none of the tasks",
            );
        }
        match desk.go_on {
            GoOn::Request => self.say(own, "then", "what was asked for goes on by itself"),
            GoOn::ByModel => self.say(
                own,
                "then",
                &format!("model {} says what is left", route.asks.model),
            ),
            GoOn::None => {}
        }
        match desk.on_change {
            OnChange::Switch => {}
            OnChange::Ask => self.say(own, "on change", "the user is asked"),
            OnChange::FinishFirst => {
                self.say(own, "on change", "the task at work is finished first");
            }
        }
        router
    }

    fn task(&mut self, own: usize, desk: &'n Desk, task: &'n Task) -> At {
        let mut facts = Vec::new();
        let done = task.done.as_ref().map_or_else(
            || "when its agent says so".to_owned(),
            |done: &Expr| when(done),
        );
        facts.push(Fact::new("done", done));
        facts.extend(facts::needs(task.requires.iter()));
        if !task.clear.is_empty() {
            let clear: Vec<String> = task
                .clear
                .iter()
                .map(|name| format!("state.{name}"))
                .collect();
            facts.push(Fact::new("clears", clear.join(", ")));
        }
        let network = self.network;
        let alone = desk.tasks.iter().filter(|t| t.agent == task.agent).count() == 1;
        let def = network.agents.get(&task.agent);
        let plain = |def: &AgentDef| !matches!(def.does, Does::Route(_)) && def.modes.is_none();
        let here = def.filter(|def| alone && plain(def));
        let note = match here {
            Some(def) if def.name == task.name => facts::note(def),
            Some(def) => format!("by {}, {}", def.name, facts::note(def)),
            None => "task".to_owned(),
        };
        facts.extend(here.into_iter().flat_map(|def| facts::agent(network, def)));
        let at = self.node(own, What::Task, &task.name, note, facts);
        self.part(own, format!("task {}", task.name), at);
        if let Some(def) = here {
            self.drawn.placed.insert((own, def.name.clone()), at);
            self.below(own, at, def);
        } else {
            let to = self.place(own, &task.agent);
            self.edge(at, to, Kind::Calls, "done by");
        }
        at
    }
}

/// Orders tasks so that each follows those that it waits for, and by name otherwise. A stored definition lists them by name
/// and a file in any order; both are drawn alike.
fn in_order(tasks: &[Task]) -> Vec<&Task> {
    let mut left: Vec<&Task> = tasks.iter().collect();
    left.sort_by(|a, b| a.name.cmp(&b.name));
    let mut found = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |task: &Task| {
            let first = |other: &&Task| task.after.contains(&other.name);
            left.iter().any(first)
        };
        // Tasks that wait for each other are an error of the definition, so any order will do.
        let next = left.iter().position(|task| !waits(task)).unwrap_or(0);
        found.push(left.remove(next));
    }
    found
}

/// Returns states in the order in which exits lead to them; unreachable ones last.
fn reached(states: &States) -> Vec<&Name> {
    let mut found = vec![&states.start];
    let mut next = 0;
    while let Some(name) = found.get(next).copied() {
        next += 1;
        let exits = states.states.get(name).map_or(&[][..], |node| &node.exits);
        for exit in exits {
            if let ExitTo::State(to) = &exit.to
                && !found.contains(&to)
            {
                found.push(to);
            }
        }
    }
    let others = states.states.keys();
    let others: Vec<&Name> = others.filter(|name| !found.contains(name)).collect();
    found.extend(others);
    found
}

fn exit_label(k: usize, exit: &Exit) -> String {
    let cause = match &exit.cause {
        ExitCause::When(expr) if always(expr) => "always".to_owned(),
        ExitCause::When(expr) => when(expr),
        ExitCause::Judge(words) => format!("judge: {}", flat(&words.source)),
        ExitCause::AfterMessages(most) => format!("after {}", count(u64::from(*most), "message")),
    };
    format!("exit {}: {cause}", k + 1)
}

/// Describes how an agent is started, as its caller is offered it.
pub(super) fn started_as(used: &ToolUse, name: &Name) -> String {
    let mut label = vec!["starts".to_owned()];
    if used.seen != *name {
        label.push(format!("as {}", used.seen));
    }
    if used.named {
        label.push("several, by name".to_owned());
    }
    if let Some(offered) = &used.when {
        label.push(format!("if {}", when(offered)));
    }
    let needs = facts::needs(used.requires.iter());
    label.extend(needs.into_iter().map(|need| format!("needs {}", need.text)));
    label.join(", ")
}

fn by(by: &RouteBy) -> &'static str {
    match by {
        RouteBy::Rules(_) => "rules",
        RouteBy::Sequence(_) => "sequence",
        RouteBy::Native { .. } => "Rust",
        RouteBy::Pick(_) => "pick",
        RouteBy::States(_) => "states",
        RouteBy::Tasks(_) => "tasks",
        RouteBy::Handoff(_) => "handoff",
    }
}
