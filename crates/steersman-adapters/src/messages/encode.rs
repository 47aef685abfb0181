//! Encodes a neutral request as the JSON of Anthropic Messages. Pure: the same request gives the same bytes.
//!
//! The protocol requires: alternating roles, the user first and last; results first in the message after their calls; no empty
//! text; unique ids of letters, digits, `_` and `-`; tools, if there are calls; thinking blocks sent back unchanged, at the
//! beginning of their message and never at its end.

use super::stream::Piece;
use crate::wire::{BEGIN, GO_ON};
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::context::{CallSpec, Content, Request};
use steersman_machine::network::{Part, ToolChoice};
use steersman_machine::questions::ToolSpec;

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
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("max_tokens".to_owned(), json!(MAX_TOKENS));
    let (mut tools, mut system) = (Vec::new(), Vec::new());
    let messages = messages(request, &mut tools, &mut system);
    let offered = !tools.is_empty();
    if !offered {
        tools = stub_tools(request);
    }
    // Cache marks are at the end of each part that is written once and read by later calls: the tools, the system prompt, the
    // history as it was for the previous call, and the history so far.
    mark(tools.last_mut());
    mark(system.last_mut());
    if !system.is_empty() {
        body.insert("system".to_owned(), Json::Array(system));
    }
    body.insert("messages".to_owned(), Json::Array(messages));
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

fn messages(request: &Request, tools: &mut Vec<Json>, system: &mut Vec<Json>) -> Vec<Json> {
    let mut turns: Vec<(&str, Vec<Json>)> = Vec::new();
    let (mut stable, mut ids) = (None, Ids::default());
    for segment in &request.segments {
        match &segment.content {
            Content::System(text) if turns.is_empty() => system.extend(block(text)),
            // The protocol has one system prompt, at the beginning; later system texts are sent as the user's.
            Content::System(text) | Content::User(text) => say(&mut turns, "user", block(text)),
            Content::Tools(list) => tools.extend(list.iter().map(tool)),
            Content::Assistant {
                text,
                calls,
                opaque,
            } => {
                let calls = calls.iter().map(|call| (ids.call(&call.label), call));
                let calls: Vec<_> = calls.collect();
                let blocks = assistant(text.as_deref(), &calls, opaque.as_deref());
                answer(&mut turns, blocks);
            }
            Content::Result {
                label, text, error, ..
            } => {
                let mut result = json!({ "type": "tool_result", "tool_use_id": ids.of(label) });
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
                say(&mut turns, "user", [result]);
            }
        }
        if segment.part == Part::History && !turns.is_empty() {
            stable = turns
                .last()
                .map(|(_, blocks)| (turns.len() - 1, blocks.len() - 1));
        }
    }
    if let Some((turn, block)) = stable {
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
    if turns.first().is_none_or(|(role, _)| *role != "user") {
        // The conversation must begin with the user.
        turns.insert(0, ("user", vec![json!({ "type": "text", "text": BEGIN })]));
    }
    match &request.prefill {
        Some(prefill) => say(&mut turns, "assistant", block(prefill.trim_end())),
        // A last message of the assistant would be a prefill, which many models refuse.
        None if turns.last().is_some_and(|(role, _)| *role == "assistant") => {
            say(&mut turns, "user", block(GO_ON));
        }
        None => {}
    }
    let turn = |(role, blocks)| json!({ "role": role, "content": Json::Array(blocks) });
    turns.into_iter().map(turn).collect()
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

fn tool(spec: &ToolSpec) -> Json {
    let schema = serde_json::from_str::<Json>(&spec.parameters)
        .unwrap_or_else(|_| json!({ "type": "object" }));
    json!({ "name": spec.name, "description": spec.description, "input_schema": schema })
}

/// Returns stub tools for the calls in the history: the protocol refuses a history with calls if no tool is offered.
fn stub_tools(request: &Request) -> Vec<Json> {
    let calls = request
        .segments
        .iter()
        .flat_map(|segment| match &segment.content {
            Content::Assistant { calls, .. } => calls.as_slice(),
            _ => &[],
        });
    let names: BTreeSet<&str> = calls.map(|call| &*call.name).collect();
    let tool = |name| json!({ "name": name, "description": "Not to be called any more.", "input_schema": { "type": "object" } });
    names.into_iter().map(tool).collect()
}

/// Returns the blocks of an answer, without thinking at the end: the protocol refuses that.
fn assistant(text: Option<&str>, calls: &[(String, &CallSpec)], opaque: Option<&str>) -> Vec<Json> {
    let mut blocks = in_order(text, calls, opaque);
    while blocks.last().is_some_and(thinks) {
        blocks.pop();
    }
    blocks
}

/// Returns the blocks of an answer in their original order, if known; otherwise thinking, text, calls.
fn in_order(text: Option<&str>, calls: &[(String, &CallSpec)], opaque: Option<&str>) -> Vec<Json> {
    let text = text.unwrap_or_default();
    let pieces = opaque.map(Piece::read).unwrap_or_default();
    let call = |(id, call): &(String, &CallSpec)| {
        let input = match serde_json::from_str::<Json>(&call.args) {
            Ok(Json::Object(input)) => Json::Object(input),
            _ => json!({ "malformed": call.args }),
        };
        json!({ "type": "tool_use", "id": id, "name": call.name, "input": input })
    };
    if !Piece::fit(&pieces, text, calls.len()) {
        let thinking = pieces.into_iter().filter_map(Piece::block);
        let calls = calls.iter().map(call);
        return thinking.chain(block(text)).chain(calls).collect();
    }
    let (mut text, mut calls) = (text, calls.iter());
    let mut blocks = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Block(block) => blocks.push(block),
            Piece::Text(len) => {
                let (head, tail) = text.split_at(len);
                blocks.extend(block(head));
                text = tail;
            }
            Piece::Call => blocks.extend(calls.next().map(call)),
        }
    }
    blocks
}

/// Ids that the protocol accepts: unique, and of allowed characters. Labels of calls may be neither, because they come from any
/// provider that the session had, and some providers count from 1 in each answer.
#[derive(Default)]
struct Ids {
    given: BTreeSet<String>,
    /// The newest id of each label: a result follows its call.
    of: BTreeMap<String, String>,
}

impl Ids {
    /// Makes the id of a new call with this label.
    fn call(&mut self, label: &str) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let plain: String = label
            .chars()
            .map(|c| if fits(c) { c } else { '_' })
            .collect();
        let mut id = plain.clone();
        let mut n = 1;
        while id.is_empty() || !self.given.insert(id.clone()) {
            n += 1;
            id = format!("{plain}_{n}");
        }
        self.of.insert(label.to_owned(), id.clone());
        id
    }

    /// Returns the id of the newest call with this label.
    fn of(&mut self, label: &str) -> String {
        match self.of.get(label) {
            Some(id) => id.clone(),
            None => self.call(label),
        }
    }
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
