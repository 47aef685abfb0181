//! The history of a session as typed events, from any position on, without a gap or a repetition.

mod cursor;
mod entry;
mod held;
mod kind;
mod tell;

pub use cursor::{Cursor, CursorError};
pub use kind::{Asking, Called, Event, EventKind, How, SaidPart, Searching, Tried, Wrote};
pub use tell::Teller;
