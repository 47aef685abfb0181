//! Parts of a request: bodies, queries, paths, and the headers that requests share.

use crate::Server;
use crate::caller::length;
use crate::problem::{Code, Problem};
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, FailedToBufferBody};
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use steersman::machine::stored::ids::{Id, Line};
use steersman::runtime::pending::PendingId;
use steersman::runtime::trace::TraceParent;

/// A body that is a JSON object. An empty body is an empty object.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Server> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, server: &Server) -> Result<Self, Problem> {
        let bytes = received(within(request, server), server).await?;
        has_few_values(&bytes)?;
        if bytes.trim_ascii_start().starts_with(b"[") {
            // It would be read as the fields of the object, in their order.
            let why = "the body is a list; an object is expected";
            return Err(Problem::new(Code::Body, why));
        }
        parsed(&bytes).map(Self)
    }
}

/// A body of any JSON.
pub(crate) struct AnyJson(pub(crate) Value);

impl FromRequest<Server> for AnyJson {
    type Rejection = Problem;

    async fn from_request(request: Request, server: &Server) -> Result<Self, Problem> {
        read(&received(within(request, server), server).await?).map(Self)
    }
}

/// Bounds a body whose length is not declared: only a declared length takes one of the places for large bodies.
fn within(mut request: Request, server: &Server) -> Request {
    if length(request.headers()).is_none() {
        DefaultBodyLimit::max(server.options().limits.body).apply(&mut request);
    }
    request
}

/// The body of a request without a token, which is short: its sender is not known, so nobody's limits bound it.
pub(crate) struct Short<T>(pub(crate) T);

/// Maximum number of bytes of a short body.
const SHORT: usize = 1_024;

impl<T: DeserializeOwned> FromRequest<Server> for Short<T> {
    type Rejection = Problem;

    async fn from_request(mut request: Request, server: &Server) -> Result<Self, Problem> {
        DefaultBodyLimit::max(SHORT).apply(&mut request);
        read(&received(request, server).await?).map(Self)
    }
}

/// Returns a body that is declared as JSON.
async fn received(request: Request, server: &Server) -> Result<Bytes, Problem> {
    let media = request.headers().get(header::CONTENT_TYPE).cloned();
    let bytes = Bytes::from_request(request, server).await;
    let bytes = bytes.map_err(|error| match error {
        BytesRejection::FailedToBufferBody(FailedToBufferBody::LengthLimitError(_)) => {
            Problem::new(
                Code::TooLarge,
                "the body is longer than the limit of this path",
            )
        }
        other => Problem::new(Code::Body, other.body_text()),
    })?;
    if bytes.is_empty() {
        return Ok(Bytes::from_static(b"{}"));
    }
    let media = media.as_ref().and_then(|value| value.to_str().ok());
    let media = media.map(|text| text.split(';').next().unwrap_or_default().trim());
    if !media.is_some_and(|media| media.eq_ignore_ascii_case("application/json")) {
        let why = "the body is not declared as JSON";
        return Err(Problem::new(Code::Media, why).help("send `Content-Type: application/json`"));
    }
    Ok(bytes)
}

/// Maximum number of values of a body: a small value takes many times its bytes in memory.
const VALUES: usize = 200_000;

/// Refuses a body with more values than any has.
pub(crate) fn has_few_values(bytes: &[u8]) -> Result<(), Problem> {
    if has_more_values(bytes, VALUES) {
        let why = format!("a body has at most {VALUES} values");
        return Err(Problem::new(Code::TooLarge, why));
    }
    Ok(())
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    has_few_values(bytes)?;
    parsed(bytes)
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        let why = in_words(&error.to_string());
        Problem::new(Code::Body, why)
            .help("GET /v1/openapi.json says what the body of each path has")
    })
}

/// Returns an error of a reader without the words of its language: `expected an object` in place of `expected struct Start`. What it
/// quotes of the client stays.
fn in_words(error: &str) -> String {
    let Some((before, expected)) = error.rsplit_once("expected ") else {
        return error.to_owned();
    };
    let (word, rest) = expected.split_once(' ').unwrap_or((expected, ""));
    let told = match word {
        "struct" => {
            let after = rest.find(|c: char| !c.is_alphanumeric());
            format!("an object{}", after.map_or("", |at| &rest[at..]))
        }
        "map" => format!("an object {rest}"),
        "unit" => format!("null {rest}"),
        _ => return error.to_owned(),
    };
    format!("{before}expected {}", told.trim_end())
}

/// Returns true if a JSON text has more values than this. Each but the first follows a mark of its own.
fn has_more_values(text: &[u8], most: usize) -> bool {
    if text.len() <= most {
        return false;
    }
    let (mut count, mut in_text, mut escaped) = (1, false, false);
    for byte in text {
        match (in_text, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b',' | b':' | b'[' | b'{') => count += 1,
            _ => {}
        }
    }
    count > most
}

/// A query string.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Server> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Problem> {
        let query = Query::<T>::from_request_parts(parts, server).await;
        let query = query.map_err(|error| {
            let why = error.body_text();
            let why = why
                .strip_prefix("Failed to deserialize query string: ")
                .unwrap_or(&why);
            Problem::new(Code::Query, in_words(why))
        })?;
        Ok(Self(query.0))
    }
}

