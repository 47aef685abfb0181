//! Text in, a tree with places out. The one module that knows the YAML parser.
//!
//! The tree is built from the parser's events with a stack of our own, so nesting costs no stack; duplicate and merge
//! keys, odd numbers and sizes are judged here, what a key may hold is judged by [`super::shape`].

use super::diagnostic::{Diagnostic, Place};
use serde_saphyr::granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, options};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Largest file of a definition, in bytes.
pub const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Most values of a file, aliases written out.
pub const MAX_NODES: usize = 100_000;
/// Deepest nesting of a file, aliases written out.
pub const MAX_DEPTH: usize = 64;

/// The files of a definition, by path relative to its folder. The machine opens none: whoever calls reads them
/// (see [`super::wanted`]).
#[derive(Clone, Debug, Default)]
pub struct Files {
    main: String,
    name: Option<String>,
    texts: BTreeMap<String, Arc<str>>,
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
        }
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
    /// Name of a network that gives itself none.
    pub(crate) fn default_name(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let mut parts = self.main.rsplit('/');
        let stem = parts.next().unwrap_or_default();
        let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
        if stem == "steersman" {
            parts.next().unwrap_or(stem).to_owned()
        } else {
            stem.to_owned()
        }
    }
}

/// Where something is written: bytes of a file. What the Rust builder made is written nowhere.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Index of the file in [`Sources`]; `u32::MAX` for none.
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
    fn new(file: u32, range: Range<usize>) -> Self {
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

/// A value of a definition with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it is written.
    pub span: Span,
    /// What it is.
    pub value: Value,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum Value {
    /// A single value.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// A map, in the order written; keys differ.
    Map(Vec<(Key, Node)>),
}

/// A key with its place.
#[derive(Clone, Debug)]
pub struct Key {
    /// Where it is written.
    pub span: Span,
    /// Its text.
    pub name: Arc<str>,
}

/// A single value.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// Its text, escapes and folding undone. Of a number or boolean: as written.
    pub text: Arc<str>,
    /// How it is written.
    pub style: Style,
    /// What it is read as.
    pub kind: Kind,
}

/// How a scalar is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In quotes of either kind.
    Quoted,
    /// A block behind `|`.
    Literal,
    /// A block behind `>`.
    Folded,
    /// By the Rust builder or from the stored form.
    Made,
}

/// What a scalar is read as.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Kind {
    /// Nothing, `null` or `~`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Text.
    Text,
}

