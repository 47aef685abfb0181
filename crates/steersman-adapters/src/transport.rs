//! HTTP clients with rustls and ring, shared by model providers and tools; bodies are read within bounds.

use reqwest::{Client, Url};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;

/// Set once the TLS provider of this process is installed.
static PROVIDER: Once = Once::new();

/// Installs the TLS provider of this process, if there is none.
pub(crate) fn provider() {
    PROVIDER.call_once(|| {
        // An error only means that an embedding program has installed its own provider before.
        drop(rustls::crypto::ring::default_provider().install_default());
    });
}

/// Redirects that are followed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redirects {
    /// None: a redirect is an answer.
    Never,
    /// Within one origin, five at most: a header with a secret must not reach another host.
    SameOrigin,
}

/// Clients of one adapter, made at first use and kept, so that connections are reused.
#[derive(Debug)]
pub(crate) struct Clients {
    connect: Duration,
    redirects: Redirects,
    loopback: OnceLock<Client>,
    plain: OnceLock<Client>,
    secure: OnceLock<Client>,
    /// True if a connection may have been kept from an earlier call.
    kept: AtomicBool,
    /// Clients with a shorter connect timeout, by https, loopback and the timeout in milliseconds.
    hasty: Mutex<BTreeMap<(bool, bool, u64), Client>>,
}

/// Maximum number of clients with a shorter connect timeout that are kept.
const HASTY: usize = 64;

impl Clients {
    pub(crate) fn new(connect: Duration, redirects: Redirects) -> Self {
        Self {
            connect,
            redirects,
            loopback: OnceLock::new(),
            plain: OnceLock::new(),
            secure: OnceLock::new(),
            kept: AtomicBool::new(false),
            hasty: Mutex::default(),
        }
    }

    /// Returns the flag that is true if a connection may have been kept from an earlier call.
    pub(crate) fn kept(&self) -> &AtomicBool {
        &self.kept
    }

    /// Returns the client for a call to this address with a total time limit. Connecting may take at most nine tenths of it. So a
    /// call that has no connection at the end of its time is known to have sent nothing.
    pub(crate) fn within(&self, url: &Url, limit: Duration) -> Result<Client, String> {
        let connect = limit.mul_f64(0.9);
        if connect >= self.connect {
            return self.of(url);
        }
        let (secure, here) = (url.scheme() == "https", is_loopback(url));
        let key = (secure, here, connect.as_millis() as u64);
        let mut hasty = self.hasty.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = hasty.get(&key) {
            return Ok(client.clone());
        }
        let client = self.build(secure, here, connect)?;
        if hasty.len() >= HASTY {
            hasty.clear();
        }
        hasty.insert(key, client.clone());
        Ok(client)
    }

    /// Returns the client for this address. Certificates of the system are loaded only for https (a container without
    /// certificates can still reach a local server), and a proxy is never used for this computer.
    pub(crate) fn of(&self, url: &Url) -> Result<Client, String> {
        let secure = url.scheme() == "https";
        let here = is_loopback(url);
        let kept = match (secure, here) {
            (true, _) => &self.secure,
            (false, true) => &self.loopback,
            (false, false) => &self.plain,
        };
        if let Some(client) = kept.get() {
            return Ok(client.clone());
        }
        let client = self.build(secure, here, self.connect)?;
        Ok(kept.get_or_init(|| client).clone())
    }

    fn build(&self, secure: bool, here: bool, connect: Duration) -> Result<Client, String> {
        provider();
        let redirects = match self.redirects {
            Redirects::Never => reqwest::redirect::Policy::none(),
            Redirects::SameOrigin => reqwest::redirect::Policy::custom(|attempt| {
                let same = attempt
                    .previous()
                    .last()
                    .is_some_and(|from| from.origin() == attempt.url().origin());
                if same && attempt.previous().len() <= 5 {
                    attempt.follow()
                } else {
                    attempt.stop()
                }
            }),
        };
        let mut builder = Client::builder()
            .connect_timeout(connect)
            .redirect(redirects)
            .retry(reqwest::retry::never())
            .user_agent(concat!("steersman/", env!("CARGO_PKG_VERSION")));
        if !secure {
            builder = builder.tls_certs_only(std::iter::empty());
        }
        if here {
            builder = builder.no_proxy();
        }
        builder.build().map_err(|error| chain(&error))
    }
}

/// Returns true if the address is on this computer.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback()),
        None => false,
    }
}

/// Renders an error with its sources on one line, without the address: its path or query may contain secrets.
pub(crate) fn describe(error: reqwest::Error) -> String {
    chain(&error.without_url())
}

/// Renders an error with its sources, without generic messages.
fn chain(error: &dyn std::error::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let part = error.to_string();
        let empty = part.starts_with("error sending request") || part.starts_with("client error");
        if !empty && !parts.iter().any(|known| known.contains(&part)) {
            parts.push(part);
        }
        next = error.source();
    }
    if parts.is_empty() {
        return error.to_string();
    }
    parts.join(": ")
}

/// Reason why a body was not read to its end.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// It is larger than the bound.
    TooLarge,
    /// The connection ended or broke.
    Broken(String),
}

/// Reads a body of at most `max` bytes.
pub(crate) async fn body(
    response: &mut reqwest::Response,
    max: usize,
) -> Result<Vec<u8>, BodyError> {
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if bytes.len() + chunk.len() > max => return Err(BodyError::TooLarge),
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => return Ok(bytes),
            Err(error) => return Err(BodyError::Broken(describe(error))),
        }
    }
}

/// Reads the beginning of a body, at most `max` bytes, for an error message.
pub(crate) async fn head(response: &mut reqwest::Response, max: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < max
        && let Ok(Some(chunk)) = response.chunk().await
    {
        bytes.extend_from_slice(&chunk);
    }
    bytes.truncate(max);
    bytes
}
