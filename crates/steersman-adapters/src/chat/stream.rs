//! Builds an answer from the events of a stream: a state machine without I/O.
//!
//! The differences between servers are handled here: indexes that are missing or all zero, names that are repeated in every
//! piece, arguments that come only at the end or as an object, usage that comes alone after the end, a whole answer instead of
//! a stream. Unknown fields are tolerated.

use crate::wire::Decode;
use crate::wire::answer::Size;
use crate::wire::fault::of_event;
use serde_json::{Map, Value as Json};
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::commit::Usage;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Ask, Failure};
use steersman_machine::values::json;
use steersman_runtime::model::{Delta, Sink};

/// Maximum number of calls of one answer.
const CALLS_MAX: usize = 256;
/// Fields of a message in which servers give reasoning, or data that belongs to it. They are sent back unchanged.
pub(super) const OPAQUE: [&str; 4] = [
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking",
];

/// Reads a stream event by event.
#[derive(Debug, Default)]
pub struct Decoder {
    text: String,
    refusal: String,
    opaque: Map<String, Json>,
    calls: Vec<Partial>,
    finish: Option<String>,
    done: bool,
    usage: Usage,
    size: Size,
    thought: Thought,
}

/// State of a text that may begin with reasoning in tags: some servers leave the tags in the text.
#[derive(Debug)]
enum Thought {
    /// Only blanks came so far. Holds them: before reasoning they are not part of the answer.
    Begins(String),
    /// Holds text that may still become the opening tag.
    Opening(String),
    /// Inside the tags. Holds text that may still become the closing tag.
    Inside(String),
    /// After the closing tag, and only blanks came since. They are not part of the answer.
    Behind,
    /// No reasoning can follow: all further text is the answer.
    Over,
}

impl Default for Thought {
    fn default() -> Self {
        Self::Begins(String::new())
    }
}

const OPENS: &str = "<think>";
const CLOSES: &str = "</think>";

/// A call that is put together from pieces.
#[derive(Debug, Default)]
struct Partial {
    index: Option<u64>,
    id: String,
    name: String,
    args: String,
    /// Unknown fields (signatures), sent back unchanged.
    extra: Map<String, Json>,
}

impl Decode for Decoder {
    fn event(&mut self, data: &str, sink: &dyn Sink) -> Result<(), Failure> {
        let data = data.trim();
        if data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let Ok(event) = json::read::<Json>(data) else {
            let message = format!("an event of the stream is not JSON: {data}");
            return Err(Failure::new(FailureCode::BadResponse, message));
        };
        self.chunk(&event, sink)
    }

