//! Inspection of a session without owning it.

use crate::bind::{self, Values};
use crate::engine::{BranchView, Engine, EngineError, Inspection};
use crate::inbox::unread;
use crate::ledger::Ledger;
use crate::load::Load;
use crate::log::standing::settled as settled_of;
use crate::past::{self, Past};
use crate::pending::{self, Pending};
use crate::session::Settled;
use crate::store::{SessionId, SessionInfo, SessionQuery, StoreError};
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::{Binding, Why};
use steersman_machine::stored::ids::{Bodies, Id};
use steersman_machine::tick::wishes;
use steersman_machine::view::Cx;

/// Reads the present state of a session from disk, without owning it.
pub(crate) async fn inspect(engine: &Engine, id: &str) -> Result<Inspection, EngineError> {
    let info = info_of(engine, id).await?;
    let store = engine.store().clone();
    let load = Load::new(store.clone(), info.id.clone(), info.salt);
    // Read before the lines, so that a message that is taken meanwhile is in them.
    let (_, mut inbox) = store.inbox(id).await?;
    let head = store.head(&info.id).await?;
    let (ledger, _) = load.ledger(head).await?;
    // A store may return a message again that was taken.
    inbox.retain(|message| !ledger.accepted(&message.id));
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
            superseded: !ledger.has_ticks(id),
            snapshot: loaded.snapshot,
        });
    }
    // A superseded branch keeps its old binding.
    let live = branches.iter().filter(|b| !b.superseded);
    let binding = bind::common(&info.id, live.map(|b| (b.id, &b.snapshot)))?;
    let (network, values) = match binding {
        Some(binding) => {
            let (network, values) = bound(engine, &info.id, binding, &past).await?;
            (Some(network), values)
        }
        None => (None, Values::default()),
    };
    let left = left_in_doubt(&load, &ledger, &branches).await?;
    let mut pending: Vec<Pending> = Vec::new();
    let mut settled = Settled::Empty;
    if let Some(network) = &network {
        let cx = Cx {
            network,
            bodies: &*past,
        };
        for branch in branches.iter().filter(|b| !b.superseded) {
            for wish in wishes(&cx, &branch.snapshot) {
                let since = past.wished_at(wish.id);
                pending.extend(pending::of(&cx, &ledger, &branch.snapshot, &wish, since));
            }
        }
        for (effect, snapshot) in &left {
            let mut all = wishes(&cx, snapshot).into_iter();
            let wish = all.find(|wish| wish.id == *effect);
            let since = past.wished_at(*effect);
            let told = wish.and_then(|wish| pending::left(&cx, &ledger, snapshot, &wish, since));
            pending.extend(told);
        }
        pending.sort_by_key(|p| (p.since, p.effect));
        if let Some(branch) = branches.iter().find(|b| b.id == ledger.current) {
            let here = pending.iter().filter(|p| p.branch == branch.id).cloned();
            settled = settled_of(network, &ledger, &branch.snapshot, here.collect(), &*past);
        }
    }
    if let Some(fault) = past.fault() {
        return Err(fault.into());
    }
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

/// Returns the network and the values of a binding.
pub(super) async fn bound(
    engine: &Engine,
    session: &SessionId,
    binding: &Binding,
    past: &Past,
) -> Result<(Arc<Network>, Values), EngineError> {
    past.read(binding.values.line()).await?;
    let text = past.text(binding.values);
    let bound = engine.network_of(session, binding, &text).await?;
    let values = bind::open(session, &bound, binding, &text)?;
    let key = (binding.source, bind::manifest(session, binding, &text)?);
    // Reading also works if states and routers in Rust are missing here.
    let here = engine.with_natives(bound.clone(), &values, key);
    Ok((here.unwrap_or(bound), values))
}

/// Returns effects in doubt that no branch waits for, each with the last snapshot where one did.
async fn left_in_doubt(
    load: &Load,
    ledger: &Ledger,
    branches: &[BranchView],
) -> Result<Vec<(Id, Snapshot)>, EngineError> {
    let mut left = Vec::new();
    for (effect, record) in ledger.effects() {
        if record.holds.values().all(|hold| hold.why != Why::Doubt) {
            continue;
        }
        let open = |b: &&BranchView| b.snapshot.effects.contains_key(&effect);
        let waits = branches.iter().filter(|b| !b.superseded).any(|b| open(&b));
        if waits {
            continue;
        }
        let mut views = branches.iter().filter(|b| b.id == record.branch);
        let snapshot = match views.find(open) {
            Some(view) => view.snapshot.clone(),
            // After the line that wished the effect, it was certainly open.
            None => load.snapshot(effect.line()).await?.snapshot,
        };
        left.push((effect, snapshot));
    }
    Ok(left)
}

pub(super) async fn info_of(engine: &Engine, id: &str) -> Result<SessionInfo, EngineError> {
    let query = SessionQuery {
        prefix: Some(id.to_owned()),
        ..SessionQuery::default()
    };
    let found = engine.store().sessions(&query).await?;
    let found = found.into_iter().find(|info| &*info.id == id);
    found.ok_or_else(|| StoreError::NoSession(id.into()).into())
}
