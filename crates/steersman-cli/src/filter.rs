//! `--where`: selects sessions. Terms are joined by `and` and `or`, each `NAME OP VALUE`; `and` binds closer, and brackets
//! group.
//!
//! Names are `status`, `network` (or `definition`), `digest`, `updated`, `created`, `age`, `cost`, `tokens`, `calls`,
//! `failed`, and `outcome.NAME` for a value of `outcome:`; in `pending` also `for`, `kind` and `tool`. Any other name is a label. A time is a date, or a span back from
//! now: `-7d`. An unknown name or value is refused and never selects all or none, because a filter may decide what is paid.

use crate::error::CommandError;
use jiff::Timestamp;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use steersman::runtime::rerun::{RERUN, RERUN_OF};

/// A parsed filter. Without a condition everything passes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filter(Option<Condition>);

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Any(Vec<Condition>),
    All(Vec<Condition>),
    Term(Term),
}

/// The beginning of a name that means a value of `outcome:`.
pub(crate) const OUTCOME: &str = "outcome.";

/// Maximum number of brackets within each other.
const DEEPEST: usize = 16;

#[derive(Clone, Debug, PartialEq)]
struct Term {
    name: String,
    op: Op,
    value: String,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Op {
    Is,
    IsNot,
    Less,
    LessOrIs,
    More,
    MoreOrIs,
}

const OPS: &[(&str, Op)] = &[
    ("!=", Op::IsNot),
    ("==", Op::Is),
    (">=", Op::MoreOrIs),
    ("<=", Op::LessOrIs),
    ("=", Op::Is),
    (">", Op::More),
    ("<", Op::Less),
];

/// The value of a name in one session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field {
    Text(String),
    /// Any of these texts; the first is used for ordering.
    Any(Vec<String>),
    Number(f64),
    /// Milliseconds since 1970.
    Time(i64),
    /// A span in milliseconds.
    Span(i64),
}

/// Names that are not labels.
const NAMES: &[&str] = &[
    "status",
    "network",
    "definition",
    "digest",
    "updated",
    "created",
    "age",
    "cost",
    "tokens",
    "calls",
    "failed",
    "for",
    "kind",
    "tool",
];

/// The statuses of sessions.
const STATUSES: &[&str] = &[
    "running",
    "interrupted",
    "answered",
    "waits",
    "doubt",
    "limit",
    "failed",
    "cancelled",
    "paused",
    "new",
];

/// The kinds of things that wait.
const KINDS: &[&str] = &[
    "approval", "input", "doubt", "budget", "repeat", "question", "event", "timer", "again",
    "hold", "outage",
];

impl Filter {
    /// Parses a filter. `None` gives a filter that everything passes.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, CommandError> {
        let Some(text) = text else {
            return Ok(Self::default());
        };
        Condition::parse(text, 0).map(|condition| Self(Some(condition)))
    }

    fn terms(&self) -> Vec<&Term> {
        let mut terms = Vec::new();
        if let Some(condition) = &self.0 {
            condition.terms(&mut terms);
        }
        terms
    }

    /// Refuses names that are neither built in nor a label of any session: a misspelt label would select nothing, or with
    /// `!=` everything.
    pub(crate) fn known_among<'a>(
        &self,
        labels: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), CommandError> {
        let labels: BTreeSet<&str> = labels.into_iter().collect();
        let mut names = self.terms().into_iter().map(|term| &*term.name);
        let known = |name: &str| NAMES.contains(&name) || name == RERUN_OF || name == RERUN;
        let unknown = names.find(|name| !known(name) && !labels.contains(name));
        let Some(unknown) = unknown else {
            return Ok(());
        };
        if let Some(outcome) = unknown.strip_prefix(OUTCOME) {
            let what = format!("no session has an outcome `{outcome}`");
            return Err(
                CommandError::usage(what).hint("`outcome:` of a definition names the values")
            );
        }
        let labels: Vec<&str> = labels
            .into_iter()
            .filter(|label| !label.starts_with(OUTCOME))
            .collect();
        let known = if labels.is_empty() {
            "no session has any label".to_owned()
        } else {
            format!("labels are {}", labels.join(", "))
        };
        let what = format!("no session has a label `{unknown}`");
        Err(CommandError::usage(what).hint(format!("names are {}; {known}", NAMES.join(", "))))
    }

    /// Returns the values that terms with this name have.
    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let terms = self
            .terms()
            .into_iter()
            .filter(move |term| term.name == name);
        terms.map(|term| &*term.value)
    }

    /// Returns true if a term uses this name.
    pub(crate) fn mentions(&self, name: &str) -> bool {
        self.terms().iter().any(|term| term.name == name)
    }

    /// Returns true if a term uses a label that only reruns have: then reruns are meant.
    pub(crate) fn names_reruns(&self) -> bool {
        self.mentions(RERUN_OF) || self.mentions(RERUN)
    }

    /// Returns true if the filter lets this session through. `field` returns the value of a name, or `None` if the session
    /// has no such label.
    pub(crate) fn holds(
        &self,
        now: i64,
        field: impl Fn(&str) -> Option<Field>,
    ) -> Result<bool, CommandError> {
        match &self.0 {
            Some(condition) => condition.holds(now, &field),
            None => Ok(true),
        }
    }
}

