//! The state machine: `(network, snapshot, offers) -> commit + wishes`. No async, clock, I/O or randomness.
//!
//! ```text
//!              offered: outcomes, messages, edits, ends of branches, cancels
//!                 |
//!                 v
//!   snapshot --> tick --> commit --------------> one line of the log --> fold --> the next snapshot
//!  (state of a    |                                                                (the same that
//!    branch)      +--> wishes: models to call, tools to run, people to ask          tick returned)
//!                 +--> left: offers to repeat later
//! ```
//!
//! The driver of a session repeats these steps:
//!
//! 1. Compile a definition (`steersman_definition::compile`); a session begins with [`snapshot::Snapshot::empty`].
//! 2. Pass the offers to [`tick::tick`]. It takes, leaves or refuses each of them by [`tick::table`], and lets every agent that was
//!    woken move until it rests.
//! 3. Make a line of the commit and the driver's own ledger entries, encode it with [`stored::codec::encode`], and store it before
//!    anything outside relies on it.
//! 4. Perform the wishes. The raw result of a tool goes through [`view::mapping::map`] before it is offered. Mapping decides what the
//!    model sees, what is written to the state, and what is secret.
//! 5. After a crash, fold the stored lines ([`fold`](snapshot::fold::fold), which never runs the machine) and ask [`tick::wishes`] for the
//!    outstanding effects.
//!
//! The same network, snapshot, time and offers give the same step on every computer. So the log is the ground truth, and a snapshot
//! is only a cache. A run can be replayed and compared byte by byte (`steersman_testkit::replay`).
//!
//! Each module uses only modules above it in this table. `cargo xtask tidy` checks that.
//!
//! | module | content |
//! |---|---|
//! | [`stored`] | what is in a log: ids, interactions, commits, ledger entries, outcomes; their bytes and bounds |
//! | [`values`] | JSON, types, expressions and templates, prices, rates |
//! | [`snapshot`] | the state of a branch, and how a line changes it. It does not know the definition |
//! | [`network`] | the checked definition |
//! | [`view`] | the names that expressions of an agent may read: state, artifacts, memory, results of tools |
//! | [`questions`] | purposes of model calls, the tools by which a model answers, and the questions that the engine asks for itself |
//! | [`routers`] | who acts next under a routed agent |
//! | [`context`] | what a model sees |
//! | [`tick`] | decides: takes offers, moves agents, returns a commit and wishes |
//! | [`search`] | plans a search over branches |
//! | [`trace`] | prints lines |
//!
//! ```
//! use std::sync::Arc;
//! use steersman_definition::{Files, compile};
//! use steersman_machine::snapshot::fold::fold;
//! use steersman_machine::snapshot::{Phase, Snapshot};
//! use steersman_machine::stored::commit::{Binding, LogLine, Text};
//! use steersman_machine::stored::ids::{Bodies, Body, Id, Line, Time};
//! use steersman_machine::stored::outcome::{Answer, Outcome};
//! use steersman_machine::stored::parts::Parts;
//! use steersman_machine::tick::effect::{Offered, Said, Start, Step, Work};
//! use steersman_machine::tick::history::ChatHistory;
//! use steersman_machine::tick::{tick, wishes};
//! use steersman_machine::view::Cx;
//!
//! /// The log in memory. A body names the line that holds its text.
//! #[derive(Default)]
//! struct Log(Vec<LogLine>);
//!
//! impl Bodies for Log {
//!     fn parts(&self, body: Body) -> Parts {
//!         match &self.0[body.line().0 as usize - 1].bodies[body.k() as usize] {
//!             Text::Here(text) => Parts::One(text.text().clone()),
//!             other => panic!("{other:?}"),
//!         }
//!     }
//! }
//!
//! let files = Files::new("desk.yaml", "
//! steersman: 1
//! name: desk
//! agents: { desk: { description: Answers., system: You answer. } }
//! entry: desk
//! ");
//! let (network, diagnostics) = compile(&files);
//! let network = network.unwrap_or_else(|| panic!("{diagnostics:?}"));
//! let mut log = Log::default();
//! let mut step = |snapshot: Snapshot, offered: Offered| -> Step {
//!     let (n, prev) = (Line(log.0.len() as u64 + 1), Line(log.0.len() as u64));
//!     let cx = Cx { network: &network, bodies: &log };
//!     let step = tick(&cx, snapshot.clone(), n, Time(1_767_614_400_000), &[offered]);
//!     let line = LogLine {
//!         n,
//!         at: Time(1_767_614_400_000),
//!         prev,
//!         branch: Id::MAIN,
//!         commit: step.commit.clone(),
//!         ledger: Vec::new(), // a driver's: holds, attempts, money
//!         bodies: step.bodies.clone(),
//!     };
//!     assert_eq!(fold(snapshot, &line), step.snapshot, "fold gives the snapshot that tick returned");
//!     log.0.push(line);
//!     step
//! };
//!
//! // A message arrives: the tick makes the agent, which owes a model call.
//! let message = Said { id: "m1".into(), text: "What is a kettle?".into(), by: "user".into(), to: None,
//!     sender: None, came: Vec::new(), sets: Vec::new() };
//! let begun = step(Snapshot::empty(), Offered::Start(Start {
//!     agent: None,
//!     args: None,
//!     message: Some(message),
//!     came: Vec::new(),
//!     history: ChatHistory::default(),
//!     binding: Binding {
//!         network: network.name.clone(),
//!         digest: network.digest,
//!         source: [0; 32],
//!         entry: "desk".into(),
//!         values: Body::new(Line(1), 0),
//!         machine: 1,
//!     },
//!     values: "{}".into(),
//! }));
//! let [wish] = begun.wishes.as_slice() else { panic!("the tick wishes one effect") };
//! assert!(matches!(wish.work, Work::Model));
//!
//! // The model's answer arrives: the turn ends, and no effect is outstanding.
//! let answer = Answer { text: Some("It boils water.".to_owned()), ..Answer::default() };
//! let answered = step(begun.snapshot, Offered::Outcome {
//!     effect: wish.id,
//!     attempt: 1,
//!     outcome: Outcome::Answer(answer),
//! });
//! let root = answered.snapshot.root_agent().expect("it was made");
//! assert_eq!(root.phase, Phase::Resting);
//! let text = root.turn.answer.expect("it answered");
//! assert_eq!(&*log.text(text), "It boils water.");
//! assert!(wishes(&Cx { network: &network, bodies: &log }, &answered.snapshot).is_empty());
//! ```

#![warn(missing_docs)]

pub mod context;
pub mod network;
pub mod questions;
pub mod routers;
pub mod search;
pub mod snapshot;
pub mod stored;
pub mod tick;
pub mod trace;
pub mod values;
pub mod view;
