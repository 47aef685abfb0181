//! Turns the lines of a session's log into data to show: events, rows, effects, reasons, contexts, graphs and differences.
//!
//! Every reader of a log shows what this crate says: the program in a terminal, a server as JSON, a console in a browser. They
//! only render; no other crate interprets lines. A new kind of interaction or ledger entry is explained here once.
//!
//! ```text
//!   store --lines, texts, stacks--> reader --+--> event    typed events, of the past and as they happen
//!                                            +--> story    one row of text for each thing that happened
//!                                            +--> line     a line with its ledger, as text
//!                                            +--> lanes    what each agent did, as columns
//!                                            +--> timeline    when each agent was at work, and waited
//!                                            +--> spans    what a turn did and how long it took, for tracing tools
//!                                            +--> effects  effects on the world, with their sums
//!                                            +--> elsewhere    effects that a branch does not have
//!                                            +--> why      the chain of reasons of an act
//!                                            +--> context  what models saw, where it came from, what changed
//!                                            +--> diff     the differences between two branches
//!                                            +--> record   a session as a test, and as training data
//!   runtime's inspection ------------------------> page, list, turn, rerun, search    the present, rows of lists, results
//!   lists, inspection ---------------------------> cause    reasons of stops, stuck sessions, sums
//!   measurements of sessions --------------------> grade    rates with intervals, comparison with a baseline
//!   codes ---------------------------------------> remedy   causes of stops and failures, and what to do
//!   lists ---------------------------------------> top      the fleet of a store
//!   lists, inspection ---------------------------> filter   the sessions that meet conditions
//!   definition, snapshot ------------------------> graph    a picture with marks and coordinates
//!   all of these --------------------------------> screen   what a command of the program prints, from a store or from a server
//! ```
//!
//! **Views are plain data.** They serialize to JSON and hold no colours, no widths of terminals and no commands to type. Only
//! [`graph::svg`] paints, because a picture for a page is the same for every reader, and only the refusals of [`screen`] name
//! commands, because screens are what commands print.
//!
//! **Views read through a [`Reader`](reader::Reader).** [`Stored`](reader::Stored) reads a session on disk, whichever process
//! drives it. It masks secrets if asked to: then the values of all secrets that the session knows read `(secret)` in every text,
//! so no view needs to know about secrets. An erased text reads `[erased]`, and one that is not in the store `[missing]`.
//!
//! **One function turns a line into events**: [`Teller::line`](event::Teller::line). A reader of the past calls it for each line on
//! disk, a follower for each line that arrives, so both get the same events with the same cursors.
//! [`Teller::piece`](event::Teller::piece) turns a piece that streams between the lines into a provisional event.
//!
//! **Memory.** Events, rows and lines are made line by line, from pages of lines; texts and older lines are read when they are needed,
//! through a cache with a bound. Only views whose answer is about a whole session (effects, reasons, differences) fold all lines.
//!
//! **The JSON is an interface** of version [`VERSION`]. Fields and kinds may be added; readers ignore those that they do not know. If
//! a field changes its meaning or is removed, the version grows.

#![warn(missing_docs)]

pub mod cause;
pub mod context;
pub mod diff;
pub mod effects;
pub mod elsewhere;
pub mod essence;
pub mod event;
pub mod filter;
pub mod grade;
pub mod graph;
pub mod lanes;
pub mod line;
pub mod list;
pub mod log;
pub mod page;
pub mod reader;
pub mod record;
pub mod remedy;
pub mod rerun;
pub mod screen;
pub mod search;
mod shown;
pub mod spans;
pub mod story;
pub mod texts;
pub mod timeline;
pub mod top;
pub mod turn;
pub mod why;
pub mod words;

/// Version of the JSON of all views. It grows when a field changes its meaning or is removed; additions do not count.
pub const VERSION: u32 = 1;