impl Node {
    fn made(value: Value) -> Self {
        Self {
            span: Span::NONE,
            value,
        }
    }
    fn made_scalar(text: impl Into<Arc<str>>, kind: Kind) -> Self {
        Self::made(Value::Scalar(Scalar {
            text: text.into(),
            style: Style::Made,
            kind,
        }))
    }
    /// A text without a place.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::made_scalar(text, Kind::Text)
    }
    /// A boolean without a place.
    pub fn boolean(value: bool) -> Self {
        Self::made_scalar(if value { "true" } else { "false" }, Kind::Bool(value))
    }
    /// A whole number without a place.
    pub fn integer(value: i64) -> Self {
        Self::made_scalar(value.to_string(), Kind::Integer(value))
    }
    /// A number without a place.
    pub fn number(value: f64) -> Self {
        Self::made_scalar(value.to_string(), Kind::Number(value))
    }
    /// Nothing, without a place.
    pub fn null() -> Self {
        Self::made_scalar("null", Kind::Null)
    }
    /// A list without a place.
    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self::made(Value::List(items.into_iter().collect()))
    }
    /// A map without a place. Of equal keys the last one counts.
    pub fn map<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        let mut map: Vec<(Key, Self)> = Vec::new();
        for (name, node) in entries {
            let name = name.into();
            let span = Span::NONE;
            map.retain(|(key, _)| key.name != name);
            map.push((Key { span, name }, node));
        }
        Self::made(Value::Map(map))
    }
    /// JSON as a tree without places.
    pub fn json(value: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match value {
            Json::Null => Self::null(),
            Json::Bool(value) => Self::boolean(*value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => Self::integer(value),
                None => {
                    let value = number.as_f64().unwrap_or_default();
                    Self::made_scalar(number.to_string(), Kind::Number(value))
                }
            },
            Json::String(text) => Self::text(text.as_str()),
            Json::Array(items) => Self::list(items.iter().map(Self::json)),
            Json::Object(map) => Self::map(map.iter().map(|(k, v)| (k.as_str(), Self::json(v)))),
        }
    }
    /// It as a scalar.
    pub fn scalar(&self) -> Option<&Scalar> {
        match &self.value {
            Value::Scalar(scalar) => Some(scalar),
            Value::List(_) | Value::Map(_) => None,
        }
    }
    /// Its text if it is a scalar: as written if it is a number or boolean.
    pub fn as_text(&self) -> Option<&Arc<str>> {
        self.scalar()
            .filter(|scalar| scalar.kind != Kind::Null)
            .map(|scalar| &scalar.text)
    }
    /// Its entries if it is a map.
    pub fn entries(&self) -> &[(Key, Self)] {
        match &self.value {
            Value::Map(entries) => entries,
            Value::Scalar(_) | Value::List(_) => &[],
        }
    }
    /// Its items if it is a list.
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            Value::Scalar(_) | Value::Map(_) => &[],
        }
    }
    /// The value of a key if it is a map.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries()
            .iter()
            .find(|(entry, _)| &*entry.name == key)
            .map(|(_, node)| node)
    }
    /// Whether it is `null` or nothing.
    pub fn is_null(&self) -> bool {
        self.scalar()
            .is_some_and(|scalar| scalar.kind == Kind::Null)
    }
    /// As JSON, keys of maps sorted.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Scalar(scalar) => match scalar.kind {
                Kind::Null => Json::Null,
                Kind::Bool(value) => Json::Bool(value),
                Kind::Integer(value) => Json::from(value),
                Kind::Number(value) => Json::from(value),
                Kind::Text => Json::from(&*scalar.text),
            },
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => {
                let sorted: BTreeMap<&str, Json> = entries
                    .iter()
                    .map(|(key, node)| (&*key.name, node.to_json()))
                    .collect();
                Json::Object(
                    sorted
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect(),
                )
            }
        }
    }
    /// What it is, in words.
    pub(crate) fn kind_word(&self) -> &'static str {
        match &self.value {
            Value::Scalar(scalar) => match scalar.kind {
                Kind::Null => "nothing",
                Kind::Bool(_) => "a boolean",
                Kind::Integer(_) => "an integer",
                Kind::Number(_) => "a number",
                Kind::Text => "text",
            },
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}

/// The files that a compilation has looked at: spans name them by index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    files: Vec<(Arc<str>, Arc<str>)>,
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
    /// What stands behind a span on its line.
    pub(crate) fn rest_of_line(&self, span: Span) -> &str {
        let text = self
            .files
            .get(span.file as usize)
            .and_then(|(_, text)| text.get(span.end as usize..))
            .unwrap_or_default();
        text.split(['\n', '\r']).next().unwrap_or_default()
    }
    /// The place of a range of a scalar's text: escapes, folding and indentation counted in. The whole scalar where
    /// the way back is lost.
    pub(crate) fn locate(&self, node: &Node, range: Range<usize>) -> Span {
        let span = node.span;
        let (Some(scalar), Some(source)) = (node.scalar(), self.text(span)) else {
            return span;
        };
        match offsets(&scalar.text, source, scalar.style) {
            Some(map) if range.start < map.len() && range.end < map.len() => {
                let start = span.start as usize + map[range.start];
                // behind the last byte, not before the next one: between them may lie indentation
                let end = match range.end.checked_sub(1).filter(|last| *last >= range.start) {
                    Some(last) => span.start as usize + map[last] + 1,
                    None => start,
                };
                let end = ceil_char(source, end - span.start as usize) + span.start as usize;
                Span::new(span.file, start..end.max(start))
            }
            _ => span,
        }
    }
}

