//! Measures time and memory, and prints the table.

use cpu_time::ProcessTime;
use std::time::Instant;

/// The amount of work: all of it for figures, or a little to check that everything runs.
#[derive(Copy, Clone)]
pub(crate) struct Size {
    quick: bool,
    /// Repetitions of which the median counts.
    pub(crate) repeat: usize,
}

impl Size {
    pub(crate) fn new(quick: bool) -> Self {
        let repeat = if quick { 1 } else { 5 };
        Self { quick, repeat }
    }

    /// More repetitions, for work whose time varies with the disk of a busy machine.
    pub(crate) fn more(self) -> Self {
        Self {
            repeat: self.repeat * 2 - 1,
            ..self
        }
    }

    /// One repetition, for work that can be done only once.
    pub(crate) fn once(self) -> Self {
        Self { repeat: 1, ..self }
    }

    /// `full`, or `quick` in a quick run.
    pub(crate) fn of(self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }
}

/// CPU time of this process with all its threads so far, in seconds.
pub(crate) fn cpu() -> f64 {
    let now = ProcessTime::try_now().expect("the system has a clock of CPU time");
    now.as_duration().as_secs_f64()
}

/// CPU time and clock time that something took, in seconds.
#[derive(Copy, Clone, Default)]
pub(crate) struct Took {
    pub(crate) cpu: f64,
    pub(crate) clock: f64,
}

impl Took {
    /// CPU time for one of `of` items, in microseconds.
    pub(crate) fn micros(self, of: u64) -> f64 {
        self.cpu * 1e6 / of as f64
    }

    /// Items a second, by the clock.
    pub(crate) fn rate(self, of: u64) -> f64 {
        of as f64 / self.clock
    }
}

/// Runs it. Returns its value and the time that it took.
pub(crate) fn timed<T>(run: impl FnOnce() -> T) -> (T, Took) {
    let watch = Watch::start();
    let value = run();
    (value, watch.took())
}

/// A stopwatch.
#[derive(Copy, Clone)]
pub(crate) struct Watch {
    cpu: f64,
    clock: Instant,
}

impl Watch {
    pub(crate) fn start() -> Self {
        Self {
            cpu: cpu(),
            clock: Instant::now(),
        }
    }

    pub(crate) fn took(self) -> Took {
        Took {
            cpu: cpu() - self.cpu,
            clock: self.clock.elapsed().as_secs_f64(),
        }
    }
}

/// Resident memory of this process, in bytes.
pub(crate) fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = statm.split(' ').nth(1).and_then(|n| n.parse().ok());
    pages.unwrap_or_default() * 4096
}

pub(crate) fn median(of: impl IntoIterator<Item = f64>) -> f64 {
    let mut of: Vec<f64> = of.into_iter().collect();
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// The goal of a figure.
#[derive(Copy, Clone)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
    /// The figure has no goal.
    None,
}

/// Prints one row of the table for each figure, as soon as it is measured.
pub(crate) struct Table;

impl Table {
    #[expect(clippy::print_stdout, reason = "a benchmark reports")]
    pub(crate) fn begin() -> Self {
        println!("| figure | measured | goal | | beside, in the same run |");
        println!("|---|---|---|---|---|");
        Self
    }

    #[expect(clippy::print_stdout, reason = "a benchmark reports")]
    #[expect(clippy::unused_self, reason = "a table is what is written to")]
    pub(crate) fn note(&self, text: &str) {
        println!("| {text} | | | | |");
    }

    #[expect(clippy::print_stdout, reason = "a benchmark reports")]
    #[expect(clippy::unused_self, reason = "a table is what is written to")]
    pub(crate) fn row(&self, figure: &str, value: f64, unit: &str, goal: Goal, beside: &str) {
        let (goal, met) = match goal {
            Goal::AtMost(most) => (format!("at most {}{unit}", short(most)), met(value <= most)),
            Goal::AtLeast(least) => (
                format!("at least {}{unit}", short(least)),
                met(value >= least),
            ),
            Goal::None => (String::new(), ""),
        };
        println!(
            "| {figure} | {}{unit} | {goal} | {met} | {beside} |",
            short(value)
        );
    }
}

fn met(met: bool) -> &'static str {
    if met { "met" } else { "**missed**" }
}

/// The number with about three digits.
pub(crate) fn short(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}
