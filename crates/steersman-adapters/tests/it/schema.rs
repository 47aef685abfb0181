//! JSON Schema files of parameters and outputs.

use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use steersman_adapters::schema::{STEPS, STEPS_PER_BYTE, Schemas, problem};
use steersman_runtime::engine::Judge;

const ORDER: &str = r##"{ "type": "object", "required": ["id", "lines"], "additionalProperties": false,
  "properties": { "id": { "type": "string", "pattern": "^o-[0-9]+$" }, "lines": { "type": "array", "items": { "$ref": "#/$defs/line" } } },
  "$defs": { "line": { "type": "object", "required": ["cents"], "properties": { "cents": { "type": "integer", "minimum": 1 } } } } }"##;

async fn misfit(schemas: &Schemas, schema: &str, value: Json) -> Option<String> {
    schemas.misfit(&Arc::from(schema), value).await
}

async fn said(schema: &str) -> Option<String> {
    problem(serde_json::from_str(schema).unwrap()).await
}

#[tokio::test]
async fn misfits_name_the_place() {
    let (schemas, order) = (Schemas::default(), ORDER);
    let fits = json!({ "id": "o-1", "lines": [{ "cents": 5 }] });
    assert_eq!(misfit(&schemas, order, fits).await, None);
    let wrong = json!({ "id": "x", "lines": [{ "cents": 0 }, {}], "more": 1 });
    insta::assert_snapshot!(misfit(&schemas, order, wrong).await.unwrap());
    let many = json!({ "id": "o-1", "lines": vec![json!({}); 9] });
    let told = misfit(&schemas, order, many).await.unwrap();
    assert!(told.ends_with("; and 4 more"), "{told}");
}

#[tokio::test]
async fn a_schema_that_cannot_be_used_is_said() {
    assert_eq!(said(ORDER).await, None);
    let schemas = Schemas::default();
    let told = misfit(&schemas, "{", json!(1)).await.unwrap();
    assert!(told.contains("is not JSON"), "{told}");
    assert!(said(r#"{ "type": 7 }"#).await.unwrap().contains('7'));
    // No reference is fetched, and no pattern can run for ever.
    for schema in [
        r#"{ "$ref": "https://example.invalid/x.json" }"#,
        r#"{ "$ref": "file:///etc/passwd" }"#,
        r#"{ "pattern": "(?=a)b" }"#,
    ] {
        assert!(said(schema).await.is_some(), "{schema}");
    }
}

/// Returns a schema with `n` definitions, each of which refers to the next one twice.
fn doubled(n: usize) -> String {
    let mut defs = Map::new();
    for k in 0..n {
        let next = json!({ "$ref": format!("#/$defs/d{}", k + 1) });
        defs.insert(format!("d{k}"), json!({ "anyOf": [next, next] }));
    }
    defs.insert(format!("d{n}"), json!({ "type": "string", "maxLength": 0 }));
    json!({ "$defs": defs, "$ref": "#/$defs/d0" }).to_string()
}

/// Returns a schema that looks at each part of a value twice for each level above it.
fn twice_below() -> String {
    json!({
        "$defs": { "n": { "anyOf": [
            { "properties": { "x": { "$ref": "#/$defs/n" } }, "maxProperties": 0 },
            { "properties": { "x": { "$ref": "#/$defs/n" } }, "maxProperties": 0 }
        ] } },
        "$ref": "#/$defs/n"
    })
    .to_string()
}

fn nested(depth: usize) -> Json {
    (0..depth).fold(json!({}), |within, _| json!({ "x": within }))
}

#[tokio::test]
async fn what_asks_for_more_than_there_is_time_is_refused_or_stopped() {
    let schemas = Schemas::default();
    let told = misfit(&schemas, &doubled(28), json!("x")).await.unwrap();
    assert!(told.contains("more than 10000 schemas"), "{told}");
    // A schema that is small even with its references written out, and a value that is nested.
    assert_eq!(said(&twice_below()).await, None);
    for value in [
        nested(120),
        json!({ "x": nested(100), "y": "z".repeat(100_000) }),
    ] {
        let told = misfit(&schemas, &twice_below(), value).await.unwrap();
        assert!(told.contains("it cannot be checked"), "{told}");
    }
    // The checker still works.
    let told = misfit(&schemas, &twice_below(), json!({})).await;
    assert_eq!(told, None);
}

#[tokio::test]
async fn a_large_value_has_as_many_steps_as_it_needs() {
    let lines = vec![json!({ "cents": 5 }); 30_000];
    let order = json!({ "id": "o-1", "lines": lines });
    assert_eq!(misfit(&Schemas::default(), ORDER, order).await, None);
}

/// There is one thread: a check on it would keep everything else waiting.
#[tokio::test(flavor = "current_thread")]
async fn nothing_else_waits_for_a_check() {
    let schemas = Arc::new(Schemas::default());
    let checks: Vec<_> = (0..3)
        .map(|_| {
            let schemas = Arc::clone(&schemas);
            tokio::spawn(async move { misfit(&schemas, &twice_below(), nested(120)).await })
        })
        .collect();
    let mut turns = 0;
    while !checks.iter().all(tokio::task::JoinHandle::is_finished) {
        tokio::task::yield_now().await;
        turns += 1;
    }
    assert!(turns > 100, "{turns}");
    for check in checks {
        assert!(
            check
                .await
                .unwrap()
                .unwrap()
                .contains("it cannot be checked")
        );
    }
}

/// `cargo test --release -p steersman-adapters --test it schema -- --ignored --nocapture`
#[tokio::test]
#[ignore = "measures: run it in release, on a machine that does nothing else"]
async fn the_worst_that_the_bounds_let_through_takes_moments() {
    let words: Vec<String> = (0..9_000).map(|k| format!("w{k:08}")).collect();
    let names: Map<String, Json> = (0..60).map(|k| (format!("^p{k}x*$"), json!({}))).collect();
    let many: Map<String, Json> = (0..20_000)
        .map(|k| (format!("p{k}xxx"), json!(1)))
        .collect();
    let pattern = json!({ "pattern": "(a|b|ab)*c[a-z]{0,200}d$" });
    let worst = [
        ("references, written out", doubled(12), json!("x")),
        ("each level twice", twice_below(), nested(120)),
        (
            "words of a list",
            json!({ "items": { "enum": words } }).to_string(),
            json!(vec!["x"; 500_000]),
        ),
        (
            "patterns of names",
            json!({ "patternProperties": names }).to_string(),
            Json::Object(many),
        ),
        (
            "a pattern",
            json!({ "items": pattern }).to_string(),
            json!(vec!["abababab".repeat(100); 2_000]),
        ),
        (
            "unique items",
            json!({ "uniqueItems": true, "items": { "uniqueItems": true } }).to_string(),
            json!(vec![(0..500).collect::<Vec<_>>(); 500]),
        ),
    ];
    println!("steps: {STEPS} and {STEPS_PER_BYTE} a byte");
    for (name, schema, value) in worst {
        let bytes = value.to_string().len();
        let schemas = Schemas::default();
        let at = std::time::Instant::now();
        let told = misfit(&schemas, &schema, value).await;
        let took = at.elapsed().as_millis();
        let stopped = told.is_some_and(|told| told.contains("cannot be checked"));
        println!(
            "{took:>6} ms  {bytes:>9} bytes  {name}{}",
            if stopped { "  (stopped)" } else { "" }
        );
    }
}
