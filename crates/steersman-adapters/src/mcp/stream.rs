//! Streamable HTTP that reports unreadable events. The library skips events that it cannot parse, so the sender of the request
//! would wait for as long as the server keeps the stream open.

use super::asks::CALL;
use super::pipe::unreadable;
use futures::StreamExt;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::sync::Arc;

type Headers = HashMap<HeaderName, HeaderValue>;
type Answer<T> = Result<T, StreamableHttpError<reqwest::Error>>;

/// A client that replaces each unreadable answer by an error.
#[derive(Clone)]
pub(super) struct Heard(pub(super) reqwest::Client);

/// Replaces the data of unreadable events, and marks questions with the call on whose stream they come.
fn heard(events: BoxedSseResponse, call: Option<RequestId>) -> BoxedSseResponse {
    let events = events.map(move |event| {
        event.map(|mut event| {
            let data = event.data.map(readable);
            event.data = data.map(|data| marked(data, call.as_ref()));
            event
        })
    });
    events.boxed()
}

/// Returns the id of a message that calls a tool.
fn call_of(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(asked) => match &asked.request {
            ClientRequest::CallToolRequest(_) => Some(asked.id.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Adds to a question the id of the call to which it belongs.
fn marked(data: String, call: Option<&RequestId>) -> String {
    const METHOD: &str = "elicitation/create";
    let Some(call) = call.filter(|_| data.contains(METHOD)) else {
        return data;
    };
    let Ok(mut message) = serde_json::from_str::<Json>(&data) else {
        return data;
    };
    if message["method"] != METHOD {
        return data;
    }
    let params = message.get_mut("params").and_then(Json::as_object_mut);
    let meta = params.map(|params| params.entry("_meta").or_insert_with(|| json!({})));
    let (Some(meta), Ok(id)) = (
        meta.and_then(Json::as_object_mut),
        serde_json::to_value(call),
    ) else {
        return data;
    };
    meta.insert(CALL.to_owned(), id);
    message.to_string()
}

fn readable(data: String) -> String {
    let Err(error) = serde_json::from_str::<ServerJsonRpcMessage>(&data) else {
        return data;
    };
    let told = unreadable(&data, &error).and_then(|told| serde_json::to_string(&told).ok());
    told.unwrap_or(data)
}

// The library's methods with an event size limit fall back to the methods below, whose default limit is the same.
impl StreamableHttpClient for Heard {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Answer<StreamableHttpPostResponse> {
        let call = call_of(&message);
        let answer = self.0.post_message(uri, message, session, auth, headers);
        Ok(match answer.await? {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(heard(events, call), session)
            }
            other => other,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Answer<()> {
        self.0.delete_session(uri, session, auth, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Answer<BoxedSseResponse> {
        let events = self.0.get_stream(uri, session, last, auth, headers);
        Ok(heard(events.await?, None))
    }
}
