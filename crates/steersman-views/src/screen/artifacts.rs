//! The screen of `artifacts`.

use super::{Ask, Missing, Refusal, Screen, ScreenError, Seen};
use crate::shown;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use steersman_machine::stored::ids::{Id, Line, hex};
use steersman_machine::view::artifact::is_from_outside;
use steersman_machine::view::rating::{Rater, Rating};
use steersman_runtime::artifact::{ArtifactError, Artifacts, Version};
use steersman_runtime::load::Load;

/// The artifacts of a branch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArtifactsScreen {
    /// The id of the session.
    pub session: String,
    /// The session as people type it, with the branch and the line if they were named.
    pub name: String,
    /// The newest version of each artifact.
    pub newest: Vec<ArtifactRow>,
    /// The documents of all versions.
    pub documents: Vec<Json>,
    /// The version that was asked for, if an artifact was named.
    pub found: Option<ArtifactRow>,
}

/// A version of an artifact.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArtifactRow {
    /// The name under which the agent sees the artifact.
    pub name: String,
    /// Number of the version, from 1.
    pub version: usize,
    /// Media type.
    pub media: String,
    /// Length of the content, in bytes.
    pub len: u64,
    /// The line of the call that made it.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub line: Line,
    /// The rating, if somebody rated it.
    pub rating: Option<RatingRow>,
    /// The version as one document.
    pub document: Json,
}

/// A rating.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RatingRow {
    /// From 1 to 5.
    pub rating: u8,
    /// The person or agent that rated it.
    pub by: String,
    /// The rating in words.
    pub told: String,
}

impl ArtifactRow {
    /// Returns the digest of the content, under which `find_any` finds it even if its name is masked.
    pub fn digest(&self) -> String {
        format!(
            "blake3:{}",
            self.document["blake3"].as_str().unwrap_or_default()
        )
    }
}

impl From<&Version> for ArtifactRow {
    fn from(version: &Version) -> Self {
        Self {
            name: version.name.clone(),
            version: version.version,
            media: version.media.clone(),
            len: version.len,
            line: version.call.line(),
            rating: version.rating.as_ref().map(|rating| RatingRow {
                rating: rating.rating,
                by: rating.by.clone(),
                told: rating.told(),
            }),
            document: document(version),
        }
    }
}

fn document(version: &Version) -> Json {
    let rating = |rating: &Rating| {
        json!({
            "rating": rating.rating,
            "reason": rating.reason,
            "by": rating.by,
            "person": rating.rater == Rater::Person,
        })
    };
    let call = |call: Id| (!is_from_outside(call)).then(|| call.to_string());
    json!({
        "artifact": version.name,
        "version": version.version,
        "media_type": version.media,
        "bytes": version.len,
        "blake3": hex(&version.hash),
        "call": call(version.call),
        "line": version.call.line().0,
        "rating": version.rating.as_ref().map(rating),
    })
}

/// Returns the artifacts of a branch, those of the time if a line is asked for.
///
/// # Errors
/// There is no such line; errors of the store.
pub async fn artifacts_in(seen: &Seen, ask: &Ask) -> Result<Artifacts, ScreenError> {
    let store = seen.engine.store().clone();
    let snapshot = match seen.line(ask)? {
        None => seen.branch().snapshot.clone(),
        Some(line) => {
            let info = &seen.inspection.info;
            let load = Load::new(store.clone(), info.id.clone(), info.salt);
            load.snapshot(line).await?.snapshot
        }
    };
    Ok(Artifacts::new(store, snapshot, None))
}

impl Screen for ArtifactsScreen {
    const NAME: &'static str = "artifacts";

    async fn of(seen: Seen, ask: &Ask) -> Result<Self, ScreenError> {
        let artifacts = artifacts_in(&seen, ask).await?;
        let name = match seen.line(ask)? {
            Some(line) => format!("{}@{line}", seen.name()),
            None => seen.name(),
        };
        let found = match &ask.of {
            None => None,
            Some(of) => {
                let version = ask.form.as_deref().map(str::parse::<usize>).transpose();
                let version = version
                    .map_err(|_| Refusal::new(Missing::Form, "a version is a number from 1"))?;
                let found = artifacts.find_any(of, version).map_err(refused)?;
                Some(ArtifactRow::from(&found))
            }
        };
        Ok(Self {
            session: seen.inspection.info.id.to_string(),
            name,
            newest: artifacts.newest().iter().map(ArtifactRow::from).collect(),
            documents: artifacts.versions().iter().map(document).collect(),
            found,
        })
    }
}

fn refused(error: ArtifactError) -> ScreenError {
    match error {
        ArtifactError::Store(error) => error.into(),
        other => Refusal::new(Missing::Artifact, other.to_string()).into(),
    }
}
