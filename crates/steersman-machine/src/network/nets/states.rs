//! Nets of states: a state says what it does when the agent enters it, and what follows when that has ended.

use super::{Event, Net, NetView, Step};
use crate::stored::ids::Name;
use serde_json::Value as Json;
use std::fmt;
use std::sync::Arc;

/// The thing that a state does when it is entered.
#[derive(Clone, Debug, PartialEq)]
pub enum Does {
    /// Its own work runs: the tool of the network that has the name of the state, with this input as its arguments.
    Work(Json),
    /// A tool of the network is called with these arguments.
    Call(Name, Json),
    /// The agent's model is asked, with this text as an instruction if there is one. Calls of its answer are made, and it is asked
    /// again, until it answers without calls. Then the state has ended.
    Ask(Option<String>),
}

/// The end of what a state did.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ended<'a> {
    /// True if it succeeded. False for a call that failed, was refused or was cancelled.
    pub ok: bool,
    /// The result or the answer, or the text of the failure.
    pub text: &'a str,
    /// Code of the failure, as in `on_error`.
    pub code: Option<&'a str>,
    /// Number of steps that the state made for this answer, this one included: 1 at its first end, unless its model made calls.
    pub times: u32,
}

/// The thing that follows a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The agent enters this state. It may be the same one again.
    To(Name),
    /// The agent answers with this text.
    Answer(String),
    /// The agent fails with this text.
    Fail(String),
}

impl Next {
    /// Enters a state.
    pub fn to(state: &str) -> Self {
        Self::To(state.into())
    }
    /// Answers with a text.
    pub fn answer(text: impl Into<String>) -> Self {
        Self::Answer(text.into())
    }
    /// Fails with a text.
    pub fn fail(text: impl Into<String>) -> Self {
        Self::Fail(text.into())
    }
}

/// The rules of one state. Implementations must be pure, as those of [`Net`].
pub trait State: Send + Sync {
    /// Returns the name of the state.
    fn name(&self) -> &str;
    /// Returns the thing that the state does now.
    fn enter(&self, view: &NetView<'_>) -> Does;
    /// Returns the thing that follows. It is asked more than once for one end.
    fn next(&self, view: &NetView<'_>, ended: &Ended<'_>) -> Next;
}

/// A net of states. An answer begins in the first one.
#[derive(Clone)]
pub struct States {
    version: String,
    all: Vec<Arc<dyn State>>,
    last: Option<Name>,
}

impl States {
    /// Returns a net without states.
    pub fn new(version: String) -> Self {
        Self {
            version,
            all: Vec::new(),
            last: None,
        }
    }

    /// Adds a state.
    pub fn push(&mut self, state: Arc<dyn State>) {
        self.all.push(state);
    }

    /// Sets the state that gives the answer when a limit asks for it. Without it the agent's model is asked.
    pub fn set_last(&mut self, state: &str) {
        self.last = Some(state.into());
    }

    /// Returns the names of the states, in the order in which they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|state| state.name())
    }

    /// Returns the state that gives the answer when a limit asks for it.
    pub fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    fn get(&self, name: &str) -> Option<&dyn State> {
        let mut all = self.all.iter();
        let found = all.find(|state| state.name() == name);
        found.map(|state| &**state)
    }

    /// Enters a state.
    fn go(&self, view: &NetView<'_>, name: &str) -> Step {
        let Some(state) = self.get(name) else {
            return Step::Fail(format!("the net has no state `{name}`"));
        };
        let step = match state.enter(view) {
            Does::Work(input) => Step::Call(name.into(), input),
            Does::Call(tool, args) => Step::Call(tool, args),
            Does::Ask(None) => Step::Think,
            Does::Ask(Some(text)) => Step::Next(text),
        };
        step.enters(name)
    }

    /// Continues a state that owes a step and has not ended: its model gets the results of its calls, or its instruction.
    fn on(&self, view: &NetView<'_>, name: &str) -> Step {
        match self.get(name).map(|state| state.enter(view)) {
            Some(Does::Ask(_)) => Step::Think,
            Some(Does::Work(_) | Does::Call(..)) | None => self.go(view, name),
        }
    }

    /// Takes the last step that a limit allows.
    fn concludes(&self, view: &NetView<'_>) -> Step {
        match &self.last {
            None => Step::Think,
            Some(last) if view.state() == Some(last) => self.on(view, last),
            Some(last) => self.go(view, last),
        }
    }

    /// Returns the thing that follows a state, and `Take` if that is an answer with the text as it is.
    fn after(&self, view: &NetView<'_>, ended: Ended<'_>) -> Result<Name, Step> {
        let Some(state) = view.state().and_then(|name| self.get(name)) else {
            return Err(Step::Take);
        };
        match state.next(view, &ended) {
            Next::To(next) => Ok(next),
            Next::Answer(text) if ended.ok && text == ended.text => Err(Step::Take),
            Next::Answer(text) => Err(Step::Answer(text)),
            Next::Fail(text) => Err(Step::Fail(text)),
        }
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States")
            .field("version", &self.version)
            .field("names", &self.names().collect::<Vec<_>>())
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

impl Net for States {
    fn version(&self) -> String {
        self.version.clone()
    }

    fn next(&self, view: &NetView<'_>, event: &Event<'_>) -> Step {
        let times = view.state().map_or(0, |state| view.steps_of(state));
        match event {
            Event::Owes if view.is_last() => self.concludes(view),
            Event::Owes => match view.state() {
                None => match self.all.first() {
                    Some(first) => self.go(view, first.name()),
                    None => Step::Fail("the net has no states".to_owned()),
                },
                Some(_) if view.is_thought() => {
                    let said = view.said().unwrap_or_default();
                    let next = self.after(view, ended(&said, times));
                    next.map_or_else(|step| answers(step, &said), |next| self.go(view, &next))
                }
                Some(state) => self.on(view, state),
            },
            Event::Answered(_) if view.is_last() => Step::Take,
            Event::Answered(answer) => match answer.text.as_deref() {
                Some(text) if answer.asks.is_empty() && !text.trim().is_empty() => {
                    let next = self.after(view, ended(text, times + 1));
                    next.map_or_else(|step| step, |_| Step::Thought)
                }
                _ => Step::Take,
            },
            Event::Gave(gave) => {
                let ended = Ended {
                    ok: gave.ok,
                    text: gave.text,
                    code: gave.code,
                    times,
                };
                match self.after(view, ended) {
                    Ok(_) if view.is_last() => self.concludes(view),
                    Ok(next) => self.go(view, &next),
                    Err(step) => step,
                }
            }
        }
    }
}

/// The end of a state whose model answered.
fn ended(text: &str, times: u32) -> Ended<'_> {
    Ended {
        ok: true,
        text,
        code: None,
        times,
    }
}

/// Returns an answer for an agent that owes a step: `Take` is for answers of its model.
fn answers(step: Step, said: &str) -> Step {
    match step {
        Step::Take => Step::Answer(said.to_owned()),
        step => step,
    }
}
