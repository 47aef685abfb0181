//! Checks that a store consists of this program's tables and indexes, and of nothing that changes what is written.
//!
//! A trigger of another program runs within our own transactions: it may delete a line after the caller was told that it is on
//! disk. A changed index or table may refuse or replace rows. So a store is not opened if its tables and indexes differ from
//! those of its format in any letter, or if it has a trigger or a view. Additional tables of other programs have no effect and
//! are ignored. Newer formats have more tables, and are refused by their number.
//!
//! A trigger that is added while the store is open has no effect either: our connections run no triggers (`open::settings`).

use super::error::sql;
use super::schema;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::Path;
use steersman_runtime::store::StoreError;

/// Parts of a file: by kind and name, the table to which a part belongs and its SQL.
type Shape = BTreeMap<(String, String), (String, String)>;

/// Hashes of the shapes of all formats, so that opening a store costs one query. The shapes are compared only if the hash
/// differs.
const SUMS: &[&str] = &[
    "77b357e204604b21",
    "61d425ef6d34cb8a",
    "201ad63a93e71b39",
    "67dcbe670f60b300",
    "a585d3354f1e2e3e",
    "a8d6844d7e0dfaed",
    "05d837d954975896",
    "c092e8224eba1bca",
];

/// Refuses a store that differs from its format.
pub(super) fn check(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let what = wrong(conn).map_err(|e| sql(path, e))?;
    what.map_or(Ok(()), |what| {
        Err(StoreError::Corrupt {
            place: path.display().to_string(),
            what,
        })
    })
}

fn wrong(conn: &Connection) -> rusqlite::Result<Option<String>> {
    // Another process may be migrating it: format and shape must be read at the same moment.
    let moment = conn.unchecked_transaction()?;
    let format = schema::format(&moment)?;
    let there = shape(&moment)?;
    drop(moment);
    let known = (format as usize).checked_sub(1).and_then(|at| SUMS.get(at));
    if known.is_some_and(|known| *known == sum(&there)) {
        return Ok(None);
    }
    Ok(differs(&made(format)?, &there))
}

/// The shape of a newly made store of a format.
fn made(format: u32) -> rusqlite::Result<Shape> {
    let conn = Connection::open_in_memory()?;
    schema::make(&conn, format)?;
    shape(&conn)
}

fn sum(shape: &Shape) -> String {
    let mut sum = blake3::Hasher::new();
    for ((kind, name), (table, made)) in shape {
        for part in [kind, name, table, made] {
            sum.update(part.as_bytes());
            // A separator that is in no SQL text.
            sum.update(&[0]);
        }
    }
    sum.finalize().to_hex()[..16].to_owned()
}

/// Reads the shape, without the tables and indexes that SQLite makes for itself.
fn shape(conn: &Connection) -> rusqlite::Result<Shape> {
    let mut all = conn.prepare(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema
         WHERE type NOT IN ('table', 'index') OR substr(name, 1, 7) <> 'sqlite_'",
    )?;
    let rows = all.query_map([], |r| {
        let sql: Option<String> = r.get(3)?;
        // SQLite keeps the letters of a statement; dropping a column changes only blanks.
        let sql = sql.unwrap_or_default().split_whitespace().collect();
        Ok(((r.get(0)?, r.get(1)?), (r.get(2)?, sql)))
    })?;
    rows.collect()
}

/// Describes the first difference and the remedy; `None` if there is no difference.
fn differs(known: &Shape, there: &Shape) -> Option<String> {
    for ((kind, name), (table, made)) in there {
        let is_ours = known
            .keys()
            .any(|key| *key == ("table".to_owned(), table.clone()));
        match known.get(&(kind.clone(), name.clone())) {
            Some(ours) if *ours == (table.clone(), made.clone()) => {}
            Some(_) => {
                return Some(format!(
                    "its {kind} `{name}` is not as Steersman makes it: another program changed it, or it is damaged; restore the \
                     store from a backup, or undo that change"
                ));
            }
            None if !is_ours && (kind == "table" || kind == "index") => {}
            None => {
                let article = if kind == "index" { "an" } else { "a" };
                return Some(format!(
                    "it has {article} {kind} `{name}` on `{table}` that Steersman did not make and that may change or delete what is \
                     written, so nothing is read or written: look at it, remove it (`sqlite3 FILE 'DROP {} \"{name}\"'`), and \
                     see what it did (`steersman fsck`)",
                    kind.to_uppercase()
                ));
            }
        }
    }
    let gone = known.keys().find(|key| !there.contains_key(*key));
    gone.map(|(kind, name)| {
        format!(
            "its {kind} `{name}` is missing: another program removed it, or it is damaged; restore the store from a backup"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{SUMS, made, sum};
    use crate::sqlite::schema::known;

    #[test]
    fn the_sums_are_those_of_all_formats() {
        let sums = (1..=known()).map(|format| sum(&made(format).unwrap()));
        assert_eq!(sums.collect::<Vec<_>>(), SUMS);
    }
}
