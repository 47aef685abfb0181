//! Artifacts: versions of named contents. This module has the rules for their names, finds the artifacts that an agent sees,
//! and turns a result that is too large for a context into an artifact.
//!
//! An artifact belongs to the agent whose call made it. Names resolve like names of state: in the agent first, then in the
//! agents above it. An agent sees the artifacts of its sub-agents as `NAME/ARTIFACT`. `NAME` is the name of the called
//! instance, or the name of the definition, with a number from the second instance on (`search/notes.md`, `search.2/notes.md`).

use crate::snapshot::{Agent, Snapshot};
use crate::stored::bounds::{ARTIFACT, FILES, NAME, PREVIEW, cut};
use crate::stored::ids::{Body, Id, Name};
use crate::stored::interaction::{Artifact, Number};
use crate::stored::outcome::NewArtifact;
use crate::values::json;
use crate::values::types::{Parameters, TypeKind};
use imbl::Vector;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// A named content that is not yet an artifact.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// Name of the future artifact.
    pub name: String,
    /// Media type, such as `text/plain`.
    pub media: String,
    /// Bytes of the content.
    pub bytes: Arc<[u8]>,
}

impl Content {
    /// Returns the artifact version for this content, with its hash and length.
    pub fn version(&self) -> NewArtifact {
        NewArtifact {
            name: self.name.clone(),
            media: self.media.clone(),
            hash: *blake3::hash(&self.bytes).as_bytes(),
            len: self.bytes.len() as u64,
            content: Some(self.bytes.clone()),
        }
    }
}

/// Returns the id that an artifact from outside has in place of a call. `body` is the text that it came with. These ids are
/// numbered downward from the greatest id of the line, so they never equal the id of a call.
pub fn came_with(body: Body) -> Id {
    Id::new(body.line(), Id::LAST - body.k())
}

/// Returns true if this `call` of an artifact means that the artifact came from outside ([`came_with`]).
pub fn is_from_outside(call: Id) -> bool {
    call.k() > Id::LAST / 2
}

/// Returns the artifacts that came with a text, sorted by scope and name.
pub(crate) fn came(snapshot: &Snapshot, body: Body) -> impl Iterator<Item = &Artifact> {
    let with = came_with(body);
    let all = snapshot.artifacts.values().flatten();
    all.filter(move |artifact| artifact.call == with)
}

/// Returns the names of the artifacts that came with a text, sorted by scope and name.
pub(crate) fn attached(snapshot: &Snapshot, body: Body) -> Vec<Name> {
    let came = came(snapshot, body);
    came.map(|artifact| artifact.name.clone()).collect()
}

/// Returns the reason why one message may not bring these contents, or `None` if it may.
pub fn unfit(contents: &[Content]) -> Option<String> {
    if contents.len() > FILES {
        return Some(format!(
            "{} artifacts in one message; at most {FILES} are allowed",
            contents.len()
        ));
    }
    for (k, content) in contents.iter().enumerate() {
        let Content { name, media, bytes } = content;
        if let Some(why) = misnamed(name) {
            return Some(why);
        }
        if !is_media(media) {
            return Some(format!(
                "`{name}`: `{}` is no media type",
                cut(media, NAME).escape_debug()
            ));
        }
        if bytes.len() > ARTIFACT {
            return Some(format!(
                "`{name}` has {} bytes; a version has at most {ARTIFACT}",
                bytes.len()
            ));
        }
        let same = contents[..k].iter().find(|other| other.name == *name);
        if same.is_some_and(|same| same != content) {
            return Some(format!("two artifacts of one message are named `{name}`"));
        }
    }
    None
}

/// Returns an error message if an argument names an artifact that is not in `there`. `None` means that all of them are.
pub fn missing(
    parameters: &Parameters,
    args: &serde_json::Map<String, Json>,
    there: &[&str],
) -> Option<String> {
    let Parameters::Fields(fields) = parameters else {
        return None;
    };
    let wanted = fields
        .iter()
        .filter(|(_, ty)| ty.kind == TypeKind::Artifact);
    let mut given = wanted.filter_map(|(name, _)| Some((name, args.get(&**name)?.as_str()?)));
    let (name, missing) = given.find(|(_, given)| !there.contains(given))?;
    let there = if there.is_empty() {
        "there are none".to_owned()
    } else {
        format!("there are {}", there.join(", "))
    };
    Some(format!(
        "`args.{name}`: there is no artifact `{missing}`; {there}"
    ))
}