fn ceil_char(text: &str, mut at: usize) -> usize {
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

/// A file as a tree; what is wrong with it is reported. None if nothing can be made of it.
pub(crate) fn parse(
    sources: &mut Sources,
    path: &str,
    text: &Arc<str>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Node> {
    let file = sources.add(path, text);
    if text.len() > MAX_BYTES {
        let size = text.len() / 1024;
        let at = Span { file, ..Span::NONE };
        let what = format!("{size} KiB are too much for one file of a definition");
        let most = format!("at most {} KiB are read", MAX_BYTES / 1024);
        diagnostics.push(Diagnostic::too_big(sources.place(at), what, most));
        return None;
    }
    let mut builder = Builder {
        file,
        sources,
        diagnostics,
        stack: Vec::new(),
        anchors: BTreeMap::new(),
        nodes: 0,
        root: None,
    };
    builder.run(text)
}

struct Builder<'a> {
    file: u32,
    sources: &'a Sources,
    diagnostics: &'a mut Vec<Diagnostic>,
    stack: Vec<Frame>,
    anchors: BTreeMap<usize, (Node, usize, usize)>,
    nodes: usize,
    root: Option<Node>,
}

struct Frame {
    start: usize,
    anchor: usize,
    nodes: usize,
    height: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map {
        entries: Vec<(Key, Node)>,
        key: Option<Key>,
    },
}

impl Builder<'_> {
    fn run(&mut self, text: &str) -> Option<Node> {
        let options = options! {
            disallow_directives: true,
            block_nesting_limit: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
        };
        let mut documents = 0;
        let mut parser = Parser::new_from_str_with_options(text, options);
        while let Some(event) = parser.next_event() {
            let (event, span) = match event {
                Ok(event) => event,
                Err(error) => {
                    self.syntax(text, &error);
                    return None;
                }
            };
            let start = span.start.byte_offset().unwrap_or_default();
            let end = span.end.byte_offset().unwrap_or(start).max(start);
            let span = Span::new(self.file, start..end);
            if let Some(tag) = tag(&event) {
                let place = self.sources.place(span);
                self.diagnostics.push(Diagnostic::yaml_tag(place, &tag));
            }
            match event {
                Event::DocumentStart(..) => {
                    documents += 1;
                    if documents == 2 {
                        let place = self.sources.place(span);
                        self.diagnostics.push(Diagnostic::second_document(place));
                        return None;
                    }
                }
                Event::Scalar(text, style, anchor, _) => {
                    let node = self.scalar(text.into(), style, span);
                    self.add(node, anchor, 1, 1)?;
                }
                Event::Alias(anchor) => {
                    let Some((node, nodes, height)) = self.anchors.get(&anchor).cloned() else {
                        let place = self.sources.place(span);
                        let message = "an alias within its own anchor";
                        let diagnostic = Diagnostic::yaml_syntax(place, message.into(), None);
                        self.diagnostics.push(diagnostic);
                        return None;
                    };
                    self.add(node, 0, nodes, height)?;
                }
                Event::SequenceStart(_, anchor, _) => {
                    self.open(start, anchor, Content::List(Vec::new()));
                }
                Event::MappingStart(_, anchor, _) => {
                    let entries = Vec::new();
                    self.open(start, anchor, Content::Map { entries, key: None });
                }
                Event::SequenceEnd | Event::MappingEnd => self.close(text, end)?,
                _ => {}
            }
        }
        Some(self.root.take().unwrap_or_else(Node::null))
    }

    fn open(&mut self, start: usize, anchor: usize, content: Content) {
        self.stack.push(Frame {
            start,
            anchor,
            nodes: 1,
            height: 0,
            content,
        });
    }

    fn close(&mut self, text: &str, end: usize) -> Option<()> {
        let frame = self.stack.pop().expect("the parser closes what it opened");
        let body = text.get(frame.start..end).unwrap_or_default();
        let end = frame.start + body.trim_end().len();
        let value = match frame.content {
            Content::List(items) => Value::List(items),
            Content::Map { entries, .. } => Value::Map(entries),
        };
        let span = Span::new(self.file, frame.start..end);
        self.add(
            Node { span, value },
            frame.anchor,
            frame.nodes,
            frame.height + 1,
        )
    }

    /// Hangs a node into what is open. None if a budget is spent.
    fn add(&mut self, node: Node, anchor: usize, nodes: usize, height: usize) -> Option<()> {
        if self.stack.len() + height > MAX_DEPTH {
            let place = self.sources.place(node.span);
            let what = format!("nested deeper than {MAX_DEPTH} levels");
            let most = "no definition needs more than a dozen".to_owned();
            self.diagnostics
                .push(Diagnostic::too_big(place, what, most));
            return None;
        }
        self.nodes += if node.scalar().is_some() || nodes > 1 && anchor == 0 {
            nodes
        } else {
            1
        };
        if self.nodes > MAX_NODES {
            let place = self.sources.place(node.span);
            let what = format!("more than {MAX_NODES} values in one file");
            let most = "aliases count as what they stand for".to_owned();
            self.diagnostics
                .push(Diagnostic::too_big(place, what, most));
            return None;
        }
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), nodes, height));
        }
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node);
            return Some(());
        };
        frame.nodes += nodes;
        frame.height = frame.height.max(height);
        match &mut frame.content {
            Content::List(items) => items.push(node),
            Content::Map { entries, key } => match key.take() {
                None => *key = Some(key_of(self.sources, self.diagnostics, &node)),
                Some(name) => match entries.iter().find(|(known, _)| known.name == name.name) {
                    Some((first, _)) => {
                        let (at, first) = (
                            self.sources.place(name.span),
                            self.sources.place(first.span),
                        );
                        let diagnostic = Diagnostic::duplicate_key(at, first, &name.name);
                        self.diagnostics.push(diagnostic);
                    }
                    None => entries.push((name, node)),
                },
            },
        }
        Some(())
    }

    fn scalar(&mut self, text: Arc<str>, style: ScalarStyle, mut span: Span) -> Node {
        let style = match style {
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
            ScalarStyle::Literal => Style::Literal,
            ScalarStyle::Folded => Style::Folded,
        };
        if matches!(style, Style::Literal | Style::Folded) {
            let body = self.sources.text(span).unwrap_or_default();
            span.end = span.start + body.trim_end().len() as u32;
        }
        let kind = match style {
            Style::Plain if span.start == span.end => Kind::Null,
            Style::Plain => match plain(&text) {
                Some(kind) => kind,
                None => {
                    let place = self.sources.place(span);
                    self.diagnostics.push(Diagnostic::odd_number(place, &text));
                    Kind::Text
                }
            },
            Style::Quoted | Style::Literal | Style::Folded | Style::Made => Kind::Text,
        };
        let value = Value::Scalar(Scalar { text, style, kind });
        Node { span, value }
    }

    fn syntax(&mut self, text: &str, error: &ScanError) {
        let at = error.marker().byte_offset().unwrap_or_default();
        let at = ceil_char(text, at.min(text.len()));
        let start = text[..at].rfind('\n').map_or(0, |k| k + 1);
        let line_end = text[at..].find('\n').map_or(text.len(), |k| at + k);
        let end = ceil_char(text, (at + 1).min(line_end).max(at));
        let place = self.sources.place(Span::new(self.file, at..end));
        if *error.kind() == ErrorKind::RecursionLimitExceeded {
            let what = format!("nested deeper than {MAX_DEPTH} levels");
            let most = "no definition needs more than a dozen".to_owned();
            self.diagnostics
                .push(Diagnostic::too_big(place, what, most));
            return;
        }
        let line = &text[start..line_end];
        if let Some(open) = unquoted_braces(line) {
            let value = value_around(line, open);
            let span = Span::new(self.file, start + value.start..start + value.end);
            let place = self.sources.place(span);
            self.diagnostics.push(Diagnostic::unquoted_braces(place));
            return;
        }
        if let Some((value, rest)) = cut_before(text, line_end) {
            let at = self.sources.place(Span::new(self.file, value));
            let rest = self.sources.place(Span::new(self.file, rest));
            self.diagnostics.push(Diagnostic::cut(at, rest));
            return;
        }
        let brackets = line[..at - start].contains('{') && text[at..].starts_with(['[', '{']);
        let help = brackets.then(|| {
            "in `{ .. }` an expression with brackets, braces, commas or colons stands in quotes"
                .to_owned()
        });
        self.diagnostics
            .push(Diagnostic::yaml_syntax(place, error.info(), help));
    }
}

