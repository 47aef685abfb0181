//! The built-in nets: `chat`, `react` and `refact`. They need no registration.

use super::{Event, Net, NetView, Step};
use crate::stored::built_in::BuiltIn;
use crate::stored::outcome::Answer;
use serde_json::Value as Json;
use std::fmt::Write as _;

/// All built-in nets, by name.
pub(super) const ALL: [(&str, &dyn Net); 3] =
    [("chat", &Chat), ("react", &React), ("refact", &Refact)];

/// Returns the built-in net of this name.
pub(crate) fn net(name: &str) -> Option<&'static dyn Net> {
    let found = ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, net)| *net)
}

/// `chat`: the calls of an answer are made, and the text of an answer without calls is the agent's answer. It suits models that
/// call tools natively. It names no states.
struct Chat;

impl Net for Chat {
    fn version(&self) -> String {
        "1".to_owned()
    }
    fn next(&self, _view: &NetView<'_>, event: &Event<'_>) -> Step {
        match event {
            Event::Owes => Step::Think,
            Event::Answered(_) | Event::Gave(_) => Step::Take,
        }
    }
}

const REASONING: &str = "reasoning";
const ACTION: &str = "action";
const REFLECTION: &str = "reflection";
const ANSWER: &str = "answer";

/// `react`: the model reasons in its texts. An answer with a call is an action. An answer without calls is a thought; one model
/// call with tools off follows, and its text is the agent's answer.
struct React;

impl Net for React {
    fn version(&self) -> String {
        "2".to_owned()
    }
    fn next(&self, view: &NetView<'_>, event: &Event<'_>) -> Step {
        match event {
            Event::Owes if view.is_last() => Step::Think.enters(ANSWER),
            Event::Owes => Step::Think.enters(REASONING),
            Event::Answered(_) | Event::Gave(_) if view.is_last() => Step::Take,
            Event::Answered(answer) if answer.asks.is_empty() => Step::Conclude.enters(ANSWER),
            Event::Answered(answer) if only_notes(answer) => Step::Take,
            Event::Answered(_) | Event::Gave(_) => Step::Take.enters(ACTION),
        }
    }
}

/// `refact`: [`React`] with a reflection after each action. The reflection is a model call with an instruction to reflect, and
/// with the to-do list if there is one. Its text is kept as a thought, and its calls of the list's tools are made.
struct Refact;

impl Net for Refact {
    fn version(&self) -> String {
        "1".to_owned()
    }
    fn next(&self, view: &NetView<'_>, event: &Event<'_>) -> Step {
        match (view.state(), event) {
            (Some(ACTION), Event::Owes) if !view.is_last() => {
                Step::Next(reflect(view)).enters(REFLECTION)
            }
            (Some(REFLECTION), Event::Owes) if !view.is_last() => Step::Think,
            (Some(REFLECTION), Event::Answered(answer)) if answer.asks.is_empty() => {
                Step::Thought.enters(REASONING)
            }
            (Some(REFLECTION), Event::Answered(answer)) if only_notes(answer) => {
                Step::Take.enters(REASONING)
            }
            _ => React.next(view, event),
        }
    }
}

/// Returns true if the answer only calls tools of the to-do list.
fn only_notes(answer: &Answer) -> bool {
    answer
        .asks
        .iter()
        .all(|ask| BuiltIn::named(&ask.name).is_some_and(BuiltIn::takes_notes))
}

fn reflect(view: &NetView<'_>) -> String {
    let mut text =
        "Reflect before you go on: what did that give, and what follows from it?".to_owned();
    if let Some(missed) = view.missed() {
        let _ = write!(
            text,
            " `{missed}` did not give what it was called for, so that is not done."
        );
    }
    let Some(Json::Array(list)) = view.value(&["state", "todo"]) else {
        return text;
    };
    text += " Bring the to-do list up to date: complete what is done with its result, cancel what is not needed any more, add \
             what is missing. What failed stays to be done.";
    for item in &list {
        let word = |key: &str| item.get(key).and_then(Json::as_str);
        let id = item.get("id").cloned().unwrap_or_default();
        let (status, what) = (word("status"), word("text"));
        let _ = write!(
            text,
            "\n{id} [{}] {}",
            status.unwrap_or("todo"),
            what.unwrap_or_default()
        );
        if let Some(why) = word("result").or_else(|| word("reason")) {
            let _ = write!(text, ": {why}");
        }
    }
    text
}