/// Returns the reason why an artifact may not have this name, or `None` if it may.
///
/// A name is a relative path of plain names, because artifacts are saved to files of that path and their names are printed.
pub fn misnamed(name: &str) -> Option<String> {
    let bad = |why: &str| {
        Some(format!(
            "`{}` is no name of an artifact: {why}",
            name.escape_debug()
        ))
    };
    if name.is_empty() {
        return bad("it is empty");
    }
    if name.len() > NAME {
        return Some(format!(
            "the name of an artifact has {NAME} bytes at most, not {}",
            name.len()
        ));
    }
    if name.chars().any(|c| c.is_control() || is_invisible(c)) {
        return bad("it has characters that are not seen");
    }
    if name.contains('\\') {
        return bad("folders are parted by `/`");
    }
    if name
        .split('/')
        .any(|part| matches!(part, "" | "." | "..") || part.trim() != part)
    {
        return bad("it is a path below one folder, without `.`, `..` and empty parts");
    }
    None
}

/// Returns true for invisible characters, and for those that change the direction of the text around them.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Returns true if a text can be the media type of an artifact.
pub fn is_media(media: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() || c == ' ';
    media.len() <= NAME && media.contains('/') && media.chars().all(plain)
}

/// Returns the media type for the extension of a name. Without a known extension it is plain text.
pub fn media_of(name: &str) -> &'static str {
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    match end.to_ascii_lowercase().as_str() {
        "md" | "markdown" => "text/markdown",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "css" => "text/css",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "xml" => "application/xml",
        "js" | "mjs" => "text/javascript",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "zip" => "application/zip",
        _ => "text/plain",
    }
}

/// Returns the usual file extension for a media type, or `None` if there is none.
pub fn ending_of(media: &str) -> Option<&'static str> {
    let bare = media.split(';').next().unwrap_or_default().trim();
    Some(match bare {
        "text/plain" => "txt",
        "text/markdown" => "md",
        "text/html" => "html",
        "text/csv" => "csv",
        "application/json" => "json",
        "application/yaml" => "yaml",
        "application/xml" | "text/xml" => "xml",
        "image/svg+xml" => "svg",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "application/pdf" => "pdf",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "application/zip" => "zip",
        _ => return None,
    })
}

/// An artifact as an agent sees it.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// The name by which that agent refers to the artifact.
    pub name: String,
    /// All versions, oldest first. Version 1 is the first. Never empty.
    pub versions: &'a Vector<Artifact>,
}

/// Returns the artifacts that an agent sees, under the names that it uses for them. `None` means the root agent.
pub fn seen(snapshot: &Snapshot, agent: Option<Id>) -> Vec<Seen<'_>> {
    let Some(viewer) = agent.or(snapshot.root_agent().map(|a| a.id)) else {
        return Vec::new();
    };
    let mut scopes: BTreeMap<Id, Option<Sight>> = BTreeMap::new();
    let mut seen: BTreeMap<String, (u32, &Vector<Artifact>)> = BTreeMap::new();
    for ((scope, name), versions) in &snapshot.artifacts {
        let sight = scopes
            .entry(*scope)
            .or_insert_with(|| sight(snapshot, viewer, *scope));
        let Some(sight) = sight else { continue };
        let (name, levels_up) = match sight {
            Sight::Outward(levels_up) => (name.to_string(), *levels_up),
            Sight::Below(prefix) => (format!("{prefix}/{name}"), u32::MAX),
        };
        let known = seen.get(&name);
        if known.is_none_or(|(there, _)| levels_up < *there) {
            seen.insert(name, (levels_up, versions));
        }
    }
    let seen = seen
        .into_iter()
        .map(|(name, (_, versions))| Seen { name, versions });
    seen.collect()
}

/// Returns the versions of the artifact that has this name for an agent.
pub fn find<'a>(
    snapshot: &'a Snapshot,
    agent: Option<Id>,
    name: &str,
) -> Option<&'a Vector<Artifact>> {
    let found = seen(snapshot, agent)
        .into_iter()
        .find(|seen| seen.name == name)?;
    Some(found.versions)
}

/// Returns true if the agent sees at least one artifact.
pub(crate) fn sees_any(snapshot: &Snapshot, agent: Id) -> bool {
    let mut last = None;
    snapshot.artifacts.keys().any(|(scope, _)| {
        let again = last.replace(*scope) == Some(*scope);
        !again && sight(snapshot, agent, *scope).is_some()
    })
}

enum Sight {
    /// The artifact belongs to an agent this many levels above the viewer; 0 is the viewer itself.
    Outward(u32),
    /// The artifact belongs to a descendant of the viewer, which has this name there.
    Below(String),
}

