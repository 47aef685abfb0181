//! Builds the tree from the parser's events and reports faults of the text.

use super::super::diagnostic::{Diagnostic, Place, quoted};
use super::super::meant::{self, applied};
use super::{
    Key, Kind, MAX_BYTES, MAX_DEPTH, MAX_NODES, Node, Scalar, Sources, Span, Style, Value,
    ceil_char, plain,
};
use serde_saphyr::granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, options};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Parses a file into a tree and reports its faults. Returns `None` if there is no tree.
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
        let what = format!("a file of a definition with {size} KiB is too large");
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
    /// The open lists and maps, outermost first.
    stack: Vec<Frame>,
    /// The value of each anchor, with its number of values and its height.
    anchors: BTreeMap<usize, (Node, usize, usize)>,
    /// Number of values so far, with aliases expanded.
    nodes: usize,
    root: Option<Node>,
}

/// A list or map that is still open.
struct Frame {
    /// Offset of its first byte.
    start: usize,
    /// The parser's number of its anchor; 0 if it has none.
    anchor: usize,
    /// Number of values in it so far, itself included.
    nodes: usize,
    /// Largest height of its values so far. A scalar has the height 1.
    height: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map {
        entries: Vec<(Key, Node)>,
        known: BTreeMap<Arc<str>, Span>,
        /// The key whose value comes next.
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
            let (event, span) = match tag(&event) {
                Some(tag) => self.tagged(text, event, &tag, span),
                None => (event, span),
            };
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
                    self.spend(node.span, 1)?;
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
                    self.spend(span, nodes)?;
                    self.add(node, 0, nodes, height)?;
                }
                Event::SequenceStart(_, anchor, _) => {
                    self.open(start, anchor, Content::List(Vec::new()));
                }
                Event::MappingStart(_, anchor, _) => {
                    let content = Content::Map {
                        entries: Vec::new(),
                        known: BTreeMap::new(),
                        key: None,
                    };
                    self.open(start, anchor, content);
                }
                Event::SequenceEnd | Event::MappingEnd => self.close(text, end)?,
                _ => {}
            }
        }
        Some(self.root.take().unwrap_or_else(Node::null))
    }

    /// Reports a tag. `!state.done` is one to YAML: where a negation was probably meant, the value is read as that.
    fn tagged<'t>(
        &mut self,
        text: &str,
        event: Event<'t>,
        tag: &str,
        span: Span,
    ) -> (Event<'t>, Span) {
        let range = span.range();
        // what looks like an anchor may stand between the tag and the value
        let line = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let start = text[line..range.start].rfind(tag);
        let negated = start.and_then(|start| {
            let path = tag.trim_start_matches(['!', '(']);
            let root = path.split_once('.').map(|(root, _)| root);
            root.filter(|root| meant::ROOTS.contains(root))?;
            let whole = line + start..range.end;
            let meant = meant::expression(&text[whole.clone()])?;
            let negated = applied(&text[whole.clone()], &meant.changes);
            (!meant.changes.is_empty()).then_some((whole, meant.advice, negated))
        });
        match (event, negated) {
            (Event::Scalar(_, ScalarStyle::Plain, anchor, _), Some((whole, advice, negated))) => {
                let span = Span::new(self.file, whole);
                let place = self.sources.place(span);
                let diagnostic = Diagnostic::tag_for_not(place, tag, &advice, &negated);
                self.diagnostics.push(diagnostic);
                let event = Event::Scalar(negated.into(), ScalarStyle::Plain, anchor, None);
                (event, span)
            }
            (event, _) => {
                let place = self.sources.place(span);
                self.diagnostics.push(Diagnostic::yaml_tag(place, tag));
                (event, span)
            }
        }
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
        self.spend(span, 1)?;
        self.add(
            Node { span, value },
            frame.anchor,
            frame.nodes,
            frame.height + 1,
        )
    }

    /// Counts values; an alias counts as the values that it repeats. Reports too many of them and returns `None`.
    fn spend(&mut self, span: Span, nodes: usize) -> Option<()> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            let place = self.sources.place(span);
            let what = format!("more than {MAX_NODES} values in one file");
            let most = "an alias counts as the values that it repeats".to_owned();
            self.diagnostics
                .push(Diagnostic::too_big(place, what, most));
            return None;
        }
        Some(())
    }

    /// Adds a node to the innermost open list or map. Reports nesting that is too deep and returns `None`.
    fn add(&mut self, node: Node, anchor: usize, nodes: usize, height: usize) -> Option<()> {
        if self.stack.len() + height > MAX_DEPTH {
            let place = self.sources.place(node.span);
            let what = format!("nested deeper than {MAX_DEPTH} levels");
            let most = "no definition needs more than a dozen".to_owned();
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
            Content::Map {
                entries,
                known,
                key,
            } => match key.take() {
                None => *key = Some(key_of(self.sources, self.diagnostics, &node)),
                Some(name) => {
                    if let Some(first) = known.get(&name.name) {
                        let at = self.sources.place(name.span);
                        let first = self.sources.place(*first);
                        let diagnostic = Diagnostic::duplicate_key(at, first, &name.name);
                        self.diagnostics.push(diagnostic);
                    } else {
                        known.insert(name.name.clone(), name.span);
                        entries.push((name, node));
                    }
                }
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
            Style::Plain => {
                let kind = plain(&text);
                if kind.is_none() {
                    let place = self.sources.place(span);
                    self.diagnostics.push(Diagnostic::odd_number(place, &text));
                }
                kind.unwrap_or(Kind::Text)
            }
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
        if let Some(tabs) = tabs(text, start) {
            let first = self.sources.place(Span::new(self.file, tabs.first));
            let changes = tabs.changes.into_iter().filter_map(|(range, with)| {
                Some((self.sources.place(Span::new(self.file, range))?, with))
            });
            let diagnostic = Diagnostic::tab(first, changes.collect());
            self.diagnostics.push(diagnostic);
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
        if let Some(colon) = colon_in_text(text, start, at) {
            let place = self.sources.place(Span::new(self.file, colon.value));
            let diagnostic = Diagnostic::unquoted_colon(place, colon.advice, colon.with);
            self.diagnostics.push(diagnostic);
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

/// Returns the offset at which a text stops to be YAML; `None` if all of it is.
fn breaks_at(text: &str) -> Option<usize> {
    let error = Parser::new_from_str(text).find_map(Result::err)?;
    Some(error.marker().byte_offset().unwrap_or_default())
}

/// Tabs that indent lines.
struct Tabs {
    /// The first of them.
    first: Range<usize>,
    /// Spaces for all of them; empty if it is open how many are meant.
    changes: Vec<(Range<usize>, String)>,
}

/// Returns the tabs that indent lines of a text, if one does so at a place where the text is no YAML, or on a line next to it.
fn tabs(text: &str, start: usize) -> Option<Tabs> {
    let mut indents = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        if line[..indent].contains('\t') {
            indents.push(at..at + indent);
        }
        at += line.len();
    }
    let line_of = |at: usize| text[..at].matches('\n').count();
    let near = |indent: &&Range<usize>| line_of(indent.start).abs_diff(line_of(start)) <= 1;
    let tab = indents.iter().find(near)?;
    let first = tab.start + text[tab.clone()].find('\t')?;
    let spaced = ["  ", "    ", "        "].into_iter().map(|spaces| {
        let spaced =
            |indent: &Range<usize>| (indent.clone(), text[indent.clone()].replace('\t', spaces));
        indents.iter().map(spaced).collect::<Vec<_>>()
    });
    let mut reads = spaced.filter(|changes| breaks_at(&applied(text, changes)).is_none());
    Some(Tabs {
        first: first..first + 1,
        changes: reads.next().unwrap_or_default(),
    })
}

/// An unquoted text with a colon, which YAML reads as a map.
struct Colon {
    value: Range<usize>,
    /// Advice, as text for people.
    advice: String,
    /// The text in place of the value, if the file goes on as YAML with that.
    with: Option<String>,
}

/// Returns the text around the colon at which a text stops to be YAML.
fn colon_in_text(text: &str, start: usize, at: usize) -> Option<Colon> {
    let line = text[start..].lines().next()?;
    let colon = at - start;
    let rest = line[colon..].strip_prefix(": ")?;
    let value = value_around(line, colon).start;
    let in_flow = line[..value].contains(['{', '[']);
    let end = if in_flow {
        rest.find([',', '}', ']'])
    } else {
        rest.find(" #")
    };
    let rest = rest[..end.unwrap_or(rest.len())].trim_end();
    let value = start + value..at + ": ".len() + rest.len();
    let written = &text[value.clone()];
    let choice = meant::expression(written).filter(|meant| !meant.changes.is_empty());
    let (advice, with) = match choice {
        Some(meant) => (meant.advice, quoted(&applied(written, &meant.changes))),
        None => ("quote the whole text".to_owned(), quoted(written)),
    };
    let after = applied(text, &[(value.clone(), with.clone())]);
    // a text that goes on in the next line is not in quotes as a whole
    let next_lines = after[value.start + with.len()..]
        .split_inclusive('\n')
        .take(2);
    let behind = value.start + with.len() + next_lines.map(str::len).sum::<usize>();
    let further = breaks_at(&after).is_none_or(|later| later > behind);
    Some(Colon {
        value,
        advice,
        with: further.then_some(with),
    })
}

/// Returns the offset of `{{` outside quotes, on a line that is not valid YAML.
fn unquoted_braces(line: &str) -> Option<usize> {
    let open = line.find("{{")?;
    let quotes = |c: char| line[..open].matches(c).count() % 2 == 1;
    (!quotes('"') && !quotes('\'')).then_some(open)
}

/// Returns the range of the value around an offset in a line: from after the key to the end of the entry.
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

/// Finds a text that a `#` has cut, together with the end of its flow collection, on the last lines up to `end`. Returns the
/// ranges of the value and of the cut rest.
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

/// Returns the place of the whole value whose unquoted `{{` YAML has read as the key at a place.
fn braces_around(key: &Place) -> Option<Place> {
    let text = &*key.text;
    // the key is either the inner one of two braces, or starts with both
    let before = key.span.start.checked_sub(1);
    let open = before
        .into_iter()
        .chain([key.span.start])
        .find(|at| text.get(*at..).is_some_and(|text| text.starts_with("{{")))?;
    let start = text[..open].rfind('\n').map_or(0, |k| k + 1);
    let end = text[open..].find('\n').map_or(text.len(), |k| open + k);
    let value = value_around(&text[start..end], open - start);
    Some(Place {
        span: start + value.start..start + value.end,
        ..key.clone()
    })
}

fn key_of(sources: &Sources, diagnostics: &mut Vec<Diagnostic>, node: &Node) -> Key {
    let place = sources.place(node.span);
    match node.scalar() {
        Some(scalar) if &*scalar.text == "<<" && scalar.style == Style::Plain => {
            diagnostics.push(Diagnostic::merge_key(place));
        }
        Some(_) => {}
        None => {
            if let Some(at) = place.as_ref().and_then(braces_around) {
                diagnostics.push(Diagnostic::unquoted_braces(Some(at)));
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
