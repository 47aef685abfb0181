//! Inspection of SQLite's journal: finds complete transactions after a damaged place.
//!
//! SQLite reads a journal up to the first frame that does not verify, and ignores all frames after it. After a power cut this is
//! right: at most the last transaction is torn, and it was not acknowledged. But a transaction is written only after the one before
//! it was synced. So if a later transaction with the same salts follows the damage, the damaged one was acknowledged, and is lost.

use crate::regular;
use std::io::Read;
use std::path::Path;

const HEADER: usize = 32;
const FRAME: usize = 24;

/// Describes the damage of a store's journal; returns `None` if there is no damage or no journal.
pub(super) fn damage(store: &Path) -> std::io::Result<Option<String>> {
    let mut before: Option<(String, Vec<u8>)> = None;
    // Another process may be writing: damage counts only if a second read finds the same bytes.
    loop {
        let Some(bytes) = read(store)? else {
            return Ok(None);
        };
        let Some(found) = judge(&bytes) else {
            return Ok(None);
        };
        match before {
            Some((what, seen)) if what == found && seen == bytes => {
                let path = super::file::beside(store, "-wal");
                return Ok(Some(format!("{}: {what}", path.display())));
            }
            _ => before = Some((found, bytes)),
        }
    }
}

/// Reads the bytes of a store's journal; returns `None` if there is none.
pub(super) fn read(store: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match regular::read(&super::file::beside(store, "-wal")) {
        Ok(mut journal) => {
            let mut bytes = Vec::new();
            journal.read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// The part of a journal that SQLite reads.
pub(super) struct Journal<'a> {
    /// Size of a page in bytes; 0 if the header does not verify.
    pub(super) page: usize,
    /// Size of the store's file in pages, as the last complete transaction leaves it; 0 if there is none.
    pub(super) size: u32,
    frames: Vec<Frame<'a>>,
}

impl<'a> Journal<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        let mut journal = Self {
            page: 0,
            size: 0,
            frames: Vec::new(),
        };
        let Some(head) = Head::of(bytes) else {
            return journal;
        };
        journal.page = head.page;
        journal.frames.extend(head.verified(bytes));
        let last = journal.frames.iter().rposition(Frame::commits);
        journal.frames.truncate(last.map_or(0, |last| last + 1));
        journal.size = journal.frames.last().map_or(0, Frame::size);
        journal
    }

    /// Returns number and content of the pages of all complete transactions, in the order of the journal.
    pub(super) fn pages(&self) -> impl Iterator<Item = (u32, &'a [u8])> {
        let all = self.frames.iter();
        all.map(|frame| (number(frame.head, 0), frame.page))
    }
}

/// The verified header of a journal.
struct Head {
    is_big: bool,
    page: usize,
    salts: (u32, u32),
    sum: Sum,
}

impl Head {
    /// Parses the header. Returns `None` if it does not verify; then SQLite reads nothing of the journal.
    fn of(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..HEADER)?;
        let (magic, page) = (number(head, 0), number(head, 8) as usize);
        let is_big = magic & 1 == 1;
        let known =
            magic & !1 == 0x377f_0682 && page.is_power_of_two() && (512..=65_536).contains(&page);
        let stored = (number(head, 24), number(head, 28));
        let whole = known && sum(&head[..24], is_big, (0, 0)) == stored;
        whole.then(|| Self {
            is_big,
            page,
            salts: (number(head, 16), number(head, 20)),
            sum: stored,
        })
    }

    /// Returns the frames before the first one that does not verify.
    fn verified<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = Frame<'a>> {
        let mut before = self.sum;
        frames(bytes, self.page).take_while(move |frame| {
            before = frame.sum(self.is_big, before);
            frame.salts() == self.salts && frame.stored_sum() == before
        })
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

type Sum = (u32, u32);

/// Returns SQLite's checksum, over words in the byte order that the header names, continued from another checksum.
fn sum(bytes: &[u8], is_big: bool, from: Sum) -> Sum {
    let (mut a, mut b) = from;
    for pair in bytes.chunks_exact(8) {
        let word = |at: usize| {
            let word = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]];
            if is_big {
                u32::from_be_bytes(word)
            } else {
                u32::from_le_bytes(word)
            }
        };
        a = a.wrapping_add(word(0)).wrapping_add(b);
        b = b.wrapping_add(word(4)).wrapping_add(a);
    }
    (a, b)
}

/// A frame as it is in the file. Only those in the field `frames` of a `Journal` are verified.
struct Frame<'a> {
    head: &'a [u8],
    page: &'a [u8],
}