    fn whole(&mut self, body: &str, sink: &dyn Sink) -> Result<(), Failure> {
        let event = json::read::<Json>(body).ok().filter(Json::is_object);
        let Some(event) = event else {
            let message = format!("the answer is not a JSON object: {body}");
            return Err(Failure::new(FailureCode::BadResponse, message));
        };
        self.chunk(&event, sink)?;
        if event
            .get("choices")
            .and_then(Json::as_array)
            .is_none_or(Vec::is_empty)
        {
            return Err(Failure::new(
                FailureCode::BadResponse,
                "the answer has no `choices`",
            ));
        }
        self.done = true;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn has_ended(&self) -> bool {
        self.done || self.finish.is_some()
    }

    fn finish(mut self) -> Result<Answer, Failure> {
        // The whole text was blank or the beginning of a tag, and no tag followed.
        if let Thought::Begins(before) | Thought::Opening(before) =
            std::mem::take(&mut self.thought)
        {
            self.text.push_str(&before);
        }
        if !self.has_ended() {
            let message = format!(
                "the stream ended in the middle, after {} characters and {} calls",
                self.text.chars().count(),
                self.calls.len()
            );
            return Err(Failure::new(FailureCode::Truncated, message));
        }
        match self.finish.as_deref() {
            Some("content_filter") => {
                return Err(Failure::new(
                    FailureCode::ContentFilter,
                    "the provider's filter stopped the answer",
                ));
            }
            Some("error") => {
                return Err(Failure::new(
                    FailureCode::ProviderError,
                    "the provider ended the answer with an error",
                ));
            }
            Some("tool_calls" | "function_call") if self.calls.is_empty() => {
                return Err(Failure::new(
                    FailureCode::BadResponse,
                    "the answer ends with calls, but has none",
                ));
            }
            _ => {}
        }
        let mut opaque = self.opaque;
        let extras = self
            .calls
            .iter()
            .map(|call| Json::Object(call.extra.clone()));
        let extras = extras.collect::<Vec<_>>();
        if extras
            .iter()
            .any(|extra| extra != &Json::Object(Map::new()))
        {
            opaque.insert("tool_calls".to_owned(), Json::Array(extras));
        }
        let text = if self.text.is_empty() {
            self.refusal
        } else {
            self.text
        };
        Ok(Answer {
            text: (!text.is_empty()).then_some(text),
            opaque: (!opaque.is_empty()).then(|| Json::Object(opaque).to_string()),
            asks: self.calls.into_iter().map(Partial::ask).collect(),
            misfit: None,
            cut: self.finish.as_deref() == Some("length"),
            usage: Usage {
                finish: self.finish.map(Name::from),
                ..self.usage
            },
        })
    }
}

impl Decoder {
    fn chunk(&mut self, event: &Json, sink: &dyn Sink) -> Result<(), Failure> {
        if let Some(failure) = of_event(event) {
            return Err(failure);
        }
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            self.usage(usage);
        }
        if self.usage.served.is_none()
            && let Some(model) = event.get("model").and_then(Json::as_str)
        {
            self.usage.served = Some(model.into());
        }
        // One choice is requested; others are ignored.
        let first = event
            .get("choices")
            .and_then(Json::as_array)
            .and_then(|choices| {
                choices
                    .iter()
                    .find(|choice| choice.get("index").and_then(Json::as_u64).unwrap_or(0) == 0)
            });
        let Some(choice) = first else { return Ok(()) };
        if let Some(delta) = choice.get("delta").filter(|delta| delta.is_object()) {
            self.message(delta, sink)?;
        }
        if let Some(message) = choice.get("message").filter(|message| message.is_object()) {
            self.at_the_end(message, sink)?;
        }
        if let Some(usage) = choice.get("usage").filter(|usage| usage.is_object()) {
            self.usage(usage);
        }
        if let Some(finish) = choice.get("finish_reason").and_then(Json::as_str)
            && !finish.is_empty()
        {
            self.finish = Some(finish.to_owned());
        }
        Ok(())
    }

    /// Handles a whole message: the complete answer, or a message at the end of a stream, of which only the parts count that no
    /// piece contained.
    fn at_the_end(&mut self, message: &Json, sink: &dyn Sink) -> Result<(), Failure> {
        let mut message = message.clone();
        if let Some(fields) = message.as_object_mut() {
            if !self.text.is_empty() {
                fields.remove("content");
            }
            if !self.refusal.is_empty() {
                fields.remove("refusal");
            }
            if !self.opaque.is_empty() {
                for key in OPAQUE {
                    fields.remove(key);
                }
            }
            if self.calls.iter().any(|call| !call.args.is_empty()) {
                fields.remove("tool_calls");
            }
        }
        self.message(&message, sink)
    }

    fn message(&mut self, delta: &Json, sink: &dyn Sink) -> Result<(), Failure> {
        if let Some(content) = delta.get("content") {
            let text = plain(content);
            self.size.add(text.len())?;
            self.say(text, sink);
        }
        if let Some(refusal) = delta.get("refusal").and_then(Json::as_str) {
            self.size.add(refusal.len())?;
            self.refusal.push_str(refusal);
        }
        self.reasoning(delta, sink)?;
        // The older protocol has a single `function_call` without an id.
        if let Some(function) = delta.get("function_call").filter(|f| f.is_object()) {
            let call = serde_json::json!({ "index": 0, "function": function });
            self.call(&call, sink)?;
        }
        let calls = delta.get("tool_calls").and_then(Json::as_array);
        for call in calls.into_iter().flatten() {
            self.call(call, sink)?;
        }
        Ok(())
    }

