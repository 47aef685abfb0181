//! A handle to a session that this process drives.

use crate::artifact::Artifacts;
use crate::engine::{Engine, EngineError, Inspection};
use crate::feed::{Feed, Follower, Live};
use crate::inbox::{CancelWhat, Message, Resolution, Wanted};
pub(crate) use crate::log::settled::Standing;
pub use crate::log::settled::{Outside, Settled};
use crate::pending::PendingId;
use crate::store::{Scope, SessionId};

use serde_json::Value as Json;
use std::sync::Arc;
use steersman_machine::network::join::JoinOn;
use steersman_machine::network::search::Plan;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::by::By;
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::view::artifact::Content;
use tokio::sync::{Notify, mpsc, oneshot, watch};

/// A session that this process owns and drives. A clone is another handle to the same session. Dropping handles changes
/// nothing: the session is driven until somebody stops it, a write fails, or the tokio runtime ends.
#[derive(Clone)]
pub struct Session {
    pub(crate) id: SessionId,
    pub(crate) scope: Scope,
    pub(crate) engine: Engine,
    pub(crate) to: mpsc::Sender<ToDriver>,
    pub(crate) standing: watch::Receiver<Standing>,
    /// Notified when the session can only wait for something outside ([`Session::outside`]). This is not a change of `standing`,
    /// because most handles wait until the session settles and need not wake with each line.
    pub(crate) still: Arc<Notify>,
    pub(crate) live: Live,
}

/// A message from a handle to the driver.
pub(crate) enum ToDriver {
    /// A message was put into the inbox. The sender waits for its receipt.
    Inbox(Name, oneshot::Sender<Receipt>),
    /// The inbox may hold a new message.
    Look,
    /// The lease of this worker ended: drop the session, and write nothing more.
    Lost,
    /// A stopped session may go on. The sender is notified when the driver has read this.
    Step(crate::step::Let, oneshot::Sender<()>),
    /// Stop driving and release the session in an orderly way.
    Stop(oneshot::Sender<()>),
}

/// The result of a request to a session. Everything that it reports is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Id of the message in the inbox. An id is accepted once.
    pub id: Name,
    /// The state of the message.
    pub fate: Fate,
}

/// The state of a message that was put into an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The message was taken, in this line.
    Taken(Line),
    /// The message waits in the inbox for the condition in this text.
    Waits(String),
    /// The message was refused, for this reason, and was removed from the inbox.
    Refused(String),
    /// A message with the same id was accepted before: nothing happened.
    Known,
    /// Nobody drives the session: the message is in the inbox.
    Lies,
}

