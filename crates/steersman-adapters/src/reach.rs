//! A test that a server answers at all, for finding out why nothing goes on.

use crate::transport::{Clients, Redirects, describe};
use crate::wire::{base_url, endpoint};
use std::time::Duration;

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks a model server at its base address for its models, without a key, and returns the status of its answer: 401 is an
/// answer, too. Costs nothing.
///
/// # Errors
/// The reason why there is no answer, in words.
pub async fn reach(url: &str) -> Result<u16, String> {
    let base = base_url(url)?;
    let clients = Clients::new(PATIENCE, Redirects::Never);
    let get = clients.of(&base)?.get(endpoint(&base, "models"));
    match get.timeout(PATIENCE).send().await {
        Ok(response) => Ok(response.status().as_u16()),
        Err(error) => Err(describe(error)),
    }
}
