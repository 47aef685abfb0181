//! Parses text into a tree with places. Only this module uses the YAML parser.
//!
//! The tree is built from the parser's events with an explicit stack, so deep nesting cannot overflow the call stack.
//! Duplicate and merge keys, ambiguous numbers and excessive sizes are reported here; `shape` checks the keys.

mod node;
mod yaml;

pub(crate) use node::plain;
pub use node::{Key, Kind, Node, Scalar, Style, Value};
pub(crate) use yaml::parse;

use super::diagnostic::Place;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use steersman_machine::values::near::Nearby;

/// Maximum size of a file of a definition, in bytes.
pub(crate) const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Maximum number of values in a file, with aliases expanded.
pub(crate) const MAX_NODES: usize = 50_000;
/// Maximum nesting of a file, with aliases expanded.
pub(crate) const MAX_DEPTH: usize = 64;

/// The files of a definition, by path relative to its folder. This crate opens no files: the caller reads them
/// (see [`super::wanted`]).
#[derive(Clone, Debug, Default)]
pub struct Files {
    main: String,
    name: Option<String>,
    texts: BTreeMap<String, Arc<str>>,
    /// Reasons why documents cannot be read, by path. Readable documents are absent.
    unreadable: BTreeMap<String, String>,
    /// True if another file is the main definition of the folder.
    beside_main: bool,
}

impl Files {
    /// Creates a definition whose main file is `text` under `path` (`steersman.yaml`, `bank.yaml`).
    pub fn new(path: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        let main = path.into();
        let texts = BTreeMap::from([(main.clone(), text.into())]);
        Self {
            main,
            name: None,
            texts,
            unreadable: BTreeMap::new(),
            beside_main: false,
        }
    }
    /// Marks that the folder also has a `steersman.yaml`. Tests that name no definition belong to that file.
    pub fn beside_main(mut self) -> Self {
        self.beside_main = true;
        self
    }
    pub(crate) fn is_beside_main(&self) -> bool {
        self.beside_main
    }
    /// Adds a file: a prompt, a schema, an import, or tests (`tests/*.yaml`).
    pub fn with(mut self, path: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        self.add(path, text);
        self
    }
    /// Adds a file, as [`Files::with`] does.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<Arc<str>>) {
        self.texts.insert(path.into(), text.into());
    }
    /// Records that documents (see [`super::documents`]) cannot be read, and the reason. Documents without a record count as
    /// readable.
    pub fn cannot_read(&mut self, documents: impl Into<String>, why: impl Into<String>) {
        self.unreadable.insert(documents.into(), why.into());
    }
    /// Returns the recorded reason why documents cannot be read.
    pub(crate) fn why_unreadable(&self, documents: &str) -> Option<&str> {
        self.unreadable.get(documents).map(String::as_str)
    }
    /// Sets the default name of the network, usually that of the folder. Without it, the default comes from the main file's path.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
    /// Returns the path of the main file.
    pub fn main(&self) -> &str {
        &self.main
    }
    /// Returns the text of a file.
    pub fn text(&self, path: &str) -> Option<&Arc<str>> {
        self.texts.get(path)
    }
    /// Returns the paths of all files, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.texts.keys().map(String::as_str)
    }
    /// Returns the name of a network without `name`: that of the folder or the main file, converted to a well-formed name.
    pub(crate) fn default_name(&self) -> String {
        let mut parts = self.main.rsplit('/');
        let file = parts.next().unwrap_or_default();
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let given = match (&self.name, stem) {
            (Some(name), _) => name,
            (None, "steersman") => parts.next().unwrap_or(stem),
            (None, stem) => stem,
        };
        let name: String = given
            .trim_start_matches(|c: char| !c.is_ascii_alphabetic())
            .chars()
            .take(64)
            .map(|c| match c.to_ascii_lowercase() {
                c @ ('a'..='z' | '0'..='9' | '_' | '-') => c,
                _ => '-',
            })
            .collect();
        if name.is_empty() {
            "network".to_owned()
        } else {
            name
        }
    }
}

