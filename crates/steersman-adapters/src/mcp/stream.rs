//! Streamable HTTP that reports unreadable events. The library skips events that it cannot parse, so the sender of the request
//! would wait for as long as the server keeps the stream open.
//!
//! Requests to a server with a sign-in get the token of the moment, and one that was refused is sent again with another token.

use super::access::{Access, challenge_in};
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

/// Maximum number of times that one message is sent again with another token: once because the token was refused, and once because it
/// allowed too little.
const AGAIN: u32 = 2;

/// A client that replaces each unreadable answer by an error.
#[derive(Clone)]
pub(super) struct Heard {
    pub(super) client: reqwest::Client,
    /// The sign-in whose tokens are sent.
    pub(super) access: Option<Arc<Access>>,
}

impl Heard {
    /// Returns the token of the moment.
    async fn token(&self) -> Answer<Option<String>> {
        match &self.access {
            Some(access) => access.token().await,
            None => Ok(None),
        }
    }

    /// Sends a message with the token of the moment. A server that wants another one did nothing, so the message is sent again.
    async fn post(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: Headers,
    ) -> Answer<StreamableHttpPostResponse> {
        let mut token = self.token().await?;
        let mut again = 0;
        loop {
            let (uri, session) = (uri.clone(), session.clone());
            let (message, headers) = (message.clone(), headers.clone());
            let sent = self
                .client
                .post_message(uri, message, session, token.clone(), headers);
            let error = match sent.await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let (Some(access), Some(wants)) = (&self.access, challenge_in(&error)) else {
                return Err(error);
            };
            if again == AGAIN {
                return Err(access.refused_again(&wants).await);
            }
            again += 1;
            token = Some(access.refused(token.as_deref(), &wants).await?);
        }
    }
}

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
        _: Option<String>,
        headers: Headers,
    ) -> Answer<StreamableHttpPostResponse> {
        let call = call_of(&message);
        let answer = self.post(uri, message, session, headers);
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
        _: Option<String>,
        headers: Headers,
    ) -> Answer<()> {
        let token = self.token().await?;
        let deleted = self.client.delete_session(uri, session, token, headers);
        deleted.await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        _: Option<String>,
        headers: Headers,
    ) -> Answer<BoxedSseResponse> {
        let token = self.token().await?;
        let client = &self.client;
        let events = client.get_stream(uri, session, last, token, headers);
        Ok(heard(events.await?, None))
    }
}
