//! The providers of models: one table. A provider is one row, and speaks a wire protocol, which is a folder ([`crate::chat`],
//! [`crate::messages`], [`crate::responses`], [`crate::gemini`], [`crate::bedrock`]). All code that needs a provider's name, address, key or default model reads it from the row.

use crate::bedrock::{self, Bedrock};
use crate::capabilities::Known;
use crate::chat::encode::Dialect;
use crate::chat::{self, Chat};
use crate::gemini::{self, Gemini, Site};
use crate::messages::{self, Messages};
use crate::responses::{self, Responses};
use crate::wire::{Timeouts, base_url};
use reqwest::RequestBuilder;
use std::sync::Arc;
use steersman_machine::stored::ids::Name;
use steersman_runtime::model::Model;

/// A provider of models.
pub(crate) struct Provider {
    /// Name in definitions, bindings and labels.
    pub name: &'static str,
    /// Its own address; `None` if each definition has to give one.
    pub home: Option<Home>,
    /// The cloud that serves it at an address for each customer, if it is one.
    pub cloud: Option<Cloud>,
    /// True if its servers may report which models can call tools ([`crate::capabilities`]).
    pub reports: bool,
    /// Adds the key to a request for the list of models, and the headers that the protocol requires.
    pub list: fn(RequestBuilder, Option<&str>) -> RequestBuilder,
    /// Makes a model. Nothing is sent.
    pub open: fn(At, &Arc<Known>) -> Arc<dyn Model>,
}

/// The well-known address of a provider.
pub(crate) struct Home {
    /// Environment variable of the key.
    pub key: &'static str,
    /// Environment variable that replaces `url`.
    pub base: &'static str,
    /// Base address, with the version of the protocol in its path.
    pub url: &'static str,
    /// Model that is used if none is named.
    pub model: &'static str,
    /// Provider that serves an address that is not `url`, where no key may be needed. `None` means this provider.
    pub elsewhere: Option<&'static str>,
    /// Provider that `auto` takes at this address when it finds the key; `None` if `auto` does not look for the key.
    pub auto: Option<&'static str>,
}

/// A cloud, in which each customer has an address and models of their own. `auto` takes none: its variables are set for other
/// purposes, too.
pub(crate) struct Cloud {
    /// Variables of the credentials: the first list of which all needed ones are set counts.
    pub keys: &'static [Credentials],
    /// Makes the base address from the environment. The error says which variables are missing.
    pub address: fn(&Var<'_>) -> Result<String, String>,
}

/// Reads a variable of the environment.
type Var<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Environment variables that together are the credentials for a cloud.
pub(crate) struct Credentials {
    /// Those that must be set.
    pub needed: &'static [&'static str],
    /// One that is read, too, if it is set.
    pub also: Option<&'static str>,
}

impl Credentials {
    const fn of(needed: &'static [&'static str]) -> Self {
        Self { needed, also: None }
    }
}

impl Home {
    /// Returns true if an address has the scheme, host and port of `url`. Only such an address gets the provider's key. A longer host
    /// name, another port, or a user name in front of another host does not match.
    pub(crate) fn has(&self, url: &str) -> bool {
        let origin = |url: &str| base_url(url).ok().map(|url| url.origin());
        origin(url).is_some_and(|it| Some(it) == origin(self.url))
    }
}

/// A model at a server.
pub(crate) struct At {
    /// Label for people and usage records.
    pub label: Name,
    /// Base address of the server; empty if each call gives it.
    pub url: String,
    /// Name of the model at the server.
    pub model: String,
    /// Timeouts of one attempt.
    pub timeouts: Timeouts,
}

