//! Pictures, columns, differences, checks, the server itself, and the stream of sessions.

use crate::world::{SCRIPT, World, encoded};
use serde_json::{Value as Json, json};

#[tokio::test]
async fn graphs_are_drawn() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let session = all.start("Broken.").await;
    for path in [
        format!("/v1/sessions/{session}/graph.svg"),
        "/v1/definitions/desk/graph.svg".to_owned(),
    ] {
        let answer = all.get(&path).await;
        assert_eq!(answer.headers["content-type"], "image/svg+xml");
        assert!(
            answer.headers["content-security-policy"]
                .to_str()
                .unwrap()
                .contains("sandbox")
        );
        let picture = answer.is(200);
        let picture = picture.as_str().unwrap();
        assert!(
            picture.contains("<svg ") && picture.contains("refund"),
            "{picture}"
        );
    }
    all.get("/v1/definitions/none/graph.svg")
        .await
        .fails(404, "definition");
    let path = format!("/v1/sessions/{session}/graph.svg?branch=none");
    all.get(&path).await.fails(404, "branch");
}

/// The lines of the entries of a map.
fn lines(map: &Json) -> Vec<u64> {
    let deltas = map["lines"].as_array().unwrap().iter();
    let mut line = 0;
    let lines = deltas.map(|delta| {
        line += delta.as_u64().unwrap();
        line
    });
    lines.collect()
}

#[tokio::test]
async fn a_session_is_read_as_columns_and_in_parts() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let session = all.start("Broken.").await;
    let place = format!("/v1/sessions/{session}/map");
    let map = async |query: &str| all.get(&format!("{place}{query}")).await.is(200);
    let whole = map("").await;
    let entries = lines(&whole);
    for column in ["k", "at", "branch", "agent", "flags"] {
        assert_eq!(
            whole[column].as_array().unwrap().len(),
            entries.len(),
            "{column}"
        );
    }
    assert_eq!(whole["kind"].as_str().unwrap().len(), entries.len());
    assert_eq!(whole["waits"][0]["kind"], "approval", "{whole:#}");
    let head = whole["head"].as_u64().unwrap();
    assert_eq!(
        whole["cursor"].as_str().unwrap().split('.').next().unwrap(),
        head.to_string()
    );

    // Behind a line, up to a line, each second, of a branch.
    let middle = entries[entries.len() / 2];
    let behind: Vec<u64> = entries
        .iter()
        .copied()
        .filter(|line| *line > middle)
        .collect();
    assert_eq!(lines(&map(&format!("?since={middle}")).await), behind);
    let before: Vec<u64> = entries
        .iter()
        .copied()
        .filter(|line| *line <= middle)
        .collect();
    let until = map(&format!("?until={middle}")).await;
    assert_eq!(lines(&until), before);
    assert_eq!(until["head"], middle);
    let second: Vec<u64> = entries.iter().copied().step_by(2).collect();
    assert_eq!(lines(&map("?every=2").await), second);
    assert_eq!(lines(&map("?branch=main").await), entries);
    assert_eq!(lines(&map(&format!("?since={head}")).await), [0; 0]);
    all.get(&format!("{place}?every=0"))
        .await
        .fails(400, "query");
    all.get(&format!("{place}?branch=none"))
        .await
        .fails(404, "branch");

    // The events behind the cursor begin where the map ends.
    let cursor = whole["cursor"].as_str().unwrap().to_owned();
    let question = all.question(&session).await;
    let path = format!("/v1/sessions/{session}/questions/{question}/reject");
    all.post(&path, json!({ "as": "manager" })).await.is(202);
    let path = format!("/v1/sessions/{session}/events?from={cursor}&until=settled");
    let frames = all.stream(&path, None).await.rest().await;
    let first = frames.iter().find_map(|frame| frame.data["line"].as_u64());
    assert!(first.unwrap() > head, "{frames:#?}");
}

