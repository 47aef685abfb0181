//! Lowers modes. Each mode becomes a whole agent; keys that it does not set are taken from the agent.

use super::super::diagnostic::Diagnostic;
use super::super::keys::agent as keys;
use super::super::keys::kinds::{List, Valued, each};
use super::super::site::Scope;
use super::super::source::{Key, MAX_NODES, Node};
use super::{Lower, RESERVED, file, knowledge};
use steersman_machine::network::notes;
use steersman_machine::network::{ExitsWhen, FINISH, Limits, Mode, ModeExit, ModelAgent, Modes};
use steersman_machine::stored::ids::Name;

/// Returns the entries of `tools` of an agent and of all its modes.
pub(super) fn all_tools(agent: keys::Agent<'_>) -> impl Iterator<Item = keys::ToolUse<'_>> {
    let modes = each(agent.modes()).flat_map(|(_, mode)| each(mode.tools()));
    each(agent.tools()).chain(modes)
}

impl Lower<'_> {
    /// Lowers the modes of an agent; `agent` is the agent lowered without them.
    pub(super) fn modes(
        &mut self,
        key: &Key,
        written: keys::Agent<'_>,
        scope: &Scope,
        agent: &ModelAgent,
        limits: &Limits,
    ) -> Option<Box<Modes>> {
        let modes = written.modes()?;
        let Some((first, _)) = modes.into_iter().next() else {
            let at = self.place(modes.0.span);
            self.say(Diagnostic::nobody_to_choose(at, "modes"));
            return None;
        };
        // each mode gets a copy of the agent's tools, which counts as if it were written there
        let copied = agent.tools.len() + agent.servers.len() + agent.before.len();
        let total = modes.into_iter().len().saturating_mul(copied);
        if total > MAX_NODES {
            let at = self.place(modes.0.span);
            let what = format!("the modes of `{}` have {total} tools together", key.name);
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
        for (name, mode) in modes {
            if RESERVED.contains(&&*name.name) {
                let at = self.place(name.span);
                self.say(Diagnostic::reserved_name(at, &name.name));
                continue;
            }
            all.push(Mode {
                name: name.name.clone(),
                model: self.mode(&key.name, written, mode, &scope, agent),
                limits: self.limits_of_mode(mode, limits),
                exits: self.mode_exits(mode.exits(), modes.0, &scope),
            });
        }
        let start = written.start();
        let start = start.and_then(|start| self.entry_named(&start, modes.0, "mode"));
        Some(Box::new(Modes {
            start: start.unwrap_or_else(|| first.name.clone()),
            exits: self.mode_exits(written.exits(), modes.0, &scope),
            all,
        }))
    }

    fn mode(
        &mut self,
        name: &Name,
        written: keys::Agent<'_>,
        mode: keys::Mode<'_>,
        scope: &Scope,
        agent: &ModelAgent,
    ) -> ModelAgent {
        // All fields are named, so that nobody forgets to say what becomes of a new one in a mode.
        let ModelAgent {
            mut system,
            mut model,
            mut params,
            mut tools,
            mut servers,
            tool_choice: _,
            mut prefill,
            before,
            knowledge,
            net,
            mut context,
            search,
        } = agent.clone();
        if mode.system().is_some() {
            system = self.prompt(mode.system(), scope);
        }
        if mode.model().is_some() {
            model = self.model_name(mode.model());
        }
        params.extend(file::params(mode.params()));
        if mode.tools().is_some() {
            (tools, servers) = self.all_uses(name, mode.tools(), scope);
        }
        if mode.prefill().is_some() {
            prefill = self.text_of(mode.prefill(), scope);
        }
        // the point of compaction depends on the model
        if mode.context().is_some() || mode.model().is_some() {
            let layers = [mode.context(), written.context()];
            context = self.context(&layers, &model, scope);
        }
        let choice = mode.tool_choice().or(written.tool_choice());
        let mut model = ModelAgent {
            tool_choice: self.tool_choice(choice, &tools),
            system,
            model,
            params,
            tools,
            servers,
            prefill,
            before,
            knowledge,
            net,
            context,
            search,
        };
        // each mode has its own templates, so whether one of them names the passages of documents is decided again
        let documents = |name: &Name| **name == *notes::KNOWLEDGE;
        let found = model.before.iter_mut().filter(|b| documents(&b.named));
        found.for_each(|before| before.show = true);
        knowledge::shown_once(&mut model);
        model
    }

    fn mode_exits(
        &mut self,
        written: Option<List<'_, keys::ModeExit<'_>>>,
        modes: &Node,
        scope: &Scope,
    ) -> Vec<ModeExit> {
        let mut exits = Vec::new();
        for exit in each(written) {
            let to = match exit.to() {
                Some(to) if to.text().is_some_and(|name| &**name == FINISH) => Some(FINISH.into()),
                Some(to) => self.entry_named(&to, modes, "mode"),
                None => None,
            };
            let cause = if exit.when().is_some() {
                self.when(exit.when(), scope).map(ExitsWhen::Holds)
            } else if let Some(tools) = exit.after_tool() {
                let names = tools.into_iter().filter_map(|tool| tool.text().cloned());
                Some(ExitsWhen::AfterTool(names.collect()))
            } else {
                let calls = exit.after_calls().and_then(Valued::value);
                calls.map(ExitsWhen::AfterCalls)
            };
            if let Some((cause, to)) = cause.zip(to) {
                exits.push(ModeExit { cause, to });
            }
        }
        exits
    }
}
