//! Built-in sentences of the engine for people and models. A definition may replace them (`texts`), with one text for each
//! language that `state.language` may name.

use crate::stored::ids::Name;
use crate::values::expression::{Names, Template};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// A sentence of the engine.
#[derive(Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Key under which a definition replaces the sentence.
    pub key: &'static str,
    /// The built-in text. Names in `{{ }}` are replaced with values.
    pub words: &'static str,
    /// The reader of the sentence, and the occasion; for the reference.
    pub doc: &'static str,
}

const fn sentence(key: &'static str, words: &'static str, doc: &'static str) -> Sentence {
    Sentence { key, words, doc }
}

pub(crate) const APPROVE: &Sentence = &sentence(
    "approve",
    "{{ tool }}({{ args }})",
    "A person: whether a call may run, where `approve` has no `ask`.",
);
pub(crate) const LIMIT: &Sentence = &sentence(
    "limit",
    "The limit `{{ name }}` of {{ max }} is reached.",
    "A reader of the end of an agent.",
);
pub(crate) const MORE: &Sentence = &sentence(
    "more",
    "{{ agent }}: the limit `{{ name }}` of {{ max }} is reached, {{ used }} used. Allow as much again from here?",
    "A person: `on_limit: ask`.",
);
pub(crate) const LAST_CALL: &Sentence = &sentence(
    "last_call",
    "The limit `{{ name }}` of {{ max }} is reached. Answer now, with what you have: tools are off.",
    "A model: `on_limit: answer`.",
);
pub(crate) const CORRECTION: &Sentence = &sentence(
    "correction",
    "This answer cannot be used: {{ why }}.",
    "A model: its answer does not fit.",
);
pub(crate) const LEAVE: &Sentence = &sentence(
    "leave",
    "Leave `{{ task }}` for: {{ wish }}",
    "A person: `on_change: ask`.",
);
pub(crate) const STAYS: &Sentence = &sentence(
    "stays",
    "The user wants to go on with this first.",
    "A model: a person said no to `leave`.",
);
pub(crate) const FIRST: &Sentence = &sentence(
    "first",
    "`{{ task }}` is to be finished first. Tell the user so, and that the other wish comes after it.",
    "A model: `on_change: finish_first`.",
);
pub(crate) const NOT_DONE: &Sentence = &sentence(
    "not_done",
    "`{{ task }}` is not done: `{{ done }}` does not hold.",
    "A model: it called `done`, and the task's predicate says no.",
);
pub(crate) const NOT_BEGUN: &Sentence = &sentence(
    "not_begun",
    "Not carried out: it had not begun where this branch begins.",
    "A model: a call that was open at a fork or rewind.",
);
pub(crate) const DONE_OUTSIDE: &Sentence = &sentence(
    "done_outside",
    "Was carried out outside this branch. Its result there: {{ result }}",
    "A model: the same, of one that was done there.",
);
pub(crate) const UNKNOWN_OUTSIDE: &Sentence = &sentence(
    "unknown_outside",
    "Was begun outside this branch, and nobody knows whether it happened.",
    "A model: the same, of one that nobody knows of.",
);
pub(crate) const MAY_HAVE_HAPPENED: &Sentence = &sentence(
    "may_have_happened",
    "It may have happened; nobody knows.",
    "A model: an effect was given up while in doubt, or cancelled under way.",
);
pub(crate) const JUDGE: &Sentence = &sentence(
    "judge",
    "You watch a conversation and take no part in it. Say which of these statements holds now, by its number; 0 if none of them \
     does.",
    "The model that judges the exits of a state; the statements follow.",
);
pub(crate) const LEADER: &Sentence = &sentence(
    "leader",
    "You lead a conversation and take no part in it. Say who speaks next.",
    "The model that chooses the next speaker of a state; the roles follow.",
);
pub(crate) const PICK: &Sentence = &sentence(
    "pick",
    "You lead a team. Read the conversation and say who acts next, so that what the user asked for gets done. When nothing is left \
     to be done, say so, with the answer for the user.",
    "The model of `pick` without a `system`; the team follows.",
);
pub(crate) const ORCHESTRATOR: &Sentence = &sentence(
    "orchestrator",
    "You receive the user's messages. Say what the newest one is about. What must be done before a task is seen to by itself: \
     choose what the user wants in the end.",
    "The model of `tasks` without a `system`; the tasks follow.",
);
pub(crate) const CONTINUE: &Sentence = &sentence(
    "continue",
    "A task that the user asked for was done, or one that had to be done first. Read the conversation. If something that the user \
     asked for is left to be done, say it in one sentence, in the user's voice. Do not invent wishes.",
    "The model of `continue: by_model`.",
);

