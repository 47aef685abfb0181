//! Signatures of requests to Amazon's cloud, version 4: a hash of the request, signed with a key that is made from the secret key for a
//! day, a region and a service.

use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};
use std::fmt::Write as _;
use steersman_machine::stored::ids::hex;

/// Name of the way of signing.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Keys of an account or of a role.
#[derive(Clone, Copy)]
pub struct Keys<'a> {
    /// Id of the access key.
    pub id: &'a str,
    /// Secret access key.
    pub secret: &'a str,
    /// Token of a session, if the keys are temporary.
    pub token: Option<&'a str>,
}

/// A POST request that is to be signed.
#[derive(Clone, Copy)]
pub struct Post<'a> {
    /// Host, with its port if it is not the one of the scheme.
    pub host: &'a str,
    /// Path, in the form in which it is sent.
    pub path: &'a str,
    /// Media type of the body.
    pub content_type: &'a str,
    /// Body.
    pub body: &'a [u8],
}

/// Returns the header `authorization` of a request at a time, written as `20261129T171500Z`. The request must be sent with the headers
/// `content-type`, `x-amz-date`, and `x-amz-security-token` if the keys have a token.
pub fn authorization(
    post: Post<'_>,
    keys: Keys<'_>,
    region: &str,
    service: &str,
    time: &str,
) -> String {
    let mut headers = vec![
        ("content-type", post.content_type),
        ("host", post.host),
        ("x-amz-date", time),
    ];
    headers.extend(keys.token.map(|token| ("x-amz-security-token", token)));
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let mut request = format!("POST\n{}\n\n", canonical(post.path));
    for (name, value) in headers {
        let words: Vec<&str> = value.split_whitespace().collect();
        let _ = writeln!(request, "{name}:{}", words.join(" "));
    }
    let _ = write!(request, "\n{names}\n{}", hash(post.body));

    let day = time.get(..8).unwrap_or(time);
    let scope = format!("{day}/{region}/{service}/aws4_request");
    let text = format!("{ALGORITHM}\n{time}\n{scope}\n{}", hash(request.as_bytes()));
    let mut key = format!("AWS4{}", keys.secret).into_bytes();
    for part in [day, region, service, "aws4_request"] {
        key = keyed(&key, part);
    }
    let signature = hex(&keyed(&key, &text));
    format!(
        "{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
        keys.id
    )
}

/// Encodes all bytes of a text that are not unreserved in an address, except those of `kept`.
pub(crate) fn encoded(text: &str, kept: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let c = char::from(byte);
        if byte.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~') || kept.contains(c) {
            out.push(c);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Returns the path in the form that is signed: without empty parts, and encoded once more.
fn canonical(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let end = if path.ends_with('/') && !parts.is_empty() {
        "/"
    } else {
        ""
    };
    encoded(&format!("/{}{end}", parts.join("/")), "/")
}

fn keyed(key: &[u8], text: &str) -> Vec<u8> {
    sign(&Key::new(HMAC_SHA256, key), text.as_bytes())
        .as_ref()
        .to_vec()
}

fn hash(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}