fn sight(snapshot: &Snapshot, viewer: Id, scope: Id) -> Option<Sight> {
    let mut at = Some(viewer);
    let mut levels_up = 0;
    while let Some(id) = at {
        if id == scope {
            return Some(Sight::Outward(levels_up));
        }
        levels_up += 1;
        at = snapshot
            .agents
            .get(&id)
            .and_then(|agent| agent.family.parent);
    }
    let mut names = Vec::new();
    let mut at = snapshot.agents.get(&scope)?;
    loop {
        names.push(called(snapshot, at));
        let parent = at.family.parent?;
        if parent == viewer {
            names.reverse();
            return Some(Sight::Below(names.join("/")));
        }
        at = snapshot.agents.get(&parent)?;
    }
}

/// Returns the name of an agent below its parent: the name of its instance, or the name of its definition, with a number
/// from the second instance on.
fn called(snapshot: &Snapshot, agent: &Agent) -> String {
    if let Some(name) = &agent.family.named {
        return name.to_string();
    }
    let before = snapshot.agents.values().filter(|other| {
        other.family.parent == agent.family.parent
            && other.def == agent.def
            && other.family.named.is_none()
            && (&other.family.path, other.id) < (&agent.family.path, agent.id)
    });
    match before.count() {
        0 => agent.def.to_string(),
        more => format!("{}.{}", agent.def, more + 1),
    }
}

/// Returns the name, without extension, of the artifact that a result becomes. It consists of the tool, the agent's path of
/// child numbers and the number of the call. All of them stay the same when another owner takes the session over. No other
/// result of the session has the same name, so no such artifact hides another one.
pub(crate) fn spill_name(tool: &str, path: &[u32], number: Number) -> String {
    let tool = &tool[..tool.floor_char_boundary(TOOL)];
    let mut name = format!("{}-", tool.replace('/', "_"));
    for child in path {
        let _ = write!(name, "{child}.");
    }
    let _ = write!(name, "{number}");
    name
}

/// Maximum size, in bytes, of a tool's name in the name of an artifact; the rest of [`NAME`] is room for the numbers.
const TOOL: usize = NAME / 2;

/// Text before and after the name of the artifact, in the preview of a result that was moved to an artifact.
const IS_KEPT: (&str, &str) = (
    "All of it is the artifact `",
    "`; read on with artifact_read,",
);

/// Splits a text that is too large into the preview that the call gets and the artifact that holds the whole text.
pub(crate) fn spill(stem: &str, text: &str) -> (String, Content) {
    let (text, end, media) = match as_kept(text) {
        Cow::Owned(pretty) => (Cow::Owned(pretty), "json", "application/json"),
        Cow::Borrowed(text) => (Cow::Borrowed(text), "txt", "text/plain"),
    };
    let name = format!("{stem}.{end}");
    let shown = &text[..text.floor_char_boundary(PREVIEW)];
    // Cut at a line end, unless the first line alone is longer.
    let shown = shown.rfind('\n').map_or(shown, |end| &shown[..=end]);
    let lines = text.lines().count();
    let next = shown.matches('\n').count() + 1;
    let (is, read) = IS_KEPT;
    let preview = format!(
        "{}\n[This is the beginning of {} bytes in {lines} lines. {is}{name}{read} from line {next}.]",
        shown.trim_end_matches('\n'),
        text.len(),
    );
    let content = Content {
        name,
        media: media.to_owned(),
        bytes: text.as_bytes().into(),
    };
    (preview, content)
}

/// Returns a text as an artifact stores it: JSON is pretty-printed, because artifacts are read by lines and compact JSON is a
/// single line.
pub(crate) fn as_kept(text: &str) -> Cow<'_, str> {
    let is_json = text.starts_with(['{', '[']);
    let pretty = is_json.then(|| json::read::<Json>(text).ok()).flatten();
    let pretty = pretty.and_then(|json| serde_json::to_string_pretty(&json).ok());
    pretty.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Returns the index of the artifact that holds the whole of a result's text, or `None` if the text is not a preview.
///
/// A rerun takes the whole text of a recorded result. Its call then makes an artifact of the text again, under a name of its
/// own.
pub fn kept_whole(text: &str, made: &[Artifact]) -> Option<usize> {
    let (is, read) = IS_KEPT;
    let (_, behind) = text.rsplit_once(is)?;
    let (name, _) = behind.split_once(read)?;
    made.iter().rposition(|artifact| *artifact.name == *name)
}
