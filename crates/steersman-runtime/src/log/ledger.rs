//! The ledger: everything that the log says about the world. It is folded from the lines of a session in their order, on all
//! branches. Nothing rewinds it, and the machine never reads it.

mod equal;
mod inside;
mod limits;
mod own;
mod search;

pub use equal::{Beginning, Equal, Stands, Verdict};
pub(crate) use inside::answer_name;
pub use inside::{Inside, Work};
pub use own::{Heard, Probe, Reach};
pub use search::{Search, Stood};

use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::stored::codec;
use steersman_machine::stored::codec::Hash;
use steersman_machine::stored::commit::{
    Admitted, Commit, Hold, LedgerEntry, LogLine, Opening, Release, Why,
};
use steersman_machine::stored::ids::{Body, Digest, Id, Line, Name, Time};
use steersman_machine::stored::interaction::Class;

/// Version of the form of ledgers in checkpoints, and of the meaning of the fold. Checkpoints of other versions are discarded.
pub const VERSION: u8 = 17;

/// Everything that is known of the world after a line.
///
/// The ledger holds what a decision may still need. An effect that never touched the world is forgotten once it has an outcome.
/// An effect that did is kept as a short record for the repeat guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The last line that was folded in.
    pub line: Line,
    /// Epoch of the newest owner. 0 before the first owner.
    pub epoch: u64,
    /// Random mark of the newest owner.
    pub mark: u64,
    /// The marks of all owners, each with its first line. An effect keeps the mark of the owner that recorded its wish.
    marks: Vec<(Line, u64)>,
    /// Amount that was paid, or that counts as paid because the real amount is unknown.
    pub spent: Amount,
    /// Model calls that were paid, or were made on a branch of a search.
    pub calls: u64,
    /// Budget that was drawn ahead of use and is not settled yet.
    pub slice: Amount,
    /// The part of the paid amount that gave no used answer: calls that were cut or broke off, and the slices of owners that
    /// died.
    pub lost: Amount,
    /// Amount that people granted above the limits of the session.
    pub granted: Amount,
    /// Number of calls for which a provider reported impossible numbers.
    pub unbelievable: u64,
    /// True while a person has paused the session.
    pub paused: bool,
    /// Tools that people hold by an order: their effects do not begin. `None` means all tools that may change the world.
    barred: BTreeSet<Option<Name>>,
    /// The current branch, to which messages without a branch go.
    pub current: Id,
    branches: OrdMap<Id, Branch>,
    accepted: OrdSet<Name>,
    effects: OrdMap<Id, Record>,
    listed: OrdSet<Id>,
    /// Notifications of people about waiting holds, by the effect that notifies.
    reaches: BTreeMap<Id, Reach>,
    /// Probes of effects that are in doubt now.
    probes: BTreeMap<Id, Probe>,
    /// Steps and waits of calls that are not over, by effect and number.
    inside: OrdMap<(Id, u32), Inside>,
    searches: BTreeMap<Id, Search>,
    /// Effects of the session that this one reruns, by tool and arguments.
    recorded: BTreeMap<Digest, Equal>,
    hash: Hash,
    /// Effects that were started, by tool and arguments. Computed again when a ledger is decoded.
    #[serde(skip)]
    started: OrdMap<Digest, OrdSet<Id>>,
}

/// Returns true if a line takes the answer of an effect.
pub(crate) fn answers(line: &LogLine, effect: Id) -> bool {
    let commit = line.commit.as_ref();
    let mut used = commit.into_iter().flat_map(|commit| &commit.usage);
    used.any(|usage| usage.effect == Some(effect))
}

/// An amount of tokens and money.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Number of tokens.
    pub tokens: u64,
    /// Money, in millionths of the currency.
    pub micros: u64,
}

