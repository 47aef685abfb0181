//! Invariants that are checked after every line.

use super::{Fault, World, fault};
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::snapshot::fold::phase;
use steersman_machine::snapshot::{Agent, OpenCall, Phase, Snapshot};
use steersman_machine::stored::commit::{Admission, Admitted, LedgerEntry, LogLine};
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::stored::interaction::{End, Interaction, Target};
use steersman_machine::stored::{bounds, codec};
use steersman_machine::tick::effect::{OfferKind, Wish};
use steersman_machine::tick::{ask_as_of, wishes};

/// Checks a line: the agents that it moved have the phase of their stack, every result on these stacks closes an open call, and
/// the outstanding effects can be rebuilt from the snapshot.
pub(super) fn line(world: &World, n: Line) -> Result<(), Fault> {
    let line = world.line(n);
    let Some(commit) = &line.commit else {
        return Ok(());
    };
    let snapshot = world.at(line.branch);
    let mut moved: BTreeSet<Id> = commit.pushes.iter().map(|p| p.agent).collect();
    moved.extend(
        commit
            .adoption
            .iter()
            .flat_map(|a| a.agents.iter().map(|a| a.id)),
    );
    working(snapshot).map_err(|Fault(text)| Fault(format!("line {n}: {text}")))?;
    for id in moved {
        agent(world, snapshot, id).map_err(|Fault(text)| Fault(format!("line {n}: {text}")))?;
    }
    in_order(line).map_err(|Fault(text)| Fault(format!("line {n}: {text}")))?;
    fits(line).map_err(|Fault(text)| Fault(format!("line {n}: {text}")))?;
    out(world, line.branch).map_err(|Fault(text)| Fault(format!("line {n}: {text}")))
}

/// Checks that the offers of a line stand in the order in which a tick takes them, and that the messages are accepted in the
/// order in which they were taken.
fn in_order(line: &LogLine) -> Result<(), Fault> {
    let Some(commit) = line.commit.as_ref().filter(|c| c.parent.is_some()) else {
        return Ok(());
    };
    let kinds = commit.admitted.iter().filter_map(kind_of);
    let kinds: Vec<OfferKind> = kinds.collect();
    if !kinds.is_sorted() {
        return fault(format!("its offers were taken in the order {kinds:?}"));
    }
    let taken: Vec<&Name> = commit
        .admitted
        .iter()
        .filter_map(|admission| admission.message.as_ref())
        .collect();
    let accepted = line.ledger.iter().filter_map(|entry| match entry {
        LedgerEntry::Accepted { message, .. } => taken.iter().position(|id| *id == message),
        _ => None,
    });
    if accepted.is_sorted() {
        return Ok(());
    }
    fault(format!(
        "its messages were taken in the order {taken:?} and accepted in another"
    ))
}

/// Returns the kind of offer that an admission is of. `None` for one that no tick makes.
fn kind_of(admission: &Admission) -> Option<OfferKind> {
    Some(match (admission.kind, admission.id) {
        (Admitted::Edited, None) => OfferKind::Edit,
        (Admitted::Start, _) => OfferKind::Start,
        (Admitted::Opened | Admitted::Rewound, _) => OfferKind::Opened,
        (Admitted::Adopted, _) => OfferKind::Adopt,
        (Admitted::Outcome, _) => OfferKind::Outcome,
        (Admitted::Edited, Some(_)) => OfferKind::Edited,
        (Admitted::Clock, _) => OfferKind::Clock,
        (Admitted::Ended, _) => OfferKind::Ended,
        (Admitted::Join, _) => OfferKind::Join,
        (Admitted::Interrupt, _) => OfferKind::Interrupt,
        (Admitted::Cancel, _) => OfferKind::Cancel,
        (Admitted::Message, _) => OfferKind::Message,
        (Admitted::Rebound, _) => return None,
    })
}

/// Checks that the line fits into a store.
fn fits(line: &LogLine) -> Result<(), Fault> {
    let least = codec::least(line);
    let mut stored = line.clone();
    codec::spill(&mut stored);
    let (bytes, _) = codec::encode(&stored, &[0; 32], &[0; 16]);
    if bytes.len() > bounds::MAX_LINE {
        return fault(format!("it has {} bytes, {least} at least", bytes.len()));
    }
    Ok(())
}

/// Checks all agents of a branch. In addition to what [`line`] checks, an agent that owes a step has an effect out, and an agent
/// that waits has a call that waits, directly or through other agents, for something outside.
pub fn whole(world: &World, branch: Id) -> Result<(), Fault> {
    let snapshot = world.at(branch);
    for id in snapshot.agents.keys() {
        agent(world, snapshot, *id)?;
        if snapshot.in_scope(*id) {
            owes(world, snapshot, *id)?;
        }
    }
    out(world, branch)
}

