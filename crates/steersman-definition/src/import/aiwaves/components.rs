//! Converts the components of a role into the speaker's instructions, with partials.

use super::super::write::{literal, name, tame};
use super::{Import, at, keys_of, plain};
use serde_json::Value as Json;
use std::fmt::Write as _;
use steersman_machine::values::near::near;

/// Result of converting the components of a role.
#[derive(Default)]
pub(super) struct Converted {
    /// Template for `instructions`; empty if there are none.
    pub(super) text: String,
    /// Further lines: keys of the speaker, and comments.
    pub(super) beside: Vec<String>,
}

/// Components with a text: component, argument that holds the text, partial, variable that the partial reads.
const TEXTS: [(&str, &str, &str, &str); 7] = [
    ("task", "task", "task", "task"),
    ("rule", "rule", "rules", "rules"),
    ("system", "system_prompt", "system", "system"),
    (
        "demonstrations",
        "demonstrations",
        "demonstrations",
        "demonstrations",
    ),
    ("cot", "demonstrations", "cot", "demonstrations"),
    ("output", "output", "output", "tag"),
    ("last", "last_prompt", "last", "last"),
];

/// A component that is converted in a way of its own.
#[derive(Copy, Clone)]
enum Own {
    Style,
    Customized,
    Extraction,
    Knowledge,
}

/// Components that are converted in a way of their own.
const OWN: [(&str, Own); 4] = [
    ("style", Own::Style),
    ("CustomizeComponent", Own::Customized),
    ("ExtractComponent", Own::Extraction),
    ("KnowledgeBaseComponent", Own::Knowledge),
];

/// Components that the import leaves out, each with the middle of its warning: `it ..; it is left out`.
const TOOLS: [(&str, &str); 7] = [
    (
        "WebSearchComponent",
        "searched the web ahead of each turn: give the agent a tool of your own",
    ),
    (
        "FlightComponent",
        "looked up flights ahead of each turn: give the agent a tool of your own",
    ),
    (
        "CategoryRequirementsComponent",
        "matched wishes with a catalogue ahead of each turn: give the agent a tool of your own",
    ),
    (
        "CodeComponent",
        "wrote code into a file: give the agent a tool, or `artifacts`",
    ),
    (
        "StaticComponent",
        "gave a fixed output beside the conversation, which nobody read",
    ),
    (
        "FunctionComponent",
        "could not be built from a configuration and made the original fail",
    ),
    (
        "WebCrawlComponent",
        "could not be built from a configuration and made the original fail",
    ),
];

/// Returns an include of a partial, preceded by assignments of the variables that it reads.
pub(super) fn piece(partial: &str, sets: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, text) in sets {
        let text = text.replace("\r\n", "\n");
        let text = text.trim();
        let around = if text.contains('\n') { "\n" } else { "" };
        // writing to a text cannot fail
        let _ = writeln!(
            out,
            "{{% set {name} %}}{around}{text}{around}{{% endset -%}}"
        );
    }
    let _ = write!(out, "{{% include \"steersman/{partial}\" %}}");
    out
}

impl<'a> Import<'a> {
    /// Converts the components of a role in their order; `output` and `last` go to the end.
    pub(super) fn components(
        &mut self,
        agent: &str,
        role: &str,
        components: &'a Json,
        path: &str,
    ) -> Converted {
        let (mut converted, mut pieces, mut closing) =
            (Converted::default(), Vec::new(), Vec::new());
        for (key, args) in components.as_object().into_iter().flatten() {
            let path = at(path, key);
            if let Some((_, argument, partial, reads)) =
                TEXTS.iter().find(|(known, ..)| known == key)
            {
                let Some(text) = self.argument(args, argument, &path) else {
                    continue;
                };
                let piece = piece(partial, &[(reads, &literal(&text))]);
                if matches!(*partial, "output" | "last") {
                    closing.push(piece);
                } else {
                    pieces.push(piece);
                }
                continue;
            }
            let beside = &mut converted.beside;
            match OWN.iter().find(|(known, _)| known == key) {
                Some((_, Own::Style)) => pieces.push(self.style(agent, role, args, &path)),
                Some((_, Own::Customized)) => pieces.extend(self.customized(args, &path)),
                Some((_, Own::Extraction)) => beside.extend(self.extraction(args, &path)),
                Some((_, Own::Knowledge)) => {
                    beside.extend(self.knowledge_base(agent, args, &path));
                }
                None if matches!(key.as_str(), "LLM" | "LLM_type") => {}
                None => self.other(key, &path, beside),
            }
        }
        pieces.append(&mut closing);
        converted.text = pieces.join("\n\n");
        converted
    }

