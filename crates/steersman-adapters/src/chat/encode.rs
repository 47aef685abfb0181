//! A neutral request as the JSON of chat completions. Pure: the same request gives the same bytes.

use super::stream::OPAQUE;
use serde_json::{Map, Value as Json, json};
use steersman_machine::context::{CallSpec, Content, Request, ToolSpec};
use steersman_machine::network::ToolChoice;

/// What servers want told differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// OpenAI's own names: `max_completion_tokens`, schemas marked `strict` where they are.
    pub openai: bool,
    /// Neighbouring messages of a user are joined and a system message stands only at the start: chat templates of
    /// many open models refuse a conversation in which the roles do not alternate.
    pub alternate: bool,
    /// The answer is streamed.
    pub stream: bool,
}

impl Dialect {
    /// OpenAI itself.
    pub const OPENAI: Self = Self {
        openai: true,
        alternate: false,
        stream: true,
    };
    /// Any other server with chat completions.
    pub const COMPATIBLE: Self = Self {
        openai: false,
        alternate: true,
        stream: true,
    };
}

/// The body of the request for this model.
pub fn encode(request: &Request, model: &str, dialect: &Dialect) -> Json {
    let mut body = Map::new();
    let mut tools = Vec::new();
    let messages = messages(request, dialect, &mut tools);
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), Json::Array(messages));
    let choice = (!tools.is_empty())
        .then(|| choice(&request.choice))
        .flatten();
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Json::Array(tools));
    }
    if let Some(choice) = choice {
        body.insert("tool_choice".to_owned(), choice);
    }
    if let Some(schema) = &request.output {
        body.insert(
            "response_format".to_owned(),
            response_format(schema, dialect),
        );
    }
    if dialect.stream {
        body.insert("stream".to_owned(), json!(true));
        body.insert(
            "stream_options".to_owned(),
            json!({ "include_usage": true }),
        );
    }
    for (key, value) in request.params.iter() {
        let key = match key.as_str() {
            "max_tokens" if dialect.openai => "max_completion_tokens",
            key => key,
        };
        // A parameter that is set to `none` takes out what we would send by ourselves.
        if value.is_null() {
            body.shift_remove(key);
        } else {
            body.insert(key.to_owned(), value.clone());
        }
    }
    if body.get("stream") != Some(&json!(true)) {
        body.shift_remove("stream_options");
    }
    Json::Object(body)
}

fn messages(request: &Request, dialect: &Dialect, tools: &mut Vec<Json>) -> Vec<Json> {
    let mut messages: Vec<Json> = Vec::new();
    for segment in &request.segments {
        match &segment.content {
            Content::System(text) => {
                let role = if dialect.alternate && messages.iter().any(|m| m["role"] != "system") {
                    "user"
                } else {
                    "system"
                };
                say(&mut messages, role, text, dialect.alternate);
            }
            Content::Tools(list) => tools.extend(list.iter().map(tool)),
            Content::User(text) => say(&mut messages, "user", text, dialect.alternate),
            Content::Assistant {
                text,
                calls,
                opaque,
            } => {
                messages.push(assistant(text.as_deref(), calls, opaque.as_deref()));
            }
            Content::Result {
                label, text, error, ..
            } => {
                // The wire has no mark for a result that is an error, so the text says it.
                let content = if *error {
                    format!("Error: {text}")
                } else {
                    text.clone()
                };
                messages.push(json!({ "role": "tool", "tool_call_id": label, "content": content }));
            }
        }
    }
    if let Some(prefill) = &request.prefill {
        messages.push(json!({ "role": "assistant", "content": &**prefill }));
    }
    messages
}

fn say(messages: &mut Vec<Json>, role: &str, text: &str, join: bool) {
    if join
        && let Some(last) = messages.last_mut().filter(|last| last["role"] == role)
        && let Some(before) = last["content"].as_str()
    {
        last["content"] = Json::from(format!("{before}\n\n{text}"));
        return;
    }
    messages.push(json!({ "role": role, "content": text }));
}

