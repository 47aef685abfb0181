//! Questions of a router to a model, and the reading of the answers.

use crate::network::ToolChoice;
use crate::questions::{Purpose, ToolSpec};
use crate::stored::ids::Name;
use crate::stored::outcome::{Answer, Ask};
use serde_json::{Map, Value as Json, json};

/// A question of a router to a model.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// Subject of the question.
    pub(crate) about: About,
    /// The model that is asked.
    pub(crate) model: Name,
    /// System prompt of the question.
    pub(crate) system: String,
    /// Text after the conversation.
    pub(crate) closing: String,
    /// Values that led to this question, by path. They are recorded with the answer.
    pub(crate) read: Map<String, Json>,
}

/// Subject of a question to a model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum About {
    /// The statement that holds, if any. The texts are those of the `judge` entries.
    Exit(Vec<String>),
    /// The next speaker, by role.
    Speaker(Vec<Name>),
    /// The member that acts next, or the answer that nothing is left to be done.
    Pick(Vec<Name>),
    /// The task that a message is about, or the default member. Each entry is a task and its agent.
    /// `true` means that the model may answer the user itself.
    Task(Vec<(Name, Name)>, bool),
    /// The part of the user's request that is not done yet.
    Left,
    /// No decision: the text of a summary for this policy.
    Summary(Name),
}

/// Meaning of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    /// Number of an exit, from 1. `None` means that the state stays.
    Exit(Option<usize>),
    /// One of the names that were offered.
    Name(Name),
    /// Nothing is left to be done. Contains the answer for the user, if the model gave one.
    Done(Option<String>),
    /// The request that is left to be done; `None` if nothing is.
    Left(Option<String>),
    /// Text for the user.
    Words(String),
}

/// Meaning of an answer, and the model's reason.
pub(crate) type Read = (Said, Option<String>);

const EXIT: &str = "decide";
const AGENT: &str = "select_agent";
const TASK: &str = "select_task";
const DONE: &str = "done";
const LEFT: &str = "continue_with";
const NOTHING: &str = "nothing_left";

impl Question {
    /// Returns the tools by which the model answers.
    pub(crate) fn tools(&self) -> Vec<ToolSpec> {
        let reason = || json!({ "type": "string", "description": "Why, in a few words." });
        let name = |names: &[&Name]| {
            let names: Vec<&str> = names.iter().map(|n| &***n).collect();
            object(
                json!({ "name": { "type": "string", "enum": names }, "reason": reason() }),
                &["name"],
            )
        };
        match &self.about {
            About::Summary(_) => Vec::new(),
            About::Exit(judged) => {
                let exit = json!({ "type": "integer", "minimum": 0, "maximum": judged.len() });
                let parameters = object(json!({ "exit": exit, "reason": reason() }), &["exit"]);
                vec![tool(
                    EXIT,
                    "Say which statement holds: its number, or 0 if none does.",
                    &parameters,
                )]
            }
            About::Speaker(roles) => {
                let names: Vec<&Name> = roles.iter().collect();
                vec![tool(AGENT, "Say who speaks next.", &name(&names))]
            }
            About::Pick(members) => {
                let names: Vec<&Name> = members.iter().collect();
                let summary = json!({ "type": "string", "description": "The answer, in the end." });
                let done = object(json!({ "summary": summary }), &["summary"]);
                vec![
                    tool(AGENT, "Say who acts next.", &name(&names)),
                    tool(DONE, "Say that nothing is left to be done.", &done),
                ]
            }
            About::Task(tasks, _) => {
                let names: Vec<&Name> = tasks.iter().map(|(task, _)| task).collect();
                vec![tool(
                    TASK,
                    "Say what the user's message is about.",
                    &name(&names),
                )]
            }
            About::Left => {
                let request = json!({ "type": "string", "description": "What is left, in the user's words." });
                let left = object(json!({ "request": request }), &["request"]);
                vec![
                    tool(
                        LEFT,
                        "Something that the user asked for is left to be done.",
                        &left,
                    ),
                    tool(
                        NOTHING,
                        "Nothing is left to be done.",
                        &object(json!({}), &[]),
                    ),
                ]
            }
        }
    }

    /// Returns the purpose of the request.
    pub(crate) fn purpose(&self) -> Purpose {
        match self.about {
            About::Left => Purpose::Continue,
            About::Summary(_) => Purpose::Summary,
            About::Exit(_) | About::Speaker(_) | About::Pick(_) | About::Task(..) => {
                Purpose::Decision
            }
        }
    }

    /// Returns the tool choice: `Auto` if the model may answer the user itself, else `Any`.
    pub(crate) fn choice(&self) -> ToolChoice {
        match self.about {
            About::Task(_, true) => ToolChoice::Auto,
            _ => ToolChoice::Any,
        }
    }

