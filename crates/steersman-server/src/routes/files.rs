//! Files that come with a request.

use crate::problem::{Code, Problem};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use steersman::{Content, media_of_file};
use utoipa::ToSchema;

/// A file that comes with a request. It becomes an artifact under its name.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// The name of the artifact.
    name: String,
    /// Its media type. Without one it follows from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    /// The content, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The content in base 64, if it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

/// Maximum number of files of a request.
const MOST: usize = 16;

/// Returns the contents of files.
pub(crate) fn contents(files: &[File]) -> Result<Vec<Content>, Problem> {
    if files.len() > MOST {
        let why = format!("`files`: a request has at most {MOST}");
        return Err(Problem::new(Code::TooLarge, why));
    }
    files
        .iter()
        .enumerate()
        .map(|(n, file)| content(n, file))
        .collect()
}

fn content(n: usize, file: &File) -> Result<Content, Problem> {
    let wrong = |why: String| Problem::new(Code::Body, format!("`files[{n}]`: {why}"));
    let bytes: Vec<u8> = match (&file.text, &file.base64) {
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(coded)) => STANDARD
            .decode(coded)
            .map_err(|error| wrong(format!("`base64` is no base 64: {error}")))?,
        _ => return Err(wrong("it has either `text` or `base64`".to_owned())),
    };
    let media = match &file.media_type {
        Some(media) => media.clone(),
        None => media_of_file(&file.name, &bytes).to_owned(),
    };
    Ok(Content {
        name: file.name.clone(),
        media,
        bytes: bytes.into(),
    })
}
