//! Sessions that stand after each line, until somebody says how they go on.
//!
//! A line here is one that holds a commit: something was taken, somebody moved. What only the ledger notes beside it (an
//! attempt that starts, what it cost) comes with the next one. While a session stands nothing begins, and what ends meanwhile
//! waits; that is a matter of the process that drives it and not of the log, so a process that dies there leaves a session
//! like any other.

use crate::Boxed;
use crate::engine::EngineError;
use crate::inbox::{Message, random_id};
use crate::session::{Fate, Receipt, Session, Settled, Standing, ToDriver};
use crate::store::SessionId;
use std::fmt;
use std::sync::Arc;
use steersman_machine::ids::Line;
use tokio::sync::oneshot;

/// Where a session came to that stands after each line.
#[derive(Clone, Debug)]
pub enum Stood {
    /// It stands behind this line, which is on disk.
    At(Line),
    /// Nothing goes on by itself.
    Settled(Arc<Settled>),
}

/// How a session that stands goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Go {
    /// To its next line.
    Line,
    /// Without standing any more.
    Free,
    /// Not at all: it is paused, and whoever resumes it goes on.
    Pause,
    /// Otherwise: this is said here. What is owed and has not begun is cancelled; where something runs it is heard as soon
    /// as that has ended.
    Redirect(String),
}

/// What a driver is told by whoever lets it go on.
pub(crate) enum Let {
    Line,
    Free,
}

/// Says at each line how a session goes on.
#[derive(Clone)]
pub struct Steps(Arc<dyn Fn(Step) -> Boxed<'static, Go> + Send + Sync>);

/// Where somebody is asked how it goes on.
#[derive(Clone, Debug)]
pub struct Step {
    /// The session that stands.
    pub session: SessionId,
    /// The line behind which it stands.
    pub line: Line,
    /// Its outcomes came from a recording that is followed, so nobody was asked and nothing ran.
    pub recorded: bool,
}

impl Steps {
    /// Asked at each line.
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
    /// Waits until it stands behind a line, or nothing goes on by itself. Of a session that was not opened to stand
    /// ([`Engine::open_stepping`](crate::engine::Engine::open_stepping)) this is [`Session::settled`].
    ///
    /// # Errors
    /// If it is not driven any more, with why.
    pub async fn stood(&self) -> Result<Stood, EngineError> {
        let mut standing = self.settled.clone();
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

    /// Lets it go on from where it stands; what is said is taken with the next line, before anything else happens. The receipt
    /// is of what had to be put into the inbox, if anything had.
    ///
    /// # Errors
    /// What the store says.
    pub async fn go(&self, go: Go) -> Result<Option<Receipt>, EngineError> {
        match go {
            Go::Line => self.lets(Let::Line).await,
            Go::Free => self.lets(Let::Free).await,
            Go::Pause => return self.pause().await.map(Some),
            Go::Redirect(text) => return self.redirect(text).await.map(Some),
        }
        Ok(None)
    }

    async fn redirect(&self, text: String) -> Result<Receipt, EngineError> {
        let running = match &*self.settled.borrow() {
            Standing::Stands { running, .. } => *running,
            _ => false,
        };
        // What runs may touch the world: cut off, nobody would know whether it happened.
        let message = if running {
            Message::Say {
                text,
                to: None,
                by: None,
                branch: None,
            }
        } else {
            Message::Interrupt {
                text,
                by: None,
                branch: None,
            }
        };
        let id = random_id();
        self.engine.put(&self.id, id.clone(), &message).await?;
        let (reply, answer) = oneshot::channel();
        // In this order: it is read before anything begins.
        self.to
            .send(ToDriver::Inbox(id.clone(), reply))
            .await
            .map_err(drop)
            .ok();
        self.lets(Let::Line).await;
        Ok(answer.await.unwrap_or(Receipt {
            id,
            fate: Fate::Lies,
        }))
    }

    /// The driver has heard it when this returns.
    async fn lets(&self, how: Let) {
        let (heard, hears) = oneshot::channel();
        if self.to.send(ToDriver::Step(how, heard)).await.is_ok() {
            let _ = hears.await;
        }
    }
}
