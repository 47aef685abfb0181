//! The committed document equals the one that the code makes. `UPDATE=1` writes it.

use crate::world::{Answer, SCRIPT, World};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::path::Path;
use steersman_server::openapi;

#[test]
fn the_document_is_what_the_code_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
    let now = format!("{}\n", serde_json::to_string_pretty(&openapi()).unwrap());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    let then = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        now == then,
        "docs/reference/openapi.json differs: UPDATE=1 cargo test -p steersman-server --test it openapi"
    );
}

#[test]
fn each_operation_is_named_and_says_what_it_does() {
    let document = openapi();
    let mut names = BTreeSet::new();
    let mut count = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            count += 1;
            let name = format!("{} {}", operation["tags"][0], operation["operationId"]);
            assert!(names.insert(name.clone()), "{method} {path}: {name}");
            assert!(operation["summary"].is_string(), "{method} {path}");
            if path.starts_with("/v1") && path != "/v1/openapi.json" {
                let problem = &operation["responses"]["default"]["content"];
                assert!(
                    problem["application/problem+json"].is_object(),
                    "{method} {path}"
                );
            }
        }
    }
    assert!(count > 40, "{count}");
    assert_eq!(document["openapi"], "3.1.0");
}

/// Adds the places where a value is not as a schema of the document says.
fn differs(schema: &Json, value: &Json, at: &str, into: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let document = openapi();
        let place = name.trim_start_matches('#');
        return differs(document.pointer(place).unwrap(), value, at, into);
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        into.push(format!("{at}: {value} is none of the words"));
    }
    if let (Some(items), Some(all)) = (schema.get("items"), value.as_array()) {
        for (n, value) in all.iter().enumerate() {
            differs(items, value, &format!("{at}/{n}"), into);
        }
    }
    let (Some(properties), Some(fields)) = (schema["properties"].as_object(), value.as_object())
    else {
        return;
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        if !fields.contains_key(name.as_str().unwrap()) {
            into.push(format!("{at}: there is no {name}"));
        }
    }
    for (name, value) in fields {
        let at = format!("{at}/{name}");
        match properties.get(name) {
            None => into.push(format!("{at}: the document does not have it")),
            Some(_) if value.is_null() => {}
            Some(schema) => differs(schema, value, &at, into),
        }
    }
}

/// The views that make these answers know no OpenAPI.
#[tokio::test]
async fn answers_of_views_are_as_the_document_says() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let document = openapi();
    let check = |method: &str, path: &str, value: &Json| {
        let answers = &document["paths"][path][method]["responses"]["200"]["content"];
        let schema = &answers["application/json"]["schema"];
        assert!(schema["$ref"].is_string(), "{method} {path}: {schema}");
        let mut wrong = Vec::new();
        differs(schema, value, "", &mut wrong);
        assert!(wrong.is_empty(), "{method} {path}: {wrong:#?}\n{value:#}");
    };
    let start = json!({ "definition": "desk", "message": "My kettle is broken." });
    let request = all.request(Method::POST, "/v1/sessions").json(&start);
    let turn = Answer::of(request.header("prefer", "wait=30"))
        .await
        .is(200);
    assert_eq!(turn["status"], "asks");
    check("post", "/v1/sessions", &turn);
    let session = turn["session"].as_str().unwrap();
    let own = format!("/v1/sessions/{session}");
    for path in [
        "/v1/questions",
        "/v1/sessions",
        "/v1/sessions/{session}/questions",
    ] {
        let found = all
            .get(&path.replace("/v1/sessions/{session}", &own))
            .await
            .is(200);
        assert_eq!(
            found["items"].as_array().unwrap().len(),
            1,
            "{path}: {found:#}"
        );
        check("get", path, &found);
    }
    let question = all.question(session).await;
    let approve = format!("{own}/questions/{question}/approve");
    all.post(&approve, json!({ "as": "manager" })).await.is(202);
    let turn = all.say(session, "Thank you.").await;
    assert_eq!(turn["status"], "answered");
    check("post", "/v1/sessions/{session}/messages", &turn);
    let found = all.get(&format!("{own}/artifacts")).await.is(200);
    assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found:#}");
    check("get", "/v1/sessions/{session}/artifacts", &found);
    let problem = all.get("/v1/sessions/none").await.is(404);
    let mut wrong = Vec::new();
    differs(
        &document["components"]["schemas"]["Problem"],
        &problem,
        "",
        &mut wrong,
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}
