//! OpenAI chat completions: chunks of a stream, and whole completions.

use super::turn::{End, Open, Told, Turn, Usage, WAITS};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::machine::stored::ids::Name;
use steersman::{Event, PendingKind};

/// The functions of a request through which questions come as calls.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Functions {
    pub(crate) approve: bool,
    pub(crate) answer: bool,
}

/// The name of the function that decides an approval.
pub(crate) const APPROVE: &str = "approve";
/// The name of the function that answers a question.
pub(crate) const ANSWER: &str = "answer";

/// The fixed parts of a completion.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    /// The id of the session.
    pub(crate) session: Arc<str>,
    /// The id of the completion.
    pub(crate) id: String,
    /// The model as the request names it.
    pub(crate) model: String,
    /// The functions that the client offers.
    pub(crate) functions: Functions,
    /// Roles in which the client may decide.
    pub(crate) roles: Vec<Name>,
    /// The address of the session in the console, if there is one.
    pub(crate) page: Option<String>,
    /// True if the stream ends with the usage.
    pub(crate) usage: bool,
}

/// A turn as a chat completion.
#[derive(Clone, Debug)]
pub(crate) struct Chat {
    form: Form,
    turn: Turn,
    /// The text that was told.
    text: String,
    /// True if a blank line precedes what is told next.
    gap: bool,
    calls: Vec<Json>,
}

impl Chat {
    pub(crate) fn new(form: Form, turn: Turn) -> Self {
        Self {
            form,
            turn,
            text: String::new(),
            gap: false,
            calls: Vec::new(),
        }
    }

    /// Returns the turn as far as it was told.
    pub(crate) fn turn(&self) -> &Turn {
        &self.turn
    }

