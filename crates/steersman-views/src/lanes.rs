//! A session over time: one lane for each branch and agent, as columns.
//!
//! A timeline of ten thousand entries is drawn from these columns alone; texts are read only for the visible rows. Lines are added
//! one by one. So a program that has the lanes of the first lines of a log adds the later lines, and has the lanes of the whole.

use crate::shown;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::commit::{
    Admitted, Commit, Hold, LedgerEntry, LogLine, Release, Why,
};
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::stored::interaction::{
    Cause, Class, Earlier, How, Interaction, Origin, Target,
};
use steersman_machine::stored::words::why_word;

/// A call, a result or an end that failed, or a decision against an effect.
pub const FAILED: u16 = 1;
/// An effect that may have happened.
pub const DOUBT: u16 = 2;
/// An act of a person.
pub const BY_PERSON: u16 = 4;
/// A message that a cancel cut off.
pub const CUT_OFF: u16 = 8;
/// A call of an `unsafe` tool.
pub const UNSAFE: u16 = 16;
/// An answer whose context broke the prefix that the provider had cached.
pub const BROKE: u16 = 32;
/// A result that was simulated.
pub const SIMULATED: u16 = 64;
/// A call or an end that was cancelled.
pub const CANCELLED: u16 = 128;

/// The lanes of a session. The columns have one entry for each interaction, and one for each question, decision, edit, branch
/// and owner; they have equal lengths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lanes {
    /// Number of the last line that was added.
    pub head: u64,
    /// Time of the first line, in milliseconds since 1970.
    pub base_ms: i64,
    /// The line of each entry, as the difference to the line of the entry before it.
    pub lines: Vec<u64>,
    /// The number of the interaction in its line, from 1; 0 for other entries.
    pub k: Vec<u32>,
    /// The time of each entry, as the difference to the time of the entry before it, in milliseconds.
    pub at: Vec<i64>,
    /// The branch of each entry, as an index.
    pub branch: Vec<usize>,
    /// The agent of each entry, as an index; `None` for entries of no agent.
    pub agent: Vec<Option<usize>>,
    /// The kinds of the entries.
    #[serde(serialize_with = "letters")]
    pub kind: Vec<Kind>,
    /// Flags of the entries: [`FAILED`], [`DOUBT`] and others.
    pub flags: Vec<u16>,
    /// The branches, in the order in which they began.
    pub branches: Vec<Branch>,
    /// The agents, in the order in which they were made.
    pub agents: Vec<Agent>,
    /// Everything that waited or waits.
    pub waits: Vec<Wait>,
    /// Links between agents.
    pub links: Vec<Link>,
    #[serde(skip)]
    last: (u64, i64),
    /// For each open call of an agent: its line, the caller and the agent that is called.
    #[serde(skip)]
    calls: BTreeMap<Id, (Line, Id, Id)>,
}

/// The kind of an entry. In JSON, the kinds of all entries are one text, a letter each.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `u`: a message to an agent.
    Message,
    /// `a`: a model's answer.
    Answer,
    /// `c`: a call of a tool, an agent or a person.
    Call,
    /// `r`: the result of a call.
    Result,
    /// `R`: a decision of a router.
    Route,
    /// `S`: a summary.
    Summary,
    /// `f`: the end of a turn or task.
    Finished,
    /// `q`: a question to somebody, or another hold.
    Question,
    /// `d`: the end of a hold.
    Decision,
    /// `w`: an edit of the state.
    Edit,
    /// `b`: a branch begins.
    Branch,
    /// `o`: another owner.
    Owner,
}

impl Kind {
    /// Returns its letter.
    pub fn letter(self) -> char {
        match self {
            Self::Message => 'u',
            Self::Answer => 'a',
            Self::Call => 'c',
            Self::Result => 'r',
            Self::Route => 'R',
            Self::Summary => 'S',
            Self::Finished => 'f',
            Self::Question => 'q',
            Self::Decision => 'd',
            Self::Edit => 'w',
            Self::Branch => 'b',
            Self::Owner => 'o',
        }
    }
}