/// All providers. `auto` takes the first one for which the environment has a key, or an address without a key. If a definition has a
/// `key` and names no provider, the key is for the first one.
pub(crate) static PROVIDERS: [Provider; 8] = [
    Provider {
        name: "openai",
        home: Some(Home {
            key: "OPENAI_API_KEY",
            base: "OPENAI_BASE_URL",
            url: "https://api.openai.com/v1",
            model: "gpt-6-luna",
            elsewhere: Some(COMPATIBLE),
            // The current models of OpenAI call tools in the Responses API only.
            auto: Some("responses"),
        }),
        cloud: None,
        reports: true,
        list: bearer,
        open: |at, known| chat(at, known, Dialect::OPENAI),
    },
    Provider {
        name: "anthropic",
        home: Some(Home {
            key: "ANTHROPIC_API_KEY",
            base: "ANTHROPIC_BASE_URL",
            url: "https://api.anthropic.com/v1",
            model: "claude-haiku-4-5",
            elsewhere: None,
            auto: Some("anthropic"),
        }),
        cloud: None,
        reports: false,
        list: messages::authorized,
        open: |at, _| {
            Arc::new(Messages::new(messages::Server {
                label: at.label,
                url: at.url,
                model: at.model,
                timeouts: at.timeouts,
            }))
        },
    },
    Provider {
        name: "gemini",
        home: Some(Home {
            key: "GEMINI_API_KEY",
            base: "GOOGLE_GEMINI_BASE_URL",
            url: "https://generativelanguage.googleapis.com/v1beta",
            model: "gemini-3.8-flash",
            elsewhere: None,
            auto: Some("gemini"),
        }),
        cloud: None,
        reports: false,
        list: gemini::authorized,
        open: |at, _| gemini(at, Site::Gemini),
    },
    Provider {
        name: "responses",
        home: Some(Home {
            key: "OPENAI_API_KEY",
            base: "OPENAI_BASE_URL",
            url: "https://api.openai.com/v1",
            model: "gpt-6-luna",
            elsewhere: None,
            auto: None,
        }),
        cloud: None,
        reports: false,
        list: bearer,
        open: |at, _| {
            Arc::new(Responses::new(responses::Server {
                label: at.label,
                url: at.url,
                model: at.model,
                timeouts: at.timeouts,
            }))
        },
    },
    Provider {
        name: "azure",
        home: None,
        cloud: Some(Cloud {
            keys: &[
                Credentials::of(&["AZURE_OPENAI_API_KEY"]),
                Credentials::of(&["AZURE_OPENAI_AD_TOKEN"]),
            ],
            address: |var| {
                let url = var("AZURE_OPENAI_ENDPOINT");
                let url = url.ok_or("set AZURE_OPENAI_ENDPOINT to the address of the resource")?;
                Ok(match var("OPENAI_API_VERSION") {
                    Some(version) if !url.contains('?') => format!("{url}?api-version={version}"),
                    _ => url,
                })
            },
        }),
        reports: false,
        list: bearer,
        open: |at, known| chat(at, known, Dialect::AZURE),
    },
    Provider {
        name: "vertex",
        home: None,
        cloud: Some(Cloud {
            keys: &[
                Credentials::of(&["GOOGLE_APPLICATION_CREDENTIALS"]),
                Credentials::of(&["CLOUDSDK_AUTH_ACCESS_TOKEN"]),
            ],
            address: |var| {
                let project = var("GOOGLE_CLOUD_PROJECT");
                let project = project.ok_or("set GOOGLE_CLOUD_PROJECT to the id of the project")?;
                let location = var("GOOGLE_CLOUD_LOCATION").unwrap_or_else(|| "global".to_owned());
                let host = match &*location {
                    "global" => "aiplatform.googleapis.com".to_owned(),
                    region => format!("{region}-aiplatform.googleapis.com"),
                };
                Ok(format!(
                    "https://{host}/v1/projects/{project}/locations/{location}"
                ))
            },
        }),
        reports: false,
        list: bearer,
        open: |at, _| gemini(at, Site::Vertex),
    },
    Provider {
        name: "bedrock",
        home: None,
        cloud: Some(Cloud {
            keys: &[
                Credentials::of(&["AWS_BEARER_TOKEN_BEDROCK"]),
                Credentials {
                    needed: &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
                    also: Some("AWS_SESSION_TOKEN"),
                },
            ],
            address: |var| {
                let region = var("AWS_REGION").or_else(|| var("AWS_DEFAULT_REGION"));
                let region = region.ok_or("set AWS_REGION to the region of the models")?;
                Ok(match var("AWS_ENDPOINT_URL_BEDROCK_RUNTIME") {
                    Some(url) => format!("{url}?region={region}"),
                    None => format!("https://bedrock-runtime.{region}.amazonaws.com"),
                })
            },
        }),
        reports: false,
        list: bearer,
        open: |at, _| {
            Arc::new(Bedrock::new(bedrock::Server {
                label: at.label,
                url: at.url,
                model: at.model,
                timeouts: at.timeouts,
            }))
        },
    },
    Provider {
        name: COMPATIBLE,
        home: None,
        cloud: None,
        reports: true,
        list: bearer,
        open: |at, known| chat(at, known, Dialect::COMPATIBLE),
    },
];

