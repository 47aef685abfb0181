//! Builds an answer from the chunks of Gemini's `streamGenerateContent`: a state machine without I/O.
//!
//! A chunk has parts: texts, thoughts and whole calls. A part may carry a signature, which goes back with it. The stream has no mark at
//! its end: the last chunk says why the answer ended.

use crate::wire::Decode;
use crate::wire::answer::{BLOCKS_MAX, Piece, Size, object, too_many_blocks};
use crate::wire::fault::of_event;
use serde_json::{Map, Value as Json};
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::commit::Usage;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Ask, Failure};
use steersman_runtime::model::{Delta, Sink};

/// Key of the pieces in an answer's `opaque`.
pub(super) const KEY: &str = "parts";

/// Reads a stream chunk by chunk.
#[derive(Debug, Default)]
pub struct Decoder {
    text: String,
    asks: Vec<Ask>,
    pieces: Vec<Piece>,
    finish: Option<String>,
    /// Message of the server about the end.
    said: String,
    /// The reason why the prompt was refused.
    blocked: Option<String>,
    whole: bool,
    usage: Usage,
    size: Size,
}

impl Decode for Decoder {
    fn event(&mut self, data: &str, sink: &dyn Sink) -> Result<(), Failure> {
        let data = data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let chunk = object(data, "an event of the stream")?;
        self.chunk(&chunk, sink)
    }

    fn whole(&mut self, body: &str, sink: &dyn Sink) -> Result<(), Failure> {
        let response = object(body, "the answer")?;
        self.chunk(&response, sink)?;
        if response.get("candidates").is_none() && self.blocked.is_none() {
            let message = "the answer has no `candidates`";
            return Err(Failure::new(FailureCode::BadResponse, message));
        }
        self.whole = true;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.whole
    }

    fn has_ended(&self) -> bool {
        self.whole || self.finish.is_some() || self.blocked.is_some()
    }

    fn finish(self) -> Result<Answer, Failure> {
        if !self.has_ended() {
            let message = format!(
                "the stream ended in the middle, after {} characters and {} calls",
                self.text.chars().count(),
                self.asks.len()
            );
            return Err(Failure::new(FailureCode::Truncated, message));
        }
        let finish = self.finish.unwrap_or_default();
        let said = |what: &str| match &*self.said {
            "" => what.to_owned(),
            said => format!("{what}: {said}"),
        };
        if let Some(reason) = self.blocked {
            let message = said(&format!(
                "the provider's filter refused the request ({reason})"
            ));
            return Err(Failure::new(FailureCode::ContentFilter, message));
        }
        let is_empty = self.text.is_empty() && self.asks.is_empty();
        match &*finish {
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "MODEL_ARMOR" | "ESCALATION" => {
                let message = said(&format!(
                    "the provider's filter stopped the answer ({finish})"
                ));
                return Err(Failure::new(FailureCode::ContentFilter, message));
            }
            "MALFORMED_FUNCTION_CALL"
            | "UNEXPECTED_TOOL_CALL"
            | "TOO_MANY_TOOL_CALLS"
            | "MISSING_THOUGHT_SIGNATURE"
            | "MALFORMED_RESPONSE" => {
                let message = said(&format!("the model's answer cannot be used ({finish})"));
                return Err(Failure::new(FailureCode::BadResponse, message));
            }
            "STOP" | "MAX_TOKENS" | "FUNCTION_CALL" | "" => {}
            _ if is_empty => {
                let message = said(&format!(
                    "the provider ended the answer without a text ({finish})"
                ));
                return Err(Failure::new(FailureCode::ProviderError, message));
            }
            _ => {}
        }
        Ok(Answer {
            opaque: Piece::write(&self.pieces, KEY),
            text: (!self.text.is_empty()).then_some(self.text),
            asks: self.asks,
            misfit: None,
            cut: finish == "MAX_TOKENS",
            usage: Usage {
                finish: (!finish.is_empty()).then(|| Name::from(finish)),
                ..self.usage
            },
        })
    }
}

