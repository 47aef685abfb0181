//! The parts of the page about large stores and about the size of the program.

use super::page::{conditions, number};
use super::plot::{self, Curve, Texts, digits};
use super::results::Results;
use serde_json::Value as Json;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

/// Deeds of the scale section, with the words of the page.
const DEEDS: [(&str, &str); 5] = [
    ("open", "open the store"),
    ("list", "list 50 sessions"),
    ("show", "show a session"),
    ("resume", "continue it"),
    ("fork", "fork it"),
];

/// The part about large stores.
pub(crate) fn scale(results: &Results, plots: &Path) -> Result<String, Box<dyn Error>> {
    let mut text = format!("\n{}\n", conditions(results));
    let of = |what: &str| {
        let lines = results.lines.iter().filter(|line| line["w"] == what);
        lines.collect::<Vec<&Json>>()
    };
    for (what, title, across) in [
        ("parked", "A store with parked sessions", "parked sessions"),
        ("lines", "A session of many lines", "lines"),
    ] {
        let lines = of(what);
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "### {title}\n\n| {across} | {} | store, MiB |",
            DEEDS.map(|deed| format!("{}, ms", deed.1)).join(" | ")
        );
        let _ = writeln!(text, "|{}", "---:|".repeat(DEEDS.len() + 2));
        for line in &lines {
            let cells =
                DEEDS.map(|(key, _)| number(line[key]["wall_ms"].as_f64().unwrap_or_default()));
            let mib = line["disk_bytes"].as_f64().unwrap_or_default() / f64::from(1 << 20);
            let _ = writeln!(
                text,
                "| {} | {} | {} |",
                line["n"],
                cells.join(" | "),
                number(mib)
            );
        }
        let curves = DEEDS.map(|(key, label)| {
            let points = lines
                .iter()
                .filter_map(|line| Some((line["n"].as_f64()?, line[key]["wall_ms"].as_f64()?)));
            Curve {
                label: label.to_owned(),
                points: points.collect(),
                is_ours: false,
            }
        });
        plot::curves(
            &plots.join(format!("{what}.svg")),
            &Texts {
                title,
                across,
                up: "ms",
            },
            &curves,
        )?;
        let _ = writeln!(text, "\n![{what}](benchmarks/{what}.svg)\n");
    }
    let live = of("live");
    if !live.is_empty() {
        text.push_str("### Live sessions\n\nSessions of 10 model turns at once in one process, by the output-commit rule (W2).\n\n| sessions | steps/s | CPU us a step | peak memory, MiB |\n|---:|---:|---:|---:|\n");
        for line in &live {
            let of = |key: &str| line[key].as_f64().unwrap_or_default();
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                line["n"],
                number(of("steps_per_s")),
                number(of("cpu_s_per_1k_steps") * 1e3),
                number(of("peak_rss_mib")),
            );
        }
        let points = live.iter().filter_map(|line| {
            Some((
                line["n"].as_f64()?,
                line["cpu_s_per_1k_steps"].as_f64()? * 1e3,
            ))
        });
        let curve = Curve {
            label: "CPU of a step".to_owned(),
            points: points.collect(),
            is_ours: false,
        };
        let texts = Texts {
            title: "Live sessions in one process",
            across: "sessions",
            up: "CPU us of a step",
        };
        plot::curves(&plots.join("live.svg"), &texts, &[curve])?;
        text.push_str("\n![live](benchmarks/live.svg)\n\n");
    }
    Ok(text)
}

/// Crates with less code than this are one row.
const SMALL: f64 = 100.0 * 1024.0;

/// The part about the size of the program.
pub(crate) fn size(results: &Results) -> String {
    let mut text = format!("\n{}\n", conditions(results));
    let mib = |bytes: f64| format!("{:.2}", bytes / f64::from(1 << 20));
    let of = |what: &str| {
        let lines = results.lines.iter().filter(|line| line["w"] == what);
        let rows = lines.map(|line| {
            (
                line["case"].as_str().unwrap_or_default().to_owned(),
                line["bytes"].as_f64().unwrap_or_default(),
            )
        });
        rows.collect::<Vec<(String, f64)>>()
    };
    text.push_str("| the program | MiB |\n|---|---:|\n");
    for (name, bytes) in of("program") {
        let _ = writeln!(text, "| {name} | {} |", mib(bytes));
    }
    for (name, bytes) in of("feature") {
        let _ = writeln!(
            text,
            "| less without the feature `{name}` | {} |",
            mib(bytes)
        );
    }
    text.push_str("\n| crate | MiB of code |\n|---|---:|\n");
    let (small, large): (Vec<_>, Vec<_>) = of("crate")
        .into_iter()
        .partition(|(_, bytes)| *bytes < SMALL);
    for (name, bytes) in &large {
        let _ = writeln!(text, "| {name} | {} |", mib(*bytes));
    }
    let rest: f64 = small.iter().map(|(_, bytes)| bytes).sum();
    let _ = writeln!(
        text,
        "| {} others, each below {} KiB | {} |\n",
        small.len(),
        digits(SMALL / 1024.0),
        mib(rest)
    );
    text
}
