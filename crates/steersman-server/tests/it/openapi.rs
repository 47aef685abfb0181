//! The committed document equals the one that the code makes. `UPDATE=1` writes it.

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
