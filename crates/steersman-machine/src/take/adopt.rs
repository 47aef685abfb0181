//! A branch is adopted: a fork backwards.

use crate::branch::{self, Renewal};
use crate::commit::{Admitted, Branched};
use crate::effect::{Known, Mapped, Request, Until};
use crate::ids::{Id, Line};
use crate::interaction::{How, Target};
use crate::snapshot::{OpenCall, Snapshot};
use crate::take::Taken;
use crate::tick::Tick;
use std::sync::Arc;

impl Tick<'_> {
    /// `from` is the branch as it stood at `at`; `call` the fork call that the adoption closes, none where a person
    /// adopts. A fork call whose choice cannot be adopted closes with the reason; a person is refused.
    pub(crate) fn take_adopt(
        &mut self,
        call: Option<(Id, Id)>,
        branch: Id,
        at: Line,
        from: &Snapshot,
        known: &Known,
    ) -> Taken {
        debug_assert_eq!(
            at, from.line,
            "the snapshot is the branch's at the adopted line"
        );
        let fork = match call {
            Some(call) => Some(self.open_fork(call).ok_or(Until::Stale)?),
            None => None,
        };
        if let Some(fork) = &fork
            && !matches!(&fork.call.target, Target::Branches(b) if b.contains(&branch))
        {
            self.not_adopted(fork, branch, "this fork has no such branch");
            return Ok(());
        }
        let top = from
            .top()
            .filter(|top| self.snapshot.agents.contains_key(top));
        let Some(top) = top.filter(|top| self.snapshot.in_scope(*top)) else {
            let why = "the branch's agent does not act here";
            let fork = fork.ok_or(Until::Refused(why))?;
            self.not_adopted(&fork, branch, why);
            return Ok(());
        };
        if let Err(paths) = branch::adoptable(&self.snapshot, from) {
            let fork = fork.ok_or(Until::Refused(
                "state that the branch wrote was written here since the fork",
            ))?;
            let names: Vec<String> = paths
                .iter()
                .map(|(_, name)| format!("state.{name}"))
                .collect();
            let why = format!("{} changed here since the fork", names.join(", "));
            self.not_adopted(&fork, branch, &why);
            return Ok(());
        }
        self.admit_as(Admitted::Adopted, Some(branch), b"");
        let gone: Vec<Id> = self
            .snapshot
            .effects
            .iter()
            .filter(|(_, e)| below(&self.snapshot, top, e.agent))
            .map(|(id, _)| *id)
            .collect();
        for effect in gone {
            self.stop(effect);
        }
        let serving = self.agent(top).serving;
        let adoption = branch::adoption(&self.snapshot, self.now, branch, from);
        self.snapshot.adopt(self.line, self.now, &adoption);
        self.commit.adoption = Some(adoption);
        self.adopt_asides(from);
        self.changed = true;
        let out = branch::out(from, |agent| from.in_scope(agent));
        let how = if self.snapshot.dry {
            Renewal::Dry
        } else {
            Renewal::Adoption
        };
        self.renew(&out, how, known);
        self.ended_there(top, serving);
        self.wake(top);
        // What is adopted goes on here.
        let branches = match fork.as_deref().map(|fork| &fork.call.target) {
            Some(Target::Branches(branches)) => branches.clone(),
            _ => vec![branch],
        };
        self.requests.push(Request::Supersede { branches });
        Ok(())
    }
}

impl Tick<'_> {
    /// The driver cannot offer what a fork call chose: nobody waits for it for ever.
    pub(crate) fn take_not_adopted(&mut self, call: (Id, Id), branch: Id, why: &str) -> Taken {
        let fork = self.open_fork(call).ok_or(Until::Stale)?;
        self.not_adopted(&fork, branch, why);
        Ok(())
    }

    fn open_fork(&self, (owner, call): (Id, Id)) -> Option<Arc<OpenCall>> {
        let open = self.snapshot.call(owner, call)?;
        let forks = matches!(open.call.target, Target::Branches(_));
        (open.closed.is_none() && forks).then(|| open.clone())
    }

    fn not_adopted(&mut self, fork: &OpenCall, branch: Id, why: &str) {
        self.admit_as(Admitted::Adopted, Some(branch), b"refused");
        let text = format!("The branch that was chosen cannot be adopted: {why}.");
        let mapped = Mapped::plain(How::Failed, Some("failed"), text);
        self.close_branches(fork, mapped);
    }

    /// What became of the adopted calls in the branch became of them here.
    fn adopt_asides(&mut self, from: &Snapshot) {
        for ((owner, call), aside) in &from.asides {
            if !from.in_scope(*owner) || self.snapshot.call(*owner, *call).is_none() {
                continue;
            }
            for (part, key) in &aside.keys {
                self.branch(*owner, *call, Branched::Awaits(*part, *key));
            }
            for (part, gave) in &aside.met {
                self.branch(*owner, *call, Branched::Met(*part, *gave));
            }
            if let Some(by) = &aside.approver {
                self.branch(*owner, *call, Branched::Edited(by.clone()));
            }
        }
    }
}

/// Whether an agent is `top` or one of those that it started.
fn below(snapshot: &Snapshot, top: Id, agent: Id) -> bool {
    let path = &snapshot.agent(top).path;
    snapshot.agent(agent).path.starts_with(path)
}
