//! A small pool of connections that only read, each with a thread of its own, so that no async thread waits for a
//! disk; and one for those who do want to wait.

use rusqlite::Connection;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce(&Connection) + Send>;

pub(super) struct Readers {
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
    here: Mutex<Connection>,
}

impl Readers {
    /// Takes one connection for each thread, and the last for reading in the caller's.
    pub(super) fn start(pool: Vec<Connection>, here: Connection) -> std::io::Result<Self> {
        let (jobs, waiting) = channel::<Job>();
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
            jobs: Some(jobs),
            threads,
            here: Mutex::new(here),
        })
    }

    /// Reads in a thread of the pool.
    pub(super) fn read<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Connection) -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (done, result) = oneshot::channel();
        if let Some(jobs) = &self.jobs {
            let job: Job = Box::new(move |conn| {
                // Who does not wait any more has dropped its end.
                let _ = done.send(run(conn));
            });
            // Fails only when the threads are gone; the receiver hears that.
            let _ = jobs.send(job);
        }
        result
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
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A panic there has been heard by whoever waited.
            let _ = thread.join();
        }
    }
}
