//! Builds an answer from the events of Anthropic Messages: a state machine without I/O.

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
pub(super) const KEY: &str = "blocks";

/// A block that is put together from pieces.
#[derive(Debug)]
enum Open {
    Text(String),
    /// Thinking and other blocks that are sent back unchanged.
    Kept(Json),
    Call {
        /// Number of calls before it in the answer.
        at: u32,
        id: String,
        name: String,
        /// Arguments that came with the beginning of the block. They count if no pieces follow.
        input: Json,
        /// Arguments that came in pieces.
        args: String,
    },
}

/// Reads a stream event by event.
#[derive(Debug, Default)]
pub struct Decoder {
    blocks: BTreeMap<u64, Open>,
    calls: u32,
    stop: Option<String>,
    done: bool,
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
        self.take(&event, sink)
    }

    fn whole(&mut self, body: &str, sink: &dyn Sink) -> Result<(), Failure> {
        let message = object(body, "the answer")?;
        if let Some(failure) = of_event(&message) {
            return Err(failure);
        }
        let Some(content) = message.get("content").and_then(Json::as_array) else {
            return Err(Failure::new(
                FailureCode::BadResponse,
                "the answer has no `content`",
            ));
        };
        for (index, block) in (0..).zip(content) {
            self.begin(index, block, sink)?;
        }
        self.usage(&message["usage"]);
        self.served(&message["model"]);
        self.stopped(&message["stop_reason"]);
        self.done = true;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn has_ended(&self) -> bool {
        self.done || self.stop.is_some()
    }

    fn finish(self) -> Result<Answer, Failure> {
        if !self.has_ended() {
            let message = format!(
                "the stream ended in the middle, after {} blocks",
                self.blocks.len()
            );
            return Err(Failure::new(FailureCode::Truncated, message));
        }
        let (mut text, mut asks, mut pieces) = (String::new(), Vec::new(), Vec::new());
        for block in self.blocks.into_values() {
            match block {
                Open::Text(piece) => {
                    pieces.push(Piece::Text(piece.len(), Map::new()));
                    text.push_str(&piece);
                }
                Open::Kept(block) => pieces.push(Piece::Block(block)),
                Open::Call {
                    id,
                    name,
                    input,
                    args,
                    ..
                } => {
                    pieces.push(Piece::Call(Map::new()));
                    let args = if args.trim().is_empty() {
                        input.to_string()
                    } else {
                        args
                    };
                    let label = (!id.is_empty()).then_some(id);
                    asks.push(Ask {
                        name,
                        label,
                        args,
                        misfit: None,
                    });
                }
            }
        }
        match self.stop.as_deref() {
            Some("refusal") => {
                let message = "the provider's filter stopped the answer";
                return Err(Failure::new(FailureCode::ContentFilter, message));
            }
            Some("pause_turn") => {
                let message = "the provider paused its own tools in the middle of the answer";
                return Err(Failure::new(FailureCode::NotSupported, message));
            }
            Some("tool_use") if asks.is_empty() => {
                let message = "the answer ends with calls, but has none";
                return Err(Failure::new(FailureCode::BadResponse, message));
            }
            _ => {}
        }
        Ok(Answer {
            opaque: Piece::write(&pieces, KEY),
            text: (!text.is_empty()).then_some(text),
            asks,
            misfit: None,
            cut: matches!(
                self.stop.as_deref(),
                Some("max_tokens" | "model_context_window_exceeded")
            ),
            usage: Usage {
                finish: self.stop.map(Name::from),
                ..self.usage
            },
        })
    }
}