    /// Returns the text argument of a component; warns about other arguments and a missing text.
    fn argument(&mut self, args: &Json, argument: &str, path: &str) -> Option<String> {
        for key in keys_of(args).filter(|key| *key != argument) {
            let message = format!("`{key}` means nothing and is left out");
            self.warn("key", at(path, key), message);
        }
        self.text(args, argument, path, "it says nothing and is left out")
    }

    fn style(&mut self, agent: &str, role: &str, args: &Json, path: &str) -> String {
        let called = text_in(args, "role");
        let fields = self.agents.get(agent);
        let style = fields.and_then(|fields| text_in(fields, "style"));
        if style.is_none() {
            let message = format!("`{agent}` has no `style`; its name and role alone are told");
            self.warn("argument", path, message);
        }
        let style = style.unwrap_or_else(|| "your own.".to_owned());
        let sets = [
            ("name", literal(agent)),
            ("role", literal(called.as_deref().unwrap_or(role))),
            ("style", literal(&style)),
        ];
        piece(
            "style",
            &sets.each_ref().map(|(name, text)| (*name, text.as_str())),
        )
    }

    /// Converts a template over shared memory from the original's syntax: `{word}`, with `{{` and `}}` for braces.
    fn customized(&mut self, args: &Json, path: &str) -> Option<String> {
        let template = self.text(args, "template", path, "it is left out")?;
        let keywords = args.get("keywords").map(words).unwrap_or_default();
        let (mut out, mut verbatim, mut rest) = (String::new(), String::new(), template.as_str());
        while let Some(c) = rest.chars().next() {
            if let Some(behind) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
                verbatim.push(c);
                rest = behind;
                continue;
            }
            let behind = &rest[c.len_utf8()..];
            let word = behind
                .split_once('}')
                .filter(|(word, _)| c == '{' && !word.contains(['{', '\n']));
            match word {
                Some((word, behind)) if keywords.iter().any(|known| known == word) => {
                    out.push_str(&literal(&std::mem::take(&mut verbatim)));
                    let entry = self.remembered(word);
                    let _ = write!(out, "{{{{ state.{entry} }}}}");
                    rest = behind;
                }
                Some((word, _)) => {
                    let message = format!(
                        "`{{{word}}}` is not among its `keywords`, and the original fails there; it stands as it is here"
                    );
                    self.warn("keyword", at(path, "template"), message);
                    verbatim.push(c);
                    rest = behind;
                }
                None => {
                    verbatim.push(c);
                    rest = behind;
                }
            }
        }
        out.push_str(&literal(&verbatim));
        for keyword in &keywords {
            if !self.fills(keyword) {
                let message = format!(
                    "no ExtractComponent fills `{keyword}`, so nothing stands in its place"
                );
                self.warn("keyword", at(path, "keywords"), message);
            }
        }
        Some(out.trim().to_owned())
    }

    /// Returns true if any role of any state extracts this word.
    fn fills(&self, keyword: &str) -> bool {
        let states = self.states.values();
        let roles = states.filter_map(|state| state.get("agent_states").and_then(Json::as_object));
        let extracts = roles
            .flat_map(|roles| roles.values())
            .filter_map(|role| role.get("ExtractComponent"));
        let mut words_of = extracts
            .filter_map(|args| args.get("extract_words"))
            .flat_map(words);
        words_of.any(|word| word == keyword)
    }

    fn extraction(&mut self, args: &Json, path: &str) -> Vec<String> {
        let found = args.get("extract_words").map(words).unwrap_or_default();
        if found.is_empty() {
            self.warn(
                "argument",
                path,
                "there are no `extract_words`, so it is left out",
            );
            return Vec::new();
        }
        let entries: Vec<String> = found.iter().map(|word| self.remembered(word)).collect();
        let mut lines = vec![format!("extract: [{}]", entries.join(", "))];
        let prompts = ["system_prompt", "last_prompt"];
        if prompts.iter().any(|key| text_in(args, key).is_some()) {
            let message = "what is read has words of its own here: its prompts stand as a comment; a `description` of the entries is told to \
                           the model";
            self.warn("prompt", path, message);
        }
        for key in prompts {
            let text = text_in(args, key);
            for line in text.iter().flat_map(|text| text.lines()) {
                lines.push(comment(&format!("{key}: {line}")));
            }
        }
        lines
    }

    /// Returns the state entry for a word of shared memory; assigns one at the first use.
    fn remembered(&mut self, word: &str) -> String {
        if let Some(entry) = self.memory.get(word) {
            return entry.clone();
        }
        let entry = name(word, "entry", &|name| {
            self.memory.values().any(|known| known == name)
        });
        self.memory.insert(word.to_owned(), entry.clone());
        entry
    }

    /// Returns the text argument of a component; if it is missing, warns with what follows from that.
    fn text(&mut self, args: &Json, argument: &str, path: &str, so: &str) -> Option<String> {
        let text = text_in(args, argument);
        if text.is_none() {
            let message = format!("there is no text under `{argument}`, so {so}");
            self.warn("argument", path, message);
        }
        text
    }

    /// Converts documents that are searched ahead of a turn into the agent's `knowledge`, which covers all its roles. A path
    /// outside the folder becomes a comment.
    fn knowledge_base(&mut self, agent: &str, args: &Json, path: &str) -> Option<String> {
        let file = args.get("knowledge_path").map(plain).unwrap_or_default();
        let top = args.get("top_k").map(plain).unwrap_or_default();
        let inside = crate::load::resolve("", &file).filter(|at| !at.is_empty());
        let Some(inside) = inside else {
            let message = format!(
                "it found passages in `{file}` ahead of each turn; here, documents must be in the folder of the definition: put the file there \
                 and name it under `knowledge` at the agent"
            );
            self.warn("tool", path, message);
            return Some(comment("knowledge: [..]   (at the agent)"));
        };
        let message = format!(
            "there, `{file}` held passages with their vectors, of which {top} were given if they were near enough; here it is `knowledge`, of text or \
             Markdown (anything else is read as text), in all roles of the agent, and five passages are given, found by full text unless \
             `embeddings` names a model"
        );
        self.warn("knowledge", path, message);
        let known = self.knowledge.entry(agent.to_owned()).or_default();
        if !known.contains(&inside) {
            known.push(inside);
        }
        None
    }

    /// Warns about a component that needs a tool or does not exist, and leaves it out.
    fn other(&mut self, key: &str, path: &str, beside: &mut Vec<String>) {
        if let Some((_, what)) = TOOLS.iter().find(|(known, _)| *known == key) {
            self.warn("tool", path, format!("it {what}; it is left out"));
            beside.push(comment(&format!("left out: {key}")));
            return;
        }
        let known = TEXTS.iter().map(|(known, ..)| *known);
        let known = known.chain(TOOLS.iter().map(|(known, _)| *known));
        let known = known.chain(OWN.iter().map(|(known, _)| *known));
        let message = match near(key, known) {
            Some(meant) => format!(
                "there is no component `{key}`, and the original leaves it out without a word; if `{meant}` is meant, write that and \
                 import again"
            ),
            None => format!(
                "there is no component `{key}`, and the original leaves it out without a word, too"
            ),
        };
        self.warn("component", path, message);
        beside.push(comment(&format!("left out: {key}")));
    }
}

/// Returns the text under a key, if it says anything.
fn text_in(args: &Json, key: &str) -> Option<String> {
    let text = args.get(key).map(plain);
    text.filter(|text| !text.trim().is_empty())
}

/// Returns any line as a YAML comment.
fn comment(line: &str) -> String {
    format!("# {}", tame(line.trim_start_matches("# ")).trim_end())
}

/// Returns the non-empty words of a list, or a single text as one word.
fn words(value: &Json) -> Vec<String> {
    match value {
        Json::Array(items) => items
            .iter()
            .map(plain)
            .filter(|word| !word.is_empty())
            .collect(),
        other => Some(plain(other))
            .filter(|word| !word.is_empty())
            .into_iter()
            .collect(),
    }
}
