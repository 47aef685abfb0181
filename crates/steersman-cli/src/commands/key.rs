//! `key`: lists the keys that seal and open secrets, and exchanges the one that seals.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, dim};
use crate::words::{digits, table};
use crate::{locate, store};
use serde_json::json;
use std::path::Path;
use steersman::runtime::process_env;
use steersman::runtime::seal::{KeyId, Sealer};
use steersman_adapters::secrets::{
    KEY_FILE, KEY_VARIABLE, KeyError, Rotation, rotate, sealer, would_be_made,
};

pub(crate) const LISTED: &str = "List the keys that seal secrets; exchange the one that seals";

/// List the keys that seal secrets; exchange the one that seals. No command prints a key: a key is named by its id.
#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    act: Option<KeyAct>,
}

#[derive(Debug, clap::Subcommand)]
enum KeyAct {
    /// List the keys, and how many values of the store each sealed.
    List,
    /// Make a new key. It seals from now on, and the keys before it open what they sealed.
    Rotate {
        /// Make a new key that only opens, for processes that run at the same time: restart all of them, then use --to.
        #[arg(long, conflicts_with = "to")]
        prepare: bool,
        /// Make no key: let the one with this id seal.
        #[arg(long, value_name = "ID")]
        to: Option<String>,
    },
}

pub(crate) async fn run(
    args: KeyArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let file = locate::existing(global)?;
    let Some(folder) = store::folder(&file)? else {
        let why = "the key of this store ends with the process, so there is none to exchange";
        return Err(CommandError::usage(why));
    };
    let failed = |error: KeyError| CommandError::usage(error.to_string());
    let env = process_env();
    let (sealer, prepared) = match args.act.unwrap_or(KeyAct::List) {
        KeyAct::List if would_be_made(&folder, &env) => {
            printer.talk("There is no key yet: the first value that is sealed makes it.");
            return Ok(Exit::Answered);
        }
        KeyAct::List => (sealer(&folder, &env).map_err(failed)?, None),
        KeyAct::Rotate { prepare, to } => {
            let how = match (prepare, to) {
                (true, _) => Rotation::Prepare,
                (false, Some(id)) => Rotation::To(id),
                (false, None) => Rotation::New,
            };
            let sealer = rotate(&folder, &env, &how).map_err(failed)?;
            let first = sealer.keys().next();
            if how != Rotation::Prepare
                && let Some(key) = first
            {
                printer.talk(format!("Key {key} seals from now on."));
            }
            let last = sealer.keys().last().filter(|_| how == Rotation::Prepare);
            (sealer, last)
        }
    };
    list(&file, &sealer, printer).await?;
    if let Some(key) = prepared {
        printer.talk(format!(
            "Key {key} opens from now on, and seals nothing yet."
        ));
        printer.next(
            format!("steersman key rotate --to {key}"),
            "once each process that drives this store was started again",
        );
    }
    if env(KEY_VARIABLE).is_none() {
        let path = locate::shown(&folder.join(KEY_FILE));
        printer.talk(format!(
            "The keys are in {path}, and in no backup. A process reads them when it starts."
        ));
    }
    Ok(Exit::Answered)
}

async fn list(file: &Path, sealer: &Sealer, printer: &Printer) -> Result<(), CommandError> {
    let mut sealed = store::look(file)?.sealed_with().await?;
    let mut rows = Vec::new();
    for (at, key) in sealer.keys().enumerate() {
        let does = if at == 0 { "seals" } else { "opens" };
        rows.push((key, does, sealed.remove(&key).unwrap_or(0)));
    }
    let lost = sealed.into_iter();
    rows.extend(lost.map(|(key, values)| (key, "is not here", values)));
    if printer.is_json() {
        for (key, does, values) in rows {
            printer.json(&json!({ "key": key.to_string(), "does": does, "values": values }))?;
        }
        return Ok(());
    }
    let cells = |(key, does, values): (KeyId, &str, u64)| {
        vec![key.to_string(), does.to_owned(), digits(values)]
    };
    let rows: Vec<_> = rows.into_iter().map(cells).collect();
    for (i, row) in table(&["KEY", "DOES", "VALUES"], &rows)
        .into_iter()
        .enumerate()
    {
        printer.data(if i == 0 { dim(&row) } else { row })?;
    }
    Ok(())
}
