//! A reviewer with each provider: its judgement is requested as a schema of the wire, and is read.

use crate::listener::{Listener, Recorded, Reply};
use crate::tools::env;
use crate::whole::{engine, letters, start};
use serde_json::{Value as Json, json};
use steersman_runtime::session::Settled;

const DESK: &str = r#"
secrets: { key: { env: KEY } }
config: { url: { type: string, env: URL, live: true } }
models: { default: { PROVIDER, url: "{{ config.url }}", model: m, key: "{{ secrets.key }}", calls: native } }
agents:
  desk: { system: You are a desk., reflect: { by: critic, rounds: 2 } }
  critic: { system: You judge. }
"#;

/// Answers of the writer, the reviewer, the writer and the reviewer.
fn said(wire: &str) -> [String; 4] {
    // With a strict schema the model gives `null` for a field that it would leave out.
    let accepted = match wire {
        "openai" | "azure" | "responses" => r#"{"accept":true,"revise":null}"#,
        _ => r#"{"accept":true}"#,
    };
    [
        "It is so.",
        r#"{"accept":false,"revise":"Cite."}"#,
        "It is so [1].",
        accepted,
    ]
    .map(str::to_owned)
}

fn reply(wire: &str, text: &str) -> Reply {
    let body = match wire {
        "anthropic" => json!({ "type": "message", "stop_reason": "end_turn",
            "content": [{ "type": "text", "text": text }], "usage": { "input_tokens": 3, "output_tokens": 4 } }),
        "responses" => json!({ "status": "completed",
            "output": [{ "type": "message", "content": [{ "type": "output_text", "text": text }] }],
            "usage": { "input_tokens": 3, "output_tokens": 4 } }),
        "gemini" | "vertex" => {
            json!({ "candidates": [{ "content": { "parts": [{ "text": text }] }, "finishReason": "STOP" }],
            "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 4 } })
        }
        "bedrock" => {
            json!({ "output": { "message": { "content": [{ "text": text }] } }, "stopReason": "end_turn",
            "usage": { "inputTokens": 3, "outputTokens": 4 } })
        }
        _ => {
            json!({ "choices": [{ "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 3, "completion_tokens": 4 } })
        }
    };
    Reply::json(200, &body.to_string())
}

/// Returns the schema of the answer that a request wants, or null.
fn wanted(wire: &str, request: &Json) -> Json {
    match wire {
        "anthropic" => request["output_config"]["format"]["schema"].clone(),
        "responses" => request["text"]["format"]["schema"].clone(),
        "gemini" | "vertex" => request["generationConfig"]["responseJsonSchema"].clone(),
        "bedrock" => {
            let schema =
                request["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"].as_str();
            schema.map_or(Json::Null, |schema| serde_json::from_str(schema).unwrap())
        }
        _ => request["response_format"]["json_schema"]["schema"].clone(),
    }
}

async fn judged(wire: &str) -> Vec<Json> {
    let says = said(wire).map(|text| reply(wire, &text));
    // A server of no known provider is first asked what it can do.
    let silent = if wire == "compatible" { 2 } else { 0 };
    let replies = [vec![Reply::with(404, &[], ""); silent], says.to_vec()].concat();
    let server = Listener::new(replies).await;
    let url = match wire {
        "vertex" => format!("{}/v1/projects/p/locations/eu", server.url),
        _ => server.url.clone(),
    };
    let engine = engine(env(&[("URL", &url), ("KEY", "sk-test")]));
    let provider = match wire {
        "compatible" => String::new(),
        wire => format!("provider: {wire}"),
    };
    let yaml = DESK.replace("PROVIDER", &provider).replace("{ ,", "{");
    let session = start(&engine, &yaml, "Is it so?").await;
    let settled = session.settled().await.unwrap();
    let Settled::Answered { text, .. } = &*settled else {
        panic!("{wire}: {settled:?}")
    };
    assert_eq!(&**text, "It is so [1].", "{wire}");
    assert_eq!(
        letters(&engine, &session).await,
        "U A F AC AR A F AC AR F",
        "{wire}"
    );
    let requests = server.requests().split_off(silent);
    requests.iter().map(Recorded::json).collect()
}

#[tokio::test]
async fn a_judgement_is_wanted_as_a_schema_and_read_on_every_wire() {
    for wire in [
        "openai",
        "compatible",
        "anthropic",
        "responses",
        "gemini",
        "azure",
        "vertex",
        "bedrock",
    ] {
        let asked = judged(wire).await;
        assert_eq!(asked.len(), 4, "{wire}");
        for (n, request) in asked.iter().enumerate() {
            let schema = wanted(wire, request);
            if n % 2 == 0 {
                assert!(schema.is_null(), "{wire}: a draft is a text, {request}");
                continue;
            }
            for tools in ["tools", "toolConfig"] {
                assert!(request.get(tools).is_none(), "{wire}: {request}");
            }
            assert_eq!(schema["type"], "object", "{wire}");
            assert_eq!(schema["additionalProperties"], false, "{wire}");
            assert_eq!(schema["properties"]["accept"]["type"], "boolean", "{wire}");
            let revise = &schema["properties"]["revise"];
            let required = if ["openai", "azure", "responses"].contains(&wire) {
                let strict = match wire {
                    "responses" => &request["text"]["format"]["strict"],
                    _ => &request["response_format"]["json_schema"]["strict"],
                };
                assert_eq!(*strict, true, "{wire}");
                assert_eq!(revise["anyOf"][0]["type"], "string");
                assert_eq!(revise["anyOf"][1], json!({ "type": "null" }));
                json!(["accept", "revise"])
            } else {
                assert_eq!(revise["type"], "string", "{wire}");
                json!(["accept"])
            };
            assert_eq!(schema["required"], required, "{wire}");
        }
        // The writer reads what it has to revise.
        assert!(
            asked[2].to_string().contains("Cite."),
            "{wire}: {}",
            asked[2]
        );
    }
}
