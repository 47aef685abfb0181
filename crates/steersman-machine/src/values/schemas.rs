//! JSON Schemas and patterns from outside: bounds on their size, checked before anything is validated with them.
//!
//! A small schema can cause endless work, because a validator applies a whole schema for each reference to it. So this module
//! follows each reference once and counts the schemas as if all references were replaced by the schemas that they name. A
//! schema with too many of them is refused, and so is one that applies itself to the same value again. The check runs where a
//! schema enters: in `check`, and in the tool list of an MCP server. The validator has a limit of its own for the validation
//! itself.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum size, in bytes, of a schema.
pub const BYTES: usize = 128 << 10;
/// Maximum number of schemas within one schema, counted with all references written out.
pub(crate) const EXPANDED: u64 = 10_000;
/// Longest path through nested schemas and the references between them.
pub const DEPTH: u32 = 200;
/// Longest path of schemas that each apply the next one to the same value: references, `allOf` and similar keywords.
pub(crate) const ROW: u32 = 32;
/// Maximum number of distinct patterns of a schema.
pub(crate) const PATTERNS: usize = 64;
/// Maximum size, in bytes, of a pattern.
pub(crate) const PATTERN: usize = 1_000;
/// Maximum size, in bytes, of a compiled pattern, and of the cache for matching it.
pub const COMPILED: usize = 512 << 10;

/// The places of all schemas within a schema that respects the bounds. Each place is a JSON Pointer; the first is that of the
/// schema itself.
#[derive(Clone, Debug)]
pub struct Bounded {
    places: Vec<String>,
}

impl Bounded {
    /// Checks a schema against the bounds.
    ///
    /// # Errors
    /// The reason why the schema cannot be used, and the remedy; a text for people.
    pub fn of(schema: &Json) -> Result<Self, String> {
        let bytes = crate::stored::bounds::size(schema);
        if bytes > BYTES {
            return Err(format!("it has {bytes} bytes, at most {BYTES} are taken"));
        }
        let graph = Graph::of(schema)?;
        graph.patterns(schema)?;
        graph.measure()?;
        Ok(Self {
            places: graph.places,
        })
    }

    /// Returns the places of all schemas within it, itself included.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.places.iter().map(String::as_str)
    }
}

/// Compiles a pattern that must match a whole text.
///
/// # Errors
/// The reason why the pattern cannot be used; a text for people.
pub fn pattern(pattern: &str) -> Result<Regex, String> {
    // Compile the pattern alone first. A pattern like `a)|(b` is invalid, but the group around it would make it valid.
    not_long(pattern)?;
    let compiled = match compile(pattern)? {
        Ok(_) => compile(&format!("^(?:{pattern})$"))?,
        wrong => wrong,
    };
    compiled.map_err(|error| {
        let told = error.to_string();
        let last = told.lines().last().unwrap_or_default();
        last.trim_start_matches("error: ").to_owned()
    })
}

fn not_long(pattern: &str) -> Result<(), String> {
    let bytes = pattern.len();
    if bytes > PATTERN {
        return Err(format!("it has {bytes} bytes, at most {PATTERN} are taken"));
    }
    Ok(())
}

/// Compiles a pattern. The outer error says that it is too large, the inner one that it is not a pattern.
fn compile(pattern: &str) -> Result<Result<Regex, regex::Error>, String> {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(COMPILED).dfa_size_limit(COMPILED);
    match builder.build() {
        Err(regex::Error::CompiledTooBig(_)) => {
            Err("its compiled form is too large: repeat fewer or smaller parts".to_owned())
        }
        compiled => Ok(compiled),
    }
}

/// Kind of the value of a keyword.
#[derive(Copy, Clone)]
enum Holds {
    /// A schema, or a list of schemas.
    Schemas,
    /// An object of schemas by name.
    Named,
}

