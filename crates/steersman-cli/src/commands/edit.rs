//! `edit`: sets entries of state.

use crate::cli::{Acting, Global, Which};
use crate::commands::act::by;
use crate::commands::orders::Wanted;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use crate::words;
use serde_json::Value as Json;
use steersman_machine::network::Network;

pub(crate) const LISTED: &str = "Set entries of state: give a permission, correct a value";

/// Set entries of state, in a session or in all that match. The log says who did it. The definition may name the people who may: `by` at the entry.
#[derive(Debug, clap::Args)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    which: Which,
    /// The entry and its new value, read by the type of the entry: text as it is typed, everything else as JSON. `NAME=none` unsets it. May be given more than once.
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
    let wanted = Wanted::edits(state, by(&args.act));
    let (which, own) = (&args.which, &args.act.own);
    wanted.carry_out(which, own, global, printer).await
}

/// Splits entries of state into name and value, as they are typed.
pub(crate) fn entries(typed: &[String]) -> Result<Vec<(String, String)>, CommandError> {
    let one = |typed: &String| {
        let Some((name, value)) = typed.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(
                CommandError::usage(format!("`{typed}` is no entry of state"))
                    .hint("NAME=VALUE: --state payments=2; NAME=none unsets it"),
            );
        };
        Ok((name.to_owned(), value.to_owned()))
    };
    typed.iter().map(one).collect()
}

/// Returns the values of entries, each of the type that the network declares; `none` unsets an entry.
pub(crate) fn values(typed: &[(String, String)], network: Option<&Network>) -> Vec<(String, Json)> {
    let one = |(name, typed): &(String, String)| {
        let agents = network
            .into_iter()
            .flat_map(|network| network.agents.values());
        let mut declared = agents.flat_map(|agent| &agent.state);
        let declared = declared.find(|(entry, _)| **entry == **name);
        let value = match &**typed {
            "none" => Json::Null,
            typed => words::value_of(typed, declared.map(|(_, ty)| ty)),
        };
        (name.clone(), value)
    };
    typed.iter().map(one).collect()
}
