//! The engine's sentences, with the texts of a definition in place of the built-in ones.

use super::{Cx, View};
use crate::network::texts::{Sentence, Texts, Words, fill};
use crate::snapshot::Snapshot;
use crate::stored::ids::Id;
use crate::values::expression::Scope;

/// Returns a sentence for an agent of this session, or for a person who answers or reads about the agent.
pub(crate) fn say(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    agent: Id,
    sentence: &Sentence,
    values: &[(&str, &str)],
) -> String {
    let view = View::new(cx, snapshot, Some(agent));
    say_in(&cx.network.texts, &view, sentence, values)
}

/// Returns a sentence: the text of the definition, if it has one that can be rendered, otherwise the built-in one. If the
/// definition has a text for each language, `state.language` of this scope names the language.
pub(crate) fn say_in(
    texts: &Texts,
    scope: &dyn Scope,
    sentence: &Sentence,
    values: &[(&str, &str)],
) -> String {
    let own = match texts.0.get(sentence.key) {
        None => None,
        Some(Words::Plain(words)) => Some(words),
        Some(Words::By(languages)) => language(scope).and_then(|language| languages.get(&language)),
    };
    let own = own.and_then(|words| fill(words, values));
    own.unwrap_or_else(|| filled(sentence.words, values))
}

/// Fills in the names of built-in words. A value stays as it is, even if it contains `{{ }}`.
pub(crate) fn filled(words: &str, values: &[(&str, &str)]) -> String {
    let mut pieces = words.split("{{ ");
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, after) = piece.split_once(" }}").unwrap_or((piece, ""));
        let value = values.iter().find(|(known, _)| *known == name);
        filled.push_str(value.map_or("", |(_, value)| value));
        filled.push_str(after);
    }
    filled
}

/// Returns the language of the scope: its `state.language`.
fn language(scope: &dyn Scope) -> Option<String> {
    let (value, taken) = scope.path("state", &["language"])?;
    let value = if taken == 1 {
        value
    } else {
        value.get_attr("language").ok()?
    };
    value.as_str().map(str::to_owned)
}
