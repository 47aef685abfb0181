//! Bedrock's Converse, streamed, with requests that are signed.
//!
//! [`encode`] makes the JSON, [`stream`] puts the answer together and [`sign`] signs, all without I/O; [`crate::wire`] sends and waits.

pub mod encode;
pub mod sign;
pub mod stream;

use crate::messages::with_prefill;
use crate::transport::{Clients, Redirects};
use crate::wire::styled::{self, Exchange, style_of};
use crate::wire::{Timeouts, based, exchange, told, traced, until_cancelled, with_json};
use reqwest::{RequestBuilder, Url};
use sign::{Keys, Post, authorization, encoded};
use steersman_machine::context::Request;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::Boxed;
use steersman_runtime::model::{Model, ModelCall, Sink};
use stream::Decoder;
use tokio_util::sync::CancellationToken;

/// Name of the service in signatures.
const SERVICE: &str = "bedrock";
/// Media type of a body.
const JSON: &str = "application/json";
/// Parameter of an address that names its region.
const REGION: &str = "region";

/// The server to ask.
#[derive(Clone, Debug)]
pub struct Server {
    /// Label for people and usage records: `bedrock/anthropic.claude-haiku-4-5-20251001-v1:0`.
    pub label: Name,
    /// Address: `https://bedrock-runtime.eu-central-1.amazonaws.com`. Another host needs the region: `http://127.0.0.1:8080?region=eu-central-1`.
    pub url: String,
    /// Id of the model, of an inference profile, or an ARN.
    pub model: String,
    /// Timeouts of one attempt.
    pub timeouts: Timeouts,
}

/// A model served by Bedrock's Converse. Its key is an id of an access key, a secret access key and, for temporary keys, a session
/// token, with blanks between them; or an API key of Bedrock alone.
pub struct Bedrock {
    server: Server,
    clients: Clients,
}

impl Bedrock {
    /// Creates a model at this server. Nothing is sent before the first call.
    pub fn new(server: Server) -> Self {
        let clients = Clients::new(server.timeouts.connect, Redirects::Never);
        Self { server, clients }
    }

    async fn send(
        &self,
        call: &ModelCall,
        request: &Request,
        sink: &dyn Sink,
    ) -> Result<Answer, Failure> {
        let invalid = |error: String| Failure::new(FailureCode::InvalidRequest, error);
        let transport = &call.transport;
        let base = transport.url.as_deref().unwrap_or(&self.server.url);
        let model = transport.model.as_deref().unwrap_or(&self.server.model);
        let place = place(base, model, encode::is_streamed(request)).map_err(invalid)?;
        let client = self
            .clients
            .of(&place.url)
            .map_err(|error| Failure::new(FailureCode::Tls, error))?;
        let body = encode::encode(request, model).to_string().into_bytes();
        let post = traced(client.post(place.url.clone()), call.trace);
        let key = transport.key.as_deref().unwrap_or_default();
        let post = authorized(post, &place, key, &body).map_err(invalid)?;
        let answer = exchange(
            with_json(post, body),
            self.server.timeouts,
            Decoder::default(),
            sink,
            self.clients.kept(),
        )
        .await
        // A server could repeat one part of it alone.
        .map_err(|failure| told(failure, key.split_whitespace().chain([key])))?;
        Ok(with_prefill(answer, request.prefill.as_deref()))
    }
}

/// The address of a model's method, and its region.
struct Place {
    url: Url,
    region: Option<String>,
}

fn place(base: &str, model: &str, streamed: bool) -> Result<Place, String> {
    let mut url = based(base, "/")?;
    let given = url.query_pairs().find(|(key, _)| key == REGION);
    let given = given.map(|(_, region)| region.into_owned());
    // The region is the part of the host behind the name of the service.
    let host = url.host_str().unwrap_or_default();
    let mut parts = host.split('.');
    parts.find(|part| part.starts_with("bedrock-runtime"));
    let named = parts.next().map(str::to_owned);
    url.set_query(None);
    let method = if streamed {
        "converse-stream"
    } else {
        "converse"
    };
    let folder = url.path().trim_end_matches('/');
    let path = format!("{folder}/model/{}/{method}", encoded(model, ""));
    url.set_path(&path);
    Ok(Place {
        url,
        region: given.or(named),
    })
}

/// Adds the signature of a request at this moment, or the key alone. The error says what is missing.
fn authorized(
    post: RequestBuilder,
    place: &Place,
    key: &str,
    body: &[u8],
) -> Result<RequestBuilder, String> {
    let parts: Vec<&str> = key.split_whitespace().collect();
    let keys = match parts[..] {
        [] => return Ok(post),
        [key] => return Ok(post.bearer_auth(key)),
        [id, secret] => Keys {
            id,
            secret,
            token: None,
        },
        [id, secret, token] => Keys {
            id,
            secret,
            token: Some(token),
        },
        _ => {
            return Err("the key has more than three parts: it is the id of an access key, its secret and a session token".to_owned());
        }
    };
    let region = place.region.as_deref().ok_or(
        "the address does not name its region: add `?region=` with the region of the models",
    )?;
    let url = &place.url;
    let host = url.host_str().unwrap_or_default();
    let host = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let time = jiff::Timestamp::now()
        .strftime("%Y%m%dT%H%M%SZ")
        .to_string();
    let signed = Post {
        host: &host,
        path: url.path(),
        content_type: JSON,
        body,
    };
    let signature = authorization(signed, keys, region, SERVICE, &time);
    let post = post
        .header("authorization", signature)
        .header("x-amz-date", time);
    Ok(match keys.token {
        Some(token) => post.header("x-amz-security-token", token),
        None => post,
    })
}

impl Exchange for Bedrock {
    fn exchange<'a>(
        &'a self,
        call: &'a ModelCall,
        request: &'a Request,
        sink: &'a dyn Sink,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(self.send(call, request, sink))
    }
}

impl Model for Bedrock {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        let answer = styled::answer(self, call, style_of(&call.request), self.label(), sink);
        Box::pin(until_cancelled(answer, call, cancel))
    }

    fn label(&self) -> Name {
        self.server.label.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_is_in_the_address() {
        let model = "anthropic.claude-haiku-4-5-20251001-v1:0";
        let of = |base: &str| place(base, model, true).unwrap();
        for (base, region) in [
            (
                "https://bedrock-runtime.eu-central-1.amazonaws.com",
                Some("eu-central-1"),
            ),
            (
                "https://bedrock-runtime-fips.us-east-1.amazonaws.com/",
                Some("us-east-1"),
            ),
            (
                "https://vpce-1.bedrock-runtime.us-west-2.vpce.amazonaws.com",
                Some("us-west-2"),
            ),
            ("http://127.0.0.1:8080?region=eu-west-1", Some("eu-west-1")),
            ("http://127.0.0.1:8080/gateway", None),
        ] {
            let place = of(base);
            assert_eq!(place.region.as_deref(), region, "{base}");
            let end = "/model/anthropic.claude-haiku-4-5-20251001-v1%3A0/converse-stream";
            assert!(place.url.as_str().ends_with(end), "{}", place.url);
        }
        let arn =
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-lite-v1:0";
        let whole = place(
            "https://bedrock-runtime.us-east-1.amazonaws.com",
            arn,
            false,
        )
        .unwrap();
        assert_eq!(
            whole.url.path(),
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.amazon.nova-lite-v1%3A0/converse"
        );
    }
}
