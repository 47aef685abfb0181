//! Tests of a definition as data: script, steps, expectations.

use serde_json::Value as Json;
use std::collections::BTreeMap;
use steersman_machine::network::Then;
use steersman_machine::network::join::JoinOn;
use steersman_machine::search::{draw, pick};
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::NewWrite;
use steersman_machine::tick::history::ChatHistory;
use steersman_machine::values::expression::{Expr, Template};
use steersman_machine::view::artifact::{self, Content};
use steersman_machine::view::mapping::Raw;

/// One test: scripted answers of models and tools, steps, and expectations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Test {
    /// The agent that is talked to; `None` means the network's first entry.
    pub entry: Option<Name>,
    /// Seed of the session.
    pub seed: u64,
    /// Answers of models and routers.
    pub script: Script,
    /// Outcomes of tools by name, in order. A tool without an entry really runs.
    pub tools: BTreeMap<Name, Vec<ToolOutcome>>,
    /// Memories that exist before the test begins.
    pub memory: Vec<Remembered>,
    /// The conversation that precedes the session.
    pub history: ChatHistory,
    /// Steps of the test, in order.
    pub steps: Vec<Step>,
    /// Expectations at the end.
    pub expect: Vec<Expect>,
}

/// A memory that was saved before a test begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Name of the memory.
    pub name: String,
    /// Text of the memory.
    pub content: String,
    /// Scope of the memory; `None` means the network's name.
    pub scope: Option<String>,
    /// Tags, which a search also matches.
    pub tags: Vec<String>,
    /// Rating by a person, from 1 to 5.
    pub rating: Option<u8>,
}

/// Scripted answers by key, in order. A key is an agent's name, a path (`parent/adder`), an agent on a branch (`main@b1`),
/// or a call that the engine makes in addition to the agent's own (`desk#continue`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script(pub BTreeMap<String, Vec<Answer>>);

/// One scripted answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Text of the answer, a template over `request`.
    pub text: Option<Template>,
    /// Calls: the tool's name as the model sees it, and the arguments.
    pub calls: Vec<(String, Json)>,
    /// Structured answer.
    pub output: Option<Json>,
    /// True if the answer is a reviewer's acceptance.
    pub accept: bool,
    /// Change that a reviewer asks for.
    pub revise: Option<String>,
    /// Code with which the model call fails.
    pub error: Option<String>,
    /// Weighted answers, one of which is drawn. The draw depends on the session's seed, the agent, its branch and the position.
    pub any: Vec<(f64, Answer)>,
}

impl Answer {
    /// Returns the answer itself, or the answer drawn from `any`. A drawn answer may have an `any` of its own.
    pub fn drawn(&self, mut seed: u64) -> &Self {
        let mut answer = self;
        let drawn = |answer: &Self, seed| pick(answer.any.iter().map(|(weight, _)| *weight), seed);
        while let Some(k) = drawn(answer, seed) {
            answer = &answer.any[k].1;
            seed = draw(seed, "again", "", 0);
        }
        answer
    }
}

impl Answer {
    /// Returns the reviewer's verdict in the form that models give; `None` if the answer is not a verdict.
    pub fn verdict(&self) -> Option<String> {
        match &self.revise {
            Some(revise) => Some(steersman_machine::questions::judgement::revise(revise)),
            None => self
                .accept
                .then(steersman_machine::questions::judgement::accept),
        }
    }
}

/// Scripted outcome of a tool's run.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutcome {
    /// Delay of the outcome in milliseconds on the test's clock.
    pub after: Option<u64>,
    /// Result of the run.
    pub gives: Gives,
    /// Artifacts that the run makes with a result: names and texts.
    pub makes: Vec<(String, String)>,
}

impl ToolOutcome {
    /// Returns the raw outcome of a run with this result, with the artifacts that it makes.
    pub fn done(&self, result: Json) -> Raw {
        if self.makes.is_empty() {
            return Raw::Done(result);
        }
        let made = self.makes.iter().map(|(name, text)| Content {
            media: artifact::media_of(name).to_owned(),
            bytes: text.as_bytes().into(),
            name: name.clone(),
        });
        Raw::Made {
            result,
            made: made.collect(),
            writes: Vec::new(),
            mode: None,
        }
    }
}

/// Scripted result of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Gives {
    /// The tool returns a result.
    Result(Json),
    /// The effect provably did not happen.
    Error {
        /// Code, as in `on_error`.
        code: String,
        /// Message for the model.
        message: String,
    },
    /// The outcome is unknown.
    Unknown,
}

