//! `simulate`: plays sessions of a definition under everything that may go wrong.

use crate::cli::Global;
use crate::commands::check;
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::printer::{Printer, bold, dim, green, red};
use crate::tell::row::{self, Form};
use crate::words::{count, quoted, width};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use steersman::simulation::{Happened, Invariant, Report, Simulation};

pub(crate) const LISTED: &str =
    "Play sessions of a definition under everything that may go wrong, offline";

/// Play sessions of a definition under everything that may go wrong, offline. Exit code 8 if an invariant breaks.
#[derive(Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    /// A definition, or a folder with a steersman.yaml.
    #[arg(default_value = ".")]
    definition: PathBuf,
    /// Number of simulations: those of the seeds 1, 2, 3 and so on.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Only the simulation of this seed.
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// An expression that must hold at the end of each simulation; for each effect, if it reads `effect`.
    #[arg(long = "invariant", value_name = "EXPRESSION")]
    invariants: Vec<String>,
}

/// An invariant that broke: its simulation with the lowest seed, and the number of simulations.
struct Found {
    report: Report,
    seeds: u64,
}

pub(crate) async fn run(
    args: SimulateArgs,
    _global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let mut invariants = Vec::new();
    for text in &args.invariants {
        let read = Invariant::parse(text);
        let wrong = |why| CommandError::usage(format!("`{text}` is no expression: {why}"));
        invariants.push(read.map_err(wrong)?);
    }
    let network = check::required(&args.definition, printer)?;
    let simulation = Simulation::of(&network, invariants);
    let (first, last) = match args.seed {
        Some(seed) => (seed, seed),
        None => (1, args.seeds),
    };
    let found = simulated(&simulation, first, last);
    let n = last - first + 1;
    for (invariant, found) in &found {
        let shrunk = simulation.shrunk(&found.report);
        let repeat = args.repeat(found.report.seed);
        if printer.is_json() {
            printer.json(&document(invariant, found, &shrunk, &repeat))?;
        } else {
            print(invariant, found, &shrunk, &repeat, printer)?;
        }
    }
    if printer.is_json() {
        printer.json(&json!({ "simulations": n, "broken": found.len() }))?;
    }
    let sum = count(n, "simulation");
    let nothing = "Nothing ran, no model was asked.";
    if found.is_empty() {
        printer.talk(green(&format!("{sum}, everything holds. {nothing}")));
        return Ok(Exit::Answered);
    }
    let broke = format!("{} broke", count(found.len() as u64, "invariant"));
    printer.talk(format!("{sum}, {}. {nothing}", bold(&red(&broke))));
    Ok(Exit::Differs)
}

impl SimulateArgs {
    /// Returns the command that repeats a simulation.
    fn repeat(&self, seed: u64) -> String {
        let mut command = format!(
            "steersman simulate {} --seed {seed}",
            locate::shown(&self.definition)
        );
        for text in &self.invariants {
            command.push_str(" --invariant ");
            command.push_str(&quoted(text));
        }
        command
    }
}

/// Runs the simulations of these seeds, and returns what broke, by invariant. Several threads share the seeds; the result does
/// not depend on which takes which.
fn simulated(simulation: &Simulation, first: u64, last: u64) -> BTreeMap<String, Found> {
    let (next, found) = (AtomicU64::new(first), Mutex::new(BTreeMap::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > last {
                        return;
                    }
                    let report = simulation.run(seed);
                    let mut found = found
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                    add(&mut found, report);
                }
            });
        }
    });
    found
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn add(found: &mut BTreeMap<String, Found>, report: Report) {
    for broken in &report.broken {
        let report = report.of(broken);
        if let Some(known) = found.get_mut(&broken.invariant) {
            known.seeds += 1;
            if report.seed < known.report.seed {
                known.report = report;
            }
        } else {
            let seeds = 1;
            found.insert(broken.invariant.clone(), Found { report, seeds });
        }
    }
}

/// Returns why the simulation fails, and what is said of its size.
fn about(found: &Found, shrunk: &Report) -> (String, String) {
    let why = shrunk.broken.first().map_or("", |broken| &*broken.why);
    let seeds = match found.seeds {
        1 => String::new(),
        n => format!(" (and {} more)", count(n - 1, "simulation")),
    };
    let steps = count(shrunk.steps as u64, "step");
    let size = format!("seed {}{seeds}, shrunk to {steps}", found.report.seed);
    (why.to_owned(), size)
}

fn print(
    invariant: &str,
    found: &Found,
    shrunk: &Report,
    repeat: &str,
    printer: &Printer,
) -> Result<(), CommandError> {
    let (why, size) = about(found, shrunk);
    printer.data(format!("{}  {invariant}", red("broken")))?;
    for text in why.lines() {
        printer.data(format!("        {text}"))?;
    }
    printer.data(format!("        {}", dim(&size)))?;
    for happened in &shrunk.trace {
        match happened {
            Happened::Done(at, text) => {
                printer.data(format!("{:>12}  {}", dim(&since(*at)), bold(text)))?;
            }
            Happened::Row(_, told) => {
                for text in row::print(told, Form::wide(width())) {
                    printer.data(text)?;
                }
            }
        }
    }
    printer.data(format!("        again: {repeat}"))
}

/// Returns milliseconds since the beginning as seconds.
fn since(millis: i64) -> String {
    format!("{}.{:03} s", millis / 1_000, millis % 1_000)
}

fn document(invariant: &str, found: &Found, shrunk: &Report, repeat: &str) -> Json {
    let trace = shrunk.trace.iter().map(|happened| match happened {
        Happened::Done(at, text) => json!({ "at": at, "did": text }),
        Happened::Row(at, row) => json!({ "at": at, "row": row }),
    });
    json!({
        "invariant": invariant,
        "why": about(found, shrunk).0,
        "seed": found.report.seed,
        "seeds": found.seeds,
        "steps": shrunk.steps,
        "lines": shrunk.lines,
        "trace": trace.collect::<Vec<Json>>(),
        "repeat": repeat,
    })
}
