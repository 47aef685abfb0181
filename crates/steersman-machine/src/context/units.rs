//! A stack as units of rendering: messages, summaries, exchanges. An exchange is never split, and a call that follows another
//! (`then:`) is shown in place of that call.

use super::History;
use super::again::Again;
use super::policies::Age;
use crate::snapshot::Uses;
use crate::stored::ids::{Body, Id, Line, Name};
use crate::stored::interaction::{Call, CallResult, Covers, Earlier, Interaction, Origin};
use crate::view::Read;
use imbl::{OrdMap, Vector};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A unit of rendering.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) what: What,
    /// Number of the agent's closed exchanges once this one is closed; 0 while it is open, and for a unit that is not an
    /// exchange.
    pub(super) closes: u32,
    /// Ages of its calls at the last rendering.
    pub(super) ages: Vec<Age>,
    /// The last rendering. `None` means that it was never rendered.
    pub(super) kept: Option<Rendered>,
    /// True if something that the last rendering depends on has changed.
    pub(super) is_due: bool,
    /// Place of its first segment, counted over all segments that were ever shown before it. It is exact behind the first unit that
    /// is shown.
    pub(super) at: u64,
}

/// Segments of a unit, and the values that their templates read.
pub(super) type Rendered = (Vec<Arc<super::Segment>>, Vec<Read>);

/// Kind and content of a unit.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// A message to the agent.
    Message { from: Origin, body: Body },
    /// A summary of the agent's scope ([`Covers::Scope`]).
    Summary(Body),
    /// An answer of the model, with its calls.
    Answer {
        text: Option<Body>,
        opaque: Option<Body>,
        calls: Vec<Chain>,
    },
    /// Calls that the engine opened.
    Engine(Vec<Chain>),
    /// A message of a conversation that was held elsewhere.
    Earlier(Earlier),
}

/// A call with the calls that followed it.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub(super) first: Call,
    /// The last call that followed.
    pub(super) last: Option<Call>,
    /// Result of the last call. `None` while the call is open.
    pub(super) result: Option<CallResult>,
    /// Number of this exchange among those with the call's tool, from 1; 0 while it is open.
    pub(super) own: u32,
}

impl Chain {
    fn open(first: Call) -> Self {
        Self {
            first,
            last: None,
            result: None,
            own: 0,
        }
    }
    fn current(&self) -> Id {
        self.last.as_ref().map_or(self.first.id, |call| call.id)
    }
}

/// State after the interaction that was read last.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
enum Tail {
    /// An answer or a call was read. Calls that follow belong to the same unit.
    Opening,
    #[default]
    Other,
}

/// The part of a stack that is shown. A clone shares the units.
#[derive(Clone, Debug, Default)]
pub(super) struct Units {
    pub(super) list: Vector<Arc<Unit>>,
    /// Number of the unit in front. Units are numbered in the order in which they were read.
    pub(super) first: u64,
    /// The units that must be looked at again.
    pub(super) again: Again,
    /// For each message the number of its newest unit.
    messages: OrdMap<Body, u64>,
    /// Messages before the boundary that the agent still has to answer. They stay in the context.
    pub(super) pinned: Vec<(Body, Rendered)>,
    /// Messages that a template leaves out, and that stay as long as the agent has to answer them.
    held: Vec<u64>,
    /// Line of the last push that was read.
    last: Line,
    /// Number of exchanges before the boundary.
    before: u32,
    exchanges: u32,
    /// Number of exchanges in which a tool was called, by tool.
    used: Uses,
    /// Tools that were called since the last exchange closed.
    opened: Vec<Name>,
    open: u32,
    tail: Tail,
}

/// The state of an agent's stack that [`Units`] needs.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) agent: Id,
    pub(super) last: Line,
    pub(super) exchanges: u32,
    pub(super) open: u32,
    /// Number of exchanges before the boundary.
    pub(super) before: u32,
    /// Number of exchanges in which a tool was called, by tool.
    pub(super) used: Uses,
}

