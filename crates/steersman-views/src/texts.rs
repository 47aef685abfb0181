//! The texts of the lines of a log that were read.

use crate::reader::Reader;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Bodies, Body, Line};
use steersman_machine::stored::parts::Parts;

/// Texts by the line that brought them, as a reader shows them.
#[derive(Clone, Debug, Default)]
pub struct Texts(Vec<(Line, Box<[Parts]>)>);

impl Texts {
    /// Adds the texts of a line, which comes after all lines that were added before.
    pub(crate) fn learn(&mut self, line: &LogLine, reader: &dyn Reader) {
        debug_assert!(self.0.last().is_none_or(|(last, _)| *last < line.n));
        if !line.bodies.is_empty() {
            self.0.push((line.n, reader.texts(line).into()));
        }
    }
}

impl Bodies for Texts {
    fn parts(&self, body: Body) -> Parts {
        let found = self.0.binary_search_by_key(&body.line(), |(line, _)| *line);
        let of_line = found.ok().map(|at| &self.0[at].1);
        let parts = of_line.and_then(|texts| texts.get(body.k() as usize));
        parts.map_or_else(|| Parts::One("[not read]".into()), Parts::clone)
    }
}
