//! The accounts port: who may use the sessions of a store from outside, and who is notified of them.
//!
//! Every call names the tenant, except the look-up of a token, which says to which tenant it belongs.

use super::{Scope, SessionId, StoreError};
use crate::Boxed;
use std::sync::Arc;
use steersman_machine::stored::ids::{Line, Name, Time};

/// Milliseconds for which a store keeps the head of a conversation: 90 days.
pub const CONVERSATION: u64 = 90 * 24 * 60 * 60 * 1_000;

/// Tokens, webhooks with their cursors, and heads of conversations.
pub trait Accounts: Send + Sync + 'static {
    /// Returns the random key of the store, for digests that no other store repeats. It never changes, and a copy of the store
    /// has the same key.
    fn digest_key(&self) -> Boxed<'_, Result<[u8; 32], StoreError>>;

    /// Returns the token with this name, also if it was revoked or has expired.
    fn token<'a>(&'a self, name: &'a str) -> Boxed<'a, Result<Option<Token>, StoreError>>;

    /// Stores a new token. Returns false if a token of any tenant has its name.
    fn put_token(&self, token: Token) -> Boxed<'_, Result<bool, StoreError>>;

    /// Returns at most `limit` tokens of a tenant with names after `after`, by name.
    fn tokens<'a>(
        &'a self,
        tenant: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Token>, StoreError>>;

    /// Revokes a token. Returns false if the tenant has no token with this name. The time of the first revocation stays.
    fn revoke<'a>(
        &'a self,
        tenant: &'a str,
        name: &'a str,
        at: Time,
    ) -> Boxed<'a, Result<bool, StoreError>>;

    /// Records that a token was used in the hour that begins at a time. An earlier hour than the recorded one changes nothing.
    fn used<'a>(&'a self, name: &'a str, hour: Time) -> Boxed<'a, Result<(), StoreError>>;

    /// Returns the webhooks of a tenant, by name.
    fn webhooks<'a>(&'a self, tenant: &'a str) -> Boxed<'a, Result<Vec<Webhook>, StoreError>>;

    /// Returns at most `limit` webhooks of all tenants after `after`, by tenant and name.
    fn all_webhooks<'a>(
        &'a self,
        after: Option<&'a WebhookId>,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Webhook>, StoreError>>;

    /// Stores a webhook, in place of the one of this tenant with its name, whose cursors stay. Returns true if it is new.
    fn put_webhook(&self, webhook: Webhook) -> Boxed<'_, Result<bool, StoreError>>;

    /// Sets or clears the reason why nothing is sent to a webhook any more. Returns false, and changes nothing, if the tenant has no
    /// webhook with this name that was made at this time.
    fn mark_webhook<'a>(
        &'a self,
        hook: &'a WebhookId,
        made: Time,
        failing: Option<Arc<str>>,
    ) -> Boxed<'a, Result<bool, StoreError>>;

    /// Deletes a webhook with its cursors. Returns false if the tenant has no webhook with this name.
    fn drop_webhook<'a>(&'a self, hook: &'a WebhookId) -> Boxed<'a, Result<bool, StoreError>>;

    /// Returns the position up to which a webhook was sent the events of a session.
    fn delivered<'a>(
        &'a self,
        hook: &'a WebhookId,
        session: &'a str,
    ) -> Boxed<'a, Result<Delivered, StoreError>>;

    /// Moves the cursor of a webhook in a session. Returns false, and changes nothing, if the cursor is not at `from`, or if the
    /// tenant has no such webhook or session.
    fn move_delivered<'a>(
        &'a self,
        hook: &'a WebhookId,
        session: &'a str,
        from: Delivered,
        to: Delivered,
    ) -> Boxed<'a, Result<bool, StoreError>>;

    /// Returns at most `limit` sessions of the webhook's tenant with lines after its cursor, oldest session first.
    fn behind<'a>(
        &'a self,
        hook: &'a WebhookId,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<SessionId>, StoreError>>;

    /// Returns the session and the line that continue a conversation, by the digest of its messages.
    fn conversation<'a>(
        &'a self,
        tenant: &'a str,
        digest: [u8; 32],
    ) -> Boxed<'a, Result<Option<(SessionId, Line)>, StoreError>>;

    /// Stores the head of a conversation, in place of the one with this digest. Heads that were stored longer than
    /// [`CONVERSATION`] before its time are dropped.
    fn put_conversation(&self, head: Conversation) -> Boxed<'_, Result<(), StoreError>>;

    /// Returns the numbers of what a scope has apart from its sessions and memories ([`Holdings`]), and deletes all of it if `delete` is
    /// true: everything or nothing. Ids of events that were accepted stay known.
    fn holdings<'a>(
        &'a self,
        of: &'a Scope,
        delete: bool,
    ) -> Boxed<'a, Result<Holdings, StoreError>>;
}