impl Frame<'_> {
    /// Returns the size of the store's file in pages after a transaction, in its last frame; 0 in the others.
    fn size(&self) -> u32 {
        number(self.head, 4)
    }
    /// Returns true for the last frame of a transaction.
    fn commits(&self) -> bool {
        self.size() != 0
    }
    fn salts(&self) -> (u32, u32) {
        (number(self.head, 8), number(self.head, 12))
    }
    fn sum(&self, is_big: bool, before: Sum) -> Sum {
        sum(self.page, is_big, sum(&self.head[..8], is_big, before))
    }
    fn stored_sum(&self) -> Sum {
        (number(self.head, 16), number(self.head, 20))
    }
}

fn frames(bytes: &[u8], page: usize) -> impl Iterator<Item = Frame<'_>> {
    let all = bytes[HEADER..].chunks_exact(FRAME + page);
    all.map(|frame| Frame {
        head: &frame[..FRAME],
        page: &frame[FRAME..],
    })
}

/// Describes the damage of a journal; `None` if at most the last transaction is torn.
fn judge(bytes: &[u8]) -> Option<String> {
    if bytes.len() < HEADER {
        return None;
    }
    let Some(head) = Head::of(bytes) else {
        return headless(bytes);
    };
    let at = head.verified(bytes).count();
    // The frames with the salts of the header, from the first one that does not verify on: position, and whether it commits.
    let unread = frames(bytes, head.page).skip(at).enumerate();
    let ours = unread.filter(|(_, frame)| frame.salts() == head.salts);
    let ours: Vec<(usize, bool)> = ours.map(|(n, frame)| (n, frame.commits())).collect();
    let &(last, _) = ours.last()?;
    let commits = ours.iter().filter(|(_, commits)| *commits).count();
    // A later transaction exists if two transactions end from there on, or if frames follow one that ended there.
    let later = commits > 1 || (ours[0] == (0, true) && last > 0);
    later.then(|| {
        format!(
            "frame {} does not verify, and {} written after it cannot be read",
            at + 1,
            match last {
                1 => "1 frame that was".to_owned(),
                n => format!("up to {n} frames that were"),
            }
        )
    })
}

/// Describes the damage of a journal whose header does not verify: SQLite reads nothing of it. If two or more frames have equal
/// salts, there was a valid header once. The size of a page is not known, so all sizes are tried.
fn headless(bytes: &[u8]) -> Option<String> {
    let lengths = [4_096, 512, 1_024, 2_048, 8_192, 16_384, 32_768, 65_536].map(|page| {
        let mut all = frames(bytes, page);
        let Some(first) = all.next() else { return 0 };
        let same = all.take_while(|frame| frame.salts() == first.salts());
        1 + same.count()
    });
    let frames = lengths.into_iter().max().unwrap_or(0);
    (frames > 1).then(|| {
        format!("its header does not verify, and up to {frames} frames behind it cannot be read")
    })
}

#[cfg(test)]
mod tests {
    use super::judge;
    use rusqlite::Connection;

    /// Makes a journal of this many transactions, as a killed process leaves it.
    fn journal(name: &str, transactions: u32) -> Vec<u8> {
        let folder =
            std::env::temp_dir().join(format!("steersman-wal-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let conn = Connection::open(folder.join("a.db")).unwrap();
        conn.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x)")
            .unwrap();
        for n in 1..transactions {
            conn.execute("INSERT INTO t VALUES (?1)", [n]).unwrap();
        }
        let bytes = std::fs::read(folder.join("a.db-wal")).unwrap();
        drop(conn);
        std::fs::remove_dir_all(folder).unwrap();
        bytes
    }

    const STRIDE: usize = 24 + 4_096;

    #[test]
    fn neither_a_whole_nor_a_cut_journal_is_damaged() {
        let whole = journal("whole", 9);
        for len in (0..=whole.len()).step_by(61) {
            assert_eq!(judge(&whole[..len]), None, "{len}");
        }
    }

    #[test]
    fn every_flipped_bit_before_the_last_transactions_is_found() {
        let whole = journal("bits", 9);
        let last = whole.len() - 2 * STRIDE;
        for bit in (0..last * 8).step_by(97).chain(0..32 * 8) {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(judge(&bytes).is_some(), "bit {bit}");
        }
    }

    /// A power cut may leave a part of the last transaction, which was not acknowledged.
    #[test]
    fn a_torn_last_transaction_is_no_damage() {
        let whole = journal("torn", 9);
        let mut torn = whole.clone();
        let last = whole.len() - STRIDE;
        torn[last + 30..].fill(0);
        assert_eq!(judge(&torn), None);
    }
}
