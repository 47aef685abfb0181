//! A conversation that was held elsewhere and precedes a session: chat messages in the common form, read and checked.
//!
//! Only what a model may be shown again is kept. `system` and `developer` messages are left out: the definition says who the
//! agent is, and a file from outside gives it no instructions.

use crate::stored::bounds::NAME;
use crate::stored::ids::Body;
use crate::stored::interaction::Earlier;
use crate::values::json::read;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Maximum size, in bytes, of a history as JSON: with the first message it fits into one line of the log.
pub const HISTORY: usize = 128 << 10;
/// Most messages of a history. Each call counts as one, too.
pub const MESSAGES: usize = 500;

/// A conversation that was held elsewhere. Every call in it has its result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatHistory {
    said: Vec<Said>,
    left_out: usize,
}

/// A message of a [`ChatHistory`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The words of a person.
    User(Arc<str>),
    /// An answer of a model.
    Assistant {
        /// Text of the answer. `None` if it consists of calls alone.
        text: Option<Arc<str>>,
        /// Calls of the answer, in order.
        calls: Vec<SaidCall>,
    },
}

/// A call in an answer of a [`ChatHistory`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidCall {
    /// The provider's id of the call.
    pub label: String,
    /// Name of the tool.
    pub name: String,
    /// JSON object of the arguments.
    pub args: Arc<str>,
    /// Text of the result.
    pub result: Arc<str>,
}

/// The reason why a text is no history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryError {
    /// Line of the text, from 1. `None` if the whole is meant, or a message that is not in a text.
    pub line: Option<usize>,
    /// Number of the message, from 1. 0 if none is meant.
    pub message: usize,
    /// The fault, as a clause.
    pub why: String,
    /// The remedy, as a clause.
    pub fix: String,
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if self.message > 0 {
            write!(f, "message {}: ", self.message)?;
        }
        f.write_str(&self.why)
    }
}

impl std::error::Error for HistoryError {}

/// The fault of a message, and its remedy.
type Wrong = (String, String);

fn wrong<T>(why: impl Into<String>, fix: impl Into<String>) -> Result<T, Wrong> {
    Err((why.into(), fix.into()))
}

/// An example for people.
const FORM: &str = r#"each message has the form {"role": "user", "content": ".."}"#;

/// The form of a whole history, for people.
const LIST: &str = "a history is a JSON array of chat messages, or one message a line";

impl ChatHistory {
    /// Reads a JSON array of chat messages, or one message a line (JSON lines). An object with the key `messages` is read as
    /// that array.
    ///
    /// # Errors
    /// The first message that does not fit, with its line.
    pub fn read(text: &str) -> Result<Self, HistoryError> {
        let text = text.trim_start_matches('\u{feff}');
        let begins = text.trim_start();
        if begins.is_empty() {
            return Err(HistoryError {
                line: None,
                message: 0,
                why: "there is no message".to_owned(),
                fix: FORM.to_owned(),
            });
        }
        let messages = elements(text)?.into_iter().map(|(line, element)| {
            let read = read(element);
            let json = read.map_err(|e| not_json(line + e.line().saturating_sub(1), &e));
            json.map(|json| (Some(line), json))
        });
        Self::of(messages.collect::<Result<Vec<_>, HistoryError>>()?)
    }

    /// Reads chat messages.
    ///
    /// # Errors
    /// The first message that does not fit.
    pub fn from_messages(messages: impl IntoIterator<Item = Json>) -> Result<Self, HistoryError> {
        Self::of(messages.into_iter().map(|message| (None, message)))
    }

    fn of(messages: impl IntoIterator<Item = (Option<usize>, Json)>) -> Result<Self, HistoryError> {
        let mut reading = Reading::default();
        for (n, (line, message)) in messages.into_iter().enumerate() {
            let at = (line, n + 1);
            let added = reading.add(at, &message);
            added.map_err(|(why, fix)| unfit(at, why, fix))?;
        }
        reading
            .complete()
            .map_err(|(at, (why, fix))| unfit(at, why, fix))?;
        let history = Self {
            said: reading.said,
            left_out: reading.left_out,
        };
        let (messages, bytes) = (history.len(), history.stored().len());
        let too_much = if messages > MESSAGES {
            format!("there are {messages} messages and calls; a history has at most {MESSAGES}")
        } else if bytes > HISTORY {
            let most = HISTORY >> 10;
            format!("it has {bytes} bytes; a history has at most {most} KiB")
        } else {
            return Ok(history);
        };
        let fix = "leave out the oldest messages, or put them into one that sums them up";
        Err(unfit((None, 0), too_much, fix.to_owned()))
    }

    /// Returns the messages, oldest first.
    pub fn messages(&self) -> &[Said] {
        &self.said
    }

