//! Prints views on a terminal: colours, columns and widths.

pub(crate) mod graph;
pub(crate) mod remedy;
pub(crate) mod row;
pub(crate) mod timeline;
