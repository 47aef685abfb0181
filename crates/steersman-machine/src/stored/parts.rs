//! Bodies that hold more than one text. **Stored**: enums are append-only.
//!
//! Most bodies are one text. A user message, a result or any other body may also be a list of parts: texts, and references to
//! artifacts. The list is stored in place of the text ([`Text::Parts`](crate::stored::commit::Text::Parts)), so everything that
//! names a body names all of its parts, and one text costs nothing more. Readers call
//! [`Bodies::text`](crate::stored::ids::Bodies::text), which names each artifact in its place, or
//! [`Bodies::parts`](crate::stored::ids::Bodies::parts) to handle each kind of part.

use crate::stored::bounds::{self, PARTS};
use crate::stored::ids::Name;
use crate::stored::outcome::{Mapped, NewArtifact};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One part of a body that has several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// A text: the text of this number in the same line. It comes before the list and is not a list itself.
    Text(u32),
    /// A version of an artifact.
    Artifact(Reference),
}

/// A reference to a version of an artifact.
///
/// The hash says which version it is. A version gets its number only when the exchange that made it closes, and an adoption may
/// shift the numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Name by which the agent of the stack sees the artifact.
    pub name: Name,
    /// Media type, such as `image/png`.
    pub media: Name,
    /// blake3 hash of the content, which is a blob.
    pub hash: [u8; 32],
    /// Size of the content in bytes.
    pub len: u64,
}

/// The parts of a body, as a reader of the log gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parts {
    /// One text.
    One(Arc<str>),
    /// Several parts, in order.
    Several(Arc<[Part]>),
}

impl From<Arc<str>> for Parts {
    fn from(text: Arc<str>) -> Self {
        Self::One(text)
    }
}

impl Parts {
    /// Returns the parts as one text. Each part begins on a line of its own, and an artifact is shown by its name, media type and
    /// size. `text` returns the text of this number in the line of the body.
    pub(crate) fn told(self, text: impl Fn(u32) -> Arc<str>) -> Arc<str> {
        let parts = match self {
            Self::One(text) => return text,
            Self::Several(parts) => parts,
        };
        let mut told = String::new();
        for part in &*parts {
            match part {
                Part::Text(k) => add(&mut told, &text(*k)),
                Part::Artifact(of) => add(&mut told, &stand_in(&of.name, &of.media, of.len)),
            }
        }
        told.into()
    }

    /// Returns the parts in the form of an outcome: the text that comes first, if one does, and what follows. `text` returns the
    /// text of this number in the line of the body.
    pub(crate) fn of_outcome(
        self,
        text: impl Fn(u32) -> Arc<str>,
    ) -> (Option<String>, Vec<NewPart>) {
        let parts = match self {
            Self::One(text) => return (Some(text.to_string()), Vec::new()),
            Self::Several(parts) => parts,
        };
        let (first, more) = match &*parts {
            [Part::Text(first), more @ ..] => (Some(text(*first).to_string()), more),
            more => (None, more),
        };
        let more = more.iter().map(|part| match part {
            Part::Text(k) => NewPart::Text(text(*k).to_string()),
            Part::Artifact(of) => NewPart::Artifact(NewArtifact {
                name: of.name.to_string(),
                media: of.media.to_string(),
                hash: of.hash,
                len: of.len,
                content: None,
            }),
        });
        (first, more.collect())
    }

    /// Returns the references to artifacts, in order.
    pub fn artifacts(&self) -> impl Iterator<Item = &Reference> {
        let parts = match self {
            Self::One(_) => &[][..],
            Self::Several(parts) => parts,
        };
        parts.iter().filter_map(|part| match part {
            Part::Artifact(of) => Some(of),
            Part::Text(_) => None,
        })
    }

    /// Returns the parts with other names and media types of the artifacts.
    #[must_use]
    pub fn reworded(self, word: impl Fn(&Name) -> Name) -> Self {
        let parts = match self {
            Self::One(_) => return self,
            Self::Several(parts) => parts,
        };
        let reworded = parts.iter().map(|part| match part {
            Part::Text(k) => Part::Text(*k),
            Part::Artifact(of) => Part::Artifact(Reference {
                name: word(&of.name),
                media: word(&of.media),
                ..of.clone()
            }),
        });
        Self::Several(reworded.collect())
    }
}

/// Returns why these parts cannot be text `k` of a line, or `None` if they can. `is_text` returns true for the number of an
/// earlier text that is no list.
pub(crate) fn misplaced(parts: &[Part], k: u32, is_text: impl Fn(u32) -> bool) -> Option<String> {
    parts.iter().find_map(|part| match part {
        Part::Text(of) if *of >= k || !is_text(*of) => {
            Some(format!("part of {k}: {of} is no text before it"))
        }
        Part::Text(_) | Part::Artifact(_) => None,
    })
}

/// A part of an outcome, before it has a place in the log.
#[derive(Clone, Debug, PartialEq)]
pub enum NewPart {
    /// A text.
    Text(String),
    /// A version of an artifact: one that the outcome makes, or one of the session.
    Artifact(NewArtifact),
}

/// Returns the parts of a body: its first text, if there is one, and what follows. A body has at most [`PARTS`] parts: if there
/// are more, a text in place of the last ones says how many were left out. `add` stores a text and returns its number.
pub(crate) fn placed(
    first: Option<u32>,
    mut more: Vec<NewPart>,
    mut add: impl FnMut(String) -> u32,
) -> Arc<[Part]> {
    let room = PARTS - 1;
    if more.len() > room {
        let left_out = more.split_off(room - 1).len();
        more.push(NewPart::Text(format!("({left_out} more parts)")));
    }
    let more = more.into_iter().map(|part| match part {
        NewPart::Text(text) => Part::Text(add(text)),
        NewPart::Artifact(new) => Part::Artifact(Reference {
            name: bounds::name(&new.name),
            media: bounds::name(&new.media),
            hash: new.hash,
            len: new.len,
        }),
    });
    first.map(Part::Text).into_iter().chain(more).collect()
}

impl Mapped {
    /// Returns everything that the model sees as one text, as `Parts::told` does.
    pub fn told(&self) -> String {
        let mut told = self.shown.clone().unwrap_or_default();
        for part in &self.more {
            match part {
                NewPart::Text(text) => add(&mut told, text),
                NewPart::Artifact(new) => add(&mut told, &stand_in(&new.name, &new.media, new.len)),
            }
        }
        told
    }

    /// Returns all versions of artifacts that the outcome names: those that it makes, and those that its parts refer to.
    pub fn versions(&mut self) -> impl Iterator<Item = &mut NewArtifact> {
        let more = self.more.iter_mut().filter_map(|part| match part {
            NewPart::Artifact(new) => Some(new),
            NewPart::Text(_) => None,
        });
        self.artifacts.iter_mut().chain(more)
    }
}

/// Appends a part to a text, on a line of its own.
fn add(told: &mut String, part: &str) {
    if !told.is_empty() && !part.is_empty() {
        told.push('\n');
    }
    told.push_str(part);
}

/// Returns the text that a reader sees in place of an artifact.
pub(crate) fn stand_in(name: &str, media: &str, len: u64) -> String {
    format!("(artifact {name}: {media}, {len} bytes)")
}
