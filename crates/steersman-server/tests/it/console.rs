//! The console: its files, the way they are served, and what it asks the API for.

use crate::world::{Answer, SCRIPT, World, whole};
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::{Console, NewToken, Options, Permission};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("console")
}

/// All files of the console, by their paths below its folder.
fn files() -> Vec<(String, Vec<u8>)> {
    let (mut found, mut folders) = (Vec::new(), vec![folder()]);
    while let Some(of) = folders.pop() {
        for entry in fs::read_dir(of).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder()).unwrap();
            found.push((name.to_str().unwrap().to_owned(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// True for what a browser loads.
fn is_served(name: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap();
    ["html", "css", "mjs", "svg"].contains(&ending)
}

async fn world(console: Option<Console>) -> World {
    let options = Options {
        console,
        ..Options::default()
    };
    World::over(Arc::new(MemoryStore::new()), SCRIPT, options).await
}

async fn get(world: &World, path: &str) -> Answer {
    Answer::of(world.client.get(format!("{}{path}", world.at))).await
}

#[test]
fn the_libraries_are_those_that_the_list_names() {
    let list = fs::read_to_string(folder().join("vendor/VENDOR.md")).unwrap();
    let mut listed = BTreeSet::new();
    for row in list.lines().filter(|row| row.contains(".mjs |")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [file, package, version, licence, _, published, here] = cells[..] else {
            panic!("{row}")
        };
        let bytes = fs::read(folder().join("vendor").join(file)).unwrap();
        let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
        assert_eq!(format!("{digest:?}"), format!("SHA256:{here}"), "{file}");
        // Only the import of the hooks differs from what was published.
        assert_eq!(published != here, file == "hooks.mjs", "{file}");
        assert!(!version.is_empty() && ["MIT", "Apache-2.0"].contains(&licence));
        let terms = format!("vendor/{package}.LICENSE");
        assert!(folder().join(&terms).is_file(), "{terms}");
        listed.insert(file.to_owned());
    }
    let there = files().into_iter().filter(|(name, _)| is_served(name));
    let there = there.filter_map(|(name, _)| Some(name.strip_prefix("vendor/")?.to_owned()));
    assert_eq!(listed, there.collect::<BTreeSet<_>>());
}

#[test]
fn the_files_are_small_and_make_no_markup_of_texts() {
    let mut lines = 0;
    for (name, bytes) in files().into_iter().filter(|(name, _)| is_served(name)) {
        let text = String::from_utf8(bytes).unwrap();
        if name.starts_with("vendor/") {
            continue;
        }
        lines += text.lines().count();
        // Nothing follows a comment on its line, because the program serves the line empty.
        for line in text.lines().map(str::trim) {
            let is_whole = !line.starts_with("/*") || !line.contains("*/") || line.ends_with("*/");
            assert!(is_whole, "{name}: {line}");
        }
        assert!(text.lines().count() < 800, "{name}");
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "javascript:",
            "http://",
            "https://",
        ] {
            // The name of a namespace of XML is no address, and a pattern of links names their schemes.
            let uses = text.lines().filter(|line| line.contains(word));
            let mut uses = uses.filter(|line| !line.contains("www.w3.org/2000/svg"));
            assert_eq!(uses.next(), None, "{name}: {word}");
        }
        if name == "index.html" {
            assert!(!text.contains("style=") && !text.contains(" on"), "{text}");
        }
    }
    assert!(lines > 1000, "{lines}");
}

#[tokio::test]
async fn all_that_a_browser_loads_is_small() {
    let world = world(Some(Console::Embedded)).await;
    let (mut all, mut packed) = (0, GzEncoder::new(Vec::new(), Compression::best()));
    for (name, _) in files().into_iter().filter(|(name, _)| is_served(name)) {
        let answer = get(&world, &format!("/console/{name}")).await.is(200);
        let text = answer.as_str().unwrap().to_owned();
        all += text.len();
        packed.write_all(text.as_bytes()).unwrap();
    }
    let packed = packed.finish().unwrap().len();
    assert!(all <= 250 * 1024, "the console has {all} bytes");
    assert!(
        packed <= 70 * 1024,
        "the console has {packed} bytes, packed"
    );
}

/// The source without what is a comment, and without indents, line for line. No text of the console has a line that looks like one.
fn bare(name: &str, text: &str) -> String {
    let is_code = matches!(name.rsplit('.').next(), Some("mjs" | "css"));
    let mut is_inside = false;
    let line = |line: &str| {
        let line = line.trim_end_matches('\n');
        is_inside |= line.trim().starts_with("/*");
        let is_comment = is_inside || line.trim().starts_with("//");
        is_inside &= !line.trim().ends_with("*/");
        let kept = match (is_code, is_comment) {
            (false, _) => line,
            (true, false) => line.trim_start_matches(' '),
            (true, true) => "",
        };
        format!("{kept}\n")
    };
    text.split_inclusive('\n').map(line).collect()
}

#[tokio::test]
async fn the_program_has_all_files_of_the_folder() {
    let world = world(Some(Console::Embedded)).await;
    for (name, bytes) in files() {
        let answer = get(&world, &format!("/console/{name}")).await;
        if !is_served(&name) {
            answer.fails(404, "path");
            continue;
        }
        let media = answer.headers["content-type"].to_str().unwrap().to_owned();
        let known = match name.rsplit('.').next().unwrap() {
            "html" => "text/html; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "mjs" => "text/javascript; charset=utf-8",
            _ => "image/svg+xml",
        };
        assert_eq!(media, known, "{name}");
        let (got, text) = (answer.is(200), String::from_utf8(bytes).unwrap());
        let got = got.as_str().unwrap();
        assert_eq!(got.lines().count(), text.lines().count(), "{name}");
        assert_eq!(got.trim_end(), bare(&name, &text).trim_end(), "{name}");
        let is_comment = |line: &&str| line.trim_start().starts_with("/*");
        assert_eq!(got.lines().find(is_comment), None, "{name}");
    }
    for wrong in ["main.js", "../Cargo.toml", "%2e%2e/Cargo.toml", ""] {
        let answer = get(&world, &format!("/console/{wrong}")).await;
        assert_eq!(answer.status, 404, "{wrong}");
    }
}

#[tokio::test]
async fn a_browser_runs_nothing_else_and_asks_again_after_an_upgrade() {
    let world = world(Some(Console::Embedded)).await;
    let page = get(&world, "/").await;
    assert_eq!(page.status, 200);
    let of = |name: &str| page.headers[name].to_str().unwrap().to_owned();
    let policy = of("content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(of("cache-control"), "no-cache");
    assert_eq!(of("x-content-type-options"), "nosniff");
    assert_eq!(of("referrer-policy"), "no-referrer");
    let again = |tag: &str| {
        let request = world.client.get(format!("{}/", world.at));
        Answer::of(request.header("if-none-match", tag))
    };
    assert_eq!(again(&of("etag")).await.status, 304);
    assert_eq!(again("\"another\"").await.status, 200);
}

#[tokio::test]
async fn a_program_of_its_own_has_its_root_for_itself() {
    let world = world(None).await;
    get(&world, "/").await.fails(404, "path");
    get(&world, "/console/main.mjs").await.fails(404, "path");
}

#[tokio::test]
async fn a_folder_is_served_and_nothing_beside_it() {
    let folder = std::env::temp_dir().join(format!("steersman-console-{}", std::process::id()));
    fs::create_dir_all(folder.join("inside")).unwrap();
    fs::write(folder.join("inside/index.html"), "<p>mine</p>").unwrap();
    fs::write(folder.join("secret"), "tiger").unwrap();
    let world = world(Some(Console::Folder(folder.join("inside")))).await;
    assert_eq!(get(&world, "/").await.is(200), "<p>mine</p>");
    fs::write(folder.join("inside/index.html"), "<p>changed</p>").unwrap();
    assert_eq!(get(&world, "/").await.is(200), "<p>changed</p>");
    for way in ["%2e%2e/secret", "..%2fsecret", "inside/..%2f..%2fsecret"] {
        get(&world, &format!("/console/{way}"))
            .await
            .fails(404, "path");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_code_is_exchanged_once_for_the_token_that_asked_for_it() {
    let world = World::new(SCRIPT).await;
    let bob = NewToken {
        allows: vec![Permission::Read],
        ..whole("acme")
    };
    let bob = world.with(world.token(bob).await);
    let exchange = |code: &Json| {
        let request = world.client.post(format!("{}/v1/token/exchange", world.at));
        Answer::of(request.json(&json!({ "code": code })))
    };
    let made = bob.post("/v1/token/code", json!({})).await;
    assert_eq!(made.headers["cache-control"], "no-store");
    let code = made.is(201)["code"].clone();
    assert!(!bob.token.contains(code.as_str().unwrap()));
    let got = exchange(&code).await.is(200);
    assert_eq!(got["token"], bob.token);
    exchange(&code).await.fails(401, "token");
    exchange(&json!("another")).await.fails(401, "token");
    let none = world.client.post(format!("{}/v1/token/code", world.at));
    Answer::of(none.json(&json!({}))).await.fails(401, "token");
    // A code of a token that was revoked leads to a token that opens nothing.
    let code = bob.post("/v1/token/code", json!({})).await.is(201)["code"].clone();
    let name = bob.token.split('_').nth(1).unwrap();
    let acme = world.all("acme").await;
    let gone = acme.request(Method::DELETE, &format!("/v1/tokens/{name}"));
    assert_eq!(Answer::of(gone).await.status, 204);
    let token = exchange(&code).await.is(200)["token"].clone();
    let late = world.with(token.as_str().unwrap().to_owned());
    late.get("/v1/me").await.fails(401, "token");
}

#[tokio::test]
async fn guesses_of_codes_are_counted_like_those_of_tokens() {
    let options = Options {
        limits: steersman_server::Limits {
            failures: 3,
            ..steersman_server::Limits::default()
        },
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), SCRIPT, options).await;
    let guess = || {
        let request = world.client.post(format!("{}/v1/token/exchange", world.at));
        Answer::of(request.json(&json!({ "code": "abc" })))
    };
    let mut refused = 0;
    for _ in 0..8 {
        refused += u32::from(guess().await.status == 429);
    }
    assert!(refused > 0);
}

#[tokio::test]
async fn who_has_no_token_sends_no_more_than_a_code() {
    let world = World::new(SCRIPT).await;
    let request = world.client.post(format!("{}/v1/token/exchange", world.at));
    let long = json!({ "code": "a".repeat(2_000) });
    Answer::of(request.json(&long))
        .await
        .fails(413, "too_large");
}

#[tokio::test]
async fn a_story_is_read_in_pages_from_both_ends() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let session = all.start("My kettle is broken.").await;
    let question = all.question(&session).await;
    let approve = format!("/v1/sessions/{session}/questions/{question}/approve");
    all.post(&approve, json!({ "as": "manager" })).await.is(202);
    for text in ["And now?", "Once more."] {
        all.say(&session, text).await;
    }
    let place = format!("/v1/sessions/{session}/story");
    let whole = all.get(&place).await.is(200);
    let rows = whole["items"].as_array().unwrap().clone();
    assert!(rows.len() > 8, "{whole:#}");
    assert_eq!(
        (&whole["before"], &whole["next"]),
        (&Json::Null, &Json::Null)
    );
    let tones: BTreeSet<&str> = rows
        .iter()
        .map(|row| row["tone"].as_str().unwrap())
        .collect();
    for tone in ["said", "called", "asked", "decided", "came"] {
        assert!(tones.contains(tone), "{tones:?}");
    }
    // Pages from the beginning, and from the end, have each row once.
    let (mut forth, mut from) = (Vec::new(), 0);
    loop {
        let page = all
            .get(&format!("{place}?limit=3&from={from}"))
            .await
            .is(200);
        forth.extend(page["items"].as_array().unwrap().clone());
        match page["next"].as_u64() {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!(forth, rows);
    let (mut back, mut to) = (Vec::new(), String::new());
    loop {
        let page = all
            .get(&format!("{place}?limit=3&last=true{to}"))
            .await
            .is(200);
        let mut part = page["items"].as_array().unwrap().clone();
        part.extend(back);
        back = part;
        match page["before"].as_u64() {
            Some(before) => to = format!("&to={before}"),
            None => break,
        }
    }
    assert_eq!(back, rows);
    let short = all.get(&format!("{place}?chars=5")).await.is(200);
    assert_eq!(short["items"][0]["text"], "My ke");
    assert_eq!(short["items"][0]["cut"], true);
    all.get(&format!("{place}?limit=0"))
        .await
        .fails(400, "query");
    all.get(&format!("{place}?from=3&to=2"))
        .await
        .fails(400, "query");
    all.get(&format!("{place}?branch=none"))
        .await
        .fails(404, "branch");
}

#[tokio::test]
async fn a_question_in_a_list_names_its_definition() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let session = all.start("My kettle is broken.").await;
    for path in [
        "/v1/questions",
        &format!("/v1/sessions/{session}/questions"),
    ] {
        let found = all.get(path).await.is(200);
        assert_eq!(found["items"][0]["network"], "desk", "{found:#}");
    }
}

/// A protocol hands out the page of a question to a client that may not decide it; `x-forwarded-proto` says how the client came.
#[tokio::test]
async fn each_protocol_hands_out_the_page_where_people_decide() {
    let world = world(Some(Console::Embedded)).await;
    let clerk = NewToken {
        allows: vec![Permission::Read, Permission::Write],
        ..whole("")
    };
    let clerk = world.with(world.token(clerk).await);
    let broken = "My kettle is broken.";
    let message = json!([{ "id": "m", "role": "user", "content": broken }]);
    let chat = json!({ "model": "desk", "messages": [{ "role": "user", "content": broken }] });
    let response = json!({ "model": "desk", "input": broken });
    let parts = json!([{ "text": broken }]);
    let task = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": parts } });
    let task = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": task });
    let run = json!({
        "threadId": "t", "runId": "r", "messages": message, "tools": [], "context": [], "state": {}, "forwardedProps": {},
    });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "desk", "arguments": { "message": broken }, "_meta": meta });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    for (path, body) in [
        ("/openai/v1/chat/completions", chat),
        ("/openai/v1/responses", response),
        ("/a2a/desk", task),
        ("/agui/desk", run),
        ("/mcp", call),
    ] {
        let request = clerk.request(Method::POST, path).json(&body);
        let request = request.header("a2a-version", "1.0");
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("mcp-protocol-version", "2026-07-28");
        let request = request.header("mcp-method", "tools/call");
        let request = request.header("mcp-name", "desk");
        let request = request.header("x-forwarded-proto", "https");
        let answer = request.send().await.unwrap();
        let text = answer.text().await.unwrap();
        let page = format!("{}/#/s/", world.at.replace("http://", "https://"));
        let at = text.find(&page).unwrap_or_else(|| panic!("{path}: {text}"));
        let page: String = (text[at..].chars())
            .take_while(|c| c.is_ascii_alphanumeric() || "/:#.@".contains(*c))
            .collect();
        let (session, question) = page.rsplit_once("/q/").expect(&page);
        let session = session.rsplit_once('/').unwrap().1;
        let all = world.all("").await;
        assert_eq!(all.question(session).await.replace("%40", "@"), question);
        assert!(!text.contains("steersman approve"), "{path}: {text}");
    }
}
