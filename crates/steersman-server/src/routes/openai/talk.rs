//! The messages of a request. Those behind the last one of the assistant are new: they are said in the session that continues the
//! conversation, or begin one.

use crate::Permission;
use crate::ask::Asked;
use crate::caller::Caller;
use crate::conversation::{Chain, Place, Went};
use crate::problem::{Code, Problem};
use crate::protocol::turn::Open;
use crate::token::random;
use serde::Deserialize;
use serde_json::{Value, json};
use steersman::machine::stored::ids::{Line, Name};
use steersman::runtime::inbox::{Message as Boxed, Wanted};
use steersman::runtime::store::SessionId;
use steersman::{Act, ChatHistory, Network, PendingId, PendingKind, StartOptions};

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Message {
    pub(super) role: Role,
    pub(super) text: String,
    /// The ids of the calls of an answer.
    pub(super) calls: Vec<String>,
    /// The question that a tool's message answers.
    pub(super) of: String,
    /// The message in the form of a history, if a history has it.
    pub(super) raw: Option<Value>,
}

/// The roles of messages.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Assistant,
    Tool,
}

impl Message {
    /// Makes a message of the user.
    pub(super) fn user(text: &str) -> Self {
        Self {
            role: Role::User,
            ..Self::answer(text, Vec::new())
        }
    }

    /// Makes a message that answers a question.
    pub(super) fn decision(of: &str, text: &str) -> Self {
        Self {
            role: Role::Tool,
            of: of.to_owned(),
            ..Self::answer(text, Vec::new())
        }
    }

    /// Returns true for a message of the assistant.
    pub(super) fn is_answer(&self) -> bool {
        self.role == Role::Assistant
    }

    /// Adds another message of the assistant to this one.
    pub(super) fn join(&mut self, other: Self) {
        if !self.text.is_empty() && !other.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(&other.text);
        self.calls.extend(other.calls);
    }

    /// Makes a message of the assistant, as a client sends it later.
    pub(super) fn answer(text: &str, calls: Vec<String>) -> Self {
        Self {
            role: Role::Assistant,
            text: text.to_owned(),
            calls,
            of: String::new(),
            raw: None,
        }
    }
}

impl Chain {
    /// Adds a message. Space around its text does not count.
    pub(super) fn add(self, message: &Message) -> Self {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        let fixed = [role, message.text.trim(), &message.of];
        self.with(
            fixed
                .into_iter()
                .chain(message.calls.iter().map(String::as_str)),
        )
    }
}

/// A conversation: what was said, and what is new.
pub(super) struct Talk {
    /// The digest of what was said, up to the last message of the assistant.
    before: Chain,
    /// The digest of all messages.
    pub(super) whole: Chain,
    earlier: Vec<Message>,
    new: Vec<Message>,
}

impl Talk {
    pub(super) fn new(base: Chain, mut messages: Vec<Message>) -> Result<Self, Problem> {
        let last = messages
            .iter()
            .rposition(|message| message.role == Role::Assistant);
        let new = messages.split_off(last.map_or(0, |last| last + 1));
        if new
            .iter()
            .all(|message| message.role == Role::User && message.text.trim().is_empty())
        {
            let why = "nothing new is said behind the last message of the assistant";
            return Err(Problem::new(Code::Body, why).help("end with a message of the user"));
        }
        let before = messages.iter().fold(base, Chain::add);
        let whole = new.iter().fold(before, Chain::add);
        Ok(Self {
            before,
            whole,
            earlier: messages,
            new,
        })
    }

    /// Returns the digest that leads to the line that took the new messages.
    fn asked(&self) -> Chain {
        self.whole.with(["asked"])
    }

    /// Returns the digest that leads to that line once its answer was sent.
    pub(super) fn told(&self) -> Chain {
        self.whole.with(["told"])
    }

    /// Returns the new words of the user.
    fn words(&self) -> String {
        let words = self.new.iter().filter(|message| message.role == Role::User);
        let words: Vec<&str> = words.map(|message| &*message.text).collect();
        words.join("\n\n")
    }

    fn decisions(&self) -> impl Iterator<Item = &Message> {
        self.new.iter().filter(|message| message.role == Role::Tool)
    }
}

/// A request whose messages are put into a session.
pub(super) struct Asks<'a> {
    pub(super) caller: &'a Caller,
    pub(super) network: &'a Network,
    pub(super) asked: &'a Asked,
    pub(super) entry: Option<Name>,
    pub(super) talk: &'a Talk,
    /// The place that the client names.
    pub(super) at: Named,
    /// True if the client sends the request again because it has no answer.
    pub(super) is_retry: bool,
}

/// The place that a client names.
#[derive(Clone, Debug, Default)]
pub(super) enum Named {
    /// None: the messages lead to it.
    #[default]
    Nothing,
    /// The end of a session.
    Session(SessionId),
    /// A line of a session.
    Line(SessionId, Line),
}

