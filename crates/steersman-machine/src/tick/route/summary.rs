//! Running summaries of the conversation under a routed agent: their requests and answers.

use crate::questions::ask::About;
use crate::questions::summary::{question, text_of};
use crate::stored::ids::{Id, Line, Name};
use crate::stored::interaction::{Covers, Interaction, Summary};
use crate::stored::outcome::Answer;
use crate::tick::Tick;

impl Tick<'_> {
    /// Asks for the summaries that are due before the router decides. Returns true if a model is asked.
    pub(super) fn sums_up(&mut self, agent: Id) -> bool {
        while let Some((question, fits)) = question(&self.cx(), &self.snapshot, agent) {
            let About::Summary(policy) = question.about else {
                return false;
            };
            match fits {
                Ok(()) => {
                    self.will_think(agent);
                    return true;
                }
                // No model is asked, and that is recorded.
                Err(why) => {
                    let nothing = self.id();
                    self.no_summary(agent, nothing, policy, &why);
                }
            }
        }
        false
    }

    /// Takes the summary that a model wrote.
    pub(super) fn summed(&mut self, agent: Id, effect: Id, policy: Name, answer: &Answer) {
        let Some(text) = text_of(answer) else {
            return self.no_summary(agent, effect, policy, "The answer is empty.");
        };
        let last = self.agent(agent).stack.last;
        self.push_summary(
            agent,
            effect,
            policy,
            Covers::Scope(Line::NONE, last),
            &text,
        );
    }

    /// If the failed model call was for a summary, records the failed summary and returns true. The agent itself then does not
    /// fail.
    pub(crate) fn not_summed(&mut self, agent: Id, effect: Id, why: &str) -> bool {
        let question = question(&self.cx(), &self.snapshot, agent);
        let Some(About::Summary(policy)) = question.map(|(question, _)| question.about) else {
            return false;
        };
        self.no_summary(agent, effect, policy, why);
        true
    }

    /// Records a failed summary. It covers nothing, so the earlier summary and all messages since then stay as they are.
    fn no_summary(&mut self, agent: Id, effect: Id, policy: Name, why: &str) {
        let last = self.agent(agent).stack.last;
        self.push_summary(agent, effect, policy, Covers::Scope(last, last), why);
    }

    /// Pushes a summary on the stack and wakes its agent.
    pub(crate) fn push_summary(
        &mut self,
        agent: Id,
        effect: Id,
        policy: Name,
        covers: Covers,
        text: &str,
    ) {
        let body = self.body(text);
        let summary = Summary {
            effect,
            policy,
            covers,
            body,
        };
        self.push(agent, Interaction::Summary(summary));
        self.wake(agent);
    }
}
