//! The means of a request until its answer has been sent: the places that the limits count, and the token that it stands on.
//!
//! A place is given back when the last piece of the answer is taken, and not when the answer is made: a client that asks for much and
//! reads nothing uses up its own places. An answer ends early once its token was revoked or has expired, whatever route made it.

use crate::Server;
use crate::limits::Using;
use crate::problem::{Code, Problem};
use crate::token;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::{IntoResponse, Response};
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use steersman::runtime::store::Token;

/// Maximum length of a piece of an answer. A connection takes a few pieces ahead of what its client reads.
const PIECE: usize = 64 << 10;

/// The means of a request.
#[derive(Clone, Default)]
pub(crate) struct Held(Arc<Holding>);

#[derive(Default)]
struct Holding {
    /// The token, once it is known.
    token: OnceLock<Arc<Token>>,
    /// The version of the store when the request began, if the store tells it.
    version: Option<u64>,
    places: Mutex<Vec<Using>>,
}

impl Held {
    /// Makes the means of a request that began with this version of the store.
    pub(crate) fn new(version: Option<u64>) -> Self {
        Self(Arc::new(Holding {
            version,
            ..Holding::default()
        }))
    }

    /// Returns the version of the store when the request began.
    pub(crate) fn version(&self) -> Option<u64> {
        self.0.version
    }

    /// Returns the token of the request, once it is known.
    pub(crate) fn token(&self) -> Option<&Arc<Token>> {
        self.0.token.get()
    }

    /// Remembers the token of the request.
    pub(crate) fn is_of(&self, token: &Arc<Token>) {
        self.0.token.set(token.clone()).ok();
    }

    /// Adds a place.
    pub(crate) fn takes(&self, place: Using) {
        self.places().push(place);
    }

    /// Gives all places back for this one: the request has become a stream, which may last.
    pub(crate) fn streams(&self, place: Using) {
        // The others are given back outside of the lock.
        let before = std::mem::replace(&mut *self.places(), vec![place]);
        drop(before);
    }

    fn places(&self) -> MutexGuard<'_, Vec<Using>> {
        self.0.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the token is not valid any more.
    async fn lapses(self, server: Server) {
        let engine = server.steersman().engine();
        loop {
            tokio::time::sleep(server.options().limits.recheck).await;
            let Some(token) = self.token() else { continue };
            // A store that cannot be read is asked again.
            if let Ok(found) = engine.store().token(&token.name).await
                && !found.is_some_and(|token| token::lives(&token, engine.clock().now()))
            {
                return;
            }
        }
    }

    /// Carries out a request, and sends its answer, for as long as its token is valid.
    pub(crate) async fn during(
        self,
        server: &Server,
        answer: impl Future<Output = Response>,
    ) -> Response {
        let response = tokio::select! {
            biased;
            response = answer => response,
            () = self.clone().lapses(server.clone()) => {
                let why = "the token was revoked or has expired while the request was carried out";
                return Problem::new(Code::Token, why).into_response();
            }
        };
        let Some(token) = self.token() else {
            return response;
        };
        let (limits, len) = (
            &server.options().limits,
            response.body().size_hint().exact(),
        );
        if len.is_some_and(|len| len <= PIECE as u64) {
            // The connection takes it at once.
            return response;
        }
        if len.is_some_and(|len| len > limits.body as u64) {
            match server.used().answer(&token.name, limits) {
                Ok(place) => self.takes(place),
                Err(problem) => return problem.into_response(),
            }
        }
        response.map(|body| {
            Body::new(Sent {
                body,
                rest: Bytes::new(),
                lapses: Some(Box::pin(self.clone().lapses(server.clone()))),
                _held: self,
            })
        })
    }
}

/// The body of an answer, in pieces.
struct Sent {
    body: Body,
    /// The rest of the last frame.
    rest: Bytes,
    /// Waits for the end of the token. `None` once it has come.
    lapses: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    _held: Held,
}

impl Sent {
    /// Returns the next piece. It is a copy: a piece that a connection still holds keeps no more than itself in memory.
    fn piece(&mut self) -> Bytes {
        let len = self.rest.len().min(PIECE);
        Bytes::copy_from_slice(&self.rest.split_to(len))
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(lapses) = &mut self.lapses else {
            return Poll::Ready(None);
        };
        if lapses.as_mut().poll(cx).is_ready() {
            self.lapses = None;
            return Poll::Ready(None);
        }
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if data.len() > PIECE => self.rest = data,
                    Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        Poll::Ready(Some(Ok(Frame::data(self.piece()))))
    }

    fn is_end_stream(&self) -> bool {
        self.lapses.is_none() || (self.rest.is_empty() && self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, hint) = (self.rest.len() as u64, self.body.size_hint());
        let mut whole = SizeHint::new();
        whole.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper + rest);
        }
        whole
    }
}
