//! Writes the generated parts of `benchmarks.md` and its plots. Text outside the marks stays, and so do the reasons that people
//! wrote into the table of what others do better.

use super::drawn::plots_of;
use super::figures::{Figure, OURS, TABLES, equal_store};
use super::large;
use super::results::{Results, Row, Spread};
use super::server;
use super::worse::{compare, losses};
use crate::tidy::root;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Writes the page and the plots into a folder, from the raw results in the work folder.
pub(crate) fn write(work: &Path, into: &Path) -> Result<(), String> {
    let page = into.join("benchmarks.md");
    let plots = into.join("benchmarks");
    fs::create_dir_all(&plots).map_err(|e| format!("{}: {e}", plots.display()))?;
    let own = root().join("docs/reference/benchmarks.md");
    let from = if page.exists() { &page } else { &own };
    let mut text = fs::read_to_string(from).map_err(|e| format!("{}: {e}", from.display()))?;
    let mut parts = 0;
    let parts_of: [(&str, Part); 4] = [
        ("results", matrix),
        ("scale", |results, _, plots| large::scale(results, plots)),
        ("size", |results, _, _| Ok(large::size(results))),
        ("server", |results, _, _| Ok(server::part(results))),
    ];
    for (name, of) in parts_of {
        let Some(results) = Results::read(&work.join(format!("{name}.jsonl"))) else {
            continue;
        };
        parts += 1;
        let inside = between(&text, name)?;
        let part = of(&results, &text[inside.clone()], &plots);
        text.replace_range(inside, &part.map_err(|e| format!("{name}: {e}"))?);
    }
    if parts == 0 {
        return Err(format!(
            "{} has no raw results: run `cargo xtask bench` first",
            work.display()
        ));
    }
    fs::write(&page, text).map_err(|e| format!("{}: {e}", page.display()))?;
    crate::say(&format!(
        "== {parts} parts of {} are written",
        page.display()
    ));
    Ok(())
}

/// Makes a part of the page from results, the part as it was, and the folder for plots.
type Part = fn(&Results, &str, &Path) -> Result<String, Box<dyn Error>>;

/// The place between the marks of a part.
fn between(text: &str, name: &str) -> Result<Range<usize>, String> {
    let (begin, end) = (
        format!("<!-- begin {name} -->\n"),
        format!("<!-- end {name} -->"),
    );
    let from = text.find(&begin).map(|at| at + begin.len());
    let inside = from.and_then(|from| Some(from..from + text[from..].find(&end)?));
    inside.ok_or_else(|| format!("benchmarks.md has no marks `begin {name}` and `end {name}`"))
}

/// The computer, the versions and the load, in words.
pub(crate) fn conditions(results: &Results) -> String {
    let about = &results.about;
    let text = |key: &str| about[key].as_str().unwrap_or("?").trim().to_owned();
    let mut words = format!(
        "{} cores ({}), {} GiB, {}.",
        about["cores"],
        text("cpu"),
        about["memory_gib"],
        text("system"),
    );
    if about["optimised"] == false {
        words.insert_str(
            0,
            "**Not a result: a trial run of a build without optimisation.** ",
        );
    }
    if let Some((low, high)) = results.load() {
        let _ = write!(words, " Load average during the runs: {low} to {high}.");
    }
    let versions = about["versions"].as_object().into_iter().flatten();
    let versions =
        versions.map(|(name, version)| format!("{name}: {}", version.as_str().unwrap_or("?")));
    let _ = write!(
        words,
        "\nVersions: {}.\n",
        versions.collect::<Vec<_>>().join("; ")
    );
    words
}

/// A number with three digits or so.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 0.1 => 2,
        _ => 4,
    };
    format!("{value:.digits$}")
}

pub(crate) fn cell(spread: Option<Spread>) -> String {
    match spread {
        None => String::new(),
        Some(Spread { median, low, high }) if low < high => {
            format!("{} ({}-{})", number(median), number(low), number(high))
        }
        Some(Spread { median, .. }) => number(median),
    }
}

/// The part with the tables of the workloads.
fn matrix(results: &Results, before: &str, plots: &Path) -> Result<String, Box<dyn Error>> {
    let mut text = format!("\n{}\n", conditions(results));
    text.push_str(
        "A cell is the median of the runs, with the lowest and the highest. The last ratio of a row is its CPU over that of Steersman with
a store that makes as much durable; for a workload over HTTP, over the bare loop.\n\n",
    );
    limits(results, &mut text);
    let mut worse = Vec::new();
    for (workload, heading, figures) in &TABLES {
        let rows = results.rows(workload);
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(text, "### {heading}\n");
        table(&rows, figures, &mut text);
        for plot in plots_of(workload, &rows, plots)? {
            let _ = writeln!(text, "![{plot}](benchmarks/{plot}.svg)\n");
        }
        compare(workload, &rows, figures, &mut worse);
    }
    losses(&worse, before, &mut text);
    Ok(text)
}

