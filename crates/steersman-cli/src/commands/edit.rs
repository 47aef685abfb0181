//! `edit`: sets entries of state.

use crate::cli::{Acting, Global, Which};
use crate::commands::act::by;
use crate::commands::orders::Wanted;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use crate::words;
use serde_json::Value as Json;
use steersman::Act;

pub(crate) const LISTED: &str = "Set entries of state: give a permission, correct a value";

/// Set entries of state, in a session or in all that match. The log says who did it. The definition may name the people who may: `by` at the entry.
#[derive(Debug, clap::Args)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    which: Which,
    /// The entry and its new value; `NAME=none` unsets it. May be given more than once.
    #[arg(long, value_name = "NAME=VALUE", required = true)]
    state: Vec<String>,
    #[command(flatten)]
    act: Acting,
}

pub(crate) async fn run(
    args: EditArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let state = entries(&args.state)?;
    let state = state.iter().map(|(name, value)| (name.as_str(), value));
    let act = Act::edit(state, by(&args.act));
    let wanted = Wanted::drives(act, "edited");
    let (which, own) = (&args.which, &args.act.own);
    wanted.carry_out(which, own, global, printer).await
}

/// Parses entries of state as they are typed.
pub(crate) fn entries(typed: &[String]) -> Result<Vec<(String, Json)>, CommandError> {
    let one = |typed: &String| {
        let Some((name, value)) = typed.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(
                CommandError::usage(format!("`{typed}` is no entry of state"))
                    .hint("NAME=VALUE: --state payments=2; NAME=none unsets it"),
            );
        };
        let value = match value {
            "none" => Json::Null,
            value => words::value(value),
        };
        Ok((name.to_owned(), value))
    };
    typed.iter().map(one).collect()
}
