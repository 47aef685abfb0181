//! The whole log of a session in memory: its lines with their texts.

use crate::reader::{PAGE, Reader};
use crate::texts::Texts;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::{mem, thread};
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::stored::commit::{Commit, LedgerEntry, LogLine};
use steersman_machine::stored::ids::Bodies as _;
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::stored::interaction::Interaction;
use steersman_runtime::engine::{BranchView, EngineError};

/// The fate of a message, as the log records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Became {
    /// The session took it in this line.
    Taken(Line),
    /// The session refused it, for this reason.
    Refused(Arc<str>),
}

/// Finds the fate of a message in the lines after this one. `None` if no line has decided it yet.
///
/// # Errors
/// Errors of the store.
pub async fn became(
    reader: &dyn Reader,
    mut after: Line,
    message: &str,
) -> Result<Option<Became>, EngineError> {
    loop {
        let lines = reader.lines(after, PAGE).await?;
        let Some(last) = lines.last() else {
            return Ok(None);
        };
        after = last.n;
        for line in &lines {
            // A line that refuses a message accepts it, too: the message is in no inbox any more.
            let refused = line.ledger.iter().find_map(|entry| match entry {
                LedgerEntry::Refused { message: id, why } if **id == *message => {
                    Some(Became::Refused(reader.text(*why)))
                }
                _ => None,
            });
            let became =
                refused.or_else(|| decides(line, message).then_some(Became::Taken(line.n)));
            if became.is_some() {
                return reader.fault().map_or(Ok(became), Err);
            }
        }
    }
}

/// Returns true if a line takes or refuses a message.
pub fn decides(line: &LogLine, message: &str) -> bool {
    let mut entries = line.ledger.iter();
    entries
        .any(|entry| matches!(entry, LedgerEntry::Accepted { message: id, .. } if **id == *message))
}

/// A log with its texts, as a reader shows them.
#[derive(Clone, Debug)]
pub struct Log {
    /// The lines, oldest first.
    pub lines: Vec<Arc<LogLine>>,
    /// The texts of these lines.
    pub texts: Texts,
}

/// Number of lines that take so long to free that another thread does it.
const MANY: usize = 8_192;

impl Drop for Log {
    fn drop(&mut self) {
        if self.lines.len() > MANY {
            let log = (mem::take(&mut self.lines), mem::take(&mut self.texts));
            // It is freed here where no thread can begin.
            let _ = thread::Builder::new().spawn(move || drop(log));
        }
    }
}