/// A branch of the lanes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Branch {
    /// Id of the branch, `n.k`.
    #[serde(serialize_with = "shown::text")]
    pub id: Id,
    /// The label of the branch, if it has one.
    pub label: Option<Name>,
    /// The branch that it left, as an index, and the line at which it left it; `None` for `main`.
    pub from: Option<(usize, u64)>,
    /// Its first line.
    pub first: u64,
    /// The newest line of the branch.
    pub head: u64,
    /// True if it ended.
    pub ended: bool,
    /// The last line of the branch that counts, if a rewind superseded the branch.
    pub superseded: Option<u64>,
    /// The line in which a call that waits for the branch took its end.
    pub joined_at: Option<u64>,
    /// The branch that adopted it, as an index.
    pub adopted_to: Option<usize>,
}

/// An agent of the lanes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Agent {
    /// Id of the instance, `n.k`.
    #[serde(serialize_with = "shown::text")]
    pub id: Id,
    /// The name that its caller gave it, otherwise that of its definition.
    pub name: Name,
    /// The agent that started it, as an index.
    pub parent: Option<usize>,
}

/// Something that waited or waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// The effect that waits.
    #[serde(serialize_with = "shown::text")]
    pub effect: Id,
    /// The kind of the hold: `approval`, `doubt`, `question`.
    pub kind: &'static str,
    /// The branch, as an index.
    pub branch: usize,
    /// The line at which it began to wait.
    pub from_line: u64,
    /// The line at which the wait ended.
    pub to_line: Option<u64>,
    /// The role of the person who ended the wait, or the word for what ended it: `rule`, `timeout`, `probe`, `place`, `event`.
    pub by: Option<Name>,
    /// True if the effect went on; `None` while it waits.
    pub go: Option<bool>,
}

/// A link from one lane to another.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The line and the agent, as an index, where it begins.
    pub from: (u64, usize),
    /// The line and the agent, as an index, where it ends.
    pub to: (u64, usize),
    /// The kind of link.
    pub how: LinkKind,
}

/// The kinds of links.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// An agent called another one.
    Call,
    /// An agent returned its result.
    Return,
}

impl Lanes {
    /// Adds a line. Lines are added in order, from the first one on.
    pub fn line(&mut self, line: &LogLine) {
        self.head = line.n.0;
        let branch = self.branch_of(line);
        self.branches[branch].head = line.n.0;
        if self.lines.is_empty() {
            self.base_ms = line.at.0;
            self.last.1 = line.at.0;
        }
        if let Some(commit) = &line.commit {
            self.commit(line, branch, commit);
        }
        for entry in &line.ledger {
            self.entry(line, branch, entry);
        }
    }

    /// Returns a part of the lanes: the entries behind a line, of one branch if its index is given, and of these each `every`th. The
    /// first differences are to line 0 and to [`Lanes::base_ms`], as in the whole. Branches and agents are those of the whole, because
    /// entries name them by index; waits and links are those that end behind the line, or have not ended.
    #[must_use]
    pub fn part(&self, behind: u64, branch: Option<usize>, every: usize) -> Self {
        let mut part = Self {
            head: self.head,
            base_ms: self.base_ms,
            branches: self.branches.clone(),
            agents: self.agents.clone(),
            last: (0, self.base_ms),
            ..Self::default()
        };
        let (mut line, mut at, mut nth) = (0, self.base_ms, 0);
        for i in 0..self.lines.len() {
            line += self.lines[i];
            at += self.at[i];
            if line <= behind || branch.is_some_and(|branch| branch != self.branch[i]) {
                continue;
            }
            nth += 1;
            if (nth - 1) % every.max(1) != 0 {
                continue;
            }
            part.lines.push(line - part.last.0);
            part.k.push(self.k[i]);
            part.at.push(at - part.last.1);
            part.branch.push(self.branch[i]);
            part.agent.push(self.agent[i]);
            part.kind.push(self.kind[i]);
            part.flags.push(self.flags[i]);
            part.last = (line, at);
        }
        let is_of = |of: usize| branch.is_none_or(|branch| branch == of);
        let waits = self.waits.iter();
        let waits = waits.filter(|wait| is_of(wait.branch));
        part.waits = waits
            .filter(|wait| wait.to_line.is_none_or(|to| to > behind))
            .cloned()
            .collect();
        let links = self.links.iter().filter(|link| link.to.0 > behind);
        part.links = links.copied().collect();
        part
    }

