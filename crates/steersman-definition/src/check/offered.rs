//! The names that may stand at a place of an expression, for editors.

use super::super::load::Merged;
use super::super::lower::Lowered;
use super::super::site::Scope;
use super::super::source::{Sources, Span};
use super::Check;
use super::kind::{Kind, Known};
use super::names::Root;

/// A name that may be written, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    pub name: String,
    /// The type in words: `optional integer`.
    pub is: String,
}

/// Returns the names that may follow a path of names: root names if the path is empty, otherwise fields.
pub(crate) fn offered(
    sources: &Sources,
    merged: &Merged,
    lowered: &Lowered,
    scope: &Scope,
    path: &[&str],
) -> Vec<Offered> {
    let mut check = Check::new(sources, merged, lowered);
    let network = &lowered.network;
    let names: Vec<String> = match path {
        [] => Check::known_roots(scope)
            .into_iter()
            .map(str::to_owned)
            .collect(),
        ["state"] => check
            .entries
            .keys()
            .map(|name| (*name).to_owned())
            .collect(),
        ["config"] => network.config.keys().map(ToString::to_string).collect(),
        ["secrets"] => network.secrets.keys().map(ToString::to_string).collect(),
        ["calls"] => {
            let names = network.tools.keys().chain(network.agents.keys());
            names
                .chain(network.people.keys())
                .map(ToString::to_string)
                .collect()
        }
        _ => match check.known(scope, path) {
            Some(Known {
                kind: Kind::Fields(fields),
                ..
            }) => fields
                .into_iter()
                .map(|(name, ..)| name.to_string())
                .collect(),
            _ => Vec::new(),
        },
    };
    let mut all = Vec::new();
    for name in names {
        let mut whole = path.to_vec();
        whole.push(&name);
        // a state entry of an agent that does not lead here is left out
        if let Some(known) = check.known(scope, &whole) {
            let optional = if known.optional { "optional " } else { "" };
            let is = format!("{optional}{}", known.kind.word());
            all.push(Offered { name, is });
        }
    }
    all
}

impl Check<'_> {
    /// Returns the type of a path of names; `None` if it is not known in the scope.
    fn known(&mut self, scope: &Scope, path: &[&str]) -> Option<Known> {
        let (root, rest) = path.split_first()?;
        if !Self::known_roots(scope).contains(root) {
            return None;
        }
        let none = (Span::NONE, Span::NONE);
        let (mut known, used) = match (*root, rest.first()) {
            // these have no type as a whole
            ("state" | "config" | "secrets" | "calls", None) => {
                return Some(Known::of(Kind::Object));
            }
            (_, field) => match self.root(scope, root, field.copied(), none) {
                Root::Known(known, used) => (known, used),
                Root::Wrong => return None,
            },
        };
        for name in rest.get(used..)? {
            let Kind::Fields(fields) = known.kind else {
                return Some(Known::any());
            };
            let (_, kind, optional) = fields.into_iter().find(|(field, ..)| **field == **name)?;
            known = Known {
                optional,
                ..Known::of(kind)
            };
        }
        Some(known)
    }
}
