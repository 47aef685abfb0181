//! Artifacts as tools meet them, and the tools that keep, read, list and search them.

use crate::Boxed;
use crate::store::{Store, StoreError};
use crate::toolset::{ToolRun, Toolset};
use futures::FutureExt as _;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::sync::Arc;
use steersman_machine::artifact::{self, Content};
use steersman_machine::ids::Id;
use steersman_machine::interaction::Artifact;
use steersman_machine::mapping::{Fault, Raw};
use steersman_machine::network::{BuiltIn, Network, Source};
use steersman_machine::snapshot::Snapshot;
use tokio_util::sync::CancellationToken;

/// Lines that are read where nothing else is said.
const LINES: usize = 200;
/// Most bytes that are read at once: as much as a context takes of any result.
const READ: usize = 15 << 10;
/// Characters of a line that count as one; the rest counts as further lines, so that each text can be read piece by piece.
const LINE: usize = 2_000;
/// Most lines that a search finds.
const FOUND: usize = 50;
/// Characters of a found line that are shown.
const SHOWN: usize = 200;
/// Larger artifacts are not searched, in bytes.
const SEARCHED: u64 = 4 << 20;

/// The artifacts that an agent sees, as of one moment.
#[derive(Clone)]
pub struct Artifacts {
    store: Arc<dyn Store>,
    snapshot: Snapshot,
    agent: Option<Id>,
}

/// One version of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The name that it goes by where it is seen from.
    pub name: String,
    /// Which version, from 1.
    pub version: usize,
    /// Media type.
    pub media: String,
    /// Bytes.
    pub len: u64,
    /// blake3 of its content.
    pub hash: [u8; 32],
    /// The call that made it.
    pub call: Id,
}

/// Why an artifact cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// There is none of this name.
    #[error("there is no artifact `{name}`; {}", there(.known))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// It has fewer versions.
    #[error("`{name}` has no version {version}: the newest is {versions}")]
    NoVersion {
        /// The artifact.
        name: String,
        /// The version that was asked for.
        version: usize,
        /// How many there are.
        versions: usize,
    },
    /// Its content was erased.
    #[error("the content of `{0}` was erased")]
    Erased(String),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn there(known: &[String]) -> String {
    match known {
        [] => "there are none".to_owned(),
        known => format!("there are {}", known.join(", ")),
    }
}

impl Artifacts {
    /// Those that an agent sees in a snapshot; none: as the root of the session sees them.
    pub fn new(store: Arc<dyn Store>, snapshot: Snapshot, agent: impl Into<Option<Id>>) -> Self {
        Self {
            store,
            snapshot,
            agent: agent.into(),
        }
    }

    /// The versions of all of them, by name, the oldest first.
    pub fn versions(&self) -> Vec<Version> {
        let seen = artifact::seen(&self.snapshot, self.agent);
        let versions = seen.iter().flat_map(|seen| {
            let numbered = seen.versions.iter().enumerate();
            numbered.map(|(k, version)| about(&seen.name, k + 1, version))
        });
        versions.collect()
    }

    /// The newest version of each, by name.
    pub fn newest(&self) -> Vec<Version> {
        let seen = artifact::seen(&self.snapshot, self.agent);
        let newest = seen.iter().filter_map(|seen| {
            let last = seen.versions.last()?;
            Some(about(&seen.name, seen.versions.len(), last))
        });
        newest.collect()
    }

    /// One by its name, of a version or the newest.
    ///
    /// # Errors
    /// [`ArtifactError::Unknown`] and [`ArtifactError::NoVersion`].
    pub fn find(&self, name: &str, version: Option<usize>) -> Result<Version, ArtifactError> {
        let Some(versions) = artifact::find(&self.snapshot, self.agent, name) else {
            let known = artifact::seen(&self.snapshot, self.agent);
            return Err(ArtifactError::Unknown {
                name: name.to_owned(),
                known: known.into_iter().map(|seen| seen.name).collect(),
            });
        };
        let wanted = version.unwrap_or(versions.len());
        let found = wanted.checked_sub(1).and_then(|k| versions.get(k));
        let found = found.ok_or_else(|| ArtifactError::NoVersion {
            name: name.to_owned(),
            version: wanted,
            versions: versions.len(),
        })?;
        Ok(about(name, wanted, found))
    }

    /// Its content.
    ///
    /// # Errors
    /// [`ArtifactError::Erased`], and what the store says.
    pub async fn content(&self, version: &Version) -> Result<Arc<[u8]>, ArtifactError> {
        let content = self.store.blob(&version.hash).await?;
        content.ok_or_else(|| ArtifactError::Erased(version.name.clone()))
    }
}

fn about(name: &str, version: usize, of: &Artifact) -> Version {
    Version {
        name: name.to_owned(),
        version,
        media: of.media.to_string(),
        len: of.len,
        hash: of.hash,
        call: of.call,
    }
}

/// Runs the built-in set `artifacts`.
pub(crate) struct ArtifactTools;

impl Toolset for ArtifactTools {
    fn has(&self, network: &Network, tool: &str) -> bool {
        built_in(network, tool).is_some()
    }

