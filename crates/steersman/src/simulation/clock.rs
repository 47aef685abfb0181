//! A clock that moves when nothing else can happen.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use steersman_machine::stored::ids::Time;
use steersman_runtime::Boxed;
use steersman_runtime::clock::Clock;

/// The real time that other threads (a search in an index) get when nothing else can go on, and how often.
const MOMENT: Duration = Duration::from_millis(20);
const MOMENTS: u32 = 500;

/// A clock that stands still while anything can go on. Then it jumps to the next time for which something waits.
#[derive(Clone)]
pub(super) struct Jumping(Arc<Mutex<State>>);

struct State {
    now: Time,
    /// Looks in a row at which nothing could go on and nothing waited for a time.
    still: u32,
    /// The one that is told of each such look.
    watches: Option<Waker>,
    /// Those who wait, by time and in the order in which they began.
    waiting: BTreeMap<(Time, u64), Waker>,
    waited: u64,
}

impl Jumping {
    pub(super) fn at(now: Time) -> Self {
        Self(Arc::new(Mutex::new(State {
            now,
            still: 0,
            watches: None,
            waiting: BTreeMap::new(),
            waited: 0,
        })))
    }

    /// Moves to the next time for which something waits, and wakes the first that waits for it. Called when the thread of the
    /// simulation has nothing to do. If nothing waits for a time either, only another thread can go on, and gets a moment.
    ///
    /// [`Jumping::stands_still`] is woken, too, so that the thread looks again: one that waits may have been polled only once, to see
    /// whether it is ready, and then hears nothing of its time.
    pub(super) fn jump(&self) {
        let mut state = self.state();
        let next = state.waiting.pop_first();
        match &next {
            Some(((at, _), _)) => {
                state.now = state.now.max(*at);
                state.still = 0;
            }
            None => state.still += 1,
        }
        let watches = state.watches.take();
        drop(state);
        if next.is_none() {
            std::thread::sleep(MOMENT);
        }
        let wakers = next.map(|(_, waker)| waker).into_iter().chain(watches);
        wakers.for_each(Waker::wake);
    }

    /// Waits until nothing can go on any more: nothing waits for a time, and no other thread goes on for a while.
    pub(super) async fn stands_still(&self) {
        std::future::poll_fn(|cx| {
            let mut state = self.state();
            if state.still > MOMENTS {
                return Poll::Ready(());
            }
            state.watches = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for Jumping {
    fn now(&self) -> Time {
        self.state().now
    }

    fn sleep_until(&self, until: Time) -> Boxed<'static, ()> {
        Box::pin(Sleep {
            clock: self.clone(),
            until,
            place: None,
        })
    }

    fn sleep(&self, millis: u64) -> Boxed<'static, ()> {
        self.sleep_until(self.now().plus(millis))
    }
}

struct Sleep {
    clock: Jumping,
    until: Time,
    /// Its number among those who wait.
    place: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        let mut state = clock.state();
        if state.now >= self.until {
            return Poll::Ready(());
        }
        let place = *self.place.get_or_insert_with(|| {
            state.waited += 1;
            state.waited
        });
        let waker = cx.waker().clone();
        state.waiting.insert((self.until, place), waker);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.clock.state().waiting.remove(&(self.until, place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    /// Plays in a thread, as simulations do; fails if the thread sleeps for good.
    fn plays<T: Send + 'static>(
        what: impl AsyncFnOnce(Jumping) -> T + Send + 'static,
    ) -> Option<T> {
        let (told, hears) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let clock = Jumping::at(Time(0));
            let jumps = clock.clone();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .on_thread_park(move || jumps.jump())
                .build()
                .expect("a runtime of one thread");
            let _ = told.send(runtime.block_on(async {
                tokio::select! {
                    biased;
                    told = what(clock.clone()) => Some(told),
                    () = clock.stands_still() => None,
                }
            }));
        });
        let heard = hears.recv_timeout(Duration::from_mins(1));
        heard.expect("the thread of the simulation goes on")
    }

    #[test]
    fn one_that_was_polled_once_stops_nobody() {
        let now = plays(async |clock: Jumping| {
            let mut early = clock.sleep(10);
            assert!((&mut early).now_or_never().is_none());
            clock.sleep(20).await;
            drop(early);
            clock.now()
        });
        assert_eq!(now, Some(Time(20)));
    }

    #[test]
    fn a_simulation_that_stands_still_is_told() {
        let ended = plays(async |clock: Jumping| {
            clock.state().still = MOMENTS - 1;
            std::future::pending::<()>().await;
        });
        assert_eq!(ended, None);
    }
}
