//! Completion: what may be written at a place.

use super::outline::{Part, Spot, Step};
use super::typed::Typed;
use super::{
    Completion, Completions, Language, Sort, code_before, in_braces, outline, owner, typed,
};
use crate::keys::kinds::Words as _;
use crate::keys::{Refers, ShortType, Space, Ty};
use crate::schema;
use std::ops::Range;
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::values::expression;

/// Returns what may be written at an offset.
pub(super) fn complete(language: &Language, file: &str, text: &str, offset: usize) -> Completions {
    if !super::is_yaml(file) {
        let code = in_braces(text, 0..offset);
        return code.map_or_else(Completions::default, |code| {
            expression(language, file, &[], text, code, offset)
        });
    }
    let Some(spot) = outline::spot(text, offset) else {
        return Completions::default();
    };
    let typed = typed::at(&spot.path);
    if let Some(code) = code_before(&spot, &typed, text, offset) {
        return expression(language, file, &spot.path, text, code, offset);
    }
    let mut all = Vec::new();
    if spot.part == Part::Key {
        keys(&mut all, &spot, &typed, text);
        let named = typed.is_map().then_some(typed.refers).flatten();
        if let Some(Refers::Names(space)) = named {
            let colon = colon(text, &spot.range);
            names(&mut all, language, &spot, space, colon);
        }
    }
    values(&mut all, language, &spot, &typed);
    Completions {
        range: spot.range,
        all,
    }
}

/// Returns what is written behind a key that has no colon yet.
fn colon(text: &str, range: &Range<usize>) -> &'static str {
    let rest = text[range.end..].trim_start_matches(['"', '\'', ' ']);
    if rest.starts_with(':') { "" } else { ": " }
}

fn keys(all: &mut Vec<Completion>, spot: &Spot, typed: &Typed, text: &str) {
    for table in typed.tables() {
        for key in table.keys {
            if spot.siblings.iter().any(|known| known == key.name) {
                continue;
            }
            let inner = key.ty.alternatives();
            let block = inner
                .iter()
                .all(|ty| matches!(ty, Ty::Table(_) | Ty::Map(_) | Ty::Names(_) | Ty::List(_)));
            let colon = match colon(text, &spot.range) {
                ": " if block => ":",
                colon => colon,
            };
            all.push(Completion {
                label: key.name.to_owned(),
                sort: Sort::Key,
                detail: schema::words(&key.ty),
                doc: super::hover::about(table, key),
                text: format!("{}{colon}", key.name),
            });
        }
    }
}

fn values(all: &mut Vec<Completion>, language: &Language, spot: &Spot, typed: &Typed) {
    let doc = typed
        .key
        .map_or_else(String::new, |(_, key)| key.doc.to_owned());
    let mut word = |word: &str, detail: &str| {
        all.push(Completion {
            label: word.to_owned(),
            sort: Sort::Word,
            detail: detail.to_owned(),
            doc: doc.clone(),
            text: word.to_owned(),
        });
    };
    let in_map = spot.part == Part::Key && typed.is_map();
    for ty in typed.types.iter().filter(|_| !in_map) {
        match ty {
            Ty::Word(words) => {
                let built = words.iter().filter(|(_, built)| *built);
                built.for_each(|(text, _)| word(text, "word"));
            }
            Ty::Boolean => ["true", "false"]
                .iter()
                .for_each(|text| word(text, "boolean")),
            Ty::Type => ShortType::WORDS.iter().for_each(|(text, _)| {
                word(text, "type");
                word(&format!("optional {text}"), "type");
            }),
            _ => {}
        }
    }
    let Some(space) = typed.names().filter(|_| !in_map) else {
        return;
    };
    match space {
        Space::Offer => {
            let mut sets: Vec<&str> = BuiltIn::ALL.iter().filter_map(|tool| tool.set()).collect();
            sets.dedup();
            for set in sets {
                word(set, "built-in");
            }
        }
        Space::Person => word("user", "who talks to the session"),
        Space::Place | Space::Mode => word("finish", "the end"),
        _ => {}
    }
    names(all, language, spot, space, "");
}

fn names(all: &mut Vec<Completion>, language: &Language, spot: &Spot, space: Space, behind: &str) {
    for at in language.names.of_sort(space, owner(&spot.path)) {
        let name = &at.meaning.name;
        let before = match space {
            Space::StateValue => "state.",
            _ => "",
        };
        all.push(Completion {
            label: format!("{before}{name}"),
            sort: Sort::Name,
            detail: super::hover::sort_of(at).to_owned(),
            doc: super::hover::described(at),
            text: format!("{before}{name}{behind}"),
        });
    }
}

/// Completes the code that ends at an offset.
fn expression(
    language: &Language,
    file: &str,
    way: &[Step],
    text: &str,
    code: &str,
    offset: usize,
) -> Completions {
    if in_quotes(code) {
        return Completions::default();
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let before = code.trim_end_matches(is_word);
    let behind = text[offset..]
        .find(|c| !is_word(c))
        .unwrap_or(text.len() - offset);
    let range = offset - (code.len() - before.len())..offset + behind;
    let path_at = before.trim_end_matches(|c| is_word(c) || c == '.').len();
    let one = |label: &str, sort: Sort, detail: &str| Completion {
        label: label.to_owned(),
        sort,
        detail: detail.to_owned(),
        doc: String::new(),
        text: label.to_owned(),
    };
    let functions = |names: &[&str], what: &str| {
        let names = names.iter();
        let all = names.map(|name| one(name, Sort::Function, what)).collect();
        let range = range.clone();
        Completions { range, all }
    };
    let left = before.trim_end();
    if left.ends_with('|') {
        return functions(expression::filters(), "filter");
    }
    let last = left.rsplit(|c| !is_word(c)).next();
    if left.len() < before.len() && (last == Some("is") || left.ends_with("is not")) {
        return functions(expression::tests(), "test");
    }
    let path: Vec<&str> = match before.strip_suffix('.') {
        Some(_) => before[path_at..].trim_end_matches('.').split('.').collect(),
        None => Vec::new(),
    };
    let offered = language.offered(file, way, &path);
    let mut all: Vec<Completion> = offered
        .iter()
        .map(|name| one(&name.name, Sort::Variable, &name.is))
        .collect();
    if path.is_empty() {
        let words = ["true", "false", "none", "not"];
        all.extend(words.iter().map(|word| one(word, Sort::Word, "")));
    }
    Completions { range, all }
}

/// Returns true if a text in quotes is open at the end of a piece of code.
fn in_quotes(code: &str) -> bool {
    let mut open = None;
    for c in code.chars().filter(|c| matches!(c, '"' | '\'')) {
        match open {
            None => open = Some(c),
            Some(quote) if quote == c => open = None,
            Some(_) => {}
        }
    }
    open.is_some()
}
