//! States in Rust: one object a state, with work of its own that is a tool.

use crate::tool::{Tool, ToolContext, ToolError, tool_with};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::any::TypeId;
use std::borrow::Cow;
use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;
use steersman_machine::network::nets::NetView;
use steersman_machine::network::nets::states::{self as rules, Ended, Next};

/// The input of a state without work of its own. There is no such input, so the state can only [ask](Does::Ask) or
/// [call](Does::Call).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoWork {}

impl JsonSchema for NoWork {
    fn schema_name() -> Cow<'static, str> {
        "NoWork".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::from(false)
    }
}

/// The thing that a state does when it is entered.
#[derive(Clone, Debug, PartialEq)]
pub enum Does<I> {
    /// Its own work runs with this input: [`State::run`].
    Run(I),
    /// A tool of the network is called with these arguments. It need not be a tool that the agent's model may call.
    Call(String, Json),
    /// The agent's model is asked, with this text as an instruction if there is one. Calls of its answer are made, and it is asked
    /// again, until it answers without calls. Then the state has ended.
    Ask(Option<String>),
}

impl<I> Does<I> {
    /// Calls a tool of the network.
    pub fn call(tool: &str, args: impl Into<Json>) -> Self {
        Self::Call(tool.to_owned(), args.into())
    }
    /// Asks the agent's model with an instruction.
    pub fn ask(text: impl Into<String>) -> Self {
        Self::Ask(Some(text.into()))
    }
}

/// A state of an agent: it does one thing, then says what follows.
///
/// The thing is work of its own in Rust, a call of a tool, or a question to the agent's model. Each is one step: it is recorded,
/// retried and approved by the rules for calls, and a takeover of the session neither forgets nor repeats it. [`States`] has an
/// example.
///
/// `enter` and `next` must be pure: the same view gives the same answer. A session asks them again when it is loaded.
pub trait State: Send + Sync + 'static {
    /// The input of the work: a struct. [`NoWork`] for a state that asks its model or calls another tool.
    type Input: Serialize + DeserializeOwned + JsonSchema + Send + 'static;

    /// Returns the name of the state. Its work is the tool of this name.
    fn name(&self) -> &str;

    /// Returns the thing that the state does now. The input is recorded, and every attempt of the work gets it.
    fn enter(&self, view: &NetView<'_>) -> Does<Self::Input>;

    /// Does the work and returns its text. The context is that of a tool: [`say`](ToolContext::say) shows pieces of the text while
    /// it is made, [`step`](ToolContext::step) records parts of the work.
    fn run(
        &self,
        input: Self::Input,
        cx: ToolContext,
    ) -> impl Future<Output = Result<String, ToolError>> + Send {
        let (_, _) = (input, cx);
        ready(Err(ToolError::not_performed(
            "the state has no work of its own",
        )))
    }

    /// Ends the work: it runs in the same attempt after [`run`](Self::run), however that ended, but not after a panic or a kill. Its
    /// error is that of the work if the work had none.
    fn exit(&self, cx: &ToolContext) -> impl Future<Output = Result<(), ToolError>> + Send {
        let _ = cx;
        ready(Ok(()))
    }

    /// Returns the thing that follows. It is asked more than once for one end.
    fn next(&self, view: &NetView<'_>, ended: &Ended<'_>) -> Next;

    /// Sets what holds for the work as a tool: its class ([`Tool::unsafe_`] by default), guards, approvals, and any key such as
    /// `retry`. In a network from YAML these keys belong to the declaration of the tool, and only the class is compared.
    fn work(&self, tool: Tool) -> Tool {
        tool
    }
}

