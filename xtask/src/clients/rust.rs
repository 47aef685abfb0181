//! The generated module of the client in Rust.

use super::{
    Answer, Api, Field, Form, HEAD, IF_NONE_MATCH, KEY, Named, Operation, Type, about, pascal,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Words of the language.
const WORDS: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "do", "dyn", "else", "enum",
    "extern", "final", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move",
    "mut", "priv", "pub", "ref", "return", "static", "struct", "super", "trait", "try", "type",
    "unsafe", "use", "virtual", "where", "while", "yield",
];

/// Returns the module.
///
/// # Errors
/// rustfmt could not be run, or refuses the module.
pub(super) fn file(api: &Api) -> Result<String, String> {
    let mut out = format!(
        "//! {HEAD}\n\nuse crate::call::{{Call, Given, Transport}};\nuse crate::error::Error;\nuse crate::frames::Frames;\n\
        use serde::{{Deserialize, Serialize}};\nuse serde_json::{{Map, Value}};\n\n"
    );
    for (name, named) in &api.types {
        declare(&mut out, api, name, named);
    }
    answers(&mut out, api.tags.values().flatten());
    for (tag, operations) in &api.tags {
        for operation in operations {
            question(&mut out, tag, operation);
        }
        let _ = write!(
            out,
            "/// {}\n#[derive(Clone, Debug)]\npub struct {}Api<'c> {{ pub(crate) transport: &'c Transport }}\n\nimpl {}Api<'_> {{\n",
            about(tag),
            pascal(tag),
            pascal(tag)
        );
        for operation in operations {
            method(&mut out, tag, operation);
        }
        out += "}\n\n";
    }
    out += "impl crate::Client {\n";
    for tag in api.tags.keys() {
        let _ = write!(
            out,
            "/// Returns the operations of `{tag}`.\npub fn {}(&self) -> {}Api<'_> {{ {}Api {{ transport: &self.transport }} }}\n\n",
            word(tag),
            pascal(tag),
            pascal(tag)
        );
    }
    out += "}\n";
    formatted(&out)
}

/// Returns the module as rustfmt writes it.
fn formatted(text: &str) -> Result<String, String> {
    let failed = |why: String| format!("rustfmt could not format the client in Rust: {why}");
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout", "--quiet"])
        .current_dir(crate::tidy::root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| failed(e.to_string()))?;
    let mut input = child.stdin.take().expect("its input is a pipe");
    let text = text.to_owned();
    // Written while the answer is read, so that neither pipe fills while the other is full.
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let out = child
        .wait_with_output()
        .map_err(|e| failed(e.to_string()))?;
    let written = writer.join();
    if !out.status.success() || !matches!(written, Ok(Ok(()))) {
        return Err(failed(format!("it ended with {}", out.status)));
    }
    String::from_utf8(out.stdout).map_err(|e| failed(e.to_string()))
}

fn word(name: &str) -> String {
    let name = name.replace(['-', '.'], "_").to_lowercase();
    // The language has `as` and `type`; what they mean in bodies has a name of its own.
    match &*name {
        "as" => "role".to_owned(),
        "for" => "roles".to_owned(),
        "type" => "kind".to_owned(),
        _ if WORDS.contains(&&*name) => format!("{name}_"),
        _ => name,
    }
}

fn doc(text: &str, name: &str) -> String {
    if text.is_empty() {
        return format!("/// The value of `{name}`.\n");
    }
    let lines = text
        .lines()
        .map(|line| format!("/// {line}\n").replace("/// \n", "///\n"));
    lines.collect()
}

fn declare(out: &mut String, api: &Api, name: &str, named: &Named) {
    out.push_str(&doc(&named.doc, name));
    let is_answer = api.answered.contains(name) || name == "Problem";
    match &named.form {
        Form::Words(words) => {
            out.push_str("#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]\n");
            if is_answer {
                out.push_str("#[non_exhaustive]\n");
            }
            let _ = writeln!(out, "pub enum {name} {{");
            for word in words {
                let _ = write!(
                    out,
                    "/// `{word}`.\n#[serde(rename = {word:?})]\n{},\n",
                    pascal(word)
                );
            }
            if is_answer {
                out.push_str("/// A word that a newer server knows.\n#[serde(other)]\nUnknown,\n");
            }
            out.push_str("}\n\n");
        }
        Form::Is(kind) => {
            let _ = writeln!(out, "pub type {name} = {};\n", kind.rust());
        }
        Form::Fields(fields) => {
            let can_default = fields.iter().all(|field| has_default(api, field));
            let default = if can_default { "Default, " } else { "" };
            let _ = writeln!(
                out,
                "#[derive(Clone, Debug, {default}PartialEq, Serialize, Deserialize)]\npub struct {name} {{"
            );
            for field in fields {
                member(out, field);
            }
            out.push_str("}\n\n");
        }
    }
}

/// Returns true if a field may be left out, or its type has a value that stands for nothing: words have none.
fn has_default(api: &Api, field: &Field) -> bool {
    let named = match &field.kind {
        Type::Named(name) => api.types.get(name).map(|named| &named.form),
        _ => None,
    };
    match named {
        _ if !field.is_required => true,
        Some(Form::Words(_)) => false,
        Some(Form::Fields(fields)) => fields.iter().all(|field| has_default(api, field)),
        Some(Form::Is(_)) | None => true,
    }
}

