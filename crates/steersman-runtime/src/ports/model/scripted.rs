//! The scripted model: answers from one file, listed by agent. It keeps no position of its own: a call says how many model calls
//! of its agent are committed on its branch. So a call that is repeated after a crash gets the same answer.

pub mod nearest;

use super::{BoundModel, Delta, Model, ModelCall, Models, ModelsError, Sink};
use crate::{Boxed, Env};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};
use steersman_definition::test;
use steersman_machine::context::{Content, Request};
use steersman_machine::network::{AgentDef, LOCAL, ModelDef, Network, Provider, SCRIPTED};
use steersman_machine::questions::judgement;
use steersman_machine::search::{draw, pick};
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::commit::Usage;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Ask, Failure, Retry};
use steersman_machine::values::expression::{EvalError, Scope, Template, from_json};
use steersman_machine::values::near::near;
use tokio_util::sync::CancellationToken;

/// A script: lists of answers by agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    answers: BTreeMap<String, Vec<Scripted>>,
}

/// One answer of a script.
#[derive(Clone, Debug, Default, PartialEq)]
struct Scripted {
    text: Option<String>,
    /// Structured answer, if there is no text.
    output: Option<Json>,
    calls: Vec<(String, Json)>,
    error: Option<String>,
    /// Alternatives with weights, of which one is drawn.
    any: Vec<(f64, Scripted)>,
}

/// Reason for which a script cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("script, {place}: {message}")]
pub struct ScriptError {
    /// Key of the agent, and number of the answer.
    pub place: String,
    /// Description of the problem.
    pub message: String,
}

impl Script {
    /// Parses a script: a map from agents (`parent/adder`, `main@b1`, `planner@2` on the second branch of a fork) to lists of
    /// answers.
    pub fn parse(json: &Json) -> Result<Self, ScriptError> {
        let error = |place: &str, message: &str| ScriptError {
            place: place.to_owned(),
            message: message.to_owned(),
        };
        let agents = json
            .as_object()
            .ok_or_else(|| error("top", "a map from agents to lists of answers is wanted"))?;
        let mut answers = BTreeMap::new();
        for (agent, list) in agents {
            let list = list
                .as_array()
                .ok_or_else(|| error(agent, "a list of answers is wanted"))?;
            let parsed = list
                .iter()
                .zip(1..)
                .map(|(answer, n)| {
                    Scripted::parse(answer).map_err(|m| error(&format!("{agent}, answer {n}"), &m))
                })
                .collect::<Result<_, _>>()?;
            answers.insert(agent.clone(), parsed);
        }
        Ok(Self { answers })
    }
}

impl From<&test::Script> for Script {
    fn from(script: &test::Script) -> Self {
        let answers = script.0.iter();
        let answers =
            answers.map(|(key, list)| (key.clone(), list.iter().map(Scripted::from).collect()));
        Self {
            answers: answers.collect(),
        }
    }
}

impl From<&test::Answer> for Scripted {
    fn from(answer: &test::Answer) -> Self {
        let text = answer.text.as_ref();
        let output = answer.output.clone().filter(|_| text.is_none());
        let verdict = || answer.verdict().filter(|_| output.is_none());
        Self {
            text: text
                .map(|template| template.source.to_string())
                .or_else(verdict),
            output,
            calls: answer.calls.clone(),
            error: answer.error.clone(),
            any: answer
                .any
                .iter()
                .map(|(weight, one)| (*weight, Self::from(one)))
                .collect(),
        }
    }
}

impl Scripted {
    fn parse(json: &Json) -> Result<Self, String> {
        match json {
            Json::String(text) => Ok(Self {
                text: Some(text.clone()),
                ..Self::default()
            }),
            Json::Object(map) if map.contains_key("any") => Self::parse_any(map),
            Json::Object(map) => {
                let mut answer = Self::default();
                for (key, value) in map {
                    match (key.as_str(), value) {
                        ("text", Json::String(text)) => answer.text = Some(text.clone()),
                        ("call", Json::Object(_)) => answer.calls = calls(value)?,
                        ("call", Json::Array(list)) => {
                            for call in list {
                                answer.calls.extend(calls(call)?);
                            }
                        }
                        ("output", value) => answer.output = Some(value.clone()),
                        ("accept", Json::Bool(true)) => {
                            answer.text = Some(judgement::accept());
                        }
                        ("revise", Json::String(text)) => {
                            answer.text = Some(judgement::revise(text));
                        }
                        ("error", Json::String(code)) => answer.error = Some(code.clone()),
                        _ => {
                            return Err(no_answer(key, value));
                        }
                    }
                }
                Ok(answer)
            }
            // YAML parses some unquoted texts as numbers or truth values. They are read as the texts that were written.
            Json::Number(_) | Json::Bool(_) => Ok(Self {
                text: Some(json.to_string()),
                ..Self::default()
            }),
            Json::Null | Json::Array(_) => Err("a text or a map is wanted".to_owned()),
        }
    }
}

