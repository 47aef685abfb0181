//! Finds out from the lines of a text what is at an offset. It needs no valid YAML, because a text that is being typed seldom is.
//!
//! The scanner follows indentation, lists, braces, brackets, quotes and blocks. A brace or quote that is not closed ends
//! where a line begins with a key that is not deeper than the line that opened it.

use std::ops::Range;

/// A step from a value into a value within it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The value of this key.
    Key(String),
    /// The item of this index.
    Item(usize),
}

/// A place in a text: the key or value that is written or may be written there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The way from the root to the map or list that is written here, or to the value.
    pub path: Vec<Step>,
    /// Tells a key from a value.
    pub part: Part,
    /// Range of the key or value, without its quotes; empty where nothing is written yet.
    pub range: Range<usize>,
    /// The keys of the map that are written before and behind this place.
    pub siblings: Vec<String>,
}

/// The part of an entry.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A key of the map at the path.
    Key,
    /// The value at the path.
    Value,
}

/// Returns what is at an offset; `None` in a comment.
pub(crate) fn spot(text: &str, offset: usize) -> Option<Spot> {
    let mut scanner = Scanner {
        text,
        offset,
        frames: Vec::new(),
        open: Open::Nothing,
        made: 0,
        found: None,
    };
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        scanner.line(start, line.trim_end_matches(['\n', '\r']));
        start += line.len();
        if let Some((_, frame)) = &scanner.found
            && !scanner.frames.iter().any(|known| known.id == *frame)
        {
            break;
        }
    }
    let new_line = text.is_empty() || text.ends_with('\n');
    if scanner.found.is_none() && new_line && offset >= start {
        scanner.line(start, "");
    }
    while !scanner.frames.is_empty() {
        scanner.pop();
    }
    scanner.found.map(|(spot, _)| spot)
}

/// A map or list that is not closed yet.
struct Frame {
    id: usize,
    /// Column of its entries; in braces and brackets that of the line that opened them.
    indent: usize,
    kind: Kind,
    /// The key whose value comes next; in a list its index.
    key: Option<Step>,
    /// True if something was written as the value of the key.
    filled: bool,
    keys: Vec<String>,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    Map,
    List,
    Braces,
    Brackets,
}

/// A construct that goes on over the end of a line.
enum Open {
    Nothing,
    /// A block after `|` or `>`: the column of its key, and where it begins.
    Block(usize, usize),
    /// A text in quotes: the quote, and where it begins.
    Quote(char, usize),
}

struct Scanner<'t> {
    text: &'t str,
    offset: usize,
    frames: Vec<Frame>,
    open: Open,
    made: usize,
    /// The place at the offset, with the id of the map that it is in.
    found: Option<(Spot, usize)>,
}

