//! The log of a session and all that is read from it: lines, ledger, bindings, secrets, and what waits.

pub mod beside;
pub mod bind;
pub mod branches;
pub mod conformance;
pub(crate) mod error;
pub mod feed;
pub mod fields;
mod heard;
pub(crate) mod inspection;
pub(crate) mod last;
pub mod ledger;
pub mod load;
mod mapped;
pub mod past;
pub mod pending;
pub mod secrets;
pub(crate) mod settled;
pub(crate) mod standing;
