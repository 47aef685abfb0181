//! OpenAI responses: the events of a stream, and whole responses.

use super::chat::{ANSWER, question};
use super::turn::{End, Open, Told, Turn, Usage};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman::machine::stored::ids::{Id, Line, Name};
use steersman::{Event, PendingKind};

/// Numbers of a stream between two events that are on disk. Messages of streamed pieces have these, so that the number of a message on
/// disk is the same for each reader.
const BETWEEN: u64 = 1_000_000;

/// The beginning of the ids of approvals. The address of the answer follows.
pub(crate) const APPROVAL: &str = "mcpr_";

/// The fixed parts of a response.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    /// The id of the session.
    pub(crate) session: Arc<str>,
    /// The line of the turn.
    pub(crate) line: Line,
    /// The model as lists name it.
    pub(crate) model: String,
    /// The name of the definition.
    pub(crate) definition: Name,
    /// Roles in which the client may decide.
    pub(crate) roles: Vec<Name>,
    /// The address of the session in the console, if there is one.
    pub(crate) page: Option<String>,
}

/// A text that streams: its item, and what was told of it.
#[derive(Clone, Debug)]
struct Writing {
    index: u64,
    id: String,
    told: String,
    /// True if a streamed piece opened it.
    early: bool,
}

/// A turn as a response.
#[derive(Clone, Debug)]
pub(crate) struct Responses {
    form: Form,
    turn: Turn,
    /// The number of events on disk that were told.
    durable: u64,
    /// The number of messages since the last of them.
    between: u64,
    /// True while a streamed piece is told.
    is_piece: bool,
    /// The index of the next item.
    next: u64,
    /// The number of texts that are complete.
    texts: usize,
    writing: Option<Writing>,
    /// The items that are complete, or calls that go on.
    output: Vec<Json>,
    /// Calls that go on: the index of the item, and its place in the output.
    calls: BTreeMap<Id, (u64, usize)>,
}

impl Responses {
    pub(crate) fn new(form: Form, turn: Turn) -> Self {
        Self {
            form,
            turn,
            durable: 0,
            between: 0,
            is_piece: false,
            next: 0,
            texts: 0,
            writing: None,
            output: Vec::new(),
            calls: BTreeMap::new(),
        }
    }

    /// Returns the turn as far as it was told.
    pub(crate) fn turn(&self) -> &Turn {
        &self.turn
    }

    /// Returns the text of all messages, as a client joins them.
    pub(crate) fn text(&self) -> String {
        let texts = self
            .output
            .iter()
            .filter_map(|item| item["content"][0]["text"].as_str());
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// Returns the ids of the calls of the client's functions.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &str> {
        self.output
            .iter()
            .filter_map(|item| item["call_id"].as_str())
    }

