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
    "parts/cost.mjs",
    "parts/graph.mjs",
    "parts/keys.mjs",
    "parts/live.mjs",
    "parts/many.mjs",
    "parts/pane.mjs",
    "parts/question.mjs",
    "parts/rail.mjs",
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
    font-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The tags of the files in the program: a browser asks whether it has the newest, so an upgrade needs no other name.
static TAGS: LazyLock<Vec<String>> =
    LazyLock::new(|| FILES.iter().map(|(_, bytes)| tag(bytes)).collect());

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
    Some((FILES[at].1.into(), TAGS[at].clone()))
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
