//! Searches over branches: what is told of them. Their branches are not told one by one.

use super::{Row, Story, Told, Tone};
use crate::texts::Texts;
use crate::words::count;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use steersman_machine::commit::{LedgerEntry, LogLine, Searching};
use steersman_machine::effect::Bodies;
use steersman_machine::ids::Id;

/// What a search came to so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    method: String,
    n: u64,
    tried: u64,
    calls: u64,
    best: Option<f64>,
    /// What each branch was worth when it was judged last.
    worth: BTreeMap<Id, f64>,
    over: bool,
}

/// Beside every row of a search.
pub(super) const NOTE: &str = "search";

impl Story {
    /// Branches of searches, before anything of their lines is told.
    pub(super) fn learn_search(&mut self, line: &LogLine, texts: &Texts) {
        for entry in &line.ledger {
            let LedgerEntry::Search { search, what } = entry else {
                continue;
            };
            let seen = self.searches.entry(*search).or_default();
            match what {
                Searching::Began {
                    agent,
                    branch,
                    plan,
                    ..
                } => {
                    let plan: Json = serde_json::from_str(&texts.text(*plan)).unwrap_or_default();
                    let method = plan["method"].as_str().unwrap_or_default();
                    method.clone_into(&mut seen.method);
                    seen.n = plan["n"].as_u64().unwrap_or_default();
                    if agent.is_none() {
                        self.searched.insert(*branch);
                    }
                }
                Searching::Tried { branch, .. } => {
                    seen.tried += 1;
                    self.searched.insert(*branch);
                }
                Searching::Judged { branch, .. } => drop(self.searched.insert(*branch)),
                Searching::Stood { calls, .. } => seen.calls += calls,
                Searching::Scored { branch, value, .. } => {
                    let value = value.as_ref().and_then(|v| v.parse().ok());
                    if let Some(value) = value {
                        seen.worth.insert(*branch, value);
                        seen.best = Some(seen.best.map_or(value, |best: f64| best.max(value)));
                    }
                }
                Searching::Over { .. } => seen.over = true,
                Searching::Without(_) => {}
            }
        }
    }

    /// Of branches that are tried nothing is told but what became of the search.
    pub(super) fn only_search(&self, line: &LogLine, rows: &mut Vec<Row>) {
        if self.searched.contains(&line.branch) {
            rows.retain(|row| row.note == NOTE);
        }
    }

    /// Whether a branch belongs to a search.
    pub(crate) fn is_searched(&self, branch: Id) -> bool {
        self.searched.contains(&branch)
    }

    /// How far a search is that goes on: a bar and what was found.
    pub(crate) fn searching(&self) -> Option<String> {
        let seen = self.searches.values().find(|seen| !seen.over)?;
        let part = (seen.tried * 20).checked_div(seen.n).unwrap_or(0).min(20) as usize;
        let bar = format!("{}{}", "#".repeat(part), "-".repeat(20 - part));
        let best = seen
            .best
            .map_or_else(String::new, |best| format!(", best {best}"));
        let of = if seen.method == "beam" {
            String::new()
        } else {
            format!(" of {}", seen.n)
        };
        Some(format!(
            "{} [{bar}] branch {}{of}, {}{best}",
            seen.method,
            seen.tried,
            count(seen.calls, "model call"),
        ))
    }

    pub(super) fn of_search(&self, search: Id, what: &Searching, texts: &Texts) -> Option<Told> {
        let seen = self.searches.get(&search)?;
        let text = match what {
            Searching::Began { .. } => {
                let each = if seen.method == "beam" {
                    " a level"
                } else {
                    ""
                };
                format!(
                    "searches by {}, {}{each}",
                    seen.method,
                    count(seen.n, "branch")
                )
            }
            Searching::Over { winner, why } => match winner {
                Some((branch, at)) => {
                    let worth = seen.worth.get(branch);
                    let worth = worth.map_or_else(String::new, |w| format!(", worth {w}"));
                    format!(
                        "found {branch}@{at}{worth}, in {} and {} ({why})",
                        count(seen.tried, "branch"),
                        count(seen.calls, "model call")
                    )
                }
                None => format!("found nothing ({why})"),
            },
            Searching::Without(why) => format!("answers without it: {}", texts.text(*why)),
            Searching::Tried { .. }
            | Searching::Judged { .. }
            | Searching::Stood { .. }
            | Searching::Scored { .. } => return None,
        };
        Some((String::new(), text, NOTE.to_owned(), Tone::Engine))
    }
}
