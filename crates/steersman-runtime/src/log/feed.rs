//! The live feed of a session: its lines as they reach the disk, and streamed items between them.
//!
//! A cursor is the number of a line on disk. A reader that comes back with a cursor, in any process, continues without a gap
//! or a repetition. Lines come from the store alone. Streamed items are provisional: they carry effect and attempt, and are
//! withdrawn when their attempt fails or is cancelled.

use crate::clock::Clock;
use crate::load::{Hashes, Load};
use crate::log::settled::{Settled, Standing};
use crate::model::Delta;
use crate::store::{Row, SessionId, Store, StoreError};
use crate::toolset::Progress;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use steersman_machine::stored::commit::Admitted;
use steersman_machine::stored::ids::{Id, Line};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{Notify, broadcast, watch};

/// Milliseconds between two reads of the store, for a reader that is not in the process of the owner.
const LOOK: u64 = 50;
/// Maximum number of rows that one request reads.
const PAGE: usize = 256;

/// One item of a session's feed.
#[derive(Clone, Debug)]
pub enum FeedItem {
    /// A line that is on disk. Its number is the cursor for the items after it.
    Line(Arc<steersman_machine::stored::commit::LogLine>),
    /// A piece of a model's answer. Provisional. A reader that comes in the middle of an answer first gets the text so far as one piece.
    Delta {
        /// Effect of the model call.
        effect: Id,
        /// Number of the attempt.
        attempt: u32,
        /// The agent that called the model.
        agent: Id,
        /// The branch of the call.
        branch: Id,
        /// The piece of the answer.
        delta: Delta,
    },
    /// Progress of one attempt of a tool. Provisional.
    Progress {
        /// Effect of the tool call.
        effect: Id,
        /// Number of the attempt.
        attempt: u32,
        /// The agent that called the tool.
        agent: Id,
        /// The branch of the call.
        branch: Id,
        /// The progress that the tool reported.
        progress: Progress,
    },
    /// The items that streamed for this attempt are no longer valid.
    Withdrawn {
        /// Effect of the model call.
        effect: Id,
        /// Number of the attempt.
        attempt: u32,
        /// The agent that called the model.
        agent: Id,
        /// The branch of the call.
        branch: Id,
    },
    /// The session has settled.
    Settled {
        /// The last line before that.
        line: Line,
        /// The state in which it settled.
        settled: Arc<Settled>,
    },
    /// The reader was too slow, and this many notices were dropped. The lines are complete all the same.
    Skipped(u64),
    /// The owner in this process released the session. Further lines follow if another process drives it.
    Closed,
}

impl FeedItem {
    /// Returns the effect that a streamed item is of.
    fn effect(&self) -> Option<Id> {
        match self {
            Self::Delta { effect, .. }
            | Self::Progress { effect, .. }
            | Self::Withdrawn { effect, .. } => Some(*effect),
            Self::Line(_) | Self::Settled { .. } | Self::Skipped(_) | Self::Closed => None,
        }
    }
}

/// A message from the owner to its followers.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    /// Rows are on disk.
    Durable(OnDisk),
    Item(FeedItem),
}

/// Rows that are on disk, behind this line.
#[derive(Clone, Debug)]
pub(crate) struct OnDisk {
    pub(crate) after: Line,
    pub(crate) rows: Arc<[Row]>,
}

/// The owners that live in this process, for followers of sessions that have none yet.
pub(crate) trait Owners: Send + Sync {
    /// Returns what is notified when this process begins to drive a session.
    fn begins(&self, session: &SessionId) -> Arc<Notify>;

    /// Returns the side of a follower if this process drives the session.
    fn follower(&self, session: &SessionId) -> Option<Follower>;
}

/// Channel from the owner in this process to its followers. The first follower creates it, so a session without followers
/// pays little for it.
#[derive(Clone, Default)]
pub(crate) struct Live(Arc<Followers>);

