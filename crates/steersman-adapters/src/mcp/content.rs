//! Content that a server returned in addition to text: of any media type, under safe names.

use std::sync::Arc;
use steersman_machine::view::artifact;
use steersman_machine::view::artifact::Content;

/// Maximum number of pieces of content that are kept of one result.
const CONTENT_MAX: usize = 32;
/// Maximum number of bytes of the part of an artifact's name that the server chose.
const NAME_MAX: usize = 40;

/// A piece of content as a server returned it.
pub(super) struct Piece {
    /// A name for people, if the server gave one. Not trusted before it is sanitized.
    pub(super) name: Option<String>,
    /// Media type, as the server says.
    pub(super) media: String,
    /// The content itself.
    pub(super) bytes: Arc<[u8]>,
}

/// Turns the pieces into artifacts; returns them and the number of pieces that are left out.
pub(super) fn made(makes: &str, pieces: Vec<Piece>) -> (Vec<Content>, usize) {
    let more = pieces.len().saturating_sub(CONTENT_MAX);
    let kept = pieces.into_iter().take(CONTENT_MAX).enumerate();
    let made = kept.map(|(index, piece)| {
        let media = media(&piece.media);
        Content {
            name: name(makes, index + 1, piece.name.as_deref(), &media),
            media,
            bytes: piece.bytes,
        }
    });
    (made.collect(), more)
}

/// Normalizes a media type; an invalid one becomes `application/octet-stream`.
fn media(said: &str) -> String {
    let fits = |part: &str| {
        let of_name = |c: char| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c);
        !part.is_empty() && part.len() <= 60 && part.chars().all(of_name)
    };
    let plain = said.split(';').next().unwrap_or_default().trim();
    match plain.split_once('/') {
        Some((kind, of)) if fits(kind) && fits(of) => plain.to_ascii_lowercase(),
        _ => "application/octet-stream".to_owned(),
    }
}

/// Makes a unique name: the call, the index, and the harmless part of the server's name.
fn name(makes: &str, index: usize, said: Option<&str>, media: &str) -> String {
    let harmless = |c: char| {
        let fits = c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if fits { c } else { '_' }
    };
    let said: String = said.unwrap_or_default().chars().map(harmless).collect();
    let said = said.trim_matches(['.', '-', '_']);
    let from = said.len().saturating_sub(NAME_MAX);
    let said = said[from..].trim_start_matches(['.', '-', '_']);
    let end = if said.is_empty() {
        let of = media.rsplit('/').next().unwrap_or_default();
        let of = of.split(['+', '.']).next().unwrap_or_default();
        format!(".{}", artifact::ending_of(media).unwrap_or(of))
    } else {
        format!("-{said}")
    };
    format!("{makes}-{index}{end}")
}

#[cfg(test)]
mod tests {
    use super::{media, name};

    #[test]
    fn what_a_source_calls_its_content_cannot_lead_astray() {
        let told = |said| name("t-3", 1, said, "image/png");
        assert_eq!(told(None), "t-3-1.png");
        assert_eq!(told(Some("report.md")), "t-3-1-report.md");
        assert_eq!(told(Some("../../etc/passwd")), "t-3-1-etc_passwd");
        assert_eq!(told(Some("a\u{202e}b\n\0c")), "t-3-1-a_b__c");
        let long = told(Some(&"x".repeat(500)));
        assert_eq!(long.len(), "t-3-1-".len() + 40);
        assert_eq!(media("Image/PNG; q=1"), "image/png");
        assert_eq!(
            media("text/html\nset-cookie: a"),
            "application/octet-stream"
        );
        assert_eq!(media(""), "application/octet-stream");
    }
}