/// Checks that an agent has the phase of its stack and the line in which its turn began, and that the stack is sound.
fn agent(world: &World, snapshot: &Snapshot, id: Id) -> Result<(), Fault> {
    let agent = snapshot.agent(id);
    let stack = world.stack_by_line(snapshot, id);
    let (wanted, says) = (began(&stack), agent.turn.began);
    if wanted != says {
        return fault(format!(
            "{id}: its turn began in line {wanted}, the snapshot says {says}"
        ));
    }
    let stack: Vec<Interaction> = stack.into_iter().map(|(_, pushed)| pushed).collect();
    if stack.len() != agent.stack.height as usize {
        return fault(format!(
            "{id} has {} on its stack and says {}",
            stack.len(),
            agent.stack.height
        ));
    }
    let wanted = phase(agent.kind, &stack);
    if wanted != agent.phase {
        return fault(format!(
            "{id} is {:?}, its stack says {wanted:?}: {}",
            agent.phase,
            steersman_machine::trace::letters(&stack)
        ));
    }
    let mut open = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for interaction in &stack {
        match interaction {
            Interaction::Call(call) => {
                if !seen.insert(call.id) {
                    return fault(format!("{id} opens call {} twice", call.id));
                }
                open.insert(call.id);
            }
            Interaction::Result(result) => {
                if !open.remove(&result.call) {
                    return fault(format!(
                        "{id} closes call {}, which is not open",
                        result.call
                    ));
                }
            }
            Interaction::AssistantMessage { .. } | Interaction::UserMessage { .. }
                if !open.is_empty() =>
            {
                return fault(format!(
                    "{id}: an exchange is split: {}",
                    steersman_machine::trace::letters(&stack)
                ));
            }
            Interaction::Finished { .. } if !open.is_empty() => {
                return fault(format!(
                    "{id} ends with open calls: {}",
                    steersman_machine::trace::letters(&stack)
                ));
            }
            Interaction::AssistantMessage { .. }
            | Interaction::UserMessage { .. }
            | Interaction::Route(_)
            | Interaction::Summary(_)
            | Interaction::Earlier(_)
            | Interaction::Finished { .. } => {}
        }
    }
    let held: BTreeSet<Id> = snapshot
        .exchange(id)
        .filter(|c| c.closed.is_none())
        .map(|c| c.call.id)
        .collect();
    if held != open || agent.stack.open as usize != open.len() {
        return fault(format!(
            "{id}: its stack has {open:?} open, the snapshot {held:?}"
        ));
    }
    Ok(())
}

/// Returns the line in which the newest turn of a whole stack began.
fn began(stack: &[(Line, Interaction)]) -> Line {
    let (mut rests, mut began) = (true, Line::NONE);
    for (line, pushed) in stack {
        match pushed {
            Interaction::Finished {
                end: End::Turn | End::Task,
                ..
            } => rests = true,
            Interaction::Finished {
                end: End::Draft, ..
            }
            | Interaction::Summary(_)
            | Interaction::Earlier(_) => {}
            Interaction::UserMessage { .. }
            | Interaction::AssistantMessage { .. }
            | Interaction::Call(_)
            | Interaction::Result(_)
            | Interaction::Route(_) => {
                if std::mem::take(&mut rests) {
                    began = *line;
                }
            }
        }
    }
    began
}

/// Checks that each agent counts the effects at work for it and for all agents it started. Its clock depends on that count.
fn working(snapshot: &Snapshot) -> Result<(), Fault> {
    let mut out: BTreeMap<Id, u32> = BTreeMap::new();
    for effect in snapshot.effects.values().filter(|e| snapshot.is_work(e)) {
        let mut at = Some(effect.agent);
        while let Some(id) = at {
            *out.entry(id).or_default() += 1;
            at = snapshot.agent(id).family.parent;
        }
    }
    for (id, agent) in &snapshot.agents {
        let (says, is) = (agent.counters.working, out.get(id).copied());
        if says != is.unwrap_or(0) {
            return fault(format!(
                "{id} counts {says} effects at work, out are {is:?}"
            ));
        }
    }
    Ok(())
}

