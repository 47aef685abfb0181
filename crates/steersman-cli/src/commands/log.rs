//! `log`: prints a session line by line, or with `--json` its events; `-f` follows new lines.

use crate::address::Address;
use crate::cli::{Global, Times};
use crate::error::{CommandError, Exit};
use crate::place::Place;
use crate::printer::{Printer, dim};
use crate::remote::{RESTART, Remote};
use crate::source::Source;
use crate::tell::row::{day_of, time_of};
use crate::words::span;
use steersman::runtime::feed::FeedItem;
use steersman::views::event::Teller;
use steersman::views::line::Lines;
use steersman::views::reader::Reader as _;
use steersman::views::screen::{Ask, LineRow, LogScreen};
use steersman_client::Follow;
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
    let source = Source::to_look(global).await?;
    let address = Address::parse(&args.address)?;
    let mut output = Output {
        printer,
        times: args.times.are_shown(),
        day: None,
    };
    let mut after = None;
    let screen = loop {
        let screen: LogScreen = source.screen(&address, output.asks(after)).await?;
        output.screen(&screen)?;
        if !screen.has_more {
            break screen;
        }
        after = Some(screen.upto.0);
    };
    if !args.follow {
        printer.talk(dim(&format!(
            "{} on {}, {} in all",
            screen.head, screen.branch, screen.all
        )));
        return Ok(Exit::Answered);
    }
    let follow = async {
        match &source {
            Source::Store(place) => follow(place, &address, screen.upto, &mut output).await,
            Source::Server(remote) => {
                follow_server(&source, remote, &address, screen.upto, &mut output).await
            }
        }
    };
    tokio::select! {
        ended = Box::pin(follow) => ended.map(|()| Exit::Answered),
        stop = tokio::signal::ctrl_c() => {
            stop?;
            Ok(Exit::Answered)
        }
    }
}

/// Prints the lines of a session in a store as they come.
async fn follow(
    place: &Place,
    address: &Address,
    upto: Line,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    let seen = place.look(address).await?;
    let only = seen.named().map(|branch| branch.id);
    let (mut views, mut events) = (Lines::default(), Teller::new(seen.reader.clone()));
    for line in seen.log.lines.iter().filter(|line| line.n <= upto) {
        views.learn(line);
    }
    let mut feed = place.engine().feed(&seen.inspection.info.id, upto);
    loop {
        let FeedItem::Line(line) = feed.next().await? else {
            continue;
        };
        let line = seen.reader.arrived(line).await?;
        if only.is_some_and(|branch| line.branch != branch) {
            views.learn(&line);
        } else if output.printer.is_json() {
            for event in events.line(&line).await? {
                output.printer.view(&event)?;
            }
        } else {
            output.line(&views.line(&line, &*seen.reader).into())?;
        }
    }
}

/// Prints the lines of a session of a server as they come: its events tell when there are new ones.
async fn follow_server(
    source: &Source,
    remote: &Remote,
    address: &Address,
    mut upto: Line,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    let session = remote.session(&address.session).await?;
    let client = remote.client.clone().patience(RESTART);
    let wanted = Follow::default().from(&upto.to_string());
    let mut events = client.session(&session).follow(wanted);
    while let Some(event) = events.next().await {
        // A line may have several events.
        if event?.line.is_none_or(|line| line <= upto.0) {
            continue;
        }
        loop {
            let ask = output.asks(Some(upto.0));
            let screen: LogScreen = source.screen(address, ask).await?;
            output.screen(&screen)?;
            upto = screen.upto;
            if !screen.has_more {
                break;
            }
        }
    }
    Ok(())
}

/// Prints lines: in full for people, with `--json` as events.
struct Output<'a> {
    printer: &'a Printer,
    times: bool,
    /// The day of the last line.
    day: Option<String>,
}

impl Output<'_> {
    /// Returns what a log is asked for.
    fn asks(&self, after: Option<u64>) -> Ask {
        Ask {
            form: self.printer.is_json().then(|| "events".to_owned()),
            after,
            ..Ask::default()
        }
    }

    fn screen(&mut self, screen: &LogScreen) -> Result<(), CommandError> {
        for event in &screen.events {
            self.printer.json(event)?;
        }
        screen.lines.iter().try_for_each(|line| self.line(line))
    }

    fn line(&mut self, line: &LineRow) -> Result<(), CommandError> {
        if !self.times {
            for row in line.text.lines() {
                self.printer.data(row)?;
            }
            return Ok(());
        }
        let day = day_of(line.at);
        if day != self.day {
            self.day = day;
            self.printer
                .data(dim(self.day.as_deref().unwrap_or_default()))?;
        }
        let time = time_of(line.at);
        let blank = " ".repeat(time.len());
        for (k, row) in line.text.lines().enumerate() {
            let time = if k == 0 { &time } else { &blank };
            let took = if k == 0 { took(line) } else { String::new() };
            self.printer
                .data(format!("{}{row}{}", dim(time), dim(&took)))?;
        }
        Ok(())
    }
}

/// Returns how long the calls took that ended in a line.
fn took(line: &LineRow) -> String {
    let each = line.took.iter().map(|took| {
        let millis = i64::try_from(took.millis).unwrap_or(i64::MAX);
        format!("   {} took {}", took.effect, span(millis))
    });
    each.collect()
}
