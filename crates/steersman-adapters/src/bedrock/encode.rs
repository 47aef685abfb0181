//! Encodes a neutral request as the JSON of Bedrock's Converse. Pure: the same request gives the same bytes.
//!
//! Converse has the rules of Anthropic Messages in other words: roles that alternate, results right behind their calls, reasoning that is
//! sent back with its signature. So a request is encoded as Messages, and its blocks are written in the words of Converse.

use crate::messages;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use steersman_machine::context::Request;
use steersman_machine::network::ToolChoice;

/// Longest id of a call that the provider accepts, in bytes.
const ID_MAX: usize = 64;
/// Settings of an answer by their neutral names.
const NAMES: [(&str, &str); 4] = [
    ("max_tokens", "maxTokens"),
    ("temperature", "temperature"),
    ("top_p", "topP"),
    ("stop", "stopSequences"),
];
/// Fields of a request. Any other parameter belongs to the model, and goes into a field for that.
const FIELDS: [&str; 10] = [
    "inferenceConfig",
    "toolConfig",
    "guardrailConfig",
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "promptVariables",
    "requestMetadata",
    "performanceConfig",
    "serviceTier",
    "outputConfig",
];

/// Returns true unless the request wants the whole answer at once.
pub fn is_streamed(request: &Request) -> bool {
    let no = |(key, value): &(String, Json)| key == "stream" && *value == json!(false);
    !request.params.iter().any(no)
}

/// Returns the body of the request for this model. The name of the model is in the address.
pub fn encode(request: &Request, model: &str) -> Json {
    let kind = Kind::of(model);
    let plain = Request {
        params: Arc::new([]),
        ..request.clone()
    };
    let mut told = messages::encode::encode(&plain, model);
    let list = |json: Json| match json {
        Json::Array(list) => list,
        _ => Vec::new(),
    };
    let blocks = |content: Json| -> Vec<Json> {
        let blocks = list(content).into_iter();
        blocks.flat_map(|block| kind.block(block)).collect()
    };
    let mut body = Map::new();
    let turns = list(told["messages"].take()).into_iter().map(|mut turn| {
        let content = blocks(turn["content"].take());
        json!({ "role": turn["role"], "content": content })
    });
    let mut turns: Json = turns.collect();
    name_documents(&mut turns);
    body.insert("messages".to_owned(), turns);
    let mut system = blocks(told["system"].take());
    let mut tools = Vec::new();
    for tool in list(told["tools"].take()) {
        let is_marked = kind.caches_tools && tool.get("cache_control").is_some();
        let mut spec =
            json!({ "name": tool["name"], "inputSchema": { "json": tool["input_schema"] } });
        if !blank(&tool["description"]) {
            spec["description"] = tool["description"].clone();
        }
        tools.push(json!({ "toolSpec": spec }));
        tools.extend(is_marked.then(cache_point));
    }
    // The protocol cannot forbid calls.
    if !tools.is_empty() && request.choice == ToolChoice::None {
        system.push(json!({ "text": "Answer with a text now, and call no tool." }));
    }
    if !system.is_empty() {
        body.insert("system".to_owned(), Json::Array(system));
    }
    if !tools.is_empty() {
        let mut config = json!({ "tools": tools });
        if let Some(choice) = choice(&request.choice) {
            config["toolChoice"] = choice;
        }
        body.insert("toolConfig".to_owned(), config);
    }
    let schema = told["output_config"]["format"]["schema"].take();
    if !schema.is_null() {
        let schema = json!({ "name": "answer", "schema": schema.to_string() });
        let format = json!({ "type": "json_schema", "structure": { "jsonSchema": schema } });
        body.insert("outputConfig".to_owned(), json!({ "textFormat": format }));
    }
    for (key, value) in request.params.iter() {
        param(&mut body, key, value);
    }
    Json::Object(body)
}

fn param(body: &mut Map<String, Json>, key: &str, value: &Json) {
    if key == "stream" {
        return;
    }
    if FIELDS.contains(&key) {
        set(body, key, value.clone());
        return;
    }
    let named = NAMES.iter().find(|(name, _)| *name == key);
    let (field, name) = match named {
        Some((_, name)) => ("inferenceConfig", *name),
        None => ("additionalModelRequestFields", key),
    };
    // `stop` may be one text elsewhere; here it is a list.
    let value = match value {
        Json::String(_) if key == "stop" => json!([value]),
        value => value.clone(),
    };
    if !value.is_null() {
        set(body, field, json!({ name: value }));
    }
}

/// Sets a field. Objects are merged; null removes the field.
fn set(fields: &mut Map<String, Json>, key: &str, value: Json) {
    match (value, fields.get_mut(key)) {
        (Json::Null, _) => drop(fields.shift_remove(key)),
        (Json::Object(more), Some(Json::Object(ours))) => ours.extend(more),
        (value, _) => drop(fields.insert(key.to_owned(), value)),
    }
}

fn choice(choice: &ToolChoice) -> Option<Json> {
    match choice {
        ToolChoice::Auto | ToolChoice::None => None,
        ToolChoice::Any => Some(json!({ "any": {} })),
        ToolChoice::Tool(name) => Some(json!({ "tool": { "name": &**name } })),
    }
}

