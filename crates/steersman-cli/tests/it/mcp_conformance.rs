//! The conformance suite of the Model Context Protocol against `serve` (`scripts/mcp-conformance.sh`). A table of the guide says of each
//! scenario whether it passes, or why what it tries is not offered.

use crate::served::{Served, provider};
use crate::world::{self, World};
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

/// The table of the guide: scenarios, and whether they pass.
fn table() -> BTreeMap<String, bool> {
    let page = world::root().join("docs/guides/serving-mcp.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("## Conformance").unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.flat_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let passed = match cells[2] {
            "passes" => true,
            "not offered" => false,
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
    assert_eq!(found, table());
}
