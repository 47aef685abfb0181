//! `rewind`: goes back to a line and leaves the lines after it behind.

use crate::cli::{Global, Own};
use crate::commands::branching::{Begun, Spot, branch_label, told};
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, typed, yellow};
use steersman::Act;
use steersman::views::elsewhere::behind;
use steersman_machine::stored::ids::{Id, Line};

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
    let effects: Vec<Id> = behind(&seen.ledger, spot.branch, line).collect();
    if effects.is_empty() {
        return Ok(Vec::new());
    }
    let log = spot.target.place.log(&seen.info.id).await?;
    Ok(told(&log, seen, effects))
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
    let spot = Spot::find(&args.address, global, &args.own.drive).await?;
    let Some(line) = spot.line else {
        let address = &args.address;
        return Err(
            CommandError::usage(format!("`{address}` names no line to go back to")).hint(format!(
                "a line (`steersman rewind {address}@12`), counted back (@-2), or the first that calls a tool (@find_order)"
            )),
        );
    };
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
    let (name, short) = (begun.name(), begun.short());
    printer.talk("");
    printer.talk(format!(
        "Back at @{}: {name} is current. What came after on {} is left behind, and stays readable.",
        begun.from, spot.name
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