impl Amount {
    /// Returns an amount of these tokens and this money.
    pub fn new(tokens: u64, micros: u64) -> Self {
        Self { tokens, micros }
    }
    /// Returns the sum. Saturates at the greatest number.
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            micros: self.micros.saturating_add(other.micros),
        }
    }
    /// Returns the difference, or zero if `other` is greater. Tokens and money are handled separately.
    pub fn less(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            micros: self.micros.saturating_sub(other.micros),
        }
    }
    /// Returns the greater number of tokens and the greater amount of money.
    pub(crate) fn at_least(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.max(other.tokens),
            micros: self.micros.max(other.micros),
        }
    }
    /// Returns the smaller number of tokens and the smaller amount of money.
    pub fn at_most(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.min(other.tokens),
            micros: self.micros.min(other.micros),
        }
    }
    /// Returns a multiple of the amount. Saturates at the greatest number.
    pub fn times(self, times: u64) -> Self {
        Self {
            tokens: self.tokens.saturating_mul(times),
            micros: self.micros.saturating_mul(times),
        }
    }
    /// Returns true if both the tokens and the money are at least those of `other`.
    pub fn covers(self, other: Self) -> bool {
        self.tokens >= other.tokens && self.micros >= other.micros
    }
    /// Returns true if both the tokens and the money are zero.
    pub fn is_zero(self) -> bool {
        self == Self::default()
    }
}

/// Facts about a branch in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// The branch and the commit at which this branch was forked. `None` for `main`.
    pub from: Option<(Id, Line)>,
    /// Opening data from its first commit. `None` before that commit, and for `main`.
    pub opening: Option<Opening>,
    /// The last line of the branch. If it has no line yet, the line at which it was forked.
    pub head: Line,
    /// Hash of `head`, which the next line of the branch covers. `None` if the branch has no line yet and the forked line was not
    /// the last of its branch.
    pub hash: Option<Hash>,
    /// The line of its last commit.
    pub commit: Line,
    /// The line in which the branch ended. `None` if something was committed to it since.
    pub ended: Option<Line>,
    /// Set if the branch has no more ticks: its last line that counts.
    pub superseded: Option<Line>,
    /// The last adoption of this branch.
    pub adopted: Option<Adopted>,
    /// The search that tries this branch, and the number of the branch in it.
    pub search: Option<(Id, u32)>,
}

impl Branch {
    /// Returns the name that people gave the branch.
    pub fn label(&self) -> Option<&Name> {
        self.opening.as_ref()?.label.as_ref()
    }

    /// Returns the number of the branch, from 1, in the fork of an agent or in a search.
    pub fn index(&self) -> Option<u32> {
        let of = self.opening.as_ref().and_then(|opening| opening.of);
        let searched = self.search.map(|(_, number)| number);
        of.map(|(index, _)| index).or(searched)
    }
}

/// Adoption of a branch by another one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adopted {
    /// The last line of the branch that was adopted.
    pub upto: Line,
    /// The line that adopted it.
    pub at: Line,
    /// The branch that adopted it.
    pub into: Id,
}

/// Facts about an effect in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The branch that wished the effect.
    pub branch: Id,
    /// The first line that mentions the effect.
    pub since: Line,
    /// Digest of tool and arguments, if the effect was held or started.
    pub digest: Option<Digest>,
    /// Number of the last attempt that was started. 0 means none.
    pub attempt: u32,
    /// Epoch of the owner that started the last attempt.
    pub epoch: u64,
    /// The strictest class that the tool had when an attempt began. `None` means that no attempt began.
    pub class: Option<Class>,
    /// Progress of the effect.
    pub progress: Progress,
    /// Open holds, by the lines that opened them.
    pub holds: BTreeMap<Line, Hold>,
    /// Reasons and releases of earlier holds. They apply to all attempts.
    pub ended: Vec<(Why, Release)>,
    /// The approvers of the effect: the `by` of its approval holds that were released.
    pub approved: Vec<Name>,
    /// Set if a person allowed the effect to repeat equal effects: the line as of which the person was told about these.
    pub word: Option<Line>,
    /// Time before which the effect must not be tried again.
    pub again: Option<Time>,
    /// Time since which the place of the effect has not answered.
    pub down: Option<Time>,
    /// For a call that is held because it may cost more than is left: the amount that is asked for.
    pub wants: Amount,
    /// True if a person let the call through that did not fit into a budget which sessions share.
    pub let_through: bool,
}

