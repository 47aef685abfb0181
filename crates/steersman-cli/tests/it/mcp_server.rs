//! `mcp`: the built program as a server over standard input and output, which is killed and started again; and its guide.

use crate::docs::{Block, blocks};
use crate::world::{self, World};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};

/// The blocks of the guide.
fn guide() -> Vec<Block> {
    let path = world::root().join("docs/guides/serving-mcp.md");
    blocks(&std::fs::read_to_string(path).unwrap())
}

/// Writes the files of the guide.
pub(crate) fn write(world: &World) {
    for block in guide().iter().filter(|block| block.fence == "yaml") {
        world.write(block.file.as_ref().unwrap(), &block.text);
    }
}

/// A client that started the program.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    next: u64,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Client {
    fn start(world: &World, args: &[&str]) -> Self {
        let mut child = (world.command(args).stdin(Stdio::piped()))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut client = Self {
            input: child.stdin.take(),
            child,
            output,
            next: 1,
        };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let hello = client.ask("initialize", &params);
        assert_eq!(hello["serverInfo"]["name"], "steersman", "{hello:#}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Json) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    fn ask(&mut self, method: &str, params: &Json) -> Json {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let line = self.output.next().expect("the program answers").unwrap();
            let message: Json = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message["method"].is_null() {
                assert!(message["error"].is_null(), "{message:#}");
                return message["result"].clone();
            }
        }
    }

    fn call(&mut self, arguments: &Json) -> Json {
        let result = self.ask(
            "tools/call",
            &json!({ "name": "desk", "arguments": arguments }),
        );
        result["structuredContent"].clone()
    }

    /// Closes the input, as a client does that goes away.
    fn close(mut self) -> ExitStatus {
        self.input = None;
        self.child.wait().unwrap()
    }
}

/// True if `told` has everything that a document of the guide shows; `..` stands for any value.
fn shows(wanted: &Json, told: &Json) -> bool {
    match (wanted, told) {
        (Json::String(any), _) if any == ".." => !told.is_null(),
        (Json::Object(wanted), Json::Object(told)) => wanted
            .iter()
            .all(|(name, value)| told.get(name).is_some_and(|told| shows(value, told))),
        (Json::Array(wanted), Json::Array(told)) => {
            wanted.len() == told.len() && wanted.iter().zip(told).all(|(a, b)| shows(a, b))
        }
        _ => wanted == told,
    }
}

#[test]
fn the_guide_does_what_it_says() {
    let world = World::new();
    write(&world);
    let documents: Vec<Json> = guide()
        .iter()
        .filter(|block| block.fence == "json")
        .map(|block| serde_json::from_str(&block.text).unwrap())
        .collect();
    let [config, http, call, asks, again, answered] = &documents[..] else {
        panic!("{} documents", documents.len())
    };
    assert_eq!(
        http["mcpServers"]["desk"]["url"],
        "http://127.0.0.1:7410/mcp"
    );
    let desk = &config["mcpServers"]["desk"];
    assert_eq!(desk["command"], "steersman");
    let folder = world.folder.to_str().unwrap();
    let args: Vec<String> = desk["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arg| arg.as_str().unwrap().replace("/home/ann/desk", folder))
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut client = Client::start(&world, &args);
    let told = client.call(call);
    assert!(shows(asks, &told), "{told:#}");
    let session = told["session"].as_str().unwrap();

    // The process dies, and another one goes on.
    drop(client);
    let decide = told["questions"][0]["decide"].as_str().unwrap();
    let mut typed: Vec<&str> = decide.split_whitespace().skip(1).collect();
    typed.extend(["--no-run", "--store", "sessions.db"]);
    let decided = world.run(&typed);
    assert_eq!(decided.code, Some(0), "{decided:?}");
    let mut client = Client::start(&world, &args);
    let mut again = again.clone();
    assert_eq!(again["session"], "SESSION");
    again["session"] = session.into();
    let told = client.call(&again);
    assert!(shows(answered, &told), "{told:#}");
    assert_eq!(told["session"], session);
    assert_eq!(client.close().code(), Some(0));
}

#[test]
fn what_cannot_be_served_is_told() {
    let world = World::new();
    let none = world.run(&["mcp"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.err.contains("there is no definition here"), "{none:?}");
    world.write(
        "steersman.yaml",
        "name: desk\nagents: { desk: { sistem: You answer. } }\n",
    );
    let faulty = world.run(&["mcp"]);
    assert_eq!(faulty.code, Some(3), "{faulty:?}");
    assert!(faulty.out.is_empty(), "{faulty:?}");
}
