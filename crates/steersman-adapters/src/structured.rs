//! Tools for models without native tools: described in the prompt, called by a JSON answer.
//!
//! There are two styles. *Structured*: the server constrains the answer to a JSON Schema, with one branch for each tool and one
//! for an answer, so it always parses. *Text*: nothing is constrained; the first JSON object `{ tool, arguments }` in the text
//! is the call, repaired within bounds. Both rewrite the neutral request before it is encoded, and the answer after it is
//! decoded; the machine sees the same as with native tools.

mod read;

pub use read::{Peek, read};

use serde_json::{Map, Value as Json, json};
use std::fmt::Write as _;
use std::sync::Arc;
use steersman_machine::context::{CallSpec, Content, Request, Segment};
use steersman_machine::network::{CallStyle, ToolChoice};
use steersman_machine::questions::ToolSpec;
use steersman_machine::stored::ids::Digest;

/// Style of calling tools without native support.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Style {
    /// The answer is one JSON object of a given schema.
    Structured,
    /// The answer is text that may contain an object.
    Text,
}

/// Returns the tools of a request, in its order.
pub fn tools(request: &Request) -> impl Iterator<Item = &ToolSpec> {
    request
        .segments
        .iter()
        .flat_map(|segment| match &segment.content {
            Content::Tools(list) => list.as_slice(),
            Content::System(_)
            | Content::User(_)
            | Content::File(_)
            | Content::Assistant { .. }
            | Content::Result { .. } => &[],
        })
}

/// Returns the request with its tools and calls as text instead of native ones. A request that has neither tools nor calls in its
/// history is returned unchanged.
pub fn tell(request: &Request, style: Style) -> Request {
    let offered = offered(request);
    let segments = request.segments.iter().filter_map(|segment| {
        let content = match &segment.content {
            Content::System(_) | Content::User(_) | Content::File(_) => {
                return Some(Arc::clone(segment));
            }
            Content::Tools(_) if offered.is_empty() => return None,
            Content::Tools(_) => Content::System(prompt(request, &offered, style)),
            Content::Assistant { text, calls, .. } => Content::Assistant {
                text: Some(said(text.as_deref(), calls, style, !offered.is_empty())),
                calls: Vec::new(),
                opaque: None,
            },
            Content::Result {
                name, text, error, ..
            } => {
                let word = if *error { "Error" } else { "Result" };
                Content::User(format!("{word} of {name}: {text}"))
            }
        };
        Some(Arc::new(Segment {
            part: segment.part,
            digest: Digest::of(format!("{content:?}").as_bytes()),
            len: segment.len,
            content,
        }))
    });
    let constrained = !offered.is_empty() && style == Style::Structured;
    Request {
        segments: segments.collect(),
        choice: ToolChoice::Auto,
        output: if constrained {
            Some(schema(request, &offered).to_string().into())
        } else if offered.is_empty() {
            request.output.clone()
        } else {
            None
        },
        // If every answer must be an object of the schema, a prefill is not possible.
        prefill: if constrained {
            None
        } else {
            request.prefill.clone()
        },
        calls: CallStyle::Native,
        ..request.clone()
    }
}

/// Returns the tools that may be called in this answer.
fn offered(request: &Request) -> Vec<&ToolSpec> {
    match &request.choice {
        ToolChoice::None => Vec::new(),
        ToolChoice::Auto | ToolChoice::Any => tools(request).collect(),
        ToolChoice::Tool(name) => tools(request).filter(|tool| *tool.name == **name).collect(),
    }
}

fn must_call(request: &Request) -> bool {
    matches!(request.choice, ToolChoice::Any | ToolChoice::Tool(_))
}

