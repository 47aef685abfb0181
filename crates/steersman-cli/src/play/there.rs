//! Follows a branch of a session that a server drives: prints its story until it rests.

use super::{Leaving, Told, report};
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, bold, dim};
use crate::remote::{RESTART, Remote};
use crate::tell::row::{Form, print};
use crate::words::talk_width;
use std::sync::Arc;
use std::time::Duration;
use steersman::views::screen::{Ask, FollowScreen, LogScreen};
use steersman_client::Follow;

/// Interval at which the server is asked although it told of nothing.
const LOOK: Duration = Duration::from_secs(5);

/// The part of a session that is followed.
pub(crate) struct Followed<'a> {
    pub(crate) session: &'a str,
    /// The label or the id of a branch; `None` means the current one.
    pub(crate) branch: Option<&'a str>,
    /// The line after which its story is printed.
    pub(crate) after: u64,
    /// The line after which the branch must have come to rest.
    pub(crate) least: u64,
    /// True if the session has just begun.
    pub(crate) begins: bool,
    /// True if the definition is named, and with `--json` all events are printed.
    pub(crate) whole: bool,
}

/// Prints the lines of a branch until it rests, also if its server is started again meanwhile. `None` means that the person at the
/// terminal left.
pub(crate) async fn follow(
    remote: &Remote,
    printer: &Printer,
    of: &Followed<'_>,
) -> Result<Option<FollowScreen>, CommandError> {
    let remote = remote.patient(RESTART);
    followed(&remote, printer, of).await.map_err(|error| {
        let resume = format!("steersman run --resume {}", of.session);
        match error.exit {
            Exit::Store => error.hint(format!(
                "nothing is lost; once the server is back: {resume}"
            )),
            _ => error,
        }
    })
}

async fn followed(
    remote: &Remote,
    printer: &Printer,
    of: &Followed<'_>,
) -> Result<Option<FollowScreen>, CommandError> {
    let mut leaving = Leaving::listen()?;
    let wanted = Follow::default().from(&of.after.to_string());
    let mut events = remote.client.session(of.session).follow(wanted);
    let (mut upto, mut short) = (of.after, of.session.to_owned());
    // A session that has just begun has no line yet.
    let mut is_there = !of.begins;
    loop {
        if is_there {
            let screen = next(remote, printer, of, upto).await?;
            upto = screen.upto.0;
            if screen.rests && screen.head.0 > of.least {
                return Ok(Some(screen));
            }
            short = screen.short;
        }
        // A line may have several events, and a session settles without a line of its own.
        loop {
            tokio::select! {
                biased;
                () = leaving.wanted() => {
                    printer.talk(dim("it goes on on the server"));
                    printer.next(format!("steersman show {short}"), "");
                    return Ok(None);
                }
                event = events.next() => match event.transpose()? {
                    Some(event) if event.kind != "settled" && event.line.is_none_or(|line| line <= upto) => {}
                    _ => break,
                },
                () = tokio::time::sleep(LOOK), if is_there => break,
            }
        }
        is_there = true;
    }
}

/// Prints what happened since a line, and returns how the session stands.
async fn next(
    remote: &Remote,
    printer: &Printer,
    of: &Followed<'_>,
    upto: u64,
) -> Result<FollowScreen, CommandError> {
    let ask = Ask {
        branch: of.branch.map(str::to_owned),
        after: Some(upto),
        ..Ask::default()
    };
    let screen: FollowScreen = remote.screen_of(of.session, &ask).await?;
    if of.whole && printer.is_json() {
        let mut ask = Ask {
            form: Some("events".to_owned()),
            ..ask
        };
        loop {
            let events: LogScreen = remote.screen_of(of.session, &ask).await?;
            for event in &events.events {
                printer.json(event)?;
            }
            ask.after = Some(events.upto.0);
            if !events.has_more {
                break;
            }
        }
    }
    if let Some(bound) = screen.bound.as_ref().filter(|_| of.whole) {
        printer.talk(format!(
            "{} {}   session {}   {}   {}",
            bold(&bound.network),
            bound.digest,
            bold(&screen.short),
            bound.models,
            dim("Ctrl-C leaves it to the server")
        ));
    }
    let form = Form::wide(talk_width());
    for row in screen.rows.iter().flat_map(|row| print(row, form)) {
        printer.talk(row);
    }
    Ok(screen)
}

/// Reports how a session stands, as if this process had driven it.
pub(crate) fn reported(printer: &Printer, screen: FollowScreen) -> Result<Exit, CommandError> {
    let told = Told {
        elsewhere: screen.elsewhere(),
        name: screen.name,
        settled: Arc::new(screen.stands.into()),
        first: screen.reason,
        waits_for: screen.waits_for,
    };
    report(printer, &screen.session, screen.head, &told, screen.now)
}