impl Scanner<'_> {
    fn line(&mut self, start: usize, line: &str) {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let blank = line.trim().is_empty();
        match self.open {
            Open::Block(column, from) if blank || indent > column => {
                self.value(from..start + line.len());
                return;
            }
            Open::Block(..) => self.open = Open::Nothing,
            Open::Quote(..) | Open::Nothing => {}
        }
        let flow = self.frames.iter().find(|frame| frame.is_flow());
        let least = flow.map_or_else(
            || self.frames.last().map_or(0, |frame| frame.indent),
            |frame| frame.indent,
        );
        if indent <= least && key_at(&line[indent..]).is_some() {
            // what was not closed ends here
            self.open = Open::Nothing;
            while self.frames.iter().any(Frame::is_flow) {
                self.pop();
            }
        }
        if let Open::Quote(quote, from) = self.open {
            let end = quote_end(line, 0, quote);
            self.value(from..start + end.unwrap_or(line.len()));
            let Some(end) = end else { return };
            self.open = Open::Nothing;
            return self.rest(start, line, end + 1);
        }
        if self.frames.iter().any(Frame::is_flow) {
            return self.flow(start, line, 0);
        }
        if blank {
            return self.blank(start, line.len());
        }
        self.block(start, line, indent);
    }

    /// Reads entries of block maps and lists from a column on.
    fn block(&mut self, start: usize, line: &str, mut at: usize) {
        loop {
            let rest = &line[at..];
            if rest.starts_with('#') {
                return;
            }
            if rest == "-" || rest.starts_with("- ") {
                self.close_to(at, Kind::List);
                if !self.is_top(Kind::List, at) {
                    self.push(Kind::List, at);
                }
                self.next_item();
                let inner = rest[1..].len() - rest[1..].trim_start().len();
                at += 1 + inner;
                if at >= line.len() {
                    return self.empty(start + at, start + line.len());
                }
                continue;
            }
            let Some((name, written, behind)) = key_at(rest) else {
                return self.loose(start, line, at);
            };
            self.close_to(at, Kind::Map);
            if !self.is_top(Kind::Map, at) {
                self.push(Kind::Map, at);
            }
            let from = start + at;
            self.key(name, from + written.start..from + written.end);
            return self.rest(start, line, at + behind);
        }
    }

    /// Reads what follows a key on its line, or an item's sign.
    fn rest(&mut self, start: usize, line: &str, at: usize) {
        if self.frames.iter().any(Frame::is_flow) {
            return self.flow(start, line, at);
        }
        let mut value = at + line[at..].len() - line[at..].trim_start().len();
        // an anchor or a tag stands before the value
        while line[value..].starts_with(['&', '!']) {
            let behind = line[value..].trim_start_matches(|c| c != ' ').trim_start();
            value = line.len() - behind.len();
        }
        let rest = &line[value..];
        if rest.is_empty() || rest.starts_with('#') {
            let end = if rest.is_empty() { line.len() } else { value };
            return self.empty(start + at, start + end);
        }
        self.scalar(start, line, value);
    }

    /// Reads the value that begins at a column.
    fn scalar(&mut self, start: usize, line: &str, at: usize) {
        let rest = &line[at..];
        let indent = line.len() - line.trim_start_matches(' ').len();
        self.fill();
        match rest.chars().next() {
            Some('{') => {
                self.push(Kind::Braces, indent);
                self.flow(start, line, at + 1);
            }
            Some('[') => {
                self.push(Kind::Brackets, indent);
                self.next_item();
                self.flow(start, line, at + 1);
            }
            Some(quote @ ('"' | '\'')) => {
                let end = quote_end(line, at + 1, quote);
                self.value(start + at + 1..start + end.unwrap_or(line.len()));
                if end.is_none() {
                    self.open = Open::Quote(quote, start + at + 1);
                }
            }
            Some('|' | '>') => {
                let column = self.frames.last().map_or(0, |frame| frame.indent);
                self.open = Open::Block(column, start + line.len() + 1);
            }
            _ => {
                let whole = rest.find(" #").unwrap_or(rest.len());
                let end = at + rest[..whole].trim_end().len();
                self.value(self.typed_on(start + at..start + end, start + at + whole));
            }
        }
    }

    /// Reads a line that is neither a key nor an item: a key that is being typed, or a value on a line of its own.
    fn loose(&mut self, start: usize, line: &str, at: usize) {
        let end = at + line[at..].trim_end().len();
        let range = start + at..start + end;
        let opens = line[at..].starts_with(['"', '\'', '[', '{', '|', '>']);
        let goes_on = self
            .frames
            .last()
            .is_some_and(|top| top.indent < at && (top.filled || opens));
        let item = self
            .frames
            .last()
            .is_some_and(|top| top.kind == Kind::List && top.indent < at && !top.filled);
        if goes_on || item && opens {
            return self.scalar(start, line, at);
        }
        if item && !self.in_item_line(start, at) {
            return self.scalar(start, line, at);
        }
        self.close_to(at, Kind::Map);
        self.offer_key(at, range.clone());
        if item {
            // a word behind `- ` may also be the whole item
            self.fill();
        }
    }

    /// Returns true if the column follows the sign of an item on the same line.
    fn in_item_line(&self, start: usize, at: usize) -> bool {
        self.text[start..start + at].trim_end().ends_with('-')
    }

    /// An empty line: the column of the offset says what may be written.
    fn blank(&mut self, start: usize, len: usize) {
        if self.offset < start || self.offset > start + len || self.found.is_some() {
            return;
        }
        let at = self.offset - start;
        let kept: Vec<(usize, Kind)> = self.frames.iter().map(|f| (f.indent, f.kind)).collect();
        let depth = kept
            .iter()
            .rposition(|(indent, kind)| *indent <= at && *kind == Kind::Map || *indent < at)
            .map_or(0, |k| k + 1);
        self.offer_key_in(depth, at, self.offset..self.offset);
    }

    /// Reads the inside of braces and brackets from a column on.
    fn flow(&mut self, start: usize, line: &str, mut at: usize) {
        let mut gap = at;
        while at < line.len() {
            let rest = &line[at..];
            let next = rest.chars().next().unwrap_or(' ');
            match next {
                ' ' | '\t' => at += 1,
                '#' if at == 0 || line[..at].ends_with(' ') => {
                    return self.hole(start + gap, start + at);
                }
                '{' | '[' => {
                    self.hole(start + gap, start + at);
                    let indent = self
                        .frames
                        .iter()
                        .find(|f| f.is_flow())
                        .map_or(0, |f| f.indent);
                    self.fill();
                    if next == '{' {
                        self.push(Kind::Braces, indent);
                    } else {
                        self.push(Kind::Brackets, indent);
                        self.next_item();
                    }
                    at += 1;
                    gap = at;
                }
                '}' | ']' => {
                    self.hole(start + gap, start + at);
                    self.pop();
                    at += 1;
                    gap = at;
                    if !self.frames.iter().any(Frame::is_flow) {
                        return;
                    }
                }
                ',' => {
                    self.hole(start + gap, start + at);
                    match self.frames.last_mut() {
                        Some(top) if top.kind == Kind::Brackets => self.next_item(),
                        Some(top) => (top.key, top.filled) = (None, false),
                        None => return,
                    }
                    at += 1;
                    gap = at;
                }
                _ => {
                    if at > gap {
                        // the beginning of the token is its own
                        self.hole(start + gap, start + at - 1);
                    }
                    at = self.token(start, line, at);
                    gap = at;
                }
            }
        }
        self.hole(start + gap, start + line.len());
    }

    /// Reads a key or value in braces or brackets; returns the column behind it.
    fn token(&mut self, start: usize, line: &str, at: usize) -> usize {
        let wants_key = self
            .frames
            .last()
            .is_some_and(|top| top.kind == Kind::Braces && top.key.is_none());
        let rest = &line[at..];
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (range, behind) = if let Some(quote) = quote {
            let end = quote_end(line, at + 1, quote);
            if end.is_none() && !wants_key {
                self.open = Open::Quote(quote, start + at + 1);
            }
            let end = end.unwrap_or(line.len());
            (at + 1..end, (end + 1).min(line.len()))
        } else {
            let stop = rest
                .char_indices()
                .find(|(k, c)| {
                    let behind = rest[k + c.len_utf8()..].chars().next();
                    let parts = matches!(behind, None | Some(' ' | ',' | '}' | ']'));
                    matches!(c, ',' | '}' | ']' | '{' | '[') || *c == ':' && parts
                })
                .map_or(rest.len(), |(k, _)| k);
            let stop = rest[..stop].find(" #").unwrap_or(stop);
            let end = at + rest[..stop].trim_end().len();
            // a lone sign is passed over
            (at..end.max(at), (at + stop).max(at + 1).min(line.len()))
        };
        let told = start + range.start..start + range.end;
        if !wants_key {
            self.fill();
            let told = match quote {
                Some(_) => told,
                None => self.typed_on(told, start + behind),
            };
            self.value(told);
            return behind;
        }
        let after = line[behind..].trim_start();
        if after.starts_with(':') {
            let colon = line.len() - after.len();
            self.key(line[range].to_owned(), told);
            return colon + 1;
        }
        if let Some(top) = self.frames.last() {
            let depth = self.frames.len();
            let indent = top.indent;
            self.offer_key_in(depth, indent, told);
        }
        behind
    }

    /// Space in braces or brackets in which something may be written.
    fn hole(&mut self, from: usize, to: usize) {
        if self.found.is_some() || self.offset < from || self.offset > to {
            return;
        }
        let here = self.offset..self.offset;
        match self.frames.last() {
            Some(top) if top.filled => {}
            Some(top) if top.kind == Kind::Braces && top.key.is_none() => {
                let (depth, indent) = (self.frames.len(), top.indent);
                self.offer_key_in(depth, indent, here);
            }
            _ => self.value(here),
        }
    }

    fn push(&mut self, kind: Kind, indent: usize) {
        self.made += 1;
        self.frames.push(Frame {
            id: self.made,
            indent,
            kind,
            key: None,
            filled: false,
            keys: Vec::new(),
        });
    }

    fn pop(&mut self) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
        if let Some((spot, of)) = &mut self.found
            && *of == frame.id
        {
            spot.siblings = frame.keys;
        }
    }

    /// Ends the maps and lists that a line at this column is not part of.
    fn close_to(&mut self, at: usize, kind: Kind) {
        while let Some(top) = self.frames.last() {
            let ends =
                top.indent > at || top.indent == at && top.kind == Kind::List && kind == Kind::Map;
            if !ends {
                break;
            }
            self.pop();
        }
        self.fill();
    }

    /// Notes that the key whose value comes next has one.
    fn fill(&mut self) {
        if let Some(top) = self.frames.last_mut() {
            top.filled = true;
        }
    }

    fn is_top(&self, kind: Kind, indent: usize) -> bool {
        let top = self.frames.last();
        top.is_some_and(|top| top.kind == kind && top.indent == indent)
    }

    fn next_item(&mut self) {
        if let Some(top) = self.frames.last_mut() {
            let next = match top.key {
                Some(Step::Item(at)) => at + 1,
                _ => 0,
            };
            (top.key, top.filled) = (Some(Step::Item(next)), false);
        }
    }

    fn key(&mut self, name: String, range: Range<usize>) {
        let depth = self.frames.len();
        if self.is_at(&range) {
            let path = self.path(depth - 1);
            self.find(path, Part::Key, range, depth - 1);
        }
        if let Some(top) = self.frames.last_mut() {
            top.keys.push(name.clone());
            (top.key, top.filled) = (Some(Step::Key(name)), false);
        }
    }

    fn value(&mut self, range: Range<usize>) {
        if self.is_at(&range) {
            let depth = self.frames.len();
            let path = self.path(depth);
            self.find(path, Part::Value, range, depth.saturating_sub(1));
        }
    }

    /// Returns the range of a text without quotes, up to the offset if only spaces are between.
    fn typed_on(&self, range: Range<usize>, most: usize) -> Range<usize> {
        let goes_on = range.end < self.offset && self.offset <= most;
        range.start..if goes_on { self.offset } else { range.end }
    }

    /// A place on the rest of a line where a value may be written.
    fn empty(&mut self, from: usize, to: usize) {
        if self.offset >= from && self.offset <= to {
            self.value(self.offset..self.offset);
        }
    }

    fn offer_key(&mut self, at: usize, range: Range<usize>) {
        self.offer_key_in(self.frames.len(), at, range);
    }

    /// A key is being typed, in the map of this depth, or in the value of that map's last key.
    fn offer_key_in(&mut self, depth: usize, at: usize, range: Range<usize>) {
        if !self.is_at(&range) {
            return;
        }
        let own = depth.checked_sub(1).and_then(|k| self.frames.get(k));
        let in_it = own.is_some_and(|top| match top.kind {
            Kind::Map => top.indent == at,
            Kind::Braces => true,
            Kind::List | Kind::Brackets => false,
        });
        if in_it {
            let path = self.path(depth - 1);
            return self.find(path, Part::Key, range, depth - 1);
        }
        let path = self.path(depth);
        // a map that begins here has no other keys
        self.find(path, Part::Key, range, usize::MAX);
    }

    fn is_at(&self, range: &Range<usize>) -> bool {
        self.found.is_none() && range.start <= self.offset && self.offset <= range.end
    }

    /// Returns the steps that lead into the first frames. The value of a key that is not in them is not entered.
    fn path(&self, depth: usize) -> Vec<Step> {
        let frames = self.frames.iter().take(depth);
        frames.filter_map(|frame| frame.key.clone()).collect()
    }

    fn find(&mut self, path: Vec<Step>, part: Part, range: Range<usize>, frame: usize) {
        let frame = self.frames.get(frame).map_or(usize::MAX, |frame| frame.id);
        let siblings = Vec::new();
        let spot = Spot {
            path,
            part,
            range,
            siblings,
        };
        self.found = Some((spot, frame));
    }
}

