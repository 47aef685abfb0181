//! Tools over HTTP. Reports for every attempt what is known: done, proved not performed, or unknown.

use crate::masked::Mask;
use crate::transport::{self, BodyError, Clients, Redirects};
use crate::wire::TRACE;
use crate::wire::fault::after;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde_json::Value as Json;
use std::time::Duration;
use steersman_machine::network::{Http, HttpOutcome, Network, Source, ToolDef};
use steersman_machine::stored::codes::{self, Code};
use steersman_machine::stored::interaction::Class;
use steersman_machine::values::expression::{Data, EvalError, Scope, Template};
use steersman_machine::values::rate::Rate;
use steersman_machine::view::artifact;
use steersman_machine::view::artifact::Content;
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::Boxed;
use steersman_runtime::toolset::{ToolRun, Toolset};
use tokio_util::sync::CancellationToken;

/// Maximum number of bytes of an answer.
pub(crate) const ANSWER_MAX: usize = 10 << 20;
/// Maximum number of bytes of an error's body that are read.
const ERROR_MAX: usize = 64 << 10;
/// Maximum number of bytes of an error's body that a fault quotes.
const TOLD_MAX: usize = 2000;
/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(10);

/// Runs the tools with `http:`.
pub struct HttpTools {
    /// Clients that follow redirects within one origin.
    free: Clients,
    /// Clients that follow no redirects.
    once: Clients,
}

impl Default for HttpTools {
    fn default() -> Self {
        Self {
            free: Clients::new(CONNECT, Redirects::SameOrigin),
            once: Clients::new(CONNECT, Redirects::Never),
        }
    }
}

impl HttpTools {
    /// Selects the clients of a call. Redirects are followed only for tools of class `pure` or `read` that use GET or HEAD. The
    /// server that redirects may have done the call already. So a second request must be harmless, which the tool's class
    /// guarantees and the method does not: "no connection" or "not found" from the second server proves nothing about the first
    /// one. An idempotency key is not sent to a second server, which may not know it, and a body is not sent twice.
    fn clients(&self, class: Class, method: &Method) -> &Clients {
        match class {
            Class::Pure | Class::Read if matches!(*method, Method::GET | Method::HEAD) => {
                &self.free
            }
            Class::Pure | Class::Read | Class::Idempotent | Class::Unsafe => &self.once,
        }
    }

    async fn attempt(&self, run: &ToolRun, tool: &ToolDef, http: &Http, mask: &Mask) -> Raw {
        let limit = Duration::from_millis(tool.timeout.max(1));
        let prepared = match prepare(run, http).await {
            Ok(prepared) => prepared,
            Err(message) => return not_performed(Code::Failed, message, None),
        };
        let Prepared { request, save } = prepared;
        let clients = self.clients(run.work.class, request.method());
        let client = match clients.within(request.url(), limit) {
            Ok(client) => client,
            Err(message) => return not_performed(Code::Failed, message, None),
        };
        let exchange = async {
            let mut response = match client.execute(request).await {
                Ok(response) => response,
                Err(error) => return no_answer(error),
            };
            let status = response.status();
            let body = if meaning(http, status) == HttpOutcome::Done {
                transport::body(&mut response, ANSWER_MAX).await
            } else {
                Ok(transport::head(&mut response, ERROR_MAX).await)
            };
            let place = Place {
                save: save.as_deref(),
                makes: &run.work.makes,
            };
            outcome(http, status, response.headers(), body, &place, mask)
        };
        let done = tokio::time::timeout(limit, exchange).await;
        done.unwrap_or_else(|_| {
            unknown(
                Code::Timeout,
                format!("no answer within {limit:?}"),
                Some(0),
            )
        })
    }
}

impl Toolset for HttpTools {
    fn has(&self, network: &Network, tool: &str) -> bool {
        let tool = network.tools.get(tool);
        tool.is_some_and(|tool| matches!(tool.source, Source::Http(_)))
    }

