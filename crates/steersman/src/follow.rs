//! Following a session: its history as typed events, from any position on, without a gap or a repetition.

mod kind;
mod tell;

pub use kind::{Called, Event, EventKind, How, Searching};

use crate::{Error, Turn};
use futures::FutureExt as _;
use futures::stream::{BoxStream, StreamExt as _};
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_runtime::engine::Engine;
use steersman_runtime::feed::{Feed, FeedItem};
use steersman_runtime::model::Delta;
use steersman_runtime::session::Session as Driven;
use steersman_runtime::store::SessionId;
use tell::Teller;

/// Interval at which a reader checks whether this process drives the session by now, in milliseconds.
const LOOK: u64 = 50;

/// Position of a reader in a session's events, after an event that is on disk. Displays as `12.3` (after the third event of
/// line 12) and parses from that text, so that it can be the id of a server-sent event. A reader in any process that opens
/// the store can continue from it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    line: Line,
    /// Number of events of that line that were delivered.
    given: u32,
}

impl Cursor {
    /// The position before all events.
    pub const START: Self = Self {
        line: Line::NONE,
        given: 0,
    };

    /// The line whose events were delivered last.
    pub fn line(self) -> Line {
        self.line
    }
}

/// The position after all events of this line.
impl From<Line> for Cursor {
    fn from(line: Line) -> Self {
        Self {
            line,
            given: u32::MAX,
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.given {
            u32::MAX => write!(f, "{}", self.line),
            given => write!(f, "{}.{given}", self.line),
        }
    }
}

/// Error for a text that is no cursor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no cursor: they look like `12` or `12.3`")]
pub struct CursorError(String);

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let wrong = || CursorError(text.chars().take(40).collect());
        let (line, given) = match text.split_once('.') {
            Some((line, given)) => (line, given.parse().map_err(|_| wrong())?),
            None => (text, u32::MAX),
        };
        let line = Line(line.parse().map_err(|_| wrong())?);
        if line > Line::MAX {
            return Err(wrong());
        }
        Ok(Self { line, given })
    }
}

/// The events of a session, in order: each event that is on disk once, and streamed pieces between them.
///
/// No event that is on disk is ever skipped, however slow the reader is, and no reader blocks the session. Streamed pieces
/// ([`Event::is_provisional`]) may be skipped; the complete text follows as [`EventKind::Said`].
///
/// A session that another process drives is followed through the store: its lines arrive with a short delay, and nothing is
/// streamed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), steersman::Error> {
/// use steersman::{Cursor, EventKind, Network, Steersman};
///
/// let network = Network::from_yaml("agents: { desk: { system: You answer. } }").build()?;
/// let steersman = Steersman::options().script_all("desk: [ It boils water. ]").in_memory();
/// let session = steersman.start(&network).await?;
/// let mut events = session.ask_streaming("What is a kettle?").await?;
/// let mut shown = String::new();
/// while let Some(event) = events.next().await {
///     match event?.kind {
///         EventKind::Piece { text } => print!("{text}"),          // as it appears
///         EventKind::Said { text, .. } => shown = text.to_string(),
///         _ => {}
///     }
/// }
/// assert_eq!(shown, "It boils water.");
/// # Ok(())
/// # }
/// ```
pub struct Events {
    feed: Feed,
    teller: Teller,
    cursor: Cursor,
    ready: VecDeque<Event>,
    /// The line that the cursor is in, and how many of its events were delivered before.
    skip: Option<(Line, u32)>,
    engine: Engine,
    id: SessionId,
    /// The runtime's handle, if this process drives the session.
    driven: Option<Driven>,
    /// True while older lines are still to be read; afterwards the settled state is reported.
    look: bool,
    /// True if the events end when the session has settled.
    once: bool,
    /// The line of the message whose answer is awaited. A settled state before this line is ignored.
    after: Line,
    ended: bool,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("cursor", &self.cursor)
            .finish_non_exhaustive()
    }
}

impl Events {
    pub(crate) fn new(
        engine: Engine,
        id: SessionId,
        cursor: Cursor,
        driven: Option<Driven>,
    ) -> Self {
        let whole = cursor.given == u32::MAX || !cursor.line.is_some();
        let from = if whole {
            cursor.line
        } else {
            Line(cursor.line.0 - 1)
        };
        Self {
            feed: match &driven {
                Some(driven) => driven.feed(from),
                None => engine.feed(&id, from),
            },
            teller: Teller::new(engine.store().clone(), id.clone()),
            engine,
            id,
            cursor,
            ready: VecDeque::new(),
            skip: (!whole).then_some((cursor.line, cursor.given)),
            look: driven.is_some(),
            driven,
            once: false,
            after: Line::NONE,
            ended: false,
        }
    }

    /// Ends the events after the first [`EventKind::Settled`].
    pub fn until_settled(mut self) -> Self {
        self.once = true;
        self
    }

    /// Ignores any settled state until [`Self::said_in`] gives the line of the message that is about to be sent.
    pub(crate) fn look_later(mut self) -> Self {
        self.look = false;
        self.after = Line::MAX;
        self
    }