/// One step of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Action of the step; `None` if the step only has expectations.
    pub act: Option<Act>,
    /// Branch of the action; `None` means the current branch.
    pub at: Option<String>,
    /// Person who acts; `None` means the user.
    pub role: Option<Name>,
    /// Entries of state that a person sets, with a message or by [`Act::Edit`].
    pub sets: Vec<NewWrite>,
    /// True if the action must be refused.
    pub refused: bool,
    /// Script that replaces the earlier one from this step on.
    pub script: Option<Script>,
    /// Expectations after the step.
    pub expect: Vec<Expect>,
}

/// Action of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// A message of the user or another person.
    Say(String),
    /// A person edits state: [`Step::sets`].
    Edit,
    /// An event from outside.
    Event {
        /// Name of the event.
        name: Name,
        /// Payload of the event.
        fields: Json,
    },
    /// An answer to the open question, or to a secret's `ask`.
    Answer(String),
    /// A person approves a call of this tool.
    Approve {
        /// Name of the tool.
        tool: Name,
        /// Arguments that the person changed.
        edit: Option<Json>,
        /// True if the person also approves that the call repeats an equal earlier effect.
        repeat: bool,
    },
    /// A person rejects a call of this tool.
    Reject {
        /// Name of the tool.
        tool: Name,
        /// Reason given by the person.
        reason: Option<String>,
    },
    /// A person settles a doubt.
    Resolve {
        /// Name of the tool.
        tool: Name,
        /// The person's decision.
        to: Resolve,
    },
    /// A message that cancels the open exchange.
    Interrupt(String),
    /// Cancels the call of a tool, an agent, a branch, or `session`.
    Cancel(String),
    /// Forks a branch.
    Fork {
        /// Name of the branch to fork.
        branch: String,
        /// Name of the new branch.
        name: Option<String>,
        /// Start point: a line, or the first line after a tool; `None` means the head.
        from: Option<String>,
        /// First message on the new branch.
        say: Option<String>,
    },
    /// Rewinds a branch.
    Rewind {
        /// Name of the branch to rewind.
        branch: String,
        /// Name of the new branch.
        name: Option<String>,
        /// Start point: a line, or the first line after a tool; `None` means the head.
        from: Option<String>,
        /// First message on the new branch.
        say: Option<String>,
    },
    /// Adopts a branch.
    Adopt(String),
    /// A person joins branches.
    Join {
        /// Names of the branches.
        branches: Vec<String>,
        /// Condition that ends the join.
        on: JoinOn,
        /// Tool called after the join, with arguments over `result.answers`.
        then: Option<Then>,
    },
    /// Advances the clock by this many milliseconds.
    Advance(u64),
    /// The process dies.
    Kill(Kill),
    /// The process starts again.
    Resume,
}

/// A person's decision on an effect in doubt.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Resolve {
    /// The effect happened.
    Done,
    /// The effect did not happen.
    NotPerformed,
    /// The doubt stays; the model is told that the effect may have happened.
    Fail,
}

/// Point at which the process dies.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kill {
    /// At a place chosen by the seed.
    Random,
    /// After this line of the log.
    Line(u64),
}

/// An expectation of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// The letters of an agent's stack.
    Stack {
        /// The agent, named as in scripts.
        agent: String,
        /// Expected letters, separated by one space.
        is: String,
    },
    /// The members that a routed agent let act, in order.
    Speakers {
        /// The agent, named as in scripts.
        agent: String,
        /// Expected names, in order.
        is: Vec<String>,
    },
    /// The modes that an agent was in, in order.
    Modes {
        /// The agent, named as in scripts.
        agent: String,
        /// Expected names, in order.
        is: Vec<String>,
    },
    /// The states that the net of an agent entered, in order.
    States {
        /// The agent, named as in scripts.
        agent: String,
        /// Expected names, in order.
        is: Vec<String>,
    },
    /// The number of model calls of an agent, or of `all`.
    ModelCalls {
        /// The agent, named as in scripts.
        agent: String,
        /// Expected number.
        is: u64,
    },
    /// The tools offered in each answered model call of an agent, oldest first.
    Offered {
        /// The agent, named as in scripts.
        agent: String,
        /// Expected tools of each call, by the names that the model saw.
        is: Vec<Vec<String>>,
    },
    /// Texts that a request to a model contained, or did not contain.
    Saw {
        /// The agent, named as in scripts.
        agent: String,
        /// Number of the answered call, from 1; `None` means the last.
        call: Option<u64>,
        /// Texts to look for.
        texts: Vec<String>,
        /// True if the request must not contain the texts.
        not: bool,
    },
    /// The text of the last answer.
    Answer(String),
    /// An expression over `state`, `calls` and `outcome` that must hold.
    That(Expr),
    /// The number of branches.
    Branches(u64),
    /// All open items: `approval TOOL`, `question ROLE`, `doubt TOOL`, `input TOOL`, `event NAME`.
    Open(Vec<String>),
    /// The session is the same as without `kill` and `resume`.
    Undisturbed,
}
