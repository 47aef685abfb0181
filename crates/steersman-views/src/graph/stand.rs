//! Marks a session in the picture of its definition, from its snapshot and its log.

use super::modes::{self, MODES};
use super::of::Drawn;
use super::{At, Is};
use crate::words::{count, people};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::network::{Desk, Does, ExitCause, Network, RouteBy};
use steersman_machine::snapshot::{Agent, Phase, Snapshot};
use steersman_machine::stored::commit::{LogLine, Turned};
use steersman_machine::stored::engine::Caller;
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::stored::interaction::{Cause, Choice, Interaction, Route, Target};
use steersman_machine::tick::floor;
use steersman_machine::view::Cx;
use steersman_machine::view::View;
use steersman_runtime::pending::Pending;

/// Marks a session. `path` holds the lines of its branch up to the requested line.
pub fn stand(
    drawn: &mut Drawn,
    network: &Network,
    snapshot: &Snapshot,
    path: &[&Arc<LogLine>],
    pending: &[Pending],
    texts: &dyn Bodies,
) {
    let standing = Standing {
        network,
        snapshot,
        pending,
        texts,
        floor: snapshot.root.map(|root| floor(network, snapshot, root)),
    };
    standing.marks(drawn);
    standing.count(drawn, path);
}

struct Standing<'a> {
    network: &'a Network,
    snapshot: &'a Snapshot,
    pending: &'a [Pending],
    texts: &'a dyn Bodies,
    /// The agent that would receive the next message.
    floor: Option<Id>,
}

