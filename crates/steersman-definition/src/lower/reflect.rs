//! Lowers `reflect`.

use super::super::keys::agent as keys;
use super::super::keys::kinds::{Flag, Valued};
use super::super::site::Scope;
use super::{Lower, Sort, always};
use steersman_machine::network::Reflect;
use steersman_machine::stored::ids::Name;

impl Lower<'_> {
    /// Lowers `reflect`: `true`, or the reviewer, number of rounds, condition and prompt.
    pub(super) fn reflect(
        &mut self,
        written: Option<keys::Reflect<'_>>,
        scope: &Scope,
    ) -> Option<Reflect> {
        let reflect = written?;
        if reflect.0.entries().is_empty() && Flag(reflect.0).value() != Some(true) {
            return None;
        }
        let by: Option<Name> = reflect.by().and_then(|by| {
            let name = self.named(&by, Sort::Agent)?;
            self.out.reviewers.push((name.clone(), by.span));
            Some(name)
        });
        Some(Reflect {
            by,
            rounds: reflect.rounds().value,
            when: self.condition(reflect.when(), scope).unwrap_or_else(always),
            prompt: self.text_of(reflect.prompt(), scope),
        })
    }
}
