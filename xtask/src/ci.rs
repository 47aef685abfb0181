//! Runs the stages of CI in order. Each stage prints its time and has a budget.

use crate::counterpart::{self, Counterparts};
use crate::{counts, dist, features, run_within, say, tidy};
use std::time::{Duration, Instant};

/// A stage that needs only the repository, the toolchain, and packages of the system, which `.ci/run` installs.
struct Stage {
    name: &'static str,
    does: Does,
    budget: Duration,
}

/// The work of a stage.
enum Does {
    /// Runs cargo with these words.
    Cargo(&'static [&'static str]),
    /// Runs a task of this crate.
    Task(fn() -> Result<(), String>),
}

/// The stages. A budget is the wall time that a stage may take on two cores with nothing built. The aim for everything together is
/// 35 minutes on idle cores. The budgets add up to more, because other load on a processor lengthens processor time, too.
const STAGES: [Stage; 7] = [
    Stage {
        name: "format",
        does: Does::Cargo(&["fmt", "--all", "--check"]),
        budget: Duration::from_secs(10),
    },
    Stage {
        name: "lints",
        does: Does::Cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]),
        budget: Duration::from_mins(6),
    },
    Stage {
        name: "features",
        does: Does::Task(|| features::check(&tidy::root())),
        budget: Duration::from_mins(3),
    },
    Stage {
        name: "tests",
        does: Does::Cargo(&["test", "--workspace"]),
        budget: Duration::from_mins(28),
    },
    // Its program is the one that the tests built.
    Stage {
        name: "counts",
        does: Does::Task(|| counts::check(false)),
        budget: Duration::from_mins(2),
    },
    Stage {
        name: "docs",
        does: Does::Cargo(&["doc", "--workspace", "--no-deps"]),
        budget: Duration::from_mins(2),
    },
    // Its pages are written by a test that the tests built.
    Stage {
        name: "dist",
        does: Does::Task(|| dist::dist(&["--try"])),
        budget: Duration::from_mins(8),
    },
];

/// Number of cores that a budget assumes.
const CORES: u32 = 2;
/// A stage of cargo that takes this many times its budget hangs, whatever else the machine does.
const PATIENCE: u32 = 3;

/// The selection of stages and counterparts for a run.
#[derive(Default)]
struct Wanted<'a> {
    /// The selected names; empty means all.
    only: Vec<&'a str>,
    without: Vec<&'a str>,
}

impl<'a> Wanted<'a> {
    /// Parses the words after `cargo xtask ci`.
    fn read(words: &[&'a str]) -> Result<Self, String> {
        let mut wanted = Self::default();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if word == "--without" {
                wanted
                    .without
                    .push(known(words.next().unwrap_or_default())?);
            } else {
                wanted.only.push(known(word)?);
            }
        }
        Ok(wanted)
    }

    fn has(&self, name: &str) -> bool {
        !self.without.contains(&name) && (self.only.is_empty() || self.only.contains(&name))
    }
}

/// Returns the name of a stage or counterpart, or an error for any other word.
fn known(word: &str) -> Result<&str, String> {
    if counterpart::is_known(word) || STAGES.iter().any(|stage| stage.name == word) {
        return Ok(word);
    }
    let stages = STAGES.iter().map(|stage| stage.name);
    let names: Vec<&str> = stages.chain(counterpart::names()).collect();
    Err(format!(
        "`{word}` is not a stage or counterpart of `ci`: {}; {}",
        names.join(", "),
        crate::USE
    ))
}

/// Runs the stages, then the tests against counterparts. The first failure ends the run.
fn all(wanted: &Wanted<'_>) -> Result<(), String> {
    let counterparts = Counterparts::start(|name| wanted.has(name));
    let mut done = Vec::new();
    for stage in STAGES.iter().filter(|stage| wanted.has(stage.name)) {
        done.push(timed(stage.name, stage.budget, || match stage.does {
            Does::Cargo(words) => {
                say(&format!("== {}: cargo {}", stage.name, words.join(" ")));
                let mut cargo = crate::cargo();
                let cargo = cargo.args(words).env("RUSTDOCFLAGS", "-D warnings");
                run_within(cargo, stage.budget * PATIENCE)
            }
            Does::Task(task) => {
                say(&format!("== {}", stage.name));
                task()
            }
        })?);
    }
    let counterparts = counterparts.ready()?;
    for counterpart in counterparts.all() {
        done.push(timed(counterpart.name, counterpart.budget, || {
            counterparts.test(counterpart)
        })?);
    }
    let passed = if wanted.only.is_empty() { "all " } else { "" };
    say(&format!("== {passed}passed: {}", done.join(", ")));
    for name in &wanted.without {
        say(&format!("== NOT TESTED, left out by --without: {name}"));
    }
    Ok(())
}

/// Runs `cargo xtask ci` with the words that follow it.
pub(crate) fn run_stages(words: &[&str]) -> Result<(), String> {
    all(&Wanted::read(words)?)
}

/// Runs one stage and prints its time. Other load on the machine stretches wall time, so the stage fails only if it used more
/// processor time than its budget allows on [`CORES`] cores.
fn timed(
    name: &str,
    budget: Duration,
    stage: impl FnOnce() -> Result<(), String>,
) -> Result<String, String> {
    let (begun, used) = (Instant::now(), processor_time());
    stage().map_err(|why| format!("{name} failed: {why}"))?;
    let wall = begun.elapsed().as_secs();
    let spent = processor_time().saturating_sub(used);
    let allowed = budget * CORES;
    say(&format!(
        "== {name}: {wall} s ({} s of processor time, budget {} s)",
        spent.as_secs(),
        allowed.as_secs()
    ));
    if spent > allowed {
        return Err(format!(
            "{name} took {} s of processor time, its budget is {} s: make it cheaper, or move what is long to `cargo xtask long`",
            spent.as_secs(),
            allowed.as_secs()
        ));
    }
    Ok(format!("{name} {wall} s"))
}

/// Returns the user and system time of child processes that were waited for; zero if the system does not report it.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // the program's name is in brackets and may contain spaces, so fields are counted after it
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_whitespace().skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
