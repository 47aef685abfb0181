//! Reruns: recorded outcomes answer instead of the world, as long as the requests are the same.

use super::draft::Draft;
use super::{Job, Stop};
use crate::engine::recorded::{Asked, Recorded};
use std::sync::Arc;
use steersman_machine::context::Request;
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::stored::interaction::How;
use steersman_machine::stored::outcome::{Mapped, Outcome};
use steersman_machine::tick::effect::Work;

impl Job<'_, '_> {
    fn recording(&self) -> Option<Arc<Recorded>> {
        self.seen.engine.0.recorded.clone()
    }

    /// Answers an effect from the recording, if a tool has the same arguments, or a question or wait is the same. Returns true
    /// if it was answered. A question without a recorded answer ends the block, unless people are to answer it.
    pub(super) fn answered_from_recording(&mut self, draft: &Draft, id: Id) -> Result<bool, Stop> {
        let Some(recorded) = self.recording() else {
            return Ok(false);
        };
        let out = &self.d.effects.outs()[&id];
        let dry = self.d.branches.live()[&out.branch].snapshot.dry;
        let (asked, simulates) = match &out.wish.work {
            Work::Tool(tool) => (Asked::Tool(self.digest(id)), !tool.class.is_free() && dry),
            Work::Simulate(_) => (Asked::Tool(self.digest(id)), true),
            Work::Ask { to, question, .. } => (Asked::Person(to.clone(), question.clone()), false),
            Work::Event { .. } | Work::Timer => match self.waits_as(draft, id)? {
                Some(asked) => (asked, false),
                None => return Ok(false),
            },
            Work::Model | Work::Send { .. } => return Ok(false),
        };
        if let Some(mapped) = recorded.take(id, &asked) {
            // It was not done again: readers of this session must see that.
            let how = match mapped.how {
                How::Done if simulates => How::Simulated,
                how => how,
            };
            self.answer_outcome(id, Outcome::Mapped(Mapped { how, ..mapped }), Vec::new());
            return Ok(true);
        }
        if let Asked::Person(to, question) = asked
            && recorded.questions_end()
        {
            let why = format!("no recorded answer of `{to}` to: {question}");
            self.answer_outcome(id, Outcome::Leaf(why), Vec::new());
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns a wait, identified by the arguments of its call.
    fn waits_as(&self, draft: &Draft, id: Id) -> Result<Option<Asked>, Stop> {
        let snapshot = &self.d.branches.live()[&self.d.effects.outs()[&id].branch].snapshot;
        let Some(open) = snapshot.call_of(id) else {
            return Ok(None);
        };
        let (name, args) = (open.call.name.clone(), open.call.args);
        // A call of the present line is not stored anywhere else yet.
        let args = match draft.text(args) {
            Some(text) => Some(text),
            None => self.seen.past.stored(args)?,
        };
        Ok(args.map(|args| Asked::Wait(name, args)))
    }

    /// Answers a model call from the recording, if the same request was sent to the same model. Returns true if it was answered.
    pub(super) fn modelled_in_recording(&mut self, id: Id, request: &Request) -> bool {
        let Some(recorded) = self.recording() else {
            return false;
        };
        let network = self.network().clone();
        let labels: Vec<Name> = network
            .chain(&request.model)
            .into_iter()
            .filter_map(|name| {
                self.d
                    .bound
                    .values()
                    .models
                    .iter()
                    .find(|bound| bound.name == *name)
            })
            .map(crate::model::BoundModel::label)
            .collect();
        let Some(answer) = recorded.answer(id, request.digest, &labels) else {
            recorded.asked_live(id);
            return false;
        };
        self.answer_outcome(id, Outcome::Answer(answer), Vec::new());
        true
    }
}
