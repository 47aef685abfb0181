//! MCP servers that misbehave, over both transports.

pub(crate) mod asks;
mod follow;
mod http;

use crate::tools::{env, network, run_of, shown};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use steersman_adapters::mcp::McpTools;
use steersman_machine::network::Network;
use steersman_machine::network::manifest::Listing;
use steersman_machine::values::expression::Names;
use steersman_machine::view::mapping::Raw;
use steersman_runtime::process_env;
use steersman_runtime::store::Scope;
use steersman_runtime::toolset::{Asked, Heard, Progress, ServerAsk, ToolRun, Toolset};
use steersman_runtime::trace::TraceParent;
use tokio_util::sync::CancellationToken;

/// A temporary file that the server writes, which is removed when this is dropped.
struct Diary(PathBuf);

impl Diary {
    fn new(name: &str) -> Self {
        let file = format!("steersman-mcp-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(file);
        std::fs::write(&path, "").unwrap();
        Self(path)
    }

    fn lines(&self, of: &str) -> usize {
        let text = std::fs::read_to_string(&self.0).unwrap();
        text.lines().filter(|line| line.starts_with(of)).count()
    }

    /// Waits until the server has written a line that begins with this.
    async fn until(&self, of: &str) {
        while self.lines(of) == 0 {
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Diary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A network whose server `s` is the script of these tests, with one of its tools for an agent.
fn scripted(diary: &Diary, greets: &str, tool: &str, more: &str) -> Arc<Network> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp/server.sh");
    let words = [
        "sh",
        script.to_str().unwrap(),
        diary.0.to_str().unwrap(),
        greets,
    ];
    let command = serde_json::to_string(&words).unwrap();
    of(&format!("command: {command}\n    {more}"), tool)
}

/// A network whose server `s` has these lines.
fn of(lines: &str, tool: &str) -> Arc<Network> {
    network(&format!(
        r"
secrets: {{ token: {{ env: TOKEN }} }}
mcp:
  s:
    {lines}
agents: {{ a: {{ system: Do., tools: [s.{tool}] }} }}
"
    ))
}

/// A call of the network's only tool.
fn call(network: &Arc<Network>) -> ToolRun {
    let names = network.tools.keys();
    let name = names
        .into_iter()
        .find(|name| name.starts_with("s."))
        .unwrap()
        .clone();
    let args = json!({ "args": { "x": "y" } });
    run_of(network, &name, args, &env(&[("TOKEN", "tok-123456")]))
}

async fn once(tools: &McpTools, network: &Arc<Network>) -> String {
    let run = call(network);
    assert!(tools.has(network, &run.work.tool));
    shown(&tools.run(&run, &CancellationToken::new()).await)
}

fn ask(network: &Arc<Network>) -> ServerAsk {
    ServerAsk {
        network: network.clone(),
        server: "s".into(),
        folder: std::env::temp_dir().into(),
        part: Scope::default(),
        scope: Arc::new(Names::from_json(
            json!({ "secrets": { "token": "tok-123456" } }),
        )),
    }
}

async fn offers(tools: &McpTools, network: &Arc<Network>) -> Listing {
    match tools.list(&ask(network)).await {
        Asked::Offers(listing) => listing,
        other => panic!("{other:?}"),
    }
}

async fn refuses(tools: &McpTools, network: &Arc<Network>) -> String {
    match tools.list(&ask(network)).await {
        Asked::Failed(fault) => fault.message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_answer_is_a_typed_outcome() {
    let diary = Diary::new("answers");
    let tools = McpTools::default();
    for (tool, expected) in [
        ("echo", r#"done: "hello""#),
        ("structured", r#"done: {"n":1}"#),
        ("fail", "failed: failed: no such file"),
        (
            "refuse",
            "not performed: failed: the server refused: no such tool (-32602)",
        ),
        (
            "internal",
            "unknown: failed: the server failed: out of order (-32603)",
        ),
        ("chatty", r#"done: "after the noise""#),
        (
            "wide",
            r#"done: {"wei":"12345678901234567890123","big":1e+22}"#,
        ),
        ("wide_text", r#"done: {"wei":"12345678901234567890123"}"#),
        (
            "nothing_of_the_kind",
            "not performed: failed: the server refused: unknown tool (-32602)",
        ),
        ("asks", r#"done: "got: declined no-model no-roots""#),
        ("change", r#"done: "changed""#),
    ] {
        assert_eq!(
            once(&tools, &scripted(&diary, "", tool, "")).await,
            expected
        );
    }
    let unread = once(&tools, &scripted(&diary, "", "unreadable", "")).await;
    assert!(
        unread.starts_with("unknown: failed: its answer is not a result of a call"),
        "{unread}"
    );
    let deep = once(&tools, &scripted(&diary, "", "deep", "")).await;
    assert!(
        deep.starts_with("unknown: failed: its answer is not a result of a call: recursion"),
        "{deep}"
    );
    assert_eq!(diary.lines("started"), 1, "one connection serves them all");
}

/// An answer that says neither that the call was done nor that it did not begin leaves a doubt.
#[tokio::test]
async fn an_answer_of_an_unknown_kind_is_in_doubt() {
    let diary = Diary::new("kinds");
    let tools = McpTools::default();
    for (tool, expected) in [
        (
            "wants_more",
            "unknown: failed: the server asks for more input",
        ),
        (
            "wants_more_badly",
            "unknown: failed: its answer is not a result of a call",
        ),
        (
            "handle",
            "unknown: failed: its answer is not a result of a call",
        ),
        (
            "of_another_kind",
            "unknown: failed: its answer is not a result of a call",
        ),
        (
            "nothing_at_all",
            "unknown: failed: its answer is not a result of a call",
        ),
    ] {
        let told = once(&tools, &scripted(&diary, "", tool, "")).await;
        assert!(told.starts_with(expected), "{tool}: {told}");
    }
}

#[tokio::test]
async fn what_a_server_says_tells_no_part_of_a_secret() {
    let key = "tok-123456";
    let diary = Diary::new("cuts");
    let more = "env: { SECRET: \"{{ secrets.token }}\" }";
    for (kind, cut) in [
        ("fill", 2_000),
        ("fault", 2_000),
        ("last", 1_000),
        ("printed", 250),
        ("long", 2_048),
    ] {
        for before in (cut - 12..cut + 2).step_by(2) {
            // Each call has a new connection: a server that ends again and again is left alone for a while.
            let tools = McpTools::default();
            let tool = format!("{kind}_{before}");
            let run = call(&scripted(&diary, "", &tool, more));
            let told = match tools.run(&run, &CancellationToken::new()).await {
                Raw::Made { result, .. } => result.to_string(),
                raw => shown(&raw),
            };
            assert!(told.contains('.') || told.contains('~'), "{tool}: {told}");
            crate::cuts::tells_nothing_of(key, &told, tool);
        }
    }
}

#[tokio::test]
async fn a_result_is_held_against_what_the_server_says_of_it() {
    let diary = Diary::new("schema");
    let tools = McpTools::default();
    let network = scripted(&diary, "", "structured", "");
    let listing = offers(&tools, &network).await;
    let with = |tool: &str| {
        let mut listing = listing.clone();
        // The script has a tool that breaks its schema, under another name.
        for listed in &mut listing.tools {
            if listed.name == "structured" {
                tool.clone_into(&mut listed.name);
            }
        }
        let network = scripted(&diary, "", tool, "");
        let servers = [("s".into(), listing)].into();
        Arc::new(
            network
                .with_manifest(&steersman_machine::network::manifest::Manifest { servers })
                .unwrap(),
        )
    };
    let call = |network: Arc<Network>, name: &str| {
        let run = run_of(&network, name, json!({}), &env(&[("TOKEN", "tok-123456")]));
        let tools = &tools;
        async move { shown(&tools.run(&run, &CancellationToken::new()).await) }
    };
    assert_eq!(
        call(with("structured"), "s.structured").await,
        r#"done: {"n":1}"#
    );
    let misfit = call(with("misfit"), "s.misfit").await;
    assert!(
        misfit.starts_with("failed: misfit: it was carried out"),
        "{misfit}"
    );
}

#[tokio::test]
async fn what_is_no_text_stands_beside_the_result() {
    let diary = Diary::new("content");
    let network = scripted(&diary, "", "picture", "");
    let raw = McpTools::default()
        .run(&call(&network), &CancellationToken::new())
        .await;
    let Raw::Made {
        result: text,
        made: content,
        ..
    } = raw
    else {
        panic!("{}", shown(&raw));
    };
    assert_eq!(
        text,
        "A dot.\n(resource file:///tmp/../etc/notes.txt)\nremember\n(resource a: https://example.com/a)\n\
         (image/gif, which is not base64 as it should be)"
    );
    let seen: Vec<_> = content
        .iter()
        .map(|c| (&*c.name, &*c.media, &*c.bytes))
        .collect();
    assert_eq!(
        seen,
        [
            ("s.picture-21.1-1.png", "image/png", &b"hi"[..]),
            ("s.picture-21.1-2-notes.txt", "text/plain", b"remember")
        ]
    );
}

/// Linked resources are read from the server that names them, and nowhere else; the result stays whatever becomes of them.
#[tokio::test]
async fn what_a_result_links_to_is_read_from_its_server() {
    let diary = Diary::new("links");
    let network = scripted(&diary, "linked", "links", "");
    let raw = McpTools::default()
        .run(&call(&network), &CancellationToken::new())
        .await;
    let Raw::Made {
        result: text,
        made: content,
        ..
    } = raw
    else {
        panic!("{}", shown(&raw));
    };
    assert_eq!(
        text,
        "Two files.\n(resource a.txt: file:///a.txt, text/plain; an artifact)\n(resource dot: file:///dot.png; an artifact)\n\
         (resource gone: file:///gone; not read: the server refused: there is no such file (-32002))\n\
         (resource vast: file:///vast; not read: it has 99999999 bytes; a resource may have 8388608, and all of a result 33554432)"
    );
    let seen: Vec<_> = content
        .iter()
        .map(|c| (&*c.name, &*c.media, &*c.bytes))
        .collect();
    assert_eq!(
        seen,
        [
            ("s.links-21.1-1-a.txt", "text/plain", &b"remember"[..]),
            ("s.links-21.1-2-dot", "image/png", b"hi")
        ]
    );
    assert_eq!(
        diary.lines("read"),
        3,
        "one that is too large is not asked for"
    );
    // A server that offers no resources is not asked.
    let diary = Diary::new("no-links");
    let said = once(&McpTools::default(), &scripted(&diary, "", "links", "")).await;
    assert!(
        said.contains("(resource a.txt: file:///a.txt, text/plain)"),
        "{said}"
    );
    assert_eq!(diary.lines("read"), 0);
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_leaves_a_doubt_and_is_started_again() {
    let diary = Diary::new("dies");
    let tools = McpTools::default();
    let died = once(&tools, &scripted(&diary, "", "die", "")).await;
    assert_eq!(
        died,
        "unknown: failed: the server went away before it answered; its last words on standard error: warming up\n\
         disk on fire"
    );
    // The server had answered nothing yet, so it is left alone for a moment.
    let network = scripted(&diary, "", "echo", "");
    let mut said = once(&tools, &network).await;
    while said.starts_with("not performed") {
        assert!(said.contains("again after"), "{said}");
        tokio::task::yield_now().await;
        said = once(&tools, &network).await;
    }
    assert_eq!(said, r#"done: "hello""#);
    assert_eq!(diary.lines("started"), 2);
}

#[tokio::test]
async fn a_line_without_end_takes_no_memory() {
    let diary = Diary::new("huge");
    let tools = McpTools::default();
    let said = once(&tools, &scripted(&diary, "", "huge", "")).await;
    assert!(
        said.starts_with(
            "unknown: failed: the server went away before it answered; it printed a line of more than 16 MiB"
        ),
        "{said}"
    );
    let said = refuses(&tools, &scripted(&diary, "vast", "echo", "")).await;
    assert!(
        said.starts_with("it does not say what it offers: the server went away before it answered; it printed a line of more"),
        "{said}"
    );
    let said = once(&McpTools::default(), &scripted(&diary, "", "endless", "")).await;
    assert!(
        said.contains("it prints nothing that is a message"),
        "{said}"
    );
}

/// The line is not read any further, but the last words on standard error are.
#[tokio::test]
async fn the_last_words_are_heard_behind_a_line_without_end() {
    let diary = Diary::new("words");
    let tools = McpTools::default();
    let said = once(&tools, &scripted(&diary, "", "last_words", "")).await;
    assert_eq!(
        said,
        "unknown: failed: the server went away before it answered; it printed a line of more than 16 MiB; its last words \
         on standard error: warming up\ndisk on fire"
    );
}

#[tokio::test]
async fn a_text_that_is_very_large_is_an_artifact_and_whole() {
    let diary = Diary::new("long");
    let tools = McpTools::default();
    let run = call(&scripted(&diary, "", "long", ""));
    let Raw::Made { result, made, .. } = tools.run(&run, &CancellationToken::new()).await else {
        panic!()
    };
    let told = result.as_str().unwrap();
    assert!(
        told.starts_with(
            "(it has 9000000 bytes; all of it is the artifact below; it begins:)\nxxx"
        ) && told.len() < 3_000,
        "{told}"
    );
    let [content] = &*made else { panic!() };
    assert_eq!(
        (&*content.name, &*content.media),
        ("s.long-21.1-1-text.txt", "text/plain")
    );
    assert!(content.bytes.len() == 9_000_000 && content.bytes.iter().all(|byte| *byte == b'x'));
}

#[tokio::test]
async fn a_server_that_never_answers_is_cut_by_its_time() {
    let diary = Diary::new("silent");
    let tools = McpTools::default();
    let network = scripted(&diary, "", "silent", "timeout: 300ms");
    assert_eq!(
        once(&tools, &network).await,
        "unknown: timeout again after 0: no answer within 300ms"
    );
    diary.until("told to cancel").await;
    // The connection still works.
    assert_eq!(
        once(&tools, &scripted(&diary, "", "echo", "timeout: 300ms")).await,
        r#"done: "hello""#
    );
    assert_eq!(diary.lines("started"), 1);
}

#[tokio::test]
async fn a_cancel_reaches_the_server() {
    let diary = Diary::new("cancel");
    let tools = McpTools::default();
    let network = scripted(&diary, "", "cancelled", "");
    let (run, cancel) = (call(&network), CancellationToken::new());
    let (raw, ()) = tokio::join!(tools.run(&run, &cancel), async {
        diary.until("cancel-me").await;
        cancel.cancel();
    });
    assert_eq!(shown(&raw), "unknown: cancelled: cancelled on the way");
    diary.until("told to cancel").await;
    // A call that is cancelled before it is sent did not happen.
    assert_eq!(
        shown(&tools.run(&run, &cancel).await),
        "not performed: cancelled: cancelled before it was sent"
    );
}

#[tokio::test]
async fn progress_is_told() {
    let diary = Diary::new("progress");
    let network = scripted(&diary, "", "patient", "");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = {
        let (heard, diary) = (heard.clone(), diary.0.clone());
        Arc::new(move |told: Heard| {
            heard.lock().unwrap().push(told);
            std::fs::write(&diary, "go\n").unwrap();
        })
    };
    let (run, cancel) = (call(&network), CancellationToken::new());
    let raw = McpTools::default().run_heard(&run, &cancel, hear).await;
    assert_eq!(shown(&raw), r#"done: "at last""#);
    let progress = Progress {
        done: 1.0,
        total: None,
        message: Some("half way".to_owned()),
    };
    assert_eq!(*heard.lock().unwrap(), [Heard::Progress(progress)]);
}

#[tokio::test]
async fn why_a_server_does_not_come_up_is_told() {
    let diary = Diary::new("greets");
    let tools = McpTools::default();
    let dead = refuses(&tools, &scripted(&diary, "dead", "echo", "")).await;
    assert!(
        dead.starts_with("the server ended before it greeted") && dead.contains("no licence found"),
        "{dead}"
    );
    // A call did provably not happen then.
    let call = once(&McpTools::default(), &scripted(&diary, "dead", "echo", "")).await;
    assert!(
        call.starts_with("not performed: failed again after 0: the server ended"),
        "{call}"
    );
    let mute = refuses(
        &tools,
        &scripted(&diary, "mute", "echo", "start_timeout: 300ms"),
    )
    .await;
    let told = "the server did not greet within 300ms (`start_timeout` allows more)";
    assert!(mute.starts_with(told), "{mute}");
    let noise = refuses(&tools, &scripted(&diary, "noise", "echo", "timeout: 10s")).await;
    assert!(
        noise.contains("it prints nothing that is a message") && noise.contains("I am no server"),
        "{noise}"
    );
    let missing = refuses(&tools, &of("command: [no-such-program-anywhere]", "echo")).await;
    assert!(
        missing.starts_with("`no-such-program-anywhere` cannot be started"),
        "{missing}"
    );
}

/// The server sends 1 KB. If the references in it were expanded without a bound, this test would not end.
#[tokio::test]
async fn a_schema_that_doubles_itself_is_refused_when_it_is_listed() {
    let diary = Diary::new("doubled");
    let said = refuses(
        &McpTools::default(),
        &scripted(&diary, "doubled", "doubled", ""),
    )
    .await;
    assert!(
        said.contains("the schema of the arguments of its tool `doubled` cannot be used: ")
            && said.contains("more than 10000 schemas"),
        "{said}"
    );
}

#[tokio::test]
async fn a_server_that_fails_again_and_again_is_left_alone_for_a_while() {
    let diary = Diary::new("backoff");
    let tools = McpTools::default();
    let network = scripted(&diary, "dead", "echo", "");
    refuses(&tools, &network).await;
    let second = refuses(&tools, &network).await;
    assert!(second.contains("before anything was answered"), "{second}");
    // Whether there is another attempt is not known here, so none is promised.
    assert!(
        second.ends_with("is left alone for less than a second"),
        "{second}"
    );
    assert_eq!(diary.lines("started"), 1);
}

#[tokio::test]
async fn only_what_is_taken_is_listed() {
    let diary = Diary::new("list");
    let tools = McpTools::default();
    let all = offers(&tools, &scripted(&diary, "", "echo", "")).await;
    let names = |listing: &Listing| {
        let names = listing.tools.iter().map(|tool| tool.name.clone());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&all), "echo fail refuse structured");
    assert_eq!(all.about, "faulty 1");
    assert!(all.tools[0].reads && !all.tools[1].reads);
    let some = scripted(&diary, "", "echo", "tools: ['*e*o', ref*]");
    assert_eq!(names(&offers(&tools, &some).await), "echo refuse");
    // A server may change its tools at any time, and the next list has the change.
    once(&tools, &scripted(&diary, "", "change", "")).await;
    let changed = offers(&tools, &scripted(&diary, "", "echo", "")).await;
    assert_eq!(names(&changed), "echo fail refuse structured new_one");
}

#[tokio::test]
async fn a_process_has_what_it_is_given_and_connections_are_not_shared_across_secrets() {
    let diary = Diary::new("env");
    let tools = McpTools::default().with_env(env(&[
        ("PATH", &process_env()("PATH").unwrap()),
        ("HOME", "/home/me"),
        ("OTHER", "not for it"),
    ]));
    let network = scripted(
        &diary,
        "",
        "environment",
        r#"env: { SECRET: "{{ secrets.token }}" }"#,
    );
    assert_eq!(
        once(&tools, &network).await,
        r#"done: "HOME=/home/me SECRET=tok-123456 OTHER=""#
    );
    let run = run_of(
        &network,
        "s.environment",
        json!({}),
        &env(&[("TOKEN", "tok-654321")]),
    );
    assert_eq!(
        shown(&tools.run(&run, &CancellationToken::new()).await),
        r#"done: "HOME=/home/me SECRET=tok-654321 OTHER=""#
    );
    assert_eq!(diary.lines("started"), 2);
}

#[tokio::test]
async fn an_idempotent_call_carries_its_key() {
    let diary = Diary::new("key");
    let tools = McpTools::default();
    let network = scripted(&diary, "", "key", "effect: idempotent");
    assert_eq!(once(&tools, &network).await, r#"done: "with a key""#);
    let network = scripted(&diary, "", "key", "effect: read");
    assert_eq!(once(&tools, &network).await, r#"done: "without""#);
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let run = ToolRun {
        trace: TraceParent::parse(trace),
        ..call(&network)
    };
    let traced = tools.run(&run, &CancellationToken::new()).await;
    assert_eq!(shown(&traced), r#"done: "with a trace""#);
}

#[tokio::test]
async fn a_server_ends_with_whoever_started_it() {
    let diary = Diary::new("ends");
    let tools = McpTools::default();
    let pid = once(&tools, &scripted(&diary, "", "pid", "")).await;
    let pid = pid
        .trim_start_matches("done: \"")
        .trim_end_matches('"')
        .to_owned();
    let alive = || Path::new("/proc").join(&pid).join("cmdline").exists();
    assert!(pid.parse::<u32>().is_ok() && alive(), "{pid}");
    drop(tools);
    while alive() {
        tokio::task::yield_now().await;
    }
}
