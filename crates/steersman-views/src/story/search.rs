//! Describes searches over branches. Lines of the branches that a search tries get no rows.

use super::{Row, Story, Told, Tone, row};
use crate::words::{count, search_ended};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::network::search::Method;
use steersman_machine::stored::commit::{Commit, LedgerEntry, LogLine, Searching};
use steersman_machine::stored::ids::{Bodies, Id, Line};

/// The state of a search so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    method: Method,
    n: u64,
    tried: u64,
    calls: u64,
    best: Option<f64>,
    /// The last value of each branch.
    worth: BTreeMap<Id, f64>,
    /// Branches that ran for at least one block.
    explored: BTreeSet<Id>,
    over: bool,
    /// True if a person started it, so no agent answers by it.
    by_person: bool,
}

/// The note of every row of a search.
pub(super) const NOTE: &str = "search";

impl Story {
    /// Records the branches of searches, before rows are made of their lines.
    pub(super) fn learn_search(&mut self, line: &LogLine, texts: &dyn Bodies) {
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
                    seen.method = Method::of(method).unwrap_or_default();
                    seen.n = plan["n"].as_u64().unwrap_or_default();
                    if agent.is_none() {
                        seen.by_person = true;
                        self.searched.insert(*branch);
                    }
                }
                Searching::Tried { branch, .. } => {
                    seen.tried += 1;
                    self.searched.insert(*branch);
                }
                Searching::Judged { branch, .. } => drop(self.searched.insert(*branch)),
                Searching::Stood { branch, calls, .. } => {
                    seen.calls += calls;
                    seen.explored.insert(*branch);
                }
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

    /// Gives rows to all lines of these branches, even if a search tries them.
    pub(crate) fn tells_all_of(&mut self, branches: impl Iterator<Item = Id>) {
        self.whole.extend(branches);
    }

    /// For a line of a tried branch, keeps only the rows about the search. The other rows are shown if the branch is adopted.
    pub(super) fn only_search(&mut self, line: &LogLine, rows: &mut Vec<Row>) {
        if self.searched.contains(&line.branch) && !self.whole.contains(&line.branch) {
            let (shown, held) = std::mem::take(rows)
                .into_iter()
                .partition(|row: &Row| row.note == NOTE);
            *rows = shown;
            self.untold.insert(line.n, (line.prev, held));
        }
    }

    /// Adds rows if a person continues with a tried branch. The new branch then begins with the lines of the tried one.
    pub(super) fn chosen(&self, line: &LogLine, commit: &Commit, rows: &mut Vec<Row>) {
        let adopted = line.ledger.iter().find_map(|entry| match entry {
            LedgerEntry::Adopted { branch, at } => Some((*branch, *at)),
            _ => None,
        });
        if let Some((branch, at)) = adopted.filter(|_| commit.opening.is_some())
            && self.searched.contains(&branch)
        {
            self.adopts(line, (branch, at), rows);
        }
    }

    /// Adds rows for an adopted branch. The lines of a tried branch have no rows yet, so their rows follow.
    pub(super) fn adopts(&self, line: &LogLine, (branch, at): (Id, Line), rows: &mut Vec<Row>) {
        let tells = |text: String| row(line, "", text, "adopted".into(), Tone::Found);
        let mut searches = self.searches.iter();
        let Some((search, seen)) = searches.find(|(_, seen)| seen.explored.contains(&branch))
        else {
            let name = self.branch(branch);
            return rows.push(tells(format!("takes over {name} up to @{at}")));
        };
        let value = match seen.worth.get(&branch) {
            Some(worth) => format!("worth {worth}"),
            None => "not judged".to_owned(),
        };
        rows.push(tells(format!(
            "adopted branch {branch} of search {search}: {value}, up to @{at}"
        )));
        let (mut next, mut lines) = (at, Vec::new());
        while let Some((before, held)) = self.untold.get(&next) {
            lines.push(held);
            next = *before;
        }
        let held = lines.into_iter().rev().flatten();
        // The row for the beginning of the branch is not repeated.
        let held = held.filter(|row| row.tone != Tone::Begins);
        rows.extend(held.map(|row| Row {
            branch: line.branch,
            ..row.clone()
        }));
    }

    /// Returns true if a branch belongs to a search.
    pub(super) fn is_searched(&self, branch: Id) -> bool {
        self.searched.contains(&branch)
    }

    /// Describes the progress of a running search: a bar if the number of branches is known, and the best value.
    pub fn searching(&self) -> Option<String> {
        let seen = self.searches.values().find(|seen| !seen.over)?;
        let best = seen
            .best
            .map_or_else(String::new, |best| format!(", best {best}"));
        // The number of branches of a beam is that of one level, and the number of levels is not known.
        let (bar, of) = if seen.method == Method::Beam {
            (String::new(), String::new())
        } else {
            let part = (seen.tried * 20).checked_div(seen.n).unwrap_or(0).min(20) as usize;
            let bar = format!("[{}{}] ", "#".repeat(part), "-".repeat(20 - part));
            (bar, format!(" of {}", seen.n))
        };
        Some(format!(
            "{} {bar}branch {}{of}, {}{best}",
            seen.method.word(),
            seen.tried,
            count(seen.calls, "model call"),
        ))
    }

    pub(super) fn of_search(
        &self,
        search: Id,
        what: &Searching,
        texts: &dyn Bodies,
    ) -> Option<Told> {
        let seen = self.searches.get(&search)?;
        let text = match what {
            Searching::Began { .. } => {
                let each = if seen.method == Method::Beam {
                    " a level"
                } else {
                    ""
                };
                format!(
                    "searches by {}, {}{each}",
                    seen.method.word(),
                    count(seen.n, "branch")
                )
            }
            Searching::Over { winner, why } => {
                let found = match winner {
                    Some((branch, at)) => {
                        let worth = seen.worth.get(branch);
                        let worth = worth.map_or_else(String::new, |w| format!(", worth {w}"));
                        format!("found {branch}@{at}{worth}")
                    }
                    None => "found nothing".to_owned(),
                };
                let branches = count(seen.explored.len() as u64, "branch");
                match &**why {
                    "session_tokens" | "session_cost" => {
                        format!("{}, {branches},\n{found}", search_ended(why))
                    }
                    why => {
                        let calls = count(seen.calls, "model call");
                        format!("{found},\nin {branches} and {calls} ({why})")
                    }
                }
            }
            Searching::Without(why) if seen.by_person => {
                format!("nothing of it can be taken: {}", texts.text(*why))
            }
            Searching::Without(why) => format!("answers without it: {}", texts.text(*why)),
            Searching::Tried { .. }
            | Searching::Judged { .. }
            | Searching::Stood { .. }
            | Searching::Scored { .. } => return None,
        };
        Some((String::new(), text, NOTE.to_owned(), Tone::Found))
    }
}
