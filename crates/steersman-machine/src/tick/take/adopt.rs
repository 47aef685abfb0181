//! Adoption of a branch, the reverse of a fork.

use crate::snapshot::{OpenCall, Snapshot};
use crate::stored::bounds::ADOPTED;
use crate::stored::codec::{self, in_row};
use crate::stored::codes::Code;
use crate::stored::commit::{Admitted, Adoption};
use crate::stored::ids::{Id, Line};
use crate::stored::interaction::{How, Target};
use crate::stored::outcome::Mapped;
use crate::tick::Tick;
use crate::tick::branch::{self, Conflict, Renewal};
use crate::tick::effect::{Known, Request, Until};
use crate::tick::take::Taken;
use crate::view::rating;
use std::sync::Arc;

impl Tick<'_> {
    /// Adopts a branch. `from` is the branch at line `at`. `call` is the fork call that the adoption closes; `None` means that a
    /// person adopts. A fork call whose choice cannot be adopted closes with the reason; a person is refused.
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
            let fork = fork.ok_or(Until::refused(why))?;
            self.not_adopted(&fork, branch, why);
            return Ok(());
        };
        let adoption = match self.adoptable(branch, from) {
            Ok(adoption) => adoption,
            Err((for_person, why)) => {
                let fork = fork.ok_or(Until::refused(for_person))?;
                self.not_adopted(&fork, branch, &why);
                return Ok(());
            }
        };
        self.admit_as(Admitted::Adopted, Some(branch));
        let replaced: Vec<Id> = self
            .snapshot
            .effects
            .iter()
            .filter(|(_, e)| self.snapshot.is_under(e.agent, top))
            .map(|(id, _)| *id)
            .collect();
        for effect in replaced {
            self.stop(effect);
        }
        let serving = self.agent(top).input.serving;
        self.snapshot
            .adopt(self.line, self.now, &adoption, self.texts.came_in());
        self.commit.adoption = Some(adoption);
        let out = branch::out(from, |agent| from.in_scope(agent));
        let how = if self.snapshot.dry {
            Renewal::Dry
        } else {
            Renewal::Adoption
        };
        self.renew(&out, how, known);
        self.renew_choices(|snapshot, owner| snapshot.is_under(owner, top));
        self.ended_there(top, serving);
        self.wake(top);
        // The adopted branch continues here.
        let branches = match fork.as_deref().map(|fork| &fork.call.target) {
            Some(Target::Branches(branches)) => branches.clone(),
            _ => vec![branch],
        };
        self.requests.push(Request::Supersede { branches });
        Ok(())
    }
}

impl Tick<'_> {
    /// Closes a fork call whose chosen branch the driver cannot offer, so that nothing waits for it forever.
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
        self.admit_as(Admitted::Adopted, Some(branch));
        let text = format!("The branch that was chosen cannot be adopted: {why}.");
        let mapped = Mapped::plain(How::Failed, Some(Code::Failed.text()), text);
        self.close_branches(fork, mapped);
    }

    /// Returns the adoption, or the reasons why there is none, for a person and for a model: an agent of the branch moved
    /// here since the fork, both branches wrote the same entries, or the adoption is larger than a line may be.
    fn adoptable(
        &mut self,
        branch: Id,
        from: &Snapshot,
    ) -> Result<Adoption, (&'static str, String)> {
        match branch::adoptable(&self.snapshot, from) {
            Ok(()) => {}
            Err(Conflict::Moved(agent)) => {
                let for_person = "the branch's agent went on here since the fork";
                let name = self.agent(agent).def.clone();
                return Err((for_person, format!("`{name}` went on here since the fork")));
            }
            Err(Conflict::Written(entries)) => {
                let for_person = "state that the branch wrote was written here since the fork";
                let names = entries.iter().map(|(_, name)| rating::told_entry(name));
                let names: Vec<String> = names.collect();
                let why = format!("{} changed here since the fork", names.join(", "));
                return Err((for_person, why));
            }
        }
        let before = self.texts.came_in().len();
        let adoption = self.adoption(branch, from);
        let values: usize = self.texts.came_in()[before..].iter().map(in_row).sum();
        let head = codec::size(&adoption, self.line);
        if !self.texts.have_room(values) || head > ADOPTED {
            self.texts.forget_behind(before);
            let for_person = "the branch came to more than a line of the log may hold";
            let why =
                format!("it came to {head} bytes and {values} bytes of state, which is too much");
            return Err((for_person, why));
        }
        self.texts.count_values(values);
        Ok(adoption)
    }
}