/// The variable parts of a path.
pub(crate) struct At<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Server> for At<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Problem> {
        let path = Path::<T>::from_request_parts(parts, server).await;
        let path = path.map_err(|error| Problem::new(Code::Id, error.body_text()))?;
        Ok(Self(path.0))
    }
}

/// The headers that requests share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// The key by which a repetition of the request is recognised.
    pub(crate) key: Option<String>,
    /// Time for which the client wants to wait until the session settles.
    pub(crate) wait: Option<Duration>,
    /// The last line that the client knows; the request is carried out only if there is no later one.
    pub(crate) if_match: Option<Line>,
    /// The last line that the client knows; the answer is sent only if there is a later one.
    pub(crate) if_none_match: Option<String>,
    /// The span of the client that sends the request. Another form than the standard's is ignored, as the standard says.
    pub(crate) trace: Option<TraceParent>,
}

/// Maximum number of bytes of an idempotency key.
pub(crate) const KEY: usize = 128;
/// Maximum number of seconds that a client may want to wait.
const WAIT: u64 = 60;

impl FromRequestParts<Server> for Asked {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Server) -> Result<Self, Problem> {
        let headers = &parts.headers;
        let key = text(headers, &HeaderName::from_static("idempotency-key"))?;
        if key.is_some_and(|key| key.is_empty() || key.len() > KEY) {
            let why = format!("an idempotency key has 1 to {KEY} bytes");
            return Err(Problem::new(Code::Query, why));
        }
        let if_match = text(headers, &header::IF_MATCH)?;
        let if_match = if_match.map(|tag| {
            let line = tag.trim_matches('"').parse().map(Line);
            line.map_err(|_| {
                let why = "`If-Match` is the number of a line in quotation marks: \"12\"";
                Problem::new(Code::Query, why)
            })
        });
        Ok(Self {
            key: key.map(str::to_owned),
            wait: text(headers, &HeaderName::from_static("prefer"))?.and_then(wait),
            if_match: if_match.transpose()?,
            if_none_match: text(headers, &header::IF_NONE_MATCH)?.map(str::to_owned),
            trace: (headers.get("traceparent"))
                .and_then(|value| TraceParent::parse(value.to_str().ok()?)),
        })
    }
}

/// Returns the value of `wait=N` in a `Prefer` header. Other preferences are ignored, as their standard says.
fn wait(prefer: &str) -> Option<Duration> {
    let mut all = prefer.split([',', ';']).map(str::trim);
    let seconds = all.find_map(|one| one.strip_prefix("wait="))?;
    let seconds: u64 = seconds.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(WAIT)))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let text = value.to_str().map_err(|_| {
        Problem::new(
            Code::Query,
            format!("the header `{name}` is not plain text"),
        )
    })?;
    Ok(Some(text))
}

/// Reads an id as people type it.
pub(crate) fn id(text: &str) -> Result<Id, Problem> {
    typed(text, "an id looks like `12.3`")
}

/// Reads the address of a question.
pub(crate) fn question(text: &str) -> Result<PendingId, Problem> {
    typed(text, "a question looks like `12.3` or `12.3@14`")
}

fn typed<T: FromStr>(text: &str, form: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| {
        let shown: String = text.chars().take(40).flat_map(char::escape_debug).collect();
        Problem::new(Code::Id, format!("`{shown}` is not an id: {form}"))
    })
}

/// Returns the problem of a parameter of the query.
pub(crate) fn wrong(name: &str, why: impl Display) -> Problem {
    Problem::new(Code::Query, format!("`{name}`: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_readers_have_no_words_of_their_language() {
        let told = in_words("invalid type: string \"x\", expected struct Start at line 1 column 3");
        assert_eq!(
            told,
            "invalid type: string \"x\", expected an object at line 1 column 3"
        );
        assert_eq!(
            in_words("invalid type: map, expected unit"),
            "invalid type: map, expected null"
        );
        assert_eq!(in_words("missing field `how`"), "missing field `how`");
        // The words of the client stay.
        let quoted =
            "invalid type: string \"a unit, expected map\", expected struct Start at line 1";
        let told = "invalid type: string \"a unit, expected map\", expected an object at line 1";
        assert_eq!(in_words(quoted), told);
    }

    #[test]
    fn values_are_counted_and_not_what_texts_have() {
        assert!(has_more_values(b"[0,0,0,0,0]", 5));
        assert!(!has_more_values(b"[0,0,0,0,0]", 6));
        assert!(has_more_values(br#"{"a":{"b":[]}}"#, 5));
        assert!(!has_more_values(br#"["[,:{\",,,,,,,,,"]"#, 2));
        assert!(!has_more_values(br#"["\\",0]"#, 3));
    }

    #[test]
    fn only_a_wait_is_read_of_a_preference() {
        assert_eq!(wait("respond-async, wait=5"), Some(Duration::from_secs(5)));
        assert_eq!(wait("wait=100000"), Some(Duration::from_secs(WAIT)));
        assert_eq!(wait("wait=soon"), None);
        assert_eq!(wait("return=minimal"), None);
    }
}
