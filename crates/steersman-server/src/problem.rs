//! Errors as clients read them: problem documents (RFC 9457).

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use steersman::machine::stored::ids::Name;
use steersman::runtime::engine::EngineError;
use steersman::runtime::store::StoreError;
use steersman::views::filter::{FilterError, SelectError};
use steersman::{Error, ErrorKind};
use utoipa::ToSchema;
use utoipa::openapi::{ObjectBuilder, Type};

/// The reason why a request was not carried out.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Problem(Box<Document>);

/// The reason why a request was not carried out (RFC 9457).
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct Document {
    /// `urn:steersman:problem:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// A short title that is the same for every problem of this code.
    title: &'static str,
    /// The status of the response.
    status: u16,
    /// The fault, and what to do.
    detail: String,
    /// The code that programs branch on.
    #[schema(schema_with = codes)]
    code: &'static str,
    /// The way out, where it is not a part of the detail.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
    /// Errors of a definition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<Value>,
    /// Seconds after which the request may succeed.
    #[serde(skip)]
    retry_after: Option<u32>,
    /// The code with which a session stopped.
    #[serde(skip)]
    stopped: Option<Name>,
}

/// Declares the codes of problems, each with its status and title.
macro_rules! codes {
    ($($name:ident = $word:literal, $status:ident, $title:literal;)+) => {
        /// The codes of problems.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub(crate) enum Code { $($name,)+ }

        impl Code {
            /// All codes.
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the word, the status and the title.
            pub(crate) fn told(self) -> (&'static str, StatusCode, &'static str) {
                match self {
                    $(Self::$name => ($word, StatusCode::$status, $title),)+
                }
            }
        }
    };
}

codes! {
    Body = "body", BAD_REQUEST, "The body does not fit";
    Query = "query", BAD_REQUEST, "The query does not fit";
    Cursor = "cursor", BAD_REQUEST, "Not a cursor";
    Id = "id", BAD_REQUEST, "Not an id";
    Token = "token", UNAUTHORIZED, "No valid token";
    Permission = "scope", FORBIDDEN, "The token does not allow this";
    Role = "role_not_yours", FORBIDDEN, "The token does not have this role";
    Origin = "origin", FORBIDDEN, "The origin is not allowed";
    Host = "host", FORBIDDEN, "The host is not served";
    Path = "path", NOT_FOUND, "There is no such path";
    Session = "session", NOT_FOUND, "There is no such session";
    Branch = "branch", NOT_FOUND, "There is no such branch";
    Line = "line", NOT_FOUND, "There is no such line";
    Question = "question", NOT_FOUND, "There is no such question";
    Effect = "effect", NOT_FOUND, "There is no such effect";
    Artifact = "artifact", NOT_FOUND, "There is no such artifact";
    Response = "response", NOT_FOUND, "There is no such response";
    Definition = "definition", NOT_FOUND, "There is no such definition";
    Job = "job", NOT_FOUND, "There is no such job";
    Search = "search", NOT_FOUND, "There is no such search";
    Memory = "memory", NOT_FOUND, "There is no such memory";
    UnknownToken = "unknown_token", NOT_FOUND, "There is no such token";
    Webhook = "webhook", NOT_FOUND, "There is no such webhook";
    Method = "method", METHOD_NOT_ALLOWED, "The path does not have this method";
    Repeated = "repeated", CONFLICT, "The key was used for something else";
    Exists = "exists", CONFLICT, "It exists already";
    Busy = "busy", CONFLICT, "Another process drives the session";
    Unbound = "unbound", CONFLICT, "Something that the session needs is missing here";
    Moved = "moved", PRECONDITION_FAILED, "The session has changed";
    TooLarge = "too_large", PAYLOAD_TOO_LARGE, "A limit of size";
    Media = "media", UNSUPPORTED_MEDIA_TYPE, "Not this media type";
    Rate = "rate", TOO_MANY_REQUESTS, "Too many requests";
    Streams = "streams", TOO_MANY_REQUESTS, "Too many streams";
    Refused = "refused", UNPROCESSABLE_ENTITY, "The session refused it";
    Faulty = "faulty_definition", UNPROCESSABLE_ENTITY, "The definition has errors";
    Damaged = "damaged", INTERNAL_SERVER_ERROR, "Stored data cannot be read";
    Internal = "internal", INTERNAL_SERVER_ERROR, "An error of the server";
    Store = "store", SERVICE_UNAVAILABLE, "The store cannot be used now";
    Stopping = "stopping", SERVICE_UNAVAILABLE, "The server stops";
    Late = "late", SERVICE_UNAVAILABLE, "The request took too long";
    Failed = "failed", INTERNAL_SERVER_ERROR, "The session stopped without an answer";
}

/// Returns the schema of codes. More may be added.
fn codes() -> utoipa::openapi::Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("The code that programs branch on."))
        .enum_values(Some(Code::ALL.iter().map(|code| code.told().0)))
        .build()
}

