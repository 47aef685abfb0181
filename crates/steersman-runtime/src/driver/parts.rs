//! The parts of a driver: plain data.

mod branches;
mod doubts;
mod effects;
mod outages;

pub(crate) use branches::{Branches, KeptBranch, ToAdopt, ToOpen};
pub(crate) use doubts::Doubts;
pub(crate) use effects::{Effects, KeptOut, Out, OutState};
pub(crate) use outages::{Outages, Seat};

use super::types::Event;
use super::{Driver, cancel, due, rest, step};
use crate::bind::Values;
use crate::load::Since;
use crate::session::Fate;
use crate::store::{Claim, InboxMessage, SessionId, SessionState};
use imbl::OrdMap;
use std::collections::VecDeque;
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::Why;
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::tick::effect::{Cancelled, Offered, Said};
use steersman_machine::view::mapping::Raw;

/// The owner of a session, and the lines that it writes.
#[derive(Clone)]
pub(super) struct Who {
    pub(super) session: SessionId,
    pub(super) claim: Claim,
    /// Random number that makes ids unique after a backup is restored. Written with the first line of this owner.
    pub(super) mark: u64,
    /// True once the first line of this owner was made.
    pub(super) claimed: bool,
    /// The last line that was made, and the next one.
    pub(super) last: Line,
    pub(super) next: Line,
    /// Amount written since the ledger's last checkpoint.
    pub(super) since: Since,
}

/// The network and the values that a session is bound to.
#[derive(Clone, Default)]
pub(super) struct Bound {
    /// `None` until the session has begun.
    pub(super) network: Option<Arc<Network>>,
    pub(super) values: Arc<Values>,
    /// True once the store knows what a program needs to drive the session.
    pub(super) needs_told: bool,
}

/// The session's inbox as its owner has read it.
#[derive(Clone, Default)]
pub(super) struct Mail {
    /// Messages already read, by id; removed when they are taken.
    pub(super) known: OrdMap<Name, InboxMessage>,
    /// Events that match no open wait so far.
    pub(super) events: Vec<InboxMessage>,
    pub(super) look: bool,
    /// Look at the inbox again once the pending time-outs are written.
    pub(super) late: bool,
    /// Number of messages that were ever delivered, as of the last time that the inbox was read to its end.
    pub(super) delivered: u64,
}

/// The course of a session: everything that was heard, everything that waits for the disk, and orders for the whole session.
#[derive(Clone)]
pub(super) struct Course {
    /// Everything that was heard and was not handled yet.
    pub(super) heard: VecDeque<Arc<Heard>>,
    /// Actions to take once a line is on disk, in the order of lines.
    pub(super) ahead: VecDeque<(Line, OnDisk)>,
    /// Numbers of lines and bytes in the batches after the last urgent one. The store may sync these batches later.
    pub(super) unhurried: (u64, usize),
    /// The state shown in session lists, as it was last written.
    pub(super) shown: Arc<SessionState>,
    /// Says if the session stops after each line.
    pub(super) stepping: step::Stepping,
    /// True once a stop was requested.
    pub(super) stopping: bool,
    /// A cancel of the whole session that has not reached all branches.
    pub(super) cancelling: Option<Arc<cancel::Everything>>,
    /// State that an earlier driver of the same owner left, until it is restored.
    pub(super) kept: Option<Arc<rest::Kept>>,
}

/// Something that was heard and waits for its turn.
#[derive(Clone)]
pub(crate) enum Heard {
    /// It happened outside.
    Event(Event),
    /// A time came, for this.
    Due(due::Due),
    /// The inbox was read, and this message of it has not been judged.
    Mail(InboxMessage),
    /// All messages of the inbox were judged; this many were ever delivered.
    MailRead(u64),
    /// A branch that has ticks is to be loaded.
    Load(Id),
    /// The binding of the session is to be loaded.
    Bind,
    /// The effects that the last owner left outstanding are to be taken up.
    Recover,
    /// The state that an earlier driver of the same owner left is to be restored.
    Restore,
    /// The last line of this owner is to be written.
    GiveBack,
    /// Events are to be matched with the waits that are open.
    Events,
    /// The requests of this branch are repeated, because its former owner may not have carried them out.
    Ask(Id),
    /// This branch was made current again, and is loaded.
    Current(Id),
}

/// Something to offer to a branch, before it is translated into the machine's terms.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// An offer that is already in the machine's terms.
    Offer(Box<Offered>),
    /// The raw outcome of a call; mapped when it is offered.
    Raw {
        effect: Id,
        attempt: u32,
        raw: Raw,
        by: Option<By>,
        simulated: bool,
    },
    /// An interrupt. What the ledger knows and what was streamed by then is added when it is offered.
    Interrupt(Said),
    /// A cancel by this person; completed like an interrupt.
    Cancel(Cancelled, By),
}

/// Action to take when a line is on disk.
#[derive(Clone)]
pub(crate) enum OnDisk {
    /// Begin this attempt.
    Start(Id, u32),
    /// Begin the attempt to notify a person.
    Reach(Id),
    /// Begin an attempt of a probe: the probe, the effect in doubt, the attempt.
    Probe(Id, Id, u32),
    /// Tell the sender of this message its fate.
    Receipt(Name, Fate),
    /// Look at the inbox and the box of events.
    Look,
}

impl Driver {
    /// Checks the invariants of all parts by a recount. Returns what is wrong. While what an earlier driver left is not restored,
    /// the parts do not agree yet.
    pub(super) fn recount(&self) -> Result<(), String> {
        if self.course.kept.is_some() {
            return Ok(());
        }
        self.branches.recount()?;
        self.effects.recount()?;
        let live = self.branches.live();
        if let Some((id, out)) =
            (self.effects.outs().iter()).find(|(_, o)| !live.contains_key(&o.branch))
        {
            return Err(format!(
                "{id} is out, and branch {} has no ticks",
                out.branch
            ));
        }
        self.doubts.recount(|id| {
            let doubted = self.ledger.hold(id, Why::Doubt).is_some();
            doubted && !self.effects.outs().contains_key(&id)
        })
    }
}
