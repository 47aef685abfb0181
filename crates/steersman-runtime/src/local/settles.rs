//! The states in which a session settled, from its log alone: every reader of the log finds the same ones, at any time.

use super::inspect::{bound, info_of};
use crate::engine::{Engine, EngineError};
use crate::load::Load;
use crate::log::standing::settled;
use crate::past::{DEFAULT_BOUND, Past};
use crate::pending::{self, Pending};
use crate::session::Settled;
use crate::store::SessionInfo;
use std::mem::discriminant;
use steersman_machine::stored::commit::{LedgerEntry, LogLine, Want};
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::stored::interaction::{End, Interaction};
use steersman_machine::tick::wishes;
use steersman_machine::view::Cx;

impl Engine {
    /// Returns the state in which a session settled with a line of its log. `None` if its current branch was at work after the line,
    /// or stood as before it, or had not taken a message.
    ///
    /// It follows from the lines up to this one alone. Of the log before it are read at most as many lines as a load of the session
    /// reads. The state of a session that is driven ([`Session::settled`](crate::session::Session::settled)) may come a line later:
    /// there the next message that lies in the inbox counts as work, too.
    ///
    /// # Errors
    /// The stored data cannot be read.
    pub async fn settled_with(
        &self,
        id: &str,
        line: &LogLine,
    ) -> Result<Option<Settled>, EngineError> {
        if leaves_work(line) {
            return Ok(None);
        }
        let info = info_of(self, id).await?;
        let load = Load::new(self.store().clone(), info.id.clone(), info.salt);
        let after = Box::pin(standing(self, &info, &load, line.n)).await?;
        let Some(after) = after.filter(|stood| !matches!(stood.settled, Settled::Empty)) else {
            return Ok(None);
        };
        if line.branch == after.branch && ends(line) && is_end(&after.settled) {
            return Ok(Some(after.settled));
        }
        let before = load.before(line.n).await?;
        let before = if before.is_some() {
            Box::pin(standing(self, &info, &load, before)).await?
        } else {
            None
        };
        let is_new = before.is_none_or(|before| !before.is_same(&after));
        Ok(is_new.then_some(after.settled))
    }
}

/// The current branch as of a line, at rest.
struct Standing {
    branch: Id,
    settled: Settled,
}

impl Standing {
    fn is_same(&self, other: &Self) -> bool {
        let open = |settled: &Settled| -> Vec<_> {
            let (Settled::Asks(all) | Settled::Waits(all) | Settled::Doubt(all)) = settled else {
                return Vec::new();
            };
            all.iter().map(Pending::id).collect()
        };
        self.branch == other.branch
            && discriminant(&self.settled) == discriminant(&other.settled)
            && open(&self.settled) == open(&other.settled)
    }
}

/// Returns the current branch as of a line. `None` if it was at work.
async fn standing(
    engine: &Engine,
    info: &SessionInfo,
    load: &Load,
    at: Line,
) -> Result<Option<Standing>, EngineError> {
    let (ledger, _) = load.ledger(at).await?;
    let branch = ledger.current;
    let empty = Ok(Some(Standing {
        branch,
        settled: Settled::Empty,
    }));
    let Some(known) = ledger.branch(branch) else {
        return empty;
    };
    let loaded = load.snapshot(known.head).await?;
    let snapshot = loaded.snapshot;
    let Some(binding) = &snapshot.binding else {
        return empty;
    };
    let store = engine.store().clone();
    let past = Past::new(store, info.id.clone(), info.salt, at, DEFAULT_BOUND);
    for line in loaded.lines {
        past.add(line);
    }
    let (network, _) = bound(engine, &info.id, binding, &past).await?;
    let cx = Cx {
        network: &network,
        bodies: &past,
    };
    let mut open: Vec<Pending> = Vec::new();
    for wish in wishes(&cx, &snapshot) {
        let since = past.wished_at(wish.id);
        let waits = pending::of(&cx, &ledger, &snapshot, &wish, since);
        // A probe that goes on may settle a doubt without anybody.
        let waits = waits.filter(|waits| {
            let mut probe = waits.probe.iter();
            probe.all(|probe| probe.over || probe.again.is_some())
        });
        match waits {
            Some(waits) => open.push(waits),
            // A pause holds whatever has not begun.
            None if ledger.paused => {}
            None => return Ok(None),
        }
    }
    open.sort_by_key(|waits| (waits.since, waits.effect));
    let settled = settled(&network, &ledger, &snapshot, open, &past);
    if let Some(fault) = past.fault() {
        return Err(fault.into());
    }
    Ok(Some(Standing { branch, settled }))
}

/// Returns true if something is certainly at work on the branch of a line after it. Most lines of a session that works are such
/// lines, and nothing has to be read for them.
fn leaves_work(line: &LogLine) -> bool {
    let held = |effect: Id| {
        line.ledger.iter().any(|entry| match entry {
            LedgerEntry::Hold(hold) => hold.effect == effect,
            LedgerEntry::Paused { paused, .. } => *paused,
            _ => false,
        })
    };
    let mut wished = line.commit.iter().flat_map(|commit| &commit.wished);
    wished.any(|wished| wished.what == Want::Step && wished.due.is_none() && !held(wished.id))
}

/// Returns true if a turn or a task ends with the line.
fn ends(line: &LogLine) -> bool {
    let pushes = line.commit.iter().flat_map(|commit| &commit.pushes);
    let mut ends = pushes.filter_map(|push| match &push.what {
        Interaction::Finished { end, .. } => Some(*end),
        _ => None,
    });
    ends.any(|end| end != End::Draft)
}

fn is_end(settled: &Settled) -> bool {
    matches!(
        settled,
        Settled::Answered { .. }
            | Settled::Limit { .. }
            | Settled::Failed { .. }
            | Settled::Cancelled
    )
}
