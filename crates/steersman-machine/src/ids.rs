//! Ids: the lines of a session's log, the things a line made, and the texts that came in with it.

use serde::{Deserialize, Serialize};
use std::{fmt, num::NonZeroU64, str::FromStr, sync::Arc};

/// A short name, shared: of a tool, an agent, a state entry, a person.
pub type Name = Arc<str>;

/// Milliseconds since 1970-01-01T00:00:00Z. The machine never reads a clock; time comes in with each tick.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time(pub i64);

impl Time {
    /// This moment and `millis` milliseconds; saturates at the end of time.
    pub fn plus(self, millis: u64) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(millis).unwrap_or(i64::MAX)),
        )
    }

    /// This moment without `millis` milliseconds; saturates at the beginning of time.
    pub fn minus(self, millis: u64) -> Self {
        let millis = i64::try_from(millis).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// Milliseconds from this moment to that one; none if it is over. Clocks may say anything: no difference is too large.
    pub fn until(self, at: Self) -> u64 {
        u64::try_from(at.0.saturating_sub(self.0)).unwrap_or(0)
    }
}

/// The number of a line of a session's log. `Line::NONE` stands before every line.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Line(pub u64);

impl Line {
    /// Before the first line: the parent of `main`'s first commit.
    pub const NONE: Self = Self(0);
    /// Numbers stay below this, so that session number and line fit one 64 bit key.
    pub const MAX: Self = Self((1 << 40) - 1);
    /// Each owner begins at the next multiple of this above what may have been used.
    pub const EPOCH_STEP: u64 = 100;

    /// The line behind this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Whether this is a real line.
    pub fn is_some(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The k-th thing that line n made: an agent, a call, an effect, a branch. Written `n.k`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Id(NonZeroU64);

impl Id {
    /// The branch every session begins with. No line makes it.
    pub const MAIN: Self = Self(NonZeroU64::MIN);
    const BITS: u32 = 20;
    /// The greatest k.
    pub(crate) const LAST: u32 = (1 << Self::BITS) - 1;

    /// The `k`-th thing of `line`. Panics if either is out of range: a line makes fewer than 2^20 things.
    pub fn new(line: Line, k: u32) -> Self {
        assert!(
            line.is_some() && line <= Line::MAX,
            "line {line} out of range"
        );
        assert!(k < 1 << Self::BITS, "a line makes fewer than 2^20 things");
        Self(NonZeroU64::new(line.0 << Self::BITS | u64::from(k)).expect("line is not zero"))
    }

    /// The line that made it; `Line::NONE` for `Id::MAIN`.
    pub fn line(self) -> Line {
        Line(self.0.get() >> Self::BITS)
    }

    /// Which of the things of its line.
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

/// `n.k` or `main`; anything else is an error without further detail.
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

/// Where a text lies: the k-th body of line n. A text is stored once, where it came in; whatever repeats it
/// names it, so erasing one erases all. Numbered apart from [`Id`]s.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Body(Id);

impl Body {
    /// The `k`-th body of `line`.
    pub fn new(line: Line, k: u32) -> Self {
        Self(Id::new(line, k))
    }
    /// The line whose row holds it.
    pub fn line(self) -> Line {
        self.0.line()
    }
    /// Which of the bodies of that line.
    pub fn k(self) -> u32 {
        self.0.k()
    }
}

/// The birth numbers under each parent, from the root (empty) down: orders moves, matches agents in `diff`.
pub type Path = Arc<[u32]>;

/// 128 bits of a blake3 hash: of arguments, requests, definitions.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut out = [0; 16];
        out.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
        Self(out)
    }
    /// The first six hexadecimal digits, as people see it.
    pub fn short(self) -> String {
        self.to_string()[..6].to_owned()
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

/// Bytes as hexadecimal digits, lower case.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// What [`hex`] wrote, in either case; none if it is anything else.
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
