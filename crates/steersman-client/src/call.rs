//! Requests: how they are made, sent, and sent again.

use crate::error::Error;
use crate::frames::Frames;
use crate::generated::Problem;
use reqwest::{Method, Response, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::{self, Display, Write as _};
use std::sync::Once;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Time in which a connection opens.
const CONNECT: Duration = Duration::from_secs(5);
/// Time in which an answer comes, without what the request waits for.
const ANSWER: Duration = Duration::from_mins(1);
/// The first pause between two attempts. Each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Time for which requests are sent again, unless the client is told another.
const PATIENCE: Duration = Duration::from_secs(10);

static PROVIDER: Once = Once::new();

/// Parameters that requests share. An operation takes those that its documentation names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// The key under which a repetition is carried out once. Without one the client makes one.
    pub key: Option<String>,
    /// Seconds, at most 60, for which the request waits until the session settles.
    pub wait: Option<u64>,
    /// The last line that you know: nothing is done if there is a later one.
    pub if_match: Option<u64>,
    /// The `ETag` that you have: the answer is `None` if nothing is new.
    pub if_none_match: Option<String>,
    /// The cursor of the last event that you have.
    pub last_event_id: Option<String>,
}

/// A request.
pub(crate) struct Call {
    method: Method,
    path: String,
    query: String,
    body: Option<Vec<u8>>,
    given: Given,
    takes_key: bool,
}

impl Call {
    pub(crate) fn new(method: Method) -> Self {
        Self {
            method,
            path: String::new(),
            query: String::new(),
            body: None,
            given: Given::default(),
            takes_key: false,
        }
    }

    /// Adds a fixed part of the path.
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.path.push_str(text);
        self
    }

    /// Adds a parameter of the path.
    pub(crate) fn part(mut self, part: &impl Display) -> Self {
        encode(&part.to_string(), &mut self.path);
        self
    }

    pub(crate) fn body(mut self, body: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(body);
        self.body =
            Some(body.map_err(|why| Error::Address(format!("the body is no JSON: {why}")))?);
        Ok(self)
    }

    pub(crate) fn query(mut self, query: &impl Serialize) -> Self {
        let fields = serde_json::to_value(query).unwrap_or_default();
        for (name, value) in fields.as_object().into_iter().flatten() {
            self.query
                .push(if self.query.is_empty() { '?' } else { '&' });
            encode(name, &mut self.query);
            self.query.push('=');
            match value {
                Value::String(text) => encode(text, &mut self.query),
                other => encode(&other.to_string(), &mut self.query),
            }
        }
        self
    }

    pub(crate) fn given(mut self, given: &Given) -> Self {
        self.given = given.clone();
        self
    }

    /// Makes a key if the caller gave none.
    pub(crate) fn takes_key(mut self) -> Self {
        self.takes_key = true;
        if self.given.key.is_none() {
            self.given.key = random_key();
        }
        self
    }

    /// Returns true if the request may be sent again after it may have been carried out.
    fn can_be_repeated(&self) -> bool {
        let is_known = self.takes_key && self.given.key.is_some();
        is_known || self.method == Method::GET || self.method == Method::DELETE
    }
}

/// Adds a text as a part of an address.
fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(char::from(byte));
        } else {
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

/// Returns a key that nobody else has. `None` if the system gives no random bytes: then the request is not sent again.
fn random_key() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    let mut key = String::with_capacity(32);
    for byte in bytes {
        let _ = write!(key, "{byte:02x}");
    }
    Some(key)
}

/// Pauses between attempts, until the time for all of them is over.
pub(crate) struct Patience {
    until: Instant,
    next: Duration,
}

impl Patience {
    pub(crate) fn new(whole: Duration) -> Self {
        Self {
            until: Instant::now() + whole,
            next: FIRST_PAUSE,
        }
    }

    /// Waits until the next attempt. Returns false at once if there is none.
    pub(crate) async fn pause(&mut self, at_least: Duration) -> bool {
        let mut byte = [0];
        // Without random bytes all clients come back at the same time, which is slow and not wrong.
        let _ = getrandom::fill(&mut byte);
        let own = self.next.mul_f64(0.5 + f64::from(byte[0]) / 512.0);
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        let pause = own.max(at_least);
        if Instant::now() + pause >= self.until {
            return false;
        }
        sleep(pause).await;
        true
    }
}