    fn place(&self, run: &ToolRun) -> Option<(String, Rate)> {
        let tool = run.network.tools.get(&run.work.tool)?;
        let Source::Http(http) = &tool.source else {
            return None;
        };
        // An invalid address is reported by the attempt.
        let rate = http.rate?;
        let url = address(http, &*run.scope).ok()?;
        Some((url.origin().ascii_serialization(), rate))
    }

    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        Box::pin(async move {
            let tool = run.network.tools.get(&run.work.tool);
            let Some((tool, http)) = tool.and_then(|tool| match &tool.source {
                Source::Http(http) => Some((tool, http)),
                _ => None,
            }) else {
                return not_performed(
                    Code::Failed,
                    "this is not a tool over HTTP".to_owned(),
                    None,
                );
            };
            if cancel.is_cancelled() {
                return not_performed(
                    Code::Cancelled,
                    "cancelled before it was sent".to_owned(),
                    None,
                );
            }
            let mask = Mask::of(steersman_runtime::secrets::texts(
                &run.network,
                &run.work.tool,
                &*run.scope,
            ));
            let attempt = Box::pin(self.attempt(run, tool, http, &mask));
            let raw = cancel.run_until_cancelled(attempt).await;
            let raw = raw.unwrap_or_else(|| {
                unknown(Code::Cancelled, "cancelled on the way".to_owned(), None)
            });
            raw.map_fault(|fault| Fault {
                message: mask.all(&fault.message),
                ..fault
            })
        })
    }
}

fn fault(code: impl AsRef<str>, message: String, again: Option<u64>) -> Fault {
    Fault {
        again,
        ..Fault::new(code, message)
    }
}

fn not_performed(code: impl AsRef<str>, message: String, again: Option<u64>) -> Raw {
    Raw::NotPerformed(fault(code, message, again))
}

fn unknown(code: impl AsRef<str>, message: String, again: Option<u64>) -> Raw {
    Raw::Unknown(fault(code, message, again))
}

/// Returns the outcome of an attempt that got no status.
fn no_answer(error: reqwest::Error) -> Raw {
    let code = if error.is_timeout() {
        Code::Timeout
    } else {
        Code::Failed
    };
    if error.is_connect() {
        let message = format!("no connection: {}", transport::describe(error));
        return not_performed(code, message, Some(0));
    }
    if error.is_builder() {
        return not_performed(Code::Failed, transport::describe(error), None);
    }
    let message = format!(
        "the connection ended before an answer: {}",
        transport::describe(error)
    );
    unknown(code, message, Some(0))
}

/// Returns the outcome that the definition declares for a status, or for its group (`4xx`).
fn declared(http: &Http, status: StatusCode) -> Option<HttpOutcome> {
    let number = status.as_u16();
    let exact = http.outcomes.get(&number.to_string());
    exact
        .or_else(|| http.outcomes.get(&format!("{}xx", number / 100)))
        .copied()
}

/// Returns the outcome that a status means: the declared one, otherwise by the rules of HTTP.
fn meaning(http: &Http, status: StatusCode) -> HttpOutcome {
    declared(http, status).unwrap_or_else(|| {
        if status.is_success() {
            HttpOutcome::Done
        } else if status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT {
            HttpOutcome::NotPerformed
        } else {
            HttpOutcome::Unknown
        }
    })
}

/// Returns the outcome of an attempt that got a status, with its body.
fn outcome(
    http: &Http,
    status: StatusCode,
    headers: &HeaderMap,
    body: Result<Vec<u8>, BodyError>,
    place: &Place<'_>,
    mask: &Mask,
) -> Raw {
    let number = status.as_u16();
    let (declared, meaning) = (declared(http, status), meaning(http, status));
    let body = match (meaning, body) {
        (HttpOutcome::Done, Err(BodyError::Broken(why))) => {
            // The call was done, but its result is lost: it is repeated if its class allows that.
            let mut fault = fault(
                Code::Failed,
                format!("the answer broke off: {why}"),
                Some(0),
            );
            fault.status = Some(i64::from(number));
            return Raw::Unknown(fault);
        }
        (HttpOutcome::Done, Err(BodyError::TooLarge)) => {
            return Raw::Done(Json::from(
                "(the answer is larger than 10 MiB and was not read)",
            ));
        }
        (HttpOutcome::Done, Ok(bytes)) => return done(headers, &bytes, place),
        (_, body) => body.unwrap_or_default(),
    };
    let pause = after(headers, jiff::Timestamp::now());
    let again = match meaning {
        HttpOutcome::NotPerformed if number == 429 || declared.is_some() => {
            Some(pause.unwrap_or(0))
        }
        HttpOutcome::Unknown if status.is_server_error() || number == 408 => {
            Some(pause.unwrap_or(0))
        }
        HttpOutcome::Done | HttpOutcome::NotPerformed | HttpOutcome::Unknown => None,
    };
    let text = String::from_utf8_lossy(&body);
    let mut message = format!("status {number}");
    if let Some(reason) = status.canonical_reason() {
        message = format!("{message} {reason}");
    }
    if !text.trim().is_empty() {
        message = format!("{message}: {}", mask.first(text.trim(), TOLD_MAX));
    }
    let fault = Fault {
        status: Some(i64::from(number)),
        ..fault(codes::http(number), message, again)
    };
    match meaning {
        HttpOutcome::NotPerformed => Raw::NotPerformed(fault),
        HttpOutcome::Done | HttpOutcome::Unknown => Raw::Unknown(fault),
    }
}