    /// Returns true if there is no message.
    pub fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// Returns the number of messages and calls.
    pub fn len(&self) -> usize {
        let calls = self.said.iter().map(|said| match said {
            Said::User(_) => 0,
            Said::Assistant { calls, .. } => calls.len(),
        });
        self.said.len() + calls.sum::<usize>()
    }

    /// Returns the number of `system` and `developer` messages that were left out.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Makes a history of messages that are known to fit, as a log holds them.
    pub fn of_said(said: Vec<Said>) -> Self {
        Self { said, left_out: 0 }
    }

    /// Returns the JSON array of chat messages that [`Self::read`] reads as this history.
    pub fn stored(&self) -> String {
        let all = self.said.iter().flat_map(Said::messages);
        all.collect::<Json>().to_string()
    }
}

impl Said {
    /// Returns a message as a stack has it. `text` gives its texts.
    pub fn of(earlier: &Earlier, mut text: impl FnMut(Body) -> Arc<str>) -> Self {
        match earlier {
            Earlier::User(body) => Self::User(text(*body)),
            Earlier::Assistant { text: said, calls } => {
                let said = said.map(&mut text);
                let calls = calls.iter().map(|call| SaidCall {
                    label: call.label.to_string(),
                    name: call.name.to_string(),
                    args: text(call.args),
                    result: text(call.result),
                });
                let calls = calls.collect();
                Self::Assistant { text: said, calls }
            }
        }
    }

    /// Returns the chat messages: the message itself, and one for the result of each of its calls.
    pub fn messages(&self) -> Vec<Json> {
        let (text, calls) = match self {
            Self::User(text) => return vec![json!({ "role": "user", "content": &**text })],
            Self::Assistant { text, calls } => (text, calls),
        };
        let made = calls.iter().map(|call| {
            let function = json!({ "name": call.name, "arguments": &*call.args });
            json!({ "id": call.label, "type": "function", "function": function })
        });
        let made: Vec<Json> = made.collect();
        let mut answer = json!({ "role": "assistant", "content": text.as_deref() });
        if !made.is_empty() {
            answer["tool_calls"] = made.into();
        }
        let results = calls.iter().map(|call| {
            let content = &*call.result;
            json!({ "role": "tool", "tool_call_id": call.label, "content": content })
        });
        std::iter::once(answer).chain(results).collect()
    }
}

fn unfit((line, message): (Option<usize>, usize), why: String, fix: String) -> HistoryError {
    HistoryError {
        line,
        message,
        why,
        fix,
    }
}

fn not_json(line: usize, error: &serde_json::Error) -> HistoryError {
    HistoryError {
        line: Some(line),
        message: 0,
        why: format!("this is not JSON: {error}"),
        fix: LIST.to_owned(),
    }
}

/// An object that has the list of messages, as a request to a model has it.
#[derive(Deserialize)]
struct Messages<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

