//! Models that a session may ask.

use serde_json::json;
use steersman_machine::network::Network;
use steersman_machine::network::manifest::{Listed, Listing, Manifest};
use steersman_testkit::log::network;

const DEFINITION: &str = r#"
models: { default: auto, small: auto, sums: auto, web: auto }
mcp:
  web:
    url: "https://example.com/mcp"
    effect: read
    render: { fetch: { horizon: 2, beyond: summary, model: web } }
tools:
  look: { description: Looks., effect: read, native: 1, render: { horizon: 2, beyond: summary, model: sums } }
agents:
  plain: { system: S. }
  clerk: { system: S., state: { name: optional string }, extract: [name] }
  looks: { system: S., tools: [look] }
  reads: { system: S., tools: ["web.*"] }
entry: [plain, clerk, looks, reads]
"#;

#[test]
fn a_model_counts_only_for_the_agents_and_tools_that_ask_it() {
    let written = network(DEFINITION);
    let fetch = Listed {
        name: "fetch".to_owned(),
        input: json!({ "type": "object" }),
        ..Listed::default()
    };
    let listing = Listing {
        about: String::new(),
        tools: vec![fetch],
    };
    let servers = [("web".into(), listing)].into();
    let whole = written.with_manifest(&Manifest { servers }).unwrap();
    // The tools of a server are not known when a session looks for its models.
    for network in [&written, &whole] {
        let used = |entry: &str| {
            let begun: Network = network.beginning_with(&entry.into());
            let used = begun.used_models().into_iter().map(ToString::to_string);
            used.collect::<Vec<_>>()
        };
        assert_eq!(used("plain"), ["default"]);
        assert_eq!(used("clerk"), ["default", "small"]);
        assert_eq!(used("looks"), ["default", "sums"]);
        assert_eq!(used("reads"), ["default", "web"]);
        let all: Vec<&str> = network.all_models().iter().map(|name| &***name).collect();
        assert_eq!(all, ["default", "small", "sums", "web"]);
    }
}
