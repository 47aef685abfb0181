//! Figures in which other systems are better than ours, with reasons that people write.

use super::figures::{Figure, OURS, equal_store};
use super::page::number;
use super::results::Row;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A figure in which another system is better than ours.
pub(crate) struct Worse {
    workload: String,
    figure: &'static str,
    /// Our store and, in W7s, the case.
    ours: String,
    own: f64,
    other: String,
    best: f64,
    /// At least 1.
    times: f64,
}

/// Differences below this are not told.
const TOLD: f64 = 1.03;

/// Finds the figures in which the best other system with as much durability is better than ours.
pub(crate) fn compare(workload: &str, rows: &[Row], figures: &[Figure], worse: &mut Vec<Worse>) {
    for own in rows.iter().filter(|row| row.peer == OURS) {
        for figure in figures {
            let (Some(more), Some(value)) = (figure.more_is_better, own.median(figure.key)) else {
                continue;
            };
            let equals = rows.iter().filter(|row| {
                let is_equal =
                    equal_store(&row.peer, &row.store) == own.store || row.peer == "bare loop";
                row.peer != OURS && row.case == own.case && is_equal
            });
            let others = equals.filter_map(|row| Some((row, row.median(figure.key)?)));
            let best = others.max_by(|a, b| {
                let order = a.1.total_cmp(&b.1);
                if more { order } else { order.reverse() }
            });
            let Some((row, best)) = best else { continue };
            let times = if more { best / value } else { value / best };
            if times.is_finite() && times > TOLD {
                worse.push(Worse {
                    workload: workload.to_owned(),
                    figure: figure.label,
                    ours: format!("{} {}", own.store, own.case).trim().to_owned(),
                    own: value,
                    other: format!("{} {}", row.peer, row.store),
                    best,
                    times,
                });
            }
        }
    }
}

/// The table of what others do better. The last cell of a row is written by people and stays.
pub(crate) fn losses(worse: &[Worse], before: &str, text: &mut String) {
    let reasons = reasons(before);
    text.push_str("### Others are better\n\nAll figures in which another system with a store of equal durability is better by more than 3 %. The reasons are written by hand.\n\n");
    text.push_str("| workload | store | figure | Steersman | best | by | times | reason |\n|---|---|---|---:|---:|---|---:|---|\n");
    for one in worse {
        let key = [one.workload.as_str(), &one.ours, one.figure].map(str::to_owned);
        let reason = reasons.get(&key).map_or("", String::as_str);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {reason} |",
            one.workload,
            one.ours,
            one.figure,
            number(one.own),
            number(one.best),
            one.other,
            number(one.times),
        );
    }
    if worse.is_empty() {
        text.push_str("| none | | | | | | | |\n");
    }
    text.push('\n');
}

/// The reasons in a part that was written before, by workload, store and figure.
fn reasons(before: &str) -> BTreeMap<[String; 3], String> {
    let table = before
        .split("### Others are better")
        .nth(1)
        .unwrap_or_default();
    let rows = table.lines().filter_map(|line| {
        let cells: Vec<&str> = line
            .trim()
            .trim_matches('|')
            .split('|')
            .map(str::trim)
            .collect();
        let [workload, store, figure, _, _, _, _, reason] = cells[..] else {
            return None;
        };
        let key = [workload, store, figure].map(str::to_owned);
        (!reason.is_empty()).then(|| (key, reason.to_owned()))
    });
    rows.collect()
}
