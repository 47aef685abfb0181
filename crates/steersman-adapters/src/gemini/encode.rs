//! Encodes a neutral request as the JSON of Gemini's `generateContent`. Pure: the same request gives the same bytes.
//!
//! The protocol requires: the user first and last; the results of all calls of an answer in one turn, right behind it, in the order of
//! the calls; no empty part, unless it has a signature; signatures sent back with the part that they came with.

use super::stream::KEY;
use crate::strict;
use crate::wire::answer::{Part, arguments, in_order};
use crate::wire::files::carried;
use crate::wire::{BEGIN, GO_ON};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use steersman_machine::context::{CallSpec, Content, FilePart, Request};
use steersman_machine::network::ToolChoice;
use steersman_machine::questions::ToolSpec;

/// Signature for a call that another model made: the provider then does not look for its own.
const UNSIGNED: &str = "skip_thought_signature_validator";
/// Name of the object of settings for the answer.
const GENERATION: &str = "generationConfig";
/// Settings by their neutral names.
const NAMES: [(&str, &str); 8] = [
    ("max_tokens", "maxOutputTokens"),
    ("stop", "stopSequences"),
    ("temperature", "temperature"),
    ("top_p", "topP"),
    ("top_k", "topK"),
    ("seed", "seed"),
    ("presence_penalty", "presencePenalty"),
    ("frequency_penalty", "frequencyPenalty"),
];

/// Returns true unless the request wants the whole answer at once.
pub fn is_streamed(request: &Request) -> bool {
    let no = |(key, value): &(String, Json)| key == "stream" && *value == json!(false);
    !request.params.iter().any(no)
}

/// Returns the body of the request for this model. The name of the model is in the address.
pub fn encode(request: &Request, model: &str) -> Json {
    let mut told = Told {
        is_signed: generation(model) >= 3,
        ..Told::default()
    };
    for segment in &request.segments {
        told.push(&segment.content);
    }
    let mut settings = Map::new();
    if let Some(schema) = &request.output {
        if told.tools.is_empty() || generation(model) >= 3 {
            settings.insert("responseMimeType".to_owned(), json!("application/json"));
            settings.insert("responseJsonSchema".to_owned(), strict::read(schema));
        } else {
            // Older models take either tools or a schema.
            let told_schema = format!(
                "If you answer without a call, answer with one JSON value alone, without a word around it, that fits this JSON \
                 Schema: {schema}"
            );
            told.system.push(json!({ "text": told_schema }));
        }
    }
    let mut body = Map::new();
    if !told.system.is_empty() {
        body.insert(
            "systemInstruction".to_owned(),
            json!({ "parts": told.system }),
        );
    }
    told.end();
    body.insert("contents".to_owned(), told.contents());
    if !told.tools.is_empty() {
        body.insert(
            "tools".to_owned(),
            json!([{ "functionDeclarations": told.tools }]),
        );
        if let Some(choice) = choice(&request.choice) {
            body.insert(
                "toolConfig".to_owned(),
                json!({ "functionCallingConfig": choice }),
            );
        }
    }
    body.insert(GENERATION.to_owned(), Json::Object(settings));
    for (key, value) in request.params.iter() {
        param(&mut body, key, value);
    }
    let settings = body.get(GENERATION).and_then(Json::as_object);
    if settings.is_some_and(Map::is_empty) {
        body.shift_remove(GENERATION);
    }
    Json::Object(body)
}

/// Returns the generation of a model by its name, `gemini-2.5-flash`. Names without a number are those of the newest one.
fn generation(model: &str) -> u32 {
    let behind = model
        .rsplit('/')
        .next()
        .and_then(|name| name.strip_prefix("gemini-"));
    let number = behind.and_then(|name| name.split(['.', '-']).next()?.parse().ok());
    number.unwrap_or(if behind.is_some() { u32::MAX } else { 0 })
}