/// The keys that an answer may have.
const KEYS: [&str; 7] = ["text", "call", "output", "accept", "revise", "error", "any"];

/// Returns the error for a key of an answer that is misspelt, or has a value of the wrong kind.
fn no_answer(key: &str, value: &Json) -> String {
    let written = nearest::short(&format!("{key}: {value}"));
    if KEYS.contains(&key) {
        return format!("`{written}` is no answer: `{key}` takes another kind of value");
    }
    match near(key, KEYS) {
        Some(near) => format!("`{written}`: there is no `{key}`; did you mean `{near}`?"),
        None => format!("`{written}` is none of {}", KEYS.join(", ")),
    }
}

impl Scripted {
    /// Parses `any`: answers of which one is drawn, with optional `weights`.
    fn parse_any(map: &serde_json::Map<String, Json>) -> Result<Self, String> {
        if let Some(other) = map
            .keys()
            .find(|key| !["any", "weights"].contains(&key.as_str()))
        {
            return Err(format!(
                "next to `any` there is only `weights`, not `{other}`"
            ));
        }
        let answers = map["any"].as_array().filter(|list| !list.is_empty());
        let answers = answers.ok_or("`any` is a list of answers, of which one is drawn")?;
        let weights = match map.get("weights") {
            None => vec![1.0; answers.len()],
            Some(weights) => weigh(weights, answers.len())?,
        };
        let answers = answers.iter().map(Self::parse);
        let answers = answers.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            any: weights.into_iter().zip(answers).collect(),
            ..Self::default()
        })
    }

    /// Returns a short description of the answer.
    fn description(&self) -> String {
        let calls = self.calls.iter();
        let calls = calls.map(|(name, args)| format!("calls {name} {args}"));
        let error = self.error.iter().map(|code| format!("error {code}"));
        let any = (!self.any.is_empty()).then(|| format!("one of {}", self.any.len()));
        let output = self.output.iter().map(Json::to_string);
        let said = self.text.iter().cloned().chain(output);
        let all: Vec<String> = said.chain(calls).chain(error).chain(any).collect();
        nearest::short(&all.join(", "))
    }

    /// Returns the answer itself, or the alternative that is drawn. A drawn alternative may have alternatives too.
    fn drawn(&self, mut seed: u64) -> &Self {
        let mut answer = self;
        let drawn = |answer: &Self, seed| pick(answer.any.iter().map(|(weight, _)| *weight), seed);
        while let Some(k) = drawn(answer, seed) {
            answer = &answer.any[k].1;
            seed = draw(seed, "again", "", 0);
        }
        answer
    }
}

/// Parses the weights of answers: one number for each answer, none below 0 and not all 0.
fn weigh(weights: &Json, wanted: usize) -> Result<Vec<f64>, String> {
    let list = weights.as_array().into_iter().flatten();
    let numbers: Vec<f64> = list
        .filter_map(Json::as_f64)
        .filter(|n| *n >= 0.0)
        .collect();
    if numbers.len() != wanted || numbers.iter().sum::<f64>() <= 0.0 {
        return Err(format!(
            "`weights` are {wanted} numbers, one for each answer, not all of them 0"
        ));
    }
    Ok(numbers)
}

fn calls(json: &Json) -> Result<Vec<(String, Json)>, String> {
    let Json::Object(map) = json else {
        return Err("a call is a map from a tool to its arguments".to_owned());
    };
    Ok(map.iter().map(|(k, v)| (k.clone(), v.clone())).collect())
}

/// A model that answers from a script, and a catalog in which every model is this one. A clone shares the same script. The second
/// field is the label, if the definition names the model.
#[derive(Clone)]
pub struct ScriptedModel(Arc<Mutex<State>>, Option<Name>);

struct State {
    /// Scripts, the newest last. Its keys take precedence over those of earlier scripts.
    sections: Vec<Section>,
    /// Descriptions of the calls that got no answer.
    missed: Vec<String>,
}

struct Section {
    script: Script,
    /// Positions at which the section began, by key and caller. `None` for the first section, which begins at 0.
    began: Option<HashMap<String, u32>>,
    /// Number of answers that were read from each list.
    read: BTreeMap<String, u32>,
}

