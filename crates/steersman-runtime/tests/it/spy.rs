//! A store that records what is written, and stops writing where a test says so.

use std::sync::{Arc, Mutex};
use steersman_machine::stored::ids::Line;
use steersman_runtime::Boxed;
use steersman_runtime::store::layer::Layer;
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{Batch, Claim, Store, StoreError};
use tokio::sync::Semaphore;

/// The fate of batches after the last one that is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// The disk never answers.
    Silence,
    /// The disk is full.
    Full,
}

#[derive(Clone)]
pub(crate) struct Spy {
    below: Arc<dyn Store>,
    state: Arc<Mutex<State>>,
}

impl Default for Spy {
    fn default() -> Self {
        Self::over(Arc::new(MemoryStore::new()))
    }
}

#[derive(Default)]
struct State {
    /// Lines that were written, with `urgent` of their batches.
    written: Vec<(Line, bool)>,
    /// Bytes of all lines that were written.
    bytes: usize,
    /// Number of batches that are still written, and the fate of the others.
    left: Option<(usize, Behind)>,
    withheld: usize,
    /// Lines after this number of lines are not on disk before the gate is opened.
    gate: Option<(usize, Arc<Semaphore>)>,
    /// Lines and bytes that are on their way to the disk, and the most at any time.
    ahead: (usize, usize),
    most: (usize, usize),
}

impl Spy {
    /// Records what is written to this store.
    pub(crate) fn over(below: Arc<dyn Store>) -> Self {
        Self {
            below,
            state: Arc::default(),
        }
    }

    /// Makes the disk slow: after this number of lines nothing is on disk before the gate is opened.
    pub(crate) fn stall_behind(&self, lines: usize) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        self.state.lock().unwrap().gate = Some((lines, gate.clone()));
        gate
    }

    /// Lines and bytes that were appended and are not on disk.
    pub(crate) fn ahead(&self) -> (usize, usize) {
        self.state.lock().unwrap().ahead
    }

    /// The most lines and the most bytes that were ahead at any time.
    pub(crate) fn most_ahead(&self) -> (usize, usize) {
        self.state.lock().unwrap().most
    }

    /// Writes this many more batches.
    pub(crate) fn write_only(&self, lines: usize, behind: Behind) {
        self.state.lock().unwrap().left = Some((lines, behind));
    }

    /// Writes all batches again.
    pub(crate) fn mend(&self) {
        let mut state = self.state.lock().unwrap();
        state.left = None;
        state.withheld = 0;
    }

    /// Batches that were not written.
    pub(crate) fn withheld(&self) -> usize {
        self.state.lock().unwrap().withheld
    }

    /// Returns true if the line had to be on disk before what follows from it left the process.
    pub(crate) fn urgent(&self, line: Line) -> bool {
        let state = self.state.lock().unwrap();
        state
            .written
            .iter()
            .any(|(n, urgent)| *n == line && *urgent)
    }

    /// Bytes of all lines that were written so far.
    pub(crate) fn bytes(&self) -> usize {
        self.state.lock().unwrap().bytes
    }

    pub(crate) fn lines(&self) -> usize {
        self.state.lock().unwrap().written.len()
    }
}

impl Layer for Spy {
    fn below(&self) -> &dyn Store {
        &*self.below
    }

    fn append(&self, claim: &Claim, batch: Batch) -> Boxed<'static, Result<(), StoreError>> {
        let mut state = self.state.lock().unwrap();
        match &mut state.left {
            Some((0, behind)) => {
                let behind = *behind;
                state.withheld += 1;
                return match behind {
                    Behind::Silence => Box::pin(std::future::pending()),
                    Behind::Full => Box::pin(std::future::ready(Err(StoreError::Io {
                        place: "the disk".to_owned(),
                        source: Arc::new(std::io::Error::from(std::io::ErrorKind::StorageFull)),
                    }))),
                };
            }
            Some((left, _)) => *left -= 1,
            None => {}
        }
        let lines = batch.rows.iter().map(|row| (row.n, batch.urgent));
        state.written.extend(lines);
        let bytes: usize = batch.rows.iter().map(|row| row.bytes.len()).sum();
        state.bytes += bytes;
        state.ahead = (state.ahead.0 + batch.rows.len(), state.ahead.1 + bytes);
        state.most.0 = state.most.0.max(state.ahead.0);
        state.most.1 = state.most.1.max(state.ahead.1);
        let (gate, rows) = (state.gate.clone(), batch.rows.len());
        let gate = gate.filter(|(lines, _)| state.written.len() > *lines);
        drop(state);
        let (below, all) = (self.below.clone(), self.state.clone());
        // A store may write as soon as it is asked, so it is asked once the gate is open.
        let written = match gate {
            None => below.append(claim, batch),
            Some((_, gate)) => {
                let claim = claim.clone();
                Box::pin(async move {
                    drop(gate.acquire().await.unwrap());
                    below.append(&claim, batch).await
                })
            }
        };
        Box::pin(async move {
            let written = written.await;
            let mut state = all.lock().unwrap();
            state.bytes += bytes;
            state.ahead = (state.ahead.0 - rows, state.ahead.1 - bytes);
            written
        })
    }
}
