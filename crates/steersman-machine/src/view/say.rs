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

/// Returns a sentence in the language that `state.language` of this scope names. The text of the definition takes precedence,
/// if there is one and it can be rendered.
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
    own.unwrap_or_else(|| {
        let mut words = sentence.words.to_owned();
        for (name, value) in values {
            words = words.replace(&format!("{{{{ {name} }}}}"), value);
        }
        words
    })
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
