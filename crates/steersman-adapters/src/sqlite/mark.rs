//! The mark of a store: a small file in its own folder next to the store (`NAME.mark/`). It says which file the store is, and
//! how many transactions were written to it. It is made just before the first effect of class `unsafe` begins.
//!
//! A store that lost its end looks like a store that ended there, and a copy looks like the original: neither can tell by
//! itself that payments were made after its last line. Both are found by comparison with the mark. **Stored**: two slots of
//! [`SLOT`] bytes, each with a JSON object and a sum over it. The newest synced slot is not overwritten before the other one is
//! synced, so a torn write loses nothing.
//!
//! The file gets a new random name with each write, and contains its own identity. If an older copy of the store is restored in
//! its place, with everything next to it, the restored mark has another name: so there are two marks, or one that is in another
//! file than the one that it names.

use super::error::io;
use super::file::{FileId, beside};
use super::owner::in_place;
use super::part::{Part, sync};
use crate::regular;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use steersman_runtime::store::StoreError;

/// **Stored**: version of the object in a slot.
const VERSION: u32 = 5;
/// Bytes of a slot.
const SLOT: usize = 512;
/// Hexadecimal digits of the sum, and of a name.
const DIGITS: usize = 16;

/// Contents of the mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// Version of this object.
    version: u32,
    /// Number of the write, from 1.
    number: u64,
    /// True if this slot was synced before the writer continued.
    synced: bool,
    /// The random id of the store.
    pub(super) store: String,
    /// The id that the store has until the transaction that the mark announces is committed.
    before: Option<String>,
    /// Identity of the files.
    #[serde(flatten)]
    of: Of,
    /// Lower bound of the number of transactions in the store. SQLite recovers transactions in order, so all before the newest
    /// are there, too.
    pub(super) written: u64,
    /// True if the mark was read from another file than the one that it was written to.
    #[serde(skip)]
    pub(super) is_copy: bool,
}

/// The files that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Of {
    /// The store's file.
    file: FileId,
    /// The mark's own file.
    own: FileId,
}

impl Mark {
    /// Returns true if the mark belongs to this file of a store.
    pub(super) fn names(&self, file: &FileId) -> bool {
        self.of.file.is(file)
    }
    /// Returns true if the mark announces a transaction of the store with this id.
    pub(super) fn announces(&self, store: &str) -> bool {
        self.before.as_deref() == Some(store)
    }
}

/// Returns the folder of a store's mark.
fn folder(store: &Path) -> PathBuf {
    beside(store, ".mark")
}

/// Returns true if a store has a folder for its mark, even an empty one.
pub(super) fn is_there(store: &Path) -> bool {
    std::fs::symlink_metadata(folder(store)).is_ok()
}

/// Makes an unused random name for a mark.
fn name() -> std::io::Result<String> {
    let random = getrandom::u64().map_err(Error::other)?;
    Ok(format!("{random:016x}"))
}

/// Returns true for a mark's name. Other files in the folder are ignored.
fn is_name(name: &str) -> bool {
    let is_digit = |b| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    name.len() == DIGITS && name.bytes().all(is_digit)
}

fn marks(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let mut marks = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_name) {
            marks.push(entry.path());
        }
    }
    marks.sort();
    Ok(marks)
}

/// Returns the path of the only mark in a folder; `None` if there is none.
fn place(folder: &Path) -> std::io::Result<Option<PathBuf>> {
    let mut before: Option<Vec<PathBuf>> = None;
    // Another process may be renaming it: meanwhile a reader may see both names, or neither.
    loop {
        let mut marks = marks(folder)?;
        if marks.len() == 1 || before.as_ref() == Some(&marks) {
            let one = marks.pop();
            return match marks.len() {
                0 => Ok(one),
                more => Err(Error::other(format!(
                    "there are {} files of it where one belongs (an older copy was put back into its place)",
                    more + 1
                ))),
            };
        }
        before = Some(marks);
    }
}

/// Reads the mark of a store; `None` if there is none.
///
/// # Errors
/// A description, if the mark exists and cannot be read.
pub(super) fn read(store: &Path) -> Result<Option<Mark>, String> {
    let folder = folder(store);
    let described = |e: Error| match e.kind() {
        ErrorKind::NotADirectory | ErrorKind::InvalidData => format!(
            "its mark {} is damaged, or it is no mark (move it away if another program made it)",
            folder.display()
        ),
        _ => format!("its mark {} cannot be read: {e}", folder.display()),
    };
    loop {
        let Some(place) = place(&folder).map_err(described)? else {
            return Ok(None);
        };
        match regular::read(&place) {
            Ok(mut file) => return newest(&mut file).map(Some).map_err(described),
            // It was renamed meanwhile.
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(described(e)),
        }
    }
}