    fn branch_of(&mut self, line: &LogLine) -> usize {
        if let Some(known) = self.branch_at(line.branch) {
            return known;
        }
        let from = line.ledger.iter().find_map(|entry| match entry {
            LedgerEntry::Opened { branch, from, at } if *branch == line.branch => Some((from, at)),
            _ => None,
        });
        let from = from.and_then(|(from, at)| Some((self.branch_at(*from)?, at.0)));
        let opening = line.commit.as_ref().and_then(|c| c.opening.as_ref());
        self.branches.push(Branch {
            id: line.branch,
            label: opening.and_then(|opening| opening.label.clone()),
            from,
            first: line.n.0,
            head: line.n.0,
            ended: false,
            superseded: None,
            joined_at: None,
            adopted_to: None,
        });
        self.branches.len() - 1
    }

    fn branch_at(&self, id: Id) -> Option<usize> {
        self.branches.iter().rposition(|branch| branch.id == id)
    }

    fn agent_at(&self, id: Id) -> Option<usize> {
        self.agents.iter().rposition(|agent| agent.id == id)
    }

    fn add(
        &mut self,
        line: &LogLine,
        k: u32,
        branch: usize,
        agent: Option<usize>,
        what: (Kind, u16),
    ) {
        let at = line.at.0;
        self.lines.push(line.n.0 - self.last.0);
        self.k.push(k);
        self.at.push(at.saturating_sub(self.last.1));
        self.branch.push(branch);
        self.agent.push(agent);
        self.kind.push(what.0);
        self.flags.push(what.1);
        self.last = (line.n.0, at);
    }

    fn commit(&mut self, line: &LogLine, branch: usize, commit: &Commit) {
        for made in &commit.made {
            let parent = made.parent.and_then(|parent| self.agent_at(parent));
            self.agents.push(Agent {
                id: made.agent,
                name: made.named.as_ref().unwrap_or(&made.def).clone(),
                parent,
            });
        }
        if commit.opening.is_some() && line.branch != Id::MAIN {
            self.add(line, 0, branch, None, (Kind::Branch, 0));
        }
        for admitted in &commit.admitted {
            let ended = admitted.id.filter(|_| admitted.kind == Admitted::Ended);
            if let Some(ended) = ended.and_then(|branch| self.branch_at(branch)) {
                self.branches[ended].joined_at = Some(line.n.0);
            }
        }
        for _ in &commit.edits {
            self.add(line, 0, branch, None, (Kind::Edit, BY_PERSON));
        }
        for (k, push) in commit.pushes.iter().enumerate() {
            let agent = self.agent_at(push.agent);
            let what = self.interaction(line, branch, commit, (push.agent, &push.what));
            self.add(line, k as u32 + 1, branch, agent, what);
        }
    }

    fn interaction(
        &mut self,
        line: &LogLine,
        branch: usize,
        commit: &Commit,
        (agent, what): (Id, &Interaction),
    ) -> (Kind, u16) {
        match what {
            Interaction::UserMessage { from, .. } => {
                if let Origin::Call(call) = from
                    && let Some((at, caller, _)) = self.calls.get(call).copied()
                {
                    self.link((at, caller), (line.n, agent), LinkKind::Call);
                }
                let person = matches!(from, Origin::Outside(_));
                (Kind::Message, flag(person, BY_PERSON))
            }
            Interaction::AssistantMessage {
                effect, partial, ..
            } => {
                let mut usage = commit.usage.iter();
                let broke = usage.any(|u| u.effect == Some(*effect) && u.broke.is_some());
                (Kind::Answer, flag(*partial, CUT_OFF) | flag(broke, BROKE))
            }
            Interaction::Call(call) => {
                match &call.target {
                    Target::Agent(called) => {
                        self.calls.insert(call.id, (line.n, agent, *called));
                    }
                    Target::Person(_) => self.waits.push(wait(line, branch, call.id, "question")),
                    _ => {}
                }
                let risky = matches!(call.target, Target::Tool(Class::Unsafe));
                let unknown = matches!(call.target, Target::Unknown);
                (Kind::Call, flag(risky, UNSAFE) | flag(unknown, FAILED))
            }
            Interaction::Result(result) => {
                if let Some((_, caller, called)) = self.calls.remove(&result.call)
                    && result.how == How::Finished
                {
                    self.link((line.n, called), (line.n, caller), LinkKind::Return);
                }
                let by = result.by.as_ref();
                self.decided(line, result.call, by, Some(result.how.is_ok()));
                let failed = matches!(
                    result.how,
                    How::Failed | How::Refused | How::Limit | How::Expired
                );
                let flags = flag(failed, FAILED)
                    | flag(result.how == How::Unknown, DOUBT)
                    | flag(result.how == How::Simulated, SIMULATED)
                    | flag(result.how == How::Cancelled, CANCELLED)
                    | flag(by.is_some(), BY_PERSON);
                (Kind::Result, flags)
            }
            Interaction::Route(route) => (Kind::Route, flag(route.refused.is_some(), FAILED)),
            Interaction::Summary(summary) => {
                (Kind::Summary, flag(summary.covers.is_nothing(), FAILED))
            }
            Interaction::Earlier(Earlier::User(_)) => (Kind::Message, flag(true, BY_PERSON)),
            Interaction::Earlier(Earlier::Assistant { .. }) => (Kind::Answer, 0),
            Interaction::Finished { cause, .. } => {
                let failed = matches!(cause, Cause::Failed | Cause::Limit | Cause::Deadlock);
                let cancelled = *cause == Cause::Cancelled;
                (
                    Kind::Finished,
                    flag(failed, FAILED) | flag(cancelled, CANCELLED),
                )
            }
        }
    }

