//! The figures of each workload, and which stores make as much durable.

/// A figure of a workload.
pub(crate) struct Figure {
    pub(crate) key: &'static str,
    pub(crate) label: &'static str,
    /// True if more is better, false if less is; none if it is not compared.
    pub(crate) more_is_better: Option<bool>,
}

const fn figure(key: &'static str, label: &'static str, more_is_better: Option<bool>) -> Figure {
    Figure {
        key,
        label,
        more_is_better,
    }
}

const RATE: Figure = figure("steps_per_s", "steps/s", Some(true));
const CPU: Figure = figure("cpu_s_per_1k_steps", "CPU s per 1,000 steps", Some(false));
const MEMORY: Figure = figure("peak_rss_mib", "peak memory, MiB", Some(false));
const DISK: Figure = figure("disk_bytes_per_step", "disk bytes a step", Some(false));
const WRITTEN: Figure = figure(
    "written_bytes_per_step",
    "written bytes a step",
    Some(false),
);

/// A table: the workload, its heading, its figures.
pub(crate) type Table = (&'static str, &'static str, &'static [Figure]);

pub(crate) const TABLES: [Table; 10] = [
    (
        "W1",
        "W1: one session, a tool loop of 200 model turns",
        &[RATE, CPU, MEMORY, DISK, WRITTEN],
    ),
    (
        "W1L",
        "W1L: the same with 1,000 model turns",
        &[RATE, CPU, MEMORY, DISK, WRITTEN],
    ),
    (
        "W2",
        "W2: 1,000 sessions of 10 model turns at once",
        &[RATE, CPU, MEMORY, DISK, WRITTEN],
    ),
    (
        "W3",
        "W3: one session of 2,000 user turns",
        &[
            figure("turn100_cpu_ms", "CPU ms, turn 100", Some(false)),
            figure("turn1000_cpu_ms", "CPU ms, turn 1,000", Some(false)),
            figure("turn2000_cpu_ms", "CPU ms, turn 2,000", Some(false)),
            figure("turn2000_wall_ms", "ms, turn 2,000", Some(false)),
            figure("cpu_s", "CPU s, all turns", Some(false)),
            MEMORY,
            figure("disk_bytes", "disk bytes", Some(false)),
        ],
    ),
    (
        "W4",
        "W4: a parent with 100 sub-agents of 3 model turns",
        &[RATE, CPU, MEMORY, DISK, WRITTEN],
    ),
    (
        "W5",
        "W5: a new process continues the session that W3 left",
        &[
            figure("inproc_ms", "open, load and turn, ms", Some(false)),
            figure(
                "proc_ms",
                "start of the process to the answer, ms",
                Some(false),
            ),
            figure("total_cpu_s", "CPU s of the process", Some(false)),
            MEMORY,
        ],
    ),
    (
        "W6",
        "W6: a new process, an empty session, one turn",
        &[
            figure("inproc_ms", "open and turn, ms", Some(false)),
            figure(
                "proc_ms",
                "start of the process to the answer, ms",
                Some(false),
            ),
            figure("total_cpu_s", "CPU s of the process", Some(false)),
            MEMORY,
        ],
    ),
    (
        "W7",
        "W7: W1 with the model over HTTP",
        &[RATE, CPU, MEMORY],
    ),
    (
        "W7s",
        "W7s: 10 sessions of 10 model turns over HTTP, streamed",
        &[RATE, CPU, MEMORY],
    ),
    (
        "W7c",
        "W7c: 64 sessions of 20 model turns at once over HTTP",
        &[RATE, CPU, MEMORY],
    ),
];

/// The name of our rows.
pub(crate) const OURS: &str = "steersman";

/// The store of ours that makes as much durable as a store of a peer: nothing, each step before the next begins, or groups of
/// steps (while the next already runs, or at the end of a run).
pub(crate) fn equal_store(peer: &str, store: &str) -> &'static str {
    match (peer, store) {
        (_, "none" | "memory") => "none",
        (_, "sqlite-commit" | "sqlite-exit" | "sqlite-delta" | "sqlite-async" | "rows")
        | ("langgraph" | "agentkit", "sqlite") => "sqlite-commit",
        _ => "sqlite",
    }
}
