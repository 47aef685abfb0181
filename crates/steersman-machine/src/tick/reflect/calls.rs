//! Judgements of tool calls. Results are judged when their exchange has closed, arguments of unsafe calls before the calls run.

use crate::network::{Reflect, ToolDef, texts};
use crate::snapshot::OpenCall;
use crate::stored::codes::Code;
use crate::stored::commit::Kind;
use crate::stored::engine::{Caller, Judged};
use crate::stored::ids::{Body, Id, Name};
use crate::stored::interaction::{Class, How, Interaction, Number, Origin, Target};
use crate::stored::outcome::Mapped;
use crate::tick::Tick;
use crate::tick::call::refuse;
use crate::tick::results::Results;
use crate::view::View;
use serde_json::json;
use std::sync::Arc;

/// A result that is to be judged.
#[derive(Clone, Debug)]
pub(crate) struct Result {
    call: Id,
    number: Number,
    tool: Name,
    args: Body,
    gave: Option<Body>,
}

/// The fate of a call that is about to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// The call may begin.
    Now,
    /// The call waits for a judgement.
    Later,
    /// The call was closed.
    Never,
}

/// Decision whether a call is judged. `Yes` has the definition's prompt, if there is one.
enum Judges {
    No,
    Yes(Option<String>),
}

