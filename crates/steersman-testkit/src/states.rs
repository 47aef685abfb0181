//! Nets of states for case files and tests.

use serde_json::json;
use std::sync::Arc;
use steersman_machine::network::nets::states::{Does, Ended, Next, State, States};
use steersman_machine::network::nets::{Natives, NetView};

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

/// Returns all of these nets by name.
pub fn natives() -> Natives {
    let mut natives = Natives::default();
    natives.nets.insert("stub".into(), Arc::new(stub()));
    natives.nets.insert("desk".into(), Arc::new(desk()));
    natives
}
