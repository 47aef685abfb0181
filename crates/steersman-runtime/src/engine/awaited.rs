//! Followers of sessions that nobody drives here: they hear of it when this process begins to.

use crate::engine::{Inner, View};
use crate::feed::{Follower, Owners};
use crate::store::SessionId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::Notify;

/// Notified when this process begins to drive a session, for each session that somebody follows.
#[derive(Default)]
pub(crate) struct Awaited(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    by_session: HashMap<SessionId, Weak<Notify>>,
    /// Number of sessions at which those that nobody follows any more are removed.
    bound: usize,
}

/// Fewest sessions at which those that nobody follows any more are removed.
const FEW: usize = 64;

impl Awaited {
    /// Wakes the followers of a session.
    pub(crate) fn begins(&self, session: &str) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(begins) = waiting.by_session.get(session).and_then(Weak::upgrade) {
            begins.notify_waiters();
        }
    }

    fn of(&self, session: &SessionId) -> Arc<Notify> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(begins) = waiting.by_session.get(session).and_then(Weak::upgrade) {
            return begins;
        }
        if waiting.by_session.len() >= waiting.bound {
            waiting.by_session.retain(|_, one| one.strong_count() > 0);
            waiting.bound = FEW.max(waiting.by_session.len() * 2);
        }
        let begins = Arc::new(Notify::new());
        let weak = Arc::downgrade(&begins);
        waiting.by_session.insert(session.clone(), weak);
        begins
    }
}

/// The owners of sessions in this process, as far as a view of the store shows them. Keeps nothing alive.
pub(crate) struct Here(pub(crate) Weak<Inner>, pub(crate) Option<Arc<View>>);

impl Owners for Here {
    fn begins(&self, session: &SessionId) -> Arc<Notify> {
        let inner = self.0.upgrade();
        inner.map_or_else(Arc::default, |inner| inner.awaited.of(session))
    }

    fn follower(&self, session: &SessionId) -> Option<Follower> {
        let session = self.0.upgrade()?.living(session)?;
        let shows = self
            .1
            .as_ref()
            .is_none_or(|view| view.includes(&session.scope));
        (shows && !session.live.is_over()).then(|| session.follower())
    }
}
