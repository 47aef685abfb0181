//! Acts as values. They are given to a session by its id, whichever process drives it.

use crate::{Error, EventMessage, Steersman};
use std::fmt;
use steersman_machine::network::join::JoinOn;
use steersman_machine::stored::by::By;
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::stored::outcome::NewWrite;
use steersman_machine::view::artifact::Content;
use steersman_runtime::artifact::{ArtifactError, Artifacts};
use steersman_runtime::engine::{Engine, Inspection};
use steersman_runtime::inbox::{CancelWhat, Message, Resolution, Wanted, random_id};
use steersman_runtime::pending::PendingId;
use steersman_runtime::session::{Fork, Receipt, Search};

/// Maximum number of bytes of a `traceparent`.
const TRACE: usize = 55;

/// An act on a session: a message, a decision, an order or a request about branches.
///
/// [`Session`](crate::Session) has a method for each act; it acts on a session that this process drives. An `Act` is given to a
/// session by its id, whichever process drives it: [`Steersman::deliver`] puts it into the inbox, [`Steersman::order`] also takes
/// it if no process drives the session.
#[derive(Clone, Debug)]
#[must_use = "an act does nothing until it is given to a session"]
pub struct Act {
    id: Option<Name>,
    what: What,
    files: Vec<Content>,
}

#[derive(Clone)]
enum What {
    Message(Message),
    /// The text is sealed when the act is given to a session.
    Answer {
        of: PendingId,
        text: String,
        by: By,
    },
}

impl fmt::Debug for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(message) => message.fmt(f),
            // The text may be a secret.
            Self::Answer { of, by, .. } => {
                let mut answer = f.debug_struct("Answer");
                answer
                    .field("of", of)
                    .field("by", by)
                    .finish_non_exhaustive()
            }
        }
    }
}

impl From<Message> for Act {
    fn from(message: Message) -> Self {
        Self {
            id: None,
            what: What::Message(message),
            files: Vec::new(),
        }
    }
}

/// Returns entries of state in the form of a message.
fn entries<'a>(
    state: impl IntoIterator<Item = (&'a str, &'a serde_json::Value)>,
) -> Vec<(Name, Option<String>)> {
    let entry = |(name, value): (&str, &serde_json::Value)| {
        let value = (!value.is_null()).then(|| value.to_string());
        (Name::from(name), value)
    };
    state.into_iter().map(entry).collect()
}

/// Returns the request of a step that edits state.
pub(crate) fn edit(sets: &[NewWrite]) -> Wanted {
    Wanted::Edit(written(sets))
}

/// Returns the request of a step that says something, and sets entries of state with it.
pub(crate) fn said(text: &str, sets: &[NewWrite]) -> Wanted {
    if sets.is_empty() {
        return Wanted::say(text);
    }
    Wanted::SayWith {
        text: text.to_owned(),
        state: written(sets),
    }
}

fn written(sets: &[NewWrite]) -> Vec<(Name, Option<String>)> {
    let one = |set: &NewWrite| {
        let value = set.value.as_ref().map(ToString::to_string);
        (Name::from(&*set.name), value)
    };
    sets.iter().map(one).collect()
}

/// Decisions of people.
impl Act {
    /// Allows a held effect to run once, with exactly its arguments.
    pub fn approve(question: impl Into<PendingId>, by: By) -> Self {
        let (of, args) = (question.into(), None);
        Wanted::Approve { of, args }.by(by).into()
    }

    /// Like [`Act::approve`] with changed arguments, as far as the definition allows: an object whose values replace those of
    /// the call. A question about a budget takes `more`: the amount that is allowed above the limit, if that is to be more than the call
    /// may need.
    pub fn approve_edited(
        question: impl Into<PendingId>,
        arguments: &serde_json::Value,
        by: By,
    ) -> Self {
        let (of, args) = (question.into(), Some(arguments.to_string()));
        Wanted::Approve { of, args }.by(by).into()
    }

    /// Rejects a held effect. The model receives the reason.
    pub fn reject(question: impl Into<PendingId>, reason: Option<&str>, by: By) -> Self {
        let (of, reason) = (question.into(), reason.map(str::to_owned));
        Wanted::Reject { of, reason }.by(by).into()
    }

    /// Answers a question, or gives a secret that was asked for.
    pub fn answer(question: impl Into<PendingId>, text: &str, by: By) -> Self {
        Self {
            id: None,
            what: What::Answer {
                of: question.into(),
                text: text.to_owned(),
                by,
            },
            files: Vec::new(),
        }
    }

    /// Resolves an effect in doubt.
    pub fn resolve(question: impl Into<PendingId>, how: Resolution, by: By) -> Self {
        let of = question.into();
        Wanted::Resolve { of, how }.by(by).into()
    }

