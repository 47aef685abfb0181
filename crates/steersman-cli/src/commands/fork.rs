//! `fork`: opens a branch next to the session.

use crate::cli::{Global, Own};
use crate::commands::branching::{Begun, Spot, branch_label, free};
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, typed};
use steersman::{Act, Fork};

pub(crate) const LISTED: &str =
    "Try something else from a line on, beside the session; dry unless --live";

/// Try something else from a line on, on a branch of its own. Dry unless --live: effects are simulated.
#[derive(Debug, clap::Args)]
pub(crate) struct ForkArgs {
    /// SESSION[:BRANCH][@LINE]: where the branch begins [default: the last line].
    address: String,
    /// Say this there first.
    #[arg(long, value_name = "TEXT")]
    say: Option<String>,
    /// A name for the branch.
    #[arg(long, value_name = "NAME", value_parser = branch_label)]
    label: Option<String>,
    /// Let effects touch the world there.
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    own: Own,
}

pub(crate) async fn run(
    args: ForkArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let spot = Spot::find(&args.address, global, &args.own.drive).await?;
    free(&spot.target.inspection, args.label.as_deref())?;
    let act = Act::fork(Fork {
        branch: Some(spot.branch),
        at: spot.line,
        label: args.label.as_deref().map(Into::into),
        say: args.say.clone(),
        live: args.live,
    });
    let Some(begun) = Begun::reach(&spot, act, &args.own, printer, true).await? else {
        return Ok(Exit::Answered);
    };
    let (name, short) = (begun.name(), begun.short());
    let how = if args.live {
        "live: its effects touch the world"
    } else {
        "dry: what would touch the world is simulated"
    };
    printer.talk("");
    printer.talk(format!(
        "{name} is a fork of {} at @{}, {how}. {} goes on as it was.",
        spot.name, begun.from, spot.name
    ));
    begun.report(args.say.is_some(), printer)?;
    let mut commands = vec![
        format!("steersman show {short}"),
        format!("steersman send {short}:{name} \"...\""),
    ];
    commands.extend(begun.take_over());
    for command in commands {
        printer.talk(format!("  {}", typed(&command)));
    }
    Ok(begun.exit())
}
