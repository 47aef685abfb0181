//! The types of values: views of a node that know how the value is written and what it means.

use super::{Section, Ty};
use crate::source::{self, Kind, Node, Scalar};
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use steersman_machine::values::{price, rate};

/// A view of a node as one type. If the node is of another type, which `shape` reports, the view has no value and no items.
pub(crate) trait Read<'a>: Copy {
    /// The type, as the checks of shapes, the schema and the reference use it.
    const TY: Ty;
    /// Views a node as this type.
    fn read(node: &'a Node) -> Self;
    /// Returns the node.
    fn node(self) -> &'a Node;
}

/// A type whose values can be read without the rest of the definition, so that a key of this type may have a default.
pub(crate) trait Valued<'a>: Read<'a> {
    /// The Rust type of the value.
    type Value;
    /// Returns the value, if the node has one of this type.
    fn value(self) -> Option<Self::Value>;
    /// Returns a value as a definition writes it.
    fn written(value: Self::Value) -> String;
}

/// The value of a key that has a default.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Given<'a, V> {
    /// The written value; `None` if the key is absent.
    pub at: Option<&'a Node>,
    /// The value: the default if the key is absent or has no value of its type.
    pub value: V,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $ty:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Copy, Clone, Debug)]
        pub(crate) struct $name<'a>(pub &'a Node);

        impl<'a> Read<'a> for $name<'a> {
            const TY: Ty = $ty;
            fn read(node: &'a Node) -> Self {
                Self(node)
            }
            fn node(self) -> &'a Node {
                self.0
            }
        }

        impl Deref for $name<'_> {
            type Target = Node;
            fn deref(&self) -> &Node {
                self.0
            }
        }
    )*};
}

kinds! {
    /// A number, with or without a fraction.
    Real = Ty::Number;
    /// `true` or `false`.
    Flag = Ty::Boolean;
    /// Text without templates.
    Text = Ty::Text;
    /// A reference to a name that is declared elsewhere.
    Name = Ty::Name;
    /// A path, relative to the file that names it.
    Path = Ty::Path;
    /// The path of a file or folder that a session reads in its current state.
    Documents = Ty::Documents;
    /// A template, or a path to one.
    Prompt = Ty::Prompt;
    /// A span of time.
    Millis = Ty::Duration;
    /// A size in bytes.
    Size = Ty::Size;
    /// An amount of money.
    Money = Ty::Money;
    /// An expression in text form.
    Expr = Ty::Expr;
    /// A text with `{{ }}` and `{% %}`.
    Template = Ty::Template;
    /// JSON with templates in its texts.
    Data = Ty::Data;
    /// JSON without templates.
    Any = Ty::Any;
    /// A type, short or long.
    Type = Ty::Type;
}

impl<'a> Text<'a> {
    /// Returns the text; `None` for a list or map.
    pub(crate) fn text(self) -> Option<&'a Arc<str>> {
        self.0.as_text()
    }
}

impl<'a> Name<'a> {
    /// Returns the name; `None` for a list or map.
    pub(crate) fn text(self) -> Option<&'a Arc<str>> {
        self.0.as_text()
    }
}

/// A whole number that is not below `MIN`.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Whole<'a, const MIN: i64>(pub &'a Node);

impl<'a, const MIN: i64> Read<'a> for Whole<'a, MIN> {
    const TY: Ty = Ty::Integer(MIN);
    fn read(node: &'a Node) -> Self {
        Self(node)
    }
    fn node(self) -> &'a Node {
        self.0
    }
}

impl<'a, const MIN: i64> Valued<'a> for Whole<'a, MIN> {
    type Value = u64;
    fn value(self) -> Option<u64> {
        whole(self.0)
    }
    fn written(value: u64) -> String {
        value.to_string()
    }
}

/// A whole number that is not below `MIN`; larger numbers than 32 bits hold count as the largest.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Few<'a, const MIN: i64>(pub &'a Node);