    /// Rates a version of an artifact from 1 to 5; `None` means the newest version. The artifacts are those of the session.
    ///
    /// # Errors
    /// If there is no such artifact or version, or the rating is out of range.
    pub fn rate_artifact(
        artifacts: &Artifacts,
        (name, version): (&str, Option<usize>),
        rating: u8,
        reason: Option<&str>,
        by: By,
    ) -> Result<Self, ArtifactError> {
        let write = artifacts.rated(name, version, rating, reason, &by.role)?;
        Ok(Wanted::rating(&write).by(by).into())
    }
}

/// Acts that send a message.
impl Act {
    /// Says something to the agent that has the floor. Without `by` the user says it; without a branch it is said on the
    /// current one.
    pub fn say(text: &str, by: Option<By>, branch: Option<Id>) -> Self {
        let by = by.unwrap_or_default();
        Wanted::say(text).by(by).on(branch).into()
    }

    /// Cancels everything that is open, and says something instead, as [`Act::say`] does.
    pub fn interrupt(text: &str, by: Option<By>, branch: Option<Id>) -> Self {
        let (text, by) = (text.to_owned(), by.unwrap_or_default());
        Wanted::Interrupt(text).by(by).on(branch).into()
    }

    /// Sets entries of state with the message of [`Act::say`], in the same step of the session. `null` unsets an entry. An entry
    /// whose type says `expires: answer` has its default again once the message is answered. Other acts set nothing.
    pub fn with_state<'a>(
        mut self,
        state: impl IntoIterator<Item = (&'a str, &'a serde_json::Value)>,
    ) -> Self {
        if let What::Message(message) = &mut self.what
            && let Wanted::Say { text, to: None } = &message.wanted
        {
            let (text, state) = (text.clone(), entries(state));
            message.wanted = Wanted::SayWith { text, state };
        }
        self
    }

    /// Sends an event that was checked ([`event_message`](crate::event_message)), under the id that its definition gives it.
    pub fn event(event: EventMessage) -> Self {
        Self {
            id: Some(event.id),
            what: What::Message(event.message),
            files: event.contents,
        }
    }

    /// Sends files with a message. They become artifacts under their names when the message is taken. Other acts have no files.
    pub fn with_files(mut self, files: &[Content]) -> Self {
        if let What::Message(message) = self.what {
            self.what = What::Message(message.with(files));
            self.files.extend_from_slice(files);
        }
        self
    }

    /// Sets the person who acts. Without this, acts whose function takes no person are the user's.
    pub fn by(mut self, who: By) -> Self {
        match &mut self.what {
            What::Message(message) => message.by = Some(who),
            What::Answer { by, .. } => *by = who,
        }
        self
    }

    /// Sets the branch that the act is about; `None` means the current one.
    pub fn on(mut self, on: Option<Id>) -> Self {
        if let What::Message(message) = &mut self.what {
            message.branch = on;
        }
        self
    }

    /// Addresses a text to an agent or a question instead of the agent that has the floor. Other acts are not changed.
    pub fn to(mut self, whom: Id) -> Self {
        if let What::Message(message) = &mut self.what
            && let Wanted::Say { to, .. } = &mut message.wanted
        {
            *to = Some(whom);
        }
        self
    }

    /// Sets the trace of the request: a W3C `traceparent`, which the log keeps with the act. A text of another form is left out.
    pub fn traced(mut self, parent: &str) -> Self {
        if let What::Message(message) = &mut self.what
            && parent.len() <= TRACE
        {
            message.parent = Some(parent.into());
        }
        self
    }

    /// Makes a branch the current one, to which everything goes that names no branch.
    pub fn current(branch: Id) -> Self {
        Wanted::Current(branch).by(By::user()).into()
    }

    /// Gives the act an id. A session accepts each id once in its life. Without one, the act has a random id.
    pub fn with_id(self, id: &str) -> Self {
        let id = Some(id.into());
        Self { id, ..self }
    }
}

/// Acts that control what runs: cancel, pause, hold, retry.
impl Act {
    /// Cancels an effect, an agent, a branch or the whole session. Without a branch, effects and agents are those of the
    /// current one.
    pub fn cancel(what: CancelWhat, by: By, branch: Option<Id>) -> Self {
        Wanted::Cancel(what).by(by).on(branch).into()
    }

    /// Pauses the session: nothing new begins until [`Act::resume`].
    pub fn pause() -> Self {
        Wanted::Pause(true).by(By::user()).into()
    }

    /// Ends a pause: effects may begin again.
    pub fn resume() -> Self {
        Wanted::Pause(false).by(By::user()).into()
    }

    /// Prevents effects of a tool from beginning until [`Act::release`]; `None` means all effects that may change the world.
    pub fn hold(tool: Option<&str>, by: By) -> Self {
        let (tool, held) = (tool.map(Into::into), true);
        Wanted::Hold { tool, held }.by(by).into()
    }

    /// Takes a hold back. The effects that it prevented may begin.
    pub fn release(tool: Option<&str>, by: By) -> Self {
        let (tool, held) = (tool.map(Into::into), false);
        Wanted::Hold { tool, held }.by(by).into()
    }

