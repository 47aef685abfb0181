//! Bounds on the size and number of everything that comes into a store from outside, in addition to the bounds on lines
//! ([`steersman_machine::stored::bounds`]). Every store uses these checks. `docs/reference/input.md` has the bounds as a table.
//!
//! Data that was stored before a bound existed is read unchanged.

use super::{
    BoxedEvent, Credential, CredentialOf, InboxMessage, NewMemory, NewSession, ScheduleId, Scope,
    StoreError, Token, Webhook, WebhookId, within,
};
use crate::inbox::Message;
use crate::seal::is_sealed_text;

/// Maximum number of bytes of a session's id. A store with lock files uses the id as a file name.
pub const SESSION_ID: usize = 128;

/// Maximum number of bytes of a session's key, and of the id of a message or an event.
pub const ID: usize = 1024;

/// Maximum number of messages and events that may wait in one inbox.
pub const WAITING: u64 = 10_000;

/// Maximum number of entries of any kind that may wait in one inbox. When messages and events have filled their share, there is
/// still room for answers, decisions and orders, because the session may be waiting for them.
pub(crate) const WAITING_ORDERS: u64 = WAITING + 1_000;

/// Maximum number of events in the box of a store.
pub const BOXED: u64 = 10_000;

/// Number of event ids that a store always remembers. Above it, a store may drop ids whose time is past by the clock of an
/// incoming event: those that end first, and only as many as are too many. So an event with a wrong clock cannot make many
/// remembered ids new again.
pub const SEEN: u64 = 100_000;

/// Maximum number of characters of a branch's name.
pub(crate) const BRANCH_LABEL: usize = 40;

/// Refuses a session id that no store accepts.
///
/// The id is a part of paths, of shell commands and of the program's addresses. It has lower case only, because two ids that differ
/// only in case would be one file on some disks.
///
/// # Errors
/// [`StoreError::BadId`].
pub(crate) fn session_id(id: &str) -> Result<(), StoreError> {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [id.as_bytes().first(), id.as_bytes().last()];
    let fits = id.len() <= SESSION_ID
        && ends.iter().all(|end| end.is_some_and(plain))
        && id.bytes().all(|b| plain(&b) || b"-_.".contains(&b));
    if fits {
        return Ok(());
    }
    Err(bad(
        "session id",
        id,
        format!(
            "it has 1 to {SESSION_ID} of the characters a-z, 0-9, `-`, `_` and `.`, and begins and ends with a letter or a digit"
        ),
    ))
}

/// Refuses any other id, or a key, that no store accepts. `what` names the kind of id for the error.
///
/// # Errors
/// [`StoreError::BadId`].
pub fn id(what: &'static str, id: &str) -> Result<(), StoreError> {
    if (1..=ID).contains(&id.len()) {
        return Ok(());
    }
    let why = format!("it has 1 to {ID} bytes, and this one {}", id.len());
    Err(bad(what, id, why))
}

fn bad(what: &'static str, id: &str, why: String) -> StoreError {
    const SHOWN: usize = 40;
    let mut shown: String = id
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if id.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    StoreError::BadId {
        what,
        id: shown,
        why,
    }
}

/// Refuses a session that no store accepts.
///
/// # Errors
/// [`StoreError::BadId`], [`StoreError::TooLarge`].
pub fn session(new: &NewSession) -> Result<(), StoreError> {
    session_id(&new.id)?;
    scope(&new.scope)?;
    if let Some(key) = &new.key {
        id("session key", key)?;
    }
    new.first.as_ref().map_or(Ok(()), message)
}

/// Refuses a message that no store accepts.
///
/// # Errors
/// [`StoreError::BadId`], [`StoreError::TooLarge`].
pub fn message(message: &InboxMessage) -> Result<(), StoreError> {
    id("message id", &message.id)?;
    within(|| format!("message `{}`", message.id), message.bytes.len())
}

/// Refuses an event that no store accepts.
///
/// # Errors
/// [`StoreError::BadId`], [`StoreError::TooLarge`].
pub fn event(event: &BoxedEvent) -> Result<(), StoreError> {
    id("event id", &event.id)?;
    scope(&event.scope)?;
    let what = || format!("event `{}`", event.id);
    within(what, event.fields.len()).and(within(what, event.message.len()))
}

/// Refuses a memory that no store accepts.
///
/// # Errors
/// [`StoreError::BadId`], [`StoreError::TooLarge`].
pub fn memory(new: &NewMemory) -> Result<(), StoreError> {
    scope(&new.part)?;
    let size = new.key.len() + new.scope.len() + new.name.len() + new.media.len() + sum(&new.tags);
    within(|| format!("the description of memory `{}`", new.key), size)
}