impl Log {
    /// Reads the log of a session.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn read(reader: &dyn Reader) -> Result<Self, EngineError> {
        Self::of(reader.all().await?, reader)
    }

    /// Reads the first lines of a session.
    ///
    /// # Errors
    /// Errors of the store.
    pub(crate) async fn begins(reader: &dyn Reader, lines: usize) -> Result<Self, EngineError> {
        Self::of(reader.lines(Line::NONE, lines).await?, reader)
    }

    fn of(lines: Vec<Arc<LogLine>>, reader: &dyn Reader) -> Result<Self, EngineError> {
        let mut texts = Texts::default();
        for line in &lines {
            texts.learn(line, reader);
        }
        reader.fault().map_or(Ok(Self { lines, texts }), Err)
    }

    /// Returns the definitions that the session was bound to, by the line of the binding, as the store has them. A
    /// definition that this program cannot use is left out; the log is shown without its rules.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn bound(
        &self,
        reader: &dyn Reader,
    ) -> Result<BTreeMap<Line, Arc<Network>>, EngineError> {
        let mut bound = BTreeMap::new();
        let binds =
            |line: &&Arc<LogLine>| line.commit.as_ref().is_some_and(|of| of.binding.is_some());
        for line in self.lines.iter().filter(binds) {
            if let Some(network) = reader.bound(line).await? {
                bound.insert(line.n, network);
            }
        }
        Ok(bound)
    }

    fn at(&self, n: Line) -> Option<&Arc<LogLine>> {
        // A whole log has a line for every number.
        let first = self.lines.first()?.n.0;
        let guess = usize::try_from(n.0.checked_sub(first)?).ok()?;
        if let Some(line) = self.lines.get(guess).filter(|line| line.n == n) {
            return Some(line);
        }
        let at = self.lines.binary_search_by_key(&n, |line| line.n).ok()?;
        Some(&self.lines[at])
    }

    /// Returns the branch that a line opened, and the line of the parent at which the branch begins.
    pub fn opened(&self, n: Line) -> Option<(Id, Line)> {
        self.at(n)?.ledger.iter().find_map(|entry| match entry {
            LedgerEntry::Opened { branch, at, .. } => Some((*branch, *at)),
            _ => None,
        })
    }

    /// Returns the effects that a rewind in this line lists: effects of the superseded lines that touched the world or may have.
    pub fn listed(&self, n: Line) -> Vec<Id> {
        let entries = self.at(n).map_or(&[][..], |line| &line.ledger);
        let listed = entries.iter().filter_map(|entry| match entry {
            LedgerEntry::Listed(effect) => Some(*effect),
            _ => None,
        });
        listed.collect()
    }

    /// Returns the reasons for which a line refused messages.
    pub fn refused(&self, n: Line) -> Vec<Arc<str>> {
        let entries = self.at(n).map_or(&[][..], |line| &line.ledger);
        let refused = entries.iter().filter_map(|entry| match entry {
            LedgerEntry::Refused { why, .. } => Some(self.texts.text(*why)),
            _ => None,
        });
        refused.collect()
    }

    /// Returns the first of these lines that calls this tool or agent.
    pub fn first_call_of(lines: &[&Arc<LogLine>], name: &str) -> Option<Line> {
        let mut lines = lines.iter();
        let first = lines.find(|line| line.commit.as_ref().is_some_and(|c| calls(c, name)));
        first.map(|line| line.n)
    }

    /// Returns the names of the tools and agents that these lines call.
    pub fn called_in<'l>(lines: &[&'l Arc<LogLine>]) -> BTreeSet<&'l str> {
        let commits = lines.iter().filter_map(|line| line.commit.as_ref());
        let pushes = commits.flat_map(|commit| &commit.pushes);
        pushes
            .filter_map(|push| match &push.what {
                Interaction::Call(call) => Some(&*call.name),
                _ => None,
            })
            .collect()
    }

    /// Returns everything that led to the head of a branch, oldest first: the lines on its path, and where a line adopted a
    /// branch, the lines of that branch too.
    pub fn history(&self, branch: &BranchView, all: &[BranchView]) -> Vec<&Arc<LogLine>> {
        let mut todo = self.path(branch, all);
        let adopts =
            |line: &&Arc<LogLine>| line.commit.as_ref().is_some_and(|of| of.adoption.is_some());
        if !todo.iter().any(adopts) {
            return todo;
        }
        let mut found: BTreeMap<Line, &Arc<LogLine>> = BTreeMap::new();
        while let Some(line) = todo.pop() {
            let adopted = line.commit.as_ref().and_then(|c| c.adoption.as_ref());
            if found.insert(line.n, line).is_none()
                && let Some(adopted) = adopted
            {
                todo.extend(self.up_to(adopted.at));
            }
        }
        found.into_values().collect()
    }

    /// Returns the stack of an agent as of a snapshot, oldest first.
    pub fn stack(&self, snapshot: &Snapshot, agent: Id) -> Vec<&Interaction> {
        let agents = snapshot.agents.get(&agent);
        let (mut need, mut stack) = (agents.map(|agent| agent.stack.last), Vec::new());
        while let Some(line) = need.and_then(|line| self.at(line)) {
            let pushes = line.commit.iter().flat_map(|commit| &commit.pushes).rev();
            need = None;
            for push in pushes.filter(|push| push.agent == agent) {
                need = Some(push.prev);
                stack.push(&push.what);
            }
        }
        stack.reverse();
        stack
    }

    /// Returns a line and all lines before it on its path, oldest first.
    pub fn up_to(&self, line: Line) -> Vec<&Arc<LogLine>> {
        let mut path = self.back_to(line, Line::NONE);
        path.reverse();
        path
    }

    /// Returns the snapshot after a line, on the branch of that line.
    pub fn snapshot(&self, line: Line) -> Snapshot {
        let path = self.up_to(line).into_iter();
        path.fold(Snapshot::empty(), |snapshot, line| fold(snapshot, line))
    }

    /// Returns a line and the lines before it on its path, newest first, down to `until`, which is excluded.
    pub(crate) fn back_to(&self, line: Line, until: Line) -> Vec<&Arc<LogLine>> {
        let (mut need, mut path) = (line, Vec::new());
        while need > until
            && let Some(line) = self.at(need)
        {
            need = line.prev;
            path.push(line);
        }
        path
    }

    /// Returns the lines on a branch's path, oldest first: its own lines, and those of its ancestors up to the forks.
    pub fn path(&self, branch: &BranchView, all: &[BranchView]) -> Vec<&Arc<LogLine>> {
        let mut until = Vec::new();
        let (mut at, mut upto) = (Some(branch), branch.head);
        while let Some(branch) = at {
            until.push((branch.id, upto));
            match branch.from {
                Some((parent, line)) => {
                    upto = line;
                    at = all.iter().find(|b| b.id == parent);
                }
                None => at = None,
            }
        }
        self.lines
            .iter()
            .filter(|line| {
                until
                    .iter()
                    .any(|(branch, upto)| line.branch == *branch && line.n <= *upto)
            })
            .collect()
    }
}

fn calls(commit: &Commit, name: &str) -> bool {
    commit.pushes.iter().any(|push| {
        matches!(&push.what, Interaction::Call(call)
            if *call.name == *name || call.seen.as_deref() == Some(name))
    })
}
