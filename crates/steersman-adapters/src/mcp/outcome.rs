//! Outcomes of calls, from the server's answer or from the failure that came instead.
//!
//! ```text
//! the connection was not there, or the message never left      not performed
//! an error that says that nothing was begun (-32600..-32602,
//!   -32700; status 4xx but 404 and 408)                         not performed
//! a result with `isError`                                       it ran, and failed
//! a result                                                      done
//! all else: any other error; a result that wants more input, is
//!   the handle of a task or of a kind that is not known here;
//!   the connection ended; no answer; garbage                    unknown
//! ```

use super::access::{Access, Lack};
use super::content::{self, Piece};
use super::linked::Linked;
use super::pipe::UNREADABLE;
use crate::masked::Mask;
use crate::schema::Schemas;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ServiceError;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, ErrorData, Resource, ResourceContents};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::{HttpStatusError, StreamableHttpError};
use serde_json::Value as Json;
use std::error::Error;
use std::sync::Arc;
use steersman_machine::stored::bounds::PREVIEW;
use steersman_machine::stored::codes::{self, Code};
use steersman_machine::values::json;
use steersman_machine::view::artifact::Content;
use steersman_machine::view::mapping::{Fault, Raw};

/// Maximum number of bytes of a text in a result. A longer text becomes an artifact.
const TEXT_MAX: usize = 8 << 20;
/// Maximum number of bytes of an error that a fault quotes.
const TOLD_MAX: usize = 2_000;

pub(super) fn not_performed(message: impl Into<String>, again: Option<u64>) -> Raw {
    Raw::NotPerformed(Fault {
        again,
        ..Fault::new(Code::Failed, message)
    })
}

pub(super) fn unknown(code: Code, message: impl Into<String>) -> Raw {
    Raw::Unknown(Fault::new(code, message))
}

/// Turns a server's result into an outcome, checked against the tool's declared schema. `rounded`: the result was parsed by a
/// library that rounds whole numbers beyond 64 bits. `linked`: the resources that the result links to.
pub(super) async fn result(
    result: CallToolResult,
    output: Option<(&Arc<str>, &Schemas)>,
    (rounded, linked): (bool, Linked),
    makes: &str,
    mask: &Mask,
) -> Raw {
    let failed = result.is_error == Some(true);
    let structured = result.structured_content;
    let (mut text, mut pieces) = read(result.content, linked);
    if !failed && structured.is_none() && text.len() > TEXT_MAX {
        let piece = Piece {
            name: Some("text.txt".to_owned()),
            media: "text/plain".to_owned(),
            bytes: text.as_bytes().into(),
        };
        pieces.insert(0, piece);
        text = format!(
            "(it has {} bytes; all of it is the artifact below; it begins:)\n{}",
            text.len(),
            mask.first(&text, PREVIEW)
        );
    }
    let (made, left_out) = content::made(makes, pieces);
    if left_out > 0 {
        text = format!(
            "{text}
({left_out} more pieces of content were left out)"
        );
    }
    if failed {
        let said = if text.trim().is_empty() {
            structured.map_or_else(|| "the server gave no reason".to_owned(), |s| s.to_string())
        } else {
            text
        };
        return Raw::Failed(Fault::new(Code::Failed, mask.first(said.trim(), TOLD_MAX)));
    }
    let json = match structured {
        Some(structured) => {
            // Most servers also return the structured content as text.
            let structured = if !rounded || !is_rounded(&structured) {
                structured
            } else if let Some(exact) = exact_from(&text, &structured) {
                exact
            } else {
                let message = "it was carried out, but its result holds a whole number that 64 bits do not hold, and over \
                               HTTP its digits are lost: the server has to give it as text";
                return Raw::Failed(Fault::new(Code::Misfit, message));
            };
            let misfit = match output {
                Some((schema, schemas)) => {
                    schemas
                        .misfit_masked(schema, structured.clone(), mask)
                        .await
                }
                None => None,
            };
            if let Some(why) = misfit {
                let message = format!(
                    "it was carried out, but its result does not match the schema that the server declares: {why}"
                );
                return Raw::Failed(Fault::new(Code::Misfit, message));
            }
            structured
        }
        None => of_text(text),
    };
    if made.is_empty() {
        Raw::Done(json)
    } else {
        Raw::Made {
            result: json,
            made,
            writes: Vec::new(),
            mode: None,
        }
    }
}

