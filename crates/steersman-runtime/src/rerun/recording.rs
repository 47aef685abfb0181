//! A session as it was recorded: the lines on the path to the head of a branch.

use crate::engine::{Engine, EngineError, Inspection};
use crate::past::{self, Past};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::stored::commit::{Admitted, Commit, LedgerEntry, LogLine};
use steersman_machine::stored::ids::{Digest, Id, Line};
use steersman_machine::view::Cx;

/// Number of rows that are read together.
const PAGE: usize = 512;

pub(crate) struct Recording {
    pub(crate) past: Arc<Past>,
    /// Lines with commits, in the order of their numbers: those on the path of the branch, and those that these depend on.
    pub(crate) lines: Vec<Arc<LogLine>>,
    /// Lines on the path of the branch itself.
    pub(crate) path: BTreeSet<Line>,
    /// The branches of these lines.
    pub(crate) branches: BTreeSet<Id>,
    /// Lines at which branches begin.
    pub(crate) forks: BTreeSet<Line>,
    /// Ledger entries about branches, of lines that are not followed.
    pub(crate) beside: BTreeMap<Line, Vec<LedgerEntry>>,
}

impl Recording {
    /// Reads the lines on the path to the head of a branch.
    pub(crate) async fn read(
        engine: &Engine,
        seen: &Inspection,
        branch: Id,
    ) -> Result<Self, EngineError> {
        let info = &seen.info;
        let past = Past::new(
            engine.store().clone(),
            info.id.clone(),
            info.salt,
            info.head,
            past::DEFAULT_BOUND,
        );
        let mut all: BTreeMap<Line, Arc<LogLine>> = BTreeMap::new();
        let mut beside = BTreeMap::new();
        let mut from = Line::NONE.next();
        loop {
            let rows = engine.store().rows(&info.id, from, info.head, PAGE).await?;
            let Some(last) = rows.last() else { break };
            from = last.n.next();
            for row in &rows {
                let line = past.check(row).await?;
                // Of a line with a commit, only the superseded branches and the change of the current branch are kept: they count
                // even if the line is not followed.
                let is_kept = |e: &LedgerEntry| {
                    line.commit.is_none()
                        || matches!(e, LedgerEntry::Superseded { .. } | LedgerEntry::Current(_))
                };
                let entries = line.ledger.iter().filter(|e| branch_of(e).is_some());
                let entries: Vec<LedgerEntry> = entries.filter(|e| is_kept(e)).cloned().collect();
                if !entries.is_empty() {
                    beside.insert(line.n, entries);
                }
                if line.commit.is_some() {
                    all.insert(line.n, line);
                }
            }
        }
        let head = seen.ledger.branch(branch).map_or(Line::NONE, |b| b.commit);
        let read = Self::of(past, &all, head);
        for line in &read.lines {
            beside.remove(&line.n);
        }
        Ok(Self { beside, ..read })
    }

    /// Selects, from all lines with commits, those that led to `head`.
    pub(crate) fn of(past: Past, all: &BTreeMap<Line, Arc<LogLine>>, head: Line) -> Self {
        let path = chain(all, head);
        let needed = needed(all, &path);
        let lines: Vec<Arc<LogLine>> = needed.iter().filter_map(|n| all.get(n).cloned()).collect();
        let begins = lines.iter().filter_map(|line| {
            let commit = line.commit.as_ref()?;
            commit.opening.as_ref().map(|_| commit.parent)
        });
        Self {
            past: Arc::new(past),
            path,
            branches: lines.iter().map(|line| line.branch).collect(),
            forks: begins.collect(),
            lines,
            beside: BTreeMap::new(),
        }
    }
}

/// Returns the branch that an entry is about.
pub(crate) fn branch_of(entry: &LedgerEntry) -> Option<Id> {
    match entry {
        LedgerEntry::Opened { branch, .. }
        | LedgerEntry::Ended(branch)
        | LedgerEntry::Superseded { branch, .. }
        | LedgerEntry::Current(branch)
        | LedgerEntry::Adopted { branch, .. } => Some(*branch),
        _ => None,
    }
}

/// Returns a commit and all its ancestors.
fn chain(all: &BTreeMap<Line, Arc<LogLine>>, head: Line) -> BTreeSet<Line> {
    let (mut path, mut at) = (BTreeSet::new(), head);
    while let Some(commit) = all.get(&at).and_then(|line| line.commit.as_ref()) {
        path.insert(at);
        at = commit.parent;
    }
    path
}

