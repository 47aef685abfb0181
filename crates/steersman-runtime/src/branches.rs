//! What can be said of branches by whoever looks: what moved, and whether one can be taken over.

use crate::engine::Inspection;
use crate::inbox::Message;
use crate::ledger::Ledger;
use crate::store::bounds::unfit_label;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use steersman_machine::branch::{Both, adoptable, joined};
use steersman_machine::ids::{Id, Line, Name};
use steersman_machine::join::JoinOn;
use steersman_machine::rating::rated;
use steersman_machine::snapshot::{Phase, Snapshot};
use steersman_machine::tick::Cx;
use steersman_machine::wait::for_branches;

impl Inspection {
    /// Whether an effect may have happened that no branch waits for any more (it was left behind, or cancelled), and no
    /// process runs it.
    pub fn is_left_in_doubt(&self, effect: Id) -> bool {
        let driven = self.info.owner.is_some();
        let epoch = self.ledger.epoch + u64::from(!driven);
        let mut live = self.branches.iter().filter(|branch| !branch.superseded);
        self.ledger.may_have_happened(effect, epoch)
            && !live.any(|branch| branch.snapshot.effects.contains_key(&effect))
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
        Message::Fork { label, .. } => taken_label(&seen.ledger, label.as_ref()),
        Message::Rewind { label, branch, .. } => {
            let from = branch.unwrap_or(seen.current);
            let taken = taken_label(&seen.ledger, label.as_ref());
            taken.or_else(|| searched(&seen.ledger, from))
        }
        Message::Adopt { branch, .. } => {
            if let Some(why) = searched(&seen.ledger, *branch) {
                return Some(why);
            }
            let current = &seen.current_branch()?.snapshot;
            let Some(found) = seen.branches.iter().find(|b| b.id == *branch) else {
                return Some(format!("there is no branch {branch}"));
            };
            let mut from = found.snapshot.clone();
            if let Some(common) = seen.ledger.common(*branch, current.branch) {
                from.forked_at = from.forked_at.min(common);
            }
            not_adoptable(&seen.ledger, current, &from)
        }
        Message::Join { branches, then, .. } => not_joined(seen, branches, "all", then.as_ref()),
        Message::JoinOn {
            branches, on, then, ..
        } => not_joined(seen, branches, on, then.as_ref()),
        _ => None,
    }
}

/// Why a branch cannot be taken over or left behind by a person: a search that goes on opened it, or stands on it, and
/// decides itself what becomes of its branches.
pub(crate) fn searched(ledger: &Ledger, branch: Id) -> Option<String> {
    let open = ledger
        .searches()
        .filter(|(_, search)| search.over.is_none());
    let mut open = open.map(|(_, search)| search);
    open.any(|search| search.opened(branch)).then(|| {
        "a search goes on there, and decides which of its branches stay: stop it first (`search SESSION --stop`)"
            .to_owned()
    })
}

/// Why a branch on which one agent acts, with those below it, cannot become current: nobody would go on with the rest.
pub(crate) fn not_all_act(branch: Id) -> String {
    format!("on branch {branch} one agent acts, and not the whole session: adopt it instead")
}

pub(crate) fn taken_label(ledger: &Ledger, label: Option<&Name>) -> Option<String> {
    let label = label?;
    let taken = || format!("a branch `{label}` exists already");
    unfit_label(label).or_else(|| ledger.find_branch(label).map(|_| taken()))
}

/// Why the current branch, which stands so, cannot go on with another, which stands so: it has done that already, or it came
/// to something since the fork that would be lost.
pub(crate) fn not_adoptable(ledger: &Ledger, here: &Snapshot, from: &Snapshot) -> Option<String> {
    let (target, branch) = (here.branch, from.branch);
    if branch == target {
        return Some("this branch is current already".to_owned());
    }
    if let Some(why) = adopted_already(ledger, branch) {
        return Some(why);
    }
    let Some(forked) = ledger.common(branch, target) else {
        return Some("these branches have no line in common".to_owned());
    };
    // Values that were bound anew were so on both.
    let moved = match from.scope {
        None => !moved_since(here, forked).is_empty(),
        Some(_) => adoptable(here, from).is_err(),
    };
    moved.then(|| lost(here, from, forked))
}

