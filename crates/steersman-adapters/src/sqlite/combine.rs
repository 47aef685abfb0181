//! Who writes: whoever waits for a write and finds the disk free writes in its own thread, together with all that waits.
//!
//! A thread of the store writes what nobody waits for, and all if commits are slow. Everything that threads share is in one
//! [`Line`] under one lock: the tasks that wait, and the disk itself while nobody writes. So nobody finds the disk taken by a
//! holder that has already looked for the last time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use steersman_runtime::store::COMPANY;

/// Commits are made by those who wait for them while the moving average of their time is at most this. Above it the thread makes
/// them; half of it switches back.
const QUICK: Duration = Duration::from_micros(300);
/// Maximum number of transactions that somebody who waits for one makes in a row, and the time after which no other one begins.
const ROUNDS: (u32, Duration) = (8, Duration::from_millis(2));

/// Something to write to, and what to write.
pub(super) trait Disk: Send + 'static {
    type Task: Send;

    /// Writes all tasks in one transaction, and reports to each. If another process has the store locked, it waits if `patient`,
    /// and otherwise gives the tasks back.
    fn write(&mut self, tasks: Vec<Self::Task>, patient: bool) -> Wrote<Self::Task>;

    /// Called when all is written and the store closes.
    fn ends(self);
}

/// The end of a [`Disk::write`].
pub(super) enum Wrote<T> {
    /// The tasks were written or refused. Holds the time that the commit took, if there was one.
    Done(Option<Duration>),
    /// Another process has the store locked. Nothing was done.
    Busy(Vec<T>),
}

/// Everything that those who write share.
struct Line<D, T> {
    /// `None` while somebody writes.
    disk: Option<D>,
    waiting: Vec<T>,
    /// True if somebody waits for one of the tasks.
    urgent: bool,
    /// Time at which the first of the tasks came.
    since: Option<Instant>,
    /// True if the thread has to write what waits, whoever waits for it.
    calls: bool,
    /// True if a task came since the thread's clock last looked.
    moved: bool,
    /// True while the thread sleeps until it is woken.
    sleeps: bool,
    closed: bool,
    /// Moving average of the time of a commit.
    average: Duration,
    /// True if commits take so long that only the thread makes them.
    slow: bool,
}

/// Who wants to write.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum By {
    /// Somebody who waits for a task.
    Owner,
    /// The thread of the store; `late`: the first task has waited long enough.
    Thread { late: bool },
}

impl<D, T> Line<D, T> {
    fn new(disk: D) -> Self {
        Self {
            disk: Some(disk),
            waiting: Vec::new(),
            urgent: false,
            since: None,
            calls: false,
            moved: false,
            sleeps: false,
            closed: false,
            average: Duration::ZERO,
            slow: false,
        }
    }

    /// Puts a task at the end. Returns true if the thread has to be woken.
    fn push(&mut self, task: T, urgent: bool) -> bool {
        self.waiting.push(task);
        self.since.get_or_insert_with(Instant::now);
        self.moved = true;
        let first = urgent && !self.urgent;
        self.urgent |= urgent;
        self.sleeps || (self.slow && first && self.disk.is_some())
    }

    /// Asks the thread to write what waits. Returns true if it has to be woken.
    fn call(&mut self) -> bool {
        self.calls |= !self.waiting.is_empty();
        self.calls && self.disk.is_some()
    }

    /// Takes the disk and all tasks, if it is free and there is something to write for `by`.
    fn take(&mut self, by: By) -> Option<(D, Vec<T>)> {
        let wanted = match by {
            By::Owner => self.urgent && !self.slow,
            By::Thread { late } => self.calls || self.closed || late || (self.urgent && self.slow),
        };
        if !wanted || self.waiting.is_empty() {
            return None;
        }
        let disk = self.disk.take()?;
        Some((disk, self.group()))
    }

    fn group(&mut self) -> Vec<T> {
        (self.since, self.urgent, self.calls) = (None, false, false);
        std::mem::take(&mut self.waiting)
    }

    /// Puts tasks back that were not written, before those that came meanwhile. The thread writes them.
    fn put_back(&mut self, mut tasks: Vec<T>) {
        tasks.append(&mut self.waiting);
        self.waiting = tasks;
        self.since.get_or_insert_with(Instant::now);
        (self.urgent, self.calls) = (true, true);
    }

    fn took(&mut self, commit: Duration) {
        // One slow commit among quick ones (SQLite moves the journal into the file) does not count for more than a few.
        self.average = (self.average * 7 + commit.min(QUICK * 4)) / 8;
        self.slow = self.average > if self.slow { QUICK / 2 } else { QUICK };
    }

    /// Returns the next tasks for the holder of the disk; `None` if it has to give the disk back.
    fn next(&mut self, by: By, may_go_on: bool) -> Option<Vec<T>> {
        let goes_on = match by {
            By::Owner => self.urgent && !self.slow && !self.calls && may_go_on,
            By::Thread { .. } => self.urgent || self.calls,
        };
        (goes_on && !self.waiting.is_empty()).then(|| self.group())
    }

