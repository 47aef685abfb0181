//! Failures of providers as data, from statuses, headers and error objects of servers, in one place.
//!
//! Compatible servers differ: `error.code` is a number, a text or null; the object is under `error`, in a list, or alone; an
//! error within a stream has no status.

use reqwest::header::HeaderMap;
use serde_json::Value as Json;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::outcome::{Failure, Retry};

/// The error as the server describes it.
#[derive(Debug, Default)]
struct Said {
    message: String,
    kind: String,
    code: String,
    status: Option<u16>,
}

/// Creates the failure of an answer with this status.
pub(crate) fn of_status(status: u16, headers: &HeaderMap, body: &str) -> Failure {
    let json = serde_json::from_str::<Json>(body).ok();
    let mut said = json.as_ref().and_then(read).unwrap_or_else(|| Said {
        message: body.trim().to_owned(),
        ..Said::default()
    });
    // Amazon names the kind of an error in a header, sometimes with an address behind it.
    let named = headers.get("x-amzn-errortype");
    if let Some(kind) = named.and_then(|kind| kind.to_str().ok())
        && said.kind.is_empty()
    {
        kind.split(':')
            .next()
            .unwrap_or_default()
            .clone_into(&mut said.kind);
    }
    let after = after(headers, jiff::Timestamp::now()).or_else(|| delay(json.as_ref()?));
    classify(status, &format!("status {status}"), &said, after)
}

/// Returns the failure that an event of a stream contains, if any. Its class is the one that the server names.
pub(crate) fn of_event(event: &Json) -> Option<Failure> {
    let carries = event.get("error").is_some_and(|error| !error.is_null())
        || event.get("object").is_some_and(|object| object == "error")
        || event.get("type").is_some_and(|kind| kind == "error");
    if !carries {
        return None;
    }
    let said = read(event)?;
    let status = said.status.unwrap_or_else(|| by_name(&said));
    Some(classify(status, "in the stream", &said, None))
}

/// Returns the milliseconds that Google asks to wait, in a detail of the error: `{ "retryDelay": "23s" }`.
fn delay(body: &Json) -> Option<u64> {
    let body = body.get(0).unwrap_or(body);
    let details = body.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|it| it.get("retryDelay")?.as_str());
    let seconds: f64 = delay?.strip_suffix('s')?.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1000.0).ceil() as u64)
}

/// Returns a status for an error class that came without one.
fn by_name(said: &Said) -> u16 {
    let name = format!("{} {}", said.kind, said.code).to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&[
        "rate_limit",
        "quota",
        "too_many_requests",
        "resource_exhausted",
        "throttling",
    ]) {
        429
    } else if has(&["overload", "unavailable", "capacity"]) {
        503
    } else if has(&["auth", "permission", "api_key", "accessdenied"]) {
        401
    } else if has(&["not_found"]) {
        404
    } else if has(&["invalid", "exceed_context", "context_length", "validation"]) {
        400
    } else {
        500
    }
}

