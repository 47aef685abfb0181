//! Cost of appending lines to the SQLite store, compared with a loop that only inserts the same bytes. The figures are
//! ratios of CPU time of the process and of clock time, and medians over `REPEAT` runs.
//! `cargo bench -p steersman-adapters --bench store`; with `-- marked` it measures lines at which unsafe effects begin.

use rusqlite::{Connection, params};
use std::path::{Path, PathBuf};
use std::time::Instant;
use steersman_adapters::sqlite::SqliteStore;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::stored::codec;
use steersman_machine::stored::commit::{Commit, Kind, LogLine, Made, Push, Text};
use steersman_machine::stored::ids::{Body, Id, Line, Time};
use steersman_machine::stored::interaction::{Cause, End, Interaction, Origin};
use steersman_runtime::store::{Batch, Log as _, Needs, NewSession, Row, Scope, Worker};

const SALT: [u8; 16] = [1; 16];
const SINGLY: u64 = 5_000;
const GROUPED: u64 = 100_000;
const GROUP: u64 = 100;
const REPEAT: usize = 5;

/// User and system time of this process and its threads, in seconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(") ").next().unwrap_or_default();
    let ticks: f64 = after
        .split(' ')
        .skip(11)
        .take(2)
        .filter_map(|n| n.parse::<f64>().ok())
        .sum();
    ticks / 100.0
}

/// CPU time and clock time for one line, in microseconds.
fn timed(lines: u64, run: impl FnOnce()) -> (f64, f64) {
    let (before, clock) = (cpu(), Instant::now());
    run();
    let each = 1e6 / lines as f64;
    (
        (cpu() - before) * each,
        clock.elapsed().as_secs_f64() * each,
    )
}

/// Line `n` of a session, with 600 bytes of text. Odd lines are messages, even lines end the turn.
fn line(n: u64) -> LogLine {
    let root = Id::new(Line(1), 0);
    let body = Body::new(Line(n), 0);
    let made = Made {
        agent: root,
        def: "desk".into(),
        kind: Kind::Model,
        parent: None,
        named: None,
        mode: None,
        state: Vec::new(),
    };
    let what = if n % 2 == 1 {
        Interaction::UserMessage {
            from: Origin::Outside("user".into()),
            body,
        }
    } else {
        Interaction::Finished {
            end: End::Turn,
            cause: Cause::Answer,
            body: Some(body),
            code: None,
            writes: Vec::new(),
        }
    };
    let commit = Commit {
        parent: Line(n - 1),
        made: if n == 1 { vec![made] } else { Vec::new() },
        pushes: vec![Push {
            agent: root,
            prev: Line(n - 1),
            what,
        }],
        ..Commit::default()
    };
    LogLine {
        n: Line(n),
        at: Time(0),
        prev: Line(n - 1),
        branch: Id::MAIN,
        commit: Some(commit),
        ledger: Vec::new(),
        bodies: vec![Text::Here("x".repeat(600).into())],
    }
}

fn file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-store");
    std::fs::create_dir_all(&folder).expect("a folder");
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.join(format!("{name}{end}")));
    }
    let _ = std::fs::remove_dir_all(folder.join(format!("{name}.mark")));
    folder.join(name)
}

/// Only inserts the rows, `group` of them in each transaction.
fn bare(rows: &[Vec<u8>], group: u64) -> (f64, f64) {
    let conn = Connection::open(file("bare.db")).expect("it opens");
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE line (key INTEGER PRIMARY KEY, bytes BLOB NOT NULL)",
    )
    .expect("a table");
    timed(rows.len() as u64, || {
        for (i, rows) in rows.chunks(group as usize).enumerate() {
            conn.prepare_cached("BEGIN IMMEDIATE")
                .and_then(|mut s| s.execute([]))
                .expect("begun");
            for (j, row) in rows.iter().enumerate() {
                let key = i as u64 * group + j as u64 + 1;
                conn.prepare_cached("INSERT INTO line (key, bytes) VALUES (?1, ?2)")
                    .and_then(|mut s| s.execute(params![key.cast_signed(), row]))
                    .expect("inserted");
            }
            conn.prepare_cached("COMMIT")
                .and_then(|mut s| s.execute([]))
                .expect("committed");
        }
    })
}

