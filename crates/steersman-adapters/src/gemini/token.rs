//! Access tokens for Google's cloud. A key is a token itself, or credentials that get one: a service account, or a person who logged in.

use crate::jwt;
use crate::transport::{self, Clients};
use crate::wire::fault;
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::outcome::Failure;
use tokio::time::timeout;

/// The right that a token is asked for.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// Address that exchanges credentials for tokens, where they name none.
const TOKENS: &str = "https://oauth2.googleapis.com/token";
/// Kind of the exchange of a signed claim.
const CLAIM: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Seconds that a signed claim holds; the most that the provider allows.
const CLAIM_LIFE: i64 = 3_600;
/// A token is not used in the last part of its life: the call that it is for takes time, too.
const MARGIN: Duration = Duration::from_mins(4);
/// Maximum number of bytes of an answer with a token, and of a file of credentials.
const MAX: usize = 64 << 10;
/// Maximum number of credentials whose tokens are kept.
const KEPT: usize = 64;

/// Tokens that were got, by a hash of their credentials, with the time until which they are used.
#[derive(Debug, Default)]
pub(super) struct Tokens(Mutex<BTreeMap<[u8; 32], (String, Instant)>>);

/// Credentials, as Google's tools write them into a file.
#[derive(Deserialize)]
struct Credentials {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    client_email: String,
    #[serde(default)]
    private_key: String,
    #[serde(default)]
    private_key_id: String,
    token_uri: Option<String>,
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    client_secret: String,
    #[serde(default)]
    refresh_token: String,
}

#[derive(Deserialize)]
struct Got {
    access_token: String,
    expires_in: Option<u64>,
}

fn refused(message: impl Into<String>) -> Failure {
    Failure::new(FailureCode::Unauthorized, message)
}

impl Tokens {
    /// Returns an access token for this key: a token, the JSON of credentials, or the path of a file that holds it.
    ///
    /// # Errors
    /// The credentials cannot be read, or no token is given for them within this time.
    pub(super) async fn of(
        &self,
        clients: &Clients,
        key: &str,
        patience: Duration,
    ) -> Result<String, Failure> {
        let key = key.trim();
        let end = Path::new(key).extension();
        let is_json = end.is_some_and(|end| end.eq_ignore_ascii_case("json"));
        let text = if key.starts_with('{') {
            key.to_owned()
        } else if is_json || key.starts_with('/') {
            file(key).await?
        } else {
            return Ok(key.to_owned());
        };
        let digest = *blake3::hash(text.as_bytes()).as_bytes();
        if let Some(token) = self.kept(digest) {
            return Ok(token);
        }
        let asked = Instant::now();
        let got = timeout(patience, exchanged(clients, &text)).await;
        let late = |_| Failure::new(FailureCode::Timeout, "no access token in time");
        let got = got.map_err(late)??;
        // The provider always says how long a token lives. A server that does not say it is asked each time.
        let life = Duration::from_secs(got.expires_in.unwrap_or(0));
        let until = asked + life.saturating_sub(MARGIN);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(digest, (got.access_token.clone(), until));
        Ok(got.access_token)
    }

    fn kept(&self, digest: [u8; 32]) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (token, until) = kept.get(&digest)?;
        (Instant::now() < *until).then(|| token.clone())
    }
}

/// Reads a file of credentials. Its path is the key, so an error does not name it.
async fn file(path: &str) -> Result<String, Failure> {
    let why = match tokio::fs::read(path).await {
        Ok(bytes) if bytes.len() > MAX => "it is larger than 64 KiB".to_owned(),
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => return Ok(text),
            Err(_) => "it is no text".to_owned(),
        },
        Err(error) => error.to_string(),
    };
    Err(refused(format!(
        "the file of the credentials cannot be read: {why}"
    )))
}

/// Exchanges credentials for a token.
async fn exchanged(clients: &Clients, text: &str) -> Result<Got, Failure> {
    // The error of the reader could quote the key.
    let credentials: Credentials = serde_json::from_str(text).map_err(|_| {
        refused("the credentials are not the JSON of a service account or of a login: make a new key file")
    })?;
    let uri = credentials.token_uri.as_deref().unwrap_or(TOKENS);
    let form = match &*credentials.kind {
        "service_account" => {
            let now = jiff::Timestamp::now().as_second();
            let claim = claim(&credentials, uri, now)?;
            form(&[("grant_type", CLAIM), ("assertion", &claim)])
        }
        "authorized_user" => form(&[
            ("grant_type", "refresh_token"),
            ("client_id", &credentials.client_id),
            ("client_secret", &credentials.client_secret),
            ("refresh_token", &credentials.refresh_token),
        ]),
        kind => {
            return Err(refused(format!(
                "credentials of the type `{kind}` are not supported: take a service account, or an access token"
            )));
        }
    };
    let url = Url::parse(uri)
        .map_err(|error| refused(format!("the `token_uri` of the credentials: {error}")))?;
    let client = clients
        .of(&url)
        .map_err(|error| Failure::new(FailureCode::Tls, error))?;
    let post = client
        .post(url)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form);
    let mut response = post.send().await.map_err(|error| {
        let message = format!("no access token: {}", transport::describe(error));
        Failure::new(FailureCode::Unreachable, message)
    })?;
    let status = response.status();
    let body = transport::head(&mut response, MAX).await;
    if !status.is_success() {
        let said = String::from_utf8_lossy(&body);
        let failure = fault::of_status(status.as_u16(), response.headers(), &said);
        let message = format!("no access token: {}", failure.message);
        // The provider answers 400 to credentials that it does not accept.
        let code = match failure.known() {
            Some(FailureCode::InvalidRequest) | None => FailureCode::Unauthorized,
            Some(code) => code,
        };
        return Err(Failure {
            retry: failure.retry,
            ..Failure::new(code, message)
        });
    }
    serde_json::from_slice(&body)
        .map_err(|_| Failure::new(FailureCode::BadResponse, "no access token is in the answer"))
}

fn form(fields: &[(&str, &str)]) -> String {
    let mut url = Url::parse("http://form").expect("it is an address");
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

/// Returns the claim of a service account at this time, in seconds, signed with its key.
fn claim(credentials: &Credentials, uri: &str, now: i64) -> Result<String, Failure> {
    let claims = json!({
        "iss": credentials.client_email, "scope": SCOPE, "aud": uri, "iat": now, "exp": now + CLAIM_LIFE,
    });
    let key = (&*credentials.private_key, &*credentials.private_key_id);
    jwt::signed(key.0, Some(key.1), &claims).ok_or_else(|| {
        refused("the private key of the service account cannot be used: make a new key file")
    })
}