/// `{{` outside of quotes on a line that is no YAML.
fn unquoted_braces(line: &str) -> Option<usize> {
    let open = line.find("{{")?;
    let quotes = |c: char| line[..open].matches(c).count() % 2 == 1;
    (!quotes('"') && !quotes('\'')).then_some(open)
}

/// The value that a place in a line belongs to: from behind the key to the end of the entry.
fn value_around(line: &str, open: usize) -> Range<usize> {
    let before = &line[..open];
    let start = [": ", ", ", "[ ", "- "]
        .iter()
        .filter_map(|sign| before.rfind(sign).map(|at| at + sign.len()))
        .max()
        .unwrap_or(open);
    let close = line[open..]
        .rfind("}}")
        .map_or(line.len(), |at| open + at + 2);
    let rest = &line[close..];
    let end = [", ", " }", " ]"]
        .iter()
        .filter_map(|sign| rest.find(sign))
        .min()
        .unwrap_or(rest.len());
    start..(close + rest[..end].trim_end().len())
}

/// A text that a `#` has cut, taking the end of a flow collection with it: on the last lines up to `end`.
fn cut_before(text: &str, end: usize) -> Option<(Range<usize>, Range<usize>)> {
    let mut start = end;
    for _ in 0..3 {
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = &text[line_start..start];
        let cut = line.match_indices(" #").find(|(at, _)| {
            let behind = line[at + 2..].chars().next();
            !line[..*at].trim().is_empty() && behind.is_some_and(|c| !c.is_whitespace() && c != '#')
        });
        if let Some((at, _)) = cut {
            let value = value_around(line, at).start;
            let rest = line_start + at + 1..line_start + line.trim_end().len();
            return Some((line_start + value..line_start + at, rest));
        }
        start = line_start.checked_sub(1)?;
    }
    None
}

