//! Hooks: functions in Rust around an agent's life. They are asked at the place where a request, an answer, arguments or a result
//! is made. The line that the place belongs to records what they change, so only a new line asks them.
//!
//! A hook gets and gives JSON in the form of its moment ([`Request`], [`Answer`], an object of arguments, a text).

mod forms;

pub use forms::{Answer, Call, Request, Text, TextOf};

use crate::network::Network;
use crate::stored::commit::Moment;
use crate::stored::ids::{Id, Name};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Time that a hook has, in milliseconds, if the definition does not say.
pub const TIMEOUT: u64 = 1_000;

/// A hook as a definition declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookDef {
    /// Name under which a program registers the hook.
    pub name: Name,
    /// Version that the program must have.
    pub version: String,
    /// The agents around whose life it is. Empty means all.
    pub agents: Vec<Name>,
    /// Time that it has at each moment, in milliseconds.
    pub timeout: u64,
}

/// The moment at which a hook is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct At {
    /// The moment.
    pub moment: Moment,
    /// Name of the agent in the definition.
    pub agent: Name,
    /// The called tool or agent, for a call.
    pub tool: Option<Name>,
    /// The arguments of the call whose result it is, after a call.
    pub args: Option<Json>,
    /// The effect whose request it is, before a model call.
    pub effect: Option<Id>,
}

/// A hook in Rust. The same input must give the same output: it may be asked more than once for one line.
pub trait Hook: Send + Sync {
    /// Returns the version of the hook, which is part of the definition's digest.
    fn version(&self) -> String;
    /// Returns the moments at which it is asked.
    fn moments(&self) -> &[Moment];
    /// Returns the value that is used in place of the given one, or the reason why there is none; a text for people. `timeout` is
    /// in milliseconds.
    fn run(&self, at: &At, timeout: u64, value: Json) -> Result<Json, String>;
}

/// A change that hooks make to the texts of a request, as the log stores it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edits {
    /// New texts of segments, by the number of the segment in the request before the change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<usize, String>,
    /// Texts that are added at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// The reason why the hook failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl Edits {
    /// Returns the difference between the texts that a hook got and those that it gave.
    pub(crate) fn between(was: &Request, is: Request) -> Self {
        let mut edits = Self::default();
        for text in is.texts {
            match text.segment {
                Some(at) => {
                    let mut old = was.texts.iter().filter(|old| old.segment == Some(at));
                    if old.any(|old| old.text != text.text) {
                        edits.texts.insert(at, text.text);
                    }
                }
                None => edits.added.push(text.text),
            }
        }
        edits
    }

    /// Returns the texts of a request with these changes.
    #[must_use]
    pub fn applied(&self, mut request: Request) -> Request {
        for text in &mut request.texts {
            if let Some(new) = text.segment.and_then(|at| self.texts.get(&at)) {
                text.text.clone_from(new);
            }
        }
        for text in &self.added {
            request.add(text.as_str());
        }
        request
    }
}

/// The change that one hook made at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ran {
    pub(crate) hook: Name,
    pub(crate) was: Json,
    /// The reason if it failed.
    pub(crate) is: Result<Json, String>,
}

impl Ran {
    /// Returns the change as the log stores it.
    pub(crate) fn change(&self) -> Json {
        match &self.is {
            Ok(is) => json!({ "was": self.was, "is": is }),
            Err(why) => json!({ "was": self.was, "failed": why }),
        }
    }
}

/// The work of all hooks at one moment.
#[derive(Debug, Default)]
pub(crate) struct AllRan {
    /// The hooks that changed something, and the one that failed, in order.
    pub(crate) ran: Vec<Ran>,
    /// The changed value. `None` means that no hook changed it.
    pub(crate) is: Option<Json>,
    /// The reason why a hook failed, with its name, the place and a way out.
    pub(crate) failed: Option<String>,
}

impl Network {
    /// Returns true if a hook of the definition may act around this agent.
    pub(crate) fn has_hooks(&self, agent: &str) -> bool {
        self.hooks.iter().any(|hook| hook.is_around(agent))
    }

