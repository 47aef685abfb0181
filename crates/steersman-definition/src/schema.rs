//! The JSON Schema of the format for editors, made from the tables of keys that the parser checks against.

use super::keys::file::File;
use super::keys::kinds::Words as _;
use super::keys::{LongType, Section, ShortType, Table, Ty};
use serde_json::{Map, Value as Json, json};
use std::fmt::Write as _;
use steersman_machine::stored::codes::{Caught, Code};

/// Returns the JSON Schema (draft 2020-12) of a definition file. Words that are reserved for a later version are left out.
pub fn schema() -> Json {
    let mut defs = Map::new();
    let file = File::table();
    table(file, &mut defs);
    // the file's table is the root, all others are under `$defs`
    let mut root = defs.remove(file.name).unwrap_or_default();
    if let Some(map) = root.as_object_mut() {
        map.insert(
            "$schema".to_owned(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        map.insert("title".to_owned(), json!("A definition of Steersman"));
        map.insert("$defs".to_owned(), Json::Object(defs));
    }
    root
}

fn table(of: &'static Table, defs: &mut Map<String, Json>) {
    if defs.contains_key(of.name) {
        return;
    }
    // a table that contains itself finds this entry, which ends the recursion
    defs.insert(of.name.to_owned(), Json::Null);
    let mut properties = Map::new();
    for key in of.keys {
        let mut property = value(&key.ty, defs);
        if let Some(map) = property.as_object_mut() {
            let default = match key.default() {
                _ if key.required => String::new(),
                None => String::new(),
                Some(default) => format!(" Default: {default}."),
            };
            let text = format!("{}{default}", key.doc);
            map.insert("description".to_owned(), Json::from(text));
        }
        properties.insert(key.name.to_owned(), property);
    }
    let required: Vec<&str> = of
        .keys
        .iter()
        .filter(|key| key.required)
        .map(|key| key.name)
        .collect();
    let mut groups: Vec<Json> = Vec::new();
    for (exactly, group) in of.one_of {
        let each = |name: &&str| json!({ "required": [name] });
        let mut ways: Vec<Json> = group.iter().map(each).collect();
        if !exactly {
            ways.push(json!({ "not": { "anyOf": group.iter().map(each).collect::<Vec<_>>() } }));
        }
        groups.push(json!({ "oneOf": ways }));
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if let Some(map) = schema.as_object_mut() {
        if !required.is_empty() {
            map.insert("required".to_owned(), json!(required));
        }
        if !groups.is_empty() {
            map.insert("allOf".to_owned(), Json::Array(groups));
        }
    }
    defs.insert(of.name.to_owned(), schema);
}

fn value(ty: &'static Ty, defs: &mut Map<String, Json>) -> Json {
    match ty {
        Ty::Integer(least) => json!({ "type": "integer", "minimum": least }),
        Ty::Number => json!({ "type": "number" }),
        Ty::Boolean => json!({ "type": "boolean" }),
        Ty::Text | Ty::Template | Ty::Prompt => json!({ "type": ["string", "number"] }),
        Ty::Path | Ty::Documents => json!({ "type": "string" }),
        Ty::Name => json!({ "type": "string", "pattern": "^[a-z][a-z0-9_]{0,47}$" }),
        Ty::Duration => json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$" }),
        Ty::Size => json!({ "type": "string", "pattern": "^[0-9]+(B|KiB|MiB)$" }),
        Ty::Money => json!({ "type": "number", "minimum": 0 }),
        Ty::Rate(_) => json!({ "type": "string", "pattern": "^[0-9]+( tokens)?/(s|min|h|d)" }),
        Ty::Expr => json!({ "type": ["string", "boolean", "number"] }),
        Ty::Data | Ty::Any => json!({}),
        Ty::Word(words) => {
            let built = words.iter().filter(|(_, built)| *built);
            json!({ "enum": built.map(|(word, _)| *word).collect::<Vec<_>>() })
        }
        Ty::Type => {
            if !defs.contains_key("AnyType") {
                defs.insert("AnyType".to_owned(), Json::Null);
                table(LongType::table(), defs);
                let words: Vec<String> = ShortType::WORDS
                    .iter()
                    .flat_map(|(word, _)| [(*word).to_owned(), format!("optional {word}")])
                    .collect();
                let any = json!({ "anyOf": [
                    { "enum": words },
                    { "type": "array", "items": { "$ref": "#/$defs/AnyType" }, "minItems": 1, "maxItems": 1 },
                    { "$ref": "#/$defs/Type" },
                ] });
                defs.insert("AnyType".to_owned(), any);
            }
            json!({ "$ref": "#/$defs/AnyType" })
        }
        Ty::List(of) => json!({ "type": "array", "items": value(of, defs) }),
        Ty::Map(of) => json!({ "type": "object", "additionalProperties": value(of, defs) }),
        Ty::Names(of) => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[a-z][a-z0-9_]{0,47}$" },
            "additionalProperties": value(of, defs),
        }),
        Ty::Table(of) => {
            let of = of();
            table(of, defs);
            json!({ "$ref": format!("#/$defs/{}", of.name) })
        }
        Ty::Or(_) => {
            let kinds = ty.alternatives();
            let ways: Vec<Json> = kinds.iter().map(|kind| value(kind, defs)).collect();
            json!({ "anyOf": ways })
        }
    }
}

/// Returns the reference for people: all keys of the format as Markdown, one table for each kind of map.
pub fn reference() -> String {
    let mut text = String::new();
    for of in tables(File::table()) {
        let _ = write!(
            text,
            "\n## {}\n\n| key | type | default | meaning |\n|---|---|---|---|\n",
            of.name
        );
        for key in of.keys {
            let (ty, doc) = (words(&key.ty), key.doc);
            let default = match key.default() {
                _ if key.required => "required".to_owned(),
                default => default.unwrap_or_else(|| "–".to_owned()),
            };
            let line = format!("| `{}` | {ty} | {default} | {doc} |\n", key.name);
            text.push_str(&line);
        }
        for (exactly, group) in of.one_of {
            let names = super::shape::list_of(group.iter().copied());
            let how = if *exactly { "Exactly" } else { "At most" };
            let _ = writeln!(text, "\n{how} one of {names}.");
        }
    }
    text.push_str(&codes());
    text.push_str(
        "\n## Sentences\n\nKeys of `texts`. What stands in `{{ }}` is filled in, and nothing else can be.\n\n| key | built in | who reads it |\n|---|---|---|\n",
    );
    for sentence in steersman_machine::network::texts::ALL {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} |",
            sentence.key, sentence.words, sentence.doc
        );
    }
    text
}

