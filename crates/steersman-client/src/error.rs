//! Errors. Each says what happened and what to do.

use crate::generated::Problem;
use std::fmt;

/// An error of the client or of the server.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address or the token has a wrong form.
    #[error("{0}")]
    Address(String),
    /// No connection could be opened: nothing was sent.
    #[error("no server answers at {url} ({why}): start `steersman serve`, or check the address")]
    Unreachable {
        /// The address.
        url: String,
        /// The reason.
        why: String,
    },
    /// The connection broke before the answer came. The server may have carried out the request.
    #[error("the connection to {url} broke before the answer came ({why}): {help}")]
    ConnectionLost {
        /// The address.
        url: String,
        /// The reason.
        why: String,
        /// The way out.
        help: &'static str,
    },
    /// The answer has not the form of an answer of the server: something else may be at this address.
    #[error(
        "the answer (status {status}, `{media}`) is not what a Steersman server says ({why}); it begins with {begins:?}: check the address"
    )]
    InvalidAnswer {
        /// The status.
        status: u16,
        /// The media type; empty if the answer names none.
        media: String,
        /// The reason.
        why: String,
        /// The first characters.
        begins: String,
    },
    /// A stream of events ended, and could not be opened again. Follow from the cursor to miss nothing.
    #[error(
        "the events of {session} ended behind {cursor}, and {url} could not be reached again ({why}): follow from this position once it is back"
    )]
    StreamEnded {
        /// The session.
        session: String,
        /// The position behind the last event on disk that was told.
        cursor: String,
        /// The address.
        url: String,
        /// The reason.
        why: String,
    },
    /// The server did not carry out the request, and says why. Branch on its code.
    #[error("{0}")]
    Problem(Box<Problem>),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)?;
        if let Some(help) = &self.help {
            write!(f, ": {help}")?;
        }
        let code = self.kind.rsplit(':').next().unwrap_or_default();
        write!(f, " ({code})")
    }
}

impl Error {
    /// Returns the problem that the server told, if it told one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    pub(crate) fn invalid(status: u16, media: &str, why: impl fmt::Display, body: &[u8]) -> Self {
        /// Number of bytes of a body that an error shows.
        const SHOWN: usize = 80;
        let begins = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).into_owned();
        Self::InvalidAnswer {
            status,
            media: media.to_owned(),
            why: why.to_string(),
            begins,
        }
    }
}
