//! Encodes a neutral request as the JSON of OpenAI Responses. Pure: the same request gives the same bytes.
//!
//! The whole conversation is sent each time, and nothing is stored at the provider. So reasoning goes back in its encrypted form, in
//! front of what it led to; reasoning without that form is left out, because the provider does not know it any more.

use super::stream::KEY;
use crate::strict;
use crate::wire::answer::{Ids, Part, arguments, in_order};
use crate::wire::files::{self, carried};
use serde_json::{Map, Value as Json, json};
use steersman_machine::context::{CallSpec, Content, FilePart, Request};
use steersman_machine::network::{FileKind, ToolChoice};
use steersman_machine::questions::ToolSpec;

/// Longest id of a call that the provider accepts, in bytes.
const ID_MAX: usize = 64;
/// Element of an answer that is asked for in addition: the reasoning in a form that can be sent back.
const REASONING: &str = "reasoning.encrypted_content";

/// Returns the body of the request for this model. `has_reasoning` is false if the model is known to refuse encrypted reasoning.
pub fn encode(request: &Request, model: &str, has_reasoning: bool) -> Json {
    let (mut input, mut tools, mut ids) = (Vec::new(), Vec::new(), Ids::within(ID_MAX));
    for segment in &request.segments {
        match &segment.content {
            Content::System(text) => say(&mut input, "system", text, &Map::new()),
            Content::User(text) => say(&mut input, "user", text, &Map::new()),
            Content::File(file) => attach(&mut input, file),
            Content::Tools(list) => tools.extend(list.iter().map(tool)),
            Content::Assistant {
                text,
                calls,
                opaque,
            } => {
                let said = (text.as_deref(), opaque.as_deref());
                assistant(&mut input, said, calls, &mut ids);
            }
            Content::Result {
                label, text, error, ..
            } => {
                // The protocol cannot mark a result as an error, so the text says it.
                let output = if *error {
                    format!("Error: {text}")
                } else {
                    text.clone()
                };
                input.push(json!({ "type": "function_call_output", "call_id": ids.of(label), "output": output }));
            }
        }
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("input".to_owned(), Json::Array(input));
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Json::Array(tools));
        if let Some(choice) = choice(&request.choice) {
            body.insert("tool_choice".to_owned(), choice);
        }
    }
    if let Some(schema) = &request.output {
        let (strict, schema) = strict::enforced(schema);
        let format =
            json!({ "type": "json_schema", "name": "answer", "strict": strict, "schema": schema });
        body.insert("text".to_owned(), json!({ "format": format }));
    }
    body.insert("store".to_owned(), json!(false));
    if has_reasoning {
        body.insert("include".to_owned(), json!([REASONING]));
    }
    body.insert("stream".to_owned(), json!(true));
    for (key, value) in request.params.iter() {
        param(&mut body, key, value);
    }
    Json::Object(body)
}

fn param(body: &mut Map<String, Json>, key: &str, value: &Json) {
    let effort;
    let (key, value) = match key {
        "max_tokens" => ("max_output_tokens", value),
        // The name of the same parameter in chat completions.
        "reasoning_effort" => {
            effort = json!({ "effort": value });
            ("reasoning", &effort)
        }
        key => (key, value),
    };
    match (value, body.get_mut(key)) {
        // A parameter that is set to `none` removes the field that would be sent by default.
        (Json::Null, _) => drop(body.shift_remove(key)),
        // The definition may set other fields of `text` and `reasoning`, so objects are merged.
        (Json::Object(more), Some(Json::Object(ours))) => ours.extend(more.clone()),
        _ => drop(body.insert(key.to_owned(), value.clone())),
    }
}

/// Appends a message. The provider refuses messages without a text.
fn say(input: &mut Vec<Json>, role: &str, text: &str, with: &Map<String, Json>) {
    if text.trim().is_empty() {
        return;
    }
    let mut message = json!({ "role": role, "content": text });
    if let Some(fields) = message.as_object_mut() {
        fields.extend(with.clone());
    }
    input.push(message);
}

/// Appends a file to the last message, if that is the user's; or the text in its place.
fn attach(input: &mut Vec<Json>, file: &FilePart) {
    let carried = match carried(file) {
        Ok(carried) => carried,
        Err(text) => return say(input, "user", &text, &Map::new()),
    };
    let url = carried.url();
    let part = match carried.kind {
        FileKind::Image => json!({ "type": "input_image", "image_url": url }),
        FileKind::Pdf => json!({ "type": "input_file", "filename": file.name, "file_data": url }),
    };
    match input.last_mut().filter(|last| last["role"] == "user") {
        Some(last) => files::parts(&mut last["content"], "input_text").push(part),
        None => input.push(json!({ "role": "user", "content": [part] })),
    }
}

/// Appends the items of an answer, in their original order, if it is known.
fn assistant(
    input: &mut Vec<Json>,
    (text, opaque): (Option<&str>, Option<&str>),
    calls: &[CallSpec],
    ids: &mut Ids,
) {
    let (parts, is_known) = in_order((opaque, KEY), text, calls.len());
    let mut items = Vec::new();
    for part in parts {
        match part {
            // Reasoning is refused without the item that it led to, and at the end.
            Part::Block(item) if is_known => items.push(item),
            Part::Block(_) => {}
            Part::Text(text, with) => say(&mut items, "assistant", text, &with),
            Part::Call(n, _) => {
                let call = &calls[n];
                items.push(json!({
                    "type": "function_call", "call_id": ids.call(&call.label), "name": call.name,
                    "arguments": written(&call.args),
                }));
            }
        }
    }
    while items.last().is_some_and(|item| item["type"] == "reasoning") {
        items.pop();
    }
    input.extend(items);
}

/// Returns the arguments of a call as a text that holds an object.
fn written(args: &str) -> String {
    match serde_json::from_str::<Json>(args) {
        Ok(Json::Object(_)) => args.to_owned(),
        _ => arguments(args).to_string(),
    }
}

/// Without `strict` the provider would take the parameters as strict, and make optional ones required.
fn tool(spec: &ToolSpec) -> Json {
    let parameters = serde_json::from_str::<Json>(&spec.parameters)
        .unwrap_or_else(|_| json!({ "type": "object" }));
    json!({
        "type": "function", "name": spec.name, "description": spec.description, "parameters": parameters, "strict": false,
    })
}

fn choice(choice: &ToolChoice) -> Option<Json> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::Any => Some(json!("required")),
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Tool(name) => Some(json!({ "type": "function", "name": &**name })),
    }
}
