//! Encodes a neutral request as the JSON of chat completions. Pure: the same request gives the same bytes.

use super::quirks::Quirks;
use super::stream::OPAQUE;
use crate::prefix::{self, MESSAGES, Telling};
use crate::strict;
use crate::wire::files::{self, carried};
use crate::wire::{BEGIN, GO_ON};
use serde_json::{Map, Value as Json, json};
use steersman_machine::context::{CallSpec, Content, FilePart, Request, Segment};
use steersman_machine::network::{FileKind, ToolChoice};
use steersman_machine::questions::ToolSpec;
use steersman_runtime::model::Encodings;

/// Longest call id that OpenAI accepts, in bytes. Ids may be longer if a session had another provider before.
const ID_MAX: usize = 40;

/// Differences between servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Uses OpenAI's own names: `max_completion_tokens`, and `strict` for schemas that are strict.
    pub openai: bool,
    /// Joins neighbouring messages of one role, makes the conversation begin and end with the user, and puts system messages only
    /// at the start: chat templates of many open models refuse a conversation in which the roles do not alternate.
    pub alternate: bool,
    /// Streams the answer.
    pub stream: bool,
    /// Addresses and keys are those of Azure OpenAI.
    pub azure: bool,
}

impl Dialect {
    /// The protocol of OpenAI's own servers.
    pub const OPENAI: Self = Self {
        openai: true,
        alternate: false,
        stream: true,
        azure: false,
    };
    /// The protocol of OpenAI's models at Azure.
    pub const AZURE: Self = Self {
        azure: true,
        ..Self::OPENAI
    };
    /// Any other server with chat completions.
    pub const COMPATIBLE: Self = Self {
        openai: false,
        alternate: true,
        stream: true,
        azure: false,
    };
}

/// Returns the body of the request for this model.
pub fn encode(request: &Request, model: &str, dialect: &Dialect) -> Json {
    let mut told = Told::new(dialect);
    for segment in &request.segments {
        told.push(segment);
    }
    told.end(request.prefill.as_deref());
    let fields = fields(request, model, dialect, Json::Array(told.open), told.tools);
    Json::Object(fields)
}

/// Returns the bytes of the body that [`encode`] and [`Quirks::applied`] give. What the agent's previous request began with, too, is
/// taken from `encodings`, and left there for the next one.
pub fn encode_next(
    request: &Request,
    model: &str,
    dialect: &Dialect,
    quirks: Quirks,
    encodings: &Encodings,
) -> Vec<u8> {
    if quirks.change_messages() || request.params.iter().any(|(key, _)| key == MESSAGES) {
        let body = quirks.applied(encode(request, model, dialect));
        return body.to_string().into_bytes();
    }
    let is_fit = |told: &Told| told.dialect == *dialect;
    let (kept, end) = prefix::told(request, encodings, is_fit, || Told::new(dialect));
    let mut rest = Told {
        sealed: Vec::new(),
        open: kept.told.open.clone(),
        tools: kept.told.tools.clone(),
        dialect: kept.told.dialect.clone(),
        is_begun: kept.told.is_begun,
    };
    for segment in request.segments.since(end) {
        rest.push(segment);
    }
    rest.end(request.prefill.as_deref());
    prefix::append(&mut rest.sealed, &rest.open);
    let fields = fields(request, model, dialect, Json::Null, rest.tools);
    let fields = quirks.applied(Json::Object(fields));
    let body = prefix::body(&fields, &kept.told.sealed, &rest.sealed);
    prefix::keep(kept, encodings);
    body
}

fn fields(
    request: &Request,
    model: &str,
    dialect: &Dialect,
    messages: Json,
    tools: Vec<Json>,
) -> Map<String, Json> {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert(MESSAGES.to_owned(), messages);
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
        // A parameter that is set to `none` removes the field that would be sent by default.
        if value.is_null() {
            body.shift_remove(key);
        } else {
            body.insert(key.to_owned(), value.clone());
        }
    }
    if body.get("stream") != Some(&json!(true)) {
        body.shift_remove("stream_options");
    }
    body
}

