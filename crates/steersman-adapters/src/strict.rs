//! Strict schemas for answers that must match a schema. OpenAI enforces only strict ones: every object requires all its properties
//! and allows no others. Optional properties become nullable, and these nulls are removed from the answer again.

use serde_json::{Value as Json, json};
use steersman_machine::context::Request;
use steersman_machine::stored::outcome::Answer;

/// Returns the schema in the form that OpenAI enforces, and true if there is one; otherwise the schema as it is, and false: OpenAI
/// refuses `strict` with a schema that is not strict.
pub(crate) fn enforced(schema_text: &str) -> (bool, Json) {
    let schema = read(schema_text);
    let mut wide = schema.clone();
    // A reference into a property would break: an optional property gets another path, below `anyOf`.
    if !schema_text.contains("#/properties") {
        widen(&mut wide);
    }
    if is_strict(&wide) {
        (true, wide)
    } else {
        (false, schema)
    }
}

/// Returns the schema of a text. A text that is no JSON gives the schema that takes everything.
pub(crate) fn read(schema_text: &str) -> Json {
    serde_json::from_str::<Json>(schema_text).unwrap_or_else(|_| json!({}))
}

/// Removes from an answer the nulls that stand in for optional properties of the schema that was wanted.
pub(crate) fn narrow_answer(answer: &mut Answer, request: &Request) {
    if let (Some(schema), Some(text)) = (&request.output, &mut answer.text)
        && let Some(narrowed) = narrowed(text, schema)
    {
        *text = narrowed;
    }
}

/// Removes the nulls that stand in for optional properties, which were made required. Returns `None` if nothing changes, or if the
/// text is not JSON.
fn narrowed(text: &str, schema: &str) -> Option<String> {
    let schema = serde_json::from_str::<Json>(schema).ok()?;
    let mut answer = serde_json::from_str::<Json>(text).ok()?;
    narrow(&mut answer, &schema).then(|| answer.to_string())
}

/// Returns true if OpenAI accepts the schema as strict: an object at the root, and every object requires all its properties and
/// allows no others.
fn is_strict(schema: &Json) -> bool {
    schema.get("type") == Some(&json!("object")) && closed(schema)
}

/// Returns true if every object within the schema requires all its properties and allows no others.
fn closed(schema: &Json) -> bool {
    match schema {
        Json::Object(map) => {
            let object =
                map.get("type") == Some(&json!("object")) || map.contains_key("properties");
            let required = map.get("required").and_then(Json::as_array);
            let named = map.get("properties").and_then(Json::as_object);
            let all = named.is_none_or(|named| {
                named
                    .keys()
                    .all(|key| required.is_some_and(|list| list.contains(&json!(key))))
            });
            let fits = !object || (all && map.get("additionalProperties") == Some(&json!(false)));
            fits && map.values().all(closed)
        }
        Json::Array(list) => list.iter().all(closed),
        _ => true,
    }
}

/// Makes optional properties required and nullable.
fn widen(schema: &mut Json) {
    if let Some(items) = schema.get_mut("items") {
        widen(items);
    }
    let required = required(schema);
    let Some(Json::Object(named)) = schema.get_mut("properties") else {
        return;
    };
    let mut all = Vec::new();
    for (name, property) in named {
        widen(property);
        // A property with a default stays optional, because the engine fills it in. The schema is then not strict.
        let may = property.is_object() && property.get("default").is_none();
        if required.contains(name) || may {
            all.push(json!(name));
        }
        if may && !required.contains(name) && !takes_null(property) {
            *property = json!({ "anyOf": [property.take(), { "type": "null" }] });
        }
    }
    schema["required"] = Json::Array(all);
}

/// Removes the nulls of optional properties that do not accept `null`. Returns true if there were any.
fn narrow(answer: &mut Json, schema: &Json) -> bool {
    let mut changed = false;
    match answer {
        Json::Array(list) => {
            let items = schema.get("items").unwrap_or(&Json::Null);
            for item in list {
                changed |= narrow(item, items);
            }
        }
        Json::Object(fields) => {
            let (required, named) = (required(schema), &schema["properties"]);
            let before = fields.len();
            fields.retain(|name, value| {
                let was_optional = !required.contains(name)
                    && named
                        .get(name)
                        .is_some_and(|property| !takes_null(property));
                !(value.is_null() && was_optional)
            });
            changed = fields.len() < before;
            for (name, value) in fields {
                changed |= named
                    .get(name.as_str())
                    .is_some_and(|property| narrow(value, property));
            }
        }
        _ => {}
    }
    changed
}

fn required(schema: &Json) -> Vec<String> {
    let list = schema.get("required").and_then(Json::as_array);
    let names = list.into_iter().flatten().filter_map(Json::as_str);
    names.map(str::to_owned).collect()
}

/// Returns true if the schema plainly accepts `null`.
fn takes_null(schema: &Json) -> bool {
    let null = json!("null");
    match schema.get("type") {
        Some(Json::Array(kinds)) => kinds.contains(&null),
        Some(kind) => *kind == null,
        None => {
            let either = schema.get("anyOf").and_then(Json::as_array);
            either.is_some_and(|list| list.iter().any(takes_null))
        }
    }
}
