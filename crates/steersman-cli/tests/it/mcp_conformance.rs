//! The conformance suite of the Model Context Protocol against `serve`, and against the program as a client that signs in
//! (`scripts/mcp-conformance.sh`). Tables of the guides say of each scenario whether it passes, or why it does not.

use crate::login::signs_in;
use crate::served::{Served, provider};
use crate::world::{self, World};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A definition and a script whose only tool is the one that a scenario calls.
struct Tool {
    scenario: &'static str,
    definition: &'static str,
    script: &'static str,
}

const SPEAKS: Tool = Tool {
    scenario: "tools-call-simple-text",
    definition: r"steersman: 1
name: test_simple_text
agents:
  speaker: { system: You speak., parameters: { tone: { type: string, default: plain } } }
entry: speaker
",
    script: "speaker: [ This is a simple text response for testing. ]\n",
};

const TOOLS: [Tool; 3] = [
    Tool {
        scenario: "tools-call-error",
        definition: r"steersman: 1
name: test_error_handling
agents:
  broken: { system: You fail., parameters: { tone: { type: string, default: plain } } }
entry: broken
",
        script: "broken: [ { error: invalid_request } ]\n",
    },
    Tool {
        scenario: "tools-call-with-progress",
        definition: r#"steersman: 1
name: test_tool_with_progress
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, command: [echo, "{{ args.what }}"] }
agents:
  worker: { system: You work., tools: [look], parameters: { tone: { type: string, default: plain } } }
entry: worker
"#,
        script: "worker: [ { call: { look: { what: a } } }, { call: { look: { what: b } } }, Done. ]\n",
    },
    Tool {
        scenario: "tools-call-elicitation",
        definition: r"steersman: 1
name: test_elicitation
agents:
  client: { person: { role: user } }
  asker: { system: You ask., tools: [client], parameters: { message: string } }
entry: asker
",
        script: r#"asker: [ { call: { client: { message: "Who are you?" } } }, Thanks. ]
"#,
    },
];

/// Runs a scenario, or all of them. Returns which passed.
fn runs(tool: &Tool, scenario: Option<&str>) -> BTreeMap<String, bool> {
    provider();
    let world = World::new();
    world.write("steersman.yaml", tool.definition);
    world.write("script.yaml", tool.script);
    let served = Served::start(&world);
    let place = std::env::var("STEERSMAN_MCP_CONFORMANCE").expect("the folder of the suite");
    let node = Path::new(&place).join("node_modules/node/bin/node");
    let program = world::root().join("crates/steersman-cli/tests/mcp/conformance.mjs");
    let out = Command::new(node)
        .arg(program)
        .arg(&place)
        .args(scenario)
        .current_dir(&world.folder)
        .env("STEERSMAN_AT", &served.at)
        .env("STEERSMAN_TOKEN", served.token())
        .env("NO_PROXY", "127.0.0.1,localhost")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&out.stdout);
    if let Some(scenario) = scenario {
        // A single scenario has no summary.
        let passed = told.contains(", 0 failed, 0 warnings");
        assert!(passed || told.contains("Failed Checks"), "{told}");
        return [(scenario.to_owned(), passed)].into();
    }
    let rows = told.lines().filter_map(|line| {
        let passed = line.starts_with("✓ ");
        let row = line.strip_prefix("✓ ").or(line.strip_prefix("✗ "))?;
        Some((row.split_once(':')?.0.to_owned(), passed))
    });
    rows.collect()
}

/// The table of a guide: scenarios, and whether they pass. A scenario that does not pass has the word of the table, and a reason.
fn table(page: &str, begins: &str, not: &str) -> BTreeMap<String, bool> {
    let page = world::root().join("docs/guides").join(page);
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once(begins).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.flat_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let passed = match cells[2] {
            "passes" => true,
            word if word == not => false,
            other => panic!("`{other}` in {row}"),
        };
        assert!(passed || !cells[3].is_empty(), "no reason: {row}");
        let names = cells[1].split(", ").map(|name| name.trim_matches('`'));
        let names: Vec<_> = names.map(|name| (name.to_owned(), passed)).collect();
        names
    });
    rows.collect()
}

#[test]
#[ignore = "needs the suite: STEERSMAN_MCP_CONFORMANCE=$(scripts/mcp-conformance.sh)"]
fn every_server_scenario_passes_or_is_not_offered() {
    let mut found = runs(&SPEAKS, None);
    assert!(found[SPEAKS.scenario], "{found:?}");
    for tool in &TOOLS {
        found.extend(runs(tool, Some(tool.scenario)));
    }
    assert_eq!(found.len(), 32, "{found:?}");
    assert_eq!(
        found,
        table("serving-mcp.md", "## Conformance", "not offered")
    );
}