fn cache_point() -> Json {
    json!({ "cachePoint": { "type": "default" } })
}

fn blank(json: &Json) -> bool {
    json.as_str().is_none_or(|text| text.trim().is_empty())
}

/// Features that a model has, by its name. Other models refuse a request with a field that they do not know.
#[derive(Copy, Clone, Debug, Default)]
struct Kind {
    /// Points up to which a request is kept for later ones.
    caches: bool,
    /// Such a point behind the tools.
    caches_tools: bool,
    /// Results that are marked as errors.
    marks_errors: bool,
}

impl Kind {
    fn of(model: &str) -> Self {
        let is = |word: &str| model.contains(word);
        if is("amazon.nova") {
            return Self {
                caches: true,
                caches_tools: false,
                marks_errors: true,
            };
        }
        let is_claude = is("anthropic.claude");
        let is_old = ["claude-3-", "claude-v2", "claude-instant"]
            .into_iter()
            .any(is);
        let caches = is_claude && (!is_old || is("claude-3-7") || is("claude-3-5-haiku"));
        Self {
            caches,
            caches_tools: caches,
            marks_errors: is_claude,
        }
    }

    /// Writes a block of Messages in the words of Converse, with the mark behind it.
    fn block(self, mut block: Json) -> Vec<Json> {
        let text = |key: &str| block[key].as_str().unwrap_or_default();
        // Nova keeps texts; only Claude keeps files, too.
        let is_kept = self.caches_tools || !matches!(text("type"), "image" | "document");
        let is_marked = self.caches && is_kept && block.get("cache_control").is_some();
        let written = match text("type") {
            "text" => Some(json!({ "text": text("text") })),
            "tool_use" => {
                let id = id(text("id"));
                let (name, input) = (text("name").to_owned(), block["input"].take());
                Some(json!({ "toolUse": { "toolUseId": id, "name": name, "input": input } }))
            }
            "tool_result" => Some(self.result(&block)),
            "image" => {
                let (format, source) = content(&mut block);
                Some(json!({ "image": { "format": format, "source": source } }))
            }
            "document" => {
                let name = text("title").to_owned();
                let (format, source) = content(&mut block);
                let document = json!({ "format": format, "name": name, "source": source });
                Some(json!({ "document": document }))
            }
            "thinking" if !text("signature").is_empty() => {
                let kept = json!({ "text": text("thinking"), "signature": text("signature") });
                Some(json!({ "reasoningContent": { "reasoningText": kept } }))
            }
            "redacted_thinking" => {
                Some(json!({ "reasoningContent": { "redactedContent": text("data") } }))
            }
            // Reasoning without a signature is shown, and not taken back.
            _ => None,
        };
        written
            .into_iter()
            .chain(is_marked.then(cache_point))
            .collect()
    }

    fn result(self, block: &Json) -> Json {
        let text = block["content"].as_str().unwrap_or("(no output)");
        let is_error = block["is_error"] == true;
        let text = if is_error && !self.marks_errors {
            format!("Error: {text}")
        } else {
            text.to_owned()
        };
        let id = id(block["tool_use_id"].as_str().unwrap_or_default());
        let mut result = json!({ "toolUseId": id, "content": [{ "text": text }] });
        if is_error && self.marks_errors {
            result["status"] = json!("error");
        }
        json!({ "toolResult": result })
    }
}

/// Returns the format and the content of a file.
fn content(block: &mut Json) -> (String, Json) {
    let media = block["source"]["media_type"].as_str().unwrap_or_default();
    let (_, format) = media.split_once('/').unwrap_or_default();
    let format = format.to_owned();
    (format, json!({ "bytes": block["source"]["data"].take() }))
}

/// Gives documents the names that the provider accepts: letters, digits, single blanks, hyphens and brackets, each name once in a
/// request.
fn name_documents(turns: &mut Json) {
    let mut known = BTreeSet::new();
    let turns = turns.as_array_mut().into_iter().flatten();
    let blocks = turns.filter_map(|turn| turn["content"].as_array_mut());
    for block in blocks.flatten() {
        let Some(document) = block.get_mut("document") else {
            continue;
        };
        let plain = document_name(document["name"].as_str().unwrap_or_default());
        let mut name = plain.clone();
        let mut count = 1;
        while !known.insert(name.clone()) {
            count += 1;
            name = format!("{plain} {count}");
        }
        document["name"] = json!(name);
    }
}

/// Returns the name of a file without its ending and without characters that the provider refuses.
fn document_name(file: &str) -> String {
    let (name, _) = file.rsplit_once('.').unwrap_or((file, ""));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-()[]".contains(c);
    let plain = name.replace(|c: char| !is_plain(c), " ");
    let words: Vec<&str> = plain.split_whitespace().collect();
    match words.join(" ") {
        name if name.is_empty() => "document".to_owned(),
        name => name,
    }
}

/// Shortens an id that the provider would not accept; the same for a call and its result.
fn id(id: &str) -> String {
    if id.len() <= ID_MAX {
        return id.to_owned();
    }
    let hash = blake3::hash(id.as_bytes()).to_hex();
    format!("call_{}", &hash.as_str()[..32])
}