impl Section {
    fn new(script: Script, began: Option<HashMap<String, u32>>) -> Self {
        Self {
            script,
            began,
            read: BTreeMap::new(),
        }
    }
}

impl ScriptedModel {
    /// Creates a model that answers from this script.
    pub fn new(script: Script) -> Self {
        let state = State {
            sections: vec![Section::new(script, None)],
            missed: Vec::new(),
        };
        Self(Arc::new(Mutex::new(state)), None)
    }

    /// Answers from another script from now on. Each list of it begins at the next call of its agent.
    pub fn replace(&self, script: Script) {
        let section = Section::new(script, Some(HashMap::new()));
        self.lock().sections.push(section);
    }

    /// Returns the keys that no agent of this network can have: they are misspelt, or belong to another network. Answers of judges
    /// (`judge#GRADE`) belong to no agent.
    ///
    /// Callers may choose any instance name. A single name that is nearly that of an agent counts as misspelt if no other key is for
    /// that agent; the path of an instance (`lead/searchr`) never does.
    pub fn unknown(&self, network: &Network) -> Vec<String> {
        let mut offered = network.agents.values().flat_map(AgentDef::offers);
        let free = offered.any(|tool| tool.named);
        let is_agent = |name: &str| network.agents.contains_key(name);
        let state = self.lock();
        let keys = || state.sections.iter().flat_map(|s| s.script.answers.keys());
        let answered: BTreeSet<&str> = keys().flat_map(|key| path(key).split('/')).collect();
        let known = |key: &&String| {
            let path = path(key);
            match path.split_once('/') {
                _ if key.starts_with("judge#") || is_agent(path) => true,
                // The first name of a path is that of the agent at its top.
                Some((top, below)) => is_agent(top) && (free || below.split('/').all(is_agent)),
                None => free && meant(path, network).is_none_or(|agent| answered.contains(agent)),
            }
        };
        keys().filter(|key| !known(key)).cloned().collect()
    }

    /// Returns how many answers of the newest script were never used, by key. Lists of calls other than an agent's own (`NAME#..`)
    /// are not counted.
    pub fn left_over(&self) -> Vec<(String, usize)> {
        let state = self.lock();
        let Some(section) = state.sections.last() else {
            return Vec::new();
        };
        let own = section.script.answers.iter();
        own.filter(|(key, _)| !key.contains('#'))
            .filter_map(|(key, list)| {
                let read = section.read.get(key).copied().unwrap_or(0) as usize;
                (read < list.len()).then(|| (key.clone(), list.len() - read))
            })
            .collect()
    }

    /// Returns descriptions of the calls that got no answer, in the order of the calls.
    pub fn missed(&self) -> Vec<String> {
        self.lock().missed.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics while holding it")
    }

    fn answer(&self, call: &ModelCall) -> Result<Answer, Failure> {
        let scripted = {
            let mut state = self.lock();
            let taken = state.take(call);
            if let Err(failure) = &taken {
                let description = state.nearest(call, &failure.message);
                state.missed.push(description);
            }
            taken?.drawn(call.seed).clone()
        };
        if let Some(code) = scripted.error {
            return Err(Failure {
                message: format!("the script answers with the error {code}"),
                code,
                retry: Retry::Never,
            });
        }
        let scope = RequestScope(minijinja_request(&call.request));
        let text = match (scripted.text, scripted.output) {
            (Some(text), _) => Some(render(&text, &scope)?),
            (None, Some(output)) => Some(render_all(&output, &scope)?.to_string()),
            (None, None) => None,
        };
        let asks = scripted
            .calls
            .into_iter()
            .enumerate()
            .map(|(i, (name, args))| {
                Ok(Ask {
                    name,
                    label: Some(format!("call_{}_{i}", call.position)),
                    args: match args {
                        Json::String(text) => text,
                        args => render_all(&args, &scope)?.to_string(),
                    },
                    misfit: None,
                })
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        let said = text.as_ref().map_or(0, String::len)
            + asks
                .iter()
                .map(|a| a.name.len() + a.args.len())
                .sum::<usize>();
        let segments = &call.request.segments;
        Ok(Answer {
            text,
            asks,
            usage: Usage {
                input: segments.bytes().div_ceil(4) + segments.file_tokens(),
                output: (said as u64).div_ceil(4),
                micros: Some(0),
                ..Usage::default()
            },
            ..Answer::default()
        })
    }
}

/// Returns the agent or instance of a key, without its branch and the purpose of its calls.
fn path(key: &str) -> &str {
    key.split(['@', '#']).next().unwrap_or_default()
}

/// Returns the agent whose name is nearly this one.
fn meant<'a>(name: &str, network: &'a Network) -> Option<&'a str> {
    near(name, network.agents.keys().map(|agent| &**agent))
}

