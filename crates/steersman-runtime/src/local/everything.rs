//! Drives all sessions of a store: takes the sessions that have something to do, drives each until it settles, and releases it.

use crate::engine::erase::AT_ONCE;
use crate::engine::schedule::{Begun, Watch};
use crate::engine::{Engine, EngineError, Happened};
use crate::load::{Hashes, Load};
use crate::session::{Session, Settled, Standing};
use crate::store::{Claim, Left, Room, SessionId, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::stored::ids::{Line, Name, Time};
use tokio_util::sync::CancellationToken;

/// Interval at which settled sessions are looked for, in milliseconds.
const LOOK: u64 = 50;
/// Longest time between two takes, in milliseconds. A hint of the store causes a take earlier, but hints may be lost.
const TAKE: u64 = 500;
/// Maximum number of sessions that are taken in one step.
const ROOM: usize = 64;
/// Maximum number of sessions that this process keeps parked for one place that does not answer: those that have waited longest.
/// The others stay in the store until one of these continues.
const WAITING: usize = 64;

struct All<'a> {
    engine: &'a Engine,
    told: &'a (dyn Fn(Happened) + Send + Sync),
    driven: BTreeMap<SessionId, Session>,
    /// Sessions that wait for a place that does not answer: kept after they settled, or taken because there was room for their
    /// place.
    waiting: BTreeMap<SessionId, Waits>,
    /// The last reason why each session could not be driven. An equal reason is not reported again.
    failed: BTreeMap<SessionId, String>,
    /// Damage that was reported.
    damaged: BTreeSet<String>,
    /// The earliest time at which a session will have something to do, as far as the store knows.
    next: Option<Time>,
    schedules: Watch,
}

/// A session that waits for a place.
struct Waits {
    place: Name,
    /// True if it was reported that the session waits.
    is_told: bool,
}

