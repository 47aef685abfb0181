//! The console: the page that people use in a browser. Its files are in the program, and need no token: what they show comes from the API.

use crate::Server;
use crate::problem::{Code, Problem};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::LazyLock;

/// The source of the files of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Console {
    /// The files in the program.
    Embedded,
    /// A folder, which is read for each request: for work on the console itself.
    Folder(PathBuf),
}

/// A file of the console: its path, and what it has.
type File = (&'static str, &'static [u8]);

/// Embeds files of the folder `console`.
macro_rules! files {
    ($($path:literal),+ $(,)?) => {
        /// The files in the program.
        static FILES: &[File] = &[
            $(($path, include_bytes!(concat!("../console/", $path))),)+
        ];
    };
}

files! {
    "api.mjs",
    "app.css",
    "auth.mjs",
    "hooks.mjs",
    "icon.svg",
    "index.html",
    "keeper.mjs",
    "kit.mjs",
    "main.mjs",
    "model.mjs",
    "route.mjs",
    "rows.mjs",
    "sse.mjs",
    "ui.mjs",
    "words.mjs",
    "map/paint.mjs",
    "map/scale.mjs",
    "parts/bits.mjs",
    "parts/confirm.mjs",
    "parts/cost.mjs",
    "parts/graph.mjs",
    "parts/keys.mjs",
    "parts/live.mjs",
    "parts/many.mjs",
    "parts/pane.mjs",
    "parts/question.mjs",
    "parts/rail.mjs",
    "parts/rating.mjs",
    "parts/start.mjs",
    "parts/text.mjs",
    "screens/artifacts.mjs",
    "screens/branches.mjs",
    "screens/contexts.mjs",
    "screens/definitions.mjs",
    "screens/diff.mjs",
    "screens/effects.mjs",
    "screens/inbox.mjs",
    "screens/map.mjs",
    "screens/memories.mjs",
    "screens/question.mjs",
    "screens/rerun.mjs",
    "screens/server.mjs",
    "screens/session.mjs",
    "screens/sessions.mjs",
    "screens/signin.mjs",
    "screens/state.mjs",
    "screens/story.mjs",
    "text/diff.mjs",
    "text/json.mjs",
    "text/markdown.mjs",
    "vendor/hooks.mjs",
    "vendor/htm.mjs",
    "vendor/preact.mjs",
}

/// The page on which everything else is shown.
const INDEX: &str = "index.html";

/// Nothing but these files is loaded, nothing is sent elsewhere, and no text becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
    font-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types steersman";

/// The files as a browser gets them, with their tags: it asks whether it has the newest, so an upgrade needs no other name.
static SERVED: LazyLock<Vec<(Cow<'static, [u8]>, String)>> = LazyLock::new(|| {
    let served = FILES.iter().map(|(name, bytes)| {
        let bytes = bare(name, bytes);
        let tag = tag(&bytes);
        (bytes, tag)
    });
    served.collect()
});

/// Returns a file without its comments and indents, which are a fifth of it and for those who read the source. A line that was a comment is
/// empty, so an error names the line of the source. What a library says of a map of its source is a comment, too: there is none here.
fn bare(name: &str, bytes: &'static [u8]) -> Cow<'static, [u8]> {
    let is_code = matches!(name.rsplit('.').next(), Some("mjs" | "css"));
    let Some(text) = std::str::from_utf8(bytes).ok().filter(|_| is_code) else {
        return bytes.into();
    };
    let (mut bare, mut is_inside) = (String::with_capacity(text.len()), false);
    for line in text.split_inclusive('\n') {
        let shown = line.trim();
        is_inside |= shown.starts_with("/*");
        if is_inside || shown.starts_with("//") {
            bare.push('\n');
        } else {
            bare.push_str(line.trim_start_matches(' '));
        }
        is_inside &= !shown.ends_with("*/");
    }
    bare.into_bytes().into()
}

fn tag(bytes: &[u8]) -> String {
    let digest = blake3::hash(bytes).to_hex();
    format!("\"{}\"", &digest[..32])
}

/// Returns the routes of the console.
pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route("/", get(index))
        .route("/console/{*path}", get(file))
}

async fn index(State(server): State<Server>, headers: HeaderMap) -> Result<Response, Problem> {
    answer(&server, INDEX, &headers).await
}

async fn file(
    State(server): State<Server>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    answer(&server, &path, &headers).await
}

async fn answer(server: &Server, path: &str, asked: &HeaderMap) -> Result<Response, Problem> {
    let found = match &server.options().console {
        Some(Console::Embedded) => embedded(path),
        Some(Console::Folder(folder)) => read(folder.clone(), path).await,
        None => None,
    };
    let (bytes, tag) = found.ok_or_else(|| {
        Problem::new(Code::Path, "the console has no such file").help("GET / is the console")
    })?;
    let known = asked.get_all(header::IF_NONE_MATCH).iter();
    let mut known = known.filter_map(|value| value.to_str().ok());
    let is_known = known.any(|all| all.split(',').any(|one| one.trim() == tag));
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        bytes.into_owned().into_response()
    };
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_TYPE, media(path)),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-cache"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}

fn embedded(path: &str) -> Option<(Cow<'static, [u8]>, String)> {
    let at = FILES.iter().position(|(name, _)| *name == path)?;
    let (bytes, tag) = &SERVED[at];
    Some((Cow::Borrowed(&**bytes), tag.clone()))
}

/// Reads a file of a folder. A path that leads out of it names none.
async fn read(folder: PathBuf, path: &str) -> Option<(Cow<'static, [u8]>, String)> {
    let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains('\\');
    if !path.split('/').all(is_plain) {
        return None;
    }
    let bytes = tokio::fs::read(folder.join(path)).await.ok()?;
    let tag = tag(&bytes);
    Some((bytes.into(), tag))
}

fn media(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("mjs") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}
