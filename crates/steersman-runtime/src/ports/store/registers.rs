//! The accounts, credentials and schedules of the stores in memory.

use super::{
    CONVERSATION, Conversation, Credential, CredentialOf, Delivered, Holdings, Schedule,
    ScheduleId, Scope, SessionId, Token, Webhook, WebhookId,
};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use steersman_machine::stored::ids::{Line, Name, Time};

/// Data of a store apart from its sessions.
pub(super) struct Registers {
    pub(super) digest_key: [u8; 32],
    tokens: BTreeMap<Name, Token>,
    webhooks: BTreeMap<WebhookId, Webhook>,
    delivered: BTreeMap<(WebhookId, SessionId), Delivered>,
    conversations: BTreeMap<(Name, [u8; 32]), Conversation>,
    credentials: BTreeMap<CredentialOf, Credential>,
    schedules: BTreeMap<ScheduleId, Schedule>,
}

impl Default for Registers {
    fn default() -> Self {
        let mut digest_key = [0; 32];
        getrandom::fill(&mut digest_key).expect("the operating system gives random bytes");
        Self {
            digest_key,
            tokens: BTreeMap::new(),
            webhooks: BTreeMap::new(),
            delivered: BTreeMap::new(),
            conversations: BTreeMap::new(),
            credentials: BTreeMap::new(),
            schedules: BTreeMap::new(),
        }
    }
}

impl Registers {
    pub(super) fn token(&self, name: &str) -> Option<Token> {
        self.tokens.get(name).cloned()
    }

    pub(super) fn put_token(&mut self, token: Token) -> bool {
        let is_new = !self.tokens.contains_key(&token.name);
        if is_new {
            self.tokens.insert(token.name.clone(), token);
        }
        is_new
    }