fn member(out: &mut String, field: &Field) {
    let name = word(&field.name);
    out.push_str(&doc(&field.doc, &field.name));
    if name != field.name {
        let _ = writeln!(out, "#[serde(rename = {:?})]", field.name);
    }
    let kind = field.kind.rust();
    if field.is_required {
        let _ = writeln!(out, "pub {name}: {kind},");
    } else {
        let _ = writeln!(
            out,
            "#[serde(default, skip_serializing_if = \"Option::is_none\")]\npub {name}: Option<{kind}>,"
        );
    }
}

/// Declares the type of the query of an operation.
fn question(out: &mut String, tag: &str, operation: &Operation) {
    if operation.query.is_empty() {
        return;
    }
    let name = query(tag, operation);
    let can_default = operation.query.iter().all(|field| !field.is_required);
    let default = if can_default { "Default, " } else { "" };
    let _ = writeln!(
        out,
        "/// The conditions of `{}` of [`{}Api`].\n#[derive(Clone, Debug, {default}PartialEq, Serialize)]\npub struct {name} {{",
        word(&operation.name),
        pascal(tag)
    );
    for field in &operation.query {
        member(out, field);
    }
    out.push_str("}\n\n");
}

fn query(tag: &str, operation: &Operation) -> String {
    format!("{}{}Query", pascal(tag), pascal(&operation.name))
}

/// Returns the name of the type of an answer that is one of several types, and these. `None` if there is one only, or one without a name.
fn several(operation: &Operation) -> Option<(String, Vec<&str>)> {
    let Answer::Json(kinds) = &operation.answer else {
        return None;
    };
    let named = kinds.iter().map(|kind| match kind {
        Type::Named(name) => Some(&**name),
        _ => None,
    });
    let named: Vec<&str> = named.collect::<Option<_>>()?;
    (named.len() > 1).then(|| (named.join("Or"), named))
}

/// Declares the types of answers that are one of several types.
fn answers<'a>(out: &mut String, operations: impl Iterator<Item = &'a Operation>) {
    let all: BTreeMap<String, Vec<&str>> = operations.filter_map(several).collect();
    for (name, kinds) in all {
        // The types have fields of their own, so the first one that fits is the one that is meant.
        let _ = writeln!(
            out,
            "/// An answer that is one of several types.\n#[derive(Clone, Debug, PartialEq, Deserialize)]\n#[serde(untagged)]\npub enum {name} {{"
        );
        for kind in kinds {
            let _ = write!(out, "/// A [`{kind}`].\n{kind}(Box<{kind}>),\n");
        }
        out.push_str("}\n\n");
    }
}

fn method(out: &mut String, tag: &str, operation: &Operation) {
    let mut arguments = vec!["&self".to_owned()];
    let mut told = doc(&operation.doc.join("\n\n"), &operation.name);
    let mut path = String::new();
    for place in &operation.places {
        let kind = match place.kind {
            Type::Text => "&str".to_owned(),
            ref other => other.rust(),
        };
        arguments.push(format!("{}: {kind}", word(&place.name)));
    }
    for (text, is_parameter) in operation.pieces() {
        let _ = if is_parameter {
            write!(path, ".part(&{})", word(text))
        } else {
            write!(path, ".text({text:?})")
        };
    }
    let mut call = String::new();
    if let Some(body) = &operation.body {
        arguments.push(format!("body: &{body}"));
        call += ".body(body)?";
    }
    if !operation.query.is_empty() {
        arguments.push(format!("query: &{}", query(tag, operation)));
        call += ".query(query)";
    }
    if !operation.headers.is_empty() {
        arguments.push("given: &Given".to_owned());
        call += ".given(given)";
    }
    if operation.has(KEY) {
        call += ".takes_key()";
    }
    let (kind, end) = match &operation.answer {
        Answer::Nothing => ("()".to_owned(), "nothing"),
        Answer::Bytes => ("Vec<u8>".to_owned(), "bytes"),
        Answer::Events => ("Frames".to_owned(), "open"),
        Answer::Json(kinds) => {
            let mut kind = match &kinds[..] {
                [only] => only.rust(),
                _ => several(operation).map_or_else(|| "Value".to_owned(), |(name, _)| name),
            };
            if operation.has(IF_NONE_MATCH) {
                kind = format!("Option<{kind}>");
            }
            let end = if operation.has(IF_NONE_MATCH) {
                "changed"
            } else {
                "json"
            };
            (kind, end)
        }
    };
    told += "///\n/// # Errors\n/// As [`Error`] says.\n";
    let method = operation.verb[..1].to_owned() + &operation.verb[1..].to_lowercase();
    let _ = write!(
        out,
        "{told}pub async fn {}({}) -> Result<{kind}, Error> {{\nlet call = Call::new(reqwest::Method::{}){path}{call};\nself.transport.{end}(call).await\n}}\n\n",
        word(&operation.name),
        arguments.join(", "),
        method.to_uppercase()
    );
}

impl Type {
    fn rust(&self) -> String {
        match self {
            Self::Any => "Value".to_owned(),
            Self::Text => "String".to_owned(),
            Self::Whole => "u64".to_owned(),
            Self::Number => "f64".to_owned(),
            Self::Truth => "bool".to_owned(),
            Self::Map(of) if **of == Self::Any => "Map<String, Value>".to_owned(),
            Self::Map(of) => format!("std::collections::BTreeMap<String, {}>", of.rust()),
            Self::List(of) => format!("Vec<{}>", of.rust()),
            Self::Named(name) => name.clone(),
        }
    }
}
