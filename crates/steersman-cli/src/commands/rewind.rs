//! `rewind`: goes back to a line and leaves the lines after it behind.

use crate::cli::{Global, Own};
use crate::commands::branching::{Begun, Spot, branch_label, told};
use crate::commands::there::There;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, typed, yellow};
use steersman::Act;
use steersman::views::elsewhere::behind;
use steersman::views::screen::{Ask, WaitsScreen};
use steersman_client::{Given, OpenedOrReceipt, Rewind};
use steersman_machine::stored::ids::Line;

pub(crate) const LISTED: &str = "Go back to a line; what came after stays readable";

/// Go back to a line. What came after is left behind, and stays readable.
#[derive(Debug, clap::Args)]
pub(crate) struct RewindArgs {
    /// SESSION[:BRANCH]@LINE: where to go back to.
    address: String,
    /// Say this there first.
    #[arg(long, value_name = "TEXT")]
    say: Option<String>,
    /// A name for the branch that begins there.
    #[arg(long, value_name = "NAME", value_parser = branch_label)]
    label: Option<String>,
    #[command(flatten)]
    own: Own,
}

/// Returns the effects that the rewind leaves behind, before anything goes on from the line.
async fn left_ahead(spot: &Spot, line: Line) -> Result<Vec<String>, CommandError> {
    let seen = &spot.target.inspection;
    if behind(&seen.ledger, spot.branch, line).next().is_none() {
        return Ok(Vec::new());
    }
    let ask = Ask {
        branch: Some(spot.branch.to_string()),
        line: Some(line.to_string()),
        ..Ask::default()
    };
    let waits: WaitsScreen = spot.target.place.screen_of(&seen.info.id, &ask).await?;
    Ok(told(&waits.behind))
}

/// Returns what is said of an effect that is left behind.
fn stays(effect: &str) -> String {
    let stands = if effect.ends_with(" is done") {
        "and stays so"
    } else {
        "and is not taken back: `steersman effects` tells what is known of it"
    };
    format!("  {effect} there, {stands}")
}

pub(crate) async fn run(
    args: RewindArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let no_line = || {
        let address = &args.address;
        CommandError::usage(format!("`{address}` names no line to go back to")).hint(format!(
            "a line (`steersman rewind {address}@12`), counted back (@-2), or the first that calls a tool (@find_order)"
        ))
    };
    if let Some(there) = There::at(&args.address, global, &args.own).await? {
        let rewind = Rewind {
            at: there.seen.line.ok_or_else(no_line)?.0,
            branch: Some(there.seen.branch.clone()),
            label: args.label.clone(),
            say: args.say.clone(),
        };
        let ahead = told(&there.seen.behind);
        let (branches, given) = (there.remote.client.branches(), Given::default());
        return match branches.rewind(there.id(), &rewind, &given).await? {
            OpenedOrReceipt::Opened(opened) => {
                for effect in &ahead {
                    printer.talk(yellow(&stays(effect)));
                }
                let begun = Begun::at_server(&there, &opened, printer, false).await?;
                report(&args, (&*there.seen.branch, &ahead[..]), &begun, printer)
            }
            OpenedOrReceipt::Receipt(receipt) => there.report(&receipt, printer),
        };
    }
    let spot = Spot::find(&args.address, global, &args.own.drive).await?;
    let line = spot.line.ok_or_else(no_line)?;
    let (label, say) = (args.label.as_deref(), args.say.as_deref());
    let act = Act::rewind(Some(spot.branch), line, label, say);
    let ahead = match act.refusal(&spot.target.inspection) {
        None => left_ahead(&spot, line).await?,
        Some(_) => Vec::new(),
    };
    for effect in &ahead {
        printer.talk(yellow(&stays(effect)));
    }
    let Some(begun) = Begun::reach(&spot, act, &args.own, printer, false).await? else {
        return Ok(Exit::Answered);
    };
    report(&args, (&*spot.name, &ahead[..]), &begun, printer)
}

/// Reports the branch that goes on from the line. `ahead` are the effects that were told before.
fn report(
    args: &RewindArgs,
    (left, ahead): (&str, &[String]),
    begun: &Begun,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let (name, short) = (begun.name(), begun.short());
    printer.talk("");
    printer.talk(format!(
        "Back at @{}: {name} is current. What came after on {left} is left behind, and stays readable.",
        begun.from()
    ));
    // Those that began after the first look.
    for effect in begun.left().iter().filter(|effect| !ahead.contains(effect)) {
        printer.talk(yellow(&stays(effect)));
    }
    begun.report(args.say.is_some(), printer)?;
    for command in [
        format!("steersman show {short}"),
        format!("steersman send {short} \"...\""),
        format!("steersman effects {short}"),
    ] {
        printer.talk(format!("  {}", typed(&command)));
    }
    Ok(begun.exit())
}
