//! Pages, lists and views.

use crate::world::{Answer, SCRIPT, World};
use reqwest::Method;
use serde_json::{Value as Json, json};

#[tokio::test]
async fn a_page_is_sent_again_only_after_a_new_line() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let session = all.start("My kettle is broken.").await;
    let path = format!("/v1/sessions/{session}");
    // A line after the question gives back the tokens that the call had set aside and not used.
    let (page, tag) = loop {
        let page = all.get(&path).await;
        let tag = page.headers["etag"].clone();
        let request = all.request(Method::GET, &path);
        let again = request.header("if-none-match", &tag);
        if Answer::of(again).await.status == 304 {
            break (page.is(200), tag);
        }
    };
    assert_eq!(page["session"], session);
    assert_eq!(page["status"], "waits");
    assert_eq!(page["agents"][0]["name"], "desk");
    assert_eq!(format!("\"{}\"", page["line"]), tag.to_str().unwrap());
    let again = || {
        Answer::of(
            all.request(Method::GET, &path)
                .header("if-none-match", &tag),
        )
    };
    assert_eq!(again().await.status, 304);
    let question = all.question(&session).await;
    let place = format!("{path}/questions/{question}/reject");
    all.post(&place, json!({ "as": "manager" })).await.is(202);
    assert_eq!(again().await.status, 200);
    all.get("/v1/sessions/aa0000000000zzzz")
        .await
        .fails(404, "session");
    // The beginning of an id is not an id.
    all.get(&format!("/v1/sessions/{}", &session[..8]))
        .await
        .fails(404, "session");
}

