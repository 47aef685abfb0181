//! Converts models and views.

use super::super::write::{Yaml, literal, scalar};
use super::graph::text_of;
use super::{Import, at, number, plain};
use serde_json::Value as Json;

impl<'a> Import<'a> {
    /// Returns the lines of `models`, and of the `config` and `secrets` that they use.
    pub(super) fn model_lines(&mut self) -> Vec<String> {
        let root = self.root;
        let mut default = self.model(root.get("LLM_type"), root.get("LLM"), "");
        let mut lines = Vec::new();
        if self.config.contains_key("API_BASE") {
            lines.push("config:".to_owned());
            lines.push("  api_base: { env: API_BASE, live: true }".to_owned());
        }
        if self.config.contains_key("API_KEY") {
            lines.push("secrets:".to_owned());
            lines.push("  api_key: { env: API_KEY, optional: true }".to_owned());
        }
        let server = self.server();
        default.push_str(&server);
        lines.push("models:".to_owned());
        lines.push(format!("  default: {{ {default} }}"));
        for (name, model) in &self.models {
            lines.push(format!("  {name}: {{ {model}{server} }}"));
        }
        lines
    }

    /// Returns the address and key of the model server, which all models share.
    fn server(&self) -> String {
        let mut out = String::new();
        if self.config.contains_key("API_BASE") {
            out.push_str(", url: \"{{ config.api_base }}\"");
        }
        if self.config.contains_key("API_KEY") {
            out.push_str(", key: \"{{ secrets.api_key }}\"");
        }
        out
    }

    /// Returns the content of a model's braces.
    fn model(&mut self, kind: Option<&Json>, llm: Option<&Json>, path: &str) -> String {
        let openai = match kind.and_then(Json::as_str) {
            None | Some("OpenAI") => true,
            Some(kind) => {
                let message = format!(
                    "there is no provider `{kind}` here; set `provider` and `model` by hand"
                );
                self.warn("provider", at(path, "LLM_type"), message);
                false
            }
        };
        let llm = llm.and_then(Json::as_object);
        let named = llm.and_then(|llm| llm.get("model")).map(plain);
        let named = named.filter(|name| !name.is_empty());
        let temperature = llm.and_then(|llm| llm.get("temperature")).map(plain);
        let temperature = temperature
            .and_then(|text| text.parse::<f64>().ok())
            .filter(|t| t.is_finite());
        // 0.3 is the default of the original program
        let temperature = temperature.unwrap_or(0.3);
        match named {
            Some(name) if openai => {
                format!(
                    "provider: openai, model: {}, temperature: {temperature}",
                    scalar(&name)
                )
            }
            // a model name of another provider is useless for `auto`
            Some(_) => format!("provider: auto, temperature: {temperature}"),
            None => {
                let message = "no model is named: `auto` takes what is there";
                self.warn("model", at(path, "LLM"), message);
                format!("provider: auto, temperature: {temperature}")
            }
        }
    }

    /// Returns the name of a model other than the default; assigns one at the first use.
    fn named_model(&mut self, model: String) -> String {
        let known = self.models.iter().find(|(_, known)| *known == model);
        if let Some((name, _)) = known {
            return name.clone();
        }
        let name = format!("model_{}", self.models.len() + 1);
        self.models.push((name.clone(), model));
        name
    }

    /// Records the model of a role, if it has one. An agent can have only one model here, so later roles give a warning.
    pub(super) fn model_of_role(&mut self, agent: &'a str, role: &'a Json, path: &str) {
        let (kind, llm) = (role.get("LLM_type"), role.get("LLM"));
        if kind.is_none() && llm.is_none() {
            return;
        }
        let model = self.model(kind, llm, path);
        let first = self.model_of.get(agent);
        let known = self.models.iter().find(|(_, known)| *known == model);
        match (first, known.map(|(name, _)| name.clone())) {
            (None, _) => {
                let name = self.named_model(model);
                self.model_of.insert(agent, name);
            }
            (Some(first), known) if known.as_ref() != Some(first) => {
                let message = format!(
                    "an agent has one model here, wherever it speaks: `{agent}` keeps `{first}`, that of its first role"
                );
                self.warn("model", at(path, "LLM"), message);
            }
            (Some(_), _) => {}
        }
    }

    fn seen(&self) -> &'static str {
        let kind = self.root.get("environment_type");
        match kind.and_then(Json::as_str) {
            Some("competive") => "since_entry",
            _ => "since_last_spoke",
        }
    }

    /// Returns the number of messages that agents see. A summary is made each time so many messages are new.
    fn most(&self) -> Option<u64> {
        let most = self.setting("MAX_CHAT_HISTORY")?;
        most.trim().parse::<u64>().ok().filter(|n| *n > 0)
    }

    /// Writes the view of a state that has its own prompt or model for summaries.
    pub(super) fn summary_of(&mut self, fields: &Json, path: &str, out: &mut Yaml) {
        for (key, message) in [
            ("summary_last_prompt", "it was never sent, and is left out"),
            (
                "summary_prompt",
                "summaries of a role were never made there; to have one here, write `view: { summary: { prompt: .. } }` at its agent",
            ),
        ] {
            if fields.get(key).is_some() {
                self.warn("summary", at(path, key), message);
            }
        }
        let prompt = text_of(fields, "summary_system_prompt");
        let (kind, llm) = (fields.get("LLM_type"), fields.get("LLM"));
        let model = (kind.is_some() || llm.is_some()).then(|| self.model(kind, llm, path));
        let Some(most) = self.most() else { return };
        if prompt.is_none() && model.is_none() {
            return;
        }
        out.line(5, "view:");
        out.line(6, format!("of: {}", self.seen()));
        out.line(6, format!("window: {most}"));
        out.line(6, "summary:");
        out.line(7, format!("every: {most}"));
        if let Some(model) = model {
            let name = self.named_model(model);
            out.line(7, format!("model: {name}"));
        }
        if let Some(prompt) = prompt {
            out.text(7, "prompt", &literal(&prompt));
        }
    }

    /// Returns the lines of `view` for the routed agent.
    pub(super) fn view(&mut self) -> Vec<String> {
        let kind = self.root.get("environment_type");
        let of = self.seen();
        match kind.and_then(Json::as_str) {
            None | Some("cooperative") if kind.is_none_or(Json::is_string) => {}
            Some("competive") => {}
            other => {
                let other = other.unwrap_or("this").to_owned();
                self.warn(
                    "isolation",
                    "environment_type",
                    format!(
                        "`{other}` acts as `cooperative` there (what isolates is spelt `competive`), so all is seen by all here; to \
                         isolate the states: `of: since_entry`"
                    ),
                );
            }
        }
        let mut lines = vec!["view:".to_owned(), format!("  of: {of}")];
        let path = "config.MAX_CHAT_HISTORY";
        match self.most() {
            Some(most) => {
                lines.push(format!("  window: {most}"));
                lines.push(format!("  summary: {{ every: {most} }}"));
            }
            None => self.warn(
                "history",
                path,
                "without a number there the first message fails; here, all messages are seen",
            ),
        }
        let top = self.setting("TOP_K").map(Json::String);
        if let Some(top) = top.as_ref().and_then(number).filter(|n| *n > 0) {
            let top = top.min(steersman_machine::network::notes::MOST.into());
            lines.push(format!("  relevant: {top}"));
        }
        lines
    }
}
