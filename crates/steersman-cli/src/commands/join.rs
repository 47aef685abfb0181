//! `join`: reports the results of branches to the session.

use crate::cli::{Global, Own};
use crate::commands::act::Target;
use crate::error::{CommandError, Exit};
use crate::place::branch_at;
use crate::printer::Printer;
use steersman::Act;

pub(crate) const LISTED: &str = "Let a session hear what its branches came to";

/// Let a session hear what its branches came to.
#[derive(Debug, clap::Args)]
pub(crate) struct JoinArgs {
    /// The session.
    session: String,
    /// The branches, by label or id.
    #[arg(required = true, num_args = 1..)]
    branches: Vec<String>,
    /// When it is over: `all`, `any`, how many must end, or an expression over `done`, `failed`, `open` and `answers`.
    #[arg(long, value_name = "WHEN", default_value = "all")]
    on: steersman::JoinOn,
    /// A tool that runs on what they came to.
    #[arg(long, value_name = "TOOL")]
    then: Option<String>,
    /// Its arguments: a JSON object whose texts are templates over `result` [default: what it reads of it by name].
    #[arg(long, value_name = "JSON", requires = "then")]
    args: Option<String>,
    #[command(flatten)]
    own: Own,
}

pub(crate) async fn run(
    args: JoinArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let target = Target::find(&args.session, global, &args.own.drive).await?;
    let mut branches = Vec::new();
    for name in &args.branches {
        // An address is accepted too, as `fork` and `show` print it.
        let name = name
            .rsplit_once(':')
            .map_or(name.as_str(), |(_, name)| name);
        let at = branch_at(&target.inspection, Some(name))?;
        let id = target.inspection.branches[at].id;
        if id == target.inspection.current {
            return Err(CommandError::usage(format!(
                "`{name}` is the branch that would hear of it"
            ))
            .hint("name branches beside it: `steersman show` draws them"));
        }
        if !branches.contains(&id) {
            branches.push(id);
        }
    }
    let then = args.then.as_deref();
    let then = then.map(|tool| (tool, args.args.as_deref()));
    let act = Act::join(branches, &args.on, then);
    target.deliver(act, &args.own, printer).await
}
