//! Imports configurations of aiwaves *agents*, version 1: a JSON file with `agents`, `states`, `relations` and `root`.
//!
//! The meaning of the configuration is carried over. Mistakes of the original program are not; each such place gives a
//! warning. Components become partials (`{% include "steersman/task" %}`). Keys that this version of the format reserves
//! are written as comments, in one place (`Import::reserved`).
//!
//! ```
//! use steersman_definition::import::aiwaves::import;
//! let file = r#"{
//!   "agents": { "Ann": { "style": "calm", "roles": { "talk": "host" } } },
//!   "states": { "talk": { "agent_states": { "host": { "task": { "task": "Greet." } } } } },
//!   "relations": { "talk": { "0": "end_state" } },
//!   "root": "talk"
//! }"#;
//! let imported = import(file, "greeting").unwrap();
//! assert!(imported.yaml.contains("after_messages: 1"));
//! assert!(import("[]", "x").is_err());
//! ```

mod components;
mod graph;
mod models;

use super::write::{Yaml, literal, name};
use super::{ImportError, Imported, Warning};
use crate::lower::RESERVED;
use crate::source::Files;
use crate::{Diagnostic, compile};
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::stored::built_in::BuiltIn;

/// The codes of the warnings, each with a description.
pub const CODES: &[(&str, &str)] = &[
    (
        "environment",
        "`config` replaces the environment of the process",
    ),
    ("secret", "a key is not copied"),
    ("address", "an address or a connection is not copied"),
    ("setting", "a setting of `config` means nothing here"),
    ("history", "MAX_CHAT_HISTORY is missing or no number"),
    (
        "brevity",
        "ACTIVE_MODE switches brevity on where it is \"0\"",
    ),
    ("people", "User_Names cannot be read, or names nobody"),
    ("provider", "a provider that this version does not know"),
    ("model", "no model is named, or an agent has several"),
    (
        "isolation",
        "environment_type is neither `cooperative` nor `competive`",
    ),
    ("key", "a key that means nothing"),
    (
        "component",
        "a component that does not exist, or is misspelt",
    ),
    (
        "argument",
        "a component lacks what it needs, or has it in another form",
    ),
    (
        "tool",
        "a component that needs a tool, or gave nothing to the conversation",
    ),
    (
        "knowledge",
        "documents that were found by vectors of their own",
    ),
    ("keyword", "a template reads what nothing fills"),
    ("prompt", "a prompt that extraction has no place for"),
    ("summary", "a setting of summaries that never did anything"),
    ("person", "a person has components"),
    ("role", "two agents play one role, or nobody plays it"),
    ("opening", "an opening that is not said, or a blank one"),
    ("start", "two agents without an opening"),
    ("order", "a controller of an unknown kind"),
    ("leader", "what the model that chooses speakers is told"),
    ("judge", "exits without a judge, or with other numbers"),
    ("limit", "a limit that cannot be carried out"),
    ("exit", "an exit that leads nowhere, or has another number"),
    ("counters", "counters never start again"),
    ("end", "the last state has speakers, and they never speak"),
];

/// Makes a definition from a configuration. `network` is its name, which is converted to a well-formed name.
pub fn import(text: &str, network: &str) -> Result<Imported, ImportError> {
    let text = text.trim_start_matches('\u{feff}');
    let root: Json = serde_json::from_str(text).map_err(|e| ImportError {
        path: String::new(),
        message: format!("this is no JSON: {e}"),
        help: "it takes the one JSON file of a configuration, as the original program reads it"
            .to_owned(),
    })?;
    let import = Import::read(&root, network)?;
    let imported = import.write()?;
    proved(&imported)?;
    Ok(imported)
}

/// Returns an error if the generated definition does not pass `check`.
fn proved(imported: &Imported) -> Result<(), ImportError> {
    let (network, found) = compile(&Files::new("steersman.yaml", imported.yaml.as_str()));
    match (network, found.iter().find(|found| found.is_error())) {
        (Some(_), _) | (None, None) => Ok(()),
        (None, Some(Diagnostic { code, message, .. })) => Err(ImportError {
            path: String::new(),
            message: format!("what would be made of it does not pass `check`: {message}"),
            help: format!("`steersman explain {code}` tells more"),
        }),
    }
}

