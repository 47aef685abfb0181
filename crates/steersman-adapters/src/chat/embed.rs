//! Embeddings, as defined by OpenAI and served by others: a list of texts, and one vector for each.

use crate::transport::{self, BodyError};
use crate::wire::fault::of_status;
use reqwest::RequestBuilder;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::outcome::Failure;
use steersman_runtime::model::Embed;
use tokio::time::timeout;

/// Time limit of a request: a local server embeds a few texts in a second.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum number of bytes of an answer: 32 vectors of 4,096 numbers, as text, take 3 MiB.
const BODY_MAX: usize = 32 << 20;
/// Maximum number of bytes of an error's body that are read.
const ERROR_BODY_MAX: usize = 64 << 10;

#[derive(Deserialize)]
struct Answer {
    data: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// Sends one request, which has its address and key, and returns a vector for each text, in the order of the texts.
pub(super) async fn embed(
    post: Result<RequestBuilder, String>,
    model: &str,
    ask: &Embed,
) -> Result<Vec<Vec<f32>>, Failure> {
    let late = || {
        let message = format!("no embeddings within {} s", PATIENCE.as_secs());
        Failure::new(FailureCode::Timeout, message)
    };
    timeout(PATIENCE, attempt(post, model, ask))
        .await
        .unwrap_or_else(|_| Err(late()))
}

async fn attempt(
    post: Result<RequestBuilder, String>,
    model: &str,
    ask: &Embed,
) -> Result<Vec<Vec<f32>>, Failure> {
    let post = post.map_err(|error| Failure::new(FailureCode::Tls, error))?;
    let input: Vec<&str> = ask.texts.iter().map(|text| &**text).collect();
    let body = json!({ "model": model, "input": input, "encoding_format": "float" });
    let post = post.json(&body);
    let sent = post.send().await;
    let mut response = sent.map_err(|error| {
        let code = if error.is_connect() {
            FailureCode::Unreachable
        } else {
            FailureCode::Disconnected
        };
        Failure::new(code, transport::describe(error))
    })?;
    let status = response.status();
    if !status.is_success() {
        let body = transport::head(&mut response, ERROR_BODY_MAX).await;
        let body = String::from_utf8_lossy(&body);
        return Err(of_status(status.as_u16(), response.headers(), &body));
    }
    let body = transport::body(&mut response, BODY_MAX).await;
    let body = body.map_err(|error| match error {
        BodyError::TooLarge => Failure::new(FailureCode::TooLarge, "the answer is too large"),
        BodyError::Broken(why) => Failure::new(FailureCode::Truncated, why),
    })?;
    read(&body, ask.texts.len())
}

/// Returns the vectors of an answer, in the order of the texts.
fn read(body: &[u8], texts: usize) -> Result<Vec<Vec<f32>>, Failure> {
    let bad = |why: String| Failure::new(FailureCode::BadResponse, why);
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|error| bad(format!("the answer has no embeddings: {error}")))?;
    if answer.data.len() != texts {
        let came = answer.data.len();
        return Err(bad(format!("{came} embeddings came for {texts} texts")));
    }
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; texts];
    for (k, vector) in answer.data.into_iter().enumerate() {
        let at = vector.index.unwrap_or(k);
        let fits = vector.embedding.iter().all(|x| x.is_finite()) && !vector.embedding.is_empty();
        match vectors.get_mut(at) {
            Some(place @ None) if fits => *place = Some(vector.embedding),
            _ => {
                return Err(bad(
                    "an embedding is empty, holds a number that is not finite, or has a wrong index".to_owned(),
                ));
            }
        }
    }
    Ok(vectors.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_in_the_order_of_the_texts() {
        let body = br#"{"object":"list","data":[{"index":1,"embedding":[2.0,0]},{"index":0,"embedding":[1,0]}],"model":"m","usage":{"prompt_tokens":3}}"#;
        assert_eq!(read(body, 2).unwrap(), [[1.0, 0.0], [2.0, 0.0]]);
        let bare = br#"{"data":[{"embedding":[1.5]}]}"#;
        assert_eq!(read(bare, 1).unwrap(), [[1.5]]);
    }

    #[test]
    fn bad_answers_are_refused() {
        for (body, texts) in [
            ("[]", 1),
            ("<html>", 1),
            (r#"{"data":[]}"#, 1),
            (r#"{"data":[{"embedding":[]}]}"#, 1),
            (r#"{"data":[{"embedding":[1],"index":7}]}"#, 1),
            (
                r#"{"data":[{"embedding":[1],"index":0},{"embedding":[1],"index":0}]}"#,
                2,
            ),
            (r#"{"data":[{"embedding":"AAAA"}]}"#, 1),
        ] {
            let failure = read(body.as_bytes(), texts).unwrap_err();
            assert_eq!(failure.code, "bad_response", "{body}");
        }
    }
}