/// Provider of a server at an address that a definition or `auto` gives without naming a provider.
pub(crate) const COMPATIBLE: &str = "compatible";

/// Servers on this computer that `local` looks for: Ollama, llama.cpp and vLLM, at their default addresses.
pub(crate) const LOCAL: [(&str, &str); 3] = [
    ("Ollama", "http://127.0.0.1:11434/v1"),
    ("llama.cpp", "http://127.0.0.1:8080/v1"),
    ("vLLM", "http://127.0.0.1:8000/v1"),
];

/// Returns the provider of this name.
pub(crate) fn named(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.name == name)
}

/// Returns the providers that have an address, with it.
pub(crate) fn homes() -> impl Iterator<Item = (&'static Provider, &'static Home)> {
    let all = PROVIDERS.iter();
    all.filter_map(|provider| Some((provider, provider.home.as_ref()?)))
}

fn gemini(at: At, site: Site) -> Arc<dyn Model> {
    Arc::new(Gemini::new(gemini::Server {
        label: at.label,
        url: at.url,
        model: at.model,
        site,
        timeouts: at.timeouts,
    }))
}

fn bearer(get: RequestBuilder, key: Option<&str>) -> RequestBuilder {
    match key {
        Some(key) => get.bearer_auth(key),
        None => get,
    }
}

fn chat(at: At, known: &Arc<Known>, dialect: Dialect) -> Arc<dyn Model> {
    let server = chat::Server {
        label: at.label,
        url: at.url,
        model: at.model,
        dialect,
        timeouts: at.timeouts,
    };
    Arc::new(Chat::knowing(server, known.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use steersman_machine::network::{self, AUTO, SCRIPTED};

    #[test]
    fn names_are_unique_and_lead_to_providers() {
        for provider in &PROVIDERS {
            let same = PROVIDERS.iter().filter(|other| other.name == provider.name);
            assert_eq!(same.count(), 1, "{}", provider.name);
        }
        for (provider, home) in homes() {
            let elsewhere = home.elsewhere.unwrap_or(provider.name);
            assert!(named(elsewhere).is_some(), "{elsewhere}");
            let auto = home.auto.unwrap_or(provider.name);
            assert!(named(auto).is_some(), "{auto}");
        }
        assert!(named(COMPATIBLE).is_some_and(|it| it.home.is_none()));
    }

    /// The key of a provider goes to its own site and to no other.
    #[test]
    fn an_address_that_begins_like_a_site_is_another_one() {
        for (_, home) in homes() {
            let (site, _) = home.url.split_once("/v1").expect("a version");
            for ours in ["", "/", "/v1", "/v1/else?x=1", ":443/v1"] {
                assert!(home.has(&format!("{site}{ours}")), "{ours}");
            }
            for other in [".evil/v1", ":8080/v1", "@evil/v1", ":pw@evil", "x"] {
                assert!(!home.has(&format!("{site}{other}")), "{other}");
            }
        }
    }

    /// A definition may name each provider of the table, and no other.
    #[test]
    fn definitions_know_the_names() {
        let schema = steersman_definition::schema();
        let words = schema.pointer("/$defs/Model/properties/provider/enum");
        let words = words.and_then(serde_json::Value::as_array).expect("words");
        let mut words: Vec<&str> = words.iter().filter_map(|word| word.as_str()).collect();
        words.retain(|word| ![AUTO, network::LOCAL, SCRIPTED].contains(word));
        let mut names: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
        words.sort_unstable();
        names.sort_unstable();
        assert_eq!(words, names);
    }
}