/// Returns the section of the reference about the codes of `on_error`.
fn codes() -> String {
    let mut text = "\n## Codes\n\nCodes of `on_error`, in addition to those of HTTP (`http_404`, `http_4xx`).\n\n\
                    | code | meaning | also caught by |\n|---|---|---|\n"
        .to_owned();
    let also = |code: Code| match code.caught() {
        Caught::Failed if code == Code::Failed => "`*`",
        Caught::Failed => "`failed`, `*`",
        Caught::Any => "`*`",
        Caught::Nothing => "–",
    };
    for code in Code::ALL.iter().filter(|code| code.may_be_caught_by_name()) {
        let _ = writeln!(text, "| `{code}` | {} | {} |", code.meaning(), also(*code));
    }
    let others = Code::ALL
        .iter()
        .filter(|code| !code.may_be_caught_by_name() && code.caught() == Caught::Failed);
    for code in others {
        let caught = also(*code);
        let _ = writeln!(
            text,
            "\n`{code}` has no entry of its own. Caught by: {caught}."
        );
    }
    text
}

/// Returns a table and all tables that its keys lead to, directly or through others, each once.
pub(crate) fn tables(first: &'static Table) -> Vec<&'static Table> {
    let mut tables = vec![first];
    let mut at = 0;
    while let Some(of) = tables.get(at) {
        for key in of.keys {
            named_tables(&key.ty, &mut tables);
        }
        at += 1;
    }
    tables
}

/// Adds the tables within a type that are not listed yet.
fn named_tables(ty: &'static Ty, into: &mut Vec<&'static Table>) {
    let mut add = |of: &'static Table| {
        if !into.iter().any(|known| known.name == of.name) {
            into.push(of);
        }
    };
    match ty {
        Ty::Table(of) => add(of()),
        Ty::Type => add(LongType::table()),
        Ty::List(of) | Ty::Map(of) | Ty::Names(of) => named_tables(of, into),
        Ty::Or(kinds) => kinds.iter().for_each(|kind| named_tables(kind, into)),
        Ty::Integer(_)
        | Ty::Number
        | Ty::Boolean
        | Ty::Text
        | Ty::Name
        | Ty::Path
        | Ty::Documents
        | Ty::Prompt
        | Ty::Duration
        | Ty::Size
        | Ty::Money
        | Ty::Rate(_)
        | Ty::Expr
        | Ty::Template
        | Ty::Data
        | Ty::Any
        | Ty::Word(_) => {}
    }
}

/// Returns a type as the reference writes it.
pub(crate) fn words(ty: &'static Ty) -> String {
    match ty {
        Ty::Integer(_) => "int".to_owned(),
        Ty::Number | Ty::Money => "num".to_owned(),
        Ty::Boolean => "bool".to_owned(),
        Ty::Text => "text".to_owned(),
        Ty::Name => "name".to_owned(),
        Ty::Path | Ty::Documents => "path".to_owned(),
        Ty::Prompt => "tmpl, path".to_owned(),
        Ty::Duration => "dur".to_owned(),
        Ty::Size => "size".to_owned(),
        Ty::Rate(_) => "rate".to_owned(),
        Ty::Expr => "expr".to_owned(),
        Ty::Template => "tmpl".to_owned(),
        Ty::Data | Ty::Any => "any".to_owned(),
        Ty::Word(of) => {
            let built = of.iter().filter(|(_, built)| *built);
            super::shape::list_of(built.map(|(word, _)| *word))
        }
        Ty::Type => "Type".to_owned(),
        Ty::List(of) => format!("[{}]", words(of)),
        Ty::Map(of) | Ty::Names(of) => format!("{{{}}}", words(of)),
        Ty::Table(of) => of().name.to_owned(),
        Ty::Or(_) => {
            let mut all: Vec<String> = Vec::new();
            for kind in ty.alternatives() {
                let word = words(kind);
                if !all.contains(&word) {
                    all.push(word);
                }
            }
            all.join(", ")
        }
    }
}
