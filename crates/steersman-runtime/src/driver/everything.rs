//! Driving all sessions of a store: a session that has something to do is claimed, driven until it settles, and released.

use crate::engine::{Engine, EngineError, Happened};
use crate::session::{Session, Settled, Standing};
use crate::store::{SessionId, SessionQuery, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Name, Time};
use tokio_util::sync::CancellationToken;

/// Interval between two looks at all sessions of a store, in milliseconds.
const LOOK: u64 = 50;
/// Number of looks between two searches for sessions whose process died.
const DEAD: u32 = 20;
/// Most timers that are read together.
const TIMERS: usize = 1_000;
/// Most sessions that are kept here, parked, for one place that does not answer: those that wait longest. The others stay in the
/// store until one of these goes on.
const WAITING: usize = 64;

struct All<'a> {
    engine: &'a Engine,
    told: &'a (dyn Fn(Happened) + Send + Sync),
    driven: BTreeMap<SessionId, Session>,
    /// Inbox messages that were there when their session was taken. They are no reason to take it again.
    seen: BTreeMap<SessionId, Vec<Name>>,
    /// Timers for which a session was taken and that are still set, because the session is paused or held.
    tried: BTreeSet<(SessionId, Id, Time)>,
    /// Sessions that are kept while a place does not answer, with that place.
    waiting: BTreeMap<SessionId, Name>,
    /// Calls for whose place a session was taken and that still wait, because the session is paused or held.
    asked: BTreeSet<(SessionId, Id)>,
    /// Sessions that could not be taken. A new message in their inbox is a reason to try again.
    broken: BTreeSet<SessionId>,
    /// Damage that was reported.
    damaged: BTreeSet<String>,
    /// There are sessions with messages in their inbox that other processes own: an owner may release one without reading them.
    elsewhere: bool,
}

/// Claims and drives every session that has something to do, until `stop`. A settled session is released: a timer, an event or a
/// message brings it back. A session that cannot be driven is reported and does not delay the others.
pub(crate) async fn run_all(
    engine: &Engine,
    stop: CancellationToken,
    told: &(dyn Fn(Happened) + Send + Sync),
) -> Result<(), EngineError> {
    let store = engine.store().clone();
    let mut all = All {
        engine,
        told,
        driven: BTreeMap::new(),
        seen: BTreeMap::new(),
        tried: BTreeSet::new(),
        waiting: BTreeMap::new(),
        asked: BTreeSet::new(),
        broken: BTreeSet::new(),
        damaged: BTreeSet::new(),
        elsewhere: false,
    };
    for what in store.damaged_lists().await? {
        all.damage(what);
    }
    let (mut version, mut looks) = (None, 0_u32);
    while !stop.is_cancelled() {
        if looks.is_multiple_of(DEAD) {
            let taken = all.take_dead().await;
            all.survives(taken)?;
            let taken = all.take_waiting().await;
            all.survives(taken)?;
            if all.elsewhere {
                version = None;
            }
        }
        looks = looks.wrapping_add(1);
        let now = store.inbox_version().await?;
        if version != Some(now) {
            version = Some(now);
            let taken = all.take_called().await;
            all.survives(taken)?;
        }
        let taken = all.take_due().await;
        all.survives(taken)?;
        if all.let_go().await {
            // Messages that arrived after it had settled were not looked at while it was driven.
            version = None;
        }
        tokio::select! {
            () = engine.clock().sleep(LOOK) => {}
            () = stop.cancelled() => {}
        }
    }
    let driven = std::mem::take(&mut all.driven);
    let last: Vec<Session> = driven.values().cloned().collect();
    futures::future::join_all(last.into_iter().map(Session::stop)).await;
    Ok(())
}

