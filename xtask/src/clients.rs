//! `cargo xtask clients`: writes the generated parts of the clients in Python, TypeScript and Rust from the OpenAPI document.
//!
//! The operations of a tag become the methods of one class, under the names that the document gives them. The protocols of others
//! (OpenAI, AG-UI, A2A, MCP) are left out: they have clients of their own.

mod python;
mod rust;
mod typescript;

use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The document from which the clients are made.
const DOCUMENT: &str = "docs/reference/openapi.json";

/// The head of each generated file.
const HEAD: &str = "Made by `cargo xtask clients` from docs/reference/openapi.json. Do not edit.";

/// Writes the generated files if `write` is true; otherwise returns an error that names those that differ.
pub(crate) fn check(root: &Path, write: bool) -> Result<(), String> {
    let text = fs::read_to_string(root.join(DOCUMENT)).map_err(|e| format!("{DOCUMENT}: {e}"))?;
    let document: Json = serde_json::from_str(&text).map_err(|e| format!("{DOCUMENT}: {e}"))?;
    let api = Api::read(&document)?;
    let asyncio = "clients/python/src/steersman_client/_async.py";
    let asyncio = fs::read_to_string(root.join(asyncio)).map_err(|e| format!("{asyncio}: {e}"))?;
    let files = [
        (
            "clients/python/src/steersman_client/_sync.py",
            python::blocking(&asyncio),
        ),
        (
            "clients/python/src/steersman_client/_api.py",
            python::file(&api),
        ),
        ("clients/typescript/src/api.ts", typescript::file(&api)),
        (
            "crates/steersman-client/src/generated.rs",
            rust::file(&api)?,
        ),
    ];
    let mut changed = Vec::new();
    for (path, now) in files {
        let place = root.join(path);
        if fs::read_to_string(&place).is_ok_and(|then| then == now) {
            continue;
        }
        if write {
            fs::write(&place, now).map_err(|e| format!("{path}: {e}"))?;
        } else {
            changed.push(path);
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} differ from what is generated: run `cargo xtask clients`",
        changed.join(", ")
    ))
}

/// The part of the document that the clients have.
struct Api {
    /// The named types, by name.
    types: BTreeMap<String, Named>,
    /// The operations of each tag, in the order of their names.
    tags: BTreeMap<String, Vec<Operation>>,
    /// The names of the types that answers have.
    answered: BTreeSet<String>,
}

/// A named type.
struct Named {
    doc: String,
    form: Form,
}

enum Form {
    /// One of these words.
    Words(Vec<String>),
    /// An object of these fields.
    Fields(Vec<Field>),
    /// Another name for a type.
    Is(Type),
}

/// A field of an object, or a parameter of an operation.
#[derive(Clone)]
struct Field {
    name: String,
    doc: String,
    kind: Type,
    is_required: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Type {
    Any,
    Text,
    Whole,
    Number,
    Truth,
    /// An object with names that are not known.
    Map(Box<Self>),
    List(Box<Self>),
    Named(String),
}

/// An operation.
struct Operation {
    name: String,
    /// The summary and the description.
    doc: Vec<String>,
    /// In capitals.
    verb: String,
    path: String,
    places: Vec<Field>,
    query: Vec<Field>,
    headers: Vec<String>,
    /// The name of the type of the body.
    body: Option<String>,
    answer: Answer,
}

enum Answer {
    Nothing,
    /// JSON of one of these types.
    Json(Vec<Type>),
    Bytes,
    /// A stream of server-sent events.
    Events,
}

/// Headers that operations share. Clients have a parameter of another name for each.
const KEY: &str = "Idempotency-Key";
const WAIT: &str = "Prefer";
const IF_MATCH: &str = "If-Match";
const IF_NONE_MATCH: &str = "If-None-Match";
const LAST_ID: &str = "Last-Event-ID";
const HEADERS: [&str; 5] = [KEY, WAIT, IF_MATCH, IF_NONE_MATCH, LAST_ID];

impl Operation {
    fn has(&self, header: &str) -> bool {
        self.headers.iter().any(|own| own == header)
    }

