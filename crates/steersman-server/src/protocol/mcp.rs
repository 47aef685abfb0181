//! The Model Context Protocol: a turn as the result of a tool's call, with progress until then, and forms for what people are asked.

use super::chat::question;
use super::turn::{End, Open, Told, Turn, WAITS};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman::machine::stored::ids::{Id, Name};
use steersman::{Called, Event, EventKind, PendingKind};

/// Maximum number of characters of a message about progress.
const SHOWN: usize = 200;
/// Maximum number of messages about the progress of tools between two others. Behind them, halves could not be told apart.
const BETWEEN: i32 = 40;

/// The fixed parts of a call.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    /// The id of the session.
    pub(crate) session: Arc<str>,
    /// Roles in which the client may decide.
    pub(crate) roles: Vec<Name>,
    /// The address of the session in the console, if there is one.
    pub(crate) page: Option<String>,
}

/// A turn as the call of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    form: Form,
    turn: Turn,
    texts: Vec<Arc<str>>,
    artifacts: Vec<Artifact>,
    tools: BTreeMap<Id, Name>,
    /// Messages about what is on disk.
    steps: u32,
    /// Messages about the progress of tools since the last of them.
    between: i32,
}

/// A message about the progress of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Progress {
    /// A whole number for what is on disk: the same for each reader. It grows with each message.
    pub(crate) progress: f64,
    /// The message for people.
    pub(crate) message: String,
}

/// An artifact that was made in the turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Artifact {
    pub(crate) name: Name,
    pub(crate) media: Name,
    /// Number of bytes.
    pub(crate) len: u64,
}

impl Call {
    pub(crate) fn new(form: Form, turn: Turn) -> Self {
        Self {
            form,
            turn,
            texts: Vec::new(),
            artifacts: Vec::new(),
            tools: BTreeMap::new(),
            steps: 0,
            between: 0,
        }
    }

    /// Returns the turn as far as it was told.
    pub(crate) fn turn(&self) -> &Turn {
        &self.turn
    }

    /// Returns the artifacts that were made, each once.
    pub(crate) fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }

    /// Returns the progress that an event tells.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Progress> {
        let is_over = self.turn.end.is_some();
        let mut all = Vec::new();
        for told in self.turn.event(event) {
            match told {
                Told::Closes { text, .. } => {
                    all.push(self.step(&text));
                    self.texts.push(text);
                }
                Told::Calls { call, name, .. } => {
                    all.push(self.step(&format!("{name} is called")));
                    self.tools.insert(call, name);
                }
                Told::Ends { call, ok, .. } => {
                    let name = self.tools.get(&call).cloned().unwrap_or_default();
                    let how = if ok { "done" } else { "failed" };
                    all.push(self.step(&format!("{name}: {how}")));
                }
                Told::Begins | Told::Opens | Told::More(_) | Told::Void => {}
            }
        }
        if !is_over && self.turn.branch() == Some(event.branch) {
            all.extend(self.works(event));
        }
        all
    }

    /// Tells which agents are called, what tools report of their progress, and remembers artifacts.
    fn works(&mut self, event: &Event) -> Option<Progress> {
        match &event.kind {
            EventKind::Called {
                name,
                target: Called::Agent,
                ..
            } => Some(self.step(&format!("{name} is called"))),
            EventKind::Progress {
                message: Some(message),
                ..
            } if self.between < BETWEEN => {
                self.between += 1;
                Some(Progress {
                    progress: f64::from(self.steps) + 1.0 - 0.5_f64.powi(self.between),
                    message: short(message),
                })
            }
            EventKind::Artifact {
                name, media, len, ..
            } => {
                self.artifacts.retain(|known| known.name != *name);
                self.artifacts.push(Artifact {
                    name: name.clone(),
                    media: media.clone(),
                    len: *len,
                });
                None
            }
            _ => None,
        }
    }

    fn step(&mut self, message: &str) -> Progress {
        self.steps += 1;
        self.between = 0;
        Progress {
            progress: f64::from(self.steps),
            message: short(message),
        }
    }

    /// Returns the questions that the client may decide with a form.
    pub(crate) fn forms(&self) -> Vec<&Open> {
        let Some(End::Asks(open)) = &self.turn.end else {
            return Vec::new();
        };
        let has_form = |open: &&Open| open.role(&self.form.roles).is_some() && form(open).is_some();
        open.iter().filter(has_form).collect()
    }

    /// Returns the result of the call, as the turn stands.
    pub(crate) fn outcome(&self) -> Outcome {
        let mut texts: Vec<String> = self.texts.iter().map(ToString::to_string).collect();
        let (turn, open) = match &self.turn.end {
            None => {
                texts.push(WORKING.to_owned());
                ("working", &[][..])
            }
            Some(End::Answered) => ("answered", &[][..]),
            Some(End::Asks(open)) => ("asks", &open[..]),
            Some(End::Waits(open)) if open.is_empty() => {
                texts.push(WAITS.to_owned());
                ("waits", &[][..])
            }
            Some(End::Waits(open)) => ("waits", &open[..]),
            Some(End::Failed { message, .. }) => {
                texts.push(message.clone());
                ("failed", &[][..])
            }
            Some(End::Cancelled) => {
                texts.push("A person cancelled this.".to_owned());
                ("cancelled", &[][..])
            }
        };
        self.form.outcome(turn, texts, open)
    }
}

