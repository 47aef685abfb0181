//! Converts states, their speakers and their exits.

use super::super::write::{Yaml, literal, scalar};
use super::{Import, ImportError, at, keys_of, listed, number, plain};
use serde_json::{Map, Value as Json};
use std::collections::BTreeSet;

/// Keys of a state in the original format.
const STATE: [&str; 10] = [
    "roles",
    "begin_role",
    "begin_query",
    "environment_prompt",
    "summary_system_prompt",
    "summary_last_prompt",
    "summary_prompt",
    "controller",
    "agent_states",
    "LLM",
];
const CONTROLLER: [&str; 8] = [
    "controller_type",
    "max_chat_nums",
    "judge_system_prompt",
    "judge_last_prompt",
    "judge_extract_words",
    "call_system_prompt",
    "call_last_prompt",
    "call_extract_words",
];

/// A state being converted.
struct State<'a> {
    name: &'a str,
    path: String,
    fields: &'a Json,
    /// Role and agent, in speaking order.
    speakers: Vec<(&'a str, &'a str)>,
}

/// Target of an exit: a new state name, or `finish`.
type To = String;

impl<'a> Import<'a> {
    /// Returns the states as lines under `states`.
    pub(super) fn graph(&mut self) -> Result<Yaml, ImportError> {
        let mut out = Yaml::default();
        let states = self.states;
        for (name, fields) in states {
            let path = at("states", name);
            if name == self.end {
                self.last_state(&path, fields);
                continue;
            }
            let state = State {
                name,
                speakers: self.speakers(name, fields, &path),
                fields,
                path,
            };
            if state.speakers.is_empty() {
                return Err(ImportError {
                    message: "nobody speaks in this state: no agent plays one of its roles"
                        .to_owned(),
                    help: format!("give an agent one of its roles: `agents.NAME.roles.{name}`"),
                    path: state.path,
                });
            }
            self.state(&state, &mut out)?;
        }
        Ok(out)
    }

    fn last_state(&mut self, path: &str, fields: &Json) {
        if fields
            .get("agent_states")
            .is_some_and(|roles| keys_of(roles).next().is_some())
        {
            self.warn(
                "end",
                path,
                "entering it ends the run before anyone speaks, so its roles are left out",
            );
        }
    }

