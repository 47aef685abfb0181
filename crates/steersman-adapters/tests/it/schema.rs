//! JSON Schema files of parameters and outputs.

use serde_json::json;
use std::sync::Arc;
use steersman_adapters::schema::{Schemas, problem};
use steersman_machine::definition::{Files, compile};
use steersman_machine::effect::{Answer, Ask};

const ORDER: &str = r##"{ "type": "object", "required": ["id", "lines"], "additionalProperties": false,
  "properties": { "id": { "type": "string", "pattern": "^o-[0-9]+$" }, "lines": { "type": "array", "items": { "$ref": "#/$defs/line" } } },
  "$defs": { "line": { "type": "object", "required": ["cents"], "properties": { "cents": { "type": "integer", "minimum": 1 } } } } }"##;

#[test]
fn misfits_name_the_place() {
    let (schemas, order) = (Schemas::default(), Arc::<str>::from(ORDER));
    let fits = json!({ "id": "o-1", "lines": [{ "cents": 5 }] });
    assert_eq!(schemas.misfit(&order, &fits), None);
    let wrong = json!({ "id": "x", "lines": [{ "cents": 0 }, {}], "more": 1 });
    insta::assert_snapshot!(schemas.misfit(&order, &wrong).unwrap());
    let many = json!({ "id": "o-1", "lines": vec![json!({}); 9] });
    assert!(
        schemas
            .misfit(&order, &many)
            .unwrap()
            .ends_with("; and 4 more")
    );
}

#[test]
fn a_schema_that_cannot_be_used_is_said() {
    assert_eq!(problem(ORDER), None);
    let said = |schema: &str| problem(schema).unwrap();
    assert!(said("{").contains("is not JSON"));
    assert!(said(r#"{ "type": 7 }"#).contains('7'));
    // Nothing is fetched, and no pattern can run for ever.
    assert!(problem(r#"{ "$ref": "https://example.invalid/x.json" }"#).is_some());
    assert!(problem(r#"{ "$ref": "file:///etc/passwd" }"#).is_some());
    assert!(problem(r#"{ "pattern": "(?=a)b" }"#).is_some());
}

#[test]
fn answers_are_judged_where_a_type_is_a_file() {
    let files = Files::new(
        "desk.yaml",
        "agents: { desk: { system: Hi., tools: [order, plain], output: { schema: order.json } } }\n\
         tools:\n  order: { description: Orders., parameters: order.json, effect: pure, native: 1 }\n  \
           plain: { description: Plain., parameters: { n: integer }, effect: pure, native: 1 }\n",
    )
    .with("order.json", ORDER);
    let (network, diagnostics) = compile(&files);
    let network = network.unwrap_or_else(|| panic!("{diagnostics:?}"));
    let ask = |name: &str, args: &str| Ask {
        name: name.to_owned(),
        label: None,
        args: args.to_owned(),
        misfit: None,
    };
    let schemas = Schemas::default();
    let mut answer = Answer {
        asks: vec![
            ask("order", r#"{"id": "o-1", "lines": []}"#),
            ask("order", r#"{"id": "o-1"}"#),
            ask("order", "{"),
            ask("plain", r#"{"n": "not judged here"}"#),
            ask("unknown", "{}"),
        ],
        ..Answer::default()
    };
    schemas.judge(&network, "desk", &mut answer);
    let misfits = answer
        .asks
        .iter()
        .map(|ask| ask.misfit.as_deref())
        .collect::<Vec<_>>();
    assert_eq!((misfits[0], misfits[3], misfits[4]), (None, None, None));
    assert!(misfits[1].unwrap().contains("lines"), "{misfits:?}");
    assert!(misfits[2].unwrap().contains("not JSON"), "{misfits:?}");

    let judged = |text: &str| {
        let mut answer = Answer {
            text: Some(text.to_owned()),
            ..Answer::default()
        };
        schemas.judge(&network, "desk", &mut answer);
        answer.misfit
    };
    assert_eq!(judged(r#"{"id": "o-1", "lines": []}"#), None);
    assert!(judged("Done.").unwrap().contains("not JSON"));
}