fn tool(spec: &ToolSpec) -> Json {
    let parameters = serde_json::from_str::<Json>(&spec.parameters)
        .unwrap_or_else(|_| json!({ "type": "object" }));
    json!({
        "type": "function",
        "function": { "name": spec.name, "description": spec.description, "parameters": parameters },
    })
}

fn assistant(text: Option<&str>, calls: &[CallSpec], opaque: Option<&str>) -> Json {
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert("content".to_owned(), text.map_or(Json::Null, Json::from));
    let opaque = opaque.and_then(|opaque| serde_json::from_str::<Map<String, Json>>(opaque).ok());
    let opaque = opaque.unwrap_or_default();
    // Reasoning goes back with the calls that came of it, where servers want it; with a plain answer they refuse it
    // or throw it away. Blocks with signatures go back always.
    for (key, value) in &opaque {
        let wanted = match key.as_str() {
            "reasoning_details" => true,
            // What another wire left there means nothing here.
            key => OPAQUE.contains(&key) && !calls.is_empty(),
        };
        if wanted {
            message.insert(key.clone(), value.clone());
        }
    }
    if calls.is_empty() {
        if text.is_none() {
            message.insert("content".to_owned(), json!(""));
        }
        return Json::Object(message);
    }
    let extras = opaque.get("tool_calls").and_then(Json::as_array);
    let calls = calls.iter().enumerate().map(|(index, call)| {
        let mut object = Map::new();
        object.insert("id".to_owned(), json!(call.label));
        object.insert("type".to_owned(), json!("function"));
        object.insert(
            "function".to_owned(),
            json!({ "name": call.name, "arguments": arguments(&call.args) }),
        );
        let extra = extras
            .and_then(|extras| extras.get(index))
            .and_then(Json::as_object);
        for (key, value) in extra.into_iter().flatten() {
            object.insert(key.clone(), value.clone());
        }
        Json::Object(object)
    });
    message.insert("tool_calls".to_owned(), Json::Array(calls.collect()));
    Json::Object(message)
}

/// Arguments that are not a JSON object stop servers which parse them again; they go back inside one.
fn arguments(args: &str) -> String {
    match serde_json::from_str::<Json>(args) {
        Ok(Json::Object(_)) => args.to_owned(),
        _ => json!({ "malformed": args }).to_string(),
    }
}

fn choice(choice: &ToolChoice) -> Option<Json> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::Any => Some(json!("required")),
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Tool(name) => {
            Some(json!({ "type": "function", "function": { "name": &**name } }))
        }
    }
}

fn response_format(schema: &str, dialect: &Dialect) -> Json {
    let schema = serde_json::from_str::<Json>(schema).unwrap_or_else(|_| json!({}));
    // Elsewhere the mark means nothing; at OpenAI it is an error with a schema that is not.
    let strict = !dialect.openai || is_strict(&schema);
    json!({
        "type": "json_schema",
        "json_schema": { "name": "answer", "strict": strict, "schema": schema },
    })
}

/// Whether OpenAI takes the schema as strict: an object at the root, and in every object all properties required
/// and none beside them allowed.
fn is_strict(schema: &Json) -> bool {
    schema.get("type") == Some(&json!("object")) && closed(schema)
}

fn closed(schema: &Json) -> bool {
    match schema {
        Json::Object(map) => {
            let object =
                map.get("type") == Some(&json!("object")) || map.contains_key("properties");
            let required = map.get("required").and_then(Json::as_array);
            let named = map.get("properties").and_then(Json::as_object);
            let all = named.is_none_or(|named| {
                named
                    .keys()
                    .all(|key| required.is_some_and(|list| list.contains(&json!(key))))
            });
            let fits = !object || (all && map.get("additionalProperties") == Some(&json!(false)));
            fits && map.values().all(closed)
        }
        Json::Array(list) => list.iter().all(closed),
        _ => true,
    }
}
