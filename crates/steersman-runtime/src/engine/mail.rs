//! Passes the hints of the store on: to each session of this process that has new mail, and to the loop that takes sessions.

use crate::engine::Inner;
use crate::session::ToDriver;
use crate::store::Wake;
use futures::StreamExt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The carrier of hints. While it waits it keeps nothing alive, so a store closes when its last user drops it.
#[derive(Default)]
pub(crate) struct Mail {
    /// Notified when sessions that nobody owns may have something to do.
    pub(crate) looks: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Mail {
    /// Starts the carrier unless it runs. It runs for as long as the engine exists. Until this process is a worker there is
    /// nothing to carry.
    pub(crate) fn is_carried(&self, engine: &Arc<Inner>) {
        let Some(worker) = engine.worker.get() else {
            return;
        };
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        // The task ends with the tokio runtime that it ran on, so it may have to be started again.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            let wakes = engine.store.wakes(worker);
            let (alive, looks) = (engine.alive.clone(), self.looks.clone());
            *task = Some(tokio::spawn(carry(
                Arc::downgrade(engine),
                wakes,
                looks,
                alive,
            )));
        }
    }

    /// Stops the carrier until it is started again. When this returns, the carrier has dropped the store.
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
}

async fn carry(
    engine: Weak<Inner>,
    mut wakes: futures::stream::BoxStream<'static, Wake>,
    looks: Arc<Notify>,
    alive: CancellationToken,
) {
    loop {
        let wake = tokio::select! {
            wake = wakes.next() => wake,
            () = alive.cancelled() => return,
        };
        let (Some(wake), Some(engine)) = (wake, engine.upgrade()) else {
            return;
        };
        match wake {
            Wake::Mail(id) => {
                if let Some(session) = engine.living(&id) {
                    // A driver whose channel is full has work to do, and reads its inbox after that.
                    let _ = session.to.try_send(ToDriver::Look);
                }
            }
            Wake::Look => looks.notify_one(),
            Wake::Lost => engine.loses_all(),
        }
    }
}
