//! Drives sessions through four ports: Store, Models, Toolset and Clock. Knows no vendor, no SQL and no terminal.
//!
//! ```text
//!    people, programs --Message--> inbox --+
//!                                          v
//!    +----------- one driver for each session, which owns it by a claim -----------+
//!    |  offers --> steersman_machine::tick --> commit + wishes                     |
//!    |     ^                                     |        |                        |
//!    |     |                    ledger: holds, attempts,  |                        |
//!    |     |                    money, what was accepted  |                        |
//!    |     |                                     v        v                        |
//!    |     |                           one line --> Store::append (epoch, atomic)  |
//!    |     |                                              |                        |
//!    |     +-- outcomes <-- Model, Toolset <-- what may begin now that it is on disk
//!    +-----------------------------------------------------------------------------+
//!                                                         |
//!                              Feed: lines on disk, by cursor --> followers
//! ```
//!
//! The runtime promises, in the order in which things happen:
//!
//! 1. **One owner.** [`engine::Engine::open`] claims a session. An owner that lost its claim can write nothing any more.
//! 2. **Once.** A message has an id and is accepted once, in the line that takes it, however often it is delivered.
//! 3. **Output commit.** An `idempotent` or `unsafe` effect begins only after the line that records its start is on disk. Answers,
//!    questions and acknowledgements leave the process only after their lines are on disk. Other calls may run ahead of the disk,
//!    within bounds.
//! 4. **In doubt.** If the outcome of an effect that began is lost, a probe or a person says whether it happened. An `unsafe`
//!    effect never runs again on a guess.
//! 5. **Money.** The maximum price of a call is reserved in the log before the call begins. It counts as spent until the real price
//!    is known.
//! 6. **Recovery.** If a process is killed, the next owner folds the log, asks the machine for the outstanding effects, and
//!    continues.
//!
//! The ports are small traits. [`store::memory`] and [`model::scripted`] serve tests and offline runs, and every store must pass
//! [`conformance`]. A complete session:
//!
//! ```
//! use std::sync::Arc;
//! use serde_json::json;
//! use steersman_definition::{Files, compile};
//! use steersman_machine::stored::ids::Line;
//! use steersman_runtime::clock::System;
//! use steersman_runtime::engine::{Engine, Options, Parts, StartOptions};
//! use steersman_runtime::model::scripted::{Script, ScriptedModel};
//! use steersman_runtime::seal::Sealer;
//! use steersman_runtime::session::Settled;
//! use steersman_runtime::store::memory::MemoryStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let script = Script::parse(&json!({ "desk": ["It boils water."] }))?;
//! let engine = Engine::new(Parts {
//!     store: Arc::new(MemoryStore::new()),
//!     clock: Arc::new(System),
//!     models: Arc::new(ScriptedModel::new(script)),
//!     toolsets: Vec::new(),
//!     sealer: Sealer::ephemeral(),
//!     options: Options::default(),
//! });
//! let files = Files::new("desk.yaml", "
//! steersman: 1
//! name: desk
//! models: { default: scripted }
//! agents: { desk: { description: Answers., system: You answer. } }
//! entry: desk
//! ");
//! let (network, diagnostics) = compile(&files);
//! let network = network.unwrap_or_else(|| panic!("{diagnostics:?}"));
//!
//! let say = Some("What is a kettle?".to_owned());
//! let session = engine.start(Arc::new(network), StartOptions { say, ..StartOptions::default() }).await?;
//! let Settled::Answered { text, .. } = &*session.settled().await? else { panic!("it answers") };
//! assert_eq!(&**text, "It boils water.");
//!
//! // Everything that happened is in the log; anybody may follow it from any line.
//! let lines = engine.feed(session.id(), Line::NONE).lines().await?;
//! assert!(lines.len() >= 2);
//! session.stop().await;
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod driver;
pub mod engine;
mod local;
mod log;
mod ports;
pub mod rerun;
mod tools;

pub use engine::{erase, known, memory, redefine, schedule, servers, session, step};
pub use log::{
    beside, bind, branches, conformance, feed, fields, ledger, load, past, pending, secrets,
};
pub use ports::budgets;
#[doc(hidden)]
pub use ports::files;
pub use ports::{
    artifact, clock, inbox, limiter, model, retrieval, retry, seal, store, tap, toolset, trace,
};
pub use tools::retrieval::unreadable;

/// A boxed future, which keeps the ports object-safe.
pub type Boxed<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A function that reads environment variables, of the process ([`process_env`]) or of a test.
pub type Env = std::sync::Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Returns the environment of this process.
pub fn process_env() -> Env {
    std::sync::Arc::new(|name| std::env::var(name).ok())
}
