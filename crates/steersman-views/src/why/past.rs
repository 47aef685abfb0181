//! An index of a log: pushes, the calls of effects, and results.

use crate::log::Log;
use crate::texts::Texts;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::network::{Network, Source};
use steersman_machine::stored::commit::{Admitted, LedgerEntry, LogLine, Push, Want};
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::stored::interaction::{Call, CallResult, End, Interaction, Origin};

/// The position of a push: its line, and its index in the line.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub(super) line: Line,
    pub(super) k: usize,
}

/// An effect that was wished.
#[derive(Copy, Clone, Debug)]
pub(super) struct Wish {
    pub(super) line: Line,
    pub(super) agent: Id,
    pub(super) what: Want,
}

/// An indexed log.
pub struct Past<'a> {
    log: &'a Log,
    lines: BTreeMap<Line, &'a Arc<LogLine>>,
    agents: BTreeMap<Id, (Name, Option<Name>, Option<Id>)>,
    calls: BTreeMap<Id, Place>,
    results: BTreeMap<Id, Place>,
    wishes: BTreeMap<Id, Wish>,
    /// The effects of a call, in the order in which they were wished.
    of_call: BTreeMap<Id, Vec<Id>>,
    /// The interaction that each outcome of a model call became.
    answers: BTreeMap<Id, Place>,
    ledger: BTreeMap<Id, Vec<(Line, &'a LedgerEntry)>>,
    /// Definitions by the line that bound them.
    bound: BTreeMap<Line, Arc<Network>>,
}

impl<'a> Past<'a> {
    /// Indexes a log. `bound` holds the definitions that its lines ran under.
    pub fn new(log: &'a Log, bound: BTreeMap<Line, Arc<Network>>) -> Self {
        let mut past = Self {
            log,
            lines: BTreeMap::new(),
            agents: BTreeMap::new(),
            calls: BTreeMap::new(),
            results: BTreeMap::new(),
            wishes: BTreeMap::new(),
            of_call: BTreeMap::new(),
            answers: BTreeMap::new(),
            ledger: BTreeMap::new(),
            bound,
        };
        for line in &log.lines {
            past.learn(line);
        }
        past
    }

    fn learn(&mut self, line: &'a Arc<LogLine>) {
        self.lines.insert(line.n, line);
        for entry in &line.ledger {
            if let Some(effect) = super::effect_of(entry) {
                self.ledger.entry(effect).or_default().push((line.n, entry));
            }
        }
        let Some(commit) = &line.commit else { return };
        for made in &commit.made {
            let known = (made.def.clone(), made.named.clone(), made.parent);
            self.agents.insert(made.agent, known);
        }
        for wished in &commit.wished {
            if let Some(call) = wished.what.call() {
                self.of_call.entry(call).or_default().push(wished.id);
            }
            self.wishes.insert(
                wished.id,
                Wish {
                    line: line.n,
                    agent: wished.agent,
                    what: wished.what,
                },
            );
        }
        let outcomes = commit.admitted.iter();
        let outcomes = outcomes
            .filter(|a| a.kind == Admitted::Outcome)
            .filter_map(|a| a.id);
        let outcomes: Vec<Id> = outcomes.collect();
        for (k, push) in commit.pushes.iter().enumerate() {
            let place = Place { line: line.n, k };
            match &push.what {
                Interaction::Call(call) => {
                    self.calls.insert(call.id, place);
                }
                Interaction::Result(result) => {
                    self.results.insert(result.call, place);
                }
                Interaction::AssistantMessage { effect, .. } => {
                    self.answers.insert(*effect, place);
                }
                Interaction::Route(route) => {
                    if let Some(effect) = route.effect {
                        self.answers.insert(effect, place);
                    }
                }
                // A model call failed, and so ended the turn or task of its agent.
                Interaction::Finished { .. } => {
                    let own = |effect: &&Id| {
                        self.wishes
                            .get(effect)
                            .is_some_and(|w| w.agent == push.agent && w.what == Want::Step)
                    };
                    if let Some(effect) = outcomes.iter().find(own) {
                        self.answers.entry(*effect).or_insert(place);
                    }
                }
                Interaction::UserMessage { .. }
                | Interaction::Summary(_)
                | Interaction::Earlier(_) => {}
            }
        }
    }

    pub(super) fn texts(&self) -> &Texts {
        &self.log.texts
    }

