//! What can be said of branches by whoever looks: what moved, and whether one can be taken over.

use crate::engine::Inspection;
use crate::inbox::Message;
use crate::ledger::Ledger;
use steersman_machine::branch::adoptable;
use steersman_machine::ids::{Id, Line, Name};
use steersman_machine::join::JoinOn;
use steersman_machine::rating::rated;
use steersman_machine::snapshot::{Phase, Snapshot};

impl Inspection {
    /// Whether an effect may have happened on a branch that was left behind, and no process runs it.
    pub fn is_left_in_doubt(&self, effect: Id) -> bool {
        let driven = self.info.owner.is_some();
        let epoch = self.ledger.epoch + u64::from(!driven);
        self.ledger.is_left_in_doubt(effect, epoch)
    }

    /// Whether something that was said to a branch lies in the inbox.
    pub fn is_spoken_to(&self, branch: Id) -> bool {
        let read = self.inbox.iter().filter_map(|m| Message::decode(m).ok());
        let mut opened = read.map(|message| message.opened().0);
        opened.any(|message| match message {
            Message::Say { branch: to, .. } | Message::Interrupt { branch: to, .. } => {
                to.unwrap_or(self.current) == branch
            }
            Message::Sent { branch: to, .. } => to == branch,
            _ => false,
        })
    }
}

/// Why what somebody wants of branches would be refused, as far as the log tells now. Asked before it is put into the
/// inbox, so that what is refused leaves nothing; what changes in between is refused by whoever takes it.
pub fn refusal(seen: &Inspection, message: &Message) -> Option<String> {
    match message {
        Message::Fork { label, .. } | Message::Rewind { label, .. } => {
            taken_label(&seen.ledger, label.as_ref())
        }
        Message::Adopt { branch, .. } => {
            let current = &seen.current_branch()?.snapshot;
            let scoped = seen.ledger.branch(*branch)?.opening.as_ref()?.scope;
            match scoped {
                None => not_chosen(&seen.ledger, current, *branch),
                Some(_) => None,
            }
        }
        Message::Join { branches, then, .. } => not_joined(seen, branches, "all", then.as_ref()),
        Message::JoinOn {
            branches, on, then, ..
        } => not_joined(seen, branches, on, then.as_ref()),
        _ => None,
    }
}

pub(crate) fn taken_label(ledger: &Ledger, label: Option<&Name>) -> Option<String> {
    let label = label?;
    ledger
        .find_branch(label)
        .map(|_| format!("a branch `{label}` exists already"))
}

/// Why a branch on which everybody acts cannot be made current: the current one, which stands so, came to something since the fork.
pub(crate) fn not_chosen(ledger: &Ledger, current: &Snapshot, branch: Id) -> Option<String> {
    let target = ledger.current;
    if branch == target {
        return Some("this branch is current already".to_owned());
    }
    if ledger.branch(branch).is_none() {
        return Some(format!("there is no branch {branch}"));
    }
    let Some(forked) = ledger.common(branch, target) else {
        return Some("these branches have no line in common".to_owned());
    };
    // Values that were bound anew were so on both.
    let paths = moved_since(current, forked);
    (!paths.is_empty()).then(|| {
        format!(
            "{} changed on the current branch since the fork at @{forked}: taking over this branch would lose that",
            paths.join(", ")
        )
    })
}

fn not_joined(seen: &Inspection, branches: &[Id], on: &str, then: Option<&Name>) -> Option<String> {
    let on = match on.parse::<JoinOn>() {
        Ok(on) => on,
        Err(why) => return Some(why),
    };
    if let Err(why) = on.fits(branches.len()) {
        return Some(why);
    }
    let network = seen.network.as_ref();
    if let Some(tool) = then
        && network.is_some_and(|network| !network.tools.contains_key(tool))
    {
        return Some(format!("there is no tool `{tool}`"));
    }
    let snapshot = &seen.current_branch()?.snapshot;
    let root = snapshot.agent(snapshot.root?);
    (root.phase != Phase::Resting).then(|| "the session is at work; join when it rests".to_owned())
}

/// What changed on a branch behind a line, by path: agents that moved (`desk/policy`) and entries of state that were
/// written (`state.mood`, `rating of report.md`; of an agent below the root `desk/policy.state.mood`). Sorted.
pub fn moved_since(snapshot: &Snapshot, line: Line) -> Vec<String> {
    let agents = snapshot.agents.values().filter(|agent| agent.last > line);
    let mut paths: Vec<String> = agents.map(|agent| path(snapshot, agent.id)).collect();
    let set = snapshot.state.iter().filter(|(_, cell)| cell.line > line);
    let unset = snapshot.unset.iter().filter(|(_, at)| **at > line);
    let entries = set.map(|(key, _)| key).chain(unset.map(|(key, _)| key));
    paths.extend(entries.map(|key| entry(snapshot, key)));
    paths.sort();
    paths.dedup();
    paths
}

/// A state entry as people name it.
fn entry(snapshot: &Snapshot, (scope, name): &(Id, Name)) -> String {
    if let Some(artifact) = rated(name) {
        format!("rating of {artifact}")
    } else if Some(*scope) == snapshot.root {
        format!("state.{name}")
    } else {
        format!("{}.state.{name}", path(snapshot, *scope))
    }
}

/// Why a branch on which one agent acts cannot be adopted by a target: both wrote the same since the fork.
pub(crate) fn not_adoptable(target: &Snapshot, from: &Snapshot) -> Option<String> {
    let both = adoptable(target, from).err()?;
    let mut paths: Vec<String> = both.iter().map(|key| entry(target, key)).collect();
    paths.sort();
    Some(format!(
        "{} changed on the branch and where it is to be adopted since the fork at @{}: taking over this branch would lose that",
        paths.join(", "),
        from.forked_at
    ))
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
