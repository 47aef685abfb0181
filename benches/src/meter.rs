//! Measures a part of a process: time, CPU time of all threads, bytes written, peak memory.

use cpu_time::ProcessTime;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// CPU time of this process with all its threads so far, in seconds.
pub(crate) fn cpu() -> f64 {
    let now = ProcessTime::try_now().expect("the system has a clock of CPU time");
    now.as_duration().as_secs_f64()
}

/// A number from a file of `/proc/self`; zero where the system has no such file.
fn proc_number(file: &str, key: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(key));
    let number = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

/// Peak resident memory of this process, in MiB.
pub(crate) fn peak_mib() -> f64 {
    proc_number("status", "VmHWM:") as f64 / 1024.0
}

/// Resident memory of this process now, in MiB.
pub(crate) fn resident_mib() -> f64 {
    proc_number("status", "VmRSS:") as f64 / 1024.0
}

/// A running measurement.
#[derive(Clone, Copy)]
pub(crate) struct Meter {
    clock: Instant,
    cpu: f64,
    written: u64,
}

/// A finished measurement.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    /// Seconds.
    pub(crate) wall: f64,
    /// Seconds of CPU.
    pub(crate) cpu: f64,
    /// Bytes that the process gave to the block layer.
    pub(crate) written: u64,
}

impl Meter {
    pub(crate) fn start() -> Self {
        let written = proc_number("io", "write_bytes:");
        Self {
            written,
            cpu: cpu(),
            clock: Instant::now(),
        }
    }

    pub(crate) fn read(self) -> Reading {
        Reading {
            wall: self.clock.elapsed().as_secs_f64(),
            cpu: cpu() - self.cpu,
            written: proc_number("io", "write_bytes:").saturating_sub(self.written),
        }
    }
}

/// Milliseconds since `BENCH_T0` (seconds since 1970): when the driver started this process.
pub(crate) fn since_spawn_ms() -> Option<f64> {
    let begun: f64 = std::env::var("BENCH_T0").ok()?.parse().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Some((now.unwrap_or(Duration::ZERO).as_secs_f64() - begun) * 1e3)
}

/// Size of the files in a folder, without shared memory, in bytes.
pub(crate) fn size_of(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let kept = files.filter(|file| !file.file_name().to_string_lossy().ends_with("-shm"));
    let sizes = kept.filter_map(|file| file.metadata().ok().filter(std::fs::Metadata::is_file));
    sizes.map(|meta| meta.len()).sum()
}

/// Rounds to four digits after the point, so that raw lines stay readable.
pub(crate) fn short(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
