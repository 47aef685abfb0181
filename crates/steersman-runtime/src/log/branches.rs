//! Facts about branches, for callers that look at a session: what moved, and whether a branch can be adopted.

use crate::inbox::{Message, Wanted};
use crate::ledger::Ledger;
use crate::log::inspection::Inspection;
use crate::store::bounds::unfit_label;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use steersman_machine::network::join::JoinOn;
use steersman_machine::snapshot::{Phase, Snapshot};
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::tick::branch::{Both, adoptable, joined};
use steersman_machine::tick::wait::for_branches;
use steersman_machine::view::Cx;
use steersman_machine::view::rating::rated;

impl Inspection {
    /// Returns true if the effect may have happened, no process runs it, and no branch waits for it any more (its branch was
    /// superseded, or the effect was cancelled).
    pub fn is_left_in_doubt(&self, effect: Id) -> bool {
        // Without an owner, the attempts of the last owner are run by nobody either.
        let driven = self.info.owner.is_some();
        let epoch = self.ledger.epoch + u64::from(!driven);
        let mut live = self.branches.iter().filter(|branch| !branch.superseded);
        self.ledger.may_have_happened(effect, epoch)
            && !live.any(|branch| branch.snapshot.effects.contains_key(&effect))
    }

    /// Returns true if the inbox holds a message or an interrupt for this branch.
    pub fn is_spoken_to(&self, branch: Id) -> bool {
        let read = self.inbox.iter().filter_map(|m| Message::decode(m).ok());
        let mut texts = read.filter(|message| message.wanted.is_text());
        texts.any(|message| message.branch.unwrap_or(self.current) == branch)
    }
}

/// Returns why a request about branches would be refused, as far as the log says now. Callers ask this before they put the
/// message into the inbox, so that a refused request leaves no trace. The owner checks again when it takes the message.
pub fn refusal(seen: &Inspection, message: &Message) -> Option<String> {
    match &message.wanted {
        Wanted::Fork { label, .. } => taken_label(&seen.ledger, label.as_ref()),
        Wanted::Rewind { label, .. } => {
            let from = message.branch.unwrap_or(seen.current);
            let taken = taken_label(&seen.ledger, label.as_ref());
            taken.or_else(|| searched(&seen.ledger, from))
        }
        Wanted::Adopt { branch, .. } => {
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
        Wanted::Join {
            branches, on, then, ..
        } => not_joined(seen, branches, on, then.as_ref()),
        _ => None,
    }
}

/// Returns why a person cannot adopt, rewind or make current this branch: it belongs to an open search, which decides itself
/// which of its branches stay.
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

/// Returns why a branch whose scope is one agent cannot become current: nobody would continue the rest of the session.
pub(crate) fn not_all_act(branch: Id) -> String {
    format!("on branch {branch} one agent acts, and not the whole session: adopt it instead")
}

pub(crate) fn taken_label(ledger: &Ledger, label: Option<&Name>) -> Option<String> {
    let label = label?;
    let taken = || format!("a branch `{label}` exists already");
    unfit_label(label).or_else(|| ledger.find_branch(label).map(|_| taken()))
}

/// Returns why the current branch (`here`) cannot adopt another one (`from`): the other branch was adopted already, or the
/// current branch has changed since the fork, and the change would be lost.
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
    // A new binding of values is on both branches, so it does not count as a difference.
    let moved = match from.scope {
        None => !moved_since(here, forked).is_empty(),
        Some(_) => adoptable(here, from).is_err(),
    };
    moved.then(|| lost(here, from, forked))
}

/// Returns the message for a branch that was adopted already. A branch can be adopted only once.
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

/// Describes what an adoption would lose: the current line of this branch, and everything that both branches wrote since the
/// fork, with the lines that wrote it.
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

/// Returns why the current branch cannot wait for these branches: one does not exist, or one waits for the current branch,
/// directly or through others, so that neither would ever end. `snapshots` holds the present snapshots of the branches
/// that have ticks.
pub(crate) fn unjoinable(
    cx: &Cx<'_>,
    ledger: &Ledger,
    snapshots: &BTreeMap<Id, &Snapshot>,
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
        let Some(snapshot) = snapshots.get(&id) else {
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
        let snapshots = live.map(|branch| (branch.id, &branch.snapshot));
        let why = unjoinable(&cx, &seen.ledger, &snapshots.collect(), branches);
        if why.is_some() {
            return why;
        }
    }
    let snapshot = &seen.current_branch()?.snapshot;
    let root = snapshot.agent(snapshot.root?);
    (root.phase != Phase::Resting).then(|| "the session is at work; join when it rests".to_owned())
}

/// Returns the paths of everything that changed on a branch after a line, sorted: agents that moved (`desk/policy`) and entries
/// of state that were written (`state.mood`, `rating of report.md`; for an agent below the root `desk/policy.state.mood`).
pub(crate) fn moved_since(snapshot: &Snapshot, line: Line) -> Vec<String> {
    let agents = snapshot
        .agents
        .values()
        .filter(|agent| agent.stack.last > line);
    let mut paths: Vec<String> = agents.map(|agent| path(snapshot, agent.id)).collect();
    let set = snapshot.state.iter().filter(|(_, cell)| cell.line > line);
    let unset = snapshot.unset.iter().filter(|(_, at)| **at > line);
    let entries = set.map(|(key, _)| key).chain(unset.map(|(key, _)| key));
    paths.extend(entries.map(|key| entry(snapshot, key)));
    paths.sort();
    paths.dedup();
    paths
}

/// Returns the name of a state entry as people write it.
fn entry(snapshot: &Snapshot, (scope, name): &(Id, Name)) -> String {
    if let Some(artifact) = rated(name) {
        format!("rating of {artifact}")
    } else if Some(*scope) == snapshot.root {
        format!("state.{name}")
    } else {
        format!("{}.state.{name}", path(snapshot, *scope))
    }
}

/// Returns the names from the root down to an agent: `desk/policy`. An instance name given by the caller takes precedence.
pub fn path(snapshot: &Snapshot, agent: Id) -> String {
    let mut names = Vec::new();
    let mut at = Some(agent);
    while let Some(agent) = at.and_then(|id| snapshot.agents.get(&id)) {
        names.push(
            agent
                .family
                .named
                .as_ref()
                .unwrap_or(&agent.def)
                .to_string(),
        );
        at = agent.family.parent;
    }
    names.reverse();
    names.join("/")
}
