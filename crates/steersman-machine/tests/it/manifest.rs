//! Definitions with MCP servers, with and without what the servers offer.

use serde_json::json;
use std::collections::BTreeSet;
use steersman_definition::{Files, compile, compile_stored};
use steersman_machine::network::manifest::{Listed, Listing, Manifest, matches};
use steersman_machine::network::{Does, Network, ToolUse, wire_name};

const CLERK: &str = r#"
name: clerk
config: { host: { default: example.com }, root: { env: ROOT, live: true } }
secrets: { key: { env: KEY } }
mcp:
  web:
    url: "https://{{ config.host }}/mcp"
    headers: { authorization: "Bearer {{ secrets.key }}" }
    effect: annotations
    effects: { fetch: unsafe }
    render: { search: { call: "searched {{ args.query }}", result: "{{ result.hits }}" } }
  files: { command: [files-mcp, "{{ config.host }}"], env: { KEY: "{{ secrets.key }}" } }
tools:
  note: { description: Notes., parameters: { text: string }, then: files.write }
agents:
  clerk: { system: You help., tools: [ note, "web.*", { tool: files.read-it, as: look } ] }
"#;

fn network(text: &str) -> Network {
    let (network, found) = compile(&Files::new("clerk.yaml", text));
    network.unwrap_or_else(|| panic!("{found:?}"))
}

/// Codes and messages of the errors.
fn wrong(text: &str) -> String {
    let (_, found) = compile(&Files::new("clerk.yaml", text));
    let errors = found.iter().filter(|d| d.code.starts_with('E'));
    let errors: Vec<String> = errors
        .map(|d| format!("{} {}", d.code, d.message))
        .collect();
    errors.join("\n")
}

fn listed(name: &str) -> Listed {
    Listed {
        name: name.to_owned(),
        description: format!("Does {name}."),
        input: json!({ "type": "object", "properties": { "query": { "type": "string" } } }),
        ..Listed::default()
    }
}

fn manifest(servers: &[(&str, &[Listed])]) -> Manifest {
    let listing = |tools: &[Listed]| Listing {
        about: String::new(),
        tools: tools.to_vec(),
    };
    let servers = servers
        .iter()
        .map(|(name, tools)| ((*name).into(), listing(tools)));
    Manifest {
        servers: servers.collect(),
    }
}

fn offered(network: &Network) -> String {
    let Does::Model(model) = &network.agent("clerk").does else {
        panic!("it has a model");
    };
    let name = |used: &ToolUse| format!("{}={}", used.seen, wire_name(&used.seen));
    model
        .tools
        .iter()
        .filter(|used| !used.implied)
        .map(name)
        .collect::<Vec<_>>()
        .join(" ")
}

fn both() -> Manifest {
    let search = Listed {
        reads: true,
        ..listed("search")
    };
    let save = Listed {
        idempotent: true,
        ..listed("save/it")
    };
    let fetch = Listed {
        reads: true,
        ..listed("fetch")
    };
    manifest(&[
        ("web", &[search, save, fetch, listed("other")]),
        ("files", &[listed("write"), listed("read-it")]),
    ])
}

#[test]
fn a_definition_is_whole_without_its_servers() {
    let network = network(CLERK);
    assert_eq!(offered(&network), "note=note look=look");
    let names: Vec<&str> = network.tools.keys().map(|name| &**name).collect();
    assert_eq!(
        names,
        ["artifact_read", "files.read-it", "files.write", "note"]
    );
    assert_eq!(network.tool("files.write").effect.word(), "unsafe");
    let again = compile_stored(&network.source).unwrap().network;
    assert_eq!(again.digest, network.digest);
    assert_eq!(again.mcp, network.mcp);
    assert_eq!(again.agents, network.agents);
}

#[test]
fn a_manifest_says_the_rest() {
    let definition = network(CLERK);
    let network = definition.with_manifest(&both()).unwrap();
    assert_eq!(
        offered(&network),
        "note=note web.search=web__search web.save/it=web__save_it web.fetch=web__fetch web.other=web__other look=look"
    );
    let class = |tool: &str| network.tool(tool).effect.word();
    assert_eq!(
        [
            "web.search",
            "web.save/it",
            "web.fetch",
            "web.other",
            "files.write"
        ]
        .map(class),
        ["read", "idempotent", "unsafe", "unsafe", "unsafe"]
    );
    assert_eq!(network.tool("web.search").description, "Does search.");
    assert!(network.tool("web.search").render.call.is_some());
    assert_eq!(
        (network.digest, &network.source),
        (definition.digest, &definition.source)
    );
    // A stored manifest is read as it was written. Unknown keys are refused.
    let text = both().text();
    assert_eq!(Manifest::read(&text).unwrap(), both());
    let newer = text.replacen("\"tools\"", "\"more\":1,\"tools\"", 1);
    assert!(Manifest::read(&newer).unwrap_err().contains("more"));
    // A server that was not asked adds no tools.
    let mut some = both();
    some.servers.remove("web");
    assert_eq!(
        offered(&definition.with_manifest(&some).unwrap()),
        "note=note look=look"
    );
}

