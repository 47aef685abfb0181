//! Finds the probable meaning of a text in the form of another language: operators in an expression, a list of named entries.

use super::keys::is_name;
use super::source::{Key, Node};
use std::collections::BTreeSet;
use std::ops::Range;
use steersman_machine::values::expression::{Expr, Template};

/// The probable meaning of a text that is not an expression.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Meant {
    /// The first operator of another language.
    pub at: Range<usize>,
    /// Text for people that says how it is written here.
    pub advice: String,
    /// Changes of the text that make it an expression, in order and apart; empty if none are known.
    pub changes: Vec<(Range<usize>, String)>,
}

/// Root names that authors write in front of a path.
pub(crate) const ROOTS: [&str; 8] = [
    "args", "calls", "config", "error", "event", "result", "secrets", "state",
];

const TERNARY: &str = "write `A if CONDITION else B` for `CONDITION ? A : B`";

/// Operators of other languages, longer ones first, and what stands for them here.
const OPERATORS: [(&str, &str); 4] = [("&&", "and"), ("||", "or"), ("===", "=="), ("!==", "!=")];

/// Returns what was meant by a text that is not an expression, if it has an operator of another language.
pub(crate) fn expression(text: &str) -> Option<Meant> {
    let mut meant = within(text, 0..text.len(), true)?;
    if Expr::parse(&applied(text, &meant.changes)).is_err() {
        meant.changes.clear();
    }
    Some(meant)
}

/// Returns what was meant by a text that is not a template, if it is one without the operators of another language.
pub(crate) fn template(text: &str) -> Option<Meant> {
    let mut all: Option<Meant> = None;
    let mut at = 0;
    while let Some(open) = text[at..].find(['{']).map(|k| at + k) {
        let close = match text.as_bytes().get(open + 1) {
            Some(b'{') => "}}",
            Some(b'%') => "%}",
            _ => {
                at = open + 1;
                continue;
            }
        };
        let Some(end) = text[open + 2..].find(close).map(|k| open + 2 + k) else {
            break;
        };
        if let Some(found) = within(text, open + 2..end, close == "}}") {
            let all = all.get_or_insert(Meant {
                changes: Vec::new(),
                ..found
            });
            all.changes.extend(found.changes);
        }
        at = end + 2;
    }
    all.filter(|meant| {
        !meant.changes.is_empty() && Template::parse(&applied(text, &meant.changes)).is_ok()
    })
}

