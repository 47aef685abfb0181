//! The screen of `log`.

use super::seen::named_line;
use super::{Ask, LineName, Screen, ScreenError, Seen, branch_name, line};
use crate::event::Teller;
use crate::line::{LineView, Lines, Took};
use crate::shown;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Line, Time};

/// Lines of a session, each with everything that it holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogScreen {
    /// The session as people type it.
    pub short: String,
    /// The lines, oldest first; empty if events were asked for.
    pub lines: Vec<LineRow>,
    /// Their events, if `events` was the form that was asked for; their documents, if it was `lines`.
    pub events: Vec<Json>,
    /// The last line of the branch.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub head: Line,
    /// The name of the branch.
    pub branch: String,
    /// Number of lines of the session.
    pub all: usize,
    /// The last line that this screen has read.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub upto: Line,
    /// True if there are lines after that one.
    pub has_more: bool,
}

/// A line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LineRow {
    /// The time that the line records.
    #[serde(serialize_with = "shown::time", deserialize_with = "shown::read::time")]
    pub at: Time,
    /// Durations of what ended in it.
    pub took: Vec<Took>,
    /// Head and rows, as they are printed.
    pub text: String,
}

impl From<LineView> for LineRow {
    fn from(view: LineView) -> Self {
        Self {
            at: view.at,
            took: view.took,
            text: view.text,
        }
    }
}

/// The form of [`Ask`] in which a log is told as events.
const EVENTS: &str = "events";
/// The form of [`Ask`] in which each line is one document.
const LINES: &str = "lines";

impl Screen for LogScreen {
    const NAME: &'static str = "log";

    async fn of(seen: Seen, ask: &Ask) -> Result<Self, ScreenError> {
        let only = seen.named().map(|branch| branch.id);
        let all: Vec<&Arc<LogLine>> = seen.log.lines.iter().collect();
        // The lines of all branches are shown if none is named, so a number may be that of any line.
        let from = match named_line(ask)? {
            // The line was found for the screen before this one.
            _ if ask.after.is_some() => None,
            Some(name @ LineName::First(_)) => line(Some(&name), &seen.path())?,
            name => line(name.as_ref(), &all)?,
        };
        let from = from.unwrap_or(Line::NONE);
        let after = Line(ask.after.unwrap_or(0));
        let most = ask.most.unwrap_or(usize::MAX);
        let tells = ask.form.as_deref() == Some(EVENTS);
        let (mut views, mut teller) = (Lines::default(), Teller::new(seen.reader.clone()));
        let mut screen = Self {
            short: seen.short.clone(),
            lines: Vec::new(),
            events: Vec::new(),
            head: seen.branch().head,
            branch: branch_name(seen.branch()),
            all: all.len(),
            upto: after,
            has_more: false,
        };
        let mut shown = 0;
        for line in &seen.log.lines {
            let wanted = line.n > after && line.n >= from;
            if !wanted || only.is_some_and(|branch| line.branch != branch) {
                views.learn(line);
                screen.upto = screen.upto.max(line.n);
                continue;
            }
            if shown == most {
                screen.has_more = true;
                break;
            }
            shown += 1;
            screen.upto = line.n;
            if ask.form.as_deref() == Some(LINES) {
                let view = views.line(line, &seen.log.texts);
                let document = serde_json::to_value(view).unwrap_or_default();
                screen.events.push(document);
            } else if tells {
                for event in teller.line(line).await? {
                    screen.events.push(event.to_json());
                }
            } else {
                screen.lines.push(views.line(line, &seen.log.texts).into());
            }
        }
        Ok(screen)
    }
}