    /// Gives the disk back. Returns true if the thread has to be woken.
    fn give_back(&mut self, disk: D) -> bool {
        self.disk = Some(disk);
        self.calls |= self.urgent;
        self.calls || self.closed
    }
}

/// The disk, as long as somebody writes. It is given back even after a panic.
struct Held<'a, D: Disk> {
    disk: Option<D>,
    of: &'a Shared<D>,
}

impl<D: Disk> Held<'_, D> {
    /// Writes the tasks, and what comes meanwhile.
    fn writes(mut self, mut tasks: Vec<D::Task>, by: By) {
        let began = Instant::now();
        let mut rounds = 0;
        loop {
            let disk = self.disk.as_mut().expect("it is held");
            let wrote = disk.write(tasks, by != By::Owner);
            let mut line = self.of.lock();
            match wrote {
                Wrote::Done(commit) => commit.into_iter().for_each(|commit| line.took(commit)),
                Wrote::Busy(tasks) => line.put_back(tasks),
            }
            rounds += 1;
            let may_go_on = rounds < ROUNDS.0 && began.elapsed() < ROUNDS.1;
            match line.next(by, may_go_on) {
                Some(next) => tasks = next,
                None => {
                    let disk = self.disk.take().expect("it is held");
                    self.of.gives_back(line, disk);
                    return;
                }
            }
        }
    }
}

impl<D: Disk> Drop for Held<'_, D> {
    fn drop(&mut self) {
        if let Some(disk) = self.disk.take() {
            self.of.gives_back(self.of.lock(), disk);
        }
    }
}

struct Shared<D: Disk> {
    line: Mutex<Line<D, D::Task>>,
    /// Wakes the thread.
    changed: Condvar,
}

impl<D: Disk> Shared<D> {
    fn lock(&self) -> MutexGuard<'_, Line<D, D::Task>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gives_back(&self, mut line: MutexGuard<'_, Line<D, D::Task>>, disk: D) {
        let wakes = line.give_back(disk);
        drop(line);
        if wakes {
            self.changed.notify_one();
        }
    }

    /// Writes whatever waits for the thread, until the store is closed.
    fn run(&self) {
        let mut line = self.lock();
        loop {
            let left = line
                .since
                .map(|since| COMPANY.saturating_sub(since.elapsed()));
            let late = left.is_some_and(|left| left.is_zero());
            let by = By::Thread { late };
            if let Some((disk, tasks)) = line.take(by) {
                drop(line);
                let disk = Some(disk);
                Held { disk, of: self }.writes(tasks, by);
                line = self.lock();
                continue;
            }
            if line.closed
                && line.waiting.is_empty()
                && let Some(disk) = line.disk.take()
            {
                drop(line);
                return disk.ends();
            }
            let moved = std::mem::take(&mut line.moved);
            line = match left.filter(|left| !left.is_zero()) {
                None if !moved && line.waiting.is_empty() => {
                    line.sleeps = true;
                    let mut line = self
                        .changed
                        .wait(line)
                        .unwrap_or_else(PoisonError::into_inner);
                    line.sleeps = false;
                    line
                }
                left => {
                    self.changed
                        .wait_timeout(line, left.unwrap_or(COMPANY))
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
    }
}

/// A disk with all who write to it. Dropping it writes what waits, and closes the disk.
pub(super) struct Combiner<D: Disk> {
    shared: Arc<Shared<D>>,
    thread: Option<JoinHandle<()>>,
}

impl<D: Disk> Combiner<D> {
    /// Starts the thread with this name.
    pub(super) fn start(disk: D, name: &str) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            line: Mutex::new(Line::new(disk)),
            changed: Condvar::new(),
        });
        let ours = shared.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                // A panic while tasks are told ends their turn, not the thread.
                while catch_unwind(AssertUnwindSafe(|| ours.run())).is_err() {}
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Queues a task after all others. Somebody who waits for it calls [`Self::help`], or [`Self::call`] if it waits no more.
    pub(super) fn push(&self, task: D::Task, urgent: bool) {
        if self.shared.lock().push(task, urgent) {
            self.shared.changed.notify_one();
        }
    }

    /// Writes what waits in the thread of the caller, if the disk is free and quick. Otherwise it is written elsewhere.
    pub(super) fn help(&self) {
        let taken = self.shared.lock().take(By::Owner);
        if let Some((disk, tasks)) = taken {
            let (disk, of) = (Some(disk), &*self.shared);
            Held { disk, of }.writes(tasks, By::Owner);
        }
    }

    /// Asks the thread to write what waits.
    pub(super) fn call(&self) {
        if self.shared.lock().call() {
            self.shared.changed.notify_one();
        }
    }
}

impl<D: Disk> Drop for Combiner<D> {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
