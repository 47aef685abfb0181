//! The events of a session as server-sent events. A reader that comes back with the last id misses nothing and gets nothing twice.

use crate::Server;
use crate::caller::Caller;
use crate::metrics::OpenStream;
use crate::permission::Permission;
use crate::problem::{Code, Problem};
use crate::routes::row;
use crate::watch::Changed;
use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;
use steersman::views::filter::{self, Filter};
use steersman::{Cursor, Event, EventKind, Events, SessionInfo};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

/// Interval of the comments that keep a connection open.
const COMMENT: Duration = Duration::from_secs(15);
/// Time after which a browser connects again.
const RETRY: Duration = Duration::from_secs(1);

/// Conditions on the events of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The position after which the events begin.
    pub(crate) from: Cursor,
    /// Kinds of events. Empty means all.
    pub(crate) kinds: BTreeSet<String>,
    /// The id of a branch.
    pub(crate) branch: Option<String>,
    /// True if the stream ends when the session has settled.
    pub(crate) until_settled: bool,
}

/// Returns the position that a client names: a cursor, `start` or `now`. The last id of a browser goes before it.
pub(crate) fn position(
    last_id: Option<&str>,
    from: Option<&str>,
    info: &SessionInfo,
) -> Result<Cursor, Problem> {
    match last_id.or(from) {
        None | Some("start") => Ok(Cursor::START),
        Some("now") => Ok(info.head.into()),
        Some(text) => {
            let cursor: Cursor = text.parse().map_err(|error: steersman::CursorError| {
                Problem::new(Code::Cursor, error.to_string())
            })?;
            if cursor.line() > info.head {
                let why = format!(
                    "`{text}` is behind the end of the session, whose last line is {}",
                    info.head
                );
                return Err(Problem::new(Code::Cursor, why)
                    .help("`from=start` begins at its first line, `from=now` at its end"));
            }
            Ok(cursor)
        }
    }
}

/// Opens a stream.
pub(crate) fn open(
    caller: Caller,
    info: &SessionInfo,
    wanted: Wanted,
) -> Result<Response, Problem> {
    caller.streams()?;
    let id = &info.id;
    let events = caller.steersman.events(id, wanted.from);
    let events = if caller.may(Permission::Context) {
        events
    } else {
        events.masked()
    };
    let events = if wanted.until_settled {
        events.until_settled()
    } else {
        events
    };
    let driven = match (caller.steersman.engine().driven(id), &info.owner) {
        (Some(_), _) => "here",
        (None, Some(_)) => "elsewhere",
        (None, None) => "nobody",
    };
    let hello = json!({
        "cursor": wanted.from.to_string(),
        "head": info.head.0,
        "driven": driven,
    });
    let hello = frame("hello", &hello).retry(RETRY);
    let reading = Reading {
        stopping: caller.server.stopping().clone(),
        events,
        wanted,
        is_over: false,
        _counted: (caller.server.options().metrics.as_ref()).map(super::metrics::Metrics::stream),
        server: caller.server.clone(),
    };
    let frames = stream::unfold(reading, |mut reading| async move {
        let frame = reading.next().await?;
        Some((frame, reading))
    });
    Ok(streamed(stream::iter([hello]).chain(frames)))
}

/// Answers with a stream of frames. A comment comes while there is nothing to tell.
pub(crate) fn streamed(frames: impl Stream<Item = Frame> + Send + 'static) -> Response {
    let frames = frames.map(Ok::<_, Infallible>);
    let sse = Sse::new(frames).keep_alive(KeepAlive::new().interval(COMMENT));
    let mut response = sse.into_response();
    let name = HeaderName::from_static("x-accel-buffering");
    response
        .headers_mut()
        .insert(name, HeaderValue::from_static("no"));
    response
}

/// Names the session in a response.
pub(crate) fn with_session(mut response: Response, session: &str) -> Response {
    if let Ok(session) = HeaderValue::from_str(session) {
        let name = HeaderName::from_static("x-steersman-session");
        response.headers_mut().insert(name, session);
    }
    response
}

