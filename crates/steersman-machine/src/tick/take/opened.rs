//! Begin of a branch: forked by a person or an agent, or rewound.

use crate::stored::by::By;
use crate::stored::commit::{Admitted, Opening};
use crate::stored::ids::Id;
use crate::stored::interaction::{How, Interaction, Origin, Target};
use crate::stored::outcome::Mapped;
use crate::tick::Tick;
use crate::tick::branch::{self, Renewal};
use crate::tick::effect::{Judge, Opened, Until};
use crate::tick::take::Taken;

impl Tick<'_> {
    /// Takes the first offer of a branch's first line. Its message, if there is one, is taken on the new branch. If that is not
    /// possible, the branch begins without the message, and the offer is listed as left with the reason.
    pub(crate) fn take_opened(&mut self, opened: &Opened) -> Taken {
        if self.snapshot.root.is_none() {
            return Err(Until::refused("there is nothing to fork yet"));
        }
        // An agent that does not act on a branch does not act on branches of it: its owed steps and calls were not carried along.
        let scope = opened.scope.or(opened.fork.map(|(owner, ..)| owner));
        let scope = scope.or(self.snapshot.scope);
        if scope.is_some_and(|s| !self.snapshot.agents.contains_key(&s)) {
            return Err(Until::refused("there is no such agent where it is forked"));
        }
        if scope.is_some_and(|s| !self.snapshot.in_scope(s)) {
            return Err(Until::refused("this agent does not act where it is forked"));
        }
        let branch = match opened.fork {
            Some((owner, call, index, _)) => {
                let forked = self.forked(owner, call, index);
                Some(forked.ok_or(Until::refused("there is no such fork to open a branch of"))?)
            }
            None => None,
        };
        let was_dry = self.snapshot.dry;
        // The judge is made below, as the first thing of this line.
        let above = scope.or(self.snapshot.top());
        let scope = match &opened.judge {
            Some(_) => Some(self.next_id()),
            None => scope,
        };
        let opening = Opening {
            scope,
            dry: opened.dry,
            label: opened.label.clone(),
            of: opened
                .fork
                .map_or(opened.of, |(.., index, of)| Some((index, of))),
        };
        let mut out = branch::out(&self.snapshot, |_| true);
        let parent = self.snapshot.line;
        let kind = if opened.rewound {
            Admitted::Rewound
        } else {
            Admitted::Opened
        };
        self.admit_as(kind, opened.fork.map(|(_, call, ..)| call));
        self.snapshot.open(
            branch.unwrap_or(self.snapshot.branch),
            parent,
            self.now,
            &opening,
        );
        self.commit.opening = Some(opening);
        if let Some(judge) = &opened.judge {
            self.begin_judging(judge, above);
        }
        out.retain(|o| self.snapshot.in_scope(o.agent()));
        if let Some((owner, call, index, of)) = opened.fork {
            self.tell_branch(owner, call, index, of);
        }
        // On a dry branch nothing touched the world, so a live branch of it begins the effects that are owed.
        let how = match (was_dry, opened.dry) {
            (true, true) => Renewal::Dry,
            (true, false) => Renewal::Adoption,
            (false, _) => Renewal::Fork,
        };
        self.renew(&out, how, &opened.known);
        self.renew_choices(|_, _| true);
        match &opened.say {
            Some(said) => self.take_message(said),
            None => Ok(()),
        }
    }

    /// Makes the judge of a branch and gives it its arguments. No call waits for it: its answer is read at the end of the branch.
    fn begin_judging(&mut self, judge: &Judge, above: Option<Id>) {
        let agent = self.make_agent(&judge.agent, above, None);
        let body = self.body(judge.args.to_string());
        let from = Origin::Outside(By::default());
        self.push(agent, Interaction::UserMessage { from, body });
        self.wake(agent);
    }

    /// Returns the branch of this index of an agent's fork.
    fn forked(&self, owner: Id, call: Id, index: u32) -> Option<Id> {
        let open = self.snapshot.call(owner, call)?;
        let Target::Branches(branches) = &open.call.target else {
            return None;
        };
        branches.get(index.checked_sub(1)? as usize).copied()
    }

    /// Closes the fork call on the new branch with a text that says which branch this is.
    fn tell_branch(&mut self, owner: Id, call: Id, index: u32, of: u32) {
        let args = self
            .snapshot
            .call(owner, call)
            .map(|c| self.text(c.call.args));
        let says = args.and_then(|args| branch::instructions(&args).ok());
        let say = says.and_then(|says| says.into_iter().nth(index as usize - 1));
        let text = format!(
            "You are branch {index} of {of}. {}",
            say.unwrap_or_default()
        );
        let mapped = Mapped::plain(How::Done, None, text.trim_end());
        self.close_call(owner, call, mapped);
    }
}