impl Decoder {
    fn chunk(&mut self, chunk: &Json, sink: &dyn Sink) -> Result<(), Failure> {
        if let Some(failure) = of_event(chunk) {
            return Err(failure);
        }
        self.usage(&chunk["usageMetadata"]);
        if let Some(model) = chunk["modelVersion"].as_str() {
            self.usage.served = Some(model.into());
        }
        let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
        if let Some(reason) = chunk["promptFeedback"]["blockReason"].as_str() {
            self.blocked = Some(reason.to_owned());
            self.said = text(&chunk["promptFeedback"]["blockReasonMessage"]);
        }
        // One candidate is requested; others are ignored.
        let first = |candidate: &&Json| candidate["index"].as_u64().unwrap_or(0) == 0;
        let mut candidates = chunk["candidates"].as_array().into_iter().flatten();
        let Some(candidate) = candidates.find(first) else {
            return Ok(());
        };
        for part in candidate["content"]["parts"]
            .as_array()
            .into_iter()
            .flatten()
        {
            self.part(part, sink)?;
        }
        if let Some(finish) = candidate["finishReason"]
            .as_str()
            .filter(|it| !it.is_empty())
        {
            self.finish = Some(finish.to_owned());
            self.said = text(&candidate["finishMessage"]);
        }
        Ok(())
    }

    fn part(&mut self, part: &Json, sink: &dyn Sink) -> Result<(), Failure> {
        let mut with = Map::new();
        if let Some(signature) = part["thoughtSignature"].as_str() {
            self.size.add(signature.len())?;
            with.insert("thoughtSignature".to_owned(), signature.into());
        }
        let call = &part["functionCall"];
        if call.is_object() {
            return self.call(call, with, sink);
        }
        let Some(text) = part["text"].as_str() else {
            return Ok(());
        };
        self.size.add(text.len())?;
        if part["thought"] == true {
            if !text.is_empty() {
                sink.delta(Delta::Reasoning(text.to_owned()));
            }
            return Ok(());
        }
        if text.is_empty() && with.is_empty() {
            return Ok(());
        }
        match self.pieces.last_mut() {
            // A part with a signature stays a part of its own.
            Some(Piece::Text(len, before)) if before.is_empty() && with.is_empty() => {
                *len += text.len();
            }
            _ => self.piece(Piece::Text(text.len(), with))?,
        }
        self.text.push_str(text);
        if !text.is_empty() {
            sink.delta(Delta::Text(text.to_owned()));
        }
        Ok(())
    }

    fn call(
        &mut self,
        call: &Json,
        mut with: Map<String, Json>,
        sink: &dyn Sink,
    ) -> Result<(), Failure> {
        let name = call["name"].as_str().unwrap_or_default();
        let args = match &call["args"] {
            Json::Null => "{}".to_owned(),
            args => args.to_string(),
        };
        let id = call["id"].as_str().filter(|id| !id.is_empty());
        self.size
            .add(name.len() + args.len() + id.map_or(0, str::len))?;
        if let Some(id) = id {
            with.insert("id".to_owned(), id.into());
        }
        self.piece(Piece::Call(with))?;
        let at = u32::try_from(self.asks.len()).unwrap_or(u32::MAX);
        sink.delta(Delta::Call(at, Some(name.to_owned()), args.clone()));
        self.asks.push(Ask {
            name: name.to_owned(),
            label: id.map(str::to_owned),
            args,
            misfit: None,
        });
        Ok(())
    }

    fn piece(&mut self, piece: Piece) -> Result<(), Failure> {
        if self.pieces.len() == BLOCKS_MAX {
            return Err(too_many_blocks());
        }
        self.pieces.push(piece);
        Ok(())
    }

    /// Counts usage. The protocol counts thoughts separately from the answer; here they are part of the output.
    fn usage(&mut self, usage: &Json) {
        let number = |key: &str| usage.get(key).and_then(Json::as_u64);
        if let Some(prompt) = number("promptTokenCount") {
            let tools = number("toolUsePromptTokenCount").unwrap_or(0);
            self.usage.input = prompt.saturating_add(tools);
            self.usage.cached = number("cachedContentTokenCount").unwrap_or(0);
        }
        let (answer, thoughts) = (number("candidatesTokenCount"), number("thoughtsTokenCount"));
        if answer.is_some() || thoughts.is_some() {
            self.usage.reasoning = thoughts.unwrap_or(0);
            let answer = answer.unwrap_or(0);
            self.usage.output = answer.saturating_add(self.usage.reasoning);
        }
    }
}