/// Returns the texts of the messages of a history, each with the line in which it begins.
fn elements(text: &str) -> Result<Vec<(usize, &str)>, HistoryError> {
    let begins = text.trim_start();
    // A text has one message a line if its first line is a whole object that is not the whole history.
    let first = begins.lines().next().unwrap_or_default();
    let first = serde_json::from_str::<BTreeMap<String, &RawValue>>(first);
    if first.is_ok_and(|first| !first.contains_key("messages")) {
        let lines = (1..).zip(text.lines());
        return Ok(lines.filter(|(_, line)| !line.trim().is_empty()).collect());
    }
    let all = if begins.starts_with('{') {
        serde_json::from_str(text).map(|all: Messages<'_>| all.messages)
    } else {
        serde_json::from_str(text)
    };
    let all = all.map_err(|e| {
        if !e.is_data() {
            return not_json(e.line(), &e);
        }
        HistoryError {
            line: Some(1),
            message: 0,
            why: "this is no list of messages".to_owned(),
            fix: LIST.to_owned(),
        }
    })?;
    let (mut line, mut at) = (1, 0);
    let placed = all.into_iter().map(|element: &RawValue| {
        let element = element.get();
        let begins = element.as_ptr().addr() - text.as_ptr().addr();
        line += text[at..begins].matches('\n').count();
        at = begins;
        (line, element)
    });
    Ok(placed.collect())
}

/// A history that is being read.
#[derive(Default)]
struct Reading {
    said: Vec<Said>,
    left_out: usize,
    /// Calls of the newest answer without a result: their places, by id.
    open: BTreeMap<String, usize>,
    /// The message with these calls.
    opened: (Option<usize>, usize),
}

impl Reading {
    fn add(&mut self, at: (Option<usize>, usize), message: &Json) -> Result<(), Wrong> {
        let Some(message) = message.as_object() else {
            return wrong("this is no chat message", FORM);
        };
        let Some(role) = message.get("role").and_then(Json::as_str) else {
            return wrong("it has no `role`", FORM);
        };
        if role != "tool" && role != "system" && role != "developer" && !self.open.is_empty() {
            return Err(self.lacks());
        }
        match role {
            "system" | "developer" => self.left_out += 1,
            "user" => {
                let Some(text) = text_of(message)? else {
                    return wrong("it has no `content`", FORM);
                };
                self.said.push(Said::User(text.into()));
            }
            "assistant" => {
                self.opened = at;
                self.answer(message)?;
            }
            "tool" => self.result(message)?,
            other => {
                return wrong(
                    format!("`{other}` is no role of a history"),
                    "the roles are `user`, `assistant` and `tool`; `system` is left out",
                );
            }
        }
        Ok(())
    }

    fn answer(&mut self, message: &Map<String, Json>) -> Result<(), Wrong> {
        let text = text_of(message)?.filter(|text| !text.is_empty());
        let mut calls = Vec::new();
        for call in list(message, "tool_calls")? {
            let function = &call["function"];
            let (Some(label), Some(name)) = (call["id"].as_str(), function["name"].as_str()) else {
                return wrong(
                    "a call has no `id` or no `function.name`",
                    r#"a call has the form {"id": "..", "type": "function", "function": {"name": "..", "arguments": "{}"}}"#,
                );
            };
            if let Some(long) = [label, name].into_iter().find(|text| text.len() > NAME) {
                let short = crate::stored::bounds::cut(long, 40);
                return wrong(
                    format!("`{short}` has more than {NAME} bytes"),
                    "give the call a shorter name",
                );
            }
            let args = match &function["arguments"] {
                Json::String(text) if text.trim().is_empty() => "{}".to_owned(),
                Json::String(text) => text.clone(),
                Json::Null => "{}".to_owned(),
                json => json.to_string(),
            };
            if read::<Map<String, Json>>(&args).is_err() {
                return wrong(
                    format!("the `arguments` of `{name}` are no JSON object"),
                    r#"write an object, such as "{}""#,
                );
            }
            if self.open.insert(label.to_owned(), calls.len()).is_some() {
                return wrong(
                    format!("two of its calls have the id `{label}`"),
                    "give each call an id of its own",
                );
            }
            calls.push(SaidCall {
                label: label.to_owned(),
                name: name.to_owned(),
                args: args.into(),
                result: "".into(),
            });
        }
        if text.is_none() && calls.is_empty() {
            return wrong(
                "it has neither `content` nor `tool_calls`",
                "leave the message out",
            );
        }
        let text = text.map(Arc::from);
        self.said.push(Said::Assistant { text, calls });
        Ok(())
    }

    fn result(&mut self, message: &Map<String, Json>) -> Result<(), Wrong> {
        let id = message.get("tool_call_id").and_then(Json::as_str);
        let id = id.unwrap_or_default();
        let Some(place) = self.open.remove(id) else {
            return wrong(
                format!("no open call of the answer before it has the id `{id}`"),
                "a `tool` message follows the `assistant` message with its call, and `tool_call_id` names that call",
            );
        };
        let text = text_of(message)?.unwrap_or_default();
        if let Some(Said::Assistant { calls, .. }) = self.said.last_mut() {
            calls[place].result = text.into();
        }
        Ok(())
    }

    fn lacks(&self) -> Wrong {
        let open: Vec<&str> = self.open.keys().map(String::as_str).collect();
        (
            format!(
                "the calls of message {} have no result: `{}`",
                self.opened.1,
                open.join("`, `")
            ),
            r#"add {"role": "tool", "tool_call_id": "..", "content": ".."} behind that message, or leave its calls out"#
                .to_owned(),
        )
    }

    fn complete(&self) -> Result<(), ((Option<usize>, usize), Wrong)> {
        if self.open.is_empty() {
            return Ok(());
        }
        Err((self.opened, self.lacks()))
    }
}

/// Returns the text of a message: its `content`, or the texts of its parts.
fn text_of(message: &Map<String, Json>) -> Result<Option<String>, Wrong> {
    match message.get("content") {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(Json::Array(parts)) => {
            let mut texts = Vec::new();
            for part in parts {
                let Some(text) = part.get("text").and_then(Json::as_str) else {
                    let kind = part.get("type").and_then(Json::as_str).unwrap_or("?");
                    return wrong(
                        format!("its `content` has a part of type `{kind}`, which is no text"),
                        "say in words what the part shows",
                    );
                };
                texts.push(text);
            }
            Ok(Some(texts.join("\n")))
        }
        Some(_) => wrong("its `content` is no text", FORM),
    }
}

fn list<'a>(message: &'a Map<String, Json>, key: &str) -> Result<&'a [Json], Wrong> {
    match message.get(key) {
        None | Some(Json::Null) => Ok(&[]),
        Some(Json::Array(list)) => Ok(list),
        Some(_) => wrong(format!("its `{key}` is no list"), "write a list"),
    }
}
