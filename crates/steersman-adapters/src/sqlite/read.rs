//! A small pool of connections that only read, each with a thread of its own, so that no async thread waits for a disk; and one
//! connection for callers that may block.

use rusqlite::Connection;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{Semaphore, oneshot};

type Job = Box<dyn FnOnce(&Connection) + Send>;

/// Maximum number of reads that wait for a thread; further callers wait asynchronously.
const WAITING: usize = 256;

pub(super) struct Readers {
    /// `None` once the pool has ended: callers that still wait then get no result.
    jobs: Arc<Mutex<Option<SyncSender<Job>>>>,
    room: Arc<Semaphore>,
    threads: Vec<JoinHandle<()>>,
    /// The connection for callers that may block.
    here: Mutex<Connection>,
}

impl Readers {
    /// Starts a thread for each connection of the pool; `here` is for reading in the caller's thread.
    pub(super) fn start(pool: Vec<Connection>, here: Connection) -> std::io::Result<Self> {
        let (jobs, waiting) = sync_channel::<Job>(WAITING);
        let waiting = Arc::new(Mutex::new(waiting));
        let threads = pool
            .into_iter()
            .map(|conn| {
                let waiting = waiting.clone();
                std::thread::Builder::new()
                    .name("steersman-reader".to_owned())
                    .spawn(move || {
                        while let Some(job) = next(&waiting) {
                            job(&conn);
                        }
                    })
            })
            .collect::<std::io::Result<_>>()?;
        Ok(Self {
            jobs: Arc::new(Mutex::new(Some(jobs))),
            room: Arc::new(Semaphore::new(WAITING)),
            threads,
            here: Mutex::new(here),
        })
    }

    /// Reads in a thread of the pool; `None` if its threads are gone.
    pub(super) fn read<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Connection) -> T + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send + 'static {
        let (jobs, room) = (self.jobs.clone(), self.room.clone());
        async move {
            let permit = room.acquire_owned().await.ok()?;
            let (done, result) = oneshot::channel();
            let job: Job = Box::new(move |conn| {
                drop(permit);
                // A caller that no longer waits has dropped its end.
                let _ = done.send(run(conn));
            });
            // Never blocks: the semaphore has as many permits as the channel has places.
            jobs.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .as_ref()?
                .send(job)
                .ok()?;
            result.await.ok()
        }
    }

    /// Reads in the caller's thread.
    pub(super) fn now<T>(&self, run: impl FnOnce(&Connection) -> T) -> T {
        run(&self.here.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn next(waiting: &Mutex<Receiver<Job>>) -> Option<Job> {
    let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.recv().ok()
}

impl Drop for Readers {
    fn drop(&mut self) {
        *self.jobs.lock().unwrap_or_else(PoisonError::into_inner) = None;
        for thread in self.threads.drain(..) {
            // The caller that waited has already noticed a panic there.
            let _ = thread.join();
        }
    }
}
