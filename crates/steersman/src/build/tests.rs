//! The builder says all that the format says: each section, each key, each word, with the text of the reference.

use super::*;
use std::collections::BTreeMap;

/// Keys that the builder says otherwise than by a method of their name, and how.
const OTHERWISE: &[(&str, &str, &str)] = &[
    ("File", "steersman", "`Network::builder` writes it"),
    ("File", "name", "`Network::builder`"),
    ("File", "agents", "`Builder::agent`"),
    ("File", "tools", "`Builder::tool`, `Builder::declare`"),
    ("File", "hooks", "`Builder::hook`"),
    ("Hook", "native", "`hook`"),
    ("Tool", "native", "`tool`, `tool_with`"),
];

/// Keys without a method. It stays empty.
const MISSING: &[(&str, &str)] = &[];

macro_rules! all {
    ($($name:ident)+) => { &[$(($name::TITLE, $name::LISTED)),+] };
}

/// All sections of the builder.
const SECTIONS: &[(&str, &[Listed])] = all! {
    Agent AnswerLimit Approve Before Begin Bound Budget Builder Choice Compact Config Context ContextRender Doubt Event Exit Expect Grade Hook Horizon Http
    Limit Limits Mcp Memory Mode ModeExit Model ModelRetry MoneyLimit OAuth OnError Orchestrator Person PersonTimeout Price Reflect
    Remembered Render Requires Route Rule Save Schedule Search SearchBudget Secret Sessions Speaker Start State Step Summary Takes Task Test Then TimeLimit Tool
    ToolUse Type Unusable View Wait
};

/// Collects the words in the schema of a value, without those of other sections.
fn words(schema: &Json, found: &mut Vec<String>) {
    match schema {
        Json::Object(map) => {
            for (key, value) in map {
                if key == "enum" {
                    let words = value.as_array().into_iter().flatten();
                    found.extend(words.filter_map(Json::as_str).map(str::to_owned));
                } else {
                    words(value, found);
                }
            }
        }
        Json::Array(items) => items.iter().for_each(|item| words(item, found)),
        _ => {}
    }
}

#[test]
fn each_key_of_the_format_has_a_method_and_each_word_a_variant() {
    let schema = steersman_definition::schema();
    let mut wanted: BTreeMap<&str, &Json> = BTreeMap::from([("File", &schema)]);
    let defs = schema["$defs"].as_object().unwrap();
    wanted.extend(
        defs.iter()
            .filter(|(_, def)| def["properties"].is_object())
            .map(|(name, def)| (&**name, def)),
    );
    let listed: BTreeMap<&str, &[Listed]> = SECTIONS.iter().copied().collect();
    let mut wrong = Vec::new();
    for (section, def) in &wanted {
        let methods = listed.get(section).copied().unwrap_or_default();
        for (key, property) in def["properties"].as_object().unwrap() {
            let said = |(of, name, _): &&(&str, &str, &str)| of == section && name == key;
            if OTHERWISE.iter().any(|other| said(&other)) || MISSING.contains(&(section, key)) {
                continue;
            }
            let Some((_, about, known)) = methods.iter().find(|(name, ..)| name == key) else {
                wrong.push(format!("{section}.{key}: there is no method"));
                continue;
            };
            let text = property["description"].as_str().unwrap_or_default();
            if !text.starts_with(about) {
                wrong.push(format!("{section}.{key}: the reference says `{text}`"));
            }
            let mut all = Vec::new();
            words(property, &mut all);
            all.retain(|word| !known.contains(&&**word));
            if !known.is_empty() && !all.is_empty() {
                wrong.push(format!("{section}.{key}: there is no variant for {all:?}"));
            }
        }
        for (key, ..) in methods {
            if def["properties"][key].is_null() {
                wrong.push(format!("{section}.{key}: the format has no such key"));
            }
        }
    }
    let mut doubts = Vec::new();
    words(&wanted["Tool"]["properties"]["on_doubt"], &mut doubts);
    doubts.retain(|word| !DoubtWord::WORDS.contains(&&**word));
    wrong.extend(
        doubts
            .iter()
            .map(|word| format!("Tool.on_doubt: there is no variant for {word}")),
    );
    let more = listed
        .keys()
        .filter(|section| !wanted.contains_key(*section));
    wrong.extend(more.map(|section| format!("{section}: the format has no such section")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(MISSING.is_empty());
}

/// Both forms of a value: alone, and with further keys.
#[test]
fn a_short_form_becomes_long_when_a_key_is_added() {
    let json = |of: Json| of.to_string();
    assert_eq!(
        json(Approve::from("args.cents > 5").into()),
        r#""args.cents > 5""#
    );
    assert_eq!(
        json(Approve::from("true").by("boss").into()),
        r#"{"when":"true","by":"boss"}"#
    );
    assert_eq!(json(Limit::from(5).into()), "5");
    assert_eq!(
        json(Limit::from(5).per(Period::Task).into()),
        r#"{"max":5,"per":"task"}"#
    );
    assert_eq!(
        json(Type::from("string").optional(true).into()),
        r#"{"type":"string","optional":true}"#
    );
    assert_eq!(json(Reflect::from(true).into()), "true");
    assert_eq!(json(Doubt::from(DoubtWord::Fail).into()), r#""fail""#);
    let nested = Type::new()
        .field("to", "string")
        .field("n", Type::from("integer").minimum(1.0));
    assert_eq!(
        json(nested.into()),
        r#"{"fields":{"to":"string","n":{"type":"integer","minimum":1.0}}}"#
    );
}