#[test]
fn a_tool_that_is_named_beside_all_is_offered_as_it_says() {
    let text = CLERK.replace(
        r#""web.*", {"#,
        r#""web.*", { tool: web.search, as: find }, {"#,
    );
    let network = network(&text).with_manifest(&both()).unwrap();
    assert_eq!(
        offered(&network),
        "note=note web.save/it=web__save_it web.fetch=web__fetch web.other=web__other find=find look=look"
    );
}

#[test]
fn what_does_not_fit_is_said_all_at_once() {
    let long = "a_tool_whose_name_is_so_long_that_no_provider_of_models_would_take_it";
    let servers = manifest(&[
        (
            "web",
            &[
                listed(long),
                listed("a.b"),
                listed("a_b"),
                listed(&"x".repeat(200)),
            ],
        ),
        ("files", &[listed("writes"), listed("read-it")]),
    ]);
    let wrong = network(CLERK).with_manifest(&servers).unwrap_err();
    let begins = [
        "`web.xxx",
        "a model would see `web.a_tool_whose",
        "a model would see `web.xxx",
        "a model would see both `web.a.b` and `web.a_b` as `web__a_b`",
        "the MCP server `files` has no tool for `files.write`; did you mean `files.writes`?",
    ];
    assert_eq!(wrong.len(), begins.len(), "{wrong:#?}");
    for (said, begin) in wrong.iter().zip(begins) {
        assert!(said.starts_with(begin), "{said}");
    }
}

#[test]
fn patterns_take_what_they_say() {
    for (pattern, tool, takes) in [
        ("read", "read", true),
        ("read", "reads", false),
        ("*", "", true),
        ("read_*", "read_file", true),
        ("read_*", "read", false),
        ("*_file", "read_file", true),
        ("*_file", "read_files", false),
        ("a*b*c", "a1b2b3c", true),
        ("a*b*c", "acb", false),
        ("a*a", "a", false),
        ("**x", "yx", true),
    ] {
        assert_eq!(matches(pattern, tool), takes, "{pattern} {tool}");
    }
}

#[test]
fn a_server_belongs_to_no_session() {
    let of = |lines: &str, tools: &str| {
        format!(
            "secrets: {{ key: {{ env: KEY }} }}\nmcp: {{ s: {{ {lines} }} }}\nagents: {{ a: {{ system: Do., tools: [{tools}] }} }}"
        )
    };
    for (lines, tools, said) in [
        (
            r#"url: "http://{{ state.host }}""#,
            "s.t",
            "E0209 `state` has no meaning here",
        ),
        (
            r#"command: [x, "{{ secrets.key }}"]"#,
            "s.t",
            "E0310 `secrets` is not to be seen here",
        ),
        ("url: a, command: [b]", "s.t", "E0"),
        ("effect: read", "s.t", "E0"),
        (
            "url: a, env: { A: b }",
            "s.t",
            "E0312 `env` means nothing for an MCP server without `command`",
        ),
        ("url: a, tools: [x]", "s.t", "E0212 "),
        ("url: a", "other.t", "E0201 no MCP server is named `other`"),
        ("url: a", "s.", "E0"),
        (
            "url: a",
            r#"{ tool: "s.*", as: all }"#,
            "E0312 `as` means nothing for all tools of a server",
        ),
        ("url: a, refresh: always", "s.t", "E0"),
    ] {
        let wrong = wrong(&of(lines, tools));
        assert!(wrong.starts_with(said), "{lines} {tools}: {wrong}");
    }
}

#[test]
fn a_newer_list_is_told_and_keeps_the_tools_of_open_calls() {
    let tool = |name: &str, input: serde_json::Value| Listed {
        name: name.to_owned(),
        input,
        ..Listed::default()
    };
    let list = |tools: Vec<Listed>| Listing {
        about: String::new(),
        tools,
    };
    let (one, other) = (json!({ "type": "object" }), json!({ "required": ["x"] }));
    let older = list(vec![
        tool("same", one.clone()),
        tool("args", one.clone()),
        tool("gone", one.clone()),
        tool("said", one.clone()),
    ]);
    let said = Listed {
        reads: true,
        ..tool("said", one.clone())
    };
    let newest = list(vec![
        tool("same", one.clone()),
        tool("args", other.clone()),
        said,
        tool("new", one.clone()),
    ]);
    let changes = newest.changes(&"s".into(), &older);
    assert_eq!(
        changes,
        [
            "`s.args` takes other arguments",
            "`s.said` says otherwise what it may do",
            "`s.new` is new",
            "`s.gone` is gone",
        ]
    );
    let mut kept = newest.clone();
    let open = ["same", "args", "gone", "never"].map(str::to_owned).into();
    let names = kept.keep(&older, &open);
    assert_eq!(names, ["args", "gone"].map(str::to_owned).into());
    assert_eq!(
        kept.changes(&"s".into(), &older),
        ["`s.said` says otherwise what it may do", "`s.new` is new"]
    );
    // After all calls are closed, the other changes are taken over.
    assert!(newest.clone().keep(&older, &BTreeSet::new()).is_empty());
    let turned = list(newest.tools.iter().rev().cloned().collect());
    assert_eq!(
        turned.changes(&"s".into(), &newest),
        ["`s` lists its tools in another order"]
    );
    assert_eq!(newest.changes(&"s".into(), &newest), Vec::<String>::new());
}