/// Follows the sessions that a token sees and a filter lets through.
pub(crate) fn of_sessions(caller: Caller, filter: Filter) -> Result<Response, Problem> {
    caller.streams()?;
    let counted = caller.server.options().metrics.clone();
    let following = Following {
        changed: caller.server.watch(),
        stopping: caller.server.stopping().clone(),
        _counted: counted.as_ref().map(super::metrics::Metrics::stream),
        filter,
        caller,
        is_over: false,
    };
    let hello = json!({ "driving": following.caller.server.is_driving() });
    let hello = frame("hello", &hello).retry(RETRY);
    let frames = stream::unfold(following, |mut following| async move {
        let frame = following.next().await?;
        Some((frame, following))
    });
    Ok(streamed(stream::iter([hello]).chain(frames)))
}

/// A stream of sessions that is open.
struct Following {
    changed: broadcast::Receiver<Changed>,
    filter: Filter,
    caller: Caller,
    stopping: CancellationToken,
    is_over: bool,
    _counted: Option<OpenStream>,
}

impl Following {
    async fn next(&mut self) -> Option<Frame> {
        while !self.is_over {
            let next = tokio::select! {
                next = self.changed.recv() => next,
                () = self.stopping.cancelled() => {
                    self.is_over = true;
                    return Some(Frame::default().comment("bye"));
                }
            };
            match next {
                Ok(info) => match self.shown(&info).await {
                    Ok(None) => {}
                    Ok(Some(frame)) => return Some(frame),
                    Err(problem) => {
                        self.is_over = true;
                        let problem = serde_json::to_value(problem).unwrap_or_default();
                        return Some(frame("problem", &problem));
                    }
                },
                Err(RecvError::Lagged(count)) => {
                    if let Some(metrics) = &self.caller.server.options().metrics {
                        metrics.skipped(count);
                    }
                    return Some(frame("skipped", &json!({ "count": count })));
                }
                Err(RecvError::Closed) => self.is_over = true,
            }
        }
        None
    }

    /// Returns the frame of a session that changed, if the token sees it: its row, or that the filter does not let it through.
    async fn shown(&self, info: &SessionInfo) -> Result<Option<Frame>, Problem> {
        if !self.caller.token.scope.includes(&info.scope) {
            return Ok(None);
        }
        let engine = self.caller.steersman.engine();
        Ok(Some(if filter::passes(engine, &self.filter, info).await? {
            frame("session", &row(&self.caller, info).await?)
        } else {
            frame("left", &json!({ "session": &*info.id }))
        }))
    }
}

/// A stream that is open.
struct Reading {
    events: Events,
    wanted: Wanted,
    stopping: CancellationToken,
    is_over: bool,
    server: Server,
    _counted: Option<OpenStream>,
}

impl Reading {
    async fn next(&mut self) -> Option<Frame> {
        while !self.is_over {
            let next = tokio::select! {
                next = self.events.next() => next,
                () = self.stopping.cancelled() => {
                    self.is_over = true;
                    return Some(Frame::default().comment("bye"));
                }
            };
            match next {
                None => self.is_over = true,
                Some(Ok(event)) => {
                    if let EventKind::Skipped { count } = &event.kind
                        && let Some(metrics) = &self.server.options().metrics
                    {
                        metrics.skipped(*count);
                    }
                    if let Some(frame) = self.shown(&event) {
                        return Some(frame);
                    }
                }
                Some(Err(error)) => {
                    self.is_over = true;
                    let problem = serde_json::to_value(Problem::from(error)).unwrap_or_default();
                    return Some(frame("problem", &problem));
                }
            }
        }
        None
    }

    /// Returns the frame of an event, unless the client does not want it.
    fn shown(&self, event: &Event) -> Option<Frame> {
        let json = event.to_json();
        let kind = json["event"].as_str().unwrap_or_default().to_owned();
        let is_settled = matches!(event.kind, EventKind::Settled(_));
        let is_kind = self.wanted.kinds.is_empty() || self.wanted.kinds.contains(&kind);
        let is_branch = (self.wanted.branch.as_ref())
            .is_none_or(|branch| is_settled || json["branch"].as_str() == Some(branch));
        if !(is_kind && is_branch) {
            return None;
        }
        let frame = frame(&kind, &json);
        // The last id of a browser stays that of the last event on disk.
        Some(if event.is_provisional() {
            frame
        } else {
            frame.id(event.cursor.to_string())
        })
    }
}

/// Returns the frame of an event.
pub(crate) fn frame(kind: &str, data: &Value) -> Frame {
    Frame::default().event(kind).data(data.to_string())
}