/// Progress of an effect.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Progress {
    /// No attempt was started.
    #[default]
    Wished,
    /// The last attempt may be running, or its owner died.
    Started {
        /// True if an earlier attempt may have happened.
        doubtful: bool,
    },
    /// All attempts are proved not to have happened.
    NotPerformed,
    /// It is unknown whether one of the attempts happened.
    Unknown {
        /// True if an attempt before the last may have happened.
        doubtful: bool,
    },
    /// The effect happened.
    Done {
        /// The line that says so.
        at: Line,
        /// The outcome as JSON, if no commit of that line admits it.
        kept: Option<Body>,
    },
    /// Nobody will find out whether the effect happened. The model was told that it may have happened.
    GivenUp {
        /// The line that says so.
        at: Line,
    },
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            line: Line::NONE,
            epoch: 0,
            mark: 0,
            marks: Vec::new(),
            spent: Amount::default(),
            calls: 0,
            slice: Amount::default(),
            lost: Amount::default(),
            granted: Amount::default(),
            unbelievable: 0,
            paused: false,
            barred: BTreeSet::new(),
            current: Id::MAIN,
            branches: OrdMap::unit(Id::MAIN, Branch::default()),
            accepted: OrdSet::new(),
            effects: OrdMap::new(),
            listed: OrdSet::new(),
            reaches: BTreeMap::new(),
            probes: BTreeMap::new(),
            inside: OrdMap::new(),
            searches: BTreeMap::new(),
            recorded: BTreeMap::new(),
            hash: [0; 32],
            started: OrdMap::new(),
        }
    }
}

impl Ledger {
    /// Folds one line into the ledger. `hash` is the hash of that line.
    pub fn fold(&mut self, line: &LogLine, hash: &Hash) {
        if line.commit.is_some() {
            self.branch_mut(line.branch).ended = None;
        }
        for entry in &line.ledger {
            self.entry(line, entry);
        }
        if let Some(commit) = &line.commit {
            self.commit(line, commit);
        }
        let branch = self.branch_mut(line.branch);
        branch.head = line.n;
        branch.hash = Some(*hash);
        if line.commit.is_some() {
            branch.commit = line.n;
        }
        for entry in &line.ledger {
            if let LedgerEntry::Opened { branch, from, at } = entry
                && *branch != line.branch
            {
                self.branch_mut(*branch).hash = self.hash_of(*from, *at);
            }
        }
        self.line = line.n;
        self.hash = *hash;
    }

    fn branch_mut(&mut self, id: Id) -> &mut Branch {
        self.branches.entry(id).or_default()
    }

    fn commit(&mut self, line: &LogLine, commit: &Commit) {
        if let Some(opening) = &commit.opening {
            self.branch_mut(line.branch).opening = Some(opening.clone());
        }
        let outcomes = commit
            .admitted
            .iter()
            .filter(|a| a.kind == Admitted::Outcome)
            .filter_map(|a| a.id);
        for effect in outcomes {
            self.forget_inside(effect);
            let Some(record) = self.effects.get_mut(&effect) else {
                continue;
            };
            if record.attempt == 0 {
                self.effects.remove(&effect);
            } else if record.in_doubt() {
                record.settle(Progress::GivenUp { at: line.n });
                self.probes.retain(|_, probe| probe.of != effect);
            }
        }
    }

