//! A soak: sessions of all kinds, one after the other, in one process over a store in a file, with a model behind HTTP on the
//! loopback. What the process holds must not grow with the number of sessions that it has driven.
//!
//! `STEERSMAN_SOAK` is the number of minutes of the long form (`cargo xtask long soak`): medians of the quarters of the run are
//! compared, because absolute numbers depend on the machine. The short form plays a fixed number of sessions, and compares what
//! can be counted exactly.

#![expect(clippy::unwrap_used, reason = "a test says where it failed")]
#![expect(clippy::print_stdout, reason = "the long form prints its figures")]

mod model;
mod play;

use play::World;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, interval};

/// Number of sessions that the long form drives at the same time.
const AT_ONCE: u64 = 6;
/// Time between two samples of the long form.
const EVERY: Duration = Duration::from_millis(500);

/// Everything that the process holds, at one moment.
#[derive(Copy, Clone, Debug, Default)]
struct Held {
    /// Resident memory, in KiB.
    memory: u64,
    /// Open files and sockets.
    files: u64,
    threads: u64,
    /// Tasks of tokio.
    tasks: u64,
    /// Size of the write-ahead log of the store, in KiB.
    wal: u64,
}

/// Names of the figures, and how much each may grow from the second quarter to the last besides a tenth of it: noise of the
/// allocator, of kept connections and of the sessions that happen to run.
const FIGURES: [(&str, u64); 5] = [
    ("memory (KiB)", 6 << 10),
    ("files", 4),
    ("threads", 2),
    ("tasks", 12),
    ("wal (KiB)", 1 << 10),
];

impl Held {
    fn now(store: &Path) -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.and_then(|word| word.parse().ok()).unwrap()
        };
        let wal = fs::metadata(store.with_extension("db-wal"));
        Self {
            memory: number("VmRSS:"),
            files: fs::read_dir("/proc/self/fd").unwrap().count() as u64,
            threads: number("Threads:"),
            tasks: Handle::current().metrics().num_alive_tasks() as u64,
            wal: wal.map_or(0, |wal| wal.len() >> 10),
        }
    }

    fn figures(self) -> [u64; FIGURES.len()] {
        [self.memory, self.files, self.threads, self.tasks, self.wal]
    }
}

/// Returns the median of each figure.
fn medians(samples: &[Held]) -> [u64; FIGURES.len()] {
    std::array::from_fn(|figure| {
        let mut all: Vec<u64> = samples.iter().map(|held| held.figures()[figure]).collect();
        all.sort_unstable();
        all[all.len() / 2]
    })
}

/// Returns the figures that grow from the second quarter to the last one.
fn grown(quarters: &[[u64; FIGURES.len()]; 4]) -> Vec<String> {
    let all = FIGURES.iter().enumerate();
    let grown = all.filter_map(|(figure, (name, slack))| {
        let [_, second, _, last] = quarters.map(|medians| medians[figure]);
        let most = second + second / 10 + slack;
        (last > most).then(|| format!("{name} grew from {second} to {last}"))
    });
    grown.collect()
}

fn folder() -> PathBuf {
    let name = format!("steersman-soak-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_process_holds_does_not_grow() {
    let folder = folder();
    let store = folder.join("store.db");
    let world = World::open(&store).await;
    let minutes = std::env::var("STEERSMAN_SOAK").ok();
    match minutes.map(|minutes| minutes.parse::<f64>().unwrap()) {
        Some(minutes) => long(&world, &store, Duration::from_secs_f64(minutes * 60.0)).await,
        None => short(&world, &store).await,
    }
    world.steersman.stop().await;
    fs::remove_dir_all(folder).unwrap();
}

/// Plays sessions of each kind twice, then more of them: the second part leaves no file and no task behind.
async fn short(world: &World, store: &Path) {
    for n in 0..2 * play::KINDS {
        world.session(n).await;
    }
    let before = Held::now(store);
    for n in 0..4 * play::KINDS {
        world.session(n).await;
    }
    let after = Held::now(store);
    let close = |before: u64, after: u64| after <= before + 4;
    assert!(
        close(before.files, after.files) && close(before.tasks, after.tasks),
        "{before:?}, then {after:?}"
    );
}

async fn long(world: &World, store: &Path, time: Duration) {
    let begun = Instant::now();
    let plays = (0..AT_ONCE).map(|first| async move {
        let mut played = 0;
        while begun.elapsed() < time {
            world.session(first + played * AT_ONCE).await;
            played += 1;
        }
        played
    });
    let samples = async {
        let mut samples = Vec::new();
        let mut tick = interval(EVERY);
        while begun.elapsed() < time {
            tick.tick().await;
            samples.push(Held::now(store));
        }
        samples
    };
    let (played, samples) = tokio::join!(futures::future::join_all(plays), samples);
    let quarter = samples.len() / 4;
    assert!(quarter > 0, "{} samples", samples.len());
    let quarters: [[u64; FIGURES.len()]; 4] =
        std::array::from_fn(|n| medians(&samples[n * quarter..(n + 1) * quarter]));
    println!(
        "{} sessions in {} s; medians of the quarters:",
        played.iter().sum::<u64>(),
        begun.elapsed().as_secs()
    );
    for (figure, (name, _)) in FIGURES.iter().enumerate() {
        let figures = quarters.map(|medians| medians[figure].to_string());
        println!("{name:<14} {}", figures.join("  "));
    }
    let grown = grown(&quarters);
    assert!(grown.is_empty(), "{}", grown.join("; "));
}

/// The comparison of quarters finds a leak, and noise is none.
#[test]
fn growth_is_told_from_noise() {
    let of = |memory: u64, files: u64| [memory, files, 9, 20, 4096];
    let flat = [
        of(40_000, 20),
        of(60_000, 24),
        of(62_000, 22),
        of(61_000, 26),
    ];
    assert!(grown(&flat).is_empty(), "{:?}", grown(&flat));
    let leaks = [
        of(40_000, 20),
        of(60_000, 24),
        of(70_000, 30),
        of(80_000, 36),
    ];
    let found = grown(&leaks);
    assert_eq!(found.len(), 2, "{found:?}");
}