impl Named {
    fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Nothing => None,
            Self::Session(session) | Self::Line(session, _) => Some(session),
        }
    }
}

impl Asks<'_> {
    /// Says what is new in the session that continues the conversation. Returns the session, and what became of it.
    pub(super) async fn said(&self) -> Result<(SessionId, Went), Problem> {
        let (caller, talk) = (self.caller, self.talk);
        let fits = |found: Option<(SessionId, Line)>| {
            found.filter(|(id, _)| self.at.session().is_none_or(|named| named == id))
        };
        let told = fits(caller.head(talk.told()).await?);
        if self.is_retry {
            // The client does not know the answer, whatever the server has sent.
            let before = match &told {
                Some(told) => Some(told.clone()),
                None => fits(caller.head(talk.asked()).await?),
            };
            match before {
                // The request went away before the session had taken it.
                Some((session, Line::NONE)) => return self.takes(session).await,
                Some((session, line)) => return Ok((session, Went::Taken(line))),
                None => {}
            }
        }
        let found = match &self.at {
            Named::Line(session, line) => Some((session.clone(), *line)),
            _ if talk.earlier.is_empty() => None,
            _ => fits(caller.head(talk.before).await?),
        };
        let told = told.map_or(Line::NONE, |(_, line)| line);
        let place = match (found, self.at.session().cloned()) {
            (Some((session, line)), _) => Some(caller.place(session, line, told).await?),
            (None, Some(session)) => Some(caller.end(session).await?),
            (None, None) => None,
        };
        let (session, went) = match place {
            Some(place) => {
                let went = self.goes_on(&place, told).await?;
                (place.session, went)
            }
            None => return self.begins().await,
        };
        if let Went::Taken(line) = went {
            caller.leads(talk.asked(), &session, line).await?;
        }
        Ok((session, went))
    }

    /// Starts a session. What was said elsewhere precedes it.
    async fn begins(&self) -> Result<(SessionId, Went), Problem> {
        let (caller, talk) = (self.caller, self.talk);
        if talk.decisions().next().is_some() {
            let why = "the conversation is not known here, so nothing in it is asked";
            return Err(Problem::new(Code::Question, why).help(
                "send the messages as they came, or name the session in `x-steersman-session`",
            ));
        }
        let by = caller.by(None)?;
        let earlier = talk
            .earlier
            .iter()
            .filter_map(|message| message.raw.clone());
        let history = ChatHistory::from_messages(earlier).map_err(|error| {
            let why = format!("the conversation so far: {error}");
            Problem::new(Code::Body, why).help(error.fix.clone())
        })?;
        let same = Boxed::from(Wanted::Event {
            event: "chat".into(),
            fields: json!(talk.whole.message()).to_string(),
        });
        let planned = caller.session_of("chat", &random::<16>()).await?;
        let options = StartOptions {
            message_id: Some(self.first(&planned).await?.into()),
            id: Some(planned),
            agent: self.entry.clone(),
            say: Some(talk.words()),
            history,
            event: Some(same),
            by: by.named().cloned(),
            ..StartOptions::default()
        };
        // A client that goes away takes nothing of this along: when it comes again, its messages lead to the session.
        let (caller, network, asked) = (caller.clone(), self.network.clone(), self.asked.clone());
        let of = talk.asked();
        let begun = tokio::spawn(async move {
            let (session, _) = caller.begin(&network, &asked, options).await?;
            caller.leads(of, &session, Line::NONE).await?;
            Ok::<_, Problem>(session)
        });
        let session = begun
            .await
            .map_err(|error| Problem::new(Code::Internal, error.to_string()))??;
        self.takes(session).await
    }

    /// Waits until a session that was begun has taken its first message.
    async fn takes(&self, session: SessionId) -> Result<(SessionId, Went), Problem> {
        let caller = self.caller;
        let message = self.first(&session).await?;
        let until = caller.deadline();
        let line = caller
            .decided(&session, Line::NONE, &message, until)
            .await?;
        let line = line.ok_or_else(|| caller.late())?;
        caller.leads(self.talk.asked(), &session, line).await?;
        Ok((session, Went::Taken(line)))
    }

    /// Returns the id of the message that begins a session.
    async fn first(&self, session: &SessionId) -> Result<String, Problem> {
        match &self.asked.key {
            Some(_) => self.message(None, 0).await,
            None => Ok(self.talk.whole.with([&**session]).message()),
        }
    }

    /// Says what is new at a place of a session. `told` is the line that took the same before, if its answer was sent.
    async fn goes_on(&self, place: &Place, told: Line) -> Result<Went, Problem> {
        let (caller, talk) = (self.caller, self.talk);
        let session = &place.session;
        let first = self.message(Some((place, told)), 0).await?;
        if let Some(line) = caller.took(session, &first).await? {
            // It was said before, and its answer did not arrive.
            let last = self.message(Some((place, told)), talk.new.len()).await?;
            let last = caller.took(session, &last).await?;
            return Ok(Went::Taken(last.unwrap_or(line)));
        }
        let words = talk.words();
        if let Some(line) = place.back.filter(|_| talk.decisions().next().is_none()) {
            caller.needs(Permission::Time).map_err(|problem| {
                problem.help("the message is not the last of the session, so this goes back: use a token that allows it, or send all messages as they came")
            })?;
            let by = caller.by(None)?;
            let act = Act::rewind(place.branch, line, None, Some(&words)).by(by);
            let acts = vec![(first, act)];
            return caller.takes(session, acts, false, self.asked).await;
        }
        let mut acts = self.decide(session).await?;
        let mut says = false;
        if !words.trim().is_empty() {
            let (act, is_said) = self.say(place, &words).await?;
            says = is_said;
            acts.push(act);
        }
        let mut named = Vec::with_capacity(acts.len());
        let count = acts.len();
        for (n, act) in acts.into_iter().enumerate() {
            // The last of several has the id by which the turn is found.
            let n = if n + 1 == count && n > 0 {
                talk.new.len()
            } else {
                n
            };
            named.push((self.message(Some((place, told)), n).await?, act));
        }
        caller.takes(session, named, says, self.asked).await
    }

    /// Returns the act that says something: the answer of the only open question to the client, otherwise a message. The second is true
    /// for a message.
    async fn say(&self, place: &Place, words: &str) -> Result<(Act, bool), Problem> {
        let caller = self.caller;
        let roles = caller.deciding();
        let open = caller.open(&place.session).await?;
        let mut mine = open
            .iter()
            .filter(|open| open.kind == PendingKind::Question);
        if let (Some(only), None) = (mine.next(), mine.next())
            && let Some(role) = only.role(&roles)
        {
            return Ok((Act::answer(only.id, words, caller.by(Some(role))?), false));
        }
        Ok((Act::say(words, Some(caller.by(None)?), place.branch), true))
    }

    /// Returns the acts of the messages that answer calls of the client's functions.
    async fn decide(&self, session: &str) -> Result<Vec<Act>, Problem> {
        let caller = self.caller;
        let mut acts = Vec::new();
        if self.talk.decisions().next().is_none() {
            return Ok(acts);
        }
        caller.needs(Permission::Decide)?;
        let open = caller.open(session).await?;
        for message in self.talk.decisions() {
            let id: Option<PendingId> = message.of.parse().ok();
            let Some(open) = open.iter().find(|open| Some(open.id) == id) else {
                let why =
                    "`tool_call_id` names no open question: it was decided, is over, or never was";
                return Err(Problem::new(Code::Question, why)
                    .help("GET /v1/sessions/{session}/questions lists what is open"));
            };
            acts.push(decision(caller, open, &message.text)?);
        }
        Ok(acts)
    }

    /// Returns the id of a message to the session: the same for the same messages at the same place, or under the same key.
    async fn message(&self, at: Option<(&Place, Line)>, n: usize) -> Result<String, Problem> {
        let chain = match (&self.asked.key, at) {
            // The store compares what begins a session with what began it before.
            (Some(key), None) => Chain::new(self.caller.keyed("chat message", key).await?),
            (Some(key), Some(_)) => self.talk.whole.with([&**key]),
            (None, Some((place, told))) => {
                let from = place.from.to_string();
                self.talk
                    .whole
                    .with([&*place.session, &from, &told.to_string()])
            }
            (None, None) => self.talk.whole,
        };
        Ok(chain.with([&*n.to_string()]).message())
    }
}

/// The content of a message that answers a call of `approve`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Approval {
    approve: bool,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    args: Option<Value>,
}

/// Returns the act of a message that answers a question.
fn decision(caller: &Caller, open: &Open, text: &str) -> Result<Act, Problem> {
    let roles = caller.deciding();
    let role = open.role(&roles).map(|role| &**role);
    let by = caller.by(role)?;
    if open.kind == PendingKind::Question {
        return Ok(Act::answer(open.id, text, by));
    }
    if !open.is_decided() {
        let why = format!(
            "a question of kind `{}` is not answered by a call",
            open.kind.word()
        );
        return Err(Problem::new(Code::Question, why));
    }
    let read: Approval = serde_json::from_str(text).map_err(|error| {
        let why = format!("the answer to `approve` cannot be read: {error}");
        Problem::new(Code::Body, why)
            .help(r#"send {"approve": true}, or {"approve": false, "reason": ".."}"#)
    })?;
    Ok(match (read.approve, &read.args) {
        (true, None) => Act::approve(open.id, by),
        (true, Some(args)) => Act::approve_edited(open.id, args, by),
        (false, _) => Act::reject(open.id, read.reason.as_deref(), by),
    })
}
