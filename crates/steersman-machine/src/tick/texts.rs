//! The texts of a tick: everything that is stored with its line next to the commit.

use crate::stored::bounds::VALUES;
use crate::stored::commit::Text;
use crate::stored::ids::{Bodies, Body, Line, Name};
use crate::stored::parts::{self, NewPart, Parts};
use crate::view::artifact::Content;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The texts of this tick, together with those of the log.
pub(crate) struct Texts<'a> {
    log: &'a dyn Bodies,
    line: Line,
    new: Vec<Text>,
    /// Contents of artifacts that this tick made of texts that were too large.
    contents: Vec<Content>,
    /// The texts of the definitions' defaults in this line, by agent definition and state entry.
    defaults: BTreeMap<(Name, Name), Body>,
    /// Bytes of state values among the new texts; at most `VALUES`.
    values: usize,
}

impl<'a> Texts<'a> {
    pub(super) fn new(log: &'a dyn Bodies, line: Line) -> Self {
        Self {
            log,
            line,
            new: Vec::new(),
            contents: Vec::new(),
            defaults: BTreeMap::new(),
            values: 0,
        }
    }

    /// Adds a text to this line.
    pub(super) fn add(&mut self, text: Arc<str>) -> Body {
        let body = Body::new(self.line, self.new.len() as u32);
        self.new.push(Text::Here(text.into()));
        body
    }

    /// Adds a body of several parts to this line: a text, if there is one, and what follows it.
    pub(super) fn add_parts(&mut self, text: Option<String>, more: Vec<NewPart>) -> Body {
        let text = text.map(|text| self.add(text.into()).k());
        let parts = parts::placed(text, more, |text| self.add(text.into()).k());
        let body = Body::new(self.line, self.new.len() as u32);
        self.new.push(Text::Parts(parts));
        body
    }

    /// Returns the text of a default. All instances that this tick makes share one text.
    pub(super) fn default_of(&mut self, def: &Name, entry: &Name, default: &Json) -> Body {
        let key = (def.clone(), entry.clone());
        if let Some(body) = self.defaults.get(&key) {
            return *body;
        }
        let body = self.add(default.to_string().into());
        self.defaults.insert(key, body);
        body
    }

    /// Adds the content of an artifact that replaces a large text.
    pub(super) fn spill(&mut self, content: Content) {
        self.contents.push(content);
    }

    /// Returns true if the line has room for state values of this size.
    pub(super) fn have_room(&self, values: usize) -> bool {
        self.values + values <= VALUES
    }

    /// Counts bytes of state values that were added, or are about to be. [`Self::have_room`] returned true for them.
    pub(super) fn count_values(&mut self, bytes: usize) {
        debug_assert!(self.have_room(bytes));
        self.values += bytes;
    }

    /// Returns the texts that this tick has made so far.
    pub(super) fn came_in(&self) -> &[Text] {
        &self.new
    }

    /// Removes the newest text, which was needed only for a comparison.
    pub(super) fn forget(&mut self, newest: Body) {
        debug_assert_eq!(newest.k() as usize + 1, self.new.len());
        self.new.pop();
    }

    /// Removes all texts after the first `n`, which nothing names.
    pub(super) fn forget_behind(&mut self, n: usize) {
        self.new.truncate(n);
    }

    /// Returns the new texts and contents, which are stored with the line.
    pub(super) fn into_stored(self) -> (Vec<Text>, Vec<Content>) {
        (self.new, self.contents)
    }
}

impl Bodies for Texts<'_> {
    fn parts(&self, body: Body) -> Parts {
        if body.line() != self.line {
            return self.log.parts(body);
        }
        match &self.new[body.k() as usize] {
            Text::Here(text) => Parts::One(text.text().clone()),
            Text::Parts(parts) => Parts::Several(parts.clone()),
            Text::Blob { .. } | Text::Erased { .. } => {
                unreachable!("a tick makes plain texts only")
            }
        }
    }
}
