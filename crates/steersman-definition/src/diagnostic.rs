//! Diagnostics of a definition: code, place, excerpt, help. All of them are collected. Each one is made by one function of
//! [`structure`], [`names`], [`types`] or [`effects`], so a search for `Diagnostic::` lists them.

mod effects;
mod lsp;
mod names;
mod structure;
mod types;

use annotate_snippets::{AnnotationKind, Group, Level, Patch as Change, Renderer, Snippet};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A diagnostic about a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable code: `E0302`, `W0401`, `N0502`.
    pub code: &'static str,
    /// Severity, given by the first letter of the code.
    pub severity: Severity,
    /// The problem, in one line.
    pub message: String,
    /// Place of the problem; `None` for a part made by the Rust builder or outside all files.
    pub at: Option<Place>,
    /// Short text shown at the place.
    pub label: Option<String>,
    /// Related places, each with a short text.
    pub labels: Vec<(Place, String)>,
    /// Additional notes, one sentence each.
    pub notes: Vec<String>,
    /// Advice on how to fix the problem.
    pub help: Option<String>,
    /// The fix as a change of the text, if there is one.
    pub patch: Option<Patch>,
    /// True if the problem is in a file of tests. Those tests are left out; everything else still runs.
    pub left_out: bool,
}

/// Severity of a diagnostic. A definition with an error is not compiled.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information only.
    Note,
    /// Probably a mistake, but accepted.
    Warning,
    /// The definition is refused.
    Error,
}

/// A place in a file, with the file's text.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, relative to the definition's folder.
    pub path: Arc<str>,
    /// Text of the whole file.
    pub text: Arc<str>,
    /// Byte range in the text.
    pub span: Range<usize>,
}

/// A change of the text that fixes a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Description of the change.
    pub title: String,
    /// Each place with its new text; all places are in one file.
    pub changes: Vec<(Place, String)>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.position();
        write!(f, "{}:{line}:{column}", self.path)
    }
}

impl Place {
    /// Returns line and column, counted from 1, in characters.
    pub fn position(&self) -> (usize, usize) {
        let start = floor_char(&self.text, self.span.start);
        let before = &self.text[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        (line, column)
    }
    /// Returns path, start and end, for comparison without the file's text.
    fn key(&self) -> (Arc<str>, usize, usize) {
        (self.path.clone(), self.span.start, self.span.end)
    }
    /// Returns the text at the place, or an empty text if the range does not fit the file.
    pub fn excerpt(&self) -> &str {
        self.text.get(self.span.clone()).unwrap_or_default()
    }
}

/// Returns a text of one line in quotes, as YAML has them.
pub(crate) fn quoted(text: &str) -> String {
    // within `"` both have an escape, within `'` only `'` has one
    if text.contains(['"', '\\']) {
        format!("'{}'", text.replace('\'', "''"))
    } else {
        format!("\"{text}\"")
    }
}

fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl Diagnostic {
    /// Returns true for a warning that nothing leads to a part of the definition: it never acts, or is never entered.
    pub fn is_of_reach(&self) -> bool {
        matches!(self.code, "W0201" | "W0409" | "W0420")
    }
}

impl Diagnostic {
    fn new(code: &'static str, at: Option<Place>, message: impl Into<String>) -> Self {
        let severity = match code.as_bytes().first() {
            Some(b'W') => Severity::Warning,
            Some(b'N') => Severity::Note,
            _ => Severity::Error,
        };
        Self {
            code,
            severity,
            message: message.into(),
            at,
            label: None,
            labels: Vec::new(),
            notes: Vec::new(),
            help: None,
            patch: None,
            left_out: false,
        }
    }
    pub(crate) fn set_aside(&mut self) {
        self.severity = Severity::Warning;
        self.left_out = true;
        self.notes
            .push("the tests of this file are left out, and `steersman test` fails".to_owned());
    }
    fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }
    fn also(mut self, at: Option<Place>, label: impl Into<String>) -> Self {
        self.labels.extend(at.map(|at| (at, label.into())));
        self
    }
    fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
    /// Adds help as a change of the text, or as a sentence if there is no place.
    fn patch(
        mut self,
        title: impl Into<String>,
        at: Option<Place>,
        with: impl Into<String>,
    ) -> Self {
        let (title, with) = (title.into(), with.into());
        match at {
            Some(at) => {
                let changes = vec![(at, with)];
                self.patch = Some(Patch { title, changes });
            }
            None => self.help = Some(format!("{title}: `{with}`")),
        }
        self
    }
    /// Adds help as changes of the text, or as a sentence if there are none.
    fn changes(mut self, title: impl Into<String>, changes: Vec<(Place, String)>) -> Self {
        let title = title.into();
        if changes.is_empty() {
            self.help = Some(title);
        } else {
            self.patch = Some(Patch { title, changes });
        }
        self
    }
    /// Suggests a known name for a wrong one, if there is one: as a label, and as a change of the text if the wrong name stands
    /// at the place or ends it.
    fn near(mut self, name: &str, near: Option<&str>) -> Self {
        let Some(near) = near else {
            return self;
        };
        let title = format!("did you mean `{near}`?");
        let at = self.at.as_ref().filter(|at| at.excerpt().ends_with(name));
        self.patch = at.map(|at| {
            let start = at.span.end - name.len();
            let at = Place {
                span: start..at.span.end,
                ..at.clone()
            };
            Patch {
                title: title.clone(),
                changes: vec![(at, near.to_owned())],
            }
        });
        self.label = Some(title);
        self
    }

