//! The log of a session and all that is read from it: lines, ledger, messages, bindings, secrets, and what waits.

pub mod beside;
pub mod bind;
pub mod branches;
pub mod erase;
pub mod feed;
pub mod inbox;
pub mod known;
pub mod ledger;
pub mod load;
pub mod past;
pub mod pending;
pub mod seal;
