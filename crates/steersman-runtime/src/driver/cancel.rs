//! Cancels: everything that is open ends. Messages to a cancelled branch that were not taken yet are dropped with it.

use super::act::{gone, not_open};
use super::branches::Acted;
use super::draft::{Draft, Offer};
use super::{Job, Stop, What};
use crate::inbox::CancelWhat;
use crate::session::Fate;
use crate::store::InboxMessage;
use std::collections::BTreeSet;
use steersman_machine::snapshot::{Phase, Snapshot};
use steersman_machine::stored::by::By;
use steersman_machine::stored::ids::Id;
use steersman_machine::tick::branch::left_with;
use steersman_machine::tick::effect::{Cancelled, Offered};

/// A cancel of the whole session.
pub(crate) struct Everything {
    message: InboxMessage,
    by: By,
    /// Branches that it has ended.
    ended: BTreeSet<Id>,
    /// The branch that it ends now.
    now: Option<Id>,
}

impl Job<'_, '_> {
    pub(super) fn cancel(
        &mut self,
        message: &InboxMessage,
        what: &CancelWhat,
        by: &By,
        branch: Option<Id>,
    ) -> Acted {
        match what {
            CancelWhat::Effect(effect) => self.cancel_effect(message, *effect, by),
            CancelWhat::Agent(agent) => {
                let what = What::Cancel(Cancelled::Agent(*agent), by.clone());
                self.offer_message(message, branch, what)
            }
            CancelWhat::Branch => self.cancel_branch(message, by, branch),
            CancelWhat::Session => {
                self.cancel_session(message, by);
                Ok(())
            }
        }
    }

    fn cancel_effect(&mut self, message: &InboxMessage, effect: Id, by: &By) -> Acted {
        let out = self.d.effects.out(effect).ok_or_else(|| not_open(effect))?;
        let agent = out.wish.agent;
        let what = match out.wish.call() {
            Some(call) => Cancelled::Call(agent, call),
            None => Cancelled::Agent(agent),
        };
        self.offer_message(message, Some(out.branch), What::Cancel(what, by.clone()))
    }

    /// Ends all branches, the current one first: the branches that its agents opened end with it. The message is taken with the
    /// last line that ends a branch: an owner that takes over before that line finds it in the inbox, and ends the rest.
    fn cancel_session(&mut self, message: &InboxMessage, by: &By) {
        self.d.course.cancels(Some(Everything {
            message: message.clone(),
            by: by.clone(),
            ended: BTreeSet::new(),
            now: None,
        }));
    }

    /// Ends the next branch, or the rest of the one whose cancel was too much for one line.
    pub(super) fn cancel_next(&mut self, all: &Everything) -> Result<(), Stop> {
        if let Some(now) = all.now {
            let waits = |offer: &Offer| matches!(offer.what, What::Cancel(Cancelled::All, _));
            let known = self.d.branches.live().get(&now);
            let has_more = known.is_some_and(|branch| branch.offers.iter().any(waits));
            if self.d.branches.is_fresh(now) && has_more {
                return self.turn(now);
            }
        }
        let mut ended = all.ended.clone();
        ended.extend(all.now);
        let current = self.d.ledger.current;
        let branches = self.d.branches.live().iter();
        let open = branches.filter(|(id, b)| !ended.contains(*id) && is_open(&b.snapshot));
        let mut open: Vec<Id> = open.map(|(id, _)| *id).collect();
        open.sort_by_key(|id| *id != current);
        let mut open = open.into_iter();
        let next = open.next().unwrap_or(current);
        let known = self.d.branches.live().get(&next);
        let with_it = known.map_or_else(BTreeSet::new, |b| left_with(&b.snapshot));
        let mut offer = Offer::new(What::Cancel(Cancelled::All, all.by.clone()));
        if open.all(|other| with_it.contains(&other)) {
            offer.message = Some(all.message.clone());
            offer.ends_others = !ended.is_empty();
            self.offer(next, offer);
            self.d.course.cancels(None);
            return Ok(());
        }
        self.offer(next, offer);
        self.d.course.cancels(Some(Everything {
            message: all.message.clone(),
            by: all.by.clone(),
            ended,
            now: Some(next),
        }));
        self.turn(next)
    }

    /// Ends a branch. Messages that wait for it are dropped when the cancel is taken; later messages are taken.
    fn cancel_branch(&mut self, message: &InboxMessage, by: &By, branch: Option<Id>) -> Acted {
        let id = branch.unwrap_or(self.d.ledger.current);
        let Some(said) = self.d.branches.take_if(id, is_queued) else {
            return Err(gone(id));
        };
        let mut cancel = Offer::new(What::Cancel(Cancelled::All, by.clone()));
        cancel.message = Some(message.clone());
        cancel.drops = said;
        self.offer(id, cancel);
        Ok(())
    }

    /// Drops the messages to a cancelled branch that were not taken.
    pub(super) fn drop_unheard(&mut self, draft: &mut Draft, unheard: Vec<Offer>) {
        for offer in unheard {
            if let (Some(message), Some(text)) = (&offer.message, said_in(&offer.what)) {
                self.drop_said(draft, message, "cancelled", text);
            }
        }
    }

    /// Removes a message that was not taken from the inbox: the line records its text, and its sender is told why.
    pub(super) fn drop_said(
        &mut self,
        draft: &mut Draft,
        message: &InboxMessage,
        ended: &str,
        text: &str,
    ) {
        let why = format!("the branch was {ended} before this was heard");
        draft.refuse(message, &why);
        self.receipt(draft, &message.id, Fate::Refused(format!("{why}: {text}")));
    }

    /// Puts back the messages that a cancel would have dropped, because the cancel was not taken.
    pub(super) fn keep_unheard(&mut self, branch: Option<Id>, unheard: Vec<Offer>) {
        if let Some(id) = branch.filter(|_| !unheard.is_empty()) {
            self.d.branches.offers_again(id, unheard);
        }
    }
}

/// Returns true if an agent in the branch's scope is at work or waits, so that a cancel has something to end.
fn is_open(snapshot: &Snapshot) -> bool {
    let mut agents = snapshot.agents.keys();
    agents.any(|id| snapshot.in_scope(*id) && snapshot.agent(*id).phase != Phase::Resting)
}

/// Returns true for a message or an interrupt that came from the inbox.
fn is_queued(offer: &Offer) -> bool {
    offer.message.is_some() && said_in(&offer.what).is_some()
}

/// Returns the text of an offer that is a message or an interrupt.
pub(super) fn said_in(what: &What) -> Option<&str> {
    match what {
        What::Interrupt(said) => Some(&said.text),
        What::Offer(offered) => match &**offered {
            Offered::Message(said) => Some(&said.text),
            _ => None,
        },
        What::Raw { .. } | What::Cancel(..) => None,
    }
}