    pub(super) fn push(&self, place: Place) -> Option<&'a Push> {
        self.lines
            .get(&place.line)?
            .commit
            .as_ref()?
            .pushes
            .get(place.k)
    }

    /// Returns the previous push on the same stack. Following these pushes gives the whole stack, also across branches.
    pub(super) fn before(&self, place: Place) -> Option<Place> {
        let push = self.push(place)?;
        let pushes = &self.lines.get(&place.line)?.commit.as_ref()?.pushes;
        let own = |p: &Push| p.agent == push.agent;
        if let Some(k) = pushes[..place.k].iter().rposition(own) {
            return Some(Place {
                line: place.line,
                k,
            });
        }
        self.top(push.agent, push.prev)
    }

    fn top(&self, agent: Id, line: Line) -> Option<Place> {
        let pushes = &self.lines.get(&line)?.commit.as_ref()?.pushes;
        let k = pushes.iter().rposition(|p| p.agent == agent)?;
        Some(Place { line, k })
    }

    /// Returns the newest act of an agent among these lines.
    pub fn newest(&self, agent: Id, path: &[&Arc<LogLine>]) -> Option<super::Act> {
        self.newest_that(path, |act| self.actor(act) == Some(agent))
    }

    /// Returns the newest act among these lines of an agent with this name: its own, or that of its definition. If no agent has
    /// it, the newest call of a tool of this name.
    pub fn newest_of(&self, name: &str, path: &[&Arc<LogLine>]) -> Option<super::Act> {
        let is_named = |agent: Id| {
            let (def, named, _) = self.agents.get(&agent)?;
            Some(**def == *name || named.as_ref().is_some_and(|named| **named == *name))
        };
        let by_agent = |act| self.actor(act).and_then(is_named) == Some(true);
        self.newest_that(path, by_agent)
            .or_else(|| self.newest_that(path, |act| self.calls_for(act, name)))
    }

    fn newest_that(
        &self,
        path: &[&Arc<LogLine>],
        wanted: impl Fn(super::Act) -> bool,
    ) -> Option<super::Act> {
        let mut lines = path.iter().rev();
        lines.find_map(|line| {
            let acts = self.acts(line).into_iter();
            acts.rev().find(|act| wanted(*act))
        })
    }

    /// Returns the agent that acted.
    fn actor(&self, act: super::Act) -> Option<Id> {
        match act {
            super::Act::Push(place) => self.push(place).map(|push| push.agent),
            super::Act::Asked(effect) => self.wishes.get(&effect).map(|wish| wish.agent),
        }
    }

    /// Returns the top of an agent's stack when a model was asked for it.
    pub(super) fn last_before(&self, effect: Id) -> Option<Place> {
        let wish = self.wishes.get(&effect)?;
        let mut line = self.lines.get(&wish.line)?;
        loop {
            if let Some(place) = self.top(wish.agent, line.n) {
                return Some(place);
            }
            let before = line
                .commit
                .as_ref()
                .map_or(line.prev, |commit| commit.parent);
            line = self.lines.get(&before)?;
        }
    }

    /// Returns the newest call by an agent of a tool that sends messages, at this line or before on its branch. It is taken as the
    /// call that sent the message.
    pub(super) fn sent(&self, sender: Id, upto: Line) -> Option<Place> {
        let tools = &self.network(upto)?.tools;
        let sends = |call: &Call| {
            let tool = tools.get(&call.name);
            tool.is_some_and(|tool| matches!(tool.source, Source::Send(_)))
        };
        self.last_push(upto, Line::NONE, |push| {
            push.agent == sender && matches!(&push.what, Interaction::Call(call) if sends(call))
        })
    }

    /// Returns the newest interaction that is wanted, in the lines from `upto` back to the one after `behind`, along the branch.
    fn last_push(&self, upto: Line, behind: Line, wanted: impl Fn(&Push) -> bool) -> Option<Place> {
        let mut n = upto;
        while n > behind {
            let line = self.lines.get(&n)?;
            let commit = line.commit.as_ref();
            let pushes = commit.map_or(&[][..], |commit| &commit.pushes);
            if let Some(k) = pushes.iter().rposition(&wanted) {
                return Some(Place { line: n, k });
            }
            n = commit.map_or(line.prev, |commit| commit.parent);
        }
        None
    }

    /// Returns the newest message from outside to this agent, or to one that it started, between two places. The search goes back
    /// along the branch.
    pub(super) fn words(&self, agent: Id, behind: Place, upto: Place) -> Option<Place> {
        self.last_push(upto.line, behind.line, |push| {
            matches!(
                push.what,
                Interaction::UserMessage {
                    from: Origin::Outside(_),
                    ..
                }
            ) && self.is_below(push.agent, agent)
        })
    }

    /// Returns true if an agent is this one, or was started by it, directly or indirectly.
    fn is_below(&self, agent: Id, above: Id) -> bool {
        let mut at = Some(agent);
        while let Some(agent) = at {
            if agent == above {
                return true;
            }
            at = self.agents.get(&agent).and_then(|(_, _, parent)| *parent);
        }
        false
    }

    pub(super) fn call_at(&self, place: Place) -> Option<&'a Call> {
        match &self.push(place)?.what {
            Interaction::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Returns true if a router made this call.
    pub(super) fn is_routed(&self, call: Place) -> bool {
        let mut at = self.before(call);
        while let Some(place) = at {
            match self.push(place).map(|push| &push.what) {
                Some(Interaction::Route(_)) => return true,
                Some(Interaction::AssistantMessage { .. }) | None => return false,
                Some(_) => at = self.before(place),
            }
        }
        false
    }

    /// Returns true if an act is a call of this tool or agent.
    pub fn calls_for(&self, act: super::Act, name: &str) -> bool {
        let super::Act::Push(place) = act else {
            return false;
        };
        matches!(self.push(place).map(|push| &push.what), Some(Interaction::Call(call))
            if *call.name == *name || call.seen.as_deref() == Some(name))
    }

    /// Returns true if the log made an agent with this id.
    pub fn knows_agent(&self, id: Id) -> bool {
        self.agents.contains_key(&id)
    }

    pub(super) fn agent(&self, id: Id) -> String {
        match self.agents.get(&id) {
            Some((def, named, _)) => named.as_ref().unwrap_or(def).to_string(),
            None => id.to_string(),
        }
    }

    pub(super) fn def(&self, id: Id) -> Option<&Name> {
        self.agents.get(&id).map(|(def, ..)| def)
    }

    pub(super) fn is_root(&self, id: Id) -> bool {
        self.agents
            .get(&id)
            .is_none_or(|(_, _, parent)| parent.is_none())
    }

    /// Returns the push of a call.
    pub fn call(&self, id: Id) -> Option<Place> {
        self.calls.get(&id).copied()
    }

    pub(super) fn wished(&self, effect: Id) -> Option<Wish> {
        self.wishes.get(&effect).copied()
    }

    pub(super) fn answered(&self, effect: Id) -> Option<Place> {
        self.answers.get(&effect).copied()
    }

    pub(super) fn effects_of(&self, call: &Call) -> &[Id] {
        self.of_call.get(&call.id).map_or(&[], |effects| effects)
    }

    pub(super) fn result_of(&self, call: &Call) -> Option<(Line, &'a CallResult)> {
        let place = *self.results.get(&call.id)?;
        match &self.push(place)?.what {
            Interaction::Result(result) => Some((place.line, result)),
            _ => None,
        }
    }

    /// Returns the line in which an agent ended its newest turn, if it serves this call and nothing came after that turn.
    pub(super) fn rests_in(&self, agent: Id, call: Id) -> Option<Line> {
        let newest = self.lines.keys().rev();
        let newest = newest.copied().find_map(|line| self.top(agent, line))?;
        let Interaction::Finished { end: End::Turn, .. } = self.push(newest)?.what else {
            return None;
        };
        let mut at = Some(newest);
        while let Some(place) = at {
            if let Interaction::UserMessage {
                from: Origin::Call(served),
                ..
            } = self.push(place)?.what
            {
                return (served == call).then_some(newest.line);
            }
            at = self.before(place);
        }
        None
    }

    pub(super) fn ledger(&self, effect: Id) -> &[(Line, &'a LedgerEntry)] {
        self.ledger.get(&effect).map_or(&[], |entries| entries)
    }

    /// Returns what is wanted of the newest entry of the ledger about an effect, with its line and effect.
    pub(super) fn newest_entry<A, B, C>(
        &self,
        wanted: impl Fn(Id, &'a LedgerEntry) -> Option<(A, B, C)>,
    ) -> Option<(Line, Id, A, B, C)> {
        let of_effect = |(effect, entries): (&Id, &Vec<(Line, &'a LedgerEntry)>)| {
            let mut newest = entries.iter().rev();
            newest.find_map(|&(line, entry)| {
                let (a, b, c) = wanted(*effect, entry)?;
                Some((line, *effect, a, b, c))
            })
        };
        let newest = self.ledger.iter().filter_map(of_effect);
        newest.max_by_key(|(line, effect, ..)| (*line, *effect))
    }

    /// Returns the time of a line, in milliseconds since 1970.
    pub(super) fn time(&self, line: Line) -> i64 {
        self.line(line).map_or(0, |line| line.at.0)
    }

    pub(super) fn line(&self, line: Line) -> Option<&'a Arc<LogLine>> {
        self.lines.get(&line).copied()
    }

    /// Returns the definition that a line ran under, by following its branch back to the newest binding.
    pub(super) fn network(&self, line: Line) -> Option<&Network> {
        let mut at = self.lines.get(&line)?;
        loop {
            if let Some(network) = self.bound.get(&at.n) {
                return Some(network);
            }
            let before = at.commit.as_ref().map_or(at.prev, |commit| commit.parent);
            at = self.lines.get(&before)?;
        }
    }
}