    /// Handles text. Reasoning in tags at the beginning is streamed as reasoning, and is not part of the answer.
    fn say(&mut self, text: String, sink: &dyn Sink) {
        let mut text = text;
        if let Thought::Begins(blanks) = &mut self.thought {
            if text.trim_start().is_empty() {
                blanks.push_str(&text);
                return;
            }
            self.thought = Thought::Opening(std::mem::take(blanks));
        }
        if let Thought::Opening(before) = &mut self.thought {
            before.push_str(&text);
            let begun = before.trim_start();
            if let Some(inside) = begun.strip_prefix(OPENS) {
                inside.clone_into(&mut text);
                self.thought = Thought::Inside(String::new());
            } else if OPENS.starts_with(begun) {
                return;
            } else {
                text = std::mem::take(before);
                self.thought = Thought::Over;
            }
        }
        if let Thought::Inside(before) = &mut self.thought {
            before.push_str(&text);
            if let Some((inside, rest)) = before.split_once(CLOSES) {
                think(inside, sink);
                rest.clone_into(&mut text);
                self.thought = Thought::Behind;
            } else {
                // Keep back a possible beginning of the closing tag.
                let kept = (1..CLOSES.len())
                    .rev()
                    .find(|len| before.ends_with(&CLOSES[..*len]));
                let rest = before.split_off(before.len() - kept.unwrap_or(0));
                think(before, sink);
                *before = rest;
                return;
            }
        }
        if matches!(self.thought, Thought::Behind) {
            text.drain(..text.len() - text.trim_start().len());
            if !text.is_empty() {
                self.thought = Thought::Over;
            }
        }
        if !text.is_empty() {
            self.text.push_str(&text);
            sink.delta(Delta::Text(text));
        }
    }

