//! Keys of routes.

use super::{NAMES, REQUIRES, Table, Ty, agent, key};

pub(crate) static ROUTE: Table = Table {
    name: "Route",
    words: "a route",
    keys: &[
        key(
            "rules",
            Ty::List(&Ty::Table(&RULE)),
            "–",
            "The first that holds.",
        ),
        key(
            "sequence",
            NAMES,
            "–",
            "One after the other; each gets the result of the one before.",
        ),
        key(
            "states",
            Ty::Names(&Ty::Table(&STATE_NODE)),
            "–",
            "A graph of states with speakers.",
        ),
        key(
            "tasks",
            Ty::Names(&Ty::Table(&TASK)),
            "–",
            "A concierge over tasks.",
        ),
        key(
            "handoff",
            Ty::Names(&NAMES),
            "–",
            "Who may hand over to whom; `[]`: to nobody.",
        ),
        key(
            "pick",
            CHOICES,
            "–",
            "A model picks, or says that all is done.",
        ),
        key(
            "native",
            Ty::Or(&[Ty::Integer(0), Ty::Text]),
            "–",
            "A router in Rust, registered under the agent's name; its version.",
        ),
        key(
            "start",
            Ty::Name,
            "first entry",
            "First state, or first speaker of `handoff`.",
        ),
        key(
            "default",
            Ty::Name,
            "–",
            "`tasks`: who speaks when no task is chosen. Answers once, never keeps the floor.",
        ),
        key(
            "model",
            Ty::Name,
            "default",
            "Of judge, `by_model`, `pick`, orchestrator.",
        ),
        key("system", Ty::Prompt, "built in", "Of `pick`."),
        key(
            "orchestrator",
            Ty::Table(&ORCHESTRATOR),
            "–",
            "`tasks`: who is asked which task a message is about.",
        ),
        key(
            "continue",
            Ty::Word(&[("request", true), ("by_model", true), ("none", true)]),
            "request",
            "`tasks`: what follows a task that is done: what was asked for, what a model says is left, nothing.",
        ),
        key(
            "on_change",
            Ty::Word(&[("switch", true), ("ask", true), ("finish_first", true)]),
            "switch",
            "`tasks`: the user wants something else in the middle of a task.",
        ),
        key(
            "on_failed",
            Ty::Or(&[Ty::Word(&[("fail", true), ("continue", true)]), Ty::Name]),
            "`fail`; `tasks`: the default; `states`: `continue`",
            "A member failed.",
        ),
        key(
            "on_unusable",
            Ty::Table(&UNUSABLE),
            "2 retries; then `tasks`: the default, `states`: `stay`, else it fails",
            "The routing model's answer cannot be used.",
        ),
    ],
    one_of: &[(
        true,
        &[
            "rules", "sequence", "states", "tasks", "handoff", "pick", "native",
        ],
    )],
};

pub(crate) static RULE: Table = Table {
    name: "Rule",
    words: "a rule",
    keys: &[
        key("when", Ty::Expr, "true", "Holds."),
        key(
            "to",
            Ty::Or(&[Ty::Name, NAMES]),
            "–",
            "An agent, several in sequence, or `finish`.",
        ),
        key("pick", CHOICES, "–", "A model picks."),
        key("model", Ty::Name, "the route's", "The model that picks."),
    ],
    one_of: &[(true, &["to", "pick"])],
};

const CHOICES: Ty = Ty::List(&Ty::Or(&[Ty::Name, Ty::Table(&CHOICE)]));

pub(crate) static CHOICE: Table = Table {
    name: "Choice",
    words: "a choice",
    keys: &[
        key("agent", Ty::Name, "–", "The member.").required(),
        key("when", Ty::Expr, "true", "Offered while it holds."),
    ],
    one_of: &[],
};

pub(crate) static UNUSABLE: Table = Table {
    name: "Unusable",
    words: "what becomes of unusable answers",
    keys: &[
        key(
            "retries",
            Ty::Integer(0),
            "2",
            "So often it is asked again, with the error shown.",
        ),
        key("to", Ty::Name, "as above", "An agent, `stay`, `finish`."),
    ],
    one_of: &[],
};

