//! The parts of a driver: plain data, each in a module of its own with private fields.
//!
//! A part gets what it needs as arguments and knows no other part. Its methods tell what happens to the session, and its doc comment
//! states its invariants, which its `recount` checks: in programs with debug assertions after each job ([`Driver::recount`]).
//! What needs several parts, the log or the view is decided by [`Job`](super::Job).
//!
//! | part | holds |
//! |---|---|
//! | [`Who`], [`Bound`] | the owner and its lines; network and values |
//! | [`Branches`] | the branches that have ticks, what is offered to them, and what follows for branches from a line |
//! | [`Effects`] | the effects that are out, with the table of their states, their queues, the places that do not answer, and the budget |
//! | [`Asides`] | effects in doubt that no branch waits for; probes and notifications |
//! | [`Mail`] | the inbox as it was read |
//! | [`Searches`], [`Following`] | searches over branches; tool lists of servers |
//! | [`Course`] | what was heard, what waits for the disk, step mode, stop and cancel, what lists show |

mod asides;
mod branches;
mod course;
mod effects;
mod mail;
mod searches;
mod servers;
#[cfg(test)]
mod tests;
mod who;

pub(crate) use asides::Asides;
pub(crate) use branches::{Branches, KeptBranch, ToAdopt, ToOpen};
pub(crate) use course::{Course, Stepping};
pub(crate) use effects::{Effects, KeptOut, Out, OutState, Seat, tool_digests};
pub(crate) use mail::Mail;
pub(crate) use searches::{Judging, Node, Part, Searches, Todo};
pub(crate) use servers::{Following, OpenAt};
pub(crate) use who::{Bound, Who};

use super::types::{Event, Told};
use super::{Driver, due};
use crate::session::Fate;
use crate::store::InboxMessage;
use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::Why;
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::tick::effect::{Cancelled, Offered, Said};
use steersman_machine::view::mapping::Raw;

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
    /// Tell an attempt about its step: the effect, the attempt, the name of the step.
    Step(Id, u32, Name, Box<Told>),
    /// Tell the sender of this message its fate.
    Receipt(Name, Fate),
    /// Look at the inbox and the box of events.
    Look,
}

/// Checks the invariants of all parts by a recount. Returns what is wrong. While what an earlier driver left is not restored,
/// the parts do not agree yet.
pub(super) fn recount(driver: &Driver) -> Result<(), String> {
    if driver.course.is_to_restore() {
        return Ok(());
    }
    driver.course.recount()?;
    driver.mail.recount(|id| driver.ledger.accepted(id))?;
    driver.searches.recount()?;
    driver.servers.recount()?;
    driver.branches.recount()?;
    driver.effects.recount()?;
    let live = driver.branches.live();
    if let Some((id, out)) =
        (driver.effects.outs().iter()).find(|(_, o)| !live.contains_key(&o.branch))
    {
        return Err(format!(
            "{id} is out, and branch {} has no ticks",
            out.branch
        ));
    }
    let is_left = |id| {
        let doubted = driver.ledger.hold(id, Why::Doubt).is_some();
        doubted && !driver.effects.outs().contains_key(&id)
    };
    let reached = |effect| driver.ledger.reached(effect).is_some();
    driver.asides.recount(is_left, reached)
}
