//! Watches the inboxes of all sessions that this process drives, with one read of the store for all of them. A session is
//! woken only if its inbox holds a message, which this or another process may have delivered.

use crate::clock::Clock;
use crate::engine::Inner;
use crate::session::ToDriver;
use crate::store::SessionQuery;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Milliseconds between two reads of the store.
const LOOK: u64 = 50;

/// The watcher of the inboxes. While it waits it keeps nothing alive, so a store closes when its last user drops it.
#[derive(Default)]
pub(crate) struct Mail {
    now: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Mail {
    /// Starts the watcher unless it runs. It runs for as long as the engine exists.
    pub(crate) fn is_carried(&self, engine: &Arc<Inner>) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        // The task ends with the tokio runtime that it ran on, so it may have to be started again.
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

    /// Stops the watcher until it is started again. When this returns, the watcher has dropped the store.
    pub(crate) async fn rests(&self) {
        let task = self
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(task) = task {
            task.abort();
            // The result of an aborted task has no meaning.
            drop(task.await);
        }
    }

    /// Makes the watcher read the store now, because a message was delivered.
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
            // A store that cannot be read now is read again next time. The next write reports the error.
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

/// Tells each driven session with a message in its inbox to read it. Returns false if the sessions could not be listed.
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
            // A driver whose channel is full has work to do, and reads its inbox after that.
            let _ = session.to.try_send(ToDriver::Look);
        }
    }
    true
}
