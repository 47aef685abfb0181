//! Opening sessions: they are claimed, and driven in a task of their own.

use super::{inspect, run_all, spawn};
use crate::engine::{Engine, EngineError, Happened};
use crate::inbox::{Message, random_id};
use crate::log::inspection::Inspection;
use crate::session::{Fate, Receipt, Session, ToDriver};
use crate::store::{Claim, StoreError};
use steersman_machine::stored::ids::Name;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// A session that a caller wants to own.
enum Found {
    /// The caller owns it now.
    Free(Claim),
    /// This process drives it already.
    Driven(Session),
}

impl Engine {
    /// Owns a session and drives it. Returns a handle if this process drives it already. Effects that a dead owner left in doubt
    /// are settled in the way that their tools declare.
    pub async fn open(&self, id: &str) -> Result<Session, EngineError> {
        self.opened(id, false).await
    }

    /// Opens a session that stops after each line ([`crate::step`]): nothing begins before a caller lets it [`go`](Session::go)
    /// on. A session that has not begun writes its first line before it stops. A session that this process drives already is not
    /// changed.
    pub async fn open_stepping(&self, id: &str) -> Result<Session, EngineError> {
        self.opened(id, true).await
    }

    async fn opened(&self, id: &str, steps: bool) -> Result<Session, EngineError> {
        if let Some(session) = self.driven(id) {
            return Ok(session);
        }
        let _opening = self.opening(id).lock().await;
        if let Some(session) = self.driven(id) {
            return Ok(session);
        }
        let claim = match self.claim(id).await? {
            Found::Free(claim) => claim,
            Found::Driven(session) => return Ok(session),
        };
        spawn(self, claim, Vec::new(), steps).await
    }

    /// Claims a session, unless this process took it a moment ago.
    async fn claim(&self, id: &str) -> Result<Found, EngineError> {
        match self.store().claim(id, self.worker().await?).await {
            Ok(claim) => Ok(Found::Free(claim)),
            Err(owned @ StoreError::Owned { .. }) => {
                let _taken = self.0.taking.lock().await;
                let session = self.driven(id).ok_or(owned)?;
                Ok(Found::Driven(session))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Drives a session that was taken. The caller holds [`Inner::taking`].
    pub(crate) async fn drive(&self, claim: Claim) -> Result<Session, EngineError> {
        spawn(self, claim, Vec::new(), false).await
    }

    /// Opens a session for a message that was put into its inbox. Waits until the message is taken, left waiting, or refused, and
    /// returns this fate too.
    pub async fn open_for(&self, id: &str, message: &Name) -> Result<(Session, Fate), EngineError> {
        let opening = self.opening(id).lock().await;
        if let Some(session) = self.driven(id) {
            drop(opening);
            let fate = session.fate_of(message).await;
            return Ok((session, fate));
        }
        let claim = match self.claim(id).await? {
            Found::Free(claim) => claim,
            Found::Driven(session) => {
                let fate = session.fate_of(message).await;
                return Ok((session, fate));
            }
        };
        let (reply, answer) = oneshot::channel();
        let told = vec![ToDriver::Inbox(message.clone(), reply)];
        let session = spawn(self, claim, told, false).await?;
        drop(opening);
        let fate = answer.await.map_or(Fate::Lies, |receipt| receipt.fate);
        Ok((session, fate))
    }

    /// Reads a session without owning it. Does not disturb the process that drives it.
    pub async fn inspect(&self, id: &str) -> Result<Inspection, EngineError> {
        inspect(self, id).await
    }

    /// Owns and drives every session of the store that has something to do (inbox, timers, events), until `stop` is cancelled.
    pub async fn run_all(&self, stop: CancellationToken) -> Result<(), EngineError> {
        self.run_all_told(stop, |_| {}).await
    }

    /// Does the same as [`Engine::run_all`], and calls `told` with everything that happens. `told` is called between two reads of
    /// the store, so it must be quick.
    pub async fn run_all_told(
        &self,
        stop: CancellationToken,
        told: impl Fn(Happened) + Send + Sync,
    ) -> Result<(), EngineError> {
        run_all(self, stop, &told).await
    }

    /// Puts an order into a session's inbox: a message that takes effect immediately and begins nothing. If nobody owns the
    /// session, this process opens it, lets it read its inbox, and releases it; no effect runs meanwhile. If another process owns
    /// it, that process takes the order, and the receipt says `Lies`.
    pub async fn order(&self, id: &str, message: Message) -> Result<Receipt, EngineError> {
        if let Some(session) = self.driven(id) {
            return session.send(message).await;
        }
        let name = random_id();
        self.put(id, name.clone(), &message).await?;
        let opening = self.opening(id).lock().await;
        let found = match self.driven(id) {
            Some(session) => Ok(Found::Driven(session)),
            None => self.claim(id).await,
        };
        let claim = match found {
            Ok(Found::Free(claim)) => claim,
            Ok(Found::Driven(session)) => {
                drop(opening);
                let fate = session.fate_of(&name).await;
                return Ok(Receipt { id: name, fate });
            }
            Err(EngineError::Store(StoreError::Owned { .. })) => {
                let fate = Fate::Lies;
                return Ok(Receipt { id: name, fate });
            }
            Err(error) => return Err(error),
        };
        let (reply, answer) = oneshot::channel();
        let (done, ended) = oneshot::channel();
        let told = vec![ToDriver::Inbox(name.clone(), reply), ToDriver::Stop(done)];
        spawn(self, claim, told, false).await?;
        let fate = answer.await.map_or(Fate::Lies, |receipt| receipt.fate);
        let _ = ended.await;
        Ok(Receipt { id: name, fate })
    }
}
