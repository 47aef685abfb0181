//! Hover: what is known about a place, from the reference and from the definition.

use super::names::Occurrence;
use super::outline::Part;
use super::{Hover, Language, outline, typed};
use crate::keys::{Key, Space, Table};
use crate::schema;
use std::fmt::Write as _;

/// Maximum number of lines of a declaration that are shown.
const LINES: usize = 12;

/// Returns a text about the place at an offset.
pub(super) fn hover(language: &Language, file: &str, text: &str, offset: usize) -> Option<Hover> {
    if let Some((meaning, range)) = language.meaning(file, text, offset) {
        let declared = language.names.declared().find(|at| at.meaning == meaning);
        if let Some(at) = declared {
            let text = match language.excerpt(at) {
                Some(excerpt) => format!("{}\n\n```yaml\n{excerpt}\n```", described(at)),
                None => described(at),
            };
            return Some(Hover { text, range });
        }
    }
    if !super::is_yaml(file) {
        return None;
    }
    let spot = outline::spot(text, offset)?;
    let range = spot.range.clone();
    let typed = typed::at(&spot.path);
    if spot.part == Part::Key {
        let name = text.get(range.clone())?;
        let (table, key) = typed
            .tables()
            .find_map(|table| Some((table, table.key(name)?)))?;
        let text = about(table, key);
        return Some(Hover { text, range });
    }
    if let Some((path, at)) = path_at(text, range.clone(), offset) {
        let (last, before) = path.split_last()?;
        let offered = language.offered(file, &spot.path, before);
        if let Some(known) = offered.iter().find(|known| known.name == *last) {
            let text = format!("`{}`: {}", path.join("."), known.is);
            return Some(Hover { text, range: at });
        }
    }
    let (table, key) = typed.key?;
    let text = about(table, key);
    Some(Hover { text, range })
}

/// Returns the names with dots between them that end with the name at an offset, and their range.
fn path_at(
    text: &str,
    within: std::ops::Range<usize>,
    offset: usize,
) -> Option<(Vec<&str>, std::ops::Range<usize>)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let before = text.get(within.start..offset)?;
    let start = before.trim_end_matches(|c| is_word(c) || c == '.').len() + within.start;
    let behind = text.get(offset..within.end)?;
    let end = offset + behind.find(|c| !is_word(c)).unwrap_or(behind.len());
    let path: Vec<&str> = text.get(start..end)?.split('.').collect();
    let named = path.iter().all(|name| !name.is_empty());
    named.then_some((path, start..end))
}

/// Returns the text of the reference about a key.
pub(super) fn about(table: &'static Table, key: &'static Key) -> String {
    let mut text = format!(
        "**{}** of {}: {}\n\n{}",
        key.name,
        table.words,
        schema::words(&key.ty),
        key.doc
    );
    if key.required {
        text.push_str("\n\nRequired.");
    } else if let Some(default) = key.default() {
        let _ = write!(text, "\n\nDefault: {default}");
    }
    if let Some((others, _)) = key.with {
        let others = crate::shape::list_of(others.iter().copied());
        let _ = write!(text, "\n\nOnly together with {others}.");
    }
    text
}

/// Returns the sort of a declared name, in words.
pub(super) fn sort_of(at: &Occurrence) -> &'static str {
    let person = at
        .item
        .as_ref()
        .is_some_and(|item| item.get("person").is_some());
    match at.space {
        Space::Tool => "tool",
        Space::Agent if person => "person",
        Space::Agent => "agent",
        Space::State => "state entry",
        Space::Model => "model",
        Space::Event => "event",
        Space::Config => "config value",
        Space::Secret => "secret",
        Space::Server => "MCP server",
        Space::Outcome => "outcome",
        Space::Role => "role",
        Space::Parameter => "parameter",
        Space::Field => "field",
        Space::Mode => "mode",
        Space::Place => "state of the route",
        Space::Task => "task",
        _ => "name",
    }
}

/// Returns what a declaration says about its name.
pub(super) fn described(at: &Occurrence) -> String {
    let item = at.item.as_ref();
    let description = item.and_then(|item| item.get("description"));
    let description = description.and_then(|text| text.as_text());
    let name = format!("**{}**: {}", at.meaning.name, sort_of(at));
    match description {
        Some(text) => format!("{name}\n\n{text}"),
        None => name,
    }
}

impl Language {
    /// Returns the first lines of a declaration.
    fn excerpt(&self, at: &Occurrence) -> Option<String> {
        let place = self.place(at)?;
        let text = &*place.text;
        let end = at.item.as_ref()?.span.range().end;
        // a text that has changed since is not cut at the old place
        let whole = place.span == at.range && text.is_char_boundary(end) && end <= text.len();
        let start = place.span.start;
        let start = text[..start].rfind('\n').map_or(0, |k| k + 1);
        let first = text[start..].len() - text[start..].trim_start_matches(' ').len();
        let end = if whole && end > start {
            end
        } else {
            text[start..].find('\n').map_or(text.len(), |k| start + k)
        };
        let lines = text[start..end].lines().take(LINES);
        let lines: Vec<&str> = lines
            .map(|line| line.get(first..).unwrap_or(line.trim()))
            .collect();
        Some(lines.join("\n"))
    }
}