impl Decoder {
    /// Takes the next event.
    pub(crate) fn take(&mut self, event: &Json, sink: &dyn Sink) -> Result<(), Failure> {
        if let Some(failure) = of_event(event) {
            return Err(failure);
        }
        let index = event.get("index").and_then(Json::as_u64).unwrap_or(0);
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                self.usage(&event["message"]["usage"]);
                self.served(&event["message"]["model"]);
            }
            "content_block_start" => self.begin(index, &event["content_block"], sink)?,
            "content_block_delta" => self.delta(index, &event["delta"], sink)?,
            "message_delta" => {
                self.usage(&event["usage"]);
                self.stopped(&event["delta"]["stop_reason"]);
            }
            "message_stop" => self.done = true,
            // `ping`, `content_block_stop`, and future events: the protocol says to ignore unknown ones.
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, index: u64, block: &Json, sink: &dyn Sink) -> Result<(), Failure> {
        self.size.add(block.to_string().len())?;
        if self.blocks.len() == BLOCKS_MAX {
            return Err(too_many_blocks());
        }
        let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        let open = match block["type"].as_str().unwrap_or_default() {
            "text" => {
                let piece = text("text");
                if !piece.is_empty() {
                    sink.delta(Delta::Text(piece.clone()));
                }
                Open::Text(piece)
            }
            "tool_use" => {
                let (at, name) = (self.calls, text("name"));
                self.calls += 1;
                sink.delta(Delta::Call(at, Some(name.clone()), String::new()));
                let input = match &block["input"] {
                    Json::Null => json!({}),
                    input => input.clone(),
                };
                Open::Call {
                    at,
                    id: text("id"),
                    name,
                    input,
                    args: String::new(),
                }
            }
            kind => {
                if kind == "thinking" && !text("thinking").is_empty() {
                    sink.delta(Delta::Reasoning(text("thinking")));
                }
                Open::Kept(block.clone())
            }
        };
        self.blocks.insert(index, open);
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: &Json, sink: &dyn Sink) -> Result<(), Failure> {
        let text = |key: &str| delta[key].as_str().unwrap_or_default();
        let kind = text("type");
        let field = match kind {
            "text_delta" => "text",
            "input_json_delta" => "partial_json",
            "thinking_delta" => "thinking",
            "signature_delta" => "signature",
            _ => return Ok(()),
        };
        let piece = text(field);
        self.size.add(piece.len())?;
        match (self.blocks.get_mut(&index), field) {
            (Some(Open::Text(so_far)), "text") => {
                so_far.push_str(piece);
                sink.delta(Delta::Text(piece.to_owned()));
            }
            (Some(Open::Call { at, args, .. }), "partial_json") => {
                args.push_str(piece);
                sink.delta(Delta::Call(*at, None, piece.to_owned()));
            }
            (Some(Open::Kept(block)), "thinking" | "signature") => {
                match &mut block[field] {
                    Json::String(so_far) => so_far.push_str(piece),
                    none => *none = json!(piece),
                }
                if field == "thinking" {
                    sink.delta(Delta::Reasoning(piece.to_owned()));
                }
            }
            _ => {
                let message =
                    format!("`{kind}` came for block {index}, which is none of that kind");
                return Err(Failure::new(FailureCode::BadResponse, message));
            }
        }
        Ok(())
    }

    fn stopped(&mut self, reason: &Json) {
        if let Some(reason) = reason.as_str() {
            self.stop = Some(reason.to_owned());
        }
    }

    fn served(&mut self, model: &Json) {
        if let Some(model) = model.as_str() {
            self.usage.served = Some(model.into());
        }
    }

    /// Counts usage. The protocol counts cached tokens separately; here they are part of the input.
    fn usage(&mut self, usage: &Json) {
        let number = |key: &str| usage.get(key).and_then(Json::as_u64);
        if let Some(plain) = number("input_tokens") {
            let read = number("cache_read_input_tokens").unwrap_or(0);
            let written = number("cache_creation_input_tokens").unwrap_or(0);
            let all = plain.saturating_add(read).saturating_add(written);
            // The end of the stream may repeat the counts without the cached ones.
            self.usage.input = self.usage.input.max(all);
            self.usage.cached = self.usage.cached.max(read);
            self.usage.cache_write = self.usage.cache_write.max(written);
        }
        if let Some(output) = number("output_tokens") {
            self.usage.output = output;
        }
    }
}
