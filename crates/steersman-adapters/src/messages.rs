//! Anthropic Messages, at Anthropic and other servers that offer the protocol, streamed.
//!
//! [`encode`] makes the JSON and [`stream`] puts the answer together, both without I/O; [`crate::wire`] sends and waits.

pub mod encode;
pub mod stream;

use crate::transport::{Clients, Redirects};
use crate::wire::styled::{self, Exchange, style_of};
use crate::wire::{Timeouts, base_url, endpoint, exchange, traced, until_cancelled, with_json};
use reqwest::RequestBuilder;
use steersman_machine::context::Request;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::Boxed;
use steersman_runtime::model::{Model, ModelCall, Sink};
use stream::Decoder;
use tokio_util::sync::CancellationToken;

/// Version of the protocol, sent with each request.
const VERSION: &str = "2023-06-01";

/// The server to ask.
#[derive(Clone, Debug)]
pub struct Server {
    /// Label for people and usage records: `anthropic/claude-haiku-4-5`.
    pub label: Name,
    /// Base address, with the version in it (`https://api.anthropic.com/v1`); without a path `/v1` is added.
    pub url: String,
    /// Name of the model at the server.
    pub model: String,
    /// Timeouts of one attempt.
    pub timeouts: Timeouts,
}

/// Adds the version of the protocol and the key to a request.
pub(crate) fn authorized(request: RequestBuilder, key: Option<&str>) -> RequestBuilder {
    let request = request.header("anthropic-version", VERSION);
    match key {
        Some(key) => request.header("x-api-key", key),
        None => request,
    }
}

/// A model served by Anthropic Messages.
pub struct Messages {
    server: Server,
    clients: Clients,
}

impl Messages {
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
        let transport = &call.transport;
        let base = transport.url.as_deref().unwrap_or(&self.server.url);
        let base =
            base_url(base).map_err(|error| Failure::new(FailureCode::InvalidRequest, error))?;
        let model = transport.model.as_deref().unwrap_or(&self.server.model);
        let body = encode::encode_next(request, model, &call.encodings);
        let client = self
            .clients
            .of(&base)
            .map_err(|error| Failure::new(FailureCode::Tls, error))?;
        let post = with_json(client.post(endpoint(&base, "messages")), body);
        let post = authorized(post, transport.key.as_deref());
        let post = traced(post, call.trace);
        let answer = exchange(
            post,
            self.server.timeouts,
            Decoder::default(),
            sink,
            self.clients.kept(),
        )
        .await?;
        Ok(with_prefill(answer, request.prefill.as_deref()))
    }
}

impl Exchange for Messages {
    fn exchange<'a>(
        &'a self,
        call: &'a ModelCall,
        request: &'a Request,
        sink: &'a dyn Sink,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(self.send(call, request, sink))
    }
}

impl Model for Messages {
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

/// Puts the prefill in front of the answer: the server returns only the text after it.
pub(crate) fn with_prefill(mut answer: Answer, prefill: Option<&str>) -> Answer {
    if let (Some(prefill), Some(text)) = (prefill, &mut answer.text) {
        text.insert_str(0, prefill.trim_end());
    }
    answer
}