fn newest(file: &mut File) -> std::io::Result<Mark> {
    let slots = slots(file)?.into_iter().flatten();
    let mut mark = slots
        .max_by_key(|mark| mark.number)
        .ok_or(ErrorKind::InvalidData)?;
    mark.is_copy = !mark.of.own.is(&FileId::of_open(file)?);
    Ok(mark)
}

fn slots(file: &mut File) -> std::io::Result<[Option<Mark>; 2]> {
    let mut bytes = Vec::with_capacity(2 * SLOT);
    file.seek(SeekFrom::Start(0))?;
    file.take(2 * SLOT as u64).read_to_end(&mut bytes)?;
    Ok([0, SLOT].map(|at| decode(bytes.get(at..at + SLOT)?)))
}

fn sum_of(json: &[u8]) -> String {
    blake3::hash(json).to_hex()[..DIGITS].to_owned()
}

fn decode(slot: &[u8]) -> Option<Mark> {
    let (sum, json) = slot.split_at(DIGITS);
    let json = json.trim_ascii();
    let mark: Mark = serde_json::from_slice(json).ok()?;
    (sum == sum_of(json).as_bytes() && mark.version == VERSION).then_some(mark)
}

fn encode(mark: &Mark) -> std::io::Result<[u8; SLOT]> {
    let json = serde_json::to_vec(mark)?;
    let mut slot = [b' '; SLOT];
    slot[..DIGITS].copy_from_slice(sum_of(&json).as_bytes());
    let room = slot.get_mut(DIGITS + 1..DIGITS + 1 + json.len());
    room.ok_or(ErrorKind::FileTooLarge)?.copy_from_slice(&json);
    slot[SLOT - 1] = b'\n';
    Ok(slot)
}

/// Makes the mark of a store, before the transaction from which on the store needs it and has the id `id` instead of `before`.
/// The mark is on disk when this returns. A file in its place that is not a mark belongs to another program and is an error, and
/// so is a mark that counts transactions of a store with another id.
pub(super) fn make(store: &Path, id: &str, before: &str) -> Result<(), StoreError> {
    let refused = |why: String| io(&folder(store), Error::other(why));
    match read(store).map_err(refused)? {
        Some(mark) if mark.written > 0 && mark.store != before => Err(refused(
            "it counts the transactions of another store, whose place this one took; open the store again".to_owned(),
        )),
        _ => {
            let file = FileId::of(store).map_err(|e| io(store, e))?;
            written_anew(store, file, id, Some(before), 0)
        }
    }
}

/// Draws the id of a store: 32 hexadecimal digits.
pub(super) fn draw(store: &Path) -> Result<String, StoreError> {
    let drawn = name().and_then(|first| Ok(first + &name()?));
    drawn.map_err(|e| io(store, e))
}

/// Records the number of transactions that are on disk. If `synced`, waits until the mark is on disk too, and returns errors;
/// otherwise errors are ignored.
pub(super) fn record(store: &Path, id: &str, written: u64, synced: bool) -> Result<(), StoreError> {
    let folder = folder(store);
    let record = || -> std::io::Result<()> {
        let (mut file, place) = locked(&folder)?;
        let done = put(&mut file, id, None, None, written, synced)
            // After a power cut it may have its old name: only its content matters, and that is on disk.
            .and_then(|()| std::fs::rename(place, folder.join(name()?)));
        // Closing is not enough: a child process that was just forked has the file open, too.
        file.unlock()?;
        done
    };
    match record() {
        Err(e) if synced => Err(io(&folder, e)),
        // The mark stays at a lower number, which is safe.
        _ => Ok(()),
    }
}

/// Returns the locked mark and its path, which stays valid until the lock ends: only a writer renames the file.
fn locked(folder: &Path) -> std::io::Result<(File, PathBuf)> {
    loop {
        let place = place(folder)?.ok_or_else(|| Error::new(ErrorKind::NotFound, "it is gone"))?;
        let mut options = OpenOptions::new();
        let file = match regular::open(&place, options.read(true).write(true)) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        lock(&file)?;
        if in_place(&file, &place) {
            return Ok((file, place));
        }
    }
}

