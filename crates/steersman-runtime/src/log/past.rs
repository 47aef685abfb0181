//! The past of a session in memory: its lines, the interactions that they pushed, and their texts, within a bound.
//!
//! The machine and templates read the past through synchronous traits, so that no reader of a stack depends on a disk. The owner
//! keeps every line that it writes ([`Past::add`]). When it loads a session, it reads the recent interactions of agents that act
//! ([`Past::warm`]), so the hot path finds everything in memory. A job of the driver that misses something older (a template over
//! an old text) is done again after it was read. Other readers (`show`) read it in the calling thread. Lines that are not on disk yet are never dropped. All
//! data that is read is checked against its hash, as when a session is loaded.

use crate::load::{Hashes, Load};
use crate::store::{Coming, Row, SessionId, Store, StoreError};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steersman_machine::context::{History, hooked_of};
use steersman_machine::snapshot::{Phase, Snapshot};
use steersman_machine::stored::codec::{self, Hash, Skimmed};
use steersman_machine::stored::commit::{Hooked, LogLine, Text};
use steersman_machine::stored::ids::{Bodies, Body, Id, Line, Time};
use steersman_machine::stored::interaction::Interaction;
use steersman_machine::stored::parts::Parts;

pub use steersman_machine::stored::ids::ERASED;

/// Default bound of a session's past in memory, in bytes.
pub const DEFAULT_BOUND: usize = 8 * 1024 * 1024;

/// Number of lines that are read for an absent line of a job: this one, and those before it. It is [`GROWTH`] times as large each
/// time that the job is done again, so that a job which walks back through a long session is done a few times only.
const LINES: u64 = 64;
const GROWTH: u64 = 4;
/// Fewest lines for which another core is used.
const A_CORE: usize = 256;

/// Lines and texts of one session. The driver and its readers share it.
pub struct Past {
    store: Arc<dyn Store>,
    session: SessionId,
    load: Load,
    bound: usize,
    kept: Arc<Mutex<Kept>>,
    coming: Coming,
    /// False for an image: what is not in memory is noted as absent, and nothing is read from the store.
    reads: bool,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<Key, Entry>,
    /// Queue of a clock algorithm: an entry that was used since its last turn stays for another round.
    round: VecDeque<Key>,
    bytes: usize,
    /// Lines up to this one are on disk.
    written: Line,
    hashes: Hashes,
    fault: Option<StoreError>,
    /// Everything that a reader of an image did not find since the last look.
    absent: BTreeSet<Absent>,
    /// Contents that were read for the job at hand; `None`: erased, or no text.
    contents: HashMap<Hash, Option<Arc<str>>>,
    /// True if the session began in this memory, and nothing of it was dropped.
    is_whole: bool,
    /// True while a job waits for what it wants: nothing is dropped, so that the job finds all of it together.
    holds: bool,
    /// Number of times that the job at hand did not find something.
    rounds: u32,
}

/// Something of a past that is not in memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Absent {
    /// A line.
    Line(Line),
    /// A text that is stored as a blob.
    Blob(Hash),
    /// The content of an artifact.
    Content(Hash),
}

#[derive(Copy, Clone, PartialEq, Eq, Hash)]
enum Key {
    Line(Line),
    Blob(Hash),
}

struct Entry {
    what: What,
    bytes: usize,
    used: bool,
}

enum What {
    Line(Arc<LogLine>, Vec<(Id, Pushed)>),
    Blob(Arc<str>),
}

/// The interactions that a line pushed onto one stack, and the line of the push below.
type Pushed = (Arc<[Interaction]>, Line);

impl Past {
    /// Creates an empty past. `bound` is in bytes ([`DEFAULT_BOUND`]), `written` is the last line on disk, and `salt` is the salt
    /// of the session's hashes.
    pub fn new(
        store: Arc<dyn Store>,
        session: SessionId,
        salt: [u8; 16],
        written: Line,
        bound: usize,
    ) -> Self {
        let kept = Kept {
            written,
            is_whole: !written.is_some(),
            ..Kept::default()
        };
        Self {
            load: Load::new(store.clone(), session.clone(), salt),
            store,
            session,
            bound,
            kept: Arc::new(Mutex::new(kept)),
            coming: Coming::default(),
            reads: true,
        }
    }

