//! The stamp of a store. A transaction writes a random state into it, and the state of the transaction before.
//!
//! SQLite applies a journal to any file next to it. If the file is not the one that the journal was written for (a backup that
//! was copied into the place of a killed process's store), the result is a mixture: the newest acknowledged line is present, and
//! older ones are missing. So a journal names the state that the file has to be in. If the journal was being moved into the file,
//! the file is in one of the states that the journal itself leads to.
//!
//! A stamp adds one page to the journal, which costs close to half of the CPU time of a small transaction. So transactions have a
//! stamp only from the first effect of class `unsafe` on. The first stamp of a store has the beginning of the store's previous id
//! as the state before.

use super::file::{Held, beside};
use super::wal::{self, Journal};
use rusqlite::{Connection, Row, params};
use std::collections::BTreeSet;

/// **Stored**: precedes each stamp. These bytes occur in no text, and the page holds nothing but the row with the stamp.
const SIGN: &[u8; 8] = b"\xffstate\xfe\xff";
const STATE: usize = 8;

type State = [u8; STATE];

/// The state of a transaction, and the state of the transaction before. **Stored** as the sign and both states.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Stamp {
    is: State,
    follows: State,
}

impl Stamp {
    /// Returns the first stamp in a page or in a stored value; `None` if there is none.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Newest {
    /// The store's id.
    pub(super) store: String,
    /// True once an effect of class `unsafe` began in the store.
    pub(super) begun: bool,
    /// Number of transactions that count themselves: those with a stamp, and those that made the tables.
    pub(super) written: u64,
}

/// Returns the newest transaction of a store of the newest format.
pub(super) fn of(conn: &Connection) -> rusqlite::Result<Newest> {
    conn.prepare_cached("SELECT lower(hex(id)), begun, written FROM store")?
        .query_row([], newest)
}

/// Counts the open transaction, and stamps it if an effect of class `unsafe` ever began in the store or begins with the
/// transaction (`begins`). It has to be the last statement of the transaction. With the first such effect the store gets another
/// id, since copies that were made earlier are other stores from then on.
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
    // If the file and the journal do not belong together, the table may not be found.
    let root: Option<u32> = root.ok();
    let mut before: Option<Vec<u8>> = None;
    // Another process may have restarted the journal while this one read the file: a mismatch counts only if a second read of the
    // journal finds the same bytes.
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

/// Returns true if the journal belongs to the file: its first stamp follows the state of the file, or the file is in a state that
/// the journal leads to.
fn fits(journal: &Journal<'_>, root: Option<u32>, held: &Held) -> std::io::Result<bool> {
    let Some(root) = root else {
        return Ok(false);
    };
    let ours = journal.pages().filter(|(page, _)| *page == root);
    let stamps: Vec<Stamp> = ours.filter_map(|(_, page)| Stamp::find(page)).collect();
    let page = match root.checked_sub(1) {
        Some(before) => held.read(u64::from(before) * journal.page as u64, journal.page)?,
        None => Vec::new(),
    };
    let Some(first) = stamps.first() else {
        // The journal has no stamp. If the file has none either, no `unsafe` effect ever began. If it has one, another program
        // wrote the journal.
        return Ok(Stamp::find(&page).is_none());
    };
    if let Some(below) = Stamp::find(&page) {
        return Ok(first.follows == below.is || stamps.iter().any(|s| s.is == below.is));
    }
    if memchr::memmem::find(&page, &first.follows).is_some() {
        return Ok(true);
    }
    // A file that is new, or that was rewritten as a whole, has all its pages in the journal, except the page that SQLite
    // reserves for its locks.
    let pages: BTreeSet<u32> = journal.pages().map(|(page, _)| page).collect();
    let of_locks = (1 << 30) / journal.page as u32 + 1;
    let mut wanted = (1..=journal.size).filter(|page| *page != of_locks);
    Ok(wanted.all(|page| pages.contains(&page)))
}
