//! Values are bound anew, on all branches that have ticks at once: a session runs under one binding.

use super::Driver;
use super::draft::Draft;
use crate::bind::{self, Values};
use crate::engine::EngineError;
use crate::store::InboxMessage;
use std::sync::Arc;
use steersman_machine::commit::{Admission, Admitted, Binding, Commit, LedgerEntry};
use steersman_machine::ids::{Body, Digest, Id, Name};

type Acted = Result<(), String>;

/// Why a session is bound anew.
#[derive(Copy, Clone)]
pub(super) enum Anew<'a> {
    /// A person wants other values.
    Message(&'a InboxMessage),
    /// Servers changed their tools: how, in words.
    Servers(&'a str),
}

impl Driver {
    /// Values of `config`. Only where nothing is open on any branch: what was asked, judged or begun under the old values is over.
    pub(super) async fn rebind(
        &mut self,
        message: &InboxMessage,
        config: Vec<(Name, String)>,
    ) -> Result<Acted, EngineError> {
        let network = self.network().clone();
        let mut values = self.values.clone();
        for (name, text) in config {
            let value = match serde_json::from_str(&text) {
                Ok(value) => value,
                Err(e) => return Ok(Err(format!("config `{name}`: the value is no JSON: {e}"))),
            };
            if let Err(why) = bind::fits_bound(&network, &name, &value) {
                return Ok(Err(why.to_string()));
            }
            values.config.insert(name, value);
        }
        if let Some(why) = self.at_work() {
            return Ok(Err(why));
        }
        let bound = self.branches.values().next();
        let Some(bound) = bound.and_then(|b| b.snapshot.binding.clone()) else {
            return Ok(Err("this session has not begun".to_owned()));
        };
        let new = bind::binding(&network, bound.entry.clone(), &values);
        if new.digest == bound.digest {
            return Ok(Err("it is bound to these values already".to_owned()));
        }
        self.bind_anew(&new, values, Anew::Message(message)).await?;
        Ok(Ok(()))
    }

    /// All branches that have ticks are bound to these values by one write, the current one first: its line holds the texts.
    pub(super) async fn bind_anew(
        &mut self,
        new: &Binding,
        values: Values,
        why: Anew<'_>,
    ) -> Result<(), EngineError> {
        let text = serde_json::to_string(&values).expect("values are JSON");
        let first = self.next;
        let binding = Binding {
            values: Body::new(first, 0),
            ..new.clone()
        };
        let (id, body, digest) = match why {
            Anew::Message(message) => (Some(message.id.clone()), None, Digest::of(text.as_bytes())),
            Anew::Servers(told) => {
                let body = Some(Body::new(first, 1));
                (None, body, Digest::of(told.as_bytes()))
            }
        };
        let mut ids: Vec<Id> = self.branches.keys().copied().collect();
        ids.sort_by_key(|id| *id != self.ledger.current);
        let mut drafts = Vec::new();
        let mut n = first;
        for branch in ids {
            let mut draft = Draft::new(n, branch);
            draft.commit = Some(Commit {
                parent: self.branches[&branch].snapshot.line,
                now: self.now(branch),
                admitted: vec![Admission {
                    kind: Admitted::Rebound,
                    id: None,
                    message: id.clone(),
                    digest,
                    body,
                }],
                binding: Some(binding.clone()),
                ..Commit::default()
            });
            draft.folds = true;
            // Whoever waits for it, or joins it later, need not wait for it again.
            if self
                .ledger
                .branch(branch)
                .is_some_and(|known| known.ended.is_some())
            {
                draft.ledger.push(LedgerEntry::Ended(branch));
            }
            if n == first {
                draft.body(&text);
                match why {
                    Anew::Message(message) => self.accepted(&mut draft, message),
                    Anew::Servers(told) => {
                        draft.body(told);
                    }
                }
            }
            n = n.next();
            drafts.push(draft);
        }
        self.write_together(drafts).await?;
        self.values = values;
        for branch in self.branches.values_mut() {
            branch.caches.clear();
        }
        Ok(())
    }

    /// What is open on a branch, in words; none if all of them rest.
    fn at_work(&self) -> Option<String> {
        self.branches.iter().find_map(|(id, branch)| {
            let snapshot = &branch.snapshot;
            let open = !snapshot.effects.is_empty() || !snapshot.calls.is_empty();
            let name = branch.label.clone();
            let name = name.unwrap_or_else(|| Arc::from(id.to_string()));
            (open || self.fresh.contains(id)).then(|| {
                format!("`{name}` is at work or waits: it is bound anew when nothing of it is open")
            })
        })
    }
}