/// Returns true if a whole number beyond 64 bits may have been rounded.
fn is_rounded(json: &Json) -> bool {
    match json {
        Json::Number(number) => {
            let float = number.as_f64().filter(|_| number.is_f64());
            float.is_some_and(|float| float.fract() == 0.0 && float.abs() >= -(i64::MIN as f64))
        }
        Json::Array(list) => list.iter().any(is_rounded),
        Json::Object(fields) => fields.values().any(is_rounded),
        Json::Null | Json::Bool(_) | Json::String(_) => false,
    }
}

/// Returns the JSON with exact numbers, from a text that contains the same JSON. `None` if the text contains something else.
fn exact_from(text: &str, rounded: &Json) -> Option<Json> {
    let same = serde_json::from_str::<Json>(text).is_ok_and(|said| said == *rounded);
    same.then(|| json::read(text).ok()).flatten()
}

/// Returns a text as JSON if it looks like JSON, otherwise as a string; an empty text is `null`.
fn of_text(text: String) -> Json {
    if text.is_empty() {
        return Json::Null;
    }
    if text.trim_start().starts_with(['{', '[']) {
        return json::read(&text).unwrap_or(Json::String(text));
    }
    Json::String(text)
}

/// Splits a result into its text and its other content.
fn read(blocks: Vec<ContentBlock>, mut linked: Linked) -> (String, Vec<Piece>) {
    let (mut parts, mut content) = (Vec::new(), Vec::new());
    for block in blocks {
        match block {
            ContentBlock::Text(text) => parts.push(text.text),
            ContentBlock::Image(image) => {
                parts.extend(attach(&mut content, None, image.mime_type, &image.data));
            }
            ContentBlock::Audio(audio) => {
                parts.extend(attach(&mut content, None, audio.mime_type, &audio.data));
            }
            ContentBlock::Resource(embedded) => {
                parts.extend(resource(&mut content, embedded.resource));
            }
            ContentBlock::ResourceLink(link) => {
                let came = linked.remove(&link.uri);
                parts.push(link_of(&mut content, link, came));
            }
            _ => parts.push("(content of a kind that is not known here)".to_owned()),
        }
    }
    (parts.join("\n"), content)
}

/// Describes a link, and adds the contents of its resource. `came`: `None` if it was not asked for, or is there already.
fn link_of(
    content: &mut Vec<Piece>,
    link: Resource,
    came: Option<Result<Vec<ResourceContents>, String>>,
) -> String {
    let Resource {
        uri,
        name,
        mime_type,
        ..
    } = link;
    let media = mime_type
        .as_ref()
        .map_or_else(String::new, |m| format!(", {m}"));
    let contents = match came {
        None => return format!("(resource {name}: {uri}{media})"),
        Some(Err(why)) => return format!("(resource {name}: {uri}{media}; not read: {why})"),
        Some(Ok(contents)) => contents,
    };
    let mut said = format!("(resource {name}: {uri}{media}; an artifact)");
    let is_one = contents.len() == 1;
    for one in contents {
        let named = |of: &str| Some(if is_one { name.clone() } else { last_part(of) });
        let bad = match one {
            ResourceContents::TextResourceContents {
                uri,
                mime_type: own,
                text,
                ..
            } => {
                let media = own.or_else(|| mime_type.clone());
                content.push(Piece {
                    name: named(&uri),
                    media: media.unwrap_or_else(|| "text/plain".to_owned()),
                    bytes: text.as_bytes().into(),
                });
                None
            }
            ResourceContents::BlobResourceContents {
                uri,
                mime_type: own,
                blob,
                ..
            } => {
                let media = own.or_else(|| mime_type.clone());
                let media = media.unwrap_or_else(|| "application/octet-stream".to_owned());
                attach(content, named(&uri), media, &blob)
            }
            _ => Some("(a resource of a kind that is not known here)".to_owned()),
        };
        if let Some(bad) = bad {
            said.push('\n');
            said.push_str(&bad);
        }
    }
    said
}

