//! Checks that a store consists of this program's tables and indexes, and of nothing that changes what is written.
//!
//! A trigger of another program runs within our own transactions: it may delete a line after the caller was told that it is on
//! disk. A changed index or table may refuse or replace rows. So a store is not opened if its tables and indexes differ from
//! those of the format in any letter, or if it has a trigger or a view. Additional tables of other programs have no effect and
//! are ignored. Newer formats have more tables, and are refused by their number.
//!
//! A trigger that is added while the store is open has no effect either: our connections run no triggers (`open::settings`).

use super::error::sql;
use super::schema;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::Path;
use steersman_runtime::store::StoreError;

/// The schema of a file: for each part, by kind and name, the table that it belongs to and its SQL.
type Shape = BTreeMap<(String, String), (String, String)>;

/// Hash of the shape of a store, so that opening one costs one query. The shapes are compared only if the hash differs.
const SUM: &str = "392d7c7943691266";

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

/// Returns the first difference from the format; `None` if there is none.
fn wrong(conn: &Connection) -> rusqlite::Result<Option<String>> {
    let there = shape(conn)?;
    if sum(&there) == SUM {
        return Ok(None);
    }
    Ok(differs(&made()?, &there))
}

/// Returns the shape of a new store.
fn made() -> rusqlite::Result<Shape> {
    let conn = Connection::open_in_memory()?;
    schema::make(&conn)?;
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
        // SQLite stores a statement as it was written; dropping a column changes only its blanks.
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
    use super::{SUM, made, sum};

    #[test]
    fn the_sum_is_that_of_a_new_store() {
        assert_eq!(sum(&made().unwrap()), SUM);
    }
}