    fn entry(&mut self, line: &LogLine, entry: &LedgerEntry) {
        match entry {
            LedgerEntry::Claimed { epoch, mark, .. } => {
                (self.epoch, self.mark) = (*epoch, *mark);
                self.marks.push((line.n, *mark));
            }
            LedgerEntry::Accepted { message, .. } => {
                self.accepted.insert(message.clone());
            }
            LedgerEntry::Escrow { .. }
            | LedgerEntry::Spend { .. }
            | LedgerEntry::Settle { .. }
            | LedgerEntry::More { .. }
            | LedgerEntry::Unbelievable { .. } => self.limits(line, entry),
            LedgerEntry::Hold(hold) => self.held(line, hold),
            LedgerEntry::Released {
                effect, why, how, ..
            } => self.released(line.n, *effect, *why, *how),
            LedgerEntry::Started {
                effect,
                attempt,
                epoch,
                digest,
                class,
            } => self.begun(line, *effect, *attempt, *epoch, *digest, *class),
            LedgerEntry::Done { effect, kept, .. } => self.done(line, *effect, *kept),
            LedgerEntry::NotPerformed { effect, attempt } => {
                let record = self.record(line, *effect);
                if *attempt == record.attempt {
                    record.progress = record.progress.not_performed();
                }
                if record.progress == Progress::NotPerformed {
                    record.holds.retain(|_, hold| hold.why != Why::Doubt);
                }
            }
            LedgerEntry::Unknown { effect, .. } => {
                let record = self.record(line, *effect);
                record.progress = record.progress.unknown();
            }
            LedgerEntry::Late { .. }
            | LedgerEntry::Refused { .. }
            | LedgerEntry::WouldAsk(_)
            | LedgerEntry::StoreAccepted { .. } => {}
            LedgerEntry::Step { .. } => self.stepped(entry),
            LedgerEntry::Again { effect, at } => self.put_off(line, *effect, *at),
            LedgerEntry::Opened { branch, from, at } => {
                let opened = self.branch_mut(*branch);
                opened.from = Some((*from, *at));
                opened.head = *at;
                opened.commit = *at;
            }
            LedgerEntry::Ended(branch) => self.branch_mut(*branch).ended = Some(line.n),
            LedgerEntry::Superseded { branch, after } => {
                self.branch_mut(*branch).superseded = Some(*after);
            }
            LedgerEntry::Current(branch) => {
                self.current = *branch;
                self.branch_mut(*branch).superseded = None;
            }
            LedgerEntry::Adopted { branch, at } => self.adopted(line, *branch, *at),
            LedgerEntry::Listed(effect) => {
                self.listed.insert(*effect);
            }
            LedgerEntry::Reach {
                effect,
                of,
                role,
                what,
            } => self.told(*effect, *of, role, what),
            LedgerEntry::Probe { effect, of, what } => self.probed(*effect, *of, what),
            LedgerEntry::Search { search, what } => self.searched(line, *search, what),
            LedgerEntry::Paused { paused, .. } => self.paused = *paused,
            LedgerEntry::Recorded { .. } => self.recorded(entry),
            LedgerEntry::Outage { effect, since } => {
                self.record(line, *effect).down = Some(*since);
            }
            LedgerEntry::Barred { tool, barred, .. } => {
                if *barred {
                    self.barred.insert(tool.clone());
                } else {
                    self.barred.remove(tool);
                }
            }
        }
    }

    fn adopted(&mut self, line: &LogLine, branch: Id, upto: Line) {
        self.branch_mut(branch).adopted = Some(Adopted {
            upto,
            at: line.n,
            into: line.branch,
        });
    }

    fn held(&mut self, line: &LogLine, hold: &Hold) {
        self.waits(hold);
        let record = self.record(line, hold.effect);
        record.digest.get_or_insert(hold.digest);
        record.holds.insert(line.n, hold.clone());
        // The effect waits for a person now, and no longer for a time.
        record.again = None;
        // A new hold asks a new question, so people who were notified of an earlier hold must be notified again.
        let reaches = self.reaches.values_mut();
        for reach in reaches.filter(|reach| reach.of == hold.effect) {
            reach.earlier = true;
        }
    }

