//! Describes new versions of artifacts, and names the branches in the arguments of calls.

use super::{Row, Tone, row};
use crate::words::bytes;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use steersman_machine::stored::commit::{Commit, LedgerEntry, LogLine};
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::stored::interaction::Artifact;
use steersman_machine::values::json::read;

/// For each branch, the lines that made versions of an artifact, by scope and name.
#[derive(Clone, Debug, Default)]
pub(super) struct Versions(BTreeMap<Id, BTreeMap<(Id, Name), Vec<Line>>>);

impl Versions {
    /// Updates the versions: a new branch inherits those before its fork, and an adopted branch brings its own.
    pub(super) fn learn(&mut self, line: &LogLine, commit: &Commit) {
        let opened = line.ledger.iter().find_map(|entry| match entry {
            LedgerEntry::Opened { branch, from, at } if *branch == line.branch => {
                Some((*from, *at))
            }
            _ => None,
        });
        if let Some((from, at)) = opened {
            let mut had = self.0.get(&from).cloned().unwrap_or_default();
            for lines in had.values_mut() {
                lines.retain(|n| *n <= at);
            }
            self.0.insert(line.branch, had);
        }
        let adopted = commit.adoption.iter().flat_map(|a| &a.artifacts);
        for artifact in adopted {
            self.next(line, artifact);
        }
    }

    /// Adds a version of an artifact. Returns its number.
    fn next(&mut self, line: &LogLine, artifact: &Artifact) -> usize {
        let here = self.0.entry(line.branch).or_default();
        let key = (artifact.scope, artifact.name.clone());
        let lines = here.entry(key).or_default();
        lines.push(line.n);
        lines.len()
    }

    /// Returns the row of a new version: `report.md, version 2, text/markdown, 9 B`. The first version has no number.
    pub(super) fn made(&mut self, line: &LogLine, artifact: &Artifact) -> Row {
        let version = match self.next(line, artifact) {
            1 => String::new(),
            n => format!(", version {n}"),
        };
        let Artifact {
            name, media, len, ..
        } = artifact;
        let text = format!("{name}{version}, {media}, {}", bytes(*len));
        row(line, "", text, "artifact".into(), Tone::Came)
    }
}

/// Replaces branch ids in the arguments of a call by labels.
pub(super) fn labelled(args: &str, labels: &BTreeMap<Id, String>) -> String {
    let Ok(mut args) = read::<Json>(args) else {
        return args.to_owned();
    };
    let named = args.get_mut("branches").and_then(Json::as_array_mut);
    for branch in named.into_iter().flatten() {
        let id = branch.as_str().and_then(|id| id.parse::<Id>().ok());
        if let Some(label) = id.and_then(|id| labels.get(&id)) {
            *branch = label.as_str().into();
        }
    }
    args.to_string()
}