/// The keywords that hold schemas. The flag is true if the schemas apply to the same value, and false if they apply to a part
/// of it.
const KEYWORDS: [(&str, Holds, bool); 22] = [
    ("allOf", Holds::Schemas, true),
    ("anyOf", Holds::Schemas, true),
    ("oneOf", Holds::Schemas, true),
    ("not", Holds::Schemas, true),
    ("if", Holds::Schemas, true),
    ("then", Holds::Schemas, true),
    ("else", Holds::Schemas, true),
    ("dependentSchemas", Holds::Named, true),
    ("dependencies", Holds::Named, true),
    ("properties", Holds::Named, false),
    ("patternProperties", Holds::Named, false),
    ("additionalProperties", Holds::Schemas, false),
    ("unevaluatedProperties", Holds::Schemas, false),
    ("propertyNames", Holds::Schemas, false),
    ("items", Holds::Schemas, false),
    ("prefixItems", Holds::Schemas, false),
    ("additionalItems", Holds::Schemas, false),
    ("unevaluatedItems", Holds::Schemas, false),
    ("contains", Holds::Schemas, false),
    ("contentSchema", Holds::Schemas, false),
    ("$defs", Holds::Named, false),
    ("definitions", Holds::Named, false),
];

/// The keywords of references.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The schemas within a schema, and the edges between them.
struct Graph {
    places: Vec<String>,
    /// For each schema the schemas that it applies. The flag is true if they apply to the same value.
    edges: Vec<Vec<(usize, bool)>>,
    /// Schemas that apply each of their edges twice, because of an `unevaluated..` keyword.
    twice: BTreeSet<usize>,
}

/// Collects the schemas within a schema.
struct Finder<'a> {
    known: BTreeMap<String, usize>,
    found: Vec<(String, &'a Json)>,
}

impl<'a> Finder<'a> {
    fn at(&mut self, place: String, schema: &'a Json) -> usize {
        if let Some(known) = self.known.get(&place) {
            return *known;
        }
        self.known.insert(place.clone(), self.found.len());
        self.found.push((place, schema));
        self.found.len() - 1
    }

    /// Adds the schemas under one keyword and returns their indexes.
    fn under(&mut self, place: &str, holds: Holds, value: &'a Json) -> Vec<usize> {
        let is_schema = |value: &Json| value.is_object() || value.is_boolean();
        let within: Vec<(String, &'a Json)> = match (holds, value) {
            (Holds::Schemas, Json::Array(list)) => {
                let list = list.iter().enumerate();
                list.map(|(n, schema)| (n.to_string(), schema)).collect()
            }
            (Holds::Schemas, schema) if is_schema(schema) => {
                return vec![self.at(place.to_owned(), schema)];
            }
            (Holds::Named, Json::Object(map)) => {
                let map = map.iter();
                map.map(|(name, schema)| (escaped(name), schema)).collect()
            }
            _ => return Vec::new(),
        };
        let within = within.into_iter().filter(|(_, schema)| is_schema(schema));
        within
            .map(|(step, schema)| self.at(format!("{place}/{step}"), schema))
            .collect()
    }
}

impl Graph {
    fn of(root: &Json) -> Result<Self, String> {
        let mut finder = Finder {
            known: BTreeMap::new(),
            found: Vec::new(),
        };
        finder.at(String::new(), root);
        let anchors = anchors(root);
        let mut edges: Vec<Vec<(usize, bool)>> = Vec::new();
        let mut twice = BTreeSet::new();
        // The loop adds schemas to `found` and visits them later.
        while let Some((place, schema)) = finder.found.get(edges.len()).cloned() {
            let mut to = Vec::new();
            for (word, value) in schema.as_object().into_iter().flatten() {
                let at = format!("{place}/{}", escaped(word));
                let known = KEYWORDS.iter().find(|(known, ..)| known == word);
                if let Some((_, holds, same)) = known {
                    let under = finder.under(&at, *holds, value);
                    let defines = matches!(&**word, "$defs" | "definitions");
                    if !defines {
                        to.extend(under.into_iter().map(|to| (to, *same)));
                    }
                }
                if word.starts_with("unevaluated") {
                    twice.insert(edges.len());
                }
                if word == "$id" && !place.is_empty() && !is_anchor(value) {
                    return Err(format!(
                        "`{at}`: a schema within another has an `$id` of its own; leave it out, and refer by `#/..`"
                    ));
                }
                if let (true, Some(name)) = (REFERENCES.contains(&&**word), value.as_str()) {
                    let (place, schema) =
                        referred(root, &anchors, name).ok_or_else(|| no_reference(&at, name))?;
                    to.push((finder.at(place, schema), true));
                }
            }
            edges.push(to);
        }
        Ok(Self {
            places: finder.found.into_iter().map(|(place, _)| place).collect(),
            edges,
            twice,
        })
    }

