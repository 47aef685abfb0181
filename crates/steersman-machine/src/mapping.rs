//! Maps what a tool, person or wait gave to what becomes of it: what the model sees, what state it writes, which
//! fields are secret. Pure; the driver calls it, seals what is secret, then offers the outcome.

use serde_json::Value as Json;

/// What a source gave, as it came.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// It is done; its result.
    Done(Json),
    /// It is proved not to have happened.
    NotPerformed(Fault),
    /// Nobody knows whether it happened.
    Unknown(Fault),
}

/// Why.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Code of `on_error`: `http_404`, `timeout`, `failed`.
    pub code: String,
    /// For the model and people.
    pub message: String,
    /// HTTP status or exit code.
    pub status: Option<i64>,
    /// Trying again may help, after so many milliseconds at least.
    pub again: Option<u64>,
}
