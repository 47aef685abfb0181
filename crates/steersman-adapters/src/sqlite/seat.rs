//! Seats: who owns a session, what the last owner left, and when a worker should own it again.
//!
//! The lock of the owner is on a file ([`owner`]), so a dead process holds none. While a session is claimed, its row says that
//! it is wanted now. A take skips it as long as its owner holds the lock. So a session of a dead process is taken like any
//! other.

use super::append::{find, head};
use super::lists::Trust;
use super::owner::{self, OwnerLock};
use super::writer::{Said, State};
use super::{Inner, MAX_SESSIONS, SqliteStore, open};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use steersman_machine::stored::ids::{Line, Name, Time};
use steersman_runtime::store::{
    Claim, IMMEDIATELY, Left, Needs, NewWorker, Room, Scope, SessionId, StoreAccepted, StoreError,
    Taken, Trouble, Wake, Worker, first_line,
};

/// Maximum number of seats of owners that are looked at in one take, to find those that died.
const OWNED: i64 = 1_024;

/// Makes the seat of a new session.
pub(super) fn make(conn: &Connection, no: i64, needs: &Needs) -> rusqlite::Result<()> {
    let need = need(conn, needs)?;
    conn.prepare_cached(
        "INSERT INTO seat (no, epoch, first, mail, mail_seen, need) VALUES (?1, 0, 0, 0, 0, ?2)",
    )?
    .execute([no, need])
    .map(drop)
}

/// Returns the number under which needs are kept.
fn need(conn: &Connection, needs: &Needs) -> rusqlite::Result<i64> {
    let natives = needs.natives.iter().map(|native| &**native);
    let natives = natives.collect::<serde_json::Value>().to_string();
    conn.prepare_cached(
        "INSERT INTO need (revision, natives) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    )?
    .execute(params![needs.revision, natives])?;
    conn.prepare_cached("SELECT no FROM need WHERE revision = ?1 AND natives = ?2")?
        .query_row(params![needs.revision, natives], |row| row.get(0))
}

/// Notes what a program needs to drive a session.
pub(super) fn needs(conn: &Connection, no: i64, needs: &Needs) -> rusqlite::Result<()> {
    let need = need(conn, needs)?;
    conn.prepare_cached("UPDATE seat SET need = ?2 WHERE no = ?1 AND need <> ?2")?
        .execute([no, need])
        .map(drop)
}

/// Counts a message that was delivered. It makes the session wanted.
pub(super) fn mailed(conn: &Connection, no: i64, at: Time) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "UPDATE seat SET mail = mail + 1, wants = min(coalesce(wants, ?2), ?2) WHERE no = ?1",
    )?
    .execute([no, at.0])
    .map(drop)
}

/// Returns what the last owner left, as far as it can be read.
pub(super) fn left(conn: &Connection, no: i64) -> rusqlite::Result<Left> {
    let left = conn
        .prepare_cached("SELECT mail_seen, wants, place, trouble FROM seat WHERE no = ?1")?
        .query_row([no], |row| Ok(left_of(row, 0)))
        .optional()?;
    Ok(left.unwrap_or_default())
}

fn left_of(row: &Row<'_>, at: usize) -> Left {
    let text = |column: usize| row.get::<_, Option<String>>(column).ok().flatten();
    let wants: Option<i64> = row.get(at + 1).ok().flatten();
    Left {
        mail: row.get::<_, i64>(at).unwrap_or_default() as u64,
        wants: wants.map(Time),
        place: text(at + 2).map(Name::from),
        trouble: text(at + 3).and_then(|text| trouble_of(&text)),
    }
}

fn trouble_of(text: &str) -> Option<Trouble> {
    let (times, why): (u32, String) = serde_json::from_str(text).ok()?;
    let why = why.into();
    Some(Trouble { times, why })
}

