//! Encodes a neutral request as the JSON of Anthropic Messages. Pure: the same request gives the same bytes.
//!
//! The protocol requires: alternating roles, the user first and last; results first in the message after their calls; no empty
//! text; unique ids of letters, digits, `_` and `-`; tools, if there are calls; thinking blocks sent back unchanged, at the
//! beginning of their message and never at its end.

use super::stream::KEY;
use crate::prefix::{self, MESSAGES, Telling};
use crate::wire::answer::{Ids, Part as Said, arguments, in_order};
use crate::wire::files::carried;
use crate::wire::{BEGIN, GO_ON};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use steersman_machine::context::{CallSpec, Content, FilePart, Request, Segment};
use steersman_machine::network::{FileKind, Part, ToolChoice};
use steersman_machine::questions::ToolSpec;
use steersman_runtime::model::Encodings;

/// The protocol requires a maximum; this is the default, in tokens.
const MAX_TOKENS: u64 = 8192;
/// Keywords of JSON Schema that the provider refuses in the schema of an answer. The engine checks the answer with the whole
/// schema.
const UNKNOWN: [&str; 12] = [
    "$schema",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
];

/// Returns the body of the request for this model.
pub fn encode(request: &Request, model: &str) -> Json {
    let mut told = Told::default();
    for segment in &request.segments {
        told.push(segment);
    }
    told.end(request.prefill.as_deref());
    let messages = std::mem::take(&mut told.open).into_iter().map(message);
    fields(request, model, messages.collect(), told)
}

/// Returns the bytes of the body that [`encode`] gives. What the agent's previous request began with, too, is taken from
/// `encodings`, and left there for the next one.
pub fn encode_next(request: &Request, model: &str, encodings: &Encodings) -> Vec<u8> {
    if request.params.iter().any(|(key, _)| key == MESSAGES) {
        return encode(request, model).to_string().into_bytes();
    }
    let (kept, end) = prefix::told(request, encodings, |_| true, Told::default);
    let mut rest = kept.told.open_part();
    for segment in request.segments.since(end) {
        rest.push(segment);
    }
    rest.end(request.prefill.as_deref());
    let open: Vec<Json> = std::mem::take(&mut rest.open)
        .into_iter()
        .map(message)
        .collect();
    prefix::append(&mut rest.sealed, &open);
    let sealed = std::mem::take(&mut rest.sealed);
    let fields = fields(request, model, Json::Null, rest);
    let body = prefix::body(&fields, &kept.told.sealed, &sealed);
    prefix::keep(kept, encodings);
    body
}

fn fields(request: &Request, model: &str, messages: Json, told: Told) -> Json {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("max_tokens".to_owned(), json!(MAX_TOKENS));
    let (mut tools, mut system) = (told.tools, told.system);
    let offered = !tools.is_empty();
    if !offered {
        tools = stub_tools(&told.called);
    }
    // Cache marks are at the end of each part that is written once and read by later calls: the tools, the system prompt, the
    // history as it was for the previous call, and the history so far.
    mark(tools.last_mut());
    mark(system.last_mut());
    if !system.is_empty() {
        body.insert("system".to_owned(), Json::Array(system));
    }
    body.insert(MESSAGES.to_owned(), messages);
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Json::Array(tools));
        let choice = if offered {
            choice(&request.choice)
        } else {
            choice(&ToolChoice::None)
        };
        if let Some(choice) = choice {
            body.insert("tool_choice".to_owned(), choice);
        }
    }
    body.insert("stream".to_owned(), json!(true));
    if let Some(schema) = &request.output {
        let mut schema = serde_json::from_str(schema).unwrap_or_else(|_| json!({}));
        narrow(&mut schema);
        body.insert(
            "output_config".to_owned(),
            json!({ "format": { "type": "json_schema", "schema": schema } }),
        );
    }
    for (key, value) in request.params.iter() {
        let key = match key.as_str() {
            "stop" => "stop_sequences",
            key => key,
        };
        // A parameter that is set to `none` removes the field that would be sent by default.
        match (value, body.get_mut(key)) {
            (Json::Null, _) => drop(body.shift_remove(key)),
            // The definition may set other fields of `output_config`, so objects are merged.
            (Json::Object(more), Some(Json::Object(ours))) => {
                ours.extend(more.clone());
            }
            _ => drop(body.insert(key.to_owned(), value.clone())),
        }
    }
    Json::Object(body)
}

