//! The texts of the lines of a log that were read.

use crate::reader::Reader;
use std::collections::BTreeMap;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::ids::Body;
use steersman_machine::stored::parts::Parts;

/// Texts by the line that brought them, as a reader shows them.
#[derive(Clone, Debug, Default)]
pub struct Texts(BTreeMap<Body, Parts>);

impl Texts {
    /// Adds the texts of a line.
    pub(crate) fn learn(&mut self, line: &LogLine, reader: &dyn Reader) {
        for (k, text) in reader.texts(line).into_iter().enumerate() {
            let k = u32::try_from(k).expect("a line holds fewer than 2^20 texts");
            self.0.insert(Body::new(line.n, k), text);
        }
    }
}

impl Bodies for Texts {
    fn parts(&self, body: Body) -> Parts {
        let parts = self.0.get(&body).cloned();
        parts.unwrap_or_else(|| Parts::One("[not read]".into()))
    }
}
