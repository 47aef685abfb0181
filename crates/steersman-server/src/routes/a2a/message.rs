//! A message of the client: it begins a session, says something in one, or answers what a task asks.

use super::{Agent, Failed, Fault, Following, fault};
use crate::Permission;
use crate::caller::Caller;
use crate::conversation::Went;
use crate::protocol::turn::{A2A, Open};
use serde::Deserialize;
use serde_json::{Value, json};
use steersman::machine::stored::ids::{Line, Name};
use steersman::runtime::inbox::{Message as Boxed, Wanted};
use steersman::runtime::store::SessionId;
use steersman::{Act, PendingKind, StartOptions};

/// The parameters of a call that sends a message. Unknown fields are ignored, as the protocol says.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sending {
    message: Message,
    #[serde(default)]
    configuration: Configuration,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Configuration {
    return_immediately: bool,
    task_push_notification_config: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_field_names,
    reason = "the names are those of the protocol"
)]
struct Message {
    message_id: String,
    #[serde(default)]
    context_id: String,
    #[serde(default)]
    task_id: String,
    role: String,
    parts: Vec<Part>,
    #[serde(default)]
    metadata: Value,
}

#[derive(Debug, Deserialize)]
struct Part {
    text: Option<String>,
    data: Option<Value>,
}

/// A message that was taken.
pub(super) struct Sent {
    pub(super) session: SessionId,
    /// The line of the task.
    pub(super) line: Line,
    /// True if the client waits for the end of the turn.
    pub(super) waits: bool,
    pub(super) following: Following,
}

/// Maximum number of bytes of the id of a message.
const ID: usize = 256;

impl Agent {
    /// Puts a message into a session, and waits until it is taken.
    pub(super) async fn send(&self, send: Sending) -> Result<Sent, Failed> {
        let message = &send.message;
        self.caller.needs(Permission::Write)?;
        if send.configuration.task_push_notification_config.is_some() {
            let why = "there are no push notifications: send a message with `SendStreamingMessage`";
            return Err(fault(Fault::NoPush, why));
        }
        if message.role != "ROLE_USER" {
            return Err(fault(Fault::Params, "`message.role` is `ROLE_USER`"));
        }
        if message.message_id.is_empty() || message.message_id.len() > ID {
            let why = format!("`message.messageId` has 1 to {ID} bytes");
            return Err(fault(Fault::Params, why));
        }
        let said = Said::read(&message.parts)?;
        let (session, line, after) = if !message.task_id.is_empty() {
            self.reply(message, &said).await?
        } else if message.context_id.is_empty() {
            self.begins(message, said).await?
        } else {
            self.goes_on(message, &said).await?
        };
        Ok(Sent {
            waits: !send.configuration.return_immediately,
            following: self.followed(&session, line, after).await?,
            session,
            line,
        })
    }

    /// Starts a session. The same message again finds the same one.
    async fn begins(
        &self,
        message: &Message,
        said: Said,
    ) -> Result<(SessionId, Line, Line), Failed> {
        let caller = &self.caller;
        let mut asked = self.asked.clone();
        let key = caller.keyed("a2a", &message.message_id).await?;
        asked.key = Some(format!("a2a/{}", key.to_hex()));
        let id = self.message_id(A2A, "", message).await?;
        let entry = self.entry(message)?;
        let fields = json!({ "entry": entry, "text": said.text, "data": said.data });
        let same = Boxed::from(Wanted::Event {
            event: "a2a".into(),
            fields: fields.to_string(),
        });
        let by = caller.by(None)?;
        let options = StartOptions {
            agent: entry,
            say: said.text,
            args: said.data,
            message_id: Some(id.as_str().into()),
            event: Some(same),
            by: by.named().cloned(),
            ..StartOptions::default()
        };
        let (session, _) = caller.begin(&self.network, &asked, options).await?;
        let line = caller.decided(&session, Line::NONE, &id, caller.deadline());
        let line = line.await?.ok_or_else(|| caller.late())?;
        Ok((session, line, line))
    }

    /// Says something more in a session: a new task.
    async fn goes_on(
        &self,
        message: &Message,
        said: &Said,
    ) -> Result<(SessionId, Line, Line), Failed> {
        let caller = &self.caller;
        let session = caller
            .of_definition(&self.network, &message.context_id)
            .await;
        let session = session.map_err(|problem| fault(Fault::Params, problem.sentence()))?;
        let Said {
            text: Some(text),
            data: None,
        } = said
        else {
            let why = "a message to a context that goes on has text parts alone";
            return Err(fault(Fault::Params, why));
        };
        let id = self.message_id(A2A, &session, message).await?;
        if let Some(line) = caller.took(&session, &id).await? {
            return Ok((session, line, line));
        }
        if !caller.open(&session).await?.is_empty() {
            let why = "the context asks something first: answer its task, or cancel it";
            return Err(fault(Fault::Unsupported, why));
        }
        let act = Act::say(text, Some(caller.by(None)?), None);
        match caller
            .takes(&session, vec![(id, act)], true, &self.asked)
            .await?
        {
            Went::Taken(line) => Ok((session, line, line)),
            Went::Waits(why) => {
                let why = format!("the message waits, and is taken later: {why}");
                Err(fault(Fault::Unsupported, why))
            }
        }
    }