impl Tick<'_> {
    /// Returns the results of an exchange that are to be judged, if this result is its last one.
    pub(crate) fn results_to_judge(
        &self,
        owner: Id,
        call: Id,
        how: How,
        body: Option<Body>,
    ) -> Vec<Result> {
        let agent = self.agent(owner);
        if agent.stack.open != 1 || agent.kind != Kind::Model || self.cancelling {
            return Vec::new();
        }
        let mut found = Vec::new();
        for open in self.snapshot.exchange(owner) {
            let tool = self.network.tools.get(&open.call.name);
            let judges = tool.is_some_and(|t| t.effect != Class::Unsafe && t.reflect.is_some());
            let is_of_model = open.call.judged().is_none() && open.call.state().is_none();
            if !judges || !is_of_model || open.call.is_ahead() {
                continue;
            }
            let (how, gave) = match &open.closed {
                Some(closed) => (closed.how, closed.gave),
                None if open.call.id == call => (how, body),
                None => continue,
            };
            if how.is_ok() {
                found.push(Result {
                    call: open.call.id,
                    number: open.call.number,
                    tool: open.call.name.clone(),
                    args: open.call.args,
                    gave,
                });
            }
        }
        found
    }

    /// Starts the judgements of the results of the exchange that just closed. Returns true if a model is asked, a reviewer is
    /// called, or the agent failed.
    pub(crate) fn judges_results(&mut self, owner: Id) -> bool {
        let results = self.results.get_mut(&owner);
        let found = results.map(Results::take_to_judge).unwrap_or_default();
        let state = self.agent(owner);
        // No result is judged while a draft is judged, or after a limit demanded an answer.
        if found.is_empty() || state.turn.draft_is_judged() || state.counters.limited {
            return false;
        }
        if self.reached(owner).is_some() {
            return false;
        }
        let (mut asked, mut reviews) = (false, Vec::new());
        for result in found {
            let Some(reflect) = self
                .network
                .tools
                .get(&result.tool)
                .and_then(|t| t.reflect.as_ref())
            else {
                continue;
            };
            if self.agent(owner).turn.times_sent_back(&result.tool) > reflect.rounds {
                continue;
            }
            let gave = result.gave.map_or_else(|| "".into(), |b| self.text(b));
            let args = self.text(result.args);
            let view = || {
                let view = self
                    .view(owner)
                    .with("args", crate::questions::judgement::json_or_text(&args));
                view.with("result", crate::questions::judgement::json_or_text(&gave))
            };
            let prompt = match judgement(reflect, view) {
                Ok(Judges::No) => continue,
                Ok(Judges::Yes(prompt)) => prompt,
                Err(why) => {
                    self.fail(owner, Code::Reflect, &why);
                    return true;
                }
            };
            if reflect.by.is_some() {
                reviews.push((result, reflect, prompt));
                continue;
            }
            let id = result.number.to_string();
            let values = [("tool", &*result.tool), ("args", &*args), ("call", &*id)];
            let text = prompt.unwrap_or_else(|| self.says(owner, texts::REFLECT_CALL, &values));
            let body = self.body(text);
            let from = Origin::Reflect {
                of: result.call,
                tool: Some(result.tool),
            };
            self.push(owner, Interaction::UserMessage { from, body });
            asked = true;
        }
        for (result, reflect, prompt) in reviews {
            let args = self.text(result.args);
            let gave = result.gave.map_or_else(|| "".into(), |b| self.text(b));
            let about = Judged::Result(result.call, result.tool.clone());
            let by = reflect.by.as_ref().expect("these results have a reviewer");
            self.ask_reviewer_of_call(owner, by, &about, &args, Some(&gave), prompt);
            asked = true;
        }
        asked
    }

    /// Decides whether the arguments of an unsafe call are judged first.
    pub(crate) fn judges_args(
        &mut self,
        owner: Id,
        open: &OpenCall,
        tool: Option<&ToolDef>,
    ) -> Begins {
        let Some((tool, reflect)) = tool.and_then(|t| Some((t, t.reflect.as_ref()?))) else {
            return Begins::Now;
        };
        let unsafe_call = open.call.target == Target::Tool(Class::Unsafe);
        if !unsafe_call || open.call.judged().is_some() {
            return Begins::Now;
        }
        let call = open.call.id;
        let about = Judged::Args(call, tool.name.clone());
        let of = |c: &&Arc<OpenCall>| c.call.judged() == Some(&about);
        let review = self.snapshot.exchange(owner).find(of);
        match review.map(|review| review.closed.is_some()) {
            Some(false) => return Begins::Later,
            // The judgement took time, so check the preconditions again.
            Some(true) => {
                return match self.judge(owner, call) {
                    None => Begins::Now,
                    Some(refused) => self.refuse_unjudged(owner, call, refused),
                };
            }
            None => {}
        }
        let args = self.text(open.edited.unwrap_or(open.call.args));
        let view = || {
            self.view(owner)
                .with("args", crate::questions::judgement::json_or_text(&args))
        };
        let prompt = match judgement(reflect, view) {
            Ok(Judges::No) => return Begins::Now,
            Ok(Judges::Yes(prompt)) => prompt,
            Err(why) => return self.refuse_unjudged(owner, call, refuse(Code::Refused, why)),
        };
        let times = self.agent(owner).turn.times_sent_back(&tool.name);
        if times > reflect.rounds {
            let text = format!(
                "{}: calls of `{}` were sent back {times} times in a row; it is not judged again in this answer",
                Code::Rounds,
                tool.name,
            );
            return self.refuse_unjudged(owner, call, refuse(Code::Rounds, text));
        }
        if let Some(reached) = self.reached(owner) {
            let text = format!(
                "limit: `{}` leaves no room to judge it, so it does not run",
                reached.name()
            );
            return self.refuse_unjudged(owner, call, refuse(Code::Limit, text));
        }
        if let Some(by) = &reflect.by {
            self.ask_reviewer_of_call(owner, by, &about, &args, None, prompt);
            return Begins::Later;
        }
        // One judgement after the other, because each is a model call of the agent itself.
        let busy = |c: &OpenCall| c.closed.is_none() && c.call.asks_itself();
        if !self.snapshot.exchange(owner).any(|c| busy(c)) {
            self.engine_call(
                owner,
                Caller::Judge(about),
                &json!({}),
                Target::Tool(Class::Read),
            );
        }
        Begins::Later
    }

    fn refuse_unjudged(&mut self, owner: Id, call: Id, refused: Mapped) -> Begins {
        self.close_call(owner, call, refused);
        Begins::Never
    }

    /// Refuses a call if the judgement of its arguments was cancelled: arguments that nobody judged do not run.
    pub(crate) fn unjudged(&mut self, review: &OpenCall) {
        if let Some(Judged::Args(of, _)) = review.call.judged() {
            self.send_back(review.owner, *of, "Its judgement was cancelled.");
        }
    }

    /// Closes a call whose arguments are to be revised. It does not run; its result says what to change.
    pub(crate) fn send_back(&mut self, owner: Id, call: Id, why: &str) {
        if !self.cancelling {
            self.close_call(owner, call, refuse(Code::Revise, why));
        }
    }
}

/// Decides whether a call is judged, and renders the definition's prompt. An error says which expression failed.
fn judgement<'v>(
    reflect: &Reflect,
    view: impl Fn() -> View<'v>,
) -> std::result::Result<Judges, String> {
    match view().holds(&reflect.when) {
        Ok(false) => return Ok(Judges::No),
        Ok(true) => {}
        Err(e) => return Err(format!("`{}` of `reflect`: {e}", reflect.when.source)),
    }
    let own = reflect.prompt.as_ref().map(|prompt| prompt.render(&view()));
    match own.transpose() {
        Ok(own) => Ok(Judges::Yes(own)),
        Err(e) => Err(format!("`prompt` of `reflect`: {e}")),
    }
}
