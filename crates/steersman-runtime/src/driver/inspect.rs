//! Looking at a session without owning it, and driving all sessions of a store.

use super::standing;
use crate::bind::{self, Values};
use crate::engine::{BranchView, Engine, EngineError, Inspection};
use crate::inbox::{DecodeError, Message};
use crate::load::Load;
use crate::past::{self, Past};
use crate::pending::{self, Pending};
use crate::session::{Session, Settled, Standing};
use crate::store::{InboxMessage, SessionId, SessionInfo, SessionQuery, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::effect::Bodies;
use steersman_machine::ids::{Id, Name};
use steersman_machine::tick::{Cx, wishes};
use tokio_util::sync::CancellationToken;

/// Looks at a session without owning it: what is on disk now.
pub(crate) async fn inspect(engine: &Engine, id: &str) -> Result<Inspection, EngineError> {
    let info = info_of(engine, id).await?;
    let store = engine.store().clone();
    let load = Load::new(store.clone(), info.id.clone(), info.salt);
    let head = store.head(&info.id).await?;
    let (ledger, _) = load.ledger(head).await?;
    let past = Arc::new(Past::new(
        store.clone(),
        info.id.clone(),
        info.salt,
        head,
        past::DEFAULT_BOUND,
    ));
    let mut branches = Vec::new();
    for (id, known) in ledger.branches() {
        let loaded = load.snapshot(known.head).await?;
        for line in loaded.lines {
            past.add(line);
        }
        branches.push(BranchView {
            id,
            label: known.opening.as_ref().and_then(|o| o.label.clone()),
            from: known.from,
            head: known.head,
            ended: known.ended.is_some(),
            superseded: known.superseded.is_some(),
            snapshot: loaded.snapshot,
        });
    }
    let binding = bind::common(&info.id, branches.iter().map(|b| (b.id, &b.snapshot)))?;
    let (mut network, mut values) = (None, Values::default());
    if let Some(binding) = binding {
        past.read(binding.values.line()).await?;
        let text = past.text(binding.values);
        let manifest = bind::manifest(&info.id, binding, &text)?;
        let bound = engine
            .bound_network(&info.id, &binding.source, manifest)
            .await?;
        values = bind::open(&info.id, &bound, binding, &text)?;
        network = Some(bound);
    }
    let mut pending: Vec<Pending> = Vec::new();
    let mut settled = Settled::Empty;
    if let Some(network) = &network {
        let cx = Cx {
            network,
            bodies: &*past,
        };
        for branch in branches.iter().filter(|b| !b.superseded) {
            for wish in wishes(&cx, &branch.snapshot) {
                let since = since(&past, wish.id);
                pending.extend(pending::of(&cx, &ledger, &branch.snapshot, &wish, since));
            }
        }
        pending.sort_by_key(|p| (p.since, p.effect));
        if let Some(branch) = branches.iter().find(|b| b.id == ledger.current) {
            let here = pending.iter().filter(|p| p.branch == branch.id).cloned();
            settled = standing::settled(network, &ledger, &branch.snapshot, here.collect(), &*past);
        }
    }
    if let Some(fault) = past.fault() {
        return Err(fault.into());
    }
    let inbox = store.inbox(id).await?;
    Ok(Inspection {
        info,
        network,
        values,
        branches,
        current: ledger.current,
        pending,
        unread: unread(&inbox),
        inbox,
        settled,
        ledger,
        history: past,
    })
}

/// Why messages of an inbox cannot be read, where they cannot.
fn unread(inbox: &[InboxMessage]) -> Vec<DecodeError> {
    let errors = inbox.iter().filter_map(|m| Message::decode(m).err());
    errors.collect()
}

fn since(past: &Past, effect: Id) -> steersman_machine::ids::Time {
    let line = past.line(effect.line()).ok();
    let now = line.and_then(|line| line.commit.as_ref().map(|c| c.now));
    now.unwrap_or_default()
}

async fn info_of(engine: &Engine, id: &str) -> Result<SessionInfo, EngineError> {
    let query = SessionQuery {
        prefix: Some(id.to_owned()),
        ..SessionQuery::default()
    };
    let found = engine.store().sessions(&query).await?;
    let found = found.into_iter().find(|info| &*info.id == id);
    found.ok_or_else(|| StoreError::NoSession(id.into()).into())
}

/// How often all sessions of a store are looked at, in milliseconds.
const LOOK: u64 = 50;
/// Timers that are looked at together.
const TIMERS: usize = 1_000;

/// Owns and drives every session that has something to do, until `stop`. What settles is let go of again: a timer, an
/// event or a message brings it back.
pub(crate) async fn run_all(engine: &Engine, stop: CancellationToken) -> Result<(), EngineError> {
    let store = engine.store().clone();
    let mut driven: BTreeMap<SessionId, Session> = BTreeMap::new();
    // What lay in inboxes when their sessions were taken: what waits there is no reason to take one again.
    let mut seen: BTreeMap<SessionId, Vec<Name>> = BTreeMap::new();
    let mut version = None;
    let running = SessionQuery {
        status: vec!["running".into()],
        ..SessionQuery::default()
    };
    for info in store.sessions(&running).await? {
        take(engine, &info.id, &mut driven).await?;
    }
    while !stop.is_cancelled() {
        let now = store.inbox_version().await?;
        if version != Some(now) {
            version = Some(now);
            let lies = SessionQuery {
                inbox: true,
                ..SessionQuery::default()
            };
            let found = store.sessions(&lies).await?;
            seen.retain(|id, _| found.iter().any(|info| info.id == *id));
            for info in found {
                if driven.contains_key(&info.id) {
                    continue;
                }
                let inbox = store.inbox(&info.id).await?;
                let inbox: Vec<Name> = inbox.into_iter().map(|message| message.id).collect();
                let known = seen.get(&info.id);
                let new = |id: &Name| known.is_none_or(|known| !known.contains(id));
                if inbox.iter().any(new) && take(engine, &info.id, &mut driven).await? {
                    seen.insert(info.id, inbox);
                }
            }
        }
        for (id, ..) in store.timers(engine.clock().now(), TIMERS).await? {
            if !driven.contains_key(&id) {
                take(engine, &id, &mut driven).await?;
            }
        }
        let rest: Vec<SessionId> = driven
            .iter()
            .filter(|(_, session)| {
                !matches!(
                    *session.settled.borrow(),
                    Standing::Busy | Standing::Outside(_)
                )
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in rest {
            if let Some(session) = driven.remove(&id) {
                if matches!(*session.settled.borrow(), Standing::Gone(_)) {
                    seen.remove(&id);
                }
                session.stop().await;
            }
        }
        tokio::select! {
            () = engine.clock().sleep(LOOK) => {}
            () = stop.cancelled() => {}
        }
    }
    for session in driven.into_values() {
        session.stop().await;
    }
    Ok(())
}

/// One that another process owns is left to it; then false.
async fn take(
    engine: &Engine,
    id: &SessionId,
    driven: &mut BTreeMap<SessionId, Session>,
) -> Result<bool, EngineError> {
    match engine.open(id).await {
        Ok(session) => {
            driven.insert(id.clone(), session);
            Ok(true)
        }
        Err(EngineError::Store(StoreError::Owned { .. })) => Ok(false),
        Err(error) => Err(error),
    }
}
