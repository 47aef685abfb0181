//! Models of a definition.

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
    /// The files of messages that the model gets.
    pub takes: Takes,
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

/// The files of messages that a model gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Takes {
    /// Kinds of files that it gets. Empty means that it gets none.
    pub kinds: Vec<FileKind>,
    /// Maximum size of a file in bytes.
    pub largest: u64,
    /// Text in place of a file of another kind, with the names of [`INSTEAD`](super::texts::INSTEAD). `None` means that the message
    /// alone names the file.
    pub instead: Option<Template>,
}

/// The model gets no files.
static NONE: Takes = Takes {
    kinds: Vec::new(),
    largest: 0,
    instead: None,
};

impl Takes {
    /// Returns the settings of a model that gets no files.
    pub fn none() -> &'static Self {
        &NONE
    }

    /// Returns true if requests to the model are the same with and without files.
    pub fn is_none(&self) -> bool {
        self.kinds.is_empty() && self.instead.is_none()
    }
}

impl Network {
    /// Returns the files of messages that a model gets.
    pub fn takes(&self, model: &str) -> &Takes {
        self.models.get(model).map_or(&NONE, |model| &model.takes)
    }
}

/// A kind of file that models take.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A picture: PNG, JPEG, GIF or WebP.
    Image,
    /// A PDF document.
    Pdf,
}

impl FileKind {
    /// Returns the kind of a media type, such as `image/png`. `None` means that no model gets such a file.
    pub fn of(media: &str) -> Option<Self> {
        let bare = media.split(';').next().unwrap_or_default().trim();
        match bare.to_ascii_lowercase().as_str() {
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" => Some(Self::Image),
            "application/pdf" => Some(Self::Pdf),
            _ => None,
        }
    }

    /// Returns the number of tokens that a file of this kind and size counts as before its provider has counted them.
    ///
    /// An image counts 1,600 tokens, about as many as providers count at most for one of usual size. A PDF counts one token for
    /// each 32 bytes, and as much as an image at least: providers read the text and a picture of each page.
    pub fn tokens(self, bytes: u64) -> u64 {
        match self {
            Self::Image => IMAGE_TOKENS,
            Self::Pdf => bytes.div_ceil(PDF_BYTES).max(IMAGE_TOKENS),
        }
    }
}

/// Assumed number of tokens of an image.
const IMAGE_TOKENS: u64 = 1_600;
/// Assumed number of bytes of a PDF for one token.
const PDF_BYTES: u64 = 32;

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