fn limits(results: &Results, text: &mut String) {
    let rows = results.rows("LIMIT");
    if rows.is_empty() {
        return;
    }
    text.push_str("### LIMIT: raw storage\n\n| case | us each | 99 % within, us | each second | CPU us each | runs |\n|---|---:|---:|---:|---:|---:|\n");
    for row in rows {
        let cells = ["us_each", "us_p99", "per_s", "cpu_us_each"].map(|key| cell(row.get(key)));
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            row.case,
            cells.join(" | "),
            row.runs
        );
    }
    text.push('\n');
}

/// The row that others of this store are compared with: the bare loop if there is one, else ours.
fn reference<'a>(rows: &'a [Row], row: &Row) -> Option<&'a Row> {
    let bare = rows
        .iter()
        .find(|other| other.peer == "bare loop" && other.case == row.case);
    let store = equal_store(&row.peer, &row.store);
    let ours = || {
        rows.iter()
            .find(|other| other.peer == OURS && other.store == store && other.case == row.case)
    };
    bare.or_else(ours)
}

fn table(rows: &[Row], figures: &[Figure], text: &mut String) {
    let figures: Vec<&Figure> = figures
        .iter()
        .filter(|f| rows.iter().any(|row| row.get(f.key).is_some()))
        .collect();
    let has_cases = rows.iter().any(|row| !row.case.is_empty());
    let mut head = vec!["system", "store"];
    head.extend(has_cases.then_some("answer and first message"));
    head.extend(figures.iter().map(|figure| figure.label));
    head.extend(["CPU over the reference", "runs"]);
    let _ = writeln!(text, "| {} |", head.join(" | "));
    let words = 2 + usize::from(has_cases);
    let _ = writeln!(
        text,
        "|{}{}",
        "---|".repeat(words),
        "---:|".repeat(head.len() - words)
    );
    for row in rows {
        let mut cells = vec![row.peer.clone(), row.store.clone()];
        cells.extend(has_cases.then(|| row.case.clone()));
        cells.extend(figures.iter().map(|figure| cell(row.get(figure.key))));
        let cpu = |row: &Row| {
            row.median("cpu_s_per_1k_steps")
                .or_else(|| row.median("total_cpu_s"))
        };
        let other = reference(rows, row).and_then(cpu);
        let ratio = cpu(row).zip(other).map(|(own, other)| number(own / other));
        cells.extend([ratio.unwrap_or_default(), row.runs.to_string()]);
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text.push('\n');
    for row in rows.iter().filter(|row| !row.errors.is_empty()) {
        let why = row.errors[0].replace('|', " ");
        let _ = writeln!(
            text,
            "{} with `{}` failed {} times: {why}\n",
            row.peer,
            row.store,
            row.errors.len()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::OURS;
    use serde_json::json;

    fn results() -> Results {
        let line = |peer: &str, store: &str, cpu: f64, rate: f64| json!({ "w": "W1", "peer": peer, "store": store, "cpu_s_per_1k_steps": cpu, "steps_per_s": rate });
        Results {
            about: serde_json::Value::Null,
            lines: vec![
                line(OURS, "none", 0.03, 100.0),
                line(OURS, "sqlite", 0.2, 50.0),
                line("other", "memory", 0.02, 40.0),
                line("other", "sqlite", 0.4, 60.0),
            ],
        }
    }

    #[test]
    fn what_others_do_better_is_told_with_its_reason() {
        let folder = std::env::temp_dir().join(format!("steersman-page-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let first = matrix(&results(), "", &folder).expect("a part");
        let row =
            "| W1 | none | CPU s per 1,000 steps | 0.0300 | 0.0200 | other memory | 1.50 |  |";
        assert!(first.contains(row), "{first}");
        assert!(
            first.contains("| W1 | sqlite | steps/s | 50.0 | 60.0 | other sqlite | 1.20 |  |"),
            "{first}"
        );
        assert!(!first.contains("| W1 | sqlite | CPU"), "{first}");
        let edited = first.replace(row, &row.replace("|  |", "| It does less. |"));
        let second = matrix(&results(), &edited, &folder).expect("a part");
        assert_eq!(second, edited, "the reason stays");
        fs::remove_dir_all(&folder).expect("it was made");
    }

    #[test]
    fn a_part_is_found_by_its_marks() {
        let page = "a\n<!-- begin size -->\nold\n<!-- end size -->\nb";
        assert_eq!(
            between(page, "size").map(|inside| &page[inside]),
            Ok("old\n")
        );
        assert!(between(page, "scale").is_err());
    }
}