impl Standing<'_> {
    fn marks(&self, drawn: &mut Drawn) {
        let mut agents: Vec<&Arc<Agent>> = self.snapshot.agents.values().collect();
        agents.sort_by(|a, b| a.family.path.cmp(&b.family.path));
        let mut marks: BTreeMap<At, Vec<(Is, String)>> = BTreeMap::new();
        for agent in agents {
            let Some((at, _)) = self.place(drawn, agent.id) else {
                continue;
            };
            marks.entry(at).or_default().push(self.mark_of(agent));
            if let At::Cluster(own) = at {
                self.parts(drawn, own, agent);
            }
        }
        for (at, marks) in marks {
            let mark = drawn.graph.mark(at);
            if let [(is, text)] = &marks[..] {
                mark.add(*is, text);
                continue;
            }
            let mut sums: Vec<(Is, &str, usize)> = Vec::new();
            for (is, text) in &marks {
                match sums.iter_mut().find(|(_, other, _)| other == text) {
                    Some((_, _, many)) => *many += 1,
                    None => sums.push((*is, text, 1)),
                }
            }
            for (is, text, many) in sums {
                let text = match text {
                    "" => "at work below".to_owned(),
                    text => text.to_owned(),
                };
                mark.add(is, &format!("{many} x {text}"));
            }
        }
        for pending in self.pending.iter().filter(|pending| !pending.left) {
            self.asked(drawn, pending);
        }
    }

    /// Returns the item of an instance and the cluster around it. A speaker without a box of its own is shown by its state.
    fn place(&self, drawn: &Drawn, agent: Id) -> Option<(At, usize)> {
        let state = self.snapshot.agents.get(&agent)?;
        let inside = match state.family.parent {
            None => 0,
            Some(parent) => {
                let (at, inside) = self.place(drawn, parent)?;
                within(drawn, at, inside)
            }
        };
        let found = drawn.placed.get(&(inside, state.def.clone())).copied();
        let found = found.or_else(|| {
            // A resting agent is not the speaker of the current state.
            if state.phase == Phase::Resting {
                return None;
            }
            let above = self.snapshot.agents.get(&state.family.parent?)?;
            let at = above.routing.at.as_ref()?;
            let node = drawn.parts.get(&(inside, format!("state {at}")))?;
            Some(At::Node(*node))
        });
        found.map(|at| (at, inside))
    }

    /// Returns the mark of an agent.
    fn mark_of(&self, agent: &Agent) -> (Is, String) {
        match agent.phase {
            Phase::Thinking => (Is::Acts, "thinks".to_owned()),
            Phase::Routing => (Is::Acts, "decides".to_owned()),
            Phase::Calling => self.calls(agent),
            Phase::Resting if self.floor == Some(agent.id) => {
                (Is::Here, "has the floor".to_owned())
            }
            Phase::Resting => {
                let word = match agent.turn.ended.map(|(_, cause)| cause) {
                    None => "not asked yet",
                    Some(Cause::Failed) => "failed",
                    Some(Cause::Limit) => "a limit was reached",
                    Some(Cause::Cancelled) => "cancelled",
                    Some(Cause::Released) if self.hands_over(agent) => "handed the floor over",
                    Some(Cause::Released) => "gave the floor back",
                    Some(Cause::NoRule) => "no rule held",
                    Some(Cause::Deadlock) => "nothing was left to wait for",
                    Some(Cause::Leaf) => "could not go on dry",
                    Some(Cause::Answer | Cause::Tool | Cause::Routed | Cause::Rounds) => "ended",
                };
                (Is::Over, word.to_owned())
            }
        }
    }

    /// Returns true if an agent is a member that passes the floor to other members.
    fn hands_over(&self, agent: &Agent) -> bool {
        let above = agent.family.parent;
        let above = above.and_then(|above| self.snapshot.agents.get(&above));
        let of = above.and_then(|above| Some(&self.network.agents.get(&above.def)?.does));
        matches!(of, Some(Does::Route(route)) if matches!(route.by, RouteBy::Handoff(_)))
    }

    fn calls(&self, agent: &Agent) -> (Is, String) {
        let mut is = Is::Here;
        let mut words: Vec<String> = Vec::new();
        for open in self
            .snapshot
            .exchange(agent.id)
            .filter(|open| open.closed.is_none())
        {
            let held = self.pending.iter().find(|p| {
                p.agent.0 == agent.id && (open.effect == Some(p.effect) || open.call.id == p.effect)
            });
            let (one, word) = match (&open.call.target, held) {
                (_, Some(held)) => (Is::Waits, awaited(held)),
                (Target::Agent(_), None) => continue,
                (Target::Person(person), None) => (Is::Waits, format!("waits for {person}")),
                (Target::Wait, None) => (Is::Waits, format!("waits in {}", open.call.name)),
                (Target::Branches(_), None) => (Is::Waits, "waits for branches".to_owned()),
                (Target::Tool(_) | Target::Unknown, None) => {
                    (Is::Acts, format!("calls {}", open.call.name))
                }
            };
            is = is.max(one);
            if !words.contains(&word) {
                words.push(word);
            }
        }
        (is, words.join(", "))
    }

    /// Marks the boxes of the people who are asked.
    fn asked(&self, drawn: &mut Drawn, pending: &Pending) {
        if pending.branch != self.snapshot.branch {
            return;
        }
        let Some((at, inside)) = self.place(drawn, pending.agent.0) else {
            return;
        };
        let inside = within(drawn, at, inside);
        for by in &pending.by {
            if let Some(person) = drawn.placed.get(&(inside, by.clone())).copied() {
                drawn.graph.mark(person).add(Is::Waits, "is asked");
            }
        }
    }

    /// Marks the states and tasks of a routed agent, or the mode of an agent with modes.
    fn parts(&self, drawn: &mut Drawn, own: usize, agent: &Arc<Agent>) {
        let def = self.network.agents.get(&agent.def);
        if let Some(mode) = def.and_then(|def| def.mode(agent.mode.as_ref())) {
            mark(drawn, own, &modes::part(&mode.name), Is::Here, "in force");
        }
        let Some(Does::Route(route)) = self.network.agents.get(&agent.def).map(|def| &def.does)
        else {
            return;
        };
        let rests = agent.phase == Phase::Resting;
        match &route.by {
            RouteBy::States(_) => {
                for (name, place) in &agent.routing.places {
                    let here = agent.routing.at.as_ref() == Some(name);
                    let messages = count(u64::from(place.messages), "message");
                    let (is, text) = match here {
                        true if rests => (Is::Over, format!("ended here, {messages}")),
                        true => (Is::Here, format!("here, {messages}")),
                        false => (Is::Over, messages),
                    };
                    mark(drawn, own, &format!("state {name}"), is, &text);
                }
            }
            RouteBy::Tasks(desk) => self.tasks(drawn, own, agent, desk),
            RouteBy::Rules(_)
            | RouteBy::Sequence(_)
            | RouteBy::Native { .. }
            | RouteBy::Pick(_)
            | RouteBy::Handoff(_) => {}
        }
    }

    fn tasks(&self, drawn: &mut Drawn, own: usize, agent: &Agent, desk: &Desk) {
        let cx = Cx {
            network: self.network,
            bodies: self.texts,
        };
        let view = View::new(&cx, self.snapshot, Some(agent.id));
        for task in &desk.tasks {
            let key = format!("task {}", task.name);
            let done = match &task.done {
                None => agent.routing.done.contains(&task.name),
                // If the condition cannot be evaluated, the task is not shown as done.
                Some(done) => done.holds(&view).unwrap_or(false),
            };
            if done {
                mark(drawn, own, &key, Is::Over, "done");
            }
            if agent.routing.at.as_ref() == Some(&task.name) && agent.phase != Phase::Resting {
                mark(drawn, own, &key, Is::Here, "at work");
            }
            if agent
                .routing
                .goals
                .iter()
                .any(|(goal, _)| *goal == task.name)
            {
                mark(drawn, own, &key, Is::Goal, "wanted");
            }
        }
    }

    // ---- counts ----------------------------------------------------------------------------------------------

    /// Counts how often each arrow was taken since the session was bound to this definition.
    fn count(&self, drawn: &mut Drawn, path: &[&Arc<LogLine>]) {
        let mut walk = Walk::default();
        let mut bound = None;
        for line in path {
            let Some(commit) = &line.commit else { continue };
            if let Some(binding) = &commit.binding {
                if bound.is_some_and(|before| before != binding.source) {
                    walk.times.clear();
                }
                bound = Some(binding.source);
            }
            for push in &commit.pushes {
                if let Interaction::Call(call) = &push.what {
                    walk.calls.insert(call.id, call.name.clone());
                }
                let Some((at, inside)) = self.place(drawn, push.agent) else {
                    continue;
                };
                match (&push.what, at) {
                    (Interaction::Route(route), At::Cluster(own)) if route.refused.is_none() => {
                        self.route(&mut walk, own, push.agent, route);
                    }
                    (Interaction::Call(call), at)
                        if matches!(call.target, Target::Agent(_))
                            && within(drawn, at, inside) == inside =>
                    {
                        let by = self
                            .snapshot
                            .agents
                            .get(&push.agent)
                            .map_or("", |agent| &agent.def);
                        walk.take(inside, format!("call {by} {}", call.name));
                    }
                    (Interaction::Call(call), At::Cluster(own)) if call.by == Caller::Router => {
                        walk.step(own, push.agent);
                    }
                    (
                        Interaction::Finished {
                            cause: Cause::NoRule,
                            ..
                        },
                        At::Cluster(own),
                    ) => {
                        walk.take(own, "no rule".to_owned());
                    }
                    _ => {}
                }
            }
            // A tool that ran in this line may also have set the mode in it.
            for (agent, to, why) in commit.modes() {
                self.turned(drawn, &mut walk, agent, to, why);
            }
        }
        for (key, times) in walk.times {
            if let Some(edge) = drawn.ways.get(&key) {
                drawn.graph.edges[*edge].times = Some(times);
            }
        }
    }

    /// Counts a change of an agent's mode.
    fn turned(&self, drawn: &Drawn, walk: &mut Walk, agent: Id, to: &Name, why: &Turned) {
        let def = self.snapshot.agents.get(&agent);
        let def = def.and_then(|agent| self.network.agents.get(&agent.def));
        let first = def
            .and_then(|def| def.modes.as_ref())
            .map(|modes| modes.start.clone());
        let before = walk.at.insert(agent, to.clone()).or(first);
        let (Some((At::Cluster(own), _)), Some(before)) = (self.place(drawn, agent), before) else {
            return;
        };
        let number = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        match why {
            Turned::Exit(n, _) => walk.take(own, modes::exit_of(&before, number(*n))),
            Turned::Everywhere(n, _) => walk.take(own, modes::exit_of("", number(*n))),
            Turned::Said(call) => {
                if let Some(tool) = walk.calls.get(call).cloned() {
                    walk.take(own, modes::said_by(&before, &tool));
                }
            }
            Turned::Anew => {}
        }
    }

    fn route(&self, walk: &mut Walk, own: usize, agent: Id, route: &Route) {
        let read: Map<String, Json> = route
            .read
            .and_then(|body| serde_json::from_str(&self.texts.text(body)).ok())
            .unwrap_or_default();
        let number = |key: &str| read.get(key).and_then(Json::as_u64);
        if let Some(rule) = number("rule") {
            walk.take(own, format!("rule {rule}"));
        }
        let exit = number("exit").map(|exit| self.exit(walk, agent, exit, route.effect.is_some()));
        match &route.chosen {
            Choice::Agents(names) => {
                let Some(first) = names.first() else { return };
                let expired = read.get("expired").and_then(Json::as_str);
                let key = match expired {
                    Some(person) => format!("expired {person}"),
                    None if read.contains_key("failed") => "failed".to_owned(),
                    None if read.contains_key("unusable") => "unusable".to_owned(),
                    None => format!("member {first}"),
                };
                walk.take(own, key);
                walk.steps.insert(agent, (number("rule"), 0));
            }
            Choice::Enter { state, .. } => {
                if let Some(exit) = exit {
                    walk.take(own, exit);
                }
                walk.at.insert(agent, state.clone());
            }
            Choice::Speak { role, .. } => {
                if let Some(at) = walk.at.get(&agent).cloned() {
                    walk.take(own, format!("speak {at} {role}"));
                }
            }
            Choice::Task { task, .. } => {
                walk.take(own, format!("task {task}"));
                if let Some(before) = walk.at.insert(agent, task.clone()) {
                    walk.take(own, format!("hand {before} {task}"));
                }
            }
            Choice::Finish => walk.take(own, exit.unwrap_or_else(|| "end".to_owned())),
            Choice::Answer(_) => walk.take(own, "end".to_owned()),
            Choice::Stay | Choice::Say { .. } | Choice::Restate(_) => {}
        }
    }

    /// Returns the key of the exit that was taken. A judge numbers only the exits that it decides.
    fn exit(&self, walk: &Walk, agent: Id, number: u64, judged: bool) -> String {
        let at = walk.at.get(&agent);
        let def = self
            .snapshot
            .agents
            .get(&agent)
            .and_then(|agent| self.network.agents.get(&agent.def));
        let number = match (def.map(|def| &def.does), at) {
            (Some(Does::Route(route)), Some(at)) if judged => match &route.by {
                RouteBy::States(graph) => graph.states.get(at).and_then(|node| {
                    let exits = node.exits.iter().enumerate();
                    let mut judged =
                        exits.filter(|(_, exit)| matches!(exit.cause, ExitCause::Judge(_)));
                    let place = usize::try_from(number).ok()?.checked_sub(1)?;
                    judged.nth(place).map(|(k, _)| k as u64 + 1)
                }),
                _ => None,
            },
            _ => Some(number),
        };
        format!("exit {} {}", at.map_or("", |at| at), number.unwrap_or(0))
    }
}