    /// Returns the same past as a job of the driver reads it: from memory alone. Whatever is absent is noted
    /// ([`Past::take_absent`]); then nothing that the job decided counts, and the job is done again when it was read.
    pub(crate) fn image(&self) -> Self {
        Self {
            store: self.store.clone(),
            session: self.session.clone(),
            load: self.load.clone(),
            bound: self.bound,
            kept: self.kept.clone(),
            coming: self.coming.clone(),
            reads: false,
        }
    }

    /// Takes the notes of everything that an image did not find since the last call.
    pub(crate) fn take_absent(&self) -> BTreeSet<Absent> {
        let mut kept = self.kept();
        let absent = std::mem::take(&mut kept.absent);
        kept.rounds = kept.rounds.saturating_add(u32::from(!absent.is_empty()));
        absent
    }

    /// Reads what was absent, and keeps it until [`Past::lets_go`].
    pub(crate) async fn take_in_absent(&self, what: Absent) -> Result<(), StoreError> {
        self.kept().holds = true;
        match what {
            Absent::Line(n) => {
                if self.kept().line(n).is_some() {
                    return Ok(());
                }
                let lines = self.kept().lines_to_read().min(n.0);
                // A reader that walks back wants the lines before it, too.
                let from = Line((n.0 + 1).saturating_sub(lines).max(1));
                let rows = self.store.rows(&self.session, from, n, lines as usize);
                let rows = rows.await?;
                if rows.last().is_none_or(|row| row.n != n) {
                    return Err(self.corrupt(n, "it is missing".to_owned()));
                }
                for row in &rows {
                    match self.check(row).await {
                        Err(fault) if row.n == n => return Err(fault),
                        // Damage of a line that nobody asked for is not an error here.
                        Ok(_) | Err(_) => {}
                    }
                }
            }
            Absent::Blob(hash) => {
                let bytes = self.blob(&hash).await?;
                self.took_blob(&hash, bytes)?;
            }
            Absent::Content(hash) => {
                let bytes = self.blob(&hash).await?;
                let text = bytes.and_then(|bytes| std::str::from_utf8(&bytes).ok().map(Arc::from));
                self.kept().contents.insert(hash, text);
            }
        }
        Ok(())
    }

    async fn blob(&self, hash: &Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        match self.coming.get(hash) {
            Some(bytes) => Ok(Some(bytes)),
            None => self.store.blob(hash).await,
        }
    }

    fn blob_now(&self, hash: &Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        match self.coming.get(hash) {
            Some(bytes) => Ok(Some(bytes)),
            None => self.store.blob_now(hash),
        }
    }

    /// Returns the contents that are on their way to the disk.
    pub(crate) fn coming(&self) -> &Coming {
        &self.coming
    }

    /// Keeps everything that is in memory until [`Past::lets_go`].
    pub(crate) fn holds(&self) {
        self.kept().holds = true;
    }

    /// The job at hand is done: what was kept for it may be dropped again.
    pub(crate) fn lets_go(&self) {
        let mut kept = self.kept();
        if std::mem::take(&mut kept.holds) {
            kept.contents.clear();
            kept.rounds = 0;
            kept.shrink(self.bound);
        }
    }

