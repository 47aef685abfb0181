//! Files that came with messages, in requests to models that take them. A segment of its own follows the message. It has the digest
//! of the content, so the same log gives the same request; the content is added when the request is sent.

use super::{At, Content, Request, Segment, Segments};
use crate::network::texts::{NOT_SHOWN, fill};
use crate::network::{FileKind, Takes};
use crate::snapshot::Snapshot;
use crate::stored::bounds::SHOWN_FILES;
use crate::stored::ids::{Body, Digest, ERASED, Id, hex, unhex};
use crate::stored::interaction::Artifact;
use crate::view::say::{filled, say_in};
use crate::view::{Cx, Read, View, artifact};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A file in a request: a version of an artifact that came with the message before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePart {
    /// Name of the artifact.
    #[serde(rename = "artifact")]
    pub name: String,
    /// Media type, such as `image/png`.
    #[serde(rename = "media_type")]
    pub media: String,
    /// Size of the content in bytes.
    #[serde(rename = "bytes")]
    pub len: u64,
    /// blake3 hash of the content.
    #[serde(rename = "blake3", with = "digits")]
    pub hash: [u8; 32],
    /// The content, in a request that is sent. `None` means that it was not read, or that it was erased. It is no part of the
    /// segment's digest, which covers the hash.
    #[serde(skip)]
    pub content: Option<Arc<[u8]>>,
}

impl FilePart {
    fn of(artifact: &Artifact) -> Self {
        Self {
            name: artifact.name.to_string(),
            media: artifact.media.to_string(),
            len: artifact.len,
            hash: artifact.hash,
            content: None,
        }
    }

    /// Returns the kind of the file. `None` means that no protocol has a form for it.
    pub fn kind(&self) -> Option<FileKind> {
        FileKind::of(&self.media)
    }

    /// Returns the number of tokens that the file counts as.
    pub fn tokens(&self) -> u64 {
        self.kind().map_or(1, |kind| kind.tokens(self.len))
    }

    /// Returns the hash as people and commands name it: `blake3:` and its hexadecimal digits.
    pub fn digest(&self) -> String {
        format!("blake3:{}", hex(&self.hash))
    }

    /// Returns the built-in text in place of a file that cannot be sent for this reason.
    pub fn not_shown(&self, why: &str) -> String {
        filled(NOT_SHOWN.words, &[("name", &self.name), ("why", why)])
    }
}

/// A hash as hexadecimal digits.
mod digits {
    use super::{hex, unhex};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(hash: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(hash))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<[u8; 32], D::Error> {
        let bytes = unhex(&String::deserialize(from)?);
        let hash = bytes.and_then(|bytes| bytes.try_into().ok());
        hash.ok_or_else(|| D::Error::custom("it has not 64 hexadecimal digits"))
    }
}

impl At<'_> {
    /// Returns the files that came with these texts, in the form in which the agent's model gets them.
    pub(super) fn files(&self, with: &[Body], reads: &mut Vec<Read>) -> Vec<Content> {
        if self.takes.is_none() {
            return Vec::new();
        }
        let mut files = Vec::new();
        for body in with {
            let came = artifact::came(self.snapshot, *body).map(FilePart::of);
            let came: Vec<FilePart> = came.collect();
            // What came with an erased text was erased with it.
            if !came.is_empty() && *self.history.text(*body) != *ERASED {
                files.extend(came);
            }
        }
        // One message may bring the same file twice.
        files.dedup();
        let view = View::new(self.cx, self.snapshot, Some(self.agent)).traced(self.trace);
        self.trace.take();
        let contents = files.into_iter().filter_map(|file| {
            let say = |why: &str, file: &FilePart| not_shown(self.cx, &view, file, why);
            shown(file, self.takes, say)
        });
        let contents = contents.collect();
        reads.extend(self.trace.take());
        contents
    }
}

