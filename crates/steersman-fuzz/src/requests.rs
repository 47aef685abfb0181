//! Requests around what a model wrote.

use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_machine::context::{CallSpec, Content, Request, Segment};
use steersman_machine::network::{CallStyle, Part, ToolChoice};
use steersman_machine::questions::{Purpose, ToolSpec};
use steersman_machine::stored::ids::Digest;
use steersman_machine::stored::outcome::Answer;

/// Returns a request of these contents.
pub(crate) fn request(contents: Vec<Content>) -> Request {
    let segments = contents.into_iter().map(|content| {
        let part = match &content {
            Content::System(_) => Part::System,
            Content::Tools(_) => Part::Tools,
            Content::User(_)
            | Content::File(_)
            | Content::Assistant { .. }
            | Content::Result { .. } => Part::History,
        };
        Arc::new(Segment {
            part,
            digest: Digest::of(b"segment"),
            len: 0,
            content,
        })
    });
    Request {
        model: "default".into(),
        purpose: Purpose::Answer,
        segments: segments.collect(),
        params: Arc::new([]),
        choice: ToolChoice::Auto,
        output: None,
        prefill: None,
        calls: CallStyle::Native,
        digest: Digest::of(b"request"),
        prefix: 0,
        broke: None,
    }
}

/// Returns an answer as a part of a history.
pub(crate) fn assistant(answer: &Answer) -> Content {
    let calls = answer.asks.iter().map(|ask| CallSpec {
        label: ask.label.clone().unwrap_or_default(),
        name: ask.name.clone(),
        args: ask.args.clone(),
    });
    Content::Assistant {
        text: answer.text.clone(),
        calls: calls.collect(),
        opaque: answer.opaque.clone(),
    }
}

/// Returns two tools, `add` and `look`.
pub(crate) fn tools() -> Content {
    let tool = |name: &str, parameters: Json| ToolSpec {
        name: name.to_owned(),
        description: "Does something.".to_owned(),
        parameters: parameters.to_string(),
    };
    let number = json!({ "type": "integer" });
    Content::Tools(vec![
        tool(
            "add",
            json!({ "type": "object", "properties": { "a": number, "b": number } }),
        ),
        tool("look", json!({ "type": "object" })),
    ])
}