/// A configuration being imported. In this module, "there" means the original program and "here" the new definition.
struct Import<'a> {
    /// Name of the routed agent: the network's name without hyphens.
    network: String,
    config: Map<String, Json>,
    root: &'a Map<String, Json>,
    agents: &'a Map<String, Json>,
    states: &'a Map<String, Json>,
    relations: &'a Map<String, Json>,
    start: &'a str,
    end: &'a str,
    /// New names of agents, by original name; `state_names` holds those of states.
    agent_names: BTreeMap<&'a str, String>,
    state_names: BTreeMap<&'a str, String>,
    people: BTreeSet<&'a str>,
    /// State entries for words of the original's shared memory, by word.
    memory: BTreeMap<String, String>,
    /// Models other than the default: name and content. `model_of` maps agents to them.
    models: Vec<(String, String)>,
    model_of: BTreeMap<&'a str, String>,
    /// Documents that the roles of each agent search.
    knowledge: BTreeMap<String, Vec<String>>,
    warnings: Vec<Warning>,
}

/// The keys of a configuration that the import reads.
const KNOWN: [&str; 9] = [
    "config",
    "LLM_type",
    "LLM",
    "root",
    "finish_state_name",
    "relations",
    "environment_type",
    "agents",
    "states",
];

impl<'a> Import<'a> {
    fn read(root: &'a Json, network: &str) -> Result<Self, ImportError> {
        let Json::Object(root) = root else {
            return Err(foreign("", "this is no configuration: it is no object"));
        };
        let agents = section(root, "agents")?;
        let states = section(root, "states")?;
        let relations = section(root, "relations")?;
        let start = match root.get("root") {
            Some(Json::String(start)) => start.as_str(),
            Some(_) => return Err(foreign("root", "this is no name of a state")),
            None => {
                return Err(foreign(
                    "root",
                    "it is missing, so nothing says where to begin",
                ));
            }
        };
        let end = root.get("finish_state_name").and_then(Json::as_str);
        let end = end.unwrap_or("end_state");
        if start == end {
            return Err(ImportError {
                path: "root".to_owned(),
                message: format!("`{start}` is the state that ends all: nobody would ever speak"),
                help: "name the state that begins".to_owned(),
            });
        }
        if !states.contains_key(start) {
            return Err(ImportError {
                path: "root".to_owned(),
                message: format!("there is no state `{start}`"),
                help: format!("the states are {}", listed(states.keys())),
            });
        }
        let mut import = Self {
            network: name(network, "network", &|_| false),
            config: Map::new(),
            root,
            agents,
            states,
            relations,
            start,
            end,
            agent_names: BTreeMap::new(),
            state_names: BTreeMap::new(),
            people: BTreeSet::new(),
            memory: BTreeMap::new(),
            models: Vec::new(),
            model_of: BTreeMap::new(),
            knowledge: BTreeMap::new(),
            warnings: Vec::new(),
        };
        import.names();
        for key in root.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
            import.warn(
                "key",
                at("", key),
                format!("`{key}` means nothing and is left out"),
            );
        }
        import.settings();
        import.people();
        Ok(import)
    }

    /// Assigns new names to all agents and states, and to the network if its name is taken.
    fn names(&mut self) {
        let mut used: BTreeSet<String> = BTreeSet::new();
        for agent in self.agents.keys() {
            let taken = |name: &str| {
                used.contains(name) || RESERVED.contains(&name) || BuiltIn::reserves(name)
            };
            let known = name(agent, "agent", &taken);
            used.insert(known.clone());
            self.agent_names.insert(agent, known);
        }
        let taken =
            |name: &str| used.contains(name) || RESERVED.contains(&name) || BuiltIn::reserves(name);
        if taken(&self.network) {
            self.network = name(&format!("{}_network", self.network), "network", &taken);
        }
        let mut used: BTreeSet<String> = BTreeSet::new();
        for state in self.states.keys() {
            let known = name(state, "state", &|name| {
                used.contains(name) || RESERVED.contains(&name)
            });
            used.insert(known.clone());
            self.state_names.insert(state, known);
        }
    }

    /// Reads `config` as texts. Secrets and addresses are not copied to the definition; each gives a warning.
    fn settings(&mut self) {
        let Some(config) = self.root.get("config") else {
            return;
        };
        let Json::Object(config) = config else {
            return self.warn("setting", "config", "this is no object and is left out");
        };
        self.warn(
            "environment",
            "config",
            "there, the environment of the process is emptied and filled from it; here, it stays as it is",
        );
        for (key, value) in config {
            let text = plain(value);
            if !text.is_empty() {
                self.config.insert(key.clone(), Json::String(text));
            }
        }
        let secrets: &[&str] = &["API_KEY", "EMBED_API_KEY"];
        let connections: &[&str] = &["API_BASE", "PROXY", "EMBED_API_BASE"];
        let known = ["MAX_CHAT_HISTORY", "TOP_K", "User_Names", "ACTIVE_MODE"];
        let keys: Vec<String> = self.config.keys().cloned().collect();
        for key in keys {
            let path = at("config", &key);
            let upper = key.to_ascii_uppercase();
            if key == "API_KEY" {
                self.warn("secret", path, "it is not copied: set the variable API_KEY");
            } else if key == "API_BASE" {
                self.warn(
                    "address",
                    path,
                    "it is not copied: set the variable API_BASE",
                );
            } else if key == "PROXY" {
                self.warn("address", path, "it is not copied: set HTTPS_PROXY");
            } else if connections.contains(&key.as_str()) {
                self.warn(
                    "address",
                    path,
                    "it is not copied, and nothing here embeds texts",
                );
            } else if secrets.contains(&key.as_str())
                || ["KEY", "TOKEN", "SECRET", "PASSWORD"]
                    .iter()
                    .any(|word| upper.contains(word))
            {
                self.warn(
                    "secret",
                    path,
                    "it is not copied, and nothing here needs it",
                );
            } else if !known.contains(&key.as_str()) {
                self.warn(
                    "setting",
                    path,
                    format!("`{key}` means nothing here and is left out"),
                );
            }
        }
    }

    fn people(&mut self) {
        let Some(names) = self.setting("User_Names") else {
            return;
        };
        let path = "config.User_Names";
        let Ok(names) = serde_json::from_str::<Vec<String>>(&names) else {
            return self.warn(
                "people",
                path,
                "this is no list of names in JSON, so nobody is a person",
            );
        };
        for name in names {
            match self.agents.get_key_value(&name) {
                Some((name, _)) => {
                    self.people.insert(name);
                }
                None => self.warn("people", path, format!("there is no agent `{name}`")),
            }
        }
    }

    fn setting(&self, key: &str) -> Option<String> {
        self.config.get(key)?.as_str().map(str::to_owned)
    }

    fn warn(&mut self, code: &'static str, path: impl Into<String>, message: impl Into<String>) {
        debug_assert!(CODES.iter().any(|(known, _)| *known == code), "{code}");
        self.warnings.push(Warning {
            path: path.into(),
            code,
            message: message.into(),
        });
    }

    // ---- the definition ----------------------------------------------------------------------------------------

    fn write(mut self) -> Result<Imported, ImportError> {
        let states = self.graph()?;
        let view = self.view();
        let models = self.model_lines();
        let mut out = Yaml::default();
        out.comment(0, HEADER);
        out.line(0, "steersman: 1");
        out.line(0, format!("name: {}", self.network.replace('_', "-")));
        for line in models {
            out.line(0, line);
        }
        if !self.memory.is_empty() {
            out.line(0, "state:");
            let mut entries: Vec<&String> = self.memory.values().collect();
            entries.sort();
            for entry in entries {
                out.line(1, format!("{entry}: optional string"));
            }
        }
        out.line(0, "agents:");
        self.agents(&mut out);
        out.line(1, format!("{}:", self.network));
        for line in view {
            out.line(2, line);
        }
        out.line(2, "route:");
        out.line(3, format!("start: {}", self.state_names[self.start]));
        out.line(3, "states:");
        let text = states.into_text() + &format!("entry: {}\n", self.network);
        Ok(Imported {
            yaml: out.into_text() + &text,
            warnings: self.warnings,
        })
    }

    fn agents(&mut self, out: &mut Yaml) {
        let concise = match self.setting("ACTIVE_MODE").as_deref() {
            None => false,
            Some("0") => {
                self.warn(
                    "brevity",
                    "config.ACTIVE_MODE",
                    "\"0\" switches brevity on there, so it is on here, in each `system`",
                );
                true
            }
            Some(_) => {
                self.warn(
                    "brevity",
                    "config.ACTIVE_MODE",
                    "only \"0\" switches brevity on there, so it is off here",
                );
                false
            }
        };
        for (agent, fields) in self.agents {
            let path = at("agents", agent);
            for key in keys_of(fields).filter(|key| !["style", "roles"].contains(key)) {
                let message = format!("`{key}` means nothing and is left out");
                self.warn("key", at(&path, key), message);
            }
            let known = self.agent_names[agent.as_str()].clone();
            if self.people.contains(agent.as_str()) {
                if known != agent.to_lowercase() {
                    out.comment(1, agent);
                }
                out.line(1, format!("{known}: {{ person: {{}} }}"));
                continue;
            }
            out.line(1, format!("{known}:"));
            let mut system = components::piece("speaker", &[("name", &literal(agent))]);
            if concise {
                system.push_str("\n\n");
                system.push_str(&components::piece("concise", &[]));
            }
            out.text(2, "system", &system);
            if let Some(model) = self.model_of.get(agent.as_str()) {
                out.line(2, format!("model: {model}"));
            }
            if let Some(files) = self.knowledge.get(agent.as_str()) {
                let files: Vec<String> = files
                    .iter()
                    .map(|file| Json::from(&**file).to_string())
                    .collect();
                out.line(2, format!("knowledge: [{}]", files.join(", ")));
            }
        }
    }
}

