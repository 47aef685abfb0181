//! Builds an answer from the events of Bedrock's `ConverseStream`, or from the answer of `Converse`: a state machine without I/O.
//!
//! Each event is told in the words of Anthropic Messages, whose decoder puts the answer together: Converse has the same blocks. So an
//! answer with reasoning can go back over either protocol.

use crate::messages::stream::Decoder as Messages;
use crate::wire::answer::object;
use crate::wire::fault::of_event;
use crate::wire::{Decode, Framing};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::model::Sink;

/// Reads a stream event by event.
#[derive(Debug, Default)]
pub struct Decoder {
    inner: Messages,
    /// Blocks whose beginning was told: Converse leaves it out for all blocks but calls.
    begun: BTreeSet<u64>,
}

impl Decode for Decoder {
    fn framing(&self) -> Framing {
        Framing::Frames
    }

    fn event(&mut self, data: &str, sink: &dyn Sink) -> Result<(), Failure> {
        let event = object(data, "an event of the stream")?;
        if let Some(failure) = of_event(&event) {
            return Err(failure);
        }
        let Some((name, event)) = event.as_object().and_then(|event| event.iter().next()) else {
            return Ok(());
        };
        let at = event["contentBlockIndex"].as_u64().unwrap_or(0);
        match name.as_str() {
            "contentBlockStart" => self.begin(at, call(&event["start"]["toolUse"]), sink),
            "contentBlockDelta" => self.delta(at, &event["delta"], sink),
            "messageStop" => {
                let reason = stop_reason(&event["stopReason"])?;
                let delta = json!({ "type": "message_delta", "delta": { "stop_reason": reason } });
                self.inner.take(&delta, sink)
            }
            "metadata" => {
                let usage = json!({ "type": "message_delta", "usage": usage(&event["usage"]) });
                self.inner.take(&usage, sink)?;
                self.inner.take(&json!({ "type": "message_stop" }), sink)
            }
            // The role, the end of a block, and future events.
            _ => Ok(()),
        }
    }

    fn whole(&mut self, body: &str, sink: &dyn Sink) -> Result<(), Failure> {
        let response = object(body, "the answer")?;
        if let Some(failure) = of_event(&response) {
            return Err(failure);
        }
        let content = response["output"]["message"]["content"].as_array();
        let content = content.map(|blocks| blocks.iter().filter_map(block).collect::<Json>());
        let Some(content) = content else {
            let message = "the answer has no `output.message.content`";
            return Err(Failure::new(FailureCode::BadResponse, message));
        };
        let message = json!({
            "content": content, "stop_reason": stop_reason(&response["stopReason"])?, "usage": usage(&response["usage"]),
        });
        self.inner.whole(&message.to_string(), sink)
    }

    fn is_done(&self) -> bool {
        self.inner.is_done()
    }

    fn has_ended(&self) -> bool {
        self.inner.has_ended()
    }

    fn finish(self) -> Result<Answer, Failure> {
        self.inner.finish()
    }
}

impl Decoder {
    /// Tells the beginning of a block, once.
    fn begin(&mut self, at: u64, block: Option<Json>, sink: &dyn Sink) -> Result<(), Failure> {
        let Some(block) = block.filter(|_| !self.begun.contains(&at)) else {
            return Ok(());
        };
        self.begun.insert(at);
        let start = json!({ "type": "content_block_start", "index": at, "content_block": block });
        self.inner.take(&start, sink)
    }

    fn delta(&mut self, at: u64, delta: &Json, sink: &dyn Sink) -> Result<(), Failure> {
        let reasoning = &delta["reasoningContent"];
        let thinking = || json!({ "type": "thinking", "thinking": "" });
        let (block, told) = if let Some(text) = delta["text"].as_str() {
            let block = json!({ "type": "text", "text": "" });
            (Some(block), json!({ "type": "text_delta", "text": text }))
        } else if let Some(input) = delta["toolUse"]["input"].as_str() {
            let told = json!({ "type": "input_json_delta", "partial_json": input });
            (None, told)
        } else if let Some(text) = reasoning["text"].as_str() {
            let told = json!({ "type": "thinking_delta", "thinking": text });
            (Some(thinking()), told)
        } else if let Some(signature) = reasoning["signature"].as_str() {
            let told = json!({ "type": "signature_delta", "signature": signature });
            (Some(thinking()), told)
        } else if let Some(data) = reasoning["redactedContent"].as_str() {
            return self.begin(at, Some(redacted(data)), sink);
        } else {
            // Citations, pictures, and future kinds.
            return Ok(());
        };
        self.begin(at, block, sink)?;
        let event = json!({ "type": "content_block_delta", "index": at, "delta": told });
        self.inner.take(&event, sink)
    }
}

fn redacted(data: &str) -> Json {
    json!({ "type": "redacted_thinking", "data": data })
}

/// Returns a call as a block of Messages; `None` if it is none.
fn call(call: &Json) -> Option<Json> {
    let (id, name) = (call.get("toolUseId")?, call.get("name")?);
    let input = call.get("input").cloned().unwrap_or_else(|| json!({}));
    Some(json!({ "type": "tool_use", "id": id, "name": name, "input": input }))
}

/// Returns a block of a whole answer as a block of Messages; `None` if it has no such form.
fn block(block: &Json) -> Option<Json> {
    if let Some(text) = block["text"].as_str() {
        return Some(json!({ "type": "text", "text": text }));
    }
    let reasoning = &block["reasoningContent"];
    if let Some(data) = reasoning["redactedContent"].as_str() {
        return Some(redacted(data));
    }
    if let Some(text) = reasoning["reasoningText"]["text"].as_str() {
        let mut thinking = json!({ "type": "thinking", "thinking": text });
        if let Some(signature) = reasoning["reasoningText"]["signature"].as_str() {
            thinking["signature"] = json!(signature);
        }
        return Some(thinking);
    }
    call(&block["toolUse"])
}

/// Returns the reason for the end in the words of Messages.
fn stop_reason(reason: &Json) -> Result<&str, Failure> {
    match reason.as_str().unwrap_or_default() {
        "guardrail_intervened" | "content_filtered" => Ok("refusal"),
        reason @ ("malformed_model_output" | "malformed_tool_use") => {
            let message = format!("the model's answer cannot be used ({reason})");
            Err(Failure::new(FailureCode::BadResponse, message))
        }
        reason => Ok(reason),
    }
}

fn usage(usage: &Json) -> Json {
    let number = |key: &str| usage[key].as_u64().unwrap_or(0);
    json!({
        "input_tokens": number("inputTokens"), "output_tokens": number("outputTokens"),
        "cache_read_input_tokens": number("cacheReadInputTokens"),
        "cache_creation_input_tokens": number("cacheWriteInputTokens"),
    })
}