/// The position of each routed agent while its decisions are counted.
#[derive(Default)]
struct Walk {
    /// Number of times that each arrow was taken, by its key in `Drawn::ways`.
    times: BTreeMap<(usize, String), u64>,
    /// The state or mode of an agent, or the member with the floor.
    at: BTreeMap<Id, Name>,
    /// The rule that was chosen, and the number of calls since.
    steps: BTreeMap<Id, (Option<u64>, usize)>,
    /// The name of the callee of each call.
    calls: BTreeMap<Id, Name>,
}

impl Walk {
    fn take(&mut self, own: usize, key: String) {
        *self.times.entry((own, key)).or_default() += 1;
    }

    /// Counts the start of a member that comes next in a sequence or in the list of a rule.
    fn step(&mut self, own: usize, agent: Id) {
        let (rule, step) = self.steps.entry(agent).or_default();
        let key = match (*rule, *step) {
            (_, 0) => "sequence".to_owned(),
            (None, k) => format!("step {k}"),
            (Some(rule), k) => format!("rule {rule} then {k}"),
        };
        *step += 1;
        self.take(own, key);
    }
}

/// Returns the cluster of the agents that an item starts: a routed agent contains them; otherwise they are next to the
/// item.
fn within(drawn: &Drawn, at: At, inside: usize) -> usize {
    match at {
        At::Cluster(own) if drawn.graph.clusters[own].by != MODES => own,
        At::Cluster(_) | At::Node(_) => inside,
    }
}

fn mark(drawn: &mut Drawn, own: usize, part: &str, is: Is, text: &str) {
    if let Some(node) = drawn.parts.get(&(own, part.to_owned())) {
        drawn.graph.mark(At::Node(*node)).add(is, text);
    }
}

/// Describes briefly the answer, event or time that an agent waits for.
fn awaited(pending: &Pending) -> String {
    use steersman_runtime::pending::PendingKind as Kind;
    let by = people(&pending.by);
    match pending.kind {
        Kind::Event => format!("waits for event {}", pending.text),
        Kind::Timer | Kind::Again => "waits for its time".to_owned(),
        Kind::Outage => format!(
            "waits for {}",
            pending.place.as_deref().unwrap_or("a place")
        ),
        Kind::Doubt => format!(
            "{} is in doubt",
            pending.tool.as_deref().unwrap_or("a call")
        ),
        Kind::Question => format!("waits for {by}"),
        kind => format!("waits for {by}: {}", kind.word()),
    }
}
