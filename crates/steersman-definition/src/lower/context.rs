//! Lowers contexts: their parts, compaction, and the rendering of old exchanges.

use super::super::diagnostic::Diagnostic;
use super::super::hosted;
use super::super::keys::kinds::{Or, Template as Text, Valued, each};
use super::super::keys::{Section as _, agent as keys, tool};
use super::super::site::{Args, Scope, Wants};
use super::super::source::{Key, Node, Span, Value};
use super::Lower;
use steersman_machine::network::{Aging, Beyond, Compact, Context, ContextRender, Render};
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::Template;
use steersman_machine::values::types::Parameters;

impl Lower<'_> {
    /// Lowers the context of an agent or mode. `layers` are the contexts that apply to it, the nearest first; the file's comes last.
    pub(super) fn context(
        &mut self,
        layers: &[Option<keys::Context<'_>>],
        model: &Name,
        scope: &Scope,
    ) -> Context {
        let layers = layers.iter().copied().chain([self.file.context()]);
        let node = laid_over(layers.flatten());
        let written = keys::Context(&node);
        let keep_exchanges = written.keep_exchanges().value;
        Context {
            parts: written.parts().value,
            now: self.text_of(written.now(), scope),
            keep_exchanges,
            compact: self.compact(written.compact(), keep_exchanges, model, scope),
            render: self.context_render(written.render(), scope),
        }
    }

    /// Lowers the templates for the parts of a conversation. A call may be of any tool, so `args` may be anything there.
    fn context_render(
        &mut self,
        written: Option<keys::ContextRender<'_>>,
        scope: &Scope,
    ) -> ContextRender {
        let Some(render) = written else {
            return ContextRender::default();
        };
        let message = scope.with_message();
        let call = Scope {
            args: Args::Tool("".into()),
            called: true,
            message: false,
            ..scope.clone()
        };
        let mut shown = |of, scope: &Scope| self.in_history(of, scope);
        ContextRender {
            user: shown(render.user(), &message),
            engine: shown(render.engine(), &message),
            assistant: shown(render.assistant(), &message),
            summary: shown(render.summary(), &message),
            call: shown(render.call(), &call),
            result: shown(render.result(), &call.with_result()),
        }
    }

    fn in_history(&mut self, of: Option<Text<'_>>, scope: &Scope) -> Option<Template> {
        of.and_then(|text| self.template(&text, Wants::History, scope))
    }

    /// Lowers `compact`. If no number of tokens is written, compaction starts at 70 % of the model's window, if that is known.
    fn compact(
        &mut self,
        written: Option<keys::Compact<'_>>,
        view: u32,
        model: &Name,
        scope: &Scope,
    ) -> Option<Box<Compact>> {
        let compact = written.unwrap_or_else(keys::Compact::empty);
        let keep = compact.keep_exchanges();
        let written_so = |at: &&Node| keep.value > view && !self.is_broken(at.span);
        if let Some(at) = keep.at.filter(written_so) {
            let text = at.as_text().map(ToString::to_string).unwrap_or_default();
            let wanted = format!("at most the {view} exchanges that the context keeps in view");
            let at = self.place(at.span);
            self.say(Diagnostic::malformed(at, &text, &wanted));
        }
        let when = compact.when_tokens().and_then(Valued::value);
        let when = when.or_else(|| self.window(model).map(|window| window / 10 * 7));
        // a malformed number was reported already
        if let (Some(written), None, None) = (written, when, compact.when_tokens()) {
            let at = self.place(written.0.span);
            self.say(Diagnostic::missing_key(
                at,
                "`compact` for a model whose `window` is not known",
                "when_tokens",
            ));
        }
        Some(Box::new(Compact {
            when_tokens: when?,
            model: self.model_name(compact.model()),
            keep_exchanges: keep.value.min(view),
            prompt: self.prompt(compact.prompt(), scope),
        }))
    }

    /// Returns a model's window in tokens: the written value, else the known value of the model.
    fn window(&self, model: &Name) -> Option<u64> {
        let model = self.file.models()?.get(model)?;
        let written = model.window().and_then(Valued::value);
        written.or_else(|| hosted::window(model.model()?.0.as_text()?))
    }

    /// Lowers `render`. `of` is the tool with its parameters, if these are known.
    pub(super) fn render(
        &mut self,
        written: Option<tool::Render<'_>>,
        scope: &Scope,
        of: Option<(&Name, &Parameters)>,
    ) -> Render {
        let render = written.unwrap_or_else(tool::Render::empty);
        Render {
            call: self.text_of(render.call(), scope),
            result: self.text_of(render.result(), scope),
            spill: render.spill().value,
            age: self.aging(render, scope, of),
        }
    }

    fn aging(
        &mut self,
        render: tool::Render<'_>,
        scope: &Scope,
        of: Option<(&Name, &Parameters)>,
    ) -> Option<Aging> {
        self.meaningful_keys(render);
        let horizon = render.horizon();
        let beyond = match render.beyond().and_then(Valued::value) {
            Some(beyond) => beyond,
            None if render.elide().is_some() && render.stub().is_none() => Beyond::Elide,
            None => Beyond::Stub,
        };
        if beyond != Beyond::Summary {
            self.meaningless(render, "model", "anything but `beyond: summary`");
        }
        match beyond {
            Beyond::Drop => {
                self.meaningless(render, "stub", "`beyond: drop`");
                self.meaningless(render, "elide", "`beyond: drop`");
            }
            Beyond::Elide => {
                self.meaningless(render, "stub", "`beyond: elide`");
                if render.elide().is_none() && horizon.is_some() {
                    let at = self.place(render.0.span);
                    self.say(Diagnostic::missing_key(at, "`beyond: elide`", "elide"));
                }
            }
            Beyond::Stub | Beyond::Summary => {}
        }
        let elide = self.elided(render, of);
        let stub = self.text_of(render.stub(), scope);
        let model = match beyond {
            Beyond::Summary => self.model_name(render.model()),
            _ => "default".into(),
        };
        let (horizon, own) = match horizon? {
            Or::One(all) => (all.value(), false),
            Or::Other(horizon) => (horizon.own().and_then(Valued::value), true),
        };
        Some(Aging {
            horizon: horizon.unwrap_or(1).max(1),
            own,
            beyond,
            stub,
            elide,
            model,
        })
    }

    /// Lowers `elide`, the arguments to leave out; reports names that are not parameters.
    fn elided(&mut self, render: tool::Render<'_>, of: Option<(&Name, &Parameters)>) -> Vec<Name> {
        let mut elided = Vec::new();
        for item in each(render.elide()) {
            let Some(name) = item.text().cloned() else {
                continue;
            };
            if let Some((tool, Parameters::Fields(fields))) = of
                && !fields.iter().any(|(field, _)| *field == name)
            {
                let near = self
                    .sources
                    .near(&name, fields.iter().map(|(field, _)| &**field));
                let near = near.map(str::to_owned);
                let at = self.place(item.span);
                self.say(Diagnostic::unknown_argument(
                    at,
                    tool,
                    &name,
                    near.as_deref(),
                ));
            }
            elided.push(name);
        }
        elided
    }
}

/// Lays contexts over each other key by key, the first on top.
fn laid_over<'a>(layers: impl Iterator<Item = keys::Context<'a>>) -> Node {
    let mut entries: Vec<(Key, Node)> = Vec::new();
    for (key, node) in layers.flat_map(|layer| layer.0.entries()) {
        if entries.iter().all(|(known, _)| known.name != key.name) {
            entries.push((key.clone(), node.clone()));
        }
    }
    Node {
        span: Span::NONE,
        value: Value::Map(entries),
    }
}
