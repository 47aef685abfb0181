//! Follows a branch that another process drives: prints its story until it rests.

use super::{Leaving, Told, report};
use crate::error::{CommandError, Exit};
use crate::place::{Place, typed_as};
use crate::printer::{Printer, dim};
use crate::tell::row::{Form, print};
use crate::words::talk_width;
use std::sync::Arc;
use std::time::Duration;
use steersman::runtime::feed::FeedItem;
use steersman::runtime::session::Settled;
use steersman::views::reader::{Reader as _, Stored};
use steersman::views::screen::rests;
use steersman::views::story::Story;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Id, Line};

/// Interval at which the process that drives the session is checked.
const LOOK: Duration = Duration::from_millis(500);

/// A branch that rests.
pub(crate) struct Rested {
    pub(crate) settled: Settled,
    line: Line,
    name: String,
}

/// Prints the lines of a branch from a line on, until the branch rests. `None` means that the person at the terminal left, or that the
/// other process ended; both are told.
pub(crate) async fn follow(
    place: &Place,
    printer: &Printer,
    session: &str,
    branch: Option<Id>,
    from: Line,
) -> Result<Option<Rested>, CommandError> {
    let mut leaving = Leaving::listen()?;
    let reader = Arc::new(Stored::plain(place.engine(), session));
    let mut story = Story::told(false);
    let mut feed = place.engine().feed(session, Line::NONE);
    let mut lines = feed.lines().await?;
    let short = place.short(session).await?;
    loop {
        for line in lines.drain(..) {
            let line: &LogLine = &*reader.arrived(line).await?;
            let rows = story.line(line, &*reader).await?;
            let aloud = line.n >= from && branch.is_none_or(|branch| line.branch == branch);
            for row in rows
                .iter()
                .filter(|_| aloud)
                .flat_map(|row| print(row, Form::wide(talk_width())))
            {
                printer.talk(row);
            }
        }
        let seen = place.engine().inspect(session).await?;
        let found = seen.branches.iter().find(|b| Some(b.id) == branch);
        if let Some(branch) = found.or(seen.current_branch())
            && branch.head >= from
            && rests(&seen, branch)
        {
            let is_current = branch.id == seen.current;
            return Ok(Some(Rested {
                settled: seen.settled_on(branch),
                line: branch.head,
                name: typed_as(&short, Some(branch).filter(|_| !is_current)),
            }));
        }
        if seen.info.owner.is_none() {
            printer.talk(dim("the process that drove the session ended"));
            printer.next(format!("steersman run --resume {short}"), "goes on here");
            return Ok(None);
        }
        tokio::select! {
            biased;
            () = leaving.wanted() => {
                printer.talk(dim("it goes on in the process that drives it"));
                printer.next(format!("steersman show {short}"), "");
                return Ok(None);
            }
            item = feed.next() => {
                if let FeedItem::Line(line) = item? {
                    lines.push(line);
                }
            }
            () = tokio::time::sleep(LOOK) => {}
        }
        lines.extend(feed.lines().await?);
    }
}

impl Rested {
    /// Reports the status of the branch, as if this process had driven it.
    pub(crate) async fn report(
        self,
        place: &Place,
        printer: &Printer,
        session: &str,
    ) -> Result<Exit, CommandError> {
        let told = Told::of(self.name, self.settled)
            .beside(place, session)
            .await?;
        report(printer, session, self.line, &told, place.now())
    }
}