/// The scenarios in which a client signs in. The suite starts this file's `as_a_client` with the address of its server.
#[test]
#[ignore = "needs the suite: STEERSMAN_MCP_CONFORMANCE=$(scripts/mcp-conformance.sh)"]
fn every_sign_in_of_a_client_passes_or_has_its_reason() {
    let place = std::env::var("STEERSMAN_MCP_CONFORMANCE").expect("the folder of the suite");
    let folder = Path::new(&place).join("node_modules");
    let suite = |words: &[&str]| {
        let out = Command::new(folder.join("node/bin/node"))
            .arg(folder.join("@modelcontextprotocol/conformance/dist/index.js"))
            .args(words)
            .current_dir(std::env::temp_dir())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (out.status.success(), text(&out.stdout) + &text(&out.stderr))
    };
    let (_, listed) = suite(&["list", "--client"]);
    let names = listed
        .lines()
        .filter_map(|line| line.strip_prefix("  - ")?.split(' ').next());
    let names = names.filter(|name| name.starts_with("auth/"));
    let us = std::env::current_exe().unwrap();
    let client = format!(
        "{} --ignored --exact mcp_conformance::as_a_client",
        us.display()
    );
    let mut said = Vec::new();
    let found: BTreeMap<String, bool> = names
        .map(|name| {
            let typed = ["client", "--command", &client, "--scenario", name];
            let (passed, told) = suite(&typed);
            if !passed {
                said.push(told);
            }
            (name.to_owned(), passed)
        })
        .collect();
    assert_eq!(found.len(), 22, "{listed}");
    let wanted = table("mcp.md", "| scenario of `auth/`", "not done");
    assert_eq!(found, wanted, "{}", said.join("\n"));
}

/// The client that the suite starts: the program, and a person who signs in when it says so, twice at most.
#[test]
#[ignore = "started by the suite"]
fn as_a_client() {
    let url = std::env::args().next_back();
    let (Some(url), Ok(scenario)) = (
        url.filter(|url| url.starts_with("http")),
        std::env::var("MCP_CONFORMANCE_SCENARIO"),
    ) else {
        return;
    };
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Json = serde_json::from_str(&context).unwrap_or_default();
    let given = |field: &str| context[field].as_str().unwrap_or_default().to_owned();
    let mut world = World::new();
    world.set("CLIENT_SECRET", &given("client_secret"));
    world.set("CLIENT_KEY", &given("private_key_pem"));
    let id = format!("client_id: '{}'", given("client_id"));
    let (secret, key) = (
        "client_secret: '{{ secrets.it }}'",
        "key: '{{ secrets.key }}'",
    );
    let oauth = match scenario.as_str() {
        "auth/client-credentials-jwt" => format!("by: program, {id}, {key}"),
        "auth/client-credentials-basic" => format!("by: program, {id}, {secret}"),
        "auth/pre-registration" => format!("{id}, {secret}"),
        _ => "client_metadata: 'https://conformance-test.local/client-metadata.json'".to_owned(),
    };
    world.write(
        "steersman.yaml",
        &format!(
            "name: client\nsecrets:\n  it: {{ env: CLIENT_SECRET, optional: true }}\n  key: {{ env: CLIENT_KEY, optional: true }}\n\
             mcp: {{ s: {{ url: '{url}', effect: read, oauth: {{ {oauth} }} }} }}\n\
             agents: {{ a: {{ system: You call., tools: ['s.*'] }} }}\n"
        ),
    );
    world.write(
        "script.yaml",
        "a: [ { call: { s.test-tool: {} } }, Done. ]\n",
    );
    let run = ["run", "--script-all", "script.yaml", "--input", "Go."];
    let mut ran = world.run(&run);
    for _ in 0..2 {
        if ran.code == Some(0) {
            break;
        }
        assert!(ran.all().contains("steersman login s"), "{ran:?}");
        let (signed, _) = signs_in(&world, &["login", "s"], false);
        assert_eq!(signed.code, Some(0), "{signed:?}");
        ran = match ran.code {
            Some(5) => world.run(&["approve", "last", "--script-all", "script.yaml"]),
            _ => world.run(&run),
        };
    }
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
