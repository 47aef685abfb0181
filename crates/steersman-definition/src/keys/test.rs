//! Keys of tests.

use super::{THEN, Table, Ty, key};

const SCRIPT: Ty = Ty::Map(&Ty::List(&Ty::Any));

pub(crate) static TEST: Table = Table {
    name: "Test",
    words: "a test",
    keys: &[
        key("entry", Ty::Name, "the file's", "Who is talked to."),
        key("seed", Ty::Integer(0), "1", "Of the session."),
        key(
            "script",
            Ty::Or(&[SCRIPT, Ty::Path]),
            "the recording",
            "Answers by agent.",
        ),
        key("tools", SCRIPT, "–", "Outcomes of tools, in order."),
        key(
            "memory",
            Ty::List(&Ty::Table(&REMEMBERED)),
            "nothing",
            "What is in memory before the first step. A test has a memory of its own.",
        ),
        key("steps", Ty::List(&Ty::Table(&STEP)), "–", "What happens."),
        key("expect", Ty::List(&Ty::Table(&EXPECT)), "–", "At the end."),
    ],
    one_of: &[],
};

pub(crate) static REMEMBERED: Table = Table {
    name: "Remembered",
    words: "what a test begins with in memory",
    keys: &[
        key("name", Ty::Text, "required", "Its name.").required(),
        key("content", Ty::Text, "required", "Its text.").required(),
        key("scope", Ty::Text, "the network's name", "Whose it is."),
        key("tags", Ty::List(&Ty::Text), "–", "Words it is found by."),
        key("rating", Ty::Integer(1), "–", "From 1 to 5, as a person's."),
    ],
    one_of: &[],
};

pub(crate) static STEP: Table = Table {
    name: "Step",
    words: "a step",
    keys: &[
        key("say", Ty::Text, "–", "A message."),
        key("at", Ty::Text, "current", "A branch."),
        key("event", Ty::Map(&Ty::Any), "–", "`NAME: fields`."),
        key("answer", Ty::Text, "–", "To the open question."),
        key("approve", Ty::Text, "–", "The tool."),
        key("reject", Ty::Text, "–", "The tool."),
        key(
            "edit",
            Ty::Map(&Ty::Any),
            "–",
            "With `approve`: changed arguments.",
        ),
        key(
            "repeat",
            Ty::Boolean,
            "`false`",
            "With `approve`: it does again what was done before, and the person says so.",
        ),
        key(
            "resolve",
            Ty::Map(&Ty::Word(&[
                ("done", true),
                ("not_performed", true),
                ("fail", true),
            ])),
            "–",
            "A doubt: `TOOL: done`.",
        ),
        key("role", Ty::Text, "–", "Who does it."),
        key(
            "refused",
            Ty::Boolean,
            "false",
            "This step must be refused.",
        ),
        key(
            "interrupt",
            Ty::Text,
            "–",
            "A message that cancels the open exchange.",
        ),
        key(
            "cancel",
            Ty::Text,
            "–",
            "A call's tool, an agent, a branch, or `session`.",
        ),
        key("fork", Ty::Text, "–", "The branch to fork."),
        key("as", Ty::Text, "–", "Name of the new branch."),
        key(
            "from",
            Ty::Text,
            "head",
            "A line, or the first after a tool.",
        ),
        key("rewind", Ty::Text, "–", "The branch to rewind."),
        key("adopt", Ty::Text, "–", "A branch."),
        key(
            "join",
            Ty::List(&Ty::Text),
            "–",
            "A person's join of these branches.",
        ),
        key(
            "on",
            Ty::Or(&[Ty::Integer(1), Ty::Expr]),
            "all",
            "With `join`: when it is over, as `join` of `fork`.",
        ),
        key("then", THEN, "–", "With `join`: the tool that follows."),
        key("script", SCRIPT, "–", "From here on."),
        key("advance", Ty::Duration, "–", "The clock."),
        key("kill", Ty::Text, "–", "`random`, or a line."),
        key("resume", Ty::Boolean, "–", "After a kill."),
        key("expect", Ty::List(&Ty::Table(&EXPECT)), "–", "Here."),
    ],
    one_of: &[],
};

pub(crate) static EXPECT: Table = Table {
    name: "Expect",
    words: "an expectation",
    keys: &[
        key("stack", Ty::Text, "–", "An agent."),
        key("speakers", Ty::Text, "–", "A routed agent."),
        key("modes", Ty::Text, "–", "An agent."),
        key(
            "states",
            Ty::Text,
            "–",
            "An agent whose `net` names its states: those that it entered, in order.",
        ),
        key("model_calls", Ty::Text, "–", "An agent, or `all`."),
        key(
            "offered",
            Ty::Text,
            "–",
            "An agent: the tools of each of its model calls, a list of lists.",
        ),
        key(
            "saw",
            Ty::Text,
            "–",
            "An agent: texts that stood in what its model was sent.",
        ),
        key(
            "unseen",
            Ty::Text,
            "–",
            "An agent: texts that did not stand there.",
        ),
        key(
            "call",
            Ty::Integer(1),
            "the last",
            "With `saw`, `unseen`: which of the agent's model calls, from 1.",
        ),
        key("is", Ty::Any, "–", "What the stack, list or number is."),
        key("answer", Ty::Text, "–", "The answer."),
        key("that", Ty::Expr, "–", "Over `state`, `calls`, `outcome`."),
        key("branches", Ty::Integer(0), "–", "How many there are."),
        key(
            "open",
            Ty::List(&Ty::Text),
            "–",
            "What waits: `approval TOOL`, `input TOOL`, `doubt TOOL`, `repeat TOOL`, `question PERSON`, `event EVENT`, `budget`.",
        ),
        key(
            "same_as",
            Ty::Word(&[("undisturbed", true)]),
            "–",
            "As without `kill` and `resume`.",
        ),
    ],
    one_of: &[],
};
