//! Folding of adoptions, and of changes to calls that stay open (forks, waits, edited arguments).

use super::facts;
use super::values::text_of;
use crate::snapshot::{Agent, Cell, Phase, Snapshot};
use crate::stored::commit::{AdoptedCell, Adoption, CallChange, CallChanged, CellFact, Text};
use crate::stored::ids::{Id, Line, Time};
use crate::stored::interaction::Target;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Snapshot {
    /// Replaces the agents of the scope with those of the adopted branch. The counts that the branch added since the fork are
    /// also added to the agents above the scope.
    pub(crate) fn adopt(&mut self, line: Line, now: Time, adoption: &Adoption, bodies: &[Text]) {
        let agents: BTreeMap<Id, Agent> = adoption
            .agents
            .iter()
            .map(|a| (a.id, facts::agent(a)))
            .collect();
        let Some(top) = agents.values().min_by_key(|a| a.family.path.len()) else {
            return;
        };
        self.count_adopted(top);
        let ours: Vec<Arc<Agent>> = self
            .agents
            .values()
            .filter(|a| self.is_under(a.id, top.id))
            .cloned()
            .collect();
        for agent in &ours {
            let calls: Vec<(Id, Option<Id>)> = self
                .exchange(agent.id)
                .map(|c| (c.call.id, c.effect))
                .collect();
            for (call, effect) in calls {
                if let Some(effect) = effect {
                    self.drop_effect(now, effect);
                }
                self.remove_call(agent.id, call);
            }
            if let Some(owed) = agent.stack.owed {
                self.drop_effect(now, owed);
            }
        }
        let mut kept = Vec::new();
        for agent in ours.iter().filter(|a| !agents.contains_key(&a.id)) {
            // An agent that was started on this branch since the fork and rests (a chooser) stays, so that it can be read. One
            // that works is removed, because nothing waits for it. `ours` lists parents before their children.
            let orphan = agent
                .family
                .parent
                .is_some_and(|p| !self.agents.contains_key(&p));
            if orphan || agent.phase != Phase::Resting {
                self.agents.remove(&agent.id);
            } else {
                kept.push(agent.id);
            }
        }
        for id in kept {
            self.forget_children(id);
        }
        let ids: Vec<Id> = agents.keys().copied().collect();
        for (id, agent) in agents {
            self.agents.insert(id, Arc::new(agent));
        }
        for call in &adoption.calls {
            self.insert_call(facts::call(call, bodies));
        }
        for id in ids {
            self.may_begin_next(id);
        }
        for adopted in &adoption.cells {
            let key = (adopted.scope, adopted.name.clone());
            self.set_cell(line, key, cell(adopted, bodies));
        }
        for artifact in &adoption.artifacts {
            self.add_artifact(line, artifact);
        }
        for mark in &adoption.watermarks {
            self.mark(mark);
        }
    }

    /// Removes children that no longer exist from the list of children that can be continued.
    fn forget_children(&mut self, id: Id) {
        let children = &self.agent(id).family.children;
        if children
            .values()
            .all(|child| self.agents.contains_key(child))
        {
            return;
        }
        let there = children
            .iter()
            .filter(|(_, child)| self.agents.contains_key(*child));
        let there = there.map(|(key, child)| (key.clone(), *child)).collect();
        self.agent_mut(id).family.children = there;
    }

    /// Adds the counts of the branch since the fork to all agents above its top. On this branch the top has not moved since
    /// the fork, so the difference between its two counts is what the adopted branch added.
    fn count_adopted(&mut self, top: &Agent) {
        let Some(here) = self.agents.get(&top.id).cloned() else {
            return;
        };
        let (now, then) = (&top.counters, &here.counters);
        let mut at = here.family.parent;
        while let Some(id) = at {
            let agent = self.agent_mut(id);
            let counters = &mut agent.counters;
            counters.answer.add(&now.answer, &then.answer);
            counters.task.add(&now.task, &then.task);
            counters.session.add(&now.session, &then.session);
            for (name, count) in &top.counters.calls {
                let before = here.counters.calls.get(name).map(Arc::as_ref);
                let (ok, failed) = before.map_or((0, 0), |c| (c.ok, c.failed));
                if (count.ok, count.failed) == (ok, failed) {
                    continue;
                }
                let sum = Arc::make_mut(agent.counters.calls.entry(name.clone()).or_default());
                sum.ok += count.ok.saturating_sub(ok);
                sum.failed += count.failed.saturating_sub(failed);
                if count.ok > ok {
                    sum.args = count.args;
                    sum.result = count.result;
                }
            }
            at = agent.family.parent;
        }
    }

    /// Applies a change to a call that stays open: a fork began, its branches ended, one of them was chosen, a part of a wait
    /// ended or got its key, or a person edited the arguments.
    pub(crate) fn call_changed(&mut self, now: Time, changed: &CallChange) {
        let key = (changed.agent, changed.call);
        match &changed.what {
            CallChanged::Met(part, gave) => {
                let open = self.open_call(changed.agent, changed.call);
                open.met.push((*part, *gave));
                return;
            }
            CallChanged::Edited { approver, .. } => {
                let open = self.open_call(changed.agent, changed.call);
                open.approver = Some(approver.clone());
                return;
            }
            CallChanged::Awaits(part, event) => {
                let open = self.open_call(changed.agent, changed.call);
                open.keys.push((*part, *event));
                return;
            }
            CallChanged::Began(_) | CallChanged::Ended(_) | CallChanged::Chose(..) => {}
        }
        self.begin(changed.agent, changed.call);
        // The person or agent that was asked to choose has answered.
        let open = self.open_call(changed.agent, changed.call);
        if let Some(effect) = open.effect.take() {
            self.drop_effect(now, effect);
        }
        let open = self.open_call(changed.agent, changed.call);
        match &changed.what {
            CallChanged::Met(..) | CallChanged::Edited { .. } | CallChanged::Awaits(..) => {}
            CallChanged::Began(branches) => open.call.target = Target::Branches(branches.clone()),
            CallChanged::Ended(ends) => open.ends = Some(*ends),
            CallChanged::Chose(branch, at) => open.chosen = Some((*branch, *at)),
        }
        if open.closed.is_none() {
            self.forks.insert(key);
        }
    }
}

/// Returns the entry that an adoption states. `None` means that the entry is unset or that its value was erased.
fn cell(adopted: &AdoptedCell, bodies: &[Text]) -> Option<Cell> {
    let (mut set, mut expires) = (None, None);
    for fact in &adopted.facts {
        match fact {
            CellFact::Set(body, line) => set = Some((*body, *line)),
            CellFact::Expires(at) => expires = Some(*at),
        }
    }
    let (body, line) = set?;
    Some(Cell {
        value: text_of(body, bodies)?,
        line,
        expires,
    })
}
