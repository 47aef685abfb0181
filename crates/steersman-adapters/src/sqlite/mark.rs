//! The mark of a store: a small file beside it (`NAME.mark`) that says which file the store is, and how many transactions were
//! written to it. There is none before something begins outside that must not happen twice.
//!
//! A store that lost its end looks like a store that ended there, and a copy looks like the store: neither can tell by itself
//! that payments were made behind its last line. Both are found by comparing with the mark. **Stored**: two slots of
//! [`SLOT`] bytes, each with a JSON object and a sum over it. The newest slot that was synced is not overwritten before the other one
//! is synced, so a torn write loses nothing.

use super::error::io;
use super::file::{FileId, Witness, beside};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use steersman_runtime::store::StoreError;

/// **Stored**: the form of the object in a slot.
const VERSION: u32 = 3;
/// Bytes of a slot.
const SLOT: usize = 512;
/// Hexadecimal digits of the sum.
const SUM: usize = 16;

/// What the mark says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The form.
    version: u32,
    /// Grows with each.
    number: u64,
    /// Whether it was synced before anybody went on.
    synced: bool,
    /// The random id of the store.
    pub(super) store: String,
    /// Its file.
    pub(super) file: FileId,
    /// The file beside it that nobody touches.
    pub(super) witness: Witness,
    /// How many transactions are in it at least: they come back in order, so all before the newest are there with it.
    pub(super) written: u64,
}

/// The place of a store's mark.
pub(super) fn path(store: &Path) -> PathBuf {
    beside(store, ".mark")
}

/// Reads the mark of a store; none if there is none.
///
/// # Errors
/// In words, if it is there and says nothing that can be read.
pub(super) fn read(store: &Path) -> Result<Option<Mark>, String> {
    let path = path(store);
    let told = |e: Error| format!("its mark {} cannot be read: {e}", path.display());
    match File::open(&path) {
        Ok(mut file) => slots(&mut file)
            .map_err(told)?
            .into_iter()
            .flatten()
            .max_by_key(|mark| mark.number)
            .map(Some)
            .ok_or_else(|| {
                format!(
                    "its mark {} is damaged, or it is no mark (move it away if another program made it)",
                    path.display()
                )
            }),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(told(e)),
    }
}

fn slots(file: &mut File) -> std::io::Result<[Option<Mark>; 2]> {
    let mut bytes = Vec::with_capacity(2 * SLOT);
    file.seek(SeekFrom::Start(0))?;
    file.take(2 * SLOT as u64).read_to_end(&mut bytes)?;
    Ok([0, SLOT].map(|at| decode(bytes.get(at..at + SLOT)?)))
}

fn sum_of(json: &[u8]) -> String {
    blake3::hash(json).to_hex()[..SUM].to_owned()
}

fn decode(slot: &[u8]) -> Option<Mark> {
    let (sum, json) = slot.split_at(SUM);
    let json = json.trim_ascii();
    let mark: Mark = serde_json::from_slice(json).ok()?;
    (sum == sum_of(json).as_bytes() && mark.version == VERSION).then_some(mark)
}

fn encode(mark: &Mark) -> std::io::Result<[u8; SLOT]> {
    let json = serde_json::to_vec(mark)?;
    let mut slot = [b' '; SLOT];
    slot[..SUM].copy_from_slice(sum_of(&json).as_bytes());
    let room = slot.get_mut(SUM + 1..SUM + 1 + json.len());
    room.ok_or(ErrorKind::FileTooLarge)?.copy_from_slice(&json);
    slot[SLOT - 1] = b'\n';
    Ok(slot)
}

/// The mark of a store that is open for writing.
pub(super) struct Marker {
    store: PathBuf,
    /// Once the store needs one, whoever made it.
    file: Option<File>,
}

impl Marker {
    pub(super) fn new(store: &Path) -> Self {
        Self {
            store: store.to_owned(),
            file: None,
        }
    }

    fn failed(&self, e: Error) -> StoreError {
        io(&path(&self.store), e)
    }

