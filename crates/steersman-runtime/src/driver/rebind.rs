//! New values or a new definition are bound on all branches that have ticks together: a session runs under one binding.

use super::draft::Draft;
use super::parts::Following;
use super::{Job, Stop};
use crate::bind::{self, Values};
use crate::engine::EngineError;
use crate::inbox::Redefinition;
use crate::store::InboxMessage;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::{Admission, Admitted, Binding, Commit, LedgerEntry, Why};
use steersman_machine::stored::ids::{Body, Id, Name};
use steersman_machine::stored::interaction::{Reduce, Write};
use steersman_machine::tick::carry;
use steersman_machine::tick::carry::New;
use steersman_machine::view::Cx;

type Acted = Result<(), String>;

/// Reason for a new binding.
#[derive(Copy, Clone)]
pub(super) enum Anew<'a> {
    /// A person wants other values.
    Message(&'a InboxMessage),
    /// Servers changed their tools; a description of the change.
    Servers(&'a str),
    /// A person wants another definition: the message, a text naming both definitions, and the new state by branch.
    Definition(&'a InboxMessage, &'a str, &'a BTreeMap<Id, Vec<New>>),
}

/// Returns the edit that sets new state to its default in the other definition.
fn edit(draft: &mut Draft, new: &New) -> Write {
    Write {
        scope: new.scope,
        name: new.name.clone(),
        value: Some(draft.body(&new.value.to_string())),
        reduce: Reduce::Last,
        expires: None,
    }
}

impl Job<'_, '_> {
    /// Binds new values of `config`. Refused while anything is open on any branch, so that nothing that was asked, judged or
    /// begun under the old values goes on under the new ones.
    pub(super) fn rebind(
        &mut self,
        message: &InboxMessage,
        config: Vec<(Name, String)>,
    ) -> Result<Acted, Stop> {
        let network = self.network().clone();
        let mut values = self.d.bound.values().clone();
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
        let bound = self.d.branches.live().values().next();
        let Some(bound) = bound.and_then(|b| b.snapshot.binding.clone()) else {
            return Ok(Err("this session has not begun".to_owned()));
        };
        let new = bind::binding(&network, bound.entry.clone(), &values);
        if new.digest == bound.digest {
            return Ok(Err("it is bound to these values already".to_owned()));
        }
        self.bind_anew(&new, values, Anew::Message(message))?;
        Ok(Ok(()))
    }

    /// Binds another definition, or the same one at another place. Another one is refused while anything is open on any branch, or
    /// if it does not know everything that the session has.
    pub(super) fn redefine(
        &mut self,
        message: &InboxMessage,
        order: &Redefinition,
    ) -> Result<Acted, Stop> {
        let (new, values) = (&order.binding, &*order.values);
        let bound = self.d.branches.live().values().next();
        let Some(bound) = bound.and_then(|b| b.snapshot.binding.clone()) else {
            return Ok(Err("this session has not begun".to_owned()));
        };
        let moves = new.digest == bound.digest;
        if moves && Values::read(values).is_ok_and(|values| values == *self.d.bound.values()) {
            return Ok(Err("it is bound to this definition already".to_owned()));
        }
        let waits = if moves { self.opens() } else { self.at_work() };
        if let Some(why) = waits {
            return Ok(Err(why));
        }
        let manifest = match bind::manifest(self.d.who.session(), new, values) {
            Ok(manifest) => manifest,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let network = match self.found_network(new.source, manifest)? {
            Ok(network) => network,
            Err(why) => {
                let session = self.d.who.session().clone();
                return Ok(Err(EngineError::Definition { session, why }.to_string()));
            }
        };
        let values = match bind::open(self.d.who.session(), &network, new, values) {
            Ok(values) => values,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let key = (new.source, values.manifest);
        let network = match self.seen.engine.with_natives(network, &values, key) {
            Ok(network) => network,
            Err(why) => return Ok(Err(why.to_string())),
        };
        if moves {
            self.bind_anew(new, values, Anew::Message(message))?;
            self.d.bound.changes(network, false);
            return Ok(Ok(()));
        }
        let mut carried = BTreeMap::new();
        for (id, branch) in self.d.branches.live() {
            let cx = Cx {
                network: self.network(),
                bodies: &*self.seen.past,
            };
            match carry::carried(&cx, &network, &branch.snapshot) {
                Ok(new) => carried.insert(*id, new),
                Err(why) => return Ok(Err(why)),
            };
        }
        if let Err(why) = self.left_are_known(&network)? {
            return Ok(Err(why));
        }
        let told = format!("{} -> {}", bound.digest.short(), new.digest.short());
        let why = Anew::Definition(message, &told, &carried);
        self.bind_anew(new, values, why)?;
        self.d.bound.changes(network, true);
        self.d.servers = Following::default();
        Ok(Ok(()))
    }

    /// Checks that branches that were left behind are valid under the new definition: they can be inspected, and forked from.
    fn left_are_known(&mut self, network: &Network) -> Result<Acted, Stop> {
        let left = self.d.ledger.branches();
        let left: Vec<_> = left
            .filter(|(id, _)| !self.d.branches.live().contains_key(id))
            .map(|(id, known)| (id, known.commit))
            .collect();
        for (id, at) in left {
            let snapshot = self.snapshot_at(id, at)?;
            if let Err(why) = carry::agents(network, &snapshot) {
                return Ok(Err(why));
            }
        }
        Ok(Ok(()))
    }

    /// Checks that a branch may begin at a line under another definition: the present definition must know everything in its
    /// snapshot.
    pub(super) fn carried_over(&mut self, snapshot: &Snapshot) -> Result<Acted, Stop> {
        let live = self.d.branches.live().values();
        let mut live = live.filter_map(|branch| branch.snapshot.binding.as_ref());
        let (Some(then), Some(now)) = (&snapshot.binding, live.next()) else {
            return Ok(Ok(()));
        };
        if then.source == now.source {
            return Ok(Ok(()));
        }
        let was = format!("there the definition was {}", then.digest.short());
        let text = self.values_of(then)?;
        let manifest = bind::manifest(self.d.who.session(), then, &text)?;
        let from = self.network_of(then.source, manifest)?;
        let cx = Cx {
            network: &from,
            bodies: &*self.seen.past,
        };
        Ok(match carry::carried(&cx, self.network(), snapshot) {
            Ok(new) => match new.first() {
                Some(new) => Err(format!("{was}, and state.{} is new since", new.name)),
                None => Ok(()),
            },
            Err(why) => Err(format!("{was}: {why}")),
        })
    }

    /// Binds all branches that have ticks to these values in one write, the current branch first: its line holds the texts.
    pub(super) fn bind_anew(
        &mut self,
        new: &Binding,
        values: Values,
        why: Anew<'_>,
    ) -> Result<(), Stop> {
        let text = serde_json::to_string(&values).expect("values are JSON");
        let first = self.d.who.next();
        let binding = Binding {
            values: Body::new(first, 0),
            ..new.clone()
        };
        let (id, body) = match why {
            Anew::Message(message) => (Some(message.id.clone()), None),
            Anew::Servers(_) => (None, Some(Body::new(first, 1))),
            Anew::Definition(message, ..) => (Some(message.id.clone()), Some(Body::new(first, 1))),
        };
        let mut ids: Vec<Id> = self.d.branches.live().keys().copied().collect();
        ids.sort_by_key(|id| *id != self.d.ledger.current);
        let mut drafts = Vec::new();
        let mut n = first;
        for branch in ids {
            let mut draft = Draft::new(n, branch);
            draft.commit = Some(Commit {
                parent: self.d.branches.live()[&branch].snapshot.line,
                admitted: vec![Admission {
                    kind: Admitted::Rebound,
                    id: None,
                    message: id.clone(),
                    by: None,
                    body,
                }],
                binding: Some(binding.clone()),
                ..Commit::default()
            });
            draft.folds = true;
            // A call that waits for the branch, or joins it later, must not have to wait for a second end.
            if self
                .d
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
                    Anew::Definition(message, told, _) => {
                        draft.body(told);
                        self.accepted(&mut draft, message);
                    }
                }
            }
            if let Anew::Definition(_, _, new) = why {
                let new = new.get(&branch).into_iter().flatten();
                let edits = new.map(|new| edit(&mut draft, new)).collect();
                if let Some(commit) = &mut draft.commit {
                    commit.edits = edits;
                }
            }
            n = n.next();
            drafts.push(draft);
        }
        self.write_together(drafts)?;
        self.d.bound.binds(values);
        self.d.branches.drop_caches();
        Ok(())
    }

    /// Returns the reason why the session cannot even move: a branch that is about to open has no line yet that a new binding could
    /// follow.
    fn opens(&self) -> Option<String> {
        let mut branches = self.d.branches.live().keys();
        let fresh = branches.find(|id| self.d.branches.is_fresh(**id))?;
        Some(format!("branch {fresh} is about to open: try again"))
    }

    /// Returns the reason why the session cannot be bound again; `None` if nothing is open. An effect that no branch waits for
    /// is a reason until its end is known: the definition that it began under decides who is asked about it and how its result
    /// is read.
    fn at_work(&self) -> Option<String> {
        let open = self.d.branches.live().iter().find_map(|(id, branch)| {
            let snapshot = &branch.snapshot;
            let name = branch.label.clone();
            let name = name.unwrap_or_else(|| Arc::from(id.to_string()));
            (snapshot.is_open() || self.d.branches.is_fresh(*id)).then(|| {
                format!(
                    "`{name}` is at work or waits: it is bound anew when nothing of it is open; a cancel ends what is open"
                )
            })
        });
        let unsettled = self.unsettled().next().map(|id| {
            if self.d.ledger.hold(id, Why::Doubt).is_some() {
                format!("{id}, for which no branch waits, is in doubt: resolve it first")
            } else {
                format!("{id}, for which no branch waits, has not ended: wait until it has")
            }
        });
        open.or(unsettled)
    }
}