impl Problem {
    /// Makes a problem.
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        let (word, status, title) = code.told();
        let retry = matches!(
            code,
            Code::Rate | Code::Streams | Code::Store | Code::Stopping | Code::Late
        );
        Self(Box::new(Document {
            kind: format!("urn:steersman:problem:{word}"),
            title,
            status: status.as_u16(),
            detail: detail.into(),
            code: word,
            help: None,
            diagnostics: Vec::new(),
            retry_after: retry.then_some(1),
            stopped: None,
        }))
    }

    /// Returns the problem of a session that stopped without an answer.
    pub(crate) fn stopped(code: &str, why: String) -> Self {
        let mut problem = Self::new(Code::Failed, why);
        problem.0.stopped = Some(code.into());
        problem
    }

    /// Returns the word that programs branch on.
    pub(crate) fn code(&self) -> &'static str {
        self.0.code
    }

    /// Says what the fault is about.
    #[must_use]
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.0.detail = format!("{what}: {}", self.0.detail);
        self
    }

    /// Adds what to do.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Returns the answer about a session that does not exist or is not visible.
    pub(crate) fn no_session(id: &str) -> Self {
        Self::new(
            Code::Session,
            format!("there is no session `{}`", short(id)),
        )
        .help("GET /v1/sessions lists them; a path has the whole id, which `GET /v1/sessions?prefix=` finds by its first letters")
    }

    /// Returns the answer about a branch that does not exist.
    pub(crate) fn no_branch(name: &str) -> Self {
        Self::new(
            Code::Branch,
            format!("the session has no branch `{}`", short(name)),
        )
        .help("GET /v1/sessions/{session}/branches lists them")
    }

    /// Returns the problem of a filter in a query or in a body.
    pub(crate) fn of_filter(code: Code, error: FilterError) -> Self {
        let problem = Self::new(code, format!("`where`: {error}"));
        match error.help {
            Some(help) => problem.help(help),
            None => problem,
        }
    }

    /// Returns the answer about a definition that is not served, or that the token may not start.
    pub(crate) fn no_definition(name: &str) -> Self {
        Self::new(
            Code::Definition,
            format!("there is no definition `{}`", short(name)),
        )
        .help("GET /v1/definitions lists them")
    }
}

/// Returns the beginning of a text that a client sent, without what could disturb a reader.
fn short(text: &str) -> String {
    const SHOWN: usize = 80;
    let shown: String = text
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        return format!("{shown}…");
    }
    shown
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        if let Error::Store(error) | Error::Engine(EngineError::Store(error)) = &error {
            match error {
                StoreError::NoSession(id) => return Self::no_session(id),
                StoreError::Repeated(_) => {
                    return Self::new(
                        Code::Repeated,
                        "the idempotency key was used for another request; nothing was done",
                    )
                    .help("send what says something else under a key of its own");
                }
                StoreError::TooLarge { .. } => return Self::new(Code::TooLarge, error.to_string()),
                StoreError::BadId { .. } => return Self::new(Code::Id, error.to_string()),
                _ => {}
            }
        }
        let code = match error.kind() {
            ErrorKind::NotFound => Code::Session,
            ErrorKind::Conflict => Code::Exists,
            ErrorKind::Refused => Code::Refused,
            ErrorKind::Busy => Code::Busy,
            ErrorKind::Stopping => Code::Stopping,
            ErrorKind::Definition => Code::Faulty,
            ErrorKind::Unbound => Code::Unbound,
            ErrorKind::Unreadable => Code::Damaged,
            ErrorKind::Full => Code::Rate,
            ErrorKind::Unavailable => Code::Store,
            _ => Code::Internal,
        };
        let mut problem = Self::new(code, error.to_string());
        if let Error::Definition(faults) = &error {
            problem.0.diagnostics = faults
                .diagnostics
                .iter()
                .map(|fault| Value::from(fault.to_string()))
                .collect();
        }
        problem
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        Error::from(error).into()
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Error::from(error).into()
    }
}

impl From<FilterError> for Problem {
    fn from(error: FilterError) -> Self {
        Self::of_filter(Code::Query, error)
    }
}

impl From<SelectError> for Problem {
    fn from(error: SelectError) -> Self {
        match error {
            SelectError::Filter(error) => error.into(),
            SelectError::Engine(error) => error.into(),
        }
    }
}

/// The name of a problem's media type.
const MEDIA: &str = "application/problem+json";

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let media = HeaderValue::from_static(MEDIA);
        let mut response = self.answer(&self);
        response.headers_mut().insert(header::CONTENT_TYPE, media);
        response
    }
}

impl Problem {
    /// Returns the response with this body.
    fn answer(&self, body: &impl Serialize) -> Response {
        let status =
            StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(body)).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.0.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(Told(self.clone()));
        response
    }

    /// Returns the fault and what to do, as one sentence.
    pub(crate) fn sentence(&self) -> String {
        match &self.0.help {
            Some(help) => format!("{}: {help}", self.0.detail),
            None => self.0.detail.clone(),
        }
    }

    /// Returns the code and the sentence, for protocols that have no more.
    pub(crate) fn words(&self) -> (&str, String) {
        let code = self.0.stopped.as_deref().unwrap_or(self.0.code);
        (code, self.sentence())
    }

    /// Returns the error object of OpenAI's APIs.
    pub(crate) fn openai(&self) -> Value {
        let kind = match self.0.status {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        let (code, message) = self.words();
        json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
    }

    /// Returns the response to a client of OpenAI's APIs.
    pub(crate) fn openai_response(&self) -> Response {
        let mut response = self.answer(&self.openai());
        // Without this, clients also send again what will not succeed.
        let again = self.0.retry_after.is_some() || self.0.code == Code::Busy.told().0;
        let again = HeaderValue::from_static(if again { "true" } else { "false" });
        response.headers_mut().insert("x-should-retry", again);
        response
    }
}

/// The problem that a response tells, for the log of requests and for other forms of it.
#[derive(Clone, Debug)]
pub(crate) struct Told(pub(crate) Problem);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_code_has_a_word_of_its_own() {
        let words: BTreeSet<&str> = Code::ALL.iter().map(|code| code.told().0).collect();
        assert_eq!(words.len(), Code::ALL.len());
    }
}