/// Checks that the outstanding effects are those of the snapshot, and that their wishes can be rebuilt from it.
fn out(world: &World, branch: Id) -> Result<(), Fault> {
    let snapshot = world.at(branch);
    let as_asked = |mut wish: Wish| {
        let then = world.after(world.asked_at(wish.id));
        ask_as_of(&world.cx(), &then, snapshot, &mut wish);
        (wish.id, wish)
    };
    let rebuilt: BTreeMap<Id, Wish> = wishes(&world.cx(), snapshot)
        .into_iter()
        .map(as_asked)
        .collect();
    let out: BTreeMap<Id, &Wish> = world
        .out()
        .iter()
        .filter(|(_, o)| o.branch == branch)
        .map(|(id, o)| (*id, &o.wish))
        .collect();
    if !rebuilt.keys().eq(out.keys()) {
        let (rebuilt, out): (Vec<_>, Vec<_>) = (rebuilt.keys().collect(), out.keys().collect());
        return fault(format!("out are {out:?}, rebuilt {rebuilt:?}"));
    }
    for (id, wish) in rebuilt {
        if wish != *out[&id] {
            return fault(format!(
                "{id} was wished as {:?}, rebuilt as {wish:?}",
                out[&id]
            ));
        }
    }
    Ok(())
}

/// Checks that an agent that owes a step has an effect out, and that an agent that waits does so for something outside.
fn owes(world: &World, snapshot: &Snapshot, id: Id) -> Result<(), Fault> {
    let agent = snapshot.agent(id);
    match agent.phase {
        Phase::Resting => Ok(()),
        Phase::Thinking | Phase::Routing => {
            let owed = agent
                .stack
                .owed
                .filter(|e| snapshot.effects.contains_key(e));
            if owed.is_none() {
                return fault(format!(
                    "{id} {} is {:?} and nothing is out for it",
                    agent.def, agent.phase
                ));
            }
            Ok(())
        }
        Phase::Calling => {
            for call in snapshot.exchange(id).filter(|c| c.closed.is_none()) {
                waits(world, snapshot, agent, call)?;
            }
            let begun = snapshot.exchange(id).any(|c| c.closed.is_none() && c.begun);
            let queued = snapshot
                .exchange(id)
                .any(|c| c.closed.is_none() && matches!(c.call.target, Target::Agent(_)));
            if begun || queued {
                Ok(())
            } else {
                fault(format!(
                    "{id} {} has open calls and none of them has begun",
                    agent.def
                ))
            }
        }
    }
}

/// Checks that an open call has an effect, or another event that ends it.
fn waits(world: &World, snapshot: &Snapshot, agent: &Agent, open: &OpenCall) -> Result<(), Fault> {
    let id = open.call.id;
    if let Some(effect) = open.effect {
        return if snapshot.effects.contains_key(&effect) {
            Ok(())
        } else {
            fault(format!(
                "call {id} waits for effect {effect}, which is not out"
            ))
        };
    }
    match &open.call.target {
        Target::Agent(child) => {
            let child = snapshot.agent(*child);
            let serves = child.input.serving == Some(id);
            let waits = serves || child.input.queue.contains(&id);
            if !waits {
                return fault(format!(
                    "call {id} to {} is neither served nor queued",
                    child.id
                ));
            }
            if snapshot.unbegun.contains(&(agent.id, id)) && !snapshot.is_next(open) {
                return fault(format!(
                    "call {id} is among the unbegun ones, and not the next of {}",
                    child.id
                ));
            }
            // A call that is queued at a resting agent would never be taken.
            if !serves
                && child.input.serving.is_none()
                && child.phase == Phase::Resting
                && open.begun
            {
                return fault(format!("call {id} is queued at {}, who rests", child.id));
            }
            Ok(())
        }
        Target::Branches(branches) if open.begun => {
            let alive = |b: &Id| {
                let held = world.branches().get(b);
                held.is_some_and(|b| !b.superseded)
            };
            let chooses = open
                .chooser
                .is_some_and(|c| snapshot.agent(c).input.serving == Some(id));
            if chooses || branches.iter().any(alive) {
                Ok(())
            } else {
                fault(format!(
                    "call {id} waits for branches that are all superseded"
                ))
            }
        }
        Target::Wait => Ok(()),
        Target::Tool(_) | Target::Person(_) | Target::Unknown | Target::Branches(_) => {
            if open.begun {
                fault(format!(
                    "call {id} of {} has begun and nothing is out for it",
                    agent.id
                ))
            } else {
                Ok(())
            }
        }
    }
}

/// Describes the first difference of two snapshots.
pub(super) fn difference(a: &Snapshot, b: &Snapshot) -> String {
    let (a, b) = (format!("{a:#?}"), format!("{b:#?}"));
    let mut path: Vec<&str> = Vec::new();
    for (k, (x, y)) in a.lines().zip(b.lines()).enumerate() {
        if x != y {
            path.extend(a.lines().skip(k.saturating_sub(3)).take(3));
            return format!("fold: {} machine: {} near {path:?}", x.trim(), y.trim());
        }
    }
    "one snapshot is longer".to_owned()
}