fn resource(content: &mut Vec<Piece>, resource: ResourceContents) -> Option<String> {
    match resource {
        ResourceContents::TextResourceContents {
            uri,
            mime_type,
            text,
            ..
        } => {
            content.push(Piece {
                name: Some(last_part(&uri)),
                media: mime_type.unwrap_or_else(|| "text/plain".to_owned()),
                bytes: text.as_bytes().into(),
            });
            Some(format!("(resource {uri})\n{text}"))
        }
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            ..
        } => {
            let media = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            attach(content, Some(last_part(&uri)), media, &blob)
        }
        _ => Some("(a resource of a kind that is not known here)".to_owned()),
    }
}

/// Returns a name for people: the last part of an address.
fn last_part(uri: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or(uri);
    let last = path.trim_end_matches('/').rsplit('/').next();
    last.unwrap_or_default().to_owned()
}

/// Decodes content that is not text, and adds it to `content`. Returns a description if it cannot be decoded.
fn attach(
    content: &mut Vec<Piece>,
    name: Option<String>,
    media: String,
    data: &str,
) -> Option<String> {
    match STANDARD.decode(data) {
        Ok(bytes) => {
            content.push(Piece {
                name,
                media,
                bytes: bytes.into(),
            });
            None
        }
        Err(_) => Some(format!("({media}, which is not base64 as it should be)")),
    }
}

/// Turns an error into an outcome. `tail`: additional facts about the server's process, as the end of a sentence.
pub(super) fn fault(error: ServiceError, tail: &str, mask: &Mask) -> Raw {
    match error {
        ServiceError::McpError(error) => refused(&error, tail, mask),
        ServiceError::TransportSend(error) => unsent(&error, tail, mask),
        ServiceError::TransportClosed => unknown(
            Code::Failed,
            format!("the server went away before it answered{tail}"),
        ),
        other => unknown(
            Code::Failed,
            mask.first(&format!("{other}{tail}"), TOLD_MAX),
        ),
    }
}

