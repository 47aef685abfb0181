//! What can be said of branches by whoever looks: what moved, and whether one can be taken over.

use steersman_machine::ids::{Id, Line};
use steersman_machine::snapshot::Snapshot;

/// What changed on a branch behind a line, by path: agents that moved (`desk/policy`) and entries of state that were
/// written (`state.mood`; of an agent below the root `desk/policy.state.mood`). Sorted.
pub fn moved_since(snapshot: &Snapshot, line: Line) -> Vec<String> {
    let agents = snapshot.agents.values().filter(|agent| agent.last > line);
    let mut paths: Vec<String> = agents.map(|agent| path(snapshot, agent.id)).collect();
    let set = snapshot.state.iter().filter(|(_, cell)| cell.line > line);
    let unset = snapshot.unset.iter().filter(|(_, at)| **at > line);
    let entries = set.map(|(key, _)| key).chain(unset.map(|(key, _)| key));
    paths.extend(entries.map(|(scope, name)| {
        if Some(*scope) == snapshot.root {
            format!("state.{name}")
        } else {
            format!("{}.state.{name}", path(snapshot, *scope))
        }
    }));
    paths.sort();
    paths.dedup();
    paths
}

/// Names from the root down: `desk/policy`, with the name its caller gave where there is one.
pub fn path(snapshot: &Snapshot, agent: Id) -> String {
    let mut names = Vec::new();
    let mut at = Some(agent);
    while let Some(agent) = at.and_then(|id| snapshot.agents.get(&id)) {
        names.push(agent.named.as_ref().unwrap_or(&agent.def).to_string());
        at = agent.parent;
    }
    names.reverse();
    names.join("/")
}
