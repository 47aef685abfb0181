//! `log`: prints a session line by line, or with `--json` its events; `-f` follows new lines.

use crate::address::LineName;
use crate::cli::{Global, Times};
use crate::error::{CommandError, Exit};
use crate::place::{self, Place, branch_name};
use crate::printer::{Printer, dim};
use crate::tell::row::{day_of, time_of};
use crate::words::span;
use serde_json::Value as Json;
use steersman::runtime::feed::FeedItem;
use steersman::views::event::Teller;
use steersman::views::line::{LineView, Lines};
use steersman::views::reader::Reader as _;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::ids::Line;

/// Says what the command shows, where other commands propose it.
pub(crate) const SHOWS: &str = "every line of the log, with attempts and holds";
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
    #[command(flatten)]
    times: Times,
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
    let all: Vec<_> = sight.log.lines.iter().collect();
    // The lines of all branches are shown if none is named, so a number may be that of any line.
    let from = match &sight.address.line {
        Some(LineName::First(_)) => sight.line()?,
        line => place::line(line.as_ref(), &all)?,
    };
    let from = from.unwrap_or(Line::NONE);
    let (head, name) = (sight.branch().head, branch_name(sight.branch()));
    let wanted = |line: &LogLine| line.n >= from && only.is_none_or(|b| line.branch == b);
    let mut output = Output {
        printer,
        times: args.times.are_shown(),
        day: None,
        views: Lines::default(),
        events: Teller::new(sight.reader.clone()),
    };
    for line in &sight.log.lines {
        output.line(line, wanted(line), &sight.log.texts).await?;
    }
    if !args.follow {
        printer.talk(dim(&format!("{head} on {name}, {} in all", lines.len())));
        return Ok(Exit::Answered);
    }
    let last = lines.last().copied().unwrap_or(Line::NONE);
    let mut feed = place.engine().feed(&sight.inspection.info.id, last);
    loop {
        tokio::select! {
            item = feed.next() => {
                if let FeedItem::Line(line) = item? {
                    let line = sight.reader.arrived(line).await?;
                    output.line(&line, wanted(&line), &*sight.reader).await?;
                }
            }
            stop = tokio::signal::ctrl_c() => {
                stop?;
                return Ok(Exit::Answered);
            }
        }
    }
}

/// Prints lines: in full for people, with `--json` as events.
struct Output<'a> {
    printer: &'a Printer,
    times: bool,
    /// The day of the last line.
    day: Option<String>,
    views: Lines,
    events: Teller,
}

impl Output<'_> {
    async fn line(
        &mut self,
        line: &LogLine,
        wanted: bool,
        texts: &dyn Bodies,
    ) -> Result<(), CommandError> {
        if !wanted {
            self.views.learn(line);
            return Ok(());
        }
        if self.printer.is_json() {
            for event in self.events.line(line).await? {
                self.printer.view(&event)?;
            }
            return Ok(());
        }
        let view = self.views.line(line, texts);
        if !self.times {
            for row in view.text.lines() {
                self.printer.data(row)?;
            }
            return Ok(());
        }
        let day = day_of(view.at);
        if day != self.day {
            self.day = day;
            self.printer
                .data(dim(self.day.as_deref().unwrap_or_default()))?;
        }
        let time = time_of(view.at);
        let blank = " ".repeat(time.len());
        for (k, row) in view.text.lines().enumerate() {
            let time = if k == 0 { &time } else { &blank };
            let took = if k == 0 { took(&view) } else { String::new() };
            self.printer
                .data(format!("{}{row}{}", dim(time), dim(&took)))?;
        }
        Ok(())
    }
}

/// Returns how long the calls took that ended in a line.
fn took(view: &LineView) -> String {
    let each = view.took.iter().map(|took| {
        let millis = i64::try_from(took.millis).unwrap_or(i64::MAX);
        format!("   {} took {}", took.effect, span(millis))
    });
    each.collect()
}

/// Returns all lines of a session as documents.
pub(crate) async fn documents(place: &Place, session: &str) -> Result<Vec<Json>, CommandError> {
    let log = place.log(session).await?;
    let mut views = Lines::default();
    let lines = log.lines.iter().map(|line| views.line(line, &log.texts));
    let documents = lines.map(|line| serde_json::to_value(line).unwrap_or_default());
    Ok(documents.collect())
}