/// Extends a path by the branches that its commits took in and those that its agents opened. A new binding applies to all
/// branches, since a session runs under one binding; so if the path ends before a new binding, the branches opened on it are
/// followed only up to that line.
fn needed(all: &BTreeMap<Line, Arc<LogLine>>, path: &BTreeSet<Line>) -> BTreeSet<Line> {
    let mut needed = path.clone();
    let head = path.last().copied().unwrap_or(Line::NONE);
    // The path may end with the first of the lines that bind all branches.
    let together = bound_together(all.range(head..).map(|(_, line)| &**line));
    let mut behind = all.range(head..).skip(together.max(1));
    let bound_later = behind.find(|(_, line)| digest_of(line).is_some());
    let end = bound_later.map_or(Line(u64::MAX), |(n, _)| *n);
    let last_of = |branch: Id, before: Line| {
        let mut lines = all.range(..before).rev().map(|(_, line)| line);
        lines.find(|line| line.branch == branch)
    };
    loop {
        let mut more: BTreeSet<Line> = BTreeSet::new();
        let branches: BTreeSet<Id> = needed
            .iter()
            .filter_map(|n| all.get(n).map(|line| line.branch))
            .collect();
        for line in all.values() {
            let Some(commit) = &line.commit else { continue };
            let forked = commit.opening.as_ref().is_some_and(|o| o.of.is_some());
            if forked && needed.contains(&commit.parent) {
                let last = last_of(line.branch, end);
                more.extend(last.map(|l| chain(all, l.n)).into_iter().flatten());
            }
            let bound = commit.binding.is_some() && line.n < end;
            if bound && branches.contains(&line.branch) && !needed.contains(&line.n) {
                more.extend(chain(all, line.n));
            }
            if !needed.contains(&line.n) {
                continue;
            }
            for branch in taken_branches(commit) {
                let last = last_of(branch, line.n);
                more.extend(last.map(|l| chain(all, l.n)).into_iter().flatten());
            }
        }
        let before = needed.len();
        needed.extend(more);
        if needed.len() == before {
            return needed;
        }
    }
}

/// Returns how many of these lines, from the first on, give all branches a new binding: one line for each branch, written
/// together.
pub(super) fn bound_together<'a>(lines: impl Iterator<Item = &'a LogLine>) -> usize {
    let (mut bound, mut branches) = (None, BTreeSet::new());
    let together = lines.take_while(|line| {
        let digest = digest_of(line);
        digest.is_some() && digest == *bound.get_or_insert(digest) && branches.insert(line.branch)
    });
    together.count()
}

/// Returns the digest of the binding that a line sets, if it sets one.
fn digest_of(line: &LogLine) -> Option<Digest> {
    let commit = line.commit.as_ref()?;
    commit.binding.as_ref().map(|binding| binding.digest)
}

/// Returns the branches whose end a commit takes, and those that it adopts.
fn taken_branches(commit: &Commit) -> impl Iterator<Item = Id> {
    let kinds = [Admitted::Ended, Admitted::Adopted];
    let admitted = commit.admitted.iter();
    admitted
        .filter(move |a| kinds.contains(&a.kind))
        .filter_map(|a| a.id)
}

/// One side of a rerun, the recording or the new session: the snapshots of all branches, carried forward line by line.
pub(crate) struct Side {
    pub(crate) network: Arc<Network>,
    pub(crate) past: Arc<Past>,
    pub(crate) branches: BTreeMap<Id, Snapshot>,
    at_forks: BTreeMap<Line, Snapshot>,
}

impl Side {
    pub(crate) fn new(network: Arc<Network>, past: Arc<Past>) -> Self {
        Self {
            network,
            past,
            branches: BTreeMap::new(),
            at_forks: BTreeMap::new(),
        }
    }

    /// Returns the snapshot of a line's branch before the line.
    pub(crate) fn before(&self, line: &LogLine) -> Snapshot {
        let commit = line.commit.as_ref();
        let begins = commit.filter(|c| c.opening.is_some() && c.parent.is_some());
        let known = match begins {
            Some(commit) => self.at_forks.get(&commit.parent),
            None => self.branches.get(&line.branch),
        };
        known.cloned().unwrap_or_else(Snapshot::empty)
    }

    /// Folds a line into the snapshot of its branch. Returns the new snapshot.
    pub(crate) fn carry(&mut self, line: Arc<LogLine>, forks: &BTreeSet<Line>) -> &Snapshot {
        let snapshot = fold(self.before(&line), &line);
        self.past.add(line.clone());
        if forks.contains(&line.n) {
            self.at_forks.insert(line.n, snapshot.clone());
        }
        self.branches.insert(line.branch, snapshot);
        &self.branches[&line.branch]
    }

    pub(crate) fn cx(&self) -> Cx<'_> {
        Cx {
            network: &self.network,
            bodies: &*self.past,
        }
    }
}