/// A branch is adopted once: what it came to is a part of another since.
pub(crate) fn adopted_already(ledger: &Ledger, branch: Id) -> Option<String> {
    let known = ledger.branch(branch)?;
    let adopted = known.adopted?;
    let name = known
        .label()
        .map_or_else(|| branch.to_string(), ToString::to_string);
    Some(format!(
        "branch `{name}` was adopted already at @{}, up to @{}",
        adopted.at, adopted.upto
    ))
}

/// What would be lost with an adoption: how far the current branch has come since the fork, and what both wrote, with the lines
/// that wrote it.
fn lost(here: &Snapshot, from: &Snapshot, forked: Line) -> String {
    let both = Both::wrote(here, from, forked);
    let lines = |path: String, (ours, theirs): (Line, Line)| {
        format!("{path} (@{ours} here, @{theirs} on the branch)")
    };
    let mut stacks: Vec<String> = both
        .stacks
        .iter()
        .map(|(agent, ours, theirs)| lines(path(here, *agent), (*ours, *theirs)))
        .collect();
    let mut state: Vec<String> = both
        .state
        .iter()
        .map(|(key, ours, theirs)| lines(entry(here, key), (*ours, *theirs)))
        .collect();
    stacks.sort();
    state.sort();
    let mut text = format!(
        "the current branch went on since the fork at @{forked} and stands at @{}: taking over this branch would lose that",
        here.line
    );
    for (what, paths) in [("stacks", stacks), ("state", state)] {
        if !paths.is_empty() {
            let _ = write!(text, "; both wrote {what}: {}", paths.join(", "));
        }
    }
    text
}

/// Why the current branch cannot wait for these: one of them is not there, or it waits itself for the current one, over
/// however many branches, and none of them would ever end. `stand`: the branches that have ticks.
pub(crate) fn unjoinable(
    cx: &Cx<'_>,
    ledger: &Ledger,
    stand: &BTreeMap<Id, &Snapshot>,
    branches: &[Id],
) -> Option<String> {
    if let Some(branch) = branches.iter().find(|id| ledger.branch(**id).is_none()) {
        return Some(format!("there is no branch {branch}"));
    }
    let forked = |from: Id| {
        let all = ledger.branches();
        all.filter(move |(_, known)| known.from.is_some_and(|(of, _)| of == from))
    };
    let waits_for = |id: Id| -> BTreeSet<Id> {
        let Some(snapshot) = stand.get(&id) else {
            return BTreeSet::new();
        };
        let mut waits_for = joined(snapshot);
        if !for_branches(cx, snapshot).is_empty() {
            waits_for.extend(forked(id).map(|(branch, _)| branch));
        }
        waits_for
    };
    let here = ledger.current;
    branches.iter().find_map(|branch| {
        let (mut found, mut ahead) = (BTreeSet::new(), vec![*branch]);
        while let Some(next) = ahead.pop() {
            if next == here {
                return Some(if *branch == here {
                    format!("{here} is the branch that would wait: it cannot wait for itself")
                } else {
                    format!("branch {branch} waits for branch {here}: both would wait for ever")
                });
            }
            if found.insert(next) {
                ahead.extend(waits_for(next));
            }
        }
        None
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
    if let Some(network) = network {
        let cx = Cx {
            network,
            bodies: &*seen.history,
        };
        let live = seen.branches.iter().filter(|branch| !branch.superseded);
        let stand = live.map(|branch| (branch.id, &branch.snapshot));
        let why = unjoinable(&cx, &seen.ledger, &stand.collect(), branches);
        if why.is_some() {
            return why;
        }
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
