//! Declared secrets. They are read from the environment or a file each time they are used.

use crate::Env;
use crate::files;
use serde_json::Value as Json;
use std::fmt::Write as _;
use std::path::Path;
use steersman_machine::network::{Network, Secret, SecretSource};
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::Scope;
use steersman_machine::values::types::{Parameters, TypeKind};

/// Minimum length in bytes of a secret that is also searched for in other encodings, and that [`readable`] returns. A shorter one
/// would be found by chance.
pub(crate) const SEARCHED: usize = 6;
/// Maximum number of bytes of a secret's file.
const FILE_MAX: usize = 64 << 10;

/// Reasons for which a secret cannot be read. Never holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The secret is required and not set.
    #[error("secret `{name}` is not set: set {place}")]
    Unset {
        /// Name of the secret in `secrets`.
        name: Name,
        /// The variable or file, in words.
        place: String,
    },
    /// The file of the secret cannot be read.
    #[error("secret `{name}`: `{path}` cannot be read: {why}")]
    Unreadable {
        /// Name of the secret in `secrets`.
        name: Name,
        /// Path of the file.
        path: String,
        /// The error of the system.
        why: String,
    },
}

/// Returns the texts of all secrets that an attempt of this tool can read now: declared secrets, secret arguments, and sealed
/// state. Long enough texts are also returned as encoded in JSON, in an address and in a form. They are for masking what leaves
/// this process or is stored. The longest come first, because one may be part of another.
pub fn texts(network: &Network, tool: &str, scope: &dyn Scope) -> Vec<String> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    names.extend(network.secrets.keys().map(|name| ("secrets", &**name)));
    if let Some(Parameters::Fields(fields)) = network.tools.get(tool).map(|tool| &tool.parameters) {
        let fields = fields.iter().filter(|(_, ty)| ty.kind == TypeKind::Secret);
        names.extend(fields.map(|(name, _)| ("args", &**name)));
    }
    for agent in network.agents.values() {
        let entries = agent
            .state
            .iter()
            .filter(|(_, ty)| ty.kind == TypeKind::Secret);
        names.extend(entries.map(|(name, _)| ("state", &**name)));
    }
    if names.is_empty() {
        return Vec::new();
    }
    let text = |(root, name): (&str, &str)| {
        let (value, steps) = scope.path(root, &[name])?;
        let value = match steps {
            0 => value.get_attr(name).ok()?,
            _ => value,
        };
        value.as_str().map(str::to_owned)
    };
    let mut texts: Vec<String> = names.into_iter().filter_map(text).collect();
    for at in 0..texts.len() {
        let text = &texts[at];
        if text.len() >= SEARCHED {
            let escaped = Json::from(&**text).to_string();
            let forms = [
                escaped[1..escaped.len() - 1].to_owned(),
                encoded(text, b"-._~", false),
                encoded(text, b"*-._", true),
            ];
            texts.extend(forms);
        }
    }
    texts.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    texts.dedup();
    texts
}

/// Reads the present value of a secret. `None` if it is optional and unset. Paths are relative to the definition's folder.
pub fn read(
    name: &Name,
    secret: &Secret,
    env: &Env,
    folder: &Path,
) -> Result<Option<String>, SecretError> {
    let (found, place) = match &secret.source {
        SecretSource::Env(variable) => (
            env(variable),
            format!("the environment variable {variable}"),
        ),
        SecretSource::File(path) => {
            let unreadable = |why: String| SecretError::Unreadable {
                name: name.clone(),
                path: path.clone(),
                why,
            };
            let read = files::plain(&folder.join(path), FILE_MAX).and_then(files::text);
            let text = match read {
                Ok(text) => Some(without_newline(text)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                Err(error) => return Err(unreadable(error.to_string())),
            };
            (text, format!("the file {path}"))
        }
    };
    match found.filter(|text| !text.is_empty()) {
        None if !secret.optional => Err(SecretError::Unset {
            name: name.clone(),
            place,
        }),
        found => Ok(found),
    }
}

fn without_newline(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

/// Replaces a secret that a service or program returned.
const MASK: &str = "(secret)";

/// Returns all secrets that an attempt of this tool can read, with their present values: declared ones, secret arguments, sealed
/// state. Texts that are too short to search for are left out.
pub(crate) fn readable(network: &Network, tool: &str, scope: &dyn Scope) -> Vec<String> {
    let mut all = texts(network, tool, scope);
    all.retain(|text| text.len() >= SEARCHED);
    all
}

/// Percent-encodes a text for a path or query, or for a form, where a blank becomes `+`. Letters, digits and the bytes in `kept`
/// stay.
pub(crate) fn encoded(text: &str, kept: &[u8], form: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' if form => out.push('+'),
            _ if byte.is_ascii_alphanumeric() || kept.contains(&byte) => out.push(byte as char),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// Masks secrets in a text.
pub(crate) fn mask_text(text: &mut String, secrets: &[String]) {
    for secret in secrets {
        if text.contains(secret.as_str()) {
            *text = text.replace(secret.as_str(), MASK);
        }
    }
}