    /// Checks that there are not too many patterns and that none is too large. Invalid patterns pass: schemas have their own
    /// dialect of patterns, so the validator decides.
    fn patterns(&self, root: &Json) -> Result<(), String> {
        let mut all: BTreeSet<&str> = BTreeSet::new();
        for place in &self.places {
            let schema = root.pointer(place).and_then(Json::as_object);
            let of = |word: &str| schema.and_then(|schema| schema.get(word));
            let named = of("patternProperties").and_then(Json::as_object);
            let named = named.into_iter().flat_map(Map::keys).map(String::as_str);
            let own = of("pattern").and_then(Json::as_str);
            for text in named.chain(own) {
                if !all.insert(text) {
                    continue;
                }
                if let Err(why) = not_long(text).and_then(|()| compile(text)) {
                    let text = crate::stored::bounds::cut(text, 60);
                    return Err(format!(
                        "`{}`: the pattern `{text}` cannot be used: {why}",
                        shown(place)
                    ));
                }
            }
            if all.len() > PATTERNS {
                return Err(format!("it has more than {PATTERNS} patterns"));
            }
        }
        Ok(())
    }

    /// Checks the number of schemas with references written out, and the lengths of paths.
    fn measure(&self) -> Result<(), String> {
        let same = self.measured(true)?;
        let all = self.measured(false)?;
        // The validator also prepares each schema once, even if nothing refers to it.
        let total = all[0].all.saturating_add(all.len() as u64);
        if all.iter().any(|size| size.depth > DEPTH) {
            return Err(too_deep());
        }
        if total > EXPANDED {
            return Err(format!(
                "with its references written out it has more than {EXPANDED} schemas; refer to fewer, or to smaller ones"
            ));
        }
        if let Some(at) = same.iter().position(|size| size.depth > ROW) {
            return Err(format!(
                "at `{}` more than {ROW} schemas judge one value, each by the next",
                shown(&self.places[at])
            ));
        }
        Ok(())
    }

    /// Measures each schema together with all schemas that it applies, directly or through others. With `same`, only edges to
    /// schemas for the same value count, and a cycle of them is an error. Otherwise an edge back into the current path is not
    /// counted.
    fn measured(&self, same: bool) -> Result<Vec<Size>, String> {
        let mut measured: Vec<Option<Size>> = vec![None; self.places.len()];
        for first in 0..self.places.len() {
            if measured[first].is_none() {
                self.measure_from(first, same, &mut measured)?;
            }
        }
        Ok(measured.into_iter().flatten().collect())
    }

    fn measure_from(
        &self,
        first: usize,
        same: bool,
        measured: &mut [Option<Size>],
    ) -> Result<(), String> {
        // Index of the schema, number of its edges that were followed, and its size so far.
        let mut stack = vec![(first, 0, Size::ONE)];
        let mut open = BTreeSet::from([first]);
        while let Some((at, next, size)) = stack.last_mut() {
            let Some((to, judges_same)) = self.edges[*at].get(*next).copied() else {
                let (at, size) = (*at, *size);
                measured[at] = Some(size);
                open.remove(&at);
                stack.pop();
                if let Some((from, _, all)) = stack.last_mut() {
                    all.add(size, self.twice.contains(from));
                }
                continue;
            };
            *next += 1;
            if same && !judges_same {
                continue;
            }
            if let Some(known) = measured[to] {
                size.add(known, self.twice.contains(at));
            } else if open.insert(to) {
                if stack.len() >= DEPTH as usize {
                    return Err(too_deep());
                }
                stack.push((to, 0, Size::ONE));
            } else if same {
                return Err(format!(
                    "`{}` leads back to itself without looking at a part of the value",
                    shown(&self.places[to])
                ));
            }
        }
        Ok(())
    }
}