impl Units {
    /// Reads everything that was pushed since the last call, and drops units before the boundary. If the stack is another one
    /// (after a rewind or an adoption), it is read as a whole.
    pub(super) fn follow(&mut self, history: &dyn History, head: &Head) {
        if self.last != head.last || self.before > head.before {
            match (self.before <= head.before)
                .then(|| self.since(history, head))
                .flatten()
            {
                Some(fresh) => fresh.iter().for_each(|i| self.push(i)),
                None => self.read(history, head),
            }
            self.last = head.last;
        }
        // What closes later is behind the boundary.
        if self.before != head.before {
            self.before = head.before;
            let gone = |u: &Arc<Unit>| (1..=head.before).contains(&u.closes);
            let gone = self.list.iter().rposition(gone);
            self.drop_front(gone.map_or(0, |last| last + 1));
        }
    }

    fn drop_front(&mut self, count: usize) {
        for _ in 0..count {
            let Some(unit) = self.list.pop_front() else {
                return;
            };
            let number = self.first;
            self.first += 1;
            self.again.forget(number, &unit);
            if let What::Message { body, .. } = &unit.what
                && self.messages.get(body) == Some(&number)
            {
                self.messages.remove(body);
            }
        }
    }

    /// Returns true if a message of the list has this body.
    pub(super) fn has_message(&self, body: Body) -> bool {
        self.messages.contains_key(&body)
    }

    /// Returns true if a message that a template leaves out stays for now: the agent has not answered it, or nothing was answered
    /// since. A model must have something to answer.
    pub(super) fn holds(&mut self, number: u64, unanswered: &[Body]) -> bool {
        let stays = self.stays(number, unanswered);
        if stays {
            self.held.push(number);
        }
        stays
    }

    fn stays(&self, number: u64, unanswered: &[Body]) -> bool {
        let Some(place) = self.place(number) else {
            return false;
        };
        let is_open = match &self.list[place].what {
            What::Message { body, .. } => unanswered.contains(body),
            _ => false,
        };
        is_open || !self.list.iter().skip(place).any(|unit| unit.is_exchange())
    }

    /// Looks again at the messages that stay no longer.
    pub(super) fn release(&mut self, unanswered: &[Body]) {
        for number in std::mem::take(&mut self.held) {
            if self.stays(number, unanswered) {
                self.held.push(number);
            } else if let Some(place) = self.place(number) {
                self.changing(place).is_due = true;
            }
        }
    }

