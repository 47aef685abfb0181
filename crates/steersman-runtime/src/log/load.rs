//! Loads a ledger and snapshots from rows, and checks every hash on the way.
//!
//! A branch is loaded from the newest checkpoint on its path and the rows after it. The rows are found backwards, because each
//! row names the one before. [`Since`] says when a checkpoint is due. So a load reads at most 64 rows, or nine times the size of
//! the checkpoint, however long the session is.

pub(crate) mod named;

use self::named::Named;
use crate::ledger::Ledger;
use crate::store::{CheckpointOf, Row, SessionId, SessionInfo, SessionQuery, Store, StoreError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::snapshot::{Snapshot, checkpoint};
use steersman_machine::stored::codec;
use steersman_machine::stored::codec::{CodecError, Hash};
use steersman_machine::stored::commit::{LogLine, Text};
use steersman_machine::stored::ids::{Id, Line};

/// Label of a rerun that names the recorded session. If the change begins at a line, `@` and the line follow.
pub const RERUN_OF: &str = "rerun_of";

/// The label that holds the name of a rerun ([`Rerun::name`](crate::rerun::Rerun::name)).
pub const RERUN: &str = "rerun";

/// Returns true for a label that says what a session is made from. Such a label is no text of the session: it decides what counts
/// as work, and what was repeated already. So erasing keeps it.
pub(crate) fn is_of_rerun(label: &str) -> bool {
    label == RERUN_OF || label == RERUN
}

/// Returns the id of the session that a rerun repeats, by its labels. `None` if it is no rerun.
pub fn rerun_of(info: &SessionInfo) -> Option<&str> {
    let mut labels = info.labels.iter();
    let (_, of) = labels.find(|(name, _)| **name == *RERUN_OF)?;
    Some(of.split_once('@').map_or(&**of, |(session, _)| session))
}

/// Rows and bytes written since the last checkpoint on a path. Copied when a branch is forked at its head.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Since {
    rows: u64,
    bytes: u64,
    /// Size of the last checkpoint in bytes, if known.
    size: u64,
}

impl Since {
    /// Records a row of this many bytes.
    pub fn wrote(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes as u64;
    }

    /// Records a row of this many bytes. Returns the checkpoint, if one is due.
    pub(crate) fn checkpoint(
        &mut self,
        wrote: usize,
        make: impl FnOnce() -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        self.wrote(wrote);
        let bytes = self.is_due().then(make)?;
        self.made(bytes.len()).then_some(bytes)
    }

    /// Returns true if a checkpoint is worthwhile: after more than 64 rows and more than eight times the size of the last one.
    pub fn is_due(&self) -> bool {
        self.rows > 64 && self.bytes > 8 * self.size
    }

    /// Records a new checkpoint of this size. Returns true if it should be written: [`Self::is_due`] must still hold with this size.
    pub fn made(&mut self, size: usize) -> bool {
        self.size = size as u64;
        let due = self.is_due();
        if due {
            (self.rows, self.bytes) = (0, 0);
        }
        due
    }
}

/// A branch as of one line.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Snapshot of the branch.
    pub snapshot: Snapshot,
    /// The line of the snapshot.
    pub at: Line,
    /// Hash of that line.
    pub hash: Hash,
    /// Rows and bytes after the last checkpoint.
    pub since: Since,
    /// The lines that were read, oldest first, for [`crate::past::Past::add`].
    pub lines: Vec<Arc<LogLine>>,
}

/// Hashes of the rows that were read last. The hash of a row covers the hash of the row before it on its branch, so rows that are
/// read in ascending order need no other row, wherever in the session they are.
#[derive(Debug, Default)]
pub(crate) struct Hashes {
    known: BTreeMap<Line, Hash>,
    /// The known lines, in the order in which they came.
    order: VecDeque<Line>,
}

impl Hashes {
    /// Enough for branches that run at the same time.
    const KEPT: usize = 256;

