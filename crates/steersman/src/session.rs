//! Sessions as callers use them: send a message, and read the resulting state.

use crate::{Act, Cursor, Error, Events, Turn};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use steersman_machine::network::join::JoinOn;
use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::LedgerEntry;
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::view::artifact::Content;
use steersman_runtime::artifact::Artifacts;
use steersman_runtime::engine::{Engine, EngineError};
use steersman_runtime::feed::Feed;
use steersman_runtime::inbox::{CancelWhat, Resolution};
use steersman_runtime::pending::PendingId;
use steersman_runtime::session::{Fate, Fork, Receipt, Session as Driven};
use steersman_runtime::step::{Go, Stood};
use steersman_runtime::store::{SessionId, StoreError};

/// A session that this process drives. Clones are handles to the same session; dropping handles does not stop it.
///
/// A handle outlives the driving: if [`Steersman::run_all`] or [`Session::stop`] released the session, the next use of the
/// handle opens it again, unless the whole `Steersman` was stopped ([`Steersman::stop`]).
///
/// [`Steersman::run_all`]: crate::Steersman::run_all
/// [`Steersman::stop`]: crate::Steersman::stop
#[derive(Clone)]
pub struct Session {
    id: SessionId,
    engine: Engine,
    driven: Arc<Mutex<Driven>>,
    stopping: Arc<AtomicBool>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&self.id()).finish()
    }
}

impl Session {
    pub(crate) fn new(engine: Engine, driven: Driven, stopping: Arc<AtomicBool>) -> Self {
        Self {
            id: driven.id().into(),
            engine,
            driven: Arc::new(Mutex::new(driven)),
            stopping,
        }
    }

    /// Returns the id, by which any process finds the session.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Sends a message and waits until the session settles: it has answered, asks a person, waits, or has ended.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason if the session does not accept a message now; errors of the store.
    pub async fn ask(&self, text: &str) -> Result<Turn, Error> {
        self.say(text).await?;
        self.settled().await
    }

    /// Sends a message and returns the events that follow from it, until the session settles. The last one is
    /// [`EventKind::Settled`](crate::EventKind::Settled).
    ///
    /// # Errors
    /// As [`Session::ask`].
    pub async fn ask_streaming(&self, text: &str) -> Result<Events, Error> {
        let head = self.engine.store().head(&self.id).await?;
        let mut events = self.events(head).until_settled().look_later();
        let line = self.give(Act::say(text, None, None)).await?;
        events.said_in(line.unwrap_or(head));
        Ok(events)
    }

    /// Sends a message. It is on disk when this returns. [`Act::say`] also sends on a branch, or as somebody other than the user.
    pub async fn say(&self, text: &str) -> Result<(), Error> {
        self.act(Act::say(text, None, None)).await
    }

    /// Sends a message on a branch, waits until the session settles, and returns the state of that branch.
    pub async fn ask_on(&self, branch: Id, text: &str) -> Result<Turn, Error> {
        self.act(Act::say(text, None, Some(branch))).await?;
        // This waits for all branches, not only for the one that got the message.
        let _ = self.settled().await?;
        self.turn_on(branch).await
    }

    /// Returns the state of a branch, as far as it is on disk.
    async fn turn_on(&self, branch: Id) -> Result<Turn, Error> {
        let seen = self.engine.inspect(&self.id).await?;
        let found = seen.branches.iter().find(|known| known.id == branch);
        let found = found.ok_or_else(|| Error::Refused(format!("there is no branch {branch}")))?;
        Ok(Turn::from(&seen.settled_on(found)))
    }

    /// Cancels everything that is open and sends this message instead.
    pub async fn interrupt(&self, text: &str) -> Result<(), Error> {
        self.act(Act::interrupt(text, None, None)).await
    }