impl<'a, const MIN: i64> Read<'a> for Few<'a, MIN> {
    const TY: Ty = Ty::Integer(MIN);
    fn read(node: &'a Node) -> Self {
        Self(node)
    }
    fn node(self) -> &'a Node {
        self.0
    }
}

impl<'a, const MIN: i64> Valued<'a> for Few<'a, MIN> {
    type Value = u32;
    fn value(self) -> Option<u32> {
        whole(self.0).map(|value| u32::try_from(value).unwrap_or(u32::MAX))
    }
    fn written(value: u32) -> String {
        value.to_string()
    }
}

/// Returns a whole number that is not negative; `None` for any other node.
pub(crate) fn whole(node: &Node) -> Option<u64> {
    match node.scalar()?.kind {
        Kind::Integer(value) => u64::try_from(value).ok(),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text => None,
    }
}

impl<'a> Valued<'a> for Real<'a> {
    type Value = f64;
    fn value(self) -> Option<f64> {
        match self.scalar()?.kind {
            Kind::Integer(value) => Some(value as f64),
            Kind::Number(value) => Some(value),
            Kind::Null | Kind::Bool(_) | Kind::Text => None,
        }
    }
    fn written(value: f64) -> String {
        value.to_string()
    }
}

impl<'a> Valued<'a> for Flag<'a> {
    type Value = bool;
    fn value(self) -> Option<bool> {
        match &**self.as_text()? {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }
    fn written(value: bool) -> String {
        value.to_string()
    }
}

impl<'a> Valued<'a> for Text<'a> {
    type Value = String;
    fn value(self) -> Option<String> {
        self.text().map(ToString::to_string)
    }
    fn written(value: String) -> String {
        value
    }
}

impl<'a> Valued<'a> for Millis<'a> {
    type Value = u64;
    fn value(self) -> Option<u64> {
        duration(self.as_text()?)
    }
    /// Writes the duration in the largest unit of which it has at least two.
    fn written(value: u64) -> String {
        let units = [
            (86_400_000, "d"),
            (3_600_000, "h"),
            (60_000, "m"),
            (1_000, "s"),
        ];
        let fits = |(unit, _): &&(u64, _)| value.is_multiple_of(*unit) && value / unit >= 2;
        let (unit, word) = units.iter().find(fits).unwrap_or(&(1, "ms"));
        format!("{}{word}", value / unit)
    }
}

impl<'a> Valued<'a> for Size<'a> {
    type Value = usize;
    fn value(self) -> Option<usize> {
        size(self.as_text()?)
    }
    fn written(value: usize) -> String {
        let units = [(1 << 20, "MiB"), (1 << 10, "KiB")];
        let fits = |(unit, _): &&(usize, _)| value.is_multiple_of(*unit);
        let (unit, word) = units.iter().find(fits).unwrap_or(&(1, "B"));
        format!("{}{word}", value / unit)
    }
}

impl Money<'_> {
    /// Returns the amount in millionths.
    pub(crate) fn micros(self) -> Option<u64> {
        money(self.scalar()?)
    }
}

/// A rate. Without `TOKENS` it limits requests only, no tokens.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Rate<'a, const TOKENS: bool>(pub &'a Node);

impl<'a, const TOKENS: bool> Read<'a> for Rate<'a, TOKENS> {
    const TY: Ty = Ty::Rate(TOKENS);
    fn read(node: &'a Node) -> Self {
        Self(node)
    }
    fn node(self) -> &'a Node {
        self.0
    }
}

impl<const TOKENS: bool> Rate<'_, TOKENS> {
    /// Returns the rate.
    pub(crate) fn rate(self) -> Option<rate::Rate> {
        rate::Rate::parse(self.0.as_text()?)
    }
}

/// Values that are written as one word each.
pub(crate) trait Words: Copy + 'static {
    /// All words; `false` marks a reserved one.
    const WORDS: &'static [(&'static str, bool)];
    /// Returns the value of a word.
    fn of(word: &str) -> Option<Self>;
    /// Returns the word of a value.
    fn word(self) -> &'static str;
}

