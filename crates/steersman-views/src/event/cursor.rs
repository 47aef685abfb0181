//! Positions in the events of a session.

use std::fmt;
use std::str::FromStr;
use steersman_machine::stored::ids::Line;

/// Position of a reader in a session's events, after an event that is on disk. Displays as `12.3` (after the third event of
/// line 12) and parses from that text, so that it can be the id of a server-sent event. A reader in any process that opens
/// the store can continue from it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    pub(super) line: Line,
    pub(super) given: Given,
}

/// The events of a line that were delivered.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Given {
    /// So many, from the first one on.
    First(u32),
    All,
}

impl Default for Given {
    fn default() -> Self {
        Self::First(0)
    }
}

impl Cursor {
    /// The position before all events.
    pub const START: Self = Self {
        line: Line::NONE,
        given: Given::First(0),
    };

    /// Returns the line whose events were delivered last.
    pub fn line(self) -> Line {
        self.line
    }

    /// Returns the line after which a reader continues. The first line that it then reads may hold events that were delivered
    /// before. The reader skips events whose cursor is not after this one.
    pub fn resume(self) -> Line {
        if self.given == Given::All || !self.line.is_some() {
            self.line
        } else {
            Line(self.line.0 - 1)
        }
    }
}

/// The position after all events of this line.
impl From<Line> for Cursor {
    fn from(line: Line) -> Self {
        Self {
            line,
            given: Given::All,
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.given {
            Given::All => write!(f, "{}", self.line),
            Given::First(given) => write!(f, "{}.{given}", self.line),
        }
    }
}

/// Error for a text that is not a cursor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a cursor: a cursor looks like `12` or `12.3`")]
pub struct CursorError(String);

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let wrong = || CursorError(text.chars().take(40).collect());
        let (line, given) = match text.split_once('.') {
            Some((line, given)) => (line, Given::First(given.parse().map_err(|_| wrong())?)),
            None => (text, Given::All),
        };
        let line = Line(line.parse().map_err(|_| wrong())?);
        if line > Line::MAX {
            return Err(wrong());
        }
        Ok(Self { line, given })
    }
}
