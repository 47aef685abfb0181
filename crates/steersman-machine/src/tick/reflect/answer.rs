//! Drafts of answers: they are judged in rounds before they become final.

use crate::network::nets::Step;
use crate::network::{ModelAgent, Reflect, ToolChoice, texts};
use crate::questions::judgement::with_form;
use crate::questions::verdict::{Verdict, of_itself};
use crate::snapshot::{Draft, Stands};
use crate::stored::codes::Code;
use crate::stored::engine::Judged;
use crate::stored::ids::{Body, Id};
use crate::stored::interaction::{Cause, End, Interaction, Origin};
use crate::stored::outcome::Answer;
use crate::tick::Tick;
use crate::tick::finish::{Conclude, Finish};
use serde_json::Value as Json;

/// The fate of an answer that could be final.
pub(crate) enum After {
    /// The answer is final.
    Final,
    /// The answer is final without a further judgement or revision. The code names the limit that prevented it.
    Stands(&'static str),
    /// The answer is a draft and is being judged; or the agent failed, because an expression or the prompt of `reflect` failed.
    Judged,
}

impl Tick<'_> {
    /// Decides whether an answer is judged before it counts. If so, it becomes a draft, and the judge is asked.
    pub(crate) fn after_answer(&mut self, agent: Id, how: &Conclude<'_>, body: Body) -> After {
        let def = self.def(agent);
        let Some(reflect) = &def.reflect else {
            return After::Final;
        };
        // An answer that a limit demanded is final.
        let state = self.agent(agent);
        if !matches!(how.cause, Cause::Answer | Cause::Tool) || state.counters.limited {
            return After::Final;
        }
        let revised = state
            .turn
            .draft
            .as_ref()
            .is_some_and(|draft| matches!(draft.stands, Stands::Open | Stands::Criticised));
        if state.counters.rounds >= reflect.rounds {
            return if revised {
                After::Stands(Code::Rounds.text())
            } else {
                After::Final
            };
        }
        let value = def.output.as_ref().and_then(|o| o.value(how.text).ok());
        let value = value.unwrap_or_else(|| Json::from(how.text));
        match self
            .view(agent)
            .with("result", value.clone())
            .holds(&reflect.when)
        {
            Ok(true) => {}
            Ok(false) => return After::Final,
            Err(e) => {
                let text = format!("`{}` of `reflect`: {e}", reflect.when.source);
                self.fail(agent, Code::Reflect, &text);
                return After::Judged;
            }
        }
        if let Some(reached) = self.reached(agent) {
            return After::Stands(reached.name());
        }
        let own = match &reflect.prompt {
            None => None,
            Some(prompt) => match prompt.render(&self.view(agent).with("result", value)) {
                Ok(text) => Some(text),
                Err(e) => {
                    self.fail(agent, Code::Reflect, &format!("`prompt` of `reflect`: {e}"));
                    return After::Judged;
                }
            },
        };
        self.push(
            agent,
            Interaction::Finished {
                end: End::Draft,
                cause: how.cause,
                body: Some(body),
                code: None,
                writes: Vec::new(),
            },
        );
        self.ask_about_draft(agent, reflect, how.text, own);
        After::Judged
    }

    fn ask_about_draft(&mut self, agent: Id, reflect: &Reflect, draft: &str, own: Option<String>) {
        let of = self.agent(agent).turn.spoke.unwrap_or(agent);
        if let Some(by) = &reflect.by {
            self.ask_reviewer(agent, by, &Judged::Draft(of), draft, own);
            return;
        }
        let (cx, snapshot) = (self.cx(), &self.snapshot);
        let sentences = [texts::REFLECT, texts::REFLECT_FORM];
        let mut text = with_form(&cx, snapshot, agent, own, sentences, &[]);
        let model = self.network.in_force(self.agent(agent));
        let works = |model: &ModelAgent| {
            let tools = !model.tools.is_empty() || !model.servers.is_empty();
            tools && model.tool_choice != ToolChoice::None
        };
        if model.is_some_and(works) {
            let more = self.says(agent, texts::REFLECT_WORK, &[]);
            text = format!("{text} {more}");
        }
        let body = self.body(text);
        let from = Origin::Reflect { of, tool: None };
        self.push(agent, Interaction::UserMessage { from, body });
        self.wake(agent);
    }

