//! The state of a session that settled. Callers decide by it how to continue.

use crate::list::PendingRow;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};
use std::fmt;
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Name, Time};
use steersman_runtime::known::Known;
use steersman_runtime::pending::{Pending, PendingId, PendingKind, ProbeState};
use steersman_runtime::session::Settled;

/// The state of a session that settled: it continues only with an input, such as an answer, an event or a time. Everything in it
/// is on disk. Serializes as [`Turn::to_json`] says.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a session may wait for an approval: check whether it answered, asks, waits or stopped"]
pub enum Turn {
    /// The session answered.
    Answer(Answer),
    /// People are asked. The session continues when one of them answers, in this process or another.
    Asks(Vec<Question>),
    /// The session is parked and waits for events or times. When one comes, it continues in any process that drives it.
    Waits(Vec<Question>),
    /// The session stopped without an answer.
    Stopped(Stop),
}

impl Turn {
    /// Returns the answer, if the session answered.
    pub fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Answer(answer) => Some(answer),
            Self::Asks(_) | Self::Waits(_) | Self::Stopped(_) => None,
        }
    }

    /// Returns the questions to people; empty if nobody is asked.
    pub fn questions(&self) -> &[Question] {
        match self {
            Self::Asks(questions) => questions,
            Self::Answer(_) | Self::Waits(_) | Self::Stopped(_) => &[],
        }
    }

    /// Returns the state with secrets masked in all texts.
    pub fn masked(self, known: &Known) -> Self {
        let text = |text: Arc<str>| Arc::from(known.masked(&text));
        let all = |questions: Vec<Question>| {
            let questions = questions.into_iter();
            questions.map(|asked| asked.masked(known)).collect()
        };
        match self {
            Self::Answer(answer) => Self::Answer(Answer {
                before: answer.before.into_iter().map(text).collect(),
                text: text(answer.text),
                task: answer.task,
            }),
            Self::Asks(asked) => Self::Asks(all(asked)),
            Self::Waits(awaited) => Self::Waits(all(awaited)),
            Self::Stopped(stop) => Self::Stopped(Stop {
                message: text(stop.message),
                ..stop
            }),
        }
    }

    /// Returns the state as JSON: its `status`, and the fields of this status. `answered` has `answer`, `task`, and `before` if
    /// there is any; `asks`, `doubt` and `waits` have `pending`; `limit` has `code` and `answer`, which may be null; `failed` has
    /// `code` and `message`; `cancelled` and `paused` have none.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Answer(answer) => {
                let mut document = json!({ "status": "answered" });
                if !answer.before.is_empty() {
                    document["before"] = answer.before().collect();
                }
                document["answer"] = answer.text().into();
                document["task"] = answer.task.into();
                document
            }
            Self::Asks(asked) => {
                let doubt = asked.iter().any(|q| q.kind() == PendingKind::Doubt);
                let status = if doubt { "doubt" } else { "asks" };
                json!({ "status": status, "pending": asked })
            }
            Self::Waits(waits) => json!({ "status": "waits", "pending": waits }),
            Self::Stopped(stop) => {
                let mut document = json!({ "status": stop.kind.word() });
                let message = Some(&*stop.message).filter(|message| !message.is_empty());
                match stop.kind {
                    StopKind::Limit => {
                        document["code"] = (&*stop.code).into();
                        document["answer"] = message.into();
                    }
                    StopKind::Failed => {
                        document["code"] = (&*stop.code).into();
                        document["message"] = (&*stop.message).into();
                    }
                    StopKind::Cancelled | StopKind::Paused => {}
                }
                document
            }
        }
    }
}

impl Serialize for Turn {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(to)
    }
}

/// An answer of the session. Displays as its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    before: Vec<Arc<str>>,
    text: Arc<str>,
    /// True if the task is over. A further message continues the session nevertheless.
    pub task: bool,
}

impl Answer {
    /// Returns, in order, the final texts of a router's tasks that ended before this answer: "You are logged in."
    /// ahead of "Which account?". Show these to the user before the answer.
    pub fn before(&self) -> impl Iterator<Item = &str> {
        self.before.iter().map(|text| &**text)
    }

    /// Returns the text; for an agent with an `output:`, its JSON.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Parses the answer of an agent with an `output:` into a Rust type. The answer fits the definition's type already;
    /// this fails only if the Rust type differs from it.
    ///
    /// ```
    /// use steersman_runtime::session::Settled;
    /// use steersman_views::turn::Turn;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Invoice { supplier: String, cents: u64 }
    ///
    /// let text = r#"{"supplier":"Acme","cents":1200}"#.into();
    /// let settled = Settled::Answered { before: Vec::new(), text, task: true };
    /// let turn = Turn::from(&settled);
    /// let invoice: Invoice = turn.answer().ok_or("no answer")?.parse()?;
    /// assert_eq!((&*invoice.supplier, invoice.cents), ("Acme", 1200));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The text does not fit `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, AnswerError> {
        serde_json::from_str(&self.text).map_err(|e| {
            let kind = std::any::type_name::<T>();
            AnswerError(format!("the answer is not a `{kind}`: {e}"))
        })
    }
}

