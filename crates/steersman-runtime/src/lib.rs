//! Drives sessions through the traits Store, Model, Toolset and Clock.

#![warn(missing_docs)]

pub mod clock;
pub mod model;
pub mod store;
pub mod toolset;

/// A future behind a pointer: the ports are object-safe.
pub type Boxed<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
