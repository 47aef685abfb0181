//! Begin of a session, and messages as they are pushed.

use crate::network::Does;
use crate::stored::bounds;
use crate::stored::by::By;
use crate::stored::commit::{Admission, Admitted, Binding, Change};
use crate::stored::ids::{Body, Id};
use crate::stored::interaction::{Artifact, Earlier, EarlierCall, Interaction, Origin};
use crate::stored::outcome::NewArtifact;
use crate::tick::Tick;
use crate::tick::effect::{Said, Start, Until};
use crate::tick::history::{self, ChatHistory};
use crate::tick::take::Taken;
use crate::values::types::arguments_misfit;
use crate::view::artifact;
use std::sync::Arc;

impl Tick<'_> {
    /// Makes the root, binds the session, and pushes the first message.
    pub(crate) fn take_start(&mut self, start: &Start) -> Taken {
        if self.snapshot.root.is_some() {
            return Err(Until::refused("the session has begun already"));
        }
        let name = match &start.agent {
            Some(name) => Some(name),
            None => self.network.entry.first(),
        };
        let Some(def) = name.and_then(|n| self.network.agents.get(n)) else {
            return Err(Until::refused("there is no such agent to begin with"));
        };
        if let Does::Run { .. } = def.does {
            return Err(Until::refused(
                "an agent that only runs a tool cannot begin a session",
            ));
        }
        if let Some(args) = &start.args {
            let object = args.as_object();
            if object.is_none_or(|args| arguments_misfit(&def.parameters, args).is_some()) {
                return Err(Until::refused(
                    "the arguments do not fit the agent's parameters",
                ));
            }
        }
        if let Some(args) = start.args.as_ref().and_then(|args| args.as_object()) {
            let attached: Vec<&str> = start.came.iter().map(|came| &*came.name).collect();
            if artifact::missing(&def.parameters, args, &attached).is_some() {
                return Err(Until::refused(
                    "the arguments name an artifact that did not come with them",
                ));
            }
        }
        let values = self.body(start.values.clone());
        let binding = Binding {
            values,
            ..start.binding.clone()
        };
        self.snapshot.binding = Some(Arc::new(binding.clone()));
        self.commit.binding = Some(binding);
        let root = self.make_agent(&def.name, None, None);
        self.keep_earlier(root, &start.history);
        if let Some(args) = &start.args {
            let text = args.to_string();
            self.admit_as(Admitted::Start, None);
            let body = self.body(text);
            self.push(
                root,
                Interaction::UserMessage {
                    from: Origin::Outside(By::default()),
                    body,
                },
            );
            self.keep_came(root, body, &start.came);
            self.wake(root);
        }
        match &start.message {
            Some(said) if start.args.is_none() => {
                let came = start.came.iter().chain(&said.came).cloned().collect();
                let said = Said {
                    came,
                    ..said.clone()
                };
                self.hear(root, &said, Admitted::Message);
            }
            Some(said) => self.hear(root, said, Admitted::Message),
            None if start.args.is_none() => self.admit_as(Admitted::Start, None),
            None => {}
        }
        Ok(())
    }

    /// Pushes a conversation that was held elsewhere.
    fn keep_earlier(&mut self, root: Id, history: &ChatHistory) {
        for said in history.messages() {
            let earlier = match said {
                history::Said::User(text) => Earlier::User(self.body(text.clone())),
                history::Said::Assistant { text, calls } => {
                    let text = text.as_ref().map(|text| self.body(text.clone()));
                    let calls = calls.iter().map(|call| EarlierCall {
                        label: bounds::name(&call.label),
                        name: bounds::name(&call.name),
                        args: self.body(call.args.clone()),
                        result: self.body(call.result.clone()),
                    });
                    let calls = calls.collect();
                    Earlier::Assistant { text, calls }
                }
            };
            self.push(root, Interaction::Earlier(earlier));
        }
    }

    /// Pushes a message and records the artifacts that came with it.
    pub(super) fn hear(&mut self, agent: Id, said: &Said, kind: Admitted) {
        self.admit(Admission {
            kind,
            id: said.to,
            message: Some(said.id.clone()),
            by: None,
            body: None,
        });
        let body = self.body(with_attachments(said));
        let from = match said.sender {
            Some(sender) => Origin::Agent(sender),
            None => Origin::Outside(said.by.clone()),
        };
        self.push(agent, Interaction::UserMessage { from, body });
        // Every agent that may get the floor must see the artifacts, so they belong to the top agent of this branch.
        let top = self.snapshot.top().unwrap_or(agent);
        self.keep_came(top, body, &said.came);
        self.wake(agent);
    }

    /// Records contents that came in with a text as artifacts.
    pub(crate) fn keep_came(&mut self, scope: Id, with: Body, came: &[NewArtifact]) {
        for new in came {
            self.change(Change::Artifact(Artifact {
                scope,
                call: artifact::came_with(with),
                name: bounds::name(&new.name),
                media: bounds::name(&new.media),
                hash: new.hash,
                len: new.len,
            }));
        }
    }
}

/// Returns the text of a message with a list of its artifacts, so that a model knows the names by which it can read them.
fn with_attachments(said: &Said) -> Arc<str> {
    if said.came.is_empty() {
        return said.text.clone();
    }
    let came = said.came.iter().map(|new| {
        let NewArtifact {
            name, media, len, ..
        } = new;
        format!("`{name}` ({media}, {len} bytes)")
    });
    let came: Vec<String> = came.collect();
    let came = format!("[Attached: {}]", came.join(", "));
    match &*said.text {
        "" => came.into(),
        text => format!("{text}\n{came}").into(),
    }
}