/// Implements [`Words`] for an enum of the machine (`NAME: VARIANT = "word"`), or for a new enum (`enum NAME: ..`). Words after
/// `reserved` are known and refused.
macro_rules! words {
    ($($(#[$doc:meta])* enum $name:ident: $($variant:ident = $word:literal),+;)+) => {$(
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $(#[doc = concat!("`", $word, "`")] $variant,)+
        }
        $crate::keys::kinds::words! { $name: $($variant = $word),+; }
    )+};
    ($($name:ident $(, reserved $($reserved:literal),+)?: $($variant:ident = $word:expr),+;)+) => {$(
        impl $crate::keys::kinds::Words for $name {
            const WORDS: &'static [(&'static str, bool)] =
                &[$(($word, true),)+ $($(($reserved, false),)+)?];
            fn of(word: &str) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|one| $crate::keys::kinds::Words::word(*one) == word)
            }
            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    )+};
}
pub(crate) use words;

/// One of the words of `W`.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Word<'a, W>(pub &'a Node, PhantomData<W>);

impl<'a, W: Words> Read<'a> for Word<'a, W> {
    const TY: Ty = Ty::Word(W::WORDS);
    fn read(node: &'a Node) -> Self {
        Self(node, PhantomData)
    }
    fn node(self) -> &'a Node {
        self.0
    }
}

impl<'a, W: Words> Valued<'a> for Word<'a, W> {
    type Value = W;
    fn value(self) -> Option<W> {
        W::of(self.0.as_text()?)
    }
    fn written(value: W) -> String {
        value.word().to_owned()
    }
}

impl<'a, T: Valued<'a>> Valued<'a> for List<'a, T> {
    type Value = Vec<T::Value>;
    fn value(self) -> Option<Self::Value> {
        Some(self.into_iter().filter_map(T::value).collect())
    }
    fn written(value: Self::Value) -> String {
        let items: Vec<String> = value.into_iter().map(T::written).collect();
        format!("[{}]", items.join(", "))
    }
}

/// A list whose items are read as `T`.
#[derive(Copy, Clone, Debug)]
pub(crate) struct List<'a, T>(pub &'a Node, PhantomData<T>);

impl<'a, T: Read<'a>> Read<'a> for List<'a, T> {
    const TY: Ty = Ty::List(const { &T::TY });
    fn read(node: &'a Node) -> Self {
        Self(node, PhantomData)
    }
    fn node(self) -> &'a Node {
        self.0
    }
}

impl<'a, T: Read<'a>> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = std::iter::Map<std::slice::Iter<'a, Node>, fn(&'a Node) -> T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.items().iter().map(T::read)
    }
}

/// One value, or a list of them.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Many<'a, T>(pub &'a Node, PhantomData<T>);

impl<'a, T: Read<'a>> Read<'a> for Many<'a, T> {
    const TY: Ty = Ty::Or(const { &[T::TY, Ty::List(&T::TY)] });
    fn read(node: &'a Node) -> Self {
        Self(node, PhantomData)
    }
    fn node(self) -> &'a Node {
        self.0
    }
}

impl<'a, T: Read<'a>> IntoIterator for Many<'a, T> {
    type Item = T;
    type IntoIter = std::iter::Map<std::slice::Iter<'a, Node>, fn(&'a Node) -> T>;
    fn into_iter(self) -> Self::IntoIter {
        let nodes = match self.0.items() {
            [] => std::slice::from_ref(self.0),
            items => items,
        };
        nodes.iter().map(T::read)
    }
}