/// A range of bytes in a file. Parts made by the Rust builder have none ([`Span::NONE`]).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Index of the file among the files read; `u32::MAX` for none.
    pub file: u32,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The span of a part that is in no file.
    pub const NONE: Self = Self {
        file: u32::MAX,
        start: 0,
        end: 0,
    };
    pub(crate) fn new(file: u32, range: Range<usize>) -> Self {
        Self {
            file,
            start: range.start as u32,
            end: range.end as u32,
        }
    }
    /// Returns true if `other` is within this span. Always false for [`Span::NONE`].
    pub fn contains(self, other: Self) -> bool {
        self.file == other.file
            && self.file != u32::MAX
            && self.start <= other.start
            && other.end <= self.end
    }
    /// Returns the range of bytes.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The files that a compilation has read. Spans refer to them by index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    files: Vec<(Arc<str>, Arc<str>)>,
    nearby: Nearby,
}

impl Sources {
    pub(crate) fn add(&mut self, path: &str, text: &Arc<str>) -> u32 {
        let found = self.files.iter().position(|(known, _)| &**known == path);
        let index = found.unwrap_or_else(|| {
            self.files.push((path.into(), text.clone()));
            self.files.len() - 1
        });
        index as u32
    }
    /// Returns the most similar known name. All calls of one compilation share one budget of work.
    pub(crate) fn near<'a>(
        &self,
        name: &str,
        among: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        self.nearby.nearest(name, among)
    }
    pub(crate) fn path(&self, span: Span) -> Option<&Arc<str>> {
        self.files.get(span.file as usize).map(|(path, _)| path)
    }
    pub(crate) fn text(&self, span: Span) -> Option<&str> {
        let (_, text) = self.files.get(span.file as usize)?;
        text.get(span.range())
    }
    /// Returns the place of a span, for diagnostics; `None` if it is in no file.
    pub(crate) fn place(&self, span: Span) -> Option<Place> {
        let (path, text) = self.files.get(span.file as usize)?;
        Some(Place {
            path: path.clone(),
            text: text.clone(),
            span: span.range(),
        })
    }
    /// Returns the span of the comment that follows on the same line, with its `#`.
    pub(crate) fn comment_behind(&self, span: Span) -> Option<Span> {
        let (_, text) = self.files.get(span.file as usize)?;
        let rest = text.get(span.end as usize..)?;
        let comment = rest.trim_start_matches([' ', '\t']);
        if comment.len() == rest.len() || !comment.starts_with('#') {
            return None;
        }
        let line = comment.lines().next().unwrap_or_default().trim_end();
        let start = span.end as usize + rest.len() - comment.len();
        Some(Span::new(span.file, start..start + line.len()))
    }
    /// Returns the span of a range of a scalar's text, with escapes, folding and indentation taken into account. If the
    /// range cannot be mapped back, returns the span of the whole scalar.
    pub(crate) fn locate(&self, node: &Node, range: Range<usize>) -> Span {
        self.locator(node).at(range)
    }
    /// Returns a locator that maps many ranges of one scalar; the mapping is computed once.
    pub(crate) fn locator(&self, node: &Node) -> Locator<'_> {
        let span = node.span;
        let (Some(scalar), Some(source)) = (node.scalar(), self.text(span)) else {
            return Locator {
                span,
                way: Way::Lost,
            };
        };
        let quoted = usize::from(scalar.style == Style::Quoted);
        let inner = source.get(quoted..source.len().saturating_sub(quoted));
        let way = if inner == Some(&*scalar.text) {
            Way::Same(quoted)
        } else {
            let offsets = offsets(&scalar.text, source, scalar.style);
            offsets.map_or(Way::Lost, |map| Way::Mapped(source, map))
        };
        Locator { span, way }
    }
}