fn prompt(request: &Request, offered: &[&ToolSpec], style: Style) -> String {
    let mut text = "You can call these tools:\n".to_owned();
    for tool in offered {
        let description = tool.description.trim();
        let _ = write!(text, "- {}", tool.name);
        if !description.is_empty() {
            let _ = write!(text, ": {description}");
        }
        let _ = writeln!(text, " Arguments, as JSON Schema: {}", tool.parameters);
    }
    let call = r#"{"tool": "NAME", "arguments": {...}}"#;
    let _ = match (style, must_call(request)) {
        (Style::Structured, false) => write!(
            text,
            "Answer with one JSON object and nothing else. To call a tool: {call}. When you need no tool, answer the \
             user: {{\"answer\": \"...\"}}."
        ),
        (Style::Structured, true) => {
            write!(
                text,
                "Answer with one JSON object and nothing else. You must call a tool: {call}."
            )
        }
        (Style::Text, false) => write!(
            text,
            "To call a tool, write one JSON object {call} and stop. When you need no tool, answer in plain text."
        ),
        (Style::Text, true) => write!(
            text,
            "You must call a tool: write one JSON object {call} and stop."
        ),
    };
    match (&request.output, style, must_call(request)) {
        (Some(schema), Style::Text, false) => {
            let _ = write!(
                text,
                " The answer is JSON that fits this JSON Schema: {schema}"
            );
        }
        (Some(_), Style::Structured, false) => {
            text.push_str(" The answer is JSON of the given schema.");
        }
        _ => {}
    }
    text
}

/// Returns an earlier message of the model in the form that the prompt asks for.
fn said(text: Option<&str>, calls: &[CallSpec], style: Style, offered: bool) -> String {
    let mut parts = Vec::new();
    match text {
        Some(text) if calls.is_empty() && offered && style == Style::Structured => {
            parts.push(json!({ "answer": text }).to_string());
        }
        Some(text) => parts.push(text.to_owned()),
        None => {}
    }
    parts.extend(calls.iter().map(said_call));
    parts.join("\n")
}

/// Returns a call as an object. An object of arguments is written as the model wrote it, so that no digit of a number is lost;
/// any other arguments are a text.
fn said_call(call: &CallSpec) -> String {
    let name = json!(call.name);
    let with = |args: &str| format!(r#"{{"tool":{name},"arguments":{args}}}"#);
    // The arguments alone, because a text that is no object could go on as further fields of the call; and the call, because
    // an object may be too deep within it.
    let is_object = serde_json::from_str::<Map<String, Json>>(&call.args).is_ok();
    let object = is_object.then(|| with(&call.args));
    let object = object.filter(|call| serde_json::from_str::<Json>(call).is_ok());
    object.unwrap_or_else(|| with(&json!(call.args).to_string()))
}

/// Returns the schema of the answer: `anyOf` of a call for each tool, and of a plain answer if that is allowed.
fn schema(request: &Request, offered: &[&ToolSpec]) -> Json {
    let single = offered.len() == 1 && must_call(request);
    let mut branches = offered
        .iter()
        .enumerate()
        .map(|(index, tool)| {
            let mut arguments =
                serde_json::from_str::<Json>(&tool.parameters).unwrap_or_else(|_| json!({}));
            let at = if single {
                "#/properties/arguments".to_owned()
            } else {
                format!("#/anyOf/{index}/properties/arguments")
            };
            rebase(&mut arguments, &at);
            object(&[
                ("tool", json!({ "const": tool.name })),
                ("arguments", arguments),
            ])
        })
        .collect::<Vec<_>>();
    if single {
        return branches.remove(0);
    }
    if !must_call(request) {
        let mut answer = match &request.output {
            Some(schema) => serde_json::from_str::<Json>(schema).unwrap_or_else(|_| json!({})),
            None => json!({ "type": "string" }),
        };
        rebase(
            &mut answer,
            &format!("#/anyOf/{}/properties/answer", branches.len()),
        );
        branches.push(object(&[("answer", answer)]));
    }
    json!({ "anyOf": branches })
}

fn object(fields: &[(&str, Json)]) -> Json {
    let properties = fields
        .iter()
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()));
    let required = fields.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    json!({
        "type": "object",
        "properties": properties.collect::<Map<_, _>>(),
        "required": required,
        "additionalProperties": false,
    })
}

/// Adjusts the references within a schema that has moved to this place in a larger one.
fn rebase(schema: &mut Json, at: &str) {
    match schema {
        Json::Object(map) => {
            map.remove("$schema");
            map.remove("$id");
            for (key, value) in map {
                match value {
                    Json::String(to) if key == "$ref" => {
                        if let Some(path) = to.strip_prefix('#') {
                            *to = format!("{at}{path}");
                        }
                    }
                    other => rebase(other, at),
                }
            }
        }
        Json::Array(list) => list.iter_mut().for_each(|item| rebase(item, at)),
        _ => {}
    }
}
