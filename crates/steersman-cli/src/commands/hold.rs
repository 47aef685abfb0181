//! `hold`: prevents effects of a tool from beginning, until `release`.

use crate::cli::Global;
use crate::commands::orders::{Held, Wanted};
use crate::commands::there::There;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use steersman_client::Given;

pub(crate) const LISTED: &str =
    "Keep effects of a tool from beginning, in a session or in all that match";

/// Keep effects from beginning, until `release`: of one tool, else of all that may change the world.
#[derive(Debug, clap::Args)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    held: Held,
}

pub(crate) async fn run(
    args: HoldArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let end = match &args.held.tool {
        Some(tool) => format!("release --tool {tool}"),
        None => "release".to_owned(),
    };
    let (which, act) = (&args.held.which, &args.held.act);
    if let Some(there) = There::of(which, global, &act.own).await? {
        let (orders, given) = (there.remote.client.orders(), Given::default());
        let receipt = orders
            .hold(there.id(), &args.held.of_tool(), &given)
            .await?;
        return there.ordered(&receipt, "held", Some(&end), printer);
    }
    let wanted = Wanted::order(args.held.hold(), "held", Some(&end));
    wanted.carry_out(which, &act.own, global, printer).await
}
