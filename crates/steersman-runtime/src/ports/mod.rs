//! The ports: small traits by which the runtime uses the world, and their stand-ins for tests; the limiter of places; sealed texts, the
//! form in which stores hold secrets.

pub mod artifact;
pub mod budgets;
pub mod clock;
pub mod files;
pub mod inbox;
pub mod limiter;
pub mod model;
pub mod retrieval;
pub mod retry;
pub mod seal;
pub mod store;
pub mod tap;
pub mod toolset;
pub mod trace;
