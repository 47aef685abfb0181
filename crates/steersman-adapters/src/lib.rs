//! Adapters to the world: SQLite, model providers, HTTP and command tools.
//!
//! ```text
//!   Request --encode--> JSON --POST--> server --SSE--> frames --decode--> Answer      (chat, wire)
//!      |                                                                     ^
//!      +-- structured: tools listed in the prompt, calls read from the text --+
//!
//!   ToolRun --http | command | mcp--> the world --> Raw: done, not performed (proved), unknown
//! ```
//!
//! Encoding and decoding never do I/O, so both are tested from recorded frames. No adapter retries: a failure is returned as
//! data that says if another attempt may help, and the driver decides.
//!
//! ```
//! use steersman_adapters::chat::stream::Decoder;
//! use steersman_adapters::wire::{Decode, Quiet, sse::Events};
//! let wire = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n\
//!             data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
//! let (mut events, mut decoder) = (Events::default(), Decoder::default());
//! for event in events.push(wire.as_bytes()).expect("it is small") {
//!     decoder.event(&event, &Quiet).expect("it is an answer");
//! }
//! let answer = decoder.finish().expect("it is whole");
//! assert_eq!(answer.text.as_deref(), Some("Hello"));
//! ```

#![warn(missing_docs)]

pub mod bedrock;
pub mod capabilities;
pub mod catalog;
pub mod chat;
pub mod command;
pub mod fts;
pub mod gemini;
pub mod http;
mod jwt;
mod masked;
pub mod mcp;
pub mod messages;
pub(crate) mod oauth;
#[cfg(feature = "otel")]
pub mod otel;
mod prefix;
mod providers;
pub mod reach;
mod regular;
pub mod responses;
pub mod schema;
pub mod secrets;
pub mod sqlite;
pub mod stores;
mod strict;
pub mod structured;
mod transport;
pub mod webhook;
pub mod wire;