    /// Returns the text as the client has it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the ids of the calls that the client has.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().filter_map(|call| call["id"].as_str())
    }

    /// Returns the chunks of an event.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Json> {
        let was_over = self.turn.end.is_some();
        let told = self.turn.event(event);
        let mut chunks = Vec::new();
        for told in told {
            match told {
                Told::Begins => {
                    let delta = json!({ "role": "assistant", "content": "" });
                    chunks.push(self.chunk(&delta, None));
                }
                Told::Opens | Told::Void => self.gap = !self.text.is_empty(),
                Told::More(text) => chunks.extend(self.say(&text)),
                Told::Closes {
                    rest: Some(rest), ..
                } => chunks.extend(self.say(&rest)),
                Told::Closes { rest: None, text } => {
                    self.gap = !self.text.is_empty();
                    chunks.extend(self.say(&text));
                }
                Told::Calls { .. } | Told::Ends { .. } => {}
            }
        }
        if !was_over && let Some(end) = self.turn.end.clone() {
            self.ends(&end, &mut chunks);
        }
        chunks
    }

    /// Returns the chunks for a message that waits until something else is over.
    pub(crate) fn waits(&mut self, why: &str, open: Vec<Open>) -> Vec<Json> {
        let delta = json!({ "role": "assistant", "content": "" });
        let mut chunks = vec![self.chunk(&delta, None)];
        chunks.extend(self.say(&format!("Your message waits: {why}.")));
        let end = End::Asks(open);
        self.turn.end = Some(end.clone());
        self.ends(&end, &mut chunks);
        chunks
    }

    /// Returns the whole completion; the code and the message if the turn failed.
    pub(crate) fn completion(&self) -> Result<Json, (Arc<str>, String)> {
        if let Some(End::Failed { code, message }) = &self.turn.end {
            return Err((code.clone(), message.clone()));
        }
        let content = Some(&*self.text).filter(|text| !text.is_empty() || self.calls.is_empty());
        let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
        if !self.calls.is_empty() {
            message["tool_calls"] = self.calls.clone().into();
        }
        Ok(json!({
            "id": self.form.id,
            "object": "chat.completion",
            "created": self.created(),
            "model": self.form.model,
            "choices": [{
                "index": 0,
                "message": message,
                "logprobs": null,
                "finish_reason": self.reason(),
            }],
            "usage": usage(&self.turn.usage),
        }))
    }

    fn ends(&mut self, end: &End, chunks: &mut Vec<Json>) {
        match end {
            End::Answered | End::Cancelled => {}
            End::Asks(open) => self.asks(open, chunks),
            End::Waits(open) if open.is_empty() => {
                self.paragraph(WAITS, chunks);
            }
            End::Waits(open) => {
                for open in open {
                    self.paragraph(&format!("The session waits for: {}", open.text), chunks);
                }
            }
            End::Failed { code, message } => {
                let error = json!({ "message": message, "type": "server_error", "param": null, "code": &**code });
                chunks.push(json!({ "error": error }));
                return;
            }
        }
        chunks.push(self.chunk(&json!({}), Some(self.reason())));
        if self.form.usage {
            let mut last = self.chunk(&json!({}), None);
            last["choices"] = json!([]);
            last["usage"] = usage(&self.turn.usage);
            chunks.push(last);
        }
    }

    /// Tells what is asked: as calls of the client's functions where it may decide, otherwise as text with its address.
    fn asks(&mut self, open: &[Open], chunks: &mut Vec<Json>) {
        let may = |open: &Open| open.role(&self.form.roles).is_some();
        let answerable = open
            .iter()
            .filter(|open| open.kind == PendingKind::Question && may(open));
        let is_only = answerable.count() == 1;
        let mut calls = Vec::new();
        for open in open {
            let functions = self.form.functions;
            let function = match open.kind {
                PendingKind::Question if functions.answer => Some(ANSWER),
                _ if open.is_decided() && functions.approve => Some(APPROVE),
                _ => None,
            };
            let function = function.filter(|_| open.role(&self.form.roles).is_some());
            if let Some(name) = function {
                calls.push(call(open, name));
                continue;
            }
            let by_text = open.kind == PendingKind::Question
                && is_only
                && open.role(&self.form.roles).is_some();
            self.paragraph(
                &question(open, &self.form.session, self.form.page.as_deref(), by_text),
                chunks,
            );
        }
        for (index, call) in calls.iter().enumerate() {
            let mut call = call.clone();
            call["index"] = index.into();
            chunks.push(self.chunk(&json!({ "tool_calls": [call] }), None));
        }
        self.calls = calls;
    }

    fn paragraph(&mut self, text: &str, chunks: &mut Vec<Json>) {
        self.gap = !self.text.is_empty();
        chunks.extend(self.say(text));
    }

    /// Returns the chunk of a piece of text.
    fn say(&mut self, text: &str) -> Option<Json> {
        if text.is_empty() {
            return None;
        }
        let gap = if std::mem::take(&mut self.gap) {
            "\n\n"
        } else {
            ""
        };
        let text = format!("{gap}{text}");
        self.text.push_str(&text);
        Some(self.chunk(&json!({ "content": text }), None))
    }

    fn chunk(&self, delta: &Json, reason: Option<&str>) -> Json {
        json!({
            "id": self.form.id,
            "object": "chat.completion.chunk",
            "created": self.created(),
            "model": self.form.model,
            "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason }],
        })
    }

    fn reason(&self) -> &'static str {
        if self.calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        }
    }

    /// Seconds since 1970 at which the message was taken.
    fn created(&self) -> i64 {
        self.turn.began.map_or(0, |at| at.0.div_euclid(1_000))
    }
}

/// Returns a question as the call of a function of the client. The id of the call is the address of the answer.
fn call(open: &Open, function: &str) -> Json {
    let arguments = json!({
        "question": open.id.to_string(),
        "kind": open.kind.word(),
        "text": open.text,
        "tool": open.tool,
        "arguments": open.arguments,
        "options": open.options,
    });
    json!({
        "id": open.id.to_string(),
        "type": "function",
        "function": { "name": function, "arguments": arguments.to_string() },
    })
}

/// Returns a question as text. `by_text` says that the next message of the client answers it.
pub(super) fn question(open: &Open, session: &str, page: Option<&str>, by_text: bool) -> String {
    let mut text = open.text.clone();
    if open.kind != PendingKind::Question
        && let Some(tool) = &open.tool
    {
        text = format!("{text}\n{tool}: {}", open.arguments);
    }
    if !open.options.is_empty() {
        text = format!("{text}\n({})", open.options.join(", "));
    }
    match open.address(session, page) {
        Some(address) if !by_text => {
            let how = if page.is_some() { "at" } else { "with" };
            format!("{text}\nIt is decided {how}: {address}")
        }
        _ => text,
    }
}

fn usage(usage: &Usage) -> Json {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input.saturating_add(usage.output),
        "prompt_tokens_details": { "cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
    })
}