    /// Returns the place of a unit in the list.
    pub(super) fn place(&self, number: u64) -> Option<usize> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        (place < self.list.len()).then_some(place)
    }

    /// Returns the number of the next unit.
    pub(super) fn next(&self) -> u64 {
        self.first + self.list.len() as u64
    }

    /// Returns the pushes after the last line that was read, oldest first. `None` means that the stack does not contain that
    /// line.
    fn since(&self, history: &dyn History, head: &Head) -> Option<Vec<Interaction>> {
        if !self.last.is_some() {
            return None;
        }
        let (mut blocks, mut at) = (Vec::new(), head.last);
        while at != self.last {
            if at < self.last {
                return None;
            }
            let (block, below) = history.pushes(head.agent, at);
            blocks.push(block);
            at = below;
        }
        Some(
            blocks
                .iter()
                .rev()
                .flat_map(|b| b.iter().cloned())
                .collect(),
        )
    }

    /// Reads from the top down to the boundary, then builds the units upward. A chain that crosses the boundary is read whole,
    /// because it is one unit.
    fn read(&mut self, history: &dyn History, head: &Head) {
        let visited = self.again.visited;
        let (mut shown, mut at) = (Vec::new(), head.last);
        let (mut open, mut exchanges) = (head.open, head.exchanges);
        let mut wanted = Vec::new();
        'down: while at.is_some() {
            let (block, below) = history.pushes(head.agent, at);
            for interaction in block.iter().rev() {
                let other_follows = shown
                    .last()
                    .is_some_and(|above: &Interaction| !above.joins_answer());
                match interaction {
                    // An answer without calls is an exchange of its own.
                    Interaction::AssistantMessage { .. } if other_follows => {
                        if exchanges <= head.before && wanted.is_empty() {
                            break 'down;
                        }
                        exchanges = exchanges.saturating_sub(1);
                    }
                    // Read downward, a result opens its call again. If no call was open, this result closed the exchange.
                    Interaction::Result(_) => {
                        if open == 0 {
                            if exchanges <= head.before && wanted.is_empty() {
                                break 'down;
                            }
                            exchanges = exchanges.saturating_sub(1);
                        }
                        open += 1;
                    }
                    Interaction::Call(call) => {
                        open = open.saturating_sub(1);
                        wanted.retain(|id| *id != call.id);
                        wanted.extend(call.chain());
                    }
                    Interaction::Earlier(Earlier::Assistant { .. }) => {
                        if exchanges <= head.before && wanted.is_empty() {
                            break 'down;
                        }
                        exchanges = exchanges.saturating_sub(1);
                    }
                    Interaction::UserMessage { .. }
                    | Interaction::AssistantMessage { .. }
                    | Interaction::Route(_)
                    | Interaction::Summary(_)
                    | Interaction::Earlier(Earlier::User(_))
                    | Interaction::Finished { .. } => {}
                }
                shown.push(interaction.clone());
            }
            at = below;
        }
        *self = Self {
            exchanges,
            ..Self::default()
        };
        self.again.visited = visited;
        shown.iter().rev().for_each(|i| self.push(i));
        // Exchanges before the boundary were not read. The snapshot's count says how many of them used the tool.
        let read = std::mem::replace(&mut self.used, head.used.clone());
        let units = self.list.iter_mut().map(Arc::make_mut);
        let chains = units.flat_map(Unit::chains);
        for chain in chains.filter(|chain| chain.own > 0) {
            let name = &chain.first.name;
            chain.own += head.used.get(name).saturating_sub(read.get(name));
        }
    }

    fn push(&mut self, interaction: &Interaction) {
        let tail = std::mem::take(&mut self.tail);
        if tail == Tail::Opening && !interaction.joins_answer() {
            self.close_bare_answer();
        }
        match interaction {
            Interaction::UserMessage { from, body } => self.unit(What::Message {
                from: from.clone(),
                body: *body,
            }),
            // Summaries of policies are not units; the snapshot says where they are shown.
            Interaction::Summary(summary) if matches!(summary.covers, Covers::Exchanges(..)) => {}
            Interaction::Summary(summary) => self.unit(What::Summary(summary.body)),
            Interaction::AssistantMessage { text, opaque, .. } => {
                self.unit(What::Answer {
                    text: *text,
                    opaque: *opaque,
                    calls: Vec::new(),
                });
                self.tail = Tail::Opening;
            }
            Interaction::Call(call) => {
                self.call(call, tail);
                self.tail = Tail::Opening;
            }
            Interaction::Result(result) => self.result(result),
            Interaction::Earlier(earlier) => {
                self.unit(What::Earlier(earlier.clone()));
                if let Earlier::Assistant { .. } = earlier {
                    self.exchanges += 1;
                    let unit = self.list.back_mut().map(Arc::make_mut);
                    unit.expect("pushed a moment ago").closes = self.exchanges;
                }
            }
            Interaction::Route(_) | Interaction::Finished { .. } => {}
        }
    }

    /// Closes an answer without calls, which is an exchange of its own.
    fn close_bare_answer(&mut self) {
        let exchanges = self.exchanges + 1;
        if let Some(unit) = self.list.back_mut().map(Arc::make_mut)
            && let What::Answer { calls, .. } = &unit.what
            && calls.is_empty()
        {
            unit.closes = exchanges;
            self.exchanges = exchanges;
        }
    }

    fn unit(&mut self, what: What) {
        let number = self.next();
        self.again.look_at(number);
        if let What::Message { body, .. } = &what {
            self.messages.insert(*body, number);
        }
        self.list.push_back(Arc::new(Unit {
            what,
            ages: Vec::new(),
            closes: 0,
            kept: None,
            is_due: true,
            at: 0,
        }));
    }

    /// Returns a unit that changes. It is looked at again.
    pub(super) fn changing(&mut self, place: usize) -> &mut Unit {
        let number = self.first + place as u64;
        let unit = Arc::make_mut(&mut self.list[place]);
        self.again.changes(number, unit);
        unit
    }

    fn call(&mut self, call: &Call, tail: Tail) {
        let joins = tail == Tail::Opening && call.state().is_none();
        let opening = joins || self.open > 0;
        self.open += 1;
        if call.chain().is_none() {
            self.opened.push(call.name.clone());
        }
        if let Some(before) = call.chain()
            && let Some((unit, n)) =
                self.find(|chain| chain.first.id == before || chain.current() == before)
        {
            unit.is_due = true;
            unit.closes = 0;
            let chain = &mut unit.chains()[n];
            chain.last = Some(call.clone());
            chain.result = None;
            return;
        }
        match self.list.back() {
            Some(unit) if opening && unit.is_exchange() => {
                let unit = self.changing(self.list.len() - 1);
                unit.is_due = true;
                unit.chains_mut().push(Chain::open(call.clone()));
            }
            _ => self.unit(What::Engine(vec![Chain::open(call.clone())])),
        }
    }

    fn result(&mut self, result: &CallResult) {
        self.open = self.open.saturating_sub(1);
        let closed = self.open == 0;
        self.exchanges += u32::from(closed);
        let exchanges = self.exchanges;
        if let Some((unit, n)) = self.find(|chain| chain.current() == result.call) {
            unit.is_due = true;
            unit.chains()[n].result = Some(result.clone());
        }
        // A call that only follows another call does not count as an exchange with its tool.
        let mut counted = BTreeMap::new();
        if closed {
            for name in std::mem::take(&mut self.opened) {
                let own = self.used.get(&name) + u32::from(!counted.contains_key(&name));
                self.used.set(name.clone(), own);
                counted.insert(name, own);
            }
        }
        // The exchange that closes is the newest one.
        if closed && let Some(newest) = self.list.iter().rposition(|u| u.is_exchange()) {
            let unit = self.changing(newest);
            unit.closes = exchanges;
            for chain in unit.chains() {
                if let Some(own) = counted.get(&chain.first.name) {
                    chain.own = *own;
                }
            }
        }
    }

    fn find(&mut self, is: impl Fn(&Chain) -> bool) -> Option<(&mut Unit, usize)> {
        let in_unit = |unit: &Unit| unit.calls().iter().position(&is);
        let mut newest_first = self.list.iter().enumerate().rev();
        let found = newest_first.find_map(|(place, unit)| Some((place, in_unit(unit)?)));
        found.map(|(place, n)| (self.changing(place), n))
    }
}

