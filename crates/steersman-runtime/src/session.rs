//! A handle to a session that this process drives.

use crate::artifact::Artifacts;
use crate::engine::{Engine, EngineError, Inspection};
use crate::feed::{Feed, Live};
use crate::inbox::{CancelWhat, Message, Resolution};
use crate::pending::{Pending, PendingId};
use crate::store::SessionId;
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_machine::artifact::Content;
use steersman_machine::ids::{Id, Line, Name, Time};
use steersman_machine::join::JoinOn;
use steersman_machine::search::Plan;
use steersman_machine::snapshot::Snapshot;
use tokio::sync::{Notify, mpsc, oneshot, watch};

/// A session that this process owns and drives. Cloning gives another handle to it; it is driven until somebody stops
/// it, a write fails, or the tokio runtime ends: dropping handles changes nothing.
#[derive(Clone)]
pub struct Session {
    pub(crate) id: SessionId,
    pub(crate) engine: Engine,
    pub(crate) to: mpsc::Sender<ToDriver>,
    pub(crate) settled: watch::Receiver<Standing>,
    /// Told when nothing happens before something outside does. Most handles wait for the end and not for this, so they
    /// are not woken with each line.
    pub(crate) still: Arc<Notify>,
    pub(crate) live: Live,
}

/// What handles tell the driver.
pub(crate) enum ToDriver {
    /// Something lies in the inbox; whoever sent it wants to know what became of it.
    Inbox(Name, oneshot::Sender<Receipt>),
    /// Something may lie in the inbox.
    Look,
    /// It may go on from where it stands; whoever said so is told that it was heard.
    Step(crate::step::Let, oneshot::Sender<()>),
    /// Let go in order.
    Stop(oneshot::Sender<()>),
}

/// Where a driver stands.
#[derive(Clone, Debug)]
pub(crate) enum Standing {
    Busy,
    /// All that can be done is done and on disk, but effects run or are tried again in a moment.
    Outside(Outside),
    /// It stands behind a line until somebody lets it go on.
    Stands {
        line: Line,
        /// An effect runs meanwhile.
        running: bool,
    },
    Settled(Arc<Settled>, Outside),
    Gone(Arc<EngineError>),
}

/// What became of something that was wanted. Whatever it says is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its id in the inbox: accepted once.
    pub id: Name,
    /// What became of it.
    pub fate: Fate,
}

/// What became of something that was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was taken, in this line.
    Taken(Line),
    /// It waits in the inbox for what is told here.
    Waits(String),
    /// It was refused, for this reason, and is gone from the inbox.
    Refused(String),
    /// The same id was accepted before: nothing happened.
    Known,
    /// Nobody drives the session: it lies in the inbox.
    Lies,
}

/// What has to happen outside before anything goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// Effects that run, also on branches that were left.
    pub running: usize,
    /// When time is the next to do something, where it is: a timer, a deadline, another attempt.
    pub due: Option<Time>,
    /// A place that does not answer, if calls of any branch wait for one ([`PendingKind::Outage`]).
    ///
    /// [`PendingKind::Outage`]: crate::pending::PendingKind::Outage
    pub place: Option<Name>,
}

/// How things stand when nothing goes on by itself.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Settled {
    /// The root gave an answer: of a turn, or of its task.
    Answered {
        /// What tasks told that ended since the answer before, in their order: the user is to hear it ahead of `text`.
        before: Vec<Arc<str>>,
        /// What it said.
        text: Arc<str>,
        /// The task is over (a turn can be continued as well, by saying something).
        task: bool,
    },
    /// People are asked; nothing goes on before one of them answers.
    Asks(Vec<Pending>),
    /// Only events and times are awaited.
    Waits(Vec<Pending>),
    /// A limit was reached.
    Limit {
        /// Which: `model_calls`, `tokens`.
        code: Name,
        /// What there was until then.
        text: Option<Arc<str>>,
    },
    /// The root failed.
    Failed {
        /// `provider_overloaded`, `deadlock`, `no_rule`.
        code: Name,
        /// For people.
        message: Arc<str>,
    },
    /// Somebody has to say whether something happened.
    Doubt(Vec<Pending>),
    /// It was cancelled.
    Cancelled,
    /// A person paused it.
    Paused,
    /// Nothing was said yet.
    Empty,
}

impl Settled {
    /// The word of `sessions`: `answered`, `waits`, `doubt`, `limit`, `failed`, `cancelled`, `paused`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "answered",
            Self::Asks(_) | Self::Waits(_) | Self::Empty => "waits",
            Self::Limit { .. } => "limit",
            Self::Failed { .. } => "failed",
            Self::Doubt(_) => "doubt",
            Self::Cancelled => "cancelled",
            Self::Paused => "paused",
        }
    }
}

