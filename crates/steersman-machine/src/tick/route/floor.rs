//! The floor: a speaker says that its task is done, gives the floor back, or passes it on.

use super::words;
use crate::network::{OnChange, texts};
use crate::routers::{floor, handoff};
use crate::snapshot::{OpenCall, Phase};
use crate::stored::built_in::BuiltIn;
use crate::stored::codes::Code;
use crate::stored::ids::{Body, Id};
use crate::stored::interaction::{Cause, End, How, Interaction, Origin};
use crate::stored::outcome::Mapped;
use crate::tick::Tick;
use crate::tick::call::refuse;
use crate::tick::finish::{Conclude, Finish};
use crate::tick::limits::declines;
use crate::values::json::arguments;
use crate::view::mapping;
use serde_json::{Map, Value as Json, json};

impl Tick<'_> {
    /// Carries out the last call of an answer, which is about the floor.
    pub(crate) fn begin_floor(&mut self, owner: Id, open: &OpenCall, kind: BuiltIn) {
        let args = mapping::arguments(&self.cx(), &self.snapshot, open);
        match kind {
            BuiltIn::Done => self.done(owner, open.call.id, &args),
            BuiltIn::NeedHelp => self.need_help(owner, open, &args),
            _ => self.hand_over(owner, open.call.id, &args),
        }
    }

    fn done(&mut self, owner: Id, call: Id, args: &Map<String, Json>) {
        let Some((_, task)) = floor::at_work(&self.cx(), &self.snapshot, owner) else {
            return self.not_now(owner, call, "You work on no task.");
        };
        // The writes of the other calls of the answer count.
        let written = self.snapshot.as_written(owner);
        match floor::is_done(&self.cx(), &written, owner, task) {
            Some(Err(why)) => self.not_now(owner, call, &why),
            Some(Ok(false)) => {
                let source = task.done.as_ref().map_or("", |done| &done.source);
                let values = [("task", &*task.name), ("done", source)];
                let text = self.says(owner, texts::NOT_DONE, &values);
                self.not_now(owner, call, &text);
            }
            Some(Ok(true)) | None => {
                let given = args.get("result").and_then(Json::as_str);
                let said = self
                    .agent(owner)
                    .turn
                    .said
                    .map(|body| self.text(body).to_string());
                let text = given.map(str::to_owned).or(said).unwrap_or_default();
                self.conclude(
                    owner,
                    Conclude {
                        text: &text,
                        body: None,
                        cause: Cause::Tool,
                        call: Some(call),
                        misfit: None,
                        code: None,
                    },
                );
            }
        }
    }

    fn need_help(&mut self, owner: Id, open: &OpenCall, args: &Map<String, Json>) {
        let call = open.call.id;
        let Some((_, task)) = floor::at_work(&self.cx(), &self.snapshot, owner) else {
            return self.not_now(owner, call, "You work on no task.");
        };
        let name = task.name.clone();
        let desk = floor::desk_above(&self.cx(), &self.snapshot, owner);
        match desk.map_or(OnChange::Switch, |(_, desk)| desk.on_change) {
            OnChange::Switch => self.gives_back(owner, call, args),
            OnChange::Ask => self.wish_call(open, None),
            OnChange::FinishFirst => {
                let text = self.says(owner, texts::FIRST, &[("task", &name)]);
                self.not_now(owner, call, &text);
            }
        }
    }

    /// Takes the user's answer to the question whether the task is left for something else.
    pub(crate) fn may_leave(&mut self, owner: Id, open: &OpenCall, answer: &str) {
        if declines(answer) {
            let text = self.says(owner, texts::STAYS, &[]);
            return self.not_now(owner, open.call.id, &text);
        }
        let args = mapping::arguments(&self.cx(), &self.snapshot, open);
        self.gives_back(owner, open.call.id, &args);
    }

    fn gives_back(&mut self, owner: Id, call: Id, args: &Map<String, Json>) {
        let desk = floor::desk_above(&self.cx(), &self.snapshot, owner).map(|(desk, _)| desk);
        let request = args.get("request").and_then(Json::as_str);
        let request = request.unwrap_or_default().to_owned();
        if let (Some(words), Some(desk)) = (self.release(owner, call, &request), desk) {
            self.hand_back(desk, owner, words, &request);
            self.wake(desk);
        }
    }

    fn hand_over(&mut self, owner: Id, call: Id, args: &Map<String, Json>) {
        let Some((above, peers)) = handoff::peers(&self.cx(), &self.snapshot, owner) else {
            return self.not_now(owner, call, "There is nobody to hand over to.");
        };
        let text = |key: &str| args.get(key).and_then(Json::as_str).unwrap_or_default();
        let (to, reason) = (text("to").to_owned(), text("reason").to_owned());
        let Some(to) = peers.iter().find(|peer| ***peer == *to).cloned() else {
            let peers: Vec<String> = peers.iter().map(|peer| format!("`{peer}`")).collect();
            let text = format!(
                "You cannot hand over to `{to}`, only to {}.",
                peers.join(", ")
            );
            return self.not_now(owner, call, &text);
        };
        if let Some(words) = self.release(owner, call, &reason) {
            self.hand_back(above, owner, words, "");
            let read = Map::from_iter([("reason".to_owned(), json!(reason))]);
            if self.agent(above).phase == Phase::Routing {
                self.choose(above, None, handoff::takes(&to), &read);
            }
        }
    }

    fn not_now(&mut self, owner: Id, call: Id, text: &str) {
        let refused: Mapped = refuse(Code::Refused, format!("refused: {text}"));
        self.close_call(owner, call, refused);
    }

    /// Ends a speaker's task that is not done. Returns the messages that it leaves unanswered;
    /// `None` if its caller is outside the branch's scope.
    fn release(&mut self, owner: Id, call: Id, why: &str) -> Option<Vec<Body>> {
        let left = self.agent(owner).input.unanswered.clone();
        let parent = self.agent(owner).family.parent;
        let ok = self.body("ok");
        self.push_result(owner, call, How::Done, None, Some(ok));
        let body = self.body(why);
        self.finish(
            owner,
            Finish {
                end: End::Task,
                cause: Cause::Released,
                body: Some(body),
                code: None,
                writes: Vec::new(),
                answers: false,
            },
        );
        parent.filter(|p| self.snapshot.in_scope(*p)).map(|_| left)
    }

    /// Gives the messages that a speaker left unanswered to the router, in the user's words. If there are none, the router gets
    /// the text `otherwise`, unless it is empty.
    fn hand_back(&mut self, above: Id, from: Id, left: Vec<Body>, otherwise: &str) {
        if self.agent(above).phase != Phase::Routing {
            return;
        }
        let mut bodies = Vec::with_capacity(left.len());
        for body in left {
            let text = self.text(body);
            // If the body holds the arguments of the call that started the speaker, take the user's words from them.
            let said = match arguments(&text) {
                Ok(_) => words(&text),
                Err(_) => text.to_string(),
            };
            bodies.push(if said == *text { body } else { self.body(said) });
        }
        if bodies.is_empty() && !otherwise.is_empty() {
            bodies.push(self.body(otherwise));
        }
        for body in bodies {
            let from = Origin::Released(from);
            self.push(above, Interaction::UserMessage { from, body });
        }
    }
}
