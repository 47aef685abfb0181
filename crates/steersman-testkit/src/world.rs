//! A driver with a store in memory, for tests. It holds the lines and branches of one session, offers inputs, plays the answers
//! of models and tools, and checks the invariants after each line.
//!
//! It has no epochs, no budget and no disk. It writes only the ledger entries that people need to read a trace: accepted
//! messages, holds and their ends, attempts, and the life of branches.

mod check;
mod ledger;
mod play;
mod steps;

pub use check::whole;
pub use play::{Held, Players};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use steersman_definition::expect::path;
use steersman_machine::context::{History, hooked_of};
use steersman_machine::network::Network;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::snapshot::{Phase, Snapshot};
use steersman_machine::stored::commit::{Commit, Hooked, LedgerEntry, LogLine, Text};
use steersman_machine::stored::ids::{Bodies, Body, Id, Line, Name, Time};
use steersman_machine::stored::interaction::{Cause, End, Interaction};
use steersman_machine::stored::outcome::Outcome;
use steersman_machine::stored::parts::Parts;
use steersman_machine::tick::branch::{adopted_up_to, awaited, awaits};
use steersman_machine::tick::effect::{
    BranchEnd, Fact, Known, Offered, Opened, Request, Step, Until, Wish, Work,
};
use steersman_machine::tick::history::ChatHistory;
use steersman_machine::tick::hooks::before_models;
use steersman_machine::tick::join::Stands;
use steersman_machine::tick::tick;
use steersman_machine::tick::wait::for_branches;
use steersman_machine::trace::Trace;
use steersman_machine::view::Cx;

/// A fault of the test or of the machine, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// Returns a [`Fault`] as an error.
pub fn fault<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault(text.into()))
}

/// A branch of the session.
#[derive(Debug, Clone)]
pub struct Branch {
    /// Snapshot after its last line.
    pub snapshot: Snapshot,
    /// The last line of the branch.
    pub head: Line,
    /// Label that a person gave it.
    pub label: Option<Name>,
    /// Number of the branch in an agent's fork, from 1; `None` for other branches.
    pub index: Option<u32>,
    /// True if the branch has no ticks any more.
    pub superseded: bool,
    /// The end of the branch, set while its top agent rests.
    pub ended: Option<BranchEnd>,
    /// The branch from which this one was forked.
    pub from: Option<Id>,
}

/// An outstanding effect: it was wished and has not ended.
#[derive(Debug, Clone)]
pub struct Out {
    /// The branch of the effect.
    pub branch: Id,
    /// The wish for the effect.
    pub wish: Wish,
    /// State of the effect.
    pub held: Held,
    /// The people who have approved it.
    pub approved: Vec<Name>,
}

/// State of an effect, as the ledger would know it.
#[derive(Debug, Clone)]
enum Seen {
    Started(u32),
    Unknown(u32),
    Done(Box<Outcome>),
}

/// Result of an offer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Took {
    /// The line that was written; `None` if nothing was taken.
    pub line: Option<Line>,
    /// Offers that were left, by index, and the condition that each waits for.
    pub left: Vec<(usize, Until)>,
}

/// A session in memory.
#[derive(Debug)]
pub struct World {
    /// The network of the session.
    pub network: Arc<Network>,
    /// The clock. Only [`World::advance`] and [`World::pass`] move it.
    pub now: Time,
    /// The scripts that answer for models and tools.
    pub players: Players,
    /// The trace of all lines.
    pub printed: String,
    /// The conversation that precedes the session.
    pub history: ChatHistory,
    /// True if each commit is checked; false if only speed counts.
    pub checked: bool,
    lines: Vec<LogLine>,
    /// For each line, the snapshot of its branch after it.
    after: Vec<Snapshot>,
    branches: BTreeMap<Id, Branch>,
    current: Id,
    out: BTreeMap<Id, Out>,
    /// Effects that may be able to run, oldest first: [`World::pump`] plays those that can.
    ready: VecDeque<Id>,
    /// Messages and outcomes that were left and will be offered again, with their branch.
    waiting: Vec<(Id, Offered)>,
    seen: BTreeMap<Id, Seen>,
    /// All effects that were ever wished: none may be wished twice.
    wished: BTreeSet<Id>,
    todo: VecDeque<Todo>,
    /// Ledger entries for the line that is written next.
    entries: Vec<LedgerEntry>,
    trace: Trace,
    messages: u32,
}