/// Claims a session. `lock` is its lock, which this process holds.
pub(super) fn claim(
    conn: &Connection,
    state: &mut State,
    session: SessionId,
    lock: OwnerLock,
    by: &Enrolled,
) -> Said<Claim> {
    let Some((no, salt)) = find(conn, &session)? else {
        return Ok(Err(StoreError::NoSession(session)));
    };
    if no >= MAX_SESSIONS {
        return Ok(Err(StoreError::TooLarge {
            what: "the store: its sessions".to_owned(),
            size: no as u64,
            max: MAX_SESSIONS as u64,
        }));
    }
    if let Some(moved) = moved(conn, no, &session)? {
        return Ok(Err(moved));
    }
    let corrupt = || StoreError::Corrupt {
        place: format!("session `{session}`"),
        what: "the row of its newest owner has numbers that are not possible".to_owned(),
    };
    let seat = conn
        .prepare_cached(
            "SELECT epoch, first, mail, worker, mail_seen, wants, place, trouble FROM seat WHERE no = ?1",
        )?
        .query_row([no], |row| {
            let numbers = [row.get(0), row.get(1), row.get(2)];
            let worker: Option<i64> = row.get(3).ok().flatten();
            Ok((numbers, worker, left_of(row, 4)))
        })
        .optional()?;
    let Some(([Ok(epoch), Ok(first), Ok(mail)], worker, before)) = seat else {
        return Ok(Err(corrupt()));
    };
    let is_line = u64::try_from(first).is_ok_and(|n: u64| n <= Line::MAX.0);
    if !is_line || !(0..i64::MAX).contains(&epoch) || mail < 0 {
        return Ok(Err(corrupt()));
    }
    let head = head(conn, no)?;
    let newest = (epoch > 0).then_some(Line(first as u64));
    let first = first_line(newest, head);
    // A session without a message is first claimed to copy lines into it. If the copy is cut short, no worker may continue with a
    // part of them, so the session is not wanted.
    let copies = epoch == 0 && mail == 0;
    let wants = (!copies).then_some(IMMEDIATELY.0);
    conn.prepare_cached(
        "UPDATE seat SET epoch = ?2, first = ?3, worker = ?4, wants = ?5, place = NULL WHERE no = ?1",
    )?
    .execute(params![no, epoch + 1, first.0 as i64, by.no, wants])?;
    if let Some(new) = &by.new {
        conn.prepare_cached(
            "INSERT INTO worker (no, name, address, build, revision) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
        )?
        .execute(params![by.no, &*new.name, new.address.as_deref(), &*new.build, new.revision])?;
    }
    if let Some(worker) = worker.filter(|worker| *worker != by.no) {
        forget(conn, worker)?;
    }
    state.claimed(no, head.0);
    let accepted = conn
        .prepare_cached("SELECT at, was FROM store_accepted WHERE no = ?1")?
        .query_row([no], |r| {
            Ok(StoreAccepted {
                at: Time(r.get(0)?),
                was: open::was_of(r.get(1)?),
            })
        })
        .optional()?;
    Ok(Ok(Claim {
        scope: scope(conn, no)?,
        session,
        number: no as u64,
        epoch: (epoch + 1) as u64,
        first,
        head,
        salt,
        mail: mail as u64,
        before,
        accepted,
        lock: Arc::new(lock),
    }))
}

fn scope(conn: &Connection, no: i64) -> rusqlite::Result<Scope> {
    conn.prepare_cached("SELECT tenant, subject FROM session WHERE no = ?1")?
        .query_row([no], |row| super::accounts::scope(row, 0))
}

/// Returns an error if the session was moved to another store.
pub(super) fn moved(
    conn: &Connection,
    no: i64,
    session: &SessionId,
) -> rusqlite::Result<Option<StoreError>> {
    let to: Option<String> = conn
        .prepare_cached("SELECT moved FROM session WHERE no = ?1")?
        .query_row([no], |row| row.get(0))?;
    Ok(to.map(|to| StoreError::Moved {
        session: session.clone(),
        to: to.into(),
    }))
}

/// Removes a worker that owns nothing any more.
fn forget(conn: &Connection, worker: i64) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "DELETE FROM worker WHERE no = ?1 AND NOT EXISTS (SELECT 1 FROM seat WHERE worker = ?1)",
    )?
    .execute([worker])
    .map(drop)
}

/// Ends a claim. Returns false if its epoch is over.
pub(super) fn release(conn: &Connection, claim: &Claim, left: &Left) -> Said<bool> {
    let trouble = left.trouble.as_ref();
    let trouble = trouble.map(|t| serde_json::json!([t.times, &*t.why]).to_string());
    let worker: Option<Option<i64>> = conn
        .prepare_cached("SELECT worker FROM seat WHERE no = ?1 AND epoch = ?2")?
        .query_row(params![claim.number as i64, claim.epoch as i64], |r| {
            r.get(0)
        })
        .optional()?;
    let Some(worker) = worker else {
        return Ok(Ok(false));
    };
    conn.prepare_cached(
        "UPDATE seat SET worker = NULL, mail_seen = ?2, place = ?3, trouble = ?4,
         wants = CASE WHEN mail > ?2 THEN ?5 ELSE ?6 END WHERE no = ?1",
    )?
    .execute(params![
        claim.number as i64,
        left.mail as i64,
        left.place.as_deref(),
        trouble,
        IMMEDIATELY.0,
        left.wants.map(|wants| wants.0)
    ])?;
    if let Some(worker) = worker {
        forget(conn, worker)?;
    }
    Ok(Ok(true))
}

