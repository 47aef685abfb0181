//! Files of messages, as the protocols carry them: in base64 within the request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use steersman_machine::context::FilePart;
use steersman_machine::network::FileKind;

/// A file in base64.
pub(crate) struct Carried {
    /// The kind of the file.
    pub(crate) kind: FileKind,
    /// Media type without parameters: `image/png`.
    pub(crate) media: String,
    /// The content.
    pub(crate) data: String,
}

impl Carried {
    /// Returns the file as a `data:` URL.
    pub(crate) fn url(&self) -> String {
        format!("data:{};base64,{}", self.media, self.data)
    }
}

/// Returns a file as it is carried. If it cannot be, returns the text to send in its place.
pub(crate) fn carried(file: &FilePart) -> Result<Carried, String> {
    let media = file.media.split(';').next().unwrap_or_default().trim();
    let media = media.to_ascii_lowercase();
    let Some(kind) = file.kind() else {
        return Err(file.not_shown(&format!("there is no form for {media} in a request")));
    };
    let Some(content) = &file.content else {
        return Err(file.not_shown("its content was erased"));
    };
    Ok(Carried {
        kind,
        media,
        data: STANDARD.encode(content),
    })
}

/// Returns the content of a message as a list of parts. A text becomes the first part, of this type.
pub(crate) fn parts<'m>(content: &'m mut Json, text: &str) -> &'m mut Vec<Json> {
    if let Json::String(said) = content {
        *content = json!([{ "type": text, "text": said }]);
    }
    if !content.is_array() {
        *content = json!([]);
    }
    content.as_array_mut().expect("made a moment ago")
}

/// Appends the content of a message to that of another one. Both are texts or lists of parts, whose texts are of this type.
pub(crate) fn join(content: &mut Json, mut more: Json, text: &str) {
    if let (Json::String(said), Json::String(more)) = (&mut *content, &more) {
        said.push_str("\n\n");
        said.push_str(more);
        return;
    }
    parts(content, text).append(parts(&mut more, text));
}
