//! Keys of routes.

use super::{NAMES, Table, Ty, key, later};

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
        later("states", "A graph of states with speakers."),
        later("tasks", "A concierge over tasks."),
        later("handoff", "Who may hand over to whom."),
        later("pick", "A model picks."),
        key(
            "native",
            Ty::Or(&[Ty::Integer(0), Ty::Text]),
            "–",
            "A router in Rust, registered under the agent's name; its version.",
        ),
        later("start", "First state or speaker."),
        later("default", "Who speaks when no task is chosen."),
        later("model", "Of the judge, of `pick`."),
        later("system", "Of `pick`."),
        later("orchestrator", "Of `tasks`."),
        later("continue", "What follows a task that is done."),
        later("on_change", "The user wants something else."),
        key(
            "on_failed",
            Ty::Or(&[Ty::Word(&[("fail", true), ("continue", true)]), Ty::Name]),
            "fail",
            "A member failed.",
        ),
        later("on_unusable", "The routing model's answer cannot be used."),
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
        later("pick", "A model picks."),
        later("model", "The model that picks."),
    ],
    one_of: &[(true, &["to", "pick"])],
};