/// A worker as this handle knows it; `new` is `None` if it was not enrolled here.
#[derive(Clone)]
pub(super) struct Enrolled {
    no: i64,
    new: Option<NewWorker>,
}

/// Workers that were enrolled with a handle, by number. A worker is in the store only while it owns something.
pub(super) type Workers = BTreeMap<u64, NewWorker>;

impl Inner {
    pub(super) fn enrolled(&self, by: &Worker) -> Enrolled {
        let workers = self
            .workers
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        Enrolled {
            no: by.no as i64,
            new: workers.get(&by.no).cloned(),
        }
    }
}

/// A session that may be taken.
struct Candidate {
    no: i64,
    id: SessionId,
    wants: Option<i64>,
}

/// Candidates, and seats or sessions that cannot be read.
#[derive(Default)]
struct Candidates {
    found: Vec<Candidate>,
    refused: Vec<(SessionId, StoreError)>,
    /// The soonest time after now at which a session without an owner is wanted.
    next: Option<i64>,
    /// Number of the last session with an owner that was looked at; 0 if there are no more.
    last: i64,
}

impl Candidates {
    /// Adds the seats that a query finds.
    fn query(
        &mut self,
        found: &mut rusqlite::CachedStatement<'_>,
        values: &[&dyn rusqlite::ToSql],
        trust: Trust,
    ) -> rusqlite::Result<()> {
        let mut rows = found.query(values)?;
        loop {
            match (rows.next(), trust) {
                (Ok(Some(row)), _) => self.add(row)?,
                // Seats on unreadable pages were already reported.
                (Ok(None), _) | (Err(_), Trust::Damaged) => return Ok(()),
                (Err(error), Trust::Whole) => return Err(error),
            }
        }
    }

    fn add(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let no: i64 = row.get(0)?;
        if let (Ok(id), Ok(wants)) = (row.get::<_, String>(1), row.get(2)) {
            let id = id.into();
            self.found.push(Candidate { no, id, wants });
            return Ok(());
        }
        let id: SessionId = format!("number {no}").into();
        let error = StoreError::Corrupt {
            place: format!("session {id}"),
            what: "its id or its seat cannot be read".to_owned(),
        };
        self.refused.push((id, error));
        Ok(())
    }
}