#[derive(Default)]
struct Followers {
    channel: OnceLock<broadcast::Sender<Notice>>,
    /// True if the owner has let go, and told those who followed it then.
    is_over: AtomicBool,
    /// The texts of attempts that run, as far as they came.
    said: Mutex<BTreeMap<Id, Said>>,
}

/// The text that an attempt has streamed so far.
struct Said {
    attempt: u32,
    agent: Id,
    branch: Id,
    text: String,
}

/// The side of a follower: the texts that attempts streamed before it came, the notices since then, and how the session stands.
pub(crate) struct Follower {
    said: Vec<FeedItem>,
    notices: broadcast::Receiver<Notice>,
    standing: watch::Receiver<Standing>,
}

/// The owner of a session, as a feed knows it.
#[derive(Clone, Debug)]
pub enum Owner {
    /// The feed listens to no owner: this process does not drive the session, or has just let it go.
    Elsewhere,
    /// The owner in this process is at work.
    Works,
    /// The owner in this process has settled in this state, after lines that the feed may not have given out yet.
    Settled(Arc<Settled>),
}

/// Number of notices that a follower may lag behind.
const BEHIND: usize = 1_024;

impl Live {
    fn said(&self) -> MutexGuard<'_, BTreeMap<Id, Said>> {
        self.0.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell(&self, notice: Notice) {
        if let Some(followers) = self.0.channel.get() {
            // Fails only if no follower is left.
            followers.send(notice).ok();
        }
    }

    pub(crate) fn show(&self, item: FeedItem) {
        // A follower that comes meanwhile gets a piece either with the text so far or as a notice.
        let mut said = self.said();
        match &item {
            FeedItem::Delta {
                effect,
                attempt,
                agent,
                branch,
                delta: Delta::Text(piece),
            } => {
                let so_far = said.entry(*effect).or_insert_with(|| Said {
                    attempt: *attempt,
                    agent: *agent,
                    branch: *branch,
                    text: String::new(),
                });
                if so_far.attempt != *attempt {
                    so_far.attempt = *attempt;
                    so_far.text.clear();
                }
                so_far.text.push_str(piece);
            }
            FeedItem::Withdrawn { effect, .. } => {
                said.remove(effect);
            }
            _ => {}
        }
        self.tell(Notice::Item(item));
    }

    /// Returns the text that an attempt has shown so far.
    pub(crate) fn shown(&self, effect: Id, attempt: u32) -> Arc<str> {
        let said = self.said();
        let so_far = said.get(&effect).filter(|said| said.attempt == attempt);
        so_far.map_or_else(Arc::default, |said| said.text.as_str().into())
    }

    /// Forgets the texts of effects that are over. It is called before the lines of their ends can be read, so that no follower gets
    /// the text of an answer after its line.
    pub(crate) fn forget(&self, is_out: impl Fn(Id) -> bool) {
        self.said().retain(|effect, _| is_out(*effect));
    }

    /// Tells the followers, also those that come later, that the owner has let go.
    pub(crate) fn close(&self) {
        self.0.is_over.store(true, Ordering::SeqCst);
        self.show(FeedItem::Closed);
    }

    /// Returns true if the owner has let go.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::SeqCst)
    }

    pub(crate) fn subscribe(&self, standing: watch::Receiver<Standing>) -> Follower {
        let followers = &self.0.channel;
        let channel = followers.get_or_init(|| broadcast::channel(BEHIND).0);
        let said = self.said();
        let notices = channel.subscribe();
        if self.is_over() {
            // This follower missed the notice. A channel without a sender says the same.
            return Follower {
                said: Vec::new(),
                notices: broadcast::channel(1).1,
                standing,
            };
        }
        let said = said.iter().map(|(effect, said)| FeedItem::Delta {
            effect: *effect,
            attempt: said.attempt,
            agent: said.agent,
            branch: said.branch,
            delta: Delta::Text(said.text.clone()),
        });
        Follower {
            said: said.collect(),
            notices,
            standing,
        }
    }
}

