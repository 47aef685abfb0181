//! Sessions as callers see them: say something, and learn how it stands.

use crate::Error;
use std::fmt;
use std::sync::Arc;
use steersman_machine::ids::{Id, Line};
use steersman_runtime::artifact::Artifacts;
use steersman_runtime::feed::Feed;
use steersman_runtime::inbox::{CancelWhat, Resolution};
use steersman_runtime::pending::Pending;
use steersman_runtime::session::{Fate, Fork, Receipt, Session as Driven, Settled};

/// A session that this process drives. Cloning gives another handle to it.
#[derive(Clone)]
pub struct Session(pub(crate) Driven);

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&self.id()).finish()
    }
}

/// How a session stands when nothing goes on by itself. All that it tells of is on disk.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a session may wait for an approval: look which way it went"]
pub enum Turn {
    /// It answered.
    Answer(Answer),
    /// People are asked; it goes on when one of them answers, in this process or another.
    Asks(Vec<Question>),
    /// It is parked: events and times. It goes on in any process that drives it then.
    Waits(Vec<Question>),
    /// It stopped without an answer.
    Stopped(Stop),
}

/// An answer. Displays as its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    text: Arc<str>,
    /// The task is over. It can be continued all the same, by saying something.
    pub task: bool,
}

impl Answer {
    /// The text; of an agent with an `output:` its JSON.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Something that waits. Displays as its question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question(pub Pending);

impl Question {
    /// The effect that waits: its address.
    pub fn id(&self) -> Id {
        self.0.effect
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

/// Why a session stopped without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// What kind of stop.
    pub kind: StopKind,
    /// `model_calls`, `provider_overloaded`, `deadlock`.
    pub code: Arc<str>,
    /// For people.
    pub message: Arc<str>,
}

/// Kinds of stops.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StopKind {
    /// A limit was reached.
    Limit,
    /// The root failed.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
    /// Somebody paused it.
    Paused,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            StopKind::Limit => write!(f, "the limit `{}` was reached", self.code)?,
            StopKind::Failed => write!(f, "it failed (`{}`)", self.code)?,
            StopKind::Cancelled => f.write_str("it was cancelled")?,
            StopKind::Paused => f.write_str("it is paused")?,
        }
        if self.message.is_empty() {
            Ok(())
        } else {
            write!(f, ": {}", self.message)
        }
    }
}