    pub(super) fn tokens(&self, tenant: &str, after: Option<&str>, limit: usize) -> Vec<Token> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let tokens = self.tokens.range::<str, _>((from, Bound::Unbounded));
        let tokens = tokens.map(|(_, token)| token);
        let tokens = tokens.filter(|token| *token.scope.tenant == *tenant);
        tokens.take(limit).cloned().collect()
    }

    pub(super) fn revoke(&mut self, tenant: &str, name: &str, at: Time) -> bool {
        let token = self.tokens.get_mut(name);
        let Some(token) = token.filter(|token| *token.scope.tenant == *tenant) else {
            return false;
        };
        token.revoked.get_or_insert(at);
        true
    }

    pub(super) fn used(&mut self, name: &str, hour: Time) {
        if let Some(token) = self.tokens.get_mut(name) {
            token.used = token.used.max(Some(hour));
        }
    }

    pub(super) fn webhooks(&self, tenant: &str) -> Vec<Webhook> {
        let hooks = self.webhooks.values();
        let hooks = hooks.filter(|hook| *hook.id.tenant == *tenant);
        hooks.cloned().collect()
    }

    pub(super) fn all_webhooks(&self, after: Option<&WebhookId>, limit: usize) -> Vec<Webhook> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let hooks = self.webhooks.range((from, Bound::Unbounded));
        hooks.take(limit).map(|(_, hook)| hook.clone()).collect()
    }

    pub(super) fn mark_webhook(
        &mut self,
        hook: &WebhookId,
        made: Time,
        failing: Option<Arc<str>>,
    ) -> bool {
        let known = self.webhooks.get_mut(hook);
        let Some(known) = known.filter(|known| known.made == made) else {
            return false;
        };
        known.failing = failing;
        true
    }

    pub(super) fn has_webhook(&self, hook: &WebhookId) -> bool {
        self.webhooks.contains_key(hook)
    }

    pub(super) fn put_webhook(&mut self, hook: Webhook) -> bool {
        self.webhooks.insert(hook.id.clone(), hook).is_none()
    }

    pub(super) fn drop_webhook(&mut self, id: &WebhookId) -> bool {
        self.delivered.retain(|(hook, _), _| hook != id);
        self.webhooks.remove(id).is_some()
    }

    pub(super) fn delivered(&self, hook: &WebhookId, session: &str) -> Delivered {
        let cursor = self.delivered.get(&(hook.clone(), session.into()));
        cursor.copied().unwrap_or_default()
    }

    pub(super) fn move_delivered(
        &mut self,
        hook: &WebhookId,
        session: &str,
        from: Delivered,
        to: Delivered,
    ) -> bool {
        let fits = self.delivered(hook, session) == from;
        if fits {
            self.delivered.insert((hook.clone(), session.into()), to);
        }
        fits
    }

    pub(super) fn conversation(&self, tenant: &str, digest: [u8; 32]) -> Option<(SessionId, Line)> {
        let head = self.conversations.get(&(tenant.into(), digest));
        head.map(|head| (head.session.clone(), head.line))
    }

    pub(super) fn put_conversation(&mut self, head: Conversation) {
        let kept = |other: &Conversation| other.at.plus(CONVERSATION) >= head.at;
        self.conversations.retain(|_, other| kept(other));
        let key = (head.tenant.clone(), head.digest);
        self.conversations.insert(key, head);
    }

    /// Counts what a scope has here, and deletes it if `delete` is true. `is_own` tells if a session belongs to the scope.
    pub(super) fn holdings(
        &mut self,
        of: &Scope,
        delete: bool,
        is_own: impl Fn(&str) -> bool,
    ) -> Holdings {
        let is_whole = of.subject.is_none();
        let hooks = |id: &WebhookId| is_whole && id.tenant == of.tenant;
        let found = Holdings {
            tokens: drop_some(&mut self.tokens, delete, |_, token| {
                of.includes(&token.scope)
            }),
            events: 0,
            conversations: drop_some(&mut self.conversations, delete, |_, head| {
                head.tenant == of.tenant && is_own(&head.session)
            }),
            credentials: drop_some(&mut self.credentials, delete, |id, _| {
                of.includes(&id.scope)
            }),
            webhooks: drop_some(&mut self.webhooks, delete, |id, _| hooks(id)),
            schedules: drop_some(&mut self.schedules, delete, |id, _| {
                is_whole && id.tenant == of.tenant
            }),
        };
        drop_some(&mut self.delivered, delete, |(id, _), _| hooks(id));
        found
    }

    pub(super) fn credential(&self, of: &CredentialOf) -> Option<Credential> {
        self.credentials.get(of).cloned()
    }

    pub(super) fn put_credential(
        &mut self,
        of: &CredentialOf,
        before: u64,
        new: Credential,
    ) -> bool {
        let known = self.credentials.get(of).map_or(0, |known| known.version);
        if known == before {
            self.credentials.insert(of.clone(), new);
        }
        known == before
    }

    pub(super) fn drop_credential(&mut self, of: &CredentialOf) -> bool {
        self.credentials.remove(of).is_some()
    }

    pub(super) fn put_schedule(&mut self, schedule: Schedule) -> bool {
        let known = self.schedules.get(&schedule.id);
        if known.is_some_and(|known| known.digest == schedule.digest) {
            return false;
        }
        self.schedules.insert(schedule.id.clone(), schedule);
        true
    }

    pub(super) fn drop_schedule(&mut self, id: &ScheduleId) -> bool {
        self.schedules.remove(id).is_some()
    }

    pub(super) fn schedules(&self, by: Option<Time>, limit: usize) -> Vec<Schedule> {
        let all = self.schedules.values();
        let mut found: Vec<&Schedule> = match by {
            None => all.collect(),
            Some(by) => all
                .filter(|schedule| schedule.next.is_some_and(|next| next <= by))
                .collect(),
        };
        if by.is_some() {
            found.sort_by_key(|schedule| schedule.next);
        }
        found.into_iter().take(limit).cloned().collect()
    }

    pub(super) fn move_schedule(
        &mut self,
        id: &ScheduleId,
        at: Time,
        next: Option<Time>,
        missed: u64,
    ) -> bool {
        let schedule = self.schedules.get_mut(id);
        let Some(schedule) = schedule.filter(|schedule| schedule.next == Some(at)) else {
            return false;
        };
        schedule.last = Some(at);
        schedule.next = next;
        schedule.missed += missed;
        true
    }
}

/// Counts the entries that are meant, and drops them if `drops` is true.
fn drop_some<K: Ord, V>(
    all: &mut BTreeMap<K, V>,
    drops: bool,
    is_meant: impl Fn(&K, &V) -> bool,
) -> u64 {
    let meant = all.iter().filter(|(key, value)| is_meant(key, value));
    let meant = meant.count() as u64;
    if drops {
        all.retain(|key, value| !is_meant(key, value));
    }
    meant
}
