//! Models of a definition.

#[cfg(doc)]
use super::Network;
use crate::stored::ids::Name;
use crate::values::expression::Template;
use crate::values::price::Price;
use crate::values::rate::Rate;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// A model of the definition.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelDef {
    /// Protocol and provider.
    pub provider: Provider,
    /// Name of the model at the provider: a template over `config` ([`Network::with_model_names`]).
    pub model: Option<Template>,
    /// Base address of the provider.
    pub url: Option<Template>,
    /// API key: a template over `secrets`.
    pub key: Option<Template>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Maximum number of tokens of an answer.
    pub max_tokens: Option<u64>,
    /// Maximum number of tokens of a request and its answer together, if known.
    pub window: Option<u64>,
    /// Further parameters, sent unchanged.
    pub params: BTreeMap<String, Json>,
    /// The way in which the model is offered tools and calls them.
    pub calls: CallStyle,
    /// Fallback models, in the order in which they are asked.
    pub fallback: Vec<Name>,
    /// Number of attempts of a call, and the time for which the call then waits for the end of an outage.
    pub retry: ModelRetry,
    /// Highest rate of requests and tokens.
    pub rate: Option<Rate>,
    /// Price of the model. `None` means the price in the built-in table for the model that answers.
    pub price: Option<Price>,
}

/// Retries of a model call whose provider does not answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ModelRetry {
    /// Maximum number of attempts in a row.
    pub times: u32,
    /// Milliseconds to wait, after these attempts, for an outage of the place to end. 0 means that the call fails instead.
    pub outage: u64,
}

impl Default for ModelRetry {
    fn default() -> Self {
        Self {
            times: 5,
            outage: 24 * 3_600_000,
        }
    }
}

impl ModelDef {
    /// Returns the name of the model at the provider, if there is one and it is not a template that was not rendered.
    pub fn named(&self) -> Option<&str> {
        self.model.as_ref()?.text()
    }
}

/// Protocol and provider of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// The provider is found at the start of the session, by the environment.
    Auto,
    /// A server on this computer, found at the start of the session.
    Local,
    /// A provider of the adapters, by its name.
    Named(Name),
    /// Answers come from a script.
    Scripted,
}

/// Word for [`Provider::Auto`] in definitions.
pub const AUTO: &str = "auto";
/// Word for [`Provider::Local`] in definitions, and in place of a model's name where a session begins.
pub const LOCAL: &str = "local";
/// Word for [`Provider::Scripted`] in definitions, and name of that provider in bindings.
pub const SCRIPTED: &str = "scripted";

/// The way in which a model is offered tools and calls them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum CallStyle {
    /// [`CallStyle::Native`], or [`CallStyle::Structured`] if the server says that it does not support tools.
    #[default]
    Auto,
    /// Tools and calls use the provider's own protocol.
    Native,
    /// Tools are described in the prompt; the answer follows a JSON Schema.
    Structured,
    /// The first JSON object `{ tool, arguments }` in the answer's text is the call.
    Text,
}