fn param(body: &mut Map<String, Json>, key: &str, value: &Json) {
    if key == "stream" {
        return;
    }
    let settings = body.entry(GENERATION).or_insert_with(|| json!({}));
    let named = NAMES.iter().find(|(name, _)| *name == key);
    if let (Some((_, name)), Json::Object(settings)) = (named, &mut *settings) {
        // `stop` may be one text elsewhere; here it is a list.
        let value = match value {
            Json::String(_) if key == "stop" => json!([value]),
            value => value.clone(),
        };
        set(settings, name, value);
    } else if let ("reasoning_effort", Json::Object(settings)) = (key, settings) {
        let level = value.as_str().unwrap_or_default().to_uppercase();
        set(
            settings,
            "thinkingConfig",
            json!({ "thinkingLevel": level }),
        );
    } else {
        set(body, key, value.clone());
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

/// Kind of a turn: results stand alone.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Of {
    User,
    Model,
    Results,
}

/// The turns of a conversation.
#[derive(Default)]
struct Told {
    turns: Vec<(Of, Vec<Json>)>,
    system: Vec<Json>,
    tools: Vec<Json>,
    /// Ids that the provider gave to calls, by label.
    ids: BTreeMap<String, Json>,
    /// True if the model wants a signature at the first call of each answer.
    is_signed: bool,
}

impl Told {
    fn push(&mut self, content: &Content) {
        match content {
            Content::System(text) if self.turns.is_empty() => self.system.extend(part(text)),
            // The protocol has one system prompt, at the beginning; later system texts are sent as the user's.
            Content::System(text) | Content::User(text) => self.say(Of::User, part(text)),
            Content::File(file) => self.say(Of::User, file_part(file)),
            Content::Tools(list) => self.tools.extend(list.iter().map(tool)),
            Content::Assistant {
                text,
                calls,
                opaque,
            } => {
                let parts = self.assistant(text.as_deref(), calls, opaque.as_deref());
                self.say(Of::Model, parts);
            }
            Content::Result {
                label,
                name,
                text,
                error,
            } => {
                let key = if *error { "error" } else { "output" };
                let mut response = json!({ "name": name, "response": { key: text } });
                if let Some(id) = self.ids.get(label) {
                    response["id"] = id.clone();
                }
                self.say(Of::Results, [json!({ "functionResponse": response })]);
            }
        }
    }

    fn assistant(
        &mut self,
        text: Option<&str>,
        calls: &[CallSpec],
        opaque: Option<&str>,
    ) -> Vec<Json> {
        let (parts, _) = in_order((opaque, KEY), text, calls.len());
        let mut said = Vec::new();
        for one in parts {
            match one {
                Part::Block(_) => {}
                // A signature may come alone, at the end of a stream.
                Part::Text(text, with) if !with.is_empty() => {
                    said.push(merged(json!({ "text": text }), with));
                }
                Part::Text(text, _) => said.extend(part(text)),
                Part::Call(n, mut with) => {
                    let call = &calls[n];
                    let mut function = json!({ "name": call.name, "args": arguments(&call.args) });
                    match with.shift_remove("id") {
                        Some(id) => {
                            function["id"] = id.clone();
                            self.ids.insert(call.label.clone(), id);
                        }
                        None => drop(self.ids.remove(&call.label)),
                    }
                    said.push(merged(json!({ "functionCall": function }), with));
                }
            }
        }
        let mut made = said
            .iter_mut()
            .filter(|part| part.get("functionCall").is_some());
        let first = made.next();
        if let Some(first) = first.filter(|first| first.get("thoughtSignature").is_none())
            && self.is_signed
            && made.all(|part| part.get("thoughtSignature").is_none())
        {
            first["thoughtSignature"] = json!(UNSIGNED);
        }
        said
    }

    /// Appends parts. The first turn is the user's.
    fn say(&mut self, of: Of, parts: impl IntoIterator<Item = Json>) {
        let mut parts = parts.into_iter().peekable();
        if parts.peek().is_none() {
            return;
        }
        if self.turns.is_empty() && of != Of::User {
            self.turns.push((Of::User, vec![json!({ "text": BEGIN })]));
        }
        match self.turns.last_mut() {
            Some((last, list)) if *last == of => list.extend(parts),
            _ => self.turns.push((of, parts.collect())),
        }
    }

    /// Ends the request: the user has the last word.
    fn end(&mut self) {
        match self.turns.last() {
            None => self.say(Of::User, part(BEGIN)),
            Some((Of::Model, _)) => self.say(Of::User, part(GO_ON)),
            Some(_) => {}
        }
    }

    fn contents(&mut self) -> Json {
        let turns = std::mem::take(&mut self.turns).into_iter();
        let content = |(of, parts): (Of, Vec<Json>)| {
            let role = if of == Of::Model { "model" } else { "user" };
            json!({ "role": role, "parts": Json::Array(parts) })
        };
        turns.map(content).collect()
    }
}

fn merged(mut part: Json, with: Map<String, Json>) -> Json {
    if let Json::Object(fields) = &mut part {
        fields.extend(with);
    }
    part
}

/// Returns a text as a part; `None` if it is empty, since the protocol refuses empty parts.
fn part(text: &str) -> Option<Json> {
    (!text.trim().is_empty()).then(|| json!({ "text": text }))
}

/// Returns a file as a part, or the text in its place. The provider takes no GIF.
fn file_part(file: &FilePart) -> Option<Json> {
    match carried(file) {
        Ok(carried) if carried.media == "image/gif" => {
            part(&file.not_shown("this provider takes no image/gif"))
        }
        Ok(carried) => {
            let data = json!({ "mimeType": carried.media, "data": carried.data });
            Some(json!({ "inlineData": data }))
        }
        Err(text) => part(&text),
    }
}

fn tool(spec: &ToolSpec) -> Json {
    json!({
        "name": spec.name, "description": spec.description, "parametersJsonSchema": strict::read(&spec.parameters),
    })
}

fn choice(choice: &ToolChoice) -> Option<Json> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::Any => Some(json!({ "mode": "ANY" })),
        ToolChoice::None => Some(json!({ "mode": "NONE" })),
        ToolChoice::Tool(name) => Some(json!({ "mode": "ANY", "allowedFunctionNames": [&**name] })),
    }
}
