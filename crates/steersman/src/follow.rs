//! Following a session: its history as typed events, from any position on, without a gap or a repetition.

use crate::Error;
use futures::FutureExt as _;
use futures::stream::{BoxStream, StreamExt as _};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::Line;
use steersman_runtime::engine::Engine;
use steersman_runtime::feed::{Feed, FeedItem};
use steersman_runtime::inbox::Message;
use steersman_runtime::session::{Session as Driven, Settled};
use steersman_runtime::store::{SessionId, SessionInfo, SessionQuery};
use steersman_views::event::{Cursor, Event, EventKind, Teller};
use steersman_views::log::became;
use steersman_views::reader::{Reader as _, Stored};

/// Interval at which a reader checks whether this process drives the session by now, in milliseconds.
const LOOK: u64 = 50;

/// The events of a session, in order: each event that is on disk once, and streamed pieces between them.
///
/// No event that is on disk is ever skipped, however slow the reader is, and no reader blocks the session. Streamed pieces
/// ([`Event::is_provisional`]) may be skipped; the complete text follows as [`EventKind::Said`].
///
/// A session that another process drives is followed through the store: its lines, and that it settled, arrive with a short delay,
/// and nothing is streamed.
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
///         EventKind::Piece { text, .. } => print!("{text}"),          // as it appears
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
    reader: Arc<Stored>,
    teller: Teller,
    cursor: Cursor,
    /// Events that were read and not delivered yet.
    ready: VecDeque<Event>,
    /// Events up to this position were delivered before.
    from: Cursor,
    engine: Engine,
    id: SessionId,
    /// The runtime's handle, if this process drives the session.
    driven: Option<Driven>,
    /// True while older lines must still be read. Then the settled state is reported.
    catches_up: bool,
    /// True if the events end when the session has settled.
    once: bool,
    /// The line of the message whose answer is awaited. A settled state before this line is ignored.
    after: Line,
    /// The settled state that was reported last, and its line.
    settled: Option<(Line, Arc<Settled>)>,
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
        let from = cursor.resume();
        let reader = Arc::new(Stored::plain(&engine, &id));
        Self {
            feed: match &driven {
                Some(driven) => driven.feed(from),
                None => engine.feed(&id, from),
            },
            teller: Teller::new(reader.clone()),
            reader,
            engine,
            id,
            cursor,
            ready: VecDeque::new(),
            from: cursor,
            catches_up: true,
            driven,
            once: false,
            after: Line::NONE,
            settled: None,
            ended: false,
        }
    }

    /// Ends the events after the first [`EventKind::Settled`].
    pub fn until_settled(mut self) -> Self {
        self.once = true;
        self
    }

    /// Masks the values of all secrets that the session knows, in streamed pieces too.
    pub fn masked(mut self) -> Self {
        self.reader = Arc::new(Stored::masked(&self.engine, &self.id));
        self.teller = Teller::new(self.reader.clone());
        self
    }

    /// Ignores states in which the session had settled before this line was on disk.
    pub fn settled_after(mut self, line: Line) -> Self {
        self.after = line;
        self
    }

    /// Ignores any settled state until [`Self::said_in`] gives the line of the message that is about to be sent.
    pub(crate) fn look_later(mut self) -> Self {
        self.catches_up = false;
        self.after = Line::MAX;
        self
    }

    /// Sets the line that holds the message.
    pub(crate) fn said_in(&mut self, line: Line) {
        self.after = line;
        self.catches_up = true;
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
        if self.reader.is_masked() && self.reader.known().is_none() {
            // Pieces may come before the first line.
            self.reader.masks().await?;
        }
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if self.catches_up {
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
                    // The item may be one of a driver that began meanwhile.
                    self.find_driver();
                    self.item(item).await?;
                    // Once no line is left, the session may have settled.
                    self.catches_up = true;
                }
                () = clock.sleep(LOOK) => {
                    self.find_driver();
                    self.settled(None).await?;
                }
            }
        }
    }

    /// Asks the driver of the session from here on if it has settled, if this process drives it by now.
    fn find_driver(&mut self) {
        if let Some(driven) = self.engine.driven(&self.id) {
            self.driven = Some(driven);
            self.catches_up = true;
        }
    }

    /// Adds an [`EventKind::Settled`] event if the session has settled and this process does not drive it.
    async fn settled_elsewhere(&mut self) -> Result<(), Error> {
        let head = self.feed.cursor();
        if self.is_told(head) || head < self.after {
            return Ok(());
        }
        if !head.is_some() || self.engine.store().head(&self.id).await? != head {
            return Ok(());
        }
        let query = SessionQuery {
            prefix: Some(self.id.to_string()),
            ..SessionQuery::default()
        };
        let found = self.engine.store().sessions(&query).await?;
        // The state of lists is written with the line that changes it.
        let rests = |info: &SessionInfo| !matches!(&*info.state.status, "" | "running");
        let mut found = found.iter();
        if !found.any(|info| info.id == self.id && info.head == head && rests(info)) {
            return Ok(());
        }
        if self.goes_on().await? {
            return Ok(());
        }
        let seen = self.engine.inspect(&self.id).await?;
        if seen.info.head != head {
            return Ok(());
        }
        self.tells_settled(Arc::new(seen.settled)).await
    }

    /// Returns true if somebody decided what the session asks: its next owner takes that, and the session settles after it.
    async fn goes_on(&self) -> Result<bool, Error> {
        let (_, inbox) = self.engine.store().inbox(&self.id).await?;
        for lies in &inbox {
            let message = Message::decode(lies);
            // A store may return a message again that was taken.
            if message.is_ok_and(|message| message.wanted.is_decision())
                && became(&*self.reader, Line::NONE, &lies.id).await?.is_none()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if a settled state of this line was reported.
    fn is_told(&self, line: Line) -> bool {
        self.settled.as_ref().is_some_and(|(told, _)| *told == line)
    }

    /// Adds an [`EventKind::Settled`] event, unless it was the last one. A reader that finds the driver while the session settles learns
    /// of it in two ways.
    async fn tells_settled(&mut self, settled: Arc<Settled>) -> Result<(), Error> {
        let told = (self.feed.cursor(), settled);
        if self.settled.as_ref() == Some(&told) {
            return Ok(());
        }
        self.settled = Some(told.clone());
        let (line, settled) = told;
        self.piece(FeedItem::Settled { line, settled }).await
    }

    /// Delivers all lines on disk, then the settled state for a reader that attaches after the session has settled.
    async fn catch_up(&mut self) -> Result<(), Error> {
        let lines = self.feed.lines().await?;
        if lines.is_empty() {
            self.catches_up = false;
            return self.settled(None).await;
        }
        for line in lines {
            self.line(line).await?;
        }
        Ok(())
    }

    /// Adds an [`EventKind::Settled`] event if the session has settled. `heard` is a state that its owner told, with the last line before
    /// it.
    async fn settled(&mut self, heard: Option<(Line, Arc<Settled>)>) -> Result<(), Error> {
        if self.feed.cursor() < self.after {
            return Ok(());
        }
        let present = match &self.driven {
            Some(driven) => match driven.settled().now_or_never() {
                Some(settled) => settled.ok(),
                None => return Ok(()),
            },
            None if heard.is_none() => return self.settled_elsewhere().await,
            None => None,
        };
        // The state may be of lines that were not delivered yet. They come first, and the state is read again after them.
        let lines = self.feed.lines().await?;
        let is_behind = !lines.is_empty();
        for line in lines {
            self.line(line).await?;
        }
        self.catches_up = is_behind;
        if present.is_none() && self.driven.take().is_some() {
            // This process no longer drives the session. It may have said so before this reader listened, so the reader goes on
            // through the store.
            self.feed = self.engine.feed(&self.id, self.feed.cursor());
        }
        // What an owner told that has gone holds as long as there is no other line.
        let heard = heard.filter(|(line, _)| *line == self.feed.cursor());
        match present.or(heard.map(|(_, settled)| settled)) {
            _ if is_behind => Ok(()),
            Some(settled) => self.tells_settled(settled).await,
            None => self.settled_elsewhere().await,
        }
    }

    /// Adds the event of an item that is not in the log.
    async fn piece(&mut self, item: FeedItem) -> Result<(), Error> {
        let last = self.ready.back().map_or(self.cursor, |event| event.cursor);
        self.ready.extend(self.teller.piece(item, last).await?);
        Ok(())
    }

    /// Adds the events of a line.
    async fn line(&mut self, line: Arc<LogLine>) -> Result<(), Error> {
        let line = self.reader.arrived(line).await?;
        let events = self.teller.line(&line).await?.into_iter();
        self.ready
            .extend(events.filter(|event| event.cursor > self.from));
        Ok(())
    }

    /// Adds the events of an item of the feed.
    async fn item(&mut self, item: FeedItem) -> Result<(), Error> {
        match item {
            FeedItem::Line(line) => self.line(line).await,
            FeedItem::Settled { line, settled } => self.settled(Some((line, settled))).await,
            // Lines still arrive through the store, whichever process drives the session next. It may have settled before this one let go.
            FeedItem::Closed => {
                self.driven = None;
                self.catches_up = true;
                Ok(())
            }
            item => self.piece(item).await,
        }
    }
}