impl State {
    fn take(&mut self, call: &ModelCall) -> Result<Scripted, Failure> {
        let name = call.agent.rsplit('/').next().unwrap_or(&call.def);
        // Calls that the engine makes for itself have their own keys.
        let beside = call.request.purpose.beside();
        let named = |name: &str| match beside {
            Some(beside) => format!("{name}#{beside}"),
            None => name.to_owned(),
        };
        let names = [&*call.agent, name, &*call.def];
        let labels = std::iter::once(call.branch.to_string());
        let labels = labels.chain(call.index.map(|index| index.to_string()));
        let on_branch = labels
            .flat_map(|l| names.map(|n| (named(&format!("{n}@{l}")), call.position_on_branch)));
        let anywhere = names.map(|n| (named(n), call.position));
        let keys: Vec<(String, u32)> = on_branch.chain(anywhere).collect();
        let found = self.sections.iter_mut().rev().find_map(|section| {
            let answers = &section.script.answers;
            let key = keys.iter().find(|(key, _)| answers.contains_key(key))?;
            Some((section, key))
        });
        if let Some((section, (key, position))) = found {
            return section.take(key, *position, call);
        }
        let keys = self.sections.iter().flat_map(|s| s.script.answers.keys());
        let keys: Vec<&str> = keys.map(|key| &**key).collect();
        let meant = names
            .iter()
            .find_map(|name| near(name, keys.iter().copied()));
        let meant = meant.map_or_else(String::new, |key| {
            format!("; is `{key}` meant, which it has answers for?")
        });
        let asked = named(&call.agent);
        Err(missing(format!(
            "the script has no answers for `{asked}`{meant}"
        )))
    }
}

impl State {
    /// Returns the error together with the request and the nearest answer of the script.
    fn nearest(&self, call: &ModelCall, missing: &str) -> String {
        let request = minijinja_request(&call.request);
        let last = request.get_attr("last").unwrap_or_default().to_string();
        // Calls that the engine makes for itself have their own keys, so the agent's own answers are not near.
        let asked = match call.request.purpose.beside() {
            Some(beside) => format!("{}#{beside}", call.agent),
            None => call.agent.to_string(),
        };
        let mut rows = vec![
            missing.to_owned(),
            format!("  asked after: {}", nearest::short(&last)),
        ];
        let unread = self.sections.iter().flat_map(|section| {
            let keys = section.script.answers.iter();
            keys.filter_map(|(key, list)| {
                let read = section.read.get(key).copied().unwrap_or(0) as usize;
                Some((key, read, list.get(read)?))
            })
        });
        let near = unread.min_by_key(|(key, ..)| nearest::distance(key, &asked));
        if let Some((key, read, answer)) = near {
            let n = read + 1;
            rows.push(format!(
                "  nearest: answer {n} of `{key}`, which nobody asked for: {}",
                answer.description()
            ));
            rows.push(format!(
                "  differs: it answers `{key}`; asked was `{asked}` on branch {}",
                call.branch
            ));
            return rows.join("\n");
        }
        let own = self.sections.iter().rev().find_map(|section| {
            let mut keys: Vec<_> = section.script.answers.iter().collect();
            keys.sort_by_key(|(key, _)| nearest::distance(key, &asked));
            let (key, list) = keys.into_iter().next()?;
            Some((key, list.len(), list.last()?))
        });
        if let Some((key, n, answer)) = own {
            rows.push(format!(
                "  nearest: answer {n} of `{key}`, which was given before: {}",
                answer.description()
            ));
        }
        rows.join("\n")
    }
}

impl Section {
    fn take(&mut self, key: &str, position: u32, call: &ModelCall) -> Result<Scripted, Failure> {
        let from = match &mut self.began {
            Some(began) => *began
                .entry(format!("{key} of {}@{}", call.agent, call.branch))
                .or_insert(position),
            None => 0,
        };
        let n = position.saturating_sub(from);
        let list = &self.script.answers[key];
        let answer = list.get(n as usize).cloned().ok_or_else(|| {
            let answers = match list.len() {
                1 => "1 answer".to_owned(),
                len => format!("{len} answers"),
            };
            missing(format!(
                "the script has {answers} for `{key}`, number {} is wanted",
                n + 1
            ))
        })?;
        let read = self.read.entry(key.to_owned()).or_default();
        *read = (*read).max(n + 1);
        Ok(answer)
    }
}