    fn open(&self) -> std::io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).open(path(&self.store))
    }

    /// Makes the mark of a store that is about to say that it needs one. It outlives a power cut then. What lies in its place and
    /// is no mark is somebody else's.
    pub(super) fn make(&mut self, id: &str) -> Result<(), StoreError> {
        read(&self.store).map_err(|why| self.failed(Error::other(why)))?;
        anew(&self.store, id, 0)?;
        self.file = None;
        self.find()
    }

    /// Opens the mark of a store that says that it has one.
    pub(super) fn find(&mut self) -> Result<(), StoreError> {
        if self.file.is_none() {
            self.file = Some(self.open().map_err(|e| self.failed(e))?);
        }
        Ok(())
    }

    /// Says how many transactions are on disk now. `synced`: nobody goes on before the mark is on disk, too.
    pub(super) fn tell(&mut self, id: &str, written: u64, synced: bool) -> Result<(), StoreError> {
        if self.file.is_none() {
            return Ok(());
        }
        let mut put = || match self.file.as_mut() {
            Some(file) => put(file, id, None, written, synced),
            None => Ok(()),
        };
        let mut told = put();
        // The transaction for which this process made one failed, and another process made another.
        if told
            .as_ref()
            .is_err_and(|e| e.kind() == ErrorKind::NotFound)
        {
            told = self.open().and_then(|mut file| {
                let told = self::put(&mut file, id, None, written, synced);
                self.file = Some(file);
                told
            });
        }
        match told {
            Err(e) if synced => Err(self.failed(e)),
            // It says less than it could.
            _ => Ok(()),
        }
    }
}

/// Takes the lock of whoever writes a mark. Ours hold it for one write; who else holds it is not waited for without end.
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

/// Writes a slot. Several processes may do that: one at a time, each over what the others said.
fn put(
    file: &mut File,
    store: &str,
    of: Option<(FileId, Witness)>,
    written: u64,
    synced: bool,
) -> std::io::Result<()> {
    lock(file)?;
    let mut put = || -> std::io::Result<()> {
        let slots = slots(file)?;
        let newest_of = |synced: bool| {
            let all = slots.iter().enumerate();
            let all = all.filter_map(|(at, slot)| Some((at, slot.as_ref()?)));
            let all = all.filter(|(_, mark)| mark.store == store && (mark.synced || !synced));
            all.max_by_key(|(_, mark)| mark.number)
        };
        let before = newest_of(false).map(|(_, mark)| mark);
        let known = before.map(|before| (before.file.clone(), before.witness.clone()));
        let (file_id, witness) = of
            .clone()
            .or(known)
            .ok_or_else(|| Error::new(ErrorKind::NotFound, "it is no longer what it was"))?;
        let mark = Mark {
            version: VERSION,
            number: 1 + slots
                .iter()
                .flatten()
                .map(|mark| mark.number)
                .max()
                .unwrap_or(0),
            synced,
            store: store.to_owned(),
            file: file_id,
            witness,
            written: before.map_or(0, |before| before.written).max(written),
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
    };
    let result = put();
    file.unlock()?;
    result
}

/// Marks a store as it is now, whatever its mark said before.
pub(super) fn anew(store: &Path, id: &str, written: u64) -> Result<(), StoreError> {
    let path = path(store);
    let made = || -> std::io::Result<()> {
        // What was there may be of another store.
        let part = beside(store, ".mark.part");
        let _ = std::fs::remove_file(&part);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&part)?;
        let of = (FileId::of(store)?, Witness::make(store)?);
        put(&mut file, id, Some(of), written, true)?;
        std::fs::rename(&part, &path)?;
        match store.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    };
    made().map_err(|e| io(&path, e))
}

#[cfg(test)]
mod tests {
    use super::{FileId, SLOT, Witness, decode, path, put, read};
    use std::fs::OpenOptions;

    /// Whatever a power cut makes of a slot that was not synced: what was synced is read.
    #[test]
    fn what_was_synced_is_never_overwritten_by_what_is_not() {
        let store = std::env::temp_dir().join(format!("steersman-mark-{}", std::process::id()));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path(&store))
            .unwrap();
        let of = <(FileId, Witness)>::default();
        let mut synced = 0;
        for written in 1..40 {
            let now = written % 5 == 1;
            put(&mut file, "a", Some(of.clone()), written, now).unwrap();
            if now {
                synced = written;
            }
            let told = read(&store).unwrap().unwrap();
            assert_eq!(told.written, written);
            let bytes = std::fs::read(path(&store)).unwrap();
            let kept = bytes.chunks(SLOT).filter_map(decode);
            let kept = kept.filter(|mark| mark.synced).map(|mark| mark.written);
            assert_eq!(kept.max(), Some(synced), "{written}");
        }
        std::fs::write(path(&store), [7; 2 * SLOT]).unwrap();
        assert!(read(&store).unwrap_err().contains("damaged"));
        std::fs::remove_file(path(&store)).unwrap();
        assert_eq!(read(&store), Ok(None));
    }
}