    /// Retries what failed: one effect, or all attempts that wait for their next time, otherwise the model call whose
    /// failure ended the session.
    pub fn retry(effect: Option<Id>, by: By) -> Self {
        Wanted::Retry(effect).by(by).into()
    }

    /// Edits entries of state. `null` unsets an entry. The definition may name the people who may do it (`by` of the entry).
    pub fn edit<'a>(
        state: impl IntoIterator<Item = (&'a str, &'a serde_json::Value)>,
        by: By,
    ) -> Self {
        Wanted::Edit(entries(state)).by(by).into()
    }

    /// Binds new values of `config`. Nothing of the session may be open.
    pub fn rebind<'a>(
        config: impl IntoIterator<Item = (&'a str, &'a serde_json::Value)>,
        by: By,
    ) -> Self {
        let config = config.into_iter();
        let config = config
            .map(|(name, value)| (name.into(), value.to_string()))
            .collect();
        Wanted::Rebind(config).by(by).into()
    }
}

/// Acts about branches.
impl Act {
    /// Forks a branch.
    pub fn fork(fork: Fork) -> Self {
        let Fork {
            branch,
            at,
            label,
            say,
            live,
        } = fork;
        let wanted = Wanted::Fork {
            at,
            label,
            say,
            live,
        };
        wanted.by(By::user()).on(branch).into()
    }

    /// Rewinds a branch to a line, and sends a message there if one is given. Without a branch it is the current one.
    pub fn rewind(branch: Option<Id>, at: Line, label: Option<&str>, say: Option<&str>) -> Self {
        let (label, say) = (label.map(Into::into), say.map(str::to_owned));
        let wanted = Wanted::Rewind { at, label, say };
        wanted.by(By::user()).on(branch).into()
    }

    /// Reports the results of branches to the session once a condition holds. `then` is a tool that is called next, with
    /// its arguments: a JSON object whose texts are templates over `result`; `None` hands the result itself on.
    pub fn join(branches: Vec<Id>, on: &JoinOn, then: Option<(&str, Option<&str>)>) -> Self {
        let (then, args) = then.unzip();
        let args = args.flatten().map(str::to_owned);
        let then = then.map(Into::into);
        Wanted::join(branches, on, then, args).by(By::user()).into()
    }

    /// Adopts a branch up to a line: the session continues with its lines. `None` means its last line, or the line before its
    /// first simulated effect.
    pub fn adopt(branch: Id, at: Option<Line>) -> Self {
        Wanted::Adopt { branch, at }.by(By::user()).into()
    }

    /// Starts a search over branches.
    pub fn search(search: Search) -> Self {
        let wanted = Wanted::Search {
            at: search.at,
            say: search.say,
            plan: search.plan.to_json().to_string(),
        };
        wanted.by(By::user()).on(search.branch).into()
    }

    /// Ends a search with the best result so far. `None` means all searches that run.
    pub fn stop_search(search: Option<Id>) -> Self {
        Wanted::StopSearch(search).by(By::user()).into()
    }
}

impl Act {
    /// Returns the reason why the session would refuse a request about branches, as far as its log shows it now. The process
    /// that takes the act checks it again.
    pub fn refusal(&self, seen: &Inspection) -> Option<String> {
        match &self.what {
            What::Message(message) => steersman_runtime::branches::refusal(seen, message),
            What::Answer { .. } => None,
        }
    }

    /// Returns the message with its id, once its files are stored and its secret is sealed.
    pub(crate) async fn message(self, engine: &Engine) -> Result<(Name, Message), Error> {
        engine.keep(&self.files).await?;
        let message = match self.what {
            What::Message(message) => message,
            What::Answer { of, text, by } => {
                let sealed = engine.sealer().seal_text(&text);
                Wanted::Answer { of, sealed }.by(by)
            }
        };
        Ok((self.id.unwrap_or_else(random_id), message))
    }
}

impl Steersman {
    /// Puts an act into the inbox of a session, where it is on disk. If this process drives the session, waits until the
    /// act is taken, left waiting or refused; the receipt tells which. Otherwise the process that drives the session next
    /// takes it.
    ///
    /// # Errors
    /// Errors of the store, such as a session that does not exist.
    pub async fn deliver(&self, session: &str, act: Act) -> Result<Receipt, Error> {
        let engine = self.engine();
        let (id, message) = act.message(engine).await?;
        Ok(engine.deliver_as(session, id, message).await?)
    }

    /// Gives an order to a session: like [`Steersman::deliver`], but takes the act here if no process drives the session.
    /// Nothing else of the session runs.
    ///
    /// # Errors
    /// As [`Steersman::deliver`].
    pub async fn order(&self, session: &str, act: Act) -> Result<Receipt, Error> {
        let engine = self.engine();
        let (_, message) = act.message(engine).await?;
        Ok(engine.order(session, message).await?)
    }
}
