//! The plots of the workloads.

use super::figures::{OURS, TABLES};
use super::plot::{self, Bar, Curve, Texts};
use super::results::Row;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

/// Draws the plots of a workload. Returns their names.
pub(crate) fn plots_of(
    workload: &str,
    rows: &[Row],
    folder: &Path,
) -> Result<Vec<String>, Box<dyn Error>> {
    let name = workload.to_lowercase();
    let path = folder.join(format!("{name}.svg"));
    let label = |row: &Row| format!("{}, {}", row.peer, row.store);
    match workload {
        "W1" | "W2" | "W4" | "W5" | "W7" => {
            let (key, factor, across) = match workload {
                "W5" => (
                    "inproc_ms",
                    1.0,
                    "ms until the answer, logarithmic; shorter is better",
                ),
                _ => (
                    "cpu_s_per_1k_steps",
                    1e3,
                    "CPU of a step in microseconds, logarithmic; shorter is better",
                ),
            };
            let bars = rows.iter().filter_map(|row| {
                Some(Bar {
                    label: label(row),
                    value: row.median(key)? * factor,
                    is_ours: row.peer == OURS,
                })
            });
            let mut bars: Vec<Bar> = bars.collect();
            bars.sort_by(|a, b| a.value.total_cmp(&b.value));
            let title = TABLES
                .iter()
                .find(|table| table.0 == workload)
                .map_or("", |table| table.1);
            plot::bars(
                &path,
                &Texts {
                    title,
                    across,
                    up: "",
                },
                &bars,
            )?;
        }
        "W3" => {
            let curves = rows.iter().map(|row| {
                let of = |mark: u32| {
                    let cpu = row.median(&format!("turn{mark}_cpu_ms"))?;
                    Some((f64::from(mark), cpu))
                };
                Curve {
                    label: label(row),
                    points: [100, 500, 1_000, 2_000]
                        .into_iter()
                        .filter_map(of)
                        .collect(),
                    is_ours: row.peer == OURS,
                }
            });
            let curves: Vec<Curve> = curves.collect();
            let texts = Texts {
                title: "W3: the cost of a turn as the session grows",
                across: "turn",
                up: "CPU ms of a turn",
            };
            plot::curves(&path, &texts, &curves)?;
        }
        "W7s" => {
            let ours = rows.iter().filter(|row| row.peer == OURS);
            let mut by: BTreeMap<(String, u64), Vec<(f64, f64)>> = BTreeMap::new();
            for row in ours {
                let bare = rows
                    .iter()
                    .find(|other| other.peer == "bare loop" && other.case == row.case);
                let Some(bare) = bare.and_then(|bare| bare.median("cpu_s_per_1k_steps")) else {
                    continue;
                };
                let of = |key: &str| row.median(key).unwrap_or_default();
                let point = (of("bytes"), of("cpu_s_per_1k_steps") / bare);
                by.entry((row.store.clone(), of("pieces") as u64))
                    .or_default()
                    .push(point);
            }
            let curves = by.into_iter().map(|((store, pieces), points)| Curve {
                label: format!("{store}, {pieces} pieces"),
                points,
                is_ours: false,
            });
            let curves: Vec<Curve> = curves.collect();
            let texts = Texts {
                title: "W7s: a step over HTTP, streamed",
                across: "bytes of the first message",
                up: "CPU over the bare loop",
            };
            plot::curves(&path, &texts, &curves)?;
        }
        _ => return Ok(Vec::new()),
    }
    Ok(vec![name])
}
