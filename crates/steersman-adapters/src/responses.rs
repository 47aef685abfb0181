//! OpenAI Responses, at OpenAI and other servers that offer the protocol, streamed.
//!
//! [`encode`] makes the JSON and [`stream`] puts the answer together, both without I/O; [`crate::wire`] sends and waits.

pub mod encode;
pub mod stream;

use crate::capabilities::Remembered;
use crate::strict;
use crate::transport::{Clients, Redirects};
use crate::wire::styled::{self, Exchange, style_of};
use crate::wire::{Timeouts, base_url, endpoint, exchange, traced, until_cancelled, with_json};
use reqwest::Url;
use std::time::Instant;
use steersman_machine::context::Request;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::Boxed;
use steersman_runtime::model::{Model, ModelCall, Sink};
use stream::Decoder;
use tokio_util::sync::CancellationToken;

/// The server to ask.
#[derive(Clone, Debug)]
pub struct Server {
    /// Label for people and usage records: `responses/gpt-5-mini`.
    pub label: Name,
    /// Base address, with the version in it (`https://api.openai.com/v1`); without a path `/v1` is added.
    pub url: String,
    /// Name of the model at the server.
    pub model: String,
    /// Timeouts of one attempt.
    pub timeouts: Timeouts,
}

/// A model served by OpenAI Responses.
pub struct Responses {
    server: Server,
    clients: Clients,
    /// True for a model that refused to give its reasoning in encrypted form: it has none.
    no_reasoning: Remembered<bool>,
}

impl Responses {
    /// Creates a model at this server. Nothing is sent before the first call.
    pub fn new(server: Server) -> Self {
        let clients = Clients::new(server.timeouts.connect, Redirects::Never);
        Self {
            server,
            clients,
            no_reasoning: Remembered::default(),
        }
    }

    async fn send(
        &self,
        call: &ModelCall,
        request: &Request,
        sink: &dyn Sink,
    ) -> Result<Answer, Failure> {
        if request.prefill.is_some() {
            let message = "this provider cannot begin an answer for the model: leave out `prefill`";
            return Err(Failure::new(FailureCode::NotSupported, message));
        }
        let transport = &call.transport;
        let base = transport.url.as_deref().unwrap_or(&self.server.url);
        let base =
            base_url(base).map_err(|error| Failure::new(FailureCode::InvalidRequest, error))?;
        let model = transport.model.as_deref().unwrap_or(&self.server.model);
        let now = Instant::now();
        let mut has_reasoning = self.no_reasoning.get(&base, model, now) != Some(true);
        loop {
            let body = encode::encode(request, model, has_reasoning);
            let failure = match self.post(call, &base, &body, sink).await {
                Ok(mut answer) => {
                    strict::narrow_answer(&mut answer, request);
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            // A refused request had no effect, so it is sent again without what the model cannot give.
            let refused = failure.known() == Some(FailureCode::InvalidRequest)
                && failure.message.to_lowercase().contains("encrypted content");
            if !(refused && has_reasoning) {
                return Err(failure);
            }
            self.no_reasoning.learn(&base, model, true, Instant::now());
            has_reasoning = false;
        }
    }

    async fn post(
        &self,
        call: &ModelCall,
        base: &Url,
        body: &serde_json::Value,
        sink: &dyn Sink,
    ) -> Result<Answer, Failure> {
        let client = self
            .clients
            .of(base)
            .map_err(|error| Failure::new(FailureCode::Tls, error))?;
        let post = client.post(endpoint(base, "responses"));
        let mut post = with_json(traced(post, call.trace), body.to_string().into_bytes());
        if let Some(key) = &call.transport.key {
            post = post.bearer_auth(key);
        }
        exchange(
            post,
            self.server.timeouts,
            Decoder::default(),
            sink,
            self.clients.kept(),
        )
        .await
    }
}

impl Exchange for Responses {
    fn exchange<'a>(
        &'a self,
        call: &'a ModelCall,
        request: &'a Request,
        sink: &'a dyn Sink,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(self.send(call, request, sink))
    }
}

impl Model for Responses {
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