/// Returns the name under which a script answers for a model: the one that the definition gives it, with its provider, if another
/// provider than `scripted` is replaced. Different names are different models, so a rerun with another name asks the script again.
pub fn called(def: &ModelDef) -> Option<String> {
    let name = def.named().map(str::to_owned);
    let provider: &str = match &def.provider {
        Provider::Auto | Provider::Scripted => return name,
        Provider::Local => LOCAL,
        Provider::Named(provider) => provider,
    };
    Some(match name {
        Some(name) => format!("{provider}/{name}"),
        None => provider.to_owned(),
    })
}

fn missing(message: String) -> Failure {
    Failure::new(FailureCode::ScriptMissing, message)
}

impl Model for ScriptedModel {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        _cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let answer = self.answer(call)?;
            if let Some(text) = &answer.text {
                for piece in text.split_inclusive(' ') {
                    sink.delta(Delta::Text(piece.to_owned()));
                }
            }
            Ok(answer)
        })
    }

    fn label(&self) -> Name {
        self.1.clone().unwrap_or_else(|| "scripted".into())
    }
}

impl Models for ScriptedModel {
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        _env: &'a Env,
        _folder: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>> {
        Box::pin(async move {
            Ok(network
                .models
                .iter()
                .map(|(name, def)| BoundModel {
                    name: name.clone(),
                    provider: SCRIPTED.into(),
                    model: called(def),
                    ..BoundModel::default()
                })
                .collect())
        })
    }

    fn model(&self, bound: &BoundModel) -> Result<Arc<dyn Model>, ModelsError> {
        let named = bound.model.is_some().then(|| bound.label());
        Ok(Arc::new(Self(self.0.clone(), named)))
    }
}

/// `request` in the templates of a script: `system`, `tools` (names), `messages` (`role`, `text`), `last`, the text of the last
/// message, and `files` (`artifact`, `media_type`, `bytes`, `blake3`).
struct RequestScope(minijinja::Value);

impl Scope for RequestScope {
    fn root(&self, name: &str) -> Option<minijinja::Value> {
        (name == "request").then(|| self.0.clone())
    }
}

fn minijinja_request(request: &Request) -> minijinja::Value {
    let (mut system, mut tools) = (String::new(), Vec::new());
    let (mut messages, mut files) = (Vec::new(), Vec::new());
    for segment in &request.segments {
        match &segment.content {
            Content::System(text) => system.push_str(text),
            Content::Tools(specs) => tools.extend(specs.iter().map(|t| t.name.clone())),
            Content::User(text) => messages.push(json!({ "role": "user", "text": text })),
            Content::File(file) => files.push(json!(file)),
            Content::Assistant { text, .. } => {
                messages.push(json!({ "role": "assistant", "text": text }));
            }
            Content::Result { name, text, .. } => {
                messages.push(json!({ "role": "tool", "name": name, "text": text }));
            }
        }
    }
    let last = messages.last().map_or(Json::Null, |m| m["text"].clone());
    from_json(json!({
        "system": system, "tools": tools, "messages": messages, "last": last, "files": files,
    }))
}

fn render(text: &str, scope: &dyn Scope) -> Result<String, Failure> {
    evaluate(text, |template| template.render(scope), str::to_owned)
}

/// Evaluates a text of a script, if it is a template; `plain` makes the value of any other text.
fn evaluate<T>(
    text: &str,
    of: impl Fn(&Template) -> Result<T, EvalError>,
    plain: impl Fn(&str) -> T,
) -> Result<T, Failure> {
    if !text.contains("{{") && !text.contains("{%") {
        return Ok(plain(text));
    }
    let broken = |message: String| Failure::new(FailureCode::ScriptBroken, message);
    let template = Template::parse(text).map_err(|e| broken(format!("{text}: {}", e.message)))?;
    of(&template).map_err(|e| broken(format!("{text}: {e}")))
}

/// Renders the templates in a value. A text that is exactly one `{{ expr }}` becomes the value of the expression, with its type.
fn render_all(json: &Json, scope: &dyn Scope) -> Result<Json, Failure> {
    Ok(match json {
        Json::String(text) => {
            let plain = |text: &str| Json::String(text.to_owned());
            evaluate(text, |template| template.value(scope), plain)?
        }
        Json::Array(list) => Json::Array(
            list.iter()
                .map(|v| render_all(v, scope))
                .collect::<Result<_, _>>()?,
        ),
        Json::Object(map) => Json::Object(
            map.iter()
                .map(|(k, v)| Ok((k.clone(), render_all(v, scope)?)))
                .collect::<Result<_, Failure>>()?,
        ),
        Json::Null | Json::Bool(_) | Json::Number(_) => json.clone(),
    })
}
