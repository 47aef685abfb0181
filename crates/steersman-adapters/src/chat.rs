//! Chat completions, as defined by OpenAI and served by many others: any base address, streamed.
//!
//! [`encode`] makes the JSON and [`stream`] puts the answer together, both without I/O; [`crate::wire`] sends and waits.

mod azure;
mod embed;
pub mod encode;
pub mod quirks;
pub mod stream;

use crate::capabilities::{Known, Remembered};
use crate::strict;
use crate::structured::{self, Style};
use crate::transport::{Clients, Redirects};
use crate::wire::styled::{self, Exchange};
use crate::wire::{
    Timeouts, base_url, endpoint, exchange, told, traced, until_cancelled, with_json,
};
use encode::Dialect;
use quirks::Quirks;
use reqwest::{RequestBuilder, Url};
use std::sync::Arc;
use std::time::Instant;
use steersman_machine::context::Request;
use steersman_machine::network::CallStyle;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::Boxed;
use steersman_runtime::model::{Embed, Model, ModelCall, Sink};
use stream::Decoder;
use tokio_util::sync::CancellationToken;

/// The server to ask, and its protocol details.
#[derive(Clone, Debug)]
pub struct Server {
    /// Label for people and usage records: `openai/gpt-5-mini`.
    pub label: Name,
    /// Base address, with the version in it (`https://api.openai.com/v1`); without a path `/v1` is added.
    pub url: String,
    /// Name of the model at the server.
    pub model: String,
    /// Variant of the protocol.
    pub dialect: Dialect,
    /// Timeouts of one attempt.
    pub timeouts: Timeouts,
}

/// A model served by chat completions.
pub struct Chat {
    server: Server,
    clients: Clients,
    /// Reports of servers about themselves.
    known: Arc<Known>,
    /// Elements of requests that a server refuses for a model, learned from its errors.
    quirks: Remembered<Quirks>,
}

impl Chat {
    /// Creates a model at this server. Nothing is sent before the first call.
    pub fn new(server: Server) -> Self {
        Self::knowing(server, Arc::default())
    }

    /// Creates a model that shares the reports of servers with other models.
    pub(crate) fn knowing(server: Server, known: Arc<Known>) -> Self {
        let clients = Clients::new(server.timeouts.connect, Redirects::Never);
        Self {
            server,
            clients,
            known,
            quirks: Remembered::default(),
        }
    }

    async fn answer(&self, call: &ModelCall, sink: &dyn Sink) -> Result<Answer, Failure> {
        let base = call.transport.url.as_deref().unwrap_or(&self.server.url);
        let model = call
            .transport
            .model
            .as_deref()
            .unwrap_or(&self.server.model);
        let base = self.base(base)?;
        let mut native = match call.request.calls {
            CallStyle::Native => true,
            CallStyle::Structured | CallStyle::Text => false,
            CallStyle::Auto => self.has_tools(&call.request, &base, model).await,
        };
        loop {
            let style = match call.request.calls {
                CallStyle::Text => Style::Text,
                CallStyle::Auto | CallStyle::Native | CallStyle::Structured => Style::Structured,
            };
            let style = (!native).then_some(style);
            let server = At {
                chat: self,
                base: &base,
                model,
            };
            let result = styled::answer(&server, call, style, self.label(), sink).await;
            // A server that refuses tools has done nothing yet, so asking in another style repeats nothing.
            match result {
                Err(failure)
                    if failure.known() == Some(FailureCode::NoTools)
                        && call.request.calls == CallStyle::Auto
                        && native =>
                {
                    self.known.has_no_tools(&base, model);
                    native = false;
                }
                other => return other,
            }
        }
    }

    /// Returns true if tools may be sent: unless the server reports that it has none. Servers without tools answer 200 and drop
    /// them, so the answer itself proves nothing.
    async fn has_tools(&self, request: &Request, base: &Url, model: &str) -> bool {
        if self.server.dialect.openai || structured::tools(request).next().is_none() {
            return true;
        }
        let said = self.known.of(&self.clients, base, model).await;
        said.tools.unwrap_or(true)
    }

