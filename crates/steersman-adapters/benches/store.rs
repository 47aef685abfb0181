//! Cost of appending lines to the SQLite store, compared with a loop that only inserts the same bytes. The figures are
//! ratios of CPU time of the process and of clock time, and medians over `REPEAT` runs.
//! `cargo bench -p steersman-adapters --bench store`; with `-- marked` it measures lines at which unsafe effects begin, with
//! `-- disk` the bytes that a chat writes to the disk, and with `-- sessions` 64 sessions that sync each line.

use rusqlite::{Connection, params};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use steersman_adapters::sqlite::SqliteStore;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::stored::codec;
use steersman_machine::stored::commit::{Commit, Kind, LogLine, Made, Push, Text};
use steersman_machine::stored::ids::{Body, Id, Line, Time};
use steersman_machine::stored::interaction::{Cause, End, Interaction, Origin};
use steersman_runtime::store::{
    Batch, Claim, Inbox as _, InboxMessage, Log as _, Needs, NewSession, Row, Scope, SessionState,
    Worker,
};

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

/// Makes a session and claims it.
async fn claimed(store: &SqliteStore, id: &str) -> Claim {
    let session = NewSession {
        id: id.into(),
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
    let claim = store.claim(id, &Worker::nameless()).await;
    claim.expect("claimed")
}

/// Folds, encodes, hashes and appends the lines, and waits for the disk after each `group` of them.
fn ours(lines: &[LogLine], group: u64, begins_unsafe: bool) -> (f64, f64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let store = SqliteStore::open(file("ours.db")).expect("it opens");
    let claim = runtime.block_on(claimed(&store, "bench"));
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

/// Bytes of pages that this process has made dirty so far.
fn dirtied() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let mut lines = io.lines();
    let found = lines.find_map(|line| line.strip_prefix("write_bytes: "));
    found.and_then(|n| n.parse().ok()).unwrap_or_default()
}

/// The two lines of a turn of a chat, as batches: the message is taken and the model is called; the model answered.
fn turn(n: u64, together: bool) -> [Batch; 2] {
    let shown = |status: &str, at: u64| SessionState {
        status: status.into(),
        updated: Time(at as i64),
        definition: "abcdef12".into(),
        micros: 0,
        tokens: n * 1_020,
        model_calls: n,
        waits: "[]".into(),
        outcome: "{}".into(),
        last: "the quick brown fox jumps over the lazy dog".into(),
        moved: None,
    };
    let row = |n: u64, len: usize| Row {
        n: Line(n),
        bytes: vec![b'x'; len].into(),
    };
    let at = 1_700_000_000_000 + n * 1_000;
    let takes = Batch {
        rows: vec![row(2 * n - 1, 520)],
        consumed: vec![format!("{n:032x}").as_str().into()],
        info: Some(shown("running", at)),
        urgent: !together,
        ..Batch::default()
    };
    let answers = Batch {
        rows: vec![row(2 * n, 560)],
        info: Some(shown("answered", at + 1)),
        urgent: true,
        ..Batch::default()
    };
    [takes, answers]
}

/// Measures what a chat of short messages and answers writes to the disk.
#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn disk(turns: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    for together in [true, false] {
        let path = file("disk.db");
        let store = SqliteStore::open(&path).expect("it opens");
        let claim = runtime.block_on(claimed(&store, "chat"));
        let run = async |from: u64, to: u64| {
            for n in from..to {
                let message = InboxMessage {
                    id: format!("{n:032x}").as_str().into(),
                    at: Time(n as i64),
                    bytes: vec![b'u'; 260].into(),
                };
                store.deliver("chat", message).await.expect("delivered");
                let [takes, answers] = turn(n, together);
                let takes = store.append(&claim, takes);
                if !together {
                    takes.await.expect("written");
                }
                store.append(&claim, answers).await.expect("written");
            }
        };
        let journal = || {
            let journal = std::fs::metadata(path.with_extension("db-wal"));
            journal.map_or(0, |journal| journal.len())
        };
        // The journal only grows at first, so its length tells the pages.
        let few = turns.min(50);
        let (length, tried) = (journal(), store.transactions());
        runtime.block_on(run(1, few + 1));
        let (length, tried) = (journal() - length, store.transactions() - tried);
        let before = dirtied();
        runtime.block_on(run(few + 1, few + turns + 1));
        let bytes = (dirtied() - before) as f64 / turns as f64;
        let page = Connection::open(&path)
            .and_then(|conn| conn.query_row("PRAGMA page_size", [], |row| row.get::<_, u32>(0)));
        let pages = length as f64 / f64::from(24 + page.expect("a store")) / tried as f64;
        println!(
            "a turn of a chat, {} syncs: {:.1} KiB written to the disk, {pages:.1} pages a transaction",
            tried as f64 / few as f64,
            bytes / 1024.0,
        );
    }
}

/// Measures sessions that append at once, each line synced.
#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn sessions(count: usize, lines: u64) {
    let runtime = tokio::runtime::Builder::new_multi_thread().build();
    let runtime = runtime.expect("a runtime");
    let store = SqliteStore::open(file("many.db")).expect("it opens");
    let mut claims = Vec::new();
    for n in 0..count {
        claims.push(runtime.block_on(claimed(&store, &format!("s{n}"))));
    }
    let line: Arc<[u8]> = vec![b'x'; 800].into();
    let all = count as u64 * lines;
    let before = store.transactions();
    let (cpu, clock) = timed(all, || {
        runtime.block_on(async {
            let mut running = Vec::new();
            for claim in claims {
                let (store, line) = (store.clone(), line.clone());
                running.push(tokio::spawn(async move {
                    for n in 1..=lines {
                        let row = Row {
                            n: Line(n),
                            bytes: line.clone(),
                        };
                        let batch = Batch {
                            rows: vec![row],
                            urgent: true,
                            ..Batch::default()
                        };
                        store.append(&claim, batch).await.expect("written");
                    }
                }));
            }
            for running in running {
                running.await.expect("it ends");
            }
        });
    });
    println!(
        "{count} sessions, each line synced: {:.0} lines a second, {cpu:.1} us of CPU a line, {:.1} lines a transaction",
        1e6 / clock,
        all as f64 / (store.transactions() - before) as f64,
    );
}

#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn main() {
    if std::env::args().any(|arg| arg == "disk") {
        return disk(500);
    }
    if std::env::args().any(|arg| arg == "sessions") {
        return sessions(64, 1_000);
    }
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
