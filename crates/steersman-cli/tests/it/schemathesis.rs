//! Requests that Schemathesis makes from the OpenAPI document of the server: right ones, wrong ones and nonsense for every route. No answer may
//! be an error of the server, or one that the document does not tell.

use crate::served::{Served, provider};
use crate::world::World;
use std::path::Path;
use std::process::Command;

const DESK: &str = "steersman: 1
name: desk
models: { default: scripted }
agents: { desk: { system: You answer. } }
entry: desk
";

/// Everything that it checks of a single answer. What it takes for wrong ways to refuse a request (405 and the like) differs by taste.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance";

/// Lets it ask all routes but the stream that never ends, with this header.
fn asks(served: &Served, world: &World, header: &str) {
    let place = std::env::var("STEERSMAN_SCHEMATHESIS").expect("the folder of the program");
    let document = format!("{}/v1/openapi.json", served.at);
    let out = Command::new(Path::new(&place).join("bin/st"))
        .current_dir(&world.folder)
        .args(["--config-file", "schemathesis.toml", "run", &document])
        .args(["--header", header, "--checks", CHECKS])
        .args([
            "--phases",
            "examples,coverage,fuzzing",
            "--max-examples",
            "10",
        ])
        .args(["--exclude-path-regex", "stream$", "--request-timeout", "20"])
        .args(["--seed", "7", "--generation-database", "none", "--no-color"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{told}");
    let counts = told
        .lines()
        .find_map(|row| row.trim().strip_prefix("Selected: "));
    let (asked, all) = counts.and_then(|counts| counts.split_once('/')).unwrap();
    let [asked, all] = [asked, all].map(|count| count.parse::<u32>().unwrap());
    assert_eq!(asked + 1, all, "{told}");
}

#[tokio::test]
#[ignore = "needs Schemathesis: STEERSMAN_SCHEMATHESIS=$(scripts/schemathesis.sh)"]
async fn every_answer_is_one_that_the_document_tells() {
    provider();
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", "desk: [Hello.]");
    let served = Served::start(&world);
    let start = serde_json::json!({ "definition": "desk", "message": "Hello." });
    let sessions = served.json(reqwest::Method::POST, "/v1/sessions", Some(start));
    let (status, begun) = sessions.await;
    assert!(status.is_success(), "{begun}");
    let session = begun["session"].as_str().unwrap();
    // Half of the requests would be about a session that is not there.
    let told = format!("[parameters]\n\"path.session\" = \"{session}\"\n");
    world.write("schemathesis.toml", &told);
    let token = format!("Authorization: Bearer {}", served.token());
    for header in [&*token, "X-Nobody: 1"] {
        asks(&served, &world, header);
    }
}