    fn put(&mut self, n: Line, hash: Hash) {
        if self.known.insert(n, hash).is_none() {
            self.order.push_back(n);
        }
        if self.order.len() > Self::KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// Reads and verifies the rows of one session.
#[derive(Clone)]
pub struct Load {
    store: Arc<dyn Store>,
    session: SessionId,
    salt: [u8; 16],
    /// True if checkpoints are ignored.
    cold: bool,
}

impl Load {
    /// Creates a reader for a session. `salt` is the salt of its body hashes.
    pub fn new(store: Arc<dyn Store>, session: SessionId, salt: [u8; 16]) -> Self {
        Self {
            store,
            session,
            salt,
            cold: false,
        }
    }

    /// Creates a reader for a session that is not owned here. Returns `None` if there is no such session.
    pub(crate) async fn of(
        store: &Arc<dyn Store>,
        session: &SessionId,
    ) -> Result<Option<Self>, StoreError> {
        let query = SessionQuery {
            prefix: Some(session.to_string()),
            ..SessionQuery::default()
        };
        let found = store.sessions(&query).await?;
        let found = found.into_iter().find(|info| info.id == *session);
        Ok(found.map(|info| Self::new(store.clone(), info.id, info.salt)))
    }

    /// Returns the ledger as of a line; the session's head gives the whole ledger. Rows after that line are not read.
    pub async fn ledger(&self, head: Line) -> Result<(Ledger, Since), StoreError> {
        let (mut ledger, mut since) = self.ledger_checkpoint(head).await?;
        let mut hashes: BTreeMap<Line, Hash> = BTreeMap::new();
        let mut from = ledger.line.next();
        while from <= head {
            let rows = self.store.rows(&self.session, from, head, 512).await?;
            let Some(last) = rows.last() else { break };
            from = last.n.next();
            for row in rows {
                let (_, prev, _) = self.peek(&row)?;
                let prev_hash = match (hashes.get(&prev), prev) {
                    (Some(hash), _) => *hash,
                    (None, Line::NONE) => [0; 32],
                    (None, prev) => self.stored_hash(prev).await?,
                };
                let (line, hash) = self.verify(&row, &prev_hash)?;
                hashes.insert(line.n, hash);
                since.wrote(row.bytes.len());
                ledger.fold(&line, &hash);
            }
        }
        if ledger.line != head {
            return Err(self.corrupt(head, "it is missing, or comes before what is known"));
        }
        Ok((ledger, since))
    }

    /// Returns the last line before a line, on whichever branch; [`Line::NONE`] if it is the first one. An owner leaves a gap in the
    /// numbers.
    pub(crate) async fn before(&self, line: Line) -> Result<Line, StoreError> {
        let (mut upto, mut wide) = (line.0.saturating_sub(1), 1);
        while upto > 0 {
            let from = upto.saturating_sub(wide - 1).max(1);
            let rows = self
                .store
                .rows(&self.session, Line(from), Line(upto), wide as usize)
                .await?;
            if let Some(last) = rows.last() {
                return Ok(last.n);
            }
            (upto, wide) = (from - 1, Line::EPOCH_STEP);
        }
        Ok(Line::NONE)
    }

    async fn ledger_checkpoint(&self, head: Line) -> Result<(Ledger, Since), StoreError> {
        let mut upto = head;
        while !self.cold
            && let Some(found) = self
                .store
                .checkpoint(&self.session, CheckpointOf::Ledger, upto)
                .await?
        {
            let ledger = Ledger::decode(&found.bytes, &self.salt).filter(|l| l.line == found.at);
            if let Some(ledger) = ledger
                && self.stored_hash(ledger.line).await.ok() == Some(ledger.hash())
            {
                let since = Since {
                    size: found.bytes.len() as u64,
                    ..Since::default()
                };
                return Ok((ledger, since));
            }
            if found.at.0 <= 1 {
                break;
            }
            upto = Line(found.at.0 - 1);
        }
        Ok((Ledger::default(), Since::default()))
    }

    /// Returns the snapshot as of a line of any branch. `Line::NONE` gives the empty snapshot.
    pub async fn snapshot(&self, at: Line) -> Result<Loaded, StoreError> {
        let mut rows = Rows::new(self);
        let mut path: Vec<Row> = Vec::new();
        let mut cursor = at;
        let mut branch = None;
        let mut checkpoint: Option<(Snapshot, Line, Hash, u64)> = None;
        let (mut snapshot, mut hash, mut since) = loop {
            if !cursor.is_some() {
                break (Snapshot::empty(), [0; 32], Since::default());
            }
            let row = rows.get(cursor).await?;
            let (_, prev, of) = self.peek(&row)?;
            if branch != Some(of) {
                branch = Some(of);
                checkpoint = self.branch_checkpoint(of, cursor).await?;
            }
            if let Some((snapshot, at, hash, size)) = checkpoint.take_if(|c| c.1 == cursor) {
                if codec::stored_hash(&row.bytes) == Some(hash) {
                    let since = Since {
                        size,
                        ..Since::default()
                    };
                    break (snapshot, hash, since);
                }
                checkpoint = self.branch_checkpoint(of, Line(at.0 - 1)).await?;
            }
            if prev >= cursor {
                return Err(self.corrupt(
                    cursor,
                    "the line that it names as the one before it is not before it",
                ));
            }
            path.push(row);
            cursor = prev;
        };
        let mut lines = Vec::with_capacity(path.len());
        for row in path.into_iter().rev() {
            let (line, own) = self.verify(&row, &hash)?;
            since.wrote(row.bytes.len());
            snapshot = fold(snapshot, &line);
            hash = own;
            lines.push(Arc::new(line));
        }
        Ok(Loaded {
            snapshot,
            at,
            hash,
            since,
            lines,
        })
    }

    async fn branch_checkpoint(
        &self,
        branch: Id,
        at: Line,
    ) -> Result<Option<(Snapshot, Line, Hash, u64)>, StoreError> {
        let mut upto = at;
        let of = CheckpointOf::Branch(branch);
        while !self.cold
            && let Some(found) = self.store.checkpoint(&self.session, of, upto).await?
        {
            let decoded = checkpoint::decode_snapshot(&found.bytes, &self.salt);
            if let Some((snapshot, at, hash)) = decoded
                && at == found.at
                && snapshot.branch == branch
            {
                return Ok(Some((snapshot, at, hash, found.bytes.len() as u64)));
            }
            if found.at.0 <= 1 {
                break;
            }
            upto = Line(found.at.0 - 1);
        }
        Ok(None)
    }

    /// Decodes a row and checks its hash.
    pub(crate) async fn checked(
        &self,
        row: &Row,
        hashes: &mut Hashes,
    ) -> Result<LogLine, StoreError> {
        let (_, prev, _) = self.peek(row)?;
        let known = hashes.known.get(&prev).copied();
        let before = match known {
            Some(hash) => hash,
            None if !prev.is_some() => [0; 32],
            None => self.stored_hash(prev).await?,
        };
        self.check(row, (prev, before), hashes)
    }

    /// Decodes a row and checks its hash, reading synchronously in the calling thread.
    pub(crate) fn checked_now(
        &self,
        row: &Row,
        hashes: &mut Hashes,
    ) -> Result<LogLine, StoreError> {
        let (_, prev, _) = self.peek(row)?;
        let known = hashes.known.get(&prev).copied();
        let before = match known {
            Some(hash) => hash,
            None if !prev.is_some() => [0; 32],
            None => {
                let before = self.store.row_now(&self.session, prev)?;
                self.hash_in(prev, before.as_ref())?
            }
        };
        self.check(row, (prev, before), hashes)
    }

    fn check(
        &self,
        row: &Row,
        before: (Line, Hash),
        hashes: &mut Hashes,
    ) -> Result<LogLine, StoreError> {
        let (line, hash) = self.verify(row, &before.1)?;
        if before.0.is_some() {
            hashes.put(before.0, before.1);
        }
        hashes.put(line.n, hash);
        Ok(line)
    }

    async fn row(&self, n: Line) -> Result<Row, StoreError> {
        let row = self.store.row(&self.session, n).await?;
        row.ok_or_else(|| self.corrupt(n, "it is missing"))
    }

    /// Returns the hash that a row carries. It is not checked here: if it is wrong, verifying the next row fails.
    pub(crate) async fn stored_hash(&self, n: Line) -> Result<Hash, StoreError> {
        let row = self.row(n).await?;
        self.hash_in(n, Some(&row))
    }

    fn hash_in(&self, n: Line, row: Option<&Row>) -> Result<Hash, StoreError> {
        let row = row.ok_or_else(|| self.corrupt(n, "it is missing"))?;
        codec::stored_hash(&row.bytes).ok_or_else(|| self.corrupt(n, CodecError::Truncated))
    }

    fn peek(&self, row: &Row) -> Result<(Line, Line, Id), StoreError> {
        let place = codec::peek(&row.bytes).map_err(|e| self.refused(row.n, &e))?;
        if place.0 == row.n {
            Ok(place)
        } else {
            Err(self.corrupt(row.n, format_args!("line {} is in its place", place.0)))
        }
    }

    fn verify(&self, row: &Row, prev: &Hash) -> Result<(LogLine, Hash), StoreError> {
        let (line, hash) =
            codec::verify(&row.bytes, prev, &self.salt).map_err(|e| self.refused(row.n, &e))?;
        if line.n == row.n {
            Ok((line, hash))
        } else {
            Err(self.corrupt(row.n, format_args!("line {} is in its place", line.n)))
        }
    }

    pub(crate) fn corrupt(&self, n: Line, what: impl std::fmt::Display) -> StoreError {
        StoreError::Corrupt {
            place: format!("session `{}` line {n}", self.session),
            what: what.to_string(),
        }
    }

    /// Lines of a newer program are not reported as damaged, so that nobody restores a backup because of them.
    fn refused(&self, n: Line, why: &CodecError) -> StoreError {
        if why.is_newer() {
            return StoreError::Newer {
                place: format!("session `{}` line {n}", self.session),
                what: why.to_string(),
            };
        }
        self.corrupt(n, why)
    }

    /// Returns the same reader without checkpoints: everything is folded from the rows.
    #[must_use]
    pub fn cold(&self) -> Self {
        Self {
            cold: true,
            ..self.clone()
        }
    }

    /// Compares the newest checkpoint of the ledger and of each branch with the fold of the rows. Returns the lines of those that
    /// differ. Checkpoints are a cache: dropping them is safe.
    pub async fn stale_checkpoints(&self) -> Result<Vec<Line>, StoreError> {
        let head = self.store.head(&self.session).await?;
        let cold = self.cold();
        let (ledger, _) = cold.ledger(head).await?;
        let mut stale = Vec::new();
        let (of, session) = (CheckpointOf::Ledger, &self.session);
        if let Some(found) = self.store.checkpoint(session, of, head).await? {
            let folded = cold.ledger(found.at).await?.0;
            if Ledger::decode(&found.bytes, &self.salt).as_ref() != Some(&folded) {
                stale.push(found.at);
            }
        }
        for (id, _) in ledger.branches() {
            let of = CheckpointOf::Branch(id);
            let Some(found) = self.store.checkpoint(session, of, head).await? else {
                continue;
            };
            let folded = cold.snapshot(found.at).await?;
            let known = checkpoint::decode_snapshot(&found.bytes, &self.salt);
            let fits = known.is_some_and(|(snapshot, at, hash)| {
                (at, hash) == (folded.at, folded.hash) && snapshot == folded.snapshot
            });
            if !fits {
                stale.push(found.at);
            }
        }
        Ok(stale)
    }

    /// Reads and verifies everything. Reports what is damaged, and which branches depend on it.
    pub async fn inspect(&self) -> Result<Report, StoreError> {
        let head = self.store.head(&self.session).await?;
        let mut report = Report::default();
        let mut known: BTreeMap<Line, Place> = BTreeMap::new();
        let mut broken: BTreeMap<Line, Found> = BTreeMap::new();
        let mut last_of: BTreeMap<Id, Line> = BTreeMap::new();
        let (mut from, mut named) = (Line(1), Named::default());
        while from <= head {
            let rows = self.store.rows(&self.session, from, head, 512).await?;
            let Some(last) = rows.last() else { break };
            from = last.n.next();
            for row in rows {
                report.lines += 1;
                match self
                    .inspect_row(&row, &mut known, &mut broken, &mut report)
                    .await?
                {
                    Some(line) => {
                        named.note(&line);
                        let before = last_of.insert(line.branch, line.n);
                        if let Some(before) = before.filter(|before| *before > line.prev) {
                            damage(&mut broken, line.n, passed_over(&line, before));
                        }
                    }
                    None => named.pass(row.n),
                }
            }
        }
        let is_there = |line: Line| known.contains_key(&line) || broken.contains_key(&line);
        for (line, what) in named.missing(is_there) {
            damage(&mut broken, line, what);
        }
        report.affected = affected(&known, &broken);
        for (line, found) in broken {
            match found {
                Found::Damaged(what) => report.damaged.push(Damage { line, what }),
                Found::Newer => report.newer.push(line),
            }
        }
        Ok(report)
    }

    async fn inspect_row(
        &self,
        row: &Row,
        known: &mut BTreeMap<Line, Place>,
        broken: &mut BTreeMap<Line, Found>,
        report: &mut Report,
    ) -> Result<Option<LogLine>, StoreError> {
        let (n, prev, branch) = match self.peek(row) {
            Ok(place) => place,
            Err(e) => {
                broken.entry(row.n).or_insert_with(|| Found::of(e));
                return Ok(None);
            }
        };
        let parent = known.get(&prev);
        let prev_hash = parent.map_or([0; 32], |p| p.hash);
        let hash = codec::stored_hash(&row.bytes).unwrap_or_default();
        known.insert(n, Place { prev, branch, hash });
        if prev.is_some() && !known.contains_key(&prev) {
            damage(broken, prev, "it is missing or cannot be read".to_owned());
            return Ok(None);
        }
        match self.verify(row, &prev_hash) {
            Ok((line, _)) => {
                for text in &line.bodies {
                    match text {
                        Text::Here(_) | Text::Parts(_) => {}
                        Text::Erased { .. } => report.erased += 1,
                        Text::Blob { hash, .. } => match self.store.blob(hash).await {
                            Ok(Some(_)) => {}
                            Ok(None) => {
                                damage(broken, n, "a text that it names is missing".to_owned());
                            }
                            Err(StoreError::Corrupt { what, .. }) => damage(broken, n, what),
                            Err(e) => return Err(e),
                        },
                    }
                }
                Ok(Some(line))
            }
            // A line after a broken line cannot be checked. It is affected, not damaged.
            Err(_) if broken.contains_key(&prev) => Ok(None),
            Err(e) => {
                broken.entry(n).or_insert_with(|| Found::of(e));
                Ok(None)
            }
        }
    }
}

/// Describes a line that does not continue the line before on its branch: its owner did not know that line.
fn passed_over(line: &LogLine, before: Line) -> String {
    let prev = line.prev;
    format!(
        "it continues line {prev}, although line {before} is the one before on its branch: two owners wrote"
    )
}

fn damage(broken: &mut BTreeMap<Line, Found>, n: Line, what: String) {
    broken.entry(n).or_insert(Found::Damaged(what));
}

/// Reasons for which a line cannot be trusted.
enum Found {
    Damaged(String),
    Newer,
}

impl Found {
    fn of(e: StoreError) -> Self {
        match e {
            StoreError::Corrupt { what, .. } => Self::Damaged(what),
            StoreError::Newer { .. } => Self::Newer,
            other => Self::Damaged(other.to_string()),
        }
    }
}

struct Place {
    prev: Line,
    branch: Id,
    hash: Hash,
}

/// Returns the branches whose path contains a broken line, each with the first line that cannot be trusted.
fn affected(known: &BTreeMap<Line, Place>, broken: &BTreeMap<Line, Found>) -> Vec<(Id, Line)> {
    let mut first: BTreeMap<Line, Line> = broken.keys().map(|n| (*n, *n)).collect();
    let mut branches: BTreeMap<Id, Line> = BTreeMap::new();
    for (n, place) in known {
        let from = first.get(n).or_else(|| first.get(&place.prev)).copied();
        if let Some(from) = from {
            first.insert(*n, from);
            branches.entry(place.branch).or_insert(from);
        }
    }
    branches.into_iter().collect()
}

/// Result of [`Load::inspect`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of lines that were read.
    pub lines: u64,
    /// Number of erased texts. They do not count as damage.
    pub erased: u64,
    /// Lines that do not verify, or are missing.
    pub damaged: Vec<Damage>,
    /// Lines of a newer version of this program. They are not damaged.
    pub newer: Vec<Line>,
    /// Branches that cannot be loaded, each with the first line that is affected. All others are not affected.
    pub affected: Vec<(Id, Line)>,
}

/// A line that does not verify or is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Number of the line.
    pub line: Line,
    /// Description of the damage.
    pub what: String,
}