/// Names for a body that becomes an artifact.
struct Place<'a> {
    /// The name that `save` of the tool gives.
    save: Option<&'a str>,
    /// The beginning of the name if `save` gives none.
    makes: &'a str,
}

/// Turns a body into a result, or into an artifact if `save` is set or the body is not text.
fn done(headers: &HeaderMap, bytes: &[u8], place: &Place<'_>) -> Raw {
    let kind = headers.get(reqwest::header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let media = kind.split(';').next().unwrap_or_default().trim();
    let made = |name: String, result: String| {
        let media = if media.is_empty() {
            artifact::media_of(&name)
        } else {
            media
        };
        let content = Content {
            media: media.to_owned(),
            bytes: bytes.into(),
            name,
        };
        Raw::Made {
            result: Json::from(result),
            made: vec![content],
            writes: Vec::new(),
            mode: None,
        }
    };
    if let Some(name) = place.save {
        return made(name.to_owned(), name.to_owned());
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Raw::Done(result(kind, text));
    }
    let end = artifact::ending_of(media).unwrap_or("bin");
    let name = format!("{}.{end}", place.makes);
    let of = if media.is_empty() { "bytes" } else { media };
    let told = format!(
        "({} bytes of {of}, kept as the artifact `{name}`)",
        bytes.len()
    );
    made(name, told)
}

/// Returns the result of a text: JSON if the media type or the first character says so; an empty text is `null`.
fn result(kind: &str, text: &str) -> Json {
    if text.trim().is_empty() {
        return Json::Null;
    }
    if kind.contains("json") || text.trim_start().starts_with(['{', '[']) {
        steersman_machine::values::json::read(text).unwrap_or_else(|_| Json::from(text))
    } else {
        Json::from(text)
    }
}

/// The request of an attempt, and the artifact name under which its answer is kept.
struct Prepared {
    request: reqwest::Request,
    save: Option<String>,
}

async fn prepare(run: &ToolRun, http: &Http) -> Result<Prepared, String> {
    let save = named(run, http.save.as_ref(), "save")?;
    if let Some(why) = save.as_deref().and_then(artifact::misnamed) {
        return Err(format!("`save`: {why}"));
    }
    let mut request = build(run, http)?;
    if let Some(name) = named(run, http.file.as_ref(), "file")? {
        let found = run.artifacts.find(&name, None);
        let found = found.map_err(|error| format!("`file`: {error}"))?;
        let content = run.artifacts.content(&found).await;
        let content = content.map_err(|error| format!("`file`: {error}"))?;
        let media = HeaderValue::from_str(&found.media)
            .map_err(|_| format!("`file`: the media type of `{name}` is not valid"))?;
        let headers = request.headers_mut();
        headers.entry("content-type").or_insert(media);
        *request.body_mut() = Some(content.to_vec().into());
    }
    Ok(Prepared { request, save })
}

/// Renders the name of an artifact.
fn named(run: &ToolRun, template: Option<&Template>, key: &str) -> Result<Option<String>, String> {
    let name = template.map(|template| template.render(&*run.scope));
    name.transpose().map_err(|error| told(key, &error))
}

/// Builds the request of an attempt. Errors never contain values, only names and the kind of error.
fn build(run: &ToolRun, http: &Http) -> Result<reqwest::Request, String> {
    let scope: &dyn Scope = &*run.scope;
    let method = Method::from_bytes(http.method.as_bytes())
        .map_err(|_| "the method is not valid".to_owned())?;
    let mut request = reqwest::Request::new(method, address(http, scope)?);
    let headers = request.headers_mut();
    headers.insert(
        "accept",
        HeaderValue::from_static("application/json, */*;q=0.5"),
    );
    if run.work.class == Class::Idempotent {
        let key = format!("{}.{:x}.{}", run.session, run.mark, run.effect);
        let value =
            HeaderValue::from_str(&key).map_err(|_| "the session's id is no header".to_owned())?;
        headers.insert(header_name(&http.key_header)?, value);
    }
    if let Some(trace) = run.trace {
        let value = HeaderValue::from_str(&trace.to_string()).expect("it is hexadecimal");
        headers.insert(TRACE, value);
    }
    let body = if let Some(json) = &http.json {
        let json = json.eval(scope).map_err(|error| told("json", &error))?;
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        Some(json.to_string())
    } else if let Some(form) = &http.form {
        let mut encoded = Url::parse("http://form").expect("it is a URL");
        append(&mut encoded, form, scope, "form")?;
        headers.insert(
            "content-type",
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        Some(encoded.query().unwrap_or_default().to_owned())
    } else {
        None
    };
    for (name, template) in &http.headers {
        if let Some(value) = header(name, template, scope)? {
            headers.insert(header_name(name)?, value);
        }
    }
    if let Some(body) = body {
        *request.body_mut() = Some(body.into());
    }
    Ok(request)
}

fn address(http: &Http, scope: &dyn Scope) -> Result<Url, String> {
    let text = http
        .url
        .render_url(scope)
        .map_err(|error| told("url", &error))?;
    // `.` and `..` cannot be encoded: a URL parser resolves them in every spelling.
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let dots = |part: &str| {
        matches!(
            part.to_ascii_lowercase().replace("%2e", ".").as_str(),
            "." | ".."
        )
    };
    if http.url.text().is_none() && path.split('/').any(dots) {
        return Err("`url`: a value makes `.` or `..` a part of the path".to_owned());
    }
    let mut url =
        Url::parse(&text).map_err(|error| format!("`url` is not a valid address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("`url` begins with neither http:// nor https://".to_owned());
    }
    if let Some(query) = &http.query {
        append(&mut url, query, scope, "query")?;
    }
    Ok(url)
}

/// Adds the fields of an object as pairs: a null value is left out, a list gives one pair for each item.
fn append(url: &mut Url, data: &Data, scope: &dyn Scope, field: &str) -> Result<(), String> {
    let value = data.eval(scope).map_err(|error| told(field, &error))?;
    let fields = match value {
        Json::Object(fields) => fields,
        Json::Null => return Ok(()),
        _ => return Err(format!("`{field}` is not a map")),
    };
    let mut pairs = url.query_pairs_mut();
    for (name, value) in fields {
        let values = match value {
            Json::Array(list) => list,
            one => vec![one],
        };
        for value in values.iter().filter(|value| !value.is_null()) {
            pairs.append_pair(&name, &plain(value));
        }
    }
    Ok(())
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the value of a header; `None` if it is unset, or if only a scheme is left because an optional secret is unset.
fn header(
    name: &str,
    template: &Template,
    scope: &dyn Scope,
) -> Result<Option<HeaderValue>, String> {
    let value = template
        .value(scope)
        .map_err(|error| told(&format!("headers.{name}"), &error))?;
    if value.is_null() {
        return Ok(None);
    }
    let text = plain(&value);
    if template.text().is_none() && matches!(text.trim(), "" | "Bearer" | "Basic" | "Token") {
        return Ok(None);
    }
    let mut value = HeaderValue::from_str(&text).map_err(|_| {
        format!("`headers.{name}`: the value holds characters that no header may hold")
    })?;
    value.set_sensitive(true);
    Ok(Some(value))
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    let header = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("`{name}` is not a valid name of a header"))?;
    // The length follows from the body. A wrong one would let a value forge a second request.
    if header == "content-length" || header == "transfer-encoding" {
        return Err(format!("the header `{name}` is set by itself"));
    }
    Ok(header)
}

fn told(field: &str, error: &EvalError) -> String {
    format!("`{field}`: {error}")
}