/// Returns a file as a model gets it: itself, or a text in its place. `None` means that the message alone names the file. `say` makes
/// the text for a file that cannot be shown for a reason.
fn shown(
    file: FilePart,
    takes: &Takes,
    say: impl Fn(&str, &FilePart) -> String,
) -> Option<Content> {
    let kind = file.kind().filter(|kind| takes.kinds.contains(kind));
    if kind.is_none() {
        let bytes = file.len.to_string();
        let values = [
            ("name", &*file.name),
            ("media", &*file.media),
            ("bytes", &*bytes),
        ];
        let text = fill(takes.instead.as_ref()?, &values)?;
        return (!text.trim().is_empty()).then_some(Content::User(text));
    }
    if file.len > takes.largest {
        let (len, most) = (file.len, takes.largest);
        let why = format!("it has {len} bytes, and files of at most {most} are taken");
        return Some(Content::User(say(&why, &file)));
    }
    Some(Content::File(file))
}

fn not_shown(cx: &Cx<'_>, view: &View<'_>, file: &FilePart, why: &str) -> String {
    let values = [("name", &*file.name), ("why", why)];
    say_in(&cx.network.texts, view, NOT_SHOWN, &values)
}

/// Returns a request in which a sentence stands in place of the oldest files, if all files together are larger than a request may
/// have. The digest covers this.
pub(super) fn bounded(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    agent: Id,
    mut request: Request,
) -> Request {
    let most = SHOWN_FILES as u64;
    let mut over = request.segments.file_bytes().saturating_sub(most);
    if over == 0 {
        return request;
    }
    let view = View::new(cx, snapshot, Some(agent));
    let why = format!("newer files come first, and a request has at most {most} bytes of files");
    let mut segments = Segments::default();
    let mut first = None;
    for (at, segment) in request.segments.iter().enumerate() {
        segments.push(match &segment.content {
            Content::File(file) if over > 0 => {
                over = over.saturating_sub(file.len);
                first.get_or_insert(at);
                let text = not_shown(cx, &view, file, &why);
                Segment::new(segment.part, Content::User(text))
            }
            _ => segment.clone(),
        });
    }
    // The previous request is compared only up to the first changed segment.
    let same = first.map_or(0, |first| request.segments.bytes_of(first));
    request.prefix = request.prefix.min(same);
    let chain = segments.chain(segments.len());
    let mut whole = request.digest.0.to_vec();
    whole.extend(chain.iter().flat_map(|digest| digest.0));
    request.digest = Digest::of(&whole);
    request.segments = segments;
    request
}

/// Returns an agent's request as another model gets it: a text stands in place of each file that this model does not take. The digest
/// stays that of the agent's request.
pub fn for_model(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    agent: Id,
    request: Request,
    model: &str,
) -> Request {
    if !request.segments.has_files() {
        return request;
    }
    let takes = cx.network.takes(model);
    let view = View::new(cx, snapshot, Some(agent));
    let say = |why: &str, file: &FilePart| not_shown(cx, &view, file, why);
    let segments = request.segments.iter().filter_map(|segment| {
        let Content::File(file) = &segment.content else {
            return Some(segment.clone());
        };
        let content = shown(file.clone(), takes, say)?;
        Some(Segment::new(segment.part, content))
    });
    Request {
        segments: segments.collect(),
        ..request
    }
}

impl Request {
    /// Returns the request with the contents of its files: for each hash what `content` returns.
    #[must_use]
    pub fn with_contents(mut self, content: impl Fn(&[u8; 32]) -> Option<Arc<[u8]>>) -> Self {
        let segments = self.segments.iter().map(|segment| {
            let Content::File(file) = &segment.content else {
                return segment.clone();
            };
            let file = FilePart {
                content: content(&file.hash),
                ..file.clone()
            };
            Arc::new(Segment {
                content: Content::File(file),
                ..Segment::clone(segment)
            })
        });
        self.segments = segments.collect();
        self
    }
}
