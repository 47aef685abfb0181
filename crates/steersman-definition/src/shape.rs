//! Checks a tree against the tables of keys: unknown keys, reserved words, types of values, common mistakes in YAML. Reports
//! all faults; after `MOST` of them in a file, values are no longer checked. Later passes read well-formed parts and skip the
//! rest.

use super::diagnostic::Diagnostic;
use super::foreign;
use super::keys::kinds::{Millis, Money, Read, Size, Valued, Words};
use super::keys::{LongType, Section, ShortType, Table, Ty, is_name};
use super::meant;
use super::source::{Key, Kind, Node, Scalar, Sources, Span, Style, Value};
use std::collections::BTreeMap;
use std::ops::Range;
use steersman_machine::values::rate::Rate;

/// Number of faults of one file after which its values are no longer checked.
const MOST: usize = 200;

/// Checks `node` against `table`.
pub(crate) fn check(sources: &Sources, node: &Node, table: &'static Table) -> Vec<Diagnostic> {
    let mut shape = Shape {
        sources,
        found: Vec::new(),
    };
    shape.table(node, table);
    shape.found
}

/// Checks data whose texts may be templates, such as a script.
pub(crate) fn data(sources: &Sources, node: &Node) -> Vec<Diagnostic> {
    let mut shape = Shape {
        sources,
        found: Vec::new(),
    };
    shape.any(node, true);
    shape.found
}

struct Shape<'a> {
    sources: &'a Sources,
    found: Vec<Diagnostic>,
}

/// Returns the templates of a text: the range of each with its braces, and the expression in two braces, or nothing for a
/// statement.
fn in_braces(text: &str) -> Vec<(Range<usize>, &str)> {
    let mut found = Vec::new();
    for (open, close) in [("{{", "}}"), ("{%", "%}")] {
        for (start, _) in text.match_indices(open) {
            let Some(len) = text[start..].find(close) else {
                continue;
            };
            let inside = text[start + 2..start + len].trim_matches(['-', '+', ' ', '\n', '\t']);
            let inside = if open == "{{" { inside } else { "" };
            found.push((start..start + len + 2, inside));
        }
    }
    found
}

