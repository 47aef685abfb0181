//! The JSON Schema of the format, for editors: made from the table of keys that the parser judges by.

use super::table::{FILE, SHORT, TYPE, Table, Ty};
use serde_json::{Map, Value as Json, json};

/// The JSON Schema (draft 2020-12) of a definition file. Keys that this version does not understand are in it, never
/// valid, so that an editor tells them from mistakes.
pub fn schema() -> Json {
    let mut defs = Map::new();
    table(&FILE, &mut defs);
    // a definition's own tables are named by what they are, the file's is the root
    let mut root = defs.remove(FILE.name).unwrap_or_default();
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
    defs.insert(of.name.to_owned(), Json::Null);
    let mut properties = Map::new();
    for key in of.keys {
        let mut property = value(&key.ty, defs);
        if let Some(map) = property.as_object_mut() {
            let default = match key.default {
                "" | "–" => String::new(),
                default => format!(" Default: {default}."),
            };
            let text = format!("{}{default}", key.doc);
            let text = if key.built {
                text
            } else {
                format!("Reserved, not built in this version. {text}")
            };
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
        Ty::Path => json!({ "type": "string" }),
        Ty::Name => json!({ "type": "string", "pattern": "^[a-z][a-z0-9_]{0,47}$" }),
        Ty::Duration => json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$" }),
        Ty::Expr => json!({ "type": ["string", "boolean", "number"] }),
        Ty::Data | Ty::Any => json!({}),
        Ty::Word(words) => {
            let built = words.iter().filter(|(_, built)| *built);
            json!({ "enum": built.map(|(word, _)| *word).collect::<Vec<_>>() })
        }
        Ty::Type => {
            if !defs.contains_key("AnyType") {
                defs.insert("AnyType".to_owned(), Json::Null);
                table(&TYPE, defs);
                let words = SHORT.iter().filter(|(_, built)| *built);
                let words: Vec<String> = words
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
            table(of, defs);
            json!({ "$ref": format!("#/$defs/{}", of.name) })
        }
        Ty::Or(kinds) => {
            let built = kinds.iter().filter(|kind| !matches!(kind, Ty::Later));
            let ways: Vec<Json> = built.map(|kind| value(kind, defs)).collect();
            json!({ "anyOf": ways })
        }
        Ty::Later => json!({ "not": {} }),
    }
}