    fn absent(&self, what: Absent) -> StoreError {
        self.kept().absent.insert(what);
        let place = format!("session `{}`", self.session);
        let what = format!("{what:?} is not in memory");
        StoreError::Corrupt { place, what }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a line that was made (on disk or not) or read.
    pub fn add(&self, line: Arc<LogLine>) {
        let texts: usize = line.bodies.iter().map(len).sum();
        let pushes = line.commit.as_ref().map_or(0, |c| c.pushes.len());
        let bytes = 500 + texts + 250 * (pushes + line.ledger.len());
        let key = Key::Line(line.n);
        self.insert(key, What::Line(line, Vec::new()), bytes);
    }

    /// Keeps the text of a blob that was just written.
    pub(crate) fn add_blob(&self, hash: Hash, text: Arc<str>) {
        let bytes = text.len() + 100;
        self.insert(Key::Blob(hash), What::Blob(text), bytes);
    }

    fn insert(&self, key: Key, what: What, bytes: usize) {
        let mut kept = self.kept();
        let entry = Entry {
            what,
            bytes,
            used: false,
        };
        kept.bytes += bytes;
        match kept.entries.insert(key, entry) {
            Some(before) => kept.bytes -= before.bytes,
            None => kept.round.push_back(key),
        }
        kept.shrink(self.bound);
    }

    /// Records that lines up to this one are on disk, so that they may be dropped.
    pub fn written(&self, upto: Line) {
        self.coming.written(upto);
        let mut kept = self.kept();
        kept.written = kept.written.max(upto);
        kept.shrink(self.bound);
    }

    /// Drops a line, because it was rewritten (erasure). Texts in blobs are not dropped.
    pub fn forget(&self, n: Line) {
        let mut kept = self.kept();
        kept.is_whole = false;
        if let Some(entry) = kept.entries.remove(&Key::Line(n)) {
            kept.bytes -= entry.bytes;
            kept.round.retain(|k| *k != Key::Line(n));
        }
    }

    /// Returns and clears the first error of reading since the last call. The traits cannot fail, so a text that cannot be read
    /// reads as `[unreadable]`. A caller that acts on what it read must check here first, and must not act after an error.
    pub fn fault(&self) -> Option<StoreError> {
        self.kept().fault.take()
    }

    /// Returns a line from memory, or reads it synchronously from the store.
    pub fn line(&self, n: Line) -> Result<Arc<LogLine>, StoreError> {
        if let Some(line) = self.kept().line(n) {
            return Ok(line);
        }
        if !self.reads {
            return Err(self.absent(Absent::Line(n)));
        }
        let row = self.store.row_now(&self.session, n)?;
        let row = row.ok_or_else(|| self.corrupt(n, "it is missing".to_owned()))?;
        let mut hashes = std::mem::take(&mut self.kept().hashes);
        let checked = self.load.checked_now(&row, &mut hashes);
        self.take_in(checked, hashes)
    }

    /// Returns a line from memory, or reads it from the store without blocking the thread.
    pub async fn read(&self, n: Line) -> Result<Arc<LogLine>, StoreError> {
        let kept = self.kept().line(n);
        if let Some(line) = kept {
            return Ok(line);
        }
        let row = self.store.row(&self.session, n).await?;
        let row = row.ok_or_else(|| self.corrupt(n, "it is missing".to_owned()))?;
        self.check(&row).await
    }

    /// Checks and keeps the line of a row that was read elsewhere.
    pub async fn check(&self, row: &Row) -> Result<Arc<LogLine>, StoreError> {
        let kept = self.kept().line(row.n);
        if let Some(line) = kept {
            return Ok(line);
        }
        let mut hashes = std::mem::take(&mut self.kept().hashes);
        let checked = self.load.checked(row, &mut hashes).await;
        self.take_in(checked, hashes)
    }

    /// Checks the lines of rows that were read elsewhere, which follow each other, on all cores. They are not kept in memory.
    pub fn check_all(&self, rows: &[Row]) -> Result<Vec<Arc<LogLine>>, StoreError> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let each = rows.len().div_ceil(cores).max(A_CORE);
        let check = |rows: &[Row]| -> Result<Vec<Arc<LogLine>>, StoreError> {
            let mut hashes = Hashes::default();
            let rows = rows.iter();
            rows.map(|row| Ok(Arc::new(self.load.checked_now(row, &mut hashes)?)))
                .collect()
        };
        let mut parts = rows.chunks(each);
        let first = parts.next().unwrap_or_default();
        std::thread::scope(|threads| {
            let others: Vec<_> = parts
                .map(|part| threads.spawn(move || check(part)))
                .collect();
            let mut lines = check(first)?;
            for other in others {
                let checked = other.join().unwrap_or_else(|panic| resume_unwind(panic));
                lines.extend(checked?);
            }
            Ok(lines)
        })
    }