macro_rules! maps {
    ($($(#[$doc:meta])* $name:ident = $ty:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Copy, Clone, Debug)]
        pub(crate) struct $name<'a, T>(pub &'a Node, PhantomData<T>);

        impl<'a, T: Read<'a>> Read<'a> for $name<'a, T> {
            const TY: Ty = Ty::$ty(const { &T::TY });
            fn read(node: &'a Node) -> Self {
                Self(node, PhantomData)
            }
            fn node(self) -> &'a Node {
                self.0
            }
        }

        impl<'a, T: Read<'a>> IntoIterator for $name<'a, T> {
            type Item = (&'a source::Key, T);
            type IntoIter = std::iter::Map<
                std::slice::Iter<'a, (source::Key, Node)>,
                fn(&'a (source::Key, Node)) -> (&'a source::Key, T),
            >;
            fn into_iter(self) -> Self::IntoIter {
                self.0.entries().iter().map(|(key, node)| (key, T::read(node)))
            }
        }

        impl<'a, T: Read<'a>> $name<'a, T> {
            /// Returns the value of a key.
            pub(crate) fn get(self, name: &str) -> Option<T> {
                self.0.get(name).map(T::read)
            }
        }
    )*};
}

maps! {
    /// A map with any keys.
    Map = Map;
    /// A map whose keys are well-formed names.
    Names = Names;
}

/// Iterates over the items or entries of a collection that may be absent.
pub(crate) fn each<C: IntoIterator>(of: Option<C>) -> impl Iterator<Item = C::Item> {
    of.into_iter().flatten()
}

/// Returns the entries of a map sorted by name, for maps whose order must have no effect.
pub(crate) fn sorted<'a, T>(
    of: Option<impl IntoIterator<Item = (&'a source::Key, T)>>,
) -> Vec<(&'a source::Key, T)> {
    let mut entries: Vec<_> = each(of).collect();
    entries.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    entries
}

/// A value of one of two types that are told apart by their shape.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Or<A, B> {
    /// A value of the first type.
    One(A),
    /// A value of the second type.
    Other(B),
}

impl<'a, A: Read<'a>, B: Read<'a>> Read<'a> for Or<A, B> {
    const TY: Ty = Ty::Or(const { &[A::TY, B::TY] });
    fn read(node: &'a Node) -> Self {
        let other = !A::TY.fits(node) && B::TY.fits(node);
        if other {
            Self::Other(B::read(node))
        } else {
            Self::One(A::read(node))
        }
    }
    fn node(self) -> &'a Node {
        match self {
            Self::One(one) => one.node(),
            Self::Other(other) => other.node(),
        }
    }
}

/// A section without its short form.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Long<T>(pub T);

impl<'a, T: Section<'a>> Read<'a> for Long<T> {
    const TY: Ty = Ty::Table(T::table);
    fn read(node: &'a Node) -> Self {
        Self(T::read(node))
    }
    fn node(self) -> &'a Node {
        self.0.node()
    }
}

/// Parses a duration into milliseconds: `500ms`, `30s`, `5m`, `2h`, `7d`.
fn duration(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    // a longer duration could not be added to a clock time
    number
        .checked_mul(factor)
        .filter(|ms| *ms <= 100 * 366 * 86_400_000)
}

/// Parses a size into bytes: `512B`, `16KiB`, `4MiB`. `None` if it is malformed, zero or too large.
fn size(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    number
        .parse::<usize>()
        .ok()?
        .checked_mul(factor)
        .filter(|bytes| (1..=steersman_machine::stored::bounds::ARTIFACT).contains(bytes))
}

/// Parses an amount of money into millionths, which are the smallest part that is counted: at most six decimal places are allowed.
/// JSON writes small numbers with an exponent.
fn money(scalar: &Scalar) -> Option<u64> {
    match scalar.kind {
        Kind::Integer(_) | Kind::Number(_) => {}
        Kind::Null | Kind::Bool(_) | Kind::Text => return None,
    }
    let text = if scalar.text.contains(['e', 'E']) {
        scalar.text.parse::<f64>().ok()?.to_string()
    } else {
        scalar.text.to_string()
    };
    let places = text.split_once('.').map_or(0, |(_, part)| part.len());
    price::micros(&text).filter(|micros| places <= 6 && *micros <= MONEY_MAX)
}

/// Maximum amount of money in millionths: a thousand million units. Sums of such amounts stay far from overflow.
const MONEY_MAX: u64 = 1_000_000_000 * 1_000_000;
