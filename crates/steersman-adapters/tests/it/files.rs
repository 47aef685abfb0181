//! Files of messages in the form of each protocol.

use crate::request::{assistant, request, result, system, two_tools, user};
use serde_json::{Value as Json, json};
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
        user(ASKED),
        file("cat.png", "image/png", Some(b"\x89PNG")),
        file(
            "my terms_1.pdf",
            "application/pdf; version=1.7",
            Some(b"%PDF-"),
        ),
        assistant(
            Some("A cat."),
            &[("call_a", "add", "{\"a\":1,\"b\":2}")],
            None,
        ),
        result("call_a", "add", "3", false),
        user(AGAIN),
        file("wave.gif", "image/gif", Some(b"GIF8")),
        file("my terms 1.pdf", "application/pdf", Some(b"%PDF+")),
        file("gone.png", "image/png", None),
        user("Compare them."),
    ]
}

const ASKED: &str = "What is this?\n[Attached: `cat.png` (image/png, 4 bytes), `my terms_1.pdf` (application/pdf, 5 bytes)]";
const AGAIN: &str =
    "[Attached: `wave.gif` (image/gif, 4 bytes), `my terms 1.pdf` (application/pdf, 5 bytes)]";
const GONE: &str = "[`gone.png` is not shown: its content was erased.]";

/// The contents of the user's messages, in order.
fn said(messages: &Json, content: &str) -> Vec<Json> {
    let messages = messages.as_array().unwrap().iter();
    let of_user = messages.filter(|message| message["role"] == "user");
    of_user.map(|message| message[content].clone()).collect()
}

#[test]
fn chat_completions() {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let image = |url: &str| json!({ "type": "image_url", "image_url": { "url": url } });
    let pdf = |name: &str, url: &str| json!({ "type": "file", "file": { "filename": name, "file_data": url } });
    let first = json!([
        text(ASKED),
        image("data:image/png;base64,iVBORw=="),
        pdf("my terms_1.pdf", "data:application/pdf;base64,JVBERi0="),
    ]);
    let second = [
        text(AGAIN),
        image("data:image/gif;base64,R0lGOA=="),
        pdf("my terms 1.pdf", "data:application/pdf;base64,JVBERis="),
    ];
    let request = request(conversation());
    let body = chat(&request, "m", &Dialect::OPENAI);
    assert_eq!(
        said(&body["messages"], "content"),
        [
            first.clone(),
            json!(second),
            json!(GONE),
            json!("Compare them.")
        ]
    );
    // Where roles alternate, the texts are parts of the same message.
    let body = chat(&request, "m", &Dialect::COMPATIBLE);
    let [a, b, c] = second;
    assert_eq!(
        said(&body["messages"], "content"),
        [first, json!([a, b, c, text(GONE), text("Compare them.")])]
    );
}

#[test]
fn responses_of_openai() {
    let body = responses(&request(conversation()), "m", false);
    assert_eq!(
        said(&body["input"], "content"),
        [
            json!([
                { "type": "input_text", "text": ASKED },
                { "type": "input_image", "image_url": "data:image/png;base64,iVBORw==" },
                { "type": "input_file", "filename": "my terms_1.pdf", "file_data": "data:application/pdf;base64,JVBERi0=" },
            ]),
            json!([
                { "type": "input_text", "text": AGAIN },
                { "type": "input_image", "image_url": "data:image/gif;base64,R0lGOA==" },
                { "type": "input_file", "filename": "my terms 1.pdf", "file_data": "data:application/pdf;base64,JVBERis=" },
            ]),
            json!(GONE),
            json!("Compare them."),
        ]
    );
}

#[test]
fn messages_of_anthropic() {
    let body = messages(&request(conversation()), "m");
    let mut said = said(&body["messages"], "content");
    // The marks of the cache are on the last blocks.
    let blocks = said.iter_mut().filter_map(Json::as_array_mut).flatten();
    let marks = blocks.filter_map(|block| block.as_object_mut()?.shift_remove("cache_control"));
    assert_eq!(marks.count(), 2);
    let source =
        |media: &str, data: &str| json!({ "type": "base64", "media_type": media, "data": data });
    assert_eq!(
        said,
        [
            json!([
                { "type": "text", "text": ASKED },
                { "type": "image", "source": source("image/png", "iVBORw==") },
                { "type": "document", "source": source("application/pdf", "JVBERi0="), "title": "my terms_1.pdf" },
            ]),
            json!([
                { "type": "tool_result", "tool_use_id": "call_a", "content": "3" },
                { "type": "text", "text": AGAIN },
                { "type": "image", "source": source("image/gif", "R0lGOA==") },
                { "type": "document", "source": source("application/pdf", "JVBERis="), "title": "my terms 1.pdf" },
                { "type": "text", "text": GONE },
                { "type": "text", "text": "Compare them." },
            ]),
        ]
    );
}

#[test]
fn contents_of_gemini() {
    let body = gemini::encode::encode(&request(conversation()), "gemini-3.8-flash");
    let said = said(&body["contents"], "parts");
    let data =
        |media: &str, data: &str| json!({ "inlineData": { "mimeType": media, "data": data } });
    assert_eq!(
        said[0],
        json!([
            { "text": ASKED },
            data("image/png", "iVBORw=="),
            data("application/pdf", "JVBERi0="),
        ])
    );
    // The provider takes no GIF. Results of calls are a turn of their own.
    assert_eq!(
        said[2],
        json!([
            { "text": AGAIN },
            { "text": "[`wave.gif` is not shown: this provider takes no image/gif.]" },
            data("application/pdf", "JVBERis="),
            { "text": GONE },
            { "text": "Compare them." },
        ])
    );
}

#[test]
fn converse_of_bedrock() {
    let claude = "anthropic.claude-haiku-4-5-20251001-v1:0";
    let body = bedrock::encode::encode(&request(conversation()), claude);
    let mut said = said(&body["messages"], "content");
    let point = json!({ "cachePoint": { "type": "default" } });
    for blocks in said.iter_mut().filter_map(Json::as_array_mut) {
        blocks.retain(|block| *block != point);
    }
    let image = |format: &str, data: &str| json!({ "image": { "format": format, "source": { "bytes": data } } });
    let pdf = |name: &str, data: &str| json!({ "document": { "format": "pdf", "name": name, "source": { "bytes": data } } });
    assert_eq!(
        said,
        [
            json!([
                { "text": ASKED },
                image("png", "iVBORw=="),
                pdf("my terms 1", "JVBERi0="),
            ]),
            json!([
                { "toolResult": { "toolUseId": "call_a", "content": [{ "text": "3" }] } },
                { "text": AGAIN },
                image("gif", "R0lGOA=="),
                pdf("my terms 1 2", "JVBERis="),
                { "text": GONE },
                { "text": "Compare them." },
            ]),
        ]
    );
    // Only Claude keeps files in its cache.
    let last = request(vec![
        user("What?"),
        file("cat.png", "image/png", Some(b"\x89PNG")),
    ]);
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
    let kept = [
        Encodings::default(),
        Encodings::default(),
        Encodings::default(),
    ];
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
        assert_eq!(
            body.to_string()
                .matches("data:image/png;base64,iVBORw==")
                .count(),
            1
        );
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
