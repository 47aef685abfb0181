//! Lowers contexts: their parts, compaction, and the rendering of old exchanges.

use super::super::diagnostic::Diagnostic;
use super::super::site::{Scope, Wants};
use super::super::source::Node;
use super::{Lower, text, whole, word};
use crate::shape;
use steersman_machine::network::{Aging, Beyond, Compact, Context, Part, Render};
use steersman_machine::stored::bounds::SPILL;
use steersman_machine::stored::ids::Name;
use steersman_machine::values::price;
use steersman_machine::values::types::Parameters;

/// Default number of exchanges that a context keeps in view.
const KEEP: u32 = 50;
/// Default number of newest exchanges that a compaction keeps.
const KEEP_COMPACT: u32 = 10;

impl Lower<'_> {
    pub(super) fn context(&mut self, node: Option<&Node>, model: &Name, scope: &Scope) -> Context {
        let merged = self.merged;
        let file = merged.settings.get("context");
        let key = |name: &str| {
            node.and_then(|node| node.get(name))
                .or_else(|| file.and_then(|node| node.get(name)))
        };
        let standard = vec![Part::System, Part::Tools, Part::History, Part::Now];
        let parts = match key("parts") {
            Some(parts) => parts
                .items()
                .iter()
                .filter_map(|node| match &**node.as_text()? {
                    "system" => Some(Part::System),
                    "tools" => Some(Part::Tools),
                    "history" => Some(Part::History),
                    "now" => Some(Part::Now),
                    _ => None,
                })
                .collect(),
            None => standard,
        };
        let keep_exchanges = key("keep_exchanges").and_then(few).unwrap_or(KEEP);
        Context {
            parts,
            now: key("now").and_then(|node| self.template(node, Wants::Text, scope)),
            keep_exchanges,
            compact: self.compact(key("compact"), keep_exchanges, model, scope),
        }
    }

    /// Lowers `compact`. If no number of tokens is written, compaction starts at 70 % of the model's window, if that is known.
    fn compact(
        &mut self,
        node: Option<&Node>,
        view: u32,
        model: &Name,
        scope: &Scope,
    ) -> Option<Box<Compact>> {
        let get = |name: &str| node.and_then(|node| node.get(name));
        if let Some(keep) = get("keep_exchanges")
            && few(keep).is_some_and(|keep| keep > view)
        {
            let at = self.place(keep.span);
            let written = keep.as_text().map(ToString::to_string);
            let wanted = format!("at most the {view} exchanges that the context keeps in view");
            let written = written.unwrap_or_default();
            self.say(Diagnostic::malformed(at, &written, &wanted));
        }
        let when = get("when_tokens").and_then(whole);
        let when = when.or_else(|| self.window(model).map(|window| window / 10 * 7));
        // a malformed number was reported already
        if let (Some(node), None, None) = (node, when, get("when_tokens")) {
            let at = self.place(node.span);
            self.say(Diagnostic::missing_key(
                at,
                "`compact` for a model whose `window` is not known",
                "when_tokens",
            ));
        }
        let keep = get("keep_exchanges").and_then(few).unwrap_or(KEEP_COMPACT);
        Some(Box::new(Compact {
            when_tokens: when?,
            model: self.model_name(get("model")),
            keep_exchanges: keep.min(view),
            prompt: get("prompt").and_then(|node| self.prompt(node, scope)),
        }))
    }

    /// Returns a model's window in tokens: the written value, else the known value of the model.
    fn window(&self, model: &Name) -> Option<u64> {
        let mut models = self.merged.section("models").iter();
        let (_, node) = models.find(|(key, _)| key.name == *model)?;
        let written = node.get("window").and_then(whole);
        written.or_else(|| price::window(&text(node, "model")?))
    }

    /// Lowers `render`. `of` is the tool with its parameters, if these are known.
    pub(super) fn render(
        &mut self,
        node: Option<&Node>,
        scope: &Scope,
        of: Option<(&Name, &Parameters)>,
    ) -> Render {
        let Some(node) = node else {
            return Render::default();
        };
        Render {
            call: self.text_of(node, "call", scope),
            result: self.text_of(node, "result", scope),
            spill: word(node, "spill").and_then(shape::size).unwrap_or(SPILL),
            age: self.aging(node, scope, of),
        }
    }

    fn aging(
        &mut self,
        node: &Node,
        scope: &Scope,
        of: Option<(&Name, &Parameters)>,
    ) -> Option<Aging> {
        for key in ["beyond", "stub", "elide"] {
            self.needs(node, key, &["horizon"], "a rendering without `horizon`");
        }
        let horizon = node.get("horizon");
        let beyond = match word(node, "beyond") {
            Some("drop") => Beyond::Drop,
            Some("summary") => Beyond::Summary,
            Some("elide") => Beyond::Elide,
            Some("stub") => Beyond::Stub,
            _ if node.get("elide").is_some() && node.get("stub").is_none() => Beyond::Elide,
            _ => Beyond::Stub,
        };
        if beyond != Beyond::Summary {
            self.means_nothing(node, "model", "anything but `beyond: summary`");
        }
        match beyond {
            Beyond::Drop => {
                for key in ["stub", "elide"] {
                    self.means_nothing(node, key, "`beyond: drop`");
                }
            }
            Beyond::Elide => {
                self.means_nothing(node, "stub", "`beyond: elide`");
                if node.get("elide").is_none() && horizon.is_some() {
                    let at = self.place(node.span);
                    self.say(Diagnostic::missing_key(at, "`beyond: elide`", "elide"));
                }
            }
            Beyond::Stub | Beyond::Summary => {}
        }
        let elide = self.elided(node, of);
        let stub = self.text_of(node, "stub", scope);
        let model = match beyond {
            Beyond::Summary => self.model_name(node.get("model")),
            _ => "default".into(),
        };
        let own = horizon?.get("own");
        Some(Aging {
            horizon: few(own.or(horizon)?).unwrap_or(1).max(1),
            own: own.is_some(),
            beyond,
            stub,
            elide,
            model,
        })
    }

    fn means_nothing(&mut self, node: &Node, key: &str, of: &str) {
        self.needs(node, key, &[], of);
    }

    /// Lowers `elide`, the arguments to leave out; reports names that are no parameters.
    fn elided(&mut self, node: &Node, of: Option<(&Name, &Parameters)>) -> Vec<Name> {
        let mut elided = Vec::new();
        for item in node.get("elide").map(Node::items).unwrap_or_default() {
            let Some(name) = item.as_text().cloned() else {
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

fn few(node: &Node) -> Option<u32> {
    whole(node).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}
