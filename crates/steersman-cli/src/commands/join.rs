//! `join`: reports the results of branches to the session.

use crate::cli::{Global, Own};
use crate::commands::act::Target;
use crate::commands::there::There;
use crate::error::{CommandError, Exit};
use crate::place::branch_at;
use crate::printer::Printer;
use serde_json::Value as Json;
use steersman::Act;
use steersman_client::{Given, Join};
use steersman_machine::values::json::read;

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
    // An address is accepted too, as `fork` and `show` print it.
    let names = args.branches.iter();
    let names = names.map(|name| name.rsplit_once(':').map_or(&**name, |(_, name)| name));
    if let Some(there) = There::find(&args.session, global, &args.own, false).await? {
        let given = args.args.as_deref().map(read::<Json>).transpose();
        let given =
            given.map_err(|why| CommandError::usage(format!("--args is no JSON: {why}")))?;
        let join = Join {
            branches: names.map(str::to_owned).collect(),
            on: Some(args.on.to_string()),
            then: args.then.clone(),
            args: given.and_then(|args| args.as_object().cloned()),
        };
        let branches = there.remote.client.branches();
        let receipt = branches.join(there.id(), &join, &Given::default()).await?;
        return there.report(&receipt, printer);
    }
    let target = Target::find(&args.session, global, &args.own.drive).await?;
    let mut branches = Vec::new();
    for name in names {
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
