//! Paints the timeline of a session.

pub(crate) mod svg;
pub(crate) mod terminal;
