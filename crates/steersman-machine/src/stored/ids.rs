//! Ids of the lines of a session's log, of the things that a line made, and of the texts that came in with it.

use crate::stored::parts::{NewPart, Parts};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::Arc;

/// A short shared name of a tool, an agent, a state entry or a person.
pub type Name = Arc<str>;

/// Milliseconds since 1970-01-01T00:00:00Z. The machine never reads a clock; time comes in with each tick.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time(pub i64);

impl Time {
    /// Returns this moment plus `millis` milliseconds; saturates at the end of time.
    pub fn plus(self, millis: u64) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(millis).unwrap_or(i64::MAX)),
        )
    }

    /// Returns this moment minus `millis` milliseconds; saturates at the beginning of time.
    pub fn minus(self, millis: u64) -> Self {
        let millis = i64::try_from(millis).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// Returns the milliseconds from this moment to `at`, or 0 if `at` is earlier. Saturates, because clocks may give any value.
    pub fn until(self, at: Self) -> u64 {
        u64::try_from(at.0.saturating_sub(self.0)).unwrap_or(0)
    }
}

/// The number of a line of a session's log. The first line has number 1.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Line(pub u64);

impl Line {
    /// The number before the first line: the parent of `main`'s first commit.
    pub const NONE: Self = Self(0);
    /// The greatest number, so that session number and line fit one 64-bit key.
    pub const MAX: Self = Self((1 << 28) - 1);
    /// Each owner begins at the next multiple of this number above all lines that may have been used.
    pub const EPOCH_STEP: u64 = 100;

    /// Returns the number of the line after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Returns true if this is the number of a line, and not `Line::NONE`.
    pub fn is_some(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The id of the k-th thing that line n made: an agent, a call, an effect, a branch. Written `n.k`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Id(NonZeroU64);

impl Id {
    /// The branch that every session begins with. No line makes it.
    pub const MAIN: Self = Self(NonZeroU64::MIN);
    const BITS: u32 = 20;
    /// The greatest value of k.
    pub(crate) const LAST: u32 = (1 << Self::BITS) - 1;

    /// Returns the id of the `k`-th thing of `line`. Panics if either is out of range: a line makes fewer than 2^20 things.
    pub fn new(line: Line, k: u32) -> Self {
        assert!(
            line.is_some() && line <= Line::MAX,
            "line {line} out of range"
        );
        assert!(k < 1 << Self::BITS, "a line makes fewer than 2^20 things");
        Self(NonZeroU64::new(line.0 << Self::BITS | u64::from(k)).expect("line is not zero"))
    }

    /// Returns the line that made the thing; `Line::NONE` for `Id::MAIN`.
    pub fn line(self) -> Line {
        Line(self.0.get() >> Self::BITS)
    }

    /// Returns the number of the thing within its line.
    pub fn k(self) -> u32 {
        (self.0.get() & ((1 << Self::BITS) - 1)) as u32
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::MAIN {
            f.write_str("main")
        } else {
            write!(f, "{}.{}", self.line(), self.k())
        }
    }
}

/// Parses `n.k` or `main`. Any other text is an error without further detail.
impl FromStr for Id {
    type Err = ();
    fn from_str(s: &str) -> Result<Self, ()> {
        if s == "main" {
            return Ok(Self::MAIN);
        }
        let (n, k) = s.split_once('.').ok_or(())?;
        let (n, k) = (
            n.parse::<u64>().map_err(drop)?,
            k.parse::<u32>().map_err(drop)?,
        );
        if n == 0 || n > Line::MAX.0 || k >= 1 << Self::BITS {
            Err(())
        } else {
            Ok(Self::new(Line(n), k))
        }
    }
}

/// The place of a text, or of a list of parts ([`crate::stored::parts`]): the k-th body of line n. A text is stored once, in the
/// line that it came in with. Everything that repeats it refers to this place, so erasing it once erases it everywhere. Bodies are
/// numbered separately from [`Id`]s.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Body(Id);

impl Body {
    /// Returns the place of the `k`-th body of `line`.
    pub fn new(line: Line, k: u32) -> Self {
        Self(Id::new(line, k))
    }
    /// Returns the line whose row holds the text.
    pub fn line(self) -> Line {
        self.0.line()
    }
    /// Returns the number of the body within its line.
    pub fn k(self) -> u32 {
        self.0.k()
    }
}

/// The birth numbers from the root down; empty for the root. They order moves, and `diff` matches agents by them.
pub type Path = Arc<[u32]>;

/// The first 128 bits of a blake3 hash of arguments, requests or definitions.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// Returns the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::of_hash(blake3::hash(bytes).as_bytes())
    }
    /// Returns the digest of the bytes that have this blake3 hash.
    pub fn of_hash(hash: &[u8; 32]) -> Self {
        Self(std::array::from_fn(|n| hash[n]))
    }
    /// Returns the first six hexadecimal digits, the form that people see.
    pub fn short(self) -> String {
        hex(&self.0[..3])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns bytes as hexadecimal digits in lower case.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Parses hexadecimal digits in either case. Returns `None` if the text is anything else.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
            _ => None,
        })
        .collect()
}

/// Text that replaces an erased text.
pub const ERASED: &str = "[erased]";

/// Texts that the snapshot and the stacks name. The owner of the log implements it.
pub trait Bodies {
    /// Returns the parts of a body: one text, or several parts. An erased body is the text [`ERASED`].
    fn parts(&self, body: Body) -> Parts;

    /// Returns a body as one text. Artifacts among its parts are named in it.
    fn text(&self, body: Body) -> Arc<str> {
        let text = |k| self.text(Body::new(body.line(), k));
        self.parts(body).told(text)
    }

    /// Returns a body in the form of an outcome: the text that comes first, if one does, and the parts that follow it.
    fn of_outcome(&self, body: Body) -> (Option<String>, Vec<NewPart>) {
        let text = |k| self.text(Body::new(body.line(), k));
        self.parts(body).of_outcome(text)
    }
}