impl Shape<'_> {
    fn place(&self, span: Span) -> Option<super::diagnostic::Place> {
        self.sources.place(span)
    }

    fn table(&mut self, node: &Node, table: &'static Table) {
        let Value::Map(entries) = &node.value else {
            return self.wrong(node, table.words);
        };
        // several keys of another framework that have one answer are one mistake
        let mut answers = BTreeMap::new();
        for (key, value) in entries {
            match table.key(&key.name) {
                Some(known) => {
                    if let Some(found) = self.as_elsewhere(table, key, value) {
                        self.found.push(found);
                        continue;
                    }
                    self.value(value, &known.ty);
                    if known.name == "description" {
                        self.braces(value);
                    }
                }
                None => self.unknown(key, value, table, &mut answers),
            }
        }
        let written = |key: &str| entries.iter().find(|(entry, _)| &*entry.name == key);
        if table.key("timeout").is_some()
            && written("timeout").is_none()
            && let Some((key, _)) = written("on_timeout")
        {
            let at = self.place(key.span);
            self.found.push(Diagnostic::never_too_late(at));
        }
        for key in table.keys.iter().filter(|key| key.required) {
            if node.get(key.name).is_none() {
                let place = self.place(head(node));
                self.found
                    .push(Diagnostic::missing_key(place, table.words, key.name));
            }
        }
        for (required, group) in table.one_of {
            let written = |(key, _): &&(Key, Node)| group.contains(&&*key.name);
            let mut present = entries.iter().filter(written);
            let keys = list_of(group.iter().copied());
            match (present.next(), present.next()) {
                (Some((first, _)), Some((second, _))) => {
                    let (at, other) = (self.place(second.span), self.place(first.span));
                    self.found
                        .push(Diagnostic::not_together(at, table.words, &keys, other));
                }
                (None, _) if *required && !entries.iter().any(|(key, _)| &*key.name == "{{") => {
                    let at = self.place(head(node));
                    let names = list_of(group.iter().copied());
                    self.found
                        .push(Diagnostic::none_of(at, table.words, &names));
                }
                _ => {}
            }
        }
    }

    /// Reports an unknown key. `answers` maps the advice for keys of other frameworks to the diagnostic that gives it.
    fn unknown(
        &mut self,
        key: &Key,
        value: &Node,
        table: &'static Table,
        answers: &mut BTreeMap<&'static str, usize>,
    ) {
        if &*key.name == "{{" || &*key.name == "<<" {
            return; // reported by the YAML parser
        }
        let at = self.place(key.span);
        if let Some((is, advice)) = foreign::key(table.name, &key.name) {
            if let Some(first) = answers.get(advice) {
                self.found[*first].also_here(at);
                return;
            }
            answers.insert(advice, self.found.len());
            let found = Diagnostic::foreign_key(at, &key.name, table.words, is, advice);
            self.found.push(found);
            return;
        }
        let known = || table.keys.iter().map(|key| key.name);
        let near = self.sources.near(&key.name, known());
        let found = if near.is_none() && is_rest_of_a_text(value) {
            Diagnostic::rest_of_a_text(at, &key.name, table.words)
        } else {
            Diagnostic::unknown_key(at, &key.name, table.words, near, &list_of(known()))
        };
        self.found.push(found);
    }

    /// Returns a diagnostic for a value that no key like this takes, but which says clearly what is meant.
    fn as_elsewhere(&self, table: &'static Table, key: &Key, value: &Node) -> Option<Diagnostic> {
        let kind = value.scalar()?.kind;
        let (wanted, advice, with) = foreign::value(table.name, &key.name, kind)?;
        let at = self.place(value.span);
        let gap = if value.span.start == key.span.end + 1 {
            " "
        } else {
            ""
        };
        let found = Diagnostic::wrong_kind(at.clone(), wanted, value.kind_word());
        Some(found.instead(advice, at, format!("{gap}{with}")))
    }

    fn wrong(&mut self, node: &Node, wanted: &str) {
        let braces = node.entries().iter().any(|(key, _)| &*key.name == "{{");
        if !braces {
            let at = self.place(head(node));
            self.found
                .push(Diagnostic::wrong_kind(at, wanted, node.kind_word()));
        }
    }

    fn value(&mut self, node: &Node, ty: &'static Ty) {
        if self.found.len() > MOST {
            return;
        }
        match ty {
            Ty::Integer(least) => match node.scalar().map(|scalar| scalar.kind) {
                Some(Kind::Integer(value)) if value >= *least => {}
                Some(Kind::Integer(value)) => {
                    let at = self.place(node.span);
                    let wanted = format!("a whole number from {least} on");
                    self.found
                        .push(Diagnostic::malformed(at, &value.to_string(), &wanted));
                }
                _ => self.wrong(node, "a whole number"),
            },
            Ty::Number => match node.scalar().map(|scalar| scalar.kind) {
                Some(Kind::Integer(_) | Kind::Number(_)) => {}
                _ => self.wrong(node, "a number"),
            },
            Ty::Boolean => match node.scalar() {
                Some(scalar) if matches!(scalar.kind, Kind::Bool(_)) => {}
                _ => self.wrong(node, "`true` or `false`"),
            },
            Ty::Text | Ty::Template | Ty::Prompt => self.text(node),
            Ty::Expr => match node.scalar() {
                Some(scalar) if scalar.kind != Kind::Null => self.traps(node, scalar),
                _ => self.wrong(node, "an expression"),
            },
            Ty::Path | Ty::Documents => match node.scalar() {
                Some(scalar) if scalar.kind == Kind::Text => {}
                _ => self.wrong(node, "a path"),
            },
            Ty::Name => match node.scalar() {
                Some(scalar) if scalar.kind == Kind::Text => self.boolean_word(node, scalar),
                _ => self.wrong(node, "a name"),
            },
            Ty::Duration => match node.scalar() {
                _ if Millis(node).value().is_some() => {}
                Some(scalar) if scalar.kind != Kind::Null => {
                    let at = self.place(node.span);
                    let wanted = "a duration (`250ms`, `30s`, `15m`, `4h`, `3d`)";
                    self.found
                        .push(Diagnostic::malformed(at, &scalar.text, wanted));
                }
                _ => self.wrong(node, "a duration"),
            },
            Ty::Size => match node.scalar() {
                _ if Size(node).value().is_some() => {}
                Some(scalar) if scalar.kind != Kind::Null => {
                    let at = self.place(node.span);
                    let wanted = "a size (`512B`, `16KiB`, `4MiB`)";
                    self.found
                        .push(Diagnostic::malformed(at, &scalar.text, wanted));
                }
                _ => self.wrong(node, "a size"),
            },
            Ty::Money => match node.scalar() {
                _ if Money(node).micros().is_some() => {}
                Some(scalar) if matches!(scalar.kind, Kind::Integer(_) | Kind::Number(_)) => {
                    let at = self.place(node.span);
                    let wanted = "an amount of money: not below 0, with at most six places";
                    self.found
                        .push(Diagnostic::malformed(at, &scalar.text, wanted));
                }
                _ => self.wrong(node, "an amount of money"),
            },
            Ty::Rate(tokens) => self.rate(node, *tokens),
            Ty::Data | Ty::Any => self.any(node, matches!(ty, Ty::Data)),
            Ty::Word(words) => self.word(node, words),
            Ty::Type => self.ty(node),
            Ty::List(item) => match &node.value {
                Value::List(items) => items.iter().for_each(|node| self.value(node, item)),
                Value::Scalar(_) | Value::Map(_) => self.wrong(node, "a list"),
            },
            Ty::Map(of) => self.entries(node, of, false),
            Ty::Names(of) => self.entries(node, of, true),
            Ty::Table(table) => self.table(node, table()),
            Ty::Or(_) => match ty.chosen(node) {
                Some(ty) => self.value(node, ty),
                None => self.wrong(node, &list_of_words(&ty.alternatives())),
            },
        }
    }

    /// Checks the values of a map, and with `names` its keys.
    fn entries(&mut self, node: &Node, of: &'static Ty, names: bool) {
        let entries = match &node.value {
            Value::Map(entries) => entries,
            Value::List(items) if names && !items.is_empty() => {
                return self.list_of_named(node, items);
            }
            Value::List(_) | Value::Scalar(_) => return self.wrong(node, "a map"),
        };
        if let (Ty::Type, Some(properties)) = (of, json_schema(entries)) {
            let at = self.place(properties.span);
            let (_, advice) = foreign::key("Type", &properties.name).expect("a known key");
            let words = "a map of types";
            self.found.push(Diagnostic::foreign_key(
                at,
                &properties.name,
                words,
                None,
                advice,
            ));
            return;
        }
        for (key, value) in entries {
            if names && !is_name(&key.name) {
                let at = self.place(key.span);
                self.found.push(Diagnostic::malformed_name(at, &key.name));
            }
            self.value(value, of);
        }
    }

    /// Reports a list where each entry has its name as its key, as other frameworks write it.
    fn list_of_named(&mut self, node: &Node, items: &[Node]) {
        let at = self.place(head(node));
        let changes = at
            .as_ref()
            .and_then(|at| meant::as_entries(&at.text, items));
        let changes = changes
            .unwrap_or_default()
            .into_iter()
            .filter_map(|(range, with)| {
                Some((self.place(Span::new(node.span.file, range))?, with))
            });
        let named = items.iter().all(|item| item.get("name").is_some());
        let found = Diagnostic::list_of_named(at, named, changes.collect());
        self.found.push(found);
    }

    fn rate(&mut self, node: &Node, tokens: bool) {
        let Some(scalar) = node.scalar().filter(|scalar| scalar.kind == Kind::Text) else {
            return self.wrong(node, "a rate (`5/s`, `100/min`)");
        };
        let rate = Rate::parse(&scalar.text).filter(|rate| tokens || rate.tokens.is_none());
        if rate.is_none() {
            let at = self.place(node.span);
            let wanted = if tokens {
                "a rate (`5/s`, `100/min`, `100/min, 40000 tokens/min`; units `s`, `min`, `h`, `d`)"
            } else {
                "a rate of requests (`5/s`, `100/min`; units `s`, `min`, `h`, `d`)"
            };
            self.found
                .push(Diagnostic::malformed(at, &scalar.text, wanted));
        }
    }

    fn text(&mut self, node: &Node) {
        match node.scalar() {
            Some(scalar) if matches!(scalar.kind, Kind::Null | Kind::Bool(_)) => {
                self.wrong(node, "text");
            }
            Some(scalar) => self.traps(node, scalar),
            None => self.wrong(node, "text"),
        }
    }

    /// Warns of templates in a text that is told to models as it is.
    fn braces(&mut self, node: &Node) {
        let Some(scalar) = node.scalar() else {
            return;
        };
        for (range, inside) in in_braces(&scalar.text) {
            let at = self.place(self.sources.locate(node, range));
            self.found.push(Diagnostic::template_as_text(at, inside));
        }
    }

    /// Reports words that other YAML readers take for booleans, and texts that a `#` has cut off.
    fn traps(&mut self, node: &Node, scalar: &Scalar) {
        self.boolean_word(node, scalar);
        if foreign::is_key(&scalar.text) {
            let at = self.place(node.span);
            self.found.push(Diagnostic::key_written_out(at));
        }
        if scalar.style != Style::Plain {
            return;
        }
        let Some(comment) = self.sources.comment_behind(node.span) else {
            return;
        };
        let text = self.sources.text(comment).unwrap_or_default();
        let cut = text
            .chars()
            .nth(1)
            .is_some_and(|c| !c.is_whitespace() && c != '#');
        if cut {
            let (at, rest) = (self.place(node.span), self.place(comment));
            self.found.push(Diagnostic::cut(at, rest));
        }
    }

    fn boolean_word(&mut self, node: &Node, scalar: &Scalar) {
        let word = matches!(
            scalar.text.to_ascii_lowercase().as_str(),
            "yes" | "no" | "on" | "off"
        ) || matches!(&*scalar.text, "True" | "TRUE" | "False" | "FALSE");
        if word && scalar.style == Style::Plain {
            let at = self.place(node.span);
            self.found.push(Diagnostic::not_a_boolean(at, &scalar.text));
        }
    }

    fn any(&mut self, node: &Node, templates: bool) {
        match &node.value {
            Value::Scalar(scalar) if templates => self.traps(node, scalar),
            Value::Scalar(scalar) => self.boolean_word(node, scalar),
            Value::List(items) => items.iter().for_each(|node| self.any(node, templates)),
            Value::Map(entries) => entries
                .iter()
                .for_each(|(_, node)| self.any(node, templates)),
        }
    }

    fn word(&mut self, node: &Node, words: &'static [(&'static str, bool)]) {
        let names = || {
            words
                .iter()
                .filter(|(_, built)| *built)
                .map(|(word, _)| *word)
        };
        let Some(text) = node.as_text() else {
            return self.wrong(node, &format!("one of {}", list_of(names())));
        };
        match words.iter().find(|(word, _)| *word == &**text) {
            Some((_, true)) => {}
            Some((word, false)) => {
                let at = self.place(node.span);
                self.found
                    .push(Diagnostic::reserved(at, &format!("`{word}`")));
            }
            None => {
                let at = self.place(node.span);
                let near = foreign::word(text, names());
                let near = near.or_else(|| self.sources.near(text, names()));
                self.found
                    .push(Diagnostic::unknown_word(at, text, &list_of(names()), near));
            }
        }
    }

    fn ty(&mut self, node: &Node) {
        match &node.value {
            Value::Map(_) => {
                self.table(node, LongType::table());
                self.type_keys(LongType::read(node));
            }
            Value::List(items) => {
                if let [item] = items.as_slice() {
                    return self.ty(item);
                }
                let at = self.place(node.span);
                let text = format!("a list of {} types", items.len());
                let wanted = "a type: `[TYPE]` has one item";
                self.found.push(Diagnostic::malformed(at, &text, wanted));
            }
            Value::Scalar(scalar) => {
                let word = short_type(scalar).0;
                if ShortType::of(word).is_none() {
                    let known = || ShortType::WORDS.iter().map(|(word, _)| *word);
                    let at = self.place(node.span);
                    let foreign = foreign::short_type(&scalar.text);
                    let near = foreign.as_deref();
                    let near = near.or_else(|| self.sources.near(word, known()));
                    let words = list_of(known());
                    self.found
                        .push(Diagnostic::unknown_word(at, word, &words, near));
                }
            }
        }
    }

    /// Reports keys of the long form of a type that have no meaning for its kind.
    fn type_keys(&mut self, of: LongType<'_>) {
        let kind = if of.items().is_some() || of.ty().is_some_and(|ty| ty.scalar().is_none()) {
            "a list"
        } else if of.fields().is_some() {
            "an object"
        } else if of.words().is_some() {
            "an enumeration"
        } else if of.schema().is_some() {
            "a JSON Schema"
        } else {
            match of.ty().and_then(|ty| ty.0.scalar()).map(short_type) {
                Some((word, _)) => word,
                None if of.default().is_some() => return,
                None => "string",
            }
        };
        for (key, _) in of.0.entries() {
            let fits = match &*key.name {
                "minimum" | "maximum" => matches!(kind, "integer" | "number"),
                "pattern" => kind == "string",
                "ask" => kind == "secret",
                _ => true,
            };
            if !fits {
                let at = self.place(key.span);
                self.found
                    .push(Diagnostic::type_key(at, &key.name, &with_article(kind)));
            }
        }
    }
}