/// Takes the writers' lock on a mark. This program holds it for one write. A foreign process may hold it longer, so the wait is
/// limited.
fn lock(file: &File) -> std::io::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(4);
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(e),
            Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Error::new(
                    ErrorKind::TimedOut,
                    "a process has kept it locked for seconds, so nothing can be noted in it; `lslocks` names that process: end \
                     it, and go on",
                ));
            }
        }
    }
}

/// Writes a slot. A higher number of transactions that another process has written stays. The caller holds the lock on the file,
/// or has just made it.
fn put(
    file: &mut File,
    store: &str,
    announces: Option<&str>,
    of: Option<Of>,
    written: u64,
    synced: bool,
) -> std::io::Result<()> {
    let slots = slots(file)?;
    let newest_of = |synced: bool| {
        let all = slots.iter().enumerate();
        let all = all.filter_map(|(at, slot)| Some((at, slot.as_ref()?)));
        let all = all.filter(|(_, mark)| mark.store == store && (mark.synced || !synced));
        all.max_by_key(|(_, mark)| mark.number)
    };
    let before = newest_of(false).map(|(_, mark)| mark);
    let of = of
        .or_else(|| before.map(|before| before.of.clone()))
        .ok_or_else(|| Error::new(ErrorKind::NotFound, "it does not name this store any more"))?;
    let numbers = slots.iter().flatten().map(|mark| mark.number);
    let mark = Mark {
        version: VERSION,
        number: 1 + numbers.max().unwrap_or(0),
        synced,
        store: store.to_owned(),
        before: announces.map(str::to_owned),
        of,
        written: before.map_or(0, |before| before.written).max(written),
        is_copy: false,
    };
    let at = match newest_of(true) {
        Some((0, _)) => SLOT,
        _ => 0,
    };
    file.seek(SeekFrom::Start(at as u64))?;
    file.write_all(&encode(&mark)?)?;
    if synced {
        file.sync_data()?;
    }
    Ok(())
}

/// Makes a new mark for the present state of a store, in a new file that replaces the old mark.
pub(super) fn begin(store: &Path, id: &str, written: u64) -> Result<(), StoreError> {
    let file = FileId::of(store).map_err(|e| io(store, e))?;
    begin_of(store, file, id, written)
}

/// Like [`begin`], for a store whose file is not in its place yet.
pub(super) fn begin_of(
    store: &Path,
    file: FileId,
    id: &str,
    written: u64,
) -> Result<(), StoreError> {
    written_anew(store, file, id, None, written)
}

fn written_anew(
    store: &Path,
    file: FileId,
    id: &str,
    before: Option<&str>,
    written: u64,
) -> Result<(), StoreError> {
    let folder = folder(store);
    let made = || -> std::io::Result<()> {
        std::fs::create_dir_all(&folder)?;
        let place = match place(&folder)? {
            Some(place) => place,
            None => folder.join(name()?),
        };
        let (part, mut own) = Part::of(&place)?;
        let of = Of {
            file: file.clone(),
            own: FileId::of_open(&own)?,
        };
        put(&mut own, id, before, Some(of), written, true)?;
        part.replace()?;
        store.parent().map_or(Ok(()), sync)
    };
    made().map_err(|e| io(&folder, e))
}

#[cfg(test)]
mod tests {
    use super::{Of, SLOT, decode, folder, name, put, read};
    use std::fs::OpenOptions;

    /// A power cut may damage a slot that was not synced: the synced one is read.
    #[test]
    fn what_was_synced_is_never_overwritten_by_what_is_not() {
        let store = std::env::temp_dir().join(format!("steersman-mark-{}", std::process::id()));
        assert_eq!(read(&store), Ok(None));
        std::fs::create_dir(folder(&store)).unwrap();
        assert_eq!(read(&store), Ok(None));
        let path = folder(&store).join(name().unwrap());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let mut file = options.open(&path).unwrap();
        let mut synced = 0;
        for written in 1..40 {
            let now = written % 5 == 1;
            put(&mut file, "a", None, Some(Of::default()), written, now).unwrap();
            if now {
                synced = written;
            }
            let told = read(&store).unwrap().unwrap();
            assert_eq!(told.written, written);
            let bytes = std::fs::read(&path).unwrap();
            let kept = bytes.chunks(SLOT).filter_map(decode);
            let kept = kept.filter(|mark| mark.synced).map(|mark| mark.written);
            assert_eq!(kept.max(), Some(synced), "{written}");
        }
        std::fs::write(&path, [7; 2 * SLOT]).unwrap();
        assert!(read(&store).unwrap_err().contains("damaged"));
        std::fs::remove_dir_all(folder(&store)).unwrap();
    }
}