/// Work that follows from a line without another input.
#[derive(Debug)]
enum Todo {
    /// A request of the machine from this branch.
    Request(Id, Request),
    /// Branches may have ended: their ends are offered to the calls that wait for them.
    Ends,
    /// Offers that wait on this branch may be taken now.
    Waiting(Id),
}

impl Bodies for World {
    fn parts(&self, body: Body) -> Parts {
        match self.line(body.line()).bodies.get(body.k() as usize) {
            Some(Text::Here(text)) => Parts::One(text.text().clone()),
            Some(Text::Parts(parts)) => Parts::Several(parts.clone()),
            Some(Text::Blob { .. }) => Parts::One("[blob]".into()),
            Some(Text::Erased { .. }) | None => Parts::One("[erased]".into()),
        }
    }
}

impl History for World {
    fn pushes(&self, agent: Id, line: Line) -> (Arc<[Interaction]>, Line) {
        let commit = self.line(line).commit.as_ref();
        let pushes = commit.map_or(&[][..], |c| &c.pushes);
        let own = || pushes.iter().filter(|p| p.agent == agent);
        let prev = own().next().map_or(Line::NONE, |p| p.prev);
        (own().map(|p| p.what.clone()).collect(), prev)
    }

    fn hooked(&self, effect: Id) -> Vec<Hooked> {
        hooked_of(self.line(effect.line()).commit.as_ref(), effect)
    }
}

impl World {
    /// Returns a session that has not begun.
    pub fn new(network: Arc<Network>) -> Self {
        let main = Branch {
            snapshot: Snapshot::empty(),
            head: Line::NONE,
            label: None,
            index: None,
            superseded: false,
            ended: None,
            from: None,
        };
        Self {
            network,
            // An arbitrary fixed time, in the year that traces show.
            now: Time(1_767_225_600_000),
            players: Players::default(),
            printed: String::new(),
            history: ChatHistory::default(),
            checked: true,
            lines: Vec::new(),
            after: Vec::new(),
            branches: [(Id::MAIN, main)].into(),
            current: Id::MAIN,
            out: BTreeMap::new(),
            ready: VecDeque::new(),
            waiting: Vec::new(),
            seen: BTreeMap::new(),
            wished: BTreeSet::new(),
            todo: VecDeque::new(),
            entries: Vec::new(),
            trace: Trace::default(),
            messages: 0,
        }
    }

    // ---- reading ---------------------------------------------------------------------------------------------