    /// Sends the request in the form that the server is known to accept. If the server refuses an element of it, the request is
    /// sent again without that element; each refusal is learned once.
    async fn send_adapted(
        &self,
        call: &ModelCall,
        request: &Request,
        (base, model): (&Url, &str),
        sink: &dyn Sink,
    ) -> Result<Answer, Failure> {
        let dialect = &self.server.dialect;
        let known = self.quirks.get(base, model, Instant::now());
        let mut quirks = known.unwrap_or_default();
        loop {
            let body = encode::encode_next(request, model, dialect, quirks, &call.encodings);
            let failure = match self.send(call, base, body, sink).await {
                Err(failure) if failure.known() == Some(FailureCode::InvalidRequest) => failure,
                other => return other,
            };
            let sent = quirks.applied(encode::encode(request, model, dialect));
            if !quirks.learn(&failure.message, &sent) {
                return Err(failure);
            }
            self.quirks.learn(base, model, quirks, Instant::now());
        }
    }

    fn base(&self, url: &str) -> Result<Url, Failure> {
        let base = if self.server.dialect.azure {
            azure::base(url)
        } else {
            base_url(url)
        };
        base.map_err(|error| Failure::new(FailureCode::InvalidRequest, error))
    }

    fn endpoint(&self, base: &Url, model: Option<&str>, path: &str) -> Url {
        if self.server.dialect.azure {
            return azure::endpoint(base, model.unwrap_or(&self.server.model), path);
        }
        endpoint(base, path)
    }

    fn authorized(&self, post: RequestBuilder, key: Option<&str>) -> RequestBuilder {
        match key {
            Some(key) if self.server.dialect.azure => azure::authorized(post, key),
            Some(key) => post.bearer_auth(key),
            None => post,
        }
    }

    async fn send(
        &self,
        call: &ModelCall,
        base: &Url,
        body: Vec<u8>,
        sink: &dyn Sink,
    ) -> Result<Answer, Failure> {
        let client = self
            .clients
            .of(base)
            .map_err(|error| Failure::new(FailureCode::Tls, error))?;
        let post =
            client.post(self.endpoint(base, call.transport.model.as_deref(), "chat/completions"));
        let post = with_json(traced(post, call.trace), body);
        let post = self.authorized(post, call.transport.key.as_deref());
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

/// A server and its model, as one call names them.
struct At<'a> {
    chat: &'a Chat,
    base: &'a Url,
    model: &'a str,
}

impl At<'_> {
    async fn send(
        &self,
        call: &ModelCall,
        request: &Request,
        sink: &dyn Sink,
    ) -> Result<Answer, Failure> {
        let is_openai = self.chat.server.dialect.openai;
        if request.prefill.is_some() && is_openai {
            let message = "this provider cannot begin an answer for the model: leave out `prefill`";
            return Err(Failure::new(FailureCode::NotSupported, message));
        }
        let place = (self.base, self.model);
        let answer = self.chat.send_adapted(call, request, place, sink).await?;
        let mut answer = with_prefill(answer, request.prefill.as_deref());
        if is_openai {
            strict::narrow_answer(&mut answer, request);
        }
        Ok(answer)
    }
}

impl Exchange for At<'_> {
    fn exchange<'a>(
        &'a self,
        call: &'a ModelCall,
        request: &'a Request,
        sink: &'a dyn Sink,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(self.send(call, request, sink))
    }
}

impl Model for Chat {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(until_cancelled(self.answer(call, sink), call, cancel))
    }

    fn embed<'a>(&'a self, embed: &'a Embed) -> Boxed<'a, Result<Vec<Vec<f32>>, Failure>> {
        Box::pin(async move {
            let transport = &embed.transport;
            let base = transport.url.as_deref().unwrap_or(&self.server.url);
            let model = transport.model.as_deref().unwrap_or(&self.server.model);
            let base = self.base(base)?;
            let post = |client: reqwest::Client| {
                let post = client.post(self.endpoint(&base, Some(model), "embeddings"));
                self.authorized(post, transport.key.as_deref())
            };
            let vectors = embed::embed(self.clients.of(&base).map(post), model, embed).await;
            vectors.map_err(|failure| told(failure, transport.key.as_deref()))
        })
    }

    fn label(&self) -> Name {
        self.server.label.clone()
    }
}

/// Adds the prefill to the answer if it is missing: some servers repeat it, some return only the text after it, and llama.cpp does
/// either.
fn with_prefill(mut answer: Answer, prefill: Option<&str>) -> Answer {
    if let (Some(prefill), Some(text)) = (prefill, &mut answer.text)
        && !text.starts_with(prefill)
    {
        text.insert_str(0, prefill);
    }
    answer
}
