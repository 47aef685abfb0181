//! Masks texts that stream in pieces. A secret may be split over several of them, so the end of a text is held back.

use std::collections::BTreeMap;
use steersman_machine::stored::ids::Id;
use steersman_runtime::known::Known;
use steersman_runtime::model::Delta;

/// Maximum number of streamed texts whose end is held back. The oldest is dropped; the complete text follows with its line.
const HELD: usize = 256;

/// The ends of streamed texts that may be the beginning of a secret, by model call, attempt, and true for reasoning.
#[derive(Debug, Default)]
pub(super) struct Held(BTreeMap<(Id, u32, bool), String>);

impl Held {
    /// Returns the part of a streamed piece, with what was held back before it, that can be shown. `None` if all of it is held back,
    /// as arguments of a call always are.
    pub(super) fn shown(
        &mut self,
        effect: Id,
        attempt: u32,
        delta: Delta,
        known: Option<&Known>,
    ) -> Option<Delta> {
        let Some(known) = known else {
            return Some(delta);
        };
        let (text, is_reasoning) = match delta {
            Delta::Text(text) => (text, false),
            Delta::Reasoning(text) => (text, true),
            // A secret may be spelt in several ways in JSON, and cut anywhere. The whole call is told once it is on disk.
            Delta::Call(..) => return None,
        };
        let key = (effect, attempt, is_reasoning);
        let mut all = self.0.remove(&key).unwrap_or_default();
        all.push_str(&text);
        let rest = all.split_off(known.safe_cut(&all));
        if !rest.is_empty() {
            self.0.insert(key, rest);
            if self.0.len() > HELD {
                self.0.pop_first();
            }
        }
        let shown = known.masked(&all);
        match (shown.is_empty(), is_reasoning) {
            (true, _) => None,
            (false, false) => Some(Delta::Text(shown)),
            (false, true) => Some(Delta::Reasoning(shown)),
        }
    }

    /// Drops what is held back of a model call, because its complete text follows, or none does.
    pub(super) fn ends(&mut self, effect: Id) {
        self.0.retain(|(of, ..), _| *of != effect);
    }
}
