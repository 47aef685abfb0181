//! Protocols of others, as pure functions from the events of a session to messages. Nothing here waits, reads or writes, so a protocol
//! tells the same of a log whenever it is read.

pub(crate) mod a2a;
pub(crate) mod agui;
pub(crate) mod chat;
pub(crate) mod mcp;
pub(crate) mod responses;
pub(crate) mod turn;

#[cfg(test)]
mod tests;
