//! Text in, a tree with places out. The one module that knows the YAML parser.
//!
//! The tree is built from the parser's events with a stack of our own, so nesting costs no stack; duplicate and merge
//! keys, odd numbers and sizes are judged here, what a key may hold is judged by `definition::shape`.

mod node;
mod yaml;

pub(crate) use node::plain;
pub use node::{Key, Kind, Node, Scalar, Style, Value};
pub(crate) use yaml::parse;

use super::diagnostic::Place;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use steersman_machine::near::Nearby;

/// Largest file of a definition, in bytes.
pub const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Most values of a file, aliases written out.
pub const MAX_NODES: usize = 50_000;
/// Deepest nesting of a file, aliases written out.
pub const MAX_DEPTH: usize = 64;

/// The files of a definition, by path relative to its folder. The machine opens none: whoever calls reads them
/// (see [`super::wanted`]).
#[derive(Clone, Debug, Default)]
pub struct Files {
    main: String,
    name: Option<String>,
    texts: BTreeMap<String, Arc<str>>,
    /// Why documents cannot be read, by path; those that can are not in it.
    unreadable: BTreeMap<String, String>,
    /// Another file is the main definition of the folder.
    beside_main: bool,
}

impl Files {
    /// A definition whose main file is `text` under `path` (`steersman.yaml`, `bank.yaml`).
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
    /// The folder has a `steersman.yaml` beside this definition: tests that name no definition are of that.
    pub fn beside_main(mut self) -> Self {
        self.beside_main = true;
        self
    }
    pub(crate) fn is_beside_main(&self) -> bool {
        self.beside_main
    }
    /// A further file: a prompt, a schema, an import, or tests (`tests/*.yaml`).
    pub fn with(mut self, path: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        self.add(path, text);
        self
    }
    /// Adds a further file.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<Arc<str>>) {
        self.texts.insert(path.into(), text.into());
    }
    /// Says that documents (see [`super::documents`]) cannot be read, and why. Of those of which nothing is said it is taken
    /// that they can: nobody has looked.
    pub fn cannot_read(&mut self, documents: impl Into<String>, why: impl Into<String>) {
        self.unreadable.insert(documents.into(), why.into());
    }
    /// Why documents cannot be read, if somebody said so.
    pub(crate) fn why_unreadable(&self, documents: &str) -> Option<&str> {
        self.unreadable.get(documents).map(String::as_str)
    }
    /// The name of a network that gives itself none: that of the folder. Else it is the main file's.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
    /// Path of the main file.
    pub fn main(&self) -> &str {
        &self.main
    }
    /// Text of a file.
    pub fn text(&self, path: &str) -> Option<&Arc<str>> {
        self.texts.get(path)
    }
    /// Paths of all files, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.texts.keys().map(String::as_str)
    }
    /// Name of a network that gives itself none: of the folder or the main file, made a name.
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

/// Where something is written: bytes of a file. What the Rust builder made is written nowhere.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Index of the file among those that were read; `u32::MAX` for none.
    pub file: u32,
    /// First byte.
    pub start: u32,
    /// Behind the last byte.
    pub end: u32,
}

impl Span {
    /// Written nowhere.
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
    /// Whether `other` lies within.
    pub fn contains(self, other: Self) -> bool {
        self.file == other.file
            && self.file != u32::MAX
            && self.start <= other.start
            && other.end <= self.end
    }
    /// Its bytes.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The files that a compilation has looked at: spans name them by index.
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
    /// The name that was probably meant by one that is not known, of all names that this compilation looks up.
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
    /// The place of a span, to be shown.
    pub(crate) fn place(&self, span: Span) -> Option<Place> {
        let (path, text) = self.files.get(span.file as usize)?;
        Some(Place {
            path: path.clone(),
            text: text.clone(),
            span: span.range(),
        })
    }
    /// The comment that follows a span on its line, with its `#`, if one does.
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
    /// The place of a range of a scalar's text: escapes, folding and indentation counted in. The whole scalar where
    /// the way back is lost.
    pub(crate) fn locate(&self, node: &Node, range: Range<usize>) -> Span {
        self.locator(node).at(range)
    }
    /// Finds the places of many ranges of one scalar: the way back is found once.
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

/// Where the text of one scalar lies in its file.
#[derive(Debug)]
pub(crate) struct Locator<'a> {
    span: Span,
    way: Way<'a>,
}

#[derive(Debug)]
enum Way<'a> {
    /// As it is, behind so many quotes.
    Same(usize),
    /// For each byte of the text and its end the byte of the source.
    Mapped(&'a str, Vec<usize>),
    /// It cannot be said.
    Lost,
}

impl Locator<'_> {
    /// The place of a range of the text.
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
                // behind the last byte, not before the next one: between them may lie indentation
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

/// For each byte of `text` (and the end) the byte of `source` that it comes from.
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
            let here = source.get(at..)?.chars().next()?;
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

/// An escape of a double-quoted text: where it starts, and what follows it.
fn escape(source: &str, at: usize, c: char) -> Option<(usize, usize)> {
    let kind = source.get(at + 1..)?.chars().next()?;
    let len = match kind {
        'x' => 4,
        'u' => 6,
        'U' => 10,
        '\n' => {
            // a broken line: the text goes on behind the next line's indentation
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
