//! A line that is being built: the result of a tick, and the ledger entries that go with it.

use super::Job;
use super::budget::Claim;
use crate::inbox::Message;
use crate::store::{InboxMessage, WaitChange};
use std::sync::Arc;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::commit::{
    About, Commit, Hold, LedgerEntry, Probing, Release, Text, Why,
};
use steersman_machine::stored::ids::{Body, Digest, Id, Line, Name, Time};
use steersman_machine::stored::outcome::NewArtifact;
use steersman_machine::tick::effect::Step;
use steersman_machine::view::artifact::Content;

/// Maximum number of characters of a refusal in the log. The text is for people and may quote input from outside, so it is cut.
const REFUSAL: usize = 200;

/// A line that is not written yet.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) n: Line,
    /// Time of the tick. `None` means the time at which the line is written.
    pub(crate) at: Option<Time>,
    pub(crate) branch: Option<Id>,
    pub(crate) commit: Option<Commit>,
    pub(crate) bodies: Vec<Text>,
    /// Contents of artifacts that the commit names; stored before the line is.
    pub(crate) contents: Vec<Content>,
    pub(crate) ledger: Vec<LedgerEntry>,
    pub(crate) consumed: Vec<Name>,
    pub(crate) events_taken: Vec<Name>,
    pub(crate) waits: Vec<WaitChange>,
    /// True if somebody waits for the line: it is synced immediately, with all lines before it.
    pub(crate) urgent: bool,
    /// An effect of class `unsafe` begins once the line is on disk.
    pub(crate) begins_unsafe: bool,
    /// Actions to take when the line is on disk.
    pub(crate) then: Vec<super::OnDisk>,
    /// Effects that may begin once the line is appended, before it is on disk.
    pub(crate) ready: Vec<Id>,
    /// True if the snapshot is folded over this line when it is written. The snapshot of a line with a step comes from its tick.
    pub(crate) folds: bool,
    /// Calls that a person was asked about and that this line wishes again.
    pub(crate) wished_again: Vec<Again>,
}

/// A call that is wished again, because a person approved it with other arguments, or because something that it reads has changed.
pub(crate) struct Again {
    /// The agent and its call.
    pub(crate) call: (Id, Id),
    /// The session as the person saw it. `None` if it has changed: the new effect shows the session as it is.
    pub(crate) asked_in: Option<Arc<Snapshot>>,
    /// The change, in words for people.
    pub(crate) changed: Option<String>,
}

impl Job<'_, '_> {
    /// Begins a line of a branch. If the branch has no ticks any more, the line belongs to the current branch, which always has
    /// ticks: ledger entries about an effect, a search or a message do not depend on the line's branch.
    pub(super) fn draft(&self, branch: Id) -> Draft {
        let has_ticks = self.d.branches.live().contains_key(&branch);
        let on = if has_ticks {
            branch
        } else {
            self.d.ledger.current
        };
        Draft::new(self.d.who.next(), on)
    }
}

impl Draft {
    /// Begins a line of a branch that has ticks; use [`Job::draft`] where that is not known.
    pub(super) fn new(n: Line, branch: Id) -> Self {
        Self {
            n,
            branch: Some(branch),
            ..Self::default()
        }
    }

    /// Begins the line of a step with its commit and texts.
    pub(crate) fn of(n: Line, branch: Id, step: &mut Step) -> Self {
        Self {
            at: Some(step.snapshot.now),
            commit: step.commit.take(),
            bodies: std::mem::take(&mut step.bodies),
            contents: std::mem::take(&mut step.contents),
            ..Self::new(n, branch)
        }
    }

