//! The inbox port: messages to sessions, and events that name no session.

use super::{Scope, StoreError};
use crate::Boxed;
use crate::inbox::essence;
use std::sync::Arc;
use steersman_machine::stored::ids::{Name, Time};
use steersman_machine::tick::wait;

/// The inboxes of sessions, and the box of events that no session waits for yet.
pub trait Inbox: Send + Sync + 'static {
    /// Puts a message into a session's inbox, durably. Returns false if its id was accepted before, at any time. Fails with
    /// `Repeated` if the id was accepted with another message ([`SaidHash`]), and with `Full` if there is no room
    /// ([`bounds::most_waiting`](super::bounds::most_waiting)). A message beyond a bound
    /// ([`bounds::message`](super::bounds::message)) is refused.
    fn deliver<'a>(
        &'a self,
        session: &'a str,
        message: InboxMessage,
    ) -> Boxed<'a, Result<bool, StoreError>>;

    /// Returns the number of messages that were ever delivered to a session, and the messages in its inbox, oldest first, both as
    /// of the same moment. A store with late duplicates may return a consumed message again: the accepted ids of the ledger
    /// decide. A damaged message comes without its bytes, so that decoding it reports the damage and the other messages are not
    /// held back.
    fn inbox<'a>(
        &'a self,
        session: &'a str,
    ) -> Boxed<'a, Result<(u64, Vec<InboxMessage>), StoreError>>;

    /// Offers an event that names no session to the waits of its scope and network whose key it matches, otherwise puts it into
    /// the event box. Returns false if its id was accepted before and is still remembered
    /// ([`bounds::SEEN`](super::bounds::SEEN)). Fails with `Repeated` if the id was accepted with another event, or with another
    /// message by a session that the event is for. Fails with `Full` if there is no room in the box or in any inbox that it is
    /// for. An event that fails is not delivered to any session, and may be sent again. An event beyond a bound
    /// ([`bounds::event`](super::bounds::event)) is refused.
    fn deliver_event(&self, event: BoxedEvent) -> Boxed<'_, Result<bool, StoreError>>;

    /// Returns the events in the box that match a wait which a session of this scope opens. A damaged event is left there.
    fn boxed_events<'a>(
        &'a self,
        of: &'a Scope,
        network: &'a str,
        event: &'a str,
        key: &'a str,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>>;

    /// Returns at most `limit` events in the box that are not past their time, oldest first: those of the sessions that `of`
    /// includes, or all if it is `None`. Changes nothing: an event past its time is dropped when another event needs room. A
    /// damaged event comes without its message.
    fn event_box<'a>(
        &'a self,
        of: Option<&'a Scope>,
        now: Time,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>>;
}

/// Hash of the message that an id was accepted with, without what differs when the same is said again: the trace that it names, and the
/// text of an answer, which is sealed. A store keeps the hash as long as the id.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SaidHash(pub [u8; 16]);

impl SaidHash {
    /// Returns the hash of a stored message with this id.
    pub fn of(id: &str, bytes: &[u8]) -> Self {
        let bytes = essence(id, bytes);
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(&bytes).as_bytes()[..16]);
        Self(hash)
    }
}

/// A message to a session, from outside its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxMessage {
    /// Id of the message, accepted once in the life of the session.
    pub id: Name,
    /// Time of arrival.
    pub at: Time,
    /// The message, encoded by the driver ([`crate::inbox`]).
    pub bytes: Arc<[u8]>,
}

/// An event that names no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxedEvent {
    /// Id of the event, rendered from its fields.
    pub id: Name,
    /// The tenant whose sessions it is for, and the subject if it is only for the sessions of one subject. Its id is unique in
    /// the tenant.
    pub scope: Scope,
    /// The network that the event is for.
    pub network: Name,
    /// Name of the event.
    pub event: Name,
    /// The encoded message that a matching session finds in its inbox, under this id.
    pub message: Arc<[u8]>,
    /// Canonical JSON of all fields. The key of a wait is canonical JSON of some of them. It matches if each of these is equal.
    pub fields: Arc<str>,
    /// Time of arrival.
    pub at: Time,
    /// Time after which the event is dropped if no wait took it.
    pub until: Time,
}

/// Returns true if an event's fields match a wait's key: each field of the key is present and equal. A key or fields that are
/// not JSON objects match nothing.
pub fn meets(key: &str, fields: &str) -> bool {
    let fields = serde_json::from_str(fields);
    fields.is_ok_and(|fields| wait::is_met(key, &fields))
}
