//! Texts of spans, in the JSON that the conventions give them. The reader masks secrets.

use super::Span;
use crate::reader::Reader;
use serde_json::{Value as Json, json};
use steersman_machine::context::{Content, FilePart, RenderCache, request};
use steersman_machine::network::{FileKind, Network};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::{Commit, LogLine};
use steersman_machine::stored::ids::{Body, Id};
use steersman_machine::stored::interaction::{Call, CallResult, Interaction, calls_of_answer};
use steersman_machine::view::Cx;
use steersman_runtime::engine::EngineError;

/// Sets the arguments and the result of a call.
pub(super) async fn of_call(
    span: &mut Span,
    reader: &dyn Reader,
    call: Id,
    result: Option<&CallResult>,
) -> Result<(), EngineError> {
    let line = reader.line(call.line()).await?;
    if let Some(call) = opened(&line, call) {
        let args = text(reader, call.args).await?;
        span.set("gen_ai.tool.call.arguments", args);
    }
    if let Some(body) = result.and_then(|result| result.body) {
        let result = text(reader, body).await?;
        span.set("gen_ai.tool.call.result", result);
    }
    Ok(())
}

/// Sets the messages that a model got, and its answer.
pub(super) async fn of_model(
    span: &mut Span,
    reader: &dyn Reader,
    network: &Network,
    before: &Snapshot,
    (effect, agent): (Id, Id),
    commit: &Commit,
) -> Result<(), EngineError> {
    asked(span, reader, network, before, agent);
    let pushed: Vec<&Interaction> = (commit.pushes.iter())
        .filter(|push| push.agent == agent)
        .map(|push| &push.what)
        .collect();
    let answer = pushed.iter().position(
        |what| matches!(what, Interaction::AssistantMessage { effect: of, .. } if *of == effect),
    );
    let Some(at) = answer else { return Ok(()) };
    let mut parts = Vec::new();
    if let Interaction::AssistantMessage {
        text: Some(body), ..
    } = pushed[at]
    {
        parts.push(part(&text(reader, *body).await?));
    }
    let calls: Vec<_> = calls_of_answer(pushed[at + 1..].iter().copied()).collect();
    for call in calls {
        let args = text(reader, call.args).await?;
        parts.push(json!({
            "type": "tool_call",
            "id": call.label.as_deref().map_or_else(|| call.id.to_string(), str::to_owned),
            "name": &*call.called(),
            "arguments": parsed(&args),
        }));
    }
    let answer = Json::from(vec![message("assistant", parts)]);
    span.set("gen_ai.output.messages", answer.to_string());
    Ok(())
}

/// Sets the messages that a model got. A context that cannot be rendered any more is left out.
fn asked(span: &mut Span, reader: &dyn Reader, network: &Network, before: &Snapshot, agent: Id) {
    let cx = Cx {
        network,
        bodies: reader,
    };
    if let Ok(request) = request(&cx, reader, before, agent, &mut RenderCache::default()) {
        let (mut system, mut tools, mut messages) = (Vec::new(), Vec::new(), Vec::new());
        for segment in &request.segments {
            match &segment.content {
                Content::System(text) => system.push(json!({ "type": "text", "content": text })),
                Content::Tools(all) => tools.extend(all.iter().map(|tool| {
                    json!({
                        "type": "function",
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": parsed(&tool.parameters),
                    })
                })),
                Content::User(text) => messages.push(message("user", vec![part(text)])),
                Content::File(file) => messages.push(message("user", vec![part_of(file)])),
                Content::Assistant { text, calls, .. } => {
                    let calls = calls.iter().map(|call| {
                        json!({
                            "type": "tool_call",
                            "id": call.label,
                            "name": call.name,
                            "arguments": parsed(&call.args),
                        })
                    });
                    let parts = text.iter().map(|text| part(text)).chain(calls);
                    messages.push(message("assistant", parts.collect()));
                }
                Content::Result { label, text, .. } => {
                    let part =
                        json!({ "type": "tool_call_response", "id": label, "response": text });
                    messages.push(message("tool", vec![part]));
                }
            }
        }
        span.set("gen_ai.system_instructions", Json::from(system).to_string());
        span.set("gen_ai.tool.definitions", Json::from(tools).to_string());
        span.set("gen_ai.input.messages", Json::from(messages).to_string());
    }
}

fn message(role: &str, parts: Vec<Json>) -> Json {
    json!({ "role": role, "parts": parts })
}

fn part(text: &str) -> Json {
    json!({ "type": "text", "content": text })
}

/// Returns a file without its content: it is named by the digest under which the session's store has it.
fn part_of(file: &FilePart) -> Json {
    let modality = match file.kind() {
        Some(FileKind::Image) => "image",
        Some(FileKind::Pdf) | None => "document",
    };
    json!({
        "type": "file",
        "modality": modality,
        "mime_type": file.media,
        "file_id": file.digest(),
        "name": file.name,
        "bytes": file.len,
    })
}

fn parsed(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Returns a text. Its line is read first, so that looking it up does not block the thread on the store.
async fn text(reader: &dyn Reader, body: Body) -> Result<String, EngineError> {
    reader.line(body.line()).await?;
    Ok(reader.text(body).to_string())
}

fn opened(line: &LogLine, id: Id) -> Option<&Call> {
    let commit = line.commit.as_ref()?;
    commit.pushes.iter().find_map(|push| match &push.what {
        Interaction::Call(call) if call.id == id => Some(call),
        _ => None,
    })
}
