//! Paints the picture of a definition: in a terminal, as Mermaid.

pub(crate) mod mermaid;
pub(crate) mod terminal;