    /// Waits until the session settles: it continues only after an input from outside, or at a time.
    ///
    /// # Errors
    /// [`Error::Engine`] with the reason if the session is no longer driven.
    pub async fn settled(&self) -> Result<Turn, Error> {
        loop {
            match self.driven().settled().await {
                Ok(settled) => return Ok(Turn::from(&*settled)),
                Err(EngineError::Gone(why))
                    if matches!(*why, EngineError::Stopped) && !self.is_stopping() =>
                {
                    let driven = self.engine.open(&self.id).await?;
                    self.replace(driven);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until the session stops after a line or settles. For sessions that stop after each line
    /// ([`Steersman::start_stepping`](crate::Steersman::start_stepping)).
    ///
    /// # Errors
    /// [`Error::Engine`] with the reason if the session is no longer driven.
    pub async fn stood(&self) -> Result<Stood, Error> {
        Ok(self.driven().stood().await?)
    }

    /// Continues a session that stopped after a line. A message given here is taken with the next line, before anything
    /// else.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason if the session does not accept a message there; errors of the store.
    pub async fn go(&self, go: Go) -> Result<(), Error> {
        match self.driven().go(go).await?.map(|receipt| receipt.fate) {
            Some(Fate::Refused(why)) => Err(Error::Refused(why)),
            _ => Ok(()),
        }
    }

    /// Returns the events from a position on: [`Cursor::START`] for all, a [`Line`] for those after that line.
    pub fn events(&self, from: impl Into<Cursor>) -> Events {
        Events::new(self.engine.clone(), self.id.clone(), from.into())
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn replace(&self, driven: Driven) {
        *self.driven.lock().unwrap_or_else(PoisonError::into_inner) = driven;
    }

    /// Gives an act to the session and waits until it is taken or left waiting. Most methods below make an act and give it.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason if the session refuses the act; errors of the store.
    pub async fn act(&self, act: Act) -> Result<(), Error> {
        self.give(act).await.map(drop)
    }

    /// Gives an act to the session; returns the line that took it, if one did.
    pub(crate) async fn give(&self, act: Act) -> Result<Option<Line>, Error> {
        let (id, message) = act.message(&self.engine).await?;
        let receipt = self.driven().send_as(id, message).await?;
        self.took(receipt).await
    }

    /// Returns the line that took a message, if one did. If no process drives the session any more, drives it again, so
    /// that the result is known.
    async fn took(&self, receipt: Receipt) -> Result<Option<Line>, Error> {
        let mut fate = receipt.fate;
        if fate == Fate::Lies && !self.is_stopping() {
            fate = match self.engine.open_for(&self.id, &receipt.id).await {
                Ok((driven, fate)) => {
                    self.replace(driven);
                    fate
                }
                // The process that owns the session takes the message from the inbox.
                Err(EngineError::Store(StoreError::Owned { .. })) => Fate::Lies,
                Err(error) => return Err(error.into()),
            };
        }
        match fate {
            Fate::Taken(line) => Ok(Some(line)),
            Fate::Waits(_) | Fate::Known | Fate::Lies => Ok(None),
            Fate::Refused(why) => Err(Error::Refused(why)),
        }
    }

    /// Returns an error if the session would refuse a request about branches, so that nothing is written for it.
    async fn may(&self, act: &Act) -> Result<(), Error> {
        let seen = self.driven().inspect().await?;
        match act.refusal(&seen) {
            Some(why) => Err(Error::Refused(why)),
            None => Ok(()),
        }
    }

    /// Returns the id of the branch that a line opened.
    pub(crate) async fn opened(&self, line: Option<Line>) -> Result<Id, Error> {
        let Some(line) = line else {
            return Err(Error::Refused(
                "the request waits in the inbox until the session can take it; the branch has no id yet"
                    .to_owned(),
            ));
        };
        let mut feed = self.engine.feed(&self.id, Line(line.0 - 1));
        let lines = feed.lines().await?;
        let own = lines.iter().filter(|read| read.n == line);
        let mut entries = own.flat_map(|line| &line.ledger);
        let branch = entries.find_map(|entry| match entry {
            LedgerEntry::Opened { branch, .. } => Some(*branch),
            _ => None,
        });
        branch.ok_or_else(|| Error::Refused(format!("line {line} opened no branch")))
    }

    /// Approves the effect that a question is about: it may run once, with exactly its arguments. This method and those
    /// below take a question or its [`id`](crate::Question::id).
    ///
    /// # Errors
    /// [`Error::Refused`] if the question no longer waits for a decision, or `by` may not decide it.
    pub async fn approve(&self, question: impl Into<PendingId>, by: By) -> Result<(), Error> {
        self.act(Act::approve(question, by)).await
    }

    /// Like [`Session::approve`] with changed arguments, as far as the definition allows. The new arguments are checked
    /// again.
    pub async fn approve_edited(
        &self,
        question: impl Into<PendingId>,
        arguments: &serde_json::Value,
        by: By,
    ) -> Result<(), Error> {
        self.act(Act::approve_edited(question, arguments, by)).await
    }

    /// Rejects the effect that a question is about. The model receives the reason.
    pub async fn reject(
        &self,
        question: impl Into<PendingId>,
        reason: &str,
        by: By,
    ) -> Result<(), Error> {
        self.act(Act::reject(question, Some(reason), by)).await
    }

    /// Answers a question, or gives a secret that was asked for.
    pub async fn answer(
        &self,
        question: impl Into<PendingId>,
        text: &str,
        by: By,
    ) -> Result<(), Error> {
        self.act(Act::answer(question, text, by)).await
    }

    /// Resolves an effect in doubt.
    pub async fn resolve(
        &self,
        question: impl Into<PendingId>,
        how: Resolution,
        by: By,
    ) -> Result<(), Error> {
        self.act(Act::resolve(question, how, by)).await
    }

    /// Cancels an effect, an agent, a branch or the whole session.
    pub async fn cancel(&self, what: CancelWhat, by: By) -> Result<(), Error> {
        self.act(Act::cancel(what, by, None)).await
    }

    /// Pauses the session: nothing new begins until [`Session::resume`], whichever process drives it.
    pub async fn pause(&self) -> Result<(), Error> {
        self.act(Act::pause()).await
    }

    /// Ends a pause, so that the session continues.
    pub async fn resume(&self) -> Result<(), Error> {
        self.act(Act::resume()).await
    }

    /// Prevents effects of a tool from beginning until [`Session::release`]; `None` means all effects that may change the
    /// world.
    pub async fn hold(&self, tool: Option<&str>, by: By) -> Result<(), Error> {
        self.act(Act::hold(tool, by)).await
    }

    /// Takes a hold back. The effects that it prevented begin.
    pub async fn release(&self, tool: Option<&str>, by: By) -> Result<(), Error> {
        self.act(Act::release(tool, by)).await
    }

    /// Retries now: all effects that wait for their next attempt; if there are none, the model call whose failure ended the
    /// session.
    pub async fn retry(&self, by: By) -> Result<(), Error> {
        self.act(Act::retry(None, by)).await
    }

    /// Binds new values of `config`. Nothing of the session may be open.
    pub async fn rebind(&self, config: &[(&str, serde_json::Value)], by: By) -> Result<(), Error> {
        let config = config.iter().map(|(name, value)| (*name, value));
        self.act(Act::rebind(config, by)).await
    }

    /// Forks a branch at its last line or an earlier one. The new branch is dry unless [`Fork::live`] is set. Returns its
    /// id, for [`Session::ask_on`], [`Session::join`] and [`Session::adopt`].
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason: the line does not exist, or something is open there.
    pub async fn fork(&self, fork: Fork) -> Result<Id, Error> {
        let has_label = fork.label.is_some();
        let act = Act::fork(fork);
        if has_label {
            self.may(&act).await?;
        }
        let line = self.give(act).await?;
        self.opened(line).await
    }

    /// Rewinds to a line of the current branch, and sends a message there if one is given. The lines after it stay
    /// readable. Returns the new branch, which is the current one from now on.
    ///
    /// # Errors
    /// As [`Session::fork`].
    pub async fn rewind(&self, at: Line, say: Option<&str>) -> Result<Id, Error> {
        let line = self.give(Act::rewind(None, at, None, say)).await?;
        self.opened(line).await
    }

    /// Reports the results of branches to the session, when all of them have ended.
    ///
    /// # Errors
    /// [`Error::Refused`] if the session is at work, or no branch is named.
    pub async fn join(&self, branches: &[Id]) -> Result<(), Error> {
        self.join_on(branches, &JoinOn::All).await
    }

    /// Like [`Session::join`], as soon as a condition holds: `JoinOn::Any`, `JoinOn::Count(2)`, `"done >= 2".parse()?`.
    /// Branches that have not ended by then continue. If all have ended and the condition does not hold, that is reported
    /// to the session.
    ///
    /// # Errors
    /// As [`Session::join`]; also if the condition counts more branches than are named.
    pub async fn join_on(&self, branches: &[Id], on: &JoinOn) -> Result<(), Error> {
        self.act(Act::join(branches.to_vec(), on, None)).await
    }

    /// Cancels everything that is open on a branch. A call that waits for the branch is closed with that end.
    ///
    /// # Errors
    /// [`Error::Refused`] if nothing is open on the branch.
    pub async fn cancel_branch(&self, branch: Id, by: By) -> Result<(), Error> {
        self.act(Act::cancel(CancelWhat::Branch, by, Some(branch)))
            .await
    }

    /// Adopts a branch: the session continues with its lines, up to its first simulated effect.
    ///
    /// # Errors
    /// [`Error::Refused`] with the conflicting paths, if the session has moved on since the fork.
    pub async fn adopt(&self, branch: Id) -> Result<(), Error> {
        let act = Act::adopt(branch, None);
        self.may(&act).await?;
        self.act(act).await
    }

    /// Sends an event to the session. A field that is declared as an artifact is an object of `name`, `media_type`, and
    /// `text` or `base64`. The event's id is accepted once: sending it again changes nothing.
    ///
    /// # Errors
    /// [`Error::Refused`] if the definition declares no such event, or the fields do not fit.
    pub async fn event(&self, name: &str, fields: &serde_json::Value) -> Result<(), Error> {
        let seen = self.driven().inspect().await?;
        let network = seen.network.as_ref();
        let network = network.ok_or_else(|| Error::Refused("the session has not begun".into()))?;
        self.act(Act::event(crate::event_message(network, name, fields)?))
            .await
    }

    /// Sends a message with files. They become artifacts under their names when the message is taken.
    pub async fn say_with(&self, text: &str, files: &[Content]) -> Result<(), Error> {
        self.act(Act::say(text, None, None).with_files(files)).await
    }

    /// Rates a version of an artifact from 1 to 5; `None` means the newest version. A person's rating outranks those of
    /// agents. Like the artifact, the rating belongs to the current branch.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such artifact or version, or the rating is out of range.
    pub async fn rate_artifact(
        &self,
        name: &str,
        version: Option<usize>,
        rating: u8,
        reason: Option<&str>,
        by: By,
    ) -> Result<(), Error> {
        let artifacts = self.artifacts().await?;
        let act = Act::rate_artifact(&artifacts, (name, version), rating, reason, by);
        self.act(act.map_err(|error| Error::Refused(error.to_string()))?)
            .await
    }

    /// Returns the artifacts that the session made, as of the newest line on disk.
    pub async fn artifacts(&self) -> Result<Artifacts, Error> {
        Ok(self.driven().artifacts().await?)
    }

    /// Follows the session from a line on ([`Line::NONE`] for its beginning): lines on disk and streamed pieces.
    pub fn feed(&self, cursor: Line) -> Feed {
        self.driven().feed(cursor)
    }

    /// Stops driving the session in an orderly way. Any process can continue it.
    pub async fn stop(self) {
        self.driven().stop().await;
    }

    /// Returns the runtime's handle, with everything that this facade leaves out.
    pub fn driven(&self) -> Driven {
        self.driven
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