/// Returns the sessions that a worker may take.
fn candidates(
    conn: &Connection,
    room: &Room,
    trust: Trust,
    from: i64,
) -> rusqlite::Result<Candidates> {
    let mut all = Candidates::default();
    let (can, index) = (able(conn, room)?, trust.index());
    let can = can
        .iter()
        .map(i64::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    let seat = format!(
        "SELECT seat.no, id, wants FROM seat {index} JOIN session USING (no) WHERE need IN ({can}) AND moved IS NULL AND"
    );
    let seats = |query: &str| conn.prepare_cached(&format!("{seat} {query}"));
    let owned =
        "worker IS NOT NULL AND wants IS NOT NULL AND seat.no > ?1 ORDER BY seat.no LIMIT ?2";
    all.query(&mut seats(owned)?, &[&from, &OWNED], trust)?;
    if all.found.len() as i64 >= OWNED {
        all.last = all.found.last().map_or(0, |candidate| candidate.no);
    }
    let most = i64::try_from(room.sessions).unwrap_or(i64::MAX);
    let wanted = "worker IS NULL AND wants <= ?1 ORDER BY wants, seat.no LIMIT ?2";
    all.query(&mut seats(wanted)?, &[&room.now.0, &most], trust)?;
    for place in places(conn, index)? {
        let waits = room.waiting.get(&*place).copied().unwrap_or_default();
        let free = i64::try_from(room.each.saturating_sub(waits)).unwrap_or(i64::MAX);
        let waiting = "place = ?1 AND worker IS NULL AND (wants IS NULL OR wants > ?2) ORDER BY wants IS NULL, wants, seat.no LIMIT ?3";
        all.query(&mut seats(waiting)?, &[&place, &room.now.0, &free], trust)?;
    }
    all.next = soonest(conn, room.now, trust)?;
    if all.next.is_some() {
        // The clock that wrote a message may be ahead of this one. Few sessions have messages, so their inboxes are looked at.
        let mailed = "worker IS NULL AND wants > ?1 AND mail > mail_seen AND seat.no IN (SELECT no FROM inbox) ORDER BY wants, seat.no LIMIT ?2";
        all.query(&mut seats(mailed)?, &[&room.now.0, &most], trust)?;
    }
    Ok(all)
}

/// Returns the soonest time after now at which a session that nobody owns is wanted.
fn soonest(conn: &Connection, now: Time, trust: Trust) -> rusqlite::Result<Option<i64>> {
    let index = trust.index();
    let soonest =
        format!("SELECT min(wants) FROM seat {index} WHERE worker IS NULL AND wants > ?1");
    let found = conn
        .prepare_cached(&soonest)?
        .query_row([now.0], |row| row.get(0));
    match (found, trust) {
        (Err(_), Trust::Damaged) => Ok(None),
        (found, _) => found,
    }
}

/// Returns the numbers of needs that the worker satisfies.
fn able(conn: &Connection, room: &Room) -> rusqlite::Result<Vec<i64>> {
    let mut needs = conn.prepare_cached("SELECT no, revision, natives FROM need")?;
    let mut rows = needs.query([])?;
    let mut able = Vec::new();
    while let Some(row) = rows.next()? {
        let natives: Result<String, _> = row.get(2);
        let natives = natives
            .ok()
            .and_then(|text| serde_json::from_str::<Vec<String>>(&text).ok());
        let (Ok(revision), Some(natives)) = (row.get(1), natives) else {
            continue;
        };
        let natives = natives.into_iter().map(Name::from).collect();
        if (room.can)(&Needs { revision, natives }) {
            able.push(row.get(0)?);
        }
    }
    Ok(able)
}

/// Returns the places for which sessions wait.
fn places(conn: &Connection, index: &str) -> rusqlite::Result<Vec<String>> {
    conn.prepare_cached(&format!(
        // One index step for each place, regardless of the number of sessions that wait.
        "WITH RECURSIVE place (name) AS (
             SELECT min(place) FROM seat {index}
             UNION ALL SELECT (SELECT min(s.place) FROM seat s {index} WHERE s.place > p.name) FROM place p
             WHERE p.name IS NOT NULL
         ) SELECT name FROM place WHERE name IS NOT NULL",
    ))?
    .query_map([], |r| r.get(0))?
    .collect()
}

/// Locks candidates, in the order in which they are wanted, until `room` of them are locked. Also returns true if some were left.
fn locked(store: &Path, all: &mut Candidates, room: usize) -> (Vec<(SessionId, OwnerLock)>, bool) {
    all.found
        .sort_by_key(|c| (c.wants.unwrap_or(i64::MAX), c.no));
    let mut known = BTreeSet::new();
    let mut locked = Vec::new();
    for candidate in &all.found {
        if !known.insert(candidate.no) {
            continue;
        }
        if locked.len() == room {
            return (locked, true);
        }
        match owner::try_lock(store, &candidate.id) {
            Ok(lock) => locked.extend(lock.map(|lock| (candidate.id.clone(), lock))),
            Err(error) => all.refused.push((candidate.id.clone(), error)),
        }
    }
    (locked, false)
}

/// Returns true if a session that this process has locked may still be taken: another process may have driven and released it
/// since it was found.
fn may_be_taken(conn: &Connection, session: &str, now: Time) -> rusqlite::Result<bool> {
    conn.prepare_cached(
        "SELECT 1 FROM seat JOIN session USING (no)
         WHERE id = ?1 AND (wants <= ?2 OR worker IS NULL AND (place IS NOT NULL OR mail > mail_seen))",
    )?
    .exists(params![session, now.0])
}

impl SqliteStore {
    pub(super) async fn enrolls(&self, new: NewWorker) -> Result<Worker, StoreError> {
        let no = self
            .read(|conn| conn.query_row("SELECT random() >> 16 & 0xffffffffffff", [], |r| r.get(0)))
            .await?;
        let no = i64::unsigned_abs(no);
        let mut workers = self
            .inner
            .workers
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        workers.insert(no, new);
        Ok(Worker {
            no,
            ..Worker::nameless()
        })
    }