    fn done(&mut self, line: &LogLine, effect: Id, kept: Option<Body>) {
        let done = Progress::Done { at: line.n, kept };
        self.forget_inside(effect);
        self.record(line, effect).settle(done);
        self.probes.retain(|_, probe| probe.of != effect);
    }

    fn begun(
        &mut self,
        line: &LogLine,
        effect: Id,
        attempt: u32,
        epoch: u64,
        digest: Digest,
        class: Class,
    ) {
        let between = self.stands_between_steps(effect);
        let record = self.record(line, effect);
        let first = record.attempt == 0;
        record.digest = Some(digest);
        record.attempt = attempt;
        record.epoch = epoch;
        record.class = record.class.max(Some(class));
        // An attempt that goes on after recorded steps speaks for the attempts before it.
        record.progress = if between {
            Progress::Started { doubtful: false }
        } else {
            record.progress.begun()
        };
        // The effect is tried again under its key, so the outcome of this attempt settles the doubt.
        record.holds.retain(|_, hold| hold.why != Why::Doubt);
        record.again = None;
        if first {
            self.started.entry(digest).or_default().insert(effect);
        }
    }

    fn released(&mut self, at: Line, effect: Id, why: Why, how: Release) {
        if why == Why::Doubt {
            self.probes.retain(|_, probe| probe.of != effect);
            self.doubt_ended(effect, how);
        }
        let Some(record) = self.effects.get_mut(&effect) else {
            return;
        };
        if (why, how) == (Why::Repeat, Release::Go) {
            // Without a hold of its own, the repetition was mentioned in the question of the approval, which is still open here.
            let (repeat, approval) = (record.opened(why), record.opened(Why::Approval));
            record.word = record.word.max(repeat.or(approval));
        }
        if (why, how) == (Why::Approval, Release::Go) {
            let asked = record.holds.values().filter(|h| h.why == why);
            record.approved.extend(asked.flat_map(|h| h.by.clone()));
        }
        record.holds.retain(|_, h| h.why != why);
        if why == Why::Outage {
            record.down = None;
        }
        record.ended.push((why, how));
        let goes_on = matches!(how, Release::Go);
        if why == Why::Doubt {
            match how {
                Release::Go => record.progress = Progress::NotPerformed,
                Release::Outcome => record.settle(Progress::Done { at, kept: None }),
                Release::GivenUp
                | Release::Refused
                | Release::Cancelled
                | Release::Expired
                | Release::Edited => record.settle(Progress::GivenUp { at }),
            }
        } else if !goes_on && record.attempt == 0 && record.holds.is_empty() {
            self.effects.remove(&effect);
        }
    }

    fn record(&mut self, line: &LogLine, effect: Id) -> &mut Record {
        self.effects.entry(effect).or_insert_with(|| Record {
            branch: line.branch,
            since: line.n,
            digest: None,
            attempt: 0,
            epoch: 0,
            class: None,
            progress: Progress::Wished,
            holds: BTreeMap::new(),
            ended: Vec::new(),
            approved: Vec::new(),
            word: None,
            again: None,
            down: None,
            wants: Amount::default(),
            let_through: false,
        })
    }

    /// Returns the mark of the owner that wrote a line. With session and effect id it makes a key that is unique in the world.
    pub(crate) fn mark_at(&self, line: Line) -> Option<u64> {
        let upto = self.marks.partition_point(|(first, _)| *first <= line);
        upto.checked_sub(1).map(|i| self.marks[i].1)
    }

    /// Returns true if an order of a person holds this tool.
    pub(crate) fn bars(&self, tool: &Name, class: Class) -> bool {
        let all = !class.is_free() && self.bars_all();
        all || self
            .barred
            .iter()
            .any(|barred| barred.as_ref() == Some(tool))
    }

    /// Returns true if an order of a person holds all tools that may change the world.
    pub(crate) fn bars_all(&self) -> bool {
        self.barred.contains(&None)
    }

    /// Returns the tools that people hold by an order. `None` means all tools that may change the world.
    pub fn barred(&self) -> impl Iterator<Item = Option<&Name>> {
        self.barred.iter().map(Option::as_ref)
    }

