//! Values of `config` are bound anew, on all branches that have ticks at once: a session runs under one binding.

use super::Driver;
use super::draft::Draft;
use crate::bind;
use crate::engine::EngineError;
use crate::store::InboxMessage;
use std::sync::Arc;
use steersman_machine::commit::{Admission, Admitted, Binding, Commit};
use steersman_machine::ids::{Body, Digest, Id, Name};

type Acted = Result<(), String>;

impl Driver {
    /// Only where nothing is open on any branch: what was asked, judged or begun under the old values is over.
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
        let text = serde_json::to_string(&values).expect("values are JSON");
        let first = self.next;
        let binding = Binding {
            values: Body::new(first, 0),
            ..new
        };
        let mut ids: Vec<Id> = self.branches.keys().copied().collect();
        // The current branch first: its line holds the text.
        ids.sort_by_key(|id| *id != self.ledger.current);
        let mut drafts = Vec::new();
        let mut n = first;
        for id in ids {
            let mut draft = Draft::new(n, id);
            draft.commit = Some(Commit {
                parent: self.branches[&id].snapshot.line,
                now: self.now(id),
                admitted: vec![Admission {
                    kind: Admitted::Rebound,
                    id: None,
                    message: Some(message.id.clone()),
                    digest: Digest::of(text.as_bytes()),
                    body: None,
                }],
                binding: Some(binding.clone()),
                ..Commit::default()
            });
            draft.folds = true;
            if n == first {
                draft.body(&text);
                self.accepted(&mut draft, message);
            }
            n = n.next();
            drafts.push(draft);
        }
        self.write_together(drafts).await?;
        self.values = values;
        for branch in self.branches.values_mut() {
            branch.caches.clear();
        }
        Ok(Ok(()))
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