/// Refuses a tenant or a subject that no store accepts. The tenant of a store without tenants is empty; a subject never is.
///
/// # Errors
/// [`StoreError::BadId`].
pub fn scope(scope: &Scope) -> Result<(), StoreError> {
    tenant(&scope.tenant)?;
    let subject = scope.subject.as_ref();
    subject.map_or(Ok(()), |subject| id("subject", subject))
}

fn tenant(tenant: &str) -> Result<(), StoreError> {
    if tenant.is_empty() {
        return Ok(());
    }
    id("tenant", tenant)
}

/// Refuses a token that no store accepts.
///
/// # Errors
/// [`StoreError::BadId`], [`StoreError::TooLarge`].
pub fn token(token: &Token) -> Result<(), StoreError> {
    id("token name", &token.name)?;
    scope(&token.scope)?;
    let lists = [&token.allows, &token.roles, &token.definitions];
    let size = sum(lists.into_iter().flatten()) + token.note.len();
    within(|| format!("the token `{}`", token.name), size)
}

/// Refuses a webhook that no store accepts.
///
/// # Errors
/// [`StoreError::BadId`], [`StoreError::TooLarge`], [`StoreError::Unsealed`].
pub fn webhook(hook: &Webhook) -> Result<(), StoreError> {
    let WebhookId { tenant: of, name } = &hook.id;
    tenant(of)?;
    id("webhook name", name)?;
    let texts = hook.only.iter().chain(&hook.failing).chain([&hook.url]);
    let size = sum(texts.chain(&hook.kinds).chain(&hook.secrets));
    within(|| format!("the webhook `{name}`"), size)?;
    let what = || format!("a secret of the webhook `{name}`");
    hook.secrets.iter().try_for_each(|text| sealed(what, text))
}

/// Refuses a reason why a webhook gets nothing that no store accepts.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub fn failing(hook: &WebhookId, why: Option<&str>) -> Result<(), StoreError> {
    let what = || format!("the reason why the webhook `{}` fails", hook.name);
    within(what, why.map_or(0, str::len))
}

/// Refuses a credential that no store accepts.
///
/// # Errors
/// [`StoreError::BadId`], [`StoreError::TooLarge`], [`StoreError::Unsealed`].
pub fn credential(of: &CredentialOf, new: &Credential) -> Result<(), StoreError> {
    id("server name", &of.server)?;
    scope(&of.scope)?;
    let what = || format!("the credential for `{}`", of.server);
    within(what, new.sealed.len())?;
    sealed(what, &new.sealed)
}

fn sealed(what: impl FnOnce() -> String, text: &str) -> Result<(), StoreError> {
    if is_sealed_text(text) {
        return Ok(());
    }
    Err(StoreError::Unsealed(what()))
}

/// Refuses a schedule that no store accepts.
///
/// # Errors
/// [`StoreError::BadId`].
pub fn schedule(of: &ScheduleId) -> Result<(), StoreError> {
    tenant(&of.tenant)?;
    id("network name", &of.network)?;
    id("schedule name", &of.name)
}

/// Returns the size of texts in a list: their bytes, and four for each text.
fn sum<'a>(texts: impl IntoIterator<Item = &'a std::sync::Arc<str>>) -> usize {
    texts.into_iter().map(|text| text.len() + 4).sum()
}

/// Returns how many messages may wait in an inbox if this one comes in, including this one.
pub fn most_waiting(message: &InboxMessage) -> u64 {
    match Message::decode(message) {
        Ok(message) if !message.wanted.is_text() && !message.wanted.is_event() => WAITING_ORDERS,
        _ => WAITING,
    }
}

/// Returns the error for an inbox without room for one more message.
pub fn full_inbox(session: &str, most: u64) -> StoreError {
    StoreError::Full {
        what: format!("the inbox of session `{session}`"),
        most,
    }
}

/// Returns the error for an event box without room for one more event.
pub fn full_box() -> StoreError {
    StoreError::Full {
        what: "the box of events that nobody waits for".to_owned(),
        most: BOXED,
    }
}

/// Returns why a branch cannot have this name, or `None` if it can.
pub fn unfit_label(label: &str) -> Option<String> {
    let plain = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let is_name = label.starts_with(char::is_alphabetic) && label.chars().all(plain);
    let fits = is_name && label.chars().count() <= BRANCH_LABEL && label != "main";
    (!fits).then(|| {
        format!(
            "a name of a branch begins with a letter and has letters, digits, - and _, {BRANCH_LABEL} at most; `main` is taken"
        )
    })
}
