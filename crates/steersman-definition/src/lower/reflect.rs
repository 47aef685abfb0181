//! Lowers `reflect`.

use super::super::site::Scope;
use super::super::source::Node;
use super::{Lower, Sort, always, count, flag_of};
use steersman_machine::network::Reflect;
use steersman_machine::stored::ids::Name;

impl Lower<'_> {
    /// Lowers `reflect`: `true`, or the reviewer, number of rounds, condition and prompt.
    pub(super) fn reflect(&mut self, node: Option<&Node>, scope: &Scope) -> Option<Reflect> {
        let node = node?;
        if node.entries().is_empty() {
            return flag_of(node).then(|| Reflect {
                by: None,
                rounds: 1,
                when: always(),
                prompt: None,
            });
        }
        let by: Option<Name> = node.get("by").and_then(|by| {
            let name = self.named(by, Sort::Agent)?;
            self.out.reviewers.push((name.clone(), by.span));
            Some(name)
        });
        Some(Reflect {
            by,
            rounds: count(node, "rounds", 1),
            when: self
                .condition(node.get("when"), scope)
                .unwrap_or_else(always),
            prompt: self.text_of(node, "prompt", scope),
        })
    }
}
