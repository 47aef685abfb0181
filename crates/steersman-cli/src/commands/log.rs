//! `log`: prints a session line by line; `-f` follows new lines.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::log::read;
use crate::place::{self, Place, branch_name};
use crate::printer::{Printer, dim};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::runtime::feed::FeedItem;
use steersman_machine::commit::LogLine;
use steersman_machine::ids::Line;
use steersman_machine::trace::Trace;

pub(crate) const LISTED: &str = "Show a session line by line; -f follows it";

/// Show a session line by line.
#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// SESSION[:BRANCH][@LINE]; with a line it begins there.
    #[arg(default_value = "last")]
    address: String,
    /// Go on as lines come in, until Ctrl-C.
    #[arg(long, short)]
    follow: bool,
}

pub(crate) async fn run(
    args: LogArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let place = Place::to_look(global).await?;
    let sight = place.look(&args.address).await?;
    let only = sight.named().map(|branch| branch.id);
    let lines: Vec<Line> = sight.log.lines.iter().map(|l| l.n).collect();
    let from = place::line(sight.address.line.as_ref(), &lines, |tool| {
        sight.log.first_call(tool)
    })?
    .unwrap_or(Line::NONE);
    let (head, name) = (sight.branch().head, branch_name(sight.branch()));
    let (id, mut log) = (sight.inspection.info.id, sight.log);
    let wanted = |line: &LogLine| line.n >= from && only.is_none_or(|b| line.branch == b);
    let mut trace = Trace::default();
    for line in &log.lines {
        if wanted(line) {
            show(printer, &mut trace, line, &log.texts)?;
        } else {
            trace.learn(line);
        }
    }
    if !args.follow {
        printer.talk(dim(&format!("{head} on {name}, {} in all", lines.len())));
        return Ok(Exit::Answered);
    }
    let mut feed = place
        .engine()
        .feed(&id, lines.last().copied().unwrap_or(Line::NONE));
    loop {
        tokio::select! {
            item = feed.next() => {
                if let FeedItem::Line(mut line) = item? {
                    let known = Arc::make_mut(&mut log.known);
                    known.learn_line(&line, place.engine()).await?;
                    log.texts.learn(&line, &**place.store()).await?;
                    log.texts.veil(&line, known);
                    known.veil_line(&mut line);
                    if wanted(&line) {
                        show(printer, &mut trace, &line, &log.texts)?;
                    } else {
                        trace.learn(&line);
                    }
                }
            }
            stop = tokio::signal::ctrl_c() => {
                stop?;
                return Ok(Exit::Answered);
            }
        }
    }
}

fn show(
    printer: &Printer,
    trace: &mut Trace,
    line: &LogLine,
    texts: &crate::texts::Texts,
) -> Result<(), CommandError> {
    let told = trace.line(line, texts, None);
    if printer.is_json() {
        return printer.json(&document(line, &told));
    }
    for row in told.lines() {
        printer.data(row)?;
    }
    Ok(())
}

/// Returns a line as a document; `told` is its trace.
fn document(line: &LogLine, told: &str) -> Json {
    let mut rows = told.lines();
    let head = rows.next().unwrap_or_default();
    let rows: Vec<&str> = rows.map(str::trim).collect();
    json!({
        "line": line.n.0,
        "branch": line.branch.to_string(),
        "at": line.commit.as_ref().map_or(Json::Null, |c| crate::asked::time(c.now.0)),
        "tokens": line.commit.as_ref().map_or(0, |c| c.usage.iter().fold(0_u64, |sum, u| sum.saturating_add(u.tokens()))),
        "head": head,
        "rows": rows,
    })
}

/// Returns all lines of a session as documents.
pub(crate) async fn documents(place: &Place, session: &str) -> Result<Vec<Json>, CommandError> {
    let log = read(place, session).await?;
    let mut trace = Trace::default();
    let lines = log.lines.iter();
    Ok(lines
        .map(|line| document(line, &trace.line(line, &log.texts, None)))
        .collect())
}
