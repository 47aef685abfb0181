//! Paints the picture of a definition: in a terminal, as Mermaid, as SVG.

pub(crate) mod mermaid;
pub(crate) mod svg;
pub(crate) mod terminal;
