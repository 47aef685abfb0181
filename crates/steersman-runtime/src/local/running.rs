//! Everything that goes on for a session: attempts of models and tools, and waits for slots, turns and times.
//!
//! It runs in the task of the session, so that what comes in wakes no other thread. What keeps that task for too long gets a task
//! of its own.

use crate::Boxed;
use futures::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The longest time that something keeps the task of its session, before it gets a task of its own. It is longer than a thread
/// of a busy machine waits for its turn, so that work elsewhere does not change the order of what ends here.
const LONG: Duration = Duration::from_millis(20);

/// Everything that goes on for a session and was not ready at once.
#[derive(Default)]
pub(super) struct Running(FuturesUnordered<One>);

/// Something that goes on; `None` once it has a task of its own.
struct One(Option<Boxed<'static, ()>>);

impl Running {
    /// Begins something. If it is ready at once, it is over.
    pub(super) fn begin(&mut self, what: Boxed<'static, ()>) {
        let mut one = One(Some(what));
        if (&mut one).now_or_never().is_none() {
            self.0.push(one);
        }
    }

    /// Goes on with everything that can go on, until something ends; for ever if nothing goes on. Everything that ends at the same
    /// time has then ended, so that the session hears of it together.
    pub(super) async fn ended(&mut self) {
        if self.0.next().await.is_none() {
            std::future::pending::<()>().await;
        }
        while let Some(Some(())) = self.0.next().now_or_never() {}
    }
}

impl Future for One {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(what) = &mut self.0 else {
            return Poll::Ready(());
        };
        let began = Instant::now();
        let poll = AssertUnwindSafe(|| what.as_mut().poll(cx));
        match std::panic::catch_unwind(poll) {
            Ok(Poll::Pending) if began.elapsed() > LONG => {
                self.gets_a_task();
                Poll::Ready(())
            }
            Ok(poll) => poll,
            // Only a destructor can panic here, after the result was sent. The panic's payload is not dropped: its destructor
            // may panic, too.
            Err(panic) => {
                std::mem::forget(panic);
                Poll::Ready(())
            }
        }
    }
}

impl One {
    fn gets_a_task(&mut self) {
        if let (Some(what), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(what);
        }
    }
}

/// The session has ended or is parked: attempts were cancelled, and probes and notifications end by themselves.
impl Drop for Running {
    fn drop(&mut self) {
        for one in &mut self.0 {
            one.gets_a_task();
        }
    }
}
