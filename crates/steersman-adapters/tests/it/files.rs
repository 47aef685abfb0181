//! Files of messages in the form of each protocol.

use crate::request::{assistant, request, result, system, two_tools, user};
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_adapters::chat::encode::{Dialect, encode as chat, encode_next as chat_next};
use steersman_adapters::chat::quirks::Quirks;
use steersman_adapters::messages::encode::{encode as messages, encode_next as messages_next};
use steersman_adapters::responses::encode::encode as responses;
use steersman_adapters::structured::{Style, tell};
use steersman_adapters::{bedrock, gemini};
use steersman_machine::context::{Content, FilePart, Request};
use steersman_runtime::model::Encodings;

/// A file. Without a content it was erased.
fn file(name: &str, media: &str, content: Option<&[u8]>) -> Content {
    Content::File(FilePart {
        name: name.to_owned(),
        media: media.to_owned(),
        len: content.map_or(9, |content| content.len() as u64),
        hash: *blake3::hash(name.as_bytes()).as_bytes(),
        content: content.map(Arc::from),
    })
}

/// Messages with files: behind a text, alone, behind results of tools, and one that was erased.
fn conversation() -> Vec<Content> {
    vec![
        system("You help."),
        two_tools(),
        user("What is this?\n[Attached: `cat.png` (image/png, 4 bytes), `my terms_1.pdf` (application/pdf, 5 bytes)]"),
        file("cat.png", "image/png", Some(b"\x89PNG")),
        file("my terms_1.pdf", "application/pdf; version=1.7", Some(b"%PDF-")),
        assistant(Some("A cat."), &[("call_a", "add", "{\"a\":1,\"b\":2}")], None),
        result("call_a", "add", "3", false),
        user("[Attached: `wave.gif` (image/gif, 4 bytes), `my terms 1.pdf` (application/pdf, 5 bytes)]"),
        file("wave.gif", "image/gif", Some(b"GIF8")),
        file("my terms 1.pdf", "application/pdf", Some(b"%PDF+")),
        file("gone.png", "image/png", None),
        user("Compare them."),
    ]
}

fn pretty(body: &Json) -> String {
    serde_json::to_string_pretty(&body).unwrap()
}

#[test]
fn chat_completions() {
    let request = request(conversation());
    insta::assert_snapshot!("chat_openai", pretty(&chat(&request, "m", &Dialect::OPENAI)));
    let body = chat(&request, "m", &Dialect::COMPATIBLE);
    insta::assert_snapshot!("chat_compatible", pretty(&body));
}

#[test]
fn responses_of_openai() {
    insta::assert_snapshot!("responses", pretty(&responses(&request(conversation()), "m", false)));
}

#[test]
fn messages_of_anthropic() {
    insta::assert_snapshot!("messages", pretty(&messages(&request(conversation()), "m")));
}

#[test]
fn contents_of_gemini() {
    let body = gemini::encode::encode(&request(conversation()), "gemini-3.8-flash");
    insta::assert_snapshot!("gemini", pretty(&body));
}

#[test]
fn converse_of_bedrock() {
    let claude = "anthropic.claude-haiku-4-5-20251001-v1:0";
    let body = bedrock::encode::encode(&request(conversation()), claude);
    insta::assert_snapshot!("bedrock", pretty(&body));
    // Only Claude keeps files in its cache.
    let last = request(vec![user("What?"), file("cat.png", "image/png", Some(b"\x89PNG"))]);
    let points = |model: &str| {
        let body = bedrock::encode::encode(&last, model);
        body.to_string().matches("cachePoint").count()
    };
    assert_eq!((points(claude), points("amazon.nova-lite-v1:0")), (1, 0));
}

/// The bytes of a body do not depend on what was encoded for an earlier request.
#[test]
fn the_beginning_of_a_request_is_encoded_once() {
    let all = conversation();
    let kept = [Encodings::default(), Encodings::default(), Encodings::default()];
    for count in 1..=all.len() {
        let request: Request = request(all[..count].to_vec());
        for (dialect, kept) in [Dialect::OPENAI, Dialect::COMPATIBLE].iter().zip(&kept) {
            let next = chat_next(&request, "m", dialect, Quirks::default(), kept);
            let whole = chat(&request, "m", dialect).to_string();
            assert_eq!(String::from_utf8(next).unwrap(), whole, "{count}");
        }
        let next = messages_next(&request, "m", &kept[2]);
        let whole = messages(&request, "m").to_string();
        assert_eq!(String::from_utf8(next).unwrap(), whole, "{count}");
    }
}

/// Files are no tools: a request that tells its tools in words has them, and a server without a role for the system gets them.
#[test]
fn files_stay_where_a_request_is_told_otherwise() {
    let request = request(conversation());
    for style in [Style::Structured, Style::Text] {
        let body = chat(&tell(&request, style), "m", &Dialect::COMPATIBLE);
        assert_eq!(body.to_string().matches("data:image/png;base64,iVBORw==").count(), 1);
    }
    let mut quirks = Quirks::default();
    let body = chat(&request, "m", &Dialect::COMPATIBLE);
    assert!(quirks.learn("the role `system` is not supported", &body));
    let body = quirks.applied(body);
    let first = &body["messages"][0];
    assert_eq!(first["role"], "user");
    let kinds = first["content"].as_array().unwrap().iter();
    let kinds: Vec<&str> = kinds.map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "text", "image_url", "file"]);
}
