//! Cancels: what is open ends. With a branch goes what was said there and not heard yet: it begins nothing any more.

use super::act::{gone, not_open};
use super::branches::Acted;
use super::draft::{Draft, Offer};
use super::{Driver, What};
use crate::inbox::CancelWhat;
use crate::session::Fate;
use crate::store::InboxMessage;
use steersman_machine::effect::{Cancelled, Offered};
use steersman_machine::ids::{Id, Name};

impl Driver {
    pub(super) fn cancel(
        &mut self,
        message: &InboxMessage,
        what: &CancelWhat,
        by: &Name,
        branch: Option<Id>,
    ) -> Acted {
        let cancelled = match what {
            CancelWhat::Effect(effect) => {
                let out = self.outs.get(effect).ok_or_else(|| not_open(*effect))?;
                let agent = out.wish.agent;
                let what = match out.wish.call() {
                    Some(call) => Cancelled::Call(agent, call),
                    None => Cancelled::Agent(agent),
                };
                return self.offer_message(
                    message,
                    Some(out.branch),
                    What::Cancel(what, by.clone()),
                );
            }
            CancelWhat::Agent(agent) => Cancelled::Agent(*agent),
            CancelWhat::Branch => return self.cancel_branch(message, by, branch),
            CancelWhat::Session => {
                let others: Vec<Id> = self.branches.keys().copied().collect();
                for other in others {
                    if other != self.ledger.current {
                        let what = What::Cancel(Cancelled::All, by.clone());
                        self.offer(other, Offer::new(what));
                    }
                }
                Cancelled::All
            }
        };
        self.offer_message(message, branch, What::Cancel(cancelled, by.clone()))
    }

    /// A branch ends. What was said to it before this was, and waits, goes with the cancel: it is dropped where that is taken.
    /// What is said later is heard.
    fn cancel_branch(&mut self, message: &InboxMessage, by: &Name, branch: Option<Id>) -> Acted {
        let id = branch.unwrap_or(self.ledger.current);
        let Some(known) = self.branches.get_mut(&id) else {
            return Err(gone(id));
        };
        let offers = std::mem::take(&mut known.offers).into_iter();
        let (said, rest): (Vec<Offer>, Vec<Offer>) = offers.partition(is_queued);
        known.offers = rest;
        let mut cancel = Offer::new(What::Cancel(Cancelled::All, by.clone()));
        cancel.message = Some(message.clone());
        cancel.drops = said;
        self.offer(id, cancel);
        Ok(())
    }

    /// What was said to a branch that is cancelled.
    pub(super) fn drop_unheard(&mut self, draft: &mut Draft, unheard: Vec<Offer>) {
        for offer in unheard {
            if let (Some(message), Some(text)) = (&offer.message, said_in(&offer.what)) {
                self.drop_said(draft, message, "cancelled", text);
            }
        }
    }

    /// A message that nobody heard is gone from the inbox: the line says what it was, and whoever sent it hears why.
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

    /// The cancel was not taken: what would have gone with it waits as before.
    pub(super) fn keep_unheard(&mut self, branch: Option<Id>, unheard: Vec<Offer>) {
        let Some(id) = branch.filter(|_| !unheard.is_empty()) else {
            return;
        };
        if let Some(branch) = self.branches.get_mut(&id) {
            branch.offers.extend(unheard);
            self.fresh.insert(id);
        }
    }
}

/// Whether it lies in the inbox and would begin something.
fn is_queued(offer: &Offer) -> bool {
    offer.message.is_some() && said_in(&offer.what).is_some()
}

/// What is said where it is a message: it would begin something.
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
