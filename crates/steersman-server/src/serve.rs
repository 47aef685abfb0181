//! The loop that accepts connections.

use crate::Server;
use crate::caller::From;
use axum::body::Body;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep};
use tower::ServiceExt as _;

/// Pause after an error of accepting, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers the connections of a listener until the server stops. Then no connection is accepted any more, and this returns when all
/// requests are answered or after `drain`.
///
/// # Errors
/// Errors of the listener.
pub async fn serve(server: &Server, listener: TcpListener, drain: Duration) -> io::Result<()> {
    let limits = server.options().limits.clone();
    let router = server.router();
    let room = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head);
    loop {
        let accepted = tokio::select! {
            () = server.stopping().cancelled() => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let Ok((stream, from, place)) = accepted else {
            tokio::select! {
                () = server.stopping().cancelled() => break,
                () = sleep(PAUSE) => continue,
            }
        };
        // Small frames of streams are sent at once.
        stream.set_nodelay(true).ok();
        let router = router.clone();
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(From(from));
            router.clone().oneshot(request)
        });
        let stalling = Stalling::new(stream, limits.stalled);
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
    server.mcp().close();
    Ok(())
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

/// A connection that fails if the other side takes no byte for some time.
struct Stalling {
    stream: TcpStream,
    most: Duration,
    /// Runs while a write waits.
    waits: Option<Pin<Box<Sleep>>>,
}

impl Stalling {
    fn new(stream: TcpStream, most: Duration) -> Self {
        Self {
            stream,
            most,
            waits: None,
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
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
