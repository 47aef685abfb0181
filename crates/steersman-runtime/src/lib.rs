//! Drives sessions through the traits Store, Model, Toolset and Clock.

#![warn(missing_docs)]

pub mod bind;
pub mod clock;
pub mod conformance;
mod driver;
pub mod engine;
pub mod feed;
pub mod inbox;
pub mod ledger;
pub mod load;
pub mod model;
pub mod past;
pub mod pending;
pub mod retry;
pub mod seal;
pub mod secrets;
pub mod session;
pub mod store;
pub mod toolset;

/// A future behind a pointer: the ports are object-safe.
pub type Boxed<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Reads environment variables: the process's own ([`process_env`]) or a test's.
pub type Env = std::sync::Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The environment of this process.
pub fn process_env() -> Env {
    std::sync::Arc::new(|name| std::env::var(name).ok())
}
