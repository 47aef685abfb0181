//! Gemini's `generateContent`, streamed, at the Gemini API with a key and at Vertex AI with an access token.
//!
//! [`encode`] makes the JSON and [`stream`] puts the answer together, both without I/O; [`crate::wire`] sends and waits.

pub mod encode;
pub mod stream;
mod token;

use crate::transport::{Clients, Redirects};
use crate::wire::styled::{self, Exchange, style_of};
use crate::wire::{Timeouts, based, endpoint, exchange, told, traced, until_cancelled, with_json};
use reqwest::{RequestBuilder, Url};
use steersman_machine::context::Request;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::Boxed;
use steersman_runtime::model::{Model, ModelCall, Sink};
use stream::Decoder;
use token::Tokens;
use tokio_util::sync::CancellationToken;

/// Version of the protocol where an address has none.
const VERSION: &str = "/v1beta";

/// The site that serves the models.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Site {
    /// The Gemini API: the key goes into a header of its own.
    Gemini,
    /// Vertex AI: the key is an access token or the credentials that get one, and the address names a project and a location.
    Vertex,
}

/// The server to ask.
#[derive(Clone, Debug)]
pub struct Server {
    /// Label for people and usage records: `gemini/gemini-3.8-flash`.
    pub label: Name,
    /// Base address, with the version in it (`https://generativelanguage.googleapis.com/v1beta`); without a path `/v1beta` is added.
    /// For Vertex AI up to the location: `https://HOST/v1/projects/PROJECT/locations/LOCATION`.
    pub url: String,
    /// Name of the model at the server.
    pub model: String,
    /// The site.
    pub site: Site,
    /// Timeouts of one attempt.
    pub timeouts: Timeouts,
}

/// Adds the key to a request to the Gemini API.
pub(crate) fn authorized(request: RequestBuilder, key: Option<&str>) -> RequestBuilder {
    match key {
        Some(key) => request.header("x-goog-api-key", key),
        None => request,
    }
}

/// A model served by Gemini's protocol.
pub struct Gemini {
    server: Server,
    clients: Clients,
    tokens: Tokens,
}

impl Gemini {
    /// Creates a model at this server. Nothing is sent before the first call.
    pub fn new(server: Server) -> Self {
        let clients = Clients::new(server.timeouts.connect, Redirects::Never);
        Self {
            server,
            clients,
            tokens: Tokens::default(),
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
        let model = transport.model.as_deref().unwrap_or(&self.server.model);
        let url = address(base, model, self.server.site, encode::is_streamed(request))
            .map_err(|error| Failure::new(FailureCode::InvalidRequest, error))?;
        let body = encode::encode(request, model).to_string().into_bytes();
        let client = self
            .clients
            .of(&url)
            .map_err(|error| Failure::new(FailureCode::Tls, error))?;
        let post = with_json(traced(client.post(url), call.trace), body);
        let (key, times) = (transport.key.as_deref(), self.server.timeouts);
        let token = match (self.server.site, key) {
            (Site::Vertex, Some(key)) => {
                Some(self.tokens.of(&self.clients, key, times.first).await?)
            }
            _ => None,
        };
        let post = match &token {
            Some(token) => post.bearer_auth(token),
            None => authorized(post, key),
        };
        let decoder = Decoder::default();
        let answer = exchange(post, times, decoder, sink, self.clients.kept()).await;
        // A token that a service account got is a secret, too.
        let keys = [key, token.as_deref()].into_iter().flatten();
        answer.map_err(|failure| told(failure, keys))
    }
}

/// Returns the address of a model's method. A full address of the method is cut to its base.
fn address(base: &str, model: &str, site: Site, streamed: bool) -> Result<Url, String> {
    let mut base = based(base, VERSION)?;
    let path = match site {
        Site::Gemini => base.path().split("/models").next(),
        Site::Vertex => base.path().split("/publishers").next(),
    };
    let path = path.unwrap_or_default().trim_end_matches('/').to_owned();
    base.set_path(&path);
    let model = model.strip_prefix("models/").unwrap_or(model);
    let folder = match site {
        // A tuned model, an endpoint, or the model of another publisher.
        _ if model.contains('/') => "",
        Site::Gemini => "models/",
        Site::Vertex => "publishers/google/models/",
    };
    if site == Site::Vertex && !(path.contains("/projects/") && path.contains("/locations/")) {
        return Err(
            "the address names no project and location: give it as https://HOST/v1/projects/PROJECT/locations/LOCATION"
                .to_owned(),
        );
    }
    let method = if streamed {
        "streamGenerateContent"
    } else {
        "generateContent"
    };
    let mut url = endpoint(&base, &format!("{folder}{model}:{method}"));
    if streamed && url.query_pairs().all(|(key, _)| key != "alt") {
        url.query_pairs_mut().append_pair("alt", "sse");
    }
    Ok(url)
}

impl Exchange for Gemini {
    fn exchange<'a>(
        &'a self,
        call: &'a ModelCall,
        request: &'a Request,
        sink: &'a dyn Sink,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(self.send(call, request, sink))
    }
}

impl Model for Gemini {
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
    fn every_form_of_an_address_leads_to_the_method() {
        let of = |base: &str, model: &str, site| address(base, model, site, true).map(String::from);
        let gemini = "https://g.example/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse";
        for base in [
            "https://g.example",
            "https://g.example/",
            "https://g.example/v1beta",
            "https://g.example/v1beta/models/gemini-9:generateContent",
        ] {
            for model in ["gemini-3-flash", "models/gemini-3-flash"] {
                assert_eq!(of(base, model, Site::Gemini).unwrap(), gemini, "{base}");
            }
        }
        let base = "https://v.example/v1/projects/p/locations/global";
        let vertex = format!("{base}/publishers/google/models/m:streamGenerateContent?alt=sse");
        for base in [base.to_owned(), format!("{base}/"), vertex.clone()] {
            assert_eq!(of(&base, "m", Site::Vertex).unwrap(), vertex);
        }
        let tuned = format!("{base}/endpoints/7:streamGenerateContent?alt=sse");
        assert_eq!(of(base, "endpoints/7", Site::Vertex).unwrap(), tuned);
        let refused = of("https://v.example/v1", "m", Site::Vertex).unwrap_err();
        assert!(refused.contains("names no project"), "{refused}");
        let whole = address(base, "m", Site::Vertex, false).unwrap();
        assert!(whole.as_str().ends_with("/m:generateContent"), "{whole}");
    }
}