    /// Returns the texts of a row that was read elsewhere. The row is not checked.
    pub fn skim<'r>(&self, row: &'r Row) -> Result<impl Iterator<Item = Skimmed<'r>>, StoreError> {
        codec::skim(&row.bytes).map_err(|why| self.corrupt(row.n, why.to_string()))
    }

    fn take_in(
        &self,
        checked: Result<LogLine, StoreError>,
        hashes: Hashes,
    ) -> Result<Arc<LogLine>, StoreError> {
        self.kept().hashes = hashes;
        let line = Arc::new(checked?);
        self.add(line.clone());
        Ok(line)
    }

    pub(crate) fn corrupt(&self, n: Line, what: String) -> StoreError {
        StoreError::Corrupt {
            place: format!("session `{}` line {n}", self.session),
            what,
        }
    }

    /// Reads the last `depth` interactions of every agent that owes a step or has open calls, and of the root.
    pub async fn warm(&self, snapshot: &Snapshot, depth: usize) -> Result<(), StoreError> {
        for agent in snapshot.agents.values() {
            if agent.phase == Phase::Resting && Some(agent.id) != snapshot.root {
                continue;
            }
            let (mut at, mut left) = (agent.stack.last, depth);
            while at.is_some() && left > 0 {
                let line = self.read(at).await?;
                let (pushed, below) = pushed(&line, agent.id);
                if pushed.is_empty() {
                    return Err(self.corrupt(at, format!("it pushed nothing for {}", agent.id)));
                }
                left = left.saturating_sub(pushed.len());
                at = below;
            }
        }
        Ok(())
    }

    /// Returns a text, for callers that act on it: unlike [`Bodies`], this reports errors, and `None` means that the text was erased.
    /// If the body has several parts, the text names its artifacts.
    pub fn stored(&self, body: Body) -> Result<Option<Arc<str>>, StoreError> {
        Ok(match self.stored_parts(body)? {
            None => None,
            Some(Parts::One(text)) => Some(text),
            Some(Parts::Several(_)) => Some(self.text(body)),
        })
    }

    /// Returns the parts of a body, for callers that act on them, as [`Past::stored`] does. `None` means that it was erased.
    pub(crate) fn stored_parts(&self, body: Body) -> Result<Option<Parts>, StoreError> {
        let line = self.line(body.line())?;
        let parts = match line.bodies.get(body.k() as usize) {
            Some(Text::Here(text)) => Parts::One(text.text().clone()),
            Some(Text::Erased { .. }) => return Ok(None),
            Some(Text::Blob { hash, .. }) => Parts::One(self.read_blob(hash)?),
            Some(Text::Parts(parts)) => Parts::Several(parts.clone()),
            None => return Err(self.corrupt(line.n, format!("it holds no text {}", body.k()))),
        };
        Ok(Some(parts))
    }

    /// Returns the time at which an effect was wished.
    pub(crate) fn wished_at(&self, effect: Id) -> Time {
        let line = self.line(effect.line()).ok();
        let wished = line.and_then(|line| line.commit.as_ref().map(|_| line.at));
        wished.unwrap_or_default()
    }

    /// Returns the text of an artifact's content. `None` means that it was erased or is not text.
    pub(crate) fn content(&self, hash: &Hash) -> Result<Option<Arc<str>>, StoreError> {
        if !self.reads {
            let kept = self.kept().contents.get(hash).cloned();
            return kept.ok_or_else(|| self.absent(Absent::Content(*hash)));
        }
        let bytes = self.blob_now(hash)?;
        Ok(bytes.and_then(|bytes| std::str::from_utf8(&bytes).ok().map(Arc::from)))
    }

    fn read_blob(&self, hash: &Hash) -> Result<Arc<str>, StoreError> {
        if let Some(text) = self.kept().blob(hash) {
            return Ok(text);
        }
        if !self.reads {
            return Err(self.absent(Absent::Blob(*hash)));
        }
        let bytes = self.blob_now(hash)?;
        self.took_blob(hash, bytes)
    }

    fn took_blob(&self, hash: &Hash, bytes: Option<Arc<[u8]>>) -> Result<Arc<str>, StoreError> {
        let place = || format!("blob {}", blake3::Hash::from(*hash).to_hex());
        let Some(bytes) = bytes else {
            return Err(StoreError::Corrupt {
                place: place(),
                what: "it is missing".to_owned(),
            });
        };
        let text: Arc<str> = std::str::from_utf8(&bytes)
            .map_err(|e| StoreError::Corrupt {
                place: place(),
                what: e.to_string(),
            })?
            .into();
        self.add_blob(*hash, text.clone());
        Ok(text)
    }

    /// Returns the interactions that a line pushed onto a stack, and the line of the push below.
    pub(crate) fn pushed(
        &self,
        agent: Id,
        line: Line,
    ) -> Result<(Arc<[Interaction]>, Line), StoreError> {
        let whole = self.line(line)?;
        let pushed = self.kept().pushed(agent, line).unwrap_or_else(|| {
            // The line was dropped between the two reads: the bound is smaller than one line.
            let (pushed, below) = pushed(&whole, agent);
            (pushed.into(), below)
        });
        if pushed.0.is_empty() {
            return Err(self.corrupt(line, format!("it pushed nothing for {agent}")));
        }
        Ok(pushed)
    }

    /// Returns true if a line is in memory.
    pub(crate) fn has_line(&self, n: Line) -> bool {
        self.kept().entries.contains_key(&Key::Line(n))
    }

    /// Returns true if everything of the session is in memory.
    pub(crate) fn is_whole(&self) -> bool {
        self.kept().is_whole
    }

    /// Returns true if an image did not find something since the last [`Past::take_absent`].
    pub(crate) fn has_absent(&self) -> bool {
        !self.kept().absent.is_empty()
    }

    fn note(&self, fault: StoreError) {
        let mut kept = self.kept();
        // Something absent is no fault: it is read, and the job is done again.
        if self.reads || kept.absent.is_empty() {
            kept.fault.get_or_insert(fault);
        }
    }
}

