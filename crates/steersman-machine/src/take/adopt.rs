//! A branch is adopted: a fork backwards.

use crate::branch::{self, Renewal};
use crate::commit::{Admitted, Branched};
use crate::effect::{Known, Mapped, Request, Until};
use crate::ids::{Id, Line};
use crate::interaction::{How, Target};
use crate::snapshot::Snapshot;
use crate::take::Taken;
use crate::tick::Tick;

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
        let fork = call.map(|(owner, call)| self.snapshot.call(owner, call).cloned());
        if let Some(fork) = &fork {
            let open = fork.as_ref().filter(|c| c.closed.is_none());
            let Some(Target::Branches(branches)) = open.map(|c| &c.call.target) else {
                return Err(Until::Stale);
            };
            if !branches.contains(&branch) {
                return Err(Until::Refused("this fork has no such branch"));
            }
        }
        let top = from
            .top()
            .filter(|top| self.snapshot.agents.contains_key(top));
        let Some(top) = top.filter(|top| self.snapshot.in_scope(*top)) else {
            return Err(Until::Refused("the branch's agent does not act here"));
        };
        if let Err(paths) = branch::adoptable(&self.snapshot, from) {
            let Some(Some(fork)) = fork else {
                return Err(Until::Refused(
                    "state that the branch wrote was written here since the fork",
                ));
            };
            self.admit_as(Admitted::Adopted, Some(branch), b"refused");
            let names: Vec<String> = paths
                .iter()
                .map(|(_, name)| format!("state.{name}"))
                .collect();
            let text = format!(
                "The branch that was chosen cannot be adopted: {} changed here since the fork.",
                names.join(", ")
            );
            let mapped = Mapped::plain(How::Failed, Some("failed"), text);
            self.close_branches(&fork, mapped);
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
        let branches = match fork {
            Some(Some(fork)) => match &fork.call.target {
                Target::Branches(branches) => branches.clone(),
                _ => vec![branch],
            },
            _ => vec![branch],
        };
        self.requests.push(Request::Supersede { branches });
        Ok(())
    }
}

impl Tick<'_> {
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
