//! `release`: lets the effects begin that `hold` prevents, or the calls that wait for a budget.

use crate::cli::Global;
use crate::commands::act::by;
use crate::commands::orders::{Held, Wanted};
use crate::commands::there::{There, on_a_store};
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use clap::builder::NonEmptyStringValueParser;
use steersman_client::Given;

pub(crate) const LISTED: &str = "Let them begin again";

/// Let effects begin again that `hold` keeps, or let model calls through that wait for a budget over sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    held: Held,
    /// Instead of effects: the model calls that wait for this budget over sessions. Each is made now, as `approve` would do.
    #[arg(long, value_name = "NAME", conflicts_with = "tool", value_parser = NonEmptyStringValueParser::new())]
    budget: Option<String>,
}

pub(crate) async fn run(
    args: ReleaseArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let (which, act) = (&args.held.which, &args.held.act);
    if let Some(there) = There::of(which, global, &act.own).await? {
        if args.budget.is_some() {
            return Err(on_a_store("--budget"));
        }
        let (orders, given) = (there.remote.client.orders(), Given::default());
        let receipt = orders
            .release(there.id(), &args.held.of_tool(), &given)
            .await?;
        return there.report(&receipt, printer);
    }
    let wanted = match args.budget {
        Some(budget) => Wanted::lets_through(budget, by(act)),
        None => Wanted::drives(args.held.release(), "released"),
    };
    wanted.carry_out(which, &act.own, global, printer).await
}
