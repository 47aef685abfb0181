//! The whole log of a session: its lines with their texts, in which the values of secrets read `(secret)`.

use crate::error::CommandError;
use crate::place::Place;
use crate::texts::Texts;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman::runtime::engine::BranchView;
use steersman::runtime::known::Known;
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::stored::commit::{Commit, LogLine, Text};
use steersman_machine::stored::ids::{Bodies, Line};
use steersman_machine::stored::interaction::Interaction;

/// A log with its texts.
pub(crate) struct Log {
    pub(crate) lines: Vec<Arc<LogLine>>,
    pub(crate) texts: Texts,
    /// The secrets that the session knows.
    pub(crate) known: Arc<Known>,
}

/// Reads the log of a session from disk.
pub(crate) async fn read(place: &Place, session: &str) -> Result<Log, CommandError> {
    let mut feed = place.engine().feed(session, Line::NONE);
    let mut lines = feed.lines().await?;
    let seen = place.engine().inspect(session).await?;
    let known = place.engine().secrets_in(&seen, &lines).await?;
    let mut texts = Texts::default();
    for line in &mut lines {
        texts.learn(line, &**place.store()).await?;
        texts.veil(line, &known);
        known.veil_line(line);
    }
    let known = Arc::new(known);
    Ok(Log {
        lines,
        texts,
        known,
    })
}

impl Log {
    /// Returns the definitions that the session was bound to, by the line of the binding, as the store has them. A
    /// definition that cannot be read is left out; the log is shown without its rules.
    pub(crate) async fn bound(&self, place: &Place, session: &str) -> BTreeMap<Line, Arc<Network>> {
        let mut bound = BTreeMap::new();
        for line in &self.lines {
            if let Some(network) = bound_by(line, &self.texts, place, session).await {
                bound.insert(line.n, network);
            }
        }
        bound
    }

    /// Returns the first line that calls this tool or agent.
    pub(crate) fn first_call(&self, name: &str) -> Option<Line> {
        self.lines
            .iter()
            .find(|line| line.commit.as_ref().is_some_and(|c| calls(c, name)))
            .map(|line| line.n)
    }

    /// Returns the first of these lines that calls this tool or agent.
    pub(crate) fn first_call_of(lines: &[&Arc<LogLine>], name: &str) -> Option<Line> {
        let mut lines = lines.iter();
        let first = lines.find(|line| line.commit.as_ref().is_some_and(|c| calls(c, name)));
        first.map(|line| line.n)
    }

    /// Returns everything that led to the head of a branch, oldest first: the lines on its path, and where a line adopted a
    /// branch, the lines of that branch too.
    pub(crate) fn history(&self, branch: &BranchView, all: &[BranchView]) -> Vec<&Arc<LogLine>> {
        let mut found: BTreeMap<Line, &Arc<LogLine>> = BTreeMap::new();
        let mut todo = self.path(branch, all);
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

    /// Returns a line and all lines before it on its path, oldest first.
    pub(crate) fn up_to(&self, line: Line) -> Vec<&Arc<LogLine>> {
        let mut path = self.back_to(line, Line::NONE);
        path.reverse();
        path
    }

    /// Returns the snapshot after a line, on the branch of that line.
    pub(crate) fn snapshot(&self, line: Line) -> Snapshot {
        let path = self.up_to(line).into_iter();
        path.fold(Snapshot::empty(), |snapshot, line| fold(snapshot, line))
    }

    /// Returns a line and the lines before it on its path, newest first, down to `until`, which is excluded.
    pub(crate) fn back_to(&self, line: Line, until: Line) -> Vec<&Arc<LogLine>> {
        let (mut need, mut path) = (line, Vec::new());
        while need > until
            && let Ok(at) = self.lines.binary_search_by_key(&need, |line| line.n)
        {
            need = self.lines[at].prev;
            path.push(&self.lines[at]);
        }
        path
    }

    /// Returns the lines on a branch's path, oldest first: its own lines, and those of its ancestors up to the forks.
    pub(crate) fn path(&self, branch: &BranchView, all: &[BranchView]) -> Vec<&Arc<LogLine>> {
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

/// Returns the definition that a line binds the session to, if it does and the store has the definition.
pub(crate) async fn bound_by(
    line: &LogLine,
    texts: &Texts,
    place: &Place,
    session: &str,
) -> Option<Arc<Network>> {
    let binding = line.commit.as_ref()?.binding.as_ref()?;
    // Use the stored values: in the shown texts, values that are also secrets are masked.
    let values = match line.bodies.get(binding.values.k() as usize) {
        Some(Text::Here(text)) => text.clone(),
        _ => texts.text(binding.values),
    };
    let session = session.into();
    let network = place.engine().network_of(&session, binding, &values);
    network.await.ok()
}

fn calls(commit: &Commit, name: &str) -> bool {
    commit.pushes.iter().any(|push| {
        matches!(&push.what, Interaction::Call(call)
            if *call.name == *name || call.seen.as_deref() == Some(name))
    })
}
