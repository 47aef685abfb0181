//! Builds an answer from the events of OpenAI Responses: a state machine without I/O.
//!
//! An answer is a list of items: reasoning, messages and calls. Items come in pieces, and whole at their end; what a server sends only
//! at the end is taken from there.

use crate::wire::Decode;
use crate::wire::answer::{BLOCKS_MAX, Piece, Size, object, too_many_blocks};
use crate::wire::fault::of_event;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::commit::Usage;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Ask, Failure};
use steersman_runtime::model::{Delta, Sink};

/// Key of the pieces in an answer's `opaque`.
pub(super) const KEY: &str = "items";
/// Reason of an answer that reached its longest length.
const LENGTH: &str = "max_output_tokens";

/// An item that is put together from pieces.
#[derive(Debug)]
enum Open {
    Message {
        text: String,
        refusal: String,
        /// The part of the answer that the message is: `commentary`, `final_answer`. It is sent back.
        phase: Option<Json>,
    },
    /// Reasoning, in the form in which it is sent back.
    Reasoning(Json),
    Call {
        /// Number of calls before it in the answer.
        at: u32,
        id: String,
        name: String,
        args: String,
    },
    /// An item of a tool of the provider, which is not sent back.
    Other,
}

/// Reads a stream event by event.
#[derive(Debug, Default)]
pub struct Decoder {
    items: BTreeMap<u64, Open>,
    calls: u32,
    /// The status at the end, or the reason why the answer is not complete.
    finish: Option<String>,
    usage: Usage,
    size: Size,
}

impl Decode for Decoder {
    fn event(&mut self, data: &str, sink: &dyn Sink) -> Result<(), Failure> {
        let data = data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let event = object(data, "an event of the stream")?;
        if let Some(failure) = of_event(&event) {
            return Err(failure);
        }
        let at = event
            .get("output_index")
            .and_then(Json::as_u64)
            .unwrap_or(0);
        let piece = event["delta"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap_or_default() {
            "response.created" | "response.in_progress" => self.served(&event["response"]),
            "response.output_item.added" => self.begin(at, &event["item"], sink)?,
            "response.output_item.done" => self.end(at, &event["item"], sink)?,
            "response.output_text.delta" => self.text(at, piece, sink)?,
            "response.refusal.delta" => self.refusal(at, piece)?,
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.size.add(piece.len())?;
                sink.delta(Delta::Reasoning(piece.to_owned()));
            }
            "response.function_call_arguments.delta" => self.args(at, piece, sink)?,
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => self.response(&event["response"], sink)?,
            // Starts and ends of parts, events of the provider's own tools, and future events.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &str, sink: &dyn Sink) -> Result<(), Failure> {
        let response = object(body, "the answer")?;
        if let Some(failure) = of_event(&response) {
            return Err(failure);
        }
        if response.get("output").and_then(Json::as_array).is_none() {
            let message = "the answer has no `output`";
            return Err(Failure::new(FailureCode::BadResponse, message));
        }
        self.response(&response, sink)
    }

    fn is_done(&self) -> bool {
        self.finish.is_some()
    }

    fn has_ended(&self) -> bool {
        self.is_done()
    }

    fn finish(self) -> Result<Answer, Failure> {
        let Some(finish) = self.finish else {
            let message = format!(
                "the stream ended in the middle, after {} items",
                self.items.len()
            );
            return Err(Failure::new(FailureCode::Truncated, message));
        };
        let (mut text, mut refused) = (String::new(), String::new());
        let (mut asks, mut pieces) = (Vec::new(), Vec::new());
        for item in self.items.into_values() {
            match item {
                Open::Message {
                    text: piece,
                    refusal,
                    phase,
                } => {
                    let with = phase.map(|phase| ("phase".to_owned(), phase));
                    pieces.push(Piece::Text(piece.len(), with.into_iter().collect()));
                    text.push_str(&piece);
                    refused.push_str(&refusal);
                }
                Open::Reasoning(item) if item.is_object() => pieces.push(Piece::Block(item)),
                Open::Call { id, name, args, .. } => {
                    pieces.push(Piece::Call(Map::new()));
                    asks.push(Ask {
                        name,
                        label: (!id.is_empty()).then_some(id),
                        args: if args.trim().is_empty() {
                            "{}".to_owned()
                        } else {
                            args
                        },
                        misfit: None,
                    });
                }
                Open::Reasoning(_) | Open::Other => {}
            }
        }
        if text.is_empty() {
            text = refused;
            pieces.retain(|piece| !matches!(piece, Piece::Text(..)));
            if !text.is_empty() {
                pieces.insert(0, Piece::Text(text.len(), Map::new()));
            }
        }
        Ok(Answer {
            opaque: Piece::write(&pieces, KEY),
            text: (!text.is_empty()).then_some(text),
            asks,
            misfit: None,
            cut: finish == LENGTH,
            usage: Usage {
                finish: Some(Name::from(finish)),
                ..self.usage
            },
        })
    }
}

impl Decoder {
    /// Handles the beginning of an item.
    fn begin(&mut self, at: u64, item: &Json, sink: &dyn Sink) -> Result<(), Failure> {
        let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
        if self.items.len() == BLOCKS_MAX {
            return Err(too_many_blocks());
        }
        let open = match item["type"].as_str().unwrap_or_default() {
            "message" => message(item),
            "reasoning" => Open::Reasoning(Json::Null),
            "function_call" => {
                let (number, name) = (self.calls, text("name"));
                self.calls += 1;
                self.size.add(name.len())?;
                sink.delta(Delta::Call(number, Some(name.clone()), String::new()));
                Open::Call {
                    at: number,
                    id: text("call_id"),
                    name,
                    args: String::new(),
                }
            }
            _ => Open::Other,
        };
        self.items.insert(at, open);
        Ok(())
    }