impl Kept {
    /// Returns the number of lines to read for an absent line.
    fn lines_to_read(&self) -> u64 {
        LINES.saturating_mul(GROWTH.saturating_pow(self.rounds.saturating_sub(1)))
    }

    fn line(&mut self, n: Line) -> Option<Arc<LogLine>> {
        let entry = self.entries.get_mut(&Key::Line(n))?;
        entry.used = true;
        match &entry.what {
            What::Line(line, _) => Some(line.clone()),
            What::Blob(_) => None,
        }
    }

    fn blob(&mut self, hash: &Hash) -> Option<Arc<str>> {
        let entry = self.entries.get_mut(&Key::Blob(*hash))?;
        entry.used = true;
        match &entry.what {
            What::Blob(text) => Some(text.clone()),
            What::Line(..) => None,
        }
    }

    /// Returns the interactions that a kept line pushed onto a stack. The result is computed once.
    fn pushed(&mut self, agent: Id, n: Line) -> Option<Pushed> {
        let entry = self.entries.get_mut(&Key::Line(n))?;
        entry.used = true;
        let What::Line(line, known) = &mut entry.what else {
            return None;
        };
        if let Some((_, pushed)) = known.iter().find(|(id, _)| *id == agent) {
            return Some(pushed.clone());
        }
        let (pushed, below) = pushed(line, agent);
        let pushed: Pushed = (pushed.into(), below);
        known.push((agent, pushed.clone()));
        Some(pushed)
    }

    fn shrink(&mut self, bound: usize) {
        if self.holds {
            return;
        }
        // Each entry is visited at most twice: once to clear `used`, once to drop it.
        let mut looks = self.round.len() * 2;
        while self.bytes > bound && looks > 0 {
            looks -= 1;
            let Some(key) = self.round.pop_front() else {
                return;
            };
            let ahead = matches!(key, Key::Line(n) if n > self.written);
            match self.entries.get_mut(&key) {
                Some(entry) if entry.used || ahead => {
                    entry.used = false;
                    self.round.push_back(key);
                }
                Some(entry) => {
                    self.bytes -= entry.bytes;
                    self.entries.remove(&key);
                    self.is_whole = false;
                }
                None => {}
            }
        }
    }
}

fn len(text: &Text) -> usize {
    match text {
        Text::Here(text) => text.len() + 72,
        Text::Blob { .. } | Text::Erased { .. } => 64,
        Text::Parts(parts) => 40 + parts.len() * 256,
    }
}

fn pushed(line: &LogLine, agent: Id) -> (Vec<Interaction>, Line) {
    let pushes = line.commit.iter().flat_map(|c| &c.pushes);
    let mut of_agent = pushes.filter(|p| p.agent == agent).peekable();
    let below = of_agent.peek().map_or(Line::NONE, |p| p.prev);
    (of_agent.map(|p| p.what.clone()).collect(), below)
}

impl Bodies for Past {
    fn parts(&self, body: Body) -> Parts {
        match self.stored_parts(body) {
            Ok(parts) => parts.unwrap_or_else(|| Parts::One(ERASED.into())),
            Err(e) => {
                self.note(e);
                Parts::One("[unreadable]".into())
            }
        }
    }
}

impl History for Past {
    fn pushes(&self, agent: Id, line: Line) -> (Arc<[Interaction]>, Line) {
        self.pushed(agent, line).unwrap_or_else(|fault| {
            self.note(fault);
            (Arc::default(), Line::NONE)
        })
    }

    fn hooked(&self, effect: Id) -> Vec<Hooked> {
        match self.line(effect.line()) {
            Ok(line) => hooked_of(line.commit.as_ref(), effect),
            Err(fault) => {
                self.note(fault);
                Vec::new()
            }
        }
    }
}
