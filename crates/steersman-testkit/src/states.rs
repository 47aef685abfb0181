//! Nets of states and a hook for case files and tests.

use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_machine::network::hooks::{At, Hook};
use steersman_machine::network::nets::states::{Does, Ended, Next, State, States};
use steersman_machine::network::nets::{Natives, NetView};
use steersman_machine::stored::commit::Moment;

type Enter = fn(&NetView<'_>) -> Does;
type After = fn(&NetView<'_>, &Ended<'_>) -> Next;

struct Plain(&'static str, Enter, After);

impl State for Plain {
    fn name(&self) -> &str {
        self.0
    }
    fn enter(&self, view: &NetView<'_>) -> Does {
        (self.1)(view)
    }
    fn next(&self, view: &NetView<'_>, ended: &Ended<'_>) -> Next {
        (self.2)(view, ended)
    }
}

fn net(states: Vec<Plain>, last: Option<&str>) -> States {
    let mut net = States::new("1".to_owned());
    for state in states {
        net.push(Arc::new(state));
    }
    if let Some(last) = last {
        net.set_last(last);
    }
    net
}

/// The stub net of a brain: reasoning, action, reasoning, answer. All states work, and no model is asked. It counts by the log.
pub fn stub() -> States {
    let work: Enter = |view| {
        let state = view.state().unwrap_or_default();
        Does::Work(json!({ "message": view.message(), "after": state }))
    };
    net(
        vec![
            Plain("reasoning", work, |_, ended| match ended.times {
                1 => Next::to("action"),
                _ => Next::to("answer"),
            }),
            Plain("action", work, |_, _| Next::to("reasoning")),
            Plain("answer", work, |_, ended| Next::answer(ended.text)),
        ],
        None,
    )
}

/// A net that asks the model for a plan, calls a tool with it, and works over what came until that is good.
pub fn desk() -> States {
    net(
        vec![
            Plain(
                "plan",
                |_| Does::Ask(Some("Say what to look for.".to_owned())),
                |_, ended| match ended.text {
                    "nothing" => Next::answer("There is nothing to look for."),
                    "panic" => Next::to("nowhere"),
                    _ => Next::to("look"),
                },
            ),
            Plain(
                "look",
                |view| {
                    let query = view.said().unwrap_or_default();
                    Does::Call("search".into(), json!({ "query": query }))
                },
                |_, ended| match (ended.ok, ended.code) {
                    (true, _) => Next::to("write"),
                    (false, Some("not_found")) => Next::to("plan"),
                    (false, _) => Next::fail(ended.text),
                },
            ),
            Plain(
                "write",
                |view| Does::Work(json!({ "found": view.said() })),
                |_, ended| match ended.text {
                    "more" => Next::to("write"),
                    text => Next::answer(text),
                },
            ),
            Plain(
                "give_up",
                |_| Does::Work(json!({})),
                |_, ended| Next::answer(ended.text),
            ),
        ],
        Some("give_up"),
    )
}

/// A hook that marks what goes by: it hides a number from the model, and adds a word to what comes back. What has the word `fail` in
/// it fails.
struct Marks;

impl Hook for Marks {
    fn version(&self) -> String {
        "1".to_owned()
    }
    fn moments(&self) -> &[Moment] {
        &[
            Moment::BeforeModel,
            Moment::AfterModel,
            Moment::BeforeCall,
            Moment::AfterCall,
            Moment::Finish,
        ]
    }
    fn run(&self, at: &At, _: u64, value: Json) -> Result<Json, String> {
        let text = value.to_string();
        let judged = match at.moment {
            Moment::BeforeModel => "",
            Moment::AfterModel => value["text"].as_str().unwrap_or_default(),
            Moment::BeforeCall | Moment::AfterCall | Moment::Finish => &text,
        };
        if judged.contains("fail") {
            return Err("it says fail".to_owned());
        }
        match at.moment {
            Moment::BeforeModel => {
                let text = text.replace("4111", "[card]");
                serde_json::from_str(&text).map_err(|error| error.to_string())
            }
            Moment::AfterModel => Ok(value),
            Moment::BeforeCall => {
                let mut args = value;
                args["seen"] = true.into();
                Ok(args)
            }
            Moment::AfterCall | Moment::Finish => {
                let marked = value.as_str().unwrap_or_default();
                Ok(format!("{marked} (marked)").into())
            }
        }
    }
}

/// Returns all of these nets, and the hook `marks`, by name.
pub fn natives() -> Natives {
    let mut natives = Natives::default();
    natives.nets.insert("stub".into(), Arc::new(stub()));
    natives.nets.insert("desk".into(), Arc::new(desk()));
    natives.hooks.insert("marks".into(), Arc::new(Marks));
    natives
}
