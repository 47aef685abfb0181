//! The store of a simulated process: it fails, answers late, or stands still or dies with the process.

use super::clock::Jumping;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steersman_machine::stored::ids::Time;
use steersman_runtime::Boxed;
use steersman_runtime::clock::Clock as _;
use steersman_runtime::store::layer::Layer;
use steersman_runtime::store::{Appended, Batch, Claim, Store, StoreError};
use tokio::sync::{Notify, oneshot};

/// Fault of the next batch that is appended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is not written, and the store says so. The same follows for all later batches of that owner.
    Fails,
    /// It is written, and the store says so after this many milliseconds.
    Late(u64),
    /// The process stands still for this many milliseconds, and writes it only then, together with everything that comes meanwhile.
    Still(u64),
    /// It is written, and the process dies before it hears of it.
    Written,
    /// The process dies before it is written.
    Lost,
}

/// A store as one process sees it.
pub(super) struct Faulty {
    below: Arc<dyn Store>,
    clock: Jumping,
    /// Milliseconds that it takes for each batch.
    takes: u64,
    state: Arc<Mutex<State>>,
    /// Told when a fault ends the process, or lets it stand still.
    pub(super) faults: Notify,
}

/// A batch of a process that stands still, and the one that waits for it.
type Held = (Claim, Batch, oneshot::Sender<Appended>);

#[derive(Default)]
struct State {
    next: Option<Fault>,
    /// The epoch of the owner whose batches fail.
    failed: Option<u64>,
    is_dead: bool,
    /// The time until which the process stands still, or stood still.
    still: Option<Time>,
    held: Vec<Held>,
}

impl Faulty {
    pub(super) fn new(below: Arc<dyn Store>, clock: Jumping, takes: u64) -> Self {
        Self {
            below,
            clock,
            takes,
            state: Arc::default(),
            faults: Notify::new(),
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

    /// Returns the time until which the process stands still or stood still.
    pub(super) fn still(&self) -> Option<Time> {
        self.state().still
    }

    /// The process is dead, or stands still or stood still: another one is to go on.
    pub(super) fn is_lost(&self) -> bool {
        let state = self.state();
        state.is_dead || state.still.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes what a process held back while it stood still, in order.
fn goes_on(state: &Mutex<State>, below: &dyn Store) {
    let held = std::mem::take(&mut locked(state).held);
    for (claim, batch, waits) in held {
        // An owner that was killed meanwhile hears nothing of it.
        let _ = waits.send(below.append(&claim, batch));
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
            self.faults.notify_one();
        }
        if let Some(Fault::Still(millis)) = fault {
            state.still = Some(self.clock.now().plus(millis));
            self.faults.notify_one();
        }
        if let Some(until) = state.still.filter(|until| self.clock.now() < *until) {
            let (waits, comes) = oneshot::channel();
            state.held.push((claim.clone(), batch, waits));
            let (below, clock) = (self.below.clone(), self.clock.clone());
            let all = self.state.clone();
            return Box::pin(async move {
                clock.sleep_until(until).await;
                goes_on(&all, &*below);
                match comes.await {
                    Ok(written) => written.await,
                    Err(_) => std::future::pending().await,
                }
            });
        }
        drop(state);
        goes_on(&self.state, &*self.below);
        if fault == Some(Fault::Lost) {
            return Box::pin(std::future::pending());
        }
        let written = self.below.append(claim, batch);
        let (clock, takes) = (self.clock.clone(), self.takes);
        Box::pin(async move {
            let written = written.await;
            match fault {
                Some(Fault::Written) => std::future::pending().await,
                Some(Fault::Late(millis)) => clock.sleep(takes + millis).await,
                _ if takes > 0 => clock.sleep(takes).await,
                _ => {}
            }
            written
        })
    }
}
