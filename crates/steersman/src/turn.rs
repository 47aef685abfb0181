//! How a session stands: what callers branch on.

use crate::Error;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};
use std::fmt;
use std::sync::Arc;
use steersman_machine::ids::{Id, Name, Time};
use steersman_runtime::pending::{Pending, PendingId, PendingKind};
use steersman_runtime::session::Settled;

/// How a session stands when nothing goes on by itself. All that it tells of is on disk. Serializes as an object whose
/// `turn` is `answer`, `asks`, `waits` or `stopped`.
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

impl Turn {
    /// The answer, if it is one.
    pub fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Answer(answer) => Some(answer),
            Self::Asks(_) | Self::Waits(_) | Self::Stopped(_) => None,
        }
    }

    /// What people are asked; empty if nobody is.
    pub fn questions(&self) -> &[Question] {
        match self {
            Self::Asks(questions) => questions,
            Self::Answer(_) | Self::Waits(_) | Self::Stopped(_) => &[],
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Answer(answer) => {
                let mut document =
                    json!({ "turn": "answer", "text": answer.text(), "task": answer.task });
                if !answer.before.is_empty() {
                    document["before"] = answer.before().collect();
                }
                document
            }
            Self::Asks(questions) => json!({ "turn": "asks", "questions": questions }),
            Self::Waits(waits) => json!({ "turn": "waits", "for": waits }),
            Self::Stopped(stop) => json!({
                "turn": "stopped",
                "kind": stop.kind.word(),
                "code": &*stop.code,
                "message": &*stop.message,
            }),
        }
    }
}

impl Serialize for Turn {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(to)
    }
}

/// An answer. Displays as its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    before: Vec<Arc<str>>,
    text: Arc<str>,
    /// The task is over. It can be continued all the same, by saying something.
    pub task: bool,
}

impl Answer {
    /// What tasks of a concierge told that ended on the way to this answer, in their order: "You are logged in." ahead of
    /// "Which account?". Whoever shows answers to a user shows these first.
    pub fn before(&self) -> impl Iterator<Item = &str> {
        self.before.iter().map(|text| &**text)
    }

    /// The text; of an agent with an `output:` its JSON.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The answer of an agent with an `output:`, as a value of Rust. The definition's type was judged before; this is
    /// about whether the two agree.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), steersman::Error> {
    /// # use steersman::{Network, Steersman, Turn};
    /// #[derive(serde::Deserialize)]
    /// struct Invoice { supplier: String, cents: u64 }
    ///
    /// let network = Network::from_yaml("
    /// agents:
    ///   reader:
    ///     system: You read invoices.
    ///     output: { fields: { supplier: string, cents: integer } }
    /// ").build()?;
    /// # let script = "reader: [ { output: { supplier: Acme, cents: 1200 } } ]";
    /// # let steersman = Steersman::options().script_all(script).in_memory();
    /// let session = steersman.start(&network).await?;
    /// if let Turn::Answer(answer) = session.ask("Acme, 12.00").await? {
    ///     let invoice: Invoice = answer.parse()?;
    ///     assert_eq!((&*invoice.supplier, invoice.cents), ("Acme", 1200));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] with what does not fit.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(&self.text).map_err(|e| {
            let kind = std::any::type_name::<T>();
            Error::Refused(format!("the answer is no `{kind}`: {e}"))
        })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Something that waits: a question, an approval, a doubt; also an event or a time. Displays as its question. Serializes with
/// all that somebody needs who decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question(pub(crate) Pending);

impl Question {
    /// Its address, the same in every process: the effect that waits, and the line that opened what keeps it. As text it can
    /// be kept and read again.
    pub fn id(&self) -> PendingId {
        self.0.id()
    }
    /// What is asked for.
    pub fn kind(&self) -> PendingKind {
        self.0.kind
    }
    /// The question; of an event its name.
    pub fn text(&self) -> &str {
        &self.0.text
    }
    /// Who may end it, each of them alone: `user`, people of the definition, `any`. Empty: nobody, it is an event or a time.
    pub fn by(&self) -> &[Name] {
        &self.0.by
    }
    /// The branch on which it waits.
    pub fn branch(&self) -> Id {
        self.0.branch
    }
    /// The agent for which it waits, by its name in the definition.
    pub fn agent(&self) -> &str {
        &self.0.agent.1
    }
    /// The tool whose call waits, if it is one.
    pub fn tool(&self) -> Option<&str> {
        self.0.tool.as_deref()
    }
    /// The arguments that it would run with, exactly; what is secret is not in them. Null if there are none.
    pub fn arguments(&self) -> Json {
        let args = self.0.args.as_deref();
        args.and_then(|args| serde_json::from_str(args).ok())
            .unwrap_or(Json::Null)
    }
    /// Arguments that who approves may change: [`Session::approve_edited`](crate::Session::approve_edited).
    pub fn editable(&self) -> impl Iterator<Item = &str> {
        self.0.edit.iter().map(|name| &**name)
    }
    /// Answers to choose from; empty: any.
    pub fn options(&self) -> &[String] {
        &self.0.options
    }
    /// Artifacts to look at before deciding, by name.
    pub fn show(&self) -> &[String] {
        &self.0.show
    }
    /// Why it is asked, if the definition says so.
    pub fn because(&self) -> Option<&str> {
        self.0.because.as_deref()
    }
    /// When it ends by itself.
    pub fn due(&self) -> Option<Time> {
        self.0.due
    }
    /// Since when it waits.
    pub fn since(&self) -> Time {
        self.0.since
    }
    /// All that the runtime knows of it.
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
        json!({
            "id": self.id().to_string(),
            "kind": self.kind().word(),
            "text": self.text(),
            "by": self.by(),
            "branch": self.branch().to_string(),
            "agent": self.agent(),
            "tool": self.tool(),
            "arguments": self.arguments(),
            "editable": self.editable().collect::<Vec<_>>(),
            "options": self.options(),
            "show": self.show(),
            "because": self.because(),
            "due": self.due().map(|due| due.0),
            "since": self.since().0,
        })
        .serialize(to)
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

impl StopKind {
    /// `limit`, `failed`, `cancelled`, `paused`.
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
