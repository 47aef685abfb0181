//! The live feed of a session: its lines as they reach the disk, and between them what streams in.
//!
//! A cursor is the number of a line on disk, so a reader that comes back, in any process, goes on without a gap or a
//! repetition. Lines come from the store alone; what streams is provisional, marked with effect and attempt, and
//! withdrawn when another attempt takes its place.

use crate::clock::Clock;
use crate::load::{Hashes, Load};
use crate::model::Delta;
use crate::session::Settled;
use crate::store::{SessionId, Store, StoreError};
use crate::toolset::Progress;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use steersman_machine::ids::{Id, Line};
use tokio::sync::broadcast;

/// How often a reader in another process looks, in milliseconds.
const LOOK: u64 = 50;
/// Rows read at once.
const PAGE: usize = 256;

/// Something that a session's followers see.
#[derive(Clone, Debug)]
pub enum FeedItem {
    /// A line that is on disk; its number is the cursor behind it.
    Line(Arc<steersman_machine::commit::LogLine>),
    /// A piece of what a model says. Provisional.
    Delta {
        /// The model call.
        effect: Id,
        /// The attempt.
        attempt: u32,
        /// Whose.
        agent: Id,
        /// The branch.
        branch: Id,
        /// The piece.
        delta: Delta,
    },
    /// How far an attempt of a tool has come. Provisional.
    Progress {
        /// The call.
        effect: Id,
        /// The attempt.
        attempt: u32,
        /// Whose.
        agent: Id,
        /// The branch.
        branch: Id,
        /// How far.
        progress: Progress,
    },
    /// What streamed of this attempt counts no longer.
    Withdrawn {
        /// The model call.
        effect: Id,
        /// The attempt.
        attempt: u32,
    },
    /// Everything is at rest, or waits.
    Settled(Arc<Settled>),
    /// The reader was too slow for what streamed; lines are complete all the same.
    Skipped(u64),
    /// The owner in this process let go; lines go on to come if another process drives the session.
    Closed,
}

/// What the owner tells its followers; lines are read from the store.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    Durable,
    Item(FeedItem),
}

/// Where the owner in this process tells its followers. Room for them is made when the first comes: a session that nobody
/// follows costs nothing for it.
#[derive(Clone, Default)]
pub(crate) struct Live(Arc<OnceLock<broadcast::Sender<Notice>>>);

/// How far a follower may be behind with what streams.
const BEHIND: usize = 1_024;

impl Live {
    pub(crate) fn tell(&self, notice: Notice) {
        if let Some(followers) = self.0.get() {
            // nobody may be there any more
            followers.send(notice).ok();
        }
    }

    pub(crate) fn show(&self, item: FeedItem) {
        self.tell(Notice::Item(item));
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Notice> {
        let followers = self.0.get_or_init(|| broadcast::channel(BEHIND).0);
        followers.subscribe()
    }
}

/// Follows a session from a cursor on.
pub struct Feed {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    session: SessionId,
    cursor: Line,
    ready: VecDeque<FeedItem>,
    live: Option<broadcast::Receiver<Notice>>,
    /// There may be lines on disk that were not read: the owner in this process tells of new ones.
    look: bool,
    /// Checks what is read; none before the first line.
    load: Option<Load>,
    hashes: Hashes,
}

impl Feed {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        session: SessionId,
        cursor: Line,
        live: Option<broadcast::Receiver<Notice>>,
    ) -> Self {
        Self {
            store,
            clock,
            session,
            cursor,
            ready: VecDeque::new(),
            live,
            look: true,
            load: None,
            hashes: Hashes::default(),
        }
    }

    /// The last line that was given out: where a later reader goes on.
    pub fn cursor(&self) -> Line {
        self.cursor
    }

    /// The next item; waits for it. Lines come in order and complete.
    pub async fn next(&mut self) -> Result<FeedItem, StoreError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(item);
            }
            if self.look {
                if self.read().await? {
                    continue;
                }
                self.look = self.live.is_none();
            }
            self.wait().await?;
        }
    }

    /// The lines that are on disk and were not given out yet; does not wait.
    pub async fn lines(
        &mut self,
    ) -> Result<Vec<Arc<steersman_machine::commit::LogLine>>, StoreError> {
        while self.read().await? {}
        let mut lines = Vec::new();
        self.ready.retain(|item| match item {
            FeedItem::Line(line) => {
                lines.push(line.clone());
                false
            }
            _ => true,
        });
        Ok(lines)
    }

    async fn wait(&mut self) -> Result<(), StoreError> {
        let Some(live) = &mut self.live else {
            self.clock.sleep(LOOK).await;
            return Ok(());
        };
        match live.recv().await {
            // Whoever owns it tells of what is on disk before what came after it.
            Ok(Notice::Durable) => self.look = true,
            Ok(Notice::Item(FeedItem::Closed)) | Err(broadcast::error::RecvError::Closed) => {
                self.live = None;
                while self.read().await? {}
                self.ready.push_back(FeedItem::Closed);
            }
            Ok(Notice::Item(item)) => self.ready.push_back(item),
            Err(broadcast::error::RecvError::Lagged(n)) => {
                self.look = true;
                self.ready.push_back(FeedItem::Skipped(n));
            }
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<bool, StoreError> {
        // Rows above the head may be seen while they are written; they do not count yet.
        let head = self.store.head(&self.session).await?;
        if head <= self.cursor {
            return Ok(false);
        }
        let from = self.cursor.next();
        let rows = self.store.rows(&self.session, from, head, PAGE).await?;
        if self.load.is_none() {
            self.load = Load::of(&self.store, &self.session).await?;
        }
        let Some(load) = &self.load else {
            return Err(StoreError::NoSession(self.session.clone()));
        };
        for row in &rows {
            let line = load.checked(row, &mut self.hashes).await?;
            self.cursor = row.n;
            self.ready.push_back(FeedItem::Line(Arc::new(line)));
        }
        Ok(!rows.is_empty())
    }
}
