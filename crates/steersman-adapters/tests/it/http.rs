//! Tools over HTTP: what is sent, and what each answer means.

use crate::listener::{Frame, Listener, Reply};
use crate::tools::{env, network, run, run_of_t, shown, with_artifact};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_adapters::http::HttpTools;
use steersman_machine::network::Network;
use steersman_machine::view::mapping::Raw;
use steersman_runtime::Env;
use steersman_runtime::toolset::Toolset;
use steersman_runtime::trace::TraceParent;
use tokio_util::sync::CancellationToken;

/// A network whose tool `t` has this `http:` and these further lines.
fn tool(http: &str, more: &str) -> Arc<Network> {
    network(&format!(
        r"
config: {{ base: {{ type: string, env: BASE, live: true }} }}
secrets: {{ token: {{ env: TOKEN }}, other: {{ env: OTHER, optional: true }} }}
state: {{ session_token: {{ type: secret, optional: true }}, note: optional string }}
agents: {{ a: {{ system: Do., tools: [t] }} }}
tools:
  t:
    description: Does it.
    parameters: {{ id: string, n: optional integer, list: {{ items: string, optional: true }}, nested: optional any }}
    {more}
    http: {http}
"
    ))
}

fn envs(url: &str) -> Env {
    env(&[("BASE", url), ("TOKEN", "tok-123456")])
}

async fn once(server: &Listener, network: &Arc<Network>, names: Json) -> Raw {
    run(
        &HttpTools::default(),
        &run_of_t(network, names, &envs(&server.url)),
    )
    .await
}