#[tokio::test]
async fn a_list_is_read_in_pages() {
    let world = World::new("desk: [ One., Two., Three., Four., Five. ]").await;
    let all = world.all("").await;
    let mut made = Vec::new();
    for n in 0..5 {
        made.push(all.start(&format!("Hello {n}.")).await);
    }
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = all
            .get(&format!("/v1/sessions?limit=2{after}"))
            .await
            .is(200);
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        found.extend(
            items
                .iter()
                .map(|row| row["session"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else {
            break;
        };
        after = format!("&after={next}");
    }
    made.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, made);
    let none = all.get("/v1/sessions?status=failed,limit").await.is(200);
    assert_eq!(none["items"], json!([]));
    let some = all
        .get("/v1/sessions?status=answered&definition=desk")
        .await
        .is(200);
    assert_eq!(some["items"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn views_tell_what_happened_and_why() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let session = all.start("My kettle is broken.").await;
    let question = all.question(&session).await;
    let place = format!("/v1/sessions/{session}");
    let approve = json!({ "as": "manager" });
    all.post(&format!("{place}/questions/{question}/approve"), approve)
        .await
        .is(202);
    let turn = all.say(&session, "Thank you.").await;
    assert_eq!(turn["status"], "answered", "{turn:#}");
    let view = |path: &str| {
        let path = format!("{place}/{path}");
        let all = &all;
        async move { all.get(&path).await.is(200) }
    };

    let effects = view("effects").await;
    assert_eq!(effects["items"][0]["tool"], "refund", "{effects:#}");
    assert_eq!(effects["sums"]["refund"]["done"], 1);
    let effect = question.split('@').next().unwrap();
    let why = view(&format!("why/{effect}")).await;
    assert!(
        why["steps"][0]["text"].as_str().unwrap().contains("refund"),
        "{why:#}"
    );
    assert!(view("state").await["state"].is_object());
    let lines = view("lines?limit=2").await;
    let next = lines["next"].as_u64().unwrap();
    let rest = view(&format!("lines?from={next}")).await;
    assert_eq!(rest["items"][0]["line"], next);
    assert_eq!(view(&format!("lines/{next}")).await, rest["items"][0]);
    all.get(&format!("{place}/lines/999"))
        .await
        .fails(404, "line");
    all.get(&format!("{place}/state?at=999"))
        .await
        .fails(404, "line");
    all.get(&format!("{place}/effects?branch=none"))
        .await
        .fails(404, "branch");
    let graph = view("graph").await;
    assert!(
        graph["shapes"]
            .as_array()
            .is_some_and(|shapes| !shapes.is_empty())
    );

    let contexts = view("contexts").await;
    let call = contexts["items"][0]["effect"].as_str().unwrap().to_owned();
    let whole = view(&format!("contexts/{call}")).await;
    assert!(
        whole.to_string().contains("You settle complaints."),
        "{whole:#}"
    );
    view(&format!("contexts/{call}?show=why")).await;
    all.get(&format!("{place}/contexts/{call}?show=diff"))
        .await
        .fails(404, "effect");
    all.get(&format!("{place}/contexts/99.1"))
        .await
        .fails(404, "effect");

    let artifacts = view("artifacts").await;
    assert_eq!(
        artifacts["items"][0]["name"], "receipt.txt",
        "{artifacts:#}"
    );
    let receipt = all.get(&format!("{place}/artifacts/receipt.txt")).await;
    assert_eq!(receipt.headers["content-security-policy"], "sandbox");
    assert_eq!(receipt.headers["content-disposition"], "attachment");
    assert_eq!(receipt.is(200), Json::from("paid"));
    all.get(&format!("{place}/artifacts/receipt.txt?version=2"))
        .await
        .fails(404, "artifact");
}

#[tokio::test]
async fn files_come_with_a_message_and_become_artifacts() {
    let world = World::new("desk: [ One., Two., Three. ]").await;
    let all = world.all("").await;
    let session = all.start("Hello.").await;
    let place = format!("/v1/sessions/{session}");
    let file = json!({ "text": "Look.", "files": [{ "name": "a.txt", "base64": "aGVsbG8=" }] });
    let request = all
        .request(Method::POST, &format!("{place}/messages"))
        .json(&file);
    Answer::of(request.header("prefer", "wait=30"))
        .await
        .is(200);
    assert_eq!(
        all.get(&format!("{place}/artifacts/a.txt")).await.is(200),
        Json::from("hello")
    );
    let wrong = json!({ "text": "Look.", "files": [{ "name": "a.txt", "base64": "?" }] });
    let why = all
        .post(&format!("{place}/messages"), wrong)
        .await
        .fails(400, "body");
    assert!(why.contains("files[0]"), "{why}");
    // A model that takes images gets one, and its context names it by its digest.
    let file = json!({ "text": "Look.", "files": [{ "name": "cat.png", "base64": "iVBORw==" }] });
    let request = all
        .request(Method::POST, &format!("{place}/messages"))
        .json(&file);
    Answer::of(request.header("prefer", "wait=30"))
        .await
        .is(200);
    let contexts = all.get(&format!("{place}/contexts")).await.is(200);
    let last = contexts["items"].as_array().unwrap().last().unwrap();
    let effect = last["effect"].as_str().unwrap();
    let whole = all.get(&format!("{place}/contexts/{effect}")).await.is(200);
    let shown = whole["segments"].as_array().unwrap().last().unwrap();
    let artifacts = all.get(&format!("{place}/artifacts")).await.is(200);
    let artifacts = artifacts["items"].as_array().unwrap();
    let cat = artifacts.iter().find(|of| of["name"] == "cat.png").unwrap();
    assert_eq!(
        shown["content"]["File"],
        json!({ "artifact": "cat.png", "media_type": "image/png", "bytes": 4, "blake3": cat["hash"] }),
        "{whole:#}"
    );
}

/// The rows of a story that have some words, over pages as without them; a secret is found by those alone who may see it.
#[tokio::test]
async fn the_rows_that_have_some_words_are_found() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let session = all.start("My KETTLE is broken. Äpfel.").await;
    let path = format!("/v1/sessions/{session}/story");
    let whole = all.get(&path).await.is(200);
    let find = |words: &str| format!("{path}?find={}", crate::world::encoded(words));
    let found = all.get(&find("kettle")).await.is(200);
    let items = found["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{found:#}");
    assert_eq!(items[0]["text"], "My KETTLE is broken. Äpfel.");
    assert_eq!(found["head"], whole["head"]);
    assert_eq!(
        all.get(&find("äPFEL")).await.is(200)["items"],
        found["items"]
    );
    assert_eq!(all.get(&find("")).await.is(200)["items"], whole["items"]);
    let nothing = all.get(&find("nowhere")).await.is(200);
    assert_eq!(
        (&nothing["items"], &nothing["next"]),
        (&json!([]), &Json::Null)
    );
    // A page at a time.
    let every = all.get(&format!("{}&limit=1", find("e"))).await.is(200);
    assert!(every["next"].is_u64(), "{every:#}");
}
