//! `adopt`: goes on with what a branch came to.

use crate::cli::{Adopt, Global};
use crate::commands::act::Reached;
use crate::commands::branching::{Spot, adoptable};
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use steersman::runtime::inbox::Message;

pub(crate) async fn run(
    args: Adopt,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let spot = Spot::find(&args.address, global, &args.own.drive).await?;
    if !spot.named {
        let names = spot.others();
        let error = CommandError::usage(format!("`{}` names no branch", args.address));
        return Err(if names.is_empty() {
            error.hint("it has no other branch: `steersman fork SESSION@LINE` makes one")
        } else {
            error.hint(format!("SESSION:BRANCH; it has: {}", names.join(", ")))
        });
    }
    let message = Message::Adopt {
        branch: spot.branch,
        at: spot.line,
    };
    let (target, name) = (&spot.target, &spot.name);
    let reached = match adoptable(&target.inspection, spot.branch) {
        Ok(()) => target.reach(message, None, &args.own, printer).await,
        Err(error) => Err(error),
    };
    match reached {
        Ok(Reached::Driven(play, ended, _)) => {
            printer.talk("");
            printer.talk(format!(
                "The session goes on with {name}. What was simulated there is asked for and done now."
            ));
            play.report(ended).await
        }
        Ok(other) => target.noted(&other, printer).await,
        Err(error) if error.exit == Exit::Usage && spot.moved().is_some() => {
            let short = target.place.short(&target.inspection.info.id).await?;
            Err(error.hint(format!(
                "to go on with it all the same, and leave that behind: `steersman rewind {short}:{name}@head`"
            )))
        }
        Err(error) => Err(error),
    }
}
