//! `adopt`: continues the session with a branch.

use crate::cli::{Global, Own};
use crate::commands::act::Reached;
use crate::commands::branching::Spot;
use crate::commands::there::There;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, yellow};
use crate::words::{line as one_line, wait};
use steersman::Act;
use steersman::runtime::engine::Inspection;
use steersman_client::{Adopt, Given};
use steersman_machine::stored::interaction::Cause;

pub(crate) const LISTED: &str = "Go on with what a branch came to";

/// Go on with what a branch came to. Refused where something would be lost.
#[derive(Debug, clap::Args)]
pub(crate) struct AdoptArgs {
    /// SESSION:BRANCH[@LINE]: the branch, and up to which of its lines [default: all that was not simulated].
    address: String,
    #[command(flatten)]
    own: Own,
}

pub(crate) async fn run(
    args: AdoptArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if let Some(there) = There::at(&args.address, global, &args.own).await? {
        return at_server(&args, &there, printer).await;
    }
    let spot = Spot::find(&args.address, global, &args.own.drive).await?;
    if !spot.named {
        return Err(no_branch(&args, &spot.others()));
    }
    let act = Act::adopt(spot.branch, spot.line);
    let (target, name) = (&spot.target, &spot.name);
    match target.reach(act, &args.own, printer).await {
        Ok(Reached::Driven(play, ended, _)) => {
            printer.talk("");
            let done = again(&spot);
            printer.talk(format!("The session goes on with {name}.{done}"));
            let engine = target.place.engine();
            let now = engine.inspect(&target.inspection.info.id).await?;
            for gone in gone(&target.inspection, &now) {
                printer.talk(yellow(&format!("  {gone}")));
            }
            play.report(ended).await
        }
        Ok(other) => target.noted(&other, printer).await,
        Err(error) if error.exit == Exit::Usage && spot.goes_back() => {
            let short = target.place.short(&target.inspection.info.id).await?;
            Err(rewinds(error, &short, name))
        }
        Err(error) => Err(error),
    }
}

/// Returns the error for an address without a branch.
fn no_branch(args: &AdoptArgs, others: &[String]) -> CommandError {
    let error = CommandError::usage(format!("`{}` names no branch", args.address));
    if others.is_empty() {
        error.hint("it has no other branch: `steersman fork SESSION@LINE` makes one")
    } else {
        error.hint(format!("SESSION:BRANCH; it has: {}", others.join(", ")))
    }
}

/// Proposes to rewind to the end of a branch that cannot be adopted.
fn rewinds(error: CommandError, short: &str, name: &str) -> CommandError {
    error.hint(format!(
        "to go on with it all the same, and leave that behind: `steersman rewind {short}:{name}@head`"
    ))
}

/// Adopts a branch at a server.
async fn at_server(
    args: &AdoptArgs,
    there: &There,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let seen = &there.seen;
    let Some(branch) = &there.branch else {
        return Err(no_branch(args, &seen.others));
    };
    let adopt = Adopt {
        at: seen.line.map(|line| line.0),
    };
    let (branches, given) = (there.remote.client.branches(), Given::default());
    let receipt = branches.adopt(there.id(), branch, &adopt, &given).await;
    let receipt = receipt.map_err(|error| {
        let error = CommandError::from(error);
        let back = seen.take_over.as_ref().filter(|of| !of.adopts);
        match back.filter(|_| error.exit == Exit::Usage) {
            Some(of) => rewinds(error, &seen.short, &of.branch),
            None => error,
        }
    });
    there.report(&receipt?, printer)
}

/// Returns a note on what runs again, now for real. The branch's lines from its first simulated effect on, and the leaf
/// that it ended in, are not adopted.
fn again(spot: &Spot) -> &'static str {
    let snapshot = spot.target.branch().map(|branch| &branch.snapshot);
    let first = snapshot.and_then(|snapshot| Some((snapshot, snapshot.first_simulated?)));
    // If the adopted part ends before that effect, nothing runs again.
    let first = first.filter(|(_, first)| spot.line.is_none_or(|line| line >= *first));
    let Some((snapshot, _)) = first else {
        return "";
    };
    let mut ends = snapshot
        .agents
        .values()
        .filter_map(|agent| agent.turn.ended);
    if ends.any(|(_, cause)| cause == Cause::Leaf) {
        return " What was simulated there, or could not be, is asked for and done now.";
    }
    " What was simulated there is asked for and done now."
}

/// Lists the waits of the formerly current branch that were cancelled with it.
fn gone(before: &Inspection, now: &Inspection) -> Vec<String> {
    let waited = before
        .pending
        .iter()
        .filter(|p| p.branch == before.current && now.current != before.current);
    let gone = waited.filter(|p| now.pending.iter().all(|n| n.effect != p.effect));
    gone.map(|p| {
        let what = p.tool.as_deref().unwrap_or(&p.text);
        let what = one_line(what, 60);
        format!("cancelled: {} {} ({what})", wait(p.kind), p.effect)
    })
    .collect()
}