pub(crate) static STATE_NODE: Table = Table {
    name: "StateNode",
    words: "a state",
    keys: &[
        key(
            "scene",
            Ty::Template,
            "–",
            "Ahead of each speaker's `system`.",
        ),
        key(
            "speakers",
            Ty::List(&Ty::Or(&[Ty::Name, Ty::Table(&SPEAKER)])),
            "–",
            "In speaking order.",
        )
        .required(),
        key(
            "order",
            Ty::Word(&[("in_turn", true), ("random", true), ("by_model", true)]),
            "in_turn",
            "Who speaks next; `random` is seeded by the session.",
        ),
        key(
            "begin",
            Ty::Table(&BEGIN),
            "the first speaker, without opening",
            "Who begins.",
        ),
        key(
            "exits",
            Ty::List(&Ty::Table(&EXIT)),
            "stays for ever",
            "What leads out: those that need no model first, in order, then one call over all `judge` entries.",
        ),
        key(
            "view",
            agent::VIEWS,
            "the route's",
            "What speakers see here.",
        ),
        key(
            "reset",
            Ty::Word(&[("on_entry", true), ("never", true)]),
            "on_entry",
            "When counters and opening begin anew.",
        ),
    ],
    one_of: &[],
};

pub(crate) static SPEAKER: Table = Table {
    name: "Speaker",
    words: "a speaker",
    keys: &[
        key("agent", Ty::Name, "–", "The member.").required(),
        key(
            "role",
            Ty::Text,
            "the agent's name",
            "By what name models choose it.",
        ),
        key(
            "instructions",
            Ty::Template,
            "–",
            "Added to its `system` in this state.",
        ),
        key(
            "extract",
            Ty::List(&Ty::Name),
            "–",
            "State entries of the routed agent, or of one above it, filled from what it said, before the next decision.",
        ),
    ],
    one_of: &[],
};

pub(crate) static BEGIN: Table = Table {
    name: "Begin",
    words: "an opening",
    keys: &[
        key("speaker", Ty::Name, "–", "Who speaks first.").required(),
        key("say", Ty::Template, "–", "Said without a model call."),
    ],
    one_of: &[],
};

pub(crate) static EXIT: Table = Table {
    name: "Exit",
    words: "an exit",
    keys: &[
        key("when", Ty::Expr, "–", "Holds."),
        key(
            "judge",
            Ty::Template,
            "–",
            "A judge model says that this is so. It answers with the number of a `judge` entry, counted from 1, or 0 for stay.",
        ),
        key(
            "after_messages",
            Ty::Integer(1),
            "–",
            "So many messages were said in the state.",
        ),
        key("to", Ty::Name, "–", "A state, or `finish`.").required(),
    ],
    one_of: &[(true, &["when", "judge", "after_messages"])],
};

pub(crate) static TASK: Table = Table {
    name: "Task",
    words: "a task",
    keys: &[
        key("agent", Ty::Name, "the task's name", "Who does it."),
        key(
            "after",
            NAMES,
            "–",
            "Tasks that must be done first. Choosing this one while they are open begins the first open one and keeps this one as the goal.",
        ),
        key(
            "done",
            Ty::Expr,
            "its agent says so",
            "Judged when a turn of the task ends, never before its first, and when its agent calls `done`.",
        ),
        key("requires", REQUIRES, "–", "All must hold for it to begin."),
        key("clear", NAMES, "–", "State that is unset when it begins."),
        key(
            "release",
            Ty::List(&Ty::Word(&[("done", true), ("need_help", true)])),
            "[done, need_help]",
            "What its agent may call to give the floor back.",
        ),
    ],
    one_of: &[],
};

pub(crate) static ORCHESTRATOR: Table = Table {
    name: "Orchestrator",
    words: "an orchestrator",
    keys: &[
        key("system", Ty::Prompt, "built in", "Its system prompt."),
        key("model", Ty::Name, "the route's", "Its model."),
        key(
            "speaks",
            Ty::Boolean,
            "false",
            "May answer the user itself.",
        ),
    ],
    one_of: &[],
};
