//! Filters: select sessions by conditions. Terms are joined by `and` and `or`, each `NAME OP VALUE`; `and` binds closer, and
//! brackets group.
//!
//! Names are `status`, `network` (or `definition`), `digest`, `key`, `updated`, `created`, `age`, `cost`, `tokens`, `calls`,
//! `failed`, and `outcome.NAME` for a value of `outcome:`; in lists of questions also `for`, `kind` and `tool`. Any other name is
//! a label. A time is a date, or a span back from now: `-7d`. An unknown name or value is refused and never selects all or none,
//! because a filter may decide what is paid.

mod select;

pub use select::{Page, SelectError, are_known, label_names, page, passes, select, value};

use jiff::Timestamp;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use steersman_machine::stored::ids::{Name, Time};
use steersman_runtime::rerun::{RERUN, RERUN_OF};
use steersman_runtime::store::SessionQuery;

/// A parsed filter. Without a condition everything passes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter(Option<Condition>);

/// The fault of a filter: nothing was selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct FilterError {
    /// The fault: lower case, no full stop.
    pub what: String,
    /// Advice on what to write instead.
    pub help: Option<String>,
}

impl FilterError {
    fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            help: None,
        }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Any(Vec<Condition>),
    All(Vec<Condition>),
    Term(Term),
}

/// The beginning of a name that means a value of `outcome:`.
pub const OUTCOME: &str = "outcome.";

/// Maximum number of bytes of a filter: each term is looked at for each session.
const LONGEST: usize = 4_000;
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
pub enum Field {
    /// A text.
    Text(String),
    /// Any of these texts; the first is used for ordering.
    Any(Vec<String>),
    /// A number.
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
    "key",
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
pub const STATUSES: &[&str] = &[
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
    ///
    /// # Errors
    /// The text is no filter.
    pub fn parse(text: Option<&str>) -> Result<Self, FilterError> {
        let Some(text) = text else {
            return Ok(Self::default());
        };
        if text.len() > LONGEST {
            let what = format!("a filter has at most {LONGEST} bytes");
            return Err(FilterError::new(what));
        }
        Condition::parse(text, 0).map(|condition| Self(Some(condition)))
    }

    /// Returns true if everything passes.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn terms(&self) -> Vec<&Term> {
        let mut terms = Vec::new();
        if let Some(condition) = &self.0 {
            condition.terms(&mut terms);
        }
        terms
    }

    /// Returns the names that are not built in, so a session has to have them: labels, and names of outcomes.
    pub fn own_names(&self) -> BTreeSet<&str> {
        let known = |name: &str| NAMES.contains(&name) || name == RERUN_OF || name == RERUN;
        let names = self.terms().into_iter().map(|term| &*term.name);
        names.filter(|name| !known(name)).collect()
    }

    /// Refuses names that are neither built in nor a label of any session: a misspelt label would select nothing, or with
    /// `!=` everything.
    ///
    /// # Errors
    /// A name is not among the labels.
    pub fn known_among<'a>(
        &self,
        labels: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), FilterError> {
        let labels: BTreeSet<&str> = labels.into_iter().collect();
        let mut names = self.own_names().into_iter();
        let Some(unknown) = names.find(|name| !labels.contains(name)) else {
            return Ok(());
        };
        if let Some(outcome) = unknown.strip_prefix(OUTCOME) {
            let what = format!("no session has an outcome `{outcome}`");
            return Err(FilterError::new(what).help("`outcome:` of a definition names the values"));
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
        Err(FilterError::new(what).help(format!("names are {}; {known}", NAMES.join(", "))))
    }

    /// Adds to a query what every session that passes has, so that a store reads no others: status, network, key, a label, and
    /// the time of the last update. Conditions that the query has already stay as they are.
    ///
    /// # Errors
    /// A value is not a time.
    pub fn narrow(&self, now: Time, query: &mut SessionQuery) -> Result<(), FilterError> {
        let Some(condition) = &self.0 else {
            return Ok(());
        };
        let needs = condition.needs(now.0)?;
        if query.status.is_empty() {
            query.status = needs.status.into_iter().flatten().collect();
        }
        query.network = query.network.take().or(needs.network);
        query.key = query.key.take().or(needs.key);
        query.label = query.label.take().or(needs.label);
        query.since = query.since.max(needs.since.map(Time));
        Ok(())
    }

    /// Returns the values that terms with this name have.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let terms = self
            .terms()
            .into_iter()
            .filter(move |term| term.name == name);
        terms.map(|term| &*term.value)
    }

    /// Returns true if a term uses this name.
    pub fn mentions(&self, name: &str) -> bool {
        self.terms().iter().any(|term| term.name == name)
    }

    /// Returns true if a term uses a label that only reruns have: then reruns are meant.
    pub fn names_reruns(&self) -> bool {
        self.mentions(RERUN_OF) || self.mentions(RERUN)
    }

    /// Returns true if the filter lets this session through. `field` returns the value of a name, or `None` if the session
    /// has no such label.
    ///
    /// # Errors
    /// A value does not fit its name, such as a word where a number is expected.
    pub fn holds(
        &self,
        now: i64,
        field: impl Fn(&str) -> Option<Field>,
    ) -> Result<bool, FilterError> {
        match &self.0 {
            Some(condition) => condition.holds(now, &field),
            None => Ok(true),
        }
    }
}