    /// Returns true if a message with this id was ever accepted.
    pub fn accepted(&self, id: &str) -> bool {
        self.accepted.contains(id)
    }

    /// Returns the record of an effect. `None` if nothing ever held or started the effect, or if it never touched the world and
    /// has ended.
    pub fn effect(&self, effect: Id) -> Option<&Record> {
        self.effects.get(&effect)
    }

    /// Returns all effects that have a record, by id.
    pub fn effects(&self) -> impl Iterator<Item = (Id, &Record)> {
        self.effects.iter().map(|(id, record)| (*id, record))
    }

    /// Returns all open holds, by effect.
    pub fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.effects.values().flat_map(|r| r.holds.values())
    }

    /// Returns the open hold of an effect for this reason.
    pub fn hold(&self, effect: Id, why: Why) -> Option<&Hold> {
        let mut holds = self.effects.get(&effect)?.holds.values();
        holds.find(|h| h.why == why)
    }

    /// Returns true if an effect may have happened and nobody runs it. Attempts of earlier epochs than `epoch` are run by nobody.
    pub fn may_have_happened(&self, effect: Id, epoch: u64) -> bool {
        let Some(record) = self.effects.get(&effect) else {
            return false;
        };
        match record.progress {
            Progress::Unknown { .. } => true,
            Progress::Started { .. } => record.epoch < epoch,
            _ => false,
        }
    }

    /// Returns the effects of superseded branches that were listed for the person who rewound.
    pub fn listed(&self) -> impl Iterator<Item = Id> {
        self.listed.iter().copied()
    }

    /// Returns the record of a branch.
    pub fn branch(&self, id: Id) -> Option<&Branch> {
        self.branches.get(&id)
    }

    /// Returns true if a branch has ticks: the driver may still write to it, because it is not superseded. The current branch always
    /// has ticks.
    pub(crate) fn has_ticks(&self, id: Id) -> bool {
        let branch = self.branches.get(&id);
        id == self.current || branch.is_some_and(|branch| branch.superseded.is_none())
    }

    /// Returns all branches, `main` first.
    pub fn branches(&self) -> impl Iterator<Item = (Id, &Branch)> {
        self.branches.iter().map(|(id, branch)| (*id, branch))
    }

    /// Returns the branch with this label or this id, or with this number in the newest fork or search that has it.
    pub fn find_branch(&self, name: &str) -> Option<Id> {
        let mut labelled = self.branches.iter();
        let labelled = labelled.find(|(_, branch)| branch.label().is_some_and(|l| **l == *name));
        let by_id = || {
            name.parse()
                .ok()
                .filter(|id| self.branches.contains_key(id))
        };
        let by_index = || {
            let index: u32 = name.parse().ok()?;
            let mut newest = self.branches.iter().rev();
            newest.find(|(_, branch)| branch.index() == Some(index))
        };
        let labelled = labelled.map(|(id, _)| *id);
        labelled
            .or_else(by_id)
            .or_else(|| by_index().map(|(id, _)| *id))
    }

    /// Returns the hash of the last line that was folded in.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// Returns the hash of a line, if the line is the last of its branch.
    pub(crate) fn hash_of(&self, branch: Id, line: Line) -> Option<Hash> {
        let branch = self.branches.get(&branch)?;
        branch.hash.filter(|_| branch.head == line)
    }

    /// Returns true if a line of one branch is on the path of another: on that branch itself, or on a branch from which it
    /// descends, at or before the fork.
    pub fn on_path(&self, of: Id, branch: Id, line: Line) -> bool {
        let (mut at, mut upto) = (of, Line::MAX);
        loop {
            if at == branch {
                return line <= upto;
            }
            match self.branches.get(&at).and_then(|b| b.from) {
                Some((from, forked)) => (at, upto) = (from, forked.min(upto)),
                None => return false,
            }
        }
    }

    /// Returns the last line that is on the paths of both branches.
    pub fn common(&self, one: Id, other: Id) -> Option<Line> {
        let mut places = Vec::new();
        let (mut at, mut upto) = (one, Line::MAX);
        loop {
            places.push((at, upto));
            match self.branches.get(&at).and_then(|b| b.from) {
                Some((from, forked)) => (at, upto) = (from, forked.min(upto)),
                None => break,
            }
        }
        let (mut at, mut upto) = (other, Line::MAX);
        loop {
            if let Some((_, there)) = places.iter().find(|(branch, _)| *branch == at) {
                let both = upto.min(*there);
                let head = self.branches.get(&at).map_or(Line::NONE, |b| b.commit);
                return Some(both.min(head));
            }
            match self.branches.get(&at).and_then(|b| b.from) {
                Some((from, forked)) => (at, upto) = (from, forked.min(upto)),
                None => return None,
            }
        }
    }

    /// Encodes the ledger as a checkpoint.
    pub fn encode(&self, salt: &[u8; 16]) -> Vec<u8> {
        codec::encode_checkpoint(VERSION, self.line, &self.hash, salt, self)
    }

    /// Decodes a checkpoint. Returns `None` if anything in it is not as expected.
    pub fn decode(bytes: &[u8], salt: &[u8; 16]) -> Option<Self> {
        let (at, _, mut ledger): (Line, Hash, Self) =
            codec::decode_checkpoint(VERSION, bytes, salt)?;
        if ledger.line != at {
            return None;
        }
        for (id, record) in &ledger.effects {
            if let (Some(digest), 1..) = (record.digest, record.attempt) {
                ledger.started.entry(digest).or_default().insert(*id);
            }
        }
        Some(ledger)
    }
}

