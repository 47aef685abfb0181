//! Events in the inbox or in the store's box, and the open waits that they are for.

use super::draft::Offer;
use super::{Answered, Heard, Job, OutState, Stop, Want, What};
use crate::inbox::{Message, Wanted};
use crate::store::InboxMessage;
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::stored::outcome::{Came, NewArtifact, Outcome};
use steersman_machine::tick::effect::{EventKey, Offered, Work};
use steersman_machine::tick::wait;
use steersman_machine::tick::wait::Meets;

impl Job<'_, '_> {
    /// Matches events in the inbox and in the store's box with the waits that are open on the current branch.
    pub(super) fn match_events(&mut self) -> Result<(), Stop> {
        let mut events = self.d.mail.take_events().into_iter();
        while let Some(message) = events.next() {
            let Some((event, fields, came)) = event_of(&message) else {
                continue;
            };
            let Ok(fields) = serde_json::from_str::<Json>(&fields) else {
                self.refuse(message, "the fields are not JSON")?;
                self.d.mail.events_wait(events);
                self.d.course.hears_first(Heard::Events);
                return Ok(());
            };
            if let Some((effect, meets)) = self.wait_for(&event, &fields)? {
                self.meet(effect, meets, &event, fields, came, Some(&message));
            } else {
                self.tell_that_it_waits(&message, &event);
                self.d.mail.events_wait([message]);
            }
        }
        self.match_box()
    }

    fn tell_that_it_waits(&mut self, message: &InboxMessage, event: &str) {
        let why = format!("nobody waits for such a `{event}` yet");
        self.waits(message.id.clone(), why);
    }

    fn match_box(&mut self) -> Result<(), Stop> {
        if self.d.bound.network().is_none() {
            return Ok(());
        }
        let open: Vec<(Id, Name, Arc<str>)> = self
            .d
            .effects
            .outs()
            .iter()
            .filter(|(_, out)| {
                out.branch == self.d.ledger.current && matches!(out.state, OutState::Waits)
            })
            .filter_map(|(id, out)| match &out.wish.work {
                Work::Event { any } => Some((*id, any.clone())),
                _ => None,
            })
            .flat_map(|(id, any)| any.into_iter().map(move |one| (id, one.event, one.key)))
            .collect();
        for (effect, event, key) in open {
            let Answered::Box(boxed) = self.wants(Want::Box(event.clone(), key))? else {
                unreachable!("an answer is of the kind that was asked for");
            };
            let boxed = boxed.clone();
            for found in boxed {
                let Ok(fields) = serde_json::from_str::<Json>(&found.fields) else {
                    continue;
                };
                // A wait that was met above takes no other event until it waits again.
                let met = self.wait_for(&event, &fields)?;
                if let Some((_, meets)) = met.filter(|(met, _)| *met == effect) {
                    let message = InboxMessage {
                        id: found.id.clone(),
                        at: found.at,
                        bytes: found.message,
                    };
                    let came = event_of(&message).map_or_else(Vec::new, |(.., came)| came);
                    self.meet(effect, meets, &event, fields, came, None);
                    if let Some(offer) = self.last_offer(effect) {
                        offer.event = Some(found.id);
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns the oldest open wait that an event is for, and the event's effect on it.
    fn wait_for(&self, event: &str, fields: &Json) -> Result<Option<(Id, Meets)>, Stop> {
        for (id, out) in self.d.effects.outs() {
            let Work::Event { any } = &out.wish.work else {
                continue;
            };
            let here = out.branch == self.d.ledger.current && matches!(out.state, OutState::Waits);
            let meets = |one: &EventKey| *one.event == *event && wait::is_met(&one.key, fields);
            if !here || !any.iter().any(meets) {
                continue;
            }
            let snapshot = &self.d.branches.live()[&out.branch].snapshot;
            let meets = self.ask(|cx| wait::event(cx, snapshot, *id, event, fields))?;
            if meets != Meets::Nothing {
                return Ok(Some((*id, meets)));
            }
        }
        Ok(None)
    }

    /// Applies an event to a wait: it ends the wait, or a part of it.
    fn meet(
        &mut self,
        effect: Id,
        meets: Meets,
        event: &str,
        fields: Json,
        came: Vec<NewArtifact>,
        message: Option<&InboxMessage>,
    ) {
        match meets {
            Meets::Over(raw) => {
                self.offer_raw(effect, raw, Vec::new(), message, None);
                if let Some(offer) = self.last_offer(effect) {
                    offer.came = came;
                }
            }
            Meets::Nothing | Meets::Part => {
                let event = event.to_owned();
                let came = Came::Event {
                    event,
                    fields,
                    came,
                };
                self.offer_came(effect, came, message);
            }
        }
    }

    /// Offers the part that arrived for a wait of several parts.
    pub(super) fn offer_came(&mut self, effect: Id, came: Came, message: Option<&InboxMessage>) {
        let Some((branch, attempt)) = self.d.effects.offers_outcome(effect) else {
            return;
        };
        let mut offer = Offer::new(What::Offer(Box::new(Offered::Outcome {
            effect,
            attempt,
            outcome: Outcome::Came(came),
        })));
        offer.message = message.cloned();
        self.offer(branch, offer);
    }
}

/// Returns true if a message is an event.
pub(super) fn is_event(message: &InboxMessage) -> bool {
    event_of(message).is_some()
}

/// Decodes an event of an inbox or of the box: its name, its fields, and the artifacts that came with it.
fn event_of(message: &InboxMessage) -> Option<(Name, String, Vec<NewArtifact>)> {
    let mut message = Message::decode(message).ok()?;
    let came = message.came();
    match message.wanted {
        Wanted::Event { event, fields } => Some((event, fields, came)),
        _ => None,
    }
}