/// Returns the error that a body describes; `None` if it describes none.
fn read(body: &Json) -> Option<Said> {
    let body = match body {
        Json::Array(list) => list.first()?,
        other => other,
    };
    let object = match body.get("error") {
        Some(Json::String(message)) => {
            let more = body.get("error_description").and_then(Json::as_str);
            return Some(Said {
                message: more.map_or_else(|| message.clone(), |more| format!("{message}: {more}")),
                ..Said::default()
            });
        }
        Some(error) if error.is_object() => error,
        _ => body,
    };
    let text = |key: &str| match object.get(key) {
        Some(Json::String(text)) => text.clone(),
        Some(Json::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    let message = ["message", "Message", "detail", "error_description"]
        .into_iter()
        .map(text)
        .find(|text| !text.is_empty());
    if message.is_none() && object.get("type").is_none() && object.get("code").is_none() {
        return None;
    }
    let (code, status) = (text("code"), text("status"));
    // Google has the kind as a word in `status`, and Amazon the status of the model in a field of its own.
    let is_word = status.starts_with(|c: char| c.is_ascii_alphabetic());
    let kind = Some(text("type")).filter(|kind| !kind.is_empty());
    let kind = kind.or_else(|| is_word.then(|| status.clone()));
    let numbers = [code.clone(), status, text("originalStatusCode")];
    let number = numbers.iter().find_map(|number| number.parse().ok());
    Some(Said {
        message: message.unwrap_or_default(),
        kind: kind.unwrap_or_default(),
        status: number.filter(|status| (400..600).contains(status)),
        code,
    })
}

/// Makes the failure for a status and the server's description of the error.
fn classify(status: u16, place: &str, said: &Said, after: Option<u64>) -> Failure {
    let message = said.message.to_lowercase();
    let is = |words: &[&str]| {
        words
            .iter()
            .any(|word| said.kind.contains(word) || said.code.contains(word))
    };
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));

    let overflow = is(&[
        "context_length_exceeded",
        "exceed_context_size",
        "context_window",
    ]) || status <= 500
        && says(&[
            "maximum context length",
            "exceeds the available context size",
            "context length exceeded",
            "context window",
            "prompt is too long",
            "input is too long",
            "exceeds the maximum number of tokens",
        ]);
    let no_tools = matches!(status, 400 | 404 | 422 | 500 | 501)
        && says(&[
            "does not support tools",
            "tools are not supported",
            "does not support tool",
            "enable-auto-tool-choice",
            "tools param requires --jinja",
            "no endpoints found that support tool use",
        ]);
    let code = if overflow {
        FailureCode::ContextOverflow
    } else if no_tools {
        FailureCode::NoTools
    } else if is(&["insufficient_quota", "billing", "ServiceQuotaExceeded"]) {
        FailureCode::InsufficientQuota
    } else if is(&["content_filter", "policy_violation", "bio_policy"]) {
        FailureCode::ContentFilter
    } else if status == 400 && says(&["api key not valid", "api key expired"]) {
        FailureCode::Unauthorized
    } else if is(&["overloaded"]) {
        FailureCode::ProviderOverloaded
    } else {
        match status {
            401 | 403 => FailureCode::Unauthorized,
            402 => FailureCode::InsufficientQuota,
            404 => FailureCode::ModelNotFound,
            408 => FailureCode::Timeout,
            409 | 424 | 425 => FailureCode::ProviderError,
            413 => FailureCode::TooLarge,
            429 => FailureCode::RateLimited,
            400..=499 => FailureCode::InvalidRequest,
            501 => FailureCode::NotSupported,
            503 | 529 => FailureCode::ProviderOverloaded,
            500.. => FailureCode::ProviderError,
            _ => FailureCode::BadResponse,
        }
    };
    let retry = match (code.retry(), after) {
        // The server would give the same redirect, or other status of this kind, again.
        _ if code == FailureCode::BadResponse => Retry::Never,
        (Retry::Policy, Some(after)) => Retry::After(after),
        (retry, _) => retry,
    };
    let mut text = place.to_owned();
    for part in [&said.kind, &said.code] {
        if !part.is_empty() && *part != status.to_string() && !text.contains(part.as_str()) {
            text.push_str(", ");
            text.push_str(part);
        }
    }
    if !said.message.is_empty() {
        text.push_str(": ");
        text.push_str(&said.message);
    }
    Failure {
        retry,
        ..Failure::new(code, text)
    }
}