    /// Answers what a task asks. The task goes on.
    async fn reply(
        &self,
        message: &Message,
        said: &Said,
    ) -> Result<(SessionId, Line, Line), Failed> {
        let caller = &self.caller;
        let (session, line) = self.found(&message.task_id).await?;
        if !message.context_id.is_empty() && *message.context_id != *session {
            return Err(fault(Fault::Params, "the task is none of this context"));
        }
        caller.needs(Permission::Decide)?;
        let id = self.message_id("a2a-reply/", &session, message).await?;
        if let Some(after) = caller.took(&session, &id).await? {
            return Ok((session, line, after));
        }
        let task = self.made(&session, line).await?;
        if task.open().is_empty() {
            let why =
                "the task asks nothing: send a message with `contextId` alone, which is a new task";
            return Err(fault(Fault::Unsupported, why));
        }
        let act = answer(caller, task.open(), said)?;
        match caller
            .takes(&session, vec![(id, act)], false, &self.asked)
            .await?
        {
            Went::Taken(after) => Ok((session, line, after)),
            Went::Waits(why) => Err(fault(Fault::Unsupported, why)),
        }
    }

    /// Returns the entry that the metadata of a message names.
    fn entry(&self, message: &Message) -> Result<Option<Name>, Failed> {
        let entries = &self.network.checked().entry;
        match &message.metadata["entry"] {
            Value::Null => Ok(None),
            Value::String(name) if entries.iter().any(|own| **own == **name) => {
                Ok(Some(name.as_str().into()))
            }
            _ => {
                let all: Vec<&str> = entries.iter().map(|own| &**own).collect();
                let why = format!("`message.metadata.entry` is one of: {}", all.join(", "));
                Err(fault(Fault::Params, why))
            }
        }
    }

    /// Returns the id of a message to the session: the same for the same message of the client.
    async fn message_id(
        &self,
        kind: &str,
        session: &str,
        message: &Message,
    ) -> Result<String, Failed> {
        let over = json!([session, message.message_id]).to_string();
        let digest = self.caller.keyed("a2a message", &over).await?;
        Ok(format!("{kind}{}", &digest.to_hex()[..32]))
    }
}

/// The content of a message: its texts, and an object.
#[derive(Debug)]
struct Said {
    text: Option<String>,
    data: Option<Value>,
}

impl Said {
    fn read(parts: &[Part]) -> Result<Self, Failed> {
        let (mut texts, mut objects) = (Vec::new(), Vec::new());
        for part in parts {
            match (&part.text, &part.data) {
                (Some(text), None) => texts.push(text.as_str()),
                (None, Some(data @ Value::Object(_))) => objects.push(data.clone()),
                (None, Some(_)) => {
                    return Err(fault(Fault::Params, "a part with `data` is an object"));
                }
                _ => {
                    let why = "a message has parts with `text` and at most one with `data`; send files with POST /v1/sessions/{session}/messages";
                    return Err(fault(Fault::Content, why));
                }
            }
        }
        let text = texts.join("\n");
        let text = Some(text).filter(|text| !text.trim().is_empty());
        if objects.len() > 1 || (text.is_none() && objects.is_empty()) {
            let why = "a message says something: parts with `text`, or one with `data`";
            return Err(fault(Fault::Params, why));
        }
        Ok(Self {
            text,
            data: objects.pop(),
        })
    }
}

/// A part with `data` that decides a question.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    question: String,
    approve: Option<bool>,
    answer: Option<String>,
    reason: Option<String>,
}

/// Returns the act of a message that answers one of these questions. Text answers the only question to the client, and approves nothing.
fn answer(caller: &Caller, open: &[Open], said: &Said) -> Result<Act, Failed> {
    let roles = caller.deciding();
    let by = |open: &Open| caller.by(open.role(&roles).map(|role| &**role));
    let Some(data) = &said.data else {
        let mut mine = open
            .iter()
            .filter(|open| open.kind == PendingKind::Question && open.role(&roles).is_some());
        let (Some(only), None, Some(text)) = (mine.next(), mine.next(), &said.text) else {
            let why = "text answers the only question to the client; otherwise send a part with `data`: {\"question\": ID, \"approve\": true}, \
                or {\"question\": ID, \"answer\": \"..\"}";
            return Err(fault(Fault::Params, why));
        };
        return Ok(Act::answer(only.id, text, by(only)?));
    };
    let decision: Decision = serde_json::from_value(data.clone()).map_err(|error| {
        let why = format!("the part with `data` cannot be read: {error}");
        fault(Fault::Params, why)
    })?;
    let id = decision.question.parse().ok();
    let Some(open) = open.iter().find(|open| Some(open.id) == id) else {
        let why =
            "`question` names no open question of the task: it was decided, is over, or never was";
        return Err(fault(Fault::Params, why));
    };
    match (decision.approve, &decision.answer) {
        (None, Some(text)) if open.kind == PendingKind::Question => {
            Ok(Act::answer(open.id, text, by(open)?))
        }
        (Some(true), None) if open.is_decided() => Ok(Act::approve(open.id, by(open)?)),
        (Some(false), None) if open.is_decided() => {
            let reason = decision.reason.as_deref();
            Ok(Act::reject(open.id, reason, by(open)?))
        }
        _ => {
            let why = "a question of kind `question` takes `answer`; an approval, a budget and a repetition take `approve`";
            Err(fault(Fault::Params, why))
        }
    }
}