/// Returns true if the server no longer knows the session of a request.
pub(super) fn is_expired(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else {
        return false;
    };
    let error: &(dyn Error + 'static) = &*error.error;
    matches!(
        error.downcast_ref(),
        Some(StreamableHttpError::<reqwest::Error>::SessionExpired)
    )
}

/// Returns what the server wants, if a request failed because of the sign-in.
pub(super) fn lack(error: &ServiceError, access: Option<&Access>) -> Option<Lack> {
    let ServiceError::TransportSend(error) = error else {
        return None;
    };
    let error: &(dyn Error + 'static) = &*error.error;
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>()? {
        StreamableHttpError::AuthRequired(_) => access?.lack(),
        _ => None,
    }
}

/// Masks tokens in everything that an outcome says: a server may return a token that it was sent.
pub(super) fn masked(raw: Raw, mask: &Mask) -> Raw {
    let text = |bytes: Arc<[u8]>| match std::str::from_utf8(&bytes) {
        Ok(text) => mask.all(text).into_bytes().into(),
        Err(_) => bytes,
    };
    let raw = match raw {
        Raw::Done(json) => Raw::Done(masked_json(json, mask)),
        Raw::Made {
            result,
            made,
            writes,
            mode,
        } => Raw::Made {
            result: masked_json(result, mask),
            made: made
                .into_iter()
                .map(|content| Content {
                    bytes: text(content.bytes),
                    ..content
                })
                .collect(),
            writes,
            mode,
        },
        raw => raw,
    };
    raw.map_fault(|fault| Fault {
        message: mask.all(&fault.message),
        ..fault
    })
}

fn masked_json(json: Json, mask: &Mask) -> Json {
    match json {
        Json::String(text) => Json::String(mask.all(&text)),
        Json::Array(list) => list.into_iter().map(|one| masked_json(one, mask)).collect(),
        Json::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (mask.all(&name), masked_json(value, mask)))
            .collect(),
        json => json,
    }
}

/// Returns the message of a failed outcome.
pub(super) fn words(raw: Raw) -> String {
    match raw {
        Raw::NotPerformed(fault) | Raw::Unknown(fault) | Raw::Failed(fault) => fault.message,
        Raw::Done(_) | Raw::Made { .. } => String::new(),
    }
}

/// Returns the outcome of an error that the server reported.
fn refused(error: &ErrorData, tail: &str, mask: &Mask) -> Raw {
    let message = mask.first(&error.message, TOLD_MAX);
    match error.code {
        UNREADABLE => unknown(
            Code::Failed,
            format!("its answer is not a result of a call: {message}{tail}"),
        ),
        ErrorCode::INVALID_REQUEST
        | ErrorCode::METHOD_NOT_FOUND
        | ErrorCode::INVALID_PARAMS
        | ErrorCode::PARSE_ERROR => not_performed(
            format!("the server refused: {message} ({})", error.code.0),
            None,
        ),
        code => unknown(
            Code::Failed,
            format!("the server failed: {message} ({})", code.0),
        ),
    }
}

/// Returns the outcome of a message that was not sent, or that may not have been sent.
fn unsent(error: &DynamicTransportError, tail: &str, mask: &Mask) -> Raw {
    let error: &(dyn Error + 'static) = &*error.error;
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        // A server reads a message only as a whole line, and this line was not written to its end.
        let message = format!("the server takes no more messages: {error}{tail}");
        return not_performed(message, Some(0));
    }
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) if error.is_connect() || error.is_builder() => {
            let message = format!("no connection: {}", causes(error, mask));
            not_performed(message, Some(0))
        }
        Some(StreamableHttpError::Client(error)) => unknown(
            Code::Failed,
            format!(
                "the connection ended before an answer: {}",
                causes(error, mask)
            ),
        ),
        Some(StreamableHttpError::AuthRequired(_)) => {
            not_performed("the server wants other credentials (status 401)", None)
        }
        Some(StreamableHttpError::InsufficientScope(_)) => {
            not_performed("the credentials do not suffice (status 403)", None)
        }
        Some(StreamableHttpError::SessionExpired) => Raw::Unknown(Fault {
            status: Some(404),
            again: Some(0),
            ..Fault::new(
                codes::http(404),
                "the server does not know the session any more (status 404), which does not prove that nothing was done",
            )
        }),
        Some(StreamableHttpError::HttpStatus(status)) => of_status(status),
        Some(StreamableHttpError::UnexpectedServerResponse(said)) => {
            let said = mask.first(said, TOLD_MAX);
            // The status is only available in the text that the client library makes of it.
            let proves_nothing = ["HTTP 404", "HTTP 408"];
            let proves_nothing = proves_nothing.iter().any(|head| said.starts_with(head));
            if said.starts_with("HTTP 4") && !proves_nothing {
                not_performed(format!("the server refused: {said}"), None)
            } else {
                unknown(
                    Code::Failed,
                    format!("its answer is not a result of a call: {said}"),
                )
            }
        }
        Some(error) => unknown(Code::Failed, mask.first(&error.to_string(), TOLD_MAX)),
        None => unknown(Code::Failed, causes(error, mask)),
    }
}

fn of_status(status: &HttpStatusError) -> Raw {
    let pause = status.retry_after.as_deref();
    let pause = pause.and_then(|text| text.trim().parse::<u64>().ok());
    let fault = Fault {
        status: Some(i64::from(status.status)),
        again: Some(pause.map_or(0, |seconds| seconds.saturating_mul(1_000))),
        ..Fault::new(
            codes::http(status.status),
            format!("status {}", status.status),
        )
    };
    if status.status == 429 {
        Raw::NotPerformed(fault)
    } else {
        Raw::Unknown(fault)
    }
}

/// Renders an error with its sources on one line, without addresses: they may contain secrets.
pub(super) fn causes(error: &(dyn Error + 'static), mask: &Mask) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        next = error.source();
        if error.is::<reqwest::Error>()
            || error.is::<StreamableHttpError<reqwest::Error>>() && next.is_some()
        {
            continue;
        }
        let part = error.to_string();
        if !part.contains("://") && !parts.iter().any(|known| known.contains(&part)) {
            parts.push(part);
        }
    }
    if parts.is_empty() {
        return "the request failed".to_owned();
    }
    mask.first(&parts.join(": "), TOLD_MAX)
}
