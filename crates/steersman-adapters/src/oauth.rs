//! Sign-ins at servers with OAuth 2.1, as a client.
//!
//! ```text
//!   challenge of the server --> where its metadata is (RFC 9728) --> the authorization server (RFC 8414, OpenID Connect)
//!                                                                        |
//!   client: registered before | a document's address | registered now (RFC 7591)
//!                                                                        |
//!   a person's code with PKCE | the program's secret or key --> tokens for this server alone (RFC 8707)
//! ```
//!
//! Everything that is read here comes from outside and has a bound: an answer 256 KiB, a request 10 seconds, the authorization servers
//! of one server four. No address is asked that is neither `https` nor, for a server on this computer, on this computer. Nothing here
//! stores or prints a token; [`kept`] seals them.

pub(crate) mod challenge;
pub(crate) mod discover;
pub(crate) mod kept;
pub(crate) mod tokens;

use crate::transport::{self, Clients, Redirects, is_loopback};
use reqwest::Url;
use serde_json::Value as Json;
use std::time::Duration;

/// Maximum number of bytes of an answer.
const ANSWER_MAX: usize = 256 << 10;
/// Time limit of one request.
const LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of bytes of an error's text that is told.
const TOLD_MAX: usize = 500;

/// Sends the requests of sign-ins.
pub(crate) struct Web {
    /// Clients that follow redirects within one origin.
    free: Clients,
    /// Clients that follow no redirects: these requests have secrets.
    once: Clients,
}

impl Default for Web {
    fn default() -> Self {
        Self {
            free: Clients::new(LIMIT, Redirects::SameOrigin),
            once: Clients::new(LIMIT, Redirects::Never),
        }
    }
}

/// The answer to a request: its status, and its body if that is JSON.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) json: Option<Json>,
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the text of a field.
    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        self.json.as_ref()?.get(field)?.as_str()
    }

    /// Describes an answer that refuses, for people: the error that it names and its status.
    pub(crate) fn refusal(&self) -> String {
        let mut told = match self.text("error") {
            Some(error) => format!("{} (status {})", short(error), self.status),
            None => format!("status {}", self.status),
        };
        if let Some(why) = self.text("error_description") {
            told = format!("{told}: {}", short(why));
        }
        told
    }
}

/// Shortens a text from outside, and removes characters that move a cursor.
pub(crate) fn short(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    text[..text.floor_char_boundary(TOLD_MAX)].to_owned()
}

impl Web {
    /// Reads a document.
    ///
    /// # Errors
    /// The reason why there is no answer, without the address.
    pub(crate) async fn get(&self, url: &Url) -> Result<Answer, String> {
        let client = self.free.of(url)?;
        sent(client.get(url.clone()).header("accept", "application/json")).await
    }

    /// Sends a form. `basic`: the value of `authorization`.
    ///
    /// # Errors
    /// The reason why there is no answer, without the address.
    pub(crate) async fn form(
        &self,
        url: &Url,
        basic: Option<&str>,
        fields: &[(&str, &str)],
    ) -> Result<Answer, String> {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        let mut post = self.once.of(url)?.post(url.clone());
        if let Some(basic) = basic {
            post = post.header("authorization", basic);
        }
        let post = post
            .header("accept", "application/json")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        sent(post).await
    }

    /// Sends JSON.
    ///
    /// # Errors
    /// The reason why there is no answer, without the address.
    pub(crate) async fn json(&self, url: &Url, json: &Json) -> Result<Answer, String> {
        let post = self.once.of(url)?.post(url.clone());
        sent(post.header("accept", "application/json").json(json)).await
    }
}

async fn sent(request: reqwest::RequestBuilder) -> Result<Answer, String> {
    let exchange = async {
        let mut response = request.send().await.map_err(transport::describe)?;
        let status = response.status().as_u16();
        let body = transport::body(&mut response, ANSWER_MAX).await;
        let body = body.map_err(|error| match error {
            transport::BodyError::TooLarge => {
                format!("the answer has more than {} KiB", ANSWER_MAX >> 10)
            }
            transport::BodyError::Broken(why) => why,
        })?;
        Ok(Answer {
            status,
            json: serde_json::from_slice(&body).ok(),
        })
    };
    let answer = tokio::time::timeout(LIMIT, exchange).await;
    answer.unwrap_or_else(|_| Err(format!("no answer within {LIMIT:?}")))
}

/// Reads an address that a document names, or a definition. `server`: the server that the sign-in is for.
///
/// # Errors
/// It must not be asked; the reason, as a sentence.
pub(crate) fn allowed(text: &str, server: &Url) -> Result<Url, String> {
    let shown = short(text);
    let url = Url::parse(text).map_err(|error| format!("`{shown}` is no address: {error}"))?;
    let is_here = is_loopback(&url);
    if is_here && !is_loopback(server) {
        return Err(format!(
            "`{shown}` is on this computer, and the server is not: a server must not send us to ourselves"
        ));
    }
    if url.scheme() != "https" && !(is_here && url.scheme() == "http") {
        return Err(format!("`{shown}` does not begin with https://"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(format!("`{shown}` has a user name or a fragment"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::{allowed, short};
    use reqwest::Url;

    #[test]
    fn only_https_is_asked_and_this_computer_for_its_own_servers() {
        let far = Url::parse("https://books.example.com/mcp").unwrap();
        let near = Url::parse("http://127.0.0.1:8080/mcp").unwrap();
        for (text, from_far, from_near) in [
            ("https://login.example.com/", true, true),
            ("http://login.example.com/", false, false),
            ("http://127.0.0.1:9/", false, true),
            ("http://localhost:9/", false, true),
            ("https://[::1]/", false, true),
            ("https://anna@login.example.com/", false, false),
            ("https://login.example.com/#a", false, false),
            ("file:///etc/passwd", false, false),
            ("login", false, false),
        ] {
            assert_eq!(allowed(text, &far).is_ok(), from_far, "{text}");
            assert_eq!(allowed(text, &near).is_ok(), from_near, "{text}");
        }
    }

    #[test]
    fn texts_from_outside_are_short_and_move_nothing() {
        assert_eq!(short("a\u{1b}[31m\nb"), "a[31mb");
        assert_eq!(short(&"ü".repeat(1_000)).len(), 500);
    }
}
