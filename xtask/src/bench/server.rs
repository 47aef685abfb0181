//! The server: its figures, and their part of the page.

use super::install::build;
use super::matrix::Places;
use super::page::{conditions, number};
use super::results::{Raw, Results, Row};
use super::run::one;
use crate::say;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// Longest time of one measurement.
const LONGEST: Duration = Duration::from_mins(15);
/// The measurements, and how often each is made: those that compare repeat themselves.
const WHAT: [(&str, usize); 5] = [
    ("pages", 1),
    ("messages", 1),
    ("streams", 3),
    ("lines", 3),
    ("ready", 1),
];

/// Measures the server; a `share` of 10 does a tenth of the work.
pub(crate) fn measure(
    places: &Places,
    is_optimised: bool,
    share: usize,
    raw: &mut Raw,
) -> Result<(), String> {
    let profile: &[&str] = if is_optimised { &["--release"] } else { &[] };
    let program = build("steersman-cli", "steersman", profile)?;
    let data = places.work.join("data");
    for (what, times) in WHAT {
        for _ in 0..times {
            let _ = fs::remove_dir_all(&data);
            fs::create_dir_all(&data).map_err(|e| format!("{}: {e}", data.display()))?;
            let mut command = Command::new(&places.ours);
            command.args(["server", what, &share.to_string(), "--program"]);
            let figures = one(command.arg(&program), &data, LONGEST)?;
            for case in figures["cases"].as_array().into_iter().flatten() {
                say(&case.to_string());
                raw.write(case)?;
            }
        }
    }
    fs::remove_dir_all(&data).map_err(|e| e.to_string())
}

/// A goal: the workload, the beginning of the case, the figure, and whether it is a floor.
struct Goal {
    about: &'static str,
    of: (&'static str, &'static str, &'static str),
    bound: f64,
    is_floor: bool,
}

const GOALS: [Goal; 4] = [
    Goal {
        about: "an unchanged page (304), requests a second over a bare axum handler that sends the same headers",
        of: ("pages", "steersman, unchanged", "of_bare"),
        bound: 0.6,
        is_floor: true,
    },
    Goal {
        about: "memory of an idle stream, KiB",
        of: ("streams", "", "kib_each"),
        bound: 30.0,
        is_floor: false,
    },
    Goal {
        about: "200 sessions at work: from the line on disk to the client, 99 % within, ms",
        of: ("lines", "", "p99_ms"),
        bound: 20.0,
        is_floor: false,
    },
    Goal {
        about: "`serve` is ready over a store with 10,000 sessions, ms",
        of: ("ready", "", "ready_ms"),
        bound: 100.0,
        is_floor: false,
    },
];

/// A table of the page: its workload, its heading, its figures with their labels.
type Table = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const TABLES: [Table; 5] = [
    (
        "pages",
        "Pages: `GET` of a session of 1,000 lines with a token, 64 connections",
        &[
            ("requests_per_s", "requests/s"),
            ("cpu_us", "CPU us a request"),
            ("p50_ms", "half within, ms"),
            ("p99_ms", "99 % within, ms"),
            ("of_bare", "requests/s over the bare handler"),
        ],
    ),
    (
        "messages",
        "Messages: 64 sessions, each said something after its answer",
        &[
            ("requests_per_s", "messages/s"),
            ("cpu_us", "CPU us a message"),
            ("p50_ms", "half within, ms"),
            ("p99_ms", "99 % within, ms"),
        ],
    ),
    (
        "streams",
        "Streams on which nothing happens",
        &[("streams", "streams"), ("kib_each", "KiB of memory each")],
    ),
    (
        "lines",
        "Sessions at work, each followed by a client",
        &[
            ("sessions", "sessions"),
            ("lines_per_s", "lines/s"),
            ("p50_ms", "half within, ms"),
            ("p99_ms", "99 % within, ms"),
            ("most_ms", "all within, ms"),
            ("cpu_share", "cores used"),
        ],
    ),
    (
        "ready",
        "From the start of the program to its readiness",
        &[("ready_ms", "ms")],
    ),
];

/// The part of the page.
pub(crate) fn part(results: &Results) -> String {
    let mut text = format!("\n{}\n", conditions(results));
    text.push_str("| figure | goal | reached | |\n|---|---|---|---|\n");
    for goal in &GOALS {
        let (w, begins, key) = goal.of;
        let rows = results.rows(w);
        let row = rows.iter().find(|row| row.case.starts_with(begins));
        let Some(reached) = row.and_then(|row| row.median(key)) else {
            continue;
        };
        let (word, is_met) = if goal.is_floor {
            ("at least", reached >= goal.bound)
        } else {
            ("at most", reached <= goal.bound)
        };
        let met = if is_met { "met" } else { "**missed**" };
        let _ = writeln!(
            text,
            "| {} | {word} {} | {} | {met} |",
            goal.about,
            number(goal.bound),
            number(reached)
        );
    }
    text.push('\n');
    for (w, heading, figures) in &TABLES {
        let rows = results.rows(w);
        if rows.is_empty() {
            continue;
        }
        let labels: Vec<&str> = figures.iter().map(|(_, label)| *label).collect();
        let _ = writeln!(
            text,
            "### {heading}\n\n| case | {} | runs |",
            labels.join(" | ")
        );
        let _ = writeln!(text, "|---|{}", "---:|".repeat(figures.len() + 1));
        for row in &rows {
            let _ = writeln!(
                text,
                "| {} | {} | {} |",
                row.case,
                cells(row, figures),
                row.runs
            );
        }
        text.push('\n');
    }
    text
}

/// The figures of a row: the median of each, with the lowest and the highest.
fn cells(row: &Row, figures: &[(&str, &str)]) -> String {
    let cells = figures
        .iter()
        .map(|(key, _)| super::page::cell(row.get(key)));
    cells.collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    #[test]
    fn goals_are_compared_with_the_medians() {
        let page = |share: f64| json!({ "w": "pages", "case": "steersman, unchanged (304)", "of_bare": share, "cpu_us": 9.0 });
        let results = Results {
            about: Json::Null,
            lines: vec![
                page(0.5),
                page(0.7),
                page(0.8),
                json!({ "w": "ready", "case": "10000 sessions", "ready_ms": 120.0 }),
            ],
        };
        let text = part(&results);
        assert!(
            text.contains("headers | at least 0.60 | 0.70 | met |"),
            "{text}"
        );
        assert!(
            text.contains("ms | at most 100 | 120 | **missed** |"),
            "{text}"
        );
        assert!(
            text.contains("| steersman, unchanged (304) |  | 9.00 |  |  | 0.70 (0.50-0.80) | 3 |"),
            "{text}"
        );
    }
}