/// Properties that every session has that passes a condition. `None` means anything.
#[derive(Clone, Debug, Default, PartialEq)]
struct Needs {
    /// Statuses as stores keep them.
    status: Option<BTreeSet<Name>>,
    network: Option<Name>,
    key: Option<Name>,
    label: Option<(Name, Arc<str>)>,
    since: Option<i64>,
}

impl Needs {
    /// Returns what a session has that has this and the other. It may keep less, never more.
    fn and(self, other: Self) -> Self {
        let status = match (self.status, other.status) {
            (Some(a), Some(b)) => {
                let both: BTreeSet<Name> = a.intersection(&b).cloned().collect();
                // No session has both: the filter itself finds that out.
                Some(if both.is_empty() { a } else { both })
            }
            (a, b) => a.or(b),
        };
        Self {
            status,
            network: self.network.or(other.network),
            key: self.key.or(other.key),
            label: self.label.or(other.label),
            since: self.since.max(other.since),
        }
    }

    /// Returns what a session has that has this or the other.
    fn or(self, other: Self) -> Self {
        let same = |a: Option<Name>, b: Option<Name>| a.filter(|a| b.as_ref() == Some(a));
        Self {
            status: self.status.zip(other.status).map(|(mut a, b)| {
                a.extend(b);
                a
            }),
            network: same(self.network, other.network),
            key: same(self.key, other.key),
            label: self
                .label
                .filter(|label| other.label.as_ref() == Some(label)),
            since: self.since.zip(other.since).map(|(a, b)| a.min(b)),
        }
    }
}

impl Condition {
    fn needs(&self, now: i64) -> Result<Needs, FilterError> {
        Ok(match self {
            Self::Term(term) => term.needs(now)?,
            Self::All(parts) => {
                let mut all = Needs::default();
                for part in parts {
                    all = all.and(part.needs(now)?);
                }
                all
            }
            Self::Any(parts) => {
                let mut any: Option<Needs> = None;
                for part in parts {
                    let needs = part.needs(now)?;
                    any = Some(match any {
                        Some(any) => any.or(needs),
                        None => needs,
                    });
                }
                any.unwrap_or_default()
            }
        })
    }

    fn parse(text: &str, depth: usize) -> Result<Self, FilterError> {
        let any = parts(text, " or ").into_iter().map(|group| {
            let all = parts(group, " and ").into_iter();
            let all = all.map(|part| Self::part(part.trim(), depth));
            all.collect::<Result<_, _>>().map(Self::All)
        });
        any.collect::<Result<_, _>>().map(Self::Any)
    }

