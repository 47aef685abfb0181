//! Runs multi-agent LLM systems as durable state machines: agents act freely within bounds, and runs survive a kill, can be
//! inspected line by line, and never repeat an effect that must happen only once.
//!
//! ```text
//!   definition (YAML) ---+
//!                        +--> Network --start--> Session --say--> Turn: Answer | Asks | Waits | Stopped
//!   tools (Rust) --------+       |                  |
//!                             checked once       every step is a line of a log, on disk before anybody relies on it
//! ```
//!
//! A *network* is a checked definition. A *session* is one life of a network: a log of numbered lines. After a crash, the
//! session continues in any process that opens the same store.
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use steersman::{By, Network, Steersman, Turn, tool};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Refund { order: String, cents: u64 }
//!
//! const DEFINITION: &str = "
//! steersman: 1
//! name: desk
//! tools:
//!   refund:
//!     native: 1                                  # in Rust, version 1
//!     description: Pays money back for an order.
//!     parameters: { order: string, cents: integer }
//!     effect: unsafe                             # never repeated when it is not known whether it happened
//!     approve: args.cents > 2000                 # then a person decides, on exactly these arguments
//! agents:
//!   desk: { description: Settles complaints., system: You settle complaints., tools: [refund] }
//! entry: desk
//! ";
//!
//! // Answers in place of a model. Without a script, a real model answers.
//! const SCRIPT: &str = r#"
//! desk:
//!   - call: { refund: { order: "4711", cents: 3990 } }
//!   - Your 39.90 are on their way.
//! "#;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), steersman::Error> {
//! let network = Network::from_yaml(DEFINITION)
//!     .tool(tool("refund", 1, |refund: Refund| async move {
//!         Ok::<_, String>(format!("{} cents for {}", refund.cents, refund.order))
//!     }))
//!     .build()?;                                           // every diagnostic at once
//!
//! let steersman = Steersman::options().script_all(SCRIPT).in_memory();     // or Steersman::open("sessions.db").await?
//! let session = steersman.start(&network).await?;
//! let mut turn = session.ask("My kettle arrived broken.").await?;
//! loop {
//!     match turn {
//!         Turn::Answer(answer) => {
//!             assert_eq!(answer.text(), "Your 39.90 are on their way.");
//!             break;
//!         }
//!         Turn::Asks(questions) => session.approve(&questions[0], By::user()).await?,
//!         Turn::Waits(_) => break,                         // parked; any process can continue it
//!         Turn::Stopped(stop) => panic!("{stop}"),
//!     }
//!     turn = session.settled().await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A network can also be built in Rust alone: [`Network::builder`]. For everything that this facade does not cover, use
//! [`Steersman::engine`], [`Session::driven`], and the crates below, re-exported as [`machine`], [`runtime`], [`views`] and
//! [`adapters`].

#![warn(missing_docs)]

mod act;
pub mod build;
mod erase;
mod error;
mod event;
mod files;
mod follow;
pub mod grading;
mod hooks;
mod memory;
mod models;
mod nets;
mod network;
mod read;
mod rebinding;
mod record;
mod rerun;
mod search;
mod servers;
mod session;
pub mod simulation;
mod states;
mod steersman;
pub mod testing;
mod tool;

pub use act::Act;
pub use erase::{Erasure, ErasureError};
pub use error::{DefinitionError, Error, ErrorKind};
pub use event::{EventMessage, Sent, event_message};
pub use files::media as media_of_file;
pub use follow::Events;
pub use hooks::{Hook, hook};
pub use network::{Agent, Builder, Network, agent};
pub use rebinding::{Rebinding, RebindingError};
pub use rerun::Rerun;
pub use search::{PlanError, Searched};
pub use session::Session;
pub use states::{Does, NoWork, State, States};
pub use steersman::{Setup, Steersman};
pub use steersman_machine::stored::by::By;
pub use tool::{Declared, Tool, ToolContext, ToolError, blocking, declare, tool, tool_with};

pub use steersman_adapters as adapters;
pub use steersman_adapters::mcp::{SignIn, SignedIn};
pub use steersman_machine as machine;
pub use steersman_runtime as runtime;
pub use steersman_views as views;

pub use steersman_definition::Diagnostic;
pub use steersman_machine::network::hooks::{
    Answer as HookAnswer, At as HookAt, Call as HookCall, Request as HookRequest, Text as HookText,
    TextOf,
};
pub use steersman_machine::network::join::JoinOn;
pub use steersman_machine::network::nets::NetView;
pub use steersman_machine::network::nets::states::{Ended, Next};
pub use steersman_machine::network::search::{Method as SearchMethod, Plan as SearchPlan, Scorer};
pub use steersman_machine::tick::history::{ChatHistory, HistoryError};
pub use steersman_machine::view::artifact::Content;
pub use steersman_runtime::engine::{Durability, Happened, StartOptions};
pub use steersman_runtime::erase::{Erased, ErasedMany, NotErased, Obstacle, What};
pub use steersman_runtime::inbox::{CancelWhat, Resolution};
pub use steersman_runtime::limiter::Limiters;
pub use steersman_runtime::load::{Damage, Report as Verified};
pub use steersman_runtime::pending::{PendingId, PendingKind};
pub use steersman_runtime::rerun::{Diverged, People, Rerunned};
pub use steersman_runtime::session::{Fate, Fork, Receipt, Search};
pub use steersman_runtime::step::{Go, Step, Steps, Stood};
pub use steersman_runtime::store::{Scope, SessionInfo, SessionQuery};
pub use steersman_views::diff::{Both, Deed, Diff, First};
pub use steersman_views::event::{Called, Cursor, CursorError, Event, EventKind, How, Searching};
pub use steersman_views::record::Block;
pub use steersman_views::turn::{Answer, AnswerError, Question, Stop, StopKind, Turn};
