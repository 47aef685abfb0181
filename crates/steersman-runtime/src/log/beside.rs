//! Checks the tables that a store keeps next to the log of a session: its seat, waits for events, labels, the state shown in
//! lists, and the ids of accepted messages. All of them follow from the log, and this module compares them with it. A driven
//! session relies on its log alone. But if the time in its seat is wrong, a session is not woken when a timer is due.

use crate::feed::Feed;
use crate::log::error::EngineError;
use crate::log::inspection::Inspection;
use crate::log::last::last;
use crate::pending::{Pending, PendingKind, is_misread};
use crate::store::{Batch, IMMEDIATELY, SessionState, WaitChange};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::stored::commit::{LedgerEntry, LogLine, Text};
use steersman_machine::stored::ids::{Id, Name, Time};
use steersman_machine::tick::effect::{Wish, Work};
use steersman_machine::tick::wishes;
use steersman_machine::values::types::canonical;
use steersman_machine::view::Cx;

/// Entries that a store keeps for a session in addition to its log and its place in lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Time from which on a worker should own the session.
    pub wants: Option<Time>,
    /// Place that does not answer and that the session waits for.
    pub place: Option<Name>,
    /// Waits for events: effect, event, canonical JSON of the key.
    pub waits: BTreeSet<(Id, Name, Arc<str>)>,
    /// Ids of messages that were accepted or are in the inbox.
    pub ids: BTreeSet<Name>,
}

/// Returns each difference between the log and the kept entries, in words. `inspection`, `feed` (from the first line on) and
/// `kept` must be of the same moment, and nobody may drive the session at that moment.
pub async fn differs(
    inspection: &Inspection,
    mut feed: Feed,
    kept: &Kept,
) -> Result<Vec<String>, EngineError> {
    let lines = feed.lines().await?;
    let mut found = Vec::new();
    let meant = Kept::meant(inspection);
    seat(inspection, &meant, kept, &mut found);
    if inspection.network.is_some() {
        events(&meant, kept, &mut found);
    }
    messages(inspection, &lines, kept, &mut found);
    listed(inspection, &lines, &mut found);
    Ok(found)
}

impl Kept {
    /// Returns the entries that should be kept according to the log. Ids of messages are left out: [`differs`] reads them from
    /// the lines.
    pub(crate) fn meant(inspection: &Inspection) -> Self {
        let mut meant = Self::default();
        // No worker takes a dry rerun: only a person's act continues it.
        let is_left = inspection.ledger.is_dry_rerun();
        if !inspection.ledger.paused && !is_left {
            let mut places = inspection.pending.iter();
            meant.place = places.find_map(|pending| pending.place.clone());
        }
        let dues = inspection.pending.iter();
        let dues = dues.filter_map(|pending| due(inspection, pending));
        meant.wants = dues.min().filter(|_| !is_left);
        for wish in waiting(inspection) {
            let Work::Event { any } = &wish.work else {
                continue;
            };
            for one in any {
                if let Ok(key) = serde_json::from_str(&one.key) {
                    let key = canonical(&key).to_string().into();
                    meant.waits.insert((wish.id, one.event.clone(), key));
                }
            }
        }
        meant
    }

    /// Returns the waits as one change, for a store that keeps none of them yet.
    pub(crate) fn into_batch(self) -> Batch {
        let mut waits: BTreeMap<Id, WaitChange> = BTreeMap::new();
        for (effect, event, key) in self.waits {
            let open = Vec::new();
            let change = waits.entry(effect).or_insert(WaitChange { effect, open });
            change.open.push((event, key));
        }
        Batch {
            waits: waits.into_values().collect(),
            ..Batch::default()
        }
    }
}

impl Inspection {
    /// Returns the labels that lists should show for this session, read from its log: those of its current branch.
    pub(crate) fn labelled(&self) -> BTreeMap<Name, Arc<str>> {
        let labels = self.current_branch().map(|b| b.snapshot.labels.iter());
        let labels = labels.into_iter().flatten();
        labels
            .map(|(name, body)| (name.clone(), self.history.text(*body)))
            .collect()
    }

    /// Returns the state that lists should show for this session, read from its log, with the time `updated`.
    pub(crate) fn listed(&self, updated: Time) -> SessionState {
        let (Some(_), Some(branch)) = (&self.network, self.current_branch()) else {
            return SessionState {
                updated,
                ..self.info.state.clone()
            };
        };
        let binding = branch.snapshot.binding.as_ref();
        SessionState {
            status: self.settled.word().into(),
            updated,
            micros: self.ledger.spent.micros,
            tokens: self.ledger.spent.tokens,
            model_calls: self.ledger.calls,
            definition: binding.map(|b| b.digest.short().into()).unwrap_or_default(),
            waits: crate::pending::list(&self.pending),
            outcome: self.outcome_on(branch).to_string().into(),
            last: last(&branch.snapshot, &*self.history),
            moved: None,
        }
    }
}

/// Returns the time when the session must be woken for a pending effect. A paused session begins no attempt.
fn due(inspection: &Inspection, pending: &Pending) -> Option<Time> {
    let begins = !inspection.ledger.paused;
    let acts = match pending.kind {
        PendingKind::Hold => false,
        PendingKind::Again => begins,
        _ => true,
    };
    let own = pending.due.filter(|_| acts);
    // A later `reach` attempt for the effect and the probe of a doubt wake the session too.
    let reaches = inspection.ledger.reaches_again();
    let reaches = reaches.filter(|(_, reach)| reach.of == pending.effect);
    let probe = pending.probe.as_ref().and_then(|probe| probe.again);
    let asks = reaches.filter_map(|(_, reach)| reach.again).chain(probe);
    own.into_iter().chain(asks.filter(|_| begins)).min()
}

