//! What the fold does where a branch is adopted, or a fork begins and is chosen from.

use crate::commit::{Adoption, Branched, Branching};
use crate::ids::{Id, Line, Time};
use crate::interaction::Target;
use crate::snapshot::{Agent, Aside, Phase, Snapshot};
use std::sync::Arc;

impl Snapshot {
    /// The scope gets what the adopted branch holds of it. What its agents did there counts for those above it, too.
    pub(crate) fn adopt(&mut self, line: Line, now: Time, adoption: &Adoption) {
        let Some(top) = adoption.agents.iter().min_by_key(|a| a.path.len()) else {
            return;
        };
        self.count_adopted(top);
        let theirs = |id: Id| adoption.agents.iter().find(|a| a.id == id);
        let ours: Vec<Arc<Agent>> = self
            .agents
            .values()
            .filter(|a| a.path.starts_with(&top.path))
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
            if let Some(owed) = agent.owed {
                self.drop_effect(now, owed);
            }
        }
        for agent in ours {
            // Who was born here since and rests (a chooser) stays to be read; who works, works for nobody now. Parents
            // come before their children.
            let orphan = agent.parent.is_some_and(|p| !self.agents.contains_key(&p));
            if theirs(agent.id).is_none() && (orphan || agent.phase != Phase::Resting) {
                self.agents.remove(&agent.id);
            }
        }
        for agent in &adoption.agents {
            self.agents.insert(agent.id, Arc::new(agent.clone()));
        }
        for call in &adoption.calls {
            self.insert_call(call.clone());
        }
        for agent in &adoption.agents {
            self.may_begin_next(agent.id);
        }
        for (key, cell) in &adoption.cells {
            self.set_cell(line, key.clone(), cell.clone());
        }
        for artifact in &adoption.artifacts {
            self.add_artifact(artifact);
        }
        for mark in &adoption.watermarks {
            self.watermarks
                .insert((mark.agent, mark.policy.clone()), mark.exchanges);
        }
    }

    /// Since the fork the top of the scope stood still here, so what it counts more in the branch is what is adopted.
    fn count_adopted(&mut self, top: &Agent) {
        let Some(here) = self.agents.get(&top.id).cloned() else {
            return;
        };
        let (now, then) = (&top.counters, &here.counters);
        let mut at = here.parent;
        while let Some(id) = at {
            let agent = self.agent_mut(id);
            let counters = &mut agent.counters;
            counters.answer.add(&now.answer, &then.answer);
            counters.task.add(&now.task, &then.task);
            counters.session.add(&now.session, &then.session);
            for (name, count) in &top.counts {
                let before = here.counts.get(name).map(Arc::as_ref);
                let (ok, failed) = before.map_or((0, 0), |c| (c.ok, c.failed));
                if (count.ok, count.failed) == (ok, failed) {
                    continue;
                }
                let sum = Arc::make_mut(agent.counts.entry(name.clone()).or_default());
                sum.ok += count.ok.saturating_sub(ok);
                sum.failed += count.failed.saturating_sub(failed);
                if count.ok > ok {
                    sum.args = count.args;
                    sum.result = count.result;
                }
            }
            at = agent.parent;
        }
    }

    fn aside_mut(&mut self, key: (Id, Id)) -> &mut Aside {
        Arc::make_mut(self.asides.entry(key).or_default())
    }

    /// A fork begins, or one of its branches was chosen; a part of a wait is over or has its key; arguments were changed.
    pub(crate) fn branching(&mut self, now: Time, branching: &Branching) {
        let key = (branching.agent, branching.call);
        match &branching.what {
            Branched::Met(part, gave) => {
                self.aside_mut(key).met.push((*part, *gave));
                return;
            }
            Branched::Edited(by) => {
                self.aside_mut(key).approver = Some(by.clone());
                return;
            }
            Branched::Awaits(part, event) => {
                self.aside_mut(key).keys.push((*part, *event));
                return;
            }
            Branched::Began(_) | Branched::Ended(_) | Branched::Chose(..) => {}
        }
        self.begin(branching.agent, branching.call);
        // Who was asked to choose has answered.
        let open = self.open_call(branching.agent, branching.call);
        if let Some(effect) = open.effect.take() {
            self.drop_effect(now, effect);
        }
        let open = self.open_call(branching.agent, branching.call);
        match &branching.what {
            Branched::Met(..) | Branched::Edited(_) | Branched::Awaits(..) => {}
            Branched::Began(branches) => open.call.target = Target::Branches(branches.clone()),
            Branched::Ended(ends) => open.ends = Some(*ends),
            Branched::Chose(branch, at) => open.chosen = Some((*branch, *at)),
        }
        if open.closed.is_none() {
            self.forks.insert(key);
        }
    }
}