    /// Returns true if an answer of this agent may still be changed after its model gave it.
    pub fn edits_answers(&self, agent: &str) -> bool {
        let edits = |hook: &HookDef| {
            let native = self.natives.hooks.get(&hook.name);
            native.is_none_or(|native| {
                let moments = native.moments();
                moments.contains(&Moment::AfterModel) || moments.contains(&Moment::Finish)
            })
        };
        let mut around = self.hooks.iter().filter(|hook| hook.is_around(agent));
        around.any(edits)
    }

    /// Returns the hooks of a moment, in the order in which they are declared. A hook that is not registered is asked at every
    /// moment, and fails.
    fn hooks_at<'a>(&'a self, at: &'a At) -> impl Iterator<Item = &'a HookDef> {
        let registered = |hook: &HookDef| self.natives.hooks.get(&hook.name);
        self.hooks
            .iter()
            .filter(|hook| hook.is_around(&at.agent))
            .filter(move |hook| registered(hook).is_none_or(|it| it.moments().contains(&at.moment)))
    }

    /// Returns true if there is a hook to be asked at this moment.
    pub(crate) fn has_hooks_at(&self, at: &At) -> bool {
        self.hooks_at(at).next().is_some()
    }

    /// Asks all hooks of a moment. Each gets `value` as it is when `next` has taken in what the one before it gave. The first that
    /// fails ends it.
    pub(crate) fn ask_each_hook<T>(
        &self,
        at: &At,
        mut value: T,
        of: impl Fn(&T) -> Json,
        mut next: impl FnMut(T, &Json) -> T,
    ) -> AllRan {
        let mut all = AllRan::default();
        for hook in self.hooks_at(at) {
            let was = of(&value);
            let is = self.ask_hook(hook, at, was.clone());
            match &is {
                Ok(is) if *is == was => continue,
                Ok(is) => {
                    value = next(value, is);
                    all.is = Some(is.clone());
                }
                Err(why) => all.failed = Some(failure(&hook.name, at, why)),
            }
            let hook = hook.name.clone();
            all.ran.push(Ran { hook, was, is });
            if all.failed.is_some() {
                break;
            }
        }
        all
    }

    fn ask_hook(&self, hook: &HookDef, at: &At, value: Json) -> Result<Json, String> {
        let Some(native) = self.natives.hooks.get(&hook.name) else {
            return Err("this program does not register it".to_owned());
        };
        let is = native.run(at, hook.timeout, value)?;
        forms::fits(at.moment, &is)?;
        Ok(is)
    }

    /// Asks all hooks of a moment about a value.
    pub(crate) fn ask_hooks(&self, at: &At, value: impl FnOnce() -> Json) -> AllRan {
        if !self.has_hooks_at(at) {
            return AllRan::default();
        }
        self.ask_each_hook(at, value(), Json::clone, |_, is| is.clone())
    }
}

/// Returns the text of a failed hook.
pub(crate) fn failure(hook: &str, at: &At, why: &str) -> String {
    let place = match (at.moment, &at.tool) {
        (Moment::BeforeModel, _) => "before a model call".to_owned(),
        (Moment::AfterModel, _) => "after a model call".to_owned(),
        (Moment::BeforeCall, tool) => {
            format!("before a call of `{}`", tool.as_deref().unwrap_or("?"))
        }
        (Moment::AfterCall, tool) => {
            format!("after a call of `{}`", tool.as_deref().unwrap_or("?"))
        }
        (Moment::Finish, _) => "on the answer".to_owned(),
    };
    format!(
        "the hook `{hook}` of `{}` failed {place}: {why}. Mend it in the program that registers it, or take it out of `hooks` in the \
         definition.",
        at.agent
    )
}

impl HookDef {
    fn is_around(&self, agent: &str) -> bool {
        self.agents.is_empty() || self.agents.iter().any(|name| **name == *agent)
    }
}

/// Hooks in Rust by name.
pub type Hooks = BTreeMap<Name, Arc<dyn Hook>>;
