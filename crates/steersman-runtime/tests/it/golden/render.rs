//! Renders stored values as text: the names and values of all fields that are set.
//!
//! A rendering does not depend on stored bytes, hashes or random numbers. Ids and lines are written as `Display` writes them,
//! times as milliseconds since the session began. Hashes and marks are numbered in the order in which they appear. Sealed
//! texts are opened, and long texts are cut.

use super::tree::Node;
use crate::world::NOON;
use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Id, Time, unhex};
use steersman_runtime::seal::{Sealer, sealed_in};

/// Texts of more bytes are cut, and a hash of the whole text follows.
const LONG: usize = 400;
/// Bytes that are shown of a long text.
const SHOWN: usize = 120;

/// Fields whose value is a hash or a random number, in addition to those that have the shape of a hash.
const NUMBERED: [&str; 2] = ["Claimed.mark", "SessionState.definition"];
/// Fields that are not rendered: random values, and the id of the process.
const LEFT_OUT: [&str; 2] = ["salt", "owner"];

/// Renders the values of one session. It keeps the numbers of the hashes that it has seen.
pub(super) struct Render {
    sealer: Sealer,
    /// Numbers of hashes and marks, by the field that holds them and the value.
    numbers: BTreeMap<(String, String), usize>,
    /// The last number given out for each field.
    counts: BTreeMap<String, usize>,
    /// Hashes that may name blobs, with their names in the rendering, in the order in which they appear.
    pub(super) contents: Vec<(String, [u8; 32])>,
}

impl Render {
    pub(super) fn new(sealer: Sealer) -> Self {
        Self {
            sealer,
            numbers: BTreeMap::new(),
            counts: BTreeMap::new(),
            contents: Vec::new(),
        }
    }

    /// Renders a value in one line.
    pub(super) fn value(&mut self, value: &impl Debug) -> String {
        self.node("", &Node::parse(&format!("{value:?}")))
    }

    /// Renders a line of the log. Each part of its commit, each ledger entry and each text is a row. `note` follows in the
    /// first row.
    pub(super) fn line(&mut self, line: &LogLine, note: &str) -> String {
        let (n, branch, prev) = (line.n, line.branch, line.prev);
        let mut out = format!("line {n} on {branch}, after {prev}{note}\n");
        if let Some(commit) = &line.commit {
            let node = Node::parse(&format!("{commit:?}"));
            let Node::Struct(_, fields) = node else {
                panic!("a commit has named fields: {node:?}")
            };
            for (key, field) in fields.iter().filter(|(_, field)| !field.is_unset()) {
                let items = match field {
                    Node::List(items) => &items[..],
                    one => std::slice::from_ref(one),
                };
                for item in items {
                    let item = self.node(key, item);
                    writeln!(out, "  {key}: {item}").unwrap();
                }
            }
        }
        for entry in &line.ledger {
            let entry = self.value(entry);
            writeln!(out, "  ledger: {entry}").unwrap();
        }
        for (k, text) in line.bodies.iter().enumerate() {
            let text = self.value(text);
            writeln!(out, "  text {k}: {text}").unwrap();
        }
        out
    }

