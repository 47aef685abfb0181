//! A kept outcome: what an effect gave where no branch took it, as the text of a ledger entry. **Stored** as JSON.
//!
//! Fields are added with a default, or with another version; what a field means never changes. What cannot be read was
//! written by a newer program: the hash of its line covers it.

use crate::effect::{Mapped, NewArtifact, NewWrite};
use crate::ids::{hex, unhex};
use crate::interaction::How;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Version of the form of kept outcomes.
pub const KEPT_VERSION: u16 = 1;

/// The stored form of a [`Mapped`] outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptOutcome {
    version: u16,
    how: How,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shown: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    writes: Vec<KeptWrite>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<KeptArtifact>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    then: Option<KeptThen>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptWrite {
    name: String,
    /// Secrets are sealed; none unsets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptArtifact {
    name: String,
    media: String,
    /// In hexadecimal digits, as whoever looks for what names a blob looks for them.
    hash: String,
    len: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptThen {
    tool: String,
    args: Json,
}

/// The text of a kept outcome. Panics if a secret in it is not sealed yet.
pub fn keep_outcome(mapped: &Mapped) -> String {
    let writes = mapped.writes.iter().map(|write| {
        assert!(!write.seal, "secrets are sealed before they are kept");
        KeptWrite {
            name: write.name.clone(),
            value: write.value.clone(),
        }
    });
    let artifacts = mapped.artifacts.iter().map(|artifact| KeptArtifact {
        name: artifact.name.clone(),
        media: artifact.media.clone(),
        hash: hex(&artifact.hash),
        len: artifact.len,
    });
    let then = mapped.then.as_ref();
    let kept = KeptOutcome {
        version: KEPT_VERSION,
        how: mapped.how,
        code: mapped.code.clone(),
        shown: mapped.shown.clone(),
        writes: writes.collect(),
        artifacts: artifacts.collect(),
        then: then.map(|(tool, args)| KeptThen {
            tool: tool.clone(),
            args: args.clone(),
        }),
        by: mapped.by.clone(),
        mode: mapped.mode.clone(),
    };
    serde_json::to_string(&kept).expect("plain data is JSON")
}

/// What [`keep_outcome`] wrote; why this program cannot read it otherwise.
pub fn kept_outcome(text: &str) -> Result<Mapped, String> {
    let kept: KeptOutcome = serde_json::from_str(text).map_err(|e| e.to_string())?;
    if kept.version > KEPT_VERSION {
        return Err(format!(
            "form {} of kept outcomes, this program knows {KEPT_VERSION}",
            kept.version
        ));
    }
    let writes = kept.writes.into_iter().map(|write| NewWrite {
        name: write.name,
        value: write.value,
        seal: false,
    });
    let artifact = |artifact: KeptArtifact| {
        let hash = unhex(&artifact.hash).and_then(|hash| hash.try_into().ok());
        Ok(NewArtifact {
            name: artifact.name,
            media: artifact.media,
            hash: hash.ok_or("the hash of an artifact is none")?,
            len: artifact.len,
            content: None,
        })
    };
    let artifacts: Result<Vec<NewArtifact>, String> =
        kept.artifacts.into_iter().map(artifact).collect();
    Ok(Mapped {
        how: kept.how,
        code: kept.code,
        shown: kept.shown,
        writes: writes.collect(),
        artifacts: artifacts?,
        then: kept.then.map(|then| (then.tool, then.args)),
        by: kept.by,
        mode: kept.mode,
    })
}
