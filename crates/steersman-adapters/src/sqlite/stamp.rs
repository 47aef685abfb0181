//! The stamp of a store: a transaction gives it a random state and says which one it follows.
//!
//! SQLite lays its journal over whatever file lies beside it. Put back over a file that it was not written behind (a backup that
//! was copied into the place of a killed process's store), it makes a mixture of both in which acknowledged lines are missing,
//! and the newest of them is there. So a journal names the state that the file below has to be in. A file that was being brought
//! up to date from its journal is in one of the states that the journal itself names.
//!
//! A stamp is a page more in the journal, which is close to half of a small transaction. So transactions have one from the first
//! effect of class `unsafe` on. The first stamp of a store follows the id that the store had before.

use super::file::{Held, beside};
use super::wal::{self, Journal};
use rusqlite::{Connection, Row, params};
use std::collections::BTreeSet;

/// **Stored**: before each stamp. It is in no text, and its page holds nothing else.
const SIGN: &[u8; 8] = b"\xffstate\xfe\xff";
const STATE: usize = 8;

type State = [u8; STATE];

/// **Stored** as the sign and both states.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Stamp {
    is: State,
    follows: State,
}

impl Stamp {
    /// The one in a page, or in a value.
    fn find(bytes: &[u8]) -> Option<Self> {
        let at = memchr::memmem::find(bytes, SIGN)? + SIGN.len();
        let (is, rest) = bytes[at..].split_first_chunk()?;
        let (follows, _) = rest.split_first_chunk()?;
        Some(Self {
            is: *is,
            follows: *follows,
        })
    }

    fn bytes(self) -> Vec<u8> {
        [&SIGN[..], &self.is, &self.follows].concat()
    }
}

/// The newest transaction of a store.
pub(super) struct Newest {
    /// The store's id.
    pub(super) store: String,
    /// True once an effect of class `unsafe` began in the store.
    pub(super) begun: bool,
    /// Number of transactions that count themselves: those with a stamp, and those that made the tables.
    pub(super) written: u64,
}

/// Returns true once an effect of class `unsafe` began in the store.
pub(super) fn begun(conn: &Connection) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT begun FROM store")?
        .query_row([], |r| r.get(0))
}

/// Counts the transaction that is open, as the last statement of it, and stamps it if an effect of class `unsafe` ever began in the
/// store. `begins`: one begins with it. With the first one the store gets another id, since copies that were made before are
/// other stores from then on.
pub(super) fn stamp(conn: &Connection, begins: bool) -> rusqlite::Result<Newest> {
    type Before = (Vec<u8>, Vec<u8>, State, bool);
    let (before, id, is, begun): Before = conn
        .prepare_cached("SELECT stamp, id, randomblob(8), begun FROM store")?
        .query_row([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?)))?;
    let follows = match Stamp::find(&before) {
        Some(before) => before.is,
        None => id.first_chunk().copied().unwrap_or_default(),
    };
    let stamp = if begun || begins {
        Stamp { is, follows }.bytes()
    } else {
        before
    };
    conn.prepare_cached(
        "UPDATE store SET written = written + 1, stamp = ?1, begun = begun OR ?2,
         id = CASE WHEN ?2 > begun THEN randomblob(16) ELSE id END RETURNING lower(hex(id)), begun, written",
    )?
    .query_row(params![stamp, begins], newest)
}

pub(super) fn newest(row: &Row<'_>) -> rusqlite::Result<Newest> {
    Ok(Newest {
        store: row.get(0)?,
        begun: row.get(1)?,
        written: row.get::<_, i64>(2)? as u64,
    })
}

/// Returns the reason not to apply the journal of a store to its file; `None` if there is none.
pub(super) fn stray(conn: &Connection, held: &Held) -> std::io::Result<Option<String>> {
    let store = held.path();
    let root = conn.query_row(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'store'",
        [],
        |r| r.get(0),
    );
    // A store that does not say where it is, because both do not go together, has no stamp there.
    let root: u32 = root.unwrap_or_default();
    let mut before: Option<Vec<u8>> = None;
    // Another process may be writing: it may have begun the journal anew while this one read the file.
    loop {
        let Some(bytes) = wal::read(store)? else {
            return Ok(None);
        };
        let journal = Journal::of(&bytes);
        if journal.pages().next().is_none() || fits(&journal, root, held)? {
            return Ok(None);
        }
        if before.is_some_and(|before| before == bytes) {
            return Ok(Some(format!(
                "its journal {} was not written behind this file: one of them was replaced (by a backup, perhaps) while the \
                 other was left, and what was in the one that is gone is missing; the journal is not read",
                beside(store, "-wal").display()
            )));
        }
        before = Some(bytes);
    }
}

fn fits(journal: &Journal<'_>, root: u32, held: &Held) -> std::io::Result<bool> {
    let ours = journal.pages().filter(|(page, _)| *page == root);
    let stamps: Vec<Stamp> = ours.filter_map(|(_, page)| Stamp::find(page)).collect();
    let page = match root.checked_sub(1) {
        Some(before) => held.read(u64::from(before) * journal.page as u64, journal.page)?,
        None => Vec::new(),
    };
    let Some(first) = stamps.first() else {
        // Nothing `unsafe` ever began, and nothing tells; or another program wrote it.
        return Ok(Stamp::find(&page).is_none());
    };
    if let Some(below) = Stamp::find(&page) {
        return Ok(first.follows == below.is || stamps.iter().any(|s| s.is == below.is));
    }
    if memchr::memmem::find(&page, &first.follows).is_some() {
        return Ok(true);
    }
    // One that is new, or was written anew as a whole: all of it is in the journal. SQLite keeps one page for its locks.
    let pages: BTreeSet<u32> = journal.pages().map(|(page, _)| page).collect();
    let of_locks = (1 << 30) / journal.page as u32 + 1;
    let mut wanted = (1..=journal.size).filter(|page| *page != of_locks);
    Ok(wanted.all(|page| pages.contains(&page)))
}