/// Size of a schema with all schemas that it applies.
#[derive(Copy, Clone, Debug)]
struct Size {
    /// Number of schemas, with references written out.
    all: u64,
    /// Length of the longest path.
    depth: u32,
}

impl Size {
    const ONE: Self = Self { all: 1, depth: 1 };

    fn add(&mut self, other: Self, twice: bool) {
        let times = if twice { 2 } else { 1 };
        self.all = self.all.saturating_add(other.all.saturating_mul(times));
        self.depth = self.depth.max(other.depth.saturating_add(1));
    }
}

fn too_deep() -> String {
    format!("it leads more than {DEPTH} schemas deep")
}

fn no_reference(at: &str, name: &str) -> String {
    let name = crate::stored::bounds::cut(name, 120);
    format!("`{at}` refers to `{name}`, which is not in the schema; nothing is fetched")
}

fn is_anchor(id: &Json) -> bool {
    id.as_str().is_some_and(|id| id.starts_with('#'))
}

fn escaped(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

fn shown(place: &str) -> &str {
    if place.is_empty() { "#" } else { place }
}

/// Returns the named schemas (anchors) within a schema, with their places.
fn anchors(root: &Json) -> BTreeMap<&str, (String, &Json)> {
    let mut anchors = BTreeMap::new();
    let mut open: Vec<(String, &Json)> = vec![(String::new(), root)];
    while let Some((place, value)) = open.pop() {
        match value {
            Json::Object(map) => {
                for word in ["$anchor", "$dynamicAnchor", "$id", "id"] {
                    let name = map.get(word).and_then(Json::as_str);
                    let name = match word {
                        "$id" | "id" => name.and_then(|name| name.strip_prefix('#')),
                        _ => name,
                    };
                    if let Some(name) = name.filter(|name| !name.is_empty()) {
                        anchors.entry(name).or_insert((place.clone(), value));
                    }
                }
                let map = map.iter();
                open.extend(map.map(|(key, v)| (format!("{place}/{}", escaped(key)), v)));
            }
            Json::Array(list) => {
                let list = list.iter().enumerate();
                open.extend(list.map(|(n, v)| (format!("{place}/{n}"), v)));
            }
            _ => {}
        }
    }
    anchors
}

/// Returns the schema within `root` that a reference refers to, and its place.
fn referred<'a>(
    root: &'a Json,
    anchors: &BTreeMap<&str, (String, &'a Json)>,
    name: &str,
) -> Option<(String, &'a Json)> {
    let own = root.get("$id").and_then(Json::as_str).unwrap_or_default();
    let own = own.trim_end_matches('#');
    let within = name.strip_prefix(own).unwrap_or(name);
    let within = match within.strip_prefix('#') {
        Some(within) => within,
        // The reference is the `$id` of the whole schema.
        None if within.is_empty() => "",
        None => return None,
    };
    let within = decoded(within)?;
    if within.is_empty() || within.starts_with('/') {
        let schema = root.pointer(&within)?;
        return (schema.is_object() || schema.is_boolean()).then_some((within, schema));
    }
    anchors.get(&*within).cloned()
}

/// Decodes the `%` escapes of a URL fragment. `None` means that an escape or the result is invalid.
fn decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%' {
            let hex = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{BYTES, Bounded, DEPTH, PATTERN, PATTERNS, ROW, pattern};
    use serde_json::{Map, Value as Json, json};

    fn why(schema: &Json) -> String {
        Bounded::of(schema).map_or_else(|why| why, |_| "it is taken".to_owned())
    }

    /// The message has the exact size: rounded to KiB, a size just above the bound would look like the bound.
    #[test]
    fn a_size_is_told_in_bytes() {
        let empty = json!({ "description": "" }).to_string().len();
        let of = |bytes: usize| json!({ "description": "x".repeat(bytes - empty) });
        assert_eq!(why(&of(BYTES)), "it is taken");
        let told = "it has 131073 bytes, at most 131072 are taken";
        assert_eq!(why(&of(BYTES + 1)), told);
    }

    /// Returns a schema of `n` definitions. Each of them refers to the next one twice.
    fn doubled(n: usize, word: &str) -> Json {
        let mut defs = Map::new();
        for k in 0..n {
            let next = json!({ "$ref": format!("#/$defs/d{}", k + 1) });
            let both = if word == "properties" {
                json!({ "a": next, "b": next })
            } else {
                json!([next, next])
            };
            defs.insert(format!("d{k}"), json!({ word: both }));
        }
        defs.insert(format!("d{n}"), json!({ "type": "string" }));
        json!({ "$defs": defs, "$ref": "#/$defs/d0" })
    }

    #[test]
    fn references_are_counted_as_if_they_were_written_out() {
        for word in ["allOf", "anyOf", "oneOf", "properties"] {
            assert_eq!(why(&doubled(8, word)), "it is taken", "{word}");
            let told = why(&doubled(28, word));
            assert!(
                told.starts_with("with its references written out it has more than 10000"),
                "{word}: {told}"
            );
        }
    }

    #[test]
    fn a_schema_may_apply_itself_only_to_a_part_of_the_value() {
        let tree = json!({ "type": "object", "properties": { "below": { "type": "array", "items": { "$ref": "#" } } } });
        assert_eq!(why(&tree), "it is taken");
        for cycle in [
            json!({ "$ref": "#" }),
            json!({ "allOf": [{ "$ref": "#" }] }),
            json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "not": { "$ref": "#/$defs/a" } } }, "$ref": "#/$defs/a" }),
            json!({ "$dynamicAnchor": "a", "anyOf": [{ "$dynamicRef": "#a" }] }),
        ] {
            assert!(why(&cycle).contains("leads back to itself"), "{cycle}");
        }
    }

    #[test]
    fn depth_rows_and_patterns_are_bounded() {
        let nested = |n: usize, word: &str| {
            (0..n).fold(
                json!({ "type": "string" }),
                |within, _| json!({ word: within }),
            )
        };
        assert_eq!(why(&nested(60, "items")), "it is taken");
        assert!(why(&nested(DEPTH as usize, "items")).contains("schemas deep"));
        assert!(why(&nested(ROW as usize, "not")).contains("judge one value"));
        let many: Map<String, Json> = (0..=PATTERNS)
            .map(|k| (format!("p{k}"), json!({ "pattern": format!("^{k}$") })))
            .collect();
        assert!(why(&json!({ "properties": many })).contains("more than 64 patterns"));
        let long = "x".repeat(PATTERN + 1);
        for wrong in [long.as_str(), r"\p{L}{1000}", r"[a-z]{1000}{1000}"] {
            let told = why(&json!({ "pattern": wrong }));
            assert!(told.contains("cannot be used"), "{told}");
        }
        for wrong in ["a)|(b", "(", "(?=a)b"] {
            assert!(pattern(wrong).is_err(), "{wrong}");
        }
        assert!(pattern("[a-z]{1,40}").is_ok_and(|p| p.is_match("abc") && !p.is_match("abc1")));
        assert!(why(&json!({ "description": "x".repeat(200 << 10) })).contains("204818 bytes"));
    }

    #[test]
    fn references_stay_within() {
        let of = |reference: &str| json!({ "$id": "https://example.invalid/s.json", "$defs": { "a/b": { "$anchor": "x" } }, "$ref": reference });
        for known in [
            "#/$defs/a~1b",
            "#/%24defs/a~1b",
            "#x",
            "https://example.invalid/s.json#x",
        ] {
            assert_eq!(why(&of(known)), "it is taken", "{known}");
        }
        for unknown in ["#/$defs/c", "#y", "other.json", "file:///etc/passwd"] {
            assert!(
                why(&of(unknown)).contains("nothing is fetched"),
                "{unknown}"
            );
        }
        // A schema under an unknown keyword is checked if a reference leads to it.
        let odd = json!({ "x-more": { "s": { "items": { "$ref": "#/x-more/s" } } }, "$ref": "#/x-more/s" });
        let places = Bounded::of(&odd).unwrap();
        assert!(places.places().any(|place| place == "/x-more/s/items"));
    }
}