    fn run<'a>(&'a self, run: &'a ToolRun, _cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        async move {
            let args: Json = serde_json::from_str(&run.work.args).unwrap_or_default();
            let done = match built_in(&run.network, &run.work.tool) {
                Some(BuiltIn::ArtifactWrite) => return write(&args),
                Some(BuiltIn::ArtifactRead) => read(&run.artifacts, &args).await,
                Some(BuiltIn::ArtifactSearch) => search(&run.artifacts, &args).await,
                _ => Ok(list(&run.artifacts)),
            };
            match done {
                Ok(text) => Raw::Done(Json::from(text)),
                Err(fault) => Raw::NotPerformed(fault),
            }
        }
        .boxed()
    }
}

fn built_in(network: &Network, tool: &str) -> Option<BuiltIn> {
    match network.tools.get(tool)?.source {
        Source::BuiltIn(
            built_in @ (BuiltIn::ArtifactWrite
            | BuiltIn::ArtifactRead
            | BuiltIn::ArtifactList
            | BuiltIn::ArtifactSearch),
        ) => Some(built_in),
        _ => None,
    }
}

fn write(args: &Json) -> Raw {
    let text = |key: &str| args[key].as_str().unwrap_or_default();
    let (name, content) = (text("name"), text("content"));
    let media = match text("media_type") {
        "" => artifact::media_of(name),
        media => media,
    };
    let made = Content {
        name: name.to_owned(),
        media: media.to_owned(),
        bytes: content.as_bytes().into(),
    };
    Raw::Made {
        result: json!(format!("Kept as `{name}`, {} bytes.", content.len())),
        made: vec![made],
    }
}

async fn read(artifacts: &Artifacts, args: &Json) -> Result<String, Fault> {
    let name = args["name"].as_str().unwrap_or_default();
    let number = |key: &str| args[key].as_u64().and_then(|n| usize::try_from(n).ok());
    let version = artifacts.find(name, number("version")).map_err(failed)?;
    let content = artifacts.content(&version).await.map_err(failed)?;
    let text = std::str::from_utf8(&content).map_err(|_| {
        let (media, len) = (&version.media, version.len);
        Fault::new(
            "not_text",
            format!("`{name}` is no text but {media}, {len} bytes"),
        )
    })?;
    let lines: Vec<&str> = text.lines().flat_map(pieces).collect();
    let from = number("from").unwrap_or(1).max(1);
    let most = number("lines").unwrap_or(LINES).max(1);
    if from > lines.len() {
        return Ok(format!("[`{name}` has {} lines.]", lines.len()));
    }
    let mut shown = String::new();
    let mut next = from;
    for line in lines.iter().skip(from - 1).take(most) {
        if shown.len() + line.len() > READ {
            break;
        }
        shown.push_str(line);
        shown.push('\n');
        next += 1;
    }
    if next <= lines.len() {
        let last = next - 1;
        write!(
            shown,
            "[Lines {from} to {last} of {}; read on from {next}.]",
            lines.len()
        )
        .expect("texts take all");
    }
    Ok(shown)
}

/// A line as the lines that it counts as.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        match text.char_indices().nth(LINE) {
            Some((at, _)) => {
                let (piece, behind) = text.split_at(at);
                rest = Some(behind);
                Some(piece)
            }
            None => Some(text),
        }
    })
}

fn list(artifacts: &Artifacts) -> String {
    let newest = artifacts.newest();
    if newest.is_empty() {
        return "There are no artifacts.".to_owned();
    }
    let lines = newest.iter().map(|artifact| {
        let Version {
            name,
            version,
            media,
            len,
            ..
        } = artifact;
        format!("{name}, version {version}, {media}, {len} bytes")
    });
    lines.collect::<Vec<_>>().join("\n")
}

async fn search(artifacts: &Artifacts, args: &Json) -> Result<String, Fault> {
    let query = args["query"].as_str().unwrap_or_default().to_lowercase();
    let words: Vec<&str> = query.split_whitespace().collect();
    if words.is_empty() {
        return Err(Fault::new("misfit", "`args.query` has no word in it"));
    }
    let mut found = Vec::new();
    for version in artifacts.newest() {
        if version.len > SEARCHED {
            continue;
        }
        let content = match artifacts.content(&version).await {
            Ok(content) => content,
            Err(ArtifactError::Erased(_)) => continue,
            Err(error) => return Err(failed(error)),
        };
        let Ok(text) = std::str::from_utf8(&content) else {
            continue;
        };
        for (k, line) in text.lines().flat_map(pieces).enumerate() {
            let lower = line.to_lowercase();
            if words.iter().all(|word| lower.contains(word)) {
                let shown: String = line.trim().chars().take(SHOWN).collect();
                found.push(format!("{}:{}: {shown}", version.name, k + 1));
            }
            if found.len() == FOUND {
                found.push(format!("[The first {FOUND}; there may be more.]"));
                return Ok(found.join("\n"));
            }
        }
    }
    if found.is_empty() {
        return Ok("No line of any artifact has all these words.".to_owned());
    }
    Ok(found.join("\n"))
}

fn failed(error: ArtifactError) -> Fault {
    match error {
        // Not there now, and not there when it is tried again.
        ArtifactError::Unknown { .. }
        | ArtifactError::NoVersion { .. }
        | ArtifactError::Erased(_) => Fault::new("failed", error.to_string()),
        ArtifactError::Store(_) => Fault {
            again: Some(0),
            ..Fault::new("failed", error.to_string())
        },
    }
}