/// Error for an answer that does not fit the type of [`Answer::parse`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AnswerError(String);

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Something that waits: a question, an approval, a doubt, an event or a time. Displays as its question. Serializes as
/// a [`PendingRow`]: everything that a person needs to decide it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question(Pending);

impl Question {
    /// Returns its id, which is the same in every process: the effect that waits, and the line of the hold. It can be
    /// stored as text and parsed again.
    pub fn id(&self) -> PendingId {
        self.0.id()
    }
    /// Returns the kind of question.
    pub fn kind(&self) -> PendingKind {
        self.0.kind
    }
    /// Returns the text of the question; for an event, the name of the event.
    pub fn text(&self) -> &str {
        &self.0.text
    }
    /// Returns the people who may decide: `user`, people of the definition, `any`. One of them is enough. Empty for events and
    /// times.
    pub fn by(&self) -> &[Name] {
        &self.0.by
    }
    /// Returns the branch on which it waits.
    pub fn branch(&self) -> Id {
        self.0.branch
    }
    /// Returns the name, in the definition, of the agent for which it waits.
    pub fn agent(&self) -> &str {
        &self.0.agent.1
    }
    /// Returns the tool whose call waits, if a tool was called.
    pub fn tool(&self) -> Option<&str> {
        self.0.tool.as_deref()
    }
    /// Returns the exact arguments of the call, without secret ones. Null if there are none.
    pub fn arguments(&self) -> Json {
        let args = self.0.args.as_deref();
        args.and_then(|args| serde_json::from_str(args).ok())
            .unwrap_or(Json::Null)
    }
    /// Returns the arguments that an approver may change: `Session::approve_edited`.
    pub fn editable(&self) -> impl Iterator<Item = &str> {
        self.0.edit.iter().map(|name| &**name)
    }
    /// Returns the answers to choose from; empty if any answer is allowed.
    pub fn options(&self) -> &[String] {
        &self.0.options
    }
    /// Returns the names of artifacts to look at before deciding.
    pub fn show(&self) -> &[String] {
        &self.0.show
    }
    /// Returns the reason for the question, if the definition gives one.
    pub fn because(&self) -> Option<&str> {
        self.0.because.as_deref()
    }
    /// Returns the time at which it ends by itself, if there is one.
    pub fn due(&self) -> Option<Time> {
        self.0.due
    }
    /// Returns the time at which it began to wait.
    pub fn since(&self) -> Time {
        self.0.since
    }
    /// Returns the question with secrets masked in all texts.
    pub fn masked(self, known: &Known) -> Self {
        let text = |text: &str| known.masked(text);
        let shared = |text: Arc<str>| Arc::from(known.masked(&text));
        let all = |texts: Vec<String>| texts.iter().map(|own| text(own)).collect();
        let pending = self.0;
        Self(Pending {
            args: pending.args.map(shared),
            text: shared(pending.text),
            options: all(pending.options),
            show: all(pending.show),
            needs: all(pending.needs),
            because: pending.because.as_deref().map(text),
            probe: pending.probe.map(|probe| ProbeState {
                said: probe.said.map(shared),
                ..probe
            }),
            ..pending
        })
    }

    /// Returns everything that the runtime knows about it.
    pub fn pending(&self) -> &Pending {
        &self.0
    }
}

impl From<&Question> for PendingId {
    fn from(question: &Question) -> Self {
        question.id()
    }
}

impl From<Pending> for Question {
    fn from(pending: Pending) -> Self {
        Self(pending)
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl Serialize for Question {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        PendingRow::from(&self.0).serialize(to)
    }
}

/// The reason for a stop without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The kind of stop.
    pub kind: StopKind,
    /// The code of the stop: `model_calls`, `provider_overloaded`, `deadlock`.
    pub code: Arc<str>,
    /// The message for people.
    pub message: Arc<str>,
}

/// The kinds of stops.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StopKind {
    /// A limit was reached.
    Limit,
    /// The root agent failed.
    Failed,
    /// A person cancelled the session.
    Cancelled,
    /// A person paused the session.
    Paused,
}

impl StopKind {
    /// Returns the word for it: `limit`, `failed`, `cancelled`, `paused`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Paused => "paused",
        }
    }
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
            Settled::Answered { before, text, task } => Self::Answer(Answer {
                before: before.clone(),
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
