//! The answers of models, tools and people in the tests of a definition. A simulation draws from them.

use super::json::Values;
use crate::Network;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use steersman_definition::test::{Act, Answer, Gives};
use steersman_machine::stored::ids::Name;

/// Answers, outcomes and messages of all tests, and the values of the definition.
#[derive(Clone, Debug, Default)]
pub(super) struct Stubs {
    pub(super) values: Values,
    /// Answers by the name of an agent's definition.
    pub(super) answers: BTreeMap<String, Vec<Answer>>,
    pub(super) outcomes: BTreeMap<Name, Vec<Gives>>,
    pub(super) said: Vec<String>,
    pub(super) given: Vec<String>,
    pub(super) events: Vec<(Name, Json)>,
}

impl Stubs {
    pub(super) fn of(network: &Network) -> Self {
        let mut stubs = Self::default();
        for test in network.tests().filter_map(|name| network.test(name)) {
            let later = test.steps.iter().filter_map(|step| step.script.as_ref());
            for (key, answers) in [&test.script].into_iter().chain(later).flat_map(|s| &s.0) {
                // An agent's own answers: those of the engine's questions have a `#`.
                let Some(agent) = key.split('@').next().filter(|key| !key.contains('#')) else {
                    continue;
                };
                for (_, args) in answers.iter().flat_map(|answer| &answer.calls) {
                    stubs.values.learn(args);
                }
                let agent = agent.rsplit('/').next().unwrap_or(agent).to_owned();
                stubs
                    .answers
                    .entry(agent)
                    .or_default()
                    .extend(answers.iter().cloned());
            }
            for (tool, outcomes) in &test.tools {
                for outcome in outcomes {
                    if let Gives::Result(result) = &outcome.gives {
                        stubs.values.learn(result);
                    }
                }
                let known = stubs.outcomes.entry(tool.clone()).or_default();
                known.extend(outcomes.iter().map(|outcome| outcome.gives.clone()));
            }
            for act in test.steps.iter().filter_map(|step| step.act.as_ref()) {
                match act {
                    Act::Say(text) | Act::Interrupt(text) => stubs.said.push(text.clone()),
                    Act::Answer(text) => stubs.given.push(text.clone()),
                    Act::Event { name, fields } => {
                        stubs.events.push((name.clone(), fields.clone()));
                    }
                    _ => {}
                }
            }
        }
        stubs.values.learn_numbers(&network.checked().source);
        stubs
    }
}