    /// Takes the judgement of a model on its own draft. Returns false if the model was not asked for one.
    /// Calls in its place go back to work: they are opened as any others, the draft stays a draft, and the answer after them
    /// judges it or replaces it.
    pub(crate) fn judged_itself(&mut self, agent: Id, effect: Id, answer: &Answer) -> bool {
        if !crate::questions::judgement::judges_itself(&self.snapshot, agent) {
            return false;
        }
        let Some(draft) = self.agent(agent).turn.draft.clone() else {
            return false;
        };
        let def = self.def(agent);
        if !answer.asks.is_empty() {
            if !self.agent(agent).counters.last_call {
                self.said(agent, effect, answer, Step::Take);
                return true;
            }
            self.push_answer(agent, effect, answer);
            self.stand(agent, &draft, draft.cause, Some(Code::Unusable.text()));
            return true;
        }
        let said = self.push_answer(agent, effect, answer);
        match of_itself(answer, def.output.as_ref()) {
            Verdict::Accept => self.stand(agent, &draft, draft.cause, None),
            Verdict::Unusable(_) => {
                self.stand(agent, &draft, draft.cause, Some(Code::Unusable.text()));
            }
            Verdict::Revise(text) => {
                let is_whole_answer = answer.text.as_deref().map(str::trim) == Some(&*text);
                self.conclude(
                    agent,
                    Conclude {
                        text: &text,
                        body: said.filter(|_| is_whole_answer),
                        cause: draft.cause,
                        call: None,
                        misfit: answer.misfit.as_deref().filter(|_| is_whole_answer),
                        code: None,
                    },
                );
            }
        }
        true
    }

    /// Makes a draft final if a reviewer has accepted it. Returns true if there was such a draft.
    pub(crate) fn accepted(&mut self, agent: Id) -> bool {
        let draft = self.agent(agent).turn.draft.clone();
        let Some(draft) = draft.filter(|draft| draft.stands == Stands::Accepted) else {
            return false;
        };
        self.stand(agent, &draft, draft.cause, None);
        true
    }

    /// Makes a draft final if a limit leaves no room to judge or revise it. Returns true if there was such a draft.
    pub(crate) fn stands_at_limit(&mut self, agent: Id, limit: &'static str) -> bool {
        let draft = self.agent(agent).turn.draft.clone();
        let Some(draft) = draft.filter(|draft| draft.stands != Stands::Criticised) else {
            return false;
        };
        self.stand(agent, &draft, Cause::Rounds, Some(limit));
        true
    }

    /// Keeps the earlier draft if a new draft does not fit its type. Returns true if there was an earlier one.
    pub(crate) fn keeps_draft(&mut self, agent: Id) -> bool {
        let draft = self.agent(agent).turn.draft.clone();
        let Some(draft) = draft.filter(|draft| draft.stands == Stands::Open) else {
            return false;
        };
        self.stand(agent, &draft, draft.cause, Some(Code::Unusable.text()));
        true
    }

    /// Makes the draft the answer. Its state writes are evaluated only now and take effect with the final answer.
    fn stand(&mut self, agent: Id, draft: &Draft, cause: Cause, code: Option<&'static str>) {
        let text = draft.body.map_or_else(|| "".into(), |body| self.text(body));
        let how = Conclude {
            text: &text,
            body: draft.body,
            cause: draft.cause,
            call: None,
            misfit: None,
            code: None,
        };
        let writes = match self.ends_well(agent, &how) {
            Ok(writes) => writes,
            Err(why) => return self.fail(agent, Code::Misfit, &why),
        };
        let end = match draft.cause {
            Cause::Tool => End::Task,
            _ => self.end_of(agent),
        };
        self.finish(
            agent,
            Finish {
                end,
                cause,
                body: draft.body,
                code,
                writes,
                answers: false,
            },
        );
    }
}