impl From<&Settled> for Turn {
    fn from(settled: &Settled) -> Self {
        let questions = |pending: &[Pending]| pending.iter().cloned().map(Question).collect();
        let stop = |kind, code: &str, message: &str| {
            Self::Stopped(Stop {
                kind,
                code: code.into(),
                message: message.into(),
            })
        };
        match settled {
            Settled::Answered { text, task } => Self::Answer(Answer {
                text: text.clone(),
                task: *task,
            }),
            Settled::Asks(asked) | Settled::Doubt(asked) => Self::Asks(questions(asked)),
            Settled::Waits(awaited) => Self::Waits(questions(awaited)),
            Settled::Empty => Self::Waits(Vec::new()),
            Settled::Limit { code, text } => {
                stop(StopKind::Limit, code, text.as_deref().unwrap_or_default())
            }
            Settled::Failed { code, message } => stop(StopKind::Failed, code, message),
            Settled::Cancelled => stop(StopKind::Cancelled, "cancelled", ""),
            Settled::Paused => stop(StopKind::Paused, "paused", ""),
        }
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
    /// Its id: where any process finds it again.
    pub fn id(&self) -> &str {
        self.0.id()
    }

    /// Says something and waits until nothing goes on by itself any more: an answer, a question, a wait, a stop.
    pub async fn ask(&self, text: &str) -> Result<Turn, Error> {
        self.say(text).await?;
        self.settled().await
    }

    /// Says something. It is on disk when this returns.
    pub async fn say(&self, text: &str) -> Result<(), Error> {
        taken(self.0.say(text).await?)
    }

    /// Cancels what is open and says this instead.
    pub async fn interrupt(&self, text: &str) -> Result<(), Error> {
        taken(self.0.interrupt(text).await?)
    }

    /// Waits until nothing goes on by itself any more.
    pub async fn settled(&self) -> Result<Turn, Error> {
        Ok(Turn::from(&*self.0.settled().await?))
    }

    /// Lets what is asked run, once, with exactly its arguments.
    pub async fn approve(&self, question: &Question, by: By) -> Result<(), Error> {
        taken(self.0.approve(question.id(), &by.0).await?)
    }

    /// The same with other arguments, as far as the definition lets them be changed. They are judged again.
    pub async fn approve_edited(
        &self,
        question: &Question,
        arguments: &serde_json::Value,
        by: By,
    ) -> Result<(), Error> {
        taken(
            self.0
                .approve_edited(question.id(), arguments, &by.0)
                .await?,
        )
    }

    /// Keeps it from running. The reason goes to the model.
    pub async fn reject(&self, question: &Question, reason: &str, by: By) -> Result<(), Error> {
        taken(self.0.reject(question.id(), Some(reason), &by.0).await?)
    }

    /// Answers a question.
    pub async fn answer(&self, question: &Question, text: &str, by: By) -> Result<(), Error> {
        taken(self.0.answer(question.id(), text, &by.0).await?)
    }

    /// Says what became of an effect in doubt.
    pub async fn resolve(&self, question: &Question, how: Resolution, by: By) -> Result<(), Error> {
        taken(self.0.resolve(question.id(), how, &by.0).await?)
    }

    /// Cancels something.
    pub async fn cancel(&self, what: CancelWhat, by: By) -> Result<(), Error> {
        taken(self.0.cancel(what, &by.0).await?)
    }

    /// Nothing new begins until [`Session::resume`], whichever process drives it.
    pub async fn pause(&self) -> Result<(), Error> {
        taken(self.0.pause().await?)
    }

    /// Ends a pause.
    pub async fn resume(&self) -> Result<(), Error> {
        taken(self.0.resume().await?)
    }

    /// Keeps effects of a tool from beginning until [`Session::release`]; none: of all that may change the world.
    pub async fn hold(&self, tool: Option<&str>, by: By) -> Result<(), Error> {
        taken(self.0.hold(tool, &by.0).await?)
    }

    /// Takes a hold back: what it kept begins.
    pub async fn release(&self, tool: Option<&str>, by: By) -> Result<(), Error> {
        taken(self.0.release(tool, &by.0).await?)
    }

    /// Tries again what failed: attempts that are waited for, else the model call whose failure ended the session.
    pub async fn retry(&self, by: By) -> Result<(), Error> {
        taken(self.0.retry(None, &by.0).await?)
    }

    /// Binds values of `config` anew, where nothing of the session is open.
    pub async fn rebind(&self, config: &[(&str, serde_json::Value)], by: By) -> Result<(), Error> {
        let config = config.iter();
        let config: Vec<_> = config
            .map(|(name, value)| (Arc::from(*name), value.clone()))
            .collect();
        taken(self.0.rebind(&config, &by.0).await?)
    }

    /// Begins a branch beside the session, at its last line or an earlier one: dry unless it says otherwise.
    pub async fn fork(&self, fork: Fork) -> Result<(), Error> {
        taken(self.0.fork(fork).await?)
    }

    /// Goes back to a line of the current branch, and says something there. What came after is left behind, readable.
    pub async fn rewind(&self, at: Line, say: Option<&str>) -> Result<(), Error> {
        taken(self.0.rewind(at, say).await?)
    }

    /// Lets the session hear what branches came to.
    pub async fn join(&self, branches: &[Id]) -> Result<(), Error> {
        taken(self.0.join(branches.to_vec(), None).await?)
    }

    /// Goes on with what a branch came to, up to its first simulated effect.
    ///
    /// # Errors
    /// [`Error::Refused`] with the paths, where the session has moved on since the fork.
    pub async fn adopt(&self, branch: Id) -> Result<(), Error> {
        taken(self.0.adopt(branch, None).await?)
    }

    /// Hands it an event.
    pub async fn event(&self, name: &str, fields: &serde_json::Value) -> Result<(), Error> {
        taken(self.0.event(name, fields).await?)
    }

    /// What it made, as of the newest line on disk.
    pub async fn artifacts(&self) -> Result<Artifacts, Error> {
        Ok(self.0.artifacts().await?)
    }

    /// Follows it from a line on, [`Line::NONE`] from its beginning: lines that are on disk, and what streams in.
    pub fn feed(&self, cursor: Line) -> Feed {
        self.0.feed(cursor)
    }

    /// Lets go in order. Any process can go on with it.
    pub async fn stop(self) {
        self.0.stop().await;
    }

    /// The runtime's handle, with all that the paved path leaves out.
    pub fn driven(&self) -> &Driven {
        &self.0
    }
}

/// What was refused is an error; what waits in the inbox is not.
fn taken(receipt: Receipt) -> Result<(), Error> {
    match receipt.fate {
        Fate::Taken(_) | Fate::Waits(_) | Fate::Known | Fate::Lies => Ok(()),
        Fate::Refused(why) => Err(Error::Refused(why)),
    }
}
