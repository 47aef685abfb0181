//! Everything that a definition in YAML can say, in Rust: one type for each section of the format, one method for each key.
//!
//! ```
//! use steersman::build::{Mode, ModeExit, Type};
//! use steersman::{Network, agent};
//!
//! let planner = agent("planner")
//!     .mode("plan", Mode::new().system("You plan.").exits([ModeExit::new().after_calls(2).to("act")]))
//!     .mode("act", Mode::new().system("The plan: {{ state.plan }}"));
//! let network = Network::builder("plans")
//!     .state("plan", Type::from("string").default(""))
//!     .agent(planner)
//!     .build()?;
//! assert_eq!(network.checked().agents.len(), 1);
//! # Ok::<(), steersman::DefinitionError>(())
//! ```
//!
//! The methods have the names of the keys, and mean the same; the reference of the format (`docs/reference/definition.md`) has their defaults. There are
//! these differences:
//!
//! * A map is built entry by entry: `parameter("to", "string")` twice for two `parameters`.
//! * A key whose name is a word of Rust has another name: `seen` for `as`, `otherwise` for `else`, `matching` for `match`, `go_on` for
//!   `continue`, `outage` for `for`, `ty` for `type`, `words` for `enum`, `overrides` for `override`.
//! * A section with a short form is made from that: `"pay"` is a [`ToolUse`], `true` a [`Reflect`], `5` a [`Limit`].
//! * Names are texts, or the thing itself: `.tools([&pay])`.
//! * Arguments and other data are anything that can be serialized. A value that cannot become JSON counts as absent.
//!
//! Faults are found when the network is built, as in YAML.

mod agent;
mod file;
mod route;
mod test;
#[cfg(test)]
mod tests;
mod tool;
mod value;
mod word;

pub use agent::*;
pub use file::*;
pub use route::*;
pub use test::*;
pub use tool::*;
pub use value::{Count, Names, Span, Type};
pub use word::*;

pub(crate) use crate::hooks::Hook;
pub(crate) use crate::network::{Agent, Builder};
pub(crate) use crate::tool::{Declared, Tool};
use serde::Serialize;
use serde_json::{Map, Value as Json};
use value::data;

