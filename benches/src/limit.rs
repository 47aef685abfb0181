//! LIMIT: raw storage. Files written with and without a sync, and bare inserts into SQLite with the library's SQLite.

use crate::meter::{Meter, short};
use crate::texts::pad;
use rusqlite::Connection;
use serde_json::{Value as Json, json};
use std::error::Error;
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::Instant;

type Done<T> = Result<T, Box<dyn Error>>;

/// Blocks that each file case writes.
const BLOCKS: usize = 1_000;

/// Rows of a case: its name, `synchronous`, rows in all, rows a transaction.
const INSERTS: [(&str, &str, usize, usize); 5] = [
    ("insert, WAL, FULL, 1 row a transaction", "FULL", 3_000, 1),
    (
        "insert, WAL, NORMAL, 1 row a transaction",
        "NORMAL",
        20_000,
        1,
    ),
    (
        "insert, WAL, FULL, 100 rows a transaction",
        "FULL",
        100_000,
        100,
    ),
    (
        "insert, WAL, NORMAL, 100 rows a transaction",
        "NORMAL",
        100_000,
        100,
    ),
    ("insert, WAL, OFF, 1 row a transaction", "OFF", 20_000, 1),
];

/// Runs all cases in a folder; a `share` of 100 does a hundredth of the work.
pub(crate) fn run(folder: &Path, share: usize) -> Done<Vec<Json>> {
    let mut cases = vec![
        file(folder, "append 4 KiB, fdatasync", share, false, true)?,
        file(folder, "overwrite 4 KiB, fdatasync", share, true, true)?,
        file(folder, "append 4 KiB, no sync", share, false, false)?,
    ];
    for (name, sync, rows, each) in INSERTS {
        let path = folder.join(format!("{}.db", cases.len()));
        cases.push(insert(&path, name, sync, rows / share, each)?);
    }
    Ok(cases)
}

fn file(folder: &Path, name: &str, share: usize, over: bool, sync: bool) -> Done<Json> {
    let mut file = File::create(folder.join("file"))?;
    let (block, count) = ([7_u8; 4096], BLOCKS / share);
    if over {
        for _ in 0..count {
            file.write_all(&block)?;
        }
        file.sync_all()?;
        file.seek(SeekFrom::Start(0))?;
    }
    let mut each = Vec::with_capacity(count);
    let meter = Meter::start();
    for _ in 0..count {
        let begun = Instant::now();
        file.write_all(&block)?;
        if sync {
            file.sync_data()?;
        }
        each.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let read = meter.read();
    each.sort_by(f64::total_cmp);
    let quantile = |share: f64| short(each[((count - 1) as f64 * share) as usize]);
    Ok(json!({
        "case": name, "n": count, "us_each": quantile(0.5), "us_p99": quantile(0.99),
        "per_s": short(count as f64 / read.wall), "cpu_us_each": short(read.cpu / count as f64 * 1e6),
    }))
}

fn insert(path: &Path, name: &str, sync: &str, rows: usize, each: usize) -> Done<Json> {
    let conn = Connection::open(path)?;
    conn.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {sync};
         CREATE TABLE t (id INTEGER PRIMARY KEY, sid TEXT, body BLOB)"
    ))?;
    let body = pad("row ", 600);
    let meter = Meter::start();
    let mut statement = conn.prepare("INSERT INTO t (sid, body) VALUES (?1, ?2)")?;
    for first in (0..rows).step_by(each) {
        if each > 1 {
            conn.execute_batch("BEGIN")?;
        }
        for _ in first..rows.min(first + each) {
            statement.execute(("s000001", body.as_bytes()))?;
        }
        if each > 1 {
            conn.execute_batch("COMMIT")?;
        }
    }
    let read = meter.read();
    drop(statement);
    drop(conn);
    let per = |value: f64| short(value / rows as f64);
    // The journal is gone after the last connection closed.
    let disk = std::fs::metadata(path)?.len() as f64;
    Ok(json!({
        "case": name, "n": rows, "us_each": per(read.wall * 1e6), "per_s": short(rows as f64 / read.wall),
        "cpu_us_each": per(read.cpu * 1e6), "written_bytes_each": per(read.written as f64), "disk_bytes_each": per(disk),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cases_run() -> Done<()> {
        let folder = std::env::temp_dir().join(format!("steersman-limit-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let cases = run(&folder, 500)?;
        assert_eq!(cases.len(), 3 + INSERTS.len());
        std::fs::remove_dir_all(&folder)?;
        Ok(())
    }
}