const HEADER: &str = "Made by `steersman import aiwaves`.\n\
`instructions` are the components of a role: pieces named steersman/.. ship with Steersman, and what is set before one is its text.\n\
`output` and `last` stand at the end of what a speaker is told; there, they followed the last message, and stayed in the history.\n\
Counters and openings start again whenever a state is entered (`reset: on_entry`).";

fn foreign(path: &str, message: &str) -> ImportError {
    ImportError {
        path: path.to_owned(),
        message: message.to_owned(),
        help: "a configuration of version 1 has `agents`, `states`, `relations` and `root`; files of version 2 have another form"
            .to_owned(),
    }
}

fn section<'a>(
    root: &'a Map<String, Json>,
    key: &str,
) -> Result<&'a Map<String, Json>, ImportError> {
    match root.get(key) {
        Some(Json::Object(section)) if !section.is_empty() => Ok(section),
        Some(Json::Object(_)) => Err(foreign(key, "it is empty")),
        Some(_) => Err(foreign(key, "this is no object")),
        None => Err(foreign(key, "it is missing")),
    }
}

/// Appends a key to a path; quotes the key if needed.
fn at(path: &str, key: &str) -> String {
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let key = if key.chars().all(word) && !key.is_empty() {
        key.to_owned()
    } else {
        format!("{key:?}")
    };
    if path.is_empty() {
        key
    } else {
        format!("{path}.{key}")
    }
}

fn keys_of(value: &Json) -> impl Iterator<Item = &str> {
    value
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
}

/// Converts a value to text: texts and numbers as they are, items of lists separated by blank lines.
fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            items.join("\n\n")
        }
        Json::Null => String::new(),
        other => other.to_string(),
    }
}

/// Returns a whole number, which may be written as a text.
fn number(value: &Json) -> Option<u64> {
    match value {
        Json::Number(number) => number.as_u64(),
        Json::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn listed<T: AsRef<str>>(names: impl Iterator<Item = T>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{}`", name.as_ref())).collect();
    names.join(", ")
}