impl Session {
    /// What its current branch made, as of the newest line on disk.
    ///
    /// # Errors
    /// What the store says.
    pub async fn artifacts(&self) -> Result<Artifacts, EngineError> {
        let inspection = self.engine.inspect(&self.id).await?;
        let snapshot = inspection.current_branch().map(|b| b.snapshot.clone());
        let snapshot = snapshot.unwrap_or_else(Snapshot::empty);
        Ok(Artifacts::new(self.engine.store().clone(), snapshot, None))
    }

    /// Itself as it is on disk.
    ///
    /// # Errors
    /// What the store says.
    pub async fn inspect(&self) -> Result<Inspection, EngineError> {
        self.engine.inspect(&self.id).await
    }

    /// Puts contents into the store, before a message names them ([`Engine::keep`]).
    ///
    /// # Errors
    /// [`EngineError::Refused`] if one may not be an artifact.
    pub async fn keep(&self, contents: &[Content]) -> Result<(), EngineError> {
        self.engine.keep(contents).await
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Says something to whoever has the floor on the current branch.
    pub async fn say(&self, text: &str) -> Result<Receipt, EngineError> {
        self.send(Message::Say {
            text: text.to_owned(),
            to: None,
            by: None,
            branch: None,
        })
        .await
    }

    /// Says something, and cancels first what is open.
    pub async fn interrupt(&self, text: &str) -> Result<Receipt, EngineError> {
        self.send(Message::Interrupt {
            text: text.to_owned(),
            by: None,
            branch: None,
        })
        .await
    }

    /// Answers a question, or gives a secret that was asked for.
    pub async fn answer(
        &self,
        of: PendingId,
        text: &str,
        by: &str,
    ) -> Result<Receipt, EngineError> {
        let sealed = self.engine.sealer().seal_text(text);
        self.send(Message::Answer {
            of,
            sealed,
            by: by.into(),
        })
        .await
    }

    /// Lets a held effect run, exactly as it was asked, as far as this hold keeps it.
    pub async fn approve(&self, of: PendingId, by: &str) -> Result<Receipt, EngineError> {
        self.send(Message::Approve {
            of,
            by: by.into(),
            args: None,
        })
        .await
    }

    /// Approves a call with these arguments instead: those given replace the call's own. They are judged again.
    pub async fn approve_edited(
        &self,
        of: PendingId,
        args: &Json,
        by: &str,
    ) -> Result<Receipt, EngineError> {
        self.send(Message::Approve {
            of,
            by: by.into(),
            args: Some(args.to_string()),
        })
        .await
    }

    /// Refuses a held effect.
    pub async fn reject(
        &self,
        of: PendingId,
        reason: Option<&str>,
        by: &str,
    ) -> Result<Receipt, EngineError> {
        self.send(Message::Reject {
            of,
            by: by.into(),
            reason: reason.map(str::to_owned),
        })
        .await
    }

    /// Settles a doubt.
    pub async fn resolve(
        &self,
        of: PendingId,
        how: Resolution,
        by: &str,
    ) -> Result<Receipt, EngineError> {
        self.send(Message::Resolve {
            of,
            by: by.into(),
            how,
        })
        .await
    }

    /// Cancels something.
    pub async fn cancel(&self, what: CancelWhat, by: &str) -> Result<Receipt, EngineError> {
        self.send(Message::Cancel {
            what,
            by: by.into(),
            branch: None,
        })
        .await
    }

    /// Hands an event to the session: its open wait takes it, or it lies in the inbox for one that opens later.
    pub async fn event(&self, event: &str, fields: &Json) -> Result<Receipt, EngineError> {
        self.send(Message::Event {
            event: event.into(),
            fields: fields.to_string(),
        })
        .await
    }

    /// Says something to whoever has the floor, or hands over an event, with contents that are artifacts once it is
    /// taken.
    pub async fn send_with(
        &self,
        message: Message,
        files: &[Content],
    ) -> Result<Receipt, EngineError> {
        self.engine.keep(files).await?;
        self.send(message.with(files)).await
    }

    /// Nothing new begins until [`Session::resume`].
    pub async fn pause(&self) -> Result<Receipt, EngineError> {
        self.send(Message::Pause(true)).await
    }

    /// Ends a pause.
    pub async fn resume(&self) -> Result<Receipt, EngineError> {
        self.send(Message::Pause(false)).await
    }

    /// Keeps effects of a tool from beginning, until [`Session::release`]; none: of all that may change the world.
    pub async fn hold(&self, tool: Option<&str>, by: &str) -> Result<Receipt, EngineError> {
        self.send(Message::Hold {
            tool: tool.map(Into::into),
            held: true,
            by: by.into(),
        })
        .await
    }

    /// Takes a hold back: what it kept begins.
    pub async fn release(&self, tool: Option<&str>, by: &str) -> Result<Receipt, EngineError> {
        self.send(Message::Hold {
            tool: tool.map(Into::into),
            held: false,
            by: by.into(),
        })
        .await
    }

    /// Tries again what failed: an effect that waits for its next attempt, now; without one also a model call whose
    /// failure ended the session, on a branch of its own from the line before.
    pub async fn retry(&self, effect: Option<Id>, by: &str) -> Result<Receipt, EngineError> {
        let by = by.into();
        self.send(Message::Retry { effect, by }).await
    }

    /// Binds values of `config` anew, where nothing of the session is open.
    pub async fn rebind(&self, config: &[(Name, Json)], by: &str) -> Result<Receipt, EngineError> {
        let config = config.iter();
        self.send(Message::Rebind {
            config: config
                .map(|(name, value)| (name.clone(), value.to_string()))
                .collect(),
            by: by.into(),
        })
        .await
    }

    /// Forks a branch (none: the current one) at a line (none: its last). Dry unless `live`.
    pub async fn fork(&self, fork: Fork) -> Result<Receipt, EngineError> {
        self.send(Message::Fork {
            branch: fork.branch,
            at: fork.at,
            label: fork.label,
            say: fork.say,
            live: fork.live,
        })
        .await
    }

    /// Searches from a line on where somebody owes a model call, beside the session. What comes of it is in the log
    /// ([`crate::ledger::Ledger::searches`]); the branch that won can be adopted.
    pub async fn search(&self, search: Search) -> Result<Receipt, EngineError> {
        self.send(Message::Search {
            branch: search.branch,
            at: search.at,
            say: search.say,
            plan: search.plan.to_json().to_string(),
        })
        .await
    }

    /// Ends a search with the best so far; none: all that go on.
    pub async fn stop_search(&self, of: Option<Id>) -> Result<Receipt, EngineError> {
        self.send(Message::StopSearch(of)).await
    }

    /// Goes back to a line of the current branch. What came after is superseded and stays readable.
    pub async fn rewind(&self, at: Line, say: Option<&str>) -> Result<Receipt, EngineError> {
        self.send(Message::Rewind {
            branch: None,
            at,
            label: None,
            say: say.map(str::to_owned),
        })
        .await
    }

    /// The root waits for these branches until `on` holds of them; their ends are the result. `then` follows: a tool, and its arguments if they
    /// are not what it reads of the result: an object whose texts are templates over `result`.
    pub async fn join(
        &self,
        branches: Vec<Id>,
        on: &JoinOn,
        then: Option<(Name, Option<Json>)>,
    ) -> Result<Receipt, EngineError> {
        let (then, args) = then.unzip();
        let args = args.flatten().map(|args| args.to_string());
        self.send(Message::join(branches, on, then, args)).await
    }

    /// Takes over a branch on the current one.
    pub async fn adopt(&self, branch: Id, at: Option<Line>) -> Result<Receipt, EngineError> {
        self.send(Message::Adopt { branch, at }).await
    }

    /// Makes a branch current.
    pub async fn make_current(&self, branch: Id) -> Result<Receipt, EngineError> {
        self.send(Message::Current(branch)).await
    }

    /// Puts something into the inbox and waits until it is taken, waits visibly or is refused.
    pub async fn send(&self, message: Message) -> Result<Receipt, EngineError> {
        self.send_as(crate::inbox::random_id(), message).await
    }

    /// The same under an id of the caller's, accepted once for as long as the session lives.
    pub async fn send_as(&self, id: Name, message: Message) -> Result<Receipt, EngineError> {
        if !self.engine.put(&self.id, id.clone(), &message).await? {
            return Ok(Receipt {
                id,
                fate: Fate::Known,
            });
        }
        let (reply, answer) = oneshot::channel();
        // A driver that is gone drops the reply with what it was sent, so the answer never hangs.
        self.to
            .send(ToDriver::Inbox(id.clone(), reply))
            .await
            .map_err(drop)
            .ok();
        match answer.await {
            Ok(receipt) => Ok(receipt),
            // It lies in the inbox for whoever comes next.
            Err(_) => Ok(Receipt {
                id,
                fate: Fate::Lies,
            }),
        }
    }

    /// What becomes of something that was put into the inbox before this session was opened: waits until it is taken,
    /// waits visibly or is refused. `Known` if it was taken already.
    pub async fn fate_of(&self, id: &Name) -> Fate {
        let (reply, answer) = oneshot::channel();
        let told = ToDriver::Inbox(id.clone(), reply);
        let told = self.to.send(told).await;
        match (told, answer.await) {
            (Ok(()), Ok(receipt)) => receipt.fate,
            _ => Fate::Lies,
        }
    }

    /// Waits until nothing goes on by itself any more. All that it tells of is on disk.
    pub async fn settled(&self) -> Result<Arc<Settled>, EngineError> {
        let mut standing = self.settled.clone();
        loop {
            match &*standing.borrow_and_update() {
                Standing::Busy | Standing::Outside(_) | Standing::Stands { .. } => {}
                Standing::Settled(settled, _) => return Ok(settled.clone()),
                Standing::Gone(why) => return Err(EngineError::Gone(why.clone())),
            }
            if standing.changed().await.is_err() {
                return Err(EngineError::Gone(Arc::new(EngineError::Stopped)));
            }
        }
    }

    /// Waits until it has settled otherwise than so. Where it went on meanwhile and came to the same, that is no news.
    pub async fn settled_otherwise(&self, than: &Settled) -> Result<Arc<Settled>, EngineError> {
        let mut standing = self.settled.clone();
        loop {
            match &*standing.borrow_and_update() {
                Standing::Settled(settled, _) if **settled != *than => return Ok(settled.clone()),
                Standing::Gone(why) => return Err(EngineError::Gone(why.clone())),
                _ => {}
            }
            if standing.changed().await.is_err() {
                return Err(EngineError::Gone(Arc::new(EngineError::Stopped)));
            }
        }
    }

    /// Tells when it stands otherwise than now.
    pub(crate) fn standing(&self) -> watch::Receiver<Standing> {
        let mut standing = self.settled.clone();
        standing.mark_unchanged();
        standing
    }

    /// Waits until nothing happens before something outside does: an effect that runs ends, somebody says something,
    /// time passes. All that it tells of is on disk.
    pub async fn outside(&self) -> Result<Outside, EngineError> {
        let mut standing = self.settled.clone();
        loop {
            let still = self.still.notified();
            tokio::pin!(still);
            // Registered before looking, so what is told in between is not missed.
            still.as_mut().enable();
            match &*standing.borrow_and_update() {
                Standing::Busy | Standing::Stands { .. } => {}
                Standing::Outside(outside) | Standing::Settled(_, outside) => {
                    return Ok(outside.clone());
                }
                Standing::Gone(why) => return Err(EngineError::Gone(why.clone())),
            }
            tokio::select! {
                () = still => {}
                changed = standing.changed() => if changed.is_err() {
                    return Err(EngineError::Gone(Arc::new(EngineError::Stopped)));
                }
            }
        }
    }

    /// Follows the session from a cursor on; `Line::NONE` from its beginning.
    pub fn feed(&self, cursor: Line) -> Feed {
        self.engine
            .feed_of(self.id.clone(), cursor, Some(self.live.subscribe()))
    }

    /// Lets go in order: effects that may be asked again are cut, `idempotent` and `unsafe` ones that have started
    /// are waited for within their time, also on branches that were left meanwhile, all lines reach the disk, the claim ends.
    pub async fn stop(self) {
        let (done, ended) = oneshot::channel();
        if self.to.send(ToDriver::Stop(done)).await.is_ok() {
            let _ = ended.await;
        }
        // The engine keeps no handle to what nobody drives: such a handle would keep the engine, too.
        let _ = self.engine.driven(&self.id);
        let inner = &self.engine.0;
        if inner.drives_nothing() {
            inner.mail.rests().await;
            // somebody may have begun meanwhile
            if !inner.drives_nothing() {
                inner.mail.is_carried(inner);
            }
        }
    }
}

/// How a person forks.
#[derive(Clone, Debug, Default)]
pub struct Fork {
    /// The branch; none: the current one.
    pub branch: Option<Id>,
    /// The line; none: its last.
    pub at: Option<Line>,
    /// What people call the new branch.
    pub label: Option<Name>,
    /// The first message there.
    pub say: Option<String>,
    /// Effects that touch the world run there, too.
    pub live: bool,
}

/// How a person searches.
#[derive(Clone, Debug)]
pub struct Search {
    /// The branch; none: the current one.
    pub branch: Option<Id>,
    /// The line; none: its last.
    pub at: Option<Line>,
    /// The first message there.
    pub say: Option<String>,
    /// What is to be done.
    pub plan: Plan,
}

impl Search {
    /// From the last line of the current branch on.
    pub fn here(plan: Plan) -> Self {
        Self {
            branch: None,
            at: None,
            say: None,
            plan,
        }
    }
}