    /// Returns the messages of an event.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Json> {
        let mut sent = Vec::new();
        if self.turn.end.is_some() {
            return sent;
        }
        let told = self.turn.event(event);
        let counts = match event.line {
            Some(_) => self.turn.began.is_some(),
            None => self.turn.end.is_some(),
        };
        if counts {
            self.durable += 1;
            self.between = 0;
        }
        self.is_piece = !counts;
        for told in told {
            self.told(told, &mut sent);
        }
        if let Some(end) = self.turn.end.clone() {
            self.ends(&end, &mut sent);
        }
        sent
    }

    fn told(&mut self, told: Told, sent: &mut Vec<Json>) {
        match told {
            Told::Begins => {
                for kind in ["response.created", "response.in_progress"] {
                    let response = self.document();
                    self.send(sent, kind, json!({ "response": response }));
                }
            }
            Told::Opens => {
                if self.writing.is_none() {
                    self.opens(sent);
                }
            }
            Told::More(text) => self.writes(&text, sent),
            Told::Void => {
                // The item stays open: another attempt goes on with it, and its end has the text that counts.
                if self
                    .writing
                    .as_ref()
                    .is_some_and(|writing| !writing.told.is_empty())
                {
                    self.writes("\n\n", sent);
                }
            }
            Told::Closes { rest, text } => {
                // A text that was told early has no number here, so that later numbers are the same for each reader.
                if self.writing.as_ref().is_some_and(|writing| writing.early) {
                    self.between += 2;
                }
                let rest = rest.unwrap_or_else(|| format!("\n\n{text}"));
                if rest.is_empty() {
                    self.between += 1;
                }
                self.writes(&rest, sent);
                self.closes(&text, sent);
            }
            Told::Calls {
                call,
                name,
                arguments,
            } => self.called(call, &name, &arguments, sent),
            Told::Ends { call, ok, text } => self.ended(call, ok, &text, sent),
        }
    }

    fn opens(&mut self, sent: &mut Vec<Json>) {
        let (index, id) = (self.take(), self.text_id());
        let item = json!({ "type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": [] });
        self.send(
            sent,
            "response.output_item.added",
            json!({ "output_index": index, "item": item }),
        );
        let part = part("");
        let place =
            json!({ "item_id": id, "output_index": index, "content_index": 0, "part": part });
        self.send(sent, "response.content_part.added", place);
        self.writing = Some(Writing {
            index,
            id,
            told: String::new(),
            early: self.is_piece,
        });
    }

    fn writes(&mut self, text: &str, sent: &mut Vec<Json>) {
        let Some(writing) = self.writing.as_mut().filter(|_| !text.is_empty()) else {
            return;
        };
        writing.told.push_str(text);
        let delta = json!({
            "item_id": writing.id, "output_index": writing.index, "content_index": 0, "delta": text, "logprobs": [],
        });
        self.send(sent, "response.output_text.delta", delta);
    }

    fn closes(&mut self, text: &str, sent: &mut Vec<Json>) {
        let Some(Writing { index, id, .. }) = self.writing.take() else {
            return;
        };
        let done = json!({
            "item_id": id, "output_index": index, "content_index": 0, "text": text, "logprobs": [],
        });
        self.send(sent, "response.output_text.done", done);
        let part = part(text);
        let place =
            json!({ "item_id": id, "output_index": index, "content_index": 0, "part": part });
        self.send(sent, "response.content_part.done", place);
        let item = json!({
            "type": "message", "id": id, "role": "assistant", "status": "completed", "content": [part],
        });
        self.texts += 1;
        self.output.push(item.clone());
        self.send(
            sent,
            "response.output_item.done",
            json!({ "output_index": index, "item": item }),
        );
    }

    fn called(&mut self, call: Id, name: &Name, arguments: &Json, sent: &mut Vec<Json>) {
        let index = self.take();
        let item = json!({
            "type": "mcp_call", "id": format!("mcp_{call}"), "server_label": self.form.definition, "name": name,
            "arguments": arguments.to_string(), "output": null, "error": null, "status": "in_progress",
        });
        self.calls.insert(call, (index, self.output.len()));
        self.output.push(item.clone());
        let place = json!({ "item_id": item["id"], "output_index": index });
        let mut done = place.clone();
        done["arguments"] = item["arguments"].clone();
        self.send(
            sent,
            "response.output_item.added",
            json!({ "output_index": index, "item": item }),
        );
        self.send(sent, "response.mcp_call.in_progress", place);
        self.send(sent, "response.mcp_call_arguments.done", done);
    }

    fn ended(&mut self, call: Id, ok: bool, text: &str, sent: &mut Vec<Json>) {
        let Some((index, at)) = self.calls.remove(&call) else {
            return;
        };
        let item = &mut self.output[at];
        let kind = if ok {
            item["output"] = text.into();
            item["status"] = "completed".into();
            "response.mcp_call.completed"
        } else {
            item["error"] = json!({ "type": "mcp_tool_execution_error", "content": [{ "type": "text", "text": text }] });
            item["status"] = "failed".into();
            "response.mcp_call.failed"
        };
        let item = item.clone();
        self.send(
            sent,
            kind,
            json!({ "item_id": item["id"], "output_index": index }),
        );
        self.send(
            sent,
            "response.output_item.done",
            json!({ "output_index": index, "item": item }),
        );
    }

    fn ends(&mut self, end: &End, sent: &mut Vec<Json>) {
        if let End::Asks(open) = end {
            for open in open {
                self.asks(open, sent);
            }
        }
        let kind = match end {
            End::Answered | End::Asks(_) => "response.completed",
            End::Waits(_) => "response.in_progress",
            End::Failed { .. } => "response.failed",
            End::Cancelled => "response.incomplete",
        };
        let response = self.document();
        self.send(sent, kind, json!({ "response": response }));
    }

    /// Tells a question: as an approval or a call of `answer` if the client may decide it, otherwise as text with its address.
    fn asks(&mut self, open: &Open, sent: &mut Vec<Json>) {
        let may = open.role(&self.form.roles).is_some();
        let item = if may && open.is_decided() {
            json!({
                "type": "mcp_approval_request", "id": format!("{APPROVAL}{}", open.id), "server_label": self.form.definition,
                "name": open.tool.as_deref().unwrap_or(open.kind.word()), "arguments": open.arguments.to_string(),
            })
        } else if may && open.kind == PendingKind::Question {
            let arguments = json!({ "question": open.text, "options": open.options });
            json!({
                "type": "function_call", "id": format!("fc_{}", open.id), "call_id": open.id.to_string(), "name": ANSWER,
                "arguments": arguments.to_string(), "status": "completed",
            })
        } else {
            let text = question(open, &self.form.session, self.form.page.as_deref(), false);
            self.opens(sent);
            self.writes(&text, sent);
            self.closes(&text, sent);
            return;
        };
        let index = self.take();
        self.output.push(item.clone());
        for kind in ["response.output_item.added", "response.output_item.done"] {
            self.send(sent, kind, json!({ "output_index": index, "item": item }));
        }
    }

    /// Returns the response as it stands.
    pub(crate) fn document(&self) -> Json {
        let status = match &self.turn.end {
            None | Some(End::Waits(_)) => "in_progress",
            Some(End::Answered | End::Asks(_)) => "completed",
            Some(End::Failed { .. }) => "failed",
            Some(End::Cancelled) => "cancelled",
        };
        let error = match &self.turn.end {
            Some(End::Failed { message, .. }) => {
                json!({ "code": "server_error", "message": message })
            }
            _ => Json::Null,
        };
        let Form { session, line, .. } = &self.form;
        json!({
            "id": format!("resp_{session}_{line}"),
            "object": "response",
            "created_at": self.turn.began.map_or(0, |at| at.0.div_euclid(1_000)),
            "status": status,
            "error": error,
            "incomplete_details": null,
            "instructions": null,
            "metadata": {},
            "model": self.form.model,
            "output": self.output,
            "parallel_tool_calls": true,
            "previous_response_id": null,
            "conversation": { "id": format!("conv_{session}") },
            "store": true,
            "temperature": null,
            "top_p": null,
            "text": { "format": { "type": "text" } },
            "tool_choice": "auto",
            "tools": [],
            "truncation": "disabled",
            "usage": usage(&self.turn.usage),
        })
    }

    /// Returns the index of a new item.
    fn take(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn text_id(&self) -> String {
        let Form { session, line, .. } = &self.form;
        format!("msg_{session}_{line}_{}", self.texts)
    }

    fn send(&mut self, sent: &mut Vec<Json>, kind: &str, mut message: Json) {
        message["type"] = kind.into();
        message["sequence_number"] = (self.durable * BETWEEN + self.between).into();
        self.between = (self.between + 1).min(BETWEEN - 1);
        sent.push(message);
    }
}

fn part(text: &str) -> Json {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn usage(usage: &Usage) -> Json {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": { "cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": usage.reasoning },
        "total_tokens": usage.input.saturating_add(usage.output),
    })
}
