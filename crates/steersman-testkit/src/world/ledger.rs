//! Ledger entries of a test's log: those that a reader of a trace needs.

use super::{Seen, World};
use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::{About, Hold, LedgerEntry, LogLine, Release, Why};
use steersman_machine::stored::ids::{Digest, Id, Name};
use steersman_machine::tick::effect::{
    BranchEnd, Fact, Offered, Request, ToolWork, Until, Wish, Work,
};

impl World {
    /// Adds the ledger entries that go with a tick: those of the offers that were taken, holds and starts of effects, and
    /// branches that opened or ended.
    pub(super) fn ledger(
        &mut self,
        line: &mut LogLine,
        offered: &[Offered],
        left: &[(usize, Until)],
        wishes: &[Wish],
        requests: &[Request],
        ended: Option<&BranchEnd>,
    ) {
        let taken = |i: usize| !left.iter().any(|(k, _)| *k == i);
        for (i, offer) in offered.iter().enumerate() {
            if !taken(i) && !matches!(offer, Offered::Opened(_)) {
                continue;
            }
            self.ledger_of(line, offer, taken(i));
        }
        for wish in wishes {
            if let Work::Tool(tool) = &wish.work {
                match hold(wish.id, tool, &[]) {
                    Some(hold) => line.ledger.push(LedgerEntry::Hold(hold)),
                    None if !tool.class.is_free() => {
                        line.ledger.push(self.start_effect(wish.id, tool));
                    }
                    None => {}
                }
            }
        }
        for request in requests {
            if let Request::Open { branch, .. } = request {
                line.ledger.push(LedgerEntry::Opened {
                    branch: *branch,
                    from: line.branch,
                    at: line.n,
                });
            }
        }
        if let Some(end) = ended
            && end.branch != Id::MAIN
        {
            line.ledger.push(LedgerEntry::Ended(end.branch));
        }
    }

    /// Adds the entries of an offer. `whole` is false for an opening of a branch whose message was left.
    fn ledger_of(&mut self, line: &mut LogLine, offer: &Offered, whole: bool) {
        let ledger = &mut line.ledger;
        match offer {
            Offered::Start(start) => {
                let ids = start.message.iter().map(|m| m.id.clone());
                ledger.extend(ids.map(accepted));
            }
            Offered::Message(said) | Offered::Interrupt { message: said, .. } => {
                ledger.push(accepted(said.id.clone()));
            }
            Offered::Opened(opened) => {
                let ids = opened.say.iter().map(|m| m.id.clone());
                ledger.extend(ids.filter(|_| whole).map(accepted));
                if opened.rewound {
                    let (branch, after) = (self.current, line.prev);
                    ledger.push(LedgerEntry::Superseded { branch, after });
                }
                if opened.fork.is_none() {
                    let from = match line.prev.0.checked_sub(1) {
                        Some(k) => self.lines[k as usize].branch,
                        None => Id::MAIN,
                    };
                    ledger.push(LedgerEntry::Opened {
                        branch: line.branch,
                        from,
                        at: line.prev,
                    });
                }
                if opened.rewound {
                    ledger.push(LedgerEntry::Current(line.branch));
                    // Effects of the superseded lines that may have happened.
                    let started = opened.known.iter();
                    let started = started.filter(|(_, f)| !matches!(f, Fact::NeverStarted));
                    ledger.extend(started.map(|(id, _)| LedgerEntry::Listed(*id)));
                }
            }
            Offered::Adopt { branch, at, .. } => {
                if line.commit.as_ref().is_some_and(|c| c.adoption.is_some()) {
                    ledger.push(LedgerEntry::Adopted {
                        branch: *branch,
                        at: *at,
                    });
                }
            }
            Offered::Outcome {
                effect, outcome, ..
            } => match self.seen.get(effect) {
                Some(Seen::Started(attempt)) => {
                    let (effect, attempt) = (*effect, *attempt);
                    ledger.push(LedgerEntry::Done {
                        effect,
                        attempt,
                        kept: None,
                    });
                    self.seen
                        .insert(effect, Seen::Done(Box::new(outcome.clone())));
                }
                Some(Seen::Unknown(_) | Seen::Done(_)) | None => {}
            },
            Offered::Edited { .. }
            | Offered::Anew { .. }
            | Offered::Clock
            | Offered::NotAdopted { .. }
            | Offered::Ended { .. }
            | Offered::Join { .. }
            | Offered::Edit { .. }
            | Offered::Cancel { .. } => {}
        }
    }

    /// Notes an attempt of an effect that touches the world, and returns its ledger entry.
    pub(crate) fn start_effect(&mut self, effect: Id, tool: &ToolWork) -> LedgerEntry {
        let attempt = match self.seen.get(&effect) {
            Some(Seen::Started(n) | Seen::Unknown(n)) => n + 1,
            Some(Seen::Done(_)) | None => 1,
        };
        self.seen.insert(effect, Seen::Started(attempt));
        LedgerEntry::Started {
            effect,
            attempt,
            epoch: 1,
            digest: digest(tool),
            class: tool.class,
        }
    }

    /// Notes that the outcome of an attempt is unknown, and returns the ledger entries for that.
    pub(crate) fn doubt(&mut self, effect: Id, tool: &ToolWork) -> Vec<LedgerEntry> {
        let attempt = match self.seen.get(&effect) {
            Some(Seen::Started(n) | Seen::Unknown(n)) => *n,
            Some(Seen::Done(_)) | None => 1,
        };
        self.seen.insert(effect, Seen::Unknown(attempt));
        let hold = Hold {
            effect,
            why: Why::Doubt,
            digest: digest(tool),
            by: vec!["user".into()],
            ask: None,
            due: None,
            about: None,
        };
        vec![
            LedgerEntry::Unknown { effect, attempt },
            LedgerEntry::Hold(hold),
        ]
    }
}

/// Returns the digest of a tool's name and arguments.
pub(crate) fn digest(tool: &ToolWork) -> Digest {
    let args = steersman_machine::values::json::comparable(&tool.args)
        .map_or_else(|_| tool.args.to_string(), |args| args.to_string());
    Digest::of(format!("{}\n{args}", tool.tool).as_bytes())
}

/// Returns the hold that keeps a tool from running, after these people have approved it.
pub(super) fn hold(effect: Id, tool: &ToolWork, approved: &[Name]) -> Option<Hold> {
    let (why, by, about) = match (tool.next_approval(approved), tool.inputs.first()) {
        (Some(approve), _) => (Why::Approval, approve.by.clone(), None),
        (None, Some((input, _))) => (
            Why::Input,
            "user".into(),
            Some(About::Parameter(input.clone())),
        ),
        (None, None) => return None,
    };
    Some(Hold {
        effect,
        why,
        digest: digest(tool),
        by: vec![by],
        ask: None,
        due: None,
        about,
    })
}

/// Returns the entry with which a person ends a hold of an effect.
pub(super) fn released(
    effect: Id,
    why: Why,
    how: Release,
    by: &str,
    about: Option<About>,
) -> LedgerEntry {
    LedgerEntry::Released {
        effect,
        why,
        how,
        about,
        by: By::from(by).into(),
        body: None,
    }
}

/// Returns the entry for a message of the user that was accepted.
pub(super) fn accepted(message: Name) -> LedgerEntry {
    LedgerEntry::Accepted {
        message,
        by: Some(By::default()),
        parent: None,
    }
}
