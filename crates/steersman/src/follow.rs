//! Following a session: its history as typed events, from any position on, without a gap or a repetition.

use crate::Error;
use futures::stream::{BoxStream, StreamExt as _};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use steersman_machine::stored::ids::Line;
use steersman_runtime::engine::Engine;
use steersman_runtime::feed::{Feed, FeedItem, Owner};
use steersman_runtime::session::Settled;
use steersman_runtime::store::{SessionId, SessionInfo, SessionQuery};
use steersman_views::event::{Cursor, Event, EventKind, Teller};
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
    /// Items of the feed that are not told yet. Each stays until all of its events are ready, so that a wait that is cancelled loses none.
    heard: VecDeque<FeedItem>,
    /// Events that were told and not delivered yet.
    ready: VecDeque<Event>,
    /// Events up to this position were delivered before.
    from: Cursor,
    engine: Engine,
    id: SessionId,
    /// True while older lines must still be read. Then the settled state is reported.
    catches_up: bool,
    /// True if the events end when the session has settled.
    once: bool,
    /// The line of the message whose answer is awaited. A settled state before this line is ignored.
    after: Line,
    /// The settled state that was reported last, and its line.
    settled: Option<(Line, Arc<Settled>)>,
    /// The last line of the log, if a decision of what it asks lay in the inbox then: another line follows.
    decided: Option<Line>,
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
    pub(crate) fn new(engine: Engine, id: SessionId, cursor: Cursor) -> Self {
        let reader = Arc::new(Stored::plain(&engine, &id));
        Self {
            feed: engine.feed(&id, cursor.resume()),
            teller: Teller::new(reader.clone()),
            reader,
            engine,
            id,
            cursor,
            heard: VecDeque::new(),
            ready: VecDeque::new(),
            from: cursor,
            catches_up: true,
            once: false,
            after: Line::NONE,
            settled: None,
            decided: None,
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
            if let Some(item) = self.heard.front().cloned() {
                self.item(item).await?;
                self.heard.pop_front();
            } else if self.catches_up {
                self.catch_up().await?;
            } else if !matches!(self.feed.owner(), Owner::Elsewhere) {
                self.heard.push_back(self.feed.next().await?);
            } else {
                let clock = self.engine.clock().clone();
                tokio::select! {
                    item = self.feed.next() => {
                        self.heard.push_back(item?);
                        // Once no line is left, the session may have settled.
                        self.catches_up = true;
                    }
                    () = clock.sleep(LOOK) => self.catches_up = self.settled(None).await?,
                }
            }
        }
    }

    /// Adds an [`EventKind::Settled`] event if the session has settled and this process does not drive it.
    async fn settled_elsewhere(&mut self) -> Result<(), Error> {
        let head = self.feed.cursor();
        if self.is_told(head) || head < self.after || self.decided == Some(head) {
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
        let seen = self.engine.inspect(&self.id).await?;
        if seen.info.head != head {
            return Ok(());
        }
        if seen.is_decided() {
            self.decided = Some(head);
            return Ok(());
        }
        self.tells_settled(Arc::new(seen.settled)).await
    }

    /// Returns true if a decision of what the session asks lies in its inbox, which the owner in this process has not read yet.
    async fn is_decided(&mut self) -> Result<bool, Error> {
        let head = self.feed.cursor();
        let (_, inbox) = self.engine.store().inbox(&self.id).await?;
        if !inbox.is_empty() && self.engine.inspect(&self.id).await?.is_decided() {
            self.decided = Some(head);
        }
        Ok(self.decided == Some(head))
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
        let (line, settled) = told.clone();
        self.piece(FeedItem::Settled { line, settled }).await?;
        self.settled = Some(told);
        Ok(())
    }

    /// Reads all lines on disk, then the settled state for a reader that attaches after the session has settled.
    async fn catch_up(&mut self) -> Result<(), Error> {
        let lines = self.feed.lines().await?;
        if lines.is_empty() {
            self.catches_up = self.settled(None).await?;
        }
        self.heard.extend(lines.into_iter().map(FeedItem::Line));
        Ok(())
    }

    /// Adds an [`EventKind::Settled`] event if the session has settled. `heard` is a state that its owner told, with the last line before
    /// it. Returns true if lines come first, after which the state has to be looked at again.
    async fn settled(&mut self, heard: Option<(Line, Arc<Settled>)>) -> Result<bool, Error> {
        if self.feed.cursor() < self.after {
            return Ok(false);
        }
        let present = match self.feed.owner() {
            Owner::Works => return Ok(false),
            Owner::Settled(settled) => Some(settled),
            Owner::Elsewhere if heard.is_none() => {
                self.settled_elsewhere().await?;
                return Ok(false);
            }
            Owner::Elsewhere => None,
        };
        // The state may be of lines that were not told yet.
        let lines = self.feed.lines().await?;
        if !lines.is_empty() {
            self.heard.extend(lines.into_iter().map(FeedItem::Line));
            return Ok(true);
        }
        // What an owner told that has gone holds as long as there is no other line.
        let heard = heard.filter(|(line, _)| *line == self.feed.cursor());
        match (present, heard) {
            (Some(settled), None)
                if matches!(*settled, Settled::Asks(_)) && self.is_decided().await? => {}
            (Some(settled), _) | (None, Some((_, settled))) => self.tells_settled(settled).await?,
            (None, None) => self.settled_elsewhere().await?,
        }
        Ok(false)
    }

    /// Adds the event of an item that is not in the log.
    async fn piece(&mut self, item: FeedItem) -> Result<(), Error> {
        let last = self.ready.back().map_or(self.cursor, |event| event.cursor);
        self.ready.extend(self.teller.piece(item, last).await?);
        Ok(())
    }

    /// Adds the events of an item of the feed.
    async fn item(&mut self, item: FeedItem) -> Result<(), Error> {
        match item {
            FeedItem::Line(line) => {
                // A decision that lay in the inbox may be the one that this line takes or refuses.
                self.catches_up |= self.decided.is_some_and(|head| head < line.n);
                let line = self.reader.arrived(line).await?;
                let events = self.teller.line(&line).await?.into_iter();
                self.ready
                    .extend(events.filter(|event| event.cursor > self.from));
                Ok(())
            }
            FeedItem::Settled { line, settled } => {
                self.catches_up |= self.settled(Some((line, settled))).await?;
                Ok(())
            }
            // Lines still arrive through the store, whichever process drives the session next. It may have settled before this one let go.
            FeedItem::Closed => {
                self.catches_up = true;
                Ok(())
            }
            item => self.piece(item).await,
        }
    }
}