impl Condition {
    fn parse(text: &str, depth: usize) -> Result<Self, CommandError> {
        let any = parts(text, " or ").into_iter().map(|group| {
            let all = parts(group, " and ").into_iter();
            let all = all.map(|part| Self::part(part.trim(), depth));
            all.collect::<Result<_, _>>().map(Self::All)
        });
        any.collect::<Result<_, _>>().map(Self::Any)
    }

    /// Parses a term or a condition in brackets.
    fn part(text: &str, depth: usize) -> Result<Self, CommandError> {
        if !text.starts_with('(') {
            return Term::parse(text).map(Self::Term);
        }
        if depth == DEEPEST {
            let what = format!("brackets stand deeper than {DEEPEST} in each other");
            return Err(CommandError::usage(what));
        }
        match closing(text) {
            Some(end) if end + 1 == text.len() => Self::parse(&text[1..end], depth + 1),
            Some(_) => Err(CommandError::usage(format!(
                "`{text}`: `and` or `or` stands behind brackets"
            ))),
            None => Err(CommandError::usage(format!("`{text}` lacks a `)`"))),
        }
    }

    fn terms<'a>(&'a self, into: &mut Vec<&'a Term>) {
        match self {
            Self::Any(parts) | Self::All(parts) => parts.iter().for_each(|part| part.terms(into)),
            Self::Term(term) => into.push(term),
        }
    }

    /// Returns true if the condition holds. Every term is looked at, so that a value that fits no name is refused whatever the
    /// others say.
    fn holds(
        &self,
        now: i64,
        field: &impl Fn(&str) -> Option<Field>,
    ) -> Result<bool, CommandError> {
        match self {
            Self::Term(term) => term.holds(now, field(&term.name)),
            Self::Any(parts) => parts.iter().try_fold(false, |any, part| {
                part.holds(now, field).map(|holds| any | holds)
            }),
            Self::All(parts) => parts.iter().try_fold(true, |all, part| {
                part.holds(now, field).map(|holds| all & holds)
            }),
        }
    }
}