/// Rows on a path, read backwards. Rows that are stored together are read in one request.
struct Rows<'a> {
    load: &'a Load,
    piece: BTreeMap<Line, Row>,
    used: usize,
    span: u64,
}

impl<'a> Rows<'a> {
    fn new(load: &'a Load) -> Self {
        Self {
            load,
            piece: BTreeMap::new(),
            used: 0,
            span: 64,
        }
    }

    async fn get(&mut self, n: Line) -> Result<Row, StoreError> {
        if let Some(row) = self.piece.remove(&n) {
            self.used += 1;
            return Ok(row);
        }
        // If rows of other branches are between these, most rows of a piece are not needed.
        if self.used < (self.piece.len() + self.used) / 8 {
            self.span = 1;
        }
        self.used = 0;
        let from = Line(n.0.saturating_sub(self.span - 1).max(1));
        let span = usize::try_from(self.span).unwrap_or(1);
        let rows = self.load.store.rows(&self.load.session, from, n, span);
        self.piece = rows.await?.into_iter().map(|r| (r.n, r)).collect();
        self.piece
            .remove(&n)
            .inspect(|_| self.used += 1)
            .ok_or_else(|| self.load.corrupt(n, "it is missing"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Hashes, Line};

    #[test]
    fn the_last_hashes_are_known_although_newer_lines_were_read_before() {
        let mut hashes = Hashes::default();
        let newer = 1_000..1_300;
        newer.for_each(|n| hashes.put(Line(n), [1; 32]));
        for n in 1..100 {
            hashes.put(Line(n), [2; 32]);
            assert_eq!(hashes.known.get(&Line(n)), Some(&[2; 32]));
        }
        assert_eq!(hashes.known.len(), Hashes::KEPT);
    }
}