impl All<'_> {
    /// Reports damage once.
    fn damage(&mut self, what: String) {
        if self.damaged.insert(what.clone()) {
            (self.told)(Happened::Damaged(what));
        }
    }

    /// Reports damaged data that is used to find sessions, and goes on with the other sessions.
    fn survives(&mut self, looked: Result<(), EngineError>) -> Result<(), EngineError> {
        match looked {
            Err(EngineError::Store(error @ StoreError::Corrupt { .. })) => {
                self.damage(error.to_string());
                Ok(())
            }
            looked => looked,
        }
    }

    /// Takes sessions that were at work when their process died.
    async fn take_dead(&mut self) -> Result<(), EngineError> {
        let running = SessionQuery {
            status: vec!["running".into()],
            ..SessionQuery::default()
        };
        for info in self.engine.store().sessions(&running).await? {
            let idle = info.owner.is_none() && !self.driven.contains_key(&info.id);
            if idle && !self.broken.contains(&info.id) {
                self.take(&info.id).await?;
            }
        }
        Ok(())
    }

    /// Takes sessions that have something new in their inbox.
    async fn take_called(&mut self) -> Result<(), EngineError> {
        let lies = SessionQuery {
            inbox: true,
            ..SessionQuery::default()
        };
        let found = self.engine.store().sessions(&lies).await?;
        self.elsewhere = false;
        self.seen
            .retain(|id, _| found.iter().any(|info| info.id == *id));
        for info in found {
            if self.driven.contains_key(&info.id) {
                continue;
            }
            let inbox = self.engine.store().inbox(&info.id).await?;
            let inbox: Vec<Name> = inbox.into_iter().map(|message| message.id).collect();
            let known = self.seen.get(&info.id);
            let new = |id: &Name| known.is_none_or(|known| !known.contains(id));
            if inbox.iter().any(new) {
                if info.owner.is_some() {
                    self.elsewhere = true;
                    continue;
                }
                self.tried.retain(|(id, ..)| *id != info.id);
                if self.take(&info.id).await? {
                    self.seen.insert(info.id, inbox);
                } else {
                    self.elsewhere = true;
                }
            }
        }
        Ok(())
    }

    /// Takes sessions that have a timer that is due.
    async fn take_due(&mut self) -> Result<(), EngineError> {
        let store = self.engine.store();
        let due = store.timers(self.engine.clock().now(), TIMERS).await?;
        // A timer that is not due any more was set again or cleared.
        self.tried.retain(|timer| due.contains(timer));
        for timer in due {
            let idle = !self.driven.contains_key(&timer.0) && !self.broken.contains(&timer.0);
            if idle && !self.tried.contains(&timer) && self.take(&timer.0.clone()).await? {
                self.tried.insert(timer);
            }
        }
        Ok(())
    }

    /// Takes sessions that wait for a place and that no process drives: for each place those that wait longest.
    async fn take_waiting(&mut self) -> Result<(), EngineError> {
        let found = self.engine.store().outages(WAITING).await?;
        let calls = found.iter().map(|w| (w.session.clone(), w.effect));
        let calls: BTreeSet<(SessionId, Id)> = calls.collect();
        // A call that waits no longer may wait again later.
        self.asked.retain(|call| calls.contains(call));
        for waits in found {
            let call = (waits.session.clone(), waits.effect);
            let idle = !self.driven.contains_key(&call.0) && !self.broken.contains(&call.0);
            let room = self.has_room(&waits.place);
            if idle && room && !self.asked.contains(&call) && self.take(&call.0).await? {
                self.asked.insert(call);
            }
        }
        Ok(())
    }

    /// Returns true if another session may wait for this place here.
    fn has_room(&self, place: &Name) -> bool {
        let waiting = self.waiting.values().filter(|other| *other == place);
        waiting.count() < WAITING
    }

    /// Returns true if a settled session is kept, because it goes on by itself when a place answers, or because an attempt of
    /// it still runs. A session that waits for a place is reported once.
    fn keeps(&mut self, id: &SessionId, session: &Session, standing: &Standing) -> bool {
        let Standing::Settled(settled, outside) = standing else {
            self.waiting.remove(id);
            return false;
        };
        if outside.running > 0 {
            // An attempt on a branch that was left must not be repeated: releasing the session would wait for it.
            return true;
        }
        let Some(place) = &outside.place else {
            self.waiting.remove(id);
            return false;
        };
        if self.waiting.get(id) == Some(place) {
            return true;
        }
        self.waiting.remove(id);
        if !self.has_room(place) || **settled == Settled::Paused {
            return false;
        }
        self.waiting.insert(id.clone(), place.clone());
        (self.told)(Happened::Settled(session.clone(), settled.clone()));
        true
    }

    /// Releases sessions that have settled. Returns true if fewer are driven than before.
    async fn let_go(&mut self) -> bool {
        let before = self.driven.len();
        let rest: Vec<SessionId> = self
            .driven
            .iter()
            .filter(|(_, session)| {
                !matches!(
                    *session.settled.borrow(),
                    Standing::Busy | Standing::Outside(_) | Standing::Stands { .. }
                )
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in rest {
            let Some(session) = self.driven.remove(&id) else {
                continue;
            };
            let standing = session.settled.borrow().clone();
            if self.keeps(&id, &session, &standing) {
                self.driven.insert(id, session);
                continue;
            }
            match standing {
                Standing::Gone(why) => {
                    self.seen.remove(&id);
                    // Another process has it, or it is tried again when something new of it appears.
                    self.broken.insert(id.clone());
                    (self.told)(Happened::Failed(id, why));
                }
                Standing::Settled(settled, _) => {
                    (self.told)(Happened::Settled(session.clone(), settled));
                    session.stop().await;
                }
                Standing::Busy | Standing::Outside(_) | Standing::Stands { .. } => {
                    self.driven.insert(id, session);
                }
            }
        }
        self.driven.len() < before
    }

    /// Claims a session. Returns false if another process owns it.
    async fn take(&mut self, id: &SessionId) -> Result<bool, EngineError> {
        match self.engine.open(id).await {
            Ok(session) => {
                self.broken.remove(id);
                (self.told)(Happened::Taken(session.clone()));
                self.driven.insert(id.clone(), session);
                Ok(true)
            }
            Err(EngineError::Store(StoreError::Owned { .. })) => Ok(false),
            Err(error) if is_of_session(&error) => {
                if self.broken.insert(id.clone()) {
                    (self.told)(Happened::Failed(id.clone(), Arc::new(error)));
                }
                // It is not tried again for the same reason.
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns true if this session cannot be driven; false if the store failed.
fn is_of_session(error: &EngineError) -> bool {
    !matches!(error, EngineError::Store(StoreError::Io { .. }))
}
