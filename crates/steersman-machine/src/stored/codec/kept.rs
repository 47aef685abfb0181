//! Kept outcomes: the result of an effect that no branch took, as the text of a ledger entry. **Stored** as JSON.
//!
//! New fields have a default, or come with a new version. The meaning of a field never changes. A text that cannot be read was
//! written by a newer program, because the hash of its line covers it.

use crate::stored::by::Decider;
use crate::stored::ids::{hex, unhex};
use crate::stored::interaction::How;
use crate::stored::outcome::{Mapped, NewArtifact, NewWrite};
use crate::stored::parts::NewPart;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Version of the form of kept outcomes.
const KEPT_VERSION: u16 = 1;

/// The stored form of a [`Mapped`] outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptOutcome {
    version: u16,
    how: How,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shown: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    more: Vec<KeptPart>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    writes: Vec<KeptWrite>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<KeptArtifact>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    then: Option<KeptThen>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<Decider>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptWrite {
    name: String,
    /// The value, with secrets sealed. `None` unsets the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptArtifact {
    name: String,
    media: String,
    /// Hash in hexadecimal digits, so that a search for references to a blob finds it.
    hash: String,
    len: u64,
}

/// A part that follows the text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptPart {
    Text(String),
    Artifact(KeptArtifact),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptThen {
    tool: String,
    args: Json,
}

/// Returns the text of a kept outcome. Panics if a secret in it is not sealed yet.
pub fn keep_outcome(mapped: &Mapped) -> String {
    let writes = mapped.writes.iter().map(|write| {
        assert!(!write.seal, "secrets are sealed before they are kept");
        KeptWrite {
            name: write.name.clone(),
            value: write.value.clone(),
        }
    });
    let artifact = |artifact: &NewArtifact| KeptArtifact {
        name: artifact.name.clone(),
        media: artifact.media.clone(),
        hash: hex(&artifact.hash),
        len: artifact.len,
    };
    let more = mapped.more.iter().map(|part| match part {
        NewPart::Text(text) => KeptPart::Text(text.clone()),
        NewPart::Artifact(new) => KeptPart::Artifact(artifact(new)),
    });
    let then = mapped.then.as_ref();
    let kept = KeptOutcome {
        version: KEPT_VERSION,
        how: mapped.how,
        code: mapped.code.clone(),
        shown: mapped.shown.clone(),
        more: more.collect(),
        writes: writes.collect(),
        artifacts: mapped.artifacts.iter().map(artifact).collect(),
        then: then.map(|(tool, args)| KeptThen {
            tool: tool.clone(),
            args: args.clone(),
        }),
        by: mapped.by.clone(),
        mode: mapped.mode.clone(),
    };
    serde_json::to_string(&kept).expect("plain data is JSON")
}

/// Parses a text that [`keep_outcome`] made. An error says why this program cannot read it.
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
            hash: hash.ok_or("the hash of an artifact is not 64 hexadecimal digits")?,
            len: artifact.len,
            content: None,
        })
    };
    let part = |part| match part {
        KeptPart::Text(text) => Ok(NewPart::Text(text)),
        KeptPart::Artifact(kept) => artifact(kept).map(NewPart::Artifact),
    };
    let more: Result<Vec<NewPart>, String> = kept.more.into_iter().map(part).collect();
    let artifacts: Result<Vec<NewArtifact>, String> =
        kept.artifacts.into_iter().map(artifact).collect();
    Ok(Mapped {
        how: kept.how,
        code: kept.code,
        shown: kept.shown,
        more: more?,
        writes: writes.collect(),
        artifacts: artifacts?,
        then: kept.then.map(|then| (then.tool, then.args)),
        by: kept.by,
        mode: kept.mode,
    })
}
