//! `migrate`: binds new values of `config`.

use crate::cli::{Global, Own, Which};
use crate::commands::orders::Wanted;
use crate::commands::sessions;
use crate::error::{CommandError, Exit};
use crate::place::Place;
use crate::printer::Printer;
use crate::words;
use clap::builder::NonEmptyStringValueParser;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use steersman::runtime::store::SessionInfo;
use steersman::views::filter::Filter;
use steersman::{Act, By, Rebinding, RebindingError};
use steersman_machine::stored::ids::Name;

pub(crate) const LISTED: &str = "Bind values of `config` anew, in sessions that match";

/// Bind other values of `config`, for sessions in which nothing is open.
#[derive(Debug, clap::Args)]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    which: Which,
    /// A value of `config`, as JSON or text. May be given more than once.
    #[arg(long, required = true, value_name = "KEY=VALUE")]
    config: Vec<String>,
    /// The role in which you act.
    #[arg(long = "as", value_name = "ROLE", value_parser = NonEmptyStringValueParser::new())]
    role: Option<String>,
}

pub(crate) async fn run(
    args: MigrateArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let config = parsed(&args.config)?;
    let place = Place::required(global, &crate::cli::Drive::default()).await?;
    let found: Vec<SessionInfo> = match &args.which.session {
        Some(session) => {
            let address = crate::address::Address::parse(session)?;
            vec![place.session(&address.session).await?]
        }
        None => sessions::select(&place, &Filter::parse(args.which.filter.as_deref())?).await?,
    };
    // Changes are shown before the confirmation.
    for (change, times) in changes(&place, &found, &config).await? {
        printer.talk(format!("{change}   in {}", words::count(times, "session")));
    }
    place.close();
    let wanted = Wanted::order(
        Act::rebind(
            config.iter().map(|(name, value)| (&**name, value)),
            args.role.as_deref().map_or_else(By::user, By::role),
        ),
        "rebound",
        None,
    );
    wanted
        .carry_out(&args.which, &Own::default(), global, printer)
        .await
}

pub(super) fn parsed(config: &[String]) -> Result<BTreeMap<Name, Json>, CommandError> {
    let mut values = BTreeMap::new();
    for given in config {
        let Some((name, value)) = given.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(
                CommandError::usage(format!("`{given}` is no value of config"))
                    .hint("--config limit=20000, once for each value"),
            );
        };
        if values.insert(name.into(), words::value(value)).is_some() {
            return Err(CommandError::usage(format!("`{name}` is given twice")));
        }
    }
    Ok(values)
}

/// Returns each change with the number of sessions that it affects. A value that a session cannot be bound to is refused.
async fn changes(
    place: &Place,
    found: &[SessionInfo],
    config: &BTreeMap<Name, Json>,
) -> Result<BTreeMap<String, u64>, CommandError> {
    let mut changes: BTreeMap<String, u64> = BTreeMap::new();
    for info in found {
        let all = place.steersman.rebindings(&info.id, config).await;
        let all = all.map_err(|error| match error {
            RebindingError::Session(error) => error.into(),
            RebindingError::Misfit { why, names } => {
                let network = &info.network;
                CommandError::usage(format!("session `{}`: {why}", info.id)).hint(
                    if names.is_empty() {
                        format!("`{network}` binds no values of config")
                    } else {
                        format!("`{network}` binds: {}", names.join(", "))
                    },
                )
            }
        })?;
        for Rebinding { name, old, new } in all {
            *changes
                .entry(format!("{name}: {old} -> {new}"))
                .or_default() += 1;
        }
    }
    Ok(changes)
}