fn ok() -> Reply {
    Reply::json(200, r#"{"ok":true}"#)
}

#[tokio::test]
async fn a_request_is_made_of_its_templates() {
    let network = tool(
        r#"{ method: POST, url: "{{ config.base }}/v1/{{ args.id }}/x?q={{ args.id }}", query: { n: "{{ args.n }}", none: "{{ state.note }}", list: "{{ args.list }}" },
             headers: { authorization: "Bearer {{ secrets.token }}", x-note: "{{ state.note }}", x-other: "{{ secrets.other }}", proxy-authorization: "Bearer {{ secrets.other }}", x-session: "{{ state.session_token }}" },
             json: { id: "{{ args.id }}", n: "{{ args.n }}", note: "{{ state.note }}", text: "n={{ args.n }}" } }"#,
        "effect: idempotent",
    );
    let server = Listener::new(vec![ok()]).await;
    let names = json!({ "args": { "id": "a/b ?&é..", "n": 3, "list": ["x y", "z"] },
                        "state": { "session_token": "sealed-777", "note": null } });
    assert_eq!(
        shown(&once(&server, &network, names).await),
        r#"done: {"ok":true}"#
    );
    let request = server.request();
    assert_eq!(
        request.line,
        "POST /v1/a%2Fb%20%3F%26%C3%A9../x?q=a%2Fb%20%3F%26%C3%A9..&list=x+y&list=z&n=3 HTTP/1.1"
    );
    assert_eq!(request.body, r#"{"id":"a/b ?&é..","n":3,"text":"n=3"}"#);
    let header = |name: &str| request.header(name).map(str::to_owned);
    assert_eq!(
        header("authorization").as_deref(),
        Some("Bearer tok-123456")
    );
    assert_eq!(header("x-session").as_deref(), Some("sealed-777"));
    assert_eq!(header("content-type").as_deref(), Some("application/json"));
    assert_eq!(header("idempotency-key").as_deref(), Some("k7wq.ab.21.1"));
    assert_eq!(
        (
            header("x-note"),
            header("x-other"),
            header("proxy-authorization")
        ),
        (None, None, None)
    );
}

#[tokio::test]
async fn forms_and_methods() {
    let server = Listener::new(vec![ok(), ok(), ok()]).await;
    let form = tool(
        r#"{ url: "{{ config.base }}/f", form: { a: "{{ args.id }}", none: "{{ args.n }}" } }"#,
        "effect: unsafe",
    );
    once(
        &server,
        &form,
        json!({ "args": { "id": "x&y z", "n": null } }),
    )
    .await;
    let get = tool(
        r#"{ url: "{{ config.base }}/g", query: "{{ args.nested }}" }"#,
        "effect: read",
    );
    once(
        &server,
        &get,
        json!({ "args": { "id": "", "nested": { "a": 1, "b": { "c": true } } } }),
    )
    .await;
    let delete = tool(
        r#"{ method: DELETE, url: "{{ config.base }}/d/{{ args.id }}", key_header: X-Key }"#,
        "effect: idempotent",
    );
    once(&server, &delete, json!({ "args": { "id": "7" } })).await;
    let requests = server.requests();
    let lines = requests
        .iter()
        .map(|r| (r.line.as_str(), r.body.as_str()))
        .collect::<Vec<_>>();
    assert_eq!(
        lines,
        [
            ("POST /f HTTP/1.1", "a=x%26y+z"),
            ("GET /g?a=1&b=%7B%22c%22%3Atrue%7D HTTP/1.1", ""),
            ("DELETE /d/7 HTTP/1.1", ""),
        ]
    );
    assert_eq!(requests[0].header("idempotency-key"), None);
    assert_eq!(requests[2].header("x-key"), Some("k7wq.ab.21.1"));
}

#[tokio::test]
async fn a_request_carries_the_trace_of_its_call() {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let server = Listener::new(vec![ok(), ok()]).await;
    let get = tool(r#"{ url: "{{ config.base }}/g" }"#, "effect: read");
    let names = json!({ "args": { "id": "" } });
    let mut call = run_of_t(&get, names, &envs(&server.url));
    run(&HttpTools::default(), &call).await;
    call.trace = TraceParent::parse(TRACE);
    run(&HttpTools::default(), &call).await;
    let requests = server.requests();
    assert_eq!(requests[0].header("traceparent"), None);
    assert_eq!(requests[1].header("traceparent"), Some(TRACE));
}

/// A value must not change where a request goes or what it says.
#[tokio::test]
async fn values_stay_in_their_place() {
    let server = Listener::new(Vec::new()).await;
    let path = tool(
        r#"{ url: "{{ config.base }}/accounts/{{ args.id }}/balance" }"#,
        "effect: read",
    );
    for id in ["..", ".", "%2e%2E"] {
        let raw = once(&server, &path, json!({ "args": { "id": id } })).await;
        let refused = shown(&raw).contains("makes `.` or `..` a part of the path");
        assert_eq!(refused, id != "%2e%2E", "{id}: {raw:?}");
    }
    let host = tool(
        r#"{ url: "{{ config.base }}{{ args.id }}" }"#,
        "effect: read",
    );
    let raw = once(
        &server,
        &host,
        json!({ "args": { "id": "@evil.example/x" } }),
    )
    .await;
    assert!(
        matches!(&raw, Raw::NotPerformed(fault) if fault.message.contains("is not a valid address")),
        "{raw:?}"
    );
    let header = tool(
        r#"{ url: "{{ config.base }}/", headers: { x-id: "{{ args.id }}" } }"#,
        "effect: read",
    );
    let raw = once(
        &server,
        &header,
        json!({ "args": { "id": "a\r\nx-evil: 1" } }),
    )
    .await;
    assert!(
        shown(&raw).contains("no header may hold") && !shown(&raw).contains("evil"),
        "{raw:?}"
    );
    let length = tool(
        r#"{ url: "{{ config.base }}/", headers: { Content-Length: "{{ args.id }}" } }"#,
        "effect: read",
    );
    let raw = once(&server, &length, json!({ "args": { "id": "0" } })).await;
    assert!(shown(&raw).contains("is set by itself"), "{raw:?}");
    let file = tool(r#"{ url: "{{ args.id }}" }"#, "effect: read");
    let raw = once(
        &server,
        &file,
        json!({ "args": { "id": "file:///etc/passwd" } }),
    )
    .await;
    assert!(shown(&raw).contains("neither http"), "{raw:?}");
    // The server gets the encoded text only: `%2e%2E` is a name there, and not the folder above.
    assert_eq!(
        server.request().line,
        "GET /accounts/%252e%252E/balance HTTP/1.1"
    );
    let raw_path = tool(
        r#"{ url: "{{ config.base }}/{{ args.id | raw }}" }"#,
        "effect: read",
    );
    once(&server, &raw_path, json!({ "args": { "id": "a/b?c=d" } })).await;
    assert_eq!(server.requests()[1].line, "GET /a/b?c=d HTTP/1.1");
}

#[tokio::test]
async fn every_status_has_its_meaning() {
    let statuses = [
        200, 201, 204, 302, 304, 400, 401, 404, 408, 409, 422, 429, 500, 502, 503, 504, 599,
    ];
    let network = tool(
        r#"{ method: POST, url: "{{ config.base }}/" }"#,
        "effect: unsafe",
    );
    let mut replies = statuses
        .iter()
        .map(|status| match status {
            204 => Reply::with(204, &[], ""),
            429 => Reply::with(429, &[("retry-after", "7")], "slow down"),
            503 => Reply::with(503, &[("retry-after", "2")], "later"),
            _ => Reply::with(*status, &[], "body"),
        })
        .collect::<Vec<_>>();
    replies.extend([
        ok(),
        Reply::with(502, &[], ""),
        Reply::with(418, &[], ""),
        Reply::with(409, &[], "there already"),
    ]);
    let server = Listener::new(replies).await;
    let mut text = String::new();
    for status in statuses {
        let raw = once(&server, &network, json!({ "args": { "id": "" } })).await;
        text += &[status.to_string(), shown(&raw)].join(": ");
        text.push('\n');
    }
    text.push_str("with outcomes:\n");
    let declared = tool(
        r#"{ method: POST, url: "{{ config.base }}/", outcomes: { "5xx": not_performed, "418": unknown, "409": done } }"#,
        "effect: unsafe",
    );
    for status in [200, 502, 418, 409] {
        let raw = once(&server, &declared, json!({ "args": { "id": "" } })).await;
        text += &[status.to_string(), shown(&raw)].join(": ");
        text.push('\n');
    }
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn a_body_is_saved_as_an_artifact_under_a_name_that_leads_nowhere_else() {
    let network = tool(
        r#"{ url: "{{ config.base }}/", save: "mail/{{ args.id }}.pdf" }"#,
        "effect: read",
    );
    let pdf = Reply::with(
        200,
        &[("content-type", "application/pdf; q=1")],
        *b"%PDF-1.7",
    );
    let server = Listener::new(vec![pdf]).await;
    let got = once(&server, &network, json!({ "args": { "id": "4711" } })).await;
    assert_eq!(
        shown(&got),
        "done: \"mail/4711.pdf\", made mail/4711.pdf application/pdf 8 bytes"
    );
    let got = once(&server, &network, json!({ "args": { "id": "../../x" } })).await;
    let told = shown(&got);
    assert!(told.starts_with("not performed: failed: `save`"), "{told}");
    assert_eq!(
        server.connections(),
        1,
        "nothing was sent under a wrong name"
    );
}

#[tokio::test]
async fn an_artifact_is_the_body_of_a_request() {
    let network = tool(
        r#"{ method: PUT, url: "{{ config.base }}/", file: "{{ args.id }}" }"#,
        "effect: idempotent",
    );
    let server = Listener::new(vec![ok()]).await;
    let mut run_of = run_of_t(
        &network,
        json!({ "args": { "id": "report.md" } }),
        &envs(&server.url),
    );
    let tools = HttpTools::default();
    let missing = shown(&run(&tools, &run_of).await);
    assert_eq!(
        missing,
        "not performed: failed: `file`: there is no artifact `report.md`; there are none"
    );
    run_of.artifacts = with_artifact("report.md", "text/markdown", b"# All is well").await;
    assert_eq!(shown(&run(&tools, &run_of).await), r#"done: {"ok":true}"#);
    let request = &server.requests()[0];
    assert_eq!(request.header("content-type"), Some("text/markdown"));
    assert_eq!(request.body, "# All is well");
}

#[tokio::test]
async fn results_are_json_or_text() {
    let network = tool(r#"{ url: "{{ config.base }}/" }"#, "effect: read");
    let text = ("content-type", "text/plain");
    let server = Listener::new(vec![
        Reply::json(200, "[1, 2]"),
        Reply::json(200, "3"),
        Reply::json(200, "{broken"),
        Reply::with(200, &[text], "42"),
        Reply::with(200, &[text], r#"{"a": 1}"#),
        Reply::with(200, &[text], ""),
        Reply::with(200, &[("content-type", "image/png")], [0xff, 0xd8, 0x00]),
        Reply::with(200, &[text], vec![b'x'; (10 << 20) + 1]),
    ])
    .await;
    let tools = HttpTools::default();
    let mut got = Vec::new();
    for _ in 0..8 {
        let run_of = run_of_t(
            &network,
            json!({ "args": { "id": "" } }),
            &envs(&server.url),
        );
        got.push(shown(&run(&tools, &run_of).await));
    }
    assert_eq!(
        got,
        [
            "done: [1,2]",
            "done: 3",
            "done: \"{broken\"",
            "done: \"42\"",
            "done: {\"a\":1}",
            "done: null",
            "done: \"(3 bytes of image/png, kept as the artifact `t-21.1.png`)\", made t-21.1.png image/png 3 bytes",
            "done: \"(the answer is larger than 10 MiB and was not read)\"",
        ]
    );
    assert_eq!(server.connections(), 1, "the connection is used again");
}

#[tokio::test]
async fn what_cannot_be_known_is_unknown() {
    let slow = r#"{ method: POST, url: "{{ config.base }}/" }"#;
    let (network, hasty) = (
        tool(slow, "effect: unsafe"),
        tool(slow, "effect: unsafe\n    timeout: 50ms"),
    );
    let half = Frame::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf".to_vec());
    let replies = [vec![Frame::Cut], vec![half, Frame::Cut], vec![Frame::Stall]];
    let server = Listener::new(replies.map(Reply).to_vec()).await;
    let mut codes = Vec::new();
    for network in [&network, &network, &hasty] {
        let raw = once(&server, network, json!({ "args": { "id": "" } })).await;
        let Raw::Unknown(fault) = raw else {
            panic!("{raw:?}")
        };
        codes.push((fault.code, fault.status));
    }
    let failed = "failed".to_owned();
    assert_eq!(
        codes,
        [
            (failed.clone(), None),
            (failed, Some(200)),
            ("timeout".to_owned(), None)
        ]
    );

    let gone = server.url.clone();
    drop(server);
    tokio::task::yield_now().await;
    let run_of = run_of_t(&network, json!({ "args": { "id": "" } }), &envs(&gone));
    let raw = run(&HttpTools::default(), &run_of).await;
    let Raw::NotPerformed(fault) = raw else {
        panic!("{raw:?}")
    };
    assert_eq!((fault.code.as_str(), fault.again), ("failed", Some(0)));
}

#[tokio::test]
async fn time_that_is_over_before_there_is_a_connection_proves_that_nothing_was_sent() {
    // The server takes the connection and says nothing. Without TLS there is no connection to send on.
    let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", deaf.local_addr().unwrap());
    let network = tool(
        r#"{ method: POST, url: "{{ config.base }}/", json: { a: 1 } }"#,
        "effect: unsafe\n    timeout: 300ms",
    );
    let run_of = run_of_t(&network, json!({ "args": { "id": "" } }), &envs(&url));
    let raw = run(&HttpTools::default(), &run_of).await;
    let Raw::NotPerformed(fault) = raw else {
        panic!("{raw:?}")
    };
    assert_eq!((&*fault.code, fault.again), ("timeout", Some(0)));
    assert!(fault.message.starts_with("no connection"), "{fault:?}");
}

#[tokio::test]
async fn a_cancelled_request_is_unknown_and_one_not_begun_is_not_performed() {
    let network = tool(
        r#"{ method: POST, url: "{{ config.base }}/" }"#,
        "effect: unsafe",
    );
    let server = Listener::new(vec![Reply(vec![Frame::Stall])]).await;
    let run = run_of_t(
        &network,
        json!({ "args": { "id": "" } }),
        &envs(&server.url),
    );
    let cancel = CancellationToken::new();
    let task = tokio::spawn({
        let (run, cancel) = (run.clone(), cancel.clone());
        async move { HttpTools::default().run(&run, &cancel).await }
    });
    while server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert_eq!(
        shown(&task.await.unwrap()),
        "unknown: cancelled: cancelled on the way"
    );
    let raw = HttpTools::default().run(&run, &cancel).await;
    assert_eq!(
        shown(&raw),
        "not performed: cancelled: cancelled before it was sent"
    );
}

/// A secret that a server repeats in an error is taken out of it, whether it was declared or sealed.
#[tokio::test]
async fn secrets_never_stand_in_errors() {
    let network = tool(
        r#"{ url: "{{ config.base }}/{{ secrets.token }}", headers: { x: "{{ state.session_token }}" } }"#,
        "effect: read",
    );
    let names = json!({ "args": { "id": "" }, "state": { "session_token": "sealed-777" } });
    let server = Listener::new(vec![
        Reply::with(401, &[], "bad token tok-123456 of session sealed-777"),
        Reply(vec![Frame::Cut]),
    ])
    .await;
    let raw = once(&server, &network, names.clone()).await;
    assert_eq!(
        shown(&raw),
        "not performed: http_401 401: status 401 Unauthorized: bad token (secret) of session (secret)"
    );
    let raw = once(&server, &network, names.clone()).await;
    assert!(!shown(&raw).contains("tok-"), "{raw:?}");
    // An address that cannot be parsed is reported without the secret in it.
    let broken = tool(
        r#"{ url: "http://[{{ secrets.token | raw }}/" }"#,
        "effect: read",
    );
    let raw = once(&server, &broken, names).await;
    assert!(
        matches!(raw, Raw::NotPerformed(_)) && !shown(&raw).contains("tok-"),
        "{raw:?}"
    );
}

#[tokio::test]
async fn redirects_stay_at_home_and_change_nothing() {
    let elsewhere = Listener::new(vec![ok()]).await;
    let away = Reply::with(302, &[("location", &elsewhere.url)], "");
    let near = Reply::with(302, &[("location", "/there")], "");
    let server = Listener::new(vec![
        near,
        ok(),
        away,
        Reply::with(307, &[("location", "/there")], ""),
    ])
    .await;
    let get = tool(
        r#"{ url: "{{ config.base }}/", headers: { x-key: "{{ secrets.token }}" } }"#,
        "effect: read",
    );
    let post = tool(
        r#"{ method: POST, url: "{{ config.base }}/" }"#,
        "effect: unsafe",
    );
    let names = json!({ "args": { "id": "" } });
    assert_eq!(
        shown(&once(&server, &get, names.clone()).await),
        r#"done: {"ok":true}"#
    );
    assert!(shown(&once(&server, &get, names.clone()).await).starts_with("unknown: http_302"));
    assert!(shown(&once(&server, &post, names).await).starts_with("unknown: http_307"));
    assert!(
        elsewhere.requests().is_empty(),
        "a secret must not leave for another host"
    );
}