pub(crate) const REFLECT: &Sentence = &sentence(
    "reflect",
    "Before anybody is told: judge your last answer. If it is good as it is, answer `accept`; else answer with the new one, whole.",
    "A model: `reflect`, about its own draft.",
);
pub(crate) const REFLECT_FORM: &Sentence = &sentence(
    "reflect_form",
    "If your last answer is good as it is, answer `accept`; else answer with the new one, whole.",
    "A model: the same, behind the `prompt` of a definition.",
);
pub(crate) const REFLECT_WORK: &Sentence = &sentence(
    "reflect_work",
    "If it needs more work, call your tools first, and answer after that.",
    "A model: behind both, if the agent has tools.",
);
pub(crate) const REFLECT_CALL: &Sentence = &sentence(
    "reflect_call",
    "Judge what `{{ tool }}` gave (call {{ call }}). If it will do, go on; else call `{{ tool }}` again with better arguments.",
    "A model: `reflect` at a tool, about what its call gave.",
);
pub(crate) const REFLECT_ARGS: &Sentence = &sentence(
    "reflect_args",
    "Nothing has run yet. Judge whether `{{ tool }}` is to be called with {{ args }}. If so, answer `accept`; else answer with \
     an object with `revise`: what is to be changed.",
    "A model: `reflect` at an unsafe tool, about the arguments of its call.",
);
pub(crate) const VERDICT: &Sentence = &sentence(
    "verdict",
    "If so, answer `accept`; else answer with an object with `revise`: what is to be changed.",
    "A model: the same, behind the `prompt` of a definition.",
);
pub(crate) const REVIEW: &Sentence = &sentence(
    "review",
    "Judge this draft.\n\nWhat was asked for:\n{{ task }}\n\nThe draft:\n{{ draft }}",
    "A reviewer with the parameter `message`: about a draft.",
);
pub(crate) const REVIEW_CALL: &Sentence = &sentence(
    "review_call",
    "Judge this call of a tool.\n\nWhat was asked for:\n{{ task }}\n\nThe call:\n{{ draft }}",
    "A reviewer with the parameter `message`: about a call of a tool.",
);
pub(crate) const NOT_SHOWN: &Sentence = &sentence(
    "not_shown",
    "[`{{ name }}` is not shown: {{ why }}.]",
    "A model: a file of a kind that it takes is too large, or all files of its request together are.",
);
/// The names that the text in place of a file has (`takes: { instead: .. }`). It is no sentence of the engine, which says nothing
/// then.
pub const INSTEAD: &Sentence = &sentence(
    "instead",
    "{{ name }} {{ media }} {{ bytes }}",
    "A model: a file is of a kind that it does not take.",
);
/// All sentences, in the order of the reference.
pub const ALL: &[&Sentence] = &[
    APPROVE,
    LIMIT,
    MORE,
    LAST_CALL,
    CORRECTION,
    LEAVE,
    STAYS,
    FIRST,
    NOT_DONE,
    NOT_BEGUN,
    DONE_OUTSIDE,
    UNKNOWN_OUTSIDE,
    MAY_HAVE_HAPPENED,
    JUDGE,
    LEADER,
    PICK,
    ORCHESTRATOR,
    CONTINUE,
    REFLECT,
    REFLECT_FORM,
    REFLECT_WORK,
    REFLECT_CALL,
    REFLECT_ARGS,
    VERDICT,
    REVIEW,
    REVIEW_CALL,
    NOT_SHOWN,
];

impl Sentence {
    /// Returns the names in the text that are replaced with values.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let pieces = self.words.split("{{ ").skip(1);
        pieces.filter_map(|piece| piece.split_once(" }}").map(|(name, _)| name))
    }
}

/// A definition's replacements for sentences of the engine, by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Texts(pub BTreeMap<Name, Words>);

/// The replacement of a sentence in a definition.
#[derive(Clone, Debug, PartialEq)]
pub enum Words {
    /// The same text in every language.
    Plain(Template),
    /// One text for each language. A language that is missing uses the built-in text.
    By(BTreeMap<String, Template>),
}

/// Renders a text with these values. `None` means that the template cannot be rendered with them.
pub fn fill(words: &Template, values: &[(&str, &str)]) -> Option<String> {
    let values: Map<String, Json> = values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Json::from(*value)))
        .collect();
    words.render(&Names::from_json(Json::Object(values))).ok()
}
