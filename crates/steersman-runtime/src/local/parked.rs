//! A session that waits only for the outside: the driver is freed, and a task waits for what wakes it.

use super::hands::{self, Seats};
use super::{Desk, Local, release, tapped};
use crate::driver::rest::Asleep;
use crate::engine::{Engine, EngineError};
use crate::limiter::Permit;
use crate::session::ToDriver;
use crate::store::Claim;
use crate::tap::Owned;
use steersman_machine::stored::ids::{Id, Time};
use tokio::sync::oneshot;

/// A session that is parked.
pub(super) struct Parked {
    pub(super) engine: Engine,
    pub(super) claim: Claim,
    pub(super) desk: Desk,
    pub(super) seats: Seats,
    pub(super) asleep: Asleep,
}

/// Reason why a parked session continues.
pub(super) enum Woken {
    /// A handle sent a message.
    Told(ToDriver),
    /// The due time came.
    Time,
    /// The place of a held call answers, or is to be tried.
    Place(Id, Permit),
}

impl Parked {
    /// Waits until there is something to do, and reads the session again. Returns `None` if it was released meanwhile.
    pub(super) async fn over(mut self: Box<Self>) -> Option<(Box<Local>, Woken)> {
        let woken = match self.woken().await {
            Ok(Woken::Told(ToDriver::Stop(ended))) if !self.asleep.owes => {
                self.desk.live.close();
                release(&self.engine, self.claim.clone(), self.asleep.left.clone()).await;
                self.end(EngineError::Stopped, Some(ended));
                return None;
            }
            Ok(woken) => woken,
            Err(why) => {
                self.end(why, None);
                return None;
            }
        };
        if matches!(woken, Woken::Told(ToDriver::Inbox(..)) | Woken::Place(..)) {
            self.desk.busy();
        }
        let Self {
            engine,
            claim,
            desk,
            seats,
            asleep,
        } = *self;
        let read = Local::read(engine.clone(), claim.clone(), desk, seats, asleep.rest);
        match read.await {
            Ok(local) => Some((local, woken)),
            Err((desk, left, why)) => {
                if let Some(left) = left {
                    release(&engine, claim, left).await;
                } else {
                    tapped::owner(&engine, &claim.session, Owned::Released);
                }
                desk.gone(why);
                None
            }
        }
    }

    async fn woken(&mut self) -> Result<Woken, EngineError> {
        let clock = self.engine.clock().clone();
        let due: Option<Time> = self.asleep.due;
        let timer = async {
            match due {
                Some(due) => clock.sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        let alive = self.engine.0.alive.clone();
        tokio::select! {
            biased;
            Some(told) = self.desk.from_handles.recv() => Ok(Woken::Told(told)),
            () = timer => Ok(Woken::Time),
            (id, permit) = hands::place_answers(&mut self.seats) => Ok(Woken::Place(id, permit)),
            () = alive.cancelled() => Err(EngineError::Stopped),
        }
    }

    fn end(self: Box<Self>, why: EngineError, ended: Option<oneshot::Sender<()>>) {
        self.desk.gone(why);
        drop(self);
        if let Some(ended) = ended {
            let _ = ended.send(());
        }
    }
}