    /// Sets the line that holds the message.
    pub(crate) fn said_in(&mut self, line: Line) {
        self.after = line;
        self.look = true;
    }

    /// Returns the position after the last delivered event that is on disk.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Waits for the next event. Returns `None` after the last event of [`Events::until_settled`] and after an error; a new
    /// reader can continue from [`Events::cursor`]. Cancelling the wait loses nothing.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        if self.ended {
            return None;
        }
        match self.wait().await {
            Ok(event) => {
                self.cursor = event.cursor;
                self.ended = self.once && matches!(event.kind, EventKind::Settled(_));
                Some(Ok(event))
            }
            Err(error) => {
                self.ended = true;
                Some(Err(error))
            }
        }
    }

    /// Returns the events as a stream of the `futures` crate.
    pub fn into_stream(self) -> BoxStream<'static, Result<Event, Error>> {
        futures::stream::unfold(self, |mut events| async move {
            let event = events.next().await?;
            Some((event, events))
        })
        .boxed()
    }

    async fn wait(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if self.look {
                self.catch_up().await?;
                continue;
            }
            if self.driven.is_some() {
                let item = self.feed.next().await?;
                self.item(item).await?;
                continue;
            }
            let clock = self.engine.clock().clone();
            tokio::select! {
                item = self.feed.next() => {
                    let item = item?;
                    self.item(item).await?;
                }
                () = clock.sleep(LOOK) => self.find_driver(),
            }
        }
    }

    /// Attaches to the session if this process drives it by now, so that streamed pieces arrive too.
    fn find_driver(&mut self) {
        if let Some(driven) = self.engine.driven(&self.id) {
            self.feed = driven.feed(self.feed.cursor());
            self.driven = Some(driven);
            self.look = true;
        }
    }

    /// Delivers all lines on disk, then the settled state for a reader that attaches after the session has settled.
    async fn catch_up(&mut self) -> Result<(), Error> {
        let lines = self.feed.lines().await?;
        if lines.is_empty() {
            self.look = false;
            self.settled();
            return Ok(());
        }
        for line in lines {
            self.item(FeedItem::Line(line)).await?;
        }
        Ok(())
    }

    /// Adds an [`EventKind::Settled`] event if the session has settled.
    fn settled(&mut self) {
        if self.feed.cursor() < self.after {
            return;
        }
        // If this process no longer drives the session, its lines still arrive through the store.
        let settled = self
            .driven
            .as_ref()
            .and_then(|d| d.settled().now_or_never());
        if let Some(Ok(settled)) = settled {
            self.push(None, EventKind::Settled(Turn::from(&*settled)));
        }
    }

    fn push(&mut self, whose: Option<(Id, Option<Name>)>, kind: EventKind) {
        let (branch, agent) = whose.unwrap_or((Id::MAIN, None));
        self.ready.push_back(Event {
            cursor: self.last(),
            line: None,
            at: None,
            branch,
            agent,
            kind,
        });
    }

    /// Returns the position after all events so far.
    fn last(&self) -> Cursor {
        self.ready.back().map_or(self.cursor, |event| event.cursor)
    }

    async fn item(&mut self, item: FeedItem) -> Result<(), Error> {
        match item {
            FeedItem::Line(line) => {
                let told = self.teller.tell(&line).await?;
                let skipped = match self.skip.take() {
                    Some((n, given)) if n == line.n => given as usize,
                    _ => 0,
                };
                for (k, (agent, kind)) in told.into_iter().enumerate().skip(skipped) {
                    self.ready.push_back(Event {
                        cursor: Cursor {
                            line: line.n,
                            given: k as u32 + 1,
                        },
                        line: Some(line.n),
                        at: line.commit.as_ref().map(|commit| commit.now),
                        branch: line.branch,
                        agent,
                        kind,
                    });
                }
            }
            FeedItem::Delta {
                effect,
                agent,
                branch,
                delta,
                ..
            } => {
                if self.teller.is_over(effect) {
                    return Ok(());
                }
                let kind = match delta {
                    Delta::Text(text) => EventKind::Piece { text },
                    Delta::Reasoning(text) => EventKind::Reasoning { text },
                    // A call is reported once it is on disk.
                    Delta::Call(..) => return Ok(()),
                };
                let name = self.teller.agent(agent).await?;
                self.push(Some((branch, Some(name))), kind);
            }
            FeedItem::Progress {
                effect,
                agent,
                branch,
                progress,
                ..
            } => {
                let name = self.teller.agent(agent).await?;
                let kind = EventKind::Progress {
                    effect,
                    done: progress.done,
                    total: progress.total,
                    message: progress.message,
                };
                self.push(Some((branch, Some(name))), kind);
            }
            FeedItem::Withdrawn { .. } => self.push(None, EventKind::Withdrawn),
            FeedItem::Settled(_) => self.settled(),
            FeedItem::Skipped(count) => self.push(None, EventKind::Skipped { count }),
            // Lines still arrive through the store, whichever process drives the session next.
            FeedItem::Closed => self.driven = None,
        }
        Ok(())
    }
}