/// The states of an agent, for [`Builder::states`](crate::Builder::states).
///
/// ```
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
/// use steersman::{
///     Does, Ended, NetView, Network, Next, NoWork, State, States, Steersman, Tool, ToolContext, ToolError, Turn, agent,
/// };
///
/// /// The model says what to measure.
/// struct Plan;
///
/// impl State for Plan {
///     type Input = NoWork;
///     fn name(&self) -> &str {
///         "plan"
///     }
///     fn enter(&self, _: &NetView<'_>) -> Does<NoWork> {
///         Does::ask("Name the one quantity to measure.")
///     }
///     fn next(&self, _: &NetView<'_>, _: &Ended<'_>) -> Next {
///         Next::to("measure")
///     }
/// }
///
/// /// A program measures it.
/// struct Measure;
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Quantity { name: String }
///
/// impl State for Measure {
///     type Input = Quantity;
///     fn name(&self) -> &str {
///         "measure"
///     }
///     fn enter(&self, view: &NetView<'_>) -> Does<Quantity> {
///         Does::Run(Quantity { name: view.said().unwrap_or_default().to_string() })
///     }
///     async fn run(&self, quantity: Quantity, cx: ToolContext) -> Result<String, ToolError> {
///         cx.say("measuring: ");                                    // readers see it at once
///         Ok(format!("measuring: the {} is 21", quantity.name))
///     }
///     fn next(&self, _: &NetView<'_>, ended: &Ended<'_>) -> Next {
///         if ended.ok { Next::answer(ended.text) } else { Next::to("plan") }
///     }
///     fn work(&self, tool: Tool) -> Tool {
///         tool.read().key("retry", 2)                               // it changes nothing, so it may be repeated
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), steersman::Error> {
/// let network = Network::builder("lab")
///     .states("lab", States::new(1).state(Plan).state(Measure))
///     .agent(agent("clerk").system("You measure.").key("net", "lab"))
///     .entry("clerk")
///     .build()?;
/// let session = Steersman::options().script_all("clerk: [ temperature ]").in_memory().start(&network).await?;
/// let Turn::Answer(answer) = session.ask("How warm is it?").await? else { panic!("it answers") };
/// assert_eq!(answer.text(), "measuring: the temperature is 21");
/// # Ok(())
/// # }
/// ```
#[must_use = "states do nothing until they are added to a network"]
pub struct States {
    version: String,
    rules: rules::States,
    tools: Vec<Tool>,
}

impl States {
    /// Returns states of this version. A session is bound to it: raise it when a state would do or choose something else.
    pub fn new(version: impl fmt::Display) -> Self {
        let version = version.to_string();
        Self {
            rules: rules::States::new(version.clone()),
            version,
            tools: Vec::new(),
        }
    }

    /// Adds a state. An answer begins in the first one.
    pub fn state(mut self, state: impl State) -> Self {
        let state = Arc::new(state);
        self.tools.extend(work(&state, &self.version));
        self.rules.push(Arc::new(Rules(state)));
        self
    }

    /// Sets the state that gives the answer when a limit asks for it (`limits.model_calls`, which counts each step of a state).
    /// Without it the agent's model is asked.
    pub fn last(mut self, state: &str) -> Self {
        self.rules.set_last(state);
        self
    }

    /// Returns the net and the tools.
    pub(crate) fn parts(self) -> (rules::States, Vec<Tool>) {
        (self.rules, self.tools)
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.fmt(f)
    }
}

/// Returns the work of a state as a tool. `None` if it has no work.
fn work<S: State>(state: &Arc<S>, version: &str) -> Option<Tool> {
    if TypeId::of::<S::Input>() == TypeId::of::<NoWork>() {
        return None;
    }
    let its = state.clone();
    let tool = tool_with(state.name(), version, move |input: S::Input, cx| {
        let state = its.clone();
        async move {
            let ran = state.run(input, cx.clone()).await;
            let left = state.exit(&cx).await;
            let text = ran?;
            left.map(|()| text)
        }
    });
    let tool = tool.describe(format!("The work of the state {}.", state.name()));
    Some(state.work(tool))
}

/// The rules of a state, as the machine asks them.
struct Rules<S>(Arc<S>);

impl<S: State> rules::State for Rules<S> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn enter(&self, view: &NetView<'_>) -> rules::Does {
        match self.0.enter(view) {
            Does::Run(input) => {
                // A map with keys that are not texts is no JSON; the call is then refused with the reason.
                let input = serde_json::to_value(input);
                rules::Does::Work(input.unwrap_or_else(|e| Json::String(e.to_string())))
            }
            Does::Call(tool, args) => rules::Does::Call(tool.into(), args),
            Does::Ask(text) => rules::Does::Ask(text),
        }
    }

    fn next(&self, view: &NetView<'_>, ended: &Ended<'_>) -> Next {
        self.0.next(view, ended)
    }
}
