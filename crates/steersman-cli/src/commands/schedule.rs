//! `schedule`: puts the schedules of a definition into the store, and lists those of the store.

use crate::cli::{Drive, Global};
use crate::commands::check;
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::place::Place;
use crate::printer::{Printer, dim};
use crate::words::{count, table};
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;
use std::path::PathBuf;
use steersman::machine::view::iso;
use steersman::runtime::store::Schedule;
use steersman::views::list::ScheduleRow;
use steersman_machine::stored::ids::Time;

pub(crate) const LISTED: &str =
    "Begin sessions at times: put schedules into the store, or list them";

/// Put the schedules of a definition into the store, in place of those that it had there; without a definition, list all.
/// `run --all` begins their sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct ScheduleArgs {
    /// A definition, or a folder with a steersman.yaml.
    definition: Option<PathBuf>,
    /// Delete the schedules of this network from the store. Sessions that they began go on.
    #[arg(long, value_name = "NETWORK", conflicts_with = "definition", value_parser = NonEmptyStringValueParser::new())]
    drop: Option<String>,
    #[command(flatten)]
    drive: Drive,
}

pub(crate) async fn run(
    args: ScheduleArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if let Some(network) = &args.drop {
        let place = Place::required(global, &args.drive).await?;
        let dropped = place.steersman.unschedule(network).await?;
        if dropped == 0 {
            return Err(
                CommandError::usage(format!("no schedule of `{network}` is in the store"))
                    .hint("steersman schedule lists them"),
            );
        }
        if printer.is_json() {
            printer.json(&json!({ "network": network, "dropped": dropped }))?;
        }
        let dropped = count(dropped as u64, "schedule");
        printer.talk(format!("Deleted {dropped} of {network}."));
        return Ok(Exit::Answered);
    }
    let Some(definition) = &args.definition else {
        let Some(place) = Place::existing(global).await? else {
            return none(global, printer);
        };
        let all = place.steersman.schedules().await?;
        if all.is_empty() {
            return none(global, printer);
        }
        print(&place, &all, printer).await?;
        return Ok(Exit::Answered);
    };
    let network = check::required(definition, printer)?;
    if network.checked().schedules.is_empty() {
        return Err(
            CommandError::usage(format!("`{}` has no `schedules`", network.name())).hint(format!(
                "steersman schedule --drop {} deletes those that it had",
                network.name()
            )),
        );
    }
    let place = Place::open(global, &args.drive).await?;
    let kept = place.steersman.schedule(&network).await?;
    print(&place, &kept, printer).await?;
    printer.next("steersman run --all", "begins their sessions");
    Ok(Exit::Answered)
}

fn none(global: &Global, printer: &Printer) -> Result<Exit, CommandError> {
    let file = locate::store(global.store.as_deref())?;
    printer.talk(format!("No schedules in {} yet.", locate::shown(&file)));
    printer.next(
        "steersman schedule DEFINITION",
        "puts those of a definition there",
    );
    Ok(Exit::Answered)
}

/// Prints schedules, each in one row.
pub(crate) async fn print(
    place: &Place,
    all: &[Schedule],
    printer: &Printer,
) -> Result<(), CommandError> {
    let mut rows = Vec::new();
    for schedule in all {
        let plan = place.engine().plan(schedule).await?;
        rows.push(ScheduleRow::of(schedule, plan.as_ref()));
    }
    print_rows(&rows, printer)
}

/// Prints the rows of schedules.
pub(crate) fn print_rows(all: &[ScheduleRow], printer: &Printer) -> Result<(), CommandError> {
    let mut rows = Vec::new();
    for row in all {
        if printer.is_json() {
            printer.view(row)?;
        }
        let zone = row.timezone.as_deref().unwrap_or("UTC");
        let at = |at: Option<Time>| at.map_or_else(|| "-".to_owned(), |at| moment(at, zone));
        rows.push(vec![
            row.schedule.to_string(),
            row.network.to_string(),
            at(row.next),
            at(row.last),
            row.missed.to_string(),
            format!("{} {zone}", row.rule.as_deref().unwrap_or("?")),
        ]);
    }
    if printer.is_json() {
        return Ok(());
    }
    let heading = ["SCHEDULE", "NETWORK", "NEXT", "LAST", "MISSED", "TIMES"];
    for (i, row) in table(&heading, &rows).into_iter().enumerate() {
        printer.data(if i == 0 { dim(&row) } else { row })?;
    }
    Ok(())
}

/// Returns a time in a zone: `2026-11-29 06:30`.
pub(crate) fn moment(at: Time, zone: &str) -> String {
    let iso = iso(at, zone);
    let (date, time) = (iso.get(..10), iso.get(11..19));
    let time = time.map(|time| time.strip_suffix(":00").unwrap_or(time));
    match (date, time) {
        (Some(date), Some(time)) => format!("{date} {time}"),
        _ => iso,
    }
}