/// Takes and drives every session that has something to do, until `stop`. A settled session is released: a timer, an event or a
/// message brings it back. A session that cannot be driven is reported and does not delay the others.
pub(crate) async fn run_all(
    engine: &Engine,
    stop: CancellationToken,
    told: &(dyn Fn(Happened) + Send + Sync),
) -> Result<(), EngineError> {
    let mut all = All {
        engine,
        told,
        driven: BTreeMap::new(),
        waiting: BTreeMap::new(),
        failed: BTreeMap::new(),
        damaged: BTreeSet::new(),
        next: None,
        schedules: Watch::default(),
    };
    for what in engine.store().damaged_lists().await? {
        all.damage(what);
    }
    engine.worker().await?;
    let clock = engine.clock();
    let mut takes = clock.sleep(0);
    while !stop.is_cancelled() {
        // The task that carries the hints may have stopped with a session: start it again.
        engine.0.mail.is_carried(&engine.0);
        let soonest = all.next;
        let soonest = async {
            match soonest {
                Some(next) => clock.sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = engine.0.mail.looks.notified() => {}
            () = soonest => {}
            () = &mut takes => {}
            () = clock.sleep(LOOK) => {
                all.let_go().await;
                continue;
            }
        }
        // Only what was at rest before the look can have given nobody anything to do since.
        let rested = all.rests();
        let due = all.schedules().await?;
        let taken = all.take().await;
        all.next = all.next.into_iter().chain(due).min();
        let is_idle = rested && matches!(taken, Ok(0));
        all.survives(taken)?;
        if is_idle {
            told(Happened::Idle);
        }
        all.let_go().await;
        takes = clock.sleep(TAKE);
    }
    let driven = std::mem::take(&mut all.driven);
    futures::future::join_all(driven.into_values().map(Session::stop)).await;
    Ok(())
}

impl All<'_> {
    /// Reports damage once.
    fn damage(&mut self, what: String) {
        if self.damaged.insert(what.clone()) {
            (self.told)(Happened::Damaged(what));
        }
    }

    /// Reports damage of the lists by which sessions are found, so that the other sessions are still driven. Returns other
    /// errors.
    fn survives(&mut self, looked: Result<usize, EngineError>) -> Result<(), EngineError> {
        match looked {
            Err(EngineError::Store(error @ StoreError::Corrupt { .. })) => {
                self.damage(error.to_string());
                Ok(())
            }
            looked => looked.map(|_| ()),
        }
    }

    /// Returns true if no driven session is at work: those that are kept only wait for a place.
    fn rests(&self) -> bool {
        self.driven.values().all(|session| {
            matches!(&*session.standing.borrow(), Standing::Settled(_, outside) if outside.running == 0)
        })
    }

    /// Begins the sessions of schedules that are due. Returns the time at which the next one may be due.
    async fn schedules(&mut self) -> Result<Option<Time>, EngineError> {
        let told = self.told;
        let tell = |id, begun| match begun {
            Ok(Begun { session, occasion }) => told(Happened::Scheduled(id, session, occasion)),
            Err(error) => told(Happened::Unscheduled(id, Arc::new(error))),
        };
        self.schedules.look(self.engine, tell).await
    }

    /// Takes all sessions that have something to do. Returns their number.
    async fn take(&mut self) -> Result<usize, EngineError> {
        let (mut count, mut erased) = (0, Vec::new());
        let taken = self.take_into(&mut count, &mut erased).await;
        if !erased.is_empty() {
            (self.told)(Happened::Erased(erased));
        }
        taken.map(|()| count)
    }

    /// Takes sessions, and counts those that have something to do. Those whose time is over are erased; a look that erased many ends.
    async fn take_into(
        &mut self,
        count: &mut usize,
        erased: &mut Vec<SessionId>,
    ) -> Result<(), EngineError> {
        let mut expired = 0;
        loop {
            let _taking = self.engine.0.taking.lock().await;
            let (store, worker) = (self.engine.store(), self.engine.worker().await?);
            let taken = store.take(worker, self.room()).await?;
            self.next = taken.next;
            for (id, error) in taken.refused {
                self.fails(&id, Arc::new(error.into()));
            }
            let is_all = taken.claims.len() < ROOM;
            for claim in taken.claims {
                let id = claim.session.clone();
                let claim = match self.engine.expires(claim).await {
                    Ok(Err(claim)) => claim,
                    Ok(Ok(had_texts)) => {
                        *count += 1;
                        expired += 1;
                        erased.extend(had_texts.then_some(id));
                        continue;
                    }
                    Err(error @ EngineError::Store(StoreError::Io { .. })) => return Err(error),
                    Err(error) => {
                        self.fails(&id, Arc::new(error));
                        continue;
                    }
                };
                if is_left_rerun(self.engine, &claim).await {
                    self.leaves(claim).await?;
                    continue;
                }
                *count += 1;
                let place = claim.before.place.clone();
                match self.engine.drive(claim).await {
                    Ok(session) => {
                        (self.told)(Happened::Taken(session.clone()));
                        let is_told = false;
                        let waits = place.map(|place| Waits { place, is_told });
                        self.waiting.extend(waits.map(|waits| (id.clone(), waits)));
                        self.driven.insert(id, session);
                    }
                    Err(error @ EngineError::Store(StoreError::Io { .. })) => return Err(error),
                    Err(error) => self.fails(&id, Arc::new(error)),
                }
            }
            if is_all || expired >= AT_ONCE {
                return Ok(());
            }
        }
    }

    /// Releases a rerun that is not to be driven. A message to it still is a reason to drive it.
    async fn leaves(&self, claim: Claim) -> Result<(), EngineError> {
        let (id, mail) = (claim.session.clone(), claim.mail);
        // One that cannot be read is not erased by itself.
        let wants = self.engine.expires_at(&id).await.ok().flatten();
        let left = Left {
            mail,
            wants,
            ..Left::default()
        };
        self.engine.store().release(claim, left).await?;
        (self.told)(Happened::Left(id));
        Ok(())
    }

    fn room(&self) -> Room {
        let mut waiting: BTreeMap<Name, usize> = BTreeMap::new();
        for waits in self.waiting.values() {
            *waiting.entry(waits.place.clone()).or_default() += 1;
        }
        let engine = Arc::downgrade(&self.engine.0);
        Room {
            now: self.engine.clock().now(),
            sessions: ROOM,
            each: WAITING,
            waiting,
            can: Arc::new(move |needs| {
                let engine = engine.upgrade().map(|inner| Engine(inner, None));
                engine.is_some_and(|engine| engine.can(needs))
            }),
        }
    }

    /// Reports that a session cannot be driven, unless the same was reported before.
    fn fails(&mut self, id: &SessionId, why: Arc<EngineError>) {
        let said = why.to_string();
        if self.failed.insert(id.clone(), said.clone()).as_ref() != Some(&said) {
            (self.told)(Happened::Failed(id.clone(), why));
        }
    }

    /// Returns true if another session may wait for this place here.
    fn has_room(&self, place: &Name) -> bool {
        let waiting = self.waiting.values();
        waiting.filter(|waits| waits.place == *place).count() < WAITING
    }

    /// Returns true if a settled session is kept, because it continues as soon as a place answers, or because an attempt of it
    /// still runs. A session that waits for a place is reported once.
    fn keeps(&mut self, id: &SessionId, session: &Session, standing: &Standing) -> bool {
        let Standing::Settled(settled, outside) = standing else {
            self.waiting.remove(id);
            return false;
        };
        if outside.running > 0 {
            // Something still runs, such as an attempt on a superseded branch that must not be repeated and so is not cut.
            // Releasing the session would wait for its end, and the other sessions would wait too.
            return true;
        }
        let Some(place) = &outside.place else {
            self.waiting.remove(id);
            return false;
        };
        let before = self.waiting.remove(id);
        let is_told = before.is_some_and(|waits| waits.is_told && waits.place == *place);
        if !self.has_room(place) || **settled == Settled::Paused {
            return false;
        }
        if !is_told {
            (self.told)(Happened::Settled(session.clone(), settled.clone()));
        }
        let place = place.clone();
        let is_told = true;
        self.waiting.insert(id.clone(), Waits { place, is_told });
        true
    }

    /// Releases sessions that have settled.
    async fn let_go(&mut self) {
        let rest: Vec<SessionId> = self
            .driven
            .iter()
            .filter(|(_, session)| {
                !matches!(
                    *session.standing.borrow(),
                    Standing::Busy | Standing::Outside(_) | Standing::Stands { .. }
                )
            })
            .map(|(id, _)| id.clone())
            .collect();
        let mut stops = Vec::new();
        for id in rest {
            let Some(session) = self.driven.remove(&id) else {
                continue;
            };
            let standing = session.standing.borrow().clone();
            if self.keeps(&id, &session, &standing) {
                self.driven.insert(id, session);
                continue;
            }
            match standing {
                Standing::Gone(why) => self.fails(&id, why),
                Standing::Settled(settled, _) => {
                    self.failed.remove(&id);
                    (self.told)(Happened::Settled(session.clone(), settled));
                    stops.push(session.stop());
                }
                Standing::Busy | Standing::Outside(_) | Standing::Stands { .. } => {
                    self.driven.insert(id, session);
                }
            }
        }
        // Their last lines go to the disk together.
        futures::future::join_all(stops).await;
    }
}

/// Returns true for a rerun that is not live and that nobody has sent a message since it was released: its process is gone, and so is
/// the recording that it followed ([`Ledger::is_dry_rerun`](crate::ledger::Ledger::is_dry_rerun)). Its first line says so. If that line
/// cannot be read, driving the session reports it.
async fn is_left_rerun(engine: &Engine, claim: &Claim) -> bool {
    if claim.mail > claim.before.mail {
        return false;
    }
    let store = engine.store();
    let rows = store.rows(&claim.session, Line(1), claim.head, 1).await;
    let Some(row) = rows.ok().and_then(|rows| rows.into_iter().next()) else {
        return false;
    };
    let load = Load::new(store.clone(), claim.session.clone(), claim.salt);
    let line = load.checked(&row, &mut Hashes::default()).await.ok();
    let commit = line.and_then(|line| line.commit);
    let opening = commit.and_then(|commit| commit.opening);
    opening.is_some_and(|opening| opening.dry)
}
