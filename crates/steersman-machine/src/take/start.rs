//! The session begins.

use crate::commit::{Admission, Admitted, Binding};
use crate::effect::{Said, Start, Until};
use crate::ids::{Digest, Id};
use crate::interaction::{Interaction, Origin};
use crate::network::Does;
use crate::take::Taken;
use crate::tick::Tick;
use crate::types::arguments_misfit;
use std::sync::Arc;

impl Tick<'_> {
    /// Makes the root, binds the session, and says the first words.
    pub(crate) fn take_start(&mut self, start: &Start) -> Taken {
        if self.snapshot.root.is_some() {
            return Err(Until::Refused("the session has begun already"));
        }
        let name = match &start.agent {
            Some(name) => Some(name),
            None => self.network.entry.first(),
        };
        let Some(def) = name.and_then(|n| self.network.agents.get(n)) else {
            return Err(Until::Refused("there is no such agent to begin with"));
        };
        if let Does::Run { .. } = def.does {
            return Err(Until::Refused(
                "an agent that only runs a tool cannot begin a session",
            ));
        }
        if let Some(args) = &start.args {
            let object = args.as_object();
            if object.is_none_or(|args| arguments_misfit(&def.parameters, args).is_some()) {
                return Err(Until::Refused(
                    "the arguments do not fit the agent's parameters",
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
        if let Some(args) = &start.args {
            let text = args.to_string();
            self.admit_as(Admitted::Start, None, text.as_bytes());
            let body = self.body(text);
            self.push(
                root,
                Interaction::UserMessage {
                    from: Origin::Outside(None),
                    body,
                },
            );
            self.wake(root);
        }
        match &start.message {
            Some(said) => self.hear(root, said, Admitted::Message),
            None if start.args.is_none() => self.admit_as(Admitted::Start, None, b""),
            None => {}
        }
        Ok(())
    }

    /// Pushes what was said.
    pub(super) fn hear(&mut self, agent: Id, said: &Said, kind: Admitted) {
        self.admit(Admission {
            kind,
            id: said.to,
            message: Some(said.id.clone()),
            digest: Digest::of(said.text.as_bytes()),
            body: None,
        });
        let body = self.body(said.text.clone());
        let from = match said.sender {
            Some(sender) => Origin::Agent(sender),
            None => Origin::Outside(said.by.clone()),
        };
        self.push(agent, Interaction::UserMessage { from, body });
        self.wake(agent);
    }
}
