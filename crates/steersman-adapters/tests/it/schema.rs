//! JSON Schema files of parameters and outputs.

use serde_json::json;
use steersman_adapters::schema::{Schemas, problem};
use steersman_runtime::engine::Judge;

const ORDER: &str = r##"{ "type": "object", "required": ["id", "lines"], "additionalProperties": false,
  "properties": { "id": { "type": "string", "pattern": "^o-[0-9]+$" }, "lines": { "type": "array", "items": { "$ref": "#/$defs/line" } } },
  "$defs": { "line": { "type": "object", "required": ["cents"], "properties": { "cents": { "type": "integer", "minimum": 1 } } } } }"##;

#[test]
fn misfits_name_the_place() {
    let (schemas, order) = (Schemas::default(), ORDER);
    let fits = json!({ "id": "o-1", "lines": [{ "cents": 5 }] });
    assert_eq!(schemas.misfit(order, &fits), None);
    let wrong = json!({ "id": "x", "lines": [{ "cents": 0 }, {}], "more": 1 });
    insta::assert_snapshot!(schemas.misfit(order, &wrong).unwrap());
    let many = json!({ "id": "o-1", "lines": vec![json!({}); 9] });
    assert!(
        schemas
            .misfit(order, &many)
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
