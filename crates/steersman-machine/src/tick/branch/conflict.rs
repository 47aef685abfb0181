//! Conflicts between branches: data that two branches both wrote, and the check before an adoption.

use crate::snapshot::{Cell, Snapshot};
use crate::stored::ids::{Id, Line, Name};

/// Data that two branches both wrote after the last line that they have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Both {
    /// Agents that moved on both: agent, its last line here, its last line there.
    pub stacks: Vec<(Id, Line, Line)>,
    /// Entries of state that both wrote: entry, line that wrote it here, line that wrote it there.
    pub state: Vec<((Id, Name), Line, Line)>,
}

impl Both {
    /// Compares two branches. `behind` is the last line that they have in common.
    pub fn wrote(here: &Snapshot, there: &Snapshot, behind: Line) -> Self {
        let agents = there.agents.values().filter_map(|agent| {
            let last = here.agents.get(&agent.id)?.stack.last;
            let both = last > behind && agent.stack.last > behind;
            both.then_some((agent.id, last, agent.stack.last))
        });
        let cells = written(there, behind).into_iter().filter_map(|(key, _)| {
            let lines = (writer(here, &key), writer(there, &key));
            (lines.0 > behind).then_some((key, lines.0, lines.1))
        });
        Self {
            stacks: agents.collect(),
            state: cells.collect(),
        }
    }
}

/// Reason why a branch cannot be adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// This agent acts on the branch, and it moved here since the fork. The adoption would replace its stack.
    Moved(Id),
    /// Both branches wrote these entries of state since the fork.
    Written(Vec<(Id, Name)>),
}

/// Checks whether `from` may be adopted into `target`, from which it was forked (directly, or from a branch that was adopted).
/// The agents that act on `from` must not have moved in the target since the fork, and the target must not have written a state
/// entry that `from` wrote.
pub fn adoptable(target: &Snapshot, from: &Snapshot) -> Result<(), Conflict> {
    let fork = from.forked_at;
    let mut agents = from.agents.values().filter(|agent| from.in_scope(agent.id));
    let moved = agents.find(|agent| {
        let here = target.agents.get(&agent.id);
        here.is_some_and(|here| here.stack.last > fork)
    });
    if let Some(agent) = moved {
        return Err(Conflict::Moved(agent.id));
    }
    let written: Vec<_> = written(from, fork)
        .into_iter()
        .map(|(key, _)| key)
        .filter(|key| writer(target, key) > fork)
        .collect();
    if written.is_empty() {
        Ok(())
    } else {
        Err(Conflict::Written(written))
    }
}

/// Returns the line that set or unset a state entry last.
fn writer(snapshot: &Snapshot, key: &(Id, Name)) -> Line {
    let set = snapshot.state.get(key).map(|cell| cell.line);
    set.or_else(|| snapshot.unset.get(key).copied())
        .unwrap_or(Line::NONE)
}

/// Returns the state entries that a branch wrote since the fork. `None` means that the entry was unset.
pub(super) fn written(from: &Snapshot, fork: Line) -> Vec<((Id, Name), Option<Cell>)> {
    let set = from.state.iter().filter(|(_, cell)| cell.line > fork);
    let unset = from.unset.iter().filter(|(_, line)| **line > fork);
    set.map(|(key, cell)| (key.clone(), Some(cell.clone())))
        .chain(unset.map(|(key, _)| (key.clone(), None)))
        .collect()
}