/// Numbers of what a scope has apart from its sessions and memories.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Holdings {
    /// Number of its tokens.
    pub tokens: u64,
    /// Number of its events in the event box.
    pub events: u64,
    /// Number of heads of conversations that lead to its sessions.
    pub conversations: u64,
    /// Number of its credentials for servers.
    pub credentials: u64,
    /// Number of its webhooks. They belong to a tenant, so a subject has none.
    pub webhooks: u64,
    /// Number of its schedules. They belong to a tenant, so a subject has none.
    pub schedules: u64,
}

/// A token with which a client uses a server over the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Name of the token: the part that is not secret, unique in the store.
    pub name: Name,
    /// Hash of the secret, keyed by [`Accounts::digest_key`].
    pub hash: [u8; 32],
    /// The tenant, and the subject whose sessions alone the token may use, if there is one.
    pub scope: Scope,
    /// Names of the permissions that the token gives, such as `read`.
    pub allows: Vec<Name>,
    /// Roles in which its owner may act.
    pub roles: Vec<Name>,
    /// Names of the definitions that it may start. Empty means all.
    pub definitions: Vec<Name>,
    /// Time of creation.
    pub made: Time,
    /// Time after which it is invalid, if there is one.
    pub expires: Option<Time>,
    /// Time of the revocation, if it was revoked.
    pub revoked: Option<Time>,
    /// Beginning of the hour in which it was used last, if it ever was.
    pub used: Option<Time>,
    /// Note for people.
    pub note: Arc<str>,
}

/// The identity of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebhookId {
    /// The tenant whose sessions it is notified of.
    pub tenant: Name,
    /// Name of the webhook, unique in its tenant.
    pub name: Name,
}

/// An address that is notified of what happens in the sessions of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Tenant and name.
    pub id: WebhookId,
    /// The URL to which events are sent.
    pub url: Arc<str>,
    /// Kinds of events that are sent. Empty means all.
    pub kinds: Vec<Name>,
    /// Condition on sessions, as lists read it. `None` means all sessions.
    pub only: Option<Arc<str>>,
    /// Sealed secrets that sign deliveries, newest first; two while they are exchanged.
    pub secrets: Vec<Arc<str>>,
    /// Time of creation.
    pub made: Time,
    /// Reason why nothing is sent any more, if that is so.
    pub failing: Option<Arc<str>>,
}

/// Position of a webhook in the events of a session. The default is the position before all events.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delivered {
    /// The last line of which an event was delivered, or [`Line::NONE`].
    pub line: Line,
    /// Number of events of that line that were delivered; `u32::MAX` means all.
    pub events: u32,
}

/// The head of a conversation that clients name by its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// The tenant of the session.
    pub tenant: Name,
    /// Digest of the messages.
    pub digest: [u8; 32],
    /// The session in which it continues.
    pub session: SessionId,
    /// The line at which it continues.
    pub line: Line,
    /// Time of storing.
    pub at: Time,
}
