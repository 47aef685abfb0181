//! Waits for a while if the session waits only for a model that does not answer, and for as long as a server asks in the middle of a
//! call that must not be repeated.

use super::{Ended, Play};
use crate::asked::{self, Elsewhere};
use crate::error::CommandError;
use crate::printer::yellow;
use crate::words::{span, talk_width};
use std::sync::Arc;
use std::time::Instant;
use steersman::runtime::pending::{Pending, PendingKind};
use steersman::runtime::session::Settled;
use steersman_machine::stored::interaction::Class;

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

impl Play<'_> {
    /// Returns true if nobody answers here what a server asks in the middle of a call that must not be repeated: if this command
    /// ended, the question would be over.
    pub(super) async fn must_stay(&self, settled: &Settled) -> Result<bool, CommandError> {
        let asks = asked_by_servers(settled).next().is_some();
        if !asks || self.typed_here.is_some() || self.session.outside().await?.running == 0 {
            return Ok(false);
        }
        let seen = self.place.engine().inspect(self.session.id()).await?;
        let Some(network) = seen.network else {
            return Ok(false);
        };
        let mut tools = asked_by_servers(settled).filter_map(|asked| asked.tool.as_ref());
        Ok(tools.any(|tool| {
            let tool = network.tools.get(tool);
            tool.is_some_and(|tool| tool.effect == Class::Unsafe)
        }))
    }

    /// Waits until somebody has answered in another terminal, or the call has ended. Returns how driving ended, if the user leaves.
    pub(super) async fn stays_for_answer(
        &mut self,
        settled: Arc<Settled>,
    ) -> Result<Option<Ended>, CommandError> {
        let now = self.place.now();
        for asked in asked_by_servers(&settled) {
            for row in asked::frame(asked, &Elsewhere::new(), now, talk_width()) {
                self.printer.talk(row);
            }
            self.printer.talk(yellow(
                "Its call must not be repeated, and its server waits. So this command stays. Answer in another terminal:",
            ));
            for command in asked::commands(&self.short, asked) {
                self.printer.next(command, "");
            }
        }
        let session = self.session.clone();
        let changed = session.settled_otherwise(&settled);
        let idle = session.idle();
        tokio::pin!(changed, idle);
        loop {
            tokio::select! {
                biased;
                now = &mut changed => {
                    now?;
                    return Ok(None);
                }
                () = self.leaving.wanted() => return self.leave_off().await.map(Some),
                // The call has ended and the question is still open: nothing is lost if this command ends, too.
                idle = &mut idle => {
                    idle?;
                    return Ok(None);
                }
                item = self.feed.next() => self.item(item?).await?,
            }
        }
    }
}

/// Returns the questions that servers ask while their tools run.
fn asked_by_servers(settled: &Settled) -> impl Iterator<Item = &Pending> {
    let all: &[Pending] = match settled {
        Settled::Asks(all) => all,
        _ => &[],
    };
    let of_server = |asked: &&Pending| asked.kind == PendingKind::Question && asked.hold.is_some();
    all.iter().filter(of_server)
}

/// Returns true if the session waits only for places that do not answer.
fn waits_for_place(settled: &Settled) -> bool {
    match settled {
        Settled::Waits(all) => !all.is_empty() && all.iter().all(|p| p.kind == PendingKind::Outage),
        _ => false,
    }
}
