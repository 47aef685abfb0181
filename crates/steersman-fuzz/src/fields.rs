//! Fields that the server of a tool asks a person for, and the answer. For any schema of a server and any text of a person:
//!
//! * reading ends without a panic;
//! * what is given has the fields of the schema alone, and each one that is required;
//! * what is given, given again, is the same;
//! * a field that looks like a secret is one of the schema.
//!
//! The first line of an input is the schema, the rest the answer.

use crate::Target;
use serde_json::Value as Json;
use steersman_runtime::fields::Fields;

pub(crate) const TARGET: Target = Target {
    name: "fields",
    check,
    seeds: || {
        let pairs = SCHEMAS.iter().flat_map(|schema| {
            let answers = ANSWERS.iter();
            answers.map(move |answer| format!("{schema}\n{answer}").into_bytes())
        });
        pairs.collect()
    },
    words: &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\n",
        "null",
        "true",
        "false",
        "0",
        "-1",
        "1e400",
        "18446744073709551616",
        "\"type\":",
        "\"string\"",
        "\"integer\"",
        "\"number\"",
        "\"boolean\"",
        "\"array\"",
        "\"properties\":",
        "\"required\":",
        "\"enum\":",
        "\"oneOf\":",
        "\"const\":",
        "\"items\":",
        "\"default\":",
        "\"minimum\":",
        "\"format\":",
        "\"date\"",
        "\"a\":",
        "\"a\"",
        "password",
        "é",
    ],
    mutations: 20_000,
};

const SCHEMAS: [&str; 5] = [
    r#"{"type":"object","properties":{}}"#,
    r#"{"properties":{"a":{"type":"string","format":"date"}},"required":["a"]}"#,
    r#"{"properties":{"a":{"type":"integer","minimum":1,"maximum":4},"b":{"type":"boolean","default":true},"c":{"type":"number"}},"required":["a"]}"#,
    r#"{"properties":{"a":{"type":"string","oneOf":[{"const":"x","title":"X"}],"default":"x"},"password":{"type":"string"}}}"#,
    r#"{"properties":{"a":{"type":"array","items":{"type":"string","enum":["x","y"]},"minItems":1,"maxItems":1}}}"#,
];

const ANSWERS: [&str; 7] = [
    "",
    "2026-12-24",
    "x, y",
    "3",
    "yes",
    r#"{"a":1,"b":null}"#,
    r#"{"a":["x"],"z":1}"#,
];

fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (schema, answer) = text.split_once('\n').unwrap_or((&text, ""));
    let Ok(fields) = Fields::read(schema) else {
        return;
    };
    let schema: Json = serde_json::from_str(schema).unwrap_or_default();
    let is_one = |name: &str| schema["properties"].get(name).is_some();
    let _ = (fields.described(), fields.options());
    assert!(fields.secret().is_none_or(is_one));
    for given in [fields.given(answer), fields.defaults()]
        .into_iter()
        .flatten()
    {
        let object = given.as_object().expect("what is given is an object");
        assert!(object.keys().all(|name| is_one(name)), "{given}");
        for name in schema["required"].as_array().into_iter().flatten() {
            let required = name.as_str().filter(|name| is_one(name));
            assert!(
                required.is_none_or(|name| object.contains_key(name)),
                "{given}"
            );
        }
        assert_eq!(fields.given(&given.to_string()).as_ref(), Ok(&given));
    }
}
