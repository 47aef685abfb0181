//! Waits for a while if the session waits only for a model that does not answer.

use super::{Ended, Play};
use crate::error::CommandError;
use crate::printer::yellow;
use crate::words::span;
use std::sync::Arc;
use std::time::Instant;
use steersman::runtime::pending::PendingKind;
use steersman::runtime::session::Settled;

impl Play<'_> {
    /// Waits up to `--wait` while the session waits only for places that do not answer, and then returns its state.
    pub(super) async fn stay(&mut self, settled: Arc<Settled>) -> Result<Ended, CommandError> {
        let wait = self.place.wait;
        let (mut settled, began) = (settled, Instant::now());
        let mut announced = false;
        loop {
            let left = wait.saturating_sub(began.elapsed());
            if self.keys.is_some() || left.is_zero() || !waits_for_place(&settled) {
                return Ok(Ended::Settled(settled));
            }
            if !std::mem::replace(&mut announced, true) {
                let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
                let text = format!(
                    "The server does not answer. Waits up to {} for it (`--wait`), and continues when it answers.",
                    span(millis)
                );
                self.printer.talk(yellow(&text));
            }
            let (session, known) = (self.session.clone(), settled.clone());
            let changed = session.settled_otherwise(&known);
            tokio::pin!(changed);
            let over = tokio::time::sleep(left);
            tokio::pin!(over);
            loop {
                tokio::select! {
                    biased;
                    now = &mut changed => {
                        settled = now?;
                        break;
                    }
                    () = self.leaving.wanted() => return self.leave_off().await,
                    () = &mut over => break,
                    item = self.feed.next() => self.item(item?).await?,
                }
            }
            self.rest().await?;
        }
    }
}

/// Returns true if the session waits only for places that do not answer.
fn waits_for_place(settled: &Settled) -> bool {
    match settled {
        Settled::Waits(all) => !all.is_empty() && all.iter().all(|p| p.kind == PendingKind::Outage),
        _ => false,
    }
}