    /// Returns the content of the diagnostic as a key, by which duplicates are found. The order of keys has no meaning.
    pub(crate) fn told(&self) -> impl Ord + use<> {
        let labels = self.labels.iter();
        let labels: Vec<_> = labels.map(|(at, text)| (at.key(), text.clone())).collect();
        let patch = self.patch.as_ref().map(|patch| {
            let changes = patch.changes.iter();
            let changes: Vec<_> = changes.map(|(at, with)| (at.key(), with.clone())).collect();
            (patch.title.clone(), changes)
        });
        let at = self.at.as_ref().map(Place::key);
        let texts = (self.message.clone(), self.label.clone(), self.notes.clone());
        let rest = (self.help.clone(), self.severity, self.left_out);
        (self.code, at, texts, labels, rest, patch)
    }

    /// Returns true if the severity is [`Severity::Error`].
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Renders the diagnostic for a terminal, with an excerpt of the file and without a newline at the end.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let title = level.primary_title(&*self.message).id(self.code);
        let mut main = Group::with_title(title);
        let mut paths: Vec<&Arc<str>> = self.at.iter().map(|at| &at.path).collect();
        for (place, _) in &self.labels {
            if !paths.contains(&&place.path) {
                paths.push(&place.path);
            }
        }
        for path in paths {
            main = main.element(self.snippet(path));
        }
        for note in &self.notes {
            main = main.element(Level::NOTE.message(&**note));
        }
        if let Some(help) = &self.help {
            main = main.element(Level::HELP.message(&**help));
        }
        let mut report = vec![main];
        // a suggested name is in the label already
        let patch = self.patch.as_ref();
        let patch = patch.filter(|patch| self.label.as_ref() != Some(&patch.title));
        if let Some(patch) = patch {
            let mut group = Group::with_title(Level::HELP.secondary_title(&*patch.title));
            if let Some((first, _)) = patch.changes.first() {
                let spans = patch.changes.iter().map(|(place, _)| &place.span);
                let window = Window::around(first, spans);
                let changes = patch
                    .changes
                    .iter()
                    .map(|(place, with)| Change::new(window.range(&place.span), &**with));
                let snippet = Snippet::source(window.text)
                    .line_start(window.line)
                    .path(&*first.path)
                    .patches(changes);
                group = group.element(snippet);
            }
            report.push(group);
        }
        renderer.render(&report)
    }

    fn snippet<'a>(&'a self, path: &Arc<str>) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        let main = self.at.iter().filter(|at| at.path == *path);
        let labels = self.labels.iter().filter(|(at, _)| at.path == *path);
        let places: Vec<_> = main
            .map(|at| (AnnotationKind::Primary, at, self.label.as_deref()))
            .chain(labels.map(|(at, label)| (AnnotationKind::Context, at, Some(&**label))))
            .collect();
        let (_, first, _) = places.first().expect("a path of one of the places");
        let window = Window::around(first, places.iter().map(|(_, at, _)| &at.span));
        let mut snippet = Snippet::source(window.text)
            .line_start(window.line)
            .path(first.path.to_string());
        for (kind, at, label) in places {
            let annotation = kind.span(window.range(&at.span));
            snippet = snippet.annotation(match label {
                Some(label) => annotation.label(label),
                None => annotation,
            });
        }
        snippet
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

/// Maximum number of diagnostics shown for one definition.
pub const SHOWN: usize = 100;

/// The diagnostics to show: the first ones in full, the rest as counts.
#[derive(Clone, Debug)]
pub struct Shown<'a> {
    /// The first [`SHOWN`] diagnostics, errors before warnings.
    pub first: &'a [Diagnostic],
    /// Number of diagnostics not shown, by code.
    pub more: BTreeMap<&'static str, usize>,
}

impl<'a> Shown<'a> {
    /// Splits diagnostics into those to show and the rest.
    pub fn of(found: &'a [Diagnostic]) -> Self {
        let (first, rest) = found.split_at(found.len().min(SHOWN));
        let mut more = BTreeMap::new();
        for diagnostic in rest {
            *more.entry(diagnostic.code).or_insert(0) += 1;
        }
        Self { first, more }
    }

    /// Returns a sentence about the rest; `None` if all are shown.
    pub fn rest(&self) -> Option<String> {
        let all: usize = self.more.values().sum();
        let codes = self.more.iter();
        let codes: Vec<String> = codes.map(|(code, n)| format!("{code} ({n})")).collect();
        let codes = codes.join(", ");
        (all > 0).then(|| format!("{all} more are not shown: {codes}"))
    }
}

/// The lines of a file around some spans, to be rendered as an excerpt.
struct Window<'a> {
    text: &'a str,
    start: usize,
    line: usize,
}

impl<'a> Window<'a> {
    fn around<'r>(place: &'a Place, spans: impl IntoIterator<Item = &'r Range<usize>>) -> Self {
        let text = &*place.text;
        let (mut start, mut end) = (text.len(), 0);
        for span in spans {
            start = start.min(floor_char(text, span.start));
            end = end.max(floor_char(text, span.end));
        }
        let start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[end.max(start)..]
            .find('\n')
            .map_or(text.len(), |at| end.max(start) + at);
        Self {
            text: &text[start..end],
            start,
            line: text[..start].matches('\n').count() + 1,
        }
    }
    fn range(&self, span: &Range<usize>) -> Range<usize> {
        let at = |byte: usize| floor_char(self.text, byte.saturating_sub(self.start));
        at(span.start)..at(span.end).max(at(span.start))
    }
}
