//! The store of a simulated process: it fails, answers late, or dies with the process.

use super::clock::Jumping;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steersman_runtime::Boxed;
use steersman_runtime::clock::Clock as _;
use steersman_runtime::store::layer::Layer;
use steersman_runtime::store::{Batch, Claim, Store, StoreError};
use tokio::sync::Notify;

/// Fault of the next batch that is appended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is not written, and the store says so. The same follows for all later batches of that owner.
    Fails,
    /// It is written, and the store says so after this many milliseconds.
    Late(u64),
    /// It is written, and the process dies before it hears of it.
    Written,
    /// The process dies before it is written.
    Lost,
}

/// A store as one process sees it.
pub(super) struct Faulty {
    below: Arc<dyn Store>,
    clock: Jumping,
    state: Mutex<State>,
    /// Told when a fault ends the process.
    pub(super) dies: Notify,
}

#[derive(Default)]
struct State {
    next: Option<Fault>,
    /// The epoch of the owner whose batches fail.
    failed: Option<u64>,
    is_dead: bool,
}

impl Faulty {
    pub(super) fn new(below: Arc<dyn Store>, clock: Jumping) -> Self {
        Self {
            below,
            clock,
            state: Mutex::default(),
            dies: Notify::new(),
        }
    }

    /// Plans what happens with the next batch. `None` takes back what was planned.
    pub(super) fn plan(&self, fault: Option<Fault>) {
        self.state().next = fault;
    }

    /// The process is dead: nothing is written any more, and nothing is answered.
    pub(super) fn die(&self) {
        self.state().is_dead = true;
    }

    pub(super) fn is_dead(&self) -> bool {
        self.state().is_dead
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Layer for Faulty {
    fn below(&self) -> &dyn Store {
        &*self.below
    }

    fn append(&self, claim: &Claim, batch: Batch) -> Boxed<'static, Result<(), StoreError>> {
        let mut state = self.state();
        let fault = state.next.take();
        if state.is_dead {
            return Box::pin(std::future::pending());
        }
        if fault == Some(Fault::Fails) {
            state.failed = Some(claim.epoch);
        }
        if state.failed == Some(claim.epoch) {
            let error = StoreError::Io {
                place: "the simulation".into(),
                source: Arc::new(std::io::Error::other("the disk failed")),
            };
            return Box::pin(std::future::ready(Err(error)));
        }
        if matches!(fault, Some(Fault::Lost | Fault::Written)) {
            state.is_dead = true;
            self.dies.notify_one();
        }
        drop(state);
        if fault == Some(Fault::Lost) {
            return Box::pin(std::future::pending());
        }
        let written = self.below.append(claim, batch);
        let clock = self.clock.clone();
        Box::pin(async move {
            let written = written.await;
            match fault {
                Some(Fault::Written) => std::future::pending().await,
                Some(Fault::Late(millis)) => clock.sleep(millis).await,
                _ => {}
            }
            written
        })
    }
}
