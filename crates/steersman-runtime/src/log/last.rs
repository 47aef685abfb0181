//! A text for lists about what a session did last.

use crate::store::LAST;
use std::sync::Arc;
use steersman_machine::context::History;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::interaction::Interaction;

/// Returns a text about the newest interaction of a branch: the text of a message, the name of a call, or the result of a call.
pub(crate) fn last(snapshot: &Snapshot, history: &dyn History) -> Arc<str> {
    let agents = snapshot.agents.values();
    let newest = agents.max_by_key(|agent| (agent.stack.last, agent.id));
    let Some(agent) = newest.filter(|agent| agent.stack.last.is_some()) else {
        return Arc::default();
    };
    let (pushes, _) = history.pushes(agent.id, agent.stack.last);
    let said = pushes.iter().rev().find_map(|push| match push {
        Interaction::UserMessage { body, .. } => Some(history.text(*body)),
        Interaction::AssistantMessage { text, .. } => text.map(|text| history.text(text)),
        Interaction::Call(call) => Some(call.called()),
        Interaction::Result(result) => result.body.map(|body| history.text(body)),
        Interaction::Finished { body, .. } => body.map(|body| history.text(body)),
        Interaction::Route(_) | Interaction::Summary(_) | Interaction::Earlier(_) => None,
    });
    shortened(&said.unwrap_or_default())
}

/// Returns a text with single blanks between words. If it has more than [`LAST`] characters, it is cut, and the last one is `…`.
fn shortened(text: &str) -> Arc<str> {
    let mut short = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        let blank = (count > 0).then_some(' ');
        for c in blank.into_iter().chain(word.chars()) {
            if count == LAST {
                short.pop();
                short.push('…');
                return short.into();
            }
            short.push(c);
            count += 1;
        }
    }
    short.into()
}

#[cfg(test)]
mod tests {
    use super::{LAST, shortened};

    #[test]
    fn a_text_is_cut_after_its_bound() {
        assert_eq!(&*shortened(" two\n\twords "), "two words");
        let just = "ä".repeat(LAST);
        assert_eq!(*shortened(&just), *just);
        let cut = shortened(&format!("{just} more"));
        assert_eq!(cut.chars().count(), LAST);
        assert!(cut.ends_with("ä…"));
    }
}