/// The text of a result for which the caller has not waited long enough.
const WORKING: &str =
    "The session is still at work. Nothing is lost: call again with this `session` to wait for it.";

impl Form {
    /// Returns the result of a call whose message waits until something else is over.
    pub(crate) fn waits(&self, why: &str, open: &[Open]) -> Outcome {
        let turn = if open.is_empty() { "waits" } else { "asks" };
        let texts = vec![format!("The message waits, and is taken later: {why}.")];
        self.outcome(turn, texts, open)
    }

    /// Returns the result of a call whose message no process has taken so far.
    pub(crate) fn works(&self) -> Outcome {
        self.outcome("working", vec![WORKING.to_owned()], &[])
    }

    fn outcome(&self, turn: &'static str, mut texts: Vec<String>, open: &[Open]) -> Outcome {
        let mine =
            |open: &&Open| open.kind == PendingKind::Question && open.role(&self.roles).is_some();
        let is_only = open.iter().filter(mine).count() == 1;
        let by_text = |open: &Open| is_only && mine(&open);
        for open in open {
            let text = question(open, &self.session, self.page.as_deref(), by_text(open));
            texts.push(if turn == "waits" {
                format!("The session waits for: {text}")
            } else if by_text(open) {
                format!("{text}\n(Call again with this `session`, and the answer of the user as `message`.)")
            } else {
                text
            });
        }
        let questions = open.iter().map(|open| {
            json!({
                "id": open.id.to_string(),
                "kind": open.kind.word(),
                "text": open.text,
                "roles": open.roles,
                "tool": open.tool,
                "arguments": open.arguments,
                "options": open.options,
                "decide": open.address(&self.session, self.page.as_deref()).filter(|_| !by_text(open)),
            })
        });
        let text = texts.join("\n\n");
        Outcome {
            structured: json!({
                "session": self.session,
                "turn": turn,
                "text": text,
                "questions": questions.collect::<Json>(),
            }),
            handle: format!("session: {} (turn: {turn})", self.session),
            text,
            is_error: matches!(turn, "failed" | "cancelled"),
        }
    }
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// The result for programs.
    pub(crate) structured: Json,
    /// The result for models.
    pub(crate) text: String,
    /// The handle for models.
    pub(crate) handle: String,
    /// True if there is no answer and will be none.
    pub(crate) is_error: bool,
}

/// Returns the JSON Schema of [`Outcome::structured`].
pub(crate) fn schema() -> Json {
    let text = |about: &str| json!({ "type": "string", "description": about });
    json!({
        "type": "object",
        "properties": {
            "session": text("The handle of the session, for `session` of the next call"),
            "turn": {
                "type": "string",
                "enum": ["answered", "asks", "waits", "working", "failed", "cancelled"],
                "description": "How the turn stands",
            },
            "text": text("The words of the agents, and what is asked or waited for"),
            "questions": {
                "type": "array",
                "items": { "type": "object" },
                "description": "What is asked or waited for. `decide` is the command with which a person decides it",
            },
        },
        "required": ["session", "turn", "text", "questions"],
    })
}

/// Returns the message and the JSON Schema of the form that decides a question. `None` if no form may: a secret must not go through one,
/// and a doubt is resolved with more than a form has.
pub(crate) fn form(open: &Open) -> Option<(String, Json)> {
    let field = |kind: &str, title: &str, about: &str| json!({ "type": kind, "title": title, "description": about });
    if open.kind == PendingKind::Question {
        let mut answer = field("string", "Answer", "The answer to the question");
        if !open.options.is_empty() {
            answer["enum"] = open.options.clone().into();
        }
        let schema =
            json!({ "type": "object", "properties": { "answer": answer }, "required": ["answer"] });
        return Some((open.text.clone(), schema));
    }
    if !open.is_decided() {
        return None;
    }
    let message = match &open.tool {
        Some(tool) => format!("{}\n{tool}: {}", open.text, open.arguments),
        None => open.text.clone(),
    };
    let properties = json!({
        "approve": field("boolean", "Approve", "True allows it once, false refuses it"),
        "reason": field("string", "Reason", "The reason of a refusal, which the agent reads"),
    });
    let schema = json!({ "type": "object", "properties": properties, "required": ["approve"] });
    Some((message, schema))
}

/// A decision about a question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    Approve,
    Reject(Option<String>),
    Answer(String),
}

/// Reads what a person did with a form. `None` leaves the question open: the form was closed, has no answer, or a question was declined.
pub(crate) fn decision(open: &Open, result: &Json) -> Option<Decision> {
    let content = &result["content"];
    let text = |name: &str| {
        content[name]
            .as_str()
            .filter(|text| !text.trim().is_empty())
    };
    let is_question = open.kind == PendingKind::Question;
    match result["action"].as_str() {
        Some("accept") if is_question => {
            let answer = text("answer")?.to_owned();
            Some(Decision::Answer(answer))
        }
        Some("accept") if open.is_decided() => Some(if content["approve"].as_bool()? {
            Decision::Approve
        } else {
            Decision::Reject(text("reason").map(str::to_owned))
        }),
        Some("decline") if open.is_decided() => Some(Decision::Reject(None)),
        _ => None,
    }
}

/// Returns the beginning of a text, on one line.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().nth(SHOWN).is_none() {
        return line;
    }
    let begin: String = line.chars().take(SHOWN - 1).collect();
    format!("{begin}…")
}