/// Returns a kind as messages name it: with an article, if it takes one.
pub(crate) fn with_article(kind: &str) -> String {
    match kind {
        "string" => "text".to_owned(),
        "any" => "any value".to_owned(),
        _ if kind.starts_with("a ") || kind.starts_with("an ") => kind.to_owned(),
        _ if kind.starts_with(['i', 'o']) => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

/// Returns the key `properties` of a JSON Schema that stands where a map from names to types belongs.
fn json_schema(entries: &[(Key, Node)]) -> Option<&Key> {
    let of = |name: &str| entries.iter().find(|(key, _)| &*key.name == name);
    let (_, ty) = of("type")?;
    let (key, properties) = of("properties")?;
    let object = ty.as_text().is_some_and(|text| &**text == "object");
    // `properties` may be the name of a parameter; then its value is a type
    let table = LongType::table();
    let is_type = |(key, _): &(Key, Node)| table.key(&key.name).is_some();
    let types = properties.entries();
    let maps = types
        .iter()
        .all(|(_, node)| matches!(node.value, Value::Map(_)));
    (object && maps && (!types.iter().all(is_type) || types.is_empty())).then_some(key)
}

/// Returns true if a key has no value at all, not even `null`. In `{ say: The best, please. }` the text ends at its comma,
/// and the rest is read as a key.
fn is_rest_of_a_text(value: &Node) -> bool {
    let nothing = value.span.start == value.span.end;
    nothing
        && value
            .scalar()
            .is_some_and(|scalar| scalar.kind == Kind::Null && scalar.style == Style::Plain)
}

/// Returns the span to point at for a whole value: its beginning.
fn head(node: &Node) -> Span {
    match &node.value {
        Value::Map(entries) => match entries.first() {
            Some((key, _)) if key.span.file == node.span.file => Span {
                start: node.span.start.min(key.span.start),
                end: key.span.end,
                ..node.span
            },
            _ => node.span,
        },
        Value::List(items) => match items.first() {
            Some(item) if node.span.contains(item.span) => Span {
                end: head(item).end.max(node.span.start),
                ..node.span
            },
            _ => node.span,
        },
        Value::Scalar(_) => node.span,
    }
}

fn list_of_words(kinds: &[&Ty]) -> String {
    let mut words: Vec<&str> = Vec::new();
    for kind in kinds {
        let word = match kind {
            Ty::Integer(_) => "a whole number",
            Ty::Number => "a number",
            Ty::Boolean => "`true` or `false`",
            Ty::Text | Ty::Template | Ty::Prompt => "text",
            Ty::Name => "a name",
            Ty::Path | Ty::Documents => "a path",
            Ty::Duration => "a duration",
            Ty::Size => "a size",
            Ty::Money => "an amount of money",
            Ty::Rate(_) => "a rate",
            Ty::Expr => "an expression",
            Ty::Word(_) => "a word",
            Ty::Type => "a type",
            Ty::List(_) => "a list",
            Ty::Map(_) | Ty::Names(_) => "a map",
            Ty::Table(table) => table().words,
            Ty::Data | Ty::Any => "a value",
            Ty::Or(_) => continue,
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" or ")
}

/// Maximum number of names that a message lists.
const LISTED: usize = 40;

/// Joins names in backticks with commas; a long list is cut off with a count.
pub(crate) fn list_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let shown = names.by_ref().take(LISTED);
    let mut shown: Vec<String> = shown.map(|name| format!("`{name}`")).collect();
    let more = names.count();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

/// Splits a short type into its name and a flag that is true if it is optional.
pub(crate) fn short_type(scalar: &Scalar) -> (&str, bool) {
    let text = scalar.text.trim();
    match text.strip_prefix("optional ") {
        Some(rest) => (rest.trim(), true),
        None => (text, false),
    }
}