    /// Returns the context that decisions read.
    pub fn cx(&self) -> Cx<'_> {
        Cx {
            network: &self.network,
            bodies: self,
        }
    }

    /// Returns a line. Panics if there is none.
    pub fn line(&self, line: Line) -> &LogLine {
        &self.lines[line.0 as usize - 1]
    }

    /// Returns all lines, oldest first.
    pub fn lines(&self) -> &[LogLine] {
        &self.lines
    }

    /// Returns the branch to which messages go.
    pub fn current(&self) -> Id {
        self.current
    }

    /// Returns a branch. Panics if there is none.
    pub fn branch(&self, branch: Id) -> &Branch {
        &self.branches[&branch]
    }

    /// Returns all branches by id.
    pub fn branches(&self) -> &BTreeMap<Id, Branch> {
        &self.branches
    }

    /// Returns the current snapshot of a branch.
    pub fn at(&self, branch: Id) -> &Snapshot {
        &self.branch(branch).snapshot
    }

    /// Returns the snapshot of a line's branch after that line; an empty one for no line.
    pub fn after(&self, line: Line) -> Snapshot {
        match line.0.checked_sub(1) {
            Some(k) => self.after[k as usize].clone(),
            None => Snapshot::empty(),
        }
    }

    /// Returns the outstanding effects of all branches.
    pub fn out(&self) -> &BTreeMap<Id, Out> {
        &self.out
    }

    /// Returns the messages and outcomes that wait to be taken, with their branch.
    pub fn waiting(&self) -> &[(Id, Offered)] {
        &self.waiting
    }

    /// Returns an agent's stack as of a snapshot, oldest first.
    pub fn stack(&self, snapshot: &Snapshot, agent: Id) -> Vec<Interaction> {
        let stack = self.stack_by_line(snapshot, agent).into_iter();
        stack.map(|(_, interaction)| interaction).collect()
    }

    /// Returns an agent's stack as of a snapshot, oldest first, each interaction with its line.
    pub(crate) fn stack_by_line(&self, snapshot: &Snapshot, agent: Id) -> Vec<(Line, Interaction)> {
        let agent = snapshot.agent(agent);
        let (mut at, mut stack) = (agent.stack.last, Vec::new());
        while at.is_some() {
            let (pushes, prev) = self.pushes(agent.id, at);
            stack.extend(pushes.iter().rev().map(|pushed| (at, pushed.clone())));
            at = prev;
        }
        stack.reverse();
        stack.truncate(agent.stack.height as usize);
        stack
    }

    /// Returns the first agent with this name or path on a branch.
    pub fn agent(&self, branch: Id, name: &str) -> Option<Id> {
        let snapshot = self.at(branch);
        let agents = snapshot.agents.values();
        let mut found = agents.filter(|a| {
            *a.def == *name
                || a.family.named.as_deref() == Some(name)
                || path(snapshot, a.id) == name
        });
        found.next().map(|a| a.id)
    }

    // ---- the loop --------------------------------------------------------------------------------------------

    /// Offers inputs to a branch, together with those that wait in its inbox, and writes the line. Then does everything that
    /// follows without another input: opens branches, offers ends of branches and messages that can be taken now.
    pub fn offer(&mut self, branch: Id, offered: Vec<Offered>) -> Result<Took, Fault> {
        let took = self.offer_once(branch, offered)?;
        self.follow()?;
        Ok(took)
    }

    fn offer_once(&mut self, branch: Id, offered: Vec<Offered>) -> Result<Took, Fault> {
        let at = self.branch(branch);
        if at.superseded {
            return fault(format!("branch {branch} is superseded and has no ticks"));
        }
        let (before, prev) = (at.snapshot.clone(), at.head);
        let offered = self.with_waiting(branch, offered);
        let (places, offers): (Vec<Option<usize>>, Vec<Offered>) = offered.into_iter().unzip();
        let mut took = self.tick(before, prev, &offers)?;
        for (index, until) in &took.left {
            let offer = &offers[*index];
            if !gone(until) && matches!(offer, Offered::Message(_) | Offered::Outcome { .. }) {
                self.waiting.push((branch, offer.clone()));
            }
        }
        // Report only what was offered in this call.
        took.left = took
            .left
            .iter()
            .filter_map(|(index, until)| Some((places[*index]?, until.clone())))
            .collect();
        Ok(took)
    }

    /// Merges the new offers (with their index) and the waiting ones (without) in the order of their kinds. Within a kind, older
    /// offers come before newer ones.
    fn with_waiting(&mut self, branch: Id, offered: Vec<Offered>) -> Vec<(Option<usize>, Offered)> {
        let (waited, others) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(b, _)| *b == branch);
        self.waiting = others;
        let waited: Vec<(Id, Offered)> = waited;
        let new = offered.into_iter().enumerate().map(|(i, o)| (Some(i), o));
        let mut all: Vec<(Option<usize>, Offered)> = waited
            .into_iter()
            .map(|(_, o)| (None, o))
            .chain(new)
            .collect();
        all.sort_by_key(|(_, offer)| offer.kind());
        all
    }

    /// Opens a branch at a commit of another branch.
    pub(crate) fn open(&mut self, at: Line, opened: Opened) -> Result<Id, Fault> {
        let before = self.after(at);
        let say = opened.say.clone();
        let took = self.tick(before, at, &[Offered::Opened(opened)])?;
        let Some(line) = took.line else {
            return fault(format!("the branch was not opened: {:?}", took.left));
        };
        let branch = self.line(line).branch;
        if let (Some(said), false) = (say, took.left.is_empty()) {
            self.waiting.push((branch, Offered::Message(said)));
        }
        Ok(branch)
    }

    /// Runs one tick and writes its line.
    fn tick(&mut self, before: Snapshot, prev: Line, offered: &[Offered]) -> Result<Took, Fault> {
        let n = Line(self.lines.len() as u64 + 1);
        let mut step = tick(&self.cx(), before.clone(), n, self.now, offered);
        before_models(&self.cx(), self, n, &mut step);
        if self.checked {
            let mut again = tick(&self.cx(), before.clone(), n, self.now, offered);
            before_models(&self.cx(), self, n, &mut again);
            if (&again.commit, &again.bodies) != (&step.commit, &step.bodies) {
                return fault(format!("line {n}: the same tick gave another commit"));
            }
        }
        let Step {
            commit,
            bodies,
            snapshot,
            wishes,
            stop,
            requests,
            left,
            ended,
            contents: _,
            made: _,
        } = step;
        if commit.is_none() {
            if snapshot != before {
                return fault(format!(
                    "line {n}: nothing was taken, yet the snapshot changed"
                ));
            }
            return Ok(Took { line: None, left });
        }
        let branch = snapshot.branch;
        let mut line = LogLine {
            n,
            at: self.now,
            prev,
            branch,
            commit,
            ledger: Vec::new(),
            bodies,
        };
        let folded = fold(before, &line);
        if folded != snapshot {
            let what = check::difference(&folded, &snapshot);
            return fault(format!("line {n}: fold and machine differ: {what}"));
        }
        line.ledger.append(&mut self.entries);
        self.ledger(
            &mut line,
            offered,
            &left,
            &wishes,
            &requests,
            ended.as_ref(),
        );
        let entry = Branch {
            snapshot: snapshot.clone(),
            head: n,
            label: None,
            index: None,
            superseded: false,
            ended: None,
            from: prev.0.checked_sub(1).map(|k| self.lines[k as usize].branch),
        };
        let held = self.branches.entry(branch).or_insert(entry);
        held.snapshot = snapshot.clone();
        held.head = n;
        let opening = line.commit.as_ref().and_then(|c| c.opening.as_ref());
        let opens = opening.is_some();
        let adopts = line.commit.as_ref().is_some_and(|c| c.adoption.is_some());
        if let Some(opening) = opening {
            held.label.clone_from(&opening.label);
            held.index = opening.of.map(|(index, _)| index);
        }
        // A commit that moves another agent leaves an ended branch ended.
        let rests =
            |id| snapshot.agent(id).stack.last != n && snapshot.agent(id).phase == Phase::Resting;
        let unmoved = snapshot.top().is_some_and(rests);
        if ended.is_some() || !unmoved {
            held.ended.clone_from(&ended);
        }
        let waits = !snapshot.waits.is_empty();
        self.lines.push(line);
        self.after.push(snapshot);
        self.take_wishes(branch, wishes, &stop)?;
        self.print(n);
        if self.checked {
            check::line(self, n)?;
        }
        for request in requests {
            self.todo.push_back(Todo::Request(branch, request));
        }
        if ended.is_some() || opens || adopts || waits {
            self.todo.push_back(Todo::Ends);
        }
        self.todo.push_back(Todo::Waiting(branch));
        Ok(Took {
            line: Some(n),
            left,
        })
    }

    /// Writes a line without a commit.
    pub(crate) fn ledger_line(&mut self, branch: Id, ledger: Vec<LedgerEntry>) {
        self.own_line(branch, None, ledger);
    }

    /// Writes a line that no tick made.
    fn own_line(&mut self, branch: Id, commit: Option<Commit>, ledger: Vec<LedgerEntry>) {
        let n = Line(self.lines.len() as u64 + 1);
        let at = self.branches.get_mut(&branch).expect("there is the branch");
        let line = LogLine {
            n,
            at: self.now,
            prev: at.head,
            branch,
            commit,
            ledger,
            bodies: Vec::new(),
        };
        at.head = n;
        at.snapshot = fold(at.snapshot.clone(), &line);
        self.after.push(at.snapshot.clone());
        self.lines.push(line);
        self.print(n);
    }

    fn print(&mut self, n: Line) {
        let mut trace = std::mem::take(&mut self.trace);
        let printed = trace.line(self.line(n), self, None);
        self.printed.push_str(&printed);
        self.trace = trace;
    }

    /// Adds new wishes to the outstanding effects, and removes those that the snapshot no longer holds.
    fn take_wishes(&mut self, branch: Id, wishes: Vec<Wish>, stop: &[Id]) -> Result<(), Fault> {
        for wish in wishes {
            // A wait of several parts is wished again under the same id for the parts that are left.
            let goes_on = self.out.contains_key(&wish.id)
                && matches!(wish.work, Work::Event { .. } | Work::Timer);
            if !self.wished.insert(wish.id) && !goes_on {
                return fault(format!("effect {} is wished twice", wish.id));
            }
            self.ready.push_back(wish.id);
            let held = Held::of(&wish);
            let id = wish.id;
            let approved = Vec::new();
            let out = Out {
                branch,
                wish,
                held,
                approved,
            };
            self.out.insert(id, out);
        }
        let effects = &self.branches[&branch].snapshot.effects;
        let gone: Vec<Id> = self
            .out
            .iter()
            .filter(|(id, out)| out.branch == branch && !effects.contains_key(*id))
            .map(|(id, _)| *id)
            .collect();
        for id in stop {
            if effects.contains_key(id) {
                return fault(format!("effect {id} is to be stopped and is still out"));
            }
        }
        for id in gone {
            self.out.remove(&id);
        }
        Ok(())
    }

    /// Does the work that follows from lines without another input.
    pub(crate) fn follow(&mut self) -> Result<(), Fault> {
        while let Some(todo) = self.todo.pop_front() {
            match todo {
                Todo::Request(branch, request) => self.request(branch, request)?,
                Todo::Ends => self.ends()?,
                Todo::Waiting(branch) => {
                    let waits = self.waiting.iter().any(|(b, _)| *b == branch);
                    if waits && !self.branch(branch).superseded {
                        self.offer_once(branch, Vec::new())?;
                    }
                }
            }
        }
        Ok(())
    }

    fn request(&mut self, on: Id, request: Request) -> Result<(), Fault> {
        match request {
            Request::Open {
                branch,
                scope,
                call,
                index,
                of,
                say: _,
                dry,
            } => {
                let at = self.branch(on).head;
                let opened = Opened {
                    rewound: false,
                    scope: Some(scope),
                    dry,
                    label: None,
                    fork: Some((scope, call, index, of)),
                    say: None,
                    known: self.known(self.at(on)),
                    ..Opened::default()
                };
                let at = self.fork_line(on, scope, call).unwrap_or(at);
                let opened = self.open(at, opened)?;
                if opened != branch {
                    return fault(format!(
                        "branch {branch} was asked for, {opened} was opened"
                    ));
                }
            }
            Request::Adopt { call, branch, at } => {
                self.adopt_into(on, Some(call), branch, at)?;
            }
            Request::Supersede { branches } => {
                for branch in branches {
                    let waits = |(id, b): (&Id, &Branch)| {
                        *id != on && !b.superseded && awaits(&b.snapshot, branch)
                    };
                    if !self.branches.iter().any(waits) {
                        self.supersede(branch);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the line in which a fork call began.
    fn fork_line(&self, on: Id, owner: Id, call: Id) -> Option<Line> {
        let mut at = self.branch(on).head;
        while at.is_some() {
            let line = self.line(at);
            let began = line
                .commit
                .as_ref()
                .is_some_and(|c| c.calls.iter().any(|b| (b.agent, b.call) == (owner, call)));
            if began {
                return Some(at);
            }
            at = line.prev;
        }
        None
    }

    fn supersede(&mut self, branch: Id) {
        if let Some(held) = self.branches.get_mut(&branch) {
            held.superseded = true;
        }
        self.out.retain(|_, out| out.branch != branch);
    }

    /// Offers the ends of branches to the calls that wait for them.
    fn ends(&mut self) -> Result<(), Fault> {
        let live: Vec<Id> = self
            .branches
            .iter()
            .filter(|(_, b)| !b.superseded)
            .map(|(id, _)| *id)
            .collect();
        for branch in live {
            for waits in awaited(&self.cx(), self.at(branch)) {
                let ends: Vec<BranchEnd> = waits
                    .branches
                    .iter()
                    .filter_map(|b| self.end_of(*b))
                    .collect();
                if Stands::of(&waits.on, waits.branches.len(), &ends) != Stands::Open {
                    let call = waits.call;
                    self.offer_once(branch, vec![Offered::Ended { call, ends }])?;
                }
            }
            for waits in for_branches(&self.cx(), self.at(branch)) {
                let forked = self.branches.iter();
                let forked = forked
                    .filter(|(_, b)| b.from == Some(branch) && !b.superseded)
                    .map(|(id, _)| (*id, self.end_of(*id).is_some()));
                let forked: Vec<(Id, bool)> = forked.collect();
                if let Some(met) = waits.met(&forked) {
                    let ends = met.iter().filter_map(|b| self.end_of(*b)).collect();
                    let call = waits.call;
                    self.offer_once(branch, vec![Offered::Ended { call, ends }])?;
                }
            }
        }
        Ok(())
    }

    /// Returns the end of a branch. A branch that was superseded before its end counts as cancelled.
    fn end_of(&self, branch: Id) -> Option<BranchEnd> {
        let held = self.branches.get(&branch)?;
        held.ended.clone().or_else(|| {
            held.superseded.then(|| BranchEnd {
                branch,
                label: held.label.clone(),
                at: held.head,
                answer: None,
                end: End::Task,
                cause: Cause::Cancelled,
            })
        })
    }

    /// Adopts a branch up to its first simulated effect.
    pub(crate) fn adopt_into(
        &mut self,
        target: Id,
        call: Option<(Id, Id)>,
        branch: Id,
        end: Line,
    ) -> Result<Took, Fault> {
        let end = self.after(end);
        let at = adopted_up_to(&end, |line| {
            let mut at = self.line(line).prev;
            while self.line(at).commit.is_none() {
                at = self.line(at).prev;
            }
            at
        });
        let from = self.after(at);
        let known = self.known(&from);
        let offer = Offered::Adopt {
            call,
            branch,
            at: from.line,
            from: Box::new(from),
            known,
        };
        self.offer_once(target, vec![offer])
    }

    /// Returns the ledger's knowledge of the outstanding effects of a snapshot.
    pub(crate) fn known(&self, snapshot: &Snapshot) -> Known {
        let fact = |id: &Id| match self.seen.get(id) {
            None => Fact::NeverStarted,
            Some(Seen::Started(_) | Seen::Unknown(_)) => Fact::Unknown,
            Some(Seen::Done(outcome)) => Fact::Done(outcome.clone()),
        };
        snapshot.effects.keys().map(|id| (*id, fact(id))).collect()
    }
}

/// Returns true if a left offer will never be taken.
fn gone(until: &Until) -> bool {
    match until {
        Until::Stale | Until::Refused(_) => true,
        Until::Exchange(_) | Until::Answered(_) | Until::Again => false,
    }
}
