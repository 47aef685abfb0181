//! The collector that the environment names.

use crate::transport::{self, Clients};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::time::Duration;
use steersman_machine::stored::ids::unhex;
use steersman_runtime::Env;
use tokio::time::timeout;

/// A collector, and what to send to it.
#[derive(Clone, Debug)]
pub struct Target {
    pub(super) spans: Option<Place>,
    pub(super) metrics: Option<Place>,
    /// Time between two reports of metrics.
    pub(super) interval: Duration,
    pub(super) service: String,
    pub(super) with_texts: bool,
}

/// The address for one kind of messages.
#[derive(Clone, Debug)]
pub(super) struct Place {
    url: Url,
    headers: HeaderMap,
    timeout: Duration,
}

/// An environment variable that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {why}")]
pub struct TargetError {
    /// Name of the variable.
    pub variable: &'static str,
    /// The reason, and what to write instead.
    pub why: String,
}

/// The variables of one kind of messages, each before the one of all kinds.
struct Signal {
    path: &'static str,
    exporter: &'static str,
    endpoint: [&'static str; 2],
    protocol: [&'static str; 2],
    headers: [&'static str; 2],
    timeout: [&'static str; 2],
}

const SPANS: Signal = Signal {
    path: "v1/traces",
    exporter: "OTEL_TRACES_EXPORTER",
    endpoint: ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", ENDPOINT],
    protocol: ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", PROTOCOL],
    headers: ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", HEADERS],
    timeout: ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", TIMEOUT],
};
const METRICS: Signal = Signal {
    path: "v1/metrics",
    exporter: "OTEL_METRICS_EXPORTER",
    endpoint: ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", ENDPOINT],
    protocol: ["OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", PROTOCOL],
    headers: ["OTEL_EXPORTER_OTLP_METRICS_HEADERS", HEADERS],
    timeout: ["OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", TIMEOUT],
};
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
const INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";

/// Returns the name of the program for spans and metrics: `OTEL_SERVICE_NAME`, otherwise `steersman`.
#[must_use]
pub fn service(env: &Env) -> String {
    given(env, "OTEL_SERVICE_NAME").unwrap_or_else(|| "steersman".to_owned())
}

/// Returns the collector that the standard variables name (`OTEL_EXPORTER_OTLP_ENDPOINT` and its like). `None` if they name none.
///
/// # Errors
/// A variable that cannot be used.
pub fn target(env: &Env) -> Result<Option<Target>, TargetError> {
    if given(env, "OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let (spans, metrics) = (SPANS.place(env)?, METRICS.place(env)?);
    if spans.is_none() && metrics.is_none() {
        return Ok(None);
    }
    Ok(Some(Target {
        spans,
        metrics,
        interval: millis(env, &[INTERVAL], Duration::from_mins(1))?,
        service: service(env),
        with_texts: false,
    }))
}

/// Returns the value of a variable, if it has one.
fn given(env: &Env, name: &str) -> Option<String> {
    env(name).filter(|value| !value.trim().is_empty())
}

/// Returns the first of these variables that is set, and its value.
fn first(env: &Env, names: &[&'static str]) -> Option<(&'static str, String)> {
    (names.iter()).find_map(|name| given(env, name).map(|value| (*name, value)))
}

/// Reads the first of these variables as a number of milliseconds.
fn millis(env: &Env, names: &[&'static str], otherwise: Duration) -> Result<Duration, TargetError> {
    let Some((variable, text)) = first(env, names) else {
        return Ok(otherwise);
    };
    let millis = text.trim().parse().ok().filter(|millis| *millis > 0);
    let millis = millis.ok_or_else(|| TargetError {
        variable,
        why: "it is not a number of milliseconds above 0".to_owned(),
    })?;
    Ok(Duration::from_millis(millis))
}

impl Signal {
    /// Returns the place for these messages. `None` if no variable names one, or one says that they are not sent.
    fn place(&self, env: &Env) -> Result<Option<Place>, TargetError> {
        let Some((variable, address)) = first(env, &self.endpoint) else {
            return Ok(None);
        };
        match given(env, self.exporter).as_deref().map(str::trim) {
            None | Some("otlp") => {}
            Some("none") => return Ok(None),
            Some(other) => {
                return Err(TargetError {
                    variable: self.exporter,
                    why: format!("there is no exporter `{other}`; write `otlp` or `none`"),
                });
            }
        }
        let address = if variable == ENDPOINT {
            format!("{}/{}", address.trim_end_matches('/'), self.path)
        } else {
            address
        };
        let url = Url::parse(&address).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| TargetError {
            variable,
            why: "it is not an address; write `http://127.0.0.1:4318`".to_owned(),
        })?;
        if let Some((variable, protocol)) = first(env, &self.protocol)
            && protocol != "http/protobuf"
        {
            let why = format!("`{protocol}` is not sent; `http/protobuf` is");
            return Err(TargetError { variable, why });
        }
        let mut headers = HeaderMap::new();
        // The headers of one kind replace equal ones of all kinds.
        for variable in self.headers.into_iter().rev() {
            let all = given(env, variable).unwrap_or_default();
            let pairs = all.split(',').map(str::trim);
            for pair in pairs.filter(|pair| !pair.is_empty()) {
                let (name, value) = header(pair).ok_or_else(|| TargetError {
                    variable,
                    // The value may be a key.
                    why: "it is not of the form `name=value,name=value`".to_owned(),
                })?;
                headers.insert(name, value);
            }
        }
        Ok(Some(Place {
            url,
            headers,
            timeout: millis(env, &self.timeout, Duration::from_secs(10))?,
        }))
    }
}

fn header(pair: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = pair.split_once('=')?;
    let name = HeaderName::try_from(name.trim()).ok()?;
    let mut value = HeaderValue::from_bytes(&percent_decoded(value.trim())?).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

/// Decodes `%41`. `None` if a percent sign is followed by something else than two hexadecimal digits.
fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.extend(unhex(part.get(..2)?)?);
        bytes.extend(&part.as_bytes()[2..]);
    }
    Some(bytes)
}

impl Target {
    /// Sends the texts of messages, calls and results, too; secrets that a session knows are masked.
    #[must_use]
    pub fn with_texts(self, with_texts: bool) -> Self {
        Self { with_texts, ..self }
    }

    pub(super) fn has_spans(&self) -> bool {
        self.spans.is_some()
    }
}

/// The reason why a request was not taken.
pub(super) enum Refused {
    /// The same request may be taken later.
    Now(String),
    /// This message will not be taken.
    These(String),
}

impl Place {
    /// Sends a message.
    pub(super) async fn post(&self, clients: &Clients, body: Vec<u8>) -> Result<(), Refused> {
        let client = clients.of(&self.url).map_err(Refused::Now)?;
        let post = client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header("content-type", "application/x-protobuf")
            .body(body);
        let response = match timeout(self.timeout, post.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(Refused::Now(transport::describe(error))),
            Err(_) => {
                let millis = self.timeout.as_millis();
                return Err(Refused::Now(format!("no answer within {millis} ms")));
            }
        };
        let status = response.status();
        match status.as_u16() {
            200..300 => Ok(()),
            429 | 502 | 503 | 504 => Err(Refused::Now(format!("it answers {status}"))),
            _ => Err(Refused::These(format!("it answers {status}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn env(pairs: &[(&str, &str)]) -> Env {
        let pairs: BTreeMap<String, String> = (pairs.iter())
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Arc::new(move |name| pairs.get(name).cloned())
    }

    fn found(pairs: &[(&str, &str)]) -> Option<Target> {
        target(&env(pairs)).unwrap()
    }

    const BASE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");

    #[test]
    fn the_standard_variables_name_the_collector() {
        assert!(found(&[]).is_none());
        let both = found(&[BASE]).unwrap();
        let url = |place: &Option<Place>| place.as_ref().map(|place| place.url.to_string());
        let at = |path: &str| Some(format!("http://127.0.0.1:4318/{path}"));
        assert_eq!(url(&both.spans), at("v1/traces"));
        assert_eq!(url(&both.metrics), at("v1/metrics"));
        assert_eq!(both.service, "steersman");
        assert_eq!(both.interval, Duration::from_mins(1));
        let exact = (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "https://c.example/otlp?x=1",
        );
        let elsewhere = found(&[BASE, exact]).unwrap();
        assert_eq!(
            url(&elsewhere.spans).as_deref(),
            Some("https://c.example/otlp?x=1")
        );
        assert_eq!(url(&elsewhere.metrics), at("v1/metrics"));
        let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, x-team=desk");
        let of_spans = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-team=spans");
        let keyed = found(&[BASE, headers, of_spans, ("OTEL_SERVICE_NAME", "desk")]).unwrap();
        let (spans, metrics) = (
            keyed.spans.as_ref().unwrap(),
            keyed.metrics.as_ref().unwrap(),
        );
        assert_eq!(spans.headers["x-key"], "a b");
        assert_eq!(spans.headers["x-team"], "spans");
        assert_eq!(metrics.headers["x-team"], "desk");
        assert_eq!(keyed.service, "desk");
        assert!(!format!("{keyed:?}").contains("a b"), "values may be keys");
        assert!(found(&[BASE, ("OTEL_SDK_DISABLED", "true")]).is_none());
    }

    #[test]
    fn each_kind_of_messages_can_be_left_out() {
        let (no_spans, no_metrics) = (
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_METRICS_EXPORTER", "none"),
        );
        let spans = found(&[BASE, no_metrics]).unwrap();
        assert!(spans.has_spans() && spans.metrics.is_none());
        let metrics = found(&[BASE, no_spans]).unwrap();
        assert!(!metrics.has_spans() && metrics.metrics.is_some());
        assert!(found(&[BASE, no_spans, no_metrics]).is_none());
        let often = found(&[BASE, ("OTEL_METRIC_EXPORT_INTERVAL", "200")]).unwrap();
        assert_eq!(often.interval, Duration::from_millis(200));
    }

    #[test]
    fn a_variable_that_cannot_be_used_is_an_error_with_its_name() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector"),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "ftp://c.example"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "key"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "key=%4"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
            ("OTEL_METRICS_EXPORTER", "prometheus"),
        ] {
            let error = target(&env(&[BASE, (name, value)])).unwrap_err();
            assert_eq!(error.variable, name);
        }
        // Without a collector it is meant for other programs.
        let others = ("OTEL_METRICS_EXPORTER", "prometheus");
        assert!(found(&[others, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).is_none());
    }
}