#[tokio::test]
async fn sessions_and_branches_are_compared() {
    let world = World::new("desk: [ One., { any: [ Two., Three. ] }, Four. ]").await;
    let all = world.all("").await;
    let a = all.start("Hello.").await;
    let b = all.start("Hello.").await;
    let same = all.get(&format!("/v1/diff?a={a}&b={b}")).await.is(200);
    let other = all.say(&b, "More.").await;
    assert_eq!(other["status"], "answered");
    let differs = all.get(&format!("/v1/diff?a={a}&b={b}:main")).await.is(200);
    assert_ne!(same, differs);
    assert!(differs.to_string().contains("One."), "{differs:#}");
    all.get(&format!("/v1/diff?a={a}&b={b}:none"))
        .await
        .fails(404, "branch");
    all.get(&format!("/v1/diff?a={a}&b=aa0000000000zzzz"))
        .await
        .fails(404, "session");
    all.get(&format!("/v1/diff?a={a}"))
        .await
        .fails(400, "query");
}

#[tokio::test]
async fn a_definition_is_checked_without_files_of_the_server() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let check = async |body: Json| all.post("/v1/check", body).await.is(200);
    let right =
        check(json!({ "text": "steersman: 1\nname: a\nagents: { a: { system: You help. } }\n" }))
            .await;
    assert_eq!(
        (&right["ok"], &right["network"]),
        (&json!(true), &json!("a")),
        "{right:#}"
    );
    let wrong =
        check(json!({ "text": "steersman: 1\nagents: { a: { systen: You help. } }\n" })).await;
    assert_eq!(wrong["ok"], false);
    let fault = &wrong["diagnostics"][0];
    assert!(
        fault["code"].as_str().unwrap().starts_with('E'),
        "{wrong:#}"
    );
    assert_eq!(
        (&fault["severity"], &fault["line"]),
        (&json!("error"), &json!(2))
    );
    // A file that a definition names comes with it.
    let text = "steersman: 1\nagents: { a: { system: prompt.md } }\n";
    let files = check(json!({ "text": text, "files": { "prompt.md": "You help." } })).await;
    assert_eq!(files["ok"], true, "{files:#}");
    let missing = check(json!({ "text": text })).await;
    assert_eq!(missing["ok"], false, "{missing:#}");
    // A tool in Rust is no fault: who runs the definition registers it.
    let native = check(json!({ "text": crate::world::DESK })).await;
    assert_eq!(native["ok"], true, "{native:#}");
}

#[tokio::test]
async fn the_server_is_shown_to_its_administrators() {
    let world = World::new(SCRIPT).await;
    let server = world.all("").await.get("/v1/server").await.is(200);
    assert_eq!(server["definitions"], json!(["desk"]));
    assert_eq!(server["driving"], true);
    world
        .all("acme")
        .await
        .get("/v1/server")
        .await
        .fails(403, "scope");
}

#[tokio::test]
async fn sessions_are_followed_as_they_change() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let path = format!("/v1/events/stream?where={}", encoded("status = waits"));
    let mut stream = all.stream(&path, None).await;
    let hello = stream.next().await.unwrap();
    assert_eq!((&*hello.event, &hello.id), ("hello", &None));
    let session = all.start("Broken.").await;
    // Before it waits, the filter does not let it through.
    let row = loop {
        let frame = stream.next().await.unwrap();
        assert_eq!(frame.data["session"], json!(session), "{frame:?}");
        if frame.event == "session" {
            break frame;
        }
        assert_eq!(frame.event, "left");
    };
    assert_eq!(row.id, None);
    let listed = all.get("/v1/sessions").await.is(200);
    let row = &row.data;
    assert_eq!(row["status"], listed["items"][0]["status"]);
    let keys = |row: &Json| row.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(row), keys(&listed["items"][0]), "it is a row of lists");

    let question = all.question(&session).await;
    let path = format!("/v1/sessions/{session}/questions/{question}/reject");
    all.post(&path, json!({ "as": "manager" })).await.is(202);
    let left = loop {
        let frame = stream.next().await.unwrap();
        if frame.event == "left" {
            break frame;
        }
    };
    assert_eq!(left.data, json!({ "session": session }));
    world.server.stop();
    while stream.next().await.is_some() {}
}