    fn link(&mut self, from: (Line, Id), to: (Line, Id), how: LinkKind) {
        if let (Some(a), Some(b)) = (self.agent_at(from.1), self.agent_at(to.1)) {
            self.links.push(Link {
                from: (from.0.0, a),
                to: (to.0.0, b),
                how,
            });
        }
    }

    fn entry(&mut self, line: &LogLine, branch: usize, entry: &LedgerEntry) {
        match entry {
            LedgerEntry::Claimed { .. } => self.add(line, 0, branch, None, (Kind::Owner, 0)),
            LedgerEntry::Hold(hold) => self.held(line, branch, hold),
            LedgerEntry::Released {
                effect, how, by, ..
            } => {
                let go = matches!(how, Release::Go | Release::Edited | Release::Outcome);
                self.decided(line, *effect, Some(by), Some(go));
                let person = by.person().is_some();
                let flags = flag(person, BY_PERSON) | flag(!go, FAILED);
                self.add(line, 0, branch, None, (Kind::Decision, flags));
            }
            LedgerEntry::Ended(id) => {
                if let Some(ended) = self.branch_at(*id) {
                    self.branches[ended].ended = true;
                }
            }
            LedgerEntry::Superseded { branch: id, after } => {
                if let Some(left) = self.branch_at(*id) {
                    self.branches[left].superseded = Some(after.0);
                }
            }
            LedgerEntry::Adopted { branch: id, .. } => {
                if let Some(adopted) = self.branch_at(*id) {
                    self.branches[adopted].adopted_to = Some(branch);
                }
            }
            _ => {}
        }
    }

    fn held(&mut self, line: &LogLine, branch: usize, hold: &Hold) {
        self.waits
            .push(wait(line, branch, hold.effect, why_word(hold.why)));
        let flags = flag(hold.why == Why::Doubt, DOUBT);
        self.add(line, 0, branch, None, (Kind::Question, flags));
    }

    /// Ends the waits of an effect.
    fn decided(&mut self, line: &LogLine, effect: Id, by: Option<&Decider>, go: Option<bool>) {
        let open = |wait: &&mut Wait| wait.effect == effect && wait.to_line.is_none();
        for wait in self.waits.iter_mut().filter(open) {
            wait.to_line = Some(line.n.0);
            wait.by = by.map(|by| by.word().into());
            wait.go = go;
        }
    }
}

fn wait(line: &LogLine, branch: usize, effect: Id, kind: &'static str) -> Wait {
    Wait {
        effect,
        kind,
        branch,
        from_line: line.n.0,
        to_line: None,
        by: None,
        go: None,
    }
}

fn flag(is: bool, flag: u16) -> u16 {
    if is { flag } else { 0 }
}

fn letters<S: Serializer>(kinds: &[Kind], to: S) -> Result<S::Ok, S::Error> {
    let letters: String = kinds.iter().map(|kind| kind.letter()).collect();
    to.serialize_str(&letters)
}