fn key_of(sources: &Sources, diagnostics: &mut Vec<Diagnostic>, node: &Node) -> Key {
    let place = sources.place(node.span);
    match node.scalar() {
        Some(scalar) if &*scalar.text == "<<" && scalar.style == Style::Plain => {
            diagnostics.push(Diagnostic::merge_key(place));
        }
        Some(_) => {}
        None => {
            let braces = sources
                .text(Span {
                    start: node.span.start.saturating_sub(1),
                    ..node.span
                })
                .is_some_and(|text| text.starts_with("{{"));
            if braces {
                let mut span = node.span;
                span.start -= 1;
                span.end += 1;
                diagnostics.push(Diagnostic::unquoted_braces(sources.place(span)));
            } else {
                diagnostics.push(Diagnostic::key_is_no_text(place, node.kind_word()));
            }
        }
    }
    Key {
        span: node.span,
        name: node
            .scalar()
            .map_or_else(|| Arc::from("{{"), |scalar| scalar.text.clone()),
    }
}

fn tag(event: &Event<'_>) -> Option<String> {
    match event {
        Event::Scalar(_, _, _, tag)
        | Event::SequenceStart(_, _, tag)
        | Event::MappingStart(_, _, tag) => tag.as_ref().map(|tag| tag.original()),
        _ => None,
    }
}

/// What a plain scalar is read as: YAML 1.2, `true` and `false` only. None for numbers that two readers would read
/// differently.
pub(crate) fn plain(text: &str) -> Option<Kind> {
    match text {
        "" | "~" | "null" => return Some(Kind::Null),
        "true" => return Some(Kind::Bool(true)),
        "false" => return Some(Kind::Bool(false)),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if all_digits(digits) {
        let leading_zero = digits.len() > 1 && digits.starts_with('0');
        let value = text.parse().ok().filter(|_| !leading_zero)?;
        return Some(Kind::Integer(value));
    }
    let prefixed = |prefix: &str| {
        digits
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.chars().next().is_some_and(|c| c.is_ascii_hexdigit()))
    };
    if prefixed("0x") || prefixed("0o") {
        return None;
    }
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let exponent_fits =
        exponent.is_none_or(|text| all_digits(text.strip_prefix(['-', '+']).unwrap_or(text)));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = exponent_fits
        && (mantissa.contains('.') || exponent.is_some())
        && all_digits(&format!("{whole}{part}"));
    if !is_number {
        return Some(Kind::Text);
    }
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    let value: f64 = text.parse().ok()?;
    (value.is_finite() && !leading_zero).then_some(Kind::Number(value))
}