    /// Parses a term or a condition in brackets.
    fn part(text: &str, depth: usize) -> Result<Self, FilterError> {
        if !text.starts_with('(') {
            return Term::parse(text).map(Self::Term);
        }
        if depth == DEEPEST {
            let what = format!("brackets stand deeper than {DEEPEST} in each other");
            return Err(FilterError::new(what));
        }
        match closing(text) {
            Some(end) if end + 1 == text.len() => Self::parse(&text[1..end], depth + 1),
            Some(_) => Err(FilterError::new(format!(
                "`{text}`: `and` or `or` stands behind brackets"
            ))),
            None => Err(FilterError::new(format!("`{text}` lacks a `)`"))),
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
    fn holds(&self, now: i64, field: &impl Fn(&str) -> Option<Field>) -> Result<bool, FilterError> {
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
    fn parse(text: &str) -> Result<Self, FilterError> {
        let bad = || {
            FilterError::new(format!("`{text}` is no condition"))
                .help("NAME OP VALUE, joined by `and` or `or`: status = waits and updated > -7d")
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
            return Err(FilterError::new(what).help(
                "join conditions by `and` and `or`, grouped by brackets; put a value that contains such a word in quotes",
            ));
        }
        for (of, words) in [("status", STATUSES), ("kind", KINDS)] {
            let start = value.trim_end_matches('*');
            let meant = |word: &&str| *word == value || (start != value && word.starts_with(start));
            if name == of && !words.iter().any(meant) {
                let what = format!("`{value}` is not a {of}");
                return Err(FilterError::new(what).help(words.join(", ")));
            }
        }
        Ok(Self {
            name: name.to_owned(),
            op: *op,
            value: value.to_owned(),
        })
    }

    /// Returns what every session has for which the term holds.
    fn needs(&self, now: i64) -> Result<Needs, FilterError> {
        let mut needs = Needs::default();
        let is_pattern = self.value.ends_with('*');
        match (&*self.name, self.op) {
            ("status", Op::Is) => {
                let meant = STATUSES
                    .iter()
                    .filter(|status| self.compare(status).is_eq());
                needs.status = Some(meant.map(|status| stored(status).into()).collect());
            }
            // Only sessions that failed have a code.
            ("failed", Op::Is) => needs.status = Some(BTreeSet::from(["failed".into()])),
            ("network", Op::Is) if !is_pattern => needs.network = Some((&*self.value).into()),
            ("key", Op::Is) if !is_pattern => needs.key = Some((&*self.value).into()),
            ("updated", Op::Is | Op::More | Op::MoreOrIs) => {
                needs.since = Some(moment(now, &self.value)?);
            }
            (name, Op::Is)
                if !is_pattern && !NAMES.contains(&name) && !name.starts_with(OUTCOME) =>
            {
                needs.label = Some((name.into(), (&*self.value).into()));
            }
            _ => {}
        }
        Ok(needs)
    }

    fn compare(&self, text: &str) -> Ordering {
        match self.value.strip_suffix('*') {
            Some(start) if text.starts_with(start) => Ordering::Equal,
            _ => text.cmp(&self.value),
        }
    }

    fn holds(&self, now: i64, field: Option<Field>) -> Result<bool, FilterError> {
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
                    FilterError::new(format!(
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

/// Returns a status as stores keep it: the list tells a session that nobody drives from one that runs.
fn stored(status: &str) -> &str {
    match status {
        "interrupted" => "running",
        "new" => "",
        status => status,
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
fn moment(now: i64, text: &str) -> Result<i64, FilterError> {
    let bad = || {
        FilterError::new(format!("`{text}` is not a time")).help(
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

    /// The conditions of a query that a filter adds, as text.
    fn narrowed(text: &str) -> String {
        let mut query = SessionQuery::default();
        let filter = Filter::parse(Some(text)).unwrap();
        filter.narrow(Time(1_000_000), &mut query).unwrap();
        let mut told: Vec<String> = Vec::new();
        if !query.status.is_empty() {
            let all: Vec<&str> = query.status.iter().map(|status| &**status).collect();
            told.push(format!("status {}", all.join("|")));
        }
        told.extend(query.network.map(|network| format!("network {network}")));
        told.extend(query.key.map(|key| format!("key {key}")));
        told.extend(query.label.map(|(name, value)| format!("{name}:{value}")));
        told.extend(query.since.map(|since| format!("since {}", since.0)));
        told.join(", ")
    }

    #[test]
    fn a_store_is_asked_only_for_what_may_pass() {
        for (text, query) in [
            ("status = waits and cost > 1", "status waits"),
            ("status = interrupted or status = new", "status |running"),
            ("status = a*", "status answered"),
            ("status != waits", ""),
            ("status = waits or cost > 1", ""),
            ("status = waits and status = doubt", "status waits"),
            ("failed = provider_*", "status failed"),
            ("network = desk and key = 4711", "network desk, key 4711"),
            ("network = desk or network = bank", ""),
            ("network = d*", ""),
            ("definition = desk", ""),
            ("vendor = 'Acme & Sons'", "vendor:Acme & Sons"),
            ("vendor != Acme", ""),
            ("outcome.paid = true", ""),
            ("updated > -10s", "since 990000"),
            ("updated > -10s and updated > -20s", "since 990000"),
            ("updated > -10s or updated > -20s", "since 980000"),
            ("updated < -10s", ""),
            (
                "(status = waits and vendor = Acme) or (status = doubt and vendor = Acme)",
                "status doubt|waits, vendor:Acme",
            ),
        ] {
            assert_eq!(narrowed(text), query, "{text}");
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