/// The connections to a server.
pub(crate) struct Transport {
    http: reqwest::Client,
    url: String,
    token: header::HeaderValue,
    patience: Duration,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// An answer that was read.
struct Read {
    status: StatusCode,
    media: String,
    body: Vec<u8>,
}

impl Transport {
    pub(crate) fn new(url: &str, token: &str) -> Result<Self, Error> {
        PROVIDER.call_once(|| {
            // An error only means that the program has installed a provider before.
            drop(rustls::crypto::ring::default_provider().install_default());
        });
        let wrong = |why: String| Error::Address(why);
        let parsed = reqwest::Url::parse(url).ok();
        let parsed = parsed.filter(|url| matches!(url.scheme(), "http" | "https"));
        let parsed = parsed.ok_or_else(|| {
            wrong(format!(
                "`{url}` is not the address of a server: it begins with http:// or https://"
            ))
        })?;
        let token = header::HeaderValue::from_str(&format!("Bearer {}", token.trim()));
        let mut token = token.map_err(|_| wrong("the token is not plain text".to_owned()))?;
        token.set_sensitive(true);
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .user_agent(concat!("steersman-client/", env!("CARGO_PKG_VERSION")));
        if parsed.scheme() == "http" {
            builder = builder.tls_certs_only(std::iter::empty());
        }
        if matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|why| wrong(chain(&why)))?;
        Ok(Self {
            http,
            url: url.trim_end_matches('/').to_owned(),
            token,
            patience: PATIENCE,
        })
    }