impl Term {
    fn parse(text: &str) -> Result<Self, CommandError> {
        let bad = || {
            CommandError::usage(format!("`{text}` is no condition")).hint(
                "NAME OP VALUE, joined by `and` or `or`: --where \"status = waits and updated > -7d\"",
            )
        };
        let at = text.find(['!', '=', '<', '>']).ok_or_else(bad)?;
        let (name, rest) = text.split_at(at);
        let (sign, op) = OPS
            .iter()
            .find(|(sign, _)| rest.starts_with(sign))
            .ok_or_else(bad)?;
        let value = rest[sign.len()..].trim().trim_matches(['"', '\'']);
        let name = name.trim();
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || !name.chars().all(plain) || value.is_empty() {
            return Err(bad());
        }
        let quoted = rest[sign.len()..].trim().starts_with(['"', '\'']);
        if !quoted && value.starts_with(['=', '<', '>', '!']) {
            return Err(bad());
        }
        let words: Vec<&str> = value.split_whitespace().collect();
        if !quoted
            && words
                .iter()
                .any(|word| matches!(*word, "or" | "and" | "not"))
        {
            let what = format!(
                "`{text}`: `not` has no meaning here, and `and` and `or` stand between conditions"
            );
            return Err(CommandError::usage(what).hint(
                "join conditions by `and` and `or`, grouped by brackets; put a value that contains such a word in quotes",
            ));
        }
        for (of, words) in [("status", STATUSES), ("kind", KINDS)] {
            let start = value.trim_end_matches('*');
            let meant = |word: &&str| *word == value || (start != value && word.starts_with(start));
            if name == of && !words.iter().any(meant) {
                let what = format!("`{value}` is not a {of}");
                return Err(CommandError::usage(what).hint(words.join(", ")));
            }
        }
        Ok(Self {
            name: name.to_owned(),
            op: *op,
            value: value.to_owned(),
        })
    }

    fn compare(&self, text: &str) -> Ordering {
        match self.value.strip_suffix('*') {
            Some(start) if text.starts_with(start) => Ordering::Equal,
            _ => text.cmp(&self.value),
        }
    }

    fn holds(&self, now: i64, field: Option<Field>) -> Result<bool, CommandError> {
        let Some(field) = field else {
            return Ok(self.op == Op::IsNot);
        };
        let order = match field {
            Field::Text(text) => self.compare(&text),
            Field::Any(all) => {
                let mut orders = all.iter().map(|text| self.compare(text));
                let first = orders.next().unwrap_or(Ordering::Less);
                orders.fold(first, |found, next| match next {
                    Ordering::Equal => next,
                    Ordering::Less | Ordering::Greater => found,
                })
            }
            Field::Number(number) => {
                let value: f64 = self.value.parse().map_err(|_| {
                    CommandError::usage(format!(
                        "`{}` is a number, and `{}` is not a number",
                        self.name, self.value
                    ))
                })?;
                number.total_cmp(&value)
            }
            Field::Time(time) => time.cmp(&moment(now, &self.value)?),
            Field::Span(span) => {
                let value = self.value.trim_start_matches('-');
                span.cmp(&now.saturating_sub(moment(now, &format!("-{value}"))?))
            }
        };
        Ok(match self.op {
            Op::Is => order.is_eq(),
            Op::IsNot => order.is_ne(),
            Op::Less => order.is_lt(),
            Op::LessOrIs => order.is_le(),
            Op::More => order.is_gt(),
            Op::MoreOrIs => order.is_ge(),
        })
    }
}

/// Splits the text at a word with its spaces, except within quotes and brackets.
fn parts<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let (mut parts, mut begin, mut quote, mut depth) = (Vec::new(), 0, None, 0_usize);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            (None, ' ') if depth == 0 && at >= begin && text[at..].starts_with(word) => {
                parts.push(&text[begin..at]);
                begin = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(&text[begin.min(text.len())..]);
    parts
}

/// Returns the place of the bracket that closes the first one.
fn closing(text: &str) -> Option<usize> {
    let (mut quote, mut depth) = (None, 0_usize);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, '(') => depth += 1,
            (None, ')') if depth == 1 => return Some(at),
            (None, ')') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Parses a time to milliseconds: a date, a date and time with zone, or a span back from now (`-7d`, `-30m`).