/// Follows a session from a cursor on.
pub struct Feed {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    session: SessionId,
    cursor: Line,
    ready: VecDeque<FeedItem>,
    live: Option<Follower>,
    owners: Arc<dyn Owners>,
    /// Notified when this process begins to drive the session. `None` until it was waited for.
    begins: Option<Arc<Notify>>,
    /// True if the owner has let go, which is told after the last of its lines.
    ends: bool,
    /// Streamed items, oldest first. The owner may run ahead of its disk, so each waits until the line of its effect was read.
    streamed: VecDeque<FeedItem>,
    /// True if there may be lines on disk that were not read. The owner in this process reports new ones.
    look: bool,
    /// Checks the rows that are read. `None` until the first row is read.
    load: Option<Load>,
    hashes: Hashes,
}

impl Feed {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        session: SessionId,
        cursor: Line,
        (live, owners): (Option<Follower>, Arc<dyn Owners>),
    ) -> Self {
        let mut feed = Self {
            store,
            clock,
            session,
            cursor,
            ready: VecDeque::new(),
            live: None,
            owners,
            begins: None,
            ends: false,
            streamed: VecDeque::new(),
            look: true,
            load: None,
            hashes: Hashes::default(),
        };
        if let Some(live) = live {
            feed.attach(live);
        }
        feed
    }

    /// Listens to the owner in this process. What was read and not given out yet stays.
    fn attach(&mut self, mut live: Follower) {
        self.streamed.extend(live.said.drain(..));
        self.live = Some(live);
        self.look = true;
    }

    /// Returns the owner of the session, as far as the feed has heard.
    pub fn owner(&self) -> Owner {
        let Some(live) = &self.live else {
            return Owner::Elsewhere;
        };
        match &*live.standing.borrow() {
            Standing::Settled(settled, _) => Owner::Settled(settled.clone()),
            Standing::Gone(_) => Owner::Elsewhere,
            Standing::Busy | Standing::Outside(_) | Standing::Stands { .. } => Owner::Works,
        }
    }

    /// Returns the number of the last line that was read. A later reader continues from it.
    pub fn cursor(&self) -> Line {
        self.cursor
    }

    /// Waits for the next item and returns it. Lines come in order and without gaps; a streamed item comes after the line
    /// of its effect, and before that of its outcome.
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
            let cursor = self.cursor;
            let follows = |item: &mut FeedItem| item.effect().is_none_or(|of| of.line() <= cursor);
            if self.ends {
                // Pieces ahead of the disk belong to lines that may never come.
                self.streamed.retain_mut(follows);
            }
            if let Some(item) = self.streamed.pop_front_if(follows) {
                return Ok(item);
            }
            if std::mem::take(&mut self.ends) {
                return Ok(FeedItem::Closed);
            }
            self.wait().await?;
        }
    }

    /// Returns the lines that are on disk and were not given out yet. Does not wait for new ones. Pieces of answers that these lines
    /// hold are not given out any more.
    pub async fn lines(
        &mut self,
    ) -> Result<Vec<Arc<steersman_machine::stored::commit::LogLine>>, StoreError> {
        while self.read().await? {}
        let mut lines = Vec::new();
        self.ready.retain(|item| match item {
            FeedItem::Line(line) => {
                lines.push(line.clone());
                false
            }
            item => item.effect().is_none(),
        });
        Ok(lines)
    }

    async fn wait(&mut self) -> Result<(), StoreError> {
        let Some(live) = &mut self.live else {
            self.finds_owner().await;
            return Ok(());
        };
        let told = live.notices.recv().await;
        if let Some(rows) = self.told(told) {
            self.take(&rows).await?;
            self.look = false;
        }
        Ok(())
    }

    /// Takes what the owner told. Returns rows that follow the last one that was read; others are read from the store.
    fn told(&mut self, told: Result<Notice, RecvError>) -> Option<Arc<[Row]>> {
        match told {
            // The owner reports a line on disk before any item that came after the line.
            Ok(Notice::Durable(OnDisk { after, rows })) => {
                let follow = after == self.cursor && !self.look;
                // A reader that stops waiting meanwhile finds the rest in the store.
                self.look = true;
                return follow.then_some(rows);
            }
            Ok(Notice::Item(FeedItem::Closed)) | Err(RecvError::Closed) => self.leaves(),
            Ok(Notice::Item(item)) => self.streamed.push_back(item),
            Err(RecvError::Lagged(n)) => {
                self.look = true;
                self.streamed.push_back(FeedItem::Skipped(n));
            }
        }
        None
    }

    /// Waits until the store may have other lines, and listens to an owner that begins in this process.
    async fn finds_owner(&mut self) {
        let begins = self
            .begins
            .get_or_insert_with(|| self.owners.begins(&self.session))
            .clone();
        let begun = begins.notified();
        tokio::pin!(begun);
        // An owner that begins from here on is heard of.
        begun.as_mut().enable();
        if self.meets_owner() {
            return;
        }
        tokio::select! {
            () = begun => {
                self.meets_owner();
            }
            () = self.clock.sleep(LOOK) => {}
        }
    }

    /// Stops listening to an owner that has let go. From here on nobody reports new lines.
    fn leaves(&mut self) {
        self.live = None;
        self.look = true;
        self.ends = true;
    }

    /// Takes what the owner told so far. Rows that are about to be taken may end answers whose pieces are still on their way.
    fn hears(&mut self) {
        while let Some(live) = &mut self.live {
            let told = match live.notices.try_recv() {
                Ok(notice) => Ok(notice),
                Err(TryRecvError::Closed) => Err(RecvError::Closed),
                Err(TryRecvError::Lagged(n)) => Err(RecvError::Lagged(n)),
                Err(TryRecvError::Empty) => return,
            };
            // Rows among it are read from the store, which is looked at again.
            let _ = self.told(told);
        }
    }

    /// Listens to the owner in this process, if there is one by now. Returns true if it does.
    fn meets_owner(&mut self) -> bool {
        if self.live.is_none()
            && !self.ends
            && let Some(follower) = self.owners.follower(&self.session)
        {
            self.attach(follower);
        }
        self.live.is_some()
    }

    async fn read(&mut self) -> Result<bool, StoreError> {
        // Rows above the head may be visible while their batch is written. They do not count yet.
        let head = self.store.head(&self.session).await?;
        if head <= self.cursor {
            return Ok(false);
        }
        let from = self.cursor.next();
        let rows = self.store.rows(&self.session, from, head, PAGE).await?;
        self.hears();
        self.take(&rows).await?;
        // A line of an owner that began meanwhile is given out after the owner is listened to, so that no piece behind it is missed.
        if !rows.is_empty() {
            self.meets_owner();
        }
        Ok(!rows.is_empty())
    }

    /// Takes the rows that follow the last one that was read.
    async fn take(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        if self.load.is_none() {
            self.load = Load::of(&self.store, &self.session).await?;
        }
        let Some(load) = &self.load else {
            return Err(StoreError::NoSession(self.session.clone()));
        };
        for row in rows {
            let line = load.checked(row, &mut self.hashes).await?;
            self.cursor = row.n;
            let admitted = line.commit.iter().flat_map(|commit| &commit.admitted);
            let outcomes = admitted.filter(|admitted| admitted.kind == Admitted::Outcome);
            for over in outcomes.filter_map(|admitted| admitted.id) {
                // The whole answer comes after its pieces.
                let streamed = std::mem::take(&mut self.streamed).into_iter();
                let (pieces, others): (VecDeque<_>, VecDeque<_>) =
                    streamed.partition(|item| item.effect() == Some(over));
                self.streamed = others;
                self.ready.extend(pieces);
            }
            self.ready.push_back(FeedItem::Line(Arc::new(line)));
        }
        Ok(())
    }
}
