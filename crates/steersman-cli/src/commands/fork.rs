//! `fork`: opens a branch next to the session.

use crate::cli::{Global, Own};
use crate::commands::branching::{Begun, Spot, branch_label, free};
use crate::commands::there::There;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, typed};
use steersman::{Act, Fork};
use steersman_client::{Given, NewBranch, OpenedOrReceipt};

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
    if let Some(there) = There::at(&args.address, global, &args.own).await? {
        let new = NewBranch {
            at: there.seen.line.map(|line| line.0),
            from: Some(there.seen.branch.clone()),
            label: args.label.clone(),
            say: args.say.clone(),
            live: Some(args.live),
        };
        let (branches, given) = (there.remote.client.branches(), Given::default());
        return match branches.fork(there.id(), &new, &given).await? {
            OpenedOrReceipt::Opened(opened) => {
                let begun = Begun::at_server(&there, &opened, printer, true).await?;
                report(&args, &there.seen.branch, &begun, printer)
            }
            OpenedOrReceipt::Receipt(receipt) => there.report(&receipt, printer),
        };
    }
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
    report(&args, &spot.name, &begun, printer)
}

/// Reports a branch that was opened next to another one.
fn report(
    args: &ForkArgs,
    beside: &str,
    begun: &Begun,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let (name, short) = (begun.name(), begun.short());
    let how = if args.live {
        "live: its effects touch the world"
    } else {
        "dry: what would touch the world is simulated"
    };
    printer.talk("");
    printer.talk(format!(
        "{name} is a fork of {beside} at @{}, {how}. {beside} goes on as it was.",
        begun.from()
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