    pub(super) async fn takes(&self, by: &Worker, room: Room) -> Result<Taken, StoreError> {
        let (held, guard, trust) = (
            self.inner.held.clone(),
            self.inner.guard.clone(),
            self.trust(),
        );
        let (wanted, most, now) = (room.clone(), room.sessions, room.now);
        let inner = self.inner.clone();
        let found = self.inner.readers.read(move |conn| {
            guard.map_or(Ok(()), |guard| guard.still())?;
            let from = inner.owned_from.load(Ordering::Relaxed);
            let mut all = candidates(conn, &wanted, trust, from)
                .map_err(|e| super::error::sql(&inner.path, e))?;
            inner.owned_from.store(all.last, Ordering::Relaxed);
            let (locks, is_full) = locked(held.path(), &mut all, most);
            Ok((locks, is_full, all))
        });
        let found = found
            .await
            .unwrap_or_else(|| Err(Self::gone(&self.inner.path)));
        let (locks, is_full, all) = found?;
        let mut taken = Taken {
            refused: all.refused,
            next: all.next.map(Time).filter(|_| !is_full),
            ..Taken::default()
        };
        if locks.is_empty() {
            return Ok(taken);
        }
        let by = self.inner.enrolled(by);
        let ids: Vec<SessionId> = locks.iter().map(|(id, _)| id.clone()).collect();
        let claims = match self.claims(locks, now, &by).await {
            Err(StoreError::Corrupt { .. }) if ids.len() > 1 => {
                // A damaged seat must not keep the other sessions from being taken.
                let mut claims = Vec::new();
                for id in ids {
                    claims.extend(self.claims_one(id, now, &by).await?);
                }
                claims
            }
            Err(error @ StoreError::Corrupt { .. }) => {
                vec![Err((ids[0].clone(), error))]
            }
            claims => claims?,
        };
        for claim in claims {
            match claim {
                Ok(claim) => taken.claims.push(claim),
                Err(refused) => taken.refused.push(refused),
            }
        }
        let trust = self.trust();
        let next = self.read(move |conn| soonest(conn, now, trust)).await?;
        taken.next = next.map(Time).filter(|_| !is_full);
        Ok(taken)
    }

    /// Claims sessions in one transaction.
    async fn claims(
        &self,
        locks: Vec<(SessionId, OwnerLock)>,
        now: Time,
        by: &Enrolled,
    ) -> Result<Vec<Claimed>, StoreError> {
        let by = by.clone();
        let claims = self.write(move |conn, state| {
            let mut claims = Vec::new();
            for (id, lock) in locks {
                if may_be_taken(conn, &id, now)? {
                    let claimed = claim(conn, state, id.clone(), lock, &by)?;
                    claims.push(claimed.map_err(|error| (id, error)));
                }
            }
            Ok(Ok(claims))
        });
        claims.await
    }

    /// Claims a session in a transaction of its own; nothing if another process was faster.
    async fn claims_one(
        &self,
        id: SessionId,
        now: Time,
        by: &Enrolled,
    ) -> Result<Vec<Claimed>, StoreError> {
        let (held, name) = (self.inner.held.clone(), id.clone());
        let lock = self
            .inner
            .readers
            .read(move |_| owner::try_lock(held.path(), &name));
        let lock = lock
            .await
            .unwrap_or_else(|| Err(Self::gone(&self.inner.path)))?;
        let Some(lock) = lock else {
            return Ok(Vec::new());
        };
        match self.claims(vec![(id.clone(), lock)], now, by).await {
            Err(error @ StoreError::Corrupt { .. }) => Ok(vec![Err((id, error))]),
            claims => claims,
        }
    }
}

/// A session that was claimed, or the reason why it was not.
type Claimed = Result<Claim, (SessionId, StoreError)>;

/// Returns hints about messages that were delivered after the message with number `after`, and the newest number.
pub(super) fn delivered(
    conn: &Connection,
    by: u64,
    after: i64,
) -> rusqlite::Result<(i64, BTreeSet<Wake>)> {
    let mut wakes = BTreeSet::new();
    let newest: Option<i64> = conn
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'inbox'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let newest = newest.unwrap_or_default();
    if newest == after {
        return Ok((newest, wakes));
    }
    let mut new = conn.prepare_cached(
        "SELECT DISTINCT session.id, worker FROM inbox JOIN seat USING (no) JOIN session USING (no) WHERE seq > ?1",
    )?;
    let mut rows = new.query([after])?;
    if after < 0 {
        wakes.insert(Wake::Look);
    }
    while let Some(row) = rows.next()? {
        wakes.insert(match row.get::<_, Option<i64>>(1) {
            Ok(Some(owner)) if owner == by as i64 => Wake::Mail(row.get::<_, String>(0)?.into()),
            _ => Wake::Look,
        });
    }
    Ok((newest, wakes))
}
