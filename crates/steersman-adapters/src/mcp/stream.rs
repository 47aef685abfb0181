//! Streamable HTTP that reports unreadable events. The library skips events that it cannot parse, so the sender of the request
//! would wait for as long as the server keeps the stream open.

use super::pipe::unreadable;
use futures::StreamExt;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use std::collections::HashMap;
use std::sync::Arc;

type Headers = HashMap<HeaderName, HeaderValue>;
type Answer<T> = Result<T, StreamableHttpError<reqwest::Error>>;

/// A client that replaces each unreadable answer by an error.
#[derive(Clone)]
pub(super) struct Heard(pub(super) reqwest::Client);

/// Replaces the data of unreadable events.
fn heard(events: BoxedSseResponse) -> BoxedSseResponse {
    let events = events.map(|event| {
        event.map(|mut event| {
            event.data = event.data.map(readable);
            event
        })
    });
    events.boxed()
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
        let answer = self.0.post_message(uri, message, session, auth, headers);
        Ok(match answer.await? {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(heard(events), session)
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
        events.await.map(heard)
    }
}
