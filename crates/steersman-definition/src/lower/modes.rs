//! Lowers modes. Each mode becomes a whole agent; keys that it does not set are taken from the agent.

use super::super::diagnostic::Diagnostic;
use super::super::site::{Scope, Wants};
use super::super::source::{Key, MAX_NODES, Node, Value};
use super::file::params;
use super::{Lower, RESERVED, knowledge};
use steersman_machine::network::{
    Context, ExitsWhen, FINISH, Limits, Mode, ModeExit, ModelAgent, Modes, notes,
};
use steersman_machine::stored::ids::Name;

/// Returns the items of a list key of an agent and of all its modes.
pub(super) fn lists<'a>(agent: &'a Node, key: &'a str) -> impl Iterator<Item = &'a Node> {
    let modes = agent.get("modes").map(Node::entries).unwrap_or_default();
    let nodes = std::iter::once(agent).chain(modes.iter().map(|(_, mode)| mode));
    nodes.flat_map(move |node| node.get(key).map(Node::items).unwrap_or_default())
}

impl Lower<'_> {
    /// Lowers the modes of an agent; `agent` is the agent lowered without them.
    pub(super) fn modes(
        &mut self,
        key: &Key,
        node: &Node,
        scope: &Scope,
        agent: &ModelAgent,
        limits: &Limits,
    ) -> Option<Box<Modes>> {
        let modes = node.get("modes")?;
        let first = modes.entries().first();
        let Some((first, _)) = first else {
            let at = self.place(modes.span);
            self.say(Diagnostic::nobody_to_choose(at, "modes"));
            return None;
        };
        // each mode gets a copy of the agent's tools, which counts as if it were written there
        let each = agent.tools.len() + agent.servers.len() + agent.before.len();
        let all = modes.entries().len().saturating_mul(each);
        if all > MAX_NODES {
            let at = self.place(modes.span);
            let what = format!("the modes of `{}` have {all} tools together", key.name);
            let most = format!(
                "at most {MAX_NODES}, those of the agent counted for each mode: give modes `tools` of their own"
            );
            self.say(Diagnostic::too_big(at, what, most));
            return None;
        }
        let scope = Scope {
            message: true,
            ..scope.clone()
        };
        let mut all: Vec<Mode> = Vec::new();
        for (name, mode) in modes.entries() {
            if RESERVED.contains(&&*name.name) {
                let at = self.place(name.span);
                self.say(Diagnostic::reserved_name(at, &name.name));
                continue;
            }
            all.push(Mode {
                name: name.name.clone(),
                model: self.mode(&key.name, node, mode, &scope, agent),
                limits: self.limits_of_mode(mode, limits),
                exits: self.mode_exits(mode.get("exits"), modes, &scope),
            });
        }
        let start = node.get("start");
        let start = start.and_then(|start| self.entry_named(start, modes, "mode"));
        Some(Box::new(Modes {
            start: start.unwrap_or_else(|| first.name.clone()),
            exits: self.mode_exits(node.get("exits"), modes, &scope),
            all,
        }))
    }

    fn mode(
        &mut self,
        name: &Name,
        above: &Node,
        node: &Node,
        scope: &Scope,
        agent: &ModelAgent,
    ) -> ModelAgent {
        let mut model = agent.clone();
        if let Some(system) = node.get("system") {
            model.system = self.prompt(system, scope);
        }
        if node.get("model").is_some() {
            model.model = self.model_name(node.get("model"));
        }
        model.params.extend(params(node.get("params")));
        if node.get("tools").is_some() {
            (model.tools, model.servers) = self.all_uses(name, node.get("tools"), scope);
        }
        let choice = node.get("tool_choice").or(above.get("tool_choice"));
        model.tool_choice = self.tool_choice(choice, &model.tools);
        if node.get("prefill").is_some() {
            model.prefill = self.text_of(node, "prefill", scope);
        }
        // the point of compaction depends on the model
        if node.get("context").is_some() || node.get("model").is_some() {
            let own = node.get("context");
            model.context = self.context_of_mode(own, above.get("context"), &model.model, scope);
        }
        // each mode has its own templates, which may or may not name the passages found in documents
        let documents = |name: &Name| **name == *notes::KNOWLEDGE;
        let found = model.before.iter_mut().filter(|b| documents(&b.named));
        found.for_each(|before| before.show = true);
        knowledge::shown_once(&mut model);
        model
    }

    /// Lowers the context of a mode: its own keys, and the agent's for the others.
    fn context_of_mode(
        &mut self,
        own: Option<&Node>,
        above: Option<&Node>,
        model: &Name,
        scope: &Scope,
    ) -> Context {
        let Some(own) = own else {
            return self.context(above, model, scope);
        };
        let mut entries = own.entries().to_vec();
        for (key, node) in above.map(Node::entries).unwrap_or_default() {
            if own.get(&key.name).is_none() {
                entries.push((key.clone(), node.clone()));
            }
        }
        let node = Node {
            value: Value::Map(entries),
            ..own.clone()
        };
        self.context(Some(&node), model, scope)
    }

    fn mode_exits(&mut self, node: Option<&Node>, modes: &Node, scope: &Scope) -> Vec<ModeExit> {
        let mut exits = Vec::new();
        for node in node.map(Node::items).unwrap_or_default() {
            let to = match node.get("to") {
                Some(to) if to.as_text().is_some_and(|name| &**name == FINISH) => {
                    Some(FINISH.into())
                }
                Some(to) => self.entry_named(to, modes, "mode"),
                None => None,
            };
            let after_calls = node.get("after_calls").and_then(super::whole);
            let cause = if let Some(when) = node.get("when") {
                let when = self.expr(when, Wants::Condition, scope);
                when.map(ExitsWhen::Holds)
            } else if let Some(tools) = node.get("after_tool") {
                let names = std::iter::once(tools).chain(tools.items());
                let names = names.filter_map(|node| node.as_text().cloned());
                Some(ExitsWhen::AfterTool(names.collect()))
            } else {
                let calls = after_calls.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
                calls.map(ExitsWhen::AfterCalls)
            };
            if let Some((cause, to)) = cause.zip(to) {
                exits.push(ModeExit { cause, to });
            }
        }
        exits
    }
}