impl Unit {
    /// Returns its calls.
    pub(super) fn calls(&self) -> &[Chain] {
        match &self.what {
            What::Answer { calls, .. } | What::Engine(calls) => calls,
            What::Message { .. } | What::Summary(_) | What::Earlier(_) => &[],
        }
    }

    /// Returns the place behind its last segment.
    pub(super) fn end(&self) -> u64 {
        let segments = self.kept.as_ref().map_or(0, |(segments, _)| segments.len());
        self.at + segments as u64
    }

    fn chains(&mut self) -> &mut [Chain] {
        match &mut self.what {
            What::Answer { calls, .. } | What::Engine(calls) => calls,
            What::Message { .. } | What::Summary(_) | What::Earlier(_) => &mut [],
        }
    }

    /// Returns its calls, each with its age.
    pub(super) fn aged<'a>(&'a self, calls: &'a [Chain]) -> impl Iterator<Item = (&'a Chain, Age)> {
        let ages = self.ages.iter().copied();
        calls.iter().zip(ages.chain(std::iter::repeat(Age::Fresh)))
    }

    fn chains_mut(&mut self) -> &mut Vec<Chain> {
        match &mut self.what {
            What::Answer { calls, .. } | What::Engine(calls) => calls,
            What::Message { .. } | What::Summary(_) | What::Earlier(_) => {
                unreachable!("only exchanges have open calls")
            }
        }
    }

    fn is_exchange(&self) -> bool {
        matches!(self.what, What::Answer { .. } | What::Engine(_))
    }

    /// Returns true if one of its calls waits for its result.
    pub(super) fn is_open(&self) -> bool {
        self.calls().iter().any(|c| c.result.is_none())
    }
}