fn mark(block: Option<&mut Json>) {
    if let Some(Json::Object(block)) = block {
        block.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
}

/// A message: its role and its blocks.
type Turn = (&'static str, Vec<Json>);

fn message((role, blocks): Turn) -> Json {
    json!({ "role": role, "content": Json::Array(blocks) })
}

/// Number of turns at the end that later segments may still change: blocks are added to the last one, and marks are set on it and
/// on the user's turn before the newest answer.
const OPEN: usize = 3;

/// The messages of a conversation.
#[derive(Default)]
struct Told {
    /// Encoded turns, which no later segment can change.
    sealed: Vec<u8>,
    /// True if there are turns before the open ones.
    is_cut: bool,
    /// The turns behind them.
    open: Vec<Turn>,
    tools: Vec<Json>,
    system: Vec<Json>,
    ids: Ids,
    /// Names of all tools that were called.
    called: Arc<BTreeSet<String>>,
    /// Place of the last block of the history: its turn among the open ones, and its place in the turn.
    stable: Option<(usize, usize)>,
}

impl Telling for Told {
    fn push(&mut self, segment: &Segment) {
        match &segment.content {
            Content::System(text) if self.open.is_empty() => self.system.extend(block(text)),
            // The protocol has one system prompt, at the beginning; later system texts are sent as the user's.
            Content::System(text) | Content::User(text) => {
                say(&mut self.open, "user", block(text));
            }
            Content::File(file) => say(&mut self.open, "user", file_block(file)),
            Content::Tools(list) => self.tools.extend(list.iter().map(tool)),
            Content::Assistant {
                text,
                calls,
                opaque,
            } => {
                for call in calls {
                    if !self.called.contains(&call.name) {
                        Arc::make_mut(&mut self.called).insert(call.name.clone());
                    }
                }
                let ids = &mut self.ids;
                let calls = calls.iter().map(|call| (ids.call(&call.label), call));
                let calls: Vec<_> = calls.collect();
                let blocks = assistant(text.as_deref(), &calls, opaque.as_deref());
                answer(&mut self.open, blocks);
            }
            Content::Result {
                label, text, error, ..
            } => {
                let id = self.ids.of(label);
                let mut result = json!({ "type": "tool_result", "tool_use_id": id });
                if !text.trim().is_empty() {
                    result["content"] = json!(text);
                }
                if *error {
                    result["is_error"] = json!(true);
                    // An error without a text is refused.
                    if text.trim().is_empty() {
                        result["content"] = json!("Error");
                    }
                }
                say(&mut self.open, "user", [result]);
            }
        }
        if let (Part::History, Some((_, blocks))) = (segment.part, self.open.last()) {
            self.stable = Some((self.open.len() - 1, blocks.len() - 1));
        }
    }

    fn seal(&mut self) {
        let Some((turn, _)) = &mut self.stable else {
            return;
        };
        let count = (*turn + 1).saturating_sub(OPEN);
        *turn -= count;
        if count == 0 {
            return;
        }
        let begins = !self.is_cut && self.open[0].0 != "user";
        let turns = begins.then(begin).into_iter();
        let sealed = turns.chain(self.open.drain(..count)).map(message);
        let sealed: Vec<Json> = sealed.collect();
        prefix::append(&mut self.sealed, &sealed);
        self.is_cut = true;
    }

    fn sealed(&self) -> usize {
        self.sealed.len()
    }
}

impl Told {
    /// Returns a copy of what later segments may change. It takes no calls, since their ids must differ from those of all others.
    fn open_part(&self) -> Self {
        Self {
            sealed: Vec::new(),
            is_cut: self.is_cut,
            open: self.open.clone(),
            tools: self.tools.clone(),
            system: self.system.clone(),
            ids: Ids::default(),
            called: self.called.clone(),
            stable: self.stable,
        }
    }

    /// Sets the marks in the history, and ends the request.
    fn end(&mut self, prefill: Option<&str>) {
        let turns = &mut self.open;
        if let Some((turn, block)) = self.stable {
            mark(markable(&mut turns[turn].1[..=block]));
            // The provider searches its cache only a few blocks back from a mark. So the end of the previous request is marked, too:
            // it is found even after an exchange of many calls.
            let asked = turns[..=turn]
                .iter()
                .rposition(|(role, _)| *role == "assistant");
            if let Some(before) = asked.and_then(|asked| asked.checked_sub(1)) {
                mark(turns[before].1.last_mut());
            }
        }
        if !self.is_cut && turns.first().is_none_or(|(role, _)| *role != "user") {
            turns.insert(0, begin());
        }
        match prefill {
            Some(prefill) => say(turns, "assistant", block(prefill.trim_end())),
            // A last message of the assistant would be a prefill, which many models refuse.
            None if turns.last().is_some_and(|(role, _)| *role == "assistant") => {
                say(turns, "user", block(GO_ON));
            }
            None => {}
        }
    }
}

/// Returns the first turn of a conversation that the model would begin: the protocol wants that the user begins.
fn begin() -> Turn {
    ("user", vec![json!({ "type": "text", "text": BEGIN })])
}

/// Returns the last block if it may carry a mark: thinking may not.
fn markable(blocks: &mut [Json]) -> Option<&mut Json> {
    let block = blocks.last_mut()?;
    (!thinks(block)).then_some(block)
}

fn thinks(block: &Json) -> bool {
    matches!(
        block["type"].as_str(),
        Some("thinking" | "redacted_thinking")
    )
}

/// Appends a message of the model. A message with thinking must begin with it, so earlier text goes into a message of its own.
fn answer(turns: &mut Vec<(&str, Vec<Json>)>, blocks: Vec<Json>) {
    let apart = turns.last().is_some_and(|(role, said)| {
        *role == "assistant" && !said.first().is_some_and(thinks) && blocks.iter().any(thinks)
    });
    if apart {
        say(turns, "user", block(GO_ON));
    }
    say(turns, "assistant", blocks);
}

fn say(
    turns: &mut Vec<(&str, Vec<Json>)>,
    role: &'static str,
    blocks: impl IntoIterator<Item = Json>,
) {
    let mut blocks = blocks.into_iter().peekable();
    if blocks.peek().is_none() {
        return;
    }
    match turns.last_mut() {
        Some((last, list)) if *last == role => list.extend(blocks),
        _ => turns.push((role, blocks.collect())),
    }
}

/// Returns a text as a block; `None` if it is empty, since the protocol refuses empty texts.
fn block(text: &str) -> Option<Json> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

/// Returns a file as a block, or the text in its place.
fn file_block(file: &FilePart) -> Option<Json> {
    let carried = match carried(file) {
        Ok(carried) => carried,
        Err(text) => return block(&text),
    };
    let source = json!({ "type": "base64", "media_type": carried.media, "data": carried.data });
    Some(match carried.kind {
        FileKind::Image => json!({ "type": "image", "source": source }),
        FileKind::Pdf => json!({ "type": "document", "source": source, "title": file.name }),
    })
}

fn tool(spec: &ToolSpec) -> Json {
    let schema = serde_json::from_str::<Json>(&spec.parameters)
        .unwrap_or_else(|_| json!({ "type": "object" }));
    json!({ "name": spec.name, "description": spec.description, "input_schema": schema })
}

/// Returns stub tools of these names: the protocol refuses a history with calls if no tool is offered.
fn stub_tools(called: &BTreeSet<String>) -> Vec<Json> {
    let tool = |name| json!({ "name": name, "description": "Not to be called any more.", "input_schema": { "type": "object" } });
    called.iter().map(tool).collect()
}

/// Returns the blocks of an answer in their original order, if it is known, and without thinking at the end: the protocol refuses that.
fn assistant(text: Option<&str>, calls: &[(String, &CallSpec)], opaque: Option<&str>) -> Vec<Json> {
    let (parts, _) = in_order((opaque, KEY), text, calls.len());
    let part = |part| match part {
        Said::Block(block) => Some(block),
        Said::Text(text, _) => block(text),
        Said::Call(n, _) => {
            let (id, call) = &calls[n];
            let input = arguments(&call.args);
            Some(json!({ "type": "tool_use", "id": id, "name": call.name, "input": input }))
        }
    };
    let mut blocks: Vec<Json> = parts.into_iter().filter_map(part).collect();
    while blocks.last().is_some_and(thinks) {
        blocks.pop();
    }
    blocks
}

fn choice(choice: &ToolChoice) -> Option<Json> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::Any => Some(json!({ "type": "any" })),
        ToolChoice::None => Some(json!({ "type": "none" })),
        ToolChoice::Tool(name) => Some(json!({ "type": "tool", "name": &**name })),
    }
}

/// Restricts the schema to what the provider accepts: closed objects, without bounds.
fn narrow(schema: &mut Json) {
    let Json::Object(map) = schema else { return };
    map.retain(|key, _| !UNKNOWN.contains(&key.as_str()));
    if map.contains_key("properties") {
        map.insert("additionalProperties".to_owned(), json!(false));
    }
    for (key, value) in map {
        match (key.as_str(), value) {
            // The keys of these maps are names, not keywords.
            ("properties" | "$defs" | "definitions", Json::Object(named)) => {
                named.values_mut().for_each(narrow);
            }
            ("anyOf" | "allOf" | "oneOf", Json::Array(list)) => list.iter_mut().for_each(narrow),
            ("items", items) => narrow(items),
            _ => {}
        }
    }
}