/// Returns the `response_format` for an answer that must match a schema.
fn response_format(schema: &str, dialect: &Dialect) -> Json {
    let (strict, schema) = if dialect.openai {
        strict::enforced(schema)
    } else {
        // Other servers take `strict` with any schema.
        (true, strict::read(schema))
    };
    json!({
        "type": "json_schema",
        "json_schema": { "name": "answer", "strict": strict, "schema": schema },
    })
}

/// The messages of a conversation.
struct Told {
    dialect: Dialect,
    /// Encoded messages, which no later segment can change.
    sealed: Vec<u8>,
    /// The messages behind them.
    open: Vec<Json>,
    tools: Vec<Json>,
    /// True if there is a message that is not of the role `system`.
    is_begun: bool,
}

impl Telling for Told {
    fn push(&mut self, segment: &Segment) {
        let alternate = self.dialect.alternate;
        match &segment.content {
            Content::System(text) => {
                let role = if alternate && self.is_begun {
                    "user"
                } else {
                    "system"
                };
                self.say(role, text);
            }
            Content::Tools(list) => self.tools.extend(list.iter().map(tool)),
            Content::User(text) => self.say("user", text),
            Content::File(file) => match part(file) {
                Ok(part) => self.attach(part),
                Err(text) => self.say("user", &text),
            },
            Content::Assistant {
                text,
                calls,
                opaque,
            } => {
                let dialect = &self.dialect;
                let message = assistant(text.as_deref(), calls, opaque.as_deref(), dialect);
                self.answer(message);
            }
            Content::Result {
                label, text, error, ..
            } => {
                // The protocol cannot mark a result as an error, so the text says it.
                let content = if *error {
                    format!("Error: {text}")
                } else {
                    text.clone()
                };
                let id = id(label, &self.dialect);
                self.add(json!({ "role": "tool", "tool_call_id": id, "content": content }));
            }
        }
    }

    fn seal(&mut self) {
        // The next segment may be joined to the last message.
        let last = self.open.len().saturating_sub(1);
        let sealed: Vec<Json> = self.open.drain(..last).collect();
        prefix::append(&mut self.sealed, &sealed);
    }

    fn sealed(&self) -> usize {
        self.sealed.len()
    }
}

impl Told {
    fn new(dialect: &Dialect) -> Self {
        Self {
            dialect: dialect.clone(),
            sealed: Vec::new(),
            open: Vec::new(),
            tools: Vec::new(),
            is_begun: false,
        }
    }

    /// Appends a message. Where roles must alternate, the user begins.
    fn add(&mut self, message: Json) {
        let begins = !self.is_begun && message["role"] != "system";
        if begins && self.dialect.alternate && message["role"] != "user" {
            self.open.push(user(BEGIN));
        }
        self.is_begun |= begins;
        self.open.push(message);
    }

    /// Ends the request. Where roles must alternate, the user has the last word, unless the answer is begun for the model.
    fn end(&mut self, prefill: Option<&str>) {
        if self.dialect.alternate {
            if !self.is_begun {
                self.add(user(BEGIN));
            }
            let last = self.open.last();
            if prefill.is_none() && last.is_some_and(|m| m["role"] == "assistant") {
                self.add(user(GO_ON));
            }
        }
        if let Some(prefill) = prefill {
            self.open
                .push(json!({ "role": "assistant", "content": prefill }));
        }
    }

    /// Appends a message of the model. Where roles must alternate, two messages in a row are joined. There are two in a row if a
    /// context keeps the text of an exchange without its calls.
    fn answer(&mut self, message: Option<Json>) {
        let Some(mut message) = message else { return };
        let join = self.dialect.alternate;
        let before = self
            .open
            .last_mut()
            .filter(|last| join && last["role"] == "assistant" && last.get("tool_calls").is_none());
        let Some(before) = before else {
            self.add(message);
            return;
        };
        let texts = [&before["content"], &message["content"]];
        let texts: Vec<&str> = texts.into_iter().filter_map(Json::as_str).collect();
        message["content"] = Json::from(texts.join("\n\n"));
        if let Some(Json::Array(mut details)) = before.get("reasoning_details").cloned() {
            if let Some(Json::Array(more)) = message.get("reasoning_details") {
                details.extend(more.iter().cloned());
            }
            message["reasoning_details"] = Json::Array(details);
        }
        *before = message;
    }