impl Session {
    /// Returns the artifacts of the current branch, as of the newest line on disk.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn artifacts(&self) -> Result<Artifacts, EngineError> {
        let inspection = self.engine.inspect(&self.id).await?;
        let snapshot = inspection.current_branch().map(|b| b.snapshot.clone());
        let snapshot = snapshot.unwrap_or_else(Snapshot::empty);
        Ok(Artifacts::new(self.engine.store().clone(), snapshot, None))
    }

    /// Reads the session as it is on disk.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn inspect(&self) -> Result<Inspection, EngineError> {
        self.engine.inspect(&self.id).await
    }

    /// Puts contents into the store, before a message names them ([`Engine::keep`]).
    ///
    /// # Errors
    /// [`EngineError::Refused`] if a content may not be an artifact.
    pub async fn keep(&self, contents: &[Content]) -> Result<(), EngineError> {
        self.engine.keep(contents).await
    }

    /// Returns the session's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Says something to the agent that has the floor on the current branch.
    pub async fn say(&self, text: &str) -> Result<Receipt, EngineError> {
        self.send(Wanted::say(text).by(By::default())).await
    }

    /// Cancels everything that is open, and then says something.
    pub async fn interrupt(&self, text: &str) -> Result<Receipt, EngineError> {
        self.send(Wanted::Interrupt(text.to_owned()).by(By::default()))
            .await
    }

    /// Answers a question, or gives a secret that was asked for. The text is sealed.
    pub async fn answer(
        &self,
        of: PendingId,
        text: &str,
        by: &str,
    ) -> Result<Receipt, EngineError> {
        let sealed = self.engine.sealer().seal_text(text);
        self.send(Wanted::Answer { of, sealed }.by(by)).await
    }

    /// Approves a held effect with its own arguments. Other holds still keep it from running.
    pub async fn approve(&self, of: PendingId, by: &str) -> Result<Receipt, EngineError> {
        self.send(Wanted::Approve { of, args: None }.by(by)).await
    }

    /// Approves a call with edited arguments: those given replace the call's own. The arguments are checked again.
    pub async fn approve_edited(
        &self,
        of: PendingId,
        args: &Json,
        by: &str,
    ) -> Result<Receipt, EngineError> {
        let args = Some(args.to_string());
        self.send(Wanted::Approve { of, args }.by(by)).await
    }

    /// Rejects a held effect.
    pub async fn reject(
        &self,
        of: PendingId,
        reason: Option<&str>,
        by: &str,
    ) -> Result<Receipt, EngineError> {
        let reason = reason.map(str::to_owned);
        self.send(Wanted::Reject { of, reason }.by(by)).await
    }

    /// Settles a doubt: says whether the effect happened.
    pub async fn resolve(
        &self,
        of: PendingId,
        how: Resolution,
        by: &str,
    ) -> Result<Receipt, EngineError> {
        self.send(Wanted::Resolve { of, how }.by(by)).await
    }

    /// Cancels an effect, an agent, everything on the branch, or everything in the session ([`CancelWhat`]).
    pub async fn cancel(&self, what: CancelWhat, by: &str) -> Result<Receipt, EngineError> {
        self.send(Wanted::Cancel(what).by(by)).await
    }

    /// Delivers an event to the session. Its open wait takes the event, or the event stays in the inbox for a later wait.
    pub async fn event(&self, event: &str, fields: &Json) -> Result<Receipt, EngineError> {
        let (event, fields) = (event.into(), fields.to_string());
        self.send(Wanted::Event { event, fields }.into()).await
    }

    /// Pauses the session: nothing new begins until [`Session::resume`].
    pub async fn pause(&self) -> Result<Receipt, EngineError> {
        self.send(Wanted::Pause(true).by(By::default())).await
    }

    /// Ends a pause: effects may begin again.
    pub async fn resume(&self) -> Result<Receipt, EngineError> {
        self.send(Wanted::Pause(false).by(By::default())).await
    }

    /// Keeps effects of a tool from beginning, until [`Session::release`]. `None` means all effects that may change the world.
    pub async fn hold(&self, tool: Option<&str>, by: &str) -> Result<Receipt, EngineError> {
        let (tool, held) = (tool.map(Into::into), true);
        self.send(Wanted::Hold { tool, held }.by(by)).await
    }

    /// Ends a hold. The effects that it prevented may begin.
    pub async fn release(&self, tool: Option<&str>, by: &str) -> Result<Receipt, EngineError> {
        let (tool, held) = (tool.map(Into::into), false);
        self.send(Wanted::Hold { tool, held }.by(by)).await
    }

    /// Starts the next attempt of an effect now instead of at its due time. `None` means all effects that wait for one. If no
    /// effect waits, retries the model call whose failure ended the session, on a new branch from the line before.
    pub async fn retry(&self, effect: Option<Id>, by: &str) -> Result<Receipt, EngineError> {
        self.send(Wanted::Retry(effect).by(by)).await
    }

    /// Binds new values of `config`. Nothing in the session may be open.
    pub async fn rebind(&self, config: &[(Name, Json)], by: &str) -> Result<Receipt, EngineError> {
        let config = config.iter();
        let config = config.map(|(name, value)| (name.clone(), value.to_string()));
        self.send(Wanted::Rebind(config.collect()).by(by)).await
    }

    /// Forks a branch at a line ([`Fork`]). Unless `live` is set, the new branch is dry: effects that touch the world are simulated.
    pub async fn fork(&self, fork: Fork) -> Result<Receipt, EngineError> {
        let wanted = Wanted::Fork {
            at: fork.at,
            label: fork.label,
            say: fork.say,
            live: fork.live,
        };
        self.send(wanted.by(By::default()).on(fork.branch)).await
    }

    /// Starts a search from a line at which an agent owes a model call. It runs on branches of its own while the session
    /// continues. Its results are in the log ([`crate::ledger::Ledger::searches`]), and the winning branch can be adopted.
    pub async fn search(&self, search: Search) -> Result<Receipt, EngineError> {
        let wanted = Wanted::Search {
            at: search.at,
            say: search.say,
            plan: search.plan.to_json().to_string(),
        };
        self.send(wanted.by(By::default()).on(search.branch)).await
    }

    /// Ends a search with the best result so far. `None` means all open searches.
    pub async fn stop_search(&self, of: Option<Id>) -> Result<Receipt, EngineError> {
        self.send(Wanted::StopSearch(of).by(By::default())).await
    }

    /// Goes back to a line of the current branch. Everything after it is superseded and stays readable.
    pub async fn rewind(&self, at: Line, say: Option<&str>) -> Result<Receipt, EngineError> {
        let wanted = Wanted::Rewind {
            at,
            label: None,
            say: say.map(str::to_owned),
        };
        self.send(wanted.by(By::default())).await
    }

    /// Makes the root agent wait for these branches until `on` is met. The result is the list of the ends of the branches. `then` is
    /// a tool that is called next, with optional arguments: an object whose texts are templates over `result`. Without arguments,
    /// the tool gets the result: as the arguments if the fields of the result are parameters of the tool, otherwise as the tool's
    /// one argument.
    pub async fn join(
        &self,
        branches: Vec<Id>,
        on: &JoinOn,
        then: Option<(Name, Option<Json>)>,
    ) -> Result<Receipt, EngineError> {
        let (then, args) = then.unzip();
        let args = args.flatten().map(|args| args.to_string());
        self.send(Wanted::join(branches, on, then, args).by(By::default()))
            .await
    }

    /// Adopts a branch: the current branch continues with its results.
    pub async fn adopt(&self, branch: Id, at: Option<Line>) -> Result<Receipt, EngineError> {
        self.send(Wanted::Adopt { branch, at }.by(By::default()))
            .await
    }

    /// Makes a branch the current one.
    pub async fn make_current(&self, branch: Id) -> Result<Receipt, EngineError> {
        self.send(Wanted::Current(branch).by(By::default())).await
    }

    /// Puts a message into the inbox and waits until it is taken, left waiting, or refused.
    pub async fn send(&self, message: Message) -> Result<Receipt, EngineError> {
        self.send_as(crate::inbox::random_id(), message).await
    }

    /// Sends a message as [`Session::send`] does, under an id that the caller chooses. The id is accepted once in the life of the
    /// session.
    pub async fn send_as(&self, id: Name, message: Message) -> Result<Receipt, EngineError> {
        if !self.engine.put(&self.id, id.clone(), &message).await? {
            return Ok(Receipt {
                id,
                fate: Fate::Known,
            });
        }
        let (reply, answer) = oneshot::channel();
        // A driver that is gone drops the reply channel with the message, so waiting for the answer never hangs.
        self.to
            .send(ToDriver::Inbox(id.clone(), reply))
            .await
            .map_err(drop)
            .ok();
        match answer.await {
            Ok(receipt) => Ok(receipt),
            // The message stays in the inbox for the next owner.
            Err(_) => Ok(Receipt {
                id,
                fate: Fate::Lies,
            }),
        }
    }

    /// Returns the fate of a message that was put into the inbox before this session was opened. Waits until it is taken, left
    /// waiting, or refused. Returns `Known` if it was taken already.
    pub async fn fate_of(&self, id: &Name) -> Fate {
        let (reply, answer) = oneshot::channel();
        let asked = self.to.send(ToDriver::Inbox(id.clone(), reply)).await;
        match (asked, answer.await) {
            (Ok(()), Ok(receipt)) => receipt.fate,
            _ => Fate::Lies,
        }
    }

    /// Waits until the session settles. Everything that the result reports is on disk.
    pub async fn settled(&self) -> Result<Arc<Settled>, EngineError> {
        self.until(|standing| match standing {
            Standing::Settled(settled, _) => Some(settled.clone()),
            _ => None,
        })
        .await
    }

    /// Waits until the session has settled in another state than this one. Settling in an equal state does not count.
    pub async fn settled_otherwise(&self, than: &Settled) -> Result<Arc<Settled>, EngineError> {
        self.until(|standing| match standing {
            Standing::Settled(settled, _) if **settled != *than => Some(settled.clone()),
            _ => None,
        })
        .await
    }

    /// Waits until the session has settled and none of its effects runs.
    pub async fn idle(&self) -> Result<(), EngineError> {
        self.until(|standing| match standing {
            Standing::Settled(_, outside) if outside.running == 0 => Some(()),
            _ => None,
        })
        .await
    }

    /// Returns a receiver that reports the next change of the driver's state.
    pub(crate) fn standing(&self) -> watch::Receiver<Standing> {
        let mut standing = self.standing.clone();
        standing.mark_unchanged();
        standing
    }

    /// Waits until the session can continue only after something outside: a running effect ends, a message arrives, or a time is
    /// reached. Everything that the result reports is on disk.
    pub async fn outside(&self) -> Result<Outside, EngineError> {
        self.until(|standing| match standing {
            Standing::Outside(outside) | Standing::Settled(_, outside) => Some(outside.clone()),
            _ => None,
        })
        .await
    }

    /// Waits until the standing is one of those for which `found` returns something. Changes of [`Outside`] alone count, too.
    async fn until<T>(&self, found: impl Fn(&Standing) -> Option<T>) -> Result<T, EngineError> {
        let mut standing = self.standing.clone();
        loop {
            let still = self.still.notified();
            tokio::pin!(still);
            // Registered before the check, so that no notification between the check and the wait is missed.
            still.as_mut().enable();
            match &*standing.borrow_and_update() {
                Standing::Gone(why) => return Err(EngineError::Gone(why.clone())),
                stands => {
                    if let Some(found) = found(stands) {
                        return Ok(found);
                    }
                }
            }
            tokio::select! {
                () = still => {}
                changed = standing.changed() => if changed.is_err() {
                    return Err(EngineError::Gone(Arc::new(EngineError::Stopped)));
                }
            }
        }
    }

    /// Follows the session from a cursor on. `Line::NONE` means from the beginning.
    pub fn feed(&self, cursor: Line) -> Feed {
        self.engine
            .feed_of(self.id.clone(), cursor, Some(self.follower()))
    }

    /// Returns the side of a follower.
    pub(crate) fn follower(&self) -> Follower {
        self.live.subscribe(self.standing.clone())
    }

    /// Stops driving the session in an orderly way. Effects that may be repeated are cancelled. `idempotent` and `unsafe` effects
    /// that have started are awaited within their timeouts, also on superseded branches. Then all lines reach the disk, and the
    /// claim ends.
    pub async fn stop(self) {
        let (done, ended) = oneshot::channel();
        if self.to.send(ToDriver::Stop(done)).await.is_ok() {
            let _ = ended.await;
        }
        let inner = &self.engine.0;
        if inner.removes_ended() {
            inner.mail.rests().await;
            // Another session may have started meanwhile.
            if !inner.removes_ended() {
                inner.mail.is_carried(inner);
            }
        }
    }
}

/// Options of [`Session::fork`].
#[derive(Clone, Debug, Default)]
pub struct Fork {
    /// The branch to fork. `None` means the current one.
    pub branch: Option<Id>,
    /// The line at which to fork. `None` means the last line of the branch.
    pub at: Option<Line>,
    /// Label of the new branch.
    pub label: Option<Name>,
    /// First message on the new branch.
    pub say: Option<String>,
    /// True if effects that touch the world run on the new branch too.
    pub live: bool,
}

/// Options of [`Session::search`].
#[derive(Clone, Debug)]
pub struct Search {
    /// The branch to start from. `None` means the current one.
    pub branch: Option<Id>,
    /// The line to start from. `None` means the last line of the branch.
    pub at: Option<Line>,
    /// First message on the root branch of the search.
    pub say: Option<String>,
    /// The plan of the search.
    pub plan: Plan,
}

impl Search {
    /// Searches from the last line of the current branch.
    pub fn here(plan: Plan) -> Self {
        Self {
            branch: None,
            at: None,
            say: None,
            plan,
        }
    }
}
