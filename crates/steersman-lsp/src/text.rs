//! Positions of the protocol, lines from 0 and columns in UTF-16 units from 0, and offsets in bytes.

use serde::{Deserialize, Serialize};
use std::ops::Range as Bytes;

/// A position in a text.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(crate) struct Position {
    pub line: usize,
    pub character: usize,
}

/// A range of positions; its end is behind it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Range {
    pub start: Position,
    pub end: Position,
}

/// Returns the offset of a position. A column behind the end of its line is the end, and a line behind the end of the text is
/// the end of the text, as the protocol says.
pub(crate) fn offset(text: &str, at: Position) -> usize {
    let mut start = 0;
    for _ in 0..at.line {
        match text[start..].find('\n') {
            Some(end) => start += end + 1,
            None => return text.len(),
        }
    }
    let line = text[start..].lines().next().unwrap_or_default();
    let mut units = 0;
    for (byte, c) in line.char_indices() {
        if units >= at.character {
            return start + byte;
        }
        units += c.len_utf16();
    }
    start + line.len()
}

/// Returns the position of an offset.
pub(crate) fn position(text: &str, offset: usize) -> Position {
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    Position {
        line: before.matches('\n').count(),
        character: before[start..].chars().map(char::len_utf16).sum(),
    }
}

/// Returns the range of a range of bytes.
pub(crate) fn range(text: &str, bytes: Bytes<usize>) -> Range {
    Range {
        start: position(text, bytes.start),
        end: position(text, bytes.end),
    }
}

/// Replaces a range of a text.
pub(crate) fn replace(text: &mut String, at: Range, with: &str) {
    let start = offset(text, at.start);
    let end = offset(text, at.end).max(start);
    text.replace_range(start..end, with);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_utf16_units_and_are_cut_at_the_end() {
        let text = "a: ä😀x\r\nb: 1";
        let at = |line, character| offset(text, Position { line, character });
        assert_eq!(&text[at(0, 6)..], "x\r\nb: 1");
        assert_eq!(&text[at(0, 99)..], "\r\nb: 1");
        assert_eq!(&text[at(1, 3)..], "1");
        assert_eq!(at(7, 0), text.len());
        let x = Position {
            line: 0,
            character: 6,
        };
        assert_eq!(position(text, at(0, 6)), x);
    }
}
