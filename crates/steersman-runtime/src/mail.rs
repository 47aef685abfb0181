//! What others put into inboxes, in this process or another: one look at the store for all sessions that are driven here.
//! Whoever is meant is told; nobody else is woken.

use crate::clock::Clock;
use crate::engine::Inner;
use crate::session::ToDriver;
use crate::store::{SessionQuery, Store};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How often it is looked, in milliseconds.
const LOOK: u64 = 50;

/// The one who looks.
#[derive(Default)]
pub(crate) struct Mail {
    now: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Mail {
    /// Somebody looks from here on, for as long as there is an engine.
    pub(crate) fn is_carried(&self, engine: &Arc<Inner>) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        // The runtime that it ran on may be gone, and it with that.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            let carrier = Carrier {
                engine: Arc::downgrade(engine),
                store: engine.store.clone(),
                clock: engine.clock.clone(),
                alive: engine.alive.clone(),
                now: self.now.clone(),
            };
            *task = Some(tokio::spawn(carrier.carry()));
        }
    }

    /// Somebody put something somewhere: looks at once.
    pub(crate) fn look(&self) {
        self.now.notify_one();
    }
}

struct Carrier {
    engine: Weak<Inner>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    alive: CancellationToken,
    now: Arc<Notify>,
}

impl Carrier {
    async fn carry(self) {
        let mut version = None;
        loop {
            // A store that cannot be read now is read the next time: whoever has to write finds out what is wrong.
            if let Ok(now) = self.store.inbox_version().await
                && version != Some(now)
                && self.tell().await
            {
                version = Some(now);
            }
            tokio::select! {
                () = self.clock.sleep(LOOK) => {}
                () = self.now.notified() => {}
                () = self.alive.cancelled() => return,
            }
            if self.engine.strong_count() == 0 {
                return;
            }
        }
    }

    /// Has all look that have something in their inbox. False if that cannot be known.
    async fn tell(&self) -> bool {
        let lies = SessionQuery {
            inbox: true,
            ..SessionQuery::default()
        };
        let Ok(found) = self.store.sessions(&lies).await else {
            return false;
        };
        let Some(engine) = self.engine.upgrade() else {
            return false;
        };
        for info in found {
            if let Some(session) = engine.driven(&info.id) {
                // What is full is read, and the inbox after that.
                let _ = session.to.try_send(ToDriver::Look);
            }
        }
        true
    }
}
