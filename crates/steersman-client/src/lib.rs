//! A typed client of `steersman serve`: one method for each operation, and events that are followed over restarts of the server.
//!
//! ```no_run
//! # async fn f() -> Result<(), steersman_client::Error> {
//! use steersman_client::{Client, Follow};
//!
//! let client = Client::new("http://127.0.0.1:7410", "stm_...")?;
//! let session = client.start("desk", "Send 150 to Anna.").await?;
//! let mut events = session.follow(Follow::until_settled());
//! while let Some(event) = events.next().await {
//!     println!("{}", event?.kind);
//! }
//! let supervisor = session.acting_as("supervisor");
//! for question in session.questions().await? {
//!     supervisor.approve(&question.id).await?;
//! }
//! println!("{:?}", session.settled().await?.answer);
//! # Ok(()) }
//! ```
//!
//! Requests are sent again while the server cannot be reached or says that it is busy, for the time of [`Client::patience`], if that
//! does no harm: each act has a key of its own, so it happens once. Types and operations are made from the OpenAPI document by
//! `cargo xtask clients`.

#![warn(missing_docs)]

mod call;
mod error;
mod follow;
mod frames;
mod generated;
mod session;

pub use call::Given;
pub use error::Error;
pub use follow::{Event, Events, Follow, Pieces};
pub use frames::{Frame, Frames};
pub use generated::*;
pub use session::Session;

use call::Transport;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A client of a server. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) transport: Arc<Transport>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.transport.fmt(f)
    }
}

impl Client {
    /// Makes a client. Nothing is sent.
    ///
    /// # Errors
    /// [`Error::Address`] if the address does not begin with `http://` or `https://`, or if the token is no text for a header.
    pub fn new(url: &str, token: &str) -> Result<Self, Error> {
        let transport = Arc::new(Transport::new(url, token)?);
        Ok(Self { transport })
    }

    /// Returns the client with another time for which requests are sent again while the server cannot be reached or is busy, and
    /// for which a broken stream is opened again. It is ten seconds unless this says otherwise.
    #[must_use]
    pub fn patience(mut self, time: Duration) -> Self {
        self.transport = Arc::new(self.transport.with_patience(time));
        self
    }

    /// Starts a session of a definition with a message. [`SessionsApi::start`] has all that a start may say.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn start(&self, definition: &str, message: &str) -> Result<Session, Error> {
        let start = Start {
            definition: definition.to_owned(),
            message: Some(message.to_owned()),
            ..Start::default()
        };
        let id = match self.sessions().start(&start, &Given::default()).await? {
            TurnOrStarted::Turn(turn) => turn.session,
            TurnOrStarted::Started(started) => started.session,
        };
        Ok(self.session(&id))
    }

    /// Returns a session by its id. Nothing is sent.
    pub fn session(&self, id: &str) -> Session {
        Session::new(self.clone(), id)
    }
}
