//! The session's inbox as its owner has read it.

use crate::store::InboxMessage;
use imbl::OrdMap;
use std::sync::Arc;
use steersman_machine::stored::ids::Name;

/// The session's inbox as its owner has read it.
///
/// Invariants, which [`Mail::recount`] checks: a message is known until a line accepts it; an event that waits is known.
#[derive(Clone, Default)]
pub(crate) struct Mail {
    /// What each message waits for that was read and that no line has taken. `None`: nothing that was told so far.
    known: OrdMap<Name, Option<Arc<str>>>,
    /// Events that match no open wait so far.
    events: Vec<InboxMessage>,
    look: bool,
    /// Look at the inbox again once the pending time-outs are written.
    late: bool,
    /// Number of messages that were ever delivered, as of the last time that the inbox was read to its end.
    delivered: u64,
}

impl Mail {
    /// Returns true if the inbox is to be read now.
    pub(crate) fn looks(&self) -> bool {
        self.look
    }

    /// Returns true if the inbox is to be read once time has passed.
    pub(crate) fn is_late(&self) -> bool {
        self.late
    }

    pub(crate) fn knows(&self, id: &Name) -> bool {
        self.known.contains_key(id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The inbox may hold something new.
    pub(crate) fn look(&mut self) {
        self.look = true;
    }

    /// The inbox was read; its messages are judged next.
    pub(crate) fn was_read(&mut self) {
        self.look = false;
    }

    /// All messages were judged. This many were ever delivered: one that arrives from now on makes the session due for an owner.
    pub(crate) fn was_judged(&mut self, delivered: u64) {
        self.delivered = delivered;
    }

    /// A time was due before a message arrived: the inbox is read again when that time has passed.
    pub(crate) fn waits_for_time(&mut self) {
        self.late = true;
    }

    pub(crate) fn time_passed(&mut self) {
        self.late = false;
        self.look = true;
    }

    /// A message is judged now.
    pub(crate) fn judges(&mut self, message: &InboxMessage) {
        self.known.insert(message.id.clone(), None);
    }

    /// A message waits for this.
    pub(crate) fn waits(&mut self, id: &Name, why: &str) {
        if let Some(known) = self.known.get_mut(id) {
            *known = Some(why.into());
        }
    }

    /// Returns what a message waits for.
    pub(crate) fn waits_for(&self, id: &Name) -> Option<&str> {
        self.known.get(id)?.as_deref()
    }

    /// A line accepts a message.
    pub(crate) fn accepts(&mut self, id: &Name) {
        self.known.remove(id);
    }

    /// Nothing waits for these events so far.
    pub(crate) fn events_wait(&mut self, events: impl IntoIterator<Item = InboxMessage>) {
        self.events.extend(events);
    }

    /// Takes the events that matched no wait, to match them again.
    pub(crate) fn take_events(&mut self) -> Vec<InboxMessage> {
        std::mem::take(&mut self.events)
    }

    /// Takes out what is kept. `parks`: no message is known.
    pub(crate) fn closes(&mut self, parks: bool) -> Self {
        let all = std::mem::take(self);
        if parks {
            return Self {
                delivered: all.delivered,
                ..Self::default()
            };
        }
        all
    }

    /// Checks the invariants. `accepted`: a line accepted the message.
    pub(crate) fn recount(&self, accepted: impl Fn(&Name) -> bool) -> Result<(), String> {
        if let Some(id) = self.known.keys().find(|id| accepted(id)) {
            return Err(format!("message {id} was accepted and is known still"));
        }
        match self.events.iter().find(|event| !self.knows(&event.id)) {
            Some(event) => Err(format!("event {} waits and is not known", event.id)),
            None => Ok(()),
        }
    }
}