    /// Reads an answer. The error is a text for the model: why the answer cannot be used, and which answers can.
    pub(crate) fn read(&self, answer: &Answer) -> Result<Read, String> {
        if let Some(ask) = answer.asks.first() {
            return self.called(ask);
        }
        let text = answer.text.as_deref().unwrap_or_default().trim();
        if text.is_empty() {
            return Err(format!("The answer is empty. {}", self.usable()));
        }
        if let Ok(fields) = serde_json::from_str::<Map<String, Json>>(text)
            && let Some(read) = self.fields(&fields)
        {
            return Ok(read);
        }
        let word = tagged(text).unwrap_or_else(|| bare(text).to_owned());
        match self.word(&word) {
            Some(said) => Ok((said, None)),
            None => match self.about {
                About::Task(_, true) => Ok((Said::Words(text.to_owned()), None)),
                About::Left => Ok((Said::Left(Some(text.to_owned())), None)),
                _ => Err(format!(
                    "`{}` cannot be used. {}",
                    short(text),
                    self.usable()
                )),
            },
        }
    }

    fn called(&self, ask: &Ask) -> Result<Read, String> {
        let args = crate::values::json::arguments(&ask.args).unwrap_or_default();
        let name = ask.name.as_str();
        let text = |key: &str| args.get(key).and_then(Json::as_str).map(str::to_owned);
        let known = self.tools().iter().any(|tool| tool.name == name);
        let found = match name {
            DONE if known => Some((
                Said::Done(text("summary").filter(|t| !t.trim().is_empty())),
                None,
            )),
            NOTHING if known => Some((Said::Left(None), None)),
            LEFT if known => text("request").map(|request| (Said::Left(Some(request)), None)),
            _ if known => self.fields(&args),
            // The model used the chosen name as the name of a tool.
            _ => self.word(name).map(|said| (said, text("reason"))),
        };
        found.ok_or_else(|| {
            format!(
                "`{} {}` cannot be used. {}",
                short(name),
                short(&ask.args),
                self.usable()
            )
        })
    }

    /// Reads an answer that is an object.
    fn fields(&self, fields: &Map<String, Json>) -> Option<Read> {
        let reason = fields
            .get("reason")
            .and_then(Json::as_str)
            .map(str::to_owned);
        let value = ["exit", "name", "agent", "task", "role", "agent_name"]
            .iter()
            .find_map(|key| fields.get(*key))?;
        let word = match value {
            Json::String(text) => bare(text).to_owned(),
            Json::Number(number) => number.to_string(),
            _ => return None,
        };
        self.word(&word).map(|said| (said, reason))
    }

    /// Reads an answer that is one word.
    fn word(&self, word: &str) -> Option<Said> {
        let named = |names: &[Name]| {
            let found = names.iter().find(|name| ***name == *word);
            found.map(|name| Said::Name(name.clone()))
        };
        match &self.about {
            About::Exit(judged) => {
                let number: usize = word.parse().ok()?;
                (number <= judged.len()).then(|| Said::Exit((number > 0).then_some(number)))
            }
            About::Speaker(roles) => named(roles),
            About::Pick(_) if word == "finish" => Some(Said::Done(None)),
            About::Pick(members) => named(members),
            // Look for the name of a task first, then for that of an agent.
            About::Task(tasks, _) => {
                let by_task = tasks.iter().find(|(task, _)| **task == *word);
                let found = by_task.or_else(|| tasks.iter().find(|(_, agent)| **agent == *word));
                found.map(|(task, _)| Said::Name(task.clone()))
            }
            About::Left => (word == "finish").then_some(Said::Left(None)),
            About::Summary(_) => None,
        }
    }

    /// Returns a sentence that lists the usable answers, for a model whose answer could not be used.
    fn usable(&self) -> String {
        let names = |names: &[&Name]| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("Answer with one of {}.", names.join(", "))
        };
        match &self.about {
            About::Exit(judged) => format!("Answer with a number from 0 to {}.", judged.len()),
            About::Speaker(roles) => names(&roles.iter().collect::<Vec<_>>()),
            About::Pick(members) => {
                format!(
                    "{} Or call `{DONE}`.",
                    names(&members.iter().collect::<Vec<_>>())
                )
            }
            About::Task(tasks, _) => names(&tasks.iter().map(|(task, _)| task).collect::<Vec<_>>()),
            About::Left => format!("Call `{LEFT}` or `{NOTHING}`."),
            About::Summary(_) => "Answer with the summary.".to_owned(),
        }
    }
}

fn tool(name: &str, description: &str, parameters: &Json) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: parameters.to_string(),
    }
}

fn object(properties: Json, required: &[&str]) -> Json {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Returns the content of a tag: `1` for `<end>1</end>`. The contents of several tags are separated by blanks.
fn tagged(text: &str) -> Option<String> {
    let (mut rest, mut found) = (text, Vec::new());
    while let Some((_, after)) = rest.split_once('<') {
        rest = after;
        let Some((name, inside)) = after.split_once('>') else {
            break;
        };
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name && let Some((content, after)) = inside.split_once(&format!("</{name}>")) {
            found.push(content.trim().to_owned());
            rest = after;
        }
    }
    (!found.is_empty()).then(|| found.join(" "))
}

/// Returns a word without quotes, emphasis and full stops around it.
fn bare(text: &str) -> &str {
    let around = |c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'' | '*' | '.');
    text.trim_matches(around)
}

/// Returns the beginning of an answer, for a message.
fn short(text: &str) -> String {
    crate::stored::bounds::cut(text, 200).into_owned()
}