/// Folds, encodes, hashes and appends the lines, and waits for the disk after each `group` of them.
fn ours(lines: &[LogLine], group: u64, begins_unsafe: bool) -> (f64, f64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let store = SqliteStore::open(file("ours.db")).expect("it opens");
    let claim = runtime.block_on(async {
        let session = NewSession {
            id: "bench".into(),
            network: "desk".into(),
            scope: Scope::default(),
            key: None,
            salt: SALT,
            created: Time(0),
            first: None,
            said: None,
            needs: Needs::default(),
        };
        store.create(session).await.expect("made");
        store
            .claim("bench", &Worker::nameless())
            .await
            .expect("claimed")
    });
    let mut snapshot = Snapshot::empty();
    let mut hash = [0; 32];
    timed(lines.len() as u64, || {
        runtime.block_on(async {
            for lines in lines.chunks(group as usize) {
                let mut last = None;
                for (i, line) in lines.iter().enumerate() {
                    snapshot = fold(std::mem::replace(&mut snapshot, Snapshot::empty()), line);
                    let (bytes, own) = codec::encode(line, &hash, &SALT);
                    hash = own;
                    let row = Row {
                        n: line.n,
                        bytes: bytes.into(),
                    };
                    let urgent = i + 1 == lines.len();
                    let batch = Batch {
                        rows: vec![row],
                        urgent,
                        begins_unsafe,
                        ..Batch::default()
                    };
                    last = Some(store.append(&claim, batch));
                }
                if let Some(last) = last {
                    last.await.expect("written");
                }
            }
        });
    })
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn report(name: &str, count: u64, group: u64) {
    let lines: Vec<LogLine> = (1..=count).map(line).collect();
    let mut hash = [0; 32];
    let rows: Vec<Vec<u8>> = lines
        .iter()
        .map(|line| {
            let (bytes, own) = codec::encode(line, &hash, &SALT);
            hash = own;
            bytes
        })
        .collect();
    let (mut ratios, mut clocks, mut cpus) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REPEAT {
        let (bare, ours) = (bare(&rows, group), ours(&lines, group, false));
        ratios.push(ours.0 / bare.0);
        clocks.push(ours.1 / bare.1);
        cpus.push((bare.0, ours.0));
    }
    println!(
        "{name}: CPU {:.2} times a bare insert, clock {:.2} times; {:.1} and {:.1} us a line ({} bytes)",
        median(ratios),
        median(clocks),
        median(cpus.iter().map(|c| c.1).collect()),
        median(cpus.iter().map(|c| c.0).collect()),
        rows[10].len(),
    );
}

/// Compares lines at which an effect of class `unsafe` begins with lines at which none begins. Only the former sync the
/// mark.
#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn marked(count: u64) {
    let lines: Vec<LogLine> = (1..=count).map(line).collect();
    let (mut cpus, mut clocks, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REPEAT {
        let (calm, begins) = (ours(&lines, 1, false), ours(&lines, 1, true));
        cpus.push(begins.0 / calm.0);
        clocks.push(begins.1 / calm.1);
        bare.push((calm.1, begins.1));
    }
    println!(
        "each line begins an unsafe effect: CPU {:.2} times a line that begins none, clock {:.2} times; {:.0} and {:.0} us a line",
        median(cpus),
        median(clocks),
        median(bare.iter().map(|c| c.1).collect()),
        median(bare.iter().map(|c| c.0).collect()),
    );
}

#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn main() {
    if std::env::args().any(|arg| arg == "marked") {
        return marked(SINGLY);
    }
    let lines: Vec<LogLine> = (1..=GROUPED).map(line).collect();
    let encode = timed(GROUPED, || {
        for line in &lines {
            std::hint::black_box(codec::encode(line, &[0; 32], &SALT));
        }
    });
    println!(
        "encoding and hashing: {:.2} us a line of 600 bytes of text",
        encode.0
    );
    let rows: Vec<Vec<u8>> = lines
        .iter()
        .map(|l| codec::encode(l, &[0; 32], &SALT).0)
        .collect();
    let decode = timed(GROUPED, || {
        for row in &rows {
            std::hint::black_box(codec::verify(row, &[0; 32], &SALT).is_ok());
        }
    });
    println!("decoding and verifying: {:.2} us", decode.0);
    report("one line a transaction", SINGLY, 1);
    report("100 lines a transaction", GROUPED, GROUP);
}
