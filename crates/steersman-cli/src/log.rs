//! The log of a session, read whole: its lines with their texts, in which the values of its secrets read `(secret)`.

use crate::error::CommandError;
use crate::place::Place;
use crate::texts::Texts;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman::runtime::engine::BranchView;
use steersman::runtime::known::Known;
use steersman_machine::commit::{Commit, LogLine, Text};
use steersman_machine::effect::Bodies;
use steersman_machine::fold::fold;
use steersman_machine::ids::Line;
use steersman_machine::interaction::Interaction;
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;

/// What was read.
pub(crate) struct Log {
    pub(crate) lines: Vec<Arc<LogLine>>,
    pub(crate) texts: Texts,
    /// The secrets that the session knows.
    pub(crate) known: Arc<Known>,
}

/// Reads a session's log from disk.
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
    /// The definitions that the session was bound to, by line, as the store has them. One that cannot be read says nothing of its
    /// rules; what was recorded is told all the same.
    pub(crate) async fn bound(&self, place: &Place, session: &str) -> BTreeMap<Line, Arc<Network>> {
        let mut bound = BTreeMap::new();
        for line in &self.lines {
            if let Some(network) = bound_by(line, &self.texts, place, session).await {
                bound.insert(line.n, network);
            }
        }
        bound
    }

    /// The first line that calls this tool or agent.
    pub(crate) fn first_call(&self, name: &str) -> Option<Line> {
        self.lines
            .iter()
            .find(|line| line.commit.as_ref().is_some_and(|c| calls(c, name)))
            .map(|line| line.n)
    }

    /// The first of some lines that calls this tool or agent.
    pub(crate) fn first_call_of(lines: &[&Arc<LogLine>], name: &str) -> Option<Line> {
        let mut lines = lines.iter();
        let first = lines.find(|line| line.commit.as_ref().is_some_and(|c| calls(c, name)));
        first.map(|line| line.n)
    }

    /// What led to where a branch stands, oldest first: the lines on its path, and before a line that took another branch
    /// over those on the way there.
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

    /// A line and all before it on its path, oldest first.
    pub(crate) fn up_to(&self, line: Line) -> Vec<&Arc<LogLine>> {
        let mut path = self.back_to(line, Line::NONE);
        path.reverse();
        path
    }

    /// Where the session stands behind a line, on its branch.
    pub(crate) fn snapshot(&self, line: Line) -> Snapshot {
        let path = self.up_to(line).into_iter();
        path.fold(Snapshot::empty(), |snapshot, line| fold(snapshot, line))
    }

    /// A line and those before it on its path, newest first, as far as another one, which is not among them.
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

    /// The lines on a branch's path, oldest first: its own, and those before it up to where it was forked.
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

/// The definition that a line binds a session to, if it does and the store has it.
pub(crate) async fn bound_by(
    line: &LogLine,
    texts: &Texts,
    place: &Place,
    session: &str,
) -> Option<Arc<Network>> {
    let binding = line.commit.as_ref()?.binding.as_ref()?;
    // As it was bound: in what is shown a value that is also a secret is masked.
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
