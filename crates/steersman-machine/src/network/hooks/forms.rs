//! The forms of what hooks get and give.
//!
//! | moment | JSON |
//! |---|---|
//! | before a model call | [`Request`]: `{"texts": [{"segment": 0, "of": "system", "text": ".."}, ..]}`; a text without `segment` is added at the end |
//! | after a model call | [`Answer`]: `{"text": "..", "calls": [{"ask": 0, "name": "..", "args": ..}]}` |
//! | before a call | the arguments, an object |
//! | after a call, before an end | the text |

use crate::stored::commit::Moment;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// Checks that a hook gave a value of the form of its moment.
pub(super) fn fits(moment: Moment, is: &Json) -> Result<(), String> {
    let fits = match moment {
        Moment::BeforeModel => Request::deserialize(is).map(drop),
        Moment::AfterModel => Answer::deserialize(is).map(drop),
        Moment::BeforeCall => Map::<String, Json>::deserialize(is).map(drop),
        Moment::AfterCall | Moment::Finish => String::deserialize(is).map(drop),
    };
    fits.map_err(|e| format!("it gave a value of another form than it got: {e}"))
}

/// The texts of a request to a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub(crate) texts: Vec<Text>,
}

impl Request {
    /// Returns the texts, in the order in which the model reads them.
    pub fn texts(&self) -> &[Text] {
        &self.texts
    }
    /// Returns the texts, to be changed.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut Text> {
        self.texts.iter_mut()
    }
    /// Adds a text of a user at the end.
    pub fn add(&mut self, text: impl Into<String>) {
        self.texts.push(Text {
            segment: None,
            of: TextOf::User,
            text: text.into(),
        });
    }
}

/// One text of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) segment: Option<usize>,
    pub(crate) of: TextOf,
    /// The text.
    pub text: String,
}

impl Text {
    /// Returns whose text it is.
    pub fn of(&self) -> TextOf {
        self.of
    }
}

/// Origin of a text of a request.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextOf {
    /// The system prompt.
    System,
    /// A person, a caller or the engine.
    User,
    /// The model.
    Assistant,
    /// The result of a call.
    Result,
}

/// An answer of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Its text.
    pub text: Option<String>,
    /// Its calls, in order. A call that is removed is not made.
    #[serde(default)]
    pub calls: Vec<Call>,
}

/// A call in an answer of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ask: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// Name of the tool, as the model gave it.
    pub name: String,
    /// The arguments: an object, or a text if they are no JSON.
    pub args: Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_of_another_form_is_refused_at_each_moment() {
        let forms = [
            (Moment::BeforeModel, json!({ "texts": [] })),
            (Moment::AfterModel, json!({ "text": null, "calls": [] })),
            (Moment::BeforeCall, json!({ "n": 1 })),
            (Moment::AfterCall, json!("done")),
            (Moment::Finish, json!("done")),
        ];
        for (moment, fit) in &forms {
            assert_eq!(fits(*moment, fit), Ok(()), "{moment:?}");
            for wrong in [json!(null), json!([1]), json!({ "texts": 1, "calls": 1 })] {
                if (*moment, wrong.is_object()) != (Moment::BeforeCall, true) {
                    let why = fits(*moment, &wrong).expect_err("another form");
                    assert!(why.starts_with("it gave a value of another form"), "{why}");
                }
            }
        }
    }
}
