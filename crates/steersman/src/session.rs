//! Sessions as callers see them: say something, and learn how it stands.

use crate::follow::{Cursor, Events};
use crate::{Error, Turn};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use steersman_machine::artifact::Content;
use steersman_machine::commit::LedgerEntry;
use steersman_machine::ids::{Id, Line};
use steersman_machine::join::JoinOn;
use steersman_runtime::artifact::Artifacts;
use steersman_runtime::engine::{Engine, EngineError};
use steersman_runtime::feed::Feed;
use steersman_runtime::inbox::{CancelWhat, Message, Resolution};
use steersman_runtime::pending::PendingId;
use steersman_runtime::session::{Fate, Fork, Receipt, Session as Driven};
use steersman_runtime::step::{Go, Stood};
use steersman_runtime::store::{SessionId, StoreError};

/// A session that this process drives. Cloning gives another handle to it; dropping handles changes nothing.
///
/// A handle outlives the driving: where the session was let go of meanwhile, by [`Steersman::run_all`] or
/// [`Session::stop`], whatever is wanted through the handle takes it up again, unless the whole
/// [`Steersman::stop`]ped.
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

/// Who acts: the user whom the conversation is with, or somebody in a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct By(String);

impl By {
    /// Whom the conversation is with.
    pub fn user() -> Self {
        Self("user".into())
    }
    /// Somebody in this role.
    pub fn role(role: &str) -> Self {
        Self(role.to_owned())
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

    /// Its id: where any process finds it again.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Says something and waits until nothing goes on by itself any more: an answer, a question, a wait, a stop.
    ///
    /// # Errors
    /// [`Error::Refused`] if it does not take a message now, with why; what the store says.
    pub async fn ask(&self, text: &str) -> Result<Turn, Error> {
        self.say(text).await?;
        self.settled().await
    }

    /// Says something; the events that follow from it come until nothing goes on by itself any more. The last one is
    /// [`EventKind::Settled`](crate::EventKind::Settled).
    ///
    /// # Errors
    /// As [`Session::ask`].
    pub async fn ask_streaming(&self, text: &str) -> Result<Events, Error> {
        let head = self.engine.store().head(&self.id).await?;
        let mut events = self.events(head).until_settled().look_later();
        let receipt = self.driven().say(text).await?;
        let line = self.act(receipt).await?;
        events.said_in(line.unwrap_or(head));
        Ok(events)
    }

    /// Says something. It is on disk when this returns.
    pub async fn say(&self, text: &str) -> Result<(), Error> {
        let receipt = self.driven().say(text).await?;
        self.act(receipt).await.map(drop)
    }

    /// Says something as somebody else than the user. The agent sees who.
    pub async fn say_as(&self, text: &str, by: By) -> Result<(), Error> {
        self.said(text, None, Some(by)).await
    }

    /// Says something on a branch.
    pub async fn say_on(&self, branch: Id, text: &str) -> Result<(), Error> {
        self.said(text, Some(branch), None).await
    }

    /// Says something on a branch, waits until nothing goes on by itself any more, and tells how that branch stands.
    pub async fn ask_on(&self, branch: Id, text: &str) -> Result<Turn, Error> {
        self.say_on(branch, text).await?;
        // Of all branches: none has anything left to do.
        let _ = self.settled().await?;
        self.turn_on(branch).await
    }

    async fn said(&self, text: &str, branch: Option<Id>, by: Option<By>) -> Result<(), Error> {
        let message = Message::Say {
            text: text.to_owned(),
            to: None,
            by: by.filter(|by| *by != By::user()).map(|by| by.0.into()),
            branch,
        };
        let receipt = self.driven().send(message).await?;
        self.act(receipt).await.map(drop)
    }

    /// How a branch stands, as far as it is on disk.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such branch.
    pub async fn turn_on(&self, branch: Id) -> Result<Turn, Error> {
        let seen = self.engine.inspect(&self.id).await?;
        let found = seen.branches.iter().find(|known| known.id == branch);
        let found = found.ok_or_else(|| Error::Refused(format!("there is no branch {branch}")))?;
        Ok(Turn::from(&seen.settled_on(found)))
    }

    /// Cancels what is open and says this instead.
    pub async fn interrupt(&self, text: &str) -> Result<(), Error> {
        let receipt = self.driven().interrupt(text).await?;
        self.act(receipt).await.map(drop)
    }

    /// Waits until nothing goes on by itself any more.
    ///
    /// # Errors
    /// [`Error::Engine`] if it is not driven any more, with why.
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

    /// Waits until it stands behind a line, or nothing goes on by itself: of a session that was begun or taken up to stand
    /// after each line ([`Steersman::start_stepping`](crate::Steersman::start_stepping)).
    ///
    /// # Errors
    /// [`Error::Engine`] if it is not driven any more, with why.
    pub async fn stood(&self) -> Result<Stood, Error> {
        Ok(self.driven().stood().await?)
    }

    /// Lets it go on from where it stands. What is said is taken with the next line, before anything else happens.
    ///
    /// # Errors
    /// [`Error::Refused`] if it does not take a message there, with why; what the store says.
    pub async fn go(&self, go: Go) -> Result<(), Error> {
        match self.driven().go(go).await?.map(|receipt| receipt.fate) {
            Some(Fate::Refused(why)) => Err(Error::Refused(why)),
            _ => Ok(()),
        }
    }

    /// What happens in it, from this place on: [`Cursor::START`] from its beginning, a [`Line`] from behind that line.
    pub fn events(&self, from: impl Into<Cursor>) -> Events {
        let driven = self.engine.driven(&self.id);
        Events::new(self.engine.clone(), self.id.clone(), from.into(), driven)
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn replace(&self, driven: Driven) {
        *self.driven.lock().unwrap_or_else(PoisonError::into_inner) = driven;
    }

    /// What became of something that was wanted, in which line if it was taken. If nobody drives it any more, it is taken up
    /// again, so that the answer is no guess.
    pub(crate) async fn act(&self, receipt: Receipt) -> Result<Option<Line>, Error> {
        let mut fate = receipt.fate;
        if fate == Fate::Lies && !self.is_stopping() {
            fate = match self.engine.open_for(&self.id, &receipt.id).await {
                Ok((driven, fate)) => {
                    self.replace(driven);
                    fate
                }
                // Who owns it finds it there.
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

    /// Refuses what would be refused, before anything of it is written.
    async fn may(&self, wanted: &Message) -> Result<(), Error> {
        let seen = self.driven().inspect().await?;
        match steersman_runtime::branches::refusal(&seen, wanted) {
            Some(why) => Err(Error::Refused(why)),
            None => Ok(()),
        }
    }

    /// The branch that a line opened.
    pub(crate) async fn opened(&self, line: Option<Line>) -> Result<Id, Error> {
        let Some(line) = line else {
            return Err(Error::Refused(
                "it lies in the inbox until the session can take it; the branch has no id yet"
                    .to_owned(),
            ));
        };
        let mut feed = self.engine.feed(&self.id, Line(line.0 - 1));
        let lines = feed.lines().await?;
        let entries = lines.iter().flat_map(|line| &line.ledger);
        let branch = entries.filter_map(|entry| match entry {
            LedgerEntry::Opened { branch, .. } => Some(*branch),
            _ => None,
        });
        let branch = branch.into_iter().next();
        branch.ok_or_else(|| Error::Refused(format!("line {line} opened no branch")))
    }

    /// Lets what is asked run, once, with exactly its arguments. Questions are named by themselves or by their
    /// [`id`](crate::Question::id), here and below.
    ///
    /// # Errors
    /// [`Error::Refused`] if nothing of it waits for a decision (any more), or who decides may not.
    pub async fn approve(&self, question: impl Into<PendingId>, by: By) -> Result<(), Error> {
        let receipt = self.driven().approve(question.into(), &by.0).await?;
        self.act(receipt).await.map(drop)
    }

    /// The same with other arguments, as far as the definition lets them be changed. They are judged again.
    pub async fn approve_edited(
        &self,
        question: impl Into<PendingId>,
        arguments: &serde_json::Value,
        by: By,
    ) -> Result<(), Error> {
        let receipt = self
            .driven()
            .approve_edited(question.into(), arguments, &by.0)
            .await?;
        self.act(receipt).await.map(drop)
    }

    /// Keeps it from running. The reason goes to the model.
    pub async fn reject(
        &self,
        question: impl Into<PendingId>,
        reason: &str,
        by: By,
    ) -> Result<(), Error> {
        let receipt = self
            .driven()
            .reject(question.into(), Some(reason), &by.0)
            .await?;
        self.act(receipt).await.map(drop)
    }

    /// Answers a question.
    pub async fn answer(
        &self,
        question: impl Into<PendingId>,
        text: &str,
        by: By,
    ) -> Result<(), Error> {
        let receipt = self.driven().answer(question.into(), text, &by.0).await?;
        self.act(receipt).await.map(drop)
    }

    /// Says what became of an effect in doubt.
    pub async fn resolve(
        &self,
        question: impl Into<PendingId>,
        how: Resolution,
        by: By,
    ) -> Result<(), Error> {
        let receipt = self.driven().resolve(question.into(), how, &by.0).await?;
        self.act(receipt).await.map(drop)
    }

    /// Cancels something.
    pub async fn cancel(&self, what: CancelWhat, by: By) -> Result<(), Error> {
        let receipt = self.driven().cancel(what, &by.0).await?;
        self.act(receipt).await.map(drop)
    }

    /// Nothing new begins until [`Session::resume`], whichever process drives it.
    pub async fn pause(&self) -> Result<(), Error> {
        let receipt = self.driven().pause().await?;
        self.act(receipt).await.map(drop)
    }

    /// Ends a pause.
    pub async fn resume(&self) -> Result<(), Error> {
        let receipt = self.driven().resume().await?;
        self.act(receipt).await.map(drop)
    }

    /// Keeps effects of a tool from beginning until [`Session::release`]; none: of all that may change the world.
    pub async fn hold(&self, tool: Option<&str>, by: By) -> Result<(), Error> {
        let receipt = self.driven().hold(tool, &by.0).await?;
        self.act(receipt).await.map(drop)
    }

    /// Takes a hold back: what it kept begins.
    pub async fn release(&self, tool: Option<&str>, by: By) -> Result<(), Error> {
        let receipt = self.driven().release(tool, &by.0).await?;
        self.act(receipt).await.map(drop)
    }

    /// Tries again what failed: attempts that are waited for, else the model call whose failure ended the session.
    pub async fn retry(&self, by: By) -> Result<(), Error> {
        let receipt = self.driven().retry(None, &by.0).await?;
        self.act(receipt).await.map(drop)
    }

    /// Binds values of `config` anew, where nothing of the session is open.
    pub async fn rebind(&self, config: &[(&str, serde_json::Value)], by: By) -> Result<(), Error> {
        let config = config.iter();
        let config: Vec<_> = config
            .map(|(name, value)| (Arc::from(*name), value.clone()))
            .collect();
        let receipt = self.driven().rebind(&config, &by.0).await?;
        self.act(receipt).await.map(drop)
    }

    /// Begins a branch beside the session, at its last line or an earlier one: dry unless it says otherwise. Gives its id, for
    /// [`Session::ask_on`], [`Session::join`] and [`Session::adopt`].
    ///
    /// # Errors
    /// [`Error::Refused`] with why: there is no such line, or something is open there.
    pub async fn fork(&self, fork: Fork) -> Result<Id, Error> {
        if fork.label.is_some() {
            let label = fork.label.clone();
            let (branch, at, say, live) = (None, None, None, false);
            let wanted = Message::Fork {
                branch,
                at,
                label,
                say,
                live,
            };
            self.may(&wanted).await?;
        }
        let receipt = self.driven().fork(fork).await?;
        let line = self.act(receipt).await?;
        self.opened(line).await
    }

    /// Goes back to a line of the current branch, and says something there. What came after is left behind, readable.
    /// Gives the branch on which it goes on, the current one from here.
    ///
    /// # Errors
    /// As [`Session::fork`].
    pub async fn rewind(&self, at: Line, say: Option<&str>) -> Result<Id, Error> {
        let receipt = self.driven().rewind(at, say).await?;
        let line = self.act(receipt).await?;
        self.opened(line).await
    }

    /// Lets the session hear what branches came to, when all of them ended.
    ///
    /// # Errors
    /// [`Error::Refused`]: the session is at work, or no branch is named.
    pub async fn join(&self, branches: &[Id]) -> Result<(), Error> {
        self.join_on(branches, &JoinOn::All).await
    }

    /// The same as soon as a condition holds of them: `JoinOn::Any`, `JoinOn::Count(2)`, `"done >= 2".parse()?`. Branches that
    /// are open then go on. Where all ended and it does not hold, the session hears that.
    ///
    /// # Errors
    /// As [`Session::join`]; also if more branches are to end than are named.
    pub async fn join_on(&self, branches: &[Id], on: &JoinOn) -> Result<(), Error> {
        let receipt = self.driven().join(branches.to_vec(), on, None).await?;
        self.act(receipt).await.map(drop)
    }

    /// Cancels what is open on a branch. What waits for the branch hears of its end.
    ///
    /// # Errors
    /// [`Error::Refused`]: nothing is open there.
    pub async fn cancel_branch(&self, branch: Id, by: By) -> Result<(), Error> {
        let message = Message::Cancel {
            what: CancelWhat::Branch,
            by: by.0.into(),
            branch: Some(branch),
        };
        let receipt = self.driven().send(message).await?;
        self.act(receipt).await.map(drop)
    }

    /// Goes on with what a branch came to, up to its first simulated effect.
    ///
    /// # Errors
    /// [`Error::Refused`] with the paths, where the session has moved on since the fork.
    pub async fn adopt(&self, branch: Id) -> Result<(), Error> {
        self.may(&Message::Adopt { branch, at: None }).await?;
        let receipt = self.driven().adopt(branch, None).await?;
        self.act(receipt).await.map(drop)
    }

    /// Hands it an event. A field that is declared as an artifact is an object of `name`, `media_type`, and `text` or
    /// `base64`. Its id is accepted once: to hand it over again changes nothing.
    ///
    /// # Errors
    /// [`Error::Refused`] if its definition declares no such event, or the fields do not fit.
    pub async fn event(&self, name: &str, fields: &serde_json::Value) -> Result<(), Error> {
        let driven = self.driven();
        let seen = driven.inspect().await?;
        let network = seen.network.as_ref();
        let network = network.ok_or_else(|| Error::Refused("the session has not begun".into()))?;
        let event = crate::event_message(network, name, fields)?;
        driven.keep(&event.contents).await?;
        let receipt = driven.send_as(event.id, event.message).await?;
        self.act(receipt).await.map(drop)
    }

    /// Says something with contents that are artifacts once it is taken, under the names that they have.
    pub async fn say_with(&self, text: &str, files: &[Content]) -> Result<(), Error> {
        let message = Message::Say {
            text: text.to_owned(),
            to: None,
            by: None,
            branch: None,
        };
        let receipt = self.driven().send_with(message, files).await?;
        self.act(receipt).await.map(drop)
    }

    /// Rates a version of an artifact (the newest, where none is named) from 1 to 5. What a person says outranks what agents
    /// say; it belongs to the current branch, as the artifact does.
    ///
    /// # Errors
    /// [`Error::Refused`]: there is no such artifact or version, or the rating is none.
    pub async fn rate_artifact(
        &self,
        name: &str,
        version: Option<usize>,
        rating: u8,
        reason: Option<&str>,
        by: By,
    ) -> Result<(), Error> {
        let artifacts = self.artifacts().await?;
        let write = artifacts.rated(name, version, rating, reason, &by.0);
        let write = write.map_err(|error| Error::Refused(error.to_string()))?;
        let message = Message::rating(&write, by.0.into());
        let receipt = self.driven().send(message).await?;
        self.act(receipt).await.map(drop)
    }

    /// What it made, as of the newest line on disk.
    pub async fn artifacts(&self) -> Result<Artifacts, Error> {
        Ok(self.driven().artifacts().await?)
    }

    /// Follows it from a line on, [`Line::NONE`] from its beginning: lines that are on disk, and what streams in.
    pub fn feed(&self, cursor: Line) -> Feed {
        self.driven().feed(cursor)
    }

    /// Lets go in order. Any process can go on with it.
    pub async fn stop(self) {
        self.driven().stop().await;
    }

    /// The runtime's handle, with all that the paved path leaves out.
    pub fn driven(&self) -> Driven {
        self.driven
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
