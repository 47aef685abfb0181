//! The ports: small traits by which the runtime uses the world, their stand-ins for tests, and the limiter of places.

pub mod artifact;
pub mod clock;
pub mod files;
pub mod inbox;
pub mod limiter;
pub mod model;
pub mod retrieval;
pub mod retry;
pub mod store;
pub mod toolset;
