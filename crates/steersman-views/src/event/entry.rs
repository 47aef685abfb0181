//! Converts the entries of the ledger into events.

use super::kind::{Asking, EventKind, Searching, Tried};
use super::tell::{Teller, Told};
use std::sync::Arc;
use steersman_machine::stored::commit::{
    LedgerEntry, Probing, Reaching, Release, Searching as Log, Stepped, Why,
};
use steersman_machine::stored::ids::{Id, Line};
use steersman_runtime::engine::EngineError;
use steersman_runtime::pending::{PendingId, PendingKind};

impl Teller {
    /// Returns the event of a ledger entry. Entries about money alone have none: the event `used` has their numbers.
    pub(super) async fn entry(
        &mut self,
        at: Line,
        entry: &LedgerEntry,
    ) -> Result<Option<Told>, EngineError> {
        if let Some(kind) = of_session(entry) {
            return Ok(Some((None, kind)));
        }
        match entry {
            LedgerEntry::Refused { message, why } => {
                let kind = EventKind::Refused {
                    message: message.clone(),
                    why: self.text(*why).await?,
                };
                return Ok(Some((None, kind)));
            }
            LedgerEntry::Search { search, what } => {
                let kind = self.searched(*search, what).await?;
                return Ok(kind.map(|kind| (None, kind)));
            }
            _ => {}
        }
        let told = match of_attempt(entry) {
            Some(told) => Some(told),
            None => self.of_question(at, entry).await?,
        };
        let Some((effect, kind)) = told else {
            return Ok(None);
        };
        let who = match self.called(effect).await? {
            Some((agent, _)) => Some(self.who(agent).await?),
            None => None,
        };
        Ok(Some((who, kind)))
    }

    /// Returns the event of a hold, its end, a probe or a notification, and the effect that it is about.
    async fn of_question(
        &mut self,
        at: Line,
        entry: &LedgerEntry,
    ) -> Result<Option<(Id, EventKind)>, EngineError> {
        Ok(Some(match entry {
            LedgerEntry::Hold(hold) => {
                let kind = EventKind::Asked {
                    question: PendingId {
                        effect: hold.effect,
                        hold: Some(at),
                    },
                    kind: asked(hold.why),
                    // Only the place itself can end an outage.
                    by: match hold.why {
                        Why::Outage => Vec::new(),
                        _ => hold.by.clone(),
                    },
                    text: self.text_or_none(hold.ask).await?,
                };
                (hold.effect, kind)
            }
            LedgerEntry::Released {
                effect,
                why,
                how,
                by,
                ..
            } => {
                let kind = EventKind::Decided {
                    effect: *effect,
                    kind: asked(*why),
                    go: matches!(how, Release::Go | Release::Edited | Release::Outcome),
                    by: by.word().into(),
                    who: by.person().and_then(|by| by.who.clone()),
                };
                (*effect, kind)
            }
            LedgerEntry::Probe { effect, of, what } => {
                (*of, self.probed(*effect, *of, what).await?)
            }
            LedgerEntry::Reach {
                effect,
                of,
                role,
                what,
            } => {
                let (how, text) = self.reached(what).await?;
                let kind = EventKind::Reached {
                    effect: *effect,
                    of: *of,
                    by: role.clone(),
                    how,
                    text,
                };
                (*of, kind)
            }
            LedgerEntry::Step {
                effect,
                attempt,
                nth,
                name,
                what,
            } => {
                let (how, text) = self.stepped(*what).await?;
                let kind = EventKind::Stepped {
                    effect: *effect,
                    attempt: *attempt,
                    nth: *nth,
                    name: name.clone(),
                    how,
                    text,
                };
                (*effect, kind)
            }
            LedgerEntry::Claimed { .. }
            | LedgerEntry::Accepted { .. }
            | LedgerEntry::Refused { .. }
            | LedgerEntry::Ended(_)
            | LedgerEntry::Superseded { .. }
            | LedgerEntry::Current(_)
            | LedgerEntry::Adopted { .. }
            | LedgerEntry::Paused { .. }
            | LedgerEntry::Barred { .. }
            | LedgerEntry::StoreAccepted { .. }
            | LedgerEntry::Search { .. }
            | LedgerEntry::Started { .. }
            | LedgerEntry::Done { .. }
            | LedgerEntry::NotPerformed { .. }
            | LedgerEntry::Unknown { .. }
            | LedgerEntry::Late { .. }
            | LedgerEntry::Again { .. }
            | LedgerEntry::Listed(_)
            | LedgerEntry::WouldAsk(_)
            | LedgerEntry::Escrow { .. }
            | LedgerEntry::Spend { .. }
            | LedgerEntry::Settle { .. }
            | LedgerEntry::More { .. }
            | LedgerEntry::Unbelievable { .. }
            | LedgerEntry::Outage { .. }
            | LedgerEntry::Opened { .. }
            | LedgerEntry::Recorded { .. } => return Ok(None),
        }))
    }

    async fn stepped(&mut self, what: Stepped) -> Result<(Asking, Option<Arc<str>>), EngineError> {
        Ok(match what {
            Stepped::Began => (Asking::Began, None),
            Stepped::Done(_) => (Asking::Done, None),
            Stepped::Failed(why) => (Asking::Failed, Some(self.text(why).await?)),
        })
    }

    async fn reached(
        &mut self,
        what: &Reaching,
    ) -> Result<(Asking, Option<Arc<str>>), EngineError> {
        Ok(match what {
            Reaching::Started { .. } => (Asking::Began, None),
            Reaching::Done => (Asking::Done, None),
            Reaching::Failed(why) => (Asking::Failed, Some(self.text(*why).await?)),
        })
    }