    pub(crate) fn with_patience(&self, patience: Duration) -> Self {
        Self {
            http: self.http.clone(),
            url: self.url.clone(),
            token: self.token.clone(),
            patience,
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn patience(&self) -> Patience {
        Patience::new(self.patience)
    }

    /// Sends a request once, and returns the head of its answer.
    async fn once(&self, call: &Call, limit: Option<Duration>) -> Result<Response, Error> {
        let address = format!("{}{}{}", self.url, call.path, call.query);
        let request = self.http.request(call.method.clone(), address);
        let mut request = request.header(header::AUTHORIZATION, self.token.clone());
        let given = &call.given;
        if let Some(key) = &given.key {
            request = request.header("idempotency-key", key);
        }
        if let Some(seconds) = given.wait {
            request = request.header("prefer", format!("wait={seconds}"));
        }
        if let Some(line) = given.if_match {
            request = request.header(header::IF_MATCH, format!("\"{line}\""));
        }
        if let Some(tag) = &given.if_none_match {
            request = request.header(header::IF_NONE_MATCH, tag);
        }
        if let Some(cursor) = &given.last_event_id {
            request = request.header("last-event-id", cursor);
        }
        if let Some(body) = &call.body {
            request = request.header(header::CONTENT_TYPE, "application/json");
            request = request.body(body.clone());
        }
        if let Some(limit) = limit {
            request = request.timeout(limit);
        }
        request.send().await.map_err(|why| self.broken(call, &why))
    }

    fn broken(&self, call: &Call, why: &reqwest::Error) -> Error {
        let url = self.url.clone();
        if why.is_builder() {
            return Error::Address(chain(why));
        }
        let told = chain(why);
        if why.is_connect() {
            return Error::Unreachable { url, why: told };
        }
        let help = if call.can_be_repeated() {
            "send it again under the same key"
        } else {
            "look whether it was carried out before you send it again"
        };
        let why = told;
        Error::ConnectionLost { url, why, help }
    }

    /// Sends a request, again if that does no harm and may help.
    async fn send(&self, call: &Call) -> Result<Read, Error> {
        let mut patience = self.patience();
        let limit = ANSWER + Duration::from_secs(call.given.wait.unwrap_or(0));
        loop {
            let (error, at_least) = match self.read(call, limit).await {
                Ok((read, after)) => match after.filter(|_| call.can_be_repeated()) {
                    Some(after) if patience.pause(after).await => continue,
                    _ => return Ok(read),
                },
                Err(error) => (error, Duration::ZERO),
            };
            let repeats = match &error {
                Error::Unreachable { .. } => true,
                Error::ConnectionLost { .. } => call.can_be_repeated(),
                _ => false,
            };
            if !(repeats && patience.pause(at_least).await) {
                return Err(error);
            }
        }
    }

    /// Reads an answer. Returns it, and the time after which it says that the request may succeed.
    async fn read(&self, call: &Call, limit: Duration) -> Result<(Read, Option<Duration>), Error> {
        let response = self.once(call, Some(limit)).await?;
        let (status, media, after) = (response.status(), media(&response), after(&response));
        let body = response
            .bytes()
            .await
            .map_err(|why| self.broken(call, &why))?;
        let body = body.to_vec();
        Ok((
            Read {
                status,
                media,
                body,
            },
            after,
        ))
    }

    /// Sends a request whose answer is bytes.
    pub(crate) async fn bytes(&self, call: Call) -> Result<Vec<u8>, Error> {
        let read = self.send(&call).await?;
        if read.status.is_success() {
            return Ok(read.body);
        }
        Err(refusal(read.status.as_u16(), &read.media, &read.body))
    }

    /// Sends a request whose answer says nothing.
    pub(crate) async fn nothing(&self, call: Call) -> Result<(), Error> {
        self.bytes(call).await.map(|_| ())
    }

    /// Sends a request whose answer is JSON.
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        let read = self.send(&call).await?;
        decoded(&read)
    }

    /// Sends a request whose answer is JSON, or nothing if nothing is new.
    pub(crate) async fn changed<T: DeserializeOwned>(
        &self,
        call: Call,
    ) -> Result<Option<T>, Error> {
        let read = self.send(&call).await?;
        if read.status == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        decoded(&read).map(Some)
    }

    /// Opens a stream of events.
    pub(crate) async fn open(&self, call: Call) -> Result<Frames, Error> {
        let response = self.once(&call, None).await?;
        let (status, media) = (response.status(), media(&response));
        if status == StatusCode::OK && media == "text/event-stream" {
            return Ok(Frames::new(response, self.url.clone()));
        }
        let body = response
            .bytes()
            .await
            .map_err(|why| self.broken(&call, &why))?;
        if status.is_success() {
            let why = "it is no stream of events";
            return Err(Error::invalid(status.as_u16(), &media, why, &body));
        }
        Err(refusal(status.as_u16(), &media, &body))
    }
}

fn decoded<T: DeserializeOwned>(read: &Read) -> Result<T, Error> {
    let status = read.status.as_u16();
    if !read.status.is_success() {
        return Err(refusal(status, &read.media, &read.body));
    }
    serde_json::from_slice(&read.body)
        .map_err(|why| Error::invalid(status, &read.media, why, &read.body))
}

/// Returns the error of an answer that is no success.
pub(crate) fn refusal(status: u16, media: &str, body: &[u8]) -> Error {
    match serde_json::from_slice::<Problem>(body) {
        Ok(problem) => Error::Problem(Box::new(problem)),
        Err(why) => Error::invalid(status, media, why, body),
    }
}

fn media(response: &Response) -> String {
    let media = response.headers().get(header::CONTENT_TYPE);
    let media = media
        .and_then(|media| media.to_str().ok())
        .unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default();
    media.trim().to_owned()
}

/// Returns the time after which an answer says that the request may succeed.
fn after(response: &Response) -> Option<Duration> {
    let status = response.status().as_u16();
    if matches!(status, 429 | 503)
        && let Some(seconds) = response.headers().get(header::RETRY_AFTER)
    {
        let seconds = seconds.to_str().ok().and_then(|text| text.parse().ok());
        return Some(Duration::from_secs(seconds.unwrap_or(1)));
    }
    is_from_proxy(status).then_some(Duration::ZERO)
}

/// Returns true if a proxy answers in place of a server that is being started again.
pub(crate) fn is_from_proxy(status: u16) -> bool {
    matches!(status, 502..=504)
}

/// Returns an error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(told, ": {error}");
        cause = error.source();
    }
    told
}
