//! The history of a session as typed events, from any position on, without a gap or a repetition.

mod cursor;
mod kind;
mod tell;

pub use cursor::{Cursor, CursorError};
pub use kind::{Called, Event, EventKind, How, Searching};
pub use tell::Teller;