    /// Handles a whole item. Only the parts count that no piece contained.
    fn end(&mut self, at: u64, item: &Json, sink: &dyn Sink) -> Result<(), Failure> {
        if !self.items.contains_key(&at) {
            self.begin(at, item, sink)?;
        }
        let is = |kind: &str| item["type"] == kind;
        match self.items.get_mut(&at) {
            Some(Open::Message {
                text,
                refusal,
                phase,
            }) if is("message") => {
                if let Open::Message { phase: last, .. } = message(item) {
                    *phase = last.or(phase.take());
                }
                let (no_text, no_refusal) = (text.is_empty(), refusal.is_empty());
                for part in item["content"].as_array().into_iter().flatten() {
                    match part["type"].as_str().unwrap_or_default() {
                        "output_text" | "text" if no_text => {
                            let piece = part["text"].as_str().unwrap_or_default();
                            self.text(at, piece, sink)?;
                        }
                        "refusal" if no_refusal => {
                            let piece = part["refusal"].as_str().unwrap_or_default();
                            self.refusal(at, piece)?;
                        }
                        _ => {}
                    }
                }
            }
            Some(Open::Call { id, name, args, .. }) if is("function_call") => {
                let text = |key: &str| item[key].as_str().unwrap_or_default();
                if id.is_empty() {
                    text("call_id").clone_into(id);
                }
                if name.is_empty() {
                    text("name").clone_into(name);
                }
                if args.is_empty() && !text("arguments").is_empty() {
                    self.args(at, text("arguments"), sink)?;
                }
            }
            Some(Open::Reasoning(kept)) if is("reasoning") => {
                let kept_item = reasoning(item);
                self.size
                    .add(kept_item.as_ref().map_or(0, |item| item.to_string().len()))?;
                *kept = kept_item.unwrap_or_default();
            }
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, at: u64, piece: &str, sink: &dyn Sink) -> Result<(), Failure> {
        self.size.add(piece.len())?;
        match self.message(at)? {
            Open::Message { text, .. } => text.push_str(piece),
            _ => return Err(other_kind("a text", at)),
        }
        if !piece.is_empty() {
            sink.delta(Delta::Text(piece.to_owned()));
        }
        Ok(())
    }

    fn refusal(&mut self, at: u64, piece: &str) -> Result<(), Failure> {
        self.size.add(piece.len())?;
        match self.message(at)? {
            Open::Message { refusal, .. } => refusal.push_str(piece),
            _ => return Err(other_kind("a refusal", at)),
        }
        Ok(())
    }

    /// Returns the item at this place; some servers send the pieces of a message without its beginning.
    fn message(&mut self, at: u64) -> Result<&mut Open, Failure> {
        if self.items.len() == BLOCKS_MAX && !self.items.contains_key(&at) {
            return Err(too_many_blocks());
        }
        let open = self.items.entry(at);
        Ok(open.or_insert_with(|| message(&Json::Null)))
    }

    fn args(&mut self, at: u64, piece: &str, sink: &dyn Sink) -> Result<(), Failure> {
        self.size.add(piece.len())?;
        let Some(Open::Call { at, args, .. }) = self.items.get_mut(&at) else {
            return Err(other_kind("arguments", at));
        };
        args.push_str(piece);
        sink.delta(Delta::Call(*at, None, piece.to_owned()));
        Ok(())
    }

    /// Handles the whole response, which is the end.
    fn response(&mut self, response: &Json, sink: &dyn Sink) -> Result<(), Failure> {
        self.served(response);
        self.usage(&response["usage"]);
        if let Some(failure) = of_event(response) {
            return Err(failure);
        }
        let status = response["status"].as_str().unwrap_or("completed");
        let why = response["incomplete_details"]["reason"].as_str();
        match (status, why) {
            ("failed", _) => {
                let message = "the provider ended the answer with an error";
                return Err(Failure::new(FailureCode::ProviderError, message));
            }
            ("cancelled", _) => {
                let message = "the provider cancelled the answer";
                return Err(Failure::new(FailureCode::ProviderError, message));
            }
            ("incomplete", Some("content_filter")) => {
                let message = "the provider's filter stopped the answer";
                return Err(Failure::new(FailureCode::ContentFilter, message));
            }
            _ => {}
        }
        let items = response["output"].as_array().into_iter().flatten();
        for (at, item) in (0..).zip(items) {
            self.end(at, item, sink)?;
        }
        self.finish = Some(match status {
            "incomplete" => why.unwrap_or(LENGTH).to_owned(),
            status => status.to_owned(),
        });
        Ok(())
    }

    fn served(&mut self, response: &Json) {
        if let Some(model) = response["model"].as_str() {
            self.usage.served = Some(model.into());
        }
    }

    fn usage(&mut self, usage: &Json) {
        let number = |path: &str| usage.pointer(path).and_then(Json::as_u64).unwrap_or(0);
        self.usage.input = number("/input_tokens");
        self.usage.output = number("/output_tokens");
        self.usage.cached = number("/input_tokens_details/cached_tokens");
        self.usage.cache_write = number("/input_tokens_details/cache_write_tokens");
        self.usage.reasoning = number("/output_tokens_details/reasoning_tokens");
    }
}

/// Returns a message without its texts.
fn message(item: &Json) -> Open {
    Open::Message {
        text: String::new(),
        refusal: String::new(),
        phase: item.get("phase").filter(|phase| phase.is_string()).cloned(),
    }
}

/// Returns reasoning in the form in which it is sent back; `None` if it has no such form.
fn reasoning(item: &Json) -> Option<Json> {
    let encrypted = item.get("encrypted_content").filter(|it| it.is_string())?;
    let mut kept = json!({ "type": "reasoning" });
    for (key, value) in [
        ("id", item.get("id")),
        ("summary", Some(item.get("summary").unwrap_or(&json!([])))),
        ("encrypted_content", Some(encrypted)),
    ] {
        if let Some(value) = value {
            kept[key] = value.clone();
        }
    }
    Some(kept)
}

fn other_kind(what: &str, at: u64) -> Failure {
    let message = format!("{what} came for item {at}, which is none of that kind");
    Failure::new(FailureCode::BadResponse, message)
}