    fn node(&mut self, key: &str, node: &Node) -> String {
        if let Some(bytes) = node.hash() {
            return self.hash(key, bytes);
        }
        match node {
            Node::Word(word) if NUMBERED.contains(&key) => self.number(key, word),
            Node::Text(text) if NUMBERED.contains(&key) => self.number(key, text),
            Node::Word(word) => match unhex(word).filter(|bytes| bytes.len() == 16) {
                Some(bytes) => self.hash(key, bytes),
                None => word.clone(),
            },
            Node::Text(text) => self.text(text),
            Node::Struct(name, fields) => {
                let shown = fields.iter().filter(|(field, value)| {
                    !value.is_unset() && !LEFT_OUT.contains(&field.as_str())
                });
                let shown = shown.map(|(field, value)| {
                    let value = self.node(&format!("{name}.{field}"), value);
                    format!("{field}: {value}")
                });
                let shown: Vec<String> = shown.collect();
                if shown.is_empty() {
                    return name.clone();
                }
                format!("{name} {{ {} }}", shown.join(", "))
            }
            Node::Tuple(name, parts) => self.tuple(key, name, parts),
            Node::List(list) => format!("[{}]", self.nodes(key, list)),
            Node::Map(map) => {
                let entries = map.iter().map(|(name, value)| {
                    let name = self.node(key, name);
                    format!("{name}: {}", self.node(key, value))
                });
                let entries: Vec<String> = entries.collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }

    fn nodes(&mut self, key: &str, nodes: &[Node]) -> String {
        let nodes: Vec<String> = nodes.iter().map(|node| self.node(key, node)).collect();
        nodes.join(", ")
    }

    fn tuple(&mut self, key: &str, name: &str, parts: &[Node]) -> String {
        match (name, parts) {
            ("Some" | "Line", [part]) => self.node(key, part),
            ("Id", [Node::Word(id)]) => {
                let id: u64 = id.parse().unwrap();
                let id: Id = serde_json::from_value(id.into()).unwrap();
                id.to_string()
            }
            ("Body", [part]) => format!("text {}", self.node(key, part)),
            ("Time", [Node::Word(millis)]) => shown(Time(millis.parse().unwrap())),
            _ => {
                let key = if key.is_empty() { name } else { key };
                format!("{name}({})", self.nodes(key, parts))
            }
        }
    }

    /// Renders a hash as its number.
    fn hash(&mut self, key: &str, bytes: Vec<u8>) -> String {
        let before = self.numbers.len();
        let number = self.number(key, &format!("{bytes:?}"));
        if let Ok(hash) = bytes.try_into()
            && key.rsplit('.').next() == Some("hash")
            && self.numbers.len() > before
        {
            self.contents.push((format!("{key} {number}"), hash));
        }
        number
    }

    /// Renders a value as its number among the values of the same field.
    fn number(&mut self, key: &str, value: &str) -> String {
        let new = (key.to_owned(), value.to_owned());
        let count = self.counts.entry(key.to_owned()).or_default();
        let number = *self.numbers.entry(new).or_insert_with(|| {
            *count += 1;
            *count
        });
        format!("#{number}")
    }

    /// Renders a text in quotes.
    pub(super) fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        let sealed: Vec<String> = sealed_in(&text).map(str::to_owned).collect();
        for sealed in sealed {
            let plain = self.sealer.open_text(&sealed).unwrap();
            text = text.replace(&sealed, &format!("sealed {}", &*plain));
        }
        let text = self.without_hashes(&text);
        if text.len() <= LONG {
            return format!("{text:?}");
        }
        let end = text.floor_char_boundary(SHOWN);
        let (len, hash) = (text.len(), short_hash(&text));
        format!("{:?}.. ({len} bytes, {hash})", &text[..end])
    }

    /// Replaces each word that consists of as many hexadecimal digits as a hash.
    fn without_hashes(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let is_part = |c: char| c.is_ascii_alphanumeric();
            let word = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (part, after) = rest.split_at(word);
            let is_hash = [16, 32, 64].contains(&part.len())
                && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
                && part.bytes().any(|b| b.is_ascii_lowercase());
            if is_hash {
                out.push_str(&self.number("text", part));
            } else {
                out.push_str(part);
            }
            let other = after.find(is_part).unwrap_or(after.len());
            out.push_str(&after[..other]);
            rest = &after[other..];
        }
        out
    }
}

/// Renders a time as milliseconds since the session began.
pub(super) fn shown(time: Time) -> String {
    match time.0.saturating_sub(NOON.0) {
        past @ ..0 => format!("t{past}"),
        later => format!("t+{later}"),
    }
}

/// Returns 16 hexadecimal digits of the hash of a text.
pub(super) fn short_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}
