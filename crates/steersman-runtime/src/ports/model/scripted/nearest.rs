//! Near matches and differences, for the failure messages of tests.

use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Maximum number of words of a text that are shown.
const SHOWN: usize = 12;
/// Maximum number of differences that are shown.
const ROWS: usize = 6;

/// Returns the first words of a text, on one line.
pub fn short(text: &str) -> String {
    let mut words = text.split_whitespace();
    let begin: Vec<&str> = words.by_ref().take(SHOWN).collect();
    let more = if words.next().is_some() { " ..." } else { "" };
    let cut: String = begin.join(" ").chars().take(120).collect();
    format!("{cut}{more}")
}

/// Returns the edit distance of two names, in characters.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Returns the differences between two values, one row each: objects by key, texts from the first word that differs.
pub fn differs(there: &Json, here: &Json) -> Vec<String> {
    let mut rows = Vec::new();
    walk("", there, here, &mut rows);
    if rows.len() > ROWS {
        let more = rows.len() - ROWS;
        rows.truncate(ROWS);
        rows.push(format!("and {more} more"));
    }
    rows
}

fn walk(at: &str, there: &Json, here: &Json, rows: &mut Vec<String>) {
    if there == here {
        return;
    }
    let named = if at.is_empty() { "it" } else { at };
    let within = |key: &str| match at {
        "" => key.to_owned(),
        at => format!("{at}.{key}"),
    };
    match (there, here) {
        (Json::Object(a), Json::Object(b)) => {
            // Sorted, so that the order does not depend on the map type.
            let sorted = a.iter().collect::<BTreeMap<_, _>>();
            for (key, value) in sorted {
                match b.get(key) {
                    Some(other) => walk(&within(key), value, other, rows),
                    None => rows.push(format!(
                        "{}: {} there, absent here",
                        within(key),
                        one(value)
                    )),
                }
            }
            let added = b.iter().filter(|(key, _)| !a.contains_key(*key));
            for (key, value) in added.collect::<BTreeMap<_, _>>() {
                rows.push(format!(
                    "{}: absent there, {} here",
                    within(key),
                    one(value)
                ));
            }
        }
        (Json::String(there), Json::String(here)) => {
            rows.push(format!("{named}: {}", first_other_word(there, here)));
        }
        _ => rows.push(format!("{named}: {} there, {} here", one(there), one(here))),
    }
}

fn first_other_word(there: &str, here: &str) -> String {
    let (mut there, mut here) = (there.split_whitespace(), here.split_whitespace());
    let mut number = 1;
    loop {
        match (there.next(), here.next()) {
            (Some(was), Some(is)) if was == is => number += 1,
            (None, None) => return "only blanks differ".to_owned(),
            (was, is) => {
                let (was, is) = (was.unwrap_or("its end"), is.unwrap_or("its end"));
                return format!("word {number} is `{was}` there, `{is}` here");
            }
        }
    }
}

fn one(value: &Json) -> String {
    short(&value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_differ_key_by_key_and_texts_from_a_word_on() {
        let there = json!({ "to": "a b c", "cents": 5, "old": true, "in": { "x": [1] } });
        let here = json!({ "to": "a b d", "cents": 7, "new": 1, "in": { "x": [2] } });
        assert_eq!(
            differs(&there, &here),
            [
                "cents: 5 there, 7 here",
                "in.x: [1] there, [2] here",
                "old: true there, absent here",
                "to: word 3 is `c` there, `d` here",
                "new: absent there, 1 here",
            ]
        );
        assert_eq!(differs(&there, &there), [""; 0]);
        let more = json!({ "a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "h": 1 });
        assert_eq!(differs(&more, &json!({})).last().unwrap(), "and 2 more");
    }

    #[test]
    fn names_are_as_far_apart_as_characters_change() {
        assert_eq!(distance("clerk", "clerk"), 0);
        assert_eq!(distance("clark", "clerk"), 1);
        assert_eq!(distance("", "clerk"), 5);
    }
}