/// Returns the milliseconds that the server asks to wait: `retry-after-ms`, otherwise `Retry-After` in seconds or as a date. A
/// date is compared with the answer's own `Date`, so a wrong clock on either side does no harm.
pub(crate) fn after(headers: &HeaderMap, now: jiff::Timestamp) -> Option<u64> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let millis =
        |number: f64| (number.is_finite() && number >= 0.0).then_some(number.ceil() as u64);
    if let Some(given) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return millis(given);
    }
    let given = text("retry-after")?;
    if let Ok(seconds) = given.parse::<f64>() {
        return millis(seconds * 1000.0);
    }
    let date = |text: &str| {
        jiff::fmt::rfc2822::parse(text)
            .ok()
            .map(|date| date.timestamp())
    };
    let now = text("date").and_then(date).unwrap_or(now);
    let span = date(given)?.as_millisecond() - now.as_millisecond();
    Some(u64::try_from(span).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| {
                (
                    reqwest::header::HeaderName::from_static(name),
                    value.parse().unwrap(),
                )
            })
            .collect()
    }

    #[test]
    fn retry_after_is_read_in_all_its_forms() {
        let now = jiff::Timestamp::from_second(1_000_000_000).unwrap(); // Sun, 09 Sep 2001 01:46:40 GMT
        let of = |list: &[(&'static str, &str)]| after(&headers(list), now);
        assert_eq!(of(&[("retry-after", "3600")]), Some(3_600_000));
        assert_eq!(of(&[("retry-after", "0.5")]), Some(500));
        assert_eq!(
            of(&[("retry-after-ms", "20"), ("retry-after", "9")]),
            Some(20)
        );
        assert_eq!(
            of(&[("retry-after", "Sun, 09 Sep 2001 01:46:50 GMT")]),
            Some(10_000)
        );
        assert_eq!(
            of(&[("retry-after", "Sun, 09 Sep 2001 01:00:00 GMT")]),
            Some(0)
        );
        assert_eq!(
            of(&[
                ("retry-after", "Mon, 10 Sep 2001 00:00:05 GMT"),
                ("date", "Mon, 10 Sep 2001 00:00:00 GMT")
            ]),
            Some(5_000)
        );
        assert_eq!(of(&[("retry-after", "soon")]), None);
        assert_eq!(of(&[("retry-after", "-5")]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn what_servers_say_gets_one_class_each() {
        let table = [
            (
                400,
                r#"{"error":{"code":400,"message":"bad","type":"invalid_request_error"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":"registry.ollama.ai/library/gemma:2b does not support tools"}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice","type":"BadRequestError","code":400}"#,
            ),
            (
                401,
                r#"{"error":{"message":"no","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            ),
            (404, r#"{"detail":"Not Found"}"#),
            (408, ""),
            (413, "request entity too large"),
            (422, r#"[{"error":{"code":422,"message":"list"}}]"#),
            (
                429,
                r#"{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}"#,
            ),
            (
                429,
                r#"{"error":{"message":"pay","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            ),
            (
                429,
                r#"{"error":{"message":"busy","type":"overloaded_error","code":null}}"#,
            ),
            (500, "<html>oops</html>"),
            (
                501,
                r#"{"error":{"code":501,"message":"not enabled","type":"not_supported_error"}}"#,
            ),
            (
                503,
                r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
            ),
            (529, "{}"),
            (302, ""),
            (
                400,
                r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            ),
            (
                429,
                r#"[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"23.5s"}]}}]"#,
            ),
            (
                400,
                r#"{"error":{"code":"content_filter","message":"The response was filtered","type":null,"param":"prompt","status":400}}"#,
            ),
            (
                403,
                r#"{"Message":"User is not authorized to perform: bedrock:InvokeModel"}"#,
            ),
            (
                424,
                r#"{"message":"The model failed","originalStatusCode":500}"#,
            ),
        ];
        let lines = table.iter().map(|(status, body)| {
            let got = of_status(*status, &HeaderMap::new(), body);
            format!("{} {:?} | {}", got.code, got.retry, got.message)
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn an_error_inside_a_stream_keeps_its_class() {
        let table = [
            r#"{"error":{"message":"slow down","code":429}}"#,
            r#"{"error":{"message":"busy","type":"overloaded_error"}}"#,
            r#"{"error":{"message":"The server had an error","type":"server_error","code":null}}"#,
            r#"{"error":{"message":"limit","type":"rate_limit_error","code":"rate_limit_exceeded"}}"#,
            r#"{"error":{"message":"pay","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            r#"{"error":{"message":"long","type":"exceed_context_size_error","code":400}}"#,
            r#"{"error":"it broke"}"#,
            r#"{"object":"error","message":"vllm","type":"BadRequestError","code":400}"#,
            r#"{"id":"x","error":{"code":502,"message":"Provider disconnected"},"choices":[{"finish_reason":"error"}]}"#,
            r#"{"error":null,"choices":[]}"#,
            r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#,
            r#"{"error":{"message":"Too many tokens","type":"throttlingException"}}"#,
            r#"{"error":{"message":"wrong","type":"validationException"}}"#,
            r#"{"error":{"message":"gone","type":"serviceUnavailableException"}}"#,
            r#"{"error":{"message":"it broke","originalStatusCode":424,"type":"modelStreamErrorException"}}"#,
            r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null,"sequence_number":3}"#,
        ];
        let text = table
            .iter()
            .map(
                |event| match of_event(&serde_json::from_str(event).unwrap()) {
                    Some(got) => format!("{} {:?} | {}\n", got.code, got.retry, got.message),
                    None => "no failure\n".to_owned(),
                },
            )
            .collect::<String>();
        insta::assert_snapshot!(text);
    }
}
