//! What others put into inboxes, in this process or another: one look at the store for all sessions that are driven here.
//! Whoever is meant is told; nobody else is woken.

use crate::clock::Clock;
use crate::engine::Inner;
use crate::session::ToDriver;
use crate::store::SessionQuery;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How often it is looked, in milliseconds.
const LOOK: u64 = 50;

/// The one who looks. While it waits it keeps nothing alive: a store is closed when whoever uses it lets go.
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
                clock: engine.clock.clone(),
                alive: engine.alive.clone(),
                now: self.now.clone(),
            };
            *task = Some(tokio::spawn(carrier.carry()));
        }
    }

    /// Nobody looks any more, until somebody does again; whoever did has let go of the store.
    pub(crate) async fn rests(&self) {
        let task = self
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(task) = task {
            task.abort();
            // how it ended says nothing
            drop(task.await);
        }
    }

    /// Somebody put something somewhere: looks at once.
    pub(crate) fn look(&self) {
        self.now.notify_one();
    }
}

struct Carrier {
    engine: Weak<Inner>,
    clock: Arc<dyn Clock>,
    alive: CancellationToken,
    now: Arc<Notify>,
}

impl Carrier {
    async fn carry(self) {
        let mut version = None;
        loop {
            let Some(engine) = self.engine.upgrade() else {
                return;
            };
            // A store that cannot be read now is read the next time: whoever has to write finds out what is wrong.
            if let Ok(now) = engine.store.inbox_version().await
                && version != Some(now)
                && tell(&engine).await
            {
                version = Some(now);
            }
            drop(engine);
            tokio::select! {
                () = self.clock.sleep(LOOK) => {}
                () = self.now.notified() => {}
                () = self.alive.cancelled() => return,
            }
        }
    }
}

/// Has all look that have something in their inbox. False if that cannot be known.
async fn tell(engine: &Inner) -> bool {
    let lies = SessionQuery {
        inbox: true,
        ..SessionQuery::default()
    };
    let Ok(found) = engine.store.sessions(&lies).await else {
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