fn moment(now: i64, text: &str) -> Result<i64, CommandError> {
    let bad = || {
        CommandError::usage(format!("`{text}` is not a time")).hint(
            "a span back from now (-7d, -4h, -30m) or a date (2026-11-21, 2026-11-21T08:00:00Z)",
        )
    };
    if let Some(span) = text.strip_prefix('-') {
        let unit = span.chars().last().ok_or_else(bad)?;
        let count: i64 = span[..span.len() - unit.len_utf8()]
            .parse()
            .map_err(|_| bad())?;
        let millis = match unit {
            's' => 1_000,
            'm' => 60_000,
            'h' => 3_600_000,
            'd' => 86_400_000,
            _ => return Err(bad()),
        };
        return Ok(now.saturating_sub(count.saturating_mul(millis)));
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Ok(timestamp.as_millisecond());
    }
    text.parse::<jiff::civil::Date>()
        .and_then(|date| date.to_zoned(jiff::tz::TimeZone::system()))
        .map(|zoned| zoned.timestamp().as_millisecond())
        .map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> Option<Field> {
        Some(match name {
            "status" => Field::Text("waits".into()),
            "vendor" => Field::Text("Acme & Sons".into()),
            "cost" => Field::Number(0.3),
            "updated" => Field::Time(1_000_000_000_000),
            "age" => Field::Span(3_600_000),
            "definition" => Field::Any(vec!["desk".into(), "a1b2c3".into()]),
            _ => return None,
        })
    }

    #[test]
    fn terms_hold_or_not() {
        let now = 1_000_000_000_000 + 3_600_000;
        for (text, holds) in [
            ("status = waits", true),
            ("status != waits", false),
            ("status=waits and cost > 0.2", true),
            ("status == waits", true),
            ("definition == hotel", false),
            ("vendor != '=Acme'", true),
            ("status = waits and cost > 0.4", false),
            ("vendor = Acme*", true),
            ("vendor = \"Acme & Sons\"", true),
            ("colour = red", false),
            ("colour != red", true),
            ("updated > -2h", true),
            ("updated > -30m", false),
            ("updated >= 2001-01-01", true),
            ("status = wait*", true),
            ("age > 30m", true),
            ("definition = desk", true),
            ("definition = a1b2*", true),
            ("definition = d*", true),
            ("definition = dsek", false),
            ("definition != desk", false),
            ("definition != a1b2c3", false),
            ("definition != hotel", true),
            ("age > -2h", false),
            ("vendor != 'Bolt and Sons' and status = waits", true),
            ("vendor = Acme or vendor = 'Acme & Sons'", true),
            ("vendor = 'This or that' or status = failed", false),
            ("status = failed and cost > 0.2 or colour != red", true),
            ("colour != red and status = failed or cost > 0.4", false),
            ("status = waits or status = failed and cost > 0.4", true),
            ("(status = waits or status = failed) and cost > 0.4", false),
            ("(vendor = Acme or vendor = Acme*) and status = waits", true),
            (
                "cost > 0.2 and (colour = red or (age > 30m and status != failed))",
                true,
            ),
            ("(status != answered)", true),
            ("vendor != 'Acme (US)'", true),
            ("vendor != Acme (US) and cost > 0.2", true),
        ] {
            let filter = Filter::parse(Some(text)).unwrap();
            assert_eq!(filter.holds(now, field).unwrap(), holds, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "status",
            "= waits",
            "status = ",
            "status ~ x",
            "vendor => Acme",
            "vendor === Acme",
            "status = wating",
            "status != anwsered",
            "status = waits and",
            "(status != answered",
            "(status != answered))",
            "()",
            "(status = waits) (cost > 0.2)",
            "(colour = red) (colour = blue)",
            "vendor = Acme or ",
            "vendor = Acme or Bolt",
            "(vendor = Acme or Bolt) and status = waits",
            "not vendor = Acme",
            "kind = aproval",
        ] {
            assert!(Filter::parse(Some(text)).is_err(), "{text}");
        }
        for text in [
            "cost = much",
            "updated > soon",
            "updated > -7y",
            "updated > -",
        ] {
            let filter = Filter::parse(Some(text)).unwrap();
            assert!(filter.holds(0, field).is_err(), "{text}");
        }
    }
}
