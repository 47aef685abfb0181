//! Resources that a result links to. They are read from the server that named them, over the same connection, and from nowhere else.

use super::Live;
use crate::masked::Mask;
use rmcp::ServiceError;
use rmcp::model::{
    CallToolResult, ContentBlock, ReadResourceRequestParams, ReadResourceResponse, Resource,
    ResourceContents,
};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of resources that are read for one result.
const READ_MAX: usize = 16;
/// Maximum number of bytes of a resource.
const RESOURCE_MAX: usize = 8 << 20;
/// Maximum number of bytes of all resources of one result.
const ALL_MAX: usize = 32 << 20;
/// Time limit for reading all resources of one result.
const TIME: Duration = Duration::from_secs(10);
/// Maximum number of bytes of an error that is quoted.
const QUOTED: usize = 200;

/// Contents of the resources that a result links to, by their addresses; or the reason why one was not read.
pub(super) type Linked = BTreeMap<String, Result<Vec<ResourceContents>, String>>;

/// Reads the resources that a result links to. Whatever happens, the result stays as it is: its call is over.
pub(super) async fn read(
    live: &Live,
    result: &CallToolResult,
    cancel: &CancellationToken,
    mask: &Mask,
) -> Linked {
    let mut linked = Linked::new();
    let info = live.service.peer().peer_info();
    let offers = info.is_some_and(|info| info.capabilities.resources.is_some());
    if !offers || result.is_error == Some(true) {
        return linked;
    }
    let until = Instant::now() + TIME;
    let (mut count, mut bytes) = (0, 0);
    for block in &result.content {
        let ContentBlock::ResourceLink(link) = block else {
            continue;
        };
        if linked.contains_key(&link.uri) {
            continue;
        }
        count += 1;
        let came = if let Some(why) = too_much(link, count, bytes) {
            Err(why)
        } else {
            let one = cancel.run_until_cancelled(one(live, &link.uri, mask));
            match tokio::time::timeout_at(until, one).await {
                Ok(Some(came)) => came,
                Ok(None) => Err("the call was cancelled".to_owned()),
                Err(_) => Err(format!("it did not come within {TIME:?}")),
            }
        };
        let came = came.and_then(|contents| {
            let len = contents.iter().map(size).sum::<usize>();
            bytes += len;
            if len > RESOURCE_MAX || bytes > ALL_MAX {
                return Err(too_large(len));
            }
            Ok(contents)
        });
        linked.insert(link.uri.clone(), came);
    }
    linked
}

/// Returns the reason why a resource is not asked for.
fn too_much(link: &Resource, count: usize, bytes: usize) -> Option<String> {
    if count > READ_MAX {
        return Some(format!("at most {READ_MAX} resources of a result are read"));
    }
    let said = link.size.and_then(|size| usize::try_from(size).ok());
    let size = said.filter(|size| *size > RESOURCE_MAX || bytes + size > ALL_MAX);
    size.map(too_large)
}

fn too_large(bytes: usize) -> String {
    format!(
        "it has {bytes} bytes; a resource may have {RESOURCE_MAX}, and all of a result {ALL_MAX}"
    )
}

/// Returns the bytes that a content takes in its message.
fn size(content: &ResourceContents) -> usize {
    match content {
        ResourceContents::TextResourceContents { text, .. } => text.len(),
        ResourceContents::BlobResourceContents { blob, .. } => blob.len() / 4 * 3,
        _ => 0,
    }
}

async fn one(live: &Live, uri: &str, mask: &Mask) -> Result<Vec<ResourceContents>, String> {
    let peer = live.service.peer();
    let asked = peer.read_resource_once(ReadResourceRequestParams::new(uri));
    match asked.await {
        Ok(ReadResourceResponse::Complete(read)) => Ok(read.contents),
        Ok(_) => Err("the server asks for more before it gives it".to_owned()),
        Err(ServiceError::McpError(error)) => {
            let said = mask.first(&error.message, QUOTED);
            Err(format!("the server refused: {said} ({})", error.code.0))
        }
        Err(_) => Err("the connection ended, or its answer cannot be read".to_owned()),
    }
}