/// Returns the open wishes of the branches that have ticks. Superseded branches are skipped: they may use names that the
/// current definition does not have.
fn waiting(inspection: &Inspection) -> Vec<Wish> {
    let Some(network) = &inspection.network else {
        return Vec::new();
    };
    let cx = Cx {
        network,
        bodies: &*inspection.history,
    };
    let live = inspection.branches.iter().filter(|b| !b.superseded);
    live.flat_map(|branch| wishes(&cx, &branch.snapshot))
        .collect()
}

/// Compares the time at which a worker takes the session, and the place for which it is listed. Three kinds of sessions are skipped:
/// one that is wanted immediately, because nothing else matters then, one whose last owner failed, because its time is that of
/// the next try, and a dry rerun, which no worker takes.
fn seat(inspection: &Inspection, meant: &Kept, kept: &Kept, found: &mut Vec<String>) {
    let is_left = inspection.ledger.is_dry_rerun();
    if kept.wants == Some(IMMEDIATELY) || inspection.info.left.trouble.is_some() || is_left {
        return;
    }
    let dues = inspection.pending.iter();
    let dues = dues.filter_map(|pending| Some((due(inspection, pending)?, pending)));
    let soonest = dues.min_by_key(|(due, pending)| (*due, pending.effect));
    if let Some((due, pending)) = soonest
        && kept.wants.is_none_or(|wants| wants > due)
    {
        let (effect, kind) = (pending.effect, pending.kind.word());
        let wants = match kept.wants {
            Some(wants) => format!("the session is wanted only at {}", shown(wants)),
            None => "nothing wakes the session then".to_owned(),
        };
        let due = shown(due);
        found.push(format!("{effect} ({kind}) is due at {due}, and {wants}"));
    }
    match (&meant.place, &kept.place) {
        (Some(place), None) => {
            found.push(format!("it waits for {place}, and is not found by that"));
        }
        (None, Some(place)) => found.push(format!(
            "it is found as waiting for {place}, and does not wait for it"
        )),
        _ => {}
    }
}

pub(crate) fn shown(time: Time) -> String {
    let time = jiff::Timestamp::from_millisecond(time.0);
    time.map_or_else(|_| "no time".to_owned(), |time| time.to_string())
}

fn events(meant: &Kept, kept: &Kept, found: &mut Vec<String>) {
    for (effect, event, key) in meant.waits.difference(&kept.waits) {
        found.push(format!(
            "{effect} waits for the event `{event}` with {key}, and is not found by it"
        ));
    }
    for (effect, event, key) in kept.waits.difference(&meant.waits) {
        found.push(format!(
            "{effect} is found by the event `{event}` with {key}, and does not wait for it"
        ));
    }
}

fn messages(inspection: &Inspection, lines: &[Arc<LogLine>], kept: &Kept, found: &mut Vec<String>) {
    for message in &inspection.inbox {
        if inspection.ledger.accepted(&message.id) {
            found.push(format!(
                "message `{}` is in the inbox, and a line took it",
                message.id
            ));
        }
    }
    let entries = lines.iter().flat_map(|line| &line.ledger);
    let forgotten = entries.filter(|entry| match entry {
        LedgerEntry::Accepted { message, .. } => !kept.ids.contains(message),
        _ => false,
    });
    let forgotten = forgotten.count();
    if forgotten > 0 {
        found.push(format!(
            "{forgotten} of the messages that its lines took are not known any more: their ids would be accepted again"
        ));
    }
}

/// Compares the state and the labels that lists show with the log.
fn listed(inspection: &Inspection, lines: &[Arc<LogLine>], found: &mut Vec<String>) {
    let state = &inspection.info.state;
    let binding = inspection
        .branches
        .iter()
        .find(|b| b.id == inspection.current)
        .and_then(|b| b.snapshot.binding.as_ref());
    if let Some(binding) = binding
        && !state.definition.is_empty()
        && *state.definition != *binding.digest.short()
    {
        found.push(format!(
            "lists show the definition {}, and it is bound to {}",
            state.definition,
            binding.digest.short()
        ));
    }
    // Lists show `running` for a session whose process died, until another process takes the session over.
    let status = inspection.settled.word();
    // `moved`: this log does not say what the session does in another store.
    let at_work = matches!(&*state.status, "" | "running" | "moved");
    if !at_work && inspection.network.is_some() && *state.status != *status {
        found.push(format!(
            "lists show it as `{}`, and it is `{status}`",
            state.status
        ));
    }
    if !at_work && inspection.network.is_some() && is_misread(&state.waits, &inspection.pending) {
        found.push("lists show something else than what it waits for".to_owned());
    }
    // Erasing removes labels, and no line says which.
    let is_erased = |text: &Text| matches!(text, Text::Erased { .. });
    if lines.iter().any(|line| line.bodies.iter().any(is_erased)) {
        return;
    }
    let meant = inspection.labelled();
    let shown: BTreeMap<&Name, &Arc<str>> =
        inspection.info.labels.iter().map(|(n, v)| (n, v)).collect();
    for (name, value) in &meant {
        if shown.get(name).copied() != Some(value) {
            found.push(format!(
                "lists show another label `{name}` than its lines give it"
            ));
        }
    }
    for name in shown.keys().filter(|name| !meant.contains_key(**name)) {
        found.push(format!(
            "lists show the label `{name}`, which no line gives it"
        ));
    }
}
