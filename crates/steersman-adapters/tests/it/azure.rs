//! Chat completions at Azure OpenAI: addresses, keys, and what only Azure answers.

use crate::listener::{Listener, Reply};
use crate::request::{ask, call_of, chat_with, request, shown, user};
use serde_json::json;
use steersman_adapters::chat::Chat;
use steersman_adapters::chat::encode::Dialect;
use steersman_adapters::wire::Timeouts;
use steersman_runtime::model::{Embed, Model as _, Transport};
use tokio_util::sync::CancellationToken;

pub(crate) fn azure(url: &str) -> Chat {
    chat_with(url, Dialect::AZURE, Timeouts::default())
}

/// Azure begins a stream with what its filter says of the prompt, without choices.
const STREAM: &str = "data: {\"choices\":[],\"created\":0,\"id\":\"\",\"model\":\"\",\"object\":\"\",\"prompt_filter_results\":[{\"prompt_index\":0,\"content_filter_results\":{}}]}\n\n\
data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"content_filter_results\":{}}],\"model\":\"gpt-5-mini\"}\n\n\
data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n";

#[tokio::test]
async fn both_forms_are_asked_with_a_key_or_a_token() {
    let jwt = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJhIn0.c2ln";
    for (end, line) in [
        ("", "POST /openai/v1/chat/completions HTTP/1.1"),
        (
            "?api-version=2024-10-21",
            "POST /openai/deployments/test/chat/completions?api-version=2024-10-21 HTTP/1.1",
        ),
    ] {
        let server = Listener::new(vec![Reply::stream(&[STREAM]), Reply::stream(&[STREAM])]).await;
        let model = azure(&format!("{}{end}", server.url));
        let answer = ask(&model, request(vec![user("Hi")])).await.unwrap();
        assert_eq!(answer.text.as_deref(), Some("Hi"));
        assert_eq!((answer.usage.input, answer.usage.output), (9, 1));
        let sent = server.request();
        assert_eq!(sent.line, line);
        assert_eq!(sent.header("api-key"), Some("sk-test-key"));
        assert_eq!(sent.header("authorization"), None);
        assert_eq!(sent.json()["model"], "test");
        let call = call_of(request(vec![user("Hi")]), Some(jwt));
        let cancel = CancellationToken::new();
        let quiet = steersman_adapters::wire::Quiet;
        model.call(&call, &quiet, &cancel).await.unwrap();
        let sent = server.requests();
        assert_eq!(
            sent[1].header("authorization"),
            Some(&*format!("Bearer {jwt}"))
        );
        assert_eq!(sent[1].header("api-key"), None);
    }
}

#[tokio::test]
async fn the_filter_and_a_missing_deployment_keep_their_class() {
    let error = |code: &str, message: &str| {
        json!({ "error": { "code": code, "message": message } }).to_string()
    };
    let filtered =
        "The response was filtered due to the prompt triggering the content management policy";
    let mut got = String::new();
    for (status, body) in [
        (400, error("content_filter", filtered)),
        (
            404,
            error(
                "DeploymentNotFound",
                "The API deployment for this resource does not exist",
            ),
        ),
        (
            401,
            error(
                "401",
                "Access denied due to invalid subscription key: sk-test-key",
            ),
        ),
        (
            429,
            error("429", "Requests have exceeded the call rate limit"),
        ),
    ] {
        let server = Listener::new(vec![Reply::with(
            status,
            &[("retry-after-ms", "500")],
            body,
        )])
        .await;
        got.push_str(&shown(
            &ask(&azure(&server.url), request(vec![user("Hi")])).await,
        ));
    }
    assert!(!got.contains("sk-test-key"), "{got}");
    insta::assert_snapshot!(got);
}

#[tokio::test]
async fn texts_are_embedded_by_a_deployment() {
    let vectors = json!({ "data": [{ "index": 0, "embedding": [0.5, 1.0] }] });
    let server = Listener::new(vec![Reply::json(200, &vectors.to_string())]).await;
    let embed = Embed {
        texts: vec!["Hi".into()],
        transport: Transport {
            key: Some("sk-test-key".to_owned()),
            model: Some("small".to_owned()),
            url: Some(format!("{}/openai?api-version=2024-10-21", server.url)),
        },
    };
    let got = azure("http://127.0.0.1:9").embed(&embed).await.unwrap();
    assert_eq!(got, [vec![0.5, 1.0]]);
    let sent = server.request();
    assert_eq!(
        sent.line,
        "POST /openai/deployments/small/embeddings?api-version=2024-10-21 HTTP/1.1"
    );
    assert_eq!(sent.header("api-key"), Some("sk-test-key"));
}