    /// Appends a message of a role. Where roles must alternate, its text is added to the last message if that has the same role.
    fn say(&mut self, role: &str, text: &str) {
        // Servers refuse messages without a text.
        if text.trim().is_empty() {
            return;
        }
        let join = self.dialect.alternate;
        let last = self.open.last_mut();
        if let Some(last) = last.filter(|last| join && last["role"] == role) {
            files::join(&mut last["content"], Json::from(text), TEXT);
            return;
        }
        self.add(json!({ "role": role, "content": text }));
    }

    /// Appends a part to the last message, if that is the user's.
    fn attach(&mut self, part: Json) {
        match self.open.last_mut().filter(|last| last["role"] == "user") {
            Some(last) => files::parts(&mut last["content"], TEXT).push(part),
            None => self.add(json!({ "role": "user", "content": [part] })),
        }
    }
}

/// Type of a part that is a text.
pub(super) const TEXT: &str = "text";

/// Returns a file as a part of a message, or the text in its place.
fn part(file: &FilePart) -> Result<Json, String> {
    let carried = carried(file)?;
    let url = carried.url();
    Ok(match carried.kind {
        FileKind::Image => json!({ "type": "image_url", "image_url": { "url": url } }),
        FileKind::Pdf => {
            json!({ "type": "file", "file": { "filename": file.name, "file_data": url } })
        }
    })
}

fn user(text: &str) -> Json {
    json!({ "role": "user", "content": text })
}

/// Returns an id that the server accepts; the same for a call and its result.
fn id(label: &str, dialect: &Dialect) -> String {
    if !dialect.openai || label.len() <= ID_MAX {
        return label.to_owned();
    }
    let hash = blake3::hash(label.as_bytes()).to_hex();
    format!("call_{}", &hash.as_str()[..32])
}

fn tool(spec: &ToolSpec) -> Json {
    let parameters = serde_json::from_str::<Json>(&spec.parameters)
        .unwrap_or_else(|_| json!({ "type": "object" }));
    json!({
        "type": "function",
        "function": { "name": spec.name, "description": spec.description, "parameters": parameters },
    })
}

/// Encodes a message of the model; `None` if neither text nor calls are left of it.
fn assistant(
    text: Option<&str>,
    calls: &[CallSpec],
    opaque: Option<&str>,
    dialect: &Dialect,
) -> Option<Json> {
    if calls.is_empty() && text.is_none_or(|text| text.trim().is_empty()) {
        return None;
    }
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert("content".to_owned(), text.map_or(Json::Null, Json::from));
    let opaque = opaque.and_then(|opaque| serde_json::from_str::<Map<String, Json>>(opaque).ok());
    let opaque = opaque.unwrap_or_default();
    // Reasoning is sent back with the calls that it led to. With an answer without calls, servers refuse or drop it. Blocks with
    // signatures are always sent back.
    for (key, value) in &opaque {
        let wanted = match key.as_str() {
            "reasoning_details" => true,
            // Fields left by another protocol have no meaning here.
            key => OPAQUE.contains(&key) && !calls.is_empty(),
        };
        if wanted {
            message.insert(key.clone(), value.clone());
        }
    }
    if calls.is_empty() {
        return Some(Json::Object(message));
    }
    let extras = opaque.get("tool_calls").and_then(Json::as_array);
    let calls = calls.iter().enumerate().map(|(index, call)| {
        let mut object = Map::new();
        object.insert("id".to_owned(), json!(id(&call.label, dialect)));
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
    Some(Json::Object(message))
}

/// Wraps arguments that are not a JSON object into one: servers that parse them again would fail.
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