    /// Returns the path in pieces: texts, and the names of parameters.
    fn pieces(&self) -> Vec<(&str, bool)> {
        let pieces = self.path.split('{').flat_map(|piece| {
            let mut halves = piece.splitn(2, '}');
            let first = halves.next().unwrap_or_default();
            match halves.next() {
                Some(rest) => [(first, true), (rest, false)],
                None => [(first, false), ("", false)],
            }
        });
        pieces.filter(|(text, _)| !text.is_empty()).collect()
    }
}

impl Api {
    fn read(document: &Json) -> Result<Self, String> {
        let mut api = Self {
            types: BTreeMap::new(),
            tags: BTreeMap::new(),
            answered: BTreeSet::new(),
        };
        let paths = document["paths"].as_object();
        let paths = paths.ok_or_else(|| format!("{DOCUMENT} has no paths"))?;
        for (path, item) in paths {
            let is_ours = path.starts_with("/v1/") || path == "/livez" || path == "/readyz";
            for (verb, operation) in item.as_object().into_iter().flatten().filter(|_| is_ours) {
                let tag = text(&operation["tags"][0]);
                let read = Operation::read(verb, path, operation)
                    .map_err(|why| format!("{verb} {path}: {why}"))?;
                if tag.is_empty() || read.name.is_empty() {
                    return Err(format!("{verb} {path} has no tag or no operationId"));
                }
                api.tags.entry(tag).or_default().push(read);
            }
        }
        for operations in api.tags.values_mut() {
            operations.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let schemas = &document["components"]["schemas"];
        let mut wanted = vec!["Problem".to_owned()];
        for operation in api.tags.values().flatten() {
            wanted.extend(operation.body.clone());
            if let Answer::Json(kinds) = &operation.answer {
                let mut named = Vec::new();
                for kind in kinds {
                    kind.names(&mut named);
                }
                api.answered.extend(named.iter().cloned());
                wanted.extend(named);
            }
            for field in operation.query.iter().chain(&operation.places) {
                field.kind.names(&mut wanted);
            }
        }
        while let Some(name) = wanted.pop() {
            if api.types.contains_key(&name) {
                continue;
            }
            let schema = schemas[&name].as_object();
            let schema = schema.ok_or_else(|| format!("{DOCUMENT} has no schema `{name}`"))?;
            let named = api.named(&name, schema);
            let mut next = Vec::new();
            match &named.form {
                Form::Words(_) => {}
                Form::Is(kind) => kind.names(&mut next),
                Form::Fields(fields) => {
                    for field in fields {
                        field.kind.names(&mut next);
                    }
                }
            }
            if api.answered.contains(&name) || name == "Problem" {
                api.answered.extend(next.iter().cloned());
            }
            wanted.extend(next);
            api.types.insert(name, named);
        }
        // A type that was read before it was known as part of an answer passes that on.
        loop {
            let known = api.answered.len();
            let of_answers = api
                .types
                .iter()
                .filter(|(name, _)| api.answered.contains(*name));
            let mut more = Vec::new();
            for (_, named) in of_answers {
                if let Form::Fields(fields) = &named.form {
                    for field in fields {
                        field.kind.names(&mut more);
                    }
                }
            }
            api.answered.extend(more);
            if api.answered.len() == known {
                return Ok(api);
            }
        }
    }

    /// Reads a schema. A list of words within it becomes a type of its own.
    fn named(&mut self, name: &str, schema: &Map<String, Json>) -> Named {
        let doc = schema.get("description").map(text).unwrap_or_default();
        let words = words(schema);
        if !words.is_empty() {
            let form = Form::Words(words);
            return Named { doc, form };
        }
        let Some(properties) = schema.get("properties").and_then(Json::as_object) else {
            let form = Form::Is(Type::read(&Json::Object(schema.clone())));
            return Named { doc, form };
        };
        let required = schema.get("required").and_then(Json::as_array);
        let mut fields = Vec::new();
        for (field, schema) in properties {
            let mut kind = Type::read(schema);
            let doc = text(&schema["description"]);
            let inner = schema.as_object().map(self::words).unwrap_or_default();
            if !inner.is_empty() {
                let own = format!("{name}{}", pascal(field));
                let named = Named {
                    doc: doc.clone(),
                    form: Form::Words(inner),
                };
                self.types.insert(own.clone(), named);
                kind = Type::Named(own);
            }
            fields.push(Field {
                name: field.clone(),
                doc,
                kind,
                is_required: required.is_some_and(|all| all.iter().any(|own| own == field)),
            });
        }
        let form = Form::Fields(fields);
        Named { doc, form }
    }

    /// Returns the fields of a body, the required ones first; `None` if it is no object.
    fn fields(&self, body: &str) -> Option<Vec<Field>> {
        let Form::Fields(fields) = &self.types.get(body)?.form else {
            return None;
        };
        let mut fields = fields.clone();
        fields.sort_by_key(|field| !field.is_required);
        Some(fields)
    }
}

impl Operation {
    fn read(verb: &str, path: &str, operation: &Json) -> Result<Self, String> {
        let (mut places, mut query, mut headers) = (Vec::new(), Vec::new(), Vec::new());
        for one in operation["parameters"].as_array().into_iter().flatten() {
            let name = text(&one["name"]);
            let field = Field {
                name: name.clone(),
                doc: text(&one["description"]),
                kind: Type::read(&one["schema"]),
                is_required: one["required"] == true,
            };
            match one["in"].as_str() {
                Some("path") => places.push(field),
                Some("query") => query.push(field),
                _ if HEADERS.contains(&&*name) => headers.push(name),
                _ => {
                    return Err(format!(
                        "no client knows the header `{name}`: add it to HEADERS"
                    ));
                }
            }
        }
        // Parameters are arguments in the order of the path.
        places.sort_by_key(|place| path.find(&format!("{{{}}}", place.name)));
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        let body = match Type::read(body) {
            Type::Named(name) => Some(name),
            _ if operation["requestBody"].is_null() => None,
            _ => return Err("the body has no name: derive `ToSchema` for its type".to_owned()),
        };
        let mut doc = vec![text(&operation["summary"])];
        let more = text(&operation["description"]);
        doc.extend((!more.is_empty()).then_some(more));
        Ok(Self {
            name: text(&operation["operationId"]),
            doc,
            verb: verb.to_uppercase(),
            path: path.to_owned(),
            places,
            query,
            headers,
            body,
            answer: Answer::read(&operation["responses"]),
        })
    }
}

impl Answer {
    fn read(responses: &Json) -> Self {
        let mut kinds: Vec<Type> = Vec::new();
        let all = responses.as_object().into_iter().flatten();
        for (_, response) in all.filter(|(status, _)| status.starts_with('2')) {
            let content = response["content"].as_object();
            for (media, body) in content.into_iter().flatten() {
                match &**media {
                    "text/event-stream" => return Self::Events,
                    "application/json" => {
                        let kind = Type::read(&body["schema"]);
                        if !kinds.contains(&kind) {
                            kinds.push(kind);
                        }
                    }
                    _ => return Self::Bytes,
                }
            }
        }
        if kinds.is_empty() {
            return Self::Nothing;
        }
        Self::Json(kinds)
    }
}

impl Type {
    /// Reads a schema. Null in addition to another type is left out: fields that may be null may also be absent.
    fn read(schema: &Json) -> Self {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.rsplit('/').next().unwrap_or_default();
            return Self::Named(name.to_owned());
        }
        for several in ["oneOf", "anyOf", "allOf"] {
            let parts = schema[several].as_array().into_iter().flatten();
            let mut parts = parts.filter(|part| part["type"] != "null");
            if let (Some(only), None) = (parts.next(), parts.next()) {
                return Self::read(only);
            }
        }
        let kind = match &schema["type"] {
            Json::Array(several) => {
                let mut several = several.iter().filter(|kind| *kind != "null");
                match (several.next(), several.next()) {
                    (Some(only), None) => text(only),
                    _ => String::new(),
                }
            }
            one => text(one),
        };
        match &*kind {
            "string" => Self::Text,
            "integer" => Self::Whole,
            "number" => Self::Number,
            "boolean" => Self::Truth,
            "array" => Self::List(Box::new(Self::read(&schema["items"]))),
            "object" => match &schema["additionalProperties"] {
                of @ Json::Object(_) => Self::Map(Box::new(Self::read(of))),
                _ => Self::Map(Box::new(Self::Any)),
            },
            _ => Self::Any,
        }
    }

    /// Adds the names that the type has.
    fn names(&self, into: &mut Vec<String>) {
        match self {
            Self::Named(name) => into.push(name.clone()),
            Self::List(of) | Self::Map(of) => of.names(into),
            _ => {}
        }
    }
}

fn words(schema: &Map<String, Json>) -> Vec<String> {
    let words = schema.get("enum").and_then(Json::as_array);
    words.into_iter().flatten().map(text).collect()
}

fn text(json: &Json) -> String {
    json.as_str().unwrap_or_default().to_owned()
}

/// Returns `of_session` as `OfSession`.
fn pascal(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric());
    let words = words.map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + rest
    });
    words.collect()
}

/// Returns `of_session` as `ofSession`.
fn camel(name: &str) -> String {
    let name = pascal(name);
    let (first, rest) = name.split_at(name.len().min(1));
    first.to_lowercase() + rest
}

/// Returns what a tag's class is, for readers.
fn about(tag: &str) -> String {
    format!("The operations of `{tag}`.")
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_clients_are_what_the_document_says() {
        if let Err(why) = super::check(&crate::tidy::root(), false) {
            panic!("{why}");
        }
    }
}