/// A thing whose keys can be set.
pub(crate) trait Keys: Sized {
    /// Sets a key.
    fn put(self, key: &'static str, value: Json) -> Self;
    /// Returns the value of a key, to be changed. `None` if it cannot be.
    fn at(&mut self, key: &'static str) -> Option<&mut Json>;

    /// Adds an entry to a key that holds a map.
    fn add(mut self, key: &'static str, name: &str, value: Json) -> Self {
        match self.at(key) {
            Some(Json::Object(entries)) => {
                entries.insert(name.to_owned(), value);
                self
            }
            _ => self.put(
                key,
                Json::Object(Map::from_iter([(name.to_owned(), value)])),
            ),
        }
    }

    /// Adds an item to a key that holds a list.
    fn push(mut self, key: &'static str, value: Json) -> Self {
        match self.at(key) {
            Some(Json::Array(items)) => {
                items.push(value);
                self
            }
            _ => self.put(key, Json::Array(vec![value])),
        }
    }
}

impl Keys for Map<String, Json> {
    fn put(mut self, key: &'static str, value: Json) -> Self {
        self.insert(key.to_owned(), value);
        self
    }
    fn at(&mut self, key: &'static str) -> Option<&mut Json> {
        self.get_mut(key)
    }
}

/// A key with a method: its name, its text in the reference, and the words that it may have.
#[cfg(test)]
pub(crate) type Listed = (&'static str, &'static str, &'static [&'static str]);

/// Makes the methods of a section; a line has the text of the reference, the method, the key and the kind of its value.
macro_rules! keys {
    ($($name:ident),+ = $title:literal {
        $($about:literal $method:ident $key:literal $kind:ident $(($of:ident))?;)+
    }) => {
        keys!(@each [$($name),+] { $($about $method $key $kind $($of)?;)+ });
        keys!(@listed $($name),+; $title { $($about $key $kind $($of)?;)+ });
    };
    (@each [$name:ident $(, $more:ident)*] $rows:tt) => {
        keys!(@methods $name $rows);
        keys!(@each [$($more),*] $rows);
    };
    (@each [] $rows:tt) => {};
    (@methods $name:ident { $($about:literal $method:ident $key:literal $kind:ident $($of:ident)?;)+ }) => {
        impl $name {
            $(method!($about $method $key $kind $($of)?);)+
        }
    };
    (@listed $name:ident $(, $more:ident)*; $title:literal { $($about:literal $key:literal $kind:ident $($of:ident)?;)+ }) => {
        #[cfg(test)]
        impl $name {
            pub(crate) const TITLE: &'static str = $title;
            pub(crate) const LISTED: &'static [$crate::build::Listed] = &[$(($key, $about, method!(@words $kind $($of)?))),+];
        }
    };
}

/// Makes one method.
macro_rules! method {
    ($about:literal $name:ident $key:literal text) => {
        #[doc = $about]
        pub fn $name(self, value: impl AsRef<str>) -> Self {
            Keys::put(self, $key, value.as_ref().into())
        }
    };
    ($about:literal $name:ident $key:literal texts) => {
        #[doc = $about]
        pub fn $name(self, values: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
            let values = values.into_iter().map(|value| value.as_ref().into());
            Keys::put(self, $key, Json::Array(values.collect()))
        }
    };
    ($about:literal $name:ident $key:literal version) => {
        #[doc = $about]
        pub fn $name(self, value: impl ToString) -> Self {
            Keys::put(self, $key, value.to_string().into())
        }
    };
    ($about:literal $name:ident $key:literal whole) => {
        #[doc = $about]
        pub fn $name(self, value: u64) -> Self {
            Keys::put(self, $key, value.into())
        }
    };
    ($about:literal $name:ident $key:literal number) => {
        #[doc = $about]
        pub fn $name(self, value: f64) -> Self {
            Keys::put(self, $key, value.into())
        }
    };
    ($about:literal $name:ident $key:literal flag) => {
        #[doc = $about]
        pub fn $name(self, value: bool) -> Self {
            Keys::put(self, $key, value.into())
        }
    };
    ($about:literal $name:ident $key:literal span) => {
        #[doc = $about]
        pub fn $name(self, value: impl Into<Span>) -> Self {
            Keys::put(self, $key, value.into().into())
        }
    };
    ($about:literal $name:ident $key:literal data) => {
        #[doc = $about]
        pub fn $name(self, value: impl Serialize) -> Self {
            Keys::put(self, $key, data(value))
        }
    };
    ($about:literal $name:ident $key:literal into $of:ident) => {
        #[doc = $about]
        pub fn $name(self, value: impl Into<$of>) -> Self {
            Keys::put(self, $key, value.into().into())
        }
    };
    ($about:literal $name:ident $key:literal push $of:ident) => {
        #[doc = $about]
        #[doc = "\n\nAdds one; may be called several times."]
        pub fn $name(self, value: impl Into<$of>) -> Self {
            Keys::push(self, $key, value.into().into())
        }
    };
    ($about:literal $name:ident $key:literal list $of:ident) => {
        #[doc = $about]
        pub fn $name(self, values: impl IntoIterator<Item = impl Into<$of>>) -> Self {
            let values = values.into_iter().map(|value| value.into().into());
            Keys::put(self, $key, Json::Array(values.collect()))
        }
    };
    ($about:literal $name:ident $key:literal word $of:ident) => {
        #[doc = $about]
        pub fn $name(self, value: $of) -> Self {
            Keys::put(self, $key, value.into())
        }
    };
    ($about:literal $name:ident $key:literal words $of:ident) => {
        #[doc = $about]
        pub fn $name(self, values: impl IntoIterator<Item = $of>) -> Self {
            let values = values.into_iter().map(Json::from);
            Keys::put(self, $key, Json::Array(values.collect()))
        }
    };
    ($about:literal $name:ident $key:literal map_text) => {
        #[doc = $about]
        #[doc = "\n\nAdds one entry."]
        pub fn $name(self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
            Keys::add(self, $key, name.as_ref(), value.as_ref().into())
        }
    };
    ($about:literal $name:ident $key:literal map_texts) => {
        #[doc = $about]
        #[doc = "\n\nAdds one entry."]
        pub fn $name(
            self,
            name: impl AsRef<str>,
            values: impl IntoIterator<Item = impl AsRef<str>>,
        ) -> Self {
            let values = values.into_iter().map(|value| value.as_ref().into());
            Keys::add(self, $key, name.as_ref(), Json::Array(values.collect()))
        }
    };
    ($about:literal $name:ident $key:literal map_data) => {
        #[doc = $about]
        #[doc = "\n\nAdds one entry."]
        pub fn $name(self, name: impl AsRef<str>, value: impl Serialize) -> Self {
            Keys::add(self, $key, name.as_ref(), data(value))
        }
    };
    ($about:literal $name:ident $key:literal map_into $of:ident) => {
        #[doc = $about]
        #[doc = "\n\nAdds one entry."]
        pub fn $name(self, name: impl AsRef<str>, value: impl Into<$of>) -> Self {
            Keys::add(self, $key, name.as_ref(), value.into().into())
        }
    };
    ($about:literal $name:ident $key:literal map_word $of:ident) => {
        #[doc = $about]
        #[doc = "\n\nAdds one entry."]
        pub fn $name(self, name: impl AsRef<str>, value: $of) -> Self {
            Keys::add(self, $key, name.as_ref(), value.into())
        }
    };
    (@words word $of:ident) => {
        $of::WORDS
    };
    (@words words $of:ident) => {
        $of::WORDS
    };
    (@words map_word $of:ident) => {
        $of::WORDS
    };
    (@words $($other:ident)+) => {
        &[]
    };
}

/// Makes a section: a type with methods, and what it is made from in its short form.
macro_rules! section {
    ($(#[$doc:meta])+ $name:ident = $title:literal $(short($at:ident: $($short:ident)+))? { $($rows:tt)+ }) => {
        $(#[$doc])+
        #[derive(Clone, Debug, Default, PartialEq)]
        #[must_use = "it is a part of a definition"]
        pub struct $name {
            /// The value in the short form, if no other key was set.
            short: Option<Json>,
            keys: Map<String, Json>,
        }

        impl $name {
            /// Begins without any key.
            pub fn new() -> Self {
                <Self as Default>::default()
            }
        }

        impl Keys for $name {
            fn put(mut self, key: &'static str, value: Json) -> Self {
                $(
                    if let Some(short) = self.short.take() {
                        self.keys.insert(stringify!($at).to_owned(), short);
                    }
                )?
                self.keys = self.keys.put(key, value);
                self
            }
            fn at(&mut self, key: &'static str) -> Option<&mut Json> {
                self.keys.at(key)
            }
        }

        impl From<$name> for Json {
            fn from(of: $name) -> Self {
                of.short.unwrap_or(Self::Object(of.keys))
            }
        }

        $(short!($name $($short)+);)?
        keys! { $name = $title { $($rows)+ } }
    };
}

/// Makes a section from its short form.
macro_rules! short {
    ($name:ident text) => {
        impl<T: AsRef<str> + ?Sized> From<&T> for $name {
            fn from(text: &T) -> Self {
                Self { short: Some(text.as_ref().into()), ..<Self as Default>::default() }
            }
        }
        short!(@from $name String);
    };
    ($name:ident any) => {
        short!(@from $name &str, String, bool, i32, i64, f64, Json);
    };
    ($name:ident whole) => {
        short!(@from $name i32, u32, u64);
    };
    ($name:ident number) => {
        short!(@from $name i32, f64);
    };
    ($name:ident flag) => {
        short!(@from $name bool);
    };
    ($name:ident span) => {
        short!(@span $name &str, std::time::Duration);
    };
    (@span $name:ident $($from:ty),+) => {$(
        impl From<$from> for $name {
            fn from(span: $from) -> Self {
                Self { short: Some(Span::from(span).into()), ..<Self as Default>::default() }
            }
        }
    )+};
    ($name:ident word $of:ident) => {
        short!(@from $name $of);
    };
    (@from $name:ident $($from:ty),+) => {$(
        impl From<$from> for $name {
            fn from(short: $from) -> Self {
                Self { short: Some(short.into()), ..<Self as Default>::default() }
            }
        }
    )+};
}

/// Makes words that a key may have.
macro_rules! words {
    ($(#[$doc:meta])+ $name:ident { $($word:ident = $text:literal),+ }) => {
        $(#[$doc])+
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $(
                #[doc = concat!("`", $text, "`.")]
                $word,
            )+
        }

        impl $name {
            #[cfg(test)]
            pub(crate) const WORDS: &'static [&'static str] = &[$($text),+];
        }

        impl From<$name> for Json {
            fn from(word: $name) -> Self {
                match word {
                    $($name::$word => $text.into(),)+
                }
            }
        }
    };
}

use {keys, method, section, short, words};