impl Frame {
    fn is_flow(&self) -> bool {
        matches!(self.kind, Kind::Braces | Kind::Brackets)
    }
}

/// Returns the key at the beginning of a text: its name, its range without quotes, and where the rest of the line begins.
fn key_at(text: &str) -> Option<(String, Range<usize>, usize)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    let (range, from) = if let Some(quote) = quote {
        let end = quote_end(text, 1, quote)?;
        (1..end, end + 1)
    } else {
        if text.starts_with([
            '{', '[', '#', '&', '*', '|', '>', '%', '@', '`', ',', '}', ']',
        ]) {
            return None;
        }
        let colon = text.match_indices(':').find(|(at, _)| {
            let behind = text[at + 1..].chars().next();
            matches!(behind, None | Some(' ' | '\t'))
        });
        let (colon, _) = colon?;
        if text[..colon].contains(" #") {
            return None;
        }
        (0..text[..colon].trim_end().len(), colon)
    };
    let behind = text[from..].trim_start();
    let colon = text.len() - behind.len();
    behind
        .starts_with(':')
        .then(|| (text[range.clone()].to_owned(), range, colon + 1))
}

/// Returns the column of the quote that closes a text.
fn quote_end(line: &str, from: usize, quote: char) -> Option<usize> {
    let mut chars = line.get(from..)?.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if quote == '"' => drop(chars.next()),
            c if c == quote => {
                let doubled = quote == '\'' && chars.peek().is_some_and(|(_, c)| *c == quote);
                if !doubled {
                    return Some(from + at);
                }
                chars.next();
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::names::Names;
    use super::*;
    use crate::source::Files;
    use std::path::{Path, PathBuf};

    /// Returns all YAML files of this crate's tests and of the examples.
    fn all_files() -> Vec<PathBuf> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut folders = vec![root.join("tests"), root.join("../../examples")];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "yaml") {
                    files.push(path);
                }
            }
        }
        files
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests read their cases")]
    fn the_lines_say_what_the_tree_says() {
        let (mut texts, mut wrong) = (0, Vec::new());
        for path in all_files() {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = Names::of(&Files::new("steersman.yaml", text.as_str()));
            for ((_, start), way) in &names.ways {
                texts += 1;
                // the sign of a block is not its text
                let block = text[*start..].starts_with(['|', '>']);
                let at = if block {
                    start + text[*start..].find('\n').unwrap_or(0) + 1
                } else {
                    *start
                };
                // behind an opening quote
                let quoted = text[at..].starts_with(['"', '\'']);
                let found = spot(&text, at + usize::from(quoted));
                let right = found.as_ref().is_some_and(|spot| {
                    // a text that is a whole item may also become a key
                    let item = matches!(way.last(), Some(Step::Item(_)));
                    spot.path == *way && (spot.part == Part::Value || item)
                });
                if !right {
                    let line = text[..*start].matches('\n').count() + 1;
                    wrong.push(format!("{}:{line}: {way:?} is {found:?}", path.display()));
                }
            }
        }
        assert!(texts > 3000, "{texts}");
        assert!(
            wrong.is_empty(),
            "{} of {texts}\n{}",
            wrong.len(),
            wrong[..wrong.len().min(20)].join("\n")
        );
    }

    /// Returns the way, the part and the siblings at the mark `|`.
    fn at(text: &str) -> Option<(String, Part, Vec<String>)> {
        let offset = text.find('|').unwrap();
        let spot = spot(&text.replace('|', ""), offset)?;
        let way: Vec<String> = spot
            .path
            .iter()
            .map(|step| match step {
                Step::Key(key) => key.clone(),
                Step::Item(at) => at.to_string(),
            })
            .collect();
        Some((way.join("/"), spot.part, spot.siblings))
    }

    #[test]
    fn broken_texts_have_places_too() {
        let cases = [
            // an empty line: its column decides
            (
                "tools:\n  pay:\n    |\n    effect: read\n",
                "tools/pay",
                Part::Key,
            ),
            (
                "tools:\n  pay:\n    effect: read\n  |\n",
                "tools",
                Part::Key,
            ),
            ("tools:\n  pay:\n    effect: read\n|\n", "", Part::Key),
            // no colon yet
            (
                "tools:\n  pay:\n    eff|\n    http: {}\n",
                "tools/pay",
                Part::Key,
            ),
            (
                "tools:\n  pay:\n    effect:|",
                "tools/pay/effect",
                Part::Value,
            ),
            (
                "tools:\n  pay:\n    effect: |",
                "tools/pay/effect",
                Part::Value,
            ),
            // what is not closed does not hide what follows
            (
                "a: { b: [1, \nagents:\n  desk:\n    mod|",
                "agents/desk",
                Part::Key,
            ),
            (
                "a: \"open\nagents:\n  desk:\n    model: |",
                "agents/desk/model",
                Part::Value,
            ),
            (
                "agents: { desk: { model: |",
                "agents/desk/model",
                Part::Value,
            ),
            ("agents: { desk: { | } }", "agents/desk", Part::Key),
            (
                "agents: { desk: { mo|, tools: [] } }",
                "agents/desk",
                Part::Key,
            ),
            (
                "agents:\n  desk:\n    tools: [pay, |]",
                "agents/desk/tools/1",
                Part::Value,
            ),
            (
                "agents:\n  desk:\n    tools:\n      - pay\n      - |",
                "agents/desk/tools/1",
                Part::Value,
            ),
            (
                "agents:\n  desk:\n    tools:\n    - pa|",
                "agents/desk/tools/0",
                Part::Key,
            ),
            (
                "agents:\n  desk:\n    tools:\n    - tool: pay\n      |",
                "agents/desk/tools/0",
                Part::Key,
            ),
            (
                "agents:\n  desk:\n    system: >\n      Hello\n      you|\n    model: x\n",
                "agents/desk/system",
                Part::Value,
            ),
        ];
        for (text, way, part) in cases {
            let found = at(text).map(|(way, part, _)| (way, part));
            assert_eq!(found, Some((way.to_owned(), part)), "{text}");
        }
        assert_eq!(at("a: 1 # no|te\n"), None);
    }

    #[test]
    fn siblings_are_before_and_behind() {
        let text = "tools:\n  pay:\n    effect: read\n    |\n    http: { url: x }\n  other: {}\n";
        let (_, _, siblings) = at(text).unwrap();
        assert_eq!(siblings, ["effect", "http"]);
    }
}