/// Returns the text after changes that are in order and apart.
pub(crate) fn applied(text: &str, changes: &[(Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut at = 0;
    for (range, with) in changes {
        out.push_str(&text[at..range.start]);
        out.push_str(with);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Finds foreign operators within a range of a text. `choice`: a choice between two values may be the whole of it.
fn within(text: &str, range: Range<usize>, choice: bool) -> Option<Meant> {
    let marks = marks(text, range.clone());
    let questions = marks.iter().filter(|mark| mark.is("?"));
    if let Some(question) = questions.clone().find(|mark| mark.depth == 0) {
        let mut colons = marks.iter().filter(|mark| mark.is(":") && mark.depth == 0);
        let colon = colons.find(|mark| mark.at.start > question.at.start)?;
        let parts = [
            range.start..question.at.start,
            question.at.end..colon.at.start,
            colon.at.end..range.end,
        ];
        let [condition, then, otherwise] = parts.map(|part| {
            let changes = operators(text, &marks, part.clone());
            let changes: Vec<_> = changes
                .into_iter()
                .map(|(at, with)| (at.start - part.start..at.end - part.start, with))
                .collect();
            applied(&text[part], &changes).trim().to_owned()
        });
        let inner = text[range.clone()].trim();
        let start = range.start + (text[range.clone()].len() - text[range].trim_start().len());
        let whole = (
            start..start + inner.len(),
            format!("{then} if {condition} else {otherwise}"),
        );
        // which choice a second one belongs to is for its writer to say
        let only = choice && questions.count() == 1;
        return Some(Meant {
            at: question.at.clone(),
            advice: TERNARY.to_owned(),
            changes: if only { vec![whole] } else { Vec::new() },
        });
    }
    let first = marks.iter().find(|mark| !mark.is(":"))?;
    let advice = match first.text {
        "!" => "write `not x` for `!x`".to_owned(),
        "?" => TERNARY.to_owned(),
        sign => {
            let own = OPERATORS.iter().find(|(foreign, _)| *foreign == sign);
            format!("write `{}` for `{sign}`", own.map_or(sign, |(_, own)| own))
        }
    };
    Some(Meant {
        at: first.at.clone(),
        advice,
        changes: operators(text, &marks, range),
    })
}

/// A sign in an expression that another language has.
struct Mark<'a> {
    text: &'a str,
    at: Range<usize>,
    /// Number of open brackets around it.
    depth: usize,
}

impl Mark<'_> {
    fn is(&self, text: &str) -> bool {
        self.text == text
    }
}

/// Returns the signs of other languages within a range, outside texts in quotes; also each `:`.
fn marks(text: &str, range: Range<usize>) -> Vec<Mark<'_>> {
    let mut marks = Vec::new();
    let (mut at, mut depth) = (range.start, 0_usize);
    while at < range.end {
        let rest = &text[at..range.end];
        let here = rest.chars().next().expect("before the end");
        let sign = OPERATORS.iter().map(|(foreign, _)| *foreign);
        let sign = sign.chain(["!=", "!", "?", ":"]);
        let sign = sign.into_iter().find(|sign| rest.starts_with(sign));
        let len = match (here, sign) {
            ('"' | '\'', _) => quoted(rest),
            (_, Some(sign)) => {
                if sign != "!=" {
                    let at = at..at + sign.len();
                    marks.push(Mark {
                        text: &text[at.clone()],
                        at,
                        depth,
                    });
                }
                sign.len()
            }
            ('(' | '[' | '{', _) => {
                depth += 1;
                1
            }
            (')' | ']' | '}', _) => {
                depth = depth.saturating_sub(1);
                1
            }
            _ => here.len_utf8(),
        };
        at += len;
    }
    marks
}

/// Returns the length of the text in quotes that `rest` begins with, or of all if it does not end.
fn quoted(rest: &str) -> usize {
    let mut chars = rest.char_indices();
    let quote = chars.next().map(|(_, quote)| quote);
    let mut escaped = false;
    for (at, c) in chars {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if Some(c) == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the changes that replace the operators within a part by those of this language.
fn operators(text: &str, marks: &[Mark<'_>], part: Range<usize>) -> Vec<(Range<usize>, String)> {
    let mut changes = Vec::new();
    let inside = |mark: &&Mark<'_>| part.start <= mark.at.start && mark.at.end <= part.end;
    for mark in marks.iter().filter(inside) {
        if mark.is("!") {
            let operand = mark.at.end..mark.at.end + operand(&text[mark.at.end..part.end]);
            let before = text[part.start..mark.at.start].trim_end();
            let behind = text[operand.end..part.end].trim_start();
            let words = ["in ", "is ", "| "];
            // `not` is weaker than a comparison, `!` of other languages is stronger
            let weaker = before.ends_with(|c| "=<>+-*/%~".contains(c))
                || behind.starts_with(|c| "=<>+-*/%~".contains(c))
                || behind.starts_with("!=")
                || words.iter().any(|word| behind.starts_with(word));
            let gap = text[mark.at.end..].len() - text[mark.at.end..].trim_start().len();
            let sign = mark.at.start..mark.at.end + gap;
            if weaker {
                changes.push((sign, "(not ".to_owned()));
                changes.push((operand.end..operand.end, ")".to_owned()));
            } else {
                changes.push((sign, "not ".to_owned()));
            }
        } else if let Some((_, own)) = OPERATORS.iter().find(|(foreign, _)| mark.is(foreign)) {
            let spaced = |at: Option<char>| at.is_none_or(char::is_whitespace);
            let before = if spaced(text[..mark.at.start].chars().next_back()) {
                ""
            } else {
                " "
            };
            let behind = if spaced(text[mark.at.end..].chars().next()) {
                ""
            } else {
                " "
            };
            changes.push((mark.at.clone(), format!("{before}{own}{behind}")));
        }
    }
    changes.sort_by_key(|(at, _)| at.start);
    changes
}

/// Returns the length of the operand that `rest` begins with: a path, a call, or what stands in brackets.
fn operand(rest: &str) -> usize {
    let mut at = rest.len() - rest.trim_start().len();
    let mut depth = 0_usize;
    while let Some(c) = rest[at..].chars().next() {
        let len = match c {
            '"' | '\'' => quoted(&rest[at..]),
            '(' | '[' | '{' => {
                depth += 1;
                1
            }
            ')' | ']' | '}' if depth > 0 => {
                depth -= 1;
                1
            }
            '!' if depth == 0 && !rest[at..].starts_with("!=") => 1,
            _ if depth > 0 || c.is_alphanumeric() || matches!(c, '_' | '.') => c.len_utf8(),
            _ => break,
        };
        at += len;
    }
    at
}

/// Returns the changes that make a map of a list whose entries have the key `name` each: the name becomes the key. `None` if the
/// text has a form in which that is more than moving the name.
pub(crate) fn as_entries(text: &str, items: &[Node]) -> Option<Vec<(Range<usize>, String)>> {
    let mut names = BTreeSet::new();
    let mut changes = Vec::new();
    // the entries have to be further in than the key of the list
    let list = items.first()?.span.range().start;
    let line = text[..list].rfind('\n').map_or(0, |at| at + 1);
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let outer = text[..line]
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())?;
    if indent(outer) >= indent(&text[line..]) {
        return None;
    }
    for item in items {
        let (key, name) = item
            .entries()
            .iter()
            .find(|(key, _)| &*key.name == "name")?;
        let written = name.as_text().filter(|name| is_name(name))?;
        if !names.insert(written.clone()) {
            return None;
        }
        changes.extend(as_entry(text, item, (key, name), written)?);
    }
    Some(changes)
}

/// Returns the changes for one entry of the list.
fn as_entry(
    text: &str,
    item: &Node,
    (key, name): (&Key, &Node),
    written: &str,
) -> Option<Vec<(Range<usize>, String)>> {
    let start = item.span.range().start;
    let before = text[..start].trim_end_matches(' ');
    let dash = before.strip_suffix('-')?.len();
    let line = text[..dash].rfind('\n').map_or(0, |at| at + 1);
    let others: Vec<_> = item
        .entries()
        .iter()
        .filter(|(other, _)| other.span != key.span)
        .collect();
    let (key, name) = (key.span.range(), name.span.range());
    if others.is_empty() {
        return Some(vec![(
            dash..item.span.range().end,
            format!("{written}: {{}}"),
        )]);
    }
    if text[start..].starts_with('{') {
        let next = others
            .iter()
            .find(|(other, _)| other.span.range().start > key.start);
        let last = others
            .iter()
            .rfind(|(other, _)| other.span.range().start < key.start);
        let gone = match (next, last) {
            (Some((next, _)), _) => key.start..next.span.range().start,
            (None, last) => last?.1.span.range().end..name.end,
        };
        return Some(vec![
            (dash..start, format!("{written}: ")),
            (gone, String::new()),
        ]);
    }
    if key.start == start {
        return Some(vec![(dash..name.end, format!("{written}:"))]);
    }
    let own = text[..key.start].rfind('\n')? + 1;
    let next = text[name.end..]
        .find('\n')
        .map_or(text.len(), |at| name.end + at + 1);
    let own_line = text[own..key.start].trim().is_empty();
    let indent = " ".repeat(start - line);
    own_line.then(|| {
        let head = (dash..start, format!("{written}:\n{indent}"));
        vec![head, (own..next, String::new())]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_of_other_languages_have_their_own_here() {
        let rows = [
            ("a && b", "a and b"),
            ("a&&b||c", "a and b or c"),
            ("!a", "not a"),
            ("! a && !(b || c)", "not a and not (b or c)"),
            ("!a == b", "(not a) == b"),
            ("a == !b.c", "a == (not b.c)"),
            ("!!a", "not not a"),
            ("!a != b", "(not a) != b"),
            ("a === 'x && y'", "a == 'x && y'"),
            ("a !== b", "a != b"),
            ("a ? b : c", "b if a else c"),
            ("a && !b ? 'x' : c || d", "'x' if a and not b else c or d"),
            ("a == 'it\\'s' && b", "a == 'it\\'s' and b"),
        ];
        for (foreign, own) in rows {
            let meant = expression(foreign).expect(foreign);
            assert_eq!(applied(foreign, &meant.changes), own, "{foreign}");
        }
        // no change where it is open what is meant
        for open in ["a ? b : c ? d : e", "f(a ? b : c)", "a && ", "a ? b : "] {
            assert_eq!(expression(open).expect(open).changes, [], "{open}");
        }
        for none in ["a +", "a != ", "'a && b", "{ a: b"] {
            assert_eq!(expression(none), None, "{none}");
        }
    }

    #[test]
    fn in_templates_all_that_is_code_is_changed_together() {
        let rows = [
            (
                "A && B {{ a && b }} {% if !a || b %}x{% endif %}",
                "A && B {{ a and b }} {% if not a or b %}x{% endif %}",
            ),
            ("{{ a ? 'x' : 'y' }}", "{{ 'x' if a else 'y' }}"),
        ];
        for (foreign, own) in rows {
            let meant = template(foreign).expect(foreign);
            assert_eq!(applied(foreign, &meant.changes), own);
        }
        assert_eq!(template("{{ a && }}"), None);
        assert_eq!(template("{% if a ? b : c %}{% endif %}"), None);
    }
}
