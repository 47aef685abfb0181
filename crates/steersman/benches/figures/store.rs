//! The store path (ticks, encoding, hashes and guarded inserts; no driver, no rendering), compared with a bare loop
//! that inserts the same bytes.

use crate::desk::{Desk, look, network};
use crate::measure::{Goal, Size, Table, Took, median, short, timed};
use rusqlite::{Connection, params};
use std::path::PathBuf;
use steersman_adapters::sqlite::SqliteStore;
use steersman_machine::stored::codec;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Id, Time};
use steersman_runtime::store::{Batch, Log as _, Needs, NewSession, Row, Scope, Worker};

pub(crate) const SALT: [u8; 16] = [1; 16];
/// Lines in a transaction if both loops group them.
const GROUP: u64 = 100;

/// The path of a file that does not exist yet; an old one is removed.
pub(crate) fn file(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("figures");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.join(format!("{name}{end}")));
    }
    folder.join(name)
}

/// Only inserts the rows, in so many synced transactions.
pub(crate) fn bare(rows: &[Vec<u8>], transactions: u64) -> Took {
    let conn = Connection::open(file("bare.db")).expect("it opens");
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE line (key INTEGER PRIMARY KEY, bytes BLOB NOT NULL)",
    )
    .expect("a table");
    let run = |sql: &str| {
        conn.prepare_cached(sql)
            .and_then(|mut s| s.execute([]))
            .expect("it runs");
    };
    let transactions = transactions.max(1) as usize;
    let insert = || {
        let mut done = 0;
        for t in 1..=transactions {
            run("BEGIN IMMEDIATE");
            let upto = rows.len() * t / transactions;
            for (key, row) in rows.iter().enumerate().take(upto).skip(done) {
                conn.prepare_cached("INSERT INTO line (key, bytes) VALUES (?1, ?2)")
                    .and_then(|mut s| s.execute(params![key as i64 + 1, row]))
                    .expect("inserted");
            }
            done = upto;
            run("COMMIT");
        }
    };
    timed(insert).1
}

/// The lines of a tool loop: in turn a call of the model and a result of the tool.
pub(crate) struct Lines {
    desk: Desk,
    model: Id,
    tool: Option<Id>,
}

impl Lines {
    pub(crate) fn new() -> Self {
        let mut desk = Desk::new(network());
        let model = desk.start().wish();
        // The first turns are not measured.
        let model = desk.turns(model, 10);
        Self {
            desk,
            model,
            tool: None,
        }
    }

    pub(crate) fn next(&mut self) -> LogLine {
        let last = self.desk.last.0;
        let ticked = match self.tool.take() {
            None => {
                let ticked = self.desk.calls(self.model, vec![look(last)]);
                self.tool = Some(ticked.wish());
                ticked
            }
            Some(tool) => {
                let ticked = self.desk.done(tool);
                self.model = ticked.wish();
                ticked
            }
        };
        if last.is_multiple_of(500) {
            self.desk.forget_texts();
        }
        ticked.line
    }
}

/// The bytes of so many lines.
fn rows(count: u64) -> Vec<Vec<u8>> {
    let (mut lines, mut hash) = (Lines::new(), [0; 32]);
    (0..count)
        .map(|_| {
            let (bytes, own) = codec::encode(&lines.next(), &hash, &SALT);
            hash = own;
            bytes
        })
        .collect()
}

/// Ticks, encodes, hashes and appends `count` lines, and waits for the disk after each `group` of them.
pub(crate) fn path(count: u64, group: u64) -> Took {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let store = SqliteStore::open(file("path.db")).expect("it opens");
    let claim = runtime.block_on(async {
        let session = NewSession {
            id: "bench".into(),
            network: "bench".into(),
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
    let (mut lines, mut hash) = (Lines::new(), [0; 32]);
    let run = async {
        let mut left = count;
        while left > 0 {
            let of = group.min(left);
            left -= of;
            let mut last = None;
            for k in 1..=of {
                let line = lines.next();
                let (bytes, own) = codec::encode(&line, &hash, &SALT);
                hash = own;
                let row = Row {
                    n: line.n,
                    bytes: bytes.into(),
                };
                let batch = Batch {
                    rows: vec![row],
                    urgent: k == of,
                    ..Batch::default()
                };
                last = Some(store.append(&claim, batch));
            }
            last.expect("a group holds a line").await.expect("written");
        }
    };
    timed(|| runtime.block_on(run)).1
}

/// The section of the store path.
pub(crate) fn report(table: &Table, size: Size) {
    let singly = size.of(1_000, 20);
    compare(table, "one line a transaction", singly, 1, 1.5, size.more());
    let grouped = size.of(40_000, 400);
    compare(table, "100 lines a transaction", grouped, GROUP, 2.5, size);
    let mut lines = Lines::new();
    let count = size.of(20_000, 200);
    let lines: Vec<LogLine> = (0..count).map(|_| lines.next()).collect();
    let encode = || {
        for line in &lines {
            std::hint::black_box(codec::encode(line, &[0; 32], &SALT));
        }
    };
    let encoding = median((0..size.repeat).map(|_| timed(encode).1.micros(count)));
    table.row(
        "CPU of encoding and hashing a line",
        encoding,
        " us",
        Goal::None,
        "",
    );
    let rows: Vec<Vec<u8>> = lines
        .iter()
        .map(|l| codec::encode(l, &[0; 32], &SALT).0)
        .collect();
    let verify = || {
        for row in &rows {
            assert!(codec::verify(row, &[0; 32], &SALT).is_ok());
        }
    };
    let verifying = median((0..size.repeat).map(|_| timed(verify).1.micros(count)));
    table.row(
        "CPU of decoding and verifying a line",
        verifying,
        " us",
        Goal::None,
        "",
    );
}

fn compare(table: &Table, name: &str, count: u64, group: u64, most: f64, size: Size) {
    let rows = rows(count);
    let both: Vec<(Took, Took)> = (0..size.repeat)
        .map(|_| (path(count, group), bare(&rows, count / group)))
        .collect();
    let cpu = median(both.iter().map(|(ours, bare)| ours.cpu / bare.cpu));
    let clock = median(both.iter().map(|(ours, bare)| ours.clock / bare.clock));
    let beside = format!(
        "{} and {} us of CPU a line of {} bytes; by the clock {} times",
        short(median(both.iter().map(|b| b.0.micros(count)))),
        short(median(both.iter().map(|b| b.1.micros(count)))),
        rows.iter().map(Vec::len).sum::<usize>() as u64 / count,
        short(clock),
    );
    let figure = format!("store path, {name}: CPU over a bare insert");
    table.row(&figure, cpu, " times", Goal::AtMost(most), &beside);
}