    fn reasoning(&mut self, delta: &Json, sink: &dyn Sink) -> Result<(), Failure> {
        let mut shown = false;
        for key in OPAQUE {
            match delta.get(key) {
                Some(Json::String(piece)) if !piece.is_empty() => {
                    self.size.add(piece.len())?;
                    // Some servers give the same piece under two names; people see it once.
                    if !std::mem::replace(&mut shown, true) {
                        sink.delta(Delta::Reasoning(piece.clone()));
                    }
                    match self.opaque.get_mut(key) {
                        Some(Json::String(text)) => text.push_str(piece),
                        _ => drop(
                            self.opaque
                                .insert(key.to_owned(), Json::from(piece.as_str())),
                        ),
                    }
                }
                Some(Json::Array(items)) if !items.is_empty() => {
                    self.size
                        .add(items.iter().map(|item| item.to_string().len()).sum())?;
                    let kept = self
                        .opaque
                        .entry(key)
                        .or_insert_with(|| Json::Array(Vec::new()));
                    if let Json::Array(list) = kept {
                        for item in items {
                            add_detail(list, item);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn call(&mut self, piece: &Json, sink: &dyn Sink) -> Result<(), Failure> {
        let text = |key: &str| piece.get(key).and_then(Json::as_str).unwrap_or_default();
        let function = piece.get("function");
        let name = function
            .and_then(|f| f.get("name"))
            .and_then(Json::as_str)
            .unwrap_or_default();
        let args = match function.and_then(|f| f.get("arguments")) {
            Some(Json::String(args)) => args.clone(),
            Some(Json::Null) | None => String::new(),
            Some(object) => object.to_string(),
        };
        let extra = piece.as_object().into_iter().flatten();
        let extra = extra.filter(|(key, value)| {
            !matches!(key.as_str(), "index" | "id" | "type" | "function") && !value.is_null()
        });
        let extra = extra
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect::<Map<_, _>>();
        let size =
            args.len() + name.len() + extra.values().map(|v| v.to_string().len()).sum::<usize>();
        self.size.add(size)?;

        let at = self.place(piece.get("index").and_then(Json::as_u64), text("id"), name)?;
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            text("id").clone_into(&mut call.id);
        }
        // The name comes whole, and some servers repeat it with every piece.
        let first = call.name.is_empty() && !name.is_empty();
        if first {
            name.clone_into(&mut call.name);
        }
        call.args.push_str(&args);
        call.extra.extend(extra);
        if first || !args.is_empty() {
            let index = u32::try_from(at).unwrap_or(u32::MAX);
            sink.delta(Delta::Call(index, first.then(|| name.to_owned()), args));
        }
        Ok(())
    }

    /// Returns the position of the call that a piece belongs to: the call with the index of the piece; without an index, the
    /// call with its id; without both, the last call, or a new one if the piece has a name. A new id with a name begins another
    /// call under any index, because some servers give all calls the same one.
    fn place(&mut self, index: Option<u64>, id: &str, name: &str) -> Result<usize, Failure> {
        let begins = |call: &Partial| {
            !id.is_empty() && !call.id.is_empty() && call.id != id && !name.is_empty()
        };
        let found = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if !id.is_empty() => self.calls.iter().rposition(|call| call.id == id),
            None if !name.is_empty() => None,
            None => self.calls.len().checked_sub(1),
        };
        if let Some(at) = found.filter(|at| !begins(&self.calls[*at])) {
            return Ok(at);
        }
        if self.calls.len() == CALLS_MAX {
            let message = format!("the answer makes more than {CALLS_MAX} calls");
            return Err(Failure::new(FailureCode::TooLarge, message));
        }
        self.calls.push(Partial {
            index,
            ..Partial::default()
        });
        Ok(self.calls.len() - 1)
    }

    fn usage(&mut self, usage: &Json) {
        let number = |path: &str| usage.pointer(path).and_then(Json::as_u64);
        let mut set = |to: fn(&mut Usage) -> &mut u64, found: Option<u64>| {
            if let Some(tokens) = found {
                *to(&mut self.usage) = tokens;
            }
        };
        set(
            |u| &mut u.input,
            number("/prompt_tokens").or_else(|| number("/input_tokens")),
        );
        set(
            |u| &mut u.output,
            number("/completion_tokens").or_else(|| number("/output_tokens")),
        );
        let cached = number("/prompt_tokens_details/cached_tokens")
            .or_else(|| number("/input_tokens_details/cached_tokens"))
            .or_else(|| number("/prompt_cache_hit_tokens"))
            .or_else(|| number("/cached_tokens"));
        set(|u| &mut u.cached, cached);
        let reasoning = number("/completion_tokens_details/reasoning_tokens")
            .or_else(|| number("/output_tokens_details/reasoning_tokens"));
        set(|u| &mut u.reasoning, reasoning);
    }
}

impl Partial {
    fn ask(self) -> Ask {
        Ask {
            name: self.name,
            label: (!self.id.is_empty()).then_some(self.id),
            args: if self.args.trim().is_empty() {
                "{}".to_owned()
            } else {
                once(self.args)
            },
            misfit: None,
        }
    }
}

/// Decodes arguments that were encoded twice: a JSON text that holds an object.
fn once(args: String) -> String {
    let inner = serde_json::from_str::<String>(&args).ok();
    let object = |text: &String| serde_json::from_str::<Map<String, Json>>(text).is_ok();
    inner.filter(object).unwrap_or(args)
}

fn think(piece: &str, sink: &dyn Sink) {
    if !piece.is_empty() {
        sink.delta(Delta::Reasoning(piece.to_owned()));
    }
}

/// Returns the text of `content`, which is a string or a list of parts.
fn plain(content: &Json) -> String {
    match content {
        Json::String(text) => text.clone(),
        Json::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Json::as_str))
            .collect(),
        _ => String::new(),
    }
}

/// Adds a piece to a list of reasoning blocks: pieces with the same `index` and `type` are joined into one block, to be sent
/// back as one.
fn add_detail(list: &mut Vec<Json>, piece: &Json) {
    let same = |a: &Json, key: &str| a.get(key) == piece.get(key);
    let open = list
        .last_mut()
        .filter(|last| piece.get("index").is_some() && same(last, "index") && same(last, "type"));
    let (Some(Json::Object(last)), Some(new)) = (open, piece.as_object()) else {
        list.push(piece.clone());
        return;
    };
    for (key, value) in new {
        match (last.get_mut(key), value) {
            (Some(Json::String(old)), Json::String(more))
                if matches!(key.as_str(), "text" | "summary" | "data" | "thinking") =>
            {
                old.push_str(more);
            }
            (_, Json::Null) => {}
            _ => drop(last.insert(key.clone(), value.clone())),
        }
    }
}
