//! Values that are not sections: spans, counts, names, types.

use super::{
    Agent, Declared, Json, Keys, Map, Reduce, Serialize, Tool, keys, method, section, short,
};
use std::time::Duration;

/// Returns data as JSON; null if it has no such form.
pub(super) fn data(value: impl Serialize) -> Json {
    serde_json::to_value(value).unwrap_or_default()
}

/// A span of time: a [`Duration`], or a text such as `5s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span(String);

impl From<Duration> for Span {
    fn from(span: Duration) -> Self {
        Self(format!("{}ms", span.as_millis()))
    }
}

impl From<&str> for Span {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<Span> for Json {
    fn from(span: Span) -> Self {
        span.0.into()
    }
}

/// A number, or in place of it a word or an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Count(Json);

impl From<u64> for Count {
    fn from(count: u64) -> Self {
        Self(count.into())
    }
}

impl From<i32> for Count {
    fn from(count: i32) -> Self {
        Self(count.into())
    }
}

impl From<&str> for Count {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<Count> for Json {
    fn from(count: Count) -> Self {
        count.0
    }
}

/// One name, or several: a text, a list of texts, or the agents and tools themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Names(Json);

impl<T: AsRef<str> + ?Sized> From<&T> for Names {
    fn from(name: &T) -> Self {
        Self(name.as_ref().into())
    }
}

impl<T: AsRef<str>, const N: usize> From<[T; N]> for Names {
    fn from(names: [T; N]) -> Self {
        Self(names.iter().map(AsRef::as_ref).collect())
    }
}

impl<T: AsRef<str>> From<Vec<T>> for Names {
    fn from(names: Vec<T>) -> Self {
        Self(names.iter().map(AsRef::as_ref).collect())
    }
}

impl From<Names> for Json {
    fn from(names: Names) -> Self {
        names.0
    }
}

impl AsRef<str> for Agent {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

impl AsRef<str> for Tool {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

impl AsRef<str> for Declared {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

section! {
    /// A type: `"string"`, `"optional integer"`, a list (`items`), one of some texts (`words`), or an object (`field`).
    Type = "Type" short(type: text) {
        "A short name." ty "type" text;
        "An object with exactly these fields." field "fields" map_into(Type);
        "A list." items "items" into(Type);
        "One of these texts." words "enum" texts;
        "May be absent; then `none`." optional "optional" flag;
        "Must fit." default "default" data;
        "Told to the model." describe "description" text;
        "At least." minimum "minimum" number;
        "At most." maximum "maximum" number;
        "Regular expression for the whole text." pattern "pattern" text;
        "A JSON Schema file." schema "schema" text;
        "State only: its default again, else `none`, this long after its last write; `answer`: with the end of the answer or task of the agent that declares it." expires "expires" span;
        "State only: the people, or `user`, who may edit it from outside." by "by" into(Names);
        "State only: how several writes of one exchange come together." reduce "reduce" word(Reduce);
        "Secret parameters: the question to the person." ask "ask" text;
    }
}

impl From<Json> for Type {
    /// A type as the format writes it in JSON.
    fn from(written: Json) -> Self {
        match written {
            Json::Object(keys) => Self { short: None, keys },
            short => Self {
                short: Some(short),
                ..<Self as Default>::default()
            },
        }
    }
}