    /// Returns true if there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.commit.is_none()
            && self.ledger.is_empty()
            && self.consumed.is_empty()
            && self.events_taken.is_empty()
    }

    /// Adds a text to this line and returns its body.
    pub(crate) fn body(&mut self, text: &str) -> Body {
        let body = Body::new(self.n, self.bodies.len() as u32);
        self.bodies.push(Text::Here(text.into()));
        body
    }

    /// Returns the text of a body of this line; `None` if the body is of another line.
    pub(crate) fn text(&self, body: Body) -> Option<Arc<str>> {
        if body.line() != self.n {
            return None;
        }
        match self.bodies.get(body.k() as usize) {
            Some(Text::Here(text)) => Some(text.text().clone()),
            _ => None,
        }
    }

    /// Accepts an inbox message with this line and records why its request is refused. The text of the message is added to the
    /// reason, so that it stays readable in the log.
    pub(crate) fn refuse(&mut self, message: &InboxMessage, why: &str) {
        let wanted = self.accept(message);
        let mut why: String = why.chars().take(REFUSAL).collect();
        if let Some(said) = wanted.as_ref().and_then(|wanted| wanted.wanted.said()) {
            why.push_str(": ");
            why.push_str(said);
        }
        let why = self.body(&why);
        self.ledger.push(LedgerEntry::Refused {
            message: message.id.clone(),
            why,
        });
    }

    /// Accepts an inbox message with this line. Returns the message, if it can be read.
    pub(crate) fn accept(&mut self, message: &InboxMessage) -> Option<Message> {
        let wanted = Message::decode(message).ok();
        self.ledger.push(LedgerEntry::Accepted {
            message: message.id.clone(),
            by: wanted.as_ref().and_then(|wanted| wanted.by.clone()),
            parent: wanted.as_ref().and_then(|wanted| wanted.parent.clone()),
        });
        self.consumed.push(message.id.clone());
        wanted
    }

    /// Opens a hold. A person sees it, so the line is urgent.
    pub(crate) fn hold(&mut self, hold: NewHold<'_>) {
        let ask = hold.ask.map(|ask| self.body(ask));
        self.urgent = true;
        self.ledger.push(LedgerEntry::Hold(Hold {
            effect: hold.effect,
            why: hold.why,
            digest: hold.digest,
            by: hold.by,
            ask,
            due: hold.due,
            about: hold.about,
        }));
    }

    /// Returns true if a hold of this kind ends with this line.
    pub(crate) fn releases(&self, of: Id, kind: Why) -> bool {
        self.ledger.iter().any(|entry| {
            matches!(entry, LedgerEntry::Released { effect, why, .. } if (*effect, *why) == (of, kind))
        })
    }

    /// Returns true if a hold of this kind opens with this line.
    pub(crate) fn holds(&self, of: Id, kind: Why) -> bool {
        self.ledger.iter().any(
            |entry| matches!(entry, LedgerEntry::Hold(hold) if (hold.effect, hold.why) == (of, kind)),
        )
    }

    /// Adds a note to the ledger entries.
    pub(crate) fn note(&mut self, note: Note) {
        let entry = match note {
            Note::Done(effect, attempt) => {
                self.urgent = true;
                LedgerEntry::Done {
                    effect,
                    attempt,
                    kept: None,
                }
            }
            Note::Kept(effect, attempt, outcome) => {
                self.urgent = true;
                let kept = Some(self.body(&outcome));
                LedgerEntry::Done {
                    effect,
                    attempt,
                    kept,
                }
            }
            Note::NotPerformed(effect, attempt) => LedgerEntry::NotPerformed { effect, attempt },
            Note::Unknown(effect, attempt) => {
                self.urgent = true;
                LedgerEntry::Unknown { effect, attempt }
            }
            Note::Late(effect, attempt, said) => {
                let body = Some(self.body(&said));
                LedgerEntry::Late {
                    effect,
                    attempt,
                    body,
                }
            }
            Note::Released {
                effect,
                why,
                how,
                by,
                text,
            } => {
                self.urgent = true;
                let body = text.map(|text| self.body(&text));
                LedgerEntry::Released {
                    effect,
                    why,
                    how,
                    about: None,
                    by,
                    body,
                }
            }
            Note::Probed {
                effect,
                of,
                attempt,
                happened,
                said,
            } => {
                let said = self.body(&said);
                LedgerEntry::Probe {
                    effect,
                    of,
                    what: Probing::Said {
                        attempt,
                        happened,
                        said,
                    },
                }
            }
            Note::Adopted(branch, at) => LedgerEntry::Adopted { branch, at },
            Note::Spend(effect, tokens, micros) => LedgerEntry::Spend {
                effect,
                tokens,
                micros,
            },
            Note::Unbelievable(effect, claim) => LedgerEntry::Unbelievable {
                effect,
                input: claim.input,
                output: claim.output,
                micros: claim.micros,
            },
        };
        self.ledger.push(entry);
    }
}

/// A hold to open.
pub(crate) struct NewHold<'a> {
    pub(crate) effect: Id,
    pub(crate) why: Why,
    pub(crate) digest: Digest,
    pub(crate) by: Vec<Name>,
    pub(crate) ask: Option<&'a str>,
    pub(crate) due: Option<Time>,
    pub(crate) about: Option<About>,
}

/// A ledger entry that is written if its offer is taken.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// An attempt was performed, and a branch takes its outcome.
    Done(Id, u32),
    /// An attempt was performed. No branch takes the outcome, so the ledger keeps it: here as JSON.
    Kept(Id, u32, String),
    /// An attempt was not performed.
    NotPerformed(Id, u32),
    /// Nobody knows whether an attempt was performed.
    Unknown(Id, u32),
    /// An attempt of an effect that was settled before says this.
    Late(Id, u32, String),
    /// A probe answered.
    Probed {
        effect: Id,
        of: Id,
        attempt: u32,
        happened: Option<bool>,
        said: String,
    },
    Released {
        effect: Id,
        why: Why,
        how: Release,
        by: Decider,
        text: Option<String>,
    },
    /// The cost of a model call: effect, tokens, money in millionths.
    Spend(Id, u64, u64),
    /// Usage that a provider reported and that is impossible.
    Unbelievable(Id, Claim),
    Adopted(Id, Line),
}

/// An offer for a tick, with the entries to write if it is taken.
#[derive(Clone)]
pub(crate) struct Offer {
    pub(crate) what: super::What,
    pub(crate) notes: Vec<Note>,
    /// The inbox message from which the offer was made.
    pub(crate) message: Option<InboxMessage>,
    /// The event in the store's box that this offer takes.
    pub(crate) event: Option<Name>,
    /// Artifacts that came with the event or message.
    pub(crate) came: Vec<NewArtifact>,
    /// For a cancel: messages to the branch, which are dropped if the cancel ends the branch.
    pub(crate) drops: Vec<Offer>,
    /// True for the last part of a cancel that has ended other branches: its message is taken even if nothing is open on this
    /// branch.
    pub(crate) ends_others: bool,
    /// For a call that is asked for again: what has changed since its question, in words for people. The message of the offer is then
    /// refused.
    pub(crate) changed: Option<String>,
}

impl Offer {
    pub(crate) fn new(what: super::What) -> Self {
        Self {
            what,
            notes: Vec::new(),
            message: None,
            event: None,
            came: Vec::new(),
            drops: Vec::new(),
            ends_others: false,
            changed: None,
        }
    }
}