impl Record {
    /// Returns the oldest open hold, with the line that opened it.
    pub fn open_hold(&self) -> Option<(Line, &Hold)> {
        self.holds.iter().next().map(|(at, hold)| (*at, hold))
    }

    /// Returns the line that opened a hold of this kind.
    fn opened(&self, why: Why) -> Option<Line> {
        let found = self.holds.iter().find(|(_, hold)| hold.why == why);
        found.map(|(at, _)| *at)
    }

    /// Returns true if it is unknown whether the effect happened, and a probe or a person may still find out.
    pub fn in_doubt(&self) -> bool {
        matches!(self.progress, Progress::Unknown { .. })
    }

    /// Returns true if earlier attempts allow another one to begin. According to the log, no attempt is running then.
    pub(crate) fn may_begin(&self, class: Class, epoch: u64) -> bool {
        match self.progress {
            Progress::Wished | Progress::NotPerformed => true,
            Progress::Started { .. } | Progress::Unknown { .. } => {
                class != Class::Unsafe && self.epoch < epoch
            }
            Progress::Done { .. } | Progress::GivenUp { .. } => false,
        }
    }

    fn settle(&mut self, progress: Progress) {
        self.progress = progress;
        self.holds.clear();
        self.ended.clear();
        self.again = None;
    }
}

impl Progress {
    /// Returns true if an attempt may be running.
    pub fn is_started(self) -> bool {
        matches!(self, Self::Started { .. })
    }

    /// Returns the progress when another attempt begins.
    fn begun(self) -> Self {
        Self::Started {
            doubtful: matches!(self, Self::Started { .. } | Self::Unknown { .. }),
        }
    }

    /// Returns the progress when the last attempt is proved not to have happened. This says nothing of the attempts before it.
    fn not_performed(self) -> Self {
        match self {
            Self::Started { doubtful: true } | Self::Unknown { doubtful: true } => {
                Self::Unknown { doubtful: true }
            }
            _ => Self::NotPerformed,
        }
    }

    /// Returns the progress when it is unknown whether the last attempt happened.
    fn unknown(self) -> Self {
        let doubtful = matches!(
            self,
            Self::Started { doubtful: true } | Self::Unknown { doubtful: true }
        );
        Self::Unknown { doubtful }
    }
}
