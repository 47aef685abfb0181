//! The loop that accepts connections.

use crate::caller::From;
use crate::{Limits, Server};
use axum::Router;
use axum::body::{Body, Bytes};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Pause after an error of accepting, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of bytes of the head of a request. A connection buffers at most as many.
pub(crate) const HEAD: usize = 64 << 10;
/// Time for which what a client still sends is taken and dropped before its connection is closed: without that it would lose the answer.
const LINGER: Duration = Duration::from_secs(2);

/// Answers the connections of a listener until the server stops. Then no connection is accepted any more, and this returns when all
/// requests are answered or after `drain`.
///
/// # Errors
/// Errors of the listener.
pub async fn serve(server: &Server, listener: TcpListener, drain: Duration) -> io::Result<()> {
    let (router, stopping) = (server.router(), server.stopping());
    answers(
        router,
        &server.options().limits,
        listener,
        (stopping, drain),
    )
    .await;
    server.mcp().close();
    Ok(())
}

/// Answers the connections of a listener with these routes until the token is cancelled. Then returns when all requests are answered, or
/// after this time.
pub(crate) async fn answers(
    router: Router,
    limits: &Limits,
    listener: TcpListener,
    (stopping, drain): (&CancellationToken, Duration),
) {
    let room = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(HEAD);
    loop {
        let accepted = tokio::select! {
            () = stopping.cancelled() => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let Ok((stream, from, place)) = accepted else {
            tokio::select! {
                () = stopping.cancelled() => break,
                () = sleep(PAUSE) => continue,
            }
        };
        // Small frames of streams are sent at once.
        stream.set_nodelay(true).ok();
        let router = router.clone();
        let is_unread = Arc::new(AtomicBool::new(false));
        let stalling = Stalling::new(stream, limits.stalled, is_unread.clone());
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let mut request = request.map(|body| Body::new(Sent::new(body, &is_unread)));
            request.extensions_mut().insert(From(from));
            router.clone().oneshot(request)
        });
        let connection = http.serve_connection(TokioIo::new(stalling), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // An error is the client's: it went away, or sent what is not HTTP.
            connection.await.ok();
            drop(place);
        });
    }
    tokio::select! {
        () = graceful.shutdown() => {}
        () = sleep(drain) => {}
    }
}

/// Accepts a connection once there is room for one more.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(
    TcpStream,
    std::net::SocketAddr,
    tokio::sync::OwnedSemaphorePermit,
)> {
    let place = room.clone().acquire_owned().await;
    let place = place.map_err(io::Error::other)?;
    let (stream, from) = listener.accept().await?;
    Ok((stream, from, place))
}

/// The body of a request. It remembers whether it was read to its end.
struct Sent {
    body: Incoming,
    is_unread: Arc<AtomicBool>,
}

impl Sent {
    fn new(body: Incoming, is_unread: &Arc<AtomicBool>) -> Self {
        is_unread.store(!body.is_end_stream(), Ordering::Relaxed);
        Self {
            body,
            is_unread: is_unread.clone(),
        }
    }
}

impl hyper::body::Body for Sent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.is_unread.store(false, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection that fails if the other side takes no byte for some time. At its end it takes for a while what the other side still sends of
/// a head or a body that nobody reads.
struct Stalling {
    stream: TcpStream,
    most: Duration,
    /// Runs while a write waits.
    waits: Option<Pin<Box<Sleep>>>,
    is_unread: Arc<AtomicBool>,
    /// Runs while what the other side still sends is dropped.
    lingers: Option<Pin<Box<Sleep>>>,
}

impl Stalling {
    fn new(stream: TcpStream, most: Duration, is_unread: Arc<AtomicBool>) -> Self {
        Self {
            stream,
            most,
            waits: None,
            is_unread,
            lingers: None,
        }
    }

    /// Fails a write that has waited too long.
    fn judged<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = None;
            return written;
        }
        let until = Instant::now() + self.most;
        let waits = self
            .waits
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        match waits.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Stalling {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stalling {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judged(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.judged(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let own = &mut *self;
        if own.lingers.is_none() {
            ready!(Pin::new(&mut own.stream).poll_shutdown(cx))?;
        }
        let lingers = own.lingers.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        loop {
            if lingers.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let mut dropped = [0; 8 << 10];
            let mut dropped = ReadBuf::new(&mut dropped);
            match Pin::new(&mut own.stream).poll_read(cx, &mut dropped) {
                Poll::Ready(Ok(())) if !dropped.filled().is_empty() => {
                    own.is_unread.store(true, Ordering::Relaxed);
                }
                Poll::Pending if own.is_unread.load(Ordering::Relaxed) => return Poll::Pending,
                Poll::Ready(_) | Poll::Pending => return Poll::Ready(Ok(())),
            }
        }
    }
}
