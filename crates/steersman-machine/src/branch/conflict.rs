//! What two branches both wrote, and whether one of them may be adopted.

use crate::ids::{Id, Line, Name};
use crate::snapshot::{Cell, Snapshot};

/// What two branches both wrote behind the last line that they have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Both {
    /// Agents that moved: where they stand here and there.
    pub stacks: Vec<(Id, Line, Line)>,
    /// Entries of state: the lines that wrote them here and there.
    pub state: Vec<((Id, Name), Line, Line)>,
}

impl Both {
    /// Of a branch and another, behind a line.
    pub fn wrote(here: &Snapshot, there: &Snapshot, behind: Line) -> Self {
        let agents = there.agents.values().filter_map(|agent| {
            let last = here.agents.get(&agent.id)?.last;
            let both = last > behind && agent.last > behind;
            both.then_some((agent.id, last, agent.last))
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

/// Why a branch cannot be adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The agent that acts on it, or one below it, went on here since the fork: the adoption would take its place.
    Moved(Id),
    /// Both wrote these entries of state since the fork.
    Written(Vec<(Id, Name)>),
}

/// Whether `from`, a branch of `target` or of a branch that it was adopted from, may be adopted: since the fork the agents
/// that act on it stood still in the target, and the target has written none of the state entries that the branch wrote.
pub fn adoptable(target: &Snapshot, from: &Snapshot) -> Result<(), Conflict> {
    let fork = from.forked_at;
    let mut agents = from.agents.values().filter(|agent| from.in_scope(agent.id));
    let moved = agents.find(|agent| {
        let here = target.agents.get(&agent.id);
        here.is_some_and(|here| here.last > fork)
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

fn writer(snapshot: &Snapshot, key: &(Id, Name)) -> Line {
    let set = snapshot.state.get(key).map(|cell| cell.line);
    set.or_else(|| snapshot.unset.get(key).copied())
        .unwrap_or(Line::NONE)
}

/// What a branch wrote since the fork.
pub(super) fn written(from: &Snapshot, fork: Line) -> Vec<((Id, Name), Option<Cell>)> {
    let set = from.state.iter().filter(|(_, cell)| cell.line > fork);
    let unset = from.unset.iter().filter(|(_, line)| **line > fork);
    set.map(|(key, cell)| (key.clone(), Some(cell.clone())))
        .chain(unset.map(|(key, _)| (key.clone(), None)))
        .collect()
}
