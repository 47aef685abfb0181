//! Raw results, one JSON object a line, and the medians over them.

use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

/// A file of raw results that is being written. Its first line says what was measured on which computer.
pub(crate) struct Raw(File);

impl Raw {
    /// Begins a file. The one of the last run is kept next to it; with `add`, its lines stay.
    pub(crate) fn begin(path: &Path, about: &Json, add: bool) -> Result<Self, String> {
        let text = |e: std::io::Error| format!("{}: {e}", path.display());
        if path.exists() && !add {
            fs::rename(path, path.with_extension("last.jsonl")).map_err(text)?;
        }
        let file = File::options().create(true).append(true).open(path);
        let mut raw = Self(file.map_err(text)?);
        raw.write(&serde_json::json!({ "about": about }))?;
        Ok(raw)
    }

    /// Writes one result.
    pub(crate) fn write(&mut self, line: &Json) -> Result<(), String> {
        writeln!(self.0, "{line}").map_err(|e| e.to_string())
    }
}

/// The results of a file.
#[derive(Default)]
pub(crate) struct Results {
    /// The computer and the versions.
    pub(crate) about: Json,
    /// All lines that are results.
    pub(crate) lines: Vec<Json>,
}

impl Results {
    /// Reads a file. Returns `None` if there is none.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let mut results = Self::default();
        for line in text.lines() {
            let line: Json = serde_json::from_str(line).ok()?;
            match line.get("about") {
                Some(about) => results.about = about.clone(),
                None => results.lines.push(line),
            }
        }
        Some(results)
    }

    /// The rows of a workload, in the order of the peers: one for each peer, store and case.
    pub(crate) fn rows(&self, workload: &str) -> Vec<Row> {
        let of = self.lines.iter().filter(|line| line["w"] == workload);
        let mut rows: Vec<Row> = Vec::new();
        for line in of {
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            let (peer, store, case) = (text("peer"), text("store"), text("case"));
            let same = |row: &Row| row.peer == peer && row.store == store && row.case == case;
            let at = rows.iter().position(same).unwrap_or_else(|| {
                rows.push(Row {
                    peer,
                    store,
                    case,
                    ..Row::default()
                });
                rows.len() - 1
            });
            rows[at].add(line);
        }
        rows
    }

    /// Load averages during the runs, the smallest and the largest.
    pub(crate) fn load(&self) -> Option<(f64, f64)> {
        let loads = self.lines.iter().filter_map(|line| line["load"].as_f64());
        let loads: Vec<f64> = loads.collect();
        let low = loads.iter().copied().reduce(f64::min)?;
        let high = loads.iter().copied().reduce(f64::max)?;
        Some((low, high))
    }
}

/// All runs of one peer, store and case.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) peer: String,
    pub(crate) store: String,
    pub(crate) case: String,
    /// Successful runs.
    pub(crate) runs: usize,
    pub(crate) errors: Vec<String>,
    values: BTreeMap<String, Vec<f64>>,
}

/// A figure over several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Row {
    fn add(&mut self, line: &Json) {
        if let Some(why) = line["error"].as_str() {
            self.errors.push(why.to_owned());
            return;
        }
        self.runs += 1;
        for (key, value) in line.as_object().into_iter().flatten() {
            if let Some(value) = value.as_f64() {
                self.values.entry(key.clone()).or_default().push(value);
            }
        }
    }

    /// A figure, if the runs have it.
    pub(crate) fn get(&self, key: &str) -> Option<Spread> {
        let mut all = self.values.get(key)?.clone();
        all.sort_by(f64::total_cmp);
        Some(Spread {
            median: f64::midpoint(all[(all.len() - 1) / 2], all[all.len() / 2]),
            low: all[0],
            high: all[all.len() - 1],
        })
    }

    /// The median of a figure.
    pub(crate) fn median(&self, key: &str) -> Option<f64> {
        self.get(key).map(|spread| spread.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_has_the_median_of_its_runs_and_leaves_out_failures() {
        let line = |value: f64| json!({ "w": "W1", "peer": "a", "store": "none", "cpu_s": value });
        let mut lines = vec![line(1.0), line(9.0), line(2.0)];
        lines.push(json!({ "w": "W1", "peer": "a", "store": "none", "error": "gone" }));
        lines.push(json!({ "w": "W2", "peer": "a", "store": "none", "cpu_s": 5.0 }));
        let results = Results {
            about: Json::Null,
            lines,
        };
        let rows = results.rows("W1");
        assert_eq!((rows.len(), rows[0].runs, rows[0].errors.len()), (1, 3, 1));
        let spread = rows[0].get("cpu_s").expect("it was measured");
        assert_eq!((spread.low, spread.median, spread.high), (1.0, 2.0, 9.0));
    }
}
