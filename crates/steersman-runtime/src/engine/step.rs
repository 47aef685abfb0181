//! Sessions that stop after each line until a caller lets them go on.
//!
//! The session stops only after lines with a commit: lines in which an input was taken or an agent moved. A line that holds only
//! ledger entries (the start of an attempt, its cost) does not stop it. While a session is stopped nothing begins, and outcomes
//! that arrive wait. The log does not record the stop: if the process dies meanwhile, the next owner drives the session without
//! stops.

use crate::Boxed;
use crate::engine::EngineError;
use crate::inbox::{Wanted, random_id};
use crate::session::{Fate, Receipt, Session, Settled, Standing, ToDriver};
use crate::store::SessionId;
use std::fmt;
use std::sync::Arc;
use steersman_machine::stored::by::By;
use steersman_machine::stored::ids::Line;
use tokio::sync::oneshot;

/// The reason why a stepping session stopped.
#[derive(Clone, Debug)]
pub enum Stood {
    /// The session stopped after this line, which is on disk.
    At(Line),
    /// The session has settled: it continues only after an input from outside, or at a time.
    Settled(Arc<Settled>),
}

/// The way in which a stopped session continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Go {
    /// Run to the next line.
    Line,
    /// Run without stopping again.
    Free,
    /// Pause the session. It continues when it is resumed.
    Pause,
    /// Say this text to the session. If no effect is running, those that have not begun are cancelled, and the text is taken with
    /// the next line. If one is running, none is cancelled, and the text is taken when that effect has ended.
    Redirect(String),
}

/// An instruction to the driver of a stopped session.
#[derive(Copy, Clone)]
pub(crate) enum Let {
    Line,
    Free,
}

/// A callback that decides after each line how the session continues.
#[derive(Clone)]
pub struct Steps(Arc<dyn Fn(Step) -> Boxed<'static, Go> + Send + Sync>);

/// The argument of a [`Steps`] callback.
#[derive(Clone, Debug)]
pub struct Step {
    /// The session that is stopped.
    pub session: SessionId,
    /// The line after which it stopped.
    pub line: Line,
    /// True if the outcomes of this line came from a recording, so nobody was asked and nothing ran.
    pub recorded: bool,
}

impl Steps {
    /// Creates a callback that is called at each line.
    pub fn new(ask: impl Fn(Step) -> Boxed<'static, Go> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    pub(crate) async fn ask(&self, at: Step) -> Go {
        (self.0)(at).await
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Steps")
    }
}

impl Session {
    /// Waits until the session stops after a line, or settles. Only a session that was opened with
    /// [`Engine::open_stepping`](crate::engine::Engine::open_stepping) stops after lines.
    ///
    /// # Errors
    /// The session is not driven any more; the error holds the reason.
    pub async fn stood(&self) -> Result<Stood, EngineError> {
        let mut standing = self.standing.clone();
        loop {
            match &*standing.borrow_and_update() {
                Standing::Busy | Standing::Outside(_) => {}
                Standing::Stands { line, .. } => return Ok(Stood::At(*line)),
                Standing::Settled(settled, _) => return Ok(Stood::Settled(settled.clone())),
                Standing::Gone(why) => return Err(EngineError::Gone(why.clone())),
            }
            if standing.changed().await.is_err() {
                return Err(EngineError::Gone(Arc::new(EngineError::Stopped)));
            }
        }
    }

    /// Continues the session after the line at which it stopped. A text of [`Go::Redirect`] is put into the inbox before
    /// anything else can begin. Returns a receipt if a message had to be put into the inbox.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn go(&self, go: Go) -> Result<Option<Receipt>, EngineError> {
        match go {
            Go::Line => self.instruct(Let::Line).await,
            Go::Free => self.instruct(Let::Free).await,
            Go::Pause => return self.pause().await.map(Some),
            Go::Redirect(text) => return self.redirect(text).await.map(Some),
        }
        Ok(None)
    }

    async fn redirect(&self, text: String) -> Result<Receipt, EngineError> {
        let running = match &*self.standing.borrow() {
            Standing::Stands { running, .. } => *running,
            _ => false,
        };
        // A running effect is not cancelled: nobody would know whether it happened.
        let message = if running {
            Wanted::say(text)
        } else {
            Wanted::Interrupt(text)
        };
        let id = random_id();
        let message = message.by(By::default());
        self.engine.put(&self.id, id.clone(), &message).await?;
        let (reply, answer) = oneshot::channel();
        // Sent before the step, so that the message is read before anything begins.
        self.to
            .send(ToDriver::Inbox(id.clone(), reply))
            .await
            .map_err(drop)
            .ok();
        self.instruct(Let::Line).await;
        Ok(answer.await.unwrap_or(Receipt {
            id,
            fate: Fate::Lies,
        }))
    }

    /// Sends an instruction to the driver and waits until the driver has read it.
    async fn instruct(&self, how: Let) {
        let (reply, answer) = oneshot::channel();
        if self.to.send(ToDriver::Step(how, reply)).await.is_ok() {
            let _ = answer.await;
        }
    }
}
