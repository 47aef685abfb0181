//! Tests of a definition, as data: script, steps, expectations.

use serde_json::Value as Json;
use std::collections::BTreeMap;
use steersman_machine::expression::{Expr, Template};
use steersman_machine::ids::Name;
use steersman_machine::join::JoinOn;
use steersman_machine::network::Then;
use steersman_machine::search::{draw, pick};

/// One test: what models and tools answer, what happens, what must come of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Test {
    /// Who is talked to; none: the network's first entry.
    pub entry: Option<Name>,
    /// Seed of the session.
    pub seed: u64,
    /// Answers of models and routers.
    pub script: Script,
    /// Outcomes of tools by name, in order. A tool without an entry runs for real.
    pub tools: BTreeMap<Name, Vec<ToolOutcome>>,
    /// What is in memory before anything happens.
    pub memory: Vec<Remembered>,
    /// What happens.
    pub steps: Vec<Step>,
    /// What holds at the end.
    pub expect: Vec<Expect>,
}

/// Something that was saved before a test begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Its name.
    pub name: String,
    /// Its text.
    pub content: String,
    /// Whose it is; none: the network's name.
    pub scope: Option<String>,
    /// Words it is found by.
    pub tags: Vec<String>,
    /// A person's rating.
    pub rating: Option<u8>,
}

/// Answers by key, in order: an agent's name, its path (`parent/adder`), on a branch (`main@b1`), or of a call that the
/// engine makes beside its own (`desk#continue`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script(pub BTreeMap<String, Vec<Answer>>);

/// One scripted answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Its text, a template over `request`.
    pub text: Option<Template>,
    /// Calls by the name that the model sees, with their arguments.
    pub calls: Vec<(String, Json)>,
    /// A structured answer.
    pub output: Option<Json>,
    /// A reviewer accepts.
    pub accept: bool,
    /// A reviewer wants a change.
    pub revise: Option<String>,
    /// The model call fails with this code.
    pub error: Option<String>,
    /// One of these is drawn by its weight, from the session's seed, the agent, its branch and the position.
    pub any: Vec<(f64, Answer)>,
}

impl Answer {
    /// The answer itself, or the one that is drawn; one that is drawn may be drawn from again.
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
    /// The judgement that it gives, as models give one.
    pub fn verdict(&self) -> Option<String> {
        match &self.revise {
            Some(revise) => Some(steersman_machine::reflect::revise(revise)),
            None => self.accept.then(steersman_machine::reflect::accept),
        }
    }
}

/// How a tool's run ends in a test.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutcome {
    /// Not before so many milliseconds on the clock.
    pub after: Option<u64>,
    /// What it gives.
    pub gives: Gives,
}

/// What a tool gives in a test.
#[derive(Clone, Debug, PartialEq)]
pub enum Gives {
    /// A result.
    Result(Json),
    /// Proved not to have happened.
    Error {
        /// Code of `on_error`.
        code: String,
        /// For the model.
        message: String,
    },
    /// Nobody knows.
    Unknown,
}

/// One step of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What happens; none: only what is expected here.
    pub act: Option<Act>,
    /// On this branch; none: the current one.
    pub at: Option<String>,
    /// Who does it, where that is not the user.
    pub role: Option<Name>,
    /// It must be refused.
    pub refused: bool,
    /// Answers from here on, in place of those before.
    pub script: Option<Script>,
    /// What holds after it.
    pub expect: Vec<Expect>,
}

/// What happens in a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// A message.
    Say(String),
    /// An event from outside.
    Event {
        /// Its name.
        name: Name,
        /// Its payload.
        fields: Json,
    },
    /// An answer to the open question, or to a secret's `ask`.
    Answer(String),
    /// A person approves a call of this tool.
    Approve {
        /// The tool.
        tool: Name,
        /// Changed arguments.
        edit: Option<Json>,
        /// It does again what was done before, and the person says so.
        repeat: bool,
    },
    /// A person rejects a call of this tool.
    Reject {
        /// The tool.
        tool: Name,
        /// Why.
        reason: Option<String>,
    },
    /// A person settles a doubt.
    Resolve {
        /// The tool.
        tool: Name,
        /// How.
        to: Resolve,
    },
    /// A message that cancels the open exchange.
    Interrupt(String),
    /// Cancels a call's tool, an agent, a branch, or `session`.
    Cancel(String),
    /// Forks a branch.
    Fork {
        /// Which.
        branch: String,
        /// Name of the new one.
        name: Option<String>,
        /// A line, or the first after a tool; none: the head.
        from: Option<String>,
        /// The first message there.
        say: Option<String>,
    },
    /// Rewinds a branch.
    Rewind {
        /// Which.
        branch: String,
        /// Name of the new one.
        name: Option<String>,
        /// A line, or the first after a tool; none: the head.
        from: Option<String>,
        /// The first message there.
        say: Option<String>,
    },
    /// Adopts a branch.
    Adopt(String),
    /// A person joins branches.
    Join {
        /// Which.
        branches: Vec<String>,
        /// When the join is over.
        on: JoinOn,
        /// The tool that follows, over `result.answers`.
        then: Option<Then>,
    },
    /// The clock goes on by so many milliseconds.
    Advance(u64),
    /// The process dies.
    Kill(Kill),
    /// And is started again.
    Resume,
}

/// How a doubt is settled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Resolve {
    /// It happened.
    Done,
    /// It did not.
    NotPerformed,
    /// The model is told that it may have.
    Fail,
}

/// Where the process dies.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kill {
    /// At a place chosen by the seed.
    Random,
    /// After this line.
    Line(u64),
}

/// What must hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// Letters of an agent's stack.
    Stack {
        /// The agent, as in scripts.
        agent: String,
        /// Its letters, with one space between.
        is: String,
    },
    /// Whom a routed agent let act, in order.
    Speakers {
        /// The agent.
        agent: String,
        /// Their names.
        is: Vec<String>,
    },
    /// Modes of an agent, in order.
    Modes {
        /// The agent.
        agent: String,
        /// Their names.
        is: Vec<String>,
    },
    /// States that the net of an agent entered, in order.
    States {
        /// The agent.
        agent: String,
        /// Their names.
        is: Vec<String>,
    },
    /// Model calls of an agent, or of `all`.
    ModelCalls {
        /// The agent.
        agent: String,
        /// How many.
        is: u64,
    },
    /// What each model call of an agent that was answered was offered, oldest first.
    Offered {
        /// The agent.
        agent: String,
        /// The tools of each call, by the names that the model saw.
        is: Vec<Vec<String>>,
    },
    /// Texts that stood in what a model was sent, or did not.
    Saw {
        /// The agent.
        agent: String,
        /// Which of its calls that were answered, from 1; none: the last.
        call: Option<u64>,
        /// The texts.
        texts: Vec<String>,
        /// They did not.
        not: bool,
    },
    /// The last answer.
    Answer(String),
    /// Over `state`, `calls`, `outcome`.
    That(Expr),
    /// How many branches there are.
    Branches(u64),
    /// What waits: `approval TOOL`, `question ROLE`, `doubt TOOL`, `input TOOL`, `event NAME`.
    Open(Vec<String>),
    /// The same as without `kill` and `resume`.
    Undisturbed,
}
