//! The third pass: calls begin, as many in parallel as the limit allows. A call that must come last waits until the others close.

use super::{effective, rate, todo};
use crate::network::{Source, ToolDef};
use crate::routers::floor;
use crate::snapshot::{OpenCall, Phase};
use crate::stored::built_in::BuiltIn;
use crate::stored::by::By;
use crate::stored::codes::Code;
use crate::stored::commit::{Want, Wished};
use crate::stored::ids::{Body, Id, Time};
use crate::stored::interaction::{Cause, How, Interaction, Origin, Target};
use crate::stored::outcome::Mapped;
use crate::tick::finish::Conclude;
use crate::tick::reflect::Begins;
use crate::tick::take::cancel::Cut;
use crate::tick::{Tick, limits, table};
use crate::values::types::TypeKind;
use crate::view::mapping::{self, Raw};
use serde_json::Value as Json;
use std::sync::Arc;

impl Tick<'_> {
    /// Begins all calls of an agent's exchange that may begin.
    pub(crate) fn begin_calls(&mut self, owner: Id) {
        let mut after = None;
        while self.agent(owner).phase == Phase::Calling {
            let most = self.network.limits_of(self.agent(owner)).parallel;
            let Some(call) = self.snapshot.next_unbegun(owner, after) else {
                return;
            };
            after = Some(call);
            let open = self
                .snapshot
                .call(owner, call)
                .expect("unbegun calls are open")
                .clone();
            let tool = self.network.tools.get(&open.call.name);
            if tool.is_some_and(ToolDef::is_last) {
                // Only if it is the last open call: then the results of the others, with their writes, are known.
                if self.agent(owner).stack.open == 1 {
                    self.begin_last(owner, &open);
                }
                continue;
            }
            if self.agent(owner).stack.running >= most {
                return;
            }
            if self.is_parked(&open) || !self.has_room(owner, &open) {
                continue;
            }
            // State may have changed since the answer.
            if let Some(unfixed) = self.unfixed(&open) {
                self.close_call(owner, call, unfixed);
                continue;
            }
            match self.judges_args(owner, &open, tool) {
                Begins::Now => self.begin_call(owner, &open, tool),
                Begins::Later | Begins::Never => {}
            }
        }
    }

    /// Returns true if the use under which the model was offered the tool allows one more running call.
    fn has_room(&self, owner: Id, open: &OpenCall) -> bool {
        let cx = self.cx();
        let Some(used) = super::judge::use_of(&cx, &self.snapshot, open) else {
            return true;
        };
        if used.parallel > self.agent(owner).stack.running {
            return true;
        }
        let seen = |c: &OpenCall| c.call.called() == used.seen;
        let running = self.snapshot.exchange(owner);
        let running = running
            .filter(|c| c.closed.is_none() && c.begun && seen(c))
            .count();
        running < used.parallel as usize
    }

    fn begin_call(&mut self, owner: Id, open: &Arc<OpenCall>, tool: Option<&ToolDef>) {
        let call = open.call.id;
        match (&open.call.target, tool) {
            (Target::Agent(child), _) => {
                let child = *child;
                if self.is_free(child) {
                    self.serve(child, call);
                }
            }
            (Target::Tool(_), Some(tool)) => match &tool.source {
                Source::BuiltIn(
                    kind @ (BuiltIn::TodoAdd
                    | BuiltIn::TodoComplete
                    | BuiltIn::TodoCancel
                    | BuiltIn::TodoUpdate),
                ) => {
                    let mapped = todo::change(&self.cx(), &self.snapshot, open, *kind);
                    self.close_call(owner, call, mapped);
                }
                Source::BuiltIn(BuiltIn::ArtifactRate) => {
                    let mapped = rate::rate(&self.cx(), &self.snapshot, open);
                    self.close_call(owner, call, mapped);
                }
                Source::State if self.stays_inside(open, tool) => {
                    let mapped = mapping::map(
                        &self.cx(),
                        &self.snapshot,
                        owner,
                        call,
                        &Raw::Done(Json::Null),
                    );
                    if mapped.writes.iter().any(|w| w.seal) {
                        self.wish_call(open, None);
                    } else {
                        self.close_call(owner, call, mapped);
                    }
                }
                Source::State
                | Source::Http(_)
                | Source::Command { .. }
                | Source::Native { .. }
                | Source::Mcp { .. }
                | Source::Wait(_)
                | Source::Ask(_)
                | Source::Send(_)
                | Source::BuiltIn(
                    BuiltIn::Finish
                    | BuiltIn::Done
                    | BuiltIn::NeedHelp
                    | BuiltIn::Handoff
                    | BuiltIn::AskUser
                    | BuiltIn::Fork
                    | BuiltIn::ArtifactWrite
                    | BuiltIn::ArtifactRead
                    | BuiltIn::ArtifactList
                    | BuiltIn::ArtifactSearch
                    | BuiltIn::MemorySave
                    | BuiltIn::MemorySearch
                    | BuiltIn::MemoryRead
                    | BuiltIn::MemoryRate
                    | BuiltIn::NotesSearch,
                ) => {
                    self.wish_call(open, None);
                }
            },
            (Target::Wait, Some(_)) => self.begin_wait(open),
            (Target::Person(person), _) => {
                let timeout = self.network.people.get(person).and_then(|p| p.timeout);
                self.wish_call(open, timeout.map(|ms| self.now.plus(ms)));
            }
            (Target::Tool(_), None) if open.call.is_extraction() || open.call.asks_itself() => {
                self.wish_call(open, None);
            }
            // The branches of a person's join are open already; calls to unknown targets were refused.
            (Target::Branches(_) | Target::Unknown | Target::Tool(_) | Target::Wait, _) => {}
        }
    }

    /// Returns true if a tool that only writes state needs nothing from outside: no approval and no secret from a person.
    fn stays_inside(&self, open: &OpenCall, tool: &ToolDef) -> bool {
        let asks = match &tool.parameters {
            crate::values::types::Parameters::Fields(fields) => {
                fields.iter().any(|(_, ty)| ty.kind == TypeKind::Secret)
            }
            crate::values::types::Parameters::Schema(_) => false,
        };
        !asks && super::wish::approvals(&self.cx(), &self.snapshot, open, tool).is_empty()
    }

    fn begin_last(&mut self, owner: Id, open: &OpenCall) {
        let call = open.call.id;
        // The other calls are closed, so conditions may have changed since the answer.
        if let Some(mapped) = self.judge(owner, call) {
            return self.close_call(owner, call, mapped);
        }
        let tool = self.network.tool(&open.call.name);
        match &tool.source {
            Source::BuiltIn(kind @ (BuiltIn::Done | BuiltIn::NeedHelp | BuiltIn::Handoff)) => {
                self.begin_floor(owner, open, *kind);
            }
            Source::BuiltIn(BuiltIn::Finish) => {
                let args = mapping::arguments(&self.cx(), &self.snapshot, open);
                let result = args.get("result").cloned().unwrap_or_default();
                let text = match result {
                    Json::String(text) => text,
                    Json::Null => String::new(),
                    json => json.to_string(),
                };
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
            Source::BuiltIn(_)
            | Source::State
            | Source::Http(_)
            | Source::Command { .. }
            | Source::Native { .. }
            | Source::Mcp { .. }
            | Source::Wait(_)
            | Source::Ask(_)
            | Source::Send(_) => self.begin_fork(owner, call),
        }
    }

    /// Wishes the effect of a call. The effect has the call's own id if this line made the call. If fixed arguments or defaults
    /// change the given arguments, the changed ones are recorded, so that a rebuilt wish has the same arguments.
    pub(crate) fn wish_call(&mut self, open: &OpenCall, due: Option<Time>) {
        let call = open.call.id;
        let args = match open.edited {
            Some(_) => None,
            None => effective(&self.cx(), &self.snapshot, open)
                .map(|args| self.body(Json::Object(args).to_string())),
        };
        let id = if call.line() == self.line {
            call
        } else {
            self.id()
        };
        self.wish(Wished {
            id,
            agent: open.owner,
            what: Want::Call(call),
            args,
            due,
        });
    }

    // ---- agents ----------------------------------------------------------------------------------------------

    /// Returns true if an agent can take a call now.
    pub(crate) fn is_free(&self, agent: Id) -> bool {
        let agent = self.agent(agent);
        agent.input.serving.is_none()
            && table::rule(agent.phase, table::Event::ParentCall) == table::Rule::Take
    }

    /// Lets an agent take a call of its parent. The arguments become its message.
    pub(crate) fn serve(&mut self, child: Id, call: Id) {
        let parent = self
            .agent(child)
            .family
            .parent
            .expect("only a parent calls");
        let open = self
            .snapshot
            .call(parent, call)
            .expect("queued calls are open")
            .clone();
        let def = self.def(child);
        let body = match self.served(&open, def) {
            Some(text) => self.body(text),
            None => open.edited.unwrap_or(open.call.args),
        };
        if def.enter_fresh
            && self.agent(child).stack.height > 0
            && self.agent(child).stack.last != self.line
        {
            self.mode_anew(child);
            for write in self.fresh(child, def) {
                self.edit(write);
            }
        }
        self.push(
            child,
            Interaction::UserMessage {
                from: Origin::Call(call),
                body,
            },
        );
        self.wake(child);
    }

    /// Returns the arguments for the called agent, if they differ from the given ones: fixed arguments and defaults are added,
    /// and the name that chose the instance is removed.
    fn served(&self, open: &OpenCall, def: &crate::network::AgentDef) -> Option<String> {
        let cx = self.cx();
        let changed = effective(&cx, &self.snapshot, open);
        let named = self.agent(match open.call.target {
            Target::Agent(child) => child,
            _ => return None,
        });
        let strip = named.family.named.is_some() && !super::declares(&def.parameters, "name");
        if !strip {
            return changed.map(|args| Json::Object(args).to_string());
        }
        let mut args = match changed {
            Some(args) => args,
            None => {
                crate::values::json::arguments(&self.text(open.edited.unwrap_or(open.call.args)))
                    .unwrap_or_default()
            }
        };
        args.shift_remove("name");
        Some(Json::Object(args).to_string())
    }

    /// Begins the next call of the agent's parent, if the agent is free.
    pub(crate) fn serve_next(&mut self, agent: Id) {
        if !self.is_free(agent) {
            return;
        }
        // A branch takes only calls of agents that act on it.
        let parent = self.agent(agent).family.parent;
        let Some(parent) = parent.filter(|p| self.snapshot.in_scope(*p)) else {
            return;
        };
        let next = self.agent(agent).input.queue.iter().copied().find(|call| {
            let open = self.snapshot.call(parent, *call);
            open.is_some_and(|c| c.closed.is_none() && matches!(c.call.target, Target::Agent(_)))
        });
        let room =
            self.agent(parent).stack.running < self.network.limits_of(self.agent(parent)).parallel;
        if let (Some(call), true) = (next, room) {
            let open = self.snapshot.call(parent, call);
            match open.and_then(|open| self.unfixed(open)) {
                Some(unfixed) => self.close_call(parent, call, unfixed),
                None => self.serve(agent, call),
            }
        }
    }

    /// Closes a call with a person's answer.
    pub(crate) fn answer_call(&mut self, owner: Id, call: Id, text: &str, by: &By) {
        let open = self
            .snapshot
            .call(owner, call)
            .expect("the caller found this open call");
        if let Target::Branches(_) = open.call.target {
            return self.chosen(owner, call, text);
        }
        if floor::asks_to_leave(self.network, open) {
            let open = open.clone();
            return self.may_leave(owner, &open, text);
        }
        let mut mapped = mapping::answer(&self.cx(), &self.snapshot, owner, call, text, by);
        if open.call.is_for_more() && limits::declines(text) {
            mapped = Mapped {
                by: mapped.by,
                ..Mapped::plain(How::Refused, Some(Code::Rejected.text()), text)
            };
            return self.decline(owner, call, mapped);
        }
        self.close_call(owner, call, mapped);
    }

    /// Closes the call that asked a person for more than a limit, because the person refused. If the limit is still reached, the
    /// agent ends with all its open calls.
    pub(crate) fn decline(&mut self, owner: Id, call: Id, mapped: Mapped) {
        self.results.entry(owner).or_default().decline();
        self.close_call(owner, call, mapped);
        let reached = self.reached(owner);
        if let (Phase::Calling, Some(reached)) = (self.agent(owner).phase, reached) {
            self.cut_calls(owner, &Cut::default());
            self.limit(owner, &reached);
        }
    }

    /// Returns the body of a text: the given one, or a new one in this line.
    pub(crate) fn body_or(&mut self, body: Option<Body>, text: &str) -> Body {
        match body {
            Some(body) => body,
            None => self.body(text),
        }
    }
}
