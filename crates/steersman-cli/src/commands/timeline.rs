//! `timeline`: when each agent of a session was at work, and when it waited.

use crate::address::Address;
use crate::cli::{Global, Look};
use crate::commands::graph;
use crate::error::{CommandError, Exit};
use crate::place::{self, Place};
use crate::printer::{Printer, bold, dim};
use crate::tell::timeline::{svg, terminal};
use crate::words::{count, length, money, width};
use std::path::PathBuf;
use steersman::views::list::status;
use steersman::views::timeline::{Axis, Timeline, What};
use steersman_machine::stored::ids::Time;

pub(crate) const LISTED: &str = "Show when each agent was at work, and when it waited";

/// Show when each agent of a session was at work, and when it waited: one lane for each agent, with its model, its tools, the agents
/// that it called, and its waits.
#[derive(Debug, clap::Args)]
pub(crate) struct TimelineArgs {
    #[command(flatten)]
    look: Look,
    /// Draw it into this file, as SVG.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// All lanes.
    #[arg(long)]
    full: bool,
}

/// Number of lanes on a terminal.
const LANES: usize = 40;

pub(crate) async fn run(
    args: TimelineArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let place = Place::to_look(global).await?;
    let address = Address::parse(&args.look.address)?;
    let mut sight = place.look(&address).await?;
    let line = place::line(address.line.as_ref(), &sight.path())?;
    sight.inspection = sight.known.mask_inspection(sight.inspection);
    let named = sight.named().map(|branch| branch.id);
    let wanted = sight.log.lines.iter().filter(|l| {
        line.is_none_or(|line| l.n <= line) && named.is_none_or(|branch| l.branch == branch)
    });
    let mut timeline = Timeline::of(wanted.map(|line| &**line));
    if line.is_none() {
        let now = Time(place.now());
        match status(&sight.inspection.info) {
            "interrupted" => timeline.stands(now),
            _ => timeline.goes_on(now),
        }
    }
    let axis = Axis::of(&timeline);
    if printer.is_json() {
        let mut document = serde_json::to_value(&timeline).unwrap_or_default();
        document["axis"] = serde_json::to_value(&axis).unwrap_or_default();
        sight.known.mask(&mut document);
        printer.json(&document)?;
        return Ok(Exit::Answered);
    }
    let info = &sight.inspection.info;
    let name = format!("{} {}", info.network, sight.short);
    let about = about(&timeline, info.state.micros);
    if let Some(file) = args.output {
        if file.extension().is_none_or(|ending| ending != "svg") {
            let what = format!("`{}` does not end in .svg", file.display());
            return Err(CommandError::usage(what).hint("a timeline is drawn as SVG"));
        }
        let text = svg::text(&timeline, &axis, &name, &about);
        graph::write(&file, &sight.known.masked(&text))?;
        printer.talk(format!("Drawn into {}.", bold(&file.display().to_string())));
        return Ok(Exit::Answered);
    }
    let left = timeline.lanes.len().saturating_sub(LANES);
    if !args.full {
        timeline.lanes.truncate(LANES);
    }
    printer.data(format!("{}   {about}", bold(&name)))?;
    printer.data("")?;
    for row in terminal::rows(&timeline, &axis, width()) {
        printer.data(sight.known.masked(&row))?;
    }
    if left > 0 && !args.full {
        printer.talk(format!(
            "{} more: {}",
            count(left as u64, "lane"),
            bold("--full")
        ));
    }
    printer.talk("");
    printer.talk(terminal::legend());
    printer.talk(dim(&format!(
        "as a picture: steersman timeline {} -o timeline.svg",
        sight.short
    )));
    Ok(Exit::Answered)
}

/// Returns the sums of a timeline in words.
fn about(timeline: &Timeline, micros: u64) -> String {
    let parts = [What::Model, What::Tool, What::Wait].map(|what| {
        let sum = timeline.sum(what);
        (sum > 0).then(|| format!("{} {}", what.word(), length(sum)))
    });
    let mut told = vec![format!(
        "{} in all",
        length(timeline.begins.until(timeline.ends))
    )];
    told.extend(parts.into_iter().flatten());
    told.push(money(micros));
    told.join(", ")
}