    /// Returns role and agent of each speaker, in speaking order.
    fn speakers(&mut self, state: &str, fields: &'a Json, path: &str) -> Vec<(&'a str, &'a str)> {
        let listed = fields.get("roles").and_then(Json::as_array);
        let listed = listed.filter(|roles| !roles.is_empty());
        let roles: Vec<&'a str> = match listed {
            Some(roles) => roles.iter().filter_map(Json::as_str).collect(),
            None => fields
                .get("agent_states")
                .map(keys_of)
                .into_iter()
                .flatten()
                .collect(),
        };
        let mut speakers: Vec<(&str, &str)> = Vec::new();
        for role in roles {
            if speakers.iter().any(|(known, _)| *known == role) {
                continue;
            }
            let plays = |fields: &Json| {
                let of = fields.get("roles").and_then(|roles| roles.get(state));
                of.and_then(Json::as_str) == Some(role)
            };
            let of: Vec<&'a str> = self
                .agents
                .iter()
                .filter(|(_, fields)| plays(fields))
                .map(|(agent, _)| agent.as_str())
                .collect();
            let role_path = at(&format!("{path}.roles"), role);
            match of.as_slice() {
                [] => self.warn("role", role_path, "no agent plays it, so it is left out"),
                [.., last] => {
                    speakers.push((role, last));
                    if of.len() > 1 {
                        let message = format!(
                            "{} play it; the last speaks there, so only `{last}` does here",
                            super::listed(of.iter())
                        );
                        self.warn("role", role_path, message);
                    }
                }
            }
        }
        speakers
    }

    fn state(&mut self, state: &State<'a>, out: &mut Yaml) -> Result<(), ImportError> {
        let State {
            name, path, fields, ..
        } = state;
        let unknown = keys_of(fields).filter(|key| !STATE.contains(key) && *key != "LLM_type");
        for key in unknown {
            let message = format!("`{key}` means nothing and is left out");
            self.warn("key", at(path, key), message);
        }
        let known = self.state_names[*name].clone();
        if known != name.to_lowercase() {
            out.comment(4, name);
        }
        out.line(4, format!("{known}:"));
        if let Some(scene) = text_of(fields, "environment_prompt") {
            out.text(5, "scene", &literal(&scene));
        }
        self.summary_of(fields, path, out);
        out.line(5, "speakers:");
        let roles = fields.get("agent_states").and_then(Json::as_object);
        for (role, agent) in &state.speakers {
            let components = roles.and_then(|roles| roles.get(*role));
            self.speaker(state, role, agent, components, out);
        }
        let controller = fields.get("controller").and_then(Json::as_object);
        self.order(state, controller, out);
        self.begin(state, out)?;
        self.exits(state, controller, out);
        Ok(())
    }

    fn speaker(
        &mut self,
        state: &State<'a>,
        role: &'a str,
        agent: &'a str,
        components: Option<&'a Json>,
        out: &mut Yaml,
    ) {
        let known = self.agent_names[agent].clone();
        let path = at(&format!("{}.agent_states", state.path), role);
        let nothing = components.is_none_or(|all| keys_of(all).next().is_none());
        if let Some(components) = components {
            self.model_of_role(agent, components, &path);
        }
        if self.people.contains(agent) && !nothing {
            let message = format!("`{agent}` is a person, and is told nothing of this");
            self.warn("person", &path, message);
        }
        out.line(6, format!("- agent: {known}"));
        if role != known {
            out.line(7, format!("role: {}", scalar(role)));
        }
        if let Some(components) = components.filter(|_| !self.people.contains(agent)) {
            let converted = self.components(agent, role, components, &path);
            for line in converted.beside {
                out.line(7, line);
            }
            if !converted.text.is_empty() {
                out.text(7, "instructions", &converted.text);
            }
        }
    }

    // ---- speakers ----------------------------------------------------------------------------------------------

    fn order(&mut self, state: &State<'a>, controller: Option<&Map<String, Json>>, out: &mut Yaml) {
        let path = at(&state.path, "controller");
        let Some(controller) = controller else { return };
        for key in controller
            .keys()
            .filter(|key| !CONTROLLER.contains(&key.as_str()))
        {
            let message = format!("`{key}` means nothing and is left out");
            self.warn("key", at(&path, key), message);
        }
        let kind = controller.get("controller_type").map(plain);
        let order = match kind.as_deref() {
            None | Some("order") => None,
            Some("random") => Some("random"),
            Some("rule") => Some("by_model"),
            Some(other) => {
                let message = format!(
                    "there is no kind `{other}` (there, the program crashes when it must choose); they speak in turn here"
                );
                self.warn("order", at(&path, "controller_type"), message);
                None
            }
        };
        if let Some(order) = order.filter(|_| state.speakers.len() > 1) {
            out.line(5, format!("order: {order}"));
        }
        for key in ["call_system_prompt", "call_last_prompt"] {
            let Some(text) = controller.get(key).map(plain).filter(|t| !t.is_empty()) else {
                continue;
            };
            if order == Some("by_model") {
                let message = "who chooses speakers is told the scene and the roles here, and no words of one's own; they are \
                               kept as a comment";
                self.warn("leader", at(&path, key), message);
                out.comment(5, &format!("{key}: {text}"));
            }
        }
    }

    fn begin(&mut self, state: &State<'a>, out: &mut Yaml) -> Result<(), ImportError> {
        let role = state.fields.get("begin_role").and_then(Json::as_str);
        let say = text_of(state.fields, "begin_query");
        let begins = role.and_then(|role| state.speakers.iter().find(|(r, _)| *r == role));
        if let (Some(role), None) = (role, begins) {
            let message = format!(
                "no speaker of this state has the role `{role}` (they are {}), so the first begins",
                listed(state.speakers.iter().map(|(role, _)| role))
            );
            self.warn("opening", at(&state.path, "begin_role"), message);
        }
        let person = |agent: &str| self.people.contains(agent);
        let opened = begins.is_some_and(|(_, agent)| !person(agent)) && say.is_some();
        let people = state
            .speakers
            .iter()
            .filter(|(_, agent)| person(agent))
            .count();
        if state.name == self.start && !opened {
            if state.speakers.len() == 2 && people == 1 {
                return Err(ImportError {
                    path: state.path.clone(),
                    message: "of two speakers one is a person, and nothing is said to them at the start; the original refuses \
                              this, too"
                        .to_owned(),
                    help: "write `begin_role`, that of the other one, and `begin_query`".to_owned(),
                });
            }
            if self.agents.len() == 2 {
                let message = "with two agents the original wants `begin_role` and `begin_query` here and refuses to start; this \
                               definition runs";
                self.warn("start", &state.path, message);
            }
        }
        match (begins, say) {
            (Some((_, agent)), say) => {
                let is_person = self.people.contains(agent);
                out.line(5, "begin:");
                out.line(6, format!("speaker: {}", self.agent_names[*agent]));
                match say {
                    Some(say) if !is_person => out.text(6, "say", &literal(&say)),
                    Some(_) => self.warn(
                        "opening",
                        at(&state.path, "begin_query"),
                        "a person begins and says what they want to, so it is not said",
                    ),
                    None if is_person => {}
                    None => self.warn(
                        "opening",
                        &state.path,
                        "`begin_role` without `begin_query` says one blank there; here, the role's model speaks",
                    ),
                }
            }
            (None, Some(say)) => {
                let message = match role {
                    None => {
                        "it is said there only where `begin_role` is written, too; it is kept as a comment"
                    }
                    Some(_) => "nobody is there to say it; it is kept as a comment",
                };
                self.warn("opening", at(&state.path, "begin_query"), message);
                out.comment(5, &format!("begin_query: {say}"));
            }
            (None, None) => {}
        }
        Ok(())
    }

    // ---- exits -------------------------------------------------------------------------------------------------

    fn exits(&mut self, state: &State<'a>, controller: Option<&Map<String, Json>>, out: &mut Yaml) {
        let relations = at("relations", state.name);
        let numbered = self.numbered(state.name, &relations);
        let mut exits = Yaml::default();
        let entered_again = self.is_entered_again(state.name);
        match numbered.as_slice() {
            [] => self.warn(
                "exit",
                &relations,
                "nothing leads out, and the original fails here; the state is never left",
            ),
            [(n, to)] => {
                if *n != 0 {
                    let message = format!(
                        "the only exit has the number {n}, and the original looks for \"0\" and fails; it is taken here"
                    );
                    self.warn("exit", at(&relations, &n.to_string()), message);
                }
                match to {
                    Some(to) => {
                        exits.line(6, "- after_messages: 1");
                        exits.line(7, format!("to: {to}"));
                    }
                    None => self.warn(
                        "exit",
                        &relations,
                        "the only exit leads back into the state, so it is never left",
                    ),
                }
                if controller.is_some_and(|c| c.contains_key("max_chat_nums")) {
                    let path = at(&at(&state.path, "controller"), "max_chat_nums");
                    let message = "with one exit nothing is counted and nobody judges: it is taken after one message";
                    self.warn("limit", path, message);
                }
            }
            several => {
                self.judged(state, controller, several, &mut exits);
                self.limit(state, controller, several, &mut exits);
            }
        }
        if entered_again {
            self.warn(
                "counters",
                &state.path,
                "there, messages are counted over all visits, and the opening is said once: a state whose limit was reached is left \
                 after each message; here, each visit begins anew (`reset: never` goes on counting)",
            );
            out.line(5, "reset: on_entry");
        }
        let exits = exits.into_text();
        if !exits.is_empty() {
            out.line(5, "exits:");
            for line in exits.lines() {
                out.line(0, line);
            }
        }
    }

    /// Returns the exits of a state with their numbers and targets; `None` leads back into the state.
    fn numbered(&mut self, state: &str, path: &str) -> Vec<(u64, Option<To>)> {
        let mut out = Vec::new();
        let relations = self.relations;
        let Some(exits) = relations.get(state).and_then(Json::as_object) else {
            return out;
        };
        for (key, to) in exits {
            let path = at(path, key);
            let (Ok(n), Some(to)) = (key.parse::<u64>(), to.as_str()) else {
                let message = "an exit is a number with the name of a state; it is left out";
                self.warn("exit", path, message);
                continue;
            };
            let to = if to == state {
                None
            } else if to == self.end {
                Some("finish".to_owned())
            } else if let Some(known) = self.state_names.get(to) {
                Some(known.clone())
            } else {
                let message = format!("there is no state `{to}`; the exit is left out");
                self.warn("exit", path, message);
                continue;
            };
            out.push((n, to));
        }
        out.sort_by_key(|(n, _)| *n);
        out
    }

    /// Writes the exits that a judge decides: those above 0 in order, then exit 0 unless it means to stay.
    fn judged(
        &mut self,
        state: &State<'a>,
        controller: Option<&Map<String, Json>>,
        exits: &[(u64, Option<To>)],
        out: &mut Yaml,
    ) {
        let path = at(&state.path, "controller");
        let said = |key: &str| {
            let text = controller.and_then(|c| c.get(key)).map(plain);
            text.filter(|text| !text.trim().is_empty())
        };
        let words: Vec<String> = [said("judge_system_prompt"), said("judge_last_prompt")]
            .into_iter()
            .flatten()
            .collect();
        let words = words.join("\n");
        let mut leading: Vec<(u64, &To)> = Vec::new();
        for (n, to) in exits
            .iter()
            .filter(|(n, _)| *n > 0)
            .chain(exits.iter().filter(|(n, _)| *n == 0))
        {
            match to {
                Some(to) => leading.push((*n, to)),
                None if *n == 0 => {}
                None => self.warn(
                    "exit",
                    at(&at("relations", state.name), &n.to_string()),
                    "it leads back into the state, which is 0 here; it is left out",
                ),
            }
        }
        let in_order = leading.iter().zip(1..).all(|((n, _), here)| *n == here);
        if !in_order {
            let message = "exits are numbered from 1 here, and 0 is to stay; each judged exit says which number it had";
            self.warn("judge", at("relations", state.name), message);
        }
        if words.is_empty() {
            let message = "nothing says when to leave, and the original asks without words or fails; look at each `judge` here";
            self.warn("judge", &path, message);
        }
        for (k, (n, to)) in leading.into_iter().enumerate() {
            let mut judge = match (words.is_empty(), k) {
                (true, _) if to == "finish" => "It is time to end.".to_owned(),
                (true, _) => format!("It is time to go on to {to}."),
                (false, 0) => words.clone(),
                (false, _) => format!("By the rules of statement 1, {n} is right."),
            };
            if !in_order && !words.is_empty() && k == 0 {
                judge = format!("{judge}\n(By these rules, {n} is right.)");
            }
            out.item(6, "judge", &literal(&judge));
            out.line(7, format!("to: {to}"));
        }
    }

    /// Writes exit 1, which is taken after a number of messages without asking a judge.
    fn limit(
        &mut self,
        state: &State<'a>,
        controller: Option<&Map<String, Json>>,
        exits: &[(u64, Option<To>)],
        out: &mut Yaml,
    ) {
        let path = at(&at(&state.path, "controller"), "max_chat_nums");
        let written = controller.and_then(|controller| controller.get("max_chat_nums"));
        let most = match written {
            None => Some(1000),
            Some(value) => number(value).filter(|n| *n > 0),
        };
        let Some(most) = most else {
            let message = "this is no number of messages; it is left out";
            return self.warn("limit", &path, message);
        };
        if written.is_some_and(Json::is_string) {
            let message =
                "the number is a text, and comparing it fails there; it is taken as a number";
            self.warn("limit", &path, message);
        }
        match exits.iter().find(|(n, _)| *n == 1) {
            Some((_, Some(to))) => {
                if written.is_none() {
                    out.comment(6, "There, 1000 is what holds where nothing is written.");
                }
                out.line(6, format!("- after_messages: {most}"));
                out.line(7, format!("to: {to}"));
            }
            Some((_, None)) => {
                let message = "exit 1, which the limit takes, leads back into the state; the limit is left out";
                self.warn("limit", path, message);
            }
            None => {
                let message = "there is no exit 1, which the limit takes, and the original fails there; the limit is left out";
                self.warn("limit", path, message);
            }
        }
    }

    /// Returns true if a state can be entered again after it was left.
    fn is_entered_again(&self, state: &str) -> bool {
        let next = |from: &str| {
            let exits = self.relations.get(from).and_then(Json::as_object);
            let exits = exits.into_iter().flat_map(Map::values);
            let from = from.to_owned();
            exits
                .filter_map(Json::as_str)
                .filter(move |to| *to != from && *to != self.end)
                .map(str::to_owned)
                .collect::<Vec<String>>()
        };
        let (mut seen, mut open) = (BTreeSet::new(), next(state));
        while let Some(at) = open.pop() {
            if at == state {
                return true;
            }
            if seen.insert(at.clone()) {
                open.extend(next(&at));
            }
        }
        false
    }
}

pub(super) fn text_of(fields: &Json, key: &str) -> Option<String> {
    let text = fields.get(key).map(plain)?;
    (!text.trim().is_empty()).then_some(text)
}
