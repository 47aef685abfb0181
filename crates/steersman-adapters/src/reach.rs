//! A check whether a server answers, to find out why a session does not continue.

use crate::transport::{Clients, Redirects, describe};
use crate::wire::{base_url, endpoint};
use std::time::Duration;

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks a model server at its base address for its models, without a key, and returns the status of the answer. Any status shows
/// that the server is up, also 401. The request costs nothing.
///
/// # Errors
/// The reason why there is no answer, as text for people.
pub async fn reach(url: &str) -> Result<u16, String> {
    let base = base_url(url)?;
    let clients = Clients::new(PATIENCE, Redirects::Never);
    let get = clients.of(&base)?.get(endpoint(&base, "models"));
    match get.timeout(PATIENCE).send().await {
        Ok(response) => Ok(response.status().as_u16()),
        Err(error) => Err(describe(error)),
    }
}