/// Maps ranges of one scalar's text to its file.
#[derive(Debug)]
pub(crate) struct Locator<'a> {
    span: Span,
    way: Way<'a>,
}

#[derive(Debug)]
enum Way<'a> {
    /// The text is in the file unchanged, after this many quote bytes.
    Same(usize),
    /// The source, and for each byte of the text and for its end the offset in the source.
    Mapped(&'a str, Vec<usize>),
    /// No mapping is known.
    Lost,
}

impl Locator<'_> {
    /// Returns the span of a range of the text.
    pub(crate) fn at(&self, range: Range<usize>) -> Span {
        let span = self.span;
        let whole = span.range();
        match &self.way {
            Way::Same(quoted) if whole.start + 2 * quoted + range.end <= whole.end => {
                let start = whole.start + quoted;
                Span::new(
                    span.file,
                    start + range.start..start + range.end.max(range.start),
                )
            }
            Way::Mapped(source, map) if range.start < map.len() && range.end < map.len() => {
                let start = whole.start + map[range.start];
                // the end follows the last byte directly, since indentation may precede the next one
                let end = match range.end.checked_sub(1).filter(|last| *last >= range.start) {
                    Some(last) => whole.start + map[last] + 1,
                    None => start,
                };
                let end = ceil_char(source, end - whole.start) + whole.start;
                Span::new(span.file, start..end.max(start))
            }
            _ => span,
        }
    }
}

pub(crate) fn ceil_char(text: &str, mut at: usize) -> usize {
    while at < text.len() && !text.is_char_boundary(at) {
        at += 1;
    }
    at.min(text.len())
}

/// Returns, for each byte of `text` and for its end, the offset in `source` that it comes from.
fn offsets(text: &str, source: &str, style: Style) -> Option<Vec<usize>> {
    let mut map = Vec::with_capacity(text.len() + 1);
    let bytes = source.as_bytes();
    let quote = bytes.first().copied().filter(|_| style == Style::Quoted);
    let mut at = usize::from(quote.is_some());
    for c in text.chars() {
        at = match quote {
            Some(b'"') if bytes.get(at) == Some(&b'\\') => {
                let (start, next) = escape(source, at, c)?;
                map.extend(std::iter::repeat_n(start, c.len_utf8()));
                at = next;
                continue;
            }
            Some(b'\'') if source[at.min(source.len())..].starts_with("''") => at + 1,
            _ => at,
        };
        // indentation, folded line breaks and the spaces around them have no counterpart in the text
        loop {
            let Some(here) = source.get(at..)?.chars().next() else {
                // the last line break of a block is not within its span
                if !c.is_whitespace() {
                    return None;
                }
                map.extend(std::iter::repeat_n(at, c.len_utf8()));
                break;
            };
            let folded = c == ' ' && here == '\n' && style != Style::Literal;
            if here == c || folded {
                map.extend((0..c.len_utf8()).map(|k| at + k.min(here.len_utf8() - 1)));
                at += here.len_utf8();
                break;
            }
            if !here.is_whitespace() {
                return None;
            }
            at += here.len_utf8();
        }
    }
    map.push(at.min(source.len()));
    Some(map)
}

/// Returns the start and end of an escape in a double-quoted text.
fn escape(source: &str, at: usize, c: char) -> Option<(usize, usize)> {
    let kind = source.get(at + 1..)?.chars().next()?;
    let len = match kind {
        'x' => 4,
        'u' => 6,
        'U' => 10,
        '\n' => {
            // an escaped line break: the text continues after the next line's indentation
            let rest = source.get(at + 2..)?;
            let skip = rest.len() - rest.trim_start().len();
            let here = at + 2 + skip;
            return source[here..]
                .starts_with(c)
                .then_some((here, here + c.len_utf8()));
        }
        _ => 1 + kind.len_utf8(),
    };
    Some((at, at + len))
}
