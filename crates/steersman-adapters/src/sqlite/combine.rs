//! Writers of a disk: a caller that waits for a write and finds the disk free writes in its own thread, together with all that waits.
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
    /// True if the thread has to write what waits, also if somebody waits for it.
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

/// The party that wants to write.
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

    /// Called by the thread when it finds nothing to write. Returns true if it may sleep until it is woken; otherwise it looks again
    /// after a while.
    fn rests(&mut self) -> bool {
        let moved = std::mem::take(&mut self.moved);
        self.sleeps = !moved && self.waiting.is_empty() && !self.closed;
        self.sleeps
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
            let Some(next) = line.next(by, may_go_on) else {
                let disk = self.disk.take().expect("it is held");
                self.of.gives_back(line, disk);
                return;
            };
            tasks = next;
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
            line = if line.rests() {
                let woken = self.changed.wait(line);
                woken.unwrap_or_else(PoisonError::into_inner)
            } else {
                let left = left.filter(|left| !left.is_zero()).unwrap_or(COMPANY);
                let woken = self.changed.wait_timeout(line, left);
                woken.unwrap_or_else(PoisonError::into_inner).0
            };
            line.sleeps = false;
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

#[cfg(test)]
mod tests {
    use super::{By, Combiner, Disk, Line, QUICK, Wrote};
    use std::collections::BTreeSet;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    /// The next act of an owner or of the thread.
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum At {
        /// An owner queues its task.
        Queues,
        /// It waits for the first time, or goes away.
        Waits,
        /// Holds the disk.
        Writes(By, Vec<u8>),
        /// An owner has nothing to do any more.
        Done,
        /// The thread looks what there is to write.
        Looks,
        /// It looks again when it is woken, or after a while.
        Rests,
        /// It looks again when it is woken.
        Sleeps,
    }

    /// Three owners, the last of which waits for nothing, and the thread, which is the fourth.
    struct World {
        line: Line<(), u8>,
        at: [At; 4],
        /// The tasks that were written, or reported as failed.
        over: BTreeSet<u8>,
        /// Panics and locks of other processes that may still happen.
        left: u8,
    }

    const THREAD: usize = 3;

    type Key = ([At; 4], Vec<u8>, [bool; 7], Duration, BTreeSet<u8>, u8);

    impl Clone for World {
        fn clone(&self) -> Self {
            let line = &self.line;
            Self {
                line: Line {
                    waiting: line.waiting.clone(),
                    ..*line
                },
                at: self.at.clone(),
                over: self.over.clone(),
                left: self.left,
            }
        }
    }

    impl World {
        /// `slow`: only the thread writes. One quick commit ends that, and one slow commit begins it.
        fn new(slow: bool) -> Self {
            let owner = At::Queues;
            let average = if slow { QUICK * 4 / 7 } else { QUICK };
            Self {
                line: Line {
                    average,
                    slow,
                    ..Line::new(())
                },
                at: [owner.clone(), owner.clone(), owner, At::Looks],
                over: BTreeSet::new(),
                left: 2,
            }
        }

        fn key(&self) -> Key {
            let line = &self.line;
            let flags = [
                line.disk.is_some(),
                line.urgent,
                line.calls,
                line.moved,
                line.sleeps,
                line.slow,
                line.since.is_some(),
            ];
            let (at, waiting) = (self.at.clone(), line.waiting.clone());
            (
                at,
                waiting,
                flags,
                line.average,
                self.over.clone(),
                self.left,
            )
        }

        fn wakes(&mut self, wakes: bool) {
            if wakes && matches!(self.at[THREAD], At::Rests | At::Sleeps) {
                self.line.sleeps = false;
                self.at[THREAD] = At::Looks;
            }
        }

        /// Everything that one of them may do next, each as the world behind it.
        fn next(&self, who: usize) -> Vec<Self> {
            let mut all = Vec::new();
            let mut with = |change: &dyn Fn(&mut Self)| {
                let mut world = self.clone();
                change(&mut world);
                all.push(world);
            };
            match &self.at[who] {
                At::Queues => with(&|w| {
                    let urgent = who != 2;
                    w.at[who] = if urgent { At::Waits } else { At::Done };
                    let wakes = w.line.push(who as u8, urgent);
                    w.wakes(wakes);
                }),
                At::Waits => {
                    with(&|w| {
                        let taken = w.line.take(By::Owner);
                        w.at[who] =
                            taken.map_or(At::Done, |((), tasks)| At::Writes(By::Owner, tasks));
                    });
                    with(&|w| {
                        w.at[who] = At::Done;
                        let wakes = w.line.call();
                        w.wakes(wakes);
                    });
                }
                At::Writes(by, tasks) => {
                    for (commit, goes_on) in [(0, true), (0, false), (9, true), (9, false)] {
                        with(&|w| {
                            w.over.extend(tasks);
                            w.line.took(QUICK * commit);
                            w.ends(who, *by, goes_on);
                        });
                    }
                    if self.left > 0 {
                        // Those who wait for these tasks are told that they failed.
                        with(&|w| {
                            w.left -= 1;
                            w.over.extend(tasks);
                            w.gives_back(who);
                        });
                    }
                    if self.left > 0 && *by == By::Owner {
                        with(&|w| {
                            w.left -= 1;
                            w.line.put_back(tasks.clone());
                            w.ends(who, *by, true);
                        });
                    }
                }
                At::Looks => {
                    for late in [false, !self.line.waiting.is_empty()] {
                        with(&|w| {
                            let by = By::Thread { late };
                            w.at[who] = match w.line.take(by) {
                                Some(((), tasks)) => At::Writes(by, tasks),
                                None if w.line.rests() => At::Sleeps,
                                None => At::Rests,
                            };
                        });
                    }
                }
                At::Rests => with(&|w| w.at[who] = At::Looks),
                At::Done | At::Sleeps => {}
            }
            all
        }

        fn ends(&mut self, who: usize, by: By, goes_on: bool) {
            match self.line.next(by, goes_on) {
                Some(tasks) => self.at[who] = At::Writes(by, tasks),
                None => self.gives_back(who),
            }
        }

        fn gives_back(&mut self, who: usize) {
            self.at[who] = if who == THREAD { At::Looks } else { At::Done };
            let wakes = self.line.give_back(());
            self.wakes(wakes);
        }

        fn check(&self) {
            let all = self.at[..THREAD].iter().all(|at| *at == At::Done);
            let thread = &self.at[THREAD];
            let what = || format!("{:?}", self.key());
            if all && *thread == At::Sleeps {
                assert_eq!(self.over.len(), THREAD, "a task is lost: {}", what());
                assert!(self.line.disk.is_some(), "the disk is lost: {}", what());
            }
            if all && *thread == At::Rests {
                assert!(!self.line.urgent, "only the clock helps: {}", what());
            }
        }
    }

    /// In every order of what three owners and the thread do, with panics, locks of other processes, slow commits and owners that
    /// go away, every task is written or reported as failed, and none that somebody waits for is left to the clock.
    #[test]
    fn in_every_order_every_task_comes_to_its_end() {
        let mut known = BTreeSet::new();
        let mut open = vec![World::new(false), World::new(true)];
        while let Some(world) = open.pop() {
            if !known.insert(world.key()) {
                continue;
            }
            world.check();
            open.extend((0..=THREAD).flat_map(|who| world.next(who)));
        }
        assert!(known.len() > 1_000, "{}", known.len());
    }

    /// A disk that tells which tasks were written together, and panics at task 13.
    struct Told(Sender<Vec<u32>>);

    impl Disk for Told {
        type Task = u32;
        fn write(&mut self, tasks: Vec<u32>, _: bool) -> Wrote<u32> {
            assert!(!tasks.contains(&13), "a bad number");
            let _ = self.0.send(tasks);
            Wrote::Done(Some(Duration::ZERO))
        }
        fn ends(self) {
            let _ = self.0.send(Vec::new());
        }
    }

    fn told() -> (Combiner<Told>, Receiver<Vec<u32>>) {
        let (tell, told) = channel();
        let disk = Combiner::start(Told(tell), "test");
        (disk.expect("a thread starts"), told)
    }

    #[test]
    fn who_waits_writes_everything_in_its_own_thread() {
        let (disk, told) = told();
        for task in 1..=3 {
            disk.push(task, task == 3);
        }
        disk.help();
        let written: Vec<u32> = told.try_iter().flatten().collect();
        assert_eq!(written, [1, 2, 3], "before the call returned");
        drop(disk);
        assert_eq!(told.recv(), Ok(Vec::new()), "it was closed");
    }

    #[test]
    fn what_nobody_waits_for_is_written_too() {
        let (disk, told) = told();
        disk.push(1, false);
        assert_eq!(told.recv(), Ok(vec![1]), "by the clock");
        disk.push(2, true);
        disk.call();
        assert_eq!(told.recv(), Ok(vec![2]), "its owner went away");
        disk.push(3, false);
        drop(disk);
        assert_eq!(told.iter().flatten().collect::<Vec<_>>(), [3], "at the end");
    }

    #[test]
    fn a_panic_while_writing_leaves_the_disk_to_others() {
        let (disk, told) = told();
        disk.push(13, true);
        assert!(catch_unwind(AssertUnwindSafe(|| disk.help())).is_err());
        disk.push(1, true);
        disk.help();
        assert_eq!(told.recv(), Ok(vec![1]));
        // In the thread of the store
        disk.push(13, false);
        disk.call();
        disk.push(2, true);
        disk.call();
        drop(disk);
        let rest: Vec<u32> = told.iter().flatten().collect();
        assert!(rest.is_empty() || rest == [2], "{rest:?}");
    }
}