    async fn searched(&mut self, search: Id, what: &Log) -> Result<Option<EventKind>, EngineError> {
        let (step, of, value, why) = match what {
            Log::Began { .. } => (Searching::Began, None, None, None),
            // The line that opens the branch reports it.
            Log::Tried { .. } | Log::Judged { .. } => return Ok(None),
            Log::Stood { branch, .. } => (Searching::Stood, Some(*branch), None, None),
            Log::Scored {
                branch, value, why, ..
            } => {
                let value = value.as_ref().and_then(|value| value.parse().ok());
                let why = match why {
                    Some(why) => Some(self.text(*why).await?),
                    None => None,
                };
                (Searching::Judged, Some(*branch), value, why)
            }
            Log::Over { winner, why } => {
                let of = winner.map(|(branch, _)| branch);
                (Searching::Over, of, None, Some(why.clone()))
            }
            Log::Without(why) => (Searching::Without, None, None, Some(self.text(*why).await?)),
        };
        Ok(Some(EventKind::Searched {
            search,
            step,
            of,
            value,
            why,
        }))
    }

    async fn probed(
        &mut self,
        effect: Id,
        of: Id,
        what: &Probing,
    ) -> Result<EventKind, EngineError> {
        let (how, tool, happened, text) = match what {
            Probing::Started { tool, .. } => (Asking::Began, Some(tool.clone()), None, None),
            Probing::Said { happened, said, .. } => {
                (Asking::Done, None, *happened, Some(self.text(*said).await?))
            }
            Probing::Failed { why, .. } => {
                (Asking::Failed, None, None, Some(self.text(*why).await?))
            }
        };
        Ok(EventKind::Probed {
            effect,
            of,
            tool,
            how,
            happened,
            text,
        })
    }
}

/// Returns true for an entry whose event comes before those of the commit, because the commit follows from the entry.
pub(super) fn is_first(entry: &LedgerEntry) -> bool {
    matches!(
        entry,
        LedgerEntry::Claimed { .. }
            | LedgerEntry::Accepted { .. }
            | LedgerEntry::Refused { .. }
            | LedgerEntry::Released { .. }
            | LedgerEntry::Probe {
                what: Probing::Said { .. },
                ..
            }
    )
}

/// Returns the event of an entry about the session or a branch that needs nothing from other lines.
fn of_session(entry: &LedgerEntry) -> Option<EventKind> {
    Some(match entry {
        LedgerEntry::Claimed {
            epoch,
            owner,
            build,
            ..
        } => EventKind::Owner {
            epoch: *epoch,
            owner: owner.clone(),
            build: build.clone(),
        },
        LedgerEntry::Accepted {
            message,
            by,
            parent,
        } => EventKind::Accepted {
            message: message.clone(),
            by: by.as_ref().map(|by| by.role.clone()),
            who: by.as_ref().and_then(|by| by.who.clone()),
            parent: parent.clone(),
        },
        LedgerEntry::Ended(branch) => EventKind::BranchEnded { of: *branch },
        LedgerEntry::Superseded { branch, after } => EventKind::Superseded {
            of: *branch,
            after: *after,
        },
        LedgerEntry::Current(branch) => EventKind::Current { current: *branch },
        LedgerEntry::Adopted { branch, at } => EventKind::Adopted {
            of: *branch,
            upto: *at,
        },
        LedgerEntry::Paused { paused, by } => EventKind::Paused {
            paused: *paused,
            by: by.role.clone(),
            who: by.who.clone(),
        },
        LedgerEntry::Barred { tool, barred, by } => EventKind::Held {
            tool: tool.clone(),
            held: *barred,
            by: by.role.clone(),
            who: by.who.clone(),
        },
        LedgerEntry::StoreAccepted { .. } => EventKind::StoreAccepted,
        _ => return None,
    })
}

/// Returns the event of an attempt, and its effect.
fn of_attempt(entry: &LedgerEntry) -> Option<(Id, EventKind)> {
    Some(match entry {
        LedgerEntry::Started {
            effect, attempt, ..
        } => {
            let kind = EventKind::Began {
                effect: *effect,
                attempt: *attempt,
            };
            (*effect, kind)
        }
        LedgerEntry::Done {
            effect, attempt, ..
        } => (*effect, ended(*effect, *attempt, Tried::Done)),
        LedgerEntry::NotPerformed { effect, attempt } => {
            (*effect, ended(*effect, *attempt, Tried::NotPerformed))
        }
        LedgerEntry::Unknown { effect, attempt } => {
            (*effect, ended(*effect, *attempt, Tried::Unknown))
        }
        LedgerEntry::Late {
            effect, attempt, ..
        } => (*effect, ended(*effect, *attempt, Tried::Late)),
        LedgerEntry::Again { effect, at } => {
            let kind = EventKind::Attempt {
                effect: *effect,
                attempt: None,
                how: Tried::Again,
                again: Some(*at),
            };
            (*effect, kind)
        }
        LedgerEntry::Listed(effect) => (*effect, EventKind::Listed { effect: *effect }),
        LedgerEntry::WouldAsk(effect) => (*effect, EventKind::WouldAsk { effect: *effect }),
        _ => return None,
    })
}

fn ended(effect: Id, attempt: u32, how: Tried) -> EventKind {
    EventKind::Attempt {
        effect,
        attempt: Some(attempt),
        how,
        again: None,
    }
}

fn asked(why: Why) -> PendingKind {
    match why {
        Why::Approval => PendingKind::Approval,
        Why::Input => PendingKind::Input,
        Why::Doubt => PendingKind::Doubt,
        Why::Budget => PendingKind::Budget,
        Why::Repeat => PendingKind::Repeat,
        Why::Outage => PendingKind::Outage,
        Why::Wait => PendingKind::Event,
        Why::Elicited => PendingKind::Question,
    }
}
